/* SPDX-License-Identifier: MIT */
#include "tests/support/graph_made.h"

static struct graph_param merge[2];

static void set_up(void)
{
    begin_pair();
    for (unsigned i = 0; i < 2; i++)
        merge[i] = (struct graph_param){1, 1, 1, 1, "tp-cp-ep-dp-pp"};
    conf.golden = NULL;
    conf.merge = merge;
}

static void expect_of(const char *column, const char *node, const char *wanted)
{
    char question[512];
    snprintf(question, sizeof question,
             "SELECT coalesce(%s, 'NULL') FROM tb_nodes WHERE node_name = '%s'", column, node);
    expect(question, wanted);
}

static void make(uint32_t rank_size, uint32_t tp, uint32_t pp)
{
    merge[0].rank_size = rank_size;
    merge[0].tp = tp;
    merge[0].pp = pp;
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
}

static void expect_refused(uint32_t rank_size, uint32_t tp, uint32_t pp, const char *why)
{
    merge[0].rank_size = rank_size;
    merge[0].tp = tp;
    merge[0].pp = pp;
    ms_err_clear(&err);
    ck_assert_int_eq(graph_run(&conf, NULL, &made, &err), MS_E_ARG);
    ck_assert_msg(strstr(err.msg, why) != NULL, "%s, expected %s", err.msg, why);
}

/* ---- tensor parallel ----------------------------------------------------------- */

static void put_op(int rank, const char *in, const char *output)
{
    char dump[4096], name[32];
    snprintf(dump, sizeof dump, DUMP(RECORD("Torch.f.0.forward", "%s", "%s")), in, output);
    snprintf(name, sizeof name, "rank%d", rank);
    put_rank(target, name, ONE, dump, NULL);
}

START_TEST(parts_of_a_tensor_are_merged)
{
    put_op(0, FLAT("1.5"), LEAF("2.0", "-1.0", "0.5", "3.0"));
    put_op(1, FLAT("1.5"), LEAF("1.0", "-2.0", "1.5", "4.0"));
    make(2, 2, 1);
    expect_of("json_extract(output_data, '$.\"Torch.f.0.forward.output.0\".Max')",
              "Torch.f.0.forward", "2.0");
    expect_of("json_extract(output_data, '$.\"Torch.f.0.forward.output.0\".Min')",
              "Torch.f.0.forward", "-2.0");
    expect_of("json_extract(output_data, '$.\"Torch.f.0.forward.output.0\".Mean')",
              "Torch.f.0.forward", "1.0");
    expect_of("json_extract(output_data, '$.\"Torch.f.0.forward.output.0\".Norm')",
              "Torch.f.0.forward", "5.0");
    expect_of("json_extract(input_data, '$.\"Torch.f.0.forward.input.0\".Max')",
              "Torch.f.0.forward", "1.5");
    expect_of("json_extract(parallel_merge_info, '$[4]')", "Torch.f.0.forward",
              "Norm of output.0: (3.0 ** 2 + 4.0 ** 2) ** 0.5 = 5.0");
    expect("SELECT rank_list FROM tb_config", "[0]");
}
END_TEST

START_TEST(strictly_it_is_told_in_the_official_words)
{
    put_op(0, FLAT("1.5"), LEAF("2.0", "-1.0", "0.5", "3.0"));
    put_op(1, FLAT("1.5"), LEAF("1.0", "-2.0", "1.5", "4.0"));
    conf.rules = &graph_rules_official;
    make(2, 2, 1);
    expect_of("json_extract(parallel_merge_info, '$[1]')", "Torch.f.0.forward",
              "The Max value merging method for output.0 is: max(2.0, 1.0) = 2.0");
    expect_of("json_extract(parallel_merge_info, '$[0]')", "Torch.f.0.forward",
              "This data is the merged data after tensor parallelism(TP), and the data is merged "
              "from rank [0, 1].");
}
END_TEST

