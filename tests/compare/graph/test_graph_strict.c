/* SPDX-License-Identifier: MIT
 *
 * What the official tool gets wrong in a graph: each defect as --compat=strict
 * reproduces it, and repaired.
 */
#include "tests/support/graph_made.h"

static void set_up(bool strict)
{
    begin_pair();
    conf.rules = strict ? &graph_rules_official : NULL;
}

/* The same input by both rules: what the official tool answers, and what we do. */
static void expect_both(void (*put)(void), const char *question, const char *official,
                        const char *ours)
{
    for (int strict = 1; strict >= 0; strict--) {
        set_up(strict != 0);
        put();
        ck_ok(graph_run(&conf, NULL, &made, &err), err);
        expect(question, strict ? official : ours);
        tear_down();
    }
}

static void put_both(const char *construct, const char *t_dump, const char *b_dump)
{
    put_rank(target, ".", construct, t_dump, NULL);
    put_rank(golden, ".", construct, b_dump, NULL);
}

#define STATE_OF(node)                                                                             \
    "SELECT precision_index FROM tb_nodes WHERE data_source = 'NPU' AND node_name = '" node "'"

/* ---- digests of operators that make empty memory ------------------------------------- */

#define DIGEST(md5)                                                                                \
    "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\",\"shape\":[2],\"Max\":1.0,"            \
    "\"Min\":1.0,\"Mean\":1.0,\"Norm\":1.0,\"requires_grad\":true,\"md5\":\"" md5 "\"}"
static const char *const empties[] = {"empty",     "empty_like",    "empty_with_format",
                                      "new_empty", "empty_strided", "new_empty_strided"};

static void put_empties(const char *t_md5, const char *b_md5)
{
    char construct[1024] = "{", t[8192] = "", b[8192] = "", one[1024];
    for (size_t i = 0; i < sizeof empties / sizeof *empties; i++) {
        const char *comma = i > 0 ? "," : "";
        snprintf(one, sizeof one, "%s\"Torch.%s.0.forward\":null", comma, empties[i]);
        strcat(construct, one);
        snprintf(one, sizeof one,
                 "%s\"Torch.%s.0.forward\":{\"input_args\":[],\"output\":[" DIGEST("%s") "]}",
                 comma, empties[i], t_md5);
        strcat(t, one);
        snprintf(one, sizeof one,
                 "%s\"Torch.%s.0.forward\":{\"input_args\":[],\"output\":[" DIGEST("%s") "]}",
                 comma, empties[i], b_md5);
        strcat(b, one);
    }
    strcat(construct, "}");
    char whole[2][8400];
    snprintf(whole[0], sizeof whole[0], DUMP("%s"), t);
    snprintf(whole[1], sizeof whole[1], DUMP("%s"), b);
    put_both(construct, whole[0], whole[1]);
}

static void put_equal_empties(void)
{
    put_empties("aa", "aa");
}

static void put_other_empties(void)
{
    put_empties("aa", "bb");
}

static void put_red_empties(void)
{
    put_empties("aa", "bb");
    conf.md5_index = true;
}

#define EMPTY_STATES                                                                               \
    "SELECT group_concat(DISTINCT precision_index) || ' of ' || count(*) FROM tb_nodes"            \
    " WHERE data_source = 'NPU' AND node_name LIKE 'Torch.%empty%'"

START_TEST(digests_of_empty_memory_are_no_errors)
{
    expect_both(put_equal_empties, EMPTY_STATES, "1 of 6", "0 of 6");
    expect_both(put_other_empties, EMPTY_STATES, "1 of 6", "0 of 6");
    expect_both(put_red_empties, EMPTY_STATES, "1 of 6", "1 of 6");
}
END_TEST

/* ---- subtrees without a way to the root ---------------------------------------------- */

static void put_detached(void)
{
    conf.golden = NULL;
    put_rank(target, ".",
             "{\"Torch.a.0.forward\":\"Module.k.K.forward.0\","
             "\"Module.k.K.forward.0\":\"Module.m.M.forward.0\",\"Module.n.N.forward.0\":null}",
             DUMP(RECORD("Torch.a.0.forward", FLAT("1.0"), FLAT("1.0"))), NULL);
}

START_TEST(what_hangs_below_no_root_is_kept)
{
    expect_both(put_detached,
                "SELECT group_concat(node_name, ' ') FROM (SELECT node_name FROM tb_nodes"
                " ORDER BY node_order)",
                "Module.n.N.forward.0 DefaultModel",
                "Module.n.N.forward.0 Torch.a.0.forward Module.k.K.forward.0 Module.m.M.forward.0"
                " DefaultModel");
}
END_TEST

