/* SPDX-License-Identifier: MIT
 *
 * trace_item_fast: see the header.
 *
 * The zero bytes behind the text end every run of bytes, so nothing but the scan of blanks compares
 * with the end of the text. Every function returns NULL for what mstx__trace_item_read must look at.
 */
#include "mstx/foreign/trace_item_fast.h"

#include "mstx/foreign/trace_text.h"

#include "probe/base/scan.h"

enum { NESTED_MOST = 8, INT_DIGITS = 18, COPIED = 16 };

struct fast {
    struct mstx_trace_json *json;
    struct mstx_trace_item *it;
    const char *end;
};

/* ---- tokens ------------------------------------------------------------------ */

static inline const char *skip_space(const struct fast *f, const char *p)
{
    return (unsigned char)*p > ' ' ? p : ms_scan_space(p, f->end);
}

/* Passes a text whose opening quote is at p; the text is set without its quotes. */
static inline const char *pass_text(const struct fast *f, const char *p, struct ms_str *text)
{
    const char *from = p + 1;
    const char *to = ms_scan_plain(from, f->end + MSTX_TRACE_TEXT_PAD);
    if (*to != '"' || to - from > UINT32_MAX / 2)
        return NULL;
    *text = (struct ms_str){from, (uint32_t)(to - from)};
    return to + 1;
}

static inline const char *pass_digits(const char *p)
{
    while (ms_is_digit(*p))
        p++;
    return p;
}

static const char *pass_number(const char *p, struct ms_str *text)
{
    const char *from = p;
    p += *p == '-';
    const char *first = p;
    p = pass_digits(p);
    if (p == first || (*first == '0' && p - first > 1))
        return NULL;
    if (*p == '.') {
        const char *part = p + 1;
        p = pass_digits(part);
        if (p == part)
            return NULL;
    }
    if ((*p | 0x20) == 'e') {
        p += p[1] == '+' || p[1] == '-' ? 2 : 1;
        const char *part = p;
        p = pass_digits(part);
        if (p == part)
            return NULL;
    }
    *text = (struct ms_str){from, (uint32_t)(p - from)};
    return p;
}

static const char *pass_word(const char *p, const char *word, size_t n)
{
    return memcmp(p, word, n) == 0 ? p + n : NULL; /* the padding is longer than any word */
}

static const char *pass_value(const struct fast *f, const char *p, unsigned depth);

static const char *pass_members(const struct fast *f, const char *p, char close, unsigned depth)
{
    struct ms_str key;
    p = skip_space(f, p + 1);
    if (*p == close)
        return p + 1;
    while (p != NULL) {
        if (close == '}') {
            p = *p == '"' ? pass_text(f, p, &key) : NULL;
            p = p != NULL ? skip_space(f, p) : NULL;
            p = p != NULL && *p == ':' ? skip_space(f, p + 1) : NULL;
        }
        p = p != NULL ? pass_value(f, p, depth) : NULL;
        p = p != NULL ? skip_space(f, p) : NULL;
        if (p != NULL && *p == close)
            return p + 1;
        p = p != NULL && *p == ',' ? skip_space(f, p + 1) : NULL;
    }
    return NULL;
}

/* Passes a value of any kind. */
static const char *pass_value(const struct fast *f, const char *p, unsigned depth)
{
    struct ms_str text;
    switch (*p) {
    case '"':
        return pass_text(f, p, &text);
    case '[':
        return depth < NESTED_MOST ? pass_members(f, p, ']', depth + 1) : NULL;
    case '{':
        return depth < NESTED_MOST ? pass_members(f, p, '}', depth + 1) : NULL;
    case 't':
        return pass_word(p, "true", 4);
    case 'f':
        return pass_word(p, "false", 5);
    case 'n':
        return pass_word(p, "null", 4);
    default:
        return pass_number(p, &text);
    }
}

/* ---- args ---------------------------------------------------------------------- */

/* Appends a member of args, with the brace or comma before it. */
static bool keep_member(struct ms_buf *b, const char *from, const char *to)
{
    const size_t n = (size_t)(to - from);
    if (b->cap - b->n < n + COPIED + 2) {
        ms_buf_puts(b, b->n == 0 ? "{" : ", ");
        ms_buf_put(b, from, n);
        return b->bad == MS_OK;
    }
    char *at = b->p + b->n;
    if (b->n == 0) {
        *at++ = '{';
    } else {
        *at++ = ',';
        *at++ = ' ';
    }
    /* Both the text and the buffer have room for whole blocks. */
    for (size_t i = 0; i < n; i += COPIED)
        memcpy(at + i, from + i, COPIED);
    b->n = (size_t)(at - b->p) + n;
    return true;
}

