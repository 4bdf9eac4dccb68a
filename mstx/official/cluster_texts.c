/* SPDX-License-Identifier: MIT
 *
 * recipe_text: the text files of all ranks become those of the cluster.
 *
 *     communication.json        ─► communication_group.json, cluster_communication.json
 *     communication_matrix.json ─► cluster_communication_matrix.json
 *     step_trace_time.csv       ─► cluster_step_trace_time.csv
 *
 * Operations stand below the ranks of their group, "(0, 1)", with a sum for each group and step.  Ranks
 * of links are places in a group; the link of a rank to itself tells which rank is at that place.
 */
#include "mstx/recipe_text.h"
#include "mstx/recipe.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/num.h"
#include "probe/base/store_func.h"

#include <math.h>
#include <stdio.h>

enum { KEYS = 4, CSV_COLUMNS = 10 };
#define FILE_MAX ((size_t)10 << 30)

static void tell_written(const struct mstx_recipe_run *r, const char *path)
{
    if (r->wrote != NULL)
        r->wrote(path);
}

/* ---- input -------------------------------------------------------------------------------- */

struct taking {
    struct mstx_recipe_run *r;
    struct ms_stmt *add;
    int64_t rank;
};

static enum ms_rc take_op(void *ctx, const struct mstx_text_op *op, struct ms_err *err)
{
    struct taking *t = ctx;
    ms_stmt_i64(t->add, 1, t->rank);
    ms_stmt_str(t->add, 2, op->step);
    ms_stmt_str(t->add, 3, op->kind);
    ms_stmt_str(t->add, 4, op->op);
    ms_stmt_str(t->add, 5, op->group.n != 0 ? op->group : MS_STR(""));
    ms_stmt_str(t->add, 6, op->text);
    return ms_stmt_run(t->add, err);
}

static enum ms_rc take_json(struct taking *t, const char *p, size_t n, struct ms_err *err)
{
    return mstx__text_ops(p, n, take_op, t, err);
}

/* Metadata stands whole in one row; SQL looks into it. */
static enum ms_rc take_metadata(struct taking *t, const char *p, size_t n, struct ms_err *err)
{
    ms_stmt_i64(t->add, 1, t->rank);
    ms_stmt_str(t->add, 2, (struct ms_str){p, (uint32_t)n});
    return ms_stmt_run(t->add, err);
}

static const char *const headings[CSV_COLUMNS] = {
    "Step",       "Computing",     "Communication(Not Overlapped)",
    "Overlapped", "Communication", "Free",
    "Stage",      "Bubble",        "Communication(Not Overlapped and Exclude Receive)",
    "Preparing"};

static struct ms_str trim(struct ms_str s)
{
    while (s.n != 0 && (s.p[s.n - 1] == '\r' || s.p[s.n - 1] == ' '))
        s.n--;
    return s;
}

static void read_headings(struct ms_str line, int place[CSV_COLUMNS])
{
    struct ms_str field;
    for (int i = 0; i < CSV_COLUMNS; i++)
        place[i] = -1;
    for (int at = 0; ms_str_split(&line, ',', &field); at++) {
        for (int i = 0; i < CSV_COLUMNS; i++)
            place[i] = ms_str_is(trim(field), headings[i]) ? at : place[i];
    }
}

/* What is no number counts as nothing, as officially. */
static enum ms_rc take_line(struct taking *t, struct ms_str line, const int place[CSV_COLUMNS],
                            struct ms_err *err)
{
    struct ms_str field;
    ms_stmt_i64(t->add, 1, t->rank);
    ms_stmt_str(t->add, 2, MS_STR(""));
    for (int i = 1; i < CSV_COLUMNS; i++)
        ms_stmt_f64(t->add, i + 2, 0);
    for (int at = 0; ms_str_split(&line, ',', &field); at++) {
        double v;
        field = trim(field);
        if (at == place[0])
            ms_stmt_str(t->add, 2, field.n != 0 ? field : MS_STR(""));
        for (int i = 1; i < CSV_COLUMNS; i++) {
            if (at == place[i] && ms_num_parse_f64(field.p, field.n, &v))
                ms_stmt_f64(t->add, i + 2, v);
        }
    }
    return ms_stmt_run(t->add, err);
}

