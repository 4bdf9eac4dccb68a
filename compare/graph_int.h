/* SPDX-License-Identifier: MIT
 *
 * graph_int: what the stages of building a graph share.
 *
 * A node is a 32-bit number: that of its name.  Numbers of construct.json come
 * first, then the root, collections and parameter gradients.  Children are
 * linked lists, and no stage walks them by recursion.
 */
#ifndef COMPARE_GRAPH_INT_H
#define COMPARE_GRAPH_INT_H

#include "compare/cmp_int.h"
#include "compare/graph.h"
#include "compare/source.h"
#include "probe/base/jwrite.h"
#include "probe/base/store.h"
#include "probe/stack.h"
#include "probe/tree.h"

#define GRAPH_NO MS_MAP_NONE

/* node_type of the database. */
enum graph__kind { GRAPH_MODULE = 0, GRAPH_API = 1, GRAPH_COLLECTION = 9 };

enum graph__over { GRAPH_OVER_NONE, GRAPH_OVER_MEDIUM, GRAPH_OVER_HIGH, GRAPH_OVER_CRITICAL };

/* Stack of a node that is no list of the dump's. */
enum { GRAPH_STACK_EMPTY = UINT32_MAX, GRAPH_STACK_NO_FORWARD = UINT32_MAX - 1 };

struct graph__node {
    uint32_t parent, first_child, last_child, next;
    uint32_t op;    /* its record's rows: number of an op of the side, or GRAPH_NO */
    uint32_t stack; /* number of a list of frames, or one of the above */
    uint32_t match; /* node of the other side, or GRAPH_NO */
    uint32_t micro;
    uint32_t seq; /* when construct.json first made it necessary */
    uint8_t kind, over, state;
    bool in_tree; /* has a parent, or is the root */
};

struct graph__about {       /* JSON lists or empty */
    struct ms_str info;     /* how its figures came about */
    struct ms_str children; /* sub_nodes, when they are not the node's children */
};

