/* SPDX-License-Identifier: MIT
 *
 * test_front_partners: which operators are partners where the values of two programs part, and which differences are
 * another way to compute the same.
 */
#include "tests/support/written_programs.h"

/* ---- partners -------------------------------------------------------------- */

/* The loss has three parts, all single numbers; the target lacks one of them and what adds it. */
START_TEST(a_sum_of_single_numbers_is_named_where_a_part_is_missing)
{
    static const struct call golden[CALLS] = {
        {"Functional.linear.0.forward", {1, 2}, 3},
        {"Functional.square.0.forward", {3}, 4},
        {"Tensor.mean.0.forward", {3}, SINGLE + 60},
        {"Tensor.mean.1.forward", {4}, SINGLE + 20},
        {"Tensor.mean.2.forward", {1}, SINGLE + 40},
        {"Tensor.__add__.0.forward", {SINGLE + 20, SINGLE + 60}, SINGLE + 100},
        {"Tensor.__add__.1.forward", {SINGLE + 100, SINGLE + 40}, SINGLE + 120}};
    static const struct call target[CALLS] = {
        {"Functional.dense.0.forward", {1, 2}, 3},
        {"Functional.square.0.forward", {3}, 4},
        {"Tensor.mean.0.forward", {4}, SINGLE + 20},
        {"Tensor.mean.1.forward", {1}, SINGLE + 40},
        {"Tensor.__add__.0.forward", {SINGLE + 20, SINGLE + 40}, SINGLE + 140}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.golden, "Tensor.__add__.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_MISSING);
}
END_TEST

/* The steps of gelu run before the normalization, not behind it. */
START_TEST(an_operator_that_changed_places_is_named_itself)
{
    static const struct call golden[CALLS] = {
        {"Functional.linear.0.forward", {1, 2}, 3}, {"Functional.layer_norm.0.forward", {3, 9}, 4},
        {"Module.norm.Norm.forward.0", {3, 9}, 4},  {"Functional.gelu.0.forward", {4}, 6},
        {"Functional.linear.1.forward", {6, 5}, 7}, {"Tensor.mean.0.forward", {7}, 8}};
    static const struct call target[CALLS] = {
        {"Functional.dense.0.forward", {1, 2}, 3}, {"Primitive.Erf.0.forward", {3}, 14},
        {"Primitive.Mul.0.forward", {3, 14}, 15},  {"Primitive.LayerNorm.0.forward", {15, 9}, 16},
        {"Cell.norm.Norm.forward.0", {15, 9}, 16}, {"Functional.dense.1.forward", {16, 5}, 17},
        {"Tensor.mean.0.forward", {17}, 18}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.target, "Primitive.LayerNorm.0.forward");
    ck_assert_str_eq(a.golden, "Functional.layer_norm.0.forward");
}
END_TEST

/* The normalization runs behind the tangent, and its results are nearly alike. */
START_TEST(an_operator_with_other_inputs_is_no_noise)
{
    static const struct call golden[CALLS] = {{"Functional.linear.0.forward", {1, 2}, 3},
                                              {"Functional.layer_norm.0.forward", {3}, 14},
                                              {"Functional.tanh.0.forward", {14}, 20},
                                              {"Functional.linear.1.forward", {20, 5}, 7},
                                              {"Tensor.mean.0.forward", {7}, 8}};
    static const struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                              {"Functional.tanh.0.forward", {3}, 200},
                                              {"Functional.layer_norm.0.forward", {200}, 16},
                                              {"Functional.dense.1.forward", {16, 5}, 17},
                                              {"Tensor.mean.0.forward", {17}, 18}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.target, "Functional.layer_norm.0.forward");
    ck_assert_str_eq(a.golden, "Functional.layer_norm.0.forward");
}
END_TEST

