/* SPDX-License-Identifier: MIT
 *
 * recipe_commop: communication operations out of the marks that tell of them, where a profiler was told
 * to record nothing else.
 *
 *     {"opName": "HcclAllReduce", "groupName": "group_name_43", "dataType": "fp32", "count": "8",
 *      "streamId": "5"}                  quotes may be escaped
 *     comm:HcclAllreduce,group_name_43,fp32,8
 *
 * The task of the mark's connection has the times; a mark without one takes the next task of its
 * stream.  Officially each mark takes every task of its stream as well.
 */
#include "mstx/recipe.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdio.h>

static const char messages[] =
    "CREATE TEMP TABLE CommMarks AS WITH m AS (SELECT e.rowid AS at, e.startNs AS start,"
    " e.connectionId AS connection, replace(s.value, char(92) || '\"', '\"') AS v"
    " FROM MSTX_EVENTS e JOIN STRING_IDS s ON s.id = e.message"
    " WHERE e.startNs BETWEEN %" PRId64 " AND %" PRId64 ")"
    " SELECT at, start, connection, json_extract(v, '$.opName') || '_' AS type,"
    " json_extract(v, '$.groupName') AS grp, lower(json_extract(v, '$.dataType')) AS data,"
    " json_extract(v, '$.count') AS n, CAST(json_extract(v, '$.streamId') AS INTEGER) AS stream"
    " FROM m WHERE json_valid(v) AND v LIKE '%%\"streamId\":%%' AND v LIKE '%%\"count\":%%'"
    " AND v LIKE '%%\"dataType\":%%' AND v LIKE '%%\"groupName\":%%' AND v LIKE '%%\"opName\":%%';"
    "INSERT INTO CommMarks WITH m AS (SELECT e.rowid AS at, e.startNs AS start,"
    " e.connectionId AS connection, '[\"' || replace(replace(s.value, '\"', ''), ',', '\",\"') || "
    "'\"]'"
    " AS v FROM MSTX_EVENTS e JOIN STRING_IDS s ON s.id = e.message WHERE s.value LIKE "
    "'comm:Hccl%%'"
    " AND e.startNs BETWEEN %" PRId64 " AND %" PRId64 ")"
    " SELECT at, start, connection, 'hcom_' || substr(json_extract(v, '$[0]'), 10) || '_',"
    " json_extract(v, '$[1]'), lower(json_extract(v, '$[2]')), json_extract(v, '$[3]'), NULL"
    " FROM m WHERE json_valid(v) AND json_array_length(v) = 4;";

static const char by_connection[] =
    "CREATE TEMP TABLE CommRows AS SELECT m.at, t.rowid AS task, t.startNs AS start, t.endNs AS "
    "end,"
    " t.connectionId AS connection, type, grp, data, n FROM CommMarks m"
    " JOIN TASK t ON t.connectionId = m.connection;"
    "INSERT INTO CommRows SELECT m.at, t.rowid, t.startNs, t.endNs, t.connectionId, type, grp, "
    "data,"
    " n FROM CommMarks m JOIN TASK t ON t.rowid = (SELECT rowid FROM TASK i"
    " WHERE i.streamId = m.stream AND i.startNs >= m.start ORDER BY i.startNs LIMIT 1)"
    " WHERE m.at NOT IN (SELECT at FROM CommRows);";
static const char by_either[] =
    "CREATE TEMP TABLE CommRows AS SELECT m.at, t.rowid AS task, t.startNs AS start, t.endNs AS "
    "end,"
    " t.connectionId AS connection, type, grp, data, n FROM CommMarks m"
    " JOIN TASK t ON t.connectionId = m.connection OR t.streamId = m.stream;";

