/* SPDX-License-Identifier: MIT
 *
 * cells: the grid of cells that every screen of the terminal viewer draws into.
 *
 *     struct tui_cells g = {0};
 *     tui_cells_size(&g, 80, 24)                    false when out of memory
 *     tui_put(&g, 0, 2, 40, TUI_ERROR, text)        row, column, at most 40 columns
 *
 * The grid is independent of any terminal: term.h shows it, and tests write it as text. A cell's
 * look is a token of meaning, not a colour. Output outside of the grid is clipped; wide characters
 * take two cells; control characters and broken UTF-8 show as '?', so no file can send commands to
 * the terminal.
 */
#ifndef VIZ_TUI_CELLS_H
#define VIZ_TUI_CELLS_H

#include "probe/base/str.h"

enum tui_token {
    TUI_TEXT,
    TUI_DIM,
    TUI_ACCENT,
    TUI_ERROR,
    TUI_WARNING,
    TUI_PASS,
    TUI_UNMATCHED,
    TUI_INFO,
    TUI_OVERFLOW,
    TUI_COMPUTE, /* kinds of slices */
    TUI_COMM,
    TUI_COPY,
    TUI_IDLE,
    TUI_USER,
    TUI_TOKENS
};
enum {
    TUI_REVERSE = 1, /* flags of a cell */
    TUI_BOLD = 2,
    TUI_UNDERLINE = 4,
};

struct tui_cell {
    uint32_t ch; /* 0: the right half of a wide character */
    uint8_t token, flags;
};

struct tui_cells {
    int w, h;
    bool ascii; /* no UTF-8: ASCII replacements are written */
    struct tui_cell *p;
    size_t cap;
};

/* Sets the size and clears the grid; when out of memory returns false and changes nothing. */
bool tui_cells_size(struct tui_cells *g, int w, int h);
void tui_cells_free(struct tui_cells *g);
void tui_cells_clear(struct tui_cells *g);
static inline struct tui_cell *tui_at(struct tui_cells *g, int y, int x)
{
    return y >= 0 && y < g->h && x >= 0 && x < g->w ? &g->p[(size_t)y * (size_t)g->w + (size_t)x]
                                                    : NULL;
}
/* Tells whether two cells look the same; the token of an empty cell is invisible. */
static inline bool tui_cell_eq(const struct tui_cell *a, const struct tui_cell *b)
{
    return a->ch == b->ch && a->flags == b->flags &&
           (a->token == b->token || (a->ch == ' ' && (a->flags & ~TUI_BOLD) == 0));
}

/* Tells whether nothing is drawn in a cell; NULL is outside of the grid. */
static inline bool tui_is_free(const struct tui_cell *c)
{
    return c == NULL || (c->ch == ' ' && c->flags == 0);
}

/* Returns the columns of a code point: 0, 1 or 2. */
int tui_width(uint32_t ch);
/* Returns the columns of a text. */
int tui_text_width(struct ms_str s);
/* The first returns the longest end of a text that fits into w columns, the second the number of
 * bytes of its beginning that fit. */
struct ms_str tui_tail(struct ms_str s, int w);
uint32_t tui_fit(struct ms_str s, int w);
/* Removes and returns the first code point of *s; '?' for invalid ones and control characters. */
uint32_t tui_take(struct ms_str *s);

/* Each returns the column after the output. Text longer than w columns is cut and ends in "…". */
int tui_char(struct tui_cells *g, int y, int x, enum tui_token t, uint32_t ch);
int tui_put(struct tui_cells *g, int y, int x, int w, enum tui_token t, struct ms_str s);
int tui_puts(struct tui_cells *g, int y, int x, int w, enum tui_token t, const char *z);
int tui_printf(struct tui_cells *g, int y, int x, int w, enum tui_token t, const char *fmt, ...)
    MS_PRINTF(6, 7);
/* Writes text that ends at column x. */
void tui_put_right(struct tui_cells *g, int y, int x, enum tui_token t, const char *z);
/* Writes a name; a long one is abbreviated in its longest parts, which distinguish least:
 * "layers.0.norm1.Lay….par….0". Without parts, or with too many, it is abbreviated in the
 * middle: "Module.layers…forward.0". */
int tui_put_name(struct tui_cells *g, int y, int x, int w, enum tui_token t, struct ms_str s);
void tui_fill(struct tui_cells *g, int y, int x, int w, enum tui_token t, uint32_t ch);
/* Sets flags on existing cells; token < TUI_TOKENS also gives all of them that look. */
void tui_mark(struct tui_cells *g, int y, int x, int w, uint8_t flags, enum tui_token token);
/* Draws a bar of length `share` of w in eighths of a cell. */
void tui_bar(struct tui_cells *g, int y, int x, int w, enum tui_token t, double share);

void tui_put_utf8(struct ms_buf *out, uint32_t ch);
/* Writes the grid as text: lines without trailing spaces. With looks, each line that has cells
 * other than plain text is followed by a line with a letter for each of them. */
void tui_cells_write(const struct tui_cells *g, bool looks, struct ms_buf *out);
/* Writes the grid as an SVG picture with the colours of the tokens. */
void tui_cells_svg(const struct tui_cells *g, struct ms_buf *out);

#endif
