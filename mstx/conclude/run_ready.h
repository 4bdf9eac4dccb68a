/* SPDX-License-Identifier: MIT
 *
 * run_ready: makes sure that a run has an up-to-date run.db with findings, and opens it.
 *
 *     RUN/.../r0001.0001.seg ─► import ─► conclude ─► RUN/run.db ─► mstx_tl_view, _step, _find
 *
 * Commands and viewers that get a path from a user call this file and pass the open run.db on;
 * queries of an open run.db never import.
 */
#ifndef MSTX_CONCLUDE_RUN_READY_H
#define MSTX_CONCLUDE_RUN_READY_H

#include "mstx/import/import.h"
#include "mstx/rundb/run_query.h"

/* Imports a run directory, or one foreign file (a Chrome trace, a database of an Ascend profiler, a
 * dump of the Flight Recorder), adds findings, and writes `db`.  Files that cannot be read become
 * rows of the table problems, and the rest is imported; only a directory without any readable
 * segment fails, with MS_E_NOTFOUND. */
enum ms_rc mstx_import(const char *path, const char *db, struct mstx_import_result *result,
                       struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx_import_as(const char *path, const char *db, const struct mstx_import_how *how,
                          struct mstx_import_result *result, struct ms_err *err) MS_MUST_USE;
/* Returns the path of the database of a run directory or foreign file, on the heap; NULL when out
 * of memory. */
char *mstx_db_path(const char *path);
/* Tells whether the database is missing or one of its source files has changed.  A database that
 * the user named directly (path equals db) is never stale. */
bool mstx_db_is_stale(const char *path, const char *db);
/* Sets *db, on the heap, to the database of a run directory or foreign file.  Imports first when
 * the database is missing or stale: beside the source, or under $TMPDIR when that directory is not
 * writable.  A path that is a run.db, under any name, is used unchanged. */
enum ms_rc mstx_db_prepare(const char *path, char **db, struct ms_err *err) MS_MUST_USE;
/* The same by all processes of a job, which share the import; NULL: this process alone. */
enum ms_rc mstx_db_prepare_shared(const char *path, struct ms_par *par, char **db,
                                  struct ms_err *err) MS_MUST_USE;
/* Opens the database that mstx_db_prepare_shared gives for the path. *tl stays NULL in all processes
 * of a job but the first one, which goes on. */
enum ms_rc mstx_run_open(struct mstx_tl **tl, const char *path, struct ms_par *par,
                         struct ms_err *err) MS_MUST_USE;

#endif
