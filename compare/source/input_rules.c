/* SPDX-License-Identifier: MIT
 *
 * input_rules: judges what a node reads: values that no node made, and where the others come from.
 */
#include "compare/source/input_rules.h"
#include "compare/source/attr_rules.h"
#include "compare/source/node_facts.h"
#include "probe/base/assert.h"

#include <math.h>

/* ---- roots --------------------------------------------------------------- */

/* A normalization that runs twice reads averages that the first call has updated. */
static const float times_average = 10;

/* Tells whether a leaf is the running mean or variance of a normalization: its second or third
 * input. */
static bool is_running_average(const struct source__judge *j, const struct source__node *n,
                               uint32_t leaf)
{
    struct ms_str path = j->p->paths.p[j->p->leaves.p[leaf].path];
    return (j->p->ops.p[n->op].flags & SOURCE__NORMS) &&
           (ms_str_eq(path, MS_STR("input.1")) || ms_str_eq(path, MS_STR("input.2")));
}

/* Returns how far parameters of two programs are apart at the start of a step by the noise of the updates
 * before it; 0: they are equal, or too far apart for noise. One of four may be ten times farther than the
 * others, as one with small gradients. */
static double noise_of_updates(const struct source__part *p)
{
    const double most = 1e-4, times = 10;
    return p->cross && p->start_gap < most ? times * p->start_gap : 0;
}

enum ms_rc source__check_root(struct source__judge *j, uint32_t i, uint32_t leaf,
                              struct ms_err *err)
{
    const struct source__node *n = &j->p->nodes.p[i];
    const struct source__leaf *l = &j->p->leaves.p[leaf];
    bool differ;
    double unit = source__roundoff(l, &differ);
    bool known = !isnan(j->p->root_floor);
    double t = fmax(source__tiny(j, unit, differ), known ? j->p->root_floor : 0);
    if (source__is_backward(n)) /* a gradient of a loss that is not recorded, such as ctc_loss */
        t = fmax(t, source__rule.backward_least / source__rule.forward[j->tensor]);
    t = fmax(t, noise_of_updates(j->p) / source__rule.forward[j->tensor]);
    double tn = fmax(fmax(t, 1e-6), known ? j->p->root_floor_norm : 0);
    bool off = (l->flags & SOURCE__FLAGGED) || l->e > source__rule.forward[j->tensor] * t ||
               l->en > source__rule.parameter_norm * tn;
    if (j->p->mode == PROBE_MODE_MD5)
        off = l->e > 0 && !(known && j->p->root_floor > 0);
    bool parameter = (l->flags & SOURCE__IS_PARAM) != 0;
    if (parameter && is_running_average(j, n, leaf) && l->e <= times_average * j->dirtiest)
        return MS_OK;
    if (!parameter && i >= j->after_backward && n->kind != PROBE_NODE_PGRAD &&
        j->p->mode != PROBE_MODE_MD5)
        return MS_OK; /* source__check_update judges it against all gradients */
    bool start = parameter && j->p->other_start && (l->flags & SOURCE__FLAGGED) == 0;
    if (!off || j->explained || start)
        return MS_OK;
    bool first = j->dirtiest <= l->e / 10 && !j->flag_seen;
    bool alone = known || l->e > source__rule.unexplained_input;
    bool suspect = parameter || (first && alone && n->kind != PROBE_NODE_PGRAD);
    if (!suspect)
        return MS_OK;
    double s = l->flags & SOURCE__FLAGGED ? 4 : log10(fmax(l->e / t, 1));
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
        const struct source__node *n = &j->p->nodes.p[node];
        uint32_t before = SOURCE__NONE;
        for (uint32_t i = n->leaf; i < n->leaf + n->nleaf && before == SOURCE__NONE; i++) {
            const struct source__leaf *l = &j->p->leaves.p[i];
            if ((l->flags & SOURCE__IS_OUT) == 0 && l->maker[1] != SOURCE__NONE &&
                l->maker[1] < node && j->p->nodes.p[l->maker[1]].id[0] == SOURCE__NONE)
                before = l->maker[1];
        }
        if (before == SOURCE__NONE)
            break;
        node = before;
    }
    return node;
}

/* Returns the region that made a value, if operators without a partner made it on both sides; else
 * SOURCE__NONE. */
static uint32_t region_of(const struct source__judge *j, uint32_t golden, uint32_t target)
{
    const struct source__node *nodes = j->p->nodes.p;
    bool both = golden != SOURCE__NONE && target != SOURCE__NONE &&
                nodes[golden].id[1] == SOURCE__NONE && nodes[target].id[0] == SOURCE__NONE;
    return both ? nodes[golden].region : SOURCE__NONE;
}

/* Tells whether both sides read outputs of one node that agrees: an input that differs is then another
 * of its outputs. */
static bool is_other_output(const struct source__judge *j, uint32_t golden, uint32_t target)
{
    unsigned outputs = 0;
    if (golden == SOURCE__NONE || golden != target || !source__is_clean(j, golden))
        return false;
    const struct source__node *n = &j->p->nodes.p[golden];
    if (n->kind != PROBE_NODE_API || n->dir != PROBE_FORWARD)
        return false;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        unsigned want = SOURCE__IS_OUT | SOURCE__MEASURED;
        outputs += (j->p->leaves.p[i].flags & want) == want;
    }
    return outputs > 1;
}

