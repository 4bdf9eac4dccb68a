/* SPDX-License-Identifier: MIT */
#include "probe/base/store.h"

#include "probe/base/io.h"
#include "probe/base/log.h"
#include "probe/base/mem.h"

#include "tests/support/check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct ms_err err;
static char dir[64], path[128];
static size_t live_before;

static void set_up(void)
{
    ms_err_clear(&err);
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/x.db", dir);
    live_before = ms_mem_live();
}

static void tear_down(void)
{
    ck_assert_uint_eq(ms_mem_live(), live_before);
    chmod(dir, 0755);
    scratch_remove(dir);
}

static enum ms_rc insert(struct ms_store *s, int64_t id, struct ms_str name, double v)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(s, &st, "INSERT INTO t VALUES(?, ?, ?, ?)", &err));
    ms_stmt_i64(st, 1, id);
    ms_stmt_str(st, 2, name);
    ms_stmt_f64(st, 3, v);
    ms_stmt_blob(st, 4, "a\0b", 3);
    enum ms_rc rc = ms_stmt_run(st, &err);
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc write_rows(struct ms_store *s)
{
    MS_TRY(
        ms_store_exec(s, "CREATE TABLE t(id INTEGER PRIMARY KEY, name, v REAL, raw BLOB)", &err));
    for (int64_t i = 1; i <= 1000; i++)
        MS_TRY(insert(s, i, MS_STR("name"), (double)i / 4));
    return insert(s, INT64_MAX, MS_STR_NONE, -0.0);
}

static enum ms_rc make_database(const char *at)
{
    struct ms_store *s;
    MS_TRY(ms_store_create(&s, at, &err));
    enum ms_rc rc = write_rows(s);
    if (rc == MS_OK)
        return ms_store_commit(s, &err);
    ms_store_close(s);
    return rc;
}

static enum ms_rc count_in(struct ms_store *s, int64_t *n)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(s, &st, "SELECT count(*) FROM t", &err));
    enum ms_rc rc = ms_stmt_step(st, &more, &err);
    *n = rc == MS_OK && more ? ms_stmt_get_i64(st, 0) : -1;
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc count_rows(const char *at, int64_t *n)
{
    struct ms_store *s;
    *n = -1;
    MS_TRY(ms_store_open(&s, at, &err));
    enum ms_rc rc = count_in(s, n);
    ms_store_close(s);
    return rc;
}

static unsigned files_in(const char *at)
{
    struct ms_dir d;
    ck_ok(ms_dir_list(&d, at, &err), err);
    unsigned n = (unsigned)d.names.n;
    ms_dir_free(&d);
    return n;
}

START_TEST(a_database_appears_complete_at_commit)
{
    struct ms_store *s;
    int64_t n;
    ck_ok(ms_store_create(&s, path, &err), err);
    ck_ok(write_rows(s), err);
    ck_assert_int_eq(ms_path_kind(path), MS_KIND_NONE);
    ck_ok(ms_store_commit(s, &err), err);
    ck_ok(count_rows(path, &n), err);
    ck_assert_int_eq(n, 1001);
    ck_assert_uint_eq(files_in(dir), 1);
}
END_TEST

START_TEST(what_is_not_committed_leaves_the_old_file_and_nothing_else)
{
    struct ms_store *s;
    int64_t n;
    ck_ok(make_database(path), err);
    ck_ok(ms_store_create(&s, path, &err), err);
    ck_ok(ms_store_exec(s, "CREATE TABLE other(x)", &err), err);
    ms_store_close(s);
    ck_ok(count_rows(path, &n), err);
    ck_assert_uint_eq(files_in(dir), 1);
}
END_TEST

START_TEST(a_commit_replaces_an_older_database_and_makes_directories)
{
    char deep[160];
    int64_t n;
    ck_ok(make_database(path), err);
    ck_ok(make_database(path), err);
    snprintf(deep, sizeof deep, "%s/a/b/y.db", dir);
    ck_ok(make_database(deep), err);
    ck_ok(count_rows(deep, &n), err);
    ck_assert_int_eq(n, 1001);
}
END_TEST

START_TEST(an_interrupt_knows_the_temporary_name)
{
    struct ms_store *s;
    ck_ok(ms_store_create(&s, path, &err), err);
    ck_assert_uint_eq(files_in(dir), 1);
    ms_tmp_unlink_all();
    ck_assert_uint_eq(files_in(dir), 0);
    ms_store_close(s);
}
END_TEST

