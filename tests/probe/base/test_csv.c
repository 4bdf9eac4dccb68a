/* SPDX-License-Identifier: MIT */
#include "probe/base/csv.h"

#include "probe/base/mem.h"
#include "tests/support/check.h"

#include <math.h>

/* Rows as "a|b/c|d". */
static const char *rows_of(const char *text, size_t n, struct ms_err *err)
{
    static char out[512];
    struct ms_csv r;
    bool more;
    size_t at = 0;
    out[0] = '\0';
    ms_csv_init(&r, text, n);
    while (ms_csv_next(&r, &more, err) == MS_OK && more) {
        for (size_t i = 0; i < r.fields.n; i++)
            at += (size_t)snprintf(out + at, sizeof out - at, "%s%.*s", i == 0 ? "" : "|",
                                   MS_STR_ARG(r.fields.p[i]));
        at += (size_t)snprintf(out + at, sizeof out - at, "/");
    }
    ms_csv_free(&r);
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
    char text[MS_CSV_COLUMNS + 1];
    struct ms_err err = {0};
    struct ms_csv r;
    bool more;
    memset(text, ',', sizeof text);
    ms_csv_init(&r, text, MS_CSV_COLUMNS - 1);
    ck_ok(ms_csv_next(&r, &more, &err), err);
    ck_assert_uint_eq(r.fields.n, MS_CSV_COLUMNS);
    ms_csv_free(&r);
    ms_csv_init(&r, text, MS_CSV_COLUMNS);
    ck_assert_int_eq(ms_csv_next(&r, &more, &err), MS_E_LIMIT);
    ms_csv_free(&r);
}
END_TEST

START_TEST(many_rebuilt_fields_stay_where_they_were_put)
{
    /* The scratch buffer moves while it grows. */
    struct ms_buf text = {.max = 1 << 20};
    struct ms_err err = {0};
    struct ms_csv r;
    bool more;
    for (int i = 0; i < 900; i++)
        ms_buf_printf(&text, "%s\"%d\"\"%d\"", i == 0 ? "" : ",", i, i);
    ms_csv_init(&r, text.p, text.n);
    ck_ok(ms_csv_next(&r, &more, &err), err);
    for (int i = 0; i < 900; i++) {
        char wanted[32];
        snprintf(wanted, sizeof wanted, "%d\"%d", i, i);
        ck_assert_msg(ms_str_is(r.fields.p[i], wanted), "%.*s", MS_STR_ARG(r.fields.p[i]));
    }
    ms_csv_free(&r);
    ms_buf_free(&text);
}
END_TEST

START_TEST(without_memory_it_fails)
{
    static const char text[] = "\"a\"\"b\",c";
    struct ms_err err = {0};
    for (uint64_t n = 1; n <= 2; n++) {
        struct ms_csv r;
        bool more;
        ms_err_clear(&err);
        ms_csv_init(&r, text, sizeof text - 1);
        ms_mem_fail_at(n);
        ck_assert_int_eq(ms_csv_next(&r, &more, &err), MS_E_NOMEM);
        ms_mem_fail_at(0);
        ms_csv_free(&r);
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
        ck_assert_msg(ms_csv_number(ms_str_of(cases[i].text), &v) == cases[i].good, "%s",
                      cases[i].text);
        ck_assert_msg(!cases[i].good || v == cases[i].v, "%s: %g", cases[i].text, v);
    }
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        double v;
        ck_assert(ms_csv_number(ms_str_of(missing[i]), &v) && isnan(v));
    }
}
END_TEST

START_TEST(formulas_are_told_from_numbers)
{
    static const char *const formulas[] = {"=a",
                                           "+a",
                                           "-a",
                                           "@a",
                                           "%a",
                                           "-",
                                           "=1",
                                           "a;=b",
                                           "1;-b",
                                           "\xef\xbc\x9d"
                                           "a",
                                           "a;b;\xef\xbc\x8b",
                                           "\t1",
                                           "\rcmd"};
    static const char *const others[] = {"", "a", "-5", "-0.25", "1=2", "-Infinity"};
    for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++)
        ck_assert_msg(ms_csv_is_formula(ms_str_of(formulas[i])), "%s", formulas[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!ms_csv_is_formula(ms_str_of(others[i])), "%s", others[i]);
}
END_TEST

START_TEST(a_field_is_quoted_and_guarded_where_it_must_be)
{
    static const struct {
        const char *text, *own, *foreign;
    } fields[] = {
        {"", "", ""},
        {"relu.0.forward", "relu.0.forward", "relu.0.forward"},
        {"=1+1", "=1+1", "\"'=1+1\""},
        {"=a\"b", "\"=a\"\"b\"", "\"'=a\"\"b\""},
        {"a;=b;@c", "a;=b;@c", "\"a;'=b;'@c\""},
        {"-0.5;0.25", "-0.5;0.25", "-0.5;0.25"},
        {"-2", "-2", "-2"},
        {"\tx", "\tx", "\"'\tx\""},
        {"a,b", "\"a,b\"", "\"a,b\""},
        {"two\nlines", "\"two\nlines\"", "\"two\nlines\""},
    };
    char dir[64], path[96];
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/field.csv", dir);
    for (size_t i = 0; i < 2 * (sizeof fields / sizeof *fields); i++) {
        struct ms_buf b = {.max = 100};
        struct ms_err err = {0};
        struct ms_out *o;
        struct ms_str s = ms_str_of(fields[i / 2].text);
        enum ms_csv_guard guard = i % 2 == 0 ? MS_CSV_OWN : MS_CSV_FOREIGN;
        const char *want = i % 2 == 0 ? fields[i / 2].own : fields[i / 2].foreign;
        ms_csv_put(&b, s, guard);
        ck_assert_str_eq(ms_buf_z(&b), want);
        ms_buf_free(&b);
        ck_ok(ms_out_create(&o, path, &err), err);
        ms_csv_write(o, s, guard);
        ck_ok(ms_out_commit(o, &err), err);
        struct ms_file f;
        ck_ok(ms_file_map(&f, path, 100, &err), err);
        ck_assert(ms_str_is((struct ms_str){f.p, (uint32_t)f.n}, want));
        ms_file_unmap(&f);
    }
}
END_TEST

TEST_MAIN("csv", formulas_are_told_from_numbers, a_field_is_quoted_and_guarded_where_it_must_be,
          fields_and_rows_are_found, what_is_no_csv_is_refused_with_its_line,
          a_row_has_a_largest_number_of_fields, many_rebuilt_fields_stay_where_they_were_put,
          without_memory_it_fails, numbers_are_read_as_python_does)
