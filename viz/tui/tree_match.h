/* SPDX-License-Identifier: MIT
 *
 * tree_match: matching nodes by hand, and unmatching them.
 */
#ifndef VIZ_TUI_TREE_MATCH_H
#define VIZ_TUI_TREE_MATCH_H

#include "viz/tui/tree_state.h"

/* Handles the keys for matching: Space, U, M, B and Z. */
enum ms_rc tui_tree_match_key(struct tui_app *a, struct tui_tree *t, int key, bool *taken,
                              struct ms_err *err);
/* The commands that save matches to a file beside the graph, and apply matches from one. */
enum ms_rc tui_tree_save_matches(struct tui_app *a, const char *text, struct ms_err *err);
enum ms_rc tui_tree_apply_matches(struct tui_app *a, const char *path, struct ms_err *err);
/* The first writes the changed graph to a file, by default beside the opened one; the second
 * overwrites the opened one. */
enum ms_rc tui_tree_write(struct tui_app *a, const char *path, struct ms_err *err);
enum ms_rc tui_tree_write_over(struct tui_app *a, const char *text, struct ms_err *err);

#endif
