/* SPDX-License-Identifier: MIT
 *
 * whatif_calls: the operations of a capture for the what-if analysis: what each rank does between its
 * communication calls, and what a call takes after its partners came.
 */
#ifndef MSTX_CONCLUDE_WHATIF_CALLS_H
#define MSTX_CONCLUDE_WHATIF_CALLS_H

#include "mstx/cluster/whatif.h"
#include "mstx/rundb/run_query.h"

/* Analyses the calls of an open run; o gets its operations and must be freed.  Fails with
 * MS_E_NOTFOUND where no ranks meet, or the clocks of its hosts were never compared. */
enum ms_rc mstx__whatif_calls(struct mstx_tl *tl, struct mstx_ops *o, struct mstx_whatif *w,
                              struct ms_err *err) MS_MUST_USE;

#endif
