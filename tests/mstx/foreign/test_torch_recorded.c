/* SPDX-License-Identifier: MIT
 *
 * torch_recorded: what drawn traces of PyTorch's profiler, of one rank or of several, with usual and with odd
 * values, are in a run and in each format that we write, as it is on record.
 *
 *     build/tests/test_torch_recorded --update        records a change that is meant
 */
#include "tests/support/foreign_told.h"

enum { TRACES = 110 };
#define RECORD "tests/data/foreign/torch_recorded.txt"

static uint64_t state;

#define below(n)     recorded_below(&state, (n))
#define one_of(list) (list)[below(sizeof(list) / sizeof *(list))]

/* ---- values ------------------------------------------------------------------------------------------ */

/* A member whose value is usual most of the time. */
static void put_member(struct ms_buf *b, const char *key, const char *usual)
{
    static const char *const odd[] = {
        "-1",   "0",          "4294967295", "4294967296", "2147483648", "-9223372036854775808",
        "null", "\"text 5\"", "1.5",        "true",       "1e30",       "2147483647"};
    ms_buf_printf(b, ",\"%s\":%s", key, below(12) == 0 ? one_of(odd) : usual);
}

static void put_count(struct ms_buf *b, const char *key, uint32_t n)
{
    char text[16];
    snprintf(text, sizeof text, "%u", n);
    put_member(b, key, text);
}

static void put_time(struct ms_buf *b, const char *key, uint32_t us)
{
    static const char *const odd[] = {"1536000000000000.0",
                                      "-1536000000000000.0",
                                      "1e15",
                                      "-1e15",
                                      "1.15e15",
                                      "-1.15e15",
                                      "768614336404564",
                                      "-7.5",
                                      "1E2",
                                      "0.0001",
                                      "\"12.5\"",
                                      "1152921504606846.9",
                                      "2e15",
                                      "-2e15",
                                      "1.e2",
                                      "1152921504606845.9999999",
                                      "-1152921504606846.975",
                                      "3e-3",
                                      "12.34",
                                      "0",
                                      "2305843009213692.951",
                                      "2305843009213693.951",
                                      "1e+1"};
    if (below(25) == 0)
        ms_buf_printf(b, ",\"%s\":%s", key, one_of(odd));
    else
        ms_buf_printf(b, ",\"%s\":%u.%03u", key, us, below(1000));
}

/* ---- events ------------------------------------------------------------------------------------------ */

struct trace {
    struct ms_buf text;
    uint32_t t, rank, ranks, link, events;
};

static void begin_event(struct trace *r, const char *phase, const char *category, const char *name)
{
    ms_buf_printf(&r->text, "%s{\"ph\":\"%s\"", r->events++ != 0 ? ",\n" : "", phase);
    if (category != NULL)
        ms_buf_printf(&r->text, ",\"cat\":\"%s\"", category);
    if (below(60) != 0)
        ms_buf_printf(&r->text, ",\"name\":\"%s\"", name);
}

static void put_host(struct trace *r)
{
    static const char *const categories[] = {"cpu_op", "cpu_op", "user_annotation", "overhead",
                                             "python_function"},
                             *const names[] = {"aten::addmm",   "aten::gelu",  "my step",
                                               "ProfilerStep#", "nccl:send",   "say \\\"x\\\"",
                                               "\\u00e4\\n",    "loader#next", "autograd::engine"},
                             *const dims[] = {"[]", "[[4,8],[8]]", "[[],[[1,2],[3]]]", "7",
                                              "[[0]]"};
    struct ms_buf *b = &r->text;
    begin_event(r, "X", one_of(categories), one_of(names));
    put_count(b, "pid", 70 + r->rank);
    put_count(b, "tid", 70 + below(2));
    put_time(b, "ts", r->t);
    put_time(b, "dur", below(200));
    ms_buf_puts(b, ",\"args\":{\"x\":1");
    put_count(b, "External id", below(9));
    if (below(2) == 0)
        put_member(b, "Input Dims", one_of(dims));
    if (below(3) == 0)
        put_count(b, "Sequence number", below(5));
    ms_buf_puts(b, "}}");
}

