/* SPDX-License-Identifier: MIT
 *
 * cl_part: what one process brings to the analysis of all: its steps, divided into computing,
 * communication and the rest, and its calls with the steps they lie in.
 */
#include "mstx/tl_cluster.h"

#include "probe/base/mem.h"

#include <stdlib.h>
#include <string.h>

void mstx__cluster_free(struct mstx_cluster *c)
{
    for (size_t i = 0; i < c->group.n; i++) {
        ms_free(c->group.p[i].name);
        ms_vec_free(&c->group.p[i].world);
        ms_vec_free(&c->group.p[i].members);
        ms_vec_free(&c->group.p[i].cost);
    }
    for (size_t i = 0; i < c->host.n; i++)
        ms_free(c->host.p[i]);
    ms_vec_free(&c->group);
    ms_vec_free(&c->process);
    ms_vec_free(&c->step);
    ms_vec_free(&c->coll);
    ms_vec_free(&c->p2p);
    ms_vec_free(&c->join);
    ms_vec_free(&c->link);
    ms_vec_free(&c->open);
    ms_vec_free(&c->quarrel);
    ms_vec_free(&c->missing);
    ms_vec_free(&c->note);
    ms_vec_free(&c->host);
}

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

static char *group_name(uint32_t id, struct ms_str name)
{
    struct ms_buf b = {.max = 128};
    if (name.n != 0)
        ms_buf_printf(&b, "%.*s", name.n < 48 ? (int)name.n : 48, name.p);
    else
        ms_buf_printf(&b, "communicator %u", id);
    ms_buf_z(&b);
    return b.p;
}

void mstx__cluster_group(struct mstx_cluster *c, uint32_t id, struct ms_str name, int64_t size,
                         const void *world, uint32_t listed)
{
    if (id == 0 || id <= c->group.n)
        return;
    struct mstx_cl_group *g = ms_vec_push(&c->group);
    if (g == NULL) {
        c->no_memory = true;
        return;
    }
    *g = (struct mstx_cl_group){
        .id = id, .name = group_name(id, name), .size = size, .first_seq = UINT32_MAX};
    c->no_memory |= g->name == NULL;
    if (listed == 0)
        return;
    if (!ms_vec_reserve(&g->world, listed)) {
        c->no_memory = true;
        return;
    }
    memcpy(g->world.p, world, listed * sizeof *g->world.p);
    g->world.n = listed;
}

/* ---- spans -------------------------------------------------------------------- */

static int by_start(const void *pa, const void *pb)
{
    const struct mstx_cl_span *a = pa, *b = pb;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end);
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

/* Spans that end before a step begins are done with: steps come in order. */
static size_t pass_until(const mstx_cl_spans *s, size_t at, int64_t t)
{
    while (at < s->n && s->p[at].end <= t)
        at++;
    return at;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t covered(const mstx_cl_spans *s, size_t at, int64_t from, int64_t to)
{
    int64_t sum = 0;
    for (; at < s->n && s->p[at].start < to; at++)
        sum += later(0, earlier(s->p[at].end, to) - later(s->p[at].start, from));
    return sum;
}

/* Covered by both. */
static int64_t covered_by_both(const mstx_cl_spans *a, size_t i, const mstx_cl_spans *b, size_t k,
                               int64_t from, int64_t to)
{
    int64_t sum = 0;
    while (i < a->n && k < b->n && a->p[i].start < to && b->p[k].start < to) {
        int64_t start = later(later(a->p[i].start, b->p[k].start), from);
        int64_t end = earlier(earlier(a->p[i].end, b->p[k].end), to);
        sum += later(0, end - start);
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
    const int64_t whole = s->end_ns - s->start_ns;
    s->comm_ns = covered(&p->comm, comm, s->start_ns, s->end_ns);
    s->bubble_ns = covered(&p->bubble, bubble, s->start_ns, s->end_ns);
    if (!p->knows_work) {
        s->computing_ns = whole - s->comm_ns;
        return;
    }
    s->computing_ns = covered(&p->work, work, s->start_ns, s->end_ns);
    s->overlapped_ns = covered_by_both(&p->comm, comm, &p->work, work, s->start_ns, s->end_ns);
    s->free_ns = later(0, whole - s->computing_ns - s->comm_ns + s->overlapped_ns);
    int64_t first = s->end_ns;
    if (work < p->work.n)
        first = earlier(first, later(p->work.p[work].start, s->start_ns));
    if (comm < p->comm.n)
        first = earlier(first, later(p->comm.p[comm].start, s->start_ns));
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

/* ---- taking ------------------------------------------------------------------- */

uint32_t mstx__cluster_host(struct mstx_cluster *c, struct ms_str name)
{
    for (size_t i = c->host.n; i-- > 0;) {
        if (ms_str_is(name, c->host.p[i]))
            return (uint32_t)i;
    }
    char **slot = ms_vec_push(&c->host);
    if (slot == NULL || (*slot = ms_str_dup(name)) == NULL) {
        c->host.n -= slot != NULL;
        c->no_memory = true;
        return 0;
    }
    return (uint32_t)c->host.n - 1;
}

/* Parts come one after the other, so members are in order. */
static bool count_call(struct mstx_cl_group *g, uint32_t seq, uint32_t process)
{
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
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return (a->seq > b->seq) - (a->seq < b->seq);
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
