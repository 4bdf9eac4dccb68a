/* SPDX-License-Identifier: MIT
 *
 * tape: values against arithmetic done here, gradients against differences, and errors of float32
 * sums, which must stay within their bounds and come near them.
 */
#include "compare/recompute/functions.h"
#include "compare/recompute/operator_call.h"
#include "tests/support/check.h"

#include <math.h>

enum { LIMIT = 1 << 28 };

static unsigned seed = 1;

static double draw(void)
{
    seed = seed * 1664525U + 1013904223U;
    return (double)(seed >> 1) / 1073741824.0 - 1.0;
}

static void begin(struct tape *t, enum ms_dtype type)
{
    struct ms_err err = {0};
    ck_ok(tape_new(t, type, LIMIT, &err), err);
}

/* A leaf of drawn elements, each rounded to float32. */
static tape_id leaf(struct tape *t, unsigned ndim, uint64_t a, uint64_t b, uint64_t c)
{
    const struct tape_shape s = {.ndim = ndim, .dim = {a, b, c}};
    const tape_id id = tape_leaf(t, &s);
    ck_assert_uint_ne(id, TAPE_NONE);
    for (size_t i = 0; i < tape_at(t, id)->n; i++)
        tape_at(t, id)->v[i] = (double)(float)draw();
    return id;
}

START_TEST(products_are_sums_of_products)
{
    struct tape t;
    begin(&t, MS_DT_F32);
    const tape_id x = leaf(&t, 3, 2, 3, 4), y = leaf(&t, 2, 4, 5, 0);
    const tape_id z = tape_matmul(&t, x, false, y, false);
    ck_assert_uint_eq(tape_at(&t, z)->n, 30);
    for (size_t i = 0; i < 6; i++)
        for (size_t j = 0; j < 5; j++) {
            double sum = 0;
            for (size_t k = 0; k < 4; k++)
                sum += tape_at(&t, x)->v[i * 4 + k] * tape_at(&t, y)->v[k * 5 + j];
            ck_assert(fabs(tape_at(&t, z)->v[i * 5 + j] - sum) < 1e-14);
        }
    tape_free(&t);
}
END_TEST

/* The errors of sums in float32, one term after the other, in units of their bounds. */
static double worst_sum(bool positive, size_t n, size_t rows)
{
    struct tape t;
    double worst = 0;
    begin(&t, MS_DT_F32);
    const tape_id x = leaf(&t, 2, rows, n, 0);
    for (size_t i = 0; positive && i < rows * n; i++)
        tape_at(&t, x)->v[i] = fabs(tape_at(&t, x)->v[i]);
    const tape_id y = tape_reduce(&t, TAPE_SUM, x, 2U, false);
    for (size_t r = 0; r < rows; r++) {
        volatile float sum = 0;
        for (size_t i = 0; i < n; i++)
            sum = sum + (float)tape_at(&t, x)->v[r * n + i];
        worst = fmax(worst, fabs((double)sum - tape_at(&t, y)->v[r]) / tape_at(&t, y)->e[r]);
    }
    tape_free(&t);
    return worst;
}

START_TEST(errors_of_sums_grow_as_their_bounds_do)
{
    static const size_t lengths[] = {16, 256, 4096};
    for (size_t i = 0; i < 3; i++)
        for (int positive = 0; positive < 2; positive++) {
            const double worst = worst_sum(positive != 0, lengths[i], 400);
            ck_assert_msg(worst < 3 && worst > 0.1, "%zu terms: %g", lengths[i], worst);
        }
}
END_TEST

/* A function of x and y that uses most kinds of nodes. */
static tape_id formula(struct tape *t, tape_id x, tape_id y)
{
    const tape_id m = tape_matmul(t, x, false, y, true);
    const tape_id a = tape_mul(t, tape_tanh(t, m), tape_exp(t, tape_linear(t, m, -0.5, 0.25)));
    const tape_id b = tape_div(t, a, tape_linear(t, tape_square(t, m), 1, 2));
    const tape_id c = tape_cumsum(t, tape_pad(t, b, 1, 1, 0, 0.5), 1);
    const tape_id d = tape_sub(t, c, tape_mean(t, c, 1U, true));
    const tape_id e = tape_where(t, d, d, tape_constant(t, 1));
    return tape_reduce(t, TAPE_SUM, tape_slice(t, tape_swap(t, e, 0, 1), 0, 1, 2, 1), 3U, false);
}

