/* SPDX-License-Identifier: MIT
 *
 * summary_files: see the header.
 *
 *     CANN_API ─► TASK ───────────────────────────────────► api_statistic.csv
 *     COMPUTE_TASK_INFO, COMMUNICATION_OP, ... ─► kernel ─┐
 *     TASK_PMU_INFO ─► counter ───────────────────────────┴► kernel_details.csv
 *
 * Columns, their order and the form of numbers depend on what a rank recorded, as in the tables of
 * pandas that the official tool writes: a number of which some row has none is written as a float.
 */
#include "mstx/official/summary_files.h"

#include "mstx/foreign/ascend_tables.h"

#include "mstx/official/sql/summary_files.h"
#include "mstx/official/table_csv.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdio.h>

enum { COMPUTATION, COMMUNICATION, SCHEDULING, KINDS };
enum { STATEMENT_MAX = 1 << 20 };

/* One rank whose files are being written. */
struct summary {
    struct mstx_recipe *r;
    struct ms_store *s;
    const char *dir;
    int64_t kind[KINDS]; /* how many kernels there are of each */
    bool has_op_state, has_block_num;
    bool fills_zeros; /* what a computation lacks is 0, as in the official tool beside counters */
    bool any;         /* something was there to write */
};

/* ---- columns of kernels ------------------------------------------------------------------ */

/* A column; kinds: which of them have it, a bit each. */
struct column {
    const char *name;
    unsigned kinds;
    enum { TEXT, NUMBER, START, DURATION } form;
};
enum { C = 1 << COMPUTATION, M = 1 << COMMUNICATION, S = 1 << SCHEDULING };

static const struct column columns[] = {
    {"op_name", C | M | S, TEXT},
    {"block_dim", C, NUMBER},
    {"mix_block_dim", C, NUMBER},
    {"op_type", C | M | S, TEXT},
    {"task_type", C | M | S, TEXT},
    {"input_formats", C, TEXT},
    {"input_shapes", C, TEXT},
    {"input_data_types", C, TEXT},
    {"output_shapes", C, TEXT},
    {"output_formats", C, TEXT},
    {"output_data_types", C, TEXT},
    {"op_state", C, TEXT},
    {"task_start_time", C | M | S, START},
    {"task_duration", C | M | S, DURATION},
    {"device_id", C | M | S, NUMBER},
    {"model_id", C | M | S, NUMBER},
    {"stream_id", C | S, NUMBER},
    {"context_id", C | S, NUMBER},
    {"task_id", C | S, NUMBER},
};
/* Without computation, the columns of communication come first. */
static const struct column of_communication[] = {
    {"op_name", M | S, TEXT},          {"op_type", M | S, TEXT},
    {"task_start_time", M | S, START}, {"task_duration", M | S, DURATION},
    {"device_id", M | S, NUMBER},      {"model_id", M | S, NUMBER},
    {"task_type", M | S, TEXT},        {"stream_id", S, NUMBER},
    {"context_id", S, NUMBER},         {"task_id", S, NUMBER},
};
#define COUNT(list) (sizeof(list) / sizeof *(list))

static unsigned kinds_of(const struct summary *m)
{
    unsigned kinds = 0;
    for (int k = 0; k < KINDS; k++)
        kinds |= m->kind[k] != 0 ? 1u << k : 0;
    return kinds;
}

