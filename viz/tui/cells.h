/* SPDX-License-Identifier: MIT
 *
 * cells: the grid of cells that every screen of the terminal viewer draws into.
 *
 *     struct tui_cells g = {0};
 *     tui_cells_size(&g, 80, 24)                    false when out of memory
 *     tui_put(&g, 0, 2, 40, TUI_ERROR, text)        row, column, at most 40 columns
 *
 * Nothing here knows a terminal: the grid is shown by term.h or written as
 * text for tests.  A cell's look is a token of meaning, never a colour.  What lies
 * outside of the grid is cut; wide letters take two cells; control characters and
 * broken UTF-8 show as '?', so no file can send the terminal a command.
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
    uint32_t ch; /* 0: the right half of a wide letter */
    uint8_t token, flags;
};

struct tui_cells {
    int w, h;
    bool ascii; /* the terminal has no UTF-8: write stand-ins */
    struct tui_cell *p;
    size_t cap;
};

/* Take that size and clear all; false when out of memory (then the grid is as it was). */
bool tui_cells_size(struct tui_cells *g, int w, int h);
void tui_cells_free(struct tui_cells *g);
void tui_cells_clear(struct tui_cells *g);
static inline struct tui_cell *tui_at(struct tui_cells *g, int y, int x)
{
    return y >= 0 && y < g->h && x >= 0 && x < g->w ? &g->p[(size_t)y * (size_t)g->w + (size_t)x]
                                                    : NULL;
}
/* Do two cells look the same? Nobody sees the token of an empty one. */
static inline bool tui_cell_eq(const struct tui_cell *a, const struct tui_cell *b)
{
    return a->ch == b->ch && a->flags == b->flags &&
           (a->token == b->token || (a->ch == ' ' && (a->flags & ~TUI_BOLD) == 0));
}

/* Columns that a code point takes: 0, 1 or 2. */
int tui_width(uint32_t ch);
/* Columns of a text. */
int tui_text_width(struct ms_str s);
/* The end of a text that fits into w columns; and how many bytes of its beginning do. */
struct ms_str tui_tail(struct ms_str s, int w);
uint32_t tui_fit(struct ms_str s, int w);
/* What stands for a code point in ASCII. */
uint32_t tui_plain(uint32_t ch);
/* Take the first code point off *s; '?' for what is broken or a control character. */
uint32_t tui_take(struct ms_str *s);

/* Each returns the column behind what was put.  Text that needs more than w columns is cut and ends
 * in "…". */
int tui_char(struct tui_cells *g, int y, int x, enum tui_token t, uint32_t ch);
int tui_put(struct tui_cells *g, int y, int x, int w, enum tui_token t, struct ms_str s);
int tui_puts(struct tui_cells *g, int y, int x, int w, enum tui_token t, const char *z);
int tui_printf(struct tui_cells *g, int y, int x, int w, enum tui_token t, const char *fmt, ...)
    MS_PRINTF(6, 7);
/* The same, ending at column x. */
void tui_put_right(struct tui_cells *g, int y, int x, enum tui_token t, const char *z);
/* Of a long name the longest parts say least: "layers.0.norm1.Lay….par….0"; where there are none, or too
 * many, its middle: "Module.layers…forward.0". */
int tui_put_name(struct tui_cells *g, int y, int x, int w, enum tui_token t, struct ms_str s);
void tui_fill(struct tui_cells *g, int y, int x, int w, enum tui_token t, uint32_t ch);
/* Set flags on cells that are there already; token < TUI_TOKENS also makes them of one look. */
void tui_mark(struct tui_cells *g, int y, int x, int w, uint8_t flags, enum tui_token token);
/* A bar of eighths of a cell, `share` of w. */
void tui_bar(struct tui_cells *g, int y, int x, int w, enum tui_token t, double share);

void tui_put_utf8(struct ms_buf *out, uint32_t ch);
/* As text: lines without trailing spaces.  With looks each line is followed by one that has a letter
 * for each cell that is not plain text, when there is any. */
void tui_cells_write(const struct tui_cells *g, bool looks, struct ms_buf *out);

#endif
