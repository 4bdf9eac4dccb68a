/* SPDX-License-Identifier: MIT
 *
 * log_params: parameters out of logs of slime and verl.
 */
#include "compare/config/log_params.h"

#include "probe/base/num.h"

#include <stdio.h>

/* ---- slime ------------------------------------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct ms_str trimmed(struct ms_str s)
{
    while (s.n != 0 && is_space(s.p[s.n - 1]))
        s.n--;
    while (s.n != 0 && is_space(s.p[0]))
        s = ms_str_sub(s, 1, s.n);
    return s;
}

static bool is_number(struct ms_str s, bool *whole)
{
    uint32_t at = s.n != 0 && (s.p[0] == '-' || s.p[0] == '+');
    const uint32_t digits = ms_str_digits(s, at);
    uint32_t fraction = 0;
    *whole = digits != 0 && at + digits == s.n && s.p[0] != '+';
    at += digits;
    if (at < s.n && s.p[at] == '.') {
        fraction = ms_str_digits(s, at + 1);
        at += 1 + fraction;
    }
    if (digits + fraction == 0)
        return false;
    if (at < s.n && (s.p[at] == 'e' || s.p[at] == 'E')) {
        at += 1 + (at + 1 < s.n && (s.p[at + 1] == '-' || s.p[at + 1] == '+'));
        const uint32_t exponent = ms_str_digits(s, at);
        if (exponent == 0)
            return false;
        at += exponent;
    }
    return at == s.n;
}

static struct ms_plain *number_of(struct ms_arena *a, struct ms_str s, bool whole)
{
    double f;
    int64_t i;
    char text[64];
    if (whole && ms_str_i64(s, &i))
        return cfg_int(a, i);
    /* JSON's form wants a digit on both sides of the point and no plus in front. */
    const bool minus = s.p[0] == '-';
    struct ms_str rest = minus || s.p[0] == '+' ? ms_str_sub(s, 1, s.n) : s;
    const int64_t dot = ms_str_find(rest, '.');
    const bool open =
        dot >= 0 && ((uint32_t)dot + 1 == rest.n || rest.p[dot + 1] < '0' || rest.p[dot + 1] > '9');
    const uint32_t head = dot >= 0 ? (uint32_t)dot + 1 : rest.n;
    const int n =
        snprintf(text, sizeof text, "%s%s%.*s%s%.*s", minus ? "-" : "", rest.p[0] == '.' ? "0" : "",
                 (int)head, rest.p, open ? "0" : "", (int)(rest.n - head), rest.p + head);
    if (n < 0 || (size_t)n >= sizeof text || !ms_num_parse_f64(text, (size_t)n, &f))
        return cfg_text(a, s);
    return cfg_real(a, f);
}

static struct ms_plain *slime_value(struct ms_arena *a, struct ms_str s)
{
    bool whole;
    if (ms_str_is(s, "True") || ms_str_is(s, "False"))
        return cfg_bool(a, ms_str_is(s, "True"));
    return is_number(s, &whole) ? number_of(a, s, whole) : cfg_text(a, s);
}

/* Reads "  name ........ value"; false when the line has another form. */
static bool read_line(struct ms_str line, struct ms_str *name, struct ms_str *value)
{
    while (line.n != 0 && is_space(line.p[line.n - 1]))
        line.n--;
    if (line.n == 0 || !is_space(line.p[0]))
        return false;
    for (uint32_t i = 1; i + 1 < line.n; i++) {
        uint32_t end = i;
        if (line.p[i] != '.' || !is_space(line.p[i - 1]))
            continue;
        while (end < line.n && line.p[end] == '.')
            end++;
        if (end == line.n || !is_space(line.p[end]))
            continue;
        *name = trimmed(ms_str_sub(line, 0, i));
        *value = trimmed(ms_str_sub(line, end, line.n));
        return true;
    }
    return false;
}

