/* SPDX-License-Identifier: MIT
 *
 * lane: see the header.
 */
#include "mstx/differ/lane.h"

#include "mstx/format/comm_marked.h"
#include "mstx/format/device_work.h"
#include "mstx/rundb/run_schema.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <string.h>

/* Spans that are nested deeper take the place of the span around them. */
enum { DEPTH_MAX = 64 };

struct known_name {
    uint32_t name; /* number among the names of places */
    enum mstx_place_kind kind;
    bool waits, is_known;
};

struct reading {
    struct mstx_lane_set *to;
    struct mstx_tl *tl;
    const struct mstx_step *step;
    size_t steps;
    struct mstx_places *places;
    const struct mstx_track *track;
    struct mstx_lane *lane;
    uint32_t stream;
    MS_VEC(struct known_name) known; /* by string */
    struct mstx_work_memory works;
};

/* ---- names ------------------------------------------------------------------------------- */

static bool is_comm_name(struct ms_str name)
{
    return ms_str_starts(name, MS_STR("MPI_")) || ms_str_starts(name, MS_STR("nccl")) ||
           ms_str_starts(name, MS_STR("gloo:")) || ms_str_starts(name, MS_STR("hccl")) ||
           ms_str_has(name, "c10d::") || mstx__comm_op_find(name) != MSTX_COMM_NONE;
}

static enum mstx_place_kind kind_of_range(struct ms_str name)
{
    return is_comm_name(name)                                                ? MSTX_PLACE_COMM
           : ms_str_is(name, "dataloader") || ms_str_has(name, "DataLoader") ? MSTX_PLACE_LOAD
                                                                             : MSTX_PLACE_RANGE;
}

/* Returns what is known of a string of the run; NULL when out of memory. */
static const struct known_name *name_of(struct reading *r, uint32_t string)
{
    const size_t had = r->known.n;
    if (string >= had) {
        if (!ms_vec_reserve(&r->known, (size_t)string + 1))
            return NULL;
        r->known.n = (size_t)string + 1;
        memset(r->known.p + had, 0, (r->known.n - had) * sizeof *r->known.p);
    }
    struct known_name *k = &r->known.p[string];
    if (!k->is_known) {
        const struct ms_str text = mstx_tl_text(r->tl, string);
        *k = (struct known_name){.name = mstx__places_name(r->places, text),
                                 .kind = kind_of_range(text),
                                 .waits = ms_str_has(text, "ynchronize"),
                                 .is_known = true};
    }
    return k->name != MSTX_NO_PLACE ? k : NULL;
}

/* ---- threads ----------------------------------------------------------------------------- */

static enum ms_rc take_span(void *ctx, const struct mstx_event *e, struct ms_err *err)
{
    struct reading *r = ctx;
    if (e->kind != MSTX_EV_RANGE && e->kind != MSTX_EV_PUSHPOP)
        return MS_OK;
    struct mstx_lane_span *slot = ms_vec_push(&r->lane->span);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct mstx_lane_span){.start = e->start_ns,
                                    .end = e->start_ns + e->dur_ns,
                                    .length = e->dur_ns,
                                    .link = e->size,
                                    .name = e->name};
    return MS_OK;
}

static enum ms_rc take_delay(void *ctx, const struct mstx_event *e, struct ms_err *err)
{
    struct reading *r = ctx;
    struct mstx_delay *slot = ms_vec_push(&r->lane->delay);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct mstx_delay){e->start_ns, (int64_t)mstx_event_value(e)};
    return MS_OK;
}

/* Finds the lane of the track's thread, or adds it. */
static bool find_lane(struct reading *r)
{
    for (size_t i = 0; i < r->to->lane.n; i++) {
        r->lane = &r->to->lane.p[i];
        if (r->lane->tid == r->track->tid)
            return true;
    }
    r->lane = ms_vec_push(&r->to->lane);
    if (r->lane != NULL)
        *r->lane = (struct mstx_lane){.tid = r->track->tid};
    return r->lane != NULL;
}

static enum ms_rc read_thread(struct reading *r, size_t track, mstx_event_fn take,
                              struct ms_err *err)
{
    return find_lane(r) ? mstx_tl_walk(r->tl, track, NULL, take, r, err) : ms_no_memory(err);
}

