/* SPDX-License-Identifier: MIT
 *
 * jread: tokens, values, and where a wrong text is wrong.
 */
#include "tests/support/jread_spell.h"

#include "probe/base/mem.h"
#include "probe/base/scan.h"

static const struct {
    const char *text, *tokens;
} good[] = {
    {"{}", "{}"},
    {"[]", "[]"},
    {" \t\r\n[ ] \n", "[]"},
    {"null", "0"},
    {"true", "t"},
    {"[true,false,null]", "[tf0]"},
    {"0", "n<0>"},
    {"-0", "n<-0>"},
    {"[0.5,-1e5,1E+5,12.25e-10,123456789012345678901234567890]",
     "[n<0.5>n<-1e5>n<1E+5>n<12.25e-10>n<123456789012345678901234567890>]"},
    {"[NaN,Infinity,-Infinity]", "[n<NaN>n<Infinity>n<-Infinity>]"},
    {"{\"a\":1,\"b\":[{\"c\":{}}]}", "{k<a>n<1>k<b>[{k<c>{}}]}"},
    {"{\n \"Max\": 1.5,\n \"shape\": [\n  2,\n  3\n ]\n}", "{k<Max>n<1.5>k<shape>[n<2>n<3>]}"},
    {"\"\"", "s<>"},
    {"\"a longer text of more than sixteen bytes\"", "s<a longer text of more than sixteen bytes>"},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "s<\"\\/\b\f\n\r\t>"},
    {"\"\\u0041\\u00e9\\u20ac\\ud83d\\uDE00\"", "s<A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80>"},
    {"\"\\ud83d\"", "s<\xED\xA0\xBD>"},
    {"\"\\ude00\\ud83d\"", "s<\xED\xB8\x80\xED\xA0\xBD>"},
    {"\"\\ud83d\\ud83d\\ude00\"", "s<\xED\xA0\xBD\xF0\x9F\x98\x80>"},
    {"\"\\ud83dx\\n\"", "s<\xED\xA0\xBDx\n>"},
    {"\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\x7F\"", "s<\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\x7F>"},
    {"{\"\\u006bey\" \n: \"v\" , \"\" :null}", "{k<key>s<v>k<>0}"},
    {"[[[[]],[]],{}]", "[[[[]][]]{}]"},
};

START_TEST(well_formed_texts_give_their_tokens)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        reads_as(good[i].text, strlen(good[i].text), 0, good[i].tokens);
}
END_TEST

START_TEST(tolerance_changes_nothing_for_a_whole_text)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        reads_as(good[i].text, strlen(good[i].text), MS_JREAD_TOLERANT, good[i].tokens);
}
END_TEST

