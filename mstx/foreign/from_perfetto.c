/* SPDX-License-Identifier: MIT
 *
 * from_perfetto: see the header.
 */
#include "mstx/foreign/from_perfetto.h"

#include "mstx/foreign/perfetto_tracks.h"
#include "mstx/foreign/trace_lanes.h"
#include "mstx/foreign/trace_text.h"

#include "probe/base/jread.h"
#include "probe/base/jwrite.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdio.h>

enum { TYPE_BEGIN = 1, TYPE_END, TYPE_INSTANT, TYPE_COUNTER };
enum { STATE_CLEARED = 1, DEPTH_MOST = 64, FLOWS_MOST = 16 };

struct reader {
    struct mstx_trace_lanes lanes;
    struct mstx_perfetto_tracks tracks;
    struct ms_arena *arena;
    struct ms_buf args;
    struct ms_str first;        /* key of the first process; p is NULL: there is none yet */
    uint64_t misplaced, packed; /* events without a place; packets that are compressed */
    bool is_cut;
};

/* What a packet holds, in whatever order. */
struct packet {
    uint64_t stamp, sequence, flags, clock;
    bool has_clock;
    struct ms_str clocks, event, interned, defaults, descriptor;
};
/* What an event says. */
struct event {
    uint64_t type, track, name_iid, category_iid;
    bool has_track, has_value;
    struct ms_str name, category;
    int64_t value;
    double real;
    bool is_real, is_unfinished;
    struct {
        uint64_t id;
        bool ends;
    } flow[FLOWS_MOST];
    size_t flows;
};

/* ---- annotations --------------------------------------------------------------------------------------- */

static bool is_object(struct ms_str text)
{
    struct ms_jread j;
    ms_jread_init(&j, text.p, text.n, 0);
    enum ms_jtok t = ms_jread_next(&j);
    if (t != MS_J_OBJ || ms_jread_skip(&j, t) == MS_J_ERR)
        return false;
    return ms_jread_next(&j) == MS_J_END;
}

/* Appends a text in quotes. */
static void add_quoted(struct reader *r, struct ms_str text)
{
    struct ms_jwrite w;
    ms_jwrite_init(&w, 0, (size_t)8 * text.n + 64);
    ms_jwrite_str(&w, text);
    if (ms_jwrite_finish(&w, NULL) == MS_OK)
        ms_buf_str(&r->args, ms_buf_slice(&w.buf));
    else
        ms_buf_puts(&r->args, "null");
    ms_jwrite_free(&w);
}

/* Appends a member of the args; values that are lists or objects of annotations are left out. */
static void add_member(struct reader *r, struct ms_str key, const struct mstx_proto *value)
{
    double real;
    ms_buf_puts(&r->args, r->args.n == 0 ? "{" : ", ");
    add_quoted(r, key);
    ms_buf_puts(&r->args, ": ");
    switch (value->field) {
    case 2:
        ms_buf_puts(&r->args, value->number != 0 ? "true" : "false");
        break;
    case 3:
    case 7:
        ms_buf_printf(&r->args, "%" PRIu64, value->number);
        break;
    case 4:
        ms_buf_printf(&r->args, "%" PRId64, (int64_t)value->number);
        break;
    case 5:
        memcpy(&real, &value->number, sizeof real);
        if (real - real == 0)
            ms_buf_printf(&r->args, "%.17g", real);
        else
            ms_buf_puts(&r->args, "null");
        break;
    default:
        add_quoted(r, value->bytes);
    }
}

static void take_annotation(struct reader *r, const struct mstx_perfetto_sequence *s,
                            struct event *e, struct ms_str message)
{
    struct ms_str key = MS_STR(""), json = MS_STR("");
    struct mstx_proto value = {.field = 0}, m = mstx__proto(message);
    while (mstx__proto_next(&m)) {
        if (m.field == 1)
            key = mstx__perfetto_text(&r->tracks, s, MSTX_PERFETTO_KEYS, m.number);
        else if (m.field == 10)
            key = m.bytes;
        else if (m.field == 9)
            json = m.bytes;
        else if (m.field >= 2 && m.field <= 7)
            value = m;
    }
    if (ms_str_is(key, "unfinished") && value.field == 2) {
        e->is_unfinished = value.number != 0; /* as to_perfetto.c writes it */
    } else if (ms_str_is(key, "args") && json.n != 0 && r->args.n == 0 && is_object(json)) {
        ms_buf_put(&r->args, json.p, json.n - 1); /* likewise */
    } else if (value.field != 0) {
        add_member(r, key, &value);
    }
}