static const char *read_member(struct fast *f, const char *p)
{
    struct ms_str key, text = MS_STR("");
    const char *from = p;
    p = *p == '"' ? pass_text(f, p, &key) : NULL;
    p = p != NULL ? skip_space(f, p) : NULL;
    p = p != NULL && *p == ':' ? skip_space(f, p + 1) : NULL;
    if (p == NULL)
        return NULL;
    const bool is_text = *p == '"', is_number = ms_is_digit(*p) || *p == '-';
    p = is_text ? pass_text(f, p, &text) : is_number ? pass_number(p, &text) : pass_value(f, p, 0);
    if (p == NULL)
        return NULL;
    if (is_number && f->it->number.n == 0)
        f->it->number = text;
    const enum ms_jtok kind = is_text ? MS_J_STR : is_number ? MS_J_NUM : MS_J_NULL;
    if (mstx__trace_item_member(f->it, key, text, kind) == MSTX_MEMBER_OWN)
        return NULL;
    return keep_member(&f->json->args, from, p) ? p : NULL;
}

/* Reads the object at p. */
static const char *read_args(struct fast *f, const char *p)
{
    struct ms_buf *b = &f->json->args;
    if (*p != '{')
        return NULL;
    ms_buf_clear(b);
    p = skip_space(f, p + 1);
    if (*p == '}')
        return p + 1;
    for (;;) {
        p = read_member(f, p);
        p = p != NULL ? skip_space(f, p) : NULL;
        if (p == NULL)
            return NULL;
        if (*p == '}')
            break;
        if (*p != ',')
            return NULL;
        p = skip_space(f, p + 1);
    }
    ms_buf_putc(b, '}');
    f->it->args = ms_buf_slice(b);
    return b->bad == MS_OK ? p + 1 : NULL;
}

/* ---- the event -------------------------------------------------------------------- */

/* Reads microseconds with up to three decimals that count. */
static const char *read_us(const char *p, int64_t *ns)
{
    const char *from = p;
    uint64_t us = 0, part = 0;
    for (; ms_is_digit(*p); p++)
        us = us * 10 + (uint64_t)(*p - '0');
    if (p == from || p - from > INT_DIGITS || (*from == '0' && p - from > 1) ||
        us >= MSTX_TRACE_TIME_MOST / 1000)
        return NULL;
    if (*p == '.') {
        unsigned digits = 0;
        for (p++; ms_is_digit(*p); p++) {
            if (digits++ < 3)
                part = part * 10 + (uint64_t)(*p - '0');
        }
        for (; digits < 3 && digits != 0; digits++)
            part *= 10;
        if (digits == 0)
            return NULL;
    }
    *ns = (int64_t)(us * 1000 + part);
    return (*p | 0x20) != 'e' ? p : NULL;
}

/* Reads a member that may be a text or a number and is kept as it is written. */
static const char *read_either(const struct fast *f, const char *p, struct ms_str *to)
{
    return *p == '"' ? pass_text(f, p, to) : pass_number(p, to);
}

static const char *read_text(const struct fast *f, const char *p, struct ms_str *to)
{
    return *p == '"' ? pass_text(f, p, to) : NULL;
}

static inline uint32_t code_of(struct ms_str key)
{
    uint32_t code;
    memcpy(&code, key.p, sizeof code); /* ends with the quote where the key is shorter */
    return key.n <= 4 ? le32toh(code) & (uint32_t)((UINT64_C(1) << 8 * key.n) - 1) : 0;
}

#define CODE(a, b, c, d)                                                                           \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

/* Reads the value at p of a member of the event. */
static const char *read_top(struct fast *f, struct ms_str key, const char *p)
{
    struct mstx_trace_item *it = f->it;
    switch (code_of(key)) {
    case CODE('p', 'h', 0, 0):
        return read_text(f, p, &it->phase);
    case CODE('c', 'a', 't', 0):
        return read_text(f, p, &it->category);
    case CODE('n', 'a', 'm', 'e'):
        return read_text(f, p, &it->name);
    case CODE('p', 'i', 'd', 0):
        return read_either(f, p, &it->pid);
    case CODE('t', 'i', 'd', 0):
        return read_either(f, p, &it->tid);
    case CODE('i', 'd', 0, 0):
        return read_either(f, p, &it->id);
    case CODE('t', 's', 0, 0):
        it->has_ts = true;
        return read_us(p, &it->ts);
    case CODE('d', 'u', 'r', 0):
        return read_us(p, &it->dur);
    case CODE('a', 'r', 'g', 's'):
        return read_args(f, p);
    default:
        return pass_value(f, p, 0);
    }
}

const char *mstx__trace_item_fast(struct mstx_trace_json *r, struct mstx_trace_item *it,
                                  const char *p, const char *end)
{
    struct fast f = {r, it, end};
    struct ms_str key;
    mstx__trace_item_init(it);
    p = skip_space(&f, p + 1);
    while (*p == '"') {
        p = pass_text(&f, p, &key);
        p = p != NULL ? skip_space(&f, p) : NULL;
        p = p != NULL && *p == ':' ? skip_space(&f, p + 1) : NULL;
        p = p != NULL ? read_top(&f, key, p) : NULL;
        p = p != NULL ? skip_space(&f, p) : NULL;
        if (p == NULL)
            return NULL;
        if (*p == '}')
            return p + 1;
        if (*p != ',')
            return NULL;
        p = skip_space(&f, p + 1);
    }
    return NULL;
}
