/* SPDX-License-Identifier: MIT
 *
 * regions: finds operators that only one side has, and decides whether they change
 * values.
 *
 * Operators are joined in execution order by the values that pass between them
 * (union-find), so a region's representative is its first operator. A paired operator
 * that reads from a region is on its border: if its input agrees on both sides, the
 * region has computed the same on both.
 */
#include "compare/source/regions.h"
#include "compare/source/border.h"
#include "probe/base/assert.h"

#include <math.h>

struct region {
    float in;     /* the largest difference of its inputs */
    float e;      /* the largest difference at its border */
    bool is_read; /* a paired operator reads from it */
    bool reads;   /* it reads outputs of paired operators */
    bool owns;    /* it reads a parameter */
    bool lost;    /* the other side reads one of its values from outside the dump */
    bool acts; /* it acts through its gradient: no node reads its outputs, and it has a backward */
    bool differs;   /* a value after it differs, none before it does */
    bool undecided; /* a value after it differs, and so does one before it */
    uint8_t sides;  /* bit set of the sides that have a part of it */
    uint8_t
        losses; /* bit set of the sides on which it makes a loss: an unread number with a backward */
    float loss[2]; /* magnitude of the last one, by side */
    float floor;   /* of the paired operator before its last operator */
};

struct work {
    struct source__judge *j;
    struct observe__part *p;
    struct region *list; /* by first node */
    uint32_t *up;        /* by node: an earlier node of the same region, or itself */
    float *carried;      /* by node: the difference that it passes on */
    uint32_t *back;      /* by node: its backward node */
    uint32_t first_off;  /* the first backward node that reads a gradient that differs */
    float floor;         /* of the last paired operator */
    bool gradients_agree;
    bool rescaled; /* the loss is scaled, and gradients are scaled back before the update */
    /* by side: last operator without a partner since the last paired one, or OBSERVE__NONE */
    uint32_t place[2];
};

/* Tells whether a node is an operator of one side alone. Another framework has other operators
 * everywhere, so between two programs those of the golden side do not count. */
static bool is_alone(const struct work *w, uint32_t i)
{
    const struct observe__node *n = &w->p->nodes.p[i];
    bool extra = n->id[0] == OBSERVE__NONE, missing = n->id[1] == OBSERVE__NONE && !w->p->cross;
    return (extra || missing) && n->dir == PROBE_FORWARD && n->structure != OBSERVE__REPEATED &&
           (n->kind == PROBE_NODE_API || !w->p->has_apis);
}

static uint32_t first_of(struct work *w, uint32_t i)
{
    while (w->up[i] != i)
        i = w->up[i] = w->up[w->up[i]];
    return i;
}

static void merge(struct region *to, const struct region *from)
{
    to->in = fmaxf(to->in, from->in);
    to->e = fmaxf(to->e, from->e);
    to->is_read |= from->is_read;
    to->reads |= from->reads;
    to->owns |= from->owns;
    to->lost |= from->lost;
    to->acts |= from->acts;
    to->sides |= from->sides;
    to->differs |= from->differs;
    to->undecided |= from->undecided;
    to->floor = fmaxf(to->floor, from->floor);
    to->losses |= from->losses;
    for (unsigned s = 0; s < 2; s++)
        to->loss[s] = from->losses >> s & 1 ? from->loss[s] : to->loss[s];
}

static void join(struct work *w, uint32_t a, uint32_t b)
{
    a = first_of(w, a);
    b = first_of(w, b);
    uint32_t first = a < b ? a : b, second = a < b ? b : a;
    if (first == second)
        return;
    w->up[second] = first;
    merge(&w->list[first], &w->list[second]);
}

/* ---- inside -------------------------------------------------------------- */

/* Tells whether the gradient that arrives at a node differs although both sides compute it. */
static bool is_gradient_off(const struct work *w, uint32_t node)
{
    const struct observe__node *back =
        w->back[node] != OBSERVE__NONE ? &w->p->nodes.p[w->back[node]] : NULL;
    if (back == NULL || back->id[0] == OBSERVE__NONE)
        return false;
    return back->in > observe__rule.backward[w->j->tensor] * back->floor;
}

/* Joins the operators of both sides between the same two paired operators: one replaces the other
 * whatever they read. Views are often not recorded, so values alone do not decide. */
static void join_place(struct work *w, uint32_t i, unsigned side)
{
    for (unsigned s = 0; s < 2; s++) {
        if (w->place[s] != OBSERVE__NONE)
            join(w, i, w->place[s]);
    }
    w->place[side] = i;
}

