/* SPDX-License-Identifier: MIT
 *
 * tl_clock: ticks to wall-clock nanoseconds.
 *
 * All processes of one boot read the same counter, so their calibration points
 * make one clock: between two points time is a straight line, and ranks of one
 * host keep their true order.  The steady clock gives the slope; the wall clock
 * is looked at once, as it may jump.
 */
#include "mstx/tl_read.h"

#include "probe/base/mem.h"

#include <math.h>
#include <stdlib.h>

/* Points closer than this say more about their own noise than about the slope. */
static const int64_t KNOT_APART_NS = 200 * 1000 * 1000;

struct mstx_host_clock *mstx__clock_of(struct mstx_clocks *c, const struct mstx_seg *h)
{
    for (size_t i = 0; i < c->host.n; i++) {
        struct mstx_host_clock *k = &c->host.p[i];
        if (k->clock == h->clock && memcmp(k->boot_id, h->boot_id, sizeof k->boot_id) == 0)
            return k;
    }
    struct mstx_host_clock *k = ms_vec_push(&c->host);
    if (k == NULL)
        return NULL;
    *k = (struct mstx_host_clock){.clock = h->clock};
    memcpy(k->boot_id, h->boot_id, sizeof k->boot_id);
    if (h->clock == MSTX_CLOCK_MONOTONIC)
        k->slope = 1;
    else if (h->tick_hz != 0)
        k->slope = 1e9 / (double)h->tick_hz;
    return k;
}

/* ---- collecting ------------------------------------------------------------- */

static bool is_plausible(const struct mstx_knot *k)
{
    const int64_t year_2100 = INT64_C(4102444800000000000), years_36 = (int64_t)1 << 60;
    return k->ticks != 0 && k->mono_ns > 0 && k->mono_ns < years_36 && k->real_ns > 0 &&
           k->real_ns < year_2100;
}

static bool add_knot(struct mstx_host_clock *c, struct mstx_knot k)
{
    if (!is_plausible(&k))
        return true;
    struct mstx_knot *slot = ms_vec_push(&c->knot);
    c->line.span = 0;
    if (slot != NULL)
        *slot = k;
    return slot != NULL;
}

static bool add_calib(struct mstx_host_clock *c, const struct mstx_calib *k)
{
    return add_knot(c, (struct mstx_knot){k->ticks, k->monotonic_ns, k->realtime_ns, k->width, 0});
}

static bool add_apart(struct mstx_host_clock *c, const struct mstx_rec *r)
{
    const int64_t years_36 = (int64_t)1 << 60;
    const struct mstx_apart a = {(int64_t)r->arg, (int64_t)r->id, r->name, MSTX_APART_PINGS};
    if (a.at_ns <= 0 || a.at_ns > years_36 || a.offset_ns > years_36 || a.offset_ns < -years_36)
        return true; /* damage */
    struct mstx_apart *slot = ms_vec_push(&c->apart);
    if (slot != NULL)
        *slot = a;
    return slot != NULL;
}

enum ms_rc mstx__clock_add(struct mstx_clocks *c, const struct mstx_segment *s, struct ms_err *err)
{
    struct mstx_host_clock *k = mstx__clock_of(c, &s->head);
    bool ok = k != NULL && add_calib(k, &s->head.first_calib) && add_calib(k, &s->head.last_calib);
    for (uint64_t i = 0; ok && s->head.ring == 0 && i < s->n; i++) {
        const struct mstx_rec *r = &s->rec[i];
        if (r->type == MSTX_REC_CALIB)
            ok = add_knot(
                k, (struct mstx_knot){r->ticks, (int64_t)r->id, (int64_t)r->arg, r->name, 0});
    }
    for (uint64_t i = 0; ok && s->head.ring == 0 && i < s->n; i++) {
        if (s->rec[i].type == MSTX_REC_SYNC)
            ok = add_apart(k, &s->rec[i]);
    }
    return ok ? MS_OK : ms_no_memory(err);
}

/* ---- fitting ---------------------------------------------------------------- */

static int by_ticks(const void *pa, const void *pb)
{
    const struct mstx_knot *a = pa, *b = pb;
    return a->ticks < b->ticks ? -1 : a->ticks > b->ticks;
}

/* Of neighbours the one read most exactly stays; a point that would turn time back goes.  A run too
 * short for two points apart keeps its first and last: a rough slope is better than a guess. */
