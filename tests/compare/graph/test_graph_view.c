/* SPDX-License-Identifier: MIT */
#include "tests/support/graph_viewed.h"

#include "compare/graph/view/graph_edit.h"
#include "compare/graph/view/graph_rows.h"

/* ---- questions ------------------------------------------------------------- */

START_TEST(the_configuration_is_told)
{
    set_up();
    const struct graph_about *a = graph_view_about(view);
    ck_assert(a->dual && !a->overflow && ms_str_is(a->task, "summary"));
    ck_assert_int_eq(a->micro_steps, 1);
    ck_assert(a->ranks.n == 1 && a->ranks.p[0] == 0 && a->steps.n == 1);
    tear_down();
}
END_TEST

START_TEST(children_come_page_by_page)
{
    set_up();
    ck_ok(graph_view_children(view, npu, MS_STR(""), -1, -1, 10, &page, &err), err);
    expect("DefaultModel");
    ck_ok(graph_view_children(view, npu, MS_STR("DefaultModel"), -1, -1, 2, &page, &err), err);
    expect("Module.a.A.forward.0 Module.b.B.forward.0");
    ck_assert(page.more && page.rows.p[0].has_children);
    ck_ok(graph_view_children(view, npu, MS_STR("DefaultModel"), -1, page.rows.p[1].order, 2, &page,
                              &err),
          err);
    expect("Module.new.N.forward.0");
    ck_assert(!page.more && page.rows.p[0].unmatched);
    ck_ok(graph_view_children(view, npu, MS_STR("DefaultModel"), 1, -1, 9, &page, &err), err);
    expect("");
    tear_down();
}
END_TEST

START_TEST(a_path_leads_from_the_root)
{
    set_up();
    ck_ok(graph_view_path(view, bench, MS_STR("Torch.n.5.forward"), &page, &err), err);
    expect("DefaultModel Module.old.N.forward.0 Torch.n.5.forward");
    ck_assert_int_eq(graph_view_path(view, npu, MS_STR("Torch.n.5.forward"), &page, &err),
                     MS_E_NOTFOUND);
    ck_says(err, "no node 'Torch.n.5.forward'");
    tear_down();
}
END_TEST

START_TEST(a_node_is_told_in_full)
{
    struct graph_detail d;
    set_up();
    ck_ok(graph_view_node(view, npu, MS_STR("Torch.f.1.forward"), &page, &d, &err), err);
    ck_assert(d.row.state == GRAPH_ERROR && ms_str_is(d.row.partner, "Torch.f.1.forward"));
    ck_assert(ms_str_find_str(d.output, MS_STR("\"Max diff\": \"8.0\"")) > 0);
    ck_assert(ms_str_is(d.stack, "[]") && ms_str_is(d.links, "{}"));
    tear_down();
}
END_TEST

/* With and without tables of our own. */
static void get_ready(struct graph_spot at)
{
    bool more = true;
    while (more)
        ck_ok(graph_view_ahead(view, at, &more, &err), err);
}

/* Through the pages of names, through the rows, and through shapes that were got ready. */
START_TEST(search_finds_parts_of_names_in_any_case)
{
    for (int way = 0; way < 3; way++) {
        set_up();
        if (way == 1)
            reopen(forget_ours);
        if (way == 2) {
            get_ready(npu);
            get_ready(bench);
        }
        ck_ok(graph_view_search(view, npu, MS_STR("tORCH.F"), -1, 10, &page, &err), err);
        expect("Torch.f.0.forward Torch.f.1.forward");
        ck_assert(!page.more);
        ck_ok(graph_view_search(view, npu, MS_STR("forward"), 2, 2, &page, &err), err);
        expect("Torch.f.1.forward Torch.g.1.forward");
        ck_assert(page.more);
        ck_ok(graph_view_search(view, npu, MS_STR("F.1."), -1, 9, &page, &err), err);
        expect("Torch.f.1.forward");
        ck_ok(graph_view_search(view, npu, MS_STR("#"), -1, 9, &page, &err), err);
        expect("");
        ck_ok(graph_view_search(view, npu, MS_STR("f_1"), -1, 9, &page, &err), err);
        expect("");
        ck_ok(graph_view_search(view, npu, MS_STR("%"), -1, 9, &page, &err), err);
        expect("");
        ck_ok(graph_view_search(view, bench, MS_STR("old"), -1, 9, &page, &err), err);
        expect("Module.old.N.forward.0");
        tear_down();
    }
}
END_TEST

