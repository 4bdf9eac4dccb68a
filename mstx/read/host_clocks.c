/* SPDX-License-Identifier: MIT
 *
 * host_clocks: see the header.
 */
#include "mstx/read/host_clocks.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <math.h>

/* Greatest plausible drift between two clocks: oscillators of computers are specified to within 100
 * parts per million. */
static const double MOST_DRIFT = 200e-6;
/* Knots nearer to each other than this are thinned out: over less time the error of reading the
 * clock outweighs the slope. */
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
    return MS_ORDER(a->ticks, b->ticks, 0);
}

/* Keeps the knot with the smallest reading error of each group of close knots, and drops knots that
 * would make time run backwards.  A run too short for two knots keeps the first and the last one: a
 * rough slope is better than a guess. */
static void thin_knots(struct mstx_host_clock *c)
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
    thin_knots(c);
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
    return MS_ORDER(a->at_ns, b->at_ns, 0);
}

/* Returns the drift between two points, in ns per ns. */
static double drift_between(const struct mstx_apart *a, const struct mstx_apart *b)
{
    double d = (double)(b->offset_ns - a->offset_ns) / (double)(b->at_ns - a->at_ns);
    return d > MOST_DRIFT ? MOST_DRIFT : d < -MOST_DRIFT ? -MOST_DRIFT : d;
}

/* Returns the offset at a time, interpolated between the neighbouring points.  Before the first and
 * after the last point it is extrapolated with the slope between these two. */
static int64_t on_line(const struct mstx_apart *p, size_t n, int64_t at_ns)
{
    size_t i = 0;
    while (i < n && p[i].at_ns <= at_ns)
        i++;
    const bool inside = i > 0 && i < n;
    const struct mstx_apart *from = &p[i > 0 ? i - 1 : 0], *a = inside ? from : p;
    const double slope = n > 1 ? drift_between(a, inside ? &p[i] : &p[n - 1]) : 0;
    return from->offset_ns + (int64_t)(slope * (double)(at_ns - from->at_ns));
}

/* Returns true when one clock with a drift up to MOST_DRIFT can have both offsets. */
static bool can_both_be(const struct mstx_apart *a, const struct mstx_apart *b)
{
    const int64_t moved = llabs(a->offset_ns - b->offset_ns), took = llabs(a->at_ns - b->at_ns);
    return took > 0 &&
           moved - a->uncertainty_ns - b->uncertainty_ns <= (int64_t)(MOST_DRIFT * (double)took);
}

static int by_certainty(const void *pa, const void *pb)
{
    const struct mstx_apart *a = pa, *b = pb;
    return MS_ORDER(a->uncertainty_ns, b->uncertainty_ns, by_time(pa, pb));
}

/* Moves to index 1 the point that, together with the most certain one, bounds the slope best. */
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

/* Returns the uncertainty of the line at a time, computed from the uncertainties of its points. */
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

/* Returns true when the line passes a point within their uncertainties, so that the point adds
 * nothing.  A line that is more certain than the point is not bent by it as long as both can be
 * true. */
static bool is_needless(const struct mstx_apart *p, size_t n, const struct mstx_apart *one)
{
    const double off = fabs((double)(on_line(p, n, one->at_ns) - one->offset_ns));
    const double unsure = line_unsure(p, n, one->at_ns), own = (double)one->uncertainty_ns;
    return off <= own + (unsure < own ? unsure : 0);
}

/* Keeps the points that define the line, from the most certain one on.  Drops points that add
 * nothing to the line, and points that would need a drift above MOST_DRIFT, which must be wrong. */
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

static int64_t shift_along(double slope, uint64_t from, uint64_t to)
{
    /* Clamps to 63 years, so that damaged ticks do not overflow int64_t. */
    const double most = 2e18;
    const uint64_t apart = to >= from ? to - from : from - to;
    const double all = (double)(int64_t)(apart < INT64_MAX ? apart : INT64_MAX);
    const double ns = (to >= from ? all : -all) * slope;
    return (int64_t)(ns > most ? most : ns < -most ? -most : ns);
}

/* Caches the line from the current knot to the next for the inline fast path, shortened so that no
 * time on it overflows int64_t. */
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
        return shift_along(c->slope, 0, ticks);
    const struct mstx_knot *k = &c->knot.p[c->at];
    bool before = ticks < k->ticks && c->at != 0;
    bool behind = c->at + 1 < c->knot.n && ticks >= k[1].ticks;
    if (before || behind) {
        c->at = find_knot(c, ticks);
        k = &c->knot.p[c->at];
    }
    keep_line(c);
    return k->mono_ns + shift_along(k->slope, k->ticks, ticks);
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