static const struct {
    const char *text;
    uint32_t line;
    int64_t off;
    const char *words;
} bad[] = {
    {"", 1, 0, "empty file"},
    {" \n ", 2, 3, "empty file"},
    {"{", 1, 1, "ends inside an object"},
    {"[", 1, 1, "ends inside an array"},
    {"{\"a\":", 1, 5, "ends where a value was expected"},
    {"{\"a\"", 1, 1, "this key has no value"},
    {"{\"a", 1, 1, "no closing quote"},
    {"[1,", 1, 3, "ends inside an array"},
    {"[1", 1, 2, "ends inside an array"},
    {"[-", 1, 1, "ends inside this number"},
    {"[1.", 1, 1, "ends inside this number"},
    {"[1e+", 1, 1, "ends inside this number"},
    {"[tru", 1, 1, "ends inside this word"},
    {"[-Inf", 1, 1, "ends inside this word"},
    {"[1,]", 1, 3, "expected a value"},
    {"[,1]", 1, 1, "expected a value"},
    {"{\"a\":1,}", 1, 7, "expected a key in quotes after ','"},
    {"{a:1}", 1, 1, "expected a key in quotes or '}'"},
    {"{\"a\" 1}", 1, 5, "expected ':' after a key"},
    {"{\"a\":}", 1, 5, "expected a value"},
    {"{\"a\":1 \"b\":2}", 1, 7, "expected ',' or '}' after a value"},
    {"[\n1\n2]", 3, 4, "expected ',' or ']' after a value"},
    {"[1}", 1, 2, "expected ',' or ']' after a value"},
    {"{\"a\":1]", 1, 6, "expected ',' or '}' after a value"},
    {"{} x", 1, 3, "text after the end"},
    {"1 2", 1, 2, "text after the end"},
    {"[]]", 1, 2, "text after the end"},
    {"01", 1, 0, "may not begin with 0"},
    {"[-012]", 1, 1, "may not begin with 0"},
    {"+1", 1, 0, "expected a value"},
    {".5", 1, 0, "expected a value"},
    {"[5.]", 1, 3, "expected a digit after '.'"},
    {"[1ex]", 1, 3, "expected a digit in the exponent"},
    {"[-x]", 1, 2, "expected a digit after '-'"},
    {"[-NaN]", 1, 2, "expected a digit after '-'"},
    {"[1.5.2]", 1, 4, "expected ',' or ']'"},
    {"nul", 1, 0, "ends inside this word"},
    {"nulL", 1, 0, "expected a value"},
    {"truex", 1, 4, "text after the end"},
    {"nan", 1, 0, "expected a value"},
    {"'a'", 1, 0, "expected a value"},
    {"\"a\nb\"", 1, 2, "control character"},
    {"\"a\tb\"", 1, 2, "control character"},
    {"\"\\x\"", 1, 1, "unknown escape"},
    {"\"\\u12g4\"", 1, 1, "four hexadecimal digits"},
    {"\"\\", 1, 0, "no closing quote"},
    {"\"\\u00", 1, 0, "no closing quote"},
    {"\"\\u0041", 1, 0, "no closing quote"},
    {"\"\xFF\"", 1, 1, "invalid UTF-8"},
    {"\"\xC0\x80\"", 1, 1, "invalid UTF-8"},
    {"\"\xED\xA0\x80\"", 1, 1, "invalid UTF-8"},
    {"\"\xF4\x90\x80\x80\"", 1, 1, "invalid UTF-8"},
    {"\"\xE2\x82\"", 1, 1, "invalid UTF-8"},
    {"\"\xE2\x82", 1, 0, "no closing quote"},
    {"\xEF\xBB\xBF{}", 1, 0, "a byte order mark stands before the JSON; 'tail -c +4"},
    {"\xEF\xBB", 1, 0, "expected a value"},
    {"[\xEF\xBB\xBF{}]", 1, 1, "expected a value"},
    {"[1, /* no */ 2]", 1, 4, "expected a value"},
};

START_TEST(malformed_texts_fail_with_their_place)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        fails_at(bad[i].text, strlen(bad[i].text), 0, bad[i].line, bad[i].off, bad[i].words);
}
END_TEST

START_TEST(a_nul_byte_is_no_whitespace_and_no_escape)
{
    fails_at("[1\0]", 4, 0, 1, 2, "expected ','");
    fails_at("\"a\0b\"", 5, 0, 1, 2, "control character");
    fails_at("\"\\\0\"", 4, 0, 1, 1, "unknown escape");
    fails_at("\0", 1, MS_JREAD_TOLERANT, 1, 0, "expected a value");
}
END_TEST

START_TEST(no_pointer_is_an_empty_text)
{
    struct ms_jread r;
    struct ms_err e = {0};
    ms_jread_init(&r, NULL, 0, 0);
    ck_assert_int_eq(ms_jread_next(&r), MS_J_ERR);
    ck_assert_int_eq(ms_jread_fail(&r, &e), MS_E_FORMAT);
    ck_assert_str_eq(e.msg, "empty file");
    ck_assert_int_eq(e.off, 0);
}
END_TEST

