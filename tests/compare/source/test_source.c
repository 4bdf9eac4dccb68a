/* SPDX-License-Identifier: MIT
 *
 * test_source: each rule of the error source on the smallest pair of runs that shows it.
 */
#include "tests/support/model_runs.h"

START_TEST(equal_runs_have_no_suspect)
{
    struct run g = model(), t = model();
    ck_assert_uint_eq(ask(&g, &t).n, 0);
}
END_TEST

START_TEST(a_side_that_recorded_nothing_accuses_nobody)
{
    struct run g = model(), nothing = plain();
    ck_assert_uint_eq(ask(&g, &nothing).n, 0);
    ck_assert_uint_eq(ask(&nothing, &g).n, 0);
}
END_TEST

START_TEST(the_first_operator_that_differs_is_named)
{
    struct run g = model(), t = model();
    spoil(&t, 3, 3, 0.05);
    spoil(&t, 5, 7, 0.05);
    t.err[9] = t.err[11] = t.err[12] = 0.05;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.gelu.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_VALUE);
    ck_assert_uint_eq(a.n, 1);
    ck_assert_ptr_nonnull(strstr(a.text, "inputs agree exactly"));
    ck_assert_ptr_nonnull(strstr(a.text, "later nodes only propagate it"));
    ck_assert_str_eq(a.pattern, "scaled by 1.05");
}
END_TEST

START_TEST(a_small_difference_early_beats_a_larger_one_late)
{
    struct run g = model(), t = model();
    t.err[3] = 0.01;
    t.err[5] = t.err[6] = 0.01;
    t.err[7] = 0.3;
    t.err[9] = t.err[11] = t.err[12] = 0.3;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.gelu.0.forward");
    ck_assert_str_eq(a.name[1], "Functional.softmax.0.forward");
}
END_TEST

/* What reaches an operator may differ more than its statistics show. */
START_TEST(what_an_earlier_suspect_made_explains_a_little_more)
{
    struct run g = model(), t = model();
    t.err[3] = 0.05;
    t.err[5] = t.err[6] = 0.01;
    t.err[7] = t.err[9] = t.err[11] = t.err[12] = 0.05;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.gelu.0.forward");
    ck_assert_uint_eq(a.n, 1);
    t.err[7] = t.err[9] = t.err[11] = t.err[12] = 0.5; /* so much more is not explained */
    ck_assert_str_eq(ask(&g, &t).name[1], "Functional.softmax.0.forward");
}
END_TEST

START_TEST(equal_statistics_by_chance_are_no_precedent)
{
    struct run g = model(), t = model();
    t.err[5] = t.err[6] = t.err[7] = t.err[9] = t.err[11] = t.err[12] = 1.7e-7;
    ck_assert_uint_eq(ask(&g, &t).n, 0);
    t.err[5] = t.err[6] = t.err[7] = t.err[9] = t.err[11] = t.err[12] = 6e-7;
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.linear.1.forward");
}
END_TEST

/* Statistics of values in another order are equal, or equal but for the order of summation; what
 * mixes the elements next shows it, though nothing seems to come in. */
START_TEST(another_order_is_named_by_the_operator_that_made_it)
{
    struct run g = model(), t = model();
    t.sums[2] = 3e-8;
    t.err[5] = t.err[6] = t.err[7] = t.err[9] = t.err[11] = t.err[12] = 0.3;
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.linear.0.forward");
    t.sums[3] = 2e-8;
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.linear.0.forward");
    t.err[3] = 2e-8; /* other elements: noise, and no order */
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.linear.1.forward");
}
END_TEST

START_TEST(another_argument_has_an_effect_where_the_norm_alone_moves)
{
    struct run g = model(), t = model();
    g.low = t.low = true;
    t.call[4].scalar = "-2.0";
    t.err[9] = t.err[11] = t.err[12] = 0.3;
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.linear.2.forward");
    t.sums[7] = 5e-3;
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.softmax.0.forward");
}
END_TEST

START_TEST(noise_on_everything_is_no_suspect_and_hides_no_fault)
{
    struct run g = model(), t = model();
    for (int i = 0; i < VALUES; i++)
        t.err[i] = 1e-5 * (1 + (i * 7) % 5);
    ck_assert_uint_eq(ask(&g, &t).n, 0);
    t.err[7] = t.err[9] = t.err[11] = t.err[12] = 0.01;
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.softmax.0.forward");
}
END_TEST

