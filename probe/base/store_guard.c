/* SPDX-License-Identifier: MIT
 *
 * store_guard: limits what a database of others may do and what an untrusted statement may read.
 *
 * Follows SQLite's advice for untrusted files and statements (its page "Defense Against The Dark
 * Arts"): features that reach out of the database are off, limits are low, and an authorizer works
 * with an allow-list. This file also finds the journal or WAL that a writer left beside a database,
 * and makes the private copy to which it is applied.
 */
#include "probe/base/store_int.h"

#include "probe/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

struct setting {
    int what, value;
};

static void set_limits(sqlite3 *db, const struct setting *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sqlite3_limit(db, list[i].what, list[i].value);
}
#define COUNT(list) (sizeof(list) / sizeof *(list))

/* ---- memory ----------------------------------------------------------- */

/* Set when an allocation for SQLite has failed in this thread. The error that SQLite reports next
 * may be a consequence: when it could not reread the schema, it reports "no such table". */
static _Thread_local bool ran_out;

static void *mem_alloc(int n)
{
    void *p = ms_alloc((size_t)n);
    ran_out |= p == NULL;
    return p;
}

static void *mem_realloc(void *old, int n)
{
    void *p = ms_realloc(old, (size_t)n);
    ran_out |= p == NULL;
    return p;
}

static int mem_size(void *p)
{
    return p != NULL ? (int)malloc_usable_size(p) : 0;
}

static int mem_roundup(int n)
{
    return (n + 7) & ~7;
}

static int mem_init(void *unused)
{
    (void)unused;
    return SQLITE_OK;
}

static void mem_shutdown(void *unused)
{
    (void)unused;
}

/* sqlite3_config fails only when other code in the process has already initialised SQLite; then the
 * allocator of that code stays. */
void ms_store__use_our_memory(void)
{
    static const sqlite3_mem_methods methods = {.xMalloc = mem_alloc,
                                                .xFree = ms_free,
                                                .xRealloc = mem_realloc,
                                                .xSize = mem_size,
                                                .xRoundup = mem_roundup,
                                                .xInit = mem_init,
                                                .xShutdown = mem_shutdown};
    sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
}

void ms_store_limit_memory(uint64_t bytes)
{
    sqlite3_hard_heap_limit64((sqlite3_int64)bytes);
}

bool ms_store__ran_out(void)
{
    const bool was = ran_out;
    ran_out = false;
    return was;
}

/* ---- a database of others ------------------------------------------------------------ */

