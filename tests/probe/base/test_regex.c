/* SPDX-License-Identifier: MIT
 *
 * regex: which expressions are compiled, which are refused and why, and that those at the limits are
 * compiled by the C library.
 */
#include "tests/support/check.h"

#include "probe/base/regex.h"
#include "probe/base/str.h"

static struct ms_err err;

static enum ms_rc compile(const char *text)
{
    regex_t r;
    ms_err_clear(&err);
    const enum ms_rc rc = ms_regex_compile(&r, text, 0, &err);
    if (rc == MS_OK)
        regfree(&r);
    return rc;
}

/* Around the text as many brackets. */
static const char *nested(unsigned n, const char *text)
{
    static char z[512];
    ck_assert_uint_lt(2 * n + strlen(text), sizeof z);
    memset(z, '(', n);
    strcpy(z + n, text);
    memset(z + strlen(z), ')', n);
    z[2 * n + strlen(text)] = '\0';
    return z;
}

START_TEST(usual_expressions_are_compiled)
{
    static const char *const usual[] = {"",
                                        "rank[-_]?([0-9]+)",
                                        "^.*/([0-9]{1,4})[.]json$",
                                        "a|b|(c|d)*",
                                        "[(((((((((]",
                                        "[]{9999}{9999}]{2}",
                                        "[^]{9999}{9999}]",
                                        "[[:alpha:]{9999}{9999}]",
                                        "[[.].]{9999}{9999}]",
                                        "\\(\\(\\{9999\\}",
                                        "\\\\1",
                                        "[\\1]",
                                        "a{2,}b{,3}",
                                        "(a{30}){31}",
                                        "a{0}{0}{0}"};
    memset(&err, 0, sizeof err);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        ck_ok(compile(usual[i]), err);
}
END_TEST

START_TEST(the_right_text_is_matched)
{
    regex_t r;
    regmatch_t at[2];
    memset(&err, 0, sizeof err);
    ck_ok(ms_regex_compile(&r, "rank([0-9]+)", REG_ICASE, &err), err);
    ck_assert_int_eq(regexec(&r, "a/RANK17.json", 2, at, 0), 0);
    ck_assert_int_eq(at[1].rm_so, 6);
    ck_assert_int_eq(at[1].rm_eo, 8);
    regfree(&r);
}
END_TEST

START_TEST(what_is_no_expression_says_why)
{
    static const char *const bad[] = {"(",      "a)(",  "[a",         "a{2",
                                      "a{2,1}", "a{x}", "[[:none:]]", "\\"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_msg(compile(bad[i]) == MS_E_ARG, "%s", bad[i]);
        ck_assert_msg(strstr(err.msg, "is no regular expression: ") != NULL, "%s", err.msg);
    }
}
END_TEST

START_TEST(a_reference_back_is_refused)
{
    static const char *const backs[] = {"(a*)*\\1", "(a)\\9", "[x](a)b\\1c", "[]](a)\\1",
                                        "[^]](a)\\1"};
    for (size_t i = 0; i < sizeof backs / sizeof *backs; i++) {
        ck_assert_msg(compile(backs[i]) == MS_E_ARG, "%s", backs[i]);
        ck_says(err, "refers back");
    }
    ck_ok(compile("(a)\\.\\0"), err);
}
END_TEST

START_TEST(nesting_has_a_limit)
{
    ck_ok(compile(nested(64, "a")), err);
    ck_assert_int_eq(compile(nested(65, "a")), MS_E_ARG);
    ck_says(err, "nested");
    ck_ok(compile("(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)"
                  "(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)"
                  "(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)"),
          err);
}
END_TEST

START_TEST(repetitions_have_a_limit)
{
    static const char *const many[] = {"((a{1,255}){1,255}){1,255}",
                                       "a{255}{255}{255}",
                                       "(a{30}){40}",
                                       "(ab){501}",
                                       "a{500}b{501}",
                                       "(a{500}|b{501})c",
                                       "[a-z]{101}{10}",
                                       "\\.{1001}",
                                       "a{1,1001}",
                                       "a{1001,}",
                                       "a{,1001}",
                                       "(a{20}){,60}",
                                       "a{99999999999999999999}"};
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        ck_assert_msg(compile(many[i]) == MS_E_ARG, "%s", many[i]);
        ck_says(err, "written out");
    }
    ck_ok(compile("a{500}b{500}"), err);
}
END_TEST

TEST_MAIN("regex", usual_expressions_are_compiled, the_right_text_is_matched,
          what_is_no_expression_says_why, a_reference_back_is_refused, nesting_has_a_limit,
          repetitions_have_a_limit)
