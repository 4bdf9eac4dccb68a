/* SPDX-License-Identifier: MIT
 *
 * pattern: drawn rows of statistics and of tensors against the definitions of the extended columns.
 */
#include "compare/measure/pattern.h"

#include "tests/support/check.h"

#include <math.h>

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

static struct cmp_setup set;
static struct cmp_rows rows = {.set = &set};
static struct cmp_measured measured;
static struct cmp_row row;

/* Bits of the significand of each type, the hidden one included. */
static const struct {
    enum ms_dtype type;
    int bits;
} floats[] = {{MS_DT_F64, 53}, {MS_DT_F32, 24},   {MS_DT_F16, 11},
              {MS_DT_BF16, 8}, {MS_DT_F8E4M3, 4}, {MS_DT_F8E5M2, 3}};
enum { FLOATS = sizeof floats / sizeof *floats };

static int bits_of(enum ms_dtype type)
{
    for (int i = 0; i < FLOATS; i++) {
        if (floats[i].type == type)
            return floats[i].bits;
    }
    return 0;
}

static void begin(enum probe_mode mode)
{
    set.mode = mode;
    row = (struct cmp_row){.t = {.present = true, .type = MS_DT_F32, .shape = MS_STR("[2, 3]")},
                           .b = {.present = true, .type = MS_DT_F32, .shape = MS_STR("[2, 3]")}};
    for (int i = 0; i < PROBE_STATS; i++)
        row.t.stat[i].kind = row.b.stat[i].kind = CMP_VALUE_NUMBER;
}

static void set_stats(struct cmp_item *item, double max, double min, double mean, double norm)
{
    const double v[] = {max, min, mean, norm};
    static const int place[] = {PROBE_STAT_MAX, PROBE_STAT_MIN, PROBE_STAT_MEAN, PROBE_STAT_NORM};
    for (int i = 0; i < 4; i++)
        item->stat[place[i]].v = v[i];
}

static struct cmp_pattern pattern(void)
{
    return cmp__pattern(&rows, &measured, &row);
}

/* ---- statistics ------------------------------------------------------------------------------------- */

/* Max, min, mean and norm of c times a tensor that has these. */
static void set_scaled(double c, double max, double min, double mean, double norm)
{
    set_stats(&row.b, max, min, mean, norm);
    set_stats(&row.t, c >= 0 ? c * max : c * min, c >= 0 ? c * min : c * max, c * mean,
              fabs(c) * norm);
}

START_TEST(a_factor_of_all_statistics_is_the_scale)
{
    for (uint64_t seed = 1; seed < 2000; seed++) {
        state = seed;
        const double c = (seed % 2 != 0 ? 1 : -1) * (double)below(4000) / 1000;
        begin(PROBE_MODE_SUMMARY);
        set_scaled(c, 1 + below(5), -1.5 - below(3), (double)below(9) / 10, 6 + below(4));
        const struct cmp_pattern p = pattern();
        ck_assert_msg(fabs(p.ext.scale - c) < 1e-9, "%g, not %g", p.ext.scale, c);
        ck_assert_str_eq(p.name, c == 1                                 ? "same figures"
                                 : fabs(c + 1) < 1e-3                   ? "sign flip"
                                 : p.ext.rel_l2_bound <= 3 * p.expected ? "small"
                                                                        : "scaled");
    }
}
END_TEST

/* One statistic that is off by more than 1e-5 of the norm has no factor, by less has one. */
START_TEST(a_statistic_that_does_not_fit_has_no_scale)
{
    for (int i = 0; i < PROBE_STATS - 1; i++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            begin(PROBE_MODE_SUMMARY);
            set_scaled(2, 3, -1, 0.5, 8);
            row.t.stat[i].v += sign * 2 * 8 * 0.9e-5;
            ck_assert_double_eq_tol(pattern().ext.scale, 2, 1e-9);
            row.t.stat[i].v += sign * 2 * 8 * 0.2e-5;
            ck_assert(isnan(pattern().ext.scale));
            ck_assert_str_eq(pattern().name, "different");
        }
    }
    begin(PROBE_MODE_SUMMARY);
    set_scaled(0, 3, -1, 0.5, 8); /* zeros are nought times anything */
    ck_assert(pattern().ext.scale == 0);
    set_scaled(1, 0, 0, 0, 0);
    ck_assert(isnan(pattern().ext.scale));
}
END_TEST

