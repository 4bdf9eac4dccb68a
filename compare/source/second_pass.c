/* SPDX-License-Identifier: MIT
 *
 * second_pass: finds the records of backward that a later backward pass has replaced.
 *
 * A loss that holds a gradient, as a penalty on its norm, runs backward through the same operators twice.
 * A dump has one record for each: at the place of the first pass, with the values of the second. Such
 * a record stands before forward operators that its values depend on, so it introduces nothing.
 */
#include "compare/source/second_pass.h"
#include "probe/base/assert.h"

/* Differences of single operators stay below it between equal runs on other threads. */
static const float apart = 1e-5F;

/* Tells whether a leaf is an input that no recorded operator made and that is no parameter: an operator between, such
 * as a sign, may not be recorded. */
static bool is_unmade(const struct observe__leaf *l)
{
    return (l->flags & (OBSERVE__ROOT | OBSERVE__IS_PARAM)) == OBSERVE__ROOT;
}

static bool is_apart(const struct observe__leaf *l)
{
    return (l->flags & OBSERVE__FLAGGED) || ((l->flags & OBSERVE__MEASURED) && l->e > apart);
}

/* Tells whether an output differs, or an input that something made, as asked for. */
static bool has_apart(const struct observe__part *p, const struct observe__node *n, unsigned out)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        if (is_apart(l) && (l->flags & OBSERVE__IS_OUT) == out && !is_unmade(l))
            return true;
    }
    return false;
}

/* Tells whether a forward operator is the first to differ on its way. */
static bool does_part(const struct observe__part *p, const struct observe__node *n)
{
    return has_apart(p, n, OBSERVE__IS_OUT) && !has_apart(p, n, 0);
}

static bool is_alone(const struct observe__node *n)
{
    return n->id[0] == OBSERVE__NONE || n->id[1] == OBSERVE__NONE;
}

/* Tells whether a backward node reads a gradient that no record has although an operator that reads its
 * forward output has one, or reads the output of a node that is marked. */
static bool is_replaced(const struct observe__part *p, const struct observe__node *n)
{
    bool expected = n->forward != OBSERVE__NONE && p->nodes.p[n->forward].is_read;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        bool differs = (l->flags & OBSERVE__MEASURED) && l->e > apart;
        if (l->flags & OBSERVE__IS_OUT)
            continue;
        if ((l->flags & OBSERVE__ROOT) && differs && expected)
            return true;
        if (l->maker[1] != OBSERVE__NONE && p->nodes.p[l->maker[1]].second_pass)
            return true;
    }
    return false;
}

/* Tells whether anything of a node differs. */
static bool differs(const struct observe__part *p, const struct observe__node *n)
{
    bool any = false;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++)
        any |= is_apart(&p->leaves.p[i]);
    return any;
}

/* A backward node that differs before the forward operator at which values part is of a second pass. */
void source__mark_second_passes(struct source__judge *j)
{
    struct observe__part *p = j->p;
    uint32_t end = 0, parted = 0;
    ms_assert(j->after_backward <= p->nodes.n);
    for (uint32_t i = 0; i < j->after_backward; i++) {
        const struct observe__node *n = &p->nodes.p[i];
        if (n->dir != PROBE_FORWARD || n->kind != PROBE_NODE_API || n->recomputed)
            continue;
        parted = does_part(p, n) ? i : parted;
        end = is_alone(n) || parted == i ? i : end;
    }
    for (uint32_t i = 0; i < end; i++) {
        struct observe__node *n = &p->nodes.p[i];
        n->second_pass =
            observe__is_backward(n) && (is_replaced(p, n) || (i < parted && differs(p, n)));
    }
}
