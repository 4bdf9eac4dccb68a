/* SPDX-License-Identifier: MIT */
#include "tests/support/graph_made.h"

#include <sys/stat.h>

static void make_one(const char *input)
{
    char dump[8192];
    conf.golden = NULL;
    snprintf(dump, sizeof dump, DUMP(RECORD("Torch.f.0.forward", "%s", FLAT("1.5"))), input);
    put_rank(target, ".", ONE, dump, NULL);
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
}

/* ---- items -------------------------------------------------------------------- */

/* What a leaf in the dump becomes in the database. */
static const struct {
    const char *leaf, *wanted; /* the item without its name */
} items[] = {
    {FLAT("NaN"),
     "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": \"[2, 3]\","
     " \"Max\": \"nan\", \"Min\": \"nan\", \"Mean\": \"nan\", \"Norm\": \"nan\","
     " \"requires_grad\": \"True\", \"data_name\": \"-1\"}"},
    {LEAF("Infinity", "-Infinity", "1e-07", "1e+16"),
     "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": \"[2, 3]\","
     " \"Max\": \"inf\", \"Min\": \"-inf\", \"Mean\": \"1e-07\", \"Norm\": \"1e+16\","
     " \"requires_grad\": \"True\", \"data_name\": \"-1\"}"},
    {LEAF("0.00001", "-0.0009999999999998899", "1.10", "12345678901234567890"),
     "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": \"[2, 3]\","
     " \"Max\": \"1e-05\", \"Min\": \"-0.0009999999999998899\", \"Mean\": \"1.1\","
     " \"Norm\": \"12345678901234567890\", \"requires_grad\": \"True\", \"data_name\": \"-1\"}"},
    {"{\"type\":\"int\",\"value\":3}",
     "{\"type\": \"int\", \"value\": \"3\", \"data_name\": \"-1\", \"requires_grad\": \"null\","
     " \"Max\": \"3\", \"Min\": \"3\", \"Mean\": \"3\", \"Norm\": \"3\", \"dtype\": \"<class "
     "int>\","
     " \"shape\": \"[]\"}"},
    {"{\"type\":\"bool\",\"value\":false}",
     "{\"type\": \"bool\", \"value\": \"False\", \"data_name\": \"-1\", \"requires_grad\": "
     "\"null\","
     " \"Max\": \"False\", \"Min\": \"False\", \"Mean\": \"False\", \"Norm\": \"False\","
     " \"dtype\": \"<class bool>\", \"shape\": \"[]\"}"},
    {"{\"type\":\"str\",\"value\":\"it's None\"}",
     "{\"type\": \"str\", \"value\": \"its null\", \"data_name\": \"-1\","
     " \"requires_grad\": \"null\", \"Max\": \"its null\", \"Min\": \"its null\","
     " \"Mean\": \"its null\", \"Norm\": \"its null\", \"dtype\": \"<class str>\","
     " \"shape\": \"[]\"}"},
    {"{\"type\":\"str\",\"value\":\"0.12345678\"}",
     "{\"type\": \"str\", \"value\": \"0.123457\", \"data_name\": \"-1\","
     " \"requires_grad\": \"null\", \"Max\": \"0.123457\", \"Min\": \"0.123457\","
     " \"Mean\": \"0.123457\", \"Norm\": \"0.123457\", \"dtype\": \"<class str>\","
     " \"shape\": \"[]\"}"},
    {"{\"type\":\"torch.ProcessGroup\",\"group_ranks\":[0,1],\"group_id\":\"ab\"}",
     "{\"type\": \"torch.ProcessGroup\", \"group_ranks\": \"[0, 1]\", \"group_id\": \"ab\","
     " \"data_name\": \"-1\"}"},
    {"{\"type\":\"torch.Tensor\",\"dtype\":\"torch.int8\",\"shape\":[],\"Max\":-0.12345678,"
     "\"Min\":-5,\"Mean\":-1.0,\"Norm\":100000000000000000000,\"requires_grad\":false,"
     "\"state\":\"input\",\"full_op_name\":\"x\"}",
     "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.int8\", \"shape\": \"[]\","
     " \"Max\": \"-0.12345678\", \"Min\": \"-5\", \"Mean\": \"-1.0\","
     " \"Norm\": \"100000000000000000000\", \"requires_grad\": \"False\","
     " \"data_name\": \"-1\"}"},
    {"null", "{\"value\": \"null\"}"},
    {"{\"type\":\"torch.Size\",\"value\":[2,3]}", "{\"value\": \"null\"}"},
    {LEAF("null", "null", "null", "null"), "{\"value\": \"null\"}"},
};

