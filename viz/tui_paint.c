/* SPDX-License-Identifier: MIT
 *
 * tui_paint: colours, moves of the cursor and cells as bytes.
 */
#include "viz/tui_paint.h"

#include <stdio.h>

enum { BLOCK = 0x2588, BLACK = 0, WHITE = 7, GAP_MOST = 6, REPEAT_LEAST = 5, TAB = 8 };
/* Columns of the cursor: behind the last one it waits until "\r" or a letter comes. */
enum { UNKNOWN = -1, WAITS = -2, WAY_MAX = 24 };
enum {
    SHIFT_MOST = 12,
    SHIFT_ROWS = 2,
    GAIN_LEAST = 20,
    SLIDE_LEAST = 5,
    TRY_MOST = 8,
    WHOLE_LEAST = 24
};

/* ---- colours ------------------------------------------------------------------------ */

/* By the table of the page's tokens; -1 is the terminal's own colour.  `on` is the colour of letters
 * upon a slice of that kind, -1 where there are no slices of it. */
static const struct {
    short c256, c8, on;
    unsigned mono;
} palette[TUI_TOKENS] = {
    [TUI_TEXT] = {-1, -1, -1, 0},
    [TUI_DIM] = {8, -1, -1, 0},
    [TUI_ACCENT] = {75, 6, -1, TUI_BOLD},
    [TUI_ERROR] = {203, 1, -1, TUI_BOLD},
    [TUI_WARNING] = {214, 3, BLACK, TUI_BOLD},
    [TUI_PASS] = {78, 2, -1, 0},
    [TUI_UNMATCHED] = {141, 5, -1, 0},
    [TUI_INFO] = {245, 7, -1, 0},
    [TUI_OVERFLOW] = {203, 1, -1, TUI_REVERSE},
    /* Of slices there are many: numbers below 16 are half as long to send. */
    [TUI_COMPUTE] = {4, 4, WHITE, 0},
    [TUI_COMM] = {6, 6, BLACK, 0},
    [TUI_COPY] = {3, 3, BLACK, 0},
    [TUI_USER] = {12, 4, BLACK, 0},
    [TUI_IDLE] = {8, -1, -1, 0},
};

static int colour_of(const struct tui_paint *p, unsigned token)
{
    return p->can.colours >= 256 ? palette[token].c256
           : p->can.colours > 0  ? palette[token].c8
                                 : -1;
}

/* Letters on a slice need light on dark or dark on light; eight colours have no light blue. */
static int upon(const struct tui_paint *p, unsigned token)
{
    return p->can.colours < 256 && palette[token].c8 == palette[TUI_COMPUTE].c8 ? WHITE
                                                                                : palette[token].on;
}

static bool is_slice(const struct tui_paint *p, const struct tui_cell *c)
{
    return p->can.colours > 0 && (c->flags & TUI_REVERSE) != 0 && palette[c->token].on >= 0;
}

/* A cell that is nothing but its colour. */
static bool is_full(const struct tui_paint *p, const struct tui_cell *c)
{
    return is_slice(p, c) && c->ch == ' ' && (c->flags & TUI_UNDERLINE) == 0;
}

static struct tui_pen pen_of(const struct tui_paint *p, const struct tui_cell *c)
{
    struct tui_pen pen = {colour_of(p, c->token), -1, c->flags};
    if (is_slice(p, c))
        return (struct tui_pen){upon(p, c->token), colour_of(p, c->token),
                                c->flags & ~(unsigned)TUI_REVERSE};
    if (c->ch == ' ' && (c->flags & ~TUI_BOLD) == 0)
        return (struct tui_pen){pen.fg, -1, 0}; /* empty, whatever it is a part of */
    if (p->can.colours == 0)
        pen.attrs ^= palette[c->token].mono;
    else if (c->token == TUI_OVERFLOW)
        pen.attrs ^= TUI_REVERSE;
    return pen;
}

/* ---- changing the pen ------------------------------------------------------------------ */

