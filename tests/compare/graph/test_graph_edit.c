/* SPDX-License-Identifier: MIT */
#include "tests/support/graph_viewed.h"

/* ---- changes ------------------------------------------------------------------------ */

static struct graph_row row_of(struct graph_spot at, const char *name)
{
    ck_ok(graph_view_path(view, at, ms_str_of(name), &page, &err), err);
    return page.rows.p[page.rows.n - 1];
}

/* The tables of ours say what the rows say. */
static void expect_true_tables(void)
{
    struct graph_rollup quick, slow;
    struct graph_page rows = {.more = false};
    reopen(NULL);
    ck_ok(graph_view_rollup(view, npu, MS_STR("DefaultModel"), &quick, &err), err);
    ck_ok(graph_view_filter(view, npu, GRAPH_WANT_ERROR | GRAPH_WANT_WARNING | GRAPH_WANT_UNMATCHED,
                            -1, 99, &page, &err),
          err);
    reopen("UPDATE x_meta SET value = value + 1 WHERE key = 'modified'");
    ck_ok(graph_view_rollup(view, npu, MS_STR("DefaultModel"), &slow, &err), err);
    ck_ok(graph_view_filter(view, npu, GRAPH_WANT_ERROR | GRAPH_WANT_WARNING | GRAPH_WANT_UNMATCHED,
                            -1, 99, &rows, &err),
          err);
    ck_assert_uint_eq(page.rows.n, rows.rows.n);
    for (size_t i = 0; i < rows.rows.n; i++)
        ck_assert_int_eq(page.rows.p[i].order, rows.rows.p[i].order);
    ck_assert(quick.error == slow.error && quick.warning == slow.warning &&
              quick.unmatched == slow.unmatched && quick.worst == slow.worst);
    graph_page_free(&rows);
    reopen("UPDATE x_meta SET value = value - 1 WHERE key = 'modified'");
}

START_TEST(a_match_by_hand_writes_what_the_plugin_would)
{
    struct graph_detail d;
    set_up();
    ck_ok(
        graph_match(made.path, npu, MS_STR("Torch.n.0.forward"), MS_STR("Torch.n.5.forward"), &err),
        err);
    reopen(NULL);
    ck_ok(graph_view_node(view, npu, MS_STR("Torch.n.0.forward"), &page, &d, &err), err);
    ck_assert(d.row.modified && d.row.state == GRAPH_ERROR);
    ck_assert(ms_str_is(d.row.partner, "Torch.n.5.forward"));
    ck_assert(ms_str_find_str(d.output, MS_STR("\"Max diff\": \"6.0\"")) > 0);
    ck_assert(ms_str_find_str(d.output, MS_STR("\"Result\": \"error\"")) > 0);
    ck_assert(ms_str_is(row_of(bench, "Torch.n.5.forward").partner, "Torch.n.0.forward"));
    expect_true_tables();
    tear_down();
}
END_TEST

START_TEST(unmatching_takes_figures_away_and_undo_brings_all_back)
{
    struct graph_detail before, d;
    struct graph_page kept = {.more = false};
    set_up();
    ck_ok(graph_view_node(view, npu, MS_STR("Torch.f.1.forward"), &kept, &before, &err), err);
    ck_ok(graph_unmatch(made.path, npu, MS_STR("Torch.f.1.forward"), &err), err);
    reopen(NULL);
    ck_ok(graph_view_node(view, npu, MS_STR("Torch.f.1.forward"), &page, &d, &err), err);
    ck_assert(d.row.unmatched && d.row.modified && d.row.state == GRAPH_NONE);
    ck_assert(ms_str_find_str(d.output, MS_STR("diff")) < 0);
    ck_assert(ms_str_find_str(d.output, MS_STR("\"Max\": \"9.0\"")) > 0);
    ck_assert(row_of(bench, "Torch.f.1.forward").unmatched);
    expect_true_tables();
    ck_ok(graph_undo(made.path, &err), err);
    reopen(NULL);
    ck_ok(graph_view_node(view, npu, MS_STR("Torch.f.1.forward"), &page, &d, &err), err);
    ck_assert(!d.row.modified && d.row.state == GRAPH_ERROR && ms_str_eq(d.output, before.output));
    ck_assert(!row_of(bench, "Torch.f.1.forward").unmatched);
    expect_true_tables();
    ck_assert_int_eq(graph_undo(made.path, &err), MS_E_NOTFOUND);
    graph_page_free(&kept);
    tear_down();
}
END_TEST