START_TEST(leaves_become_text)
{
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        char wanted[2048];
        begin_pair();
        make_one(items[i].leaf);
        snprintf(wanted, sizeof wanted, "{\"Torch.f.0.forward.input.0\": %s}", items[i].wanted);
        ck_assert_str_eq(ask_of("input_data", "NPU_0_0_Torch.f.0.forward"), wanted);
        tear_down();
    }
}
END_TEST

START_TEST(a_file_name_names_the_item_and_decides_the_side)
{
    begin_pair();
    conf.golden = NULL;
    put_rank(target, ".", ONE,
             "{\"task\":\"statistics\",\"data\":{\"Torch.f.0.forward\":{\"input_kwargs\":{\"x\":"
             "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\",\"shape\":[],\"Max\":1.0,"
             "\"Min\":1.0,\"Mean\":1.0,\"Norm\":1.0,\"data_name\":\"a.kwargs.x.pt\"}},"
             "\"parameters\":{\"w\":" FLAT("1.0") "}}}}",
             NULL);
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    const char *in = ask_of("input_data", "NPU_0_0_Torch.f.0.forward");
    ck_assert_ptr_nonnull(strstr(in, "{\"a.kwargs.x\": {"));
    ck_assert_ptr_nonnull(strstr(in, "\"data_name\": \"a.kwargs.x.pt\""));
    ck_assert_ptr_nonnull(strstr(in, "\"Torch.f.0.forward.parameters.w\": {"));
    ck_assert_str_eq(ask_of("output_data", "NPU_0_0_Torch.f.0.forward"), "{}");
    tear_down();
}
END_TEST

/* ---- the file ------------------------------------------------------------------- */

START_TEST(the_schema_is_the_official_one)
{
    begin_pair();
    make_one("null");
    expect("SELECT group_concat(name || ' ' || type || CASE WHEN \"notnull\" THEN ' N' ELSE '' END"
           " || CASE WHEN pk THEN ' K' ELSE '' END, ', ') FROM pragma_table_info('tb_nodes')",
           "id TEXT K, graph_id TEXT N, node_order INTEGER N, node_name TEXT N, node_type TEXT N,"
           " up_node TEXT, sub_nodes TEXT, precision_index INTEGER, overflow_level TEXT,"
           " micro_step_id INTEGER N, matched_node_link TEXT, stack_id TEXT,"
           " parallel_merge_info TEXT, matched_distributed TEXT, modified INTEGER N,"
           " input_data TEXT, output_data TEXT, data_source TEXT, dump_data_dir TEXT,"
           " step INTEGER N, rank INTEGER N, is_distributed INTEGER");
    expect("SELECT group_concat(sql, '; ') FROM sqlite_master WHERE name LIKE 'tb_%'"
           " AND name <> 'tb_nodes'",
           "CREATE TABLE tb_stack (id TEXT PRIMARY KEY, stack_info TEXT); "
           "CREATE TABLE tb_config (id TEXT PRIMARY KEY, graph_type TEXT NOT NULL, task TEXT,"
           " tool_tip TEXT, micro_steps INTEGER, overflow_check INTEGER, node_colors TEXT NOT NULL,"
           " rank_list TEXT NOT NULL, step_list TEXT NOT NULL)");
    expect("SELECT group_concat(name) FROM (SELECT name FROM sqlite_master WHERE type = 'index'"
           " AND name LIKE 'index%' ORDER BY name)",
           "index1,index2,index3,index4,index5,index6,index7");
    expect("SELECT graph_type || task || micro_steps || overflow_check || node_colors || rank_list"
           " || step_list FROM tb_config WHERE tool_tip IS NULL",
           "build10null[0][0]");
    tear_down();
}
END_TEST

