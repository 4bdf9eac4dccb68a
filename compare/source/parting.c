/* SPDX-License-Identifier: MIT
 *
 * parting: makes the suspect where the values of two programs part.
 */
#include "compare/source/parting.h"
#include "compare/observe/lost_values.h"
#include "compare/observe/node_facts.h"
#include "compare/source/raw_suspects.h"

#include <math.h>

static enum ms_rc add_raw(struct cmp_source *s, uint32_t part, uint32_t node,
                          struct source__raw raw, struct ms_err *err)
{
    struct source__judge j = {
        .s = s, .p = s->parts.p[part], .part = part, .after_backward = OBSERVE__NONE};
    raw.is_parting = true;
    return source__add_suspect(&j, node, raw, err);
}

static enum ms_rc add_parting(struct cmp_source *s, uint32_t part, uint32_t node, enum cmp_why why,
                              uint32_t golden, struct ms_err *err)
{
    const struct observe__node *n = &s->parts.p[part]->nodes.p[node];
    struct source__raw raw = source__raw_of(n, why, SOURCE__NUM, log10(fmax(n->rho, 10)));
    raw.instead = golden;
    return add_raw(s, part, node, raw, err);
}

/* ---- updates --------------------------------------------------------------- */

/* Returns the part of the step before, of the same rank; OBSERVE__NONE: there is none. */
static uint32_t part_before(const struct cmp_source *s, uint32_t part)
{
    for (uint32_t i = part; i-- > 0;) {
        const struct observe__part *p = s->parts.p[i];
        if (p->rank == s->parts.p[part]->rank && p->step < s->parts.p[part]->step)
            return i;
    }
    return OBSERVE__NONE;
}

static bool writes_tensor(const struct observe__part *p, const struct observe__node *n)
{
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        if ((p->leaves.p[k].flags & OBSERVE__IS_OUT) && p->leaves.p[k].count > 1)
            return true;
    }
    return false;
}

/* Returns the last operator behind the begin of the backward pass that writes a tensor which nothing reads,
 * of the target if there is one: a parameter. In a graph, other gradients may be computed after it.
 * OBSERVE__NONE: no update is recorded. */
static uint32_t find_update(const struct observe__part *p)
{
    uint32_t found = OBSERVE__NONE, first = 0;
    while (first < p->nodes.n && p->nodes.p[first].dir != PROBE_BACKWARD)
        first++;
    for (uint32_t i = (uint32_t)p->nodes.n; i-- > first;) {
        const struct observe__node *n = &p->nodes.p[i];
        if (n->kind != PROBE_NODE_API || n->dir != PROBE_FORWARD || n->is_read ||
            !writes_tensor(p, n))
            continue;
        if (n->id[1] != OBSERVE__NONE)
            return i;
        found = found == OBSERVE__NONE ? i : found;
    }
    return found;
}

/* Returns how far gradients of parameters that agree may be apart. A logarithm that amplifies noise of the forward
 * pass does so twice in the backward pass: where outputs of log differed by 7e-4, gradients of clean pairs did by
 * 2.3e-3. */
static double gradient_noise(const struct observe__part *p)
{
    const double usual = 1e-4, times = 10;
    return p->alike > usual ? times * p->alike : usual;
}

/* Tells whether the gradients of all parameters agree. */
static bool do_gradients_agree(const struct observe__part *p)
{
    const double most = gradient_noise(p);
    for (size_t i = 0; i < p->nodes.n; i++) {
        const struct observe__node *n = &p->nodes.p[i];
        for (uint32_t k = n->leaf; n->kind == PROBE_NODE_PGRAD && k < n->leaf + n->nleaf; k++) {
            if ((p->leaves.p[k].flags & OBSERVE__FLAGGED) || p->leaves.p[k].e > most)
                return false;
        }
    }
    return true;
}

/* Parameters of two programs differ by an update when they are this far apart, and so many times farther than
 * before the update and than the gradients: 1e-4 is what a missing weight decay of 0.01 changes at a rate of
 * 0.01, and 1e-6 the noise of a step. */
static const double gap_least = 1e-5, gap_times = 10, gradients_most = 1e-4;