/* Returns the operator of the target alone that writes into a tensor in place and returns nothing, between
 * a node and the last operator of both sides before it; or SOURCE__NONE. */
static uint32_t writer_before(const struct source__judge *j, uint32_t node)
{
    for (uint32_t i = node; i-- > 0;) {
        const struct source__node *n = &j->p->nodes.p[i];
        struct ms_str name = probe_name_last(j->p->ops.p[n->op].name);
        if (n->kind != PROBE_NODE_API)
            continue;
        if (n->id[0] != SOURCE__NONE || n->dir != PROBE_FORWARD)
            break;
        if (ms_str_eq(name, MS_STR("__setitem__")))
            return i;
    }
    return SOURCE__NONE;
}

/* Rule: a value that is not finite comes from outside the dump where the golden side reads what an
 * operator made: something unrecorded has written it. */
static enum ms_rc check_flagged_input(struct source__judge *j, uint32_t i, uint32_t leaf,
                                      struct ms_err *err)
{
    const struct source__leaf *l = &j->p->leaves.p[leaf];
    if (j->flag_seen || l->maker[0] == SOURCE__NONE || l->maker[1] != SOURCE__NONE ||
        !source__is_clean(j, l->maker[0]))
        return MS_OK;
    uint32_t writer = writer_before(j, i);
    enum cmp_why why = writer != SOURCE__NONE ? CMP_WHY_EXTRA : CMP_WHY_INPUT;
    struct source__raw raw = source__raw_of(&j->p->nodes.p[i], why, SOURCE__NUM, 4);
    if (writer == SOURCE__NONE) {
        raw.leaf = leaf;
        return source__add_suspect(j, i, raw, err);
    }
    raw.reader = i;
    return source__add_suspect(j, writer, raw, err);
}

static enum ms_rc check_wiring(struct source__judge *j, uint32_t i, uint32_t leaf,
                               struct ms_err *err)
{
    const struct source__node *n = &j->p->nodes.p[i];
    const struct source__leaf *l = &j->p->leaves.p[leaf];
    double limit = source__rule.forward[j->tensor] * n->floor;
    uint32_t golden = l->maker[0], target = l->maker[1];
    bool effect = l->e > limit && n->out > limit && (l->flags & SOURCE__MEASURED);
    if (n->moved || source__is_other_operator(j->p, n))
        return MS_OK;
    if (l->flags & SOURCE__FLAGGED)
        return check_flagged_input(j, i, leaf, err);
    if (!effect || (golden == target && !is_other_output(j, golden, target)))
        return MS_OK;
    bool unread = j->loose != SOURCE__NONE && i >= j->after_backward;
    if (i >= j->after_backward && !unread)
        return MS_OK; /* a gradient that is only rounding noise cannot be traced on either side */
    bool target_clean = target == SOURCE__NONE || source__is_clean(j, target);
    if (golden == SOURCE__NONE && target_clean && unread) {
        struct source__raw raw =
            source__raw_of(n, CMP_WHY_WIRING, SOURCE__NUM, log10(l->e / n->floor));
        raw.leaf = leaf;
        return source__add_suspect(j, source__blame_loose(j, i, &raw), raw, err);
    }
    bool golden_clean = golden == SOURCE__NONE || source__is_clean(j, golden);
    if (!target_clean || (!golden_clean && target == SOURCE__NONE) || golden == SOURCE__NONE)
        return MS_OK;
    uint32_t blamed = i;
    enum cmp_why why = CMP_WHY_WIRING;
    uint32_t region = region_of(j, golden, target);
    if (region != SOURCE__NONE) {
        blamed = region;
        why = j->p->nodes.p[region].id[0] == SOURCE__NONE ? CMP_WHY_EXTRA : CMP_WHY_MISSING;
    } else if (target == SOURCE__NONE && writer_before(j, i) != SOURCE__NONE) {
        blamed = writer_before(j, i);
        why = CMP_WHY_EXTRA;
    } else if (target != SOURCE__NONE && j->p->nodes.p[target].id[0] == SOURCE__NONE) {
        blamed = first_unmatched(j, target);
        why = CMP_WHY_EXTRA;
    } else if (j->p->nodes.p[golden].id[1] == SOURCE__NONE) {
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
    const struct source__node *n = &j->p->nodes.p[i];
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct source__leaf *l = &j->p->leaves.p[k];
        if (l->flags & SOURCE__PLAINLY)
            MS_TRY(source__check_scalar(j, i, k, err));
        if ((l->flags & SOURCE__IS_OUT) || l->row[0] == SOURCE__NONE)
            continue;
        if (l->flags & SOURCE__ROOT)
            MS_TRY(source__check_root(j, i, k, err));
        else if (n->dir == PROBE_FORWARD && !j->p->cross)
            MS_TRY(check_wiring(j, i, k, err));
    }
    return MS_OK;
}
