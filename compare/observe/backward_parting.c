/* SPDX-License-Identifier: MIT
 *
 * backward_parting: looks gradients of each side up among those of the other.
 */
#include "compare/observe/backward_parting.h"
#include "compare/align/likeness.h"
#include "compare/observe/leaf_distance.h"
#include "compare/observe/lost_values.h"
#include "compare/observe/node_facts.h"
#include "compare/observe/value_shelf.h"

#include <math.h>

/* Gradients that differ by less are alike: two frameworks compute that of gelu by other formulas, which moves
 * sums of it by up to 3e-4. Those smaller than this share of the largest are rounding: they are zero by
 * mathematics. */
static const double alike = 1e-3, share = 1e-5;

enum loss { LOST = 1 << 0, IN_LOST = 1 << 1, LASTS = 1 << 2 };

struct look {
    const struct observe__side *s;
    struct observe__shelf other;
    double largest;
    uint8_t *loss;  /* by node */
    bool *weights;  /* by row: it is the value of a parameter */
    bool *is_lost;  /* by row of the backward pass */
    bool *is_read;  /* by node: a backward operator reads its result */
    bool *goes_on;  /* by node: one that lasts reads it */
    uint64_t *sums; /* numbers of elements of lost sums that lasting operators read */
    size_t nsums;
};

static bool is_gradient(const struct probe_dump *d, uint32_t row)
{
    return d->nodes.p[d->rows.p[row].node].dir == PROBE_BACKWARD;
}

static bool is_backward(const struct look *l, uint32_t node)
{
    return observe__is_api(&l->s->dump->nodes.p[node], PROBE_BACKWARD);
}

static double norm_of(const struct look *l, uint32_t row)
{
    return fabs(l->s->value[row].stat[PROBE_STAT_NORM]);
}

static bool counts(const struct look *l, uint32_t row)
{
    const struct read__value *v = &l->s->value[row];
    return v->kind == READ__FLOAT && v->n > 1 && observe__is_searched(v);
}

static bool is_lost(const struct look *l, uint32_t row)
{
    return counts(l, row) && norm_of(l, row) > share * l->largest &&
           !observe__shelf_has(&l->other, &l->s->value[row]);
}

/* Returns the forward operator of a backward one; the node itself where none is recorded. */
static uint32_t forward_of(const struct probe_dump *d, uint32_t node)
{
    uint32_t found = observe__same_call(d, node, ".forward");
    return found != MS_MAP_NONE ? found : node;
}

/* Without records of modules nothing is known of the values of parameters, so the operator's name counts too. */
static bool has_parameter(const struct look *l, uint32_t node)
{
    const struct probe_node *n = &l->s->dump->nodes.p[node];
    bool found = (observe__op_flags(observe__op_name(l->s->dump, node)) &
                  (OBSERVE__WEIGHED | OBSERVE__LOOKUP)) != 0;
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++)
        found |= l->weights[i];
    return found;
}

/* Tells whether a lost gradient is at the end of the backward pass: it is computed from a lost one by an
 * operator that has a parameter, and nothing reads it. */
static bool is_end(const struct look *l, uint32_t node)
{
    return (l->loss[node] & (LOST | IN_LOST)) == (LOST | IN_LOST) && !l->is_read[node] &&
           has_parameter(l, forward_of(l->s->dump, node));
}

static bool is_sum_read(const struct look *l, uint64_t n)
{
    size_t i = 0;
    while (i < l->nsums && l->sums[i] != n)
        i++;
    return i < l->nsums;
}

/* Tells whether a lasting operator reads a lost gradient of a node or a sum with it: of functions no sums are
 * recorded, so that nothing has made them. */
static bool is_carried_on(const struct look *l, uint32_t node)
{
    const struct probe_node *n = &l->s->dump->nodes.p[node];
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        bool is_result = observe__is_output(&l->s->dump->rows.p[i]) && l->is_lost[i];
        if (is_result && (l->goes_on[node] || is_sum_read(l, l->s->value[i].n)))
            return true;
    }
    return false;
}

