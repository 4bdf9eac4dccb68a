/* SPDX-License-Identifier: MIT
 *
 * Connections between ranks whose round trips and rates are given.
 */
#include "mstx/cluster/connections.h"

#include "probe/base/mem.h"
#include "tests/support/check.h"

#include <math.h>

enum { RANKS = 6, MS = 1000 };

static MS_VEC(struct mstx_conn_end) end;
static mstx_slow_conns slow;

/* Both ends of a connection; ms of round trip, MB/s, share of a job of 10 s in which it is busy. */
static void connect_ranks(uint32_t a, uint32_t b, double trip, double rate, double busy)
{
    for (int i = 0; i < 2; i++) {
        struct mstx_conn_end *e = ms_vec_push(&end);
        ck_assert_ptr_nonnull(e);
        *e = (struct mstx_conn_end){.rank = i == 0 ? a : b,
                                    .peer = i == 0 ? b : a,
                                    .min_rtt_us = trip * MS,
                                    .busy_us = busy * 1e7,
                                    .sent = rate * 1e6 * busy * 10,
                                    .span_us = 1e7};
    }
}

/* All pairs of ranks; those of `rank` (with `peer`, or with all: RANKS) have other values. */
static void connect_all(uint32_t rank, uint32_t peer, double trip, double rate, double busy)
{
    end.n = slow.n = 0;
    for (uint32_t a = 0; a < RANKS; a++) {
        for (uint32_t b = a + 1; b < RANKS; b++) {
            const bool is_other = (a == rank && (b == peer || peer == RANKS)) ||
                                  (b == rank && (a == peer || peer == RANKS));
            connect_ranks(a, b, is_other ? trip : 0.5, is_other ? rate : 100,
                          is_other ? busy : 0.2);
        }
    }
    ck_assert(mstx__connections(end.p, end.n, RANKS, &slow));
}

static void clear(void)
{
    ms_vec_free(&end);
    ms_vec_free(&slow);
}

START_TEST(equal_connections_are_not_accused)
{
    connect_all(0, RANKS, 0.5, 100, 0.2);
    ck_assert_uint_eq(slow.n, 0);
    connect_all(2, 3, 1.4, 40, 0.9); /* less than 1 ms more, and less than three times slower */
    ck_assert_uint_eq(slow.n, 0);
    clear();
}
END_TEST

START_TEST(a_long_round_trip_is_named_with_both_ranks)
{
    connect_all(4, 1, 8, 100, 0.5);
    ck_assert_uint_eq(slow.n, 1);
    ck_assert_uint_eq(slow.p[0].rank, 1);
    ck_assert_uint_eq(slow.p[0].peer, 4);
    ck_assert_int_eq(slow.p[0].by, MSTX_SLOW_TRIP);
    ck_assert_double_eq_tol(slow.p[0].value, 8 * MS, 1e-6);
    ck_assert_double_eq_tol(slow.p[0].usual, 0.5 * MS, 1e-6);
    ck_assert_double_eq_tol(slow.p[0].busy, 0.5, 1e-9);
    clear();
}
END_TEST

START_TEST(a_low_rate_is_named)
{
    connect_all(0, 5, 0.5, 10, 0.5);
    ck_assert_uint_eq(slow.n, 1);
    ck_assert_int_eq(slow.p[0].by, MSTX_SLOW_RATE);
    ck_assert_double_eq_tol(slow.p[0].value, 10e6, 1);
    ck_assert_double_eq_tol(slow.p[0].usual, 100e6, 1);
    clear();
}
END_TEST

/* Sets the packets that both ends of a pair send again, as a part of all. */
static void lose(uint32_t a, uint32_t b, double part)
{
    for (size_t i = 0; i < end.n; i++) {
        struct mstx_conn_end *e = &end.p[i];
        if ((e->rank == a && e->peer == b) || (e->rank == b && e->peer == a))
            e->retransmitted = part * e->sent / 1448;
    }
}

