/* SPDX-License-Identifier: MIT
 *
 * recipe: see the header.
 */
#include "mstx/official/recipe.h"

#include "mstx/official/rank_rows.h"
#include "mstx/official/recipe_share.h"
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

enum { WAVE_OF_THREAD = 2, WAVE_SHARED = 8 /* so that process 0 can have a smaller share */ };

/* Ranks that one process reads at the same time, then visited one after the other. */
struct wave {
    struct mstx_recipe *r;
    const struct mstx_rank_query *q;
    size_t n, first, ranks, unit; /* no more than `unit` ranks */
    mstx_rows_fn fn;
    void *ctx;
    struct mstx__rank_rows *rows; /* n for each rank */
};

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

/* Receives the rows of the ranks that another process has read, and tells from which files. */
static enum ms_rc receive_wave(struct wave *w, unsigned process, struct ms_err *err)
{
    MS_TRY(mstx__share_receive(w->r, process, w->rows, w->ranks * w->n, err));
    for (size_t i = 0; i < w->ranks * w->n; i++) {
        const struct mstx_rank_files *f = &w->r->files.ranks.p[w->first + i / w->n];
        w->rows[i].path = w->q[i % w->n].analysis ? f->analysis : f->profiler;
    }
    return MS_OK;
}

/* Visits the ranks that a process reads in a wave, unless something has failed: the others send all they
 * were asked for. */
static enum ms_rc visit_share(struct wave *w, unsigned process, enum ms_rc before,
                              struct ms_err *err)
{
    struct ms_err aside = {0};
    enum ms_rc rc = before;
    if (process != 0)
        rc = receive_wave(w, process, before == MS_OK ? err : &aside);
    else if (before == MS_OK)
        rc = ms_pool_run(w->r->pool, w->ranks, read_rank, w, err);
    if (before != MS_OK || rc != MS_OK)
        return before != MS_OK ? before : rc;
    return visit_wave(w, err);
}

static enum ms_rc read_waves(struct wave *w, struct ms_err *err)
{
    const size_t all = w->r->files.ranks.n;
    const unsigned processes = ms_par_size(w->r->par);
    enum ms_rc rc = MS_OK;
    for (size_t first = 0; first < all && (rc == MS_OK || processes > 1); first = w->first) {
        w->first = first;
        for (unsigned p = 0; p < processes; p++) {
            const size_t end = mstx__share_end(w->r, first, w->unit, p);
            w->ranks = end - w->first;
            if (w->ranks != 0)
                rc = visit_share(w, p, rc, err);
            w->first = end;
        }
    }
    return rc;
}

enum ms_rc mstx__recipe_visit_rows(struct mstx_recipe *r, const struct mstx_rank_query *q, size_t n,
                                   mstx_rows_fn fn, void *ctx, struct ms_err *err)
{
    ms_assert(n != 0 && n <= MSTX_QUERIES);
    size_t unit = (size_t)ms_pool_threads(r->pool) * WAVE_OF_THREAD;
    const bool is_shared = ms_par_size(r->par) > 1;
    unit = is_shared && unit < WAVE_SHARED ? WAVE_SHARED : unit;
    struct wave w = {.r = r, .q = q, .n = n, .unit = unit, .fn = fn, .ctx = ctx};
    w.rows = ms_calloc(unit * n, sizeof *w.rows);
    enum ms_rc rc = w.rows != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK && is_shared)
        rc = mstx__share_queries(r, q, n, unit, err);
    if (rc == MS_OK)
        rc = read_waves(&w, err);
    for (size_t i = 0; w.rows != NULL && i < unit * n; i++)
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
