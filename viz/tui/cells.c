/* SPDX-License-Identifier: MIT
 *
 * cells: writes text and bars into the grid.
 */
#include "viz/tui/cells.h"

#include "probe/base/mem.h"

#include <stdio.h>

enum { ELLIPSIS = 0x2026, TEXT_MAX = 4096 };

/* ---- the grid --------------------------------------------------------------------- */

bool tui_cells_size(struct tui_cells *g, int w, int h)
{
    size_t n = (size_t)w * (size_t)h;
    if (n > g->cap) {
        struct tui_cell *p = ms_realloc(g->p, n * sizeof *p);
        if (p == NULL)
            return false;
        g->p = p;
        g->cap = n;
    }
    g->w = w;
    g->h = h;
    tui_cells_clear(g);
    return true;
}

void tui_cells_free(struct tui_cells *g)
{
    ms_free(g->p);
    *g = (struct tui_cells){0};
}

void tui_cells_clear(struct tui_cells *g)
{
    for (size_t i = 0; i < (size_t)g->w * (size_t)g->h; i++)
        g->p[i] = (struct tui_cell){.ch = ' '};
}

/* ---- characters ------------------------------------------------------------------- */

/* Returns the ASCII replacement of a code point. */
static uint32_t ascii_of(uint32_t ch)
{
    static const struct {
        uint32_t ch;
        char plain;
    } stand_in[] = {{0x2500, '-'}, {0x2502, '|'}, {0x250a, ':'}, {0x2506, ':'}, {0x25b8, '>'},
                    {0x25be, 'v'}, {0x2026, '~'}, {0x00b7, '.'}, {0x2192, '>'}, {0x2190, '<'},
                    {0x2191, '^'}, {0x2193, 'v'}, {0x00d7, 'x'}, {0x21c6, '='}, {0x00b1, '~'},
                    {0x25cf, 'o'}, {0x2591, '.'}, {0x25c2, '<'}, {0x2501, '='}, {0x2503, '|'},
                    {0x00b5, 'u'}};
    if (ch < 0x80)
        return ch;
    /* block elements: lower and left eighths */
    if (ch >= 0x2581 && ch <= 0x2588)
        return (uint32_t)(unsigned char)"_..:-=+#"[ch - 0x2581];
    if (ch >= 0x2589 && ch <= 0x258f)
        return ch <= 0x258c ? '#' : ' ';
    for (size_t i = 0; i < sizeof stand_in / sizeof *stand_in; i++) {
        if (stand_in[i].ch == ch)
            return (uint32_t)(unsigned char)stand_in[i].plain;
    }
    return '?';
}

static uint32_t decode(const unsigned char *p, unsigned n)
{
    static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t ch = p[0] & first[n];
    for (unsigned i = 1; i < n; i++)
        ch = ch << 6 | (p[i] & 0x3f);
    return ch;
}

/* Tells whether a character is a control character. Bidirectional controls count: they would let
 * a name rearrange the screen. */
static bool is_control(uint32_t ch)
{
    return ch < 0x20 || (ch >= 0x7f && ch < 0xa0) || ch == 0xad || ch == 0x61c ||
           (ch >= 0x200e && ch <= 0x200f) || (ch >= 0x2028 && ch <= 0x202e) ||
           (ch >= 0x2060 && ch <= 0x206f) || ch == 0xfeff || (ch >= 0xfff9 && ch <= 0xfffb);
}

uint32_t tui_take(struct ms_str *s)
{
    unsigned n = ms_utf8_len(s->p, s->n);
    uint32_t ch = n != 0 ? decode((const unsigned char *)s->p, n) : '?';
    *s = ms_str_sub(*s, n != 0 ? n : 1, s->n);
    return is_control(ch) ? '?' : ch;
}

int tui_text_width(struct ms_str s)
{
    int w = 0;
    while (s.n != 0)
        w += tui_width(tui_take(&s));
    return w;
}

/* ---- putting ----------------------------------------------------------------------- */

/* Clears the other half of a wide character when one half is overwritten. */
static void part_wide(struct tui_cells *g, int y, int x)
{
    struct tui_cell *c = tui_at(g, y, x), *left = tui_at(g, y, x - 1), *right = tui_at(g, y, x + 1);
    if (c == NULL)
        return;
    if (c->ch == 0 && left != NULL)
        left->ch = ' ';
    if (c->ch != 0 && right != NULL && right->ch == 0)
        right->ch = ' ';
}