enum ms_rc cfg_params_of_slime(const struct ms_plain **v, struct ms_str log, struct ms_arena *a,
                               struct ms_err *err)
{
    const struct ms_str begin =
        MS_STR("------------------------ arguments ------------------------");
    const struct ms_str end = MS_STR("-------------------- end of arguments ---------------------");
    const int64_t from = ms_str_find_str(log, begin);
    struct ms_plain *dict = ms_plain_new(a, MS_PLAIN_DICT);
    if (dict == NULL)
        return ms_arena_fail(a, err);
    if (from < 0)
        return ms_fail(err, MS_E_FORMAT, "no line \"%.*s\": not a log of slime", MS_STR_ARG(begin));
    struct ms_str rest = ms_str_sub(log, (uint32_t)from + begin.n, log.n), line, name, value;
    const int64_t to = ms_str_find_str(rest, end);
    if (to < 0)
        return ms_fail(err, MS_E_FORMAT, "no line \"%.*s\": the log is cut short", MS_STR_ARG(end));
    rest = ms_str_sub(rest, 0, (uint32_t)to);
    while (ms_str_split(&rest, '\n', &line)) {
        if (read_line(line, &name, &value))
            MS_TRY(cfg_set(a, dict, name, slime_value(a, value), err));
    }
    *v = dict;
    return dict->n != 0 ? MS_OK : ms_fail(err, MS_E_FORMAT, "no arguments between the lines");
}

/* ---- verl: Python's literals ------------------------------------------------------------------- */

struct literal {
    struct ms_str text; /* lines without their prefix */
    uint32_t at;
    struct ms_arena *a;
    struct ms_err *err;
};

enum { DEPTH = 64 };

static enum ms_rc read_literal(struct literal *l, int depth, struct ms_plain **out);

static enum ms_rc report_bad(struct literal *l, const char *what)
{
    uint32_t line = 1;
    for (uint32_t i = 0; i < l->at && i < l->text.n; i++)
        line += l->text.p[i] == '\n';
    return ms_fail(l->err, MS_E_FORMAT, "line %u of the dictionary: %s", line, what);
}

static char peek(struct literal *l)
{
    while (l->at < l->text.n && is_space(l->text.p[l->at]))
        l->at++;
    return l->at < l->text.n ? l->text.p[l->at] : '\0';
}

static void put_escape(struct ms_buf *b, char c)
{
    static const char letters[] = "nrtbf", bytes[] = "\n\r\t\b\f";
    const char *k = strchr(letters, c);
    ms_buf_putc(b, c != '\0' && k != NULL ? bytes[k - letters] : c);
}

/* Reads a text; texts behind each other are one, as Python's pprint breaks long ones. */
static enum ms_rc read_text(struct literal *l, struct ms_plain **out)
{
    struct ms_buf b = {.max = 1 << 20};
    enum ms_rc rc = MS_OK;
    for (char quote; rc == MS_OK && ((quote = peek(l)) == '\'' || quote == '"');) {
        for (l->at++; l->at < l->text.n && l->text.p[l->at] != quote; l->at++) {
            if (l->text.p[l->at] == '\\' && l->at + 1 < l->text.n)
                put_escape(&b, l->text.p[++l->at]);
            else
                ms_buf_putc(&b, l->text.p[l->at]);
        }
        if (l->at == l->text.n)
            rc = report_bad(l, "a text without end");
        l->at++;
    }
    if (rc == MS_OK)
        rc = ms_buf_check(&b, l->err);
    *out = rc == MS_OK ? cfg_text(l->a, ms_buf_slice(&b)) : NULL;
    ms_buf_free(&b);
    return rc != MS_OK ? rc : *out != NULL ? MS_OK : ms_arena_fail(l->a, l->err);
}

static enum ms_rc read_word(struct literal *l, struct ms_plain **out)
{
    const uint32_t from = l->at;
    bool whole;
    while (l->at < l->text.n && memchr(",]}): \n\t\r", l->text.p[l->at], 9) == NULL)
        l->at++;
    const struct ms_str word = ms_str_sub(l->text, from, l->at);
    if (ms_str_is_folded(word, "true") || ms_str_is_folded(word, "false"))
        *out = cfg_bool(l->a, ms_str_is_folded(word, "true"));
    else if (ms_str_is(word, "None") || ms_str_is(word, "null"))
        *out = ms_plain_new(l->a, MS_PLAIN_NONE);
    else if (is_number(word, &whole))
        *out = number_of(l->a, word, whole);
    else
        return report_bad(l, "a word that is no value");
    return *out != NULL ? MS_OK : ms_arena_fail(l->a, l->err);
}

