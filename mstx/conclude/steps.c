/* SPDX-License-Identifier: MIT
 *
 * steps: finds the steps of a training run in its marks and ranges.
 *
 * The steps of a process come from its track with the most events named like steps.
 * Without such events, the steps are the events of a periodic name: of the names
 * spread over most of the track the one with the longest period, since a step
 * contains everything that recurs more often.
 */
#include "mstx/conclude/steps.h"

#include "mstx/format/step_name.h"
#include "mstx/rundb/run_schema.h"

#include "probe/base/mem.h"
#include "probe/base/order.h"
#include "probe/base/store.h"

#include <stdlib.h>

/* ---- named steps ------------------------------------------------------------ */

struct named {
    struct mstx_tl *tl;
    mstx_events ranges, marks;
};

static enum ms_rc take_named(void *ctx, const struct mstx_event *ev, struct ms_err *err)
{
    struct named *n = ctx;
    int64_t number;
    if (ev->kind > MSTX_EV_PUSHPOP || !mstx_is_step_name(mstx_tl_text(n->tl, ev->name), &number))
        return MS_OK;
    struct mstx_event *slot =
        ev->kind == MSTX_EV_MARK ? ms_vec_push(&n->marks) : ms_vec_push(&n->ranges);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = *ev;
    return MS_OK;
}

static enum ms_rc add_step(struct mstx_tl *tl, struct mstx_steps *steps, size_t process,
                           const struct mstx_event *ev, int64_t end, size_t count,
                           struct ms_err *err)
{
    int64_t number;
    struct mstx_step *s = ms_vec_push(&steps->list);
    if (s == NULL)
        return ms_no_memory(err);
    mstx_is_step_name(mstx_tl_text(tl, ev->name), &number);
    *s = (struct mstx_step){.process = (uint32_t)process,
                            .number = number >= 0 ? (uint32_t)number : (uint32_t)count,
                            .name = ev->name,
                            .start_ns = ev->start_ns,
                            .end_ns = end};
    return MS_OK;
}

/* Adds steps of marks or periodic events: each step lasts until the next one begins. */
static enum ms_rc add_between(struct mstx_tl *tl, struct mstx_steps *steps, size_t process,
                              const mstx_events *ev, struct ms_err *err)
{
    for (size_t i = 0; i + 1 < ev->n; i++)
        MS_TRY(add_step(tl, steps, process, &ev->p[i], ev->p[i + 1].start_ns, i, err));
    return MS_OK;
}

/* Adds steps of ranges; ranges nested in a step are skipped. */
static enum ms_rc add_ranges(struct mstx_tl *tl, struct mstx_steps *steps, size_t process,
                             const mstx_events *ev, struct ms_err *err)
{
    int64_t end = INT64_MIN;
    size_t count = 0;
    for (size_t i = 0; i < ev->n; i++) {
        const struct mstx_event *e = &ev->p[i];
        if (e->start_ns < end || e->flags & MSTX_EVF_UNFINISHED)
            continue;
        end = e->start_ns + e->dur_ns;
        MS_TRY(add_step(tl, steps, process, e, end, count++, err));
    }
    return MS_OK;
}

/* Prefers the track with more ranges, then with more marks: a mark does not give the end of a
 * step. */
static bool is_better(const struct named *n, const struct named *best)
{
    return n->ranges.n != best->ranges.n ? n->ranges.n > best->ranges.n
                                         : n->marks.n > best->marks.n;
}

/* Finds the named steps of a process on the track that has the most. */
static enum ms_rc find_named(struct mstx_tl *tl, size_t process, const struct mstx_names *names,
                             struct mstx_steps *steps, enum mstx_step_source *source,
                             struct ms_err *err)
{
    struct named best = {.tl = tl};
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < mstx_tl_track_count(tl) && rc == MS_OK; i++) {
        struct named n = {.tl = tl};
        const struct mstx_track *t = mstx_tl_track(tl, i);
        if (t->process != process || t->kind != MSTX_TRACK_THREAD)
            continue;
        rc = mstx_tl_walk(tl, i, names, take_named, &n, err);
        struct named worse = n;
        if (is_better(&n, &best)) {
            worse = best;
            best = n;
        }
        ms_vec_free(&worse.ranges);
        ms_vec_free(&worse.marks);
    }
    if (rc == MS_OK && best.ranges.n != 0) {
        *source = MSTX_STEPS_RANGES;
        rc = add_ranges(tl, steps, process, &best.ranges, err);
    } else if (rc == MS_OK && best.marks.n > 1) {
        *source = MSTX_STEPS_MARKS;
        rc = add_between(tl, steps, process, &best.marks, err);
    }
    ms_vec_free(&best.ranges);
    ms_vec_free(&best.marks);
    return rc;
}

