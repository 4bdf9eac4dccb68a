/* SPDX-License-Identifier: MIT
 *
 * call_steps: steps that are known, steps that are not, and receives from any source.
 */
#include "mstx/cluster/call_steps.c"

#include "tests/support/check.h"

static uint32_t no_points[4];
static struct mstx_point a_point;

/* A graph whose ranks have no points, but for the one that makes it a graph. */
static struct mstx_call_graph graph_of(uint32_t ranks, int64_t start, int64_t end)
{
    return (struct mstx_call_graph){.point = {.p = &a_point, .n = 1},
                                    .first = {.p = no_points, .n = ranks + 1},
                                    .start_ns = start,
                                    .end_ns = end};
}

/* Without steps and without a period the run is cut into parts of the same length. */
START_TEST(a_run_without_steps_is_cut_into_windows)
{
    const struct mstx_call_graph g = graph_of(3, 500, 500 + 7 * WINDOWS + 3);
    const mstx_gcalls calls = {0};
    const struct mstx_step_times none = {0};
    struct mstx_call_steps some;
    mstx__call_steps(&some, &g, &calls, &none);
    ck_assert_uint_eq(some.steps, WINDOWS);
    for (uint32_t r = 0; r < 3; r++) {
        for (int64_t k = 0; k <= WINDOWS; k++)
            ck_assert_int_eq(some.at_ns[r * (WINDOWS + 1) + k], 500 + 7 * k);
    }
    mstx__call_steps_free(&some);
}
END_TEST

START_TEST(steps_that_are_given_are_copied_when_they_are_enough)
{
    int64_t at[2 * (MSTX_STEPS_LEAST + 1)];
    const struct mstx_call_graph g = graph_of(2, 0, 100);
    const mstx_gcalls calls = {0};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        at[i] = (int64_t)i * 3;
    for (uint32_t n = MSTX_STEPS_LEAST - 1; n <= MSTX_STEPS_LEAST; n++) {
        struct mstx_call_steps some;
        const struct mstx_step_times steps = {.steps = n, .at_ns = at};
        mstx__call_steps(&some, &g, &calls, &steps);
        ck_assert_uint_eq(some.steps, n == MSTX_STEPS_LEAST ? MSTX_STEPS_LEAST : WINDOWS);
        if (n == MSTX_STEPS_LEAST)
            ck_assert(memcmp(some.at_ns, at, sizeof at) == 0);
        mstx__call_steps_free(&some);
    }
}
END_TEST

START_TEST(receives_from_any_source_are_counted_for_each_rank)
{
    struct mstx_gcall call[] = {{.rank = 1, .op = MSTX_COMM_RECV, .flags = MSTX_CF_ANY},
                                {.rank = 1, .op = MSTX_COMM_RECV},
                                {.rank = 1, .op = MSTX_COMM_RECV, .flags = MSTX_CF_ANY},
                                {.rank = 0, .op = MSTX_COMM_SEND, .flags = MSTX_CF_ANY}};
    const struct mstx_call_graph g = graph_of(2, 0, 100);
    const mstx_gcalls calls = {.p = call, .n = 4};
    const struct mstx_step_times none = {0};
    struct mstx_call_steps some;
    for (size_t i = 0; i < calls.n; i++)
        call[i].begin = MSTX_NO_POINT;
    mstx__call_steps(&some, &g, &calls, &none);
    ck_assert_uint_eq(some.from_any[0], 0);
    ck_assert_uint_eq(some.from_any[1], 2);
    mstx__call_steps_free(&some);
}
END_TEST

TEST_MAIN("call_steps", a_run_without_steps_is_cut_into_windows,
          steps_that_are_given_are_copied_when_they_are_enough,
          receives_from_any_source_are_counted_for_each_rank)