START_TEST(values_come_back_as_they_were)
{
    struct ms_store *s;
    struct ms_stmt *st;
    bool more;
    ck_ok(make_database(path), err);
    ck_ok(ms_store_open(&s, path, &err), err);
    ck_ok(ms_store_prepare(s, &st, "SELECT id, name, v, raw FROM t ORDER BY id DESC LIMIT 2", &err),
          err);
    ck_assert_int_eq(ms_stmt_columns(st), 4);
    ck_assert_str_eq(ms_stmt_column_name(st, 2), "v");
    ck_ok(ms_stmt_step(st, &more, &err), err);
    ck_assert(more);
    ck_assert_int_eq(ms_stmt_get_i64(st, 0), INT64_MAX);
    ck_assert(ms_stmt_is_null(st, 1));
    ck_assert_ptr_null(ms_stmt_get_str(st, 1).p);
    struct ms_str raw = ms_stmt_get_blob(st, 3);
    ck_assert_uint_eq(raw.n, 3);
    ck_assert_mem_eq(raw.p, "a\0b", 3);
    ck_ok(ms_stmt_step(st, &more, &err), err);
    ck_assert(ms_str_is(ms_stmt_get_str(st, 1), "name"));
    ck_assert_double_eq(ms_stmt_get_f64(st, 2), 250);
    ck_ok(ms_stmt_step(st, &more, &err), err);
    ck_assert(!more);
    ms_stmt_free(st);
    ms_store_close(s);
}
END_TEST

START_TEST(a_statement_runs_again_after_its_last_row_and_after_a_reset)
{
    struct ms_store *s;
    struct ms_stmt *st;
    bool more;
    ck_ok(make_database(path), err);
    ck_ok(ms_store_open(&s, path, &err), err);
    ck_ok(ms_store_prepare(s, &st, "SELECT id FROM t WHERE id <= ?", &err), err);
    for (int64_t limit = 1; limit <= 3; limit++) {
        int64_t rows = 0;
        ms_stmt_i64(st, 1, limit);
        for (;;) {
            ck_ok(ms_stmt_step(st, &more, &err), err);
            if (!more)
                break;
            rows++;
        }
        ck_assert_int_eq(rows, limit);
    }
    ck_ok(ms_stmt_step(st, &more, &err), err);
    ck_ok(ms_stmt_step(st, &more, &err), err);
    ms_stmt_reset(st);
    ck_ok(ms_stmt_step(st, &more, &err), err);
    ck_assert_int_eq(ms_stmt_get_i64(st, 0), 1);
    ms_stmt_free(st);
    ms_store_close(s);
}
END_TEST

START_TEST(a_loop_over_rows_ends_at_the_first_failure)
{
    struct ms_store *s;
    struct ms_stmt *st;
    enum ms_rc rc = MS_OK;
    int rows = 0;
    ck_ok(make_database(path), err);
    ck_ok(ms_store_open(&s, path, &err), err);
    ck_ok(ms_store_prepare(s, &st, "SELECT id FROM t ORDER BY id LIMIT 3", &err), err);
    for (; ms_stmt_next(st, &rc, &err); rows++)
        ck_assert_int_eq(rc, MS_OK);
    ck_assert_int_eq(rc, MS_OK);
    ck_assert_int_eq(rows, 3);
    for (; ms_stmt_next(st, &rc, &err); rows++)
        rc = ms_fail(&err, MS_E_LIMIT, "enough");
    ck_assert_int_eq(rc, MS_E_LIMIT);
    ck_assert_int_eq(rows, 4);
    ms_stmt_free(st);
    rc = MS_OK;
    err = (struct ms_err){0};
    ck_ok(ms_store_prepare(s, &st, "SELECT abs(-9223372036854775807 - 1)", &err), err);
    ck_assert(!ms_stmt_next(st, &rc, &err));
    ck_assert_int_ne(rc, MS_OK);
    ms_stmt_free(st);
    ms_store_close(s);
}
END_TEST

START_TEST(numbers_are_bound_in_every_statement_of_a_script)
{
    const int64_t value[] = {7, 9};
    struct ms_store *s;
    struct ms_stmt *st;
    bool more;
    ck_ok(ms_store_scratch(&s, &err), err);
    ck_ok(ms_store_exec_i64(s,
                            "CREATE TABLE t AS SELECT ?2 AS b;"
                            "INSERT INTO t SELECT b + ?1 FROM t; SELECT * FROM t; ",
                            value, 2, &err),
          err);
    ck_ok(ms_store_prepare(s, &st, "SELECT group_concat(b) FROM t", &err), err);
    ck_ok(ms_stmt_step(st, &more, &err), err);
    ck_assert(ms_str_is(ms_stmt_get_str(st, 0), "9,16"));
    ms_stmt_free(st);
    ck_assert_int_ne(
        ms_store_exec_i64(s, "DELETE FROM t; INSERT INTO nowhere VALUES(?1)", value, 2, &err),
        MS_OK);
    ck_assert_ptr_nonnull(strstr(err.msg, "nowhere"));
    ms_store_close(s);
}
END_TEST

