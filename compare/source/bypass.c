/* SPDX-License-Identifier: MIT
 *
 * bypass: finds operators of the golden side that the target leaves out.
 *
 * The two sides have other views around an operator, so views without a partner are skipped on both.
 */
#include "compare/source/bypass.h"
#include "compare/observe/node_facts.h"
#include "probe/base/assert.h"

enum { VIEWS_MAX = 8 };

static bool has_partner(const struct observe__part *p, uint32_t node)
{
    const struct observe__node *n = &p->nodes.p[node];
    return n->id[0] != OBSERVE__NONE && n->id[1] != OBSERVE__NONE;
}

static bool is_lone_view(const struct observe__part *p, uint32_t node)
{
    return !has_partner(p, node) && (p->ops.p[p->nodes.p[node].op].flags & OBSERVE__VIEW);
}

/* Returns the maker of a node's largest input. */
static uint32_t maker_of_input(const struct observe__part *p, uint32_t node, unsigned side)
{
    const struct observe__node *n = &p->nodes.p[node];
    const struct observe__leaf *largest = NULL;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        if ((l->flags & OBSERVE__IS_OUT) == 0 && l->maker[side] != OBSERVE__NONE &&
            (largest == NULL || l->count > largest->count))
            largest = l;
    }
    return largest != NULL ? largest->maker[side] : OBSERVE__NONE;
}

static uint32_t skip_views(const struct observe__part *p, uint32_t node, unsigned side)
{
    for (unsigned i = 0; i < VIEWS_MAX && node != OBSERVE__NONE && is_lone_view(p, node); i++)
        node = maker_of_input(p, node, side);
    return node;
}

/* Tells whether a golden operator reads what a paired node makes. */
static bool reads_from(const struct observe__part *p, uint32_t golden, uint32_t maker)
{
    const struct observe__node *n = &p->nodes.p[golden];
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        if ((l->flags & OBSERVE__IS_OUT) == 0 && l->maker[0] != OBSERVE__NONE &&
            skip_views(p, l->maker[0], 0) == maker)
            return true;
    }
    return false;
}

/* Returns the golden operator that a paired node's input comes from, if the target's input comes
 * from before this operator. */
static uint32_t bypassed_by(const struct observe__part *p, const struct observe__leaf *l)
{
    uint32_t golden = skip_views(p, l->maker[0], 0), target = skip_views(p, l->maker[1], 1);
    if (golden == OBSERVE__NONE || target == OBSERVE__NONE || has_partner(p, golden) ||
        !has_partner(p, target) || is_lone_view(p, golden))
        return OBSERVE__NONE;
    ms_assert(golden < p->nodes.n && target < p->nodes.n);
    return reads_from(p, golden, target) ? golden : OBSERVE__NONE;
}

/* Returns the first node that reads an output of a target node. */
static uint32_t reader_of(const struct observe__part *p, uint32_t node)
{
    for (uint32_t i = node + 1; i < p->nodes.n; i++) {
        const struct observe__node *n = &p->nodes.p[i];
        for (uint32_t k = n->leaf; k < n->leaf + n->nleaf && n->kind == PROBE_NODE_API; k++) {
            const struct observe__leaf *l = &p->leaves.p[k];
            if ((l->flags & OBSERVE__IS_OUT) == 0 && l->maker[1] == node)
                return i;
        }
    }
    return OBSERVE__NONE;
}

uint32_t source__bypassed_before(const struct observe__part *p, uint32_t node, uint32_t *leaf)
{
    for (unsigned i = 0; i < VIEWS_MAX && node != OBSERVE__NONE && is_lone_view(p, node); i++)
        node = reader_of(p, node);
    if (node == OBSERVE__NONE || !has_partner(p, node))
        return OBSERVE__NONE;
    const struct observe__node *n = &p->nodes.p[node];
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        uint32_t golden = l->flags & OBSERVE__IS_OUT || l->maker[0] == OBSERVE__NONE ||
                                  l->maker[1] == OBSERVE__NONE
                              ? OBSERVE__NONE
                              : bypassed_by(p, l);
        *leaf = i;
        if (golden != OBSERVE__NONE)
            return golden;
    }
    return OBSERVE__NONE;
}
