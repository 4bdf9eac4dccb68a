/* SPDX-License-Identifier: MIT
 *
 * foreign_recorded: what drawn captures are in each format that we write, and what drawn and damaged files of
 * other tools are in a run, as it is on record.
 *
 *     build/tests/test_foreign_recorded --update        records a change that is meant
 */
#include "mstx/format/comm.h"
#include "mstx/format/comm_marked.h"
#include "tests/support/foreign_told.h"

#include <fcntl.h>
#include <zlib.h>

enum { CAPTURES = 24, TRACES = 160, FLIGHTS = 90 };
#define RECORD "tests/data/foreign/recorded.txt"

static uint64_t state;

#define below(n) recorded_below(&state, (n))

/* ---- captures ---------------------------------------------------------------------------------------- */

enum { TEXTS = 9 };
static const char *const texts[TEXTS] = {
    "forward",
    "say \"x\"",
    "=1+1",
    "\xc3\xa4\n",
    "MPI_Allreduce",
    "b",
    "{\"a\": 1}",
    "x,y",
    "{\"count\": \"77\",\"dataType\": \"fp16\",\"groupName\": \"grp\",\"opName\": \"HcclSend\","
    "\"streamId\": \"32\"}"};

struct capture {
    struct maker m;
    uint32_t text[TEXTS];
    uint16_t domain[3];
    uint64_t t, id;
};

static void put_groups(struct maker *m, int32_t rank)
{
    struct {
        struct mstx_comm_group head;
        char name[4];
    } group = {{.uid = 99, .size = 3, .rank = rank}, "grp"};
    maker_entry(m, MSTX_GROUP, 0, 1, &group, sizeof group.head + 3);
    group.head.uid = 100;
    memcpy(group.name, "wld", 3);
    maker_entry(m, MSTX_GROUP, 0, 2, &group, sizeof group.head + 3);
}

static void put_call(struct capture *c, uint64_t length)
{
    static const uint8_t ops[] = {
        MSTX_COMM_ALLREDUCE, MSTX_COMM_BARRIER,        MSTX_COMM_BROADCAST, MSTX_COMM_REDUCE,
        MSTX_COMM_ALLGATHER, MSTX_COMM_REDUCE_SCATTER, MSTX_COMM_ALLTOALL,  MSTX_COMM_SEND,
        MSTX_COMM_RECV,      MSTX_COMM_GATHER,         MSTX_COMM_SCATTER,   MSTX_COMM_WAIT};
    const struct mstx_rec_comm rec = {
        .count = below(5) == 0 ? UINT64_C(1) << 40 : below(5000),
        .group = 1 + below(2),
        .peer = (int32_t)below(4) - 1,
        .dtype =
            (uint8_t)(below(2) == 0 ? MSTX_TYPE_FP8E8M0 - 1 + below(3) : below(MSTX_TYPE_FP8E8M0)),
        .reduce = MSTX_REDUCE_SUM,
        .type = MSTX_REC_COMM,
        .op = ops[below(sizeof ops)],
        .lib = MSTX_LIB_MPI,
        .elem = 4};
    const uint64_t begin = c->t;
    maker_rec(&c->m, MSTX_REC_BEGIN, begin, ++c->id, c->text[4], c->domain[2], 0, MSTX_F_MORE);
    maker_raw(&c->m, &rec);
    if (below(9) != 0)
        maker_end_range(&c->m, begin + length, c->id, c->text[4], c->domain[2], begin, 0);
    c->t = begin + length;
}

/* A range or a mark with times on its device. */
static void put_on_device(struct capture *c, uint64_t length)
{
    const uint64_t begin = c->t;
    const uint32_t text = c->text[below(TEXTS)];
    const uint16_t d = c->domain[below(3)];
    const uint64_t stream = 0x20 + 0x10 * (uint64_t)below(2);
    maker_rec(&c->m, MSTX_REC_BEGIN, begin, ++c->id, text, d, stream, MSTX_F_STREAM);
    maker_end_range(&c->m, begin + length, c->id, text, d, begin, 0);
    maker_rec(&c->m, MSTX_REC_DEVICE, begin, c->id, 0, 0, 5000000020 + begin, 0);
    if (below(6) != 0)
        maker_rec(&c->m, MSTX_REC_DEVICE, begin, c->id, 1, 0, 5000000070 + begin + length, 0);
    c->t = begin + length;
}

