/* SPDX-License-Identifier: MIT
 *
 * rank_rows: see the header.
 */
#include "mstx/official/rank_rows.h"

#include "mstx/foreign/ascend_tables.h"
#include "mstx/official/comm_rows.h"
#include "mstx/official/sql/rank_rows.h"

#include "probe/base/assert.h"
#include "probe/base/store_vtab.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* A database of a rank; opened by the first query that reads it. */
struct source {
    const char *path;
    struct ms_store *store;
    struct ms_err why; /* of a failed open */
    enum ms_rc rc;
    int64_t rank, start, end;
    bool is_open, apis, steps;
};

/* ---- databases ------------------------------------------------------------------------- */

static enum ms_rc find_step(struct source *f, int64_t step, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    f->start = 0;
    f->end = INT64_MAX;
    if (step == MSTX_ALL_STEPS)
        return MS_OK;
    MS_TRY(ms_store_prepare(f->store, &st, sql_find_step, err));
    ms_stmt_i64(st, 1, step);
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && !more && f->steps)
        rc = ms_fail(err, MS_E_NOTFOUND, "there is no step %" PRId64, step);
    if (rc == MS_OK && more) {
        f->start = ms_stmt_get_i64(st, 0);
        f->end = ms_stmt_get_i64(st, 1);
    }
    ms_stmt_free(st);
    return rc;
}

/* What a thread needs to read a rank. */
struct reading {
    const struct mstx_recipe *r;
    unsigned worker;
    struct mstx_rank_parts parts; /* that the queries read */
};

static enum ms_rc open_store(const struct reading *g, struct source *f, bool analysis,
                             struct ms_err *err)
{
    struct mstx_rank_parts parts = g->parts;
    parts.analysis = analysis;
    if (g->r->open_rank == NULL)
        return ms_store_open(&f->store, f->path, err);
    return g->r->open_rank(g->r->open_ctx, g->worker, f->rank, parts, &f->store, err);
}

static enum ms_rc open_source(const struct reading *g, struct source *f, bool analysis,
                              struct ms_err *err)
{
    MS_TRY(open_store(g, f, analysis, err));
    MS_TRY(mstx__has_table(f->store, "CANN_API", &f->apis, err));
    MS_TRY(mstx__has_table(f->store, "STEP_TIME", &f->steps, err));
    MS_TRY(mstx__ascend_tables(f->store, err));
    return find_step(f, g->r->step, err);
}

static enum ms_rc check_needs(struct ms_store *from, const char *needs, bool *all,
                              struct ms_err *err)
{
    struct ms_str rest = needs != NULL ? ms_str_of(needs) : MS_STR_NONE, part;
    *all = true;
    while (*all && ms_str_split(&rest, ' ', &part)) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", MS_STR_ARG(part));
        MS_TRY(mstx__has_table(from, name, all, err));
        if (!*all)
            ms_fail(err, MS_E_FORMAT, "has no table %s", name);
    }
    return MS_OK;
}

/* ---- rows -------------------------------------------------------------------------------- */

static void bind_times(struct ms_stmt *st, const struct source *f)
{
    const int64_t value[] = {f->start, f->end, f->rank, f->apis, f->steps};
    const int n = ms_stmt_params(st);
    for (int i = 0; i < n && i < 5; i++)
        ms_stmt_i64(st, i + 1, value[i]);
}

static bool add_cell(struct mstx__rank_rows *rows, struct mstx__cell cell)
{
    struct mstx__cell *slot = ms_vec_push(&rows->cells);
    if (slot != NULL)
        *slot = cell;
    return slot != NULL;
}

bool mstx__rank_rows_number(struct mstx__rank_rows *rows, int64_t v)
{
    return add_cell(rows, (struct mstx__cell){.type = MS_VALUE_INT, .i = v});
}

bool mstx__rank_rows_real(struct mstx__rank_rows *rows, double v)
{
    return add_cell(rows, (struct mstx__cell){.type = MS_VALUE_REAL, .f = v});
}

bool mstx__rank_rows_text(struct mstx__rank_rows *rows, struct ms_str s)
{
    if (s.p == NULL)
        return add_cell(rows, (struct mstx__cell){.type = MS_VALUE_NULL});
    const int64_t at = (int64_t)rows->text.n;
    ms_buf_str(&rows->text, s);
    return add_cell(rows, (struct mstx__cell){.type = MS_VALUE_TEXT, .n = s.n, .i = at});
}

