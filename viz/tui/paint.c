/* SPDX-License-Identifier: MIT
 *
 * paint: cursor moves, scrolled rows and shifted cells.
 */
#include "viz/tui/paint.h"

#include <stdio.h>

enum { GAP_MOST = 6, TAB = 8 };
/* Cursor columns: after the last column the cursor waits (WAITS) until "\r" or a character
 * comes. */
enum { UNKNOWN = -1, WAITS = -2, WAY_MAX = 24 };
enum { SHIFT_MOST = 12, SHIFT_ROWS = 2, GAIN_LEAST = 20, SLIDE_LEAST = 5, TRY_MOST = 8 };

/* ---- the pen ------------------------------------------------------------------------------ */

static void take_pen(struct tui_paint *p, struct tui_pen want, struct ms_buf *out)
{
    char order[TUI_ORDER_MAX];
    int n = tui_pen_change(&p->can, p->pen, want, order);
    ms_buf_put(out, order, (size_t)n);
    p->pen = want;
}

/* Selects a pen without background: cells that appear when others move take the pen's
 * background. */
static void take_no_background(struct tui_paint *p, struct ms_buf *out)
{
    take_pen(p, (struct tui_pen){p->pen.fg, -1, 0}, out);
}

/* ---- moving ----------------------------------------------------------------------------- */

static bool is_same(const struct tui_paint *p, const struct tui_cells *g, size_t i)
{
    return tui_cell_eq(&g->p[i], &p->shown.p[i]);
}

/* Tells whether the unchanged cells of [from, x) can be rewritten with the current pen. */
static bool may_rewrite(const struct tui_paint *p, const struct tui_cells *g, int y, int from,
                        int x)
{
    for (int i = from; i < x; i++) {
        struct tui_look look[TUI_LOOKS];
        const struct tui_cell *c = &g->p[(size_t)y * (size_t)g->w + (size_t)i];
        tui_pen_looks(&p->can, c, g->ascii, look);
        struct tui_pen pen = look->pen;
        pen.fg = look->any_fg ? p->pen.fg : pen.fg;
        if (c->ch == 0 || c->ch >= 0x80 || !tui_pen_eq(pen, p->pen))
            return false;
    }
    return true;
}

struct way { /* bytes of a cursor move */
    char s[WAY_MAX];
    int n;
};