/* Of a single number the norm is its magnitude, so it can be compared although it has no partner. */
static void keep_loss(struct region *own, const struct observe__leaf *l, unsigned side)
{
    if (l->count != 1 || ms_dtype_kind((enum ms_dtype)l->dtype[side]) != MS_DTK_FLOAT)
        return;
    own->losses |= (uint8_t)(1 << side);
    own->loss[side] = l->norm;
}

/* Tells whether an operator writes what it reads: a copy, a view, a product with one. */
static bool is_passed_on(const struct observe__part *p, const struct observe__node *n)
{
    const struct observe__leaf *in = &p->leaves.p[n->leaf];
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct observe__leaf *l = &p->leaves.p[k];
        if ((l->flags & OBSERVE__IS_OUT) && l->count == in->count && l->norm == in->norm)
            return true;
    }
    return false;
}

static void enter_operator(struct work *w, uint32_t i)
{
    const struct observe__node *n = &w->p->nodes.p[i];
    unsigned side = n->id[1] != OBSERVE__NONE;
    struct region own = {.sides = (uint8_t)(1 << side), .floor = w->floor};
    own.acts = n->backward != 0 && !n->is_read && !(w->gradients_agree && is_passed_on(w->p, n));
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        const struct observe__leaf *l = &w->p->leaves.p[k];
        uint32_t maker = l->maker[side];
        if (l->flags & OBSERVE__IS_OUT) {
            if (own.acts)
                keep_loss(&own, l, side);
            continue;
        }
        own.owns |= (l->flags & OBSERVE__IS_PARAM) != 0 && maker == OBSERVE__NONE;
        if (maker == OBSERVE__NONE || maker >= i)
            continue;
        own.in = fmaxf(own.in, w->carried[maker]);
        if (is_alone(w, maker)) {
            join(w, i, maker);
            continue;
        }
        own.reads = true;
        bool turns = own.acts || w->back[maker] == w->first_off;
        own.differs |=
            n->backward != 0 && own.in == 0 && is_gradient_off(w, maker) && turns && !w->rescaled;
    }
    w->carried[i] = own.in;
    merge(&w->list[first_of(w, i)], &own);
    join_place(w, i, side);
}

/* ---- the border ---------------------------------------------------------- */

/* Tells whether the first gradient that differs is that of a node whose value passes through operators of the
 * other side alone, unchanged: they do not pass its whole gradient on. */
static bool stops_gradient(const struct work *w, uint32_t maker)
{
    bool paired = maker != OBSERVE__NONE && !is_alone(w, maker);
    return paired && !w->gradients_agree && !w->rescaled && !w->p->cross &&
           w->first_off != OBSERVE__NONE && w->back[maker] == w->first_off;
}

/* Tells whether another operator makes the same of what it reads, as a sum that scales a term itself. A normalization
 * does so of any factor, which may be a mistake. */
static bool makes_same(const struct work *w, const struct observe__node *n)
{
    bool known = (n->flags & OBSERVE__OUT_MEASURED) && (n->flags & OBSERVE__OUT_FLAGGED) == 0;
    bool hides = (w->p->ops.p[n->op].flags & OBSERVE__NORMS) != 0;
    return known && !hides && observe__is_other_operator(w->p, n) &&
           (n->attrs_out & OBSERVE__SHAPE) == 0 &&
           n->out <= observe__rule.forward[w->j->tensor] * n->tiny;
}

static void judge_border(struct work *w, uint32_t i, const struct observe__leaf *l)
{
    const struct observe__node *n = &w->p->nodes.p[i];
    uint32_t golden = l->maker[0], target = l->maker[1];
    bool missing = golden != OBSERVE__NONE && is_alone(w, golden);
    bool extra = target != OBSERVE__NONE && is_alone(w, target);
    if (!missing && !extra)
        return;
    if (missing && extra)
        join(w, golden, target);
    struct region *r = &w->list[first_of(w, missing ? golden : target)];
    float k = (float)observe__rule.forward[w->j->tensor];
    bool known = (l->flags & OBSERVE__MEASURED) && (l->flags & OBSERVE__FLAGGED) == 0;
    /* Noise learned behind the region may contain the difference that the region makes. */
    float before = fmaxf(n->tiny, r->floor);
    bool agrees = known && l->e <= k * fminf(n->floor, before);
    bool dirty = r->in > k * n->tiny && (!known || l->e <= 10 * k * r->in);
    bool same = makes_same(w, n) && w->gradients_agree;
    r->is_read = true;
    r->e = fmaxf(r->e, known && !same ? l->e : 0);
    /* The other side reads the value from outside the dump, without its gradient: the operators ran
     * where nothing is recorded, as under no_grad. */
    bool lost = agrees && (l->attrs & OBSERVE__GRAD) &&
                (missing ? target : golden) == OBSERVE__NONE && (r->reads || r->owns);
    r->lost |= lost;
    bool fades = same || (n->fades && w->gradients_agree);
    r->differs |= agrees ? stops_gradient(w, missing ? target : golden) : !dirty && !fades;
    r->undecided |= !agrees && dirty && !fades;
}

