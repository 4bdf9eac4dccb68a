/* SPDX-License-Identifier: MIT
 *
 * step_waits: see the header.
 *
 * The transfer of an operation in a step is its shortest duration over the ranks; the rest of each
 * rank's duration is waiting. A group counts when all its ranks are there; the official tool means
 * that, too, but never looks.
 */
#include "mstx/official/step_waits.h"

#include "mstx/official/comm_rows.h"
#include "mstx/official/sql/step_waits.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

static const struct mstx_rank_query timed = {.direct = MSTX_READ_COMM,
                                             .steps = true,
                                             .needs = "COMMUNICATION_OP STRING_IDS",
                                             .sql = sql_read_timed_ops};

#define NO_ROW UINT32_MAX

/* An operation's part in a step. */
struct met {
    int64_t step, last_rank;
    uint32_t ranks, shortest; /* the row with the shortest duration, or NO_ROW */
};
struct total {
    int64_t step, wait, transmit; /* nanoseconds, so that no sum depends on the order of rows */
};
struct waits {
    struct mstx_recipe *r;
    struct mstx__comm_rows c;
    uint32_t *transfer; /* by row: the row with the shortest duration of its operation, or NO_ROW */
    uint32_t *size;     /* by group, a text: how many ranks an operation needs */
    MS_VEC(struct met) met;
    MS_VEC(struct total) total; /* of a rank */
    struct ms_stmt *add;
};

static int64_t step_of(const struct waits *w, size_t row)
{
    return mstx__comm_kind(&w->c, row)->step;
}

/* ---- sizes of groups ----------------------------------------------------------------------- */

