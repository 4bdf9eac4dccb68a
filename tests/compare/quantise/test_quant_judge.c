/* SPDX-License-Identifier: MIT
 *
 * quant_judge: drawn tensors that are quantised rightly, and with one mistake each.
 */
#include "compare/quantise/quant_judge.h"

#include "probe/quantise/quant_tensor.h"
#include "tests/support/check.h"

#include <math.h>

enum { ROWS = 48, COLS = 96, COUNT = ROWS * COLS };
static float before[COUNT], after[COUNT], scale[COUNT];
static uint64_t state;

static double uniform(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(state >> 40) + 0.5) / (1 << 24);
}

/* Normal values; each row has a size of its own. */
static void draw(uint64_t seed)
{
    state = seed * 2862933555777941757u + 3037000493u;
    double size = 1;
    for (int i = 0; i < COUNT; i++) {
        size = i % COLS == 0 ? exp(uniform() - 0.5) : size;
        before[i] = (float)(size * sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()));
    }
}

/* Scales taken from the largest value along a row, a column, or a block of a row. */
enum { BY_ROW, BY_COLUMN, BY_BLOCK };
static void take_scales(int by, int block, double most)
{
    for (int i = 0; i < COUNT; i++) {
        const int row = i / COLS, col = i % COLS;
        double largest = 0;
        const int from = by == BY_BLOCK ? col / block * block : 0;
        const int n = by == BY_COLUMN ? ROWS : by == BY_BLOCK ? block : COLS;
        for (int k = 0; k < n && from + k < (by == BY_COLUMN ? ROWS : COLS); k++) {
            const int at = by == BY_COLUMN ? k * COLS + col : row * COLS + from + k;
            largest = fmax(largest, fabs((double)before[at]));
        }
        scale[i] = (float)(largest / most);
    }
}

static struct quant_verdict judge(void)
{
    struct quant_verdict v;
    struct ms_err err = {0};
    const struct quant_table f = {before, ROWS, COLS, 1e-6}, q = {after, ROWS, COLS, 1e-6};
    ck_ok(quant_judge(&v, &f, &q, true, &err), err);
    return v;
}

static void quantise(double (*round_)(double), double offset, bool twice)
{
    for (int i = 0; i < COUNT; i++) {
        const double code = fmin(fmax(round_((double)before[i] / (double)scale[i]), -128), 127);
        after[i] = (float)((code + offset) * (double)scale[i] * (twice ? (double)scale[i] : 1));
    }
}

START_TEST(right_ones_have_no_fault)
{
    for (int i = 0; i < QUANT_FORMATS; i++) {
        struct quant_shape shape = {ROWS, COLS, 1};
        struct quant_loss l = {0};
        draw((uint64_t)i);
        quant_tensor(&quant_formats[i].scheme, &shape, before, after, &l);
        const struct quant_verdict v = judge();
        ck_assert_msg(v.fault == QUANT_NO_FAULT, "%s: %s", quant_formats[i].name, v.text);
        /* Of the types without a negative zero no grid is looked for. */
        if (strstr(quant_formats[i].name, "fnuz") == NULL)
            ck_assert_msg(v.is_quantised && v.number == quant_formats[i].scheme.number,
                          "%s: taken for %s", quant_formats[i].name, quant_facts(v.number)->name);
    }
}
END_TEST

