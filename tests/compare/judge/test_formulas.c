/* SPDX-License-Identifier: MIT
 *
 * formulas: differences of statistics by class of value, as the official tables have
 * them, and what must hold whatever the values are.
 */
#include "compare/official/rules_official.h"
#include "tests/support/cmp_fixture.h"

#define ROW "Torch.a.0.forward.output.0"

struct formula {
    const char *npu, *bench, *diff, *rel;
};

/* The same text in both cells unless two numbers meet. */
static const struct formula formulas[] = {
    {"3.0", "2.0", "1.0", "50.0%"},
    {"2.0", "3.0", "-1.0", "33.33333333333333%"},
    {"3.0", "-2.0", "5.0", "250.0%"},
    {"3.0", "0.0", "3.0", "inf"},
    {"-0.0", "0.0", "-0.0", "inf"},

    {"3.0", "NaN", "Nan", "Nan"},
    {"3.0", "Infinity", "-inf", "-inf"},
    {"3.0", "-Infinity", "inf", "inf"},
    {"3.0", "null", "Diff", "Diff"},
    {"NaN", "3.0", "Nan", "Nan"},
    {"NaN", "Infinity", "Nan", "Nan"},
    {"NaN", "-Infinity", "Nan", "Nan"},
    {"NaN", "null", "Diff", "Diff"},
    {"Infinity", "3.0", "inf", "inf"},
    {"Infinity", "NaN", "Nan", "Nan"},
    {"Infinity", "-Infinity", "inf", "inf"},
    {"Infinity", "null", "Diff", "Diff"},
    {"-Infinity", "3.0", "-inf", "-inf"},
    {"-Infinity", "NaN", "Nan", "Nan"},
    {"-Infinity", "Infinity", "-inf", "-inf"},
    {"-Infinity", "null", "Diff", "Diff"},
    {"null", "3.0", "Diff", "Diff"},
    {"null", "NaN", "Diff", "Diff"},
    {"null", "null", "0", "0"},
    {"NaN", "NaN", "0", "0"},
    {"Infinity", "Infinity", "0", "0"},
    {"3.5", "3.5", "0", "0"},
};

/* In 1.x only numbers and NaN are subtracted. */
static const struct formula old_formulas[] = {
    {"3.0", "2.0", "1.0", "50.0%"}, {"3.0", "0.0", "3.0", "N/A"}, {"3.5", "3.5", "0.0", "0.0%"},
    {"3.0", "NaN", "Nan", "Nan"},   {"NaN", "3.0", "Nan", "Nan"}, {"3.0", "null", "N/A", "N/A"},
};

static void put_side(const struct fixture *f, char side, const char *max)
{
    char text[400];
    snprintf(text, sizeof text,
             "\"Torch.a.0.forward\": {\"output\": [{\"type\":\"torch.Tensor\",\"dtype\":"
             "\"torch.float32\",\"shape\":[2,3],\"Max\":%s,\"Min\":-1.0,\"Mean\":0.5,\"Norm\":9.5,"
             "\"requires_grad\":false}]}",
             max);
    fixture_dump(f, side, "statistics", "pytorch", text);
}

static struct cmp_delta delta_of(struct fixture *f, const char *npu, const char *bench)
{
    put_side(f, 't', npu);
    put_side(f, 'b', bench);
    fixture_open(f);
    return fixture_row(f, ROW)->delta[PROBE_STAT_MAX];
}

static void check_all(enum cmp_compat compat, const struct formula *list, size_t n)
{
    struct fixture f;
    fixture_init(&f);
    f.conf.rules = cmp_rules_of(compat);
    for (size_t i = 0; i < n; i++) {
        struct cmp_delta d = delta_of(&f, list[i].npu, list[i].bench);
        ck_assert_msg(ms_str_is(d.diff, list[i].diff) && ms_str_is(d.rel, list[i].rel),
                      "%s against %s: expected %s and %s, got %.*s and %.*s", list[i].npu,
                      list[i].bench, list[i].diff, list[i].rel, MS_STR_ARG(d.diff),
                      MS_STR_ARG(d.rel));
    }
    fixture_free(&f);
}

START_TEST(differences_follow_the_classes_of_both_values)
{
    size_t n = sizeof formulas / sizeof *formulas;
    check_all(CMP_CUR, formulas, n);
    check_all(CMP_STRICT, formulas, n);
}
END_TEST

START_TEST(the_first_version_subtracts_numbers_alone)
{
    check_all(CMP_OLD, old_formulas, sizeof old_formulas / sizeof *old_formulas);
}
END_TEST

static void put_word(char *out, size_t size, const char *word)
{
    snprintf(out, size, "\"Torch.a.0.forward\": {\"output\": [{\"type\":\"str\",\"value\":%s}]}",
             word);
}

START_TEST(texts_are_equal_devices_or_different)
{
    static const struct formula list[] = {
        {"\"npu:0\"", "\"cuda:0\"", "N/A", "N/A"}, {"\"npu:0\"", "\"npu:0\"", "0", "0"},
        {"\"npu:0\"", "\"sum\"", "Diff", "Diff"},  {"\"mean\"", "\"sum\"", "Diff", "Diff"},
        {"\"sum\"", "\"cpu\"", "Diff", "Diff"},    {"\"sum\"", "\"sum\"", "0", "0"},
    };
    struct fixture f;
    char t[200], b[200];
    fixture_init(&f);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        put_word(t, sizeof t, list[i].npu);
        put_word(b, sizeof b, list[i].bench);
        fixture_pair(&f, t, b);
        fixture_open(&f);
        const struct cmp_row *row = fixture_row(&f, ROW);
        ck_str_is(row->delta[PROBE_STAT_MAX].diff, list[i].diff);
        ck_str_is(row->delta[PROBE_STAT_MAX].rel, list[i].rel);
    }
    fixture_free(&f);
}
END_TEST