/* ---- events ---------------------------------------------------------------------------------------------- */

static void take_flow(struct event *e, uint64_t id, bool ends)
{
    if (e->flows == FLOWS_MOST)
        return;
    e->flow[e->flows].id = id;
    e->flow[e->flows++].ends = ends;
}

static void take_value(struct event *e, const struct mstx_proto *m)
{
    e->has_value = true;
    e->is_real = m->field == 44;
    e->value = (int64_t)m->number;
    memcpy(&e->real, &m->number, sizeof e->real);
}

static void take_field(struct reader *r, const struct mstx_perfetto_sequence *s, struct event *e,
                       const struct mstx_proto *m)
{
    switch (m->field) {
    case 3:
        e->category_iid = m->wire == MSTX_PROTO_BYTES ? e->category_iid : m->number;
        break;
    case 4:
        take_annotation(r, s, e, m->bytes);
        break;
    case 9:
        e->type = m->number;
        break;
    case 10:
        e->name_iid = m->number;
        break;
    case 11:
        e->track = m->number;
        e->has_track = true;
        break;
    case 22:
        e->category = m->bytes;
        break;
    case 23:
        e->name = m->bytes;
        break;
    case 30:
    case 44:
        take_value(e, m);
        break;
    case 36:
    case 42:
    case 47:
    case 48:
        if (m->wire != MSTX_PROTO_BYTES)
            take_flow(e, m->number, m->field == 42 || m->field == 48);
        break;
    default:
        break;
    }
}

static struct event read_event(struct reader *r, const struct mstx_perfetto_sequence *s,
                               struct ms_str message)
{
    struct event e = {.name = MS_STR(""), .category = MS_STR("")};
    struct mstx_proto m = mstx__proto(message);
    ms_buf_clear(&r->args);
    while (mstx__proto_next(&m))
        take_field(r, s, &e, &m);
    if (r->args.n != 0)
        ms_buf_putc(&r->args, '}');
    if (e.name.n == 0)
        e.name = mstx__perfetto_text(&r->tracks, s, MSTX_PERFETTO_NAMES, e.name_iid);
    if (e.category.n == 0)
        e.category = mstx__perfetto_text(&r->tracks, s, MSTX_PERFETTO_CATEGORIES, e.category_iid);
    if (!e.has_track)
        e.track = s->track;
    return e;
}

/* Finds the lane of a track; the process and the name of it are set at the end. */
static struct mstx_trace_lane *lane_of(struct reader *r, const struct event *e, uint32_t *index)
{
    struct mstx_perfetto_track *t = mstx__perfetto_track(&r->tracks, e->track);
    char text[24];
    if (t == NULL)
        return NULL;
    if (t->lane != MSTX_PERFETTO_NO_LANE) {
        *index = t->lane;
        return &r->lanes.lane.p[*index];
    }
    const int n = snprintf(text, sizeof text, "%" PRIu64, e->track);
    const struct mstx_trace_item it = {
        .pid = MS_STR("0"),
        .tid = {text, (uint32_t)n},
        .name = ms_arena_str(r->arena, (struct ms_str){text, (uint32_t)n})};
    struct mstx_trace_lane *l = e->type == TYPE_COUNTER
                                    ? mstx__trace_lanes_counter(&r->lanes, &it, index)
                                    : mstx__trace_lanes_thread(&r->lanes, &it, index);
    if (l != NULL)
        t->lane = *index;
    return l;
}

static bool add_counter(struct reader *r, struct mstx_trace_lane *l,
                        const struct mstx_trace_item *it, const struct event *e)
{
    struct mstx_event *ev = mstx__trace_lanes_add(&r->lanes, l, it, MSTX_EV_COUNTER);
    if (ev == NULL)
        return false;
    ev->args = 0;
    ev->flags = e->is_real ? MSTX_EVF_FLOAT : 0;
    ev->arg = (uint64_t)e->value;
    return true;
}

