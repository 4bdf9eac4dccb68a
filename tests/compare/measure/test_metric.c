/* SPDX-License-Identifier: MIT
 *
 * metric: the one pass over two tensors against a plain one in long double, for
 * every type and every instruction set of this machine.
 */
#include "tests/support/check.h"

#include "compare/measure/metric.h"
#include "probe/base/cpu.h"

#include <math.h>

enum { MOST = 10007 };

static uint64_t state;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static const unsigned sets[] = {0, MS_CPU_CLMUL | MS_CPU_AVX2, ~0U};

/* ---- data ---------------------------------------------------------------- */

/* Random bits make every kind of number: denormals, infinities and NaN among them. */
static void random_bits(void *p, size_t n)
{
    unsigned char *bytes = p;
    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)next_random();
}

static void tame(enum ms_dtype t, void *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t r = next_random();
        const float v = (float)(int32_t)(r >> 40) / 1000.0F;
        const float pair[] = {v, (float)i};
        const double d = (double)v * 1.0009765625, pair64[] = {d, (double)i};
        const uint16_t half = (uint16_t)(0x3800 | (r & 0x83ff)), pair16[] = {half, (uint16_t)i},
                       brain = (uint16_t)(0x3f00 | (r & 0x80ff));
        if (t == MS_DT_F32)
            memcpy((char *)p + 4 * i, &v, 4);
        else if (t == MS_DT_F64)
            memcpy((char *)p + 8 * i, &d, 8);
        else if (t == MS_DT_F16)
            memcpy((char *)p + 2 * i, &half, 2);
        else if (t == MS_DT_BF16)
            memcpy((char *)p + 2 * i, &brain, 2);
        else if (t == MS_DT_C32)
            memcpy((char *)p + 4 * i, pair16, 4);
        else if (t == MS_DT_C64)
            memcpy((char *)p + 8 * i, pair, 8);
        else if (t == MS_DT_C128)
            memcpy((char *)p + 16 * i, pair64, 16);
        else if (t == MS_DT_BOOL)
            ((unsigned char *)p)[i] = r & 1;
        else if (ms_dtype_kind(t) == MS_DTK_FLOAT) /* of 8 bits: no NaN, and no zero */
            ((unsigned char *)p)[i] = (unsigned char)(0x20 | (r & 0x9f));
        else
            memcpy((char *)p + ms_dtype_size(t) * i, &r, ms_dtype_size(t));
    }
}

/* Make some elements equal, alone or many in a row, as in real pairs. */
static void mix(void *to, const void *from, size_t size, size_t n)
{
    for (size_t i = 0, run; i < n; i += run) {
        run = next_random() % 8 == 0 ? 1 + next_random() % 70 : 1;
        run = run < n - i ? run : n - i;
        if (next_random() % 3 != 0)
            memcpy((char *)to + size * i, (const char *)from + size * i, size * run);
    }
}

/* ---- the reference ---------------------------------------------------------- */

struct reference {
    uint64_t mask_diff, sign_diff, special, thousandth, five;
    long double nn, bb, nb, dd, max_abs;
    double max_rel;
};

static double relative(double x, double y, bool single)
{
    if (single) {
        float a = (float)x, b = (float)y;
        if (b == 0) {
            a += 0x1p-23F;
            b += 0x1p-23F;
        }
        return (double)fabsf((a - b) / b);
    }
    if (y == 0) {
        x += 0x1p-52;
        y += 0x1p-52;
    }
    return fabs((x - y) / y);
}

static struct reference refer(const double *x, const double *y, size_t n, bool single)
{
    struct reference r = {0};
    for (size_t i = 0; i < n; i++) {
        double a = x[i], b = y[i];
        bool bad = !isfinite(a) || !isfinite(b);
        /* of any sign: isinf may tell it */
        r.mask_diff += !isnan(a) != !isnan(b) || !isinf(a) != !isinf(b);
        r.sign_diff += isinf(a) && isinf(b) && !signbit(a) != !signbit(b);
        r.special += bad;
        if (bad)
            a = b = 0;
        double rel = relative(a, b, single);
        double small = single ? (double)0.001F : 0.001, large = single ? (double)0.005F : 0.005;
        r.thousandth += rel < small;
        r.five += rel < large;
        r.max_rel = rel > r.max_rel ? rel : r.max_rel;
        long double d = (long double)a - (long double)b;
        r.nn += (long double)a * (long double)a;
        r.bb += (long double)b * (long double)b;
        r.nb += (long double)a * (long double)b;
        r.dd += d * d;
        r.max_abs = fabsl(d) > r.max_abs ? fabsl(d) : r.max_abs;
    }
    return r;
}

