/* SPDX-License-Identifier: MIT
 *
 * quant_survey: what a number format would cost, layer by layer, from a run or checkpoint in floats.
 *
 * Weights and inputs of each layer are quantised and multiplied again; the error of the product is what the
 * layer would add if all others stayed as they are.
 */
#ifndef COMPARE_QUANTISE_QUANT_SURVEY_H
#define COMPARE_QUANTISE_QUANT_SURVEY_H

#include "compare/quantise/quant_run.h"
#include "probe/quantise/quant_tensor.h"

/* What to quantise, and how. */
struct quant_plan {
    struct quant_scheme weight, input;
    bool weights, inputs;
    bool axis_given; /* else blocks lie along the axis over which a product sums */
};

struct quant_survey_row {
    struct ms_str name, node;
    enum quant_kind kind;
    int64_t step, rank;
    struct quant_loss weight, input; /* count 0: not quantised */
    double signal, noise;            /* of the product; signal 0: it could not be computed */
};

struct quant_survey {
    MS_VEC(struct quant_survey_row) rows; /* worst first */
    struct quant_loss weights, inputs;    /* sums */
    size_t left_out;                      /* tensors too large, or of no numbers */
    bool has_products;
    struct ms_arena *arena;
};

/* Reads every dump, or the checkpoint, at a path. bar shows how far it is; NULL: nothing does. */
enum ms_rc quant_survey_run(struct quant_survey *s, const char *path, const struct quant_plan *plan,
                            struct ms_progress *bar, struct ms_err *err) MS_MUST_USE;
void quant_survey_free(struct quant_survey *s);
/* Returns what a row is sorted by: the SQNR of the product, else of the worse operand. */
double quant_survey_sqnr(const struct quant_survey_row *r);

#endif