START_TEST(nesting_ends_at_its_limit)
{
    char text[2 * MS_JREAD_DEPTH + 2];
    memset(text, '[', MS_JREAD_DEPTH);
    memset(text + MS_JREAD_DEPTH, ']', MS_JREAD_DEPTH);
    struct ms_jread r;
    struct ms_buf out = {.max = 1 << 20};
    ms_jread_init(&r, text, 2 * MS_JREAD_DEPTH, 0);
    ck_assert_int_eq(spell(&r, &out), MS_J_END);
    ck_assert_uint_eq(out.n, 2 * MS_JREAD_DEPTH);

    memset(text, '[', MS_JREAD_DEPTH + 1);
    ms_jread_init(&r, text, sizeof text, MS_JREAD_TOLERANT);
    ck_assert_int_eq(spell(&r, &out), MS_J_ERR);
    struct ms_err e = {0};
    ck_assert_int_eq(ms_jread_fail(&r, &e), MS_E_LIMIT);
    ck_assert_int_eq(e.off, MS_JREAD_DEPTH);
    ms_buf_free(&out);
}
END_TEST

/* 64 levels make one word of the level bits: mix both kinds across its edges. */
START_TEST(levels_remember_what_they_are)
{
    struct ms_buf text = {.max = 1 << 16};
    struct ms_buf expected = {.max = 1 << 16};
    for (int i = 0; i < 200; i++) {
        ms_buf_puts(&text, i % 3 != 0 ? "[" : "{\"k\":");
        ms_buf_puts(&expected, i % 3 != 0 ? "[" : "{k<k>");
    }
    ms_buf_puts(&text, "1");
    ms_buf_puts(&expected, "n<1>");
    for (int i = 200; i-- > 0;) {
        ms_buf_puts(&text, i % 3 != 0 ? ",2]" : ",\"e\":2}");
        ms_buf_puts(&expected, i % 3 != 0 ? "n<2>]" : "k<e>n<2>}");
    }
    reads_as(text.p, text.n, 0, ms_buf_z(&expected));
    ms_buf_free(&text);
    ms_buf_free(&expected);
}
END_TEST

START_TEST(scans_in_steps_and_by_bytes_agree)
{
    static const char mix[] = "      \n\t\r\"\\abcxyz0123456789\x1F\x7F\x80\xFF\xC3\xA9,;{}[]";
    char text[64];
    uint32_t state = 1;
    for (int round = 0; round < 20000; round++) {
        /* Mostly long runs of one kind, broken at any place. */
        char fill = round % 3 == 0 ? ' ' : round % 3 == 1 ? 'a' : '5';
        for (size_t i = 0; i < sizeof text; i++) {
            state = state * 1664525 + 1013904223;
            bool breaks = (state >> 16) % 16 == 0;
            text[i] = breaks ? mix[(state >> 20) % (sizeof mix - 1)] : fill;
        }
        size_t n = (state >> 8) % (sizeof text + 1);
        size_t plain = 0;
        size_t space = 0;
        size_t digits = 0;
        size_t bare = 0;
        size_t flat = 0;
        while (bare < n && ms_is_bare(text[bare]))
            bare++;
        while (flat < n && ms_is_flat(text[flat]))
            flat++;
        while (plain < n && ms_is_plain(text[plain]))
            plain++;
        while (space < n && ms_is_space(text[space]))
            space++;
        while (digits < n && ms_is_digit(text[digits]))
            digits++;
        if (ms_scan_plain(text, text + n) != text + plain ||
            ms_scan_space(text, text + n) != text + space ||
            ms_scan_digits(text, text + n) != text + digits ||
            ms_scan_bare(text, text + n) != text + bare ||
            ms_scan_flat(text, text + n) != text + flat)
            ck_abort_msg("round %d", round);
    }
}
END_TEST

/* ---- values ------------------------------------------------------------------------------ */

