/* SPDX-License-Identifier: MIT
 *
 * quant_unfuse: takes factors out of a quantised layer that were fused into its weight.
 *
 * A norm behind a layer multiplies each row of the weight, and with it an output; smoothing multiplies each
 * column, and divides an input. Such factors are no errors: they are taken out, so that operands and results can
 * be held against those of the layer in floats.
 */
#ifndef COMPARE_QUANTISE_QUANT_UNFUSE_H
#define COMPARE_QUANTISE_QUANT_UNFUSE_H

#include "compare/quantise/quant_run.h"

struct quant_fused {
    enum quant_kind kind;
    const struct quant_values *golden,
        *before; /* weight in floats, and that of the target before it is quantised */
    struct quant_values *w, *x, *x_before, *y,
        *bias; /* of the target, changed in place; may have no values */
};
enum quant_fusion { QUANT_FUSED_NOTHING, QUANT_FUSED_ROWS, QUANT_FUSED_COLUMNS };
/* Finds out whether `before` is `golden` times a factor for each row or column; takes factors out. */
enum ms_rc quant_unfuse(const struct quant_fused *f, enum quant_fusion *found,
                        struct ms_err *err) MS_MUST_USE;

#endif
