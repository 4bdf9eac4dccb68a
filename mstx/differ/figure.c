/* SPDX-License-Identifier: MIT
 *
 * figure: see the header.
 */
#include "mstx/differ/figure.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <stdlib.h>

/* Quiet: the quantile of the steps, of threads and with a device; as many steps must have the most
 * frequent number of parts for the parts to be compared one by one. */
static const double QUIET = 0.125, MIDDLE = 0.5, ALIKE = 0.6;

/* The parts of one place, by step. */
struct at_place {
    const struct mstx_trail_part *part;
    size_t parts;
    uint32_t steps;
    uint32_t *first; /* by step, and one more: where its parts begin */
    double *value;   /* room for one number a step */
    double quiet;    /* the quantile */
};

/* Returns the value that the given share of numbers does not exceed, between two by their distance. */
static double quantile(double *v, size_t n, double share)
{
    qsort(v, n, sizeof *v, ms_order_f64);
    const double at = share * (double)(n - 1);
    const size_t i = (size_t)at;
    return i + 1 < n ? v[i] + (at - (double)i) * (v[i + 1] - v[i]) : v[i];
}

static void find_firsts(struct at_place *a)
{
    size_t i = 0;
    for (uint32_t s = 0; s < a->steps; s++) {
        while (i < a->parts && a->part[i].step < s)
            i++;
        a->first[s] = (uint32_t)i;
    }
    a->first[a->steps] = (uint32_t)a->parts;
}

static uint32_t count_at(const struct at_place *a, uint32_t step)
{
    return a->first[step + 1] - a->first[step];
}

/* Returns the most frequent number of parts a step, and in how many of the steps it occurs. */
static uint32_t usual_count(struct at_place *a, uint32_t from, uint32_t to, uint32_t *times)
{
    uint32_t best = 0, run = 0;
    *times = 0;
    for (uint32_t s = from; s < to; s++)
        a->value[s - from] = (double)count_at(a, s);
    qsort(a->value, to - from, sizeof *a->value, ms_order_f64);
    for (uint32_t i = 0; i < to - from; i++) {
        run = i != 0 && a->value[i] == a->value[i - 1] ? run + 1 : 1;
        if (run > *times) {
            *times = run;
            best = (uint32_t)a->value[i];
        }
    }
    return best;
}

/* Quiet time of whole steps, for places whose parts differ in number. */
static double quiet_of_sums(struct at_place *a, uint32_t from, uint32_t to)
{
    for (uint32_t s = from; s < to; s++) {
        double sum = 0;
        for (uint32_t i = a->first[s]; i < a->first[s + 1]; i++)
            sum += (double)a->part[i].ns;
        a->value[s - from] = sum;
    }
    return quantile(a->value, to - from, a->quiet);
}

/* Quiet time between two steps. */
static double quiet_between(struct at_place *a, uint32_t from, uint32_t to)
{
    uint32_t times;
    const uint32_t count = usual_count(a, from, to, &times);
    if ((double)times < ALIKE * (double)(to - from))
        return quiet_of_sums(a, from, to);
    double sum = 0;
    for (uint32_t k = 0; k < count; k++) {
        size_t n = 0;
        for (uint32_t s = from; s < to; s++) {
            if (count_at(a, s) == count)
                a->value[n++] = (double)a->part[a->first[s] + k].ns;
        }
        sum += quantile(a->value, n, a->quiet);
    }
    return sum;
}

static double mean_of(const struct at_place *a)
{
    double sum = 0;
    for (size_t i = 0; i < a->parts; i++)
        sum += (double)a->part[i].ns;
    return sum / (double)a->steps;
}

static bool add_figure(mstx_figures *to, struct at_place *a, uint32_t rank)
{
    struct mstx_figure *f = ms_vec_push(to);
    if (f == NULL)
        return false;
    uint32_t times;
    find_firsts(a);
    *f = (struct mstx_figure){.place = a->part[0].place,
                              .rank = rank,
                              .quiet = quiet_between(a, 0, a->steps),
                              .mean = mean_of(a),
                              .count = (double)usual_count(a, 0, a->steps, &times)};
    for (uint32_t b = 0; b < MSTX_BLOCKS; b++) {
        const uint32_t from = b * a->steps / MSTX_BLOCKS,
                       to_step = (b + 1) * a->steps / MSTX_BLOCKS;
        f->block[b] = to_step > from ? quiet_between(a, from, to_step) : f->quiet;
    }
    return true;
}

bool mstx__figures_add(mstx_figures *to, const struct mstx_figure_of *of)
{
    const struct mstx_trail *t = of->trail;
    ms_assert(of->steps != 0);
    struct at_place a = {.steps = of->steps,
                         .first = ms_calloc((size_t)of->steps + 1, sizeof *a.first),
                         .value = ms_calloc(of->steps, sizeof *a.value),
                         .quiet = of->has_device ? MIDDLE : QUIET};
    bool ok = a.first != NULL && a.value != NULL;
    for (size_t i = 0; i < t->part.n && ok; i += a.parts) {
        a.part = t->part.p + i;
        for (a.parts = 1; i + a.parts < t->part.n && a.part[a.parts].place == a.part[0].place;)
            a.parts++;
        ok = add_figure(to, &a, of->rank);
    }
    ms_free(a.first);
    ms_free(a.value);
    return ok;
}
