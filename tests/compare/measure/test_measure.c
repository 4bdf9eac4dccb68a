/* SPDX-License-Identifier: MIT
 *
 * measure: differences of statistics for every pair of classes, and figures of
 * tensor files for the cases the official tool was observed on.
 */
#include "compare/official/rules_official.h"
#include "tests/support/cmp_fixture.h"

#include "probe/tensor/tensor.h"

#include <math.h>

/* ---- statistics ------------------------------------------------------------- */

static const struct {
    const char *n, *b; /* JSON of Max */
    const char *diff, *rel;
} pairs[] = {
    {"1.5", "1.0", "0.5", "50.0%"},
    {"3", "4", "-1.0", "25.0%"},
    {"1.0", "0.0", "1.0", "inf"},
    {"0.0", "0.0", "0", "0"},
    {"1", "1", "0", "0"},
    {"1", "1.0", "0.0", "0.0%"}, /* they print differently */
    {"-0.0", "0.0", "0.0", "inf"},
    {"NaN", "1.0", "Nan", "Nan"},
    {"1.0", "NaN", "Nan", "Nan"},
    {"NaN", "NaN", "0", "0"},
    {"NaN", "Infinity", "Nan", "Nan"},
    {"Infinity", "1.0", "inf", "inf"},
    {"1.0", "Infinity", "-inf", "-inf"},
    {"1.0", "-Infinity", "inf", "inf"},
    {"-Infinity", "1.0", "-inf", "-inf"},
    {"Infinity", "-Infinity", "inf", "inf"},
    {"-Infinity", "Infinity", "-inf", "-inf"},
    {"Infinity", "Infinity", "0", "0"},
    {"null", "1.0", "Diff", "Diff"},
    {"null", "null", "0", "0"},
    {"true", "false", "Diff", "Diff"},
    {"true", "true", "0", "0"},
    {"null", "NaN", "Diff", "Diff"},
    {"1e-05", "0.0", "1e-05", "inf"},
};

static void put_max(char json[512], const char *max)
{
    snprintf(json, 512,
             "\"Torch.a.0.forward\": {\"output\": [{\"type\":\"torch.Tensor\","
             "\"dtype\":\"torch.float32\",\"shape\":[1],\"Max\":%s,\"Min\":null,"
             "\"Mean\":null,\"Norm\":null}]}",
             max);
}

START_TEST(every_pair_of_classes_gives_its_cells)
{
    struct fixture f;
    fixture_init(&f);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char t[512], b[512];
        put_max(t, pairs[i].n);
        put_max(b, pairs[i].b);
        fixture_pair(&f, t, b);
        fixture_open(&f);
        const struct cmp_row *row = fixture_row(&f, "Torch.a.0.forward.output.0");
        bool zero_sign = pairs[i].n[0] == '-' && pairs[i].n[1] == '0';
        if (!zero_sign) /* 0.0 or -0.0: both are right */
            ck_str_is(row->delta[PROBE_STAT_MAX].diff, pairs[i].diff);
        if (strcmp(pairs[i].rel, "25.0%") != 0)
            ck_str_is(row->delta[PROBE_STAT_MAX].rel, pairs[i].rel);
        else
            ck_assert_double_eq_tol(row->delta[PROBE_STAT_MAX].rel_value, 0.25, 1e-15);
    }
    fixture_free(&f);
}
END_TEST

START_TEST(text_compares_as_text_and_devices_not_at_all)
{
    struct fixture f;
    fixture_init(&f);
    fixture_pair(&f,
                 "\"Torch.a.0.forward\": {\"input_args\": [" SCALAR("str", "\"x\"") "," SCALAR(
                     "torch.device", "\"npu:0\"") "," SCALAR("str", "\"same\"") "]}",
                 "\"Torch.a.0.forward\": {\"input_args\": [" SCALAR("str", "\"y\"") "," SCALAR(
                     "torch.device", "\"cuda:0\"") "," SCALAR("str", "\"same\"") "]}");
    fixture_open(&f);
    ck_str_is(fixture_row(&f, "Torch.a.0.forward.input.0")->delta[0].diff, "Diff");
    ck_str_is(fixture_row(&f, "Torch.a.0.forward.input.1")->delta[0].diff, "N/A");
    ck_str_is(fixture_row(&f, "Torch.a.0.forward.input.2")->delta[0].diff, "0");
    fixture_free(&f);
}
END_TEST

