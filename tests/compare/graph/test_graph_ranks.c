/* SPDX-License-Identifier: MIT */
#include "tests/support/graph_made.h"

#define GROUP                                                                                      \
    ",\"group\":{\"type\":\"torch.ProcessGroup\",\"group_ranks\":[0,1],\"group_id\":\"g\"}"
#define SEND(name, where, rank)                                                                    \
    "\"Distributed." name                                                                          \
    ".forward\":{\"input_args\":[" FLAT("1.0") "],\"input_kwargs\":{\"" where                      \
                                               "\":{\"type\":\"int\",\"value\":" rank "}" GROUP    \
                                               "},\"output\":[]}"
#define ALL(name) SEND(name, "op", "0")

/* Two ranks with a call each, and the link that rank 0's gets. */
static const struct {
    const char *call0, *dump0, *call1, *dump1, *link;
} talks[] = {
    {"send.0", SEND("send.0", "dst", "1"), "recv.0", SEND("recv.0", "src", "0"),
     "{\"communications_type\": \"send\", \"nodes_info\": {\"1\": [\"Nan\","
     " \"Distributed.recv.0.forward\"]}}"},
    {"irecv.0", SEND("irecv.0", "src", "1"), "isend.0", SEND("isend.0", "dst", "0"),
     "{\"communications_type\": \"receive\", \"nodes_info\": {\"1\": [\"Nan\","
     " \"Distributed.isend.0.forward\"]}}"},
    {"send.0", SEND("send.0", "dst", "1"), "recv.0", SEND("recv.0", "src", "3"), "{}"},
    {"isend.0", SEND("isend.0", "dst", "1"), "recv.0", SEND("recv.0", "src", "0"),
     "{\"communications_type\": \"send\", \"nodes_info\": {\"1\": [\"Nan\","
     " \"Distributed.recv.0.forward\"]}}"},
    {"all_reduce.0", ALL("all_reduce.0"), "all_reduce.0", ALL("all_reduce.0"),
     "{\"communications_type\": \"send_receive\", \"nodes_info\": {\"1\": [\"Nan\","
     " \"Distributed.all_reduce.0.forward\"]}}"},
    {"all_reduce.0", ALL("all_reduce.0"), "all_gather.0", ALL("all_gather.0"), "{}"},
    {"scatter.0", SEND("scatter.0", "src", "0"), "scatter.0", SEND("scatter.0", "src", "0"),
     "{\"communications_type\": \"send\", \"nodes_info\": {\"1\": [\"Nan\","
     " \"Distributed.scatter.0.forward\"]}}"},
    {"gather.0", SEND("gather.0", "dst", "1"), "gather.0", SEND("gather.0", "dst", "1"),
     "{\"communications_type\": \"send\", \"nodes_info\": {\"1\": [\"Nan\","
     " \"Distributed.gather.0.forward\"]}}"},
};

START_TEST(calls_of_two_ranks_meet)
{
    for (size_t i = 0; i < sizeof talks / sizeof *talks; i++) {
        char c0[256], c1[256], d0[2048], d1[2048], id[128];
        begin_pair();
        conf.golden = NULL;
        snprintf(c0, sizeof c0, "{\"Distributed.%s.forward\":null}", talks[i].call0);
        snprintf(c1, sizeof c1, "{\"Distributed.%s.forward\":null}", talks[i].call1);
        snprintf(d0, sizeof d0, DUMP("%s"), talks[i].dump0);
        snprintf(d1, sizeof d1, DUMP("%s"), talks[i].dump1);
        put_rank(target, "rank0", c0, d0, NULL);
        put_rank(target, "rank1", c1, d1, NULL);
        ck_ok(graph_run(&conf, NULL, &made, &err), err);
        snprintf(id, sizeof id, "NPU_0_0_Distributed.%s.forward", talks[i].call0);
        ck_assert_msg(strcmp(ask_of("matched_distributed", id), talks[i].link) == 0, "case %zu: %s",
                      i, ask_of("matched_distributed", id));
        expect("SELECT rank_list FROM tb_config", "[0, 1]");
        tear_down();
    }
}
END_TEST

#define IN_GROUP(name, group, ranks)                                                               \
    "\"Distributed." name                                                                          \
    ".forward\":{\"input_args\":[" FLAT("1.0") "],\"input_kwargs\":{\"group\":{\"type\":\"torch."  \
                                               "ProcessGroup\",\"group_ranks\":[" ranks            \
                                               "],\"group_id\":\"" group "\"}},\"output\":[]}"

static void expect_link(const char *node, const char *wanted)
{
    char id[128];
    snprintf(id, sizeof id, "NPU_0_%s.forward", node);
    ck_assert_str_eq(ask_of("matched_distributed", id), wanted);
}

