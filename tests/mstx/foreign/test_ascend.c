/* SPDX-License-Identifier: MIT
 *
 * Ascend databases: tables and rows as MindStudio Insight and msprof-analyze ask for
 * them, made from captures of known content; and read back when parts are missing.
 */
#include "mstx/format/comm.h"
#include "mstx/format/comm_marked.h"
#include "tests/support/scratch_run.h"

static struct ms_store *out;

static void export_db(const char *name)
{
    char path[128];
    struct ms_err e = {0};
    snprintf(path, sizeof path, "%s/%s", dir, name);
    ck_ok(mstx_export_ascend_db(tl, path, &e), e);
    if (strstr(name, ".db") != NULL)
        ck_ok(ms_store_open(&out, path, &e), e);
}

static void end_export(void)
{
    ms_store_close(out);
    end_run();
}

/* Process 4242 of rank 0: a range, a push, a mark in a domain, one range with a device side. */
static void make_one_rank(struct maker *m)
{
    begin_run(m, 0);
    uint32_t step = maker_text(m, "step 7"), ex = maker_text(m, "ex");
    uint16_t d = maker_domain(m, "domain");
    maker_ring(m, 1, 1, 1024);
    maker_begin_range(m, 0, 1, step, 0);
    maker_push(m, 100, 0, ex);
    maker_pop(m, 200, 0, ex, 100);
    maker_mark(m, 300, ex, d);
    maker_rec(m, MSTX_REC_STREAM, 350, 0x30, 0, 0, UINT64_C(0x3000000002), 0);
    maker_rec(m, MSTX_REC_BEGIN, 400, 2, ex, d, 0x30, MSTX_F_STREAM);
    maker_end_range(m, 500, 2, ex, d, 400, 0);
    maker_rec(m, MSTX_REC_DEVICE, 400, 2, 0, 0, 5000000450, 0);
    maker_rec(m, MSTX_REC_DEVICE, 400, 2, 1, 0, 5000000550, 0);
    maker_rec(m, MSTX_REC_COUNTER, 700, 0, step, 0, 1, 0);
    maker_end_range(m, 1000, 1, step, 0, 0, 0);
    maker_end_ring(m);
    maker_end(m);
}

static void make_two_ranks(void)
{
    struct maker m;
    make_one_rank(&m);
    maker_begin(&m, run, 1, 5000);
    uint32_t a = maker_text(&m, "a");
    maker_ring(&m, 1, 1, 5001);
    maker_mark(&m, 50, a, 0);
    maker_end_ring(&m);
    maker_end(&m);
    open_path(run);
}

START_TEST(every_table_has_the_columns_that_readers_name)
{
    static const char *const queries[] = {
        "SELECT name, value FROM META_DATA",
        "SELECT id, value FROM STRING_IDS",
        "SELECT startTimeNs, endTimeNs FROM SESSION_TIME_INFO",
        "SELECT id, name FROM NPU_INFO",
        "SELECT rankId, deviceId FROM RANK_DEVICE_MAP",
        "SELECT hostUid, hostName FROM HOST_INFO",
        "SELECT startNs, endNs, eventType, rangeId, category, message, globalTid, endGlobalTid,"
        " domainId, connectionId FROM MSTX_EVENTS",
        "SELECT startNs, endNs, deviceId, connectionId, globalTaskId, globalPid, taskType,"
        " contextId, streamId, taskId, modelId FROM TASK",
        "SELECT id, startNs, endNs FROM STEP_TIME"};
    make_two_ranks();
    export_db("all.db");
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        free(rows_of(out, queries[i]));
    ck_rows(out, "SELECT name, value FROM META_DATA",
            "SCHEMA_VERSION|1.2.0;SCHEMA_VERSION_MAJOR|1;SCHEMA_VERSION_MINOR|2;"
            "SCHEMA_VERSION_MICRO|0;");
    ck_rows(out, "SELECT * FROM ENUM_MSTX_EVENT_TYPE",
            "0|marker;1|push/pop;2|start/end;3|marker_ex;");
    ck_rows(out, "SELECT name FROM ENUM_API_TYPE WHERE id IN (5500, 50004) ORDER BY id",
            "communication;mstx;");
    ck_rows(out, "SELECT name FROM ENUM_HCCL_DATA_TYPE WHERE id IN (11, 65534)", "BFP16;N/A;");
    /* a reader adds this column itself */
    ck_rows(out, "SELECT count(*) FROM pragma_table_info('MSTX_EVENTS') WHERE name = 'depth'",
            "0;");
    end_export();
}
END_TEST