/* A graph repeats a factor for each sample before a product; the product is another one. */
START_TEST(elements_repeated_before_a_product_are_part_of_it)
{
    static const struct call golden[CALLS] = {{"Functional.tanh.0.forward", {1}, 3},
                                              {"Functional.matmul.0.forward", {3, 2}, 4},
                                              {"Functional.relu.0.forward", {4}, 6},
                                              {"Tensor.mean.0.forward", {6}, 7}};
    static const struct call target[CALLS] = {
        {"Functional.tanh.0.forward", {1}, 3},
        {"Primitive.BroadcastTo.0.forward", {2}, REPEATED + 2},
        {"Primitive.BatchMatMul.0.forward", {3, REPEATED + 2}, 14},
        {"Functional.relu.0.forward", {14}, 16},
        {"Tensor.mean.0.forward", {16}, 17}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.target, "Primitive.BatchMatMul.0.forward");
    ck_assert_str_eq(a.golden, "Functional.matmul.0.forward");
}
END_TEST

/* The target runs one of two layers before the other, and leaves out the tangent between them. */
START_TEST(an_operator_between_partners_in_another_order_is_named)
{
    static const struct call golden[CALLS] = {
        {"Functional.linear.0.forward", {1, 2}, 3}, {"Module.gate.Linear.forward.0", {1, 2}, 3},
        {"Functional.tanh.0.forward", {3}, 4},      {"Functional.linear.1.forward", {1, 5}, 6},
        {"Module.up.Linear.forward.0", {1, 5}, 6},  {"Tensor.__mul__.0.forward", {4, 6}, 7},
        {"Tensor.mean.0.forward", {7}, 8}};
    static const struct call target[CALLS] = {
        {"Functional.dense.0.forward", {1, 5}, 6}, {"Cell.up.Dense.forward.0", {1, 5}, 6},
        {"Functional.dense.1.forward", {1, 2}, 3}, {"Cell.gate.Dense.forward.0", {1, 2}, 3},
        {"Tensor.__mul__.0.forward", {3, 6}, 17},  {"Tensor.mean.0.forward", {17}, 18}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.golden, "Functional.tanh.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_MISSING);
}
END_TEST

/* Both layers read value 1; the target leaves the first one and the product with its result out. */
START_TEST(a_layer_with_another_parameter_is_no_partner)
{
    static const struct call golden[CALLS] = {
        {"Functional.linear.0.forward", {1, 2}, 3}, {"Module.turn.Linear.forward.0", {1, 2}, 3},
        {"Functional.tanh.0.forward", {3}, 4},      {"Functional.bmm.0.forward", {1, 4}, 6},
        {"Functional.linear.1.forward", {6, 5}, 7}, {"Module.each.Linear.forward.0", {6, 5}, 7},
        {"Tensor.mean.0.forward", {7}, 8}};
    static const struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 5}, 17},
                                              {"Cell.each.Dense.forward.0", {1, 5}, 17},
                                              {"Tensor.mean.0.forward", {17}, 18}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.golden, "Functional.bmm.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_MISSING);
}
END_TEST

