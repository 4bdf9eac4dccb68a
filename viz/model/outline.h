/* SPDX-License-Identifier: MIT
 *
 * outline: the rows of the graph that a viewer shows, as one flat list.
 *
 * Only unfolded nodes are in memory. Rows are read from the database in pages: a row of kind MORE
 * stands for rows not loaded yet, at the end or, after a jump to a distant node, in front of that
 * node. A row of kind RUN stands for repeated layers.
 */
#ifndef VIZ_MODEL_OUTLINE_H
#define VIZ_MODEL_OUTLINE_H

#include "viz/model/pairs.h"

enum viz_row_kind {
    VIZ_ROW_NODE,
    VIZ_ROW_RUN,  /* `run` consecutive nodes that are alike and clean; pair is the first */
    VIZ_ROW_MORE, /* unfold it to load the next page */
};

struct viz_row {
    enum viz_row_kind kind;
    bool open;
    uint16_t depth;
    uint32_t natural;              /* position before sorting (viz_arrange) */
    uint32_t run;                  /* of RUN: number of nodes; 1 for the others */
    struct viz_pair pair;          /* of NODE and RUN */
    struct viz_pair_cursor cursor; /* of MORE: start of the page */
    struct viz_pair_cursor until;  /* of MORE: rows after this are loaded; both 0: none are */
};

struct viz_outline {
    struct graph_view *v;
    int64_t step, rank, micro;
    bool fold_runs;
    MS_VEC(struct viz_row) rows;
    struct ms_arena *arena; /* owns the text of the rows */
};

/* Opens the graph of a step and rank, with its root unfolded. */
enum ms_rc viz_outline_open(struct viz_outline *t, struct graph_view *v, int64_t step, int64_t rank,
                            struct ms_err *err) MS_MUST_USE;
void viz_outline_close(struct viz_outline *t);

/* Unfolds a node or a run, or loads the next page; a row without children stays as it is. */
enum ms_rc viz_outline_unfold(struct viz_outline *t, size_t i, struct ms_err *err) MS_MUST_USE;
void viz_outline_fold(struct viz_outline *t, size_t i);
/* Returns the parent of row i, or i itself at the top. */
size_t viz_outline_parent(const struct viz_outline *t, size_t i);
/* Returns the next or previous row at the same depth below the same parent, or i. */
size_t viz_outline_sibling(const struct viz_outline *t, size_t i, int direction);

/* Unfolds all ancestors of a node and finds its row. MS_E_NOTFOUND. */
enum ms_rc viz_outline_reveal(struct viz_outline *t, bool golden, struct ms_str name, size_t *row,
                              struct ms_err *err) MS_MUST_USE;
/* Reads all rows again after a change of the file; unfolded nodes stay unfolded. */
enum ms_rc viz_outline_reload(struct viz_outline *t, struct ms_err *err) MS_MUST_USE;

/* Sorting, siblings among themselves. Only loaded rows are sorted; a row MORE, which stands for
 * rows not yet loaded, stays behind them. The functions above need the natural order: call
 * viz_arrange_back before and viz_arrange afterwards. */
enum viz_sort { VIZ_SORT_ORDER, VIZ_SORT_STATE, VIZ_SORT_ERRORS, VIZ_SORT_NAME, VIZ_SORTS };

/* Stores the natural position of all rows, then sorts. *at is the index of a row and is updated. */
enum ms_rc viz_arrange(struct viz_outline *t, enum viz_sort sort, bool inverted, size_t *at,
                       struct ms_err *err) MS_MUST_USE;
/* Restores the natural order. */
enum ms_rc viz_arrange_back(struct viz_outline *t, size_t *at, struct ms_err *err) MS_MUST_USE;

#endif