struct sgr { /* parameters of one "select graphic rendition" */
    struct ms_buf *out;
    size_t start;
};

static void parameter(struct sgr *s, const char *before, int v)
{
    ms_buf_printf(s->out, "%s%s%d", s->out->n == s->start ? "\033[" : ";", before, v);
}

static void put_colour(struct sgr *s, int colour, bool background)
{
    int base = background ? 10 : 0;
    if (colour < 0)
        parameter(s, "", base + 39);
    else if (colour < 8)
        parameter(s, "", base + 30 + colour);
    else if (colour < 16)
        parameter(s, "", base + 90 + colour - 8);
    else
        parameter(s, background ? "48;5;" : "38;5;", colour);
}

static void put_attributes(struct tui_paint *p, struct sgr *s, unsigned want)
{
    static const struct {
        unsigned flag;
        int on, off;
    } kinds[] = {{TUI_BOLD, 1, 22}, {TUI_UNDERLINE, 4, 24}, {TUI_REVERSE, 7, 27}};
    if ((p->pen.attrs & ~want) != 0 && !p->can.separate) {
        parameter(s, "", 0);
        p->pen = (struct tui_pen){-1, -1, 0};
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        bool has = (p->pen.attrs & kinds[i].flag) != 0, wants = (want & kinds[i].flag) != 0;
        if (has != wants)
            parameter(s, "", wants ? kinds[i].on : kinds[i].off);
    }
    p->pen.attrs = want;
}

/* Is the colour of letters seen in such a cell? */
static bool shows_letters(uint32_t ch, unsigned attrs)
{
    return ch != ' ' || (attrs & (TUI_REVERSE | TUI_UNDERLINE)) != 0;
}

/* The colour of letters is left as it is where no letter will be seen. */
static void take_pen(struct tui_paint *p, struct tui_pen want, bool letters, struct ms_buf *out)
{
    struct sgr s = {out, out->n};
    put_attributes(p, &s, want.attrs);
    if (letters && p->pen.fg != want.fg)
        put_colour(&s, want.fg, false);
    if (p->pen.bg != want.bg)
        put_colour(&s, want.bg, true);
    p->pen.fg = letters ? want.fg : p->pen.fg;
    p->pen.bg = want.bg;
    if (out->n != s.start)
        ms_buf_putc(out, 'm');
}

/* Bytes that a colour takes, roughly. */
static size_t price(int colour)
{
    return colour < 0 || colour >= 16 ? 10 : 5;
}

/* ---- moving ----------------------------------------------------------------------------- */

static bool is_same(const struct tui_paint *p, const struct tui_cells *g, size_t i)
{
    return !p->whole && tui_cell_eq(&g->p[i], &p->shown.p[i]);
}

/* May the cells of [from, x), which have not changed, be written once more with the pen as it is? */
static bool may_rewrite(const struct tui_paint *p, const struct tui_cells *g, int y, int from,
                        int x)
{
    for (int i = from; i < x; i++) {
        const struct tui_cell *c = &g->p[(size_t)y * (size_t)g->w + (size_t)i];
        struct tui_pen pen = pen_of(p, c);
        if (c->ch == 0 || c->ch >= 0x80 || pen.attrs != p->pen.attrs || pen.bg != p->pen.bg ||
            (shows_letters(c->ch, pen.attrs) && pen.fg != p->pen.fg))
            return false;
    }
    return true;
}

struct way { /* bytes that move the cursor */
    char s[WAY_MAX];
    int n;
};

static void add(struct way *w, char c, int times)
{
    for (int i = 0; i < times; i++) {
        if (w->n < WAY_MAX)
            w->s[w->n] = c;
        w->n++; /* what is too long is counted and never taken */
    }
}

static void add_order(struct way *w, char what, int n)
{
    char text[16];
    int len = n > 1 ? snprintf(text, sizeof text, "\033[%d%c", n, what)
                    : snprintf(text, sizeof text, "\033[%c", what);
    for (int i = 0; i < len; i++)
        add(w, text[i], 1);
}

