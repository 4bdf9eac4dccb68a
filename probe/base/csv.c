/* SPDX-License-Identifier: MIT
 *
 * csv: fields are slices of the input text; only a field with doubled quotes is rebuilt, in a
 * scratch buffer. The buffer may move while the row grows, so a rebuilt field is recorded by its
 * offset and gets its pointer when the row is complete.
 */
#include "probe/base/csv.h"

#include "probe/base/num.h"
#include "probe/base/scan.h"

#include <math.h>

void ms_csv_init(struct ms_csv *r, const char *p, size_t n)
{
    *r = (struct ms_csv){.at = p, .start = p, .end = p + n, .next_line = 1};
    r->scratch.max = SIZE_MAX / 2;
    if (n >= 3 && memcmp(p, MS_UTF8_MARK, 3) == 0)
        r->at += 3;
}

void ms_csv_free(struct ms_csv *r)
{
    ms_vec_free(&r->fields);
    ms_buf_free(&r->scratch);
}

static bool ends_line(char c)
{
    return c == '\n' || c == '\r';
}

/* Skips one line end at the current position, if there is one. */
static void pass_line_end(struct ms_csv *r)
{
    if (r->at == r->end || !ends_line(*r->at))
        return;
    if (*r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n')
        r->at++;
    r->at++;
    r->next_line++;
}

static enum ms_rc fail_here(const struct ms_csv *r, struct ms_err *err, const char *why)
{
    return ms_fail_at(err, MS_E_FORMAT, r->line, r->at - r->start, "%s", why);
}

/* Adds a field. p is NULL for a field in the scratch buffer, whose offset is where the buffer ended
 * before. */
static enum ms_rc add_field(struct ms_csv *r, const char *p, size_t n, struct ms_err *err)
{
    if (n > UINT32_MAX)
        return ms_fail(err, MS_E_LIMIT, "a field of more than 4 GiB");
    if (r->fields.n == MS_CSV_COLUMNS)
        return ms_fail_at(err, MS_E_LIMIT, r->line, r->at - r->start, "more than %d fields",
                          MS_CSV_COLUMNS);
    struct ms_str *slot = ms_vec_push(&r->fields);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct ms_str){p, (uint32_t)n};
    return MS_OK;
}

static enum ms_rc read_plain(struct ms_csv *r, struct ms_err *err)
{
    const char *from = r->at;
    while (r->at < r->end && *r->at != ',' && !ends_line(*r->at))
        r->at++;
    return add_field(r, from, (size_t)(r->at - from), err);
}

/* Moves to the next quote of a quoted field; returns where the part before it begins. */
static const char *to_quote(struct ms_csv *r)
{
    const char *from = r->at;
    while (r->at < r->end && *r->at != '"') {
        bool pair = *r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n';
        r->next_line += ends_line(*r->at) && !pair;
        r->at++;
    }
    return from;
}

static bool at_doubled(const struct ms_csv *r)
{
    return r->at + 1 < r->end && r->at[0] == '"' && r->at[1] == '"';
}

/* Reads a quoted field from behind its opening quote. */
static enum ms_rc read_quoted(struct ms_csv *r, struct ms_err *err)
{
    const char *from = to_quote(r);
    size_t n = (size_t)(r->at - from), kept = r->scratch.n;
    bool rebuilt = at_doubled(r);
    while (at_doubled(r)) {
        ms_buf_put(&r->scratch, from, (size_t)(r->at - from) + 1);
        r->at += 2;
        from = to_quote(r);
    }
    if (r->at == r->end)
        return fail_here(r, err, "a quote is never closed");
    if (rebuilt) {
        ms_buf_put(&r->scratch, from, (size_t)(r->at - from));
        n = r->scratch.n - kept;
        MS_TRY(ms_buf_check(&r->scratch, err));
    }
    r->at++;
    if (r->at < r->end && *r->at != ',' && !ends_line(*r->at))
        return fail_here(r, err, "text behind a closing quote");
    return add_field(r, rebuilt ? NULL : from, n, err);
}

static void point_into_scratch(struct ms_csv *r)
{
    size_t off = 0;
    for (size_t i = 0; i < r->fields.n; i++) {
        struct ms_str *f = &r->fields.p[i];
        if (f->p != NULL)
            continue;
        f->p = r->scratch.p + off;
        off += f->n;
    }
}

enum ms_rc ms_csv_next(struct ms_csv *r, bool *more, struct ms_err *err)
{
    r->fields.n = 0;
    ms_buf_clear(&r->scratch);
    while (r->at < r->end && ends_line(*r->at))
        pass_line_end(r);
    r->line = r->next_line;
    *more = r->at < r->end;
    while (*more) {
        bool quoted = r->at < r->end && *r->at == '"';
        r->at += quoted;
        MS_TRY(quoted ? read_quoted(r, err) : read_plain(r, err));
        if (r->at == r->end || *r->at != ',')
            break;
        r->at++;
    }
    pass_line_end(r);
    point_into_scratch(r);
    return MS_OK;
}

/* ---- numbers ---------------------------------------------------------- */

