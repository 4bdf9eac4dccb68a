/* SPDX-License-Identifier: MIT
 *
 * Tests of the door for communication hooks: a program that uses it as a hook does is run, and
 * its capture is read record by record.
 */
#include "tests/programs/run.h"

#include "mstx/format/comm.h"

static void run(const char *what, struct cap *c)
{
    rt_setup();
    ck_assert_int_eq(rt_wait(rt_spawn("tests/programs/comm_app", what, NULL, NULL)), 0);
    cap_load_one(c, rt_out);
}

/* The COMM record of the n-th communication range. */
static struct mstx_rec_comm call_at(const struct cap *c, size_t n)
{
    struct mstx_rec_comm rec = {0};
    for (size_t i = 0; i < c->n; i++) {
        if (c->rec[i].r.type != MSTX_REC_COMM || n-- != 0)
            continue;
        ck_assert_int_eq(c->rec[i - 1].r.type, MSTX_REC_BEGIN);
        ck_assert_int_ne(c->rec[i - 1].r.flags & MSTX_F_MORE, 0);
        memcpy(&rec, &c->rec[i].r, sizeof rec);
        return rec;
    }
    ck_abort_msg("there are fewer calls");
    return rec;
}

static size_t calls(const struct cap *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        n += c->rec[i].r.type == MSTX_REC_COMM;
    return n;
}

/* The name of a group, its members checked. */
static const char *group_name(const struct cap *c, uint32_t number, uint64_t uid)
{
    static char name[64];
    for (size_t i = 1; i <= c->ntexts; i++) {
        const struct mstx_text *e = c->text[i];
        struct mstx_comm_group g;
        if (e->kind != MSTX_GROUP || e->key != number)
            continue;
        memcpy(&g, e + 1, sizeof g);
        ck_assert_uint_eq(g.uid, uid);
        ck_assert_int_eq(g.size, 3);
        ck_assert_int_eq(g.rank, 1);
        ck_assert_uint_eq(g.listed, 3);
        const char *p = (const char *)(e + 1) + sizeof g;
        ck_assert_mem_eq(p, ((int32_t[]){4, 5, 6}), 12);
        snprintf(name, sizeof name, "%.*s", (int)(e->len - sizeof g - 12), p + 12);
        return name;
    }
    return NULL;
}

