/* SPDX-License-Identifier: MIT
 *
 * tl_ascend: a database as Ascend's profilers write it, for MindStudio Insight and
 * msprof-analyze.
 *
 * Readers join MSTX_EVENTS with STRING_IDS for texts and with TASK for the device
 * side; an event without a device side has no TASK row, yet a connectionId of its
 * own.  Times are Unix nanoseconds, globalTid is (pid << 32) | tid.
 */
#include "mstx/tl_export.h"

#include "mstx/tl_ascend_comm.h"

#include "probe/base/map.h"
#include "probe/base/mem.h"
#include "probe/base/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const int64_t NO_VALUE = 4294967295, FIRST_CONNECTION = 4000000002;

static const char schema[] =
    "CREATE TABLE META_DATA(name TEXT, value TEXT);"
    "INSERT INTO META_DATA VALUES('SCHEMA_VERSION','1.2.0'),('SCHEMA_VERSION_MAJOR','1'),"
    "('SCHEMA_VERSION_MINOR','2'),('SCHEMA_VERSION_MICRO','0');"
    "CREATE TABLE STRING_IDS(id INTEGER PRIMARY KEY, value TEXT);"
    "CREATE TABLE SESSION_TIME_INFO(startTimeNs INTEGER, endTimeNs INTEGER);"
    "CREATE TABLE NPU_INFO(id INTEGER, name TEXT);"
    "CREATE TABLE RANK_DEVICE_MAP(rankId INTEGER, deviceId INTEGER);"
    "CREATE TABLE HOST_INFO(hostUid TEXT, hostName TEXT);"
    "CREATE TABLE MSTX_EVENTS(startNs INTEGER, endNs INTEGER, eventType INTEGER, rangeId INTEGER,"
    " category INTEGER, message INTEGER, globalTid INTEGER, endGlobalTid INTEGER,"
    " domainId INTEGER, connectionId INTEGER);"
    "CREATE TABLE TASK(startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER,"
    " globalTaskId INTEGER, globalPid INTEGER, taskType INTEGER, contextId INTEGER,"
    " streamId INTEGER, taskId INTEGER, modelId INTEGER);"
    "CREATE TABLE STEP_TIME(id INTEGER, startNs INTEGER, endNs INTEGER);"
    "CREATE TABLE ENUM_MSTX_EVENT_TYPE(id INTEGER PRIMARY KEY, name TEXT);"
    "INSERT INTO ENUM_MSTX_EVENT_TYPE VALUES(0,'marker'),(1,'push/pop'),(2,'start/end'),"
    "(3,'marker_ex');"
    "CREATE TABLE ENUM_API_TYPE(id INTEGER PRIMARY KEY, name TEXT);"
    "INSERT INTO ENUM_API_TYPE VALUES(20000,'acl'),(15000,'model'),(10000,'node'),"
    "(5500,'communication'),(5000,'runtime'),(50001,'op'),(50002,'queue'),(50003,'trace'),"
    "(50004,'mstx');"
    "CREATE TABLE ENUM_HCCL_DATA_TYPE(id INTEGER PRIMARY KEY, name TEXT);"
    "INSERT INTO ENUM_HCCL_DATA_TYPE VALUES(0,'INT8'),(1,'INT16'),(2,'INT32'),(3,'FP16'),"
    "(4,'FP32'),(5,'INT64'),(6,'UINT64'),(7,'UINT8'),(8,'UINT16'),(9,'UINT32'),(10,'FP64'),"
    "(11,'BFP16'),(12,'INT128'),(14,'HIF8'),(15,'FP8E4M3'),(16,'FP8E5M2'),(17,'FP8E8M0'),"
    "(255,'RESERVED'),(65534,'N/A'),(65535,'INVALID_TYPE');";

/* An event and its device side have one number within their process. */
struct link {
    uint32_t process;
    uint64_t number;
    int64_t connection;
};

struct writer {
    struct mstx_tl *tl;
    struct ms_store *store;
    struct ms_stmt *add_event, *add_string, *add_task;
    MS_VEC(uint8_t) known; /* by text id: stands in STRING_IDS */
    int64_t events, first_own_id;
    int64_t start, end;
    uint32_t last_domain; /* track whose domain has domain_id */
    int64_t domain_id;
    struct ms_map own; /* texts that are not of run.db; index + first_own_id is the id */
    struct ms_arena *arena;
    struct mstx_ascend_comm *comm; /* NULL: the run has no communication calls */
    MS_VEC(struct link) links;     /* of events with a device side, in order of connection */
    int64_t tasks;
};

