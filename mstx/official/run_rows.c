/* SPDX-License-Identifier: MIT
 *
 * run_rows: reads from a run what queries would find in the databases of its ranks, without making
 * these databases.
 */
#include "mstx/official/run_as_ascend_int.h"

#include "mstx/foreign/export.h"
#include "mstx/foreign/to_ascend.h"
#include "mstx/official/comm_rows.h"
#include "mstx/official/rank_rows.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- operations -------------------------------------------------------------------------- */

struct step {
    int64_t number, start, end;
    int64_t latest; /* the greatest end of the steps up to here */
};
enum { CODES = 256 /* of operations, and of types of data */, NO_CODE = 255 };
struct comm_reader {
    const struct mstx_run_ranks *run;
    struct mstx__rank_rows *rows;
    bool by_step;
    MS_VEC(struct step) steps;
    /* Where texts that many rows have begin among those of the rows; -1: not yet there. */
    MS_VEC(int64_t) group_at;
    MS_VEC(uint8_t) last_op; /* by group */
    int64_t type_at[CODES], dtype_at[CODES];
};

static enum ms_rc read_steps(struct comm_reader *r, struct mstx_tl *tl, int64_t rank,
                             struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(mstx__ascend_steps(tl, (int32_t)rank, &st, err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        struct step *slot = ms_vec_push(&r->steps);
        if (slot != NULL)
            *slot = (struct step){ms_stmt_get_i64(st, 0), ms_stmt_get_i64(st, 1),
                                  ms_stmt_get_i64(st, 2), ms_stmt_get_i64(st, 2)};
        else
            rc = ms_no_memory(err);
        if (slot != NULL && r->steps.n > 1 && slot[-1].latest > slot->latest)
            slot->latest = slot[-1].latest;
    }
    ms_stmt_free(st);
    return rc;
}

/* Returns the size of an item in the types that slow_link counts; 0 for the others. */
static int64_t item_bytes(unsigned dtype)
{
    return dtype <= MSTX_TYPE_INT128 ? mstx_comm_type_bytes(dtype) : 0;
}

/* Adds the name that HCCL gives to a type of data. */
static bool add_dtype(struct comm_reader *r, uint8_t dtype)
{
    char name[16] = "N/A";
    if (r->dtype_at[dtype] < 0 && dtype <= MSTX_TYPE_FP8E8M0 && dtype != MSTX_TYPE_INT128 + 1)
        snprintf(name, sizeof name, "%s", mstx_comm_type_text(dtype));
    for (char *c = name; *c != '\0'; c++)
        *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    return mstx__rank_rows_shared_text(r->rows, ms_str_of(name), &r->dtype_at[dtype]);
}

static bool add_group(struct comm_reader *r, const struct mstx_ascend_call *k)
{
    return mstx__rank_rows_shared_text(r->rows, r->run->groups->list.p[k->group].name,
                                       &r->group_at.p[k->group]);
}

/* Adds the type of an operation; a framework may say any. */
static bool add_type(struct comm_reader *r, const struct mstx_ascend_call *k,
                     const struct mstx_ascend_names *names)
{
    if (k->is_said)
        return mstx__rank_rows_text(r->rows, ms_str_of(names->type));
    return mstx__rank_rows_shared_text(r->rows, ms_str_of(names->type), &r->type_at[k->rec.op]);
}

/* Adds a row, whose step is NULL where `step` is. */
static bool add_call(struct comm_reader *r, const struct mstx_ascend_call *k,
                     const struct mstx_ascend_names *names, const struct step *step)
{
    const int64_t item = item_bytes(k->rec.dtype);
    return add_group(r, k) && mstx__rank_rows_text(r->rows, ms_str_of(names->name)) &&
           add_type(r, k, names) && mstx__rank_rows_number(r->rows, k->start) &&
           mstx__rank_rows_number(r->rows, k->end - k->start) && add_dtype(r, k->rec.dtype) &&
           (item != 0 ? mstx__rank_rows_number(r->rows, item * (int64_t)k->rec.count)
                      : mstx__rank_rows_text(r->rows, MS_STR_NONE)) &&
           (step != NULL ? mstx__rank_rows_number(r->rows, step->number)
                         : mstx__rank_rows_text(r->rows, MS_STR_NONE));
}

/* Keeps the group and the type of a call, unless the last call of the group was of the same operation. */
static enum ms_rc keep_group(void *ctx, const struct mstx_ascend_call *k,
                             const struct mstx_ascend_names *names, struct ms_err *err)
{
    struct comm_reader *r = ctx;
    if (!k->is_said && r->last_op.p[k->group] == k->rec.op)
        return MS_OK;
    r->last_op.p[k->group] = k->is_said ? NO_CODE : k->rec.op;
    const bool ok =
        add_group(r, k) && mstx__rank_rows_text(r->rows, MS_STR_NONE) && add_type(r, k, names);
    return ok ? MS_OK : ms_no_memory(err);
}

/* Returns the first step that begins after t; steps are in order of their begin. */
static size_t step_after(const struct comm_reader *r, int64_t t)
{
    size_t low = 0, high = r->steps.n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (r->steps.p[middle].start <= t)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the first step that ends at t or later. */
static size_t step_until(const struct comm_reader *r, int64_t t)
{
    size_t low = 0, high = r->steps.n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (r->steps.p[middle].latest < t)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static enum ms_rc keep_call(void *ctx, const struct mstx_ascend_call *k,
                            const struct mstx_ascend_names *names, struct ms_err *err)
{
    struct comm_reader *r = ctx;
    const size_t end = r->by_step ? step_after(r, k->start) : 0;
    bool any = false, ok = true;
    for (size_t i = r->by_step ? step_until(r, k->start) : 0; i < end && ok; i++) {
        if (r->steps.p[i].end < k->start)
            continue;
        any = true;
        ok = add_call(r, k, names, &r->steps.p[i]);
    }
    if (ok && !any)
        ok = add_call(r, k, names, NULL);
    return ok ? MS_OK : ms_no_memory(err);
}

static enum ms_rc forget_texts(struct comm_reader *r, struct ms_err *err)
{
    const size_t groups = r->run->groups->list.n;
    if (!ms_vec_reserve(&r->group_at, groups) || !ms_vec_reserve(&r->last_op, groups))
        return ms_no_memory(err);
    for (size_t i = 0; i < groups; i++) {
        r->group_at.p[i] = -1;
        r->last_op.p[i] = NO_CODE;
    }
    for (size_t i = 0; i < CODES; i++)
        r->type_at[i] = r->dtype_at[i] = -1;
    return MS_OK;
}

static enum ms_rc read_comm(struct comm_reader *r, struct mstx_tl *tl, int64_t rank,
                            struct ms_err *err)
{
    r->rows->columns = MSTX_COMM_COLUMNS;
    MS_TRY(forget_texts(r, err));
    if (r->by_step)
        MS_TRY(read_steps(r, tl, rank, err));
    return mstx__ascend_each_call(tl, r->run->groups, (int32_t)rank, keep_call, r, err);
}

static enum ms_rc read_comm_groups(struct comm_reader *r, struct mstx_tl *tl, int64_t rank,
                                   struct ms_err *err)
{
    r->rows->columns = MSTX_COMM_TYPE + 1;
    MS_TRY(forget_texts(r, err));
    return mstx__ascend_each_call(tl, r->run->groups, (int32_t)rank, keep_group, r, err);
}

static enum ms_rc read_step_rows(struct comm_reader *r, struct mstx_tl *tl, int64_t rank,
                                 struct ms_err *err)
{
    r->rows->columns = 3;
    MS_TRY(read_steps(r, tl, rank, err));
    for (size_t i = 0; i < r->steps.n; i++) {
        if (!mstx__rank_rows_number(r->rows, r->steps.p[i].number) ||
            !mstx__rank_rows_number(r->rows, r->steps.p[i].start) ||
            !mstx__rank_rows_number(r->rows, r->steps.p[i].end))
            return ms_no_memory(err);
    }
    return MS_OK;
}

struct range_reader {
    struct mstx_tl *tl;
    struct mstx__rank_rows *rows;
};

static enum ms_rc keep_range(void *ctx, size_t track, const struct mstx_event *e,
                             struct ms_err *err)
{
    const struct range_reader *r = ctx;
    (void)track;
    if (e->kind != MSTX_EV_RANGE)
        return MS_OK;
    const bool ok = mstx__rank_rows_text(r->rows, mstx_tl_text(r->tl, e->name)) &&
                    mstx__rank_rows_number(r->rows, e->start_ns) &&
                    mstx__rank_rows_number(r->rows, e->start_ns + e->dur_ns) &&
                    mstx__rank_rows_text(r->rows, MS_STR_NONE);
    return ok ? MS_OK : ms_no_memory(err);
}

static enum ms_rc read_ranges(struct mstx_tl *tl, int64_t rank, struct mstx__rank_rows *rows,
                              struct ms_err *err)
{
    struct range_reader r = {tl, rows};
    rows->columns = 4;
    MS_TRY(mstx__merge(tl, (int32_t)rank, keep_range, &r, err));
    return mstx__tl_check(tl, err);
}

/* ---- steps, hosts, communicators ----------------------------------------------------------- */

/* Reads how long each step took, in microseconds; a rank without steps has the step -1. */
static enum ms_rc read_step_times(struct comm_reader *r, struct mstx_tl *tl, int64_t rank,
                                  struct ms_err *err)
{
    r->rows->columns = 3;
    MS_TRY(read_steps(r, tl, rank, err));
    bool ok = true;
    for (size_t i = 0; i < r->steps.n && ok; i++)
        ok = mstx__rank_rows_number(r->rows, rank) &&
             mstx__rank_rows_number(r->rows, r->steps.p[i].number) &&
             mstx__rank_rows_real(r->rows,
                                  (double)(r->steps.p[i].end - r->steps.p[i].start) / 1000.0);
    if (ok && r->steps.n == 0)
        ok = mstx__rank_rows_number(r->rows, rank) && mstx__rank_rows_number(r->rows, -1) &&
             mstx__rank_rows_text(r->rows, MS_STR_NONE);
    return ok ? MS_OK : ms_no_memory(err);
}

/* Adds a number as a column of type NUMERIC keeps it: whole ones are integers. */
static bool add_numeric(struct mstx__rank_rows *rows, double v)
{
    const double far = 1e15; /* beyond, a real has no place for a fraction */
    if (v > -far && v < far && v == (double)(int64_t)v)
        return mstx__rank_rows_number(rows, (int64_t)v);
    return mstx__rank_rows_real(rows, v);
}

/* Reads the rank, the step and the first parts of each step in microseconds, as many as the query has
 * columns for. */
static enum ms_rc read_step_parts(const struct comm_reader *r, unsigned worker, int64_t rank,
                                  const struct mstx_rank_query *q, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(mstx__run_rank_steps(r->run, worker, rank, &st, err));
    r->rows->columns = mstx__rank_query_columns(q);
    ms_assert(r->rows->columns <= MSTX_STEP_COLUMNS + 1);
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        bool ok = mstx__rank_rows_number(r->rows, rank) &&
                  mstx__rank_rows_number(r->rows, ms_stmt_get_i64(st, 0));
        for (int i = 1; i < r->rows->columns - 1 && ok; i++)
            ok = add_numeric(r->rows, (double)ms_stmt_get_i64(st, i) / 1000);
        if (!ok)
            rc = ms_no_memory(err);
    }
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc read_host(const struct comm_reader *r, int64_t rank, struct ms_err *err)
{
    const struct mstx_run_rank *k = mstx__run_rank(r->run, rank);
    r->rows->columns = 5;
    if (k == NULL)
        return MS_OK;
    char uid[MSTX_HOST_UID];
    const bool ok = mstx__rank_rows_number(r->rows, rank) &&
                    mstx__rank_rows_number(r->rows, rank) &&
                    mstx__rank_rows_number(r->rows, k->device) &&
                    mstx__rank_rows_text(r->rows, mstx__ascend_host_uid(k->host, uid)) &&
                    mstx__rank_rows_text(r->rows, k->host);
    return ok ? MS_OK : ms_no_memory(err);
}

/* Reads the communicators of which this rank is the first one. */
static enum ms_rc read_groups(const struct comm_reader *r, int64_t rank, struct ms_err *err)
{
    const struct mstx_run_group *g = r->run->known.p;
    size_t low = 0, high = r->run->known.n;
    r->rows->columns = 6;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (g[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < r->run->known.n && g[low].rank == rank; low++) {
        const struct ms_str name = ms_str_of(g[low].name);
        if (!mstx__rank_rows_number(r->rows, rank) ||
            !mstx__rank_rows_text(r->rows, ms_str_of(g[low].hash)) ||
            !mstx__rank_rows_text(r->rows, name) || !mstx__rank_rows_text(r->rows, name) ||
            !mstx__rank_rows_text(r->rows, ms_str_of(g[low].ranks)) ||
            !mstx__rank_rows_text(r->rows, ms_str_of(g[low].list)))
            return ms_no_memory(err);
    }
    return MS_OK;
}

/* ---- all of these ---------------------------------------------------------------------------- */

static enum ms_rc read_kind(struct comm_reader *r, unsigned worker, int64_t rank,
                            const struct mstx_rank_query *q, struct ms_err *err)
{
    struct mstx_tl *tl = r->run->open[worker];
    switch (q->direct) {
    case MSTX_READ_COMM:
        return read_comm(r, tl, rank, err);
    case MSTX_READ_COMM_GROUPS:
        return read_comm_groups(r, tl, rank, err);
    case MSTX_READ_RANGES:
        return read_ranges(tl, rank, r->rows, err);
    case MSTX_READ_STEPS:
        return read_step_rows(r, tl, rank, err);
    case MSTX_READ_STEP_TIMES:
        return read_step_times(r, tl, rank, err);
    case MSTX_READ_STEP_PARTS:
        return read_step_parts(r, worker, rank, q, err);
    case MSTX_READ_HOST:
        return read_host(r, rank, err);
    default:
        return read_groups(r, rank, err);
    }
}

/* Tells whether rows need the times of a device, or operations of a run without any. */
static bool needs_database(const struct mstx_run_ranks *run, enum mstx_read what, int64_t rank)
{
    const struct mstx_run_rank *k = mstx__run_rank(run, rank);
    if (what != MSTX_READ_COMM && what != MSTX_READ_COMM_GROUPS && what != MSTX_READ_RANGES)
        return false;
    return (k != NULL && (k->has_streams || k->is_profiled)) ||
           (what != MSTX_READ_RANGES && !run->has_calls);
}

enum ms_rc mstx__run_rank_read(void *ctx, unsigned worker, int64_t rank,
                               const struct mstx_rank_query *q, struct mstx__rank_rows *rows,
                               bool *done, struct ms_err *err)
{
    struct mstx_run_ranks *run = ctx;
    struct comm_reader r = {.run = run, .rows = rows, .by_step = q->steps};
    ms_assert(worker < run->workers && q->direct != MSTX_READ_DB);
    *done = !needs_database(run, q->direct, rank);
    enum ms_rc rc = *done ? read_kind(&r, worker, rank, q, err) : MS_OK;
    ms_vec_free(&r.steps);
    ms_vec_free(&r.group_at);
    ms_vec_free(&r.last_op);
    return rc == MS_OK ? ms_buf_check(&rows->text, err) : rc;
}

void mstx__run_ranks_lend(struct mstx_run_ranks *run, struct mstx_recipe *r)
{
    r->open_rank = mstx__run_rank_open;
    r->read_rank = mstx__run_rank_read;
    r->has_table = mstx__run_has_table;
    r->open_ctx = run;
}