START_TEST(events_follow_the_rules_of_their_rows)
{
    make_two_ranks();
    export_db("all.db");
    ck_rows(out,
            "SELECT startNs - 1717575960000000000, endNs - 1717575960000000000, eventType, m.value,"
            " d.value, globalTid >> 32, globalTid & 0xFFFFFFFF, connectionId"
            " FROM MSTX_EVENTS JOIN STRING_IDS m ON m.id = message JOIN STRING_IDS d"
            " ON d.id = domainId ORDER BY startNs",
            "0|1000|2|step 7|default|4242|1024|4000000002;"
            "50|50|0|a|default|5000|5001|4000000003;"
            "100|200|1|ex|default|4242|1024|4000000004;"
            "300|300|0|ex|domain|4242|1024|4000000005;"
            "400|500|2|ex|domain|4242|1024|4000000006;");
    ck_rows(out, "SELECT DISTINCT rangeId, category, globalTid = endGlobalTid FROM MSTX_EVENTS",
            "4294967295|4294967295|1;");
    ck_rows(out,
            "SELECT startTimeNs - 1717575960000000000, endTimeNs - 1717575960000000000"
            " FROM SESSION_TIME_INFO",
            "0|1000;");
    ck_rows(out, "SELECT id, startNs - 1717575960000000000, endNs - startNs FROM STEP_TIME",
            "7|0|1000;");
    ck_rows(out, "SELECT hostName, count(*) FROM HOST_INFO", "testhost|1;");
    end_export();
}
END_TEST

START_TEST(only_events_with_a_device_side_have_a_task)
{
    make_two_ranks();
    export_db("all.db");
    ck_rows(out,
            "SELECT t.startNs - 1717575960000000000, t.endNs - 1717575960000000000, deviceId,"
            " t.connectionId, globalPid, n.value, contextId, streamId, modelId FROM TASK t"
            " JOIN STRING_IDS n ON n.id = taskType JOIN MSTX_EVENTS e USING (connectionId)",
            "450|550|2|4000000006|4242|MsTx|4294967295|48|4294967295;");
    ck_rows(out, "SELECT count(*) FROM TASK", "1;");
    end_export();
}
END_TEST

/* ---- what msprof-analyze makes of it ---------------------------------------- */

#define MESSAGE(op, group, stream)                                                                 \
    "{\\\"count\\\": \\\"25701386\\\",\\\"dataType\\\": \\\"fp16\\\",\\\"groupName\\\": "          \
    "\\\"" group "\\\",\\\"opName\\\": \\\"" op "\\\",\\\"streamId\\\": \\\"" stream "\\\"}"

/* Its hash of names. */
static uint64_t hash_of(const char *s)
{
    uint32_t h0 = 0, h1 = 0;
    for (; *s != '\0'; s++) {
        h0 = h0 * 29 + (uint32_t)(signed char)*s;
        h1 = h1 * 131 + (uint32_t)(signed char)*s;
    }
    return (uint64_t)h0 << 32 | h1;
}

/* As recipe mstx2commop names an operation: the n-th of its type in its group. */
static void name_operation(char to[96], struct ms_str op, struct ms_str group, unsigned n)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", MS_STR_ARG(group));
    snprintf(to, 96, "%.*s__%03u_%u_1", MS_STR_ARG(op), (unsigned)(hash_of(name) % 1000), n);
}

static void make_communication(void)
{
    struct maker m;
    begin_run(&m, 0);
    const uint32_t text[] = {maker_text(&m, MESSAGE("HcclAllReduce", "group_name_43", "32")),
                             maker_text(&m, MESSAGE("HcclBroadcast", "group_name_43", "32")),
                             maker_text(&m, "not of a collective")};
    uint16_t d = maker_domain(&m, "communication");
    maker_ring(&m, 1, 1, 1024);
    maker_rec(&m, MSTX_REC_STREAM, 5, 0x20, 0, 0, UINT64_C(0x2000000000), 0);
    for (uint64_t i = 0; i < 4; i++) { /* AllReduce, Broadcast, AllReduce, and a mark of others */
        uint64_t t = 100 * i + 100;
        uint32_t name = text[i == 3 ? 2 : i & 1];
        maker_rec(&m, MSTX_REC_BEGIN, t, i + 1, name, d, 0x20, MSTX_F_STREAM);
        maker_end_range(&m, t + 50, i + 1, name, d, t, 0);
        maker_rec(&m, MSTX_REC_DEVICE, t, i + 1, 0, 0, 5000000020 + t, 0);
        maker_rec(&m, MSTX_REC_DEVICE, t, i + 1, 1, 0, 5000000070 + t, 0);
    }
    finish_and_open(&m);
}