START_TEST(a_lossy_connection_is_named)
{
    connect_all(0, RANKS, 0.5, 100, 0.2);
    lose(1, 3, 0.06);
    lose(2, 4, 0.049);
    ck_assert(mstx__connections(end.p, end.n, RANKS, &slow));
    ck_assert_uint_eq(slow.n, 1);
    ck_assert_uint_eq(slow.p[0].rank, 1);
    ck_assert_uint_eq(slow.p[0].peer, 3);
    ck_assert_int_eq(slow.p[0].by, MSTX_SLOW_LOSS);
    ck_assert_double_eq_tol(slow.p[0].value, 0.06, 1e-9);
    ck_assert_double_eq_tol(slow.p[0].usual, 0, 1e-9);
    clear();
}
END_TEST

START_TEST(a_loss_is_one_beside_a_single_connection)
{
    end.n = slow.n = 0;
    connect_ranks(0, 1, 0.5, 100, 0.5);
    connect_ranks(1, 2, 0.5, 100, 0.5);
    lose(0, 1, 0.1);
    ck_assert(mstx__connections(end.p, end.n, 3, &slow));
    ck_assert_uint_eq(slow.n, 1);
    ck_assert_int_eq(slow.p[0].by, MSTX_SLOW_LOSS);
    clear();
}
END_TEST

START_TEST(losses_of_all_are_nobodys)
{
    connect_all(0, RANKS, 0.5, 100, 0.2);
    for (uint32_t a = 0; a < RANKS; a++) {
        for (uint32_t b = a + 1; b < RANKS; b++)
            lose(a, b, a == 1 && b == 3 ? 0.06 : 0.02);
    }
    ck_assert(mstx__connections(end.p, end.n, RANKS, &slow));
    ck_assert_uint_eq(slow.n, 0);
    clear();
}
END_TEST

/* Rank 2 waits for its connection to rank 1, and does not read what rank 3 sends. */
START_TEST(connections_behind_a_slow_one_are_not_named)
{
    end.n = slow.n = 0;
    for (uint32_t a = 0; a < RANKS; a++)
        connect_ranks(a, (a + 1) % RANKS, 0.5, a == 1 ? 10 : a == 2 ? 30 : 100, 0.5);
    ck_assert(mstx__connections(end.p, end.n, RANKS, &slow));
    ck_assert_uint_eq(slow.n, 1);
    ck_assert_uint_eq(slow.p[0].rank, 1);
    ck_assert_uint_eq(slow.p[0].peer, 2);
    clear();
}
END_TEST

START_TEST(a_long_round_trip_beside_half_a_rate_is_that_of_a_link)
{
    end.n = slow.n = 0;
    connect_ranks(0, 1, 7, 45, 0.5);
    connect_ranks(1, 2, 0.5, 49, 0.5);
    connect_ranks(2, 0, 0.5, 100, 0.5);
    ck_assert(mstx__connections(end.p, end.n, 3, &slow));
    ck_assert_uint_eq(slow.n, 1);
    ck_assert_uint_eq(slow.p[0].rank, 0);
    ck_assert_uint_eq(slow.p[0].peer, 1);
    clear();
}
END_TEST

START_TEST(a_rank_whose_rates_are_about_low_is_named)
{
    end.n = slow.n = 0;
    for (uint32_t a = 0; a < RANKS; a++) {
        for (uint32_t b = a + 1; b < RANKS; b++)
            connect_ranks(a, b, 0.5, b == 3 ? 32 + a : a == 3 ? 36 : 100, 0.5);
    }
    ck_assert(mstx__connections(end.p, end.n, RANKS, &slow));
    ck_assert_uint_eq(slow.n, 1);
    ck_assert_uint_eq(slow.p[0].rank, 3);
    ck_assert_uint_eq(slow.p[0].peer, UINT32_MAX);
    clear();
}
END_TEST

/* A ring of which all other pairs met once, at the end. */
START_TEST(idle_connections_of_a_rank_do_not_count)
{
    end.n = slow.n = 0;
    for (uint32_t a = 0; a < RANKS; a++) {
        for (uint32_t b = a + 1; b < RANKS; b++) {
            const bool is_ring = b == a + 1 || (a == 0 && b == RANKS - 1);
            connect_ranks(a, b, a == 3 || b == 3 ? 8 : 0.5, 100, is_ring ? 0.3 : 0.01);
        }
    }
    ck_assert(mstx__connections(end.p, end.n, RANKS, &slow));
    ck_assert_uint_eq(slow.n, 1);
    ck_assert_uint_eq(slow.p[0].rank, 3);
    ck_assert_uint_eq(slow.p[0].peer, UINT32_MAX);
    clear();
}
END_TEST

