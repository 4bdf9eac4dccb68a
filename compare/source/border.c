/* SPDX-License-Identifier: MIT
 *
 * border: removes the suspects whose difference ends inside the step.
 *
 * A step of training hands on three kinds of values: those that no recorded operator reads, such as the
 * loss; the gradients of parameters; and what the update writes. Where all gradients agree, a difference
 * that no later value carries on is another formula for the same result, whatever lies between. This is
 * the one place where that is decided, after all rules and for the suspects of all of them.
 */
#include "compare/source/border.h"
#include "compare/align/likeness.h"
#include "compare/observe/node_facts.h"
#include "compare/source/update_rules.h"
#include "probe/base/assert.h"

#include <math.h>

/* Gradients agree up to this difference, or up to so many units of rounding of low types. 1e-3, which noise
 * behind another formula reaches, hides a GELU by tanh and an output rounded to fp16. */
static const double slight = 2e-5, units = 16;
/* A gradient that is zero by mathematics holds the rounding of its terms: a few units of float32 of the
 * largest gradient. */
static const double share_of_rounding = 0x1p-21;

/* ---- gradients of parameters ------------------------------------------------ */

struct agreement {
    const struct source__judge *j;
    float largest; /* norm of the largest gradient */
    bool any, off;
};

static void compare_gradient(struct agreement *a, const struct observe__node *n,
                             const struct observe__leaf *l)
{
    bool measured = (l->flags & OBSERVE__MEASURED) != 0;
    double most = fmax(fmax(slight, 2.0 * a->j->series), units * n->unit);
    bool rounding = (double)l->e * l->norm < share_of_rounding * a->largest;
    a->any |= measured;
    a->off |= (l->flags & OBSERVE__FLAGGED) || (measured && l->e > most && !rounding);
}

/* Visits the recorded gradients of parameters: those of modules, or those that enter the update, among which are
 * those of parameters in no module. Where the updates agree, these do. */
static void visit_gradients(struct agreement *a, bool modules, bool compare)
{
    const struct observe__part *p = a->j->p;
    for (uint32_t i = 0; i < p->nodes.n; i++) {
        const struct observe__node *n = &p->nodes.p[i];
        bool counts = modules ? n->kind == PROBE_NODE_PGRAD : source__is_update(a->j, i);
        if (!counts || n->id[0] == OBSERVE__NONE || n->id[1] == OBSERVE__NONE)
            continue;
        for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
            const struct observe__leaf *l = &p->leaves.p[k];
            if (!modules && !source__is_gradient(a->j, l))
                continue;
            if (compare)
                compare_gradient(a, n, l);
            else
                a->largest = fmaxf(a->largest, l->norm);
        }
    }
}

/* Adds the paths of the modules that a side calls. */
static bool put_modules(struct ms_map *called, const struct observe__part *p, unsigned side)
{
    for (size_t i = 0; i < p->names[side].n; i++) {
        const struct probe_name n = probe_name_parse(p->names[side].p[i]);
        if (n.kind == PROBE_NODE_MODULE && ms_map_put(called, n.path, NULL) == MS_MAP_NONE)
            return false;
    }
    return true;
}

/* Counts the gradients of parameters on one side that have no partner, though the other side calls their module: it is
 * frozen there. A module that is not called, as when its weights are merged into others, has no record. */
static size_t count_lacking(const struct observe__part *p, unsigned side, bool *has_partner)
{
    struct ms_map called = {0};
    size_t lacking = 0;
    for (size_t i = 0; i < p->nodes.n; i++) {
        const struct observe__node *n = &p->nodes.p[i];
        if (n->id[0] != OBSERVE__NONE && n->id[1] != OBSERVE__NONE)
            has_partner[n->id[side]] = true;
    }
    const bool by_name = put_modules(&called, p, 1 - side) && !p->cross;
    for (uint32_t i = 0; i < p->names[side].n; i++) {
        const struct probe_name n = probe_name_parse(p->names[side].p[i]);
        lacking += n.kind == PROBE_NODE_PGRAD && !has_partner[i] &&
                   (!by_name || ms_map_get(&called, n.path) != MS_MAP_NONE);
    }
    ms_map_free(&called);
    return lacking;
}