START_TEST(the_file_is_the_owners_alone)
{
    struct stat st;
    begin_pair();
    make_one("null");
    ck_assert_int_eq(stat(made.path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0640);
    ck_assert_int_eq(stat(out, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0750);
    ck_assert_ptr_nonnull(strstr(made.path, "/build_"));
    tear_down();
}
END_TEST

START_TEST(strict_writes_no_table_of_ours)
{
    begin_pair();
    conf.rules = &graph_rules_official;
    make_one("null");
    expect("SELECT count(*) FROM sqlite_master WHERE name LIKE 'x\\_%' ESCAPE '\\'", "0");
    tear_down();
}
END_TEST

/* ---- two sides ------------------------------------------------------------------- */

#define WRAPPED                                                                                    \
    "{\"Module.m.M.forward.0\":null,\"Module.w.W.forward.0\":\"Module.m.M.forward.0\","            \
    "\"Torch.f.0.forward\":\"Module.w.W.forward.0\"}"

START_TEST(by_name_and_place_an_inserted_module_unmatches_what_lies_below_it)
{
    for (int strict = 0; strict < 2; strict++) {
        begin_pair();
        conf.rules = strict != 0 ? &graph_rules_official : NULL;
        conf.matching = strict ? CMP_MATCH_AUTO : CMP_MATCH_EXACT;
        make_two(WRAPPED, DUMP(""), ONE, DUMP(""));
        ck_assert_str_eq(ask_of("matched_node_link", "NPU_0_0_Module.m.M.forward.0"),
                         "[\"DefaultModel\", \"Module.m.M.forward.0\"]");
        ck_assert_str_eq(ask_of("matched_node_link", "NPU_0_0_Torch.f.0.forward"), "[]");
        ck_assert_uint_eq(made.matched, 2);
        tear_down();
    }
}
END_TEST

START_TEST(what_moved_is_matched_and_said_to_have_moved)
{
    begin_pair();
    make_two(WRAPPED, DUMP(""), ONE, DUMP(""));
    ck_assert_str_eq(ask_of("matched_node_link", "NPU_0_0_Torch.f.0.forward"),
                     "[\"DefaultModel\", \"Module.m.M.forward.0\", \"Torch.f.0.forward\"]");
    expect("SELECT group_concat(kind || ' ' || how, ', ') FROM x_align WHERE graph_id = 'NPU_0_0'",
           "moved name, extra ");
    expect("SELECT group_concat(kind) FROM x_align WHERE graph_id = 'Bench_0_0'", "moved");
    tear_down();
}
END_TEST

#define MS_DUMP                                                                                    \
    "{\"task\":\"statistics\",\"level\":\"mix\",\"framework\":\"mindspore\","                      \
    "\"dump_data_dir\":null,\"data\":{" RECORD(                                                    \
        "Mint.add.0.forward", LEAF("1.5", "-2.0", "0.25", "3.0"),                                  \
        LEAF("2.5", "-1.0", "1.25", "4.0")) "," RECORD("Mint.matmul.0.forward",                    \
                                                       LEAF("2.5", "-1.0", "1.25", "4.0"),         \
                                                       LEAF("7.5", "-6.0", "0.75", "9.0")) "}}"

START_TEST(two_frameworks_are_aligned_by_themselves)
{
    begin_pair();
    make_two("{\"Cell.net.Net.forward.0\":null,\"Mint.add.0.forward\":\"Cell.net.Net.forward.0\","
             "\"Mint.matmul.0.forward\":\"Cell.net.Net.forward.0\"}",
             MS_DUMP,
             "{\"Module.net.Net.forward.0\":null,"
             "\"Torch.add.0.forward\":\"Module.net.Net.forward.0\","
             "\"Torch.matmul.0.forward\":\"Module.net.Net.forward.0\"}",
             DUMP(RECORD("Torch.add.0.forward", LEAF("1.5", "-2.0", "0.25", "3.0"),
                         LEAF("2.5", "-1.0", "1.25",
                              "4.0")) "," RECORD("Torch.matmul.0.forward",
                                                 LEAF("2.5", "-1.0", "1.25", "4.0"),
                                                 LEAF("7.5", "-6.0", "0.75", "9.0"))));
    ck_assert_str_eq(
        ask_of("json_extract(matched_node_link, '$[#-1]')", "NPU_0_0_Mint.matmul.0.forward"),
        "Torch.matmul.0.forward");
    ck_assert_str_eq(
        ask_of("json_extract(matched_node_link, '$[#-1]')", "NPU_0_0_Cell.net.Net.forward.0"),
        "Module.net.Net.forward.0");
    ck_assert_str_eq(ask_of("precision_index", "NPU_0_0_Mint.matmul.0.forward"), "0");
    expect("SELECT partner FROM x_align WHERE graph_id = 'Bench_0_0' AND kind = 'matched'"
           " AND partner LIKE 'Mint.add%'",
           "Mint.add.0.forward");
    tear_down();
}
END_TEST

#define NORM_X LEAF("1.5", "-2.0", "0.25", "3.0")
#define NORM_S LEAF("4.0", "0.5", "1.5", "5.0")
#define NORM_R LEAF("0.8", "0.7", "0.75", "1.8")
#define NORM_Y LEAF("1.2", "-1.6", "0.2", "2.4")

START_TEST(what_runs_in_place_of_a_fused_operator_is_listed)
{
    struct graph_kins k = {.page = {.more = false}};
    struct graph_view *view;
    begin_pair();
    make_two("{\"Functional.rms_norm.0.forward\":null}",
             "{\"task\":\"statistics\",\"level\":\"mix\",\"framework\":\"mindspore\","
             "\"dump_data_dir\":null,\"data\":{" RECORD("Functional.rms_norm.0.forward", NORM_X,
                                                        NORM_Y) "}}",
             "{\"Tensor.pow.0.forward\":null,\"Torch.rsqrt.0.forward\":null,"
             "\"Tensor.mul.0.forward\":null}",
             DUMP(RECORD("Tensor.pow.0.forward", NORM_X, NORM_S) "," RECORD(
                 "Torch.rsqrt.0.forward", NORM_S, NORM_R) "," RECORD("Tensor.mul.0.forward",
                                                                     NORM_X "," NORM_R, NORM_Y)));
    ck_assert_str_eq(ask_of("json_extract(matched_node_link, '$[#-1]')",
                            "NPU_0_0_Functional.rms_norm.0.forward"),
                     "Tensor.mul.0.forward");
    expect("SELECT group_concat(kind || ' ' || name, ', ') FROM x_kin WHERE graph_id = 'NPU_0_0'",
           "member Tensor.pow.0.forward, member Torch.rsqrt.0.forward");
    ck_ok(graph_view_open(&view, made.path, &err), err);
    const struct graph_spot npu = {0, 0, false}, bench = {0, 0, true};
    ck_ok(graph_view_kin(view, npu, MS_STR("Functional.rms_norm.0.forward"), &k, &err), err);
    ck_assert_uint_eq(k.list.n, 2);
    ck_assert_msg(ms_str_is(k.list.p[1].partner, "Torch.rsqrt.0.forward"), "%.*s",
                  MS_STR_ARG(k.list.p[1].partner));
    ck_ok(graph_view_kin(view, bench, MS_STR("Tensor.mul.0.forward"), &k, &err), err);
    ck_assert_uint_eq(k.list.n, 0);
    graph_kins_free(&k);
    graph_view_close(view);
    tear_down();
}
END_TEST

START_TEST(fuzzy_pairs_operators_by_name_and_order)
{
    begin_pair();
    conf.fuzzy = true;
    make_two("{\"Module.m.M.forward.0\":null,\"Torch.f.3.forward\":\"Module.m.M.forward.0\","
             "\"Torch.f_rank1.7.forward\":\"Module.m.M.forward.0\"}",
             DUMP(""),
             "{\"Module.m.M.forward.0\":null,\"Torch.f.0.forward\":\"Module.m.M.forward.0\","
             "\"Torch.f.1.forward\":\"Module.m.M.forward.0\"}",
             DUMP(""));
    ck_assert_str_eq(ask_of("matched_node_link", "NPU_0_0_Torch.f.3.forward"),
                     "[\"DefaultModel\", \"Module.m.M.forward.0\", \"Torch.f.0.forward\"]");
    ck_assert_str_eq(ask_of("matched_node_link", "NPU_0_0_Torch.f_rank1.7.forward"),
                     "[\"DefaultModel\", \"Module.m.M.forward.0\", \"Torch.f.1.forward\"]");
    tear_down();
}
END_TEST

START_TEST(a_layer_mapping_renames_and_cuts_brackets)
{
    char path[160];
    begin_pair();
    put_text(dir, "layers.yaml",
             "TopLayer:\n  net: model\nNet:\n  fc: linear(of the golden side)\n");
    snprintf(path, sizeof path, "%s/layers.yaml", dir);
    conf.map_layers = true;
    conf.layer_file = path;
    put_rank(target, ".",
             "{\"Module.net.Net.forward.0\":null,"
             "\"Module.net.fc.Linear.forward.0\":\"Module.net.Net.forward.0\","
             "\"Torch.f.0.forward\":\"Module.net.fc.Linear.forward.0\"}",
             DUMP(RECORD("Torch.f.0.forward", FLAT("1.0"), FLAT("1.0")) "," RECORD(
                 "Module.net.fc.Linear.forward.0", FLAT("1.0"),
                 FLAT("1.0")) "," RECORD("Module.net.Net.forward.0", FLAT("1.0"), FLAT("1.0"))),
             "{}");
    put_rank(golden, ".",
             "{\"Module.model.Net.forward.0\":null,"
             "\"Module.model.linear.Linear.forward.0\":\"Module.model.Net.forward.0\","
             "\"Torch.f.0.forward\":\"Module.model.linear.Linear.forward.0\"}",
             DUMP(RECORD("Torch.f.0.forward", FLAT("1.0"), FLAT("1.0")) "," RECORD(
                 "Module.model.linear.Linear.forward.0", FLAT("1.0"),
                 FLAT("1.0")) "," RECORD("Module.model.Net.forward.0", FLAT("1.0"), FLAT("1.0"))),
             "{}");
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    ck_assert_str_eq(ask_of("matched_node_link", "NPU_0_0_Module.net.fc.Linear.forward.0"),
                     "[\"DefaultModel\", \"Module.model.Net.forward.0\","
                     " \"Module.model.linear.Linear.forward.0\"]");
    tear_down();
}
END_TEST

/* Norms of input and output on both sides, and the state that comes of them. */
static const struct {
    const char *name, *t_in, *t_out, *b_in, *b_out, *state;
} states[] = {
    {"Torch.f.0.forward", FLAT("1.0"), FLAT("1.0"), FLAT("1.0"), FLAT("1.0"), "0"},
    {"Torch.f.0.forward", FLAT("1.05"), FLAT("1.51"), FLAT("1.0"), FLAT("1.0"), "1"},
    {"Torch.f.0.forward", FLAT("1.06"), FLAT("1.5"), FLAT("1.0"), FLAT("1.0"), "0"},
    {"Torch.f.0.forward", FLAT("1.0"), FLAT("1.2"), FLAT("1.0"), FLAT("1.0"), "0.5"},
    {"Torch.empty.0.forward", FLAT("1.0"), FLAT("NaN"), FLAT("1.0"), FLAT("1.0"), "0"},
    {"Torch.f.0.forward", FLAT("1.0"), FLAT("NaN"), FLAT("1.0"), FLAT("1.0"), "1"},
};

START_TEST(states_follow_the_rules)
{
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        char construct[256], t[2048], b[2048], id[128];
        begin_pair();
        snprintf(construct, sizeof construct,
                 "{\"%s\":null,\"Module.m.M.forward.0\":null,\"Torch.x.0.forward\":null,"
                 "\"Torch.y.0.forward\":null}",
                 states[i].name);
        snprintf(t, sizeof t, DUMP("\"%s\":{\"input_args\":[%s],\"output\":[%s]}"), states[i].name,
                 states[i].t_in, states[i].t_out);
        snprintf(b, sizeof b, DUMP("\"%s\":{\"input_args\":[%s],\"output\":[%s]}"), states[i].name,
                 states[i].b_in, states[i].b_out);
        make_two(construct, t, construct, b);
        snprintf(id, sizeof id, "NPU_0_0_%s", states[i].name);
        ck_assert_msg(strcmp(ask_of("precision_index", id), states[i].state) == 0, "case %zu: %s",
                      i, ask_of("precision_index", id));
        ck_assert_str_eq(ask_of("precision_index", "NPU_0_0_Module.m.M.forward.0"), "NULL");
        ck_assert_str_eq(ask_of("precision_index", "NPU_0_0_Apis_Between_Modules.0"), "0");
        tear_down();
    }
}
END_TEST

START_TEST(a_collection_is_as_bad_as_its_worst_member)
{
    begin_pair();
    make_two("{\"Torch.f.0.forward\":null,\"Torch.g.0.forward\":null}",
             DUMP(RECORD("Torch.f.0.forward", FLAT("1.0"), FLAT("NaN"))),
             "{\"Torch.f.0.forward\":null,\"Torch.g.0.forward\":null}",
             DUMP(RECORD("Torch.f.0.forward", FLAT("1.0"), FLAT("1.0"))));
    ck_assert_str_eq(ask_of("precision_index", "NPU_0_0_Apis_Between_Modules.0"), "1");
    ck_assert_str_eq(ask_of("precision_index", "Bench_0_0_Apis_Between_Modules.0"), "NULL");
    expect("SELECT n_error || ' ' || worst FROM x_rollup WHERE id = 'NPU_0_0_DefaultModel'", "2 3");
    tear_down();
}
END_TEST

START_TEST(rows_meet_by_position_and_zero_has_no_relative_error)
{
    begin_pair();
    make_two(ONE,
             DUMP(RECORD("Torch.f.0.forward", FLAT("1.0") ",{\"type\":\"int\",\"value\":5}",
                         FLAT("2.0"))),
             ONE, DUMP(RECORD("Torch.f.0.forward", FLAT("0.0"), FLAT("4.0"))));
    const char *in = ask_of("input_data", "NPU_0_0_Torch.f.0.forward");
    ck_assert_ptr_nonnull(strstr(in, "\"Max diff\": \"1.0\""));
    ck_assert_ptr_nonnull(strstr(in, "\"MaxRelativeErr\": \"N/A\""));
    const char *o = ask_of("output_data", "NPU_0_0_Torch.f.0.forward");
    ck_assert_ptr_nonnull(strstr(o, "\"Max diff\": \"-2.0\""));
    ck_assert_ptr_nonnull(strstr(o, "\"NormRelativeErr\": \"50.0%\""));
    ck_assert_ptr_null(strstr(ask_of("output_data", "Bench_0_0_Torch.f.0.forward"), "diff"));
    tear_down();
}
END_TEST

START_TEST(sides_that_do_not_go_together_are_refused)
{
    static const struct {
        const char *dump, *why;
    } cases[] = {
        {"{\"task\":\"tensor\",\"data\":{}}", "compares as"},
        {"{\"task\":\"statistics\",\"framework\":\"mindspore\",\"data\":{}}", "--layer_mapping"}};
    for (size_t i = 0; i < 2; i++) {
        begin_pair();
        put_rank(target, ".", ONE, DUMP(""), NULL);
        put_rank(golden, ".", ONE, cases[i].dump, NULL);
        conf.rules = i == 1 ? &graph_rules_official : NULL; /* the official tool does not align */
        ck_assert_int_eq(graph_run(&conf, NULL, &made, &err), MS_E_ARG);
        ck_says(err, cases[i].why);
        ck_assert_int_eq(ms_path_kind(made.path), MS_KIND_NONE);
        tear_down();
    }
}
END_TEST

START_TEST(a_dump_without_values_gives_a_structure)
{
    begin_pair();
    conf.suspects = true; /* there are none, and nothing to look at */
    make_two(ONE, "{\"task\":\"structure\",\"data\":{}}", ONE,
             "{\"task\":\"structure\",\"data\":{}}");
    expect("SELECT task FROM tb_config", "structure");
    ck_assert_str_eq(ask_of("precision_index", "NPU_0_0_Torch.f.0.forward"), "NULL");
    ck_assert_uint_eq(made.matched, 3);
    tear_down();
}
END_TEST

/* ---- overflow ---------------------------------------------------------------------- */

/* No positional arguments, and one by its name. */
#define NAMED(name, leaf) "],\"input_kwargs\":{\"" name "\":" leaf "},\"x\":["

static const struct {
    const char *name, *in, *out, *level;
} levels[] = {
    {"Torch.f.0.forward", FLAT("1.0"), FLAT("NaN"), "critical"},
    {"Torch.f.0.forward", FLAT("Infinity"), FLAT("NaN"), "high"},
    {"Torch.f.0.forward", FLAT("-Infinity"), FLAT("1.0"), "NULL"}, /* what a mask excludes */
    {"Torch.f.0.backward", FLAT("-Infinity"), FLAT("1.0"), "medium"},
    {"Torch.f.0.forward", FLAT("1.0"), FLAT("100.0"), "NULL"},
    {"Torch.f.0.forward", FLAT("1.0"), FLAT("100.5"), "high"},
    {"Torch.f.0.forward", FLAT("0.0"), FLAT("100.5"), "high"},
    {"Torch.f.0.forward", FLAT("0.0"), FLAT("99.0"), "NULL"},
    {"Torch.empty.0.forward", FLAT("1.0"), FLAT("NaN"), "NULL"},
    {"Torch.empty_like.0.forward", FLAT("1.0"), FLAT("NaN"), "NULL"},
    {"Torch.empty_like.0.forward", FLAT("1.0"), FLAT("1.0") "," FLAT("NaN"), "critical"},
    {"Torch.empty_strided.0.forward", FLAT("1.0"), FLAT("-Infinity"), "NULL"},
    {"Torch.new_empty.0.forward", FLAT("1.0"), FLAT("NaN"), "critical"},
    {"Distributed.recv.0.forward", FLAT("NaN"), FLAT("1.0"), "NULL"},
    {"Distributed.recv.0.forward", NAMED("tensor", FLAT("NaN")), FLAT("1.0"), "NULL"},
    {"Distributed.recv.0.forward", NAMED("other", FLAT("NaN")), FLAT("1.0"), "medium"},
    {"Distributed.all_gather.0.forward", FLAT("NaN"), FLAT("1.0"), "NULL"},
    {"Distributed.all_gather.0.forward", FLAT("NaN") "," FLAT("NaN"), FLAT("1.0"), "medium"},
    {"Distributed.reduce_scatter.0.forward", FLAT("NaN"), FLAT("1.0"), "NULL"},
    {"Distributed.reduce_scatter.0.forward", NAMED("output", FLAT("NaN")), FLAT("1.0"), "NULL"},
    {"Distributed._reduce_scatter_base.0.forward", FLAT("NaN"), FLAT("1.0"), "NULL"},
    {"Distributed.all_gather_into_tensor.0.forward", FLAT("NaN"), FLAT("1.0"), "NULL"},
    {"Distributed.reduce_scatter_tensor.0.forward", FLAT("NaN"), FLAT("1.0"), "NULL"},
    {"Distributed.all_reduce.0.forward", FLAT("NaN"), FLAT("1.0"), "medium"},
    {"Tensor.masked_fill_.0.forward", FLAT("NaN"), FLAT("NaN"), "critical"},
    {"Tensor.masked_fill.0.forward", FLAT("NaN"), FLAT("NaN"), "high"},
};

START_TEST(overflow_levels_say_where_it_is_made)
{
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        char construct[256], dump[2048], id[128];
        begin_pair();
        conf.golden = NULL;
        conf.overflow = true;
        snprintf(construct, sizeof construct, "{\"%s\":null}", levels[i].name);
        snprintf(dump, sizeof dump, DUMP("\"%s\":{\"input_args\":[%s],\"output\":[%s]}"),
                 levels[i].name, levels[i].in, levels[i].out);
        put_rank(target, ".", construct, dump, NULL);
        ck_ok(graph_run(&conf, NULL, &made, &err), err);
        snprintf(id, sizeof id, "NPU_0_0_%s", levels[i].name);
        ck_assert_msg(strcmp(ask_of("overflow_level", id), levels[i].level) == 0, "case %zu: %s", i,
                      ask_of("overflow_level", id));
        tear_down();
    }
}
END_TEST

