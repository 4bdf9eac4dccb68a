/* SPDX-License-Identifier: MIT
 *
 * viewer_tables: the tables of a .vis.db that only our viewers read.
 */
#ifndef COMPARE_GRAPH_BUILD_VIEWER_TABLES_H
#define COMPARE_GRAPH_BUILD_VIEWER_TABLES_H

#include "compare/graph/build/graph_tree.h"
#include "compare/graph/build/node_match.h"
#include "probe/base/store.h"

struct graph__flow;
enum ms_rc graph__flow_new(struct graph__flow **f, const struct graph__tree *g, struct ms_err *err);
/* Hashes the inputs and outputs of a node. Threads may call this at once for different nodes, each
 * with its own key buffer. */
enum ms_rc graph__flow_note(struct graph__flow *f, uint32_t node, struct ms_buf *key,
                            struct ms_err *err);
void graph__flow_free(struct graph__flow *f);

struct graph__extra {
    struct ms_store *store;
    const struct graph_conf *conf;
    struct ms_stmt *rollup, *state, *names, *align, *edge;
    struct ms_buf id, text;
    /* Of the tree being written: */
    const struct graph__pair *pair;
    const struct graph__tree *g;
    bool golden;
    struct ms_str prefix;     /* prefix of the identifiers of its nodes */
    struct graph__flow *flow; /* NULL: data flow is not stored */
};

/* Creates the tables in `store`, which the caller keeps. */
enum ms_rc graph__extra_prepare(struct graph__extra *x, struct ms_store *store,
                                const struct graph_conf *conf, struct ms_err *err) MS_MUST_USE;
/* Writes the rows about one side of a pair. */
enum ms_rc graph__extra_put(struct graph__extra *x, const struct graph__pair *p, bool golden,
                            struct ms_str prefix, struct graph__flow *flow,
                            struct ms_err *err) MS_MUST_USE;
void graph__extra_free(struct graph__extra *x);

#endif
