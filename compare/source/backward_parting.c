/* SPDX-License-Identifier: MIT
 *
 * backward_parting: looks gradients of each side up among those of the other.
 */
#include "compare/source/backward_parting.h"
#include "compare/source/lost_values.h"
#include "compare/source/node_facts.h"
#include "compare/source/value_shelf.h"

#include <math.h>

/* Gradients that differ by less are alike: two frameworks compute that of gelu by other formulas, which moves
 * sums of it by up to 3e-4. Those smaller than this share of the largest are rounding: they are zero by
 * mathematics. */
static const double alike = 1e-3, share = 1e-5;

enum loss { LOST = 1 << 0, IN_LOST = 1 << 1, LASTS = 1 << 2 };

struct look {
    const struct source__side *s;
    struct source__shelf other;
    double largest;
    uint8_t *loss; /* by node */
    bool *weights; /* by row: it is the value of a parameter */
};

static bool is_gradient(const struct probe_dump *d, uint32_t row)
{
    return d->nodes.p[d->rows.p[row].node].dir == PROBE_BACKWARD;
}

static bool is_backward(const struct look *l, uint32_t node)
{
    return source__is_api(&l->s->dump->nodes.p[node], PROBE_BACKWARD);
}

static double norm_of(const struct look *l, uint32_t row)
{
    return fabs(l->s->value[row].stat[PROBE_STAT_NORM]);
}

static bool counts(const struct look *l, uint32_t row)
{
    const struct read__value *v = &l->s->value[row];
    return v->kind == READ__FLOAT && v->n > 1 && source__is_searched(v);
}

static bool is_lost(const struct look *l, uint32_t row)
{
    return counts(l, row) && norm_of(l, row) > share * l->largest &&
           !source__shelf_has(&l->other, &l->s->value[row]);
}

/* Tells whether a row is an input of a lasting operator that holds a lost gradient or a sum with it: of functions
 * no sums are recorded, so that nothing has made them. */
static bool carries_on(const struct look *l, uint32_t row, uint32_t lost)
{
    const struct probe_row *r = &l->s->dump->rows.p[row];
    uint32_t from = l->s->dump->rows.p[lost].node;
    if (source__is_output(r) || !(l->loss[r->node] & LASTS))
        return false;
    bool is_sum = !l->s->dump->is_graph && l->s->maker[row] == SOURCE__NONE && is_lost(l, row) &&
                  l->s->value[row].n == l->s->value[lost].n;
    return is_sum || l->s->maker[row] == from;
}

static bool is_read(const struct look *l, uint32_t node)
{
    for (uint32_t i = l->s->dump->nodes.p[node].first_row; i < l->s->dump->rows.n; i++) {
        const struct probe_row *r = &l->s->dump->rows.p[i];
        if (is_backward(l, r->node) && !source__is_output(r) && l->s->maker[i] == node)
            return true;
    }
    return false;
}

/* Returns the forward operator of a backward one; the node itself where none is recorded. */
static uint32_t forward_of(const struct probe_dump *d, uint32_t node)
{
    struct ms_str name = probe_node_name(d, node), op = probe_name_cut(name, 1);
    for (uint32_t i = node; i-- > 0;) {
        if (source__is_api(&d->nodes.p[i], PROBE_FORWARD) &&
            ms_str_eq(op, probe_name_cut(probe_node_name(d, i), 1)))
            return i;
    }
    return node;
}

/* Without records of modules nothing is known of the values of parameters, so the operator's name counts too. */
static bool has_parameter(const struct look *l, uint32_t node)
{
    const struct probe_node *n = &l->s->dump->nodes.p[node];
    bool found = (source__op_flags(source__op_name(l->s->dump, node)) &
                  (SOURCE__WEIGHED | SOURCE__LOOKUP)) != 0;
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++)
        found |= l->weights[i];
    return found;
}

/* Tells whether a lost gradient is at the end of the backward pass: it is computed from a lost one by an
 * operator that has a parameter, and nothing reads it. */
static bool is_end(const struct look *l, uint32_t node)
{
    return (l->loss[node] & (LOST | IN_LOST)) == (LOST | IN_LOST) && !is_read(l, node) &&
           has_parameter(l, forward_of(l->s->dump, node));
}

