/* SPDX-License-Identifier: MIT
 *
 * import_clock: converts times of a capture.  All processes of a host share one clock, so
 * calibration points are collected from all processes before the first time is converted.
 */
#include "mstx/import/import_int.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- collecting --------------------------------------------------------------- */

enum ms_rc mstx__import_learn_clock(struct mstx_import *im, const struct mstx_proc *p,
                                    struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < p->seg.n && rc == MS_OK; i++) {
        rc = mstx__clock_add(&im->clocks, &p->seg.p[i], err);
        if (rc == MS_OK && p->seg.p[i].head.rank == 0)
            im->reference =
                (size_t)(mstx__clock_of(&im->clocks, &p->seg.p[i].head) - im->clocks.host.p);
    }
    return rc;
}

void mstx__import_put_clocks(const struct mstx_import *im, struct ms_buf *b)
{
    const uint64_t n = im->clocks.host.n, reference = im->reference;
    ms_put_bytes(b, &n, sizeof n);
    ms_put_bytes(b, &reference, sizeof reference);
    for (size_t i = 0; i < im->clocks.host.n; i++) {
        const struct mstx_host_clock *c = &im->clocks.host.p[i];
        ms_put_bytes(b, c->boot_id, sizeof c->boot_id);
        ms_put_bytes(b, &c->clock, sizeof c->clock);
        ms_put_bytes(b, &c->slope, sizeof c->slope);
        ms_put_items(b, &c->knot);
        ms_put_items(b, &c->apart);
    }
}

/* Reads a clock from a message: returns the known or a new clock, NULL when out of memory. */
static struct mstx_host_clock *take_clock(struct mstx_import *im, struct ms_taker *t)
{
    struct mstx_seg h = {0};
    double slope;
    ms_take_bytes(t, h.boot_id, sizeof h.boot_id);
    ms_take_bytes(t, &h.clock, sizeof h.clock);
    ms_take_bytes(t, &slope, sizeof slope);
    const size_t before = im->clocks.host.n;
    struct mstx_host_clock *c = mstx__clock_of(&im->clocks, &h);
    if (c != NULL && im->clocks.host.n != before)
        c->slope = slope;
    return c;
}

enum ms_rc mstx__import_take_clocks(struct mstx_import *im, struct ms_taker *t, struct ms_err *err)
{
    uint64_t n, reference;
    ms_take_bytes(t, &n, sizeof n);
    ms_take_bytes(t, &reference, sizeof reference);
    for (uint64_t i = 0; i < n && !t->bad; i++) {
        struct mstx_host_clock *c = take_clock(im, t);
        if (c == NULL || !ms_take_items(t, &c->knot) || !ms_take_items(t, &c->apart))
            return ms_no_memory(err);
        if (i == reference)
            im->reference = (size_t)(c - im->clocks.host.p);
    }
    return MS_OK;
}

/* ---- rows --------------------------------------------------------------------- */

static void write_knots(struct mstx_import *im, const struct mstx_host_clock *c,
                        struct ms_stmt *add, struct ms_err *err)
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

static void write_apart(struct mstx_import *im, const struct mstx_host_clock *c,
                        struct ms_stmt *add, struct ms_err *err)
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

/* ---- several hosts ---------------------------------------------------------------- */

/* Calls of one ring that are in flight, in a hash table without probing.  A call replaces another
 * one in the same slot: losing a call makes the bounds wider, not wrong. */
enum { ENTERED_SLOTS = 256 };
struct entered {
    uint64_t begin, id; /* begin 0: a free place */
    struct mstx_rec_comm comm;
};

struct scan {
    struct mstx_import *im;
    struct mstx_texts texts;
    struct mstx_host_clock *clock;
    struct entered entered[ENTERED_SLOTS];
};

static struct entered *place_of(struct scan *s, uint64_t begin, uint64_t id)
{
    return &s->entered[((begin ^ id << 48) * 0x9E3779B97F4A7C15u) >> 56];
}
static_assert(ENTERED_SLOTS == 1 << 8, "the hash gives 8 bits");

