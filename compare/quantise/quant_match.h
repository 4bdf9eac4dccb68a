/* SPDX-License-Identifier: MIT
 *
 * quant_match: is a tensor exactly what a usual rule makes of another?
 *
 * Scales are computed from the largest magnitudes of the groups by each rule that is in use; where one
 * gives the quantised values to the bit, the layout is known and nothing is wrong with it.
 */
#ifndef COMPARE_QUANTISE_QUANT_MATCH_H
#define COMPARE_QUANTISE_QUANT_MATCH_H

#include "compare/quantise/quant_grid.h"

/* Tells for each fit of a grid whether a rule with its layout gives `after` from `before`. */
enum ms_rc quant_match_find(const struct quant_grid *g, const struct quant_table *before,
                            const struct quant_table *after, bool matches[QUANT_FITS],
                            struct ms_err *err) MS_MUST_USE;

#endif