START_TEST(collectives_are_named_as_by_the_recipe_of_msprof_analyze)
{
    static const char *const expected[] = {"HcclAllReduce__491_0_1", "HcclBroadcast__491_0_1",
                                           "HcclAllReduce__491_1_1"};
    ck_assert_uint_eq(hash_of("default"), 6438267842827357177u);
    ck_assert_uint_eq(hash_of("group_name_43"), 3985310753366107491u);
    make_communication();
    export_db("comm.db");
    struct ms_stmt *st;
    struct ms_err e = {0};
    bool more;
    unsigned seen[2] = {0, 0}, n = 0;
    ck_ok(ms_store_prepare(
              out, &st,
              "SELECT json_extract(j, '$.opName'), json_extract(j, '$.groupName'), t.startNs,"
              " t.endNs, json_extract(j, '$.count'), t.streamId FROM (SELECT connectionId c,"
              " replace(m.value, '\\\"', '\"') j FROM MSTX_EVENTS JOIN STRING_IDS m ON m.id = "
              "message)"
              " JOIN TASK t ON t.connectionId = c WHERE j LIKE '%\"streamId\":%' AND j LIKE"
              " '%\"opName\":%' ORDER BY t.startNs",
              &e),
          e);
    ck_ok(ms_stmt_step(st, &more, &e), e);
    while (more) {
        char name[96];
        struct ms_str op = ms_stmt_get_str(st, 0);
        ck_assert_uint_lt(n, 3);
        name_operation(name, op, ms_stmt_get_str(st, 1), seen[ms_str_is(op, "HcclBroadcast")]++);
        ck_assert_str_eq(name, expected[n]);
        ck_assert_int_eq(ms_stmt_get_i64(st, 2) - EPOCH_NS, 120 + 100 * (int64_t)n);
        ck_assert_int_eq(ms_stmt_get_i64(st, 3) - ms_stmt_get_i64(st, 2), 50);
        ck_assert(ms_str_is(ms_stmt_get_str(st, 4), "25701386"));
        ck_assert_int_eq(ms_stmt_get_i64(st, 5), 32);
        n++;
        ck_ok(ms_stmt_step(st, &more, &e), e);
    }
    ms_stmt_free(st);
    ck_assert_uint_eq(n, 3);
    /* the table that the recipe would make is there already, from the device's times */
    ck_rows(
        out,
        "SELECT n.value, g.value, c.startNs - 1717575960000000000, c.endNs - c.startNs, y.value,"
        " c.dataType, c.count FROM COMMUNICATION_OP c JOIN STRING_IDS n ON n.id = c.opName JOIN"
        " STRING_IDS g ON g.id = c.groupName JOIN STRING_IDS y ON y.id = c.opType ORDER BY opId",
        "HcclAllReduce__491_0_1|group_name_43|120|50|HcclAllReduce_|3|25701386;"
        "HcclBroadcast__491_0_1|group_name_43|220|50|HcclBroadcast_|3|25701386;"
        "HcclAllReduce__491_1_1|group_name_43|320|50|HcclAllReduce_|3|25701386;");
    end_export();
}
END_TEST

/* As a hook records it: the group is introduced, COMM follows the BEGIN. */
static void begin_call(struct maker *m, uint64_t t, uint64_t id, uint32_t name, uint16_t domain,
                       const struct mstx_rec_comm *c)
{
    maker_rec(m, MSTX_REC_BEGIN, t, id, name, domain, 0, MSTX_F_MORE);
    maker_raw(m, c);
}

