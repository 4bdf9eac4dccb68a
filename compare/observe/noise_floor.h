/* SPDX-License-Identifier: MIT
 *
 * noise_floor: the noise of a pair of runs, learned from the nodes executed before.
 *
 * The noise is the 95th percentile of the last 200 differences. Only earlier nodes
 * count, so an early fault does not hide itself by making all later values differ.
 *
 * Differences are counted in bins of their exponent and five bits of their mantissa.
 * The percentile is exact to 3 %, adding a difference costs a few instructions, and
 * the result depends on integers alone.
 */
#ifndef COMPARE_OBSERVE_NOISE_FLOOR_H
#define COMPARE_OBSERVE_NOISE_FLOOR_H

#include <stddef.h>
#include <stdint.h>

enum { SOURCE_FLOOR_WINDOW = 200, SOURCE_FLOOR_FEW = 20, SOURCE_FLOOR_BINS = 1 << 13 };

struct observe__floor {
    uint16_t ring[SOURCE_FLOOR_WINDOW]; /* bins by age */
    uint16_t count[SOURCE_FLOOR_BINS];
    size_t n, next;
    size_t seen;        /* number of all values so far */
    size_t bin, before; /* bin of the last percentile; number of values in lower bins */
};

/* Adds a difference. A zeroed struct is empty. */
void observe__floor_add(struct observe__floor *f, float e);
/* Returns the percentile; 0 when nothing was added. */
float observe__floor_now(struct observe__floor *f);
/* Returns quantile q of n numbers, which are sorted in place; 0 when n is 0. */
float observe__quantile(float *x, size_t n, double q);
/* Returns the number at or below quantile q, so that one of four numbers does not stand for all. */
float observe__lower(float *x, size_t n, double q);

#endif
