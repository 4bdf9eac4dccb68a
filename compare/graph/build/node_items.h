/* SPDX-License-Identifier: MIT
 *
 * node_items: input_data and output_data of a node as JSON.
 */
#ifndef COMPARE_GRAPH_BUILD_NODE_ITEMS_H
#define COMPARE_GRAPH_BUILD_NODE_ITEMS_H

#include "compare/graph/build/node_match.h"

/* State for making the JSON of nodes; one per thread. */
struct graph__items {
    struct ms_buf in, out; /* input_data and output_data of the last node */
    struct cmp_view view;
    struct ms_buf text, scratch;
    uint32_t nodes; /* nodes made since the view's memory was renewed */
    bool compared;  /* the node being made has a partner */
};
enum ms_rc graph__items_init(struct graph__items *it, struct ms_err *err);
void graph__items_free(struct graph__items *it);
/* Makes the items of a node. A target node with a partner also gets figures and verdicts, from
 * which *state is derived. */
enum ms_rc graph__items_make(struct graph__items *it, const struct graph__pair *p,
                             const struct graph__tree *g, uint32_t node, uint8_t *state,
                             struct ms_err *err);
/* Appends figures and verdict of a row of the view as members, each with ", " before it. */
enum ms_rc graph__put_figures(struct ms_buf *out, const struct cmp_setup *c, struct cmp_view *v,
                              size_t row, struct ms_err *err);
/* Returns true when `key` is the name of such a member. */
bool graph__is_figure(const struct cmp_setup *c, struct ms_str key);
/* Removes the ", " at `at`, where the first member of an object begins. */
void graph__drop_comma(struct ms_buf *out, size_t at);

#endif
