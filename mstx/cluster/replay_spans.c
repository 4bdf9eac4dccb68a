/* SPDX-License-Identifier: MIT
 *
 * replay_spans: see the header.
 */
#include "mstx/cluster/replay_spans.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <math.h>
#include <stdlib.h>

/* Tells whether a span continues the one before.  Points at one time are kept 1 ns apart (call_points.c), so a
 * span of 1 ns continues any span. */
static bool continues(const struct mstx_span *before, const struct mstx_span *s)
{
    return before->lane == s->lane && before->step == s->step && before->end_ns == s->start_ns &&
           (before->kind == s->kind || s->end_ns - s->start_ns == 1);
}

/* Appends a span; a span that continues the one before is joined with it. */
static bool add_span(mstx_spans *to, size_t first, const struct mstx_span *s)
{
    struct mstx_span *before = to->n > first ? &to->p[to->n - 1] : NULL;
    if (s->end_ns <= s->start_ns)
        return true;
    if (before != NULL && continues(before, s)) {
        before->end_ns = s->end_ns;
        return true;
    }
    struct mstx_span *slot = ms_vec_push(to);
    if (slot != NULL)
        *slot = *s;
    return slot != NULL;
}

static size_t largest_step(const struct mstx_deps *d)
{
    size_t most = 0;
    for (size_t s = 0; s + 1 < d->step.n; s++)
        most = d->step.p[s + 1] - d->step.p[s] > most ? d->step.p[s + 1] - d->step.p[s] : most;
    return most;
}

/* ---- critical path ---------------------------------------------------------------- */

static bool add_path(const struct mstx_replayed *r, const uint32_t *path, size_t n, mstx_spans *to)
{
    const size_t first = to->n;
    bool ok = true;
    while (n-- > 0 && ok) {
        const struct mstx_span_op op = r->op(r->ctx, path[n]);
        ms_assert(op.lane < r->lanes);
        const struct mstx_span s = {.start_ns = op.end_ns - llrint(r->recorded[path[n]]),
                                    .end_ns = op.end_ns,
                                    .lane = op.lane,
                                    .step = op.step,
                                    .kind = op.is_comm ? MSTX_SPAN_COMM : MSTX_SPAN_WORK};
        ok = add_span(to, first, &s);
    }
    return ok;
}

/* Returns the recorded end of an operation since the first one, exact below 104 days. */
static double recorded_end(const void *ctx, uint32_t number)
{
    const struct mstx_replayed *r = ctx;
    return (double)(r->op(r->ctx, number).end_ns - r->op(r->ctx, r->deps->op.p[0]).end_ns +
                    llrint(r->recorded[r->deps->op.p[0]]));
}

/* Finds the critical path of a step; t is NULL where the replay of recorded durations gives recorded times. */
static size_t find_path(const struct mstx_replayed *r, size_t from, size_t end, double *t,
                        uint32_t *path)
{
    if (t == NULL)
        return mstx__deps_critical_known(r->deps, from, end, recorded_end, r, path);
    mstx__deps_replay_one(r->deps, from, end, r->recorded, t);
    return mstx__deps_critical(r->deps, from, end, t, path);
}

bool mstx__critical_spans(const struct mstx_replayed *r, mstx_spans *to)
{
    const struct mstx_deps *d = r->deps;
    const size_t most = largest_step(d);
    uint32_t *path = ms_calloc(most + 1, sizeof *path);
    double *t = r->is_chained ? NULL : ms_calloc(most + 1, sizeof *t);
    bool ok = path != NULL && (r->is_chained || t != NULL);
    for (size_t s = 0; s + 1 < d->step.n && ok; s++) {
        const size_t from = d->step.p[s], end = d->step.p[s + 1];
        ok = add_path(r, path, find_path(r, from, end, t, path), to);
    }
    ms_free(path);
    ms_free(t);
    return ok;
}

/* ---- ideal timeline ---------------------------------------------------------------- */

struct drawing {
    struct mstx_ideal_replay *of;
    const struct mstx_replayed *r;
    double *lane_end;            /* by lane: end of its last operation in the replay */
    int64_t *drawn;              /* by lane: end of its last span */
    uint32_t *step;              /* by lane: step of its last operation */
    size_t first_lane, end_lane; /* those that are drawn */
    mstx_spans *to;
};

/* Finds where the steps begin in the recorded timeline, and in the replay. */
static void find_starts(struct mstx_ideal_replay *w)
{
    for (size_t v = 0; v < mstx__deps_count(w->r->deps); v++) {
        const uint32_t number = w->r->deps->op.p[v];
        const double end_at = mstx__deps_replay_node(w->r->deps, v, w->r->ideal, w->slot, w->t);
        if (number == MSTX_NO_OP)
            continue;
        const struct mstx_span_op op = w->r->op(w->r->ctx, number);
        if (op.step == MSTX_NO_STEP)
            continue;
        ms_assert(op.step < w->r->steps);
        const int64_t real = op.end_ns - llrint(w->r->recorded[number]);
        const double at = end_at - w->r->ideal[number];
        w->real[op.step] = real < w->real[op.step] ? real : w->real[op.step];
        w->at[op.step] = fmin(w->at[op.step], at);
    }
}

