/* SPDX-License-Identifier: MIT
 *
 * cl_lanes: what one process of a capture brings to the analysis of all, out of its lanes.
 *
 * Times are those of the host's steady clock.  Times of the device count where there are some, as the host's call of an operation that only begins
 * shows no waiting.  Without a device nothing tells computing from being idle: then computing is what
 * is not communication.
 */
#include "mstx/cl_lanes.h"

#include "mstx/tl_report.h"

#include "probe/base/mem.h"

#include <stdlib.h>

enum { SLICES = 32 };

/* ---- names of steps --------------------------------------------------------------- */

enum { NAME_NEW, NAME_OTHER, NAME_STEP, NAME_NUMBERED };

/* Answers are kept: a name is looked at once. */
static int64_t step_of_name(struct mstx_cl_names *names, const struct mstx_writer *w, uint32_t name)
{
    if (name >= names->n) {
        const size_t want = (size_t)name + name / 2 + 64;
        if (!ms_vec_reserve(names, want))
            return NAME_OTHER;
        memset(names->p + names->n, 0, (want - names->n) * sizeof *names->p);
        names->n = want;
    }
    if (names->p[name] == NAME_NEW) {
        int64_t number;
        const bool is = mstx_is_step_name(mstx__writer_text_of(w, name), &number);
        names->p[name] = !is ? NAME_OTHER : number < 0 ? NAME_STEP : NAME_NUMBERED + number;
    }
    return names->p[name];
}

/* ---- steps ------------------------------------------------------------------------ */

static bool may_be_step(const struct mstx_raw *r)
{
    return r->kind <= MSTX_EV_PUSHPOP && !(r->flags & MSTX_EVF_UNFINISHED);
}

static size_t count_steps(const struct mstx_cl_source *s, const struct mstx_lane *lane, bool marks)
{
    size_t n = 0;
    for (size_t i = 0; i < lane->ev.n; i++) {
        const struct mstx_raw *r = &lane->ev.p[i];
        n += may_be_step(r) && (r->kind == MSTX_EV_MARK) == marks &&
             step_of_name(s->names, s->w, r->name) != NAME_OTHER;
    }
    return n;
}

static struct mstx_cl_step *add_step(struct mstx_cl_part *p, int64_t name, int64_t start,
                                     int64_t end)
{
    struct mstx_cl_step *slot = ms_vec_push(&p->steps);
    if (slot != NULL)
        *slot =
            (struct mstx_cl_step){.number = name >= NAME_NUMBERED ? (uint32_t)(name - NAME_NUMBERED)
                                                                  : (uint32_t)p->steps.n - 1,
                                  .start_ns = start,
                                  .end_ns = end};
    return slot;
}

/* Ranges one after the other; marks last until the next one. */
static bool take_steps(const struct mstx_cl_source *s, struct mstx_cl_part *p,
                       const struct mstx_lane *lane, bool marks)
{
    int64_t end = INT64_MIN;
    struct mstx_cl_step *open = NULL;
    for (size_t i = 0; i < lane->ev.n; i++) {
        const struct mstx_raw *r = &lane->ev.p[i];
        const int64_t name = may_be_step(r) ? step_of_name(s->names, s->w, r->name) : NAME_OTHER;
        if (name == NAME_OTHER || (r->kind == MSTX_EV_MARK) != marks)
            continue;
        const int64_t start = mstx__lane_steady(lane, s->clock, r->begin);
        if (open != NULL)
            open->end_ns = start;
        if (!marks && (start < end || r->end <= r->begin))
            continue;
        end = marks ? start : mstx__lane_steady(lane, s->clock, r->end);
        open = add_step(p, name, start, end);
        if (open == NULL)
            return false;
        open = marks ? open : NULL;
    }
    if (open != NULL) /* nothing says where the last one ends */
        p->steps.n--;
    return true;
}

