/* SPDX-License-Identifier: MIT
 *
 * source_floor: the noise of a pair of runs, learned from what was executed before.
 *
 * The 95th percentile of the last 200 differences.  Because only the past counts, an
 * early fault does not hide itself by making everything behind it differ.
 *
 * Differences are counted in bins of their exponent and five bits of their mantissa,
 * so a figure is known to 3 %, adding one costs a few instructions, and the result
 * is made of whole numbers alone.
 */
#ifndef COMPARE_SOURCE_FLOOR_H
#define COMPARE_SOURCE_FLOOR_H

#include <stddef.h>
#include <stdint.h>

enum { SOURCE_FLOOR_WINDOW = 200, SOURCE_FLOOR_FEW = 20, SOURCE_FLOOR_BINS = 1 << 13 };

struct source__floor {
    uint16_t ring[SOURCE_FLOOR_WINDOW]; /* bins by age */
    uint16_t count[SOURCE_FLOOR_BINS];
    size_t n, next;
    size_t seen;        /* in all */
    size_t bin, before; /* where the percentile was; how many lie in lower bins */
};

/* Zero it to start. */
void source__floor_add(struct source__floor *f, float e);
/* The percentile; 0 when nothing was added. */
float source__floor_now(struct source__floor *f);
/* Quantile q of n numbers, which are sorted in place; 0 of none. */
float source__quantile(float *x, size_t n, double q);
/* The number at or below it, so that of four numbers one does not speak for the others. */
float source__lower(float *x, size_t n, double q);

#endif
