/* SPDX-License-Identifier: MIT
 *
 * paint_row: finds the sequence of writes and moves through a row with the fewest bytes.
 *
 * A stop is a column together with the pen that the terminal has there. From each stop a few steps
 * lead to the right: skip unchanged cells, write a cell in one of its looks, write and repeat it,
 * or clear the rest of the row. Dynamic programming over the columns finds the cheapest path to the
 * end, which is then emitted.
 */
#include "viz/tui/paint_row.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK = 0x2588, BLACK = 0, WHITE = 7 };

/* ---- colours ------------------------------------------------------------------------ */

/* Colours by the page's table of tokens; -1 is the terminal's default. `on` is the colour of
 * text on a slice of that kind; -1: reverse video, which takes few bytes and is legible where
 * the colour is neither light nor dark. */
static const struct {
    int16_t c256, c8, on;
    uint8_t mono;
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
    /* Slices are frequent: numbers below 16 take half the bytes. */
    [TUI_COMPUTE] = {4, 4, WHITE, 0},
    [TUI_COMM] = {6, 6, BLACK, 0},
    [TUI_COPY] = {3, 3, BLACK, 0},
    [TUI_USER] = {12, 4, -1, 0},
    [TUI_IDLE] = {8, -1, -1, 0},
};

static int16_t colour_of(const struct tui_paint_can *can, unsigned token)
{
    return can->colours >= 256 ? palette[token].c256 : can->colours > 0 ? palette[token].c8 : -1;
}

/* Returns a text colour with contrast to the slice; eight colours have no light blue. */
static int16_t colour_upon(const struct tui_paint_can *can, unsigned token)
{
    return can->colours < 256 && palette[token].c8 == palette[TUI_COMPUTE].c8 ? WHITE
                                                                              : palette[token].on;
}

static bool is_slice(const struct tui_paint_can *can, const struct tui_cell *c)
{
    return can->colours > 0 && (c->flags & TUI_REVERSE) != 0 && colour_upon(can, c->token) >= 0;
}

static struct tui_pen pen_of(const struct tui_paint_can *can, const struct tui_cell *c)
{
    struct tui_pen pen = {colour_of(can, c->token), -1, c->flags};
    if (is_slice(can, c))
        return (struct tui_pen){colour_upon(can, c->token), pen.fg,
                                c->flags & (uint8_t)~TUI_REVERSE};
    if (c->ch == ' ' && (c->flags & ~TUI_BOLD) == 0)
        return (struct tui_pen){pen.fg, -1, 0}; /* an empty cell shows none of its look */
    if (can->colours == 0)
        pen.attrs ^= palette[c->token].mono;
    else if (c->token == TUI_OVERFLOW)
        pen.attrs ^= TUI_REVERSE;
    return pen;
}

/* ---- looks --------------------------------------------------------------------------- */

/* Tells whether a look is only a colour, and which; -1 is the default text colour. Block
 * characters of bars are kept as characters, so that copied text of the screen contains them. */
static bool is_full(const struct tui_look *l, int16_t *colour)
{
    bool on_colour = l->ch == ' ' && l->pen.attrs == 0 && l->pen.bg >= 0;
    bool reversed = l->ch == ' ' && l->pen.attrs == TUI_REVERSE && l->pen.bg < 0;
    *colour = on_colour ? l->pen.bg : l->pen.fg;
    return on_colour || reversed;
}

static int full_looks(int16_t colour, bool ascii, struct tui_look *out)
{
    int n = 0;
    if (colour >= 0)
        out[n++] = (struct tui_look){' ', {-1, colour, 0}, true};
    out[n++] = (struct tui_look){' ', {colour, -1, TUI_REVERSE}, false};
    if (!ascii)
        out[n++] = (struct tui_look){BLOCK, {colour, -1, 0}, false};
    return n;
}

/* Returns the complement of a block: in reverse video it looks the same. */
static uint32_t rest_of(uint32_t ch)
{
    static const uint32_t pairs[][2] = {
        {0x2589, 0x2595}, {0x258c, 0x2590}, {0x2584, 0x2580}, {0x2587, 0x2594}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (pairs[i][0] == ch)
            return pairs[i][1];
    }
    return 0;
}

static int letter_looks(const struct tui_paint_can *can, struct tui_look *out)
{
    uint32_t rest = can->colours >= 256 ? rest_of(out->ch) : 0;
    if (rest == 0 || out->pen.attrs != 0 || out->pen.bg >= 0)
        return 1;
    out[1] = (struct tui_look){rest, {out->pen.fg, -1, TUI_REVERSE}, false};
    return 2;
}

