/* SPDX-License-Identifier: MIT
 *
 * ops: see the header.
 */
#include "mstx/cluster/ops.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <stdlib.h>
#include <string.h>

void mstx__ops_free(struct mstx_ops *o)
{
    for (size_t i = 0; i < o->type.n; i++)
        ms_free(o->type.p[i].name);
    ms_vec_free(&o->op);
    ms_vec_free(&o->type);
    ms_vec_free(&o->rank);
    ms_vec_free(&o->step);
}

/* ---- types, ranks, steps --------------------------------------------------------- */

/* Names of operation types in published production traces. */
static const struct {
    const char *name;
    enum mstx_op_kind kind;
    bool is_comm;
} known[] = {
    {"forward-compute", MSTX_OP_FORWARD, false},
    {"backward-compute", MSTX_OP_BACKWARD, false},
    {"forward-send", MSTX_OP_FORWARD_SEND, true},
    {"forward-recv", MSTX_OP_FORWARD_RECV, true},
    {"backward-send", MSTX_OP_BACKWARD_SEND, true},
    {"backward-recv", MSTX_OP_BACKWARD_RECV, true},
    {"params-all-gather", MSTX_OP_PARAMS_GATHER, true},
    {"grads-reduce-scatter", MSTX_OP_GRADS_SCATTER, true},
    {"gc", MSTX_OP_COLLECT, false},
    {"layernorm-grads-all-reduce", MSTX_OP_LAYERNORM, true},
    {"embedding-grads-all-reduce", MSTX_OP_EMBEDDING, true},
    {"optimizer-clip-main-grad", MSTX_OP_CLIP, true},
    {"optimizer", MSTX_OP_OPTIMIZER, false},
};

static struct mstx_op_type type_of(struct ms_str name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (ms_str_is(name, known[i].name))
            return (struct mstx_op_type){NULL, known[i].kind, known[i].is_comm};
    }
    return (struct mstx_op_type){NULL, MSTX_OP_OTHER, false};
}

uint16_t mstx__ops_type(struct mstx_ops *o, struct ms_str name)
{
    for (size_t i = 0; i < o->type.n; i++) {
        if (ms_str_is(name, o->type.p[i].name))
            return (uint16_t)i;
    }
    char *copy = ms_str_dup(name);
    struct mstx_op_type *slot =
        copy != NULL && o->type.n < UINT16_MAX ? ms_vec_push(&o->type) : NULL;
    if (slot == NULL) {
        ms_free(copy);
        o->no_memory = true;
        return 0;
    }
    *slot = type_of(name);
    slot->name = copy;
    return (uint16_t)(o->type.n - 1);
}

uint32_t mstx__ops_rank(struct mstx_ops *o, int32_t rank, int32_t dp, int32_t stage, int32_t tp)
{
    for (size_t i = o->rank.n; i-- > 0;) {
        if (o->rank.p[i].rank == rank)
            return (uint32_t)i;
    }
    struct mstx_op_rank *slot = ms_vec_push(&o->rank);
    if (slot == NULL) {
        o->no_memory = true;
        return 0;
    }
    *slot = (struct mstx_op_rank){rank, dp, stage, tp};
    return (uint32_t)(o->rank.n - 1);
}

void mstx__ops_begin_step(struct mstx_ops *o, int64_t number, int64_t start_ns)
{
    struct mstx_op_step *slot = ms_vec_push(&o->step);
    if (slot == NULL)
        o->no_memory = true;
    else
        *slot = (struct mstx_op_step){number, start_ns, o->op.n};
}

void mstx__ops_add(struct mstx_ops *o, const struct mstx_op *op)
{
    ms_assert(o->step.n != 0 || o->no_memory);
    struct mstx_op *slot = ms_vec_push(&o->op);
    if (slot == NULL)
        o->no_memory = true;
    else
        *slot = *op;
}

