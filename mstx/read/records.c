/* SPDX-License-Identifier: MIT
 *
 * records: turns the records of a process into events.
 */
#include "mstx/read/records.h"
#include "mstx/read/device_lanes.h"
#include "mstx/read/lanes.h"
#include "mstx/read/memory_tracks.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- lanes ------------------------------------------------------------------ */

static struct mstx_thread *thread_of(struct mstx_lanes *l, uint32_t tid)
{
    for (size_t i = l->thread.n; i-- > 0;) {
        if (l->thread.p[i].tid == tid)
            return &l->thread.p[i];
    }
    struct mstx_thread *t = ms_vec_push(&l->thread);
    if (t == NULL) {
        l->no_memory = true;
        return NULL;
    }
    if (l->thread.n > l->threads_made) {
        *t = (struct mstx_thread){0};
        l->threads_made = l->thread.n;
    }
    t->tid = tid;
    t->lane_of.n = 0;
    memset(t->used, 0, sizeof t->used);
    return t;
}

/* Returns entry `at` of a growing table of 1 + lane index; NULL when out of memory. */
static uint32_t *lane_slot(struct mstx_lanes *l, mstx_text_ids *v, size_t at)
{
    if (at >= v->n) {
        size_t want = at + at / 2 + 16;
        if (!ms_vec_reserve(v, want)) {
            l->no_memory = true;
            return NULL;
        }
        memset(v->p + v->n, 0, (want - v->n) * sizeof *v->p);
        v->n = want;
    }
    return &v->p[at];
}

static uint32_t thread_name(struct mstx_lanes *l, uint32_t tid)
{
    const struct mstx_keyed *k = mstx__texts_find(l->texts, MSTX_THREAD, 0, tid);
    return k != NULL ? k->name : 0;
}

/* Finds or adds the lane of a thread and domain; returns false when out of memory. */
static bool find_lane(struct mstx_lanes *l, struct mstx_thread *t, uint16_t domain, uint32_t *lane)
{
    uint32_t *slot = lane_slot(l, &t->lane_of, domain);
    if (slot == NULL)
        return false;
    if (*slot == 0) {
        uint32_t index;
        if (mstx__lane_add(l, MSTX_TRACK_THREAD, t->tid, mstx__domain_id(l->texts, domain),
                           thread_name(l, t->tid), &index) == NULL)
            return false;
        *slot = index + 1;
    }
    *lane = *slot - 1;
    return true;
}

static bool find_counter(struct mstx_lanes *l, uint32_t name, uint16_t domain, uint32_t *lane)
{
    uint32_t *slot = lane_slot(l, &l->counter_of, name < l->texts->id.n ? name : 0);
    if (slot == NULL)
        return false;
    if (*slot == 0) {
        const struct mstx_keyed *unit = mstx__texts_find(l->texts, MSTX_COUNTER, domain, name);
        uint32_t index;
        struct mstx_lane *made =
            mstx__lane_add(l, MSTX_TRACK_COUNTER, 0, mstx__domain_id(l->texts, domain),
                           mstx__text_id(l->texts, name), &index);
        if (made == NULL)
            return false;
        made->unit = unit != NULL ? unit->name : 0;
        *slot = index + 1;
    }
    *lane = *slot - 1;
    return true;
}

/* ---- one record ------------------------------------------------------------- */

/* State of the loop over the records of a segment. */
struct place {
    struct mstx_lanes *l;
    struct mstx_thread *thread;
    bool is_ring_0; /* the records are of the process */
    const struct mstx_rec *r;
    size_t more; /* continuations behind r */
    uint16_t domain;
    uint32_t lane; /* of thread and domain; valid when has_lane */
    bool has_lane;
};

static bool set_lane(struct place *at)
{
    if (at->has_lane && at->domain == at->r->domain)
        return true;
    at->domain = at->r->domain;
    at->has_lane = at->thread != NULL && find_lane(at->l, at->thread, at->domain, &at->lane);
    return at->has_lane;
}

/* Finds the records of a communication call among n continuations; type stays 0 where there is
 * none. */
