/* SPDX-License-Identifier: MIT
 *
 * export_run: writes a run in the format of another tool.
 */
#ifndef MSTX_FOREIGN_EXPORT_RUN_H
#define MSTX_FOREIGN_EXPORT_RUN_H

#include "mstx/rundb/run_query.h"

enum mstx_export_format {
    MSTX_EXPORT_CHROME,
    MSTX_EXPORT_TRACE_VIEW,
    MSTX_EXPORT_PERFETTO,
    MSTX_EXPORT_CSV,
    MSTX_EXPORT_ASCEND_DB,
    MSTX_EXPORT_FLIGHT
};

/* Writes a run to path: a file, or for the last two formats a directory.  Removes a file that could
 * not be written completely. */
enum ms_rc mstx_export_run(struct mstx_tl *tl, enum mstx_export_format format, const char *path,
                           struct ms_err *err) MS_MUST_USE;

#endif