/* ---- steps by their period -------------------------------------------------- */

enum { CANDIDATES_MAX = 16, RETURNS_MIN = 5, RETURNS_MAX = 1000000 };

struct candidate {
    uint32_t name;
    mstx_events ev;
};
struct periodic {
    struct candidate list[CANDIDATES_MAX];
    size_t n;
};

/* Lists the names of a track that recur and span at least half of the track, rarest first. */
static enum ms_rc list_candidates(struct mstx_tl *tl, const struct mstx_track *t,
                                  struct periodic *p, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st,
                            "SELECT name FROM names WHERE track = ? AND events BETWEEN ? AND ?"
                            " AND (last_ns - first_ns) * 2 > ? ORDER BY events, name LIMIT ?",
                            err));
    ms_stmt_i64(st, 1, t->id);
    ms_stmt_i64(st, 2, RETURNS_MIN);
    ms_stmt_i64(st, 3, RETURNS_MAX);
    ms_stmt_i64(st, 4, t->end_ns - t->start_ns);
    ms_stmt_i64(st, 5, CANDIDATES_MAX);
    enum ms_rc rc = MS_OK;
    while (p->n < CANDIDATES_MAX && ms_stmt_next(st, &rc, err))
        p->list[p->n++] = (struct candidate){.name = (uint32_t)ms_stmt_get_i64(st, 0)};
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc take_candidate(void *ctx, const struct mstx_event *ev, struct ms_err *err)
{
    struct periodic *p = ctx;
    for (size_t i = 0; i < p->n; i++) {
        if (p->list[i].name != ev->name)
            continue;
        struct mstx_event *slot = ms_vec_push(&p->list[i].ev);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = *ev;
        return MS_OK;
    }
    return MS_OK;
}

/* Least period of a training step; shorter loops only make marks. */
static const int64_t PERIOD_MIN_NS = 100000;

/* Tells whether the events are spread evenly.  With few intervals, one long interval must not take
 * nearly all of the time: events at the start and the end of a program are not steps. */
static bool is_spread(size_t n, int64_t median, int64_t whole)
{
    enum { FEW = 20, MOST_TIMES = 10 };
    return n >= FEW || whole <= MOST_TIMES * (int64_t)n * median;
}

/* Tests for a period: half of all intervals are within 25 % of the median. */
static enum ms_rc find_regular(const mstx_events *ev, bool *regular, struct ms_err *err)
{
    size_t n = ev->n - 1;
    int64_t *gap = ms_calloc(n, sizeof *gap);
    if (gap == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < n; i++)
        gap[i] = ev->p[i + 1].start_ns - ev->p[i].start_ns;
    qsort(gap, n, sizeof *gap, ms_order_i64);
    int64_t median = gap[n / 2];
    *regular = median >= PERIOD_MIN_NS && gap[n / 4] >= median - median / 4 &&
               gap[n - 1 - n / 4] <= median + median / 4 &&
               is_spread(n, median, ev->p[n].start_ns - ev->p[0].start_ns);
    ms_free(gap);
    return MS_OK;
}

static void free_candidates(struct periodic *p)
{
    for (size_t i = 0; i < p->n; i++)
        ms_vec_free(&p->list[i].ev);
}

/* Returns the busiest thread of each process, SIZE_MAX where it has none; NULL without memory. */
static size_t *busiest_threads(const struct mstx_tl *tl)
{
    const size_t n = mstx_tl_process_count(tl);
    size_t *best = ms_calloc(n + 1, sizeof *best);
    for (size_t i = 0; i < n && best != NULL; i++)
        best[i] = SIZE_MAX;
    for (size_t i = 0; i < mstx_tl_track_count(tl) && best != NULL; i++) {
        const struct mstx_track *t = mstx_tl_track(tl, i);
        size_t *b = t->process < n ? &best[t->process] : NULL;
        if (b != NULL && t->kind == MSTX_TRACK_THREAD &&
            (*b == SIZE_MAX || t->events > mstx_tl_track(tl, *b)->events))
            *b = i;
    }
    return best;
}

