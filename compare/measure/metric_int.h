/* SPDX-License-Identifier: MIT
 *
 * metric_int: the passes that each instruction set provides for metric.c.
 */
#ifndef COMPARE_MEASURE_METRIC_INT_H
#define COMPARE_MEASURE_METRIC_INT_H

#include "compare/measure/metric.h"

enum {
    CMP__LANES = 16, /* lanes of a sum: element i goes to lane i % 16, whatever the vector width */
    CMP__GROUP = 16, /* a pass processes whole groups of elements */
    /* 16-bit floats that are tested at once for equality of both sides (float8: one group) */
    CMP__RUN = 64,
};

/* Conditions that a pass handles. A pass is faster the fewer it handles. */
enum cmp__look {
    CMP__LOOK_NONE,
    CMP__LOOK_ZEROS,   /* golden zeros, for which the relative error has its own rule */
    CMP__LOOK_SPECIAL, /* also NaN and inf, which are counted and treated as zeros */
    CMP__LOOKS
};

/* Adds count elements of both sides; count is a multiple of CMP__GROUP and at most
 * CMP_METRIC_BLOCK. Returns false and adds nothing when the elements have a condition that the pass
 * does not handle. */
typedef bool (*cmp__pass_fn)(struct cmp_facts *f, const void *n, const void *b, size_t count);

/* Element types that passes read directly from memory: first the small floats, computed as float32,
 * then from CMP__F64 on the types that are computed as doubles. */
enum cmp__source {
    CMP__F32,
    CMP__F16,
    CMP__BF16,
    CMP__E4M3,
    CMP__E5M2,
    CMP__F64,
    CMP__C64, /* the official tool takes the real part of complex numbers */
    CMP__C128,
    CMP__I64,
    CMP__U64,
    CMP__I32,
    CMP__U32,
    CMP__U16,
    CMP__I16,
    CMP__I8,
    CMP__U8,
    CMP__BOOL,
    CMP__SOURCES
};

/* Bound on the relative errors of small integers that do not raise the largest error so far: those
 * with |d| * q <= p * |b| + at_zero. thousand and five are 1000 and 200: d * thousand < b for an
 * error below 0.001, d * five < b for one below 0.005. They are variables because compilers replace
 * a multiplication by a constant with many steps. */
struct cmp__ceiling {
    uint16_t q, p, at_zero;
    uint16_t thousand, five;
};

/* Adds a block of CMP_METRIC_BLOCK small integers in integer arithmetic, except for max_rel.
 * Returns false and adds nothing when max_rel could be raised. */
typedef bool (*cmp__small_fn)(struct cmp_facts *f, const void *n, const void *b,
                              const struct cmp__ceiling *ceiling);

struct cmp__kernel {
    /* [source][look][ext]; both sides have this type */
    cmp__pass_fn pass[CMP__SOURCES][CMP__LOOK_SPECIAL][2];
    cmp__pass_fn single_careful[2], double_careful[2]; /* for CMP__F32 and CMP__F64 */
    /* for CMP__U16 and the sources after it */
    cmp__small_fn small[CMP__SOURCES - CMP__U16];
    /* Convert elements to float32 or double and keep the bits of a NaN; count is a multiple of
     * CMP__GROUP. */
    void (*to_single)(enum cmp__source from, const void *p, float *out, size_t count);
    void (*to_double)(enum cmp__source from, const void *p, double *out, size_t count);
};
extern const struct cmp__kernel cmp__metric_plain;
#if defined(__x86_64__)
extern const struct cmp__kernel cmp__metric_avx2, cmp__metric_avx512;
#elif defined(__aarch64__)
extern const struct cmp__kernel cmp__metric_neon;
#endif

static inline double cmp__larger(double a, double b)
{
    return a > b ? a : b;
}

#endif
