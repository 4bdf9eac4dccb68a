/* SPDX-License-Identifier: MIT
 *
 * differ: places, quiet times, and which places become causes.
 */
#include "mstx/differ/causes.h"
#include "probe/base/mem.h"
#include "tests/support/check.h"

#include <math.h>

enum { STEPS = 24 };

static struct mstx_places places;
static struct mstx_profile old, new, again;
static struct mstx_difference difference;
static struct mstx_causes causes;
static uint32_t place[8];

static uint32_t within(uint32_t parent, const char *name, enum mstx_place_kind kind)
{
    const uint32_t i =
        mstx__places_child(&places, parent, mstx__places_name(&places, ms_str_of(name)), kind);
    ck_assert_uint_ne(i, MSTX_NO_PLACE);
    return i;
}

/* step ─┬─ forward ─┬─ linear, gelu, norm
 *       ├─ optimizer
 *       └─ allreduce */
enum { FORWARD, LINEAR, GELU, NORM, OPTIMIZER, ALLREDUCE };
static void set_up(void)
{
    ck_assert(mstx__places_new(&places));
    place[FORWARD] = within(MSTX_ROOT, "forward", MSTX_PLACE_RANGE);
    place[LINEAR] = within(place[FORWARD], "linear", MSTX_PLACE_RANGE);
    place[GELU] = within(place[FORWARD], "gelu", MSTX_PLACE_RANGE);
    place[NORM] = within(place[FORWARD], "norm", MSTX_PLACE_RANGE);
    place[OPTIMIZER] = within(MSTX_ROOT, "optimizer", MSTX_PLACE_RANGE);
    place[ALLREDUCE] = within(MSTX_ROOT, "allreduce", MSTX_PLACE_COMM);
    old = new = again = (struct mstx_profile){0};
    difference = (struct mstx_difference){0};
    causes = (struct mstx_causes){0};
}

static void tear_down(void)
{
    mstx__causes_free(&causes);
    mstx__difference_free(&difference);
    mstx__profile_free(&old);
    mstx__profile_free(&new);
    mstx__profile_free(&again);
    mstx__places_free(&places);
}

/* Adds a rank whose places take so long: forward alone, linear, gelu, norm, optimizer, allreduce. */
static void add_rank(struct mstx_profile *p, int32_t rank, const double ms[6])
{
    struct mstx_profile_rank *r = ms_vec_push(&p->rank);
    ck_assert_ptr_nonnull(r);
    *r = (struct mstx_profile_rank){.rank = rank, .steps = STEPS};
    for (int i = 0; i < 6; i++) {
        if (ms[i] == 0)
            continue;
        struct mstx_figure *f = ms_vec_push(&p->figure);
        ck_assert_ptr_nonnull(f);
        *f = (struct mstx_figure){.place = place[i],
                                  .rank = (uint32_t)(p->rank.n - 1),
                                  .quiet = 1e6 * ms[i],
                                  .mean = 1e6 * ms[i],
                                  .count = 1};
        r->step_ns += f->mean;
        for (int k = 0; k < MSTX_BLOCKS; k++)
            f->block[k] = f->quiet * (1 + 0.001 * k);
    }
}

static void find(void)
{
    ck_assert(mstx__difference_find(&difference, &places, &old, &new, &again, again.rank.n != 0));
    ck_assert(mstx__causes_find(&causes, &difference));
}

static const struct mstx_cause *only(uint32_t at)
{
    ck_assert_uint_eq(causes.list.n, 1);
    ck_assert_uint_eq(causes.list.p[0].place, at);
    return &causes.list.p[0];
}

static const double USUAL[6] = {1, 40, 20, 10, 20, 5};

START_TEST(the_same_names_are_the_same_place)
{
    struct ms_buf path = {.max = 100};
    ck_assert_uint_eq(within(place[FORWARD], "gelu", MSTX_PLACE_RANGE), place[GELU]);
    ck_assert_uint_ne(within(MSTX_ROOT, "gelu", MSTX_PLACE_RANGE), place[GELU]);
    ck_assert_uint_ne(within(place[FORWARD], "gelu", MSTX_PLACE_KERNEL), place[GELU]);
    mstx__places_path(&places, place[GELU], &path);
    ck_assert_str_eq(ms_buf_z(&path), "forward > gelu");
    ms_buf_clear(&path);
    mstx__places_path(&places, MSTX_ROOT, &path);
    ck_assert_str_eq(ms_buf_z(&path), "");
    ms_buf_free(&path);
}
END_TEST

