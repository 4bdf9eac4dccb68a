/* SPDX-License-Identifier: MIT
 *
 * live: judges open calls of a run whose processes may still be running.
 *
 * In a live run some call is always open.  A rank that has not arrived at a collective is missing
 * only when there is evidence: its process has ended, or the others have waited as long as the
 * limit of `msprobe import --missing_after`.
 */
#ifndef MSTX_CONCLUDE_LIVE_H
#define MSTX_CONCLUDE_LIVE_H

#include "mstx/conclude/findings.h"

/* Tells whether a process may still be running, by its state from mstx__process_state. */
bool mstx__may_run(struct ms_str state);
/* Tells whether a process of the rank may still be running. */
enum ms_rc mstx__rank_may_run(struct mstx_tl *tl, int32_t rank, bool *may_run,
                              struct ms_err *err) MS_MUST_USE;
/* Judges a finding about a rank that has not arrived at a collective in which others wait since
 * from_ns: keeps the finding when they have waited for limit_ns, or lowers it to a call in
 * progress. */
enum ms_rc mstx__judge_open(struct mstx_tl *tl, struct mstx_finding *f, int64_t limit_ns,
                            struct ms_err *err) MS_MUST_USE;
/* Adds the argument `where`: the last event of the rank. */
enum ms_rc mstx__say_where(struct mstx_tl *tl, struct ms_message *m, int32_t rank,
                           struct ms_err *err) MS_MUST_USE;

#endif