START_TEST(what_was_kept_is_counted_in_the_file)
{
    set_up(false);
    put_detached();
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    expect("SELECT value FROM x_meta WHERE key = 'attached_subtrees'", "1");
    tear_down();
}
END_TEST

START_TEST(every_repair_is_listed_in_the_file)
{
    static const char *const words[] = {"empty memory", "below no root", "collection",
                                        "batch",        "dtype",         "requires_grad",
                                        "gradient",     "forward node"};
    set_up(false);
    put_equal_empties();
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    expect("SELECT json_valid(value) FROM x_meta WHERE key = 'repaired'", "1");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        ck_assert_msg(strstr(ask("SELECT value FROM x_meta WHERE key = 'repaired'"), words[i]) !=
                          NULL,
                      "nothing of '%s'", words[i]);
    tear_down();
    set_up(false);
    put_red_empties();
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    ck_assert_ptr_null(
        strstr(ask("SELECT value FROM x_meta WHERE key = 'repaired'"), "empty memory"));
    tear_down();
}
END_TEST

/* ---- collections in tensor comparisons ------------------------------------------------ */

#define TENSOR(file)                                                                               \
    "{\"type\":\"mindspore.Tensor\",\"dtype\":\"Float32\",\"shape\":[4],\"Max\":4.0,"              \
    "\"Min\":1.0,\"Mean\":2.5,\"Norm\":5.5,\"requires_grad\":true,\"data_name\":\"" file "\"}"

static void put_tensors(void)
{
    static const float right[4] = {1, 2, 3, 4}, wrong[4] = {-1, -2, -3, -4};
    const char *const sides[] = {target, golden};
    for (int i = 0; i < 2; i++) {
        put_rank(sides[i], ".", "{\"Mint.f.0.forward\":null,\"Mint.g.0.forward\":null}",
                 "{\"task\":\"tensor\",\"level\":\"mix\",\"framework\":\"mindspore\","
                 "\"dump_data_dir\":null,\"data\":{" RECORD(
                     "Mint.f.0.forward", TENSOR("Mint.f.0.forward.input.0.npy"),
                     TENSOR("Mint.f.0.forward.output.0.npy")) "}}",
                 NULL);
        put_npy(sides[i], "Mint.f.0.forward.input.0.npy", right);
        put_npy(sides[i], "Mint.f.0.forward.output.0.npy", i == 0 ? wrong : right);
    }
}

START_TEST(a_collection_of_tensors_is_as_bad_as_its_worst)
{
    expect_both(put_tensors, STATE_OF("Mint.f.0.forward"), "1", "1");
    expect_both(put_tensors, STATE_OF("Apis_Between_Modules.0"), "0", "1");
}
END_TEST

/* ---- batches of point-to-point calls, and other calls that meet ------------------------ */

static void put_batches(bool two)
{
    static const char construct[] = "{\"Distributed.batch_isend_irecv.0.forward\":null}";
    conf.golden = NULL;
    put_rank(target, "rank0", construct,
             two ? BATCH(MEMBER("isend", "1") "," MEMBER("irecv", "1"))
                 : BATCH(MEMBER("isend", "1")),
             NULL);
    put_rank(target, "rank1", construct,
             two ? BATCH(MEMBER("isend", "0") "," MEMBER("irecv", "0"))
                 : BATCH(MEMBER("irecv", "0")),
             NULL);
}

static void put_batches_of_1(void)
{
    put_batches(false);
}

static void put_batches_of_2(void)
{
    put_batches(true);
}

#define LINK_OF(node)                                                                              \
    "SELECT matched_distributed FROM tb_nodes WHERE rank = 0 AND node_name = '" node "'"
#define MET(role)                                                                                  \
    "{\"communications_type\": \"" role "\", \"nodes_info\": {\"1\": [\"Nan\","                    \
    " \"Distributed.batch_isend_irecv.0.forward\"]}}"

START_TEST(members_of_batches_meet)
{
    expect_both(put_batches_of_1, LINK_OF("Distributed.batch_isend_irecv.0.forward"), "{}",
                MET("send"));
    expect_both(put_batches_of_2, LINK_OF("Distributed.batch_isend_irecv.0.forward"), "{}",
                "[" MET("send") ", " MET("receive") "]");
}
END_TEST

#define CALL(name, args, kwargs)                                                                   \
    DUMP("\"Distributed." name ".0.forward\":{\"input_args\":[" FLAT("1.0") args                   \
         "],\"input_kwargs\":{" kwargs "},\"output\":[]}")
#define RANK(n) "{\"type\":\"int\",\"value\":" n "}"