int tui_pen_looks(const struct tui_paint_can *can, const struct tui_cell *c, bool ascii,
                  struct tui_look *out)
{
    int16_t colour;
    out[0] = (struct tui_look){c->ch, pen_of(can, c), false};
    if (is_full(out, &colour))
        return full_looks(colour, ascii, out);
    out[0].any_fg = c->ch == ' ' && (out[0].pen.attrs & (TUI_REVERSE | TUI_UNDERLINE)) == 0;
    out[0].pen.fg = out[0].any_fg ? -1 : out[0].pen.fg;
    return letter_looks(can, out);
}

/* ---- changing the pen ------------------------------------------------------------------ */

struct order {
    char s[TUI_ORDER_MAX];
    int n;
};

static void put_parameter(struct order *o, const char *before, int v)
{
    o->n += snprintf(o->s + o->n, sizeof o->s - (size_t)o->n, "%s%s%d", o->n == 0 ? "\033[" : ";",
                     before, v);
}

static void put_colour(struct order *o, int colour, bool background)
{
    int base = background ? 10 : 0;
    if (colour < 0)
        put_parameter(o, "", base + 39);
    else if (colour < 8)
        put_parameter(o, "", base + 30 + colour);
    else if (colour < 16)
        put_parameter(o, "", base + 90 + colour - 8);
    else
        put_parameter(o, background ? "48;5;" : "38;5;", colour);
}

static void put_attributes(struct order *o, unsigned has, unsigned want)
{
    static const struct {
        unsigned flag;
        int on, off;
    } kinds[] = {{TUI_BOLD, 1, 22}, {TUI_UNDERLINE, 4, 24}, {TUI_REVERSE, 7, 27}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if ((has & kinds[i].flag) != (want & kinds[i].flag))
            put_parameter(o, "", (want & kinds[i].flag) != 0 ? kinds[i].on : kinds[i].off);
    }
}

static struct order change_pen(struct tui_pen from, struct tui_pen to, bool reset)
{
    struct order o = {.n = 0};
    if (reset) {
        from = (struct tui_pen){-1, -1, 0};
        if (tui_pen_eq(from, to))
            return (struct order){"\033[m", 3};
        put_parameter(&o, "", 0);
    }
    put_attributes(&o, from.attrs, to.attrs);
    if (from.fg != to.fg)
        put_colour(&o, to.fg, false);
    if (from.bg != to.bg)
        put_colour(&o, to.bg, true);
    o.s[o.n++] = 'm';
    return o;
}

int tui_pen_change(const struct tui_paint_can *can, struct tui_pen from, struct tui_pen to,
                   char out[TUI_ORDER_MAX])
{
    if (tui_pen_eq(from, to))
        return 0;
    struct order o = change_pen(from, to, true);
    bool takes_away = (from.attrs & ~to.attrs) != 0;
    if (can->separate || !takes_away) {
        struct order step = change_pen(from, to, false);
        o = step.n <= o.n ? step : o;
    }
    memcpy(out, o.s, (size_t)o.n);
    return o.n;
}

/* ---- the cheapest way through a row ---------------------------------------------------- */

enum { PENS = 48, KEPT = 16, NEVER = 0x7fffffff, REPEAT_LEAST = 5, TAB = 8, UNTOLD = 0xff };
enum step { SKIP, NEXT_TAB, WRITE, REPEAT, CLEAR };

struct stop {
    int cost;     /* bytes up to here, NEVER if unreachable; after turn_round, the next stop */
    int16_t from; /* column of the previous stop */
    uint8_t pen;  /* pen at the previous stop */
    uint8_t step; /* step from there */
    uint8_t look; /* look written */
};

struct column {
    struct tui_look look[TUI_LOOKS];
    int16_t run[TUI_LOOKS]; /* number of cells from here on that can be written in that look */
    int16_t needed;         /* number of these up to the last changed one */
    int16_t same;           /* number of unchanged cells from here on */
    uint8_t looks;          /* 0: the right half of a wide character */
};

struct tui_row_work {
    size_t cap; /* columns */
    struct column *column;
    struct stop *stop; /* PENS for every column */
    struct tui_pen pen[PENS];
    uint8_t price[PENS][PENS]; /* bytes to change from one pen to another */
    int pens;
};