START_TEST(the_first_norm_moves_as_much_as_what_the_runs_start_with)
{
    static const int parameters[] = {1, 4, 8, 10};
    struct run g = model(), t = model();
    for (unsigned i = 0; i < 4; i++) {
        t.err[parameters[i]] = 1e-3;
        t.sums[parameters[i]] = -1e-3;
    }
    t.err[2] = t.err[3] = t.err[5] = t.err[6] = t.err[7] = t.err[9] = t.err[11] = t.err[12] = 8e-4;
    ck_assert_uint_eq(ask(&g, &t).n, 0);
    t.err[2] = t.err[3] = t.err[5] = t.err[6] = t.err[7] = t.err[9] = t.err[11] = t.err[12] = 8e-3;
    ck_assert_str_eq(ask(&g, &t).undecided,
                     "Functional.linear.0.forward"); /* eight times as far apart */
}
END_TEST

START_TEST(a_parameter_that_differs_is_named_by_its_reader)
{
    struct run g = model(), t = model();
    t.err[4] = 0.02;
    t.err[5] = t.err[6] = t.err[7] = t.err[9] = t.err[11] = t.err[12] = 0.02;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.linear.1.forward");
    ck_assert_int_eq(a.why, CMP_WHY_PARAMETER);
    ck_assert_ptr_nonnull(strstr(a.text, "input.1 is a parameter"));
}
END_TEST

START_TEST(other_data_is_named_where_it_comes_in)
{
    struct run g = model(), t = model();
    t.err[0] = 0.1;
    t.err[2] = t.err[3] = t.err[5] = t.err[6] = t.err[7] = 0.1;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.linear.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_INPUT);
}
END_TEST

START_TEST(the_first_nan_is_named)
{
    struct run g = model(), t = model();
    spoil(&t, 5, 7, NAN);
    t.err[9] = t.err[11] = t.err[12] = NAN;
    spoil(&t, 20, 25, NAN);
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.linear.1.forward");
    ck_assert_int_eq(a.why, CMP_WHY_FLAG);
    ck_assert_uint_eq(a.n, 1); /* a gradient without a maker is its consequence */
}
END_TEST

START_TEST(nan_on_both_sides_is_no_difference)
{
    struct run g = model(), t = model();
    g.err[6] = t.err[6] = NAN;
    ck_assert_uint_eq(ask(&g, &t).n, 0);
}
END_TEST

START_TEST(a_forward_difference_explains_the_backward_pass)
{
    struct run g = model(), t = model();
    t.err[7] = t.err[9] = t.err[11] = t.err[12] = 0.02;
    spoil(&t, 20, 25, 0.06);
    t.err[20] = 0;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.softmax.0.forward");
}
END_TEST

START_TEST(a_gradient_that_alone_differs_is_named)
{
    struct run g = model(), t = model();
    spoil(&t, 23, 25, 0.1);
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.linear.2.backward");
}
END_TEST

START_TEST(what_hands_gradients_on_makes_them_no_worse)
{
    struct run g = model(), t = model();
    g.low = t.low = true;
    t.err[2] = 4e-3;
    t.err[25] =
        -(t.sums[25] = -0.03); /* eight units: an activation may do that, a change of layout not */
    g.call[12].name = t.call[12].name = "Functional.gelu.1.backward";
    ck_assert_str_eq(ask(&g, &t).undecided, "");
    ck_assert_uint_eq(ask(&g, &t).n, 0);
    g.call[12].name = t.call[12].name = "Tensor.transpose.0.backward";
    ck_assert_str_eq(ask(&g, &t).undecided, "Tensor.transpose.0.backward");
}
END_TEST

START_TEST(a_turned_sign_is_told)
{
    struct run g = model(), t = model();
    t.err[7] = -2;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.softmax.0.forward");
    ck_assert_str_eq(a.pattern, "sign flipped");
    t.err[7] = 1;
    ck_assert_str_eq(ask(&g, &t).pattern, "scaled by 2");
}
END_TEST

/* ---- wiring and structure ------------------------------------------------------ */

START_TEST(equal_updates_have_no_suspect)
{
    struct run g = trained(3), t = trained(3);
    ck_assert_uint_eq(ask(&g, &t).n, 0);
}
END_TEST

START_TEST(a_gradient_changed_after_backward_is_named_where_it_is_used)
{
    struct run g = trained(2), t = trained(2);
    g.call[14].in[0] = t.call[14].in[0] = 40; /* made by no operator */
    t.err[40] = 0.5;
    t.err[33] = 0.05;
    struct answer a = ask(&g, &t);
    ck_assert_uint_eq(a.n, 1);
    ck_assert_str_eq(a.name[0], "Tensor.add_.1.forward");
    ck_assert_int_eq(a.why, CMP_WHY_INPUT);
}
END_TEST