static void thin(struct mstx_host_clock *c)
{
    const struct mstx_knot first = c->knot.p[0], end = c->knot.p[c->knot.n - 1];
    size_t out = 0;
    for (size_t i = 0; i < c->knot.n; i++) {
        struct mstx_knot *k = &c->knot.p[i];
        struct mstx_knot *last = out != 0 ? &c->knot.p[out - 1] : NULL;
        if (last == NULL || (k->ticks > last->ticks && k->mono_ns - last->mono_ns > KNOT_APART_NS))
            c->knot.p[out++] = *k;
        else if (k->width < last->width && (out < 2 || k->mono_ns > c->knot.p[out - 2].mono_ns))
            *last = *k;
    }
    if (out == 1 && end.ticks > first.ticks && end.mono_ns > first.mono_ns) {
        c->knot.p[0] = first;
        c->knot.p[out++] = end;
    }
    c->knot.n = out;
}

bool mstx__clock_fit(struct mstx_host_clock *c)
{
    size_t n = c->knot.n;
    c->at = c->line.span = 0;
    if (n == 0) {
        c->slope = c->slope != 0 ? c->slope : 1;
        return false;
    }
    qsort(c->knot.p, n, sizeof *c->knot.p, by_ticks);
    c->offset_ns = c->knot.p[0].real_ns - c->knot.p[0].mono_ns;
    thin(c);
    n = c->knot.n;
    for (size_t i = 0; i + 1 < n; i++) {
        struct mstx_knot *k = &c->knot.p[i];
        k->slope = (double)(k[1].mono_ns - k->mono_ns) / (double)(k[1].ticks - k->ticks);
    }
    bool known = n > 1 || c->slope != 0;
    c->knot.p[n - 1].slope = n > 1 ? c->knot.p[n - 2].slope : known ? c->slope : 1;
    return known;
}

static int by_time(const void *pa, const void *pb)
{
    const struct mstx_apart *a = pa, *b = pb;
    return a->at_ns < b->at_ns ? -1 : a->at_ns > b->at_ns;
}

static const double MOST_DRIFT = 200e-6; /* no clock is off by more */

/* ns per ns between two points. */
static double drift(const struct mstx_apart *a, const struct mstx_apart *b)
{
    double d = (double)(b->offset_ns - a->offset_ns) / (double)(b->at_ns - a->at_ns);
    return d > MOST_DRIFT ? MOST_DRIFT : d < -MOST_DRIFT ? -MOST_DRIFT : d;
}

/* The line through the points on either side, before the first and behind the last through both. */
static int64_t on_line(const struct mstx_apart *p, size_t n, int64_t at_ns)
{
    size_t i = 0;
    while (i < n && p[i].at_ns <= at_ns)
        i++;
    const bool inside = i > 0 && i < n;
    const struct mstx_apart *from = &p[i > 0 ? i - 1 : 0], *a = inside ? from : p;
    const double slope = n > 1 ? drift(a, inside ? &p[i] : &p[n - 1]) : 0;
    return from->offset_ns + (int64_t)(slope * (double)(at_ns - from->at_ns));
}

/* Could both be true of one clock? */
static bool can_both_be(const struct mstx_apart *a, const struct mstx_apart *b)
{
    const int64_t moved = llabs(a->offset_ns - b->offset_ns), took = llabs(a->at_ns - b->at_ns);
    return took > 0 &&
           moved - a->uncertainty_ns - b->uncertainty_ns <= (int64_t)(MOST_DRIFT * (double)took);
}

static int by_certainty(const void *pa, const void *pb)
{
    const struct mstx_apart *a = pa, *b = pb;
    if (a->uncertainty_ns != b->uncertainty_ns)
        return a->uncertainty_ns < b->uncertainty_ns ? -1 : 1;
    return by_time(pa, pb);
}

/* Of the others the one that tells the slope best comes second. */
static void choose_second(struct mstx_apart *p, size_t n)
{
    size_t best = 1;
    double least = 0;
    for (size_t i = 1; i < n; i++) {
        const double unsure = (double)(p[0].uncertainty_ns + p[i].uncertainty_ns + 1) /
                              (double)(llabs(p[i].at_ns - p[0].at_ns) + 1);
        if (can_both_be(&p[0], &p[i]) && (least == 0 || unsure < least)) {
            least = unsure;
            best = i;
        }
    }
    const struct mstx_apart chosen = p[best];
    for (size_t i = best; i > 1; i--)
        p[i] = p[i - 1];
    if (n > 1)
        p[1] = chosen;
}

/* How far the line may be off, by its points alone. */
static double line_unsure(const struct mstx_apart *p, size_t n, int64_t at_ns)
{
    size_t i = 0;
    while (i < n && p[i].at_ns <= at_ns)
        i++;
    const bool inside = i > 0 && i < n;
    const struct mstx_apart *a = &p[inside ? i - 1 : 0], *b = &p[inside ? i : n - 1];
    const double part = (double)(at_ns - a->at_ns) / (double)(b->at_ns - a->at_ns);
    return fabs(1 - part) * (double)a->uncertainty_ns + fabs(part) * (double)b->uncertainty_ns;
}