static struct way shorter(struct way a, struct way b)
{
    return b.n < a.n ? b : a;
}

/* Over a few cells: by their letters, or by an order. */
static struct way short_way(const struct tui_paint *p, const struct tui_cells *g, struct way w,
                            int y, int from, int x)
{
    struct way order = w;
    if (from == x)
        return w;
    add_order(&order, 'C', x - from);
    if (x - from > GAP_MOST || !may_rewrite(p, g, y, from, x))
        return order;
    for (int i = from; i < x; i++)
        add(&w, (char)g->p[(size_t)y * (size_t)g->w + (size_t)i].ch, 1);
    return shorter(order, w);
}

/* To the right within a row; tabulators stand in every eighth column. */
static struct way right(const struct tui_paint *p, const struct tui_cells *g, struct way w, int y,
                        int from, int x)
{
    struct way best = short_way(p, g, w, y, from, x);
    int stop = x / TAB * TAB, tabs = stop / TAB - from / TAB;
    if (!p->can.tabs || tabs < 0)
        return best;
    add(&w, '\t', tabs);
    if (tabs > 0)
        best = shorter(best, short_way(p, g, w, y, stop, x));
    if (stop + TAB >= g->w || x == stop)
        return best;
    add(&w, '\t', 1);
    add(&w, '\b', stop + TAB - x);
    return shorter(best, w);
}

/* From where the cursor is, with its column or from the left edge. */
static struct way relative(const struct tui_paint *p, const struct tui_cells *g, int y, int x)
{
    struct way edge = {.n = 0}, along = {.n = 0};
    add(&edge, '\r', 1);
    add(&edge, '\n', y - p->y);
    edge = right(p, g, edge, y, 0, x);
    if (p->x < 0)
        return edge;
    add(&along, '\n', y - p->y);
    if (p->x <= x)
        return shorter(edge, right(p, g, along, y, p->x, x));
    add(&along, '\b', p->x - x);
    return shorter(edge, along);
}

static void move_to(struct tui_paint *p, const struct tui_cells *g, int y, int x,
                    struct ms_buf *out)
{
    if (p->y == y && p->x == x)
        return;
    char text[WAY_MAX];
    struct way w = {.n = 0};
    int n = snprintf(text, sizeof text, x == 0 ? "\033[%dH" : "\033[%d;%dH", y + 1, x + 1);
    for (int i = 0; i < n; i++)
        add(&w, text[i], 1);
    if (p->x != UNKNOWN && y >= p->y && y - p->y < WAY_MAX)
        w = shorter(w, relative(p, g, y, x));
    ms_buf_put(out, w.s, (size_t)w.n);
    p->y = y;
    p->x = x;
}

/* ---- cells -------------------------------------------------------------------------------- */

/* How many cells from x on are like the first and have changed. */
static int run_of(const struct tui_paint *p, const struct tui_cells *g, int y, int x, int last)
{
    size_t row = (size_t)y * (size_t)g->w;
    int n = 1;
    while (x + n < last && tui_cell_eq(&g->p[row + (size_t)x], &g->p[row + (size_t)(x + n)]) &&
           !is_same(p, g, row + (size_t)(x + n)))
        n++;
    return n;
}

static void put_run(const struct tui_paint *p, uint32_t ch, int n, struct ms_buf *out)
{
    /* Some terminals that say they repeat do so with ASCII alone. */
    bool repeat = p->can.repeat && n > REPEAT_LEAST && ch < 0x80;
    for (int i = 0; i < (repeat ? 1 : n); i++)
        tui_put_utf8(out, ch);
    if (repeat)
        ms_buf_printf(out, "\033[%db", n - 1);
}

