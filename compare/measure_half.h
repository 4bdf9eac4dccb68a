/* SPDX-License-Identifier: MIT
 *
 * measure_half: how many float16 numbers lie between those of two tensors.
 *
 * The pass over both widens them to float32, between whose numbers near zero there are a
 * thousand times more; so these are counted by themselves.
 */
#ifndef COMPARE_MEASURE_HALF_H
#define COMPARE_MEASURE_HALF_H

#include <stddef.h>
#include <stdint.h>

struct cmp__half_ulps {
    uint64_t sum, max;
};

/* Look at m elements of both sides; those that are no numbers count nothing. */
void cmp__half_ulps_add(struct cmp__half_ulps *u, const void *n, const void *b, size_t m);
void cmp__half_ulps_join(struct cmp__half_ulps *u, const struct cmp__half_ulps *next);

#endif
