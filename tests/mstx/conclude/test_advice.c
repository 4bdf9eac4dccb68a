/* SPDX-License-Identifier: MIT
 *
 * Advice: each cause is told from a tenth of the steps on, not below; a cause of the host saves what its
 * devices idle; nothing is said of a trace without steps and devices.
 */
#include "tests/support/scratch_run.h"

#include "mstx/conclude/advice.h"
#include "mstx/rundb/events_table.h"

static char text[1 << 16];
static int used;
static mstx_findings advice;

static void begin(void)
{
    used = snprintf(text, sizeof text, "{\"schemaVersion\":1,\"traceEvents\":[");
}

/* Adds a slice; times in microseconds. */
static void slice(const char *cat, const char *name, int tid, int ts, int dur, const char *args)
{
    used +=
        snprintf(text + used, sizeof text - (size_t)used,
                 "%s{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%d,"
                 "\"dur\":%d,\"args\":{%s}}",
                 text[used - 1] == '[' ? "" : ",", cat, name, strcmp(cat, "kernel") == 0 ? 0 : 77,
                 tid, ts, dur, args);
    ck_assert_int_lt(used, (int)sizeof text - 8);
}

/* Two steps of 1,000 us. */
static void steps(void)
{
    slice("user_annotation", "ProfilerStep#1", 1, 1000, 1000, "");
    slice("user_annotation", "ProfilerStep#2", 1, 2000, 1000, "");
}

static void launch(int at, int call_us, int start, int dur, const char *name, const char *more)
{
    static int correlation;
    char args[400];
    snprintf(args, sizeof args, "\"correlation\": %d", ++correlation);
    slice("cuda_runtime", "cudaLaunchKernel", 1, at, call_us, args);
    snprintf(args, sizeof args, "\"device\": 0, \"stream\": 7, \"correlation\": %d%s", correlation,
             more);
    slice("kernel", name, 7, start, dur, args);
}

static void measure(void)
{
    char path[96];
    struct mstx_steps found;
    struct ms_err e = {0};
    used += snprintf(text + used, sizeof text - (size_t)used, "]}");
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/t.json", dir);
    write_file(path, text, (size_t)used);
    open_path(path);
    ck_ok(mstx_steps_find(tl, &found, &e), e);
    ck_ok(mstx_advice_measure(tl, &found, &advice, &e), e);
    mstx_steps_free(&found);
}

static void end(void)
{
    ms_vec_free(&advice);
    end_run();
}

/* Checks the only piece of advice, and that its query shows so many events. */
static void check_one(const char *kind, double share, int rows)
{
    struct ms_stmt *st;
    struct ms_err e = {0};
    enum ms_rc rc = MS_OK;
    int n = 0;
    ck_assert_uint_eq(advice.n, 1);
    ck_assert_str_eq(advice.p[0].kind, kind);
    ck_assert_double_eq_tol(advice.p[0].value, share, 1e-9);
    ck_ok(mstx_tl_add_events(tl, &e), e);
    ck_ok(ms_store_prepare(mstx_tl_store(tl), &st, advice.p[0].evidence, &e), e);
    while (ms_stmt_next(st, &rc, &e))
        n++;
    ck_ok(rc, e);
    ms_stmt_free(st);
    ck_assert_int_eq(n, rows);
}

static const char loader[] = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";

START_TEST(a_tenth_of_the_steps_is_told)
{
    for (int us = 99; us <= 101; us++) {
        begin();
        steps();
        slice("user_annotation", loader, 1, 1000, us, "");
        slice("user_annotation", loader, 1, 2000, us, "");
        measure();
        if (us < 100)
            ck_assert_uint_eq(advice.n, 0);
        else
            check_one("data_loading", us / 1000.0, 2);
        end();
    }
}
END_TEST

/* A call of the collector holds the collection, which counts once. */
START_TEST(a_collection_counts_once)
{
    begin();
    steps();
    slice("python_function", "<built-in function collect>", 1, 1100, 400, "");
    slice("python_function", "Python GC", 1, 1110, 380, "");
    measure();
    check_one("garbage_collection", 0.2, 1);
    end();
}
END_TEST