static enum ms_rc read_sizes(struct waits *w, struct ms_err *err)
{
    struct ms_stmt *st;
    w->size = ms_calloc(w->c.text.keys.n + 1, sizeof *w->size);
    if (w->size == NULL)
        return ms_no_memory(err);
    if (w->r->strict)
        return MS_OK;
    MS_TRY(ms_store_prepare(w->r->s, &st, sql_find_sizes, err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        const uint32_t group = ms_map_get(&w->c.text, ms_stmt_get_str(st, 0));
        if (group != MS_MAP_NONE)
            w->size[group] = (uint32_t)ms_stmt_get_i64(st, 1);
    }
    ms_stmt_free(st);
    return rc;
}

/* ---- transfers ------------------------------------------------------------------------------- */

/* Finds or adds the part of an operation in a step; an operation has few steps. */
static struct met *find_met(struct waits *w, int64_t step)
{
    for (size_t i = 0; i < w->met.n; i++) {
        if (w->met.p[i].step == step)
            return &w->met.p[i];
    }
    struct met *slot = ms_vec_push(&w->met);
    if (slot != NULL)
        *slot = (struct met){.step = step, .shortest = NO_ROW, .last_rank = INT64_MIN};
    return slot;
}

static bool meet_row(struct waits *w, size_t at)
{
    const int64_t rank = mstx__comm_rank(&w->c, at);
    struct met *m = find_met(w, step_of(w, at));
    if (m == NULL)
        return false;
    m->ranks += m->last_rank != rank;
    m->last_rank = rank;
    const int64_t dur = mstx__comm_dur(&w->c, at);
    if (dur != MSTX_NO_VALUE && (m->shortest == NO_ROW || dur < mstx__comm_dur(&w->c, m->shortest)))
        m->shortest = (uint32_t)at;
    return true;
}

/* Notes for the rows of an operation the one with the duration of its transfer; NO_ROW: the operation
 * does not count. */
static bool find_transfer(struct waits *w, uint32_t op, const uint32_t *row, size_t n)
{
    const uint32_t group = mstx__comm_group(&w->c, op);
    const bool is_named = group != MSTX_NO_TEXT && mstx__comm_name(&w->c, op).p != NULL;
    w->met.n = 0;
    for (size_t i = 0; i < n; i++) {
        if (step_of(w, row[i]) != MSTX_NO_VALUE && !meet_row(w, row[i]))
            return false;
    }
    for (size_t i = 0; i < n; i++) {
        const int64_t step = step_of(w, row[i]);
        const struct met *m = step != MSTX_NO_VALUE ? find_met(w, step) : NULL;
        const bool counts = is_named && m != NULL && m->ranks >= w->size[group];
        w->transfer[row[i]] = counts ? m->shortest : NO_ROW;
    }
    return true;
}

static uint32_t op_of_row(void *ctx, size_t row)
{
    return ((const struct waits *)ctx)->c.row.p[row].op;
}

static enum ms_rc find_transfers(struct waits *w, struct ms_err *err)
{
    struct mstx__comm_order o;
    const uint32_t ops = (uint32_t)w->c.op.keys.n;
    bool ok = true;
    w->transfer = ms_alloc((w->c.row.n + 1) * sizeof *w->transfer);
    if (w->transfer == NULL)
        return ms_no_memory(err);
    MS_TRY(mstx__comm_order_new(&o, &w->c, ops, op_of_row, w, err));
    for (uint32_t i = 0; i < ops && ok; i++)
        ok = find_transfer(w, i, o.row + o.first[i], o.first[i + 1] - o.first[i]);
    mstx__comm_order_free(&o);
    return ok ? MS_OK : ms_no_memory(err);
}

/* ---- sums -------------------------------------------------------------------------------------- */

/* Finds or adds the total of a step; rows come in order of time, so that it is most often the last. */
static struct total *find_total(struct waits *w, int64_t step)
{
    for (size_t i = w->total.n; i-- > 0;) {
        if (w->total.p[i].step == step)
            return &w->total.p[i];
    }
    struct total *slot = ms_vec_push(&w->total);
    if (slot != NULL)
        *slot = (struct total){.step = step};
    return slot;
}

static int by_step(const void *pa, const void *pb)
{
    const struct total *a = pa, *b = pb;
    return MS_ORDER(a->step, b->step, 0);
}

static enum ms_rc write_rank(struct waits *w, int64_t rank, struct ms_err *err)
{
    ms_vec_sort(&w->total, by_step);
    for (size_t i = 0; i < w->total.n; i++) {
        ms_stmt_i64(w->add, 1, rank);
        ms_stmt_i64(w->add, 2, w->total.p[i].step);
        ms_stmt_f64(w->add, 3, (double)w->total.p[i].wait / 1000.0);
        ms_stmt_f64(w->add, 4, (double)w->total.p[i].transmit / 1000.0);
        MS_TRY(ms_stmt_run(w->add, err));
    }
    w->total.n = 0;
    return MS_OK;
}

static bool sum_row(struct waits *w, size_t row)
{
    const int64_t dur = mstx__comm_dur(&w->c, row);
    if (w->transfer[row] == NO_ROW || dur == MSTX_NO_VALUE)
        return true;
    const int64_t transfer = mstx__comm_dur(&w->c, w->transfer[row]);
    struct total *t = find_total(w, step_of(w, row));
    if (t == NULL)
        return false;
    t->wait += dur - transfer;
    t->transmit += transfer;
    return true;
}

static enum ms_rc sum_ranks(struct waits *w, struct ms_err *err)
{
    size_t at = 0;
    MS_TRY(ms_store_prepare(w->r->s, &w->add, sql_add_wait, err));
    for (size_t i = 0; i < w->c.rank.n; i++) {
        for (; at < w->c.end.p[i]; at++) {
            if (!sum_row(w, at))
                return ms_no_memory(err);
        }
        MS_TRY(write_rank(w, w->c.rank.p[i], err));
    }
    return MS_OK;
}

/* Counts the ranks with operations; where there is one alone, nobody waits. */
static enum ms_rc write_count(const struct waits *w, struct ms_err *err)
{
    int64_t ranks = 0;
    for (size_t i = 0; i < w->c.rank.n; i++)
        ranks += w->c.end.p[i] != (i != 0 ? w->c.end.p[i - 1] : 0);
    return ms_store_exec_i64(w->r->s, sql_add_traced, &ranks, 1, err);
}

enum ms_rc mstx__find_step_waits(struct mstx_recipe *r, struct ms_err *err)
{
    struct waits w = {.r = r};
    enum ms_rc rc = mstx__comm_rows_read(r, &timed, MSTX_COMM_KINDS, &w.c, err);
    if (rc == MS_OK)
        rc = ms_store_exec(r->s, sql_make_waits, err);
    if (rc == MS_OK)
        rc = read_sizes(&w, err);
    if (rc == MS_OK)
        rc = find_transfers(&w, err);
    if (rc == MS_OK)
        rc = sum_ranks(&w, err);
    if (rc == MS_OK)
        rc = write_count(&w, err);
    ms_stmt_free(w.add);
    ms_free(w.size);
    ms_free(w.transfer);
    ms_vec_free(&w.met);
    ms_vec_free(&w.total);
    mstx__comm_rows_free(&w.c);
    return rc;
}
