/* SPDX-License-Identifier: MIT
 *
 * node_judge: pairs of rows of matched nodes, their figures, and the state of a node.
 */
#ifndef COMPARE_GRAPH_BUILD_NODE_JUDGE_H
#define COMPARE_GRAPH_BUILD_NODE_JUDGE_H

#include "compare/graph/build/node_match.h"

/* Groups of rows. The k-th row of a group is paired with the k-th row of the same group. */
enum graph__place_of_row {
    GRAPH_ROW_INPUT,
    GRAPH_ROW_PARAMETERS,
    GRAPH_ROW_OUTPUT,
    GRAPH_ROW_GRADIENT,
    GRAPH_ROW_PLACES
};

/* Pairs the rows of matched nodes and measures tensor files. */
enum ms_rc graph__measure(struct graph__pair *p, struct ms_pool *pool, struct ms_err *err);
/* Makes the rows of a target node with a partner, with figures and verdicts, and the
 * node's state. */
enum ms_rc graph__judge(const struct graph__pair *p, uint32_t node, struct cmp_view *v,
                        uint8_t *state, struct ms_err *err);
/* Computes the differences between the statistics of both sides of a row. */
enum ms_rc graph__measure_row(const struct cmp_rules *rules, struct cmp_view *v,
                              struct cmp_row *row, struct ms_err *err);
/* Judges the rows of the view and returns the state of their node (v->op). */
uint8_t graph__judge_rows(const struct cmp_setup *c, bool red_empty, struct cmp_view *v);

#endif
