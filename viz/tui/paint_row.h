/* SPDX-License-Identifier: MIT
 *
 * paint_row: the shortest bytes that turn one row of cells into another.
 *
 * Most cells can be written in one way only. A cell that is nothing but its colour can be a space on
 * that colour, a space in reverse or a block: which is shortest depends on what stands around it.
 */
#ifndef VIZ_TUI_PAINT_ROW_H
#define VIZ_TUI_PAINT_ROW_H

#include "viz/tui/cells.h"

/* ---- pens: how a cell may look on a terminal, and the orders that change colours -------------- */

struct tui_paint_can {
    int colours;    /* 0: none, 8, or 256 */
    bool separate;  /* bold and the like can be switched off one by one */
    bool repeat;    /* "the last letter n times more" */
    bool slide;     /* letters can be put in and taken out of a row */
    bool tabs;      /* "\t" goes to the next column that eight divides */
    bool last_cell; /* writing the last cell of the screen does not scroll it */
};

struct tui_pen {
    int16_t fg, bg; /* colours; -1: the terminal's own */
    uint8_t attrs;  /* flags of cells */
};

static inline bool tui_pen_eq(struct tui_pen a, struct tui_pen b)
{
    return a.fg == b.fg && a.bg == b.bg && a.attrs == b.attrs;
}

struct tui_look {
    uint32_t ch;
    struct tui_pen pen;
    bool any_fg; /* no letter is seen: the colour of letters does not matter */
};
enum { TUI_LOOKS = 3, TUI_ORDER_MAX = 48 };

/* The ways in which a cell can be written, one to TUI_LOOKS, the plain one first. */
int tui_pen_looks(const struct tui_paint_can *can, const struct tui_cell *c, bool ascii,
                  struct tui_look *out);
/* The shortest order that makes one pen the other; returns its length, 0 when they are the same. */
int tui_pen_change(const struct tui_paint_can *can, struct tui_pen from, struct tui_pen to,
                   char out[TUI_ORDER_MAX]);

/* ---- rows ------------------------------------------------------------------------------------ */

/* The row as it is to be and as it is, the cursor standing at column `first`. */
struct tui_row {
    const struct tui_paint_can *can;
    const struct tui_cell *now, *then;
    int first, last, w; /* columns [first, last) are looked at: the first and last that differ */
    bool ascii;
};

struct tui_row_work; /* memory that is used again */

/* Append the bytes and set the pen and the column of the cursor to where they leave it; false when
 * out of memory. */
bool tui_paint_row(struct tui_row_work **work, const struct tui_row *r, struct tui_pen *pen, int *x,
                   struct ms_buf *out);
void tui_paint_row_free(struct tui_row_work *work);

#endif