/* A sum of n squares or products, each of which loses up to half of the least double, since a square
 * below 2^-1022 has less than 53 bits: the long double of the reference has more. */
static void near(double got, long double want, long double scale, size_t n, const char *what)
{
    if (isinf((double)want) || isinf(got) || (double)scale > 1e300) /* beyond what a double holds */
        return;
    ck_assert_msg(fabsl((long double)got - want) <= 1e-12L * scale + (long double)n * 0x1p-1074L,
                  "%s: expected %.20Lg, got %.20g", what, want, got);
}

/* The official tool looks at the real part alone, which comes first of the two. */
static void values_of(enum ms_dtype t, const void *p, size_t n, double *v)
{
    static double parts[MOST * 2];
    if (ms_dtype_kind(t) != MS_DTK_COMPLEX) {
        ms_dtype_to_f64(t, p, n, v);
        return;
    }
    ms_dtype_to_f64(t == MS_DT_C32   ? MS_DT_F16
                    : t == MS_DT_C64 ? MS_DT_F32
                                     : MS_DT_F64,
                    p, 2 * n, parts);
    for (size_t i = 0; i < n; i++)
        v[i] = parts[2 * i];
}

static void check_pair(enum ms_dtype tn, enum ms_dtype tb, size_t n, bool wild)
{
    static char x[MOST * 16], y[MOST * 16];
    static double xd[MOST], yd[MOST];
    if (wild) {
        random_bits(x, n * ms_dtype_size(tn));
        random_bits(y, n * ms_dtype_size(tb));
    } else {
        tame(tn, x, n);
        tame(tb, y, n);
    }
    if (tn == tb)
        mix(x, y, ms_dtype_size(tn), n);
    values_of(tn, x, n, xd);
    values_of(tb, y, n, yd);
    struct reference r = refer(xd, yd, n, cmp_facts_single(tn, tb));
    struct cmp_facts first = {0};
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        struct cmp_facts f = {0};
        ms_cpu_limit(sets[s]);
        cmp_facts_add(&f, tn, x, tb, y, n, true);
        ck_assert_uint_eq(f.count, n);
        ck_assert_uint_eq(f.mask_diff, r.mask_diff);
        ck_assert_uint_eq(f.sign_diff, r.sign_diff);
        ck_assert_uint_eq(f.special, r.special);
        ck_assert_uint_eq(f.thousandth, r.thousandth);
        ck_assert_uint_eq(f.five, r.five);
        ck_assert(f.max_rel == r.max_rel);
        near(f.nn, r.nn, r.nn, n, "sum of squares");
        near(f.bb, r.bb, r.bb, n, "sum of golden squares");
        near(f.nb, r.nb, sqrtl(r.nn) * sqrtl(r.bb), n, "product");
        near(f.dd, r.dd, r.dd, n, "squared difference");
        near(f.max_abs, r.max_abs, r.max_abs, n, "largest difference");
        if (s == 0)
            first = f;
        ck_assert_msg(memcmp(&first, &f, sizeof f) == 0, "instruction sets differ for %s",
                      ms_dtype_torch(tn));
    }
    ms_cpu_limit(~0U);
}

static const enum ms_dtype types[] = {
    MS_DT_F32, MS_DT_F16,  MS_DT_BF16, MS_DT_F64, MS_DT_F8E5M2, MS_DT_F8E4M3, MS_DT_F8E8M0,
    MS_DT_I64, MS_DT_I32,  MS_DT_I16,  MS_DT_I8,  MS_DT_U64,    MS_DT_U32,    MS_DT_U16,
    MS_DT_U8,  MS_DT_BOOL, MS_DT_C32,  MS_DT_C64, MS_DT_C128};
enum { TYPES = sizeof types / sizeof *types };

START_TEST(figures_equal_those_in_long_double_for_every_type)
{
    static const size_t sizes[] = {1, 2, 7, 8, 9, 63, 4095, 4096, 4097, MOST};
    state = 0x9e3779b97f4a7c15;
    for (size_t t = 0; t < TYPES; t++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            check_pair(types[t], types[t], sizes[i], false);
    }
}
END_TEST

