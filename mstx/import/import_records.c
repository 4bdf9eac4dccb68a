/* SPDX-License-Identifier: MIT
 *
 * tl_import_take: the records of one captured process become rows of run.db, and its part of what
 * all ranks say together.
 */
#include "mstx/tl_import_int.h"

#include "mstx/tl_comm_said.h"
#include "mstx/tl_hang.h"
#include "mstx/tl_lanes.h"

#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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

static void put_event(struct mstx_event *e, const struct mstx_lanes *l,
                      const struct mstx_lane *lane, struct mstx_host_clock *c,
                      const struct mstx_raw *raw)
{
    static const struct mstx_extra none;
    const struct mstx_extra *x = raw->extra != 0 ? &l->extra.p[raw->extra - 1] : &none;
    const int64_t start = mstx__lane_ns(lane, c, raw->begin);
    const int64_t end = raw->end > raw->begin ? mstx__lane_ns(lane, c, raw->end) : start;
    *e = (struct mstx_event){.start_ns = start,
                             .dur_ns = end - start,
                             .id = raw->id,
                             .arg = x->arg,
                             .size = x->size,
                             .name = raw->name,
                             .count = 1,
                             .args = x->args,
                             .end_tid = x->end_tid,
                             .kind = raw->kind,
                             .flags = raw->flags};
}

/* One row for an event that is a communication call. */
static void write_call(struct mstx_import *im, const struct mstx_lanes *l,
                       const struct mstx_lane *lane, const struct mstx_raw *raw,
                       const struct mstx_event *e)
{
    const struct mstx_extra *x = &l->extra.p[raw->extra - 1];
    const struct mstx_comm_parts *parts = x->parts != 0 ? &l->parts.p[x->parts - 1] : NULL;
    const struct mstx_comm_fact fact = {
        .rec = &l->comm.p[x->comm - 1],
        .part = parts != NULL && parts->begin.type != 0 ? &parts->begin : NULL,
        .end = parts != NULL && parts->end.type != 0 ? &parts->end : NULL,
    };
    struct ms_err err = {0};
    if (lane->kind == MSTX_TRACK_THREAD &&
        mstx__comm_writer_call(im->comm, &fact, e, lane->tid, &err) != MS_OK)
        mstx__writer_fail(im->w, &err);
}

/* Frameworks mark calls themselves where there is no hook for them: kept until all threads are
 * through, as their order tells their number. */
static void keep_said(struct mstx_import *im, const struct mstx_lane *lane,
                      const struct mstx_event *e)
{
    if (e->kind > MSTX_EV_PUSHPOP || e->kind == MSTX_EV_MARK ||
        !mstx__comm_is_said(mstx__writer_text_of(im->w, e->name)))
        return;
    struct mstx_said_call *slot = ms_vec_push(&im->said);
    struct ms_err err = {0};
    if (slot != NULL)
        *slot = (struct mstx_said_call){*e, lane->tid};
    else if (ms_no_memory(&err) != MS_OK)
        mstx__writer_fail(im->w, &err);
}

static int by_start(const void *pa, const void *pb)
{
    const struct mstx_said_call *a = pa, *b = pb;
    return a->event.start_ns < b->event.start_ns ? -1 : a->event.start_ns > b->event.start_ns;
}

/* Afterwards no call of the process awaits its being written. */
static void write_said(struct mstx_import *im)
{
    struct ms_err err = {0};
    if (im->said.n != 0)
        qsort(im->said.p, im->said.n, sizeof *im->said.p, by_start);
    for (size_t i = 0; i < im->said.n && !mstx__writer_bad(im->w); i++) {
        const struct mstx_said_call *c = &im->said.p[i];
        if (mstx__comm_writer_said(im->comm, mstx__writer_text_of(im->w, c->event.name), &c->event,
                                   c->tid, &err) != MS_OK)
            mstx__writer_fail(im->w, &err);
    }
    im->said.n = 0;
    if (mstx__comm_writer_flush(im->comm, &err) != MS_OK)
        mstx__writer_fail(im->w, &err);
}

