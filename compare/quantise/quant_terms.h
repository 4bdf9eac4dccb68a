/* SPDX-License-Identifier: MIT
 *
 * quant_terms: where the error of a product comes from.
 *
 * With x and w of the run in floats, and x', w' those that the quantised run multiplied, and x" the
 * input before it was quantised:
 *
 *     x' w' - x w  =  x' (w' - w)  +  (x' - x") w  +  (x" - x) w
 *                     weight          input           inherited from layers before
 *
 * What the output has beyond x' w' and the bias is the error of the sums, and of rounding the result.
 */
#ifndef COMPARE_QUANTISE_QUANT_TERMS_H
#define COMPARE_QUANTISE_QUANT_TERMS_H

#include "compare/quantise/quant_run.h"

struct quant_operands {
    enum quant_kind kind;
    const struct quant_values *x, *w, *y, *bias;        /* in floats; bias may have no values */
    const struct quant_values *qx, *qw, *qy, *qbias;    /* quantised */
    const struct quant_values *qx_before;               /* without values: qx was not quantised */
    int64_t stride[3], padding[3], dilation[3], groups; /* of a convolution */
};

/* Sums of squares over a sample of the output's elements. */
struct quant_terms {
    uint64_t sampled; /* 0: the operands do not fit together */
    double signal, weight, input, inherited, sums;
    double product; /* x' w' - x w */
    double total;   /* of the outputs without their biases */
};
/* Sets the arguments of a convolution from those that its operator got. */
void quant_set_arguments(const struct quant_run *r, const struct quant_layer *l,
                         struct quant_operands *o);
void quant_terms_find(struct quant_terms *t, const struct quant_operands *o);

#endif