START_TEST(equal_figures_are_no_parts)
{
    put_op(0, FLAT("1.5"), FLAT("2.0"));
    put_op(1, FLAT("1.5"), LEAF("2.0", "2.0", "2.0000001", "2.0"));
    make(2, 2, 1);
    expect_of("parallel_merge_info", "Torch.f.0.forward", "");
    expect_of("json_extract(output_data, '$.\"Torch.f.0.forward.output.0\".Norm')",
              "Torch.f.0.forward", "2.0");
}
END_TEST

START_TEST(nan_on_any_rank_is_nan_of_the_whole)
{
    put_op(0, FLAT("1.5"), FLAT("2.0"));
    put_op(1, FLAT("1.5"), LEAF("NaN", "1.0", "1.0", "1.0"));
    conf.overflow = true;
    make(2, 2, 1);
    expect_of("json_extract(output_data, '$.\"Torch.f.0.forward.output.0\".Max')",
              "Torch.f.0.forward", "nan");
    expect_of("overflow_level", "Torch.f.0.forward", "critical");
}
END_TEST

START_TEST(loose_operators_of_all_ranks_stand_together)
{
    for (int r = 0; r < 2; r++) {
        char name[16];
        snprintf(name, sizeof name, "rank%d", r);
        put_rank(target, name, "{\"Torch.ones.0.forward\":null,\"Torch.relu.0.forward\":null}",
                 DUMP(RECORD("Torch.ones.0.forward", "", FLAT("1.0"))), NULL);
    }
    make(2, 2, 1);
    expect_of("sub_nodes", "Apis_Between_Modules_All_Ranks.0",
              "[\"Apis_Between_Modules_Rank0.0\", \"Apis_Between_Modules_Rank1.0\"]");
    expect_of("sub_nodes", "Apis_Between_Modules_Rank1.0",
              "[\"Torch.ones_rank1.0.forward\", \"Torch.relu_rank1.0.forward\"]");
    expect_of("node_type", "Apis_Between_Modules_Rank1.0", "9");
    expect_of("json_extract(output_data, '$.\"Torch.ones_rank1.0.forward.output.0\".Max')",
              "Torch.ones_rank1.0.forward", "1.0");
}
END_TEST

/* ---- pipelines -------------------------------------------------------------------- */

#define LAYER(n)                                                                                   \
    "\"Module.layers." n ".L.forward.0\":\"Module.m.M.forward.0\","                                \
    "\"Torch.mm." n ".forward\":\"Module.layers." n ".L.forward.0\""
#define STAGE "{\"Module.m.M.forward.0\":null," LAYER("0") "," LAYER("1") "}"

static void put_stage(const char *top, const char *rank, const char *x, const char *y)
{
    char dump[8192];
    snprintf(
        dump, sizeof dump,
        DUMP(RECORD("Module.m.M.forward.0", FLAT("1.0"), "%s") "," RECORD(
            "Module.layers.0.L.forward.0", "%s",
            "%s") "," RECORD("Module.layers.1.L.forward.0", "%s",
                             "%s") "," RECORD("Torch.mm.0.forward", "%s",
                                              "%s") "," RECORD("Torch.mm.1.forward", "%s", "%s")),
        y, x, x, y, y, x, x, y, y);
    put_rank(top, rank, STAGE, dump, NULL);
}

START_TEST(layers_of_a_pipeline_stand_in_a_row)
{
    put_stage(target, "rank0", FLAT("1.0"), FLAT("2.0"));
    put_stage(target, "rank1", FLAT("3.0"), FLAT("4.0"));
    make(2, 1, 2);
    expect_of("sub_nodes", "Module.m.M.forward.0",
              "[\"Module.layers.0.L.forward.0\", \"Module.layers.1.L.forward.0\","
              " \"Module.layers.2.L.forward.0\", \"Module.layers.3.L.forward.0\"]");
    expect_of("sub_nodes", "Module.layers.2.L.forward.0", "[\"Torch.mm_rank1.0.forward\"]");
    expect_of("json_extract(output_data, '$.\"Module.layers.3.L.forward.0.output.0\".Max')",
              "Module.layers.3.L.forward.0", "4.0");
    expect_of("json_extract(output_data, '$.\"Module.m.M.forward.0.output.0\".Max')",
              "Module.m.M.forward.0", "4.0");
}
END_TEST

