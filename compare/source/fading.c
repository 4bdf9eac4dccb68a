/* SPDX-License-Identifier: MIT
 *
 * fading: which differences of the forward pass are gone behind the next operators.
 *
 * Another formula has other values between, and the same value at its end: scores are scaled before
 * or after the product, a mask holds truth values or minus infinity. A difference fades where every
 * operator that reads the value makes the same result on both sides, or makes a difference that
 * fades itself. A normalization hides factors and offsets that are mistakes, so it ends nothing.
 */
#include "compare/source/fading.h"
#include "probe/base/assert.h"

#include <math.h>

enum state { UNKNOWN, AGREES, DIFFERS };

static enum state state_of(const struct source__judge *j, const struct observe__node *n)
{
    if (n->flags & OBSERVE__OUT_FLAGGED)
        return DIFFERS;
    if ((n->flags & OBSERVE__OUT_MEASURED) == 0 || (n->attrs_out & OBSERVE__SHAPE))
        return UNKNOWN;
    /* The noise of earlier nodes may contain the difference itself. */
    float root = isnan(j->p->root_floor) ? 0 : j->p->root_floor;
    return n->out <= observe__rule.forward[j->tensor] * fmaxf(n->tiny, root) ? AGREES : DIFFERS;
}

/* Tells whether an operator of one side alone makes only values that are never traced to their readers:
 * truth values, integers and masks of -inf. */
static bool makes_masks(const struct observe__part *p, const struct observe__node *n)
{
    const unsigned side = n->id[1] != OBSERVE__NONE;
    bool any = false;
    if (n->id[1 - side] != OBSERVE__NONE)
        return false;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        if ((l->flags & OBSERVE__IS_OUT) == 0)
            continue;
        any = true;
        if (ms_dtype_kind((enum ms_dtype)l->dtype[side]) == MS_DTK_FLOAT && isfinite(l->norm))
            return false;
    }
    return any;
}

/* Tells whether an operator such as topk finds the same places on both sides. Places are never traced to
 * their readers, so nothing says that its values are the result. */
static bool finds_places(const struct observe__part *p, const struct observe__node *n)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        unsigned want = OBSERVE__IS_OUT | OBSERVE__MEASURED;
        if ((l->flags & (want | OBSERVE__FLAGGED)) == want && l->e == 0 && l->count > 1 &&
            ms_dtype_is_whole((enum ms_dtype)l->dtype[1]))
            return true;
    }
    return false;
}

/* Tells whether a node of one side alone makes the loss: an unread number with a backward. Its value ends
 * the step; what it does to the parameters shows in their gradients. */
static bool makes_loss(const struct observe__part *p, const struct observe__node *n)
{
    const bool alone = n->id[0] == OBSERVE__NONE || n->id[1] == OBSERVE__NONE;
    for (uint32_t i = n->leaf; alone && n->backward != 0 && !n->is_read && i < n->leaf + n->nleaf;
         i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        if ((l->flags & OBSERVE__IS_OUT) && l->count == 1)
            return true;
    }
    return false;
}

/* Tells whether the step ends with an operator's result, as far as the dump shows. */
static bool ends_step(const struct observe__part *p, const struct observe__node *n)
{
    return !n->is_read && !makes_masks(p, n) && !finds_places(p, n) && !makes_loss(p, n);
}

/* Adds to the nodes that made the inputs of a node what becomes of their values in it. */
static void tell_makers(struct observe__part *p, uint32_t i, bool lasts)
{
    const struct observe__node *n = &p->nodes.p[i];
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct observe__leaf *l = &p->leaves.p[k];
        for (unsigned s = 0; s < 2 && (l->flags & OBSERVE__IS_OUT) == 0; s++) {
            if (l->maker[s] != OBSERVE__NONE && l->maker[s] < i)
                p->nodes.p[l->maker[s]].lasts |= lasts;
        }
    }
}

void source__mark_fading(struct source__judge *j)
{
    struct observe__part *p = j->p;
    for (uint32_t i = (uint32_t)p->nodes.n; i-- > 0;) {
        struct observe__node *n = &p->nodes.p[i];
        bool reads = n->dir == PROBE_FORWARD && i < j->after_backward &&
                     (n->kind == PROBE_NODE_API || !p->has_apis);
        if (!reads)
            continue;
        enum state s = state_of(j, n);
        bool through = n->lasts || ends_step(p, n);
        bool hides = (p->ops.p[n->op].flags & OBSERVE__NORMS) && n->in > n->floor;
        /* One side makes this call under no_grad, as for an evaluation: it is another call. */
        bool other = (n->attrs_out & OBSERVE__GRAD) != 0;
        n->fades = s != AGREES && (!through || other);
        tell_makers(p, i, !other && (hides || (s != AGREES && through)));
    }
}
