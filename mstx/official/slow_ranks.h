/* SPDX-License-Identifier: MIT
 *
 * slow_ranks: the recipe slow_rank: the rank with the shortest duration in a collective arrived last.
 */
#ifndef MSTX_OFFICIAL_SLOW_RANKS_H
#define MSTX_OFFICIAL_SLOW_RANKS_H

#include "mstx/official/recipe.h"

/* Finds the stragglers of n ascending durations by the official rule, stores them in slow (n
 * places) and returns their number. */
size_t mstx__judge_slow_ranks(const double *duration, const int64_t *rank, size_t n, int64_t *slow);
/* Writes SlowRank and SlowOpStats. */
enum ms_rc mstx__find_slow_ranks(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;

#endif