START_TEST(equal_runs_have_no_cause)
{
    add_rank(&old, 0, USUAL);
    add_rank(&new, 0, USUAL);
    find();
    ck_assert_uint_eq(causes.list.n, 0);
    ck_assert_double_eq_tol(difference.factor, 1, 1e-9);
}
END_TEST

START_TEST(the_operator_that_takes_longer_is_the_cause)
{
    add_rank(&old, 0, USUAL);
    add_rank(&new, 0, (const double[6]){1, 40, 26, 10, 20, 5});
    find();
    const struct mstx_cause *c = only(place[GELU]);
    ck_assert_int_eq(c->kind, MSTX_CAUSE_OPERATOR);
    ck_assert_double_eq_tol(c->cost_ns, 6e6, 1);
    ck_assert_double_eq_tol(c->old_ns, 20e6, 1);
    ck_assert_double_eq_tol(c->new_ns, 26e6, 1);
    ck_assert(c->low_ns <= c->cost_ns && c->cost_ns <= c->high_ns && c->low_ns > 5e6);
    ck_assert_int_eq(c->pair, -1);
}
END_TEST

START_TEST(what_differs_by_less_than_the_noise_is_none)
{
    add_rank(&old, 0, USUAL);
    add_rank(&new, 0, (const double[6]){1, 40, 21.4, 10, 20, 5});
    find();
    ck_assert_uint_eq(causes.list.n, 0);
}
END_TEST

START_TEST(what_only_one_run_has_is_found_deep_within)
{
    const uint32_t deep = within(place[OPTIMIZER], "add", MSTX_PLACE_RANGE);
    add_rank(&old, 0, USUAL);
    place[FORWARD] = deep;
    add_rank(&new, 0, (const double[6]){8, 40, 20, 10, 20, 5});
    find();
    const struct mstx_cause *c = only(deep);
    ck_assert_double_eq_tol(c->cost_ns, 8e6, 2e6);
    ck_assert_double_eq(c->old_ns, 0);
}
END_TEST

START_TEST(everything_alike_is_the_host)
{
    add_rank(&old, 0, USUAL);
    add_rank(&new, 0, (const double[6]){1.04, 41.6, 20.8, 10.4, 20.8, 5.2});
    find();
    ck_assert_uint_eq(causes.list.n, 0);
    ck_assert_double_eq_tol(difference.factor, 1.04, 1e-6);
}
END_TEST

START_TEST(everything_much_longer_is_the_step)
{
    add_rank(&old, 0, USUAL);
    add_rank(&new, 0, (const double[6]){2, 80, 40, 20, 40, 10});
    find();
    ck_assert_uint_ge(causes.list.n, 1);
    double sum = 0;
    for (size_t i = 0; i < causes.list.n; i++)
        sum += causes.list.p[i].cost_ns;
    ck_assert_double_gt(sum, 80e6);
}
END_TEST

START_TEST(a_new_place_is_a_cause_unless_it_replaces_another)
{
    const uint32_t fused = within(place[FORWARD], "fused", MSTX_PLACE_RANGE);
    add_rank(&old, 0, USUAL);
    const uint32_t gelu = place[GELU];
    place[GELU] = fused;
    add_rank(&new, 0, USUAL); /* fused instead of gelu, as long */
    find();
    ck_assert_uint_eq(causes.list.n, 0);
    mstx__causes_free(&causes);
    mstx__difference_free(&difference);
    mstx__profile_free(&old);
    old = (struct mstx_profile){0};
    add_rank(&old, 0, (const double[6]){1, 40, 0, 10, 20, 5}); /* fused is new */
    place[GELU] = gelu;
    find();
    ck_assert_double_eq_tol(only(fused)->cost_ns, 20e6, 1);
}
END_TEST

START_TEST(small_new_places_are_one_cause)
{
    add_rank(&old, 0, USUAL);
    add_rank(&new, 0, USUAL);
    uint32_t largest = 0;
    for (int i = 0; i < 4; i++) {
        const char name[] = {'n', (char)('0' + i), '\0'};
        struct mstx_figure *f = ms_vec_push(&new.figure);
        ck_assert_ptr_nonnull(f);
        *f = (struct mstx_figure){.place = within(place[FORWARD], name, MSTX_PLACE_RANGE),
                                  .quiet = 0.5e6 + 0.1e6 * (i == 2),
                                  .count = 1};
        largest = i == 2 ? f->place : largest;
        for (int k = 0; k < MSTX_BLOCKS; k++)
            f->block[k] = f->quiet;
    }
    find();
    const struct mstx_cause *c = only(largest);
    ck_assert_uint_eq(c->others, 3);
    ck_assert_double_eq_tol(c->cost_ns, 2.1e6, 1);
    ck_assert_double_eq_tol(c->new_ns, 2.1e6, 1);
}
END_TEST

