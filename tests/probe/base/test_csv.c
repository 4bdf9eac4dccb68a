/* SPDX-License-Identifier: MIT */
#include "probe/csvread.h"

#include "probe/base/mem.h"
#include "tests/check.h"

#include <math.h>

/* Rows as "a|b/c|d". */
static const char *rows_of(const char *text, size_t n, struct ms_err *err)
{
    static char out[512];
    struct probe_csv r;
    bool more;
    size_t at = 0;
    out[0] = '\0';
    probe_csv_init(&r, text, n);
    while (probe_csv_next(&r, &more, err) == MS_OK && more) {
        for (size_t i = 0; i < r.fields.n; i++)
            at += (size_t)snprintf(out + at, sizeof out - at, "%s%.*s", i == 0 ? "" : "|",
                                   MS_STR_ARG(r.fields.p[i]));
        at += (size_t)snprintf(out + at, sizeof out - at, "/");
    }
    probe_csv_free(&r);
    return out;
}

START_TEST(fields_and_rows_are_found)
{
    static const struct {
        const char *text, *rows;
    } cases[] = {
        {"", ""},
        {"\n\r\n\r", ""},
        {"a", "a/"},
        {"a,b\nc,d\n", "a|b/c|d/"},
        {"a,b\r\nc,d\re,f", "a|b/c|d/e|f/"},
        {"a,,\n,", "a||/|/"},
        {"\n\na\n\n\nb\n", "a/b/"},
        {"\"a\",\"b,c\"\n", "a|b,c/"},
        {"\"a\nb\",c\n", "a\nb|c/"},
        {"\"\"\n", "/"},
        {"\"\",x", "|x/"},
        {"\"a\"\"b\",\"\"\"\",c", "a\"b|\"|c/"},
        {"\"a\"\"\",\"\"\"b\"", "a\"|\"b/"},
        {"a\"b,c", "a\"b|c/"},
        {" a , b ", " a | b /"},
        {"\xef\xbb\xbf"
         "a,b",
         "a|b/"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ms_err err = {0};
        const char *rows = rows_of(cases[i].text, strlen(cases[i].text), &err);
        ck_assert_msg(err.rc == MS_OK, "case %zu: %s", i, err.msg);
        ck_assert_str_eq(rows, cases[i].rows);
    }
}
END_TEST

START_TEST(what_is_no_csv_is_refused_with_its_line)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"a\n\"b", "line 2, byte 4: a quote is never closed"},
        {"a\r\nb\r\n\"c\nd\"\"", "line 3"},
        {"a\n\"b\"c", "line 2, byte 5: text behind a closing quote"},
        {"\"x\ny\"\n\"b\" ,", "line 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ms_err err = {0};
        rows_of(cases[i].text, strlen(cases[i].text), &err);
        ck_assert_int_eq(ms_err_wrap(&err, "f.csv"), MS_E_FORMAT);
        ck_says(err, cases[i].says);
    }
}
END_TEST

START_TEST(a_row_has_a_largest_number_of_fields)
{
    char text[PROBE_CSV_COLUMNS + 1];
    struct ms_err err = {0};
    struct probe_csv r;
    bool more;
    memset(text, ',', sizeof text);
    probe_csv_init(&r, text, PROBE_CSV_COLUMNS - 1);
    ck_ok(probe_csv_next(&r, &more, &err), err);
    ck_assert_uint_eq(r.fields.n, PROBE_CSV_COLUMNS);
    probe_csv_free(&r);
    probe_csv_init(&r, text, PROBE_CSV_COLUMNS);
    ck_assert_int_eq(probe_csv_next(&r, &more, &err), MS_E_LIMIT);
    probe_csv_free(&r);
}
END_TEST

START_TEST(many_rebuilt_fields_stay_where_they_were_put)
{
    /* The scratch buffer moves while it grows. */
    struct ms_buf text = {.max = 1 << 20};
    struct ms_err err = {0};
    struct probe_csv r;
    bool more;
    for (int i = 0; i < 900; i++)
        ms_buf_printf(&text, "%s\"%d\"\"%d\"", i == 0 ? "" : ",", i, i);
    probe_csv_init(&r, text.p, text.n);
    ck_ok(probe_csv_next(&r, &more, &err), err);
    for (int i = 0; i < 900; i++) {
        char wanted[32];
        snprintf(wanted, sizeof wanted, "%d\"%d", i, i);
        ck_assert_msg(ms_str_is(r.fields.p[i], wanted), "%.*s", MS_STR_ARG(r.fields.p[i]));
    }
    probe_csv_free(&r);
    ms_buf_free(&text);
}
END_TEST

START_TEST(without_memory_it_fails)
{
    static const char text[] = "\"a\"\"b\",c";
    struct ms_err err = {0};
    for (uint64_t n = 1; n <= 2; n++) {
        struct probe_csv r;
        bool more;
        ms_err_clear(&err);
        probe_csv_init(&r, text, sizeof text - 1);
        ms_mem_fail_at(n);
        ck_assert_int_eq(probe_csv_next(&r, &more, &err), MS_E_NOMEM);
        ms_mem_fail_at(0);
        probe_csv_free(&r);
    }
    ck_assert_uint_eq(ms_mem_live(), 0);
}
END_TEST

START_TEST(numbers_are_read_as_python_does)
{
    static const struct {
        const char *text;
        bool good;
        double v;
    } cases[] = {
        {"1.5", true, 1.5},        {"-2", true, -2},          {" 3e2 ", true, 300},
        {"+4", true, 4},           {"inf", true, INFINITY},   {"-Infinity", true, -INFINITY},
        {"1e999", true, INFINITY}, {"-INF", true, -INFINITY}, {"0.1", true, 0.1},
        {"x", false, 0},           {"1 2", false, 0},         {"--1", false, 0},
        {"-", false, 0},           {"+-1", false, 0},         {"1,5", false, 0},
    };
    static const char *const missing[] = {"", " ", "nan", "NaN", "NA", "null", "None", "-nan"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double v;
        ck_assert_msg(probe_csv_number(ms_str_of(cases[i].text), &v) == cases[i].good, "%s",
                      cases[i].text);
        ck_assert_msg(!cases[i].good || v == cases[i].v, "%s: %g", cases[i].text, v);
    }
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        double v;
        ck_assert(probe_csv_number(ms_str_of(missing[i]), &v) && isnan(v));
    }
}
END_TEST

TEST_MAIN("csvread", fields_and_rows_are_found, what_is_no_csv_is_refused_with_its_line,
          a_row_has_a_largest_number_of_fields, many_rebuilt_fields_stay_where_they_were_put,
          without_memory_it_fails, numbers_are_read_as_python_does)