static const struct {
    const char *text;
    bool is_int, fits;
    int64_t value;
} ints[] = {
    {"0", true, true, 0},
    {"-0", true, true, 0},
    {"42", true, true, 42},
    {"9223372036854775807", true, true, INT64_MAX},
    {"-9223372036854775808", true, true, INT64_MIN},
    {"9223372036854775808", true, false, 0},
    {"18446744073709551615", true, false, 0},
    {"1.0", false, false, 0},
    {"1e2", false, false, 0},
    {"NaN", false, false, 0},
    {"-Infinity", false, false, 0},
};

START_TEST(integers_stay_exact_and_are_told_from_floats)
{
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) {
        struct ms_jread r;
        int64_t v = 0;
        double f;
        ms_jread_init(&r, ints[i].text, strlen(ints[i].text), 0);
        ck_assert_int_eq(ms_jread_next(&r), MS_J_NUM);
        ck_assert_int_eq(ms_jread_is_int(&r), ints[i].is_int);
        ck_assert_int_eq(ms_jread_i64(&r, &v), ints[i].fits);
        ck_assert_int_eq(v, ints[i].value);
        ck_assert(ms_jread_f64(&r, &f));
    }
}
END_TEST

START_TEST(text_without_escapes_is_a_slice_of_the_input)
{
    static const char text[] = "[\"plain\",\"a\\tb\"]";
    struct ms_jread r;
    struct ms_str s;
    struct ms_err e = {0};
    struct ms_buf scratch = {.max = 2};
    ms_jread_init(&r, text, strlen(text), 0);
    ms_jread_next(&r);
    ms_jread_next(&r);
    ck_assert(!r.escaped);
    ck_ok(ms_jread_text(&r, &scratch, &s, &e), e);
    ck_assert_ptr_eq(s.p, text + 2);
    ms_jread_next(&r);
    ck_assert(r.escaped);
    ck_assert_int_eq(ms_jread_text(&r, &scratch, &s, &e), MS_E_LIMIT);
    ms_buf_free(&scratch);
    scratch.max = 100;
    ms_err_clear(&e);
    ms_mem_fail_at(1);
    ck_assert_int_eq(ms_jread_text(&r, &scratch, &s, &e), MS_E_NOMEM);
    ms_mem_fail_at(0);
    ms_err_clear(&e);
    ck_ok(ms_jread_text(&r, &scratch, &s, &e), e);
    ck_assert(ms_str_is(s, "a\tb"));
    ms_buf_free(&scratch);
}
END_TEST

START_TEST(skipping_passes_over_a_whole_value)
{
    static const char text[] = "{\"a\":{\"x\":[1,{}]},\"b\":[[]],\"c\":3,\"d\":4}";
    struct ms_jread r;
    ms_jread_init(&r, text, strlen(text), 0);
    ck_assert_int_eq(ms_jread_next(&r), MS_J_OBJ);
    ck_assert_int_eq(ms_jread_skip(&r, ms_jread_next(&r)), MS_J_OBJ_END);
    ms_jread_next(&r);
    ck_assert(ms_str_is(r.text, "b"));
    ck_assert_int_eq(ms_jread_skip(&r, ms_jread_next(&r)), MS_J_ARR_END);
    ck_assert_int_eq(ms_jread_skip(&r, ms_jread_next(&r)), MS_J_NUM);
    ms_jread_next(&r);
    ck_assert_int_eq(ms_jread_skip(&r, ms_jread_next(&r)), MS_J_NUM);
    ck_assert_int_eq(ms_jread_next(&r), MS_J_OBJ_END);
    ck_assert_int_eq(ms_jread_next(&r), MS_J_END);
}
END_TEST

