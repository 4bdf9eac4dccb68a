/* SPDX-License-Identifier: MIT
 *
 * test_frontier: which operators are named where the values of two programs part, forward, backward or by the
 * update.
 */
#include "tests/support/written_programs.h"

static const struct call plain_golden[CALLS] = {{"Functional.linear.0.forward", {1, 2}, 3},
                                                {"Functional.relu.0.forward", {3}, 4},
                                                {"Functional.linear.1.forward", {4, 5}, 6},
                                                {"Tensor.mean.0.forward", {6}, 7}};
static const struct call plain_target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                                {"Functional.relu.0.forward", {3}, 4},
                                                {"Functional.dense.1.forward", {4, 5}, 6},
                                                {"Tensor.mean.0.forward", {6}, 7}};
/* down(1.1 * relu(up(x))) */
static const struct call scaled_golden[CALLS] = {{"Functional.linear.0.forward", {1, 2}, 3},
                                                 {"Functional.relu.0.forward", {3}, 4},
                                                 {"Tensor.__mul__.0.forward", {4}, 14},
                                                 {"Functional.linear.1.forward", {14, 5}, 16},
                                                 {"Tensor.mean.0.forward", {16}, 17}};
static const struct call scaled_target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                                 {"Functional.relu.0.forward", {3}, 4},
                                                 {"Tensor.__mul__.0.forward", {4}, 14},
                                                 {"Functional.dense.1.forward", {14, 5}, 16},
                                                 {"Tensor.mean.0.forward", {16}, 17}};

START_TEST(an_operator_too_much_is_named)
{
    struct answer a = ask(plain_golden, scaled_target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.target, "Tensor.__mul__.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_EXTRA);
}
END_TEST

START_TEST(an_operator_too_little_is_named)
{
    struct answer a = ask(scaled_golden, plain_target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.golden, "Tensor.__mul__.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_MISSING);
}
END_TEST

START_TEST(an_operator_in_place_of_another_is_named_with_it)
{
    static const struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                              {"Functional.tanh.0.forward", {3}, 24},
                                              {"Functional.dense.1.forward", {24, 5}, 26},
                                              {"Tensor.mean.0.forward", {26}, 27}};
    struct answer a = ask(plain_golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.target, "Functional.tanh.0.forward");
    ck_assert_str_eq(a.golden, "Functional.relu.0.forward");
}
END_TEST

START_TEST(steps_inside_a_function_are_no_suspects)
{
    static const struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                              {"Primitive.Sigmoid.0.forward", {3}, 33},
                                              {"Primitive.Mul.0.forward", {3, 33}, 4},
                                              {"Functional.dense.1.forward", {4, 5}, 6},
                                              {"Tensor.mean.0.forward", {6}, 7}};
    ck_assert_uint_eq(ask(plain_golden, target).n, 0);
}
END_TEST

/* A function whose result is lost since it reads a lost value has steps that read none. */
START_TEST(steps_of_a_function_do_not_hide_what_it_reads)
{
    static const struct call golden[CALLS] = {{"Functional.linear.0.forward", {1, 2}, 3},
                                              {"Functional.sigmoid.0.forward", {9}, 8},
                                              {"Functional.swiglu.0.forward", {3, 8}, 4},
                                              {"Tensor.mean.0.forward", {4}, 7}};
    static const struct call target[CALLS] = {
        {"Functional.dense.0.forward", {1, 2}, 3}, {"Primitive.Exp.0.forward", {3}, 33},
        {"Primitive.Div.0.forward", {3, 33}, 34},  {"Functional.tanh.0.forward", {9}, 38},
        {"Primitive.Mul.0.forward", {34, 38}, 44}, {"Tensor.mean.0.forward", {44}, 47}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.target, "Functional.tanh.0.forward");
    ck_assert_str_eq(a.golden, "Functional.sigmoid.0.forward");
}
END_TEST

/* The target computes a loss without its second part, of which it runs nothing. */
START_TEST(a_missing_branch_is_named_where_it_ends)
{
    static const struct call golden[CALLS] = {
        {"Functional.linear.0.forward", {1, 2}, 3}, {"Tensor.sum.0.forward", {3}, 4},
        {"Functional.softmax.0.forward", {3}, 9},   {"Tensor.prod.0.forward", {9}, 10},
        {"Tensor.__add__.0.forward", {4, 10}, 11},  {"Tensor.__mul__.0.forward", {11}, 12}};
    static const struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                              {"Tensor.sum.0.forward", {3}, 4},
                                              {"Tensor.__mul__.0.forward", {4}, 22}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.golden, "Tensor.__add__.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_MISSING);
}
END_TEST

