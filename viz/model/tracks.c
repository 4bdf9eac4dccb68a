/* SPDX-License-Identifier: MIT
 *
 * tracks: lanes in display order.
 */
#include "viz/model/tracks.h"
#include "mstx/foreign/export.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdlib.h>

enum { LABEL_MAX = 512, TEXT_MAX = 1 << 30 };

/* ---- order -------------------------------------------------------------------------- */

struct ordered {
    uint32_t process, track;
    const struct mstx_process *p;
    const struct mstx_track *t;
};

/* Sorts by rank; processes without a rank come last. */
static int by_process(const struct ordered *a, const struct ordered *b)
{
    uint32_t ra = (uint32_t)a->p->rank, rb = (uint32_t)b->p->rank; /* -1 becomes the largest */
    if (ra != rb)
        return ra < rb ? -1 : 1;
    return a->process < b->process ? -1 : a->process > b->process;
}

static unsigned kind_order(enum mstx_track_kind k)
{
    static const unsigned place[MSTX_TRACK_KINDS] = {[MSTX_TRACK_THREAD] = 0,
                                                     [MSTX_TRACK_STREAM] = 1,
                                                     [MSTX_TRACK_COUNTER] = 2,
                                                     [MSTX_TRACK_MEMORY] = 3};
    return place[k];
}

static int order_tracks(const void *pa, const void *pb)
{
    const struct ordered *a = pa, *b = pb;
    int c = by_process(a, b);
    if (c != 0)
        return c;
    if (kind_order(a->t->kind) != kind_order(b->t->kind))
        return kind_order(a->t->kind) < kind_order(b->t->kind) ? -1 : 1;
    if (a->t->device != b->t->device)
        return a->t->device < b->t->device ? -1 : 1;
    if (a->t->tid != b->t->tid)
        return a->t->tid < b->t->tid ? -1 : 1;
    return a->track < b->track ? -1 : a->track > b->track;
}

/* ---- labels ------------------------------------------------------------------------- */

static void put_thread(struct ms_buf *b, const struct mstx_track *t)
{
    if (t->name.n != 0)
        ms_buf_str(b, t->name);
    else
        ms_buf_printf(b, "thread %" PRIu32, t->tid);
    if (!ms_str_is(t->domain, "default") && t->domain.n != 0)
        ms_buf_printf(b, " \xc2\xb7 %.*s", MS_STR_ARG(t->domain));
}

static void put_label(struct ms_buf *b, const struct mstx_track *t)
{
    if (t->kind == MSTX_TRACK_THREAD) {
        put_thread(b, t);
        return;
    }
    if (t->name.n != 0)
        ms_buf_str(b, t->name);
    else if (t->kind == MSTX_TRACK_STREAM)
        ms_buf_printf(b, "stream %" PRIu32, t->tid);
    if (t->kind == MSTX_TRACK_STREAM)
        ms_buf_printf(b, " of device %" PRIu32, t->device);
    if (t->kind == MSTX_TRACK_STREAM && ms_str_is(t->domain, MSTX_BESIDE_DOMAIN))
        ms_buf_puts(b, " \xc2\xb7 " MSTX_BESIDE_DOMAIN);
    if (t->unit.n != 0)
        ms_buf_printf(b, " (%.*s)", MS_STR_ARG(t->unit));
}

static enum ms_rc add_lane(struct viz_tracks *t, const struct viz_lane *lane, struct ms_str label,
                           struct ms_err *err)
{
    struct viz_lane *slot = ms_vec_push(&t->lanes);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = *lane;
    slot->label = ms_arena_str(t->arena, label);
    return slot->label.p != NULL ? MS_OK : ms_arena_fail(t->arena, err);
}

static enum ms_rc add_track(struct viz_tracks *t, const struct ordered *o, struct ms_err *err)
{
    struct ms_buf b = {.max = LABEL_MAX};
    put_label(&b, o->t);
    struct viz_lane lane = {.kind = VIZ_LANE_TRACK, .process = o->process, .track = o->track};
    enum ms_rc rc = add_lane(t, &lane, ms_buf_slice(&b), err);
    ms_buf_free(&b);
    return rc;
}

static enum ms_rc add_process(struct viz_tracks *t, const struct ordered *o, struct ms_err *err)
{
    char text[MSTX_LABEL_MAX];
    struct viz_lane lane = {.kind = VIZ_LANE_PROCESS, .open = true, .process = o->process};
    return add_lane(t, &lane, mstx__process_label(o->p, text), err);
}

static enum ms_rc add_all(struct viz_tracks *t, const struct ordered *o, size_t n,
                          struct ms_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || o[i].process != o[i - 1].process)
            MS_TRY(add_process(t, &o[i], err));
        MS_TRY(add_track(t, &o[i], err));
    }
    return MS_OK;
}

