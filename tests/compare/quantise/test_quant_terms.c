/* SPDX-License-Identifier: MIT
 *
 * quant_terms, quant_explain: the parts of an error against sums made by hand.
 */
#include "compare/quantise/quant_explain.h"
#include "compare/quantise/quant_terms.h"
#include "compare/quantise/quant_unfuse.h"

#include "tests/support/check.h"

#include <math.h>

static const struct quant_values nothing;

static struct quant_values values(float *v, uint32_t ndim, const uint64_t *shape)
{
    struct quant_values out = {.v = v, .count = 1, .ndim = ndim, .dtype = MS_DT_F32};
    for (uint32_t d = 0; d < ndim; d++) {
        out.shape[d] = shape[d];
        out.count *= shape[d];
    }
    return out;
}

/* One output: x = (1, 2), w = (3, 5); before the input is quantised it is already (1, 2.5), after that
 * (1.5, 2.5); the weight becomes (3, 4); the sum has an error of 0.25. */
START_TEST(each_error_has_its_part)
{
    float x[] = {1, 2}, w[] = {3, 5}, y[] = {13}, b[] = {1, 2.5f}, qx[] = {1.5f, 2.5f},
          qw[] = {3, 4}, qy[] = {14.75f};
    const struct quant_values vx = values(x, 2, (const uint64_t[]){1, 2}),
                              vw = values(w, 2, (const uint64_t[]){1, 2}),
                              vy = values(y, 2, (const uint64_t[]){1, 1}),
                              vb = values(b, 2, (const uint64_t[]){1, 2}),
                              vqx = values(qx, 2, (const uint64_t[]){1, 2}),
                              vqw = values(qw, 2, (const uint64_t[]){1, 2}),
                              vqy = values(qy, 2, (const uint64_t[]){1, 1});
    const struct quant_operands o = {QUANT_LINEAR, &vx,  &vw,  &vy,      &nothing,
                                     &vqx,         &vqw, &vqy, &nothing, .qx_before = &vb};
    struct quant_terms t;
    quant_terms_find(&t, &o);
    ck_assert_uint_eq(t.sampled, 1);
    ck_assert_double_eq(t.signal, 13 * 13);
    ck_assert_double_eq(t.weight, 2.5 * 2.5);
    ck_assert_double_eq(t.input, 1.5 * 1.5);
    ck_assert_double_eq(t.inherited, 2.5 * 2.5);
    ck_assert_double_eq(t.sums, 0.25 * 0.25);
    ck_assert_double_eq(t.product, 1.5 * 1.5);
}
END_TEST

/* The output is that of the operands, so that a wrong index would show as an error of the sums. */
static double sums_error(enum quant_kind kind, struct quant_values *x, struct quant_values *w,
                         struct quant_values *y, int64_t stride, int64_t padding, int64_t groups)
{
    const struct quant_operands o = {
        kind,
        x,
        w,
        y,
        &nothing,
        x,
        w,
        &(struct quant_values){.v = (float[64]){0},
                               .count = y->count,
                               .ndim = y->ndim,
                               .shape = {y->shape[0], y->shape[1], y->shape[2], y->shape[3]}},
        &nothing,
        .qx_before = &nothing,
        .stride = {stride, stride, stride},
        .padding = {padding, padding, padding},
        .dilation = {1, 1, 1},
        .groups = groups};
    struct quant_terms t;
    quant_terms_find(&t, &o);
    ck_assert_uint_eq(t.sampled, y->count);
    /* (0 - x w) - (y - x w) = -y */
    return fabs(t.sums - t.signal);
}

START_TEST(products_have_their_indices)
{
    float x[32], w[36], y[16] = {0};
    for (int i = 0; i < 32; i++)
        x[i] = (float)(i % 7) - 3;
    for (int i = 0; i < 36; i++)
        w[i] = (float)(i % 5) - 2;
    /* Two channels of 4 x 4, each with a kernel of 3 x 3 of its own, every second place, a border of 1. */
    for (int c = 0; c < 2; c++) {
        for (int o = 0; o < 4; o++) {
            for (int k = 0; k < 9; k++) {
                const int row = o / 2 * 2 - 1 + k / 3, col = o % 2 * 2 - 1 + k % 3;
                if (row >= 0 && row < 4 && col >= 0 && col < 4)
                    y[c * 4 + o] += x[c * 16 + row * 4 + col] * w[c * 9 + k];
            }
        }
    }
    struct quant_values vx = values(x, 4, (const uint64_t[]){1, 2, 4, 4}),
                        vw = values(w, 4, (const uint64_t[]){2, 1, 3, 3}),
                        vy = values(y, 4, (const uint64_t[]){1, 2, 2, 2});
    ck_assert_double_eq(sums_error(QUANT_CONV, &vx, &vw, &vy, 2, 1, 2), 0);
    /* Two batches of 2 x 3 by 3 x 2. */
    memset(y, 0, sizeof y);
    for (int i = 0; i < 8; i++) {
        for (int k = 0; k < 3; k++)
            y[i] += x[i / 4 * 6 + i / 2 % 2 * 3 + k] * w[i / 4 * 6 + k * 2 + i % 2];
    }
    vx = values(x, 3, (const uint64_t[]){2, 2, 3});
    vw = values(w, 3, (const uint64_t[]){2, 3, 2});
    vy = values(y, 3, (const uint64_t[]){2, 2, 2});
    ck_assert_double_eq(sums_error(QUANT_MATMUL, &vx, &vw, &vy, 1, 0, 1), 0);
}
END_TEST