START_TEST(a_match_again_gives_the_figures_of_the_file)
{
    struct graph_detail before, d;
    struct graph_page kept = {.more = false};
    set_up();
    ck_ok(graph_view_node(view, npu, MS_STR("Torch.g.1.forward"), &kept, &before, &err), err);
    ck_ok(graph_unmatch(made.path, npu, MS_STR("Torch.g.1.forward"), &err), err);
    ck_ok(
        graph_match(made.path, npu, MS_STR("Torch.g.1.forward"), MS_STR("Torch.g.1.forward"), &err),
        err);
    reopen(NULL);
    ck_ok(graph_view_node(view, npu, MS_STR("Torch.g.1.forward"), &page, &d, &err), err);
    ck_assert(ms_str_eq(d.output, before.output) && ms_str_eq(d.input, before.input));
    ck_assert(d.row.state == before.row.state);
    graph_page_free(&kept);
    tear_down();
}
END_TEST

START_TEST(descendants_are_matched_by_their_names)
{
    uint64_t matched;
    set_up();
    ck_ok(graph_match_below(made.path, npu, MS_STR("Module.new.N.forward.0"),
                            MS_STR("Module.old.N.forward.0"), &matched, &err),
          err);
    ck_assert_uint_eq(matched, 2);
    reopen(NULL);
    ck_assert(ms_str_is(row_of(npu, "Torch.n.0.forward").partner, "Torch.n.5.forward"));
    ck_ok(graph_undo(made.path, &err), err);
    reopen(NULL);
    ck_assert(row_of(npu, "Torch.n.0.forward").unmatched);
    ck_assert(row_of(npu, "Module.new.N.forward.0").unmatched);
    tear_down();
}
END_TEST

/* A module of many children, which the other side has in another order. */
static void put_many(const char *side, const char *module, int n, int step)
{
    struct ms_buf text = {.max = 1 << 24};
    ms_buf_printf(&text, "{\"Module.%s.M.forward.0\":null", module);
    for (int i = 0; i < n; i++) {
        int which = (int)((int64_t)i * step % n);
        ms_buf_printf(&text, ",\"Torch.op%d.%d.forward\":\"Module.%s.M.forward.0\"", which / 2,
                      which, module);
    }
    ms_buf_putc(&text, '}');
    put_rank(side, ".", ms_buf_z(&text), DUMP(""), NULL);
    ms_buf_free(&text);
}

START_TEST(many_children_of_few_likenesses_are_matched)
{
    enum { MANY = 3001 };
    uint64_t n;
    set_up();
    put_many(target, "t", MANY, 1);
    put_many(golden, "b", MANY, 1000); /* no divisor in common: all of them */
    unlink(made.path);
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    ck_ok(graph_match_below(made.path, npu, MS_STR("Module.t.M.forward.0"),
                            MS_STR("Module.b.M.forward.0"), &n, &err),
          err);
    ck_assert_uint_eq(n, 1 + MANY);
    reopen(NULL);
    expect_true_tables();
    /* Of two that are alike the one goes where the other does not. */
    ck_assert(!row_of(bench, "Torch.op7.14.forward").unmatched);
    ck_assert(!row_of(bench, "Torch.op7.15.forward").unmatched);
    ck_assert(
        ms_str_is(row_of(npu, "Torch.op1500.3000.forward").partner, "Torch.op1500.3000.forward"));
    ck_ok(graph_undo(made.path, &err), err);
    reopen(NULL);
    ck_assert(row_of(npu, "Torch.op7.14.forward").unmatched);
    expect_true_tables();
    tear_down();
}
END_TEST