static void make_hooked_calls(void)
{
    struct maker m;
    const struct mstx_rec_comm all = {.count = 1000,
                                      .group = 1,
                                      .peer = -1,
                                      .dtype = MSTX_TYPE_FP64,
                                      .reduce = MSTX_REDUCE_SUM,
                                      .type = MSTX_REC_COMM,
                                      .op = MSTX_COMM_ALLREDUCE,
                                      .lib = MSTX_LIB_MPI,
                                      .elem = 8};
    struct mstx_rec_comm send = all, wait = all;
    struct {
        struct mstx_comm_group head;
        char name[13];
    } group = {{.uid = 99, .size = 4, .rank = 0}, "group_name_43"};
    send.op = MSTX_COMM_SEND;
    send.dtype = MSTX_TYPE_COMPLEX64; /* nothing that the vendor's tools know */
    send.peer = 3;
    wait.op = MSTX_COMM_WAIT;
    begin_run(&m, 0);
    const uint32_t name[] = {maker_text(&m, "MPI_Allreduce"), maker_text(&m, "MPI_Send"),
                             maker_text(&m, "MPI_Wait")};
    const struct mstx_rec_comm *call[] = {&all, &send, &wait};
    uint16_t d = maker_domain(&m, MSTX_COMM_DOMAIN);
    maker_entry(&m, MSTX_GROUP, 0, 1, (const char *)&group, sizeof group.head + 13);
    maker_ring(&m, 1, 1, 1024);
    for (uint64_t i = 0; i < 6; i++) {
        begin_call(&m, 100 * i, i + 1, name[i % 3], d, call[i % 3]);
        maker_end_range(&m, 100 * i + 50, i + 1, name[i % 3], d, 100 * i, 0);
    }
    finish_and_open(&m);
}

START_TEST(calls_that_hooks_saw_have_the_official_text)
{
    make_hooked_calls();
    export_db("comm.db");
    ck_rows(out,
            "SELECT s.value, count(*) FROM MSTX_EVENTS JOIN STRING_IDS s ON s.id = message"
            " GROUP BY 1 ORDER BY 1 DESC",
            "{\\\"count\\\": \\\"1000\\\",\\\"dataType\\\": \\\"na\\\",\\\"destRank\\\": \\\"3\\\","
            "\\\"groupName\\\": \\\"group_name_43\\\",\\\"opName\\\": \\\"HcclSend\\\","
            "\\\"streamId\\\": \\\"0\\\"}|2;"
            "{\\\"count\\\": \\\"1000\\\",\\\"dataType\\\": \\\"fp64\\\","
            "\\\"groupName\\\": \\\"group_name_43\\\",\\\"opName\\\": \\\"HcclAllreduce\\\","
            "\\\"streamId\\\": \\\"0\\\"}|2;MPI_Wait|2;");
    ck_rows(out,
            "SELECT n.value, c.endNs - c.startNs, c.dataType, c.count, c.rankSize,"
            " count(e.connectionId) FROM COMMUNICATION_OP c JOIN STRING_IDS n ON n.id = c.opName"
            " LEFT JOIN MSTX_EVENTS e USING(connectionId) GROUP BY opId ORDER BY opId",
            "HcclAllreduce__491_0_1|50|10|1000|4|1;HcclSend__491_0_1|50|65534|1000|4|1;"
            "HcclAllreduce__491_1_1|50|10|1000|4|1;HcclSend__491_1_1|50|65534|1000|4|1;");
    end_export();
}
END_TEST

/* The same send and receive, in the records of version 1.1 (rank 0) and in those of 1.2. */
static void make_both_versions(void)
{
    struct maker m;
    struct mstx_rec_comm c = {.count = 10,
                              .group = 1,
                              .peer = 3,
                              .dtype = MSTX_TYPE_FP64,
                              .reduce = MSTX_REDUCE_NONE,
                              .type = MSTX_REC_COMM,
                              .op = MSTX_COMM_SEND,
                              .lib = MSTX_LIB_MPI,
                              .elem = 8};
    const struct mstx_comm_group group = {.uid = 99, .size = 4};
    begin_run(&m, 0);
    for (int version = 1; version <= 2; version++) {
        const uint32_t name = maker_text(&m, "transfer");
        const uint16_t d = maker_domain(&m, MSTX_COMM_DOMAIN);
        maker_entry(&m, MSTX_GROUP, 0, 1, (const char *)&group, sizeof group);
        maker_ring(&m, 1, 1, 1024);
        for (uint64_t i = 0; i < 2; i++) {
            c.op = i == 0 ? MSTX_COMM_SEND : MSTX_COMM_RECV;
            c.tag_code = 7 + MSTX_TAG_CODE;
            const struct mstx_rec_comm_part part = mstx_comm_implied(&c);
            c.tag_code = version == 1 ? 0 : c.tag_code;
            c.flags = version == 1 ? MSTX_F_MORE : 0;
            maker_rec(&m, version == 1 ? MSTX_REC_BEGIN : MSTX_REC_CALL, 100 * i, i + 1, name, d,
                      version == 1 ? 0 : TICKS_0 + 100 * i + 50, MSTX_F_MORE);
            maker_raw(&m, &c);
            if (version == 2)
                continue;
            maker_raw(&m, &part);
            maker_end_range(&m, 100 * i + 50, i + 1, name, d, 100 * i, 0);
        }
        maker_end_ring(&m);
        maker_end(&m);
        if (version == 1)
            maker_begin(&m, run, 1, 4243);
    }
    open_path(run);
}