/* The lane with the most, ranges before marks. */
static bool find_steps(const struct mstx_cl_source *s, struct mstx_cl_part *p)
{
    for (int marks = 0; marks <= 1; marks++) {
        const struct mstx_lane *best = NULL;
        size_t most = 0;
        for (size_t i = 0; i < s->l->lane.n; i++) {
            const struct mstx_lane *lane = &s->l->lane.p[i];
            const size_t n = lane->kind == MSTX_TRACK_THREAD ? count_steps(s, lane, marks != 0) : 0;
            if (n > most) {
                most = n;
                best = lane;
            }
        }
        if (best != NULL)
            return take_steps(s, p, best, marks != 0);
    }
    return true;
}

/* Without steps: slices with the same number of collectives of the busiest communicator, which are
 * the same ones on all its ranks. */
bool mstx__cluster_slice(struct mstx_cl_part *p)
{
    MS_VEC(uint32_t) count = {0};
    uint32_t best = 0;
    bool ok = true;
    for (size_t i = 0; i < p->calls.n && ok; i++) {
        const struct mstx_cl_call *k = &p->calls.p[i];
        if (mstx_comm_op_class(k->op) != MSTX_CLASS_COLL || k->group == 0)
            continue;
        while (ok && count.n <= k->group) {
            uint32_t *slot = ms_vec_push(&count);
            ok = slot != NULL;
            if (ok)
                *slot = 0;
        }
        if (ok && ++count.p[k->group] > (best != 0 ? count.p[best] : 0))
            best = k->group;
    }
    for (uint32_t g = 1; ok && g < count.n; g++)
        best = count.p[g] > count.p[best] ? g : best;
    const uint32_t each = best != 0 ? (count.p[best] + SLICES - 1) / SLICES : 0;
    int64_t last = INT64_MIN;
    for (size_t i = 0, n = 0; ok && best != 0 && i < p->calls.n; i++) {
        const struct mstx_cl_call *k = &p->calls.p[i];
        if (k->group != best || mstx_comm_op_class(k->op) != MSTX_CLASS_COLL || n++ % each != 0)
            continue;
        const int64_t here = k->start_ns + k->dur_ns;
        if (last != INT64_MIN && here > last)
            ok = add_step(p, NAME_STEP, last, here) != NULL;
        last = here;
    }
    ms_vec_free(&count);
    return ok;
}

/* ---- calls ------------------------------------------------------------------------ */

static bool add_span(mstx_cl_spans *s, int64_t start, int64_t end)
{
    struct mstx_cl_span *slot = end > start ? ms_vec_push(s) : NULL;
    if (slot != NULL)
        *slot = (struct mstx_cl_span){start, end};
    return slot != NULL || end <= start;
}

/* What a call was on the device, by the number that both sides carry. */
struct sides {
    MS_VEC(struct mstx_cl_span) at; /* by number; end 0: none */
};

static bool take_side(struct sides *d, uint64_t link, struct mstx_cl_span span)
{
    if (link == 0 || link > (uint64_t)1 << 31)
        return true;
    if (link >= d->at.n) {
        const size_t want = (size_t)link + link / 2 + 64;
        if (!ms_vec_reserve(&d->at, want))
            return false;
        memset(d->at.p + d->at.n, 0, (want - d->at.n) * sizeof *d->at.p);
        d->at.n = want;
    }
    d->at.p[link] = span;
    return true;
}

static bool take_stream(const struct mstx_cl_source *s, struct mstx_cl_part *p,
                        const struct mstx_lane *lane, struct sides *d)
{
    const bool is_comm = ms_str_is(mstx__writer_text_of(s->w, lane->domain), MSTX_COMM_DOMAIN);
    for (size_t i = 0; i < lane->ev.n; i++) {
        const struct mstx_raw *r = &lane->ev.p[i];
        if (r->end <= r->begin || r->kind > MSTX_EV_PUSHPOP)
            continue;
        const struct mstx_cl_span span = {mstx__lane_steady(lane, s->clock, r->begin),
                                          mstx__lane_steady(lane, s->clock, r->end)};
        if (!add_span(is_comm ? &p->comm : &p->work, span.start, span.end))
            return false;
        p->knows_work |= !is_comm;
        if (is_comm && r->extra != 0 && !take_side(d, s->l->extra.p[r->extra - 1].size, span))
            return false;
    }
    return true;
}

