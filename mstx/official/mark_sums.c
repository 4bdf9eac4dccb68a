/* SPDX-License-Identifier: MIT
 *
 * recipe_mstx: ranges and pairs of marks by name, step and rank: in the framework, in CANN, on the
 * device.
 *
 *     marks  NAME_start ... NAME_stop    the last start of a thread first
 *     ranges outer { inner }             become outer::inner
 *
 * What happens twice within a step gets _0, _1, ... behind its name.
 */
#include "mstx/recipe.h"

#include "probe/base/arena.h"
#include "probe/base/mem.h"

#include <stdio.h>
#include <stdlib.h>

enum { NEST_MAX = 100 }; /* deeper ranges keep their names, as officially */

static const struct mstx_pull marks = {
    .into = "MarkRows",
    .columns = "rank INTEGER, msg, cann INTEGER, device INTEGER, framework INTEGER, tid INTEGER",
    .needs = "MSTX_EVENTS STRING_IDS",
    .sql = "WITH f AS (SELECT CAST(p.startNs AS INTEGER) AS startNs, c.connectionId"
           " FROM PYTORCH_API p JOIN CONNECTION_IDS c ON c.id = p.connectionId)"
           " SELECT ?3, m.value, e.startNs, ifnull(t.startNs, 0), ifnull(f.startNs, 0), e.globalTid"
           " FROM MSTX_EVENTS e LEFT JOIN TASK t ON t.connectionId = e.connectionId"
           " LEFT JOIN f ON f.connectionId = e.connectionId JOIN STRING_IDS m ON m.id = e.message"
           " WHERE e.eventType = 3 AND e.startNs BETWEEN ?1 AND ?2 ORDER BY e.startNs"};

static const struct mstx_pull ranges = {
    .into = "RangeRows",
    .columns = "rank INTEGER, msg, start INTEGER, end INTEGER, device REAL",
    .needs = "MSTX_EVENTS STRING_IDS",
    .sql = "SELECT ?3, m.value, e.startNs, e.endNs,"
           " CASE WHEN t.startNs IS NULL AND (SELECT count(*) FROM main.sqlite_master"
           " WHERE name = 'TASK') = 0 THEN 0.0 ELSE t.endNs - t.startNs END"
           " FROM MSTX_EVENTS e LEFT JOIN TASK t ON t.connectionId = e.connectionId"
           " JOIN STRING_IDS m ON m.id = e.message WHERE e.eventType = 2"
           " AND e.startNs BETWEEN ?1 AND ?2 AND e.connectionId != 4294967295 ORDER BY e.startNs"};

static const struct mstx_pull steps = {
    .into = "MarkSteps",
    .columns = "rank INTEGER, id, start INTEGER, end INTEGER",
    .optional = true,
    .sql = "SELECT ?3, id, startNs, endNs FROM STEP_TIME ORDER BY startNs"};

/* ---- one rank ---------------------------------------------------------------------------- */

struct range {
    struct ms_str name;
    int64_t start, end;
    double device;
    bool on_device;
    size_t row;
};

struct summing {
    struct ms_store *s;
    struct ms_arena *arena;
    struct ms_stmt *add; /* rank, name, start, framework, cann, device */
    MS_VEC(struct range) ranges;
    struct { /* marks that wait for their end, the last one last */
        MS_VEC(struct ms_str) stem;
        MS_VEC(int64_t) tid, cann, device, framework;
    } open;
    int64_t rank;
    bool any;    /* a rank has begun */
    bool strict; /* marks have no time but that of CANN, as the official tool has it by mistake */
};

static enum ms_rc add_row(struct summing *m, struct ms_str name, int64_t start,
                          const double duration[3], bool on_device, struct ms_err *err)
{
    ms_stmt_i64(m->add, 1, m->rank);
    ms_stmt_str(m->add, 2, name);
    ms_stmt_i64(m->add, 3, start);
    for (int i = 0; i < 3; i++)
        ms_stmt_f64(m->add, 4 + i, duration[i]);
    if (!on_device)
        ms_stmt_null(m->add, 6);
    return ms_stmt_run(m->add, err);
}