static struct ms_str trim_spaces(struct ms_str s)
{
    while (s.n != 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = ms_str_sub(s, 1, s.n);
    while (s.n != 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

static bool is_word(struct ms_str s, const char *word)
{
    return strlen(word) == s.n && strncasecmp(s.p, word, s.n) == 0;
}

bool ms_csv_number(struct ms_str field, double *out)
{
    static const char *const missing[] = {"nan", "na", "n/a", "null", "none", "-nan"};
    struct ms_str s = trim_spaces(field);
    *out = NAN;
    if (s.n == 0)
        return true;
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        if (is_word(s, missing[i]))
            return true;
    }
    bool minus = s.p[0] == '-';
    if (minus || s.p[0] == '+')
        s = ms_str_sub(s, 1, s.n);
    if (is_word(s, "inf") || is_word(s, "infinity")) {
        *out = minus ? -INFINITY : INFINITY;
        return true;
    }
    if (s.n == 0 || s.p[0] == '-' || !ms_num_parse_f64(s.p, s.n, out))
        return false;
    *out = minus ? -*out : *out;
    return true;
}

/* ---- writing ---------------------------------------------------------- */

static bool begins_formula(struct ms_str s)
{
    static const char *const wide[] = {"\xef\xbc\x8b", "\xef\xbc\x8d", "\xef\xbc\x9d",
                                       "\xef\xbc\xa0", "\xef\xbc\x85"};
    for (size_t i = 0; i < sizeof wide / sizeof *wide && s.n != 0 && s.p[0] == wide[i][0]; i++) {
        if (ms_str_starts(s, ms_str_of(wide[i])))
            return true;
    }
    return s.n != 0 && memchr("+-=@%\t\r", s.p[0], 7) != NULL;
}

/* Tells whether the text is numbers joined by semicolons, "-0.5;0.25", as folded rows have. */
static bool is_numbers(struct ms_str s)
{
    struct ms_str part;
    double v;
    while (ms_str_split(&s, ';', &part)) {
        if (!ms_num_parse_f64(part.p, part.n, &v))
            return false;
    }
    return true;
}

bool ms_csv_is_formula(struct ms_str text)
{
    bool begins = begins_formula(text);
    struct ms_str rest = text;
    for (int64_t at; !begins && (at = ms_str_find(rest, ';')) >= 0;) {
        rest = ms_str_sub(rest, (uint32_t)at + 1, rest.n);
        begins = begins_formula(rest);
    }
    return begins && !is_numbers(text);
}

/* Fast check that is true for nearly every name and number: the field needs neither quotes nor the
 * guard. */
static bool is_bare(struct ms_str s, enum ms_csv_guard guard)
{
    return s.n == 0 || (ms_scan_bare(s.p, s.p + s.n) == s.p + s.n &&
                        !(guard == MS_CSV_FOREIGN && begins_formula(s)));
}

static bool needs_quotes(struct ms_str s)
{
    for (uint32_t i = 0; i < s.n; i++) {
        if (s.p[i] == ',' || s.p[i] == '"' || s.p[i] == '\n' || s.p[i] == '\r')
            return true;
    }
    return false;
}

/* Destination of a field: a buffer or a file. */
struct sink {
    struct ms_buf *buf;
    struct ms_out *out;
};

static void sink_put(const struct sink *to, const char *p, size_t n)
{
    if (to->buf != NULL)
        ms_buf_put(to->buf, p, n);
    else
        ms_out_write(to->out, p, n);
}

static void put_doubling_quotes(const struct sink *to, struct ms_str s)
{
    for (const char *quote; s.n != 0 && (quote = memchr(s.p, '"', s.n)) != NULL;) {
        uint32_t n = (uint32_t)(quote - s.p) + 1;
        sink_put(to, s.p, n);
        sink_put(to, "\"", 1);
        s = ms_str_sub(s, n, s.n);
    }
    sink_put(to, s.p, s.n);
}

/* Writes text with an apostrophe before each part that begins like a formula. */
static void put_guarded(const struct sink *to, struct ms_str s)
{
    struct ms_str part;
    const char *begin = s.p;
    while (ms_str_split(&s, ';', &part)) {
        if (part.p != begin)
            sink_put(to, ";", 1);
        if (begins_formula(part))
            sink_put(to, "'", 1);
        put_doubling_quotes(to, part);
    }
}

static void put_odd_field(const struct sink *to, struct ms_str s, enum ms_csv_guard guard)
{
    bool formula = guard == MS_CSV_FOREIGN && ms_csv_is_formula(s);
    if (!formula && !needs_quotes(s)) {
        sink_put(to, s.p, s.n);
        return;
    }
    sink_put(to, "\"", 1);
    (formula ? put_guarded : put_doubling_quotes)(to, s);
    sink_put(to, "\"", 1);
}

void ms_csv_put(struct ms_buf *out, struct ms_str text, enum ms_csv_guard guard)
{
    if (is_bare(text, guard))
        ms_buf_str(out, text);
    else
        put_odd_field(&(struct sink){.buf = out}, text, guard);
}

void ms_csv_write(struct ms_out *out, struct ms_str text, enum ms_csv_guard guard)
{
    if (is_bare(text, guard))
        ms_out_str(out, text);
    else
        put_odd_field(&(struct sink){.out = out}, text, guard);
}