static void put_isend_and_recv(void)
{
    conf.golden = NULL;
    put_rank(target, "rank0", "{\"Distributed.isend.0.forward\":null}",
             CALL("isend", "", "\"dst\":" RANK("1")), NULL);
    put_rank(target, "rank1", "{\"Distributed.recv.0.forward\":null}",
             CALL("recv", "", "\"src\":" RANK("0")), NULL);
}

static void put_send_by_place(void)
{
    conf.golden = NULL;
    put_rank(target, "rank0", "{\"Distributed.send.0.forward\":null}",
             CALL("send", "," RANK("1"), ""), NULL);
    put_rank(target, "rank1", "{\"Distributed.recv.0.forward\":null}",
             CALL("recv", "," RANK("0"), ""), NULL);
}

START_TEST(calls_meet_however_they_were_written)
{
    expect_both(put_isend_and_recv, LINK_OF("Distributed.isend.0.forward"), "{}",
                "{\"communications_type\": \"send\", \"nodes_info\": {\"1\": [\"Nan\","
                " \"Distributed.recv.0.forward\"]}}");
    expect_both(put_send_by_place, LINK_OF("Distributed.send.0.forward"), "{}",
                "{\"communications_type\": \"send\", \"nodes_info\": {\"1\": [\"Nan\","
                " \"Distributed.recv.0.forward\"]}}");
}
END_TEST

/* ---- dtypes and requires_grad by their letters ------------------------------------------ */

#define MS_LEAF                                                                                    \
    "{\"type\":\"mindspore.Tensor\",\"dtype\":\"Float32\",\"shape\":[2,3],\"Max\":1.0,"            \
    "\"Min\":1.0,\"Mean\":1.0,\"Norm\":1.0}"
#define AS_LEAF(dtype, grad)                                                                       \
    "{\"type\":\"torch.Tensor\",\"dtype\":\"" dtype "\",\"shape\":[2,3],\"Max\":1.0,"              \
    "\"Min\":1.0,\"Mean\":1.0,\"Norm\":1.0" grad "}"

static void put_two_frameworks(void)
{
    conf.map_layers = true;
    put_rank(
        target, ".", "{\"Cell.net.Net.forward.0\":null}",
        "{\"task\":\"statistics\",\"level\":\"mix\",\"framework\":\"mindspore\","
        "\"dump_data_dir\":null,\"data\":{" RECORD("Cell.net.Net.forward.0", MS_LEAF, MS_LEAF) "}}",
        "{\"Cell.net.Net.forward.0\":[]}"); /* the official tool maps nothing where this is empty */
    put_rank(golden, ".", "{\"Module.net.Net.forward.0\":null}",
             DUMP(RECORD("Module.net.Net.forward.0", FLAT("1.0"), FLAT("1.0"))),
             "{\"Module.net.Net.forward.0\":[]}");
}

START_TEST(two_frameworks_spell_types_in_their_ways)
{
    expect_both(put_two_frameworks, STATE_OF("Cell.net.Net.forward.0"), "1", "0");
}
END_TEST

static void put_other_gradients(void)
{
    put_both("{\"Torch.f.0.forward\":null}",
             DUMP(RECORD("Torch.f.0.forward", AS_LEAF("torch.float32", ""),
                         AS_LEAF("torch.float32", ",\"requires_grad\":true"))),
             DUMP(RECORD("Torch.f.0.forward", AS_LEAF("torch.float32", ",\"requires_grad\":true"),
                         AS_LEAF("torch.float32", ""))));
}

static void put_false_gradients(void)
{
    put_both(
        "{\"Torch.f.0.forward\":null}",
        DUMP(RECORD("Torch.f.0.forward", "", AS_LEAF("torch.float32", ",\"requires_grad\":false"))),
        DUMP(RECORD("Torch.f.0.forward", "", AS_LEAF("torch.float32", ",\"requires_grad\":true"))));
}

START_TEST(who_does_not_say_requires_grad_does_not_disagree)
{
    expect_both(put_other_gradients, STATE_OF("Torch.f.0.forward"), "0", "0");
    expect_both(put_false_gradients, STATE_OF("Torch.f.0.forward"), "1", "1");
}
END_TEST

static void put_fused_types(void)
{
    put_both("{\"Module.qkv.Linear.forward.0\":null}",
             DUMP(RECORD("Module.qkv.Linear.forward.0", "", AS_LEAF("torch.float32", ""))),
             DUMP(RECORD("Module.qkv.Linear.forward.0", "", AS_LEAF("torch.float16", ""))));
}

