/* SPDX-License-Identifier: MIT
 *
 * connections: see the header.
 */
#include "mstx/cluster/connections.h"

#include "mstx/cluster/keyed.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <math.h>
#include <stdlib.h>

/* A round trip is long from 3 times the lower quartile and 1 ms more on (measured on networks with delays of
 * 2 ms and more); a rate is low below a third of the upper quartile.
 * Beside a low one of the same rank half of it is low too, so that a rank is named whose connections are about as slow as
 * each other: of a host limited to 1.6 MB/s the rates were 0.31 to 0.35 of the usual ones. */
static const double RTT_RATIO = 3, RTT_MORE_US = 1000, RATE_RATIO = 3, LEAN_RATIO = 2,
                    HELD_RATIO = 1.5;
/* A connection loses packets from LOSS_LEAST of them, and LOSS_RATIO times the median, on: of 30 networks that lost none
 * on purpose, at a load of 17, the queues of one lost 0.046; with losses of 6 to 10 % the least part was 0.10. */
static const double LOSS_LEAST = 0.05, LOSS_RATIO = 3, PACKET = 1448;
/* A connection matters when it was busy for this part of the job; rates and losses need that many bytes. */
static const double BUSY_LEAST = 0.05, BYTES_SURE = 1 << 18;
/* With fewer pairs nobody knows what is usual; of losses it is nearly none. */
enum { PAIRS_LEAST = 3, LOSS_PAIRS_LEAST = 2, OWN_LEAST = 2 };
static const double OWN_SHARE = 0.75;

/* All connections of two ranks. */
struct pair {
    uint32_t rank, peer;
    double rtt_us, rate; /* the lower rate of both directions; INFINITY: too few bytes */
    double lost;         /* the greater part of both directions; 0: too few bytes */
    double busy;
    bool is_busy, long_rtt, has_loss, low_rate;
    bool leans; /* its rate is less than half of the usual one */
};

struct judging {
    struct pair *pair;
    size_t n;
    double *scratch;
    double *worst;                    /* by rank: least rate of its slow pairs */
    uint32_t *of_rank, *slow_of_rank; /* number of busy pairs, and of slow ones */
    double usual_rtt, usual_rate, usual_loss;
};

static uint32_t low_of(const struct mstx_conn_end *e)
{
    return e->rank < e->peer ? e->rank : e->peer;
}

static uint32_t high_of(const struct mstx_conn_end *e)
{
    return e->rank < e->peer ? e->peer : e->rank;
}

static int by_pair(const void *pa, const void *pb)
{
    const struct mstx_conn_end *a = pa, *b = pb;
    return MS_ORDER(low_of(a), low_of(b),
                    MS_ORDER(high_of(a), high_of(b), MS_ORDER(a->rank, b->rank, 0)));
}

static void add_end(struct pair *p, const struct mstx_conn_end *e)
{
    if (e->min_rtt_us > 0)
        p->rtt_us = fmin(p->rtt_us, e->min_rtt_us);
    if (e->sent >= BYTES_SURE && e->busy_us > 0)
        p->rate = fmin(p->rate, e->sent / e->busy_us * 1e6);
    if (e->sent >= BYTES_SURE)
        p->lost = fmax(p->lost, e->retransmitted * PACKET / e->sent);
    if (e->span_us > 0)
        p->busy = fmax(p->busy, fmin(1, e->busy_us / e->span_us));
}

static void join_ends(struct judging *j, const struct mstx_conn_end *end, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t low = low_of(&end[i]), high = high_of(&end[i]);
        struct pair *p = j->n != 0 ? &j->pair[j->n - 1] : NULL;
        if (low == high)
            continue;
        if (p == NULL || p->rank != low || p->peer != high) {
            p = &j->pair[j->n++];
            *p = (struct pair){.rank = low, .peer = high, .rtt_us = INFINITY, .rate = INFINITY};
        }
        add_end(p, &end[i]);
    }
}

