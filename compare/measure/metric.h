/* SPDX-License-Identifier: MIT
 *
 * metric: all figures of two tensors in one pass over both.
 *
 * Blocks of 4096 elements are summed in 16 lanes, and the lanes are joined in a fixed order,
 * without contraction to fused operations. Therefore the figures are the same to the last
 * bit with every instruction set, and for any number of threads as long as the tensors are
 * cut at the same places.
 */
#ifndef COMPARE_MEASURE_METRIC_H
#define COMPARE_MEASURE_METRIC_H

#include "probe/base/dtype.h"

struct cmp_facts {
    uint64_t count;
    uint64_t special;      /* elements with a NaN or inf on either side; they count as zeros */
    uint64_t mask_diff;    /* elements with NaN, or with inf of any sign, on one side only */
    uint64_t sign_diff;    /* elements with infinities of opposite signs */
    uint64_t thousandth;   /* elements with a relative error below 0.001 */
    uint64_t five;         /* and below 0.005 */
    double nn, bb, nb, dd; /* sums of squares and products; d = n - b */
    double max_abs, max_rel;
    /* Filled only with ext (bit_equal also for whole numbers of one type): */
    uint64_t bit_equal;
    double sum_d, sum_abs_d; /* of the differences */
    double sum_ulp, max_ulp; /* distances in units of the last place (ULP) of the coarser type */
};

enum { CMP_METRIC_BLOCK = 4096 };

/* Adds elements; count is a multiple of CMP_METRIC_BLOCK except in the last call. The pointers need
 * no alignment; ext adds the figures of --ext. Types other than the small floats are compared as
 * doubles. */
void cmp_facts_add(struct cmp_facts *f, enum ms_dtype tn, const void *n, enum ms_dtype tb,
                   const void *b, size_t count, bool ext);
/* Joins the facts of the part that follows. */
void cmp_facts_join(struct cmp_facts *f, const struct cmp_facts *next);
/* Tells whether the relative error is computed in float32. */
bool cmp_facts_single(enum ms_dtype tn, enum ms_dtype tb);
/* Tells whether both are the same integer type; bit_equal is then counted regardless of ext. */
bool cmp_facts_whole(enum ms_dtype tn, enum ms_dtype tb);

#endif
