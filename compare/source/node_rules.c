/* SPDX-License-Identifier: MIT
 *
 * node_rules: judges every node by its inputs and by the noise before it.
 *
 * Pass 1 computes for each node the difference of its inputs (`in`), of its outputs (`out`) and the
 * difference that noise explains (`floor`). Pass 2 applies the rules, which need the usual gain of
 * backward operators from pass 1. Each rule is a function of judge and node.
 */
#include "compare/source/node_rules.h"
#include "compare/source/attr_rules.h"
#include "compare/source/border.h"
#include "compare/source/bypass.h"
#include "compare/source/fading.h"
#include "compare/source/input_rules.h"
#include "compare/source/node_weigh.h"
#include "compare/source/order_rules.h"
#include "compare/source/regions.h"
#include "compare/source/unexplained.h"
#include "compare/source/update_rules.h"
#include "probe/base/assert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- limits -------------------------------------------------------------- */

/* Tells whether rules apply to a node. Modules are ignored where operators are recorded. */
static bool is_judged(const struct source__judge *j, const struct observe__node *n)
{
    return n->kind != PROBE_NODE_MODULE || !j->p->has_apis;
}

/* Tells whether the node's backward hardly amplifies differences, so that limits for low precision
 * can be lower. */
static bool is_calm(const struct source__judge *j, const struct observe__node *n)
{
    unsigned op = j->p->ops.p[n->op].flags;
    return observe__is_backward(n) && n->kind == PROBE_NODE_API && j->low &&
           (op & (OBSERVE__WILD | OBSERVE__SWITCH)) == 0;
}

static double limit_of(const struct source__judge *j, const struct observe__node *n)
{
    if (n->kind == PROBE_NODE_PGRAD)
        return observe__rule.gradients;
    if (observe__is_even(j->p, n))
        return observe__rule.forward[j->tensor];
    if (is_calm(j, n))
        return fmin(j->backward_factor, observe__rule.backward_calm[j->tensor]);
    if (observe__is_backward(n))
        return j->backward_factor;
    double low = j->low && !j->tensor ? observe__rule.forward_low : 1;
    unsigned op = j->p->ops.p[n->op].flags;
    if (n->in > 0 && ((op & OBSERVE__NORMS) || (j->low && (op & OBSERVE__MASKS))))
        low *= observe__rule.forward_few;
    double usual = fmin(observe__rule.usual_times * j->usual[n->op], observe__rule.usual_most);
    return fmax(observe__rule.forward[j->tensor] * (n->young ? observe__rule.start : low),
                n->floor > n->tiny ? usual : 0);
}

static double norm_limit_of(const struct source__judge *j, const struct observe__node *n)
{
    if (!observe__is_backward(n) && n->kind != PROBE_NODE_PGRAD)
        return observe__rule.norm_forward;
    if (observe__is_even(j->p, n))
        return observe__rule.norm_even;
    return is_calm(j, n) ? observe__rule.norm_calm : observe__rule.norm_backward;
}

/* Tells whether the norm changed by more than chance explains. */
static bool is_norm_off(const struct source__judge *j, const struct observe__node *n)
{
    double least = observe__rule.norm_least;
    if (is_calm(j, n) && !observe__is_even(j->p, n))
        least = fmax(least, observe__rule.norm_units * n->unit);
    return n->rho_norm > norm_limit_of(j, n) && n->out_norm > least && !n->young;
}

/* Remembers a call that was exact, or looks it up. The key is operator, direction and the sizes of
 * inputs and outputs, because all of them select the kernel. */
static enum ms_rc remember_exact(struct source__judge *j, const struct observe__node *n,
                                 bool *known, struct ms_err *err)
{
    char key[64];
    uint64_t shape = 0;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &j->p->leaves.p[i];
        shape = shape * 1000003 + (uint64_t)l->count + l->dtype[1] +
                (l->flags & OBSERVE__IS_OUT ? 1U << 20 : 0);
    }
    int len = snprintf(key, sizeof key, "%u/%u/%llx", n->op, n->dir, (unsigned long long)shape);
    struct ms_str k = {key, (uint32_t)len};
    *known = ms_map_get(&j->exact, k) != MS_MAP_NONE;
    if (n->out == 0 && !*known && ms_map_put_copy(&j->exact, k, j->arena, NULL) == MS_MAP_NONE)
        return ms_no_memory(err);
    return MS_OK;
}

