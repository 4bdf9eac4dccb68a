/* SPDX-License-Identifier: MIT
 *
 * trail: see the header.
 */
#include "mstx/differ/trail.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

/* A call returns a little after the device is done; a stream needs some time between two kernels. */
static const int64_t RETURN_NS = 2000, NEXT_NS = 5000;

void mstx__trail_free(struct mstx_trail *t)
{
    ms_vec_free(&t->part);
}

static bool add_part(struct mstx_walk *w, uint32_t place, int64_t ns)
{
    if (ns <= 0)
        return true;
    struct mstx_trail_part *slot = place == MSTX_NO_PLACE ? NULL : ms_vec_push(&w->to->part);
    if (slot != NULL)
        *slot = (struct mstx_trail_part){place, w->step, ns};
    return slot != NULL;
}

/* Adds a part of a thread, without the time for which it waited for a CPU. */
static bool add_thread_part(struct mstx_walk *w, size_t lane, uint32_t place, int64_t from,
                            int64_t to)
{
    return add_part(w, place, to - from - mstx__lane_delay(&w->lanes->lane.p[lane], from, to));
}

/* ---- the device -------------------------------------------------------------------------- */

/* Returns when the launch of a device's span was done; INT64_MIN: unknown. */
static int64_t launched(const struct mstx_walk *w, const struct mstx_device_span *d)
{
    if (d->lane < 0)
        return INT64_MIN;
    const int64_t end = w->lanes->lane.p[d->lane].span.p[d->call].end;
    return end < d->start ? end : d->start;
}

/* Returns the device's span after which this one began; MSTX_NO_SPAN: none. */
static uint32_t forerunner(const struct mstx_walk *w, uint32_t k, int64_t launch)
{
    const struct mstx_device_span *d = &w->lanes->device.p[k];
    uint32_t best = d->before;
    const int64_t end = best != MSTX_NO_SPAN ? w->lanes->device.p[best].end : INT64_MIN;
    if (launch < d->start - NEXT_NS && end < d->start - NEXT_NS) {
        const uint32_t other = mstx__device_ended(w->lanes, d->start); /* on another stream */
        if (other != MSTX_NO_SPAN && other < k)
            best = other;
    }
    ms_assert(best == MSTX_NO_SPAN || best < k);
    return best;
}

/* Where the walk is. */
struct spot {
    size_t lane;
    int64_t t;
};

static int64_t within(int64_t t, int64_t from, int64_t to)
{
    return t < from ? from : t > to ? to : t;
}

/* Walks back on the device from span k to the launch that it waited for. */
static bool walk_device(struct mstx_walk *w, uint32_t k, int64_t from, struct spot *at)
{
    for (;;) {
        const struct mstx_device_span *d = &w->lanes->device.p[k];
        const int64_t begin = within(d->start, from, at->t);
        if (!add_part(w, d->place, at->t - begin))
            return false;
        at->t = begin;
        const int64_t launch = launched(w, d);
        k = forerunner(w, k, launch);
        const int64_t end = k != MSTX_NO_SPAN ? w->lanes->device.p[k].end : INT64_MIN;
        const int64_t stop = within(end > launch ? end : launch, from, at->t);
        const uint32_t gap = mstx__places_child(w->places, d->place, w->gap, MSTX_PLACE_GAP);
        if (begin == from || (launch == INT64_MIN && end == INT64_MIN))
            return true;
        if (!add_part(w, gap, at->t - stop))
            return false;
        at->t = stop;
        if (launch >= end) {
            at->lane = (size_t)d->lane;
            return true;
        }
    }
}

/* Finds the device's span for which the innermost call of a thread waited from begin to t. */
static uint32_t awaited(const struct mstx_walk *w, const struct mstx_lane_span *s, int64_t begin,
                        int64_t t)
{
    if (w->lanes->device.n == 0 || s->holds)
        return MSTX_NO_SPAN;
    const uint32_t k = mstx__device_ended(w->lanes, t + RETURN_NS);
    if (k == MSTX_NO_SPAN || w->lanes->device.p[k].end <= begin)
        return MSTX_NO_SPAN;
    const bool is_own = s->link != 0 && w->lanes->device.p[k].link == s->link;
    return s->waits || is_own ? k : MSTX_NO_SPAN;
}

/* Walks back through a wait of the thread until t; false when out of memory. */
static bool walk_wait(struct mstx_walk *w, const struct mstx_lane_span *s, uint32_t k,
                      int64_t begin, int64_t from, struct spot *at)
{
    const int64_t end = within(w->lanes->device.p[k].end, begin, at->t);
    if (!add_thread_part(w, at->lane, s->place, end, at->t))
        return false;
    at->t = end;
    return walk_device(w, k, from, at);
}

/* ---- threads ----------------------------------------------------------------------------- */

