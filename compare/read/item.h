/* SPDX-License-Identifier: MIT
 *
 * item: the cells of one row on one side.
 */
#ifndef COMPARE_READ_ITEM_H
#define COMPARE_READ_ITEM_H

#include "compare/read/side.h"

extern const struct cmp_item cmp__item_none;

/* Parses the leaf of a row and fills in its cells; their text is in the dump and in the view. */
enum ms_rc cmp__item_make(const struct cmp__side *s, uint32_t row, enum probe_mode mode,
                          struct cmp_view *v, struct cmp_item *item, struct ms_err *err);
/* Fills in the cells of a row from its leaf as the dump has it, already parsed. */
enum ms_rc cmp__item_of_leaf(const struct cmp__side *s, uint32_t row, const struct probe_leaf *leaf,
                             enum probe_mode mode, struct cmp_view *v, struct cmp_item *item,
                             struct ms_err *err);
/* Parses the leaf that a row shows; for a P2P operation that is its tensor. */
void cmp__item_leaf(const struct cmp__side *s, uint32_t row, struct probe_leaf *leaf);
/* Extracts the statistics of a row's leaf that are numbers. */
void cmp__item_numbers(const struct cmp__side *s, uint32_t row, const struct probe_leaf *leaf,
                       struct probe_num stat[PROBE_STATS]);
/* Rewrites the integers in the given columns as floats. */
enum ms_rc cmp__item_show_floats(struct cmp_view *v, struct cmp_item *item,
                                 const bool as_float[PROBE_STATS], struct ms_err *err);
/* Returns the class and value of a leaf's statistic. */
struct cmp_value cmp__value_of(const struct probe_num *n);
/* Copies the text in the view's scratch to its arena and clears the scratch. */
enum ms_rc cmp__keep(struct cmp_view *v, struct ms_str *out, struct ms_err *err);

#endif