/* Tells whether all differing inputs (or outputs: made) differ only in the last digits of their
 * sums. */
static bool is_resummed(const struct source__judge *j, const struct observe__node *n, bool made)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &j->p->leaves.p[i];
        bool out = (l->flags & OBSERVE__IS_OUT) != 0;
        if (out == made && l->e != 0 && (l->flags & OBSERVE__RESUMMED) == 0)
            return false;
    }
    return true;
}

/* Tells whether the node depends on the output of the first inexact operator. */
static bool is_behind(const struct source__judge *j, const struct observe__node *n)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &j->p->leaves.p[i];
        if ((l->flags & OBSERVE__IS_OUT) || l->maker[1] == OBSERVE__NONE)
            continue;
        if (l->maker[1] == j->first_inexact || (j->p->nodes.p[l->maker[1]].flags & OBSERVE__BEHIND))
            return true;
    }
    return false;
}

/* Rule: the operator reorders its values. Statistics then differ only by the order of summation.
 * Runs that were exact so far show this, and the strength is taken from the next operator that
 * mixes elements. */
static enum ms_rc check_order(struct source__judge *j, uint32_t i, struct ms_err *err)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    uint32_t from = j->first_inexact;
    if (j->tensor || j->inexact != 1 || i == from || n->in > n->tiny || j->dirtiest > n->tiny ||
        j->p->nodes.p[from].out > observe__rule.resummed || !is_behind(j, n) ||
        !is_resummed(j, n, false))
        return MS_OK;
    struct source__raw raw =
        source__raw_of(&j->p->nodes.p[from], CMP_WHY_PRECEDENT, SOURCE__NUM, log10(n->rho));
    return source__add_suspect(j, from, raw, err);
}

/* Tells whether a difference cannot be noise: bit-equal inputs give bit-equal outputs, except where
 * a gradient is summed. For statistics, the difference must be larger than equal statistics of the
 * inputs can hide. */
static bool is_no_noise(const struct source__judge *j, const struct observe__node *n)
{
    float read, made;
    bool other = j->p->cross || (n->attrs_in & (OBSERVE__SHAPE | OBSERVE__DTYPE));
    if (other || n->in > 0 || n->out <= (j->tensor ? 0 : observe__rule.hidden))
        return false;
    observe__count_elements(j->p, n, &read, &made);
    return (j->p->ops.p[n->op].flags & OBSERVE__EXACT) &&
           (!observe__is_backward(n) || made >= read);
}

/* Tells whether the runs may already have had tiny differences. Statistics sometimes agree by
 * chance although rounding differs, and another number of threads changes only some sums.
 * Low-precision values hide smaller differences until one of them rounds the other way, which
 * happens to about one in as many values as were equal before. */
static bool may_be_rounding(const struct source__judge *j, const struct observe__node *n)
{
    bool reordered = true, sums = (j->p->ops.p[n->op].flags & OBSERVE__EXACT) == 0;
    double turned = 0, values = 0;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &j->p->leaves.p[i];
        bool differ;
        double unit = observe__roundoff(l, &differ);
        if ((l->flags & OBSERVE__IS_OUT) == 0 || l->e == 0)
            continue;
        reordered &= (l->flags & OBSERVE__RESUMMED) != 0;
        turned += unit > 0 ? l->count * (l->e / unit) * (l->e / unit) : HUGE_VAL;
        values += l->count;
    }
    if (!j->tensor)
        return n->out <= observe__rule.exact && !reordered &&
               (j->exact_nodes < observe__rule.start_few || sums);
    return turned <= observe__rule.turned_most &&
           turned * j->exact_values <= observe__rule.turned_chance * values;
}

/* Tells whether an operator of two programs may round otherwise than its partner: it is another one, or reads what one
 * side alone has computed in other steps. */
static bool may_round_otherwise(const struct source__judge *j, const struct observe__node *n)
{
    const unsigned moves = OBSERVE__VIEW | OBSERVE__EXACT;
    bool may = j->p->cross && observe__is_other_operator(j->p, n);
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf && j->p->cross; i++) {
        const struct observe__leaf *l = &j->p->leaves.p[i];
        const struct observe__node *from =
            l->maker[1] != OBSERVE__NONE ? &j->p->nodes.p[l->maker[1]] : NULL;
        may |= (l->flags & OBSERVE__IS_OUT) == 0 && from != NULL && from->id[0] == OBSERVE__NONE &&
               (j->p->ops.p[from->op].flags & moves) == 0;
    }
    return may;
}