static int by_rank_and_time(const void *pa, const void *pb)
{
    const struct mstx_op *a = pa, *b = pb;
    return MS_ORDER(a->rank, b->rank,
                    MS_ORDER(a->start_ns, b->start_ns,
                             MS_ORDER(a->end_ns, b->end_ns, MS_ORDER(a->type, b->type, 0))));
}

static bool is_sorted(const struct mstx_op *op, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (by_rank_and_time(&op[i - 1], &op[i]) > 0)
            return false;
    }
    return true;
}

static void number_ops(const struct mstx_ops *o, struct mstx_op *op, size_t n, uint16_t *count)
{
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || op[i].rank != op[i - 1].rank)
            memset(count, 0, o->type.n * sizeof *count);
        op[i].seq = count[op[i].type]++;
    }
}

static bool find_layout(const struct mstx_ops *o)
{
    bool known_all = o->rank.n != 0;
    for (size_t i = 0; i < o->rank.n; i++)
        known_all &= o->rank.p[i].dp >= 0 && o->rank.p[i].stage >= 0;
    return known_all;
}

void mstx__ops_ready(struct mstx_ops *o)
{
    uint16_t *count = ms_calloc(o->type.n + 1, sizeof *count);
    mstx__ops_begin_step(o, INT64_MAX, INT64_MAX);
    o->no_memory |= count == NULL;
    for (size_t s = 0; s + 1 < o->step.n && !o->no_memory; s++) {
        struct mstx_op *op = o->op.p + o->step.p[s].first;
        const size_t n = o->step.p[s + 1].first - o->step.p[s].first;
        if (!is_sorted(op, n))
            qsort(op, n, sizeof *op, by_rank_and_time);
        number_ops(o, op, n, count);
    }
    ms_vec_trim(&o->op);
    o->has_layout = find_layout(o);
    ms_free(count);
}

bool mstx__ops_are_staged(const struct mstx_ops *o)
{
    bool has[MSTX_OP_KINDS] = {0};
    for (size_t i = 0; i < o->type.n; i++)
        has[o->type.p[i].kind] = true;
    return o->has_layout && has[MSTX_OP_FORWARD] && has[MSTX_OP_BACKWARD] && !has[MSTX_OP_OTHER];
}

double mstx__ops_step_ns(const struct mstx_ops *o, size_t step)
{
    ms_assert(step + 1 < o->step.n);
    int64_t end = o->step.p[step].start_ns;
    for (size_t i = o->step.p[step].first; i < o->step.p[step + 1].first; i++)
        end = o->op.p[i].end_ns > end ? o->op.p[i].end_ns : end;
    return (double)(end - o->step.p[step].start_ns);
}

/* ---- meetings --------------------------------------------------------------------- */

/* Key of a meeting: operations of a step with equal fields up to seq meet. */
struct meeting {
    uint32_t kind, dp, stage, seq;
    uint32_t op; /* index in its step */
};

enum { ALL = UINT32_MAX };

/* Makes the key of an operation; returns false when the operation meets no other. */
static bool describe_meeting(const struct mstx_ops *o, const struct mstx_op *op, struct meeting *m)
{
    const struct mstx_op_rank *r = &o->rank.p[op->rank];
    const uint32_t dp = (uint32_t)r->dp, stage = (uint32_t)r->stage;
    const enum mstx_op_kind kind = o->type.p[op->type].kind;
    *m = (struct meeting){(uint32_t)kind, dp, stage, op->seq, 0};
    switch (kind) {
    case MSTX_OP_FORWARD_RECV:
        m->kind = MSTX_OP_FORWARD_SEND;
        m->stage = stage - 1;
        return true;
    case MSTX_OP_BACKWARD_RECV:
        m->kind = MSTX_OP_BACKWARD_SEND;
        m->stage = stage + 1;
        return true;
    case MSTX_OP_FORWARD_SEND:
    case MSTX_OP_BACKWARD_SEND:
        return true;
    case MSTX_OP_EMBEDDING:
        m->stage = ALL;
        return true;
    case MSTX_OP_PARAMS_GATHER:
    case MSTX_OP_GRADS_SCATTER:
        m->dp = ALL;
        return true;
    case MSTX_OP_CLIP:
        m->dp = m->stage = ALL;
        return true;
    default:
        return false;
    }
}

