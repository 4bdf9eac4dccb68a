/* SPDX-License-Identifier: MIT */
#include "probe/base/store.h"

#include "probe/base/mem.h"

#include "tests/support/check.h"

static struct ms_err err;
static char dir[64], path[128];
static size_t live_before;

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

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
    scratch_remove(dir);
}

static void make(const char *schema)
{
    struct ms_store *s;
    ck_assert_int_eq(ms_store_create(&s, path, &err), MS_OK);
    ck_assert_msg(ms_store_exec(s, schema, &err) == MS_OK, "%s", err.msg);
    ck_assert_int_eq(ms_store_commit(s, &err), MS_OK);
}

typedef enum ms_rc open_fn(struct ms_store **s, const char *path, struct ms_err *err);
static open_fn *const ways[] = {ms_store_open, ms_store_edit, ms_store_open_work};

/* What runs inside a table is refused before any of it has run. */
static const struct {
    const char *schema, *says;
} bad[] = {
    {"CREATE TABLE t(a, b AS (printf('%200000000d', a)))", "a generated column (b of table t)"},
    {"CREATE TABLE t(a, b AS (printf('%9d', a)) STORED)", "a generated column (b of table t)"},
    {"CREATE TABLE o(a); CREATE TABLE t(a PRIMARY KEY, b AS (hex(a))) WITHOUT ROWID",
     "a generated column (b of table t)"},
    {"CREATE TABLE o(a); CREATE VIRTUAL TABLE t USING fts5(a)", "a virtual table (t of table t)"},
    {"CREATE TABLE t(a); CREATE INDEX i ON t(a, hex(a))", "an index over an expression (i of"},
    {"CREATE TABLE t(a); CREATE INDEX i ON t(a) WHERE abs(a) > 1",
     "an index with a condition that calls something (i of table t)"},
    {"CREATE TABLE t(a); CREATE INDEX i ON t(a) WHERE a LIKE '%a%a%a%'",
     "an index with a condition that calls something (i of table t)"},
    {"CREATE TABLE t(a); CREATE INDEX i ON t(a) WHERE a glob '*a*a'",
     "an index with a condition that calls something (i of table t)"},
};

START_TEST(what_runs_inside_a_table_is_refused)
{
    make(bad[_i].schema);
    for (int i = 0; i < COUNT(ways); i++) {
        struct ms_store *s = NULL;
        ms_err_clear(&err);
        ck_assert_int_eq(ways[i](&s, path, &err), MS_E_FORMAT);
        ck_assert_ptr_null(s);
        ck_assert_msg(strstr(err.msg, bad[_i].says) != NULL, "%s", err.msg);
    }
}
END_TEST

static const char *const fine[] = {
    "CREATE TABLE t(a, b); CREATE INDEX i ON t(a) WHERE b = 'moved'",
    "CREATE TABLE t(a PRIMARY KEY, b) WITHOUT ROWID",
    "CREATE TABLE t(a DEFAULT (abs(3)), b); CREATE INDEX i ON t(a, b)",
    "CREATE TABLE t(a); CREATE VIEW v AS SELECT hex(a) FROM t",
    "CREATE TABLE t(\"a AS (hex(b))\", b); CREATE INDEX \"LIKE\" ON t(b)",
};

START_TEST(plain_tables_are_read)
{
    make(fine[_i]);
    for (int i = 0; i < COUNT(ways); i++) {
        struct ms_store *s;
        ck_assert_msg(ways[i](&s, path, &err) == MS_OK, "%s", err.msg);
        ms_store_close(s);
    }
}
END_TEST

/* A check that no row satisfies would keep a match by hand from being stored, and one that calls a
 * function would keep everybody waiting. */
START_TEST(checks_of_a_stranger_are_not_made)
{
    struct ms_store *s;
    make("CREATE TABLE t(a CHECK(length(printf('%100d', a)) < 5 OR a = 1)); INSERT INTO t "
         "VALUES(1)");
    ck_assert_int_eq(ms_store_edit(&s, path, &err), MS_OK);
    ck_assert_msg(ms_store_exec(s, "UPDATE t SET a = 2", &err) == MS_OK, "%s", err.msg);
    ms_store_close(s);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("stranger_schema");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, what_runs_inside_a_table_is_refused, 0, COUNT(bad));
    tcase_add_loop_test(tc, plain_tables_are_read, 0, COUNT(fine));
    tcase_add_test(tc, checks_of_a_stranger_are_not_made);
    return run_case("stranger_schema", tc);
}
