/* SPDX-License-Identifier: MIT
 *
 * tl_import: a run directory to run.db.
 *
 * Two passes over the processes: the first collects calibration, as all
 * processes of a host share one clock; the second turns records into events,
 * one process at a time, so memory is bounded by the largest process.
 */
#include "mstx/tl_import.h"

#include "mstx/cl_lanes.h"
#include "mstx/tl_comm_said.h"
#include "mstx/tl_hang.h"
#include "mstx/tl_meet.h"

#include "mstx/tl_lanes.h"
#include "mstx/tl_schema.h"

#include "probe/base/mem.h"
#include "probe/base/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A call that the program marked with a text. */
struct said_call {
    struct mstx_event event;
    uint32_t tid;
};

struct import {
    struct mstx_writer *w;
    struct mstx_comm_writer *comm;
    struct mstx_cluster cluster;
    struct mstx_cl_names names;
    bool is_summary;               /* no timeline */
    MS_VEC(struct said_call) said; /* of the process at hand */
    struct mstx_clocks clocks;
    struct mstx_meetings meetings; /* only when there are several hosts */
    struct mstx_procs procs;
    struct mstx_problems problems;
    struct ms_err first; /* problem */
    bool is_quiet;       /* opening files again finds the same problems */
    int32_t world_size;
    size_t reference; /* the clock of rank 0's host */
    struct mstx_import_result *result;
};

/* ---- problems and sources --------------------------------------------------- */

static void note_problem(void *ctx, const char *file, struct ms_err *err)
{
    struct import *im = ctx;
    if (im->is_quiet)
        return;
    mstx__writer_problem(im->w, file, err->msg);
    if (im->first.rc == MS_OK)
        im->first = *err;
}

