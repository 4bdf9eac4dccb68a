/* SPDX-License-Identifier: MIT
 *
 * modules: recipes of the modules of a model: their kernels, and the share of peak these reach.
 */
#ifndef MSTX_OFFICIAL_MODULES_H
#define MSTX_OFFICIAL_MODULES_H

#include "mstx/official/recipe.h"

/* module_statistic: writes ModuleStatistic. */
enum ms_rc mstx__sum_modules(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;
/* operator_mfu: writes OperatorMFU and ModuleMFU. */
enum ms_rc mstx__rate_kernels(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;

#endif