START_TEST(states_are_filtered_and_stepped_through)
{
    for (int slow = 0; slow < 2; slow++) {
        set_up();
        if (slow)
            reopen(forget_ours);
        ck_ok(graph_view_filter(view, npu, GRAPH_WANT_ERROR | GRAPH_WANT_WARNING, -1, 10, &page,
                                &err),
              err);
        expect("Torch.f.1.forward Torch.g.1.forward");
        ck_ok(graph_view_filter(view, npu, GRAPH_WANT_UNMATCHED, -1, 1, &page, &err), err);
        expect("Torch.n.0.forward");
        ck_assert(page.more);
        ck_ok(graph_view_filter(view, npu, GRAPH_WANT_PASS, -1, 1, &page, &err), err);
        expect("Torch.f.0.forward");
        ck_ok(graph_view_next(view, npu, GRAPH_WANT_ERROR, -1, false, &page, &err), err);
        expect("Torch.f.1.forward");
        int64_t at = page.rows.p[0].order;
        ck_ok(graph_view_next(view, npu, GRAPH_WANT_WARNING | GRAPH_WANT_UNMATCHED, at, false,
                              &page, &err),
              err);
        expect("Torch.g.1.forward");
        ck_ok(graph_view_next(view, npu, GRAPH_WANT_ERROR, at, false, &page, &err), err);
        expect("");
        ck_ok(graph_view_next(view, npu, GRAPH_WANT_UNMATCHED, 100, true, &page, &err), err);
        expect("Module.new.N.forward.0");
        tear_down();
    }
}
END_TEST

/* A node that passes, one in warning and one without a partner introduce the difference; a fourth hardly does. */
#define SUSPECT(place, name, certainty)                                                            \
    "INSERT INTO x_findings (place, step, rank, node_name, ranks, certainty) VALUES (" place       \
    ", 0, 0, '" name "', '0', " certainty ");"
static const char suspects[] = "DELETE FROM x_findings;" SUSPECT("1", "Torch.f.0.forward", "0.5")
    SUSPECT("2", "Torch.g.1.forward", "0.2") SUSPECT("3", "Torch.n.0.forward", "0.1")
        SUSPECT("4", "Torch.g.0.forward", "0.05") SUSPECT("5", "Torch.none.0.forward", "0.1");

/* What the tables of ours answer is what a look at every node answers. */
static void check_next(const char *change)
{
    enum { WANTS = GRAPH_WANT_MOVED, PLACES = 12 };
    static char found[2][WANTS][PLACES][2][64];
    set_up();
    reopen(change);
    for (int slow = 0; slow < 2; slow++) {
        reopen(slow != 0 ? forget_ours : NULL);
        for (unsigned want = 1; want < WANTS; want++) {
            for (int i = 0; i < 2 * PLACES; i++) {
                ck_ok(graph_view_next(view, npu, want, i / 2 - 1, i % 2 != 0, &page, &err), err);
                struct ms_str name = page.rows.n != 0 ? page.rows.p[0].name : MS_STR("");
                snprintf(found[slow][want][i / 2][i % 2], 64, "%.*s", MS_STR_ARG(name));
            }
        }
    }
    for (unsigned want = 1; want < WANTS; want++) {
        for (int i = 0; i < 2 * PLACES; i++)
            ck_assert_msg(strcmp(found[0][want][i / 2][i % 2], found[1][want][i / 2][i % 2]) == 0,
                          "want %x from %d: %s, not %s", want, i / 2 - 1,
                          found[0][want][i / 2][i % 2], found[1][want][i / 2][i % 2]);
    }
    tear_down();
}

START_TEST(the_next_node_of_any_states_is_found_without_looking_at_all)
{
    check_next("DELETE FROM x_findings");
    check_next(suspects);
}
END_TEST

