/* SPDX-License-Identifier: MIT
 *
 * Allocations of the reading side fail: of imports, each export, a report and a query the first 300,
 * and then ever fewer.  Each either says so or gives what it gives with enough memory, and nothing
 * stays behind.
 */
#include "mstx/conclude/run_ready.h"
#include "mstx/conclude/run_report.h"
#include "mstx/rundb/events_table.h"
#include "probe/base/trace.h"
#include "tests/support/scratch_run.h"

#include <dirent.h>

/* One of each kind of thing that a capture can hold. */
static void make_capture(void)
{
    struct maker m;
    begin_run(&m, 0);
    uint32_t step = maker_text(&m, "step"), work = maker_text(&m, "work");
    uint32_t loss = maker_text(&m, "loss"), name = maker_text(&m, "queue");
    uint16_t io = maker_domain(&m, "io");
    maker_entry(&m, MSTX_CATEGORY, 0, 3, "compute", 7);
    maker_entry(&m, MSTX_THREAD, 0, 4242, "main", 4);
    maker_entry(&m, MSTX_NOTE, 0, MSTX_WHY_NO_SPACE, "disk full", 9);
    maker_ring(&m, 1, 1, 4242);
    for (uint64_t i = 0; i < 6; i++) {
        uint64_t t = 1000 * i;
        struct mstx_rec_attr attr = {
            .category = 3, .type = MSTX_REC_ATTR, .fields = MSTX_ATTR_CATEGORY};
        maker_begin_range(&m, t, i + 1, step, 0);
        maker_rec(&m, MSTX_REC_MARK, t + 10, 0, work, io, 0, MSTX_F_MORE);
        maker_raw(&m, &attr);
        maker_push(&m, t + 20, 0, work);
        maker_pop(&m, t + 30, 0, work, t + 20);
        maker_rec(&m, MSTX_REC_COUNTER, t + 40, 0, loss, 0, i, 0);
        maker_end_range(&m, t + 900, i + 1, step, 0, t, 0);
    }
    maker_begin_range(&m, 6000, 7, work, 0);
    maker_begin_range(&m, 6100, 8, step, 0);
    maker_end_range(&m, 6500, 7, work, 0, 6000, 0);
    maker_rec(&m, MSTX_REC_STREAM, 6600, 0x7000, name, 0, 2, 0);
    maker_rec(&m, MSTX_REC_MARK, 6700, 9, work, 0, 0x7000, MSTX_F_STREAM);
    maker_rec(&m, MSTX_REC_DEVICE, 6700, 9, 0, 0, 5000007000, 0);
    maker_end_ring(&m);
    maker_end(&m);
}

/* ---- the loop --------------------------------------------------------------- */

/* What a run of the thing under test made, as one text on the heap; NULL after a failure. */
typedef char *(*try_fn)(struct ms_err *err);

static bool has_failed; /* the requested allocation */

/* What follows only looks at what there is. */
static void stop_failing(void)
{
    has_failed |= ms_mem_failed();
    ms_mem_fail_at(0);
}

/* Beyond the first ones most allocations are SQLite's: the steps become larger. */
enum { DENSE = 300 };
static void fail_each_allocation(try_fn try)
{
    struct ms_err e = {0};
    char *expected = try(&e);
    ck_assert_msg(expected != NULL, "%s", e.msg);
    ms_trace_reset();
    size_t live = ms_mem_live();
    unsigned told = 0;
    has_failed = true;
    for (uint64_t n = 1; has_failed; n += 1 + n / DENSE) {
        e = (struct ms_err){0};
        has_failed = false;
        ms_mem_fail_at(n);
        char *text = try(&e);
        stop_failing();
        if (text == NULL) {
            ck_assert_msg(e.rc == MS_E_NOMEM, "allocation %d: rc %d '%s'", (int)n, e.rc, e.msg);
            ck_assert_uint_ne(strlen(e.msg), 0);
            told++;
        } else {
            ck_assert_msg(strcmp(text, expected) == 0,
                          "allocation %d: silently gives '%.500s', expected '%.500s'", (int)n, text,
                          expected);
        }
        free(text);
        ms_trace_reset(); /* spans of a run are kept for its summary */
        ck_assert_msg(ms_mem_live() == live, "allocation %d: %zd bytes leaked", (int)n,
                      (ssize_t)(ms_mem_live() - live));
    }
    ck_assert_uint_gt(told, 10);
    free(expected);
}

/* ---- things to try ---------------------------------------------------------- */

static char source[96], db[96];

