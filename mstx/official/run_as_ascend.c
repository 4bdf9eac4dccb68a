/* SPDX-License-Identifier: MIT
 *
 * run_as_ascend: see the header.
 */
#include "mstx/official/run_as_ascend.h"

#include "mstx/foreign/ascend_tables.h"
#include "mstx/official/sql/run_as_ascend.h"

#include "mstx/foreign/export.h"
#include "mstx/foreign/to_ascend.h"
#include "mstx/foreign/to_ascend_tasks.h"
#include "mstx/official/comm_rows.h"
#include "mstx/official/rank_rows.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Where the steps of a rank lie in the table rank_steps, which has no index. */
struct rank_rows {
    int64_t rank, first, last;
};
struct mstx_run_ranks {
    char *path;
    struct mstx_tl **open; /* for each worker: SQLite serves one thread at a time */
    unsigned workers;
    bool has_steps, has_calls;
    bool is_profiled;               /* a rank comes from a trace of PyTorch's profiler */
    MS_VEC(struct rank_rows) steps; /* by rank */
    struct mstx_ascend_groups *groups;
};

/* ---- opening ---------------------------------------------------------------------------- */

static enum ms_rc find_step_rows(struct mstx_run_ranks *run, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(mstx_tl_store(run->open[0]), &st, sql_find_step_rows, err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        struct rank_rows *slot = ms_vec_push(&run->steps);
        if (slot != NULL)
            *slot = (struct rank_rows){ms_stmt_get_i64(st, 0), ms_stmt_get_i64(st, 1),
                                       ms_stmt_get_i64(st, 2)};
        else
            rc = ms_no_memory(err);
    }
    ms_stmt_free(st);
    return rc;
}

static int by_rank(const void *pa, const void *pb)
{
    const struct rank_rows *a = pa, *b = pb;
    return MS_ORDER(a->rank, b->rank, 0);
}

static enum ms_rc open_all(struct mstx_run_ranks *run, const char *db, struct ms_err *err)
{
    run->path = ms_str_dup(ms_str_of(db));
    if (run->path == NULL)
        return ms_no_memory(err);
    for (unsigned i = 0; i < run->workers; i++)
        MS_TRY(mstx_tl_open(&run->open[i], run->path, err));
    MS_TRY(mstx__has_table(mstx_tl_store(run->open[0]), "rank_steps", &run->has_steps, err));
    if (run->has_steps)
        MS_TRY(find_step_rows(run, err));
    for (size_t i = 0; i < mstx_tl_process_count(run->open[0]); i++)
        run->is_profiled |=
            mstx__rank_is_profiled(run->open[0], mstx_tl_process(run->open[0], i)->rank);
    MS_TRY(mstx__run_has_calls(run->open[0], &run->has_calls, err));
    return mstx__ascend_groups_read(&run->groups, run->open[0], err);
}

enum ms_rc mstx__run_ranks_open(struct mstx_run_ranks **out, const char *db, unsigned workers,
                                struct ms_err *err)
{
    ms_assert(workers != 0);
    *out = NULL;
    struct mstx_run_ranks *run = ms_calloc(1, sizeof *run);
    if (run == NULL)
        return ms_no_memory(err);
    run->open = ms_calloc(workers, sizeof(struct mstx_tl *));
    run->workers = workers;
    enum ms_rc rc = run->open != NULL ? open_all(run, db, err) : ms_no_memory(err);
    if (rc == MS_OK)
        *out = run;
    else
        mstx__run_ranks_close(run);
    return rc;
}

void mstx__run_ranks_close(struct mstx_run_ranks *run)
{
    if (run == NULL)
        return;
    for (unsigned i = 0; run->open != NULL && i < run->workers; i++)
        mstx_tl_close(run->open[i]);
    mstx__ascend_groups_free(run->groups);
    ms_vec_free(&run->steps);
    ms_free(run->open);
    ms_free(run->path);
    ms_free(run);
}