START_TEST(an_empty_blob_is_not_null)
{
    struct ms_store *s;
    struct ms_stmt *st;
    bool more;
    ck_ok(ms_store_create(&s, path, &err), err);
    ck_ok(ms_store_prepare(s, &st, "SELECT ?, ?", &err), err);
    ms_stmt_blob(st, 1, NULL, 0);
    ms_stmt_null(st, 2);
    ck_ok(ms_stmt_step(st, &more, &err), err);
    ck_assert(!ms_stmt_is_null(st, 0));
    ck_assert(ms_stmt_is_null(st, 1));
    ms_stmt_free(st);
    ms_store_close(s);
}
END_TEST

START_TEST(a_parameter_that_does_not_exist_fails_the_run)
{
    struct ms_store *s;
    struct ms_stmt *st;
    ck_ok(ms_store_create(&s, path, &err), err);
    ck_ok(ms_store_prepare(s, &st, "SELECT ?", &err), err);
    ms_stmt_i64(st, 2, 1);
    ck_assert_int_eq(ms_stmt_run(st, &err), MS_E_INTERNAL);
    ms_stmt_free(st);
    ms_store_close(s);
}
END_TEST

static const struct {
    const char *sql, *says;
} bad_sql[] = {
    {"SELEC 1", "x.db: near \"SELEC\": syntax error (in 'SELEC 1')"},
    {"SELECT * FROM nowhere", "no such table: nowhere (in 'SELECT * FROM nowhere')"},
    {"INSERT INTO missing(a,b,c) VALUES(1,2,3) -- and more",
     "(in 'INSERT INTO missing(a,b,c) VALUES(1,2,3)...')"},
};

START_TEST(wrong_sql_is_quoted_in_the_message)
{
    struct ms_store *s;
    struct ms_stmt *st;
    ck_ok(ms_store_create(&s, path, &err), err);
    ck_assert_int_eq(ms_store_exec(s, bad_sql[_i].sql, &err), MS_E_FORMAT);
    ck_says(err, bad_sql[_i].says);
    ck_assert_int_eq(ms_store_prepare(s, &st, bad_sql[_i].sql, NULL), MS_E_FORMAT);
    ck_assert_ptr_null(st);
    ms_store_close(s);
}
END_TEST

START_TEST(a_broken_rule_of_the_table_is_named)
{
    struct ms_store *s;
    ck_ok(ms_store_create(&s, path, &err), err);
    ck_ok(write_rows(s), err);
    ck_assert_int_eq(insert(s, 1, MS_STR("twice"), 0), MS_E_FORMAT);
    ck_says(err, "UNIQUE constraint failed: t.id");
    ms_store_close(s);
}
END_TEST

START_TEST(a_query_past_its_time_is_interrupted)
{
    static const char endless[] =
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT sum(x) FROM n";
    struct ms_store *s;
    int64_t n;
    ck_ok(make_database(path), err);
    ck_ok(ms_store_open(&s, path, &err), err);
    ms_store_set_limit_ms(s, 20);
    ck_assert_int_eq(ms_store_exec(s, endless, &err), MS_E_INTERRUPTED);
    ck_says(err, "x.db: query took longer than 20 ms");
    ms_err_clear(&err);
    ms_store_set_limit_ms(s, 0);
    ck_ok(count_in(s, &n), err);
    ms_store_close(s);
}
END_TEST

static void check_refused(const char *at, enum ms_rc rc, const char *says)
{
    struct ms_store *s;
    ms_err_clear(&err);
    ck_assert_int_eq(ms_store_open(&s, at, &err), rc);
    ck_assert_ptr_null(s);
    ck_says(err, says);
    ck_says(err, at);
}

START_TEST(what_is_no_database_is_refused)
{
    char text[160];
    snprintf(text, sizeof text, "%s/text.db", dir);
    write_file(text, "this is not a database, but it is long enough for a header ........", 67);
    check_refused(text, MS_E_FORMAT, "file is not a database");
    check_refused(dir, MS_E_ARG, "expected a database");
    check_refused(path, MS_E_NOTFOUND, "No such file or directory");
    ck_assert_int_eq(ms_path_kind(path), MS_KIND_NONE);
}
END_TEST