START_TEST(all_connections_of_a_rank_are_its_own)
{
    connect_all(3, RANKS, 8, 100, 0.5);
    ck_assert_uint_eq(slow.n, 1);
    ck_assert_uint_eq(slow.p[0].rank, 3);
    ck_assert_uint_eq(slow.p[0].peer, UINT32_MAX);
    clear();
}
END_TEST

START_TEST(an_idle_connection_costs_nothing)
{
    connect_all(4, 1, 8, 100, 0.04);
    ck_assert_uint_eq(slow.n, 0);
    clear();
}
END_TEST

START_TEST(two_connections_tell_nothing)
{
    end.n = slow.n = 0;
    connect_ranks(0, 1, 0.5, 100, 0.5);
    connect_ranks(1, 2, 50, 1, 0.5);
    ck_assert(mstx__connections(end.p, end.n, 3, &slow));
    ck_assert_uint_eq(slow.n, 0);
    clear();
}
END_TEST

START_TEST(a_trip_of_a_microsecond_is_one)
{
    end.n = slow.n = 0;
    for (uint32_t a = 0; a + 1 < RANKS; a++)
        connect_ranks(a, a + 1, a == 2 ? 8 : 0.001, 100, 0.5);
    ck_assert(mstx__connections(end.p, end.n, RANKS, &slow));
    ck_assert_uint_eq(slow.n, 1);
    ck_assert_uint_eq(slow.p[0].rank, 2);
    ck_assert_double_eq_tol(slow.p[0].usual, 0.001 * MS, 1e-9);
    clear();
}
END_TEST

START_TEST(memory_that_runs_out_is_told)
{
    connect_all(3, RANKS, 8, 100, 0.5);
    for (uint64_t n = 1; n != UINT64_MAX; n++) {
        mstx_slow_conns v = {0};
        ms_mem_fail_at(n);
        const bool ok = mstx__connections(end.p, end.n, RANKS, &v);
        const bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        ck_assert(ok != failed);
        ms_vec_free(&v);
        n = failed ? n : UINT64_MAX - 1;
    }
    clear();
}
END_TEST

/* ---- drawn connections ------------------------------------------------------------------------------ */

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

/* Values at the limits: round trips of 1.5 ms beside 0.5 ms, 5 % busy, a quarter of a mebibyte. */
static void draw_end(uint32_t rank, uint32_t peer)
{
    static const double trips[] = {0, 0.4, 0.5, 0.5, 0.5, 1.5, 1.6, 4, 9},
                        rates[] = {1, 30, 33, 34, 100, 100, 100, 100},
                        losses[] = {0, 0, 0, 0.016, 0.0167, 0.049, 0.0501, 0.16},
                        shares[] = {0, 0.04, 0.05, 0.2, 0.2, 0.7, 1.3};
    struct mstx_conn_end *e = ms_vec_push(&end);
    *e = (struct mstx_conn_end){.rank = rank,
                                .peer = peer,
                                .min_rtt_us = trips[below(9)] * MS,
                                .span_us = below(9) != 0 ? 1e7 : 0};
    e->busy_us = shares[below(7)] * 1e7;
    e->sent = below(4) == 0 ? (1 << 18) - below(2) : rates[below(8)] * e->busy_us;
    e->retransmitted = losses[below(8)] * e->sent / 1448;
}

struct pair_again {
    double rtt, rate, lost, busy;
    bool is, slow;
    enum mstx_slow_by by;
};

static int by_number(const void *pa, const void *pb)
{
    const double *a = pa, *b = pb;
    return *a < *b ? -1 : *a > *b;
}

static struct pair_again pairs[RANKS][RANKS];