/* A graph runs a layer as a product. The target leaves out the product of a value with itself before the layer. */
START_TEST(a_product_of_a_layer_is_no_partner_of_a_product_without_parameter)
{
    static const struct call golden[CALLS] = {{"Functional.relu.0.forward", {1}, 3},
                                              {"Functional.matmul.0.forward", {3, 3}, 4},
                                              {"Functional.linear.0.forward", {4, 2}, 6},
                                              {"Module.one.Linear.forward.0", {4, 2}, 6},
                                              {"Tensor.mean.0.forward", {6}, 7}};
    static const struct call target[CALLS] = {{"Primitive.ReLU.0.forward", {1}, 3},
                                              {"Primitive.MatMul.0.forward", {3, 2}, 16},
                                              {"Cell.one.Dense.forward.0", {3, 2}, 16},
                                              {"Primitive.ReduceMean.0.forward", {16}, 17}};
    struct answer a = ask_graph(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.golden, "Functional.matmul.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_MISSING);
}
END_TEST

/* The layer is called before the product that is left out, too: the second product of the target is the second
 * call. */
START_TEST(calls_of_a_layer_are_partners_in_their_order)
{
    static const struct call golden[CALLS] = {
        {"Functional.linear.0.forward", {1, 2}, 3}, {"Module.one.Linear.forward.0", {1, 2}, 3},
        {"Functional.matmul.0.forward", {3, 3}, 4}, {"Functional.linear.1.forward", {4, 2}, 6},
        {"Module.one.Linear.forward.1", {4, 2}, 6}, {"Tensor.mean.0.forward", {6}, 7}};
    static const struct call target[CALLS] = {{"Primitive.MatMul.0.forward", {1, 2}, 3},
                                              {"Cell.one.Dense.forward.0", {1, 2}, 3},
                                              {"Primitive.MatMul.1.forward", {3, 2}, 16},
                                              {"Cell.one.Dense.forward.1", {3, 2}, 16},
                                              {"Primitive.ReduceMean.0.forward", {16}, 17}};
    struct answer a = ask_graph(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.golden, "Functional.matmul.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_MISSING);
}
END_TEST

/* The graph runs the second layer first, and records no cells. It doubles what the first layer reads. */
START_TEST(layers_in_another_order_are_partners_by_their_parameters)
{
    static const struct call golden[CALLS] = {
        {"Functional.linear.0.forward", {1, 2}, 3}, {"Module.one.Linear.forward.0", {1, 2}, 3},
        {"Functional.linear.1.forward", {1, 5}, 4}, {"Module.two.Linear.forward.0", {1, 5}, 4},
        {"Functional.cat.0.forward", {3, 4}, 6},    {"Tensor.mean.0.forward", {6}, 7}};
    static const struct call target[CALLS] = {{"Primitive.Mul.0.forward", {1, 9}, 11},
                                              {"Primitive.MatMul.0.forward", {1, 5}, 4},
                                              {"Primitive.MatMul.1.forward", {11, 2}, 13},
                                              {"Primitive.Concat.0.forward", {13, 4}, 16},
                                              {"Primitive.ReduceMean.0.forward", {16}, 17}};
    struct answer a = ask_graph(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.target, "Primitive.Mul.0.forward");
    ck_assert_str_eq(a.golden, "");
    ck_assert_int_eq(a.why, CMP_WHY_EXTRA);
}
END_TEST

/* The target leaves out the negation before a loss, of which a step subtracts as well. */
START_TEST(an_operator_that_reads_another_tensor_is_no_partner)
{
    static const struct call golden[CALLS] = {{"Functional.linear.0.forward", {1, 2}, 3},
                                              {"Tensor.__rsub__.0.forward", {3}, 4},
                                              {"Functional.cross_entropy.0.forward", {4}, 7}};
    static const struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                              {"Primitive.ReduceMax.0.forward", {3}, 13},
                                              {"Primitive.Exp.0.forward", {13}, 14},
                                              {"Primitive.Sub.0.forward", {3, 14}, 15},
                                              {"Primitive.GatherD.0.forward", {15}, 17}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.golden, "Tensor.__rsub__.0.forward");
}
END_TEST

/* Half precision drops digits of a small addend, which its sum with a large one does not show. Of many values, few are
 * of half precision. */
START_TEST(casts_that_drop_digits_are_no_other_way)
{
    static const struct call golden[CALLS] = {
        {"Functional.linear.0.forward", {20, 21}, 22}, {"Functional.gelu.0.forward", {22}, 23},
        {"Functional.linear.1.forward", {23, 24}, 25}, {"Tensor.__mul__.0.forward", {25, 20}, 1},
        {"Functional.linear.2.forward", {1, 2}, 3},    {"Module.one.Linear.forward.0", {1, 2}, 3},
        {"Tensor.__add__.0.forward", {9, 3}, 6},       {"Tensor.tanh.0.forward", {6}, 7}};
    static const struct call target[CALLS] = {
        {"Functional.dense.0.forward", {20, 21}, 22},
        {"Functional.gelu.0.forward", {22}, 23},
        {"Functional.dense.1.forward", {23, 24}, 25},
        {"Tensor.__mul__.0.forward", {25, 20}, 1},
        {"Functional.dense.2.forward", {1, 2}, 3},
        {"Tensor.half.0.forward", {3}, HALVED + 3},
        {"Tensor.float.0.forward", {HALVED + 3}, ROUNDED + 3},
        {"Cell.one.Dense.forward.0", {1, 2}, ROUNDED + 3},
        {"Tensor.__add__.0.forward", {9, ROUNDED + 3}, HIDING + 6},
        {"Tensor.tanh.0.forward", {HIDING + 6}, HIDING + 7}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.target, "Tensor.half.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_EXTRA);
}
END_TEST

/* ---- other ways to compute the same ------------------------------------------ */

/* The target takes a difference of sums in place of a sum of differences. */
START_TEST(another_way_to_the_same_loss_is_no_suspect)
{
    static const struct call golden[CALLS] = {{"Functional.log.0.forward", {1}, 3},
                                              {"Tensor.__sub__.0.forward", {3, 2}, 4},
                                              {"Tensor.__mul__.0.forward", {1, 4}, 6},
                                              {"Tensor.sum.0.forward", {6}, SINGLE + 1}};
    static const struct call target[CALLS] = {
        {"Functional.log.0.forward", {1}, 3},
        {"Primitive.Mul.0.forward", {1, 3}, 14},
        {"Primitive.ReduceSum.0.forward", {14}, SINGLE + 20},
        {"Primitive.Mul.1.forward", {1, 2}, 15},
        {"Primitive.ReduceSum.1.forward", {15}, SINGLE + 40},
        {"Primitive.Sub.0.forward", {SINGLE + 20, SINGLE + 40}, SINGLE + 1}};
    ck_assert_uint_eq(ask(golden, target).n, 0);
}
END_TEST

/* The target masks scores with another large number, which the softmax does not show. */
START_TEST(another_mask_with_the_same_effect_is_no_suspect)
{
    static const struct call golden[CALLS] = {{"Functional.linear.0.forward", {1, 2}, 3},
                                              {"Tensor.__add__.0.forward", {3, 8}, 4},
                                              {"Functional.softmax.0.forward", {4}, 6},
                                              {"Tensor.mean.0.forward", {6}, SINGLE + 1}};
    static const struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                              {"Tensor.__add__.0.forward", {3, 508}, 104},
                                              {"Functional.softmax.0.forward", {104}, 6},
                                              {"Tensor.mean.0.forward", {6}, SINGLE + 1}};
    ck_assert_uint_eq(ask(golden, target).n, 0);
}
END_TEST

/* A mask of another number that does show in the softmax is named. */
START_TEST(another_mask_with_another_effect_is_named)
{
    static const struct call golden[CALLS] = {{"Functional.linear.0.forward", {1, 2}, 3},
                                              {"Tensor.__add__.0.forward", {3, 8}, 4},
                                              {"Functional.softmax.0.forward", {4}, 6},
                                              {"Tensor.mean.0.forward", {6}, SINGLE + 1}};
    static const struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                              {"Tensor.__add__.0.forward", {3, 508}, 104},
                                              {"Functional.softmax.0.forward", {104}, 106},
                                              {"Tensor.mean.0.forward", {106}, SINGLE + 101}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.target, "Tensor.__add__.0.forward");
}
END_TEST

