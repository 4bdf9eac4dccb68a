/* SPDX-License-Identifier: MIT
 *
 * trace_files: the traces of all ranks of a run, as files of a folder or as a list.
 */
#ifndef MSTX_FOREIGN_TRACE_FILES_H
#define MSTX_FOREIGN_TRACE_FILES_H

#include "mstx/import/import.h"
#include "mstx/rundb/run_write.h"

/* Returns the number of traces and tables in a folder. */
size_t mstx__count_trace_files(const char *dir);
/* Reads the traces into one run; bar shows how far it is, NULL: nothing does.  A path is a file or a
 * folder of them.  A file that cannot be read is noted as a problem and the others are read; fails
 * when none can be, or when a single file was given.  rank_from is an expression whose first group finds
 * the rank in a path; NULL: the number behind "rank" in the name. */
enum ms_rc mstx__import_traces(const char *const *paths, size_t n, const char *rank_from,
                               struct mstx_writer *w, struct ms_progress *bar,
                               struct mstx_import_result *result, struct ms_err *err) MS_MUST_USE;
/* Finds the rank in a file's name: "rank-3", "rank_3", "rank3", the last of several; -1: none. */
int32_t mstx__rank_in_name(const char *path);

#endif