/* The steps read slices, which no dump of functions records, and the tokens of the last operator have
 * figures on one side alone. */
START_TEST(a_function_that_runs_as_steps_is_named_at_the_last_of_them)
{
    static const struct call golden[CALLS] = {
        {"Functional.linear.0.forward", {1, 2}, 3},
        {"Functional.scaled_dot_product_attention.0.forward", {3}, 4},
        {"Functional.linear.1.forward", {4, 5}, 6},
        {"Functional.cross_entropy.0.forward", {6, TOKENS}, 7}};
    static const struct call target[CALLS] = {
        {"Functional.dense.0.forward", {1, 2}, 3},
        {"Mint.matmul.0.forward", {30, 31}, 32},
        {"Mint.softmax.0.forward", {32}, 33},
        {"Mint.matmul.1.forward", {33, 34}, 44},
        {"Functional.dense.1.forward", {44, 5}, 46},
        {"Tensor.reshape.0.forward", {TOKENS}, TOKENS},
        {"Functional.cross_entropy.0.forward", {46, TOKENS}, 47}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.target, "Mint.matmul.1.forward");
    ck_assert_str_eq(a.golden, "Functional.scaled_dot_product_attention.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_VALUE);
}
END_TEST

/* Rounding to a low type decides which values are alike. */
START_TEST(values_of_low_precision_are_not_searched)
{
    dtype = "bfloat16";
    struct answer a = ask(plain_golden, scaled_target);
    dtype = "float32";
    ck_assert_int_ne(a.why, CMP_WHY_EXTRA);
}
END_TEST

/* The passes are the same; an operator of many names writes parameter 2 as 13. */
static const struct call trained_golden[CALLS] = {
    {"Functional.linear.0.forward", {1, 2}, 3}, {"Tensor.mean.0.forward", {3}, 4},
    {"Tensor.mean.0.backward", {10}, 11},       {"Functional.linear.0.backward", {11}, 12},
    {"Tensor.mul.0.forward", {12}, 20},         {"Tensor.add_.0.forward", {2, 20}, 13}};

START_TEST(an_update_is_named_by_its_result)
{
    static const struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                              {"Tensor.mean.0.forward", {3}, 4},
                                              {"Tensor.mean.0.backward", {10}, 11},
                                              {"Functional.dense.0.backward", {11}, 12},
                                              {"Primitive.SGD.0.forward", {2, 12}, 14}};
    struct answer a = ask(trained_golden, target);
    ck_assert_uint_eq(a.n, 1);
    ck_assert_str_eq(a.target, "Primitive.SGD.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_UPDATE);
}
END_TEST

START_TEST(an_update_in_other_steps_is_no_suspect)
{
    static const struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                              {"Tensor.mean.0.forward", {3}, 4},
                                              {"Tensor.mean.0.backward", {10}, 11},
                                              {"Functional.dense.0.backward", {11}, 12},
                                              {"Primitive.SGD.0.forward", {2, 12}, 13}};
    ck_assert_uint_eq(ask(trained_golden, target).n, 0);
}
END_TEST

/* mean(down(up(x))) */
static const struct call deep_golden[CALLS] = {
    {"Functional.linear.0.forward", {1, 2}, 3}, {"Functional.linear.1.forward", {3, 5}, 6},
    {"Tensor.mean.0.forward", {6}, 7},          {"Tensor.mean.0.backward", {10}, 11},
    {"Functional.linear.1.backward", {11}, 12}, {"Functional.linear.0.backward", {12}, 13}};

START_TEST(a_detached_value_is_named_where_gradients_part)
{
    static const struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                              {"Functional.dense.1.forward", {3, 5}, 6},
                                              {"Tensor.mean.0.forward", {6}, 7},
                                              {"Tensor.mean.0.backward", {10}, 11}};
    struct answer a = ask(deep_golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.golden, "Functional.linear.1.forward");
    ck_assert_int_eq(a.why, CMP_WHY_BRANCH);
}
END_TEST

