/* SPDX-License-Identifier: MIT
 *
 * tl_device: when marks and ranges with a stream were reached on the device.
 *
 * A DEVICE record holds the id of a mark or range and a time of the steady clock; a
 * mark has one, a range two.  Ids are used again, so both sides of an id are put in
 * order of time and walked together: a stream works in the order of its calls.
 */
#include "mstx/tl_lanes.h"

#include "probe/base/mem.h"

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
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static int by_id_and_time(const void *pa, const void *pb)
{
    const struct mstx_device_time *a = pa, *b = pb;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return a->ns < b->ns ? -1 : a->ns > b->ns;
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

/* The newest name and device that the program gave a stream. */
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
    return mstx__writer_text(l->texts->w, (struct ms_str){text, (uint32_t)n});
}

/* The lane of a stream within a domain, as the host side has one for each as well. */
static bool lane_of(struct device *d, uint64_t key, uint32_t domain, uint32_t *lane)
{
    for (size_t i = 0; i < d->lane.n; i++) {
        if (d->lane.p[i].key == key && d->lane.p[i].domain == domain) {
            *lane = d->lane.p[i].lane;
            return true;
        }
    }
    const struct mstx_stream *s = stream_of(d->l, key);
    struct mstx_lane *made = mstx__lane_add(d->l, MSTX_TRACK_STREAM, (uint32_t)key, domain,
                                            stream_name(d->l, key, s), lane);
    struct stream_lane *slot = made != NULL ? ms_vec_push(&d->lane) : NULL;
    if (slot == NULL)
        return false;
    *slot = (struct stream_lane){key, domain, *lane};
    made->is_mono_ns = true;
    made->device = s != NULL ? s->device : 0;
    return true;
}

/* One event on the device, from t[0] to t[n - 1]. */
static bool add(struct device *d, const struct caller *c, const struct mstx_device_time *t,
                size_t n)
{
    const struct mstx_raw host = d->l->lane.p[c->lane].ev.p[c->at];
    struct mstx_extra *mine = &d->l->extra.p[host.extra - 1];
    uint32_t lane, extra;
    mine->size = ++d->links;
    if (!lane_of(d, mine->arg, d->l->lane.p[c->lane].domain, &lane))
        return false;
    struct mstx_raw *raw = mstx__lane_event(d->l, lane, t[0].ns);
    struct mstx_extra *x = raw != NULL ? mstx__extra(d->l, &extra) : NULL;
    if (x == NULL)
        return false;
    x->size = d->links;
    raw->end = t[n - 1].ns;
    raw->id = host.id;
    raw->name = host.name;
    raw->kind = host.kind;
    raw->extra = extra;
    return true;
}

static bool match(struct device *d)
{
    const struct mstx_device_time *t = d->l->device.p, *end = t + d->l->device.n;
    for (size_t i = 0; i < d->caller.n; i++) {
        const struct caller *c = &d->caller.p[i];
        bool is_mark = d->l->lane.p[c->lane].ev.p[c->at].kind == MSTX_EV_MARK;
        size_t want = is_mark ? 1 : 2, n = 0;
        while (t < end && t->id < c->id)
            t++;
        while (t + n < end && n < want && t[n].id == c->id)
            n++;
        if (n != 0 && !add(d, c, t, n))
            return false;
        t += n;
    }
    return true;
}

void mstx__device_lanes(struct mstx_lanes *l)
{
    struct device d = {.l = l};
    if (l->device.n == 0)
        return;
    qsort(l->device.p, l->device.n, sizeof *l->device.p, by_id_and_time);
    bool ok = list_callers(&d);
    if (ok && d.caller.n != 0) {
        qsort(d.caller.p, d.caller.n, sizeof *d.caller.p, by_id_and_begin);
        ok = match(&d);
    }
    l->no_memory |= !ok;
    ms_vec_free(&d.caller);
    ms_vec_free(&d.lane);
}