START_TEST(scales_of_columns_are_told_from_those_of_rows)
{
    struct quant_verdict v[4];
    struct quant_verdict *all[] = {&v[0], &v[1], &v[2], &v[3]};
    for (int i = 0; i < 4; i++) {
        draw(100 + (uint64_t)i);
        take_scales(i == 2 ? BY_COLUMN : BY_ROW, 0, 127);
        quantise(rint, 0, false);
        v[i] = judge();
        ck_assert_int_eq(v[i].fault, QUANT_NO_FAULT);
    }
    quant_judge_together(all, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(v[i].fault, i == 2 ? QUANT_WRONG_AXIS : QUANT_NO_FAULT);
    ck_assert_ptr_nonnull(strstr(v[2].text, "3 others have a scale for each row"));
}
END_TEST

START_TEST(dequantised_along_another_axis)
{
    static float rows[COUNT];
    draw(200);
    take_scales(BY_ROW, 0, 127);
    memcpy(rows, scale, sizeof rows);
    take_scales(BY_COLUMN, 0, 127);
    for (int i = 0; i < COUNT; i++)
        after[i] = (float)(rint((double)before[i] / (double)rows[i]) * (double)scale[i]);
    ck_assert_int_eq(judge().fault, QUANT_WRONG_AXIS);
}
END_TEST

START_TEST(blocks_of_another_size)
{
    struct quant_scheme s = quant_format_find("mxfp4")->scheme;
    struct quant_shape shape = {ROWS, COLS, 1};
    struct quant_loss l = {0};
    struct quant_verdict v;
    struct quant_verdict *all[] = {&v};
    s.group = 16;
    draw(300);
    quant_tensor(&s, &shape, before, after, &l);
    v = judge();
    ck_assert_int_eq(v.fault, QUANT_NO_FAULT);
    quant_judge_together(all, 1);
    ck_assert_int_eq(v.fault, QUANT_WRONG_BLOCK);
}
END_TEST

static void scale_by(float factor)
{
    for (int i = 0; i < COUNT; i++)
        scale[i] *= factor;
}

START_TEST(scales_of_other_values)
{
    draw(400);
    take_scales(BY_ROW, 0, 127);
    scale_by(0.3f);
    quantise(rint, 0, false);
    ck_assert_int_eq(judge().fault, QUANT_STALE_SCALE);
    take_scales(BY_ROW, 0, 127);
    scale_by(4);
    quantise(rint, 0, false);
    ck_assert_int_eq(judge().fault, QUANT_STALE_SCALE);
    take_scales(BY_ROW, 0, 127);
    for (int i = 0; i < COUNT; i++)
        after[i] = (float)(rint((double)before[i] / (double)scale[i]) * (double)scale[i] * 0.7);
    ck_assert_int_eq(judge().fault, QUANT_STALE_SCALE);
}
END_TEST

START_TEST(outliers_that_are_cut_off)
{
    draw(500);
    for (int i = 0; i < COUNT; i += 499)
        before[i] *= 40;
    for (int i = 0; i < COUNT; i++)
        scale[i] = 5.0f / 127;
    quantise(rint, 0, false);
    ck_assert_int_eq(judge().fault, QUANT_OUTLIERS);
}
END_TEST

START_TEST(mistakes_of_single_steps)
{
    static double (*const wrong[])(double) = {floor, ceil, trunc};
    for (int i = 0; i < 3; i++) {
        draw(600 + (uint64_t)i);
        take_scales(BY_ROW, 0, 127);
        quantise(wrong[i], 0, false);
        ck_assert_int_eq(judge().fault, QUANT_ROUNDING);
    }
    quantise(rint, 0, true);
    ck_assert_int_eq(judge().fault, QUANT_TWICE);
    quantise(rint, 37, false);
    ck_assert_int_eq(judge().fault, QUANT_ZERO_POINT);
    for (int i = 0; i < COUNT; i++)
        after[i] = (float)rint((double)before[i] / (double)scale[i]);
    ck_assert_int_eq(judge().fault, QUANT_NOT_DONE);
}
END_TEST

START_TEST(what_is_not_quantised_is_left_alone)
{
    draw(700);
    memcpy(after, before, sizeof after);
    struct quant_verdict v = judge();
    ck_assert(v.equal && !v.is_quantised);
    for (int i = 0; i < COUNT; i++)
        after[i] = before[i] * (1 + 1e-3f * (float)uniform());
    v = judge();
    ck_assert(!v.equal && !v.is_quantised && v.fault == QUANT_NO_FAULT);
}
END_TEST

TEST_MAIN("quant_judge", right_ones_have_no_fault, scales_of_columns_are_told_from_those_of_rows,
          dequantised_along_another_axis, blocks_of_another_size, scales_of_other_values,
          outliers_that_are_cut_off, mistakes_of_single_steps, what_is_not_quantised_is_left_alone)
