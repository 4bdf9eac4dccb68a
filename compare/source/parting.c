/* SPDX-License-Identifier: MIT
 *
 * parting: makes the suspect where the values of two programs part.
 */
#include "compare/source/parting.h"
#include "compare/source/raw_suspects.h"

#include <math.h>

static enum ms_rc add_parting(struct cmp_source *s, uint32_t part, uint32_t node, enum cmp_why why,
                              uint32_t golden, struct ms_err *err)
{
    struct source__judge j = {
        .s = s, .p = s->parts.p[part], .part = part, .after_backward = SOURCE__NONE};
    const struct source__node *n = &j.p->nodes.p[node];
    struct source__raw raw = source__raw_of(n, why, SOURCE__NUM, log10(fmax(n->rho, 10)));
    raw.is_parting = true;
    raw.instead = golden;
    return source__add_suspect(&j, node, raw, err);
}

/* ---- updates --------------------------------------------------------------- */

/* Returns the part of the step before, of the same rank; NULL: there is none. */
static const struct source__part *part_before(const struct cmp_source *s, uint32_t part)
{
    for (uint32_t i = part; i-- > 0;) {
        const struct source__part *p = s->parts.p[i];
        if (p->rank == s->parts.p[part]->rank && p->step < s->parts.p[part]->step)
            return p;
    }
    return NULL;
}

static bool writes_tensor(const struct source__part *p, const struct source__node *n)
{
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        if ((p->leaves.p[k].flags & SOURCE__IS_OUT) && p->leaves.p[k].count > 1)
            return true;
    }
    return false;
}

/* Returns the last operator behind the backward pass that writes a tensor, of the target if there is one:
 * the parameters are written last. SOURCE__NONE: no update is recorded. */
static uint32_t find_update(const struct source__part *p)
{
    uint32_t found = SOURCE__NONE;
    for (uint32_t i = (uint32_t)p->nodes.n; i-- > 0;) {
        const struct source__node *n = &p->nodes.p[i];
        if (n->dir == PROBE_BACKWARD)
            break;
        if (n->kind != PROBE_NODE_API || !writes_tensor(p, n))
            continue;
        if (n->id[1] != SOURCE__NONE)
            return i;
        found = found == SOURCE__NONE ? i : found;
    }
    return found;
}

/* Tells whether the gradients of all parameters agree. */
static bool do_gradients_agree(const struct source__part *p)
{
    for (size_t i = 0; i < p->nodes.n; i++) {
        const struct source__node *n = &p->nodes.p[i];
        for (uint32_t k = n->leaf; n->kind == PROBE_NODE_PGRAD && k < n->leaf + n->nleaf; k++) {
            if ((p->leaves.p[k].flags & SOURCE__FLAGGED) || p->leaves.p[k].e > 1e-4F)
                return false;
        }
    }
    return true;
}

/* Rule: two programs begin a step with different parameters, and in the step before nothing differed: the
 * update is to blame, whose operators are often recorded on one side alone. */
static enum ms_rc check_update(struct cmp_source *s, uint32_t part, struct ms_err *err)
{
    const struct source__part *p = part_before(s, part);
    if (p == NULL || p->losses[0] == NULL || p->ends_differ || p->starts_differ ||
        !do_gradients_agree(p))
        return MS_OK;
    uint32_t at = find_update(p), before = part;
    while (s->parts.p[before] != p)
        before--;
    return at != SOURCE__NONE ? add_parting(s, before, at, CMP_WHY_VALUE, SOURCE__NONE, err)
                              : MS_OK;
}

/* ---- forward values ---------------------------------------------------------- */

/* Returns the node of the part for a dump's node. */
static uint32_t node_of(const struct source__part *p, unsigned side, uint32_t id)
{
    for (uint32_t i = 0; id != SOURCE__NONE && i < p->nodes.n; i++) {
        if (p->nodes.p[i].id[side] == id)
            return i;
    }
    return SOURCE__NONE;
}

/* Tells whether noise explains how the results of partners differ: their inputs were alike by a hair, and
 * their results are not. */
static bool is_noise(const struct source__node *n)
{
    return (n->flags & SOURCE__OUT_MEASURED) != 0 && n->out <= n->floor;
}

enum ms_rc source__check_parting(struct cmp_source *s, uint32_t part, bool explained,
                                 struct ms_err *err)
{
    const struct source__part *p = s->parts.p[part];
    if (p->batches == 0 && p->starts_differ)
        return check_update(s, part, err);
    if (explained || p->batches != 0)
        return MS_OK;
    uint32_t golden = p->parting.is_found ? node_of(p, 0, p->parting.node[0]) : SOURCE__NONE;
    uint32_t target = p->parting.is_found ? node_of(p, 1, p->parting.node[1]) : SOURCE__NONE;
    uint32_t blamed = target != SOURCE__NONE ? target : golden;
    if (blamed == SOURCE__NONE)
        return MS_OK;
    enum cmp_why why = target == SOURCE__NONE   ? CMP_WHY_MISSING
                       : golden == SOURCE__NONE ? CMP_WHY_EXTRA
                                                : CMP_WHY_VALUE;
    if (why == CMP_WHY_VALUE && is_noise(&p->nodes.p[blamed]))
        return MS_OK;
    return add_parting(s, part, blamed, why, golden, err);
}