START_TEST(a_step_that_one_side_alone_makes_is_named)
{
    struct run g = trained(2), t = trained(3);
    struct answer a = ask(&g, &t);
    ck_assert_uint_eq(a.n, 1);
    ck_assert_str_eq(a.name[0], "Tensor.add_.2.forward");
    ck_assert_int_eq(a.why, CMP_WHY_EXTRA);
    a = ask(&t, &g);
    ck_assert_str_eq(a.name[0], "Tensor.add_.2.forward");
    ck_assert_int_eq(a.why, CMP_WHY_MISSING);
}
END_TEST

/* An optimizer that is one operator leaves no record. */
START_TEST(a_side_without_recorded_updates_accuses_nobody)
{
    struct run g = trained(0), t = trained(3);
    ck_assert_uint_eq(ask(&g, &t).n, 0);
}
END_TEST

START_TEST(an_input_from_another_operator_is_named)
{
    struct run g = model(), t = model();
    t.call[5].in[0] = 6; /* linear.2 reads what relu wrote, not softmax */
    t.err[9] = t.err[11] = t.err[12] = 0.4;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.linear.2.forward");
    ck_assert_int_eq(a.why, CMP_WHY_WIRING);
    ck_assert_ptr_nonnull(
        strstr(a.text, "comes from Functional.relu.0.forward on the target side"));
}
END_TEST

START_TEST(a_missing_operator_with_effect_is_named)
{
    struct run g = model(), t = model();
    t.call[5].in[0] = 6;
    remove_call(&t, 4); /* softmax */
    t.err[9] = t.err[11] = t.err[12] = 0.4;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.softmax.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_MISSING);
    ck_assert_ptr_nonnull(strstr(a.text, "missing from the target"));
}
END_TEST

START_TEST(a_missing_mask_is_told)
{
    struct run g = model(), t = model();
    g.call[4].name = t.call[4].name = "Tensor.masked_fill.0.forward";
    t.call[5].in[0] = 6;
    remove_call(&t, 4);
    t.err[9] = t.err[11] = t.err[12] = 0.4;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Tensor.masked_fill.0.forward");
    ck_assert_str_eq(a.pattern, "mask missing");
}
END_TEST

START_TEST(a_cast_and_back_is_named_though_types_differ_everywhere)
{
    struct run g = model(), t = model();
    for (unsigned i = 0; t.call[i].name != NULL; i++)
        t.call[i].dtype = "bfloat16";
    memmove(&t.call[4], &t.call[2], (CALLS - 4) * sizeof t.call[0]);
    t.call[2] =
        (struct call){"Tensor.to.0.forward", {3, NOTHING, NOTHING}, 40, "\"float16\"", "float16"};
    t.call[3] =
        (struct call){"Tensor.to.1.forward", {40, NOTHING, NOTHING}, 3, "\"bfloat16\"", "bfloat16"};
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Tensor.to.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_EXTRA);
    t.call[3].in[0] = 3; /* two casts apart from each other: that is how the target computes */
    ck_assert_uint_eq(ask(&g, &t).n, 0);
}
END_TEST

START_TEST(an_operator_more_without_effect_is_a_note)
{
    struct run g = model(), t = model();
    memmove(&t.call[3], &t.call[2], (CALLS - 3) * sizeof t.call[0]);
    t.call[2] = (struct call){"Tensor.clone.0.forward", {3, NOTHING, NOTHING}, 3, NULL, NULL};
    struct answer a = ask(&g, &t);
    ck_assert_uint_eq(a.n, 0);
    ck_assert_str_eq(a.note, "the target alone runs clone; values behind it agree exactly");
    t.err[7] = t.err[9] = 0.2;
    a = ask(&g, &t);
    ck_assert_uint_eq(a.n, 1);
    ck_assert_str_eq(a.name[0], "Functional.softmax.0.forward");
}
END_TEST

START_TEST(another_operator_with_the_same_values_is_a_note)
{
    struct run g = model(), t = model();
    memmove(&t.call[4], &t.call[3], (CALLS - 4) * sizeof t.call[0]);
    t.call[3] = (struct call){"Tensor.neg.0.forward", {5, NOTHING, NOTHING}, 40, NULL, NULL};
    t.call[4] = (struct call){"Tensor.clamp.0.forward", {40, NOTHING, NOTHING}, 6, NULL, NULL};
    struct answer a = ask(&g, &t);
    ck_assert_uint_eq(a.n, 0);
    ck_assert_str_eq(a.note, "the target runs neg, clamp where the golden side runs relu; values "
                             "behind it agree exactly");
    t.err[6] = t.err[7] = t.err[9] = t.err[11] = t.err[12] = 0.1;
    a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.relu.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_MISSING);
}
END_TEST