int ms_store__harden(sqlite3 *db)
{
    static const struct setting switches[] = {{SQLITE_DBCONFIG_DEFENSIVE, 1},
                                              {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                              {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
                                              {SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0},
                                              {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                              {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                                              {SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0}};
    static const struct setting limits[] = {{SQLITE_LIMIT_LENGTH, 256 << 20},
                                            {SQLITE_LIMIT_COLUMN, 500},
                                            {SQLITE_LIMIT_ATTACHED, 0},
                                            {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
                                            {SQLITE_LIMIT_WORKER_THREADS, 0}};
    for (size_t i = 0; i < COUNT(switches); i++)
        sqlite3_db_config(db, switches[i].what, switches[i].value, NULL);
    set_limits(db, limits, COUNT(limits));
    return sqlite3_exec(db, "PRAGMA cell_size_check=ON; PRAGMA ignore_check_constraints=ON", NULL,
                        NULL, NULL);
}

/* Expressions of the schema run inside whatever reads or changes a table, and there is no time
 * limit there; a virtual table is code that works on what the file holds. Views and triggers are
 * off already. Each query returns the table and the column or index of what is found. */
static const char *const runs_code[][2] = {
    {"a virtual table", "SELECT name, name FROM sqlite_master WHERE type='table' AND rootpage=0"},
    {"a generated column",
     "SELECT m.name, x.name FROM sqlite_master m, pragma_table_xinfo(m.name) x "
     "WHERE m.type='table' AND x.hidden IN (2, 3)"},
    {"an index over an expression",
     "SELECT m.tbl_name, m.name FROM sqlite_master m, pragma_index_xinfo(m.name) x "
     "WHERE m.type='index' AND x.cid=-2"},
    {"an index with a condition that calls something",
     "SELECT m.name, x.name FROM sqlite_master m, pragma_index_list(m.name) x, sqlite_master i "
     "WHERE m.type='table' AND x.partial AND i.type='index' AND i.name=x.name AND "
     "(i.sql LIKE '%(%(%' OR i.sql LIKE '%LIKE%' OR i.sql LIKE '%GLOB%')"},
};

/* Returns an SQLite code; keeps the first row in `found`. */
static int first_row(sqlite3 *db, const char *sql, struct ms_store_found *found)
{
    sqlite3_stmt *st;
    int code = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    if (code != SQLITE_OK)
        return code;
    if (sqlite3_step(st) == SQLITE_ROW) {
        const unsigned char *table = sqlite3_column_text(st, 0), *part = sqlite3_column_text(st, 1);
        found->is_any = true;
        snprintf(found->table, sizeof found->table, "%s", table != NULL ? (const char *)table : "");
        snprintf(found->part, sizeof found->part, "%s", part != NULL ? (const char *)part : "");
    }
    return sqlite3_finalize(st);
}

static int has_no_look_left(void *looks)
{
    return --*(int *)looks < 0;
}

/* Lets SQLite take so many steps, until it is called again. */
static void limit_steps(sqlite3 *db, int steps, int *looks)
{
    enum { STEPS_PER_LOOK = 1000 };
    *looks = steps / STEPS_PER_LOOK;
    sqlite3_progress_handler(db, steps != 0 ? STEPS_PER_LOOK : 0, has_no_look_left, looks);
}

/* Returns SQLITE_CORRUPT when a table begins on a pointer map, which store_pages does not check. Pages with
 * reserved bytes have other maps, and all of them are checked. */
static int check_roots(sqlite3 *db)
{
    static const char sql[] =
        "SELECT 1, 1 FROM sqlite_master m, pragma_auto_vacuum a, pragma_page_size s "
        "WHERE a.auto_vacuum > 0 AND ((m.rootpage - 2) % (s.page_size / 5 + 1) = 0 OR "
        "m.rootpage = 1073741824 / s.page_size + 2)";
    struct ms_store_found found = {0};
    const int code = first_row(db, sql, &found);
    return code == SQLITE_OK && found.is_any ? SQLITE_CORRUPT : code;
}

/* SQLite compares the name of each table with those of all others: ten thousand tables are read in a
 * tenth of a second, fifty thousand in three. A table takes seven steps. A database of a profiler
 * has up to 100 tables, of which the queries look through the columns in 20,000 steps. */
int ms_store__find_code(sqlite3 *db, struct ms_store_found *found)
{
    enum { SCHEMA_STEPS_MAX = 50000, STEPS_MAX = 1000000 };
    int looks;
    *found = (struct ms_store_found){0};
    limit_steps(db, SCHEMA_STEPS_MAX, &looks);
    int code = sqlite3_exec(db, "SELECT 1 FROM sqlite_master LIMIT 1", NULL, NULL, NULL);
    if (code == SQLITE_OK)
        limit_steps(db, STEPS_MAX, &looks);
    if (code == SQLITE_OK)
        code = check_roots(db);
    for (size_t i = 0; i < COUNT(runs_code) && code == SQLITE_OK && !found->is_any; i++) {
        found->what = runs_code[i][0];
        code = first_row(db, runs_code[i][1], found);
    }
    found->is_too_large = looks < 0;
    limit_steps(db, 0, &looks);
    return code;
}

/* ---- a statement of somebody --------------------------------------------------------- */

/* Allowed functions: their result depends only on their arguments. Sorted. */
static const char *const functions[] = {
    "->",
    "->>",
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "avg",
    "ceil",
    "ceiling",
    "char",
    "coalesce",
    "concat",
    "concat_ws",
    "cos",
    "cosh",
    "count",
    "cume_dist",
    "current_date",
    "current_time",
    "current_timestamp",
    "date",
    "datetime",
    "degrees",
    "dense_rank",
    "exp",
    "first_value",
    "floor",
    "format",
    "glob",
    "group_concat",
    "hex",
    "if",
    "ifnull",
    "iif",
    "instr",
    "json",
    "json_array",
    "json_array_length",
    "json_error_position",
    "json_extract",
    "json_group_array",
    "json_group_object",
    "json_insert",
    "json_object",
    "json_patch",
    "json_quote",
    "json_remove",
    "json_replace",
    "json_set",
    "json_type",
    "json_valid",
    "julianday",
    "lag",
    "last_value",
    "lead",
    "length",
    "like",
    "likelihood",
    "likely",
    "ln",
    "log",
    "log10",
    "log2",
    "lower",
    "ltrim",
    "max",
    "min",
    "mod",
    "nth_value",
    "ntile",
    "nullif",
    "octet_length",
    "percent_rank",
    "pi",
    "pow",
    "power",
    "printf",
    "quantile",
    "quote",
    "radians",
    "random",
    "rank",
    "replace",
    "round",
    "round_even",
    "row_number",
    "rtrim",
    "sign",
    "sin",
    "sinh",
    "sqlite_version",
    "sqrt",
    "stddev",
    "stddev_pop",
    "strftime",
    "string_agg",
    "substr",
    "substring",
    "sum",
    "tan",
    "tanh",
    "time",
    "timediff",
    "total",
    "trim",
    "trunc",
    "typeof",
    "unhex",
    "unicode",
    "unixepoch",
    "unlikely",
    "upper",
    "zeroblob",
};

/* Allowed pragmas: they describe tables. Sorted. */
static const char *const pragmas[] = {"index_info", "index_list", "table_info", "table_list",
                                      "table_xinfo"};

static int by_name(const void *key, const void *entry)
{
    return strcmp(key, *(const char *const *)entry);
}

static bool is_listed(const char *name, const char *const *list, size_t n)
{
    return name != NULL && bsearch(name, list, n, sizeof *list, by_name) != NULL;
}

static int may_look(void *ctx, int action, const char *a, const char *function, const char *c,
                    const char *d)
{
    (void)ctx;
    (void)c;
    (void)d;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return is_listed(function, functions, COUNT(functions)) ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_PRAGMA:
        return is_listed(a, pragmas, COUNT(pragmas)) ? SQLITE_OK : SQLITE_DENY;
    default:
        return SQLITE_DENY;
    }
}

int ms_store__only_look(sqlite3 *db)
{
    static const struct setting limits[] = {{SQLITE_LIMIT_LENGTH, 8 << 20},
                                            {SQLITE_LIMIT_SQL_LENGTH, 100000},
                                            {SQLITE_LIMIT_COLUMN, 200},
                                            {SQLITE_LIMIT_EXPR_DEPTH, 100},
                                            {SQLITE_LIMIT_COMPOUND_SELECT, 50},
                                            {SQLITE_LIMIT_FUNCTION_ARG, 32},
                                            {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 200},
                                            {SQLITE_LIMIT_VDBE_OP, 100000},
                                            {SQLITE_LIMIT_VARIABLE_NUMBER, 32}};
    /* SQLite creates these virtual tables when a statement first names them, which the authorizer
     * would refuse. */
    const int code =
        sqlite3_exec(db, "SELECT 1 FROM json_each('1'), json_tree('1')", NULL, NULL, NULL);
    set_limits(db, limits, COUNT(limits));
    return code == SQLITE_OK ? sqlite3_set_authorizer(db, may_look, NULL) : code;
}

/* Compiles the first statement of sql. Returns what follows it, NULL when it cannot be compiled;
 * *empty tells whether there is none. */
static const char *skip_statement(sqlite3 *db, const char *sql, bool *empty)
{
    sqlite3_stmt *st = NULL;
    const char *rest;
    const int code = sqlite3_prepare_v2(db, sql, -1, &st, &rest);
    *empty = st == NULL;
    sqlite3_finalize(st);
    return code == SQLITE_OK ? rest : NULL;
}

bool ms_store__is_one(sqlite3 *db, const char *sql)
{
    bool empty = false;
    const char *rest = skip_statement(db, sql, &empty);
    return rest != NULL && skip_statement(db, rest, &empty) != NULL && empty;
}

/* ---- journal and WAL ------------------------------------------------------------------ */

/* A journal that belongs to a change of several databases ends with the name of their
 * super-journal:
 *
 *     page number, name, length of the name, checksum of the name, 8 bytes of magic
 */
enum { WAL_HEADER = 32, NAME_TAIL = 16, PAGE_NUMBER = 4, ATTEMPTS = 3 };

const char *ms_store__suffix(enum ms_beside what)
{
    return what == MS_BESIDE_WAL ? "-wal" : "-journal";
}

/* Writes the name of a file beside a database. SQLite resolves links first, so the journal of a
 * database that is read through a link lies beside the file itself. */
static bool name_beside(char name[PATH_MAX], const char *path, const char *suffix)
{
    char real[PATH_MAX];
    const char *file = realpath(path, real) != NULL ? real : path;
    const int n = snprintf(name, PATH_MAX, "%s%s", file, suffix);
    return n > 0 && n < PATH_MAX;
}

const char *ms_store__name_beside(char name[PATH_MAX], const char *path, enum ms_beside what)
{
    return name_beside(name, path, ms_store__suffix(what)) ? name : ms_store__suffix(what);
}

/* Opens the journal or WAL beside a database; -1 when there is none. A link, a pipe or a folder
 * cannot come from SQLite. */
static int open_beside(const char *path, enum ms_beside what)
{
    char name[PATH_MAX];
    if (what == MS_BESIDE_NOTHING || !name_beside(name, path, ms_store__suffix(what)))
        return -1;
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

/* ---- journals ------------------------------------------------------------------------ */

/* Returns where the name of a super-journal begins, when the first `size` bytes end with one; else
 * -1. */
static off_t common_name_at(int fd, off_t size, uint32_t *length)
{
    static const unsigned char magic[8] = {0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7};
    unsigned char tail[NAME_TAIL];
    if (size < NAME_TAIL || pread(fd, tail, sizeof tail, size - NAME_TAIL) != NAME_TAIL ||
        memcmp(tail + 8, magic, sizeof magic) != 0)
        return -1;
    *length = (uint32_t)tail[0] << 24 | (uint32_t)tail[1] << 16 | (uint32_t)tail[2] << 8 | tail[3];
    const off_t at = size - NAME_TAIL - (off_t)*length;
    return at >= PAGE_NUMBER ? at : 0;
}

/* Tells whether the super-journal no longer exists: the change is then finished, and this journal
 * is void. */
static bool is_finished(int fd, off_t at, uint32_t length)
{
    char name[PATH_MAX];
    struct stat st;
    if (at < PAGE_NUMBER || length == 0 || length >= sizeof name ||
        pread(fd, name, length, at) != (ssize_t)length)
        return false;
    name[length] = '\0';
    return lstat(name, &st) != 0 && errno == ENOENT;
}

/* Returns the length of a journal without the names of super-journals at its end; 0 for a void
 * journal. */
static off_t own_length(int fd)
{
    struct stat st;
    char first = 0;
    uint32_t length = 0;
    if (fstat(fd, &st) != 0 || pread(fd, &first, 1, 0) != 1 || first == 0)
        return 0;
    off_t size = st.st_size, at;
    while (size > 0 && (at = common_name_at(fd, size, &length)) >= 0) {
        if (is_finished(fd, at, length))
            return 0;
        size = at >= PAGE_NUMBER ? at - PAGE_NUMBER : 0;
    }
    return size;
}

static off_t length_of(int fd, enum ms_beside what)
{
    struct stat st;
    if (what == MS_BESIDE_JOURNAL)
        return own_length(fd);
    return fstat(fd, &st) == 0 && st.st_size > WAL_HEADER ? st.st_size : 0;
}

enum ms_beside ms_store__beside(const char *path)
{
    for (enum ms_beside what = MS_BESIDE_JOURNAL; what <= MS_BESIDE_WAL; what++) {
        const int fd = open_beside(path, what);
        const bool holds = fd >= 0 && length_of(fd, what) > 0;
        if (fd >= 0)
            close(fd);
        if (holds)
            return what;
    }
    return MS_BESIDE_NOTHING;
}

/* ---- copying -------------------------------------------------------------------------- */

static bool copy_part(int from, int to, off_t at, off_t left)
{
    if (lseek(to, at, SEEK_SET) != at)
        return false;
    while (left > 0) {
        const ssize_t n = sendfile(to, from, &at, left < 1 << 30 ? (size_t)left : 1U << 30);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0;
        left -= n;
    }
    return true;
}

/* Returns where data begins at or behind `at`, `size` when there is none; sets *end to where it
 * ends. A file system that knows no holes says that all is data. */
static off_t find_data(int fd, off_t at, off_t size, off_t *end)
{
    const off_t data = lseek(fd, at, SEEK_DATA);
    *end = size;
    if (data < 0)
        return errno == ENXIO ? size : at;
    const off_t hole = lseek(fd, data, SEEK_HOLE);
    if (hole > data && hole < size)
        *end = hole;
    return data < size ? data : size;
}

/* Copies what was written to a file; its holes stay holes. A file of a stranger may take up a few
 * bytes and have a length of terabytes. */
static bool copy_bytes(int from, int to, off_t size)
{
    off_t end = 0;
    for (off_t at = 0; (at = find_data(from, at, size, &end)) < size; at = end) {
        if (!copy_part(from, to, at, end - at))
            return false;
    }
    return ftruncate(to, size) == 0;
}

/* Copies `size` bytes into a new file, and closes `from`. */
static enum ms_rc copy_file(int from, off_t size, const char *path, const char *copy,
                            struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    int to = open(copy, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (from < 0)
        rc = ms_fail_sys(err, "%s", path);
    else if (to < 0 || !copy_bytes(from, to, size))
        rc = ms_fail_sys(err, "%s: cannot be copied to %s", path, copy);
    if (from >= 0)
        close(from);
    if (to >= 0 && close(to) != 0 && rc == MS_OK)
        rc = ms_fail_sys(err, "%s: cannot be copied to %s", path, copy);
    return rc;
}

static enum ms_rc copy_both(const char *path, enum ms_beside what, const char *copy,
                            struct ms_err *err)
{
    char name[PATH_MAX];
    struct stat st = {0};
    const int from = open(path, O_RDONLY | O_CLOEXEC), beside = open_beside(path, what);
    const off_t size = beside >= 0 ? length_of(beside, what) : 0;
    if (from >= 0)
        (void)fstat(from, &st);
    enum ms_rc rc = copy_file(from, st.st_size, path, copy, err);
    if (rc == MS_OK && size > 0 && name_beside(name, copy, ms_store__suffix(what)))
        return copy_file(beside, size, path, name, err);
    if (beside >= 0)
        close(beside);
    return rc;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void look_at_both(struct stat st[2], const char *path, enum ms_beside what)
{
    char name[PATH_MAX];
    memset(st, 0, 2 * sizeof *st);
    (void)stat(path, &st[0]);
    if (name_beside(name, path, ms_store__suffix(what)))
        (void)lstat(name, &st[1]);
}

/* Copies again when a file changed during the copy, because the parts of such a copy do not fit
 * together. */
enum ms_rc ms_store__copy(const char *path, enum ms_beside what, const char *copy,
                          struct ms_err *err)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        struct stat before[2], after[2];
        look_at_both(before, path, what);
        MS_TRY(copy_both(path, what, copy, err));
        look_at_both(after, path, what);
        if (is_same(&before[0], &after[0]) && is_same(&before[1], &after[1]))
            return MS_OK;
    }
    return ms_fail(err, MS_E_IO, "%s: another program goes on changing it; try again later", path);
}

void ms_store__drop_beside(const char *copy)
{
    static const char *const all[] = {"-journal", "-wal", "-shm"};
    char name[PATH_MAX];
    for (int i = 0; i < 3; i++) {
        if (name_beside(name, copy, all[i]))
            unlink(name);
    }
}
