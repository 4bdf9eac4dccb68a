/* SPDX-License-Identifier: MIT
 *
 * tl_from_ascend: databases of Ascend's profilers, of one rank or all below a directory, become a run.db;
 * so does what they tell of communication in texts alone.
 *
 * Each table of events is one query that gives rows of one form: process, thread,
 * domain, name of the track, and the event.  Rows come in the order of tracks, so
 * one track at a time is gathered and written.
 */
#include "mstx/cl_ascend.h"
#include "mstx/recipe.h"
#include "mstx/tl_ascend_text.h"
#include "mstx/tl_import.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/store.h"

#include <stdio.h>

/* Columns: pid, tid, domain, track name, is it a range (2) or push/pop (1) or mark (0), name, start,
 * end, thread that ended it if another, connection if it has one, device; by the first four and
 * start.  Marks and tasks of one connection are the two sides of one event. */
static const struct source {
    const char *table;
    enum mstx_track_kind kind;
    const char *sql;
} sources[] = {
    {"MSTX_EVENTS", MSTX_TRACK_THREAD,
     "SELECT globalTid >> 32, globalTid & 4294967295, d.value, '', eventType % 3, m.value,"
     " startNs, endNs, nullif(endGlobalTid, globalTid) & 4294967295,"
     " nullif(nullif(connectionId, 4294967295), 4000000000), NULL FROM MSTX_EVENTS"
     " LEFT JOIN STRING_IDS m ON m.id = message LEFT JOIN STRING_IDS d ON d.id = domainId"
     " ORDER BY 1, 2, domainId, 7"},
    {"PYTORCH_API", MSTX_TRACK_THREAD,
     "SELECT globalTid >> 32, globalTid & 4294967295, 'PyTorch', '', 2, n.value,"
     " CAST(startNs AS INTEGER), CAST(endNs AS INTEGER), NULL, NULL, NULL FROM PYTORCH_API"
     " LEFT JOIN STRING_IDS n ON n.id = name ORDER BY 1, 2, 7"},
    {"CANN_API", MSTX_TRACK_THREAD,
     "SELECT globalTid >> 32, globalTid & 4294967295, 'CANN', '', 2, n.value, startNs, endNs, NULL,"
     " NULL, NULL FROM CANN_API LEFT JOIN STRING_IDS n ON n.id = name ORDER BY 1, 2, 7"},
    {"TASK", MSTX_TRACK_STREAM,
     "SELECT globalPid, streamId, 'device ' || deviceId, 'Stream ' || streamId, 2, n.value,"
     " startNs, endNs, NULL, connectionId, deviceId FROM TASK"
     " LEFT JOIN STRING_IDS n ON n.id = taskType ORDER BY 1, deviceId, streamId, 7"},
    {"COMMUNICATION_OP", MSTX_TRACK_STREAM,
     "SELECT 0, 0, 'communication', g.value, 2, n.value, startNs, endNs, NULL, NULL, NULL"
     " FROM COMMUNICATION_OP LEFT JOIN STRING_IDS n ON n.id = opName"
     " LEFT JOIN STRING_IDS g ON g.id = groupName ORDER BY groupName, 7"},
};

struct reader {
    struct ms_store *store;
    struct mstx_writer *w;
    enum mstx_track_kind kind; /* of the source being read */
    MS_VEC(int64_t) pid;
    MS_VEC(uint32_t) id; /* of the process, by pid's place */
    int32_t rank;
    uint64_t events;
    int64_t start_ns, end_ns;
    /* the track being gathered */
    struct mstx_track_row row;
    struct ms_buf domain, name;
    mstx_events ev;
    uint64_t bad; /* rows whose times make no sense */
};

