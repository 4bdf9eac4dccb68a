/* SPDX-License-Identifier: MIT
 *
 * from_ascend: reads what Ascend's profilers wrote, of one rank or of all ranks below a
 * directory, into a run.db.
 */
#include "mstx/foreign/from_ascend.h"
#include "mstx/foreign/ascend_files.h"
#include "mstx/foreign/ascend_part.h"
#include "mstx/foreign/ascend_tables.h"
#include "mstx/foreign/sql/from_ascend.h"
#include "mstx/foreign/sql/from_ascend_text.h"
#include "probe/base/assert.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/store.h"

#include <stdio.h>

/* ---- communication.json ----------------------------------------------------- */

#define FILE_MAX     ((size_t)10 << 30)
#define METADATA_MAX ((size_t)64 << 20)

static enum ms_rc add_op(void *ctx, const struct mstx_ascend_op *op, struct ms_err *err)
{
    struct ms_stmt *add = ctx;
    ms_stmt_str(add, 1, op->step);
    ms_stmt_str(add, 2, op->op);
    ms_stmt_str(add, 3, op->group.n != 0 ? op->group : MS_STR(""));
    ms_stmt_str(add, 4, op->text);
    return ms_stmt_run(add, err);
}

/* Returns the path of communication.json in the directory. The caller frees it. */
static char *ascend_text_path(const char *dir)
{
    return ms_path_join(dir, "communication.json");
}

static enum ms_rc read_ops(struct ms_store *s, const char *dir, struct ms_err *err)
{
    struct ms_file f;
    struct ms_stmt *add = NULL;
    char *path = ascend_text_path(dir);
    enum ms_rc rc = path != NULL ? ms_file_map(&f, path, FILE_MAX, err) : ms_no_memory(err);
    if (rc == MS_OK) {
        rc = ms_store_prepare(s, &add, sql_add_operation, err);
        if (rc == MS_OK)
            rc = mstx__ascend_json_read(f.p, f.n, add_op, add, err);
        ms_stmt_free(add);
        ms_file_unmap(&f);
    }
    ms_free(path);
    return rc;
}

/* Reads the names of groups from the metadata; without this file groups are shown by their
 * hashes. */
static enum ms_rc read_metadata(struct ms_store *s, const char *dir, struct ms_err *err)
{
    struct ms_file f;
    struct ms_stmt *add;
    char *path = ms_path_join(dir, "../profiler_metadata.json");
    if (path == NULL)
        return ms_no_memory(err);
    const bool is_there =
        ms_path_kind(path) == MS_KIND_FILE && ms_file_map(&f, path, METADATA_MAX, NULL) == MS_OK;
    ms_free(path);
    if (!is_there)
        return MS_OK;
    const struct ms_str text = {f.p, (uint32_t)f.n};
    enum ms_rc rc = ms_store_prepare(s, &add, sql_add_groups, err);
    if (rc == MS_OK) {
        ms_stmt_str(add, 1, text);
        rc = ms_stmt_run(add, err);
        ms_stmt_free(add);
    }
    ms_file_unmap(&f);
    return rc;
}

/* Tells whether the directory has a communication.json. */
static bool has_ascend_text(const char *dir)
{
    char *path = ascend_text_path(dir);
    const bool is = path != NULL && ms_path_kind(path) == MS_KIND_FILE;
    ms_free(path);
    return is;
}

static enum ms_rc fill_tables(struct ms_store *s, const char *dir, struct ms_err *err)
{
    MS_TRY(mstx__ascend_functions(s, err));
    MS_TRY(ms_store_exec(s, sql_create_raw_tables, err));
    MS_TRY(read_ops(s, dir, err));
    MS_TRY(read_metadata(s, dir, err));
    return ms_store_exec(s, sql_make_tables, err);
}

/* Opens a database in memory with the contents of the file. */
static enum ms_rc ascend_text_open(struct ms_store **out, const char *dir, struct ms_err *err)
{
    MS_TRY(ms_store_scratch(out, err));
    enum ms_rc rc = fill_tables(*out, dir, err);
    if (rc != MS_OK) {
        ms_store_close(*out);
        *out = NULL;
    }
    return rc;
}

/* ---- databases -------------------------------------------------------------- */

/* Reads databases of Ascend's profilers, of one rank or of all ranks below a
 * directory, into a run.db; for a rank without a database, its communication.json.
 *
 * Each table of events is read by one query whose rows all have the same columns:
 * process, thread, domain, name of the track, and the event.  Rows are in the order of
 * tracks, so one track at a time is collected and written. */

