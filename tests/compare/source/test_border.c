/* SPDX-License-Identifier: MIT
 *
 * test_border: which suspects are dropped where the gradients of all parameters agree, on a part of a few
 * nodes that is made by hand.
 */
#include "compare/align/likeness.h"
#include "compare/observe/node_facts.h"
#include "compare/source/border.h"
#include "compare/source/raw_suspects.h"
#include "tests/support/check.h"

#include <math.h>

enum { FORMULA, LONE, BACKWARD, GRADIENT, SMALL, NODES };
enum { OF_LARGE, OF_SMALL, WEIGHT, OTHER, LEAVES };

struct hand {
    struct observe__op op;
    struct observe__node node[NODES];
    struct observe__leaf leaf[LEAVES];
    struct observe__part part;
    struct cmp_source source;
    struct source__judge judge;
    struct ms_err err;
};

static struct observe__node node_of(unsigned kind, unsigned dir)
{
    return (struct observe__node){.kind = (uint8_t)kind,
                                  .dir = (uint8_t)dir,
                                  .flags = OBSERVE__OUT_MEASURED,
                                  .region = OBSERVE__NONE,
                                  .floor = 1e-6F,
                                  .tiny = 1e-6F};
}

/* FORMULA differs and fades; LONE exists in the target only, and what is read behind it differs by `border`;
 * the gradients of two parameters differ by `large` and `small`, and the second is tiny. */
static void set_up(struct hand *h, float border, float large, float small)
{
    *h = (struct hand){.op = {.family = ALIGN__FAM_UNKNOWN},
                       .part = {.has_apis = true, .root_floor = NAN}};
    h->node[FORMULA] = node_of(PROBE_NODE_API, PROBE_FORWARD);
    h->node[FORMULA].fades = true;
    h->node[LONE] = node_of(PROBE_NODE_API, PROBE_FORWARD);
    h->node[LONE].id[0] = OBSERVE__NONE;
    h->node[LONE].region = LONE;
    h->node[LONE].border = border;
    h->node[LONE].structure = OBSERVE__HARMFUL;
    h->node[BACKWARD] = node_of(PROBE_NODE_API, PROBE_BACKWARD);
    for (uint32_t i = 0; i < 2; i++) {
        h->node[GRADIENT + i] = node_of(PROBE_NODE_PGRAD, PROBE_BACKWARD);
        h->node[GRADIENT + i].leaf = i;
        h->node[GRADIENT + i].nleaf = 1;
        h->leaf[i] = (struct observe__leaf){
            .flags = OBSERVE__MEASURED, .e = i == 0 ? large : small, .norm = i == 0 ? 1 : 1e-7F};
    }
    h->leaf[WEIGHT] = (struct observe__leaf){.flags = OBSERVE__IS_PARAM | OBSERVE__ROOT};
    h->part.ops.p = &h->op;
    h->part.ops.n = 1;
    h->part.nodes.p = h->node;
    h->part.nodes.n = NODES;
    h->part.leaves.p = h->leaf;
    h->part.leaves.n = LEAVES;
    h->judge = (struct source__judge){
        .s = &h->source, .p = &h->part, .after_backward = NODES, .judged = OBSERVE__NONE};
}

/* Adds one suspect and returns whether it remains. */
static bool remains(struct hand *h, uint32_t node, enum cmp_why why, enum source__class cls,
                    uint32_t leaf)
{
    struct source__raw raw = source__raw_of(&h->node[node], why, cls, 1);
    raw.leaf = leaf;
    h->source.raws.n = 0;
    ck_assert_int_eq(source__add_suspect(&h->judge, node, raw, &h->err), MS_OK);
    source__drop_ended(&h->judge);
    return h->source.raws.n == 1;
}

static bool value_remains(struct hand *h, uint32_t node)
{
    return remains(h, node, CMP_WHY_VALUE, SOURCE__NUM, OBSERVE__NONE);
}

static bool lone_remains(struct hand *h)
{
    return remains(h, LONE, CMP_WHY_EXTRA, SOURCE__STRUCTURE, OBSERVE__NONE);
}

START_TEST(nothing_is_a_suspect_whose_borders_agree)
{
    struct hand h;
    set_up(&h, 1e-7F, 1e-6F, 1e-6F);
    ck_assert(!value_remains(&h, FORMULA));
    ck_assert(!value_remains(&h, BACKWARD));
    h.op.flags = OBSERVE__CAST;
    ck_assert(!lone_remains(&h));
    h.node[FORMULA].fades = false; /* a later value carries the difference on */
    ck_assert(value_remains(&h, FORMULA));
    ms_vec_free(&h.source.raws);
}
END_TEST

