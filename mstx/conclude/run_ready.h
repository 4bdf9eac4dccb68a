/* SPDX-License-Identifier: MIT
 *
 * run_ready: a run.db that is there, fresh and concluded.
 *
 *     RUN/.../r0001.0001.seg ─► import ─► conclude ─► RUN/run.db ─► mstx_tl_view, _step, _find
 *
 * Whoever is given a path by a user asks here and passes the open run.db on; queries of an open
 * run.db never import.
 */
#ifndef MSTX_CONCLUDE_RUN_READY_H
#define MSTX_CONCLUDE_RUN_READY_H

#include "mstx/import/import.h"
#include "mstx/rundb/run_query.h"

/* Imports a run directory, or one foreign file (a Chrome trace, a database of an Ascend profiler, a
 * dump of the Flight Recorder), concludes, and writes `db`.  What cannot be read is noted in the table
 * problems and the rest goes on; only a directory without any readable segment fails, with
 * MS_E_NOTFOUND. */
enum ms_rc mstx_import(const char *path, const char *db, struct mstx_import_result *result,
                       struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx_import_as(const char *path, const char *db, const struct mstx_import_how *how,
                          struct mstx_import_result *result, struct ms_err *err) MS_MUST_USE;
/* Where the database of a run directory or foreign file lies, on the heap; NULL when out of memory. */
char *mstx_db_path(const char *path);
/* True when the database is missing, or when a file that it was made from has changed.  A database that
 * the user named itself (path and db are equal) is never stale. */
bool mstx_db_is_stale(const char *path, const char *db);
/* The database of a run directory or foreign file, imported first when it is missing or stale: beside
 * the source, or under $TMPDIR when that cannot be written.  A path that is a run.db, under any name, is
 * the database itself and is left as it is.  *db is on the heap. */
enum ms_rc mstx_db_prepare(const char *path, char **db, struct ms_err *err) MS_MUST_USE;
/* Opens the database that mstx_db_prepare gives for the path. */
enum ms_rc mstx_run_open(struct mstx_tl **tl, const char *path, struct ms_err *err) MS_MUST_USE;

#endif