static enum ms_rc read_items(struct literal *l, char close, int depth, struct ms_plain *to)
{
    l->at++;
    while (peek(l) != close) {
        struct ms_plain *item;
        MS_TRY(read_literal(l, depth - 1, &item));
        if (to->kind == MS_PLAIN_DICT) {
            const struct ms_plain *key = item;
            if (key->kind != MS_PLAIN_TEXT || peek(l) != ':')
                return report_bad(l, "a key that is no text, or has no value");
            l->at++;
            MS_TRY(read_literal(l, depth - 1, &item));
            MS_TRY(cfg_set(l->a, to, key->s, item, l->err));
        } else if (!ms_plain_add(l->a, to, item)) {
            return ms_arena_fail(l->a, l->err);
        }
        if (peek(l) == ',')
            l->at++;
        else if (peek(l) != close)
            return report_bad(l, "a comma or the end of a list is missing");
    }
    l->at++;
    return MS_OK;
}

static enum ms_rc read_literal(struct literal *l, int depth, struct ms_plain **out)
{
    const char c = peek(l);
    if (depth == 0)
        return report_bad(l, "values are nested too deep");
    if (c == '\0')
        return report_bad(l, "the log ends within it");
    if (c == '\'' || c == '"')
        return read_text(l, out);
    if (c != '{' && c != '[' && c != '(')
        return read_word(l, out);
    *out = ms_plain_new(l->a, c == '{' ? MS_PLAIN_DICT : c == '[' ? MS_PLAIN_LIST : MS_PLAIN_TUPLE);
    if (*out == NULL)
        return ms_arena_fail(l->a, l->err);
    MS_TRY(read_items(l, c == '{' ? '}' : c == '[' ? ']' : ')', depth, *out));
    /* A text in brackets is that text. */
    if (c == '(' && (*out)->n == 1 && (*out)->item[0]->kind == MS_PLAIN_TEXT)
        *out = (*out)->item[0];
    return MS_OK;
}

/* ---- verl: the log ------------------------------------------------------------------------------ */

/* Finds the last place where the dictionary begins. */
static int64_t find_last(struct ms_str log)
{
    static const char *const keys[] = {"{'actor_rollout_ref':", "{\"actor_rollout_ref\":"};
    int64_t last = -1;
    for (int k = 0; k < 2; k++) {
        const struct ms_str key = ms_str_of(keys[k]);
        for (int64_t at = 0, next;
             (next = ms_str_find_str(ms_str_sub(log, (uint32_t)at, log.n), key)) >= 0;
             at += next + 1)
            last = at + next > last ? at + next : last;
    }
    return last;
}

/* Appends the lines from the dictionary on without their prefix; other lines are of other writers. */
static void put_lines(struct ms_buf *out, struct ms_str log, uint32_t from)
{
    uint32_t begin = from;
    while (begin != 0 && log.p[begin - 1] != '\n')
        begin--;
    const struct ms_str prefix = ms_str_sub(log, begin, from);
    struct ms_str rest = ms_str_sub(log, begin, log.n), line;
    while (ms_str_split(&rest, '\n', &line)) {
        if (!ms_str_starts(line, prefix))
            continue;
        ms_buf_str(out, ms_str_sub(line, prefix.n, line.n));
        ms_buf_putc(out, '\n');
    }
}

enum ms_rc cfg_params_of_verl(const struct ms_plain **v, struct ms_str log, struct ms_arena *a,
                              struct ms_err *err)
{
    const int64_t from = find_last(log);
    struct ms_buf text = {.max = (size_t)1 << 30};
    struct ms_plain *root = NULL;
    if (from < 0)
        return ms_fail(err, MS_E_FORMAT,
                       "no dictionary {'actor_rollout_ref': ...}: not a log of verl");
    put_lines(&text, log, (uint32_t)from);
    enum ms_rc rc = ms_buf_check(&text, err);
    if (rc == MS_OK) {
        struct literal l = {.text = ms_buf_slice(&text), .a = a, .err = err};
        rc = read_literal(&l, DEPTH, &root);
    }
    ms_buf_free(&text);
    *v = root;
    return rc;
}