static enum ms_rc take_csv(struct taking *t, const char *p, size_t n, struct ms_err *err)
{
    const char *end = p + n;
    int place[CSV_COLUMNS];
    bool first = true;
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop != NULL ? stop : end;
        if (stop - p > 1 << 20)
            return ms_fail(err, MS_E_LIMIT, "a line of more than 1 MiB");
        const struct ms_str line = {p, (uint32_t)(stop - p)};
        if (first)
            read_headings(line, place);
        else if (trim(line).n != 0)
            MS_TRY(take_line(t, line, place, err));
        first = false;
        p = stop + 1;
    }
    return MS_OK;
}

typedef enum ms_rc (*take_fn)(struct taking *t, const char *p, size_t n, struct ms_err *err);

/* A file that is not there is no problem, one that cannot be read is one of its own. */
static enum ms_rc take_file(struct taking *t, const char *dir, const char *name, size_t max,
                            take_fn take, struct ms_err *err)
{
    struct ms_file f;
    struct ms_err aside = {0};
    char *path = ms_path_join(dir, name);
    enum ms_rc rc = path != NULL ? MS_OK : ms_no_memory(&aside);
    if (rc == MS_OK && ms_path_kind(path) == MS_KIND_FILE) {
        rc = ms_file_map(&f, path, max, &aside);
        if (rc == MS_OK) {
            rc = take(t, f.p, f.n, &aside);
            ms_file_unmap(&f);
            ms_stmt_reset(t->add);
        }
    }
    if (rc == MS_E_NOMEM)
        rc = ms_no_memory(err);
    else if (rc != MS_OK)
        rc = mstx__recipe_problem(t->r, path, aside.msg, err);
    ms_free(path);
    return rc;
}

