/* SPDX-License-Identifier: MIT
 *
 * tl_import_clock: what times of a capture mean.  All processes of a host share one clock, so
 * calibration is collected from all before the first time is used.
 */
#include "mstx/tl_import_int.h"

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
    mstx__put(b, &n, sizeof n);
    mstx__put(b, &reference, sizeof reference);
    for (size_t i = 0; i < im->clocks.host.n; i++) {
        const struct mstx_host_clock *c = &im->clocks.host.p[i];
        mstx__put(b, c->boot_id, sizeof c->boot_id);
        mstx__put(b, &c->clock, sizeof c->clock);
        mstx__put(b, &c->slope, sizeof c->slope);
        mstx__put_items(b, &c->knot);
        mstx__put_items(b, &c->apart);
    }
}

/* The clock in a message: one that is known, or a new one; NULL: no memory. */
static struct mstx_host_clock *take_clock(struct mstx_import *im, struct mstx_taker *t)
{
    struct mstx_seg h = {0};
    double slope;
    mstx__take(t, h.boot_id, sizeof h.boot_id);
    mstx__take(t, &h.clock, sizeof h.clock);
    mstx__take(t, &slope, sizeof slope);
    const size_t before = im->clocks.host.n;
    struct mstx_host_clock *c = mstx__clock_of(&im->clocks, &h);
    if (c != NULL && im->clocks.host.n != before)
        c->slope = slope;
    return c;
}

enum ms_rc mstx__import_take_clocks(struct mstx_import *im, struct mstx_taker *t,
                                    struct ms_err *err)
{
    uint64_t n, reference;
    mstx__take(t, &n, sizeof n);
    mstx__take(t, &reference, sizeof reference);
    for (uint64_t i = 0; i < n && !t->bad; i++) {
        struct mstx_host_clock *c = take_clock(im, t);
        if (c == NULL || !mstx__take_items(t, &c->knot) || !mstx__take_items(t, &c->apart))
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

bool mstx__import_list_meetings(struct mstx_import *im, const struct mstx_lanes *l,
                                struct mstx_texts *t, uint32_t host)
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

/* What process 0 found, for everyone. */
static enum ms_rc share_offsets(struct mstx_import *im, struct ms_err *err)
{
    struct ms_buf b = {.max = MSTX_SHARE_MAX};
    for (size_t i = 0; ms_par_rank(im->par) == 0 && i < im->clocks.host.n; i++) {
        const struct mstx_host_clock *c = &im->clocks.host.p[i];
        mstx__put(&b, &c->reference_ns, sizeof c->reference_ns);
        mstx__put_items(&b, &c->apart);
    }
    enum ms_rc rc = ms_buf_check(&b, err);
    if (rc == MS_OK)
        rc = mstx__share_from_first(im->par, &b, err);
    struct mstx_taker t = {b.p, b.n, false};
    for (size_t i = 0; rc == MS_OK && ms_par_rank(im->par) != 0 && i < im->clocks.host.n; i++) {
        struct mstx_host_clock *c = &im->clocks.host.p[i];
        mstx__take(&t, &c->reference_ns, sizeof c->reference_ns);
        c->apart.n = 0;
        if (!mstx__take_items(&t, &c->apart))
            rc = ms_no_memory(err);
    }
    ms_buf_free(&b);
    return rc;
}

/* Meetings of all processes, where the clocks are brought together. */
static enum ms_rc gather_meetings(struct mstx_import *im, enum ms_rc mine, struct ms_err *err)
{
    struct ms_buf b = {.max = MSTX_SHARE_MAX};
    struct mstx_messages all;
    if (ms_par_size(im->par) == 1)
        return mine;
    if (ms_par_rank(im->par) != 0)
        mstx__put_items(&b, &im->meetings.list);
    enum ms_rc rc = mstx__share_gather(im->par, &b, mine, &all, err);
    ms_buf_free(&b);
    if (rc != MS_OK)
        return rc;
    for (unsigned i = 1; rc == MS_OK && ms_par_rank(im->par) == 0 && i < ms_par_size(im->par);
         i++) {
        struct mstx_taker t = mstx__message(&all, i);
        if (!mstx__take_items(&t, &im->meetings.list))
            rc = ms_no_memory(err);
    }
    mstx__messages_free(&all);
    return rc;
}

/* Of several hosts the collectives tell how their clocks stand, or whether what was measured is
 * true. */
static enum ms_rc meet(struct mstx_import *im, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    for (size_t i = im->from; rc == MS_OK && i < im->to; i++)
        rc = mstx__import_take(im, i, MSTX_TAKE_PART | MSTX_TAKE_MEETINGS, err);
    rc = gather_meetings(im, rc, err);
    if (rc == MS_OK && ms_par_rank(im->par) == 0)
        rc = mstx__meetings_align(&im->meetings, &im->clocks, im->reference, err);
    ms_vec_free(&im->meetings.list);
    rc = mstx__share_result(im->par, rc, err);
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
    /* the clock of rank 0's host is the one that all others follow */
    const bool has_reference = im->reference < im->clocks.host.n;
    if (has_reference)
        mstx__clocks_align(&im->clocks, &im->clocks.host.p[im->reference]);
    if (has_reference && im->clocks.host.n > 1)
        rc = meet(im, err);
    if (rc == MS_OK && tells)
        write_clocks(im, has_reference);
    return rc;
}