START_TEST(a_pipeline_compares_with_the_model_in_one_piece)
{
    static const char whole[] = "{\"Module.m.M.forward.0\":null," LAYER("0") "," LAYER(
        "1") "," LAYER("2") "," LAYER("3") "}";
    put_stage(target, "rank0", FLAT("1.0"), FLAT("2.0"));
    put_stage(target, "rank1", FLAT("3.0"), FLAT("4.0"));
    put_rank(golden, "rank0", whole,
             DUMP(RECORD("Torch.mm.2.forward", FLAT("3.0"),
                         FLAT("3.0")) "," RECORD("Torch.mm.3.forward", FLAT("4.0"), FLAT("9.0"))),
             NULL);
    conf.golden = golden;
    make(2, 1, 2);
    expect_of("json_extract(matched_node_link, '$[#-1]')", "Torch.mm_rank1.0.forward",
              "Torch.mm.2.forward");
    expect_of("precision_index", "Torch.mm_rank1.0.forward", "0");
    expect_of("precision_index", "Torch.mm_rank1.1.forward", "1");
}
END_TEST

START_TEST(chunks_of_a_pipeline_become_chunk_0)
{
#define CHUNK(c)                                                                                   \
    "\"Module." c ".M.forward.0\":null,\"Module." c ".layers.0.L.forward.0\":\"Module." c          \
    ".M.forward.0\""
#define CHUNKS(x)                                                                                  \
    DUMP(RECORD("Module.0.layers.0.L.forward.0", FLAT(x "1"), FLAT(x "2")) "," RECORD(             \
        "Module.1.layers.0.L.forward.0", FLAT(x "3"), FLAT(x "4")))
    put_rank(target, "rank0", "{" CHUNK("0") "," CHUNK("1") "}", CHUNKS("1."), NULL);
    put_rank(target, "rank1", "{" CHUNK("0") "," CHUNK("1") "}", CHUNKS("2."), NULL);
    merge[0].vpp = 2;
    make(2, 1, 2);
    expect("SELECT group_concat(node_name, ' ') FROM (SELECT node_name FROM tb_nodes"
           " WHERE up_node = 'Module.0.M.forward.0' ORDER BY node_order)",
           "Module.0.layers.0.L.forward.0 Module.0.layers.1.L.forward.0"
           " Module.0.layers.2.L.forward.0 Module.0.layers.3.L.forward.0");
    expect_of("json_extract(output_data, '$.\"Module.0.layers.3.L.forward.0.output.0\".Max')",
              "Module.0.layers.3.L.forward.0", "2.4");
    expect("SELECT count(*) FROM tb_nodes WHERE node_name LIKE 'Module.1.%'", "0");
}
END_TEST

/* ---- dumps as a result --------------------------------------------------------------- */

START_TEST(merged_ranks_can_be_written_as_a_dump)
{
    char path[256];
    struct probe_dump *d;
    put_op(0, FLAT("1.5"), LEAF("2.0", "-1.0", "0.5", "3.0"));
    put_op(1, FLAT("1.5"), LEAF("1.0", "-2.0", "1.5", "4.0"));
    conf.json = true;
    make(2, 2, 1);
    snprintf(path, sizeof path, "%s/step0/rank0/dump.json", out);
    ck_ok(probe_dump_open(&d, path, 0, NULL, &err), err);
    struct ms_str text = {d->file.p, (uint32_t)d->file.n};
    ck_assert(ms_str_find_str(text, MS_STR("\"is_merged\": true")) > 0);
    ck_assert(ms_str_find_str(text, MS_STR("\"Norm\": 5.0")) > 0);
    ck_assert(ms_str_find_str(text, MS_STR("\"parallel_merge_info\": [")) > 0);
    probe_dump_close(d);
    snprintf(path, sizeof path, "%s/step0/rank0/construct.json", out);
    struct probe_tree t;
    ck_ok(probe_tree_open(&t, path, 0, &err), err);
    ck_assert_uint_eq(t.entries.n, 2);
    probe_tree_close(&t);
}
END_TEST