/* The device works while the host loads data, so that the loader costs nothing. */
START_TEST(a_busy_device_waits_for_nobody)
{
    begin();
    steps();
    slice("user_annotation", loader, 1, 1000, 900, "");
    launch(1000, 5, 1010, 1980, "gemm", "");
    measure();
    ck_assert_uint_eq(advice.n, 0);
    end();
}
END_TEST

START_TEST(a_device_that_waits_is_told)
{
    begin();
    steps();
    launch(1000, 5, 1010, 990, "gemm", "");
    launch(2500, 5, 2510, 490, "gemm", "");
    measure();
    check_one("host_bound", 0.255, 2);
    end();
}
END_TEST

/* The window of the device is 1,990 us, in which it works 200 times for 1 us. */
START_TEST(kernels_shorter_than_their_launch_are_told)
{
    begin();
    steps();
    for (int i = 0; i < 200; i++)
        launch(1000 + 10 * i, 6, 1008 + 10 * i, 1, "small", "");
    measure();
    ck_assert_uint_eq(advice.n, 1);
    ck_assert_str_eq(advice.p[0].kind, "brief_kernels");
    ck_assert_double_gt(advice.p[0].value, 0.1);
    end();
}
END_TEST

START_TEST(waiting_for_the_device_twice_a_step_is_told)
{
    for (int waits = 3; waits <= 4; waits++) {
        begin();
        steps();
        launch(1000, 5, 1010, 490, "gemm", "");
        launch(2500, 5, 2510, 490, "gemm", "");
        for (int i = 0; i < waits; i++)
            slice("cuda_runtime", "cudaStreamSynchronize", 1, 1100 + 400 * i, 300, "");
        measure();
        ck_assert_uint_eq(advice.n, waits == 4 ? 2 : 1);
        end();
    }
}
END_TEST

#define REDUCE(elements)                                                                           \
    ", \"Collective name\": \"allreduce\", \"In msg nelems\": " elements                           \
    ", \"Out msg nelems\": " elements ", \"Group size\": 2, \"dtype\": \"Float\", "                \
    "\"Process Group Name\": \"3\", \"Process Group Ranks\": \"[0, 1]\""

/* Computing 800 us, then communicating 1,190 us: computing could hide 800 us of it. */
START_TEST(communication_that_computing_could_hide_is_told)
{
    begin();
    steps();
    launch(1000, 5, 1010, 800, "gemm", "");
    launch(1020, 5, 1810, 1190, "ncclDevKernel_AllReduce", REDUCE("1000000"));
    measure();
    check_one("exposed_communication", 0.4, 1);
    end();
}
END_TEST

/* Sixteen calls in two steps, each of 4,000 bytes for 20 us; with one less nothing is said. */
START_TEST(many_small_calls_are_told)
{
    for (int calls = 15; calls <= 16; calls++) {
        begin();
        steps();
        for (int i = 0; i < calls; i++)
            launch(1000 + i, 1, 1100 + 20 * i, 20, "ncclDevKernel_AllReduce", REDUCE("1000"));
        measure();
        if (calls == 15)
            ck_assert_uint_eq(advice.n, 0);
        else
            check_one("small_packets", 0.16, 16);
        end();
    }
}
END_TEST

START_TEST(a_trace_without_steps_and_devices_has_no_advice)
{
    begin();
    slice("user_annotation", loader, 1, 1000, 900, "");
    measure();
    ck_assert_uint_eq(advice.n, 0);
    end();
}
END_TEST

TEST_MAIN("advice", a_tenth_of_the_steps_is_told, a_collection_counts_once,
          a_busy_device_waits_for_nobody, a_device_that_waits_is_told,
          kernels_shorter_than_their_launch_are_told, waiting_for_the_device_twice_a_step_is_told,
          communication_that_computing_could_hide_is_told, many_small_calls_are_told,
          a_trace_without_steps_and_devices_has_no_advice)
