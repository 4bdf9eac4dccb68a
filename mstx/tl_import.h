/* SPDX-License-Identifier: MIT
 *
 * tl_import: one function for each kind of source; mstx_import chooses.
 */
#ifndef MSTX_TL_IMPORT_H
#define MSTX_TL_IMPORT_H

#include "mstx/tl_write.h"

/* A run directory. */
enum ms_rc mstx__import_capture(const char *dir, const char *db, struct mstx_import_result *result,
                                struct ms_err *err) MS_MUST_USE;
/* Open a database whatever its name. */
enum ms_rc mstx__tl_open_db(struct mstx_tl **tl, const char *db, struct ms_err *err) MS_MUST_USE;
/* Remember a file by its size and time, so that a change makes the database stale. */
void mstx__import_source(struct mstx_writer *w, const char *path);

#endif
