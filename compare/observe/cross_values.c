/* SPDX-License-Identifier: MIT
 *
 * cross_values: decides which differences between two frameworks count.
 *
 * Two frameworks may split one operation into different pieces. Two pieces may then
 * correspond by name and position although their values are unrelated. Such a
 * difference ends with the operation, whose results agree again, while the difference
 * of a fault persists. A difference that reaches no later difference is therefore
 * discarded.
 */
#include "compare/observe/cross_values.h"
#include "compare/observe/node_facts.h"
#include "compare/observe/noise_floor.h"
#include "probe/base/assert.h"

#include <math.h>

static const float unlike = 0.1F; /* a difference this large is no noise */
static const float least = 2.4e-7F;
/* A difference is significant above this multiple of the usual one: forward, backward. */
static const float noise_times[] = {8, 30};

/* Sets the difference of a leaf that has no row to compare. */
static void set_leaf(struct observe__leaf *to, const struct observe__leaf *from)
{
    to->e = from->e;
    to->en = from->en;
    to->scale = from->scale;
    to->dtype[0] = from->dtype[0];
    to->flags |= (uint16_t)(OBSERVE__MEASURED | OBSERVE__REAL | (from->flags & OBSERVE__FLAGGED));
}

static bool is_measured(const struct observe__leaf *l)
{
    unsigned want = OBSERVE__MEASURED | OBSERVE__REAL;
    return (l->flags & want) == want;
}

/* Copies the difference of a view's output to its input: a reshape or slice introduces none. */
static void pass_through_view(struct observe__part *p, const struct observe__node *n)
{
    const struct observe__leaf *out = NULL;
    struct observe__leaf *in = NULL;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        struct observe__leaf *l = &p->leaves.p[i];
        if ((l->flags & OBSERVE__IS_OUT) && is_measured(l))
            out = l;
        else if ((l->flags & OBSERVE__IS_OUT) == 0 && (in == NULL || l->count > in->count))
            in = l;
    }
    if (out != NULL && in != NULL && in->row[0] == OBSERVE__NONE && in->count >= out->count)
        set_leaf(in, out);
}

/* Copies the difference that a reader measured to the outputs of a maker without a partner. */
static void pass_to_maker(struct observe__part *p, const struct observe__leaf *l)
{
    const struct observe__node *n = &p->nodes.p[l->maker[1]];
    for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
        struct observe__leaf *out = &p->leaves.p[k];
        if ((out->flags & OBSERVE__IS_OUT) && out->row[0] == OBSERVE__NONE &&
            out->count == l->count)
            set_leaf(out, l);
    }
}

/* Copies the difference that a reader measured to the output of a node without a partner, which has
 * no rows to compare, and through views to the node before them. The walk goes from the last node
 * to the first, so that the first reader of a value decides. */
static void take_from_readers(struct observe__part *p)
{
    for (size_t i = p->nodes.n; i-- > 0;) {
        const struct observe__node *n = &p->nodes.p[i];
        if (n->id[0] == OBSERVE__NONE && (p->ops.p[n->op].flags & OBSERVE__VIEW))
            pass_through_view(p, n);
        for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
            const struct observe__leaf *l = &p->leaves.p[k];
            if (is_measured(l) && (l->flags & OBSERVE__IS_OUT) == 0 &&
                l->maker[1] != OBSERVE__NONE && l->maker[1] < i &&
                p->nodes.p[l->maker[1]].id[0] == OBSERVE__NONE)
                pass_to_maker(p, l);
        }
    }
}

struct noise {
    float *e; /* by node: larger differences are not noise */
    bool *lasts;
};

/* Estimates the noise at the start of the runs: the lowest quarter of differences, or the
 * differences of roots. */
static bool first_noise(const struct observe__part *p, float *noise)
{
    float *e = ms_alloc((2 * p->leaves.n + 1) * sizeof *e), *roots = e + p->leaves.n;
    size_t n = 0, m = 0;
    float unit = 0;
    *noise = least;
    for (size_t i = 0; e != NULL && i < p->leaves.n; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        unsigned want = OBSERVE__MEASURED | OBSERVE__REAL;
        bool differ;
        if ((l->flags & want) != want || l->e >= unlike)
            continue;
        e[n++] = l->e;
        if (l->flags & OBSERVE__ROOT)
            roots[m++] = l->e;
        unit = fmaxf(unit, (float)observe__roundoff(l, &differ));
    }
    if (e != NULL) {
        /* A single coarse value does not make the run coarse. */
        *noise = fmaxf(*noise, fminf(unit, observe__quantile(e, n, 0.25)));
        float low = observe__quantile(e, n, 0.1), start = observe__quantile(roots, m, 0.5);
        *noise = fmaxf(*noise, fmaxf(low, start));
    }
    ms_free(e);
    return e != NULL;
}

