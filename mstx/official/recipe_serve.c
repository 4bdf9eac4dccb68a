/* SPDX-License-Identifier: MIT
 *
 * recipe_serve: what the processes of `mpirun msprobe cluster` do that do not run the recipe.
 */
#include "mstx/official/recipe_share.h"

#include "mstx/official/run_as_ascend.h"
#include "probe/base/exchange.h"

#include "probe/base/arena.h"
#include "probe/base/assert.h"
#include "probe/base/mem.h"

struct server {
    struct mstx_recipe r;
    struct mstx_run_ranks *run;
    struct mstx_rank_query q[MSTX_QUERIES];
    size_t n, unit;
    size_t first, ranks; /* that are being read */
    struct mstx__rank_rows *rows;
};

/* Takes a text that ends in a zero byte into the arena. */
static const char *take_optional(struct ms_taker *t, struct ms_arena *a, bool *ok)
{
    bool is_there;
    ms_take_bytes(t, &is_there, sizeof is_there);
    if (t->bad || !is_there)
        return NULL;
    const char *text = ms_arena_str(a, ms_take_text(t)).p;
    *ok = *ok && text != NULL;
    return text;
}

static enum ms_rc take_files(struct server *s, struct ms_taker *t, struct ms_arena *a,
                             struct ms_err *err)
{
    bool ok = true;
    while (t->n != 0 && !t->bad && ok) {
        int64_t rank;
        ms_take_bytes(t, &rank, sizeof rank);
        const char *profiler = take_optional(t, a, &ok), *analysis = take_optional(t, a, &ok);
        const struct mstx_rank_files f = {
            rank, profiler != NULL ? ms_str_dup(ms_str_of(profiler)) : NULL,
            analysis != NULL ? ms_str_dup(ms_str_of(analysis)) : NULL, NULL};
        struct mstx_rank_files *slot = ms_vec_push(&s->r.files.ranks);
        if (slot != NULL)
            *slot = f;
        ok = ok && slot != NULL && (profiler == NULL) == (f.profiler == NULL) &&
             (analysis == NULL) == (f.analysis == NULL);
    }
    return ok ? MS_OK : ms_no_memory(err);
}

static enum ms_rc open_input(struct server *s, struct ms_taker *t, struct ms_arena *a,
                             struct ms_err *err)
{
    bool ok = true;
    ms_take_bytes(t, &s->r.step, sizeof s->r.step);
    const char *only = take_optional(t, a, &ok), *db = take_optional(t, a, &ok);
    if (!ok)
        return ms_no_memory(err);
    if (db == NULL)
        return take_files(s, t, a, err);
    MS_TRY(mstx__run_ranks_open(&s->run, db, ms_pool_threads(s->r.pool), err));
    mstx__run_ranks_lend(s->run, &s->r);
    return mstx__run_ranks_list(s->run, only, &s->r.files, err);
}

static enum ms_rc take_queries(struct server *s, struct ms_taker *t, struct ms_arena *a,
                               struct ms_err *err)
{
    bool ok = true;
    uint64_t number[2];
    ms_take_bytes(t, number, sizeof number);
    s->n = number[0] <= MSTX_QUERIES ? (size_t)number[0] : 0;
    s->unit = (size_t)number[1];
    for (size_t i = 0; i < s->n; i++) {
        struct mstx_rank_query *q = &s->q[i];
        ms_take_bytes(t, q, sizeof *q);
        q->into = NULL;
        q->columns = take_optional(t, a, &ok);
        q->needs = take_optional(t, a, &ok);
        q->sql = take_optional(t, a, &ok);
    }
    return ok ? MS_OK : ms_no_memory(err);
}

static void put_rows(struct ms_buf *b, const struct mstx__rank_rows *rows)
{
    ms_put_bytes(b, &rows->rc, sizeof rows->rc);
    if (rows->rc != MS_OK)
        ms_put_bytes(b, &rows->why, sizeof rows->why);
    ms_put_bytes(b, &rows->columns, sizeof rows->columns);
    ms_put_items(b, &rows->cells);
    ms_put_counted(b, rows->text.p, rows->text.n, 1);
}

static enum ms_rc read_rank(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    struct server *s = ctx;
    (void)err;
    mstx__rank_rows_read(&s->r, s->q, s->n, s->first + item, worker, &s->rows[item * s->n]);
    return MS_OK;
}