static void put_counter(struct capture *c)
{
    const double real = (double)below(1000) / 7;
    uint64_t bits = below(3) == 0 ? (uint64_t)-5 : below(1000);
    const bool is_real = below(2) == 0;
    if (is_real)
        memcpy(&bits, &real, sizeof bits);
    if (is_real && below(6) == 0)
        bits = UINT64_C(0x7ff8000000000000);
    maker_rec(&c->m, MSTX_REC_COUNTER, c->t, 0, c->text[below(TEXTS)], 0, bits,
              is_real ? MSTX_F_REAL : 0);
}

static void put_record(struct capture *c)
{
    const uint64_t length = below(4) == 0 ? 0 : below(3000), begin = c->t;
    const uint32_t text = c->text[below(TEXTS)];
    switch (below(7)) {
    case 0:
        maker_mark(&c->m, begin, text, c->domain[below(2)]);
        break;
    case 1:
        put_counter(c);
        break;
    case 2:
        put_call(c, length);
        break;
    case 3:
        put_on_device(c, length);
        break;
    case 4:
        maker_push(&c->m, begin, 0, text);
        maker_push(&c->m, begin + 10, 1, c->text[0]);
        maker_pop(&c->m, begin + 20 + length, 1, c->text[0], begin + 10);
        maker_pop(&c->m, begin + 30 + length, 0, text, begin);
        c->t += 40 + length;
        break;
    default: /* ranges that overlap, some of which never end */
        maker_begin_range(&c->m, begin, ++c->id, text, c->domain[below(2)]);
        maker_begin_range(&c->m, begin + 5, ++c->id, text, c->domain[0]);
        maker_end_range(&c->m, begin + 7 + length, c->id - 1, text, c->domain[0], begin,
                        below(3) == 0 ? MSTX_F_OTHER_THREAD : 0);
        if (below(3) != 0)
            maker_end_range(&c->m, begin + 9 + length, c->id, text, c->domain[0], begin + 5, 0);
        c->t += 10 + length;
    }
    c->t += below(3) == 0 ? 0 : below(500);
}

static void put_process(int32_t rank, uint32_t pid)
{
    static struct capture c;
    c = (struct capture){.t = below(50)};
    maker_begin(&c.m, run, rank, pid);
    for (unsigned i = 0; i < TEXTS; i++)
        c.text[i] = maker_text(&c.m, texts[i]);
    for (unsigned i = 0; i < 3; i++)
        c.domain[i] = i == 0 ? 0 : maker_domain(&c.m, i == 1 ? "=io\"" : MSTX_COMM_DOMAIN);
    put_groups(&c.m, rank);
    for (uint32_t ring = 1, rings = 1 + below(2); ring <= rings; ring++) {
        c.t = below(50);
        maker_ring(&c.m, ring, 1, ring == 1 ? pid : pid + ring);
        maker_rec(&c.m, MSTX_REC_STREAM, 0, 0x20, 0, 0, UINT64_C(0x2000000000), 0);
        maker_rec(&c.m, MSTX_REC_STREAM, 0, 0x30, 0, 0, UINT64_C(0x3000000000) + below(3), 0);
        for (unsigned n = below(40); n > 0; n--)
            put_record(&c);
        maker_end_ring(&c.m);
    }
    maker_end(&c.m);
}

static void record_capture(unsigned seed, struct ms_buf *record)
{
    state = seed;
    scratch_dir(dir);
    snprintf(run, sizeof run, "%s/run", dir);
    const bool ranked = below(4) != 0;
    for (uint32_t i = 0, n = 1 + below(3); i < n; i++)
        put_process(ranked ? (int32_t)i : -1, 4242 + i * 10);
    open_path(run);
    ms_buf_printf(record, "capture %u", seed);
    tell_formats(record);
    ms_buf_puts(record, "\n");
    end_run();
}

