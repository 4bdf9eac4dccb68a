/* SPDX-License-Identifier: MIT
 *
 * fold: several rows of one side as one, their cells and their tensors.
 */
#ifndef COMPARE_MEASURE_FOLD_H
#define COMPARE_MEASURE_FOLD_H

#include "compare/measure/metric.h"
#include "compare/pair/consistent.h"

/* The rows beyond the first of a pair: *n of them, on one side. */
const struct cmp__fold *cmp__folds_of(const struct cmp_rows *c, uint32_t pair, size_t *n);
/* Add those rows to the cells of the first. */
enum ms_rc cmp__fold_item(const struct cmp_rows *c, struct cmp_view *v, uint32_t pair,
                          struct cmp_item *item, struct ms_err *err);
/* The digests of parts, behind each other: what the whole would have cannot be told from them. */
#define CMP__PARTS ";"
bool cmp__is_joined(struct ms_str digest);
/* The official tool has no digests left once rows were folded. */
void cmp__lose_digests(struct cmp_row *row);
/* Shapes that hold the same, as far as engines agree about axes. */
bool cmp__consistent_shapes(const struct cmp_setup *set, const struct cmp_row *row);
/* The tensors of a pair that has folds, laid side by side.  CMP_STATE_UNREADABLE comes with the
 * reason in why. */
enum cmp_state cmp__fold_facts(const struct cmp_rows *c, uint32_t pair, struct cmp_facts *facts,
                               uint64_t *bytes, struct ms_err *why);
/* Elements of a shape as it is written, "[2, 3]" or "(2, 3)". */
uint64_t cmp__shape_count(struct ms_str shape);

#endif
