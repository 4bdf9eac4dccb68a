/* SPDX-License-Identifier: MIT
 *
 * text_recorded: what the readers of JSON, CSV and config files make of the files of their corpora
 * and of everything that is one byte away from them: each token, field and value, or the error with
 * its place.
 */
#include "probe/base/conf.h"
#include "probe/base/csv.h"
#include "probe/base/jread.h"
#include "probe/base/log.h"
#include "probe/base/num.h"
#include "tests/support/recorded.h"

#include <inttypes.h>

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
        if (skips && ++count % 3 == 2)
            ms_buf_printf(b, " skipped %d@%" PRIu64, ms_jread_skip(&r, tok), ms_jread_off(&r));
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

RECORDED_MAIN("text_recorded", json, csv, fields_that_spreadsheets_evaluate, numbers, config_files)
