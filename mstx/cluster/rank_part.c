/* SPDX-License-Identifier: MIT
 *
 * rank_part: see the header.
 */
#include "mstx/cluster/rank_part.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <stdlib.h>
#include <string.h>

void mstx__cluster_part_reset(struct mstx_cl_part *p)
{
    p->steps.n = p->comm.n = p->work.n = p->bubble.n = p->calls.n = 0;
    p->knows_work = false;
}

void mstx__cluster_part_free(struct mstx_cl_part *p)
{
    ms_vec_free(&p->steps);
    ms_vec_free(&p->comm);
    ms_vec_free(&p->work);
    ms_vec_free(&p->bubble);
    ms_vec_free(&p->calls);
}

/* ---- spans -------------------------------------------------------------------- */

static int by_start(const void *pa, const void *pb)
{
    const struct mstx_cl_span *a = pa, *b = pb;
    return MS_ORDER(a->start, b->start, MS_ORDER(a->end, b->end, 0));
}

void mstx__spans_join(mstx_cl_spans *s)
{
    bool sorted = true;
    size_t n = 0;
    for (size_t i = 1; i < s->n && sorted; i++)
        sorted = s->p[i - 1].start <= s->p[i].start;
    if (!sorted)
        qsort(s->p, s->n, sizeof *s->p, by_start);
    for (size_t i = 0; i < s->n; i++) {
        if (n != 0 && s->p[i].start <= s->p[n - 1].end) {
            if (s->p[i].end > s->p[n - 1].end)
                s->p[n - 1].end = s->p[i].end;
        } else {
            s->p[n++] = s->p[i];
        }
    }
    s->n = n;
}

/* Returns the index of the first span that ends after t; steps are in order, so earlier spans are
 * not needed again. */
static size_t pass_until(const mstx_cl_spans *s, size_t at, int64_t t)
{
    while (at < s->n && s->p[at].end <= t)
        at++;
    return at;
}

static int64_t covered_ns(const mstx_cl_spans *s, size_t at, int64_t from, int64_t to)
{
    ms_assert(from <= to);
    int64_t sum = 0;
    for (; at < s->n && s->p[at].start < to; at++)
        sum += ms_max_i64(0, ms_min_i64(s->p[at].end, to) - ms_max_i64(s->p[at].start, from));
    return sum;
}

/* Returns the time within [from, to] that both lists of spans cover. */
static int64_t covered_by_both_ns(const mstx_cl_spans *a, size_t i, const mstx_cl_spans *b,
                                  size_t k, int64_t from, int64_t to)
{
    ms_assert(from <= to);
    int64_t sum = 0;
    while (i < a->n && k < b->n && a->p[i].start < to && b->p[k].start < to) {
        int64_t start = ms_max_i64(ms_max_i64(a->p[i].start, b->p[k].start), from);
        int64_t end = ms_min_i64(ms_min_i64(a->p[i].end, b->p[k].end), to);
        sum += ms_max_i64(0, end - start);
        if (a->p[i].end < b->p[k].end)
            i++;
        else
            k++;
    }
    return sum;
}

/* ---- steps -------------------------------------------------------------------- */

static void divide_step(struct mstx_cl_step *s, const struct mstx_cl_part *p, size_t comm,
                        size_t work, size_t bubble)
{
    ms_assert(s->start_ns <= s->end_ns);
    const int64_t whole = s->end_ns - s->start_ns;
    s->comm_ns = covered_ns(&p->comm, comm, s->start_ns, s->end_ns);
    s->bubble_ns = covered_ns(&p->bubble, bubble, s->start_ns, s->end_ns);
    if (!p->knows_work) {
        s->computing_ns = whole - s->comm_ns;
        return;
    }
    s->computing_ns = covered_ns(&p->work, work, s->start_ns, s->end_ns);
    s->overlapped_ns = covered_by_both_ns(&p->comm, comm, &p->work, work, s->start_ns, s->end_ns);
    s->free_ns = ms_max_i64(0, whole - s->computing_ns - s->comm_ns + s->overlapped_ns);
    int64_t first = s->end_ns;
    if (work < p->work.n)
        first = ms_min_i64(first, ms_max_i64(p->work.p[work].start, s->start_ns));
    if (comm < p->comm.n)
        first = ms_min_i64(first, ms_max_i64(p->comm.p[comm].start, s->start_ns));
    s->preparing_ns = first - s->start_ns;
}