/* ---- files of other tools -------------------------------------------------------------------------------- */

static void put_number(struct ms_buf *b)
{
    static const char *const odd[] = {"-1",
                                      "0",
                                      "1e3",
                                      "1.5",
                                      "\"7.25\"",
                                      "\"x\"",
                                      "null",
                                      "2305843009213693",
                                      "1e30",
                                      "-0.001",
                                      "0.0009",
                                      "12.3456789",
                                      "-2305843009213694",
                                      "\"-3.5\"",
                                      "4294967295",
                                      "4294967296"};
    if (below(4) == 0)
        ms_buf_puts(b, odd[below(sizeof odd / sizeof *odd)]);
    else
        ms_buf_printf(b, "%u.%03u", below(1000), below(1000));
}

static void put_arg(struct ms_buf *b)
{
    static const char *const args[] = {"\"domain\":\"io\"",
                                       "\"event_type\":\"marker\"",
                                       "\"event_type\":\"push/pop\"",
                                       "\"end_tid\":77",
                                       "\"end_tid\":4294967296",
                                       "\"end_tid\":-1",
                                       "\"unfinished\":true",
                                       "\"unfinished\":false",
                                       "\"name\":\"rank 3 p\"",
                                       "\"name\":\"rank x\"",
                                       "\"name\":\"rank 4294967296 p\"",
                                       "\"a\":{\"b\":[1,{}]}",
                                       "\"v\":-7",
                                       "\"v\":1.5",
                                       "\"w\":\"\\u00e4\"",
                                       "\"domain\":5",
                                       "\"name\":\"rank 2147483647 p\"",
                                       "\"name\":5",
                                       "\"name\":\"\\u00e4\\n\""};
    ms_buf_puts(b, args[below(sizeof args / sizeof *args)]);
}

static void put_trace_event(struct ms_buf *b)
{
    static const char *const phases = "XXXXBBEEiIRCCMMMbbeenftsP";
    static const char *const names[] = {"step", "a \\\"b\\\"", "process_name", "thread_name",
                                        "",     "loss"};
    ms_buf_printf(b, "{\"ph\":\"%c%s\"", phases[below(25)], below(40) == 0 ? "X" : "");
    if (below(9) != 0)
        ms_buf_printf(b, ",\"name\":\"%s\"", names[below(6)]);
    if (below(9) != 0)
        ms_buf_printf(b, below(3) == 0 ? ",\"pid\":\"%u\"" : ",\"pid\":%u", 5 + below(3));
    if (below(9) != 0)
        ms_buf_printf(b, below(9) == 0 ? ",\"tid\":\"t%u\"" : ",\"tid\":%u", below(3));
    if (below(9) != 0)
        ms_buf_puts(b, ",\"ts\":"), put_number(b);
    if (below(2) == 0)
        ms_buf_puts(b, ",\"dur\":"), put_number(b);
    if (below(2) == 0)
        ms_buf_printf(b, ",\"cat\":\"%c\",\"id\":%u", 'c' + (char)below(2), below(3));
    if (below(2) == 0) {
        ms_buf_puts(b, ",\"args\":{");
        for (unsigned i = 0, n = below(5); i < n; i++) {
            ms_buf_puts(b, i != 0 ? "," : "");
            put_arg(b);
        }
        ms_buf_puts(b, "}");
    }
    ms_buf_puts(b, "}");
}

static void put_trace(struct ms_buf *b)
{
    static const char *const heads[] = {
        "[",
        "{\"traceEvents\":[",
        "{\"otherData\":{\"start_unix_ns\":\"1700000000000000000\"},"
        "\"traceEvents\":[",
        "{\"otherData\":{\"start_unix_ns\":\"-5\",\"z\":[1]},\"traceEvents\":[",
        "{\"otherData\":{\"start_unix_ns\":\"2305843009213693951\"},"
        "\"traceEvents\":[",
        "{\"otherData\":{\"start_unix_ns\":\"2305843009213693952\"},"
        "\"traceEvents\":[",
        "{\"otherData\":7,\"x\":{},\"traceEvents\":[",
        "{\"traceEvents\":{},\"more\":["};
    const uint32_t head = below(8);
    ms_buf_puts(b, heads[head]);
    for (unsigned i = 0, n = below(24); i < n; i++) {
        ms_buf_puts(b, i != 0 ? ",\n" : "");
        if (below(30) == 0)
            ms_buf_puts(b, "[7, \"x\"]");
        else
            put_trace_event(b);
    }
    ms_buf_puts(b, head == 0 ? "]" : "]}");
}

