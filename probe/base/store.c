/* SPDX-License-Identifier: MIT
 *
 * store: a thin layer over SQLite with the suite's errors, memory and way of creating files.
 *
 * A new database is written without a journal into a temporary file: if the run dies, the file is
 * discarded, so nothing needs to be rolled back. Reading uses a URI, because only a URI can declare
 * that a file will not change ("immutable").
 */
#include "probe/base/store.h"

#include "probe/base/clock.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/store_int.h"

#define MS_LOG_DOMAIN "store"
#include "probe/base/log.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUSY_WAIT_MS = 5000, STEPS_PER_LOOK_AT_CLOCK = 2000 };

struct ms_store {
    sqlite3 *db;
    char *path;
    char *tmp;        /* path of a database under construction, else NULL */
    bool is_interim;  /* the caller makes the file durable */
    bool is_dense;    /* small pages */
    bool immutable;   /* opened with immutable=1 */
    struct stat seen; /* the file when it was opened */
    uint32_t limit_ms;
    int64_t deadline_ns; /* of the current statement; 0: none */
};

struct ms_stmt {
    struct ms_store *store;
    sqlite3_stmt *st;
    int bad;      /* first failure to bind a parameter; reported by the next step */
    bool running; /* has been stepped since the last reset */
};

/* ---- errors ----------------------------------------------------------- */

static enum ms_rc rc_of(int code)
{
    switch (code & 0xFF) {
    case SQLITE_NOMEM:
        return MS_E_NOMEM;
    case SQLITE_INTERRUPT:
        return MS_E_INTERRUPTED;
    case SQLITE_TOOBIG:
        return MS_E_LIMIT;
    case SQLITE_MISUSE:
    case SQLITE_RANGE:
        return MS_E_INTERNAL;
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_SCHEMA:
    case SQLITE_MISMATCH:
        return MS_E_FORMAT;
    default:
        return MS_E_IO;
    }
}

static const char *remedy_for(int code)
{
    switch (code & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return "another program is using it; close that and try again";
    case SQLITE_FULL:
        return "free some space and try again";
    case SQLITE_CORRUPT:
        return "it is damaged; make it again";
    default:
        return NULL;
    }
}

/* Tells whether a failure is about the statement. For a full disk or a locked file, showing the
 * statement to the user does not help. */
static bool is_about_statement(int code)
{
    switch (code & 0xFF) {
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_SCHEMA:
    case SQLITE_MISUSE:
    case SQLITE_RANGE:
        return true;
    default:
        return false;
    }
}

/* Tells whether a file that is read as immutable has changed, so that its pages are
 * inconsistent. */
static bool was_changed(const struct ms_store *s)
{
    struct stat now;
    return s->immutable && stat(s->path, &now) == 0 && now.st_ino == s->seen.st_ino &&
           (now.st_size != s->seen.st_size || now.st_mtim.tv_sec != s->seen.st_mtim.tv_sec ||
            now.st_mtim.tv_nsec != s->seen.st_mtim.tv_nsec);
}

/* Reports an SQLite failure. The message shows the beginning of sql, which may be NULL. */
static enum ms_rc fail_sql(const struct ms_store *s, int code, const char *sql, struct ms_err *err)
{
    if ((code & 0xFF) == SQLITE_ERROR && ms_store__ran_out())
        code = SQLITE_NOMEM;
    /* A handle that is out of memory returns its own message and hides the cause. A handle whose
     * database is read through a copy has no error of its own. */
    const bool knows = s->db != NULL && code != SQLITE_NOMEM && sqlite3_errcode(s->db) != SQLITE_OK;
    const char *why = knows ? sqlite3_errmsg(s->db) : sqlite3_errstr(code);
    enum ms_rc rc = rc_of(code);
    if ((code & 0xFF) == SQLITE_CORRUPT && was_changed(s))
        return ms_fail(err, rc, "%s: another program changed it while it was read; open it again",
                       s->path);
    if (rc == MS_E_INTERRUPTED && s->limit_ms != 0)
        ms_fail(err, rc, "%s: query took longer than %u ms", s->path, s->limit_ms);
    else if (sql != NULL && is_about_statement(code))
        ms_fail(err, rc, "%s: %s (in '%.40s%s')", s->path, why, sql, strlen(sql) > 40 ? "..." : "");
    else
        ms_fail(err, rc, "%s: %s", s->path, why);
    const char *remedy = remedy_for(code);
    if (remedy != NULL)
        ms_err_hint(err, "%s", remedy);
    return rc;
}