/* sql/from_ascend.sql names the columns of the statements. */
static const struct source {
    const char *table;
    enum mstx_track_kind kind;
    const char *sql;
} sources[] = {
    {"MSTX_EVENTS", MSTX_TRACK_THREAD, sql_read_marks},
    {"PYTORCH_API", MSTX_TRACK_THREAD, sql_read_pytorch_calls},
    {"CANN_API", MSTX_TRACK_THREAD, sql_read_cann_calls},
    {"TASK", MSTX_TRACK_STREAM, sql_read_tasks},
    {"COMMUNICATION_OP", MSTX_TRACK_STREAM, sql_read_communication},
};

struct reader {
    struct ms_store *store;
    struct mstx_writer *w;
    enum mstx_track_kind kind; /* of the source being read */
    MS_VEC(int64_t) pid;
    MS_VEC(uint32_t) id; /* process of each pid */
    int32_t rank;
    uint64_t events;
    int64_t start_ns, end_ns;
    /* the track being collected */
    struct mstx_track_row row;
    struct ms_buf domain, name;
    mstx_events ev;
    uint64_t bad; /* number of rows that end before they start or have times out of range */
};

/* Finds the process of a pid. Tables without a pid give 0: their rows belong to the first
 * process. */
static bool find_process(struct reader *r, int64_t pid, uint32_t *id)
{
    ms_assert(r->pid.n == r->id.n);
    for (size_t i = 0; i < r->pid.n; i++) {
        if (r->pid.p[i] == pid || pid == 0) {
            *id = r->id.p[i];
            return true;
        }
    }
    int64_t *slot = ms_vec_push(&r->pid);
    uint32_t *number = slot != NULL ? ms_vec_push(&r->id) : NULL;
    if (number == NULL)
        return false;
    *slot = pid;
    *number = *id = mstx__writer_process_id(r->w);
    return true;
}

static void finish_track(struct reader *r)
{
    r->row.domain = ms_buf_slice(&r->domain);
    r->row.name = ms_buf_slice(&r->name);
    if (r->ev.n != 0)
        mstx__writer_track(r->w, &r->row, &r->ev);
    r->ev.n = 0;
}

static bool set_text(struct ms_buf *b, struct ms_str s)
{
    ms_buf_clear(b);
    ms_buf_str(b, s);
    return b->bad == MS_OK;
}

static bool is_same_track(const struct reader *r, uint32_t process, uint32_t tid,
                          struct ms_str domain, struct ms_str name)
{
    return r->row.process == process && r->row.tid == tid &&
           ms_str_eq(ms_buf_slice(&r->domain), domain) && ms_str_eq(ms_buf_slice(&r->name), name);
}

static bool read_row(struct reader *r, struct ms_stmt *st)
{
    uint32_t process, tid = (uint32_t)ms_stmt_get_i64(st, 1);
    struct ms_str domain = ms_stmt_get_str(st, 2), name = ms_stmt_get_str(st, 3);
    static const uint8_t kinds[] = {MSTX_EV_MARK, MSTX_EV_PUSHPOP, MSTX_EV_RANGE};
    int64_t start = ms_stmt_get_i64(st, 6), end = ms_stmt_get_i64(st, 7);
    const int64_t most = INT64_C(1) << 62;
    int64_t kind = ms_stmt_get_i64(st, 4);
    if (ms_stmt_is_null(st, 6) || start < 0 || end < start || end >= most || kind < 0 || kind > 2) {
        r->bad++;
        return true;
    }
    if (!find_process(r, ms_stmt_get_i64(st, 0), &process))
        return false;
    if (!is_same_track(r, process, tid, domain, name)) {
        finish_track(r);
        r->row = (struct mstx_track_row){.process = process,
                                         .kind = r->kind,
                                         .tid = tid,
                                         .device = (uint32_t)ms_stmt_get_i64(st, 10),
                                         .unit = MS_STR("")};
        if (!set_text(&r->domain, domain) || !set_text(&r->name, name))
            return false;
    }
    struct ms_str text = ms_stmt_get_str(st, 5);
    struct mstx_event *e = ms_vec_push(&r->ev);
    if (e == NULL)
        return false;
    *e = (struct mstx_event){.start_ns = start,
                             .dur_ns = end - start,
                             .name =
                                 mstx__writer_text(r->w, text.n != 0 ? text : MS_STR("(no name)")),
                             .size = (uint64_t)ms_stmt_get_i64(st, 9),
                             .count = 1,
                             .end_tid = (uint32_t)ms_stmt_get_i64(st, 8),
                             .kind = kinds[kind]};
    e->flags = e->end_tid != 0 ? MSTX_EVF_OTHER_THREAD : 0;
    r->start_ns = r->events == 0 || start < r->start_ns ? start : r->start_ns;
    r->end_ns = end > r->end_ns ? end : r->end_ns;
    r->events++;
    return true;
}