/* All tables of a run.db, without what differs from run to run. */
static char *dump_db(void)
{
    static const char *const queries[] = {
        "SELECT * FROM strings",     "SELECT * FROM tracks",
        "SELECT * FROM names",       "SELECT * FROM processes",
        "SELECT * FROM steps",       "SELECT kind, text FROM findings",
        "SELECT text FROM problems", "SELECT count(*) FROM sources",
        "SELECT * FROM levels",      "SELECT hex(data) FROM blobs",
        "SELECT * FROM clock_sync",  "SELECT * FROM meta"};
    struct ms_store *s;
    struct ms_err e = {0};
    size_t n = 0;
    char *all = calloc(1, 1 << 20);
    ck_assert_ptr_nonnull(all);
    ck_ok(ms_store_open(&s, db, &e), e);
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        char *rows = rows_of(s, queries[i]);
        n += (size_t)snprintf(all + n, (1 << 20) - n, "%s\n", rows);
        free(rows);
    }
    ms_store_close(s);
    return all;
}

static char *try_import(struct ms_err *err)
{
    struct mstx_import_result r;
    unlink(db);
    enum ms_rc rc = mstx_import(source, db, &r, err);
    stop_failing();
    if (rc == MS_OK)
        return dump_db();
    /* A database without findings would be taken for a complete one. */
    ck_assert_msg(access(db, F_OK) != 0, "a failed import leaves %s: %s", db, err->msg);
    return NULL;
}

static struct mstx_tl *try_open(struct ms_err *err)
{
    struct mstx_tl *opened;
    return mstx_tl_open(&opened, db, err) == MS_OK ? opened : NULL;
}

static stream_fn format;

static char *try_stream(struct ms_err *err)
{
    char path[96];
    size_t n;
    struct ms_out *out;
    snprintf(path, sizeof path, "%s/out", dir);
    struct mstx_tl *opened = try_open(err);
    if (opened == NULL)
        return NULL;
    enum ms_rc rc = ms_out_create(&out, path, err);
    if (rc == MS_OK) {
        rc = format(opened, out, err);
        if (rc == MS_OK)
            rc = ms_out_commit(out, err);
        else
            ms_out_abort(out);
    }
    mstx_tl_close(opened);
    if (rc != MS_OK)
        return NULL;
    char *bytes = slurp(path, &n), *text = calloc(2, n + 1);
    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < n; i++)
        snprintf(text + 2 * i, 3, "%02x", (unsigned char)bytes[i]);
    free(bytes);
    return text;
}

static char *try_csv(struct ms_err *err)
{
    char path[96];
    size_t n;
    snprintf(path, sizeof path, "%s/out.csv", dir);
    struct mstx_tl *opened = try_open(err);
    enum ms_rc rc = opened != NULL ? mstx_export_csv(opened, path, err) : err->rc;
    mstx_tl_close(opened);
    return rc == MS_OK ? slurp(path, &n) : NULL;
}

static char *try_ascend(struct ms_err *err)
{
    char path[96];
    snprintf(path, sizeof path, "%s/out.db", dir);
    unlink(path);
    struct mstx_tl *opened = try_open(err);
    enum ms_rc rc = opened != NULL ? mstx_export_ascend_db(opened, path, err) : err->rc;
    mstx_tl_close(opened);
    bool left = access(path, F_OK) == 0;
    ck_assert(left == (rc == MS_OK));
    if (rc != MS_OK)
        return NULL;
    struct ms_store *s;
    struct ms_err e = {0};
    stop_failing();
    ck_ok(ms_store_open(&s, path, &e), e);
    char *text = rows_of(s, "SELECT e.*, m.value, d.value FROM MSTX_EVENTS e JOIN STRING_IDS m ON"
                            " m.id = message JOIN STRING_IDS d ON d.id = domainId");
    char *tasks = rows_of(s, "SELECT * FROM TASK, RANK_DEVICE_MAP, HOST_INFO, SESSION_TIME_INFO");
    ms_store_close(s);
    size_t n = strlen(text) + strlen(tasks) + 1;
    char *both = calloc(1, n);
    ck_assert_ptr_nonnull(both);
    snprintf(both, n, "%s%s", text, tasks);
    free(text);
    free(tasks);
    return both;
}

static bool report_as_json;

static char *try_report(struct ms_err *err)
{
    struct mstx_report r;
    char *text = NULL;
    struct mstx_tl *opened = try_open(err);
    enum ms_rc rc = opened != NULL ? mstx_report_read(opened, true, &r, err) : err->rc;
    if (rc == MS_OK && report_as_json) {
        struct ms_jwrite w;
        ms_jwrite_init(&w, 1, 1 << 20);
        mstx_report_json(opened, &r, "run", NULL, &w);
        if (ms_jwrite_finish(&w, err) == MS_OK)
            text = strndup(w.buf.p, w.buf.n);
        ms_jwrite_free(&w);
    } else if (rc == MS_OK) {
        struct ms_buf b = {.max = 1 << 20};
        mstx_report_text(opened, &r, "run", 0, &b);
        if (ms_buf_check(&b, err) == MS_OK)
            text = strndup(b.p, b.n);
        ms_buf_free(&b);
    }
    if (rc == MS_OK)
        mstx_report_free(&r);
    mstx_tl_close(opened);
    return text;
}

