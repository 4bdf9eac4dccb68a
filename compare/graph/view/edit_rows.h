/* SPDX-License-Identifier: MIT
 *
 * edit_rows: a database whose rows are changed by hand, all in one transaction.
 */
#ifndef COMPARE_GRAPH_VIEW_EDIT_ROWS_H
#define COMPARE_GRAPH_VIEW_EDIT_ROWS_H

#include "compare/graph/view/graph_rows.h"
#include "compare/graph/view/stored_items.h"

/* A row of tb_nodes as far as it is changed or decides about a change. */
struct graph__edit_node {
    struct ms_str name, parent, kind, link, in, out, dir;
    double index; /* precision_index; NaN: NULL */
    int64_t order, modified;
    bool there;
};

struct graph__edit {
    struct ms_store *store;
    struct graph_spot at;
    struct ms_arena *arena;
    enum probe_mode mode;
    struct graph__stored_judge judge; /* of who changes pairs; not begun or ended here */
    struct graph_bands bands;
    struct ms_buf in, out, text;
    int64_t change; /* its number in x_undo; 0: not recorded */
    bool tables;    /* x_rollup and x_state are there and true */
};

/* Opens the database and begins a change.  graph__edit_end in any case. */
enum ms_rc graph__edit_begin(struct graph__edit *e, const char *path, struct graph_spot at,
                             struct ms_err *err) MS_MUST_USE;
/* Ends the change: what has been changed stays when rc is MS_OK, and else nothing of it. */
enum ms_rc graph__edit_end(struct graph__edit *e, enum ms_rc rc, struct ms_err *err);
/* A copy of s in the memory of the edit. */
enum ms_rc graph__edit_keep(struct graph__edit *e, struct ms_str s, struct ms_str *out,
                            struct ms_err *err);
/* Memory for one of many changes, freed after it: between these two, e->arena is that memory. */
enum ms_rc graph__edit_own_memory(struct graph__edit *e, struct ms_arena **kept,
                                  struct ms_err *err);
void graph__edit_common_memory(struct graph__edit *e, struct ms_arena *kept);

/* Nodes of both sides. */
enum ms_rc graph__edit_count(struct graph__edit *e, uint64_t *nodes, struct ms_err *err);
/* Reads a node; n->there is false when there is no such node. */
enum ms_rc graph__edit_read(struct graph__edit *e, bool golden, struct ms_str name,
                            struct graph__edit_node *n, struct ms_err *err);
/* Reads the children of a node without their items; the caller frees the list. */
enum ms_rc graph__edit_children(struct graph__edit *e, bool golden, struct ms_str parent,
                                struct graph__edit_node **list, size_t *n, struct ms_err *err);
/* Copies the row to x_undo, writes `after` in its place, and corrects the tables of ours. */
enum ms_rc graph__edit_change(struct graph__edit *e, bool golden,
                              const struct graph__edit_node *before,
                              const struct graph__edit_node *after, struct ms_err *err);
/* True when the node has no partner. */
static inline bool graph__edit_is_unmatched(const struct graph__edit_node *n)
{
    return n->link.n <= 2;
}

#endif
