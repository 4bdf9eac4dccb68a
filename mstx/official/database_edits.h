/* SPDX-License-Identifier: MIT
 *
 * database_edits: recipes that write into the profilers' databases.
 */
#ifndef MSTX_OFFICIAL_DATABASE_EDITS_H
#define MSTX_OFFICIAL_DATABASE_EDITS_H

#include "mstx/official/recipe.h"

/* mstx2commop: writes copies of the databases with communication operations out of marks. */
enum ms_rc mstx__write_comm_ops(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;
/* p2p_pairing: writes opConnectionId into COMMUNICATION_OP. */
enum ms_rc mstx__write_p2p_pairs(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;
/* pp_chart: writes StepTaskInfo. */
enum ms_rc mstx__write_passes(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;

#endif