static enum ms_rc read_source(struct reader *r, const struct source *s, struct ms_err *err)
{
    struct ms_stmt *st;
    r->kind = s->kind;
    MS_TRY(ms_store_prepare(r->store, &st, s->sql, err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err))
        rc = read_row(r, st) ? MS_OK : ms_no_memory(err);
    ms_stmt_free(st);
    finish_track(r);
    r->row = (struct mstx_track_row){0};
    return rc;
}

/* Finds the rank of a database; one whose table of ranks is missing or invalid has rank -1. */
static enum ms_rc find_rank(struct reader *r, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more = false;
    struct ms_err aside = {0};
    r->rank = -1;
    enum ms_rc rc = ms_store_prepare(r->store, &st, sql_find_rank, &aside);
    if (rc == MS_OK)
        rc = ms_stmt_step(st, &more, &aside);
    if (rc == MS_OK && more && !ms_stmt_is_null(st, 0)) {
        int64_t rank = ms_stmt_get_i64(st, 0);
        r->rank = rank >= 0 && rank <= INT32_MAX ? (int32_t)rank : -1;
    }
    ms_stmt_free(st);
    return rc == MS_E_NOMEM ? ms_no_memory(err) : MS_OK;
}

static void write_processes(struct reader *r, const char *path)
{
    for (size_t i = 0; i < r->pid.n; i++) {
        const struct mstx_process_row row = {.rank = r->rank,
                                             .pid = (uint32_t)r->pid.p[i],
                                             .host = MS_STR(""),
                                             .name = MS_STR(""),
                                             .dir = ms_str_of(path),
                                             .tool = MS_STR("Ascend profiler"),
                                             .state = MS_STR("finished"),
                                             .start_ns = r->start_ns,
                                             .end_ns = r->end_ns,
                                             .events = i == 0 ? r->events : 0};
        mstx__writer_process(r->w, r->id.p[i], &row);
    }
}

static void report_unreadable(struct reader *r, const char *table, const char *path,
                              const struct ms_err *why)
{
    char text[sizeof why->msg + 64];
    snprintf(text, sizeof text, "table %s cannot be read: %s", table, why->msg);
    mstx__writer_problem(r->w, path, text);
}

static enum ms_rc read_all(struct reader *r, const char *path, struct ms_err *err)
{
    bool has, any = false;
    MS_TRY(mstx__has_table(r->store, "STRING_IDS", &has, err));
    for (size_t i = 0; has && i < sizeof sources / sizeof *sources; i++) {
        bool there;
        MS_TRY(mstx__has_table(r->store, sources[i].table, &there, err));
        struct ms_err aside = {0};
        enum ms_rc rc = there ? read_source(r, &sources[i], &aside) : MS_OK;
        if (rc == MS_E_NOMEM)
            return ms_no_memory(err);
        if (rc != MS_OK) /* missing columns or damaged pages: the other tables are still read */
            report_unreadable(r, sources[i].table, path, &aside);
        any |= there && rc == MS_OK;
    }
    if (!any)
        return ms_fail(err, MS_E_FORMAT, "%s: has none of the tables of an Ascend profiler", path);
    if (r->bad != 0) {
        char text[96];
        snprintf(text, sizeof text, "%llu rows have times that make no sense",
                 (unsigned long long)r->bad);
        mstx__writer_problem(r->w, path, text);
    }
    if (r->rank < 0)
        MS_TRY(find_rank(r, err));
    write_processes(r, path);
    return MS_OK;
}

/* Reads the communication of the rank for the analysis of all ranks. When this fails, keeps the
 * timeline and notes a problem. */
static enum ms_rc read_cluster(struct reader *r, struct mstx_cl_ascend *all, const char *path,
                               struct ms_err *err)
{
    struct ms_err aside = {0};
    uint32_t process;
    if (!find_process(r, 0, &process))
        return ms_no_memory(err);
    enum ms_rc rc = mstx__cluster_ascend_rank(all, r->store, r->rank, process, &aside);
    if (rc == MS_E_NOMEM)
        return ms_no_memory(err);
    if (rc != MS_OK)
        report_unreadable(r, "COMMUNICATION_OP", path, &aside);
    return MS_OK;
}

static void free_reader(struct reader *r)
{
    ms_store_close(r->store);
    ms_vec_free(&r->pid);
    ms_vec_free(&r->id);
    ms_vec_free(&r->ev);
    ms_buf_free(&r->domain);
    ms_buf_free(&r->name);
}