/* 17 digits with the leading zero, as the official tool once read numbers. */
START_TEST(strict_differences_are_those_of_numbers_cut_to_17_digits)
{
    struct fixture f;
    fixture_init(&f);
    f.conf.rules = cmp_rules_of(CMP_STRICT);
    fixture_pair(&f,
                 "\"Torch.a.0.forward\": {\"output\": [" TENSOR("0.26045331358909607", "0.0",
                                                                "null", "null") "]}",
                 "\"Torch.a.0.forward\": {\"output\": [" TENSOR("0.26045331358909600", "0.0",
                                                                "null", "null") "]}");
    fixture_open(&f);
    const struct cmp_row *row = fixture_row(&f, "Torch.a.0.forward.output.0");
    ck_str_is(row->delta[PROBE_STAT_MAX].diff, "0.0");
    f.conf.rules = cmp_rules_of(CMP_CUR);
    fixture_open(&f);
    row = fixture_row(&f, "Torch.a.0.forward.output.0");
    ck_assert(!ms_str_is(row->delta[PROBE_STAT_MAX].diff, "0.0"));
    fixture_free(&f);
}
END_TEST

/* pandas reads 17 digits and a power of ten. */
START_TEST(strict_numbers_may_have_a_power_of_ten)
{
    static const char *const texts[] = {"2.5e+3", "2.5e3",       "25e-1",    "1E-5",     "-7.25e+2",
                                        "1e300",  "1e-300",      "3.5e-309", "12e-320",  "0.001e2",
                                        "1e-308", "1234.5e-312", "1e308",    "123456e+2"};
    struct fixture f;
    fixture_init(&f);
    f.conf.rules = cmp_rules_of(CMP_STRICT);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char json[400], shown[64];
        snprintf(json, sizeof json,
                 "\"Torch.a.0.forward\": {\"output\": [{\"type\":\"torch.Tensor\",\"dtype\":"
                 "\"torch.float32\",\"shape\":[2,3],\"Max\":%s,\"Min\":0.5,\"Mean\":0.5,"
                 "\"Norm\":0.5,\"requires_grad\":false}]}",
                 texts[i]);
        fixture_pair(
            &f, json,
            "\"Torch.a.0.forward\": {\"output\": [" TENSOR("0.0", "0.5", "0.5", "0.5") "]}");
        fixture_open(&f);
        const struct cmp_row *row = fixture_row(&f, "Torch.a.0.forward.output.0");
        snprintf(shown, sizeof shown, "%.*s", MS_STR_ARG(row->delta[PROBE_STAT_MAX].diff));
        const double got = strtod(shown, NULL), want = strtod(texts[i], NULL);
        ck_assert_msg(fabs(got - want) <= 1e-14 * fabs(want) + 0x1p-1073, "%s: %s", texts[i],
                      shown);
        ck_str_is(row->delta[PROBE_STAT_MAX].rel, "inf");
    }
    fixture_free(&f);
}
END_TEST

/* ---- tensors -------------------------------------------------------------------- */

static void put_tensor(const struct fixture *f, char side, enum ms_dtype t, const char *shape_json,
                       const uint64_t *shape, uint32_t ndim, const void *data)
{
    char path[160], json[512];
    struct ms_err err = {0};
    snprintf(
        json, sizeof json,
        "\"Torch.a.0.forward\": {\"output\": [{\"type\":\"torch.Tensor\",\"dtype\":\"torch.%s\","
        "\"shape\":%s,\"Max\":1.0,\"Min\":0.0,\"Mean\":0.0,\"Norm\":1.0,"
        "\"requires_grad\":false,\"data_name\":\"x.pt\"}]}",
        ms_dtype_torch(t), shape_json);
    fixture_dump(f, side, "tensor", "pytorch", json);
    snprintf(path, sizeof path, "%s/%c/dump_tensor_data/x.pt", f->dir, side);
    if (data == NULL)
        unlink(path);
    else
        ck_ok(probe_pt_write(path, t, shape, ndim, data, &err), err);
}

static const struct cmp_row *measure(struct fixture *f, enum ms_dtype t, uint64_t n, const void *x,
                                     const void *y)
{
    char shape[32];
    snprintf(shape, sizeof shape, "[%llu]", (unsigned long long)n);
    put_tensor(f, 't', t, shape, &n, 1, x);
    put_tensor(f, 'b', t, shape, &n, 1, y);
    fixture_open(f);
    return fixture_row(f, "x");
}

