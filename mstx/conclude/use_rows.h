/* SPDX-License-Identifier: MIT
 *
 * use_rows: reads from run.db what threads used of their hosts.
 */
#ifndef MSTX_CONCLUDE_USE_ROWS_H
#define MSTX_CONCLUDE_USE_ROWS_H

#include "mstx/cluster/rank_use.h"
#include "mstx/rundb/run_query.h"

/* Reads the samples of n processes (indices).  Of several threads of a process the one with the most
 * samples counts, which is the one with the most communication. */
enum ms_rc mstx__use_rows_read(struct mstx_tl *tl, const uint32_t *process, size_t n,
                               struct mstx_thread_use *to, struct ms_err *err) MS_MUST_USE;

#endif
