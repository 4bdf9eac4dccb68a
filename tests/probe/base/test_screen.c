/* SPDX-License-Identifier: MIT */
#include "probe/base/screen.h"
#include "tests/support/check.h"

static const char *fitted(const char *text, unsigned columns, unsigned rows)
{
    static char kept[4096];
    struct ms_buf out = {.max = sizeof kept - 1};
    ms_screen_fit(ms_str_of(text), (struct ms_screen_size){columns, rows}, &out);
    ck_assert_int_eq(out.bad, MS_OK);
    snprintf(kept, sizeof kept, "%.*s", (int)out.n, out.p);
    ms_buf_free(&out);
    return kept;
}

START_TEST(what_fits_stays_as_it_is)
{
    const char *text = "suspect 1  Tensor.pow.0.forward\n           one word more\n\n1,995 rows\n";
    ck_assert_str_eq(fitted(text, 60, 24), text);
    ck_assert_str_eq(fitted("", 60, 24), "");
    ck_assert_str_eq(fitted("no end", 60, 24), "no end\n");
}
END_TEST

START_TEST(prose_goes_on_below_its_beginning)
{
    ck_assert_str_eq(
        fitted("           exists in the target only, without effect on values\n", 40, 24),
        "           exists in the target only,\n"
        "           without effect on values\n");
    ck_assert_str_eq(fitted("suspect 1  Module.layers.0.attention and its forward pass\n", 40, 24),
                     "suspect 1  Module.layers.0.attention and\n"
                     "           its forward pass\n");
    ck_assert_str_eq(fitted("/a/path/without/a/space/that/is/much/longer/than/a/line\n", 40, 24),
                     "/a/path/without/a/space/that/is/much/lon\nger/than/a/line\n");
}
END_TEST

START_TEST(rows_of_a_table_are_cut_and_that_is_said)
{
    ck_assert_str_eq(fitted("  rank   steps     step     computing     waiting\n"
                            "     0       5   379 ms        65 ms        12 ms\n",
                            40, 24),
                     "  rank   steps     step     computing  \xe2\x80\xa6\n"
                     "     0       5   379 ms        65 ms   \xe2\x80\xa6\n"
                     "rows are cut at the width of the\nterminal; a file gets them whole\n");
}
END_TEST

/* Characters of several bytes take one column and are not torn. */
START_TEST(characters_stay_whole)
{
    const char *word = "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9";
    char text[256], wanted[256];
    snprintf(text, sizeof text, "%s%s%s%s%s\n", word, word, word, word, word);
    ck_assert_str_eq(fitted(text, 40, 24), text);
    snprintf(text, sizeof text, "%s%s%s%s%s%s\n", word, word, word, word, word, word);
    snprintf(wanted, sizeof wanted, "%s%s%s%s%s\n%s\n", word, word, word, word, word, word);
    ck_assert_str_eq(fitted(text, 40, 24), wanted);
}
END_TEST

START_TEST(an_answer_that_scrolls_away_comes_again)
{
    ck_assert_str_eq(fitted("suspect 1\n  why\n\nrow 1\nrow 2\nrow 3\n", 40, 5),
                     "suspect 1\n  why\n\nrow 1\nrow 2\nrow 3\n\nsuspect 1\n  why\nrow 1\nrow 2\n");
    ck_assert_str_eq(fitted("suspect 1\n\nrow 1\nrow 2\nrow 3\n", 40, 5),
                     "suspect 1\n\nrow 1\nrow 2\nrow 3\n");
}
END_TEST

START_TEST(variables_tell_the_size)
{
    ck_assert_int_eq(setenv("COLUMNS", "132", 1), 0);
    ck_assert_int_eq(setenv("LINES", "nonsense", 1), 0);
    struct ms_screen_size s = ms_screen_size(-1);
    ck_assert_uint_eq(s.columns, 132);
    ck_assert_uint_eq(s.rows, 24);
    ck_assert_int_eq(setenv("COLUMNS", "3", 1), 0);
    ck_assert_uint_eq(ms_screen_size(-1).columns, 40);
    unsetenv("COLUMNS");
    unsetenv("LINES");
}
END_TEST

TEST_MAIN("screen", what_fits_stays_as_it_is, prose_goes_on_below_its_beginning,
          rows_of_a_table_are_cut_and_that_is_said, characters_stay_whole,
          an_answer_that_scrolls_away_comes_again, variables_tell_the_size)