/* ---- pens ------------------------------------------------------------------------------ */

/* Returns the index of a pen, added if fewer than `most` are known; -1: no room. */
static int pen_number(struct tui_row_work *k, struct tui_pen pen, int most)
{
    for (int i = 0; i < k->pens; i++) {
        if (tui_pen_eq(k->pen[i], pen))
            return i;
    }
    if (k->pens >= most)
        return -1;
    for (int i = 0; i <= k->pens; i++)
        k->price[i][k->pens] = k->price[k->pens][i] = UNTOLD;
    k->pen[k->pens] = pen;
    return k->pens++;
}

static int price_of(struct tui_row_work *k, const struct tui_row *r, int from, int to)
{
    char order[TUI_ORDER_MAX];
    if (k->price[from][to] == UNTOLD)
        k->price[from][to] = (uint8_t)tui_pen_change(r->can, k->pen[from], k->pen[to], order);
    return k->price[from][to];
}

/* ---- columns --------------------------------------------------------------------------- */

static bool look_eq(const struct tui_look *a, const struct tui_look *b)
{
    return a->ch == b->ch && a->any_fg == b->any_fg && a->pen.bg == b->pen.bg &&
           a->pen.attrs == b->pen.attrs && (a->any_fg || a->pen.fg == b->pen.fg);
}

static bool is_empty(const struct tui_look *l)
{
    return l->ch == ' ' && l->any_fg && l->pen.bg < 0;
}

static bool has_changed(const struct tui_row *r, int x)
{
    return !tui_cell_eq(&r->now[x], &r->then[x]);
}

/* Tells whether a cell changed; a wide character changes with either half. */
static bool unit_changed(const struct tui_row *r, int x)
{
    return has_changed(r, x) || (x + 1 < r->w && r->now[x + 1].ch == 0 && has_changed(r, x + 1)) ||
           (r->now[x].ch == 0 && x > 0 && has_changed(r, x - 1));
}

static void look_at(struct tui_row_work *k, const struct tui_row *r, int x)
{
    struct column *c = &k->column[x], *next = c + 1;
    bool more = x + 1 < r->last, changed = unit_changed(r, x);
    *c = (struct column){.same = (int16_t)(changed ? 0 : 1 + (more ? next->same : 0))};
    if (r->now[x].ch == 0)
        return;
    c->looks = (uint8_t)tui_pen_looks(r->can, &r->now[x], r->ascii, c->look);
    bool alike = more && next->looks == c->looks && look_eq(&c->look[0], &next->look[0]);
    for (int i = 0; i < c->looks; i++)
        c->run[i] = (int16_t)(1 + (alike ? next->run[i] : 0));
    int behind = alike ? next->needed : 0;
    c->needed = (int16_t)(behind > 0 || changed ? behind + 1 : 0);
}

static bool make_room(struct tui_row_work **work, int w)
{
    if (*work == NULL)
        *work = ms_calloc(1, sizeof **work);
    struct tui_row_work *k = *work;
    if (k == NULL || (size_t)w < k->cap)
        return k != NULL;
    size_t cap = (size_t)w + 1;
    struct column *column = ms_realloc(k->column, cap * sizeof *column);
    k->column = column != NULL ? column : k->column;
    struct stop *stop = ms_realloc(k->stop, cap * PENS * sizeof *stop);
    k->stop = stop != NULL ? stop : k->stop;
    k->cap = column != NULL && stop != NULL ? cap : k->cap;
    return column != NULL && stop != NULL;
}

void tui_paint_row_free(struct tui_row_work *work)
{
    if (work == NULL)
        return;
    ms_free(work->column);
    ms_free(work->stop);
    ms_free(work);
}

/* ---- steps ------------------------------------------------------------------------------- */

static int order_length(int n)
{
    return n < 2 ? 3 : n < 10 ? 4 : n < 100 ? 5 : 6;
}

static int letter_length(uint32_t ch)
{
    return ch < 0x80 ? 1 : ch < 0x800 ? 2 : ch < 0x10000 ? 3 : 4;
}

static void arrive(struct tui_row_work *k, int x, int pen, struct stop s)
{
    struct stop *at = &k->stop[(size_t)x * PENS + (size_t)pen];
    if (s.cost < at->cost)
        *at = s;
}