/* Of numbers about 2^-530 a square has 14 bits and fewer. */
START_TEST(squares_that_doubles_hardly_hold_are_off_by_no_more_than_their_last_bit)
{
    static double x[64], y[64];
    state = 61;
    for (size_t n = 1; n <= 64; n++) {
        long double dd = 0;
        struct cmp_facts f = {0};
        for (size_t i = 0; i < n; i++) {
            x[i] = ldexp((double)(next_random() >> 11), -583);
            y[i] = ldexp((double)(next_random() >> 11), -583);
            dd += ((long double)x[i] - (long double)y[i]) * ((long double)x[i] - (long double)y[i]);
        }
        cmp_facts_add(&f, MS_DT_F64, x, MS_DT_F64, y, n, true);
        near(f.dd, dd, dd, n, "squared difference");
        ck_assert(f.dd > 0);
    }
}
END_TEST

/* Neighbours among numbers of few bits are far apart: one of them is all that the figures see. */
START_TEST(one_step_of_a_coarse_float_is_the_largest_error)
{
    static const enum ms_dtype coarse[] = {MS_DT_F16, MS_DT_BF16, MS_DT_F8E4M3, MS_DT_F8E5M2};
    static char x[MOST * 2], y[MOST * 2];
    static double xd[MOST], yd[MOST];
    state = 77;
    for (size_t k = 0; k < 200 * sizeof coarse / sizeof *coarse; k++) {
        enum ms_dtype t = coarse[k % 4];
        size_t at = next_random() % MOST;
        tame(t, y, MOST);
        memcpy(x, y, sizeof x);
        x[at * ms_dtype_size(t)] ^= 1; /* the last bit of its mantissa */
        ms_dtype_to_f64(t, x, MOST, xd);
        ms_dtype_to_f64(t, y, MOST, yd);
        double error = relative(xd[at], yd[at], true);
        for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
            struct cmp_facts f = {0};
            ms_cpu_limit(sets[s]);
            cmp_facts_add(&f, t, x, t, y, MOST, true);
            ck_assert_msg(f.max_rel == error, "%s: expected %a, got %a", ms_dtype_torch(t), error,
                          f.max_rel);
            ck_assert_uint_eq(f.bit_equal, MOST - 1);
            ck_assert_uint_eq(f.thousandth, MOST - (error >= (double)0.001F));
        }
    }
    ms_cpu_limit(~0U);
}
END_TEST

START_TEST(any_bits_are_measured_without_harm)
{
    state = 42;
    for (int round = 0; round < 10; round++) {
        for (size_t t = 0; t < TYPES; t++)
            check_pair(types[t], types[t], 1 + next_random() % MOST, true);
    }
}
END_TEST

START_TEST(two_types_are_compared_by_value)
{
    state = 7;
    for (size_t a = 0; a < TYPES; a++) {
        for (size_t b = 0; b < TYPES; b++)
            check_pair(types[a], types[b], 1000, false);
    }
}
END_TEST

START_TEST(a_tensor_against_itself_is_equal_in_every_figure)
{
    static char x[MOST * 16];
    state = 99;
    for (size_t t = 0; t < TYPES; t++) {
        struct cmp_facts f = {0};
        tame(types[t], x, MOST);
        cmp_facts_add(&f, types[t], x, types[t], x, MOST, true);
        ck_assert_uint_eq(f.bit_equal, MOST);
        ck_assert_uint_eq(f.thousandth, MOST);
        ck_assert(f.dd == 0 && f.max_abs == 0 && f.max_rel == 0 && f.max_ulp == 0);
        ck_assert(f.nn == f.bb && f.nn == f.nb);
    }
}
END_TEST

START_TEST(swapping_the_sides_mirrors_the_figures)
{
    static char x[MOST * 16], y[MOST * 16];
    state = 5;
    for (size_t t = 0; t < TYPES; t++) {
        struct cmp_facts f = {0}, g = {0};
        tame(types[t], x, MOST);
        tame(types[t], y, MOST);
        mix(x, y, ms_dtype_size(types[t]), MOST);
        cmp_facts_add(&f, types[t], x, types[t], y, MOST, true);
        cmp_facts_add(&g, types[t], y, types[t], x, MOST, true);
        ck_assert(f.nn == g.bb && f.bb == g.nn && f.nb == g.nb && f.dd == g.dd);
        ck_assert(f.sum_d == -g.sum_d && f.sum_abs_d == g.sum_abs_d);
        ck_assert(f.max_abs == g.max_abs && f.sum_ulp == g.sum_ulp && f.max_ulp == g.max_ulp);
        ck_assert_uint_eq(f.bit_equal, g.bit_equal);
    }
}
END_TEST