/* The target detaches the exponential, so that its product has the other gradient alone. */
START_TEST(a_detached_value_is_named_by_what_made_it)
{
    static const struct call golden[CALLS] = {{"Functional.linear.0.forward", {1, 2}, 3},
                                              {"Functional.exp.0.forward", {3}, 4},
                                              {"Functional.linear.1.forward", {1, 5}, 7},
                                              {"Tensor.__mul__.0.forward", {4, 7}, 6},
                                              {"Tensor.mean.0.forward", {6}, 8},
                                              {"Tensor.mean.0.backward", {10}, 11},
                                              {"Tensor.__mul__.0.backward", {11, -13}, 22},
                                              {"Functional.linear.1.backward", {13}, 14},
                                              {"Functional.exp.0.backward", {22}, 25},
                                              {"Functional.linear.0.backward", {25}, 26}};
    static const struct call target[CALLS] = {
        {"Functional.dense.0.forward", {1, 2}, 3}, {"Functional.exp.0.forward", {3}, 4},
        {"Functional.dense.1.forward", {1, 5}, 7}, {"Tensor.__mul__.0.forward", {4, 7}, 6},
        {"Tensor.mean.0.forward", {6}, 8},         {"Tensor.mean.0.backward", {10}, 11},
        {"Tensor.__mul__.0.backward", {11}, 13},   {"Functional.dense.1.backward", {13}, 14}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.golden, "Functional.exp.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_BRANCH);
}
END_TEST

/* The target computes gradient 12 by others that the golden side does not have. */
START_TEST(gradients_inside_a_function_are_no_suspects)
{
    static const struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                              {"Functional.dense.1.forward", {3, 5}, 6},
                                              {"Tensor.mean.0.forward", {6}, 7},
                                              {"Tensor.mean.0.backward", {10}, 11},
                                              {"Primitive.Slice.0.backward", {11}, 31},
                                              {"Primitive.AddN.0.backward", {31}, 32},
                                              {"Functional.dense.1.backward", {11, 32}, 12},
                                              {"Functional.dense.0.backward", {12}, 13}};
    ck_assert_uint_eq(ask(deep_golden, target).n, 0);
}
END_TEST

/* Both sides have x times a sine and x times a cosine, and read one in place of the other. */
START_TEST(values_that_changed_places_are_named_where_they_are_chosen)
{
    static const struct call golden[CALLS] = {
        {"Tensor.__mul__.0.forward", {1, 2}, 3},    {"Tensor.__mul__.1.forward", {1, 4}, 5},
        {"Tensor.__sub__.0.forward", {3, 8}, 10},   {"Tensor.__add__.0.forward", {5, 8}, 11},
        {"Functional.cat.0.forward", {10, 11}, 12}, {"Tensor.mean.0.forward", {12}, 13}};
    static const struct call target[CALLS] = {
        {"Tensor.__mul__.0.forward", {1, 4}, 5},    {"Tensor.__mul__.1.forward", {1, 2}, 3},
        {"Tensor.__sub__.0.forward", {5, 8}, 20},   {"Tensor.__add__.0.forward", {3, 8}, 21},
        {"Functional.cat.0.forward", {20, 21}, 22}, {"Tensor.mean.0.forward", {22}, 23}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.target, "Tensor.__mul__.0.forward");
}
END_TEST

/* Nothing reads the first lost value; a graph does not run such an operator. */
START_TEST(an_operator_without_effect_is_not_named)
{
    static const struct call golden[CALLS] = {{"Functional.linear.0.forward", {1, 2}, 3},
                                              {"Functional.softmax.0.forward", {3}, 30},
                                              {"Functional.relu.0.forward", {3}, 4},
                                              {"Functional.linear.1.forward", {4, 5}, 6},
                                              {"Tensor.mean.0.forward", {6}, 7}};
    static const struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                              {"Functional.tanh.0.forward", {3}, 24},
                                              {"Functional.dense.1.forward", {24, 5}, 26},
                                              {"Tensor.mean.0.forward", {26}, 27}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.target, "Functional.tanh.0.forward");
    ck_assert_str_eq(a.golden, "Functional.relu.0.forward");
}
END_TEST

/* Nothing of the golden program needs the softmax, so that the graph does not compute it. What the second layer reads
 * comes from a function that the golden program does not record; the target has tanh in place of relu. */
