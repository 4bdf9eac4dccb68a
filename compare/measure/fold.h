/* SPDX-License-Identifier: MIT
 *
 * consistent: a training run against the inference run that has to compute the same
 * (reinforcement learning, where an engine of its own makes the samples).
 *
 * The engines cut a model differently: where one has three projections the other has
 * one that is all three.  Rows of such parts are folded into one row of the table.
 */
#ifndef COMPARE_CONSISTENT_H
#define COMPARE_CONSISTENT_H

#include "compare/cmp_int.h"

struct cmp_facts;

/* Fill c->pairs and c->folds. */
enum ms_rc cmp__pair_consistent(struct cmp *c, struct ms_err *err);
/* Fill c->places, and judge rows that show the verdicts of these. */
enum ms_rc cmp__place_verdicts(struct cmp *c, struct ms_err *err);
enum ms_rc cmp__judge_by_place(const struct cmp *c, struct cmp_view *v, struct ms_err *err);
/* Do rows of the target fold into one, rather than those of the golden side? */
static inline bool cmp__folds_target(const struct cmp *c)
{
    return c->conf.consistent == CMP_CONSISTENT_FSDP;
}
/* The rows beyond the first of a pair: *n of them, on one side. */
const struct cmp__fold *cmp__folds_of(const struct cmp *c, uint32_t pair, size_t *n);
/* Add those rows to the cells of the first. */
enum ms_rc cmp__fold_item(const struct cmp *c, struct cmp_view *v, uint32_t pair,
                          struct cmp_item *item, struct ms_err *err);
/* The digests of parts, behind each other: what the whole would have cannot be told from them. */
#define CMP__PARTS ";"
bool cmp__is_joined(struct ms_str digest);
/* The official tool has no digests left once rows were folded. */
void cmp__lose_digests(struct cmp_row *row);
/* Shapes that hold the same, as far as engines agree about axes. */
bool cmp__consistent_shapes(const struct cmp *c, const struct cmp_row *row);
/* The tensors of a pair that has folds, laid side by side.  CMP_STATE_UNREADABLE comes with the
 * reason in why. */
enum cmp_state cmp__fold_facts(const struct cmp *c, uint32_t pair, struct cmp_facts *facts,
                               uint64_t *bytes, struct ms_err *why);

#endif