static int by_meeting(const void *pa, const void *pb)
{
    const struct meeting *a = pa, *b = pb;
    return MS_ORDER(
        a->kind, b->kind,
        MS_ORDER(a->seq, b->seq,
                 MS_ORDER(a->stage, b->stage, MS_ORDER(a->dp, b->dp, MS_ORDER(a->op, b->op, 0)))));
}

static bool is_same_meeting(const struct meeting *a, const struct meeting *b)
{
    return a->kind == b->kind && a->seq == b->seq && a->stage == b->stage && a->dp == b->dp;
}

static void meet_in_step(const struct mstx_ops *o, struct mstx_op *op, size_t n, struct meeting *m)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        op[i].meet = MSTX_NO_MEET;
        if (describe_meeting(o, &op[i], &m[count]))
            m[count++].op = (uint32_t)i;
    }
    qsort(m, count, sizeof *m, by_meeting);
    for (size_t i = 0, first = 0; i < count; i++) {
        if (!is_same_meeting(&m[first], &m[i]))
            first = i;
        op[m[i].op].meet = m[first].op;
    }
}

void mstx__ops_find_meets(struct mstx_ops *o)
{
    size_t most = 0;
    for (size_t s = 0; s + 1 < o->step.n; s++) {
        const size_t n = o->step.p[s + 1].first - o->step.p[s].first;
        most = n > most ? n : most;
    }
    struct meeting *m = ms_calloc(most + 1, sizeof *m);
    o->no_memory |= m == NULL;
    for (size_t s = 0; s + 1 < o->step.n && m != NULL; s++)
        meet_in_step(o, o->op.p + o->step.p[s].first, o->step.p[s + 1].first - o->step.p[s].first,
                     m);
    ms_free(m);
}

/* ---- weights ---------------------------------------------------------------------- */

struct gathering {
    int64_t latest_start, shortest;
};

static void gather(const struct mstx_op *op, size_t n, struct gathering *g)
{
    for (size_t i = 0; i < n; i++)
        g[i] = (struct gathering){INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < n; i++) {
        if (op[i].meet == MSTX_NO_MEET)
            continue;
        ms_assert(op[i].meet < n);
        struct gathering *of = &g[op[i].meet];
        const int64_t dur = op[i].end_ns - op[i].start_ns;
        of->latest_start = op[i].start_ns > of->latest_start ? op[i].start_ns : of->latest_start;
        of->shortest = dur < of->shortest ? dur : of->shortest;
    }
}

static double weight_of(const struct mstx_op *op, const struct gathering *g, bool clocks_joined)
{
    const int64_t whole = op->end_ns - op->start_ns;
    if (op->meet == MSTX_NO_MEET)
        return (double)whole;
    const struct gathering *of = &g[op->meet];
    const int64_t own = clocks_joined ? op->end_ns - of->latest_start : of->shortest;
    return own > 0 ? (double)own : 0;
}

bool mstx__ops_weights(const struct mstx_ops *o, bool clocks_joined, double *weight)
{
    for (size_t s = 0; s + 1 < o->step.n; s++) {
        const size_t first = o->step.p[s].first, n = o->step.p[s + 1].first - first;
        struct gathering *g = ms_calloc(n + 1, sizeof *g);
        if (g == NULL)
            return false;
        gather(o->op.p + first, n, g);
        for (size_t i = 0; i < n; i++)
            weight[first + i] = weight_of(&o->op.p[first + i], g, clocks_joined);
        ms_free(g);
    }
    return true;
}