/* Returns the bytes needed to reach column z by tabs and backspaces, -1 if tabs cannot be used. */
static int by_tabs(const struct tui_row *r, int x, int z, int *tabs)
{
    int stop = (z + TAB - 1) / TAB * TAB;
    *tabs = stop / TAB - x / TAB;
    return r->can->tabs && stop < r->w ? *tabs + stop - z : -1;
}

static void try_skip(struct tui_row_work *k, const struct tui_row *r, int x, int pen, int cost)
{
    int n = k->column[x].same, z = x + n, tabs, way = by_tabs(r, x, z, &tabs);
    int order = order_length(n), stop = x / TAB * TAB + TAB;
    if (n == 0)
        return;
    arrive(k, z, pen,
           (struct stop){cost + (way >= 0 && way < order ? way : order), (int16_t)x, (uint8_t)pen,
                         SKIP, 0});
    if (r->can->tabs && stop < z && stop < r->w && k->column[stop].looks != 0)
        arrive(k, stop, pen, (struct stop){cost + 1, (int16_t)x, (uint8_t)pen, NEXT_TAB, 0});
}

/* Writes the cell at x with pen `to`, once or repeated over its run. */
static void write_with(struct tui_row_work *k, const struct tui_row *r, int x, int pen, int cost,
                       int look, int to)
{
    const struct column *c = &k->column[x];
    uint32_t ch = c->look[look].ch;
    cost += price_of(k, r, pen, to) + letter_length(ch);
    struct stop s = {cost, (int16_t)x, (uint8_t)pen, WRITE, (uint8_t)look};
    arrive(k, x + tui_width(ch), to, s);
    /* Some terminals that claim to repeat support ASCII only. */
    if (!r->can->repeat || ch >= 0x80 || c->run[look] <= REPEAT_LEAST)
        return;
    s.step = REPEAT;
    const int ends[] = {c->run[look], c->needed};
    for (int i = 0; i < 2; i++) {
        s.cost = cost + order_length(ends[i] - 1);
        if (ends[i] > REPEAT_LEAST)
            arrive(k, x + ends[i], to, s);
    }
}

static void try_write(struct tui_row_work *k, const struct tui_row *r, int x, int pen, int cost)
{
    const struct column *c = &k->column[x];
    for (int i = 0; i < c->looks; i++) {
        struct tui_pen want = c->look[i].pen;
        write_with(k, r, x, pen, cost, i, pen_number(k, want, PENS));
        want.fg = k->pen[pen].fg;
        int to = c->look[i].any_fg ? pen_number(k, want, PENS - KEPT) : -1;
        if (to >= 0)
            write_with(k, r, x, pen, cost, i, to);
    }
}

/* Tells whether the rest of the row is or becomes empty: then one command clears it, with a pen
 * without background. */
static bool may_clear(const struct tui_row_work *k, const struct tui_row *r, int x)
{
    const struct column *c = &k->column[x];
    if (c->looks == 0 || !is_empty(&c->look[0]) || x + c->run[0] < r->last)
        return false;
    for (int i = r->last; i < r->w; i++) {
        if (r->now[i].ch != ' ' || r->now[i].flags != 0)
            return false;
    }
    return true;
}

static void try_clear(struct tui_row_work *k, const struct tui_row *r, int x, int pen, int cost)
{
    struct tui_pen want = {k->pen[pen].fg, -1, 0};
    for (int i = 0; i < 2; i++, want.fg = -1) {
        int to = pen_number(k, want, PENS - KEPT);
        if (to >= 0)
            arrive(k, r->last, to,
                   (struct stop){cost + price_of(k, r, pen, to) + 3, (int16_t)x, (uint8_t)pen,
                                 CLEAR, 0});
    }
}

static void go_on(struct tui_row_work *k, const struct tui_row *r, int x, bool clears)
{
    int pens = k->pens; /* pens first seen here have no stop at x */
    for (int pen = 0; pen < pens; pen++) {
        int cost = k->stop[(size_t)x * PENS + (size_t)pen].cost;
        if (cost == NEVER)
            continue;
        try_skip(k, r, x, pen, cost);
        if (k->column[x].looks != 0)
            try_write(k, r, x, pen, cost);
        if (clears)
            try_clear(k, r, x, pen, cost);
    }
}

/* ---- emitting ------------------------------------------------------------------------------- */

static void put_order(struct ms_buf *out, int n, char what)
{
    if (n > 1)
        ms_buf_printf(out, "\033[%d%c", n, what);
    else
        ms_buf_printf(out, "\033[%c", what);
}

