/* SPDX-License-Identifier: MIT
 *
 * graph_edit: changes that a viewer makes to its working copy of a .vis.db: nodes matched and
 * unmatched by hand.
 */
#ifndef COMPARE_GRAPH_VIEW_GRAPH_EDIT_H
#define COMPARE_GRAPH_VIEW_GRAPH_EDIT_H

#include "compare/graph/view/graph_view.h"

/* Matches two nodes as the official plugin does: the pair and its opposites in direction get links,
 * states and figures, and are marked as modified.  Tensors are measured by their files; without
 * those they have no figures. */
enum ms_rc graph_match(const char *path, struct graph_spot at, struct ms_str target,
                       struct ms_str golden, struct ms_err *err) MS_MUST_USE;
/* The same for pairs of children with equal types and names, and for theirs; *matched counts pairs. */
enum ms_rc graph_match_below(const char *path, struct graph_spot at, struct ms_str target,
                             struct ms_str golden, uint64_t *matched,
                             struct ms_err *err) MS_MUST_USE;
/* Write the pairs that were matched by hand beside the database `beside`, of which db may be a working
 * copy, as the official plugin does, and tell where; *path has its max set. */
enum ms_rc graph_save_matches(const char *db, const char *beside, struct graph_spot at,
                              struct ms_buf *path, uint64_t *pairs, struct ms_err *err) MS_MUST_USE;
/* Match the pairs of such a file; those that are matched already or not there are passed over. */
enum ms_rc graph_match_saved(const char *db, struct graph_spot at, const char *config,
                             uint64_t *matched, struct ms_err *err) MS_MUST_USE;
enum ms_rc graph_unmatch(const char *path, struct graph_spot at, struct ms_str target,
                         struct ms_err *err) MS_MUST_USE;
/* The same for all that is in it; *parted counts nodes that had a partner. */
enum ms_rc graph_unmatch_below(const char *path, struct graph_spot at, struct ms_str target,
                               uint64_t *parted, struct ms_err *err) MS_MUST_USE;
/* Take the last change back that was made through these functions. MS_E_NOTFOUND: there is none. */
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
