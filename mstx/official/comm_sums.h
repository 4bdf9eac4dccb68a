/* SPDX-License-Identifier: MIT
 *
 * comm_sums: recipes that sum up the durations of communication operations.
 */
#ifndef MSTX_OFFICIAL_COMM_SUMS_H
#define MSTX_OFFICIAL_COMM_SUMS_H

#include "mstx/official/recipe.h"

/* hccl_sum: writes HcclAllRankStats, HcclPerRankStats, HcclTopOpStats and HcclGroupNameMap. */
enum ms_rc mstx__sum_hccl(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;

#endif