/* Counts the low-precision nodes and values that were equal so far. */
static void count_exact(struct source__judge *j, const struct observe__node *n)
{
    bool differ;
    j->exact_nodes += (n->flags & OBSERVE__OUT_MEASURED) != 0;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &j->p->leaves.p[i];
        unsigned want = OBSERVE__IS_OUT | OBSERVE__MEASURED;
        if ((l->flags & want) == want && observe__roundoff(l, &differ) > 0)
            j->exact_values += l->count;
    }
}

/* Tells whether the output has the digits of a lower type while all inputs have more. Behind
 * low-precision values this proves nothing: some of them pass through unchanged and may be the
 * extremes. */
static bool drops_digits(const struct source__judge *j, const struct observe__node *n)
{
    bool coarse = false, fine = false;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &j->p->leaves.p[i];
        if ((l->flags & OBSERVE__REAL) == 0)
            continue;
        if (l->flags & OBSERVE__IS_OUT)
            coarse |= (l->flags & OBSERVE__COARSE) != 0;
        else if ((l->flags & OBSERVE__FINE) == 0)
            return false;
        else
            fine = true;
    }
    return coarse && fine && n->unit == 0 && n->kind == PROBE_NODE_API && n->dir == PROBE_FORWARD;
}

/* Tells whether a node after the backward pass, such as a step of the optimizer, only carries a
 * difference of gradients on. The optimizer divides gradients by their size, so the smallest, which
 * are rounding noise, become as large as all others. Its output is therefore judged only if its
 * inputs agree exactly or the whole output changed by one factor. */
static bool follows_gradients(const struct source__judge *j, uint32_t i)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    if (i < j->after_backward || n->in == 0)
        return false;
    bool scaled = false;
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct observe__leaf *l = &j->p->leaves.p[k];
        scaled |= (l->flags & OBSERVE__IS_OUT) && !isnan(l->scale) &&
                  fabs(l->scale - 1) > 100 * fmaxf(n->floor, n->in);
    }
    return !scaled;
}

/* Tells whether a node is the backward of a cast that changes no type on one side. Such a cast
 * returns its argument, so what is recorded as its backward is that of the operator before it. */
static bool is_void_cast(const struct source__judge *j, const struct observe__node *n)
{
    if (!observe__is_backward(n) || (j->p->ops.p[n->op].flags & OBSERVE__CAST) == 0 ||
        n->forward == OBSERVE__NONE)
        return false;
    const struct observe__node *f = &j->p->nodes.p[n->forward];
    uint8_t in[2] = {MS_DT_NONE, MS_DT_NONE}, out[2] = {MS_DT_NONE, MS_DT_NONE};
    for (uint32_t i = f->leaf; i < f->leaf + f->nleaf; i++) {
        const struct observe__leaf *l = &j->p->leaves.p[i];
        uint8_t *t = l->flags & OBSERVE__IS_OUT ? out : in;
        if (l->flags & OBSERVE__REAL && t[0] == MS_DT_NONE)
            memcpy(t, l->dtype, sizeof in);
    }
    return in[0] == out[0] || in[1] == out[1];
}

/* Tells whether an operator multiplies a value by itself, which also multiplies the difference. */
static bool is_power(const struct source__judge *j, const struct observe__node *n)
{
    return (j->p->ops.p[n->op].flags & OBSERVE__POWER) != 0;
}

/* Adds a node whose output differs. Between two programs, an operator that the target leaves out
 * directly before the node is the suspect. */
static enum ms_rc add_value_suspect(struct source__judge *j, uint32_t i, struct ms_err *err)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    struct source__raw raw = source__raw_of(n, CMP_WHY_VALUE, SOURCE__NUM, log10(n->rho));
    raw.may_read_other_order = source__may_read_other_order(j, i);
    bool is_across = j->p->cross && n->dir == PROBE_FORWARD;
    uint32_t leaf, bypassed = is_across ? source__bypassed_before(j->p, i, &leaf) : OBSERVE__NONE;
    if (bypassed == OBSERVE__NONE)
        return source__add_suspect(j, i, raw, err);
    struct observe__leaf *l = &j->p->leaves.p[leaf];
    l->e = fmaxf(l->e, n->out);
    raw.why = CMP_WHY_MISSING;
    raw.leaf = leaf;
    return source__add_suspect(j, bypassed, raw, err);
}