START_TEST(a_name_does_not_excuse_another_type)
{
    expect_both(put_fused_types, STATE_OF("Module.qkv.Linear.forward.0"), "0", "1");
}
END_TEST

static void put_extra_rows(void)
{
    put_both("{\"Torch.f.0.forward\":null}",
             DUMP(RECORD("Torch.f.0.forward", FLAT("1.0") "," FLAT("2.0"), "")),
             DUMP(RECORD("Torch.f.0.forward", FLAT("1.0"), "")));
}

#define MEMBER_OF_ROW(row, member)                                                                 \
    "SELECT json_extract(input_data, '$.\"Torch.f.0.forward.input." row "\".\"" member "\"')"      \
    " FROM tb_nodes WHERE data_source = 'NPU' AND node_name = 'Torch.f.0.forward'"

START_TEST(a_row_without_a_partner_is_a_warning)
{
    expect_both(put_extra_rows, MEMBER_OF_ROW("1", "Max diff"), " ", " ");
    expect_both(put_extra_rows, MEMBER_OF_ROW("1", "Requires_grad Consistent"), "False", "False");
    expect_both(put_extra_rows,
                "SELECT json_array_length(json_extract(input_data,"
                " '$.\"Torch.f.0.forward.input.1\".Err_message'))"
                " FROM tb_nodes WHERE data_source = 'NPU'"
                " AND node_name = 'Torch.f.0.forward'",
                "3", "1");
    expect_both(put_extra_rows, STATE_OF("Torch.f.0.forward"), "1", "0.5");
}
END_TEST

static void put_scalars(void)
{
    put_both("{\"Torch.f.0.forward\":null}",
             DUMP(RECORD("Torch.f.0.forward",
                         "{\"type\":\"str\",\"value\":\"0.5\"},"
                         "{\"type\":\"float\",\"value\":NaN}",
                         "")),
             DUMP(RECORD("Torch.f.0.forward",
                         "{\"type\":\"str\",\"value\":\"0.5\"},"
                         "{\"type\":\"float\",\"value\":NaN}",
                         "")));
}

START_TEST(text_is_no_number_and_nan_is_written_as_python_does)
{
    expect_both(put_scalars, MEMBER_OF_ROW("0", "Max diff"), "N/A", "N/A");
    expect_both(put_scalars, MEMBER_OF_ROW("1", "Max"), "nan", "nan");
    expect_both(put_scalars, MEMBER_OF_ROW("1", "Max diff"), "Nan", "Nan");
}
END_TEST

static void put_exempt(void)
{
    conf.golden = NULL;
    conf.overflow = true;
    put_rank(target, ".", "{\"Tensor.masked_fill_.0.forward\":null}",
             DUMP(RECORD("Tensor.masked_fill_.0.forward", FLAT("NaN"), FLAT("NaN"))), NULL);
}

START_TEST(an_exempt_input_does_not_exempt_the_output)
{
    expect_both(put_exempt,
                "SELECT overflow_level FROM tb_nodes"
                " WHERE node_name = 'Tensor.masked_fill_.0.forward'",
                "NULL", "critical");
}
END_TEST

/* ---- nodes that get lost or stay alone -------------------------------------------------- */

static void put_gradients_alone(void)
{
    conf.golden = NULL;
    put_rank(target, ".", "{\"Module.b.B.forward.0\":null}",
             DUMP("\"Module.b.B.parameters_grad.0\":{\"weight\":[" FLAT("1.0") "]}"), NULL);
}

START_TEST(gradients_without_a_backward_are_kept)
{
    expect_both(put_gradients_alone,
                "SELECT up_node FROM tb_nodes WHERE node_name = 'Module.b.B.parameters_grad.0'",
                "no row", "Module.b.B.forward.0");
}
END_TEST

static void put_gradients_of_the_detached(void)
{
    conf.golden = NULL;
    put_rank(target, ".",
             "{\"Module.b.B.forward.0\":null,\"Module.b.B.backward.0\":null,"
             "\"Torch.x.0.backward\":\"Module.b.B.backward.1\"}",
             DUMP("\"Module.b.B.parameters_grad.0\":{\"weight\":[" FLAT("1.0") "]}"), NULL);
}

START_TEST(gradients_are_not_lost_with_a_backward_that_hangs_nowhere)
{
    expect_both(put_gradients_of_the_detached,
                "SELECT up_node FROM tb_nodes WHERE node_name = 'Module.b.B.parameters_grad.0'",
                "no row", "Module.b.B.backward.1");
}
END_TEST

static void put_late_forward(void)
{
    conf.golden = NULL;
    put_rank(target, ".", "{\"Module.b.B.backward.0\":null,\"Module.b.B.forward.0\":null}",
             DUMP(""), "{\"Module.b.B.forward.0\":[\"File m.py, line 1, in f\"]}");
}