/* Finds steps by a periodic name of the busiest thread; SIZE_MAX: there is none. */
static enum ms_rc find_periodic(struct mstx_tl *tl, size_t process, size_t best,
                                struct mstx_steps *steps, enum mstx_step_source *source,
                                struct ms_err *err)
{
    struct periodic p = {0};
    enum ms_rc rc = MS_OK;
    if (best != SIZE_MAX)
        rc = list_candidates(tl, mstx_tl_track(tl, best), &p, err);
    if (rc == MS_OK && p.n != 0)
        rc = mstx_tl_walk(tl, best, NULL, take_candidate, &p, err);
    bool regular = false;
    for (size_t i = 0; i < p.n && rc == MS_OK && !regular; i++) {
        if (p.list[i].ev.n < RETURNS_MIN)
            continue;
        rc = find_regular(&p.list[i].ev, &regular, err);
        if (rc == MS_OK && regular) {
            *source = MSTX_STEPS_PERIOD;
            rc = add_between(tl, steps, process, &p.list[i].ev, err);
        }
    }
    free_candidates(&p);
    return rc;
}

/* ---- all processes ---------------------------------------------------------- */

enum { PROFILER_NAMES = 2, NAMES };

/* Finds the steps of a process by name, else by period.  names are those that contain "step", those
 * that contain "iter", and those of PyTorch's profiler, whose own steps are the only ones of its
 * traces. */
static enum ms_rc named_or_periodic(struct mstx_tl *tl, size_t process, size_t busiest,
                                    struct mstx_names *const names[NAMES], struct mstx_steps *steps,
                                    enum mstx_step_source *source, struct ms_err *err)
{
    *source = MSTX_STEPS_NONE;
    if (ms_str_is(mstx_tl_process(tl, process)->tool, MSTX_TOOL_KINETO))
        return mstx_names_count(names[PROFILER_NAMES]) == 0
                   ? MS_OK
                   : find_named(tl, process, names[PROFILER_NAMES], steps, source, err);
    for (int i = 0; i < PROFILER_NAMES && *source == MSTX_STEPS_NONE; i++) {
        if (mstx_names_count(names[i]) != 0)
            MS_TRY(find_named(tl, process, names[i], steps, source, err));
    }
    return *source == MSTX_STEPS_NONE ? find_periodic(tl, process, busiest, steps, source, err)
                                      : MS_OK;
}

enum ms_rc mstx_steps_find(struct mstx_tl *tl, struct mstx_steps *steps, struct ms_err *err)
{
    *steps = (struct mstx_steps){0};
    static const char *const parts[NAMES] = {"step", "iter", "ProfilerStep#"};
    struct mstx_names *names[NAMES] = {NULL};
    size_t most = 0, *busiest = busiest_threads(tl);
    enum ms_rc rc = busiest != NULL ? MS_OK : ms_no_memory(err);
    for (size_t i = 0; i < NAMES && rc == MS_OK; i++)
        rc = mstx_tl_find(tl, parts[i], &names[i], err);
    for (size_t i = 0; i < mstx_tl_process_count(tl) && rc == MS_OK; i++) {
        enum mstx_step_source source;
        size_t before = steps->list.n;
        rc = named_or_periodic(tl, i, busiest[i], names, steps, &source, err);
        if (steps->list.n - before > most) {
            most = steps->list.n - before;
            steps->source = source;
        }
    }
    for (size_t i = 0; i < NAMES; i++)
        mstx_names_free(names[i]);
    ms_free(busiest);
    if (rc != MS_OK)
        mstx_steps_free(steps);
    return rc;
}

void mstx_steps_free(struct mstx_steps *steps)
{
    ms_vec_free(&steps->list);
}

enum ms_rc mstx__steps_median(const struct mstx_steps *steps, int64_t *median_ns,
                              struct ms_err *err)
{
    const size_t n = steps->list.n;
    *median_ns = 0;
    if (n == 0)
        return MS_OK;
    int64_t *dur = ms_calloc(n, sizeof *dur);
    if (dur == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < n; i++)
        dur[i] = steps->list.p[i].end_ns - steps->list.p[i].start_ns;
    qsort(dur, n, sizeof *dur, ms_order_i64);
    *median_ns = dur[(n - 1) / 2];
    ms_free(dur);
    return MS_OK;
}
