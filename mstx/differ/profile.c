/* SPDX-License-Identifier: MIT
 *
 * profile: see the header.
 */
#include "mstx/differ/profile.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <string.h>

struct profiling {
    struct mstx_profile *to;
    struct mstx_tl *tl;
    struct mstx_places *places;
    struct mstx_step_range range;
    uint32_t gap;
};

/* The steps of a process. */
struct own_steps {
    const struct mstx_step *step;
    size_t n;
};

static bool is_looked_at(const struct profiling *p, const struct mstx_step *s)
{
    return (int64_t)s->number >= p->range.first && (int64_t)s->number <= p->range.last;
}

/* A step begins where the one before ended, so that what lies between steps counts.  The first one
 * begins at its own start. */
static bool walk_steps(struct profiling *p, struct mstx_walk *w, const struct own_steps *own,
                       struct mstx_profile_rank *r)
{
    bool ok = true;
    for (size_t i = 0; i < own->n && ok; i++) {
        const struct mstx_step *s = &own->step[i];
        const int64_t from = i != 0 ? s[-1].end_ns : s->start_ns;
        if (!is_looked_at(p, s) || s->end_ns <= from)
            continue;
        w->step = r->steps++;
        r->step_ns += (double)(s->end_ns - from);
        ok = mstx__trail_walk(w, w->lanes->main, from, s->end_ns);
    }
    if (r->steps != 0)
        r->step_ns /= (double)r->steps;
    return ok;
}

/* ---- names ------------------------------------------------------------------------------- */

static bool is_within(const struct profiling *p, const struct own_steps *own, int64_t t)
{
    size_t low = 0, high = own->n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (own->step[mid].start_ns <= t)
            low = mid + 1;
        else
            high = mid;
    }
    return low != 0 && t < own->step[low - 1].end_ns && is_looked_at(p, &own->step[low - 1]);
}

static bool count_name(mstx_profile_names *list, uint32_t name, int64_t ns)
{
    const size_t had = list->n;
    if (name >= had) {
        if (!ms_vec_reserve(list, (size_t)name + 1))
            return false;
        list->n = (size_t)name + 1;
        memset(list->p + had, 0, (list->n - had) * sizeof *list->p);
    }
    list->p[name].count++;
    list->p[name].ns += ns;
    return true;
}

/* What was launched before the trace began belongs to no step, unless the trace has no launches. */
static bool count_executed(struct profiling *p, const struct mstx_lane_set *l,
                           const struct own_steps *own)
{
    bool ok = true;
    for (size_t i = 0; i < l->device.n && ok; i++) {
        const struct mstx_device_span *d = &l->device.p[i];
        if (l->has_launches && d->lane < 0)
            continue;
        const int64_t t = l->has_launches ? l->lane.p[d->lane].span.p[d->call].start : d->start;
        if (is_within(p, own, t))
            ok = count_name(&p->to->device, d->name, d->end - d->start);
    }
    return ok;
}

static bool count_names(struct profiling *p, const struct mstx_lane_set *l,
                        const struct own_steps *own)
{
    bool ok = true;
    for (size_t i = 0; i < l->lane.n; i++) {
        for (size_t k = 0; k < l->lane.p[i].span.n && ok; k++) {
            const struct mstx_lane_span *s = &l->lane.p[i].span.p[k];
            if (is_within(p, own, s->start))
                ok = count_name(&p->to->host, s->name, s->length);
        }
    }
    return ok && count_executed(p, l, own);
}

/* ---- a run ------------------------------------------------------------------------------- */

static bool profile_lanes(struct profiling *p, const struct mstx_lane_set *lanes, uint32_t process,
                          const struct own_steps *own)
{
    struct mstx_trail trail = {0};
    struct mstx_walk w = {.to = &trail, .places = p->places, .lanes = lanes, .gap = p->gap};
    struct mstx_profile_rank r = {.rank = mstx_tl_process(p->tl, process)->rank,
                                  .process = process};
    bool ok = walk_steps(p, &w, own, &r);
    if (ok && r.steps != 0) {
        struct mstx_profile_rank *slot = ms_vec_push(&p->to->rank);
        ok = slot != NULL && mstx__trail_sort(&trail, p->places->list.n) &&
             count_names(p, lanes, own) &&
             mstx__figures_add(&p->to->figure,
                               &(struct mstx_figure_of){.trail = &trail,
                                                        .rank = (uint32_t)(p->to->rank.n - 1),
                                                        .steps = r.steps,
                                                        .has_device = lanes->device.n != 0});
        if (slot != NULL)
            *slot = r;
    }
    mstx__trail_free(&trail);
    return ok;
}

static enum ms_rc profile_process(struct profiling *p, uint32_t process,
                                  const struct own_steps *own, struct ms_err *err)
{
    struct mstx_lane_set lanes;
    enum ms_rc rc = mstx__lane_set_read(&lanes, p->tl, process, own->step, own->n, p->places, err);
    if (rc == MS_OK && !profile_lanes(p, &lanes, process, own))
        rc = ms_no_memory(err);
    mstx__lane_set_free(&lanes);
    return rc;
}

static enum ms_rc profile_processes(struct profiling *p, const struct mstx_steps *steps,
                                    struct ms_err *err)
{
    for (size_t i = 0; i < steps->list.n;) {
        struct own_steps own = {.step = steps->list.p + i};
        while (i < steps->list.n && steps->list.p[i].process == own.step->process)
            i++, own.n++;
        MS_TRY(profile_process(p, own.step->process, &own, err));
    }
    return p->to->rank.n != 0
               ? MS_OK
               : ms_fail(err, MS_E_NOTFOUND,
                         "there are no steps to compare; msprobe report shows which there are");
}

enum ms_rc mstx__profile_read(struct mstx_profile *p, struct mstx_tl *tl,
                              struct mstx_step_range range, struct mstx_places *places,
                              struct ms_err *err)
{
    struct profiling work = {.to = p, .tl = tl, .places = places, .range = range};
    struct mstx_steps steps = {0};
    *p = (struct mstx_profile){0};
    work.gap = mstx__places_name(places, MS_STR("gap before"));
    enum ms_rc rc = work.gap != MSTX_NO_PLACE ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK)
        rc = mstx_steps_find(tl, &steps, err);
    if (rc == MS_OK)
        rc = profile_processes(&work, &steps, err);
    mstx_steps_free(&steps);
    return rc;
}

void mstx__profile_free(struct mstx_profile *p)
{
    ms_vec_free(&p->rank);
    ms_vec_free(&p->figure);
    ms_vec_free(&p->host);
    ms_vec_free(&p->device);
}
