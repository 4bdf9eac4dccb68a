/* SPDX-License-Identifier: MIT
 *
 * hang: communication calls that did not return, as findings.
 */
#ifndef MSTX_CONCLUDE_HANG_H
#define MSTX_CONCLUDE_HANG_H

#include "mstx/conclude/findings.h"

/* Adds findings about communication calls that did not return and about ranks missing from them. */
enum ms_rc mstx__find_hangs(struct mstx_tl *tl, mstx_findings *to, struct ms_err *err) MS_MUST_USE;
/* Receives the stacks that were recorded during a hang: the call in which the rank waited, and the
 * stacks of all its threads as text, borrowed for the call.  Called by rank, then by time. */
typedef void mstx_stacks_fn(void *ctx, int32_t rank, struct ms_str name, struct ms_str stacks);
enum ms_rc mstx__hangs_stacks(struct mstx_tl *tl, mstx_stacks_fn *fn, void *ctx,
                              struct ms_err *err) MS_MUST_USE;

#endif
