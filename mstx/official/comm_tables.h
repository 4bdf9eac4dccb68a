/* SPDX-License-Identifier: MIT
 *
 * comm_tables: recipes of communicators, and of time, bandwidth and links of communication.
 */
#ifndef MSTX_OFFICIAL_COMM_TABLES_H
#define MSTX_OFFICIAL_COMM_TABLES_H

#include "mstx/official/recipe.h"

/* communication_group_map: writes CommunicationGroupMapping. */
enum ms_rc mstx__map_groups(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;
/* communication_time_sum: writes ClusterCommunicationTime and ClusterCommunicationBandwidth. */
enum ms_rc mstx__sum_comm_time(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;
/* communication_matrix_sum: writes ClusterCommunicationMatrix. */
enum ms_rc mstx__sum_comm_matrix(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;

#endif
