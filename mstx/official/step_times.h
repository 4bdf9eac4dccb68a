/* SPDX-License-Identifier: MIT
 *
 * step_times: recipes of steps: how each rank spent the time of each step.
 */
#ifndef MSTX_OFFICIAL_STEP_TIMES_H
#define MSTX_OFFICIAL_STEP_TIMES_H

#include "mstx/official/recipe.h"

/* Writes ClusterStepTraceTime, ClusterBaseInfo, HostInfo and RankDeviceMap. */
enum ms_rc mstx__trace_steps(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;
/* Writes ClusterStepTraceTime and ClusterBaseInfo from CommunicationGroupMapping and the temporary
 * tables TraceRows and Arguments, which are dropped.  *layout tells whether the parallel layout is
 * known. */
enum ms_rc mstx__write_step_tables(struct ms_store *s, bool *layout,
                                   struct ms_err *err) MS_MUST_USE;
/* cluster_time_summary: writes ClusterTimeSummary. */
enum ms_rc mstx__summarize_time(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;
/* cluster_time_compare_summary: writes ClusterTimeCompareSummary. */
enum ms_rc mstx__compare_time(struct mstx_recipe *r, struct ms_err *err) MS_MUST_USE;

#endif
