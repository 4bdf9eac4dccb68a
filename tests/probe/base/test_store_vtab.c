/* SPDX-License-Identifier: MIT
 *
 * A table of SQL whose rows come from functions: bounds reach it, every type of value
 * comes out, and its failures are those of the query.
 */
#include "probe/base/mem.h"
#include "probe/base/store_vtab.h"
#include "tests/support/scratch_run.h"

/* Numbers 0 .. ROWS - 1 with a column of each type. */
enum { ROWS = 100 };

static struct {
    struct ms_bound bound[8];
    int bounds, opened, closed, rows_given;
    enum ms_rc fail_open, fail_start, fail_column;
    int64_t fail_next_at;
} seen;

struct numbers {
    int64_t at, end;
};

static enum ms_rc open_numbers(void *ctx, void **cursor, struct ms_err *err)
{
    if (seen.fail_open != MS_OK)
        return ms_fail(err, seen.fail_open, "cannot open %s", (const char *)ctx);
    *cursor = ms_calloc(1, sizeof(struct numbers));
    seen.opened++;
    return *cursor != NULL ? MS_OK : ms_no_memory(err);
}

static void close_numbers(void *cursor)
{
    seen.closed++;
    ms_free(cursor);
}

static enum ms_rc start_numbers(void *cursor, const struct ms_bound *bound, int n,
                                struct ms_err *err)
{
    struct numbers *c = cursor;
    *c = (struct numbers){0, ROWS};
    seen.bounds = n;
    if (n > 0)
        memcpy(seen.bound, bound, (size_t)n * sizeof *bound);
    for (int i = 0; i < n; i++) {
        if (bound[i].op != MS_BOUND_LE && bound[i].value > c->at)
            c->at = bound[i].value;
        if (bound[i].op != MS_BOUND_GE && bound[i].value < c->end - 1)
            c->end = bound[i].value + 1;
    }
    return seen.fail_start != MS_OK ? ms_fail(err, seen.fail_start, "cannot start") : MS_OK;
}

static enum ms_rc next_number(void *cursor, struct ms_err *err)
{
    struct numbers *c = cursor;
    c->at++;
    return seen.fail_next_at != 0 && c->at >= seen.fail_next_at
               ? ms_fail(err, MS_E_FORMAT, "row %d is broken", (int)c->at)
               : MS_OK;
}

static bool numbers_at_end(const void *cursor)
{
    const struct numbers *c = cursor;
    return c->at >= c->end;
}

static enum ms_rc give_number(void *cursor, int column, struct ms_value *v, struct ms_err *err)
{
    const struct numbers *c = cursor;
    if (seen.fail_column != MS_OK)
        return ms_fail(err, seen.fail_column, "cannot read column %d", column);
    seen.rows_given += column == 0;
    v->i = c->at;
    v->f = (double)c->at / 4;
    v->s = MS_STR("a\0b");
    static const int types[] = {MS_VALUE_INT, MS_VALUE_REAL, MS_VALUE_TEXT, MS_VALUE_NULL};
    v->type = types[column];
    return MS_OK;
}

static const struct ms_table numbers = {.name = "numbers",
                                        .columns = "n INTEGER, f REAL, t TEXT, z",
                                        .usable = 1,
                                        .open = open_numbers,
                                        .close = close_numbers,
                                        .start = start_numbers,
                                        .next = next_number,
                                        .at_end = numbers_at_end,
                                        .column = give_number};

static struct ms_store *store;

static void set_up(void)
{
    static char context[] = "numbers";
    char path[96];
    struct ms_err e = {0};
    memset(&seen, 0, sizeof seen);
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/x.db", dir);
    ck_ok(ms_store_create(&store, path, &e), e);
    ck_ok(ms_store_add_table(store, &numbers, context, &e), e);
}

static void tear_down(void)
{
    ms_store_close(store);
    ck_assert_int_eq(seen.opened, seen.closed);
    scratch_remove(dir);
}

/* The query fails; how is told by *e. */
static void fail_query(const char *sql, struct ms_err *e)
{
    struct ms_stmt *st;
    bool more = true;
    *e = (struct ms_err){0};
    enum ms_rc rc = ms_store_prepare(store, &st, sql, e);
    while (rc == MS_OK && more)
        rc = ms_stmt_step(st, &more, e);
    ms_stmt_free(st);
    ck_assert_int_ne(rc, MS_OK);
    ck_assert_int_eq(rc, e->rc);
}