static void put_step(struct trace *r)
{
    static const char *const ends[] = {"", "x", "5x", "4294967295", "4294967294", "99999999999"};
    char name[48];
    snprintf(name, sizeof name, "ProfilerStep#%u%s", r->t / 300,
             below(12) == 0 ? one_of(ends) : "");
    begin_event(r, "X", "user_annotation", name);
    ms_buf_printf(&r->text, ",\"pid\":%u,\"tid\":70,\"ts\":%u,\"dur\":%u,\"args\":{}}",
                  70 + r->rank, r->t, below(7) == 0 ? 900 : 280);
}

static void put_comm(struct trace *r)
{
    static const char *const ops[] = {"allreduce",     "_allgather_base",
                                      "all_to_allv",   "reduce_scatter",
                                      "send",          "recv",
                                      "broadcast",     "odd",
                                      "alltoall_base", "_reduce_scatter_base",
                                      "all_to_all",    "barrier"},
                             *const types[] = {"Float", "Half", "BFloat16", "Double",
                                               "Long",  "Int",  "Short",    "Char",
                                               "Byte",  "Bool", "Odd",      "int8"},
                             *const groups[] = {"\"0\"", "\"3\"", "\"dp\"", "\"\""},
                             *const texts[] = {"\"default_pg\"", "\"undefined\"", "\"\"", "\"tp\""},
                             *const ranks[] = {"\"[0, 1]\"", "\"[1]\"",         "\"[0, 1, 2, 3]\"",
                                               "\"[]\"",     "\"[0, 1, ...]\"", "\"[1, 7]\""};
    struct ms_buf *b = &r->text;
    char op[32], type[16];
    snprintf(op, sizeof op, "\"%s\"", one_of(ops));
    snprintf(type, sizeof type, "\"%s\"", one_of(types));
    put_member(b, "Collective name", op);
    put_count(b, "In msg nelems", below(5000));
    put_count(b, "Out msg nelems", below(5000));
    put_count(b, "Group size", 1 + below(4));
    put_member(b, "dtype", type);
    put_member(b, "Process Group Name", one_of(groups));
    put_member(b, "Process Group Ranks", one_of(ranks));
    if (below(3) != 0)
        put_member(b, "Process Group Description", one_of(texts));
    put_count(b, "Src Rank", below(2));
    put_count(b, "Dst Rank", below(2));
}

/* A launch and what it starts, on a stream that is given in one way or another. */
static void put_launch(struct trace *r)
{
    static const char
        *const categories[] = {"kernel",    "kernel", "gpu_memcpy",          "gpu_memset",
                               "cuda_sync", "hpu_op", "gpu_user_annotation", "concurrent_kernel"},
               *const names[] = {"gemm", "ncclDevKernel_AllReduce_Sum_f32", "Memcpy HtoD",
                                 "Memset (Device)", "void at::native::add<int>"},
               *const tids[] = {"7", "\"stream 9\"", "9", "\"x\"", "-2"};
    struct ms_buf *b = &r->text;
    const uint32_t link = ++r->link, length = below(90);
    if (below(8) != 0) {
        begin_event(r, "X", "cuda_runtime", below(2) == 0 ? "cudaLaunchKernel" : "cudaMemcpyAsync");
        ms_buf_printf(b, ",\"pid\":%u,\"tid\":70", 70 + r->rank);
        put_time(b, "ts", r->t);
        put_time(b, "dur", 6);
        ms_buf_puts(b, ",\"args\":{\"x\":1");
        put_count(b, "correlation", link);
        ms_buf_puts(b, "}}");
    }
    begin_event(r, "X", one_of(categories), one_of(names));
    put_member(b, "pid", "0");
    put_member(b, "tid", one_of(tids));
    put_time(b, "ts", r->t + 9);
    put_time(b, "dur", length);
    ms_buf_puts(b, ",\"args\":{\"x\":1");
    if (below(6) != 0)
        put_count(b, "device", below(2));
    if (below(6) != 0)
        put_count(b, "stream", 7 + below(2));
    put_count(b, "correlation", link);
    if (below(3) == 0)
        put_comm(r);
    ms_buf_puts(b, "}}");
}