static bool push_mark(struct summing *m, struct ms_str stem, const int64_t v[4])
{
    struct ms_str *name = ms_vec_push(&m->open.stem);
    int64_t *tid = ms_vec_push(&m->open.tid), *cann = ms_vec_push(&m->open.cann);
    int64_t *device = ms_vec_push(&m->open.device);
    int64_t *framework = ms_vec_push(&m->open.framework);
    if (name == NULL || tid == NULL || cann == NULL || device == NULL || framework == NULL)
        return false;
    *name = ms_arena_str(m->arena, stem);
    *cann = v[0];
    *device = v[1];
    *framework = v[2];
    *tid = v[3];
    return name->p != NULL;
}

static void remove_mark(struct summing *m, size_t at)
{
    const size_t behind = --m->open.stem.n - at;
    memmove(&m->open.stem.p[at], &m->open.stem.p[at + 1], behind * sizeof *m->open.stem.p);
    int64_t *all[] = {m->open.tid.p, m->open.cann.p, m->open.device.p, m->open.framework.p};
    for (size_t i = 0; i < 4; i++)
        memmove(&all[i][at], &all[i][at + 1], behind * sizeof *all[i]);
    m->open.tid.n = m->open.cann.n = m->open.device.n = m->open.framework.n = m->open.stem.n;
}

/* The last start of that thread and stem; an end without one is passed over. */
static enum ms_rc end_mark(struct summing *m, struct ms_str stem, const int64_t v[4],
                           struct ms_err *err)
{
    size_t at = m->open.stem.n;
    while (at != 0 && !(m->open.tid.p[at - 1] == v[3] && ms_str_eq(m->open.stem.p[at - 1], stem)))
        at--;
    if (at == 0)
        return MS_OK;
    at--;
    const double duration[] = {m->strict ? 0 : (double)(v[2] - m->open.framework.p[at]),
                               (double)(v[0] - m->open.cann.p[at]),
                               m->strict ? 0 : (double)(v[1] - m->open.device.p[at])};
    enum ms_rc rc = add_row(m, m->open.stem.p[at], m->open.cann.p[at], duration, true, err);
    remove_mark(m, at);
    return rc;
}

static enum ms_rc take_mark(struct summing *m, struct ms_stmt *st, struct ms_err *err)
{
    const struct ms_str start = MS_STR("_start"), stop = MS_STR("_stop");
    const struct ms_str msg = ms_stmt_get_str(st, 1);
    const int64_t v[] = {ms_stmt_get_i64(st, 2), ms_stmt_get_i64(st, 3), ms_stmt_get_i64(st, 4),
                         ms_stmt_get_i64(st, 5)};
    if (!m->any || m->rank != ms_stmt_get_i64(st, 0))
        m->open.stem.n = m->open.tid.n = m->open.cann.n = m->open.device.n = m->open.framework.n =
            0;
    m->any = true;
    m->rank = ms_stmt_get_i64(st, 0);
    if (ms_str_ends(msg, start))
        return push_mark(m, ms_str_sub(msg, 0, msg.n - start.n), v) ? MS_OK : ms_no_memory(err);
    return ms_str_ends(msg, stop) ? end_mark(m, ms_str_sub(msg, 0, msg.n - stop.n), v, err) : MS_OK;
}

/* ---- ranges within ranges ------------------------------------------------------------------ */

static int outer_first(const void *pa, const void *pb)
{
    const struct range *a = pa, *b = pb;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->end != b->end)
        return a->end > b->end ? -1 : 1;
    return a->row < b->row ? -1 : 1;
}

static int by_row(const void *pa, const void *pb)
{
    const struct range *a = pa, *b = pb;
    return a->row < b->row ? -1 : a->row > b->row;
}

static bool put_inside(struct summing *m, struct range *r, const struct range *outer)
{
    struct ms_str whole = {NULL, outer->name.n + 2 + r->name.n};
    char *p = ms_arena_text(m->arena, whole.n);
    if (p == NULL)
        return false;
    memcpy(p, outer->name.p, outer->name.n);
    memcpy(p + outer->name.n, "::", 2);
    memcpy(p + outer->name.n + 2, r->name.p, r->name.n);
    whole.p = p;
    r->name = whole;
    return true;
}

/* A range lies in the innermost one that is still open; rows of the same times share the name of the
 * last, which is the innermost of them. */