/* Sets what is usual: the lower quartile of round trips, the upper one of rates, the median of losses. */
static void find_usual(struct judging *j)
{
    size_t rtts = 0, rates = 0;
    for (size_t i = 0; i < j->n; i++)
        j->scratch[i] = j->pair[i].rtt_us;
    rtts = j->n;
    j->usual_rtt = rtts >= PAIRS_LEAST ? mstx__select(j->scratch, rtts, rtts / 4) : INFINITY;
    for (size_t i = 0; i < j->n; i++)
        j->scratch[i] = j->pair[i].lost;
    j->usual_loss =
        j->n >= LOSS_PAIRS_LEAST ? mstx__select(j->scratch, j->n, (j->n - 1) / 2) : INFINITY;
    for (size_t i = 0; i < j->n; i++) {
        if (isfinite(j->pair[i].rate))
            j->scratch[rates++] = j->pair[i].rate;
    }
    j->usual_rate =
        rates >= PAIRS_LEAST ? mstx__select(j->scratch, rates, rates - 1 - rates / 4) : 0;
}

static void judge_pair(const struct judging *j, struct pair *p)
{
    p->is_busy = p->busy >= BUSY_LEAST;
    p->long_rtt = p->is_busy && isfinite(p->rtt_us) && p->rtt_us > RTT_RATIO * j->usual_rtt &&
                  p->rtt_us > j->usual_rtt + RTT_MORE_US;
    p->has_loss = p->is_busy && p->lost >= LOSS_LEAST && p->lost > LOSS_RATIO * j->usual_loss;
    p->low_rate = p->is_busy && isfinite(p->rate) && RATE_RATIO * p->rate < j->usual_rate;
    p->leans = p->is_busy && isfinite(p->rate) && LEAN_RATIO * p->rate < j->usual_rate;
}

static bool is_slow(const struct pair *p)
{
    return p->long_rtt || p->has_loss || p->low_rate;
}

/* Acquits pairs whose low rate comes from that of another pair: a rank that waits for a slow connection does not read
 * the others, which then seem slow too, but less so. */
static void acquit_held_pairs(struct judging *j, uint32_t ranks)
{
    for (uint32_t r = 0; r < ranks; r++)
        j->worst[r] = INFINITY;
    for (size_t i = 0; i < j->n; i++) {
        const struct pair *p = &j->pair[i];
        if (!p->low_rate)
            continue;
        j->worst[p->rank] = fmin(j->worst[p->rank], p->rate);
        j->worst[p->peer] = fmin(j->worst[p->peer], p->rate);
    }
    for (size_t i = 0; i < j->n; i++) {
        struct pair *p = &j->pair[i];
        const double most = HELD_RATIO * fmin(j->worst[p->rank], j->worst[p->peer]);
        p->low_rate = p->low_rate && p->rate <= most;
        p->leans = p->leans && isfinite(most) && p->rate <= most;
    }
}

static void judge_pairs(struct judging *j, uint32_t ranks)
{
    for (size_t i = 0; i < j->n; i++)
        judge_pair(j, &j->pair[i]);
    acquit_held_pairs(j, ranks);
    for (size_t i = 0; i < j->n; i++) {
        const struct pair *p = &j->pair[i];
        j->of_rank[p->rank] += p->is_busy;
        j->of_rank[p->peer] += p->is_busy;
        j->slow_of_rank[p->rank] += is_slow(p) || p->leans;
        j->slow_of_rank[p->peer] += is_slow(p) || p->leans;
    }
}

static bool is_own(const struct judging *j, uint32_t rank)
{
    return j->of_rank[rank] >= OWN_LEAST && j->slow_of_rank[rank] >= OWN_LEAST &&
           j->slow_of_rank[rank] >= OWN_SHARE * j->of_rank[rank];
}