enum ms_rc viz_tracks_make(struct viz_tracks *t, struct mstx_tl *tl, struct ms_err *err)
{
    size_t n = mstx_tl_track_count(tl);
    *t = (struct viz_tracks){.arena = ms_arena_new(TEXT_MAX)};
    struct ordered *o = ms_calloc(n + 1, sizeof *o);
    enum ms_rc rc = o != NULL && t->arena != NULL ? MS_OK : ms_no_memory(err);
    for (size_t i = 0; i < n && rc == MS_OK; i++) {
        const struct mstx_track *track = mstx_tl_track(tl, i);
        o[i] = (struct ordered){track->process, (uint32_t)i, mstx_tl_process(tl, track->process),
                                track};
    }
    if (rc == MS_OK) {
        qsort(o, n, sizeof *o, order_tracks);
        rc = add_all(t, o, n, err);
    }
    ms_free(o);
    if (rc != MS_OK)
        viz_tracks_free(t);
    return rc;
}

void viz_tracks_free(struct viz_tracks *t)
{
    ms_vec_free(&t->lanes);
    ms_arena_free(t->arena);
    *t = (struct viz_tracks){.arena = NULL};
}

/* ---- visible lanes ------------------------------------------------------------------ */

static enum ms_rc add_seen(viz_seen *seen, size_t i, struct ms_err *err)
{
    size_t *slot = ms_vec_push(seen);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = i;
    return MS_OK;
}

enum ms_rc viz_tracks_seen(const struct viz_tracks *t, viz_seen *seen, struct ms_err *err)
{
    seen->n = 0;
    bool open = true;
    for (size_t i = 0; i < t->lanes.n; i++) {
        const struct viz_lane *l = &t->lanes.p[i];
        if (l->kind == VIZ_LANE_TRACK && l->pinned && !l->hidden)
            MS_TRY(add_seen(seen, i, err));
    }
    for (size_t i = 0; i < t->lanes.n; i++) {
        const struct viz_lane *l = &t->lanes.p[i];
        if (l->kind == VIZ_LANE_PROCESS)
            open = l->open;
        if (l->kind == VIZ_LANE_PROCESS || (open && !l->hidden && !l->pinned))
            MS_TRY(add_seen(seen, i, err));
    }
    return MS_OK;
}

/* ---- load --------------------------------------------------------------------------- */

struct spread {
    int64_t from;
    double part_ns;
    struct viz_busy *part;
    double *longest; /* time of the name stored in part */
    size_t n;
};

/* Adds an event to the parts that it overlaps. An event that stands for several counts only with
 * the share in which they run. */
static void spread_event(struct spread *s, const struct mstx_event *ev)
{
    double a = (double)(ev->start_ns - s->from) / s->part_ns;
    double b = a + (double)ev->dur_ns / s->part_ns;
    double dense =
        ev->count > 1 && ev->dur_ns > 0
            ? (double)(ev->size < (uint64_t)ev->dur_ns ? ev->size : (uint64_t)ev->dur_ns) /
                  (double)ev->dur_ns
            : 1;
    a = a > 0 ? a : 0;
    b = b < (double)s->n ? b : (double)s->n;
    for (size_t i = (size_t)a; i < s->n && (double)i < b; i++) {
        double begin = a > (double)i ? a : (double)i;
        double end = b < (double)(i + 1) ? b : (double)(i + 1);
        double covered = (end - begin) * dense;
        s->part[i].share += (float)covered;
        if (covered > s->longest[i]) {
            s->longest[i] = covered;
            s->part[i].name = ev->name;
        }
    }
}

static enum ms_rc spread_track(struct spread *s, struct mstx_tl *tl, uint32_t track, int64_t to,
                               struct ms_err *err)
{
    mstx_events events = {0};
    if (mstx_tl_track(tl, track)->kind == MSTX_TRACK_COUNTER)
        return MS_OK;
    enum ms_rc rc = mstx_tl_view(tl, track, s->from, to, (int64_t)s->part_ns, &events, err);
    for (size_t i = 0; rc == MS_OK && i < events.n; i++) {
        if (events.p[i].depth == 0) /* nested events run within depth 0 */
            spread_event(s, &events.p[i]);
    }
    ms_vec_free(&events);
    return rc;
}

enum ms_rc viz_tracks_busy(const struct viz_tracks *t, struct mstx_tl *tl, size_t lane,
                           int64_t from, int64_t to, struct viz_busy *part, size_t n,
                           struct ms_err *err)
{
    const struct viz_lane *l = &t->lanes.p[lane];
    if (n == 0 || to <= from)
        return MS_OK;
    memset(part, 0, n * sizeof *part);
    struct spread s = {from, (double)(to - from) / (double)n, part, ms_calloc(n, sizeof *s.longest),
                       n};
    if (s.longest == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < t->lanes.n && rc == MS_OK; i++) {
        const struct viz_lane *x = &t->lanes.p[i];
        bool in = l->kind == VIZ_LANE_TRACK ? i == lane
                                            : x->kind == VIZ_LANE_TRACK && x->process == l->process;
        if (in)
            rc = spread_track(&s, tl, x->track, to, err);
    }
    for (size_t i = 0; i < n; i++)
        part[i].share = part[i].share > 1 ? 1 : part[i].share;
    ms_free(s.longest);
    return rc;
}
