/* SPDX-License-Identifier: MIT
 *
 * tl_meet: see the header.
 */
#include "mstx/tl_meet.h"

#include "probe/base/mem.h"

#include <math.h>
#include <stdlib.h>

/* A line is trusted for so long; quartz does not change its rate much within. */
static const int64_t WINDOW_NS = INT64_C(120) * 1000000000;
static const double MOST_DRIFT = 200e-6;

/* What one call says about the offset of a host at one time of its own clock. */
struct bound {
    int64_t low_at, low;
    int64_t high_at, high;
};
typedef MS_VEC(struct bound) bounds;

bool mstx__meeting_counts(const struct mstx_rec_comm *c)
{
    if (c->lib != MSTX_LIB_MPI) /* others return when the call is in the queue of a device */
        return false;
    switch (c->op) {
    case MSTX_COMM_BARRIER:
        return true;
    case MSTX_COMM_ALLREDUCE:
    case MSTX_COMM_REDUCE_SCATTER:
    case MSTX_COMM_ALLGATHER:
    case MSTX_COMM_ALLTOALL:
        return c->count != 0; /* nothing to exchange, nothing to wait for */
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
    if (a->uid != b->uid)
        return a->uid < b->uid ? -1 : 1;
    if (a->seq != b->seq)
        return a->seq < b->seq ? -1 : 1;
    return (int)a->op - (int)b->op;
}

struct aligning {
    struct mstx_meetings *m;
    struct mstx_clocks *clocks;
    struct mstx_host_clock *reference;
    MS_VEC(uint8_t) known; /* by host: its times can be told by the clock of the reference */
};

static int64_t by_reference(const struct aligning *a, uint32_t host, int64_t t)
{
    const struct mstx_host_clock *k = &a->clocks->host.p[host];
    return k->apart.n == 0 ? t : t + mstx__clock_shift(k, t) - a->reference->offset_ns;
}

/* The calls [from, to) are one collective. false: it says nothing about the host. */
static bool bound_of(const struct aligning *a, size_t from, size_t to, uint32_t host,
                     struct bound *b)
{
    int64_t came = INT64_MIN, left = INT64_MAX; /* of the hosts that are known */
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

static int by_time(const void *pa, const void *pb)
{
    const struct bound *a = pa, *b = pb;
    return a->low_at < b->low_at ? -1 : a->low_at > b->low_at;
}

static enum ms_rc collect(const struct aligning *a, uint32_t host, bounds *out, struct ms_err *err)
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
    if (out->n != 0)
        qsort(out->p, out->n, sizeof *out->p, by_time);
    return MS_OK;
}

/* ---- a line between them ----------------------------------------------------- */

struct line {
    int64_t at, offset;   /* the line goes through this point */
    double slope;         /* ns per ns */
    double room;          /* to the nearest bound on either side; negative: they contradict */
    int64_t edge[2];      /* offsets of the flattest and the steepest line that fit as well, */
    double edge_slope[2]; /* through the same time, and their slopes */
};

static int64_t along(const struct line *l, int64_t offset, double slope, int64_t t)
{
    return offset + (int64_t)(slope * (double)(t - l->at));
}

/* The line of that slope that is as far from the lower as from the upper bounds. */
static void place(const struct bound *b, size_t n, struct line *l)
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

/* The last slope on one side that leaves room: what else could be true. */
static void find_edge(const struct bound *b, size_t n, struct line *best, int side)
{
    double good = best->slope, bad = side == 0 ? -MOST_DRIFT : MOST_DRIFT;
    struct line l = {0};
    for (int i = 0; i < 30 && n > 1 && best->room > 0; i++) {
        l.slope = (good + bad) / 2;
        place(b, n, &l);
        if (l.room >= 0)
            good = l.slope;
        else
            bad = l.slope;
    }
    l.slope = good;
    place(b, n, &l);
    best->edge[side] = l.offset;
    best->edge_slope[side] = good;
}

/* The room is a concave function of the slope. */
static struct line fit(const struct bound *b, size_t n)
{
    double from = -MOST_DRIFT, to = MOST_DRIFT;
    struct line l = {0}, r = {0};
    for (int i = 0; i < 60 && n > 1; i++) {
        l.slope = from + (to - from) / 3;
        r.slope = to - (to - from) / 3;
        place(b, n, &l);
        place(b, n, &r);
        if (l.room < r.room)
            from = l.slope;
        else
            to = r.slope;
    }
    l.slope = n > 1 ? (from + to) / 2 : 0;
    place(b, n, &l);
    for (int i = 0; i < 2; i++)
        find_edge(b, n, &l, i);
    return l;
}

static bool add_point(struct mstx_host_clock *c, const struct line *l, int64_t at)
{
    const int64_t offset = along(l, l->offset, l->slope, at);
    int64_t unsure = (int64_t)fabs(l->room) + 1;
    for (int i = 0; i < 2; i++) {
        const int64_t off = llabs(along(l, l->edge[i], l->edge_slope[i], at) - offset);
        unsure = off > unsure ? off : unsure;
    }
    struct mstx_apart *slot = ms_vec_push(&c->apart);
    if (slot != NULL)
        *slot = (struct mstx_apart){at, offset, unsure, MSTX_APART_MEETINGS};
    return slot != NULL;
}

/* A line for each window; points at its middle, and at both ends of the run. */
static bool add_lines(struct mstx_host_clock *c, const bounds *b)
{
    const int64_t first = b->p[0].low_at, last = b->p[b->n - 1].low_at;
    for (size_t from = 0, to; from < b->n; from = to) {
        for (to = from + 1; to < b->n && b->p[to].low_at - b->p[from].low_at < WINDOW_NS;)
            to++;
        if (b->p[b->n - 1].low_at - b->p[to - 1].low_at < WINDOW_NS / 4)
            to = b->n; /* a short rest would give a poor slope */
        const struct line l = fit(&b->p[from], to - from);
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

/* What reading the clock in two steps, ticks and time, may have been wrong by. */
static int64_t reading_error(const struct mstx_host_clock *c)
{
    double most = 0;
    for (size_t i = 0; i < c->knot.n; i++)
        most = fmax(most, (double)c->knot.p[i].width * c->knot.p[i].slope / 2);
    return most < 1e9 ? (int64_t)most : 0;
}

/* Where the bounds forbid an offset by more than it is unsure, it moves to the nearest one. */
static void verify(const struct aligning *a, struct mstx_host_clock *c, const bounds *b)
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

/* Offsets are shown with what they are from. */
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

/* One that is not known yet and shares calls with one that is. */
static enum ms_rc learn_one(struct aligning *a, uint32_t host, bounds *b, bool *learned,
                            struct ms_err *err)
{
    struct mstx_host_clock *c = &a->clocks->host.p[host];
    MS_TRY(collect(a, host, b, err));
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
        MS_TRY(collect(a, i, b, err));
        verify(a, c, b);
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
        /* one boot has one steady clock, however its processes read it */
        a.known.p[i] =
            k->apart.n != 0 || memcmp(k->boot_id, a.reference->boot_id, sizeof k->boot_id) == 0;
    }
    enum ms_rc rc = learn_all(&a, &b, err);
    ms_vec_free(&b);
    ms_vec_free(&a.known);
    return rc;
}
