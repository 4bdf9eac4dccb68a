/* SPDX-License-Identifier: MIT
 *
 * Trees of pages in which a page has two parents, or one parent twice; and sound trees that grow
 * while they are read.
 */
#include "probe/base/store.h"

#include "probe/base/mem.h"

#include "tests/support/check.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

enum { PAGE_MAX = 1 << 16, ROWS = 6000, FREE_ROWS = 12000 };
enum { HEADER_AT = 100, LAST_CHILD_AT = 8, CELL_LIST_AT = 12 };

static struct ms_err err;
static char dir[64], path[128];
static size_t live_before;
static unsigned page_size;

static void set_up(void)
{
    ms_err_clear(&err);
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/x.db", dir);
    live_before = ms_mem_live();
    page_size = 4096;
}

static void tear_down(void)
{
    ck_assert_uint_eq(ms_mem_live(), live_before);
    scratch_remove(dir);
}

static void run_sql(struct ms_store *s, const char *sql)
{
    ck_assert_msg(ms_store_exec(s, sql, &err) == MS_OK, "%s", err.msg);
}

/* Adds rows of 300 bytes whose ids are (id * 7919 mod 1,000,003): anywhere in the tree. */
static void add_rows(struct ms_store *s, int64_t first, int64_t n)
{
    struct ms_stmt *st;
    run_sql(s, "BEGIN");
    ck_assert_int_eq(ms_store_prepare(s, &st, "INSERT INTO t VALUES(?, zeroblob(300))", &err),
                     MS_OK);
    for (int64_t i = first; i < first + n; i++) {
        ms_stmt_i64(st, 1, i * 7919 % 1000003);
        ck_assert_int_eq(ms_stmt_run(st, &err), MS_OK);
    }
    ms_stmt_free(st);
    run_sql(s, "COMMIT");
}

/* Makes a table of so many rows, in a file that has free pages as well: a tree grows into these first. */
static void make_database(int64_t rows, const char *kind)
{
    struct ms_store *s;
    char sql[128];
    ck_assert_int_eq(ms_store_create(&s, path, &err), MS_OK);
    snprintf(sql, sizeof sql, "COMMIT; PRAGMA page_size = %u", page_size);
    run_sql(s, sql);
    run_sql(s, "CREATE TABLE t(id INTEGER PRIMARY KEY, raw)");
    add_rows(s, 1, FREE_ROWS);
    snprintf(sql, sizeof sql, "DROP TABLE t; CREATE TABLE t(id INTEGER PRIMARY KEY, raw) %s", kind);
    run_sql(s, sql);
    add_rows(s, 1, rows);
    run_sql(s, "BEGIN");
    ck_assert_int_eq(ms_store_commit(s, &err), MS_OK);
}

static enum ms_rc number_of(struct ms_store *s, const char *sql, int64_t *n)
{
    struct ms_stmt *st;
    bool more = false;
    MS_TRY(ms_store_prepare(s, &st, sql, &err));
    const enum ms_rc rc = ms_stmt_step(st, &more, &err);
    *n = rc == MS_OK && more ? ms_stmt_get_i64(st, 0) : -1;
    ms_stmt_free(st);
    return rc;
}

/* As a viewer reads: the file is opened, and each row of the table is looked at. */
static enum ms_rc count_rows(const char *mapped, int64_t *n)
{
    struct ms_store *s;
    *n = -1;
    MS_TRY(ms_store_open(&s, path, &err));
    enum ms_rc rc = mapped != NULL ? ms_store_exec(s, mapped, &err) : MS_OK;
    if (rc == MS_OK)
        rc = number_of(s, "SELECT count(*) FROM t WHERE length(raw) > 1", n);
    ms_store_close(s);
    return rc;
}

static unsigned root_of(const char *name)
{
    struct ms_store *s;
    int64_t page = 0;
    char sql[128];
    snprintf(sql, sizeof sql, "SELECT rootpage FROM sqlite_master WHERE name='%s'", name);
    ck_assert_int_eq(ms_store_open(&s, path, &err), MS_OK);
    ck_assert_int_eq(number_of(s, sql, &page), MS_OK);
    ms_store_close(s);
    return (unsigned)page;
}