START_TEST(gradients_that_differ_keep_every_suspect)
{
    struct hand h;
    set_up(&h, 1e-7F, 0.1F, 1e-6F);
    ck_assert(value_remains(&h, FORMULA));
    ck_assert(value_remains(&h, BACKWARD));
    ck_assert(lone_remains(&h));
    ms_vec_free(&h.source.raws);
}
END_TEST

START_TEST(a_gradient_of_rounding_alone_agrees)
{
    struct hand h;
    set_up(&h, 1e-7F, 1e-6F, 1.0F); /* all of a gradient that is 1e-7 of the largest */
    ck_assert(!value_remains(&h, FORMULA));
    h.leaf[OF_SMALL].norm = 1e-3F;
    ck_assert(value_remains(&h, FORMULA));
    ms_vec_free(&h.source.raws);
}
END_TEST

/* Another implementation of a part of the step: what lies between differs, what the step leaves does not. */
START_TEST(a_step_that_leaves_the_same_has_no_value_to_suspect)
{
    struct hand h;
    set_up(&h, NAN, 1e-6F, 1e-6F);
    h.node[FORMULA].fades = false;
    ck_assert(value_remains(&h, FORMULA));
    h.part.do_updates_agree = true;
    ck_assert(!value_remains(&h, FORMULA));
    ck_assert(
        remains(&h, FORMULA, CMP_WHY_SHAPE, SOURCE__HARD, OBSERVE__NONE)); /* a fact, not a value */
    h.leaf[OTHER] = (struct observe__leaf){
        .flags = OBSERVE__IS_OUT | OBSERVE__MEASURED, .count = 1, .e = 1e-3F};
    h.node[FORMULA].leaf = OTHER;
    h.node[FORMULA].nleaf = 1;
    h.node[FORMULA].backward = BACKWARD;
    ck_assert(value_remains(&h, FORMULA)); /* a loss that differs */
    h.node[FORMULA].is_read = true;        /* a number that is no loss */
    ck_assert(!value_remains(&h, FORMULA));
    ms_vec_free(&h.source.raws);
}
END_TEST

START_TEST(facts_remain)
{
    struct hand h;
    set_up(&h, NAN, 1e-6F, 1e-6F);
    ck_assert(lone_remains(&h)); /* nobody reads it, so nothing says what it does */
    h.op = observe__op_of(MS_STR("Tensor.clone")); /* it hands on its value */
    ck_assert(lone_remains(&h));
    h.op = observe__op_of(MS_STR("Tensor.transpose"));
    ck_assert(!lone_remains(&h));
    h.op.flags = OBSERVE__CAST;
    ck_assert(!lone_remains(&h));
    ck_assert(remains(&h, FORMULA, CMP_WHY_SHAPE, SOURCE__HARD, OBSERVE__NONE));
    h.node[FORMULA].fades = false;
    ck_assert(remains(&h, FORMULA, CMP_WHY_GRAD, SOURCE__NUM, OBSERVE__NONE));
    ck_assert(!remains(&h, FORMULA, CMP_WHY_GRAD, SOURCE__SOFT, OBSERVE__NONE)); /* no_grad */
    ck_assert(remains(&h, FORMULA, CMP_WHY_GRAD, SOURCE__SOFT, WEIGHT)); /* a frozen parameter */
    h.node[FORMULA].fades = true;
    h.node[FORMULA].leaf = WEIGHT; /* a parameter that one side lacks */
    h.node[FORMULA].nleaf = 1;
    ck_assert(value_remains(&h, FORMULA));
    ms_vec_free(&h.source.raws);
}
END_TEST

/* A loss of single samples that a sum and a division behind it make a mean. */
START_TEST(a_part_of_another_form_is_no_fact)
{
    struct hand h;
    set_up(&h, NAN, 1e-6F, 1e-6F);
    h.leaf[OTHER] = (struct observe__leaf){.maker = {OBSERVE__NONE, OBSERVE__NONE}};
    h.node[LONE].leaf = OTHER;
    h.node[LONE].nleaf = 1;
    ck_assert(remains(&h, FORMULA, CMP_WHY_SHAPE, SOURCE__HARD, OBSERVE__NONE));
    h.leaf[OTHER].maker[1] = FORMULA;
    ck_assert(!remains(&h, FORMULA, CMP_WHY_SHAPE, SOURCE__HARD, OBSERVE__NONE));
    h.node[FORMULA].fades = false;
    ck_assert(remains(&h, FORMULA, CMP_WHY_SHAPE, SOURCE__HARD, OBSERVE__NONE));
    ms_vec_free(&h.source.raws);
}
END_TEST

