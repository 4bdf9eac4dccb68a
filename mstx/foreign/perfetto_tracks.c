/* SPDX-License-Identifier: MIT
 *
 * perfetto_tracks: see the header.
 */
#include "mstx/foreign/perfetto_tracks.h"

#include "mstx/foreign/trace_item.h"

/* Clocks below are the system's; above, a sequence's own. */
enum { REALTIME = 1, BOOTTIME = 6, FIRST_OWN_CLOCK = 64 };

/* ---- tracks and sequences ------------------------------------------------------------------------ */

struct mstx_perfetto_track *mstx__perfetto_track(struct mstx_perfetto_tracks *t, uint64_t uuid)
{
    bool added;
    const struct ms_str key = {(const char *)&uuid, sizeof uuid};
    const uint32_t at = ms_map_put_copy(&t->track_of, key, t->arena, &added);
    if (at != MS_MAP_NONE && !added && at < t->track.n)
        return &t->track.p[at];
    struct mstx_perfetto_track *slot = at != MS_MAP_NONE ? ms_vec_push(&t->track) : NULL;
    t->no_memory |= slot == NULL;
    if (slot != NULL)
        *slot = (struct mstx_perfetto_track){.uuid = uuid,
                                             .name = MS_STR(""),
                                             .process_name = MS_STR(""),
                                             .pid = -1,
                                             .tid = -1,
                                             .multiplier = 1,
                                             .lane = MSTX_PERFETTO_NO_LANE};
    return slot;
}

struct mstx_perfetto_sequence *mstx__perfetto_sequence(struct mstx_perfetto_tracks *t, uint64_t id)
{
    for (size_t i = t->sequence.n; i-- > 0;) {
        if (t->sequence.p[i].id == id)
            return &t->sequence.p[i];
    }
    struct mstx_perfetto_sequence *slot = ms_vec_push(&t->sequence);
    t->no_memory |= slot == NULL;
    if (slot != NULL)
        *slot = (struct mstx_perfetto_sequence){.id = id, .clock = BOOTTIME};
    return slot;
}

/* ProcessDescriptor and ThreadDescriptor both have the pid as field 1. */
static void read_process(struct mstx_perfetto_track *track, struct ms_str message)
{
    struct mstx_proto m = mstx__proto(message);
    track->is_process = true;
    while (mstx__proto_next(&m)) {
        if (m.field == 1)
            track->pid = (int64_t)(uint32_t)m.number;
        else if (m.field == 6)
            track->process_name = m.bytes;
    }
}

static void read_thread(struct mstx_perfetto_track *track, struct ms_str message)
{
    struct mstx_proto m = mstx__proto(message);
    while (mstx__proto_next(&m)) {
        if (m.field == 1)
            track->pid = (int64_t)(uint32_t)m.number;
        else if (m.field == 2)
            track->tid = (int64_t)(uint32_t)m.number;
        else if (m.field == 5 && track->name.n == 0)
            track->name = m.bytes;
    }
}

static void read_counter(struct mstx_perfetto_track *track, struct ms_str message)
{
    struct mstx_proto m = mstx__proto(message);
    track->is_counter = true;
    while (mstx__proto_next(&m)) {
        if (m.field == 4 && m.number != 0 && m.number <= INT32_MAX)
            track->multiplier = (int64_t)m.number;
    }
}

static uint64_t uuid_of(struct ms_str message)
{
    struct mstx_proto m = mstx__proto(message);
    while (mstx__proto_next(&m)) {
        if (m.field == 1 && m.wire != MSTX_PROTO_BYTES)
            return m.number;
    }
    return 0;
}

void mstx__perfetto_descriptor(struct mstx_perfetto_tracks *t, struct ms_str message)
{
    struct mstx_perfetto_track *track = mstx__perfetto_track(t, uuid_of(message));
    struct mstx_proto m = mstx__proto(message);
    while (track != NULL && mstx__proto_next(&m)) {
        if ((m.field == 2 || m.field == 10) && m.bytes.n != 0)
            track->name = m.bytes;
        else if (m.field == 3)
            read_process(track, m.bytes);
        else if (m.field == 4)
            read_thread(track, m.bytes);
        else if (m.field == 5 && m.number != track->uuid)
            track->parent = m.number;
        else if (m.field == 8)
            read_counter(track, m.bytes);
    }
}

/* ---- texts -------------------------------------------------------------------------------------------- */

struct text_key {
    uint64_t sequence, epoch, iid, kind;
};

static void keep_text(struct mstx_perfetto_tracks *t, const struct text_key *key,
                      struct ms_str text)
{
    bool added;
    const uint32_t at = ms_map_put_copy(
        &t->text_of, (struct ms_str){(const char *)key, sizeof *key}, t->arena, &added);
    struct ms_str *slot = at == MS_MAP_NONE ? NULL : added ? ms_vec_push(&t->text) : &t->text.p[at];
    t->no_memory |= slot == NULL;
    if (slot != NULL)
        *slot = text;
}

void mstx__perfetto_intern(struct mstx_perfetto_tracks *t, const struct mstx_perfetto_sequence *s,
                           struct ms_str message)
{
    struct mstx_proto m = mstx__proto(message);
    while (mstx__proto_next(&m)) {
        struct text_key key = {s->id, s->epoch, 0, m.field - 1};
        struct ms_str text = MS_STR("");
        struct mstx_proto entry = mstx__proto(m.bytes);
        if (m.field > MSTX_PERFETTO_TEXTS)
            continue;
        while (mstx__proto_next(&entry)) {
            if (entry.field == 1)
                key.iid = entry.number;
            else if (entry.field == 2)
                text = entry.bytes;
        }
        keep_text(t, &key, text);
    }
}