START_TEST(descendants_are_unmatched_in_one_change)
{
    uint64_t n;
    set_up();
    ck_ok(graph_match_below(made.path, npu, MS_STR("Module.new.N.forward.0"),
                            MS_STR("Module.old.N.forward.0"), &n, &err),
          err);
    ck_ok(graph_unmatch_below(made.path, npu, MS_STR("Module.new.N.forward.0"), &n, &err), err);
    ck_assert_uint_eq(n, 2);
    reopen(NULL);
    ck_assert(row_of(npu, "Torch.n.0.forward").unmatched);
    ck_assert(row_of(npu, "Module.new.N.forward.0").unmatched);
    ck_assert(row_of(bench, "Torch.n.5.forward").unmatched);
    ck_ok(graph_undo(made.path, &err), err);
    reopen(NULL);
    ck_assert(ms_str_is(row_of(npu, "Torch.n.0.forward").partner, "Torch.n.5.forward"));
    ck_assert_int_eq(graph_unmatch_below(made.path, npu, MS_STR("nobody"), &n, &err),
                     MS_E_NOTFOUND);
    tear_down();
}
END_TEST

START_TEST(impossible_changes_are_refused_and_leave_nothing)
{
    static const struct {
        const char *t, *b, *why;
    } cases[] = {{"Torch.n.0.forward", "Torch.f.0.forward", "matched already"},
                 {"Torch.n.0.forward", "Module.old.N.forward.0", "not of one type"},
                 {"Torch.nowhere", "Torch.n.5.forward", "no node 'Torch.nowhere'"}};
    set_up();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_err_clear(&err);
        ck_assert(graph_match(made.path, npu, ms_str_of(cases[i].t), ms_str_of(cases[i].b), &err) !=
                  MS_OK);
        ck_says(err, cases[i].why);
    }
    ms_err_clear(&err);
    ck_assert_int_eq(graph_unmatch(made.path, npu, MS_STR("Torch.n.0.forward"), &err), MS_E_ARG);
    ck_says(err, "not matched");
    ms_err_clear(&err);
    ck_assert_int_eq(graph_undo(made.path, &err), MS_E_NOTFOUND);
    tear_down();
}
END_TEST

START_TEST(changes_of_the_plugin_show)
{
    struct graph_rollup r;
    set_up();
    reopen("UPDATE tb_nodes SET matched_node_link = '[\"P\", \"Torch.n.5.forward\"]',"
           " precision_index = 0.5, modified = 1 WHERE id = 'NPU_0_0_Torch.n.0.forward'");
    struct graph_row row = row_of(npu, "Torch.n.0.forward");
    ck_assert(row.modified && row.state == GRAPH_WARNING);
    ck_assert(ms_str_is(row.partner, "Torch.n.5.forward"));
    ck_ok(graph_view_rollup(view, npu, MS_STR("DefaultModel"), &r, &err), err);
    ck_assert(r.warning == 2 && r.unmatched == 1);
    tear_down();
}
END_TEST

