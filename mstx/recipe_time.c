/* SPDX-License-Identifier: MIT
 *
 * recipe_time: where the time of a step went on each rank, in microseconds, and how two runs differ.
 *
 * Of one operation the shortest duration of any rank is its transfer, what others took longer was
 * waiting.  Copies count as free time only where nothing else ran.
 */
#include "mstx/recipe.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"

#include <stdio.h>

/* ---- input ---------------------------------------------------------------------------------- */

#define STEP_AT(t)                                                                                 \
    "CASE WHEN ?5 THEN s.id ELSE -1 END"                                                           \
    " FROM " t " LEFT JOIN STEP_TIME s ON api BETWEEN s.startNs AND s.endNs"                       \
    " WHERE api BETWEEN ?1 AND ?2"

static const struct mstx_pull pulls[] = {
    {.into = "StepTimes",
     .columns = "rank INTEGER, step INTEGER, time REAL",
     .sql = "SELECT ?3, id, (endNs - startNs) / 1000.0 FROM STEP_TIME"
            " UNION ALL SELECT ?3, -1, NULL WHERE NOT EXISTS (SELECT 1 FROM STEP_TIME)"},
    {.into = "StepTraces",
     .columns = "rank INTEGER, step INTEGER, computing REAL, exposed REAL, overlapped REAL,"
                " communication REAL, free REAL",
     .analysis = true,
     .needs = "StepTraceTime",
     .sql = "SELECT ?3, ifnull(CAST(step AS INTEGER), -1), computing, communication_not_overlapped,"
            " overlapped, communication, free FROM StepTraceTime"},
    {.into = "TimedOps",
     .columns = "rank INTEGER, grp, op, time REAL, step INTEGER",
     .needs = "COMMUNICATION_OP STRING_IDS",
     .sql =
         "WITH o AS (SELECT g.value AS grp, n.value AS op, (c.endNs - c.startNs) / 1000.0 AS time,"
         " CASE WHEN ?4 THEN a.startNs ELSE c.startNs END AS api FROM COMMUNICATION_OP c"
         " JOIN STRING_IDS g ON g.id = c.groupName JOIN STRING_IDS n ON n.id = c.opName"
         " LEFT JOIN CANN_API a ON a.connectionId = c.connectionId)"
         " SELECT ?3, grp, op, time, " STEP_AT("o")},
    {.into = "Busy", /* kernels 0, communication 1, copies 4 */
     .columns = "rank INTEGER, start INTEGER, end INTEGER, type INTEGER, step INTEGER",
     .optional = true,
     .needs = "TASK",
     .sql =
         "WITH o AS (SELECT t.startNs AS start, t.endNs AS end, 0 AS type,"
         " CASE WHEN ?4 THEN a.startNs ELSE t.startNs END AS api FROM COMPUTE_TASK_INFO i"
         " JOIN TASK t ON t.globalTaskId = i.globalTaskId AND t.startNs != t.endNs"
         " LEFT JOIN CANN_API a ON a.connectionId = t.connectionId"
         " UNION ALL SELECT c.startNs, c.endNs, 1, CASE WHEN ?4 THEN a.startNs ELSE c.startNs END"
         " FROM COMMUNICATION_OP c LEFT JOIN CANN_API a ON a.connectionId = c.connectionId"
         " UNION ALL SELECT startNs, endNs, 4, startNs FROM TASK"
         " WHERE taskType = (SELECT id FROM STRING_IDS WHERE value = 'MEMCPY_ASYNC'))"
         " SELECT ?3, start, end, type, " STEP_AT("o")},
};

/* ---- copies that nothing hides ------------------------------------------------------------------ */

enum { NOTHING = -1, COPY = 4 };

/* Busy intervals of one rank and step in order of start: [start, end) is the part of the newest one
 * that has not been accounted for. */
struct sweep {
    int64_t rank, step, start, end, bare;
    int type;
    bool any;
};

static void account(struct sweep *w, int64_t until)
{
    if (w->type == COPY && w->start < until)
        w->bare += until - w->start;
}

static void take_interval(struct sweep *w, int64_t start, int64_t end, int type)
{
    account(w, start > w->end ? w->end : start);
    if (start > w->end) {
        w->start = start;
        w->end = end;
        w->type = type;
    } else if (end > w->end) {
        w->start = w->end;
        w->end = end;
        w->type = type;
    } else {
        w->start = end;
    }
}

