/* SPDX-License-Identifier: MIT
 *
 * live: what may be said of a run whose processes may still be going.
 *
 * In such a run some call is always open.  A rank that has not come to one yet is missing only where
 * there is evidence: its process has ended, or the others have waited for longer than the limit.
 */
#ifndef MSTX_CONCLUDE_LIVE_H
#define MSTX_CONCLUDE_LIVE_H

#include "mstx/conclude/findings.h"

/* May the process still be going?  States are those of mstx__process_state. */
bool mstx__may_run(struct ms_str state);
/* Judges a finding that a rank has not come to a collective, in which others wait since from_ns. */
enum ms_rc mstx__judge_open(struct mstx_tl *tl, struct mstx_finding *f,
                            struct ms_err *err) MS_MUST_USE;
/* Adds the argument where: the event in which the rank was seen last. */
enum ms_rc mstx__say_where(struct mstx_tl *tl, struct ms_message *m, int32_t rank,
                           struct ms_err *err) MS_MUST_USE;

#endif