START_TEST(the_rank_that_works_longer_is_named)
{
    for (int32_t r = 0; r < 4; r++) {
        add_rank(&old, r, USUAL);
        /* the others wait for rank 2 */
        add_rank(&new, r, (const double[6]){1, 40, r == 2 ? 30 : 20, 10, 20, r == 2 ? 5 : 15});
    }
    find();
    const struct mstx_cause *c = only(place[GELU]);
    ck_assert_int_eq(c->pair, 2);
    ck_assert_double_eq_tol(c->cost_ns, 10e6, 1e3);
}
END_TEST

START_TEST(a_rank_that_waited_before_costs_less)
{
    for (int32_t r = 0; r < 3; r++) {
        add_rank(&old, r, (const double[6]){1, 40, r == 2 ? 14 : 20, 10, 20, r == 2 ? 11 : 5});
        add_rank(&new, r, (const double[6]){1, 40, r == 2 ? 24 : 20, 10, 20, r == 2 ? 5 : 9});
    }
    find();
    const struct mstx_cause *c = only(place[GELU]);
    ck_assert_int_eq(c->pair, 2);
    ck_assert_double_eq_tol(c->cost_ns, 4e6, 1e3); /* 10, of which it waited 6 */
}
END_TEST

START_TEST(a_rank_that_became_faster_is_no_cause)
{
    for (int32_t r = 0; r < 4; r++) {
        add_rank(&old, r, USUAL);
        add_rank(&new, r, (const double[6]){1, 40, r == 2 ? 18 : 4, 10, 20, r == 2 ? 5 : 19});
    }
    find();
    ck_assert_uint_eq(causes.list.n, 0);
}
END_TEST

START_TEST(communication_is_that_of_the_rank_that_waits_least)
{
    for (int32_t r = 0; r < 3; r++) {
        add_rank(&old, r, (const double[6]){1, 40, 20, 10, 20, 5 + r});
        add_rank(&new, r, (const double[6]){1, 40, 20, 10, 20, 12 + 3 * r});
    }
    find();
    const struct mstx_cause *c = only(place[ALLREDUCE]);
    ck_assert_int_eq(c->kind, MSTX_CAUSE_COMM);
    ck_assert_double_eq_tol(c->cost_ns, 7e6, 1e3);
}
END_TEST

START_TEST(what_differs_between_old_runs_is_noise)
{
    add_rank(&old, 0, USUAL);
    add_rank(&again, 0, (const double[6]){1, 40, 24, 10, 20, 5});
    add_rank(&new, 0, (const double[6]){1, 40, 26, 10, 20, 5});
    find();
    ck_assert_uint_eq(causes.list.n, 0);
}
END_TEST

/* Whichever allocation fails, that is said and nothing stays behind, and with the next try all is there. */
START_TEST(memory_may_end_anywhere)
{
    bool found = false;
    for (int rank = 0; rank < 3; rank++) {
        add_rank(&old, rank, USUAL);
        add_rank(&again, rank, (const double[6]){1, 41, 20, 10, 20, 5});
        add_rank(&new, rank, (const double[6]){1, 40, 26, 10, rank == 1 ? 40 : 20, 5});
    }
    const size_t live = ms_mem_live();
    for (uint64_t n = 1; !found; n++) {
        ms_mem_fail_at(n);
        found = mstx__difference_find(&difference, &places, &old, &new, &again, 1) &&
                mstx__causes_find(&causes, &difference);
        struct mstx_change *alone = found ? mstx__difference_of_rank(&difference, 1) : NULL;
        found = alone != NULL;
        ck_assert_int_ne(found, ms_mem_failed());
        ms_mem_fail_at(0);
        ms_free(alone);
        if (!found) {
            mstx__causes_free(&causes);
            mstx__difference_free(&difference);
            causes = (struct mstx_causes){0};
            difference = (struct mstx_difference){0};
            ck_assert_uint_eq(ms_mem_live(), live);
        }
    }
    ck_assert_uint_ge(causes.list.n, 2);
}
END_TEST

