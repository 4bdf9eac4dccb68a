/* SPDX-License-Identifier: MIT
 *
 * consistent: a training run against the inference run that has to compute the same
 * (reinforcement learning, where an engine of its own makes the samples).
 *
 * The engines cut a model differently: where one has three projections the other has
 * one that is all three.  Rows of such parts are folded into one row of the table.
 */
#ifndef COMPARE_PAIR_CONSISTENT_H
#define COMPARE_PAIR_CONSISTENT_H

#include "compare/pair/cmp_rows.h"

/* Fill c->pairs and c->folds. */
enum ms_rc cmp__pair_consistent(struct cmp_rows *c, struct ms_err *err);
/* Do rows of the target fold into one, rather than those of the golden side? */
static inline bool cmp__folds_target(const struct cmp_setup *set)
{
    return set->conf.consistent == CMP_CONSISTENT_FSDP;
}

#endif