static int by_number(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Lists the ranks of all processes in order; a rank that started other processes comes again. */
static size_t list_ranks(const struct mstx_tl *tl, int32_t *rank)
{
    size_t n = 0;
    for (size_t i = 0; i < mstx_tl_process_count(tl); i++) {
        rank[n] = mstx_tl_process(tl, i)->rank;
        n += rank[n] >= 0;
    }
    qsort(rank, n, sizeof *rank, by_number);
    return n;
}

/* Adds a rank under a name that problems with it are told by. */
static enum ms_rc add_rank(const struct mstx_run_ranks *run, int32_t rank,
                           struct mstx_ascend_files *found, struct ms_err *err)
{
    struct ms_buf name = {.max = 1 << 16};
    ms_buf_printf(&name, "%s, rank %" PRId32, run->path, rank);
    enum ms_rc rc = ms_buf_check(&name, err);
    if (rc == MS_OK)
        rc = mstx__ascend_files_add(found, rank, ms_buf_z(&name),
                                    run->has_steps ? ms_buf_z(&name) : NULL, err);
    ms_buf_free(&name);
    return rc;
}

enum ms_rc mstx__run_ranks_list(const struct mstx_run_ranks *run, const char *only,
                                struct mstx_ascend_files *found, struct ms_err *err)
{
    int32_t *rank = ms_alloc((mstx_tl_process_count(run->open[0]) + 1) * sizeof *rank);
    if (rank == NULL)
        return ms_no_memory(err);
    const size_t n = list_ranks(run->open[0], rank);
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < n && rc == MS_OK; i++) {
        if (i == 0 || rank[i] != rank[i - 1])
            rc = add_rank(run, rank[i], found, err);
    }
    ms_free(rank);
    return rc == MS_OK ? mstx__ascend_files_choose(found, only, err) : rc;
}

/* ---- databases --------------------------------------------------------------------------- */

static enum ms_rc add_steps(struct ms_stmt *from, struct ms_stmt *add, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(from, &rc, err)) {
        ms_stmt_i64(add, 1, ms_stmt_get_i64(from, 0));
        for (int i = 1; i < 10; i++)
            ms_stmt_f64(add, i + 1, (double)ms_stmt_get_i64(from, i) / 1000);
        rc = ms_stmt_run(add, err);
    }
    return rc;
}

static enum ms_rc copy_steps(const struct mstx_run_ranks *run, unsigned worker, int64_t rank,
                             struct ms_store *s, struct ms_err *err)
{
    const struct rank_rows key = {.rank = rank}, none = {rank, 1, 0};
    const struct rank_rows *rows = NULL;
    struct ms_stmt *from, *add = NULL;
    if (run->steps.n != 0)
        rows = bsearch(&key, run->steps.p, run->steps.n, sizeof key, by_rank);
    if (rows == NULL)
        rows = &none;
    MS_TRY(ms_store_exec(s, sql_make_steps, err));
    MS_TRY(ms_store_prepare(mstx_tl_store(run->open[worker]), &from, sql_find_steps, err));
    ms_stmt_i64(from, 1, rank);
    ms_stmt_i64(from, 2, rows->first);
    ms_stmt_i64(from, 3, rows->last);
    enum ms_rc rc = ms_store_prepare(s, &add, sql_add_step, err);
    if (rc == MS_OK)
        rc = add_steps(from, add, err);
    ms_stmt_free(from);
    ms_stmt_free(add);
    return rc;
}

static enum ms_rc make_analysis(const struct mstx_run_ranks *run, unsigned worker, int64_t rank,
                                struct ms_store **out, struct ms_err *err)
{
    MS_TRY(ms_store_scratch(out, err));
    enum ms_rc rc = copy_steps(run, worker, rank, *out, err);
    if (rc == MS_OK)
        return MS_OK;
    ms_store_close(*out);
    *out = NULL;
    return rc;
}

enum ms_rc mstx__run_rank_open(void *ctx, unsigned worker, int64_t rank,
                               struct mstx_rank_parts parts, struct ms_store **out,
                               struct ms_err *err)
{
    struct mstx_run_ranks *run = ctx;
    ms_assert(worker < run->workers);
    if (parts.analysis)
        return make_analysis(run, worker, rank, out, err);
    const struct mstx_ascend_how how = {.rank = (int32_t)rank,
                                        .calls = parts.calls,
                                        .marks = parts.marks,
                                        .tasks = parts.tasks,
                                        .without_starts = true};
    return mstx__ascend_rank_db(out, run->open[worker], run->groups, &how, err);
}

/* ---- operations without a database ---------------------------------------------------------- */

bool mstx__run_has_table(const void *ctx, struct ms_str name)
{
    static const char *const all[] = {
        "META_DATA",           "STRING_IDS", "SESSION_TIME_INFO", "NPU_INFO",
        "RANK_DEVICE_MAP",     "HOST_INFO",  "MSTX_EVENTS",       "TASK",
        "ENUM_HCCL_DATA_TYPE", "STEP_TIME",  "StepTraceTime"};
    static const char *const profiled[] = {"CANN_API", "PYTORCH_API", "CONNECTION_IDS",
                                           "COMPUTE_TASK_INFO", "COMMUNICATION_OP"};
    const struct mstx_run_ranks *run = ctx;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (ms_str_is(name, all[i]))
            return true;
    }
    for (size_t i = 0; i < sizeof profiled / sizeof *profiled && run->is_profiled; i++) {
        if (ms_str_is(name, profiled[i]))
            return true;
    }
    return run->has_calls && ms_str_is(name, "COMMUNICATION_OP");
}

