/* SPDX-License-Identifier: MIT
 *
 * op_rows: see the header.
 */
#include "mstx/conclude/op_rows.h"

#include "probe/base/jread.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <stdlib.h>

/* An operation with its step, before sorting by step. */
struct row {
    int64_t step;
    struct mstx_op op;
};

struct reading {
    struct mstx_tl *tl;
    struct mstx_ops *o;
    MS_VEC(struct row) row;
    uint32_t rank; /* of the current track */
};

/* Reads "PREFIX 12" off the front of a text. */
static bool read_number(struct ms_str *rest, const char *prefix, int32_t *v)
{
    struct ms_str part;
    int64_t n;
    if (!ms_str_split(rest, ',', &part))
        return false;
    while (part.n != 0 && part.p[0] == ' ')
        part = ms_str_sub(part, 1, part.n);
    if (!ms_str_starts(part, ms_str_of(prefix)))
        return false;
    part = ms_str_sub(part, (uint32_t)strlen(prefix), part.n);
    if (!ms_str_i64(part, &n) || n < 0 || n > INT32_MAX)
        return false;
    *v = (int32_t)n;
    return true;
}

static bool find_rank(struct reading *r, const struct mstx_track *track)
{
    struct ms_str rest = track->name;
    int32_t stage, tp;
    if (track->kind != MSTX_TRACK_THREAD || !read_number(&rest, "PP rank ", &stage) ||
        !read_number(&rest, "TP rank ", &tp))
        return false;
    const uint32_t pid = mstx_tl_process(r->tl, track->process)->pid;
    r->rank = mstx__ops_rank(r->o, (int32_t)(track->tid / MSTX_OP_TRACKS), (int32_t)pid, stage, tp);
    return true;
}

/* Finds the step number in the attributes of an event. */
static bool find_step(struct ms_str args, int64_t *step)
{
    struct ms_jread j;
    ms_jread_init(&j, args.p, args.n, 0);
    enum ms_jtok t = ms_jread_next(&j);
    for (t = ms_jread_next(&j); t == MS_J_KEY; t = ms_jread_next(&j)) {
        const bool is_step = ms_str_is(j.text, "step");
        t = ms_jread_next(&j);
        if (is_step && t == MS_J_NUM)
            return ms_jread_i64(&j, step);
        if (ms_jread_skip(&j, t) == MS_J_ERR)
            return false;
    }
    return false;
}

static enum ms_rc take_event(void *ctx, const struct mstx_event *ev, struct ms_err *err)
{
    struct reading *r = ctx;
    int64_t step;
    if (!find_step(mstx_tl_text(r->tl, ev->args), &step))
        return MS_OK;
    const uint16_t type = mstx__ops_type(r->o, mstx_tl_text(r->tl, ev->name));
    struct row *slot = ms_vec_push(&r->row);
    if (slot == NULL || r->o->no_memory)
        return ms_no_memory(err);
    *slot = (struct row){.step = step,
                         .op = {.start_ns = ev->start_ns,
                                .end_ns = ev->start_ns + ev->dur_ns,
                                .rank = r->rank,
                                .meet = MSTX_NO_MEET,
                                .type = type}};
    return MS_OK;
}

static int by_step(const void *pa, const void *pb)
{
    const struct row *a = pa, *b = pb;
    return MS_ORDER(a->step, b->step,
                    MS_ORDER(a->op.rank, b->op.rank, MS_ORDER(a->op.start_ns, b->op.start_ns, 0)));
}

/* In published traces each step is drawn at 1.1 times the sum of all steps before it after the
 * first step, and the time before its first operation belongs to the step. */
static const double STEPS_APART = 1.1;

static void put_steps(struct reading *r)
{
    double origin = 0;
    int64_t end = 0;
    for (size_t i = 0; i < r->row.n && !r->o->no_memory; i++) {
        const struct row *row = &r->row.p[i];
        if (i == 0 || row->step != row[-1].step) {
            origin += STEPS_APART * (i != 0 ? (double)end - origin : 0);
            mstx__ops_begin_step(r->o, row->step, (int64_t)origin);
            end = (int64_t)origin;
        }
        mstx__ops_add(r->o, &row->op);
        end = row->op.end_ns > end ? row->op.end_ns : end;
    }
}

static enum ms_rc read_tracks(struct reading *r, struct ms_err *err)
{
    for (size_t i = 0; i < mstx_tl_track_count(r->tl); i++) {
        if (find_rank(r, mstx_tl_track(r->tl, i)))
            MS_TRY(mstx_tl_walk(r->tl, i, NULL, take_event, r, err));
    }
    return mstx__tl_check(r->tl, err);
}

enum ms_rc mstx_op_rows_read(struct mstx_tl *tl, struct mstx_ops *o, struct ms_err *err)
{
    struct reading r = {.tl = tl, .o = o};
    *o = (struct mstx_ops){0};
    enum ms_rc rc = read_tracks(&r, err);
    if (rc == MS_OK && r.row.n != 0)
        qsort(r.row.p, r.row.n, sizeof *r.row.p, by_step);
    if (rc == MS_OK) {
        put_steps(&r);
        mstx__ops_ready(o);
        mstx__ops_find_meets(o);
        rc = o->no_memory ? ms_no_memory(err) : MS_OK;
    }
    ms_vec_free(&r.row);
    if (rc != MS_OK)
        mstx__ops_free(o);
    return rc;
}
