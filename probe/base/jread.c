/* SPDX-License-Identifier: MIT
 *
 * jread: the pull reader.
 *
 * A state says what may come next in the current container; the only memory of the outer containers
 * is one bit per level. Every token is checked in full before it is returned, so a caller that
 * reads tokens to MS_J_END has read valid JSON.
 *
 * Speed: a dump is one third indentation and one third short strings, so these two kinds of bytes
 * are scanned 16 at a time (scan.h), a key is read together with its colon, and UTF-8 and escapes
 * are examined only where the scan stopped for them.
 */
#include "probe/base/jread.h"

#include "probe/base/num.h"
#include "probe/base/scan.h"

#include <assert.h>
#include <stdio.h>

/* What may come next, grouped by what the reader does then. */
enum state {
    OBJ_FIRST, /* a key or '}' */
    OBJ_KEY,   /* a key: a comma went before */
    ARR_FIRST, /* a value or ']' */
    ARR_VALUE, /* a value: a comma went before */
    OBJ_VALUE, /* a value: a key and its colon went before */
    TOP_VALUE, /* the one value of a text */
    OBJ_NEXT,  /* ',' or '}' */
    ARR_NEXT,  /* ',' or ']' */
    TOP_END,   /* nothing more */
    FAILED,
};

/* Longest text with an escape that ms_jread_members unescapes. */
enum { MEMBER_TEXT_MAX = 1 << 20 };

/* Marks rare paths, which the compiler places away from the hot path. */
#define COLD __attribute__((noinline, cold))

/* ---- state -------------------------------------------------------------------- */

static COLD enum ms_jtok fail_rc(struct ms_jread *r, enum ms_rc rc, const char *at, const char *why)
{
    r->state = FAILED;
    r->bad_rc = rc;
    r->bad_at = at;
    r->bad_why = why;
    return MS_J_ERR;
}

static COLD enum ms_jtok fail(struct ms_jread *r, const char *at, const char *why)
{
    return fail_rc(r, MS_E_FORMAT, at, why);
}

/* Sets the state after a complete value. */
static inline void after_value(struct ms_jread *r)
{
    if (r->state == OBJ_VALUE)
        r->state = OBJ_NEXT;
    else
        r->state = r->state == TOP_VALUE ? TOP_END : ARR_NEXT;
}

static enum ms_jtok open_container(struct ms_jread *r, bool is_object)
{
    if (r->depth == MS_JREAD_DEPTH)
        return fail_rc(r, MS_E_LIMIT, r->at, "nested deeper than 512 levels");
    uint64_t bit = UINT64_C(1) << (r->depth % 64);
    uint64_t *word = &r->in_object[r->depth / 64];
    *word = is_object ? *word | bit : *word & ~bit;
    r->depth++;
    r->at++;
    r->state = is_object ? OBJ_FIRST : ARR_FIRST;
    return is_object ? MS_J_OBJ : MS_J_ARR;
}

static bool level_is_object(const struct ms_jread *r, uint32_t level)
{
    return (r->in_object[level / 64] >> (level % 64) & 1) != 0;
}

/* Leaves the innermost container, whose closing bracket has been read or is supplied for a
 * truncated text. */
static enum ms_jtok close_container(struct ms_jread *r)
{
    bool was_object = level_is_object(r, --r->depth);
    if (r->depth != 0)
        r->state = level_is_object(r, r->depth - 1) ? OBJ_NEXT : ARR_NEXT;
    else
        r->state = (r->flags & MS_JREAD_MEMBERS) != 0 ? OBJ_NEXT : TOP_END;
    return was_object ? MS_J_OBJ_END : MS_J_ARR_END;
}

/* ---- the end of the text --------------------------------------------------------- */

static bool is_tolerant(const struct ms_jread *r)
{
    return (r->flags & MS_JREAD_TOLERANT) != 0;
}

static const char *why_incomplete(const struct ms_jread *r)
{
    if ((r->flags & MS_JREAD_MORE) != 0 && r->depth == 0)
        return "expected ',' at the end of a part";
    switch ((enum state)r->state) {
    case TOP_VALUE:
        return "empty file";
    case OBJ_VALUE:
        return "the text ends where a value was expected; the file may be cut off";
    case ARR_FIRST:
    case ARR_VALUE:
    case ARR_NEXT:
        return "the text ends inside an array; the file may be cut off";
    default:
        return "the text ends inside an object; the file may be cut off";
    }
}