START_TEST(an_operator_that_is_computed_again_is_a_note)
{
    struct run g = model(), t = model();
    unsigned last = 0;
    while (t.call[last].name != NULL)
        last++;
    memmove(&t.call[10], &t.call[9], (last - 9) * sizeof t.call[0]);
    t.call[9] = (struct call){"Functional.gelu.1.forward", {2, NOTHING, NOTHING}, 3, NULL, NULL};
    struct answer a = ask(&g, &t);
    ck_assert_uint_eq(a.n, 0);
    ck_assert_str_eq(a.note, "the target runs 1 forward operator again during backward (activation "
                             "checkpointing); it repeats the values of the first run");
}
END_TEST

/* A part of the loss that no recorded operator reads has its effect through its gradient. */
START_TEST(an_operator_more_with_a_backward_alone_is_named)
{
    struct run g = model(), t = model();
    memmove(&t.call[3], &t.call[2], (CALLS - 3) * sizeof t.call[0]);
    t.call[2] = (struct call){"Tensor.clone.0.forward", {3, NOTHING, NOTHING}, 50, NULL, NULL};
    ck_assert_uint_eq(ask(&g, &t).n, 0);
    unsigned last = 0;
    while (t.call[last].name != NULL)
        last++;
    t.call[last] = (struct call){"Tensor.clone.0.backward", {51, NOTHING, NOTHING}, 52, NULL, NULL};
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Tensor.clone.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_EXTRA);
}
END_TEST

/* Parts of a value are cut from the graph and joined again: values agree, the gradient behind them does not. */
START_TEST(an_operator_that_passes_a_value_without_its_gradient_is_named)
{
    struct run g = model(), t = model();
    g.call[13] =
        (struct call){"Functional.linear.1.backward", {25, NOTHING, NOTHING}, 26, NULL, NULL};
    t.call[13] =
        (struct call){"Functional.linear.1.backward", {27, NOTHING, NOTHING}, 28, NULL, NULL};
    memmove(&t.call[4], &t.call[3], (CALLS - 4) * sizeof t.call[0]);
    t.call[3] = (struct call){"Torch.cat.0.forward", {40, 41, NOTHING}, 5, NULL, NULL};
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Torch.cat.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_EXTRA);
}
END_TEST

/* A module whose operator no dump records, as rms_norm, does the work itself. */
START_TEST(a_module_without_recorded_operators_is_named)
{
    struct run g = model(), t = model();
    memmove(&g.call[4], &g.call[3], (CALLS - 4) * sizeof g.call[0]);
    g.call[3] =
        (struct call){"Module.norm.RMSNorm.forward.0", {5, NOTHING, NOTHING}, 40, NULL, NULL};
    g.call[4].in[0] = 40;
    memcpy(t.call, g.call, sizeof t.call);
    ck_assert_uint_eq(ask(&g, &t).n, 0);
    spoil(&t, 6, 7, 0.05);
    t.err[40] = t.err[9] = t.err[11] = t.err[12] = 0.05;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Module.norm.RMSNorm.forward.0");
    ck_assert_int_eq(a.why, CMP_WHY_VALUE);
}
END_TEST

/* ---- attributes ------------------------------------------------------------------ */

START_TEST(another_type_shape_or_argument_is_named)
{
    struct run g = model(), t = model();
    t.call[3].dtype = "bfloat16";
    ck_assert_int_eq(ask(&g, &t).why, CMP_WHY_DTYPE);
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.relu.0.forward");
    t = model();
    t.odd = 7;
    t.shape = "[16, 8]";
    ck_assert_int_eq(ask(&g, &t).why, CMP_WHY_SHAPE);
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.softmax.0.forward");
    t.shape = NULL;
    t.grad = "false";
    ck_assert_int_eq(ask(&g, &t).why, CMP_WHY_GRAD);
}
END_TEST

START_TEST(another_argument_is_told_with_both_values)
{
    struct run g = model(), t = model();
    t.call[6].scalar = "0.001";
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.layer_norm.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_SCALAR);
    ck_assert_str_eq(a.pattern, "eps differs");
    ck_assert_ptr_nonnull(strstr(a.text, "0.001 on the target side and 1e-05 on the golden side"));
    t.call[6].scalar = "0.00001";
    ck_assert_uint_eq(ask(&g, &t).n, 0);
}
END_TEST

