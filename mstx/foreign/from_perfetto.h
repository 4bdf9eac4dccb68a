/* SPDX-License-Identifier: MIT
 *
 * from_perfetto: reads the track events of a Perfetto trace into run.db: slices, instants, counters and
 * flows, on the tracks of processes and threads.
 */
#ifndef MSTX_FOREIGN_FROM_PERFETTO_H
#define MSTX_FOREIGN_FROM_PERFETTO_H

#include "mstx/foreign/trace_ranks.h"

/* Tells by its first bytes whether a file is a Perfetto trace. */
bool mstx__is_perfetto(struct ms_str head);
/* Reads one trace. Its processes have the ranks that their names say. */
enum ms_rc mstx__import_perfetto(const char *path, struct mstx_trace_ranks *all,
                                 struct ms_err *err) MS_MUST_USE;

#endif