static void join_again(void)
{
    memset(pairs, 0, sizeof pairs);
    for (size_t i = 0; i < end.n; i++) {
        const struct mstx_conn_end *e = &end.p[i];
        struct pair_again *p =
            e->rank < e->peer ? &pairs[e->rank][e->peer] : &pairs[e->peer][e->rank];
        if (e->rank == e->peer)
            continue;
        if (!p->is)
            *p = (struct pair_again){.rtt = HUGE_VAL, .rate = HUGE_VAL, .is = true};
        if (e->min_rtt_us > 0 && e->min_rtt_us < p->rtt)
            p->rtt = e->min_rtt_us;
        if (e->sent >= 1 << 18 && e->busy_us > 0 && e->sent / e->busy_us * 1e6 < p->rate)
            p->rate = e->sent / e->busy_us * 1e6;
        if (e->sent >= 1 << 18)
            p->lost = fmax(p->lost, e->retransmitted * 1448 / e->sent);
        if (e->span_us > 0)
            p->busy = fmax(p->busy, fmin(1, e->busy_us / e->span_us));
    }
}

static double usual[3]; /* by enum mstx_slow_by */

static void usual_again(void)
{
    double trips[RANKS * RANKS], rates[RANKS * RANKS], losses[RANKS * RANKS];
    size_t n = 0, r = 0;
    for (uint32_t a = 0; a < RANKS; a++) {
        for (uint32_t b = a + 1; b < RANKS; b++) {
            if (pairs[a][b].is) {
                losses[n] = pairs[a][b].lost;
                trips[n++] = pairs[a][b].rtt;
            }
            if (pairs[a][b].is && isfinite(pairs[a][b].rate))
                rates[r++] = pairs[a][b].rate;
        }
    }
    qsort(trips, n, sizeof *trips, by_number);
    qsort(rates, r, sizeof *rates, by_number);
    qsort(losses, n, sizeof *losses, by_number);
    usual[MSTX_SLOW_TRIP] = n >= 3 ? trips[n / 4] : HUGE_VAL;
    usual[MSTX_SLOW_LOSS] = n >= 2 ? losses[(n - 1) / 2] : HUGE_VAL;
    usual[MSTX_SLOW_RATE] = r >= 3 ? rates[r - 1 - r / 4] : 0;
}

static bool shares_rank(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return a == c || a == d || b == c || b == d;
}

/* Whether the rate of a pair is below a part of the usual one, and at most half more than that of each pair with less
 * than a third of it with which it shares a rank. */
static bool is_below(uint32_t a, uint32_t b, double times)
{
    bool beside = false;
    const struct pair_again *p = &pairs[a][b];
    bool low = p->is && p->busy >= 0.05 && times * p->rate < usual[MSTX_SLOW_RATE];
    for (uint32_t c = 0; c < RANKS; c++) {
        for (uint32_t d = c + 1; d < RANKS; d++) {
            const struct pair_again *q = &pairs[c][d];
            beside |= q->is && shares_rank(a, b, c, d) && q->busy >= 0.05 &&
                      3 * q->rate < usual[MSTX_SLOW_RATE];
            low &= !(q->is && shares_rank(a, b, c, d) && q->busy >= 0.05 &&
                     3 * q->rate < usual[MSTX_SLOW_RATE] && p->rate > 1.5 * q->rate);
        }
    }
    return low && beside;
}

/* Whether most busy connections of a rank are slow, and at least two. */
static bool owns(uint32_t rank)
{
    unsigned all = 0, bad = 0;
    for (uint32_t other = 0; other < RANKS; other++) {
        const struct pair_again *p = rank < other ? &pairs[rank][other] : &pairs[other][rank];
        all += p->is && p->busy >= 0.05;
        bad += p->is &&
               (p->slow || (rank < other ? is_below(rank, other, 2) : is_below(other, rank, 2)));
    }
    return all >= 2 && bad >= 2 && bad >= 0.75 * all;
}