/* Notes what an operator that lasts reads, for the operators before it. */
static void pass_on(struct look *l, uint32_t node)
{
    const struct probe_node *n = &l->s->dump->nodes.p[node];
    l->loss[node] |= LASTS;
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        uint32_t maker = l->s->maker[i];
        if (observe__is_output(&l->s->dump->rows.p[i]))
            continue;
        if (maker < l->s->dump->nodes.n)
            l->goes_on[maker] = true;
        else if (!l->s->dump->is_graph && l->is_lost[i] && !is_sum_read(l, l->s->value[i].n))
            l->sums[l->nsums++] = l->s->value[i].n;
    }
}

/* Marks the operators whose lost gradients reach the end of the backward pass through lost ones. */
static void find_lasting(struct look *l)
{
    for (uint32_t i = (uint32_t)l->s->dump->nodes.n; i-- > 0;) {
        if ((l->loss[i] & LOST) && (is_end(l, i) || is_carried_on(l, i)))
            pass_on(l, i);
    }
}

static enum ms_rc make_room(struct look *l, struct ms_arena *arena, struct ms_err *err)
{
    const size_t nodes = l->s->dump->nodes.n + 1, rows = l->s->dump->rows.n + 1;
    l->loss = ms_arena_calloc(arena, nodes, sizeof *l->loss);
    l->is_read = ms_arena_calloc(arena, nodes, sizeof *l->is_read);
    l->goes_on = ms_arena_calloc(arena, nodes, sizeof *l->goes_on);
    l->is_lost = ms_arena_calloc(arena, rows, sizeof *l->is_lost);
    l->sums = ms_arena_alloc(arena, rows * sizeof *l->sums);
    bool fine = l->loss != NULL && l->is_read != NULL && l->goes_on != NULL && l->is_lost != NULL &&
                l->sums != NULL;
    return fine ? MS_OK : ms_arena_fail(arena, err);
}

static void look_up_row(struct look *l, uint32_t row)
{
    bool out = observe__is_output(&l->s->dump->rows.p[row]);
    uint32_t node = l->s->dump->rows.p[row].node, maker = l->s->maker[row];
    l->is_lost[row] = is_lost(l, row);
    if (l->is_lost[row])
        l->loss[node] |= out ? LOST : IN_LOST;
    if (!out && maker < l->s->dump->nodes.n)
        l->is_read[maker] = true;
}

static enum ms_rc look_up(struct look *l, const struct observe__side *s,
                          const struct observe__side *other, bool *weights, struct ms_arena *arena,
                          struct ms_err *err)
{
    *l = (struct look){.s = s, .other = {.slack = alike}, .weights = weights};
    MS_TRY(make_room(l, arena, err));
    MS_TRY(observe__shelf_fill(&l->other, other, is_gradient, arena, err));
    for (uint32_t i = 0; i < s->dump->rows.n; i++) {
        if (is_gradient(s->dump, i) && counts(l, i))
            l->largest = fmax(l->largest, norm_of(l, i));
    }
    for (uint32_t i = 0; i < s->dump->rows.n; i++) {
        if (is_backward(l, s->dump->rows.p[i].node))
            look_up_row(l, i);
    }
    find_lasting(l);
    return MS_OK;
}

/* Tells whether a sum of the other side adds a lost gradient to one that a node reads: the other side has begun to
 * differ before. */
static bool is_summed(const struct look *l, const struct look *other, uint32_t node)
{
    const struct probe_node *n = &l->s->dump->nodes.p[node];
    const uint32_t sums = align__family_find(MS_STR("Primitive.AddN"));
    for (uint32_t i = 0; i < other->s->dump->rows.n; i++) {
        uint32_t at = other->s->dump->rows.p[i].node;
        bool is_sum = is_backward(other, at) && other->loss[at] == (LOST | IN_LOST | LASTS) &&
                      align__family_find(observe__op_name(other->s->dump, at)) == sums;
        for (uint32_t k = n->first_row; k < n->first_row + n->nrows && is_sum; k++) {
            if (!observe__is_output(&l->s->dump->rows.p[k]) && counts(l, k) && counts(other, i) &&
                l->s->value[k].n == other->s->value[i].n &&
                observe__value_gap(&l->s->value[k], &other->s->value[i]) < alike)
                return true;
        }
    }
    return false;
}

/* Returns the first backward operator that makes a lost gradient of gradients that both sides have. Where its
 * partner reads a lost gradient, that side has begun to differ before. */
