/* SPDX-License-Identifier: MIT
 *
 * whatif_calls: the operations of a capture for the what-if analysis: local work between
 * communication calls, and the time of a call after its partners have arrived.
 */
#ifndef MSTX_CONCLUDE_WHATIF_CALLS_H
#define MSTX_CONCLUDE_WHATIF_CALLS_H

#include "mstx/cluster/whatif.h"
#include "mstx/rundb/run_query.h"

/* Analyses the calls of an open run; the caller must free o, which receives the operations.  Fails
 * with MS_E_NOTFOUND when no ranks meet or the clocks of the hosts were not aligned. */
enum ms_rc mstx__whatif_calls(struct mstx_tl *tl, struct mstx_ops *o, struct mstx_whatif *w,
                              struct ms_err *err) MS_MUST_USE;

#endif
