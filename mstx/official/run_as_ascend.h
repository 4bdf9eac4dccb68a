/* SPDX-License-Identifier: MIT
 *
 * run_as_ascend: the ranks of a run of msprobe as databases of Ascend's profilers, made in memory
 * for the queries of a recipe.
 */
#ifndef MSTX_OFFICIAL_RUN_AS_ASCEND_H
#define MSTX_OFFICIAL_RUN_AS_ASCEND_H

#include "mstx/official/recipe.h"

struct mstx_run_ranks;

/* Opens a run.db, once for each of the workers, which may then make databases at the same time. */
enum ms_rc mstx__run_ranks_open(struct mstx_run_ranks **out, const char *db, unsigned workers,
                                struct ms_err *err) MS_MUST_USE;
/* Makes a recipe read the ranks of the run. */
void mstx__run_ranks_lend(struct mstx_run_ranks *run, struct mstx_recipe *r);
void mstx__run_ranks_close(struct mstx_run_ranks *run);
/* Adds the ranks of only, "0,3,4", or all when only is NULL, in order; their paths are
 * names for messages. */
enum ms_rc mstx__run_ranks_list(struct mstx_run_ranks *run, const char *only,
                                struct mstx_ascend_files *found, struct ms_err *err) MS_MUST_USE;
#endif