static enum ms_rc finish_sweep(struct sweep *w, struct ms_stmt *add, struct ms_err *err)
{
    if (!w->any)
        return MS_OK;
    if (w->type == COPY)
        w->bare += w->end - w->start;
    ms_stmt_i64(add, 1, w->rank);
    ms_stmt_i64(add, 2, w->step);
    ms_stmt_f64(add, 3, (double)w->bare / 1000);
    return ms_stmt_run(add, err);
}

static enum ms_rc take_busy(struct sweep *w, struct ms_stmt *st, struct ms_stmt *add,
                            struct ms_err *err)
{
    const int64_t rank = ms_stmt_get_i64(st, 0), start = ms_stmt_get_i64(st, 1);
    const int64_t step = ms_stmt_get_i64(st, 4);
    if (!w->any || rank != w->rank || step != w->step) {
        MS_TRY(finish_sweep(w, add, err));
        *w = (struct sweep){rank, step, start, start, 0, NOTHING, true};
    }
    take_interval(w, start, ms_stmt_get_i64(st, 2), (int)ms_stmt_get_i64(st, 3));
    return MS_OK;
}

static enum ms_rc sweep_all(struct ms_store *s, struct ms_stmt *st, struct ms_stmt *add,
                            struct ms_err *err)
{
    struct sweep w = {0};
    bool more;
    (void)s;
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    while (rc == MS_OK && more) {
        rc = take_busy(&w, st, add, err);
        if (rc == MS_OK)
            rc = ms_stmt_step(st, &more, err);
    }
    return rc == MS_OK ? finish_sweep(&w, add, err) : rc;
}

static enum ms_rc find_bare_copies(struct ms_store *s, struct ms_err *err)
{
    struct ms_stmt *st = NULL, *add = NULL;
    MS_TRY(ms_store_exec(s, "CREATE TEMP TABLE Bare(rank INTEGER, step INTEGER, time REAL)", err));
    enum ms_rc rc = ms_store_prepare(
        s, &st,
        "SELECT rank, start, end, type, step FROM Busy WHERE step IS NOT NULL AND start IS NOT NULL"
        " AND end IS NOT NULL ORDER BY rank, step, start, end",
        err);
    if (rc == MS_OK)
        rc = ms_store_prepare(s, &add, "INSERT INTO Bare VALUES(?,?,?)", err);
    if (rc == MS_OK)
        rc = sweep_all(s, st, add, err);
    ms_stmt_free(st);
    ms_stmt_free(add);
    return rc;
}

/* ---- the summary ----------------------------------------------------------------------------------- */

/* A group counts when all its ranks are there: officially this is meant, but never looked at. */
static const char meet[] =
    "CREATE INDEX temp.TimedOpsBy ON TimedOps(grp, op, step);"
    "CREATE TEMP TABLE Met AS SELECT grp, op, step, min(time) AS transmit FROM TimedOps o"
    " WHERE step IS NOT NULL AND (SELECT lenient FROM Rule) GROUP BY grp, op, step"
    " UNION ALL SELECT o.grp, op, step, min(time) FROM TimedOps o JOIN (SELECT group_id,"
    " max(length(rank_set) - length(replace(rank_set, ',', '')) + 1) AS size"
    " FROM CommunicationGroupMapping GROUP BY group_id) g ON g.group_id = o.grp"
    " WHERE step IS NOT NULL AND NOT (SELECT lenient FROM Rule) GROUP BY o.grp, op, step"
    " HAVING count(DISTINCT rank) >= max(size)"
    " UNION ALL SELECT grp, op, step, min(time) FROM TimedOps WHERE step IS NOT NULL"
    " AND NOT (SELECT lenient FROM Rule)"
    " AND grp NOT IN (SELECT group_id FROM CommunicationGroupMapping) GROUP BY grp, op, step;"
    "CREATE INDEX temp.MetBy ON Met(grp, op, step);"
    "CREATE TEMP TABLE Waits AS SELECT o.rank, o.step, sum(o.time - m.transmit) AS wait,"
    " sum(m.transmit) AS transmit FROM TimedOps o JOIN Met m ON m.grp = o.grp AND m.op = o.op"
    " AND m.step = o.step GROUP BY o.rank, o.step;"
    "CREATE TEMP TABLE Copies AS SELECT rank, step, sum(end - start) / 1000.0 AS time FROM Busy"
    " WHERE type = 4 AND step IS NOT NULL GROUP BY rank, step;";

