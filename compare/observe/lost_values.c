/* SPDX-License-Identifier: MIT
 *
 * lost_values: finds operators that make values which the other side has nowhere.
 */
#include "compare/observe/lost_values.h"
#include "compare/align/likeness.h"
#include "compare/observe/leaf_distance.h"
#include "compare/observe/node_facts.h"
#include "compare/observe/value_shelf.h"
#include "compare/observe/value_sketch.h"
#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <math.h>
#include <stdlib.h>

/* Values of both sides that differ by less are alike: between kernels of one framework, and of two. */
static const double alike[] = {1e-5, 1e-4};

static bool is_forward(const struct probe_dump *d, uint32_t node)
{
    return observe__is_api(&d->nodes.p[node], PROBE_FORWARD);
}

static bool is_of_forward(const struct probe_dump *d, uint32_t row)
{
    return is_forward(d, d->rows.p[row].node);
}

static bool is_of_parameter(const struct probe_dump *d, uint32_t row)
{
    return d->rows.p[row].section == PROBE_SEC_PARAMETERS;
}

/* One side while its losses are found. */
struct walk {
    const struct observe__side *s;
    const struct observe__shelf *other;
    uint8_t *loss;        /* by node */
    uint32_t *first;      /* by node: row of its first result; OBSERVE__NONE: it has none */
    bool *is_read;        /* by node: a forward operator reads its result */
    bool is_beside_graph; /* the other side is a graph, whose compiler drops what nothing needs */
    uint32_t end;         /* nodes from here on are of the backward pass or behind it */
    uint32_t last;   /* row of the last result of the forward pass; OBSERVE__NONE: there is none */
    bool is_bridged; /* on the way back: the end depends on a lost value from outside the dump */
};

/* Tells whether an input is lost. Values with infinities, as behind a mask, cannot be looked up: they are lost
 * when their maker reads or makes a lost one, and where it is not known. */
static bool is_lost_input(const struct walk *w, uint32_t row)
{
    const struct read__value *v = &w->s->value[row];
    uint32_t maker = w->s->maker[row], node = w->s->dump->rows.p[row].node;
    if (v->kind != READ__FLOAT || read__is_finite(v))
        return !observe__shelf_has(w->other, v) ||
               (maker < node && (w->loss[maker] & OBSERVE__HIDES) != 0);
    return maker >= node || (w->loss[maker] & (OBSERVE__LOST | OBSERVE__IN_LOST)) != 0;
}

/* Calls is_like for the inputs of a node and of the operators that made its lost ones, nearest first. */
static bool any_before(const struct walk *w, uint32_t node, unsigned depth,
                       const struct read__value *v)
{
    const struct probe_node *n = &w->s->dump->nodes.p[node];
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        uint32_t maker = w->s->maker[i];
        const struct read__value *in = &w->s->value[i];
        if (observe__is_output(&w->s->dump->rows.p[i]) || !read__is_tensor(in))
            continue;
        if (in->kind == v->kind && in->n == v->n && observe__identity_gap(in, v) < w->other->slack)
            return true;
        if (depth != 0 && maker < node && (w->loss[maker] & OBSERVE__LOST) &&
            any_before(w, maker, depth - 1, v))
            return true;
    }
    return false;
}

/* Values that are this many times smaller than a sum do not show in its statistics. */
static const double shown = 1e-2;

/* Tells whether a node reads a lost value that is too small to show in its result, as scores do beneath a mask
 * of -10000. */
static bool reads_small(const struct walk *w, uint32_t node, const struct read__value *v)
{
    const struct probe_node *n = &w->s->dump->nodes.p[node];
    const double norm = fabs(v->stat[PROBE_STAT_NORM]);
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        const struct read__value *in = &w->s->value[i];
        if (!observe__is_output(&w->s->dump->rows.p[i]) && in->kind == READ__FLOAT &&
            in->n == v->n && observe__is_searched(in) && !observe__shelf_has(w->other, in) &&
            fabs(in->stat[PROBE_STAT_NORM]) < shown * norm)
            return true;
    }
    return false;
}