START_TEST(data_that_wants_a_gradient_is_no_suspect)
{
    struct hand h;
    set_up(&h, NAN, 1e-6F, 1e-6F);
    h.node[FORMULA].fades = false;
    h.leaf[OTHER] =
        (struct observe__leaf){.flags = OBSERVE__ROOT, .maker = {OBSERVE__NONE, OBSERVE__NONE}};
    ck_assert(!remains(&h, FORMULA, CMP_WHY_GRAD, SOURCE__SOFT, OTHER));
    ck_assert(remains(&h, FORMULA, CMP_WHY_GRAD, SOURCE__SOFT, WEIGHT));
    ms_vec_free(&h.source.raws);
}
END_TEST

/* A mask of truth values for one of numbers, a normalization in float64. */
START_TEST(a_type_that_holds_the_same_values_is_no_suspect)
{
    struct hand h;
    set_up(&h, NAN, 1e-6F, 1e-6F);
    h.node[FORMULA].fades = false;
    h.leaf[OTHER] = (struct observe__leaf){.flags = OBSERVE__ROOT,
                                           .maker = {OBSERVE__NONE, OBSERVE__NONE},
                                           .dtype = {MS_DT_I64, MS_DT_BOOL}};
    ck_assert(!remains(&h, FORMULA, CMP_WHY_DTYPE, SOURCE__HARD, OTHER));
    h.leaf[OTHER].flags = 0; /* what an operator made */
    ck_assert(remains(&h, FORMULA, CMP_WHY_DTYPE, SOURCE__HARD, OTHER));
    h.leaf[OTHER].dtype[0] = MS_DT_F32;
    h.leaf[OTHER].dtype[1] = MS_DT_F64;
    ck_assert(!remains(&h, FORMULA, CMP_WHY_DTYPE, SOURCE__HARD, OTHER));
    h.leaf[OTHER].dtype[1] = MS_DT_BF16;
    ck_assert(remains(&h, FORMULA, CMP_WHY_DTYPE, SOURCE__HARD, OTHER));
    ms_vec_free(&h.source.raws);
}
END_TEST

/* 8 * (1 + tanh(x / 2)) for 16 * sigmoid(x). */
START_TEST(another_factor_of_other_values_is_no_suspect_where_results_agree)
{
    struct hand h;
    struct ms_str golden = MS_STR("Tensor.__truediv__.0.forward"), target = golden;
    set_up(&h, NAN, 1e-6F, 1e-6F);
    h.part.names[0].p = &golden;
    h.part.names[1].p = &target;
    h.part.names[0].n = h.part.names[1].n = 1;
    h.leaf[OTHER].texts = OBSERVE__NONE;
    h.node[FORMULA].fades = false;
    ck_assert(remains(&h, FORMULA, CMP_WHY_SCALAR, SOURCE__SOFT, OTHER));
    h.node[FORMULA].in = 0.5F;
    ck_assert(!remains(&h, FORMULA, CMP_WHY_SCALAR, SOURCE__SOFT, OTHER));
    h.node[FORMULA].out = 0.5F;
    ck_assert(remains(&h, FORMULA, CMP_WHY_SCALAR, SOURCE__SOFT, OTHER));
    h.node[FORMULA].in = h.node[FORMULA].out = 0;
    struct observe__value_texts texts = {.text = {MS_STR("2"), MS_STR("3")}};
    h.part.texts.p = &texts;
    h.part.texts.n = 1;
    h.leaf[OTHER].texts = 0;
    ck_assert(remains(&h, FORMULA, CMP_WHY_SCALAR, SOURCE__SOFT, OTHER));
    texts.text[1] = MS_STR_NONE; /* a mean of means for one over two axes */
    ck_assert(!remains(&h, FORMULA, CMP_WHY_SCALAR, SOURCE__SOFT, OTHER));
    texts.text[1] = MS_STR("0.5");
    ck_assert(remains(&h, FORMULA, CMP_WHY_SCALAR, SOURCE__SOFT, OTHER));
    target = MS_STR("Tensor.__mul__.0.forward"); /* with the inverse */
    ck_assert(!remains(&h, FORMULA, CMP_WHY_SCALAR, SOURCE__SOFT, OTHER));
    ms_vec_free(&h.source.raws);
}
END_TEST

