/* SPDX-License-Identifier: MIT
 *
 * device_lanes: see the header.
 */
#include "mstx/read/device_lanes.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A host event that has a device side. */
struct caller {
    uint64_t id, begin;
    uint32_t lane, at;
};

static int by_id_and_begin(const void *pa, const void *pb)
{
    const struct caller *a = pa, *b = pb;
    return MS_ORDER(a->id, b->id, MS_ORDER(a->begin, b->begin, 0));
}

static int compare_times(const struct mstx_device_time *t, uint64_t id, uint64_t begin)
{
    return MS_ORDER(t->id, id, MS_ORDER(t->begin, begin, 0));
}

static int by_event(const void *pa, const void *pb)
{
    const struct mstx_device_time *a = pa, *b = pb;
    int order = compare_times(a, b->id, b->begin);
    return order != 0 ? order : (int)a->is_end - (int)b->is_end;
}

/* The lane that a stream has in a domain. */
struct stream_lane {
    uint64_t key;
    uint32_t domain, lane;
};

struct device {
    struct mstx_lanes *l;
    MS_VEC(struct caller) caller;
    MS_VEC(struct stream_lane) lane;
    uint64_t links;
};

static bool list_callers(struct device *d)
{
    for (size_t i = 0; i < d->l->lane.n; i++) {
        const struct mstx_lane *lane = &d->l->lane.p[i];
        for (size_t k = 0; lane->kind == MSTX_TRACK_THREAD && k < lane->ev.n; k++) {
            const struct mstx_raw *raw = &lane->ev.p[k];
            if (!(raw->flags & MSTX_EVF_STREAM) || raw->id == 0 || raw->extra == 0)
                continue;
            struct caller *c = ms_vec_push(&d->caller);
            if (c == NULL)
                return false;
            *c = (struct caller){raw->id, raw->begin, (uint32_t)i, (uint32_t)k};
        }
    }
    return true;
}

/* Returns the newest name and device that the program gave a stream. */
static const struct mstx_stream *stream_of(const struct mstx_lanes *l, uint64_t key)
{
    for (size_t i = l->stream.n; i-- > 0;) {
        if (l->stream.p[i].key == key)
            return &l->stream.p[i];
    }
    return NULL;
}

static uint32_t stream_name(struct mstx_lanes *l, uint64_t key, const struct mstx_stream *s)
{
    char text[40];
    if (s != NULL && s->name != 0)
        return s->name;
    int n = snprintf(text, sizeof text, "Stream %#" PRIx64, key);
    return l->texts->to->intern(l->texts->to->ctx, (struct ms_str){text, (uint32_t)n});
}

/* Finds or adds the lane of a stream in a domain; like host threads, a stream has a lane per
 * domain. */
static bool lane_of(struct device *d, uint64_t key, uint32_t domain, uint32_t *lane)
{
    for (size_t i = 0; i < d->lane.n; i++) {
        if (d->lane.p[i].key == key && d->lane.p[i].domain == domain) {
            *lane = d->lane.p[i].lane;
            return true;
        }
    }
    const struct mstx_stream *s = stream_of(d->l, key);
    uint32_t number = s != NULL ? s->number : (uint32_t)key;
    struct mstx_lane *made =
        mstx__lane_add(d->l, MSTX_TRACK_STREAM, number, domain, stream_name(d->l, key, s), lane);
    struct stream_lane *slot = made != NULL ? ms_vec_push(&d->lane) : NULL;
    if (slot == NULL)
        return false;
    *slot = (struct stream_lane){key, domain, *lane};
    made->is_mono_ns = true;
    made->device = s != NULL ? s->device : 0;
    return true;
}

/* Adds one device event; the start or the end of a range may be missing. */
static bool add_device_event(struct device *d, const struct caller *c,
                             const struct mstx_device_time *start,
                             const struct mstx_device_time *end)
{
    const struct mstx_raw host = d->l->lane.p[c->lane].ev.p[c->at];
    struct mstx_extra *mine = &d->l->extra.p[host.extra - 1];
    uint32_t lane, extra;
    mine->size = ++d->links;
    if (!lane_of(d, mine->arg, d->l->lane.p[c->lane].domain, &lane))
        return false;
    struct mstx_raw *raw = mstx__lane_event(d->l, lane, start != NULL ? start->ns : end->ns);
    struct mstx_extra *x = raw != NULL ? mstx__extra(d->l, &extra) : NULL;
    if (x == NULL)
        return false;
    x->size = d->links;
    raw->end = end != NULL ? end->ns : raw->begin;
    raw->id = host.id;
    raw->name = host.name;
    raw->kind = host.kind;
    raw->extra = extra;
    if (host.kind != MSTX_EV_MARK && end == NULL)
        raw->flags |= MSTX_EVF_UNFINISHED;
    if (start == NULL)
        raw->flags |= MSTX_EVF_START_LOST;
    return true;
}

static bool match_callers(struct device *d)
{
    const struct mstx_device_time *t = d->l->device.p, *last = t + d->l->device.n;
    for (size_t i = 0; i < d->caller.n; i++) {
        const struct caller *c = &d->caller.p[i];
        const struct mstx_device_time *start = NULL, *end = NULL;
        while (t < last && compare_times(t, c->id, c->begin) < 0)
            t++;
        for (; t < last && compare_times(t, c->id, c->begin) == 0; t++) {
            if (t->is_end)
                end = t;
            else
                start = t;
        }
        if ((start != NULL || end != NULL) && !add_device_event(d, c, start, end))
            return false;
    }
    return true;
}

void mstx__device_lanes_add(struct mstx_lanes *l)
{
    struct device d = {.l = l};
    if (l->device.n == 0)
        return;
    qsort(l->device.p, l->device.n, sizeof *l->device.p, by_event);
    bool ok = list_callers(&d);
    if (ok && d.caller.n != 0) {
        qsort(d.caller.p, d.caller.n, sizeof *d.caller.p, by_id_and_begin);
        ok = match_callers(&d);
    }
    l->no_memory |= !ok;
    ms_vec_free(&d.caller);
    ms_vec_free(&d.lane);
}