/* Noise behind a logarithm is in the gradients, too: a mask without effect is no suspect for it. */
START_TEST(gradients_with_noise_of_a_logarithm_agree)
{
    static const struct call golden[CALLS] = {{"Functional.linear.0.forward", {1, 2}, 3},
                                              {"Module.one.Linear.forward.0", {1, 2}, 3},
                                              {"Tensor.__add__.0.forward", {3, 8}, 4},
                                              {"Functional.softmax.0.forward", {4}, 6},
                                              {"Torch.log.0.forward", {6}, 1999},
                                              {"Functional.relu.0.forward", {1999}, 7},
                                              {"Module.one.Linear.parameters_grad", {0}, 1899}};
    static const struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                              {"Cell.one.Dense.forward.0", {1, 2}, 3},
                                              {"Tensor.__add__.0.forward", {3, 508}, 104},
                                              {"Functional.softmax.0.forward", {104}, 6},
                                              {"Mint.log.0.forward", {6}, 2000},
                                              {"Functional.relu.0.forward", {2000}, 7},
                                              {"Cell.one.Dense.parameters_grad", {0}, 1900}};
    ck_assert_uint_eq(ask(golden, target).n, 0);
}
END_TEST

/* Both sides read the logarithm, whose noise is no other value. */
START_TEST(a_logarithm_with_noise_is_not_blamed_for_its_reader)
{
    static const struct call golden[CALLS] = {{"Functional.linear.0.forward", {1, 2}, 3},
                                              {"Torch.log.0.forward", {3}, 1999},
                                              {"Tensor.__sub__.0.forward", {8, 1999}, 10},
                                              {"Tensor.mean.0.forward", {10}, 11}};
    static const struct call target[CALLS] = {{"Functional.dense.0.forward", {1, 2}, 3},
                                              {"Mint.log.0.forward", {3}, 2000},
                                              {"Tensor.__add__.0.forward", {8, 2000}, 20},
                                              {"Tensor.mean.0.forward", {20}, 21}};
    struct answer a = ask(golden, target);
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.target, "Tensor.__add__.0.forward");
}
END_TEST

