/* SPDX-License-Identifier: MIT
 *
 * attr_rules: judges what is known of a node besides values: plain arguments, shapes, types and
 * requires_grad.
 */
#include "compare/source/attr_rules.h"
#include "probe/base/assert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Returns SOURCE__NUM if the node's output differs by more than its input, else cls. */
static enum source__class class_of(const struct source__judge *j, const struct observe__node *n,
                                   enum source__class cls)
{
    bool effect =
        n->out > 1.5F * fmaxf(n->in, n->floor) || (j->all_exact && n->in == 0 && n->out > 0);
    effect |= n->rho_norm > observe__rule.norm_effect && n->out_norm > observe__rule.norm_least;
    return effect ? SOURCE__NUM : cls;
}

static double strength_of(const struct observe__node *n)
{
    return fmax(1, log10(fmax(n->rho, 1)));
}

static enum ms_dtype parse_dtype(struct ms_str text)
{
    if (text.n > 2 && text.p[0] == '"')
        text = ms_str_sub(text, 1, text.n - 1);
    return ms_dtype_parse(text);
}

/* Tells whether the two types of a cast are the types in which the runs compute, a systemic
 * difference and not a fault. */
static bool names_systemic(const struct source__judge *j, const struct observe__leaf *l)
{
    if (l->texts == OBSERVE__NONE)
        return false;
    const struct observe__value_texts *texts = &j->p->texts.p[l->texts];
    enum ms_dtype golden = parse_dtype(texts->text[0]), target = parse_dtype(texts->text[1]);
    return golden != MS_DT_NONE && target != MS_DT_NONE && j->systemic[golden][target];
}

static bool parse_number(struct ms_str text, double *out)
{
    char copy[64], *end;
    if (text.p == NULL || text.n == 0 || text.n >= sizeof copy)
        return false;
    bool quoted = text.p[0] == '"' && text.n > 2;
    memcpy(copy, text.p + quoted, text.n - 2 * quoted);
    copy[text.n - 2 * quoted] = 0;
    *out = strtod(copy, &end);
    return end != copy && *end == 0;
}

/* Tells whether the argument that one side lacks is there under another path with the same text: one
 * side gives it by position, the other by keyword. */
static bool is_given_otherwise(const struct source__judge *j, const struct observe__node *n,
                               const struct observe__leaf *l)
{
    const struct observe__value_texts *texts = &j->p->texts.p[l->texts];
    unsigned has = texts->text[1].p != NULL;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf && texts->text[1 - has].p == NULL; i++) {
        const struct observe__leaf *o = &j->p->leaves.p[i];
        const struct observe__value_texts *other =
            (o->flags & OBSERVE__PLAINLY) && o->texts != OBSERVE__NONE ? &j->p->texts.p[o->texts]
                                                                       : NULL;
        if (other != NULL && other->text[has].p == NULL &&
            ms_str_eq(other->text[1 - has], texts->text[has]))
            return true;
    }
    return false;
}

/* Tells whether an argument differs only in form: mask constants, all of which a softmax turns into
 * zero; or, if the outputs agree, a switch such as inplace or an argument that one side leaves at
 * its default. */
static bool is_same_argument(const struct source__judge *j, const struct observe__node *n,
                             const struct observe__leaf *l)
{
    static const double mask = -1e4;
    static const double last_digits = 1e-13; /* 1 - 0.999 is 0.0010000000000000009 */
    double value[2];
    if (l->texts == OBSERVE__NONE)
        return false;
    const struct observe__value_texts *texts = &j->p->texts.p[l->texts];
    bool numbers =
        parse_number(texts->text[0], &value[0]) && parse_number(texts->text[1], &value[1]);
    if (numbers && ((value[0] <= mask && value[1] <= mask) ||
                    fabs(value[0] - value[1]) <= last_digits * fabs(value[0])))
        return true;
    if (is_given_otherwise(j, n, l))
        return true;
    bool alone = texts->text[0].p == NULL || texts->text[1].p == NULL;
    for (unsigned s = 0; s < 2 && !alone; s++)
        alone =
            ms_str_eq(texts->text[s], MS_STR("true")) || ms_str_eq(texts->text[s], MS_STR("false"));
    return alone && class_of(j, n, SOURCE__SOFT) == SOURCE__SOFT &&
           n->out <= observe__rule.forward[j->tensor] * fmaxf(n->in, n->floor);
}

/* Tells whether an operator that computes, as topk, makes another shape from inputs of equal shapes. */
static bool changes_shape(const struct source__judge *j, const struct observe__node *n)
{
    bool view = (j->p->ops.p[n->op].flags & OBSERVE__VIEW) != 0;
    return !view && n->dir == PROBE_FORWARD && (n->attrs_out & OBSERVE__SHAPE) &&
           (n->attrs_in & OBSERVE__SHAPE) == 0;
}

/* Rule: a plain argument differs. The same argument may differ in every call; only the first is
 * reported. */
