/* SPDX-License-Identifier: MIT
 *
 * store: SQLite databases; the only home of sqlite3.h.  A database is built
 * under a temporary name and renamed at commit, or opened read-only, also from
 * a read-only directory.  store.c opens and asks; store_guard.c bounds what databases and statements of
 * others can do, and copies one that was left in the middle of a change.
 */
#ifndef PROBE_BASE_STORE_H
#define PROBE_BASE_STORE_H

#include "probe/base/str.h"

struct ms_store;
struct ms_stmt;

/* A new database that appears at path, complete, at ms_store_commit. */
enum ms_rc ms_store_create(struct ms_store **s, const char *path, struct ms_err *err) MS_MUST_USE;
/* The same for a large one that is not finished then: whoever makes it appear under a name that lasts
 * makes it durable. */
enum ms_rc ms_store_create_interim(struct ms_store **s, const char *path,
                                   struct ms_err *err) MS_MUST_USE;
/* The same, beginning with what the database at `from` holds, if there is one; from may be path itself.
 * Temporary tables may be larger than memory. */
enum ms_rc ms_store_renew(struct ms_store **s, const char *path, const char *from,
                          struct ms_err *err) MS_MUST_USE;
/* In memory alone, for as long as it is open. */
enum ms_rc ms_store_scratch(struct ms_store **s, struct ms_err *err) MS_MUST_USE;
/* For reading a database of others, which nothing changes and nothing beside it either.  Where a journal
 * or a WAL lies beside it, a private copy is read to which that was applied, and a warning says so. */
enum ms_rc ms_store_open(struct ms_store **s, const char *path, struct ms_err *err) MS_MUST_USE;
/* Makes such a copy at `copy`, whether it is needed or not. */
enum ms_rc ms_store_copy(const char *path, const char *copy, struct ms_err *err) MS_MUST_USE;
/* The same for who opens it many times; *made is false where none is needed, and then there is none. */
enum ms_rc ms_store_settle(const char *path, const char *copy, bool *made,
                           struct ms_err *err) MS_MUST_USE;
bool ms_store_is_settled(const char *path);
/* For reading a working copy of ours that ms_store_edit changes meanwhile. */
enum ms_rc ms_store_open_work(struct ms_store **s, const char *path,
                              struct ms_err *err) MS_MUST_USE;
/* For changing in place, with ordinary transactions.  Refused where another's change is not finished. */
enum ms_rc ms_store_edit(struct ms_store **s, const char *path, struct ms_err *err) MS_MUST_USE;
/* Finish a created database: commit, fsync, rename. Closes and frees s in any case. */
enum ms_rc ms_store_commit(struct ms_store *s, struct ms_err *err) MS_MUST_USE;
/* Close; a created database that was not committed is thrown away. NULL is fine. */
void ms_store_close(struct ms_store *s);
/* Queries on this handle that run longer fail with MS_E_INTERRUPTED; 0 is no limit. */
void ms_store_set_limit_ms(struct ms_store *s, uint32_t ms);

/* From now on this handle may only look, by functions that are on a list, with low limits.  For
 * statements of people one does not know. */
enum ms_rc ms_store_only_look(struct ms_store *s, struct ms_err *err) MS_MUST_USE;
/* All of SQLite in this process gets no more memory than this. */
void ms_store_limit_memory(uint64_t bytes);

/* One or more statements without results. */
enum ms_rc ms_store_exec(struct ms_store *s, const char *sql, struct ms_err *err) MS_MUST_USE;
/* The same with numbers for ?1, ?2, ... of every statement. */
enum ms_rc ms_store_exec_i64(struct ms_store *s, const char *sql, const int64_t *value, int n,
                             struct ms_err *err) MS_MUST_USE;
enum ms_rc ms_store_prepare(struct ms_store *s, struct ms_stmt **st, const char *sql,
                            struct ms_err *err) MS_MUST_USE;
void ms_stmt_free(struct ms_stmt *st);
/* Parameters count from 1.  Text and blobs are not copied: they must live until the next run. */
void ms_stmt_i64(struct ms_stmt *st, int i, int64_t v);
void ms_stmt_f64(struct ms_stmt *st, int i, double v);
void ms_stmt_str(struct ms_stmt *st, int i, struct ms_str s); /* p == NULL binds NULL */
void ms_stmt_blob(struct ms_stmt *st, int i, const void *p, size_t n);
void ms_stmt_null(struct ms_stmt *st, int i);
/* Run a statement without rows and make it ready for the next parameters. */
enum ms_rc ms_stmt_run(struct ms_stmt *st, struct ms_err *err) MS_MUST_USE;
/* Next row: *more tells whether there is one; after the last it is ready to run again. */
enum ms_rc ms_stmt_step(struct ms_stmt *st, bool *more, struct ms_err *err) MS_MUST_USE;
/* The cursor for a loop over rows: steps while *rc is MS_OK, and says whether there is a row.
 *
 *     enum ms_rc rc = MS_OK;
 *     while (ms_stmt_next(st, &rc, err))
 *         rc = use_row(st, err);
 *
 * *rc is then the first failure, of a step or of the body. */
bool ms_stmt_next(struct ms_stmt *st, enum ms_rc *rc, struct ms_err *err);
void ms_stmt_reset(struct ms_stmt *st);
/* The highest number of a parameter. */
int ms_stmt_params(const struct ms_stmt *st);
/* Columns of the current row count from 0; text and blobs are borrowed until the next step. */
int ms_stmt_columns(const struct ms_stmt *st);
const char *ms_stmt_column_name(const struct ms_stmt *st, int i);
bool ms_stmt_is_null(struct ms_stmt *st, int i);
bool ms_stmt_is_i64(struct ms_stmt *st, int i);
bool ms_stmt_is_f64(struct ms_stmt *st, int i);
int64_t ms_stmt_get_i64(struct ms_stmt *st, int i);
double ms_stmt_get_f64(struct ms_stmt *st, int i);
struct ms_str ms_stmt_get_str(struct ms_stmt *st, int i);
struct ms_str ms_stmt_get_blob(struct ms_stmt *st, int i);
const char *ms_store_version(void);

#endif