struct ms_str mstx__perfetto_text(const struct mstx_perfetto_tracks *t,
                                  const struct mstx_perfetto_sequence *s,
                                  enum mstx_perfetto_texts kind, uint64_t iid)
{
    const struct text_key key = {s->id, s->epoch, iid, kind};
    const uint32_t at = ms_map_get(&t->text_of, (struct ms_str){(const char *)&key, sizeof key});
    return at != MS_MAP_NONE && at < t->text.n ? t->text.p[at] : MS_STR("");
}

/* ---- clocks ------------------------------------------------------------------------------------------- */

static struct mstx_perfetto_clock *find_clock(struct mstx_perfetto_tracks *t,
                                              const struct mstx_perfetto_sequence *s, uint64_t id)
{
    const uint64_t sequence = id >= FIRST_OWN_CLOCK ? s->id : 0;
    for (size_t i = 0; i < t->clock.n; i++) {
        if (t->clock.p[i].id == id && t->clock.p[i].sequence == sequence)
            return &t->clock.p[i];
    }
    return NULL;
}

static struct mstx_perfetto_clock *add_clock(struct mstx_perfetto_tracks *t,
                                             const struct mstx_perfetto_sequence *s, uint64_t id)
{
    struct mstx_perfetto_clock *c = find_clock(t, s, id);
    if (c != NULL)
        return c;
    c = ms_vec_push(&t->clock);
    t->no_memory |= c == NULL;
    if (c != NULL)
        *c = (struct mstx_perfetto_clock){
            .sequence = id >= FIRST_OWN_CLOCK ? s->id : 0, .id = id, .multiplier = 1};
    return c;
}

struct clock_value {
    uint64_t id, value, multiplier;
    bool is_incremental;
};

static struct clock_value read_value(struct ms_str message)
{
    struct clock_value v = {.multiplier = 1};
    struct mstx_proto m = mstx__proto(message);
    while (mstx__proto_next(&m)) {
        if (m.field == 1)
            v.id = m.number;
        else if (m.field == 2)
            v.value = m.number;
        else if (m.field == 3)
            v.is_incremental = m.number != 0;
        else if (m.field == 4 && m.number != 0 && m.number <= 1000000000)
            v.multiplier = m.number;
    }
    return v;
}

static int64_t bounded(uint64_t value, uint64_t multiplier)
{
    const uint64_t most = (uint64_t)MSTX_TRACE_TIME_MOST;
    return (int64_t)(value > most / multiplier ? most : value * multiplier);
}

/* The snapshot's values are those of one moment; realtime, else boottime, is what counts. */
void mstx__perfetto_clocks(struct mstx_perfetto_tracks *t, const struct mstx_perfetto_sequence *s,
                           struct ms_str message)
{
    int64_t moment[2] = {-1, -1};
    struct mstx_proto m = mstx__proto(message);
    while (mstx__proto_next(&m)) {
        const struct clock_value v = read_value(m.bytes);
        if (m.field == 1 && v.id == REALTIME)
            moment[0] = bounded(v.value, 1);
        if (m.field == 1 && v.id == BOOTTIME)
            moment[1] = bounded(v.value, 1);
    }
    const struct mstx_perfetto_clock *boot = find_clock(t, s, BOOTTIME);
    const int64_t boot_offset = boot != NULL ? boot->offset_ns : 0;
    const int64_t now = moment[0] >= 0 ? moment[0] : moment[1] >= 0 ? moment[1] + boot_offset : -1;
    m = mstx__proto(message);
    while (now >= 0 && mstx__proto_next(&m)) {
        const struct clock_value v = read_value(m.bytes);
        struct mstx_perfetto_clock *c = m.field == 1 ? add_clock(t, s, v.id) : NULL;
        if (c == NULL)
            continue;
        c->multiplier = (int64_t)v.multiplier;
        c->is_incremental = v.is_incremental;
        c->now = bounded(v.value, v.multiplier);
        c->offset_ns = now - c->now;
    }
}

int64_t mstx__perfetto_time(struct mstx_perfetto_tracks *t, const struct mstx_perfetto_sequence *s,
                            uint64_t clock, uint64_t stamp)
{
    struct mstx_perfetto_clock *c = find_clock(t, s, clock);
    if (c == NULL)
        return bounded(stamp, 1);
    const int64_t most = MSTX_TRACE_TIME_MOST;
    int64_t at = bounded(stamp, (uint64_t)c->multiplier);
    if (c->is_incremental) {
        c->now = c->now > most - at ? most : c->now + at;
        at = c->now;
    }
    at += c->offset_ns; /* both are at most 2^61 */
    return at > most ? most : at < -most ? -most : at;
}

void mstx__perfetto_tracks_free(struct mstx_perfetto_tracks *t)
{
    ms_map_free(&t->track_of);
    ms_map_free(&t->text_of);
    ms_vec_free(&t->track);
    ms_vec_free(&t->text);
    ms_vec_free(&t->sequence);
    ms_vec_free(&t->clock);
}