START_TEST(a_call_in_two_records_is_read_as_one_in_four)
{
    static const char expected[] =
        "transfer|Send|0|fp64|10|80|80|0|3|7|0|0|50;transfer|Recv|0|fp64|10|80|0|80|3|7|0|100|50;";
    make_both_versions();
    for (int rank = 0; rank < 2; rank++) {
        char sql[400];
        snprintf(sql, sizeof sql,
                 "SELECT name, op, seq, type, count, bytes, sent, received, peer, tag, flags,"
                 " start_ns - %" PRId64 ", end_ns - start_ns FROM comm_ops WHERE rank = %d"
                 " ORDER BY id",
                 EPOCH_NS, rank);
        ck_rows(mstx_tl_store(tl), sql, expected);
    }
    ck_rows(mstx_tl_store(tl), "SELECT events, unfinished FROM processes ORDER BY rank",
            "2|0;2|0;");
    end_run();
}
END_TEST

START_TEST(a_run_without_calls_leaves_the_table_to_the_recipe)
{
    make_two_ranks();
    export_db("all.db");
    ck_rows(out, "SELECT count(*) FROM sqlite_master WHERE name = 'COMMUNICATION_OP'", "0;");
    end_export();
}
END_TEST

/* ---- texts that frameworks give to calls ------------------------------------- */

START_TEST(calls_that_frameworks_mark_are_calls_of_the_run)
{
    make_communication();
    ck_rows(mstx_tl_store(tl),
            "SELECT o.name, o.op, o.seq, o.lib, o.type, o.count, o.bytes, o.stream, g.name"
            " FROM comm_ops o JOIN comm_groups g ON g.id = comm_group ORDER BY o.id",
            "HcclAllReduce|AllReduce|0|torch|fp16|25701386|51402772|32|group_name_43;"
            "HcclBroadcast|Broadcast|1|torch|fp16|25701386|51402772|32|group_name_43;"
            "HcclAllReduce|AllReduce|2|torch|fp16|25701386|51402772|32|group_name_43;");
    end_run();
}
END_TEST

START_TEST(both_forms_of_the_text_are_read_and_others_are_not)
{
    static const char *const wrong[] = {"",
                                        "{",
                                        "{}",
                                        "[]",
                                        "comm:",
                                        "comm:HcclSend,g,fp32",
                                        "comm:HcclSend,g,fp32,1,2",
                                        "comm:HcclSend,g,fp32,many",
                                        "{\"opName\": \"HcclSend\"}",
                                        "{\"opName\":\"\",\"groupName\":\"g\",\"dataType\":"
                                        "\"fp32\",\"count\":\"1\",\"streamId\":\"5\"}",
                                        "{\"opName\":\"a\",\"groupName\":\"g\",\"dataType\":"
                                        "\"fp32\",\"count\":\"-1\",\"streamId\":\"5\"}",
                                        "{\"opName\":[[{\"a\":1}]],\"groupName\":\"g\""};
    struct mstx_comm_marked s;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(!mstx__comm_parse_marked(ms_str_of(wrong[i]), &s), "%s", wrong[i]);
    ck_assert(mstx__comm_parse_marked(MS_STR("comm:HcclAllreduce,g 1,BFP16,12"), &s));
    ck_assert_int_eq(s.rec.op, MSTX_COMM_ALLREDUCE);
    ck_assert_int_eq(s.rec.dtype, MSTX_TYPE_BFP16);
    ck_assert_uint_eq(s.rec.count, 12);
    ck_assert_str_eq(s.group, "g 1");
    ck_assert(mstx__comm_parse_marked(
        MS_STR("{\"streamId\": \"7\", \"more\": [1], \"opName\": \"HcclNew\","
               "\"srcRank\": \"2\", \"dataType\": \"odd\", \"count\": \"3\","
               "\"groupName\": \"\"}"),
        &s));
    ck_assert_int_eq(s.rec.op, MSTX_COMM_NONE);
    ck_assert_int_eq(s.rec.dtype, MSTX_TYPE_NA);
    ck_assert_int_eq(s.rec.peer, 2);
    ck_assert_uint_eq(s.stream, 7);
    ck_assert_int_eq(s.size, -1);
    ck_assert(mstx__comm_parse_marked(
        MS_STR("{\"count\": \"3\",\"dataType\": \"fp32\",\"groupName\": \"0\",\"opName\": "
               "\"HcclReduce\",\"streamId\": \"0\",\"rootRank\": \"1\",\"reduceOp\": \"product\","
               "\"groupSize\": \"2\",\"groupRanks\": \"4 17\"}"),
        &s));
    ck_assert_int_eq(s.rec.peer, 1);
    ck_assert_int_eq(s.rec.reduce, MSTX_REDUCE_PROD);
    ck_assert_int_eq(s.size, 2);
    ck_assert_uint_eq(s.listed, 2);
    ck_assert_int_eq(s.world[1], 17);
}
END_TEST

