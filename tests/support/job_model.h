/* SPDX-License-Identifier: MIT
 *
 * job_model: jobs of operations, and a slow second answer to what-if questions about them: each operation
 * begins after those that it waits for, and what meets begins together.  Who waits for whom is given by
 * the test.
 */
#ifndef TESTS_SUPPORT_JOB_MODEL_H
#define TESTS_SUPPORT_JOB_MODEL_H

#include "mstx/cluster/whatif.h"

#include "tests/support/check.h"

#include <math.h>

enum { CASES = 150, RANKS = 5, STEPS = 4, EVENTS = 12, OPS = STEPS * EVENTS * RANKS };

static uint64_t state;
static struct mstx_ops ops;
static struct mstx_whatif w;

static inline uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

/* ---- a job ---- */

static int64_t now[RANKS]; /* by rank */

/* An operation of event `event`, which becomes the number of a meeting once all are sorted. */
static inline void add(const char *type, uint32_t rank, int64_t start, int64_t end, uint32_t event)
{
    const struct mstx_op op = {.start_ns = start,
                               .end_ns = end,
                               .rank = rank,
                               .meet = event,
                               .type = mstx__ops_type(&ops, ms_str_of(type))};
    mstx__ops_add(&ops, &op);
    now[rank] = end > now[rank] ? end : now[rank];
}

static inline void free_job(void)
{
    mstx__whatif_free(&w);
    mstx__ops_free(&ops);
}

/* ---- the second answer ---- */

enum { PREDS = 24 };

static struct {
    uint32_t unit[OPS]; /* operations of a unit start together */
    size_t pred[OPS][PREDS], preds[OPS];
    size_t order[OPS], ordered; /* without what is in or behind a circle */
    size_t step_at[STEPS + 1];  /* of order */
    double end[OPS];
} model;

static inline enum mstx_op_kind kind_of(size_t i)
{
    return ops.type.p[ops.op.p[i].type].kind;
}

static inline void join_units(size_t from, size_t to, size_t a, size_t b)
{
    const uint32_t gone = model.unit[b], kept = model.unit[a];
    for (size_t i = from; i < to; i++)
        model.unit[i] = model.unit[i] == gone ? kept : model.unit[i];
}

static inline void wait_for(size_t i, size_t pred)
{
    ck_assert_uint_lt(model.preds[i], PREDS);
    model.pred[i][model.preds[i]++] = pred;
}

static inline void find_units(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        model.unit[i] = (uint32_t)i;
        model.preds[i] = 0;
    }
    for (size_t i = from; i < to; i++) {
        if (ops.op.p[i].meet != MSTX_NO_MEET)
            join_units(from, to, from + ops.op.p[i].meet, i);
    }
}

static inline bool has_ended(size_t i)
{
    for (size_t k = 0; k < model.ordered; k++) {
        if (model.order[k] == i)
            return true;
    }
    return false;
}

static inline bool may_start(size_t from, size_t to, uint32_t unit)
{
    for (size_t i = from; i < to; i++) {
        for (size_t k = 0; model.unit[i] == unit && k < model.preds[i]; k++) {
            if (!has_ended(model.pred[i][k]))
                return false;
        }
    }
    return true;
}

static inline void order_units(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        if (has_ended(i) || !may_start(from, to, model.unit[i]))
            continue;
        for (size_t k = from; k < to; k++) {
            if (model.unit[k] == model.unit[i])
                model.order[model.ordered++] = k;
        }
        i = from - 1; /* another one may start now */
    }
}

static inline void build_model_of(void (*find_preds)(size_t from, size_t to))
{
    const size_t steps = mstx__ops_steps(&ops);
    model.ordered = 0;
    for (size_t s = 0; s < steps; s++) {
        model.step_at[s] = model.ordered;
        find_units(ops.step.p[s].first, ops.step.p[s + 1].first);
        find_preds(ops.step.p[s].first, ops.step.p[s + 1].first);
        order_units(ops.step.p[s].first, ops.step.p[s + 1].first);
    }
    model.step_at[steps] = model.ordered;
}

/* The latest end of what a unit waits for, and whose that is; MSTX_NO_OP: nobody's. */
static inline double start_of(size_t step, uint32_t unit, size_t *last)
{
    double start = 0;
    *last = MSTX_NO_OP;
    for (size_t i = ops.step.p[step].first; i < ops.step.p[step + 1].first; i++) {
        for (size_t k = 0; model.unit[i] == unit && k < model.preds[i]; k++) {
            const size_t pred = model.pred[i][k];
            *last = model.end[pred] > start ? pred : *last;
            start = model.end[pred] > start ? model.end[pred] : start;
        }
    }
    return start;
}

static inline double model_step(size_t s, const double *weight)
{
    double latest = 0;
    size_t last;
    for (size_t k = model.step_at[s]; k < model.step_at[s + 1]; k++) {
        const size_t i = model.order[k];
        model.end[i] = start_of(s, model.unit[i], &last) + weight[i];
        latest = model.end[i] > latest ? model.end[i] : latest;
    }
    return latest;
}

static inline double model_mean(const double *weight)
{
    double sum = 0;
    for (size_t s = 0; s < mstx__ops_steps(&ops); s++)
        sum += model_step(s, weight);
    return sum / (double)mstx__ops_steps(&ops);
}