/* A full cell as a block costs its letters, as a space the colour and the way back. */
static bool block_is_shorter(const struct tui_paint *p, struct tui_pen pen, int n, bool ascii)
{
    size_t letters = (p->pen.fg != pen.bg ? price(pen.bg) : 0) + 3 * (size_t)n +
                     (p->pen.bg >= 0 ? price(-1) : 0);
    size_t cells = p->can.repeat && n > REPEAT_LEAST ? 5 : (size_t)n;
    size_t spaces = price(pen.bg) + cells + 5;
    return !ascii && p->pen.bg != pen.bg && letters < spaces;
}

static int put_cells(struct tui_paint *p, const struct tui_cells *g, int y, int x, int last,
                     struct ms_buf *out)
{
    const struct tui_cell *c = &g->p[(size_t)y * (size_t)g->w + (size_t)x];
    struct tui_pen pen = pen_of(p, c);
    uint32_t ch = c->ch;
    int n = run_of(p, g, y, x, last);
    if (is_full(p, c) && block_is_shorter(p, pen, n, g->ascii)) {
        ch = BLOCK;
        pen = (struct tui_pen){pen.bg, -1, 0};
    }
    take_pen(p, pen, shows_letters(ch, pen.attrs), out);
    put_run(p, ch, n, out);
    p->x = x + n * tui_width(ch);
    return p->x;
}

/* From here on the row is empty: one order clears it. */
static bool ends_empty(const struct tui_paint *p, const struct tui_cells *g, int y, int x)
{
    size_t row = (size_t)y * (size_t)g->w;
    int changed = 0;
    for (int i = x; i < g->w; i++) {
        const struct tui_cell *c = &g->p[row + (size_t)i];
        if (c->ch != ' ' || c->flags != 0)
            return false;
        changed += !is_same(p, g, row + (size_t)i);
    }
    return changed > 3;
}

static void put_part(struct tui_paint *p, const struct tui_cells *g, int y, int x, int last,
                     struct ms_buf *out)
{
    size_t row = (size_t)y * (size_t)g->w;
    while (x < last) {
        if (is_same(p, g, row + (size_t)x) || g->p[row + (size_t)x].ch == 0) {
            x++; /* the right half of a letter came with its left one */
            continue;
        }
        move_to(p, g, y, x, out);
        if (ends_empty(p, g, y, x)) {
            take_pen(p, (struct tui_pen){-1, -1, 0}, false, out);
            ms_buf_puts(out, "\033[K");
            return;
        }
        x = put_cells(p, g, y, x, last, out);
    }
    if (p->x >= g->w)
        p->x = p->can.last_cell ? WAITS : UNKNOWN;
}

/* Where many single cells change, moving from one to the next takes longer than writing all of them
 * once more: the shorter of both is sent. */
static void put_row(struct tui_paint *p, const struct tui_cells *g, int y, struct ms_buf *out)
{
    size_t row = (size_t)y * (size_t)g->w, start = out->n;
    int first = 0, last = g->w - (y + 1 == g->h && !p->can.last_cell);
    while (first < last && is_same(p, g, row + (size_t)first))
        first++;
    while (last > first && is_same(p, g, row + (size_t)last - 1))
        last--;
    struct tui_paint before = *p;
    put_part(p, g, y, first, last, out);
    if (out->n - start < WHOLE_LEAST)
        return;
    struct tui_paint after = *p;
    size_t end = out->n;
    *p = before;
    p->whole = true;
    put_part(p, g, y, first, last, out);
    p->whole = false;
    if (out->n - end < end - start)
        memmove(out->p + start, out->p + end, out->n - end);
    else
        *p = after;
    out->n = out->n - end < end - start ? start + (out->n - end) : end;
}

/* ---- scrolling ------------------------------------------------------------------------------ */

/* Rows [top, end) move by `by` rows up, or with by < 0 down. */
struct shift {
    int top, end, by;
    int gain; /* cells that need not be sent then */
};

static const struct tui_cell *row_of(const struct tui_cells *g, int y)
{
    return &g->p[(size_t)y * (size_t)g->w];
}

