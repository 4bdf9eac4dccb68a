/* SPDX-License-Identifier: MIT
 *
 * data_flow: which operator wrote the value that another operator reads, inferred from
 * values.
 */
#ifndef COMPARE_GRAPH_BUILD_DATA_FLOW_H
#define COMPARE_GRAPH_BUILD_DATA_FLOW_H

#include "compare/graph/build/graph_tree.h"

/* Called for each input whose writer is known; src and dst are indices into the order of
 * the tree. */
typedef enum ms_rc (*graph__edge_fn)(void *ctx, uint32_t src, uint32_t dst, struct ms_str slot,
                                     struct ms_err *err);
struct graph__flow;
enum ms_rc graph__flow_new(struct graph__flow **f, const struct graph__tree *g, struct ms_err *err);
/* Hashes the inputs and outputs of a node. Threads may call this at once for different nodes, each
 * with its own key buffer. */
enum ms_rc graph__flow_note(struct graph__flow *f, uint32_t node, struct ms_buf *key,
                            struct ms_err *err);
/* Calls `put` for every edge. All nodes must have been noted before. */
enum ms_rc graph__flow_find(struct graph__flow *f, graph__edge_fn put, void *ctx,
                            struct ms_err *err);
void graph__flow_free(struct graph__flow *f);

#endif
