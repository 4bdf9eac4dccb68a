/* SPDX-License-Identifier: MIT
 *
 * run_ready: see the header.
 */
#include "mstx/conclude/run_ready.h"

#include "mstx/conclude/conclude.h"
#include "mstx/foreign/from_ascend.h"
#include "mstx/foreign/from_flight.h"
#include "mstx/foreign/trace_files.h"
#include "mstx/import/run_roots.h"
#include "mstx/rundb/fold_write.h"
#include "mstx/rundb/run_schema.h"
#include "mstx/rundb/run_write.h"
#include "probe/base/exchange.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

char *mstx_db_path(const char *path)
{
    if (ms_path_kind(path) == MS_KIND_DIR)
        return ms_path_join(path, MSTX_DB_NAME);
    struct ms_buf b = {.max = 1 << 16};
    ms_buf_printf(&b, "%s.%s", path, MSTX_DB_NAME);
    ms_buf_z(&b);
    return b.bad == MS_OK ? b.p : NULL;
}

/* ---- staleness -------------------------------------------------------------- */

/* Finds a source file as it is now.  When its path does not exist, because it is relative to
 * another directory or the run was moved, the longest suffix of the path that exists below the run
 * is used. */
static bool find_source(const char *run, const char *path, struct stat *st)
{
    bool found = stat(path, st) == 0;
    for (const char *end = path; !found && end != NULL; end = strchr(end + 1, '/')) {
        char *below = ms_path_join(run, end[0] == '/' ? end + 1 : end);
        found = below != NULL && stat(below, st) == 0;
        ms_free(below);
    }
    return found;
}

static bool has_changed(const char *run, const char *path, int64_t bytes, int64_t mtime_ns)
{
    struct stat st;
    return !find_source(run, path, &st) || st.st_size != bytes ||
           (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec != mtime_ns;
}

/* Tells whether the database was made by another version or while a process was recording.  Writes
 * through a mapping change neither size nor time of a file, so a database of a live run is always
 * stale. */
static enum ms_rc look_for_live(struct ms_store *s, bool *live)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(
        s, &st,
        "SELECT 1 FROM processes WHERE state IN ('running', 'not finished') UNION ALL"
        " SELECT 1 FROM meta WHERE key = 'version' AND"
        " value NOT IN ('" MSTX_DB_VERSION "', '" MSTX_DB_FOLDED "')",
        NULL));
    enum ms_rc rc = ms_stmt_step(st, live, NULL);
    ms_stmt_free(st);
    return rc;
}

/* Compares the source files with their recorded size and time; *n counts them. */
static enum ms_rc compare_sources(struct ms_store *s, const char *run, bool *changed, size_t *n)
{
    struct ms_stmt *st;
    MS_TRY(look_for_live(s, changed));
    MS_TRY(ms_store_prepare(s, &st, "SELECT path, bytes, mtime_ns FROM sources", NULL));
    enum ms_rc rc = MS_OK;
    while (!*changed && ms_stmt_next(st, &rc, NULL)) {
        char *path = ms_str_dup(ms_stmt_get_str(st, 0));
        *changed =
            path == NULL || has_changed(run, path, ms_stmt_get_i64(st, 1), ms_stmt_get_i64(st, 2));
        ms_free(path);
        ++*n;
    }
    ms_stmt_free(st);
    return rc;
}

/* Returns the number of files that an import of the directory reads. */
static size_t count_files(const char *dir)
{
    bool is_capture;
    size_t n = mstx__count_capture_files(dir, &is_capture);
    if (!is_capture)
        n = mstx__count_flight_files(dir);
    if (n == 0)
        n = mstx__count_ascend_files(dir);
    return n != 0 ? n : mstx__count_trace_files(dir);
}

bool mstx_db_is_stale(const char *path, const char *db)
{
    struct ms_store *s;
    bool changed = false;
    size_t n = 0;
    if (strcmp(path, db) == 0) /* a run.db that the user named is shown even without its sources */
        return false;
    if (ms_path_kind(db) != MS_KIND_FILE || ms_store_open(&s, db, NULL) != MS_OK)
        return true;
    enum ms_rc rc = compare_sources(s, path, &changed, &n);
    ms_store_close(s);
    if (rc != MS_OK || changed)
        return true;
    return ms_path_kind(path) == MS_KIND_DIR && count_files(path) != n;
}

