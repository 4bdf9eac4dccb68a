/* SPDX-License-Identifier: MIT
 *
 * quant_explain: which layers the noise of the result comes from.
 *
 * The noise of a layer's output is partly its own and partly that of its input, which comes from outputs
 * of earlier layers. Where these have as many elements as the input, as in a residual stream, the
 * errors of both are held against each other; what they leave open comes from the layer before. From the
 * result backwards each layer keeps its own part and hands the rest on. The last entry may be the result itself, which
 * has no part of its own.
 */
#ifndef COMPARE_QUANTISE_QUANT_EXPLAIN_H
#define COMPARE_QUANTISE_QUANT_EXPLAIN_H

#include "compare/quantise/quant_run.h"

enum { QUANT_SAMPLE = 4096 };

/* The errors of a layer at every few elements of its input and output. */
struct quant_trace {
    float *input, *output;    /* NULL: not known */
    uint64_t inputs, outputs; /* elements of the tensors */
    uint32_t n_input, n_output;
    double own; /* part of the output's noise that is its own */
};
/* Takes the errors; of x, what the layer got before it quantised it. */
enum ms_rc quant_trace_take(struct quant_trace *t, const struct quant_values *x,
                            const struct quant_values *qx, const struct quant_values *y,
                            const struct quant_values *qy, struct ms_err *err) MS_MUST_USE;
void quant_trace_free(struct quant_trace *t);

/* Sets the shares of n layers, in order of execution, in the noise of the last; their sum is 1. */
enum ms_rc quant_explain(const struct quant_trace *t, size_t n, double *shares,
                         struct ms_err *err) MS_MUST_USE;

#endif