#define STACK_OF(node)                                                                             \
    "SELECT stack_info LIKE '%File m.py%' FROM tb_nodes n JOIN tb_stack s ON s.id = n.stack_id"    \
    " WHERE node_name = '" node "'"

START_TEST(a_backward_has_the_stack_of_a_forward_that_comes_later)
{
    expect_both(put_late_forward, STACK_OF("Module.b.B.backward.0"), "0", "1");
    expect_both(put_late_forward, STACK_OF("Module.b.B.forward.0"), "1", "1");
}
END_TEST

static void put_wrapped(void)
{
    put_rank(target, ".",
             "{\"Module.m.M.forward.0\":null,\"Module.w.W.forward.0\":\"Module.m.M.forward.0\","
             "\"Torch.f.0.forward\":\"Module.w.W.forward.0\"}",
             DUMP(""), NULL);
    put_rank(golden, ".",
             "{\"Module.m.M.forward.0\":null,\"Torch.f.0.forward\":\"Module.m.M.forward.0\"}",
             DUMP(""), NULL);
}

START_TEST(an_inserted_module_does_not_unmatch_what_is_in_it)
{
    expect_both(put_wrapped,
                "SELECT matched_node_link FROM tb_nodes WHERE data_source = 'NPU'"
                " AND node_name = 'Torch.f.0.forward'",
                "[]", "[\"DefaultModel\", \"Module.m.M.forward.0\", \"Torch.f.0.forward\"]");
}
END_TEST

/* ---- what ends the official tool ---------------------------------------------------------- */

static void put_structure_with_values(void)
{
    static const char dump[] =
        "{\"task\":\"structure\",\"level\":\"mix\",\"framework\":\"pytorch\",\"data\":{" RECORD(
            "Torch.f.0.forward",
            "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\","
            "\"shape\":[2]}",
            "") "}}";
    put_both("{\"Torch.f.0.forward\":null}", dump, dump);
}

static void put_nothing(void)
{
    put_both("{\"Torch.f.0.forward\":null}", DUMP(""), DUMP(""));
}

START_TEST(a_structure_with_values_gives_a_structure)
{
    expect_both(put_structure_with_values, "SELECT task FROM tb_config", "structure", "structure");
    expect_both(put_structure_with_values, STATE_OF("Torch.f.0.forward"), "NULL", "NULL");
}
END_TEST

START_TEST(dumps_without_any_values_are_compared_by_names)
{
    expect_both(put_nothing, "SELECT count(*) FROM tb_nodes WHERE matched_node_link <> '[]'", "4",
                "4");
}
END_TEST

/* ---- the file ----------------------------------------------------------------------------- */

START_TEST(the_index_of_changes_holds_changes_alone)
{
    expect_both(put_wrapped,
                "SELECT sql LIKE '%WHERE modified = 1' FROM sqlite_master"
                " WHERE name = 'index6'",
                "0", "1");
}
END_TEST

START_TEST(states_below_a_closed_module_are_counted)
{
    expect_both(put_tensors, "SELECT count(*) FROM sqlite_master WHERE name = 'x_rollup'", "0",
                "1");
    set_up(false);
    put_tensors();
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    expect(
        "SELECT worst || ' ' || n_error FROM x_rollup WHERE id = 'NPU_0_0_Apis_Between_Modules.0'",
        "3 1");
    tear_down();
}
END_TEST

TEST_MAIN("graph_strict", digests_of_empty_memory_are_no_errors, what_hangs_below_no_root_is_kept,
          what_was_kept_is_counted_in_the_file, every_repair_is_listed_in_the_file,
          a_collection_of_tensors_is_as_bad_as_its_worst, members_of_batches_meet,
          calls_meet_however_they_were_written, two_frameworks_spell_types_in_their_ways,
          who_does_not_say_requires_grad_does_not_disagree, a_name_does_not_excuse_another_type,
          a_row_without_a_partner_is_a_warning, text_is_no_number_and_nan_is_written_as_python_does,
          an_exempt_input_does_not_exempt_the_output, gradients_without_a_backward_are_kept,
          gradients_are_not_lost_with_a_backward_that_hangs_nowhere,
          a_backward_has_the_stack_of_a_forward_that_comes_later,
          an_inserted_module_does_not_unmatch_what_is_in_it,
          a_structure_with_values_gives_a_structure, dumps_without_any_values_are_compared_by_names,
          the_index_of_changes_holds_changes_alone, states_below_a_closed_module_are_counted)