/* ---- making ----------------------------------------------------------------- */

static bool is_sqlite(const char *path)
{
    struct ms_file f;
    const struct ms_str magic = MS_STR("SQLite format 3");
    if (ms_file_map(&f, path, SIZE_MAX, NULL) != MS_OK)
        return false;
    bool is = f.n > magic.n && memcmp(f.p, magic.p, magic.n) == 0;
    ms_file_unmap(&f);
    return is;
}

/* Tells whether a database says that it is a run.db, of whatever version and however damaged. */
static bool says_run_db(const char *path)
{
    struct ms_store *s;
    struct ms_stmt *st = NULL;
    bool is = false;
    if (ms_store_open(&s, path, NULL) != MS_OK)
        return false;
    if (ms_store_prepare(s, &st,
                         "SELECT 1 FROM meta WHERE key = 'format' AND value = 'msprobe run.db'",
                         NULL) != MS_OK ||
        ms_stmt_step(st, &is, NULL) != MS_OK)
        is = false;
    ms_stmt_free(st);
    ms_store_close(s);
    return is;
}

/* Tells whether a file is a run.db, under any name, and not the database of a profiler. */
static bool is_run_db(const char *path)
{
    if (ms_path_kind(path) != MS_KIND_FILE)
        return false;
    return ms_str_is(ms_path_base(path), MSTX_DB_NAME) || (is_sqlite(path) && says_run_db(path));
}

/* Imports what no other reader recognized as Chrome traces, with the further traces of the run. */
static enum ms_rc import_traces(const char *path, const struct mstx_import_how *how,
                                struct mstx_writer *w, struct mstx_import_result *result,
                                struct ms_err *err)
{
    const char **paths = ms_calloc(how->more_n + 1, sizeof *paths);
    if (paths == NULL)
        return ms_no_memory(err);
    paths[0] = path;
    for (size_t i = 0; i < how->more_n; i++)
        paths[i + 1] = how->more[i];
    enum ms_rc rc =
        mstx__import_traces(paths, how->more_n + 1, how->rank_from, w, how->bar, result, err);
    ms_free(paths);
    if (rc == MS_E_FORMAT)
        ms_err_hint(err, "read are Chrome and Perfetto traces, tables in CSV, databases of Ascend "
                         "profilers and dumps of the Flight Recorder");
    return rc;
}

static void put_totals(struct mstx_import_result *r, const struct mstx_writer *w)
{
    const struct mstx_writer_totals t = mstx__writer_totals(w);
    r->tracks = t.tracks;
    r->processes = t.processes;
    r->events = t.events;
    r->problems = t.problems;
    r->start_ns = t.start_ns;
    r->end_ns = t.end_ns;
}

static enum ms_rc import_file(const char *path, const char *db, const struct mstx_import_how *how,
                              struct mstx_import_result *result, struct ms_err *err)
{
    struct mstx_writer *w;
    *result = (struct mstx_import_result){0};
    if (is_run_db(path))
        return ms_fail(err, MS_E_UNSUPPORTED, "%s: is a run.db already; msprobe report shows it",
                       path);
    MS_TRY(mstx__writer_new(&w, db, err));
    mstx__writer_meta(w, "path", path);
    enum ms_rc rc;
    const bool is_dir = ms_path_kind(path) == MS_KIND_DIR, is_one = how->more_n == 0;
    const bool is_flight =
        is_one && (is_dir ? mstx__count_flight_files(path) != 0 : mstx__is_flight_file(path));
    const bool is_ascend =
        is_one && (is_dir ? mstx__count_ascend_files(path) != 0 : is_sqlite(path));
    if (!is_dir && (is_flight || is_ascend))
        mstx__writer_source(w, path);
    if (is_flight)
        rc = mstx__import_flight(path, w, result, err);
    else if (is_ascend)
        rc = mstx__import_ascend(path, w, result, err);
    else
        rc = import_traces(path, how, w, result, err);
    if (rc != MS_OK) {
        mstx__writer_abort(w);
        return rc;
    }
    put_totals(result, w);
    if (!is_dir && result->events == 0 && result->problems != 0) {
        rc = mstx__writer_fail_of_problem(w, err);
        mstx__writer_abort(w);
        return rc;
    }
    return mstx__writer_commit(w, err);
}