static void find_call(const struct mstx_rec *cont, size_t n, struct mstx_rec_comm *rec,
                      struct mstx_rec_comm_part *part)
{
    rec->type = part->type = 0;
    for (size_t i = 0; i < n; i++) {
        if (cont[i].type == MSTX_REC_COMM)
            memcpy(rec, &cont[i], sizeof *rec);
        else if (cont[i].type == MSTX_REC_COMM_PART)
            memcpy(part, &cont[i], sizeof *part);
    }
    if (rec->type != 0 && rec->tag_code != 0 && part->type == 0)
        *part = mstx_comm_implied(rec);
}

/* Keeps the record of a communication call; returns 1 + its index, 0 when the event is no such
 * call. */
static uint32_t keep_comm(struct mstx_lanes *l, const struct mstx_rec_comm *rec)
{
    struct mstx_rec_comm *kept = rec->type != 0 ? ms_vec_push(&l->comm) : NULL;
    if (kept == NULL) {
        l->no_memory |= rec->type != 0;
        return 0;
    }
    *kept = *rec;
    return (uint32_t)l->comm.n;
}

/* Keeps the additional fields of a begin or an end; returns 1 + their index, 0 when there are
 * none. */
static uint32_t keep_part(struct mstx_lanes *l, const struct mstx_rec_comm_part *part, bool is_end)
{
    struct mstx_comm_parts *kept = part->type != 0 ? ms_vec_push(&l->parts) : NULL;
    if (kept == NULL) {
        l->no_memory |= part->type != 0;
        return 0;
    }
    *kept = (struct mstx_comm_parts){0};
    *(is_end ? &kept->end : &kept->begin) = *part;
    return (uint32_t)l->parts.n;
}

/* Returns 1 + the index of the event's extra, 0 for most events, which have no stream, attributes
 * or payload. */
static uint32_t extra_of(struct place *at)
{
    const struct mstx_rec *r = at->r;
    bool has_stream = r->flags & MSTX_F_STREAM && r->type != MSTX_REC_END;
    if (!has_stream && at->more == 0)
        return 0;
    uint32_t args = 0, extra = 0, comm = 0, parts = 0;
    if (at->more != 0) {
        struct mstx_rec_comm rec;
        struct mstx_rec_comm_part part;
        if (!at->l->no_args)
            args = mstx__args(at->l->texts, at->l->cache, r + 1, at->more, r->domain);
        find_call(r + 1, at->more, &rec, &part);
        comm = keep_comm(at->l, &rec);
        if (comm != 0 || r->type == MSTX_REC_END)
            parts = keep_part(at->l, &part, comm == 0);
    }
    if (!has_stream && args == 0 && comm == 0 && parts == 0)
        return 0;
    struct mstx_extra *x = mstx__extra(at->l, &extra);
    if (x != NULL)
        *x = (struct mstx_extra){
            .arg = has_stream ? r->arg : 0, .args = args, .comm = comm, .parts = parts};
    return extra;
}

/* Adds an event to its lane.  Always inlined: as a call it cost 19 of the 353 instructions of a
 * begin (callgrind, calls of a communication library). */
static inline __attribute__((always_inline)) struct mstx_raw *add_event(struct place *at,
                                                                        uint8_t kind)
{
    if (!set_lane(at))
        return NULL;
    const struct mstx_rec *r = at->r;
    struct mstx_raw *raw = mstx__lane_event(at->l, at->lane, r->ticks);
    if (raw == NULL)
        return NULL;
    raw->name = mstx__text_id(at->l->texts, r->name);
    raw->kind = kind;
    raw->id = kind == MSTX_EV_PUSHPOP ? 0 : r->id;
    raw->flags = r->flags & MSTX_F_STREAM ? MSTX_EVF_STREAM : 0;
    raw->extra = extra_of(at);
    return raw;
}

static struct mstx_open *slot_of(struct mstx_lanes *l, uint64_t begin, uint64_t id)
{
    uint64_t mix = (begin ^ id << 48) * 0x9E3779B97F4A7C15u;
    return &l->table[mix >> 52];
}
static_assert(MSTX_OPEN_SLOTS == 1 << 12, "the hash gives 12 bits");

/* Moves the begin in a table slot to the open list.  begin == 0 marks a free slot; no valid record
 * has ticks of 0. */
static void push_out(struct mstx_lanes *l, struct mstx_open *slot)
{
    if (slot->begin == 0)
        return;
    struct mstx_open *kept = ms_vec_push(&l->open);
    if (kept == NULL)
        l->no_memory = true;
    else
        *kept = *slot;
    slot->begin = 0;
}

