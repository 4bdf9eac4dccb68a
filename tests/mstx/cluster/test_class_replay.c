/* SPDX-License-Identifier: MIT
 *
 * Scenarios of many classes in one pass against a whole replay of each: the same times, to the last
 * bit, on drawn jobs of the shapes that trainings have.
 */
#include "mstx/cluster/class_replay.h"

#include "probe/base/mem.h"
#include "tests/support/check.h"

#include <string.h>

enum { RANKS = 192, NODES = 1 << 16 };

static struct mstx_deps deps;
static uint32_t last[RANKS]; /* the last node of each rank */
static double base[NODES], other[NODES], t[NODES * MSTX_LANES];
static uint32_t class_of[NODES], ops;
static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 32) * n >> 32);
}

/* How durations are drawn: base is the same on all ranks, or drawn for each; other is never less. */
static bool is_even, is_slower;

static uint32_t op_node(uint32_t rank, double even)
{
    base[ops] = is_even ? even : 100 + below(4000) / 4.0;
    other[ops] =
        is_slower ? base[ops] + (below(4) == 0 ? below(9000) / 4.0 : 0) : below(8000) / 4.0;
    class_of[ops] = rank;
    return mstx__deps_node(&deps, ops++);
}

static void work(uint32_t rank)
{
    const uint32_t v = op_node(rank, 700);
    if (last[rank] != MSTX_NO_OP)
        mstx__deps_after(&deps, last[rank]);
    last[rank] = v;
}

/* The ranks first, first + apart, ... begin together. */
static void collective(uint32_t first, uint32_t apart, uint32_t n)
{
    const uint32_t gate = mstx__deps_node(&deps, MSTX_NO_OP);
    for (uint32_t i = 0; i < n; i++) {
        if (last[first + i * apart] != MSTX_NO_OP)
            mstx__deps_after(&deps, last[first + i * apart]);
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t v = op_node(first + i * apart, 50);
        mstx__deps_after(&deps, gate);
        last[first + i * apart] = v;
    }
}

/* The receiver waits for its own work and for the node of the sender, without a gate. */
static void receive(uint32_t sent, uint32_t to)
{
    const uint32_t v = op_node(to, 10);
    if (last[to] != MSTX_NO_OP)
        mstx__deps_after(&deps, last[to]);
    if (sent != MSTX_NO_OP && sent != last[to])
        mstx__deps_after(&deps, sent);
    last[to] = v;
}

static void begin(uint64_t seed)
{
    state = seed * 977 + 5;
    deps = (struct mstx_deps){0};
    ops = 0;
    memset(last, 0xFF, sizeof last);
    mstx__deps_begin_step(&deps);
}

/* ---- shapes of jobs ---- */

/* Data parallel: all ranks work and meet. */
static void data_parallel(void)
{
    for (int layer = 0; layer < 6; layer++) {
        for (uint32_t r = 0; r < RANKS; r++)
            work(r);
        collective(0, 1, RANKS);
    }
}

/* Groups of eight meet often, and ranks of one number in all groups at the end. */
static void tensor_parallel(void)
{
    collective(0, 1, RANKS);
    for (int layer = 0; layer < 4; layer++) {
        for (uint32_t r = 0; r < RANKS; r++)
            work(r);
        for (uint32_t g = 0; g < RANKS; g += 8)
            collective(g, 1, 8);
    }
    for (uint32_t k = 0; k < 8; k++)
        collective(k, 8, RANKS / 8);
    collective(0, 1, RANKS);
}

/* Chains of four stages; the ranks of a stage meet before and after. */
static void pipeline(void)
{
    for (uint32_t stage = 0; stage < 4; stage++)
        collective(stage, 4, RANKS / 4);
    for (int batch = 0; batch < 3; batch++) {
        for (uint32_t stage = 0; stage < 4; stage++) {
            for (uint32_t r = stage; r < RANKS; r += 4) {
                work(r);
                if (stage < 3)
                    collective(r, 1, 2);
            }
        }
    }
    for (uint32_t stage = 0; stage < 4; stage++)
        collective(stage, 4, RANKS / 4);
    collective(0, 1, RANKS);
    for (uint32_t r = 0; r < RANKS; r++)
        work(r);
}

/* Neighbours of a ring wait for each other, then all meet. */
static void ring(void)
{
    for (int step = 0; step < 4; step++) {
        for (uint32_t r = 0; r < RANKS; r++)
            work(r);
        uint32_t sent[RANKS];
        memcpy(sent, last, sizeof sent);
        for (uint32_t r = 0; r < RANKS; r++)
            receive(sent[r], (r + 1) % RANKS);
        collective(0, 1, RANKS);
    }
}

/* Anything, in any order, also ranks that never do anything and ends that nobody waits for. */
static void anything(void)
{
    for (int event = 0; event < 60; event++) {
        const uint32_t kind = below(10), r = below(RANKS);
        if (kind == 0)
            collective(0, 1, RANKS - below(20));
        else if (kind == 1)
            collective(r % 5, 5, 30);
        else if (kind < 5)
            receive(last[r], below(RANKS));
        else
            work(r);
    }
}