static char *try_sql(struct ms_err *err)
{
    struct ms_stmt *st = NULL;
    bool more = false;
    size_t n = 0;
    struct mstx_tl *opened = try_open(err);
    if (opened == NULL)
        return NULL;
    char *text = calloc(1, 1 << 16);
    ck_assert_ptr_nonnull(text);
    enum ms_rc rc = mstx_tl_add_events(opened, err);
    if (rc == MS_OK)
        rc = ms_store_prepare(mstx_tl_store(opened), &st,
                              "SELECT name, domain, args, start_ns FROM events"
                              " WHERE start_ns > 0 AND rank = 0",
                              err);
    if (rc == MS_OK)
        rc = ms_stmt_step(st, &more, err);
    while (rc == MS_OK && more) {
        for (int i = 0; i < 4; i++)
            n += (size_t)snprintf(text + n, (1 << 16) - n, "%.*s|",
                                  MS_STR_ARG(ms_stmt_get_str(st, i)));
        rc = ms_stmt_step(st, &more, err);
    }
    ms_stmt_free(st);
    mstx_tl_close(opened);
    if (rc != MS_OK)
        free(text);
    return rc == MS_OK ? text : NULL;
}

/* ---- tests ------------------------------------------------------------------ */

static void begin_import(void)
{
    make_capture();
    snprintf(source, sizeof source, "%s", run);
    snprintf(db, sizeof db, "%s/run.db", dir);
}

/* With the database that the others read. */
static void begin_with_db(void)
{
    struct ms_err e = {0};
    struct mstx_import_result r;
    begin_import();
    ck_ok(mstx_import(source, db, &r, &e), e);
}

START_TEST(an_import_of_a_capture_fails_cleanly)
{
    begin_import();
    fail_each_allocation(try_import);
    scratch_remove(dir);
}
END_TEST

START_TEST(an_import_of_a_chrome_trace_fails_cleanly)
{
    static const char trace[] =
        "[{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{\"name\":\"rank 1 x\"}},"
        "{\"name\":\"a\\u00e4\",\"ph\":\"B\",\"pid\":1,\"tid\":1,\"ts\":1,\"args\":{\"k\":1}},"
        "{\"name\":\"b\",\"ph\":\"b\",\"cat\":\"c\",\"id\":1,\"pid\":1,\"tid\":1,\"ts\":1},"
        "{\"name\":\"b\",\"ph\":\"e\",\"cat\":\"c\",\"id\":1,\"pid\":1,\"tid\":1,\"ts\":2},"
        "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":3},"
        "{\"name\":\"v\",\"ph\":\"C\",\"pid\":1,\"ts\":3,\"args\":{\"value\":2.5}},"
        "{\"name\":\"m\",\"ph\":\"i\",\"pid\":1,\"tid\":2,\"ts\":4,"
        "\"args\":{\"domain\":\"d\",\"event_type\":\"marker\"}}]";
    scratch_dir(dir);
    snprintf(source, sizeof source, "%s/t.json", dir);
    snprintf(db, sizeof db, "%s/run.db", dir);
    write_file(source, trace, sizeof trace - 1);
    fail_each_allocation(try_import);
    scratch_remove(dir);
}
END_TEST

START_TEST(an_import_of_an_ascend_database_fails_cleanly)
{
    struct ms_err e = {0};
    begin_with_db();
    tl = try_open(&e);
    ck_assert_ptr_nonnull(tl);
    snprintf(source, sizeof source, "%s/ascend.db", dir);
    ck_ok(mstx_export_ascend_db(tl, source, &e), e);
    mstx_tl_close(tl);
    fail_each_allocation(try_import);
    scratch_remove(dir);
}
END_TEST

START_TEST(every_export_fails_cleanly)
{
    static const stream_fn streams[] = {mstx_export_chrome, mstx_export_trace_view,
                                        mstx_export_perfetto};
    begin_with_db();
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        format = streams[i];
        fail_each_allocation(try_stream);
    }
    fail_each_allocation(try_csv);
    fail_each_allocation(try_ascend);
    scratch_remove(dir);
}
END_TEST

START_TEST(a_report_fails_cleanly)
{
    begin_with_db();
    for (int json = 0; json < 2; json++) {
        report_as_json = json != 0;
        fail_each_allocation(try_report);
    }
    scratch_remove(dir);
}
END_TEST

START_TEST(a_query_fails_cleanly)
{
    begin_with_db();
    fail_each_allocation(try_sql);
    scratch_remove(dir);
}
END_TEST

/* The longest fails some hundred times at every allocation of an import. */
TEST_MAIN_WITHIN(240, "import_alloc", an_import_of_a_capture_fails_cleanly,
                 an_import_of_a_chrome_trace_fails_cleanly,
                 an_import_of_an_ascend_database_fails_cleanly, every_export_fails_cleanly,
                 a_report_fails_cleanly, a_query_fails_cleanly)
