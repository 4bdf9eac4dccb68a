/* SPDX-License-Identifier: MIT
 *
 * jwrite: the streaming writer.
 *
 * Every item reserves once the most room it can need and is then formatted in place. The buffer
 * doubles as usual until it holds DRAIN_AT bytes; from then on it is handed to the drain each time
 * it is full.
 */
#include "probe/base/jwrite.h"

#include "probe/base/num.h"
#include "probe/base/scan.h"

#include <math.h>

enum {
    DRAIN_AT = 64 * 1024,
    PIECE = 4096,   /* bytes of a string that are escaped at a time */
    ESCAPE_MAX = 6, /* written bytes per byte of a string, at most: \u00XX */
};

/* ---- room ----------------------------------------------------------------------- */

static void drain_now(struct ms_jwrite *w)
{
    enum ms_rc rc = w->drain(w->ctx, w->buf.p, w->buf.n, &w->err);
    if (rc != MS_OK)
        ms_fail(&w->err, rc, "%s", ms_rc_text(rc)); /* unless the drain said more */
    w->buf.n = 0;
}

static char *room_slowly(struct ms_jwrite *w, size_t n)
{
    if (w->err.rc != MS_OK)
        return NULL;
    bool is_full = w->buf.n >= DRAIN_AT || n > w->buf.max - w->buf.n;
    if (w->drain != NULL && w->buf.n != 0 && is_full)
        drain_now(w);
    char *p = w->err.rc == MS_OK ? ms_buf_room(&w->buf, n) : NULL;
    if (p == NULL)
        ms_buf_check(&w->buf, &w->err);
    return p;
}

static inline bool has_room(const struct ms_jwrite *w, size_t n)
{
    return w->buf.cap - w->buf.n > n && w->err.rc == MS_OK;
}

/* Returns room for n bytes; NULL after a failure. */
static inline char *make_room(struct ms_jwrite *w, size_t n)
{
    return has_room(w, n) ? w->buf.p + w->buf.n : room_slowly(w, n);
}

static inline void use_room(struct ms_jwrite *w, const char *end)
{
    w->buf.n = (size_t)(end - w->buf.p);
}

static void set_misuse(struct ms_jwrite *w, const char *what)
{
    ms_fail(&w->err, MS_E_ARG, "JSON writer: %s", what);
}

/* ---- layout ----------------------------------------------------------------------- */

static size_t line_room(const struct ms_jwrite *w)
{
    return 2 + MS_JWRITE_SPARE + (size_t)w->indent * w->depth;
}

static inline char *put_line(const struct ms_jwrite *w, char *out, uint32_t depth)
{
    return ms_jwrite_line(out, (size_t)w->indent * depth);
}

/* Writes the separator before an item and returns room for n bytes of the item. */
static inline char *begin_item(struct ms_jwrite *w, size_t n)
{
    char *out = make_room(w, n + line_room(w));
    if (out == NULL)
        return NULL;
    if (!w->first)
        *out++ = ',';
    if (w->indent != 0)
        out = put_line(w, out, w->depth);
    else if (!w->first)
        *out++ = ' ';
    w->first = false;
    return out;
}

/* Like begin_item, for a value: behind its key, in a list, or at the top level. */
static inline char *begin_value(struct ms_jwrite *w, size_t n)
{
    if (w->is_object != w->after_key) {
        set_misuse(w, "a value in an object without a key");
        return NULL;
    }
    if (w->depth != 0 && !w->after_key)
        return begin_item(w, n);
    if (w->depth == 0 && !w->first) {
        set_misuse(w, "a second value at the top");
        return NULL;
    }
    w->after_key = w->first = false;
    return make_room(w, n);
}

static void open_bracket(struct ms_jwrite *w, bool is_object)
{
    char *out = begin_value(w, 1);
    if (out == NULL)
        return;
    if (w->depth == MS_JWRITE_DEPTH) {
        ms_fail(&w->err, MS_E_LIMIT, "JSON writer: nested deeper than 512 levels");
        return;
    }
    *out++ = is_object ? '{' : '[';
    use_room(w, out);
    uint64_t bit = UINT64_C(1) << (w->depth % 64);
    uint64_t *word = &w->outer[w->depth / 64];
    *word = w->is_object ? *word | bit : *word & ~bit;
    w->depth++;
    w->is_object = is_object;
    w->first = true;
}

static void close_bracket(struct ms_jwrite *w, bool is_object)
{
    if (w->depth == 0 || w->is_object != is_object || w->after_key) {
        set_misuse(w, "a closing bracket that closes nothing");
        return;
    }
    char *out = make_room(w, line_room(w));
    if (out == NULL)
        return;
    w->depth--;
    if (!w->first && w->indent != 0)
        out = put_line(w, out, w->depth);
    *out++ = is_object ? '}' : ']';
    use_room(w, out);
    w->is_object = (w->outer[w->depth / 64] >> (w->depth % 64) & 1) != 0;
    w->first = false;
}

