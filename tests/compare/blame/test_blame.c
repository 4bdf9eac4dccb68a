/* SPDX-License-Identifier: MIT
 *
 * blame: single elements beside the rounding of their types, and whole records with a fault on one
 * side, on both, or on none.
 */
#include "compare/blame/blame_pick.h"
#include "tests/support/cmp_fixture.h"

#include <math.h>

enum { N = 8, LIMIT = 1 << 26 };

static void put(const struct fixture *f, char side, const char *name, const float *v)
{
    static const uint64_t shape[] = {2, N / 2};
    char path[200];
    struct ms_err err = {0};
    snprintf(path, sizeof path, "%s/%c/dump_tensor_data/%s.npy", f->dir, side, name);
    ck_ok(probe_npy_write(path, MS_DT_F32, shape, 2, v, &err), err);
}

#define LEAF(name)                                                                                 \
    "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\",\"shape\":[2,4],\"Max\":1.0,"          \
    "\"Min\":0.0,\"Mean\":0.0,\"Norm\":1.0,\"requires_grad\":false,\"data_name\":\"" name          \
    ".npy\"}"

/* torch.mul forward and backward, computed right on both sides. */
static void begin(struct fixture *f)
{
    static const char data[] = "\"Torch.mul.0.forward\": {\"input_args\": [" LEAF("x") ", " LEAF(
        "y") "], \"input_kwargs\": {}, "
             "\"output\": [" LEAF("z") "]}, \"Torch.mul.0.backward\": {\"input\": [" LEAF(
                 "g") "], "
                      "\"output\": [" LEAF("gx") ", " LEAF(
                          "gy") "]}, \"Torch.odd.0.forward\": {\"input_args\": "
                                "[" LEAF("x") "], \"input_kwargs\": {}, "
                                              "\"output\": [" LEAF("z") "]}";
    float x[N], y[N], z[N], g[N], gx[N], gy[N];
    fixture_init(f);
    for (int i = 0; i < N; i++) {
        x[i] = 0.1F * (float)(i + 1);
        y[i] = 0.3F * (float)(i + 1) - 1;
        z[i] = x[i] * y[i];
        g[i] = 0.7F;
        gx[i] = g[i] * y[i];
        gy[i] = g[i] * x[i];
    }
    for (int s = 0; s < 2; s++) {
        const char side = "tb"[s];
        fixture_dump(f, side, "tensor", "pytorch", data);
        put(f, side, "x", x);
        put(f, side, "y", y);
        put(f, side, "z", z);
        put(f, side, "g", g);
        put(f, side, "gx", gx);
        put(f, side, "gy", gy);
    }
}

static struct blame judge(const struct fixture *f, const char *name)
{
    struct ms_err err = {0};
    struct blame b;
    const struct blame_pick pick = {.target_json = f->t,
                                    .golden_json = f->b,
                                    .target = ms_str_of(name),
                                    .golden = ms_str_of(name)};
    ck_ok(blame_judge_pick(&pick, &b, LIMIT, &err), err);
    return b;
}

/* Overwrites a tensor with ones, which no result here is. */
static void spoil(const struct fixture *f, char side, const char *name, float by)
{
    float v[N];
    for (int i = 0; i < N; i++)
        v[i] = by + (float)i;
    put(f, side, name, v);
}

START_TEST(right_results_are_within_their_bounds)
{
    struct fixture f;
    begin(&f);
    ck_assert_int_eq(judge(&f, "Torch.mul.0.forward").verdict, BLAME_NEITHER);
    ck_assert_int_eq(judge(&f, "Torch.mul.0.backward").verdict, BLAME_NEITHER);
    fixture_free(&f);
}
END_TEST

START_TEST(the_side_with_the_fault_is_named)
{
    struct fixture f;
    begin(&f);
    spoil(&f, 't', "z", 1);
    ck_assert_int_eq(judge(&f, "Torch.mul.0.forward").verdict, BLAME_TARGET);
    spoil(&f, 'b', "z", 2);
    ck_assert_int_eq(judge(&f, "Torch.mul.0.forward").verdict, BLAME_BOTH);
    spoil(&f, 'b', "z", 1); /* alike on both sides */
    ck_assert_int_eq(judge(&f, "Torch.mul.0.forward").verdict, BLAME_UNDECIDED);
    spoil(&f, 'b', "gy", 1);
    ck_assert_int_eq(judge(&f, "Torch.mul.0.backward").verdict, BLAME_GOLDEN);
    fixture_free(&f);
}
END_TEST

