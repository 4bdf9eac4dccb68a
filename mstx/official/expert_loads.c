/* SPDX-License-Identifier: MIT
 *
 * expert_loads: sums the tokens of the experts of each rank and compares them within each group of
 * expert parallelism.
 */
#include "mstx/official/expert_loads.h"

#include "mstx/official/sql/expert_loads.h"

static const struct mstx_rank_query loads = {.into = "ExpertLoads",
                                             .columns = "rank INTEGER, epRanks, tokens",
                                             .needs = "COMPUTE_TASK_INFO TASK META_DATA",
                                             .sql = sql_read_loads};

enum ms_rc mstx__sum_expert_loads(struct mstx_recipe *r, struct ms_err *err)
{
    MS_TRY(mstx__recipe_read_rows(r, &loads, 1, err));
    return ms_store_exec(r->s, sql_sum_loads, err);
}