/* Appends the expression of a column. */
static void put_column(const struct summary *m, const struct column *c, struct ms_buf *sql)
{
    const bool is_whole = (kinds_of(m) & ~c->kinds) == 0;
    switch (c->form) {
    case TEXT:
        ms_buf_printf(sql,
                      "coalesce(k.%s, CASE WHEN k.kind = 0 AND %d THEN '0' ELSE 'N/A' END) AS %s, ",
                      c->name, m->fills_zeros, c->name);
        break;
    case NUMBER:
        ms_buf_printf(sql,
                      "CASE WHEN k.%s IS NULL THEN CASE WHEN k.kind = 0 AND %d THEN 0.0 ELSE "
                      "'N/A' END WHEN %d AND NOT EXISTS (SELECT 1 FROM kernel WHERE %s IS NULL) "
                      "THEN k.%s ELSE CAST(k.%s AS REAL) END AS %s, ",
                      c->name, m->fills_zeros, is_whole, c->name, c->name, c->name, c->name);
        break;
    case START: /* in two parts, because the nanoseconds do not fit into a float */
        ms_buf_printf(sql, "k.start_ns / 1000 + k.start_ns %% 1000 / 1000.0 AS %s, ", c->name);
        break;
    case DURATION:
        ms_buf_printf(sql, "(k.end_ns - k.start_ns) / 1000.0 AS %s, ", c->name);
        break;
    }
}

/* Appends a text in quotes, which are doubled within. */
static void put_quoted(struct ms_buf *sql, char quote, struct ms_str text)
{
    ms_buf_putc(sql, quote);
    for (uint32_t i = 0; i < text.n; i++) {
        if (text.p[i] == quote)
            ms_buf_putc(sql, quote);
        ms_buf_putc(sql, text.p[i]);
    }
    ms_buf_putc(sql, quote);
}

/* Appends the column of a counter; a task without it has 0, and what is no computation has none. */
static void put_counter(struct ms_stmt *st, struct ms_buf *sql)
{
    const bool is_time = ms_stmt_get_i64(st, 2) != 0, is_whole = ms_stmt_get_i64(st, 3) != 0;
    ms_buf_puts(sql, "CASE WHEN k.kind <> 0 THEN 'N/A' ELSE ");
    ms_buf_puts(sql, is_whole ? "(" : "CAST(");
    ms_buf_puts(sql, "coalesce((SELECT value FROM counter WHERE task = k.task AND name = ");
    put_quoted(sql, '\'', ms_stmt_get_str(st, 0));
    ms_buf_puts(sql, is_whole ? "), 0))" : "), 0) AS REAL)");
    ms_buf_puts(sql, is_time ? " / 1000.0 END AS " : " END AS ");
    put_quoted(sql, '"', ms_stmt_get_str(st, 1));
    ms_buf_puts(sql, ", ");
}

static enum ms_rc put_counters(struct summary *m, struct ms_buf *sql, struct ms_err *err)
{
    struct ms_stmt *st;
    enum ms_rc rc = ms_store_prepare(m->s, &st, sql_list_counters, err);
    if (rc != MS_OK)
        return rc;
    while (ms_stmt_next(st, &rc, err))
        put_counter(st, sql);
    ms_stmt_free(st);
    return rc;
}

/* Makes the table of kernels as they are written. */
static enum ms_rc list_kernels(struct summary *m, struct ms_buf *sql, struct ms_err *err)
{
    const bool computes = m->kind[COMPUTATION] != 0;
    const struct column *list =
        computes || m->kind[COMMUNICATION] == 0 ? columns : of_communication;
    const size_t n = list == columns ? COUNT(columns) : COUNT(of_communication);
    ms_buf_puts(sql, "CREATE TEMP TABLE KernelDetails AS SELECT ");
    for (size_t i = 0; i < n; i++) {
        const bool is_missing = strcmp(list[i].name, "op_state") == 0 && !m->has_op_state;
        if ((list[i].kinds & kinds_of(m)) != 0 && !is_missing)
            put_column(m, &list[i], sql);
    }
    if (computes)
        MS_TRY(put_counters(m, sql, err));
    ms_buf_puts(sql,
                "w.us AS task_wait_time FROM waited w JOIN kernel k ON k.rowid = w.id ORDER BY "
                "w.rowid");
    MS_TRY(ms_buf_check(sql, err));
    return ms_store_exec(m->s, ms_buf_z(sql), err);
}