START_TEST(matches_are_saved_and_applied_to_another_file)
{
    struct ms_file text;
    struct ms_buf file = {.max = 4096};
    uint64_t n;
    set_up();
    ck_ok(graph_match_below(made.path, npu, MS_STR("Module.new.N.forward.0"),
                            MS_STR("Module.old.N.forward.0"), &n, &err),
          err);
    ck_ok(graph_unmatch(made.path, npu, MS_STR("Torch.f.0.forward"), &err), err);
    ck_ok(graph_save_matches(made.path, made.path, npu, &file, &n, &err), err);
    ck_assert_uint_eq(n, 2);
    ck_assert(ms_str_ends(ms_buf_slice(&file), MS_STR("_0_0.vis.config")));
    static const char wanted[] = "{\n    \"Torch.n.0.forward\": \"Torch.n.5.forward\",\n"
                                 "    \"Module.new.N.forward.0\": \"Module.old.N.forward.0\"\n}";
    ck_ok(ms_file_map(&text, ms_buf_z(&file), 4096, &err), err);
    ck_assert_uint_eq(text.n, sizeof wanted - 1);
    ck_assert_int_eq(memcmp(text.p, wanted, text.n), 0);
    ms_file_unmap(&text);
    /* The same runs once more, in a file that nobody has touched. */
    snprintf(out, sizeof out, "%s/p", dir);
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    ck_ok(graph_match_saved(made.path, npu, ms_buf_z(&file), &n, &err), err);
    ck_assert_uint_eq(n, 2);
    reopen(NULL);
    ck_assert(ms_str_is(row_of(npu, "Torch.n.0.forward").partner, "Torch.n.5.forward"));
    ck_assert(!row_of(npu, "Torch.f.0.forward").unmatched);
    expect_true_tables();
    ck_ok(graph_match_saved(made.path, npu, ms_buf_z(&file), &n, &err), err);
    ck_assert_uint_eq(n, 0);
    ck_ok(graph_undo(made.path, &err), err);
    reopen(NULL);
    ck_assert(row_of(npu, "Torch.n.0.forward").unmatched);
    ms_buf_free(&file);
    tear_down();
}
END_TEST

START_TEST(a_config_of_the_plugin_may_hold_pairs_the_wrong_way_round)
{
    uint64_t n;
    char path[128];
    set_up();
    snprintf(path, sizeof path, "%s/c.vis.config", dir);
    put_text(dir, "c.vis.config",
             "{\"Torch.n.5.forward\": \"Torch.n.0.forward\", \"Torch.gone\": \"x\","
             " \"Torch.n.0.forward\": \"Torch.n.5.forward\"}");
    ck_ok(graph_match_saved(made.path, npu, path, &n, &err), err);
    ck_assert_uint_eq(n, 1);
    tear_down();
}
END_TEST

START_TEST(what_is_no_config_is_refused_and_changes_nothing)
{
    static const struct {
        const char *text, *why;
    } cases[] = {{"[1]", "expected an object"},
                 {"{\"Torch.n.0.forward\": 1}", "expected the name of a golden node"},
                 {"{\"Torch.n.0.forward\": \"Torch.n.5.forward\"", "line 1"},
                 {"", "line 1"}};
    uint64_t n;
    char path[128];
    set_up();
    snprintf(path, sizeof path, "%s/c.vis.config", dir);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_err_clear(&err);
        put_text(dir, "c.vis.config", cases[i].text);
        ck_assert(graph_match_saved(made.path, npu, path, &n, &err) != MS_OK);
        ck_says(err, cases[i].why);
        ck_says(err, "c.vis.config");
    }
    reopen(NULL);
    ck_assert(row_of(npu, "Torch.n.0.forward").unmatched);
    tear_down();
}
END_TEST

/* ---- tensors by hand ------------------------------------------------------------------ */

#define TENSOR_LEAF(file)                                                                          \
    "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\",\"shape\":[4],\"Max\":4.0,"            \
    "\"Min\":1.0,\"Mean\":2.5,\"Norm\":5.5,\"requires_grad\":true,\"data_name\":\"" file "\"}"

