/* SPDX-License-Identifier: MIT
 *
 * What a trace of PyTorch's profiler becomes in other formats: categories, arrows, and operators of both
 * passes; and what its reader does at limits.
 */
#include "tests/support/scratch_run.h"

#include "mstx/foreign/export_run.h"
#include "mstx/foreign/trace_files.h"
#include "mstx/foreign/trace_text.h"

#include <zlib.h>

#define HOST(name, cat, ts, dur)                                                                   \
    "{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":77,\"tid\":78,\"ts\":" ts     \
    ",\"dur\":" dur ",\"args\":{\"External id\":1}},"
#define ARROW(ph, cat, id, ts, more)                                                               \
    "{\"ph\":\"" ph "\",\"cat\":\"" cat "\",\"name\":\"" cat "\",\"id\":" id                       \
    ",\"pid\":77,\"tid\":78,\"ts\":" ts more "}"

/* Operators at 10, 40 and 90; the last is the backward pass of the first. */
static const char events[] = HOST("aten::mul", "cpu_op", "10", "20") HOST("aten::add", "cpu_op",
                                                                          "40", "20")
    HOST("MulBackward0", "cpu_op", "90", "30") HOST("my part", "user_annotation", "5", "120")
        ARROW("s", "fwdbwd", "7", "10", "") "," ARROW("f", "fwdbwd", "7", "90", ",\"bp\":\"e\"");

static void open_text(const char *text, size_t n)
{
    char path[96];
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/t.json", dir);
    write_file(path, text, n);
    open_path(path);
}

static void open_events(const char *list)
{
    char text[8192];
    const int n = snprintf(text, sizeof text,
                           "{\"schemaVersion\": 1, \"distributedInfo\": {\"rank\": 4}, "
                           "\"traceEvents\":[%s], \"baseTimeNanoseconds\": 0}",
                           list);
    ck_assert(n > 0 && n < (int)sizeof text);
    open_text(text, (size_t)n);
}

static unsigned count(const char *text, const char *word)
{
    unsigned n = 0;
    for (; (text = strstr(text, word)) != NULL; text++)
        n++;
    return n;
}

static void export_to(enum mstx_export_format format, const char *name, char path[96])
{
    struct ms_err e = {0};
    snprintf(path, 96, "%s/%s", dir, name);
    ck_ok(mstx_export_run(tl, format, path, &e), e);
}

START_TEST(chrome_keeps_categories_and_arrows)
{
    char path[96];
    size_t n;
    open_events(events);
    export_to(MSTX_EXPORT_CHROME, "out.json", path);
    char *text = slurp(path, &n);
    ck_assert_uint_eq(count(text, "\"cat\":\"cpu_op\""), 3);
    ck_assert_uint_eq(count(text, "\"cat\":\"user_annotation\""), 1);
    ck_assert_uint_eq(count(text, "\"cat\":\"fwdbwd\""), 2);
    ck_assert_uint_eq(count(text, "\"ph\":\"s\""), 1);
    ck_assert_uint_eq(count(text, "\"ph\":\"f\""), 1);
    free(text);
    mstx_tl_close(tl);
    open_path(path); /* and reads what it has written */
    ck_rows(mstx_tl_store(tl), "SELECT name, from_ns, to_ns FROM flows", "fwdbwd|10000|90000;");
    end_run();
}
END_TEST

#define OF_PASS                                                                                    \
    "SELECT s.value, p.startNs FROM PYTORCH_API p JOIN STRING_IDS s ON s.id = p.name JOIN "        \
    "CONNECTION_IDS c ON c.id = p.connectionId JOIN CONNECTION_IDS o ON o.connectionId = "         \
    "c.connectionId AND o.id <> c.id ORDER BY p.startNs"

START_TEST(an_operator_leads_to_its_backward_pass)
{
    char path[96];
    struct ms_err e = {0};
    struct ms_store *s;
    open_events(events);
    export_to(MSTX_EXPORT_ASCEND_DB, "out.db", path);
    ck_ok(ms_store_open(&s, path, &e), e);
    ck_rows(s, OF_PASS, "aten::mul|10000;MulBackward0|90000;");
    ms_store_close(s);
    end_run();
}
END_TEST

/* No operator begins at either end: next to one, on another thread, and behind the last. */
static const char *const nowhere[] = {
    ARROW("s", "fwdbwd", "7", "10", "") "," ARROW("f", "fwdbwd", "7", "91", ""),
    ARROW("s", "fwdbwd", "7", "11", "") "," ARROW("f", "fwdbwd", "7", "90", ""),
    ARROW("s", "fwdbwd", "7", "10", "") "," ARROW("f", "fwdbwd", "7", "500", ""),
};

