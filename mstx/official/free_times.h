/* SPDX-License-Identifier: MIT
 *
 * free_times: the recipe free_analysis.
 */
#ifndef MSTX_OFFICIAL_FREE_TIMES_H
#define MSTX_OFFICIAL_FREE_TIMES_H

#include "mstx/official/recipe.h"

/* Makes the table FreeAnalysis: the longest times of each rank in which its device neither computed
 * nor communicated, and why. */
enum ms_rc mstx__explain_free_times(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;

#endif