/* ---- time limit ------------------------------------------------------- */

static int past_deadline(void *store)
{
    const struct ms_store *s = store;
    return s->deadline_ns != 0 && ms_clock_ns() > s->deadline_ns;
}

static void start_clock(struct ms_store *s)
{
    s->deadline_ns = s->limit_ms != 0 ? ms_clock_ns() + (int64_t)s->limit_ms * 1000000 : 0;
}

void ms_store_set_limit_ms(struct ms_store *s, uint32_t ms)
{
    s->limit_ms = ms;
    start_clock(s);
    sqlite3_progress_handler(s->db, ms != 0 ? STEPS_PER_LOOK_AT_CLOCK : 0,
                             ms != 0 ? past_deadline : NULL, s);
}

/* ---- opening ---------------------------------------------------------- */

static void free_handle(struct ms_store *s)
{
    /* With close_v2, statements that are still open keep the connection alive, not the handle. */
    sqlite3_close_v2(s->db);
    ms_free(s->path);
    ms_free(s->tmp);
    ms_free(s);
}

static struct ms_store *new_handle(const char *path)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, ms_store__use_our_memory);
    struct ms_store *s = ms_calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->path = ms_str_dup(ms_str_of(path));
    if (s->path == NULL) {
        ms_free(s);
        return NULL;
    }
    return s;
}

/* Writes "file:PATH?query" with special characters escaped. A second slash at the start would begin
 * a host name. */
static void put_uri(struct ms_buf *b, const char *path, const char *query)
{
    ms_buf_puts(b, "file:");
    for (const char *c = path; *c != '\0'; c++) {
        bool host = c == path + 1 && c[0] == '/' && c[-1] == '/';
        if (*c == '?' || *c == '#' || *c == '%' || host)
            ms_buf_printf(b, "%%%02X", (unsigned char)*c);
        else
            ms_buf_putc(b, *c);
    }
    ms_buf_puts(b, query);
}

static enum ms_rc connect_to(struct ms_store *s, const char *path, const char *query, int flags,
                             struct ms_err *err)
{
    struct ms_buf uri = {.max = 3 * PATH_MAX + 64};
    put_uri(&uri, path, query);
    enum ms_rc rc = ms_buf_check(&uri, err);
    if (rc == MS_OK) {
        const char *vfs = s->tmp == NULL ? ms_store__guarded_vfs() : NULL; /* not a file of ours */
        int code = sqlite3_open_v2(ms_buf_z(&uri), &s->db,
                                   flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, vfs);
        rc = code == SQLITE_OK ? MS_OK : fail_sql(s, code, NULL, err);
    }
    ms_buf_free(&uri);
    if (rc == MS_OK)
        sqlite3_busy_timeout(s->db, BUSY_WAIT_MS);
    return rc;
}

static enum ms_rc harden_store(struct ms_store *s, struct ms_err *err)
{
    const int code = ms_store__harden(s->db);
    return code == SQLITE_OK ? MS_OK : fail_sql(s, code, NULL, err);
}

/* Checks that the file is a database whose tables run nothing when they are read. */
static enum ms_rc check_inside(struct ms_store *s, struct ms_err *err)
{
    struct ms_store_found found = {0};
    const int code = ms_store__find_code(s->db, &found);
    if (found.is_too_large)
        return ms_fail(err, MS_E_LIMIT, "%s: holds thousands of tables, too many to look through",
                       s->path);
    if (code != SQLITE_OK)
        return fail_sql(s, code, NULL, err);
    if (!found.is_any)
        return MS_OK;
    return ms_fail(err, MS_E_FORMAT,
                   "%s: holds %s (%s of table %s), which would run code; copy its plain tables to "
                   "another database",
                   s->path, found.what, found.part, found.table);
}

