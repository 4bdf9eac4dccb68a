/* SPDX-License-Identifier: MIT
 *
 * export_flows: see the header.
 */
#include "mstx/foreign/export_flows.h"

#include "mstx/rundb/run_schema.h"

#include "probe/base/order.h"
#include "probe/base/store.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- launches --------------------------------------------------------------------------- */

/* An event with the number that a launch and its kernel have in common. */
struct end {
    uint64_t number;
    int64_t at_ns;
    uint32_t process, track;
};
struct ends {
    MS_VEC(struct end) call, work;
    const struct mstx_track *track;
    uint32_t index; /* of the track */
};

static enum ms_rc take_end(void *ctx, const struct mstx_event *e, struct ms_err *err)
{
    struct ends *x = ctx;
    if (e->size == 0 || !(e->flags & MSTX_EVF_CATEGORY))
        return MS_OK;
    struct end *slot =
        x->track->kind == MSTX_TRACK_STREAM ? ms_vec_push(&x->work) : ms_vec_push(&x->call);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct end){e->size, e->start_ns, x->track->process, x->index};
    return MS_OK;
}

static bool is_traced(struct mstx_tl *tl, const struct mstx_track *t)
{
    return (t->kind == MSTX_TRACK_STREAM || t->kind == MSTX_TRACK_THREAD) &&
           ms_str_is(mstx_tl_process(tl, t->process)->tool, MSTX_TOOL_KINETO);
}

static enum ms_rc collect(struct mstx_tl *tl, struct ends *x, struct ms_err *err)
{
    for (size_t i = 0; i < mstx_tl_track_count(tl); i++) {
        x->track = mstx_tl_track(tl, i);
        x->index = (uint32_t)i;
        if (is_traced(tl, x->track))
            MS_TRY(mstx_tl_walk(tl, i, NULL, take_end, x, err));
    }
    return MS_OK;
}

static int by_number(const void *a, const void *b)
{
    const struct end *x = a, *y = b;
    return MS_ORDER(x->process, y->process,
                    MS_ORDER(x->number, y->number, MS_ORDER(x->at_ns, y->at_ns, 0)));
}

static enum ms_rc join_ends(struct ends *x, mstx_flows *flows, struct ms_err *err)
{
    if (x->call.n == 0 || x->work.n == 0)
        return MS_OK;
    qsort(x->call.p, x->call.n, sizeof *x->call.p, by_number);
    qsort(x->work.p, x->work.n, sizeof *x->work.p, by_number);
    for (size_t i = 0, k = 0; i < x->work.n; i++) {
        const struct end *to = &x->work.p[i];
        while (k < x->call.n &&
               (x->call.p[k].process < to->process ||
                (x->call.p[k].process == to->process && x->call.p[k].number < to->number)))
            k++;
        if (k == x->call.n)
            break;
        const struct end *from = &x->call.p[k];
        if (from->process != to->process || from->number != to->number)
            continue;
        struct mstx_flow *slot = ms_vec_push(flows);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = (struct mstx_flow){"ac2g", from->track, to->track, from->at_ns, to->at_ns};
    }
    return MS_OK;
}

static enum ms_rc read_launches(struct mstx_tl *tl, mstx_flows *flows, struct ms_err *err)
{
    struct ends x = {0};
    enum ms_rc rc = collect(tl, &x, err);
    if (rc == MS_OK)
        rc = join_ends(&x, flows, err);
    ms_vec_free(&x.call);
    ms_vec_free(&x.work);
    return rc;
}

/* ---- flows of the trace ------------------------------------------------------------------- */

static enum ms_rc take_flow(struct mstx_tl *tl, struct ms_stmt *st, mstx_flows *flows,
                            struct ms_err *err)
{
    const int64_t from = ms_stmt_get_i64(st, 1) - 1, to = ms_stmt_get_i64(st, 3) - 1;
    const int64_t tracks = (int64_t)mstx_tl_track_count(tl);
    if (from < 0 || from >= tracks || to < 0 || to >= tracks) /* to a lane without events */
        return MS_OK;
    struct mstx_flow *slot = ms_vec_push(flows);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct mstx_flow){.from_track = (uint32_t)from,
                               .to_track = (uint32_t)to,
                               .from_ns = ms_stmt_get_i64(st, 2),
                               .to_ns = ms_stmt_get_i64(st, 4)};
    snprintf(slot->name, sizeof slot->name, "%.*s", MS_STR_ARG(ms_stmt_get_str(st, 0)));
    return MS_OK;
}

static enum ms_rc read_stored(struct mstx_tl *tl, mstx_flows *flows, struct ms_err *err)
{
    struct ms_stmt *st;
    if (ms_store_prepare(mstx_tl_store(tl), &st,
                         "SELECT name, from_track, from_ns, to_track, to_ns FROM flows",
                         NULL) != MS_OK)
        return MS_OK; /* a run of an older version */
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err))
        rc = take_flow(tl, st, flows, err);
    ms_stmt_free(st);
    return rc;
}

enum ms_rc mstx__flows_read(struct mstx_tl *tl, mstx_flows *flows, struct ms_err *err)
{
    *flows = (mstx_flows){0};
    enum ms_rc rc = read_stored(tl, flows, err);
    if (rc == MS_OK)
        rc = read_launches(tl, flows, err);
    if (rc != MS_OK)
        ms_vec_free(flows);
    return rc;
}
