/* SPDX-License-Identifier: MIT
 *
 * to_ascend: writes a database like Ascend's profilers, for MindStudio Insight and msprof-analyze.
 *
 * Readers join MSTX_EVENTS with STRING_IDS for texts and with TASK for the device side; an event
 * without a device side has no TASK row, but has a connectionId of its own.  Times are Unix
 * nanoseconds, globalTid is (pid << 32) | tid.
 */
#include "mstx/foreign/to_ascend.h"

#include "mstx/foreign/export.h"

#include "mstx/foreign/sql/to_ascend.h"
#include "mstx/foreign/to_ascend_comm.h"
#include "mstx/foreign/to_ascend_tasks.h"

#include "probe/base/assert.h"
#include "probe/base/map.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"
#include "probe/base/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const int64_t NO_VALUE = 4294967295, FIRST_CONNECTION = 4000000002;

/* Link between an event and its device side, which have the same number within their process. */
struct link {
    uint32_t process;
    uint64_t number;
    int64_t connection;
};

struct writer {
    struct mstx_tl *tl;
    struct ms_store *store;
    struct ms_stmt *add_event, *add_string, *add_task;
    MS_VEC(uint8_t) known; /* by text id: 1 when the text has a row in STRING_IDS */
    bool is_profiled;      /* the rank comes from traces of PyTorch's profiler */
    int64_t events, first_own_id;
    int64_t start, end;
    uint32_t last_domain; /* track whose domain has domain_id */
    int64_t domain_id;
    struct ms_map own; /* texts without an id in run.db; index + first_own_id is the id */
    struct ms_arena *arena;
    struct mstx_ascend_comm *comm; /* NULL: the run has no communication calls */
    MS_VEC(struct link) links;     /* of events with a device side, in order of connection */
    int64_t tasks;
};

/* ---- texts ------------------------------------------------------------------ */

static enum ms_rc add_string_row(struct writer *w, int64_t id, struct ms_str text,
                                 struct ms_err *err)
{
    ms_stmt_i64(w->add_string, 1, id);
    ms_stmt_str(w->add_string, 2, text);
    return ms_stmt_run(w->add_string, err);
}

static enum ms_rc ensure_text(struct writer *w, uint32_t id, struct ms_err *err)
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
    ms_assert(id < w->known.n);
    w->known.p[id] = 1;
    return add_string_row(w, id, text, err);
}

/* Finds or adds a text without an id in run.db; such texts get ids after all ids of run.db. */
static enum ms_rc add_own_text(void *ctx, struct ms_str text, int64_t *id, struct ms_err *err)
{
    struct writer *w = ctx;
    bool added;
    uint32_t at = ms_map_put_copy(&w->own, text, w->arena, &added);
    if (at == MS_MAP_NONE)
        return ms_no_memory(err);
    *id = w->first_own_id + at;
    return added ? add_string_row(w, *id, text, err) : MS_OK;
}

/* Finds the id of the domain; the track, not the event, has the text of the domain. */
static enum ms_rc find_domain(struct writer *w, size_t track, struct ms_err *err)
{
    if (w->last_domain == track)
        return MS_OK;
    w->last_domain = (uint32_t)track;
    return add_own_text(w, mstx_tl_track(w->tl, track)->domain, &w->domain_id, err);
}

/* Finds the text of an event. A communication call that a hook recorded gets the official text. */
static enum ms_rc find_message(struct writer *w, const struct mstx_track *t,
                               const struct mstx_event *e, int64_t *id, struct ms_err *err)
{
    *id = -1;
    if (w->comm != NULL && ms_str_eq(t->domain, MS_STR(MSTX_COMM_DOMAIN)))
        MS_TRY(mstx__ascend_comm_event(w->comm, t, e, FIRST_CONNECTION + w->events, id, err));
    if (*id >= 0)
        return MS_OK;
    *id = e->name;
    return ensure_text(w, e->name, err);
}

/* ---- rows ------------------------------------------------------------------- */

static bool keep_link(struct writer *w, uint32_t process, uint64_t number)
{
    struct link *l = ms_vec_push(&w->links);
    if (l != NULL)
        *l = (struct link){process, number, FIRST_CONNECTION + w->events};
    return l != NULL;
}

