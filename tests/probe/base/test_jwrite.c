/* SPDX-License-Identifier: MIT
 *
 * The writer against expected bytes, against Python's json (skipped without
 * Python) and, through the reader, against dumps of the original tool (skipped
 * without them).
 */
#include "probe/base/jwrite.h"

#include "probe/base/mem.h"
#include "tests/support/check.h"
#include "tests/support/json_copy.h"

#include <ftw.h>
#include <math.h>

static const char *text_of(struct ms_jwrite *w)
{
    struct ms_err e = {0};
    ck_ok(ms_jwrite_finish(w, &e), e);
    return ms_buf_z(&w->buf);
}

START_TEST(a_strict_writer_writes_what_every_parser_reads)
{
    struct ms_jwrite w;
    ms_jwrite_init(&w, 0, 1000);
    w.strict = true;
    ms_jwrite_arr(&w);
    ms_jwrite_f64(&w, (double)INFINITY);
    ms_jwrite_f64(&w, (double)-INFINITY);
    ms_jwrite_f64(&w, (double)NAN);
    ms_jwrite_f64(&w, 1e308);
    ms_jwrite_arr_end(&w);
    ck_assert_str_eq(text_of(&w), "[9e999, -9e999, null, 1e+308]");
    ms_jwrite_free(&w);
}
END_TEST

/* A key with a value of each kind. */
START_TEST(a_key_stands_before_every_kind_of_value)
{
    struct ms_jwrite w;
    ms_jwrite_init(&w, 0, 1000);
    ms_jwrite_obj(&w);
    ms_jwrite_kstr(&w, "str", "s");
    ms_jwrite_ktext(&w, "text", MS_STR("of a slice"));
    ms_jwrite_ki64(&w, "i64", -3);
    ms_jwrite_kf64(&w, "f64", 0.5);
    ms_jwrite_kbool(&w, "yes", true);
    ms_jwrite_kbool(&w, "no", false);
    ms_jwrite_kmaybe(&w, "none", -1);
    ms_jwrite_kmaybe(&w, "nought", 0);
    ms_jwrite_obj_end(&w);
    ck_assert_str_eq(text_of(&w),
                     "{\"str\": \"s\", \"text\": \"of a slice\", \"i64\": -3, \"f64\": 0.5, "
                     "\"yes\": true, \"no\": false, \"none\": null, \"nought\": 0}");
    ms_jwrite_free(&w);
}
END_TEST

/* Containers of every kind, empty and not. */
static void write_sample(struct ms_jwrite *w)
{
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "type", "torch.Tensor");
    ms_jwrite_key(w, MS_STR("shape"));
    ms_jwrite_arr(w);
    ms_jwrite_i64(w, -2);
    ms_jwrite_u64(w, UINT64_MAX);
    ms_jwrite_arr_end(w);
    ms_jwrite_kf64(w, "Max", 7.0);
    ms_jwrite_kf64(w, "Min", -INFINITY);
    ms_jwrite_kbool(w, "requires_grad", false);
    ms_jwrite_ki64(w, "n", 3);
    ms_jwrite_key(w, MS_STR("empty"));
    ms_jwrite_arr(w);
    ms_jwrite_obj(w);
    ms_jwrite_obj_end(w);
    ms_jwrite_arr(w);
    ms_jwrite_arr_end(w);
    ms_jwrite_null(w);
    ms_jwrite_bool(w, true);
    ms_jwrite_raw(w, MS_STR("123456789012345678901234567890"));
    ms_jwrite_arr_end(w);
    ms_jwrite_obj_end(w);
}

START_TEST(the_layout_is_that_of_python)
{
    static const struct {
        int indent;
        const char *text;
    } layouts[] = {
        {1,
         "{\n \"type\": \"torch.Tensor\",\n \"shape\": [\n  -2,\n  18446744073709551615\n ],\n"
         " \"Max\": 7.0,\n \"Min\": -Infinity,\n \"requires_grad\": false,\n \"n\": 3,\n"
         " \"empty\": [\n  {},\n  [],\n  null,\n  true,\n  123456789012345678901234567890\n ]\n}"},
        {0, "{\"type\": \"torch.Tensor\", \"shape\": [-2, 18446744073709551615], \"Max\": 7.0, "
            "\"Min\": -Infinity, \"requires_grad\": false, \"n\": 3, "
            "\"empty\": [{}, [], null, true, 123456789012345678901234567890]}"},
        {4, "{\n    \"type\": \"torch.Tensor\",\n    \"shape\": [\n        -2,\n"
            "        18446744073709551615\n    ],\n    \"Max\": 7.0,\n    \"Min\": -Infinity,\n"
            "    \"requires_grad\": false,\n    \"n\": 3,\n    \"empty\": [\n        {},\n"
            "        [],\n        null,\n        true,\n"
            "        123456789012345678901234567890\n    ]\n}"},
    };
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        struct ms_jwrite w;
        ms_jwrite_init(&w, layouts[i].indent, 1 << 20);
        write_sample(&w);
        ck_assert_str_eq(text_of(&w), layouts[i].text);
        ms_jwrite_free(&w);
    }
}
END_TEST