/* pid 0 comes from tables that do not tell: the first process has these. */
static bool process_of(struct reader *r, int64_t pid, uint32_t *id)
{
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

static bool same_track(const struct reader *r, uint32_t process, uint32_t tid, struct ms_str domain,
                       struct ms_str name)
{
    return r->row.process == process && r->row.tid == tid &&
           ms_str_eq(ms_buf_slice(&r->domain), domain) && ms_str_eq(ms_buf_slice(&r->name), name);
}

static bool take_row(struct reader *r, struct ms_stmt *st)
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
    if (!process_of(r, ms_stmt_get_i64(st, 0), &process))
        return false;
    if (!same_track(r, process, tid, domain, name)) {
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
    bool more;
    r->kind = s->kind;
    MS_TRY(ms_store_prepare(r->store, &st, s->sql, err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    while (rc == MS_OK && more) {
        rc = take_row(r, st) ? ms_stmt_step(st, &more, err) : ms_no_memory(err);
    }
    ms_stmt_free(st);
    finish_track(r);
    r->row = (struct mstx_track_row){0};
    return rc;
}

/* A database whose table of ranks is missing or odd has none. */
static enum ms_rc find_rank(struct reader *r, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more = false;
    struct ms_err aside = {0};
    r->rank = -1;
    enum ms_rc rc =
        ms_store_prepare(r->store, &st, "SELECT min(rankId) FROM RANK_DEVICE_MAP", &aside);
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

static void tell_unreadable(struct reader *r, const char *table, const char *path,
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
        if (rc != MS_OK) /* columns are missing, or pages are damaged: the other tables count */
            tell_unreadable(r, sources[i].table, path, &aside);
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

/* What the rank has to say of communication; a database where that cannot be read has its timeline. */
static enum ms_rc read_cluster(struct reader *r, struct mstx_cl_ascend *all, const char *path,
                               struct ms_err *err)
{
    struct ms_err aside = {0};
    uint32_t process;
    if (!process_of(r, 0, &process))
        return ms_no_memory(err);
    enum ms_rc rc = mstx__cluster_ascend_rank(all, r->store, r->rank, process, &aside);
    if (rc == MS_E_NOMEM)
        return ms_no_memory(err);
    if (rc != MS_OK)
        tell_unreadable(r, "COMMUNICATION_OP", path, &aside);
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

/* What is in a database that was opened, which is closed. rank: -1 where it is to tell itself. */
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
    MS_TRY(mstx__ascend_text_open(&s, f->dir, err));
    return import_store(s, path, f->rank, all, err);
}

/* ---- a directory ------------------------------------------------------------------- */

static void ignore_problem(void *ctx, const char *file, const char *text)
{
    (void)ctx, (void)file, (void)text;
}

static void note_problem(void *ctx, const char *file, const char *text)
{
    mstx__writer_problem(ctx, file, text);
}

/* The profiler's database, or what it tells of communication in a text. */
static bool is_readable(const struct mstx_rank_files *f)
{
    return f->profiler != NULL || mstx__has_ascend_text(f->dir);
}

size_t mstx__count_ascend_files(const char *dir)
{
    struct mstx_recipe_run r = {.path = dir, .tell_problem = ignore_problem};
    size_t n = 0;
    if (mstx__recipe_find(&r, NULL, NULL) == MS_OK) {
        for (size_t i = 0; i < r.ranks.n; i++)
            n += is_readable(&r.ranks.p[i]);
    }
    mstx__recipe_forget(&r);
    return n;
}

/* A rank that cannot be read is a problem and the others count. */
static enum ms_rc import_rank(const struct mstx_rank_files *f, struct mstx_cl_ascend *all,
                              uint64_t *files, struct ms_err *err)
{
    struct ms_err aside = {0};
    const bool is_text = f->profiler == NULL;
    if (!is_readable(f))
        return MS_OK;
    char *path = is_text ? mstx__ascend_text_path(f->dir) : ms_str_dup(ms_str_of(f->profiler));
    if (path == NULL)
        return ms_no_memory(err);
    mstx__import_source(all->w, path);
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
    struct mstx_recipe_run r = {.path = path, .tell_problem = note_problem, .ctx = all->w};
    enum ms_rc rc = mstx__recipe_find(&r, NULL, err);
    for (size_t i = 0; i < r.ranks.n && rc == MS_OK; i++)
        rc = import_rank(&r.ranks.p[i], all, files, err);
    mstx__recipe_forget(&r);
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