START_TEST(an_argument_of_one_side_alone_counts)
{
    struct run g = model(), t = model();
    t.call[1].scalar = "1.0";
    ck_assert_uint_eq(ask(&g, &t).n, 0); /* its default, as far as values tell */
    spoil(&t, 3, 12, 0.01);
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.gelu.0.forward");
    ck_assert_ptr_nonnull(strstr(a.text, "absent on the golden side"));
}
END_TEST

START_TEST(another_precision_everywhere_is_nobodys_fault)
{
    struct run g = model(), t = model();
    for (unsigned i = 0; t.call[i].name != NULL; i++)
        t.call[i].dtype = "bfloat16";
    g.call[7].scalar = "\"torch.float32\""; /* a cast to what the run computes in */
    t.call[7].scalar = "\"torch.bfloat16\"";
    ck_assert_uint_eq(ask(&g, &t).n, 0);
}
END_TEST

/* A chain of products and normalizations, of which the normalizations run in float16. */
START_TEST(normalizations_alone_are_not_chosen_for_a_low_type)
{
    enum { PAIRS = 6 };
    char name[2 * PAIRS][40];
    struct run g = plain(), t;
    for (int i = 0; i < 2 * PAIRS; i++) {
        snprintf(name[i], sizeof name[i], "Functional.%s.%d.forward",
                 i % 2 == 0 ? "linear" : "layer_norm", i / 2);
        g.call[i] = (struct call){name[i], {i, 20 + i, NOTHING}, i + 1, NULL, NULL};
    }
    t = g;
    for (int i = 1; i < 2 * PAIRS; i += 2)
        t.call[i].dtype = "float16";
    spoil(&t, 2, 2 * PAIRS, 3e-4);
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.layer_norm.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_VALUE);
}
END_TEST

START_TEST(noise_of_a_second_run_explains_as_much)
{
    struct fixture f;
    struct cmp_source *s;
    struct run g = model(), t = model(), n = model();
    char noise[128];
    t.err[7] = 0.02;
    n.err[7] = 0.01;
    fixture_init(&f);
    snprintf(noise, sizeof noise, "%s/n/dump.json", f.dir);
    write_run(&f, 'n', &n);
    f.conf.noise_floor = noise;
    f.conf.noise_step = f.conf.noise_rank = -1;
    ck_ok(cmp_source_new(&s, &f.err), f.err);
    add_pair(&f, s, &g, &t, 0, 0);
    ck_ok(cmp_source_find(s, &f.err), f.err);
    ck_assert_uint_eq(answer_of(s).n, 0);
    cmp_source_free(s);
    fixture_free(&f);
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.softmax.0.forward");
}
END_TEST

TEST_MAIN(
    "source", equal_runs_have_no_suspect, a_side_that_recorded_nothing_accuses_nobody,
    the_first_operator_that_differs_is_named, a_small_difference_early_beats_a_larger_one_late,
    what_an_earlier_suspect_made_explains_a_little_more,
    equal_statistics_by_chance_are_no_precedent,
    another_order_is_named_by_the_operator_that_made_it,
    another_argument_has_an_effect_where_the_norm_alone_moves,
    noise_on_everything_is_no_suspect_and_hides_no_fault,
    the_first_norm_moves_as_much_as_what_the_runs_start_with,
    a_parameter_that_differs_is_named_by_its_reader, other_data_is_named_where_it_comes_in,
    the_first_nan_is_named, nan_on_both_sides_is_no_difference,
    a_forward_difference_explains_the_backward_pass, a_gradient_that_alone_differs_is_named,
    what_hands_gradients_on_makes_them_no_worse, a_turned_sign_is_told,
    equal_updates_have_no_suspect, a_gradient_changed_after_backward_is_named_where_it_is_used,
    a_step_that_one_side_alone_makes_is_named, a_side_without_recorded_updates_accuses_nobody,
    an_input_from_another_operator_is_named, a_missing_operator_with_effect_is_named,
    a_missing_mask_is_told, a_cast_and_back_is_named_though_types_differ_everywhere,
    an_operator_more_without_effect_is_a_note, another_operator_with_the_same_values_is_a_note,
    an_operator_that_is_computed_again_is_a_note, an_operator_more_with_a_backward_alone_is_named,
    an_operator_that_passes_a_value_without_its_gradient_is_named,
    a_module_without_recorded_operators_is_named, another_type_shape_or_argument_is_named,
    another_argument_is_told_with_both_values, an_argument_of_one_side_alone_counts,
    another_precision_everywhere_is_nobodys_fault,
    normalizations_alone_are_not_chosen_for_a_low_type, noise_of_a_second_run_explains_as_much)
