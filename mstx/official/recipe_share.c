/* SPDX-License-Identifier: MIT
 *
 * recipe_share: see the header.
 */
#include "mstx/official/recipe_share.h"

#include "probe/base/exchange.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

/* Process 0 reads fewer ranks, as it visits those of all.  Visiting takes about this part of reading: 0.2 to
 * 0.35 for the recipes of communication on 256 ranks of 19,500 records (perf). */
static const double VISITING = 0.3;

/* Returns how many ranks of a wave process 0 reads where the others read `unit` each. */
static size_t share_of_first(unsigned processes, size_t unit)
{
    const double share = (1 - VISITING * (processes - 1)) / (1 + VISITING);
    return share > 0 ? (size_t)(share * (double)unit) : 0;
}

size_t mstx__share_end(const struct mstx_recipe *r, size_t first, size_t unit, unsigned process)
{
    const unsigned k = ms_par_size(r->par);
    const size_t own = k == 1 ? unit : share_of_first(k, unit);
    const size_t end = first + own + process * unit;
    return end < r->files.ranks.n ? end : r->files.ranks.n;
}

/* ---- process 0 --------------------------------------------------------------------------- */

static void put_optional(struct ms_buf *b, const char *text)
{
    const bool is_there = text != NULL;
    ms_put_bytes(b, &is_there, sizeof is_there);
    if (is_there)
        ms_put_text(b, ms_str_of(text));
}

static void put_command(struct ms_buf *b, enum mstx__share_command what)
{
    const uint8_t byte = (uint8_t)what;
    *b = (struct ms_buf){.max = MS_SHARE_MAX};
    ms_put_bytes(b, &byte, 1);
}

static enum ms_rc send_command(struct ms_par *par, struct ms_buf *b, struct ms_err *err)
{
    enum ms_rc rc = ms_buf_check(b, err);
    if (rc == MS_OK)
        rc = ms_share_from_first(par, b, err);
    ms_buf_free(b);
    return rc;
}

enum ms_rc mstx__share_input(struct mstx_recipe *r, const char *db, const char *only,
                             struct ms_err *err)
{
    struct ms_buf b;
    if (ms_par_size(r->par) == 1)
        return MS_OK;
    put_command(&b, db != NULL ? MSTX_SHARE_RUN : MSTX_SHARE_FILES);
    ms_put_bytes(&b, &r->step, sizeof r->step);
    put_optional(&b, only);
    put_optional(&b, db);
    for (size_t i = 0; i < r->files.ranks.n && db == NULL; i++) {
        const struct mstx_rank_files *f = &r->files.ranks.p[i];
        ms_put_bytes(&b, &f->rank, sizeof f->rank);
        put_optional(&b, f->profiler);
        put_optional(&b, f->analysis);
    }
    MS_TRY(send_command(r->par, &b, err));
    return ms_share_result(r->par, MS_OK, err);
}

enum ms_rc mstx__share_queries(const struct mstx_recipe *r, const struct mstx_rank_query *q,
                               size_t n, size_t unit, struct ms_err *err)
{
    struct ms_buf b;
    const uint64_t number[2] = {n, unit};
    put_command(&b, MSTX_SHARE_QUERIES);
    ms_put_bytes(&b, number, sizeof number);
    for (size_t i = 0; i < n; i++) {
        ms_put_bytes(&b, &q[i], sizeof q[i]); /* its texts follow, its pointers mean nothing */
        put_optional(&b, q[i].columns);
        put_optional(&b, q[i].needs);
        put_optional(&b, q[i].sql);
    }
    return send_command(r->par, &b, err);
}

enum ms_rc mstx__share_end_recipe(struct ms_par *par, enum ms_rc mine, struct ms_err *err)
{
    struct ms_buf b;
    struct ms_err aside = {0};
    if (ms_par_size(par) == 1)
        return mine;
    put_command(&b, MSTX_SHARE_END);
    const enum ms_rc sent = send_command(par, &b, &aside);
    return sent == MS_OK ? ms_share_result(par, mine, err) : mine;
}

/* ---- rows --------------------------------------------------------------------------------- */

static enum ms_rc take_rows(struct ms_taker *t, struct mstx__rank_rows *rows, struct ms_err *err)
{
    ms_take_bytes(t, &rows->rc, sizeof rows->rc);
    if (rows->rc != MS_OK)
        ms_take_bytes(t, &rows->why, sizeof rows->why);
    ms_take_bytes(t, &rows->columns, sizeof rows->columns);
    if (!ms_take_items(t, &rows->cells))
        return ms_no_memory(err);
    const size_t n = ms_take_count(t, 1);
    rows->text.max = SIZE_MAX / 2;
    if (n != 0 && !t->bad) {
        ms_buf_put(&rows->text, t->p, n);
        t->p += n;
        t->n -= n;
    }
    return ms_buf_check(&rows->text, err);
}

/* Takes the result of reading a wave. */
static enum ms_rc take_outcome(struct ms_taker *t, struct ms_err *err)
{
    enum ms_rc rc;
    struct ms_err why;
    ms_take_bytes(t, &rc, sizeof rc);
    if (rc == MS_OK)
        return MS_OK;
    ms_take_bytes(t, &why, sizeof why);
    if (!t->bad && err != NULL)
        *err = why;
    return rc;
}

enum ms_rc mstx__share_receive(const struct mstx_recipe *r, unsigned process,
                               struct mstx__rank_rows *rows, size_t n, struct ms_err *err)
{
    struct ms_buf b = {.max = MS_SHARE_MAX};
    unsigned who;
    enum ms_rc rc = ms_par_recv(r->par, (int)process, &b, &who, err);
    struct ms_taker t = {b.p, b.n, false};
    if (rc == MS_OK)
        rc = take_outcome(&t, err);
    for (size_t i = 0; i < n && rc == MS_OK; i++)
        rc = take_rows(&t, &rows[i], err);
    if (rc == MS_OK && t.bad)
        rc = ms_fail(err, MS_E_INTERNAL, "the rows of process %u are damaged", process);
    ms_buf_free(&b);
    return rc;
}
