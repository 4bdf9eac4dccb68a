/* SPDX-License-Identifier: MIT
 *
 * measure_stat: the words for every two kinds of cells, by the table of the official tool, and the numbers
 * that msprobe 1.x subtracts.
 */
#include "compare/measure/measure_stat.h"
#include "tests/support/check.h"

#include <math.h>

enum { KINDS = 7 };

static const struct cmp_value values[KINDS] = {
    {CMP_VALUE_NUMBER, false, false, 2.5, {"2.5", 3}},
    {CMP_VALUE_NAN, false, false, NAN, {"nan", 3}},
    {CMP_VALUE_INF, false, false, INFINITY, {"inf", 3}},
    {CMP_VALUE_NINF, false, false, -INFINITY, {"-inf", 4}},
    {CMP_VALUE_DEVICE, false, false, NAN, {"npu:0", 5}},
    {CMP_VALUE_NA, false, false, NAN, {"N/A", 3}},
    {CMP_VALUE_TEXT, false, false, NAN, {"True", 4}}};

/* The same kinds with other text, where a kind has any. */
static const struct cmp_value others[KINDS] = {
    {CMP_VALUE_NUMBER, false, false, 0.5, {"0.5", 3}},
    {CMP_VALUE_NAN, false, false, NAN, {"nan", 3}},
    {CMP_VALUE_INF, false, false, INFINITY, {"inf", 3}},
    {CMP_VALUE_NINF, false, false, -INFINITY, {"-inf", 4}},
    {CMP_VALUE_DEVICE, false, false, NAN, {"npu:1", 5}},
    {CMP_VALUE_NA, false, false, NAN, {"N/A", 3}},
    {CMP_VALUE_TEXT, false, false, NAN, {"None", 4}}};

/* number, nan, inf, -inf, device, N/A, other; rows: the target. */
static const char *const words[KINDS][KINDS] = {
    {"2.0", "Nan", "-inf", "inf", "Diff", "N/A", "Diff"},
    {"Nan", "0", "Nan", "Nan", "Diff", "N/A", "Diff"},
    {"inf", "Nan", "0", "inf", "Diff", "N/A", "Diff"},
    {"-inf", "Nan", "-inf", "0", "Diff", "N/A", "Diff"},
    {"Diff", "Diff", "Diff", "Diff", "N/A", "N/A", "Diff"},
    {"N/A", "N/A", "N/A", "N/A", "N/A", "0", "N/A"},
    {"Diff", "Diff", "Diff", "Diff", "Diff", "N/A", "Diff"}};

/* msprobe 1.x subtracts infinities like numbers. */
static const char *const old_words[KINDS][KINDS] = {
    {"2.0", "Nan", "-inf", "inf", "N/A", "N/A", "N/A"},
    {"Nan", "Nan", "Nan", "Nan", "N/A", "N/A", "N/A"},
    {"inf", "Nan", "Nan", "inf", "N/A", "N/A", "N/A"},
    {"-inf", "Nan", "-inf", "Nan", "N/A", "N/A", "N/A"},
    {"N/A", "N/A", "N/A", "N/A", "N/A", "N/A", "N/A"},
    {"N/A", "N/A", "N/A", "N/A", "N/A", "N/A", "N/A"},
    {"N/A", "N/A", "N/A", "N/A", "N/A", "N/A", "N/A"}};

static struct cmp_view view;
static struct ms_err err;

static void check_words(bool old, unsigned n, unsigned b, const char *want)
{
    const struct cmp_rules rules = {.pandas_numbers = false};
    const struct cmp_setup set = {.conf = {.rules = &rules}};
    struct cmp_row row = {.pair = 0};
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        row.t.stat[i] = values[n];
        row.b.stat[i] = others[b];
    }
    if (old)
        ck_ok(cmp__measure_stats_old(&view, &row, &err), err);
    else
        ck_ok(cmp__measure_stats(&set, &view, &row, &err), err);
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        const struct cmp_delta *d = &row.delta[i];
        ck_assert_msg(ms_str_is(d->diff, want), "%u %u: %.*s, not %s", n, b, MS_STR_ARG(d->diff),
                      want);
        if (n == 0 && b == 0)
            ck_assert(ms_str_is(d->rel, "400.0%") && d->rel_value == 4 && !d->rel_inf);
        else if (!old)
            ck_assert(ms_str_is(d->rel, want) && d->rel_inf == ms_str_ends(d->rel, MS_STR("inf")));
    }
}