/* Tells whether the outputs of a node cannot be judged by its inputs: a backward that reads a gradient of
 * another shape, as of a part of the batch, or values that are taken apart, whose order the statistics
 * of the whole do not show. */
static bool is_of_another_part(const struct source__judge *j, const struct observe__node *n)
{
    if (observe__is_backward(n))
        return (n->attrs_in & OBSERVE__SHAPE) != 0;
    return n->in <= n->tiny && ms_str_is(probe_name_last(j->p->ops.p[n->op].name), "unbind");
}

/* Tells whether another output has on the golden side what this one has in the target, and the other way. */
static bool has_place_elsewhere(const struct observe__part *p, const struct observe__node *n,
                                const struct observe__leaf *l)
{
    bool is_found = false, is_kept = false;
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct observe__leaf *other = &p->leaves.p[k];
        if ((other->flags & OBSERVE__IS_OUT) == 0)
            continue;
        is_found |= other->value == l->target;
        is_kept |= other->target == l->value;
    }
    return is_found && is_kept;
}

/* Tells whether an operator on a list of tensors has the same list in another order: parameters were registered in
 * another one. */
static bool is_list_reordered(const struct source__judge *j, const struct observe__node *n)
{
    if (!ms_str_starts(probe_name_last(j->p->ops.p[n->op].name), MS_STR("_foreach_")))
        return false;
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct observe__leaf *l = &j->p->leaves.p[k];
        if ((l->flags & OBSERVE__IS_OUT) && l->e > 0 && !has_place_elsewhere(j->p, n, l))
            return false;
    }
    return true;
}

static enum ms_rc check_output(struct source__judge *j, uint32_t i, struct ms_err *err)
{
    struct observe__node *n = &j->p->nodes.p[i];
    bool known = false, exact_so_far = j->all_exact;
    if (j->all_exact && (n->flags & OBSERVE__OUT_MEASURED))
        MS_TRY(remember_exact(j, n, &known, err));
    if (observe__is_backward(n) && (n->flags & OBSERVE__OUT_MEASURED))
        n->rho /= j->class_gain[n->op];
    if ((n->flags & OBSERVE__OUT_FLAGGED) && !(n->flags & OBSERVE__IN_FLAGGED))
        return source__add_suspect(j, i, source__raw_of(n, CMP_WHY_FLAG, SOURCE__NUM, 4), err);
    if (j->p->mode == PROBE_MODE_MD5) {
        bool differs = n->out > 0 && n->in == 0 && (n->flags & OBSERVE__OUT_MEASURED);
        return differs ? source__add_suspect(
                             j, i, source__raw_of(n, CMP_WHY_DIFFERS, SOURCE__NUM, 3), err)
                       : MS_OK;
    }
    bool gradient = n->dir == PROBE_BACKWARD || n->kind == PROBE_NODE_PGRAD;
    bool broken =
        (n->flags & OBSERVE__IN_FLAGGED) && n->in == 0; /* the inputs cannot be compared */
    if (broken || follows_gradients(j, i) || is_void_cast(j, n) || is_of_another_part(j, n) ||
        is_list_reordered(j, n))
        return MS_OK;
    double noise = n->in > 0 ? observe__rule.backward_noisy : observe__rule.backward_least;
    if (n->rho > limit_of(j, n) && (!gradient || n->out > noise)) {
        MS_TRY(check_order(j, i, err));
        MS_TRY(source__check_reordered(j, i, err));
        return add_value_suspect(j, i, err);
    }
    if (is_norm_off(j, n) && !is_power(j, n)) {
        struct source__raw raw = source__raw_of(n, CMP_WHY_NORM, SOURCE__NUM, log10(n->rho_norm));
        raw.factor = n->rho_norm;
        return source__add_suspect(j, i, raw, err);
    }
    if (drops_digits(j, n) && (!j->p->frameworks || n->rho > 1)) /* 1 itself has few digits */
        return source__add_suspect(j, i, source__raw_of(n, CMP_WHY_ROUNDED, SOURCE__NUM, 2), err);
    if ((n->flags & OBSERVE__TURNED) && n->rho > 2 && n->out > observe__rule.turned_least)
        return source__add_suspect(
            j, i, source__raw_of(n, CMP_WHY_VALUE, SOURCE__NUM, log10(n->rho)), err);
    double least = gradient ? observe__rule.exact : 0; /* gradients are summed in any order */
    /* Kernels of two frameworks round differently, if only in some calls. */
    if (!j->p->frameworks && exact_so_far && n->out > fmax(least, observe__rule.shown) &&
        (known || is_no_noise(j, n)) && !may_be_rounding(j, n) && !may_round_otherwise(j, n))
        return source__add_suspect(j, i, source__raw_of(n, CMP_WHY_PRECEDENT, SOURCE__NUM, 1), err);
    return MS_OK;
}

