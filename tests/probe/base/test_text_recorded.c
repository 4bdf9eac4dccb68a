/* SPDX-License-Identifier: MIT
 *
 * text_recorded: what the readers of JSON, CSV and config files make of the files of their corpora
 * and of everything that is one byte away from them: each token, field and value, or the error with
 * its place.
 */
#include "probe/base/conf.h"
#include "probe/base/csv.h"
#include "probe/base/jread.h"
#include "probe/base/jwrite.h"
#include "probe/base/log.h"
#include "probe/base/num.h"
#include "tests/support/recorded.h"

#include <inttypes.h>
#include <math.h>

/* ---- JSON ------------------------------------------------------------------------ */

static void put_token(struct ms_buf *b, const struct ms_jread *r, enum ms_jtok tok)
{
    struct ms_buf scratch = {.max = 1 << 16};
    struct ms_str text;
    double v;
    int64_t i;
    ms_buf_printf(b, " %d@%" PRIu64 "/%u", tok, ms_jread_off(r), r->depth);
    if ((tok == MS_J_KEY || tok == MS_J_STR) && ms_jread_text(r, &scratch, &text, NULL) == MS_OK)
        recorded_text(b, r->escaped ? "escaped" : "text", text);
    if (tok == MS_J_NUM && ms_jread_f64(r, &v))
        ms_buf_printf(b, " %a %d", v, ms_jread_is_int(r));
    if (tok == MS_J_NUM && ms_jread_i64(r, &i))
        ms_buf_printf(b, " %" PRId64, i);
    ms_buf_free(&scratch);
}

static void put_tokens(struct ms_buf *b, const char *p, size_t n, unsigned flags, bool skips)
{
    struct ms_jread r;
    enum ms_jtok tok;
    unsigned count = 0;
    ms_jread_init(&r, p, n, flags);
    while ((tok = ms_jread_next(&r)) > MS_J_END) {
        put_token(b, &r, tok);
        if (!skips || ++count % 3 != 2)
            continue;
        ms_buf_printf(b, " skipped %d", ms_jread_skip(&r, tok));
        ms_buf_printf(b, "@%" PRIu64, ms_jread_off(&r));
    }
    ms_buf_printf(b, " %d %d", tok, r.truncated);
    struct ms_err e = {0};
    if (tok == MS_J_ERR && ms_jread_fail(&r, &e) != MS_OK)
        ms_buf_printf(b, " %d %s", e.rc, e.msg);
}

static void answer_json(struct ms_buf *b, const char *p, size_t n)
{
    if (n > 600)
        return; /* deep and long ones have tests of their own */
    put_tokens(b, p, n, 0, false);
    put_tokens(b, p, n, MS_JREAD_TOLERANT, false);
    put_tokens(b, p, n, MS_JREAD_MEMBERS, false);
    put_tokens(b, p, n, MS_JREAD_MEMBERS | MS_JREAD_MORE, true);
    put_tokens(b, p, n, 0, true);
}

START_TEST(json)
{
    struct ms_buf b = {.max = 1 << 20};
    recorded_corpus(&b, "jread", answer_json);
    recorded_check(&b, "jread");
}
END_TEST

/* ---- CSV -------------------------------------------------------------------------- */

static void answer_csv(struct ms_buf *b, const char *p, size_t n)
{
    struct ms_csv r;
    struct ms_err e = {0};
    bool more;
    ms_csv_init(&r, p, n);
    while (ms_csv_next(&r, &more, &e) == MS_OK && more) {
        ms_buf_printf(b, "; %u", r.line);
        for (size_t i = 0; i < r.fields.n; i++) {
            double v = 0;
            recorded_text(b, "field", r.fields.p[i]);
            const bool is_number = ms_csv_number(r.fields.p[i], &v);
            ms_buf_printf(b, " %d %a %d ", is_number, is_number ? v : 0,
                          ms_csv_is_formula(r.fields.p[i]));
            ms_csv_put(b, r.fields.p[i], MS_CSV_FOREIGN);
            ms_buf_putc(b, ' ');
            ms_csv_put(b, r.fields.p[i], MS_CSV_OWN);
        }
    }
    ms_buf_printf(b, " %d %s", e.rc, e.msg);
    ms_csv_free(&r);
}

START_TEST(csv)
{
    struct ms_buf b = {.max = 1 << 20};
    recorded_corpus(&b, "csv", answer_csv);
    recorded_check(&b, "csv");
}
END_TEST