START_TEST(suspects_are_errors_wherever_nodes_are_listed_or_counted)
{
    for (int slow = 0; slow < 2; slow++) {
        struct graph_rollup r;
        set_up();
        reopen(suspects);
        reopen(slow != 0 ? forget_ours : NULL);
        ck_ok(graph_view_filter(view, npu, GRAPH_WANT_ERROR, -1, 10, &page, &err), err);
        expect("Torch.f.0.forward Torch.f.1.forward Torch.g.1.forward Torch.n.0.forward");
        ck_assert(page.rows.p[0].suspect && page.rows.p[0].rated == GRAPH_PASS);
        ck_assert(!page.rows.p[1].suspect);
        ck_ok(graph_view_filter(view, npu, GRAPH_WANT_WARNING, -1, 10, &page, &err), err);
        expect("");
        ck_ok(graph_view_rollup(view, npu, MS_STR("DefaultModel"), &r, &err), err);
        ck_assert(r.error == 4 && r.warning == 0 && r.unmatched == 2 && r.worst == GRAPH_ERROR);
        ck_ok(graph_view_rollup(view, npu, MS_STR("Module.a.A.forward.0"), &r, &err), err);
        ck_assert(r.error == 1 && r.warning == 0 && r.worst == GRAPH_ERROR);
        ck_ok(graph_view_suspect(view, npu, &page, &err), err);
        expect("Torch.f.0.forward");
        ck_ok(graph_view_suspect(view, bench, &page, &err), err);
        expect("");
        tear_down();
    }
}
END_TEST

/* What somebody parts or matches anew is judged by its new figures. */
START_TEST(a_suspect_that_was_matched_by_hand_is_none_any_more)
{
    struct graph_rollup r;
    set_up();
    reopen(suspects);
    ck_ok(graph_unmatch(made.path, npu, MS_STR("Torch.f.0.forward"), &err), err);
    reopen(NULL);
    ck_ok(graph_view_filter(view, npu, GRAPH_WANT_ERROR, -1, 10, &page, &err), err);
    expect("Torch.f.1.forward Torch.g.1.forward Torch.n.0.forward");
    ck_ok(graph_view_rollup(view, npu, MS_STR("Module.a.A.forward.0"), &r, &err), err);
    ck_assert_int_eq(r.error, 0);
    ck_ok(graph_view_suspect(view, npu, &page, &err), err);
    expect("Torch.g.1.forward");
    tear_down();
}
END_TEST

START_TEST(states_are_rolled_up)
{
    for (int slow = 0; slow < 2; slow++) {
        struct graph_rollup r;
        set_up();
        if (slow)
            reopen(forget_ours);
        ck_ok(graph_view_rollup(view, npu, MS_STR("DefaultModel"), &r, &err), err);
        ck_assert(r.error == 1 && r.warning == 1 && r.unmatched == 2 && r.worst == GRAPH_ERROR);
        ck_ok(graph_view_rollup(view, npu, MS_STR("Module.a.A.forward.0"), &r, &err), err);
        ck_assert(r.error == 0 && r.worst == GRAPH_PASS);
        ck_ok(graph_view_rollup(view, npu, MS_STR("Torch.f.1.forward"), &r, &err), err);
        ck_assert(r.error == 0 && r.worst == GRAPH_NONE);
        tear_down();
    }
}
END_TEST

START_TEST(a_matrix_shows_a_node_over_ranks_and_steps)
{
    set_up();
    ck_ok(graph_view_matrix(view, false, MS_STR("Torch.f.1.forward"), &page, &err), err);
    ck_assert_uint_eq(page.rows.n, 1);
    ck_assert(page.rows.p[0].state == GRAPH_ERROR);
    reopen("UPDATE tb_config SET rank_list = '[0, 3]', step_list = '[0, 2]';"
           "INSERT INTO tb_nodes SELECT 'x', graph_id, node_order, node_name, node_type, up_node,"
           " sub_nodes, 0, overflow_level, micro_step_id, matched_node_link, stack_id, '', '{}', 0,"
           " '{}', '{}', data_source, NULL, 2, 3, 0 FROM tb_nodes WHERE id ="
           " 'NPU_0_0_Torch.f.1.forward'");
    ck_ok(graph_view_matrix(view, false, MS_STR("Torch.f.1.forward"), &page, &err), err);
    ck_assert_uint_eq(page.rows.n, 2);
    ck_assert(page.rows.p[1].rank == 3 && page.rows.p[1].step == 2 &&
              page.rows.p[1].state == GRAPH_PASS);
    tear_down();
}
END_TEST