/* Tells whether one side has a gradient of a parameter that the other lacks: the parameter is frozen. */
static bool lacks_gradient(const struct observe__part *p)
{
    bool lacks = false;
    for (unsigned side = 0; side < 2 && !lacks; side++) {
        bool *has_partner = ms_calloc(p->names[side].n + 1, sizeof *has_partner);
        lacks = has_partner == NULL || count_lacking(p, side, has_partner) != 0;
        ms_free(has_partner);
    }
    return lacks;
}

bool source__do_gradients_agree(const struct source__judge *j)
{
    struct agreement a = {.j = j};
    for (unsigned modules = 2; modules-- > 0 && !a.off && !(a.any && j->p->do_updates_agree);) {
        visit_gradients(&a, modules, false);
        visit_gradients(&a, modules, true);
    }
    return a.any && !a.off;
}

/* Tells whether three in four gradients of parameters differ by the same factor. Gradients that are
 * zero by mathematics have none. */
static bool have_one_factor(const struct source__judge *j)
{
    size_t n = 0, fits = 0;
    float factor = NAN;
    for (size_t i = 0; i < j->p->nodes.n; i++) {
        const struct observe__node *node = &j->p->nodes.p[i];
        bool paired = node->id[0] != OBSERVE__NONE && node->id[1] != OBSERVE__NONE;
        for (uint32_t k = node->leaf; k < node->leaf + node->nleaf; k++) {
            const struct observe__leaf *l = &j->p->leaves.p[k];
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
        const struct observe__node *n = &j->p->nodes.p[i];
        bool update = n->kind == PROBE_NODE_API && n->dir == PROBE_FORWARD &&
                      n->id[0] != OBSERVE__NONE && n->id[1] != OBSERVE__NONE;
        for (uint32_t k = n->leaf; update && k < n->leaf + n->nleaf; k++) {
            const struct observe__leaf *l = &j->p->leaves.p[k];
            bool read = (l->flags & OBSERVE__IS_OUT) == 0 && (l->flags & OBSERVE__MEASURED);
            any |= read;
            if (read && ((l->flags & OBSERVE__FLAGGED) || l->e > fmax(slight, units * n->unit)))
                return false;
        }
    }
    return any;
}

/* ---- what ends inside the step ---------------------------------------------- */

/* Tells whether a parameter of a node differs, or one side lacks it: it is a mistake even where it has
 * no effect, as a bias of keys. */
static bool has_other_parameter(const struct source__judge *j, const struct observe__node *n)
{
    bool paired = n->id[0] != OBSERVE__NONE && n->id[1] != OBSERVE__NONE;
    for (uint32_t i = n->leaf; paired && i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &j->p->leaves.p[i];
        bool agrees = (l->flags & OBSERVE__MEASURED) && l->e <= n->floor;
        if ((l->flags & OBSERVE__IS_PARAM) && (l->flags & OBSERVE__ROOT) && !agrees)
            return true;
    }
    return false;
}

/* Tells whether two operators are of one known family: an addition, in place or not. */
static bool is_of_family(const struct source__judge *j, const struct observe__node *a,
                         const struct observe__node *b)
{
    const uint16_t family = j->p->ops.p[a->op].family;
    return family != ALIGN__FAM_UNKNOWN && j->p->ops.p[b->op].family == family;
}

/* Tells whether the target alone has an operator that may do the work of one that it lacks: its result is read, or
 * it is of the same family, as an addition in place for another. */
static bool has_substitute(const struct source__judge *j, const struct observe__node *missing)
{
    for (size_t i = 0; i < j->p->nodes.n; i++) {
        const struct observe__node *n = &j->p->nodes.p[i];
        if (n->id[0] == OBSERVE__NONE && n->kind == PROBE_NODE_API && n->dir == PROBE_FORWARD &&
            (n->is_read || is_of_family(j, n, missing)))
            return true;
    }
    return false;
}

/* Tells whether an operator makes a part of what the golden one makes, or what a sum is made of: its shape is
 * another, operators of one side alone read it, and no difference remains behind them. */
static bool is_part_of_form(const struct source__judge *j, uint32_t node)
{
    enum { NEAR = 256 };
    const struct observe__node *n = &j->p->nodes.p[node];
    if (!n->fades || n->id[0] == OBSERVE__NONE || n->id[1] == OBSERVE__NONE)
        return false;
    for (uint32_t i = node + 1; i < j->after_backward && i < node + NEAR; i++) {
        const struct observe__node *reader = &j->p->nodes.p[i];
        bool alone = reader->id[0] == OBSERVE__NONE || reader->id[1] == OBSERVE__NONE;
        for (uint32_t k = reader->leaf; alone && k < reader->leaf + reader->nleaf; k++) {
            const struct observe__leaf *l = &j->p->leaves.p[k];
            if ((l->flags & OBSERVE__IS_OUT) == 0 && (l->maker[0] == node || l->maker[1] == node))
                return true;
        }
    }
    return false;
}

/* Tells whether a suspect is a fact that no values decide: a shape, another parameter, an operator that the
 * target lacks and that neither another replaces nor the same values behind it. */
static bool is_fact(const struct source__judge *j, const struct source__raw *r)
{
    const struct observe__node *n = &j->p->nodes.p[r->node];
    bool missing =
        r->why == CMP_WHY_MISSING && n->structure != OBSERVE__HARMLESS && !has_substitute(j, n);
    bool shape = r->why == CMP_WHY_SHAPE || has_other_parameter(j, n);
    return missing || (shape && !is_part_of_form(j, r->node));
}

/* Tells whether requires_grad differs although all gradients agree: one side makes calls under no_grad, as an
 * evaluation before the step does, or data wants a gradient on one side alone. */
static bool is_without_graph(const struct source__judge *j, const struct source__raw *r)
{
    bool frozen = r->leaf != OBSERVE__NONE && (j->p->leaves.p[r->leaf].flags & OBSERVE__IS_PARAM);
    return r->why == CMP_WHY_GRAD && r->cls != SOURCE__NUM && !frozen;
}

/* Tells whether a result differs by no more than the rounding of another kernel. */
static bool agrees(const struct source__judge *j, const struct observe__node *n)
{
    bool known = (n->flags & OBSERVE__OUT_MEASURED) && (n->flags & OBSERVE__OUT_FLAGGED) == 0;
    return known && n->out <= observe__rule.forward[j->tensor] * n->tiny;
}

/* Tells whether a type differs that holds the same values: a mask of truth values for one of numbers, or more digits
 * than float32 has. */
static bool is_wider_type(const struct source__judge *j, const struct source__raw *r)
{
    if (r->why != CMP_WHY_DTYPE || r->leaf == OBSERVE__NONE || !agrees(j, &j->p->nodes.p[r->node]))
        return false;
    const struct observe__leaf *l = &j->p->leaves.p[r->leaf];
    bool real[2], fine[2];
    for (unsigned s = 0; s < 2; s++) {
        real[s] = ms_dtype_kind((enum ms_dtype)l->dtype[s]) == MS_DTK_FLOAT;
        fine[s] = real[s] && observe__unit(l->dtype[s]) == 0;
    }
    return (fine[0] && fine[1]) || (!real[0] && !real[1] && (l->flags & OBSERVE__ROOT));
}

/* Tells whether an argument means nothing: one side does not have it, or the operator reads other values. */
static bool is_of_other_call(const struct source__judge *j, const struct source__raw *r)
{
    const struct observe__node *n = &j->p->nodes.p[r->node];
    const uint32_t texts = r->leaf != OBSERVE__NONE ? j->p->leaves.p[r->leaf].texts : OBSERVE__NONE;
    bool is_absent = false;
    for (unsigned s = 0; s < 2 && texts != OBSERVE__NONE; s++) {
        const struct ms_str text = j->p->texts.p[texts].text[s];
        is_absent |= text.p == NULL || ms_str_is(text, "null"); /* a tensor stands there */
    }
    return is_absent || n->in > observe__rule.forward[j->tensor] * n->tiny;
}

/* Tells whether an argument alone says what is returned besides. */
static bool is_about_extras(const struct source__judge *j, const struct source__raw *r)
{
    static const struct ms_str name = MS_STR("need_weights");
    const uint32_t at = j->p->leaves.p[r->leaf].path;
    const struct ms_str path = at < j->p->paths.n ? j->p->paths.p[at] : MS_STR("");
    return ms_str_ends(path, name);
}

/* An equation says what an einsum is, as a name does of other operators. */
static bool is_named_einsum(const struct source__judge *j, const struct observe__node *n)
{
    return ms_str_is(probe_name_last(j->p->ops.p[n->op].name), "einsum");
}

/* Tells whether an operator has another argument and makes the same: it is another one, as a product with the inverse
 * for a quotient, it reads other values, as 8 times one sum is 16 times another, or one side does not have the
 * argument, as a mean over two axes is a mean of means. */
static bool is_other_form(const struct source__judge *j, const struct source__raw *r)
{
    const struct observe__node *n = &j->p->nodes.p[r->node];
    if (r->why != CMP_WHY_SCALAR || r->leaf == OBSERVE__NONE || !agrees(j, n))
        return false;
    return is_of_other_call(j, r) || observe__is_other_operator(j->p, n) || is_named_einsum(j, n) ||
           is_about_extras(j, r);
}

static bool is_alone(const struct observe__node *n)
{
    return (n->id[0] == OBSERVE__NONE) != (n->id[1] == OBSERVE__NONE);
}

/* Tells whether an operator of one side alone reads the result of one of its family, or one of its family reads its:
 * together they are one of the other side, as a mean of means is a mean over two axes. */
static bool has_kin(const struct source__judge *j, uint32_t node)
{
    enum { NEAR = 8 };
    const struct observe__node *nodes = j->p->nodes.p, *n = &nodes[node];
    const unsigned side = n->id[1] != OBSERVE__NONE;
    for (uint32_t i = node; i < j->after_backward && i < node + NEAR; i++) {
        for (uint32_t k = nodes[i].leaf; k < nodes[i].leaf + nodes[i].nleaf; k++) {
            const uint32_t maker = j->p->leaves.p[k].maker[side];
            const bool is_read = (j->p->leaves.p[k].flags & OBSERVE__IS_OUT) == 0 && maker < i;
            if (is_read && (i == node || maker == node) &&
                is_of_family(j, &nodes[maker], &nodes[i]))
                return true;
        }
    }
    return false;
}

/* Tells whether an operator of one side alone reads a value that differs from its partner: it completes another formula,
 * as the sum of scores and a mask where the golden side fills the scores. */
static bool completes_other(const struct source__judge *j, const struct observe__node *n)
{
    const unsigned side = n->id[1] != OBSERVE__NONE;
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct observe__leaf *l = &j->p->leaves.p[k];
        const uint32_t maker = l->maker[side];
        if ((l->flags & OBSERVE__IS_OUT) || maker >= j->after_backward)
            continue;
        const struct observe__node *m = &j->p->nodes.p[maker];
        if (!is_alone(m) && m->out > observe__rule.forward[j->tensor] * m->floor)
            return true;
    }
    return false;
}

