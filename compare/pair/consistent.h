/* SPDX-License-Identifier: MIT
 *
 * consistent: pairs a training run with the inference run that has to compute the same
 * values, as in reinforcement learning, where a separate engine generates the samples.
 *
 * The engines cut a model differently: three projections of one (q, k and v) are a single
 * module of the other (qkv). Their rows are folded into one row of the table.
 */
#ifndef COMPARE_PAIR_CONSISTENT_H
#define COMPARE_PAIR_CONSISTENT_H

#include "compare/pair/cmp_rows.h"

/* Fills c->pairs and c->folds. */
enum ms_rc cmp__pair_consistent(struct cmp_rows *c, struct ms_err *err);
/* Tells whether rows of the target are folded, rather than rows of the golden side. */
static inline bool cmp__folds_target(const struct cmp_setup *set)
{
    return set->conf.consistent == CMP_CONSISTENT_FSDP;
}

#endif