struct graph__tree {
    char *dir; /* where its files lie */
    bool strict;
    struct cmp__side side;
    struct probe_tree built; /* owns the names, also those of nodes that are made here */
    struct probe_stacks stacks;
    MS_VEC(struct graph__node) nodes;
    uint32_t root;
    uint32_t micro_steps;
    MS_VEC(uint32_t) order;     /* children before parents, the root last */
    char *data_dir;             /* where its tensor files are; NULL when it has none */
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
/* A node of that name which lies in the tree, or GRAPH_NO. */
uint32_t graph__find(const struct graph__tree *g, struct ms_str name);

/* ---- names -------------------------------------------------------------- */

enum graph__kind graph__kind_of(struct ms_str name);
/* How many parts the name has between dots. */
unsigned graph__parts(struct ms_str name);
/* The name without its last n parts; empty when it has no more than that. */
struct ms_str graph__cut(struct ms_str name, unsigned n);
/* The i-th part, from 0; empty when there is none. */
struct ms_str graph__part(struct ms_str name, unsigned i);
bool graph__is_number(struct ms_str part);
/* Does it end in ".WORD.<digits>"? */
bool graph__is_call_of(struct ms_str name, struct ms_str word);
/* Put name into out with `from` replaced by `to` everywhere, or in the part before the last. */
void graph__replace(struct ms_buf *out, struct ms_str name, struct ms_str from, struct ms_str to);
void graph__turn_call(struct ms_buf *out, struct ms_str name, struct ms_str to);

/* ---- tree --------------------------------------------------------------- */

/* Read dir/{construct,dump,stack}.json and build the tree. */
enum ms_rc graph__open(struct graph__tree *g, const char *dir, bool strict, struct ms_pool *pool,
                       struct ms_err *err);
void graph__close(struct graph__tree *g);
/* A new node of that name outside of the tree; text is copied.  GRAPH_NO without memory. */
uint32_t graph__add(struct graph__tree *g, struct ms_str name, enum graph__kind kind);
void graph__append(struct graph__tree *g, uint32_t parent, uint32_t child);
/* The rest of building: what moves, joins and numbers nodes, in this order. */
enum ms_rc graph__move_recomputed(struct graph__tree *g, struct ms_err *err);
enum ms_rc graph__collect(struct graph__tree *g, struct ms_err *err);
enum ms_rc graph__add_gradients(struct graph__tree *g, struct ms_err *err);
void graph__number_micro_steps(struct graph__tree *g);
enum ms_rc graph__set_order(struct graph__tree *g, struct ms_err *err);
/* Overflow levels of all nodes. */
void graph__find_overflows(struct graph__tree *g);

/* ---- two trees ---------------------------------------------------------- */

struct graph__pair {
    struct graph__tree t, b; /* b is unused for a single graph */
    bool dual;
    bool
        red_empty; /* digests of ops that make empty memory are shown red, as the official tool does */
    struct cmp cmp; /* rows in pairs and their figures; its sides are lent by t and b */
    /* Of each side, by node: what it is a part of on the other side, or GRAPH_NO.  NULL: not known. */
    uint32_t *part_of[2];
    MS_VEC(uint32_t) first_pair; /* of a target node's rows, by node; one more than there are */
};

enum ms_rc graph__match_same(struct graph__tree *t, struct graph__tree *b, struct ms_err *err);
enum ms_rc graph__match_fuzzy(struct graph__tree *t, struct graph__tree *b, struct ms_err *err);
/* What has no partner goes to one of its name, wherever that lies. */
void graph__match_moved(struct graph__tree *t, struct graph__tree *b);
/* By the alignment, which is kept in p->cmp. */
enum ms_rc graph__match_aligned(struct graph__pair *p, struct ms_pool *pool, struct ms_err *err);
/* names: target name -> golden name where they differ. */
enum ms_rc graph__match_mapped(struct graph__tree *t, struct graph__tree *b,
                               const struct cmp__pairs *names, struct ms_err *err);
/* Golden names of the target's nodes by the rules of a layer mapping. */
enum ms_rc graph__map_layers(struct graph__pair *p, struct cmp__pairs *names, struct ms_err *err);
/* Pair the rows of matched nodes and read tensor files. */
enum ms_rc graph__measure(struct graph__pair *p, struct ms_pool *pool, struct ms_err *err);
/* Rows of a target node that has a partner, with figures and verdicts, and its state. */
enum ms_rc graph__judge(const struct graph__pair *p, uint32_t node, struct cmp_view *v,
                        uint8_t *state, struct ms_err *err);
/* Differences of a row's statistics. */
enum ms_rc graph__measure_row(const struct cmp *c, struct cmp_view *v, struct cmp_row *row,
                              struct ms_err *err);
/* Verdicts of the view's rows, and the state of the node they belong to (v->op). */
uint8_t graph__judge_rows(const struct cmp *c, bool red_empty, struct cmp_view *v);
/* Micro steps of the golden side follow the target's. */
void graph__share_micro_steps(const struct graph__tree *t, struct graph__tree *b);

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
    bool plain; /* under its own name at its own place: nothing to tell */
};
struct graph__fate graph__fate_of(const struct graph__pair *p, bool golden, uint32_t node);
/* By record of the dump: the node of the tree, or GRAPH_NO; free it.  NULL: out of memory. */
uint32_t *graph__nodes_of_records(const struct graph__tree *g);
/* Fill x_kin of one side. */
enum ms_rc graph__store_kin(struct ms_store *store, const struct graph__pair *p, bool golden,
                            struct ms_str graph_id, struct ms_err *err);

/* Rows that the alignment puts together. */
struct graph__row_pairs {
    const struct graph__pair *p;
    uint32_t *place;   /* of a golden row in the order of its side, by row of the dump */
    uint32_t *partner; /* of a target row: a place as above, by row of the dump */
    MS_VEC(struct cmp_align_row) rows;
};
enum ms_rc graph__row_pairs_init(struct graph__row_pairs *r, const struct graph__pair *p,
                                 struct ms_err *err);
void graph__row_pairs_free(struct graph__row_pairs *r);
/* Fill r->partner for the rows of t; *known is false when they are no pair of the alignment. */
enum ms_rc graph__row_pairs_of(struct graph__row_pairs *r, const struct cmp__op *t,
                               const struct cmp__op *b, bool *known, struct ms_err *err);