void mstx__import_source(struct mstx_writer *w, const char *path)
{
    struct stat st;
    struct ms_stmt *add = NULL;
    struct ms_err err = {0};
    if (mstx__writer_bad(w) || stat(path, &st) != 0)
        return;
    enum ms_rc rc = ms_store_prepare(mstx__writer_store(w), &add,
                                     "INSERT OR REPLACE INTO sources VALUES(?,?,?)", &err);
    if (rc == MS_OK) {
        ms_stmt_str(add, 1, ms_str_of(path));
        ms_stmt_i64(add, 2, st.st_size);
        ms_stmt_i64(add, 3, (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec);
        rc = ms_stmt_run(add, &err);
    }
    if (rc != MS_OK)
        mstx__writer_fail(w, &err);
    ms_stmt_free(add);
}

/* ---- first pass: clocks ----------------------------------------------------- */

static enum ms_rc learn_clock(struct import *im, struct mstx_proc *p, struct ms_err *err)
{
    MS_TRY(mstx__proc_open(p, &im->problems, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < p->seg.n && rc == MS_OK; i++) {
        rc = mstx__clock_add(&im->clocks, &p->seg.p[i], err);
        if (rc == MS_OK && p->seg.p[i].head.rank == 0)
            im->reference =
                (size_t)(mstx__clock_of(&im->clocks, &p->seg.p[i].head) - im->clocks.host.p);
        mstx__import_source(im->w, p->seg.p[i].path);
        im->result->files++;
    }
    if (p->has_strings)
        mstx__import_source(im->w, p->strings.path);
    mstx__proc_close(p);
    return rc;
}

static void write_knots(struct import *im, const struct mstx_host_clock *c, struct ms_stmt *add,
                        struct ms_err *err)
{
    char host[40];
    for (int i = 0; i < 16; i++)
        snprintf(host + 2 * i, 3, "%02x", c->boot_id[i]);
    for (size_t i = 0; i < c->knot.n; i++) {
        const struct mstx_knot *k = &c->knot.p[i];
        const int64_t column[] = {c->clock, (int64_t)k->ticks, k->mono_ns, k->real_ns,
                                  (int64_t)k->width};
        ms_stmt_str(add, 1, ms_str_of(host));
        for (int n = 0; n < 5; n++)
            ms_stmt_i64(add, n + 2, column[n]);
        if (ms_stmt_run(add, err) != MS_OK)
            mstx__writer_fail(im->w, err);
    }
}

static void write_apart(struct import *im, const struct mstx_host_clock *c, struct ms_stmt *add,
                        struct ms_err *err)
{
    static const char *const method[] = {
        [MSTX_APART_PINGS] = "pings",
        [MSTX_APART_MEETINGS] = "collectives",
        [MSTX_APART_CORRECTED] = "pings, corrected by collectives",
    };
    char host[40];
    for (int i = 0; i < 16; i++)
        snprintf(host + 2 * i, 3, "%02x", c->boot_id[i]);
    for (size_t i = 0; i < c->apart.n; i++) {
        const struct mstx_apart *a = &c->apart.p[i], *last = &c->apart.p[c->apart.n - 1];
        const double run = (double)(last->at_ns - c->apart.p[0].at_ns);
        ms_stmt_str(add, 1, ms_str_of(host));
        ms_stmt_i64(add, 2, a->at_ns);
        ms_stmt_i64(add, 3, a->offset_ns);
        ms_stmt_i64(add, 4, a->uncertainty_ns);
        ms_stmt_f64(add, 5,
                    run > 0 ? 1e6 * (double)(last->offset_ns - c->apart.p[0].offset_ns) / run : 0);
        ms_stmt_str(add, 6, ms_str_of(method[a->method]));
        if (ms_stmt_run(add, err) != MS_OK)
            mstx__writer_fail(im->w, err);
    }
}

/* Calls of one process that all ranks of a communicator leave together. */
static bool list_meetings(struct import *im, const struct mstx_lanes *l, struct mstx_texts *t,
                          uint32_t host)
{
    struct mstx_host_clock *c = &im->clocks.host.p[host];
    for (size_t i = 0; i < l->lane.n; i++) {
        const struct mstx_lane *lane = &l->lane.p[i];
        for (size_t k = 0; lane->kind == MSTX_TRACK_THREAD && k < lane->ev.n; k++) {
            const struct mstx_raw *raw = &lane->ev.p[k];
            const uint32_t at = raw->extra != 0 ? l->extra.p[raw->extra - 1].comm : 0;
            const struct mstx_rec_comm *r = at != 0 ? &l->comm.p[at - 1].rec : NULL;
            struct mstx_comm_known g;
            if (r == NULL || raw->end == 0 || !mstx__meeting_counts(r))
                continue;
            const struct mstx_keyed *key = mstx__texts_find(t, MSTX_GROUP, 0, r->group);
            if (key == NULL || !mstx__comm_group_parse(key->text, &g))
                continue;
            const struct mstx_meeting m = {.uid = g.uid,
                                           .seq = r->seq,
                                           .host = host,
                                           .start = mstx__clock_steady(c, raw->begin),
                                           .end = mstx__clock_steady(c, raw->end),
                                           .op = r->op};
            if (!mstx__meeting_add(&im->meetings, &m))
                return false;
        }
    }
    return true;
}

static enum ms_rc read_lanes(struct mstx_proc *p, struct mstx_texts *t, struct mstx_lanes *l,
                             struct ms_err *err)
{
    MS_TRY(mstx__lanes_new(l, t, err));
    for (size_t i = 0; i < p->seg.n; i++) {
        bool is_first = i == 0 || p->seg.p[i - 1].head.ring != p->seg.p[i].head.ring;
        mstx__lanes_read(l, &p->seg.p[i], is_first);
    }
    mstx__lanes_finish(l);
    return MS_OK;
}

static enum ms_rc meetings_of(struct import *im, struct mstx_proc *p, struct ms_err *err)
{
    struct mstx_texts texts;
    struct mstx_lanes lanes;
    MS_TRY(mstx__proc_open(p, &im->problems, err));
    enum ms_rc rc = MS_OK;
    if (p->seg.n != 0)
        rc = mstx__texts_read(&texts, p, im->w, &im->problems, err);
    if (p->seg.n != 0 && rc == MS_OK) {
        rc = read_lanes(p, &texts, &lanes, err);
        if (rc == MS_OK) {
            const struct mstx_host_clock *c = mstx__clock_of(&im->clocks, &p->seg.p[0].head);
            if (lanes.no_memory ||
                !list_meetings(im, &lanes, &texts, (uint32_t)(c - im->clocks.host.p)))
                rc = ms_no_memory(err);
            mstx__lanes_free(&lanes);
        }
        mstx__texts_free(&texts);
    }
    mstx__proc_close(p);
    return rc;
}

/* Of several hosts the collectives tell how their clocks stand, or whether what was measured is
 * true. The events must be read once more for that. */
static enum ms_rc meet(struct import *im, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    im->is_quiet = true;
    for (size_t i = 0; rc == MS_OK && i < im->procs.list.n; i++)
        rc = meetings_of(im, &im->procs.list.p[i], err);
    im->is_quiet = false;
    if (rc == MS_OK)
        rc = mstx__meetings_align(&im->meetings, &im->clocks, im->reference, err);
    ms_vec_free(&im->meetings.list);
    return rc;
}

/* The clock of rank 0's host is the one that all others follow. */
static void align_clocks(struct import *im)
{
    struct ms_err err = {0};
    struct ms_stmt *add = NULL;
    if (im->reference >= im->clocks.host.n || mstx__writer_bad(im->w))
        return;
    mstx__clocks_align(&im->clocks, &im->clocks.host.p[im->reference]);
    if ((im->clocks.host.n > 1 && meet(im, &err) != MS_OK) ||
        ms_store_prepare(mstx__writer_store(im->w), &add,
                         "INSERT INTO clock_offsets VALUES(?,?,?,?,?,?)", &err) != MS_OK) {
        mstx__writer_fail(im->w, &err);
        return;
    }
    for (size_t i = 0; i < im->clocks.host.n; i++)
        write_apart(im, &im->clocks.host.p[i], add, &err);
    ms_stmt_free(add);
}

static void fit_clocks(struct import *im)
{
    struct ms_err err = {0};
    struct ms_stmt *add = NULL;
    if (ms_store_prepare(mstx__writer_store(im->w), &add,
                         "INSERT INTO clock_sync VALUES(?,?,?,?,?,?)", &err) != MS_OK) {
        mstx__writer_fail(im->w, &err);
        return;
    }
    for (size_t i = 0; i < im->clocks.host.n; i++) {
        if (!mstx__clock_fit(&im->clocks.host.p[i]))
            mstx__writer_problem(im->w, "", "no usable calibration: times of a host are guessed");
        write_knots(im, &im->clocks.host.p[i], add, &err);
    }
    ms_stmt_free(add);
    align_clocks(im);
}

/* ---- second pass: events ---------------------------------------------------- */

/* Of a flight recorder only the promised window is shown: files are reused whole. */
static int64_t oldest_shown(const struct mstx_proc *p, struct mstx_host_clock *c, uint64_t newest)
{
    uint64_t flight_ns = 0;
    for (size_t i = 0; i < p->seg.n; i++) {
        if (p->seg.p[i].head.flight_ns > flight_ns)
            flight_ns = p->seg.p[i].head.flight_ns;
    }
    if (flight_ns == 0 || flight_ns > (uint64_t)INT64_MAX / 2)
        return INT64_MIN;
    return mstx__clock_ns(c, newest) - (int64_t)flight_ns;
}

static struct mstx_event event_of(const struct mstx_lanes *l, const struct mstx_lane *lane,
                                  struct mstx_host_clock *c, const struct mstx_raw *raw)
{
    struct mstx_event e = {.start_ns = mstx__lane_ns(lane, c, raw->begin),
                           .id = raw->id,
                           .name = raw->name,
                           .count = 1,
                           .kind = raw->kind,
                           .flags = raw->flags};
    if (raw->end > raw->begin)
        e.dur_ns = mstx__lane_ns(lane, c, raw->end) - e.start_ns;
    if (raw->extra != 0) {
        const struct mstx_extra *x = &l->extra.p[raw->extra - 1];
        e.arg = x->arg;
        e.size = x->size;
        e.args = x->args;
        e.end_tid = x->end_tid;
    }
    return e;
}

/* One row for an event that is a communication call. */
static void write_call(struct import *im, const struct mstx_lanes *l, const struct mstx_lane *lane,
                       const struct mstx_raw *raw, const struct mstx_event *e)
{
    const uint32_t at = l->extra.p[raw->extra - 1].comm;
    struct ms_err err = {0};
    if (at == 0 || lane->kind != MSTX_TRACK_THREAD || l->comm.p[at - 1].rec.type == 0)
        return;
    if (mstx__comm_writer_call(im->comm, &l->comm.p[at - 1], e, lane->tid,
                               mstx__writer_text_of(im->w, e->name), &err) != MS_OK)
        mstx__writer_fail(im->w, &err);
}

/* Frameworks mark calls themselves where there is no hook for them: kept until all threads are
 * through, as their order tells their number. */
static void keep_said(struct import *im, const struct mstx_lane *lane, const struct mstx_event *e)
{
    if (e->kind > MSTX_EV_PUSHPOP || e->kind == MSTX_EV_MARK ||
        !mstx__comm_is_said(mstx__writer_text_of(im->w, e->name)))
        return;
    struct said_call *slot = ms_vec_push(&im->said);
    struct ms_err err = {0};
    if (slot != NULL)
        *slot = (struct said_call){*e, lane->tid};
    else if (ms_no_memory(&err) != MS_OK)
        mstx__writer_fail(im->w, &err);
}

static int by_start(const void *pa, const void *pb)
{
    const struct said_call *a = pa, *b = pb;
    return a->event.start_ns < b->event.start_ns ? -1 : a->event.start_ns > b->event.start_ns;
}

static void write_said(struct import *im)
{
    struct ms_err err = {0};
    if (im->said.n != 0)
        qsort(im->said.p, im->said.n, sizeof *im->said.p, by_start);
    for (size_t i = 0; i < im->said.n && !mstx__writer_bad(im->w); i++) {
        const struct said_call *c = &im->said.p[i];
        if (mstx__comm_writer_said(im->comm, mstx__writer_text_of(im->w, c->event.name), &c->event,
                                   c->tid, &err) != MS_OK)
            mstx__writer_fail(im->w, &err);
    }
    im->said.n = 0;
}

/* Of a communicator that was named later the newest name counts. */
static void write_groups(struct import *im, const struct mstx_proc *p, const struct mstx_texts *t)
{
    struct ms_err err = {0};
    for (size_t i = 0; i < t->keyed.n; i++) {
        const struct mstx_keyed *k = &t->keyed.p[i];
        const bool is_newest = i + 1 == t->keyed.n || k[1].kind != k->kind || k[1].key != k->key;
        struct mstx_comm_known g;
        if (k->kind != MSTX_GROUP || !is_newest)
            continue;
        if (!mstx__comm_group_parse(k->text, &g))
            mstx__writer_problem(im->w, p->dir, "the description of a communicator is damaged");
        else if (mstx__comm_writer_group(im->comm, (uint32_t)k->key, &g, &err) != MS_OK)
            mstx__writer_fail(im->w, &err);
        else
            mstx__cluster_group(&im->cluster, mstx__comm_writer_id(im->comm, (uint32_t)k->key),
                                g.name, g.size, g.world, g.listed);
    }
}

static void write_lane(struct import *im, const struct mstx_lanes *l, struct mstx_host_clock *c,
                       struct mstx_lane *lane, uint32_t process, int64_t oldest)
{
    const struct mstx_track_row row = {
        .process = process,
        .kind = lane->kind,
        .tid = lane->tid,
        .device = lane->device,
        .domain = mstx__writer_text_of(im->w, lane->domain),
        .name = mstx__writer_text_of(im->w, lane->name),
        .unit = mstx__writer_text_of(im->w, lane->unit),
    };
    const bool is_comm =
        lane->kind == MSTX_TRACK_THREAD && ms_str_eq(row.domain, MS_STR(MSTX_COMM_DOMAIN));
    mstx__writer_track_begin(im->w, &row);
    for (size_t i = 0; i < lane->ev.n; i++) {
        struct mstx_event e = event_of(l, lane, c, &lane->ev.p[i]);
        if (e.start_ns + e.dur_ns < oldest)
            continue;
        mstx__writer_event(im->w, &e);
        const uint32_t extra = lane->ev.p[i].extra;
        if (extra != 0 && l->extra.p[extra - 1].comm != 0)
            write_call(im, l, lane, &lane->ev.p[i], &e);
        else if (is_comm)
            keep_said(im, lane, &e);
    }
    mstx__writer_track_end(im->w);
    ms_vec_free(&lane->ev);
}

/* Signal 0 asks whether the process is there, which can be told on its own host alone. */
static const char *state_of(const struct mstx_proc *p)
{
    char host[sizeof p->seg.p[0].head.host] = "";
    bool closed = true;
    for (size_t i = 0; i < p->seg.n; i++)
        closed &= (p->seg.p[i].head.state & MSTX_SEG_CLOSED) != 0;
    if (closed)
        return "finished";
    if (gethostname(host, sizeof host - 1) != 0 || strcmp(host, p->seg.p[0].head.host) != 0)
        return "not finished";
    pid_t pid = (pid_t)p->seg.p[0].head.pid;
    bool there = pid > 0 && (kill(pid, 0) == 0 || errno == EPERM);
    return there ? "running" : "killed";
}

/* A record costs one reading of the clock and about as much again for the rest. */
static int64_t cost_of(const struct mstx_texts *t, const struct mstx_lanes *l,
                       struct mstx_host_clock *c)
{
    uint64_t ticks;
    if (__builtin_mul_overflow(2 * l->records, t->clock_cost, &ticks) || ticks > INT64_MAX)
        return 0;
    uint64_t from = c->knot.n != 0 ? c->knot.p[0].ticks : 0;
    return mstx__clock_ns(c, from + ticks) - mstx__clock_ns(c, from);
}

static void write_process(struct import *im, const struct mstx_proc *p, const struct mstx_texts *t,
                          const struct mstx_lanes *l, struct mstx_host_clock *c, uint32_t id)
{
    const struct mstx_seg *h = &p->seg.p[0].head;
    uint64_t events = 0;
    for (size_t i = 0; i < l->lane.n; i++)
        events += l->lane.p[i].ev.n;
    struct mstx_process_row row = {
        .rank = h->rank,
        .pid = h->pid,
        .ppid = h->ppid,
        .host = ms_str_of(h->host),
        .name = mstx__writer_text_of(im->w, t->process_name),
        .dir = ms_str_of(p->dir),
        .tool = {h->tool, (uint32_t)strnlen(h->tool, sizeof h->tool)},
        .state = ms_str_of(state_of(p)),
        .start_ns = h->start_ns,
        .end_ns = mstx__clock_ns(c, l->newest),
        .records = l->records,
        .events = events,
        .unfinished = l->unfinished,
        .dropped = l->dropped,
        .cost_ns = cost_of(t, l, c),
    };
    mstx__writer_process(im->w, id, &row);
}

static void take_lanes(struct import *im, struct mstx_proc *p, struct mstx_texts *t,
                       struct mstx_lanes *l)
{
    struct mstx_host_clock *c = mstx__clock_of(&im->clocks, &p->seg.p[0].head);
    if (l->bad != 0) {
        char text[96];
        snprintf(text, sizeof text, "%" PRIu64 " records are of a type this program does not know",
                 l->bad);
        mstx__writer_problem(im->w, p->dir, text);
    }
    if (l->no_device != 0) {
        char text[96];
        snprintf(text, sizeof text, "%" PRIu64 " device time%s lost", l->no_device,
                 l->no_device == 1 ? " was" : "s were");
        mstx__writer_problem(im->w, p->dir, text);
    }
    uint32_t id = mstx__writer_process_id(im->w);
    write_process(im, p, t, l, c, id);
    mstx__hangs_write(im->w, id, p->seg.p[0].head.rank, t);
    mstx__comm_writer_process(im->comm, id, p->seg.p[0].head.rank);
    write_groups(im, p, t);
    const struct mstx_cl_source part = {
        l, c, im->w, im->comm, &im->names, p->seg.p[0].head.rank, ms_str_of(p->seg.p[0].head.host)};
    mstx__cluster_lanes(&im->cluster, &part);
    int64_t oldest = oldest_shown(p, c, l->newest);
    for (size_t i = 0; i < l->lane.n && !im->is_summary; i++)
        write_lane(im, l, c, &l->lane.p[i], id, oldest);
    write_said(im);
    im->result->records += l->records;
    im->result->unfinished += l->unfinished;
    im->result->dropped += l->dropped;
    if (p->seg.p[0].head.world_size > im->world_size)
        im->world_size = p->seg.p[0].head.world_size;
}

static void write_notes(struct import *im, const struct mstx_proc *p, const struct mstx_texts *t)
{
    for (size_t i = 0; i < t->notes.n; i++) {
        char text[256];
        snprintf(text, sizeof text, "%.*s", MS_STR_ARG(t->notes.p[i].text));
        mstx__writer_problem(im->w, p->dir, text);
    }
}

static enum ms_rc take_process(struct import *im, struct mstx_proc *p, struct ms_err *err)
{
    struct mstx_texts texts;
    struct mstx_lanes lanes;
    im->is_quiet = true;
    enum ms_rc rc = mstx__proc_open(p, &im->problems, err);
    im->is_quiet = false;
    if (rc != MS_OK || p->seg.n == 0) {
        mstx__proc_close(p);
        return rc;
    }
    rc = mstx__texts_read(&texts, p, im->w, &im->problems, err);
    if (rc == MS_OK) {
        write_notes(im, p, &texts);
        rc = read_lanes(p, &texts, &lanes, err);
        if (rc == MS_OK) {
            take_lanes(im, p, &texts, &lanes);
            if (lanes.no_memory)
                rc = ms_fail(err, MS_E_NOMEM, "%s: %s", p->dir, ms_rc_text(MS_E_NOMEM));
            mstx__lanes_free(&lanes);
        }
        mstx__texts_free(&texts);
    }
    mstx__proc_close(p);
    return rc;
}

/* ---- all ranks together ------------------------------------------------------ */

static enum ms_rc judge(struct import *im, struct ms_err *err)
{
    struct ms_span span = ms_span_begin("cluster");
    mstx__cluster_judge(&im->cluster);
    enum ms_rc rc = MS_OK;
    if (im->cluster.no_memory)
        rc = ms_no_memory(err);
    else if (!mstx__writer_bad(im->w))
        rc = mstx__cluster_save(&im->cluster, mstx__writer_store(im->w), err);
    if (im->cluster.strange != 0) {
        char text[96];
        snprintf(text, sizeof text, "%" PRIu64 " calls have numbers that make no sense",
                 im->cluster.strange);
        mstx__writer_problem(im->w, "", text);
    }
    ms_span_end(&span);
    return rc;
}

/* ---- the whole -------------------------------------------------------------- */

static enum ms_rc import_all(struct import *im, struct ms_err *err)
{
    if (mstx__writer_bad(im->w)) /* commit will say why */
        return MS_OK;
    MS_TRY(mstx__comm_writer_new(&im->comm, mstx__writer_store(im->w), err));
    for (size_t i = 0; i < im->procs.list.n; i++)
        MS_TRY(learn_clock(im, &im->procs.list.p[i], err));
    fit_clocks(im);
    for (size_t i = 0; i < im->procs.list.n && !mstx__writer_bad(im->w); i++)
        MS_TRY(take_process(im, &im->procs.list.p[i], err));
    MS_TRY(judge(im, err));
    char size[16];
    snprintf(size, sizeof size, "%" PRId32, im->world_size);
    if (im->world_size > 0)
        mstx__writer_meta(im->w, "world_size", size);
    return MS_OK;
}

static void finish_result(const struct import *im, struct mstx_import_result *r)
{
    mstx__writer_totals(im->w, r);
    struct mstx_import_result *out = im->result;
    r->files = out->files;
    r->records = out->records;
    r->unfinished = out->unfinished;
    r->dropped = out->dropped;
    *out = *r;
}

enum ms_rc mstx__import_capture(const char *dir, const char *db, const struct mstx_import_how *how,
                                struct mstx_import_result *result, struct ms_err *err)
{
    struct ms_span span = ms_span_begin("import");
    struct import im = {.result = result, .is_summary = how->summary, .reference = SIZE_MAX};
    im.problems = (struct mstx_problems){note_problem, &im};
    *result = (struct mstx_import_result){0};
    MS_TRY(mstx__procs_find(&im.procs, dir, err));
    enum ms_rc rc = MS_OK;
    if (im.procs.list.n == 0)
        rc = ms_fail(err, MS_E_NOTFOUND,
                     "%s: holds no capture; record one with 'msprobe run -o %s -- PROGRAM'", dir,
                     dir);
    if (rc == MS_OK)
        rc = mstx__writer_new(&im.w, db, err);
    if (rc == MS_OK) {
        mstx__writer_meta(im.w, "path", dir);
        rc = import_all(&im, err);
        mstx__comm_writer_free(im.comm);
        struct mstx_import_result totals = {0};
        finish_result(&im, &totals);
        if (rc == MS_OK && result->processes == 0 && !mstx__writer_bad(im.w))
            rc = ms_fail(err, MS_E_NOTFOUND, "%s: none of its segments can be read; the first: %s",
                         dir, im.first.msg);
        if (rc == MS_OK)
            rc = mstx__writer_commit(im.w, err);
        else
            mstx__writer_abort(im.w);
    }
    mstx__cluster_free(&im.cluster);
    ms_vec_free(&im.names);
    ms_vec_free(&im.said);
    mstx__clocks_free(&im.clocks);
    mstx__procs_free(&im.procs);
    ms_span_end(&span);
    return rc;
}
