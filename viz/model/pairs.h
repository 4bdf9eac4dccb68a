/* SPDX-License-Identifier: MIT
 *
 * pairs: the children of a node, target and golden in one list.
 *
 * Children of the target are in their order, each with its partner; golden nodes without a partner
 * are placed where they would have run. A partner below another module is shown as moved. The list
 * is read in pages, and a page ends with the cursor of the next one, so no state is kept between
 * two pages.
 */
#ifndef VIZ_MODEL_PAIRS_H
#define VIZ_MODEL_PAIRS_H

#include "compare/graph/view/graph_view.h"

enum viz_where {
    VIZ_BOTH,
    VIZ_ONLY_TARGET, /* also every row of a single graph */
    VIZ_ONLY_GOLDEN,
    VIZ_MOVED, /* the partner is below another node */
};

struct viz_pair {
    enum viz_where where;
    struct graph_row target, golden; /* name "" when there is none */
    struct graph_rollup below;       /* states below the target, or below the golden node alone */
};

/* Start of a page: after these orders. */
struct viz_pair_cursor {
    int64_t target, golden;
};
#define VIZ_PAIRS_FIRST ((struct viz_pair_cursor){-1, -1})

struct viz_pairs {
    MS_VEC(struct viz_pair) rows;
    bool more;
    struct viz_pair_cursor next;
    struct ms_arena *arena;
};
void viz_pairs_free(struct viz_pairs *p);

/* Parent whose children are read. A name is "" for the root and NULL (p) when that side has no
 * such node. */
struct viz_pairs_of {
    int64_t step, rank;
    int64_t micro; /* -1: all */
    struct ms_str target, golden;
    struct viz_pair_cursor until; /* no row after these; both 0: to the end */
};

/* Reads a page of at least `limit` rows, as far as there are any, and few more. */
enum ms_rc viz_pairs_read(struct viz_pairs *p, struct graph_view *v, const struct viz_pairs_of *of,
                          struct viz_pair_cursor after, uint32_t limit,
                          struct ms_err *err) MS_MUST_USE;

/* Computes the cursor of a page that has a child of the target as its first row, or nearly so;
 * *found is false when that would need all earlier pages. */
enum ms_rc viz_pairs_seek(struct graph_view *v, const struct viz_pairs_of *of,
                          const struct graph_row *child, struct viz_pair_cursor *cursor,
                          bool *found, struct ms_err *err) MS_MUST_USE;

/* Returns the number of rows from `first` on that are repetitions of one clean layer: their
 * names differ in a single number and no node in or below them has a warning or error. 1: no
 * repetition. */
size_t viz_pairs_run(const struct viz_pairs *p, size_t first);
/* Tells whether two names differ in a single number ("layers.3.mlp", "layers.4.mlp"). */
bool viz_same_but_number(struct ms_str a, struct ms_str b);

/* Returns the short name of a row: a name without the part shown by its parent row and without common prefixes and
 * suffixes: "attn.SelfAttention" for "Module.layers.0.attn.SelfAttention.forward.0" below layer
 * 0. The result points into `name`. */
struct ms_str viz_node_short(struct ms_str name, struct ms_str parent);

#endif
