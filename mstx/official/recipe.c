/* SPDX-License-Identifier: MIT
 *
 * recipe: see the header.
 */
#include "mstx/official/recipe.h"

#include "mstx/foreign/ascend_tables.h"
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

/* ---- one rank ------------------------------------------------------------------------ */

struct source {
    struct ms_store *from;
    int64_t rank, start, end;
    bool apis, steps;
};

static enum ms_rc find_step(struct source *f, int64_t step, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    f->start = 0;
    f->end = INT64_MAX;
    if (step == MSTX_ALL_STEPS)
        return MS_OK;
    MS_TRY(ms_store_prepare(f->from, &st, sql_find_step, err));
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

static enum ms_rc open_source(struct source *f, const char *path, int64_t step, struct ms_err *err)
{
    MS_TRY(ms_store_open(&f->from, path, err));
    MS_TRY(mstx__has_table(f->from, "CANN_API", &f->apis, err));
    MS_TRY(mstx__has_table(f->from, "STEP_TIME", &f->steps, err));
    MS_TRY(mstx__ascend_tables(f->from, err));
    return find_step(f, step, err);
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

static void bind_times(struct ms_stmt *st, const struct source *f)
{
    const int64_t value[] = {f->start, f->end, f->rank, f->apis, f->steps};
    const int n = ms_stmt_params(st);
    for (int i = 0; i < n && i < 5; i++)
        ms_stmt_i64(st, i + 1, value[i]);
}

/* Copies a value of any type. */
static void copy_value(struct ms_stmt *to, int at, struct ms_stmt *from, int i)
{
    if (ms_stmt_is_null(from, i))
        ms_stmt_null(to, at);
    else if (ms_stmt_is_i64(from, i))
        ms_stmt_i64(to, at, ms_stmt_get_i64(from, i));
    else if (ms_stmt_is_f64(from, i))
        ms_stmt_f64(to, at, ms_stmt_get_f64(from, i));
    else
        ms_stmt_str(to, at, ms_stmt_get_str(from, i));
}

static enum ms_rc copy_rows(struct ms_stmt *from, struct ms_stmt *to, struct ms_err *err)
{
    const int n = ms_stmt_columns(from);
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(from, &rc, err)) {
        for (int i = 0; i < n; i++)
            copy_value(to, i + 1, from, i);
        rc = ms_stmt_run(to, err);
    }
    return rc;
}

static enum ms_rc pull_rank(struct mstx_recipe *r, const struct mstx_rank_query *p,
                            const char *path, int64_t rank, struct ms_stmt *add, struct ms_err *err)
{
    struct source f = {.rank = rank};
    struct ms_stmt *st = NULL;
    bool all = false;
    enum ms_rc rc = open_source(&f, path, r->step, err);
    if (rc == MS_OK)
        rc = check_needs(f.from, p->needs, &all, err);
    if (rc == MS_OK && all)
        rc = ms_store_prepare(f.from, &st, p->sql, err);
    if (rc == MS_OK && all) {
        bind_times(st, &f);
        rc = copy_rows(st, add, err);
    } else if (rc == MS_OK && !p->optional) {
        rc = MS_E_FORMAT;
    }
    ms_stmt_free(st);
    ms_store_close(f.from);
    return rc;
}

/* ---- all ranks ------------------------------------------------------------------------- */

static enum ms_rc drop_rank(struct mstx_recipe *r, const char *table, int64_t rank,
                            struct ms_err *err)
{
    char sql[160];
    snprintf(sql, sizeof sql, "DELETE FROM %s WHERE rank = %" PRId64, table, rank);
    return ms_store_exec(r->s, sql, err);
}

static enum ms_rc prepare_add(struct mstx_recipe *r, const struct mstx_rank_query *p,
                              struct ms_stmt **add, struct ms_err *err)
{
    char sql[1024];
    int columns = 1;
    for (const char *c = p->columns; *c != '\0'; c++)
        columns += *c == ',';
    snprintf(sql, sizeof sql, "CREATE TEMP TABLE IF NOT EXISTS %s(%s)", p->into, p->columns);
    MS_TRY(ms_store_exec(r->s, sql, err));
    int n = snprintf(sql, sizeof sql, "INSERT INTO %s VALUES(?", p->into);
    for (int i = 1; i < columns; i++)
        n += snprintf(sql + n, sizeof sql - (size_t)n, ",?");
    snprintf(sql + n, sizeof sql - (size_t)n, ")");
    return ms_store_prepare(r->s, add, sql, err);
}

static enum ms_rc pull_or_note(struct mstx_recipe *r, const struct mstx_rank_query *p,
                               const struct mstx_rank_files *f, struct ms_stmt *add,
                               struct ms_err *err)
{
    const char *path = p->analysis ? f->analysis : f->profiler;
    struct ms_err aside = {0};
    if (path == NULL && p->optional)
        return MS_OK;
    if (path == NULL)
        return mstx__recipe_note_problem(
            r, f->dir,
            p->analysis ? "has no database analysis.db" : "has no database of the profiler", err);
    enum ms_rc rc = pull_rank(r, p, path, f->rank, add, &aside);
    r->good += rc == MS_OK;
    if (rc == MS_OK)
        return MS_OK;
    if (rc == MS_E_NOMEM)
        return ms_no_memory(err);
    ms_stmt_reset(add);
    MS_TRY(drop_rank(r, p->into, f->rank, err));
    return mstx__recipe_note_problem(r, path, aside.msg, err);
}

enum ms_rc mstx__recipe_read_rows(struct mstx_recipe *r, const struct mstx_rank_query *p,
                                  struct ms_err *err)
{
    struct ms_stmt *add;
    MS_TRY(prepare_add(r, p, &add, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < r->files.ranks.n && rc == MS_OK; i++) {
        rc = pull_or_note(r, p, &r->files.ranks.p[i], add, err);
        if (r->progress != NULL)
            r->progress(i + 1, r->files.ranks.n);
    }
    ms_stmt_free(add);
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
