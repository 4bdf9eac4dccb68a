/* SPDX-License-Identifier: MIT
 *
 * cluster_texts: merges the text files of all ranks into those of the cluster.
 *
 *     communication.json        ─► communication_group.json, cluster_communication.json
 *     communication_matrix.json ─► cluster_communication_matrix.json
 *     step_trace_time.csv       ─► cluster_step_trace_time.csv
 *
 * Operations are listed under the ranks of their group, "(0, 1)", with a sum for each group and
 * step.  Ranks of links are places in a group; the link of a rank to itself shows which rank has
 * that place.
 */
#include "mstx/official/cluster_texts.h"

#include "mstx/foreign/ascend_files.h"
#include "mstx/foreign/ascend_tables.h"
#include "mstx/official/sql/cluster_texts.h"
#include "mstx/official/step_times.h"
#include "mstx/official/table_csv.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/num.h"
#include "probe/base/store_vtab.h"

#include <math.h>
#include <stdio.h>

enum { KEYS = 4, CSV_COLUMNS = 10 };
#define FILE_MAX ((size_t)10 << 30)

static void report_written(const struct mstx_recipe *r, const char *path)
{
    if (r->wrote != NULL)
        r->wrote(path);
}

/* ---- input -------------------------------------------------------------------------------- */

struct taking {
    struct mstx_recipe *r;
    struct ms_stmt *add;
    int64_t rank;
};

static enum ms_rc add_op(void *ctx, const struct mstx_ascend_op *op, struct ms_err *err)
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

static enum ms_rc read_json(struct taking *t, const char *p, size_t n, struct ms_err *err)
{
    return mstx__ascend_json_read(p, n, add_op, t, err);
}

/* Adds the metadata as one row; SQL reads its members. */
static enum ms_rc read_metadata(struct taking *t, const char *p, size_t n, struct ms_err *err)
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

static struct ms_str trim_text(struct ms_str s)
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
            place[i] = ms_str_is(trim_text(field), headings[i]) ? at : place[i];
    }
}

/* Adds a line of the table. A field that is not a number counts as 0, as in the official tool. */
static enum ms_rc read_line(struct taking *t, struct ms_str line, const int place[CSV_COLUMNS],
                            struct ms_err *err)
{
    struct ms_str field;
    ms_stmt_i64(t->add, 1, t->rank);
    ms_stmt_str(t->add, 2, MS_STR(""));
    for (int i = 1; i < CSV_COLUMNS; i++)
        ms_stmt_f64(t->add, i + 2, 0);
    for (int at = 0; ms_str_split(&line, ',', &field); at++) {
        double v;
        field = trim_text(field);
        if (at == place[0])
            ms_stmt_str(t->add, 2, field.n != 0 ? field : MS_STR(""));
        for (int i = 1; i < CSV_COLUMNS; i++) {
            if (at == place[i] && ms_num_parse_f64(field.p, field.n, &v))
                ms_stmt_f64(t->add, i + 2, v);
        }
    }
    return ms_stmt_run(t->add, err);
}

static enum ms_rc read_csv(struct taking *t, const char *p, size_t n, struct ms_err *err)
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
        else if (trim_text(line).n != 0)
            MS_TRY(read_line(t, line, place, err));
        first = false;
        p = stop + 1;
    }
    return MS_OK;
}

typedef enum ms_rc (*visit_fn)(struct taking *t, const char *p, size_t n, struct ms_err *err);

/* Reads a file. Notes a problem when the file exists but cannot be read. */
static enum ms_rc read_file(struct taking *t, const char *dir, const char *name, size_t max,
                            visit_fn visit, struct ms_err *err)
{
    struct ms_file f;
    struct ms_err aside = {0};
    char *path = ms_path_join(dir, name);
    enum ms_rc rc = path != NULL ? MS_OK : ms_no_memory(&aside);
    if (rc == MS_OK && ms_path_kind(path) == MS_KIND_FILE) {
        rc = ms_file_map(&f, path, max, &aside);
        if (rc == MS_OK) {
            rc = visit(t, f.p, f.n, &aside);
            ms_file_unmap(&f);
            ms_stmt_reset(t->add);
        }
    }
    if (rc == MS_E_NOMEM)
        rc = ms_no_memory(err);
    else if (rc != MS_OK)
        rc = mstx__recipe_note_problem(t->r, path, aside.msg, err);
    ms_free(path);
    return rc;
}

