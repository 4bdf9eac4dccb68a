/* SPDX-License-Identifier: MIT
 *
 * metric_int: the passes that every instruction set offers to metric.c.
 */
#ifndef COMPARE_MEASURE_METRIC_INT_H
#define COMPARE_MEASURE_METRIC_INT_H

#include "compare/measure/metric.h"

enum {
    CMP__LANES = 16, /* of a sum: element i goes to lane i % 16, whatever the vectors are */
    CMP__GROUP = 16, /* a pass takes whole groups of elements */
    CMP__RUN = 64,   /* of 16-bit floats that may be the same on both sides; of float8, a group */
};

/* What a pass looks for.  It takes the quicker the less that is. */
enum cmp__look {
    CMP__LOOK_NONE,
    CMP__LOOK_ZEROS,   /* on the golden side, which a relative error is not divided by */
    CMP__LOOK_SPECIAL, /* and NaN and inf, which are counted and taken for zeroes */
    CMP__LOOKS
};

/* Add count elements of both sides; count is a multiple of CMP__GROUP, at most CMP_METRIC_BLOCK.
 * False, and nothing added, when there is what the pass does not look for. */
typedef bool (*cmp__pass_fn)(struct cmp_facts *f, const void *n, const void *b, size_t count);

/* What passes read as it lies in memory: the small floats, as float32, and from CMP__F64 on what is
 * taken as double. */
enum cmp__source {
    CMP__F32,
    CMP__F16,
    CMP__BF16,
    CMP__E4M3,
    CMP__E5M2,
    CMP__F64,
    CMP__C64, /* of complex numbers the official tool takes the real part */
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

/* Which relative errors of small whole numbers do not raise the largest one so far: those of d
 * against b with |d| * q <= p * |b| + at_zero.  And the multiples of d that are below b where it is
 * below 0.001, or below 0.005: constants, by which compilers would multiply in many steps. */
struct cmp__ceiling {
    uint16_t q, p, at_zero;
    uint16_t thousand, five;
};

/* A block of CMP_METRIC_BLOCK small whole numbers in integer arithmetic, all but max_rel: false, and
 * nothing added, where that would be raised. */
typedef bool (*cmp__small_fn)(struct cmp_facts *f, const void *n, const void *b,
                              const struct cmp__ceiling *ceiling);

struct cmp__kernel {
    cmp__pass_fn pass[CMP__SOURCES][CMP__LOOK_SPECIAL][2]; /* [][][ext], both sides of this type */
    cmp__pass_fn single_careful[2], double_careful[2];     /* of CMP__F32, CMP__F64 */
    cmp__small_fn small[CMP__SOURCES - CMP__U16];          /* of CMP__U16 and those behind it */
    /* Elements as float32 or double, a NaN's bits included; count is a multiple of CMP__GROUP. */
    void (*to_single)(enum cmp__source from, const void *p, float *out, size_t count);
    void (*to_double)(enum cmp__source from, const void *p, double *out, size_t count);
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
