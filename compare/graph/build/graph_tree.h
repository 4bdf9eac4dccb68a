/* SPDX-License-Identifier: MIT
 *
 * graph_tree: the containment tree of one rank, or of merged ranks.
 *
 *     graph_tree.c  nodes, their children, the order in which they are written
 *     tree_build.c  reads construct.json, dump.json and stack.json, repairs parents, links children
 *     tree_shape.c  moves, joins and numbers nodes of the linked tree
 *
 * A node is a 32-bit number: that of its name.  Numbers of construct.json come
 * first, then the root, collections and parameter gradients.  Children are
 * linked lists, and no stage walks them by recursion.
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

/* Stack of a node whose stack is none of the dump's lists of frames. */
enum { GRAPH_STACK_EMPTY = UINT32_MAX, GRAPH_STACK_NO_FORWARD = UINT32_MAX - 1 };

struct graph__node {
    uint32_t parent, first_child, last_child, next;
    uint32_t op;    /* number of the operator of the side that holds its rows, or GRAPH_NO */
    uint32_t stack; /* number of a list of frames, or one of the above */
    uint32_t match; /* node of the other side, or GRAPH_NO */
    uint32_t micro; /* micro step */
    uint32_t seq;   /* one-based order in which construct.json mentions the node first; 0: never */
    uint8_t kind, over, state;
    bool in_tree; /* has a parent, or is the root */
};

/* What merging ranks adds to a node: JSON lists, or empty. */
struct graph__about {
    struct ms_str info;     /* how its figures came about */
    struct ms_str children; /* sub_nodes, when they are not the node's children */
};

struct graph__tree {
    char *dir; /* of its files */
    const struct graph_rules *rules;
    struct cmp__side side;
    struct probe_tree built; /* owns the names, also those of nodes that are made here */
    struct probe_stacks stacks;
    MS_VEC(struct graph__node) nodes;
    uint32_t root;
    uint32_t micro_steps;
    MS_VEC(uint32_t) order;     /* children before parents, the root last */
    char *data_dir;             /* of its tensor files; NULL when it has none */
    uint32_t detached, dropped; /* subtrees without a way to the root; gradients without a place */
    MS_VEC(struct graph__about) about; /* of a merged tree, by node */
};

static inline struct ms_str graph__name(const struct graph__tree *g, uint32_t node)
{
    return ms_map_key(&g->built.names, node);
}
static inline struct graph__about graph__about(const struct graph__tree *g, uint32_t node)
{
    return node < g->about.n ? g->about.p[node] : (struct graph__about){{"", 0}, {"", 0}};
}
/* The operator of the side that holds the node's rows, or NULL. */
static inline const struct cmp__op *graph__op(const struct graph__tree *g, uint32_t node)
{
    uint32_t op = node != GRAPH_NO ? g->nodes.p[node].op : GRAPH_NO;
    return op != GRAPH_NO ? &g->side.ops.p[op] : NULL;
}

/* ---- graph_tree.c --------------------------------------------------------- */

/* Sets up a tree that graph__close may be called for. */
void graph__init(struct graph__tree *g, const struct graph_rules *rules);
void graph__close(struct graph__tree *g);
struct graph__node graph__blank_node(enum graph__kind kind);
/* A node of that name which lies in the tree, or GRAPH_NO. */
uint32_t graph__find(const struct graph__tree *g, struct ms_str name);
/* A new node of that name outside of the tree; the text is copied.  GRAPH_NO: out of memory. */
uint32_t graph__add(struct graph__tree *g, struct ms_str name, enum graph__kind kind);
void graph__append(struct graph__tree *g, uint32_t parent, uint32_t child);
/* Fills g->order. */
enum ms_rc graph__set_order(struct graph__tree *g, struct ms_err *err);
/* By record of the dump: the node of the tree, or GRAPH_NO; free it.  NULL: out of memory. */
uint32_t *graph__nodes_of_records(const struct graph__tree *g);

/* ---- tree_build.c --------------------------------------------------------- */

/* Reads dir/{construct,dump,stack}.json and builds the tree. */
enum ms_rc graph__open(struct graph__tree *g, const char *dir, const struct graph_rules *rules,
                       struct ms_pool *pool, struct ms_err *err) MS_MUST_USE;

struct graph__note { /* of a node of merged ranks, in the order of construct */
    uint32_t micro;
    uint8_t kind, over;
    struct ms_str info;     /* JSON list, or empty */
    struct ms_str children; /* likewise; set when the tree does not say the same */
};
struct graph__merged { /* ranks merged into one, as text of the three files */
    int64_t rank;      /* of the main rank, the first */
    struct ms_buf construct, dump, stack;
    uint32_t micro_steps; /* of the main rank */
    int64_t said;         /* micro steps that construct.json states, -1: nothing */
    MS_VEC(struct graph__note) notes;
    struct ms_arena *arena;
};
/* Builds the tree of merged ranks, as graph__open does of a directory; m must live as long. */
enum ms_rc graph__open_merged(struct graph__tree *g, const struct graph__merged *m,
                              const struct graph_rules *rules, struct ms_err *err) MS_MUST_USE;

/* ---- tree_shape.c: called in this order, then graph__set_order ------------- */

enum ms_rc graph__move_recomputed(struct graph__tree *g, struct ms_err *err);
enum ms_rc graph__collect_operators(struct graph__tree *g, struct ms_err *err);
enum ms_rc graph__add_gradients(struct graph__tree *g, struct ms_err *err);
void graph__number_micro_steps(struct graph__tree *g);
/* Gives nodes of the golden tree the micro steps of their partners. */
void graph__share_micro_steps(const struct graph__tree *t, struct graph__tree *b);

#endif
