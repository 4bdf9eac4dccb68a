/* SPDX-License-Identifier: MIT
 *
 * rank_comm: links between communication calls of different ranks.
 */
#ifndef COMPARE_GRAPH_BUILD_RANK_COMM_H
#define COMPARE_GRAPH_BUILD_RANK_COMM_H

#include "compare/graph/build/graph_id.h"
#include "compare/graph/build/graph_tree.h"

struct graph__comm;
enum ms_rc graph__comm_new(struct graph__comm **c, const struct graph_conf *conf,
                           struct ms_err *err);
/* Notes the communication calls of a tree whose states are known. Its rows follow first_row. */
enum ms_rc graph__comm_note(struct graph__comm *c, const struct graph__tree *g,
                            struct graph__place place, int64_t first_row, struct ms_err *err);
/* Called with the links of a row of tb_nodes to other ranks. */
typedef enum ms_rc (*graph__link_fn)(void *ctx, int64_t row, struct ms_str json,
                                     struct ms_err *err);
/* Calls `visit` for every node with links. All ranks must have been noted before. */
enum ms_rc graph__comm_find_links(struct graph__comm *c, graph__link_fn visit, void *ctx,
                                  struct ms_err *err);
void graph__comm_free(struct graph__comm *c);
/* Returns the ranks of the node's communication group as a JSON list; empty when the dump does not
 * record them. */
struct ms_str graph__comm_group(const struct graph__tree *g, uint32_t node);
/* Returns the rank other than `self` to which the node sends, or -1. */
int64_t graph__comm_sends_to(const struct graph__tree *g, uint32_t node, int64_t self);

#endif
