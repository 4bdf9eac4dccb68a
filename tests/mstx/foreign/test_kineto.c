/* SPDX-License-Identifier: MIT
 *
 * Traces of PyTorch's profiler: one process, streams, steps, flows, collectives, and what the devices did.
 */
#include "tests/support/scratch_run.h"

#include "mstx/conclude/breakdown.h"
#include "mstx/conclude/steps.h"
#include "mstx/foreign/kineto.h"
#include "mstx/foreign/trace_text.h"
#include "mstx/format/device_work.h"
#include "mstx/rundb/events_table.h"

#define HOST(name, cat, ts, dur, args)                                                             \
    "{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":77,\"tid\":78,\"ts\":" ts     \
    ",\"dur\":" dur ",\"args\":{" args "}},"
#define DEVICE(name, cat, stream, ts, dur, args)                                                   \
    "{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":0,\"tid\":" stream            \
    ",\"ts\":" ts ",\"dur\":" dur ",\"args\":{\"device\": 0, \"stream\": " stream ", " args "}},"
#define REDUCE                                                                                     \
    "\"correlation\": 12, \"Collective name\": \"allreduce\", \"In msg nelems\": 100, "            \
    "\"Out msg nelems\": 100, \"Group size\": 2, \"dtype\": \"Float\", "                           \
    "\"Process Group Name\": \"3\", \"Process Group Description\": \"dp\", "                       \
    "\"Process Group Ranks\": \"[4, 6]\""

/* Computing 100 to 200 and 260 to 300, a copy 210 to 220, communication 150 to 280. */
static const char events[] =
    "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"args\":{\"name\":\"python\"}},"
    "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":77,\"args\":{\"name\":\"python3\"}}," HOST(
        "ProfilerStep#5", "user_annotation", "10", "500",
        "\"x\": 1") HOST("my step 9", "user_annotation", "20", "5",
                         "\"x\": 1") HOST("cudaLaunchKernel", "cuda_runtime", "30", "90.5",
                                          "\"correlation\": 10")
        HOST("cudaMemcpyAsync", "cuda_runtime", "130", "5", "\"correlation\": 11") HOST(
            "cudaLaunchKernelExC", "cuda_runtime", "140", "5",
            "\"correlation\": 12") HOST("cudaLaunchKernel", "cuda_runtime", "230", "10",
                                        "\"correlation\": 13") DEVICE("gemm", "kernel", "7", "100",
                                                                      "100", "\"correlation\": 10")
            DEVICE("Memcpy HtoD", "gpu_memcpy", "7", "210", "10", "\"correlation\": 11") DEVICE(
                "gemm", "kernel", "7", "260", "40", "\"correlation\": 13")
                DEVICE("ncclDevKernel_AllReduce", "kernel", "9", "150", "130", REDUCE) DEVICE(
                    "Stream Sync", "cuda_sync", "7", "0", "900", "\"correlation\": 14")
                    DEVICE(
                        "## forward ##", "gpu_user_annotation", "7", "0", "900",
                        "\"External id\": 1") "{\"ph\":\"s\",\"cat\":\"fwdbwd\",\"id\":1,\"pid\":"
                                              "77,\"tid\":78,\"ts\":20},"
                                              "{\"ph\":\"f\",\"cat\":\"fwdbwd\",\"id\":1,\"pid\":"
                                              "77,\"tid\":78,\"ts\":140,\"bp\":\"e\"},"
                                              "{\"ph\":\"s\",\"cat\":\"ac2g\",\"id\":10,\"pid\":77,"
                                              "\"tid\":78,\"ts\":30},"
                                              "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"watch\","
                                              "\"pid\":77,\"tid\":-2,\"ts\":5,\"dur\":1},"
                                              "{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"PyTorch "
                                              "Profiler (0)\",\"pid\":\"Spans\",\"tid\":\"PyTorch "
                                              "Profiler\",\"ts\":0,\"dur\":900,\"args\":{}}";