/* Returns the rank whose own connection makes a pair slow, UINT32_MAX: none, or both. */
static uint32_t culprit_of(const struct judging *j, const struct pair *p)
{
    const bool first = is_own(j, p->rank), second = is_own(j, p->peer);
    return first == second ? UINT32_MAX : first ? p->rank : p->peer;
}

static struct mstx_slow_conn verdict_of(const struct judging *j, const struct pair *p)
{
    const struct mstx_slow_conn by_trip = {p->rank,   p->peer,      MSTX_SLOW_TRIP,
                                           p->rtt_us, j->usual_rtt, p->busy},
                                by_loss = {p->rank, p->peer,       MSTX_SLOW_LOSS,
                                           p->lost, j->usual_loss, p->busy},
                                by_rate = {p->rank, p->peer,       MSTX_SLOW_RATE,
                                           p->rate, j->usual_rate, p->busy};
    return p->long_rtt ? by_trip : p->has_loss ? by_loss : by_rate;
}

/* Appends the slow pairs; of a rank with a slow connection of its own only the busiest pair, as the rank. */
static bool add_slow(struct judging *j, mstx_slow_conns *to)
{
    for (size_t i = 0; i < j->n; i++) {
        const struct pair *p = &j->pair[i];
        if (!is_slow(p))
            continue;
        struct mstx_slow_conn s = verdict_of(j, p);
        const uint32_t rank = culprit_of(j, p);
        if (rank != UINT32_MAX) {
            s.rank = rank;
            s.peer = UINT32_MAX;
        }
        struct mstx_slow_conn *slot = ms_vec_push(to);
        if (slot == NULL)
            return false;
        *slot = s;
    }
    return true;
}

static int by_rank_then_busy(const void *pa, const void *pb)
{
    const struct mstx_slow_conn *a = pa, *b = pb;
    return MS_ORDER(a->rank, b->rank, MS_ORDER(a->peer, b->peer, MS_ORDER(b->busy, a->busy, 0)));
}

static int busiest_first(const void *pa, const void *pb)
{
    const struct mstx_slow_conn *a = pa, *b = pb;
    return MS_ORDER(b->busy, a->busy, by_rank_then_busy(pa, pb));
}

static void keep_busiest(mstx_slow_conns *v, size_t first)
{
    const size_t n = v->n;
    if (n - first > 1)
        qsort(v->p + first, n - first, sizeof *v->p, by_rank_then_busy);
    v->n = first;
    for (size_t i = first; i < n; i++) {
        if (v->n == first || v->p[v->n - 1].rank != v->p[i].rank ||
            v->p[v->n - 1].peer != v->p[i].peer)
            v->p[v->n++] = v->p[i];
    }
    if (v->n - first > 1)
        qsort(v->p + first, v->n - first, sizeof *v->p, busiest_first);
}

bool mstx__connections(struct mstx_conn_end *end, size_t n, uint32_t ranks, mstx_slow_conns *to)
{
    const size_t first = to->n;
    struct judging j = {.pair = ms_calloc(n + 1, sizeof *j.pair),
                        .worst = ms_calloc((size_t)ranks + 1, sizeof *j.worst),
                        .scratch = ms_calloc(n + 1, sizeof *j.scratch),
                        .of_rank = ms_calloc(2 * (size_t)ranks + 1, sizeof *j.of_rank)};
    bool ok = j.pair != NULL && j.scratch != NULL && j.worst != NULL && j.of_rank != NULL;
    if (ok) {
        j.slow_of_rank = j.of_rank + ranks;
        if (n > 1)
            qsort(end, n, sizeof *end, by_pair);
        join_ends(&j, end, n);
        ms_assert(j.n == 0 || j.pair[j.n - 1].peer < ranks);
        find_usual(&j);
        judge_pairs(&j, ranks);
        ok = add_slow(&j, to);
        keep_busiest(to, first);
    }
    ms_free(j.pair);
    ms_free(j.scratch);
    ms_free(j.worst);
    ms_free(j.of_rank);
    return ok;
}