/* True for a directory with files of other tools and no capture of msprobe. */
static bool is_foreign(const char *dir)
{
    return !mstx__is_capture(dir) &&
           (mstx__count_flight_files(dir) != 0 || mstx__count_ascend_files(dir) != 0 ||
            mstx__count_trace_files(dir) != 0);
}

static enum ms_rc import_to(const char *path, const char *db, const struct mstx_import_how *how,
                            struct mstx_import_result *result, struct ms_err *err)
{
    switch (ms_path_kind(path)) {
    case MS_KIND_DIR:
        if (how->more_n == 0 && !is_foreign(path))
            MS_TRY(mstx__import_capture(path, db, how, result, err));
        else if (ms_par_rank(how->par) == 0)
            MS_TRY(import_file(path, db, how, result, err));
        break;
    case MS_KIND_FILE:
        if (ms_par_rank(how->par) == 0) /* a single file is not divided */
            MS_TRY(import_file(path, db, how, result, err));
        break;
    default:
        return ms_fail_kind(path, err);
    }
    if (ms_par_rank(how->par) != 0)
        return MS_OK;
    const double s = how->missing_after_s > 0 ? how->missing_after_s : MSTX_MISSING_AFTER_S;
    return mstx__conclude(db, (int64_t)(s * 1e9), err);
}

static enum ms_rc publish_file(const char *file, const char *db, struct ms_err *err)
{
    int fd = open(file, O_RDWR | O_CLOEXEC);
    return fd >= 0 ? ms_tmp_publish(fd, file, db, err) : ms_fail_sys(err, "%s", file);
}

/* Makes a temporary name that contains the MPI rank, because processes of different hosts may have
 * equal ids. */
static enum ms_rc new_name(char **whole, const char *db, const struct mstx_import_how *how,
                           struct ms_err *err)
{
    struct ms_buf b = {.max = 1 << 16};
    ms_buf_puts(&b, db);
    if (ms_par_rank(how->par) != 0)
        ms_buf_printf(&b, ".%u", ms_par_rank(how->par));
    enum ms_rc rc = ms_buf_check(&b, err);
    if (rc == MS_OK)
        rc = ms_tmp_new(whole, ms_buf_z(&b), err);
    ms_buf_free(&b);
    return ms_share_result(how->par, rc, err);
}

/* Puts the name of the database into a message that has the temporary one, which nobody knows. */
static void name_database(struct ms_err *err, const char *whole, const char *db)
{
    char text[sizeof err->msg];
    const char *at = err != NULL ? strstr(err->msg, whole) : NULL;
    if (at == NULL)
        return;
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - err->msg), err->msg, db, at + strlen(whole));
    memcpy(err->msg, text, sizeof text);
}

/* Publishes a copy whose bytes do not depend on how many processes wrote the database. */
static enum ms_rc publish_database(const char *whole, const char *copy, const char *db,
                                   const struct mstx_import_how *how, struct ms_err *err)
{
    unlink(copy);
    if (how->fold)
        MS_TRY(mstx__fold_database(whole, copy, how->bound_ns, err));
    else
        MS_TRY(ms_store_copy_in_order(whole, copy, err));
    return publish_file(copy, db, err);
}

static void drop_tmp(char *tmp)
{
    unlink(tmp);
    ms_tmp_forget(tmp);
    ms_free(tmp);
}

/* Checks the place of a database. Where nobody has named one, it lies in a folder that may be a
 * stranger's. */
static enum ms_rc check_own_place(const char *path, const char *db, struct ms_par *par,
                                  struct ms_err *err)
{
    char *own = mstx_db_path(path);
    enum ms_rc rc = own != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK && ms_par_rank(par) == 0 && strcmp(own, db) == 0)
        rc = ms_want_no_link(db, err);
    if (rc == MS_OK && ms_par_rank(par) == 0)
        rc = ms_store_check_place(db, err);
    ms_free(own);
    return ms_share_result(par, rc, err);
}