enum ms_rc source__check_scalar(struct source__judge *j, uint32_t i, uint32_t leaf,
                                struct ms_err *err)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    const struct observe__leaf *l = &j->p->leaves.p[leaf];
    char key[64];
    bool added;
    if (!(l->attrs & OBSERVE__SCALAR) || names_systemic(j, l) || is_same_argument(j, n, l))
        return MS_OK;
    enum source__class cls = class_of(j, n, changes_shape(j, n) ? SOURCE__NUM : SOURCE__SOFT);
    if (cls == SOURCE__SOFT && observe__is_other_operator(j->p, n))
        return MS_OK; /* einsum for linear has other arguments */
    bool view = (j->p->ops.p[n->op].flags & OBSERVE__VIEW) != 0;
    if (cls == SOURCE__SOFT && view && (n->attrs_in & OBSERVE__SHAPE))
        return MS_OK; /* dimensions have other numbers behind another permutation */
    int len = snprintf(key, sizeof key, "%u/%u/%u/%x", n->op, n->dir, l->path, l->value);
    if (ms_map_put_copy(&j->scalars, (struct ms_str){key, (uint32_t)len}, j->arena, &added) ==
        MS_MAP_NONE)
        return ms_no_memory(err);
    if (!added)
        return MS_OK;
    struct source__raw raw = source__raw_of(n, CMP_WHY_SCALAR, cls, strength_of(n));
    raw.leaf = leaf;
    return source__add_suspect(j, i, raw, err);
}

/* Reads the next number of a shape such as [4,12,1]; returns false at its end. */
static bool next_size(struct ms_str text, uint32_t *at, uint64_t *size)
{
    while (*at < text.n && (text.p[*at] < '0' || text.p[*at] > '9'))
        ++*at;
    *size = 0;
    bool found = *at < text.n;
    for (; *at < text.n && text.p[*at] >= '0' && text.p[*at] <= '9'; ++*at)
        *size = *size * 10 + (uint64_t)(text.p[*at] - '0');
    return found;
}

/* Tells whether the shapes differ only in dimensions of size one, which operators repeat as often
 * as the other operand needs. */
static bool is_broadcast(const struct source__judge *j, const struct observe__leaf *l)
{
    if (l->texts == OBSERVE__NONE)
        return false;
    const struct observe__value_texts *texts = &j->p->texts.p[l->texts];
    uint64_t a = 1, b = 1;
    uint32_t at[2] = {0, 0};
    bool more[2] = {texts->text[0].p != NULL, texts->text[1].p != NULL};
    while (more[0] && more[1] && (a == b || a == 1 || b == 1)) {
        more[0] = next_size(texts->text[0], &at[0], &a);
        more[1] = next_size(texts->text[1], &at[1], &b);
    }
    return more[0] == more[1] && (a == b || a == 1 || b == 1);
}

/* Tells whether the output differs by no more than the rounding of another kernel. */
static bool is_rounding(const struct source__judge *j, const struct observe__node *n)
{
    bool known = (n->flags & OBSERVE__OUT_MEASURED) && (n->flags & OBSERVE__OUT_FLAGGED) == 0;
    return known && n->dir == PROBE_FORWARD && n->out <= observe__rule.forward[j->tensor] * n->tiny;
}

static enum ms_rc add_attrs_suspect(struct source__judge *j, uint32_t i, unsigned attrs,
                                    uint32_t leaf, struct ms_err *err)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    bool hard = (attrs & (OBSERVE__SHAPE | OBSERVE__DTYPE)) != 0;
    enum cmp_why why = attrs & OBSERVE__SHAPE   ? CMP_WHY_SHAPE
                       : attrs & OBSERVE__DTYPE ? CMP_WHY_DTYPE
                                                : CMP_WHY_GRAD;
    struct source__raw raw = source__raw_of(n, why, hard ? SOURCE__HARD : SOURCE__SOFT, 1);
    raw.cls = (uint8_t)class_of(j, n, (enum source__class)raw.cls);
    raw.s = (float)strength_of(n);
    raw.leaf = leaf;
    /* Versions of an operator record gradients at different places. */
    bool form = attrs == OBSERVE__SHAPE && is_broadcast(j, &j->p->leaves.p[leaf]);
    bool agrees = raw.cls != SOURCE__NUM || is_rounding(j, n);
    if (agrees && (n->dir == PROBE_BACKWARD || observe__is_other_operator(j->p, n) || form))
        return MS_OK;
    j->attr_seen = true;
    return source__add_suspect(j, i, raw, err);
}

/* Tells whether requires_grad differs on an input but not on the output that it comes from: an
 * operation in between, which no dump records, has detached the gradient. */
static bool is_cut(const struct source__judge *j, const struct observe__node *n,
                   const struct observe__leaf *l)
{
    uint32_t maker = l->maker[1];
    if (maker == OBSERVE__NONE || maker != l->maker[0] || n->dir != PROBE_FORWARD)
        return false;
    return (j->p->nodes.p[maker].attrs_out & OBSERVE__GRAD) == 0;
}

enum ms_rc source__check_attrs(struct source__judge *j, uint32_t i, struct ms_err *err)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    unsigned kinds = OBSERVE__SHAPE | OBSERVE__DTYPE | OBSERVE__GRAD;
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct observe__leaf *l = &j->p->leaves.p[k];
        unsigned attrs = source__attrs(j, l) & kinds;
        bool out = (l->flags & OBSERVE__IS_OUT) != 0;
        if (n->recomputed)
            attrs &= ~(unsigned)OBSERVE__GRAD; /* the recomputation has the gradient */
        if (out)
            attrs &= ~(unsigned)n->attrs_in;
        bool root = (l->flags & OBSERVE__ROOT) && !j->attr_seen;
        bool cut = !out && (attrs & OBSERVE__GRAD) && is_cut(j, n, l);
        if (attrs != 0 && (out || root || cut))
            return add_attrs_suspect(j, i, attrs, k, err);
    }
    return MS_OK;
}
