/* SPDX-License-Identifier: MIT
 *
 * suspect_list: which nodes of which trees are suspects.
 */
#ifndef COMPARE_GRAPH_VIEW_SUSPECT_LIST_H
#define COMPARE_GRAPH_VIEW_SUSPECT_LIST_H

#include "compare/graph/view/graph_view.h"

/* A suspect on one rank. Where it lies is read when it is first needed. */
struct graph_suspect_row {
    struct graph_spot at;
    struct ms_str name;
    int64_t place;
    bool located;
    int64_t order;               /* -1: the tree has no such node */
    MS_VEC(struct ms_str) above; /* names of its ancestors */
};
typedef MS_VEC(struct graph_suspect_row) graph_suspect_rows;

/* Sorts the list, which the functions below need. */
void graph__suspects_sort(graph_suspect_rows *list);
void graph__suspects_free(graph_suspect_rows *list);
bool graph__is_suspect(const graph_suspect_rows *list, struct graph_spot at, struct ms_str name);
/* Sets [*from, *to) to the suspects of a tree. */
void graph__suspects_of(const graph_suspect_rows *list, struct graph_spot at, size_t *from,
                        size_t *to);

#endif
