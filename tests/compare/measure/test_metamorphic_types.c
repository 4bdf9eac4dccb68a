/* SPDX-License-Identifier: MIT
 *
 * metamorphic_types: what has to hold of two files of tensors of every type that is
 * compared: a file against itself is bit-equal, changing sides mirrors the figures,
 * and c times a file is said to be that.  Values are whole numbers that every type
 * holds, also three times as large, so that nothing is rounded; they fill several
 * blocks of the kernels and end within one.
 */
#include "probe/base/cpu.h"
#include "probe/tensor/tensor.h"
#include "tests/support/cmp_fixture.h"

#include <math.h>

enum { N = 3 * 4096 + 37, LARGEST = 28, SCALE = 3 };

static const enum ms_dtype types[] = {MS_DT_F64, MS_DT_F32, MS_DT_F16, MS_DT_BF16, MS_DT_I8,
                                      MS_DT_I16, MS_DT_I32, MS_DT_I64, MS_DT_U8,   MS_DT_U16,
                                      MS_DT_U32, MS_DT_U64, MS_DT_C64, MS_DT_C128, MS_DT_BOOL};

/* Five of the eight bits of exponent, and ten of the 23 of the fraction. */
static uint16_t f16_of(uint32_t f32)
{
    uint32_t exponent = (f32 >> 23 & 0xFF) - 127 + 15;
    return f32 == 0 ? 0 : (uint16_t)(f32 >> 31 << 15 | exponent << 10 | (f32 >> 13 & 0x3FF));
}

static size_t put_float(enum ms_dtype t, double v, char *to)
{
    const float single = (float)v;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    uint16_t half = t == MS_DT_F16 ? f16_of(bits) : (uint16_t)(bits >> 16);
    if (t == MS_DT_F64 || t == MS_DT_C128)
        memcpy(to, &v, sizeof v);
    else if (t == MS_DT_F16 || t == MS_DT_BF16)
        memcpy(to, &half, sizeof half);
    else
        memcpy(to, &bits, sizeof bits);
    return t == MS_DT_C64 || t == MS_DT_C128 ? ms_dtype_size(t) / 2 : ms_dtype_size(t);
}

/* Of a complex number both parts are v. */
static void put_element(enum ms_dtype t, int v, char *to)
{
    const int64_t whole = ms_dtype_kind(t) == MS_DTK_BOOL ? v % 2 != 0 : v;
    if (ms_dtype_kind(t) == MS_DTK_FLOAT || ms_dtype_kind(t) == MS_DTK_COMPLEX) {
        size_t n = put_float(t, v, to);
        if (n < ms_dtype_size(t))
            put_float(t, v, to + n);
    } else {
        memcpy(to, &whole, ms_dtype_size(t)); /* little-endian, as the machines are */
    }
}

static int value_at(uint64_t seed, int i)
{
    uint64_t x = (seed + (uint64_t)i) * 0x9E3779B97F4A7C15U;
    return 1 + (int)((x >> 33) % LARGEST);
}

static void put_side(const struct fixture *f, char side, enum ms_dtype t, uint64_t seed, int scale)
{
    static char data[N * 16];
    char path[192], leaf[512];
    const uint64_t shape[] = {N};
    struct ms_err err = {0};
    for (int i = 0; i < N; i++)
        put_element(t, scale * value_at(seed, i), data + (size_t)i * ms_dtype_size(t));
    snprintf(path, sizeof path, "%s/%c/dump_tensor_data/x.pt", f->dir, side);
    ck_ok(probe_pt_write(path, t, shape, 1, data, &err), err);
    snprintf(leaf, sizeof leaf,
             "\"Torch.add.0.forward\": {\"output\": [{\"type\": \"torch.Tensor\", \"dtype\": "
             "\"torch.%s\", \"shape\": [%d], \"data_name\": \"x.pt\"}]}",
             ms_dtype_torch(t), N);
    fixture_dump(f, side, "tensor", "pytorch", leaf);
}

struct side {
    uint64_t seed;
    int scale;
};

