/* SPDX-License-Identifier: MIT
 *
 * forest: the trees of several ranks, split into nodes and data so that nodes can move
 * to another rank, be renamed, and take over inputs or outputs of other nodes.
 *
 *     rank ──names──► node ──in, out──► data: rows of a record, some with new figures
 *
 * Nodes and data of all ranks are numbered together. A failed allocation is kept in
 * `bad` and checked once at the end.
 */
#ifndef COMPARE_GRAPH_MERGE_FOREST_H
#define COMPARE_GRAPH_MERGE_FOREST_H

#include "compare/graph/build/graph_tree.h"
#include "compare/graph/graph_rules.h"
#include "probe/base/assert.h"

struct graph__patch { /* new figures of a row, which replace its own */
    uint32_t row;
    struct probe_num stat[PROBE_STATS];
};

struct graph__data { /* the inputs or the outputs of a node */
    uint32_t rank;   /* rank whose dump holds the record */
    uint32_t record; /* GRAPH_NO: there is none */
    bool output;
    MS_VEC(struct graph__patch) patches;
};

struct graph__fnode {
    struct ms_str name;
    uint32_t rank, parent;
    uint32_t stack; /* stack of the node in its rank's tree, as in struct graph__node */
    uint32_t in, out;
    uint32_t micro;
    uint32_t position; /* when marked: index among the siblings */
    uint32_t layer;    /* when numbered: number of the layer in the merged model */
    uint32_t plain;    /* when marked: length of the name without the mark */
    uint8_t kind, over;
    bool marked; /* comes from another rank and has no new name yet */
    bool merged; /* the same layer of other ranks was added as siblings */
    bool numbered, seen;
    MS_VEC(uint32_t) children;
    MS_VEC(struct ms_str) info; /* how the figures were computed */
};

/* Nodes of a rank by name, in the order in which they were named. */
struct graph__rank {
    const struct graph__tree *g;
    int64_t rank;
    uint32_t root, collections;
    struct ms_map keys;
    MS_VEC(uint32_t) place; /* by key: index in the list, or GRAPH_NO */
    MS_VEC(uint32_t) list;  /* nodes; GRAPH_NO: removed */
};

struct graph__forest {
    const struct graph_param *param;
    const struct graph_rules *rules;
    struct graph__rank *ranks;
    uint32_t n;
    MS_VEC(struct graph__fnode) nodes;
    MS_VEC(struct graph__data) data;
    struct ms_arena *arena;
    struct ms_buf text;
    enum ms_rc bad;
};

struct graph__item { /* an item of a node's data */
    uint32_t row;
    struct ms_str path;
    enum ms_dtype dtype;
    bool merges; /* has a type whose figures are merged */
    struct probe_num stat[PROBE_STATS];
};

/* Builds the forest from trees, which must outlive it. */
enum ms_rc graph__forest_init(struct graph__forest *f, const struct graph__tree *trees,
                              const int64_t *ranks, uint32_t n, struct ms_err *err);
void graph__forest_free(struct graph__forest *f);

static inline struct graph__fnode *graph__fnode(struct graph__forest *f, uint32_t node)
{
    ms_assert(node < f->nodes.n);
    return &f->nodes.p[node];
}

uint32_t graph__rank_get(const struct graph__rank *r, struct ms_str name);
void graph__rank_put(struct graph__forest *f, struct graph__rank *r, uint32_t node);
void graph__rank_drop(struct graph__rank *r, struct ms_str name);
/* Renames a node, also among the names of r. The name is copied. */
void graph__rename(struct graph__forest *f, struct graph__rank *r, uint32_t node,
                   struct ms_str name);
/* Adds an empty collection below the root of r. */
uint32_t graph__new_collection(struct graph__forest *f, struct graph__rank *r, struct ms_str name);
void graph__adopt(struct graph__forest *f, uint32_t parent, uint32_t child);
struct ms_str graph__copy(struct graph__forest *f, struct ms_str s);
void graph__add_info(struct graph__forest *f, uint32_t node, struct ms_str line);
/* Appends a name with the rank: Torch.mm.0.forward of rank 1 becomes Torch.mm_rank1.0.forward. */
void graph__put_ranked(struct ms_buf *out, struct ms_str name, int64_t rank);
/* Appends a name. If the part between the first two dots is a number, `number` replaces it. */
void graph__put_chunk(struct ms_buf *out, struct ms_str name, uint32_t number);
bool graph__same_ancestors(struct graph__forest *f, uint32_t a, uint32_t b);

/* ---- items ---------------------------------------------------------------- */

/* Reads the next item and advances *at, which is 0 at first. Returns false at the end. */
bool graph__next_item(struct graph__forest *f, uint32_t data, uint32_t *at, struct graph__item *it);
bool graph__find_item(struct graph__forest *f, uint32_t data, struct ms_str path,
                      struct graph__item *it);
void graph__patch_item(struct graph__forest *f, uint32_t data, const struct graph__item *it);
bool graph__is_same(const struct graph__item *a, const struct graph__item *b, bool exact);
/* Collects the item and its counterparts in the data of the other ranks, as far as they exist:
 * *count items in `like`, which has room for n + 1. Returns true when one of them differs, or
 * always with `all`. */
bool graph__item_differs(struct graph__forest *f, const struct graph__item *it,
                         const uint32_t *others, uint32_t n, bool all, struct graph__item *like,
                         uint32_t *count);
bool graph__data_differs(struct graph__forest *f, uint32_t data, const uint32_t *others,
                         uint32_t n);

#endif
