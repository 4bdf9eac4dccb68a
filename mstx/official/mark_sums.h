/* SPDX-License-Identifier: MIT
 *
 * mark_sums: the recipe mstx_sum: ranges and pairs of marks by name, step and rank.
 */
#ifndef MSTX_OFFICIAL_MARK_SUMS_H
#define MSTX_OFFICIAL_MARK_SUMS_H

#include "mstx/official/recipe.h"

/* Writes MSTXMarkStats and its summaries. */
enum ms_rc mstx__sum_marks(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;

#endif