static void take_begin(struct place *at, uint8_t kind)
{
    if (add_event(at, kind) == NULL)
        return;
    struct mstx_open *slot = slot_of(at->l, at->r->ticks, at->r->id);
    push_out(at->l, slot);
    *slot = (struct mstx_open){.begin = at->r->ticks,
                               .id = at->r->id,
                               .lane = at->lane,
                               .at = (uint32_t)at->l->lane.p[at->lane].ev.n - 1};
}

/* Adds a range whose begin and end are in one record; arg 0 means that the end is in another record
 * or missing. */
static void take_call(struct place *at)
{
    if (at->r->arg == 0) {
        take_begin(at, MSTX_EV_RANGE);
        return;
    }
    struct mstx_raw *raw = add_event(at, MSTX_EV_RANGE);
    if (raw != NULL)
        raw->end = at->r->arg;
}

/* Adds the arguments and communication fields of an end to the event of its begin. */
static void add_end_args(struct mstx_lanes *l, struct mstx_raw *raw, uint32_t extra)
{
    if (extra == 0)
        return;
    if (raw->extra == 0) {
        raw->extra = extra;
        return;
    }
    struct mstx_extra *begun = &l->extra.p[raw->extra - 1];
    const struct mstx_extra *ended = &l->extra.p[extra - 1];
    const uint32_t polls = ended->parts != 0 ? l->parts.p[ended->parts - 1].end.polls : 0;
    if (begun->args == 0)
        begun->args = ended->args;
    else if (polls > 1 && begun->comm != 0)
        begun->args = mstx__args_asked(l->texts, &l->comm.p[begun->comm - 1], polls);
    if (begun->comm != 0 && begun->parts != 0 && ended->parts != 0)
        l->parts.p[begun->parts - 1].end = l->parts.p[ended->parts - 1].end;
    else if (begun->comm != 0 && ended->parts != 0)
        begun->parts = ended->parts;
}

static void keep_end(struct place *at, uint8_t kind)
{
    struct mstx_loose_end *e = ms_vec_push(&at->l->ends);
    if (e == NULL) {
        at->l->no_memory = true;
        return;
    }
    *e = (struct mstx_loose_end){.begin = at->r->arg,
                                 .id = at->r->id,
                                 .end = at->r->ticks,
                                 .name = at->r->name,
                                 .tid = at->thread != NULL ? at->thread->tid : 0,
                                 .extra = extra_of(at),
                                 .domain = at->r->domain,
                                 .kind = kind};
}

static void take_end(struct place *at, uint8_t kind)
{
    const struct mstx_rec *r = at->r;
    struct mstx_open *slot = slot_of(at->l, r->arg, r->id);
    if (r->flags & MSTX_F_OTHER_THREAD || slot->begin != r->arg || slot->id != r->id ||
        r->arg == 0) {
        keep_end(at, kind);
        return;
    }
    struct mstx_raw *raw = &at->l->lane.p[slot->lane].ev.p[slot->at];
    raw->end = r->ticks;
    if (at->more != 0)
        add_end_args(at->l, raw, extra_of(at));
    slot->begin = 0;
}

static void take_mark(struct place *at)
{
    struct mstx_raw *raw = add_event(at, MSTX_EV_MARK);
    if (raw != NULL)
        raw->end = raw->begin;
}

/* Adds a value of a counter; returns NULL when out of memory. */
static struct mstx_raw *add_value(struct place *at, uint32_t lane, uint64_t value)
{
    uint32_t extra;
    struct mstx_raw *raw = mstx__lane_event(at->l, lane, at->r->ticks);
    struct mstx_extra *x = mstx__extra(at->l, &extra);
    if (raw == NULL || x == NULL)
        return NULL;
    x->arg = value;
    raw->extra = extra;
    raw->end = raw->begin;
    raw->name = at->l->lane.p[lane].name;
    raw->kind = MSTX_EV_COUNTER;
    return raw;
}

static void take_counter(struct place *at)
{
    uint32_t lane;
    if (!find_counter(at->l, at->r->name, at->r->domain, &lane))
        return;
    struct mstx_raw *raw = add_value(at, lane, at->r->arg);
    if (raw != NULL)
        raw->flags = at->r->flags & MSTX_F_REAL ? MSTX_EVF_FLOAT : 0;
}