START_TEST(a_result_that_a_graph_drops_is_not_named)
{
    static const struct call golden[CALLS] = {
        {"Functional.linear.0.forward", {1, 2}, 3}, {"Functional.softmax.0.forward", {3}, 30},
        {"Functional.relu.0.forward", {3}, 4},      {"Functional.linear.1.forward", {40, 5}, 6},
        {"Tensor.mean.0.forward", {6}, 7},          {"Tensor.mean.0.backward", {8}, 9},
        {"Functional.linear.1.backward", {9}, 10},  {"Functional.relu.0.backward", {10}, 11},
        {"Functional.linear.0.backward", {11}, 12}};
    static const struct call target[CALLS] = {
        {"Functional.dense.0.forward", {1, 2}, 3},     {"Functional.tanh.0.forward", {3}, 24},
        {"Functional.concat.0.forward", {24, 24}, 25}, {"Functional.dense.1.forward", {25, 5}, 26},
        {"Tensor.mean.0.forward", {26}, 27},           {"Tensor.mean.0.backward", {8}, 9},
        {"Functional.dense.1.backward", {9}, 10},      {"Functional.tanh.0.backward", {10}, 31},
        {"Functional.dense.0.backward", {31}, 32}};
    struct answer a = ask_graph(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.golden, "Functional.relu.0.forward");
    ck_assert_str_eq(a.target, "Functional.tanh.0.forward");
}
END_TEST

/* The target adds what it takes away again, and leaves relu and the addition out. */
START_TEST(a_lost_value_that_vanishes_is_named)
{
    static const struct call golden[CALLS] = {{"Functional.linear.0.forward", {1, 2}, 3},
                                              {"Functional.relu.0.forward", {3}, 4},
                                              {"Tensor.__add__.0.forward", {3, 4}, 6},
                                              {"Functional.linear.1.forward", {6, 5}, 7},
                                              {"Tensor.mean.0.forward", {7}, 8}};
    static const struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                              {"Functional.tanh.0.forward", {3}, 30},
                                              {"Tensor.__sub__.0.forward", {30, 3}, 3},
                                              {"Functional.dense.1.forward", {3, 5}, 26},
                                              {"Tensor.mean.0.forward", {26}, 27}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.target, "Functional.tanh.0.forward");
}
END_TEST

/* Statistics of the sum with a large mask do not show the scores beneath it. */
START_TEST(a_lost_value_beneath_a_mask_is_named)
{
    static const struct call golden[CALLS] = {{"Functional.linear.0.forward", {1, 2}, 3},
                                              {"Functional.relu.0.forward", {3}, 4},
                                              {"Tensor.__add__.0.forward", {4, 1999}, 2000},
                                              {"Functional.softmax.0.forward", {2000}, 6},
                                              {"Tensor.mean.0.forward", {6}, 7}};
    static const struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                              {"Functional.tanh.0.forward", {3}, 9},
                                              {"Tensor.__add__.0.forward", {9, 1999}, 2000},
                                              {"Functional.softmax.0.forward", {2000}, 16},
                                              {"Tensor.mean.0.forward", {16}, 17}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.target, "Functional.tanh.0.forward");
    ck_assert_str_eq(a.golden, "Functional.relu.0.forward");
}
END_TEST

/* The target goes on with one of two factors; what makes the other one runs on the golden side alone. */
START_TEST(a_factor_left_out_is_named_where_it_is_multiplied)
{
    static const struct call golden[CALLS] = {
        {"Functional.linear.0.forward", {1, 2}, 3}, {"Functional.tanh.0.forward", {3}, 4},
        {"Functional.exp.0.forward", {3}, 10},      {"Tensor.__mul__.0.forward", {4, 10}, 11},
        {"Tensor.__mul__.1.forward", {11, 8}, 12},  {"Tensor.mean.0.forward", {12}, 13}};
    static const struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                              {"Functional.tanh.0.forward", {3}, 4},
                                              {"Primitive.Mul.0.forward", {4, 8}, 22},
                                              {"Tensor.mean.0.forward", {22}, 23}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_ptr_ne(strstr(a.golden, "__mul__"), NULL);
}
END_TEST

