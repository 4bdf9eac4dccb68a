/* SPDX-License-Identifier: MIT
 *
 * update_rules: judges what happens to gradients and parameters after the backward pass.
 *
 * The optimizer works in place, so no recorded operator reads what it writes, and a variation
 * without an effect on recorded values looks the same as a missing step. Two rules therefore look at
 * what enters the update and at which updates are made.
 */
#include "compare/source/update_rules.h"
#include "probe/base/assert.h"

#include <math.h>

/* A gradient must differ by `least` of itself, by `times` what gradients of the backward pass differ
 * by, and by `share` of the largest gradient: gradients that are zero by mathematics hold only
 * rounding, and their relative difference means nothing. */
static const double least = 1e-3, times = 10, share = 1e-5, share_low = 0.02;

/* Another framework's optimizer has other operators, which visit parameters in another order; its results are
 * compared instead, see update_results.h. */
bool source__is_update(const struct source__judge *j, uint32_t i)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    return i >= j->after_backward && n->dir == PROBE_FORWARD && n->kind == PROBE_NODE_API &&
           !j->p->frameworks;
}

/* ---- gradients between backward and update --------------------------------- */

static bool is_in_place(const struct observe__part *p, const struct observe__node *n)
{
    return observe__is_in_place(p->ops.p[n->op].name);
}

/* Returns the norm of the largest gradient that the update reads before it changes a tensor, as for clipping;
 * if it reads none, of all that it reads. */
static float largest_entering(const struct source__judge *j)
{
    float largest = 0;
    for (uint32_t i = j->after_backward; i < j->p->nodes.n; i++) {
        const struct observe__node *n = &j->p->nodes.p[i];
        if (!source__is_update(j, i))
            continue;
        if (largest > 0 && is_in_place(j->p, n))
            break;
        for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
            if (source__is_gradient(j, &j->p->leaves.p[k]))
                largest = fmaxf(largest, j->p->leaves.p[k].norm);
        }
    }
    return largest;
}

void source__weigh_gradients(struct source__judge *j)
{
    j->gradient_off = 0;
    j->gradient_norm = 0;
    for (uint32_t i = 0; i < j->p->nodes.n; i++) {
        const struct observe__node *n = &j->p->nodes.p[i];
        if (i >= j->after_backward && n->kind != PROBE_NODE_PGRAD)
            continue;
        if (source__is_comparable(j, i))
            j->gradient_off =
                fmaxf(j->gradient_off, i < j->after_backward ? fmaxf(n->in, n->out) : n->out);
        /* A gradient that is recorded at the end of the step has the whole update as its context. */
        for (uint32_t k = n->leaf; n->kind == PROBE_NODE_PGRAD && k < n->leaf + n->nleaf; k++)
            j->gradient_norm = fmaxf(j->gradient_norm, j->p->leaves.p[k].norm);
    }
    if (j->gradient_norm == 0) /* operators alone are recorded */
        j->gradient_norm = largest_entering(j);
}

bool source__is_gradient(const struct source__judge *j, const struct observe__leaf *l)
{
    unsigned want = OBSERVE__REAL | OBSERVE__MEASURED, shun = OBSERVE__IS_OUT;
    bool own = false;
    for (unsigned s = 0; s < 2; s++)
        own |= l->maker[s] != OBSERVE__NONE && l->maker[s] >= j->after_backward &&
               j->p->nodes.p[l->maker[s]].kind != PROBE_NODE_PGRAD;
    return (l->flags & (want | shun)) == want && (l->flags & OBSERVE__IS_PARAM) == 0 && !own;
}

static bool is_off(const struct source__judge *j, const struct observe__leaf *l)
{
    if (l->flags & OBSERVE__FLAGGED)
        return !j->flag_seen;
    return l->e > fmax(least, times * j->gradient_off) &&
           (double)l->e * l->norm > (j->low ? share_low : share) * j->gradient_norm;
}

enum ms_rc source__check_update(struct source__judge *j, uint32_t i, struct ms_err *err)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    if (j->update_seen || j->explained || j->p->mode == PROBE_MODE_MD5 || !source__is_update(j, i))
        return MS_OK;
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct observe__leaf *l = &j->p->leaves.p[k];
        if (!source__is_gradient(j, l) || !is_off(j, l))
            continue;
        double past = fmax(j->gradient_off, n->tiny);
        double s = l->flags & OBSERVE__FLAGGED ? 4 : log10(l->e / past);
        struct source__raw raw = source__raw_of(n, CMP_WHY_INPUT, SOURCE__NUM, s);
        raw.leaf = k;
        raw.in = l->e;
        raw.factor = (float)(l->e / past);
        j->update_seen = true;
        return source__add_suspect(j, source__blame_loose(j, i, &raw), raw, err);
    }
    return MS_OK;
}

/* ---- calls of the update --------------------------------------------------- */

/* Updates in place that only one side makes. */
struct alone {
    uint32_t first[2]; /* first of them; OBSERVE__NONE: there is none */
    uint32_t all[2];   /* all recorded updates, paired or not */
    bool moves[2];     /* one of them changes a tensor of several elements */
};

