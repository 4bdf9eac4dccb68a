/* SPDX-License-Identifier: MIT
 *
 * measure_stat: differences of the statistics of a row.
 */
#ifndef COMPARE_MEASURE_MEASURE_STAT_H
#define COMPARE_MEASURE_MEASURE_STAT_H

#include "compare/read/setup.h"

/* Measures a row by the rules of the comparison. */
enum ms_rc cmp__measure_stats(const struct cmp_setup *set, struct cmp_view *v, struct cmp_row *row,
                              struct ms_err *err);
/* Measures a row by the rules of msprobe 1. */
enum ms_rc cmp__measure_stats_old(struct cmp_view *v, struct cmp_row *row, struct ms_err *err);
/* Returns a number or an infinity; NaN for any other value. */
double cmp__value_number(const struct cmp_value *x);

#endif