static bool add_begin(struct reader *r, struct mstx_trace_lane *l, const struct mstx_trace_item *it)
{
    struct mstx_event *ev = mstx__trace_lanes_add(&r->lanes, l, it, MSTX_EV_PUSHPOP);
    size_t *open = ev != NULL ? ms_vec_push(&l->open) : NULL;
    if (open == NULL)
        return false;
    ev->flags |= MSTX_EVF_UNFINISHED;
    *open = l->ev.n - 1;
    return true;
}

static bool add_flows(struct reader *r, const struct event *e, int64_t ts, uint32_t lane)
{
    char id[24];
    for (size_t i = 0; i < e->flows; i++) {
        const int n = snprintf(id, sizeof id, "%" PRIu64, e->flow[i].id);
        const struct mstx_trace_item it = {
            .category = MS_STR("flow"), .id = {id, (uint32_t)n}, .ts = ts};
        if (!mstx__trace_lanes_flow(&r->lanes, &it, lane, !e->flow[i].ends))
            return false;
    }
    return true;
}

/* Adds an event; false when out of memory. */
static bool add_event(struct reader *r, const struct event *e, int64_t ts)
{
    uint32_t index;
    if (e->type < TYPE_BEGIN || e->type > TYPE_COUNTER ||
        (e->type == TYPE_COUNTER && !e->has_value)) {
        r->misplaced++;
        return true;
    }
    struct mstx_trace_lane *l = lane_of(r, e, &index);
    if (l == NULL)
        return false;
    const struct mstx_perfetto_track *track = mstx__perfetto_track(&r->tracks, e->track);
    const struct mstx_trace_item it = {
        .name = e->type == TYPE_COUNTER && track != NULL ? track->name : e->name,
        .ts = ts,
        .correlation = -1,
        .args = ms_buf_slice(&r->args),
        .is_unfinished = e->is_unfinished};
    if (e->type == TYPE_COUNTER || l->kind == MSTX_TRACK_COUNTER)
        return e->type != TYPE_COUNTER || l->kind != MSTX_TRACK_COUNTER ||
               add_counter(r, l, &it, e);
    if (e->type == TYPE_END && l->open.n == 0) {
        r->misplaced++;
        return true;
    }
    if (e->type == TYPE_END) {
        struct mstx_event *ev = &l->ev.p[l->open.p[--l->open.n]];
        mstx__trace_lanes_close(&r->lanes, ev, ts, true);
        return add_flows(r, e, ts, index);
    }
    if (e->category.n != 0)
        l->domain = e->category;
    const bool ok = e->type == TYPE_BEGIN
                        ? add_begin(r, l, &it)
                        : mstx__trace_lanes_add(&r->lanes, l, &it, MSTX_EV_MARK) != NULL;
    return ok && add_flows(r, e, ts, index);
}

/* ---- packets ------------------------------------------------------------------------------------------------ */

static struct packet read_packet(struct reader *r, struct ms_str message)
{
    const struct ms_str none = MS_STR("");
    struct packet p = {.clocks = none,
                       .event = MS_STR_NONE,
                       .interned = none,
                       .defaults = none,
                       .descriptor = none};
    struct mstx_proto m = mstx__proto(message);
    while (mstx__proto_next(&m)) {
        switch (m.field) {
        case 6:
            p.clocks = m.bytes;
            break;
        case 8:
            p.stamp = m.number;
            break;
        case 10:
            p.sequence = m.number;
            break;
        case 11:
            p.event = m.bytes;
            break;
        case 12:
            p.interned = m.bytes;
            break;
        case 13:
            p.flags = m.number;
            break;
        case 41:
            p.flags |= m.number != 0 ? STATE_CLEARED : 0;
            break;
        case 50:
            r->packed++;
            break;
        case 58:
            p.clock = m.number;
            p.has_clock = true;
            break;
        case 59:
            p.defaults = m.bytes;
            break;
        case 60:
            p.descriptor = m.bytes;
            break;
        default:
            break;
        }
    }
    return p;
}

