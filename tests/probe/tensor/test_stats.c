/* SPDX-License-Identifier: MIT */
#include "probe/tensor/stats.h"

#include "probe/base/cpu.h"
#include "tests/support/check.h"

#include <math.h>

enum { SPARE = 64, MOST = 3 * MS_STATS_BLOCK };
static char data[(size_t)MOST * 16 + SPARE];

static uint32_t seed = 1;
static uint32_t random32(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    return seed ^= seed << 5;
}

enum filling { BITS, ORDINARY, SPECIALS, FILLINGS };

/* A value of type t that says something: zeros of both signs, infinities, NaNs, subnormals. */
static uint64_t special(enum ms_dtype t)
{
    static const uint64_t f16[] = {0, 0x8000, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 1, 0x8001, 0x3c00};
    static const uint64_t bf16[] = {0, 0x8000, 0x7f80, 0xff80, 0x7fc0, 0xff81, 1, 0x8001, 0x3f80};
    static const uint64_t f32[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                   0xff800001, 1,          0x80000001, 0x3f800000};
    static const uint64_t f64[] = {0,
                                   1ULL << 63,
                                   0x7ff0000000000000,
                                   0xfff0000000000000,
                                   0x7ff8000000000000,
                                   0xfff0000000000001,
                                   1,
                                   (1ULL << 63) + 1,
                                   0x7fefffffffffffff};
    const uint32_t k = random32() % 9;
    switch (t) {
    case MS_DT_F16:
    case MS_DT_C32:
        return f16[k] | f16[random32() % 9] << 16;
    case MS_DT_BF16:
        return bf16[k];
    case MS_DT_F32:
    case MS_DT_C64:
        return f32[k] | f32[random32() % 9] << 32;
    case MS_DT_F64:
    case MS_DT_C128:
        return f64[k];
    default:
        return k % 3 == 0 ? 0 : k % 3 == 1 ? UINT64_MAX : 1ULL << (ms_dtype_size(t) * 8 - 1);
    }
}

/* Bits that make an ordinary number: for floats an exponent near that of 1. */
static uint64_t ordinary(enum ms_dtype t)
{
    const uint64_t r = random32() | (uint64_t)random32() << 32;
    switch (t) {
    case MS_DT_F16:
        return (r & 0x83ff) | 0x3800;
    case MS_DT_C32:
        return (r & 0x83ff83ff) | 0x38003800;
    case MS_DT_BF16:
        return (r & 0x80ff) | 0x3f00;
    case MS_DT_F32:
        return (r & 0x80ffffff) | 0x3f000000;
    case MS_DT_C64:
        return (r & 0x80ffffff80ffffff) | 0x3f0000003f000000;
    case MS_DT_F64:
    case MS_DT_C128:
        return (r & 0x800fffffffffffff) | 0x3fe0000000000000;
    default:
        return r & 0x3f3f3f3f3f3f3f3f;
    }
}

static void fill(enum ms_dtype t, enum filling how, char *p, size_t n)
{
    const size_t size = ms_dtype_size(t), unit = size > 8 ? 8 : size;
    for (size_t at = 0; at < n * size; at += unit) {
        uint64_t bits = random32() | (uint64_t)random32() << 32;
        if (how == ORDINARY || (how == SPECIALS && random32() % 50 != 0))
            bits = ordinary(t);
        else if (how == SPECIALS)
            bits = special(t);
        memcpy(p + at, &bits, unit);
    }
}

static struct ms_stats stats_of(unsigned cpu, enum ms_dtype t, const char *p, size_t n)
{
    struct ms_stats s;
    ms_cpu_limit(cpu);
    ms_stats_init(&s);
    ms_stats_add(&s, t, p, n);
    ms_cpu_limit(~0U);
    return s;
}

