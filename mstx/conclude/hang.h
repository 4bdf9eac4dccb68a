/* SPDX-License-Identifier: MIT
 *
 * hang: communication calls that did not return, as findings.
 */
#ifndef MSTX_CONCLUDE_HANG_H
#define MSTX_CONCLUDE_HANG_H

#include "mstx/conclude/findings.h"

/* Adds findings of communication calls that do not return, and of the ranks that are missing from
 * them. */
enum ms_rc mstx__find_hangs(struct mstx_tl *tl, mstx_findings *to, struct ms_err *err) MS_MUST_USE;
/* The stacks that were kept when something hung, by rank and time: what the rank waited in, and the
 * stacks of all its threads as text, borrowed for the call. */
typedef void mstx_stacks_fn(void *ctx, int32_t rank, struct ms_str name, struct ms_str stacks);
enum ms_rc mstx__hangs_stacks(struct mstx_tl *tl, mstx_stacks_fn *fn, void *ctx,
                              struct ms_err *err) MS_MUST_USE;

#endif
