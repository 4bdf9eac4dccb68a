/* SPDX-License-Identifier: MIT
 *
 * tree_match: nodes that are matched by hand, and taken apart.
 */
#ifndef VIZ_TUI_TREE_MATCH_H
#define VIZ_TUI_TREE_MATCH_H

#include "viz/tui/tree_state.h"

/* Matching by hand: Space, U, M, B and Z. */
enum ms_rc tui_tree_match_key(struct tui_app *a, struct tui_tree *t, int key, bool *taken,
                              struct ms_err *err);
/* The commands that keep matches in a file beside the graph, and take them from one. */
enum ms_rc tui_tree_save_matches(struct tui_app *a, const char *text, struct ms_err *err);
enum ms_rc tui_tree_apply_matches(struct tui_app *a, const char *path, struct ms_err *err);
/* Writes the changed graph to a file, beside the one that was opened when none is named, and over it. */
enum ms_rc tui_tree_write(struct tui_app *a, const char *path, struct ms_err *err);
enum ms_rc tui_tree_write_over(struct tui_app *a, const char *text, struct ms_err *err);

#endif