/* ---- texts ------------------------------------------------------------------ */

static enum ms_rc put_string(struct writer *w, int64_t id, struct ms_str text, struct ms_err *err)
{
    ms_stmt_i64(w->add_string, 1, id);
    ms_stmt_str(w->add_string, 2, text);
    return ms_stmt_run(w->add_string, err);
}

static enum ms_rc know_text(struct writer *w, uint32_t id, struct ms_err *err)
{
    if (id < w->known.n && w->known.p[id] != 0)
        return MS_OK;
    struct ms_str text = mstx_tl_text(w->tl, id);
    if (id >= w->known.n) {
        size_t want = (size_t)id + id / 2 + 64;
        MS_TRY(mstx__tl_check(w->tl, err));
        if (text.n == 0)
            return ms_fail(err, MS_E_FORMAT, "run.db has no text %" PRIu32, id);
        if (!ms_vec_reserve(&w->known, want))
            return ms_no_memory(err);
        memset(w->known.p + w->known.n, 0, want - w->known.n);
        w->known.n = want;
    }
    w->known.p[id] = 1;
    return put_string(w, id, text, err);
}

/* Texts that run.db does not number get ids behind all others. */
static enum ms_rc own_text(void *ctx, struct ms_str text, int64_t *id, struct ms_err *err)
{
    struct writer *w = ctx;
    bool added;
    uint32_t at = ms_map_put_copy(&w->own, text, w->arena, &added);
    if (at == MS_MAP_NONE)
        return ms_no_memory(err);
    *id = w->first_own_id + at;
    return added ? put_string(w, *id, text, err) : MS_OK;
}

/* Domains are texts of tracks, not of events. */
static enum ms_rc find_domain(struct writer *w, size_t track, struct ms_err *err)
{
    if (w->last_domain == track)
        return MS_OK;
    w->last_domain = (uint32_t)track;
    return own_text(w, mstx_tl_track(w->tl, track)->domain, &w->domain_id, err);
}

/* The text of an event; what a hook saw of a communication call becomes the official one. */
static enum ms_rc find_message(struct writer *w, const struct mstx_track *t,
                               const struct mstx_event *e, int64_t *id, struct ms_err *err)
{
    *id = -1;
    if (w->comm != NULL && ms_str_eq(t->domain, MS_STR(MSTX_COMM_DOMAIN)))
        MS_TRY(mstx__ascend_comm_event(w->comm, t, e, FIRST_CONNECTION + w->events, id, err));
    if (*id >= 0)
        return MS_OK;
    *id = e->name;
    return know_text(w, e->name, err);
}

/* ---- rows ------------------------------------------------------------------- */

static bool keep_link(struct writer *w, uint32_t process, uint64_t number)
{
    struct link *l = ms_vec_push(&w->links);
    if (l != NULL)
        *l = (struct link){process, number, FIRST_CONNECTION + w->events};
    return l != NULL;
}

static enum ms_rc put_event(void *ctx, size_t track, const struct mstx_event *e, struct ms_err *err)
{
    static const int64_t type_of[] = {
        [MSTX_EV_MARK] = 0, [MSTX_EV_PUSHPOP] = 1, [MSTX_EV_RANGE] = 2};
    struct writer *w = ctx;
    const struct mstx_track *t = mstx_tl_track(w->tl, track);
    if (e->kind > MSTX_EV_PUSHPOP)
        return MS_OK;
    int64_t message;
    MS_TRY(find_message(w, t, e, &message, err));
    MS_TRY(find_domain(w, track, err));
    int64_t pid = (int64_t)mstx_tl_process(w->tl, t->process)->pid << 32;
    int64_t end_tid = e->end_tid != 0 ? e->end_tid : t->tid;
    const int64_t column[] = {e->start_ns,      e->start_ns + e->dur_ns,
                              type_of[e->kind], NO_VALUE,
                              NO_VALUE,         message,
                              pid | t->tid,     pid | end_tid,
                              w->domain_id,     FIRST_CONNECTION + w->events};
    for (int c = 0; c < 10; c++)
        ms_stmt_i64(w->add_event, c + 1, column[c]);
    if (e->size != 0 && !keep_link(w, t->process, e->size))
        return ms_no_memory(err);
    if (w->events++ == 0)
        w->start = e->start_ns;
    w->end = column[1] > w->end ? column[1] : w->end;
    return ms_stmt_run(w->add_event, err);
}

