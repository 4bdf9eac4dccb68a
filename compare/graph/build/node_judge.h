/* SPDX-License-Identifier: MIT
 *
 * node_judge: pairs of rows of matched nodes, their figures, and the state of a node.
 */
#ifndef COMPARE_GRAPH_BUILD_NODE_JUDGE_H
#define COMPARE_GRAPH_BUILD_NODE_JUDGE_H

#include "compare/graph/build/node_match.h"

/* Which rows of two operators meet: the k-th at a place with the k-th at the same place. */
enum graph__place_of_row {
    GRAPH_ROW_INPUT,
    GRAPH_ROW_PARAMETERS,
    GRAPH_ROW_OUTPUT,
    GRAPH_ROW_GRADIENT,
    GRAPH_ROW_PLACES
};

/* Pairs the rows of matched nodes and measures tensor files. */
enum ms_rc graph__measure(struct graph__pair *p, struct ms_pool *pool, struct ms_err *err);
/* Makes the rows of a target node that has a partner, with figures and verdicts, and its state. */
enum ms_rc graph__judge(const struct graph__pair *p, uint32_t node, struct cmp_view *v,
                        uint8_t *state, struct ms_err *err);
/* Measures the differences of a row's statistics. */
enum ms_rc graph__measure_row(const struct cmp_rules *rules, struct cmp_view *v,
                              struct cmp_row *row, struct ms_err *err);
/* Judges the view's rows; returns the state of the node they belong to (v->op). */
uint8_t graph__judge_rows(const struct cmp_setup *c, bool red_empty, struct cmp_view *v);

#endif