/* A whole number below 2048 as float16. */
static uint16_t half_of(double v)
{
    int exponent;
    double mantissa = frexp(fabs(v), &exponent);
    if (v == 0)
        return 0;
    return (uint16_t)((v < 0 ? 0x8000 : 0) + ((exponent + 14) << 10) +
                      (int)(mantissa * 2048 - 1024));
}

/* Whole numbers of few bits, as every type holds them. */
static void write_number(enum ms_dtype t, double v, char *out)
{
    int64_t whole = (int64_t)v;
    float single = (float)v;
    uint16_t half = half_of(v);
    const void *from = &whole;
    if (t == MS_DT_F64)
        from = &v;
    else if (t == MS_DT_F32)
        from = &single;
    else if (t == MS_DT_BF16)
        from = (const char *)&single + 2; /* the upper half */
    else if (t == MS_DT_F16)
        from = &half;
    memcpy(out, from, ms_dtype_size(t));
}

/* By a power of two nothing is rounded, so the scale that fits best is the factor to the last bit. */
START_TEST(what_is_scaled_reports_its_factor)
{
    static const enum ms_dtype scaled[] = {MS_DT_F32, MS_DT_F16, MS_DT_BF16, MS_DT_F64,
                                           MS_DT_I64, MS_DT_I32, MS_DT_I16};
    static const double factors[] = {2, 0.5, -1, -4};
    static double v[MOST];
    static char x[MOST * 16], y[MOST * 16];
    state = 31;
    for (size_t i = 0; i < MOST; i++)
        v[i] = (double)(4 * ((int)(next_random() % 201) - 100)); /* seven bits */
    for (size_t k = 0; k < 4 * sizeof scaled / sizeof *scaled; k++) {
        enum ms_dtype t = scaled[k / 4];
        double factor = factors[k % 4];
        struct cmp_facts f = {0};
        for (size_t i = 0; i < MOST; i++) {
            write_number(t, v[i], x + i * ms_dtype_size(t));
            write_number(t, v[i] * factor, y + i * ms_dtype_size(t));
        }
        cmp_facts_add(&f, t, y, t, x, MOST, true);
        ck_assert_msg(f.nb / f.bb == factor && f.nn == f.bb * factor * factor, "%s by %g gives %g",
                      ms_dtype_torch(t), factor, f.nb / f.bb);
        ck_assert(f.dd == f.bb * (factor - 1) * (factor - 1));
    }
}
END_TEST

START_TEST(pieces_of_whole_blocks_add_up_to_the_same_bits)
{
    static float x[MOST], y[MOST];
    struct cmp_facts whole = {0}, parts = {0};
    state = 3;
    tame(MS_DT_F32, x, MOST);
    tame(MS_DT_F32, y, MOST);
    cmp_facts_add(&whole, MS_DT_F32, x, MS_DT_F32, y, MOST, true);
    cmp_facts_add(&parts, MS_DT_F32, x, MS_DT_F32, y, CMP_METRIC_BLOCK, true);
    cmp_facts_add(&parts, MS_DT_F32, x + CMP_METRIC_BLOCK, MS_DT_F32, y + CMP_METRIC_BLOCK,
                  MOST - CMP_METRIC_BLOCK, true);
    ck_assert(memcmp(&whole, &parts, sizeof whole) == 0);
}
END_TEST

START_TEST(facts_of_parts_are_joined_field_by_field)
{
    struct cmp_facts a = {10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17},
                     b = {100, 20, 30, 40, 50, 60, 70, 80, 90, 110, 120, 5, 140, 150, 160, 170, 2};
    const struct cmp_facts sum = {110, 21,  32, 43,  54,  65,  76,  87, 98,
                                  119, 120, 12, 153, 164, 175, 186, 17};
    cmp_facts_join(&a, &b);
    ck_assert(memcmp(&a, &sum, sizeof a) == 0);
    cmp_facts_join(&b, &(struct cmp_facts){.max_abs = 1000, .max_rel = 1001, .max_ulp = 1002});
    ck_assert(b.max_abs == 1000 && b.max_rel == 1001 && b.max_ulp == 1002 && b.count == 100);
}
END_TEST

