/* SPDX-License-Identifier: MIT
 *
 * node_match: finds the golden partner of each target node, by name, by a mapping, or by
 * the alignment.
 */
#ifndef COMPARE_GRAPH_BUILD_NODE_MATCH_H
#define COMPARE_GRAPH_BUILD_NODE_MATCH_H

#include "compare/graph/build/graph_tree.h"

/* Two trees side by side, or one alone. */
struct graph__pair {
    struct graph__tree t, b; /* b is unused for a single graph */
    bool dual;
    bool red_empty; /* in MD5 mode, operators that allocate empty memory are errors */
    struct cmp_setup set;
    struct cmp_rows rows; /* its sides are borrowed from t and b */
    struct cmp_measured measured;
    /* By side and node: the node of the other side that this node is a part of, or GRAPH_NO. NULL:
     * not known. */
    uint32_t *part_of[2];
    /* index of the first pair of rows of a target node, by node, plus one end entry */
    MS_VEC(uint32_t) first_pair;
};
void graph__pair_init(struct graph__pair *p, bool dual);
void graph__pair_close(struct graph__pair *p);

/* Pairs nodes of the same name whose parents are paired. */
void graph__match_same(struct graph__tree *t, struct graph__tree *b);
/* Pairs nodes below matched modules by their names without numbers and ranks. */
enum ms_rc graph__match_fuzzy(struct graph__tree *t, struct graph__tree *b, struct ms_err *err);
/* Pairs unmatched nodes of the same name and kind anywhere in the trees. */
void graph__match_moved(struct graph__tree *t, struct graph__tree *b);
/* Pairs nodes by the alignment, which is kept in p->rows. */
enum ms_rc graph__match_aligned(struct graph__pair *p, struct ms_pool *pool, struct ms_err *err);
/* Pairs nodes by the rules of a layer mapping. */
enum ms_rc graph__match_layers(struct graph__pair *p, struct ms_err *err);

/* Result of matching a node. */
enum graph__fate_kind {
    GRAPH_FATE_MATCHED,
    GRAPH_FATE_MOVED,   /* the partner is not a child of the parent's partner */
    GRAPH_FATE_EXTRA,   /* target node without a counterpart */
    GRAPH_FATE_MISSING, /* golden node without a counterpart */
    GRAPH_FATE_PART,    /* together with other nodes it does what one node of the other side does */
};
struct graph__fate {
    enum graph__fate_kind kind;
    uint32_t partner;  /* node of the other side, or GRAPH_NO */
    struct ms_str how; /* "name", "mapping", "children", or a text of cmp_align_how_names */
    double confidence;
    bool plain; /* matched by name at the same place: nothing to store */
};
struct graph__fate graph__fate_of(const struct graph__pair *p, bool golden, uint32_t node);

#endif