static enum ms_rc has_rows(struct ms_store *s, const char *table, bool *has, struct ms_err *err)
{
    char sql[96];
    struct ms_stmt *st;
    snprintf(sql, sizeof sql, "SELECT 1 FROM %s LIMIT 1", table);
    MS_TRY(ms_store_prepare(s, &st, sql, err));
    const enum ms_rc rc = ms_stmt_step(st, has, err);
    ms_stmt_free(st);
    return rc;
}

/* ---- reading ------------------------------------------------------------------------------- */

static enum ms_rc find_columns(struct summary *m, struct ms_err *err)
{
    struct ms_stmt *st;
    enum ms_rc rc = ms_store_prepare(m->s, &st, sql_has_column, err);
    if (rc != MS_OK)
        return rc;
    while (ms_stmt_next(st, &rc, err)) {
        m->has_op_state |= ms_stmt_get_i64(st, 0) == 1;
        m->has_block_num |= ms_stmt_get_i64(st, 0) == 2;
    }
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc add_computation(struct summary *m, struct ms_buf *sql, struct ms_err *err)
{
    MS_TRY(find_columns(m, err));
    ms_buf_puts(sql, sql_add_computation);
    ms_buf_puts(sql,
                m->has_block_num ? " c.blockNum, c.mixBlockNum, " : " c.blockDim, c.mixBlockDim, ");
    ms_buf_puts(sql, sql_add_computation_rest);
    ms_buf_puts(sql, m->has_op_state ? " (SELECT value FROM STRING_IDS WHERE id = c.opState), "
                                     : " NULL, ");
    ms_buf_puts(sql, sql_add_computation_end);
    MS_TRY(ms_buf_check(sql, err));
    return ms_store_exec(m->s, ms_buf_z(sql), err);
}

static enum ms_rc count_kinds(struct summary *m, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(m->s, &st, sql_count_kinds, err));
    const enum ms_rc rc = ms_stmt_step(st, &more, err);
    for (int k = 0; k < KINDS && rc == MS_OK; k++)
        m->kind[k] = ms_stmt_get_i64(st, k);
    ms_stmt_free(st);
    return rc;
}

/* Runs a statement if the database has the table that it reads. */
static enum ms_rc run_if(struct summary *m, const char *table, const char *sql, struct ms_err *err)
{
    bool has;
    MS_TRY(mstx__has_table(m->s, table, &has, err));
    return has ? ms_store_exec(m->s, sql, err) : MS_OK;
}

static enum ms_rc read_kernels(struct summary *m, struct ms_err *err)
{
    struct ms_buf sql = {.max = STATEMENT_MAX};
    bool has_tasks, computes, counts;
    MS_TRY(mstx__has_table(m->s, "TASK", &has_tasks, err));
    if (!has_tasks)
        return MS_OK;
    MS_TRY(ms_store_exec(m->s, sql_make_kernels, err));
    enum ms_rc rc = mstx__has_table(m->s, "COMPUTE_TASK_INFO", &computes, err);
    if (rc == MS_OK && computes)
        rc = add_computation(m, &sql, err);
    ms_buf_free(&sql);
    MS_TRY(rc);
    MS_TRY(run_if(m, "COMMUNICATION_OP", sql_add_communication, err));
    MS_TRY(run_if(m, "COMMUNICATION_SCHEDULE_TASK_INFO", sql_add_scheduling, err));
    MS_TRY(mstx__has_table(m->s, "TASK_PMU_INFO", &counts, err));
    MS_TRY(ms_store_exec(m->s, counts ? sql_make_counters : sql_make_no_counters, err));
    MS_TRY(has_rows(m->s, "counter", &counts, err));
    m->fills_zeros = counts && m->r->strict;
    return count_kinds(m, err);
}

