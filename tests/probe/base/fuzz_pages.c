/* SPDX-License-Identifier: MIT
 *
 * fuzz_pages: any file as a database of others. It is refused, or each of its tables is read to its end: no
 * table has more rows than the file has room for, and no memory stays. The path of a page to itself, or
 * of two pages to one, would make rows without end.
 */
#include "probe/base/mem.h"
#include "probe/base/store.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROW_BYTES_MIN = 2 }; /* the place of a cell in the list of its page */

static char path[PATH_MAX];

static void must(bool truth)
{
    if (!truth)
        __builtin_trap();
}

static void remove_file(void)
{
    unlink(path);
}

static void write_input(const uint8_t *data, size_t size)
{
    if (path[0] == '\0') {
        const char *tmp = getenv("TMPDIR");
        snprintf(path, sizeof path, "%s/msprobe-fuzz-pages-%d", tmp != NULL ? tmp : "/tmp",
                 (int)getpid());
        atexit(remove_file);
    }
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0);
}

/* Reads each row of a statement with all its columns; returns how many there are. */
static uint64_t count_rows(struct ms_store *s, const char *sql)
{
    struct ms_stmt *st;
    struct ms_err err = {0};
    enum ms_rc rc = ms_store_prepare(s, &st, sql, &err);
    if (rc != MS_OK)
        return 0;
    uint64_t rows = 0;
    for (; ms_stmt_next(st, &rc, &err); rows++) {
        for (int i = 0; i < ms_stmt_columns(st); i++) {
            const struct ms_str v = ms_stmt_get_blob(st, i);
            must(v.n == 0 || v.p != NULL);
        }
    }
    ms_stmt_free(st);
    return rows;
}

static void read_tables(struct ms_store *s, size_t size)
{
    static const char each[] = "SELECT 'SELECT * FROM \"' || replace(name, '\"', '\"\"') || '\"' "
                               "FROM sqlite_master WHERE type = 'table'";
    struct ms_stmt *st;
    struct ms_err err = {0};
    enum ms_rc rc = ms_store_prepare(s, &st, each, &err);
    if (rc != MS_OK)
        return;
    while (ms_stmt_next(st, &rc, &err)) {
        char sql[1024];
        const struct ms_str text = ms_stmt_get_str(st, 0);
        if (text.n < sizeof sql) {
            snprintf(sql, sizeof sql, "%.*s", MS_STR_ARG(text));
            must(count_rows(s, sql) <= size / ROW_BYTES_MIN);
        }
    }
    ms_stmt_free(st);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ms_store *s;
    struct ms_err err = {0};
    write_input(data, size);
    const size_t live = ms_mem_live();
    if (ms_store_open(&s, path, &err) == MS_OK) {
        read_tables(s, size);
        ms_store_close(s);
    }
    must(ms_mem_live() == live);
    return 0;
}