static const char operations[] =
    "CREATE TEMP TABLE CommOps AS SELECT row_number() OVER (ORDER BY start, at, task) - 1 AS op,"
    " start, end, connection, grp, ifnull((SELECT id FROM ENUM_HCCL_DATA_TYPE e"
    " WHERE lower(e.name) = data), 65534) AS data, n, type, type || '_' || "
    "substr(double_hash(grp), -3)"
    " || '_' || (row_number() OVER (PARTITION BY grp, type ORDER BY at, task) - 1) || '_1' AS name"
    " FROM CommRows WHERE grp IS NOT NULL AND type IS NOT NULL;"
    "INSERT INTO main.STRING_IDS(id, value) SELECT (SELECT ifnull(max(id), 0) FROM main.STRING_IDS)"
    " + row_number() OVER (ORDER BY value), value FROM (SELECT type AS value FROM CommOps"
    " UNION SELECT name FROM CommOps UNION SELECT grp FROM CommOps)"
    " WHERE value NOT IN (SELECT value FROM main.STRING_IDS WHERE value IS NOT NULL);"
    "CREATE TEMP TABLE Texts(value PRIMARY KEY, id INTEGER);"
    "INSERT OR IGNORE INTO Texts SELECT value, id FROM main.STRING_IDS;"
    "CREATE TABLE main.COMMUNICATION_OP(opId INTEGER, opName INTEGER, startNs INTEGER,"
    " endNs INTEGER, connectionId INTEGER, groupName INTEGER, relay INTEGER, retry INTEGER,"
    " dataType INTEGER, algType INTEGER, count NUMERIC, opType INTEGER);"
    "INSERT INTO main.COMMUNICATION_OP SELECT op, o.id, start, end, connection, g.id, NULL, NULL,"
    " data, NULL, n, t.id FROM CommOps c JOIN Texts o ON o.value = c.name JOIN Texts g"
    " ON g.value = c.grp JOIN Texts t ON t.value = c.type ORDER BY op;"
    "DROP TABLE Texts; DROP TABLE CommOps; DROP TABLE CommRows; DROP TABLE CommMarks;"
    "DROP TABLE IF EXISTS temp.COMMUNICATION_OP;";

static enum ms_rc count_marks(struct ms_store *s, int64_t *n, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(s, &st, "SELECT count(*) FROM CommMarks", err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    *n = rc == MS_OK ? ms_stmt_get_i64(st, 0) : 0;
    ms_stmt_free(st);
    return rc;
}

enum ms_rc mstx__commop_add(struct ms_store *s, bool strict, int64_t from, int64_t to,
                            struct ms_err *err)
{
    char sql[2560];
    bool has;
    int64_t n;
    MS_TRY(mstx__has_table(s, "COMMUNICATION_OP", &has, err));
    if (has)
        return MS_OK;
    snprintf(sql, sizeof sql, messages, from, to, from, to);
    MS_TRY(ms_store_exec(s, sql, err));
    MS_TRY(count_marks(s, &n, err));
    if (n == 0)
        return ms_store_exec(s, "DROP TABLE CommMarks", err);
    MS_TRY(ms_store_exec(s, strict ? by_either : by_connection, err));
    return ms_store_exec(s, operations, err);
}

/* ---- copies with them -------------------------------------------------------------------- */

/* Below the output as it lies below the input. */
static char *copy_path(const struct mstx_recipe_run *r, const char *path)
{
    struct ms_str below = ms_str_of(path);
    const struct ms_str top = ms_str_of(r->path);
    if (ms_str_starts(below, top))
        below = ms_str_sub(below, top.n, below.n);
    while (below.n != 0 && below.p[0] == '/')
        below = ms_str_sub(below, 1, below.n);
    struct ms_buf b = {.max = 1 << 16};
    ms_buf_printf(&b, "%s/mstx2commop/%.*s", r->out, MS_STR_ARG(below));
    char *copy = b.bad == MS_OK ? ms_str_dup(ms_buf_slice(&b)) : NULL;
    ms_buf_free(&b);
    return copy;
}

static enum ms_rc add_to_copy(struct mstx_recipe_run *r, const char *path, const char *copy,
                              struct ms_err *err)
{
    struct ms_store *s;
    MS_TRY(ms_store_renew(&s, copy, path, err));
    enum ms_rc rc = mstx__recipe_tables(s, err);
    if (rc == MS_OK)
        rc = mstx__commop_add(s, r->strict, 0, INT64_MAX, err);
    if (rc == MS_OK)
        return ms_store_commit(s, err);
    ms_store_close(s);
    return rc;
}

static enum ms_rc convert(struct mstx_recipe_run *r, const struct mstx_rank_files *f,
                          struct ms_err *err)
{
    struct ms_store *s;
    bool has, marks = false;
    MS_TRY(ms_store_open(&s, f->profiler, err));
    enum ms_rc rc = mstx__has_table(s, "COMMUNICATION_OP", &has, err);
    if (rc == MS_OK && !has)
        rc = mstx__has_table(s, "MSTX_EVENTS", &marks, err);
    ms_store_close(s);
    if (rc != MS_OK || has)
        return rc;
    if (!marks)
        return ms_fail(err, MS_E_FORMAT, "has no table MSTX_EVENTS");
    char *copy = copy_path(r, f->profiler);
    rc = copy != NULL ? add_to_copy(r, f->profiler, copy, err) : ms_no_memory(err);
    ms_free(copy);
    return rc;
}

enum ms_rc mstx__recipe_commop(struct mstx_recipe_run *r, struct ms_err *err)
{
    return mstx__recipe_each(r, convert, err);
}
