/* SPDX-License-Identifier: MIT */
#include "tests/graph_files.h"

#include "compare/graph_bands.h"

static struct ms_err err;
static char dir[64], target[96], golden[96], out[96];
static struct graph_conf conf;
static struct graph_made made;
static struct graph_view *view;
static struct graph_page page;
static const struct graph_spot npu = {0, 0, false}, bench = {0, 0, true};
static size_t live_before;

/* A model of two blocks on both sides; the second block's operators go wrong, and the target has a
 * module of its own. */
#define TREE(extra)                                                                                \
    "{\"Module.a.A.forward.0\":null,\"Torch.f.0.forward\":\"Module.a.A.forward.0\","               \
    "\"Torch.g.0.forward\":\"Module.a.A.forward.0\",\"Module.b.B.forward.0\":null,"                \
    "\"Torch.f.1.forward\":\"Module.b.B.forward.0\",\"Torch.g.1.forward\":\"Module.b.B.forward."   \
    "0\"" extra "}"
#define OPS(bad)                                                                                   \
    RECORD("Torch.f.0.forward", FLAT("1.0"), FLAT("1.0"))                                          \
    "," RECORD("Torch.g.0.forward", FLAT("1.0"), FLAT("1.0")) "," RECORD(                          \
        "Torch.f.1.forward", FLAT("1.0"), FLAT(bad)) "," RECORD("Torch.g.1.forward", FLAT("1.0"),  \
                                                                FLAT("1.2"))

static void set_up(void)
{
    ms_err_clear(&err);
    scratch_dir(dir);
    snprintf(target, sizeof target, "%s/t", dir);
    snprintf(golden, sizeof golden, "%s/g", dir);
    snprintf(out, sizeof out, "%s/o", dir);
    live_before = ms_mem_live();
    conf = (struct graph_conf){
        .target = target, .golden = golden, .out_dir = out, .matching = CMP_MATCH_EXACT};
    put_rank(
        target, ".",
        TREE(",\"Module.new.N.forward.0\":null,\"Torch.n.0.forward\":\"Module.new.N.forward.0\""),
        DUMP(OPS("9.0") "," RECORD("Torch.n.0.forward", FLAT("1.0"), FLAT("7.0"))), NULL);
    put_rank(
        golden, ".",
        TREE(",\"Module.old.N.forward.0\":null,\"Torch.n.5.forward\":\"Module.old.N.forward.0\""),
        DUMP(RECORD("Torch.f.0.forward", FLAT("1.0"), FLAT("1.0")) "," RECORD(
            "Torch.g.0.forward", FLAT("1.0"),
            FLAT("1.0")) "," RECORD("Torch.f.1.forward", FLAT("1.0"),
                                    FLAT("1.0")) "," RECORD("Torch.g.1.forward", FLAT("1.0"),
                                                            FLAT("1.0")) "," RECORD("Torch.n.5."
                                                                                    "forward",
                                                                                    FLAT("1.0"),
                                                                                    FLAT("1.0"))),
        NULL);
    ck_ok(graph_make(&conf, NULL, &made, &err), err);
    ck_ok(graph_view_open(&view, made.path, &err), err);
}

static void tear_down(void)
{
    graph_page_free(&page);
    graph_view_close(view);
    ms_trace_reset();
    ck_assert_uint_eq(ms_mem_live(), live_before);
    scratch_remove(dir);
}

/* After a change, or with sql that makes the tables of ours useless. */
static void reopen(const char *change)
{
    graph_view_close(view);
    view = NULL;
    if (change != NULL) {
        struct ms_store *s;
        ck_ok(ms_store_edit(&s, made.path, &err), err);
        ck_ok(ms_store_exec(s, change, &err), err);
        ms_store_close(s);
    }
    ck_ok(graph_view_open(&view, made.path, &err), err);
}
static const char forget_ours[] =
    "DROP TABLE x_meta; DROP TABLE x_state; DROP TABLE x_names; DROP TABLE x_rollup";

static void expect(const char *wanted)
{
    struct ms_buf names = {.max = 1 << 20};
    for (size_t i = 0; i < page.rows.n; i++)
        ms_buf_printf(&names, "%s%.*s", i > 0 ? " " : "", MS_STR_ARG(page.rows.p[i].name));
    ck_assert_str_eq(ms_buf_z(&names), wanted);
    ms_buf_free(&names);
}

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

/* What the tables of ours answer is what a look at every node answers. */
START_TEST(the_next_node_of_any_states_is_found_without_looking_at_all)
{
    enum { WANTS = GRAPH_WANT_MOVED, PLACES = 12 };
    static char found[2][WANTS][PLACES][2][64];
    set_up();
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
    ck_ok(graph_make(&conf, NULL, &made, &err), err);
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
    ck_ok(graph_save_matches(made.path, npu, &file, &n, &err), err);
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
    ck_ok(graph_make(&conf, NULL, &made, &err), err);
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
    ck_ok(graph_make(&conf, NULL, &made, &err), err);
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
    ck_ok(graph_make(&conf, NULL, &made, &err), err);
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
    ck_ok(graph_make(&conf, NULL, &made, &err), err);
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
          a_match_by_hand_writes_what_the_plugin_would,
          unmatching_takes_figures_away_and_undo_brings_all_back,
          a_match_again_gives_the_figures_of_the_file, descendants_are_matched_by_their_names,
          many_children_of_few_likenesses_are_matched, descendants_are_unmatched_in_one_change,
          impossible_changes_are_refused_and_leave_nothing, changes_of_the_plugin_show,
          matches_are_saved_and_applied_to_another_file,
          a_config_of_the_plugin_may_hold_pairs_the_wrong_way_round,
          what_is_no_config_is_refused_and_changes_nothing,
          tensors_matched_by_hand_are_measured_by_their_files,
          tensors_whose_files_are_gone_are_matched_without_figures, what_has_moved_is_found,
          the_fate_of_a_node_is_told, data_flow_is_followed_both_ways)
