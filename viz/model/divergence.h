/* SPDX-License-Identifier: MIT
 *
 * divergence: where a comparison first goes wrong.
 *
 * The first node, in the order in which calls ended, whose inputs agree with the
 * golden side and whose outputs do not: what is wrong was made there, and what
 * fails behind it has got it from there.
 */
#ifndef VIZ_MODEL_DIVERGENCE_H
#define VIZ_MODEL_DIVERGENCE_H

#include "compare/graph/view/graph_view.h"

/* The page gets that node, by errors, or by warnings where there is no error; without one the
 * first node of that state, and no row when there is neither. */
enum ms_rc viz_first_divergence(struct graph_view *v, struct graph_spot at, struct graph_page *page,
                                struct ms_err *err) MS_MUST_USE;

#endif
