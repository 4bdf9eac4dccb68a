/* SPDX-License-Identifier: MIT
 *
 * test_frontier: which operators are named where the values of two programs part, forward, backward or by the
 * update.
 *
 * A program is a list of calls that read and write numbered values; equal numbers are equal values. Values from
 * SINGLE on are single numbers, those from REPEATED on have the elements of another value twice. Others are another
 * value but for a factor: from NUDGED on rounding, from HALVED on rounding to half precision, from ROUNDED on the same in
 * single precision, and from HIDING on what such a value changes in a sum. Neighbors are as near as noise behind a
 * logarithm from 1000 on. A
 * module's second value is its parameter. The golden program is PyTorch's, the target MindSpore's, if nothing else
 * is said.
 */
#include "compare/source/source.h"
#include "tests/support/cmp_fixture.h"

#include <math.h>

enum {
    CALLS = 16,
    INPUTS = 2,
    SINGLE = 3000,
    REPEATED = 4000,
    NUDGED = 5000,
    HALVED = 6000,
    ROUNDED = 7000,
    HIDING = 8000,
    KIND = 1000 /* values of a kind */
};

/* Numbers of tokens, which a dump of C gives no figures for. */
enum { TOKENS = -1 };

struct call {
    const char *name;
    int in[INPUTS], out; /* 0: no value; in[1] below TOKENS: the negative of a second result */
};

struct answer {
    size_t n;
    char target[64], golden[64];
    enum cmp_why why;
};

static const char *dtype = "float32"; /* of all values */
/* frameworks; the target's may bring the key that tells a graph */
static const char *of_target = "mindspore";
static const char *of_golden = "pytorch";
static bool has_figures; /* of tokens, in the program that is written */

static void put_tokens(struct ms_buf *b, bool figures)
{
    ms_buf_puts(b, "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.int64\", \"shape\": [64], ");
    ms_buf_puts(b, figures ? "\"Max\": 63, \"Min\": 0, \"Mean\": 31.5, \"Norm\": 295.7, "
                           : "\"Max\": null, \"Min\": null, \"Mean\": null, \"Norm\": null, ");
    ms_buf_puts(b, "\"requires_grad\": false}");
}

/* Returns by how much a value differs from the one that it is but for a factor. */
static double factor_of(int v)
{
    switch (v - v % KIND) {
    case NUDGED:
        return 1 + 6e-8;
    case HALVED:
    case ROUNDED:
        return 1 + 4e-4;
    case HIDING:
        return 1 + 2e-5;
    default:
        return 1;
    }
}

static void put_tensor(struct ms_buf *b, int v)
{
    if (v == TOKENS) {
        put_tokens(b, has_figures);
        return;
    }
    const double factor = factor_of(v);
    const bool is_halved = v - v % KIND == HALVED;
    v = v >= NUDGED ? v % KIND : v;
    const bool is_repeated = v >= REPEATED, is_single = v >= SINGLE && !is_repeated;
    v = is_repeated ? v - REPEATED : v;
    double max = 1 + 0.37 * v, min = -(0.8 + 0.21 * v), mean = 0.01 * (v + 1),
           norm = (10.0 + v) * factor;
    ms_buf_printf(b,
                  "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.%s\", \"shape\": %s, "
                  "\"Max\": %.9g, \"Min\": %.9g, \"Mean\": %.9g, \"Norm\": %.9g, "
                  "\"requires_grad\": true}",
                  is_halved ? "float16" : dtype,
                  is_single     ? "[]"
                  : is_repeated ? "[2, 8, 16]"
                                : "[8, 16]",
                  is_single ? norm : max, is_single ? norm : min, is_single ? norm : mean,
                  is_repeated ? norm * sqrt(2) : norm);
}

static void put_module(struct ms_buf *b, const struct call *c)
{
    ms_buf_printf(b, "\"%s\": {\"input_args\": [", c->name);
    put_tensor(b, c->in[0]);
    ms_buf_puts(b, "], \"input_kwargs\": {}, \"parameters\": {\"weight\": ");
    put_tensor(b, c->in[1]);
    ms_buf_puts(b, "}, \"output\": [");
    put_tensor(b, c->out);
    ms_buf_puts(b, "]}");
}

/* The gradient of a module's parameter, which the call has as its result. */
static void put_gradient(struct ms_buf *b, const struct call *c)
{
    ms_buf_printf(b, "\"%s\": {\"weight\": [", c->name);
    put_tensor(b, c->out);
    ms_buf_puts(b, "]}");
}

