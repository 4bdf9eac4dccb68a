/* SPDX-License-Identifier: MIT
 *
 * recipe_read: communication operations of all ranks, out of what there is below a directory.
 */
#include "mstx/recipe.h"

#include "mstx/timeline.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <string.h>

enum { DEPTH_MAX = 8 };

struct reading {
    struct ms_store *s;
    struct ms_stmt *add, *problem;
    struct mstx_recipe_input *in;
};

/* ---- rows ------------------------------------------------------------------------ */

/* Columns: rank, group, name, start, end. */
static enum ms_rc take_rows(struct reading *r, struct ms_store *from, const char *sql, int64_t rank,
                            struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(from, &st, sql, err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    while (rc == MS_OK && more) {
        ms_stmt_i64(r->add, 1, rank >= 0 ? rank : ms_stmt_get_i64(st, 0));
        ms_stmt_str(r->add, 2, ms_stmt_get_str(st, 1));
        ms_stmt_str(r->add, 3, ms_stmt_get_str(st, 2));
        ms_stmt_i64(r->add, 4, ms_stmt_get_i64(st, 3));
        ms_stmt_i64(r->add, 5, ms_stmt_get_i64(st, 4));
        rc = ms_stmt_run(r->add, err);
        r->in->ops++;
        if (rc == MS_OK)
            rc = ms_stmt_step(st, &more, err);
    }
    ms_stmt_free(st);
    return rc;
}

/* ---- Ascend ---------------------------------------------------------------------- */

/* The rank in "ascend_pytorch_profiler_7.db"; -1: it is another file. */
static int64_t rank_of_name(struct ms_str name)
{
    const struct ms_str head = MS_STR("ascend_pytorch_profiler_"), tail = MS_STR(".db");
    uint64_t rank;
    if (!ms_str_starts(name, head) || name.n <= head.n + tail.n || !ms_str_ends(name, tail))
        return -1;
    if (!ms_str_u64(ms_str_sub(name, head.n, name.n - tail.n), &rank) || rank > INT32_MAX)
        return -1;
    return (int64_t)rank;
}

static enum ms_rc read_profile(struct reading *r, const char *path, int64_t rank,
                               struct ms_err *err)
{
    static const char sql[] =
        "SELECT 0, coalesce(g.value, ''), coalesce(n.value, ''), o.startNs, o.endNs"
        " FROM COMMUNICATION_OP o LEFT JOIN STRING_IDS g ON g.id = o.groupName"
        " LEFT JOIN STRING_IDS n ON n.id = o.opName";
    struct ms_store *from;
    struct ms_err aside = {0};
    enum ms_rc rc = ms_store_open(&from, path, &aside);
    if (rc == MS_OK) {
        rc = take_rows(r, from, sql, rank, &aside);
        ms_store_close(from);
    }
    r->in->files++;
    if (rc == MS_OK)
        return MS_OK;
    if (rc == MS_E_NOMEM)
        return ms_no_memory(err);
    r->in->bad++;
    ms_stmt_str(r->problem, 1, ms_str_of(path));
    ms_stmt_str(r->problem, 2, ms_str_of(aside.msg));
    return ms_stmt_run(r->problem, err);
}

static enum ms_rc read_below(struct reading *r, const char *dir, int depth, struct ms_err *err)
{
    struct ms_dir list;
    MS_TRY(ms_dir_list(&list, dir, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < list.names.n && rc == MS_OK; i++) {
        const int64_t rank = rank_of_name(list.names.p[i]);
        char *path = ms_path_join(dir, list.names.p[i].p);
        if (path == NULL)
            rc = ms_no_memory(err);
        else if (rank >= 0)
            rc = read_profile(r, path, rank, err);
        else if (depth < DEPTH_MAX && ms_path_kind(path) == MS_KIND_DIR)
            rc = read_below(r, path, depth + 1, err);
        ms_free(path);
    }
    ms_dir_free(&list);
    return rc;
}

/* ---- ours ------------------------------------------------------------------------ */

/* Names as HCCL has them: operation, group, number.  Calls that only begin an operation last no
 * longer for those who wait, so they tell nothing. */
static enum ms_rc read_run(struct reading *r, const char *path, struct ms_err *err)
{
    static const char sql[] =
        "SELECT o.rank, coalesce(g.name, '') || ' ' || g.id,"
        " CASE o.class WHEN 1 THEN CASE o.op WHEN 'Recv' THEN 'hcom_receive_' ELSE 'hcom_send_' END"
        " ELSE 'hcom_' || lower(substr(o.op, 1, 1)) || substr(o.op, 2) || '_' END"
        " || '_' || printf('%03d', g.id % 1000) || '_' || o.seq || '_1', o.start_ns, o.end_ns"
        " FROM comm_ops o JOIN comm_groups g ON g.id = o.comm_group"
        " WHERE o.rank IS NOT NULL AND o.class IN (0, 1) AND o.flags & 2 = 0 ORDER BY o.id";
    struct mstx_tl *tl;
    MS_TRY(mstx_tl_open(&tl, path, err));
    enum ms_rc rc = take_rows(r, mstx_tl_store(tl), sql, -1, err);
    mstx_tl_close(tl);
    r->in->files++;
    return rc;
}

enum ms_rc mstx__recipe_read(struct ms_store *s, const char *path, struct mstx_recipe_input *in,
                             struct ms_err *err)
{
    struct reading r = {.s = s, .in = in};
    *in = (struct mstx_recipe_input){0};
    if (ms_path_kind(path) != MS_KIND_DIR)
        return ms_fail(err, MS_E_NOTFOUND, "%s: is no directory", path);
    MS_TRY(ms_store_exec(s,
                         "CREATE TABLE CommunicationOps(rank INTEGER, grp TEXT, name TEXT,"
                         " start INTEGER, end INTEGER);"
                         "CREATE TABLE ImportProblem(file TEXT, text TEXT);",
                         err));
    enum ms_rc rc =
        ms_store_prepare(s, &r.add, "INSERT INTO CommunicationOps VALUES(?,?,?,?,?)", err);
    if (rc == MS_OK)
        rc = ms_store_prepare(s, &r.problem, "INSERT INTO ImportProblem VALUES(?,?)", err);
    if (rc == MS_OK)
        rc = read_below(&r, path, 0, err);
    if (rc == MS_OK && in->files == 0)
        rc = read_run(&r, path, err);
    ms_stmt_free(r.add);
    ms_stmt_free(r.problem);
    return rc;
}

enum ms_rc mstx__recipe_read_end(struct ms_store *s, struct ms_err *err)
{
    return ms_store_exec(s, "DROP TABLE CommunicationOps", err);
}
