/* SPDX-License-Identifier: MIT
 *
 * input_rules: judges what a node reads: values that no node made, and where the others come from.
 */
#include "compare/source/input_rules.h"
#include "compare/observe/node_facts.h"
#include "compare/source/attr_rules.h"
#include "probe/base/assert.h"

#include <math.h>

/* ---- roots --------------------------------------------------------------- */

/* A normalization that runs twice reads averages that the first call has updated. */
static const float times_average = 10;

/* Tells whether a leaf is the running mean or variance of a normalization: its second or third
 * input. */
static bool is_running_average(const struct source__judge *j, const struct observe__node *n,
                               uint32_t leaf)
{
    struct ms_str path = j->p->paths.p[j->p->leaves.p[leaf].path];
    return (j->p->ops.p[n->op].flags & OBSERVE__NORMS) &&
           (ms_str_eq(path, MS_STR("input.1")) || ms_str_eq(path, MS_STR("input.2")));
}

/* Returns how far parameters of two programs are apart at the start of a step by the noise of the updates
 * before it; 0: they are equal, or too far apart for noise. One of four may be ten times farther than the
 * others, as one with small gradients. */
static double noise_of_updates(const struct observe__part *p)
{
    const double most = 1e-4, times = 10;
    return p->cross && p->start_gap < most ? times * p->start_gap : 0;
}

enum ms_rc source__check_root(struct source__judge *j, uint32_t i, uint32_t leaf,
                              struct ms_err *err)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    const struct observe__leaf *l = &j->p->leaves.p[leaf];
    bool differ;
    double unit = observe__roundoff(l, &differ);
    bool known = !isnan(j->p->root_floor);
    double t = fmax(source__tiny(j, unit, differ), known ? j->p->root_floor : 0);
    if (observe__is_backward(n)) /* a gradient of a loss that is not recorded, such as ctc_loss */
        t = fmax(t, observe__rule.backward_least / observe__rule.forward[j->tensor]);
    t = fmax(t, noise_of_updates(j->p) / observe__rule.forward[j->tensor]);
    double tn = fmax(fmax(t, 1e-6), known ? j->p->root_floor_norm : 0);
    bool off = (l->flags & OBSERVE__FLAGGED) || l->e > observe__rule.forward[j->tensor] * t ||
               l->en > observe__rule.parameter_norm * tn;
    if (j->p->mode == PROBE_MODE_MD5)
        off = l->e > 0 && !(known && j->p->root_floor > 0);
    bool parameter = (l->flags & OBSERVE__IS_PARAM) != 0;
    if (parameter && is_running_average(j, n, leaf) && l->e <= times_average * j->dirtiest)
        return MS_OK;
    if (!parameter && i >= j->after_backward && n->kind != PROBE_NODE_PGRAD &&
        j->p->mode != PROBE_MODE_MD5)
        return MS_OK; /* source__check_update judges it against all gradients */
    bool start = parameter && j->p->other_start && (l->flags & OBSERVE__FLAGGED) == 0;
    if (!off || j->explained || start)
        return MS_OK;
    bool first = j->dirtiest <= l->e / 10 && !j->flag_seen;
    bool broken = (l->flags & OBSERVE__FLAGGED) && (n->flags & OBSERVE__OUT_FLAGGED);
    bool alone = known || broken || l->e > observe__rule.unexplained_input;
    bool suspect = parameter || (first && alone && n->kind != PROBE_NODE_PGRAD);
    if (!suspect)
        return MS_OK;
    double s = l->flags & OBSERVE__FLAGGED ? 4 : log10(fmax(l->e / t, 1));
    if (j->p->mode == PROBE_MODE_MD5)
        s = 3;
    struct source__raw raw =
        source__raw_of(n, parameter ? CMP_WHY_PARAMETER : CMP_WHY_INPUT, SOURCE__NUM, s);
    raw.leaf = leaf;
    raw.in = l->e;
    raw.floor = (float)t;
    raw.factor = (float)(l->e / t);
    return source__add_suspect(j, parameter ? i : source__blame_loose(j, i, &raw), raw, err);
}

/* ---- wiring -------------------------------------------------------------- */

/* Returns the first of several consecutive operators without a partner. */
static uint32_t first_unmatched(const struct source__judge *j, uint32_t node)
{
    for (unsigned steps = 0; steps < 64; steps++) {
        const struct observe__node *n = &j->p->nodes.p[node];
        uint32_t before = OBSERVE__NONE;
        for (uint32_t i = n->leaf; i < n->leaf + n->nleaf && before == OBSERVE__NONE; i++) {
            const struct observe__leaf *l = &j->p->leaves.p[i];
            if ((l->flags & OBSERVE__IS_OUT) == 0 && l->maker[1] != OBSERVE__NONE &&
                l->maker[1] < node && j->p->nodes.p[l->maker[1]].id[0] == OBSERVE__NONE)
                before = l->maker[1];
        }
        if (before == OBSERVE__NONE)
            break;
        node = before;
    }
    return node;
}

/* Returns the region that made a value, if operators without a partner made it on both sides; else
 * OBSERVE__NONE. */
static uint32_t region_of(const struct source__judge *j, uint32_t golden, uint32_t target)
{
    const struct observe__node *nodes = j->p->nodes.p;
    bool both = golden != OBSERVE__NONE && target != OBSERVE__NONE &&
                nodes[golden].id[1] == OBSERVE__NONE && nodes[target].id[0] == OBSERVE__NONE;
    return both ? nodes[golden].region : OBSERVE__NONE;
}

/* Tells whether both sides read outputs of one node that agrees: an input that differs is then another
 * of its outputs. */
