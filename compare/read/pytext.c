/* SPDX-License-Identifier: MIT
 *
 * pytext: JSON values as Python's str() and repr() print them, as in the official tables: [2,
 * 3], ['a', None], True.
 */
#include "compare/read/pytext.h"
#include "probe/base/jread.h"
#include "probe/base/num.h"
#include "probe/base/scan.h"

static uint32_t code_point(const unsigned char *p, unsigned n)
{
    uint32_t c = n == 1 ? p[0] : n == 2 ? p[0] & 0x1fU : n == 3 ? p[0] & 0xfU : p[0] & 7U;
    for (unsigned i = 1; i < n; i++)
        c = c << 6 | (p[i] & 0x3fU);
    return c;
}

/* Tells whether Python prints a character as it is. It escapes control characters, spaces other
 * than U+0020, formats such as the soft hyphen, surrogates and private characters. Rare formats and
 * unassigned characters are not checked. */
static bool is_printable_above_ascii(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {{0x80, 0xa0},       {0xad, 0xad},       {0x600, 0x605},   {0x61c, 0x61c},
                  {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x1680, 0x1680}, {0x180e, 0x180e},
                  {0x2000, 0x200f},   {0x2028, 0x202f},   {0x205f, 0x206f}, {0x3000, 0x3000},
                  {0xd800, 0xf8ff},   {0xfeff, 0xfeff},   {0xfff0, 0xfffb}, {0xfffe, 0xffff},
                  {0xe0000, 0xe00ff}, {0xf0000, 0x10ffff}};
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        if (c >= hidden[i].first && c <= hidden[i].last)
            return false;
    }
    return true;
}

/* Returns the length of the UTF-8 sequence at p, at most `left`. The JSON reader has validated the
 * text. */
static unsigned sequence_length(const unsigned char *p, size_t left)
{
    unsigned n = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    return n <= left ? n : 1;
}

static void write_escaped(struct ms_buf *out, const unsigned char *p, unsigned n)
{
    uint32_t c = code_point(p, n);
    if (c == '\n')
        ms_buf_puts(out, "\\n");
    else if (c == '\r')
        ms_buf_puts(out, "\\r");
    else if (c == '\t')
        ms_buf_puts(out, "\\t");
    else
        ms_buf_printf(out, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
}

void cmp__py_repr_text(struct ms_buf *out, struct ms_str s)
{
    char quote = ms_str_find(s, '\'') >= 0 && ms_str_find(s, '"') < 0 ? '"' : '\'';
    bool swift = s.n != 0 && ms_str_find(s, '\'') < 0 && ms_str_find(s, 0x7f) < 0;
    uint32_t plain = 0;
    ms_buf_putc(out, quote);
    for (uint32_t i = 0; i < s.n;) {
        if (swift) /* copies a run of characters that need no escape */
            i = (uint32_t)(ms_scan_plain(s.p + i, s.p + s.n) - s.p);
        if (i == s.n)
            break;
        const unsigned char *p = (const unsigned char *)s.p + i;
        unsigned n = sequence_length(p, s.n - i);
        bool same =
            n == 1 ? p[0] >= 0x20 && p[0] < 0x7f && p[0] != '\\' && p[0] != (unsigned char)quote
                   : is_printable_above_ascii(code_point(p, n));
        if (!same) {
            ms_buf_put(out, s.p + plain, i - plain);
            plain = i + n;
            if (p[0] == '\\' || p[0] == (unsigned char)quote) {
                ms_buf_putc(out, '\\');
                ms_buf_putc(out, (char)p[0]);
            } else {
                write_escaped(out, p, n);
            }
        }
        i += n;
    }
    ms_buf_put(out, s.p + plain, s.n - plain);
    ms_buf_putc(out, quote);
}

static void write_number(struct ms_buf *out, const struct ms_jread *r)
{
    double v;
    char text[MS_NUM_MAX];
    if (ms_jread_is_int(r) || !ms_jread_f64(r, &v))
        ms_buf_str(out, r->text);
    else if (v != v)
        ms_buf_puts(out, "nan");
    else if (v - v != 0)
        ms_buf_puts(out, v > 0 ? "inf" : "-inf");
    else
        ms_buf_put(out, text, ms_num_f64(text, v));
}

static void write_value(struct ms_buf *out, struct ms_jread *r, enum ms_jtok tok,
                        struct ms_buf *scratch);

static void write_text(struct ms_buf *out, struct ms_jread *r, struct ms_buf *scratch)
{
    struct ms_str text;
    if (ms_jread_text(r, scratch, &text, NULL) == MS_OK)
        cmp__py_repr_text(out, text);
}

static void write_list(struct ms_buf *out, struct ms_jread *r, struct ms_buf *scratch)
{
    enum ms_jtok tok;
    const char *between = "";
    ms_buf_putc(out, '[');
    while ((tok = ms_jread_next(r)) > MS_J_END && tok != MS_J_ARR_END) {
        ms_buf_puts(out, between);
        write_value(out, r, tok, scratch);
        between = ", ";
    }
    ms_buf_putc(out, ']');
}

static void write_dict(struct ms_buf *out, struct ms_jread *r, struct ms_buf *scratch)
{
    const char *between = "";
    ms_buf_putc(out, '{');
    while (ms_jread_next(r) == MS_J_KEY) {
        ms_buf_puts(out, between);
        write_text(out, r, scratch);
        ms_buf_puts(out, ": ");
        write_value(out, r, ms_jread_next(r), scratch);
        between = ", ";
    }
    ms_buf_putc(out, '}');
}

/* Appends a value as an item of a list: text in quotes. The JSON reader limits the depth of the
 * recursion. */
static void write_value(struct ms_buf *out, struct ms_jread *r, enum ms_jtok tok,
                        struct ms_buf *scratch)
{
    switch (tok) {
    case MS_J_STR:
        write_text(out, r, scratch);
        break;
    case MS_J_NUM:
        write_number(out, r);
        break;
    case MS_J_ARR:
        write_list(out, r, scratch);
        break;
    case MS_J_OBJ:
        write_dict(out, r, scratch);
        break;
    case MS_J_TRUE:
        ms_buf_puts(out, "True");
        break;
    case MS_J_FALSE:
        ms_buf_puts(out, "False");
        break;
    default:
        ms_buf_puts(out, "None");
        break;
    }
}

void cmp__py_str(struct ms_buf *out, struct ms_str json, struct ms_buf *scratch)
{
    struct ms_jread r;
    struct ms_str text;
    ms_jread_init(&r, json.p, json.n, 0);
    enum ms_jtok tok = json.n != 0 ? ms_jread_next(&r) : MS_J_NULL;
    if (tok == MS_J_STR && ms_jread_text(&r, scratch, &text, NULL) == MS_OK)
        ms_buf_str(out, text);
    else
        write_value(out, &r, tok, scratch);
}
