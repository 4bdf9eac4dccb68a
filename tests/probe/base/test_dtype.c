/* SPDX-License-Identifier: MIT */
#include "probe/base/dtype.h"

#include "tests/support/check.h"

#include <math.h>
#include <stdint.h>

static enum ms_dtype parse(const char *name)
{
    return ms_dtype_parse(ms_str_of(name));
}

START_TEST(every_name_written_reads_back)
{
    char name[64];
    for (int i = MS_DT_NONE + 1; i < MS_DT_MAX; i++) {
        const enum ms_dtype t = (enum ms_dtype)i;
        ck_assert_uint_gt(ms_dtype_size(t), 0);
        ck_assert_int_eq(parse(ms_dtype_torch(t)), t);
        snprintf(name, sizeof name, "torch.%s", ms_dtype_torch(t));
        ck_assert_int_eq(parse(name), t);
        if (strcmp(ms_dtype_mindspore(t), "unknown") != 0) {
            ck_assert_int_eq(parse(ms_dtype_mindspore(t)), t);
            snprintf(name, sizeof name, "mindspore.%s", ms_dtype_torch(t));
            ck_assert_int_eq(parse(name), t);
        }
    }
}
END_TEST

START_TEST(aliases_need_their_framework)
{
    static const struct {
        const char *name;
        enum ms_dtype t;
    } cases[] = {
        {"torch.half", MS_DT_F16},
        {"torch.float", MS_DT_F32},
        {"torch.double", MS_DT_F64},
        {"torch.short", MS_DT_I16},
        {"torch.int", MS_DT_I32},
        {"torch.long", MS_DT_I64},
        {"torch.cfloat", MS_DT_C64},
        {"mindspore.bool_", MS_DT_BOOL},
        {"bool_", MS_DT_BOOL},
        {"numpy.float16", MS_DT_F16},
        {"float", MS_DT_NONE},
        {"int", MS_DT_NONE},
        {"mindspore.half", MS_DT_NONE},
        {"torch.bool_", MS_DT_NONE},
        {"", MS_DT_NONE},
        {"torch.", MS_DT_NONE},
        {"torch.float33", MS_DT_NONE},
        {"torch.torch.int", MS_DT_NONE},
        {"torch_npu.HiFloat8Tensor", MS_DT_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(parse(cases[i].name) == cases[i].t, "%s", cases[i].name);
}
END_TEST

START_TEST(codes_outside_the_table_are_unknown)
{
    const enum ms_dtype bad[] = {MS_DT_NONE, MS_DT_MAX, (enum ms_dtype)1000};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(ms_dtype_size(bad[i]), 0);
        ck_assert_int_eq(ms_dtype_kind(bad[i]), MS_DTK_NONE);
        ck_assert_str_eq(ms_dtype_torch(bad[i]), "unknown");
        ck_assert_str_eq(ms_dtype_mindspore(bad[i]), "unknown");
        ck_assert_ptr_null(ms_dtype_numpy(bad[i]));
    }
    ck_assert_str_eq(ms_dtype_mindspore(MS_DT_C32), "unknown");
}
END_TEST

START_TEST(numpy_descriptions_go_both_ways)
{
    bool swap;
    for (int t = MS_DT_NONE + 1; t < MS_DT_MAX; t++) {
        const char *descr = ms_dtype_numpy((enum ms_dtype)t);
        if (descr == NULL)
            continue;
        ck_assert_int_eq(ms_dtype_of_numpy(ms_str_of(descr), &swap), t);
        ck_assert(!swap);
        char big[8];
        snprintf(big, sizeof big, ">%s", descr + 1);
        ck_assert_int_eq(ms_dtype_of_numpy(ms_str_of(big), &swap), t);
        ck_assert_int_eq(swap, ms_dtype_size((enum ms_dtype)t) > 1);
    }
    static const char *const bad[] = {"",   "f4",  "<f",  "<f5",  "|f4",
                                      "|O", "<U3", "?b1", "<f4 ", "<c32"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(ms_dtype_of_numpy(ms_str_of(bad[i]), &swap) == MS_DT_NONE, "%s", bad[i]);
}
END_TEST

static double value(enum ms_dtype t, uint64_t bits)
{
    double v;
    /* Little-endian: the low bytes come first, at any alignment. */
    char raw[9];
    memcpy(raw + 1, &bits, sizeof bits);
    ms_dtype_to_f64(t, raw + 1, 1, &v);
    return v;
}

START_TEST(values_of_bit_patterns)
{
    static const struct {
        enum ms_dtype t;
        uint64_t bits;
        double want;
    } cases[] = {
        {MS_DT_BOOL, 0, 0},
        {MS_DT_BOOL, 1, 1},
        {MS_DT_BOOL, 0xff, 1},
        {MS_DT_U8, 0xff, 255},
        {MS_DT_I8, 0x80, -128},
        {MS_DT_U16, 0xffff, 65535},
        {MS_DT_I16, 0x8000, -32768},
        {MS_DT_U32, 0xffffffff, 4294967295.0},
        {MS_DT_I32, 0x80000000, -2147483648.0},
        {MS_DT_U64, UINT64_MAX, 0x1p64},
        {MS_DT_I64, 1ULL << 63, -0x1p63},
        {MS_DT_I64, (1ULL << 53) + 1, 0x1p53},
        {MS_DT_F16, 0x0001, 0x1p-24},
        {MS_DT_F16, 0x83ff, -0x3ffp-24},
        {MS_DT_F16, 0x0400, 0x1p-14},
        {MS_DT_F16, 0x3555, 0.333251953125},
        {MS_DT_F16, 0x7bff, 65504},
        {MS_DT_F16, 0xfc00, (double)-INFINITY},
        {MS_DT_F16, 0x7e00, (double)NAN},
        {MS_DT_BF16, 0x3eab, 0.333984375},
        {MS_DT_BF16, 0x0001, 0x1p-133},
        {MS_DT_BF16, 0xff80, (double)-INFINITY},
        {MS_DT_F32, 1, 0x1p-149},
        {MS_DT_F64, 1, 0x1p-1074},
        {MS_DT_F8E5M2, 0x7b, 57344},
        {MS_DT_F8E5M2, 0x01, 0x1p-16},
        {MS_DT_F8E5M2, 0x7c, (double)INFINITY},
        {MS_DT_F8E5M2, 0xfd, (double)NAN},
        {MS_DT_F8E4M3, 0x7e, 448},
        {MS_DT_F8E4M3, 0x81, -0x1p-9},
        {MS_DT_F8E4M3, 0x38, 1},
        {MS_DT_F8E4M3, 0xff, (double)NAN},
        {MS_DT_F8E5M2Z, 0x7f, 57344},
        {MS_DT_F8E5M2Z, 0x80, (double)NAN},
        {MS_DT_F8E5M2Z, 0x01, 0x1p-17},
        {MS_DT_F8E4M3Z, 0x7f, 240},
        {MS_DT_F8E4M3Z, 0x80, (double)NAN},
        {MS_DT_F8E4M3Z, 0x01, 0x1p-10},
        {MS_DT_F8E8M0, 0, 0x1p-127},
        {MS_DT_F8E8M0, 127, 1},
        {MS_DT_F8E8M0, 0xff, (double)NAN},
        {MS_DT_C32, 0x44004200, 5},                        /* 3 + 4i */
        {MS_DT_C64, 0xc0800000c0400000, 5},                /* -3 - 4i */
        {MS_DT_C64, 0x7fc000007f800000, (double)INFINITY}, /* inf + NaN i */
        {MS_DT_C64, 0x7fc000003f800000, (double)NAN},
        {MS_DT_C64, 0x7f7fffff00000000, 0x1.fffffep127},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double v = value(cases[i].t, cases[i].bits);
        ck_assert_msg(v == cases[i].want || (isnan(v) && isnan(cases[i].want)),
                      "%s %#llx: %a, expected %a", ms_dtype_torch(cases[i].t),
                      (unsigned long long)cases[i].bits, v, cases[i].want);
    }
    const double z[2] = {-3e200, 4e200};
    double v;
    ms_dtype_to_f64(MS_DT_C128, z, 1, &v);
    ck_assert_double_eq_tol(v / 5e200, 1, 1e-15);
}
END_TEST

/* Signs of zero and NaN patterns of all 65536 values, against arithmetic on the fields. */
START_TEST(float16_is_right_for_every_pattern)
{
    for (unsigned h = 0; h < 0x10000; h++) {
        const int e = (int)(h >> 10 & 31), f = (int)(h & 1023);
        const double magnitude = e == 0 ? ldexp(f, -24) : ldexp(1024 + f, e - 25);
        const double v = value(MS_DT_F16, h);
        if (e == 31)
            ck_assert(f == 0 ? isinf(v) : isnan(v));
        else
            ck_assert_double_eq(fabs(v), magnitude);
        ck_assert_int_eq(signbit(v) != 0, h >> 15);
    }
}
END_TEST

TEST_MAIN("dtype", every_name_written_reads_back, aliases_need_their_framework,
          codes_outside_the_table_are_unknown, numpy_descriptions_go_both_ways,
          values_of_bit_patterns, float16_is_right_for_every_pattern)
