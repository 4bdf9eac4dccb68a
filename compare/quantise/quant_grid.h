/* SPDX-License-Identifier: MIT
 *
 * quant_grid: finds out how a tensor was quantised, from its values alone.
 *
 * After dequantisation, the elements that share a scale are that scale times values of the element type.
 * So for each layout, the ways in which elements can share scales, and each type, a scale is looked for
 * that explains every group. Several layouts can explain a tensor: what has one scale has also one for
 * each row. Layouts in which groups would leave the upper half of the type unused are told apart,
 * since a scale is usually taken from the largest element of its group.
 */
#ifndef COMPARE_QUANTISE_QUANT_GRID_H
#define COMPARE_QUANTISE_QUANT_GRID_H

#include "probe/quantise/quant_number.h"

/* A tensor folded to two dimensions, the second along which a product sums. */
struct quant_table {
    const float *v;
    uint64_t rows, cols;
    double precision; /* relative error that storing the elements has made */
};

enum quant_sharing {
    QUANT_WHOLE,
    QUANT_ROWS,
    QUANT_COLUMNS,
    QUANT_BLOCKS, /* n neighbours in a row */
    QUANT_STACKS, /* n neighbours in a column */
    QUANT_TILES,  /* n x n */
};
struct quant_layout {
    enum quant_sharing sharing;
    uint64_t n;
};
/* All that are looked for, from the coarsest along each axis on. */
enum { QUANT_LAYOUTS = 16 };
extern const struct quant_layout quant_layouts[QUANT_LAYOUTS];
/* Tells whether a layout has groups smaller than what it divides. */
bool quant_layout_divides(const struct quant_layout *l, const struct quant_table *t);
uint64_t quant_layout_count(const struct quant_layout *l, const struct quant_table *t);
uint64_t quant_layout_group(const struct quant_layout *l, const struct quant_table *t, uint64_t row,
                            uint64_t col);
/* The elements of a group: rows and columns from .. to - 1. */
struct quant_box {
    uint64_t row, rows_end, col, cols_end;
};
struct quant_box quant_layout_box(const struct quant_layout *l, const struct quant_table *t,
                                  uint64_t group);
/* Returns the layout without blocks that are as long as what they divide. */
struct quant_layout quant_layout_plain(struct quant_layout l, const struct quant_table *t);
/* Writes "blocks of 32 in a row". */
void quant_layout_text(const struct quant_layout *l, char *out, size_t n);
static inline bool quant_layout_same(struct quant_layout a, struct quant_layout b)
{
    return a.sharing == b.sharing && a.n == b.n;
}

/* Tells whether elements with different scales lie beside each other in a row. */
static inline bool quant_layout_is_across(const struct quant_layout *l)
{
    return l->sharing == QUANT_COLUMNS || l->sharing == QUANT_STACKS;
}

/* A layout that explains a tensor. */
struct quant_fit {
    struct quant_layout layout;
    double covered; /* share of groups that use the upper half of the type */
};
enum { QUANT_FITS = 24 };
struct quant_grid {
    enum quant_number number; /* the one with the fewest bits */
    struct quant_fit fits[QUANT_FITS];
    unsigned n;  /* of fits, the coarsest first; 0: the values are on no grid */
    bool powers; /* all scales of the first fit are powers of two */
    double
        *scale; /* by group of the first fit; 0: a group of zeros, or one that no scale explains */
    uint64_t groups;
};
enum ms_rc quant_grid_find(struct quant_grid *g, const struct quant_table *t,
                           struct ms_err *err) MS_MUST_USE;
void quant_grid_free(struct quant_grid *g);

#endif