START_TEST(what_is_no_graph_is_refused)
{
    struct graph_view *other;
    char path[128];
    set_up();
    snprintf(path, sizeof path, "%s/x.db", dir);
    write_file(path, "not a database, whatever it is called....", 40);
    ck_assert(graph_view_open(&other, path, &err) != MS_OK);
    ck_assert_ptr_null(other);
    graph_view_close(view);
    view = NULL;
    struct ms_store *s;
    ms_err_clear(&err);
    ck_ok(ms_store_edit(&s, made.path, &err), err);
    ck_ok(ms_store_exec(s, "DELETE FROM tb_config", &err), err);
    ms_store_close(s);
    ck_assert_int_eq(graph_view_open(&other, made.path, &err), MS_E_FORMAT);
    ck_says(err, "tb_config has no row");
    tear_down();
}
END_TEST

/* ---- bands ---------------------------------------------------------------------- */

static const struct {
    const char *json;
    double value;
    enum graph_state state;
} bands[] = {
    {"null", 0, GRAPH_PASS},
    {"null", 0.5, GRAPH_WARNING},
    {"null", 1, GRAPH_ERROR},
    {"", 0.3, GRAPH_WARNING},
    {"{\"#FFFCF3\":{\"value\":[1,1]},\"#FF704D\":{\"value\":[0,0]}}", 1, GRAPH_PASS},
    {"{\"#FFFCF3\":{\"value\":[1,1]},\"#FF704D\":{\"value\":[0,0]}}", 0, GRAPH_ERROR},
    {"{\"#FFFCF3\":{\"value\":[0,0.2]},\"#FFEDBE\":{\"value\":[0.2,0.4]},"
     "\"#FF704D\":{\"value\":[0.4,1]}}",
     0.2, GRAPH_WARNING},
    {"{\"#123456\":{\"value\":[0,2],\"accuracy_level\":\"error\"},\"#C7C7C7\":{\"value\":[]}}", 1,
     GRAPH_ERROR},
    {"{\"#FFFCF3\":{\"value\":[0,0.3]}}", 7, GRAPH_ERROR},
};

/* As earlier versions of the official tool wrote it. */
START_TEST(a_file_without_is_distributed_opens)
{
    struct graph_detail d;
    uint64_t n;
    set_up();
    reopen("DROP TABLE x_meta; DROP TABLE x_state; DROP TABLE x_names; DROP TABLE x_rollup;"
           "DROP INDEX index7; ALTER TABLE tb_nodes DROP COLUMN is_distributed");
    ck_ok(graph_view_children(view, npu, MS_STR("DefaultModel"), -1, -1, 10, &page, &err), err);
    ck_assert_uint_eq(page.rows.n, 3);
    ck_ok(graph_view_node(view, npu, MS_STR("Torch.f.1.forward"), &page, &d, &err), err);
    ck_assert_int_eq(d.row.state, GRAPH_ERROR);
    ck_ok(graph_match_below(made.path, npu, MS_STR("Module.new.N.forward.0"),
                            MS_STR("Module.old.N.forward.0"), &n, &err),
          err);
    ck_assert_uint_eq(n, 2);
    tear_down();
}
END_TEST

START_TEST(colours_say_what_a_value_means)
{
    for (size_t i = 0; i < sizeof bands / sizeof *bands; i++) {
        struct graph_bands b;
        graph__bands_read(&b, ms_str_of(bands[i].json));
        ck_assert_msg(graph__band_of(&b, bands[i].value) == bands[i].state, "case %zu", i);
    }
}
END_TEST

/* ---- fates ---------------------------------------------------------------------------- */

START_TEST(what_has_moved_is_found)
{
    set_up();
    conf.matching = CMP_MATCH_AUTO;
    put_rank(target, ".",
             "{\"Module.a.A.forward.0\":null,\"Module.w.W.forward.0\":\"Module.a.A.forward.0\","
             "\"Torch.f.0.forward\":\"Module.w.W.forward.0\","
             "\"Torch.g.0.forward\":\"Module.a.A.forward.0\"}",
             DUMP(""), NULL);
    put_rank(golden, ".",
             "{\"Module.a.A.forward.0\":null,\"Torch.f.0.forward\":\"Module.a.A.forward.0\","
             "\"Torch.g.0.forward\":\"Module.a.A.forward.0\"}",
             DUMP(""), NULL);
    snprintf(out, sizeof out, "%s/moved", dir);
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    reopen(NULL);
    ck_ok(graph_view_filter(view, npu, GRAPH_WANT_MOVED, -1, 9, &page, &err), err);
    expect("Torch.f.0.forward");
    ck_ok(graph_view_next(view, npu, GRAPH_WANT_MOVED, 99, true, &page, &err), err);
    expect("Torch.f.0.forward");
    ck_ok(graph_view_next(view, npu, GRAPH_WANT_MOVED, page.rows.p[0].order, false, &page, &err),
          err);
    expect("");
    ck_ok(graph_view_filter(view, npu, GRAPH_WANT_MOVED | GRAPH_WANT_UNMATCHED, -1, 9, &page, &err),
          err);
    expect("Torch.f.0.forward Module.w.W.forward.0");
    ck_ok(graph_view_filter(view, npu, GRAPH_WANT_MOVED | GRAPH_WANT_PASS, -1, 9, &page, &err),
          err);
    expect("Torch.f.0.forward");
    /* Who is parted by hand has moved no more. */
    ck_ok(graph_unmatch(made.path, npu, MS_STR("Torch.f.0.forward"), &err), err);
    reopen(NULL);
    ck_ok(graph_view_filter(view, npu, GRAPH_WANT_MOVED, -1, 9, &page, &err), err);
    expect("");
    tear_down();
}
END_TEST