/* Cells in which two rows differ; b NULL: an empty row. */
static int difference(const struct tui_cell *a, const struct tui_cell *b, int w)
{
    static const struct tui_cell empty = {.ch = ' '};
    int n = 0;
    for (int x = 0; x < w; x++)
        n += !tui_cell_eq(&a[x], b != NULL ? &b[x] : &empty);
    return n;
}

static bool moved(const struct tui_paint *p, const struct tui_cells *g, int y, int by)
{
    if (y >= g->h || y + by < 0 || y + by >= g->h)
        return false;
    const struct tui_cell *a = row_of(g, y), *b = row_of(&p->shown, y + by);
    int x = 0;
    while (x < g->w && tui_cell_eq(&a[x], &b[x]))
        x++;
    return x == g->w;
}

/* What is gained when rows [first, last) of the new picture are those `by` further down now. */
static struct shift weigh(const struct tui_paint *p, const struct tui_cells *g, int first, int last,
                          int by)
{
    struct shift s = {first + (by < 0 ? by : 0), last + (by > 0 ? by : 0), by, 0};
    for (int y = s.top; y < s.end; y++) {
        bool kept = y >= first && y < last;
        s.gain += difference(row_of(g, y), row_of(&p->shown, y), g->w);
        s.gain -= kept ? 0 : difference(row_of(g, y), NULL, g->w);
    }
    return s;
}

/* The best among all distances: lists scroll by a row, and unfolding moves what is below. */
static struct shift best_shift(const struct tui_paint *p, const struct tui_cells *g)
{
    struct shift best = {0, 0, 0, 0};
    for (int by = -SHIFT_MOST; by <= SHIFT_MOST; by++) {
        for (int y = 0; by != 0 && y < g->h; y++) {
            int first = y;
            while (moved(p, g, y, by))
                y++;
            if (y - first < SHIFT_ROWS)
                continue;
            struct shift s = weigh(p, g, first, y, by);
            best = s.gain > best.gain ? s : best;
        }
    }
    return best;
}

static void shift_shown(struct tui_paint *p, const struct shift *s)
{
    size_t w = (size_t)p->shown.w, rows = (size_t)(s->end - s->top);
    size_t by = (size_t)(s->by > 0 ? s->by : -s->by);
    struct tui_cell *at = p->shown.p + (size_t)s->top * w;
    struct tui_cell *from = s->by > 0 ? at + by * w : at, *to = s->by > 0 ? at : at + by * w;
    struct tui_cell *empty = s->by > 0 ? at + (rows - by) * w : at;
    memmove(to, from, (rows - by) * w * sizeof *at);
    for (size_t i = 0; i < by * w; i++)
        empty[i] = (struct tui_cell){.ch = ' '};
}

/* A region that scrolls has been known since the VT100: a line feed at its end, or the reverse at its
 * top, moves it. */
static void scroll(struct tui_paint *p, const struct tui_cells *g, struct ms_buf *out)
{
    struct shift s = best_shift(p, g);
    if (s.gain < GAIN_LEAST)
        return;
    take_pen(p, (struct tui_pen){p->pen.fg, -1, 0}, false, out);
    ms_buf_printf(out, "\033[%d;%dr\033[%dH", s.top + 1, s.end, s.by > 0 ? s.end : s.top + 1);
    for (int i = 0; i < (s.by > 0 ? s.by : -s.by); i++)
        ms_buf_puts(out, s.by > 0 ? "\n" : "\033M");
    ms_buf_puts(out, "\033[r");
    p->x = UNKNOWN;
    shift_shown(p, &s);
}

/* Cells of one row move: those from x on of the new row are `by` further right now. */
struct slide {
    int x, by, gain;
};

/* What sliding saves: cells up to the end that differ today and need not be sent.  What comes in at
 * the end, or at x when sliding to the right, is empty and is. */