static void take_defaults(struct mstx_perfetto_sequence *s, struct ms_str message)
{
    struct mstx_proto m = mstx__proto(message);
    while (mstx__proto_next(&m)) {
        struct mstx_proto inner = mstx__proto(m.bytes);
        if (m.field == 58)
            s->clock = m.number;
        while (m.field == 11 && mstx__proto_next(&inner)) {
            if (inner.field == 11)
                s->track = inner.number;
        }
    }
}

/* Takes a packet; false when out of memory. */
static bool take_packet(struct reader *r, struct ms_str message)
{
    const struct packet p = read_packet(r, message);
    struct mstx_perfetto_sequence *s = mstx__perfetto_sequence(&r->tracks, p.sequence);
    if (s == NULL)
        return false;
    if (p.flags & STATE_CLEARED)
        s->epoch++;
    if (p.clocks.n != 0)
        mstx__perfetto_clocks(&r->tracks, s, p.clocks);
    if (p.interned.n != 0)
        mstx__perfetto_intern(&r->tracks, s, p.interned);
    if (p.defaults.n != 0)
        take_defaults(s, p.defaults);
    if (p.descriptor.n != 0)
        mstx__perfetto_descriptor(&r->tracks, p.descriptor);
    if (p.event.p == NULL || r->tracks.no_memory)
        return !r->tracks.no_memory;
    const int64_t ts =
        mstx__perfetto_time(&r->tracks, s, p.has_clock ? p.clock : s->clock, p.stamp);
    const struct event e = read_event(r, s, p.event);
    return r->args.bad == MS_OK && add_event(r, &e, ts) && !r->tracks.no_memory;
}

bool mstx__is_perfetto(struct ms_str head)
{
    struct mstx_proto m = mstx__proto(head);
    if (head.n < 4 || head.p[0] != 0x0A || !mstx__proto_next(&m))
        return head.n > 4 && head.p[0] == 0x0A && m.is_bad;
    struct mstx_proto packet = mstx__proto(m.bytes);
    return mstx__proto_next(&packet);
}

static enum ms_rc read_packets(struct reader *r, const struct mstx_trace_text *text,
                               struct ms_err *err)
{
    struct mstx_proto m = {.at = text->p, .end = text->p + text->n};
    while (mstx__proto_next(&m)) {
        if (m.field == 1 && m.wire == MSTX_PROTO_BYTES && !take_packet(r, m.bytes))
            return ms_no_memory(err);
    }
    r->is_cut = m.is_bad;
    return r->lanes.lane.n != 0
               ? MS_OK
               : ms_fail(err, MS_E_FORMAT,
                         "has no track events; what else a Perfetto trace may hold is not read");
}

/* ---- writing ------------------------------------------------------------------------------------------------- */

/* Finds a track that describes the process of a pid. */
static const struct mstx_perfetto_track *find_pid(struct reader *r, int64_t pid)
{
    for (size_t i = 0; i < r->tracks.track.n; i++) {
        if (r->tracks.track.p[i].is_process && r->tracks.track.p[i].pid == pid)
            return &r->tracks.track.p[i];
    }
    return NULL;
}

/* Finds the track of the process of a track: itself, a parent, or that of the same pid; else the first
 * that has a pid; NULL: none. */
static const struct mstx_perfetto_track *find_process(struct reader *r,
                                                      const struct mstx_perfetto_track *t)
{
    const struct mstx_perfetto_track *with_pid = NULL;
    for (int depth = 0; depth < DEPTH_MOST && t != NULL; depth++) {
        if (t->is_process)
            return t;
        with_pid = with_pid == NULL && t->pid >= 0 ? t : with_pid;
        const uint64_t parent = t->parent;
        const struct ms_str key = {(const char *)&parent, sizeof parent};
        const uint32_t at = parent != 0 ? ms_map_get(&r->tracks.track_of, key) : MS_MAP_NONE;
        t = at != MS_MAP_NONE ? &r->tracks.track.p[at] : NULL;
    }
    t = with_pid != NULL ? find_pid(r, with_pid->pid) : NULL;
    return t != NULL ? t : with_pid;
}