/* ---- clocks of several hosts from collectives ------------------------------- */

/* Length of the window for which one line is fitted: quartz hardly changes its rate within two
 * minutes.  Chosen by hand; test_host_clocks checks the offsets found with it. */
static const int64_t WINDOW_NS = INT64_C(120) * 1000000000;

/* Bounds that one collective sets on the offset of a host, at times of the host's own clock. */
struct bound {
    int64_t low_at, low;
    int64_t high_at, high;
};
typedef MS_VEC(struct bound) bounds;

bool mstx__meeting_counts(const struct mstx_rec_comm *c)
{
    if (c->lib != MSTX_LIB_MPI) /* calls of other libraries return once queued on the device */
        return false;
    switch (c->op) {
    case MSTX_COMM_BARRIER:
        return true;
    case MSTX_COMM_ALLREDUCE:
    case MSTX_COMM_REDUCE_SCATTER:
    case MSTX_COMM_ALLGATHER:
    case MSTX_COMM_ALLTOALL:
        return c->count != 0; /* without data a rank may return before others have entered */
    default:
        return false;
    }
}

bool mstx__meeting_add(struct mstx_meetings *m, const struct mstx_meeting *one)
{
    const int64_t years_36 = (int64_t)1 << 60;
    if (one->start < 0 || one->end < one->start || one->end > years_36)
        return true;
    struct mstx_meeting *slot = ms_vec_push(&m->list);
    if (slot != NULL)
        *slot = *one;
    return slot != NULL;
}

/* ---- bounds ----------------------------------------------------------------- */

static int by_call(const void *pa, const void *pb)
{
    const struct mstx_meeting *a = pa, *b = pb;
    return MS_ORDER(a->uid, b->uid, MS_ORDER(a->seq, b->seq, (int)a->op - (int)b->op));
}

struct aligning {
    struct mstx_meetings *m;
    struct mstx_clocks *clocks;
    struct mstx_host_clock *reference;
    MS_VEC(uint8_t) known; /* by host: 1 when its offset from the reference is known */
};

static int64_t by_reference(const struct aligning *a, uint32_t host, int64_t t)
{
    const struct mstx_host_clock *k = &a->clocks->host.p[host];
    return k->apart.n == 0 ? t : t + mstx__clock_shift(k, t) - a->reference->offset_ns;
}

/* Finds the bounds that one collective, the calls [from, to), sets on the offset of a host; false
 * when it sets none. */
static bool bound_of(const struct aligning *a, size_t from, size_t to, uint32_t host,
                     struct bound *b)
{
    int64_t came = INT64_MIN, left = INT64_MAX; /* latest start, earliest end on known hosts */
    b->low_at = INT64_MAX;
    b->high_at = INT64_MIN;
    for (size_t i = from; i < to; i++) {
        const struct mstx_meeting *m = &a->m->list.p[i];
        if (m->host == host) {
            b->low_at = m->end < b->low_at ? m->end : b->low_at;
            b->high_at = m->start > b->high_at ? m->start : b->high_at;
        } else if (a->known.p[m->host] != 0) {
            const int64_t start = by_reference(a, m->host, m->start);
            const int64_t end = by_reference(a, m->host, m->end);
            came = start > came ? start : came;
            left = end < left ? end : left;
        }
    }
    if (came == INT64_MIN || b->low_at == INT64_MAX)
        return false;
    b->low = came - b->low_at;
    b->high = left - b->high_at;
    return true;
}

static int by_low_time(const void *pa, const void *pb)
{
    const struct bound *a = pa, *b = pb;
    return MS_ORDER(a->low_at, b->low_at, 0);
}

static enum ms_rc collect_bounds(const struct aligning *a, uint32_t host, bounds *out,
                                 struct ms_err *err)
{
    const struct mstx_meeting *p = a->m->list.p;
    const size_t n = a->m->list.n;
    out->n = 0;
    for (size_t from = 0, to; from < n; from = to) {
        struct bound b;
        for (to = from + 1; to < n && by_call(&p[from], &p[to]) == 0;)
            to++;
        if (!bound_of(a, from, to, host, &b))
            continue;
        struct bound *slot = ms_vec_push(out);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = b;
    }
    ms_vec_sort(out, by_low_time);
    return MS_OK;
}

/* ---- a line between them ----------------------------------------------------- */