/* Returns the token for the end of the text, when no token has begun. */
static COLD enum ms_jtok at_end(struct ms_jread *r)
{
    if ((r->flags & MS_JREAD_MEMBERS) != 0 && r->depth == 0) {
        bool more = (r->flags & MS_JREAD_MORE) != 0;
        if (more ? r->state == OBJ_KEY : r->state == OBJ_NEXT || r->state == OBJ_FIRST)
            return MS_J_END;
    }
    r->truncated = true;
    if (!is_tolerant(r))
        return fail(r, r->at, why_incomplete(r));
    if (r->state == OBJ_VALUE || r->state == TOP_VALUE) {
        after_value(r);
        return MS_J_NULL;
    }
    if (r->depth != 0)
        return close_container(r);
    r->state = TOP_END; /* a run of members that ends behind a comma */
    return MS_J_END;
}

/* Handles a text that ends inside the token at r->tok. */
static COLD enum ms_jtok cut_off(struct ms_jread *r, const char *why)
{
    r->truncated = true;
    if (!is_tolerant(r))
        return fail(r, r->tok, why);
    r->at = r->end;
    if (r->state == OBJ_FIRST || r->state == OBJ_KEY)
        return at_end(r); /* an incomplete key is left out */
    after_value(r);
    return MS_J_NULL;
}

/* ---- strings ----------------------------------------------------------------------- */

