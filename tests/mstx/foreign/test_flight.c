/* SPDX-License-Identifier: MIT
 *
 * Dumps of PyTorch's Flight Recorder: each field of an entry as the analyser of PyTorch understands it,
 * and what is written of a run is read back as the same calls.
 */
#include "mstx/foreign/export_run.h"
#include "mstx/foreign/from_flight.h"
#include "tests/support/scratch_run.h"

#include <sys/stat.h>

/* Times of a day in 2023. */
#define S  "1700000000"
#define T0 S "000000000"

/* One entry of rank 0 as JSON, and the call that it is: operation, type, elements, begin and end after
 * T0, peer. */
static const struct entry {
    const char *name, *more, *call;
} entries[] = {
#define SIZES(in, in_type, out, out_type)                                                          \
    "\"input_sizes\":" in ",\"input_dtypes\":[\"" in_type "\"],\"output_sizes\":" out              \
    ",\"output_dtypes\":[\"" out_type "\"]"
#define TIMES(state, made, began, ended, ms)                                                       \
    ",\"state\":\"" state "\",\"time_created_ns\":" made ",\"time_discovered_started_ns\":" began  \
    ",\"time_discovered_completed_ns\":" ended ",\"duration_ms\":" ms
#define DONE(at)  TIMES("completed", S at "000000", S at "000000", S at "500000", "null")
#define PLAIN(at) SIZES("[[4]]", "Float", "[[4]]", "Float") DONE(at)
    /* operations */
    {"nccl:all_reduce", PLAIN("001"), "AllReduce|fp32|4|1000000|1500000|"},
    {"nccl:allreduce_coalesced", PLAIN("002"), "AllReduce|fp32|4|2000000|2500000|"},
    {"nccl:all_reduce_barrier", PLAIN("003"), "Barrier|fp32|4|3000000|3500000|"},
    {"gloo:barrier", PLAIN("004"), "Barrier|fp32|4|4000000|4500000|"},
    {"nccl:_all_gather_base", PLAIN("005"), "AllGather|fp32|4|5000000|5500000|"},
    {"nccl:allgather", PLAIN("006"), "AllGather|fp32|4|6000000|6500000|"},
    {"nccl:ALLGATHER_coalesced", PLAIN("007"), "AllGather|fp32|4|7000000|7500000|"},
    {"nccl:all_to_all", PLAIN("008"), "AlltoAll|fp32|4|8000000|8500000|"},
    {"nccl:alltoall_base", PLAIN("009"), "AlltoAll|fp32|4|9000000|9500000|"},
    {"nccl:broadcast", PLAIN("010"), "Broadcast|fp32|4|10000000|10500000|"},
    {"nccl:gather", PLAIN("011"), "Gather|fp32|4|11000000|11500000|"},
    {"nccl:scatter", PLAIN("012"), "Scatter|fp32|4|12000000|12500000|"},
    {"nccl:reduce", PLAIN("013"), "Reduce|fp32|4|13000000|13500000|"},
    {"nccl:_reduce_scatter_base", PLAIN("014"), "ReduceScatter|fp32|4|14000000|14500000|"},
    {"nccl:REDUCE_SCATTER_coalesced", PLAIN("015"), "ReduceScatter|fp32|4|15000000|15500000|"},
    /* two ranks */
    {"nccl:send 0->1", PLAIN("016"), "Send|fp32|4|16000000|16500000|1"},
    {"nccl:recv 0<-1", PLAIN("017"), "Recv|fp32|4|17000000|17500000|1"},
    {"nccl:send 1->0", PLAIN("018"), "Send|fp32|4|18000000|18500000|0"},
    {"nccl:send", PLAIN("019"), "Send|fp32|4|19000000|19500000|"},
    {"nccl:send 0->99999999999", PLAIN("020"), "Send|fp32|4|20000000|20500000|"},
    {"nccl:send 0->-3", PLAIN("021"), "Send|fp32|4|21000000|21500000|"},
    {"nccl:all_reduce 0->1", PLAIN("022"), "AllReduce|fp32|4|22000000|22500000|"},
    /* types and sizes: those of the output where a call spreads, else of the input */
    {"nccl:all_reduce", SIZES("[[2,3],[5]]", "Half", "[[1]]", "Float") DONE("023"),
     "AllReduce|fp16|11|23000000|23500000|"},
    {"nccl:reduce_scatter", SIZES("[[8]]", "Half", "[[2]]", "BFloat16") DONE("024"),
     "ReduceScatter|bfp16|2|24000000|24500000|"},
    {"nccl:scatter", SIZES("[[8]]", "Half", "[[2]]", "Double") DONE("025"),
     "Scatter|fp64|2|25000000|25500000|"},
    {"nccl:all_gather", SIZES("[[2]]", "Long", "[[8]]", "Int") DONE("026"),
     "AllGather|int64|2|26000000|26500000|"},
    {"nccl:reduce", SIZES("[[]]", "Int", "[]", "Int") DONE("027"),
     "Reduce|int32|1|27000000|27500000|"},
    {"nccl:reduce", SIZES("[]", "Short", "[]", "Int") DONE("028"),
     "Reduce|int16|0|28000000|28500000|"},
    {"nccl:reduce", SIZES("[[0,7]]", "Char", "[]", "Int") DONE("029"),
     "Reduce|int8|0|29000000|29500000|"},
    {"nccl:reduce", SIZES("[[7]]", "Byte", "[]", "Int") DONE("030"),
     "Reduce|uint8|7|30000000|30500000|"},
    {"nccl:reduce", SIZES("[[7]]", "Bool", "[]", "Int") DONE("031"),
     "Reduce|bool|7|31000000|31500000|"},
    {"nccl:reduce", SIZES("[[7]]", "ComplexFloat", "[]", "Int") DONE("032"),
     "Reduce|complex64|7|32000000|32500000|"},
    {"nccl:reduce", SIZES("[[-1]]", "Int", "[]", "Int") DONE("033"),
     "Reduce|int32|0|33000000|33500000|"},
    {"nccl:reduce", SIZES("[[4294967296,4294967296]]", "Int", "[]", "Int") DONE("034"),
     "Reduce|int32|0|34000000|34500000|"},
    {"nccl:reduce", SIZES("[[144115188075855871],[1]]", "Int", "[]", "Int") DONE("035"),
     "Reduce|int32|0|35000000|35500000|"},
    /* times: a duration ends at the completion, or begins at the start */
    {"nccl:reduce",
     SIZES("[[1]]", "Int", "[]", "Int")
         TIMES("completed", S "040000000", S "040100000", S "040900000", "0.25"),
     "Reduce|int32|1|40650000|40900000|"},
    {"nccl:reduce",
     SIZES("[[1]]", "Int", "[]", "Int")
         TIMES("completed", S "041000000", S "041100000", "null", "0.25"),
     "Reduce|int32|1|41100000|41350000|"},
    {"nccl:reduce",
     SIZES("[[1]]", "Int", "[]", "Int")
         TIMES("completed", S "042000000", "null", S "042900000", "null"),
     "Reduce|int32|1|42000000|42900000|"},
    {"nccl:reduce",
     SIZES("[[1]]", "Int", "[]", "Int")
         TIMES("completed", S "043000000", S "043100000", S "043000500", "null"),
     "Reduce|int32|1|43100000|43100000|"},
    {"nccl:reduce",
     SIZES("[[1]]", "Int", "[]", "Int") TIMES("completed", S "044000000", "-5", "null", "-1"),
     "Reduce|int32|1|44000000|44000000|"},
    {"nccl:reduce",
     SIZES("[[1]]", "Int", "[]", "Int")
         TIMES("completed", S "045000000", "9000000000000000000", "null", "1e13"),
     "Reduce|int32|1|45000000|45000000|"},
    {"nccl:reduce",
     SIZES("[[1]]", "Int", "[]", "Int")
         TIMES("completed", S "046000000", "null", "null", "1000000000000"),
     "Reduce|int32|1|46000000|46000000|"},
    {"nccl:reduce",
     SIZES("[[1]]", "Int", "[]", "Int")
         TIMES("completed", S "047000000", "null", S "047000300", "1000000000000"),
     "Reduce|int32|1|47000000|47000300|"},
};
enum { ENTRIES = sizeof entries / sizeof *entries };