/* While the thread itself only stands in a range, another thread may do the work (autograd's).
 * Moves *place to what that one does until t, and *begin to where this ends. */
static void look_aside(const struct mstx_walk *w, size_t lane, int64_t t, uint32_t *place,
                       int64_t *begin)
{
    int64_t latest = *begin;
    for (size_t i = 0; i < w->lanes->lane.n; i++) {
        const struct mstx_lane *l = &w->lanes->lane.p[i];
        const size_t bit = i != lane ? mstx__lane_bit_at(l, t - 1) : SIZE_MAX;
        if (bit == SIZE_MAX)
            continue;
        const int64_t start = l->bit.p[bit].start;
        const uint32_t span = l->bit.p[bit].span;
        if (span != MSTX_NO_SPAN && l->span.p[span].place != MSTX_ROOT) {
            *place = l->span.p[span].place;
            *begin = start > *begin ? start : *begin;
            return;
        }
        latest = start > latest ? start : latest;
    }
    *begin = latest;
}

/* While a thread does nothing that is known, a stream may work, of whose launches nothing is known
 * either.  Moves *place to what it does until t, and *begin to where this begins. */
static void look_at_streams(const struct mstx_walk *w, int64_t t, uint32_t *place, int64_t *begin)
{
    const mstx_device_spans *all = &w->lanes->device;
    const uint32_t ended = mstx__device_ended(w->lanes, t - 1);
    const size_t next =
        ended != MSTX_NO_SPAN ? ended + 1 : 0; /* the first that ends at t or later */
    if (w->lanes->has_launches)
        return;
    if (next < all->n && all->p[next].start < t) {
        *place = all->p[next].place;
        *begin = all->p[next].start > *begin ? all->p[next].start : *begin;
    } else if (ended != MSTX_NO_SPAN) {
        *begin = all->p[ended].end > *begin ? all->p[ended].end : *begin;
    }
}

static bool walk_bit(struct mstx_walk *w, int64_t from, struct spot *at)
{
    const struct mstx_lane *l = &w->lanes->lane.p[at->lane];
    const size_t bit = mstx__lane_bit_at(l, at->t - 1);
    const uint32_t span = bit != SIZE_MAX ? l->bit.p[bit].span : MSTX_NO_SPAN;
    const struct mstx_lane_span *s = span != MSTX_NO_SPAN ? &l->span.p[span] : NULL;
    const struct spot before = *at;
    uint32_t place = s != NULL ? s->place : MSTX_ROOT;
    int64_t begin = bit != SIZE_MAX ? within(l->bit.p[bit].start, from, at->t) : from;
    const uint32_t k = s != NULL ? awaited(w, s, begin, at->t) : MSTX_NO_SPAN;
    if (k != MSTX_NO_SPAN && !walk_wait(w, s, k, begin, from, at))
        return false;
    if (at->t < before.t)
        return true;
    if (w->lanes->is_profile && (s == NULL || s->holds))
        look_aside(w, at->lane, at->t, &place, &begin);
    if (place == MSTX_ROOT)
        look_at_streams(w, at->t, &place, &begin);
    at->t = begin < before.t ? begin : before.t - 1;
    return add_thread_part(w, at->lane, place, at->t, before.t);
}

bool mstx__trail_walk(struct mstx_walk *w, size_t lane, int64_t from, int64_t to)
{
    struct spot at = {lane, to};
    bool ok = true;
    if (w->lanes->lane.n == 0)
        return add_part(w, MSTX_ROOT, to - from);
    while (ok && at.t > from) {
        const int64_t before = at.t;
        ok = walk_bit(w, from, &at);
        ms_assert(at.t < before || !ok);
    }
    return ok;
}

/* ---- order ------------------------------------------------------------------------------- */

/* Parts come in the order of their steps and, within one, from the end: sorting by place alone, which
 * keeps that order, is a count. */
bool mstx__trail_sort(struct mstx_trail *t, size_t places)
{
    size_t *next = ms_calloc(places + 1, sizeof *next), sum = 0;
    struct mstx_trail_part *sorted = ms_calloc(t->part.n + 1, sizeof *sorted);
    const bool ok = next != NULL && sorted != NULL;
    for (size_t i = 0; i < t->part.n && ok; i++)
        next[t->part.p[i].place]++;
    for (size_t i = 0; i < places && ok; i++) {
        const size_t n = next[i];
        next[i] = sum;
        sum += n;
    }
    for (size_t i = 0; i < t->part.n && ok; i++)
        sorted[next[t->part.p[i].place]++] = t->part.p[i];
    ms_free(next);
    if (ok) {
        ms_free(t->part.p);
        t->part.p = sorted;
        t->part.cap = t->part.n + 1;
    } else {
        ms_free(sorted);
    }
    return ok;
}