static int hex_value(char c)
{
    if (ms_is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns the place behind the escape at p; NULL at the end of the text or, with bad_why set, on an
 * error. */
static const char *pass_escape(struct ms_jread *r, const char *p)
{
    r->escaped = true;
    if (r->end - p < 2)
        return NULL;
    if (p[1] != 'u') {
        if (p[1] != '\0' && strchr("\"\\/bfnrt", p[1]) != NULL)
            return p + 2;
        fail(r, p, "unknown escape in a string; a backslash is written \\\\");
        return NULL;
    }
    for (int i = 2; i < 6; i++) {
        if (i == r->end - p)
            return NULL;
        if (hex_value(p[i]) < 0) {
            fail(r, p, "expected four hexadecimal digits after \\u");
            return NULL;
        }
    }
    return p + 6;
}

/* Tells whether the bytes from p to the end can be the start of a longer UTF-8 sequence. */
static bool is_cut_utf8(const char *p, const char *end)
{
    unsigned char lead = (unsigned char)*p;
    ptrdiff_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || end - p >= need)
        return false;
    while (++p < end) {
        if (((unsigned char)*p & 0xC0) != 0x80)
            return false;
    }
    return true;
}

/* Checks the byte at p that stopped the scan of a string and returns the place behind it; NULL as
 * above. */
static COLD const char *pass_special(struct ms_jread *r, const char *p)
{
    if (p == r->end)
        return NULL;
    if (*p == '\\')
        return pass_escape(r, p);
    if ((unsigned char)*p < ' ') {
        fail(r, p, "control character in a string; it must be written as an escape");
        return NULL;
    }
    unsigned n = ms_utf8_len(p, (size_t)(r->end - p));
    if (n == 0 && !is_cut_utf8(p, r->end))
        fail(r, p, "invalid UTF-8 in a string");
    return n != 0 ? p + n : NULL;
}

static bool set_text(struct ms_jread *r, const char *from, const char *to)
{
    if ((uint64_t)(to - from) > UINT32_MAX) {
        fail_rc(r, MS_E_LIMIT, r->tok, "text of 4 GiB or more");
        return false;
    }
    r->text = (struct ms_str){from, (uint32_t)(to - from)};
    return true;
}

/* Passes the string at r->at. On false, either bad_why is set or the text ends inside the
 * string. */
static inline bool pass_string(struct ms_jread *r)
{
    const char *from = r->at + 1;
    r->tok = r->at;
    r->escaped = false;
    const char *p = ms_scan_plain(from, r->end);
    while (p == r->end || *p != '"') {
        p = pass_special(r, p);
        if (p == NULL)
            return false;
        p = ms_scan_plain(p, r->end);
    }
    r->at = p + 1;
    return set_text(r, from, p);
}

static COLD enum ms_jtok no_string(struct ms_jread *r)
{
    if (r->bad_why != NULL)
        return MS_J_ERR;
    return cut_off(r, "this string has no closing quote; the file may be cut off");
}

static inline enum ms_jtok take_string(struct ms_jread *r)
{
    if (!pass_string(r))
        return no_string(r);
    after_value(r);
    return MS_J_STR;
}

/* Reads a key and the colon behind it. */
static inline enum ms_jtok take_key(struct ms_jread *r)
{
    if (r->at == r->end)
        return at_end(r);
    if (*r->at != '"')
        return fail(r, r->at,
                    r->state == OBJ_KEY ? "expected a key in quotes after ','"
                                        : "expected a key in quotes or '}'");
    if (!pass_string(r))
        return no_string(r);
    r->at = ms_scan_space(r->at, r->end);
    if (r->at == r->end)
        return cut_off(r, "this key has no value; the file may be cut off");
    if (*r->at != ':')
        return fail(r, r->at, "expected ':' after a key");
    r->at++;
    r->state = OBJ_VALUE;
    return MS_J_KEY;
}

/* ---- numbers and words --------------------------------------------------------------- */

/* Passes at least one digit at *p. On false there is none: bad_why is set, or the text has
 * ended. */
static bool pass_digits(struct ms_jread *r, const char **p, const char *why)
{
    const char *to = ms_scan_digits(*p, r->end);
    if (to == *p && to != r->end)
        fail(r, to, why);
    bool any = to != *p;
    *p = to;
    return any;
}

/* Passes the fraction and the exponent, if present. */
static bool pass_fraction(struct ms_jread *r, const char **p)
{
    if (*p < r->end && **p == '.') {
        ++*p;
        if (!pass_digits(r, p, "expected a digit after '.' in a number"))
            return false;
    }
    if (*p < r->end && (**p | 0x20) == 'e') {
        ++*p;
        if (*p < r->end && (**p == '+' || **p == '-'))
            ++*p;
        return pass_digits(r, p, "expected a digit in the exponent of a number");
    }
    return true;
}

static COLD enum ms_jtok no_number(struct ms_jread *r)
{
    if (r->bad_why != NULL)
        return MS_J_ERR;
    return cut_off(r, "the text ends inside this number; the file may be cut off");
}

/* Reads a number; `from` is the first byte behind the sign. */
static inline enum ms_jtok take_number(struct ms_jread *r, const char *from)
{
    const char *p = from;
    if (!pass_digits(r, &p, "expected a digit after '-'"))
        return no_number(r);
    if (*from == '0' && p - from > 1)
        return fail(r, r->at, "a number may not begin with 0");
    const char *digits_end = p;
    if (!pass_fraction(r, &p))
        return no_number(r);
    r->whole = p == digits_end;
    /* A number at the end of a truncated text may have lost digits, unless the number is the whole
     * text. */
    if (p == r->end && is_tolerant(r) && r->state != TOP_VALUE)
        return no_number(r);
    if (!set_text(r, r->at, p))
        return MS_J_ERR;
    r->at = p;
    after_value(r);
    return MS_J_NUM;
}

/* Reports a missing value. A byte order mark is refused here because Python's reader refuses it,
 * too. */
static COLD enum ms_jtok no_value(struct ms_jread *r)
{
    bool marked =
        r->state == TOP_VALUE && r->end - r->at >= 3 && memcmp(r->at, MS_UTF8_MARK, 3) == 0;
    return fail(
        r, r->at,
        marked ? "a byte order mark stands before the JSON; 'tail -c +4 FILE' prints it without"
               : "expected a value");
}

/* Reads a word, which begins at `from`: r->at, or the byte behind its sign. */
static enum ms_jtok take_word(struct ms_jread *r, const char *from, struct ms_str word,
                              enum ms_jtok tok)
{
    size_t left = (size_t)(r->end - from);
    if (memcmp(from, word.p, left < word.n ? left : word.n) != 0)
        return no_value(r);
    if (left < word.n)
        return cut_off(r, "the text ends inside this word; the file may be cut off");
    set_text(r, r->at, from + word.n);
    r->whole = false;
    r->at = from + word.n;
    after_value(r);
    return tok;
}

static enum ms_jtok take_negative(struct ms_jread *r)
{
    const char *from = r->at + 1;
    if (from < r->end && *from == 'I')
        return take_word(r, from, MS_STR("Infinity"), MS_J_NUM);
    return take_number(r, from);
}

static inline enum ms_jtok take_value(struct ms_jread *r)
{
    if (r->at == r->end)
        return at_end(r);
    r->tok = r->at;
    switch (*r->at) {
    case '"':
        return take_string(r);
    case '{':
        return open_container(r, true);
    case '[':
        return open_container(r, false);
    case '-':
        return take_negative(r);
    case 't':
        return take_word(r, r->at, MS_STR("true"), MS_J_TRUE);
    case 'f':
        return take_word(r, r->at, MS_STR("false"), MS_J_FALSE);
    case 'n':
        return take_word(r, r->at, MS_STR("null"), MS_J_NULL);
    case 'N':
        return take_word(r, r->at, MS_STR("NaN"), MS_J_NUM);
    case 'I':
        return take_word(r, r->at, MS_STR("Infinity"), MS_J_NUM);
    default:
        if (ms_is_digit(*r->at))
            return take_number(r, r->at);
        return no_value(r);
    }
}

/* ---- the reader -------------------------------------------------------------------------- */

static void set_up(struct ms_jread *r, const char *file, const char *p, size_t n, unsigned flags)
{
    static const char nothing[] = "";
    memset(r, 0, sizeof *r);
    r->at = r->tok = p != NULL ? p : nothing;
    r->end = r->at + n;
    r->file = p != NULL ? file : nothing;
    r->flags = (uint8_t)flags;
    r->state = (flags & MS_JREAD_MEMBERS) != 0 ? OBJ_FIRST : TOP_VALUE;
}

void ms_jread_init(struct ms_jread *r, const char *p, size_t n, unsigned flags)
{
    set_up(r, p, p, n, flags);
}

void ms_jread_init_part(struct ms_jread *r, const char *file, const char *p, size_t n, bool last,
                        unsigned flags)
{
    flags |= MS_JREAD_MEMBERS;
    /* Only the last piece can be truncated. */
    if (!last)
        flags = (flags | MS_JREAD_MORE) & ~(unsigned)MS_JREAD_TOLERANT;
    set_up(r, file, p, n, flags);
}

static enum ms_jtok close_with(struct ms_jread *r)
{
    r->at++;
    return close_container(r);
}

/* Reads what follows a value when that is no comma: a closing bracket or the end. */
static inline enum ms_jtok close_or_end(struct ms_jread *r)
{
    if (r->at == r->end)
        return at_end(r);
    if (r->depth == 0)
        return fail(r, r->at, "expected ',' after a value");
    if (*r->at == (r->state == OBJ_NEXT ? '}' : ']'))
        return close_with(r);
    return fail(r, r->at,
                r->state == OBJ_NEXT ? "expected ',' or '}' after a value"
                                     : "expected ',' or ']' after a value");
}

/* Tells, behind an opening bracket, whether the container is empty. */
static bool is_empty_container(const struct ms_jread *r)
{
    return r->at != r->end && *r->at == (r->state == OBJ_FIRST ? '}' : ']') && r->depth != 0;
}

enum ms_jtok ms_jread_next(struct ms_jread *r)
{
    r->at = r->tok = ms_scan_space(r->at, r->end);
    if (r->state == OBJ_NEXT || r->state == ARR_NEXT) {
        if (r->at == r->end || *r->at != ',')
            return close_or_end(r);
        r->state = r->state == OBJ_NEXT ? OBJ_KEY : ARR_VALUE;
        r->at = r->tok = ms_scan_space(r->at + 1, r->end);
    } else if (r->state == OBJ_FIRST || r->state == ARR_FIRST) {
        if (is_empty_container(r))
            return close_with(r);
    }
    if (r->state <= OBJ_KEY)
        return take_key(r);
    if (r->state <= TOP_VALUE)
        return take_value(r);
    if (r->state == TOP_END)
        return r->at == r->end ? MS_J_END : fail(r, r->at, "text after the end of the value");
    return MS_J_ERR;
}

/* Returns the place behind the string at p. */
static const char *leap_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        p += *p == '\\';
    return p < end ? p + 1 : end;
}

