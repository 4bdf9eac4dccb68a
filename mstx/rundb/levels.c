/* SPDX-License-Identifier: MIT
 *
 * levels: joins events of a track into coarser ones.
 */
#include "mstx/rundb/levels.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <string.h>

enum {
    FEW = 512, /* this many events need no coarser level */
    LANES = 2  /* within a row, marks and events with a duration are joined separately */
};

static bool is_small(const struct mstx_event *e, unsigned shift)
{
    return e->dur_ns >> shift == 0;
}

/* ---- joining two ------------------------------------------------------------ */

static double distance_from_zero(const struct mstx_event *e)
{
    double v = mstx_event_value(e);
    return v < 0 ? -v : v;
}

static void join_counters(struct mstx_event *into, const struct mstx_event *e)
{
    if (into->count == 1)
        into->size = into->arg;
    if (distance_from_zero(e) > distance_from_zero(into))
        into->arg = e->arg;
    into->size = e->count > 1 ? e->size : e->arg;
}

static void join_times(struct mstx_event *into, const struct mstx_event *e)
{
    uint64_t longest = e->count > 1 ? e->arg : (uint64_t)e->dur_ns;
    if (into->count == 1) {
        into->arg = into->size = (uint64_t)into->dur_ns;
        into->id = 0;
        into->args = into->end_tid = 0;
    }
    if (longest > into->arg) {
        into->arg = longest;
        into->name = e->name;
    }
    into->size += e->count > 1 ? e->size : (uint64_t)e->dur_ns;
}

static void join_events(struct mstx_event *into, const struct mstx_event *e)
{
    ms_assert(into->start_ns <= e->start_ns && into->kind == e->kind);
    if (into->kind == MSTX_EV_COUNTER)
        join_counters(into, e);
    else
        join_times(into, e);
    int64_t end = e->start_ns + e->dur_ns;
    if (end > into->start_ns + into->dur_ns)
        into->dur_ns = end - into->start_ns;
    uint32_t sum = into->count + e->count;
    into->count = sum < into->count ? UINT32_MAX : sum;
    into->flags = (uint8_t)(into->flags & e->flags & MSTX_EVF_FLOAT);
}

/* ---- a level ---------------------------------------------------------------- */

static size_t lane_of(const struct mstx_event *e)
{
    return (size_t)e->depth * LANES + (e->kind == MSTX_EV_MARK);
}

static bool reserve_lane(struct mstx_levels *l, size_t lane)
{
    if (lane < l->open.n)
        return true;
    if (!ms_vec_reserve(&l->open, lane + 1) || !ms_vec_reserve(&l->before, lane + 1))
        return false;
    memset(l->open.p + l->open.n, 0, (lane + 1 - l->open.n) * sizeof *l->open.p);
    l->open.n = lane + 1;
    return true;
}

static bool fits_into(const struct mstx_event *into, const struct mstx_event *e, unsigned shift)
{
    return is_small(into, shift) && into->start_ns >> shift == e->start_ns >> shift &&
           into->kind == e->kind;
}

/* Joins e with the open event of its lane, or stores it as out[n]; returns true when it was
 * stored. */
static bool place_event(struct mstx_levels *l, struct mstx_event *out, size_t n,
                        const struct mstx_event *e)
{
    ms_assert(lane_of(e) < l->open.n);
    uint32_t *open = &l->open.p[lane_of(e)];
    if (!is_small(e, l->shift)) {
        *open = 0;
    } else if (*open != 0 && fits_into(&out[*open - 1], e, l->shift)) {
        join_events(&out[*open - 1], e);
        return false;
    } else {
        *open = (uint32_t)n + 1;
    }
    out[n] = *e;
    return true;
}

/* Joins events at `shift`, in place: the write index never passes the read index. */
static void coarsen_level(struct mstx_levels *l, unsigned shift)
{
    ms_assert(shift >= l->shift);
    l->shift = shift;
    if (l->open.n != 0)
        memset(l->open.p, 0, l->open.n * sizeof *l->open.p);
    size_t n = 0;
    for (size_t i = 0; i < l->ev.n; i++) {
        struct mstx_event e = l->ev.p[i];
        n += place_event(l, l->ev.p, n, &e);
    }
    l->ev.n = n;
}

static unsigned bits_of(uint64_t v)
{
    return v != 0 ? 64 - (unsigned)__builtin_clzll(v) : 0;
}