START_TEST(a_call_is_a_range_with_its_description)
{
    struct cap c;
    run("once", &c);
    ck_assert_uint_eq(calls(&c), 4);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, MSTX_COMM_DOMAIN, "MPI_Allreduce"), 3);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_END, MSTX_COMM_DOMAIN, "MPI_Allreduce"), 3);
    struct mstx_rec_comm r = call_at(&c, 0);
    ck_assert_uint_eq(r.count, 1024);
    ck_assert_uint_eq(r.elem, 4);
    ck_assert_int_eq(r.peer, -1);
    ck_assert_int_eq(r.op, MSTX_COMM_ALLREDUCE);
    ck_assert_int_eq(r.dtype, MSTX_TYPE_FP32);
    ck_assert_int_eq(r.reduce, MSTX_REDUCE_SUM);
    ck_assert_int_eq(r.lib, MSTX_LIB_MPI);
    ck_assert_str_eq(group_name(&c, r.group, 77), "tp");
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(each_class_counts_by_itself_and_each_communicator_anew)
{
    struct cap c;
    run("once", &c);
    ck_assert_uint_eq(call_at(&c, 0).seq, 0);
    ck_assert_uint_eq(call_at(&c, 1).seq, 1);
    ck_assert_uint_eq(call_at(&c, 2).seq, 0); /* the first P2P call */
    ck_assert_uint_eq(call_at(&c, 3).seq, 0); /* of the second communicator */
    ck_assert_uint_ne(call_at(&c, 3).group, call_at(&c, 0).group);
    ck_assert_str_eq(group_name(&c, call_at(&c, 3).group, 78), "dp");
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(what_arrived_stands_behind_the_end)
{
    struct cap c;
    struct mstx_rec_comm_part part[2];
    size_t n = 0;
    run("once", &c);
    for (size_t i = 0; i < c.n && n < 2; i++) {
        if (c.rec[i].r.type == MSTX_REC_COMM_PART)
            memcpy(&part[n++], &c.rec[i].r, sizeof part[0]);
    }
    ck_assert_uint_eq(n, 2);
    ck_assert_uint_eq(part[0].received, 80);
    ck_assert_int_eq(part[0].tag, 9);
    ck_assert_uint_eq(part[1].received, 40);
    ck_assert_int_eq(part[1].peer, 2);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(a_call_takes_two_records_unless_it_has_more_to_say)
{
    struct cap c;
    struct mstx_rec_comm_part part;
    size_t n = 0;
    run("transfers", &c);
    ck_assert_uint_eq(c.calls, 4);
    ck_assert_uint_eq(c.ended_in_place, 3); /* one received less */
    for (size_t i = 0; i < 4; i++) {
        const struct mstx_rec_comm r = call_at(&c, i);
        part = mstx_comm_implied(&r);
        ck_assert_int_eq(r.tag_code != 0, i != 1);
        ck_assert_int_eq(part.tag, i == 0 ? UINT16_MAX - MSTX_TAG_CODE : i == 1 ? -2 : 0);
        ck_assert_uint_eq(part.sent, i < 2 ? 80 : 0);
        ck_assert_uint_eq(part.received, i < 2 ? 0 : 80);
    }
    for (size_t i = 0; i < c.n; i++) {
        if (c.rec[i].r.type != MSTX_REC_COMM_PART)
            continue;
        memcpy(&part, &c.rec[i].r, sizeof part);
        ck_assert_int_eq(part.tag, n == 0 ? UINT16_MAX - MSTX_TAG_CODE + 1 : 0);
        ck_assert_uint_eq(part.received, n++ == 0 ? 0 : 72);
    }
    ck_assert_uint_eq(n, 2);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(a_call_that_outlives_its_segment_has_an_end_of_its_own)
{
    struct cap c;
    run("outlived", &c);
    ck_assert_uint_ge(c.files, 3);
    ck_assert_uint_eq(c.calls, 1);
    ck_assert_uint_eq(c.ended_in_place, 0);
    const struct mstx_rec *b = &cap_find(&c, MSTX_REC_BEGIN, "MPI_Allreduce")->r;
    const struct mstx_rec *e = &cap_find(&c, MSTX_REC_END, "MPI_Allreduce")->r;
    ck_assert_uint_eq(b->id, e->id);
    ck_assert_uint_eq(b->ticks, e->arg);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, "default", "between"), 30000);
    cap_free(&c);
    rt_done();
}
END_TEST

/* How often was asked, by what the ends say; *ranges of how many. */
static uint64_t polls(const struct cap *c, size_t *ranges)
{
    uint64_t sum = 0;
    *ranges = cap_count(c, MSTX_REC_BEGIN, MSTX_COMM_DOMAIN, "MPI_Iprobe");
    ck_assert_uint_eq(cap_count(c, MSTX_REC_END, MSTX_COMM_DOMAIN, "MPI_Iprobe"), *ranges);
    for (size_t i = 0; i < c->n; i++) {
        struct mstx_rec_comm_part part = {.polls = 1};
        if (c->rec[i].r.type != MSTX_REC_END)
            continue;
        ck_assert_uint_ge(c->rec[i].r.ticks, c->rec[i].r.arg);
        if ((c->rec[i].r.flags & MSTX_F_MORE) != 0)
            memcpy(&part, &c->rec[i + 1].r, sizeof part);
        sum += part.polls;
    }
    return sum;
}

/* A machine that stands still in between makes more of them, never others. */
START_TEST(asking_again_makes_a_range_longer)
{
    struct cap c;
    size_t ranges;
    run("asks", &c);
    ck_assert_uint_eq(polls(&c, &ranges), 6002);
    ck_assert_uint_ge(ranges, 3);
#if !defined(__SANITIZE_THREAD__) /* which makes a question longer than a pause */
    ck_assert_uint_lt(ranges, 3000);
#endif
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(asking_again_and_again_loses_no_call)
{
    struct cap c;
    size_t ranges;
    run("asks-much", &c);
    ck_assert_uint_eq(polls(&c, &ranges), 90000);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, "default", "between"), 30000);
    ck_assert_uint_ge(ranges, 30000);
    ck_assert_uint_lt(ranges, 60000);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(calls_in_a_pause_leave_no_record_but_count)
{
    struct cap c;
    run("paused", &c);
    ck_assert_uint_eq(calls(&c), 2);
    ck_assert_uint_eq(call_at(&c, 0).seq, 0);
    ck_assert_uint_eq(call_at(&c, 1).seq, 3);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(a_call_that_the_framework_marks_is_not_counted_twice)
{
    struct cap c;
    run("framework", &c);
    ck_assert_uint_eq(calls(&c), 1);
    ck_assert_uint_eq(call_at(&c, 0).seq, 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, MSTX_COMM_DOMAIN, "all by myself"), 1);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(open_calls_can_be_listed_until_another_thread_ends_them)
{
    struct cap c;
    char line[2][64] = {"", ""};
    char command[1300];
    rt_setup();
    snprintf(command, sizeof command, "%s open", rt_built("tests/programs/comm_app"));
    FILE *f = popen(command, "r");
    for (int i = 0; i < 2 && fgets(line[i], sizeof line[i], f) != NULL;)
        i++;
    ck_assert_int_eq(pclose(f), 0);
    ck_assert_str_eq(line[0], "MPI_Allreduce tp 1\n");
    ck_assert_str_eq(line[1], "");
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_END, MSTX_COMM_DOMAIN, "MPI_Allreduce"), 2);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(a_communicator_nobody_introduced_is_number_0)
{
    struct cap c;
    run("unknown", &c);
    ck_assert_uint_eq(calls(&c), 1);
    ck_assert_uint_eq(call_at(&c, 0).group, 0);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(the_official_text_has_its_backslashes)
{
    char text[512];
    struct mstx_rec_comm r = {.count = 1048576, .op = MSTX_COMM_ALLREDUCE, .dtype = MSTX_TYPE_FP32};
    size_t n = mstx_comm_message(text, sizeof text, &r, "group_name_0", 5);
    ck_assert_str_eq(text, "{\\\"count\\\": \\\"1048576\\\",\\\"dataType\\\": \\\"fp32\\\","
                           "\\\"groupName\\\": \\\"group_name_0\\\",\\\"opName\\\": "
                           "\\\"HcclAllreduce\\\",\\\"streamId\\\": \\\"5\\\"}");
    ck_assert_uint_eq(n, strlen(text));
    r = (struct mstx_rec_comm){.op = MSTX_COMM_SEND, .dtype = MSTX_TYPE_DERIVED, .peer = 3};
    mstx_comm_message(text, sizeof text, &r, "a\"b\\c", 0);
    ck_assert_ptr_nonnull(strstr(text, "\\\"destRank\\\": \\\"3\\\""));
    ck_assert_ptr_nonnull(strstr(text, "\\\"a_b_c\\\""));
    ck_assert_ptr_nonnull(strstr(text, "\\\"dataType\\\": \\\"na\\\""));
}
END_TEST

/* What a hang is told by: what was written is read back, in both forms, and other texts stand for themselves. */
START_TEST(a_text_tells_operation_group_and_size)
{
    static const struct {
        const char *text, *name, *group;
        int op, size, peer;
    } row[] = {
        {"{\"opName\":\"HcclAllGather\",\"groupName\":\"tp\",\"groupSize\":\"8\"}", "AllGather",
         "tp", MSTX_COMM_ALLGATHER, 8, -1},
        {"{\\\"groupName\\\": \\\"\\\",\\\"opName\\\": \\\"HcclRecv\\\"}", "Recv", "",
         MSTX_COMM_RECV, -1, -1},
        {"{\\\"opName\\\": \\\"HcclSend\\\",\\\"destRank\\\": \\\"12\\\"}", "Send", "",
         MSTX_COMM_SEND, -1, 12},
        {"{\"opName\":\"HcclRecv\",\"srcRank\":\"3\"}", "Recv", "", MSTX_COMM_RECV, -1, 3},
        {"comm:HcclAllreduce,dp,fp32,8", "AllReduce", "dp", MSTX_COMM_ALLREDUCE, -1, -1},
        {"comm:", "comm:", "", MSTX_COMM_NONE, -1, -1},
        {"{\"opName\":\"Fused\"}", "Fused", "", MSTX_COMM_NONE, -1, -1},
        {"{\"opName", "{\"opName", "", MSTX_COMM_NONE, -1, -1},
        {"gradients of layer 3", "gradients of layer 3", "", MSTX_COMM_NONE, -1, -1},
        {"", "", "", MSTX_COMM_NONE, -1, -1},
    };
    char text[512];
    struct mstx_comm_description t;
    struct mstx_rec_comm r = {.count = 4, .op = MSTX_COMM_BARRIER};
    mstx_comm_message(text, sizeof text, &r, "world", 5);
    mstx_comm_message_read(text, &t);
    ck_assert_str_eq(t.name, "Barrier");
    ck_assert_str_eq(t.group, "world");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        mstx_comm_message_read(row[i].text, &t);
        ck_assert_str_eq(t.name, row[i].name);
        ck_assert_str_eq(t.group, row[i].group);
        ck_assert_int_eq(t.op, row[i].op);
        ck_assert_int_eq(t.size, row[i].size);
        ck_assert_int_eq(t.peer, row[i].peer);
    }
}
END_TEST

START_TEST(a_call_is_spoken_with_its_number_and_who_is_at_its_other_end)
{
    static const struct {
        struct mstx_comm_description call;
        const char *spoken;
    } row[] = {
        {{MSTX_COMM_RECV, 4, 2, 3, "MPI_Recv", "half"}, "MPI_Recv (call 3) from rank 2 of half"},
        {{MSTX_COMM_SEND, 4, 0, 0, "MPI_Isend", ""}, "MPI_Isend (call 0) to rank 0"},
        {{MSTX_COMM_SENDRECV, 4, 1, 7, "MPI_Sendrecv", "w"},
         "MPI_Sendrecv (call 7) with rank 1 of w"},
        {{MSTX_COMM_RECV, 4, -1, 3, "MPI_Recv", "w"}, "MPI_Recv (call 3) of w"},
        {{MSTX_COMM_PROBE, 4, 5, 3, "MPI_Probe", "w"}, "MPI_Probe from rank 5 of w"},
        {{MSTX_COMM_BROADCAST, 4, 1, 9, "MPI_Bcast", "w"}, "MPI_Bcast (call 9) of w"},
        {{MSTX_COMM_WAIT, -1, -1, 0, "MPI_Wait", ""}, "MPI_Wait"},
        {{MSTX_COMM_NONE, -1, -1, 1, "gradients", ""}, "gradients"},
    };
    char text[MSTX_COMM_SPOKEN];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        mstx_comm_speak(text, &row[i].call);
        ck_assert_str_eq(text, row[i].spoken);
    }
}
END_TEST

TEST_MAIN("rt_comm", a_call_is_a_range_with_its_description,
          each_class_counts_by_itself_and_each_communicator_anew,
          what_arrived_stands_behind_the_end, a_call_takes_two_records_unless_it_has_more_to_say,
          a_call_that_outlives_its_segment_has_an_end_of_its_own, asking_again_makes_a_range_longer,
          asking_again_and_again_loses_no_call, calls_in_a_pause_leave_no_record_but_count,
          a_call_that_the_framework_marks_is_not_counted_twice,
          open_calls_can_be_listed_until_another_thread_ends_them,
          a_communicator_nobody_introduced_is_number_0, the_official_text_has_its_backslashes,
          a_text_tells_operation_group_and_size,
          a_call_is_spoken_with_its_number_and_who_is_at_its_other_end)