static bool name_by_nesting(struct summing *m)
{
    const size_t n = m->ranges.n;
    struct range *r = m->ranges.p;
    MS_VEC(size_t) open = {0};
    bool ok = true;
    qsort(r, n, sizeof *r, outer_first);
    for (size_t i = 0; i < n && ok; i++) {
        while (open.n != 0 && r[open.p[open.n - 1]].end < r[i].end)
            open.n--;
        if (open.n != 0 && open.n + 1 < NEST_MAX && r[i].name.n != 0 &&
            r[open.p[open.n - 1]].name.n != 0)
            ok = put_inside(m, &r[i], &r[open.p[open.n - 1]]);
        size_t *slot = ms_vec_push(&open);
        ok = ok && slot != NULL;
        if (ok)
            *slot = i;
    }
    for (size_t i = n; i-- > 1 && ok;) {
        if (r[i - 1].start == r[i].start && r[i - 1].end == r[i].end)
            r[i - 1].name = r[i].name;
    }
    ms_vec_free(&open);
    return ok;
}

static enum ms_rc finish_ranges(struct summing *m, struct ms_err *err)
{
    if (m->ranges.n == 0)
        return MS_OK;
    if (!name_by_nesting(m))
        return ms_no_memory(err);
    qsort(m->ranges.p, m->ranges.n, sizeof *m->ranges.p, by_row);
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < m->ranges.n && rc == MS_OK; i++) {
        const struct range *r = &m->ranges.p[i];
        const double duration[] = {0, (double)(r->end - r->start), r->device};
        rc = add_row(m, r->name, r->start, duration, r->on_device, err);
    }
    m->ranges.n = 0;
    return rc;
}

static enum ms_rc take_range(struct summing *m, struct ms_stmt *st, struct ms_err *err)
{
    if (m->any && m->rank != ms_stmt_get_i64(st, 0))
        MS_TRY(finish_ranges(m, err));
    m->any = true;
    m->rank = ms_stmt_get_i64(st, 0);
    struct range *r = ms_vec_push(&m->ranges);
    if (r == NULL)
        return ms_no_memory(err);
    *r = (struct range){.name = ms_arena_str(m->arena, ms_stmt_get_str(st, 1)),
                        .start = ms_stmt_get_i64(st, 2),
                        .end = ms_stmt_get_i64(st, 3),
                        .device = ms_stmt_get_f64(st, 4),
                        .on_device = !ms_stmt_is_null(st, 4),
                        .row = m->ranges.n};
    return r->name.p != NULL ? MS_OK : ms_arena_fail(m->arena, err);
}

/* ---- all ranks ------------------------------------------------------------------------------- */

typedef enum ms_rc (*row_fn)(struct summing *m, struct ms_stmt *st, struct ms_err *err);

