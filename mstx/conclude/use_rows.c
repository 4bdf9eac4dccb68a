/* SPDX-License-Identifier: MIT
 *
 * use_rows: see the header.
 */
#include "mstx/conclude/use_rows.h"

#include "mstx/format/event.h"

struct reading {
    struct mstx_tl *tl;
    struct mstx_thread_use *to;
    mstx_events events; /* of one counter */
};

static bool is_counter(const struct mstx_track *t, uint32_t process, const char *name)
{
    return t->kind == MSTX_TRACK_COUNTER && t->process == process &&
           ms_str_is(t->domain, MSTX_USE_DOMAIN) && ms_str_is(t->name, name);
}

/* Returns the thread of a process with the most samples, 0 when there is none. */
static uint32_t sampled_thread(const struct reading *r, uint32_t process)
{
    uint64_t most = 0;
    uint32_t tid = 0;
    for (size_t i = 0; i < mstx_tl_track_count(r->tl); i++) {
        const struct mstx_track *t = mstx_tl_track(r->tl, i);
        if (is_counter(t, process, MSTX_USE_CPU_TEXT) && t->events > most) {
            most = t->events;
            tid = t->tid;
        }
    }
    return tid;
}

static enum ms_rc read_counter(struct reading *r, uint32_t process, uint32_t tid, const char *name,
                               struct ms_err *err)
{
    r->events.n = 0;
    for (size_t i = 0; i < mstx_tl_track_count(r->tl); i++) {
        const struct mstx_track *t = mstx_tl_track(r->tl, i);
        if (is_counter(t, process, name) && t->tid == tid)
            return mstx_tl_view(r->tl, i, INT64_MIN, INT64_MAX, 0, &r->events, err);
    }
    return MS_OK;
}

static enum ms_rc add_samples(struct reading *r, struct ms_err *err)
{
    if (!ms_vec_reserve(&r->to->sample, r->to->sample.n + r->events.n))
        return ms_no_memory(err);
    for (size_t i = 0; i < r->events.n; i++)
        r->to->sample.p[r->to->sample.n++] =
            (struct mstx_use_sample){.at_ns = r->events.p[i].start_ns};
    return MS_OK;
}

/* A recorder writes all counters of a sample at once, except those that the system does not tell. */
static enum ms_rc read_rank(struct reading *r, uint32_t process, struct ms_err *err)
{
    static const char *const names[MSTX_USES] = {[MSTX_ON_CPU] = MSTX_USE_CPU_TEXT,
                                                 [MSTX_DELAYED] = MSTX_USE_DELAY_TEXT,
                                                 [MSTX_WRITTEN] = MSTX_USE_WRITTEN_TEXT};
    const size_t first = r->to->sample.n;
    const uint32_t tid = sampled_thread(r, process);
    for (int k = 0; k < MSTX_USES && tid != 0; k++) {
        MS_TRY(read_counter(r, process, tid, names[k], err));
        if (k == 0)
            MS_TRY(add_samples(r, err));
        for (size_t i = 0; i < r->events.n && r->events.n == r->to->sample.n - first; i++)
            r->to->sample.p[first + i].total[k] = mstx_event_value(&r->events.p[i]);
    }
    return MS_OK;
}

/* Adds the time for which a process was throttled: the last value of its counter, 0 without one. */
static enum ms_rc read_throttled(struct reading *r, uint32_t process, struct ms_err *err)
{
    double *slot = ms_vec_push(&r->to->throttled);
    if (slot == NULL)
        return ms_no_memory(err);
    MS_TRY(read_counter(r, process, 0, MSTX_USE_THROTTLED_TEXT, err));
    *slot = r->events.n != 0 ? mstx_event_value(&r->events.p[r->events.n - 1]) : 0;
    return MS_OK;
}

static enum ms_rc read_all(struct reading *r, const uint32_t *process, size_t n, struct ms_err *err)
{
    for (size_t k = 0; k <= n; k++) {
        uint32_t *slot = ms_vec_push(&r->to->first);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = (uint32_t)r->to->sample.n;
        if (k < n)
            MS_TRY(read_rank(r, process[k], err));
        if (k < n)
            MS_TRY(read_throttled(r, process[k], err));
    }
    return MS_OK;
}

enum ms_rc mstx__use_rows_read(struct mstx_tl *tl, const uint32_t *process, size_t n,
                               struct mstx_thread_use *to, struct ms_err *err)
{
    struct reading r = {.tl = tl, .to = to};
    const enum ms_rc rc = read_all(&r, process, n, err);
    ms_vec_free(&r.events);
    return rc;
}