int tui_char(struct tui_cells *g, int y, int x, enum tui_token t, uint32_t ch)
{
    int w = tui_width(ch);
    if (g->ascii)
        ch = ascii_of(ch);
    struct tui_cell *c = tui_at(g, y, x);
    if (w == 0)
        return x;
    if (w == 2 && tui_at(g, y, x + 1) == NULL)
        ch = ' ';
    for (int i = 0; i < w; i++)
        part_wide(g, y, x + i);
    if (c != NULL)
        *c = (struct tui_cell){.ch = ch, .token = (uint8_t)t};
    if (w == 2 && (c = tui_at(g, y, x + 1)) != NULL)
        *c = (struct tui_cell){.ch = g->ascii ? ' ' : 0, .token = (uint8_t)t};
    return x + w;
}

static int put_all(struct tui_cells *g, int y, int x, int end, enum tui_token t, struct ms_str s)
{
    while (s.n != 0 && x < end) {
        uint32_t ch = tui_take(&s);
        if (x + tui_width(ch) > end)
            break;
        x = tui_char(g, y, x, t, ch);
    }
    return x;
}

int tui_put(struct tui_cells *g, int y, int x, int w, enum tui_token t, struct ms_str s)
{
    if (x + w > g->w)
        w = g->w - x;
    if (w <= 0)
        return x;
    if (tui_fit(s, w) == s.n)
        return put_all(g, y, x, x + w, t, s);
    int at = put_all(g, y, x, x + w - 1, t, s);
    return tui_char(g, y, at, t, ELLIPSIS);
}

int tui_puts(struct tui_cells *g, int y, int x, int w, enum tui_token t, const char *z)
{
    return tui_put(g, y, x, w, t, ms_str_of(z));
}

int tui_printf(struct tui_cells *g, int y, int x, int w, enum tui_token t, const char *fmt, ...)
{
    char text[TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return tui_puts(g, y, x, w, t, text);
}

void tui_put_right(struct tui_cells *g, int y, int x, enum tui_token t, const char *z)
{
    int w = tui_text_width(ms_str_of(z));
    tui_puts(g, y, x - w, w, t, z);
}

/* Drops the beginning of a text that is far longer than w columns, at a boundary of letters. */
static struct ms_str near_end(struct ms_str s, int w)
{
    enum { BYTES = 64 }; /* a column has at most so many bytes, marks above a letter included */
    const uint32_t most = (uint32_t)(w > 0 ? w : 0) * BYTES + BYTES;
    if (s.n <= most)
        return s;
    s = ms_str_sub(s, s.n - most, s.n);
    while (s.n != 0 && ((unsigned char)*s.p & 0xC0) == 0x80)
        s = ms_str_sub(s, 1, s.n);
    return s;
}

struct ms_str tui_tail(struct ms_str s, int w)
{
    s = near_end(s, w);
    for (int all = tui_text_width(s); all > w;)
        all -= tui_width(tui_take(&s));
    return s;
}

uint32_t tui_fit(struct ms_str s, int w)
{
    struct ms_str rest = s;
    while (rest.n != 0) {
        struct ms_str behind = rest;
        w -= tui_width(tui_take(&behind));
        if (w < 0)
            break;
        rest = behind;
    }
    return s.n - rest.n;
}

/* The parts of a name between its dots, and the columns available for each. */
struct parts {
    struct ms_str s[16];
    int w[16], n;
};

static bool take_parts(struct parts *p, struct ms_str s)
{
    enum { MOST = sizeof p->s / sizeof *p->s, NAME_MOST = 4096 };
    if (s.n > NAME_MOST)
        return false;
    for (p->n = 0; p->n < MOST; p->n++) {
        int64_t dot = ms_str_find(s, '.');
        p->s[p->n] = dot >= 0 ? ms_str_sub(s, 0, (uint32_t)dot) : s;
        p->w[p->n] = tui_text_width(p->s[p->n]);
        if (dot < 0)
            return p->n++ > 1;
        s = ms_str_sub(s, (uint32_t)dot + 1, s.n);
    }
    return false;
}

/* Shortens the longest parts until the name fits into w columns; false when a part would get too
 * short. */
static bool shorten_parts(struct parts *p, int w)
{
    enum { PART_LEAST = 3 };
    int all = p->n - 1;
    for (int i = 0; i < p->n; i++)
        all += p->w[i];
    for (; all > w; all--) {
        int longest = 0;
        for (int i = 1; i < p->n; i++)
            longest = p->w[i] >= p->w[longest] ? i : longest;
        if (p->w[longest] <= PART_LEAST)
            return false;
        p->w[longest]--;
    }
    return true;
}

int tui_put_name(struct tui_cells *g, int y, int x, int w, enum tui_token t, struct ms_str s)
{
    enum { WORTH_BOTH_ENDS = 12 };
    struct parts parts;
    if (x + w > g->w)
        w = g->w - x;
    if (w < WORTH_BOTH_ENDS || tui_fit(s, w) == s.n)
        return tui_put(g, y, x, w, t, s);
    if (take_parts(&parts, s) && shorten_parts(&parts, w)) {
        for (int i = 0; i < parts.n; i++) {
            x = i > 0 ? tui_char(g, y, x, t, '.') : x;
            x = tui_put(g, y, x, parts.w[i], t, parts.s[i]);
        }
        return x;
    }
    int head = w / 3;
    struct ms_str tail = tui_tail(s, w - head - 1);
    int at = put_all(g, y, x, x + head, t, s);
    at = tui_char(g, y, at, t, ELLIPSIS);
    return put_all(g, y, at, x + w, t, tail);
}

void tui_fill(struct tui_cells *g, int y, int x, int w, enum tui_token t, uint32_t ch)
{
    for (int i = 0; i < w; i++)
        tui_char(g, y, x + i, t, ch);
}

void tui_mark(struct tui_cells *g, int y, int x, int w, uint8_t flags, enum tui_token token)
{
    for (int i = x; i < x + w; i++) {
        struct tui_cell *c = tui_at(g, y, i);
        if (c == NULL)
            continue;
        c->flags |= flags;
        if (token < TUI_TOKENS)
            c->token = (uint8_t)token;
    }
}

void tui_bar(struct tui_cells *g, int y, int x, int w, enum tui_token t, double share)
{
    double eighths = (share < 0 ? 0 : share > 1 ? 1 : share) * (double)w * 8;
    int n = (int)(eighths + 0.5);
    tui_fill(g, y, x, n / 8, t, 0x2588);
    if (n % 8 != 0)
        tui_char(g, y, x + n / 8, t, (uint32_t)(0x2590 - n % 8));
}

/* ---- as text ------------------------------------------------------------------------ */

void tui_put_utf8(struct ms_buf *out, uint32_t ch)
{
    char p[4];
    size_t n = ch < 0x80 ? 1 : ch < 0x800 ? 2 : ch < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; ch >>= 6)
        p[i] = (char)(0x80 | (ch & 0x3f));
    p[0] = (char)(lead[n] | ch);
    ms_buf_put(out, p, n);
}