static unsigned longer_of(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

enum { NEVER = 65 };

/* Counts events by the least shift at which they can join the event before them in their row: both
 * are short enough and begin in the same slot. */
static void count_neighbours(struct mstx_levels *l, size_t of_shift[NEVER + 1])
{
    ms_assert(l->before.cap >= l->open.n);
    l->before.n = l->open.n;
    for (size_t i = 0; i < l->before.n; i++)
        l->before.p[i] = (struct mstx_level_before){0, NEVER};
    for (size_t i = 0; i < l->ev.n; i++) {
        const struct mstx_event *e = &l->ev.p[i];
        struct mstx_level_before *b = &l->before.p[lane_of(e)];
        const uint64_t start = (uint64_t)e->start_ns;
        const unsigned bits = bits_of((uint64_t)e->dur_ns);
        of_shift[longer_of(longer_of(bits, b->bits), bits_of(start ^ b->start))]++;
        *b = (struct mstx_level_before){start, bits};
    }
}

/* Returns the least shift above the current one at which at most `most` events may be left. */
static unsigned next_shift(struct mstx_levels *l, uint64_t most)
{
    ms_assert(l->shift <= MSTX_SHIFT_MAX);
    size_t of_shift[NEVER + 1] = {0};
    uint64_t left = l->ev.n;
    unsigned shift = l->shift < MSTX_SHIFT_MIN ? MSTX_SHIFT_MIN : l->shift + 1;
    count_neighbours(l, of_shift);
    for (unsigned bits = 0; bits <= shift; bits++)
        left -= of_shift[bits];
    while (left > most && shift < MSTX_SHIFT_MAX)
        left -= of_shift[++shift];
    return shift;
}

static bool is_too_fine(const struct mstx_levels *l)
{
    return l->ev.n > FEW && l->ev.n > l->seen / 4 && l->shift < MSTX_SHIFT_MAX;
}

static void join_down(struct mstx_levels *l)
{
    while (is_too_fine(l))
        coarsen_level(l, next_shift(l, l->seen / 4));
}

static bool reserve_lanes(struct mstx_levels *l, const struct mstx_event *ev, size_t n)
{
    size_t last = 0;
    for (size_t i = 0; i < n; i++)
        last = lane_of(&ev[i]) > last ? lane_of(&ev[i]) : last;
    return reserve_lane(l, last);
}

bool mstx__levels_add(struct mstx_levels *l, const struct mstx_event *ev, size_t n)
{
    ms_assert(n >= 1);
    const uint64_t before = l->seen;
    if (before == 0)
        l->shift = 0;
    l->seen += n;
    if (!reserve_lanes(l, ev, n) || !ms_vec_reserve(&l->ev, l->ev.n + n))
        return false;
    if (l->shift == 0) {
        memcpy(l->ev.p + l->ev.n, ev, n * sizeof *ev);
        l->ev.n += n;
    }
    for (size_t i = 0; l->shift != 0 && i < n; i++)
        l->ev.n += place_event(l, l->ev.p, l->ev.n, &ev[i]);
    /* checking every 65,536 events is enough to bound the memory */
    if (before >> 16 != l->seen >> 16)
        join_down(l);
    return true;
}

bool mstx__levels_finish(struct mstx_levels *l)
{
    join_down(l);
    return l->seen > FEW;
}

bool mstx__levels_up(struct mstx_levels *l)
{
    size_t before = l->ev.n;
    if (before <= FEW)
        return false;
    while (l->ev.n > before / 2 && l->shift < MSTX_SHIFT_MAX)
        coarsen_level(l, next_shift(l, before / 2));
    return l->ev.n <= before / 2;
}

bool mstx__levels_join(struct mstx_levels *l, unsigned shift)
{
    ms_assert(shift <= MSTX_SHIFT_MAX);
    if (!reserve_lanes(l, l->ev.p, l->ev.n))
        return false;
    coarsen_level(l, shift);
    return true;
}

void mstx__levels_clear(struct mstx_levels *l)
{
    l->ev.n = l->open.n = 0;
    l->seen = 0;
}

void mstx__levels_free(struct mstx_levels *l)
{
    ms_vec_free(&l->ev);
    ms_vec_free(&l->open);
    ms_vec_free(&l->before);
}