/* ---- refusals -------------------------------------------------------------------------- */

START_TEST(sizes_that_do_not_fit_are_refused)
{
    put_op(0, FLAT("1.5"), FLAT("2.0"));
    put_op(1, FLAT("1.5"), FLAT("2.0"));
    expect_refused(4, 2, 1, "there are 2 rank directories");
    expect_refused(2, 4, 1, "cannot be tp 4 times pp 1");
    expect_refused(2, 2, 2, "cannot be tp 2 times pp 2");
    expect_refused(0, 1, 1, "1 at least");
    merge[0].vpp = 2;
    expect_refused(2, 2, 1, "needs a pp of 2");
    merge[0].vpp = 1;
    merge[0].order = "TP";
    expect_refused(2, 2, 1, "small letters");
    merge[0].order = "tp-xx-dp-pp";
    expect_refused(2, 2, 1, "'xx' is none of");
    merge[0].order = "cp-dp-pp";
    expect_refused(2, 2, 1, "tp is 2 and is not in it");
    merge[0].order = "tp-ep-cp-dp-pp";
    expect_refused(2, 2, 1, "neighbours");
}
END_TEST

START_TEST(one_rank_and_tensors_are_refused)
{
    put_rank(target, ".", ONE, DUMP(RECORD("Torch.f.0.forward", "", FLAT("1.0"))), NULL);
    expect_refused(1, 1, 1, "nothing to merge");
    scratch_remove(target);
    put_rank(target, "rank0", ONE,
             "{\"task\":\"tensor\",\"level\":\"mix\",\"framework\":\"pytorch\","
             "\"dump_data_dir\":\"x\",\"data\":{" RECORD("Torch.f.0.forward", "", FLAT("1.0")) "}}",
             NULL);
    expect_refused(1, 1, 1, "tensors");
}
END_TEST

START_TEST(data_parallelism_must_agree)
{
    for (int r = 0; r < 2; r++)
        put_op(r, FLAT("1.5"), FLAT("2.0"));
    put_rank(golden, "rank0", ONE, DUMP(RECORD("Torch.f.0.forward", "", FLAT("1.0"))), NULL);
    conf.golden = golden;
    expect_refused(2, 1, 1, "data parallelism differs");
}
END_TEST

START_TEST(no_memory_leaves_no_file_and_no_leak)
{
    put_stage(target, "rank0", FLAT("1.0"), FLAT("2.0"));
    put_stage(target, "rank1", FLAT("3.0"), FLAT("4.0"));
    /* SQLite keeps some of its first memory for the life of the process. */
    make(2, 1, 2);
    unlink(made.path);
    ms_trace_reset();
    size_t live = ms_mem_live();
    bool failed = true;
    for (uint64_t n = 1; failed; n += 1 + n / 16) {
        ms_err_clear(&err);
        ms_mem_fail_at(n);
        enum ms_rc rc = graph_run(&conf, NULL, &made, &err);
        failed = ms_mem_failed();
        ms_mem_fail_at(0);
        ms_trace_reset();
        ck_assert_uint_eq(ms_mem_live(), live);
        if (rc == MS_OK)
            ck_assert_int_eq(unlink(made.path), 0);
        else
            ck_assert(failed && (made.path[0] == '\0' || ms_path_kind(made.path) == MS_KIND_NONE));
    }
    live_before = live;
}
END_TEST

TEST_MAIN_AROUND(set_up, tear_down, "graph_merge", parts_of_a_tensor_are_merged,
                 strictly_it_is_told_in_the_official_words, equal_figures_are_no_parts,
                 nan_on_any_rank_is_nan_of_the_whole, loose_operators_of_all_ranks_stand_together,
                 layers_of_a_pipeline_stand_in_a_row,
                 a_pipeline_compares_with_the_model_in_one_piece,
                 chunks_of_a_pipeline_become_chunk_0, merged_ranks_can_be_written_as_a_dump,
                 sizes_that_do_not_fit_are_refused, one_rank_and_tensors_are_refused,
                 data_parallelism_must_agree, no_memory_leaves_no_file_and_no_leak)