/* ---- files --------------------------------------------------------------------------------- */

static void put_dump(const char *name, const char *groups, const char *all)
{
    char path[160];
    struct ms_buf b = {.max = 1 << 20};
    ms_buf_printf(&b, "{\"version\":\"2.10\",\"pg_config\":{%s},\"entries\":[%s]}", groups, all);
    snprintf(path, sizeof path, "%s/%s", run, name);
    write_file(path, b.p, b.n);
    ms_buf_free(&b);
}

static void new_run(void)
{
    scratch_dir(dir);
    snprintf(run, sizeof run, "%s/run", dir);
    ck_assert_int_eq(mkdir(run, 0755), 0);
}

#define WORLD "\"0\":{\"name\":\"0\",\"desc\":\"world\",\"ranks\":\"[0, 1]\"}"
#define PAIR  "\"7\":{\"name\":\"7\",\"desc\":\"\",\"ranks\":\"[1]\"}"

static void put_entry(struct ms_buf *b, const struct entry *e, int seq, const char *group)
{
    const bool p2p = strstr(e->name, "send") != NULL || strstr(e->name, "recv") != NULL;
    ms_buf_printf(b,
                  "%s{\"profiling_name\":\"%s\",\"process_group\":[\"%s\",\"d\"],"
                  "\"collective_seq_id\":%d,\"p2p_seq_id\":%d,%s}",
                  b->n != 0 ? "," : "", e->name, group, p2p ? 0 : seq, p2p ? seq : 0, e->more);
}