static struct slide weigh_slide(const struct tui_cell *now, const struct tui_cell *then, int x,
                                int by, int w)
{
    static const struct tui_cell empty = {.ch = ' '};
    struct slide s = {x, by, 0};
    for (int i = x; i < w && x + (by > 0 ? by : -by) < w; i++) {
        bool fresh = by > 0 ? i + by >= w : i + by < x;
        s.gain += !tui_cell_eq(&now[i], &then[i]);
        s.gain -= !tui_cell_eq(&now[i], fresh ? &empty : &then[i + by]);
    }
    return s;
}

static struct slide better(struct slide a, struct slide b)
{
    return b.gain > a.gain ? b : a;
}

/* Rows that slide mostly slide alike, so the distance of the row before is tried first; all others
 * are for a few rows of a picture only. */
static struct slide best_slide(struct tui_paint *p, const struct tui_cell *now,
                               const struct tui_cell *then, int w)
{
    int x = 0;
    while (x < w && tui_cell_eq(&now[x], &then[x]))
        x++;
    if (x == w)
        return (struct slide){0, 0, 0};
    struct slide best = weigh_slide(now, then, x, p->slid != 0 ? p->slid : 1, w);
    if (best.gain >= SLIDE_LEAST || p->tried >= TRY_MOST || difference(now, then, w) < SLIDE_LEAST)
        return best;
    p->tried++;
    for (int by = 1; by <= w / 2; by++) {
        best = better(best, weigh_slide(now, then, x, by, w));
        best = better(best, weigh_slide(now, then, x, -by, w));
    }
    return best;
}

static bool holds_wide(const struct tui_cell *row, int w)
{
    int x = 0;
    while (x < w && row[x].ch != 0)
        x++;
    return x < w;
}

/* Panning a timeline moves its rows sideways. */
static void slide_row(struct tui_paint *p, const struct tui_cells *g, int y, struct ms_buf *out)
{
    struct tui_cell *then = p->shown.p + (size_t)y * (size_t)g->w;
    if (!p->can.slide || holds_wide(then, g->w) || holds_wide(row_of(g, y), g->w))
        return;
    struct slide s = best_slide(p, row_of(g, y), then, g->w);
    if (s.gain < SLIDE_LEAST)
        return;
    p->slid = s.by;
    int by = s.by > 0 ? s.by : -s.by, kept = g->w - s.x - by;
    move_to(p, g, y, s.x, out);
    take_pen(p, (struct tui_pen){p->pen.fg, -1, 0}, false, out);
    ms_buf_printf(out, s.by > 0 ? "\033[%dP" : "\033[%d@", by);
    memmove(s.by > 0 ? then + s.x : then + s.x + by, s.by > 0 ? then + s.x + by : then + s.x,
            (size_t)kept * sizeof *then);
    for (int i = 0; i < by; i++)
        then[(s.by > 0 ? s.x + kept : s.x) + i] = (struct tui_cell){.ch = ' '};
}

/* ---- frames -------------------------------------------------------------------------------- */

void tui_paint_forget(struct tui_paint *p)
{
    p->known = false;
}

void tui_paint_free(struct tui_paint *p)
{
    tui_cells_free(&p->shown);
}

static void clear(struct tui_paint *p, struct ms_buf *out)
{
    ms_buf_puts(out, "\033[m\033[H\033[J");
    p->pen = (struct tui_pen){-1, -1, 0};
    p->y = p->x = 0;
    tui_cells_clear(&p->shown);
    p->known = true;
}

bool tui_paint_frame(struct tui_paint *p, const struct tui_cells *g, struct ms_buf *out)
{
    bool all = !p->known || p->shown.w != g->w || p->shown.h != g->h;
    if (all && !tui_cells_size(&p->shown, g->w, g->h))
        return false;
    if (all)
        clear(p, out);
    else
        scroll(p, g, out);
    p->tried = p->slid = 0;
    for (int y = 0; y < g->h; y++) {
        if (!all)
            slide_row(p, g, y, out);
        put_row(p, g, y, out);
    }
    memcpy(p->shown.p, g->p, (size_t)g->w * (size_t)g->h * sizeof *g->p);
    return out->bad == MS_OK;
}
