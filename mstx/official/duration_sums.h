/* SPDX-License-Identifier: MIT
 *
 * duration_sums: recipes that sum up durations of all ranks by kind and name.
 */
#ifndef MSTX_OFFICIAL_DURATION_SUMS_H
#define MSTX_OFFICIAL_DURATION_SUMS_H

#include "mstx/official/recipe.h"

/* cann_api_sum: writes CannApiSum and CannApiSumRank. */
enum ms_rc mstx__sum_cann_calls(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;
/* compute_op_sum: writes ComputeOpAllRankStats and ComputeOpPerRankStatsBy... */
enum ms_rc mstx__sum_kernels(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;
/* freq_analysis: writes FreeFrequencyRanks and AbnormalFrequencyRanks. */
enum ms_rc mstx__find_low_clocks(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;

#endif