/* The target's gradient of value 3 has another summand, as where a value is not detached any more. */
START_TEST(a_gradient_too_much_is_named_where_it_begins)
{
    static const struct call golden[CALLS] = {
        {"Functional.linear.0.forward", {1, 2}, 8}, {"Functional.conv2d.0.forward", {8, 9}, 3},
        {"Functional.linear.1.forward", {3, 5}, 6}, {"Tensor.mean.0.forward", {6}, 7},
        {"Tensor.mean.0.backward", {10}, 11},       {"Functional.linear.1.backward", {11}, 12},
        {"Functional.conv2d.0.backward", {12}, 13}, {"Functional.linear.0.backward", {13}, 14}};
    static const struct call target[CALLS] = {
        {"Functional.dense.0.forward", {1, 2}, 8}, {"Functional.dense.1.forward", {8, 9}, 3},
        {"Functional.dense.2.forward", {3, 5}, 6}, {"Tensor.mean.0.forward", {6}, 7},
        {"Tensor.mean.0.backward", {10}, 11},      {"Functional.dense.2.backward", {11}, 12},
        {"Primitive.Mul.0.backward", {11}, 40},    {"Primitive.AddN.0.backward", {12, 40}, 41},
        {"Primitive.Gather.0.backward", {41}, 42}, {"Functional.dense.0.backward", {42}, 43}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.target, "Primitive.Mul.0.backward");
    ck_assert_int_eq(a.why, CMP_WHY_BRANCH);
}
END_TEST

/* Both sides read a sine; the target makes it of another product, which no golden operator reads. */
START_TEST(a_step_before_an_equal_operator_is_named)
{
    static const struct call golden[CALLS] = {
        {"Functional.linear.0.forward", {1, 2}, 3},   {"Tensor.__mul__.0.forward", {3}, 9},
        {"Functional.sin.0.forward", {3}, 4},         {"Functional.sin.1.forward", {9}, 10},
        {"Functional.cos.0.forward", {9}, 11},        {"Functional.cat.0.forward", {4, 10}, 12},
        {"Functional.linear.1.forward", {12, 5}, 14}, {"Tensor.mean.0.forward", {14}, 15}};
    static const struct call target[CALLS] = {
        {"Functional.dense.0.forward", {1, 2}, 3},   {"Primitive.Mul.0.forward", {3}, 9},
        {"Primitive.Sin.0.forward", {3}, 4},         {"Primitive.Cos.0.forward", {9}, 11},
        {"Primitive.Mul.1.forward", {3}, 29},        {"Primitive.Sin.1.forward", {29}, 30},
        {"Primitive.Concat.0.forward", {4, 30}, 32}, {"Functional.dense.1.forward", {32, 5}, 34},
        {"Tensor.mean.0.forward", {34}, 35}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.target, "Primitive.Mul.1.forward");
}
END_TEST

START_TEST(a_parameter_that_a_kernel_changes_in_place_is_its_result)
{
    static const struct call golden[CALLS] = {
        {"Functional.linear.0.forward", {1, 2}, 3}, {"Tensor.mean.0.forward", {3}, 4},
        {"Tensor.mean.0.backward", {10}, 11},       {"Functional.linear.0.backward", {11}, 12},
        {"Tensor.lerp_.0.forward", {30, 12}, 21},   {"Tensor.lerp_.1.forward", {31, 12}, 22},
        {"Tensor.addcdiv_.0.forward", {2, 32}, 13}};
    struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                 {"Tensor.mean.0.forward", {3}, 4},
                                 {"Tensor.mean.0.backward", {10}, 11},
                                 {"Functional.dense.0.backward", {11}, 12},
                                 {"Primitive.Adam.0.forward", {13, 12}, 2000}};
    ck_assert_uint_eq(ask_graph(golden, target).n, 0);
    target[4].in[0] = 14;
    struct answer a = ask_graph(golden, target);
    ck_assert_uint_eq(a.n, 1);
    ck_assert_str_eq(a.target, "Primitive.Adam.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_UPDATE);
}
END_TEST