static int by_number(const void *pa, const void *pb)
{
    const struct link *a = pa, *b = pb;
    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

struct task_writer {
    struct writer *w;
    const struct mstx_track *track;
    int64_t type; /* text "MsTx" */
};

static enum ms_rc put_task(void *ctx, const struct mstx_event *e, struct ms_err *err)
{
    struct task_writer *to = ctx;
    struct writer *w = to->w;
    const struct link key = {.process = to->track->process, .number = e->size};
    const struct link *l =
        w->links.n != 0 ? bsearch(&key, w->links.p, w->links.n, sizeof key, by_number) : NULL;
    if (l == NULL)
        return MS_OK;
    w->tasks++;
    const int64_t column[] = {e->start_ns,       e->start_ns + e->dur_ns,
                              to->track->device, l->connection,
                              w->tasks,          mstx_tl_process(w->tl, to->track->process)->pid,
                              to->type,          NO_VALUE,
                              to->track->tid,    w->tasks,
                              NO_VALUE};
    for (int c = 0; c < 11; c++)
        ms_stmt_i64(w->add_task, c + 1, column[c]);
    return ms_stmt_run(w->add_task, err);
}

/* The device side of the events that have been written. */
static enum ms_rc put_tasks(struct writer *w, struct ms_err *err)
{
    if (w->links.n == 0)
        return MS_OK;
    qsort(w->links.p, w->links.n, sizeof *w->links.p, by_number);
    struct task_writer to = {.w = w};
    MS_TRY(own_text(w, MS_STR("MsTx"), &to.type, err));
    for (size_t i = 0; i < mstx_tl_track_count(w->tl); i++) {
        to.track = mstx_tl_track(w->tl, i);
        if (to.track->kind == MSTX_TRACK_STREAM)
            MS_TRY(mstx_tl_walk(w->tl, i, NULL, put_task, &to, err));
    }
    return MS_OK;
}

static enum ms_rc put_pair(struct writer *w, const char *sql, int64_t a, int64_t b,
                           struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(w->store, &st, sql, err));
    ms_stmt_i64(st, 1, a);
    ms_stmt_i64(st, 2, b);
    enum ms_rc rc = ms_stmt_run(st, err);
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc put_host(struct writer *w, struct ms_str name, struct ms_err *err)
{
    struct ms_stmt *st;
    char uid[24];
    int n = snprintf(uid, sizeof uid, "%" PRIu64, ms_str_hash(name) >> 1);
    MS_TRY(ms_store_prepare(w->store, &st,
                            "INSERT INTO HOST_INFO SELECT ?1, ?2 WHERE NOT EXISTS"
                            " (SELECT 1 FROM HOST_INFO WHERE hostName = ?2)",
                            err));
    ms_stmt_str(st, 1, (struct ms_str){uid, (uint32_t)n});
    ms_stmt_str(st, 2, name);
    enum ms_rc rc = ms_stmt_run(st, err);
    ms_stmt_free(st);
    return rc;
}

/* The device that a rank marks on: that of its first stream, or 0. */
static uint32_t device_of(const struct mstx_tl *tl, int32_t rank)
{
    for (size_t i = 0; i < mstx_tl_track_count(tl); i++) {
        const struct mstx_track *t = mstx_tl_track(tl, i);
        if (t->kind == MSTX_TRACK_STREAM && mstx_tl_process(tl, t->process)->rank == rank)
            return t->device;
    }
    return 0;
}

/* Has an earlier process had this rank? */
static bool is_new_rank(const struct mstx_tl *tl, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (mstx_tl_process(tl, k)->rank == mstx_tl_process(tl, i)->rank)
            return false;
    }
    return true;
}

static enum ms_rc put_ranks(struct writer *w, int32_t rank, struct ms_err *err)
{
    for (size_t i = 0; i < mstx_tl_process_count(w->tl); i++) {
        const struct mstx_process *p = mstx_tl_process(w->tl, i);
        if (rank != MSTX_ALL_RANKS && p->rank != rank)
            continue;
        MS_TRY(put_host(w, p->host, err));
        if (is_new_rank(w->tl, i))
            MS_TRY(put_pair(w, "INSERT INTO RANK_DEVICE_MAP VALUES(?,?)", p->rank,
                            device_of(w->tl, p->rank), err));
    }
    return MS_OK;
}