/* ---- items -------------------------------------------------------------- */

/* Makes the JSON of nodes; one per thread. */
struct graph__items {
    struct ms_buf in, out; /* input_data and output_data of the node made last */
    struct cmp_view view;
    struct ms_buf text, scratch;
    uint32_t nodes; /* since the view's memory was renewed */
    bool compared;  /* the node being made has a partner */
};
enum ms_rc graph__items_init(struct graph__items *it, struct ms_err *err);
void graph__items_free(struct graph__items *it);
/* Items of a node; of the target when it has a partner, with figures and verdict, which also sets
 * *state. */
enum ms_rc graph__items_make(struct graph__items *it, const struct graph__pair *p,
                             const struct graph__tree *g, uint32_t node, uint8_t *state,
                             struct ms_err *err);
/* Figures and verdict of a row of the view as members, each with ", " before it. */
enum ms_rc graph__put_figures(struct ms_buf *out, const struct cmp *c, struct cmp_view *v,
                              size_t row, struct ms_err *err);
/* Is this the name of such a member? */
bool graph__is_figure(const struct cmp *c, struct ms_str key);
/* JSON text with quotes. */
void graph__put_json(struct ms_buf *out, struct ms_str s);

/* input_data and output_data as a database holds them, and where their tensor files are. */
struct graph__stored {
    struct ms_str in, out;
    const char *dir;
};
/* Items of both sides as rows of the view, measured, tensors by their files; their text is the
 * caller's. */
enum ms_rc graph__read_stored(const struct cmp *c, struct cmp_view *v,
                              const struct graph__stored *target,
                              const struct graph__stored *golden, struct ms_err *err);
/* The items of one column in out, with the figures of the view's rows from *row on in the place of
 * those they had; without figures when *row is -1.  MS_E_FORMAT when the text is no object. */
enum ms_rc graph__put_stored(struct ms_buf *out, const struct cmp *c, struct cmp_view *v,
                             struct ms_str json, int64_t *row, struct ms_err *err);

/* Pairs of names, as a file of them says. */
struct graph__two_names {
    struct ms_str target, golden;
};
struct graph__names {
    MS_VEC(struct graph__two_names) list;
    struct ms_arena *arena;
};
enum ms_rc graph__names_parse(struct graph__names *names, struct ms_str text, struct ms_err *err);
void graph__names_free(struct graph__names *names);
/* Match those of them that are nodes without a partner, as one change. */
struct graph_spot;
enum ms_rc graph__match_all(const char *path, struct graph_spot at,
                            const struct graph__names *names, uint64_t *matched,
                            struct ms_err *err);

/* Children of a node by what makes two of them alike: add all, sort once, then take. */
struct graph__peers {
    struct ms_map kinds;
    uint32_t n, *kind, *place, *first, *free;
    struct ms_arena *arena;
    struct ms_buf text;
};
enum ms_rc graph__peers_new(struct graph__peers *p, size_t n, struct ms_err *err);
/* The next child; type is its node_type, one that is taken is like nobody. */
enum ms_rc graph__peers_add(struct graph__peers *p, struct ms_str type, struct ms_str name,
                            bool taken, struct ms_err *err);
enum ms_rc graph__peers_sort(struct graph__peers *p, struct ms_err *err);
/* The first child like that one which nobody has taken: behind child `last` if there is one, where it
 * stands in most modules, and else from the beginning; GRAPH_NO: there is none. */
uint32_t graph__peers_take(struct graph__peers *p, struct ms_str type, struct ms_str name,
                           uint32_t last);
void graph__peers_free(struct graph__peers *p);

/* Explanations of figures and of the colours of states, as JSON objects. */
void graph__put_tips(struct ms_buf *out, enum probe_mode mode, bool strict);
void graph__put_colours(struct ms_buf *out, enum probe_mode mode, bool strict);

