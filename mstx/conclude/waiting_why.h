/* SPDX-License-Identifier: MIT
 *
 * waiting_why: finds the range of the program in which a slow rank spends its excess time.
 */
#ifndef MSTX_CONCLUDE_WAITING_WHY_H
#define MSTX_CONCLUDE_WAITING_WHY_H

#include "mstx/rundb/run_query.h"

/* A range in which the rank spends more time than the others. */
struct mstx_why {
    char name[64]; /* "": no range explains the excess */
    double share;  /* of the excess work of the rank */
};

/* Compares the ranges of one of n processes (indices) with the median of the others; excess_ns is
 * the total excess work of that process. */
enum ms_rc mstx__waiting_why(struct mstx_tl *tl, const uint32_t *process, size_t n, size_t which,
                             double excess_ns, struct mstx_why *why,
                             struct ms_err *err) MS_MUST_USE;

#endif
