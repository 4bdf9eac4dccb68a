/* SPDX-License-Identifier: MIT
 *
 * call_points: cuts the time of a rank into local work and communication.  See call_graph.h.
 */
#include "mstx/cluster/call_graph.h"

#include "mstx/format/comm.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <stdlib.h>

/* A time span in which the thread is inside communication, or a post (start == end). */
struct piece {
    int64_t start, end;
    uint32_t call; /* UINT32_MAX: the wait for an asynchronous call that started earlier */
    bool is_post;
};

struct thread_count {
    uint32_t thread, calls;
};

struct lane {
    struct mstx_call_graph *g;
    struct mstx_gcall *call;
    uint32_t from, to; /* calls of the rank */
    MS_VEC(struct piece) piece;
    MS_VEC(int64_t) sign; /* times at which the thread entered or left a call, ascending */
    MS_VEC(int64_t) done; /* completion times of asynchronous operations, ascending */
    MS_VEC(struct thread_count) count;
    uint32_t thread;
};

static int by_rank_and_start(const void *pa, const void *pb)
{
    const struct mstx_gcall *a = pa, *b = pb;
    return MS_ORDER(a->rank, b->rank,
                    MS_ORDER(a->start_ns, b->start_ns,
                             MS_ORDER(a->end_ns, b->end_ns, MS_ORDER(a->seq, b->seq, 0))));
}

static int by_start(const void *pa, const void *pb)
{
    const struct piece *a = pa, *b = pb;
    return MS_ORDER(a->start, b->start, MS_ORDER(b->end, a->end, MS_ORDER(a->call, b->call, 0)));
}

static int by_time(const void *pa, const void *pb)
{
    const int64_t *a = pa, *b = pb;
    return MS_ORDER(*a, *b, 0);
}

static bool add_thread(struct lane *l, uint32_t thread)
{
    struct thread_count *slot = ms_vec_push(&l->count);
    if (slot == NULL)
        l->g->no_memory = true;
    else
        *slot = (struct thread_count){thread, 0};
    return slot != NULL;
}

static void sort_times(int64_t *v, size_t n)
{
    size_t i = 1;
    while (i < n && v[i - 1] <= v[i])
        i++;
    if (i < n)
        qsort(v, n, sizeof *v, by_time);
}

/* Returns the thread with the most calls; only its calls make up the lane of the rank. */
static uint32_t busiest_thread(struct lane *l)
{
    size_t best = 0;
    l->count.n = 0;
    for (uint32_t i = l->from; i < l->to; i++) {
        size_t k = 0;
        while (k < l->count.n && l->count.p[k].thread != l->call[i].thread)
            k++;
        if (k == l->count.n && !add_thread(l, l->call[i].thread))
            return 0;
        l->count.p[k].calls++;
        best = l->count.p[k].calls > l->count.p[best].calls ? k : best;
    }
    return l->count.p[best].thread;
}

static bool is_of_lane(const struct lane *l, const struct mstx_gcall *c)
{
    return c->thread == l->thread && mstx_comm_op_class(c->op) != MSTX_CLASS_ADMIN &&
           c->op != MSTX_COMM_REQUEST;
}

static void add_time(struct lane *l, int64_t t, bool is_done)
{
    int64_t *slot = is_done ? ms_vec_push(&l->done) : ms_vec_push(&l->sign);
    if (slot == NULL)
        l->g->no_memory = true;
    else
        *slot = t;
}

static void add_piece(struct lane *l, int64_t start, int64_t end, uint32_t call, bool is_post)
{
    struct piece *slot = ms_vec_push(&l->piece);
    if (slot == NULL)
        l->g->no_memory = true;
    else
        *slot = (struct piece){start, end, call, is_post};
}

/* Tells whether the thread went on while the call was in flight, so that only the begin belongs to
 * the thread.  torch.distributed records an operation from its begin to its completion: the thread
 * went on when it made another call before the completion. */
