/* SPDX-License-Identifier: MIT
 *
 * Every text here ends where a page begins that may not be touched, so reading
 * one byte too many ends the test.
 */
#include "probe/base/jread.h"
#include "probe/base/scan.h"

#include "probe/base/mem.h"
#include "tests/check.h"

#include <pthread.h>
#include <sys/mman.h>

/* ---- texts at the end of a page ------------------------------------------------------ */

struct guarded {
    char *map, *p;
    size_t n, mapped;
};

static struct guarded guard(const char *text, size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t room = (n + page - 1) / page * page;
    struct guarded g = {.n = n, .mapped = room + page};
    g.map = mmap(NULL, g.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(g.map, MAP_FAILED);
    ck_assert_int_eq(mprotect(g.map + room, page, PROT_NONE), 0);
    g.p = g.map + room - n;
    if (n != 0)
        memcpy(g.p, text, n);
    return g;
}
static void unguard(struct guarded *g)
{
    munmap(g->map, g->mapped);
}

/* ---- token streams as text -------------------------------------------------------------- */

static const char letters[] = "!.{}[]ksntf0";

/* One letter a token, the text of KEY, STR and NUM behind it in <>. */
static void spell_token(const struct ms_jread *r, enum ms_jtok tok, struct ms_buf *out)
{
    struct ms_buf scratch = {.max = 1 << 20};
    ms_buf_putc(out, letters[tok]);
    if (tok == MS_J_NUM) {
        ms_buf_printf(out, "<%.*s>", MS_STR_ARG(r->text));
    } else if (tok == MS_J_KEY || tok == MS_J_STR) {
        struct ms_str text;
        ck_assert_int_eq(ms_jread_text(r, &scratch, &text, NULL), MS_OK);
        ms_buf_printf(out, "<%.*s>", MS_STR_ARG(text));
    }
    ms_buf_free(&scratch);
}

/* The stream up to its end or failure. */
static enum ms_jtok spell(struct ms_jread *r, struct ms_buf *out)
{
    enum ms_jtok tok = ms_jread_next(r);
    for (; tok > MS_J_END; tok = ms_jread_next(r))
        spell_token(r, tok, out);
    return tok;
}

static void reads_as(const char *text, size_t n, unsigned flags, const char *expected)
{
    struct guarded g = guard(text, n);
    struct ms_buf out = {.max = 1 << 20};
    struct ms_jread r;
    ms_jread_init(&r, g.p, g.n, flags);
    enum ms_jtok last = spell(&r, &out);
    ck_assert_msg(last == MS_J_END, "%.*s: %s", (int)n, text, r.bad_why);
    ck_assert_str_eq(ms_buf_z(&out), expected);
    ck_assert_int_eq(ms_jread_next(&r), MS_J_END);
    ms_buf_free(&out);
    unguard(&g);
}

static void fails_at(const char *text, size_t n, unsigned flags, uint32_t line, int64_t off,
                     const char *words)
{
    struct guarded g = guard(text, n);
    struct ms_buf out = {.max = 1 << 20};
    struct ms_jread r;
    struct ms_err e = {0};
    ms_jread_init(&r, g.p, g.n, flags);
    ck_assert_msg(spell(&r, &out) == MS_J_ERR, "accepted: %s", text);
    ck_assert_int_eq(ms_jread_next(&r), MS_J_ERR);
    ck_assert_int_eq(ms_jread_fail(&r, &e), MS_E_FORMAT);
    ck_says(e, words);
    ck_assert_msg(e.line == line && e.off == off, "%s: line %u, byte %lld", text, e.line,
                  (long long)e.off);
    ms_buf_free(&out);
    unguard(&g);
}

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

/* More than 4 GiB of text from a few pages that are mapped again and again, between two of
 * their own that hold the quotes. */
START_TEST(a_string_of_four_gibibytes_is_refused)
{
#if defined(__SANITIZE_THREAD__)
    /* It keeps a history of every byte that is read. */
    puts("skip a_string_of_four_gibibytes_is_refused: too much for ThreadSanitizer");
    return;
#endif
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t piece = (size_t)64 << 20;
    const size_t total = page + 65 * piece + page;
    FILE *f = tmpfile();
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(ftruncate(fileno(f), (off_t)piece), 0);
    char *p = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    for (size_t at = page; at < total - page; at += piece)
        ck_assert_ptr_ne(
            mmap(p + at, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fileno(f), 0),
            MAP_FAILED);
    memset(p, 'x', page + piece);
    memset(p + total - page, 'x', page);
    p[0] = p[total - 1] = '"';
    struct ms_jread r;
    struct ms_err e = {0};
    ms_jread_init(&r, p, total, 0);
    ck_assert_int_eq(ms_jread_next(&r), MS_J_ERR);
    ck_assert_int_eq(ms_jread_fail(&r, &e), MS_E_LIMIT);
    ck_says(e, "4 GiB");
    munmap(p, total);
    fclose(f);
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

/* ---- texts that were cut off ----------------------------------------------------------------- */

/* A dump with one of everything: layout of indent=1, escapes, UTF-8, words, nesting. */
static void make_dump(struct ms_buf *out, unsigned records)
{
    ms_buf_puts(out, "{\n \"task\": \"statistics\",\n \"dump_data_dir\": null,\n \"data\": {");
    for (unsigned i = 0; i < records; i++) {
        ms_buf_printf(
            out,
            "%s\n  \"Module.l\\u00e9%u\xC3\xA9.\\\"\\n  \\\"x\\\": 1,\": {\n"
            "   \"input_args\": [\n    {\n     \"type\": \"torch.Tensor\",\n"
            "     \"shape\": [\n      %u,\n      1%u\n     ],\n     \"Max\": -%u.25e-05,\n"
            "     \"Min\": NaN,\n     \"Norm\": -Infinity,\n"
            "     \"requires_grad\": true\n    },\n    []\n   ],\n"
            "   \"input_kwargs\": {},\n   \"is_recompute\": false\n  }",
            i != 0 ? "," : "", i, i, i * 7, i + 1);
    }
    ms_buf_puts(out, "\n }\n}");
}

/* The tokens that a strict reader gets out of a cut text; a number at its end may lack digits. */
static void spell_certain(const char *p, size_t n, struct ms_buf *out)
{
    struct ms_jread r;
    ms_jread_init(&r, p, n, 0);
    enum ms_jtok tok = ms_jread_next(&r);
    for (; tok > MS_J_END && !(r.at == r.end && ms_is_digit(r.at[-1])); tok = ms_jread_next(&r))
        spell_token(&r, tok, out);
}

/* A tolerant reader of a cut text first gives the tokens that are certain, then closes every
 * bracket. */
static void check_cut(const char *p, size_t n)
{
    struct ms_buf certain = {.max = 1 << 20};
    struct guarded g = guard(p, n);
    struct ms_buf out = {.max = 1 << 20};
    struct ms_jread r;
    int open = 0;
    bool after_key = false;
    spell_certain(g.p, g.n, &certain);
    ms_jread_init(&r, g.p, g.n, MS_JREAD_TOLERANT);
    enum ms_jtok tok = ms_jread_next(&r);
    for (; tok > MS_J_END; tok = ms_jread_next(&r)) {
        if (!r.truncated)
            spell_token(&r, tok, &out);
        if (after_key && (tok == MS_J_KEY || tok == MS_J_OBJ_END))
            ck_abort_msg("a key without its value, cut at %zu", n);
        after_key = tok == MS_J_KEY;
        open += tok == MS_J_OBJ || tok == MS_J_ARR;
        open -= tok == MS_J_OBJ_END || tok == MS_J_ARR_END;
    }
    if (tok != MS_J_END || open != 0 || !r.truncated)
        ck_abort_msg("cut at %zu: token %d, %d open: %s", n, tok, open, r.bad_why);
    if (!ms_str_eq(ms_buf_slice(&out), ms_buf_slice(&certain)))
        ck_abort_msg("cut at %zu: %s", n, ms_buf_z(&out));
    ms_buf_free(&out);
    ms_buf_free(&certain);
    unguard(&g);
}

START_TEST(a_dump_cut_at_any_byte_keeps_its_complete_records)
{
    struct ms_buf text = {.max = 1 << 20};
    make_dump(&text, 10);
    ck_assert_uint_gt(text.n, 3000);
    for (size_t n = 0; n < text.n; n++)
        check_cut(text.p, n);
    ms_buf_free(&text);
}
END_TEST

START_TEST(a_strict_reader_fails_at_every_cut)
{
    struct ms_buf text = {.max = 1 << 20};
    struct ms_buf out = {.max = 1 << 20};
    make_dump(&text, 10);
    for (size_t n = 0; n < text.n; n++) {
        struct guarded g = guard(text.p, n);
        struct ms_jread r;
        struct ms_err e = {0};
        ms_buf_clear(&out);
        ms_jread_init(&r, g.p, g.n, 0);
        if (spell(&r, &out) != MS_J_ERR || ms_jread_fail(&r, &e) != MS_E_FORMAT || e.off < 0 ||
            (size_t)e.off > n || e.line == 0)
            ck_abort_msg("cut at %zu: %s", n, e.msg);
        unguard(&g);
    }
    ms_buf_free(&text);
    ms_buf_free(&out);
}
END_TEST

static const struct {
    const char *text, *tokens;
} cut_texts[] = {
    {"", "0"},
    {"  ", "0"},
    {"tr", "0"},
    {"-", "0"},
    {"\"ab", "0"},
    {"[", "[]"},
    {"[1", "[0]"},
    {"[1,", "[n<1>]"},
    {"[1 ", "[n<1>]"},
    {"[true", "[t]"},
    {"[\"a\xE2\x82", "[0]"},
    {"[\"a\\u00", "[0]"},
    {"{\"a", "{}"},
    {"{\"a\"", "{}"},
    {"{\"a\":", "{k<a>0}"},
    {"{\"a\":1", "{k<a>0}"},
    {"{\"a\":1.5,", "{k<a>n<1.5>}"},
    {"{\"a\":{\"b\":[{", "{k<a>{k<b>[{}]}}"},
};

START_TEST(what_a_cut_takes_away_becomes_null)
{
    for (size_t i = 0; i < sizeof cut_texts / sizeof *cut_texts; i++)
        reads_as(cut_texts[i].text, strlen(cut_texts[i].text), MS_JREAD_TOLERANT,
                 cut_texts[i].tokens);
}
END_TEST

START_TEST(tolerance_does_not_forgive_wrong_text)
{
    static const char *const wrong[] = {"[1 2",   "{\"a\" 1", "[\"\xFF", "[tx",      "[01",
                                        "[\"\\x", "{}x",      "[1.x",    "[\"\xE2(", "{\"\\u0g"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct ms_jread r;
        struct ms_buf out = {.max = 100};
        ms_jread_init(&r, wrong[i], strlen(wrong[i]), MS_JREAD_TOLERANT);
        ck_assert_msg(spell(&r, &out) == MS_J_ERR, "%s: %s", wrong[i], ms_buf_z(&out));
        ms_buf_free(&out);
    }
}
END_TEST

/* ---- parts ------------------------------------------------------------------------------------ */

enum { MAX_PARTS = 16 };

struct part {
    struct ms_jread r;
    struct ms_buf out;
    enum ms_jtok last;
};

static void *read_part(void *ctx)
{
    struct part *part = ctx;
    part->last = spell(&part->r, &part->out);
    return NULL;
}

/* Read the members in parts, each in a thread; false when one of them fails. */
static bool spell_parts(struct ms_str members, unsigned indent, unsigned parts, struct ms_buf *out,
                        unsigned *made)
{
    static struct part part[MAX_PARTS];
    pthread_t thread[MAX_PARTS];
    size_t cut[MAX_PARTS + 1];
    bool ok = true;
    *made = ms_jread_split(members.p, members.n, indent, parts, cut);
    ck_assert_uint_ge(*made, 1);
    ck_assert_uint_eq(cut[0], 0);
    ck_assert_uint_eq(cut[*made], members.n);
    for (unsigned i = 0; i < *made; i++) {
        ck_assert(members.n == 0 || cut[i] < cut[i + 1]);
        part[i].out = (struct ms_buf){.max = 1 << 20};
        ms_jread_init_part(&part[i].r, members.p, members.p + cut[i], cut[i + 1] - cut[i],
                           i + 1 == *made, 0);
        ck_assert_int_eq(pthread_create(&thread[i], NULL, read_part, &part[i]), 0);
    }
    for (unsigned i = 0; i < *made; i++) {
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
        ok = ok && part[i].last == MS_J_END;
        ms_buf_put(out, part[i].out.p, part[i].out.n);
        ms_buf_free(&part[i].out);
    }
    return ok;
}

static struct ms_str members_of(const struct ms_buf *dump)
{
    static const char opening[] = "\"data\": {";
    int64_t at = ms_str_find_str(ms_buf_slice(dump), MS_STR("\"data\": {"));
    ck_assert_int_ge(at, 0);
    return ms_str_sub(ms_buf_slice(dump), (uint32_t)at + sizeof opening - 1, (uint32_t)dump->n - 3);
}

START_TEST(parts_together_give_the_tokens_of_the_whole)
{
    static const unsigned parts[] = {1, 2, 3, 4, 8, 16};
    struct ms_buf text = {.max = 1 << 20};
    struct ms_buf whole = {.max = 1 << 20};
    unsigned made;
    make_dump(&text, 100);
    struct ms_str members = members_of(&text);
    ck_assert(spell_parts(members, 2, 1, &whole, &made));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct ms_buf joined = {.max = 1 << 20};
        ck_assert(spell_parts(members, 2, parts[i], &joined, &made));
        ck_assert_uint_eq(made, parts[i]);
        ck_assert_str_eq(ms_buf_z(&joined), ms_buf_z(&whole));
        ms_buf_free(&joined);
    }
    ms_buf_free(&whole);
    ms_buf_free(&text);
}
END_TEST

START_TEST(text_that_is_not_laid_out_in_lines_stays_whole)
{
    static const char *const texts[] = {
        "\"a\":1,\"b\":2,\"c\":3",
        "",
        "\n  \"a\": 1\n ",
        "\n   \"a\": 1,\n   \"b\": 2,\n   \"c\": 3\n  ",
        "\n \"a\": \",\\n  \\\"b\\\": 2,\\n  \\\"c\\\"\"",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct ms_buf out = {.max = 1 << 20};
        unsigned made;
        ck_assert(spell_parts(ms_str_of(texts[i]), 2, 8, &out, &made));
        ck_assert_uint_eq(made, 1);
        ms_buf_free(&out);
    }
    size_t cut[9];
    static const char flat[] = "\n\"a\": 1,\n\"b\": {\n\"c\": 1,\n\"d\": 2\n}\n";
    ck_assert_uint_eq(ms_jread_split(flat, sizeof flat - 1, 0, 8, cut), 1);
    ck_assert_uint_eq(ms_jread_split(flat, sizeof flat - 1, 2, 0, cut), 1);
}
END_TEST

/* Valid, but inner members stand where records should: a part must fail, never lie. */
START_TEST(a_cut_inside_a_record_is_an_error_of_that_part)
{
    static const char nasty[] = "\n  \"a\": {\n  \"x\": 1,\n  \"y\": 2,\n  \"z\": 3},\n  \"b\": 4";
    struct ms_buf out = {.max = 1 << 20};
    unsigned made;
    ck_assert(spell_parts(ms_str_of(nasty), 2, 1, &out, &made));
    ck_assert(!spell_parts(ms_str_of(nasty), 2, 4, &out, &made));
    ck_assert_uint_gt(made, 1);
    ms_buf_free(&out);
}
END_TEST

START_TEST(a_part_ends_with_a_comma_exactly_when_another_follows)
{
    const unsigned members = MS_JREAD_MEMBERS;
    const unsigned more = MS_JREAD_MEMBERS | MS_JREAD_MORE;
    reads_as("", 0, members, "");
    reads_as("\"a\": [1]", 8, members, "k<a>[n<1>]");
    reads_as("\"a\": {} , ", 10, more, "k<a>{}");
    fails_at("\"a\": 1,", 7, members, 1, 7, "ends inside an object");
    fails_at("\"a\": 1", 6, more, 1, 6, "expected ',' at the end of a part");
    fails_at("", 0, more, 1, 0, "expected ',' at the end of a part");
    fails_at("\"a\": 1}", 7, members, 1, 6, "expected ',' after a value");
    fails_at("}", 1, members, 1, 0, "expected a key");
    fails_at("\"a\": {,", 7, more, 1, 6, "expected a key");
}
END_TEST

START_TEST(only_the_last_part_may_be_cut_off)
{
    static const char text[] = "\n  \"a\": [1, 2";
    struct ms_jread r;
    struct ms_buf out = {.max = 100};
    ms_jread_init_part(&r, text, text, strlen(text), true, MS_JREAD_TOLERANT);
    ck_assert_int_eq(spell(&r, &out), MS_J_END);
    ck_assert_str_eq(ms_buf_z(&out), "k<a>[n<1>0]");
    ck_assert(r.truncated);
    ms_jread_init_part(&r, text, text, strlen(text), false, MS_JREAD_TOLERANT);
    ck_assert_int_eq(spell(&r, &out), MS_J_ERR);
    ms_jread_init_part(&r, text, text, 0, true, MS_JREAD_TOLERANT);
    ck_assert_int_eq(spell(&r, &out), MS_J_END);
    ms_buf_free(&out);
}
END_TEST

START_TEST(a_part_counts_lines_from_the_start_of_the_file)
{
    static const char file[] = "{\n\n\"a\": 1,\n\"b\": x}";
    struct ms_jread r;
    struct ms_err e = {0};
    ms_jread_init_part(&r, file, file + 10, 7, true, 0);
    ck_assert_int_eq(ms_jread_skip(&r, ms_jread_next(&r)), MS_J_ERR);
    ms_jread_fail(&r, &e);
    ms_err_wrap(&e, "dump.json");
    ck_assert_str_eq(e.msg, "dump.json: line 4, byte 16: expected a value");
}
END_TEST

TEST_MAIN("jread", well_formed_texts_give_their_tokens, tolerance_changes_nothing_for_a_whole_text,
          malformed_texts_fail_with_their_place, a_nul_byte_is_no_whitespace_and_no_escape,
          no_pointer_is_an_empty_text, nesting_ends_at_its_limit, levels_remember_what_they_are,
          a_string_of_four_gibibytes_is_refused, scans_in_steps_and_by_bytes_agree,
          integers_stay_exact_and_are_told_from_floats,
          text_without_escapes_is_a_slice_of_the_input, skipping_passes_over_a_whole_value,
          skipping_a_known_text_ends_where_skipping_does, skipping_still_checks_the_grammar,
          a_copied_reader_goes_on_from_its_place, a_caller_can_reject_a_token_where_it_stands,
          a_dump_cut_at_any_byte_keeps_its_complete_records, a_strict_reader_fails_at_every_cut,
          what_a_cut_takes_away_becomes_null, tolerance_does_not_forgive_wrong_text,
          parts_together_give_the_tokens_of_the_whole,
          text_that_is_not_laid_out_in_lines_stays_whole,
          a_cut_inside_a_record_is_an_error_of_that_part,
          a_part_ends_with_a_comma_exactly_when_another_follows, only_the_last_part_may_be_cut_off,
          a_part_counts_lines_from_the_start_of_the_file)