/* Tells whether a result which both sides have hides that the node reads a lost value: the lost value is too
 * small, or is added and taken away again, so that the result is one which was there before. */
static bool hides_loss(const struct walk *w, uint32_t node)
{
    enum { DEPTH = 3 };
    const struct read__value *v = &w->s->value[w->first[node]];
    return (w->loss[node] & OBSERVE__LOST) == 0 &&
           (w->loss[node] & (OBSERVE__IN_LOST | OBSERVE__OUTSIDE)) != 0 && v->kind == READ__FLOAT &&
           observe__is_searched(v) && (reads_small(w, node, v) || any_before(w, node, DEPTH, v));
}

/* Statistics do not show the result of a comparison, so it counts as its inputs do. */
static void look_up_node(struct walk *w, uint32_t node)
{
    const struct probe_node *n = &w->s->dump->nodes.p[node];
    w->first[node] = OBSERVE__NONE;
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        bool out = observe__is_output(&w->s->dump->rows.p[i]);
        uint32_t maker = w->s->maker[i];
        if (!read__is_tensor(&w->s->value[i]))
            continue;
        if (!out && maker != OBSERVE__NONE && maker < w->end)
            w->is_read[maker] = true;
        if (out && w->first[node] == OBSERVE__NONE) {
            w->first[node] = i;
            w->loss[node] |= observe__shelf_has(w->other, &w->s->value[i]) ? 0 : OBSERVE__LOST;
        } else if (!out && is_lost_input(w, i)) {
            /* graphs read single numbers, such as the counter of steps, that functions do not record */
            bool is_tensor = w->s->value[i].n > 1 || !w->s->dump->is_graph;
            w->loss[node] |= maker != OBSERVE__NONE ? OBSERVE__IN_LOST
                             : is_tensor            ? OBSERVE__OUTSIDE
                                                    : 0;
        }
    }
    if (w->first[node] != OBSERVE__NONE && hides_loss(w, node))
        w->loss[node] |= OBSERVE__LOST | OBSERVE__HIDES;
}

/* Tells whether nothing needs a result, so that a graph does not compute it: no operator reads it, and no gradient of it
 * is recorded, as there would be if something read it that is not recorded. */
static bool is_dropped(const struct walk *w, uint32_t node)
{
    return w->is_beside_graph && !w->is_read[node] && w->end < w->s->dump->nodes.n &&
           observe__same_call(w->s->dump, node, ".backward") == MS_MAP_NONE;
}

/* A result that nothing reads is at the end, or what reads it is not recorded, as a concatenation of PyTorch: then a
 * later operator reads a lost value from outside the dump. Of a graph all operators are recorded. */
static void follow_back(struct walk *w, uint32_t node)
{
    const struct probe_node *n = &w->s->dump->nodes.p[node];
    bool is_end = w->last != OBSERVE__NONE && w->s->dump->rows.p[w->last].node == node;
    if ((w->loss[node] & OBSERVE__LOST) == 0)
        return;
    if (!is_end && is_dropped(w, node))
        return;
    if (!w->is_read[node] && (is_end || !w->s->dump->is_graph))
        w->loss[node] |= OBSERVE__LASTS;
    if (is_end || (!w->is_read[node] && w->is_bridged))
        w->loss[node] |= OBSERVE__LASTS | OBSERVE__ENDS;
    if ((w->loss[node] & OBSERVE__LASTS) == 0)
        return;
    w->is_bridged |=
        !w->s->dump->is_graph && (~w->loss[node] & (OBSERVE__ENDS | OBSERVE__OUTSIDE)) == 0;
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        uint32_t maker = w->s->maker[i];
        if (!observe__is_output(&w->s->dump->rows.p[i]) && maker != OBSERVE__NONE && maker < node)
            w->loss[maker] |= w->loss[node] & (OBSERVE__LASTS | OBSERVE__ENDS);
    }
}