START_TEST(fields_that_spreadsheets_evaluate)
{
    static const char *const word[] = {"",
                                       "=",
                                       "+",
                                       "-",
                                       "@",
                                       "%",
                                       "1",
                                       ".",
                                       "e",
                                       ";",
                                       " ",
                                       "\t",
                                       ",",
                                       "x",
                                       "inf",
                                       "nan",
                                       "\xef\xbc\x9d",
                                       "\""};
    struct ms_buf b = {.max = 1 << 20};
    recorded_words(&b, word, sizeof word / sizeof *word, 4, "", answer_csv);
    recorded_check(&b, "csv_fields");
}
END_TEST

/* ---- numbers ------------------------------------------------------------------------ */

static void answer_number(struct ms_buf *b, const char *p, size_t n)
{
    char text[MS_NUM_MAX];
    double v = 0;
    const struct ms_str s = {p, (uint32_t)n};
    uint64_t u = 0;
    int64_t i = 0;
    const bool is = ms_num_parse_f64(p, n, &v);
    ms_buf_printf(b, "%d ", is);
    ms_buf_put(b, text, is ? ms_num_f64(text, v) : 0);
    ms_buf_printf(b, " %d", ms_str_u64(s, &u));
    ms_buf_printf(b, " %d %" PRIu64, ms_str_i64(s, &i), u);
    ms_buf_printf(b, " %" PRId64 " %d", i, ms_str_all_digits(s));
}

START_TEST(numbers)
{
    static const char *const word[] = {"",    "0",   "1",        "9", "12345678", "99999999",
                                       ".",   "e",   "E",        "-", "+",        "308",
                                       "324", "NaN", "Infinity", " "};
    struct ms_buf b = {.max = 1 << 20};
    recorded_words(&b, word, sizeof word / sizeof *word, 4, "", answer_number);
    recorded_check(&b, "numbers");
}
END_TEST

/* ---- config files -------------------------------------------------------------------- */

static void put_value(struct ms_buf *b, const struct ms_conf_value *at, const char *key, int depth)
{
    const struct ms_conf_value *object = NULL, *list = NULL;
    struct ms_err e[4] = {{0}};
    const char *text = NULL;
    bool flag = false;
    (void)!ms_conf_str(at, key, &text, &e[0]);
    (void)!ms_conf_bool(at, key, &flag, &e[1]);
    (void)!ms_conf_object(at, key, &object, &e[2]);
    (void)!ms_conf_list(at, key, &list, &e[3]);
    ms_buf_printf(b, " %s=%s %d", key, text != NULL ? text : "NULL", flag);
    for (int i = 0; i < 4; i++)
        ms_buf_printf(b, " %s", e[i].msg);
    const struct ms_conf_value *all = object != NULL ? object : list;
    for (size_t i = 0; all != NULL && i < ms_conf_len(all); i++) {
        int64_t n = 0;
        const bool is_text = ms_conf_item_str(all, i, &text);
        const bool is_int = ms_conf_item_int(all, i, &n);
        ms_buf_printf(b, " [%zu] %s %" PRId64 " %d", i, is_text ? text : "-", n, is_int);
        if (object != NULL)
            put_value(b, object, ms_conf_key(object, i), depth + 1);
        else if (depth < 2)
            put_value(b, ms_conf_item(list, i), "a", 3);
    }
}

static void answer_conf(struct ms_buf *b, const char *p, size_t n)
{
    static const char *const key[] = {"a", "b", "task", "rank", "list", "", "no"};
    static const char *const known[] = {"a", "task", NULL};
    struct ms_conf *conf;
    struct ms_err e = {0};
    if (n < 500 && ms_conf_parse(&conf, "x", (struct ms_str){p, (uint32_t)n}, &e) == MS_OK) {
        const struct ms_conf_value *root = ms_conf_root(conf);
        for (size_t i = 0; i < sizeof key / sizeof *key; i++)
            put_value(b, root, key[i], 0);
        for (size_t i = 0; i < ms_conf_len(root); i++)
            ms_buf_printf(b, " %s", ms_conf_key(root, i));
        ms_conf_warn_unknown(root, known);
        ms_conf_close(conf);
    }
    ms_buf_printf(b, " %d %s", e.rc, e.msg);
}

