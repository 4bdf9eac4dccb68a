/* SPDX-License-Identifier: MIT
 *
 * tree_draw: the graph screen in cells.
 */
#ifndef VIZ_TUI_TREE_DRAW_H
#define VIZ_TUI_TREE_DRAW_H

#include "viz/tui/tree_state.h"

/* The first returns the number of rows that show nodes, the second the side that a column
 * belongs to. */
int tui_tree_rows(const struct tui_tree *t, const struct tui_cells *g);
bool tui_tree_is_golden(const struct tui_tree *t, const struct tui_cells *g, int x);
void tui_tree_where(const struct tui_app *a, const void *self, char text[TUI_WHERE_MAX]);
enum ms_rc tui_tree_draw(struct tui_app *a, void *self, struct ms_err *err);

#endif
