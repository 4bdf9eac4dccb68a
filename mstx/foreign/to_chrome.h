/* SPDX-License-Identifier: MIT
 *
 * to_chrome: writes a run as a Chrome trace.
 */
#ifndef MSTX_FOREIGN_TO_CHROME_H
#define MSTX_FOREIGN_TO_CHROME_H

#include "mstx/rundb/run_query.h"

#include "probe/base/io.h"

/* Writes trace events in an object, times in microseconds from the start of the run, whose Unix
 * time is in otherData. Ranges of a track that overlap without nesting become async events. */
enum ms_rc mstx_export_chrome(struct mstx_tl *tl, struct ms_out *out,
                              struct ms_err *err) MS_MUST_USE;
/* Writes the dialect of Ascend's trace_view.json: a bare array, times as text of Unix
 * microseconds. */
enum ms_rc mstx_export_trace_view(struct mstx_tl *tl, struct ms_out *out,
                                  struct ms_err *err) MS_MUST_USE;

#endif