START_TEST(config_files)
{
    struct ms_buf b = {.max = 1 << 20};
    ms_log_set_level(MS_LOG_ERROR);
    recorded_corpus(&b, "conf", answer_conf);
    recorded_check(&b, "conf");
}
END_TEST

/* ---- texts --------------------------------------------------------------------------- */

static void answer_text(struct ms_buf *b, const char *p, size_t n)
{
    static const char *const other[] = {"", "a", "ab", "A", "1", "10", "a1", ".", "a.b"};
    const struct ms_str s = {p, (uint32_t)n};
    char shown[MS_STR_SHOWN];
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        const struct ms_str o = ms_str_of(other[i]);
        const int natural = ms_str_cmp_natural(s, o), plain = ms_str_cmp(s, o);
        ms_buf_printf(b, " %d%d", (plain > 0) - (plain < 0), (natural > 0) - (natural < 0));
        ms_buf_printf(b, " %" PRId64 " %d%d", ms_str_find_str(s, o), ms_str_has_folded(s, o),
                      ms_str_is_folded(s, other[i]));
        ms_buf_printf(b, " %d%d%d%d", ms_str_eq(s, o), ms_str_is(s, other[i]), ms_str_starts(s, o),
                      ms_str_ends(s, o));
    }
    ms_buf_printf(b, " %" PRId64 " %" PRId64 " %u", ms_str_find(s, 'a'), ms_str_rfind(s, 'a'),
                  ms_str_digits(s, n != 0));
    struct ms_str rest = s, part;
    while (ms_str_split(&rest, '.', &part))
        recorded_text(b, "part", part);
    for (size_t i = 0; i < n; i++)
        ms_buf_printf(b, " %u", ms_utf8_len(p + i, n - i));
    ms_buf_printf(b, " %016" PRIx64 " %s", ms_str_hash(s), ms_str_shown(shown, s));
}

START_TEST(texts)
{
    static const char *const word[] = {"",
                                       "a",
                                       "A",
                                       "b",
                                       ".",
                                       "0",
                                       "1",
                                       "9",
                                       "12",
                                       "\n",
                                       "\x1b",
                                       "\x7f",
                                       "\xc3\xa4",
                                       "\xe2\x82\xac",
                                       "\xf0\x9f\x98\x80",
                                       "\xc0",
                                       "\xed\xa0\x80",
                                       "\xf4\x90"};
    struct ms_buf b = {.max = 1 << 20};
    recorded_words(&b, word, sizeof word / sizeof *word, 3, "", answer_text);
    recorded_check(&b, "texts");
}
END_TEST

/* Every length around that of what a message shows, with a character of three bytes at its end. */
START_TEST(long_texts_are_shown_short)
{
    struct ms_buf b = {.max = 1 << 20};
    char text[200], shown[MS_STR_SHOWN];
    memset(text, 'x', sizeof text);
    for (uint32_t n = 100; n < 140; n++) {
        for (uint32_t wide = 0; wide < 2; wide++) {
            memcpy(text + n - 3, wide != 0 ? "\xe2\x82\xac" : "xyz", 3);
            ms_buf_printf(&b, "%u %s\n", n, ms_str_shown(shown, (struct ms_str){text, n}));
            ck_assert_uint_lt(strlen(shown), MS_STR_SHOWN);
            memset(text + n - 3, 'x', 3);
        }
    }
    recorded_check(&b, "shown");
}
END_TEST

/* ---- the JSON writer -------------------------------------------------------------------- */

static enum ms_rc keep_piece(void *ctx, const char *p, size_t n, struct ms_err *e)
{
    (void)e;
    ms_buf_put(ctx, p, n);
    return MS_OK;
}

/* A document is written twice, with a drain and without, by the same numbers. Each statement draws once. */
static uint32_t next_below(uint64_t *state, uint32_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % n);
}

static struct ms_str draw_text(uint64_t *state)
{
    static char text[9000];
    static const char *const piece[] = {"a",
                                        "\"",
                                        "\\",
                                        "\n",
                                        "\x01",
                                        "\x7f",
                                        "\xc3\xa4",
                                        "\xe2\x82\xac",
                                        "\xf0\x9f\x98\x80",
                                        "\xed\xa0\x80",
                                        "\xff",
                                        "\xe2\x82"};
    size_t n = next_below(state, 30) == 0 ? 4090 + next_below(state, 12) : 0;
    memset(text, 'l', n);
    for (uint32_t i = next_below(state, 6); i > 0; i--) {
        const char *p = piece[next_below(state, 12)];
        memcpy(text + n, p, strlen(p));
        n += strlen(p);
    }
    return (struct ms_str){text, (uint32_t)n};
}

