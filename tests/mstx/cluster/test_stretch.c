/* SPDX-License-Identifier: MIT
 *
 * The stretch of steps in which a rank was slow: the function is static, so its file is part of this
 * test.
 */
#include "mstx/cluster/stragglers.c"

#include "tests/support/check.h"

enum { STEPS = 40, LIMIT = 5 };

/* Steps of a rank that costs 2 in [a, a + n) and in [b, b + n), and nothing elsewhere. */
static struct stretch found(uint32_t steps, uint32_t a, uint32_t b, uint32_t n)
{
    double cost[STEPS] = {0}, prefix[STEPS + 1];
    for (uint32_t i = 0; i < n; i++)
        cost[a + i] = cost[b + i] = 2;
    return best_stretch(cost, steps, 1, LIMIT, prefix);
}

START_TEST(the_slow_steps_are_the_stretch)
{
    for (uint32_t at = 0; at + STEPS_SURE <= STEPS; at++) {
        const struct stretch s = found(STEPS, at, at, STEPS_SURE);
        ck_assert_uint_eq(s.from, at);
        ck_assert_uint_eq(s.to, at + STEPS_SURE);
        ck_assert_double_eq_tol(s.mean, 2, 1e-12);
        ck_assert_double_eq_tol(s.score, 2 * sqrt(STEPS_SURE), 1e-12);
    }
}
END_TEST

/* The same capture gives the same answer, whichever order it is looked at in: the earlier one. */
START_TEST(of_two_that_cost_the_same_it_is_the_earlier)
{
    const struct stretch s = found(STEPS, 2, 25, STEPS_SURE);
    ck_assert_uint_eq(s.from, 2);
    ck_assert_uint_eq(s.to, 2 + STEPS_SURE);
}
END_TEST

/* Equal cost everywhere: a longer stretch is surer, so it is all steps. */
START_TEST(a_rank_that_is_always_slow_is_so_in_all_steps)
{
    const struct stretch s = found(STEPS, 0, 0, STEPS);
    ck_assert_uint_eq(s.from, 0);
    ck_assert_uint_eq(s.to, STEPS);
}
END_TEST

/* One pause is clipped: it weighs no more than CLIP deviations. */
START_TEST(one_long_pause_is_no_slow_rank)
{
    double cost[STEPS] = {0}, prefix[STEPS + 1];
    cost[7] = 1e6;
    const struct stretch s = best_stretch(cost, STEPS, 1, LIMIT, prefix);
    ck_assert_double_eq_tol(s.score, CLIP / sqrt(s.to - s.from), 1e-12);
    ck_assert_double_lt(s.score, LIMIT);
}
END_TEST

START_TEST(a_run_of_one_step_is_that_step)
{
    const struct stretch s = found(1, 0, 0, 1);
    ck_assert_uint_eq(s.from, 0);
    ck_assert_uint_eq(s.to, 1);
    ck_assert_double_eq_tol(s.mean, 2, 1e-12);
}
END_TEST

TEST_MAIN("stretch", the_slow_steps_are_the_stretch, of_two_that_cost_the_same_it_is_the_earlier,
          a_rank_that_is_always_slow_is_so_in_all_steps, one_long_pause_is_no_slow_rank,
          a_run_of_one_step_is_that_step)
