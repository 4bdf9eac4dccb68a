/* SPDX-License-Identifier: MIT
 *
 * metric: everything that is asked about two tensors, in one pass over both.
 *
 * Blocks of 4096 elements are summed in eight lanes and the lanes joined in a fixed
 * order, without contraction to fused operations.  So the figures are the same to
 * the last bit with every instruction set, and for any number of threads as long as
 * the tensors are cut at the same places.
 */
#ifndef COMPARE_MEASURE_METRIC_H
#define COMPARE_MEASURE_METRIC_H

#include "probe/base/dtype.h"

struct cmp_facts {
    uint64_t count;
    uint64_t special;      /* elements with a NaN or inf on either side; they count as zeroes */
    uint64_t mask_diff;    /* NaN, or inf of any sign, on one side alone */
    uint64_t sign_diff;    /* infinities of both signs */
    uint64_t thousandth;   /* elements with a relative error below 0.001 */
    uint64_t five;         /* and below 0.005 */
    double nn, bb, nb, dd; /* sums of squares and products; d = n - b */
    double max_abs, max_rel;
    /* Only when asked for: */
    uint64_t bit_equal;
    double sum_d, sum_abs_d; /* of the differences */
    double sum_ulp, max_ulp; /* distance in units of the coarser type's last place */
};

enum { CMP_METRIC_BLOCK = 4096 };

/* Add elements; count is a multiple of CMP_METRIC_BLOCK except in the last call.  The pointers need
 * no alignment; ext adds the figures behind --ext.  Types other than the three small floats are
 * compared as doubles. */
void cmp_facts_add(struct cmp_facts *f, enum ms_dtype tn, const void *n, enum ms_dtype tb,
                   const void *b, size_t count, bool ext);
/* Join the facts of the part that follows. */
void cmp_facts_join(struct cmp_facts *f, const struct cmp_facts *next);
/* Is the relative error taken in float32? */
bool cmp_facts_single(enum ms_dtype tn, enum ms_dtype tb);
/* Are both whole numbers of one type?  Then bit_equal is counted whatever ext says. */
bool cmp_facts_whole(enum ms_dtype tn, enum ms_dtype tb);

#endif
