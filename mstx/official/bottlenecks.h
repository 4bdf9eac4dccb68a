/* SPDX-License-Identifier: MIT
 *
 * bottlenecks: what the slowest rank did before the longest communication operations.
 */
#ifndef MSTX_OFFICIAL_BOTTLENECKS_H
#define MSTX_OFFICIAL_BOTTLENECKS_H

#include "mstx/official/recipe.h"

/* Makes CommunicationBottleneck. */
enum ms_rc mstx__find_bottlenecks(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;

#endif