START_TEST(ranks_are_mapped_to_the_device_of_their_streams)
{
    make_two_ranks();
    export_db("all.db");
    ck_rows(out, "SELECT rankId, deviceId FROM RANK_DEVICE_MAP ORDER BY 1", "0|2;1|0;");
    end_export();
}
END_TEST

/* Texts are written once each, however many there are. */
START_TEST(many_texts_are_written_once_each)
{
    enum { TEXTS = 2000 };
    struct maker m;
    begin_run(&m, 0);
    uint32_t text[TEXTS];
    for (int64_t i = 0; i < TEXTS; i++) {
        char name[16];
        snprintf(name, sizeof name, "text %d", (int)i);
        text[i] = maker_text(&m, name);
    }
    maker_ring(&m, 1, 1, 2 * TEXTS);
    for (int64_t i = 0; i < TEXTS; i++) {
        maker_push(&m, 10 + 100 * i, 0, text[i * 7 % TEXTS]);
        maker_pop(&m, 40 + 100 * i, 0, text[i * 7 % TEXTS], 10 + 100 * i);
    }
    finish_and_open(&m);
    export_db("all.db");
    ck_rows(out,
            "SELECT count(*), count(DISTINCT id), count(DISTINCT value) FROM STRING_IDS"
            " WHERE value LIKE 'text %'",
            "2000|2000|2000;");
    end_export();
}
END_TEST

/* From the first event to the end that comes last. */
START_TEST(a_session_lasts_until_its_last_end)
{
    struct maker m;
    begin_run(&m, 0);
    uint32_t a = maker_text(&m, "a");
    maker_ring(&m, 1, 1, 10);
    for (int64_t i = 0; i < 4; i++) {
        maker_push(&m, 10 + 100 * i, 0, a);
        maker_pop(&m, 40 + 100 * i, 0, a, 10 + 100 * i);
    }
    finish_and_open(&m);
    export_db("all.db");
    ck_rows(out,
            "SELECT startTimeNs - 1717575960000000000, endTimeNs - 1717575960000000000"
            " FROM SESSION_TIME_INFO",
            "10|340;");
    end_export();
}
END_TEST

START_TEST(a_directory_gets_a_database_for_each_rank)
{
    char path[160];
    struct ms_err e = {0};
    make_two_ranks();
    export_db("ranks");
    snprintf(path, sizeof path, "%s/ranks/ascend_pytorch_profiler_0.db", dir);
    ck_ok(ms_store_open(&out, path, &e), e);
    ck_rows(out, "SELECT (SELECT count(*) FROM MSTX_EVENTS), rankId FROM RANK_DEVICE_MAP", "4|0;");
    ms_store_close(out);
    snprintf(path, sizeof path, "%s/ranks/ascend_pytorch_profiler_1.db", dir);
    ck_ok(ms_store_open(&out, path, &e), e);
    ck_rows(out,
            "SELECT (SELECT count(*) FROM MSTX_EVENTS), (SELECT count(*) FROM TASK),"
            " (SELECT count(*) FROM STEP_TIME), rankId FROM RANK_DEVICE_MAP",
            "1|0|0|1;");
    end_export();
}
END_TEST

