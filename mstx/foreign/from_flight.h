/* SPDX-License-Identifier: MIT
 *
 * from_flight: reads dumps of PyTorch's Flight Recorder into run.db.
 */
#ifndef MSTX_FOREIGN_FROM_FLIGHT_H
#define MSTX_FOREIGN_FROM_FLIGHT_H

#include "mstx/import/import.h"
#include "mstx/rundb/run_write.h"

/* Is the file such a dump?  Looks into its beginning alone. */
bool mstx__is_flight_file(const char *path);
/* Number of such files in a directory. */
size_t mstx__count_flight_files(const char *dir);
/* Reads one file, or all of a directory, into an open writer.  The rank is the number at the end of a file's
 * name. */
enum ms_rc mstx__import_flight(const char *path, struct mstx_writer *w,
                               struct mstx_import_result *result, struct ms_err *err) MS_MUST_USE;

#endif
