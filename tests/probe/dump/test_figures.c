/* SPDX-License-Identifier: MIT
 *
 * Statistics and digests of one tensor, as a dump has them.
 */
#include "tests/support/writer_place.h"

#include "probe/dump/dump.h"

#include <math.h>

/* The leaf of d, alone in a dump; text lives until the next call. */
static struct probe_leaf leaf_of(const struct probe_tensor_desc *d, struct probe_conf conf)
{
    static char *text;
    struct probe_dump *dump;
    struct probe_leaf leaf;
    size_t n;
    free(text);
    scratch_dir(dir);
    conf.no_extra = true;
    struct probe_writer *w = open_with(conf);
    probe_record_begin(w, "F.x.0.forward");
    probe_section(w, PROBE_SEC_OUTPUT);
    probe_put_tensor(w, NULL, d);
    probe_record_end(w);
    ck_closes(w);
    text = read_file(file_in_dir("dump.json"), &n);
    ck_ok(probe_dump_parse(&dump, "d", (struct ms_str){text, (uint32_t)n}, 0, NULL, &err), err);
    ck_assert_uint_eq(dump->rows.n, 1);
    probe_row_leaf(dump, dump->rows.p, &leaf);
    probe_dump_close(dump);
    scratch_remove(dir);
    return leaf;
}

static void ck_text(struct ms_str got, const char *want, const char *what)
{
    ck_assert_msg(ms_str_is(got, want), "%s: got %.*s, expected %s", what, MS_STR_ARG(got), want);
}

static const float f32_07[] = {0, 1, 2, 3, 4, 5, 6, 7};
static const float f32_ones[] = {1, 1, 1};
static const int64_t i64_012[] = {0, 1, 2};
static const int64_t i64_123[] = {1, 2, 3};
static const int64_t minus_one = -1;

START_TEST(digests_are_those_of_the_format)
{
    static const uint64_t n8[] = {8}, n6[] = {6}, n3[] = {3}, n0[] = {0};
    static const struct {
        struct probe_tensor_desc t;
        const char *crc, *xor;
    } table[] = {
        {{.data = f32_07, .dtype = "float32", .shape = n8, .ndim = 1},
         "7a0a407c",
         "0x7f80000040400000"},
        {{.data = counting, .dtype = "float32", .shape = n6, .ndim = 1},
         "91e79017",
         "0x3f60000000800000"},
        {{.data = f32_ones, .dtype = "float32", .shape = n3, .ndim = 1},
         "dc7c4e94",
         "0x3f80000000000000"},
        {{.data = &half_two, .dtype = "float32"}, "c21cba2e", "2.5"},
        {{.data = i64_012, .dtype = "int64", .shape = n3, .ndim = 1},
         "4f8c5ccc",
         "0x0000000000000003"},
        {{.data = i64_123, .dtype = "int64", .shape = n3, .ndim = 1},
         "2bcb8d87",
         "0x0000000000000000"},
        {{.data = truths, .dtype = "bool", .shape = n3, .ndim = 1},
         "8846e984",
         "0x0000000000010000"},
        {{.data = bf16_ones, .dtype = "bfloat16", .shape = n3, .ndim = 1},
         "c3883bcc",
         "0x00003f803f803f80"},
        {{.data = &minus_one, .dtype = "int64"}, "2144df1c", "0xffffffffffffffff"},
        {{.data = NULL, .dtype = "float32", .shape = n0, .ndim = 1}, "00000000", ""},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *what = table[i].crc;
        struct probe_conf md5 = {.summary = PROBE_SUMMARY_MD5};
        struct probe_conf xor = {.summary = PROBE_SUMMARY_XOR};
        ck_text(leaf_of(&table[i].t, md5).md5, table[i].crc, what);
        struct probe_leaf l = leaf_of(&table[i].t, xor);
        ck_text(l.md5, table[i].xor, what);
        ck_assert_int_eq(l.stat[PROBE_STAT_MAX].kind, PROBE_NUM_ABSENT);
    }
}
END_TEST

static const uint16_t f16_bits[] = {0x3555, 0x3800, 0xbc00}; /* 1/3, 0.5, -1 */
static const uint16_t bf16_bits[] = {0x3eab, 0x3f00, 0xbf80};
static const float f32_thirds[] = {1.0F / 3, 0.5F, -1};
static const double f64_two[] = {0.1, -0.5};
static const int8_t i8_two[] = {-128, 127};
static const int16_t i16_two[] = {-32768, 5};
static const uint16_t u16_two[] = {65535, 1};
static const int32_t i32_two[] = {INT32_MIN, INT32_MAX};
static const uint32_t u32_two[] = {UINT32_MAX, 7};
static const int64_t i64_two[] = {INT64_MIN, INT64_MAX};
static const int64_t above_2_53 = (INT64_C(1) << 53) + 1;
static const uint64_t u64_two[] = {UINT64_MAX, UINT64_MAX - 1};
static const uint8_t bool_two[] = {1, 0};
static const uint8_t fp8_two[] = {0x38, 0x40};
static const float c64_two[] = {3, 4, 0, 1};
static const float c64_odd[] = {1, 1};
static const float with_nan[] = {1, NAN, INFINITY};
static const float with_inf[] = {-INFINITY, 1};

