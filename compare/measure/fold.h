/* SPDX-License-Identifier: MIT
 *
 * fold: treats several rows of one side as one, for their cells and for their tensors.
 */
#ifndef COMPARE_MEASURE_FOLD_H
#define COMPARE_MEASURE_FOLD_H

#include "compare/measure/metric.h"
#include "compare/pair/consistent.h"

/* Returns the *n further rows of a folded pair, all of one side. */
const struct cmp__fold *cmp__folds_of(const struct cmp_rows *c, uint32_t pair, size_t *n);
/* Adds the further rows of a pair to the cells of its first row. */
enum ms_rc cmp__fold_item(const struct cmp_rows *c, struct cmp_view *v, uint32_t pair,
                          struct cmp_item *item, struct ms_err *err);
/* Separator of the digests of parts. The digest of the whole cannot be computed from them. */
#define CMP__PARTS ";"
bool cmp__is_joined(struct ms_str digest);
/* Clears the digests, because the official tool has none for folded rows. */
void cmp__lose_digests(struct cmp_row *row);
/* Tells whether two shapes agree, apart from the axes that training and inference engines arrange
 * differently. */
bool cmp__consistent_shapes(const struct cmp_setup *set, const struct cmp_row *row);
/* Measures the tensors of a folded pair, parts concatenated. For CMP_STATE_UNREADABLE, why has the
 * reason. */
enum cmp_state cmp__fold_facts(const struct cmp_rows *c, uint32_t pair, struct cmp_facts *facts,
                               uint64_t *bytes, struct ms_err *why);
/* Returns the number of elements of a shape written "[2, 3]" or "(2, 3)". */
uint64_t cmp__shape_count(struct ms_str shape);

#endif