START_TEST(ranks_without_a_partner_are_left_out)
{
    add_rank(&old, 3, USUAL);
    add_rank(&old, 5, USUAL);
    add_rank(&new, 5, USUAL);
    add_rank(&new, 6, (const double[6]){1, 40, 50, 10, 20, 5});
    find();
    ck_assert_uint_eq(difference.pair.n, 1);
    ck_assert_uint_eq(causes.list.n, 0);
}
END_TEST

/* ---- quiet times ----------------------------------------------------------------------------- */

static struct mstx_trail trail;

static void add_part(uint32_t step, int64_t us)
{
    struct mstx_trail_part *p = ms_vec_push(&trail.part);
    ck_assert_ptr_nonnull(p);
    *p = (struct mstx_trail_part){place[GELU], step, 1000 * us};
}

static struct mstx_figure figure(uint32_t steps, bool has_device)
{
    mstx_figures f = {0};
    const struct mstx_figure_of of = {&trail, 0, steps, has_device};
    ck_assert(mstx__trail_sort(&trail, places.list.n));
    ck_assert(mstx__figures_add(&f, &of));
    ck_assert_uint_eq(f.n, 1);
    const struct mstx_figure one = f.p[0];
    ms_vec_free(&f);
    mstx__trail_free(&trail);
    return one;
}

START_TEST(disturbances_are_no_part_of_the_quiet_time)
{
    for (uint32_t s = 0; s < STEPS; s++) {
        add_part(s, s % 3 == 0 ? 900 : 10);
        add_part(s, s % 3 == 1 ? 700 : 30);
    }
    const struct mstx_figure f = figure(STEPS, false);
    ck_assert_double_eq_tol(f.quiet, 40e3, 1);
    ck_assert_double_eq_tol(f.mean, 1000 * (40 + 890.0 / 3 + 670.0 / 3), 1);
    ck_assert_double_eq(f.count, 2);
    for (int k = 0; k < MSTX_BLOCKS; k++)
        ck_assert_double_eq_tol(f.block[k], 40e3, 1);
}
END_TEST

START_TEST(steps_with_other_numbers_of_parts_are_left_out)
{
    for (uint32_t s = 0; s < STEPS; s++) {
        add_part(s, 50);
        if (s % 4 == 0)
            add_part(s, 1);
    }
    ck_assert_double_eq_tol(figure(STEPS, false).quiet, 50e3, 1);
}
END_TEST

START_TEST(sums_are_compared_where_numbers_of_parts_differ)
{
    for (uint32_t s = 0; s < STEPS; s++) {
        for (uint32_t k = 0; k < 1 + s % 6; k++)
            add_part(s, 60 / (1 + s % 6));
    }
    ck_assert_double_eq_tol(figure(STEPS, false).quiet, 60e3, 1);
}
END_TEST

START_TEST(with_a_device_it_is_the_middle)
{
    for (uint32_t s = 0; s < 5; s++)
        add_part(s, 10 * (s + 1));
    ck_assert_double_eq_tol(figure(5, true).quiet, 30e3, 1);
    for (uint32_t s = 0; s < 5; s++)
        add_part(s, 10 * (s + 1));
    ck_assert_double_eq_tol(figure(5, false).quiet, 15e3, 1);
}
END_TEST

TEST_MAIN_AROUND(set_up, tear_down, "causes", the_same_names_are_the_same_place,
                 equal_runs_have_no_cause, the_operator_that_takes_longer_is_the_cause,
                 what_differs_by_less_than_the_noise_is_none,
                 what_only_one_run_has_is_found_deep_within, everything_alike_is_the_host,
                 everything_much_longer_is_the_step,
                 a_new_place_is_a_cause_unless_it_replaces_another, small_new_places_are_one_cause,
                 the_rank_that_works_longer_is_named, a_rank_that_waited_before_costs_less,
                 a_rank_that_became_faster_is_no_cause,
                 communication_is_that_of_the_rank_that_waits_least,
                 what_differs_between_old_runs_is_noise, memory_may_end_anywhere,
                 ranks_without_a_partner_are_left_out, disturbances_are_no_part_of_the_quiet_time,
                 steps_with_other_numbers_of_parts_are_left_out,
                 sums_are_compared_where_numbers_of_parts_differ, with_a_device_it_is_the_middle)
