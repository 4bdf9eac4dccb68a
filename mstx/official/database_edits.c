/* SPDX-License-Identifier: MIT
 *
 * database_edits: the three recipes that write their result into the profilers' databases, where
 * viewers read it: communication operations made of marks (in copies), pairs of a send and its
 * receive, passes of a pipeline.
 *
 * When a profiler records only marks, the texts of these describe communication:
 *
 *     {"opName": "HcclAllReduce", "groupName": "group_name_43", "dataType": "fp32", "count": "8",
 *      "streamId": "5"}                  quotes may be escaped
 *     comm:HcclAllreduce,group_name_43,fp32,8
 *
 * The task of the mark's connection has the times; a mark without a connection takes the next task
 * of its stream.  In the official tool each mark takes every task of its stream as well.
 */
#include "mstx/official/database_edits.h"

#include "mstx/foreign/ascend_tables.h"

#include "mstx/official/sql/database_edits.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"

#include <stdio.h>

/* ---- communication operations out of marks ------------------------------------------------- */

static enum ms_rc count_marks(struct ms_store *s, int64_t *n, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(s, &st, sql_count_comm_marks, err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    *n = rc == MS_OK ? ms_stmt_get_i64(st, 0) : 0;
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc add_comm_ops(struct ms_store *s, bool strict, int64_t from, int64_t to,
                               struct ms_err *err)
{
    const int64_t span[] = {from, to};
    bool has;
    int64_t n;
    MS_TRY(mstx__has_table(s, "COMMUNICATION_OP", &has, err));
    if (has)
        return MS_OK;
    MS_TRY(ms_store_exec_i64(s, sql_read_comm_marks, span, 2, err));
    MS_TRY(count_marks(s, &n, err));
    if (n == 0)
        return ms_store_exec(s, sql_drop_comm_marks, err);
    MS_TRY(
        ms_store_exec(s, strict ? sql_join_by_connection_or_stream : sql_join_by_connection, err));
    return ms_store_exec(s, sql_write_comm_ops, err);
}

/* ---- copies with these operations --------------------------------------------------------- */

/* Returns the path of a copy, at the same relative path below the output as the original below the
 * input. */
static char *copy_path(const struct mstx_recipe *r, const char *path)
{
    struct ms_str below = ms_str_of(path);
    const struct ms_str top = ms_str_of(r->path);
    if (ms_str_starts(below, top))
        below = ms_str_sub(below, top.n, below.n);
    while (below.n != 0 && below.p[0] == '/')
        below = ms_str_sub(below, 1, below.n);
    struct ms_buf b = {.max = 1 << 16};
    ms_buf_printf(&b, "%s/mstx2commop/%.*s", r->out, MS_STR_ARG(below));
    char *copy = b.bad == MS_OK ? ms_str_dup(ms_buf_slice(&b)) : NULL;
    ms_buf_free(&b);
    return copy;
}

static enum ms_rc add_to_copy(struct mstx_recipe *r, const char *path, const char *copy,
                              struct ms_err *err)
{
    struct ms_store *s;
    MS_TRY(ms_store_renew(&s, copy, path, err));
    enum ms_rc rc = mstx__ascend_tables(s, err);
    if (rc == MS_OK)
        rc = add_comm_ops(s, r->strict, 0, INT64_MAX, err);
    if (rc == MS_OK)
        return ms_store_commit(s, err);
    ms_store_close(s);
    return rc;
}

static enum ms_rc copy_with_comm_ops(struct mstx_recipe *r, const struct mstx_rank_files *f,
                                     struct ms_err *err)
{
    struct ms_store *s;
    bool has, marks = false;
    MS_TRY(ms_store_open(&s, f->profiler, err));
    enum ms_rc rc = mstx__has_table(s, "COMMUNICATION_OP", &has, err);
    if (rc == MS_OK && !has)
        rc = mstx__has_table(s, "MSTX_EVENTS", &marks, err);
    ms_store_close(s);
    if (rc != MS_OK || has)
        return rc;
    if (!marks)
        return ms_fail(err, MS_E_FORMAT, "has no table MSTX_EVENTS");
    char *copy = copy_path(r, f->profiler);
    rc = copy != NULL ? add_to_copy(r, f->profiler, copy, err) : ms_no_memory(err);
    ms_free(copy);
    return rc;
}

enum ms_rc mstx__write_comm_ops(struct mstx_recipe *r, struct ms_err *err)
{
    return mstx__recipe_each_rank(r, copy_with_comm_ops, err);
}

/* ---- sends and receives ------------------------------------------------------------------- */

static enum ms_rc has_column(struct ms_store *s, bool *has, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(s, &st, sql_find_pair_column, err));
    enum ms_rc rc = ms_stmt_step(st, has, err);
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc write_pairs(struct ms_store *s, struct ms_err *err)
{
    bool has;
    MS_TRY(ms_store_exec(s, sql_find_pairs, err));
    MS_TRY(has_column(s, &has, err));
    if (!has)
        MS_TRY(ms_store_exec(s, sql_add_pair_column, err));
    return ms_store_exec(s, sql_write_pairs, err);
}

typedef enum ms_rc (*edit_fn)(struct mstx_recipe *r, struct ms_store *s, struct ms_err *err);

/* Edits a database in one transaction. */
static enum ms_rc edit_database(struct mstx_recipe *r, const struct mstx_rank_files *f, edit_fn fn,
                                struct ms_err *err)
{
    struct ms_store *s;
    MS_TRY(ms_store_edit(&s, f->profiler, err));
    enum ms_rc rc = mstx__ascend_tables(s, err);
    if (rc == MS_OK)
        rc = ms_store_exec(s, "BEGIN IMMEDIATE", err);
    if (rc == MS_OK)
        rc = fn(r, s, err);
    if (rc == MS_OK)
        rc = ms_store_exec(s, "COMMIT", err);
    ms_store_close(s);
    return rc;
}

static enum ms_rc can_pair(struct ms_store *s, bool *can, struct ms_err *err)
{
    MS_TRY(mstx__has_table(s, "COMMUNICATION_OP", can, err));
    return *can ? mstx__has_table(s, "COMMUNICATION_TASK_INFO", can, err) : MS_OK;
}

static enum ms_rc pair_all(struct mstx_recipe *r, struct ms_store *s, struct ms_err *err)
{
    bool can;
    (void)r;
    MS_TRY(can_pair(s, &can, err));
    if (!can)
        return ms_fail(err, MS_E_FORMAT,
                       "has no tables COMMUNICATION_OP and "
                       "COMMUNICATION_TASK_INFO; record at level 1 or above");
    return write_pairs(s, err);
}

static enum ms_rc pair_rank(struct mstx_recipe *r, const struct mstx_rank_files *f,
                            struct ms_err *err)
{
    return edit_database(r, f, pair_all, err);
}

enum ms_rc mstx__write_p2p_pairs(struct mstx_recipe *r, struct ms_err *err)
{
    return mstx__recipe_each_rank(r, pair_rank, err);
}

/* ---- passes of a pipeline ---------------------------------------------------------------------- */

static enum ms_rc write_rank_passes(struct mstx_recipe *r, struct ms_store *s, struct ms_err *err)
{
    bool can;
    MS_TRY(add_comm_ops(s, r->strict, 0, INT64_MAX, err));
    MS_TRY(can_pair(s, &can, err));
    if (can)
        MS_TRY(write_pairs(s, err));
    return ms_store_exec(s, sql_write_passes, err);
}

static enum ms_rc chart_rank(struct mstx_recipe *r, const struct mstx_rank_files *f,
                             struct ms_err *err)
{
    return edit_database(r, f, write_rank_passes, err);
}

enum ms_rc mstx__write_passes(struct mstx_recipe *r, struct ms_err *err)
{
    return mstx__recipe_each_rank(r, chart_rank, err);
}
