/* SPDX-License-Identifier: MIT
 *
 * from_chrome: reads a Chrome trace into the tables of run.db.
 */
#ifndef MSTX_FOREIGN_FROM_CHROME_H
#define MSTX_FOREIGN_FROM_CHROME_H

#include "mstx/foreign/trace_ranks.h"

/* Reads one trace.  *rank is the rank of a trace that does not say its own, -1: unknown; it becomes
 * that of the trace.  A profiler's trace that is_alone and says no rank is that of rank 0: the job has
 * no other. */
enum ms_rc mstx__import_chrome(const char *path, bool is_alone, int32_t *rank,
                               struct mstx_trace_ranks *all, struct ms_err *err) MS_MUST_USE;

#endif
