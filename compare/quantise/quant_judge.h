/* SPDX-License-Identifier: MIT
 *
 * quant_judge: is a tensor the right quantisation of another?
 *
 * `before` is the tensor of floats, `after` what it became after quantisation and dequantisation. The
 * grid of `after` says which scales were used to dequantise; dividing by them gives the codes, and
 * how the codes relate to `before` says which scales were used to quantise and how values were rounded.
 */
#ifndef COMPARE_QUANTISE_QUANT_JUDGE_H
#define COMPARE_QUANTISE_QUANT_JUDGE_H

#include "compare/quantise/quant_grid.h"

enum quant_fault {
    QUANT_NO_FAULT,
    QUANT_WRONG_AXIS, /* scales along another axis than they were taken along, or than in other layers */
    QUANT_WRONG_BLOCK, /* the same of the size of blocks */
    QUANT_STALE_SCALE, /* a scale that does not come from these values */
    QUANT_OUTLIERS,    /* few large values are cut off and carry most of the error */
    QUANT_ZERO_POINT,  /* was not subtracted again */
    QUANT_TWICE,       /* dequantised twice */
    QUANT_NOT_DONE,    /* codes that were not dequantised */
    QUANT_ROUNDING,    /* not to the nearest value */
    QUANT_FAULTS
};
/* "wrong scale axis" */
extern const char *const quant_fault_text[QUANT_FAULTS];
/* "wrong_axis", for programs. */
extern const char *const quant_fault_key[QUANT_FAULTS];

struct quant_verdict {
    enum quant_fault fault;
    bool is_weight;
    bool is_quantised; /* false: both are equal, or `after` is on no grid */
    bool equal;
    enum quant_number number;
    struct quant_layout layout; /* of the scales with which it was dequantised */
    struct quant_fit fits[QUANT_FITS];
    bool matched; /* a usual rule with each of these layouts gives exactly these values */
    unsigned n;
    bool powers;
    double scale_min, scale_max;
    double clipped, clipped_noise; /* shares of elements and of the error */
    double underflow;
    double used; /* share of the type's range that the largest code uses, mean over the groups */
    double signal, noise;
    uint64_t rows, cols;
    char text[200]; /* what is wrong, a part of a sentence; "" without a fault */
};

/* Judges two tensors of one shape. */
enum ms_rc quant_judge(struct quant_verdict *v, const struct quant_table *before,
                       const struct quant_table *after, bool is_weight,
                       struct ms_err *err) MS_MUST_USE;

/* Compares the layouts of tensors that should be quantised alike, weights or inputs of layers of one
 * kind: sets a fault of axis or block where most others have another layout. */
void quant_judge_together(struct quant_verdict *const *v, size_t n);

#endif