START_TEST(another_order_ends_where_its_reader_fades)
{
    struct hand h;
    set_up(&h, 1e-7F, 1e-6F, 1e-6F);
    struct source__raw raw = source__raw_of(&h.node[LONE], CMP_WHY_EXTRA, SOURCE__NUM, 1);
    raw.reader = FORMULA;
    ck_assert_int_eq(source__add_suspect(&h.judge, LONE, raw, &h.err), MS_OK);
    h.node[FORMULA].fades = false;
    source__drop_ended(&h.judge);
    ck_assert_uint_eq(h.source.raws.n, 1);
    h.node[FORMULA].fades = true;
    source__drop_ended(&h.judge);
    ck_assert_uint_eq(h.source.raws.n, 0);
    ms_vec_free(&h.source.raws);
}
END_TEST

/* Another order, as of a mask and a scale, may change values that no gradient tells. */
/* Operators that take elements out stand for indexing that is not recorded; a product for sums of products. */
START_TEST(a_selection_or_a_contraction_of_one_side_is_another_form)
{
    struct hand h;
    set_up(&h, 1e-7F, 1e-6F, 1e-6F);
    h.op.name = MS_STR("Torch.norm");
    ck_assert(lone_remains(&h));
    h.op.name = MS_STR("Tensor.index_select");
    ck_assert(!lone_remains(&h));
    h.op.name = MS_STR("Torch.einsum");
    ck_assert(lone_remains(&h)); /* in the place of nothing */
    h.node[FORMULA].id[1] = OBSERVE__NONE;
    ck_assert(!lone_remains(&h));
    ms_vec_free(&h.source.raws);
}
END_TEST

START_TEST(the_same_elements_in_another_shape_are_no_suspect_where_results_agree)
{
    struct hand h;
    struct observe__value_texts texts = {{MS_STR("[4,9]"), MS_STR("[36]")}};
    set_up(&h, 1e-7F, 1e-6F, 1e-6F);
    h.node[FORMULA].fades = false;
    h.part.texts.p = &texts;
    h.part.texts.n = 1;
    ck_assert(!remains(&h, FORMULA, CMP_WHY_SHAPE, SOURCE__HARD, OTHER));
    texts.text[1] = MS_STR("[4,8]");
    ck_assert(remains(&h, FORMULA, CMP_WHY_SHAPE, SOURCE__HARD, OTHER));
    texts.text[1] = MS_STR("[36]");
    h.node[FORMULA].out = 0.1F;
    ck_assert(remains(&h, FORMULA, CMP_WHY_SHAPE, SOURCE__HARD, OTHER));
    ms_vec_free(&h.source.raws);
}
END_TEST

START_TEST(an_operator_that_moved_remains)
{
    struct hand h;
    set_up(&h, NAN, 1e-6F, 1e-6F);
    h.node[FORMULA].fades = false;
    ck_assert(remains(&h, FORMULA, CMP_WHY_MOVED, SOURCE__STRUCTURE, OBSERVE__NONE));
    h.node[FORMULA].fades = true;
    ck_assert(!remains(&h, FORMULA, CMP_WHY_MOVED, SOURCE__STRUCTURE, OBSERVE__NONE));
    ms_vec_free(&h.source.raws);
}
END_TEST

/* Scores that are filled where the target adds a mask to them, and a mean of means. */
START_TEST(a_part_of_another_formula_is_no_suspect)
{
    struct hand h;
    set_up(&h, NAN, 1e-6F, 1e-6F);
    h.op = observe__op_of(MS_STR("Tensor.mean"));
    h.leaf[OTHER] = (struct observe__leaf){.maker = {OBSERVE__NONE, OBSERVE__NONE}};
    h.node[LONE].leaf = OTHER;
    h.node[LONE].nleaf = 1;
    ck_assert(lone_remains(&h));
    h.leaf[OTHER].maker[1] = FORMULA;
    ck_assert(!lone_remains(&h)); /* both are means */
    h.op = observe__op_of(MS_STR("Tensor.frobnicate"));
    ck_assert(lone_remains(&h));
    h.node[FORMULA].out = 0.5F;
    ck_assert(!lone_remains(&h));
    h.node[FORMULA].out = 0;
    h.node[LONE].replaced = true;
    ck_assert(!lone_remains(&h));
    ms_vec_free(&h.source.raws);
}
END_TEST