/* Returns the total at a time, on the line between two samples. */
static int64_t delay_at(const struct mstx_lane *l, int64_t t)
{
    size_t low = 0, high = l->delay.n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (l->delay.p[mid].t <= t)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == 0 || low == l->delay.n)
        return l->delay.p[low == 0 ? 0 : low - 1].total;
    const struct mstx_delay *a = &l->delay.p[low - 1], *b = &l->delay.p[low];
    const double share = (double)(t - a->t) / (double)(b->t - a->t);
    return a->total + (int64_t)(share * (double)(b->total - a->total));
}

int64_t mstx__lane_delay(const struct mstx_lane *l, int64_t from, int64_t to)
{
    if (l->delay.n == 0)
        return 0;
    const int64_t delay = delay_at(l, to) - delay_at(l, from);
    return delay < 0 ? 0 : delay > to - from ? to - from : delay;
}

static int by_start(const void *pa, const void *pb)
{
    const struct mstx_lane_span *a = pa, *b = pb;
    return MS_ORDER(a->start, b->start, MS_ORDER(b->end, a->end, 0));
}

/* Tells whether the span is a step, or holds whole steps: it is no place within a step. */
static bool holds_step(const struct reading *r, const struct mstx_lane_span *s)
{
    size_t low = 0, high = r->steps;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (r->step[mid].start_ns < s->start)
            low = mid + 1;
        else
            high = mid;
    }
    return low < r->steps && r->step[low].end_ns <= s->end;
}

struct nesting {
    uint32_t open[DEPTH_MAX + 1]; /* spans, outermost first */
    uint32_t depth;
};

static bool add_bit(struct mstx_lane *l, int64_t start, uint32_t span)
{
    if (l->bit.n != 0 && l->bit.p[l->bit.n - 1].start >= start) {
        l->bit.p[l->bit.n - 1].span = span;
        return true;
    }
    struct mstx_bit *slot = ms_vec_push(&l->bit);
    if (slot != NULL)
        *slot = (struct mstx_bit){start, span};
    return slot != NULL;
}

static uint32_t innermost(const struct nesting *n)
{
    return n->depth != 0 ? n->open[n->depth - 1] : MSTX_NO_SPAN;
}

/* Closes the spans that have ended by t. */
static bool close_spans(struct nesting *n, struct mstx_lane *l, int64_t t)
{
    bool ok = true;
    while (n->depth != 0 && l->span.p[innermost(n)].end <= t && ok) {
        const int64_t end = l->span.p[innermost(n)].end;
        n->depth--;
        ok = add_bit(l, end, innermost(n));
    }
    return ok;
}

static bool set_place(struct reading *r, const struct nesting *n, struct mstx_lane_span *s)
{
    struct mstx_lane_span *around = n->depth != 0 ? &r->lane->span.p[innermost(n)] : NULL;
    const struct known_name *known = name_of(r, s->name);
    const uint32_t parent = around != NULL ? around->place : MSTX_ROOT;
    if (known == NULL)
        return false;
    s->place = parent;
    s->name = known->name;
    s->waits = known->waits;
    if (n->depth >= DEPTH_MAX || holds_step(r, s))
        return true;
    if (around != NULL)
        around->holds = true;
    s->place = mstx__places_child(r->places, parent, s->name, known->kind);
    return s->place != MSTX_NO_PLACE;
}

/* Finds out how the spans of a thread are nested. */
static bool nest(struct reading *r, struct mstx_lane *l)
{
    struct nesting n = {.depth = 0};
    bool ok = true;
    r->lane = l;
    ms_vec_sort(&l->span, by_start);
    for (uint32_t i = 0; i < l->span.n && ok; i++) {
        struct mstx_lane_span *s = &l->span.p[i];
        ok = close_spans(&n, l, s->start);
        if (n.depth != 0 && s->end > l->span.p[innermost(&n)].end)
            s->end = l->span.p[innermost(&n)].end;
        ok = ok && set_place(r, &n, s);
        if (s->end <= s->start || n.depth > DEPTH_MAX - 1)
            continue;
        n.open[n.depth++] = i;
        ok = ok && add_bit(l, s->start, i);
    }
    return ok && close_spans(&n, l, INT64_MAX);
}