static uint32_t end_of_forward(const struct probe_dump *d)
{
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        if (d->nodes.p[i].dir == PROBE_BACKWARD)
            return i;
    }
    return (uint32_t)d->nodes.n;
}

/* Tells whether a node reads what a forward operator has made. Others, such as the counter of steps of a graph,
 * are no end of the forward pass. */
static bool does_follow(const struct walk *w, uint32_t node)
{
    const struct probe_node *n = &w->s->dump->nodes.p[node];
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        if (!observe__is_output(&w->s->dump->rows.p[i]) && w->s->maker[i] < node)
            return true;
    }
    return false;
}

/* Tells whether a result takes no part in the backward pass although what was the end so far does: a figure that is
 * logged. */
static bool is_logged(const struct walk *w, uint32_t row)
{
    return w->last != OBSERVE__NONE && w->s->value[w->last].grad == 1 && w->s->value[row].grad == 0;
}

static enum ms_rc walk_side(struct walk *w, struct ms_arena *arena, struct ms_err *err)
{
    const size_t n = w->s->dump->nodes.n + 1;
    w->end = end_of_forward(w->s->dump);
    w->last = OBSERVE__NONE;
    w->loss = ms_arena_calloc(arena, n, sizeof *w->loss);
    w->first = ms_arena_alloc(arena, n * sizeof *w->first);
    w->is_read = ms_arena_calloc(arena, n, sizeof *w->is_read);
    if (w->loss == NULL || w->first == NULL || w->is_read == NULL)
        return ms_arena_fail(arena, err);
    for (uint32_t i = 0; i < w->end; i++) {
        if (!is_forward(w->s->dump, i))
            continue;
        look_up_node(w, i);
        const uint32_t first = w->first[i];
        bool is_end = first != OBSERVE__NONE && (does_follow(w, i) || w->last == OBSERVE__NONE) &&
                      !is_logged(w, first);
        w->last = is_end ? first : w->last;
    }
    for (uint32_t i = w->end; i-- > 0;) {
        if (is_forward(w->s->dump, i))
            follow_back(w, i);
    }
    return MS_OK;
}

/* Tells whether the forward passes end with different values. */
static bool do_ends_differ(const struct walk *g, const struct walk *t, double slack)
{
    if (g->last == OBSERVE__NONE || t->last == OBSERVE__NONE)
        return false;
    const struct read__value *a = &g->s->value[g->last], *b = &t->s->value[t->last];
    return a->n != b->n || observe__value_gap(a, b) > slack;
}

/* Tells whether one side has most parameters with other values than the other side: the runs start with
 * different ones. A single one may be unused on one side. */
static enum ms_rc do_starts_differ(struct observe__part *p, const struct observe__side side[2],
                                   struct ms_err *err)
{
    struct observe__shelf shelves[2] = {{.slack = alike[p->frameworks]},
                                        {.slack = alike[p->frameworks]}};
    for (unsigned s = 0; s < 2; s++)
        MS_TRY(observe__shelf_fill(&shelves[s], &side[s], is_of_parameter, p->arena, err));
    for (unsigned s = 0; s < 2 && shelves[0].n != 0 && shelves[1].n != 0; s++) {
        size_t lost = 0;
        for (size_t i = 0; i < shelves[s].n; i++)
            lost += !observe__shelf_has(&shelves[1 - s], shelves[s].list[i]);
        p->starts_differ |= 2 * lost > shelves[s].n;
    }
    return MS_OK;
}