/* ---- whatever the values are ------------------------------------------------------- */

START_TEST(a_value_against_itself_is_no_difference)
{
    struct fixture f;
    fixture_init(&f);
    for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++) {
        struct cmp_delta d = delta_of(&f, formulas[i].npu, formulas[i].npu);
        ck_str_is(d.diff, "0");
        ck_str_is(d.rel, "0");
        ck_assert_int_eq(fixture_row(&f, ROW)->level, CMP_PASS);
    }
    fixture_free(&f);
}
END_TEST

static double number_in(struct ms_str s)
{
    char text[64];
    snprintf(text, sizeof text, "%.*s", MS_STR_ARG(s));
    return strtod(text, NULL);
}

START_TEST(swapping_the_sides_mirrors_differences)
{
    static const char *const values[] = {"3.0", "2.5", "-7.25", "1e-05", "123456789.125", "0.0"};
    struct fixture f;
    size_t n = sizeof values / sizeof *values;
    fixture_init(&f);
    for (size_t i = 0; i < n * n; i++) {
        const char *x = values[i / n], *y = values[i % n];
        double one = number_in(delta_of(&f, x, y).diff);
        double other = number_in(delta_of(&f, y, x).diff);
        ck_assert_msg(one == -other, "%s and %s", x, y);
    }
    fixture_free(&f);
}
END_TEST

START_TEST(swapping_the_sides_mirrors_who_is_alone)
{
    struct fixture f;
    const char *first =
        "\"Torch.a.0.forward\": {\"output\": [" TENSOR("1.0", "0.0", "0.0", "1.0") "]}";
    const char *second =
        "\"Torch.b.0.forward\": {\"output\": [" TENSOR("1.0", "0.0", "0.0", "1.0") "]}";
    fixture_init(&f);
    f.conf.matching = CMP_MATCH_EXACT;
    for (int swapped = 0; swapped < 2; swapped++) {
        fixture_pair(&f, swapped ? second : first, swapped ? first : second);
        fixture_open(&f);
        const struct cmp_row *a = fixture_row(&f, ROW);
        ck_assert_int_eq(a->level, CMP_UNMATCHED);
        ck_assert(a->t.present == !swapped);
        ck_assert(fixture_row(&f, "Torch.b.0.forward.output.0")->t.present == swapped);
    }
    fixture_free(&f);
}
END_TEST

/* Backward operators meet by the order in which they ran, also when numbers grow a digit. */
START_TEST(calls_are_counted_again_whatever_their_numbers)
{
    static const char *const calls[] = {"0", "7", "10", "999", "123456"};
    struct fixture f;
    char t[400];
    fixture_init(&f);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        snprintf(t, sizeof t, "\"Torch.a.%s.backward\": {\"output\": [%s]}", calls[i],
                 TENSOR("1.0", "0.0", "0.0", "1.0"));
        fixture_pair(
            &f, t,
            "\"Torch.a.33.backward\": {\"output\": [" TENSOR("1.0", "0.0", "0.0", "1.0") "]}");
        fixture_open(&f);
        snprintf(t, sizeof t, "Torch.a.%s.backward.output.0", calls[i]);
        ck_str_is(fixture_row(&f, t)->b.name, "Torch.a.33.backward.output.0");
    }
    fixture_free(&f);
}
END_TEST

/* Figures of tensors say in the first version why there are none. */
START_TEST(the_first_version_says_why_figures_are_missing)
{
    static const struct {
        enum cmp_state state;
        const char *shape, *message;
        double cosine;
    } list[] = {
        {CMP_STATE_OK, "[2]", "", 0},
        {CMP_STATE_OK, "[1]", "This is a 1-d tensor of length 1.", HUGE_VAL},
        {CMP_STATE_SCALAR, "[]",
         "This is type of 0-d tensor, can not calculate 'Cosine', 'EucDist', 'One Thousandth Err "
         "Ratio' and 'Five Thousandths Err Ratio'. ",
         0},
        {CMP_STATE_EMPTY, "[0]", "This is empty data, can not compare.", 0},
        {CMP_STATE_MASKS, "[2]", "The position of inf or nan in NPU and bench Tensor do not match.",
         0},
        {CMP_STATE_UNREADABLE, "[2]", "Dump file: ['n.pt', 'b.pt'] not found or read failed.", 0},
    };
    struct cmp_setup c = {.mode = PROBE_MODE_TENSOR, .conf.rules = cmp_rules_of(CMP_OLD)};
    struct cmp_view v;
    struct ms_err err = {0};
    ck_ok(cmp_view_init(&v, &err), err);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct cmp_row row = {.grad_same = true, .fig.state = list[i].state};
        row.fig.metric[CMP_COSINE] = list[i].cosine;
        row.t.data_name = MS_STR("n.pt");
        row.b.data_name = MS_STR("b.pt");
        struct cmp_row_verdict verdict;
        row.t.present = row.b.present = true;
        row.t.shape = ms_str_of(list[i].shape);
        row.t.dtype = row.b.dtype = MS_STR("torch.float32");
        ck_ok(cmp__judge_old(&c, &v, &row, &verdict, &err), err);
        ck_str_is(verdict.message, list[i].message);
    }
    cmp_view_free(&v);
}
END_TEST

TEST_MAIN("formulas", differences_follow_the_classes_of_both_values,
          the_first_version_subtracts_numbers_alone, texts_are_equal_devices_or_different,
          a_value_against_itself_is_no_difference, swapping_the_sides_mirrors_differences,
          swapping_the_sides_mirrors_who_is_alone, calls_are_counted_again_whatever_their_numbers,
          the_first_version_says_why_figures_are_missing)
