/* SPDX-License-Identifier: MIT
 *
 * stats_int: what stats.c and its vector kernels share.
 *
 * Within a block, element i belongs to lane i % 16. A lane adds its elements in order, and the
 * lanes are joined as a tree. Additions of doubles give the same bits only in the same order, so
 * this fixed order makes machines with 2, 4 and 8 doubles per register agree:
 *
 *     element   0 1 2 ... 15 | 16 17 ... 31 | ...
 *     lane      0 1 2 ... 15 |  0  1 ... 15 | ...
 *
 * Sums of integer types of at most 16 bits are exact in any order.
 */
#ifndef PROBE_TENSOR_STATS_INT_H
#define PROBE_TENSOR_STATS_INT_H

#include "probe/tensor/stats.h"

enum { MS__LANES = 16 };

struct ms__lanes {
    double sum[MS__LANES], sumsq[MS__LANES];
    double min, max;
    uint64_t nan, pinf, ninf, zero;
};

/* Computes statistics of the first elements of one block, as many as fill whole steps. Returns
 * their number, a multiple of MS__LANES. On entry l is that of an empty block. */
typedef size_t (*ms__stats_kernel)(const char *p, size_t n, struct ms__lanes *l);

/* Computes statistics of two whole blocks that follow each other. */
typedef void (*ms__stats_pair)(const char *p, struct ms__lanes l[2]);

/* The kernels of one type. `quick` and `pair` do not count NaN and infinity: when there was one,
 * sumsq is not finite and the block is computed again with `careful`, which integers do not need.
 * NULL: no vector version. */
struct ms__stats_kernels {
    ms__stats_kernel quick, careful;
    ms__stats_pair pair;
};

#if defined(__x86_64__)
extern const struct ms__stats_kernels ms__stats_avx2[MS_DT_MAX];
extern const struct ms__stats_kernels ms__stats_avx512[MS_DT_MAX];
#elif defined(__aarch64__)
extern const struct ms__stats_kernels ms__stats_neon[MS_DT_MAX];
#endif

#endif