/* Finds or adds the process that a track describes: two of different hosts may have one pid.  The
 * first takes the place of that without a pid, in which all lanes begin. */
static struct mstx_trace_process *process_of(struct reader *r, const struct mstx_perfetto_track *of,
                                             uint32_t *index)
{
    char text[48];
    const int n = of->is_process ? snprintf(text, sizeof text, "process %" PRIu64, of->uuid)
                                 : snprintf(text, sizeof text, "%" PRId64, of->pid);
    const struct ms_str key = ms_arena_str(r->arena, (struct ms_str){text, (uint32_t)n});
    const int digits = snprintf(text, sizeof text, "%" PRId64, of->pid);
    const struct ms_str pid = ms_arena_str(r->arena, (struct ms_str){text, (uint32_t)digits});
    if (key.p == NULL || pid.p == NULL)
        return NULL;
    if (r->first.p == NULL)
        r->first = key;
    *index = 0;
    struct mstx_trace_process *p = ms_str_eq(r->first, key)
                                       ? &r->lanes.process.p[0]
                                       : mstx__trace_lanes_process(&r->lanes, key, index);
    if (p != NULL)
        p->pid = pid;
    return p;
}

static bool place_lane(struct reader *r, const struct mstx_perfetto_track *t)
{
    struct mstx_trace_lane *l = &r->lanes.lane.p[t->lane];
    const struct mstx_perfetto_track *of = find_process(r, t);
    uint32_t index;
    l->tid = t->tid >= 0 ? (uint32_t)t->tid : (uint32_t)t->uuid;
    l->name = t->name;
    if (of == NULL)
        return true;
    struct mstx_trace_process *p = process_of(r, of, &index);
    if (p == NULL)
        return false;
    if (of->process_name.n != 0)
        p->name = of->process_name;
    l->process = index;
    return true;
}

static void report_problems(struct reader *r, const char *path)
{
    char text[96];
    if (r->is_cut)
        mstx__writer_problem(r->lanes.w, path, "the file is cut off; what is there has been read");
    if (r->packed != 0) {
        snprintf(text, sizeof text, "%" PRIu64 " compressed packets were left out", r->packed);
        mstx__writer_problem(r->lanes.w, path, text);
    }
    if (r->misplaced == 0)
        return;
    snprintf(text, sizeof text, "%" PRIu64 " events without a place on a time line were left out",
             r->misplaced);
    mstx__writer_problem(r->lanes.w, path, text);
}

static enum ms_rc write_all(struct reader *r, const char *path, struct ms_err *err)
{
    const struct mstx_trace_about about = {.rank = -1, .tool = "Perfetto trace"};
    uint32_t host;
    report_problems(r, path);
    for (size_t i = 0; i < r->tracks.track.n; i++) {
        if (r->tracks.track.p[i].lane != MSTX_PERFETTO_NO_LANE &&
            !place_lane(r, &r->tracks.track.p[i]))
            return ms_no_memory(err);
    }
    return mstx__trace_lanes_write(&r->lanes, &about, &host, err);
}

enum ms_rc mstx__import_perfetto(const char *path, struct mstx_trace_ranks *all, struct ms_err *err)
{
    struct reader r = {.arena = ms_arena_new((size_t)1 << 34),
                       .args = {.max = UINT32_MAX / 2},
                       .first = MS_STR_NONE};
    struct mstx_trace_text text;
    if (r.arena == NULL)
        return ms_no_memory(err);
    r.lanes = (struct mstx_trace_lanes){.w = all->w, .arena = r.arena};
    r.tracks.arena = r.arena;
    enum ms_rc rc = mstx__trace_text_open(&text, path, err);
    if (rc == MS_OK) {
        rc = read_packets(&r, &text, err);
        if (rc == MS_OK)
            rc = write_all(&r, path, err);
        else
            ms_err_wrap(err, "%s", path);
        all->bytes_read += mstx__trace_text_taken(&text);
        mstx__trace_text_close(&text);
    }
    all->files += rc == MS_OK;
    mstx__perfetto_tracks_free(&r.tracks);
    mstx__trace_lanes_free(&r.lanes);
    ms_buf_free(&r.args);
    ms_arena_free(r.arena);
    return rc;
}