static void write_lane(struct mstx_import *im, const struct mstx_lanes *l,
                       struct mstx_host_clock *c, struct mstx_lane *lane, uint32_t process,
                       int64_t oldest)
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
        struct mstx_event *e = mstx__writer_slot(im->w);
        put_event(e, l, lane, c, &lane->ev.p[i]);
        if (e->start_ns + e->dur_ns < oldest)
            continue;
        const uint32_t extra = lane->ev.p[i].extra;
        if (extra != 0 && l->extra.p[extra - 1].comm != 0)
            write_call(im, l, lane, &lane->ev.p[i], e);
        else if (is_comm)
            keep_said(im, lane, e);
        mstx__writer_event(im->w);
    }
    mstx__writer_track_end(im->w);
}

/* A record costs one reading of the clock and about as much again for the rest. */
static int64_t cost_of(const struct mstx_seen *seen, struct mstx_host_clock *c)
{
    uint64_t ticks;
    if (__builtin_mul_overflow(2 * seen->records, seen->clock_cost, &ticks) || ticks > INT64_MAX)
        return 0;
    uint64_t from = c->knot.n != 0 ? c->knot.p[0].ticks : 0;
    return mstx__clock_ns(c, from + ticks) - mstx__clock_ns(c, from);
}

void mstx__import_write_process(struct mstx_import *im, size_t place)
{
    const struct mstx_seen *seen = &im->seen.p[place];
    const struct mstx_seg *h = seen->head;
    if (!seen->is_taken || seen->id == 0)
        return;
    struct mstx_host_clock *c = mstx__clock_of(&im->clocks, h);
    struct mstx_process_row row = {
        .rank = h->rank,
        .pid = h->pid,
        .ppid = h->ppid,
        .host = ms_str_of(h->host),
        .name = mstx__writer_text_of(im->w, seen->name),
        .dir = ms_str_of(im->procs.list.p[place].dir),
        .tool = {h->tool, (uint32_t)strnlen(h->tool, sizeof h->tool)},
        .state = ms_str_of(mstx__import_state(&im->procs, place, h, seen->is_closed)),
        .start_ns = h->start_ns,
        .end_ns = mstx__clock_ns(c, seen->newest),
        .records = seen->records,
        .events = seen->events,
        .unfinished = seen->unfinished,
        .dropped = seen->dropped,
        .cost_ns = cost_of(seen, c),
    };
    mstx__writer_process(im->w, seen->id, &row);
}

static void tell_count(struct mstx_import *im, const struct mstx_proc *p, uint64_t n,
                       const char *one, const char *many)
{
    char text[96];
    if (n == 0)
        return;
    snprintf(text, sizeof text, "%" PRIu64 " %s", n, n == 1 ? one : many);
    mstx__import_problem(im, p->dir, text);
}

/* What is told of a process. */
static bool see(struct mstx_import *im, struct mstx_seen *seen, const struct mstx_proc *p,
                const struct mstx_texts *t)
{
    const struct mstx_lanes *l = &im->lanes;
    seen->head = ms_alloc(sizeof *seen->head);
    if (seen->head == NULL)
        return false;
    *seen->head = p->seg.p[0].head;
    seen->is_taken = true;
    seen->is_closed = true;
    for (size_t i = 0; i < p->seg.n; i++)
        seen->is_closed &= (p->seg.p[i].head.state & MSTX_SEG_CLOSED) != 0;
    for (size_t i = 0; i < l->lane.n; i++)
        seen->events += l->lane.p[i].ev.n;
    seen->records = l->records;
    seen->newest = l->newest;
    seen->unfinished = l->unfinished;
    seen->dropped = l->dropped;
    seen->clock_cost = t->clock_cost;
    seen->name = t->process_name;
    tell_count(im, p, l->bad, "records are of a type this program does not know",
               "records are of a type this program does not know");
    tell_count(im, p, l->no_device, "device time was lost", "device times were lost");
    mstx__hangs_write(im->w, seen->id, seen->head->rank, t);
    return true;
}

