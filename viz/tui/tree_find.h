/* SPDX-License-Identifier: MIT
 *
 * tree_find: searching and filtering in the graph.
 */
#ifndef VIZ_TUI_TREE_FIND_H
#define VIZ_TUI_TREE_FIND_H

#include "viz/tui/tree_state.h"

/* The first starts a search as typed, in the tree or as a list; the second is n or N. */
enum ms_rc tui_tree_search(struct tui_tree *t, struct ms_str text, bool list, struct ms_err *err);
enum ms_rc tui_tree_hit(struct tui_tree *t, bool back, struct ms_err *err);
/* Continues a search; *more: not finished. */
enum ms_rc tui_tree_search_work(struct tui_app *a, struct tui_tree *t, bool *more,
                                struct ms_err *err);
enum ms_rc tui_tree_list_key(struct tui_app *a, struct tui_tree *t, int key, bool *taken,
                             struct ms_err *err);

#endif
