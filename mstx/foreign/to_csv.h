/* SPDX-License-Identifier: MIT
 *
 * to_csv: writes a run as msprof_tx.csv.
 */
#ifndef MSTX_FOREIGN_TO_CSV_H
#define MSTX_FOREIGN_TO_CSV_H

#include "mstx/rundb/run_query.h"

/* Writes rows in order of start; continues in path_1.csv, path_2.csv, ... after each million
 * rows. */
enum ms_rc mstx_export_csv(struct mstx_tl *tl, const char *path, struct ms_err *err) MS_MUST_USE;

#endif