/* Adds the row of an event whose message and domain have been found. */
static enum ms_rc write_event_row(struct writer *w, const struct mstx_track *t,
                                  const struct mstx_event *e, int64_t message, struct ms_err *err)
{
    static const int64_t type_of[] = {
        [MSTX_EV_MARK] = 0, [MSTX_EV_PUSHPOP] = 1, [MSTX_EV_RANGE] = 2};
    const int64_t pid = mstx_tl_process(w->tl, t->process)->pid;
    int64_t end_tid = e->end_tid != 0 ? e->end_tid : t->tid;
    const int64_t column[] = {e->start_ns,
                              e->start_ns + e->dur_ns,
                              type_of[e->kind],
                              NO_VALUE,
                              NO_VALUE,
                              message,
                              mstx__global_tid(pid, t->tid),
                              mstx__global_tid(pid, end_tid),
                              w->domain_id,
                              FIRST_CONNECTION + w->events};
    for (int c = 0; c < 10; c++)
        ms_stmt_i64(w->add_event, c + 1, column[c]);
    if (w->events++ == 0)
        w->start = e->start_ns;
    w->end = column[1] > w->end ? column[1] : w->end;
    return ms_stmt_run(w->add_event, err);
}

static enum ms_rc add_event_row(void *ctx, size_t track, const struct mstx_event *e,
                                struct ms_err *err)
{
    struct writer *w = ctx;
    const struct mstx_track *t = mstx_tl_track(w->tl, track);
    int64_t message;
    if (e->kind > MSTX_EV_PUSHPOP)
        return MS_OK;
    MS_TRY(find_message(w, t, e, &message, err));
    MS_TRY(find_domain(w, track, err));
    if (e->size != 0 && !keep_link(w, t->process, e->size))
        return ms_no_memory(err);
    return write_event_row(w, t, e, message, err);
}

/* Adds a mark of the user from a profiler's trace, or a call of a module, which is a range of the
 * domain Module. */
static enum ms_rc add_profiled_row(void *ctx, size_t track, const struct mstx_event *e,
                                   struct ms_err *err)
{
    struct writer *w = ctx;
    const struct mstx_track *t = mstx_tl_track(w->tl, track);
    struct mstx_event copy = *e;
    struct ms_str module;
    int64_t message = e->name;
    if (mstx__is_module(w->tl, e, &module)) {
        copy.kind = MSTX_EV_RANGE;
        w->last_domain = UINT32_MAX;
        MS_TRY(add_own_text(w, MS_STR("Module"), &w->domain_id, err));
        MS_TRY(add_own_text(w, module, &message, err));
        return write_event_row(w, t, &copy, message, err);
    }
    if (e->kind > MSTX_EV_PUSHPOP || mstx__is_api(w->tl, e) ||
        ms_str_is(t->domain, MSTX_TOOL_DOMAIN))
        return MS_OK;
    MS_TRY(ensure_text(w, e->name, err));
    MS_TRY(find_domain(w, track, err));
    return write_event_row(w, t, e, message, err);
}

static int by_number(const void *pa, const void *pb)
{
    const struct link *a = pa, *b = pb;
    return MS_ORDER(a->process, b->process, MS_ORDER(a->number, b->number, 0));
}

struct task_writer {
    struct writer *w;
    const struct mstx_track *track;
    int64_t type; /* text "MsTx" */
};

static enum ms_rc add_task_row(void *ctx, const struct mstx_event *e, struct ms_err *err)
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

/* Adds the device sides of the events that have been written. */
static enum ms_rc add_tasks(struct writer *w, struct ms_err *err)
{
    if (w->links.n == 0)
        return MS_OK;
    qsort(w->links.p, w->links.n, sizeof *w->links.p, by_number);
    struct task_writer to = {.w = w};
    MS_TRY(add_own_text(w, MS_STR("MsTx"), &to.type, err));
    for (size_t i = 0; i < mstx_tl_track_count(w->tl); i++) {
        to.track = mstx_tl_track(w->tl, i);
        if (to.track->kind == MSTX_TRACK_STREAM)
            MS_TRY(mstx_tl_walk(w->tl, i, NULL, add_task_row, &to, err));
    }
    return MS_OK;
}