/* Tells whether an operator casts its value, or gives it another shape. A copy does neither. */
static bool is_plain_form(const struct source__judge *j, const struct observe__node *n)
{
    const struct observe__op *op = &j->p->ops.p[n->op];
    const char *family = align__family_text(op->family);
    return (op->flags & OBSERVE__CAST) ||
           ((op->flags & OBSERVE__VIEW) && strcmp(family, "contiguous") != 0);
}

/* Counts the operators of one side alone in the region of a node. */
static unsigned region_size(const struct observe__part *p, const struct observe__node *n)
{
    unsigned size = 0;
    for (size_t i = 0; i < p->nodes.n; i++)
        size += is_alone(&p->nodes.p[i]) && p->nodes.p[i].region == n->region;
    return size;
}

/* Tells whether the operators around one that runs elsewhere are others than on the golden side: it is then not the
 * same call. */
static bool is_among_others(const struct source__judge *j, uint32_t node)
{
    enum { NEAR = 4 };
    const uint32_t first = node > NEAR ? node - NEAR : 0;
    for (uint32_t i = first; i < j->after_backward && i <= node + NEAR; i++) {
        if (is_alone(&j->p->nodes.p[i]) && j->p->nodes.p[i].kind == PROBE_NODE_API)
            return true;
    }
    return false;
}