/* |d| is at least what the norm, the extremes and the mean of all elements differ by. */
START_TEST(the_bound_is_the_greatest_of_what_is_known)
{
    static const struct {
        const char *shape;
        double n;
    } shapes[] = {{"[2, 3]", 6}, {"[]", 1}, {"[7]", 7}, {"[4,  5, 2]", 40}, {"[0]", 0}};
    for (uint64_t seed = 1; seed < 2000; seed++) {
        state = seed;
        const size_t s = seed % 5;
        begin(PROBE_MODE_SUMMARY);
        row.t.shape = row.b.shape = ms_str_of(shapes[s].shape);
        set_stats(&row.b, 3, -2, 0.5, 7);
        set_stats(&row.t, 3 + (below(200) - 100.0) / 50, -2 + (below(200) - 100.0) / 50,
                  0.5 + (below(200) - 100.0) / 50, 7 + (below(200) - 100.0) / 50);
        double want = sqrt(shapes[s].n) * fabs(row.t.stat[PROBE_STAT_MEAN].v - 0.5);
        want = fmax(want, fabs(row.t.stat[PROBE_STAT_NORM].v - 7));
        want = fmax(want, fabs(row.t.stat[PROBE_STAT_MAX].v - 3));
        want = fmax(want, fabs(row.t.stat[PROBE_STAT_MIN].v + 2));
        const struct cmp_pattern p = pattern();
        ck_assert_double_eq_tol(p.ext.rel_l2_bound, want / 7, 1e-12);
        ck_assert_double_eq_tol(p.z, p.ext.rel_l2_bound / p.expected, 1e-9 * (1 + p.z));
    }
    begin(PROBE_MODE_SUMMARY);
    set_stats(&row.b, 0, 0, 0, 0);
    set_stats(&row.t, 0, 0, 0, 0);
    ck_assert(pattern().ext.rel_l2_bound == 0);
    set_stats(&row.t, 1, 0, 0.1, 1);
    ck_assert(isinf(pattern().ext.rel_l2_bound));
}
END_TEST

START_TEST(a_statistic_that_is_no_number_leaves_all_unknown)
{
    for (int i = 0; i < 2 * PROBE_STATS; i++) {
        begin(PROBE_MODE_SUMMARY);
        set_scaled(2, 3, -1, 0.5, 8);
        (i < PROBE_STATS ? &row.t : &row.b)->stat[i % PROBE_STATS].kind = CMP_VALUE_NAN;
        const struct cmp_pattern p = pattern();
        ck_assert(isnan(p.ext.rel_l2_bound) && isnan(p.ext.scale) && isnan(p.z));
        ck_assert_str_eq(p.name, "N/A");
    }
}
END_TEST

/* ---- what rounding explains ---------------------------------------------------------------------------- */

START_TEST(both_sides_are_rounded_by_themselves)
{
    for (int i = 0; i < FLOATS * FLOATS; i++) {
        begin(PROBE_MODE_SUMMARY);
        row.t.type = floats[i / FLOATS].type;
        row.b.type = floats[i % FLOATS].type;
        set_scaled(2, 3, -1, 0.5, 8);
        const double t = 0.425 * exp2(-bits_of(row.t.type)), b = 0.425 * exp2(-bits_of(row.b.type));
        ck_assert_double_eq_tol(pattern().expected, hypot(t, b), 1e-12 * hypot(t, b));
    }
    begin(PROBE_MODE_SUMMARY);
    row.t.type = MS_DT_I32;
    set_scaled(1.0000005, 3, -1, 0.5, 8);
    ck_assert(isnan(pattern().expected));
    ck_assert_str_eq(pattern().name, "small"); /* below 1e-6 where no rounding is known */
    set_scaled(1.000002, 3, -1, 0.5, 8);
    ck_assert_str_eq(pattern().name, "scaled");
}
END_TEST

