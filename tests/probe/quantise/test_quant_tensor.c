/* SPDX-License-Identifier: MIT
 *
 * quant_tensor: groups, scales and counts of small tensors, worked out by hand.
 */
#include "probe/quantise/quant_tensor.h"

#include "tests/support/check.h"

#include <math.h>

static struct quant_loss loss_of(const char *format, const struct quant_shape *shape, float *v,
                                 uint64_t group)
{
    struct quant_scheme s = quant_format_find(format)->scheme;
    struct quant_loss l = {0};
    s.group = group != 0 ? group : s.group;
    quant_tensor(&s, shape, v, v, &l);
    return l;
}

START_TEST(mxfp4_of_two_blocks)
{
    /* Scales 2^(floor(log2 7) - 2) = 1 and 2^(floor(log2 0.3) - 2) = 2^-4. */
    float v[] = {7, 0.2f, -2.5f, 1, 0.3f, -0.05f, 0, 0.01f};
    static const float want[] = {6, 0, -2, 1, 0.25f, -0.0625f, 0, 0};
    const struct quant_loss l = loss_of("mxfp4", &(struct quant_shape){1, 8, 1}, v, 4);
    for (int i = 0; i < 8; i++)
        ck_assert_float_eq(v[i], want[i]);
    ck_assert_uint_eq(l.groups, 2);
    ck_assert_uint_eq(l.underflow, 2);
    ck_assert_uint_eq(l.overflow, 1);
    ck_assert_uint_eq(l.clipped, 1);
    ck_assert_double_eq(l.scale_min, 0x1p-4);
    ck_assert_double_eq(l.scale_max, 1);
    /* The first block uses 6, the largest; the second 4, above which is one of seven magnitudes. */
    ck_assert_double_eq_tol(l.unused, 1.0 / 7, 1e-12);
    ck_assert_double_eq_tol(l.most, 1, 1e-12);
}
END_TEST

START_TEST(integers_have_channels_and_zero_points)
{
    float v[] = {127.5f, -3, 255, 6}, u[] = {0, 51, 102, 255};
    struct quant_scheme s = quant_format_find("int8")->scheme;
    struct quant_loss l = {0};
    s.by = QUANT_BY_CHANNEL;
    quant_tensor(&s, &(struct quant_shape){1, 2, 2}, v, v, &l);
    ck_assert_float_eq(v[0], 127);
    ck_assert_float_eq(v[1], -3);
    ck_assert_float_eq(v[2], 254);
    ck_assert_float_eq(v[3], 6);
    ck_assert_double_eq(l.scale_max, 2);
    const struct quant_loss z = loss_of("uint8", &(struct quant_shape){1, 4, 1}, u, 0);
    ck_assert_float_eq(u[3], 255);
    ck_assert_double_eq(z.noise, 0);
}
END_TEST

START_TEST(blocks_lie_along_the_axis)
{
    /* Two columns of very different size: along axis 0 nothing is lost. */
    float v[] = {4, 0.001953125f, 2, 0.00390625f, 1, 0.0078125f, 3, 0.005859375f};
    float same[8];
    struct quant_shape shape;
    struct ms_err err = {0};
    memcpy(same, v, sizeof v);
    ck_ok(quant_shape_of(&shape, (const uint64_t[]){4, 2}, 2, 0, &err), err);
    const struct quant_loss along = loss_of("mxfp4", &shape, v, 4);
    ck_ok(quant_shape_of(&shape, (const uint64_t[]){4, 2}, 2, -1, &err), err);
    const struct quant_loss across = loss_of("mxfp4", &shape, same, 4);
    ck_assert_double_eq(along.noise, 0);
    ck_assert_double_gt(across.noise, 0);
    ck_assert_int_eq(quant_shape_of(&shape, (const uint64_t[]){4, 2}, 2, 2, &err), MS_E_ARG);
    ck_says(err, "no axis 2");
}
END_TEST

START_TEST(what_is_not_finite_is_left_out)
{
    float v[] = {1, NAN, 2, 3, 1, 2, 3, 4};
    const struct quant_loss l = loss_of("mxfp8", &(struct quant_shape){1, 8, 1}, v, 4);
    ck_assert_uint_eq(l.special, 4);
    ck_assert(isnan(v[0]));
    ck_assert_float_eq(v[7], 4);
    ck_assert_double_eq(l.noise, 0);
    ck_assert(isinf(quant_sqnr(l.signal, l.noise)));
    ck_assert(isnan(quant_sqnr(0, 0)));
    ck_assert_double_eq_tol(quant_sqnr(100, 1), 20, 1e-12);
}
END_TEST

START_TEST(every_format_has_a_name_and_words)
{
    char text[160];
    for (int i = 0; i < QUANT_FORMATS; i++) {
        ck_assert_ptr_eq(quant_format_find(quant_formats[i].name), &quant_formats[i]);
        quant_scheme_text(&quant_formats[i].scheme, text, sizeof text);
        ck_assert_ptr_nonnull(strstr(text, quant_facts(quant_formats[i].scheme.number)->name));
    }
    ck_assert_ptr_null(quant_format_find("fp3"));
}
END_TEST

TEST_MAIN("quant_tensor", mxfp4_of_two_blocks, integers_have_channels_and_zero_points,
          blocks_lie_along_the_axis, what_is_not_finite_is_left_out,
          every_format_has_a_name_and_words)