/* Tells whether an operator takes elements out of a tensor, for which the other side may use indexing, which is often
 * not recorded. */
static bool is_selection(const struct source__judge *j, const struct observe__node *n)
{
    static const char *const names[] = {
        "index_select",  "gather", "embedding", "take",   "take_along_dim",
        "masked_select", "narrow", "select",    "unbind", NULL};
    return observe__is_named(j->p, n, names);
}

/* Tells whether a product of one side alone has operators of the other side alone near it, which may compute the same:
 * einsum for products and sums. */
static bool is_contraction(const struct source__judge *j, uint32_t node)
{
    enum { NEAR = 16 };
    static const char *const names[] = {"einsum", "matmul", "__matmul__", "bmm",
                                        "mm",     "dot",    "tensordot",  NULL};
    const struct observe__node *n = &j->p->nodes.p[node];
    const unsigned side = n->id[1] != OBSERVE__NONE;
    if (!observe__is_named(j->p, n, names))
        return false;
    for (uint32_t i = node > NEAR ? node - NEAR : 0; i < j->after_backward && i < node + NEAR;
         i++) {
        const struct observe__node *other = &j->p->nodes.p[i];
        if (is_alone(other) && other->id[side] == OBSERVE__NONE && other->kind == PROBE_NODE_API &&
            other->dir == PROBE_FORWARD)
            return true;
    }
    return false;
}