/* Imports an open database and closes it. rank: -1 to find the rank in the database. */
static enum ms_rc import_store(struct ms_store *s, const char *path, int64_t rank,
                               struct mstx_cl_ascend *all, struct ms_err *err)
{
    struct reader r = {.store = s,
                       .w = all->w,
                       .rank = (int32_t)rank,
                       .domain = {.max = 1 << 24},
                       .name = {.max = 1 << 24}};
    enum ms_rc rc = read_all(&r, path, err);
    if (rc == MS_OK)
        rc = read_cluster(&r, all, path, err);
    free_reader(&r);
    return rc;
}

static enum ms_rc import_one(const char *path, int64_t rank, struct mstx_cl_ascend *all,
                             struct ms_err *err)
{
    struct ms_store *s;
    MS_TRY(ms_store_open(&s, path, err));
    return import_store(s, path, rank, all, err);
}

static enum ms_rc import_text(const char *path, const struct mstx_rank_files *f,
                              struct mstx_cl_ascend *all, struct ms_err *err)
{
    struct ms_store *s;
    MS_TRY(ascend_text_open(&s, f->dir, err));
    return import_store(s, path, f->rank, all, err);
}

/* ---- a directory ------------------------------------------------------------------- */

static enum ms_rc ignore_problem(void *ctx, const char *file, const char *text, struct ms_err *err)
{
    (void)ctx, (void)file, (void)text, (void)err;
    return MS_OK;
}

static enum ms_rc note_problem(void *ctx, const char *file, const char *text, struct ms_err *err)
{
    (void)err;
    mstx__writer_problem(ctx, file, text);
    return MS_OK;
}

/* Tells whether the rank has a database or a communication.json. */
static bool is_readable(const struct mstx_rank_files *f)
{
    return f->profiler != NULL || has_ascend_text(f->dir);
}

size_t mstx__count_ascend_files(const char *dir)
{
    struct mstx_ascend_files found = {.note_problem = ignore_problem};
    size_t n = 0;
    if (mstx__ascend_files_find(&found, dir, NULL, NULL) == MS_OK) {
        for (size_t i = 0; i < found.ranks.n; i++)
            n += is_readable(&found.ranks.p[i]);
    }
    mstx__ascend_files_free(&found);
    return n;
}

/* Imports one rank. A rank that cannot be read is noted as a problem; the others are imported. */
static enum ms_rc import_rank(const struct mstx_rank_files *f, struct mstx_cl_ascend *all,
                              uint64_t *files, struct ms_err *err)
{
    struct ms_err aside = {0};
    const bool is_text = f->profiler == NULL;
    if (!is_readable(f))
        return MS_OK;
    char *path = is_text ? ascend_text_path(f->dir) : ms_str_dup(ms_str_of(f->profiler));
    if (path == NULL)
        return ms_no_memory(err);
    mstx__writer_source(all->w, path);
    enum ms_rc rc =
        is_text ? import_text(path, f, all, &aside) : import_one(path, f->rank, all, &aside);
    if (rc != MS_OK && rc != MS_E_NOMEM)
        mstx__writer_problem(all->w, path, aside.msg);
    ms_free(path);
    *files += rc == MS_OK;
    return rc == MS_E_NOMEM ? ms_no_memory(err) : mstx__writer_why(all->w, err);
}

static enum ms_rc import_dir(const char *path, struct mstx_cl_ascend *all, uint64_t *files,
                             struct ms_err *err)
{
    struct mstx_ascend_files found = {.note_problem = note_problem, .ctx = all->w};
    enum ms_rc rc = mstx__ascend_files_find(&found, path, NULL, err);
    for (size_t i = 0; i < found.ranks.n && rc == MS_OK; i++)
        rc = import_rank(&found.ranks.p[i], all, files, err);
    mstx__ascend_files_free(&found);
    if (rc == MS_OK && *files == 0)
        rc = ms_fail(err, MS_E_FORMAT, "%s: none of the profilers' files in it can be read", path);
    return rc;
}

enum ms_rc mstx__import_ascend(const char *path, struct mstx_writer *w,
                               struct mstx_import_result *result, struct ms_err *err)
{
    struct mstx_cl_ascend all;
    enum ms_rc rc = mstx__cluster_ascend_new(&all, w, err);
    result->files = 0;
    if (rc == MS_OK && ms_path_kind(path) == MS_KIND_DIR)
        rc = import_dir(path, &all, &result->files, err);
    else if (rc == MS_OK && (rc = import_one(path, -1, &all, err)) == MS_OK)
        result->files = 1;
    if (rc == MS_OK)
        rc = mstx__cluster_ascend_save(&all, err);
    mstx__cluster_ascend_free(&all);
    return rc;
}