START_TEST(every_two_kinds_of_cells_have_a_word)
{
    ck_ok(cmp_view_init(&view, &err), err);
    for (unsigned n = 0; n < KINDS; n++) {
        for (unsigned b = 0; b < KINDS; b++) {
            check_words(false, n, b, words[n][b]);
            check_words(true, n, b, old_words[n][b]);
        }
    }
    cmp_view_free(&view);
}
END_TEST

START_TEST(a_golden_nought_gives_no_share)
{
    struct cmp_row row = {.pair = 0};
    const struct cmp_rules rules = {.pandas_numbers = false};
    const struct cmp_setup set = {.conf = {.rules = &rules}};
    ck_ok(cmp_view_init(&view, &err), err);
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        row.t.stat[i] = values[0];
        row.b.stat[i] = (struct cmp_value){CMP_VALUE_NUMBER, false, false, 0, {"0.0", 3}};
    }
    ck_ok(cmp__measure_stats(&set, &view, &row, &err), err);
    ck_assert(ms_str_is(row.delta[0].diff, "2.5") && ms_str_is(row.delta[0].rel, "inf") &&
              row.delta[0].rel_inf && isnan(row.delta[0].rel_value));
    ck_ok(cmp__measure_stats_old(&view, &row, &err), err);
    ck_assert(ms_str_is(row.delta[0].diff, "2.5") && ms_str_is(row.delta[0].rel, "N/A") &&
              !row.delta[0].rel_inf);
    cmp_view_free(&view);
}
END_TEST

START_TEST(a_value_is_a_number_an_infinity_or_none)
{
    for (unsigned i = 0; i < KINDS; i++) {
        const double v = cmp__value_number(&values[i]);
        ck_assert(i == 0   ? v == 2.5
                  : i == 2 ? isinf(v) && v > 0
                  : i == 3 ? isinf(v) && v < 0
                           : isnan(v));
    }
}
END_TEST

/* Numbers as pandas reads them differ from strtod's in the last digits alone, whatever their exponent. */
static void check_number_of(const struct cmp_setup *set, const char *mantissa, int exponent,
                            double want, double off)
{
    char text[48], got[48];
    struct cmp_row row = {.pair = 0};
    snprintf(text, sizeof text, "%se%+d", mantissa, exponent);
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        row.t.stat[i] = (struct cmp_value){CMP_VALUE_NUMBER, false, false, want, ms_str_of(text)};
        row.b.stat[i] = (struct cmp_value){CMP_VALUE_NUMBER, false, false, 0, {"0.0", 3}};
    }
    ck_ok(cmp__measure_stats(set, &view, &row, &err), err);
    snprintf(got, sizeof got, "%.*s", MS_STR_ARG(row.delta[0].diff));
    const double differs = fabs(strtod(got, NULL) - want);
    ck_assert_msg(isinf(want) ? isinf(strtod(got, NULL)) : differs <= fabs(want) * off,
                  "%s is read as %s", text, got);
}

static void check_number(const struct cmp_setup *set, const char *mantissa, int exponent)
{
    char text[48];
    snprintf(text, sizeof text, "%se%+d", mantissa, exponent);
    check_number_of(set, mantissa, exponent, strtod(text, NULL), 1e-13);
}

START_TEST(numbers_of_every_size_are_read_as_pandas_does)
{
    static const char *const mantissa[] = {"1",       "1.5",       "-2.25",
                                           "123.456", "0.0078125", "-9.87654321"};
    const struct cmp_rules rules = {.pandas_numbers = true};
    const struct cmp_setup set = {.conf = {.rules = &rules}};
    ck_ok(cmp_view_init(&view, &err), err);
    for (size_t i = 0; i < sizeof mantissa / sizeof *mantissa; i++) {
        for (int exponent = -300; exponent <= 300; exponent++)
            check_number(&set, mantissa[i], exponent);
    }
    for (unsigned k = 0; k < 1000; k++) { /* one multiplication: exact to the last bit */
        char digits[32];
        snprintf(digits, sizeof digits, "%llu", 7473118195586254ULL + k * 1000003);
        check_number_of(&set, digits, 1, strtod(digits, NULL) * 10, 0);
    }
    cmp_view_free(&view);
}
END_TEST

TEST_MAIN("measure_stat", numbers_of_every_size_are_read_as_pandas_does,
          every_two_kinds_of_cells_have_a_word, a_golden_nought_gives_no_share,
          a_value_is_a_number_an_infinity_or_none)