START_TEST(the_fate_of_a_node_is_told)
{
    struct graph_fate f;
    set_up();
    ck_ok(graph_view_fate(view, npu, MS_STR("Torch.f.1.forward"), &page, &f, &err), err);
    ck_assert(ms_str_is(f.kind, "matched") && ms_str_is(f.partner, "Torch.f.1.forward"));
    ck_ok(graph_view_fate(view, npu, MS_STR("Torch.n.0.forward"), &page, &f, &err), err);
    ck_assert(ms_str_is(f.kind, "extra") && f.partner.n == 0);
    ck_ok(graph_view_fate(view, bench, MS_STR("Torch.n.5.forward"), &page, &f, &err), err);
    ck_assert(ms_str_is(f.kind, "missing"));
    ck_assert_int_eq(graph_view_fate(view, npu, MS_STR("Torch.q.0"), &page, &f, &err),
                     MS_E_NOTFOUND);
    tear_down();
}
END_TEST

START_TEST(data_flow_is_followed_both_ways)
{
    struct graph_findings found = {.arena = NULL};
    set_up();
    graph_view_close(view);
    view = NULL;
    put_rank(
        target, ".",
        "{\"Torch.f.0.forward\":null,\"Torch.g.0.forward\":null,\"Torch.h.0.forward\":null}",
        DUMP(RECORD("Torch.f.0.forward", FLAT("0.0"), LEAF("2.0", "1.0", "1.5", "4.0")) "," RECORD(
            "Torch.g.0.forward", LEAF("2.0", "1.0", "1.5", "4.0"),
            FLAT("0.0")) "," RECORD("Torch.h.0.forward", LEAF("2.0", "1.0", "1.5", "4.0"),
                                    FLAT("0.0"))),
        NULL);
    conf.golden = NULL;
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    ck_ok(graph_view_open(&view, made.path, &err), err);
    ck_ok(graph_view_flow(view, npu, MS_STR("Torch.f.0.forward"), true, &page, &err), err);
    ck_assert_uint_eq(page.rows.n, 2);
    ck_assert(ms_str_is(page.rows.p[1].name, "Torch.h.0.forward"));
    ck_ok(graph_view_flow(view, npu, MS_STR("Torch.h.0.forward"), false, &page, &err), err);
    ck_assert_uint_eq(page.rows.n, 1);
    ck_assert(ms_str_is(page.rows.p[0].name, "Torch.f.0.forward"));
    ck_ok(graph_view_findings(view, &found, &err), err);
    ck_assert_uint_eq(found.list.n, 0);
    graph_findings_free(&found);
    tear_down();
}
END_TEST

TEST_MAIN("graph_view", the_configuration_is_told, children_come_page_by_page,
          a_path_leads_from_the_root, a_node_is_told_in_full,
          search_finds_parts_of_names_in_any_case, states_are_filtered_and_stepped_through,
          the_next_node_of_any_states_is_found_without_looking_at_all, states_are_rolled_up,
          a_matrix_shows_a_node_over_ranks_and_steps, what_is_no_graph_is_refused,
          a_file_without_is_distributed_opens, colours_say_what_a_value_means,
          suspects_are_errors_wherever_nodes_are_listed_or_counted,
          a_suspect_that_was_matched_by_hand_is_none_any_more, what_has_moved_is_found,
          the_fate_of_a_node_is_told, data_flow_is_followed_both_ways)