static float carried_by(const struct observe__node *n)
{
    return n->flags & OBSERVE__OUT_MEASURED ? n->out : n->in;
}

static void walk_flow(struct work *w)
{
    for (uint32_t i = 0; i < w->p->nodes.n; i++) {
        const struct observe__node *n = &w->p->nodes.p[i];
        if (is_alone(w, i)) {
            enter_operator(w, i);
            continue;
        }
        w->carried[i] = carried_by(n);
        if (n->id[0] == OBSERVE__NONE || n->id[1] == OBSERVE__NONE)
            continue;
        if (n->kind == PROBE_NODE_API || !w->p->has_apis) {
            w->place[0] = w->place[1] = OBSERVE__NONE;
            w->floor = n->floor;
        }
        for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
            if ((w->p->leaves.p[k].flags & OBSERVE__IS_OUT) == 0)
                judge_border(w, i, &w->p->leaves.p[k]);
        }
    }
}

/* ---- verdicts ------------------------------------------------------------ */

/* Compares the losses of a region whose results no node reads. */
static void compare_losses(const struct work *w, struct region *r)
{
    if (r->is_read || r->losses != 3)
        return;
    float gap = fabsf(r->loss[1] - r->loss[0]), whole = fmaxf(r->loss[0], r->loss[1]);
    float k = (float)observe__rule.forward[w->j->tensor];
    r->e = gap > 0 ? gap / whole : 0;
    r->is_read = true;
    r->differs |= r->e > k * fmaxf(r->floor, 10 * r->in);
    r->undecided |= r->e > k * r->floor && !r->differs;
}

static enum observe__structure verdict_on(const struct work *w, const struct region *r)
{
    bool replaced = r->sides == 3, acts = r->acts && !w->rescaled;
    if (r->differs || ((r->lost || acts) && !replaced))
        return OBSERVE__HARMFUL;
    return r->undecided ? OBSERVE__UNDECIDED : OBSERVE__HARMLESS;
}

static void keep_verdicts(struct work *w)
{
    for (uint32_t i = 0; i < w->p->nodes.n; i++) {
        struct observe__node *n = &w->p->nodes.p[i];
        n->region = OBSERVE__NONE;
        if (!is_alone(w, i))
            continue;
        n->region = first_of(w, i);
        if (n->region == i)
            compare_losses(w, &w->list[i]);
        n->structure = (uint8_t)verdict_on(w, &w->list[n->region]);
        n->replaced = w->list[n->region].sides == 3;
        n->border = w->list[n->region].is_read ? w->list[n->region].e : NAN;
    }
}

/* Finds the first node of the backward pass that reads a gradient that differs: the operator of one side
 * alone that made this gradient made it wrong, however well the values of the forward pass agree. */
static void find_first_off(struct work *w)
{
    w->first_off = OBSERVE__NONE;
    for (uint32_t i = (uint32_t)w->p->nodes.n; i-- > 0;) {
        uint32_t forward = w->p->nodes.p[i].forward;
        if (forward != OBSERVE__NONE && w->back[forward] == i && !w->p->nodes.p[i].second_pass &&
            is_gradient_off(w, forward))
            w->first_off = i;
    }
}

static void list_backward(struct work *w)
{
    uint32_t n = (uint32_t)w->p->nodes.n;
    memset(w->back, 0xff, ((size_t)n + 1) * sizeof *w->back);
    w->place[0] = w->place[1] = OBSERVE__NONE;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t forward = w->p->nodes.p[i].forward;
        w->up[i] = i;
        if (forward != OBSERVE__NONE)
            w->back[forward] = i;
    }
}

enum ms_rc source__judge_regions(struct source__judge *j, struct ms_err *err)
{
    size_t n = j->p->nodes.n;
    struct work w = {.j = j, .p = j->p, .gradients_agree = source__do_gradients_agree(j)};
    w.rescaled = source__is_rescaled(j);
    w.list = ms_calloc(n + 1, sizeof *w.list);
    w.up = ms_alloc((n + 1) * sizeof *w.up);
    w.carried = ms_calloc(n + 1, sizeof *w.carried);
    w.back = ms_alloc((n + 1) * sizeof *w.back);
    bool fine = w.list != NULL && w.up != NULL && w.carried != NULL && w.back != NULL;
    if (fine) {
        list_backward(&w);
        find_first_off(&w);
        walk_flow(&w);
        keep_verdicts(&w);
    }
    ms_free(w.list);
    ms_free(w.up);
    ms_free(w.back);
    ms_free(w.carried);
    return fine ? MS_OK : ms_no_memory(err);
}
