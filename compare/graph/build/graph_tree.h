/* SPDX-License-Identifier: MIT
 *
 * graph_tree: the containment tree of one rank, or of merged ranks.
 *
 *     graph_tree.c  nodes, their children, the order in which they are written; moves, joins and
 *                   numbers nodes of the linked tree
 *     tree_build.c  reads construct.json, dump.json and stack.json, repairs parents, links children
 *
 * A node is a 32-bit number, the number of its name. Nodes of construct.json come first,
 * then the root, collections and parameter gradients. Children are linked lists, and no
 * stage walks them recursively.
 */
#ifndef COMPARE_GRAPH_BUILD_GRAPH_TREE_H
#define COMPARE_GRAPH_BUILD_GRAPH_TREE_H

#include "compare/graph/build/graph_name.h"
#include "compare/graph/graph.h"
#include "compare/measure/measured.h"
#include "probe/dump/stack.h"
#include "probe/dump/tree.h"

#define GRAPH_NO MS_MAP_NONE

enum graph__over { GRAPH_OVER_NONE, GRAPH_OVER_MEDIUM, GRAPH_OVER_HIGH, GRAPH_OVER_CRITICAL };

/* Values of graph__node.stack that are not numbers of a list of frames. */
enum { GRAPH_STACK_EMPTY = UINT32_MAX, GRAPH_STACK_NO_FORWARD = UINT32_MAX - 1 };

struct graph__node {
    uint32_t parent, first_child, last_child, next;
    uint32_t op;    /* operator of the side that holds the node's rows, or GRAPH_NO */
    uint32_t stack; /* number of a list of frames, or one of the values above */
    uint32_t match; /* node of the other side, or GRAPH_NO */
    uint32_t micro; /* micro step */
    uint32_t seq;   /* one-based order of first mention in construct.json; 0: never mentioned */
    uint8_t kind, over, state;
    bool in_tree; /* has a parent, or is the root */
};

/* Fields that merging ranks adds to a node: JSON lists, or empty. */
struct graph__about {
    struct ms_str info;     /* how the figures were computed */
    struct ms_str children; /* sub_nodes, when different from the node's children */
};

struct graph__tree {
    char *dir; /* directory of the three files */
    const struct graph_rules *rules;
    struct cmp__side side;
    struct probe_tree built; /* owns all names, including those of nodes that are added later */
    struct probe_stacks stacks;
    MS_VEC(struct graph__node) nodes;
    uint32_t root;
    uint32_t micro_steps;
    MS_VEC(uint32_t) order; /* children before parents, the root last */
    char *data_dir;         /* directory of the tensor files; NULL when there are none */
    /* subtrees not connected to the root; gradients that could not be attached */
    uint32_t detached, dropped;
    MS_VEC(struct graph__about) about; /* by node; only in a merged tree */
};

static inline struct ms_str graph__name(const struct graph__tree *g, uint32_t node)
{
    return ms_map_key(&g->built.names, node);
}
static inline struct graph__about graph__about(const struct graph__tree *g, uint32_t node)
{
    return node < g->about.n ? g->about.p[node] : (struct graph__about){{"", 0}, {"", 0}};
}
/* Returns the operator of the side that holds the node's rows, or NULL. */
static inline const struct cmp__op *graph__op(const struct graph__tree *g, uint32_t node)
{
    uint32_t op = node != GRAPH_NO ? g->nodes.p[node].op : GRAPH_NO;
    return op != GRAPH_NO ? &g->side.ops.p[op] : NULL;
}

/* ---- graph_tree.c --------------------------------------------------------- */

/* Initialises an empty tree; graph__close may be called from then on. */
void graph__init(struct graph__tree *g, const struct graph_rules *rules);
void graph__close(struct graph__tree *g);
struct graph__node graph__blank_node(enum graph__kind kind);
/* Returns the node with this name if it is in the tree, else GRAPH_NO. */
uint32_t graph__find(const struct graph__tree *g, struct ms_str name);
/* Adds a node with a copy of this name, not yet attached to the tree. Returns GRAPH_NO when out of
 * memory. */
uint32_t graph__add(struct graph__tree *g, struct ms_str name, enum graph__kind kind);
void graph__append(struct graph__tree *g, uint32_t parent, uint32_t child);
/* Fills g->order. */
enum ms_rc graph__set_order(struct graph__tree *g, struct ms_err *err);
/* Returns an array that maps a record of the dump to its node, or GRAPH_NO. The caller frees the
 * array; NULL when out of memory. */
uint32_t *graph__nodes_of_records(const struct graph__tree *g);

/* ---- tree_build.c --------------------------------------------------------- */

/* Reads dir/{construct,dump,stack}.json and builds the tree. */
enum ms_rc graph__open(struct graph__tree *g, const char *dir, const struct graph_rules *rules,
                       struct ms_pool *pool, struct ms_err *err) MS_MUST_USE;

struct graph__note { /* one for each node of merged ranks, in the order of construct.json */
    uint32_t micro;
    uint8_t kind, over;
    struct ms_str info; /* JSON list, or empty */
    /* JSON list, or empty; set when different from the children in the tree */
    struct ms_str children;
};
struct graph__merged { /* merged ranks, as the text of the three files */
    int64_t rank;      /* of the main rank, the first */
    struct ms_buf construct, dump, stack;
    uint32_t micro_steps; /* of the main rank */
    int64_t stated;       /* micro steps that construct.json states; -1: not stated */
    MS_VEC(struct graph__note) notes;
    struct ms_arena *arena;
};
/* Builds the tree of merged ranks, as graph__open does for a directory; m must outlive the tree. */
enum ms_rc graph__open_merged(struct graph__tree *g, const struct graph__merged *m,
                              const struct graph_rules *rules, struct ms_err *err) MS_MUST_USE;

/* ---- shape: called in this order, then graph__set_order --------------------- */

enum ms_rc graph__move_recomputed(struct graph__tree *g, struct ms_err *err);
enum ms_rc graph__collect_operators(struct graph__tree *g, struct ms_err *err);
enum ms_rc graph__add_gradients(struct graph__tree *g, struct ms_err *err);
void graph__number_micro_steps(struct graph__tree *g);
/* Copies the micro steps of target nodes to their golden partners. */
void graph__share_micro_steps(const struct graph__tree *t, struct graph__tree *b);

#endif
