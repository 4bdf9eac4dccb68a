/* SPDX-License-Identifier: MIT
 *
 * step_waits: how long each rank waited for others in each step, and how long its transfers took.
 */
#ifndef MSTX_OFFICIAL_STEP_WAITS_H
#define MSTX_OFFICIAL_STEP_WAITS_H

#include "mstx/official/recipe.h"

/* Fills the temporary tables Waits(rank, step, wait, transmit) and Traced(ranks). The table
 * CommunicationGroupMapping is there already. */
enum ms_rc mstx__find_step_waits(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;

#endif
