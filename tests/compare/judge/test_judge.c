/* SPDX-License-Identifier: MIT
 *
 * judge: each rule of the verdicts, where it holds and where it just does not.
 */
#include "compare/official/rules_official.h"
#include "tests/support/cmp_fixture.h"

#include "compare/measure/pattern.h"

/* An op with one input and one output, whose norms on both sides are given. */
static void open_norms(struct fixture *f, const char *op, const char *in_t, const char *in_b,
                       const char *out_t, const char *out_b)
{
    char t[900], b[900];
    static const char head[] =
        "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\",\"shape\":[2],"
        "\"Max\":1.0,\"Min\":0.0,\"Mean\":0.0,\"Norm\":";
    snprintf(t, sizeof t, "\"%s\": {\"input_args\": [%s%s}], \"output\": [%s%s}]}", op, head, in_t,
             head, out_t);
    snprintf(b, sizeof b, "\"%s\": {\"input_args\": [%s%s}], \"output\": [%s%s}]}", op, head, in_b,
             head, out_b);
    fixture_pair(f, t, b);
    fixture_open(f);
}

static const struct {
    const char *op, *in_t, *in_b, *out_t, *out_b;
    enum cmp_level level;
    uint32_t notes;
} norms[] = {
    {"Torch.a.0.forward", "1.0", "1.0", "1.0", "1.0", CMP_PASS, 0},
    {"Torch.a.0.forward", "1.0", "1.0", "1.1", "1.0", CMP_WARNING, 1U << CMP_NOTE_NORM_WARN},
    {"Torch.a.0.forward", "1.0", "1.0", "1.09", "1.0", CMP_PASS, 0},
    {"Torch.a.0.forward", "1.01", "1.0", "1.11", "1.0", CMP_WARNING, 1U << CMP_NOTE_NORM_WARN},
    {"Torch.a.0.forward", "1.02", "1.0", "1.1", "1.0", CMP_PASS, 0},
    {"Torch.a.0.forward", "1.05", "1.0", "1.6", "1.0", CMP_ERROR,
     1U << CMP_NOTE_NORM_ERR | 1U << CMP_NOTE_NORM_WARN},
    {"Torch.a.0.forward", "1.2", "1.0", "1.6", "1.0", CMP_PASS, 0}, /* bad input excuses */
    {"Torch.a.0.forward", "1.0", "1.0", "1.0", "0.0", CMP_ERROR, 1U << CMP_NOTE_NORM_ERR},
    {"Torch.a.0.forward", "1.0", "1.0", "NaN", "1.0", CMP_PASS, 0},
    {"Torch.empty.0.forward", "1.0", "1.0", "9.0", "1.0", CMP_PASS, 0},
    {"Distributed.all_to_all_single.0.forward", "1.0", "1.0", "9.0", "1.0", CMP_PASS, 0},
};

START_TEST(norms_of_outputs_are_held_against_those_of_inputs)
{
    struct fixture f;
    fixture_init(&f);
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
        char row[128];
        open_norms(&f, norms[i].op, norms[i].in_t, norms[i].in_b, norms[i].out_t, norms[i].out_b);
        snprintf(row, sizeof row, "%s.output.0", norms[i].op);
        const struct cmp_row *r = fixture_row(&f, row);
        ck_assert_msg(r->level == norms[i].level && r->notes == norms[i].notes,
                      "case %zu: level %d notes %x", i, r->level, r->notes);
    }
    fixture_free(&f);
}
END_TEST

static const char *const leaf =
    "{\"type\":\"torch.Tensor\",\"dtype\":\"%s\",\"shape\":%s,\"Max\":%s,"
    "\"Min\":0.0,\"Mean\":0.0,\"Norm\":1.0%s}";

struct attributes {
    const char *dtype, *shape, *max, *grad;
};