/* A logarithm amplifies the noise of two frameworks' kernels. */
START_TEST(noise_behind_a_logarithm_hides_no_operator)
{
    static const struct call golden[CALLS] = {{"Functional.linear.0.forward", {1, 2}, 3},
                                              {"Torch.log.0.forward", {3}, 1999},
                                              {"Functional.relu.0.forward", {1999}, 4},
                                              {"Functional.linear.1.forward", {4, 5}, 6},
                                              {"Tensor.mean.0.forward", {6}, 7}};
    static const struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                              {"Mint.log.0.forward", {3}, 2000},
                                              {"Functional.tanh.0.forward", {2000}, 14},
                                              {"Functional.dense.1.forward", {14, 5}, 16},
                                              {"Tensor.mean.0.forward", {16}, 17}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.golden, "Functional.relu.0.forward");
}
END_TEST

/* The target takes the difference of a value and a layer's result, not of what the layer makes of other data. */
START_TEST(an_operator_that_reads_the_wrong_value_is_named)
{
    static const struct call golden[CALLS] = {
        {"Functional.linear.0.forward", {1, 2}, 3}, {"Functional.linear.1.forward", {4, 2}, 6},
        {"Functional.relu.0.forward", {6}, 7},      {"Functional.sigmoid.0.forward", {4}, 10},
        {"Tensor.__sub__.0.forward", {8, 7}, 9},    {"Tensor.__mul__.0.forward", {9, 10}, 11},
        {"Tensor.mean.0.forward", {11}, 12}};
    static const struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                              {"Functional.sigmoid.0.forward", {4}, 10},
                                              {"Tensor.__sub__.0.forward", {8, 3}, 29},
                                              {"Tensor.__mul__.0.forward", {29, 10}, 31},
                                              {"Tensor.mean.0.forward", {31}, 32}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.golden, "Tensor.__sub__.0.forward");
}
END_TEST

/* max(x, 0.2 * x) for relu(x) */
START_TEST(a_function_of_two_steps_is_named_for_one_of_one)
{
    static const struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                              {"Primitive.Mul.0.forward", {3}, 24},
                                              {"Primitive.Maximum.0.forward", {24, 3}, 25},
                                              {"Functional.dense.1.forward", {25, 5}, 26},
                                              {"Tensor.mean.0.forward", {26}, 27}};
    struct answer a = ask(plain_golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.golden, "Functional.relu.0.forward");
}
END_TEST

/* The square of a root is what the root was taken of. */
START_TEST(an_operator_too_much_whose_result_both_have_is_named)
{
    static const struct call golden[CALLS] = {{"Functional.linear.0.forward", {1, 2}, 3},
                                              {"Torch.sqrt.0.forward", {3}, 4},
                                              {"Tensor.__truediv__.0.forward", {4, 5}, 6},
                                              {"Tensor.mean.0.forward", {6}, 7}};
    static const struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                              {"Mint.sqrt.0.forward", {3}, 4},
                                              {"Mint.square.0.forward", {4}, 3},
                                              {"Tensor.__truediv__.0.forward", {3, 5}, 26},
                                              {"Tensor.mean.0.forward", {26}, 27}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.target, "Mint.square.0.forward");
}
END_TEST

TEST_MAIN("frontier", an_operator_that_reads_the_wrong_value_is_named,
          a_function_of_two_steps_is_named_for_one_of_one,
          an_operator_too_much_whose_result_both_have_is_named,
          values_of_low_precision_are_not_searched, an_operator_too_much_is_named,
          an_operator_too_little_is_named, an_operator_in_place_of_another_is_named_with_it,
          steps_inside_a_function_are_no_suspects, steps_of_a_function_do_not_hide_what_it_reads,
          a_missing_branch_is_named_where_it_ends, an_update_is_named_by_its_result,
          an_update_in_other_steps_is_no_suspect, a_detached_value_is_named_where_gradients_part,
          a_detached_value_is_named_by_what_made_it, gradients_inside_a_function_are_no_suspects,
          a_function_that_runs_as_steps_is_named_at_the_last_of_them,
          values_that_changed_places_are_named_where_they_are_chosen,
          an_operator_without_effect_is_not_named, a_result_that_a_graph_drops_is_not_named,
          a_lost_value_that_vanishes_is_named, a_lost_value_beneath_a_mask_is_named,
          a_factor_left_out_is_named_where_it_is_multiplied,
          a_gradient_too_much_is_named_where_it_begins,
          a_parameter_that_a_kernel_changes_in_place_is_its_result,
          noise_behind_a_logarithm_hides_no_operator, a_step_before_an_equal_operator_is_named)
