/* SPDX-License-Identifier: MIT
 *
 * pairs: what lies below a node, both sides of a comparison in one list.
 *
 * Children of the target stand in their order, each beside its partner; what only
 * the golden side has stands where it would have run.  A partner that lies in
 * another module is shown as moved.  The list comes page by page, and a page says
 * where the next one begins, so nobody has to keep anything between two pages.
 */
#ifndef VIZ_MODEL_PAIRS_H
#define VIZ_MODEL_PAIRS_H

#include "compare/graph/view/graph_view.h"

enum viz_where {
    VIZ_BOTH,
    VIZ_ONLY_TARGET, /* also every row of a single graph */
    VIZ_ONLY_GOLDEN,
    VIZ_MOVED, /* the partner lies below another node */
};

struct viz_pair {
    enum viz_where where;
    struct graph_row target, golden; /* name "" where there is none */
    struct graph_rollup below;       /* of the target, or of a golden row alone */
};

/* Where a page begins: behind these orders. */
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

/* What is asked for: the children of a node.  A name is "" for the root and NULL (p) where the side
 * has no such node. */
struct viz_pairs_of {
    int64_t step, rank;
    int64_t micro; /* -1: all */
    struct ms_str target, golden;
    struct viz_pair_cursor until; /* no row behind these; both 0: to the end */
};

/* Fill a page with at least `limit` rows if there are so many, and few more. */
enum ms_rc viz_pairs_read(struct viz_pairs *p, struct graph_view *v, const struct viz_pairs_of *of,
                          struct viz_pair_cursor after, uint32_t limit,
                          struct ms_err *err) MS_MUST_USE;

/* Where a page begins that has a child of the target as its first or nearly so; *found false when that
 * cannot be told without reading all that is before it. */
enum ms_rc viz_pairs_seek(struct graph_view *v, const struct viz_pairs_of *of,
                          const struct graph_row *child, struct viz_pair_cursor *cursor,
                          bool *found, struct ms_err *err) MS_MUST_USE;

/* How many rows from `first` on are the same layer again and again, and clean: their names differ in
 * one number alone and nothing in or below them asks for a look.  1: just that row. */
size_t viz_pairs_run(const struct viz_pairs *p, size_t first);
/* Do two names differ in one number alone ("layers.3.mlp", "layers.4.mlp")? */
bool viz_same_but_number(struct ms_str a, struct ms_str b);

#endif