static void open_pair(struct fixture *f, const struct attributes *t, const struct attributes *b,
                      const char *golden_framework)
{
    const struct attributes *side[2] = {t, b};
    for (int i = 0; i < 2; i++) {
        struct ms_buf text = {.max = 4096};
        const char *at = leaf,
                   *value[] = {side[i]->dtype, side[i]->shape, side[i]->max, side[i]->grad};
        ms_buf_puts(&text, "\"Torch.qkv.0.forward\": {\"output\": [");
        for (int k = 0; k < 4; k++) {
            const char *hole = strstr(at, "%s");
            ms_buf_put(&text, at, (size_t)(hole - at));
            ms_buf_puts(&text, value[k]);
            at = hole + 2;
        }
        ms_buf_puts(&text, at);
        ms_buf_puts(&text, "]}");
        fixture_dump(f, "tb"[i], "statistics",
                     i == 0 && golden_framework != NULL ? "mindspore" : "pytorch", ms_buf_z(&text));
        ms_buf_free(&text);
    }
    fixture_open(f);
}

static uint32_t notes_of(struct fixture *f)
{
    return fixture_row(f, "Torch.qkv.0.forward.output.0")->notes;
}

START_TEST(attributes_that_differ_are_errors)
{
    struct fixture f;
    const struct attributes same = {"torch.float32", "[2]", "1.0", ",\"requires_grad\":true"};
    struct attributes other = same;
    fixture_init(&f);
    open_pair(&f, &same, &same, NULL);
    ck_assert_uint_eq(notes_of(&f), 0);
    other.shape = "[3]";
    open_pair(&f, &other, &same, NULL);
    ck_assert_uint_eq(notes_of(&f), 1U << CMP_NOTE_SHAPE);
    other = same;
    other.grad = ",\"requires_grad\":false";
    open_pair(&f, &other, &same, NULL);
    ck_assert_uint_eq(notes_of(&f), 1U << CMP_NOTE_GRAD);
    other = same;
    other.max = "NaN";
    open_pair(&f, &other, &same, NULL);
    ck_assert_uint_eq(notes_of(&f), 1U << CMP_NOTE_INF_NAN);
    open_pair(&f, &other, &other, NULL); /* the golden side has it too */
    ck_assert_uint_eq(notes_of(&f), 0);
    fixture_free(&f);
}
END_TEST

START_TEST(a_dtype_that_differs_is_excused_by_a_golden_name_in_strict_alone)
{
    struct fixture f;
    const struct attributes a = {"torch.bfloat16", "[2]", "1.0", ""};
    const struct attributes b = {"torch.float32", "[2]", "1.0", ""};
    fixture_init(&f);
    open_pair(&f, &a, &b, NULL);
    ck_assert_uint_eq(notes_of(&f), 1U << CMP_NOTE_DTYPE);
    f.conf.rules = cmp_rules_of(CMP_STRICT);
    open_pair(&f, &a, &b, NULL);
    ck_assert_uint_eq(notes_of(&f), 0);
    fixture_free(&f);
}
END_TEST

START_TEST(frameworks_are_compared_by_what_their_dtypes_mean)
{
    struct fixture f;
    const struct attributes ms = {"Float32", "[2]", "1.0", ""};
    const struct attributes pt = {"torch.float32", "[2]", "1.0", ",\"requires_grad\":false"};
    fixture_init(&f);
    open_pair(&f, &ms, &pt, "pytorch");
    ck_assert_uint_eq(notes_of(&f), 0);
    f.conf.rules = cmp_rules_of(CMP_STRICT);
    open_pair(&f, &ms, &pt, "pytorch");
    ck_assert_uint_eq(notes_of(&f), 1U << CMP_NOTE_GRAD); /* the name excuses the dtype */
    fixture_free(&f);
}
END_TEST