/* Tells whether what one side alone runs is another way to the same values, since all gradients agree: a view, a cast,
 * an operator in the place of another, a part of one, or a pass of its own, as an evaluation. A single operator
 * that fits nowhere is a fact. */
static bool is_another_form(const struct source__judge *j, uint32_t node)
{
    enum { PASS = 8 };
    const struct observe__node *n = &j->p->nodes.p[node];
    if (n->moved)
        return is_among_others(j, node);
    if (!is_alone(n))
        return false;
    const float border = n->region != OBSERVE__NONE ? j->p->nodes.p[n->region].border : NAN;
    if (n->id[1] == OBSERVE__NONE &&
        border <= observe__rule.forward[j->tensor] * observe__rule.exact)
        return true; /* the target reads the value from outside the dump */
    return n->replaced || is_plain_form(j, n) || has_kin(j, node) || completes_other(j, n) ||
           is_selection(j, n) || is_contraction(j, node) || region_size(j->p, n) >= PASS;
}

static double elements_of(struct ms_str shape)
{
    double n = 1, size = 0;
    for (uint32_t i = 0; i < shape.n; i++) {
        const bool is_digit = shape.p[i] >= '0' && shape.p[i] <= '9';
        size = is_digit ? 10 * size + (shape.p[i] - '0') : size;
        if (!is_digit && i != 0 && shape.p[i - 1] >= '0' && shape.p[i - 1] <= '9') {
            n *= size;
            size = 0;
        }
    }
    return n;
}

/* Tells whether the same elements have another shape, and the operator makes the same of them. */
static bool is_reshaped(const struct source__judge *j, const struct source__raw *r)
{
    if (r->why != CMP_WHY_SHAPE || r->leaf == OBSERVE__NONE || !agrees(j, &j->p->nodes.p[r->node]))
        return false;
    const uint32_t texts = j->p->leaves.p[r->leaf].texts;
    if (texts == OBSERVE__NONE)
        return false;
    const struct ms_str *text = j->p->texts.p[texts].text;
    return text[0].p != NULL && text[1].p != NULL && elements_of(text[0]) == elements_of(text[1]);
}

/* Tells whether a suspect behind the backward pass is another way to the same update, as clipping by hand. What one
 * side alone changes in place is a fact, since clipping hides that gradients were scaled, and so are another
 * rate, which the first step of Adam hides, and an operator within the steps, as the maximum of AMSGrad. */
static bool is_other_update(const struct source__judge *j, const struct source__raw *r)
{
    const struct observe__node *n = &j->p->nodes.p[r->node];
    if (!j->p->do_updates_agree)
        return false;
    switch ((enum cmp_why)r->why) {
    case CMP_WHY_MISSING:
    case CMP_WHY_EXTRA:
        return n->structure == OBSERVE__HARMFUL && !observe__is_in_place(j->p->ops.p[n->op].name);
    case CMP_WHY_SCALAR:
        return is_of_other_call(j, r);
    case CMP_WHY_MOVED:
    case CMP_WHY_WIRING:
    case CMP_WHY_PRECEDENT:
    case CMP_WHY_INPUT:
        return true;
    default:
        return false;
    }
}

/* Tells whether a call reads what another reads on the other side: the same other parameter, or values that differ
 * too. */