START_TEST(strings_are_ascii_with_escapes_of_python)
{
    static const struct {
        const char *s;
        uint32_t n;
        const char *text;
    } strings[] = {
        {"", 0, "\"\""},
        {"a/b", 3, "\"a/b\""},
        {"\"\\\b\f\n\r\t", 7, "\"\\\"\\\\\\b\\f\\n\\r\\t\""},
        {"\0\x01\x1F~\x7F", 5, "\"\\u0000\\u0001\\u001f~\\u007f\""},
        {"\xC3\xA9\xE2\x82\xAC", 5, "\"\\u00e9\\u20ac\""},
        {"\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF", 11,
         "\"\\uffff\\ud800\\udc00\\udbff\\udfff\""},
        {"x\xED\xA0\xBDy\xED\xB8\x80", 8, "\"x\\ud83dy\\ude00\""},
        {"\xFF\xC3(\xE2\x82", 5, "\"\\udcff\\udcc3(\\udce2\\udc82\""},
        {"\xED\xA0", 2, "\"\\udced\\udca0\""},
        {"\xED\xBF\xBF\xED\xC0\x80", 6, "\"\\udfff\\udced\\udcc0\\udc80\""},
    };
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        struct ms_jwrite w;
        ms_jwrite_init(&w, 1, 1 << 20);
        ms_jwrite_str(&w, (struct ms_str){strings[i].s, strings[i].n});
        ck_assert_str_eq(text_of(&w), strings[i].text);
        ms_jwrite_free(&w);
    }
}
END_TEST

/* ---- what goes wrong ------------------------------------------------------------------ */

static void value_without_key(struct ms_jwrite *w)
{
    ms_jwrite_obj(w);
    ms_jwrite_i64(w, 1);
}
static void key_without_value(struct ms_jwrite *w)
{
    ms_jwrite_obj(w);
    ms_jwrite_key(w, MS_STR("a"));
    ms_jwrite_obj_end(w);
}
static void two_keys(struct ms_jwrite *w)
{
    ms_jwrite_obj(w);
    ms_jwrite_key(w, MS_STR("a"));
    ms_jwrite_key(w, MS_STR("b"));
}
static void key_in_array(struct ms_jwrite *w)
{
    ms_jwrite_arr(w);
    ms_jwrite_kbool(w, "a", true);
}
static void wrong_bracket(struct ms_jwrite *w)
{
    ms_jwrite_arr(w);
    ms_jwrite_obj_end(w);
}
static void bracket_too_many(struct ms_jwrite *w)
{
    ms_jwrite_arr(w);
    ms_jwrite_arr_end(w);
    ms_jwrite_arr_end(w);
}
static void two_values(struct ms_jwrite *w)
{
    ms_jwrite_null(w);
    ms_jwrite_obj(w);
}
static void open_bracket(struct ms_jwrite *w)
{
    ms_jwrite_arr(w);
    ms_jwrite_null(w);
}
static void nothing(struct ms_jwrite *w)
{
    (void)w;
}