/* Moves to the end of the innermost open container by counting brackets only. */
static enum ms_jtok skip_value(struct ms_jread *r)
{
    uint32_t open = 1;
    while (open != 0) {
        r->at = ms_scan_flat(r->at, r->end);
        if (r->at == r->end)
            return at_end(r);
        if (*r->at == '"') {
            r->at = leap_string(r->at, r->end);
            continue;
        }
        open += *r->at == '{' || *r->at == '[' ? 1U : -1U;
        r->at++;
    }
    return close_container(r);
}

enum ms_jtok ms_jread_skip(struct ms_jread *r, enum ms_jtok tok)
{
    if (tok == MS_J_KEY)
        tok = ms_jread_next(r);
    if (tok != MS_J_OBJ && tok != MS_J_ARR)
        return tok;
    if ((r->flags & MS_JREAD_KNOWN) != 0)
        return skip_value(r);
    for (uint32_t outer = r->depth - 1; tok != MS_J_ERR && r->depth != outer;)
        tok = ms_jread_next(r);
    return tok;
}

size_t ms_jread_drop(struct ms_jread *r)
{
    const size_t n = (size_t)(r->at - r->file);
    r->before += n;
    r->file = r->tok = r->at;
    return n;
}

void ms_jread_moved(struct ms_jread *r, const char *p, size_t n)
{
    assert(r->at == r->file && n >= (size_t)(r->end - r->at));
    r->file = r->at = r->tok = p;
    r->end = p + n;
}

