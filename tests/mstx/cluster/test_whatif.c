/* SPDX-License-Identifier: MIT
 *
 * Dependency graphs whose answers are worked out by hand.
 */
#include "mstx/cluster/whatif.h"

#include "probe/base/mem.h"
#include "tests/support/check.h"

static struct mstx_ops ops;
static struct mstx_whatif w;

/* An operation in microseconds. */
static void add(const char *type, int32_t rank, int64_t start, int64_t end, uint32_t meet)
{
    const struct mstx_op op = {.start_ns = start * 1000,
                               .end_ns = end * 1000,
                               .rank = mstx__ops_rank(&ops, rank, rank, 0, 0),
                               .meet = meet,
                               .type = mstx__ops_type(&ops, ms_str_of(type))};
    mstx__ops_add(&ops, &op);
}

static void begin(void)
{
    ops = (struct mstx_ops){0};
    w = (struct mstx_whatif){0};
}

static void end(void)
{
    mstx__whatif_free(&w);
    mstx__ops_free(&ops);
}

static double share_of(enum mstx_share_kind kind, uint32_t class)
{
    mstx_shares v = {0};
    double found = -1;
    ck_assert(mstx__whatif_shares(&w, kind, &v));
    for (size_t i = 0; i < v.n; i++)
        found = v.p[i].class == class ? v.p[i].slowdown : found;
    ms_vec_free(&v);
    return found;
}

/* Rank 0 computes 10, rank 1 computes 30, rank 2 computes 20; then a collective of 4 in which two of
 * them wait for rank 1, then 6 each.  Recorded: 40.  Ideal: 20 + 4 + 6 = 30. */
static void three_ranks(void)
{
    mstx__ops_begin_step(&ops, 7, 0);
    add("work", 0, 0, 10, MSTX_NO_MEET);
    add("all", 0, 10, 34, 1);
    add("tail", 0, 34, 40, MSTX_NO_MEET);
    add("work", 1, 0, 30, MSTX_NO_MEET);
    add("all", 1, 30, 34, 1);
    add("tail", 1, 34, 40, MSTX_NO_MEET);
    add("work", 2, 0, 20, MSTX_NO_MEET);
    add("all", 2, 20, 34, 1);
    add("tail", 2, 34, 40, MSTX_NO_MEET);
    mstx__ops_ready(&ops);
}

START_TEST(one_slow_rank_holds_up_a_collective)
{
    begin();
    three_ranks();
    ck_assert(mstx__whatif_new(&w, &ops, MSTX_GRAPH_GENERIC, true));
    ck_assert_double_eq_tol(w.replay_ns, 40000, 1e-6);
    ck_assert_double_eq_tol(w.mean_ideal_ns, 30000, 1e-6);
    ck_assert_double_eq_tol(w.slowdown, 4.0 / 3, 1e-12);
    ck_assert_double_eq_tol(w.model_error, 0, 1e-12);
    ck_assert_double_eq_tol(share_of(MSTX_BY_RANK, 1), 40.0 / 30, 1e-12);
    ck_assert_double_eq_tol(share_of(MSTX_BY_RANK, 0), 1, 1e-12);
    ck_assert_double_eq_tol(share_of(MSTX_BY_OP, mstx__ops_type(&ops, MS_STR("all"))), 1, 1e-12);
    end();
}
END_TEST

/* Without rank 1 its work takes the median of the others, 15: then rank 2 is the last. */
START_TEST(without_a_rank_its_peers_set_the_time)
{
    begin();
    three_ranks();
    ck_assert(mstx__whatif_new(&w, &ops, MSTX_GRAPH_GENERIC, true));
    bool marked[9];
    double weight[9];
    for (int i = 0; i < 9; i++) {
        marked[i] = ops.op.p[i].rank == 1;
        weight[i] = w.recorded[i];
    }
    ck_assert(mstx__whatif_heal(&w, marked, weight));
    ck_assert_double_eq_tol(mstx__whatif_mean(&w, weight), 30000, 1e-6);
    end();
}
END_TEST

/* The path runs over rank 1: its work, its share of the collective, the tail of somebody. */
START_TEST(the_critical_path_names_who_is_last)
{
    begin();
    three_ranks();
    ck_assert(mstx__whatif_new(&w, &ops, MSTX_GRAPH_GENERIC, true));
    double by_rank[3];
    ck_assert(mstx__whatif_critical(&w, by_rank));
    ck_assert_double_eq_tol(by_rank[0] + by_rank[1] + by_rank[2], 40000, 1e-6);
    ck_assert_double_ge(by_rank[1], 30000);
    end();
}
END_TEST

/* The clock of rank 1 is 1,000 ahead: the latest start says nothing, the shortest duration does. */
START_TEST(clocks_that_are_not_joined_use_the_shortest_duration)
{
    begin();
    mstx__ops_begin_step(&ops, 0, 0);
    add("work", 0, 0, 10, MSTX_NO_MEET);
    add("all", 0, 10, 34, 1);
    add("work", 1, 1000, 1030, MSTX_NO_MEET);
    add("all", 1, 1030, 1034, 1);
    mstx__ops_ready(&ops);
    double weight[4];
    ck_assert(mstx__ops_weights(&ops, false, weight));
    ck_assert_double_eq(weight[1], 4000);
    ck_assert_double_eq(weight[3], 4000);
    ops.has_layout = false;
    end();
}
END_TEST

