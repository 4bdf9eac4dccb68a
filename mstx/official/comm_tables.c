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

#include "mstx/official/comm_rows.h"
#include "mstx/official/rank_rows.h"
#include "mstx/official/sql/comm_tables.h"

/* ---- groups ---------------------------------------------------------------------------- */

#define NAMED_GROUPS                                                                               \
    {                                                                                              \
        .into = "GroupInfo", .columns = "rank INTEGER, grp, id, pg, ranks, list",                  \
        .optional = true, .direct = MSTX_READ_GROUPS, .needs = "META_DATA",                        \
        .sql = sql_read_named_groups                                                               \
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
     .direct = MSTX_READ_COMM_GROUPS,
     .needs = "COMMUNICATION_OP STRING_IDS",
     .sql = sql_read_traced_groups},
    NAMED_GROUPS,
};
enum { TRACED = 1 };

struct mapping {
    struct mstx__rank_tables tables;
    struct ms_stmt *add; /* rank, "send" or "", group */
};

static enum ms_rc add_traced_group(const struct mapping *m, int64_t rank, bool transfer,
                                   struct ms_str group, struct ms_err *err)
{
    ms_stmt_i64(m->add, 1, rank);
    ms_stmt_str(m->add, 2, transfer ? MS_STR("send") : MS_STR(""));
    ms_stmt_str(m->add, 3, group);
    return ms_stmt_run(m->add, err);
}

/* Tells whether a row is of a transfer, by its type where it has one: a name is its type with numbers. */
static bool is_transfer_row(const struct mstx__rank_rows *rows, const struct mstx__cell *cell)
{
    const struct ms_str type = mstx__cell_text(rows, &cell[MSTX_COMM_TYPE]);
    return mstx__is_transfer(type.p != NULL ? type : mstx__cell_text(rows, &cell[MSTX_COMM_NAME]));
}

/* Adds each group of a rank, once for its collectives and once for its transfers. */
static enum ms_rc add_traced_groups(const struct mapping *m, int64_t rank,
                                    const struct mstx__rank_rows *rows, struct ms_err *err)
{
    struct ms_map seen[2] = {{.mask = 0}, {.mask = 0}};
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < rows->cells.n && rc == MS_OK; i += (size_t)rows->columns) {
        const struct mstx__cell *cell = &rows->cells.p[i];
        const struct ms_str group = mstx__cell_text(rows, &cell[MSTX_COMM_GROUP]);
        const bool transfer = is_transfer_row(rows, cell);
        bool added = false;
        if (group.p != NULL && ms_map_put(&seen[transfer], group, &added) == MS_MAP_NONE)
            rc = ms_no_memory(err);
        else if (added)
            rc = add_traced_group(m, rank, transfer, group, err);
    }
    ms_map_free(&seen[false]);
    ms_map_free(&seen[true]);
    return rc;
}

static enum ms_rc add_groups(void *ctx, size_t query, int64_t rank,
                             const struct mstx__rank_rows *rows, struct ms_err *err)
{
    struct mapping *m = ctx;
    if (query == TRACED)
        return add_traced_groups(m, rank, rows, err);
    return mstx__rank_tables_add(&m->tables, query, rank, rows, err);
}

enum ms_rc mstx__map_groups(struct mstx_recipe *r, struct ms_err *err)
{
    struct mapping m = {.add = NULL};
    if (r->mapped)
        return MS_OK;
    r->mapped = true;
    MS_TRY(mstx__rank_tables_new(&m.tables, r, group_rows, 3, err));
    enum ms_rc rc = ms_store_prepare(r->s, &m.add, sql_add_traced_group, err);
    if (rc == MS_OK)
        rc = mstx__recipe_visit_rows(r, group_rows, 3, add_groups, &m, err);
    ms_stmt_free(m.add);
    mstx__rank_tables_free(&m.tables);
    return rc == MS_OK ? ms_store_exec(r->s, sql_map_groups, err) : rc;
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