static enum ms_rc add_pair(struct writer *w, const char *sql, int64_t a, int64_t b,
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

struct ms_str mstx__ascend_host_uid(struct ms_str name, char uid[MSTX_HOST_UID])
{
    const int n = snprintf(uid, MSTX_HOST_UID, "%" PRIu64, ms_str_hash(name) >> 1);
    return (struct ms_str){uid, (uint32_t)n};
}

static enum ms_rc add_host(struct writer *w, struct ms_str name, struct ms_err *err)
{
    struct ms_stmt *st;
    char uid[MSTX_HOST_UID];
    MS_TRY(ms_store_prepare(w->store, &st, sql_add_host, err));
    ms_stmt_str(st, 1, mstx__ascend_host_uid(name, uid));
    ms_stmt_str(st, 2, name);
    enum ms_rc rc = ms_stmt_run(st, err);
    ms_stmt_free(st);
    return rc;
}

/* Finds the device of a rank: that of its first stream, or 0. */
static uint32_t find_device(const struct mstx_tl *tl, int32_t rank)
{
    for (size_t i = 0; i < mstx_tl_track_count(tl); i++) {
        const struct mstx_track *t = mstx_tl_track(tl, i);
        if (t->kind == MSTX_TRACK_STREAM && mstx_tl_process(tl, t->process)->rank == rank)
            return t->device;
    }
    return 0;
}

/* Tells whether no earlier process has this rank. */
static bool is_new_rank(const struct mstx_tl *tl, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (mstx_tl_process(tl, k)->rank == mstx_tl_process(tl, i)->rank)
            return false;
    }
    return true;
}

static enum ms_rc add_ranks(struct writer *w, int32_t rank, struct ms_err *err)
{
    for (size_t i = 0; i < mstx_tl_process_count(w->tl); i++) {
        const struct mstx_process *p = mstx_tl_process(w->tl, i);
        if (rank != MSTX_ALL_RANKS && p->rank != rank)
            continue;
        MS_TRY(add_host(w, p->host, err));
        if (is_new_rank(w->tl, i))
            MS_TRY(add_pair(w, sql_add_rank, p->rank, find_device(w->tl, p->rank), err));
    }
    return MS_OK;
}

static enum ms_rc add_steps(struct writer *w, int32_t rank, struct ms_err *err)
{
    struct ms_stmt *from, *to;
    MS_TRY(mstx__ascend_steps(w->tl, rank, &from, err));
    enum ms_rc rc = ms_store_prepare(w->store, &to, sql_add_step, err);
    while (ms_stmt_next(from, &rc, err)) {
        for (int c = 0; c < 3; c++)
            ms_stmt_i64(to, c + 1, ms_stmt_get_i64(from, c));
        rc = ms_stmt_run(to, err);
    }
    ms_stmt_free(from);
    ms_stmt_free(to);
    return rc;
}

/* Adds the calls and marks that are wanted. The times of calls with a device side come from the
 * marks. */
static enum ms_rc add_events(struct writer *w, const struct mstx_ascend_how *how,
                             struct ms_err *err)
{
    const bool marks = how->marks || (w->comm != NULL && mstx__rank_has_streams(w->tl, how->rank));
    if (!marks)
        return w->comm != NULL ? mstx__ascend_comm_all(w->comm, FIRST_CONNECTION, err) : MS_OK;
    MS_TRY(mstx__merge(w->tl, how->rank, add_event_row, w, err));
    MS_TRY(add_tasks(w, err));
    return w->comm != NULL && w->tasks != 0 ? mstx__ascend_comm_finish(w->comm, err) : MS_OK;
}

/* Adds the marks that are wanted, and what the device, the runtime and the framework did. */
static enum ms_rc add_profile(struct writer *w, const struct mstx_ascend_groups *groups,
                              const struct mstx_ascend_how *how, struct ms_err *err)
{
    const struct mstx_own_texts texts = {add_own_text, w};
    if (how->marks)
        MS_TRY(mstx__merge(w->tl, how->rank, add_profiled_row, w, err));
    if (w->comm != NULL)
        MS_TRY(mstx__ascend_comm_all(w->comm, FIRST_CONNECTION, err));
    if (!how->tasks)
        return MS_OK;
    return mstx__ascend_tasks_write(w->tl, groups, how->rank, w->store, &texts, &w->tasks, err);
}

