/* SPDX-License-Identifier: MIT
 *
 * show_quantise: prints what `msprobe quantise` found.
 */
#ifndef COMPARE_CMD_SHOW_QUANTISE_H
#define COMPARE_CMD_SHOW_QUANTISE_H

#include "compare/quantise/quant_compare.h"
#include "compare/quantise/quant_survey.h"

/* Prints at most `most` layers as text; 0: all. */
void quantise_show_survey(const struct quant_survey *s, const struct quant_plan *plan, size_t most);
enum ms_rc quantise_show_survey_json(const struct quant_survey *s, const struct quant_plan *plan,
                                     struct ms_err *err) MS_MUST_USE;
void quantise_show_comparison(const struct quant_comparison *c, size_t most);
enum ms_rc quantise_show_comparison_json(const struct quant_comparison *c,
                                         struct ms_err *err) MS_MUST_USE;

#endif