static bool is_carried_on(const struct look *l, uint32_t node)
{
    const struct probe_node *n = &l->s->dump->nodes.p[node];
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        if (!source__is_output(&l->s->dump->rows.p[i]) || !is_lost(l, i))
            continue;
        for (uint32_t k = n->first_row + n->nrows; k < l->s->dump->rows.n; k++) {
            if (carries_on(l, k, i))
                return true;
        }
    }
    return false;
}

/* Marks the operators whose lost gradients reach the end of the backward pass through lost ones. */
static void find_lasting(struct look *l)
{
    for (uint32_t i = (uint32_t)l->s->dump->nodes.n; i-- > 0;) {
        if ((l->loss[i] & LOST) && (is_end(l, i) || is_carried_on(l, i)))
            l->loss[i] |= LASTS;
    }
}

static enum ms_rc look_up(struct look *l, const struct source__side *s,
                          const struct source__side *other, bool *weights, struct ms_arena *arena,
                          struct ms_err *err)
{
    *l = (struct look){.s = s, .other = {.slack = alike}, .weights = weights};
    l->loss = ms_arena_calloc(arena, s->dump->nodes.n + 1, sizeof *l->loss);
    if (l->loss == NULL)
        return ms_arena_fail(arena, err);
    MS_TRY(source__shelf_fill(&l->other, other, is_gradient, arena, err));
    for (uint32_t i = 0; i < s->dump->rows.n; i++) {
        if (is_gradient(s->dump, i) && counts(l, i))
            l->largest = fmax(l->largest, norm_of(l, i));
    }
    for (uint32_t i = 0; i < s->dump->rows.n; i++) {
        uint32_t node = s->dump->rows.p[i].node;
        if (is_backward(l, node) && is_lost(l, i))
            l->loss[node] |= source__is_output(&s->dump->rows.p[i]) ? LOST : IN_LOST;
    }
    find_lasting(l);
    return MS_OK;
}

/* Returns the first backward operator that makes a lost gradient of gradients that both sides have. Where its
 * partner reads a lost gradient, that side has begun to differ before. */
static uint32_t first_parting(const struct look *l, const struct look *other, const uint32_t *mate)
{
    for (uint32_t i = 0; i < l->s->dump->nodes.n; i++) {
        bool is_excused = mate[i] != SOURCE__NONE && (other->loss[mate[i]] & IN_LOST);
        if (l->loss[i] == (LOST | LASTS) && !is_excused)
            return i;
    }
    return SOURCE__NONE;
}

static void note_parting(struct source__part *p, const struct look *l, unsigned side, uint32_t node,
                         const uint32_t *mate)
{
    uint32_t at = mate[node] == SOURCE__NONE ? forward_of(l->s->dump, node) : node;
    p->backward_parting.is_found = true;
    p->backward_parting.node[side] = at;
    p->backward_parting.node[1 - side] = mate[at];
}

enum ms_rc source__find_backward_parting(struct source__part *p, const struct source__side side[2],
                                         const uint32_t *const mate[2], struct ms_err *err)
{
    struct look look[2];
    bool *weights[2];
    p->backward_parting =
        (struct source__parting){.node = {SOURCE__NONE, SOURCE__NONE}, .is_found = false};
    if (p->losses[0] == NULL || p->ends_differ || p->starts_differ)
        return MS_OK;
    MS_TRY(source__find_weights((const struct source__side *const[]){&side[0], &side[1]}, p->arena,
                                weights, err));
    for (unsigned s = 0; s < 2; s++)
        MS_TRY(look_up(&look[s], &side[s], &side[1 - s], weights[s], p->arena, err));
    /* Functions are recorded as a whole, so the search begins with the side that is no graph. */
    unsigned first = side[0].dump->is_graph && !side[1].dump->is_graph;
    for (unsigned k = 0; k < 2 && !p->backward_parting.is_found; k++) {
        unsigned s = k == 0 ? first : 1 - first;
        uint32_t at = first_parting(&look[s], &look[1 - s], mate[s]);
        if (at != SOURCE__NONE)
            note_parting(p, &look[s], s, at, mate[s]);
    }
    return MS_OK;
}