static const struct {
    const char *name, *unit;
} uses[MSTX_USE_COUNTERS] = {[MSTX_USE_CPU] = {MSTX_USE_CPU_TEXT, "ns"},
                             [MSTX_USE_DELAY] = {MSTX_USE_DELAY_TEXT, "ns"},
                             [MSTX_USE_WRITTEN] = {MSTX_USE_WRITTEN_TEXT, "blocks"}};

/* Adds a lane of a counter of the use of the host, and keeps 1 + its index in `kept`. */
static bool add_use_lane(struct place *at, uint32_t tid, const char *name, const char *unit,
                         uint32_t *kept)
{
    const struct mstx_text_sink *to = at->l->texts->to;
    uint32_t lane;
    struct mstx_lane *made = *kept != 0
                                 ? NULL
                                 : mstx__lane_add(at->l, MSTX_TRACK_COUNTER, tid,
                                                  to->intern(to->ctx, MS_STR(MSTX_USE_DOMAIN)),
                                                  to->intern(to->ctx, ms_str_of(name)), &lane);
    if (made != NULL) {
        made->unit = to->intern(to->ctx, ms_str_of(unit));
        *kept = lane + 1;
    }
    return *kept != 0;
}

static void take_use_of_thread(struct place *at)
{
    const uint64_t value[MSTX_USE_COUNTERS] = {[MSTX_USE_CPU] = at->r->id,
                                               [MSTX_USE_DELAY] = at->r->arg,
                                               [MSTX_USE_WRITTEN] = at->r->name};
    for (int k = 0; k < MSTX_USE_COUNTERS; k++) {
        uint32_t *kept = &at->thread->used[k];
        if (value[k] != MSTX_USE_UNKNOWN &&
            add_use_lane(at, at->thread->tid, uses[k].name, uses[k].unit, kept))
            add_value(at, *kept - 1, value[k]);
    }
}

static void take_use(struct place *at)
{
    if (!at->is_ring_0 && at->thread != NULL)
        take_use_of_thread(at);
    else if (at->is_ring_0 && add_use_lane(at, 0, MSTX_USE_THROTTLED_TEXT, "ns", &at->l->throttled))
        add_value(at, at->l->throttled - 1, at->r->arg);
}

/* A connection is a mark in a lane of its own, which belongs to no thread. */
static void take_socket(struct place *at)
{
    const struct mstx_text_sink *to = at->l->texts->to;
    uint32_t lane = at->l->sockets - 1;
    if (at->l->sockets == 0 &&
        mstx__lane_add(at->l, MSTX_TRACK_THREAD, 0, to->intern(to->ctx, MS_STR(MSTX_SOCKET_DOMAIN)),
                       to->intern(to->ctx, MS_STR("TCP")), &lane) == NULL)
        return;
    at->l->sockets = lane + 1;
    struct mstx_raw *raw = mstx__lane_event(at->l, lane, at->r->ticks);
    if (raw == NULL)
        return;
    raw->end = raw->begin;
    raw->name = mstx__text_id(at->l->texts, at->r->name);
    raw->kind = MSTX_EV_MARK;
}

static void take_memory(struct place *at)
{
    const struct mstx_rec *r = at->r;
    bool is_name = r->type == MSTX_REC_BLOCK_NAME;
    struct mstx_mem_event *m = ms_vec_push(&at->l->memory);
    if (m == NULL) {
        at->l->no_memory = true;
        return;
    }
    *m = (struct mstx_mem_event){.ticks = r->ticks,
                                 .id = r->id,
                                 .heap = r->type == MSTX_REC_REGION ? r->arg : 0,
                                 .device = is_name ? 0 : r->name,
                                 .name = is_name ? mstx__text_id(at->l->texts, r->name) : 0,
                                 .stays = r->type == MSTX_REC_HEAP_END && r->arg == 1,
                                 .domain = mstx__domain_id(at->l->texts, r->domain),
                                 .tid = at->thread != NULL ? at->thread->tid : 0,
                                 .type = r->type};
    if (at->more != 0 && r[1].type == MSTX_REC_MEMORY) {
        struct mstx_rec_mem mem;
        memcpy(&mem, r + 1, sizeof mem);
        m->address = mem.address;
        m->size = mem.size;
        m->by_pointer = mem.by_pointer == 1;
    }
}