START_TEST(an_arrow_from_nowhere_connects_nothing)
{
    char path[96], text[2048];
    struct ms_err e = {0};
    struct ms_store *s;
    snprintf(text, sizeof text, "%.*s,%s", (int)(strstr(events, "{\"ph\":\"s\"") - events - 1),
             events, nowhere[_i]);
    open_events(text);
    export_to(MSTX_EXPORT_ASCEND_DB, "out.db", path);
    ck_ok(ms_store_open(&s, path, &e), e);
    ck_rows(s, "SELECT count(*) FROM PYTORCH_API", "3;");
    ck_rows(s, OF_PASS, "");
    ms_store_close(s);
    end_run();
}
END_TEST

/* ---- limits of the reader ------------------------------------------------------------------------- */

START_TEST(times_end_at_a_limit_on_both_sides)
{
    static const char *const at[] = {"2305843009213692", "-2305843009213692", "2305843009213693",
                                     "-2305843009213693"};
    char text[512];
    snprintf(text, sizeof text,
             "[{\"ph\":\"i\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":0},"
             "{\"ph\":\"i\",\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":%s}]",
             at[_i]);
    open_text(text, strlen(text));
    ck_rows(mstx_tl_store(tl), "SELECT sum(events) FROM tracks", _i < 2 ? "2;" : "1;");
    end_run();
}
END_TEST

/* As long as three blocks into which it is unpacked, and a little more; each number stands once. */
START_TEST(a_large_compressed_trace_is_unpacked_block_by_block)
{
    enum { EVENTS = 60000, MOST = 4 << 20 };
    char path[96], *text = malloc(MOST), *packed = malloc(MOST);
    struct mstx_trace_text t = {0};
    struct ms_err e = {0};
    size_t n = 0;
    for (int i = 0; i < EVENTS; i++)
        n += (size_t)snprintf(text + n, MOST - n, "{\"ph\":\"i\",\"name\":\"%d\",\"ts\":%d}\n", i,
                              i);
    ck_assert_uint_gt(n, 2 << 20);
    z_stream z = {.next_in = (unsigned char *)text,
                  .avail_in = (unsigned)n,
                  .next_out = (unsigned char *)packed,
                  .avail_out = MOST};
    ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/t.json.gz", dir);
    write_file(path, packed, z.total_out);
    deflateEnd(&z);
    ck_ok(mstx__trace_text_open(&t, path, &e), e);
    ck_assert_uint_eq(t.n, n);
    ck_assert(memcmp(t.p, text, n) == 0);
    mstx__trace_text_close(&t);
    scratch_remove(dir);
    free(text);
    free(packed);
}
END_TEST

static int32_t rank_of(const char *name, const char *rank_from)
{
    static const char text[] = "[{\"ph\":\"i\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":0}]";
    const struct mstx_import_how how = {.rank_from = rank_from};
    struct mstx_import_result result;
    struct ms_err e = {0};
    char path[96], db[96], *rank;
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    snprintf(db, sizeof db, "%s/run.db", dir);
    write_file(path, text, sizeof text - 1);
    ck_ok(mstx_import_as(path, db, &how, &result, &e), e);
    ck_ok(mstx_tl_open(&tl, db, &e), e);
    rank = rows_of(mstx_tl_store(tl), "SELECT rank FROM processes");
    const int32_t found = (int32_t)strtol(rank, NULL, 10);
    free(rank);
    end_run();
    return found;
}

START_TEST(a_rank_is_what_the_first_group_says)
{
    ck_assert_int_eq(rank_of("worker7of9.json", "worker([0-9]+)of"), 7);
    ck_assert_int_eq(rank_of("worker7of9.json", "worker[0-9]+of([0-9]+)"), 9);
    ck_assert_int_eq(rank_of("7.json", "/([0-9]+)[.]json$"), 7);
    ck_assert_int_eq(rank_of("worker7.json", "^(a)?.*worker"), -1);
    ck_assert_int_eq(rank_of("worker7.json", "worker(x*)"), -1);
    ck_assert_int_eq(rank_of("w2147483647.json", "w([0-9]+)"), INT32_MAX);
    ck_assert_int_eq(rank_of("w2147483648.json", "w([0-9]+)"), -1);
}
END_TEST

/* ---- folders of traces ------------------------------------------------------------------------------ */

static void put_rank(const char *name, int rank, int world, const char *list)
{
    char path[96], text[2048];
    const int n = snprintf(text, sizeof text,
                           "{\"schemaVersion\":1,\"distributedInfo\":{\"rank\":%d,"
                           "\"world_size\":%d},\"traceEvents\":[%s]}",
                           rank, world, list);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    write_file(path, text, (size_t)n);
}

#define ONE      HOST("aten::mul", "cpu_op", "10", "20") ARROW("s", "ac2g", "1", "10", "")
#define PROBLEMS "SELECT text FROM problems ORDER BY text"

