/* SPDX-License-Identifier: MIT
 *
 * stats: minimum, maximum, sum and sum of squares of a tensor in one pass.
 *
 * The data is cut into blocks of a fixed size and the blocks' results are
 * joined in order, so the figures are the same on every machine, with every
 * instruction set and with any number of threads.
 */
#ifndef PROBE_BASE_STATS_H
#define PROBE_BASE_STATS_H

#include "probe/base/dtype.h"

/* Of the numbers that are not NaN; complex counts by absolute value.  Without one,
 * min is +inf and max -inf.  sum and sumsq include infinities as IEEE does. */
struct ms_stats {
    uint64_t count; /* all elements, NaN included */
    uint64_t nan, pinf, ninf, zero;
    double min, max;
    double sum, sumsq; /* of everything that is not NaN */
};

enum { MS_STATS_BLOCK = 16384 }; /* elements */

void ms_stats_init(struct ms_stats *s);
/* Contiguous elements, aligned to nothing.  Calls on consecutive pieces equal one call on the
 * whole when every piece but the last is a multiple of MS_STATS_BLOCK elements. */
void ms_stats_add(struct ms_stats *s, enum ms_dtype t, const void *p, size_t n);
/* Join the figures of the part that follows. */
void ms_stats_join(struct ms_stats *s, const struct ms_stats *next);
double ms_stats_mean(const struct ms_stats *s); /* NaN when there is a NaN or nothing */
double ms_stats_norm(const struct ms_stats *s); /* the same */

/* zlib's CRC-32; start with 0 and feed pieces in order. */
uint32_t ms_crc32(uint32_t crc, const void *p, size_t n);
/* CRC of two joined pieces from theirs; n2 is the length of the second. */
uint32_t ms_crc32_join(uint32_t crc1, uint32_t crc2, uint64_t n2);
/* All bytes as little-endian 64-bit words, padded with zeros, XORed. */
uint64_t ms_xor64(const void *p, size_t n);

#endif