static void put_sizes(struct ms_buf *b, const char *key)
{
    static const char *const sizes[] = {"[[4]]",
                                        "[[2,3],[5]]",
                                        "[]",
                                        "[[]]",
                                        "[[-1]]",
                                        "[[9007199254740992,16]]",
                                        "[[144115188075855871]]",
                                        "[[144115188075855872]]",
                                        "7"},
                             *const types[] = {"Float", "Half", "BFloat16", "Long", "Odd"};
    ms_buf_printf(b, ",\"%s_sizes\":%s,\"%s_dtypes\":[\"%s\"]", key, sizes[below(9)], key,
                  types[below(5)]);
}

static void put_flight_time(struct ms_buf *b, const char *key)
{
    static const char *const odd[] = {
        "null", "-5", "0", "1e18", "2305843009213693952", "2305843009213693951", "true"};
    if (below(4) == 0)
        ms_buf_printf(b, ",\"%s\":%s", key, odd[below(7)]);
    else
        ms_buf_printf(b, ",\"%s\":170000000000%07u", key, below(3000000));
}

static void put_flight_entry(struct ms_buf *b, uint32_t *seq)
{
    static const char
        *const names[] = {"nccl:all_reduce", "gloo:broadcast",          "nccl:send 0->1",
                          "nccl:recv 1<-0",  "nccl:recv 1<-2147483647", "nccl:send 0->2147483648",
                          "nccl:odd",        "nccl:_all_gather_base",   "nccl:reduce_scatter"},
               *const states[] = {"completed", "completed", "started", "scheduled"},
               *const ms[] = {"null", "0", "0.25", "999999999999", "1000000000000", "-1", "\"x\""};
    ms_buf_printf(b, "{\"profiling_name\":\"%s\",\"process_group\":[\"%u\",\"d\"]", names[below(9)],
                  below(4));
    ms_buf_printf(b,
                  ",\"collective_seq_id\":%u,\"p2p_seq_id\":%s,\"state\":\"%s\",\"duration_ms\":%s",
                  ++*seq,
                  below(9) == 0   ? "-1"
                  : below(9) == 0 ? "4294967294"
                                  : "3",
                  states[below(4)], ms[below(7)]);
    put_sizes(b, "input");
    put_sizes(b, "output");
    put_flight_time(b, "time_created_ns");
    put_flight_time(b, "time_discovered_started_ns");
    put_flight_time(b, "time_discovered_completed_ns");
    ms_buf_puts(b, "}");
}

static void put_flight(struct ms_buf *b)
{
    uint32_t seq = below(10);
    ms_buf_puts(b, "{\"version\":\"2.10\",\"pg_config\":{");
    for (unsigned i = 0, n = below(4); i < n; i++)
        ms_buf_printf(b, "%s\"%u\":{\"name\":\"%u\",\"desc\":\"%s\",\"ranks\":\"[%u, %u]\"}",
                      i != 0 ? "," : "", i, i,
                      below(2) == 0   ? ""
                      : below(2) == 0 ? "d"
                                      : "dp\\u00e4",
                      i, i + 1);
    ms_buf_puts(b, below(20) == 0 ? "},\"entries\":{" : "},\"entries\":[");
    for (unsigned i = 0, n = below(14); i < n; i++) {
        ms_buf_puts(b, i != 0 ? "," : "");
        put_flight_entry(b, &seq);
    }
    ms_buf_puts(b, "]}");
}

/* One byte is another, or some are gone. */
static void damage(struct ms_buf *b)
{
    if (b->n < 2 || below(3) != 0)
        return;
    const uint32_t at = below((uint32_t)b->n);
    if (below(2) == 0)
        b->n = at;
    else
        b->p[at] = " \"{}[],:0x\\"[below(11)];
}

