/* SPDX-License-Identifier: MIT
 *
 * cluster_texts: merges the JSON and CSV files of all ranks into those of the cluster.
 */
#ifndef MSTX_OFFICIAL_CLUSTER_TEXTS_H
#define MSTX_OFFICIAL_CLUSTER_TEXTS_H

#include "mstx/official/recipe.h"

/* Writes cluster_step_trace_time.csv and communication_group.json; cluster_communication.json if
 * time is true, cluster_communication_matrix.json if matrix is true. */
enum ms_rc mstx__merge_cluster_texts(struct mstx_recipe *r, bool time, bool matrix,
                                     struct ms_err *err) MS_MUST_USE;

#endif