/* Fails for a folder in which runs lie, before something is written into it. */
static enum ms_rc check_run(const char *path, const struct mstx_import_how *how, struct ms_err *err)
{
    const bool is_looked_at =
        ms_par_rank(how->par) == 0 && how->more_n == 0 && ms_path_kind(path) == MS_KIND_DIR;
    return ms_share_result(how->par, is_looked_at ? mstx__want_one_run(path, err) : MS_OK, err);
}

/* Imports into a temporary file, a copy of which gets its final name only after the findings were stored, so
 * that an interrupted import cannot leave a database that looks complete. */
enum ms_rc mstx_import_as(const char *path, const char *db, const struct mstx_import_how *how,
                          struct mstx_import_result *result, struct ms_err *err)
{
    struct stat st;
    char *whole, *copy;
    const bool is_first = ms_par_rank(how->par) == 0;
    MS_TRY(check_run(path, how, err));
    MS_TRY(check_own_place(path, db, how->par, err));
    MS_TRY(new_name(&whole, db, how, err));
    enum ms_rc rc = new_name(&copy, db, how, err); /* now, so that a change of db meanwhile shows */
    if (rc == MS_OK) {
        rc = import_to(path, whole, how, result, err);
        if (rc == MS_OK && is_first)
            rc = publish_database(whole, copy, db, how, err);
        if (rc != MS_OK) {
            name_database(err, whole, db);
            name_database(err, copy, db);
        }
        drop_tmp(copy);
    }
    drop_tmp(whole);
    rc = ms_share_result(how->par, rc, err);
    if (rc == MS_OK)
        result->bytes = stat(db, &st) == 0 ? (uint64_t)st.st_size : 0;
    return rc;
}

/* Reads a number of the table meta of a database; `otherwise` when there is none. */
static double last_number(struct ms_store *s, const char *key, double otherwise)
{
    struct ms_stmt *st;
    bool more = false;
    if (ms_store_prepare(s, &st, "SELECT CAST(value AS REAL) FROM meta WHERE key = ?", NULL) !=
        MS_OK)
        return otherwise;
    ms_stmt_str(st, 1, ms_str_of(key));
    if (ms_stmt_step(st, &more, NULL) == MS_OK && more)
        otherwise = ms_stmt_get_f64(st, 0);
    ms_stmt_free(st);
    return otherwise;
}

/* Sets what the user of `msprobe import` chose for the database at `db`: viewers import a run that is
 * going on again and again, and the choice holds. */
static void choose_as_last(const char *db, struct mstx_import_how *how)
{
    struct ms_store *s;
    if (ms_path_kind(db) != MS_KIND_FILE || ms_store_open(&s, db, NULL) != MS_OK)
        return;
    const double limit = last_number(s, "missing_after", 0), times = last_number(s, "times", -1);
    if (limit > 0 && limit <= MSTX_MISSING_AFTER_MOST_S)
        how->missing_after_s = limit;
    how->fold = times >= 0 && times <= (double)MSTX_FOLD_BOUND_MAX;
    how->bound_ns = how->fold ? (int64_t)times : 0;
    ms_store_close(s);
}

enum ms_rc mstx_import(const char *path, const char *db, struct mstx_import_result *result,
                       struct ms_err *err)
{
    struct mstx_import_how how = {0};
    choose_as_last(db, &how);
    return mstx_import_as(path, db, &how, result, err);
}

/* Returns the path of a database under $TMPDIR, unique for each source by the hash of its real
 * path. */
static char *db_under_tmp(const char *path)
{
    const char *tmp = getenv("TMPDIR");
    char real[PATH_MAX];
    struct ms_buf b = {.max = 1 << 16};
    uint64_t hash = ms_str_hash(ms_str_of(realpath(path, real) != NULL ? real : path));
    ms_buf_printf(&b, "%s/msprobe-%u-%016" PRIx64 "/%s", tmp != NULL ? tmp : "/tmp",
                  (unsigned)getuid(), hash, MSTX_DB_NAME);
    ms_buf_z(&b);
    return b.bad == MS_OK ? b.p : NULL;
}

