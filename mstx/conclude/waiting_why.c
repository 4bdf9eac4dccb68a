/* SPDX-License-Identifier: MIT
 *
 * waiting_why: see the header.
 */
#include "mstx/conclude/waiting_why.h"

#include "mstx/cluster/rows.h"

#include "probe/base/mem.h"
#include "probe/base/store.h"

#include <inttypes.h>
#include <stdio.h>

/* Least share of the excess for a range to be named.  Of nested ranges that explain nearly the same
 * share the innermost, which is the shortest, is named. */
static const double EXPLAINS_LEAST = 0.3, NEARLY = 0.8;
/* A kernel copies at least so many bytes a nanosecond to write them: of ranks that only wrote it took 0.5 ms a
 * megabyte. */
static const double COPIED_A_NS = 1;
/* Batches are larger from this multiple of the median of the others on. */
static const double LARGER_LEAST = 1.2;
/* Tracks with more events are not read, and no more ranks are compared with. */
enum { EVENTS_MOST = 500000, OTHERS_MOST = 64 };

struct range_total {
    uint32_t name;
    double own;    /* of the rank, ns */
    double on_cpu; /* of that on the CPU */
    double share;  /* of the excess of the rank: by which it is longer than in the other ranks */
};

struct comparing {
    struct mstx_tl *tl;
    const struct mstx_call_rows *rows;
    const struct mstx_waiters *w;
    uint32_t which; /* index of the rank */
    bool has_use;
    double excess_ns;
    MS_VEC(struct range_total) range; /* of the rank, then those that may explain its excess */
    MS_VEC(double) other;             /* ranges x others */
    size_t others;
    mstx_events events;
};

/* ---- totals of ranges ----------------------------------------------------------------- */

static struct range_total *total_of(struct comparing *c, uint32_t name, bool may_add)
{
    for (size_t i = 0; i < c->range.n; i++) {
        if (c->range.p[i].name == name)
            return &c->range.p[i];
    }
    struct range_total *slot = may_add ? ms_vec_push(&c->range) : NULL;
    if (slot != NULL)
        *slot = (struct range_total){.name = name};
    return slot;
}

/* Returns the part of a range within the judged steps of the rank, without run delay, and how much of it was on the
 * CPU. */
static double time_in_steps(const struct comparing *c, uint32_t rank, const struct mstx_event *e,
                            double *on_cpu)
{
    const int64_t *at = c->w->step_at + (size_t)rank * (c->w->steps + 1);
    const int64_t from = e->start_ns > at[1] ? e->start_ns : at[1], until = e->start_ns + e->dur_ns,
                  to = until < at[c->w->steps] ? until : at[c->w->steps];
    double used[MSTX_USES] = {0};
    *on_cpu = 0;
    if (to <= from)
        return 0;
    if (c->has_use)
        mstx__use_between(&c->rows->use, rank, from, to, used);
    *on_cpu = used[MSTX_ON_CPU];
    const double left = (double)(to - from) - used[MSTX_DELAYED];
    return left > 0 ? left : 0;
}

/* Adds the ranges of a rank to the totals; `others`: the column of a rank that is compared with. */
static enum ms_rc add_track(struct comparing *c, uint32_t rank, size_t track, size_t column,
                            struct ms_err *err)
{
    c->events.n = 0;
    MS_TRY(mstx_tl_view(c->tl, track, INT64_MIN, INT64_MAX, 0, &c->events, err));
    for (size_t i = 0; i < c->events.n; i++) {
        const struct mstx_event *e = &c->events.p[i];
        const bool is_range = e->kind == MSTX_EV_RANGE || e->kind == MSTX_EV_PUSHPOP;
        double on_cpu = 0;
        const double t = is_range ? time_in_steps(c, rank, e, &on_cpu) : 0;
        struct range_total *to = t > 0 ? total_of(c, e->name, rank == c->which) : NULL;
        if (t > 0 && to == NULL && rank == c->which)
            return ms_no_memory(err);
        if (to != NULL && rank == c->which) {
            to->own += t;
            to->on_cpu += on_cpu;
        } else if (to != NULL) {
            c->other.p[(size_t)(to - c->range.p) * OTHERS_MOST + column] += t;
        }
    }
    return MS_OK;
}