/* Each neighbour of each rank, over and over: every rank's delays are others. */
static void tangle(void)
{
    for (int step = 0; step < 40; step++) {
        for (uint32_t r = 0; r < RANKS; r++)
            work(r);
        for (uint32_t r = 0; r < RANKS; r++)
            receive(last[below(RANKS)], r);
    }
}

/* ---- the check ---- */

static void replay_each(uint32_t classes, double *sum)
{
    struct mstx_scenarios x = {base, other, class_of, 0, NULL, false, NULL};
    for (; x.first < classes; x.first += MSTX_LANES) {
        double end[MSTX_LANES];
        mstx__deps_replay(&deps, 0, mstx__deps_count(&deps), &x, t, end);
        for (uint32_t k = 0; k < MSTX_LANES && x.first + k < classes; k++)
            sum[x.first + k] += end[k];
    }
}

/* Returns whether one pass was cheap enough; its times are then those of whole replays. */
static bool compare_once(uint32_t classes)
{
    const struct mstx_scenarios x = {base, other, class_of, 0, NULL, false, NULL};
    const size_t n = mstx__deps_count(&deps);
    double sum[RANKS], want[RANKS];
    ck_assert(!deps.no_memory && n <= NODES);
    for (uint32_t k = 0; k < RANKS; k++)
        sum[k] = want[k] = 1e6;
    struct mstx_class_replay *r = mstx__class_replay_new(&deps, n);
    ck_assert_ptr_nonnull(r);
    const bool is_cheap = mstx__class_replay(r, 0, n, &x, classes, sum);
    if (is_cheap)
        replay_each(classes, want);
    for (uint32_t k = 0; k < RANKS; k++)
        ck_assert_double_eq(sum[k], want[k]);
    mstx__class_replay_free(r);
    mstx__deps_free(&deps);
    return is_cheap;
}

static int count_cheap(void (*shape)(void), uint64_t seeds)
{
    int cheap = 0;
    for (uint64_t seed = 0; seed < seeds; seed++) {
        is_even = seed % 2 != 0;
        is_slower = seed / 2 % 2 != 0;
        begin(seed);
        shape();
        mstx__deps_begin_step(&deps);
        cheap += compare_once(RANKS);
    }
    return cheap;
}

START_TEST(jobs_of_usual_shapes_are_replayed_in_one_pass)
{
    ck_assert_int_eq(count_cheap(data_parallel, 20), 20);
    ck_assert_int_eq(count_cheap(tensor_parallel, 20), 20);
    ck_assert_int_ge(count_cheap(pipeline, 20), 10); /* those with even durations */
    ck_assert_int_eq(count_cheap(ring, 20), 20);
    ck_assert_int_ge(count_cheap(anything, 100), 50);
}
END_TEST

START_TEST(a_job_whose_delays_differ_everywhere_is_left_to_whole_replays)
{
    ck_assert_int_eq(count_cheap(tangle, 4), 0);
}
END_TEST

/* A class of several ranks, and ranks without a class. */
START_TEST(ranks_share_a_class_or_have_none)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        is_even = seed % 2 != 0;
        begin(seed);
        if (seed % 3 == 0)
            data_parallel();
        else if (seed % 3 == 1)
            pipeline();
        else
            anything();
        for (uint32_t i = 0; i < ops; i++)
            class_of[i] = below(9) == 0 ? UINT32_MAX : class_of[i] / 3;
        compare_once(RANKS / 3);
    }
}
END_TEST

/* Operations of a rank take turns to belong to one of three classes, which others share. */
START_TEST(operations_of_a_rank_are_of_several_classes)
{
    int cheap = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        is_even = seed % 2 != 0;
        begin(seed);
        if (seed % 2 == 0)
            ring();
        else
            data_parallel();
        for (uint32_t i = 0; i < ops; i++)
            class_of[i] = (class_of[i] + i % 3) % RANKS;
        cheap += compare_once(RANKS);
    }
    ck_assert_int_ge(cheap, 20);
}
END_TEST

/* Replays all classes with the times of each node of its own, and with those of nodes that share slots. */
static void compare_slots(size_t most)
{
    static uint32_t slot[NODES];
    static double shared[NODES * MSTX_LANES];
    const size_t n = mstx__deps_count(&deps), slots = mstx__deps_slots(&deps, slot);
    ck_assert_uint_le(slots, most);
    struct mstx_scenarios own = {base, other, class_of, 0, NULL, false, NULL},
                          x = {base, other, class_of, 0, NULL, false, slot};
    for (; x.first < RANKS; x.first += MSTX_LANES, own.first += MSTX_LANES) {
        double end[MSTX_LANES], want[MSTX_LANES];
        mstx__deps_replay(&deps, 0, n, &own, t, want);
        mstx__deps_replay(&deps, 0, n, &x, shared, end);
        for (int k = 0; k < MSTX_LANES; k++)
            ck_assert_double_eq(end[k], want[k]);
    }
}