/* Returns the letter of a cell's look; upper case means reverse. */
static char look_letter(const struct tui_cell *c)
{
    char letter = "tdaewpuiokmyxs"[c->token];
    if ((c->flags & TUI_REVERSE) != 0)
        return (char)(letter - 'a' + 'A');
    return c->token == TUI_TEXT || c->ch == ' ' ? ' ' : letter;
}

static void end_line(struct ms_buf *out, size_t start)
{
    while (out->n > start && out->p[out->n - 1] == ' ')
        out->n--;
    ms_buf_putc(out, '\n');
}

void tui_cells_write(const struct tui_cells *g, bool looks, struct ms_buf *out)
{
    for (int y = 0; y < g->h; y++) {
        const struct tui_cell *row = &g->p[(size_t)y * (size_t)g->w];
        size_t start = out->n;
        for (int x = 0; x < g->w; x++) {
            if (row[x].ch != 0)
                tui_put_utf8(out, row[x].ch);
        }
        end_line(out, start);
        start = out->n;
        for (int x = 0; looks && x < g->w; x++)
            ms_buf_putc(out, look_letter(&row[x]));
        if (looks)
            end_line(out, start);
    }
}

/* ---- the width of a character ------------------------------------------------------- */

/* By the tables of Unicode 14.0.0. Combining characters have no width and are left out, so that a
 * cell is always one character. Unassigned code points count as their neighbours; the planes of
 * ideographs are wide to their end. The terminal's own width of a character cannot be queried, and
 * the locale's would make pictures depend on the machine. */
struct range {
    uint32_t from, to;
};

#include "viz/tui/cell_width.h"

static bool is_within(const struct range *r, size_t n, uint32_t ch)
{
    size_t low = 0;
    while (low < n) {
        size_t middle = low + (n - low) / 2;
        if (ch > r[middle].to)
            low = middle + 1;
        else if (ch < r[middle].from)
            n = middle;
        else
            return true;
    }
    return false;
}

int tui_width(uint32_t ch)
{
    if (ch < 0x300)
        return 1;
    if (is_within(none, sizeof none / sizeof *none, ch))
        return 0;
    return is_within(wide, sizeof wide / sizeof *wide, ch) ? 2 : 1;
}
