/* SPDX-License-Identifier: MIT
 *
 * waiting_why: what a rank that makes the others wait does meanwhile, by the ranges of its program.
 */
#ifndef MSTX_CONCLUDE_WAITING_WHY_H
#define MSTX_CONCLUDE_WAITING_WHY_H

#include "mstx/rundb/run_query.h"

/* A range in which the rank spends more time than the others. */
struct mstx_why {
    char name[64]; /* "": no range explains it */
    double share;  /* of what the rank works longer than the others */
};

/* Compares the ranges of one of n processes (indices) with the median of the others; excess_ns is what
 * that process worked longer in all. */
enum ms_rc mstx__waiting_why(struct mstx_tl *tl, const uint32_t *process, size_t n, size_t which,
                             double excess_ns, struct mstx_why *why,
                             struct ms_err *err) MS_MUST_USE;

#endif