static bool is_other_output(const struct source__judge *j, uint32_t golden, uint32_t target)
{
    unsigned outputs = 0;
    if (golden == OBSERVE__NONE || golden != target || !source__is_clean(j, golden))
        return false;
    const struct observe__node *n = &j->p->nodes.p[golden];
    if (n->kind != PROBE_NODE_API || n->dir != PROBE_FORWARD)
        return false;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        unsigned want = OBSERVE__IS_OUT | OBSERVE__MEASURED;
        outputs += (j->p->leaves.p[i].flags & want) == want;
    }
    return outputs > 1;
}

/* Returns the operator of the target alone that writes into a tensor in place and returns nothing, between
 * a node and the last operator of both sides before it; or OBSERVE__NONE. */
static uint32_t writer_before(const struct source__judge *j, uint32_t node)
{
    for (uint32_t i = node; i-- > 0;) {
        const struct observe__node *n = &j->p->nodes.p[i];
        struct ms_str name = probe_name_last(j->p->ops.p[n->op].name);
        if (n->kind != PROBE_NODE_API)
            continue;
        if (n->id[0] != OBSERVE__NONE || n->dir != PROBE_FORWARD)
            break;
        if (ms_str_eq(name, MS_STR("__setitem__")))
            return i;
    }
    return OBSERVE__NONE;
}

/* Rule: a value that is not finite comes from outside the dump where the golden side reads what an
 * operator made: something unrecorded has written it. */
static enum ms_rc check_flagged_input(struct source__judge *j, uint32_t i, uint32_t leaf,
                                      struct ms_err *err)
{
    const struct observe__leaf *l = &j->p->leaves.p[leaf];
    if (j->flag_seen || l->maker[0] == OBSERVE__NONE || l->maker[1] != OBSERVE__NONE ||
        !source__is_clean(j, l->maker[0]))
        return MS_OK;
    uint32_t writer = writer_before(j, i);
    enum cmp_why why = writer != OBSERVE__NONE ? CMP_WHY_EXTRA : CMP_WHY_INPUT;
    struct source__raw raw = source__raw_of(&j->p->nodes.p[i], why, SOURCE__NUM, 4);
    if (writer == OBSERVE__NONE) {
        raw.leaf = leaf;
        return source__add_suspect(j, i, raw, err);
    }
    raw.reader = i;
    return source__add_suspect(j, writer, raw, err);
}

static enum ms_rc check_wiring(struct source__judge *j, uint32_t i, uint32_t leaf,
                               struct ms_err *err)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    const struct observe__leaf *l = &j->p->leaves.p[leaf];
    double limit = observe__rule.forward[j->tensor] * n->floor;
    uint32_t golden = l->maker[0], target = l->maker[1];
    bool effect = l->e > limit && n->out > limit && (l->flags & OBSERVE__MEASURED);
    if (n->moved || observe__is_other_operator(j->p, n))
        return MS_OK;
    if (l->flags & OBSERVE__FLAGGED)
        return check_flagged_input(j, i, leaf, err);
    if (!effect || (golden == target && !is_other_output(j, golden, target)))
        return MS_OK;
    bool unread = j->loose != OBSERVE__NONE && i >= j->after_backward;
    if (i >= j->after_backward && !unread)
        return MS_OK; /* a gradient that is only rounding noise cannot be traced on either side */
    bool target_clean = target == OBSERVE__NONE || source__is_clean(j, target);
    if (golden == OBSERVE__NONE && target_clean && unread) {
        struct source__raw raw =
            source__raw_of(n, CMP_WHY_WIRING, SOURCE__NUM, log10(l->e / n->floor));
        raw.leaf = leaf;
        return source__add_suspect(j, source__blame_loose(j, i, &raw), raw, err);
    }
    bool golden_clean = golden == OBSERVE__NONE || source__is_clean(j, golden);
    if (!target_clean || (!golden_clean && target == OBSERVE__NONE) || golden == OBSERVE__NONE)
        return MS_OK;
    uint32_t blamed = i;
    enum cmp_why why = CMP_WHY_WIRING;
    uint32_t region = region_of(j, golden, target);
    if (region != OBSERVE__NONE) {
        blamed = region;
        why = j->p->nodes.p[region].id[0] == OBSERVE__NONE ? CMP_WHY_EXTRA : CMP_WHY_MISSING;
    } else if (target == OBSERVE__NONE && writer_before(j, i) != OBSERVE__NONE) {
        blamed = writer_before(j, i);
        why = CMP_WHY_EXTRA;
    } else if (target != OBSERVE__NONE && j->p->nodes.p[target].id[0] == OBSERVE__NONE) {
        blamed = first_unmatched(j, target);
        why = CMP_WHY_EXTRA;
    } else if (j->p->nodes.p[golden].id[1] == OBSERVE__NONE) {
        blamed = golden;
        why = CMP_WHY_MISSING;
    }
    struct source__raw raw = source__raw_of(n, why, SOURCE__NUM, log10(l->e / n->floor));
    raw.leaf = leaf;
    raw.in = l->e;
    raw.factor = l->e / n->floor;
    return source__add_suspect(j, blamed, raw, err);
}

/* ---- all inputs ---------------------------------------------------------- */

enum ms_rc source__check_inputs(struct source__judge *j, uint32_t i, struct ms_err *err)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct observe__leaf *l = &j->p->leaves.p[k];
        if (l->flags & OBSERVE__PLAINLY)
            MS_TRY(source__check_scalar(j, i, k, err));
        if ((l->flags & OBSERVE__IS_OUT) || l->row[0] == OBSERVE__NONE)
            continue;
        if (l->flags & OBSERVE__ROOT)
            MS_TRY(source__check_root(j, i, k, err));
        else if (n->dir == PROBE_FORWARD && !j->p->cross)
            MS_TRY(check_wiring(j, i, k, err));
    }
    return MS_OK;
}