static bool is_tensor_changed(const struct observe__part *p, const struct observe__node *n)
{
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        if ((l->flags & OBSERVE__IS_OUT) && l->count > 1 &&
            ms_dtype_kind((enum ms_dtype)l->dtype[1]) == MS_DTK_FLOAT)
            return true;
    }
    return false;
}

/* Tells whether later operators of both sides read what a region has made, and read the same: the
 * region is another form, such as clipping by hand. */
static bool is_confirmed(const struct observe__part *p, const struct observe__node *n)
{
    return n->region != OBSERVE__NONE && n->structure == OBSERVE__HARMLESS &&
           !isnan(p->nodes.p[n->region].border);
}

/* Tells whether an operator of one side alone reads, beside the value that it changes, what an update of
 * both sides has written: an average of the weights is kept, beside the training. */
static bool reads_update(const struct source__judge *j, uint32_t i)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    unsigned side = n->id[1] != OBSERVE__NONE;
    for (uint32_t k = n->leaf + 1; k < n->leaf + n->nleaf; k++) {
        const struct observe__leaf *l = &j->p->leaves.p[k];
        uint32_t maker = l->maker[side];
        if ((l->flags & OBSERVE__IS_OUT) || l->count <= 1 || maker >= i ||
            maker < j->after_backward)
            continue;
        const struct observe__node *from = &j->p->nodes.p[maker];
        if (from->id[1 - side] != OBSERVE__NONE && is_in_place(j->p, from))
            return true;
    }
    return false;
}

/* Operators of an average stand next to one another. */
enum { NEAR = 4 };

/* Tells whether an operator of one side alone is part of an average: it, or the next that changes its
 * result, reads an updated weight. */
static bool is_average(const struct source__judge *j, uint32_t i)
{
    unsigned side = j->p->nodes.p[i].id[1] != OBSERVE__NONE;
    for (uint32_t k = i; k < j->p->nodes.n && k < i + NEAR; k++) {
        const struct observe__node *n = &j->p->nodes.p[k];
        bool own = k == i || (n->nleaf != 0 && j->p->leaves.p[n->leaf].maker[side] == i);
        bool alone = n->id[1 - side] == OBSERVE__NONE && source__is_update(j, k);
        if (own && alone && is_in_place(j->p, n) && reads_update(j, k))
            return true;
    }
    return false;
}

/* The operators by which one side alone keeps averages, also of parameters that were not updated. */
enum { AVERAGE_OPS = 4 };
struct averages {
    uint32_t op[AVERAGE_OPS];
    uint32_t n;
};

static bool has_op(const struct averages *a, uint32_t op)
{
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->op[i] == op)
            return true;
    }
    return false;
}

static struct averages find_averages(const struct source__judge *j, unsigned side)
{
    struct averages a = {.n = 0};
    for (uint32_t i = j->after_backward; i < j->p->nodes.n && a.n < AVERAGE_OPS; i++) {
        const struct observe__node *n = &j->p->nodes.p[i];
        if (n->id[1 - side] == OBSERVE__NONE && source__is_update(j, i) && is_in_place(j->p, n) &&
            !has_op(&a, n->op) && is_average(j, i))
            a.op[a.n++] = n->op;
    }
    return a;
}

static struct alone find_alone(const struct source__judge *j)
{
    struct alone a = {.first = {OBSERVE__NONE, OBSERVE__NONE}};
    /* Averages that the target keeps beside the training; none where the golden side keeps them elsewhere. */
    struct averages average = find_averages(j, 0);
    average = average.n == 0 ? find_averages(j, 1) : (struct averages){.n = 0};
    for (uint32_t i = j->after_backward; i < j->p->nodes.n; i++) {
        const struct observe__node *n = &j->p->nodes.p[i];
        if (!source__is_update(j, i) || !is_in_place(j->p, n) || is_confirmed(j->p, n))
            continue;
        if (average.n != 0 && n->id[0] == OBSERVE__NONE &&
            (has_op(&average, n->op) || is_average(j, i)))
            continue;
        for (unsigned s = 0; s < 2; s++) {
            a.all[s] += n->id[s] != OBSERVE__NONE;
            if (n->id[1 - s] != OBSERVE__NONE)
                continue;
            a.first[s] = a.first[s] == OBSERVE__NONE ? i : a.first[s];
            a.moves[s] |= is_tensor_changed(j->p, n);
        }
    }
    return a;
}

static bool has_suspect(const struct source__judge *j)
{
    for (size_t i = 0; i < j->s->raws.n; i++) {
        if (j->s->raws.p[i].part == j->part)
            return true;
    }
    return false;
}

/* Takes back the verdict that the operators of a region have no effect. */
static void blame_region(struct source__judge *j, uint32_t first)
{
    for (uint32_t i = j->after_backward; i < j->p->nodes.n; i++) {
        if (j->p->nodes.p[i].region == j->p->nodes.p[first].region)
            j->p->nodes.p[i].structure = OBSERVE__HARMFUL;
    }
}

