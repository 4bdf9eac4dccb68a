/* SPDX-License-Identifier: MIT
 *
 * to_perfetto: writes a run as Perfetto's protobuf.
 */
#ifndef MSTX_FOREIGN_TO_PERFETTO_H
#define MSTX_FOREIGN_TO_PERFETTO_H

#include "mstx/rundb/run_query.h"

#include "probe/base/io.h"

/* Writes the trace. Interns names and domains; slices that overlap without nesting get tracks of
 * their own. */
enum ms_rc mstx_export_perfetto(struct mstx_tl *tl, struct ms_out *out,
                                struct ms_err *err) MS_MUST_USE;

#endif
