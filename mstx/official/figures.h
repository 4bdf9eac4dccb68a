/* SPDX-License-Identifier: MIT
 *
 * figures: what the tables of the recipes say about a set of durations.
 */
#ifndef MSTX_OFFICIAL_FIGURES_H
#define MSTX_OFFICIAL_FIGURES_H

#include "probe/base/store.h"

#include <stddef.h>

struct mstx__figures {
    size_t n;
    double mean, deviation; /* of a sample; of one value there is no deviation */
    double min, q1, median, q3, max, sum;
};
enum { MSTX_FIGURES = 9 };

/* Describes n values and sorts them. Sums are made in the order in which the values are given, as
 * the aggregates of SQL make them (store_vtab.h). */
struct mstx__figures mstx__describe(double *x, size_t n);
/* Returns the squares of the distances from the mean, summed in order. */
double mstx__sum_of_squares(const double *x, size_t n);
/* Binds count, mean, deviation, minimum, quartiles, maximum and sum to nine parameters. Without
 * values all but the count are NULL. `whole` binds minimum, maximum and sum as whole numbers. */
void mstx__bind_figures(struct ms_stmt *st, int first, const struct mstx__figures *f, bool whole);

#endif