/* ---- pass 2 -------------------------------------------------------------- */

/* Returns the cast directly before this cast, when the target alone has both. */
static uint32_t cast_before(const struct source__judge *j, const struct observe__node *n)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &j->p->leaves.p[i];
        if ((l->flags & OBSERVE__IS_OUT) || l->maker[1] == OBSERVE__NONE)
            continue;
        const struct observe__node *from = &j->p->nodes.p[l->maker[1]];
        if (from < n && from->id[0] == OBSERVE__NONE &&
            (j->p->ops.p[from->op].flags & OBSERVE__CAST))
            return l->maker[1];
    }
    return OBSERVE__NONE;
}

/* Rule: two casts in a row. If the sides compute in different types, one additional cast is normal,
 * but a cast that the next one reverts only drops digits. */
static enum ms_rc check_cast(struct source__judge *j, uint32_t i, struct ms_err *err)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    uint32_t before = n->id[0] == OBSERVE__NONE ? cast_before(j, n) : OBSERVE__NONE;
    if (before == OBSERVE__NONE)
        return MS_OK;
    struct source__raw raw = source__raw_of(&j->p->nodes.p[before], CMP_WHY_EXTRA, SOURCE__HARD, 1);
    MS_TRY(source__add_suspect(j, before, raw, err));
    return source__add_suspect(j, i, source__raw_of(n, CMP_WHY_EXTRA, SOURCE__STRUCTURE, 0), err);
}

/* Rule for two programs: an additional operator is normal, but two casts in a row that lose digits
 * are a suspect. */
static enum ms_rc check_cast_across(struct source__judge *j, uint32_t i, struct ms_err *err)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    double past = fmax(n->in, observe__rule.exact);
    bool cast = n->id[0] == OBSERVE__NONE && n->dir == PROBE_FORWARD &&
                (j->p->ops.p[n->op].flags & OBSERVE__CAST);
    if (!cast || !(n->out > observe__rule.forward[j->tensor] * past) ||
        cast_before(j, n) == OBSERVE__NONE)
        return MS_OK;
    uint32_t before = cast_before(j, n);
    struct source__raw raw = source__raw_of(n, CMP_WHY_EXTRA, SOURCE__HARD, log10(n->out / past));
    return source__add_suspect(j, before, raw, err);
}

/* Tells whether a node behind a module makes its value: some dumps have a module before its operators. */
static bool is_made_behind(const struct source__judge *j, uint32_t node,
                           const struct observe__leaf *of)
{
    enum { NEAR = 2048 };
    const struct observe__leaf *end = j->p->leaves.p + j->p->leaves.n;
    const struct observe__node *n = &j->p->nodes.p[node];
    for (const struct observe__leaf *l = j->p->leaves.p + n->leaf + n->nleaf;
         l < end && l < of + NEAR; l++) {
        if ((l->flags & OBSERVE__IS_OUT) && l->value == of->value)
            return true;
    }
    return false;
}

/* Tells whether no recorded operator of the target made a value of a module, while one that agrees made the
 * golden value, or none did: what made it is then recorded on neither side. */
static bool is_made_unseen(const struct source__judge *j, uint32_t node,
                           const struct observe__leaf *l)
{
    if (l->maker[1] != OBSERVE__NONE)
        return false;
    return l->maker[0] == OBSERVE__NONE ? j->dirtiest == 0 && !is_made_behind(j, node, l)
                                        : source__is_clean(j, l->maker[0]);
}

/* Tells whether neither side records an operator that made an output of a module. */
static bool works_unseen(const struct source__judge *j, uint32_t node)
{
    const struct observe__node *n = &j->p->nodes.p[node];
    bool any = false;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &j->p->leaves.p[i];
        if ((l->flags & OBSERVE__IS_OUT) == 0)
            continue;
        if (l->maker[0] != OBSERVE__NONE || l->maker[1] != OBSERVE__NONE ||
            is_made_behind(j, node, l))
            return false;
        any |= (l->flags & OBSERVE__REAL) != 0;
    }
    return any;
}

