/* SPDX-License-Identifier: MIT
 *
 * import_records: turns the records of one captured process into rows of run.db and into its part
 * of the analysis of all ranks.
 */
#include "mstx/import/import_int.h"

#include "mstx/format/comm_marked.h"
#include "mstx/format/step_name.h"
#include "mstx/read/records.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <inttypes.h>
#include <stdio.h>

/* Returns the time before which events are dropped: a flight recorder reuses whole files, which
 * hold more than the requested window. */
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

/* Writes the row of an event that is a communication call. */
static void write_call(struct mstx_import *im, const struct mstx_lanes *l,
                       const struct mstx_lane *lane, const struct mstx_raw *raw,
                       const struct mstx_event *e)
{
    ms_assert(raw->extra >= 1 && raw->extra <= l->extra.n);
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

/* Keeps a call that a framework marked itself because there is no hook for it.  Such calls are
 * written after all threads were read, since their order gives them their sequence numbers. */
static void keep_said(struct mstx_import *im, const struct mstx_lane *lane,
                      const struct mstx_event *e)
{
    if (e->kind > MSTX_EV_PUSHPOP || e->kind == MSTX_EV_MARK ||
        !mstx__comm_is_marked(mstx__writer_text_of(im->w, e->name)))
        return;
    struct mstx_marked_call *slot = ms_vec_push(&im->marked);
    struct ms_err err = {0};
    if (slot != NULL)
        *slot = (struct mstx_marked_call){*e, lane->tid};
    else if (ms_no_memory(&err) != MS_OK)
        mstx__writer_fail(im->w, &err);
}

static int by_start(const void *pa, const void *pb)
{
    const struct mstx_marked_call *a = pa, *b = pb;
    return MS_ORDER(a->event.start_ns, b->event.start_ns, 0);
}

/* Writes the kept calls of the process in order of their start, and flushes its packed calls. */
static void write_said(struct mstx_import *im)
{
    struct ms_err err = {0};
    ms_vec_sort(&im->marked, by_start);
    for (size_t i = 0; i < im->marked.n && !mstx__writer_bad(im->w); i++) {
        const struct mstx_marked_call *c = &im->marked.p[i];
        if (mstx__comm_writer_add_marked(im->comm, mstx__writer_text_of(im->w, c->event.name),
                                         &c->event, c->tid, &err) != MS_OK)
            mstx__writer_fail(im->w, &err);
    }
    im->marked.n = 0;
    if (mstx__comm_writer_flush(im->comm, &err) != MS_OK)
        mstx__writer_fail(im->w, &err);
}

static void write_lane(struct mstx_import *im, const struct mstx_lanes *l,
                       struct mstx_host_clock *c, struct mstx_lane *lane, uint32_t process,
                       int64_t oldest)
{
    ms_assert(process >= 1);
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

/* Estimates the cost of recording: for each record one reading of the clock and about as much again
 * for the rest. */
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
    ms_assert(place < im->seen.n);
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
        .state = ms_str_of(mstx__process_state(&im->procs, place, h, seen->is_closed)),
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

/* Communication calls that did not return, from HANG texts to rows of the table hangs. */

/* Binds the columns of a hang; false: the text is damaged. */
static bool bind_hang(struct ms_stmt *add, const struct ms_str text)
{
    struct mstx_hang h;
    if (text.n < sizeof h)
        return false;
    memcpy(&h, text.p, sizeof h);
    const uint32_t name = sizeof h, group = name + h.name_len, rest = group + h.group_len;
    if (rest > text.n)
        return false;
    const int64_t column[] = {(int64_t)h.uid, h.seq, h.size, h.on_device, h.waited_ns, h.tid, h.op};
    enum { FIRST = 5, COLUMNS = sizeof column / sizeof *column };
    ms_stmt_str(add, 3, ms_str_sub(text, name, group));
    ms_stmt_str(add, 4, ms_str_sub(text, group, rest));
    for (int n = 0; n < COLUMNS; n++)
        ms_stmt_i64(add, FIRST + n, column[n]);
    if (h.peer_plus_1 > 0)
        ms_stmt_i64(add, FIRST + COLUMNS, h.peer_plus_1 - 1);
    else
        ms_stmt_null(add, FIRST + COLUMNS);
    ms_stmt_str(add, FIRST + COLUMNS + 1, ms_str_sub(text, rest, text.n));
    return true;
}

static void write_hangs(struct mstx_writer *w, uint32_t process, int32_t rank,
                        const struct mstx_texts *t)
{
    struct ms_err err = {0};
    struct ms_stmt *add = NULL;
    if (t->hangs.n == 0)
        return;
    enum ms_rc rc = ms_store_prepare(mstx__writer_store(w), &add,
                                     "INSERT INTO hangs VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)", &err);
    for (size_t i = 0; rc == MS_OK && i < t->hangs.n; i++) {
        ms_stmt_i64(add, 1, process);
        ms_stmt_i64(add, 2, rank);
        if (bind_hang(add, t->hangs.p[i].text))
            rc = ms_stmt_run(add, &err);
    }
    if (rc != MS_OK)
        mstx__writer_fail(w, &err);
    ms_stmt_free(add);
}

/* Fields of the process record. */
static bool keep_seen(struct mstx_import *im, struct mstx_seen *seen, const struct mstx_proc *p,
                      const struct mstx_texts *t)
{
    const struct mstx_lanes *l = im->lanes;
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
    write_hangs(im->w, seen->id, seen->head->rank, t);
    return true;
}

/* Registers each communicator under the number that the process has for it. */
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
    const struct mstx_lanes *l = im->lanes;
    int64_t oldest = oldest_shown(p, c, l->newest);
    for (size_t i = 0; i < l->lane.n; i++)
        write_lane(im, l, c, &l->lane.p[i], id, oldest);
    write_said(im);
}

/* ---- the part of the process in the analysis of all ranks -------------------------- */

/* A process whose steps and calls are collected, with times of the host's steady clock.  Device
 * times are used where they exist, since the host's call of an asynchronous operation shows no
 * waiting.  Without device times computing cannot be told from idling, so everything that is not
 * communication counts as computing. */
struct source {
    const struct mstx_lanes *l;
    struct mstx_host_clock *clock;
    const struct mstx_writer *w;
    const struct mstx_comm_writer *comm;
    struct mstx_cl_names *names;
    int32_t rank;
    struct ms_str host;
    uint32_t host_clock; /* number of the clock among those of all hosts */
};

enum { NAME_NEW, NAME_OTHER, NAME_STEP, NAME_NUMBERED };

/* Returns the step number in a name, NAME_OTHER for other names.  Each name is parsed once. */
static int64_t step_of_name(struct mstx_cl_names *names, const struct mstx_writer *w, uint32_t name)
{
    ms_assert(w != NULL);
    if (name >= names->n) {
        const size_t want = (size_t)name + name / 2 + 64;
        if (!ms_vec_reserve(names, want))
            return NAME_OTHER;
        memset(names->p + names->n, 0, (want - names->n) * sizeof *names->p);
        names->n = want;
    }
    if (names->p[name] == NAME_NEW) {
        int64_t number;
        const bool is = mstx_is_step_name(mstx__writer_text_of(w, name), &number);
        names->p[name] = !is ? NAME_OTHER : number < 0 ? NAME_STEP : NAME_NUMBERED + number;
    }
    return names->p[name];
}

static bool may_be_step(const struct mstx_raw *r)
{
    return r->kind <= MSTX_EV_PUSHPOP && !(r->flags & MSTX_EVF_UNFINISHED);
}

static size_t count_steps(const struct source *s, const struct mstx_lane *lane, bool marks)
{
    size_t n = 0;
    for (size_t i = 0; i < lane->ev.n; i++) {
        const struct mstx_raw *r = &lane->ev.p[i];
        n += may_be_step(r) && (r->kind == MSTX_EV_MARK) == marks &&
             step_of_name(s->names, s->w, r->name) != NAME_OTHER;
    }
    return n;
}

static struct mstx_cl_step *add_step(struct mstx_cl_part *p, int64_t name, int64_t start,
                                     int64_t end)
{
    struct mstx_cl_step *slot = ms_vec_push(&p->steps);
    if (slot != NULL)
        *slot =
            (struct mstx_cl_step){.number = name >= NAME_NUMBERED ? (uint32_t)(name - NAME_NUMBERED)
                                                                  : (uint32_t)p->steps.n - 1,
                                  .start_ns = start,
                                  .end_ns = end};
    return slot;
}

/* Adds the steps of a lane: ranges that do not overlap, or marks, which last until the next one. */
static bool take_steps(const struct source *s, struct mstx_cl_part *p, const struct mstx_lane *lane,
                       bool marks)
{
    int64_t end = INT64_MIN;
    struct mstx_cl_step *open = NULL;
    for (size_t i = 0; i < lane->ev.n; i++) {
        const struct mstx_raw *r = &lane->ev.p[i];
        const int64_t name = may_be_step(r) ? step_of_name(s->names, s->w, r->name) : NAME_OTHER;
        if (name == NAME_OTHER || (r->kind == MSTX_EV_MARK) != marks)
            continue;
        const int64_t start = mstx__lane_steady(lane, s->clock, r->begin);
        if (open != NULL)
            open->end_ns = start;
        if (!marks && (start < end || r->end <= r->begin))
            continue;
        end = marks ? start : mstx__lane_steady(lane, s->clock, r->end);
        open = add_step(p, name, start, end);
        if (open == NULL)
            return false;
        open = marks ? open : NULL;
    }
    if (open != NULL) /* the end of the last step is unknown */
        p->steps.n--;
    return true;
}

/* Finds the steps in the lane that has the most; ranges are preferred to marks. */
static bool find_steps(const struct source *s, struct mstx_cl_part *p)
{
    for (int marks = 0; marks <= 1; marks++) {
        const struct mstx_lane *best = NULL;
        size_t most = 0;
        for (size_t i = 0; i < s->l->lane.n; i++) {
            const struct mstx_lane *lane = &s->l->lane.p[i];
            const size_t n = lane->kind == MSTX_TRACK_THREAD ? count_steps(s, lane, marks != 0) : 0;
            if (n > most) {
                most = n;
                best = lane;
            }
        }
        if (best != NULL)
            return take_steps(s, p, best, marks != 0);
    }
    return true;
}

static bool add_span(mstx_cl_spans *s, int64_t start, int64_t end)
{
    struct mstx_cl_span *slot = end > start ? ms_vec_push(s) : NULL;
    if (slot != NULL)
        *slot = (struct mstx_cl_span){start, end};
    return slot != NULL || end <= start;
}

/* Device spans of calls, by the number that links the host side and the device side. */
struct sides {
    MS_VEC(struct mstx_cl_span) at; /* by number; end 0: none */
};

static bool take_side(struct sides *d, uint64_t link, struct mstx_cl_span span)
{
    if (link == 0 || link > (uint64_t)1 << 31)
        return true;
    if (link >= d->at.n) {
        const size_t want = (size_t)link + link / 2 + 64;
        if (!ms_vec_reserve(&d->at, want))
            return false;
        memset(d->at.p + d->at.n, 0, (want - d->at.n) * sizeof *d->at.p);
        d->at.n = want;
    }
    d->at.p[link] = span;
    return true;
}

static bool take_stream(const struct source *s, struct mstx_cl_part *p,
                        const struct mstx_lane *lane, struct sides *d)
{
    const bool is_comm = ms_str_is(mstx__writer_text_of(s->w, lane->domain), MSTX_COMM_DOMAIN);
    for (size_t i = 0; i < lane->ev.n; i++) {
        const struct mstx_raw *r = &lane->ev.p[i];
        if (r->end <= r->begin || r->kind > MSTX_EV_PUSHPOP)
            continue;
        const struct mstx_cl_span span = {mstx__lane_steady(lane, s->clock, r->begin),
                                          mstx__lane_steady(lane, s->clock, r->end)};
        if (!add_span(is_comm ? &p->comm : &p->work, span.start, span.end))
            return false;
        p->knows_work |= !is_comm;
        if (is_comm && r->extra != 0 && !take_side(d, s->l->extra.p[r->extra - 1].size, span))
            return false;
    }
    return true;
}

/* Returns true for libraries whose calls return as soon as the operation is queued on the
 * device. */
static bool only_begins(const struct mstx_rec_comm *c)
{
    return c->lib == MSTX_LIB_NCCL || c->lib == MSTX_LIB_RCCL || c->lib == MSTX_LIB_HCCL;
}

static bool take_call(const struct source *s, struct mstx_cl_part *p, const struct mstx_lane *lane,
                      const struct mstx_raw *r, struct sides *d, bool has_device)
{
    ms_assert(r->extra >= 1 && r->extra <= s->l->extra.n);
    const struct mstx_extra *x = &s->l->extra.p[r->extra - 1];
    const struct mstx_rec_comm *c = &s->l->comm.p[x->comm - 1];
    const enum mstx_comm_class class = mstx_comm_op_class(c->op);
    struct mstx_cl_span span = {mstx__lane_steady(lane, s->clock, r->begin), 0};
    uint8_t flags = c->flags;
    if (class == MSTX_CLASS_ADMIN || c->type == 0)
        return true;
    span.end = r->end > r->begin ? mstx__lane_steady(lane, s->clock, r->end) : span.start;
    const bool on_device = x->size < d->at.n && d->at.p[x->size].end != 0;
    if (on_device) {
        span = d->at.p[x->size];
        flags &= (uint8_t)~MSTX_CF_ASYNC;
    } else if (only_begins(c)) {
        flags |= MSTX_CF_ASYNC; /* its device time was lost, so its waiting is unknown */
    }
    if (!has_device && !add_span(&p->comm, span.start, span.end))
        return false;
    if (c->op == MSTX_COMM_RECV && !add_span(&p->bubble, span.start, span.end))
        return false;
    if (class >= MSTX_SEQUENCES)
        return true;
    struct mstx_cl_call *k = ms_vec_push(&p->calls);
    if (k != NULL)
        *k = (struct mstx_cl_call){.start_ns = span.start,
                                   .dur_ns = span.end - span.start,
                                   .bytes = c->count * c->elem,
                                   .group = mstx__comm_writer_id(s->comm, c->group),
                                   .seq = c->seq,
                                   .peer = c->peer,
                                   .op = c->op,
                                   .dtype = c->dtype,
                                   .flags = flags,
                                   .unfinished = (r->flags & MSTX_EVF_UNFINISHED) != 0};
    return k != NULL;
}

static bool take_calls(const struct source *s, struct mstx_cl_part *p)
{
    struct sides d = {0};
    bool ok = true;
    for (size_t i = 0; i < s->l->lane.n && ok; i++) {
        if (s->l->lane.p[i].kind == MSTX_TRACK_STREAM)
            ok = take_stream(s, p, &s->l->lane.p[i], &d);
    }
    const bool has_device = p->comm.n != 0;
    for (size_t i = 0; i < s->l->lane.n && ok; i++) {
        const struct mstx_lane *lane = &s->l->lane.p[i];
        for (size_t k = 0; lane->kind == MSTX_TRACK_THREAD && k < lane->ev.n && ok; k++) {
            const struct mstx_raw *r = &lane->ev.p[k];
            if (r->extra != 0 && s->l->extra.p[r->extra - 1].comm != 0)
                ok = take_call(s, p, lane, r, &d, has_device);
        }
    }
    ms_vec_free(&d.at);
    return ok;
}

/* Adds the part of the process to the rows of all ranks, unless it made no communication calls. */
static void add_rank_part(struct mstx_cluster *c, const struct source *s, struct mstx_cl_part *p)
{
    ms_assert(p != NULL && s->rank >= -1);
    if (s->l->comm.n == 0) /* a helper process, which takes part in no collective */
        return;
    mstx__cluster_part_reset(p);
    p->rank = s->rank;
    p->clock = s->host_clock;
    p->host = s->host;
    bool ok = take_calls(s, p) && find_steps(s, p);
    if (ok && p->steps.n == 0)
        ok = mstx__cluster_slice(p);
    if (ok)
        mstx__cluster_part(c, p);
    c->no_memory |= !ok;
}

/* ---- one process ---------------------------------------------------------------- */

static enum ms_rc take_lanes(struct mstx_import *im, struct mstx_proc *p, struct mstx_texts *t,
                             struct ms_err *err)
{
    struct mstx_seen *seen = &im->seen.p[im->at];
    struct mstx_host_clock *c = mstx__clock_of(&im->clocks, &p->seg.p[0].head);
    if (!keep_seen(im, seen, p, t))
        return ms_no_memory(err);
    mstx__comm_writer_process(im->comm, seen->id, seen->head->rank, seen->calls);
    MS_TRY(know_groups(im, t, err));
    const struct source s = {.l = im->lanes,
                             .clock = c,
                             .w = im->w,
                             .comm = im->comm,
                             .names = &im->names,
                             .rank = seen->head->rank,
                             .host = ms_str_of(seen->head->host),
                             .host_clock = (uint32_t)(c - im->clocks.host.p)};
    add_rank_part(&im->cluster, &s, &im->part);
    if (!im->how->summary)
        write_events(im, p, c, seen->id);
    return MS_OK;
}

/* Reads the process at a place, or takes what another thread has read of it. */
static struct mstx_read_proc *read_process(struct mstx_import *im, size_t place)
{
    struct mstx_read_proc *r = &im->now;
    im->is_again = true;
    if (im->ahead != NULL)
        r = mstx__ahead_take(im->ahead, place, &im->problems, im->w);
    else if (im->seen.p[place].id != 0)
        mstx__proc_read(r, &im->procs.list.p[place], &im->sink, &im->problems, im->how->summary);
    else
        r->rc = MS_OK;
    im->is_again = false;
    return r;
}

enum ms_rc mstx__import_read_process(struct mstx_import *im, size_t place, struct ms_err *err)
{
    ms_assert(place >= im->from && place < im->to);
    struct mstx_proc *p = &im->procs.list.p[place];
    im->at = place;
    struct mstx_read_proc *r = read_process(im, place);
    enum ms_rc rc = r->rc;
    im->lanes = &r->lanes;
    if (rc != MS_OK && err != NULL && err->rc == MS_OK)
        *err = r->err;
    if (rc == MS_OK && r->has_texts)
        rc = take_lanes(im, p, &r->texts, err);
    mstx__proc_done(r, p);
    return rc;
}