START_TEST(the_second_call_meets_the_second)
{
    begin_pair();
    conf.golden = NULL;
    put_rank(target, "rank0",
             "{\"Distributed.isend.0.forward\":null,\"Distributed.isend.1.forward\":null}",
             DUMP(SEND("isend.0", "dst", "1") "," SEND("isend.1", "dst", "1")), NULL);
    put_rank(target, "rank1",
             "{\"Distributed.irecv.0.forward\":null,\"Distributed.irecv.1.forward\":null}",
             DUMP(SEND("irecv.0", "src", "0") "," SEND("irecv.1", "src", "0")), NULL);
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    expect_link("0_Distributed.isend.0", "{\"communications_type\": \"send\", \"nodes_info\":"
                                         " {\"1\": [\"Nan\", \"Distributed.irecv.0.forward\"]}}");
    expect_link("0_Distributed.isend.1", "{\"communications_type\": \"send\", \"nodes_info\":"
                                         " {\"1\": [\"Nan\", \"Distributed.irecv.1.forward\"]}}");
    expect_link("1_Distributed.irecv.1", "{\"communications_type\": \"receive\", \"nodes_info\":"
                                         " {\"0\": [\"Nan\", \"Distributed.isend.1.forward\"]}}");
    tear_down();
}
END_TEST

START_TEST(calls_meet_within_their_group)
{
    static const char two[] = "{\"Distributed.all_reduce.0.forward\":null,"
                              "\"Distributed.all_reduce.1.forward\":null}",
                      one[] = "{\"Distributed.all_reduce.0.forward\":null}";
    begin_pair();
    conf.golden = NULL;
    put_rank(target, "rank0", two,
             DUMP(IN_GROUP("all_reduce.0", "g", "0,1") "," IN_GROUP("all_reduce.1", "h", "0,2")),
             NULL);
    put_rank(target, "rank1", one, DUMP(IN_GROUP("all_reduce.0", "g", "0,1")), NULL);
    put_rank(target, "rank2", one, DUMP(IN_GROUP("all_reduce.0", "h", "0,2")), NULL);
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    expect_link("0_Distributed.all_reduce.0",
                "{\"communications_type\": \"send_receive\", \"nodes_info\":"
                " {\"1\": [\"Nan\", \"Distributed.all_reduce.0.forward\"]}}");
    expect_link("0_Distributed.all_reduce.1",
                "{\"communications_type\": \"send_receive\", \"nodes_info\":"
                " {\"2\": [\"Nan\", \"Distributed.all_reduce.0.forward\"]}}");
    expect_link("2_Distributed.all_reduce.0",
                "{\"communications_type\": \"send_receive\", \"nodes_info\":"
                " {\"0\": [\"Nan\", \"Distributed.all_reduce.1.forward\"]}}");
    tear_down();
}
END_TEST

/* The root as the second argument, and by its name. */
#define BROADCAST(args, named)                                                                     \
    DUMP("\"Distributed.broadcast.0.forward\":{\"input_args\":[" FLAT("1.0") args                  \
         "],\"input_kwargs\":{" named "\"group\":{\"type\":\"torch.ProcessGroup\","                \
         "\"group_ranks\":[0,1,2],\"group_id\":\"g\"}},\"output\":[]}")
#define ROOT "{\"type\":\"int\",\"value\":1}"

START_TEST(a_broadcast_goes_from_its_root_to_all_others)
{
    static const char *const dumps[] = {BROADCAST("," ROOT, ""),
                                        BROADCAST("", "\"src\":" ROOT ",")};
    for (int how = 0; how < 2; how++) {
        begin_pair();
        conf.golden = NULL;
        for (int i = 0; i < 3; i++) {
            char rank[16];
            snprintf(rank, sizeof rank, "rank%d", i);
            put_rank(target, rank, "{\"Distributed.broadcast.0.forward\":null}", dumps[how], NULL);
        }
        ck_ok(graph_run(&conf, NULL, &made, &err), err);
        expect_link("1_Distributed.broadcast.0",
                    "{\"communications_type\": \"send\", \"nodes_info\":"
                    " {\"0\": [\"Nan\", \"Distributed.broadcast.0.forward\"],"
                    " \"2\": [\"Nan\", \"Distributed.broadcast.0.forward\"]}}");
        expect_link("2_Distributed.broadcast.0",
                    "{\"communications_type\": \"receive\", \"nodes_info\":"
                    " {\"1\": [\"Nan\", \"Distributed.broadcast.0.forward\"]}}");
        tear_down();
    }
}
END_TEST

