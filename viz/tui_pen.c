/* SPDX-License-Identifier: MIT
 *
 * tui_pen: colours and attributes as "select graphic rendition".
 */
#include "viz/tui_pen.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK = 0x2588, BLACK = 0, WHITE = 7 };

/* ---- colours ------------------------------------------------------------------------ */

/* By the table of the page's tokens; -1 is the terminal's own colour.  `on` is the colour of letters
 * upon a slice of that kind; -1: it is shown in reverse, which is short to send and can be read where
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
    /* Of slices there are many: numbers below 16 are half as long to send. */
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

/* Letters on a slice need light on dark or dark on light; eight colours have no light blue. */
static int16_t upon(const struct tui_paint_can *can, unsigned token)
{
    return can->colours < 256 && palette[token].c8 == palette[TUI_COMPUTE].c8 ? WHITE
                                                                              : palette[token].on;
}

static bool is_slice(const struct tui_paint_can *can, const struct tui_cell *c)
{
    return can->colours > 0 && (c->flags & TUI_REVERSE) != 0 && upon(can, c->token) >= 0;
}

static struct tui_pen pen_of(const struct tui_paint_can *can, const struct tui_cell *c)
{
    struct tui_pen pen = {colour_of(can, c->token), -1, c->flags};
    if (is_slice(can, c))
        return (struct tui_pen){upon(can, c->token), pen.fg, c->flags & (uint8_t)~TUI_REVERSE};
    if (c->ch == ' ' && (c->flags & ~TUI_BOLD) == 0)
        return (struct tui_pen){pen.fg, -1, 0}; /* empty, whatever it is a part of */
    if (can->colours == 0)
        pen.attrs ^= palette[c->token].mono;
    else if (c->token == TUI_OVERFLOW)
        pen.attrs ^= TUI_REVERSE;
    return pen;
}

/* ---- looks --------------------------------------------------------------------------- */

/* Is that look nothing but a colour, and which? -1 is that of the terminal's letters.  The blocks of bars
 * stay letters, so that who copies the text of the screen has them too. */
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

/* What shows in reverse as another letter does: the left or lower part of a cell and the rest of it. */
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

static void parameter(struct order *o, const char *before, int v)
{
    o->n += snprintf(o->s + o->n, sizeof o->s - (size_t)o->n, "%s%s%d", o->n == 0 ? "\033[" : ";",
                     before, v);
}

static void put_colour(struct order *o, int colour, bool background)
{
    int base = background ? 10 : 0;
    if (colour < 0)
        parameter(o, "", base + 39);
    else if (colour < 8)
        parameter(o, "", base + 30 + colour);
    else if (colour < 16)
        parameter(o, "", base + 90 + colour - 8);
    else
        parameter(o, background ? "48;5;" : "38;5;", colour);
}

static void put_attributes(struct order *o, unsigned has, unsigned want)
{
    static const struct {
        unsigned flag;
        int on, off;
    } kinds[] = {{TUI_BOLD, 1, 22}, {TUI_UNDERLINE, 4, 24}, {TUI_REVERSE, 7, 27}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if ((has & kinds[i].flag) != (want & kinds[i].flag))
            parameter(o, "", (want & kinds[i].flag) != 0 ? kinds[i].on : kinds[i].off);
    }
}

static struct order change(struct tui_pen from, struct tui_pen to, bool reset)
{
    struct order o = {.n = 0};
    if (reset) {
        from = (struct tui_pen){-1, -1, 0};
        if (tui_pen_eq(from, to))
            return (struct order){"\033[m", 3};
        parameter(&o, "", 0);
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
    struct order o = change(from, to, true);
    bool takes_away = (from.attrs & ~to.attrs) != 0;
    if (can->separate || !takes_away) {
        struct order step = change(from, to, false);
        o = step.n <= o.n ? step : o;
    }
    memcpy(out, o.s, (size_t)o.n);
    return o.n;
}
