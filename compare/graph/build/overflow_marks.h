/* SPDX-License-Identifier: MIT
 *
 * overflow_marks: the overflow level of each node of a tree.
 */
#ifndef COMPARE_GRAPH_BUILD_OVERFLOW_MARKS_H
#define COMPARE_GRAPH_BUILD_OVERFLOW_MARKS_H

#include "compare/graph/build/graph_tree.h"

/* Sets `over` of all nodes. g->order must be set. */
void graph__find_overflows(struct graph__tree *g);

#endif