static enum ms_rc make_details(struct summary *m, struct ms_err *err)
{
    struct ms_buf sql = {.max = STATEMENT_MAX};
    MS_TRY(ms_store_exec(m->s, m->r->strict ? sql_order_kernels_strict : sql_order_kernels, err));
    const enum ms_rc rc = list_kernels(m, &sql, err);
    ms_buf_free(&sql);
    return rc;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Writes a table into a file that is not there yet. */
static enum ms_rc write_file(struct summary *m, const char *table, const char *name,
                             struct ms_err *err)
{
    char *path = ms_path_join(m->dir, name);
    if (path == NULL)
        return ms_no_memory(err);
    m->any = true;
    enum ms_rc rc = MS_OK;
    if (ms_path_kind(path) == MS_KIND_NONE) {
        rc = ms_want_no_link(path, err);
        if (rc == MS_OK)
            rc = mstx__write_table_csv(m->s, table, NULL, path, err);
        if (rc == MS_OK)
            m->r->wrote(path);
    }
    ms_free(path);
    return rc;
}

static enum ms_rc write_calls(struct summary *m, struct ms_err *err)
{
    bool has;
    MS_TRY(ms_store_exec(m->s, sql_make_calls, err));
    MS_TRY(has_rows(m->s, "ApiStatistic", &has, err));
    return has ? write_file(m, "ApiStatistic", "api_statistic.csv", err) : MS_OK;
}

static enum ms_rc write_kernels(struct summary *m, struct ms_err *err)
{
    MS_TRY(read_kernels(m, err));
    if (kinds_of(m) == 0)
        return MS_OK;
    MS_TRY(make_details(m, err));
    return write_file(m, "KernelDetails", "kernel_details.csv", err);
}

static enum ms_rc write_both(struct summary *m, struct ms_err *err)
{
    MS_TRY(mstx__ascend_tables(m->s, err));
    MS_TRY(write_calls(m, err));
    MS_TRY(write_kernels(m, err));
    return m->any ? MS_OK : ms_fail(err, MS_E_FORMAT, "has neither calls nor kernels of a device");
}

/* ---- ranks ----------------------------------------------------------------------------------- */

/* Returns where the files of a rank of a run are written, made where it is missing. */
static char *make_rank_dir(const struct mstx_recipe *r, int64_t rank, struct ms_err *err)
{
    char name[64];
    snprintf(name, sizeof name, "export_summary/rank_%" PRId64, rank);
    char *dir = ms_path_join(r->out, name);
    if (dir == NULL)
        ms_no_memory(err);
    else if (ms_mkdirs(dir, err) == MS_OK)
        return dir;
    ms_free(dir);
    return NULL;
}

static enum ms_rc summarise_run_rank(struct mstx_recipe *r, const struct mstx_rank_files *f,
                                     struct ms_err *err)
{
    const struct mstx_rank_parts parts = {.calls = true, .tasks = true};
    struct summary m = {.r = r};
    char *dir = make_rank_dir(r, f->rank, err);
    if (dir == NULL)
        return err->rc;
    m.dir = dir;
    enum ms_rc rc = r->open_rank(r->open_ctx, 0, f->rank, parts, &m.s, err);
    if (rc == MS_OK)
        rc = write_both(&m, err);
    ms_store_close(m.s);
    ms_free(dir);
    return rc;
}

static enum ms_rc summarise_rank(struct mstx_recipe *r, const struct mstx_rank_files *f,
                                 struct ms_err *err)
{
    struct summary m = {.r = r, .dir = f->dir};
    if (r->open_rank != NULL)
        return summarise_run_rank(r, f, err);
    MS_TRY(ms_store_open(&m.s, f->profiler, err));
    const enum ms_rc rc = write_both(&m, err);
    ms_store_close(m.s);
    return rc;
}

enum ms_rc mstx__write_summaries(struct mstx_recipe *r, struct ms_err *err)
{
    return mstx__recipe_each_rank(r, summarise_rank, err);
}
