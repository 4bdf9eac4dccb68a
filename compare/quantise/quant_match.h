/* SPDX-License-Identifier: MIT
 *
 * quant_match: is a tensor what a usual rule makes of another?
 *
 * Scales are computed from the largest magnitudes of the groups by each rule that is in use. Where one
 * gives the quantised values to the bit, type and layout are known and nothing is wrong with them. Where it
 * gives them but for a factor of each group, the scales by which the tensor was quantised are known.
 */
#ifndef COMPARE_QUANTISE_QUANT_MATCH_H
#define COMPARE_QUANTISE_QUANT_MATCH_H

#include "compare/quantise/quant_grid.h"

struct quant_match {
    enum quant_number number;
    struct quant_layout
        layouts[QUANT_LAYOUTS];  /* each of them explains the tensor; the coarsest first */
    unsigned n;                  /* 0: no rule does */
    bool powers;                 /* scales are powers of two */
    double scale_min, scale_max; /* of the first layout */
};
enum ms_rc quant_match_find(struct quant_match *m, const struct quant_table *before,
                            const struct quant_table *after, struct ms_err *err) MS_MUST_USE;

/* What the factors of a tensor that matches but for factors are. */
enum quant_factor { QUANT_FACTOR_OTHER, QUANT_FACTOR_SCALE, QUANT_FACTOR_INVERSE };
struct quant_scaled {
    bool found;
    struct quant_layout from; /* by which it was quantised */
    enum quant_factor factor;
    double least, most; /* factors */
};
/* Looks for such a match, with a factor for each group of the first fit of the grid of `after`. */
enum ms_rc quant_match_scaled(struct quant_scaled *s, const struct quant_grid *g,
                              const struct quant_table *before, const struct quant_table *after,
                              struct ms_err *err) MS_MUST_USE;

#endif