/* Weights of an adapter that are merged: its modules are not called, so their gradients have no record. */
START_TEST(a_gradient_is_lacking_only_where_its_module_is_called)
{
    struct hand h;
    struct ms_str golden[] = {MS_STR("Module.up.Linear.forward.0"), MS_STR("x"), MS_STR("x"),
                              MS_STR("x"), MS_STR("Module.up.Linear.parameters_grad.0")};
    struct ms_str target[] = {MS_STR("Module.fc.Linear.forward.0"), MS_STR("x")};
    set_up(&h, NAN, 1e-6F, 1e-6F);
    h.part.names[0].p = golden;
    h.part.names[0].n = 5;
    h.part.names[1].p = target;
    h.part.names[1].n = 2;
    ck_assert(!value_remains(&h, FORMULA));
    target[0] = MS_STR("Module.up.Linear.forward.0"); /* frozen */
    ck_assert(value_remains(&h, FORMULA));
    ms_vec_free(&h.source.raws);
}
END_TEST

static bool scalar_remains(struct hand *h)
{
    return remains(h, FORMULA, CMP_WHY_SCALAR, SOURCE__SOFT, OTHER);
}

START_TEST(another_way_to_the_same_update_is_no_suspect)
{
    struct hand h;
    struct observe__value_texts texts = {.text = {MS_STR("0.9"), MS_STR("0.8")}};
    set_up(&h, 0.5F, 1e-6F, 1e-6F);
    h.judge.after_backward = 0;
    h.op = observe__op_of(MS_STR("Torch._foreach_norm"));
    h.part.texts.p = &texts;
    h.part.texts.n = 1;
    h.leaf[OTHER].texts = 0;
    ck_assert(lone_remains(&h));
    h.part.do_updates_agree = true;
    ck_assert(!lone_remains(&h));
    h.op = observe__op_of(MS_STR("Tensor.mul_")); /* gradients scaled before they are clipped */
    ck_assert(lone_remains(&h));
    ck_assert(scalar_remains(&h)); /* the first step of Adam hides its rates */
    h.node[FORMULA].in = 0.5F;
    ck_assert(!scalar_remains(&h));
    h.node[FORMULA].in = 0;
    texts.text[0] = MS_STR("null");
    ck_assert(!scalar_remains(&h)); /* the rate is a tensor */
    ms_vec_free(&h.source.raws);
}
END_TEST

/* a + b for b + a, of which each is a convolution. */
START_TEST(calls_that_changed_places_are_no_suspects)
{
    struct hand h;
    set_up(&h, NAN, 1e-6F, 1e-6F);
    h.node[FORMULA].fades = false;
    h.leaf[OTHER] = (struct observe__leaf){
        .flags = OBSERVE__IS_PARAM | OBSERVE__ROOT, .e = 0.3F, .count = 9, .value = 1};
    h.leaf[WEIGHT] = h.leaf[OTHER];
    h.node[FORMULA].leaf = OTHER;
    h.node[FORMULA].nleaf = 1;
    h.node[LONE] = node_of(PROBE_NODE_API, PROBE_FORWARD);
    h.node[LONE].leaf = WEIGHT;
    h.node[LONE].nleaf = 1;
    ck_assert(remains(&h, FORMULA, CMP_WHY_PARAMETER, SOURCE__HARD, OTHER)); /* one, called twice */
    h.leaf[WEIGHT].value = 2;
    ck_assert(!remains(&h, FORMULA, CMP_WHY_PARAMETER, SOURCE__HARD, OTHER));
    h.leaf[WEIGHT].e = 0.1F;
    ck_assert(remains(&h, FORMULA, CMP_WHY_PARAMETER, SOURCE__HARD, OTHER));
    ms_vec_free(&h.source.raws);
}
END_TEST

TEST_MAIN("border", nothing_is_a_suspect_whose_borders_agree,
          gradients_that_differ_keep_every_suspect, a_gradient_of_rounding_alone_agrees,
          a_step_that_leaves_the_same_has_no_value_to_suspect, facts_remain,
          a_part_of_another_form_is_no_fact, data_that_wants_a_gradient_is_no_suspect,
          a_type_that_holds_the_same_values_is_no_suspect,
          another_factor_of_other_values_is_no_suspect_where_results_agree,
          another_order_ends_where_its_reader_fades, an_operator_that_moved_remains,
          a_selection_or_a_contraction_of_one_side_is_another_form,
          the_same_elements_in_another_shape_are_no_suspect_where_results_agree,
          a_part_of_another_formula_is_no_suspect,
          a_gradient_is_lacking_only_where_its_module_is_called,
          another_way_to_the_same_update_is_no_suspect, calls_that_changed_places_are_no_suspects)
