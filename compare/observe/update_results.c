/* SPDX-License-Identifier: MIT
 *
 * update_results: looks the parameters of each side up among those of the other.
 */
#include "compare/observe/update_results.h"
#include "compare/observe/leaf_distance.h"
#include "compare/observe/node_facts.h"
#include "compare/observe/noise_floor.h"
#include "compare/observe/value_shelf.h"
#include "probe/base/mem.h"

#include <math.h>

/* One value in four may be of a parameter that is frozen or updated in another way. */
static const double share = 0.75;

static bool is_parameter(const struct probe_dump *d, uint32_t row)
{
    return d->rows.p[row].section == PROBE_SEC_PARAMETERS;
}

static bool is_of_forward(const struct probe_dump *d, uint32_t row)
{
    return observe__is_api(&d->nodes.p[d->rows.p[row].node], PROBE_FORWARD);
}

/* Marks the nodes whose results an operator reads. */
static void mark_read(const struct observe__side *s, bool *is_read)
{
    for (uint32_t i = 0; i < s->dump->rows.n; i++) {
        const struct probe_row *r = &s->dump->rows.p[i];
        bool is_api = s->dump->nodes.p[r->node].kind == PROBE_NODE_API;
        if (is_api && !observe__is_output(r) && s->maker[i] < s->dump->nodes.n)
            is_read[s->maker[i]] = true;
    }
}

/* Tells whether an operator writes a parameter: it stands behind the begin of the backward pass, and no
 * operator reads its result. */
static bool is_update(const struct observe__side *s, const bool *is_read, uint32_t row)
{
    const struct probe_row *r = &s->dump->rows.p[row];
    return observe__is_output(r) && is_of_forward(s->dump, row) && !is_read[r->node] &&
           s->value[row].n > 1 && observe__is_searched(&s->value[row]);
}

static uint32_t begin_of_backward(const struct probe_dump *d)
{
    uint32_t i = 0;
    while (i < d->nodes.n && d->nodes.p[i].dir != PROBE_BACKWARD)
        i++;
    return i < d->nodes.n ? d->nodes.p[i].first_row : (uint32_t)d->rows.n;
}

/* Returns the row of the value that an operator leaves in a parameter. Kernels of a graph such as Adam's write their
 * first input, and their outputs are memory that nothing has written: an update moves a parameter by little. */
static uint32_t row_of_update(const struct observe__side *s, uint32_t row)
{
    const double little = 0.3;
    const uint32_t first = s->dump->nodes.p[s->dump->rows.p[row].node].first_row;
    const struct read__value *in = &s->value[first], *out = &s->value[row];
    bool is_written = !s->dump->is_graph || !observe__is_searched(in) || in->n != out->n ||
                      observe__value_gap(in, out) < little;
    return is_written ? row : first;
}

enum what { PARAMETERS, GRADIENTS, UPDATES };

static bool is_meant(const struct observe__side *s, const bool *is_read, uint32_t row,
                     enum what what)
{
    if (what == UPDATES)
        return is_update(s, is_read, row);
    const struct probe_node *n = &s->dump->nodes.p[s->dump->rows.p[row].node];
    bool is_gradient =
        (n->kind == PROBE_NODE_PGRAD || n->dir == PROBE_BACKWARD) && s->value[row].n > 1;
    return (what == GRADIENTS ? is_gradient : is_parameter(s->dump, row)) &&
           observe__is_searched(&s->value[row]);
}

/* Computes how far three in four values of a kind are at most from those of the other side; NaN: there are
 * none. */
