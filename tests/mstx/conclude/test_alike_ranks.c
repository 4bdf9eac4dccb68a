/* SPDX-License-Identifier: MIT
 *
 * alike_ranks: which ranks become one row, and how their numbers are written.
 */
#include "mstx/conclude/alike_ranks.h"
#include "tests/support/check.h"

static struct mstx_use use;
static mstx_alike_list groups;
static uint32_t group[4096];

static void set_up(void)
{
    use = (struct mstx_use){0};
    groups.n = 0;
    groups.p = NULL;
}

static void tear_down(void)
{
    ms_vec_free(&groups);
    mstx_use_free(&use);
}

/* Adds a rank with a step of 100 and so much computing and blame. */
static void add(int64_t rank, double computing, double blame)
{
    struct mstx_use_rank *r = ms_vec_push(&use.rank);
    ck_assert_ptr_nonnull(r);
    *r = (struct mstx_use_rank){.rank = rank, .steps = 10};
    r->ns[MSTX_USE_STEP] = 100;
    r->ns[MSTX_USE_COMPUTING] = computing;
    r->ns[MSTX_USE_BLAME] = blame;
}

static void find(void)
{
    struct ms_err err = {0};
    ck_assert_int_eq(mstx_alike_find(&use, &groups, group, &err), MS_OK);
}

static void says(uint32_t which, size_t width, const char *expected)
{
    struct ms_buf text = {.max = 4096};
    mstx_alike_text(&use, group, which, width, &text);
    ck_assert_str_eq(ms_buf_z(&text), expected);
    ms_buf_free(&text);
}

START_TEST(nothing_has_no_groups)
{
    find();
    ck_assert_uint_eq(groups.n, 0);
}
END_TEST

START_TEST(the_odd_one_comes_first)
{
    for (int64_t r = 0; r < 1000; r++)
        add(r, r == 190 ? 70 : 50 + (r % 3) * 0.5, r == 190 ? 20 : 0);
    find();
    ck_assert_uint_eq(groups.n, 2);
    ck_assert_uint_eq(groups.p[0].ranks, 1);
    ck_assert_int_eq(groups.p[0].mean.rank, 190);
    ck_assert_double_eq(groups.p[0].mean.ns[MSTX_USE_COMPUTING], 70);
    ck_assert_uint_eq(groups.p[1].ranks, 999);
    ck_assert_int_eq(groups.p[1].mean.steps, 10);
    ck_assert_double_eq_tol(groups.p[1].mean.ns[MSTX_USE_COMPUTING], 50.5, 0.01);
    says(0, 32, "190");
    says(1, 32, "0-189,191-999");
}
END_TEST

START_TEST(of_equal_groups_the_guilty_comes_first)
{
    add(0, 10, 0);
    add(1, 50, 0);
    add(2, 90, 60);
    find();
    ck_assert_uint_eq(groups.n, 3);
    ck_assert_int_eq(groups.p[0].mean.rank, 2);
    ck_assert_int_eq(groups.p[1].mean.rank, 0);
    ck_assert_int_eq(groups.p[2].mean.rank, 1);
    ck_assert_uint_eq(group[0], 1);
    ck_assert_uint_eq(group[1], 2);
    ck_assert_uint_eq(group[2], 0);
}
END_TEST

START_TEST(many_kinds_join_the_nearest)
{
    for (int64_t r = 0; r < 4096; r++)
        add(r, (double)(r % 128) * 5, 0);
    find();
    ck_assert_uint_eq(groups.n, 64);
    size_t ranks = 0;
    for (size_t g = 0; g < groups.n; g++)
        ranks += groups.p[g].ranks;
    ck_assert_uint_eq(ranks, 4096);
}
END_TEST

START_TEST(numbers_are_cut)
{
    for (int64_t r = 0; r < 100; r++)
        add(r, r % 2 == 0 ? 10 : 60, 0);
    find();
    says(0, 16, "0,2,4,...");
    says(1, 16, "1,3,5,...");
}
END_TEST

START_TEST(two_neighbours_have_a_comma)
{
    add(3, 10, 0);
    add(4, 10, 0);
    add(7, 10, 0);
    find();
    says(0, 32, "3,4,7");
}
END_TEST

TEST_MAIN_AROUND(set_up, tear_down, "alike_ranks", nothing_has_no_groups, the_odd_one_comes_first,
                 of_equal_groups_the_guilty_comes_first, many_kinds_join_the_nearest,
                 numbers_are_cut, two_neighbours_have_a_comma)