static bool is_begun_only(const struct lane *l, uint32_t i)
{
    const struct mstx_gcall *c = &l->call[i];
    if ((c->flags & MSTX_CF_ASYNC) != 0)
        return true;
    if (c->lib != MSTX_LIB_TORCH)
        return false;
    for (uint32_t k = i + 1; k < l->to && l->call[k].start_ns < c->end_ns; k++) {
        if (is_of_lane(l, &l->call[k]))
            return true;
    }
    return false;
}

/* Returns the index of the first time that is not below t. */
static size_t first_from(const int64_t *v, size_t n, int64_t t)
{
    size_t low = 0, high = n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (v[mid] < t)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Tells whether a call waits.  A test or probe does when it polled more than once or an operation
 * completed in it. */
static bool is_waiting(const struct lane *l, const struct mstx_gcall *c)
{
    if (c->op != MSTX_COMM_TEST && c->op != MSTX_COMM_PROBE)
        return true;
    const size_t at = first_from(l->done.p, l->done.n, c->start_ns);
    return c->polls > 1 || (at < l->done.n && l->done.p[at] <= c->end_ns);
}

static void look_at_calls(struct lane *l)
{
    for (uint32_t i = l->from; i < l->to; i++) {
        const struct mstx_gcall *c = &l->call[i];
        if (!is_of_lane(l, c))
            continue;
        add_time(l, c->start_ns, false);
        if (is_begun_only(l, i))
            add_time(l, c->end_ns, true);
        else
            add_time(l, c->end_ns, false);
    }
    sort_times(l->sign.p, l->sign.n);
    sort_times(l->done.p, l->done.n);
}

/* Adds the unrecorded wait for a call of torch.distributed, which is assumed to begin at the last
 * time at which the thread entered or left a call. */
static void add_unseen_wait(struct lane *l, const struct mstx_gcall *c)
{
    const size_t at = first_from(l->sign.p, l->sign.n, c->end_ns);
    const int64_t seen = at != 0 ? l->sign.p[at - 1] : c->start_ns;
    add_piece(l, seen > c->start_ns ? seen : c->start_ns, c->end_ns, UINT32_MAX, false);
}

static void cut_calls(struct lane *l)
{
    for (uint32_t i = l->from; i < l->to; i++) {
        const struct mstx_gcall *c = &l->call[i];
        if (!is_of_lane(l, c))
            continue;
        const bool begun_only = is_begun_only(l, i);
        if (begun_only)
            add_piece(l, c->start_ns, c->start_ns, i, true);
        else if (is_waiting(l, c))
            add_piece(l, c->start_ns, c->end_ns, i, false);
        if (begun_only && c->lib == MSTX_LIB_TORCH)
            add_unseen_wait(l, c);
    }
    size_t i = 1;
    while (i < l->piece.n && by_start(&l->piece.p[i - 1], &l->piece.p[i]) <= 0)
        i++;
    if (i < l->piece.n)
        qsort(l->piece.p, l->piece.n, sizeof *l->piece.p, by_start);
}

static uint32_t add_point(struct mstx_call_graph *g, int64_t t, uint32_t rank,
                          enum mstx_point_kind kind)
{
    struct mstx_point *slot = ms_vec_push(&g->point);
    if (slot == NULL) {
        g->no_memory = true;
        return 0;
    }
    /* Points of a rank have distinct times, so that their order is the order of time. */
    if (g->point.n > 1 && slot[-1].rank == rank && slot[-1].at_ns >= t)
        t = slot[-1].at_ns + 1;
    *slot = (struct mstx_point){t, rank & (MSTX_POINT_RANKS_MOST - 1), kind & 3u};
    return (uint32_t)g->point.n - 1;
}

/* Makes points of the pieces of a rank.  Overlapping pieces are one interval; pieces that only
 * touch are not. */
static void put_points(struct lane *l, uint32_t rank)
{
    uint32_t in = MSTX_NO_POINT;
    for (size_t i = 0; i < l->piece.n && !l->g->no_memory; i++) {
        const struct piece *p = &l->piece.p[i];
        struct mstx_gcall *c = p->call != UINT32_MAX ? &l->call[p->call] : NULL;
        const bool is_inside = in != MSTX_NO_POINT && p->start < l->g->point.p[in + 1].at_ns;
        if (is_inside && !p->is_post && p->end > l->g->point.p[in + 1].at_ns)
            l->g->point.p[in + 1].at_ns = p->end;
        uint32_t begin = in;
        if (!is_inside && p->is_post) {
            begin = add_point(l->g, p->start, rank, MSTX_POINT_POST);
            in = MSTX_NO_POINT;
        } else if (!is_inside) {
            begin = in = add_point(l->g, p->start, rank, MSTX_POINT_IN);
            add_point(l->g, p->end, rank, MSTX_POINT_OUT);
        }
        if (c != NULL) {
            c->begin = begin;
            c->done = p->is_post ? MSTX_NO_POINT : begin + 1;
        }
    }
}

/* Returns the OUT of the rank's interval that contains time t, or MSTX_NO_POINT. */
static uint32_t interval_at(const struct mstx_call_graph *g, uint32_t from, uint32_t to, int64_t t)
{
    uint32_t low = from, high = to;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (g->point.p[mid].at_ns < t)
            low = mid + 1;
        else
            high = mid;
    }
    while (low < to && g->point.p[low].kind != MSTX_POINT_OUT && g->point.p[low].at_ns <= t)
        low++;
    return low < to && g->point.p[low].kind == MSTX_POINT_OUT ? low : MSTX_NO_POINT;
}