static inline double model_weight(size_t step, size_t i, bool clocks_joined)
{
    const struct mstx_op *op = &ops.op.p[i];
    int64_t latest = op->start_ns, shortest = op->end_ns - op->start_ns;
    for (size_t k = ops.step.p[step].first; k < ops.step.p[step + 1].first; k++) {
        const struct mstx_op *of = &ops.op.p[k];
        if (op->meet == MSTX_NO_MEET || of->meet != op->meet)
            continue;
        latest = of->start_ns > latest ? of->start_ns : latest;
        shortest = of->end_ns - of->start_ns < shortest ? of->end_ns - of->start_ns : shortest;
    }
    const int64_t own = clocks_joined ? op->end_ns - latest : shortest;
    return own > 0 ? (double)own : 0;
}

static inline int by_size(const void *pa, const void *pb)
{
    const double *a = pa, *b = pb;
    return *a > *b ? 1 : *a < *b ? -1 : 0;
}

/* The mean or median over the peers of operation i that are not marked, NAN when there are none. */
static inline double of_peers(size_t i, bool of_stage, const bool *marked, bool by_median)
{
    double v[OPS], sum = 0;
    size_t n = 0;
    for (size_t k = 0; k < ops.op.n; k++) {
        const struct mstx_op *a = &ops.op.p[i], *b = &ops.op.p[k];
        if (a->type != b->type || (marked != NULL && marked[k]) ||
            (of_stage && ops.rank.p[a->rank].stage != ops.rank.p[b->rank].stage))
            continue;
        sum += v[n++] = w.recorded[k];
    }
    qsort(v, n, sizeof *v, by_size);
    return n == 0 ? NAN : by_median ? (v[(n - 1) / 2] + v[n / 2]) / 2 : sum / (double)n;
}

#define ck_near(a, b) ck_assert_double_eq_tol((a), (b), 1e-9 * (1 + fabs(b)))

static inline void check_weights(bool clocks_joined)
{
    for (size_t s = 0; s < mstx__ops_steps(&ops); s++) {
        for (size_t i = ops.step.p[s].first; i < ops.step.p[s + 1].first; i++) {
            ck_near(w.recorded[i], model_weight(s, i, clocks_joined));
            ck_near(w.ideal[i], of_peers(i, false, NULL, ops.type.p[ops.op.p[i].type].is_comm));
        }
    }
}

/* ---- shares ---- */

static inline uint32_t link_of(size_t step, size_t i)
{
    const enum mstx_op_kind kind = kind_of(i);
    for (size_t k = ops.step.p[step].first; k < ops.step.p[step + 1].first; k++) {
        const struct mstx_op *op = &ops.op.p[i], *of = &ops.op.p[k];
        if (k == i || of->meet != op->meet || !mstx__op_is_transfer(kind))
            continue;
        const bool sends = kind == MSTX_OP_FORWARD_SEND || kind == MSTX_OP_BACKWARD_SEND;
        return (sends ? op->rank : of->rank) * (uint32_t)ops.rank.n + (sends ? of->rank : op->rank);
    }
    return UINT32_MAX;
}

/* Both ends of a transfer are one class. */
static inline const char *shown_name(size_t i)
{
    switch (kind_of(i)) {
    case MSTX_OP_FORWARD_SEND:
    case MSTX_OP_FORWARD_RECV:
        return "forward-pp-comm";
    case MSTX_OP_BACKWARD_SEND:
    case MSTX_OP_BACKWARD_RECV:
        return "backward-pp-comm";
    default:
        return ops.type.p[ops.op.p[i].type].name;
    }
}

static inline bool is_of_class(enum mstx_share_kind kind, uint32_t class, size_t step, size_t i)
{
    const struct mstx_op_rank *r = &ops.rank.p[ops.op.p[i].rank];
    switch (kind) {
    case MSTX_BY_RANK:
        return ops.op.p[i].rank == class;
    case MSTX_BY_DP_RANK:
        return r->dp == (int32_t) class;
    case MSTX_BY_STAGE:
        return r->stage == (int32_t) class;
    case MSTX_BY_TP_RANK:
        return r->tp == (int32_t) class;
    case MSTX_BY_OP:
        return class < w.op_name.n && strcmp(w.op_name.p[class], shown_name(i)) == 0;
    default:
        return link_of(step, i) == class;
    }
}

/* Weights of a class as recorded and of all others as ideal; how many operations it has. */
static inline size_t weigh_class(enum mstx_share_kind kind, uint32_t class, double *weight)
{
    size_t members = 0;
    for (size_t s = 0; s < mstx__ops_steps(&ops); s++) {
        for (size_t i = ops.step.p[s].first; i < ops.step.p[s + 1].first; i++) {
            const bool member = is_of_class(kind, class, s, i);
            weight[i] = member ? w.recorded[i] : w.ideal[i];
            members += member;
        }
    }
    return members;
}

static inline void check_shares(enum mstx_share_kind kind)
{
    mstx_shares v = {0};
    double weight[OPS];
    size_t classes = 0;
    ck_assert(mstx__whatif_shares(&w, kind, &v));
    for (uint32_t class = 0; class < 40; class ++)
        classes += weigh_class(kind, class, weight) != 0;
    ck_assert_uint_eq(v.n, classes);
    for (size_t i = 0; i < v.n; i++) {
        ck_assert_uint_gt(weigh_class(kind, v.p[i].class, weight), 0);
        ck_near(v.p[i].slowdown, w.mean_ideal_ns > 0 ? model_mean(weight) / w.mean_ideal_ns : 1);
        ck_assert(i == 0 || v.p[i - 1].slowdown > v.p[i].slowdown ||
                  (v.p[i - 1].slowdown == v.p[i].slowdown && v.p[i - 1].class < v.p[i].class));
    }
    ms_vec_free(&v);
}

#endif