static void set_up_tensors(void)
{
    static const float in[4] = {1, 2, 3, 4}, out_t[4] = {-1, -2, -3, -4};
    set_up();
    const char *sides[] = {target, golden};
    for (int i = 0; i < 2; i++) {
        put_rank(sides[i], ".", "{\"Torch.f.0.forward\":null}",
                 "{\"task\":\"tensor\",\"level\":\"mix\",\"framework\":\"pytorch\","
                 "\"dump_data_dir\":null,\"data\":{" RECORD(
                     "Torch.f.0.forward", TENSOR_LEAF("Torch.f.0.forward.input.0.npy"),
                     TENSOR_LEAF("Torch.f.0.forward.output.0.npy")) "}}",
                 NULL);
        put_npy(sides[i], "Torch.f.0.forward.input.0.npy", in);
        put_npy(sides[i], "Torch.f.0.forward.output.0.npy", i == 0 ? out_t : in);
    }
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    reopen(NULL);
}

START_TEST(tensors_matched_by_hand_are_measured_by_their_files)
{
    struct graph_detail before, d;
    struct graph_page kept = {.more = false};
    set_up_tensors();
    ck_ok(graph_view_node(view, npu, MS_STR("Torch.f.0.forward"), &kept, &before, &err), err);
    ck_assert(ms_str_find_str(before.output, MS_STR("\"MaxAbsErr\": \"8.0\"")) > 0);
    ck_ok(graph_unmatch(made.path, npu, MS_STR("Torch.f.0.forward"), &err), err);
    reopen(NULL);
    ck_ok(graph_view_node(view, npu, MS_STR("Torch.f.0.forward"), &page, &d, &err), err);
    ck_assert(ms_str_find_str(d.output, MS_STR("MaxAbsErr")) < 0 && d.row.unmatched);
    ck_ok(
        graph_match(made.path, npu, MS_STR("Torch.f.0.forward"), MS_STR("Torch.f.0.forward"), &err),
        err);
    reopen(NULL);
    ck_ok(graph_view_node(view, npu, MS_STR("Torch.f.0.forward"), &page, &d, &err), err);
    ck_assert(ms_str_eq(d.output, before.output) && ms_str_eq(d.input, before.input));
    ck_assert_int_eq(d.row.state, before.row.state);
    ck_assert_int_ne(d.row.state, GRAPH_NONE);
    graph_page_free(&kept);
    tear_down();
}
END_TEST

START_TEST(tensors_whose_files_are_gone_are_matched_without_figures)
{
    struct graph_detail d;
    char path[256];
    set_up_tensors();
    ck_ok(graph_unmatch(made.path, npu, MS_STR("Torch.f.0.forward"), &err), err);
    snprintf(path, sizeof path, "%s/dump_tensor_data/Torch.f.0.forward.output.0.npy", golden);
    ck_assert_int_eq(remove(path), 0);
    ck_ok(
        graph_match(made.path, npu, MS_STR("Torch.f.0.forward"), MS_STR("Torch.f.0.forward"), &err),
        err);
    reopen(NULL);
    ck_ok(graph_view_node(view, npu, MS_STR("Torch.f.0.forward"), &page, &d, &err), err);
    ck_assert(ms_str_is(d.row.partner, "Torch.f.0.forward"));
    ck_assert(ms_str_find_str(d.output, MS_STR("\"MaxAbsErr\": \"8.0\"")) < 0);
    ck_assert(ms_str_find_str(d.input, MS_STR("\"MaxAbsErr\": \"0.0\"")) > 0);
    tear_down();
}
END_TEST

TEST_MAIN("graph_edit", a_match_by_hand_writes_what_the_plugin_would,
          unmatching_takes_figures_away_and_undo_brings_all_back,
          a_match_again_gives_the_figures_of_the_file, descendants_are_matched_by_their_names,
          many_children_of_few_likenesses_are_matched, descendants_are_unmatched_in_one_change,
          impossible_changes_are_refused_and_leave_nothing, changes_of_the_plugin_show,
          matches_are_saved_and_applied_to_another_file,
          a_config_of_the_plugin_may_hold_pairs_the_wrong_way_round,
          what_is_no_config_is_refused_and_changes_nothing,
          tensors_matched_by_hand_are_measured_by_their_files,
          tensors_whose_files_are_gone_are_matched_without_figures)
