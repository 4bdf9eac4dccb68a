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

/* Gradients agree up to this difference, or up to so many units of rounding of low types. */
static const double slight = 2e-5, units = 16;

enum state { UNKNOWN, AGREES, DIFFERS };

static enum state state_of(const struct source__judge *j, const struct source__node *n)
{
    if (n->flags & SOURCE__OUT_FLAGGED)
        return DIFFERS;
    if ((n->flags & SOURCE__OUT_MEASURED) == 0 || (n->attrs_out & SOURCE__SHAPE))
        return UNKNOWN;
    /* The noise of earlier nodes may contain the difference itself. */
    float root = isnan(j->p->root_floor) ? 0 : j->p->root_floor;
    return n->out <= source__rule.forward[j->tensor] * fmaxf(n->tiny, root) ? AGREES : DIFFERS;
}

/* Tells whether an operator of one side alone makes only values that are never traced to their readers:
 * truth values, integers and masks of -inf. */
static bool makes_masks(const struct source__part *p, const struct source__node *n)
{
    const unsigned side = n->id[1] != SOURCE__NONE;
    bool any = false;
    if (n->id[1 - side] != SOURCE__NONE)
        return false;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct source__leaf *l = &p->leaves.p[i];
        if ((l->flags & SOURCE__IS_OUT) == 0)
            continue;
        any = true;
        if (ms_dtype_kind((enum ms_dtype)l->dtype[side]) == MS_DTK_FLOAT && isfinite(l->norm))
            return false;
    }
    return any;
}

/* Adds to the nodes that made the inputs of a node what becomes of their values in it. */
static void tell_makers(struct source__part *p, uint32_t i, bool lasts)
{
    const struct source__node *n = &p->nodes.p[i];
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct source__leaf *l = &p->leaves.p[k];
        for (unsigned s = 0; s < 2 && (l->flags & SOURCE__IS_OUT) == 0; s++) {
            if (l->maker[s] != SOURCE__NONE && l->maker[s] < i)
                p->nodes.p[l->maker[s]].lasts |= lasts;
        }
    }
}

void source__mark_fading(struct source__judge *j)
{
    struct source__part *p = j->p;
    for (uint32_t i = (uint32_t)p->nodes.n; i-- > 0;) {
        struct source__node *n = &p->nodes.p[i];
        bool reads = n->dir == PROBE_FORWARD && i < j->after_backward &&
                     (n->kind == PROBE_NODE_API || !p->has_apis);
        if (!reads)
            continue;
        enum state s = state_of(j, n);
        bool through = n->lasts || (!n->is_read && !makes_masks(p, n));
        bool hides = (p->ops.p[n->op].flags & SOURCE__NORMS) && n->in > n->floor;
        n->fades = s != AGREES && !through;
        tell_makers(p, i, hides || (s != AGREES && through));
    }
}

bool source__do_gradients_agree(const struct source__judge *j)
{
    bool any = false;
    for (size_t i = 0; i < j->p->nodes.n; i++) {
        const struct source__node *n = &j->p->nodes.p[i];
        if (n->kind != PROBE_NODE_PGRAD || n->id[0] == SOURCE__NONE)
            continue;
        for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
            const struct source__leaf *l = &j->p->leaves.p[k];
            bool measured = (l->flags & SOURCE__MEASURED) != 0;
            any |= measured;
            double most = fmax(fmax(slight, 2.0 * j->series), units * n->unit);
            if ((l->flags & SOURCE__FLAGGED) || (measured && l->e > most))
                return false;
        }
    }
    return any;
}

/* Tells whether three in four gradients of parameters differ by the same factor. Gradients that are
 * zero by mathematics have none. */
static bool have_one_factor(const struct source__judge *j)
{
    size_t n = 0, fits = 0;
    float factor = NAN;
    for (size_t i = 0; i < j->p->nodes.n; i++) {
        const struct source__node *node = &j->p->nodes.p[i];
        bool paired = node->id[0] != SOURCE__NONE && node->id[1] != SOURCE__NONE;
        for (uint32_t k = node->leaf; k < node->leaf + node->nleaf; k++) {
            const struct source__leaf *l = &j->p->leaves.p[k];
            if (node->kind != PROBE_NODE_PGRAD || !paired || !(l->norm > 0))
                continue;
            factor = isnan(factor) ? l->scale : factor;
            n++;
            fits += fabsf(l->scale / factor - 1) < 1e-3F;
        }
    }
    return n != 0 && 4 * fits >= 3 * n;
}

