/* SPDX-License-Identifier: MIT
 *
 * from_chrome: reads a Chrome trace into the tables of run.db.
 */
#ifndef MSTX_FOREIGN_FROM_CHROME_H
#define MSTX_FOREIGN_FROM_CHROME_H

#include "mstx/import/import.h"
#include "mstx/rundb/run_write.h"

enum ms_rc mstx__import_chrome(const char *path, struct mstx_writer *w,
                               struct mstx_import_result *result, struct ms_err *err) MS_MUST_USE;

#endif