START_TEST(shapes_that_do_not_fit_have_no_parts)
{
    float v[64] = {0};
    struct quant_values x = values(v, 2, (const uint64_t[]){2, 3}),
                        w = values(v, 2, (const uint64_t[]){4, 5}),
                        y = values(v, 2, (const uint64_t[]){2, 4});
    const struct quant_operands o = {QUANT_LINEAR, &x, &w, &y,       &nothing,
                                     &x,           &w, &y, &nothing, .qx_before = &nothing};
    struct quant_terms t;
    quant_terms_find(&t, &o);
    ck_assert_uint_eq(t.sampled, 0);
}
END_TEST

/* A stream to which two layers add errors of 4 and 1, read by a third whose own part is a half. */
START_TEST(noise_is_handed_to_those_that_made_it)
{
    float a[] = {2, 0, 0, 0}, b[] = {0, 1, 0, 0}, sum[] = {2, 1, 0, 0}, last[] = {3, 0};
    const struct quant_trace t[] = {{.output = a, .outputs = 4, .n_output = 4, .own = 1},
                                    {.output = b, .outputs = 4, .n_output = 4, .own = 1},
                                    {.input = sum,
                                     .output = last,
                                     .inputs = 4,
                                     .outputs = 2,
                                     .n_input = 4,
                                     .n_output = 2,
                                     .own = 0.5}};
    double shares[3];
    struct ms_err err = {0};
    ck_ok(quant_explain(t, 3, shares, &err), err);
    ck_assert_double_eq_tol(shares[0], 0.4, 1e-4);
    ck_assert_double_eq_tol(shares[1], 0.1, 1e-4);
    ck_assert_double_eq_tol(shares[2], 0.5, 1e-9);
}
END_TEST

START_TEST(fused_factors_are_taken_out)
{
    float w[] = {1, 2, 3, 4}, rows[] = {2, 4, 1.5f, 2}, columns[] = {3, 1, 9, 2}, qw[4],
          y[] = {4, 1}, x[] = {1, 8}, bias[] = {2, 0.5f};
    const struct quant_values golden = values(w, 2, (const uint64_t[]){2, 2});
    struct quant_values before = values(rows, 2, (const uint64_t[]){2, 2}),
                        vw = values(memcpy(qw, rows, sizeof qw), 2, (const uint64_t[]){2, 2}),
                        vx = values(x, 2, (const uint64_t[]){1, 2}),
                        vy = values(y, 2, (const uint64_t[]){1, 2}),
                        vb = values(bias, 1, (const uint64_t[]){2}), none = {0};
    const struct quant_fused f = {QUANT_LINEAR, &golden, &before, &vw, &vx, &none, &vy, &vb};
    enum quant_fusion found;
    struct ms_err err = {0};
    ck_ok(quant_unfuse(&f, &found, &err), err);
    ck_assert_int_eq(found, QUANT_FUSED_ROWS);
    ck_assert_mem_eq(qw, w, sizeof w);
    ck_assert(y[0] == 2 && y[1] == 2 && bias[0] == 1 && bias[1] == 1 && x[0] == 1);
    before.v = columns;
    memcpy(qw, columns, sizeof qw);
    ck_ok(quant_unfuse(&f, &found, &err), err);
    ck_assert_int_eq(found, QUANT_FUSED_COLUMNS);
    ck_assert_mem_eq(qw, w, sizeof w);
    ck_assert(x[0] == 3 && x[1] == 4 && y[0] == 2);
    before.v = w;
    ck_ok(quant_unfuse(&f, &found, &err), err);
    ck_assert_int_eq(found, QUANT_FUSED_NOTHING);
}
END_TEST

TEST_MAIN("quant_terms", fused_factors_are_taken_out, each_error_has_its_part,
          products_have_their_indices, shapes_that_do_not_fit_have_no_parts,
          noise_is_handed_to_those_that_made_it)
