/* SPDX-License-Identifier: MIT
 *
 * tui_pen: how a cell may look on a terminal, and the orders that change colours.
 *
 * Most cells can be written in one way only.  One that is nothing but its colour can be a space on
 * that colour, a space in reverse or a block: which is shortest depends on what stands around it.
 */
#ifndef VIZ_TUI_PEN_H
#define VIZ_TUI_PEN_H

#include "viz/tui_cells.h"

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

#endif