/* Mostly what may come next, now and then anything. */
static void write_one(struct ms_jwrite *w, uint64_t *state)
{
    static const double real[] = {0, -0.0, 1.5, 1e300, 5e-324, 0.1, 1e16, 123456789};
    const bool needs_key = w->is_object && !w->after_key;
    uint32_t what = next_below(state, 14);
    if (needs_key && what > 4 && next_below(state, 60) != 0)
        what = 3;
    if (!needs_key && (what == 3 || what == 4) && next_below(state, 60) != 0)
        what = 5;
    switch (what) {
    case 0:
    case 1:
        if (!needs_key && w->depth < 9)
            (what == 0 ? ms_jwrite_obj : ms_jwrite_arr)(w);
        break;
    case 2:
        if (w->depth > 1 && !w->after_key)
            (w->is_object ? ms_jwrite_obj_end : ms_jwrite_arr_end)(w);
        break;
    case 3:
        ms_jwrite_key(w, draw_text(state));
        break;
    case 4:
        ms_jwrite_members(w, MS_STR("\n \"m\": 1"));
        break;
    case 5:
        ms_jwrite_str(w, draw_text(state));
        break;
    case 6:
        ms_jwrite_i64(w, (int64_t)next_below(state, 99) - 50);
        break;
    case 7:
        ms_jwrite_u64(w, UINT64_MAX - next_below(state, 9));
        break;
    case 8:
        ms_jwrite_f64(w, real[next_below(state, 8)]);
        break;
    case 9:
        ms_jwrite_bool(w, next_below(state, 2) == 0);
        break;
    case 10:
        ms_jwrite_raw(w, MS_STR("[1, 2]"));
        break;
    case 11:
        ms_jwrite_f64(w, (double)INFINITY * (next_below(state, 2) == 0 ? 1 : -1));
        break;
    case 12:
        if (!w->after_key && w->is_object)
            ms_jwrite_kmaybe(w, "maybe", (int64_t)next_below(state, 3) - 1);
        break;
    default:
        ms_jwrite_null(w);
    }
}

/* With a drain and without one: the same text, or the same failure. */
START_TEST(drawn_documents)
{
    struct ms_buf all = {.max = 1 << 20};
    for (unsigned seed = 0; seed < 300; seed++) {
        struct ms_buf drained = {.max = 1 << 24};
        struct ms_err e[2] = {{0}};
        struct ms_jwrite w[2];
        for (int i = 0; i < 2; i++) {
            uint64_t state = seed;
            ms_jwrite_init(&w[i], (int)seed % 3, i == 0 ? 1 << 24 : 256 << 10);
            w[i].strict = seed % 5 == 0;
            if (i == 1) {
                w[i].drain = keep_piece;
                w[i].ctx = &drained;
            }
            (seed % 2 == 0 ? ms_jwrite_obj : ms_jwrite_arr)(&w[i]);
            for (unsigned k = seed % 7 == 0 ? 3000 : 60; k > 0; k--)
                write_one(&w[i], &state);
            while (w[i].depth > 0 && w[i].err.rc == MS_OK && !w[i].after_key)
                (w[i].is_object ? ms_jwrite_obj_end : ms_jwrite_arr_end)(&w[i]);
            (void)!ms_jwrite_finish(&w[i], &e[i]);
        }
        ck_assert_int_eq(e[0].rc, e[1].rc);
        ck_assert_str_eq(e[0].msg, e[1].msg);
        ck_assert(e[0].rc != MS_OK ||
                  (drained.n == w[0].buf.n && memcmp(drained.p, w[0].buf.p, drained.n) == 0));
        ms_buf_printf(&all, "%u: %zu %08x %s\n", seed, w[0].buf.n,
                      ms_crc32(0, w[0].buf.p, w[0].buf.n), e[0].msg);
        ms_jwrite_free(&w[0]);
        ms_jwrite_free(&w[1]);
        ms_buf_free(&drained);
    }
    recorded_check(&all, "documents");
}
END_TEST

RECORDED_MAIN("text_recorded", json, csv, fields_that_spreadsheets_evaluate, numbers, config_files,
              texts, long_texts_are_shown_short, drawn_documents)
