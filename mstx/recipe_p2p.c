/* SPDX-License-Identifier: MIT
 *
 * recipe_p2p: what belongs together across ranks and within a pipeline, written into the profilers'
 * databases, where viewers look for it: each send with its receive, each pass forward and backward.
 */
#include "mstx/recipe.h"

/* ---- sends and receives ------------------------------------------------------------------- */

/* GROUP_SENDER_RECEIVER_NUMBER by places in the group; the tasks of an operation tell both ends, and
 * operations whose tasks disagree have none. */
static const char pairs[] =
    "CREATE TEMP TABLE Pairs AS WITH c AS (SELECT o.opName AS id, n.value AS name,"
    " o.startNs AS start, i.srcRank AS src, i.dstRank AS dst, i.rowid AS at"
    " FROM COMMUNICATION_TASK_INFO i JOIN COMMUNICATION_OP o ON o.opId = i.opId"
    " JOIN STRING_IDS n ON n.id = o.opName JOIN STRING_IDS t ON t.id = i.taskType"
    " JOIN STRING_IDS og ON og.id = o.groupName JOIN STRING_IDS ig ON ig.id = i.groupName"
    " LEFT JOIN CANN_API a ON a.connectionId = o.connectionId"
    " WHERE og.value = ig.value AND t.value IN ('Notify_Record', 'Notify_Wait')"
    " AND p2p_domain(n.value) IS NOT NULL AND (a.connectionId IS NOT NULL OR NOT EXISTS"
    " (SELECT 1 FROM CANN_API))),"
    " u AS (SELECT name FROM c GROUP BY name HAVING count(DISTINCT src) = 1"
    " AND count(DISTINCT dst) = 1),"
    " f AS (SELECT id, name, start, min(at) AS at, CAST(src AS INTEGER) AS src,"
    " CAST(dst AS INTEGER) AS dst FROM c WHERE name IN (SELECT name FROM u) GROUP BY name, id),"
    " e AS (SELECT id, name, start, at, CASE WHEN substr(name, 6, 1) IN ('r', 'R') THEN dst ELSE "
    "src"
    " END AS sender, CASE WHEN substr(name, 6, 1) IN ('r', 'R') THEN src ELSE dst END AS receiver"
    " FROM f)"
    " SELECT id, p2p_domain(name) || '_' || sender || '_' || receiver || '_' ||"
    " (row_number() OVER (PARTITION BY sender, receiver ORDER BY start, at) - 1) AS pair FROM e;"
    "CREATE INDEX temp.PairsById ON Pairs(id);";

static enum ms_rc has_column(struct ms_store *s, bool *has, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(s, &st,
                            "SELECT 1 FROM pragma_table_info('COMMUNICATION_OP')"
                            " WHERE name = 'opConnectionId'",
                            err));
    enum ms_rc rc = ms_stmt_step(st, has, err);
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc write_pairs(struct ms_store *s, struct ms_err *err)
{
    bool has;
    MS_TRY(ms_store_exec(s, pairs, err));
    MS_TRY(has_column(s, &has, err));
    if (!has)
        MS_TRY(ms_store_exec(s, "ALTER TABLE main.COMMUNICATION_OP ADD COLUMN opConnectionId TEXT",
                             err));
    return ms_store_exec(s,
                         "UPDATE main.COMMUNICATION_OP SET opConnectionId ="
                         " (SELECT pair FROM Pairs p WHERE p.id = opName);"
                         "DROP TABLE Pairs",
                         err);
}

typedef enum ms_rc (*change_fn)(struct mstx_recipe_run *r, struct ms_store *s, struct ms_err *err);

/* All of it or nothing. */
static enum ms_rc change(struct mstx_recipe_run *r, const struct mstx_rank_files *f, change_fn fn,
                         struct ms_err *err)
{
    struct ms_store *s;
    MS_TRY(ms_store_edit(&s, f->profiler, err));
    enum ms_rc rc = mstx__recipe_tables(s, err);
    if (rc == MS_OK)
        rc = ms_store_exec(s, "BEGIN IMMEDIATE", err);
    if (rc == MS_OK)
        rc = fn(r, s, err);
    if (rc == MS_OK)
        rc = ms_store_exec(s, "COMMIT", err);
    ms_store_close(s);
    return rc;
}

static enum ms_rc can_pair(struct ms_store *s, bool *can, struct ms_err *err)
{
    MS_TRY(mstx__has_table(s, "COMMUNICATION_OP", can, err));
    return *can ? mstx__has_table(s, "COMMUNICATION_TASK_INFO", can, err) : MS_OK;
}

static enum ms_rc pair_all(struct mstx_recipe_run *r, struct ms_store *s, struct ms_err *err)
{
    bool can;
    (void)r;
    MS_TRY(can_pair(s, &can, err));
    if (!can)
        return ms_fail(err, MS_E_FORMAT,
                       "has no tables COMMUNICATION_OP and "
                       "COMMUNICATION_TASK_INFO; record at level 1 or above");
    return write_pairs(s, err);
}

static enum ms_rc pair_rank(struct mstx_recipe_run *r, const struct mstx_rank_files *f,
                            struct ms_err *err)
{
    return change(r, f, pair_all, err);
}

enum ms_rc mstx__recipe_p2p(struct mstx_recipe_run *r, struct ms_err *err)
{
    return mstx__recipe_each(r, pair_rank, err);
}

/* ---- passes of a pipeline ---------------------------------------------------------------------- */

static enum ms_rc chart(struct mstx_recipe_run *r, struct ms_store *s, struct ms_err *err)
{
    static const char passes[] =
        "DROP TABLE IF EXISTS main.StepTaskInfo;"
        "CREATE TABLE main.StepTaskInfo AS SELECT CASE WHEN lower(m.value) LIKE '%forward%' THEN "
        "'FP'"
        " ELSE 'BP' END AS name, t.startNs AS startNs, t.endNs AS endNs,"
        " CASE WHEN lower(m.value) LIKE '%forward%' THEN 0 ELSE 1 END AS type"
        " FROM MSTX_EVENTS e JOIN TASK t ON t.connectionId = e.connectionId"
        " JOIN STRING_IDS m ON m.id = e.message WHERE m.value LIKE '%forward%'"
        " OR m.value LIKE '%backward%' OR m.value LIKE '%WeightGradStore_pop%' ORDER BY t.startNs";
    bool can;
    MS_TRY(mstx__commop_add(s, r->strict, 0, INT64_MAX, err));
    MS_TRY(can_pair(s, &can, err));
    if (can)
        MS_TRY(write_pairs(s, err));
    return ms_store_exec(s, passes, err);
}

static enum ms_rc chart_rank(struct mstx_recipe_run *r, const struct mstx_rank_files *f,
                             struct ms_err *err)
{
    return change(r, f, chart, err);
}

enum ms_rc mstx__recipe_pp_chart(struct mstx_recipe_run *r, struct ms_err *err)
{
    return mstx__recipe_each(r, chart_rank, err);
}