size_t mstx__lane_bit_at(const struct mstx_lane *l, int64_t t)
{
    size_t low = 0, high = l->bit.n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (l->bit.p[mid].start <= t)
            low = mid + 1;
        else
            high = mid;
    }
    return low - 1; /* SIZE_MAX before the first */
}

static bool has_steps(const struct reading *r, const struct mstx_lane *l)
{
    for (size_t k = 0; k < l->span.n && r->steps != 0; k++) {
        if (l->span.p[k].name == r->step[0].name && l->span.p[k].start == r->step[0].start_ns)
            return true;
    }
    return false;
}

/* The main lane has the events that are the steps, unless it has hardly any others; else the most
 * spans. */
static void find_main(struct reading *r)
{
    size_t most = 0;
    for (size_t i = 0; i < r->to->lane.n; i++) {
        const struct mstx_lane *l = &r->to->lane.p[i];
        if (l->span.n > r->steps + r->steps / 2 && has_steps(r, l)) {
            r->to->main = i;
            return;
        }
        if (l->span.n > most && !has_steps(r, l)) {
            most = l->span.n;
            r->to->main = i;
        }
    }
}

/* ---- streams ----------------------------------------------------------------------------- */

static enum ms_rc take_executed(void *ctx, const struct mstx_event *e, struct ms_err *err)
{
    struct reading *r = ctx;
    if (e->kind != MSTX_EV_RANGE && e->kind != MSTX_EV_PUSHPOP)
        return MS_OK;
    struct mstx_device_span *slot = ms_vec_push(&r->to->device);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct mstx_device_span){.start = e->start_ns,
                                      .end = e->start_ns + e->dur_ns,
                                      .link = e->size,
                                      .stream = r->stream,
                                      .before = MSTX_NO_SPAN,
                                      .name = e->name,
                                      .lane = -1};
    return MS_OK;
}

static int by_end(const void *pa, const void *pb)
{
    const struct mstx_device_span *a = pa, *b = pb;
    return MS_ORDER(a->end, b->end,
                    MS_ORDER(a->start, b->start, MS_ORDER(a->stream, b->stream, 0)));
}

uint32_t mstx__device_ended(const struct mstx_lane_set *l, int64_t t)
{
    size_t low = 0, high = l->device.n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (l->device.p[mid].end <= t)
            low = mid + 1;
        else
            high = mid;
    }
    return low != 0 ? (uint32_t)(low - 1) : MSTX_NO_SPAN;
}

struct call {
    uint64_t link;
    int32_t lane;
    uint32_t span;
};
typedef MS_VEC(struct call) calls;

static int by_link(const void *pa, const void *pb)
{
    const struct call *a = pa, *b = pb;
    return MS_ORDER(a->link, b->link, MS_ORDER(a->lane, b->lane, MS_ORDER(a->span, b->span, 0)));
}

static bool list_calls(const struct mstx_lane_set *l, calls *c)
{
    for (size_t i = 0; i < l->lane.n; i++) {
        for (uint32_t k = 0; k < l->lane.p[i].span.n; k++) {
            if (l->lane.p[i].span.p[k].link == 0)
                continue;
            struct call *slot = ms_vec_push(c);
            if (slot == NULL)
                return false;
            *slot = (struct call){l->lane.p[i].span.p[k].link, (int32_t)i, k};
        }
    }
    ms_vec_sort(c, by_link);
    return true;
}

static const struct call *call_of(const calls *c, uint64_t link)
{
    size_t low = 0, high = c->n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (c->p[mid].link < link)
            low = mid + 1;
        else
            high = mid;
    }
    return link != 0 && low < c->n && c->p[low].link == link ? &c->p[low] : NULL;
}