static const char summary[] =
    "DROP TABLE IF EXISTS ClusterTimeSummary;"
    "CREATE TABLE ClusterTimeSummary AS WITH k AS (SELECT rank, step FROM StepTimes"
    " UNION SELECT rank, step FROM StepTraces UNION SELECT rank, step FROM Waits"
    " UNION SELECT rank, step FROM Copies)"
    " SELECT k.rank AS rank, k.step AS step, ifnull(ifnull(t.time, c.computing + c.exposed + "
    "c.free),"
    " 0.0) AS stepTime, ifnull(c.computing, 0.0) AS computation,"
    " ifnull(c.exposed, 0.0) AS communicationNotOverlapComputation,"
    " ifnull(c.overlapped, 0.0) AS communicationOverlapComputation,"
    " ifnull(c.communication, 0.0) AS communication,"
    " ifnull(c.free, 0.0) - CASE WHEN m.time IS NULL THEN 0 ELSE ifnull(b.time, 0) END AS free,"
    " CASE WHEN (SELECT count(DISTINCT rank) FROM TimedOps) > 1 THEN ifnull(w.wait, 0.0) ELSE 0.0 "
    "END"
    " AS communicationWaitStageTime, CASE WHEN (SELECT count(DISTINCT rank) FROM TimedOps) > 1"
    " THEN ifnull(w.transmit, 0.0) ELSE 0.0 END AS communicationTransmitStageTime,"
    " ifnull(m.time, 0.0) AS memory, CASE WHEN m.time IS NULL THEN 0.0 ELSE ifnull(b.time, 0.0) END"
    " AS memoryNotOverlapComputationCommunication"
    " FROM k LEFT JOIN StepTimes t ON t.rank = k.rank AND t.step = k.step"
    " LEFT JOIN StepTraces c ON c.rank = k.rank AND c.step = k.step"
    " LEFT JOIN Waits w ON w.rank = k.rank AND w.step = k.step"
    " LEFT JOIN Copies m ON m.rank = k.rank AND m.step = k.step"
    " LEFT JOIN Bare b ON b.rank = k.rank AND b.step = k.step"
    " WHERE (SELECT step FROM Rule) IN (-1, k.step) ORDER BY k.rank, k.step;"
    "DROP TABLE Waits; DROP TABLE Met; DROP TABLE Copies; DROP TABLE Bare; DROP TABLE Rule;"
    "DROP TABLE StepTimes; DROP TABLE StepTraces; DROP TABLE TimedOps; DROP TABLE Busy;";

enum ms_rc mstx__recipe_time_summary(struct mstx_recipe_run *r, struct ms_err *err)
{
    char rule[128];
    MS_TRY(mstx__recipe_group_map(r, err));
    for (size_t i = 0; i < sizeof pulls / sizeof *pulls; i++)
        MS_TRY(mstx__recipe_pull(r, &pulls[i], err));
    snprintf(rule, sizeof rule, "CREATE TEMP TABLE Rule AS SELECT %d AS lenient, %lld AS step",
             r->strict, (long long)r->step);
    MS_TRY(ms_store_exec(r->s, rule, err));
    MS_TRY(find_bare_copies(r->s, err));
    MS_TRY(ms_store_exec(r->s, meet, err));
    return ms_store_exec(r->s, summary, err);
}

/* ---- two summaries ----------------------------------------------------------------------------------- */

static const char *const columns[] = {"stepTime",
                                      "computation",
                                      "communicationNotOverlapComputation",
                                      "communicationOverlapComputation",
                                      "communication",
                                      "free",
                                      "communicationWaitStageTime",
                                      "communicationTransmitStageTime",
                                      "memory",
                                      "memoryNotOverlapComputationCommunication"};
enum { COLUMNS = sizeof columns / sizeof *columns };

static enum ms_rc copy_base_row(struct ms_stmt *st, struct ms_stmt *add, struct ms_err *err)
{
    for (int i = 0; i < COLUMNS + 2; i++)
        ms_stmt_f64(add, i + 1, ms_stmt_get_f64(st, i));
    return ms_stmt_run(add, err);
}

