/* SPDX-License-Identifier: MIT
 *
 * cell_width: the number of cells of a character, by the tables of Unicode 14.0.0.
 *
 * Combining characters have no width and are left out, so that a cell is always one character.
 * Unassigned code points count as their neighbours; the planes of ideographs are wide to their end.
 * The terminal's own width of a character cannot be queried, and the locale's would make pictures
 * depend on the machine.
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
