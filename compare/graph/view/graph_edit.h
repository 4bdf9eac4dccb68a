/* SPDX-License-Identifier: MIT
 *
 * graph_edit: manual matching and unmatching of nodes in a viewer's working copy of a
 * .vis.db.
 */
#ifndef COMPARE_GRAPH_VIEW_GRAPH_EDIT_H
#define COMPARE_GRAPH_VIEW_GRAPH_EDIT_H

#include "compare/graph/view/graph_view.h"

/* Matches two nodes as the official plugin does: the two nodes and the same calls in the other
 * direction get links, states and figures, and are marked as modified. Tensors are measured from
 * their files and have no figures without them. */
enum ms_rc graph_match(const char *path, struct graph_spot at, struct ms_str target,
                       struct ms_str golden, struct ms_err *err) MS_MUST_USE;
/* Also matches children with the same type and class or API, recursively; *matched counts pairs. */
enum ms_rc graph_match_below(const char *path, struct graph_spot at, struct ms_str target,
                             struct ms_str golden, uint64_t *matched,
                             struct ms_err *err) MS_MUST_USE;
/* Writes the pairs that were matched by hand to a file next to the database `beside`, as the
 * official plugin does, and returns its path. db may be a working copy of `beside`. path->max must
 * be set. */
enum ms_rc graph_save_matches(const char *db, const char *beside, struct graph_spot at,
                              struct ms_buf *path, uint64_t *pairs, struct ms_err *err) MS_MUST_USE;
/* Matches the pairs of a saved file; skips pairs whose nodes are matched already or do not
 * exist. */
enum ms_rc graph_match_saved(const char *db, struct graph_spot at, const char *config,
                             uint64_t *matched, struct ms_err *err) MS_MUST_USE;
enum ms_rc graph_unmatch(const char *path, struct graph_spot at, struct ms_str target,
                         struct ms_err *err) MS_MUST_USE;
/* Unmatches a node and its subtree; *parted counts nodes that had a partner. */
enum ms_rc graph_unmatch_below(const char *path, struct graph_spot at, struct ms_str target,
                               uint64_t *parted, struct ms_err *err) MS_MUST_USE;
/* Undoes the last change made through these functions. MS_E_NOTFOUND: there is none. */
enum ms_rc graph_undo(const char *path, struct ms_err *err) MS_MUST_USE;

/* ---- pairs as a file -------------------------------------------------------- */

struct graph__two_names {
    struct ms_str target, golden;
};
struct graph__names {
    MS_VEC(struct graph__two_names) list;
    struct ms_arena *arena;
};
enum ms_rc graph__names_parse(struct graph__names *names, struct ms_str text, struct ms_err *err);
void graph__names_free(struct graph__names *names);

#endif