/* Tells whether an operator of one side alone stands inside the steps of both sides: it reads what
 * an update has written, and a later operator of the step reads its result. */
static bool is_woven(const struct source__judge *j, uint32_t i)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    unsigned side = n->id[1] != OBSERVE__NONE;
    if (!source__is_update(j, i) || n->id[1 - side] != OBSERVE__NONE || n->replaced ||
        !is_confirmed(j->p, n))
        return false;
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct observe__leaf *l = &j->p->leaves.p[k];
        const struct observe__node *maker =
            l->maker[side] < i ? &j->p->nodes.p[l->maker[side]] : NULL;
        if (maker != NULL && (l->flags & OBSERVE__IS_OUT) == 0 && l->count > 1 &&
            l->maker[side] >= j->after_backward && maker->id[1 - side] != OBSERVE__NONE &&
            is_in_place(j->p, maker))
            return true;
    }
    return false;
}

/* Rule: the steps of one side have one more operator, as those of AMSGrad. The first step often
 * computes the same; the optimizer is another one all the same. */
static enum ms_rc check_kind(struct source__judge *j, struct ms_err *err)
{
    for (uint32_t i = j->after_backward; i < j->p->nodes.n; i++) {
        const struct observe__node *n = &j->p->nodes.p[i];
        if (!is_woven(j, i))
            continue;
        enum cmp_why why = n->id[0] == OBSERVE__NONE ? CMP_WHY_EXTRA : CMP_WHY_MISSING;
        return source__add_suspect(j, i, source__raw_of(n, why, SOURCE__STRUCTURE, 0), err);
    }
    return MS_OK;
}

/* ---- values that replace parameters ----------------------------------------------- */

/* Tells whether an operator of one side alone makes of one whole tensor another of its size, which nothing that is
 * recorded reads: copying it into the parameter is not recorded. */
static bool replaces_tensor(const struct source__judge *j, uint32_t i)
{
    const struct observe__node *n = &j->p->nodes.p[i];
    const struct observe__op *op = &j->p->ops.p[n->op];
    const struct observe__leaf *in = NULL, *out = NULL;
    const unsigned side = n->id[1] != OBSERVE__NONE;
    if (!source__is_update(j, i) || (n->id[0] == OBSERVE__NONE) == (n->id[1] == OBSERVE__NONE) ||
        n->is_read || (op->flags & (OBSERVE__VIEW | OBSERVE__CAST)) || is_in_place(j->p, n))
        return false;
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct observe__leaf *l = &j->p->leaves.p[k];
        if (ms_dtype_kind((enum ms_dtype)l->dtype[side]) != MS_DTK_FLOAT || l->count <= 1)
            continue;
        if (l->flags & OBSERVE__IS_OUT)
            out = out == NULL ? l : out;
        else if (in == NULL)
            in = l;
        else
            return false;
    }
    return in != NULL && out != NULL && in->count == out->count && in->norm != out->norm;
}

/* Rule: behind the update one side alone computes new values of several tensors and nothing reads them, as where
 * weights are clamped or shrunk after the step. */
static enum ms_rc check_replaced(struct source__judge *j, struct ms_err *err)
{
    enum { FEW = 2 };
    uint32_t first = OBSERVE__NONE, op = OBSERVE__NONE, calls = 0;
    for (uint32_t i = j->after_backward; i < j->p->nodes.n; i++) {
        const struct observe__node *n = &j->p->nodes.p[i];
        if (!replaces_tensor(j, i) || (op != OBSERVE__NONE && n->op != op))
            continue;
        first = first == OBSERVE__NONE ? i : first;
        op = n->op;
        calls++;
    }
    if (calls < FEW)
        return MS_OK;
    const struct observe__node *n = &j->p->nodes.p[first];
    enum cmp_why why = n->id[0] == OBSERVE__NONE ? CMP_WHY_EXTRA : CMP_WHY_MISSING;
    return source__add_suspect(j, first, source__raw_of(n, why, SOURCE__STRUCTURE, 0), err);
}

enum ms_rc source__check_update_calls(struct source__judge *j, struct ms_err *err)
{
    struct alone a = find_alone(j);
    /* A side without any recorded update has a fused optimizer; nothing is known of its steps. */
    bool both = a.all[0] != 0 && a.all[1] != 0;
    if (!both || j->p->cross || j->explained || has_suspect(j))
        return MS_OK;
    if (a.moves[0] == a.moves[1]) {
        MS_TRY(check_kind(j, err));
        return has_suspect(j) ? MS_OK : check_replaced(j, err);
    }
    unsigned side = a.moves[1];
    uint32_t first = a.first[side];
    ms_assert(first != OBSERVE__NONE);
    if (j->p->nodes.p[first].region != OBSERVE__NONE)
        blame_region(j, first);
    enum cmp_why why = side == 1 ? CMP_WHY_EXTRA : CMP_WHY_MISSING;
    struct source__raw raw = source__raw_of(&j->p->nodes.p[first], why, SOURCE__NUM, 1);
    return source__add_suspect(j, first, raw, err);
}