static enum ms_rc gap_of(const struct observe__side *s, const struct observe__shelf *other,
                         enum what what, float *gap, struct ms_err *err)
{
    float *gaps = ms_alloc((s->dump->rows.n + 1) * sizeof *gaps);
    bool *is_read = ms_calloc(s->dump->nodes.n + 1, sizeof *is_read);
    const bool fine = gaps != NULL && is_read != NULL;
    size_t n = 0;
    if (fine)
        mark_read(s, is_read);
    for (uint32_t i = what == UPDATES ? begin_of_backward(s->dump) : 0; fine && i < s->dump->rows.n;
         i++) {
        uint32_t at = what == UPDATES ? row_of_update(s, i) : i;
        if (is_meant(s, is_read, i, what))
            gaps[n++] = (float)observe__shelf_gap(other, &s->value[at]);
    }
    *gap = n != 0 ? observe__quantile(gaps, n, share) : NAN;
    ms_free(gaps);
    ms_free(is_read);
    return fine ? MS_OK : ms_no_memory(err);
}

static bool is_any(const struct probe_dump *d, uint32_t row)
{
    (void)d;
    (void)row;
    return true;
}

/* The smaller of what both sides say: a side may write more than its parameters, and of a graph the gradients
 * are not told apart from other values. */
static enum ms_rc weigh(struct observe__part *p, const struct observe__side side[2], enum what what,
                        float *gap, struct ms_err *err)
{
    bool (*const shelves[])(const struct probe_dump *, uint32_t) = {is_parameter, is_any,
                                                                    is_of_forward};
    float gaps[2];
    for (unsigned s = 0; s < 2; s++) {
        struct observe__shelf other = {0};
        MS_TRY(observe__shelf_fill(&other, &side[1 - s], shelves[what], p->arena, err));
        MS_TRY(gap_of(&side[s], &other, what, &gaps[s], err));
    }
    *gap =
        what == GRADIENTS || (!isnan(gaps[0]) && !isnan(gaps[1])) ? fminf(gaps[0], gaps[1]) : NAN;
    return MS_OK;
}

enum ms_rc observe__weigh_updates(struct observe__part *p, const struct observe__side side[2],
                                  struct ms_err *err)
{
    MS_TRY(weigh(p, side, PARAMETERS, &p->start_gap, err));
    MS_TRY(weigh(p, side, GRADIENTS, &p->gradient_gap, err));
    return weigh(p, side, UPDATES, &p->update_gap, err);
}

/* ---- runs of one program ------------------------------------------------------ */

/* The tensors that the update of one side changes in place. */
struct changes {
    const struct observe__side *s;
    uint32_t begin; /* first node behind the backward pass */
    bool *is_end;   /* by row: what the last operator leaves in a tensor */
    bool *is_own;   /* by row: that tensor is a parameter of the forward pass */
};

static bool is_change(const struct changes *c, uint32_t node)
{
    const struct probe_dump *d = c->s->dump;
    return node >= c->begin && node < d->nodes.n &&
           observe__is_api(&d->nodes.p[node], PROBE_FORWARD) &&
           observe__is_in_place(observe__op_name(d, node));
}

/* Returns the row that an operator in place writes, or OBSERVE__NONE. */
static uint32_t row_written(const struct changes *c, uint32_t node)
{
    const struct probe_node *n = &c->s->dump->nodes.p[node];
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        if (observe__is_output(&c->s->dump->rows.p[i]))
            return c->s->value[i].n > 1 && observe__is_searched(&c->s->value[i]) ? i
                                                                                 : OBSERVE__NONE;
    }
    return OBSERVE__NONE;
}

/* Tells whether an operator reads, beside the tensor that it changes, a parameter that the update has changed: it keeps an
 * average of the parameters. */
static bool reads_parameter(const struct changes *c, uint32_t node)
{
    const struct probe_node *n = &c->s->dump->nodes.p[node];
    for (uint32_t i = n->first_row + 1; i < n->first_row + n->nrows; i++) {
        const uint32_t maker = c->s->maker[i];
        if (observe__is_output(&c->s->dump->rows.p[i]) || !is_change(c, maker))
            continue;
        const uint32_t row = row_written(c, maker);
        if (row != OBSERVE__NONE && c->is_own[row])
            return true;
    }
    return false;
}

