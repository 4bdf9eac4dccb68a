/* SPDX-License-Identifier: MIT
 *
 * paint: what to send so that a terminal that shows one grid shows another.
 *
 *     struct tui_paint p = {.can = {.colours = 256}};
 *     tui_paint_frame(&p, &cells, &out)       the first time: all of it
 *     tui_paint_frame(&p, &cells, &out)       then: what has changed
 *
 * Terminals are slow where people sit far from them, so bytes count: colours are
 * told only when they change and only where they can be seen (the letter colour
 * of a space cannot), a full cell is a coloured space or a block, whichever is
 * shorter, and the cursor moves in the shortest way.  Only what every terminal of
 * the ANSI family understands is sent; nothing here knows ncurses.
 */
#ifndef VIZ_TUI_PAINT_H
#define VIZ_TUI_PAINT_H

#include "viz/tui/paint_row.h"

enum { TUI_SLIDES = 6 };

struct tui_paint {
    struct tui_paint_can can;
    struct tui_cells shown; /* what the terminal has */
    bool known;             /* false: nobody knows what it has */
    struct tui_pen pen;
    int y, x; /* of its cursor; x < 0: behind the last column, or unknown */
    struct tui_row_work *row;
    int slid[TUI_SLIDES]; /* within a frame: how far rows slid, 0 behind the last */
    int tried;            /* and how many were searched */
};

/* The terminal has been cleared or used by others: the next frame is sent whole. */
void tui_paint_forget(struct tui_paint *p);
/* Append what makes the terminal show g; false when out of memory. */
bool tui_paint_frame(struct tui_paint *p, const struct tui_cells *g, struct ms_buf *out);
void tui_paint_free(struct tui_paint *p);

#endif