/* Finds for each asynchronous operation the interval in which it completed. */
static void find_done(struct lane *l, uint32_t from)
{
    for (uint32_t i = l->from; i < l->to; i++) {
        struct mstx_gcall *c = &l->call[i];
        if (c->begin != MSTX_NO_POINT && c->done == MSTX_NO_POINT)
            c->done = interval_at(l->g, from, (uint32_t)l->g->point.n, c->end_ns);
    }
}

static void cut_rank(struct lane *l, uint32_t rank)
{
    const uint32_t from = (uint32_t)l->g->point.n;
    l->piece.n = l->sign.n = l->done.n = 0;
    l->thread = busiest_thread(l);
    look_at_calls(l);
    cut_calls(l);
    for (uint32_t i = l->from; i < l->to; i++) /* threads and polls are not needed any more */
        l->call[i].begin = l->call[i].done = MSTX_NO_POINT;
    put_points(l, rank);
    if (!l->g->no_memory)
        find_done(l, from);
}

static bool is_sorted(const mstx_gcalls *calls)
{
    for (size_t i = 1; i < calls->n; i++) {
        if (by_rank_and_start(&calls->p[i - 1], &calls->p[i]) > 0)
            return false;
    }
    return true;
}

void mstx__call_points(struct mstx_call_graph *g, mstx_gcalls *calls, uint32_t ranks)
{
    struct lane l = {.g = g, .call = calls->p};
    ms_assert(ranks < MSTX_POINT_RANKS_MOST);
    g->no_memory |= !ms_vec_reserve(&g->thread, ranks);
    if (!is_sorted(calls))
        qsort(calls->p, calls->n, sizeof *calls->p, by_rank_and_start);
    for (uint32_t r = 0; r <= ranks; r++) {
        uint32_t *slot = ms_vec_push(&g->first);
        g->no_memory |= slot == NULL;
        if (slot == NULL)
            break;
        *slot = (uint32_t)g->point.n;
        for (l.to = l.from; l.to < calls->n && calls->p[l.to].rank == r;)
            l.to++;
        if (r < ranks && l.to != l.from && !g->no_memory)
            cut_rank(&l, r);
        if (r < ranks && !g->no_memory)
            g->thread.p[g->thread.n++] = l.thread;
        l.from = l.to;
    }
    ms_vec_free(&l.piece);
    ms_vec_free(&l.sign);
    ms_vec_free(&l.done);
    ms_vec_free(&l.count);
}