START_TEST(inputs_that_differ_are_nobodys_fault)
{
    struct fixture f;
    float x[N], z[N];
    begin(&f);
    for (int i = 0; i < N; i++) {
        x[i] = 0.2F * (float)(i + 1);
        z[i] = x[i] * (0.3F * (float)(i + 1) - 1);
    }
    put(&f, 't', "x", x);
    put(&f, 't', "z", z);
    const struct blame b = judge(&f, "Torch.mul.0.forward");
    ck_assert_int_eq(b.verdict, BLAME_INPUTS);
    ck_assert_str_eq(b.input_path, "input.0");
    ck_assert(fabs(b.input_rel_l2 - 1) < 1e-6);
    fixture_free(&f);
}
END_TEST

START_TEST(what_cannot_be_computed_is_said)
{
    struct fixture f;
    char path[200];
    begin(&f);
    struct blame b = judge(&f, "Torch.odd.0.forward");
    ck_assert_int_eq(b.verdict, BLAME_UNDECIDED);
    ck_says(b.target.why, "odd");
    snprintf(path, sizeof path, "%s/t/dump_tensor_data/x.npy", f.dir);
    ck_assert_int_eq(remove(path), 0);
    b = judge(&f, "Torch.mul.0.forward");
    ck_assert_int_eq(b.verdict, BLAME_UNDECIDED);
    ck_says(b.target.why, "x.npy");
    write_file(path,
               "\x80\x02"
               "cos\nsystem\n(S'true'\ntR.",
               24); /* a pickle that would run a program */
    b = judge(&f, "Torch.mul.0.forward");
    ck_assert_int_eq(b.target.state, BLAME_UNKNOWN);
    ck_assert_int_eq(b.golden.state, BLAME_WITHIN);
    fixture_free(&f);
}
END_TEST

/* Distance in bounds of one element that must be rounded correctly. */
static double worst(enum ms_dtype type, double recorded, double exact, double error)
{
    struct blame_outcome o;
    blame_measure(&o, type, &recorded, &exact, error > 0 ? &error : NULL, 1);
    return o.worst;
}

START_TEST(exact_results_are_rounded_to_the_nearest)
{
    ck_assert(worst(MS_DT_BF16, 1.0, 1.0 + 0x1p-9, 0) <= 1);
    ck_assert(worst(MS_DT_BF16, 1.0, 1.0 + 0x1.8p-8, 0) > 1); /* truncated */
    ck_assert(worst(MS_DT_F32, 1.0, 1.0 + 0x1p-25, 0) <= 1);
    ck_assert(worst(MS_DT_I64, 3, 3, 0) <= 1);
    ck_assert(worst(MS_DT_I64, 3, 4, 0) > 1);
}
END_TEST

START_TEST(overflow_and_nan)
{
    ck_assert(worst(MS_DT_F16, INFINITY, 7e4, 0) <= 1);
    ck_assert(worst(MS_DT_F16, 65504, 7e4, 0) > 1); /* saturated */
    ck_assert(worst(MS_DT_F16, INFINITY, 6e4, 1) > 1);
    ck_assert(worst(MS_DT_F16, INFINITY, 65500, 40) <= 1);
    ck_assert(worst(MS_DT_F32, NAN, 1, 1e-7) > 1);
    ck_assert(worst(MS_DT_F32, NAN, NAN, 0) <= 1);
    ck_assert(worst(MS_DT_F32, -INFINITY, INFINITY, 0) > 1);
    struct blame_outcome o;
    const double recorded = 1, exact = NAN;
    blame_measure(&o, MS_DT_F32, &recorded, &exact, NULL, 1);
    ck_assert_uint_eq(o.unclear, 1);
    ck_assert_uint_eq(o.beyond, 0);
}
END_TEST

START_TEST(units_in_the_last_place)
{
    ck_assert(blame_ulp(MS_DT_F32, 1.0) == 0x1p-23);
    ck_assert(blame_ulp(MS_DT_F16, 65504) == 32);
    ck_assert(blame_ulp(MS_DT_BF16, -3.0) == 0x1p-6);
    ck_assert(blame_ulp(MS_DT_F32, 0) == 0x1p-149);
}
END_TEST

TEST_MAIN("blame", right_results_are_within_their_bounds, the_side_with_the_fault_is_named,
          inputs_that_differ_are_nobodys_fault, what_cannot_be_computed_is_said,
          exact_results_are_rounded_to_the_nearest, overflow_and_nan, units_in_the_last_place)