/* An operator goes on with the tensor that the one before has written. */
static void follow(struct changes *c, const struct observe__shelf *parameters, uint32_t node)
{
    const uint32_t out = row_written(c, node), in = c->s->dump->nodes.p[node].first_row;
    if (out == OBSERVE__NONE || out == in)
        return;
    const uint32_t maker = c->s->maker[in];
    const uint32_t before = is_change(c, maker) ? row_written(c, maker) : OBSERVE__NONE;
    c->is_end[out] = true;
    c->is_own[out] = (before != OBSERVE__NONE ? c->is_own[before]
                                              : observe__shelf_has(parameters, &c->s->value[in])) &&
                     !reads_parameter(c, node);
    if (before != OBSERVE__NONE)
        c->is_end[before] = false;
}

/* Fills a shelf with what operators read before the backward pass: parameters among others. */
static enum ms_rc shelve_forward(struct observe__shelf *f, const struct observe__side *s,
                                 struct ms_arena *arena, struct ms_err *err)
{
    struct probe_dump before = *s->dump;
    struct observe__side side = *s;
    before.rows.n = begin_of_backward(s->dump);
    side.dump = &before;
    return observe__shelf_fill(f, &side, is_of_forward, arena, err);
}

static enum ms_rc find_changes(struct changes *c, const struct observe__side *s,
                               struct ms_arena *arena, struct ms_err *err)
{
    struct observe__shelf parameters = {0};
    const size_t n = s->dump->rows.n + 1;
    *c = (struct changes){.s = s, .begin = (uint32_t)s->dump->nodes.n};
    while (c->begin > 0 && s->dump->nodes.p[c->begin - 1].dir != PROBE_BACKWARD)
        c->begin--;
    c->is_end = ms_arena_calloc(arena, n, sizeof *c->is_end);
    c->is_own = ms_arena_calloc(arena, n, sizeof *c->is_own);
    if (c->is_end == NULL || c->is_own == NULL)
        return ms_arena_fail(arena, err);
    MS_TRY(shelve_forward(&parameters, s, arena, err));
    for (uint32_t i = c->begin; i < s->dump->nodes.n && c->begin != 0; i++) {
        if (is_change(c, i))
            follow(c, &parameters, i);
    }
    return MS_OK;
}

/* Returns the norm of the largest value that an update leaves. */
static double largest_end(const struct changes *c)
{
    double largest = 0;
    for (uint32_t i = 0; i < c->s->dump->rows.n; i++) {
        if (c->is_end[i])
            largest = fmax(largest, fabs(c->s->value[i].stat[PROBE_STAT_NORM]));
    }
    return largest;
}

/* Tells whether another side has what an update leaves; of the target's what it leaves in parameters. Values of
 * rounding alone, as gradients that are zero by mathematics, do not count. */
static bool are_met(const struct changes *c, const struct observe__shelf *other, bool own)
{
    const double least = 1e-6 * largest_end(c);
    bool any = false;
    for (uint32_t i = 0; i < c->s->dump->rows.n; i++) {
        if (!c->is_end[i] || (own && !c->is_own[i]))
            continue;
        any = true;
        const struct read__value *v = &c->s->value[i];
        if (fabs(v->stat[PROBE_STAT_NORM]) > least && !observe__shelf_has(other, v))
            return false;
    }
    return any;
}

enum ms_rc observe__compare_updates(struct observe__part *p, const struct observe__side side[2],
                                    struct ms_err *err)
{
    static const double slack = 2e-5; /* as of gradients that agree */
    struct changes c[2];
    struct observe__shelf shelf[2] = {{.slack = slack}, {.slack = slack}};
    for (unsigned s = 0; s < 2; s++) {
        MS_TRY(find_changes(&c[s], &side[s], p->arena, err));
        MS_TRY(observe__shelf_fill(&shelf[s], &side[s], is_of_forward, p->arena, err));
    }
    p->do_updates_agree = are_met(&c[0], &shelf[1], false) && are_met(&c[1], &shelf[0], true);
    return MS_OK;
}
