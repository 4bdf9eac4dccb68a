/* SPDX-License-Identifier: MIT
 *
 * run_as_ascend: writes a run as temporary databases of the profilers, for an analysis.
 *
 *     DIR/rank_7/ascend_pytorch_profiler_7.db     the database that export writes
 *                analysis.db                      the steps that import measured
 */
#include "mstx/official/run_as_ascend.h"

#include "mstx/foreign/ascend_tables.h"
#include "mstx/official/sql/run_as_ascend.h"

#include "mstx/conclude/run_ready.h"
#include "mstx/foreign/to_ascend.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { PATH_ROOM = 4096 };

typedef enum ms_rc (*row_fn)(void *ctx, struct ms_stmt *st, struct ms_err *err);

static enum ms_rc each_row(struct ms_store *s, const char *sql, int64_t rank, row_fn fn, void *ctx,
                           struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(s, &st, sql, err));
    ms_stmt_i64(st, 1, rank);
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err))
        rc = fn(ctx, st, err);
    ms_stmt_free(st);
    return rc;
}

/* ---- operations --------------------------------------------------------------------------- */

static enum ms_rc delete_op(void *ctx, struct ms_stmt *st, struct ms_err *err)
{
    struct ms_stmt *delete = ctx;
    ms_stmt_i64(delete, 1, ms_stmt_get_i64(st, 0));
    ms_stmt_i64(delete, 2, ms_stmt_get_i64(st, 1));
    return ms_stmt_run(delete, err);
}

/* Deletes calls that only start an operation: they return at once on every rank, so their durations
 * show no straggler. */
static enum ms_rc leave_out_beginnings(struct ms_store *run, const char *path, int64_t rank,
                                       struct ms_err *err)
{
    struct ms_store *s;
    struct ms_stmt *delete = NULL;
    bool has;
    MS_TRY(ms_store_edit(&s, path, err));
    enum ms_rc rc = mstx__has_table(s, "COMMUNICATION_OP", &has, err);
    if (rc == MS_OK && has)
        rc = ms_store_exec(s, "BEGIN; CREATE INDEX ByStart ON COMMUNICATION_OP(startNs)", err);
    if (rc == MS_OK && has)
        rc = ms_store_prepare(s, &delete, sql_delete_op, err);
    if (rc == MS_OK && has)
        rc = each_row(run, sql_find_beginnings, rank, delete_op, delete, err);
    ms_stmt_free(delete);
    if (rc == MS_OK && has)
        rc = ms_store_exec(s, "COMMIT", err);
    ms_store_close(s);
    return rc;
}

/* ---- steps -------------------------------------------------------------------------------- */

static enum ms_rc add_step(void *ctx, struct ms_stmt *st, struct ms_err *err)
{
    struct ms_stmt *add = ctx;
    ms_stmt_i64(add, 1, ms_stmt_get_i64(st, 0));
    for (int i = 1; i < 10; i++)
        ms_stmt_f64(add, i + 1, (double)ms_stmt_get_i64(st, i) / 1000);
    return ms_stmt_run(add, err);
}

static enum ms_rc write_steps(struct ms_store *run, struct ms_store *s, int64_t rank,
                              struct ms_err *err)
{
    struct ms_stmt *add;
    MS_TRY(ms_store_exec(s, sql_make_steps, err));
    MS_TRY(ms_store_prepare(s, &add, sql_add_step, err));
    enum ms_rc rc = each_row(run, sql_find_steps, rank, add_step, add, err);
    ms_stmt_free(add);
    return rc;
}

static enum ms_rc write_analysis(struct ms_store *run, const char *path, int64_t rank,
                                 struct ms_err *err)
{
    struct ms_store *s;
    bool has;
    MS_TRY(mstx__has_table(run, "rank_steps", &has, err));
    if (!has)
        return MS_OK;
    MS_TRY(ms_store_create(&s, path, err));
    enum ms_rc rc = write_steps(run, s, rank, err);
    if (rc == MS_OK)
        return ms_store_commit(s, err);
    ms_store_close(s);
    return rc;
}

/* ---- files -------------------------------------------------------------------------------- */

static enum ms_rc finish_rank(struct ms_store *run, const char *dir, int64_t rank,
                              struct ms_err *err)
{
    char from[PATH_ROOM], to[PATH_ROOM + 64];
    snprintf(from, sizeof from, "%s/ascend_pytorch_profiler_%" PRId64 ".db", dir, rank);
    if (ms_path_kind(from) != MS_KIND_FILE)
        return MS_OK;
    MS_TRY(leave_out_beginnings(run, from, rank, err));
    snprintf(to, sizeof to, "%s/rank_%" PRId64, dir, rank);
    MS_TRY(ms_mkdirs(to, err));
    snprintf(to, sizeof to, "%s/rank_%" PRId64 "/ascend_pytorch_profiler_%" PRId64 ".db", dir, rank,
             rank);
    if (rename(from, to) != 0)
        return ms_fail_sys(err, "%s", to);
    snprintf(to, sizeof to, "%s/rank_%" PRId64 "/analysis.db", dir, rank);
    return write_analysis(run, to, rank, err);
}

enum ms_rc mstx__write_run_as_ascend(const char *run, const char *dir, struct ms_err *err)
{
    struct mstx_tl *tl;
    if (strlen(dir) >= PATH_ROOM - 64)
        return ms_fail(err, MS_E_LIMIT, "%s: the path is too long", dir);
    MS_TRY(mstx_run_open(&tl, run, err));
    enum ms_rc rc = ms_mkdirs(dir, err);
    if (rc == MS_OK)
        rc = mstx_export_ascend_db(tl, dir, err);
    for (size_t i = 0; i < mstx_tl_process_count(tl) && rc == MS_OK; i++) {
        if (mstx_tl_process(tl, i)->rank >= 0)
            rc = finish_rank(mstx_tl_store(tl), dir, mstx_tl_process(tl, i)->rank, err);
    }
    mstx_tl_close(tl);
    return rc;
}