enum ms_rc observe__find_weights(const struct observe__side *const side[2], struct ms_arena *arena,
                                 bool *weights[2], struct ms_err *err)
{
    struct observe__shelf shelves[2] = {{.slack = alike[1]}, {.slack = alike[1]}};
    for (unsigned s = 0; s < 2; s++) {
        MS_TRY(observe__shelf_fill(&shelves[s], side[s], is_of_parameter, arena, err));
        weights[s] = ms_arena_calloc(arena, side[s]->dump->rows.n + 1, sizeof *weights[s]);
        if (weights[s] == NULL)
            return ms_arena_fail(arena, err);
    }
    for (unsigned s = 0; s < 2; s++) {
        for (uint32_t i = 0; i < side[s]->dump->rows.n; i++) {
            const struct read__value *v = &side[s]->value[i];
            weights[s][i] =
                side[s]->maker[i] == OBSERVE__NONE && observe__is_searched(v) &&
                (observe__shelf_has(&shelves[0], v) || observe__shelf_has(&shelves[1], v));
        }
    }
    return MS_OK;
}

/* Tells whether many values have a type of low precision: rounding then decides which are alike. */
static bool is_coarse(const struct observe__shelf *f)
{
    size_t low = 0;
    for (size_t i = 0; i < f->n; i++)
        low += observe__unit(f->list[i]->dtype) > 0;
    return 10 * low > f->n;
}

/* Two frameworks compute a logarithm of what noise has changed, and values near one or zero amplify noise: outputs
 * of log differed by 7e-4 behind `1 - tanh(x)^2`, where tanh differs by 2e-5. What is not more than this is noise,
 * and values behind it are alike up to twice as much. */
static const double amplified = 1e-3;

static double slack_behind_logs(const struct observe__side *s, const struct observe__shelf *other)
{
    const uint16_t log = align__family_find(MS_STR("Torch.log"));
    double slack = other->slack;
    for (uint32_t i = 0; i < s->dump->rows.n; i++) {
        const struct probe_row *r = &s->dump->rows.p[i];
        bool is_log = observe__is_output(r) && is_forward(s->dump, r->node) &&
                      observe__is_searched(&s->value[i]) && s->value[i].n > 1 &&
                      align__family_find(observe__op_name(s->dump, r->node)) == log;
        double gap = is_log ? observe__shelf_gap(other, &s->value[i]) : 0;
        slack = gap < amplified ? fmax(slack, 2 * gap) : slack;
    }
    return slack;
}

static enum ms_rc walk_sides(struct observe__part *p, struct walk w[2], struct ms_err *err)
{
    for (unsigned s = 0; s < 2; s++) {
        MS_TRY(walk_side(&w[s], p->arena, err));
        p->losses[s] = w[s].loss;
        p->last_forward[s] =
            w[s].last != OBSERVE__NONE ? w[s].s->dump->rows.p[w[s].last].node : OBSERVE__NONE;
    }
    return MS_OK;
}

enum ms_rc observe__find_lost(struct observe__part *p, const struct cmp *c,
                              const struct observe__side side[2], struct ms_pool *pool,
                              struct ms_err *err)
{
    struct observe__shelf shelves[2] = {{.slack = alike[p->frameworks]},
                                        {.slack = alike[p->frameworks]}};
    for (unsigned s = 0; s < 2; s++)
        MS_TRY(observe__shelf_fill(&shelves[s], &side[s], is_of_forward, p->arena, err));
    if (is_coarse(&shelves[0]) || is_coarse(&shelves[1]))
        return MS_OK;
    if (p->frameworks)
        shelves[0].slack = shelves[1].slack = slack_behind_logs(&side[1], &shelves[0]);
    p->alike = fmax(shelves[0].slack, alike[1]);
    struct walk w[2] = {
        {.s = &side[0], .other = &shelves[1], .is_beside_graph = side[1].dump->is_graph},
        {.s = &side[1], .other = &shelves[0], .is_beside_graph = side[0].dump->is_graph}};
    MS_TRY(walk_sides(p, w, err));
    MS_TRY(do_starts_differ(p, side, err));
    p->ends_differ = do_ends_differ(&w[0], &w[1], shelves[0].slack);
    if (!p->ends_differ || p->mode != PROBE_MODE_TENSOR)
        return MS_OK;
    MS_TRY(observe__sketch_values(c, side, pool, err));
    return walk_sides(p, w, err);
}