START_TEST(ranks_without_a_trace_are_counted)
{
    static const struct {
        int ranks[3], world;
        const char *says;
    } cases[] = {{{0, 1, -1}, 2, ""},
                 {{0, 1, -1}, 3, "1 of 3 ranks has no trace; the first is rank 2;"},
                 {{1, 3, -1}, 5, "3 of 5 ranks have no trace; the first is rank 0;"},
                 {{0, 1, 2}, 4, "1 of 4 ranks has no trace; the first is rank 3;"},
                 {{2, -1, -1}, 4, ""}}; /* one trace alone was asked for as it is */
    scratch_dir(dir);
    for (int i = 0; i < 3 && cases[_i].ranks[i] >= 0; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d.json", i);
        put_rank(name, cases[_i].ranks[i], cases[_i].world, ONE);
    }
    open_path(dir);
    ck_rows(mstx_tl_store(tl), PROBLEMS, cases[_i].says);
    end_run();
}
END_TEST

START_TEST(a_list_of_events_is_a_trace_and_another_list_is_none)
{
    char path[96];
    static const char list[] = "\n [{\"ph\":\"i\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":0}]",
                      other[] = "[{\"kind\": 5}]", object[] = "{\"x\": [{\"ph\": 5}]}";
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/b.json", dir);
    write_file(path, other, sizeof other - 1);
    snprintf(path, sizeof path, "%s/c.json", dir);
    write_file(path, object, sizeof object - 1);
    ck_assert_uint_eq(mstx__count_trace_files(dir), 0);
    snprintf(path, sizeof path, "%s/a.json", dir);
    write_file(path, list, sizeof list - 1);
    ck_assert_uint_eq(mstx__count_trace_files(dir), 1);
    put_rank("d.json", 0, 1, ONE);
    ck_assert_uint_eq(mstx__count_trace_files(dir), 2);
    scratch_remove(dir);
    ck_assert_uint_eq(mstx__count_trace_files(dir), 0);
}
END_TEST

/* ---- calls --------------------------------------------------------------------------------------------- */

#define KERNEL(name, ts, more)                                                                     \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" name "\",\"pid\":0,\"tid\":7,\"ts\":" ts        \
    ",\"dur\":5,\"args\":{\"device\":0,\"stream\":7,\"correlation\":" ts more "}}"
#define P2P(op, peer)                                                                              \
    ",\"Collective name\":\"" op "\",\"In msg nelems\":8,\"Out msg nelems\":8,\"Group size\":4,"   \
    "\"dtype\":\"Float\",\"Process Group Name\":\"3\",\"Process Group Description\":\"pp\","       \
    "\"Process Group Ranks\":\"[0, 1, 2, 3]\"," peer

START_TEST(the_first_rank_may_be_a_partner)
{
    open_events(KERNEL("ncclDevKernel_SendRecv", "10", P2P("send", "\"Dst Rank\":0")) "," KERNEL(
        "ncclDevKernel_SendRecv", "30",
        P2P("recv", "\"Src Rank\":0")) "," KERNEL("ncclDevKernel_SendRecv", "50",
                                                  P2P("send", "\"Dst Rank\":3")));
    ck_rows(mstx_tl_store(tl), "SELECT op, peer FROM comm_ops ORDER BY start_ns",
            "Send|0;Recv|0;Send|3;");
    end_run();
}
END_TEST

START_TEST(a_kernel_that_nothing_describes_is_a_call_of_its_name)
{
    char path[96];
    struct ms_err e = {0};
    struct ms_store *s;
    open_events(KERNEL("ncclDevKernel_AllReduce_Sum_f32", "10", "") "," KERNEL("gemm", "30", ""));
    export_to(MSTX_EXPORT_ASCEND_DB, "out.db", path);
    ck_ok(ms_store_open(&s, path, &e), e);
    ck_rows(s, "SELECT startNs, endNs FROM COMMUNICATION_OP", "10000|15000;");
    ck_rows(s,
            "SELECT n.value, t.value FROM COMMUNICATION_OP c JOIN STRING_IDS "
            "n ON n.id = c.opName JOIN STRING_IDS t ON t.id = c.opType",
            "HcclAllreduce__0_0_1|HcclAllreduce_;");
    ms_store_close(s);
    end_run();
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("torch_exports");
    tcase_add_test(tc, chrome_keeps_categories_and_arrows);
    tcase_add_test(tc, an_operator_leads_to_its_backward_pass);
    tcase_add_loop_test(tc, an_arrow_from_nowhere_connects_nothing, 0, 3);
    tcase_add_loop_test(tc, times_end_at_a_limit_on_both_sides, 0, 4);
    tcase_add_test(tc, a_large_compressed_trace_is_unpacked_block_by_block);
    tcase_add_test(tc, a_rank_is_what_the_first_group_says);
    tcase_add_loop_test(tc, ranks_without_a_trace_are_counted, 0, 5);
    tcase_add_test(tc, a_list_of_events_is_a_trace_and_another_list_is_none);
    tcase_add_test(tc, the_first_rank_may_be_a_partner);
    tcase_add_test(tc, a_kernel_that_nothing_describes_is_a_call_of_its_name);
    return run_case("torch_exports", tc);
}
