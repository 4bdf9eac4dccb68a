/* SPDX-License-Identifier: MIT
 *
 * The values of a request: decoded, typed, bounded.
 */
#include "tests/support/check.h"

#include "web/api/request_query.h"

static struct ms_err err;
static struct web_query query;

static void set_up(void)
{
    ms_err_clear(&err);
}

static void tear_down(void)
{
    web_query_free(&query);
}

static void parse(const char *text)
{
    ck_ok(web_query_parse(&query, ms_str_of(text), &err), err);
}

static void refused(const char *text, enum ms_rc rc, const char *words)
{
    ck_assert_int_eq(web_query_parse(&query, ms_str_of(text), &err), rc);
    ck_says(err, words);
    ms_err_clear(&err);
    ck_assert_uint_eq(query.n, 0); /* nothing is left of it */
}

#define ck_text(key, text) ck_assert(ms_str_is(web_query_text(&query, key), text))

START_TEST(values_are_decoded)
{
    parse("node=a%2Fb%20c&q=%3Cscript%3E&empty=&flag");
    ck_text("node", "a/b c");
    ck_text("q", "<script>");
    ck_text("empty", "");
    ck_assert_ptr_nonnull(web_query_text(&query, "flag").p);
    ck_assert_ptr_null(web_query_text(&query, "absent").p);
}
END_TEST

START_TEST(the_first_of_equal_keys_counts)
{
    parse("a=1&a=2");
    ck_text("a", "1");
}
END_TEST

START_TEST(malformed_escapes_and_zero_bytes_are_refused)
{
    refused("a=%", MS_E_ARG, "malformed");
    refused("a=%4", MS_E_ARG, "malformed");
    refused("a=%GG", MS_E_ARG, "malformed");
    refused("a=%00", MS_E_ARG, "malformed");
    refused("%zz=1", MS_E_ARG, "malformed");
}
END_TEST

START_TEST(too_many_values_and_too_long_a_request_are_refused)
{
    static char many[WEB_QUERY_PAIRS * 4 + 8], longer[WEB_QUERY_MAX + 2];
    for (int i = 0; i <= WEB_QUERY_PAIRS; i++)
        strcat(many, "a=1&");
    refused(many, MS_E_LIMIT, "values");
    memset(longer, 'x', sizeof longer - 1);
    refused(longer, MS_E_LIMIT, "longer");
    longer[WEB_QUERY_MAX] = '\0';
    parse(longer);
}
END_TEST

static void refused_number(const char *text)
{
    int64_t v = 5;
    parse(text);
    ck_assert_int_eq(web_query_int(&query, "n", -3, 10, &v, &err), MS_E_ARG);
    ck_says(err, "n must be a whole number from -3 to 10");
    ck_assert_int_eq(v, 5);
    ms_err_clear(&err);
    web_query_free(&query);
}

START_TEST(numbers_lie_within_their_bounds)
{
    int64_t v = 5;
    parse("n=-3&m=10");
    ck_ok(web_query_int(&query, "n", -3, 10, &v, &err), err);
    ck_assert_int_eq(v, -3);
    ck_ok(web_query_int(&query, "absent", -3, 10, &v, &err), err);
    ck_assert_int_eq(v, -3);
    web_query_free(&query);
    refused_number("n=11");
    refused_number("n=-4");
    refused_number("n=1e3");
    refused_number("n=");
    refused_number("n=0x1");
    refused_number("n=99999999999999999999999");
    refused_number("n=1;drop table steps");
}
END_TEST

START_TEST(a_flag_is_one_or_zero)
{
    bool v = true;
    parse("a=1&b=0&c=yes");
    ck_ok(web_query_flag(&query, "a", &v, &err), err);
    ck_assert(v);
    ck_ok(web_query_flag(&query, "b", &v, &err), err);
    ck_assert(!v);
    ck_ok(web_query_flag(&query, "absent", &v, &err), err);
    ck_assert(!v);
    ck_assert_int_eq(web_query_flag(&query, "c", &v, &err), MS_E_ARG);
}
END_TEST

START_TEST(a_list_is_bounded_in_length_and_values)
{
    uint32_t v[3];
    size_t n;
    parse("a=1,2,3&b=1,2,3,4&c=1,,2&d=9&e=");
    ck_ok(web_query_list(&query, "a", 8, 3, v, &n, &err), err);
    ck_assert_uint_eq(n, 3);
    ck_assert_uint_eq(v[2], 3);
    ck_ok(web_query_list(&query, "e", 8, 3, v, &n, &err), err);
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(web_query_list(&query, "b", 8, 3, v, &n, &err), MS_E_LIMIT);
    ms_err_clear(&err);
    ck_assert_int_eq(web_query_list(&query, "c", 8, 3, v, &n, &err), MS_E_ARG);
    ms_err_clear(&err);
    ck_assert_int_eq(web_query_list(&query, "d", 8, 3, v, &n, &err), MS_E_ARG);
}
END_TEST

START_TEST(what_stands_behind_the_last_value_is_none)
{
    query.pair[1].key = MS_STR("stale");
    query.pair[1].value = MS_STR("7");
    parse("a=1");
    ck_assert_ptr_null(web_query_text(&query, "stale").p);
}
END_TEST

TEST_MAIN_AROUND(set_up, tear_down, "web_query", what_stands_behind_the_last_value_is_none,
                 values_are_decoded, the_first_of_equal_keys_counts,
                 malformed_escapes_and_zero_bytes_are_refused,
                 too_many_values_and_too_long_a_request_are_refused,
                 numbers_lie_within_their_bounds, a_flag_is_one_or_zero,
                 a_list_is_bounded_in_length_and_values)