/* The figures of the row that the two make. */
static struct cmp_figures compare(enum ms_dtype t, struct side target, struct side golden,
                                  enum cmp_level *level)
{
    struct fixture f;
    fixture_init(&f);
    f.conf.ext = true;
    put_side(&f, 't', t, target.seed, target.scale);
    put_side(&f, 'b', t, golden.seed, golden.scale);
    fixture_open(&f);
    ck_ok(cmp_view_group(f.c, 0, &f.v, &f.err), f.err);
    ck_assert_uint_eq(f.v.rows.n, 1);
    const struct cmp_figures fig = f.v.rows.p[0].fig;
    *level = f.v.rows.p[0].level;
    fixture_free(&f);
    ck_assert_int_eq(fig.state, CMP_STATE_OK);
    return fig;
}

/* By the kernels of every processor that this one can stand for. */
static void in_every_type(void (*check)(enum ms_dtype t))
{
    static const unsigned limits[] = {0, MS_CPU_AVX2, ~0U};
    for (size_t k = 0; k < sizeof limits / sizeof *limits; k++) {
        ms_cpu_limit(limits[k]);
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            check(types[i]);
    }
    ms_cpu_limit(~0U);
}

static void check_itself(enum ms_dtype t)
{
    enum cmp_level level;
    const struct side it = {7, 1};
    struct cmp_figures fig = compare(t, it, it, &level);
    ck_assert_int_eq(level, CMP_PASS);
    ck_assert(fig.ext.bit_equal == 1 && fig.ext.rel_l2 == 0 && fig.ext.scale == 1);
    ck_assert(fig.metric[CMP_COSINE] == 1 && fig.metric[CMP_EUCLID] == 0);
    ck_assert(fig.metric[CMP_MAX_ABS] == 0 && fig.metric[CMP_MAX_REL] == 0);
    ck_assert(fig.metric[CMP_THOUSANDTH] == 1 && fig.metric[CMP_FIVE] == 1);
}

START_TEST(a_file_against_itself_is_bit_equal)
{
    in_every_type(check_itself);
}
END_TEST

static void check_mirror(enum ms_dtype t)
{
    enum cmp_level level;
    const struct side one = {7, 1}, other = {9, 1};
    struct cmp_figures a = compare(t, one, other, &level);
    struct cmp_figures b = compare(t, other, one, &level);
    ck_assert(a.metric[CMP_MAX_ABS] > 0 && a.metric[CMP_MAX_ABS] == b.metric[CMP_MAX_ABS]);
    ck_assert(a.metric[CMP_EUCLID] == b.metric[CMP_EUCLID]);
    ck_assert_double_eq_tol(a.metric[CMP_COSINE], b.metric[CMP_COSINE], 1e-12);
    ck_assert(a.ext.bit_equal < 1 && a.ext.bit_equal == b.ext.bit_equal);
}

START_TEST(changing_sides_mirrors_the_figures)
{
    in_every_type(check_mirror);
}
END_TEST

static void check_scaled(enum ms_dtype t)
{
    enum cmp_level level;
    if (ms_dtype_kind(t) == MS_DTK_BOOL)
        return; /* nothing is three times as true */
    struct cmp_figures fig = compare(t, (struct side){7, SCALE}, (struct side){7, 1}, &level);
    ck_assert_double_eq_tol(fig.ext.scale, SCALE, 1e-12);
    ck_assert_double_eq_tol(fig.ext.rel_l2, SCALE - 1, 1e-12);
    ck_assert_double_eq_tol(fig.metric[CMP_COSINE], 1, 1e-12);
    ck_assert_double_eq_tol(fig.metric[CMP_MAX_REL], SCALE - 1, 1e-12);
    ck_assert(fig.metric[CMP_MAX_ABS] == LARGEST * (SCALE - 1));
    ck_assert(fig.ext.bit_equal == 0);
}

START_TEST(what_is_scaled_is_said_to_be)
{
    in_every_type(check_scaled);
}
END_TEST

TEST_MAIN("metamorphic_types", a_file_against_itself_is_bit_equal,
          changing_sides_mirrors_the_figures, what_is_scaled_is_said_to_be)
