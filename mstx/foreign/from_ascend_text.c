/* SPDX-License-Identifier: MIT
 *
 * tl_ascend_text: see the header.
 */
#include "mstx/tl_ascend_text.h"

#include "mstx/recipe.h"
#include "mstx/recipe_text.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"

#define FILE_MAX     ((size_t)10 << 30)
#define METADATA_MAX ((size_t)64 << 20)

static const char raw_tables[] = "CREATE TABLE Raw(step TEXT, op TEXT, grp TEXT, text TEXT);"
                                 "CREATE TABLE META_DATA(name TEXT, value TEXT);";

/* Groups are told by the hash of their name; the metadata tells which name that is. */
static const char tables[] =
    "CREATE TABLE Named AS SELECT double_hash(j.key) AS hash, j.key AS name FROM META_DATA m,"
    " json_each(m.value) j WHERE j.type = 'object';"
    "CREATE TABLE Ops AS SELECT step,"
    " CASE WHEN op = grp THEN op ELSE substr(op, 1, length(op) - length(grp) - 1) END AS name,"
    " ifnull((SELECT n.name FROM Named n WHERE n.hash = grp), grp) AS grp,"
    " CAST(round(json_extract(text, '$.\"Communication Time Info\".\"Start Timestamp(us)\"')"
    " * 1000) AS INTEGER) AS start,"
    " CAST(round(json_extract(text, '$.\"Communication Time Info\".\"Elapse Time(ms)\"')"
    " * 1000000) AS INTEGER) AS dur FROM Raw WHERE json_valid(text);"
    "CREATE TABLE STRING_IDS(id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO STRING_IDS(value) SELECT name FROM Ops UNION SELECT grp FROM Ops;"
    "CREATE INDEX StringsByText ON STRING_IDS(value);"
    "CREATE TABLE COMMUNICATION_OP AS SELECT n.id AS opName, o.start AS startNs,"
    " o.start + o.dur AS endNs, NULL AS connectionId, g.id AS groupName, o.rowid AS opId,"
    " NULL AS dataType, 0 AS count, NULL AS opType FROM Ops o JOIN STRING_IDS n ON n.value = o.name"
    " JOIN STRING_IDS g ON g.value = o.grp WHERE o.start > 0 AND o.dur >= 0;"
    "CREATE TABLE STEP_TIME AS WITH s AS (SELECT ltrim(lower(step), 'step') AS number,"
    " min(start) AS first, max(start + dur) AS last FROM Ops WHERE start > 0 AND dur >= 0"
    " GROUP BY step)"
    " SELECT CAST(number AS INTEGER) AS id, ifnull(lag(last) OVER (ORDER BY first), first) AS "
    "startNs,"
    " last AS endNs FROM s WHERE number GLOB '[0-9]*' ORDER BY first;"
    "DROP TABLE Raw; DROP TABLE Ops; DROP TABLE Named;";

static enum ms_rc take_op(void *ctx, const struct mstx_text_op *op, struct ms_err *err)
{
    struct ms_stmt *add = ctx;
    ms_stmt_str(add, 1, op->step);
    ms_stmt_str(add, 2, op->op);
    ms_stmt_str(add, 3, op->group.n != 0 ? op->group : MS_STR(""));
    ms_stmt_str(add, 4, op->text);
    return ms_stmt_run(add, err);
}

static enum ms_rc read_ops(struct ms_store *s, const char *dir, struct ms_err *err)
{
    struct ms_file f;
    struct ms_stmt *add = NULL;
    char *path = mstx__ascend_text_path(dir);
    enum ms_rc rc = path != NULL ? ms_file_map(&f, path, FILE_MAX, err) : ms_no_memory(err);
    if (rc == MS_OK) {
        rc = ms_store_prepare(s, &add, "INSERT INTO Raw VALUES(?,?,?,?)", err);
        if (rc == MS_OK)
            rc = mstx__text_ops(f.p, f.n, take_op, add, err);
        ms_stmt_free(add);
        ms_file_unmap(&f);
    }
    ms_free(path);
    return rc;
}

/* Without metadata groups have no other names. */
static enum ms_rc read_metadata(struct ms_store *s, const char *dir, struct ms_err *err)
{
    struct ms_file f;
    struct ms_stmt *add;
    char *path = ms_path_join(dir, "../profiler_metadata.json");
    if (path == NULL)
        return ms_no_memory(err);
    const bool is_there =
        ms_path_kind(path) == MS_KIND_FILE && ms_file_map(&f, path, METADATA_MAX, NULL) == MS_OK;
    ms_free(path);
    if (!is_there)
        return MS_OK;
    const struct ms_str text = {f.p, (uint32_t)f.n};
    enum ms_rc rc = ms_store_prepare(
        s, &add,
        "INSERT INTO META_DATA SELECT 'parallel_group_info', v FROM (SELECT CASE WHEN "
        "json_valid(?1)"
        " THEN json_extract(?1, '$.parallel_group_info') END AS v) WHERE json_valid(v)",
        err);
    if (rc == MS_OK) {
        ms_stmt_str(add, 1, text);
        rc = ms_stmt_run(add, err);
        ms_stmt_free(add);
    }
    ms_file_unmap(&f);
    return rc;
}

char *mstx__ascend_text_path(const char *dir)
{
    return ms_path_join(dir, "communication.json");
}

bool mstx__has_ascend_text(const char *dir)
{
    char *path = mstx__ascend_text_path(dir);
    const bool is = path != NULL && ms_path_kind(path) == MS_KIND_FILE;
    ms_free(path);
    return is;
}

static enum ms_rc fill(struct ms_store *s, const char *dir, struct ms_err *err)
{
    MS_TRY(mstx__recipe_functions(s, err));
    MS_TRY(ms_store_exec(s, raw_tables, err));
    MS_TRY(read_ops(s, dir, err));
    MS_TRY(read_metadata(s, dir, err));
    return ms_store_exec(s, tables, err);
}

enum ms_rc mstx__ascend_text_open(struct ms_store **out, const char *dir, struct ms_err *err)
{
    MS_TRY(ms_store_scratch(out, err));
    enum ms_rc rc = fill(*out, dir, err);
    if (rc != MS_OK) {
        ms_store_close(*out);
        *out = NULL;
    }
    return rc;
}
