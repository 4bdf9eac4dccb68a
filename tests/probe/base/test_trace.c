/* SPDX-License-Identifier: MIT */
#include "probe/base/trace.h"

#include "probe/base/io.h"
#include "probe/base/jread.h"
#include "probe/base/mem.h"
#include "probe/base/pool.h"

#include "tests/support/check.h"

static struct ms_err err;
static char dir[64];

static void set_up(void)
{
    ms_err_clear(&err);
    ms_trace_reset();
    scratch_dir(dir);
}

static void tear_down(void)
{
    scratch_remove(dir);
}

static void span(const char *name)
{
    struct ms_span s = ms_span_begin(name);
    ms_span_end(&s);
}

/* What a reader of the trace sees. */
struct seen {
    size_t events, named; /* all, and those called `name` */
    const char *name;
    int64_t dropped;
    double least_dur;
};

static void read_member(struct ms_jread *r, struct ms_str key, enum ms_jtok tok, struct seen *seen)
{
    double v;
    if (ms_str_is(key, "name")) {
        struct ms_buf scratch = {.max = 256};
        struct ms_str text;
        ck_ok(ms_jread_text(r, &scratch, &text, &err), err);
        seen->named += ms_str_is(text, seen->name);
        ms_buf_free(&scratch);
    } else if (ms_str_is(key, "ph")) {
        ck_assert(ms_str_is(r->text, "X"));
        seen->events++;
    } else if (ms_str_is(key, "dropped")) {
        ck_assert(ms_jread_i64(r, &seen->dropped));
    } else if (ms_str_is(key, "dur")) {
        ck_assert_int_eq(tok, MS_J_NUM);
        ck_assert(ms_jread_f64(r, &v));
        if (v < seen->least_dur)
            seen->least_dur = v;
    }
}

static struct seen write_and_read(const char *name)
{
    char path[128];
    struct ms_file f;
    struct ms_jread r;
    struct seen seen = {.name = name, .dropped = -1, .least_dur = 1e300};
    snprintf(path, sizeof path, "%s/trace.json", dir);
    ck_ok(ms_trace_write(path, &err), err);
    ck_ok(ms_file_map(&f, path, SIZE_MAX, &err), err);
    ms_jread_init(&r, f.p, f.n, 0);
    enum ms_jtok tok = ms_jread_next(&r);
    for (struct ms_str key = MS_STR_NONE; tok > MS_J_END; tok = ms_jread_next(&r)) {
        if (tok == MS_J_KEY)
            key = r.text;
        else
            read_member(&r, key, tok, &seen);
    }
    ck_assert_int_eq(tok, MS_J_END);
    ms_file_unmap(&f);
    return seen;
}

START_TEST(a_trace_without_spans_is_valid)
{
    struct seen seen = write_and_read("");
    ck_assert_uint_eq(seen.events, 0);
    ck_assert_int_eq(seen.dropped, 0);
}
END_TEST

START_TEST(every_finished_span_is_an_event)
{
    struct ms_span open = ms_span_begin("never ended");
    span("read");
    span("write");
    span("read");
    struct seen seen = write_and_read("read");
    ck_assert_uint_eq(seen.events, 3);
    ck_assert_uint_eq(seen.named, 2);
    ck_assert(seen.least_dur >= 0);
    ck_assert_str_eq(open.name, "never ended");
}
END_TEST

START_TEST(a_name_with_quotes_stays_valid)
{
    span("a \"quoted\" \\ name");
    ck_assert_uint_eq(write_and_read("a \"quoted\" \\ name").named, 1);
}
END_TEST

static const char *summary(void)
{
    static char text[8192];
    memset(text, 0, sizeof text);
    FILE *f = fmemopen(text, sizeof text, "w");
    ck_assert_ptr_nonnull(f);
    ms_trace_summary(f);
    fclose(f);
    return text;
}

START_TEST(a_summary_counts_runs_by_name_and_shows_memory)
{
    unsigned long long runs = 0;
    char copy[] = "read"; /* equal text at another address is the same phase */
    span("read");
    span("write");
    span(copy);
    const char *line = strstr(summary(), "\nread ");
    ck_assert_ptr_nonnull(line);
    ck_assert_int_eq(sscanf(line, " read %llu", &runs), 1);
    ck_assert_uint_eq(runs, 2);
    ck_assert_ptr_nonnull(strstr(summary(), "KiB at the peak"));
    ck_assert_ptr_null(strstr(strstr(summary(), "read") + 1, "read"));
}
END_TEST

START_TEST(more_spans_than_are_kept_are_counted)
{
    unsigned long long runs = 0;
    for (int i = 0; i < 70000; i++)
        span("item");
    struct seen seen = write_and_read("item");
    ck_assert_uint_eq(seen.events, 65536);
    ck_assert_int_eq(seen.dropped, 70000 - 65536);
    ck_assert_int_eq(sscanf(strstr(summary(), "\nitem "), " item %llu", &runs), 1);
    ck_assert_uint_eq(runs, 70000);
}
END_TEST

START_TEST(names_without_a_place_of_their_own_are_summed)
{
    static char names[100][8];
    unsigned long long runs = 0;
    for (size_t i = 0; i < 100; i++) {
        snprintf(names[i], sizeof names[i], "n%zu", i);
        span(names[i]);
    }
    ck_assert_ptr_nonnull(strstr(summary(), "\nn62 "));
    ck_assert_int_eq(sscanf(strstr(summary(), "\n(others) "), " (others) %llu", &runs), 1);
    ck_assert_uint_eq(runs, 100 - 63);
}
END_TEST

START_TEST(without_memory_events_are_dropped_and_sums_stay)
{
    ms_mem_fail_at(1);
    span("tight");
    ms_mem_fail_at(0);
    ck_assert_ptr_nonnull(strstr(summary(), "\ntight "));
    struct seen seen = write_and_read("tight");
    ck_assert_uint_eq(seen.events, 0);
    ck_assert_int_eq(seen.dropped, 1);
}
END_TEST

static enum ms_rc traced_item(void *ctx, size_t item, unsigned worker, struct ms_err *e)
{
    (void)ctx;
    (void)worker;
    (void)e;
    span(item % 2 == 0 ? "even" : "odd");
    return MS_OK;
}

START_TEST(threads_may_trace_at_the_same_time)
{
    struct ms_pool *pool;
    ck_ok(ms_pool_new(&pool, 4, &err), err);
    ck_ok(ms_pool_run(pool, 1000, traced_item, NULL, &err), err);
    ms_pool_free(pool);
    struct seen seen = write_and_read("odd");
    ck_assert_uint_eq(seen.events, 1000);
    ck_assert_uint_eq(seen.named, 500);
}
END_TEST

START_TEST(a_trace_that_cannot_be_written_says_where)
{
    ck_assert_int_eq(ms_trace_write(dir, &err), MS_E_ARG);
    ck_says(err, dir);
}
END_TEST

TEST_MAIN_OF(set_up, tear_down, 60, "trace", a_trace_without_spans_is_valid,
             every_finished_span_is_an_event, a_name_with_quotes_stays_valid,
             a_summary_counts_runs_by_name_and_shows_memory, more_spans_than_are_kept_are_counted,
             names_without_a_place_of_their_own_are_summed,
             without_memory_events_are_dropped_and_sums_stay, threads_may_trace_at_the_same_time,
             a_trace_that_cannot_be_written_says_where)