static void put_skip(const struct tui_row *r, int x, int z, struct ms_buf *out)
{
    int tabs, way = by_tabs(r, x, z, &tabs);
    if (way < 0 || way >= order_length(z - x)) {
        put_order(out, z - x, 'C');
        return;
    }
    for (int i = 0; i < tabs; i++)
        ms_buf_putc(out, '\t');
    for (int i = tabs; i < way; i++)
        ms_buf_putc(out, '\b');
}

/* Emits the step that leads to stop s at column `to` with pen `pen`. */
static void emit_step(const struct tui_row_work *k, const struct tui_row *r, const struct stop *s,
                      int to, int pen, struct ms_buf *out)
{
    char order[TUI_ORDER_MAX];
    int n = tui_pen_change(r->can, k->pen[s->pen], k->pen[pen], order);
    ms_buf_put(out, order, (size_t)n);
    if (s->step == SKIP)
        put_skip(r, s->from, to, out);
    else if (s->step == NEXT_TAB)
        ms_buf_putc(out, '\t');
    else if (s->step == CLEAR)
        ms_buf_puts(out, "\033[K");
    else
        tui_put_utf8(out, k->column[s->from].look[s->look].ch);
    if (s->step == REPEAT)
        ms_buf_printf(out, "\033[%db", to - s->from - 1);
}

/* Reverses the path so that each stop names the next one; returns the pen at the first. */
static int turn_round(struct tui_row_work *k, int first, int last, int pen)
{
    int x = last, next_x = -1, next_pen = 0;
    for (;;) {
        struct stop *s = &k->stop[(size_t)x * PENS + (size_t)pen];
        int before = s->from, before_pen = s->pen;
        /* The stop keeps the step that led to it; its cost is no longer needed. */
        s->cost = next_x * PENS + next_pen;
        if (x == first)
            return pen;
        next_x = x;
        next_pen = pen;
        x = before;
        pen = before_pen;
    }
}

static void emit_steps(struct tui_row_work *k, const struct tui_row *r, int from, int to, int pen,
                       struct ms_buf *out)
{
    int x = from;
    while (x != to) {
        int next = k->stop[(size_t)x * PENS + (size_t)pen].cost;
        x = next / PENS;
        pen = next % PENS;
        emit_step(k, r, &k->stop[(size_t)next], x, pen, out);
    }
}

/* Returns the pen of the cheapest stop at x, -1 if none is reachable. */
static int find_cheapest(const struct tui_row_work *k, int x)
{
    const struct stop *at = &k->stop[(size_t)x * PENS];
    int best = 0;
    for (int i = 1; i < k->pens; i++)
        best = at[i].cost < at[best].cost ? i : best;
    return at[best].cost != NEVER ? best : -1;
}

static void forget_stops(struct tui_row_work *k, int from, int last, struct tui_pen pen)
{
    for (size_t i = (size_t)from * PENS; i < (size_t)(last + 1) * PENS; i++)
        k->stop[i].cost = NEVER;
    k->pens = 0;
    k->stop[(size_t)from * PENS + (size_t)pen_number(k, pen, PENS)].cost = 0;
}

/* Searches as long as pen indices are available, at least one column; returns the column
 * reached. */
static int find_way(struct tui_row_work *k, const struct tui_row *r, int from)
{
    int x = from;
    while (x < r->last && (k->pens <= PENS - KEPT / 2 || x == from || find_cheapest(k, x) < 0)) {
        go_on(k, r, x, may_clear(k, r, x));
        x++;
    }
    return x;
}

bool tui_paint_row(struct tui_row_work **work, const struct tui_row *r, struct tui_pen *pen, int *x,
                   struct ms_buf *out)
{
    ms_assert(r->first >= 0 && r->first <= r->last && r->last <= r->w);
    if (!make_room(work, r->w))
        return false;
    struct tui_row_work *k = *work;
    for (int i = r->last; i-- > r->first;)
        look_at(k, r, i);
    for (int from = r->first, to; from < r->last; from = to) {
        forget_stops(k, from, r->last, *pen);
        to = find_way(k, r, from);
        int end = find_cheapest(k, to);
        const struct stop *last = &k->stop[(size_t)to * PENS + (size_t)end];
        *x = last->step == CLEAR ? last->from : to;
        *pen = k->pen[end];
        emit_steps(k, r, from, to, turn_round(k, from, to, end), out);
    }
    return true;
}