static void pack(struct ms_buf *b)
{
    static unsigned char packed[1 << 18];
    z_stream z = {.next_in = (unsigned char *)b->p,
                  .avail_in = (unsigned)b->n,
                  .next_out = packed,
                  .avail_out = sizeof packed};
    ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    ms_buf_clear(b);
    ms_buf_put(b, (char *)packed, z.total_out);
    deflateEnd(&z);
    if (below(3) == 0)
        b->n -= below((uint32_t)b->n);
}

/* Imports a file by its name alone when `there` is its directory. */
static enum ms_rc import_from(const char *there, const char *path, const char *db,
                              struct mstx_import_result *result, struct ms_err *err)
{
    const int here = open(".", O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(here, 0);
    ck_assert_int_eq(chdir(there), 0);
    const enum ms_rc rc =
        mstx_import(strcmp(there, ".") == 0 ? path : strrchr(path, '/') + 1, db, result, err);
    ck_assert_int_eq(fchdir(here), 0);
    close(here);
    return rc;
}

static void record_file(const char *kind, unsigned seed, struct ms_buf *text, struct ms_buf *record)
{
    char path[128], db[128];
    struct mstx_import_result result = {0};
    struct ms_err err = {0};
    struct ms_buf out = {.max = 1 << 24};
    scratch_dir(dir);
    static const char *const names[] = {"rank_0.json",          "rank_3.json", "trace.7.json",
                                        "rank_2147483647.json", "none.json",   "9",
                                        "rank_2147483648"};
    snprintf(path, sizeof path, "%s/%s", dir, names[seed % 7]);
    snprintf(db, sizeof db, "%s/run.db", dir);
    write_file(path, text->p != NULL ? text->p : "", text->n);
    const enum ms_rc rc = import_from(seed % 4 == 0 ? dir : ".", path, db, &result, &err);
    if (rc == MS_OK) {
        ms_buf_printf(&out, "%llu %llu %llu\n", (unsigned long long)result.files,
                      (unsigned long long)result.records, (unsigned long long)result.unfinished);
        ck_ok(mstx_tl_open(&tl, db, &err), err);
        tell_run(&out);
        mstx_tl_close(tl);
        tl = NULL;
    } else {
        ms_buf_puts(&out, err.msg);
    }
    leave_out_dir(&out);
    ms_buf_printf(record, "%s %u %d %06x\n", kind, seed, (int)rc, low(ms_buf_slice(&out)));
    if (getenv("FOREIGN_SHOW") != NULL && strtoul(getenv("FOREIGN_SHOW"), NULL, 10) == seed)
        printf("%s\n%s\n", text->n != 0 ? ms_buf_z(text) : "", ms_buf_z(&out));
    ms_buf_free(&out);
    scratch_remove(dir);
}

static void record_files(struct ms_buf *record)
{
    for (unsigned seed = 1; seed <= TRACES + FLIGHTS; seed++) {
        struct ms_buf text = {.max = 1 << 20};
        const bool is_trace = seed <= TRACES;
        state = seed;
        if (is_trace)
            put_trace(&text);
        else
            put_flight(&text);
        damage(&text);
        if (is_trace && below(6) == 0)
            pack(&text);
        record_file(is_trace ? "trace" : "flight", seed, &text, record);
        ms_buf_free(&text);
    }
}

START_TEST(formats_of_others_are_written_as_on_record)
{
    struct ms_buf now = {.max = 1 << 20};
    for (unsigned seed = 1; seed <= CAPTURES; seed++)
        record_capture(seed, &now);
    record_files(&now);
    recorded_check_file(
        RECORD, &now,
        "a capture and hashes of its Chrome trace, trace view, Perfetto trace, csv, "
        "Ascend database, "
        "its directory, flight dumps; a file, the return code, hash of the run; "
        "FOREIGN_SHOW=NAME or "
        "CASE shows it");
    ms_buf_free(&now);
}
END_TEST

RECORDED_MAIN("foreign_recorded", formats_of_others_are_written_as_on_record)