/* The first block leaves a largest relative error of exactly 1, which the second one exceeds. */
START_TEST(small_whole_numbers_go_on_from_any_error)
{
    static const enum ms_dtype small[] = {MS_DT_U8, MS_DT_I8, MS_DT_U16, MS_DT_I16};
    static char x[2 * CMP_METRIC_BLOCK * 2], y[2 * CMP_METRIC_BLOCK * 2];
    for (size_t k = 0; k < 4; k++) {
        const size_t size = ms_dtype_size(small[k]), half = CMP_METRIC_BLOCK * size;
        struct cmp_facts parts = {0};
        for (size_t i = 0; i < 2 * (size_t)CMP_METRIC_BLOCK; i++) {
            write_number(small[k], 1, y + i * size);
            write_number(small[k], i == 7 ? 2 : i == CMP_METRIC_BLOCK + 9 ? 5 : 1, x + i * size);
        }
        cmp_facts_add(&parts, small[k], x, small[k], y, CMP_METRIC_BLOCK, false);
        ck_assert(parts.max_rel > 0.99 && parts.max_rel <= 1);
        cmp_facts_add(&parts, small[k], x + half, small[k], y + half, CMP_METRIC_BLOCK, false);
        ck_assert_msg(parts.max_rel > 3.9 && parts.max_rel <= 4, "%g", parts.max_rel);
        ck_assert_uint_eq(parts.thousandth, 2 * CMP_METRIC_BLOCK - 2);
    }
}
END_TEST

/* Without what only --ext asks for; equal whole numbers are counted always. */
static void check_short(enum ms_dtype t, const void *x, const void *y, size_t n)
{
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        struct cmp_facts f = {0}, g = {0};
        ms_cpu_limit(sets[s]);
        cmp_facts_add(&f, t, x, t, y, n, true);
        cmp_facts_add(&g, t, x, t, y, n, false);
        f.bit_equal = cmp_facts_whole(t, t) ? f.bit_equal : 0;
        f.sum_d = f.sum_abs_d = f.sum_ulp = f.max_ulp = 0;
        ck_assert_msg(memcmp(&f, &g, sizeof f) == 0, "the short pass differs for %s, set %zu",
                      ms_dtype_torch(t), s);
    }
    ms_cpu_limit(~0U);
}

START_TEST(the_short_pass_finds_the_same_without_the_rest)
{
    static char x[MOST * 16], y[MOST * 16];
    state = 11;
    for (size_t t = 0; t < TYPES; t++) {
        tame(types[t], x, MOST);
        tame(types[t], y, MOST);
        check_short(types[t], x, y, MOST);
        mix(x, y, ms_dtype_size(types[t]), MOST);
        check_short(types[t], x, y, MOST);
    }
}
END_TEST

/* Every pair of 8-bit numbers, in an order in which the largest error keeps on rising: by blocks
 * without zeroes first, where `from` is not 0. */
static void check_bytes(enum ms_dtype t, int least, int most, int from)
{
    static int8_t x[256 * 256], y[256 * 256];
    size_t n = 0;
    for (int b = most; b >= least; b--) {
        for (int a = least; a <= most; a++) {
            if (b < from && b > -from)
                continue;
            x[n] = (int8_t)a;
            y[n++] = (int8_t)b;
        }
    }
    check_short(t, x, y, n);
}

START_TEST(every_pair_of_8_bit_numbers_is_measured_as_in_doubles)
{
    static const int from[] = {0, 1, 100, 120};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        check_bytes(MS_DT_U8, 0, 255, from[i]);
        check_bytes(MS_DT_I8, -128, 127, from[i]);
        check_bytes(MS_DT_BOOL, 0, 255, from[i]);
    }
}
END_TEST

/* One element of many blocks differs, by every amount, in every order. */
START_TEST(rare_differences_of_8_bit_numbers_are_seen)
{
    static uint8_t x[CMP_METRIC_BLOCK * 64], y[sizeof x];
    state = 17;
    for (int round = 0; round < 40; round++) {
        memset(x, round * 6 + 1, sizeof x);
        memset(y, round * 6 + 1, sizeof y);
        for (size_t i = 0; i < 64; i++) {
            x[i * CMP_METRIC_BLOCK + next_random() % CMP_METRIC_BLOCK] = (uint8_t)next_random();
            y[i * CMP_METRIC_BLOCK + next_random() % CMP_METRIC_BLOCK] =
                (uint8_t)(i % 8 < 6 ? next_random() | 1 : 0);
        }
        check_short(MS_DT_U8, x, y, sizeof x);
        check_short(MS_DT_I8, x, y, sizeof x);
    }
}
END_TEST

