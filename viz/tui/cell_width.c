/* SPDX-License-Identifier: MIT
 *
 * cell_width: how many cells a letter takes, by the tables of Unicode 14.0.0.
 *
 * Letters that combine with the one before take none and are left out, so that a cell is always one
 * letter.  What is not assigned stands with what is around it; the planes of ideographs are wide to
 * their end.  The terminal's own idea of a letter's width cannot be asked for, and the locale's would
 * make pictures depend on the machine.
 */
#include "viz/tui/cells.h"

struct range {
    uint32_t from, to;
};

#include "viz/tui/cell_width.h"

static bool within(const struct range *r, size_t n, uint32_t ch)
{
    size_t low = 0;
    while (low < n) {
        size_t middle = low + (n - low) / 2;
        if (ch > r[middle].to)
            low = middle + 1;
        else if (ch < r[middle].from)
            n = middle;
        else
            return true;
    }
    return false;
}

int tui_width(uint32_t ch)
{
    if (ch < 0x300)
        return 1;
    if (within(none, sizeof none / sizeof *none, ch))
        return 0;
    return within(wide, sizeof wide / sizeof *wide, ch) ? 2 : 1;
}