static enum ms_rc take_all(struct mstx_recipe_run *r, const char *name, const char *table,
                           int columns, size_t max, take_fn take, struct ms_err *err)
{
    struct taking t = {.r = r};
    char sql[128];
    int n = snprintf(sql, sizeof sql, "INSERT INTO %s VALUES(?", table);
    for (int i = 1; i < columns; i++)
        n += snprintf(sql + n, sizeof sql - (size_t)n, ",?");
    snprintf(sql + n, sizeof sql - (size_t)n, ")");
    MS_TRY(ms_store_prepare(r->s, &t.add, sql, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < r->ranks.n && rc == MS_OK; i++) {
        t.rank = r->ranks.p[i].rank;
        rc = take_file(&t, r->ranks.p[i].dir, name, max, take, err);
        if (r->progress != NULL)
            r->progress(i + 1, r->ranks.n);
    }
    ms_stmt_free(t.add);
    return rc;
}

/* ---- numbers for JSON ----------------------------------------------------------------------- */

static void json_number(const struct ms_value *arg, char scratch[MS_FUNCTION_SCRATCH],
                        struct ms_value *out)
{
    const double v = arg->type == MS_VALUE_INT    ? (double)arg->i
                     : arg->type == MS_VALUE_REAL ? arg->f
                                                  : 0;
    *out = (struct ms_value){.type = MS_VALUE_TEXT, .s = MS_STR("0")};
    if (isfinite(v))
        out->s = (struct ms_str){scratch, ms_num_f64(scratch, v)};
}

/* Rounded to four places, exactly, as Python does; nothing divided by nothing is nothing. */
static void json_ratio(const struct ms_value *arg, char scratch[MS_FUNCTION_SCRATCH],
                       struct ms_value *out)
{
    const double a = arg[0].type == MS_VALUE_REAL ? arg[0].f : 0;
    const double b = arg[1].type == MS_VALUE_REAL ? arg[1].f : 0;
    const bool fits = fabs(b) >= 1e-15 && fabs(a / b) < 1e15;
    const int n = snprintf(scratch, MS_FUNCTION_SCRATCH, "%.4f", fits ? a / b : 0.0);
    *out = (struct ms_value){.type = MS_VALUE_TEXT, .s = {scratch, (uint32_t)n}};
}

/* ---- groups ----------------------------------------------------------------------------------- */

static const char input_tables[] =
    "CREATE TEMP TABLE Metadata(rank INTEGER, value TEXT);"
    "CREATE TEMP TABLE TimeTexts(rank INTEGER, step TEXT, kind TEXT, op TEXT, grp TEXT, value "
    "TEXT);"
    "CREATE TEMP TABLE LinkTexts(rank INTEGER, step TEXT, kind TEXT, op TEXT, grp TEXT, value "
    "TEXT);"
    "CREATE TEMP TABLE TraceRows(rank INTEGER, step TEXT, computing, communication_not_overlapped,"
    " overlapped, communication, free, stage, bubble,"
    " communication_not_overlapped_and_exclude_receive, preparing);"
    "CREATE TEMP TABLE Arguments(rank INTEGER, value);";

/* Of a kind that is neither, operations count as collective ones. */
static const char group_tables[] =
    "CREATE TEMP TABLE Sets AS SELECT kind, grp, group_concat(rank, ', ') ||"
    " CASE count(*) WHEN 1 THEN ',' ELSE '' END AS ranks, json_group_array(rank) AS list"
    " FROM (SELECT DISTINCT kind, grp, rank FROM (SELECT kind, grp, rank FROM TimeTexts"
    " UNION SELECT kind, grp, rank FROM LinkTexts) WHERE kind IN ('p2p', 'collective')"
    " ORDER BY kind, grp, rank) GROUP BY kind, grp;"
    "CREATE INDEX temp.SetsBy ON Sets(kind, grp);"
    "INSERT INTO Arguments SELECT rank, json_extract(value, '$.distributed_args') FROM Metadata"
    " WHERE json_valid(value) AND json_type(value, '$.distributed_args') = 'object';"
    "CREATE TEMP TABLE Infos AS SELECT double_hash(j.key) AS grp, j.key AS id, min(m.rank),"
    " ifnull(json_extract(j.value, '$.group_name'), '') AS pg, (SELECT json_group_array(v)"
    " FROM (SELECT value AS v FROM json_each(j.value, '$.global_ranks') ORDER BY value)) AS list"
    " FROM Metadata m, json_each(CASE WHEN json_valid(m.value)"
    " AND json_type(m.value, '$.parallel_group_info') = 'object' THEN m.value ELSE"
    " '{\"parallel_group_info\": {}}' END, '$.parallel_group_info') j WHERE j.type = 'object'"
    " GROUP BY j.key;"
    "CREATE TEMP TABLE Mapping AS SELECT s.kind AS type, CASE WHEN ifnull(i.list, '[]') != '[]'"
    " THEN i.list ELSE s.list END AS rank_set, s.grp AS group_name, ifnull(i.id, '') AS group_id,"
    " ifnull(i.pg, '') AS pg_name FROM Sets s LEFT JOIN Infos i ON i.grp = s.grp"
    " ORDER BY s.kind, s.grp;"
    "DROP TABLE IF EXISTS CommunicationGroupMapping;"
    "CREATE TABLE CommunicationGroupMapping AS SELECT type, '(' || trim(rank_set, '[]') || ')'"
    " AS rank_set, group_name, group_id, pg_name FROM Mapping;";

static enum ms_rc write_value(struct mstx_recipe_run *r, const char *sql, const char *name,
                              struct ms_err *err)
{
    struct ms_stmt *st;
    struct ms_out *o;
    bool more;
    char *path = ms_path_join(r->out, name);
    if (path == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = ms_store_prepare(r->s, &st, sql, err);
    if (rc == MS_OK) {
        rc = ms_stmt_step(st, &more, err);
        if (rc == MS_OK)
            rc = ms_out_create(&o, path, err);
        if (rc == MS_OK) {
            ms_out_str(o, ms_stmt_get_str(st, 0));
            rc = ms_out_commit(o, err);
        }
        ms_stmt_free(st);
    }
    if (rc == MS_OK)
        tell_written(r, path);
    ms_free(path);
    return rc;
}

static enum ms_rc write_groups(struct mstx_recipe_run *r, struct ms_err *err)
{
    return write_value(
        r,
        "SELECT json_object('collective', json((SELECT json_group_array(json(list)) FROM Sets"
        " WHERE kind = 'collective')), 'p2p', json((SELECT json_group_array(json(list)) FROM Sets"
        " WHERE kind = 'p2p')), 'comm_group_parallel_info', json((SELECT json_group_array("
        "json_object('type', type, 'rank_set', json(rank_set), 'group_name', group_name,"
        " 'group_id', group_id, 'pg_name', pg_name)) FROM Mapping)))",
        "communication_group.json", err);
}

/* ---- nested objects ---------------------------------------------------------------------------- */

static void put_key(struct ms_out *o, struct ms_str key)
{
    ms_out_putc(o, '"');
    for (uint32_t i = 0; i < key.n; i++) {
        const unsigned char c = (unsigned char)key.p[i];
        if (c == '"' || c == '\\')
            ms_out_putc(o, '\\');
        if (c < ' ')
            ms_out_printf(o, "\\u%04x", c);
        else
            ms_out_putc(o, (char)c);
    }
    ms_out_puts(o, "\": ");
}

/* The keys that differ from those of the row before: what was open below them is closed. */
static void put_row(struct ms_stmt *st, struct ms_out *o, struct ms_buf last[KEYS], bool first)
{
    int same = 0;
    while (!first && same < KEYS - 1 &&
           ms_str_eq(ms_buf_slice(&last[same]), ms_stmt_get_str(st, same)))
        same++;
    for (int i = KEYS - 1; !first && i > same; i--)
        ms_out_putc(o, '}');
    ms_out_puts(o, first ? "{" : ", ");
    for (int i = same; i < KEYS; i++) {
        ms_buf_clear(&last[i]);
        ms_buf_str(&last[i], ms_stmt_get_str(st, i));
        put_key(o, ms_stmt_get_str(st, i));
        if (i < KEYS - 1)
            ms_out_putc(o, '{');
    }
    ms_out_str(o, ms_stmt_get_str(st, KEYS));
}

/* Rows of four keys and a value, sorted: what has keys in common stands in one object. */
static enum ms_rc put_nested(struct ms_stmt *st, struct ms_out *o, struct ms_err *err)
{
    struct ms_buf last[KEYS];
    bool more, any = false;
    for (int i = 0; i < KEYS; i++)
        last[i] = (struct ms_buf){.max = 1 << 20};
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    while (rc == MS_OK && more) {
        put_row(st, o, last, !any);
        any = true;
        rc = ms_stmt_step(st, &more, err);
    }
    ms_out_puts(o, any ? "}}}}" : "{}");
    for (int i = 0; i < KEYS; i++) {
        if (rc == MS_OK)
            rc = ms_buf_check(&last[i], err);
        ms_buf_free(&last[i]);
    }
    return rc;
}

static enum ms_rc write_nested(struct mstx_recipe_run *r, const char *sql, const char *name,
                               struct ms_err *err)
{
    struct ms_stmt *st;
    struct ms_out *o;
    char *path = ms_path_join(r->out, name);
    if (path == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = ms_store_prepare(r->s, &st, sql, err);
    if (rc == MS_OK) {
        rc = ms_out_create(&o, path, err);
        if (rc == MS_OK) {
            rc = put_nested(st, o, err);
            if (rc == MS_OK)
                rc = ms_out_commit(o, err);
            else
                ms_out_abort(o);
        }
        ms_stmt_free(st);
    }
    if (rc == MS_OK)
        tell_written(r, path);
    ms_free(path);
    return rc;
}

/* ---- time ----------------------------------------------------------------------------------------- */

#define SET_OF(t)                                                                                  \
    "'(' || ifnull((SELECT ranks FROM Sets s WHERE s.kind = CASE " t ".kind WHEN 'p2p' THEN 'p2p'" \
    " ELSE 'collective' END AND s.grp = " t ".grp), '') || ')'"

static const char time_tables[] = "CREATE TEMP TABLE Timed AS SELECT " SET_OF(
    "t") " AS ranks, step, op, grp, rank,"
         " CASE WHEN json_valid(value) THEN value END AS value FROM TimeTexts t;"
         "CREATE TEMP TABLE TimeSums AS WITH p AS (SELECT ranks, step, grp, rank, j.key AS name,"
         " total(j.value) AS sum, min(t.rowid * 1000 + j.id) AS at FROM Timed t,"
         " json_each(t.value, '$.\"Communication Time Info\"') j WHERE j.key NOT IN ('Wait Time "
         "Ratio',"
         " 'Synchronization Time Ratio', 'Start Timestamp(us)') GROUP BY 1, 2, 3, 4, 5)"
         " SELECT ranks, step, grp, rank, '{' || group_concat(json_quote(name) || ': ' ||"
         " json_number(sum), ', ') || ', \"Wait Time Ratio\": ' || json_ratio("
         "total(sum) FILTER (WHERE name = 'Wait Time(ms)'), total(sum) FILTER (WHERE name IN"
         " ('Wait Time(ms)', 'Transit Time(ms)'))) || ', \"Synchronization Time Ratio\": ' || "
         "json_ratio("
         "total(sum) FILTER (WHERE name = 'Synchronization Time(ms)'), total(sum) FILTER (WHERE "
         "name IN"
         " ('Synchronization Time(ms)', 'Transit Time(ms)'))) || '}' AS value"
         " FROM (SELECT * FROM p ORDER BY ranks, step, grp, rank, at) GROUP BY 1, 2, 3, 4;"
         "CREATE TEMP TABLE Bands AS SELECT t.ranks, t.step, t.grp, t.rank, j.key AS type,"
         " j.value AS value, t.rowid AS at FROM Timed t,"
         " json_each(t.value, '$.\"Communication Bandwidth Info\"') j WHERE j.type = 'object';"
         "CREATE TEMP TABLE Packages AS SELECT ranks, step, grp, rank, type, '{' ||"
         " group_concat(json_quote(size) || ': [' || json_number(n) || ', ' || json_number(time) "
         "|| ']',"
         " ', ') || '}' AS value FROM (SELECT ranks, step, grp, rank, b.type AS type, j.key AS "
         "size,"
         " total(json_extract(j.value, '$[0]')) AS n, total(json_extract(j.value, '$[1]')) AS time"
         " FROM Bands b, json_each(b.value, '$.\"Size Distribution\"') j WHERE j.type = 'array'"
         " GROUP BY 1, 2, 3, 4, 5, 6) GROUP BY 1, 2, 3, 4, 5;"
         "CREATE INDEX temp.PackagesBy ON Packages(ranks, step, grp, rank, type);"
         "CREATE TEMP TABLE BandTexts AS WITH b AS (SELECT ranks, step, grp, rank, type, min(at) "
         "AS at,"
         " total(json_extract(value, '$.\"Transit Time(ms)\"')) AS time,"
         " total(json_extract(value, '$.\"Transit Size(MB)\"')) AS size FROM Bands GROUP BY 1, 2, "
         "3, 4, 5)"
         " SELECT ranks, step, grp, rank, '{' || group_concat(json_quote(type) ||"
         " ': {\"Transit Time(ms)\": ' || json_number(time) || ', \"Transit Size(MB)\": ' ||"
         " json_number(size) || ', \"Size Distribution\": ' || ifnull((SELECT value FROM Packages p"
         " WHERE p.ranks = b.ranks AND p.step = b.step AND p.grp = b.grp AND p.rank = b.rank"
         " AND p.type = b.type), '{}') || ', \"Bandwidth(GB/s)\": ' || json_ratio(size, time) || "
         "'}',"
         " ', ') || '}' AS value FROM b GROUP BY 1, 2, 3, 4;"
         "CREATE INDEX temp.BandTextsBy ON BandTexts(ranks, step, grp, rank);";

static const char time_rows[] =
    "SELECT ranks, step, op, rank, value FROM (SELECT ranks, step, op, rank, value, 0 AS last, "
    "rowid"
    " AS at FROM Timed WHERE value IS NOT NULL UNION ALL SELECT ranks, step, 'Total Op Info@' || "
    "grp,"
    " rank, '{\"Communication Time Info\": ' || value || ', \"Communication Bandwidth Info\": ' ||"
    " ifnull((SELECT value FROM BandTexts b WHERE b.ranks = t.ranks AND b.step = t.step"
    " AND b.grp = t.grp AND b.rank = t.rank), '{}') || '}', 1, rowid FROM TimeSums t)"
    " ORDER BY ranks, step, last, op, rank";

/* ---- matrix ---------------------------------------------------------------------------------------- */

static const char link_tables[] = "CREATE TEMP TABLE Linked AS SELECT " SET_OF(
    "t") " AS ranks, t.step, t.op, t.grp, t.rank,"
         " substr(j.key, 1, instr(j.key, '-') - 1) AS src, substr(j.key, instr(j.key, '-') + 1) AS "
         "dst,"
         " j.value AS value, t.rowid * 1000 + j.id AS at FROM LinkTexts t,"
         " json_each(CASE WHEN json_valid(t.value) THEN t.value ELSE '{}' END) j"
         " WHERE instr(j.key, '-') > 0 AND j.type = 'object';"
         "CREATE TEMP TABLE Places AS SELECT ranks, step, grp, src AS place, rank, min(at) FROM "
         "Linked"
         " WHERE src = dst GROUP BY 1, 2, 3, 4;"
         "CREATE INDEX temp.PlacesBy ON Places(ranks, step, grp, place);"
         "CREATE TEMP TABLE Links AS SELECT l.ranks, l.step, l.op, l.grp, s.rank || '-' || d.rank "
         "AS link,"
         " json_extract(l.value, '$.\"Transport Type\"') AS transport,"
         " ifnull(json_extract(l.value, '$.\"Op Name\"'), '') AS name, max(at) AS at,"
         " total(json_extract(l.value, '$.\"Transit Time(ms)\"')) AS time,"
         " total(json_extract(l.value, '$.\"Transit Size(MB)\"')) AS size FROM Linked l"
         " JOIN Places s ON s.ranks = l.ranks AND s.step = l.step AND s.grp = l.grp AND s.place = "
         "l.src"
         " JOIN Places d ON d.ranks = l.ranks AND d.step = l.step AND d.grp = l.grp AND d.place = "
         "l.dst"
         " GROUP BY l.ranks, l.step, l.op, l.grp, link;"
         "INSERT INTO Links SELECT ranks, step, 'Total Op Info@' || grp, NULL, link, transport, "
         "name,"
         " max(at), total(time), total(size) FROM Links WHERE instr(op, 'middle') = 0"
         " AND instr(op, 'top') = 0 AND instr(op, 'bottom') = 0 GROUP BY ranks, step, grp, link;";

static const char link_rows[] =
    "SELECT ranks, step, op, link, '{\"Transport Type\": ' || json_quote(transport) ||"
    " ', \"Transit Time(ms)\": ' || json_number(time) || ', \"Transit Size(MB)\": ' ||"
    " json_number(size) || ', \"Op Name\": ' || json_quote(name) || ', \"Bandwidth(GB/s)\": ' ||"
    " json_ratio(size, time) || '}' FROM Links ORDER BY ranks, step, grp IS NULL, op, link";

/* ---- steps ------------------------------------------------------------------------------------------ */

static enum ms_rc write_steps(struct mstx_recipe_run *r, struct ms_err *err)
{
    static const char rows[] =
        "CREATE TEMP TABLE StepRows AS SELECT step AS Step, type AS Type,"
        " replace(\"index\", ',', ', ') AS \"Index\", CAST(computing AS REAL) AS Computing,"
        " CAST(communication_not_overlapped AS REAL) AS \"Communication(Not Overlapped)\","
        " CAST(overlapped AS REAL) AS Overlapped, CAST(communication AS REAL) AS Communication,"
        " CAST(free AS REAL) AS Free, CAST(stage AS REAL) AS Stage, CAST(bubble AS REAL) AS Bubble,"
        " CAST(communication_not_overlapped_and_exclude_receive AS REAL)"
        " AS \"Communication(Not Overlapped and Exclude Receive)\","
        " CAST(preparing AS REAL) AS Preparing, dp_index AS \"DP Index\", pp_index AS \"PP Index\","
        " tp_index AS \"TP Index\" FROM ClusterStepTraceTime ORDER BY rowid;";
    static const char no_layout[] = "ALTER TABLE temp.StepRows DROP COLUMN \"DP Index\";"
                                    "ALTER TABLE temp.StepRows DROP COLUMN \"PP Index\";"
                                    "ALTER TABLE temp.StepRows DROP COLUMN \"TP Index\";";
    bool layout;
    MS_TRY(mstx__step_tables(r->s, &layout, err));
    MS_TRY(ms_store_exec(r->s, rows, err));
    if (!layout)
        MS_TRY(ms_store_exec(r->s, no_layout, err));
    char *path = ms_path_join(r->out, "cluster_step_trace_time.csv");
    enum ms_rc rc =
        path != NULL ? mstx__recipe_csv(r->s, "StepRows", NULL, path, err) : ms_no_memory(err);
    if (rc == MS_OK)
        tell_written(r, path);
    ms_free(path);
    return rc;
}

static enum ms_rc read_input(struct mstx_recipe_run *r, bool time, bool matrix, struct ms_err *err)
{
    MS_TRY(mstx__recipe_functions(r->s, err));
    MS_TRY(ms_store_add_function(r->s, "json_number", 1, json_number, err));
    MS_TRY(ms_store_add_function(r->s, "json_ratio", 2, json_ratio, err));
    MS_TRY(ms_store_exec(r->s, input_tables, err));
    const size_t small = (size_t)1 << 26;
    MS_TRY(take_all(r, "../profiler_metadata.json", "Metadata", 2, small, take_metadata, err));
    MS_TRY(take_all(r, "step_trace_time.csv", "TraceRows", 11, (size_t)5 << 30, take_csv, err));
    if (time)
        MS_TRY(take_all(r, "communication.json", "TimeTexts", 6, FILE_MAX, take_json, err));
    if (matrix)
        MS_TRY(take_all(r, "communication_matrix.json", "LinkTexts", 6, FILE_MAX, take_json, err));
    return ms_store_exec(r->s, group_tables, err);
}

enum ms_rc mstx__recipe_from_text(struct mstx_recipe_run *r, bool time, bool matrix,
                                  struct ms_err *err)
{
    MS_TRY(read_input(r, time, matrix, err));
    MS_TRY(write_steps(r, err));
    MS_TRY(write_groups(r, err));
    if (time) {
        MS_TRY(ms_store_exec(r->s, time_tables, err));
        MS_TRY(write_nested(r, time_rows, "cluster_communication.json", err));
    }
    if (matrix) {
        MS_TRY(ms_store_exec(r->s, link_tables, err));
        MS_TRY(write_nested(r, link_rows, "cluster_communication_matrix.json", err));
    }
    return MS_OK;
}
