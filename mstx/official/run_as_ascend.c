/* SPDX-License-Identifier: MIT
 *
 * run_as_ascend: see the header.
 */
#include "mstx/official/run_as_ascend_int.h"

#include "mstx/foreign/ascend_tables.h"
#include "mstx/official/sql/run_as_ascend.h"

#include "mstx/foreign/to_ascend.h"
#include "mstx/foreign/to_ascend_tasks.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- opening ---------------------------------------------------------------------------- */

static int by_rank(const void *pa, const void *pb)
{
    const struct mstx_run_rank *a = pa, *b = pb;
    return MS_ORDER(a->rank, b->rank, 0);
}

static struct mstx_run_rank *find_rank(const struct mstx_run_ranks *run, int64_t rank)
{
    const struct mstx_run_rank key = {.rank = (int32_t)rank};
    if (rank != key.rank || run->ranks.n == 0)
        return NULL;
    return bsearch(&key, run->ranks.p, run->ranks.n, sizeof key, by_rank);
}

const struct mstx_run_rank *mstx__run_rank(const struct mstx_run_ranks *run, int64_t rank)
{
    return find_rank(run, rank);
}

static int by_process(const void *pa, const void *pb)
{
    const struct mstx_run_rank *a = pa, *b = pb;
    return MS_ORDER(a->rank, b->rank, MS_ORDER(a->process, b->process, 0));
}

/* Keeps the first process of each rank; a rank that started other processes comes again. */
static void drop_repeated(struct mstx_run_ranks *run)
{
    size_t n = 0;
    for (size_t i = 0; i < run->ranks.n; i++) {
        if (n == 0 || run->ranks.p[n - 1].rank != run->ranks.p[i].rank)
            run->ranks.p[n++] = run->ranks.p[i];
        else
            run->ranks.p[n - 1].is_profiled &= run->ranks.p[i].is_profiled;
    }
    run->ranks.n = n;
}

static enum ms_rc find_ranks(struct mstx_run_ranks *run, struct ms_err *err)
{
    const struct mstx_tl *tl = run->open[0];
    for (size_t i = 0; i < mstx_tl_process_count(tl); i++) {
        const struct mstx_process *p = mstx_tl_process(tl, i);
        struct mstx_run_rank *slot = p->rank >= 0 ? ms_vec_push(&run->ranks) : NULL;
        if (slot != NULL)
            *slot = (struct mstx_run_rank){.rank = p->rank,
                                           .process = (uint32_t)i,
                                           .is_profiled = mstx__process_is_profiled(p),
                                           .host = p->host,
                                           .first_step = 1};
        else if (p->rank >= 0)
            return ms_no_memory(err);
    }
    ms_vec_sort(&run->ranks, by_process);
    drop_repeated(run);
    for (size_t i = 0; i < run->ranks.n; i++)
        run->is_profiled |= run->ranks.p[i].is_profiled;
    for (size_t i = 0; i < mstx_tl_track_count(tl); i++) {
        const struct mstx_track *t = mstx_tl_track(tl, i);
        struct mstx_run_rank *r = t->kind == MSTX_TRACK_STREAM
                                      ? find_rank(run, mstx_tl_process(tl, t->process)->rank)
                                      : NULL;
        if (r == NULL || r->has_streams)
            continue;
        r->has_streams = true;
        r->device = t->device;
    }
    return MS_OK;
}

/* Finds the rows of each rank, so that those of one are found without a search.  Of a folded database the
 * rank alone finds them. */
