/* SPDX-License-Identifier: MIT
 *
 * duration_sums: sums durations of all ranks by kind and name: calls of CANN, kernels; finds low
 * clocks.
 */
#include "mstx/official/duration_sums.h"

#include "mstx/official/sql/duration_sums.h"

/* ---- calls of CANN --------------------------------------------------------------------- */

static const struct mstx_rank_query calls = {
    .into = "CannCalls",
    .columns = "rank INTEGER, name, durationRatio, totalTimeNs, totalCount, averageNs, minNs, Q1Ns,"
               " medNs, Q3Ns, maxNs, stdev",
    .needs = "CANN_API STRING_IDS",
    .sql = sql_read_cann_calls};

enum ms_rc mstx__sum_cann_calls(struct mstx_recipe *r, struct ms_err *err)
{
    MS_TRY(mstx__recipe_read_rows(r, &calls, 1, err));
    return ms_store_exec(r->s, sql_sum_cann_calls, err);
}

/* ---- kernels ----------------------------------------------------------------------------- */

static const struct mstx_rank_query kernels = {
    .into = "KernelRuns",
    .columns = "rank INTEGER, OpName, OpType, TaskType, InputShapes, dur REAL",
    .needs = "COMPUTE_TASK_INFO TASK STRING_IDS",
    .sql = sql_read_kernels};

enum ms_rc mstx__sum_kernels(struct mstx_recipe *r, struct ms_err *err)
{
    MS_TRY(mstx__recipe_read_rows(r, &kernels, 1, err));
    return ms_store_exec(r->s, sql_sum_kernels, err);
}

/* ---- clocks ------------------------------------------------------------------------------- */

static const struct mstx_rank_query clocks = {.into = "Clocks",
                                              .columns = "rank INTEGER, freq",
                                              .needs = "AICORE_FREQ",
                                              .sql = sql_read_clocks};

enum ms_rc mstx__find_low_clocks(struct mstx_recipe *r, struct ms_err *err)
{
    MS_TRY(mstx__recipe_read_rows(r, &clocks, 1, err));
    return ms_store_exec(r->s, sql_write_clocks, err);
}