static bool add_meeting(struct scan *s, const struct mstx_rec_comm *c, uint64_t begin, uint64_t end)
{
    ms_assert(s->clock != NULL);
    struct mstx_comm_known g;
    const struct mstx_keyed *key = mstx__texts_find(&s->texts, MSTX_GROUP, 0, c->group);
    if (key == NULL || !mstx__comm_group_parse(key->text, &g))
        return true;
    const struct mstx_meeting m = {.uid = g.uid,
                                   .seq = c->seq,
                                   .host = (uint32_t)(s->clock - s->im->clocks.host.p),
                                   .start = mstx__clock_steady(s->clock, begin),
                                   .end = mstx__clock_steady(s->clock, end),
                                   .op = c->op};
    return mstx__meeting_add(&s->im->meetings, &m);
}

static bool enter_call(struct scan *s, const struct mstx_rec *r)
{
    struct mstx_rec_comm c;
    memcpy(&c, r + 1, sizeof c);
    if (c.type != MSTX_REC_COMM || !mstx__meeting_counts(&c))
        return true;
    if (r->type == MSTX_REC_CALL && r->arg != 0)
        return add_meeting(s, &c, r->ticks, r->arg);
    *place_of(s, r->ticks, r->id) = (struct entered){r->ticks, r->id, c};
    return true;
}

static bool leave_call(struct scan *s, const struct mstx_rec *r)
{
    ms_assert(r->type == MSTX_REC_END || r->type == MSTX_REC_POP);
    struct entered *e = place_of(s, r->arg, r->id);
    if (e->begin == 0 || e->begin != r->arg || e->id != r->id)
        return true;
    e->begin = 0;
    return add_meeting(s, &e->comm, r->arg, r->ticks);
}

static bool scan_segment(struct scan *s, const struct mstx_segment *seg)
{
    const struct mstx_rec *end = seg->rec + seg->n;
    bool ok = true;
    for (const struct mstx_rec *r = seg->rec; r < end && ok; r++) {
        const bool begins =
            r->type == MSTX_REC_BEGIN || r->type == MSTX_REC_CALL || r->type == MSTX_REC_PUSH;
        if (begins && r->flags & MSTX_F_MORE && r + 1 < end)
            ok = enter_call(s, r);
        else if (r->type == MSTX_REC_END || r->type == MSTX_REC_POP)
            ok = leave_call(s, r);
    }
    return ok;
}

static enum ms_rc scan_rings(struct scan *s, const struct mstx_proc *p, struct ms_err *err)
{
    s->clock = mstx__clock_of(&s->im->clocks, &p->seg.p[0].head);
    for (size_t i = 0; i < p->seg.n; i++) {
        if (i == 0 || p->seg.p[i - 1].head.ring != p->seg.p[i].head.ring)
            memset(s->entered, 0, sizeof s->entered);
        if (!scan_segment(s, &p->seg.p[i]))
            return ms_no_memory(err);
    }
    return MS_OK;
}

/* Lists the collectives of a process that no rank leaves before all have entered. */
static enum ms_rc list_meetings(struct mstx_import *im, size_t place, struct ms_err *err)
{
    struct mstx_proc *p = &im->procs.list.p[place];
    struct scan s = {.im = im};
    im->at = place;
    im->is_again = true;
    enum ms_rc rc = mstx__proc_open(p, &im->problems, err);
    if (rc == MS_OK && p->seg.n != 0) {
        rc = mstx__texts_read(&s.texts, p, &im->sink, &im->problems, err);
        if (rc == MS_OK)
            rc = scan_rings(&s, p, err);
        mstx__texts_free(&s.texts);
    }
    im->is_again = false;
    mstx__proc_close(p);
    return rc;
}

static void write_clocks(struct mstx_import *im, bool are_aligned)
{
    struct ms_err err = {0};
    struct ms_stmt *knot = NULL, *apart = NULL;
    struct ms_store *s = mstx__writer_store(im->w);
    if (mstx__writer_bad(im->w))
        return;
    if (ms_store_prepare(s, &knot, "INSERT INTO clock_sync VALUES(?,?,?,?,?,?)", &err) != MS_OK ||
        ms_store_prepare(s, &apart, "INSERT INTO clock_offsets VALUES(?,?,?,?,?,?)", &err) != MS_OK)
        mstx__writer_fail(im->w, &err);
    for (size_t i = 0; apart != NULL && i < im->clocks.host.n; i++) {
        write_knots(im, &im->clocks.host.p[i], knot, &err);
        if (are_aligned)
            write_apart(im, &im->clocks.host.p[i], apart, &err);
    }
    ms_stmt_free(knot);
    ms_stmt_free(apart);
}

