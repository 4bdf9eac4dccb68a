/* SPDX-License-Identifier: MIT
 *
 * micro_batches: tells whether one side runs the model several times with a part of the batch each.
 *
 * With gradient accumulation each operator is called k times as often, and its first dimension is a
 * k-th. A single call then has no counterpart; what the runs must have in common is the sum of the
 * gradients, and what the optimizer makes of it.
 */
#include "compare/observe/micro_batches.h"
#include "probe/base/assert.h"

struct calls {
    uint32_t n[2];
};

/* Returns the number of nodes up to the last backward one. */
static size_t end_of_backward(const struct observe__part *p)
{
    size_t end = p->nodes.n;
    while (end > 0 && p->nodes.p[end - 1].dir != PROBE_BACKWARD)
        end--;
    return end;
}

/* Counts the calls of each operator; returns whether inputs of pairs differ in shape. */
static bool count_calls(const struct observe__part *p, struct calls *calls)
{
    bool other_shape = false;
    size_t end = end_of_backward(p);
    for (size_t i = 0; i < end; i++) {
        const struct observe__node *n = &p->nodes.p[i];
        if (n->kind != PROBE_NODE_API || n->dir != PROBE_FORWARD)
            continue;
        for (unsigned s = 0; s < 2; s++)
            calls[n->op].n[s] += n->id[s] != OBSERVE__NONE;
        for (uint32_t k = n->leaf; k < n->leaf + n->nleaf && !other_shape; k++)
            other_shape = (p->leaves.p[k].attrs & OBSERVE__SHAPE) != 0;
    }
    return other_shape;
}

/* Returns how many times more one side calls nine in ten operators, or 0. */
static uint32_t factor_of(const struct observe__part *p, const struct calls *calls, unsigned many)
{
    enum { FEW = 8 };
    uint64_t all[2] = {0, 0}, fitting = 0;
    for (size_t i = 0; i < p->ops.n; i++) {
        all[0] += calls[i].n[1 - many];
        all[1] += calls[i].n[many];
    }
    uint64_t k = all[0] != 0 ? (all[1] + all[0] / 2) / all[0] : 0;
    if (k < 2 || all[0] < FEW)
        return 0;
    for (size_t i = 0; i < p->ops.n; i++)
        fitting += calls[i].n[many] == k * calls[i].n[1 - many] ? calls[i].n[many] : 0;
    return 10 * fitting >= 9 * all[1] ? (uint32_t)k : 0;
}

enum ms_rc observe__count_batches(struct observe__part *p, struct ms_err *err)
{
    if (p->cross || !p->has_apis)
        return MS_OK;
    struct calls *calls = ms_calloc(p->ops.n + 1, sizeof *calls);
    if (calls == NULL)
        return ms_no_memory(err);
    bool other_shape = count_calls(p, calls);
    for (unsigned many = 0; many < 2 && other_shape && p->batches == 0; many++) {
        p->batches = factor_of(p, calls, many);
        p->batches_side = (uint8_t)many;
    }
    ms_assert(p->batches != 1);
    ms_free(calls);
    return MS_OK;
}