START_TEST(a_range_ended_elsewhere_tells_both_threads)
{
    struct maker m;
    begin_run(&m, 0);
    uint32_t a = maker_text(&m, "a");
    maker_ring(&m, 1, 1, 10);
    maker_begin_range(&m, 0, 1, a, 0);
    maker_end_ring(&m);
    maker_ring(&m, 2, 1, 11);
    maker_end_range(&m, 9, 1, a, 0, 0, MSTX_F_OTHER_THREAD);
    finish_and_open(&m);
    export_db("all.db");
    ck_rows(out, "SELECT globalTid & 65535, endGlobalTid & 65535 FROM MSTX_EVENTS", "10|11;");
    end_export();
}
END_TEST

START_TEST(a_run_without_events_has_a_session_without_length)
{
    struct maker m;
    begin_run(&m, 0);
    maker_ring(&m, 1, 1, 4242);
    finish_and_open(&m);
    export_db("all.db");
    ck_rows(out, "SELECT count(*) FROM MSTX_EVENTS", "0;");
    ck_rows(out, "SELECT endTimeNs - startTimeNs FROM SESSION_TIME_INFO", "0;");
    end_export();
}
END_TEST

/* ---- read back with parts missing ------------------------------------------- */

/* A database made by these statements, opened by import. */
static void import_made(const char *sql)
{
    char path[96];
    struct ms_store *s;
    struct ms_err e = {0};
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/in.db", dir);
    ck_ok(ms_store_create(&s, path, &e), e);
    ck_ok(ms_store_exec(s, sql, &e), e);
    ck_ok(ms_store_commit(s, &e), e);
    open_path(path);
}

#define STRINGS                                                                                    \
    "CREATE TABLE STRING_IDS(id INTEGER PRIMARY KEY, value TEXT);"                                 \
    "INSERT INTO STRING_IDS VALUES(1,'a'),(2,'dom');"
#define EVENTS                                                                                     \
    "CREATE TABLE MSTX_EVENTS(startNs, endNs, eventType, rangeId, category, message, globalTid,"   \
    " endGlobalTid, domainId, connectionId);"

START_TEST(a_database_with_events_alone_is_read)
{
    import_made(STRINGS EVENTS
                "INSERT INTO MSTX_EVENTS VALUES(100,200,2,0,0,1,(7<<32)|8,(7<<32)|8,2,4000000002),"
                "(150,150,3,0,0,99,(7<<32)|8,(7<<32)|9,2,4294967295);");
    ck_assert_uint_eq(mstx_tl_track_count(tl), 1);
    ck_assert_uint_eq(mstx_tl_process(tl, 0)->pid, 7);
    ck_assert_int_eq(mstx_tl_process(tl, 0)->rank, -1);
    ck_assert(ms_str_is(mstx_tl_track(tl, 0)->domain, "dom"));
    mstx_events ev = {0};
    struct ms_err e = {0};
    ck_ok(mstx_tl_view(tl, 0, INT64_MIN, INT64_MAX, 0, &ev, &e), e);
    ck_assert_uint_eq(ev.n, 2);
    ck_assert(ms_str_is(mstx_tl_text(tl, ev.p[0].name), "a"));
    ck_assert_int_eq(ev.p[0].dur_ns, 100);
    ck_assert(ms_str_is(mstx_tl_text(tl, ev.p[1].name), "(no name)"));
    ck_assert_uint_eq(ev.p[1].kind, MSTX_EV_MARK);
    ck_assert_uint_eq(ev.p[1].end_tid, 9);
    ms_vec_free(&ev);
    end_run();
}
END_TEST