/* Rule: a parameter differs of a module that does its work in operators that no dump records. */
static enum ms_rc check_own_parameters(struct source__judge *j, uint32_t i, struct ms_err *err)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    const unsigned want = OBSERVE__IS_PARAM | OBSERVE__ROOT;
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf && !j->p->cross; k++) {
        if ((j->p->leaves.p[k].flags & want) == want)
            MS_TRY(source__check_root(j, i, k, err));
    }
    return MS_OK;
}

/* Rule: a module outputs a value that no operator inside it made, while the golden module outputs what its last one
 * made: an unrecorded operator may have changed it. Where neither side records one, the module does the work. */
static enum ms_rc check_module(struct source__judge *j, uint32_t i, struct ms_err *err)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    double limit = observe__rule.forward[j->tensor] * fmaxf(n->in, n->floor);
    if (works_unseen(j, i))
        MS_TRY(check_own_parameters(j, i, err));
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct observe__leaf *l = &j->p->leaves.p[k];
        unsigned want = OBSERVE__IS_OUT | OBSERVE__REAL | OBSERVE__MEASURED;
        if ((l->flags & want) != want || !(l->e > limit) || !is_made_unseen(j, i, l))
            continue;
        return source__add_suspect(
            j, i, source__raw_of(n, CMP_WHY_VALUE, SOURCE__NUM, log10(n->rho)), err);
    }
    return MS_OK;
}

/* Returns an input of a node that another node's output comes to than on the golden side; OBSERVE__NONE: none is. */
static uint32_t rewired_leaf(const struct source__judge *j, const struct observe__node *n)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &j->p->leaves.p[i];
        if ((l->flags & OBSERVE__IS_OUT) == 0 && l->maker[0] != l->maker[1])
            return i;
    }
    return OBSERVE__NONE;
}

/* Another position is a cause like others where the node reads other values for it, and nothing before it differs. */
static struct source__raw raw_of_moved(const struct source__judge *j, const struct observe__node *n,
                                       uint32_t leaf)
{
    const double least = observe__rule.forward[j->tensor] * n->floor;
    if (n->dir != PROBE_FORWARD || !(j->p->leaves.p[leaf].e > least) || j->dirtiest > least)
        return source__raw_of(n, CMP_WHY_MOVED, SOURCE__STRUCTURE, 0);
    struct source__raw raw = source__raw_of(n, CMP_WHY_MOVED, SOURCE__NUM, log10(n->in / least));
    raw.leaf = leaf;
    return raw;
}

static enum ms_rc check_structure(struct source__judge *j, uint32_t i, struct ms_err *err)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    bool extra = n->id[0] == OBSERVE__NONE, missing = n->id[1] == OBSERVE__NONE;
    bool cast = (j->p->ops.p[n->op].flags & OBSERVE__CAST) && j->mixed;
    if (n->moved) {
        const uint32_t leaf = rewired_leaf(j, n);
        return leaf != OBSERVE__NONE ? source__add_suspect(j, i, raw_of_moved(j, n, leaf), err)
                                     : MS_OK;
    }
    if (j->p->cross)
        return check_cast_across(j, i, err);
    if ((!extra && !missing) || n->dir != PROBE_FORWARD ||
        (j->p->has_apis && n->kind != PROBE_NODE_API))
        return MS_OK;
    if (cast)
        return check_cast(j, i, err);
    enum cmp_why why = extra ? CMP_WHY_EXTRA : CMP_WHY_MISSING;
    bool first = n->region == i && n->structure == OBSERVE__HARMFUL;
    /* An unread result can only have an effect where a value comes from outside the dump. */
    bool unread = i >= j->after_backward ? isnan(n->border) : !n->is_read && n->backward != 0;
    if (n->region == i && unread)
        j->loose = i;
    return first ? source__add_suspect(j, i, source__raw_of(n, why, SOURCE__STRUCTURE, 0), err)
                 : MS_OK;
}

