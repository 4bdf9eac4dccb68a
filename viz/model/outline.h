/* SPDX-License-Identifier: MIT
 *
 * outline: the rows of the graph that a viewer shows, as one flat list.
 *
 * Only what is unfolded is in memory.  Rows come from the database a page at a
 * time: a row of kind MORE stands for those that were not asked for yet, at the
 * end or, where a node far behind was gone to, before it; a row of kind RUN
 * stands for layers that are the same again and again.
 */
#ifndef VIZ_MODEL_OUTLINE_H
#define VIZ_MODEL_OUTLINE_H

#include "viz/model/pairs.h"

enum viz_row_kind {
    VIZ_ROW_NODE,
    VIZ_ROW_RUN,  /* `run` nodes in a row that are alike and clean; pair is the first */
    VIZ_ROW_MORE, /* open it to see the next page */
};

struct viz_row {
    enum viz_row_kind kind;
    bool open;
    uint16_t depth;
    uint32_t natural;              /* its place before the rows were sorted (viz_arrange) */
    uint32_t run;                  /* of RUN: how many nodes; 1 for the others */
    struct viz_pair pair;          /* of NODE and RUN */
    struct viz_pair_cursor cursor; /* of MORE: where the page begins; of RUN: behind what it does */
    struct viz_pair_cursor until; /* of MORE: what is behind is there already; both 0: nothing is */
};

struct viz_outline {
    struct graph_view *v;
    int64_t step, rank, micro;
    bool fold_runs;
    MS_VEC(struct viz_row) rows;
    struct ms_arena *arena; /* text of the rows */
};

/* The top of the graph of a step and rank, with its root unfolded. */
enum ms_rc viz_outline_open(struct viz_outline *t, struct graph_view *v, int64_t step, int64_t rank,
                            struct ms_err *err) MS_MUST_USE;
void viz_outline_close(struct viz_outline *t);

/* Unfold a node or a run, or fetch the next page; nothing happens on a row without children. */
enum ms_rc viz_outline_unfold(struct viz_outline *t, size_t i, struct ms_err *err) MS_MUST_USE;
void viz_outline_fold(struct viz_outline *t, size_t i);
/* The row that row i lies below, or i itself at the top. */
size_t viz_outline_parent(const struct viz_outline *t, size_t i);
/* The next or previous row at the same depth below the same parent, or i. */
size_t viz_outline_sibling(const struct viz_outline *t, size_t i, int direction);

/* Unfold whatever is in the way and find the row of a node.  MS_E_NOTFOUND. */
enum ms_rc viz_outline_reveal(struct viz_outline *t, bool golden, struct ms_str name, size_t *row,
                              struct ms_err *err) MS_MUST_USE;
/* Read all rows again, with what is unfolded unfolded: after a change of the file. */
enum ms_rc viz_outline_reload(struct viz_outline *t, struct ms_err *err) MS_MUST_USE;

#endif