static void divide_steps(struct mstx_cl_part *p)
{
    size_t comm = 0, work = 0, bubble = 0;
    for (size_t i = 0; i < p->steps.n; i++) {
        struct mstx_cl_step *s = &p->steps.p[i];
        comm = pass_until(&p->comm, comm, s->start_ns);
        work = pass_until(&p->work, work, s->start_ns);
        bubble = pass_until(&p->bubble, bubble, s->start_ns);
        divide_step(s, p, comm, work, bubble);
    }
}

/* ---- adding calls ------------------------------------------------------------- */

/* Counts a call of a process.  Parts are added in the order of their processes, so members are
 * sorted. */
static bool count_call(struct mstx_cl_group *g, uint32_t seq, uint32_t process)
{
    ms_assert(g->members.n == 0 || g->members.p[g->members.n - 1] <= process);
    g->calls++;
    g->first_seq = seq < g->first_seq ? seq : g->first_seq;
    g->last_seq = seq > g->last_seq ? seq : g->last_seq;
    if (g->members.n != 0 && g->members.p[g->members.n - 1] == process)
        return true;
    uint32_t *slot = ms_vec_push(&g->members);
    if (slot != NULL)
        *slot = process;
    return slot != NULL;
}

static bool take_call(struct mstx_cluster *c, const struct mstx_cl_call *call, uint32_t process,
                      uint32_t step)
{
    const enum mstx_comm_class class = mstx_comm_op_class(call->op);
    struct mstx_cl_call *slot = NULL;
    if (call->group == 0 || call->group > c->group.n)
        return true;
    if (class == MSTX_CLASS_COLL)
        slot = ms_vec_push(&c->coll);
    else if (class == MSTX_CLASS_P2P)
        slot = ms_vec_push(&c->p2p);
    else
        return true;
    if (slot == NULL)
        return false;
    *slot = *call;
    slot->group = call->group - 1;
    slot->process = process;
    slot->step = step;
    return class != MSTX_CLASS_COLL || count_call(&c->group.p[slot->group], call->seq, process);
}

static int call_by_start(const void *pa, const void *pb)
{
    const struct mstx_cl_call *a = pa, *b = pb;
    return MS_ORDER(a->start_ns, b->start_ns, MS_ORDER(a->seq, b->seq, 0));
}

static void take_calls(struct mstx_cluster *c, struct mstx_cl_part *p, uint32_t process,
                       uint32_t first)
{
    size_t step = 0;
    bool sorted = true;
    for (size_t i = 1; i < p->calls.n && sorted; i++)
        sorted = p->calls.p[i - 1].start_ns <= p->calls.p[i].start_ns;
    if (!sorted)
        qsort(p->calls.p, p->calls.n, sizeof *p->calls.p, call_by_start);
    for (size_t i = 0; i < p->calls.n && !c->no_memory; i++) {
        const int64_t t = p->calls.p[i].start_ns;
        while (step < p->steps.n && p->steps.p[step].end_ns <= t)
            step++;
        const bool inside = step < p->steps.n && p->steps.p[step].start_ns <= t;
        c->no_memory =
            !take_call(c, &p->calls.p[i], process, inside ? first + (uint32_t)step : MSTX_NO_STEP);
    }
}

void mstx__cluster_part(struct mstx_cluster *c, struct mstx_cl_part *p)
{
    ms_assert(p->rank >= -1);
    const uint32_t process = (uint32_t)c->process.n, first = (uint32_t)c->step.n;
    struct mstx_cl_process *slot = ms_vec_push(&c->process);
    if (slot == NULL || !ms_vec_reserve(&c->step, c->step.n + p->steps.n)) {
        c->process.n -= slot != NULL;
        c->no_memory = true;
        return;
    }
    *slot = (struct mstx_cl_process){p->rank, mstx__cluster_host(c, p->host), p->clock, first,
                                     (uint32_t)p->steps.n};
    mstx__spans_join(&p->comm);
    mstx__spans_join(&p->work);
    mstx__spans_join(&p->bubble);
    divide_steps(p);
    take_calls(c, p, process, first);
    for (size_t i = 0; i < p->steps.n; i++) {
        c->step.p[c->step.n] = p->steps.p[i];
        c->step.p[c->step.n++].process = process;
    }
}

/* ---- steps out of calls ------------------------------------------------------- */

enum { SLICES = 32 }; /* about as many steps as a report shows on one screen */

static bool add_slice(struct mstx_cl_part *p, int64_t start, int64_t end)
{
    struct mstx_cl_step *slot = ms_vec_push(&p->steps);
    if (slot != NULL)
        *slot = (struct mstx_cl_step){
            .number = (uint32_t)p->steps.n - 1, .start_ns = start, .end_ns = end};
    return slot != NULL;
}

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
            ok = add_slice(p, last, here);
        last = here;
    }
    ms_vec_free(&count);
    return ok;
}