static enum ms_rc read_all_ranks(struct mstx_recipe *r, const char *name, const char *table,
                                 int columns, size_t max, visit_fn visit, struct ms_err *err)
{
    struct taking t = {.r = r};
    char sql[128];
    int n = snprintf(sql, sizeof sql, "INSERT INTO %s VALUES(?", table);
    for (int i = 1; i < columns; i++)
        n += snprintf(sql + n, sizeof sql - (size_t)n, ",?");
    snprintf(sql + n, sizeof sql - (size_t)n, ")");
    MS_TRY(ms_store_prepare(r->s, &t.add, sql, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < r->files.ranks.n && rc == MS_OK; i++) {
        t.rank = r->files.ranks.p[i].rank;
        rc = read_file(&t, r->files.ranks.p[i].dir, name, max, visit, err);
        if (r->progress != NULL)
            r->progress(i + 1, r->files.ranks.n);
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

/* Rounds to four decimals exactly, as Python does; 0 / 0 is 0. */
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

static enum ms_rc write_value(struct mstx_recipe *r, const char *sql, const char *name,
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
        report_written(r, path);
    ms_free(path);
    return rc;
}

static enum ms_rc write_groups(struct mstx_recipe *r, struct ms_err *err)
{
    return write_value(r, sql_find_groups, "communication_group.json", err);
}

/* ---- nested objects ---------------------------------------------------------------------------- */

static void write_key(struct ms_out *o, struct ms_str key)
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

/* Closes the objects whose keys differ from those of the previous row and opens those of this
 * row. */
static void write_row(struct ms_stmt *st, struct ms_out *o, struct ms_buf last[KEYS], bool first)
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
        write_key(o, ms_stmt_get_str(st, i));
        if (i < KEYS - 1)
            ms_out_putc(o, '{');
    }
    ms_out_str(o, ms_stmt_get_str(st, KEYS));
}

/* Writes sorted rows of four keys and a value as nested objects. */
static enum ms_rc write_rows(struct ms_stmt *st, struct ms_out *o, struct ms_err *err)
{
    struct ms_buf last[KEYS];
    bool any = false;
    for (int i = 0; i < KEYS; i++)
        last[i] = (struct ms_buf){.max = 1 << 20};
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        write_row(st, o, last, !any);
        any = true;
    }
    ms_out_puts(o, any ? "}}}}" : "{}");
    for (int i = 0; i < KEYS; i++) {
        if (rc == MS_OK)
            rc = ms_buf_check(&last[i], err);
        ms_buf_free(&last[i]);
    }
    return rc;
}

static enum ms_rc write_nested(struct mstx_recipe *r, const char *sql, const char *name,
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
            rc = write_rows(st, o, err);
            if (rc == MS_OK)
                rc = ms_out_commit(o, err);
            else
                ms_out_abort(o);
        }
        ms_stmt_free(st);
    }
    if (rc == MS_OK)
        report_written(r, path);
    ms_free(path);
    return rc;
}

/* ---- time ----------------------------------------------------------------------------------------- */

/* ---- matrix ---------------------------------------------------------------------------------------- */

/* ---- steps ------------------------------------------------------------------------------------------ */

static enum ms_rc write_steps(struct mstx_recipe *r, struct ms_err *err)
{
    bool layout;
    MS_TRY(mstx__write_step_tables(r->s, &layout, err));
    MS_TRY(ms_store_exec(r->s, sql_make_step_rows, err));
    if (!layout)
        MS_TRY(ms_store_exec(r->s, sql_drop_layout, err));
    char *path = ms_path_join(r->out, "cluster_step_trace_time.csv");
    enum ms_rc rc =
        path != NULL ? mstx__write_table_csv(r->s, "StepRows", NULL, path, err) : ms_no_memory(err);
    if (rc == MS_OK)
        report_written(r, path);
    ms_free(path);
    return rc;
}

static enum ms_rc read_input(struct mstx_recipe *r, bool time, bool matrix, struct ms_err *err)
{
    MS_TRY(mstx__ascend_functions(r->s, err));
    MS_TRY(ms_store_add_function(r->s, "json_number", 1, json_number, err));
    MS_TRY(ms_store_add_function(r->s, "json_ratio", 2, json_ratio, err));
    MS_TRY(ms_store_exec(r->s, sql_make_input, err));
    const size_t small = (size_t)1 << 26;
    MS_TRY(
        read_all_ranks(r, "../profiler_metadata.json", "Metadata", 2, small, read_metadata, err));
    MS_TRY(
        read_all_ranks(r, "step_trace_time.csv", "TraceRows", 11, (size_t)5 << 30, read_csv, err));
    if (time)
        MS_TRY(read_all_ranks(r, "communication.json", "TimeTexts", 6, FILE_MAX, read_json, err));
    if (matrix)
        MS_TRY(read_all_ranks(r, "communication_matrix.json", "LinkTexts", 6, FILE_MAX, read_json,
                              err));
    return ms_store_exec(r->s, sql_map_groups, err);
}

enum ms_rc mstx__merge_cluster_texts(struct mstx_recipe *r, bool time, bool matrix,
                                     struct ms_err *err)
{
    MS_TRY(read_input(r, time, matrix, err));
    MS_TRY(write_steps(r, err));
    MS_TRY(write_groups(r, err));
    if (time) {
        MS_TRY(ms_store_exec(r->s, sql_sum_times, err));
        MS_TRY(write_nested(r, sql_find_times, "cluster_communication.json", err));
    }
    if (matrix) {
        MS_TRY(ms_store_exec(r->s, sql_sum_links, err));
        MS_TRY(write_nested(r, sql_find_links, "cluster_communication_matrix.json", err));
    }
    return MS_OK;
}
