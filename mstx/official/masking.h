/* SPDX-License-Identifier: MIT
 *
 * masking: the recipe computational_op_masking: how much communication kernels hide.
 */
#ifndef MSTX_OFFICIAL_MASKING_H
#define MSTX_OFFICIAL_MASKING_H

#include "mstx/official/recipe.h"

/* Writes ComputationalOperatorMaskingLinearity. */
enum ms_rc mstx__measure_masking(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;

#endif