/* The first member of a known text, whatever brackets its strings hold. */
START_TEST(skipping_a_known_text_ends_where_skipping_does)
{
    static const char *const values[] = {"[]",
                                         "{}",
                                         "[1, [2, {\"a\": []}], 3]",
                                         "{\"a]\": \"}\\\"]\", \"\\\\\": [\"[\"]}",
                                         "[\n  1000,\n  2000,\n  3000,\n  4000,\n  5000\n]",
                                         "[\"a longer string than sixteen bytes ]]]\", {}]",
                                         "17",
                                         "\"[\""};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[128];
        struct ms_jread r[2];
        enum ms_jtok last[2];
        snprintf(text, sizeof text, "{\"k\": %s, \"l\": true}", values[i]);
        for (unsigned known = 0; known < 2; known++) {
            ms_jread_init(&r[known], text, strlen(text), known != 0 ? MS_JREAD_KNOWN : 0);
            ck_assert_int_eq(ms_jread_next(&r[known]), MS_J_OBJ);
            last[known] = ms_jread_skip(&r[known], ms_jread_next(&r[known]));
        }
        ck_assert_int_eq(last[0], last[1]);
        ck_assert_ptr_eq(r[0].at, r[1].at);
        ck_assert_int_eq(ms_jread_next(&r[1]), MS_J_KEY);
        ck_assert_int_eq(ms_jread_next(&r[1]), MS_J_TRUE);
        ck_assert_int_eq(ms_jread_next(&r[1]), MS_J_OBJ_END);
        ck_assert_int_eq(ms_jread_next(&r[1]), MS_J_END);
    }
}
END_TEST

START_TEST(skipping_still_checks_the_grammar)
{
    static const char text[] = "{\"a\":{\"x\":[1 2]}}";
    struct ms_jread r;
    ms_jread_init(&r, text, strlen(text), 0);
    ck_assert_int_eq(ms_jread_skip(&r, ms_jread_next(&r)), MS_J_ERR);
}
END_TEST

START_TEST(a_copied_reader_goes_on_from_its_place)
{
    static const char text[] = "{\"a\":[1,2],\"b\":3}";
    struct ms_jread r;
    struct ms_buf first = {.max = 100};
    struct ms_buf again = {.max = 100};
    ms_jread_init(&r, text, strlen(text), 0);
    ms_jread_next(&r);
    ms_jread_next(&r);
    ck_assert_uint_eq(ms_jread_off(&r), 5);
    struct ms_jread copy = r;
    ck_assert_int_eq(spell(&r, &first), MS_J_END);
    ck_assert_int_eq(spell(&copy, &again), MS_J_END);
    ck_assert_str_eq(ms_buf_z(&first), "[n<1>n<2>]k<b>n<3>}");
    ck_assert_str_eq(ms_buf_z(&first), ms_buf_z(&again));
    ms_buf_free(&first);
    ms_buf_free(&again);
}
END_TEST

START_TEST(a_caller_can_reject_a_token_where_it_stands)
{
    static const char text[] = "{\n \"shape\":  7\n}";
    struct ms_jread r;
    struct ms_err e = {0};
    ms_jread_init(&r, text, strlen(text), 0);
    for (int i = 0; i < 3; i++)
        ms_jread_next(&r);
    ck_assert_int_eq(ms_jread_reject(&r, &e, "expected %s", "an array"), MS_E_FORMAT);
    ms_err_wrap(&e, "dump.json");
    ck_assert_str_eq(e.msg, "dump.json: line 2, byte 13: expected an array");
}
END_TEST

TEST_MAIN("jread", well_formed_texts_give_their_tokens, tolerance_changes_nothing_for_a_whole_text,
          malformed_texts_fail_with_their_place, a_nul_byte_is_no_whitespace_and_no_escape,
          no_pointer_is_an_empty_text, nesting_ends_at_its_limit, levels_remember_what_they_are,
          scans_in_steps_and_by_bytes_agree, integers_stay_exact_and_are_told_from_floats,
          text_without_escapes_is_a_slice_of_the_input, skipping_passes_over_a_whole_value,
          skipping_a_known_text_ends_where_skipping_does, skipping_still_checks_the_grammar,
          a_copied_reader_goes_on_from_its_place, a_caller_can_reject_a_token_where_it_stands)
