/* SPDX-License-Identifier: MIT
 *
 * metric_int: the passes that every instruction set offers to metric.c.
 */
#ifndef COMPARE_METRIC_INT_H
#define COMPARE_METRIC_INT_H

#include "compare/metric.h"

enum {
    CMP__LANES = 8,  /* of a sum: element i goes to lane i % 8, whatever the vectors are */
    CMP__GROUP = 16, /* a pass takes whole groups of elements */
};

/* Add count elements of both sides; count is a multiple of CMP__GROUP, at most CMP_METRIC_BLOCK.
 * Careful passes take NaN and inf for zeroes and count them; the others give false, and have added
 * nothing, when there is one. */
typedef bool (*cmp__pass_fn)(struct cmp_facts *f, const void *n, const void *b, size_t count);

enum cmp__source { CMP__F32, CMP__F16, CMP__BF16, CMP__SOURCES };

struct cmp__kernel {
    cmp__pass_fn single[CMP__SOURCES][2];    /* [][ext], both sides of this type */
    cmp__pass_fn single_careful[2];          /* of float32 */
    cmp__pass_fn whole[2], whole_careful[2]; /* of double */
    /* Small floats to float32, a NaN's bits included; count is a multiple of CMP__GROUP. */
    void (*widen)(enum cmp__source from, const void *p, float *out, size_t count);
};
extern const struct cmp__kernel cmp__metric_plain;
#if defined(__x86_64__)
extern const struct cmp__kernel cmp__metric_avx2, cmp__metric_avx512;
#endif

static inline double cmp__larger(double a, double b)
{
    return a > b ? a : b;
}

#endif