static void put_call(struct ms_buf *b, const struct call *c)
{
    if (ms_str_ends(ms_str_of(c->name), MS_STR("parameters_grad"))) {
        put_gradient(b, c);
        return;
    }
    if (ms_str_starts(ms_str_of(c->name), MS_STR("Module.")) ||
        ms_str_starts(ms_str_of(c->name), MS_STR("Cell."))) {
        put_module(b, c);
        return;
    }
    bool backward = ms_str_ends(ms_str_of(c->name), MS_STR("backward"));
    ms_buf_printf(b, "\"%s\": {\"%s\": [", c->name, backward ? "input" : "input_args");
    for (unsigned i = 0; i < INPUTS && c->in[i] != 0 && c->in[i] >= TOKENS; i++) {
        ms_buf_puts(b, i != 0 ? ", " : "");
        put_tensor(b, c->in[i]);
    }
    ms_buf_puts(b, backward ? "], \"output\": [" : "], \"input_kwargs\": {}, \"output\": [");
    put_tensor(b, c->out);
    if (c->in[1] < TOKENS) {
        ms_buf_puts(b, ", ");
        put_tensor(b, -c->in[1]);
    }
    ms_buf_puts(b, "]}");
}

static void write_program(struct fixture *f, char side, const struct call *calls)
{
    struct ms_buf b = {.max = 1 << 20};
    has_figures = side == 't';
    for (unsigned i = 0; i < CALLS && calls[i].name != NULL; i++) {
        ms_buf_puts(&b, i != 0 ? ",\n" : "");
        put_call(&b, &calls[i]);
    }
    fixture_dump(f, side, "statistics", side == 'b' ? of_golden : of_target, ms_buf_z(&b));
    ms_buf_free(&b);
}

static void copy_name(char *to, size_t size, struct ms_str name)
{
    snprintf(to, size, "%.*s", MS_STR_ARG(name));
}

static struct answer ask(const struct call *golden, const struct call *target)
{
    struct fixture f;
    struct cmp_source *s;
    const struct cmp_suspect *list;
    struct answer a = {0};
    fixture_init(&f);
    write_program(&f, 'b', golden);
    write_program(&f, 't', target);
    ck_ok(cmp_source_new(&s, &f.err), f.err);
    ck_ok(cmp_open(&f.c, &f.conf, f.t, f.b, NULL, &f.err), f.err);
    ck_ok(cmp_source_add(s, f.c, 0, 0, NULL, &f.err), f.err);
    ck_ok(cmp_source_find(s, &f.err), f.err);
    a.n = cmp_source_suspects(s, &list);
    if (a.n != 0) {
        copy_name(a.target, sizeof a.target, list[0].target);
        copy_name(a.golden, sizeof a.golden, list[0].golden);
        a.why = list[0].why;
    }
    cmp_source_free(s);
    fixture_free(&f);
    return a;
}

/* down(relu(up(x))) */
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

/* The dump of a graph has what a kernel leaves in its first input; its output is memory that nothing has written. */
static struct answer ask_graph(const struct call *golden, const struct call *target)
{
    of_target = "mindspore\", \"source\": \"graph";
    struct answer a = ask(golden, target);
    of_target = "mindspore";
    return a;
}

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

TEST_MAIN("frontier", values_of_low_precision_are_not_searched, an_operator_too_much_is_named,
          an_operator_too_little_is_named, an_operator_in_place_of_another_is_named_with_it,
          steps_inside_a_function_are_no_suspects, steps_of_a_function_do_not_hide_what_it_reads,
          a_missing_branch_is_named_where_it_ends, an_update_is_named_by_its_result,
          an_update_in_other_steps_is_no_suspect, a_detached_value_is_named_where_gradients_part,
          a_detached_value_is_named_by_what_made_it, gradients_inside_a_function_are_no_suspects,
          a_function_that_runs_as_steps_is_named_at_the_last_of_them,
          values_that_changed_places_are_named_where_they_are_chosen,
          an_operator_without_effect_is_not_named, a_lost_value_that_vanishes_is_named,
          a_lost_value_beneath_a_mask_is_named, a_factor_left_out_is_named_where_it_is_multiplied,
          a_gradient_too_much_is_named_where_it_begins,
          a_parameter_that_a_kernel_changes_in_place_is_its_result,
          noise_behind_a_logarithm_hides_no_operator, a_step_before_an_equal_operator_is_named,
          a_sum_of_single_numbers_is_named_where_a_part_is_missing,
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