START_TEST(calls_that_make_no_json_are_refused)
{
    static const struct {
        void (*write)(struct ms_jwrite *);
        const char *words;
    } wrong[] = {
        {value_without_key, "without a key"},
        {key_without_value, "closes nothing"},
        {two_keys, "a key outside an object or without a value"},
        {key_in_array, "a key outside an object"},
        {wrong_bracket, "closes nothing"},
        {bracket_too_many, "closes nothing"},
        {two_values, "a second value"},
        {open_bracket, "still open"},
        {nothing, "nothing was written"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct ms_jwrite w;
        struct ms_err e = {0};
        ms_jwrite_init(&w, 1, 1000);
        wrong[i].write(&w);
        ck_assert_int_eq(ms_jwrite_finish(&w, &e), MS_E_ARG);
        ck_says(e, wrong[i].words);
        ms_jwrite_free(&w);
    }
}
END_TEST

START_TEST(nesting_ends_at_the_limit_of_the_reader)
{
    struct ms_jwrite w;
    struct ms_err e = {0};
    ms_jwrite_init(&w, 0, 1 << 20);
    for (int i = 0; i < MS_JWRITE_DEPTH; i++)
        ms_jwrite_arr(&w);
    for (int i = 0; i < MS_JWRITE_DEPTH; i++)
        ms_jwrite_arr_end(&w);
    ck_assert_uint_eq(strlen(text_of(&w)), 2 * MS_JWRITE_DEPTH);
    ms_jwrite_free(&w);
    ms_jwrite_init(&w, 0, 1 << 20);
    for (int i = 0; i < MS_JWRITE_DEPTH + 1; i++)
        ms_jwrite_arr(&w);
    ck_assert_int_eq(ms_jwrite_finish(&w, &e), MS_E_LIMIT);
    ms_jwrite_free(&w);
}
END_TEST

START_TEST(a_text_beyond_its_maximum_fails_once)
{
    struct ms_jwrite w;
    struct ms_err e = {0};
    ms_jwrite_init(&w, 1, 100);
    ms_jwrite_arr(&w);
    for (int i = 0; i < 100; i++)
        ms_jwrite_str(&w, MS_STR("twenty bytes of text"));
    ms_jwrite_arr_end(&w);
    ck_assert_int_eq(ms_jwrite_finish(&w, &e), MS_E_LIMIT);
    ck_says(e, "longer than 100 bytes");
    ck_assert_uint_le(w.buf.n, 100);
    ms_jwrite_free(&w);
}
END_TEST

START_TEST(running_out_of_memory_is_reported_wherever_it_happens)
{
    for (uint64_t n = 1;; n++) {
        struct ms_jwrite w;
        struct ms_err e = {0};
        ms_mem_fail_at(n);
        ms_jwrite_init(&w, 1, 1 << 20);
        write_sample(&w);
        enum ms_rc rc = ms_jwrite_finish(&w, &e);
        bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        ms_jwrite_free(&w);
        ck_assert_int_eq(rc, failed ? MS_E_NOMEM : MS_OK);
        if (!failed)
            break;
        ck_assert_uint_lt(n, 100);
    }
}
END_TEST

/* ---- the drain ------------------------------------------------------------------------- */

struct sink {
    struct ms_buf text;
    int calls, fail_at;
};

static enum ms_rc to_sink(void *ctx, const char *p, size_t n, struct ms_err *err)
{
    struct sink *sink = ctx;
    sink->calls++;
    if (sink->calls == sink->fail_at)
        return ms_fail(err, MS_E_IO, "disk full");
    ms_buf_put(&sink->text, p, n);
    return MS_OK;
}

static void write_much(struct ms_jwrite *w)
{
    static char big[300000];
    memset(big, 'x', sizeof big);
    memcpy(big + 4095, "\xE2\x82\xAC", 3); /* across the edge of a piece */
    ms_jwrite_arr(w);
    for (int i = 0; i < 20000; i++)
        ms_jwrite_i64(w, i);
    ms_jwrite_str(w, (struct ms_str){big, sizeof big});
    memset(big, '7', sizeof big);
    ms_jwrite_raw(w, (struct ms_str){big, sizeof big});
    memset(big, '\n', sizeof big);
    ms_jwrite_str(w, (struct ms_str){big, sizeof big});
    ms_jwrite_arr_end(w);
}

START_TEST(a_drain_gets_the_same_text_in_pieces)
{
    struct sink sink = {.text = {.max = 1 << 24}};
    struct ms_jwrite whole;
    struct ms_jwrite w;
    struct ms_err e = {0};
    ms_jwrite_init(&whole, 1, 1 << 24);
    write_much(&whole);
    ck_ok(ms_jwrite_finish(&whole, &e), e);
    ms_jwrite_init(&w, 1, 256 << 10);
    w.drain = to_sink;
    w.ctx = &sink;
    write_much(&w);
    ck_ok(ms_jwrite_finish(&w, &e), e);
    ck_assert_int_gt(sink.calls, 5);
    ck_assert_uint_eq(sink.text.n, whole.buf.n);
    ck_assert_mem_eq(sink.text.p, whole.buf.p, whole.buf.n);
    ck_assert_ptr_nonnull(strstr(ms_buf_z(&whole.buf), "xxx\\u20acxxx"));
    ck_assert_uint_le(w.buf.cap, (256 << 10) + 1);
    ms_jwrite_free(&w);
    ms_jwrite_free(&whole);
    ms_buf_free(&sink.text);
}
END_TEST

START_TEST(a_drain_that_fails_is_not_called_again)
{
    for (int fail_at = 1; fail_at < 4; fail_at++) {
        struct sink sink = {.text = {.max = 1 << 24}, .fail_at = fail_at};
        struct ms_jwrite w;
        struct ms_err e = {0};
        ms_jwrite_init(&w, 1, 256 << 10);
        w.drain = to_sink;
        w.ctx = &sink;
        write_much(&w);
        ck_assert_int_eq(ms_jwrite_finish(&w, &e), MS_E_IO);
        ck_assert_str_eq(e.msg, "disk full");
        ck_assert_int_eq(sink.calls, fail_at);
        ms_jwrite_free(&w);
        ms_buf_free(&sink.text);
    }
}
END_TEST

/* ---- Python ------------------------------------------------------------------------------ */

static unsigned put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    unsigned n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (unsigned i = n; --i > 0; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)((0xF00U >> n & 0xF0) | c);
    return n;
}