/* Its range on the host ends as soon as a device has it in a queue. */
static bool only_begins(const struct mstx_rec_comm *c)
{
    return c->lib == MSTX_LIB_NCCL || c->lib == MSTX_LIB_RCCL || c->lib == MSTX_LIB_HCCL;
}

static bool take_call(const struct mstx_cl_source *s, struct mstx_cl_part *p,
                      const struct mstx_lane *lane, const struct mstx_raw *r, struct sides *d,
                      bool has_device)
{
    const struct mstx_extra *x = &s->l->extra.p[r->extra - 1];
    const struct mstx_rec_comm *c = &s->l->comm.p[x->comm - 1];
    const enum mstx_comm_class class = mstx_comm_op_class(c->op);
    struct mstx_cl_span span = {mstx__lane_steady(lane, s->clock, r->begin), 0};
    uint8_t flags = c->flags;
    if (class == MSTX_CLASS_ADMIN || c->type == 0)
        return true;
    span.end = r->end > r->begin ? mstx__lane_steady(lane, s->clock, r->end) : span.start;
    const bool on_device = x->size < d->at.n && d->at.p[x->size].end != 0;
    if (on_device) {
        span = d->at.p[x->size];
        flags &= (uint8_t)~MSTX_CF_ASYNC;
    } else if (only_begins(c)) {
        flags |= MSTX_CF_ASYNC; /* its time was lost: nothing tells who waited */
    }
    if (!has_device && !add_span(&p->comm, span.start, span.end))
        return false;
    if (c->op == MSTX_COMM_RECV && !add_span(&p->bubble, span.start, span.end))
        return false;
    if (class >= MSTX_SEQUENCES)
        return true;
    struct mstx_cl_call *k = ms_vec_push(&p->calls);
    if (k != NULL)
        *k = (struct mstx_cl_call){.start_ns = span.start,
                                   .dur_ns = span.end - span.start,
                                   .bytes = c->count * c->elem,
                                   .group = mstx__comm_writer_id(s->comm, c->group),
                                   .seq = c->seq,
                                   .peer = c->peer,
                                   .op = c->op,
                                   .dtype = c->dtype,
                                   .flags = flags,
                                   .unfinished = (r->flags & MSTX_EVF_UNFINISHED) != 0};
    return k != NULL;
}

static bool take_calls(const struct mstx_cl_source *s, struct mstx_cl_part *p)
{
    struct sides d = {0};
    bool ok = true;
    for (size_t i = 0; i < s->l->lane.n && ok; i++) {
        if (s->l->lane.p[i].kind == MSTX_TRACK_STREAM)
            ok = take_stream(s, p, &s->l->lane.p[i], &d);
    }
    const bool has_device = p->comm.n != 0;
    for (size_t i = 0; i < s->l->lane.n && ok; i++) {
        const struct mstx_lane *lane = &s->l->lane.p[i];
        for (size_t k = 0; lane->kind == MSTX_TRACK_THREAD && k < lane->ev.n && ok; k++) {
            const struct mstx_raw *r = &lane->ev.p[k];
            if (r->extra != 0 && s->l->extra.p[r->extra - 1].comm != 0)
                ok = take_call(s, p, lane, r, &d, has_device);
        }
    }
    ms_vec_free(&d.at);
    return ok;
}

void mstx__cluster_lanes(struct mstx_cluster *c, const struct mstx_cl_source *s)
{
    struct mstx_cl_part *p = s->part;
    if (s->l->comm.n == 0) /* a helper process: it takes part in nothing */
        return;
    mstx__cluster_part_reset(p);
    p->rank = s->rank;
    p->clock = s->host_clock;
    p->host = s->host;
    bool ok = take_calls(s, p) && find_steps(s, p);
    if (ok && p->steps.n == 0)
        ok = mstx__cluster_slice(p);
    if (ok)
        mstx__cluster_part(c, p);
    c->no_memory |= !ok;
}