/* The verdict of a pair is in the list, or one of the same rank that was busier. */
static void check_slow(uint32_t a, uint32_t b)
{
    const struct pair_again *p = &pairs[a][b];
    const double value = p->by == MSTX_SLOW_RATE   ? p->rate
                         : p->by == MSTX_SLOW_LOSS ? p->lost
                                                   : p->rtt;
    const bool both = owns(a) == owns(b);
    const uint32_t rank = both || owns(a) ? a : b, peer = both ? b : UINT32_MAX;
    bool found = false;
    for (size_t i = 0; i < slow.n; i++) {
        const struct mstx_slow_conn *s = &slow.p[i];
        if (s->rank != rank || s->peer != peer)
            continue;
        found = true;
        ck_assert(peer == UINT32_MAX ? s->busy >= p->busy : s->busy == p->busy);
        ck_assert(s->usual == usual[s->by]);
        if (peer != UINT32_MAX)
            ck_assert(s->by == p->by && s->value == value);
    }
    ck_assert_msg(found, "%u and %u", a, b);
}

static void check_order(void)
{
    for (size_t i = 1; i < slow.n; i++) {
        const struct mstx_slow_conn *a = &slow.p[i - 1], *b = &slow.p[i];
        ck_assert(a->busy > b->busy ||
                  (a->busy == b->busy &&
                   (a->rank < b->rank || (a->rank == b->rank && a->peer < b->peer))));
    }
}

START_TEST(slow_ones_are_those_of_a_second_count)
{
    size_t named = 0;
    for (unsigned seed = 0; seed < 3000; seed++) {
        size_t ranks = 0, alone = 0;
        bool by_rank[RANKS] = {0};
        state = seed;
        end.n = slow.n = 0;
        const uint32_t bad = below(RANKS + 3), density = 1 + below(6);
        for (uint32_t a = 0; a < RANKS; a++) {
            for (uint32_t b = 0; b < RANKS; b++) {
                if (below(6) < density)
                    draw_end(a, b);
                if (end.n != 0 && (a == bad || b == bad) && below(4) != 0)
                    end.p[end.n - 1].min_rtt_us = 20 * MS;
            }
        }
        join_again();
        ck_assert(mstx__connections(end.p, end.n, RANKS, &slow));
        usual_again();
        for (uint32_t a = 0; a < RANKS; a++) {
            for (uint32_t b = a + 1; b < RANKS; b++) {
                struct pair_again *p = &pairs[a][b];
                const double rtt = usual[MSTX_SLOW_TRIP];
                const bool is_long = isfinite(p->rtt) && p->rtt > 3 * rtt && p->rtt > rtt + MS,
                           loses = p->lost >= 0.05 && p->lost > 3 * usual[MSTX_SLOW_LOSS];
                p->slow = p->is && p->busy >= 0.05 && (is_long || loses || is_below(a, b, 3));
                p->by = is_long ? MSTX_SLOW_TRIP : loses ? MSTX_SLOW_LOSS : MSTX_SLOW_RATE;
            }
        }
        for (uint32_t a = 0; a < RANKS; a++) {
            for (uint32_t b = a + 1; b < RANKS; b++) {
                if (!pairs[a][b].slow)
                    continue;
                check_slow(a, b);
                if (owns(a) == owns(b))
                    alone++;
                else
                    by_rank[owns(a) ? a : b] = true;
            }
        }
        for (uint32_t r = 0; r < RANKS; r++)
            ranks += by_rank[r];
        ck_assert_uint_eq(slow.n, alone + ranks);
        check_order();
        named += ranks;
    }
    ck_assert_uint_gt(named, 100);
    clear();
}
END_TEST

TEST_MAIN("connections", equal_connections_are_not_accused,
          a_long_round_trip_is_named_with_both_ranks, a_low_rate_is_named,
          a_lossy_connection_is_named, a_loss_is_one_beside_a_single_connection,
          losses_of_all_are_nobodys, connections_behind_a_slow_one_are_not_named,
          a_rank_whose_rates_are_about_low_is_named,
          a_long_round_trip_beside_half_a_rate_is_that_of_a_link,
          idle_connections_of_a_rank_do_not_count, all_connections_of_a_rank_are_its_own,
          an_idle_connection_costs_nothing, two_connections_tell_nothing,
          a_trip_of_a_microsecond_is_one, memory_that_runs_out_is_told,
          slow_ones_are_those_of_a_second_count)