static void put_memory(struct trace *r)
{
    struct ms_buf *b = &r->text;
    begin_event(r, "i", "cpu_instant_event", below(9) == 0 ? "[other]" : "[memory]");
    ms_buf_printf(b, ",\"s\":\"t\",\"pid\":%u,\"tid\":70", 70 + r->rank);
    put_time(b, "ts", r->t);
    ms_buf_puts(b, ",\"args\":{\"x\":1");
    put_count(b, "Total Reserved", below(9000));
    put_count(b, "Total Allocated", below(9000));
    put_member(b, "Device Id", below(3) == 0 ? "-1" : "1");
    put_count(b, "Device Type", below(2));
    ms_buf_puts(b, "}}");
}

static void put_arrow(struct trace *r)
{
    static const char *const categories[] = {"ac2g", "fwdbwd", "async_cpu_to_gpu", "async"};
    const char *category = one_of(categories);
    const uint32_t id = below(6);
    for (int i = 0; i < 2; i++) {
        if (below(8) == 0)
            continue;
        begin_event(r, i == 0 ? "s" : below(4) == 0 ? "t" : "f", category, category);
        put_count(&r->text, "id", id);
        put_member(&r->text, "pid", i == 0 || below(2) == 0 ? "70" : "0");
        put_member(&r->text, "tid", i == 0 || below(2) == 0 ? "70" : "7");
        put_time(&r->text, "ts", r->t + 5 * (uint32_t)i);
        ms_buf_puts(&r->text, below(2) == 0 ? ",\"bp\":\"e\"}" : "}");
    }
}

static void put_about(struct trace *r)
{
    static const char *const kinds[] = {"process_name", "process_labels", "thread_name",
                                        "process_sort_index"},
                             *const names[] = {"python3",          "CPU", "GPU 0", "stream 7",
                                               "thread 70 (main)", ""};
    begin_event(r, "M", NULL, one_of(kinds));
    put_member(&r->text, "pid", below(2) == 0 ? "70" : "0");
    put_member(&r->text, "tid", below(2) == 0 ? "70" : "7");
    ms_buf_printf(&r->text, ",\"args\":{\"name\":\"%s\",\"labels\":\"%s\"}}", one_of(names),
                  one_of(names));
}

static void put_event(struct trace *r)
{
    switch (below(12)) {
    case 0:
        put_about(r);
        break;
    case 1:
        put_memory(r);
        break;
    case 2:
        put_arrow(r);
        break;
    case 3:
    case 4:
    case 5:
        put_host(r);
        break;
    case 6:
        begin_event(r, "X", "Trace", "PyTorch Profiler (0)");
        ms_buf_printf(&r->text, ",\"pid\":\"Spans\",\"tid\":\"Tool\",\"ts\":%u,\"dur\":9}", r->t);
        break;
    default:
        put_launch(r);
    }
    r->t += below(4) == 0 ? 0 : below(60);
}

/* ---- files -------------------------------------------------------------------------------------------- */

static void put_head(struct trace *r)
{
    ms_buf_puts(&r->text, "{\"schemaVersion\":1");
    if (below(3) != 0) {
        ms_buf_puts(&r->text, ",\"distributedInfo\":{\"backend\":\"nccl\"");
        put_count(&r->text, "rank", r->rank);
        put_count(&r->text, "world_size", r->ranks + below(2));
        ms_buf_puts(&r->text, ",\"pg\":[{\"a\":1}]}");
    }
    if (below(2) == 0)
        put_member(&r->text, "baseTimeNanoseconds", below(2) == 0 ? "1700000000000000000" : "1000");
    ms_buf_puts(&r->text, ",\"deviceProperties\":[],\"traceEvents\":[\n");
}