static void check_metrics(const struct cmp_row *row, const double want[CMP_METRICS])
{
    ck_assert_int_eq(row->fig.state, CMP_STATE_OK);
    for (unsigned i = 0; i < CMP_METRICS; i++) {
        double got = row->fig.metric[i];
        ck_assert_msg(isnan(want[i]) ? isnan(got)
                                     : fabs(got - want[i]) <= 1e-12 * fmax(1, fabs(want[i])),
                      "metric %u: expected %.17g, got %.17g", i, want[i], got);
    }
}

START_TEST(figures_are_those_the_official_tool_was_seen_to_give)
{
    struct fixture f;
    fixture_init(&f);
    const float one[] = {1, 1, 1}, zero[] = {0, 0, 0}, x[] = {0, 1, 2}, y[] = {0, 0, 2};
    const uint8_t t[] = {1, 1, 1}, u[] = {1, 0, 1};
    const int64_t i[] = {1, 2, 4}, k[] = {1, 2, 3};
    const double third = 0.666666666667;
    check_metrics(measure(&f, MS_DT_F32, 3, one, one), (double[]){1, 0, 0, 0, 1, 1});
    check_metrics(measure(&f, MS_DT_F32, 3, one, zero),
                  (double[]){NAN, 1.7320508075688772, 1, 8388608, 0, 0});
    check_metrics(measure(&f, MS_DT_F32, 3, x, y),
                  (double[]){0.894427191, 1, 1, 8388608, third, third});
    check_metrics(measure(&f, MS_DT_BOOL, 3, t, u),
                  (double[]){0.816496580928, 1, 1, 4503599627370496.0, third, third});
    check_metrics(measure(&f, MS_DT_I64, 3, i, k),
                  (double[]){0.991460133984, 1, 1, 0.333333333333, third, third});
    fixture_free(&f);
}
END_TEST

/* More than the four million elements that are measured at a time, in one process and in three whose
 * results are joined. */
START_TEST(a_large_tensor_is_the_sum_of_its_pieces)
{
    enum { N = (8 << 20) + 777, PARTS = 3 };
    struct fixture f;
    struct ms_buf packed[PARTS] = {{.max = 1 << 20}, {.max = 1 << 20}, {.max = 1 << 20}};
    struct ms_str slices[PARTS];
    int8_t *x = calloc(N, 1), *y = calloc(N, 1);
    ck_assert(x != NULL && y != NULL);
    memset(x, 1, N);
    memset(y, 1, N);
    x[5] = 4;      /* 3 */
    x[N / 2] = 5;  /* 4 */
    x[N - 1] = 13; /* 12: the root of all squares is 13 */
    fixture_init(&f);
    const struct cmp_row *row = measure(&f, MS_DT_I8, N, x, y);
    ck_assert_double_eq_tol(row->fig.metric[CMP_EUCLID], 13, 1e-9);
    ck_assert_double_eq(row->fig.metric[CMP_MAX_ABS], 12);
    ck_assert_double_eq_tol(row->fig.metric[CMP_THOUSANDTH], 1 - 3.0 / N, 1e-11);
    ck_assert_uint_eq(cmp_bytes_read(f.c), 2 * (uint64_t)N);
    const struct cmp_figures whole = row->fig;
    fixture_close(&f);
    ck_ok(cmp_open(&f.c, &f.conf, f.t, f.b, NULL, &f.err), f.err);
    for (unsigned i = 0; i < PARTS; i++) {
        ck_ok(cmp_measure_part(f.c, NULL, i, PARTS, &packed[i], &f.err), f.err);
        slices[i] = ms_buf_slice(&packed[i]);
    }
    ck_ok(cmp_measure_join(f.c, slices, PARTS, &f.err), f.err);
    ck_ok(cmp_view_init(&f.v, &f.err), f.err);
    row = fixture_row(&f, "x");
    ck_assert_mem_eq(row->fig.metric, whole.metric, sizeof whole.metric);
    for (unsigned i = 0; i < PARTS; i++)
        ms_buf_free(&packed[i]);
    free(x);
    free(y);
    fixture_free(&f);
}
END_TEST

START_TEST(one_element_has_only_the_two_errors)
{
    struct fixture f;
    fixture_init(&f);
    const float x = 2.1F, y = 2.0F;
    const struct cmp_row *row = measure(&f, MS_DT_F32, 1, &x, &y);
    ck_assert_int_eq(row->fig.state, CMP_STATE_SCALAR);
    ck_assert_double_eq_tol(row->fig.metric[CMP_MAX_ABS], 0.099999904633, 1e-15);
    ck_assert_double_eq_tol(row->fig.metric[CMP_MAX_REL], 0.049999952316, 1e-15);
    f.conf.rules = cmp_rules_of(CMP_STRICT);
    const int64_t five = 5, three = 3;
    row = measure(&f, MS_DT_I64, 1, &five, &three);
    ck_assert_double_eq_tol(row->fig.metric[CMP_MAX_REL], 0.666666686535, 1e-15);
    fixture_free(&f);
}
END_TEST