static uint32_t first_parting(const struct look *l, const struct look *other, const uint32_t *mate)
{
    enum { SUMS_MAX = 64 }; /* each is sought among all rows of the other side */
    unsigned sums = 0;
    for (uint32_t i = 0; i < l->s->dump->nodes.n; i++) {
        bool is_excused =
            (mate[i] != OBSERVE__NONE && (other->loss[mate[i]] & IN_LOST)) ||
            (l->loss[i] == (LOST | LASTS) && sums++ < SUMS_MAX && is_summed(l, other, i));
        if (l->loss[i] == (LOST | LASTS) && !is_excused)
            return i;
    }
    return OBSERVE__NONE;
}

/* Returns the part of a row's path behind the section: the place of an argument. */
static struct ms_str place_of(const struct probe_dump *d, uint32_t row)
{
    struct ms_str path = probe_row_path(d, &d->rows.p[row]);
    const char *dot = memchr(path.p, '.', path.n);
    return dot != NULL ? (struct ms_str){dot, (uint32_t)(path.n - (dot - path.p))} : path;
}

/* Returns the operator that made the input of a forward operator to which a gradient belongs; OBSERVE__NONE: there is
 * none. */
static uint32_t maker_of_input(const struct look *l, uint32_t forward, uint32_t gradient)
{
    const struct probe_dump *d = l->s->dump;
    const struct probe_node *n = &d->nodes.p[forward];
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        if (!observe__is_output(&d->rows.p[i]) && l->s->maker[i] < forward &&
            l->s->value[i].n == l->s->value[gradient].n &&
            ms_str_eq(place_of(d, i), place_of(d, gradient)))
            return l->s->maker[i];
    }
    return OBSERVE__NONE;
}

/* Returns the operator whose result the other side detaches before a node reads it: of the gradients that the node
 * makes, the other side has one and lacks that of this input. OBSERVE__NONE: there is no such input. */
static uint32_t detached_before(const struct look *l, uint32_t node)
{
    const struct probe_node *n = &l->s->dump->nodes.p[node];
    uint32_t lost = OBSERVE__NONE;
    bool has_other = false;
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        if (!observe__is_output(&l->s->dump->rows.p[i]) || !counts(l, i))
            continue;
        lost = l->is_lost[i] ? i : lost;
        has_other |= !l->is_lost[i];
    }
    uint32_t forward = forward_of(l->s->dump, node);
    return has_other && lost != OBSERVE__NONE && forward != node ? maker_of_input(l, forward, lost)
                                                                 : OBSERVE__NONE;
}

static void note_parting(struct observe__part *p, const struct look *l, unsigned side,
                         uint32_t node, const uint32_t *mate)
{
    uint32_t maker = detached_before(l, node);
    uint32_t at = maker != OBSERVE__NONE        ? maker
                  : mate[node] == OBSERVE__NONE ? forward_of(l->s->dump, node)
                                                : node;
    p->backward_parting.is_found = true;
    p->backward_parting.node[side] = at;
    p->backward_parting.node[1 - side] = mate[at];
}

enum ms_rc observe__find_backward_parting(struct observe__part *p,
                                          const struct observe__side side[2],
                                          const uint32_t *const mate[2], struct ms_err *err)
{
    struct look look[2];
    bool *weights[2];
    p->backward_parting =
        (struct observe__parting){.node = {OBSERVE__NONE, OBSERVE__NONE}, .is_found = false};
    if (p->losses[0] == NULL || p->ends_differ || p->starts_differ)
        return MS_OK;
    MS_TRY(observe__find_weights((const struct observe__side *const[]){&side[0], &side[1]},
                                 p->arena, weights, err));
    for (unsigned s = 0; s < 2; s++)
        MS_TRY(look_up(&look[s], &side[s], &side[1 - s], weights[s], p->arena, err));
    /* Functions are recorded as a whole, so the search begins with the side that is no graph. */
    unsigned first = side[0].dump->is_graph && !side[1].dump->is_graph;
    for (unsigned k = 0; k < 2 && !p->backward_parting.is_found; k++) {
        unsigned s = k == 0 ? first : 1 - first;
        uint32_t at = first_parting(&look[s], &look[1 - s], mate[s]);
        if (at != OBSERVE__NONE)
            note_parting(p, &look[s], s, at, mate[s]);
    }
    return MS_OK;
}