static enum ms_rc walk(struct summing *m, const char *sql, row_fn take, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    m->any = false;
    MS_TRY(ms_store_prepare(m->s, &st, sql, err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    while (rc == MS_OK && more) {
        rc = take(m, st, err);
        if (rc == MS_OK)
            rc = ms_stmt_step(st, &more, err);
    }
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc gather(struct summing *m, struct ms_err *err)
{
    MS_TRY(ms_store_prepare(m->s, &m->add, "INSERT INTO Timed VALUES(?,?,?,?,?,?)", err));
    MS_TRY(walk(m, "SELECT * FROM MarkRows ORDER BY rank, rowid", take_mark, err));
    MS_TRY(walk(m, "SELECT * FROM RangeRows ORDER BY rank, rowid", take_range, err));
    return finish_ranges(m, err);
}

/* Names get their numbers, durations their share of the rank's. */
static const char number_names[] =
    "CREATE INDEX temp.MarkStepsByRank ON MarkSteps(rank, start);"
    "CREATE TEMP TABLE Stepped AS SELECT t.rowid AS at, t.*, ifnull((SELECT id FROM MarkSteps s"
    " WHERE s.rank = t.rank AND t.start BETWEEN s.start AND s.end ORDER BY s.start LIMIT 1), 0)"
    " AS step FROM Timed t;"
    "CREATE TEMP TABLE Named AS SELECT at, rank, step, CASE WHEN count(*) OVER w > 1"
    " THEN name || '_' || (row_number() OVER (PARTITION BY rank, step, name ORDER BY at) - 1)"
    " ELSE name END AS Name, framework, cann, device, sum(framework) OVER r AS frameworks,"
    " sum(cann) OVER r AS canns, sum(device) OVER r AS devices FROM Stepped"
    " WINDOW w AS (PARTITION BY rank, step, name), r AS (PARTITION BY rank);"
    "DROP TABLE IF EXISTS MSTXMarkStats;"
    "CREATE TABLE MSTXMarkStats AS SELECT row_number() OVER (ORDER BY share DESC, rank, at) - 1"
    " AS \"index\", Name, framework AS FrameworkDurationNs,"
    " CASE WHEN frameworks != 0 THEN framework / frameworks * 100 ELSE 0.0 END"
    " AS \"FrameworkDurationRatio(%)\", cann AS CannDurationNs, share AS \"CannDurationRatio(%)\","
    " device AS DeviceDurationNs, CASE WHEN devices != 0 THEN device / devices * 100 ELSE 0.0 END"
    " AS \"DeviceDurationRatio(%)\", rank AS Rank, step AS StepId"
    " FROM (SELECT *, CASE WHEN canns != 0 THEN cann / canns * 100 ELSE 0.0 END AS share FROM "
    "Named)"
    " ORDER BY share DESC, rank, at;"
    "DROP TABLE Named; DROP TABLE Stepped;";

static enum ms_rc summarize(struct ms_store *s, const char *table, const char *column,
                            struct ms_err *err)
{
    char sql[2048];
    snprintf(
        sql, sizeof sql,
        "DROP TABLE IF EXISTS %s; CREATE TABLE %s AS WITH o AS (SELECT Name, StepId, Rank, %s AS x,"
        " first_value(Rank) OVER (w ORDER BY %s IS NULL, %s, \"index\") AS low,"
        " first_value(Rank) OVER (w ORDER BY %s DESC, \"index\") AS high FROM MSTXMarkStats"
        " WINDOW w AS (PARTITION BY StepId, Name))"
        " SELECT Name, count(x) AS Count, avg(x) AS MeanNs, stddev(x) AS StdNs, min(x) AS MinNs,"
        " CASE WHEN max(x) = 0 AND min(x) = 0 THEN 0 ELSE max(low) END AS MinRank,"
        " quantile(x, 0.25) AS Q1Ns, quantile(x, 0.5) AS MedianNs, quantile(x, 0.75) AS Q3Ns,"
        " max(x) AS MaxNs, CASE WHEN max(x) = 0 AND min(x) = 0 THEN 0 ELSE max(high) END AS "
        "MaxRank,"
        " total(x) AS SumNs, ifnull((max(x) - quantile(x, 0.75)) / sum(x), 0.0) * 100"
        " AS \"Dispersion(%%)\", StepId FROM o GROUP BY StepId, Name"
        " ORDER BY StepId, \"Dispersion(%%)\" DESC, Name",
        table, table, column, column, column, column);
    return ms_store_exec(s, sql, err);
}

static enum ms_rc write_tables(struct ms_store *s, struct ms_err *err)
{
    MS_TRY(ms_store_exec(s, number_names, err));
    MS_TRY(summarize(s, "MSTXAllFrameworkStats", "FrameworkDurationNs", err));
    MS_TRY(summarize(s, "MSTXAllCannStats", "CannDurationNs", err));
    MS_TRY(summarize(s, "MSTXAllDeviceStats", "DeviceDurationNs", err));
    return ms_store_exec(s,
                         "DROP TABLE Timed; DROP TABLE MarkRows; DROP TABLE RangeRows;"
                         "DROP TABLE MarkSteps",
                         err);
}

enum ms_rc mstx__recipe_mstx_sum(struct mstx_recipe_run *r, struct ms_err *err)
{
    struct summing m = {.s = r->s, .strict = r->strict};
    MS_TRY(mstx__recipe_pull(r, &marks, err));
    MS_TRY(mstx__recipe_pull(r, &ranges, err));
    MS_TRY(mstx__recipe_pull(r, &steps, err));
    MS_TRY(ms_store_exec(r->s,
                         "CREATE TEMP TABLE Timed(rank INTEGER, name TEXT, start INTEGER,"
                         " framework REAL, cann REAL, device REAL)",
                         err));
    m.arena = ms_arena_new((size_t)1 << 34);
    enum ms_rc rc = m.arena != NULL ? gather(&m, err) : ms_no_memory(err);
    ms_stmt_free(m.add);
    ms_arena_free(m.arena);
    ms_vec_free(&m.ranges);
    ms_vec_free(&m.open.stem);
    ms_vec_free(&m.open.tid);
    ms_vec_free(&m.open.cann);
    ms_vec_free(&m.open.device);
    ms_vec_free(&m.open.framework);
    return rc == MS_OK ? write_tables(r->s, err) : rc;
}