/* Follows the growth of noise through a run. Outlying differences do not raise the estimate. */
static bool follow_noise(const struct observe__part *p, float *by_node)
{
    struct observe__floor *f = ms_calloc(1, sizeof *f);
    float start;
    bool fine = f != NULL && first_noise(p, &start);
    for (size_t i = 0; fine && i < p->nodes.n; i++) {
        const struct observe__node *n = &p->nodes.p[i];
        float now = observe__floor_now(f);
        by_node[i] = noise_times[n->dir == PROBE_BACKWARD] * (now > start ? now : start);
        for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
            const struct observe__leaf *l = &p->leaves.p[k];
            unsigned want = OBSERVE__MEASURED | OBSERVE__REAL | OBSERVE__IS_OUT;
            if ((l->flags & want) == want && l->e <= by_node[i])
                observe__floor_add(f, l->e);
        }
    }
    ms_free(f);
    return fine;
}

enum state { UNKNOWN, AGREES, DIFFERS };

static enum state state_of(const struct observe__part *p, const struct observe__node *n,
                           float noise)
{
    ms_assert(noise > 0 && n->leaf + n->nleaf <= p->leaves.n);
    enum state s = UNKNOWN;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        if ((l->flags & OBSERVE__IS_OUT) == 0 || (l->flags & OBSERVE__MEASURED) == 0)
            continue;
        if (l->e > noise || (l->flags & OBSERVE__FLAGGED))
            return DIFFERS;
        s = AGREES;
    }
    return s;
}

/* Decides, from the last node to the first, whether a node's difference lasts: it reaches the end
 * of the run, or another difference that lasts. A node whose output no node reads is at the end. */
static void find_lasting(const struct observe__part *p, const struct noise *w)
{
    for (size_t i = p->nodes.n; i-- > 0;) {
        const struct observe__node *n = &p->nodes.p[i];
        enum state s = state_of(p, n, w->e[i]);
        bool through = w->lasts[i] || !n->is_read;
        w->lasts[i] = s == UNKNOWN ? w->lasts[i] : s == DIFFERS && through;
        for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
            const struct observe__leaf *l = &p->leaves.p[k];
            for (unsigned side = 0; side < 2 && (l->flags & OBSERVE__IS_OUT) == 0; side++) {
                if (l->maker[side] == OBSERVE__NONE || l->maker[side] >= i)
                    continue;
                w->lasts[l->maker[side]] |= w->lasts[i];
            }
        }
    }
}

static void forget_leaf(struct observe__leaf *l)
{
    l->flags &= (uint16_t) ~(OBSERVE__MEASURED | OBSERVE__FLAGGED);
    l->e = l->en = 0;
}

/* Tells whether a leaf of a node holds what kernels of a function that polynomials approximate differ by: this
 * is noise, which the operators behind it carry on, whether it lasts or not. */
static bool is_noise_of_series(const struct observe__part *p, const struct observe__leaf *l,
                               uint32_t node)
{
    return p->frameworks && (p->ops.p[p->nodes.p[node].op].flags & OBSERVE__SERIES) &&
           l->e <= observe__rule.exact_series;
}

static void forget_passing_leaves(struct observe__part *p, const struct noise *w)
{
    for (size_t i = 0; i < p->nodes.n; i++) {
        const struct observe__node *n = &p->nodes.p[i];
        bool passing = !w->lasts[i] && state_of(p, n, w->e[i]) == DIFFERS;
        for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
            struct observe__leaf *l = &p->leaves.p[k];
            bool out = (l->flags & OBSERVE__IS_OUT) != 0;
            uint32_t maker = l->maker[1];
            bool read = !out && maker != OBSERVE__NONE && l->e > w->e[i] && !w->lasts[maker];
            /* splitting an operation cannot create a NaN */
            bool real = p->finite && (l->flags & OBSERVE__FLAGGED);
            real |= (out || read) && is_noise_of_series(p, l, out ? (uint32_t)i : maker);
            if (((out && passing) || read) && !real)
                forget_leaf(l);
        }
    }
}

enum ms_rc observe__settle_cross(struct observe__part *p, struct ms_err *err)
{
    struct noise w = {.e = ms_calloc(p->nodes.n + 1, sizeof *w.e),
                      .lasts = ms_calloc(p->nodes.n + 1, sizeof *w.lasts)};
    bool fine = w.e != NULL && w.lasts != NULL;
    if (fine)
        take_from_readers(p);
    fine = fine && follow_noise(p, w.e);
    if (fine) {
        find_lasting(p, &w);
        forget_passing_leaves(p, &w);
    }
    ms_free(w.e);
    ms_free(w.lasts);
    return fine ? MS_OK : ms_no_memory(err);
}