bool source__is_rescaled(const struct source__judge *j)
{
    bool any = false;
    if (!have_one_factor(j))
        return false;
    for (uint32_t i = j->after_backward; i < j->p->nodes.n; i++) {
        const struct source__node *n = &j->p->nodes.p[i];
        bool update = n->kind == PROBE_NODE_API && n->dir == PROBE_FORWARD &&
                      n->id[0] != SOURCE__NONE && n->id[1] != SOURCE__NONE;
        for (uint32_t k = n->leaf; update && k < n->leaf + n->nleaf; k++) {
            const struct source__leaf *l = &j->p->leaves.p[k];
            bool read = (l->flags & SOURCE__IS_OUT) == 0 && (l->flags & SOURCE__MEASURED);
            any |= read;
            if (read && ((l->flags & SOURCE__FLAGGED) || l->e > fmax(slight, units * n->unit)))
                return false;
        }
    }
    return any;
}

/* Tells whether a parameter of a node differs, or one side lacks it: it is a mistake even where it has
 * no effect, as a bias of keys. */
static bool has_other_parameter(const struct source__judge *j, const struct source__node *n)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct source__leaf *l = &j->p->leaves.p[i];
        bool agrees = (l->flags & SOURCE__MEASURED) && l->e <= n->floor;
        if ((l->flags & SOURCE__IS_PARAM) && (l->flags & SOURCE__ROOT) && !agrees)
            return true;
    }
    return false;
}

static bool is_of_part(const struct source__judge *j, const struct source__raw *r)
{
    return r->part == j->part && r->forward && j->p->nodes.p[r->node].fades;
}

/* Tells whether the target alone has an operator: it may do the work of one that the target lacks. */
static bool has_substitute(const struct source__judge *j)
{
    for (size_t i = 0; i < j->p->nodes.n; i++) {
        const struct source__node *n = &j->p->nodes.p[i];
        if (n->id[0] == SOURCE__NONE && n->kind == PROBE_NODE_API && n->dir == PROBE_FORWARD &&
            n->is_read)
            return true;
    }
    return false;
}

/* Values in another order show in no statistics, so a suspect with a reader is no matter of fading. Nor
 * is a shape, nor an operator that the target lacks and nothing replaces: they are facts, not figures. */
static bool does_fade(const struct source__judge *j, const struct source__raw *r, bool substitute)
{
    if (r->is_other)
        return r->part == j->part && j->p->nodes.p[r->reader].fades;
    const bool is_fact = r->why == CMP_WHY_SHAPE || (r->why == CMP_WHY_MISSING && !substitute);
    return is_of_part(j, r) && r->reader == SOURCE__NONE && !is_fact &&
           !has_other_parameter(j, &j->p->nodes.p[r->node]);
}

/* Two frameworks record the gradient of a function at different operators inside it, as PyTorch that of
 * the log softmax for a cross entropy. Where all gradients of parameters agree, none was wrong. */
void source__drop_inner_gradients(struct source__judge *j)
{
    struct cmp_source *s = j->s;
    size_t n = 0;
    if (!j->p->frameworks || !source__do_gradients_agree(j))
        return;
    for (size_t i = 0; i < s->raws.n; i++) {
        const struct source__raw *r = &s->raws.p[i];
        bool is_inner = r->part == j->part && source__is_backward(&j->p->nodes.p[r->node]) &&
                        r->why == CMP_WHY_VALUE;
        if (!is_inner)
            s->raws.p[n++] = *r;
    }
    ms_assert(n <= s->raws.n);
    s->raws.n = n;
}

void source__drop_fading(struct source__judge *j)
{
    struct cmp_source *s = j->s;
    size_t n = 0;
    if (!source__do_gradients_agree(j))
        return;
    const bool substitute = has_substitute(j);
    for (size_t i = 0; i < s->raws.n; i++) {
        if (!does_fade(j, &s->raws.p[i], substitute))
            s->raws.p[n++] = s->raws.p[i];
    }
    ms_assert(n <= s->raws.n);
    s->raws.n = n;
}