/* Appends a span of the replay, moved to the recorded start of its step, behind the last one of its lane. */
static bool draw_span(struct drawing *w, uint32_t lane, double from, double end,
                      enum mstx_span_kind kind)
{
    const uint32_t step = w->step[lane];
    if (step == MSTX_NO_STEP)
        return true;
    struct mstx_span s = {w->of->real[step] + llrint(from - w->of->at[step]),
                          w->of->real[step] + llrint(end - w->of->at[step]), lane, step,
                          (uint8_t)kind};
    s.start_ns = s.start_ns > w->drawn[lane] ? s.start_ns : w->drawn[lane];
    w->drawn[lane] = s.end_ns > w->drawn[lane] ? s.end_ns : w->drawn[lane];
    return add_span(w->to, w->to->n, &s);
}

static bool draw_op(struct drawing *w, uint32_t number, double end)
{
    const struct mstx_span_op op = w->r->op(w->r->ctx, number);
    ms_assert(op.lane < w->r->lanes);
    if (op.lane < w->first_lane || op.lane >= w->end_lane)
        return true;
    const double start = end - w->r->ideal[number], last = w->lane_end[op.lane];
    if (op.step != MSTX_NO_STEP)
        w->step[op.lane] = op.step;
    w->lane_end[op.lane] = end;
    return (!w->r->is_chained || start <= last ||
            draw_span(w, op.lane, last, start, MSTX_SPAN_WAIT)) &&
           draw_span(w, op.lane, start, end, op.is_comm ? MSTX_SPAN_COMM : MSTX_SPAN_WORK);
}

static bool draw_part(struct drawing *w, size_t from, size_t end)
{
    const struct mstx_deps *d = w->r->deps;
    for (size_t i = 0; i < w->r->lanes; i++)
        w->lane_end[i] = 0;
    bool ok = true;
    for (size_t v = from; v < end && ok; v++) {
        const double t = mstx__deps_replay_node(d, v, w->r->ideal, w->of->slot, w->of->t);
        if (d->op.p[v] != MSTX_NO_OP)
            ok = draw_op(w, d->op.p[v], t);
    }
    return ok;
}

static int by_lane(const void *pa, const void *pb)
{
    const struct mstx_span *a = pa, *b = pb;
    return MS_ORDER(a->lane, b->lane, MS_ORDER(a->start_ns, b->start_ns, 0));
}

/* Sorts the spans from `first` on by lane and joins those that continue each other. */
static void sort_spans(mstx_spans *v, size_t first)
{
    const size_t n = v->n;
    if (n - first > 1)
        qsort(v->p + first, n - first, sizeof *v->p, by_lane);
    v->n = first;
    for (size_t i = first; i < n; i++) {
        const struct mstx_span s = v->p[i];
        (void)add_span(v, first, &s); /* has room */
    }
}

bool mstx__ideal_begin(struct mstx_ideal_replay *w, const struct mstx_replayed *r)
{
    const size_t steps = r->steps + 1;
    *w = (struct mstx_ideal_replay){.r = r};
    w->slot = ms_alloc((mstx__deps_count(r->deps) + 1) * sizeof *w->slot);
    const size_t slots = w->slot != NULL ? mstx__deps_slots(r->deps, w->slot) : SIZE_MAX;
    w->t = slots != SIZE_MAX ? ms_calloc(slots + 1, sizeof *w->t) : NULL;
    w->real = ms_calloc(steps, sizeof *w->real);
    w->at = ms_calloc(steps, sizeof *w->at);
    if (w->t == NULL || w->real == NULL || w->at == NULL)
        return false;
    for (size_t s = 0; s < steps; s++) {
        w->real[s] = INT64_MAX;
        w->at[s] = INFINITY;
    }
    find_starts(w);
    return true;
}

void mstx__ideal_end(struct mstx_ideal_replay *w)
{
    ms_free(w->slot);
    ms_free(w->t);
    ms_free(w->real);
    ms_free(w->at);
}

static bool begin_drawing(struct drawing *w)
{
    const size_t lanes = w->r->lanes + 1;
    w->lane_end = ms_calloc(lanes, sizeof *w->lane_end);
    w->drawn = ms_calloc(lanes, sizeof *w->drawn);
    w->step = ms_calloc(lanes, sizeof *w->step);
    if (w->lane_end == NULL || w->drawn == NULL || w->step == NULL)
        return false;
    for (size_t i = 0; i < lanes; i++) {
        w->drawn[i] = INT64_MIN;
        w->step[i] = MSTX_NO_STEP;
    }
    return true;
}

bool mstx__ideal_spans(struct mstx_ideal_replay *of, size_t first, size_t end, mstx_spans *to)
{
    const struct mstx_replayed *r = of->r;
    struct drawing w = {.of = of, .r = r, .first_lane = first, .end_lane = end, .to = to};
    const size_t before = to->n;
    ms_assert(first <= end && end <= r->lanes);
    bool ok = begin_drawing(&w);
    for (size_t s = 0; s + 1 < r->deps->step.n && ok; s++)
        ok = draw_part(&w, r->deps->step.p[s], r->deps->step.p[s + 1]);
    if (ok)
        sort_spans(to, before);
    ms_free(w.lane_end);
    ms_free(w.drawn);
    ms_free(w.step);
    return ok;
}