enum ms_rc ms_store_only_look(struct ms_store *s, struct ms_err *err)
{
    const int code = ms_store__only_look(s->db);
    return code == SQLITE_OK ? MS_OK : fail_sql(s, code, NULL, err);
}

bool ms_store_is_one(struct ms_store *s, const char *sql)
{
    return ms_store__is_one(s->db, sql);
}

/* ---- databases of others: reading --------------------------------------- */

/* Opens a database of others. SQLite would finish what a killed writer began: apply a journal,
 * delete the journals that one names, and create files beside the database. A file of others must
 * not have such effects. With "immutable", SQLite ignores all other files. */
static enum ms_rc open_immutable(struct ms_store *s, const char *path, struct ms_err *err)
{
    MS_TRY(connect_to(s, path, "?mode=ro&immutable=1", SQLITE_OPEN_READONLY, err));
    MS_TRY(harden_store(s, err));
    return check_inside(s, err);
}

/* Applies the copied journal or WAL to a private copy. */
static enum ms_rc finish_copy(struct ms_store *s, const char *copy, struct ms_err *err)
{
    MS_TRY(connect_to(s, copy, "?mode=rw", SQLITE_OPEN_READWRITE, err));
    MS_TRY(harden_store(s, err));
    MS_TRY(check_inside(s, err));
    const int code = sqlite3_exec(s->db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
    return code == SQLITE_OK ? MS_OK : fail_sql(s, code, NULL, err);
}

static void tell_of_copy(const char *path, enum ms_beside what)
{
    char name[PATH_MAX];
    ms_warn("%s: %s, as %s says; a private copy is read, and the file stays as it is", path,
            what == MS_BESIDE_WAL ? "its newest changes are not in it"
                                  : "a change to it was not finished",
            ms_store__name_beside(name, path, what));
}

enum ms_rc ms_store_copy(const char *path, const char *copy, struct ms_err *err)
{
    const enum ms_beside what = ms_store__beside(path);
    struct ms_store *s = new_handle(path);
    if (s == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = ms_store__copy(path, what, copy, err);
    if (rc == MS_OK)
        rc = finish_copy(s, copy, err);
    ms_store_close(s);
    ms_store__drop_beside(copy);
    if (rc == MS_OK && what != MS_BESIDE_NOTHING)
        tell_of_copy(path, what);
    return rc;
}

static enum ms_rc vacuum_into(struct ms_store *s, const char *to, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(connect_to(s, s->path, "?mode=ro", SQLITE_OPEN_READONLY, err));
    MS_TRY(ms_store_exec(s, "PRAGMA synchronous=OFF", err));
    MS_TRY(ms_store_prepare(s, &st, "VACUUM INTO ?", err));
    ms_stmt_str(st, 1, ms_str_of(to));
    enum ms_rc rc = ms_stmt_run(st, err);
    ms_stmt_free(st);
    return rc;
}

enum ms_rc ms_store_copy_in_order(const char *path, const char *to, struct ms_err *err)
{
    struct ms_buf journal = {.max = 1
                                    << 16}; /* that SQLite has beside the copy while it writes it */
    struct ms_store *s = new_handle(path);
    ms_buf_puts(&journal, to);
    ms_buf_puts(&journal, "-journal");
    ms_buf_z(&journal);
    enum ms_rc rc = s != NULL ? ms_buf_check(&journal, err) : ms_no_memory(err);
    if (rc == MS_OK) {
        (void)ms_tmp_register(journal.p);
        rc = vacuum_into(s, to, err);
        ms_tmp_forget(journal.p);
        if (rc != MS_OK)
            unlink(journal.p);
    }
    ms_store_close(s);
    ms_buf_free(&journal);
    return rc;
}

bool ms_store_is_settled(const char *path)
{
    return ms_store__beside(path) == MS_BESIDE_NOTHING;
}

enum ms_rc ms_store_settle(const char *path, const char *copy, bool *made, struct ms_err *err)
{
    *made = ms_store__beside(path) != MS_BESIDE_NOTHING;
    return *made ? ms_store_copy(path, copy, err) : MS_OK;
}

/* Makes and opens a private copy, which the caller unlinks once it is open. */
static enum ms_rc read_copy(struct ms_store *s, const char *folder, struct ms_err *err)
{
    bool made;
    char *copy = ms_path_join(folder, "copy.db");
    if (copy == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = ms_store_settle(s->path, copy, &made, err);
    if (rc == MS_OK)
        rc = open_immutable(s, made ? copy : s->path, err);
    ms_free(copy);
    return rc;
}

static enum ms_rc open_for_reading(struct ms_store *s, struct ms_err *err)
{
    char *folder;
    s->immutable = stat(s->path, &s->seen) == 0;
    if (ms_store__beside(s->path) == MS_BESIDE_NOTHING)
        return open_immutable(s, s->path, err);
    MS_TRY(ms_tmp_folder(&folder, "db", err));
    enum ms_rc rc = read_copy(s, folder, err);
    ms_tmp_folder_remove(folder);
    return rc;
}

/* Opens without "immutable": SQLite locks the file and checks for changes, so changes become
 * visible. */
static enum ms_rc open_working_copy(struct ms_store *s, struct ms_err *err)
{
    MS_TRY(connect_to(s, s->path, "?mode=ro", SQLITE_OPEN_READONLY, err));
    MS_TRY(harden_store(s, err));
    return check_inside(s, err);
}

static enum ms_rc open_for_editing(struct ms_store *s, struct ms_err *err)
{
    char name[PATH_MAX];
    const enum ms_beside what = ms_store__beside(s->path);
    if (what != MS_BESIDE_NOTHING)
        return ms_fail(err, MS_E_IO,
                       "%s: another program is changing it, or was killed meanwhile (%s lies "
                       "beside it); finish that first, or change a copy",
                       s->path, ms_store__name_beside(name, s->path, what));
    MS_TRY(connect_to(s, s->path, "?mode=rw", SQLITE_OPEN_READWRITE, err));
    MS_TRY(harden_store(s, err));
    MS_TRY(check_inside(s, err));
    if (sqlite3_db_readonly(s->db, "main") == 1)
        return ms_fail(err, MS_E_IO, "%s: may not be written", s->path);
    return MS_OK;
}

enum ms_rc ms_store_check_place(const char *path, struct ms_err *err)
{
    char name[PATH_MAX];
    const enum ms_beside what = ms_store__beside(path);
    if (what == MS_BESIDE_NOTHING)
        return MS_OK;
    return ms_fail(err, MS_E_IO,
                   "%s: cannot be written, since %s would be applied to the new file; close the "
                   "program that works on it, or write another file",
                   path, ms_store__name_beside(name, path, what));
}

/* Creates the file before SQLite opens it, because SQLite does not report why it cannot create a
 * file. */
static enum ms_rc open_tmp(struct ms_store *s, struct ms_err *err)
{
    MS_TRY(ms_store_check_place(s->path, err));
    MS_TRY(ms_tmp_new(&s->tmp, s->path, err));
    unlink(s->tmp);
    int fd = open(s->tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return ms_fail_sys(err, "%s: cannot write", s->path);
    close(fd);
    return connect_to(s, s->tmp, "", SQLITE_OPEN_READWRITE, err);
}

/* Settings for one transaction over the whole bulk load. No journal: see the top of the file. */
static const char bulk[] = "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=OFF;"
                           "PRAGMA synchronous=OFF; PRAGMA cache_size=-65536; BEGIN";

static enum ms_rc begin_bulk(struct ms_store *s, struct ms_err *err)
{
    MS_TRY(open_tmp(s, err));
    if (s->is_interim)
        MS_TRY(ms_store_exec(s, "PRAGMA page_size=8192", err));
    if (s->is_dense)
        MS_TRY(ms_store_exec(s, "PRAGMA page_size=1024", err));
    MS_TRY(ms_store_exec(s, "PRAGMA temp_store=MEMORY", err));
    return ms_store_exec(s, bulk, err);
}

static enum ms_rc open_in_memory(struct ms_store *s, struct ms_err *err)
{
    return connect_to(s, s->path, "", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
}

static enum ms_rc copy_old(struct ms_store *s, const char *from, struct ms_err *err)
{
    struct ms_store *old;
    MS_TRY(ms_store_open(&old, from, err));
    sqlite3_backup *b = sqlite3_backup_init(s->db, "main", old->db, "main");
    int code = b != NULL ? sqlite3_backup_step(b, -1) : sqlite3_errcode(s->db);
    if (b != NULL)
        sqlite3_backup_finish(b);
    const bool is_damaged = (code & 0xFF) == SQLITE_CORRUPT || (code & 0xFF) == SQLITE_NOTADB;
    enum ms_rc rc = code == SQLITE_DONE ? MS_OK : fail_sql(is_damaged ? old : s, code, NULL, err);
    ms_store_close(old);
    return rc;
}

static enum ms_rc begin_interim(struct ms_store *s, struct ms_err *err)
{
    s->is_interim = true;
    return begin_bulk(s, err);
}

static enum ms_rc begin_dense(struct ms_store *s, struct ms_err *err)
{
    s->is_interim = s->is_dense = true;
    return begin_bulk(s, err);
}

typedef enum ms_rc (*open_fn)(struct ms_store *s, struct ms_err *err);

static enum ms_rc open_with(struct ms_store **out, const char *path, open_fn open_it,
                            struct ms_err *err)
{
    *out = NULL;
    struct ms_store *s = new_handle(path);
    if (s == NULL)
        return ms_fail(err, MS_E_NOMEM, "%s: %s", path, ms_rc_text(MS_E_NOMEM));
    enum ms_rc rc = open_it(s, err);
    if (rc == MS_OK)
        *out = s;
    else
        ms_store_close(s);
    return rc;
}

/* Checks the file first, because SQLite reports "unable to open database file" for each of these
 * problems. */
static enum ms_rc check_file(const char *path, struct ms_err *err)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return ms_fail_sys(err, "%s", path);
    if (!S_ISREG(st.st_mode))
        return ms_fail(err, MS_E_ARG, "%s: is not a file, expected a database", path);
    return access(path, R_OK) != 0 ? ms_fail_sys(err, "%s", path) : MS_OK;
}

enum ms_rc ms_store_create(struct ms_store **s, const char *path, struct ms_err *err)
{
    return open_with(s, path, begin_bulk, err);
}

enum ms_rc ms_store_create_interim(struct ms_store **s, const char *path, struct ms_err *err)
{
    return open_with(s, path, begin_interim, err);
}

enum ms_rc ms_store_create_dense(struct ms_store **s, const char *path, struct ms_err *err)
{
    return open_with(s, path, begin_dense, err);
}

enum ms_rc ms_store_scratch(struct ms_store **s, struct ms_err *err)
{
    return open_with(s, ":memory:", open_in_memory, err);
}

enum ms_rc ms_store_renew(struct ms_store **s, const char *path, const char *from,
                          struct ms_err *err)
{
    MS_TRY(open_with(s, path, open_tmp, err));
    enum ms_rc rc = access(from, F_OK) == 0 ? copy_old(*s, from, err) : MS_OK;
    if (rc == MS_OK)
        rc = ms_store_exec(*s, bulk, err);
    if (rc == MS_OK) /* the tables, views and triggers are those of others; not earlier, because a
                        hardened connection keeps its journal */
        rc = harden_store(*s, err);
    if (rc != MS_OK) {
        ms_store_close(*s);
        *s = NULL;
    }
    return rc;
}

enum ms_rc ms_store_open(struct ms_store **s, const char *path, struct ms_err *err)
{
    *s = NULL;
    MS_TRY(check_file(path, err));
    return open_with(s, path, open_for_reading, err);
}

enum ms_rc ms_store_open_work(struct ms_store **s, const char *path, struct ms_err *err)
{
    *s = NULL;
    MS_TRY(check_file(path, err));
    return open_with(s, path, open_working_copy, err);
}

enum ms_rc ms_store_edit(struct ms_store **s, const char *path, struct ms_err *err)
{
    *s = NULL;
    MS_TRY(check_file(path, err));
    return open_with(s, path, open_for_editing, err);
}

void ms_store_close(struct ms_store *s)
{
    if (s == NULL)
        return;
    sqlite3_close_v2(s->db);
    s->db = NULL;
    if (s->tmp != NULL) {
        unlink(s->tmp);
        ms_store__drop_beside(s->tmp);
        ms_tmp_forget(s->tmp);
    }
    free_handle(s);
}

static enum ms_rc publish(struct ms_store *s, struct ms_err *err)
{
    int code = sqlite3_close_v2(s->db);
    s->db = NULL;
    if (code != SQLITE_OK)
        return fail_sql(s, code, NULL, err);
    int fd = open(s->tmp, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return ms_fail_sys(err, "%s: cannot write", s->path);
    enum ms_rc rc = s->is_interim ? ms_tmp_place(fd, s->tmp, s->path, err)
                                  : ms_tmp_publish(fd, s->tmp, s->path, err);
    ms_free(s->tmp);
    s->tmp = NULL;
    return rc;
}

enum ms_rc ms_store_commit(struct ms_store *s, struct ms_err *err)
{
    assert(s->tmp != NULL);
    enum ms_rc rc = ms_store_exec(s, "COMMIT", err);
    if (rc == MS_OK)
        rc = publish(s, err);
    ms_store_close(s);
    return rc;
}

/* ---- statements ------------------------------------------------------- */

enum ms_rc ms_store_exec(struct ms_store *s, const char *sql, struct ms_err *err)
{
    start_clock(s);
    int code = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? MS_OK : fail_sql(s, code, sql, err);
}

enum ms_rc ms_store_exec_i64(struct ms_store *s, const char *sql, const int64_t *value, int n,
                             struct ms_err *err)
{
    start_clock(s);
    for (const char *rest = sql; *rest != '\0';) {
        sqlite3_stmt *st;
        int code = sqlite3_prepare_v2(s->db, rest, -1, &st, &rest);
        if (code == SQLITE_OK && st == NULL)
            break; /* only spaces are left */
        for (int i = 1; i <= n && i <= sqlite3_bind_parameter_count(st); i++)
            sqlite3_bind_int64(st, i, value[i - 1]);
        while (code == SQLITE_OK || code == SQLITE_ROW)
            code = sqlite3_step(st);
        sqlite3_finalize(st);
        if (code != SQLITE_DONE)
            return fail_sql(s, code, sql, err);
    }
    return MS_OK;
}

enum ms_rc ms_store_prepare(struct ms_store *s, struct ms_stmt **out, const char *sql,
                            struct ms_err *err)
{
    *out = NULL;
    struct ms_stmt *st = ms_calloc(1, sizeof *st);
    if (st == NULL)
        return ms_fail(err, MS_E_NOMEM, "%s: %s", s->path, ms_rc_text(MS_E_NOMEM));
    st->store = s;
    start_clock(s);
    int code = sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &st->st, NULL);
    if (code != SQLITE_OK) {
        ms_free(st);
        return fail_sql(s, code, sql, err);
    }
    *out = st;
    return MS_OK;
}

void ms_stmt_free(struct ms_stmt *st)
{
    if (st == NULL)
        return;
    sqlite3_finalize(st->st);
    ms_free(st);
}

static void note_failure(struct ms_stmt *st, int code)
{
    if (st->bad == SQLITE_OK)
        st->bad = code;
}

void ms_stmt_i64(struct ms_stmt *st, int i, int64_t v)
{
    note_failure(st, sqlite3_bind_int64(st->st, i, v));
}

void ms_stmt_f64(struct ms_stmt *st, int i, double v)
{
    note_failure(st, sqlite3_bind_double(st->st, i, v));
}

void ms_stmt_str(struct ms_stmt *st, int i, struct ms_str s)
{
    note_failure(st, sqlite3_bind_text64(st->st, i, s.p, s.n, SQLITE_STATIC, SQLITE_UTF8));
}

/* Binds a blob. An empty blob gets a valid pointer, because a NULL pointer would bind NULL. */
void ms_stmt_blob(struct ms_stmt *st, int i, const void *p, size_t n)
{
    note_failure(st, sqlite3_bind_blob64(st->st, i, n != 0 ? p : "", n, SQLITE_STATIC));
}

void ms_stmt_null(struct ms_stmt *st, int i)
{
    note_failure(st, sqlite3_bind_null(st->st, i));
}

void ms_stmt_reset(struct ms_stmt *st)
{
    /* sqlite3_reset returns the failure of the last step, which has already been reported. */
    (void)sqlite3_reset(st->st);
    st->running = false;
    st->bad = SQLITE_OK;
}

int ms_stmt_params(const struct ms_stmt *st)
{
    return sqlite3_bind_parameter_count(st->st);
}

enum ms_rc ms_stmt_step(struct ms_stmt *st, bool *more, struct ms_err *err)
{
    *more = false;
    if (!st->running)
        start_clock(st->store);
    int code = st->bad != SQLITE_OK ? st->bad : sqlite3_step(st->st);
    st->running = true;
    *more = code == SQLITE_ROW;
    if (code == SQLITE_ROW)
        return MS_OK;
    enum ms_rc rc = MS_OK;
    if (code != SQLITE_DONE)
        rc = fail_sql(st->store, code, sqlite3_sql(st->st), err);
    ms_stmt_reset(st);
    return rc;
}

bool ms_stmt_next(struct ms_stmt *st, enum ms_rc *rc, struct ms_err *err)
{
    bool more = false;
    if (*rc == MS_OK)
        *rc = ms_stmt_step(st, &more, err);
    return more;
}

enum ms_rc ms_stmt_run(struct ms_stmt *st, struct ms_err *err)
{
    bool more;
    MS_TRY(ms_stmt_step(st, &more, err));
    ms_stmt_reset(st);
    return MS_OK;
}

/* ---- rows ------------------------------------------------------------- */

int ms_stmt_columns(const struct ms_stmt *st)
{
    return sqlite3_column_count(st->st);
}

const char *ms_stmt_column_name(const struct ms_stmt *st, int i)
{
    const char *name = sqlite3_column_name(st->st, i);
    return name != NULL ? name : "";
}

bool ms_stmt_is_null(struct ms_stmt *st, int i)
{
    return sqlite3_column_type(st->st, i) == SQLITE_NULL;
}

bool ms_stmt_is_i64(struct ms_stmt *st, int i)
{
    return sqlite3_column_type(st->st, i) == SQLITE_INTEGER;
}

bool ms_stmt_is_f64(struct ms_stmt *st, int i)
{
    return sqlite3_column_type(st->st, i) == SQLITE_FLOAT;
}

int64_t ms_stmt_get_i64(struct ms_stmt *st, int i)
{
    return sqlite3_column_int64(st->st, i);
}

double ms_stmt_get_f64(struct ms_stmt *st, int i)
{
    return sqlite3_column_double(st->st, i);
}

struct ms_str ms_stmt_get_str(struct ms_stmt *st, int i)
{
    const char *p = (const char *)sqlite3_column_text(st->st, i);
    return p != NULL ? (struct ms_str){p, (uint32_t)sqlite3_column_bytes(st->st, i)} : MS_STR_NONE;
}

struct ms_str ms_stmt_get_blob(struct ms_stmt *st, int i)
{
    const char *p = sqlite3_column_blob(st->st, i);
    return p != NULL ? (struct ms_str){p, (uint32_t)sqlite3_column_bytes(st->st, i)} : MS_STR_NONE;
}

struct sqlite3 *ms_store__handle(struct ms_store *s)
{
    return s->db;
}

const char *ms_store_version(void)
{
    return sqlite3_libversion();
}
