/* SPDX-License-Identifier: MIT
 *
 * store_guard: bounds of databases and statements of others; a private copy of a database that a writer
 * left in the middle of a change.  For store.c alone.
 */
#ifndef PROBE_BASE_STORE_GUARD_H
#define PROBE_BASE_STORE_GUARD_H

#include "probe/base/store.h"

struct sqlite3;

/* Before anything of a database that others wrote is read; a code of SQLite. */
int ms_store__harden(struct sqlite3 *db);
/* For ms_store_only_look; a code of SQLite. */
int ms_store__only_look(struct sqlite3 *db);
/* Gives SQLite the allocator of ms_alloc, before it is used. */
void ms_store__use_our_memory(void);
/* This thread had no memory for SQLite since this was asked last. */
bool ms_store__ran_out(void);

enum ms_beside { MS_BESIDE_NOTHING, MS_BESIDE_JOURNAL, MS_BESIDE_WAL };

/* A journal or a WAL that holds something; nothing also when there is no database. */
enum ms_beside ms_store__beside(const char *path);
/* "-journal" or "-wal" */
const char *ms_store__suffix(enum ms_beside what);
/* Copies the database and what lies beside it.  In the copy a journal names no other journal: SQLite
 * deletes a file that is named there, whatever it is. */
enum ms_rc ms_store__copy(const char *path, enum ms_beside what, const char *copy,
                          struct ms_err *err) MS_MUST_USE;
/* Removes what lies beside a copy. */
void ms_store__drop_beside(const char *copy);

#endif