static void put_all_entries(void)
{
    struct ms_buf b = {.max = 1 << 20};
    for (int i = 0; i < ENTRIES; i++)
        put_entry(&b, &entries[i], i + 1, "0");
    put_dump("nccl_trace_rank_0", WORLD, ms_buf_z(&b));
    ms_buf_free(&b);
}

static const char calls[] = "SELECT op, type, count, start_ns - " T0 ", end_ns - " T0
                            ", peer FROM comm_ops WHERE rank = 0 ORDER BY start_ns";

START_TEST(each_entry_is_the_call_that_it_says)
{
    struct ms_buf due = {.max = 1 << 20};
    new_run();
    put_all_entries();
    open_path(run);
    for (int i = 0; i < ENTRIES; i++)
        ms_buf_printf(&due, "%s;", entries[i].call);
    ck_rows(mstx_tl_store(tl), calls, ms_buf_z(&due));
    ck_rows(mstx_tl_store(tl), "SELECT name, size, ranks FROM comm_groups", "world|2|0,1;");
    ms_buf_free(&due);
    end_run();
}
END_TEST

START_TEST(a_group_has_as_many_ranks_as_it_lists)
{
    struct ms_buf b = {.max = 1 << 20};
    new_run();
    put_entry(&b, &entries[0], 1, "7");
    put_dump("nccl_trace_rank_1", WORLD "," PAIR, ms_buf_z(&b));
    ms_buf_free(&b);
    open_path(run);
    ck_rows(mstx_tl_store(tl), "SELECT name, size, ranks FROM comm_groups WHERE name = '7'",
            "7|1|1;");
    end_run();
}
END_TEST

/* Frees `got`. */
static void check_same(char *got, const char *due)
{
    size_t i = 0;
    while (got[i] != '\0' && got[i] == due[i])
        i++;
    ck_assert_msg(got[i] == due[i], "'%.80s' where '%.80s' is due", got + i, due + i);
    free(got);
}

/* What a run is written as is read as the same run, and written as the same bytes again. */
START_TEST(what_is_written_is_read_as_the_same_calls)
{
    static const char all[] =
        "SELECT rank, comm_group, seq, op, type, count, start_ns, end_ns, peer "
        "FROM comm_ops ORDER BY rank, start_ns";
    char out[2][96], file[2][256];
    struct ms_err e = {0};
    size_t n[2];
    new_run();
    put_all_entries();
    put_dump(
        "nccl_trace_rank_1", WORLD "," PAIR,
        "{\"profiling_name\":\"nccl:recv 1<-0\",\"process_group\":[\"0\",\"\"],\"p2p_seq_id\":16,"
        "\"state\":\"completed\",\"time_created_ns\":" S "016100000,"
        "\"input_sizes\":[[4]],\"input_dtypes\":[\"Float\"]},"
        "{\"profiling_name\":\"nccl:all_reduce\",\"process_group\":[\"7\",\"\"],"
        "\"collective_seq_id\":1," PLAIN("017") "}");
    open_path(run);
    char *due = rows_of(mstx_tl_store(tl), all);
    ck_assert_ptr_nonnull(strstr(due, "1|2|"));
    for (int i = 0; i < 2; i++) {
        snprintf(out[i], sizeof out[i], "%s/out%d", dir, i);
        ck_assert_int_eq(mkdir(out[i], 0755), 0);
        ck_ok(mstx_export_run(tl, MSTX_EXPORT_FLIGHT, out[i], &e), e);
        mstx_tl_close(tl);
        open_path(out[i]);
        check_same(rows_of(mstx_tl_store(tl), all), due);
    }
    for (int rank = 0; rank < 2; rank++) {
        char *bytes[2];
        for (int i = 0; i < 2; i++) {
            snprintf(file[i], sizeof file[i], "%s/nccl_trace_rank_%d", out[i], rank);
            bytes[i] = slurp(file[i], &n[i]);
        }
        ck_assert_uint_eq(n[0], n[1]);
        ck_assert(memcmp(bytes[0], bytes[1], n[0]) == 0);
        if (rank == 1) /* an arrow leads from the sender to the receiver */
            ck_assert(memmem(bytes[0], n[0], "nccl:recv 1<-0", 14) != NULL);
        else
            ck_assert(memmem(bytes[0], n[0], "nccl:send 0->1", 14) != NULL);
        free(bytes[0]);
        free(bytes[1]);
    }
    free(due);
    end_run();
}
END_TEST