/* ---- out of memory ------------------------------------------------------------------------ */

START_TEST(no_memory_leaves_no_file_and_no_leak)
{
    begin_pair();
    put_rank(target, ".", ONE, DUMP(RECORD("Torch.f.0.forward", FLAT("1.0"), FLAT("2.0"))), NULL);
    put_rank(golden, ".", ONE, DUMP(RECORD("Torch.f.0.forward", FLAT("1.0"), FLAT("2.0"))), NULL);
    /* SQLite keeps some of its first memory for the life of the process. */
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    unlink(made.path);
    ms_trace_reset();
    size_t live = ms_mem_live();
    bool failed = true;
    for (uint64_t n = 1; failed; n += 1 + n / 8) {
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
    tear_down();
}
END_TEST

/* ---- tables of ours ----------------------------------------------------------------------- */

START_TEST(edges_lead_from_the_last_writer_to_its_readers)
{
    begin_pair();
    conf.golden = NULL;
    put_rank(target, ".",
             "{\"Torch.f.0.forward\":null,\"Torch.g.0.forward\":null,\"Torch.h.0.forward\":null}",
             DUMP(RECORD(
                 "Torch.f.0.forward", LEAF("9.0", "1.0", "2.0", "3.0"),
                 LEAF("2.0", "1.0", "1.5",
                      "4.0")) "," RECORD("Torch.g.0.forward", LEAF("2.0", "1.0", "1.5", "4.0"),
                                         FLAT("0.0")) "," RECORD("Torch.h.0.forward", FLAT("0.0"),
                                                                 LEAF("2.0", "1.0", "1.5", "5.0"))),
             NULL);
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    /* All zeros say nothing of where they come from. */
    expect("SELECT group_concat(src || ' ' || dst || ' ' || slot) FROM x_edge", "0 1 input.0");
    tear_down();
}
END_TEST

START_TEST(suspects_are_listed_when_asked_for)
{
#define CHAIN "{\"Torch.f.0.forward\":null,\"Torch.g.0.forward\":null,\"Torch.h.0.forward\":null}"
#define RUN(x)                                                                                     \
    DUMP(RECORD("Torch.f.0.forward", LEAF("9.0", "1.0", "2.0", "3.0"),                             \
                LEAF("2.0", "1.0", "1.5",                                                          \
                     "4.0")) "," RECORD("Torch.g.0.forward", LEAF("2.0", "1.0", "1.5", "4.0"),     \
                                        x) "," RECORD("Torch.h.0.forward", x, x))
    begin_pair();
    conf.suspects = true;
    make_two(CHAIN, RUN(LEAF("8.0", "1.0", "4.5", "9.0")), CHAIN,
             RUN(LEAF("5.0", "1.0", "2.5", "6.0")));
    expect("SELECT node_name || ' ' || role FROM x_findings WHERE place = 1",
           "Torch.g.0.forward introduces");
    ck_assert_uint_ge(made.suspects, 1);
    ck_assert_ptr_nonnull(strstr(made.suspect, "Torch.g.0.forward: "));
    tear_down();
}
END_TEST

START_TEST(a_graph_is_made_where_suspects_cannot_be_looked_for)
{
    static const char stacks[] =
        "{\"0\": [[\"Torch.f.0.forward\"], [\"File m.py, line 1, in f\"]]}";
    begin_pair();
    conf.suspects = conf.map_layers = true;
    conf.matching = CMP_MATCH_EXACT; /* by which names of two frameworks mean nothing */
    put_rank(target, ".", ONE, DUMP(RECORD("Torch.f.0.forward", FLAT("1.0"), FLAT("1.0"))), stacks);
    put_rank(golden, ".", ONE,
             "{\"task\":\"statistics\",\"framework\":\"mindspore\",\"dump_data_dir\":null,"
             "\"data\":{" RECORD("Torch.f.0.forward", FLAT("1.0"), FLAT("1.0")) "}}",
             stacks);
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    expect("SELECT count(*) FROM x_findings", "0");
    ck_assert_uint_eq(made.suspects, 0);
    tear_down();
}
END_TEST

TEST_MAIN("graph_make", leaves_become_text, a_file_name_names_the_item_and_decides_the_side,
          the_schema_is_the_official_one, the_file_is_the_owners_alone,
          strict_writes_no_table_of_ours,
          by_name_and_place_an_inserted_module_unmatches_what_lies_below_it,
          what_moved_is_matched_and_said_to_have_moved, two_frameworks_are_aligned_by_themselves,
          what_runs_in_place_of_a_fused_operator_is_listed, fuzzy_pairs_operators_by_name_and_order,
          a_layer_mapping_renames_and_cuts_brackets, states_follow_the_rules,
          a_collection_is_as_bad_as_its_worst_member,
          rows_meet_by_position_and_zero_has_no_relative_error,
          sides_that_do_not_go_together_are_refused, a_dump_without_values_gives_a_structure,
          overflow_levels_say_where_it_is_made, edges_lead_from_the_last_writer_to_its_readers,
          suspects_are_listed_when_asked_for, a_graph_is_made_where_suspects_cannot_be_looked_for,
          no_memory_leaves_no_file_and_no_leak)