bool mstx__rank_rows_shared_text(struct mstx__rank_rows *rows, struct ms_str s, int64_t *at)
{
    if (*at < 0) {
        *at = (int64_t)rows->text.n;
        ms_buf_str(&rows->text, s);
    }
    return add_cell(rows, (struct mstx__cell){.type = MS_VALUE_TEXT, .n = s.n, .i = *at});
}

static bool keep_value(struct mstx__rank_rows *rows, struct ms_stmt *from, int i)
{
    if (ms_stmt_is_null(from, i))
        return add_cell(rows, (struct mstx__cell){.type = MS_VALUE_NULL});
    if (ms_stmt_is_i64(from, i))
        return mstx__rank_rows_number(rows, ms_stmt_get_i64(from, i));
    if (ms_stmt_is_f64(from, i))
        return mstx__rank_rows_real(rows, ms_stmt_get_f64(from, i));
    return mstx__rank_rows_text(rows, ms_stmt_get_str(from, i));
}

static enum ms_rc keep_rows(struct ms_stmt *from, struct mstx__rank_rows *rows, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    rows->columns = ms_stmt_columns(from);
    while (ms_stmt_next(from, &rc, err)) {
        for (int i = 0; i < rows->columns && rc == MS_OK; i++)
            rc = keep_value(rows, from, i) ? MS_OK : ms_no_memory(err);
    }
    return rc == MS_OK ? ms_buf_check(&rows->text, err) : rc;
}

static enum ms_rc run_query(struct source *f, const struct mstx_rank_query *q,
                            struct mstx__rank_rows *rows)
{
    struct ms_stmt *st;
    bool all;
    MS_TRY(check_needs(f->store, q->needs, &all, &rows->why));
    if (!all)
        return q->optional ? MS_OK : MS_E_FORMAT;
    MS_TRY(ms_store_prepare(f->store, &st, q->sql, &rows->why));
    bind_times(st, f);
    enum ms_rc rc = keep_rows(st, rows, &rows->why);
    ms_stmt_free(st);
    return rc;
}

static void read_source(const struct reading *g, struct source *f, const struct mstx_rank_query *q,
                        struct mstx__rank_rows *rows)
{
    if (!f->is_open) {
        f->is_open = true;
        f->rc = open_source(g, f, q->analysis, &f->why);
    }
    rows->rc = f->rc;
    rows->why = f->why;
    if (f->rc == MS_OK)
        rows->rc = run_query(f, q, rows);
}

/* Reads rows without a database where that is possible. */
static bool read_directly(const struct reading *g, const struct source *f,
                          const struct mstx_rank_query *q, struct mstx__rank_rows *rows)
{
    bool done = false;
    if (q->direct == MSTX_READ_DB || g->r->read_rank == NULL || g->r->step != MSTX_ALL_STEPS)
        return false;
    rows->rc = g->r->read_rank(g->r->open_ctx, g->worker, f->rank, q, rows, &done, &rows->why);
    return done || rows->rc != MS_OK;
}

/* Finds the first table that a query needs and no database made of a run has; p is NULL: none. */
static struct ms_str find_lacking(const struct mstx_recipe *r, const struct mstx_rank_query *q)
{
    struct ms_str rest = q->needs != NULL ? ms_str_of(q->needs) : MS_STR_NONE, part;
    if (r->has_table == NULL || r->step != MSTX_ALL_STEPS)
        return MS_STR_NONE;
    while (ms_str_split(&rest, ' ', &part)) {
        if (!r->has_table(r->open_ctx, part))
            return part;
    }
    return MS_STR_NONE;
}

/* Tells whether a run lacks what a recipe cannot do without; its other queries are not asked then. */
static bool is_in_vain(const struct mstx_recipe *r, const struct mstx_rank_query *q, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!q[i].optional && find_lacking(r, &q[i]).p != NULL)
            return true;
    }
    return false;
}

/* Tells whether a query has no rows in a database made of a run, so that none need be made. */
static bool is_empty(const struct mstx_recipe *r, const struct mstx_rank_query *q,
                     struct mstx__rank_rows *rows)
{
    const struct ms_str lacking = find_lacking(r, q);
    if (lacking.p != NULL && !q->optional)
        rows->rc = ms_fail(&rows->why, MS_E_FORMAT, "has no table %.*s", MS_STR_ARG(lacking));
    return lacking.p != NULL || (r->has_table != NULL && q->no_run);
}

