/* SPDX-License-Identifier: MIT
 *
 * recipe: see the header.
 */
#include "mstx/official/recipe.h"

#include "mstx/official/rank_rows.h"
#include "mstx/official/sql/recipe.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- problems ------------------------------------------------------------------------ */

enum ms_rc mstx__recipe_note_problem(struct mstx_recipe *r, const char *file, const char *text,
                                     struct ms_err *err)
{
    r->bad++;
    if (r->add_problem == NULL) {
        MS_TRY(ms_store_exec(r->s, sql_create_problems, err));
        MS_TRY(ms_store_prepare(r->s, &r->add_problem, sql_add_problem, err));
    }
    ms_stmt_str(r->add_problem, 1, ms_str_of(file));
    ms_stmt_str(r->add_problem, 2, ms_str_of(text));
    return ms_stmt_run(r->add_problem, err);
}

static enum ms_rc note_problem(void *ctx, const char *file, const char *text, struct ms_err *err)
{
    return mstx__recipe_note_problem(ctx, file, text, err);
}

enum ms_rc mstx__recipe_find_files(struct mstx_recipe *r, const char *only, struct ms_err *err)
{
    ms_assert(r->s != NULL);
    r->files.note_problem = note_problem;
    r->files.ctx = r;
    return mstx__ascend_files_find(&r->files, r->path, only, err);
}

void mstx__recipe_free(struct mstx_recipe *r)
{
    mstx__ascend_files_free(&r->files);
    ms_stmt_free(r->add_problem);
    r->add_problem = NULL;
}

/* ---- rows of all ranks ----------------------------------------------------------------- */

enum { WAVE_OF_THREAD = 2 };

/* Ranks that are read at the same time, then visited one after the other. */
struct wave {
    struct mstx_recipe *r;
    const struct mstx_rank_query *q;
    size_t n, first, ranks;
    mstx_rows_fn fn;
    void *ctx;
    struct mstx__rank_rows *rows; /* n for each rank */
};

int mstx__rank_query_columns(const struct mstx_rank_query *q)
{
    int columns = 1;
    for (const char *c = q->columns; *c != '\0'; c++)
        columns += *c == ',';
    return columns;
}

static enum ms_rc prepare_add(struct mstx_recipe *r, const struct mstx_rank_query *p,
                              struct ms_stmt **add, struct ms_err *err)
{
    char sql[1024];
    const int columns = mstx__rank_query_columns(p);
    snprintf(sql, sizeof sql, "CREATE TEMP TABLE IF NOT EXISTS %s(%s)", p->into, p->columns);
    MS_TRY(ms_store_exec(r->s, sql, err));
    int n = snprintf(sql, sizeof sql, "INSERT INTO %s VALUES(?", p->into);
    for (int i = 1; i < columns; i++)
        n += snprintf(sql + n, sizeof sql - (size_t)n, ",?");
    snprintf(sql + n, sizeof sql - (size_t)n, ")");
    return ms_store_prepare(r->s, add, sql, err);
}

static enum ms_rc read_rank(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    struct wave *w = ctx;
    (void)err;
    mstx__rank_rows_read(w->r, w->q, w->n, w->first + item, worker, &w->rows[item * w->n]);
    return MS_OK;
}

static enum ms_rc visit_query(struct wave *w, size_t query, const struct mstx_rank_files *f,
                              const struct mstx__rank_rows *rows, struct ms_err *err)
{
    const struct mstx_rank_query *q = &w->q[query];
    if (rows->path == NULL && q->optional)
        return MS_OK;
    if (rows->path == NULL)
        return mstx__recipe_note_problem(
            w->r, f->dir,
            q->analysis ? "has no database analysis.db" : "has no database of the profiler", err);
    if (rows->rc == MS_E_NOMEM)
        return ms_no_memory(err);
    if (rows->rc != MS_OK)
        return mstx__recipe_note_problem(w->r, rows->path, rows->why.msg, err);
    w->r->good++;
    return w->fn(w->ctx, query, f->rank, rows, err);
}