const char *ms_jread_item(const struct ms_jread *r)
{
    const char *p = ms_scan_space(r->at, r->end);
    if (r->state == ARR_NEXT && p < r->end && *p == ',')
        p = ms_scan_space(p + 1, r->end);
    else if (r->state != ARR_FIRST)
        return NULL;
    return p < r->end ? p : NULL;
}

void ms_jread_pass_item(struct ms_jread *r, const char *end)
{
    assert(r->state == ARR_FIRST || r->state == ARR_NEXT);
    r->at = r->tok = end;
    r->state = ARR_NEXT;
}

/* Returns the line of a place, 0 when the lines before it are gone. Lines are counted only for a
 * message. */
static uint32_t line_of(const struct ms_jread *r, const char *at)
{
    uint32_t line = 1;
    if (r->before != 0)
        return 0;
    for (const char *p = r->file; p < at && line < UINT32_MAX; line++) {
        p = memchr(p, '\n', (size_t)(at - p));
        if (p == NULL)
            break;
        p++;
    }
    return line;
}

static int64_t off_of(const struct ms_jread *r, const char *at)
{
    return (int64_t)r->before + (at - r->file);
}

enum ms_rc ms_jread_fail(const struct ms_jread *r, struct ms_err *err)
{
    assert(r->state == FAILED);
    return ms_fail_at(err, r->bad_rc, line_of(r, r->bad_at), off_of(r, r->bad_at), "%s",
                      r->bad_why);
}

enum ms_rc ms_jread_reject(const struct ms_jread *r, struct ms_err *err, const char *fmt, ...)
{
    char why[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    return ms_fail_at(err, MS_E_FORMAT, line_of(r, r->tok), off_of(r, r->tok), "%s", why);
}

/* ---- values ------------------------------------------------------------------------------ */

static uint32_t hex4(const char *p)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++)
        v = v << 4 | (uint32_t)hex_value(p[i]);
    return v;
}

/* Writes c in UTF-8. A lone surrogate gets its three-byte form, although valid UTF-8 has none. */
static unsigned put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    unsigned n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (unsigned i = n; --i > 0; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    static const uint8_t lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    out[0] = (char)(lead[n] | c);
    return n;
}

/* Decodes the escape at p, which the reader has checked, into *to. Returns the place behind the
 * escape. */
