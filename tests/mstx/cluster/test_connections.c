/* SPDX-License-Identifier: MIT
 *
 * Connections between ranks whose round trips and rates are given.
 */
#include "mstx/cluster/connections.h"

#include "probe/base/mem.h"
#include "tests/support/check.h"

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
    ck_assert(!slow.p[0].by_rate);
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
    ck_assert(slow.p[0].by_rate);
    ck_assert_double_eq_tol(slow.p[0].value, 10e6, 1);
    ck_assert_double_eq_tol(slow.p[0].usual, 100e6, 1);
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

TEST_MAIN("connections", equal_connections_are_not_accused,
          a_long_round_trip_is_named_with_both_ranks, a_low_rate_is_named,
          all_connections_of_a_rank_are_its_own, an_idle_connection_costs_nothing,
          two_connections_tell_nothing, memory_that_runs_out_is_told)