static void open_trace(const char *name, const char *before, const char *after)
{
    char path[96], text[8192];
    const int n = snprintf(text, sizeof text, "{%s\"traceEvents\":[%s]%s}", before, events, after);
    ck_assert(n > 0 && n < (int)sizeof text);
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    write_file(path, text, (size_t)n);
    open_path(path);
}

static int64_t number(const char *sql)
{
    struct ms_stmt *st;
    struct ms_err e = {0};
    bool more;
    ck_ok(ms_store_prepare(mstx_tl_store(tl), &st, sql, &e), e);
    ck_ok(ms_stmt_step(st, &more, &e), e);
    ck_assert_msg(more, "%s", sql);
    const int64_t v = ms_stmt_get_i64(st, 0);
    ms_stmt_free(st);
    return v;
}

START_TEST(a_trace_is_one_process_with_streams)
{
    open_trace("t.json", "\"schemaVersion\": 1, \"distributedInfo\": {\"rank\": 4},",
               ", \"baseTimeNanoseconds\": 1000000000");
    ck_assert_uint_eq(mstx_tl_process_count(tl), 1);
    ck_assert_int_eq(mstx_tl_process(tl, 0)->rank, 4);
    ck_assert_uint_eq(mstx_tl_process(tl, 0)->pid, 77);
    ck_assert(ms_str_is(mstx_tl_process(tl, 0)->name, "python3"));
    ck_assert_int_eq(number("SELECT count(*) FROM tracks WHERE kind = 3 AND domain = 'kernels'"),
                     2);
    ck_assert_int_eq(number("SELECT events FROM tracks WHERE kind = 3 AND domain = 'annotations'"),
                     2);
    ck_assert_int_eq(number("SELECT count(*) FROM problems"), 0);
    ck_assert_int_eq(number("SELECT start_ns FROM tracks WHERE tid = 9"), 1000150000);
    ck_assert_int_eq(number("SELECT to_ns - from_ns FROM flows"), 120000);
    ck_assert_int_eq(number("SELECT count(*) FROM flows"), 1);
    ck_assert_int_eq(number("SELECT count(*) FROM tracks WHERE tid = 4294967294"), 1);
    end_run();
}
END_TEST

START_TEST(only_its_own_steps_are_steps)
{
    struct mstx_steps steps;
    struct ms_err e = {0};
    open_trace("t.json", "", "");
    ck_ok(mstx_steps_find(tl, &steps, &e), e);
    ck_assert_uint_eq(steps.list.n, 1);
    ck_assert_uint_eq(steps.list.p[0].number, 5);
    ck_assert_int_eq(steps.list.p[0].end_ns - steps.list.p[0].start_ns, 500000);
    mstx_steps_free(&steps);
    end_run();
}
END_TEST

START_TEST(a_described_kernel_is_a_call)
{
    open_trace("t.json", "\"distributedInfo\": {\"rank\": 4},", "");
    ck_assert_int_eq(number("SELECT count(*) FROM comm_ops"), 1);
    ck_assert_int_eq(number("SELECT bytes FROM comm_ops"), 400);
    ck_assert_int_eq(number("SELECT count(*) FROM comm_groups WHERE name = 'dp 3' AND size = 2"
                            " AND ranks = '4,6'"),
                     1);
    ck_assert_int_eq(number("SELECT communication_ns FROM rank_steps"), 130000);
    ck_assert_int_eq(number("SELECT computing_ns FROM rank_steps"), 140000);
    ck_assert_int_eq(number("SELECT count(*) FROM findings WHERE kind = 'absent'"), 0);
    end_run();
}
END_TEST