static const struct {
    const char *dtype;
    const void *data;
    uint64_t n; /* 0: no dimension, one element */
    const char *stat[PROBE_STATS];
} stats[] = {
    {"float32", f32_thirds, 3, {"0.5", "-1.0", "-0.0555555522441864", "1.1666666269302368"}},
    {"float16", f16_bits, 3, {"0.5", "-1.0", "-0.055572509765625", "1.1669921875"}},
    {"bfloat16", bf16_bits, 3, {"0.5", "-1.0", "-0.055419921875", "1.1640625"}},
    {"bfloat16", bf16_ones, 3, {"1.0", "1.0", "1.0", "1.734375"}},
    {"float64", f64_two, 2, {"0.1", "-0.5", "null", "null"}},
    {"int8", i8_two, 2, {"127", "-128", "null", "null"}},
    {"uint8", bytes, 2, {"255", "0", "null", "null"}},
    {"int16", i16_two, 2, {"5", "-32768", "null", "null"}},
    {"uint16", u16_two, 2, {"65535", "1", "null", "null"}},
    {"int32", i32_two, 2, {"2147483647", "-2147483648", "null", "null"}},
    {"uint32", u32_two, 2, {"4294967295", "7", "null", "null"}},
    {"int64", i64_two, 2, {"9223372036854775807", "-9223372036854775808", "null", "null"}},
    {"uint64", u64_two, 2, {"18446744073709551615", "18446744073709551614", "null", "null"}},
    {"bool", bool_two, 2, {"true", "false", "null", "null"}},
    {"float8_e4m3fn", fp8_two, 2, {"null", "null", "null", "null"}},
    {"complex64", c64_two, 2, {"5.0", "1.0", "3.0", "null"}},
    {"complex64",
     c64_odd,
     1,
     {"1.4142135381698608", "1.4142135381698608", "1.4142135381698608", "null"}},
    {"float32", with_nan, 3, {"NaN", "NaN", "NaN", "NaN"}},
    {"float32", with_inf, 2, {"1.0", "-Infinity", "-Infinity", "Infinity"}},
    /* Without dimensions the value stands for all four. */
    {"float32", &half_two, 0, {"2.5", "2.5", "2.5", "2.5"}},
    {"float16", f16_bits + 2, 0, {"-1.0", "-1.0", "-1.0", "-1.0"}},
    {"float64", f64_two + 1, 0, {"-0.5", "-0.5", "-0.5", "-0.5"}},
    {"int64",
     &above_2_53,
     0,
     {"9007199254740993", "9007199254740993", "9007199254740993", "9007199254740993"}},
    {"int8", i8_two, 0, {"-128", "-128", "-128", "-128"}},
    {"bool", bool_two, 0, {"true", "true", "null", "null"}},
    {"complex64", c64_two, 0, {"5.0", "5.0", "5.0", "null"}},
    {"float32", with_nan + 1, 0, {"NaN", "NaN", "NaN", "NaN"}},
};

START_TEST(statistics_follow_the_table_of_the_format)
{
    for (size_t i = 0; i < sizeof stats / sizeof *stats; i++) {
        struct probe_tensor_desc t = {.data = stats[i].data,
                                      .dtype = stats[i].dtype,
                                      .shape = &stats[i].n,
                                      .ndim = stats[i].n != 0};
        struct probe_leaf l = leaf_of(&t, (struct probe_conf){0});
        for (int k = 0; k < PROBE_STATS; k++)
            ck_text(l.stat[k].text, stats[i].stat[k], stats[i].dtype);
    }
}
END_TEST

START_TEST(empty_tensors_have_no_figures_and_no_file)
{
    static const char *const dtypes[] = {"float32", "int64", "bool", "complex64", "uint64"};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        struct probe_leaf l = leaf_of(TENSOR(dtypes[i], NULL, false, 3, 0),
                                      (struct probe_conf){.task = PROBE_TASK_TENSOR});
        for (int k = 0; k < PROBE_STATS; k++)
            ck_assert_int_eq(l.stat[k].kind, PROBE_NUM_NULL);
        ck_assert_uint_eq(l.data_name.n, 0);
    }
}
END_TEST

START_TEST(mindspore_has_a_norm_of_complex_tensors)
{
    struct probe_leaf l = leaf_of(TENSOR("complex64", c64_two, false, 2),
                                  (struct probe_conf){.framework = PROBE_FW_MINDSPORE});
    ck_text(l.stat[PROBE_STAT_NORM].text, "5.099019527435303", "norm");
    ck_assert_int_eq(l.requires_grad, -1);
    ck_text(l.dtype_text, "Complex64", "dtype");
}
END_TEST

START_TEST(all_numbers_adds_mean_and_norm_of_integers_and_float64)
{
    struct probe_conf all = {.all_numbers = true};
    struct probe_leaf l = leaf_of(TENSOR("int64", i64_123, false, 3), all);
    ck_text(l.stat[PROBE_STAT_MEAN].text, "2.0", "mean");
    ck_text(l.stat[PROBE_STAT_NORM].text, "3.7416573867739413", "norm");
    l = leaf_of(TENSOR("bool", bool_two, false, 2), all);
    ck_assert_int_eq(l.stat[PROBE_STAT_MEAN].kind, PROBE_NUM_NULL);
}
END_TEST

TEST_MAIN("figures", digests_are_those_of_the_format, statistics_follow_the_table_of_the_format,
          empty_tensors_have_no_figures_and_no_file, mindspore_has_a_norm_of_complex_tensors,
          all_numbers_adds_mean_and_norm_of_integers_and_float64)