/* Tells whether the passes of a step agree, so that only its update can explain other parameters. */
static bool do_passes_agree(const struct observe__part *p)
{
    return p->losses[0] != NULL && !p->ends_differ && !p->starts_differ &&
           !p->backward_parting.is_found && !(p->gradient_gap > gradients_most) &&
           do_gradients_agree(p);
}

static bool is_off(const struct observe__part *p, float gap)
{
    double past =
        fmax(isnan(p->start_gap) ? 0 : p->start_gap, isnan(p->gradient_gap) ? 0 : p->gradient_gap);
    return gap > fmax(gap_least, gap_times * past);
}

/* Rule: two programs write other parameters although the gradients agree: the update is to blame. */
static bool is_update_off(const struct observe__part *p)
{
    return !isnan(p->gradient_gap) && do_passes_agree(p) && is_off(p, p->update_gap);
}

/* Names the operator of a step that writes parameters last. */
static enum ms_rc blame_update(struct cmp_source *s, uint32_t part, float gap, struct ms_err *err)
{
    const struct observe__part *p = s->parts.p[part];
    uint32_t at = find_update(p);
    if (at == OBSERVE__NONE)
        return MS_OK;
    struct source__raw raw =
        source__raw_of(&p->nodes.p[at], CMP_WHY_UPDATE, SOURCE__NUM, log10(gap / gap_least));
    raw.in = gap;
    return add_raw(s, part, at, raw, err);
}

/* Tells whether a step begins with parameters that are farther apart than before. */
static bool does_start_off(const struct observe__part *before, const struct observe__part *now)
{
    return now->starts_differ || is_off(before, now->start_gap);
}

/* Rule: two programs begin a step with different parameters, and in the step before nothing differed: the
 * update is to blame, whose operators are often recorded on one side alone. */
static enum ms_rc check_updates(struct cmp_source *s, uint32_t part, struct ms_err *err)
{
    const struct observe__part *p = s->parts.p[part];
    uint32_t before = part_before(s, part);
    if (is_update_off(p))
        MS_TRY(blame_update(s, part, p->update_gap, err));
    if (before == OBSERVE__NONE || p->losses[0] == NULL)
        return MS_OK;
    const struct observe__part *b = s->parts.p[before];
    return do_passes_agree(b) && !is_update_off(b) && does_start_off(b, p)
               ? blame_update(s, before, p->start_gap, err)
               : MS_OK;
}

/* ---- forward values ---------------------------------------------------------- */

/* Returns the node of the part for a dump's node. */
static uint32_t node_of(const struct observe__part *p, unsigned side, uint32_t id)
{
    for (uint32_t i = 0; id != OBSERVE__NONE && i < p->nodes.n; i++) {
        if (p->nodes.p[i].id[side] == id)
            return i;
    }
    return OBSERVE__NONE;
}

/* What differs by more is no noise. Results that both sides have elsewhere differ by more only if their operators
 * are no true partners. */
static const float far = 1e-3F;

/* Tells whether noise explains how the results of partners differ: their inputs were alike by a hair, and
 * their results are not. */
static bool is_noise(const struct observe__node *n)
{
    return (n->flags & OBSERVE__OUT_MEASURED) != 0 && n->out <= n->floor && n->in < far;
}

/* Tells whether a rule has found something in the forward pass of a part. */
static bool has_forward_suspect(const struct cmp_source *s, uint32_t part)
{
    for (size_t i = 0; i < s->raws.n; i++) {
        if (s->raws.p[i].part == part && s->raws.p[i].forward)
            return true;
    }
    return false;
}