START_TEST(what_the_device_did)
{
    mstx_breakdown b;
    struct ms_err e = {0};
    open_trace("t.json", "", "");
    ck_ok(mstx_breakdown_measure(tl, &b, &e), e);
    ck_assert_uint_eq(b.n, 1);
    const struct mstx_rank_breakdown *r = &b.p[0];
    ck_assert_int_eq(r->rank, 0);
    ck_assert_int_eq(r->window_ns, 200000);
    ck_assert_int_eq(r->busy_ns, 200000);
    ck_assert_int_eq(r->work_ns[MSTX_WORK_COMPUTE], 140000);
    ck_assert_int_eq(r->work_ns[MSTX_WORK_COMM], 130000);
    ck_assert_int_eq(r->work_ns[MSTX_WORK_MEMORY], 10000);
    ck_assert_int_eq(r->overlap_ns, 70000);
    ck_assert_uint_eq(r->idle.n, 2);
    /* The copy was launched before the kernel ended and began 10 us after; the second kernel was launched
     * after the copy had ended. */
    ck_assert_int_eq(r->idle.p[0].ns[MSTX_IDLE_KERNEL], 10000);
    ck_assert_int_eq(r->idle.p[0].ns[MSTX_IDLE_HOST], 40000);
    ck_assert_int_eq(r->idle.p[0].ns[MSTX_IDLE_OTHER], 0);
    ck_assert_uint_eq(r->launches.pairs, 4);
    ck_assert_uint_eq(r->launches.brief, 0);
    ck_assert_uint_eq(r->launches.slow, 1);
    ck_assert_uint_eq(r->launches.late, 0);
    ck_assert_uint_eq(r->launches.at_once, 1);
    ck_assert_int_eq(r->launches.most_delay_ns, 75000);
    ck_assert_int_eq(r->launches.median_delay_ns, 20000);
    ck_assert_uint_eq(r->kernel.n, 3);
    ck_assert_uint_eq(r->kernel.p[0].count, 2);
    ck_assert_int_eq(r->kernel.p[0].most_ns, 100000);
    ck_assert_int_eq(r->kernel.p[0].least_ns, 40000);
    mstx_breakdown_free(&b);
    end_run();
}
END_TEST

START_TEST(the_name_of_a_file_gives_the_rank_in_a_folder)
{
    char path[96], other[96];
    open_trace("job_rank-12.pt.trace.json", "", "");
    mstx_tl_close(tl);
    snprintf(path, sizeof path, "%s/job_rank-12.pt.trace.json", dir);
    snprintf(other, sizeof other, "%s/job_rank3.json", dir);
    size_t n;
    char *text = slurp(path, &n);
    write_file(other, text, n);
    free(text);
    open_path(dir);
    ck_assert_uint_eq(mstx_tl_process_count(tl), 2);
    ck_assert_int_eq(number("SELECT min(rank) FROM ranks"), 3);
    ck_assert_int_eq(number("SELECT max(rank) FROM ranks"), 12);
    end_run();
}
END_TEST

START_TEST(a_list_without_a_trace_says_why)
{
    struct mstx_import_result result;
    struct ms_err e = {0};
    char first[96], second[96], db[96];
    scratch_dir(dir);
    snprintf(first, sizeof first, "%s/a.json", dir);
    snprintf(second, sizeof second, "%s/b.json", dir);
    snprintf(db, sizeof db, "%s/db", dir);
    write_file(first, "{\"traceEvents\": 7}", 18);
    write_file(second, "[[1, 2]]", 8);
    const char *const more[] = {second};
    const struct mstx_import_how how = {.more = more, .more_n = 1};
    ck_assert_int_eq(mstx_import_as(first, db, &how, &result, &e), MS_E_FORMAT);
    ck_assert_msg(strstr(e.msg, "a.json: line 1") != NULL, "%s", e.msg);
    ck_assert_int_eq(ms_path_kind(db), MS_KIND_NONE);
}
END_TEST

START_TEST(rows_of_a_memory_timeline_are_refused)
{
    static const char rows[] = "[[1689180447559362, 1, 512, 3], [1689180447559363, 2, -512, 3]]";
    struct mstx_import_result result;
    struct ms_err e = {0};
    char path[96], db[96];
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/t.json", dir);
    snprintf(db, sizeof db, "%s/db", dir);
    write_file(path, rows, sizeof rows - 1);
    ck_assert_int_eq(mstx_import(path, db, &result, &e), MS_E_FORMAT);
    ck_assert_msg(strstr(e.msg, "memory timeline") != NULL, "%s", e.msg);
    ck_assert_int_eq(ms_path_kind(db), MS_KIND_NONE);
}
END_TEST