static void write_trace(const char *path, uint32_t rank, uint32_t ranks)
{
    struct trace r = {.text.max = 1 << 20, .t = below(50), .rank = rank, .ranks = ranks};
    put_head(&r);
    for (unsigned n = below(60), next = 0; n > 0; n--) {
        if (r.t >= next) {
            put_step(&r);
            next = r.t + 300;
        }
        put_event(&r);
    }
    ms_buf_puts(&r.text, below(9) != 0 ? "]}" : "]");
    if (below(9) == 0)
        r.text.n -= below((uint32_t)r.text.n);
    ck_assert_int_eq(r.text.bad, MS_OK);
    write_file(path, r.text.p, r.text.n);
    ms_buf_free(&r.text);
}

/* Names give the rank or do not. */
static void write_traces(const char *to, unsigned seed)
{
    static const char *const names[][2] = {{"rank", ".json"},
                                           {"rank-", ".pt.trace.json"},
                                           {"host_rank_", ".json"},
                                           {"", ".json"},
                                           {"a", ".trace.json"}};
    const char *const *name = names[below(5)];
    char path[200];
    const uint32_t ranks = seed % 3 == 0 ? 1 : 2 + below(2);
    for (uint32_t i = 0; i < ranks; i++) {
        snprintf(path, sizeof path, "%s/%s%u%s", to, name[0], below(20) == 0 ? 0 : i, name[1]);
        write_trace(path, i, ranks);
    }
}

static void record_traces(unsigned seed, struct ms_buf *record)
{
    /* None matches in the name of the test's directory, which is another one each time. */
    static const char *const by_name[] = {
        NULL, NULL, "rank[-_]?([0-9]+)", "^.*/([0-9]+)[.]json$", "rank(x)", "s/0"};
    char traces[128], db[128];
    struct mstx_import_result result = {0};
    struct ms_err err = {0};
    struct ms_buf out = {.max = 1 << 24};
    state = seed;
    const struct mstx_import_how how = {.rank_from = one_of(by_name), .threads = below(3)};
    scratch_dir(dir);
    snprintf(traces, sizeof traces, "%s/traces", dir);
    snprintf(db, sizeof db, "%s/run.db", dir);
    ck_assert_int_eq(mkdir(traces, 0700), 0);
    write_traces(traces, seed);
    const enum ms_rc rc = mstx_import_as(traces, db, &how, &result, &err);
    ms_buf_printf(record, "traces %u %d", seed, (int)rc);
    if (rc == MS_OK) {
        ck_ok(mstx_tl_open(&tl, db, &err), err);
        tell_run(&out);
        char *rows = rows_of(mstx_tl_store(tl), "SELECT * FROM rank_steps");
        ms_buf_puts(&out, rows);
        free(rows);
    } else {
        ms_buf_puts(&out, err.msg);
    }
    leave_out_dir(&out);
    ms_buf_printf(record, " %06x", low(ms_buf_slice(&out)));
    if (getenv("FOREIGN_SHOW") != NULL && strtoul(getenv("FOREIGN_SHOW"), NULL, 10) == seed)
        printf("%s\n", ms_buf_z(&out));
    if (rc == MS_OK) {
        tell_formats(record);
        mstx_tl_close(tl);
        tl = NULL;
    }
    ms_buf_puts(record, "\n");
    ms_buf_free(&out);
    scratch_remove(dir);
}

START_TEST(traces_of_pytorch_are_read_and_written_as_on_record)
{
    struct ms_buf now = {.max = 1 << 20};
    for (unsigned seed = 1; seed <= TRACES; seed++)
        record_traces(seed, &now);
    recorded_check_file(RECORD, &now,
                        "traces, the return code, hashes of the run and of each format; "
                        "FOREIGN_SHOW=NAME or CASE shows it");
    ms_buf_free(&now);
}
END_TEST

RECORDED_MAIN("torch_recorded", traces_of_pytorch_are_read_and_written_as_on_record)