static enum ms_rc fill_db(struct writer *w, const struct mstx_ascend_groups *groups,
                          const struct mstx_ascend_how *how, struct ms_err *err)
{
    MS_TRY(ms_store_exec(w->store, sql_create_tables, err));
    MS_TRY(ms_store_prepare(w->store, &w->add_event, sql_add_event, err));
    MS_TRY(ms_store_prepare(w->store, &w->add_string, sql_add_string, err));
    MS_TRY(ms_store_prepare(w->store, &w->add_task, sql_add_task, err));
    MS_TRY(mstx__ascend_groups_write(w->tl, how->rank, w->store, err));
    const struct mstx_own_texts texts = {add_own_text, w};
    if (how->calls)
        MS_TRY(mstx__ascend_comm_new(&w->comm, w->tl, groups, how, w->store, &texts, err));
    MS_TRY(mstx__rank_is_profiled(w->tl, how->rank) ? add_profile(w, groups, how, err)
                                                    : add_events(w, how, err));
    MS_TRY(add_pair(w, sql_add_session, w->start, w->end, err));
    MS_TRY(add_ranks(w, how->rank, err));
    return add_steps(w, how->rank, err);
}

static enum ms_rc find_free_text_id(struct mstx_tl *tl, int64_t *next, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st, sql_find_free_id, err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK)
        *next = ms_stmt_get_i64(st, 0);
    ms_stmt_free(st);
    return rc;
}

/* Fills a database that has been created. */
static enum ms_rc write_rank(struct ms_store *store, struct mstx_tl *tl,
                             const struct mstx_ascend_groups *groups,
                             const struct mstx_ascend_how *how, struct ms_err *err)
{
    struct writer w = {.tl = tl,
                       .store = store,
                       .last_domain = UINT32_MAX,
                       .arena = ms_arena_new((size_t)1 << 34)};
    if (w.arena == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = find_free_text_id(tl, &w.first_own_id, err);
    if (rc == MS_OK)
        rc = fill_db(&w, groups, how, err);
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
    return rc;
}

enum ms_rc mstx__ascend_rank_db(struct ms_store **out, struct mstx_tl *tl,
                                const struct mstx_ascend_groups *groups,
                                const struct mstx_ascend_how *how, struct ms_err *err)
{
    MS_TRY(ms_store_scratch(out, err));
    enum ms_rc rc = ms_store_exec(*out, "BEGIN", err);
    if (rc == MS_OK)
        rc = write_rank(*out, tl, groups, how, err);
    if (rc == MS_OK)
        rc = ms_store_exec(*out, "COMMIT", err);
    if (rc == MS_OK)
        return MS_OK;
    ms_store_close(*out);
    *out = NULL;
    return rc;
}

static enum ms_rc write_file(struct mstx_tl *tl, const struct mstx_ascend_groups *groups,
                             int32_t rank, const char *path, struct ms_err *err)
{
    const struct mstx_ascend_how how = {.rank = rank, .calls = true, .marks = true, .tasks = true};
    struct ms_store *store;
    MS_TRY(ms_store_create(&store, path, err));
    enum ms_rc rc = write_rank(store, tl, groups, &how, err);
    if (rc == MS_OK)
        return ms_store_commit(store, err);
    ms_store_close(store);
    return rc;
}

static enum ms_rc write_rank_file(struct mstx_tl *tl, const struct mstx_ascend_groups *groups,
                                  int32_t rank, const char *dir, struct ms_err *err)
{
    char name[64];
    if (rank >= 0)
        snprintf(name, sizeof name, "ascend_pytorch_profiler_%" PRId32 ".db", rank);
    else
        snprintf(name, sizeof name, "ascend_pytorch_profiler.db");
    char *path = ms_path_join(dir, name);
    enum ms_rc rc = path != NULL ? write_file(tl, groups, rank, path, err) : ms_no_memory(err);
    ms_free(path);
    return rc;
}

enum ms_rc mstx_export_ascend_db(struct mstx_tl *tl, const char *path, struct ms_err *err)
{
    struct mstx_ascend_groups *groups;
    MS_TRY(mstx__ascend_groups_read(&groups, tl, err));
    enum ms_rc rc = MS_OK;
    if (ms_str_ends(ms_str_of(path), MS_STR(".db"))) {
        rc = write_file(tl, groups, MSTX_ALL_RANKS, path, err);
    } else if (mstx_tl_process_count(tl) == 0) {
        rc = ms_fail(err, MS_E_NOTFOUND, "the run has no processes, of which each would be a file");
    } else {
        for (size_t i = 0; i < mstx_tl_process_count(tl) && rc == MS_OK; i++) {
            if (is_new_rank(tl, i))
                rc = write_rank_file(tl, groups, mstx_tl_process(tl, i)->rank, path, err);
        }
    }
    mstx__ascend_groups_free(groups);
    return rc;
}