/* The official words that strict mode reproduces, or ours. */
enum graph__word { GRAPH_WORD_RANKS = PROBE_STATS, GRAPH_WORD_OUTPUT };
/* word: one of the above or a statistic, then of an item. */
void graph__put_merge_word(struct ms_buf *out, unsigned word, struct ms_str item, bool strict);
/* What is done otherwise than the official tool does it, as a JSON list of sentences; out is empty. */
void graph__put_repairs(struct ms_buf *out, const struct graph_conf *c);
/* The stack of a backward node whose forward node is nowhere, a JSON list. */
struct ms_str graph__lost_stack(bool strict);

/* ---- data flow --------------------------------------------------------------- */

/* Called for each input whose maker is known; src and dst are places in the order of the tree. */
typedef enum ms_rc (*graph__edge_fn)(void *ctx, uint32_t src, uint32_t dst, struct ms_str slot,
                                     struct ms_err *err);
struct graph__flow;
enum ms_rc graph__flow_new(struct graph__flow **f, const struct graph__tree *g, struct ms_err *err);
/* Take in what a node read and wrote; for different nodes from any thread, each with its key. */
enum ms_rc graph__flow_note(struct graph__flow *f, uint32_t node, struct ms_buf *key,
                            struct ms_err *err);
/* After all nodes have been noted. */
enum ms_rc graph__flow_find(struct graph__flow *f, graph__edge_fn put, void *ctx,
                            struct ms_err *err);
void graph__flow_free(struct graph__flow *f);

/* ---- the database --------------------------------------------------------- */

struct graph__place { /* of a tree among ranks and steps */
    int64_t step, rank;
    bool golden;
};

struct graph__db;
enum ms_rc graph__db_new(struct graph__db **db, const struct graph_conf *conf, const char *path,
                         struct ms_err *err);
/* Write one tree of the pair; conf->progress is told how far by `tell`. */
typedef void (*graph__tell_fn)(void *ctx, double share);
enum ms_rc graph__db_put(struct graph__db *db, struct graph__pair *p, struct graph__place place,
                         struct ms_pool *pool, graph__tell_fn tell, void *ctx, struct ms_err *err);
/* Rows of tb_nodes so far; a tree that is put next begins behind them, in its order. */
int64_t graph__db_rows(const struct graph__db *db);
/* A row of tb_nodes gets its links to other ranks. */
enum ms_rc graph__db_link(struct graph__db *db, int64_t row, struct ms_str json,
                          struct ms_err *err);
struct graph__config {
    bool dual, overflow, strict;
    enum probe_mode mode;
    uint32_t micro_steps;
    struct ms_str ranks, steps; /* JSON lists */
};
enum ms_rc graph__db_config(struct graph__db *db, const struct graph__config *c,
                            struct ms_err *err);
/* A row of x_meta; nothing in strict mode. */
enum ms_rc graph__db_meta(struct graph__db *db, const char *key, const char *value,
                          struct ms_err *err);
/* Suspects of all trees, in their order; they name no node of strict files. */
enum ms_rc graph__db_findings(struct graph__db *db, const struct cmp_source *source,
                              struct ms_err *err);
/* Indexes, then the file appears at its path; frees db in any case. */
enum ms_rc graph__db_commit(struct graph__db *db, struct ms_err *err);
void graph__db_free(struct graph__db *db);
/* "NPU_0_1_" */
void graph__put_graph_id(struct ms_buf *out, struct graph__place place);

/* ---- links between ranks ------------------------------------------------------ */

struct graph__comm;
enum ms_rc graph__comm_new(struct graph__comm **c, const struct graph_conf *conf,
                           struct ms_err *err);
/* Note the communication of a tree, after its states are known; its rows stand behind first_row. */
enum ms_rc graph__comm_note(struct graph__comm *c, const struct graph__tree *g,
                            struct graph__place place, int64_t first_row, struct ms_err *err);
enum ms_rc graph__comm_write(struct graph__comm *c, struct graph__db *db, struct ms_err *err);
void graph__comm_free(struct graph__comm *c);
/* The ranks of the group that a node talks to, a JSON list; empty when it does not say. */
struct ms_str graph__comm_group(const struct graph__tree *g, uint32_t node);
/* The rank other than `self` that the node sends to, or -1. */
int64_t graph__comm_sends_to(const struct graph__tree *g, uint32_t node, int64_t self);

#endif