void ms_jwrite_obj(struct ms_jwrite *w)
{
    open_bracket(w, true);
}

void ms_jwrite_obj_end(struct ms_jwrite *w)
{
    close_bracket(w, true);
}

void ms_jwrite_arr(struct ms_jwrite *w)
{
    open_bracket(w, false);
}

void ms_jwrite_arr_end(struct ms_jwrite *w)
{
    close_bracket(w, false);
}

/* ---- strings ------------------------------------------------------------------------- */

static char *put_u(char *out, uint32_t unit)
{
    static const char hex[] = "0123456789abcdef";
    *out++ = '\\';
    *out++ = 'u';
    for (int shift = 12; shift >= 0; shift -= 4)
        *out++ = hex[unit >> shift & 15];
    return out;
}

/* Returns the length of the three-byte form of a surrogate at p, or 0. */
static unsigned surrogate_len(const unsigned char *p, const unsigned char *end)
{
    bool is = end - p >= 3 && p[0] == 0xED && p[1] >= 0xA0 && p[1] <= 0xBF && (p[2] & 0xC0) == 0x80;
    return is ? 3 : 0;
}

/* Escapes one character outside ASCII. */
static const char *escape_wide(const char *from, const char *end, char **out)
{
    const unsigned char *p = (const unsigned char *)from;
    unsigned n = ms_utf8_len(from, (size_t)(end - from));
    if (n == 0)
        n = surrogate_len(p, (const unsigned char *)end);
    if (n == 0) {
        *out = put_u(*out, 0xDC00U + *p);
        return from + 1;
    }
    uint32_t c = n == 2 ? p[0] & 0x1FU : n == 3 ? p[0] & 0x0FU : p[0] & 0x07U;
    for (unsigned i = 1; i < n; i++)
        c = c << 6 | (p[i] & 0x3FU);
    if (c >= 0x10000) {
        *out = put_u(*out, 0xD7C0 + (c >> 10));
        c = 0xDC00 + (c & 0x3FF);
    }
    *out = put_u(*out, c);
    return from + n;
}

static const char *escape_one(const char *p, const char *end, char **out)
{
    static const char named[] = "\"\\\b\f\n\r\t";
    static const char letter[] = "\"\\bfnrt";
    if ((signed char)*p < 0)
        return escape_wide(p, end, out);
    const char *at = *p != '\0' ? strchr(named, *p) : NULL;
    if (at == NULL) {
        *out = put_u(*out, (unsigned char)*p);
        return p + 1;
    }
    *(*out)++ = '\\';
    *(*out)++ = letter[at - named];
    return p + 1;
}

static char *escape_text(char *out, const char *p, const char *end)
{
    while (p < end) {
        const char *stop = ms_scan_plain(p, end);
        memcpy(out, p, (size_t)(stop - p));
        out += stop - p;
        p = stop;
        if (p < end)
            p = escape_one(p, end, &out);
    }
    return out;
}

/* Returns the exact length that escape_text() writes, for when the upper bound does not fit. */
static size_t escaped_len(const char *p, const char *end)
{
    size_t n = 0;
    while (p < end) {
        const char *stop = ms_scan_plain(p, end);
        char unit[2 * ESCAPE_MAX];
        char *to = unit;
        n += (size_t)(stop - p);
        p = stop < end ? escape_one(stop, end, &to) : stop;
        n += (size_t)(to - unit);
    }
    return n;
}

/* Returns the end of the next piece of a string, not inside a character. */
static const char *piece_end(const char *p, const char *end)
{
    if (end - p <= PIECE)
        return end;
    const char *cut = p + PIECE;
    for (int i = 0; i < 3 && ((unsigned char)*cut & 0xC0) == 0x80; i++)
        cut--;
    return cut;
}

static void put_text(struct ms_jwrite *w, struct ms_str s)
{
    if (s.n == 0)
        return;
    const char *end = s.p + s.n;
    for (const char *p = s.p; p < end;) {
        const char *to = piece_end(p, end);
        size_t most = (size_t)(to - p) * ESCAPE_MAX;
        char *out = make_room(w, has_room(w, most) ? most : escaped_len(p, to));
        if (out == NULL)
            return;
        use_room(w, escape_text(out, p, to));
        p = to;
    }
}

static void put_raw(struct ms_jwrite *w, const char *text, size_t n)
{
    char *out = make_room(w, n);
    if (out == NULL)
        return;
    memcpy(out, text, n);
    use_room(w, out + n);
}

void ms_jwrite_key(struct ms_jwrite *w, struct ms_str key)
{
    if (!w->is_object || w->after_key) {
        set_misuse(w, "a key outside an object or without a value");
        return;
    }
    char *out = begin_item(w, 1);
    if (out == NULL)
        return;
    *out++ = '"';
    use_room(w, out);
    put_text(w, key);
    put_raw(w, "\": ", 3);
    w->after_key = true;
}