static void add(struct way *w, char c, int times)
{
    for (int i = 0; i < times; i++) {
        if (w->n < WAY_MAX)
            w->s[w->n] = c;
        w->n++; /* an overlong move is counted and never chosen */
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

static struct way shorter_way(struct way a, struct way b)
{
    return b.n < a.n ? b : a;
}

/* Moves over a few cells: by rewriting them, or by a move sequence. */
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
    return shorter_way(order, w);
}

/* Moves right within a row; tabulator stops are every eight columns. */
static struct way way_right(const struct tui_paint *p, const struct tui_cells *g, struct way w,
                            int y, int from, int x)
{
    struct way best = short_way(p, g, w, y, from, x);
    int stop = x / TAB * TAB, tabs = stop / TAB - from / TAB;
    if (!p->can.tabs || tabs < 0)
        return best;
    add(&w, '\t', tabs);
    if (tabs > 0)
        best = shorter_way(best, short_way(p, g, w, y, stop, x));
    if (stop + TAB >= g->w || x == stop)
        return best;
    add(&w, '\t', 1);
    add(&w, '\b', stop + TAB - x);
    return shorter_way(best, w);
}

/* Returns the shorter relative move: from the current column or from the left edge. */
static struct way relative_way(const struct tui_paint *p, const struct tui_cells *g, int y, int x)
{
    struct way edge = {.n = 0}, along = {.n = 0};
    add(&edge, '\r', 1);
    add(&edge, '\n', y - p->y);
    edge = way_right(p, g, edge, y, 0, x);
    if (p->x < 0)
        return edge;
    add(&along, '\n', y - p->y);
    if (p->x <= x)
        return shorter_way(edge, way_right(p, g, along, y, p->x, x));
    struct way order = along;
    add(&along, '\b', p->x - x);
    add_order(&order, 'D', p->x - x);
    return shorter_way(edge, shorter_way(along, order));
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
        w = shorter_way(w, relative_way(p, g, y, x));
    ms_buf_put(out, w.s, (size_t)w.n);
    p->y = y;
    p->x = x;
}

/* ---- rows --------------------------------------------------------------------------------- */

static bool put_row(struct tui_paint *p, const struct tui_cells *g, int y, struct ms_buf *out)
{
    size_t row = (size_t)y * (size_t)g->w;
    int first = 0, last = g->w - (y + 1 == g->h && !p->can.last_cell);
    while (first < last && is_same(p, g, row + (size_t)first))
        first++;
    while (last > first && is_same(p, g, row + (size_t)last - 1))
        last--;
    if (first == last)
        return true;
    first -= g->p[row + (size_t)first].ch == 0; /* include both halves of wide characters */
    last += last < g->w && g->p[row + (size_t)last].ch == 0;
    move_to(p, g, y, first, out);
    struct tui_row r = {&p->can, g->p + row, p->shown.p + row, first, last, g->w, g->ascii};
    if (!tui_paint_row(&p->row, &r, &p->pen, &p->x, out))
        return false;
    if (p->x >= g->w)
        p->x = p->can.last_cell ? WAITS : UNKNOWN;
    return true;
}

/* ---- scrolling ------------------------------------------------------------------------------ */

/* Rows [top, end) move up by `by` rows, or down when by < 0. */
struct shift {
    int top, end, by;
    int gain; /* cells saved */
};

static const struct tui_cell *row_of(const struct tui_cells *g, int y)
{
    return &g->p[(size_t)y * (size_t)g->w];
}

/* Counts the cells in which two rows differ; b NULL: an empty row. */
static int difference_between(const struct tui_cell *a, const struct tui_cell *b, int w)
{
    static const struct tui_cell empty = {.ch = ' '};
    int n = 0;
    for (int x = 0; x < w; x++)
        n += !tui_cell_eq(&a[x], b != NULL ? &b[x] : &empty);
    return n;
}

static bool has_moved(const struct tui_paint *p, const struct tui_cells *g, int y, int by)
{
    if (y >= g->h || y + by < 0 || y + by >= g->h)
        return false;
    const struct tui_cell *a = row_of(g, y), *b = row_of(&p->shown, y + by);
    int x = 0;
    while (x < g->w && tui_cell_eq(&a[x], &b[x]))
        x++;
    return x == g->w;
}

/* Computes the gain when rows [first, last) of the new picture are those now `by` rows further
 * down. */
static struct shift weigh(const struct tui_paint *p, const struct tui_cells *g, int first, int last,
                          int by)
{
    struct shift s = {first + (by < 0 ? by : 0), last + (by > 0 ? by : 0), by, 0};
    for (int y = s.top; y < s.end; y++) {
        bool kept = y >= first && y < last;
        s.gain += difference_between(row_of(g, y), row_of(&p->shown, y), g->w);
        s.gain -= kept ? 0 : difference_between(row_of(g, y), NULL, g->w);
    }
    return s;
}

/* Returns the best shift among all distances: lists scroll by a row, and unfolding moves the
 * rows below. */
static struct shift best_shift(const struct tui_paint *p, const struct tui_cells *g)
{
    struct shift best = {0, 0, 0, 0};
    for (int by = -SHIFT_MOST; by <= SHIFT_MOST; by++) {
        for (int y = 0; by != 0 && y < g->h; y++) {
            int first = y;
            while (has_moved(p, g, y, by))
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

/* Scrolls a region, supported since the VT100: a line feed at its end or a reverse one at its
 * top moves the region. */
static void scroll(struct tui_paint *p, const struct tui_cells *g, struct ms_buf *out)
{
    struct shift s = best_shift(p, g);
    if (s.gain < GAIN_LEAST)
        return;
    take_no_background(p, out);
    ms_buf_printf(out, "\033[%d;%dr\033[%dH", s.top + 1, s.end, s.by > 0 ? s.end : s.top + 1);
    for (int i = 0; i < (s.by > 0 ? s.by : -s.by); i++)
        ms_buf_puts(out, s.by > 0 ? "\n" : "\033M");
    ms_buf_puts(out, "\033[r");
    p->x = UNKNOWN;
    shift_shown(p, &s);
}

/* Cells of a row move: those from x on in the new row are now `by` columns further right. */
struct slide {
    int x, by, gain;
};

/* Tells whether a slide is safe. Not more cells may be inserted at x than move aside: tmux 3.3
 * clears the moved cells and leaves those between unchanged. */
static bool may_slide(int x, int by, int w)
{
    return by > 0 ? x + by < w : x - 2 * by <= w;
}

/* Computes the gain of a slide: cells that differ now and would not be sent. Cells inserted at
 * the end, or at x when sliding right, are empty and have to be sent. */
static struct slide weigh_slide(const struct tui_cell *now, const struct tui_cell *then, int x,
                                int by, int w)
{
    static const struct tui_cell empty = {.ch = ' '};
    struct slide s = {x, by, 0};
    for (int i = x; i < w && may_slide(x, by, w); i++) {
        bool fresh = by > 0 ? i + by >= w : i + by < x;
        s.gain += !tui_cell_eq(&now[i], &then[i]);
        s.gain -= !tui_cell_eq(&now[i], fresh ? &empty : &then[i + by]);
    }
    return s;
}

static struct slide better_slide(struct slide a, struct slide b)
{
    return b.gain > a.gain ? b : a;
}

static struct slide best_known(const struct tui_paint *p, const struct tui_cell *now,
                               const struct tui_cell *then, int x, int w)
{
    struct slide best = {x, 0, 0};
    for (int i = 0; i < TUI_SLIDES && p->slid[i] != 0; i++)
        best = better_slide(best, weigh_slide(now, then, x, p->slid[i], w));
    return best;
}

static void remember(struct tui_paint *p, int by)
{
    int i = 0;
    while (i + 1 < TUI_SLIDES && p->slid[i] != 0 && p->slid[i] != by)
        i++;
    p->slid[i] = by;
}

/* Returns the best slide. Rows of a frame mostly slide alike, so the distances of previous rows
 * are tried first; all distances are tried only for a few rows of a frame. */
static struct slide best_slide(struct tui_paint *p, const struct tui_cell *now,
                               const struct tui_cell *then, int w)
{
    int x = 0;
    while (x < w && tui_cell_eq(&now[x], &then[x]))
        x++;
    if (x == w)
        return (struct slide){0, 0, 0};
    struct slide best = best_known(p, now, then, x, w);
    int differ = difference_between(now, then, w);
    if (2 * best.gain >= differ || p->tried >= TRY_MOST || differ < SLIDE_LEAST)
        return best;
    p->tried++;
    for (int by = 1; by <= w / 2; by++) {
        best = better_slide(best, weigh_slide(now, then, x, by, w));
        best = better_slide(best, weigh_slide(now, then, x, -by, w));
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

/* Slides a row sideways, as panning a timeline does. */
static void slide_row(struct tui_paint *p, const struct tui_cells *g, int y, struct ms_buf *out)
{
    struct tui_cell *then = p->shown.p + (size_t)y * (size_t)g->w;
    if (!p->can.slide || holds_wide(then, g->w) || holds_wide(row_of(g, y), g->w))
        return;
    struct slide s = best_slide(p, row_of(g, y), then, g->w);
    if (s.gain < SLIDE_LEAST)
        return;
    remember(p, s.by);
    int by = s.by > 0 ? s.by : -s.by, kept = g->w - s.x - by;
    move_to(p, g, y, s.x, out);
    take_no_background(p, out);
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
    tui_paint_row_free(p->row);
    p->row = NULL;
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
    p->tried = 0;
    memset(p->slid, 0, sizeof p->slid);
    for (int y = 0; y < g->h; y++) {
        if (!all)
            slide_row(p, g, y, out);
        if (!put_row(p, g, y, out))
            return false;
    }
    memcpy(p->shown.p, g->p, (size_t)g->w * (size_t)g->h * sizeof *g->p);
    return out->bad == MS_OK;
}
