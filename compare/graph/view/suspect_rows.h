/* SPDX-License-Identifier: MIT
 *
 * suspect_rows: suspects among the rows of a database.
 *
 * A node that introduces a difference is in error wherever nodes are listed, counted or searched,
 * even if its figures are within the official thresholds. The tables keep the official states; this
 * module corrects what is read from them.
 */
#ifndef COMPARE_GRAPH_VIEW_SUSPECT_ROWS_H
#define COMPARE_GRAPH_VIEW_SUSPECT_ROWS_H

#include "compare/graph/view/graph_view.h"

/* Fills the list of an open database with the suspects that are likely. */
enum ms_rc graph__suspects_read(struct graph_view *v, struct ms_err *err) MS_MUST_USE;
/* Corrects counts that were made from official states. */
enum ms_rc graph__suspects_count(struct graph_view *v, struct graph_spot at, struct ms_str name,
                                 struct graph_rollup *r, struct ms_err *err) MS_MUST_USE;
/* Sets *order to that of the nearest suspect after `from`, or before it; -1: there is none. */
enum ms_rc graph__suspects_nearest(struct graph_view *v, struct graph_spot at, int64_t from,
                                   bool backwards, int64_t *order, struct ms_err *err) MS_MUST_USE;
/* Tells whether the node with this order is a suspect. */
enum ms_rc graph__suspects_have(struct graph_view *v, struct graph_spot at, int64_t order,
                                bool *yes, struct ms_err *err) MS_MUST_USE;

#endif