static void take_device_time(struct place *at)
{
    const struct mstx_rec *r = at->r;
    if (r->flags & MSTX_F_NO_DEVICE)
        return; /* counted by count_lost */
    struct mstx_device_time *d = ms_vec_push(&at->l->device);
    if (d == NULL)
        at->l->no_memory = true;
    else
        *d = (struct mstx_device_time){
            .id = r->id, .begin = r->ticks, .ns = r->arg, .is_end = r->name == 1};
}

static void take_stream(struct place *at)
{
    const struct mstx_rec *r = at->r;
    struct mstx_stream *s = ms_vec_push(&at->l->stream);
    if (s == NULL)
        at->l->no_memory = true;
    else
        *s = (struct mstx_stream){.key = r->id,
                                  .name = mstx__text_id(at->l->texts, r->name),
                                  .device = (uint32_t)r->arg,
                                  .number = (uint32_t)(r->arg >> 32)};
}

static void count_lost(struct mstx_lanes *l, const struct mstx_rec *r)
{
    if (r->type >= MSTX_REC_MARK && r->type <= MSTX_REC_DEVICE)
        l->no_device += (r->flags & MSTX_F_NO_DEVICE) != 0;
}

static void take_record(struct place *at)
{
    const struct mstx_rec *r = at->r;
    count_lost(at->l, r);
    switch (r->type) {
    case MSTX_REC_MARK:
        take_mark(at);
        break;
    case MSTX_REC_BEGIN:
        take_begin(at, MSTX_EV_RANGE);
        break;
    case MSTX_REC_CALL:
        take_call(at);
        break;
    case MSTX_REC_PUSH:
        take_begin(at, MSTX_EV_PUSHPOP);
        break;
    case MSTX_REC_END:
        take_end(at, MSTX_EV_RANGE);
        break;
    case MSTX_REC_POP:
        take_end(at, MSTX_EV_PUSHPOP);
        break;
    case MSTX_REC_COUNTER:
        take_counter(at);
        break;
    case MSTX_REC_USE:
        take_use(at);
        break;
    case MSTX_REC_SOCKET:
        take_socket(at);
        break;
    case MSTX_REC_HEAP:
    case MSTX_REC_HEAP_END:
    case MSTX_REC_REGION:
    case MSTX_REC_REGION_END:
    case MSTX_REC_BLOCK_NAME:
        take_memory(at);
        break;
    case MSTX_REC_DEVICE:
        take_device_time(at);
        break;
    case MSTX_REC_STREAM:
        take_stream(at);
        break;
    case MSTX_REC_THREAD:
        at->thread = thread_of(at->l, (uint32_t)r->id);
        at->has_lane = false;
        break;
    case MSTX_REC_DROP:
    case MSTX_REC_CALIB:
    case MSTX_REC_SYNC:
    case MSTX_REC_STATE:
    case MSTX_REC_PERMIT:
        break;
    default:
        at->l->bad++;
    }
}

/* ---- a segment -------------------------------------------------------------- */

static size_t continuation_count(const struct mstx_rec *r, const struct mstx_rec *end)
{
    const struct mstx_rec *at = r;
    while (at->flags & MSTX_F_MORE && at + 1 < end && mstx_rec_is_cont(at + 1))
        at++;
    return (size_t)(at - r);
}

static uint64_t newest_of(uint64_t newest, const struct mstx_rec *r)
{
    const uint64_t ticks = r->type == MSTX_REC_CALL && r->arg > r->ticks ? r->arg : r->ticks;
    return ticks > newest ? ticks : newest;
}

static void read_segment(struct mstx_lanes *l, const struct mstx_segment *s, bool is_first)
{
    for (size_t i = 0; is_first && i < MSTX_OPEN_SLOTS; i++)
        push_out(l, &l->table[i]);
    struct place at = {.l = l, .thread = thread_of(l, s->head.tid), .is_ring_0 = s->head.ring == 0};
    const struct mstx_rec *end = s->rec + s->n;
    for (const struct mstx_rec *r = s->rec; r < end && !l->no_memory; r += 1 + at.more) {
        at.r = r;
        at.more = r->flags & MSTX_F_MORE ? continuation_count(r, end) : 0;
        if (!mstx_rec_is_cont(r))
            l->newest = newest_of(l->newest, r);
        take_record(&at);
    }
    l->records += s->n;
    l->dropped += s->head.dropped;
}

/* ---- the end ---------------------------------------------------------------- */

