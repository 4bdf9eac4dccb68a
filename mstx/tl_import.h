/* SPDX-License-Identifier: MIT
 *
 * tl_import: one function for each kind of source; mstx_import chooses.
 */
#ifndef MSTX_TL_IMPORT_H
#define MSTX_TL_IMPORT_H

#include "mstx/tl_write.h"

/* A run directory. */
enum ms_rc mstx__import_capture(const char *dir, const char *db, const struct mstx_import_how *how,
                                struct mstx_import_result *result, struct ms_err *err) MS_MUST_USE;
/* A Chrome trace, or databases of Ascend's profilers, one or all below a directory, into an open writer. */
enum ms_rc mstx__import_chrome(const char *path, struct mstx_writer *w,
                               struct mstx_import_result *result, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__import_ascend(const char *path, struct mstx_writer *w,
                               struct mstx_import_result *result, struct ms_err *err) MS_MUST_USE;
/* How many of these lie below a directory, one for each rank. */
size_t mstx__count_ascend_files(const char *dir);
/* Open a database whatever its name. */
enum ms_rc mstx__tl_open_db(struct mstx_tl **tl, const char *db, struct ms_err *err) MS_MUST_USE;
/* Does the file begin like an SQLite database? */
bool mstx__is_sqlite(const char *path);
/* Remember a file by its size and time, so that a change makes the database stale. */
void mstx__import_source(struct mstx_writer *w, const char *path);

#endif
