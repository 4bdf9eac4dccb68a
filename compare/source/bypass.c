/* SPDX-License-Identifier: MIT
 *
 * bypass: finds operators of the golden side that the target leaves out.
 *
 * The two sides have other views around an operator, so views without a partner are skipped on both.
 */
#include "compare/source/bypass.h"
#include "compare/source/node_facts.h"
#include "probe/base/assert.h"

enum { VIEWS_MAX = 8 };

static bool has_partner(const struct source__part *p, uint32_t node)
{
    const struct source__node *n = &p->nodes.p[node];
    return n->id[0] != SOURCE__NONE && n->id[1] != SOURCE__NONE;
}

static bool is_lone_view(const struct source__part *p, uint32_t node)
{
    return !has_partner(p, node) && (p->ops.p[p->nodes.p[node].op].flags & SOURCE__VIEW);
}

/* Returns the maker of a node's largest input. */
static uint32_t maker_of_input(const struct source__part *p, uint32_t node, unsigned side)
{
    const struct source__node *n = &p->nodes.p[node];
    const struct source__leaf *largest = NULL;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct source__leaf *l = &p->leaves.p[i];
        if ((l->flags & SOURCE__IS_OUT) == 0 && l->maker[side] != SOURCE__NONE &&
            (largest == NULL || l->count > largest->count))
            largest = l;
    }
    return largest != NULL ? largest->maker[side] : SOURCE__NONE;
}

static uint32_t skip_views(const struct source__part *p, uint32_t node, unsigned side)
{
    for (unsigned i = 0; i < VIEWS_MAX && node != SOURCE__NONE && is_lone_view(p, node); i++)
        node = maker_of_input(p, node, side);
    return node;
}

/* Tells whether a golden operator reads what a paired node makes. */
static bool reads_from(const struct source__part *p, uint32_t golden, uint32_t maker)
{
    const struct source__node *n = &p->nodes.p[golden];
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct source__leaf *l = &p->leaves.p[i];
        if ((l->flags & SOURCE__IS_OUT) == 0 && l->maker[0] != SOURCE__NONE &&
            skip_views(p, l->maker[0], 0) == maker)
            return true;
    }
    return false;
}

/* Returns the golden operator that a paired node's input comes from, if the target's input comes
 * from before this operator. */
static uint32_t bypassed_by(const struct source__part *p, const struct source__leaf *l)
{
    uint32_t golden = skip_views(p, l->maker[0], 0), target = skip_views(p, l->maker[1], 1);
    if (golden == SOURCE__NONE || target == SOURCE__NONE || has_partner(p, golden) ||
        !has_partner(p, target) || is_lone_view(p, golden))
        return SOURCE__NONE;
    ms_assert(golden < p->nodes.n && target < p->nodes.n);
    return reads_from(p, golden, target) ? golden : SOURCE__NONE;
}

/* Returns the first node that reads an output of a target node. */
static uint32_t reader_of(const struct source__part *p, uint32_t node)
{
    for (uint32_t i = node + 1; i < p->nodes.n; i++) {
        const struct source__node *n = &p->nodes.p[i];
        for (uint32_t k = n->leaf; k < n->leaf + n->nleaf && n->kind == PROBE_NODE_API; k++) {
            const struct source__leaf *l = &p->leaves.p[k];
            if ((l->flags & SOURCE__IS_OUT) == 0 && l->maker[1] == node)
                return i;
        }
    }
    return SOURCE__NONE;
}

uint32_t source__bypassed_before(const struct source__part *p, uint32_t node, uint32_t *leaf)
{
    for (unsigned i = 0; i < VIEWS_MAX && node != SOURCE__NONE && is_lone_view(p, node); i++)
        node = reader_of(p, node);
    if (node == SOURCE__NONE || !has_partner(p, node))
        return SOURCE__NONE;
    const struct source__node *n = &p->nodes.p[node];
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct source__leaf *l = &p->leaves.p[i];
        uint32_t golden =
            l->flags & SOURCE__IS_OUT || l->maker[0] == SOURCE__NONE || l->maker[1] == SOURCE__NONE
                ? SOURCE__NONE
                : bypassed_by(p, l);
        *leaf = i;
        if (golden != SOURCE__NONE)
            return golden;
    }
    return SOURCE__NONE;
}
