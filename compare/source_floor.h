/* SPDX-License-Identifier: MIT
 *
 * source_floor: the noise of a pair of runs, learned from what was executed before.
 *
 * The 95th percentile of the last 200 differences.  Because only the past counts, an
 * early fault does not hide itself by making everything behind it differ.
 */
#ifndef COMPARE_SOURCE_FLOOR_H
#define COMPARE_SOURCE_FLOOR_H

#include <stddef.h>

enum { SOURCE_FLOOR_WINDOW = 200, SOURCE_FLOOR_FEW = 20 };

struct source__floor {
    float ring[SOURCE_FLOOR_WINDOW];   /* by age */
    float sorted[SOURCE_FLOOR_WINDOW]; /* ascending */
    size_t n, next;
    size_t seen; /* in all */
};

/* Zero it to start. */
void source__floor_add(struct source__floor *f, float e);
/* The percentile; 0 when nothing was added. */
float source__floor_now(const struct source__floor *f);
/* Quantile q of n numbers, which are sorted in place; 0 of none. */
float source__quantile(float *x, size_t n, double q);

#endif
