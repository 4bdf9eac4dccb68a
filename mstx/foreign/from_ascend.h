/* SPDX-License-Identifier: MIT
 *
 * from_ascend: reads databases of Ascend profilers into the tables of run.db.
 */
#ifndef MSTX_FOREIGN_FROM_ASCEND_H
#define MSTX_FOREIGN_FROM_ASCEND_H

#include "mstx/import/import.h"
#include "mstx/rundb/run_write.h"

/* Imports one database, or the databases of all ranks below a directory, into an open writer. */
enum ms_rc mstx__import_ascend(const char *path, struct mstx_writer *w,
                               struct mstx_import_result *result, struct ms_err *err) MS_MUST_USE;
/* Returns the number of ranks below a directory whose files can be imported. */
size_t mstx__count_ascend_files(const char *dir);

#endif