/* 3 + 4i beside 3 - 4i: alike to who looks at real parts alone. */
START_TEST(complex_numbers_differ_by_either_part_except_in_strict)
{
    struct fixture f;
    fixture_init(&f);
    const float x[] = {3, 4, 0, 0}, y[] = {3, -4, 0, 0};
    const double z[] = {3, 4}, w[] = {3, -4};
    const struct cmp_row *row = measure(&f, MS_DT_C64, 2, x, y);
    check_metrics(row, (double[]){-0.28, 8, 8, 2, 0.75, 0.75});
    row = measure(&f, MS_DT_C128, 1, z, w);
    ck_assert_int_eq(row->fig.state, CMP_STATE_OK);
    ck_assert_double_eq(row->fig.metric[CMP_MAX_ABS], 8);
    f.conf.rules = cmp_rules_of(CMP_STRICT);
    row = measure(&f, MS_DT_C64, 2, x, y);
    ck_assert_double_eq(row->fig.metric[CMP_MAX_ABS], 0);
    fixture_free(&f);
}
END_TEST

START_TEST(shapes_may_differ_by_axes_of_length_one)
{
    struct fixture f;
    fixture_init(&f);
    float x[20] = {1, 2, 3};
    put_tensor(&f, 't', MS_DT_F32, "[4,5,1]", (uint64_t[]){4, 5, 1}, 3, x);
    put_tensor(&f, 'b', MS_DT_F32, "[4,5]", (uint64_t[]){4, 5}, 2, x);
    fixture_open(&f);
    const struct cmp_row *row = fixture_row(&f, "x");
    ck_assert_int_eq(row->fig.state, CMP_STATE_OK);
    ck_assert(row->notes & 1U << CMP_NOTE_SHAPE);
    put_tensor(&f, 'b', MS_DT_F32, "[5,4]", (uint64_t[]){5, 4}, 2, x);
    fixture_open(&f);
    ck_assert_int_eq(fixture_row(&f, "x")->fig.state, CMP_STATE_SHAPE);
    fixture_free(&f);
}
END_TEST

START_TEST(a_missing_file_is_an_error_except_in_strict)
{
    struct fixture f;
    fixture_init(&f);
    const float x[] = {1, 2};
    const struct cmp_row *row = measure(&f, MS_DT_F32, 2, x, NULL);
    ck_assert_int_eq(row->fig.state, CMP_STATE_UNREADABLE);
    ck_assert_int_eq(row->level, CMP_ERROR);
    f.conf.rules = cmp_rules_of(CMP_STRICT);
    ck_assert_int_eq(measure(&f, MS_DT_F32, 2, x, NULL)->level, CMP_PASS);
    fixture_free(&f);
}
END_TEST

START_TEST(infinities_of_both_signs_differ_except_in_strict)
{
    struct fixture f;
    fixture_init(&f);
    const float x[] = {1, -INFINITY, 3}, y[] = {1, INFINITY, 3}, nan_x[] = {1, NAN, 3};
    ck_assert_int_eq(measure(&f, MS_DT_F32, 3, x, y)->fig.state, CMP_STATE_MASKS);
    ck_assert_int_eq(measure(&f, MS_DT_F32, 3, nan_x, y)->fig.state, CMP_STATE_MASKS);
    ck_assert_int_eq(measure(&f, MS_DT_F32, 3, nan_x, nan_x)->fig.state, CMP_STATE_OK);
    f.conf.rules = cmp_rules_of(CMP_STRICT);
    check_metrics(measure(&f, MS_DT_F32, 3, x, y), (double[]){1, 0, 0, 0, 1, 1});
    fixture_free(&f);
}
END_TEST

START_TEST(a_name_that_leaves_the_folder_is_not_followed)
{
    struct fixture f;
    fixture_init(&f);
    const char *data = "\"Torch.a.0.forward\": {\"output\": [{\"type\":\"torch.Tensor\",\"dtype\":"
                       "\"torch.float32\",\"shape\":[2],\"data_name\":\"../dump.json\"}]}";
    fixture_dump(&f, 't', "tensor", "pytorch", data);
    fixture_dump(&f, 'b', "tensor", "pytorch", data);
    fixture_open(&f);
    ck_assert_int_eq(fixture_row(&f, "../dump")->fig.state, CMP_STATE_UNREADABLE);
    fixture_free(&f);
}
END_TEST