/* The host's allocator holds what it uses and no more. */
START_TEST(memory_is_a_counter_of_each_device)
{
    static const char text[] =
        "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":7,\"tid\":7,"
        "\"ts\":1,\"dur\":9},"
        "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":7,"
        "\"tid\":7,\"ts\":2,\"args\":{\"Total Reserved\":0,\"Total Allocated\":4096,\"Bytes\":4096,"
        "\"Device Id\":-1,\"Device Type\":0,\"Addr\":1}},"
        "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":7,"
        "\"tid\":7,\"ts\":3,\"args\":{\"Total Reserved\":2097152,\"Total "
        "Allocated\":512,\"Bytes\":512,"
        "\"Device Id\":1,\"Device Type\":1,\"Addr\":2}},"
        "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":7,"
        "\"tid\":7,\"ts\":4,\"args\":{\"Bytes\":-512,\"Addr\":2}}]}";
    char path[96];
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/t.json", dir);
    write_file(path, text, sizeof text - 1);
    open_path(path);
    ck_assert_int_eq(mstx_tl_add_events(tl, NULL), MS_OK);
    ck_assert_int_eq(number("SELECT count(*) FROM tracks WHERE kind = 1"), 3);
    ck_assert_int_eq(number("SELECT count(*) FROM tracks WHERE kind = 1 AND unit = 'B'"), 3);
    ck_assert_int_eq(number("SELECT value FROM events WHERE name = 'allocated memory, host'"),
                     4096);
    ck_assert_int_eq(number("SELECT value FROM events WHERE name = 'allocated memory, device 1'"),
                     512);
    ck_assert_int_eq(number("SELECT value FROM events WHERE name = 'reserved memory, device 1'"),
                     2097152);
    ck_assert_int_eq(number("SELECT count(*) FROM events WHERE name = '[memory]'"), 3);
    end_run();
}
END_TEST

START_TEST(kinds_of_work_and_sides)
{
    static const struct {
        const char *name;
        enum mstx_work work;
    } works[] = {{"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", MSTX_WORK_COMM},
                 {"void sglang::cross_device_reduce_1stage<half, 8>()", MSTX_WORK_COMM},
                 {"hcom_allReduce__233_0_1", MSTX_WORK_COMM},
                 {"Memcpy HtoD (Pageable -> Device)", MSTX_WORK_MEMORY},
                 {"Memset (Device)", MSTX_WORK_MEMORY},
                 {"CopyHostToDevice", MSTX_WORK_MEMORY},
                 {"volta_sgemm_64x64_tn", MSTX_WORK_COMPUTE},
                 {"void copy_kernel<Memcpy>()", MSTX_WORK_COMPUTE},
                 {"", MSTX_WORK_COMPUTE}};
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        ck_assert_msg(mstx__work_of(ms_str_of(works[i].name)) == works[i].work, "%s",
                      works[i].name);
    ck_assert_str_eq(mstx__work_text(MSTX_WORK_MEMORY), "memory");
    ck_assert_int_eq(mstx__kineto_side(MS_STR("kernel")), MSTX_SIDE_DEVICE);
    ck_assert_int_eq(mstx__kineto_side(MS_STR("cuda_sync")), MSTX_SIDE_BESIDE);
    ck_assert_int_eq(mstx__kineto_side(MS_STR("Trace")), MSTX_SIDE_TOOL);
    ck_assert_int_eq(mstx__kineto_side(MS_STR("cpu_op")), MSTX_SIDE_HOST);
}
END_TEST

TEST_MAIN("kineto", a_trace_is_one_process_with_streams, only_its_own_steps_are_steps,
          a_described_kernel_is_a_call, what_the_device_did,
          the_name_of_a_file_gives_the_rank_in_a_folder, a_list_without_a_trace_says_why,
          rows_of_a_memory_timeline_are_refused, memory_is_a_counter_of_each_device,
          kinds_of_work_and_sides)
