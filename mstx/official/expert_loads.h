/* SPDX-License-Identifier: MIT
 *
 * expert_loads: the recipe ep_load_balance.
 */
#ifndef MSTX_OFFICIAL_EXPERT_LOADS_H
#define MSTX_OFFICIAL_EXPERT_LOADS_H

#include "mstx/official/recipe.h"

/* Makes the tables EPTokensSummary, the tokens that the experts of each rank got, and
 * TopEPTokensInfo, the groups of ranks whose loads differ most. */
enum ms_rc mstx__sum_expert_loads(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;

#endif