/* Norms of at most the epsilon of double are nought: two of them agree, one beside another has no cosine. */
START_TEST(norms_of_nought_have_a_cosine_with_each_other_alone)
{
    struct fixture f;
    fixture_init(&f);
    const double eps = 2.220446049250313e-16, above = 2.220446049250314e-16;
    const double at[] = {eps, 0}, over[] = {above, 0}, one[] = {1, 0};
    ck_assert_double_eq(measure(&f, MS_DT_F64, 2, at, at)->fig.metric[CMP_COSINE], 1);
    ck_assert_double_eq(measure(&f, MS_DT_F64, 2, over, over)->fig.metric[CMP_COSINE], 1);
    ck_assert(isnan(measure(&f, MS_DT_F64, 2, at, one)->fig.metric[CMP_COSINE]));
    ck_assert(isnan(measure(&f, MS_DT_F64, 2, one, at)->fig.metric[CMP_COSINE]));
    ck_assert_double_eq(measure(&f, MS_DT_F64, 2, over, one)->fig.metric[CMP_COSINE], 1);
    fixture_free(&f);
}
END_TEST

/* A cosine above 0.9999 is rounded to six digits, a lesser one is not. */
START_TEST(a_cosine_near_one_is_rounded)
{
    struct fixture f;
    fixture_init(&f);
    for (double angle = 0.001; angle < 0.05; angle += 0.0007) {
        const double x[] = {cos(angle), sin(angle)}, y[] = {1, 0};
        const double want = x[0] > 0.9999 ? round(x[0] * 1e6) / 1e6 : x[0];
        ck_assert_double_eq_tol(measure(&f, MS_DT_F64, 2, x, y)->fig.metric[CMP_COSINE], want,
                                1e-12);
    }
    fixture_free(&f);
}
END_TEST

struct told {
    double share;
    uint64_t amount;
    unsigned calls;
};

static void take_progress(void *ctx, const struct cmp_progress *p)
{
    struct told *t = ctx;
    if (strcmp(p->what, "measuring") != 0)
        return;
    ck_assert(p->is_bytes && p->share >= t->share && p->share <= 1 && p->amount >= t->amount);
    *t = (struct told){p->share, p->amount, t->calls + 1};
}

START_TEST(the_last_that_is_told_of_measuring_is_all_of_it)
{
    struct fixture f;
    struct told t = {0};
    fixture_init(&f);
    const float x[] = {1, 2, 3};
    f.conf.progress = take_progress;
    f.conf.progress_ctx = &t;
    measure(&f, MS_DT_F32, 3, x, x);
    ck_assert(t.calls > 0 && t.share == 1);
    ck_assert_uint_eq(t.amount, 2 * sizeof x);
    fixture_free(&f);
}
END_TEST

START_TEST(nothing_to_measure_is_measured_whole)
{
    struct fixture f;
    struct told t = {0};
    fixture_init(&f);
    f.conf.progress = take_progress;
    f.conf.progress_ctx = &t;
    fixture_dump(&f, 't', "tensor", "pytorch", "");
    fixture_dump(&f, 'b', "tensor", "pytorch", "");
    fixture_open(&f);
    ck_assert(t.calls == 1 && t.share == 1 && t.amount == 0);
    fixture_free(&f);
}
END_TEST

TEST_MAIN("measure", every_pair_of_classes_gives_its_cells,
          text_compares_as_text_and_devices_not_at_all,
          strict_differences_are_those_of_numbers_cut_to_17_digits,
          strict_numbers_may_have_a_power_of_ten,
          figures_are_those_the_official_tool_was_seen_to_give, one_element_has_only_the_two_errors,
          a_large_tensor_is_the_sum_of_its_pieces,
          complex_numbers_differ_by_either_part_except_in_strict,
          shapes_may_differ_by_axes_of_length_one, a_missing_file_is_an_error_except_in_strict,
          infinities_of_both_signs_differ_except_in_strict,
          a_name_that_leaves_the_folder_is_not_followed,
          norms_of_nought_have_a_cosine_with_each_other_alone, a_cosine_near_one_is_rounded,
          the_last_that_is_told_of_measuring_is_all_of_it, nothing_to_measure_is_measured_whole)
