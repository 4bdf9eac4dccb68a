/* SPDX-License-Identifier: MIT
 *
 * store: SQLite databases; the only home of sqlite3.h. A database is built under a temporary name
 * and renamed at commit, or opened read-only, also from a read-only directory. store.c opens
 * databases and runs statements; store_guard.c limits what databases and statements of others can
 * do, and copies a database that a writer left in the middle of a change.
 */
#ifndef PROBE_BASE_STORE_H
#define PROBE_BASE_STORE_H

#include "probe/base/str.h"

struct ms_store;
struct ms_stmt;

/* Fails where a journal or WAL lies beside path: whoever opens a new database there would apply what
 * belongs to the old one. Creating a database checks this too, but not for the name that a temporary
 * file is given later. */
enum ms_rc ms_store_check_place(const char *path, struct ms_err *err) MS_MUST_USE;
/* Creates a database that appears at path, complete, at ms_store_commit. */
enum ms_rc ms_store_create(struct ms_store **s, const char *path, struct ms_err *err) MS_MUST_USE;
/* Like ms_store_create, for a large intermediate database: commit does not make it durable. The
 * code that later gives it its final name does. */
enum ms_rc ms_store_create_interim(struct ms_store **s, const char *path,
                                   struct ms_err *err) MS_MUST_USE;
/* Like ms_store_create_interim, for a database that shall be small: its pages are. */
enum ms_rc ms_store_create_dense(struct ms_store **s, const char *path,
                                 struct ms_err *err) MS_MUST_USE;
/* Like ms_store_create, but starts with a copy of the database at `from`, if there is one; `from`
 * may equal path. Temporary tables may be larger than memory. */
enum ms_rc ms_store_renew(struct ms_store **s, const char *path, const char *from,
                          struct ms_err *err) MS_MUST_USE;
/* Creates a database in memory, which lives until it is closed. */
enum ms_rc ms_store_scratch(struct ms_store **s, struct ms_err *err) MS_MUST_USE;
/* Opens a database of others for reading. Neither the database nor the files beside it are changed.
 * When a journal or a WAL is beside it, a private copy with that journal or WAL applied is read,
 * and a warning says so. */
enum ms_rc ms_store_open(struct ms_store **s, const char *path, struct ms_err *err) MS_MUST_USE;
/* Makes such a private copy at `copy`, whether needed or not. */
enum ms_rc ms_store_copy(const char *path, const char *copy, struct ms_err *err) MS_MUST_USE;
/* Copies a database of our own to `to`, which is new, so that the bytes follow from the contents alone and
 * not from the order in which they were written. Not made durable. */
enum ms_rc ms_store_copy_in_order(const char *path, const char *to, struct ms_err *err) MS_MUST_USE;
/* Makes the private copy only when it is needed, for callers that open the database many times;
 * *made tells whether there is a copy. */
enum ms_rc ms_store_settle(const char *path, const char *copy, bool *made,
                           struct ms_err *err) MS_MUST_USE;
bool ms_store_is_settled(const char *path);
/* Opens a working copy of our own for reading, while ms_store_edit may change it. */
enum ms_rc ms_store_open_work(struct ms_store **s, const char *path,
                              struct ms_err *err) MS_MUST_USE;
/* Opens for changes in place, with ordinary transactions. Fails when another program has an
 * unfinished change. */
enum ms_rc ms_store_edit(struct ms_store **s, const char *path, struct ms_err *err) MS_MUST_USE;
/* Finishes a created database: commit, fsync, rename. Closes and frees s in any case. */
enum ms_rc ms_store_commit(struct ms_store *s, struct ms_err *err) MS_MUST_USE;
/* Closes a database; a created one that was not committed is removed. NULL is fine. */
void ms_store_close(struct ms_store *s);
/* Sets a time limit for queries on this handle; a longer one fails with MS_E_INTERRUPTED. 0 is no
 * limit. */
void ms_store_set_limit_ms(struct ms_store *s, uint32_t ms);

/* Restricts this handle to reading, to an allow-list of functions, and to low limits, for untrusted
 * statements. */
enum ms_rc ms_store_only_look(struct ms_store *s, struct ms_err *err) MS_MUST_USE;
/* Tells whether nothing but spaces and comments follows the first statement of sql. */
bool ms_store_is_one(struct ms_store *s, const char *sql);
/* Limits the memory of SQLite in the whole process. */
void ms_store_limit_memory(uint64_t bytes);

/* Runs one or more statements without results. */
enum ms_rc ms_store_exec(struct ms_store *s, const char *sql, struct ms_err *err) MS_MUST_USE;
/* Runs statements with numbers bound to ?1, ?2, ... of every statement. */
enum ms_rc ms_store_exec_i64(struct ms_store *s, const char *sql, const int64_t *value, int n,
                             struct ms_err *err) MS_MUST_USE;
enum ms_rc ms_store_prepare(struct ms_store *s, struct ms_stmt **st, const char *sql,
                            struct ms_err *err) MS_MUST_USE;
void ms_stmt_free(struct ms_stmt *st);
/* Bind a parameter; parameters count from 1. Text and blobs are not copied: they must live until
 * the next run. */
void ms_stmt_i64(struct ms_stmt *st, int i, int64_t v);
void ms_stmt_f64(struct ms_stmt *st, int i, double v);
void ms_stmt_str(struct ms_stmt *st, int i, struct ms_str s); /* p == NULL binds NULL */
void ms_stmt_blob(struct ms_stmt *st, int i, const void *p, size_t n);
void ms_stmt_null(struct ms_stmt *st, int i);
/* Runs a statement without rows and resets it for the next parameters. */
enum ms_rc ms_stmt_run(struct ms_stmt *st, struct ms_err *err) MS_MUST_USE;
/* Steps to the next row; *more tells whether there is one. After the last row the statement is
 * ready to run again. */
enum ms_rc ms_stmt_step(struct ms_stmt *st, bool *more, struct ms_err *err) MS_MUST_USE;
/* Steps to the next row while *rc is MS_OK, and returns whether there is one; for loops over rows:
 *
 *     enum ms_rc rc = MS_OK;
 *     while (ms_stmt_next(st, &rc, err))
 *         rc = use_row(st, err);
 *
 * *rc is then the first failure, of a step or of the body. */
bool ms_stmt_next(struct ms_stmt *st, enum ms_rc *rc, struct ms_err *err);
void ms_stmt_reset(struct ms_stmt *st);
/* Returns the highest parameter number. */
int ms_stmt_params(const struct ms_stmt *st);
/* Columns of the current row, counted from 0; text and blobs are borrowed until the next step. */
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