struct step {
    int64_t number, start, end;
};
struct comm_reader {
    const struct mstx_run_ranks *run;
    struct mstx__rank_rows *rows;
    bool by_step;
    MS_VEC(struct step) steps;
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
                                  ms_stmt_get_i64(st, 2)};
        else
            rc = ms_no_memory(err);
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
static bool add_dtype(struct mstx__rank_rows *rows, unsigned dtype)
{
    char name[16] = "N/A";
    if (dtype <= MSTX_TYPE_FP8E8M0 && dtype != MSTX_TYPE_INT128 + 1)
        snprintf(name, sizeof name, "%s", mstx_comm_type_text(dtype));
    for (char *c = name; *c != '\0'; c++)
        *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    return mstx__rank_rows_text(rows, ms_str_of(name));
}

/* Adds a row, whose step is NULL where `step` is. */
static bool add_call(const struct comm_reader *r, const struct mstx_ascend_call *k,
                     const struct mstx_ascend_names *names, const struct step *step)
{
    const int64_t item = item_bytes(k->rec.dtype);
    return mstx__rank_rows_text(r->rows, r->run->groups->list.p[k->group].name) &&
           mstx__rank_rows_text(r->rows, ms_str_of(names->name)) &&
           mstx__rank_rows_text(r->rows, ms_str_of(names->type)) &&
           mstx__rank_rows_number(r->rows, k->start) &&
           mstx__rank_rows_number(r->rows, k->end - k->start) && add_dtype(r->rows, k->rec.dtype) &&
           (item != 0 ? mstx__rank_rows_number(r->rows, item * (int64_t)k->rec.count)
                      : mstx__rank_rows_text(r->rows, MS_STR_NONE)) &&
           (step != NULL ? mstx__rank_rows_number(r->rows, step->number)
                         : mstx__rank_rows_text(r->rows, MS_STR_NONE));
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

static enum ms_rc keep_call(void *ctx, const struct mstx_ascend_call *k,
                            const struct mstx_ascend_names *names, struct ms_err *err)
{
    const struct comm_reader *r = ctx;
    const size_t end = r->by_step ? step_after(r, k->start) : 0;
    bool any = false, ok = true;
    for (size_t i = 0; i < end && ok; i++) {
        if (r->steps.p[i].end < k->start)
            continue;
        any = true;
        ok = add_call(r, k, names, &r->steps.p[i]);
    }
    if (ok && !any)
        ok = add_call(r, k, names, NULL);
    return ok ? MS_OK : ms_no_memory(err);
}

static enum ms_rc read_comm(struct comm_reader *r, struct mstx_tl *tl, int64_t rank,
                            struct ms_err *err)
{
    r->rows->columns = MSTX_COMM_COLUMNS;
    if (r->by_step)
        MS_TRY(read_steps(r, tl, rank, err));
    return mstx__ascend_each_call(tl, r->run->groups, (int32_t)rank, keep_call, r, err);
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

enum ms_rc mstx__run_rank_read(void *ctx, unsigned worker, int64_t rank,
                               const struct mstx_rank_query *q, struct mstx__rank_rows *rows,
                               bool *done, struct ms_err *err)
{
    struct mstx_run_ranks *run = ctx;
    struct comm_reader r = {.run = run, .rows = rows, .by_step = q->steps};
    ms_assert(worker < run->workers);
    struct mstx_tl *tl = run->open[worker];
    enum ms_rc rc = MS_OK;
    *done = (run->has_calls || q->direct != MSTX_READ_COMM) &&
            (q->direct == MSTX_READ_STEPS || (!mstx__rank_has_streams(tl, (int32_t)rank) &&
                                              !mstx__rank_is_profiled(tl, (int32_t)rank)));
    if (*done && q->direct == MSTX_READ_COMM)
        rc = read_comm(&r, tl, rank, err);
    else if (*done && q->direct == MSTX_READ_RANGES)
        rc = read_ranges(tl, rank, rows, err);
    else if (*done)
        rc = read_step_rows(&r, tl, rank, err);
    ms_vec_free(&r.steps);
    return rc == MS_OK ? ms_buf_check(&rows->text, err) : rc;
}