/* Tells whether a query asks what a device, a runtime or a framework did. */
static bool needs_tasks(const char *sql)
{
    return strstr(sql, "TASK") != NULL || strstr(sql, "_API") != NULL ||
           strstr(sql, "COMMUNICATION_OP") != NULL;
}

void mstx__rank_rows_read(const struct mstx_recipe *r, const struct mstx_rank_query *q, size_t n,
                          size_t at, unsigned worker, struct mstx__rank_rows *rows)
{
    const struct mstx_rank_files *files = &r->files.ranks.p[at];
    struct source events = {.path = files->profiler, .rank = files->rank};
    struct source analysis = {.path = files->analysis, .rank = files->rank};
    struct reading g = {.r = r, .worker = worker};
    const bool in_vain = is_in_vain(r, q, n);
    bool done[MSTX_QUERIES];
    for (size_t i = 0; i < n; i++) {
        struct source *f = q[i].analysis ? &analysis : &events;
        rows[i].path = f->path;
        rows[i].text.max = SIZE_MAX / 2;
        done[i] = f->path == NULL || is_empty(r, &q[i], &rows[i]) || in_vain ||
                  read_directly(&g, f, &q[i], &rows[i]);
        g.parts.calls |= !done[i] && strstr(q[i].sql, "COMMUNICATION_OP") != NULL;
        g.parts.marks |= !done[i] && strstr(q[i].sql, "MSTX_EVENTS") != NULL;
        g.parts.tasks |= !done[i] && needs_tasks(q[i].sql);
    }
    for (size_t i = 0; i < n; i++) {
        if (!done[i])
            read_source(&g, q[i].analysis ? &analysis : &events, &q[i], &rows[i]);
    }
    ms_store_close(events.store);
    ms_store_close(analysis.store);
}

struct ms_str mstx__cell_text(const struct mstx__rank_rows *rows, const struct mstx__cell *cell)
{
    if (cell->type != MS_VALUE_TEXT)
        return MS_STR_NONE;
    return (struct ms_str){cell->n != 0 ? rows->text.p + cell->i : "", cell->n};
}

int64_t mstx__cell_number(const struct mstx__cell *cell)
{
    if (cell->type == MS_VALUE_REAL)
        return (int64_t)cell->f;
    return cell->type == MS_VALUE_INT ? cell->i : 0;
}

double mstx__cell_real(const struct mstx__cell *cell)
{
    if (cell->type == MS_VALUE_REAL)
        return cell->f;
    return cell->type == MS_VALUE_INT ? (double)cell->i : NAN;
}

/* ---- writing ------------------------------------------------------------------------------ */

static void bind_cell(struct ms_stmt *to, int at, const struct mstx__rank_rows *rows,
                      const struct mstx__cell *c)
{
    if (c->type == MS_VALUE_INT)
        ms_stmt_i64(to, at, c->i);
    else if (c->type == MS_VALUE_REAL)
        ms_stmt_f64(to, at, c->f);
    else if (c->type == MS_VALUE_TEXT)
        ms_stmt_str(to, at, (struct ms_str){rows->text.p + c->i, c->n});
    else
        ms_stmt_null(to, at);
}

enum ms_rc mstx__rank_rows_write(const struct mstx__rank_rows *rows, struct ms_stmt *add,
                                 struct ms_err *err)
{
    ms_assert(rows->rc == MS_OK);
    for (size_t i = 0; i < rows->cells.n; i += (size_t)rows->columns) {
        for (int c = 0; c < rows->columns; c++)
            bind_cell(add, c + 1, rows, &rows->cells.p[i + (size_t)c]);
        MS_TRY(ms_stmt_run(add, err));
    }
    return MS_OK;
}

void mstx__rank_rows_clear(struct mstx__rank_rows *rows)
{
    rows->rc = MS_OK;
    rows->why = (struct ms_err){0};
    rows->cells.n = 0;
    ms_buf_clear(&rows->text);
}

void mstx__rank_rows_free(struct mstx__rank_rows *rows)
{
    ms_vec_free(&rows->cells);
    ms_buf_free(&rows->text);
}