START_TEST(noise_that_was_measured_comes_before_rounding)
{
    struct cmp__pair pair = {.t = 0, .b = 2};
    double noise[] = {0.5, 0.25, 0.125};
    begin(PROBE_MODE_SUMMARY);
    rows.pairs.p = &pair;
    rows.pairs.n = 1;
    measured.noise.p = noise;
    measured.noise.n = 3;
    set_scaled(2, 3, -1, 0.5, 8);
    ck_assert(pattern().expected == 0.125);
    ck_assert_double_eq_tol(pattern().z, 8, 1e-12);
    noise[2] = 0; /* equal runs: then rounding is the measure */
    ck_assert_double_eq_tol(pattern().expected, 0.425 * sqrt(2) * 0x1p-24, 1e-15);
    noise[2] = NAN;
    ck_assert_double_eq_tol(pattern().expected, 0.425 * sqrt(2) * 0x1p-24, 1e-15);
    rows.pairs.n = measured.noise.n = 0;
    rows.pairs.p = NULL;
    measured.noise.p = NULL;
}
END_TEST

/* ---- tensors --------------------------------------------------------------------------------------------- */

static const struct {
    double rel_l2, bit_equal, bias, scale;
    const char *name;
} tensors[] = {
    {0, 1, 0, 1, "identical"},
    {0, 0.9, 0, 1, "rounding"}, /* zeros of two signs */
    {1e-8, 0.2, 0, 1, "rounding"},
    {7e-8, 0.2, 0, 1, "rounding"}, /* three times the expected 3.6e-8 is 1.07e-7 */
    {2e-7, 0.2, 0, 1, "different"},
    {1, 0, 0, 2, "scaled"},
    {1.0000499, 0, 0, 2, "different"},
    {1.000000004, 0, 0, 2, "scaled"},
    {2, 0, 0, -1, "sign flip"},
    {1.9989, 0, 0, -0.9989, "scaled"},
    {0.5, 0.9995, 0, NAN, "outliers"},
    {0.5, 0.9985, 0, NAN, "different"},
    {0.5, 0.2, 0.9995, NAN, "shifted"},
    {0.5, 0.2, 0.9985, NAN, "different"},
    {0.5, 0.9995, 0.9995, 1, "outliers"},
};

START_TEST(the_shape_of_a_difference_has_a_name)
{
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        begin(PROBE_MODE_TENSOR);
        row.fig.state = CMP_STATE_OK;
        row.fig.ext = (struct cmp_ext){.rel_l2 = tensors[i].rel_l2,
                                       .rel_l2_bound = NAN,
                                       .bit_equal = tensors[i].bit_equal,
                                       .bias = tensors[i].bias,
                                       .scale = tensors[i].scale};
        const struct cmp_pattern p = pattern();
        ck_assert_msg(strcmp(p.name, tensors[i].name) == 0, "case %zu: %s", i, p.name);
        ck_assert_double_eq_tol(p.z, tensors[i].rel_l2 / p.expected, 1e-9 * (1 + p.z));
        row.fig.state = CMP_STATE_SHAPE;
        ck_assert_str_eq(pattern().name, "N/A");
        row.fig.state = CMP_STATE_OK;
        row.fig.ext.rel_l2 = NAN;
        ck_assert_str_eq(pattern().name, "N/A");
    }
}
END_TEST

START_TEST(only_tensors_on_both_sides_have_a_pattern)
{
    begin(PROBE_MODE_MD5);
    row.t.md5 = row.b.md5 = MS_STR("1234");
    ck_assert_str_eq(pattern().name, "identical");
    row.b.md5 = MS_STR("1235");
    ck_assert_str_eq(pattern().name, "different");
    ck_assert(isnan(pattern().expected));
    for (int i = 0; i < 4; i++) {
        begin(PROBE_MODE_SUMMARY);
        set_scaled(2, 3, -1, 0.5, 8);
        ck_assert_str_eq(pattern().name, "scaled");
        struct cmp_item *item = i % 2 == 0 ? &row.t : &row.b;
        if (i < 2)
            item->present = false;
        else
            item->type = MS_DT_NONE;
        ck_assert_str_eq(pattern().name, "N/A");
    }
}
END_TEST

TEST_MAIN("pattern", a_factor_of_all_statistics_is_the_scale,
          a_statistic_that_does_not_fit_has_no_scale, the_bound_is_the_greatest_of_what_is_known,
          a_statistic_that_is_no_number_leaves_all_unknown, both_sides_are_rounded_by_themselves,
          noise_that_was_measured_comes_before_rounding, the_shape_of_a_difference_has_a_name,
          only_tensors_on_both_sides_have_a_pattern)