START_TEST(a_directory_is_no_place_for_a_new_database)
{
    struct ms_store *s;
    ck_assert_int_eq(ms_store_create(&s, dir, &err), MS_E_ARG);
    ck_assert_ptr_null(s);
    ck_says(err, "expected a file name");
}
END_TEST

static const char *const odd_names[] = {"what?.db",       "50%.db",     "a#b.db",  "%41.db",
                                        "x y&mode=rw.db", "/double.db", ":memory:"};

START_TEST(a_name_may_hold_what_a_uri_gives_a_meaning_to)
{
    char odd[160];
    int64_t n;
    snprintf(odd, sizeof odd, "/%s/%s", dir, odd_names[_i]);
    ck_ok(make_database(odd), err);
    ck_ok(count_rows(odd, &n), err);
    ck_assert_int_eq(n, 1001);
    ck_assert_uint_eq(files_in(dir), 1);
}
END_TEST

START_TEST(an_edited_database_keeps_its_changes)
{
    struct ms_store *s;
    int64_t n;
    ck_ok(make_database(path), err);
    ck_ok(ms_store_edit(&s, path, &err), err);
    ck_ok(ms_store_exec(s, "BEGIN; DELETE FROM t WHERE id > 10; COMMIT", &err), err);
    ms_store_close(s);
    ck_ok(count_rows(path, &n), err);
    ck_assert_int_eq(n, 10);
}
END_TEST

/* Makes a database of two tables, whose rows are written one table after the other or in turn. */
static void write_two_tables(const char *to, bool in_turn)
{
    struct ms_store *s;
    ck_ok(ms_store_create(&s, to, &err), err);
    ck_ok(ms_store_exec(s, "CREATE TABLE a(x); CREATE TABLE b(x)", &err), err);
    for (int i = 0; i < 2000; i++) {
        const bool is_b = in_turn ? i % 2 == 1 : i >= 1000;
        ck_ok(ms_store_exec(s,
                            is_b ? "INSERT INTO b VALUES(hex(zeroblob(40)))"
                                 : "INSERT INTO a VALUES(hex(zeroblob(40)))",
                            &err),
              err);
    }
    ck_ok(ms_store_commit(s, &err), err);
}

START_TEST(a_copy_in_order_has_the_same_bytes_however_its_rows_were_written)
{
    struct ms_file f[2];
    for (int i = 0; i < 2; i++) {
        char *from = ms_path_join(dir, i == 0 ? "turn.db" : "order.db");
        char *to = ms_path_join(dir, i == 0 ? "turn.copy" : "order.copy");
        write_two_tables(from, i == 0);
        ck_ok(ms_store_copy_in_order(from, to, &err), err);
        ck_ok(ms_file_map(&f[i], to, SIZE_MAX, &err), err);
        ms_free(from);
        ms_free(to);
    }
    ck_assert_uint_gt(f[0].n, 80000);
    ck_assert_uint_eq(f[0].n, f[1].n);
    ck_assert_int_eq(memcmp(f[0].p, f[1].p, f[0].n), 0);
    ms_file_unmap(&f[0]);
    ms_file_unmap(&f[1]);
}
END_TEST

START_TEST(a_database_open_for_reading_cannot_be_changed)
{
    struct ms_store *s;
    ck_ok(make_database(path), err);
    ck_ok(ms_store_open(&s, path, &err), err);
    ck_assert_int_eq(ms_store_exec(s, "DELETE FROM t", &err), MS_E_IO);
    ck_says(err, "readonly");
    ck_assert_ptr_null(strstr(err.msg, "(in '")); /* the statement is not to blame */
    ms_store_close(s);
}
END_TEST

