/* SPDX-License-Identifier: MIT
 *
 * Operations of profiled steps: products, convolutions and attention by their shapes, each once, those
 * of checkpoints for the machine alone.  suite_advice compares with PyTorch's own counter.
 */
#include "tests/support/scratch_run.h"

#include "mstx/conclude/time_use.h"

#define STEP(n, ts)                                                                                \
    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#" #n                        \
    "\",\"pid\":7,\"tid\":1,\"ts\":" #ts ",\"dur\":100,\"args\":{}}"
#define OP(name, ts, dur, dims)                                                                    \
    ",{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":7,\"tid\":1,\"ts\":" #ts      \
    ",\"dur\":" #dur ",\"args\":{\"Input Dims\": " dims "}}"
#define VALUES(dims, values) dims ", \"Concrete Inputs\": " values

static mstx_step_flops flops;

static enum ms_rc measure(const char *events, struct ms_err *e)
{
    char path[96], text[4096];
    struct mstx_steps steps;
    const int n = snprintf(text, sizeof text, "{\"schemaVersion\":1,\"traceEvents\":[%s]}", events);
    ck_assert(n > 0 && n < (int)sizeof text);
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/t.json", dir);
    write_file(path, text, (size_t)n);
    open_path(path);
    ck_ok(mstx_steps_find(tl, &steps, e), *e);
    const enum ms_rc rc = mstx_flops_of_trace(tl, &steps, &flops, e);
    mstx_steps_free(&steps);
    return rc;
}

static void end(void)
{
    ms_vec_free(&flops);
    end_run();
}

/* Checks the operations of the only step. */
static void check(const char *events, double model, double machine)
{
    struct ms_err e = {0};
    char text[3000];
    snprintf(text, sizeof text, "%s%s", STEP(1, 1000), events);
    ck_ok(measure(text, &e), e);
    ck_assert_uint_eq(flops.n, 1);
    ck_assert_double_eq_tol(flops.p[0].model, model, 1e-6);
    ck_assert_double_eq_tol(flops.p[0].machine, machine, 1e-6);
    end();
}

START_TEST(products_count_twice_their_terms)
{
    check(OP("aten::mm", 1010, 5, "[[3, 4], [4, 5]]"), 120, 120);
    check(OP("aten::addmm", 1010, 5, "[[5], [3, 4], [4, 5], [], []]"), 120, 120);
    check(OP("aten::bmm", 1010, 5, "[[2, 3, 4], [2, 4, 5]]"), 240, 240);
}
END_TEST

START_TEST(an_operator_within_a_counted_one_is_part_of_it)
{
    check(OP("aten::linear", 1010, 20, "[[3, 4], [5, 4]]")
              OP("aten::addmm", 1012, 10, "[[5], [3, 4], [4, 5]]")
                  OP("aten::mm", 1014, 5, "[[3, 4], [4, 5]]")
                      OP("aten::mm", 1040, 5, "[[3, 4], [4, 5]]"),
          240, 240);
}
END_TEST

/* A forward operator within a node of the backward pass is executed again; a product there is not. */
START_TEST(what_a_checkpoint_executes_again_counts_for_the_machine)
{
    check(OP("autograd::engine::evaluate_function: AddmmBackward0", 1010, 40, "[]")
              OP("aten::linear", 1012, 10, "[]") OP("aten::addmm", 1013, 5, "[[5], [3, 4], [4, 5]]")
                  OP("aten::mm", 1030, 5, "[[4, 3], [3, 5]]"),
          120, 240);
    check(OP("autograd::engine::evaluate_function: CheckpointFunctionBackward", 1010, 60, "[]")
              OP("aten::addmm", 1013, 5, "[[5], [3, 4], [4, 5]]")
                  OP("autograd::engine::evaluate_function: AddmmBackward0", 1030, 20, "[]")
                      OP("aten::mm", 1032, 5, "[[4, 3], [3, 5]]"),
          120, 240);
}
END_TEST

START_TEST(convolutions_need_their_steps)
{
    check(OP("aten::convolution", 1010, 5,
             VALUES("[[2, 3, 9, 9], [8, 3, 3, 3], [8], [], [], [], [], [], []]",
                    "[\"\", \"\", \"\", \"[2, 2]\", \"[1, 1]\", \"[1, 1]\", \"False\", \"[0, 0]\", "
                    "\"1\"]")),
          2.0 * 2 * 8 * 25 * 27, 2.0 * 2 * 8 * 25 * 27);
    check(OP("aten::convolution", 1010, 5,
             VALUES("[[2, 8, 5, 5], [8, 3, 3, 3], [3], [], [], [], [], [], []]",
                    "[\"\", \"\", \"\", \"[2, 2]\", \"[0, 0]\", \"[1, 1]\", \"True\", \"[0, 0]\", "
                    "\"1\"]")),
          2.0 * 2 * 8 * 25 * 27, 2.0 * 2 * 8 * 25 * 27);
    check(OP("aten::convolution_backward", 1010, 5, "[[2, 8, 5, 5], [2, 3, 9, 9], [8, 3, 3, 3]]"),
          4.0 * 2 * 8 * 25 * 27, 4.0 * 2 * 8 * 25 * 27);
    check(OP("aten::convolution", 1010, 5, "[[2, 3, 9, 9], [8, 3, 3, 3], [8]]")
              OP("aten::mm", 1040, 5, "[[1, 1], [1, 1]]"),
          2, 2);
}
END_TEST

START_TEST(attention_computes_scores_again_in_its_backward_pass)
{
    const double forward = 4.0 * 2 * 4 * 20 * 16 * 30;
    check(OP("aten::scaled_dot_product_attention", 1010, 30,
             "[[2, 4, 20, 16], [2, 4, 30, 16], [2, 4, 30, 16]]")
              OP("aten::bmm", 1015, 5, "[[2, 3, 4], [2, 4, 5]]"),
          forward, forward);
    check(OP("aten::_scaled_dot_product_flash_attention_backward", 1010, 5,
             "[[2, 4, 20, 16], [2, 4, 20, 16], [2, 4, 30, 16], [2, 4, 30, 16]]"),
          2 * forward, 2.5 * forward);
}
END_TEST

START_TEST(each_step_has_its_own_and_some_must_have_shapes)
{
    struct ms_err e = {0};
    ck_ok(measure(STEP(1, 1000) "," STEP(2, 1100) OP("aten::mm", 1010, 5, "[[3, 4], [4, 5]]")
                      OP("aten::mm", 1100, 5, "[[3, 4], [4, 1]]")
                          OP("aten::mm", 1300, 5, "[[3, 4], [4, 5]]"),
                  &e),
          e);
    ck_assert_uint_eq(flops.n, 2);
    ck_assert_double_eq_tol(flops.p[0].machine, 120, 1e-6);
    ck_assert_double_eq_tol(flops.p[1].machine, 24, 1e-6);
    end();
    ck_assert_int_eq(
        measure(STEP(1, 1000) OP("aten::mm", 1010, 5, "[[], [{\"a\": 1}], \"x\"]"), &e),
        MS_E_NOTFOUND);
    ck_assert_ptr_nonnull(strstr(e.msg, "record_shapes"));
    end();
}
END_TEST

TEST_MAIN("trace_flops", products_count_twice_their_terms,
          an_operator_within_a_counted_one_is_part_of_it,
          what_a_checkpoint_executes_again_counts_for_the_machine, convolutions_need_their_steps,
          attention_computes_scores_again_in_its_backward_pass,
          each_step_has_its_own_and_some_must_have_shapes)
