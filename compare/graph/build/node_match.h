/* SPDX-License-Identifier: MIT
 *
 * node_match: which node of the target stands for which of the golden side, by name,
 * by a mapping, or by the alignment.
 */
#ifndef COMPARE_GRAPH_BUILD_NODE_MATCH_H
#define COMPARE_GRAPH_BUILD_NODE_MATCH_H

#include "compare/graph/build/graph_tree.h"

/* Two trees side by side, or one alone. */
struct graph__pair {
    struct graph__tree t, b; /* b is unused for a single graph */
    bool dual;
    bool red_empty; /* digests of operators that make empty memory are errors */
    struct cmp_setup set;
    struct cmp_rows rows; /* its sides are lent by t and b */
    struct cmp_measured measured;
    /* By side and node: what it is a part of on the other side, or GRAPH_NO.  NULL: not known. */
    uint32_t *part_of[2];
    MS_VEC(uint32_t) first_pair; /* of a target node's rows, by node; one more than there are */
};
void graph__pair_init(struct graph__pair *p, bool dual);
void graph__pair_close(struct graph__pair *p);

/* The same name below the same ancestors. */
void graph__match_same(struct graph__tree *t, struct graph__tree *b);
/* By names without numbers and ranks, below matched modules. */
enum ms_rc graph__match_fuzzy(struct graph__tree *t, struct graph__tree *b, struct ms_err *err);
/* Pairs nodes without a partner with those of their name, wherever these lie. */
void graph__match_moved(struct graph__tree *t, struct graph__tree *b);
/* By the alignment, which is kept in p->rows. */
enum ms_rc graph__match_aligned(struct graph__pair *p, struct ms_pool *pool, struct ms_err *err);
/* By the rules of a layer mapping. */
enum ms_rc graph__match_layers(struct graph__pair *p, struct ms_err *err);

/* How a node fared in the comparison. */
enum graph__fate_kind {
    GRAPH_FATE_MATCHED,
    GRAPH_FATE_MOVED,   /* its partner does not lie in its parent's partner */
    GRAPH_FATE_EXTRA,   /* the golden side has nothing like it */
    GRAPH_FATE_MISSING, /* of a golden node: the target has nothing like it */
    GRAPH_FATE_PART,    /* with others it does what one node of the other side does */
};
struct graph__fate {
    enum graph__fate_kind kind;
    uint32_t partner;  /* or GRAPH_NO */
    struct ms_str how; /* "name", "mapping", "children", or of cmp_align_how_names */
    double confidence;
    bool plain; /* matched by its own name at its own place: nothing to store */
};
struct graph__fate graph__fate_of(const struct graph__pair *p, bool golden, uint32_t node);

#endif