/* At most three nodes a rank are waited for at a time: its last one, one that it sent, and a gate. */
START_TEST(nodes_whose_times_are_not_needed_any_more_share_slots)
{
    static void (*const shapes[])(void) = {data_parallel, tensor_parallel, pipeline,
                                           ring,          anything,        tangle};
    for (uint64_t seed = 0; seed < 24; seed++) {
        is_even = seed % 2 != 0;
        begin(seed);
        shapes[seed % 6]();
        mstx__deps_begin_step(&deps);
        compare_slots(3 * RANKS);
        mstx__deps_free(&deps);
    }
}
END_TEST

/* Lists the classes in single bytes; operations with a class have the weight `other` in whole. */
static void draw_few(uint8_t *few, double *whole)
{
    for (uint32_t i = 0; i < ops; i++) {
        few[i] = class_of[i] % 3 != 0 ? (uint8_t)class_of[i] : MSTX_NO_FEW;
        whole[i] = few[i] != MSTX_NO_FEW ? other[i] : base[i];
    }
}

/* A scenario in which a class alone is as recorded is one that begins with the other weights of all classes. */
START_TEST(a_class_alone_keeps_its_weights)
{
    static uint8_t few[NODES];
    static double whole[NODES], own[NODES];
    begin(5);
    tangle();
    mstx__deps_begin_step(&deps);
    draw_few(few, whole);
    const size_t n = mstx__deps_count(&deps);
    for (uint32_t class = 0; class < RANKS; class ++) {
        const struct mstx_scenarios with = {base, other, NULL, class, few, false, NULL},
                                    alone = {base, other, NULL, class, few, true, NULL};
        double end[MSTX_LANES], want;
        mstx__deps_replay(&deps, 0, n, &with, t, end);
        for (uint32_t i = 0; i < ops; i++)
            own[i] = few[i] == class ? other[i] : base[i];
        want = mstx__deps_replay_one(&deps, 0, n, own, t);
        ck_assert_double_eq(end[0], want);
        mstx__deps_replay(&deps, 0, n, &alone, t, end);
        for (uint32_t i = 0; i < ops; i++)
            own[i] = few[i] == class ? base[i] : whole[i];
        want = mstx__deps_replay_one(&deps, 0, n, own, t);
        ck_assert_double_eq(end[0], want);
    }
    mstx__deps_free(&deps);
}
END_TEST

START_TEST(slots_need_memory)
{
    static uint32_t slot[NODES];
    int failed = 0;
    begin(3);
    ring();
    for (uint64_t nth = 1; nth < 9; nth++) {
        ms_mem_fail_at(nth);
        const size_t slots = mstx__deps_slots(&deps, slot);
        const bool must = ms_mem_failed();
        ms_mem_fail_at(0);
        ck_assert(must == (slots == SIZE_MAX));
        failed += must;
    }
    ck_assert_int_gt(failed, 1);
    mstx__deps_free(&deps);
}
END_TEST

START_TEST(nothing_is_replayed_as_nothing)
{
    double sum[1] = {5};
    begin(1);
    const struct mstx_scenarios x = {base, other, class_of, 0, NULL, false, NULL};
    struct mstx_class_replay *r = mstx__class_replay_new(&deps, 0);
    ck_assert(mstx__class_replay(r, 0, 0, &x, 1, sum));
    ck_assert_double_eq(sum[0], 5);
    mstx__class_replay_free(r);
    mstx__deps_free(&deps);
}
END_TEST

/* Without memory for an allocation, the answer is no, and sums stay as they were. */
START_TEST(memory_may_end_anywhere)
{
    int failed = 0;
    for (long nth = 1; nth < 200; nth += 7) {
        is_even = false;
        begin(3);
        ring();
        ms_mem_fail_at((uint64_t)nth);
        const size_t n = mstx__deps_count(&deps);
        const struct mstx_scenarios x = {base, other, class_of, 0, NULL, false, NULL};
        double sum[RANKS] = {0};
        struct mstx_class_replay *r = mstx__class_replay_new(&deps, n);
        const bool ok = r != NULL && mstx__class_replay(r, 0, n, &x, RANKS, sum);
        ms_mem_fail_at(0);
        failed += !ok;
        for (uint32_t k = 0; k < RANKS && !ok; k++)
            ck_assert_double_eq(sum[k], 0);
        mstx__class_replay_free(r);
        mstx__deps_free(&deps);
    }
    ck_assert_int_gt(failed, 0);
}
END_TEST

TEST_MAIN("class_replay", jobs_of_usual_shapes_are_replayed_in_one_pass,
          a_job_whose_delays_differ_everywhere_is_left_to_whole_replays,
          ranks_share_a_class_or_have_none, operations_of_a_rank_are_of_several_classes,
          nodes_whose_times_are_not_needed_any_more_share_slots, a_class_alone_keeps_its_weights,
          slots_need_memory, nothing_is_replayed_as_nothing, memory_may_end_anywhere)
