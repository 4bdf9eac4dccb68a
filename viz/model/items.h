/* SPDX-License-Identifier: MIT
 *
 * items: inputs and outputs of nodes: the table of all of them, and the elements of one.
 *
 * The table has a row for each input and output of every node:
 *
 *     nodes   order, name                         ─┐ read once for a step and rank
 *     rows    node, item within it, state          │ (some 80 bytes a row)
 *     value   a figure per row, column by column  ─┘
 *     index   selected rows in order: one for each filter and sorting
 *
 * Texts stay in the database and are fetched for visible rows only.
 */
#ifndef VIZ_MODEL_ITEMS_H
#define VIZ_MODEL_ITEMS_H

#include "viz/model/session.h"
#include "viz/model/terms.h"

/* Columns with figures, by the name of the field in an item. */
#define VIZ_FIGURES(X)                                                                             \
    X("Max")                                                                                       \
    X("Min")                                                                                       \
    X("Mean")                                                                                      \
    X("Norm")                                                                                      \
    X("Cosine")                                                                                    \
    X("EucDist")                                                                                   \
    X("MaxAbsErr")                                                                                 \
    X("MaxRelativeErr")                                                                            \
    X("MinRelativeErr")                                                                            \
    X("MeanRelativeErr")                                                                           \
    X("NormRelativeErr")                                                                           \
    X("One Thousandth Err Ratio")                                                                  \
    X("Five Thousandths Err Ratio")                                                                \
    X("Max diff")                                                                                  \
    X("Min diff")                                                                                  \
    X("Mean diff")                                                                                 \
    X("L2norm diff")
#define VIZ_ONE(name) +1
enum { VIZ_FIGURE_COUNT = 0 VIZ_FIGURES(VIZ_ONE) };
#undef VIZ_ONE
extern const char *const viz_figures[VIZ_FIGURE_COUNT];

struct viz_table_row {
    uint32_t node; /* index */
    uint16_t item; /* inputs, then outputs, numbered consecutively */
    uint8_t
        state; /* enum graph_state: of an output of a suspect an error, else the item's own, if any */
};

struct viz_table {
    struct graph_spot at;
    struct {
        int64_t order;
        struct ms_str name;
    } * node;
    size_t nodes, nodes_room;
    struct viz_table_row *row;
    float *value[VIZ_FIGURE_COUNT]; /* NaN: no value, or not a number */
    size_t rows, rows_room;
    size_t most;  /* row count at which reading of nodes ends; 0: unlimited */
    bool partial; /* some rows were not read */
    struct ms_arena *arena;
};

/* Selection and order of rows. */
enum { VIZ_BY_ORDER = -1, VIZ_BY_NAME = -2, VIZ_BY_STATE = -3 }; /* else a figure's index */
struct viz_table_view {
    const struct viz_terms *terms;
    int sort;
    bool descending;
    bool failing; /* only rows with a warning or error */
};
typedef MS_VEC(uint32_t) viz_table_index;

enum ms_rc viz_table_read(struct viz_table *t, struct graph_view *v, struct graph_spot at,
                          size_t most, struct ms_err *err) MS_MUST_USE;
void viz_table_free(struct viz_table *t);
/* Parses "order", "name", "state" or the name of a figure. MS_E_ARG. */
enum ms_rc viz_table_column(struct ms_str name, int *sort, struct ms_err *err) MS_MUST_USE;
enum ms_rc viz_table_select(const struct viz_table *t, struct graph_view *v,
                            const struct viz_table_view *view, viz_table_index *index,
                            struct ms_err *err) MS_MUST_USE;

/* Returns the nearest row with an error after `from`, or before it; SIZE_MAX: none. */
size_t viz_table_error(const struct viz_table *t, const viz_table_index *index, size_t from,
                       bool before);

/* One row with its texts: both items are JSON objects, "" when missing. */
struct viz_table_texts {
    enum graph_state state;
    struct ms_str node, partner, name, other_name; /* names of the nodes, names of the items */
    struct ms_str item, other;
};
typedef enum ms_rc (*viz_table_fn)(void *ctx, const struct viz_table_texts *row,
                                   struct ms_err *err);
/* Calls fn for up to n rows of an index from `first` on. */
enum ms_rc viz_table_fetch(const struct viz_table *t, struct graph_view *v,
                           const viz_table_index *index, size_t first, size_t n, viz_table_fn fn,
                           void *ctx, struct ms_err *err) MS_MUST_USE;

/* Distribution of a tensor's elements, if the dump kept its file. */
enum { VIZ_BINS = 64 };
struct viz_histogram {
    const char *dtype;
    uint64_t count;           /* number of elements */
    uint64_t nan, inf, zeros; /* counts among the elements */
    double low, high;         /* range of the finite elements */
    uint64_t bin[VIZ_BINS];   /* equal parts of [low, high] */
};

/* Reads the file that the dump names for an item of a node; callers cannot name a file
 * themselves. MS_E_NOTFOUND: the graph was opened without its dump, or the tensor was not kept. */
enum ms_rc viz_histogram_read(struct viz_histogram *h, const struct viz_session *s,
                              struct graph_view *v, struct graph_spot at, struct ms_str node,
                              struct ms_str item, struct ms_err *err) MS_MUST_USE;

#endif