struct line {
    int64_t at, offset;   /* the line goes through this point */
    double slope;         /* ns per ns */
    double room;          /* distance to the nearest bounds; negative: no line fits between them */
    int64_t edge[2];      /* offsets at the same time of the flattest and the steepest line */
    double edge_slope[2]; /* that fit between the bounds, and their slopes */
};

static int64_t line_offset(const struct line *l, int64_t offset, double slope, int64_t t)
{
    return offset + (int64_t)(slope * (double)(t - l->at));
}

/* Places the line of the given slope midway between the lower and the upper bounds. */
static void place_line(const struct bound *b, size_t n, struct line *l)
{
    double low = -INFINITY, high = INFINITY;
    l->at = b[0].low_at;
    const int64_t base = b[0].low;
    for (size_t i = 0; i < n; i++) {
        low = fmax(low, (double)(b[i].low - base) - l->slope * (double)(b[i].low_at - l->at));
        high = fmin(high, (double)(b[i].high - base) - l->slope * (double)(b[i].high_at - l->at));
    }
    l->offset = base + (int64_t)((low + high) / 2);
    l->room = (high - low) / 2;
}

/* Finds the extreme slope on one side with which a line still fits between the bounds, by
 * bisection. */
static void find_edge(const struct bound *b, size_t n, struct line *best, int side)
{
    double good = best->slope, bad = side == 0 ? -MOST_DRIFT : MOST_DRIFT;
    struct line l = {0};
    for (int i = 0; i < 30 && n > 1 && best->room > 0; i++) {
        l.slope = (good + bad) / 2;
        place_line(b, n, &l);
        if (l.room >= 0)
            good = l.slope;
        else
            bad = l.slope;
    }
    l.slope = good;
    place_line(b, n, &l);
    best->edge[side] = l.offset;
    best->edge_slope[side] = good;
}

/* Finds the line with the most room, by ternary search: the room is a concave function of the
 * slope. */
static struct line fit_line(const struct bound *b, size_t n)
{
    double from = -MOST_DRIFT, to = MOST_DRIFT;
    struct line l = {0}, r = {0};
    for (int i = 0; i < 60 && n > 1; i++) {
        l.slope = from + (to - from) / 3;
        r.slope = to - (to - from) / 3;
        place_line(b, n, &l);
        place_line(b, n, &r);
        if (l.room < r.room)
            from = l.slope;
        else
            to = r.slope;
    }
    l.slope = n > 1 ? (from + to) / 2 : 0;
    place_line(b, n, &l);
    for (int i = 0; i < 2; i++)
        find_edge(b, n, &l, i);
    return l;
}

static bool add_point(struct mstx_host_clock *c, const struct line *l, int64_t at)
{
    const int64_t offset = line_offset(l, l->offset, l->slope, at);
    int64_t unsure = (int64_t)fabs(l->room) + 1;
    for (int i = 0; i < 2; i++) {
        const int64_t off = llabs(line_offset(l, l->edge[i], l->edge_slope[i], at) - offset);
        unsure = off > unsure ? off : unsure;
    }
    struct mstx_apart *slot = ms_vec_push(&c->apart);
    if (slot != NULL)
        *slot = (struct mstx_apart){at, offset, unsure, MSTX_APART_MEETINGS};
    return slot != NULL;
}

/* Fits a line to each window and adds its middle as a point; the first and the last window also add
 * the ends of the run. */
static bool add_lines(struct mstx_host_clock *c, const bounds *b)
{
    const int64_t first = b->p[0].low_at, last = b->p[b->n - 1].low_at;
    for (size_t from = 0, to; from < b->n; from = to) {
        for (to = from + 1; to < b->n && b->p[to].low_at - b->p[from].low_at < WINDOW_NS;)
            to++;
        if (b->p[b->n - 1].low_at - b->p[to - 1].low_at < WINDOW_NS / 4)
            to = b->n; /* joins a short last window, whose slope would be poor */
        const struct line l = fit_line(&b->p[from], to - from);
        const int64_t begin = b->p[from].low_at, end = b->p[to - 1].low_at;
        const bool is_one = begin == first && end == last;
        if ((begin == first && !add_point(c, &l, begin)) ||
            (!is_one && !add_point(c, &l, begin + (end - begin) / 2)) ||
            (end == last && end != begin && !add_point(c, &l, end)))
            return false;
    }
    return true;
}

/* ---- measured by pings ------------------------------------------------------- */

/* Returns the greatest error of the knots: ticks and time of a knot are not read at the same
 * instant. */
