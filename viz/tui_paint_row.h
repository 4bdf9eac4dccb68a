/* SPDX-License-Identifier: MIT
 *
 * tui_paint_row: the shortest bytes that turn one row of cells into another.
 */
#ifndef VIZ_TUI_PAINT_ROW_H
#define VIZ_TUI_PAINT_ROW_H

#include "viz/tui_pen.h"

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