/* As a writer does that is killed behind the change. */
static void change_and_die(const char *sql)
{
    struct ms_store *s;
    pid_t child = fork();
    if (child == 0) {
        bool ok = ms_store_edit(&s, path, &err) == MS_OK && ms_store_exec(s, sql, &err) == MS_OK;
        _exit(ok ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

/* Leaves the last change in x.db-wal. */
static void leave_wal_behind(void)
{
    change_and_die("PRAGMA journal_mode=WAL; DELETE FROM t WHERE id > 10");
}

/* Leaves half of a change in x.db, and in x.db-journal how it was before. */
static void leave_journal_behind(void)
{
    change_and_die("PRAGMA cache_size=2; BEGIN; UPDATE t SET raw = randomblob(2000);"
                   "DELETE FROM t WHERE id > 10");
}

/* Every file of the folder with its length and bytes, by name, as one number. */
static uint64_t folder_hash(void)
{
    struct ms_dir list;
    uint64_t h = 0;
    ck_ok(ms_dir_list(&list, dir, &err), err);
    for (size_t i = 0; i < list.names.n; i++) {
        struct ms_file f;
        char name[300];
        snprintf(name, sizeof name, "%s/%s", dir, list.names.p[i].p);
        ck_ok(ms_file_map(&f, name, SIZE_MAX, &err), err);
        h = h * 31 + ms_str_hash(list.names.p[i]);
        h = h * 31 + ms_str_hash((struct ms_str){f.p, (uint32_t)f.n});
        ms_file_unmap(&f);
    }
    ms_dir_free(&list);
    return h;
}

/* What was left beside it is applied to a private copy, and nothing on disk changes. */
static void check_private_copy(int64_t rows)
{
    int64_t n;
    const uint64_t before = folder_hash();
    ms_log_set_level(MS_LOG_ERROR);
    ck_ok(count_rows(path, &n), err);
    ck_assert_int_eq(n, rows);
    ck_assert(folder_hash() == before);
}

START_TEST(a_change_that_was_not_finished_is_taken_back_in_a_copy)
{
    ck_ok(make_database(path), err);
    leave_journal_behind();
    ck_assert_uint_eq(files_in(dir), 2);
    check_private_copy(1001);
}
END_TEST

START_TEST(a_wal_left_behind_is_read_in_a_copy)
{
    ck_ok(make_database(path), err);
    leave_wal_behind();
    check_private_copy(10);
}
END_TEST

/* SQLite looks for what lies beside the file, not beside a link that leads to it. */
START_TEST(a_wal_is_found_behind_a_link_too)
{
    char link[160];
    snprintf(link, sizeof link, "%s/link.db", dir);
    ck_ok(make_database(path), err);
    leave_wal_behind();
    ck_assert_int_eq(symlink(path, link), 0);
    int64_t n;
    ms_log_set_level(MS_LOG_ERROR);
    ck_ok(count_rows(link, &n), err);
    ck_assert_int_eq(n, 10);
}
END_TEST

/* 1 TiB without 1 MB of data: the copy of it has to end, and to fit on a disk. */
START_TEST(holes_of_what_lies_beside_are_not_copied)
{
    char wal[160];
    snprintf(wal, sizeof wal, "%s-wal", path);
    ck_ok(make_database(path), err);
    leave_wal_behind();
    ck_assert_int_eq(truncate(wal, (off_t)1 << 40), 0);
    int64_t n;
    ms_log_set_level(MS_LOG_ERROR);
    ck_ok(count_rows(path, &n), err);
    ck_assert_int_eq(n, 10);
}
END_TEST

START_TEST(no_database_is_written_where_a_wal_of_another_lies)
{
    struct ms_store *s;
    ck_ok(make_database(path), err);
    leave_wal_behind();
    const uint64_t before = folder_hash();
    ck_assert_int_eq(ms_store_create(&s, path, &err), MS_E_IO);
    ck_says(err, "x.db-wal would be applied to the new file");
    ck_assert_int_eq(ms_store_renew(&s, path, path, &err), MS_E_IO);
    ck_assert(folder_hash() == before);
}
END_TEST

/* Appends to x.db-journal the name of a common journal, as SQLite writes it. */
static void name_common_journal(const char *name)
{
    static const unsigned char magic[8] = {0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7};
    char journal[160];
    unsigned char number[4];
    uint32_t sum = 0;
    const uint32_t n = (uint32_t)strlen(name);
    snprintf(journal, sizeof journal, "%s-journal", path);
    FILE *f = fopen(journal, "ab");
    ck_assert_ptr_nonnull(f);
    for (uint32_t i = 0; i < n; i++)
        sum += (unsigned char)name[i];
    const uint32_t parts[] = {0, n, sum};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 4; k++)
            number[k] = (unsigned char)(parts[i] >> (24 - 8 * k));
        ck_assert_uint_eq(fwrite(number, 1, 4, f), 4);
        if (i == 0)
            ck_assert_uint_eq(fwrite(name, 1, n, f), n);
    }
    ck_assert_uint_eq(fwrite(magic, 1, 8, f), 8);
    ck_assert_int_eq(fclose(f), 0);
}

/* SQLite deletes the file that a journal names as the common one. */
START_TEST(a_file_that_a_journal_names_stays)
{
    char bait[160];
    snprintf(bait, sizeof bait, "%s/thesis.txt", dir);
    for (int names = 1; names <= 3; names++) {
        ck_ok(make_database(path), err);
        leave_journal_behind();
        write_file(bait, "precious", 8);
        for (int i = 0; i < names; i++)
            name_common_journal(bait);
        check_private_copy(1001);
        ck_assert_int_eq(unlink(bait), 0);
        snprintf(bait, sizeof bait, "%s-journal", path);
        ck_assert_int_eq(unlink(bait), 0);
        snprintf(bait, sizeof bait, "%s/thesis.txt", dir);
    }
}
END_TEST

/* Where the common journal has gone the change was finished: this one says nothing any more. */
START_TEST(a_journal_of_a_finished_change_is_ignored)
{
    int64_t n;
    ck_ok(make_database(path), err);
    leave_journal_behind();
    name_common_journal("/nobody/has/this");
    ms_log_set_level(MS_LOG_ERROR);
    (void)count_rows(path, &n); /* pages that were not yet written may be missing */
    ck_assert_uint_eq(files_in(dir), 2);
}
END_TEST

/* What lies beside it may be anything. */
START_TEST(a_journal_that_is_none_changes_nothing)
{
    static const char *const ends[] = {"-journal", "-wal", "-shm"};
    char beside[160];
    for (int i = 0; i < 3; i++) {
        ck_ok(make_database(path), err);
        snprintf(beside, sizeof beside, "%s%s", path, ends[i]);
        write_file(beside, "nonsense that is longer than a header of a WAL", 46);
        check_private_copy(1001);
        ck_assert_int_eq(unlink(beside), 0);
        ck_assert_int_eq(symlink("/dev/zero", beside), 0);
        int64_t n;
        ck_ok(count_rows(path, &n), err);
        ck_assert_int_eq(n, 1001);
        ck_assert_int_eq(unlink(beside), 0);
    }
}
END_TEST

START_TEST(a_database_in_the_middle_of_a_change_is_not_edited)
{
    struct ms_store *s;
    ck_ok(make_database(path), err);
    leave_journal_behind();
    const uint64_t before = folder_hash();
    ck_assert_int_eq(ms_store_edit(&s, path, &err), MS_E_IO);
    ck_says(err, "-journal lies beside it");
    ck_assert(folder_hash() == before);
}
END_TEST

START_TEST(a_working_copy_shows_what_is_changed)
{
    struct ms_store *reads, *changes;
    struct ms_stmt *st;
    bool more;
    ck_ok(make_database(path), err);
    ck_ok(ms_store_open_work(&reads, path, &err), err);
    ck_ok(ms_store_prepare(reads, &st, "SELECT count(*) FROM t", &err), err);
    for (int64_t n = 1001; n >= 10; n -= 991) {
        ck_ok(ms_stmt_step(st, &more, &err), err);
        ck_assert_int_eq(ms_stmt_get_i64(st, 0), n);
        ms_stmt_reset(st);
        ck_ok(ms_store_edit(&changes, path, &err), err);
        ck_ok(ms_store_exec(changes, "DELETE FROM t WHERE id > 10", &err), err);
        ms_store_close(changes);
    }
    ms_stmt_free(st);
    ms_store_close(reads);
}
END_TEST

/* ---- statements of people -------------------------------------------------------- */

static enum ms_rc look(struct ms_store *s, const char *sql)
{
    struct ms_stmt *st;
    ms_err_clear(&err);
    MS_TRY(ms_store_prepare(s, &st, sql, &err));
    bool more;
    enum ms_rc rc = ms_stmt_step(st, &more, &err);
    ms_stmt_free(st);
    return rc;
}

START_TEST(a_statement_of_somebody_may_only_look)
{
    static const char *const good[] = {
        "SELECT count(*) FROM t",
        "SELECT upper(name), round(v, 1), abs(id), hex(raw) FROM t LIMIT 1",
        "SELECT value FROM json_each('[1,2]')",
        "WITH RECURSIVE x(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM x LIMIT 9) SELECT sum(a) "
        "FROM x",
        "PRAGMA table_info(t)",
    };
    static const char *const bad[] = {
        "DELETE FROM t",
        "ATTACH 'x' AS y",
        "CREATE TEMP TABLE x(y)",
        "PRAGMA writable_schema = 1",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA data_store_directory = '/'",
        "VACUUM INTO 'x'",
        "SELECT fts3_tokenizer('simple')",
        "SELECT load_extension('x')",
        "SELECT sqlite_compileoption_get(1)",
        "SELECT * FROM pragma_database_list",
        "SELECT zeroblob(100000000)",
        "BEGIN",
    };
    struct ms_store *s;
    ck_ok(make_database(path), err);
    ck_ok(ms_store_open(&s, path, &err), err);
    ck_ok(ms_store_only_look(s, &err), err);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ck_assert_msg(look(s, good[i]) == MS_OK, "%s: %s", good[i], err.msg);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(look(s, bad[i]) != MS_OK, "%s", bad[i]);
    ms_store_close(s);
}
END_TEST

/* A database may hold triggers and views that do what its maker wants. */
START_TEST(a_view_of_a_stranger_is_not_run)
{
    struct ms_store *s;
    int64_t n;
    ck_ok(ms_store_create(&s, path, &err), err);
    ck_ok(ms_store_exec(s, "CREATE VIEW t AS SELECT 1 AS id", &err), err);
    ck_ok(ms_store_commit(s, &err), err);
    ck_assert_int_ne(count_rows(path, &n), MS_OK);
    ck_says(err, "view");
}
END_TEST

/* What is renewed began as a stranger's: its triggers and views must not run with our statements,
 * and its schema is not to be rewritten. */
START_TEST(what_was_copied_from_a_stranger_is_not_trusted)
{
    struct ms_store *s;
    char copy[160];
    snprintf(copy, sizeof copy, "%s/copy.db", dir);
    ck_ok(ms_store_create(&s, path, &err), err);
    ck_ok(ms_store_exec(s,
                        "CREATE TABLE t(id); CREATE TABLE seen(id);"
                        "CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO seen VALUES(1); END;"
                        "CREATE VIEW v AS SELECT 1 AS id",
                        &err),
          err);
    ck_ok(ms_store_commit(s, &err), err);
    ck_ok(ms_store_renew(&s, copy, path, &err), err);
    ck_ok(ms_store_exec(s, "INSERT INTO t VALUES(7)", &err), err);
    ck_assert_int_ne(ms_store_exec(s, "SELECT * FROM v", &err), MS_OK);
    ck_says(err, "view");
    ms_err_clear(&err);
    ck_assert_int_ne(ms_store_exec(s, "PRAGMA writable_schema=1; DELETE FROM sqlite_master", &err),
                     MS_OK);
    ms_err_clear(&err);
    ck_ok(ms_store_commit(s, &err), err);
    int64_t n;
    ck_ok(count_rows(copy, &n), err);
    ck_assert_int_eq(n, 1);
    ck_ok(ms_store_open(&s, copy, &err), err);
    struct ms_stmt *st;
    bool more;
    ck_ok(ms_store_prepare(s, &st, "SELECT count(*) FROM seen", &err), err);
    ck_ok(ms_stmt_step(st, &more, &err), err);
    ck_assert_int_eq(ms_stmt_get_i64(st, 0), 0);
    ms_stmt_free(st);
    ms_store_close(s);
}
END_TEST

/* Root may write everywhere, so the reading is done by nobody. */
static int count_as_nobody(void)
{
    int64_t n = 0;
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        return 100;
    ms_log_set_level(MS_LOG_ERROR);
    if (count_rows(path, &n) != MS_OK)
        return 101;
    return n == 1001 ? 0 : 102;
}

static int counted_in_read_only_directory(void)
{
    int status;
    ck_assert_int_eq(chmod(dir, 0555), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(count_as_nobody());
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

START_TEST(a_read_only_directory_can_be_read_also_after_wal_mode)
{
    char wal[160];
    ck_ok(make_database(path), err);
    leave_wal_behind();
    snprintf(wal, sizeof wal, "%s-wal", path);
    ck_assert_int_eq(unlink(wal), 0);
    snprintf(wal, sizeof wal, "%s-shm", path);
    unlink(wal);
    ck_assert_int_eq(counted_in_read_only_directory(), 0);
}
END_TEST

START_TEST(a_change_is_taken_back_also_in_a_read_only_directory)
{
    ck_ok(make_database(path), err);
    leave_journal_behind();
    ck_assert_int_eq(counted_in_read_only_directory(), 0);
}
END_TEST

START_TEST(every_allocation_that_fails_is_reported_and_leaves_nothing)
{
    struct ms_store *warm;
    int64_t n;
    uint64_t at = 0;
    ck_ok(make_database(path), err);
    ck_ok(ms_store_open(&warm, path, &err), err);
    ms_store_close(warm);
    for (enum ms_rc rc = MS_E_NOMEM; rc != MS_OK && at < 5000; at++) {
        ms_err_clear(&err);
        ms_mem_fail_at(at + 1);
        rc = count_rows(path, &n);
        bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        /* SQLite gets along without some of its memory. */
        ck_assert_msg(rc == MS_OK || (failed && rc == MS_E_NOMEM), "allocation %u: %s",
                      (unsigned)at, err.msg);
        if (rc == MS_OK && failed)
            rc = MS_E_NOMEM;
        ck_assert_uint_eq(ms_mem_live(), live_before);
    }
    ck_assert_uint_gt(at, 5);
    ck_assert_uint_lt(at, 5000);
}
END_TEST

START_TEST(the_reference_shell_finds_no_fault)
{
    char cmd[256];
    if (system("command -v sqlite3 >/dev/null 2>&1") != 0)
        return;
    ck_ok(make_database(path), err);
    snprintf(cmd, sizeof cmd, "test \"$(sqlite3 '%s' 'PRAGMA integrity_check')\" = ok", path);
    ck_assert_int_eq(system(cmd), 0);
    snprintf(cmd, sizeof cmd, "test \"$(sqlite3 '%s' 'SELECT sum(v) FROM t')\" = 125125.0", path);
    ck_assert_int_eq(system(cmd), 0);
}
END_TEST

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

int main(void)
{
    TCase *tc = tcase_create("store");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_database_appears_complete_at_commit);
    tcase_add_test(tc, what_is_not_committed_leaves_the_old_file_and_nothing_else);
    tcase_add_test(tc, a_commit_replaces_an_older_database_and_makes_directories);
    tcase_add_test(tc, an_interrupt_knows_the_temporary_name);
    tcase_add_test(tc, values_come_back_as_they_were);
    tcase_add_test(tc, a_statement_runs_again_after_its_last_row_and_after_a_reset);
    tcase_add_test(tc, a_loop_over_rows_ends_at_the_first_failure);
    tcase_add_test(tc, numbers_are_bound_in_every_statement_of_a_script);
    tcase_add_test(tc, an_empty_blob_is_not_null);
    tcase_add_test(tc, a_parameter_that_does_not_exist_fails_the_run);
    tcase_add_loop_test(tc, wrong_sql_is_quoted_in_the_message, 0, COUNT(bad_sql));
    tcase_add_test(tc, a_broken_rule_of_the_table_is_named);
    tcase_add_test(tc, a_query_past_its_time_is_interrupted);
    tcase_add_test(tc, what_is_no_database_is_refused);
    tcase_add_test(tc, a_directory_is_no_place_for_a_new_database);
    tcase_add_loop_test(tc, a_name_may_hold_what_a_uri_gives_a_meaning_to, 0, COUNT(odd_names));
    tcase_add_test(tc, an_edited_database_keeps_its_changes);
    tcase_add_test(tc, a_copy_in_order_has_the_same_bytes_however_its_rows_were_written);
    tcase_add_test(tc, a_database_open_for_reading_cannot_be_changed);
    tcase_add_test(tc, a_change_that_was_not_finished_is_taken_back_in_a_copy);
    tcase_add_test(tc, a_change_is_taken_back_also_in_a_read_only_directory);
    tcase_add_test(tc, a_wal_left_behind_is_read_in_a_copy);
    tcase_add_test(tc, a_wal_is_found_behind_a_link_too);
    tcase_add_test(tc, holes_of_what_lies_beside_are_not_copied);
    tcase_add_test(tc, no_database_is_written_where_a_wal_of_another_lies);
    tcase_add_test(tc, a_read_only_directory_can_be_read_also_after_wal_mode);
    tcase_add_test(tc, a_file_that_a_journal_names_stays);
    tcase_add_test(tc, a_journal_of_a_finished_change_is_ignored);
    tcase_add_test(tc, a_journal_that_is_none_changes_nothing);
    tcase_add_test(tc, a_database_in_the_middle_of_a_change_is_not_edited);
    tcase_add_test(tc, a_working_copy_shows_what_is_changed);
    tcase_add_test(tc, a_statement_of_somebody_may_only_look);
    tcase_add_test(tc, a_view_of_a_stranger_is_not_run);
    tcase_add_test(tc, what_was_copied_from_a_stranger_is_not_trusted);
    tcase_add_test(tc, every_allocation_that_fails_is_reported_and_leaves_nothing);
    tcase_add_test(tc, the_reference_shell_finds_no_fault);
    return run_case("store", tc);
}