START_TEST(values_of_every_type_come_out)
{
    set_up();
    ck_rows(store, "SELECT n, f, typeof(n), typeof(f), hex(t), z IS NULL FROM numbers WHERE n = 3",
            "3|0.75|integer|real|610062|1;");
    ck_rows(store, "SELECT count(*), sum(n), max(rowid) FROM numbers", "100|4950|99;");
    tear_down();
}
END_TEST

START_TEST(bounds_on_usable_columns_reach_the_table)
{
    static const struct {
        const char *sql, *rows;
        int bounds, given; /* rows that were looked at */
    } cases[] = {
        {"SELECT count(n) FROM numbers WHERE n BETWEEN 10 AND 19", "10;", 2, 10},
        {"SELECT count(n) FROM numbers WHERE n > 97", "2;", 1, 3},
        {"SELECT count(n) FROM numbers WHERE n < 2", "2;", 1, 3},
        {"SELECT count(n) FROM numbers WHERE n = 50", "1;", 1, 1},
        {"SELECT count(n) FROM numbers WHERE n = 500", "0;", 1, 0},
        {"SELECT count(n) FROM numbers WHERE n <> 50", "99;", 0, 100},
        {"SELECT count(n) FROM numbers WHERE +n = 50", "1;", 0, 100},
        {"SELECT count(n) FROM numbers WHERE f >= 24", "4;", 0, -1},
        {"SELECT count(n) FROM numbers WHERE n >= 97.5", "2;", 0, -1},
        {"SELECT count(n) FROM numbers WHERE n = 'x'", "0;", 0, -1},
        {"SELECT count(n) FROM numbers WHERE n > NULL", "0;", 0, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_up();
        ck_rows(store, cases[i].sql, cases[i].rows);
        ck_assert_msg(seen.bounds == cases[i].bounds, "%s: %d bounds", cases[i].sql, seen.bounds);
        /* SQLite asks for the column once to check and may ask again to count */
        if (cases[i].given >= 0)
            ck_assert_msg(seen.rows_given >= cases[i].given &&
                              seen.rows_given <= 2 * cases[i].given,
                          "%s: %d rows", cases[i].sql, seen.rows_given);
        tear_down();
    }
}
END_TEST

START_TEST(more_bounds_than_have_room_are_checked_by_sqlite)
{
    set_up();
    ck_rows(store,
            "SELECT count(*) FROM numbers WHERE n > 1 AND n > 2 AND n > 3 AND n > 4 AND n > 5 AND"
            " n > 6 AND n > 7 AND n > 8 AND n > 9 AND n > 90",
            "9;");
    ck_assert_int_le(seen.bounds, 8);
    tear_down();
}
END_TEST

START_TEST(a_join_scans_again_with_the_bound_of_each_row)
{
    set_up();
    ck_rows(store, "WITH w(v) AS (VALUES (5), (7)) SELECT n FROM w CROSS JOIN numbers WHERE n = v",
            "5;7;");
    tear_down();
}
END_TEST

START_TEST(failures_of_the_table_fail_the_query)
{
    struct ms_err e;
    static const char sql[] = "SELECT n FROM numbers";
    set_up();
    seen.fail_open = MS_E_IO;
    fail_query(sql, &e);
    ck_says(e, "cannot open numbers");
    seen.fail_open = MS_OK;
    seen.fail_start = MS_E_FORMAT;
    fail_query(sql, &e);
    ck_says(e, "cannot start");
    seen.fail_start = MS_OK;
    seen.fail_next_at = 42;
    fail_query(sql, &e);
    ck_says(e, "row 42 is broken");
    seen.fail_next_at = 0;
    seen.fail_column = MS_E_FORMAT;
    fail_query(sql, &e);
    ck_says(e, "cannot read column 0");
    seen.fail_column = MS_E_NOMEM;
    fail_query(sql, &e);
    ck_assert_int_eq(e.rc, MS_E_NOMEM);
    seen.fail_column = MS_OK;
    ck_rows(store, "SELECT count(*) FROM numbers", "100;");
    tear_down();
}
END_TEST

START_TEST(the_table_cannot_be_written)
{
    struct ms_err e;
    set_up();
    fail_query("INSERT INTO numbers VALUES(1, 2, 3, 4)", &e);
    ck_says(e, "may not be modified");
    fail_query("DELETE FROM numbers", &e);
    ck_says(e, "may not be modified");
    tear_down();
}
END_TEST

TEST_MAIN("store_vtab", values_of_every_type_come_out, bounds_on_usable_columns_reach_the_table,
          more_bounds_than_have_room_are_checked_by_sqlite,
          a_join_scans_again_with_the_bound_of_each_row, failures_of_the_table_fail_the_query,
          the_table_cannot_be_written)