static enum ms_rc find_step_rows(struct mstx_run_ranks *run, bool is_folded, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(mstx_tl_store(run->open[0]), &st, sql_find_step_rows, err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        struct mstx_run_rank *r = find_rank(run, ms_stmt_get_i64(st, 0));
        if (r == NULL)
            continue;
        r->first_step = is_folded ? 0 : ms_stmt_get_i64(st, 1);
        r->last_step = is_folded ? INT64_MAX : ms_stmt_get_i64(st, 2);
    }
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc open_all(struct mstx_run_ranks *run, const char *db, struct ms_err *err)
{
    run->path = ms_str_dup(ms_str_of(db));
    if (run->path == NULL)
        return ms_no_memory(err);
    for (unsigned i = 0; i < run->workers; i++)
        MS_TRY(mstx_tl_open(&run->open[i], run->path, err));
    MS_TRY(find_ranks(run, err));
    bool is_folded;
    struct ms_store *s = mstx_tl_store(run->open[0]);
    MS_TRY(mstx__has_table(s, "rank_steps", &run->has_steps, err));
    MS_TRY(mstx__has_table(s, "packed_rank_steps", &is_folded, err));
    run->has_steps |= is_folded;
    if (run->has_steps)
        MS_TRY(find_step_rows(run, is_folded, err));
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
    ms_vec_free(&run->ranks);
    ms_vec_free(&run->known);
    ms_arena_free(run->arena);
    ms_free(run->open);
    ms_free(run->path);
    ms_free(run);
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

/* ---- communicators ---------------------------------------------------------------------- */

/* Returns the first of the chosen ranks in a list as "4,0", or -1. */
static int64_t first_chosen(const struct mstx_ascend_files *chosen, struct ms_str list)
{
    int64_t first = -1;
    struct ms_str part;
    uint64_t rank;
    while (ms_str_split(&list, ',', &part)) {
        if (!ms_str_u64(part, &rank) || rank > INT32_MAX || (first >= 0 && (int64_t)rank >= first))
            continue;
        if (mstx__ascend_files_has(chosen, (int64_t)rank))
            first = (int64_t)rank;
    }
    return first;
}

static enum ms_rc keep_group(struct mstx_run_ranks *run, struct ms_stmt *st, int64_t rank,
                             struct ms_err *err)
{
    struct mstx_run_group *slot = ms_vec_push(&run->known);
    if (slot == NULL)
        return ms_no_memory(err);
    const char **text[] = {&slot->hash, &slot->name, &slot->ranks, &slot->list};
    slot->rank = rank;
    for (int i = 0; i < 4; i++) {
        *text[i] = ms_arena_str(run->arena, ms_stmt_get_str(st, i)).p;
        if (*text[i] == NULL)
            return ms_no_memory(err);
    }
    return MS_OK;
}

static int by_first_rank(const void *pa, const void *pb)
{
    const struct mstx_run_group *a = pa, *b = pb;
    return MS_ORDER(a->rank, b->rank, 0);
}

/* Lists the communicators once for all ranks, since the lists of all ranks together have as many entries as
 * there are pairs of ranks. */
static enum ms_rc find_groups(struct mstx_run_ranks *run, const struct mstx_ascend_files *chosen,
                              struct ms_err *err)
{
    struct ms_store *s = mstx_tl_store(run->open[0]);
    struct ms_stmt *st;
    run->arena = ms_arena_new((size_t)1 << 34);
    if (run->arena == NULL)
        return ms_no_memory(err);
    MS_TRY(mstx__ascend_functions(s, err));
    MS_TRY(ms_store_prepare(s, &st, sql_find_groups, err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        const int64_t first = first_chosen(chosen, ms_stmt_get_str(st, 4));
        if (first >= 0)
            rc = keep_group(run, st, first, err);
    }
    ms_stmt_free(st);
    ms_vec_sort(&run->known, by_first_rank);
    return rc;
}

enum ms_rc mstx__run_ranks_list(struct mstx_run_ranks *run, const char *only,
                                struct mstx_ascend_files *found, struct ms_err *err)
{
    for (size_t i = 0; i < run->ranks.n; i++)
        MS_TRY(add_rank(run, run->ranks.p[i].rank, found, err));
    MS_TRY(mstx__ascend_files_choose(found, only, err));
    return find_groups(run, found, err);
}

/* ---- databases --------------------------------------------------------------------------- */

static enum ms_rc add_steps(struct ms_stmt *from, struct ms_stmt *add, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(from, &rc, err)) {
        ms_stmt_i64(add, 1, ms_stmt_get_i64(from, 0));
        for (int i = 1; i < MSTX_STEP_COLUMNS; i++)
            ms_stmt_f64(add, i + 1, (double)ms_stmt_get_i64(from, i) / 1000);
        rc = ms_stmt_run(add, err);
    }
    return rc;
}

enum ms_rc mstx__run_rank_steps(const struct mstx_run_ranks *run, unsigned worker, int64_t rank,
                                struct ms_stmt **st, struct ms_err *err)
{
    const struct mstx_run_rank *r = mstx__run_rank(run, rank);
    MS_TRY(ms_store_prepare(mstx_tl_store(run->open[worker]), st, sql_find_steps, err));
    ms_stmt_i64(*st, 1, rank);
    ms_stmt_i64(*st, 2, r != NULL ? r->first_step : 1);
    ms_stmt_i64(*st, 3, r != NULL ? r->last_step : 0);
    return MS_OK;
}

static enum ms_rc copy_steps(const struct mstx_run_ranks *run, unsigned worker, int64_t rank,
                             struct ms_store *s, struct ms_err *err)
{
    struct ms_stmt *from, *add = NULL;
    MS_TRY(ms_store_exec(s, sql_make_steps, err));
    MS_TRY(mstx__run_rank_steps(run, worker, rank, &from, err));
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