static const char *unescape(const char *p, const char *end, char **to)
{
    static const char from[] = "\"\\/bfnrt";
    static const char plain[] = "\"\\/\b\f\n\r\t";
    if (p[1] != 'u') {
        *(*to)++ = plain[strchr(from, p[1]) - from];
        return p + 2;
    }
    uint32_t c = hex4(p + 2);
    p += 6;
    if ((c & 0xFC00) == 0xD800 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
        uint32_t low = hex4(p + 2);
        if ((low & 0xFC00) == 0xDC00) {
            c = 0x10000 + ((c & 0x3FF) << 10) + (low & 0x3FF);
            p += 6;
        }
    }
    *to += put_utf8(*to, c);
    return p;
}

enum ms_rc ms_jread_text(const struct ms_jread *r, struct ms_buf *scratch, struct ms_str *out,
                         struct ms_err *err)
{
    if (!r->escaped) {
        *out = r->text;
        return MS_OK;
    }
    ms_buf_clear(scratch);
    /* Every escape is longer than its decoded text. */
    char *to = ms_buf_room(scratch, r->text.n);
    if (to == NULL)
        return ms_buf_check(scratch, err);
    const char *p = r->text.p;
    const char *end = p + r->text.n;
    while (p < end) {
        const char *slash = memchr(p, '\\', (size_t)(end - p));
        size_t run = (size_t)((slash != NULL ? slash : end) - p);
        memcpy(to, p, run);
        to += run;
        p += run;
        if (slash != NULL)
            p = unescape(p, end, &to);
    }
    scratch->n = (size_t)(to - scratch->p);
    *out = ms_buf_slice(scratch);
    return MS_OK;
}

enum ms_rc ms_jread_members(struct ms_jread *r, const char *what, ms_jread_visit_fn *visit,
                            void *of, struct ms_err *err)
{
    struct ms_buf scratch = {.max = MEMBER_TEXT_MAX};
    enum ms_jtok tok = ms_jread_next(r);
    enum ms_rc rc = MS_OK;
    if (tok != MS_J_OBJ && tok != MS_J_ERR && !r->truncated)
        rc = ms_jread_reject(r, err, "expected an object of %s", what);
    while (rc == MS_OK && tok > MS_J_END && !r->truncated && (tok = ms_jread_next(r)) == MS_J_KEY)
        rc = visit(of, r, &scratch, err);
    if (rc == MS_OK && tok == MS_J_OBJ_END)
        tok = ms_jread_next(r);
    if (rc == MS_OK && tok == MS_J_ERR)
        rc = ms_jread_fail(r, err);
    ms_buf_free(&scratch);
    return rc;
}

bool ms_jread_f64(const struct ms_jread *r, double *out)
{
    return ms_num_parse_f64(r->text.p, r->text.n, out);
}

bool ms_jread_i64(const struct ms_jread *r, int64_t *out)
{
    return ms_str_i64(r->text, out);
}

/* ---- parts ------------------------------------------------------------------------------- */

/* Returns the first newline behind `from` that follows a ',' and is followed by exactly `indent`
 * blanks and a quote; NULL when there is none. */
static const char *find_record(const char *from, const char *end, unsigned indent)
{
    for (const char *p = from + 1; p < end; p++) {
        p = memchr(p, '\n', (size_t)(end - p));
        if (p == NULL || (size_t)(end - p) < (size_t)indent + 2)
            return NULL;
        if (p[-1] != ',' || p[indent + 1] != '"')
            continue;
        unsigned blanks = 0;
        while (blanks < indent && p[blanks + 1] == ' ')
            blanks++;
        if (blanks == indent)
            return p;
    }
    return NULL;
}

unsigned ms_jread_split(const char *p, size_t n, unsigned indent, unsigned parts, size_t *cut)
{
    unsigned made = 1;
    cut[0] = 0;
    /* Without indentation a record cannot be told from the members inside it. */
    for (unsigned i = 1; i < parts && indent != 0; i++) {
        size_t target = n / parts * i;
        if (target <= cut[made - 1])
            continue;
        const char *at = find_record(p + target, p + n, indent);
        if (at == NULL)
            break;
        cut[made++] = (size_t)(at - p);
    }
    cut[made] = n;
    return made;
}