static int16_t near_word(int32_t v, int32_t reach)
{
    v += (int32_t)(next_random() % (2 * (uint64_t)reach + 1)) - reach;
    return (int16_t)(v > INT16_MAX ? INT16_MAX : v < INT16_MIN ? INT16_MIN : v);
}

/* About a middle, with differences of every size, and with the extreme numbers now and then. */
START_TEST(every_kind_of_16_bit_numbers_is_measured_as_in_doubles)
{
    enum { WORDS = CMP_METRIC_BLOCK * 6 };
    static const int32_t middle[] = {0, 3, -1000, 20000, INT16_MAX, INT16_MIN};
    static const int32_t reach[] = {0, 1, 2, 40, 163, 164, 300, 16383, 32767};
    static int16_t x[WORDS], y[WORDS];
    enum { MIDDLES = sizeof middle / sizeof *middle, REACHES = sizeof reach / sizeof *reach };
    state = 23;
    for (size_t k = 0; k < MIDDLES * REACHES * REACHES; k++) {
        for (size_t i = 0; i < WORDS; i++) {
            y[i] = near_word(middle[k % MIDDLES], reach[k / MIDDLES % REACHES]);
            x[i] = near_word(y[i], reach[k / MIDDLES / REACHES]);
            if (k % 5 == 0 && next_random() % WORDS == 0)
                x[i] = y[i] = INT16_MIN;
        }
        check_short(MS_DT_I16, x, y, WORDS);
        for (size_t i = 0; i < WORDS && k % 2 == 0; i++) /* -32768 becomes 0 */
            x[i] ^= INT16_MIN, y[i] ^= INT16_MIN;
        check_short(MS_DT_U16, x, y, WORDS);
    }
}
END_TEST

START_TEST(large_whole_numbers_that_are_one_double_are_not_equal)
{
    int64_t x[16], y[16];
    for (int i = 0; i < 16; i++) {
        x[i] = INT64_MAX - i;
        y[i] = INT64_MAX - i - (i & 1);
    }
    for (int ext = 0; ext < 2; ext++) {
        for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
            struct cmp_facts f = {0}, g = {0};
            ms_cpu_limit(sets[s]);
            cmp_facts_add(&f, MS_DT_I64, x, MS_DT_I64, y, 16, ext != 0);
            cmp_facts_add(&g, MS_DT_U64, x, MS_DT_U64, y, 16, ext != 0);
            ck_assert_uint_eq(f.bit_equal, 8);
            ck_assert_uint_eq(g.bit_equal, 8);
        }
    }
    ms_cpu_limit(~0U);
}
END_TEST

START_TEST(neighbouring_numbers_are_one_step_apart)
{
    float x[8] = {1, -1, 0, 2}, y[8];
    struct cmp_facts f = {0};
    for (int i = 0; i < 8; i++)
        y[i] = nextafterf(x[i], 10);
    cmp_facts_add(&f, MS_DT_F32, x, MS_DT_F32, y, 8, true);
    ck_assert(f.max_ulp == 1 && f.sum_ulp == 8);
    ck_assert_uint_eq(f.bit_equal, 0);
}
END_TEST

TEST_MAIN("metric", figures_equal_those_in_long_double_for_every_type,
          squares_that_doubles_hardly_hold_are_off_by_no_more_than_their_last_bit,
          one_step_of_a_coarse_float_is_the_largest_error, any_bits_are_measured_without_harm,
          two_types_are_compared_by_value, a_tensor_against_itself_is_equal_in_every_figure,
          swapping_the_sides_mirrors_the_figures, what_is_scaled_reports_its_factor,
          pieces_of_whole_blocks_add_up_to_the_same_bits, facts_of_parts_are_joined_field_by_field,
          small_whole_numbers_go_on_from_any_error, the_short_pass_finds_the_same_without_the_rest,
          every_pair_of_8_bit_numbers_is_measured_as_in_doubles,
          rare_differences_of_8_bit_numbers_are_seen,
          every_kind_of_16_bit_numbers_is_measured_as_in_doubles,
          large_whole_numbers_that_are_one_double_are_not_equal,
          neighbouring_numbers_are_one_step_apart)