/* Gives a device's span the place of its launch, and within it one of its own. */
static bool place_executed(struct reading *r, struct mstx_device_span *d, const calls *c)
{
    static const enum mstx_place_kind kind_of[MSTX_WORKS] = {[MSTX_WORK_COMPUTE] =
                                                                 MSTX_PLACE_KERNEL,
                                                             [MSTX_WORK_COMM] = MSTX_PLACE_COMM,
                                                             [MSTX_WORK_MEMORY] = MSTX_PLACE_COPY};
    const struct call *call = call_of(c, d->link);
    uint32_t parent = MSTX_ROOT;
    if (call != NULL) {
        d->lane = call->lane;
        d->call = call->span;
        parent = r->to->lane.p[call->lane].span.p[call->span].place;
    }
    enum mstx_work work;
    const uint32_t string = d->name;
    const struct known_name *known = name_of(r, string);
    if (known == NULL || !mstx__work_recall(&r->works, string, mstx_tl_text(r->tl, string), &work))
        return false;
    d->name = known->name;
    const enum mstx_place_kind kind =
        known->kind == MSTX_PLACE_COMM ? MSTX_PLACE_COMM : kind_of[work];
    d->place = mstx__places_child(r->places, parent, d->name, kind);
    return d->place != MSTX_NO_PLACE;
}

static bool join_streams(struct reading *r)
{
    struct mstx_lane_set *l = r->to;
    uint32_t *last = ms_calloc(r->stream + 1, sizeof *last); /* index plus 1 */
    calls c = {0};
    bool ok = last != NULL && list_calls(l, &c);
    ms_vec_sort(&l->device, by_end);
    for (uint32_t i = 0; i < l->device.n && ok; i++) {
        struct mstx_device_span *d = &l->device.p[i];
        d->before = last[d->stream] != 0 ? last[d->stream] - 1 : MSTX_NO_SPAN;
        last[d->stream] = i + 1;
        ok = place_executed(r, d, &c);
    }
    for (uint32_t i = 0; i < l->device.n && !l->has_launches; i++)
        l->has_launches = l->device.p[i].lane >= 0;
    ms_vec_free(&c);
    ms_free(last);
    return ok;
}

/* ---- a process --------------------------------------------------------------------------- */

static enum ms_rc read_tracks(struct reading *r, uint32_t process, struct ms_err *err)
{
    for (size_t i = 0; i < mstx_tl_track_count(r->tl); i++) {
        r->track = mstx_tl_track(r->tl, i);
        if (r->track->process != process)
            continue;
        if (r->track->kind == MSTX_TRACK_THREAD) {
            MS_TRY(read_thread(r, i, take_span, err));
        } else if (r->track->kind == MSTX_TRACK_COUNTER &&
                   ms_str_is(r->track->domain, MSTX_USE_DOMAIN) &&
                   ms_str_is(r->track->name, MSTX_USE_DELAY_TEXT)) {
            MS_TRY(read_thread(r, i, take_delay, err));
        } else if (r->track->kind == MSTX_TRACK_STREAM &&
                   ms_str_is(r->track->domain, MSTX_KERNELS_DOMAIN)) {
            MS_TRY(mstx_tl_walk(r->tl, i, NULL, take_executed, r, err));
            r->stream++;
        }
    }
    return MS_OK;
}

enum ms_rc mstx__lane_set_read(struct mstx_lane_set *to, struct mstx_tl *tl, uint32_t process,
                               const struct mstx_step *step, size_t steps,
                               struct mstx_places *places, struct ms_err *err)
{
    struct reading r = {.to = to, .tl = tl, .step = step, .steps = steps, .places = places};
    *to = (struct mstx_lane_set){
        .is_profile = ms_str_is(mstx_tl_process(tl, process)->tool, MSTX_TOOL_KINETO)};
    enum ms_rc rc = read_tracks(&r, process, err);
    if (rc == MS_OK) {
        find_main(&r);
        bool ok = true;
        for (size_t i = 0; i < to->lane.n && ok; i++)
            ok = nest(&r, &to->lane.p[i]);
        if (!ok || !join_streams(&r))
            rc = ms_no_memory(err);
    }
    ms_vec_free(&r.known);
    ms_vec_free(&r.works.of);
    return rc;
}

void mstx__lane_set_free(struct mstx_lane_set *l)
{
    for (size_t i = 0; i < l->lane.n; i++) {
        ms_vec_free(&l->lane.p[i].span);
        ms_vec_free(&l->lane.p[i].bit);
        ms_vec_free(&l->lane.p[i].delay);
    }
    ms_vec_free(&l->lane);
    ms_vec_free(&l->device);
}