static enum ms_rc add_rank(struct comparing *c, uint32_t rank, size_t column, struct ms_err *err)
{
    for (size_t i = 0; i < mstx_tl_track_count(c->tl); i++) {
        const struct mstx_track *t = mstx_tl_track(c->tl, i);
        if (t->process == c->rows->process.p[rank] && t->kind == MSTX_TRACK_THREAD &&
            !ms_str_is(t->domain, "communication") && t->events <= EVENTS_MOST)
            MS_TRY(add_track(c, rank, i, column, err));
    }
    return MS_OK;
}

/* Keeps the ranges that are long enough to explain the excess. */
static void keep_long_ranges(struct comparing *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->range.n; i++) {
        if (c->range.p[i].own >= EXPLAINS_LEAST * c->excess_ns)
            c->range.p[n++] = c->range.p[i];
    }
    c->range.n = n;
}

static enum ms_rc add_others(struct comparing *c, struct ms_err *err)
{
    const size_t cells = c->range.n * OTHERS_MOST;
    if (!ms_vec_reserve(&c->other, cells + 1))
        return ms_no_memory(err);
    memset(c->other.p, 0, cells * sizeof *c->other.p);
    for (uint32_t r = 0; r < c->rows->rank.n && c->others < OTHERS_MOST && cells != 0; r++) {
        if (r != c->which)
            MS_TRY(add_rank(c, r, c->others++, err));
    }
    return MS_OK;
}

/* ---- the choice --------------------------------------------------------------------------- */

static void find_shares(struct comparing *c)
{
    for (size_t i = 0; i < c->range.n; i++) {
        struct range_total *r = &c->range.p[i];
        r->share = (r->own - mstx__median(c->other.p + i * OTHERS_MOST, c->others)) / c->excess_ns;
    }
}

static void name_range(const struct comparing *c, const struct range_total *r, char name[64],
                       double *share)
{
    const struct ms_str text = mstx_tl_text(c->tl, r->name);
    snprintf(name, 64, "%.*s", (int)(text.n < 60 ? text.n : 60), text.p);
    *share = r->share < 1 ? r->share : 1;
}

static bool is_better(const struct range_total *r, const struct range_total *than)
{
    return than == NULL || r->share * NEARLY > than->share ||
           (r->share > NEARLY * than->share && r->own < than->own);
}

/* Returns the range that explains most of the excess, NULL when none explains enough. */
static const struct range_total *choose_range(const struct comparing *c)
{
    const struct range_total *best = NULL;
    for (size_t i = 0; i < c->range.n; i++) {
        const struct range_total *r = &c->range.p[i];
        if (r->share >= EXPLAINS_LEAST && mstx_tl_text(c->tl, r->name).n != 0 && is_better(r, best))
            best = r;
    }
    return best;
}

/* Tells whether the recorder makes ranges of that name; none of them is inside of another. */
static bool is_own_range(struct ms_str name)
{
    static const char *const names[] = {"dataloader", "garbage_collection", "save_checkpoint",
                                        "optimizer_step"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (ms_str_is(name, names[i]))
            return true;
    }
    return false;
}

static const struct range_total *choose_second(const struct comparing *c,
                                               const struct range_total *first)
{
    const struct range_total *best = NULL;
    for (size_t i = 0; i < c->range.n && is_own_range(mstx_tl_text(c->tl, first->name)); i++) {
        const struct range_total *r = &c->range.p[i];
        if (r != first && r->share >= EXPLAINS_LEAST &&
            is_own_range(mstx_tl_text(c->tl, r->name)) && (best == NULL || r->share > best->share))
            best = r;
    }
    return best;
}

/* Returns the share of the excess in which a kernel copied what the rank writes. */
static double copied_share(const struct comparing *c, const struct mstx_waiter *rank)
{
    return rank->cause == MSTX_CAUSE_WRITES ? 512 * rank->part.written / COPIED_A_NS / c->excess_ns
                                            : 0;
}

/* Names as the second cause what is left of the time on or off the CPU beside the range, or beside the main cause
 * where no range is named.  A rank that writes is off the CPU for that. */
