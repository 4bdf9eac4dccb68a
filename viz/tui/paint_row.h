/* SPDX-License-Identifier: MIT
 *
 * paint_row: the fewest bytes that turn one row of cells into another.
 *
 * Most cells can be written in one way only. A cell that is only a colour can be a space on that
 * background, a space in reverse video or a block; the cheapest one depends on the neighbours.
 */
#ifndef VIZ_TUI_PAINT_ROW_H
#define VIZ_TUI_PAINT_ROW_H

#include "viz/tui/cells.h"

/* ---- pens: looks of a cell on a terminal, and the sequences that change them ---------------- */

struct tui_paint_can {
    int colours;    /* 0: none, 8, or 256 */
    bool separate;  /* attributes can be switched off one by one */
    bool repeat;    /* "repeat the last character n times" */
    bool slide;     /* characters can be inserted and deleted in a row */
    bool tabs;      /* "\t" moves to the next multiple of eight */
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
    bool any_fg; /* no text visible: any text colour will do */
};
enum { TUI_LOOKS = 3, TUI_ORDER_MAX = 48 };

/* Returns the looks with which a cell can be written, one to TUI_LOOKS, the plain one first. */
int tui_pen_looks(const struct tui_paint_can *can, const struct tui_cell *c, bool ascii,
                  struct tui_look *out);
/* Writes the shortest sequence that changes one pen to the other; returns its length, 0 when
 * equal. */
int tui_pen_change(const struct tui_paint_can *can, struct tui_pen from, struct tui_pen to,
                   char out[TUI_ORDER_MAX]);

/* ---- rows ------------------------------------------------------------------------------------ */

/* The new and the old row; the cursor is at column `first`. */
struct tui_row {
    const struct tui_paint_can *can;
    const struct tui_cell *now, *then;
    int first, last, w; /* columns [first, last): from the first to the last that differ */
    bool ascii;
};

struct tui_row_work; /* reusable memory */

/* Appends the bytes and updates the pen and the cursor's column; false when out of memory. */
bool tui_paint_row(struct tui_row_work **work, const struct tui_row *r, struct tui_pen *pen, int *x,
                   struct ms_buf *out);
void tui_paint_row_free(struct tui_row_work *work);

#endif