/* A gradient behind the logarithm is as far apart as the noise that it amplifies. */
START_TEST(a_gradient_behind_a_logarithm_with_noise_is_no_suspect)
{
    static const struct call golden[CALLS] = {{"Functional.linear.0.forward", {1, 2}, 3},
                                              {"Torch.log.0.forward", {3}, 1999},
                                              {"Functional.linear.1.forward", {1999, 5}, 6},
                                              {"Tensor.mean.0.forward", {6}, 7},
                                              {"Tensor.mean.0.backward", {10}, 11},
                                              {"Functional.linear.1.backward", {11}, 1899}};
    static const struct call target[CALLS] = {
        {"Functional.dense.0.forward", {1, 2}, 3},    {"Mint.log.0.forward", {3}, 2000},
        {"Functional.dense.1.forward", {2000, 5}, 6}, {"Tensor.mean.0.forward", {6}, 7},
        {"Tensor.mean.0.backward", {10}, 11},         {"Functional.dense.1.backward", {11}, 1900}};
    ck_assert_uint_eq(ask(golden, target).n, 0);
}
END_TEST

/* The target leaves out the sum of two losses; behind the backward pass, the optimizer adds to its counter of
 * steps. */
START_TEST(an_operator_of_the_update_is_no_partner_of_the_loss)
{
    static const struct call golden[CALLS] = {
        {"Functional.dense.0.forward", {1, 2}, 3},
        {"Functional.relu.0.forward", {3}, 4},
        {"Tensor.mean.0.forward", {4}, SINGLE + 1},
        {"Functional.tanh.0.forward", {3}, 6},
        {"Tensor.mean.1.forward", {6}, SINGLE + 21},
        {"Tensor.__add__.0.forward", {SINGLE + 1, SINGLE + 21}, SINGLE + 41},
        {"Functional.relu.0.backward", {30}, 41},
        {"Functional.tanh.0.backward", {30}, 43},
        {"Functional.dense.0.backward", {41, 43}, 42}};
    static const struct call target[CALLS] = {
        {"Primitive.MatMul.0.forward", {1, 2}, 3},
        {"Primitive.ReLU.0.forward", {3}, 4},
        {"Primitive.ReduceMean.0.forward", {4}, SINGLE + 1},
        {"Primitive.Tanh.0.forward", {3}, 6},
        {"Primitive.ReduceMean.1.forward", {6}, SINGLE + 21},
        {"Primitive.TanhGrad.0.backward", {30}, 43},
        {"Primitive.ReLU.0.backward", {30}, 41},
        {"Primitive.MatMul.0.backward", {41, 43}, 42},
        {"Primitive.AssignAdd.0.forward", {SINGLE + 100, SINGLE + 100}, SINGLE + 101},
        {"Primitive.SGD.0.forward", {2, 42}, 53}};
    of_golden = "mindspore";
    struct answer a = ask_graph(golden, target);
    of_golden = "pytorch";
    ck_assert_uint_ne(a.n, 0);
    ck_assert_str_eq(a.golden, "Tensor.__add__.0.forward");
    ck_assert_str_eq(a.target, "");
    ck_assert_int_eq(a.why, CMP_WHY_MISSING);
}
END_TEST

