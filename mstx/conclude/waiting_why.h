/* SPDX-License-Identifier: MIT
 *
 * waiting_why: finds the range of the program in which a slow rank spends its excess time, and whether its
 * batches are larger than those of the other ranks.
 */
#ifndef MSTX_CONCLUDE_WAITING_WHY_H
#define MSTX_CONCLUDE_WAITING_WHY_H

#include "mstx/cluster/waiters.h"
#include "mstx/conclude/call_rows.h"

/* What a rank spends more time in than the others. */
struct mstx_wait_why {
    char name[64];   /* of the range; "": no range explains the excess */
    double share;    /* of the excess work of the rank */
    char second[64]; /* another range, "computes" or "off_cpu"; "": one cause explains the excess */
    double second_share;
    bool has_larger_batches;
};

/* Compares the ranges of a rank within the judged steps with the median of the others.  Where the use of
 * the host is known, run delay does not count. */
enum ms_rc mstx__waiting_why(struct mstx_tl *tl, const struct mstx_call_rows *rows,
                             const struct mstx_waiters *w, const struct mstx_waiter *rank,
                             struct mstx_wait_why *why, struct ms_err *err) MS_MUST_USE;

#endif