/* Sends the offsets that process 0 found to every process. */
static enum ms_rc share_offsets(struct mstx_import *im, struct ms_err *err)
{
    struct ms_buf b = {.max = MS_SHARE_MAX};
    for (size_t i = 0; ms_par_rank(im->par) == 0 && i < im->clocks.host.n; i++) {
        const struct mstx_host_clock *c = &im->clocks.host.p[i];
        ms_put_bytes(&b, &c->reference_ns, sizeof c->reference_ns);
        ms_put_items(&b, &c->apart);
    }
    enum ms_rc rc = ms_buf_check(&b, err);
    if (rc == MS_OK)
        rc = ms_share_from_first(im->par, &b, err);
    struct ms_taker t = {b.p, b.n, false};
    for (size_t i = 0; rc == MS_OK && ms_par_rank(im->par) != 0 && i < im->clocks.host.n; i++) {
        struct mstx_host_clock *c = &im->clocks.host.p[i];
        ms_take_bytes(&t, &c->reference_ns, sizeof c->reference_ns);
        c->apart.n = 0;
        if (!ms_take_items(&t, &c->apart))
            rc = ms_no_memory(err);
    }
    ms_buf_free(&b);
    return rc;
}

/* Brings the collectives of all processes to process 0, which aligns the clocks. */
static enum ms_rc gather_meetings(struct mstx_import *im, enum ms_rc mine, struct ms_err *err)
{
    struct ms_buf b = {.max = MS_SHARE_MAX};
    struct ms_gathered all;
    if (ms_par_size(im->par) == 1)
        return mine;
    if (ms_par_rank(im->par) != 0)
        ms_put_items(&b, &im->meetings.list);
    enum ms_rc rc = ms_share_gather(im->par, &b, mine, &all, err);
    ms_buf_free(&b);
    if (rc != MS_OK)
        return rc;
    for (unsigned i = 1; rc == MS_OK && ms_par_rank(im->par) == 0 && i < ms_par_size(im->par);
         i++) {
        struct ms_taker t = ms_gathered_message(&all, i);
        if (!ms_take_items(&t, &im->meetings.list))
            rc = ms_no_memory(err);
    }
    ms_gathered_free(&all);
    return rc;
}

/* Aligns the clocks of several hosts by collectives, and checks offsets that were measured by
 * pings. */
static enum ms_rc align_by_meetings(struct mstx_import *im, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    for (size_t i = im->from; rc == MS_OK && i < im->to; i++) {
        if (im->seen.p[i].uses_mpi)
            rc = list_meetings(im, i, err);
    }
    rc = gather_meetings(im, rc, err);
    if (rc == MS_OK && ms_par_rank(im->par) == 0)
        rc = mstx__meetings_align(&im->meetings, &im->clocks, im->reference, err);
    ms_vec_free(&im->meetings.list);
    rc = ms_share_result(im->par, rc, err);
    return rc == MS_OK ? share_offsets(im, err) : rc;
}

enum ms_rc mstx__import_fit_clocks(struct mstx_import *im, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    const bool tells = ms_par_rank(im->par) == 0;
    im->at = im->procs.list.n;
    for (size_t i = 0; i < im->clocks.host.n; i++) {
        if (!mstx__clock_fit(&im->clocks.host.p[i]) && tells)
            mstx__import_problem(im, "", "no usable calibration: times of a host are guessed");
    }
    /* the clock of rank 0's host is the reference for all others */
    const bool has_reference = im->reference < im->clocks.host.n;
    if (has_reference)
        mstx__clocks_align(&im->clocks, &im->clocks.host.p[im->reference]);
    if (has_reference && im->clocks.host.n > 1)
        rc = align_by_meetings(im, err);
    if (rc == MS_OK && tells)
        write_clocks(im, has_reference);
    return rc;
}