/* Two stages: the second one waits for what the first one sends, recorded twice on the wire. */
START_TEST(a_receive_waits_for_its_send)
{
    begin();
    mstx__ops_begin_step(&ops, 0, 0);
    for (int32_t stage = 0; stage < 2; stage++)
        mstx__ops_rank(&ops, stage, 0, stage, 0);
    add("forward-compute", 0, 0, 10, MSTX_NO_MEET);
    add("forward-send", 0, 10, 12, MSTX_NO_MEET);
    add("backward-recv", 0, 12, 44, MSTX_NO_MEET);
    add("backward-compute", 0, 44, 64, MSTX_NO_MEET);
    add("forward-recv", 1, 0, 12, MSTX_NO_MEET);
    add("forward-compute", 1, 12, 22, MSTX_NO_MEET);
    add("backward-compute", 1, 22, 42, MSTX_NO_MEET);
    add("backward-send", 1, 42, 44, MSTX_NO_MEET);
    mstx__ops_ready(&ops);
    mstx__ops_find_meets(&ops);
    ck_assert(mstx__ops_are_staged(&ops));
    for (int kind = MSTX_GRAPH_GENERIC; kind <= MSTX_GRAPH_STAGED; kind++) {
        ck_assert(mstx__whatif_new(&w, &ops, (enum mstx_graph_kind)kind, true));
        ck_assert_uint_eq(w.left_out, 0);
        ck_assert_double_eq_tol(w.replay_ns, 64000, 1e-6);
        ck_assert_double_eq_tol(w.slowdown, 1, 1e-9);
        int32_t src, dst;
        mstx__whatif_link(&w, 1, &src, &dst);
        ck_assert_int_eq(src, 0);
        ck_assert_int_eq(dst, 1);
        ck_assert_double_eq_tol(share_of(MSTX_BY_LINK, 1), 1, 1e-9);
        mstx__whatif_free(&w);
    }
    mstx__ops_free(&ops);
}
END_TEST

/* Two ranks whose collectives are recorded in opposite order can never run: nothing hangs. */
START_TEST(operations_in_a_circle_are_left_out_and_counted)
{
    begin();
    mstx__ops_begin_step(&ops, 0, 0);
    add("a", 0, 0, 10, 0);
    add("b", 0, 10, 20, 1);
    add("b", 1, 0, 10, 1);
    add("a", 1, 10, 20, 0);
    mstx__ops_ready(&ops);
    struct mstx_deps d;
    ck_assert_uint_eq(mstx__op_graph(&ops, MSTX_GRAPH_GENERIC, &d), 4);
    ck_assert_uint_eq(mstx__deps_count(&d), 0);
    mstx__deps_free(&d);
    end();
}
END_TEST

/* Operations may come in any order, also in the opposite one. */
START_TEST(operations_are_sorted_by_rank_and_time)
{
    static const int orders[][6] = {{0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}, {3, 5, 4, 0, 2, 1}};
    for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) {
        begin();
        mstx__ops_rank(&ops, 0, 0, 0, 0);
        mstx__ops_rank(&ops, 1, 1, 0, 0);
        mstx__ops_begin_step(&ops, 0, 0);
        for (size_t i = 0; i < 6; i++)
            add("work", orders[k][i] / 3, orders[k][i] % 3 * 10, orders[k][i] % 3 * 10 + 5,
                MSTX_NO_MEET);
        mstx__ops_ready(&ops);
        ck_assert_uint_eq(ops.op.n, 6);
        for (uint32_t i = 0; i < 6; i++) {
            const struct mstx_op *op = &ops.op.p[i];
            ck_assert(op->rank == i / 3 && op->start_ns == i % 3 * 10000 && op->seq == i % 3);
        }
        end();
    }
}
END_TEST

START_TEST(memory_that_runs_out_is_told)
{
    for (uint64_t n = 1; n != UINT64_MAX; n++) {
        begin();
        ms_mem_fail_at(n);
        three_ranks();
        const bool ok = !ops.no_memory && mstx__whatif_new(&w, &ops, MSTX_GRAPH_GENERIC, true);
        const bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        ck_assert(ok || failed); /* what is not trimmed does not matter */
        if (!failed)             /* every allocation has failed once */
            n = UINT64_MAX - 1;
        if (!ok)
            w = (struct mstx_whatif){0};
        end();
    }
}
END_TEST

TEST_MAIN("whatif", one_slow_rank_holds_up_a_collective, without_a_rank_its_peers_set_the_time,
          the_critical_path_names_who_is_last, clocks_that_are_not_joined_use_the_shortest_duration,
          a_receive_waits_for_its_send, operations_in_a_circle_are_left_out_and_counted,
          operations_are_sorted_by_rank_and_time, memory_that_runs_out_is_told)