static void name_rest(const struct comparing *c, const struct mstx_waiter *rank,
                      const struct range_total *first, struct mstx_wait_why *why)
{
    const double known = rank->part.on_cpu + rank->part.off_cpu, all = known > 0 ? known : 1,
                 in_range = first != NULL && first->own > 0 ? first->on_cpu / first->own : 0,
                 share = first != NULL ? first->share : 0,
                 on = rank->part.on_cpu / all - share * in_range - copied_share(c, rank),
                 off = rank->part.off_cpu / all - share * (1 - in_range);
    const bool is_on =
                   on >= EXPLAINS_LEAST && (first != NULL || rank->cause != MSTX_CAUSE_COMPUTES),
               is_off = off >= EXPLAINS_LEAST &&
                        (first != NULL || rank->cause == MSTX_CAUSE_COMPUTES) &&
                        rank->cause != MSTX_CAUSE_WRITES;
    if (!c->has_use || (!is_on && !is_off))
        return;
    const bool computes = is_on && (on >= off || !is_off);
    snprintf(why->second, sizeof why->second, "%s", computes ? "computes" : "off_cpu");
    why->second_share = computes ? on : off;
}

static void choose_causes(struct comparing *c, const struct mstx_waiter *rank,
                          struct mstx_wait_why *why)
{
    find_shares(c);
    const struct range_total *first = choose_range(c),
                             *second = first != NULL ? choose_second(c, first) : NULL;
    if (first != NULL)
        name_range(c, first, why->name, &why->share);
    if (second != NULL)
        name_range(c, second, why->second, &why->second_share);
    else
        name_rest(c, rank, first, why);
}

/* Compares the mean size of the batches that the ranks loaded. */
static enum ms_rc compare_batches(struct comparing *c, struct mstx_wait_why *why,
                                  struct ms_err *err)
{
    struct ms_stmt *st;
    double own = 0, other[OTHERS_MOST];
    size_t others = 0;
    enum ms_rc rc = MS_OK;
    MS_TRY(ms_store_prepare(mstx_tl_store(c->tl), &st,
                            "SELECT t.process - 1, 1.0 * n.total_ns / n.events FROM names n"
                            " JOIN tracks t ON t.id = n.track JOIN strings s ON s.id = n.name"
                            " WHERE t.kind = 1 AND s.value = 'batch elements' ORDER BY 1",
                            err));
    while (ms_stmt_next(st, &rc, err)) {
        if (ms_stmt_get_i64(st, 0) == c->rows->process.p[c->which])
            own = ms_stmt_get_f64(st, 1);
        else if (others < OTHERS_MOST)
            other[others++] = ms_stmt_get_f64(st, 1);
    }
    ms_stmt_free(st);
    why->has_larger_batches = others != 0 && own >= LARGER_LEAST * mstx__median(other, others);
    return rc;
}

static enum ms_rc compare(struct comparing *c, const struct mstx_waiter *rank,
                          struct mstx_wait_why *why, struct ms_err *err)
{
    MS_TRY(add_rank(c, c->which, 0, err));
    keep_long_ranges(c);
    MS_TRY(add_others(c, err));
    choose_causes(c, rank, why);
    return compare_batches(c, why, err);
}

enum ms_rc mstx__waiting_why(struct mstx_tl *tl, const struct mstx_call_rows *rows,
                             const struct mstx_waiters *w, const struct mstx_waiter *rank,
                             struct mstx_wait_why *why, struct ms_err *err)
{
    struct comparing c = {.tl = tl,
                          .rows = rows,
                          .w = w,
                          .which = rank->rank,
                          .has_use = mstx__use_is_known(&rows->use, w->ranks),
                          .excess_ns = rank->excess_ns * (w->steps - 1)};
    *why = (struct mstx_wait_why){0};
    if (!(c.excess_ns > 0) || rank->cause == MSTX_CAUSE_WAITS_FOR_CPU ||
        rank->cause == MSTX_CAUSE_THROTTLED)
        return MS_OK;
    const enum ms_rc rc = compare(&c, rank, why, err);
    ms_vec_free(&c.range);
    ms_vec_free(&c.other);
    ms_vec_free(&c.events);
    return rc;
}
