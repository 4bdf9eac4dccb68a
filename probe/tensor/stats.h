/* SPDX-License-Identifier: MIT
 *
 * stats: minimum, maximum, sum and sum of squares of a tensor in one pass.
 *
 * The data is cut into blocks of a fixed size. Inside a block, element i belongs to lane i % 16,
 * and lanes and blocks are joined in a fixed order, so the results are the same to the last bit on
 * every machine and with every instruction set. Joining is not associative; the results do not
 * depend on the number of threads only when the work is cut at fixed places.
 */
#ifndef PROBE_TENSOR_STATS_H
#define PROBE_TENSOR_STATS_H

#include "probe/base/crc.h"
#include "probe/base/dtype.h"

/* Statistics of the numbers that are not NaN; a complex number counts by its absolute value.
 * Without any number, min is +inf and max is -inf; a zero min or max is +0. sum and sumsq include
 * infinities as in IEEE arithmetic. */
struct ms_stats {
    uint64_t count; /* all elements, NaN included */
    uint64_t nan, pinf, ninf, zero;
    double min, max;
    double sum, sumsq; /* of everything that is not NaN */
};

enum { MS_STATS_BLOCK = 4096 }; /* elements */

void ms_stats_init(struct ms_stats *s);
/* Adds n contiguous elements at any alignment. Calls on consecutive pieces equal one call on the
 * whole when every piece but the last is a multiple of MS_STATS_BLOCK elements. */
void ms_stats_add(struct ms_stats *s, enum ms_dtype t, const void *p, size_t n);
/* Adds the statistics of the part that follows. */
void ms_stats_join(struct ms_stats *s, const struct ms_stats *next);
/* As if all elements had been added so many times. */
void ms_stats_repeat(struct ms_stats *s, uint64_t times);
double ms_stats_mean(const struct ms_stats *s); /* NaN when there is a NaN or no element */
double ms_stats_norm(const struct ms_stats *s); /* NaN as for the mean */

#endif