START_TEST(an_event_on_two_devices_has_two_rows_of_csv)
{
    char path[96];
    struct ms_err e = {0};
    size_t n;
    import_made(
        STRINGS EVENTS
        "INSERT INTO MSTX_EVENTS VALUES(1000,2000,2,0,0,1,(7<<32)|8,(7<<32)|8,2,4000000002),"
        "(3000,3000,0,0,0,1,(7<<32)|8,(7<<32)|8,2,4000000003);"
        "CREATE TABLE TASK(startNs, endNs, deviceId, connectionId, globalTaskId, globalPid,"
        " taskType, contextId, streamId, taskId, modelId);"
        "INSERT INTO TASK VALUES(1500,1750,1,4000000002,2,7,1,0,3,0,0),"
        "(1100,1200,0,4000000002,1,7,1,0,3,0,0);");
    snprintf(path, sizeof path, "%s/out.csv", dir);
    ck_ok(mstx_export_csv(tl, path, &e), e);
    char *text = slurp(path, &n);
    ck_assert_ptr_nonnull(strstr(text,
                                 "\n0,7,8,N/A,start/end,N/A,N/A,1.000,2.000,N/A,a,dom,1.100,1.200\n"
                                 "1,7,8,N/A,start/end,N/A,N/A,1.000,2.000,N/A,a,dom,1.500,1.750\n"
                                 "host,7,8,N/A,marker,N/A,N/A,3.000,3.000,N/A,a,dom,N/A,N/A\n"));
    free(text);
    end_run();
}
END_TEST

START_TEST(a_table_without_its_columns_is_told_and_the_others_are_read)
{
    import_made(STRINGS EVENTS "INSERT INTO MSTX_EVENTS VALUES(1,2,2,0,0,1,1,1,2,0);"
                               "CREATE TABLE CANN_API(startNs, endNs);");
    ck_assert_uint_eq(mstx_tl_track_count(tl), 1);
    ck_rows(mstx_tl_store(tl), "SELECT count(*), instr(text, 'CANN_API') > 0 FROM problems",
            "1|1;");
    end_run();
}
END_TEST

START_TEST(rows_without_sensible_times_are_counted_and_left_out)
{
    import_made(STRINGS EVENTS "INSERT INTO MSTX_EVENTS VALUES"
                               "(1,2,2,0,0,1,1,1,2,0),(5,4,2,0,0,1,1,1,2,0),"
                               "(NULL,4,2,0,0,1,1,1,2,0),(-1,4,2,0,0,1,1,1,2,0),"
                               "(1,9223372036854775807,2,0,0,1,1,1,2,0);");
    ck_assert_uint_eq(mstx_tl_track(tl, 0)->events, 1);
    ck_rows(mstx_tl_store(tl), "SELECT text FROM problems",
            "4 rows have times that make no sense;");
    end_run();
}
END_TEST

START_TEST(a_database_of_something_else_is_refused)
{
    static const char *const other[] = {"CREATE TABLE t(x);", STRINGS,
                                        STRINGS "CREATE TABLE TASK(x);"};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        char path[96], to[96];
        struct ms_store *s;
        struct mstx_import_result r;
        struct ms_err e = {0};
        scratch_dir(dir);
        snprintf(path, sizeof path, "%s/in.db", dir);
        snprintf(to, sizeof to, "%s/run.db", dir);
        ck_ok(ms_store_create(&s, path, &e), e);
        ck_ok(ms_store_exec(s, other[i], &e), e);
        ck_ok(ms_store_commit(s, &e), e);
        ck_assert_int_eq(mstx_import(path, to, &r, &e), MS_E_FORMAT);
        ck_says(e, "Ascend profiler");
        ck_assert_int_ne(access(to, F_OK), 0);
        scratch_remove(dir);
    }
}
END_TEST

TEST_MAIN("ascend", every_table_has_the_columns_that_readers_name,
          events_follow_the_rules_of_their_rows, only_events_with_a_device_side_have_a_task,
          collectives_are_named_as_by_the_recipe_of_msprof_analyze,
          calls_that_hooks_saw_have_the_official_text, a_call_in_two_records_is_read_as_one_in_four,
          a_run_without_calls_leaves_the_table_to_the_recipe,
          calls_that_frameworks_mark_are_calls_of_the_run,
          both_forms_of_the_text_are_read_and_others_are_not,
          ranks_are_mapped_to_the_device_of_their_streams, a_session_lasts_until_its_last_end,
          many_texts_are_written_once_each, a_directory_gets_a_database_for_each_rank,
          a_range_ended_elsewhere_tells_both_threads,
          a_run_without_events_has_a_session_without_length, a_database_with_events_alone_is_read,
          an_event_on_two_devices_has_two_rows_of_csv,
          a_table_without_its_columns_is_told_and_the_others_are_read,
          rows_without_sensible_times_are_counted_and_left_out,
          a_database_of_something_else_is_refused)