static enum ms_rc visit_wave(struct wave *w, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < w->ranks * w->n && rc == MS_OK; i++) {
        const size_t rank = w->first + i / w->n;
        rc = visit_query(w, i % w->n, &w->r->files.ranks.p[rank], &w->rows[i], err);
        mstx__rank_rows_clear(&w->rows[i]);
        if (w->r->progress != NULL && i % w->n == w->n - 1)
            w->r->progress(rank + 1, w->r->files.ranks.n);
    }
    return rc;
}

static enum ms_rc read_waves(struct wave *w, size_t most, struct ms_err *err)
{
    const size_t all = w->r->files.ranks.n;
    for (; w->first < all; w->first += w->ranks) {
        w->ranks = all - w->first < most ? all - w->first : most;
        MS_TRY(ms_pool_run(w->r->pool, w->ranks, read_rank, w, err));
        MS_TRY(visit_wave(w, err));
    }
    return MS_OK;
}

enum ms_rc mstx__recipe_visit_rows(struct mstx_recipe *r, const struct mstx_rank_query *q, size_t n,
                                   mstx_rows_fn fn, void *ctx, struct ms_err *err)
{
    ms_assert(n != 0 && n <= MSTX_QUERIES);
    const size_t most = (size_t)ms_pool_threads(r->pool) * WAVE_OF_THREAD;
    struct wave w = {
        .r = r, .q = q, .n = n, .fn = fn, .ctx = ctx, .rows = ms_calloc(most * n, sizeof *w.rows)};
    enum ms_rc rc = w.rows != NULL ? read_waves(&w, most, err) : ms_no_memory(err);
    for (size_t i = 0; w.rows != NULL && i < most * n; i++)
        mstx__rank_rows_free(&w.rows[i]);
    ms_free(w.rows);
    return rc;
}

enum ms_rc mstx__rank_tables_new(struct mstx__rank_tables *t, struct mstx_recipe *r,
                                 const struct mstx_rank_query *q, size_t n, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    ms_assert(n != 0 && n <= MSTX_QUERIES);
    *t = (struct mstx__rank_tables){.add = {NULL}};
    for (size_t i = 0; i < n && rc == MS_OK; i++)
        rc = prepare_add(r, &q[i], &t->add[i], err);
    if (rc != MS_OK)
        mstx__rank_tables_free(t);
    return rc;
}

enum ms_rc mstx__rank_tables_add(void *tables, size_t query, int64_t rank,
                                 const struct mstx__rank_rows *rows, struct ms_err *err)
{
    const struct mstx__rank_tables *t = tables;
    (void)rank;
    return mstx__rank_rows_write(rows, t->add[query], err);
}

void mstx__rank_tables_free(struct mstx__rank_tables *t)
{
    for (size_t i = 0; i < MSTX_QUERIES; i++) {
        ms_stmt_free(t->add[i]);
        t->add[i] = NULL;
    }
}

enum ms_rc mstx__recipe_read_rows(struct mstx_recipe *r, const struct mstx_rank_query *q, size_t n,
                                  struct ms_err *err)
{
    struct mstx__rank_tables t;
    MS_TRY(mstx__rank_tables_new(&t, r, q, n, err));
    enum ms_rc rc = mstx__recipe_visit_rows(r, q, n, mstx__rank_tables_add, &t, err);
    mstx__rank_tables_free(&t);
    return rc;
}

enum ms_rc mstx__recipe_each_rank(struct mstx_recipe *r, mstx_rank_fn fn, struct ms_err *err)
{
    for (size_t i = 0; i < r->files.ranks.n; i++) {
        const struct mstx_rank_files *f = &r->files.ranks.p[i];
        struct ms_err aside = {0};
        enum ms_rc rc = f->profiler != NULL
                            ? fn(r, f, &aside)
                            : ms_fail(&aside, MS_E_NOTFOUND, "has no database of the profiler");
        r->good += rc == MS_OK;
        if (rc == MS_E_NOMEM)
            return ms_no_memory(err);
        if (rc != MS_OK)
            MS_TRY(mstx__recipe_note_problem(r, f->profiler != NULL ? f->profiler : f->dir,
                                             aside.msg, err));
        if (r->progress != NULL)
            r->progress(i + 1, r->files.ranks.n);
    }
    return MS_OK;
}
