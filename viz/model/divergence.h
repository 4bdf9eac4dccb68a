/* SPDX-License-Identifier: MIT
 *
 * divergence: the node at which a comparison first goes wrong.
 *
 * This is the earliest node, in the order in which calls ended, whose inputs agree with the golden
 * side and whose outputs do not: the error arises there, and later failures are inherited.
 */
#ifndef VIZ_MODEL_DIVERGENCE_H
#define VIZ_MODEL_DIVERGENCE_H

#include "compare/graph/view/graph_view.h"

/* Sets the page to that node, searched among errors, or among warnings when there are no errors.
 * Without such a node, the earliest node of that state; without any, no row. */
enum ms_rc viz_first_divergence(struct graph_view *v, struct graph_spot at, struct graph_page *page,
                                struct ms_err *err) MS_MUST_USE;

#endif