static enum ms_rc check_node(struct source__judge *j, uint32_t i, struct ms_err *err)
{
    struct observe__node *n = &j->p->nodes.p[i];
    if (!source__is_comparable(j, i))
        return MS_OK;
    if (!is_judged(j, n))
        return n->dir == PROBE_FORWARD && n->id[0] != OBSERVE__NONE ? check_module(j, i, err)
                                                                    : MS_OK;
    MS_TRY(check_structure(j, i, err));
    bool is_known = n->id[0] != OBSERVE__NONE || (n->flags & OBSERVE__OUT_MEASURED);
    if (!is_known || n->id[1] == OBSERVE__NONE)
        return MS_OK;
    MS_TRY(source__check_inputs(j, i, err));
    MS_TRY(source__check_permutation(j, i, err));
    MS_TRY(source__check_update(j, i, err));
    MS_TRY(check_output(j, i, err));
    return source__check_attrs(j, i, err);
}

/* Counts the operators that were inexact on their own; one of them ends the exact part of the runs.
 * An operator that depends on the first of them and differs only in the last digits of its sums is
 * not counted. */
static void count_inexact(struct source__judge *j, uint32_t i)
{
    struct observe__node *n = &j->p->nodes.p[i];
    bool behind = j->inexact != 0 && is_behind(j, n);
    ms_assert(j->inexact == 0 || j->first_inexact < i);
    if (behind)
        n->flags |= OBSERVE__BEHIND;
    if (n->out > 0 && (behind ? !is_resummed(j, n, true) : n->in == 0) && j->inexact++ == 0)
        j->first_inexact = i;
}

static enum ms_rc check_nodes(struct source__judge *j, struct ms_err *err)
{
    j->all_exact = true;
    j->first_inexact = j->loose = OBSERVE__NONE;
    for (uint32_t i = 0; i < j->p->nodes.n; i++) {
        const struct observe__node *n = &j->p->nodes.p[i];
        j->judged = i;
        MS_TRY(check_node(j, i, err));
        if (!source__is_comparable(j, i))
            continue;
        j->dirtiest = fmaxf(j->dirtiest, fmaxf(n->in, n->out));
        if (is_judged(j, n)) {
            j->flag_seen |= (n->flags & (OBSERVE__IN_FLAGGED | OBSERVE__OUT_FLAGGED)) != 0;
            count_inexact(j, i);
        }
        /* Another implementation rounds differently, even if statistics do not show it. */
        bool parts = n->dir == PROBE_FORWARD && (n->attrs_out & OBSERVE__SHAPE);
        j->all_exact &= n->in == 0 && n->out == 0 && !n->replaced && !parts;
        if (j->all_exact && is_judged(j, n))
            count_exact(j, n);
    }
    j->judged = OBSERVE__NONE;
    return MS_OK;
}

static enum ms_rc weigh_and_check(struct source__judge *j, struct ms_err *err)
{
    bool whole = j->p->batches == 0 && !j->p->cross && j->p->mode != PROBE_MODE_MD5;
    const size_t known = j->s->raws.n;
    MS_TRY(source__weigh_part(j, err));
    if (whole)
        source__mark_fading(j);
    if (j->p->batches == 0)
        MS_TRY(source__judge_regions(j, err));
    source__weigh_gradients(j);
    MS_TRY(check_nodes(j, err));
    MS_TRY(source__check_update_calls(j, err));
    if (whole)
        source__drop_ended(j);
    source__drop_inner_gradients(j);
    return j->p->batches == 0 ? source__check_unexplained(j, known, err) : MS_OK;
}

enum ms_rc source__judge_part(struct cmp_source *s, uint32_t part,
                              const struct source__comms *comms, bool explained, struct ms_err *err)
{
    ms_assert(part < s->parts.n);
    struct observe__part *p = s->parts.p[part];
    struct source__judge *j = ms_alloc(sizeof *j);
    if (j == NULL)
        return ms_no_memory(err);
    *j = (struct source__judge){.s = s,
                                .judged = OBSERVE__NONE,
                                .p = p,
                                .part = part,
                                .comms = comms,
                                .explained = explained,
                                .tensor = p->mode == PROBE_MODE_TENSOR,
                                .arena = ms_arena_new((size_t)1 << 30)};
    enum ms_rc rc = j->arena != NULL ? weigh_and_check(j, err) : ms_no_memory(err);
    ms_map_free(&j->exact);
    ms_map_free(&j->scalars);
    ms_arena_free(j->arena);
    ms_free(j->class_gain);
    ms_free(j->usual);
    ms_free(j);
    return rc;
}