/* Each communicator by the number that the process has for it. */
static enum ms_rc know_groups(struct mstx_import *im, const struct mstx_texts *t,
                              struct ms_err *err)
{
    for (size_t i = 0; i < t->keyed.n; i++) {
        const struct mstx_keyed *k = &t->keyed.p[i];
        struct mstx_comm_known g;
        if (mstx__texts_is_newest(t, i) && k->kind == MSTX_GROUP &&
            mstx__comm_group_parse(k->text, &g))
            MS_TRY(mstx__comm_writer_group(im->comm, (uint32_t)k->key, &g, err));
    }
    return MS_OK;
}

static void write_events(struct mstx_import *im, const struct mstx_proc *p,
                         struct mstx_host_clock *c, uint32_t id)
{
    int64_t oldest = oldest_shown(p, c, im->lanes.newest);
    for (size_t i = 0; i < im->lanes.lane.n; i++)
        write_lane(im, &im->lanes, c, &im->lanes.lane.p[i], id, oldest);
    write_said(im);
}

static enum ms_rc take_lanes(struct mstx_import *im, struct mstx_proc *p, struct mstx_texts *t,
                             struct ms_err *err)
{
    struct mstx_seen *seen = &im->seen.p[im->at];
    struct mstx_host_clock *c = mstx__clock_of(&im->clocks, &p->seg.p[0].head);
    if (!see(im, seen, p, t))
        return ms_no_memory(err);
    mstx__comm_writer_process(im->comm, seen->id, seen->head->rank, seen->calls);
    MS_TRY(know_groups(im, t, err));
    const struct mstx_cl_source part = {&im->lanes,
                                        c,
                                        im->w,
                                        im->comm,
                                        &im->names,
                                        seen->head->rank,
                                        ms_str_of(seen->head->host),
                                        (uint32_t)(c - im->clocks.host.p),
                                        &im->part};
    mstx__cluster_lanes(&im->cluster, &part);
    if (!im->how->summary)
        write_events(im, p, c, seen->id);
    return MS_OK;
}

static void read_lanes(struct mstx_lanes *l, const struct mstx_proc *p, struct mstx_texts *t)
{
    mstx__lanes_reset(l, t);
    for (size_t i = 0; i < p->seg.n; i++) {
        bool is_first = i == 0 || p->seg.p[i - 1].head.ring != p->seg.p[i].head.ring;
        mstx__lanes_read(l, &p->seg.p[i], is_first);
    }
    mstx__lanes_finish(l);
}

enum ms_rc mstx__import_take(struct mstx_import *im, size_t place, struct ms_err *err)
{
    struct mstx_proc *p = &im->procs.list.p[place];
    struct mstx_texts texts;
    im->at = place;
    im->is_quiet = true; /* it was opened before */
    enum ms_rc rc = im->seen.p[place].id != 0 ? mstx__proc_open(p, &im->problems, err) : MS_OK;
    if (rc == MS_OK && p->seg.n != 0)
        rc = mstx__texts_read(&texts, p, im->w, &im->problems, err);
    im->is_quiet = false;
    if (rc == MS_OK && p->seg.n != 0) {
        im->lanes.no_args = im->how->summary;
        read_lanes(&im->lanes, p, &texts);
        rc = im->lanes.no_memory
                 ? ms_fail(err, MS_E_NOMEM, "%s: %s", p->dir, ms_rc_text(MS_E_NOMEM))
                 : take_lanes(im, p, &texts, err);
        mstx__texts_free(&texts);
    }
    mstx__proc_close(p);
    mstx__import_step(im);
    return rc;
}