static void same_everywhere(enum ms_dtype t, const char *p, size_t n)
{
    static const unsigned variants[] = {MS_CPU_AVX2, MS_CPU_AVX512, ~0U};
    const struct ms_stats want = stats_of(0, t, p, n);
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        const struct ms_stats got = stats_of(variants[v], t, p, n);
        ck_assert_msg(memcmp(&got, &want, sizeof got) == 0,
                      "%s, %zu elements, variant %zu: sum %a %a, squares %a %a, min %a %a, "
                      "max %a %a, zeros %llu %llu, nan %llu %llu",
                      ms_dtype_torch(t), n, v, got.sum, want.sum, got.sumsq, want.sumsq, got.min,
                      want.min, got.max, want.max, (unsigned long long)got.zero,
                      (unsigned long long)want.zero, (unsigned long long)got.nan,
                      (unsigned long long)want.nan);
    }
}

START_TEST(every_instruction_set_gives_the_same_bits)
{
    static const size_t around[] = {MS_STATS_BLOCK - 17,
                                    MS_STATS_BLOCK - 1,
                                    MS_STATS_BLOCK,
                                    MS_STATS_BLOCK + 1,
                                    MS_STATS_BLOCK + 63,
                                    2 * MS_STATS_BLOCK,
                                    2 * MS_STATS_BLOCK + 1,
                                    MOST - 5,
                                    MOST};
    for (int i = MS_DT_NONE + 1; i < MS_DT_MAX; i++) {
        const enum ms_dtype t = (enum ms_dtype)i;
        for (int how = 0; how < FILLINGS; how++) {
            for (size_t n = 0; n <= 300; n++) {
                char *p = data + n % SPARE;
                fill(t, (enum filling)how, p, n);
                same_everywhere(t, p, n);
            }
            for (size_t k = 0; k < sizeof around / sizeof *around; k++) {
                fill(t, (enum filling)how, data + k, around[k]);
                same_everywhere(t, data + k, around[k]);
            }
        }
    }
}
END_TEST

/* Limits of exact arithmetic: the largest magnitudes of every integer type in every element. */
START_TEST(extreme_integers_do_not_overflow)
{
    for (int i = MS_DT_BOOL; i <= MS_DT_I64; i++) {
        const enum ms_dtype t = (enum ms_dtype)i;
        const size_t size = ms_dtype_size(t);
        for (int top = 0; top < 3; top++) {
            memset(data, top == 0 ? 0xff : 0, MOST * size);
            for (size_t k = 0; k < MOST && top != 0; k++) {
                memset(data + k * size, top == 1 ? 0 : 0xff, size);
                data[(k + 1) * size - 1] = (char)(top == 1 ? 0x80 : 0x7f);
            }
            same_everywhere(t, data, MOST);
            double v;
            ms_dtype_to_f64(t, data, 1, &v);
            const struct ms_stats s = stats_of(~0U, t, data, MOST);
            ck_assert_double_eq(s.min, v);
            ck_assert_double_eq(s.max, v);
            ck_assert_double_eq(s.sum, v * MOST);
            ck_assert_double_eq_tol(s.sumsq / (v * v * MOST), 1, v == 0 ? INFINITY : 1e-12);
        }
    }
}
END_TEST

