/* SPDX-License-Identifier: MIT
 *
 * update_results: looks the parameters of each side up among those of the other.
 */
#include "compare/source/update_results.h"
#include "compare/source/leaf_distance.h"
#include "compare/source/node_facts.h"
#include "compare/source/noise_floor.h"
#include "compare/source/value_shelf.h"
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
    return source__is_api(&d->nodes.p[d->rows.p[row].node], PROBE_FORWARD);
}

/* Marks the nodes whose results an operator reads. */
static void mark_read(const struct source__side *s, bool *is_read)
{
    for (uint32_t i = 0; i < s->dump->rows.n; i++) {
        const struct probe_row *r = &s->dump->rows.p[i];
        bool is_api = s->dump->nodes.p[r->node].kind == PROBE_NODE_API;
        if (is_api && !source__is_output(r) && s->maker[i] < s->dump->nodes.n)
            is_read[s->maker[i]] = true;
    }
}

/* Tells whether an operator writes a parameter: it stands behind the begin of the backward pass, and no
 * operator reads its result. */
static bool is_update(const struct source__side *s, const bool *is_read, uint32_t row)
{
    const struct probe_row *r = &s->dump->rows.p[row];
    return source__is_output(r) && is_of_forward(s->dump, row) && !is_read[r->node] &&
           s->value[row].n > 1 && source__is_searched(&s->value[row]);
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
static uint32_t row_of_update(const struct source__side *s, uint32_t row)
{
    const double little = 0.3;
    const uint32_t first = s->dump->nodes.p[s->dump->rows.p[row].node].first_row;
    const struct read__value *in = &s->value[first], *out = &s->value[row];
    bool is_written = !s->dump->is_graph || !source__is_searched(in) || in->n != out->n ||
                      source__value_gap(in, out) < little;
    return is_written ? row : first;
}

enum what { PARAMETERS, GRADIENTS, UPDATES };

static bool is_meant(const struct source__side *s, const bool *is_read, uint32_t row,
                     enum what what)
{
    if (what == UPDATES)
        return is_update(s, is_read, row);
    const struct probe_node *n = &s->dump->nodes.p[s->dump->rows.p[row].node];
    bool is_gradient =
        (n->kind == PROBE_NODE_PGRAD || n->dir == PROBE_BACKWARD) && s->value[row].n > 1;
    return (what == GRADIENTS ? is_gradient : is_parameter(s->dump, row)) &&
           source__is_searched(&s->value[row]);
}

/* Computes how far three in four values of a kind are at most from those of the other side; NaN: there are
 * none. */
static enum ms_rc gap_of(const struct source__side *s, const struct source__shelf *other,
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
            gaps[n++] = (float)source__shelf_gap(other, &s->value[at]);
    }
    *gap = n != 0 ? source__quantile(gaps, n, share) : NAN;
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
static enum ms_rc weigh(struct source__part *p, const struct source__side side[2], enum what what,
                        float *gap, struct ms_err *err)
{
    bool (*const shelves[])(const struct probe_dump *, uint32_t) = {is_parameter, is_any,
                                                                    is_of_forward};
    float gaps[2];
    for (unsigned s = 0; s < 2; s++) {
        struct source__shelf other = {0};
        MS_TRY(source__shelf_fill(&other, &side[1 - s], shelves[what], p->arena, err));
        MS_TRY(gap_of(&side[s], &other, what, &gaps[s], err));
    }
    *gap =
        what == GRADIENTS || (!isnan(gaps[0]) && !isnan(gaps[1])) ? fminf(gaps[0], gaps[1]) : NAN;
    return MS_OK;
}

enum ms_rc source__weigh_updates(struct source__part *p, const struct source__side side[2],
                                 struct ms_err *err)
{
    MS_TRY(weigh(p, side, PARAMETERS, &p->start_gap, err));
    MS_TRY(weigh(p, side, GRADIENTS, &p->gradient_gap, err));
    return weigh(p, side, UPDATES, &p->update_gap, err);
}