static int compare_ranges(uint64_t id_a, uint64_t begin_a, uint64_t id_b, uint64_t begin_b)
{
    return MS_ORDER(id_a, id_b, MS_ORDER(begin_a, begin_b, 0));
}

static int open_order(const void *pa, const void *pb)
{
    const struct mstx_open *a = pa, *b = pb;
    return compare_ranges(a->id, a->begin, b->id, b->begin);
}

static int end_order(const void *pa, const void *pb)
{
    const struct mstx_loose_end *a = pa, *b = pb;
    return compare_ranges(a->id, a->begin, b->id, b->begin);
}

static void join_halves(struct mstx_lanes *l, const struct mstx_open *o,
                        const struct mstx_loose_end *e)
{
    struct mstx_lane *lane = &l->lane.p[o->lane];
    struct mstx_raw *raw = &lane->ev.p[o->at];
    raw->end = e->end;
    add_end_args(l, raw, e->extra);
    if (e->tid == lane->tid)
        return;
    raw->flags |= MSTX_EVF_OTHER_THREAD;
    if (raw->extra == 0 && mstx__extra(l, &raw->extra) == NULL)
        return;
    l->extra.p[raw->extra - 1].end_tid = e->tid;
}

static void leave_unfinished(struct mstx_lanes *l, const struct mstx_open *o)
{
    struct mstx_raw *raw = &l->lane.p[o->lane].ev.p[o->at];
    raw->end = l->newest;
    raw->flags |= MSTX_EVF_UNFINISHED;
    l->unfinished++;
}

static void add_start_lost(struct mstx_lanes *l, const struct mstx_loose_end *e)
{
    struct mstx_thread *t = thread_of(l, e->tid);
    uint32_t lane;
    if (t == NULL || !find_lane(l, t, e->domain, &lane))
        return;
    struct mstx_raw *raw = mstx__lane_event(l, lane, e->begin);
    if (raw == NULL)
        return;
    raw->end = e->end;
    raw->id = e->kind == MSTX_EV_PUSHPOP ? 0 : e->id;
    raw->name = mstx__text_id(l->texts, e->name);
    raw->extra = e->extra;
    raw->kind = e->kind;
    raw->flags = MSTX_EVF_START_LOST;
}

static void merge_halves(struct mstx_lanes *l)
{
    ms_vec_sort(&l->open, open_order);
    ms_vec_sort(&l->ends, end_order);
    size_t i = 0, k = 0;
    while (i < l->open.n || k < l->ends.n) {
        const struct mstx_open *o = i < l->open.n ? &l->open.p[i] : NULL;
        const struct mstx_loose_end *e = k < l->ends.n ? &l->ends.p[k] : NULL;
        int order = o == NULL   ? 1
                    : e == NULL ? -1
                                : compare_ranges(o->id, o->begin, e->id, e->begin);
        if (order == 0)
            join_halves(l, o, e);
        else if (order < 0)
            leave_unfinished(l, o);
        else
            add_start_lost(l, e);
        i += order <= 0;
        k += order >= 0;
    }
}

static int raw_order(const void *pa, const void *pb)
{
    const struct mstx_raw *a = pa, *b = pb;
    return MS_ORDER(a->begin, b->begin, MS_ORDER(b->end, a->end, 0));
}

/* Joins unmatched begins and ends after the last segment, adds memory and device lanes, and sorts
 * lanes that are out of order. */
static void finish_lanes(struct mstx_lanes *l)
{
    for (size_t i = 0; i < MSTX_OPEN_SLOTS; i++)
        push_out(l, &l->table[i]);
    merge_halves(l);
    mstx__memory_lanes(l);
    mstx__device_lanes_add(l);
    for (size_t i = 0; i < l->lane.n; i++) {
        struct mstx_lane *lane = &l->lane.p[i];
        if (!lane->is_sorted)
            qsort(lane->ev.p, lane->ev.n, sizeof *lane->ev.p, raw_order);
        lane->is_sorted = true;
    }
}

void mstx__lanes_read(struct mstx_lanes *l, const struct mstx_proc *p, struct mstx_texts *t)
{
    mstx__lanes_reset(l, t);
    for (size_t i = 0; i < p->seg.n; i++) {
        const bool is_first = i == 0 || p->seg.p[i - 1].head.ring != p->seg.p[i].head.ring;
        read_segment(l, &p->seg.p[i], is_first);
    }
    finish_lanes(l);
}
