/* SPDX-License-Identifier: MIT
 *
 * waiting_stage: finds the pipeline stage or the rank that a recorded training waits for, by a
 * replay of its operations.
 */
#ifndef MSTX_CONCLUDE_WAITING_STAGE_H
#define MSTX_CONCLUDE_WAITING_STAGE_H

#include "mstx/conclude/findings.h"
#include "mstx/conclude/replay_rows.h"

/* Adds a finding when the operations of one rank, or else of one stage, explain most of the
 * slowdown of the steps against ideal ones, and the critical path and the ideal timeline to spans.  A run
 * without known operations gets none. */
enum ms_rc mstx__find_waiting_stage(struct mstx_tl *tl, struct mstx_replay_rows *spans,
                                    mstx_findings *to, struct ms_err *err) MS_MUST_USE;

#endif
