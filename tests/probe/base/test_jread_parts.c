/* SPDX-License-Identifier: MIT
 *
 * jread: texts that were cut off, and texts read in parts.
 */
#include "tests/support/jread_spell.h"

#include "probe/base/scan.h"

#include <pthread.h>

/* ---- items of an array ----------------------------------------------------------------------- */

/* A caller reads the items itself, whatever spaces stand between them. */
START_TEST(the_items_of_an_array_are_found_one_by_one)
{
    static const char *const spaces[] = {"", " ", "\n\t ", "        "};
    for (size_t k = 0; k < sizeof spaces / sizeof *spaces; k++) {
        struct ms_buf text = {.max = 1000};
        struct ms_jread r;
        const char *const gap = spaces[k];
        ms_buf_printf(&text, "[%s1%s,%s2%s,%s3%s]", gap, gap, gap, gap, gap, gap);
        ms_jread_init(&r, text.p, text.n, 0);
        ck_assert_int_eq(ms_jread_next(&r), MS_J_ARR);
        for (char want = '1'; want <= '3'; want++) {
            const char *item = ms_jread_item(&r);
            ck_assert_ptr_nonnull(item);
            ck_assert_int_eq(*item, want);
            ms_jread_pass_item(&r, item + 1);
        }
        ck_assert_ptr_null(ms_jread_item(&r));
        ck_assert_int_eq(ms_jread_next(&r), MS_J_ARR_END);
        ck_assert_int_eq(ms_jread_next(&r), MS_J_END);
        ms_buf_free(&text);
    }
}
END_TEST

START_TEST(an_array_that_ends_has_no_item)
{
    static const char *const cut[] = {"[", "[ ", "[1,", "[1 , ", "[1"};
    for (size_t k = 0; k < sizeof cut / sizeof *cut; k++) {
        struct guarded g = guard(cut[k], strlen(cut[k]));
        struct ms_jread r;
        ms_jread_init(&r, g.p, g.n, 0);
        ck_assert_int_eq(ms_jread_next(&r), MS_J_ARR);
        if (strchr(cut[k], '1') != NULL)
            ms_jread_pass_item(&r, ms_jread_item(&r) + 1);
        ck_assert_ptr_null(ms_jread_item(&r));
        unguard(&g);
    }
}
END_TEST

/* ---- escapes ------------------------------------------------------------------------------------ */

/* UTF-8 by its table of ranges; a half of a pair as the three bytes of its number. */
static size_t encode(uint32_t c, char out[4])
{
    if (c <= 0x7F)
        return out[0] = (char)c, 1;
    if (c <= 0x7FF)
        return out[0] = (char)(192 + c / 64), out[1] = (char)(128 + c % 64), 2;
    if (c <= 0xFFFF)
        return out[0] = (char)(224 + c / 4096), out[1] = (char)(128 + c / 64 % 64),
               out[2] = (char)(128 + c % 64), 3;
    return out[0] = (char)(240 + c / 262144), out[1] = (char)(128 + c / 4096 % 64),
           out[2] = (char)(128 + c / 64 % 64), out[3] = (char)(128 + c % 64), 4;
}

START_TEST(every_code_point_is_read_from_its_escape)
{
    struct ms_buf scratch = {.max = 1 << 10};
    struct ms_err err = {0};
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        char json[20], want[4];
        struct ms_jread r;
        struct ms_str got;
        const int n = c <= 0xFFFF ? snprintf(json, sizeof json, "\"\\u%04x\"", c)
                                  : snprintf(json, sizeof json, "\"\\u%04X\\u%04x\"",
                                             0xD800 + ((c - 0x10000) >> 10), 0xDC00 + (c & 0x3FF));
        ms_jread_init(&r, json, (size_t)n, 0);
        ck_assert(ms_jread_next(&r) == MS_J_STR);
        ms_buf_clear(&scratch);
        ck_assert(ms_jread_text(&r, &scratch, &got, &err) == MS_OK);
        const size_t length = encode(c, want);
        if (got.n != length || memcmp(got.p, want, length) != 0)
            ck_abort_msg("U+%04X", c);
    }
    ms_buf_free(&scratch);
}
END_TEST

