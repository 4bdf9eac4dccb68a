/* SPDX-License-Identifier: MIT
 *
 * waiting_stage: findings about the pipeline stage or the rank that a recorded training waits for, by the
 * replay of its operations.
 */
#ifndef MSTX_CONCLUDE_WAITING_STAGE_H
#define MSTX_CONCLUDE_WAITING_STAGE_H

#include "mstx/conclude/findings.h"

/* Adds a finding where the operations of one rank, or else of one stage, explain most of what the steps take
 * longer than ideal.  A run whose operations are not known gets none. */
enum ms_rc mstx__find_waiting_stage(struct mstx_tl *tl, mstx_findings *to,
                                    struct ms_err *err) MS_MUST_USE;

#endif