/* Against the definition, element by element. */
START_TEST(figures_follow_their_definition)
{
    static double v[1000];
    for (int i = MS_DT_NONE + 1; i < MS_DT_MAX; i++) {
        const enum ms_dtype t = (enum ms_dtype)i;
        fill(t, SPECIALS, data + 1, 1000);
        ms_dtype_to_f64(t, data + 1, 1000, v);
        struct ms_stats want = {.min = (double)INFINITY, .max = (double)-INFINITY, .count = 1000};
        long double sum = 0, sumsq = 0;
        for (size_t k = 0; k < 1000; k++) {
            want.nan += isnan(v[k]) != 0;
            want.pinf += v[k] == (double)INFINITY;
            want.ninf += v[k] == (double)-INFINITY;
            want.zero += v[k] == 0;
            want.min = v[k] < want.min ? v[k] : want.min;
            want.max = v[k] > want.max ? v[k] : want.max;
            sum += isnan(v[k]) ? 0 : (long double)v[k];
            sumsq += isnan(v[k]) ? 0 : (long double)v[k] * (long double)v[k];
        }
        const struct ms_stats s = stats_of(~0U, t, data + 1, 1000);
        ck_assert_uint_eq(s.count, want.count);
        ck_assert_uint_eq(s.nan, want.nan);
        ck_assert_uint_eq(s.pinf, want.pinf);
        ck_assert_uint_eq(s.ninf, want.ninf);
        ck_assert_uint_eq(s.zero, want.zero);
        ck_assert_double_eq(s.min, want.min);
        ck_assert_double_eq(s.max, want.max);
        if (isfinite((double)sumsq)) {
            ck_assert_double_eq_tol(s.sum, (double)sum, 1e-9 * fabs((double)sum) + 1e-9);
            ck_assert_double_eq_tol(s.sumsq, (double)sumsq, 1e-9 * (double)sumsq);
        } else {
            ck_assert(!isfinite(s.sumsq));
            ck_assert_int_eq(isnan(s.sum) != 0, isnan((double)sum) != 0);
        }
    }
}
END_TEST

START_TEST(blocks_may_come_in_separate_calls)
{
    const enum ms_dtype t = MS_DT_F32;
    fill(t, SPECIALS, data, MOST);
    const struct ms_stats want = stats_of(~0U, t, data, MOST);
    struct ms_stats s, part;
    ms_stats_init(&s);
    ms_stats_add(&s, t, data, MS_STATS_BLOCK);
    ms_stats_add(&s, t, data + 4 * (size_t)MS_STATS_BLOCK, MOST - MS_STATS_BLOCK);
    ck_assert_mem_eq(&s, &want, sizeof s);
    ms_stats_init(&s);
    for (size_t at = 0; at < MOST; at += MS_STATS_BLOCK) {
        ms_stats_init(&part);
        ms_stats_add(&part, t, data + 4 * at, MS_STATS_BLOCK);
        ms_stats_join(&s, &part);
    }
    ck_assert_mem_eq(&s, &want, sizeof s);
}
END_TEST

START_TEST(mean_and_norm)
{
    static const float v[] = {3, -4, 0, 5};
    const struct ms_stats s = stats_of(~0U, MS_DT_F32, (const char *)v, 4);
    ck_assert_double_eq(ms_stats_mean(&s), 1);
    ck_assert_double_eq_tol(ms_stats_norm(&s), 7.0710678118654755, 1e-15);
    ck_assert_uint_eq(s.zero, 1);
    static const float with_nan[] = {1, NAN};
    const struct ms_stats n = stats_of(~0U, MS_DT_F32, (const char *)with_nan, 2);
    ck_assert_double_nan(ms_stats_mean(&n));
    ck_assert_double_nan(ms_stats_norm(&n));
    ck_assert_double_eq(n.min, 1);
    const struct ms_stats none = stats_of(~0U, MS_DT_F32, "", 0);
    ck_assert_double_nan(ms_stats_mean(&none));
    ck_assert_double_nan(ms_stats_norm(&none));
    ck_assert_double_eq(none.min, (double)INFINITY);
    const struct ms_stats unknown = stats_of(~0U, MS_DT_NONE, "", 9);
    ck_assert_uint_eq(unknown.count, 0);
}
END_TEST

/* The sign of the smallest zero must not depend on the order of comparisons. */
START_TEST(zeros_have_no_sign)
{
    static const float v[] = {-0.0F, 0.0F, -0.0F};
    for (size_t n = 1; n <= 3; n++) {
        const struct ms_stats s = stats_of(~0U, MS_DT_F32, (const char *)v, n);
        ck_assert(!signbit(s.min) && !signbit(s.max) && !signbit(s.sum));
        ck_assert_uint_eq(s.zero, n);
    }
}
END_TEST

TEST_MAIN("stats", every_instruction_set_gives_the_same_bits, extreme_integers_do_not_overflow,
          figures_follow_their_definition, blocks_may_come_in_separate_calls, mean_and_norm,
          zeros_have_no_sign)