/* ---- texts that were cut off ----------------------------------------------------------------- */

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
    {"[\"a\xF4\x8F\xBF", "[0]"},
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
/* The line that looks like a record is one blank short, or has another byte in place of the first. */
START_TEST(a_record_begins_behind_all_its_blanks)
{
    static const char *const texts[] = {
        "\"a\": 111111111,\n  \"b\": 2", "\"a\": 111111111,\nx \"b\": 2",
        "\"a\": 111111111,\n\tx\"b\": 2", "\"a\": 111111111,\n \" \": 2"};
    for (unsigned i = 0; i < 4; i++) {
        size_t cut[3];
        const unsigned made = ms_jread_split(texts[i], strlen(texts[i]), 2, 2, cut);
        ck_assert_msg(made == (i == 0 ? 2U : 1U), "%u parts of %s", made, texts[i]);
    }
}
END_TEST

struct members {
    char seen[32];
    enum ms_rc fails;
};

static enum ms_rc note_member(void *of, struct ms_jread *r, struct ms_buf *scratch,
                              struct ms_err *err)
{
    struct members *m = of;
    struct ms_str key;
    MS_TRY(ms_jread_text(r, scratch, &key, err));
    strncat(m->seen, key.p, key.n);
    if (m->fails != MS_OK)
        return ms_fail(err, m->fails, "enough");
    return ms_jread_skip(r, ms_jread_next(r)) != MS_J_ERR ? MS_OK : ms_jread_fail(r, err);
}

static enum ms_rc read_members(const char *text, uint32_t flags, struct members *m,
                               struct ms_err *err)
{
    struct ms_jread r;
    ms_err_clear(err);
    m->seen[0] = '\0';
    ms_jread_init(&r, text, strlen(text), flags);
    return ms_jread_members(&r, "things", note_member, m, err);
}

START_TEST(each_member_is_given_once_until_one_is_refused)
{
    struct members m = {.fails = MS_OK};
    struct ms_err e = {0};
    ck_ok(read_members("{\"a\": 1, \"b\": [2], \"c\": {}}", 0, &m, &e), e);
    ck_assert_str_eq(m.seen, "abc");
    ck_ok(read_members("{}", 0, &m, &e), e);
    ck_assert_str_eq(m.seen, "");
    ck_assert_int_eq(read_members("{\"a\": 1} 2", 0, &m, &e), MS_E_FORMAT);
    ck_assert_int_eq(read_members("{\"a\": 1, 2", 0, &m, &e), MS_E_FORMAT);
    ck_assert_int_eq(read_members("[1]", 0, &m, &e), MS_E_FORMAT);
    ck_says(e, "expected an object of things");
    ck_ok(read_members("{\"a\": 1, \"b\": [2", MS_JREAD_TOLERANT, &m, &e), e);
    ck_assert_str_eq(m.seen, "ab");
    m.fails = MS_E_LIMIT;
    ck_assert_int_eq(read_members("{\"a\": 1, \"b\": 2}", 0, &m, &e), MS_E_LIMIT);
    ck_assert_str_eq(m.seen, "a");
}
END_TEST

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

TEST_MAIN("jread parts", the_items_of_an_array_are_found_one_by_one, an_array_that_ends_has_no_item,
          every_code_point_is_read_from_its_escape,
          a_dump_cut_at_any_byte_keeps_its_complete_records, a_strict_reader_fails_at_every_cut,
          what_a_cut_takes_away_becomes_null, tolerance_does_not_forgive_wrong_text,
          parts_together_give_the_tokens_of_the_whole,
          text_that_is_not_laid_out_in_lines_stays_whole, a_record_begins_behind_all_its_blanks,
          each_member_is_given_once_until_one_is_refused,
          a_cut_inside_a_record_is_an_error_of_that_part,
          a_part_ends_with_a_comma_exactly_when_another_follows, only_the_last_part_may_be_cut_off,
          a_part_counts_lines_from_the_start_of_the_file)
