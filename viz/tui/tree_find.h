/* SPDX-License-Identifier: MIT
 *
 * tree_find: searching and filtering in the graph.
 */
#ifndef VIZ_TUI_TREE_FIND_H
#define VIZ_TUI_TREE_FIND_H

#include "viz/tui/tree_state.h"

/* Terms: as typed, and n or N afterwards; and the list of what was found. */
enum ms_rc tui_tree_search(struct tui_tree *t, struct ms_str text, bool list, struct ms_err *err);
enum ms_rc tui_tree_hit(struct tui_tree *t, bool back, struct ms_err *err);
/* Go on with what a search has begun; *more: it has not come to its end. */
enum ms_rc tui_tree_search_work(struct tui_app *a, struct tui_tree *t, bool *more,
                                struct ms_err *err);
enum ms_rc tui_tree_list_key(struct tui_app *a, struct tui_tree *t, int key, bool *taken,
                             struct ms_err *err);

#endif
