/* SPDX-License-Identifier: MIT
 *
 * fold_write: see the header.
 */
#include "mstx/rundb/fold_write.h"

#include "mstx/rundb/fold_write_int.h"
#include "mstx/rundb/run_schema.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdio.h>

static const size_t BUFFER_MAX = (size_t)1 << 26;

/* ---- small tables ---------------------------------------------------------------------- */

static enum ms_rc attach(struct ms_store *s, const char *db, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(s, &st, "ATTACH ? AS plain", err));
    ms_stmt_str(st, 1, ms_str_of(db));
    enum ms_rc rc = ms_stmt_run(st, err);
    ms_stmt_free(st);
    return rc;
}

/* Makes all tables and copies the rows of those that are not folded. */
static enum ms_rc copy_tables(struct ms_store *s, struct ms_err *err)
{
    static const char all[] =
        "SELECT name, sql, name IN ('blobs', 'chunks', 'levels', 'packed_calls',"
        " 'packed_joins', 'packed_spans') FROM plain.sqlite_master WHERE type = 'table' AND"
        " name NOT IN ('names', 'steps', 'rank_steps') ORDER BY rowid";
    static const char folded[] =
        "CREATE TABLE fold_parts(id INTEGER PRIMARY KEY, data BLOB);"
        "CREATE TABLE packed_names(id INTEGER PRIMARY KEY, rows INTEGER, data BLOB);"
        "CREATE TABLE packed_steps(id INTEGER PRIMARY KEY, rows INTEGER, data BLOB);"
        "CREATE TABLE packed_rank_steps(id INTEGER PRIMARY KEY, rows INTEGER, data BLOB);";
    struct ms_stmt *st;
    struct ms_buf sql = {.max = BUFFER_MAX};
    enum ms_rc rc = MS_OK;
    MS_TRY(ms_store_prepare(s, &st, all, err));
    while (ms_stmt_next(st, &rc, err)) {
        const struct ms_str name = ms_stmt_get_str(st, 0), made = ms_stmt_get_str(st, 1);
        ms_buf_printf(&sql, "%.*s;", MS_STR_ARG(made));
        if (ms_stmt_get_i64(st, 2) == 0)
            ms_buf_printf(&sql, "INSERT INTO main.\"%.*s\" SELECT * FROM plain.\"%.*s\";",
                          MS_STR_ARG(name), MS_STR_ARG(name));
    }
    ms_stmt_free(st);
    ms_buf_puts(&sql, folded);
    ms_buf_z(&sql);
    if (rc == MS_OK)
        rc = ms_buf_check(&sql, err);
    if (rc == MS_OK)
        rc = ms_store_exec(s, sql.p, err);
    ms_buf_free(&sql);
    return rc;
}

static enum ms_rc note_version(struct ms_store *s, int64_t bound_ns, struct ms_err *err)
{
    char sql[256];
    snprintf(sql, sizeof sql,
             "INSERT OR REPLACE INTO main.meta VALUES('version', '" MSTX_DB_FOLDED "');"
             "INSERT OR REPLACE INTO main.meta VALUES('times', '%" PRId64 "')",
             bound_ns);
    return ms_store_exec(s, sql, err);
}

/* ---- the whole ---------------------------------------------------------------------------- */

static enum ms_rc prepare(struct mstx_folder *f, struct ms_err *err)
{
    MS_TRY(mstx__put_new(&f->put, f->to, err));
    MS_TRY(mstx__fold_new(&f->read, f->to, err));
    MS_TRY(ms_store_prepare(f->to, &f->add_chunk, "INSERT INTO main.chunks VALUES(?,?,?,?)", err));
    MS_TRY(ms_store_prepare(f->to, &f->add_blob, "INSERT INTO main.blobs VALUES(?,?)", err));
    return ms_store_prepare(f->to, &f->add_level, "INSERT INTO main.levels VALUES(?,?,?,?,?)", err);
}

/* Tracks lie together by process. */
static enum ms_rc fold_processes(struct mstx_folder *f, struct ms_err *err)
{
    const size_t processes = mstx_tl_process_count(f->from), tracks = mstx_tl_track_count(f->from);
    for (size_t p = 0; p < processes; p++) {
        MS_TRY(mstx__fold_take_calls(f, p, err));
        for (size_t t = 0; t < tracks; t++) {
            if (mstx_tl_track(f->from, t)->process == p)
                MS_TRY(mstx__fold_track(f, t, err));
        }
        f->quantum = mstx__fold_quantum(f);
        MS_TRY(mstx__fold_calls(f, p, err));
    }
    f->quantum = mstx__fold_quantum(f);
    MS_TRY(mstx__fold_joins(f, err));
    MS_TRY(mstx__fold_spans(f, err));
    return mstx__fold_figures(f, err);
}

static void free_folder(struct mstx_folder *f)
{
    ms_stmt_free(f->add_chunk);
    ms_stmt_free(f->add_blob);
    ms_stmt_free(f->add_level);
    mstx__put_free(f->put);
    mstx__fold_free(f->read);
    mstx__fold_calls_end(f);
    ms_free(f->room);
    ms_buf_free(&f->blob);
    ms_buf_free(&f->code);
    ms_vec_free(&f->call);
    ms_vec_free(&f->leader);
}

static enum ms_rc fold_into(struct mstx_folder *f, const char *db, int64_t bound_ns,
                            struct ms_err *err)
{
    MS_TRY(attach(f->to, db, err));
    MS_TRY(copy_tables(f->to, err));
    MS_TRY(note_version(f->to, bound_ns, err));
    MS_TRY(prepare(f, err));
    return fold_processes(f, err);
}

enum ms_rc mstx__fold_database(const char *db, const char *to, int64_t bound_ns, struct ms_err *err)
{
    ms_assert(bound_ns >= 0 && bound_ns <= MSTX_FOLD_BOUND_MAX);
    struct mstx_folder f = {
        .bound = bound_ns, .blob = {.max = BUFFER_MAX}, .code = {.max = BUFFER_MAX}};
    MS_TRY(mstx_tl_open(&f.from, db, err));
    enum ms_rc rc = ms_store_create_dense(&f.to, to, err);
    if (rc == MS_OK)
        rc = fold_into(&f, db, bound_ns, err);
    free_folder(&f);
    mstx_tl_close(f.from);
    if (rc == MS_OK)
        return ms_store_commit(f.to, err);
    ms_store_close(f.to);
    return rc;
}
