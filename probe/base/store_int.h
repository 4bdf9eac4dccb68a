/* SPDX-License-Identifier: MIT
 *
 * store_int: interface that the files over SQLite share.
 */
#ifndef PROBE_BASE_STORE_INT_H
#define PROBE_BASE_STORE_INT_H

#include "probe/base/store.h"

#include <limits.h>

struct sqlite3;
struct sqlite3 *ms_store__handle(struct ms_store *s);

/* ---- store_guard ---------------------------------------------------------------------- */

/* Limits for databases and statements of others, and a private copy of a database that a writer left
 * in the middle of a change. */

/* Disables risky features, before a database of others is read; returns an SQLite code. */
int ms_store__harden(struct sqlite3 *db);
/* Something in a schema that runs code when a table is read or changed. */
struct ms_store_found {
    bool is_any, is_too_large; /* is_too_large: not all of it was looked through */
    const char *what;
    char table[64], part[64];
};
/* Looks for it, which is the first that is read of a file; returns an SQLite code. */
int ms_store__find_code(struct sqlite3 *db, struct ms_store_found *found);
/* Implements ms_store_only_look; returns an SQLite code. */
int ms_store__only_look(struct sqlite3 *db);
/* Implements ms_store_is_one. */
bool ms_store__is_one(struct sqlite3 *db, const char *sql);
/* Makes SQLite allocate with ms_alloc; called before SQLite is used. */
void ms_store__use_our_memory(void);
/* Tells whether an SQLite allocation has failed in this thread since the last call. */
bool ms_store__ran_out(void);

enum ms_beside { MS_BESIDE_NOTHING, MS_BESIDE_JOURNAL, MS_BESIDE_WAL };

/* Returns whether a journal or a WAL with contents is beside the database; MS_BESIDE_NOTHING also
 * when there is no database. */
enum ms_beside ms_store__beside(const char *path);
/* Returns the suffix "-journal" or "-wal". */
const char *ms_store__suffix(enum ms_beside what);
/* Writes the name of the journal or WAL of a database, for a message; only the suffix when it is too
 * long. */
const char *ms_store__name_beside(char name[PATH_MAX], const char *path, enum ms_beside what);
/* Copies the database and the journal or WAL beside it. The name of a super-journal is left out of
 * the copied journal, because SQLite deletes the file with that name, whatever it is. */
enum ms_rc ms_store__copy(const char *path, enum ms_beside what, const char *copy,
                          struct ms_err *err) MS_MUST_USE;
/* Removes the journal, WAL and shared-memory file beside a copy. */
void ms_store__drop_beside(const char *copy);

/* ---- store_pages ---------------------------------------------------------------------- */

/* Returns the name of the VFS that checks the pages of a database of others while they are read. */
const char *ms_store__guarded_vfs(void);

#endif
