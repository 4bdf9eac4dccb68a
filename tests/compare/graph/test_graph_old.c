/* SPDX-License-Identifier: MIT */
#include "tests/support/graph_files.h"

static struct ms_err err;
static char dir[64], vis[128], out[96];
static struct graph_made made;
static struct graph_view *view;
static struct graph_page page;
static size_t live_before;

static void set_up(const char *name)
{
    ms_err_clear(&err);
    scratch_dir(dir);
    snprintf(vis, sizeof vis, "%s/%s", dir, name);
    snprintf(out, sizeof out, "%s/o", dir);
    live_before = ms_mem_live();
}

static void tear_down(void)
{
    graph_page_free(&page);
    graph_view_close(view);
    view = NULL;
    ck_assert_uint_eq(ms_mem_live(), live_before);
    scratch_remove(dir);
}

static enum ms_rc convert(const char *text)
{
    write_file(vis, text, strlen(text));
    return graph_convert(vis, out, &made, &err);
}

#define SIDE(index, link)                                                                          \
    "{\"root\": \"DefaultModel\", \"dump_data_dir\": \"\", \"node\": {"                            \
    "\"DefaultModel\": {\"id\": \"DefaultModel\", \"node_type\": 0, \"output_data\": {},"          \
    " \"input_data\": {}, \"upnode\": \"None\", \"subnodes\": [\"Torch.f.0.forward\"],"            \
    " \"matched_node_link\": [], \"stack_info\": [], \"data\": {}},"                               \
    "\"Torch.f.0.forward\": {\"id\": \"Torch.f.0.forward\", \"node_type\": 1,"                     \
    " \"output_data\": {}, \"input_data\": {}, \"upnode\": \"DefaultModel\", \"subnodes\": [],"    \
    " \"matched_node_link\": " link ", \"stack_info\": [\"File m.py\"],"                           \
    " \"data\": {\"precision_index\": " index "}}}}"
#define COLOURS(pass, error)                                                                       \
    "\"Colors\": {\"#FFFCF3\": {\"value\": " pass ", \"description\": \"\"},"                      \
    " \"#FF704D\": {\"value\": " error ", \"description\": \"\"}}"

START_TEST(a_comparison_of_old_opens)
{
    const struct graph_spot npu = {3, 2, false};
    set_up("compare_step3_rank2_20250101.vis");
    ck_ok(
        convert("{\"NPU\": " SIDE(
            "0.9",
            "[\"N___DefaultModel\", \"N___Torch.f.0.forward\"]") ", \"Bench\": " SIDE("null",
                                                                                      "[]") ", "
                                                                                            "\"Micr"
                                                                                            "oSteps"
                                                                                            "\": "
                                                                                            "1, "
                                                                                            "\"task"
                                                                                            "\": "
                                                                                            "\"summ"
                                                                                            "ary\","
                                                                                            " " COLOURS(
                                                                                                "[0"
                                                                                                ", "
                                                                                                "0."
                                                                                                "2"
                                                                                                "]",
                                                                                                "[0"
                                                                                                ".8"
                                                                                                ", "
                                                                                                "1"
                                                                                                "]") "}"),
        err);
    ck_assert_uint_eq(made.nodes[0], 2);
    ck_assert_uint_eq(made.nodes[1], 2);
    ck_ok(graph_view_open(&view, made.path, &err), err);
    ck_assert(graph_view_about(view)->dual);
    ck_ok(graph_view_children(view, npu, MS_STR("DefaultModel"), -1, -1, 10, &page, &err), err);
    ck_assert_uint_eq(page.rows.n, 1);
    ck_assert_int_eq(page.rows.p[0].state, GRAPH_ERROR);
    ck_assert(ms_str_is(page.rows.p[0].partner, "Torch.f.0.forward"));
    tear_down();
}
END_TEST

START_TEST(digests_of_old_are_good_at_1)
{
    const struct graph_spot npu = {0, 0, false};
    set_up("compare_1.vis");
    ck_ok(convert("{\"NPU\": " SIDE("1", "[\"Torch.f.0.forward\"]") ", \"Bench\": " SIDE(
              "null", "[]") ", \"task\": \"md5\", " COLOURS("[1, 1]", "[0, 0]") "}"),
          err);
    ck_ok(graph_view_open(&view, made.path, &err), err);
    ck_ok(graph_view_children(view, npu, MS_STR("DefaultModel"), -1, -1, 10, &page, &err), err);
    ck_assert_int_eq(page.rows.p[0].state, GRAPH_PASS);
    tear_down();
}
END_TEST

START_TEST(a_single_graph_of_old_opens)
{
    const struct graph_spot npu = {0, 7, false};
    struct graph_detail d;
    set_up("build_rank7_1.vis");
    ck_ok(convert(SIDE("null", "[]")), err);
    ck_ok(graph_view_open(&view, made.path, &err), err);
    ck_assert(!graph_view_about(view)->dual);
    ck_ok(graph_view_node(view, npu, MS_STR("Torch.f.0.forward"), &page, &d, &err), err);
    ck_assert(ms_str_is(d.stack, "[\"File m.py\"]"));
    tear_down();
}
END_TEST

START_TEST(what_is_no_old_file_is_refused)
{
    static const struct {
        const char *text, *why;
    } cases[] = {{"", "unexpected end"},
                 {"[]", "expected an object"},
                 {"{}", "no nodes"},
                 {"{\"node\": []}", "expected an object of nodes"},
                 {"{\"root\": \"x\", \"node\": {\"a\": {}}}", "no root node"},
                 {"{\"root\": \"a\", \"node\": {\"a\": {\"subnodes\": [\"a\"", "byte"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_up("x.vis");
        ck_assert_int_ne(convert(cases[i].text), MS_OK);
        ck_assert_uint_gt(strlen(err.msg), strlen(vis));
        if (i != 0 && i != 5)
            ck_says(err, cases[i].why);
        ck_assert(made.path[0] == '\0' || ms_path_kind(made.path) == MS_KIND_NONE);
        tear_down();
    }
}
END_TEST

START_TEST(a_node_that_holds_itself_is_written_once)
{
    set_up("x.vis");
    ck_ok(convert("{\"root\": \"a\", \"node\": {\"a\": {\"subnodes\": [\"b\", \"b\", \"zz\"]},"
                  " \"b\": {\"subnodes\": [\"a\", \"b\"]}}}"),
          err);
    ck_assert_uint_eq(made.nodes[0], 2);
    tear_down();
}
END_TEST

TEST_MAIN("graph_old", a_comparison_of_old_opens, digests_of_old_are_good_at_1,
          a_single_graph_of_old_opens, what_is_no_old_file_is_refused,
          a_node_that_holds_itself_is_written_once)