static enum ms_rc read_wave(struct server *s, struct ms_buf *b, struct ms_err *err)
{
    if (s->rows == NULL)
        return ms_no_memory(err);
    MS_TRY(ms_pool_run(s->r.pool, s->ranks, read_rank, s, err));
    for (size_t i = 0; i < s->ranks * s->n; i++) {
        put_rows(b, &s->rows[i]);
        mstx__rank_rows_clear(&s->rows[i]);
    }
    return ms_buf_check(b, err);
}

/* Reads the ranks of this process in a wave and sends them, or why that failed, since process 0 waits. */
static enum ms_rc serve_wave(struct server *s, size_t first, struct ms_err *err)
{
    const unsigned own = ms_par_rank(s->r.par);
    struct ms_buf rows = {.max = MS_SHARE_MAX}, b = {.max = MS_SHARE_MAX};
    struct ms_err why = {0};
    s->first = mstx__share_end(&s->r, first, s->unit, own - 1);
    s->ranks = mstx__share_end(&s->r, first, s->unit, own) - s->first;
    if (s->ranks == 0)
        return MS_OK;
    const enum ms_rc read = read_wave(s, &rows, &why);
    ms_put_bytes(&b, &read, sizeof read);
    if (read != MS_OK)
        ms_put_bytes(&b, &why, sizeof why);
    else
        ms_put_bytes(&b, rows.p, rows.n);
    enum ms_rc rc = ms_buf_check(&b, err);
    if (rc == MS_OK)
        rc = ms_par_send(s->r.par, 0, b.p, b.n, err);
    ms_buf_free(&rows);
    ms_buf_free(&b);
    return rc;
}

static enum ms_rc serve_queries(struct server *s, struct ms_taker *t, struct ms_err *err)
{
    const unsigned last = ms_par_size(s->r.par) - 1;
    struct ms_arena *a = ms_arena_new((size_t)1 << 30);
    enum ms_rc rc = MS_OK;
    if (a != NULL && take_queries(s, t, a, err) == MS_OK)
        s->rows = ms_calloc(s->unit * s->n + 1, sizeof *s->rows);
    for (size_t at = 0; rc == MS_OK && at < s->r.files.ranks.n;
         at = mstx__share_end(&s->r, at, s->unit, last))
        rc = serve_wave(s, at, err);
    for (size_t i = 0; s->rows != NULL && i < s->unit * s->n; i++)
        mstx__rank_rows_free(&s->rows[i]);
    ms_free(s->rows);
    s->rows = NULL;
    ms_arena_free(a);
    return rc;
}

static enum ms_rc serve_input(struct server *s, struct ms_taker *t, struct ms_err *err)
{
    struct ms_arena *a = ms_arena_new((size_t)1 << 32);
    enum ms_rc rc = a != NULL ? open_input(s, t, a, err) : ms_no_memory(err);
    ms_arena_free(a);
    return ms_share_result(s->r.par, rc, err);
}

/* Obeys the next command of process 0. A failure that leaves process 0 waiting ends the job. */
static enum ms_rc serve_command(struct server *s, bool *more, struct ms_err *err)
{
    struct ms_buf b = {.max = MS_SHARE_MAX};
    uint8_t what = MSTX_SHARE_END;
    enum ms_rc rc = ms_share_from_first(s->r.par, &b, err);
    struct ms_taker t = {b.p, b.n, false};
    ms_take_bytes(&t, &what, 1);
    *more = rc == MS_OK && !t.bad && what != MSTX_SHARE_END;
    if (*more && what == MSTX_SHARE_QUERIES)
        rc = serve_queries(s, &t, err);
    else if (*more && serve_input(s, &t, err) != MS_OK)
        rc = MS_OK; /* process 0 knows, and ends the recipe */
    ms_buf_free(&b);
    return rc;
}

enum ms_rc mstx__share_serve(struct ms_par *par, struct ms_pool *pool, struct ms_err *err)
{
    struct server s = {.r = {.par = par, .pool = pool}};
    bool more = true;
    enum ms_rc rc = MS_OK;
    while (more && rc == MS_OK)
        rc = serve_command(&s, &more, err);
    mstx__ascend_files_free(&s.r.files);
    mstx__run_ranks_close(s.run);
    return rc == MS_OK ? ms_share_result(par, MS_OK, err) : rc;
}