START_TEST(a_call_that_was_not_completed_is_unfinished)
{
    new_run();
    put_dump("rank3.json", WORLD,
             "{\"profiling_name\":\"nccl:all_reduce\",\"process_group\":[\"0\",\"\"],"
             "\"collective_seq_id\":1,\"state\":\"started\",\"time_created_ns\":" S "001000000},"
             "{\"profiling_name\":\"nccl:all_reduce\",\"process_group\":[\"0\",\"\"],"
             "\"collective_seq_id\":2,\"state\":\"scheduled\",\"time_created_ns\":" S "002000000},"
             "{\"profiling_name\":\"nccl:reduce\",\"process_group\":[\"0\",\"\"],"
             "\"collective_seq_id\":3,\"state\":\"completed\",\"time_created_ns\":" S "003000000}");
    open_path(run);
    ck_rows(mstx_tl_store(tl), "SELECT rank, unfinished, records, tool FROM processes",
            "3|2|3|PyTorch Flight Recorder;");
    end_run();
}
END_TEST

/* ---- what is no dump --------------------------------------------------------------------------- */

START_TEST(a_file_is_a_dump_by_what_stands_in_it)
{
    static const struct {
        const char *text;
        size_t n;
        bool is;
    } files[] = {
#define FILE_OF(text, is) {(text), sizeof(text) - 1, (is)}
        FILE_OF("{\"pg_config\":{}}", true),
        FILE_OF("{\"collective_seq_id\":1}", true),
        FILE_OF("\x80\2\0pg_config", true),
        FILE_OF("\x80\5\0pg_config", true),
        FILE_OF("\x80\1\0pg_config", false),
        FILE_OF("\x80\6\0pg_config", false),
        FILE_OF("\x81\2\0pg_config", false),
        FILE_OF("[{\"pg_config\":{}}]", false),
        FILE_OF("{\"pg_confi\":{}}", false),
        FILE_OF("\x80\2", false),
        FILE_OF("", false),
    };
    enum { FILES = sizeof files / sizeof *files };
    char path[128];
    size_t dumps = 0;
    new_run();
    for (size_t i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%zu", run, i);
        write_file(path, files[i].text, files[i].n);
        ck_assert_msg(mstx__is_flight_file(path) == files[i].is, "%zu", i);
        dumps += files[i].is;
    }
    ck_assert_uint_eq(mstx__count_flight_files(run), dumps);
    ck_assert(!mstx__is_flight_file(run));
    snprintf(path, sizeof path, "%s/nowhere", run);
    ck_assert(!mstx__is_flight_file(path));
    ck_assert_uint_eq(mstx__count_flight_files(path), 0);
    scratch_remove(dir);
}
END_TEST

/* A damaged file is told and the others are read. */
START_TEST(a_number_beyond_32_bits_is_none)
{
    char *got;
    new_run();
    put_dump("nccl_trace_rank_0", WORLD,
             "{\"profiling_name\":\"nccl:all_reduce\",\"process_group\":[\"0\",\"\"],"
             "\"collective_seq_id\":0," PLAIN(
                 "001") "},"
                        "{\"profiling_name\":\"nccl:all_reduce\",\"process_group\":[\"0\",\"\"],"
                        "\"collective_seq_id\":4294967294," PLAIN(
                            "002") "},"
                                   "{\"profiling_name\":\"nccl:all_reduce\",\"process_group\":["
                                   "\"0\",\"\"],"
                                   "\"collective_seq_id\":4294967296," PLAIN("003") "}");
    open_path(run);
    got = rows_of(mstx_tl_store(tl), "SELECT seq FROM comm_ops ORDER BY start_ns");
    ck_assert_str_eq(got, "0;4294967294;4294967295;");
    free(got);
    end_run();
}
END_TEST

START_TEST(a_damaged_dump_is_a_problem_of_its_own)
{
    new_run();
    put_all_entries();
    put_dump("nccl_trace_rank_1", WORLD, "{\"profiling_name\":\"cut");
    char path[128];
    snprintf(path, sizeof path, "%s/nccl_trace_rank_2", run);
    write_file(path, "{\"pg_config\":{}}", 16);
    open_path(run);
    ck_rows(mstx_tl_store(tl), "SELECT count(*), count(DISTINCT rank) FROM comm_ops", "43|1;");
    ck_rows(mstx_tl_store(tl), "SELECT count(*) FROM problems", "2;");
    ck_rows(mstx_tl_store(tl),
            "SELECT count(*) FROM problems WHERE text LIKE '%no list of entries%'", "1;");
    end_run();
}
END_TEST

TEST_MAIN("flight", a_group_has_as_many_ranks_as_it_lists, each_entry_is_the_call_that_it_says,
          what_is_written_is_read_as_the_same_calls, a_call_that_was_not_completed_is_unfinished,
          a_file_is_a_dump_by_what_stands_in_it, a_number_beyond_32_bits_is_none,
          a_damaged_dump_is_a_problem_of_its_own)