static enum ms_rc copy_base(struct ms_store *from, struct ms_store *to, struct ms_err *err)
{
    struct ms_stmt *st = NULL, *add = NULL;
    bool more = false;
    enum ms_rc rc =
        ms_store_prepare(from, &st,
                         "SELECT rank, step, stepTime, computation,"
                         " communicationNotOverlapComputation, communicationOverlapComputation,"
                         " communication, free, communicationWaitStageTime,"
                         " communicationTransmitStageTime, memory,"
                         " memoryNotOverlapComputationCommunication FROM ClusterTimeSummary",
                         err);
    if (rc == MS_OK)
        rc = ms_store_prepare(to, &add, "INSERT INTO BaseTimes VALUES(?,?,?,?,?,?,?,?,?,?,?,?)",
                              err);
    if (rc == MS_OK)
        rc = ms_stmt_step(st, &more, err);
    while (rc == MS_OK && more) {
        rc = copy_base_row(st, add, err);
        if (rc == MS_OK)
            rc = ms_stmt_step(st, &more, err);
    }
    ms_stmt_free(st);
    ms_stmt_free(add);
    return rc;
}

static enum ms_rc read_base(struct mstx_recipe_run *r, struct ms_err *err)
{
    struct ms_store *base = NULL;
    bool has = false;
    char *dir = ms_path_join(r->base, MSTX_ANALYSIS_DIR);
    char *path = dir != NULL ? ms_path_join(dir, MSTX_ANALYSIS_DB) : NULL;
    enum ms_rc rc = path != NULL ? ms_store_open(&base, path, err) : ms_no_memory(err);
    if (rc == MS_OK) {
        rc = mstx__has_table(base, "ClusterTimeSummary", &has, err);
        if (rc == MS_OK && !has)
            rc = ms_fail(err, MS_E_NOTFOUND, "%s: has no table ClusterTimeSummary", path);
        if (rc == MS_OK)
            rc = copy_base(base, r->s, err);
        ms_store_close(base);
    }
    if (rc != MS_OK)
        ms_err_hint(err, "make it with: msprobe cluster -m cluster_time_summary -d %s", r->base);
    ms_free(dir);
    ms_free(path);
    return rc;
}

static void put_comparison(struct ms_buf *sql, int64_t step)
{
    ms_buf_puts(sql, "DROP TABLE IF EXISTS ClusterTimeCompareSummary;"
                     "CREATE TABLE ClusterTimeCompareSummary AS SELECT t.rank AS rank,"
                     " t.step AS step");
    for (int i = 0; i < COLUMNS; i++)
        ms_buf_printf(sql, ", t.%s AS %s, b.%s AS %sBase, t.%s - b.%s AS %sDiff", columns[i],
                      columns[i], columns[i], columns[i], columns[i], columns[i], columns[i]);
    ms_buf_puts(sql, " FROM ClusterTimeSummary t JOIN BaseTimes b ON b.rank = t.rank"
                     " AND b.step = t.step");
    if (step != MSTX_ALL_STEPS)
        ms_buf_printf(sql, " WHERE t.step = %lld", (long long)step);
    ms_buf_puts(sql, " ORDER BY t.rank, t.step; DROP TABLE BaseTimes;");
}

enum ms_rc mstx__recipe_time_compare(struct mstx_recipe_run *r, struct ms_err *err)
{
    struct ms_buf sql = {.max = 1 << 16};
    if (r->base == NULL)
        return ms_fail(err, MS_E_ARG, "--bp names the directory to compare with");
    MS_TRY(mstx__recipe_time_summary(r, err));
    MS_TRY(ms_store_exec(r->s,
                         "CREATE TEMP TABLE BaseTimes(rank INTEGER, step INTEGER, stepTime REAL,"
                         " computation REAL, communicationNotOverlapComputation REAL,"
                         " communicationOverlapComputation REAL, communication REAL, free REAL,"
                         " communicationWaitStageTime REAL, communicationTransmitStageTime REAL,"
                         " memory REAL, memoryNotOverlapComputationCommunication REAL)",
                         err));
    MS_TRY(read_base(r, err));
    put_comparison(&sql, r->step);
    enum ms_rc rc = ms_buf_check(&sql, err);
    if (rc == MS_OK)
        rc = ms_store_exec(r->s, ms_buf_z(&sql), err);
    ms_buf_free(&sql);
    return rc;
}