void ms_jwrite_str(struct ms_jwrite *w, struct ms_str s)
{
    char *out = begin_value(w, 1);
    if (out == NULL)
        return;
    *out++ = '"';
    use_room(w, out);
    put_text(w, s);
    put_raw(w, "\"", 1);
}

/* ---- other values ------------------------------------------------------------------------ */

static void put_short(struct ms_jwrite *w, const char *text, size_t n)
{
    char *out = begin_value(w, n);
    if (out == NULL)
        return;
    memcpy(out, text, n);
    use_room(w, out + n);
}

void ms_jwrite_i64(struct ms_jwrite *w, int64_t v)
{
    char text[MS_NUM_MAX];
    put_short(w, text, ms_num_i64(text, v));
}

void ms_jwrite_u64(struct ms_jwrite *w, uint64_t v)
{
    char text[MS_NUM_MAX];
    put_short(w, text, ms_num_u64(text, v));
}

/* Writes a number that JSON does not have. */
static void put_strict(struct ms_jwrite *w, double v)
{
    const char *text = isnan(v) ? "null" : v > 0 ? "9e999" : "-9e999";
    put_short(w, text, strlen(text));
}

void ms_jwrite_f64(struct ms_jwrite *w, double v)
{
    char text[MS_NUM_MAX];
    if (w->strict && !isfinite(v))
        put_strict(w, v);
    else
        put_short(w, text, ms_num_f64(text, v));
}

void ms_jwrite_bool(struct ms_jwrite *w, bool v)
{
    put_short(w, v ? "true" : "false", v ? 4 : 5);
}

void ms_jwrite_null(struct ms_jwrite *w)
{
    put_short(w, "null", 4);
}

void ms_jwrite_raw(struct ms_jwrite *w, struct ms_str json)
{
    char *out = begin_value(w, 0);
    if (out == NULL)
        return;
    use_room(w, out);
    for (size_t at = 0; at < json.n; at += PIECE) {
        size_t left = json.n - at;
        put_raw(w, json.p + at, left < PIECE ? left : PIECE);
    }
}

char *ms_jwrite_begin_members(struct ms_jwrite *w, size_t n)
{
    if (!w->is_object || w->after_key) {
        set_misuse(w, "members outside an object or in place of a value");
        return NULL;
    }
    char *out = make_room(w, n + 1);
    if (out != NULL && !w->first)
        *out++ = ',';
    return out;
}

void ms_jwrite_end_members(struct ms_jwrite *w, const char *end)
{
    use_room(w, end);
    w->first = false;
}

void ms_jwrite_members(struct ms_jwrite *w, struct ms_str json)
{
    char *out = ms_jwrite_begin_members(w, json.n);
    if (out == NULL)
        return;
    memcpy(out, json.p, json.n);
    ms_jwrite_end_members(w, out + json.n);
}

void ms_jwrite_kstr(struct ms_jwrite *w, const char *key, const char *z)
{
    ms_jwrite_key(w, ms_str_of(key));
    ms_jwrite_str(w, ms_str_of(z));
}

void ms_jwrite_ki64(struct ms_jwrite *w, const char *key, int64_t v)
{
    ms_jwrite_key(w, ms_str_of(key));
    ms_jwrite_i64(w, v);
}

void ms_jwrite_kf64(struct ms_jwrite *w, const char *key, double v)
{
    ms_jwrite_key(w, ms_str_of(key));
    ms_jwrite_f64(w, v);
}

void ms_jwrite_kbool(struct ms_jwrite *w, const char *key, bool v)
{
    ms_jwrite_key(w, ms_str_of(key));
    ms_jwrite_bool(w, v);
}

void ms_jwrite_ktext(struct ms_jwrite *w, const char *key, struct ms_str s)
{
    ms_jwrite_key(w, ms_str_of(key));
    ms_jwrite_str(w, s);
}

void ms_jwrite_kmaybe(struct ms_jwrite *w, const char *key, int64_t v)
{
    ms_jwrite_key(w, ms_str_of(key));
    if (v >= 0)
        ms_jwrite_i64(w, v);
    else
        ms_jwrite_null(w);
}

/* ---- life ------------------------------------------------------------------------------------ */

void ms_jwrite_init(struct ms_jwrite *w, int indent, size_t max)
{
    memset(w, 0, sizeof *w);
    w->buf.max = max;
    w->indent = indent > 0 ? indent : 0;
    w->first = true;
}

enum ms_rc ms_jwrite_finish(struct ms_jwrite *w, struct ms_err *err)
{
    if (w->depth != 0 || w->first)
        set_misuse(w, w->first ? "nothing was written" : "a bracket is still open");
    if (w->err.rc == MS_OK && w->drain != NULL && w->buf.n != 0)
        drain_now(w);
    if (err != NULL && err->rc == MS_OK && w->err.rc != MS_OK)
        *err = w->err;
    return w->err.rc;
}

void ms_jwrite_free(struct ms_jwrite *w)
{
    ms_buf_free(&w->buf);
}