/* Does it say nothing that the line does not say better?  A line that is surer there is not bent by it
 * as long as both can be true. */
static bool is_needless(const struct mstx_apart *p, size_t n, const struct mstx_apart *one)
{
    const double off = fabs((double)(on_line(p, n, one->at_ns) - one->offset_ns));
    const double unsure = line_unsure(p, n, one->at_ns), own = (double)one->uncertainty_ns;
    return off <= own + (unsure < own ? unsure : 0);
}

/* The most certain points count; of the others one that the line through those passes by within what
 * it is unsure of teaches nothing, and one that would need a greater slope than a clock has is wrong. */
static void thin_apart(struct mstx_host_clock *c)
{
    struct mstx_apart *p = c->apart.p;
    size_t out = 0;
    qsort(p, c->apart.n, sizeof *p, by_certainty);
    choose_second(p, c->apart.n);
    for (size_t i = 0; i < c->apart.n; i++) {
        const struct mstx_apart one = p[i];
        bool fits = true;
        size_t at = out;
        for (size_t k = 0; fits && k < out; k++)
            fits = can_both_be(&p[k], &one);
        if (!fits || (out >= 2 && is_needless(p, out, &one)))
            continue;
        for (; at > 0 && p[at - 1].at_ns > one.at_ns; at--)
            p[at] = p[at - 1];
        p[at] = one;
        out++;
    }
    c->apart.n = out;
}

void mstx__clocks_align(struct mstx_clocks *c, const struct mstx_host_clock *reference)
{
    for (size_t i = 0; i < c->host.n; i++) {
        struct mstx_host_clock *k = &c->host.p[i];
        if (k->apart.n == 0)
            continue;
        thin_apart(k);
        k->reference_ns = reference->offset_ns;
    }
}

int64_t mstx__clock_shift(const struct mstx_host_clock *c, int64_t mono_ns)
{
    const size_t n = c->apart.n;
    if (n == 0)
        return c->offset_ns;
    return c->reference_ns + on_line(c->apart.p, n, mono_ns);
}

/* ---- converting ------------------------------------------------------------- */

static size_t find_knot(const struct mstx_host_clock *c, uint64_t ticks)
{
    size_t lo = 0, hi = c->knot.n;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (c->knot.p[mid].ticks <= ticks)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static int64_t along(double slope, uint64_t from, uint64_t to)
{
    /* Damaged ticks must not leave the range of time; no run lasts for decades. */
    const double most = 2e18;
    const uint64_t apart = to >= from ? to - from : from - to;
    const double all = (double)(int64_t)(apart < INT64_MAX ? apart : INT64_MAX);
    const double ns = (to >= from ? all : -all) * slope;
    return (int64_t)(ns > most ? most : ns < -most ? -most : ns);
}

/* The stretch in which no time can leave its range. */
static void keep_line(struct mstx_host_clock *c)
{
    const struct mstx_knot *k = &c->knot.p[c->at];
    const uint64_t most = (uint64_t)1 << 53;
    const uint64_t span = c->at + 1 < c->knot.n ? k[1].ticks - k->ticks : most;
    c->line.from = k->ticks;
    c->line.span = k->slope > 200 ? 0 : span < most ? span : most;
    c->line.ns = k->mono_ns;
    c->line.slope = k->slope;
}

int64_t mstx__clock_look_up(struct mstx_host_clock *c, uint64_t ticks)
{
    if (c->knot.n == 0)
        return along(c->slope, 0, ticks);
    const struct mstx_knot *k = &c->knot.p[c->at];
    bool before = ticks < k->ticks && c->at != 0;
    bool behind = c->at + 1 < c->knot.n && ticks >= k[1].ticks;
    if (before || behind) {
        c->at = find_knot(c, ticks);
        k = &c->knot.p[c->at];
    }
    keep_line(c);
    return k->mono_ns + along(k->slope, k->ticks, ticks);
}

int64_t mstx__clock_ns(struct mstx_host_clock *c, uint64_t ticks)
{
    const int64_t most = ((int64_t)1 << 62) - 1; /* what a chunk can hold */
    int64_t ns = mstx__clock_steady(c, ticks);
    if (c->knot.n == 0)
        return ns;
    ns += mstx__clock_shift(c, ns);
    return ns > most ? most : ns < -most ? -most : ns;
}

void mstx__clocks_free(struct mstx_clocks *c)
{
    for (size_t i = 0; i < c->host.n; i++)
        ms_vec_free(&c->host.p[i].knot);
    for (size_t i = 0; i < c->host.n; i++)
        ms_vec_free(&c->host.p[i].apart);
    ms_vec_free(&c->host);
}