START_TEST(far_apart_dtypes_are_compared_except_in_strict)
{
    struct fixture f;
    const struct attributes a = {"torch.float64", "[2]", "1.0", ""};
    const struct attributes b = {"torch.float32", "[2]", "1.0", ""};
    fixture_init(&f);
    open_pair(&f, &a, &b, NULL);
    ck_assert_uint_eq(notes_of(&f), 1U << CMP_NOTE_DTYPE);
    f.conf.rules = cmp_rules_of(CMP_STRICT);
    open_pair(&f, &a, &b, NULL);
    ck_str_is(fixture_row(&f, "Torch.qkv.0.forward.output.0")->b.name, "N/A");
    fixture_free(&f);
}
END_TEST

#define WITH_SCALAR(v, norm)                                                                       \
    "\"Torch.a.0.forward\": {\"input_args\": [" SCALAR("int", v) "], \"output\": [" TENSOR(        \
        "1.0", "0.0", "0.0", norm) "]}"

START_TEST(a_scalar_argument_is_an_error_and_excuses_the_output_in_strict_alone)
{
    struct fixture f;
    fixture_init(&f);
    fixture_pair(&f, WITH_SCALAR("4", "1.6"), WITH_SCALAR("3", "1.0"));
    fixture_open(&f);
    ck_assert(fixture_row(&f, "Torch.a.0.forward.input.0")->notes == 1U << CMP_NOTE_PARAM);
    ck_assert(fixture_row(&f, "Torch.a.0.forward.output.0")->notes & 1U << CMP_NOTE_NORM_ERR);
    f.conf.rules = cmp_rules_of(CMP_STRICT);
    fixture_open(&f);
    ck_assert(fixture_row(&f, "Torch.a.0.forward.output.0")->notes == 0);
    fixture_free(&f);
}
END_TEST

#define DIGEST(d)                                                                                  \
    "\"Torch.a.0.forward\": {\"output\": [{\"type\":\"torch.Tensor\",\"dtype\":\"torch.int8\","    \
    "\"shape\":[1],\"md5\":\"" d "\"}]}"

START_TEST(digests_are_equal_or_not)
{
    struct fixture f;
    fixture_init(&f);
    fixture_pair(&f, DIGEST("00000001"), DIGEST("00000001"));
    fixture_open(&f);
    ck_assert_int_eq(fixture_row(&f, "Torch.a.0.forward.output.0")->level, CMP_PASS);
    fixture_pair(&f, DIGEST("00000001"), DIGEST("00000002"));
    fixture_open(&f);
    ck_assert(fixture_row(&f, "Torch.a.0.forward.output.0")->notes == 1U << CMP_NOTE_CRC);
    fixture_free(&f);
}
END_TEST

START_TEST(a_dump_against_itself_passes_in_every_row)
{
    struct fixture f;
    fixture_init(&f);
    const char *data = "\"Torch.a.0.forward\": {\"input_args\": [" TENSOR(
        "NaN", "-Infinity", "null",
        "1e+20") ",null," SCALAR("int", "3") "," SCALAR("bool",
                                                        "true") "], \"input_kwargs\": "
                                                                "{\"k\": " SCALAR(
                                                                    "str",
                                                                    "\"v\"") "}, "
                                                                             "\"outpu"
                                                                             "t\": "
                                                                             "[" TENSOR("1."
                                                                                        "0",
                                                                                        "0."
                                                                                        "0",
                                                                                        "0."
                                                                                        "0",
                                                                                        "0."
                                                                                        "0") "]}";
    for (int compat = CMP_CUR; compat <= CMP_STRICT; compat++) {
        f.conf.rules = cmp_rules_of((enum cmp_compat)compat);
        fixture_pair(&f, data, data);
        fixture_open(&f);
        for (size_t g = 0; g < cmp_groups(f.c); g++) {
            ck_ok(cmp_view_group(f.c, g, &f.v, &f.err), f.err);
            for (size_t i = 0; i < f.v.rows.n; i++) {
                bool own = f.v.rows.p[i].notes == 0;
                ck_assert_msg(own, "%.*s", MS_STR_ARG(f.v.rows.p[i].t.name));
            }
        }
    }
    fixture_free(&f);
}
END_TEST

