/* SPDX-License-Identifier: MIT
 *
 * test_order_rules: what is said where values may be in another order, which statistics do not show.
 */
#include "tests/support/model_runs.h"

/* Inserts a call into both runs. */
static void insert_both(struct run *g, struct run *t, unsigned at, struct call call)
{
    insert_call(g, at, call);
    insert_call(t, at, call);
}

/* Lets everything from the second linear layer on differ; what that layer reads has equal statistics. */
static void differ_behind(struct run *t)
{
    t->sums[5] = t->sums[6] = t->sums[7] = t->sums[9] = t->sums[11] = t->sums[12] = 0.3;
}

/* Returns how sure the list of a pair is of suspect 1. */
static double certainty_of(const struct run *golden, const struct run *target)
{
    struct fixture f;
    struct cmp_source *s;
    const struct cmp_suspect *list;
    fixture_init(&f);
    ck_ok(cmp_source_new(&s, &f.err), f.err);
    add_pair(&f, s, golden, target, 0, 0);
    ck_ok(cmp_source_find(s, &f.err), f.err);
    ck_assert_uint_gt(cmp_source_suspects(s, &list), 0);
    double certainty = list[0].certainty;
    cmp_source_free(s);
    fixture_free(&f);
    return certainty;
}

START_TEST(statistics_do_not_tell_another_order_from_another_result)
{
    struct run g = model(), t = model();
    differ_behind(&t);
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.linear.1.forward");
    ck_assert_ptr_nonnull(strstr(a.text, "statistics do not tell whether it computes otherwise or "
                                         "what it reads is in another order"));
    ck_assert_str_eq(a.name[1], "Functional.linear.0.forward");
    ck_assert_str_eq(a.undecided, "Functional.linear.1.forward");
    double unsure = certainty_of(&g, &t);
    t = g; /* no order multiplies all values by one factor */
    t.err[5] = t.err[6] = t.err[7] = t.err[9] = t.err[11] = t.err[12] = 0.3;
    a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.linear.1.forward");
    ck_assert_ptr_null(strstr(a.text, "another order"));
    ck_assert_str_eq(a.undecided, "");
    ck_assert_double_gt(certainty_of(&g, &t), unsure);
}
END_TEST

/* Another layer of the same kind has read what the first one made, and makes the same of it. */
START_TEST(an_order_that_an_operator_of_the_same_kind_has_read_is_that_of_both_sides)
{
    struct run g = model(), t = model();
    const struct call same = {"Functional.linear.7.forward", {3, NOTHING, NOTHING}, 43, NULL, NULL};
    insert_both(&g, &t, 2, same);
    differ_behind(&t);
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.linear.1.forward");
    ck_assert_ptr_null(strstr(a.text, "another order"));
    g.call[2].name = t.call[2].name =
        "Functional.relu.7.forward"; /* the order shows in none of its statistics */
    ck_assert_ptr_nonnull(strstr(ask(&g, &t).text, "is in another order"));
}
END_TEST

START_TEST(other_data_may_be_in_another_order_as_well)
{
    struct run g = model(), t = model();
    const struct call join = {"Torch.cat.0.forward", {3, 60, NOTHING}, 43, NULL, NULL};
    insert_both(&g, &t, 2, join);
    g.call[3].in[0] = t.call[3].in[0] = 43;
    differ_behind(&t);
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.linear.1.forward");
    ck_assert_str_eq(a.name[1], "Functional.linear.0.forward");
    ck_assert_str_eq(a.name[2], "Torch.cat.0.forward");
}
END_TEST

START_TEST(what_runs_in_the_place_of_an_operator_that_moves_elements_is_named)
{
    struct run g = model(), t = model();
    const struct call move = {"Tensor.transpose.0.forward", {3, NOTHING, NOTHING}, 43, NULL, NULL};
    insert_both(&g, &t, 2, move);
    t.call[2].name = "Tensor.reshape.0.forward";
    g.call[3].in[0] = t.call[3].in[0] = 43;
    differ_behind(&t);
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Tensor.reshape.0.forward");
    ck_assert_ptr_nonnull(strstr(a.text, "runs in the place of Tensor.transpose.0.forward; "));
    ck_assert_ptr_nonnull(strstr(a.text, "Functional.linear.1.forward makes other values of it"));
    g.call[2].name = "Tensor.view.0.forward"; /* neither moves elements */
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.linear.1.forward");
}
END_TEST

/* Masks and counts have the statistics of any other, so what computes them on one side alone is named. */
START_TEST(what_computes_whole_numbers_on_one_side_is_named_before_their_reader)
{
    struct run g = model(), t = model();
    const struct call limit = {
        "Tensor.__mul__.7.forward", {50, NOTHING, NOTHING}, 51, NULL, "int64"};
    insert_call(&g, 2, limit);
    g.call[3].in[2] = t.call[2].in[2] = g.mask = t.mask = 50;
    differ_behind(&t);
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Tensor.__mul__.7.forward");
    ck_assert_int_eq(a.why, CMP_WHY_MISSING);
    ck_assert_ptr_nonnull(strstr(a.text, "Functional.linear.1.forward makes other values of it"));
    g.call[2].name = "Tensor.to.7.forward"; /* a cast computes nothing */
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.linear.1.forward");
    g.call[2] = limit;
    g.call[2].dtype = "float32";
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.linear.1.forward");
}
END_TEST

TEST_MAIN("order_rules", statistics_do_not_tell_another_order_from_another_result,
          an_order_that_an_operator_of_the_same_kind_has_read_is_that_of_both_sides,
          other_data_may_be_in_another_order_as_well,
          what_runs_in_the_place_of_an_operator_that_moves_elements_is_named,
          what_computes_whole_numbers_on_one_side_is_named_before_their_reader)