/* Every character there is, lone surrogates included, a blank between two of them. */
START_TEST(python_escapes_every_character_the_same)
{
    const char *python = getenv("PYTHON") != NULL ? getenv("PYTHON") : "/usr/bin/python3";
    if (access(python, X_OK) != 0) {
        printf("skip python_escapes_every_character_the_same: no %s\n", python);
        return;
    }
    char *text = malloc(0x110000 * 5);
    uint32_t n = 0;
    for (uint32_t c = 0; c < 0x110000; c++) {
        n += put_utf8(text + n, c);
        text[n++] = ' ';
    }
    struct ms_jwrite w;
    ms_jwrite_init(&w, 1, 64 << 20);
    ms_jwrite_str(&w, (struct ms_str){text, n});
    const char *ours = text_of(&w);
    char cmd[256];
    snprintf(cmd, sizeof cmd,
             "'%s' -c 'import json; print(json.dumps(\"\".join(chr(c) + \" \" for c in "
             "range(0x110000))))'",
             python);
    FILE *f = popen(cmd, "r");
    ck_assert_ptr_nonnull(f);
    char *theirs = malloc(w.buf.n + 2);
    ck_assert_uint_eq(fread(theirs, 1, w.buf.n + 2, f), w.buf.n + 1);
    ck_assert_mem_eq(ours, theirs, w.buf.n);
    ck_assert_int_eq(pclose(f), 0);
    free(theirs);
    free(text);
    ms_jwrite_free(&w);
}
END_TEST

/* ---- dumps of the original tool -------------------------------------------------------------- */

static int copied;

static void check_copy(const char *path, const char *text, size_t n)
{
    /* A file laid out by hand is not one that the tool has written. */
    if (n > 3 && memcmp(text, "{\n  ", 4) == 0)
        return;
    struct ms_jread r;
    struct ms_jwrite w;
    struct ms_err e = {0};
    ms_jread_init(&r, text, n, 0);
    ms_jwrite_init(&w, 1, 2 * n + 100);
    ck_ok(json_copy(&r, &w, &e), e);
    if (w.buf.n != n || memcmp(w.buf.p, text, n) != 0)
        ck_abort_msg("%s: written differently", path);
    ms_jwrite_free(&w);
    copied++;
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    static const char *const names[] = {"dump.json", "construct.json", "stack.json"};
    if (type != FTW_F)
        return 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(path + ftw->base, names[i]) != 0)
            continue;
        FILE *f = fopen(path, "rb");
        char *text = malloc((size_t)st->st_size + 1);
        ck_assert_ptr_nonnull(f);
        size_t n = fread(text, 1, (size_t)st->st_size, f);
        fclose(f);
        check_copy(path, text, n);
        free(text);
    }
    return 0;
}

START_TEST(dumps_of_the_original_are_written_back_to_the_byte)
{
    const char *golden = getenv("GOLDEN") != NULL ? getenv("GOLDEN") : "../shared/golden";
    if (access(golden, R_OK) != 0) {
        printf("skip dumps_of_the_original_are_written_back_to_the_byte: no %s\n", golden);
        return;
    }
    ck_assert_int_eq(nftw(golden, visit, 16, FTW_PHYS), 0);
    ck_assert_int_gt(copied, 0);
    printf("%d files written back to the byte\n", copied);
}
END_TEST

TEST_MAIN("jwrite", a_key_stands_before_every_kind_of_value, the_layout_is_that_of_python,
          a_strict_writer_writes_what_every_parser_reads, strings_are_ascii_with_escapes_of_python,
          calls_that_make_no_json_are_refused, nesting_ends_at_the_limit_of_the_reader,
          a_text_beyond_its_maximum_fails_once,
          running_out_of_memory_is_reported_wherever_it_happens,
          a_drain_gets_the_same_text_in_pieces, a_drain_that_fails_is_not_called_again,
          python_escapes_every_character_the_same,
          dumps_of_the_original_are_written_back_to_the_byte)
