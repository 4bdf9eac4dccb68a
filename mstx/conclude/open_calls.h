/* SPDX-License-Identifier: MIT
 *
 * open_calls: ranks that are missing from calls of torch.distributed in which others still wait at the end.
 *
 * Calls that a hook records are joined when they are imported; those that a framework marks itself (gloo) are
 * known only once all threads of a process were read, so they are judged here.
 */
#ifndef MSTX_CONCLUDE_OPEN_CALLS_H
#define MSTX_CONCLUDE_OPEN_CALLS_H

#include "mstx/conclude/call_rows.h"
#include "mstx/conclude/findings.h"

/* Adds a finding for each rank that is missing.  A rank of a running process is missing when others have
 * waited for limit_ns. */
enum ms_rc mstx__find_open_calls(struct mstx_tl *tl, const struct mstx_call_rows *rows,
                                 int64_t limit_ns, mstx_findings *to,
                                 struct ms_err *err) MS_MUST_USE;

#endif