/* Adds the suspect at the nodes where values part, or where gradients do. */
static enum ms_rc check_parting(struct cmp_source *s, uint32_t part, struct ms_err *err)
{
    const struct observe__part *p = s->parts.p[part];
    const bool forward = p->parting.is_found;
    const struct observe__parting *at = forward ? &p->parting : &p->backward_parting;
    uint32_t golden = at->is_found ? node_of(p, 0, at->node[0]) : OBSERVE__NONE;
    uint32_t target = at->is_found ? node_of(p, 1, at->node[1]) : OBSERVE__NONE;
    uint32_t blamed = target != OBSERVE__NONE ? target : golden;
    if (blamed == OBSERVE__NONE || blamed > p->broken || (!forward && has_forward_suspect(s, part)))
        return MS_OK;
    enum cmp_why why = !forward                  ? CMP_WHY_BRANCH
                       : target == OBSERVE__NONE ? CMP_WHY_MISSING
                       : golden == OBSERVE__NONE ? CMP_WHY_EXTRA
                                                 : CMP_WHY_VALUE;
    bool is_pair = p->nodes.p[blamed].id[0] == at->node[0];
    if (why == CMP_WHY_VALUE && is_pair && is_noise(&p->nodes.p[blamed]))
        return MS_OK;
    return add_parting(s, part, blamed, why, golden, err);
}

static bool is_lost(const struct observe__part *p, unsigned side, uint32_t id)
{
    return id != OBSERVE__NONE && (p->losses[side][id] & OBSERVE__LOST) != 0;
}

/* Tells whether a suspect is an operator whose result both sides have, so that its partner is another one, or
 * whose partner is of another framework and differs as kernels do. Where gradients of parameters differ, one of an
 * operator counts. */
static bool is_false_pair(const struct observe__part *p, const struct source__raw *r)
{
    const struct observe__node *n = &p->nodes.p[r->node];
    bool is_alone = n->id[0] == OBSERVE__NONE || n->id[1] == OBSERVE__NONE;
    bool is_noise_behind_log = !r->forward && n->out < gradient_noise(p);
    bool is_apart = is_alone || n->out > far || n->out < (float)observe__rule.exact_series ||
                    is_noise_behind_log;
    return r->why == CMP_WHY_VALUE && n->kind == PROBE_NODE_API && is_apart &&
           (r->forward || do_gradients_agree(p)) && !is_lost(p, 0, n->id[0]) &&
           !is_lost(p, 1, n->id[1]);
}

/* Tells whether the end of the forward pass depends on a node's result through lost values alone. */
static bool does_last(const struct observe__part *p, unsigned side, uint32_t id)
{
    return id != OBSERVE__NONE &&
           (p->last_forward[side] == OBSERVE__NONE || id > p->last_forward[side] ||
            (p->losses[side][id] & OBSERVE__LASTS));
}

/* Tells whether a suspect of the forward pass computes in another way what the other side computes: it is an
 * operator of one side alone or has another one as its partner, and its result does not last. Casts that drop
 * digits compute less: a sum with larger values hides what they drop. */
static bool is_other_way(const struct observe__part *p, const struct source__raw *r)
{
    const struct observe__node *n = &p->nodes.p[r->node];
    bool is_meant = r->why == CMP_WHY_MISSING || r->why == CMP_WHY_EXTRA ||
                    r->why == CMP_WHY_INPUT ||
                    (r->why == CMP_WHY_VALUE && observe__is_other_operator(p, n));
    return is_meant && !source__is_reverted_cast(r) && r->forward && n->kind == PROBE_NODE_API &&
           do_gradients_agree(p) && !does_last(p, 0, n->id[0]) && !does_last(p, 1, n->id[1]);
}

/* Rule: where no values and no gradients part, operators that have each other's values elsewhere, or that compute the
 * same in another way, are no suspects. */
static void drop_false_pairs(struct cmp_source *s, uint32_t part)
{
    const struct observe__part *p = s->parts.p[part];
    size_t n = 0;
    if (p->ends_differ || p->starts_differ || p->parting.is_found || p->backward_parting.is_found)
        return;
    for (size_t i = 0; i < s->raws.n; i++) {
        const struct source__raw *r = &s->raws.p[i];
        if (r->part != part || (!is_false_pair(p, r) && !is_other_way(p, r)))
            s->raws.p[n++] = *r;
    }
    s->raws.n = n;
}

enum ms_rc source__check_parting(struct cmp_source *s, uint32_t part, bool explained,
                                 struct ms_err *err)
{
    const struct observe__part *p = s->parts.p[part];
    if (p->losses[0] == NULL || p->batches != 0)
        return MS_OK;
    drop_false_pairs(s, part);
    MS_TRY(check_updates(s, part, err));
    return explained || p->starts_differ ? MS_OK : check_parting(s, part, err);
}