static enum ms_rc put_steps(struct writer *w, int32_t rank, struct ms_err *err)
{
    struct ms_stmt *from, *to;
    bool more;
    MS_TRY(ms_store_prepare(mstx_tl_store(w->tl), &from,
                            "SELECT s.number, s.start_ns, s.end_ns FROM steps s JOIN processes p"
                            " ON p.id = s.process WHERE p.rank = ?1 OR ?1 = ?2"
                            " ORDER BY s.start_ns",
                            err));
    enum ms_rc rc = ms_store_prepare(w->store, &to, "INSERT INTO STEP_TIME VALUES(?,?,?)", err);
    ms_stmt_i64(from, 1, rank);
    ms_stmt_i64(from, 2, MSTX_ALL_RANKS);
    if (rc == MS_OK)
        rc = ms_stmt_step(from, &more, err);
    while (rc == MS_OK && more) {
        for (int c = 0; c < 3; c++)
            ms_stmt_i64(to, c + 1, ms_stmt_get_i64(from, c));
        rc = ms_stmt_run(to, err);
        if (rc == MS_OK)
            rc = ms_stmt_step(from, &more, err);
    }
    ms_stmt_free(from);
    ms_stmt_free(to);
    return rc;
}

static enum ms_rc put_all(struct writer *w, int32_t rank, struct ms_err *err)
{
    MS_TRY(ms_store_exec(w->store, schema, err));
    MS_TRY(ms_store_prepare(w->store, &w->add_event,
                            "INSERT INTO MSTX_EVENTS VALUES(?,?,?,?,?,?,?,?,?,?)", err));
    MS_TRY(ms_store_prepare(w->store, &w->add_string, "INSERT INTO STRING_IDS VALUES(?,?)", err));
    MS_TRY(ms_store_prepare(w->store, &w->add_task,
                            "INSERT INTO TASK VALUES(?,?,?,?,?,?,?,?,?,?,?)", err));
    const struct mstx_own_texts texts = {own_text, w};
    MS_TRY(mstx__ascend_comm_new(&w->comm, w->tl, w->store, &texts, err));
    MS_TRY(mstx__merge(w->tl, rank, put_event, w, err));
    MS_TRY(put_tasks(w, err));
    if (w->comm != NULL)
        MS_TRY(mstx__ascend_comm_finish(w->comm, err));
    MS_TRY(put_pair(w, "INSERT INTO SESSION_TIME_INFO VALUES(?,?)", w->start, w->end, err));
    MS_TRY(put_ranks(w, rank, err));
    return put_steps(w, rank, err);
}

static enum ms_rc count_texts(struct mstx_tl *tl, int64_t *next, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st, "SELECT ifnull(max(id), 0) + 1 FROM strings",
                            err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK)
        *next = ms_stmt_get_i64(st, 0);
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc write_db(struct mstx_tl *tl, const char *path, int32_t rank, struct ms_err *err)
{
    struct writer w = {.tl = tl, .last_domain = UINT32_MAX, .arena = ms_arena_new((size_t)1 << 34)};
    if (w.arena == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = count_texts(tl, &w.first_own_id, err);
    if (rc == MS_OK)
        rc = ms_store_create(&w.store, path, err);
    if (rc == MS_OK)
        rc = put_all(&w, rank, err);
    if (rc == MS_OK)
        rc = mstx__tl_check(tl, err);
    ms_stmt_free(w.add_event);
    ms_stmt_free(w.add_string);
    ms_stmt_free(w.add_task);
    ms_vec_free(&w.links);
    ms_vec_free(&w.known);
    mstx__ascend_comm_free(w.comm);
    ms_map_free(&w.own);
    ms_arena_free(w.arena);
    if (rc == MS_OK)
        return ms_store_commit(w.store, err);
    ms_store_close(w.store);
    return rc;
}

static enum ms_rc write_rank(struct mstx_tl *tl, const char *dir, int32_t rank, struct ms_err *err)
{
    char name[64];
    if (rank >= 0)
        snprintf(name, sizeof name, "ascend_pytorch_profiler_%" PRId32 ".db", rank);
    else
        snprintf(name, sizeof name, "ascend_pytorch_profiler.db");
    char *path = ms_path_join(dir, name);
    enum ms_rc rc = path != NULL ? write_db(tl, path, rank, err) : ms_no_memory(err);
    ms_free(path);
    return rc;
}

enum ms_rc mstx_export_ascend_db(struct mstx_tl *tl, const char *path, struct ms_err *err)
{
    if (ms_str_ends(ms_str_of(path), MS_STR(".db")))
        return write_db(tl, path, MSTX_ALL_RANKS, err);
    for (size_t i = 0; i < mstx_tl_process_count(tl); i++) {
        if (is_new_rank(tl, i))
            MS_TRY(write_rank(tl, path, mstx_tl_process(tl, i)->rank, err));
    }
    return MS_OK;
}