/* Replaces the path of a database in every process by that of process 0, whose $TMPDIR counts. */
static enum ms_rc share_path(char **db, struct ms_par *par, struct ms_err *err)
{
    struct ms_buf b = {.max = 1 << 16};
    if (ms_par_size(par) == 1)
        return *db != NULL ? MS_OK : ms_no_memory(err);
    if (ms_par_rank(par) == 0 && *db != NULL)
        ms_buf_puts(&b, *db);
    enum ms_rc rc = ms_share_from_first(par, &b, err);
    ms_free(*db);
    *db = rc == MS_OK && b.n != 0 ? ms_str_dup(ms_buf_slice(&b)) : NULL;
    ms_buf_free(&b);
    return ms_share_result(par, rc == MS_OK && *db == NULL ? ms_no_memory(err) : rc, err);
}

/* Imports when the database is stale, as process 0 sees it. */
static enum ms_rc make_if_stale(const char *path, const char *db, struct ms_par *par,
                                struct ms_err *err)
{
    struct mstx_import_result ignored;
    struct ms_progress bar = {.what = "importing"};
    struct mstx_import_how how = {.par = par, .bar = &bar};
    const bool is_first = ms_par_rank(par) == 0;
    bool stale = is_first && mstx_db_is_stale(path, db);
    MS_TRY(ms_par_share(par, &stale, sizeof stale, err));
    if (!stale)
        return MS_OK;
    if (is_first)
        choose_as_last(db, &how);
    else
        how.bar = NULL;
    const enum ms_rc rc = mstx_import_as(path, db, &how, &ignored, err);
    ms_progress_end(&bar);
    return rc;
}

/* Makes the folder of a database under $TMPDIR, for this user alone. Its name can be foreseen, so
 * somebody else may have made it first, to read what is written there or to put something else into
 * its place. */
static enum ms_rc make_private_folder(const char *db, struct ms_err *err)
{
    struct stat st;
    char *dir = ms_str_dup(ms_path_dir(db));
    if (dir == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = MS_OK;
    if (mkdir(dir, 0700) != 0 && errno != EEXIST)
        rc = ms_fail_sys(err, "%s: cannot make the directory", dir);
    else if (lstat(dir, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
             chmod(dir, 0700) != 0)
        rc = ms_fail(err, MS_E_IO, "%s: is not a directory of this user; set TMPDIR to another one",
                     dir);
    ms_free(dir);
    return rc;
}

static enum ms_rc make_where_possible(const char *path, struct ms_par *par, char **db,
                                      struct ms_err *err)
{
    struct ms_err first = {0};
    bool made = false;
    enum ms_rc rc = make_if_stale(path, *db, par, &first);
    if (rc != MS_E_IO) {
        if (rc != MS_OK && err != NULL && err->rc == MS_OK)
            *err = first;
        return rc;
    }
    if (ms_par_rank(par) == 0) {
        made = !mstx_db_is_stale(path, *db); /* by another process meanwhile */
        if (!made) {
            ms_free(*db);
            *db = db_under_tmp(path);
            if (*db != NULL && make_private_folder(*db, err) != MS_OK) {
                ms_free(*db);
                *db = NULL; /* for the other processes too */
            }
        }
    }
    MS_TRY(ms_par_share(par, &made, sizeof made, err));
    if (made)
        return MS_OK;
    MS_TRY(share_path(db, par, err));
    return make_if_stale(path, *db, par, err);
}

enum ms_rc mstx_db_prepare_shared(const char *path, struct ms_par *par, char **db,
                                  struct ms_err *err)
{
    *db = NULL;
    if (ms_par_rank(par) == 0)
        *db = is_run_db(path) ? ms_str_dup(ms_str_of(path)) : mstx_db_path(path);
    enum ms_rc rc = share_path(db, par, err);
    if (rc == MS_OK)
        rc = make_where_possible(path, par, db, err);
    if (rc != MS_OK) {
        ms_free(*db);
        *db = NULL;
    }
    return rc;
}

enum ms_rc mstx_db_prepare(const char *path, char **db, struct ms_err *err)
{
    return mstx_db_prepare_shared(path, NULL, db, err);
}

enum ms_rc mstx_run_open(struct mstx_tl **tl, const char *path, struct ms_par *par,
                         struct ms_err *err)
{
    char *db;
    *tl = NULL;
    MS_TRY(mstx_db_prepare_shared(path, par, &db, err));
    enum ms_rc rc = ms_par_rank(par) == 0 ? mstx_tl_open(tl, db, err) : MS_OK;
    ms_free(db);
    return rc;
}
