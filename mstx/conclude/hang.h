/* SPDX-License-Identifier: MIT
 *
 * tl_hang: communication calls that did not return, from HANG texts to run.db.  The report makes
 * findings of them: see tl_report.h.
 */
#ifndef MSTX_TL_HANG_H
#define MSTX_TL_HANG_H

#include "mstx/timeline.h"
#include "mstx/tl_texts.h"

/* Rows of the table hangs for one process. What makes no sense is passed over; a failure stays
 * in the writer. */
void mstx__hangs_write(struct mstx_writer *w, uint32_t process, int32_t rank,
                       const struct mstx_texts *t);
/* The stacks that were kept when something hung, by rank and time: what the rank waited in, and the
 * stacks of all its threads as text, borrowed for the call. */
typedef void mstx_stacks_fn(void *ctx, int32_t rank, struct ms_str name, struct ms_str stacks);
enum ms_rc mstx__hangs_stacks(struct mstx_tl *tl, mstx_stacks_fn *fn, void *ctx,
                              struct ms_err *err) MS_MUST_USE;

#endif
