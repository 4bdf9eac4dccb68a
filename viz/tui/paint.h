/* SPDX-License-Identifier: MIT
 *
 * paint: computes the bytes that turn the terminal's current grid into another.
 *
 *     struct tui_paint p = {.can = {.colours = 256}};
 *     tui_paint_frame(&p, &cells, &out)       first call: everything
 *     tui_paint_frame(&p, &cells, &out)       later calls: changes
 *
 * Terminals are slow over remote connections, so bytes count: colours are sent only when they
 * change and are visible (the text colour of a space is not), a full cell is a coloured space or a
 * block, whichever is shorter, and the cursor takes the shortest move. Only sequences that every
 * ANSI-compatible terminal understands are used; this file does not depend on ncurses.
 */
#ifndef VIZ_TUI_PAINT_H
#define VIZ_TUI_PAINT_H

#include "viz/tui/paint_row.h"

enum { TUI_SLIDES = 6 };

struct tui_paint {
    struct tui_paint_can can;
    struct tui_cells shown; /* contents of the terminal */
    bool known;             /* false: contents of the terminal unknown */
    struct tui_pen pen;
    int y, x; /* cursor; x < 0: behind the last column, or unknown */
    struct tui_row_work *row;
    int slid[TUI_SLIDES]; /* distances of slides in this frame, 0 after the last */
    int tried;            /* number of searches in this frame */
};

/* Makes the next frame complete: the terminal was cleared or written by another program. */
void tui_paint_forget(struct tui_paint *p);
/* Appends the bytes that make the terminal show g; false when out of memory. */
bool tui_paint_frame(struct tui_paint *p, const struct tui_cells *g, struct ms_buf *out);
void tui_paint_free(struct tui_paint *p);

#endif