START_TEST(a_second_run_is_the_measure_where_it_differs)
{
    struct fixture f;
    char second[96];
    fixture_init(&f);
    fixture_pair(&f,
                 "\"Torch.a.0.forward\": {\"output\": [" TENSOR("1.0", "0.0", "0.0", "1.2") "]}",
                 "\"Torch.a.0.forward\": {\"output\": [" TENSOR("1.0", "0.0", "0.0", "1.0") "]}");
    fixture_open(&f);
    struct cmp_pattern p =
        cmp__pattern(&f.c->rows, &f.c->measured, fixture_row(&f, "Torch.a.0.forward.output.0"));
    ck_assert_double_eq_tol(p.ext.rel_l2_bound, 0.2, 1e-12);
    ck_assert(p.z > 1e6);
    fixture_dump(&f, 'n', "statistics", "pytorch",
                 "\"Torch.a.0.forward\": {\"output\": [" TENSOR("1.0", "0.0", "0.0", "1.1") "]}");
    snprintf(second, sizeof second, "%s/n/dump.json", f.dir);
    f.conf.noise_floor = second;
    fixture_open(&f);
    p = cmp__pattern(&f.c->rows, &f.c->measured, fixture_row(&f, "Torch.a.0.forward.output.0"));
    ck_assert_double_eq_tol(p.expected, 0.1, 1e-12);
    ck_assert_double_eq_tol(p.z, 2, 1e-9);
    fixture_free(&f);
}
END_TEST

/* Every figure of the target is c times the golden one. */
START_TEST(a_scaled_tensor_reports_its_scale)
{
    static const char *const scaled[][4] = {{"2.0", "-1.0", "0.5", "4.0"},
                                            {"4.0", "-2.0", "1.0", "8.0"},
                                            {"1.0", "-2.0", "-0.5", "4.0"}};
    for (size_t i = 0; i < sizeof scaled / sizeof *scaled; i++) {
        struct fixture f;
        char t[600];
        fixture_init(&f);
        snprintf(t, sizeof t,
                 "\"Torch.a.0.forward\": {\"output\": [{\"type\":\"torch.Tensor\",\"dtype\":"
                 "\"torch.float32\",\"shape\":[2,3],\"Max\":%s,\"Min\":%s,\"Mean\":%s,"
                 "\"Norm\":%s}]}",
                 scaled[i][0], scaled[i][1], scaled[i][2], scaled[i][3]);
        fixture_pair(
            &f, t,
            "\"Torch.a.0.forward\": {\"output\": [" TENSOR("2.0", "-1.0", "0.5", "4.0") "]}");
        fixture_open(&f);
        struct cmp_pattern p =
            cmp__pattern(&f.c->rows, &f.c->measured, fixture_row(&f, "Torch.a.0.forward.output.0"));
        double scale = i == 0 ? 1 : i == 1 ? 2 : -1;
        ck_assert_double_eq_tol(p.ext.scale, scale, 1e-12);
        ck_assert_str_eq(p.name, i == 0 ? "same figures" : i == 1 ? "scaled" : "sign flip");
        fixture_free(&f);
    }
}
END_TEST

TEST_MAIN("judge", a_second_run_is_the_measure_where_it_differs, a_scaled_tensor_reports_its_scale,
          norms_of_outputs_are_held_against_those_of_inputs, attributes_that_differ_are_errors,
          a_dtype_that_differs_is_excused_by_a_golden_name_in_strict_alone,
          frameworks_are_compared_by_what_their_dtypes_mean,
          far_apart_dtypes_are_compared_except_in_strict,
          a_scalar_argument_is_an_error_and_excuses_the_output_in_strict_alone,
          digests_are_equal_or_not, a_dump_against_itself_passes_in_every_row)