static bool is_mirrored(const struct source__judge *j, const struct source__raw *r, uint32_t other)
{
    const struct observe__node *n = &j->p->nodes.p[other];
    if (r->why == CMP_WHY_WIRING)
        return n->in > observe__rule.forward[j->tensor] * n->floor;
    const struct observe__leaf *mine = &j->p->leaves.p[r->leaf];
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct observe__leaf *l = &j->p->leaves.p[k];
        const bool is_other =
            l->path == mine->path && l->count == mine->count && l->value != mine->value;
        if (is_other && l->e > n->tiny && fabsf(l->e - mine->e) <= 1e-3F * mine->e)
            return true;
    }
    return false;
}

/* Tells whether two calls of an operator have changed places, as both branches of a sum of which the other is computed
 * first. */
static bool is_crossed(const struct source__judge *j, const struct source__raw *r)
{
    enum { NEAR = 64 };
    const struct observe__node *nodes = j->p->nodes.p;
    const uint32_t first = r->node > NEAR ? r->node - NEAR : 0;
    if (r->leaf == OBSERVE__NONE || (r->why != CMP_WHY_PARAMETER && r->why != CMP_WHY_WIRING))
        return false;
    for (uint32_t i = first; i < j->after_backward && i <= r->node + NEAR; i++) {
        if (i != r->node && nodes[i].op == nodes[r->node].op &&
            nodes[i].dir == nodes[r->node].dir && is_mirrored(j, r, i))
            return true;
    }
    return false;
}

/* Tells whether the losses of both sides agree: single numbers of the forward pass that nothing reads. */
static bool do_losses_agree(const struct source__judge *j)
{
    const unsigned want = OBSERVE__IS_OUT | OBSERVE__MEASURED;
    for (uint32_t i = 0; i < j->after_backward; i++) {
        const struct observe__node *n = &j->p->nodes.p[i];
        if (n->dir != PROBE_FORWARD || n->kind != PROBE_NODE_API || n->is_read || n->backward == 0)
            continue;
        for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
            const struct observe__leaf *l = &j->p->leaves.p[k];
            if (l->count == 1 && (l->flags & want) == want && l->e > fmax(slight, units * n->unit))
                return false;
        }
    }
    return true;
}

/* Tells whether a value differs inside a step that leaves the same on both sides: its loss, all gradients of parameters,
 * and what the update writes. It is another way to them, whatever its operators are. */
static bool is_without_effect(const struct source__judge *j, const struct source__raw *r)
{
    const bool measured =
        r->why == CMP_WHY_VALUE || r->why == CMP_WHY_PRECEDENT || r->why == CMP_WHY_NORM;
    return measured && j->p->do_updates_agree && do_losses_agree(j);
}

/* Values in another order show in no statistics but those of their reader. */
static bool does_end(const struct source__judge *j, const struct source__raw *r)
{
    const struct observe__node *nodes = j->p->nodes.p;
    if (r->part != j->part || nodes[r->node].kind == PROBE_NODE_PGRAD)
        return false;
    if (r->node >= j->after_backward)
        return is_other_update(j, r);
    if (r->reader != OBSERVE__NONE)
        return nodes[r->reader].fades;
    if (is_without_graph(j, r) || is_wider_type(j, r) || is_other_form(j, r) || is_crossed(j, r) ||
        is_reshaped(j, r) || is_without_effect(j, r))
        return true;
    if (!r->forward)
        return observe__is_backward(&nodes[r->node]);
    if (r->cls == SOURCE__STRUCTURE && is_another_form(j, r->node))
        return true;
    if (is_fact(j, r))
        return false;
    return nodes[r->node].fades || nodes[r->seen].fades || r->why == CMP_WHY_MISSING;
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
        bool is_inner = r->part == j->part && observe__is_backward(&j->p->nodes.p[r->node]) &&
                        r->why == CMP_WHY_VALUE;
        if (!is_inner)
            s->raws.p[n++] = *r;
    }
    ms_assert(n <= s->raws.n);
    s->raws.n = n;
}

void source__drop_ended(struct source__judge *j)
{
    struct cmp_source *s = j->s;
    size_t n = 0;
    if (!source__do_gradients_agree(j) || lacks_gradient(j->p))
        return;
    for (size_t i = 0; i < s->raws.n; i++) {
        if (!does_end(j, &s->raws.p[i]))
            s->raws.p[n++] = s->raws.p[i];
    }
    ms_assert(n <= s->raws.n);
    s->raws.n = n;
}
