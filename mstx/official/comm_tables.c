/* SPDX-License-Identifier: MIT
 *
 * comm_tables: computes communicators and their ranks, time and bandwidth of each operation with
 * their sums, and the traffic from rank to rank.
 *
 * A profiler identifies a group by the hash of its name, and ranks by their place in the group.
 * The metadata maps places to ranks of the run; without metadata, the link of a rank to itself
 * does.
 */
#include "mstx/official/comm_tables.h"

#include "mstx/official/sql/comm_tables.h"

/* ---- groups ---------------------------------------------------------------------------- */

#define NAMED_GROUPS                                                                               \
    {                                                                                              \
        .into = "GroupInfo", .columns = "rank INTEGER, grp, id, pg, ranks, list",                  \
        .optional = true, .needs = "META_DATA", .sql = sql_read_named_groups                       \
    }

/* Traced groups are of ranks without an analysis database. */
static const struct mstx_rank_query group_rows[] = {
    {.into = "GroupOps",
     .columns = "rank INTEGER, op, grp",
     .analysis = true,
     .optional = true,
     .needs = "CommAnalyzerTime",
     .sql = sql_read_analysed_groups},
    {.into = "TracedGroupOps",
     .columns = "rank INTEGER, op, grp",
     .optional = true,
     .needs = "COMMUNICATION_OP STRING_IDS",
     .sql = sql_read_traced_groups},
    NAMED_GROUPS,
};

enum ms_rc mstx__map_groups(struct mstx_recipe *r, struct ms_err *err)
{
    if (r->mapped)
        return MS_OK;
    r->mapped = true;
    MS_TRY(mstx__recipe_read_rows(r, group_rows, 3, err));
    return ms_store_exec(r->s, sql_map_groups, err);
}

/* ---- time ------------------------------------------------------------------------------- */

static const struct mstx_rank_query time_rows[] = {
    {.into = "TimeOps",
     .columns = "rank INTEGER, op, grp, start, elapsed, transit, wait, sync, idle, step",
     .analysis = true,
     .needs = "CommAnalyzerTime",
     .sql = sql_read_times},
    {.into = "BandOps",
     .columns =
         "rank INTEGER, op, grp, type, size, time, bandwidth, large, package, n, total, step",
     .analysis = true,
     .optional = true,
     .needs = "CommAnalyzerBandwidth",
     .sql = sql_read_bands},
};

enum ms_rc mstx__sum_comm_time(struct mstx_recipe *r, struct ms_err *err)
{
    MS_TRY(mstx__map_groups(r, err));
    MS_TRY(mstx__recipe_read_rows(r, time_rows, 2, err));
    MS_TRY(ms_store_exec(r->s, sql_sum_times, err));
    return ms_store_exec(r->s, sql_sum_bands, err);
}

/* ---- matrix ------------------------------------------------------------------------------ */

static const struct mstx_rank_query link_rows[] = {
    NAMED_GROUPS,
    {.into = "LinkRows",
     .columns = "rank INTEGER, op, grp, src TEXT, dst TEXT, transport, size, time, type, op_name,"
                " step",
     .analysis = true,
     .needs = "CommAnalyzerMatrix",
     .sql = sql_read_links},
};

enum ms_rc mstx__sum_comm_matrix(struct mstx_recipe *r, struct ms_err *err)
{
    MS_TRY(mstx__recipe_read_rows(r, link_rows, 2, err));
    return ms_store_exec(r->s, sql_sum_links, err);
}
