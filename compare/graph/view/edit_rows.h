/* SPDX-License-Identifier: MIT
 *
 * edit_rows: manual changes to rows of a database, in one transaction.
 */
#ifndef COMPARE_GRAPH_VIEW_EDIT_ROWS_H
#define COMPARE_GRAPH_VIEW_EDIT_ROWS_H

#include "compare/graph/view/graph_rows.h"
#include "compare/graph/view/stored_items.h"

/* Columns of a row of tb_nodes that are changed or that decide about a change. */
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
    struct graph__stored_judge judge; /* owned by the caller: not initialised or freed here */
    struct graph_bands bands;
    struct ms_buf in, out, text;
    int64_t change; /* number of the change in x_undo; 0: not recorded */
    bool tables;    /* x_rollup and x_state exist and are up to date */
};

/* Opens the database and begins a change. Call graph__edit_end even after an error. */
enum ms_rc graph__edit_begin(struct graph__edit *e, const char *path, struct graph_spot at,
                             struct ms_err *err) MS_MUST_USE;
/* Ends the change: commits when rc is MS_OK, else rolls back. */
enum ms_rc graph__edit_end(struct graph__edit *e, enum ms_rc rc, struct ms_err *err);
/* Copies s to the memory of the edit. */
enum ms_rc graph__edit_keep(struct graph__edit *e, struct ms_str s, struct ms_str *out,
                            struct ms_err *err);
/* The first call gives e->arena fresh memory for one of many changes; the second frees it and
 * restores the former. */
enum ms_rc graph__edit_own_memory(struct graph__edit *e, struct ms_arena **kept,
                                  struct ms_err *err);
void graph__edit_common_memory(struct graph__edit *e, struct ms_arena *kept);

/* Counts the nodes of both sides. */
enum ms_rc graph__edit_count(struct graph__edit *e, uint64_t *nodes, struct ms_err *err);
/* Reads a node; n->there is false when there is no such node. */
enum ms_rc graph__edit_read(struct graph__edit *e, bool golden, struct ms_str name,
                            struct graph__edit_node *n, struct ms_err *err);
/* Reads the children of a node without their items; the caller frees the list. */
enum ms_rc graph__edit_children(struct graph__edit *e, bool golden, struct ms_str parent,
                                struct graph__edit_node **list, size_t *n, struct ms_err *err);
/* Copies the row to x_undo, replaces it by `after`, and updates the x_ tables. */
enum ms_rc graph__edit_change(struct graph__edit *e, bool golden,
                              const struct graph__edit_node *before,
                              const struct graph__edit_node *after, struct ms_err *err);
/* Returns true when the node has no partner. */
static inline bool graph__edit_is_unmatched(const struct graph__edit_node *n)
{
    return n->link.n <= 2;
}

#endif