/* ---- pages of the file ------------------------------------------------------------------- */

static unsigned pages_of_file(void)
{
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    return (unsigned)(st.st_size / page_size);
}

static void transfer_page(unsigned number, unsigned char *page, bool write)
{
    const int fd = open(path, write ? O_RDWR : O_RDONLY);
    const off_t at = (off_t)(number - 1) * page_size;
    const ssize_t n = write ? pwrite(fd, page, page_size, at) : pread(fd, page, page_size, at);
    ck_assert_int_eq(n, page_size);
    close(fd);
}

static unsigned be16(const unsigned char *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

static unsigned char *child_of(unsigned char *page, unsigned k)
{
    return k == be16(page + 3) ? page + LAST_CHILD_AT
                               : page + be16(page + CELL_LIST_AT + 2 * (size_t)k);
}

static unsigned get_child(unsigned char *page, unsigned k)
{
    const unsigned char *p = child_of(page, k);
    return be16(p) << 16 | be16(p + 2);
}

static void set_child(unsigned char *page, unsigned k, unsigned number)
{
    unsigned char *p = child_of(page, k);
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(number >> (24 - 8 * i));
}

/* The database says how many pages it has. */
static void write_page_count(unsigned n)
{
    unsigned char page[PAGE_MAX];
    transfer_page(1, page, false);
    for (int i = 0; i < 4; i++)
        page[28 + i] = (unsigned char)(n >> (24 - 8 * i));
    transfer_page(1, page, true);
}

/* ---- trees that are none -------------------------------------------------------------------- */

static void check_refused(const char *mapped)
{
    int64_t n;
    ck_assert_int_eq(count_rows(mapped, &n), MS_E_FORMAT);
    ck_assert_msg(strstr(err.msg, "malformed") != NULL, "%s", err.msg);
    ms_err_clear(&err);
}

/* A page names each of its children once: for each place of the root, in tables whose interior pages
 * hold numbers and in those that hold rows, with pages of the least, of the usual and of the largest size. */
START_TEST(a_page_that_is_twice_in_its_parent_is_refused)
{
    unsigned char page[PAGE_MAX], changed[PAGE_MAX];
    int64_t n;
    page_size = (unsigned[]){512, 4096, PAGE_MAX}[_i / 2];
    make_database(600, _i % 2 != 0 ? "WITHOUT ROWID" : "");
    const unsigned root = root_of("t");
    transfer_page(root, page, false);
    ck_assert_uint_eq(page[0], _i % 2 != 0 ? 2 : 5);
    const unsigned cells = be16(page + 3);
    ck_assert_uint_ge(cells, 1);
    for (unsigned k = 0; k <= cells; k++) {
        memcpy(changed, page, page_size);
        set_child(changed, k, get_child(page, k == 0 ? cells : k - 1));
        transfer_page(root, changed, true);
        check_refused(NULL);
        check_refused("PRAGMA mmap_size = 1073741824");
    }
    transfer_page(root, page, true);
    ck_assert_int_eq(count_rows(NULL, &n), MS_OK);
    ck_assert_int_eq(n, 600);
}
END_TEST

/* Numbers of pages that are not there. */
START_TEST(a_child_behind_the_end_of_the_file_is_refused)
{
    static const unsigned behind[] = {0, 1, 2, 63, 64, 1U << 20, 0x7FFFFFFFU - (1U << 20)};
    unsigned char page[PAGE_MAX];
    make_database(600, "");
    const unsigned root = root_of("t");
    transfer_page(root, page, false);
    set_child(page, be16(page + 3),
              pages_of_file() + 1 + behind[_i / 2] + (_i % 2 != 0 ? 1U << 31 : 0));
    transfer_page(root, page, true);
    check_refused(NULL);
}
END_TEST

/* Two interior pages share their last child. */
START_TEST(a_page_with_two_parents_is_refused)
{
    unsigned char root[PAGE_MAX], one[PAGE_MAX], other[PAGE_MAX];
    make_database(ROWS, "");
    const unsigned at = root_of("t");
    transfer_page(at, root, false);
    const unsigned a = get_child(root, 0), b = get_child(root, 1);
    transfer_page(a, one, false);
    transfer_page(b, other, false);
    ck_assert_uint_eq(one[0], 5);
    ck_assert_uint_eq(other[0], 5);
    set_child(other, 0, get_child(one, be16(one + 3)));
    transfer_page(b, other, true);
    check_refused(NULL);
}
END_TEST

/* Five pages that name the next one a hundred times: a table of 10^11 rows. */
START_TEST(pages_that_multiply_are_refused_and_not_read)
{
    enum { LEVELS = 5, CELLS = 100, CELL = 6 };
    unsigned char page[PAGE_MAX];
    make_database(3, "");
    const unsigned root = root_of("t");
    unsigned child = pages_of_file() + 1;
    transfer_page(root, page, false);
    transfer_page(child, page, true);
    for (int level = 1; level <= LEVELS; level++) {
        memset(page, 0, sizeof page);
        page[0] = 5, page[4] = CELLS;
        set_child(page, CELLS, child);
        for (unsigned k = 0; k < CELLS; k++) {
            const unsigned cell = page_size - CELL * (k + 1);
            page[CELL_LIST_AT + 2 * k] = (unsigned char)(cell >> 8);
            page[CELL_LIST_AT + 2 * k + 1] = (unsigned char)cell;
            set_child(page, k, child);
            page[cell + 4] = 0x81;
        }
        child = level == LEVELS ? root : child + 1;
        transfer_page(child, page, true);
    }
    write_page_count(pages_of_file());
    check_refused(NULL);
}
END_TEST

/* The table of tables is a tree as well, which is read before anything else is known. */
START_TEST(a_schema_whose_pages_multiply_is_refused)
{
    unsigned char page[PAGE_MAX];
    struct ms_store *s;
    char sql[64];
    ck_assert_int_eq(ms_store_create(&s, path, &err), MS_OK);
    for (int i = 0; i < 200; i++) {
        snprintf(sql, sizeof sql, "CREATE TABLE t%d(a, b, c)", i);
        run_sql(s, sql);
    }
    ck_assert_int_eq(ms_store_commit(s, &err), MS_OK);
    transfer_page(1, page, false);
    unsigned char *head = page + HEADER_AT;
    ck_assert_uint_eq(head[0], 5);
    ck_assert_uint_ge(be16(head + 3), 2);
    memcpy(page + be16(head + CELL_LIST_AT), head + LAST_CHILD_AT, 4);
    transfer_page(1, page, true);
    ck_assert_int_eq(ms_store_open(&s, path, &err), MS_E_FORMAT);
    ck_assert_msg(strstr(err.msg, "malformed") != NULL, "%s", err.msg);
}
END_TEST

/* SQLite compares the name of a table with those of all others: 20,000 take a second, 100,000 a minute. */
START_TEST(a_schema_of_thousands_of_tables_is_refused)
{
    struct ms_store *s;
    char sql[400];
    ck_assert_int_eq(ms_store_create(&s, path, &err), MS_OK);
    snprintf(sql, sizeof sql,
             "CREATE TABLE t(a, b, c); PRAGMA writable_schema = ON; WITH RECURSIVE n(x) AS (SELECT "
             "1 UNION ALL "
             "SELECT x + 1 FROM n LIMIT %d) INSERT INTO sqlite_master SELECT 'table', 't' || x, "
             "'t' || x, rootpage, "
             "'CREATE TABLE t' || x || '(a, b, c)' FROM n, sqlite_master WHERE name = 't'",
             _i == 0 ? 1000 : 20000);
    run_sql(s, sql);
    ck_assert_int_eq(ms_store_commit(s, &err), MS_OK);
    const enum ms_rc rc = ms_store_open(&s, path, &err);
    ck_assert_msg(rc == (_i == 0 ? MS_OK : MS_E_LIMIT), "%s", err.msg);
    ms_store_close(s);
}
END_TEST

/* ---- rows that share their pages ------------------------------------------------------------------ */

/* Adds to the size that a row says it has, by so many overflow pages that what lies on its own page stays
 * as it was. The size takes three bytes where it is 16 kB or more. */
static void add_to_row(unsigned char *size, unsigned overflow_pages)
{
    ck_assert(size[0] >= 0x80 && size[1] >= 0x80 && size[2] < 0x80);
    const unsigned was = (size[0] & 0x7FU) << 14 | (size[1] & 0x7FU) << 7 | size[2];
    const unsigned is = was + overflow_pages * (page_size - 4);
    ck_assert_uint_lt(is, 1 << 21);
    size[0] = (unsigned char)(0x80 | is >> 14);
    size[1] = (unsigned char)(0x80 | (is >> 7 & 0x7F));
    size[2] = (unsigned char)(is & 0x7F);
}

/* Opens the file and visits each row of the table, without looking into any. */
static enum ms_rc visit_rows(int64_t *n)
{
    struct ms_store *s;
    MS_TRY(ms_store_open(&s, path, &err));
    const enum ms_rc rc = number_of(s, "SELECT count(*) FROM t", n);
    ms_store_close(s);
    return rc;
}

/* In a table with rows, and in one whose rows stand in interior pages too. */
START_TEST(rows_that_say_more_than_the_file_has_are_refused)
{
    enum { OVERFLOW_PAGES = 200 };
    unsigned char page[PAGE_MAX];
    struct ms_store *s;
    int64_t n;
    const unsigned list = _i != 0 ? CELL_LIST_AT : 8, skipped = _i != 0 ? 4 : 0;
    ck_assert_int_eq(ms_store_create(&s, path, &err), MS_OK);
    run_sql(s, _i != 0 ? "CREATE TABLE t(id INTEGER PRIMARY KEY, raw) WITHOUT ROWID"
                       : "CREATE TABLE t(id INTEGER PRIMARY KEY, raw)");
    run_sql(s, "WITH RECURSIVE x(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM x LIMIT 30) "
               "INSERT INTO t SELECT i, zeroblob(70000) FROM x");
    ck_assert_int_eq(ms_store_commit(s, &err), MS_OK);
    ck_assert_msg(visit_rows(&n) == MS_OK && n == 30, "%s", err.msg);
    const unsigned root = root_of("t");
    transfer_page(root, page, false);
    const unsigned changed = page[0] == 5 ? get_child(page, 0) : root;
    transfer_page(changed, page, false);
    ck_assert_uint_eq(page[0], _i != 0 ? 2 : 13);
    add_to_row(page + be16(page + list) + skipped, OVERFLOW_PAGES);
    transfer_page(changed, page, true);
    ck_assert_int_eq(visit_rows(&n), MS_E_FORMAT);
    ck_assert_msg(strstr(err.msg, "malformed") != NULL, "%s", err.msg);
}
END_TEST

/* Rows of an index stand in its interior pages as well. */
START_TEST(rows_fill_the_file_and_no_more)
{
    struct ms_store *s;
    int64_t n;
    ck_assert_int_eq(ms_store_create(&s, path, &err), MS_OK);
    run_sql(s, "CREATE TABLE t(id INTEGER PRIMARY KEY, raw) WITHOUT ROWID; WITH RECURSIVE x(i) AS "
               "(SELECT 1 UNION ALL "
               "SELECT i + 1 FROM x LIMIT 500) INSERT INTO t SELECT i, zeroblob(i * 13) FROM x");
    run_sql(s, "CREATE INDEX by_raw ON t(raw, id)");
    ck_assert_int_eq(ms_store_commit(s, &err), MS_OK);
    ck_assert_msg(count_rows(NULL, &n) == MS_OK, "%s", err.msg);
    ck_assert_int_eq(n, 500);
    ck_assert_int_eq(ms_store_open(&s, path, &err), MS_OK);
    ck_assert_msg(number_of(s, "SELECT count(*) FROM t INDEXED BY by_raw WHERE raw > x'00'", &n) ==
                      MS_OK,
                  "%s", err.msg);
    ck_assert_int_eq(n, 500);
    ms_store_close(s);
}
END_TEST

/* ---- trees that grow ---------------------------------------------------------------------------- */

/* A tree that gets a level has a new page between its root and all that were the root's children. */
START_TEST(a_tree_that_another_connection_lets_grow_is_read)
{
    struct ms_store *reader, *writer;
    int64_t n;
    make_database(300, "");
    ck_assert_int_eq(ms_store_open_work(&reader, path, &err), MS_OK);
    ck_assert_int_eq(ms_store_edit(&writer, path, &err), MS_OK);
    run_sql(writer, "PRAGMA synchronous = OFF");
    run_sql(reader, "PRAGMA cache_size = 10");
    for (int64_t rows = 300; rows < ROWS; rows += 300) {
        ck_assert_msg(number_of(reader, "SELECT count(*) FROM t", &n) == MS_OK, "%s", err.msg);
        ck_assert_int_eq(n, rows);
        add_rows(writer, rows + 1, 300);
    }
    ms_store_close(writer);
    ms_store_close(reader);
}
END_TEST

START_TEST(a_tree_that_grows_in_the_same_connection_is_read)
{
    struct ms_store *s;
    int64_t n;
    make_database(300, _i != 0 ? "WITHOUT ROWID" : "");
    ck_assert_int_eq(ms_store_edit(&s, path, &err), MS_OK);
    run_sql(s, "PRAGMA synchronous = OFF; PRAGMA cache_size = 10; CREATE INDEX i ON t(id)");
    for (int64_t rows = 300; rows < ROWS; rows += 300) {
        ck_assert_msg(number_of(s, "SELECT count(raw) FROM t", &n) == MS_OK, "%s", err.msg);
        ck_assert_int_eq(n, rows);
        add_rows(s, rows + 1, 300);
    }
    run_sql(s, "DELETE FROM t WHERE id % 3 != 0");
    ck_assert_int_eq(number_of(s, "SELECT count(raw) FROM t", &n), MS_OK);
    ck_assert_int_gt(n, ROWS / 4);
    ms_store_close(s);
}
END_TEST

/* The size of a page is known only when the first one was read. */
START_TEST(a_schema_of_several_pages_is_read_whatever_their_size)
{
    struct ms_store *s;
    int64_t n;
    char sql[64];
    page_size = 512U << _i;
    make_database(300, "");
    ck_assert_int_eq(ms_store_edit(&s, path, &err), MS_OK);
    run_sql(s, "PRAGMA synchronous = OFF; BEGIN");
    for (int i = 0; i < 300; i++) {
        snprintf(sql, sizeof sql, "CREATE TABLE t%d(a, b, c)", i);
        run_sql(s, sql);
    }
    run_sql(s, "COMMIT");
    ms_store_close(s);
    ck_assert_msg(count_rows(NULL, &n) == MS_OK, "%s", err.msg);
    ck_assert_int_eq(n, 300);
}
END_TEST

/* ---- pointer maps ---------------------------------------------------------------------------- */

enum { FIRST_MAP = 2, SECOND_MAP = FIRST_MAP + 512 / 5 + 1, MAPPED_ROWS = 60 };

/* Makes a table of rows with so many bytes before their last column, in a file that has pointer maps. */
static void make_mapped_database(unsigned bytes, const char *mode)
{
    struct ms_store *s;
    char sql[256];
    page_size = 512;
    ck_assert_int_eq(ms_store_create(&s, path, &err), MS_OK);
    snprintf(sql, sizeof sql, "COMMIT; PRAGMA page_size = 512; PRAGMA auto_vacuum = %s; BEGIN",
             mode);
    run_sql(s, sql);
    run_sql(s, "CREATE TABLE t(id INTEGER PRIMARY KEY, raw, tail)");
    snprintf(sql, sizeof sql,
             "WITH RECURSIVE c(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM c WHERE i < %d) "
             "INSERT INTO t SELECT i, zeroblob(%u), 'tail' FROM c",
             MAPPED_ROWS, bytes);
    run_sql(s, sql);
    ck_assert_int_eq(ms_store_commit(s, &err), MS_OK);
}

/* SQLite finds the last column of a long row through the maps, which it reads like pages of trees. In some of
 * these files a map looks like a page that names a child twice. */
START_TEST(a_database_with_pointer_maps_is_read)
{
    for (unsigned bytes = 400; bytes < 4000; bytes += 100) {
        struct ms_store *s;
        int64_t n;
        make_mapped_database(bytes, _i != 0 ? "full" : "incremental");
        ck_assert_int_eq(ms_store_open(&s, path, &err), MS_OK);
        ck_assert_msg(number_of(s, "SELECT count(*) FROM t WHERE tail = 'tail'", &n) == MS_OK,
                      "%u bytes: %s", bytes, err.msg);
        ck_assert_int_eq(n, MAPPED_ROWS);
        ms_store_close(s);
        ck_assert_int_eq(unlink(path), 0);
    }
}
END_TEST

/* A map is not checked, so a tree has none among its pages, whatever stands there: here what stood on the
 * page before. */
START_TEST(a_pointer_map_in_a_tree_is_refused)
{
    unsigned char page[PAGE_MAX], child[PAGE_MAX];
    const unsigned map = _i == 0 ? FIRST_MAP : SECOND_MAP;
    make_mapped_database(4000, "full");
    const unsigned root = root_of("t");
    transfer_page(root, page, false);
    ck_assert_uint_eq(page[0], 5);
    transfer_page(get_child(page, 0), child, false);
    transfer_page(map, child, true);
    set_child(page, 0, map);
    transfer_page(root, page, true);
    check_refused(NULL);
}
END_TEST

/* The page behind the map is one like others. */
START_TEST(a_table_that_begins_on_a_pointer_map_is_refused)
{
    struct ms_store *s;
    sqlite3 *db;
    char sql[128];
    make_mapped_database(4000, "full");
    snprintf(sql, sizeof sql, "PRAGMA writable_schema = 1; UPDATE sqlite_master SET rootpage = %d",
             SECOND_MAP + _i);
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    const enum ms_rc rc = ms_store_open(&s, path, &err);
    ck_assert_int_eq(rc, _i == 0 ? MS_E_FORMAT : MS_OK);
    if (rc == MS_OK)
        ms_store_close(s);
    else
        ck_assert_msg(strstr(err.msg, "malformed") != NULL, "%s", err.msg);
}
END_TEST

START_TEST(memory_that_runs_out_is_told)
{
    int64_t n;
    make_database(ROWS, "");
    ck_assert_int_eq(count_rows(NULL, &n), MS_OK);
    for (uint64_t at = 1;; at++) {
        ms_mem_fail_at(at);
        const enum ms_rc rc = count_rows(NULL, &n);
        const bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        if (!failed)
            break;
        ck_assert_msg(rc == MS_E_NOMEM || (rc == MS_OK && n == ROWS), "%s", err.msg);
        ms_err_clear(&err);
    }
}
END_TEST

int main(void)
{
    enum { KINDS = 2, SIZES = 8 };
    TCase *tc = tcase_create("store_pages");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_page_that_is_twice_in_its_parent_is_refused, 0, 3 * KINDS);
    tcase_add_loop_test(tc, a_child_behind_the_end_of_the_file_is_refused, 0, 14);
    tcase_add_test(tc, a_page_with_two_parents_is_refused);
    tcase_add_test(tc, pages_that_multiply_are_refused_and_not_read);
    tcase_add_test(tc, a_schema_whose_pages_multiply_is_refused);
    tcase_add_loop_test(tc, a_schema_of_thousands_of_tables_is_refused, 0, 2);
    tcase_add_loop_test(tc, rows_that_say_more_than_the_file_has_are_refused, 0, KINDS);
    tcase_add_test(tc, rows_fill_the_file_and_no_more);
    tcase_add_test(tc, a_tree_that_another_connection_lets_grow_is_read);
    tcase_add_loop_test(tc, a_tree_that_grows_in_the_same_connection_is_read, 0, KINDS);
    tcase_add_loop_test(tc, a_schema_of_several_pages_is_read_whatever_their_size, 0, SIZES);
    tcase_add_loop_test(tc, a_database_with_pointer_maps_is_read, 0, 2);
    tcase_add_loop_test(tc, a_pointer_map_in_a_tree_is_refused, 0, 2);
    tcase_add_loop_test(tc, a_table_that_begins_on_a_pointer_map_is_refused, 0, 2);
    tcase_add_test(tc, memory_that_runs_out_is_told);
    return run_case("store_pages", tc);
}