START_TEST(a_node_of_one_side_has_the_micro_step_that_its_name_says)
{
    begin_pair();
    make_two("{\"Module.a.A.forward.0\":null}", DUMP(""),
             "{\"Module.a.A.forward.0\":null,\"Module.b.B.forward.3\":null,"
             "\"Torch.x.0.forward\":\"Module.b.B.forward.3\"}",
             DUMP(""));
    ck_assert_str_eq(ask_of("micro_step_id", "Bench_0_0_Module.a.A.forward.0"), "0");
    ck_assert_str_eq(ask_of("micro_step_id", "Bench_0_0_Module.b.B.forward.3"), "3");
    ck_assert_str_eq(ask_of("micro_step_id", "Bench_0_0_Torch.x.0.forward"), "3");
    tear_down();
}
END_TEST

START_TEST(members_of_a_batch_meet_each_by_itself)
{
    static const char construct[] = "{\"Distributed.batch_isend_irecv.0.forward\":null}";
    static const char id[] = "NPU_0_0_Distributed.batch_isend_irecv.0.forward";
    for (int how = 0; how < 3; how++) {
        begin_pair();
        conf.golden = NULL;
        conf.batch = (enum graph_batch)how;
        put_rank(target, "rank0", construct, BATCH(MEMBER("isend", "1") "," MEMBER("irecv", "1")),
                 NULL);
        put_rank(target, "rank1", construct, BATCH(MEMBER("irecv", "0") "," MEMBER("isend", "0")),
                 NULL);
        ck_ok(graph_run(&conf, NULL, &made, &err), err);
        const char *link = ask_of("matched_distributed", id);
        if (how == GRAPH_BATCH_LIST)
            ck_assert(strncmp(link, "[{\"communications_type\": \"send\"", 30) == 0 &&
                      strstr(link, "\"receive\"") != NULL);
        else if (how == GRAPH_BATCH_FIRST)
            ck_assert(strncmp(link, "{\"communications_type\": \"send\"", 29) == 0);
        else
            ck_assert_str_eq(link, "{}");
        ck_assert_ptr_null(strstr(ask_of("input_data", id), "\"peer\""));
        tear_down();
    }
}
END_TEST

START_TEST(ranks_of_both_sides_are_intersected)
{
    begin_pair();
    put_rank(target, "step0/rank0", ONE, DUMP(""), NULL);
    put_rank(target, "step1/rank0", ONE, DUMP(""), NULL);
    put_rank(golden, "step1/rank0", ONE, DUMP(""), NULL);
    put_rank(golden, "step2/rank0", ONE, DUMP(""), NULL);
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    expect("SELECT step_list || rank_list FROM tb_config", "[1][0]");
    ck_assert_uint_eq(made.steps, 1);
    tear_down();
    begin_pair();
    put_rank(target, "rank0", ONE, DUMP(""), NULL);
    put_rank(target, "rank2", ONE, DUMP(""), NULL);
    put_rank(golden, "rank1", ONE, DUMP(""), NULL);
    put_rank(golden, "rank3", ONE, DUMP(""), NULL);
    ck_assert_int_eq(graph_run(&conf, NULL, &made, &err), MS_E_ARG);
    ck_says(err, "no rank and step in common");
    tear_down();
}
END_TEST

START_TEST(a_rank_that_cannot_be_read_is_left_out)
{
    begin_pair();
    conf.golden = NULL;
    put_rank(target, "rank0", ONE, DUMP(""), NULL);
    put_rank(target, "rank1", ONE, "[]", NULL);
    put_rank(target, "rank2", ONE, DUMP(""), NULL);
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    ck_assert_uint_eq(made.left_out, 1);
    ck_assert_uint_eq(made.ranks, 2);
    expect("SELECT rank_list FROM tb_config", "[0, 2]");
    expect("SELECT group_concat(DISTINCT rank) FROM tb_nodes", "0,2");
    tear_down();
    begin_pair();
    conf.golden = NULL;
    put_rank(target, "rank0", ONE, "[]", NULL);
    put_rank(target, "rank1", ONE, "[]", NULL);
    ck_assert_int_eq(graph_run(&conf, NULL, &made, &err), MS_E_FORMAT);
    ck_says(err, "rank0");
    tear_down();
}
END_TEST

TEST_MAIN("graph_ranks", calls_of_two_ranks_meet, the_second_call_meets_the_second,
          calls_meet_within_their_group, a_broadcast_goes_from_its_root_to_all_others,
          a_node_of_one_side_has_the_micro_step_that_its_name_says,
          members_of_a_batch_meet_each_by_itself, ranks_of_both_sides_are_intersected,
          a_rank_that_cannot_be_read_is_left_out)