static double value_with(double *at, double v, const double *xs, const double *ys)
{
    struct tape t;
    const struct tape_shape s = {.ndim = 2, .dim = {3, 4}};
    const double was = *at;
    *at = v;
    begin(&t, MS_DT_F64);
    const tape_id x = tape_leaf(&t, &s), y = tape_leaf(&t, &s);
    memcpy(tape_at(&t, x)->v, xs, 12 * sizeof *xs);
    memcpy(tape_at(&t, y)->v, ys, 12 * sizeof *ys);
    const double out = tape_at(&t, formula(&t, x, y))->v[0];
    tape_free(&t);
    *at = was;
    return out;
}

START_TEST(gradients_are_slopes)
{
    struct tape t;
    double xs[12], ys[12];
    begin(&t, MS_DT_F64);
    const tape_id in[2] = {leaf(&t, 2, 3, 4, 0), leaf(&t, 2, 3, 4, 0)};
    memcpy(xs, tape_at(&t, in[0])->v, sizeof xs);
    memcpy(ys, tape_at(&t, in[1])->v, sizeof ys);
    const tape_id y = formula(&t, in[0], in[1]), one = tape_constant(&t, 1);
    tape_id g[2];
    tape_gradients(&t, &y, &one, 1, in, 2, g);
    ck_assert(!tape_failed(&t));
    for (size_t i = 0; i < 24; i++) {
        double *at = i < 12 ? &xs[i] : &ys[i - 12];
        const double h = 1e-6,
                     slope = (value_with(at, *at + h, xs, ys) - value_with(at, *at - h, xs, ys)) /
                             (2 * h);
        ck_assert(fabs(slope - tape_at(&t, g[i / 12])->v[i % 12]) < 1e-7);
    }
    tape_free(&t);
}
END_TEST

START_TEST(shapes_that_do_not_go_together_are_refused)
{
    struct tape t;
    begin(&t, MS_DT_F32);
    const tape_id x = leaf(&t, 2, 3, 4, 0), y = leaf(&t, 2, 3, 5, 0);
    ck_assert_uint_eq(tape_add(&t, x, y), TAPE_NONE);
    ck_assert(tape_failed(&t));
    ck_assert_uint_eq(tape_exp(&t, x), TAPE_NONE); /* nothing works after a failure */
    tape_free(&t);
}
END_TEST

START_TEST(memory_is_limited)
{
    struct tape t;
    struct ms_err err = {0};
    ck_ok(tape_new(&t, MS_DT_F32, 1 << 20, &err), err);
    const struct tape_shape s = {.ndim = 2, .dim = {1 << 12, 1 << 12}};
    ck_assert_uint_eq(tape_leaf(&t, &s), TAPE_NONE);
    ck_assert_int_eq(t.err.rc, MS_E_LIMIT);
    tape_free(&t);
}
END_TEST

START_TEST(an_unknown_operator_and_missing_arguments_are_said)
{
    struct tape t;
    struct ms_err err = {0};
    begin(&t, MS_DT_F32);
    struct rec_call c = {.tape = &t, .op = MS_STR("no_such_operator")};
    ck_assert_int_eq(rec_compute(&c, &err), MS_E_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.msg, "no_such_operator"));
    tape_free(&t);
    begin(&t, MS_DT_F32);
    err = (struct ms_err){0};
    c = (struct rec_call){.tape = &t, .op = MS_STR("linear")};
    ck_assert_int_eq(rec_compute(&c, &err), MS_E_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.msg, "input"));
    tape_free(&t);
}
END_TEST

START_TEST(no_operator_is_in_the_table_twice)
{
    size_t n = 0;
    for (; rec_operator_name(n) != NULL; n++)
        for (size_t k = 0; k < n; k++)
            ck_assert_str_ne(rec_operator_name(n), rec_operator_name(k));
    ck_assert_uint_gt(n, 250);
}
END_TEST

TEST_MAIN("tape", products_are_sums_of_products, errors_of_sums_grow_as_their_bounds_do,
          gradients_are_slopes, shapes_that_do_not_go_together_are_refused, memory_is_limited,
          an_unknown_operator_and_missing_arguments_are_said, no_operator_is_in_the_table_twice)