static int64_t reading_error(const struct mstx_host_clock *c)
{
    double most = 0;
    for (size_t i = 0; i < c->knot.n; i++)
        most = fmax(most, (double)c->knot.p[i].width * c->knot.p[i].slope / 2);
    return most < 1e9 ? (int64_t)most : 0;
}

/* Moves offsets that contradict the bounds by more than their uncertainty to the nearest bound. */
static void verify_offsets(const struct aligning *a, struct mstx_host_clock *c, const bounds *b)
{
    int64_t low = INT64_MIN, high = INT64_MAX, unsure = 0;
    const int64_t reading = reading_error(c) + reading_error(a->reference);
    for (size_t i = 0; i < c->apart.n; i++)
        unsure = c->apart.p[i].uncertainty_ns > unsure ? c->apart.p[i].uncertainty_ns : unsure;
    for (size_t i = 0; i < b->n; i++) {
        const struct bound *k = &b->p[i];
        const int64_t under = k->low - (mstx__clock_shift(c, k->low_at) - a->reference->offset_ns);
        const int64_t over = k->high - (mstx__clock_shift(c, k->high_at) - a->reference->offset_ns);
        low = under > low ? under : low;
        high = over < high ? over : high;
    }
    unsure += reading;
    const int64_t move = low > unsure ? low : high < -unsure ? high : 0;
    for (size_t i = 0; move != 0 && i < c->apart.n; i++) {
        c->apart.p[i].offset_ns += move;
        c->apart.p[i].method = MSTX_APART_CORRECTED;
    }
}

/* ---- all hosts --------------------------------------------------------------- */

/* Adds a point with offset 0 to the reference clock, so that the list of offsets names the clock
 * they refer to. */
static enum ms_rc name_reference(struct aligning *a, struct ms_err *err)
{
    struct mstx_host_clock *c = a->reference;
    const struct line none = {.at = a->m->list.p[0].start};
    if (c->apart.n != 0)
        return MS_OK;
    c->reference_ns = c->offset_ns;
    if (!add_point(c, &none, none.at))
        return ms_no_memory(err);
    c->apart.p[0].uncertainty_ns = 0;
    return MS_OK;
}

/* Finds the offset of a host that shares collectives with hosts whose offset is known. */
static enum ms_rc learn_one(struct aligning *a, uint32_t host, bounds *b, bool *learned,
                            struct ms_err *err)
{
    struct mstx_host_clock *c = &a->clocks->host.p[host];
    MS_TRY(collect_bounds(a, host, b, err));
    if (b->n == 0)
        return MS_OK;
    if (!add_lines(c, b))
        return ms_no_memory(err);
    c->reference_ns = a->reference->offset_ns;
    a->known.p[host] = 1;
    *learned = true;
    return name_reference(a, err);
}

static enum ms_rc learn_all(struct aligning *a, bounds *b, struct ms_err *err)
{
    const uint32_t n = (uint32_t)a->clocks->host.n;
    bool learned = true;
    for (uint32_t i = 0; i < n; i++) {
        struct mstx_host_clock *c = &a->clocks->host.p[i];
        if (c->apart.n == 0 || c == a->reference)
            continue;
        MS_TRY(collect_bounds(a, i, b, err));
        verify_offsets(a, c, b);
    }
    while (learned) {
        learned = false;
        for (uint32_t i = 0; i < n; i++) {
            if (a->known.p[i] == 0)
                MS_TRY(learn_one(a, i, b, &learned, err));
        }
    }
    return MS_OK;
}

enum ms_rc mstx__meetings_align(struct mstx_meetings *m, struct mstx_clocks *c, size_t reference,
                                struct ms_err *err)
{
    struct aligning a = {.m = m, .clocks = c, .reference = &c->host.p[reference]};
    bounds b = {0};
    if (m->list.n == 0)
        return MS_OK;
    qsort(m->list.p, m->list.n, sizeof *m->list.p, by_call);
    if (!ms_vec_reserve(&a.known, c->host.n))
        return ms_no_memory(err);
    a.known.n = c->host.n;
    for (size_t i = 0; i < c->host.n; i++) {
        const struct mstx_host_clock *k = &c->host.p[i];
        /* clocks of the same boot share one steady clock, so their offset is 0 */
        a.known.p[i] =
            k->apart.n != 0 || memcmp(k->boot_id, a.reference->boot_id, sizeof k->boot_id) == 0;
    }
    enum ms_rc rc = learn_all(&a, &b, err);
    ms_vec_free(&b);
    ms_vec_free(&a.known);
    return rc;
}