/* The kernel of an addition rounds otherwise than the function, though another addition was exact. */
START_TEST(rounding_of_another_kernel_is_no_suspect)
{
    static const struct call golden[CALLS] = {
        {"Functional.dense.0.forward", {1, 2}, 3}, {"Functional.tanh.0.forward", {3}, 4},
        {"Tensor.__add__.0.forward", {4, 9}, 5},   {"Tensor.__add__.1.forward", {5, 29}, 6},
        {"Functional.sigmoid.0.forward", {6}, 7},  {"Functional.relu.0.forward", {7}, 8},
        {"Functional.exp.0.forward", {8}, 10}};
    static const struct call target[CALLS] = {{"Primitive.MatMul.0.forward", {1, 2}, 3},
                                              {"Primitive.Tanh.0.forward", {3}, 4},
                                              {"Primitive.Add.0.forward", {4, 9}, 5},
                                              {"Primitive.Add.1.forward", {5, 29}, NUDGED + 6},
                                              {"Primitive.Sigmoid.0.forward", {NUDGED + 6}, 7},
                                              {"Primitive.ReLU.0.forward", {7}, 8},
                                              {"Primitive.Exp.0.forward", {8}, 10}};
    of_golden = "mindspore";
    struct answer a = ask_graph(golden, target);
    of_golden = "pytorch";
    ck_assert_uint_eq(a.n, 0);
}
END_TEST

/* Both sides run one kernel, which reads what the target has computed in two steps, and the golden side in one. */
START_TEST(rounding_behind_other_steps_is_no_suspect)
{
    static const struct call golden[CALLS] = {
        {"Primitive.Add.0.forward", {4, 9}, 5},  {"Functional.dense.0.forward", {1, 2}, 3},
        {"Cell.one.Dense.forward.0", {1, 2}, 3}, {"Primitive.Add.1.forward", {3, 29}, 6},
        {"Functional.tanh.0.forward", {6}, 7},   {"Functional.sigmoid.0.forward", {7}, 8},
        {"Functional.exp.0.forward", {8}, 10},   {"Functional.relu.0.forward", {10}, 11}};
    static const struct call target[CALLS] = {{"Primitive.Add.0.forward", {4, 9}, 5},
                                              {"Primitive.MatMul.0.forward", {1, 2}, 33},
                                              {"Primitive.BiasAdd.0.forward", {33, 50}, 3},
                                              {"Cell.one.Dense.forward.0", {1, 2}, 3},
                                              {"Primitive.Add.1.forward", {3, 29}, NUDGED + 6},
                                              {"Primitive.Tanh.0.forward", {NUDGED + 6}, 7},
                                              {"Primitive.Sigmoid.0.forward", {7}, 8},
                                              {"Primitive.Exp.0.forward", {8}, 10},
                                              {"Primitive.ReLU.0.forward", {10}, 11}};
    of_golden = "mindspore";
    struct answer a = ask_graph(golden, target);
    of_golden = "pytorch";
    ck_assert_uint_eq(a.n, 0);
}
END_TEST

TEST_MAIN("front_partners", a_sum_of_single_numbers_is_named_where_a_part_is_missing,
          an_operator_that_changed_places_is_named_itself,
          an_operator_with_other_inputs_is_no_noise,
          elements_repeated_before_a_product_are_part_of_it,
          an_operator_between_partners_in_another_order_is_named,
          a_layer_with_another_parameter_is_no_partner,
          a_product_of_a_layer_is_no_partner_of_a_product_without_parameter,
          calls_of_a_layer_are_partners_in_their_order,
          layers_in_another_order_are_partners_by_their_parameters,
          an_operator_that_reads_another_tensor_is_no_partner,
          casts_that_drop_digits_are_no_other_way, another_way_to_the_same_loss_is_no_suspect,
          another_mask_with_the_same_effect_is_no_suspect,
          another_mask_with_another_effect_is_named, gradients_with_noise_of_a_logarithm_agree,
          rounding_of_another_kernel_is_no_suspect, rounding_behind_other_steps_is_no_suspect,
          a_logarithm_with_noise_is_not_blamed_for_its_reader,
          a_gradient_behind_a_logarithm_with_noise_is_no_suspect,
          an_operator_of_the_update_is_no_partner_of_the_loss)
