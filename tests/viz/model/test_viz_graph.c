/* SPDX-License-Identifier: MIT
 *
 * The graph as viewers show it: both sides in one list, folding, search terms.
 */
#include "tests/support/graph_files.h"

#include "viz/model/finding.h"
#include "viz/model/outline.h"
#include "viz/model/pairs.h"
#include "viz/model/session.h"
#include "viz/model/terms.h"

static struct ms_err err;
static char dir[64], target[96], golden[96], out[96];
static struct graph_made made;
static struct graph_view *view;
static struct viz_outline tree;
static struct ms_buf text;

#define BLOCK(n)                                                                                   \
    "\"Module.layers." #n ".L.forward.0\":null,\"Torch.f." #n ".forward\":\"Module.layers." #n     \
    ".L.forward.0\","
#define BLOCKS   BLOCK(0) BLOCK(1) BLOCK(2) BLOCK(3)
#define OP(n, x) RECORD("Torch.f." #n ".forward", FLAT("1.0"), FLAT(x))

/* Four equal layers of which the last goes wrong; before them what only the golden side has, behind
 * them what only the target has. */
static void set_up(void)
{
    ms_err_clear(&err);
    scratch_dir(dir);
    snprintf(target, sizeof target, "%s/t", dir);
    snprintf(golden, sizeof golden, "%s/g", dir);
    snprintf(out, sizeof out, "%s/o", dir);
    text = (struct ms_buf){.max = 1 << 20};
    struct graph_conf conf = {.target = target, .golden = golden, .out_dir = out};
    put_rank(target, ".",
             "{" BLOCKS "\"Module.new.N.forward.0\":null,\"Torch.n.0.forward\":"
             "\"Module.new.N.forward.0\"}",
             DUMP(OP(0, "1.0") "," OP(1, "1.0") "," OP(2, "1.0") "," OP(3, "9.0") "," RECORD(
                 "Torch.n.0.forward", FLAT("1.0"), FLAT("7.0"))),
             NULL);
    put_rank(golden, ".",
             "{\"Module.old.N.forward.0\":null,\"Torch.o.0.forward\":"
             "\"Module.old.N.forward.0\"," BLOCKS "\"Torch.z.0.forward\":null}",
             DUMP(RECORD("Torch.o.0.forward", FLAT("1.0"), FLAT("1.0")) "," OP(0, "1.0") "," OP(
                 1, "1.0") "," OP(2, "1.0") "," OP(3, "1.0")),
             NULL);
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    ck_ok(graph_view_open(&view, made.path, &err), err);
}

static void tear_down(void)
{
    viz_outline_close(&tree);
    graph_view_close(view);
    ms_buf_free(&text);
    ms_trace_reset();
    scratch_remove(dir);
}

static struct ms_str last_but_call(struct ms_str name)
{
    struct ms_str s = ms_str_sub(name, (uint32_t)(ms_str_find(name, '.') + 1), name.n);
    int64_t at = ms_str_find_str(s, MS_STR(".forward"));
    return at > 0 ? ms_str_sub(s, 0, (uint32_t)at) : name;
}

/* "layers.0.L=layers.0.L, x=, =y": names of both sides, depth by leading dots. */
static const char *shown(void)
{
    ms_buf_clear(&text);
    for (size_t i = 0; i < tree.rows.n; i++) {
        const struct viz_row *r = &tree.rows.p[i];
        ms_buf_puts(&text, i != 0 ? " " : "");
        for (int d = 0; d < r->depth; d++)
            ms_buf_putc(&text, '.');
        if (r->kind == VIZ_ROW_MORE) {
            ms_buf_puts(&text, "more");
            continue;
        }
        ms_buf_str(&text, last_but_call(r->pair.target.name));
        ms_buf_putc(&text, '=');
        ms_buf_str(&text, last_but_call(r->pair.golden.name));
        if (r->kind == VIZ_ROW_RUN)
            ms_buf_printf(&text, "x%u", r->run);
    }
    return ms_buf_z(&text);
}

static void open_tree(void)
{
    ck_ok(viz_outline_open(&tree, view, 0, 0, &err), err);
}

static size_t row_of(const char *name)
{
    size_t row;
    ck_ok(viz_outline_reveal(&tree, false, ms_str_of(name), &row, &err), err);
    return row;
}

START_TEST(both_sides_stand_in_one_list_and_what_is_missing_has_its_place)
{
    open_tree();
    ck_assert_msg(strstr(shown(), ".=old.N .layers.0.L=layers.0.Lx3 .layers.3.L=layers.3.L") !=
                      NULL,
                  "%s", shown());
    ck_assert_msg(strstr(shown(), ".new.N=") != NULL, "%s", shown());
}
END_TEST

START_TEST(a_closed_module_tells_what_is_wrong_below_it)
{
    open_tree();
    const struct viz_row *r = &tree.rows.p[row_of("Module.layers.3.L.forward.0")];
    ck_assert_int_eq(r->pair.below.error, 1);
    ck_assert_int_eq(r->pair.below.worst, GRAPH_ERROR);
}
END_TEST

START_TEST(unfolding_and_folding_again_changes_nothing)
{
    open_tree();
    char before[4096];
    snprintf(before, sizeof before, "%s", shown());
    size_t row = row_of("Module.layers.3.L.forward.0");
    ck_ok(viz_outline_unfold(&tree, row, &err), err);
    ck_assert(tree.rows.p[row].open);
    ck_assert_msg(strstr(shown(), "..f.3=f.3") != NULL, "%s", shown());
    viz_outline_fold(&tree, row);
    ck_assert_str_eq(shown(), before);
}
END_TEST

START_TEST(a_run_of_equal_layers_comes_apart_when_it_is_opened)
{
    open_tree();
    size_t run = 0;
    while (tree.rows.p[run].kind != VIZ_ROW_RUN)
        run++;
    ck_ok(viz_outline_unfold(&tree, run, &err), err);
    ck_assert_msg(strstr(shown(), ".layers.0.L=layers.0.L .layers.1.L=layers.1.L "
                                  ".layers.2.L=layers.2.L .layers.3.L") != NULL,
                  "%s", shown());
}
END_TEST

START_TEST(a_node_within_a_run_can_be_revealed)
{
    open_tree();
    size_t row = row_of("Torch.f.1.forward");
    ck_assert(ms_str_is(tree.rows.p[row].pair.target.name, "Torch.f.1.forward"));
    size_t up = viz_outline_parent(&tree, row);
    ck_assert(ms_str_is(tree.rows.p[up].pair.target.name, "Module.layers.1.L.forward.0"));
}
END_TEST

START_TEST(a_golden_node_without_partner_can_be_revealed)
{
    size_t row;
    open_tree();
    ck_ok(viz_outline_reveal(&tree, true, MS_STR("Torch.o.0.forward"), &row, &err), err);
    ck_assert(ms_str_is(tree.rows.p[row].pair.golden.name, "Torch.o.0.forward"));
    ck_assert_int_eq(tree.rows.p[row].pair.where, VIZ_ONLY_GOLDEN);
}
END_TEST

START_TEST(a_name_that_is_not_there_is_not_found)
{
    size_t row;
    open_tree();
    ck_assert_int_eq(viz_outline_reveal(&tree, false, MS_STR("Torch.q.0.forward"), &row, &err),
                     MS_E_NOTFOUND);
}
END_TEST

START_TEST(siblings_and_parents_are_rows_of_the_same_list)
{
    open_tree();
    size_t row = row_of("Module.layers.3.L.forward.0");
    size_t next = viz_outline_sibling(&tree, row, 1);
    ck_assert(ms_str_is(tree.rows.p[next].pair.target.name, "Module.new.N.forward.0"));
    ck_assert_uint_eq(viz_outline_sibling(&tree, next, -1), row);
    ck_assert_uint_eq(viz_outline_parent(&tree, 0), 0);
}
END_TEST

START_TEST(pages_that_follow_each_other_make_the_whole_list)
{
    struct viz_pairs_of of = {0, 0, -1, MS_STR("DefaultModel"), MS_STR("DefaultModel"), {0, 0}};
    struct viz_pairs page = {.more = true};
    struct ms_buf one = {.max = 1 << 16}, all = {.max = 1 << 16};
    open_tree();
    of.target = tree.rows.p[0].pair.target.name;
    of.golden = tree.rows.p[0].pair.golden.name;
    for (uint32_t limit = 1; limit <= 100; limit += 99) {
        struct ms_buf *to = limit == 1 ? &one : &all;
        struct viz_pair_cursor at = VIZ_PAIRS_FIRST;
        int pages = 0;
        do {
            ck_ok(viz_pairs_read(&page, view, &of, at, limit, &err), err);
            at = page.next;
            for (size_t i = 0; i < page.rows.n; i++)
                ms_buf_printf(to, "%.*s=%.*s ", MS_STR_ARG(page.rows.p[i].target.name),
                              MS_STR_ARG(page.rows.p[i].golden.name));
            pages++;
        } while (page.more && pages < 100);
        ck_assert_int_lt(pages, 100);
    }
    ck_assert_str_eq(ms_buf_z(&one), ms_buf_z(&all));
    ck_assert_uint_gt(all.n, 100);
    viz_pairs_free(&page);
    ms_buf_free(&one);
    ms_buf_free(&all);
}
END_TEST

START_TEST(names_that_differ_in_one_number_are_the_same_layer)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {{"layers.3.mlp", "layers.4.mlp", true},
                 {"layers.9.mlp", "layers.10.mlp", true},
                 {"layers.3.mlp.1", "layers.4.mlp.2", false},
                 {"layers.3.mlp", "layers.3.mlp", false},
                 {"layers.3.mlp", "layers.3.mlps", false},
                 {"layers.a", "layers.3", false},
                 {"", "", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(viz_same_but_number(ms_str_of(cases[i].a), ms_str_of(cases[i].b)) ==
                          cases[i].same,
                      "%s and %s", cases[i].a, cases[i].b);
}
END_TEST

/* ---- terms ------------------------------------------------------------------------ */

static const char *hits(const char *terms, bool on_golden)
{
    struct viz_terms *t;
    struct graph_page page = {.more = false};
    struct graph_spot at = {0, 0, on_golden};
    int64_t reached;
    ck_ok(viz_terms_new(&t, ms_str_of(terms), &err), err);
    ck_ok(viz_terms_search(t, view, at, -1, 100, &page, &reached, &err), err);
    ms_buf_clear(&text);
    for (size_t i = 0; i < page.rows.n; i++)
        ms_buf_printf(&text, "%s%.*s", i != 0 ? " " : "", MS_STR_ARG(page.rows.p[i].name));
    graph_page_free(&page);
    viz_terms_free(t);
    return ms_buf_z(&text);
}

START_TEST(terms_find_nodes_by_word_class_state_and_expression)
{
    static const struct {
        const char *terms, *hits;
    } cases[] = {
        {"F.2", "Torch.f.2.forward"},
        {"state:error Torch", "Torch.f.3.forward"},
        {"state:U class:n", "Torch.n.0.forward Module.new.N.forward.0"},
        {"class:F -f.0 -state:E", "Torch.f.1.forward Torch.f.2.forward"},
        {"/\\.[02]\\./ torch.f", "Torch.f.0.forward Torch.f.2.forward"},
        {"\"f.1\"", "Torch.f.1.forward"},
        {"f shape:2x3 dtype:fp32 /f\\.0/", "Torch.f.0.forward"},
        {"f shape:3,2", ""},
        {"torch rank:1", ""},
        {"torch rank:0 state:.", "Torch.f.0.forward Torch.f.1.forward Torch.f.2.forward"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(strcmp(hits(cases[i].terms, false), cases[i].hits) == 0, "%s finds '%s'",
                      cases[i].terms, hits(cases[i].terms, false));
    ck_assert_str_eq(hits("state:unmatched torch", true), "Torch.o.0.forward Torch.z.0.forward");
}
END_TEST

START_TEST(terms_that_make_no_sense_say_what_would)
{
    static const struct {
        const char *terms, *why;
    } bad[] = {{"state:purple", "unmatched"}, {"rank:first", "no number"},
               {"/(/", "regular expression"}, {"dur>5", "write dur>5ms"},
               {"dur>", "write dur>5ms"},     {"dur<x", "write dur>5ms"},
               {"kind:odd", "no kind"},       {"\"\" class:\"\"x -class:", "says nothing"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct viz_terms *t;
        ms_err_clear(&err);
        ck_assert_int_eq(viz_terms_new(&t, ms_str_of(bad[i].terms), &err), MS_E_ARG);
        ck_assert_ptr_null(t);
        ck_says(err, bad[i].why);
    }
}
END_TEST

START_TEST(slices_have_terms_of_their_own)
{
    static const struct {
        const char *terms;
        bool first, second;
    } cases[] = {{"rank:3", true, false},
                 {"-rank:3", false, true},
                 {"kind:comm", true, false},
                 {"kind:copy", false, true},
                 {"dur>5ms", true, false},
                 {"dur>=5ms", true, true},
                 {"dur<5ms", false, false},
                 {"dur<=5000us", false, true},
                 {"domain:COMM dur>1s", false, false},
                 {"-dur>5ms -kind:comm", false, true},
                 {"domain:comm", true, false},
                 {"AllReduce", true, true}};
    const struct viz_slice first = {3, 6000000, MS_STR("communication"), VIZ_SLICE_COMM};
    const struct viz_slice second = {4, 5000000, MS_STR("default"), VIZ_SLICE_COPY};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct viz_terms *t;
        ck_ok(viz_terms_new(&t, ms_str_of(cases[i].terms), &err), err);
        ck_ok(viz_terms_fit(t, true, &err), err);
        ck_assert_msg(viz_terms_meet_slice(t, &first) == cases[i].first, "%s", cases[i].terms);
        ck_assert_msg(viz_terms_meet_slice(t, &second) == cases[i].second, "%s", cases[i].terms);
        viz_terms_free(t);
    }
}
END_TEST

START_TEST(terms_of_slices_and_of_nodes_are_told_apart)
{
    static const struct {
        const char *terms, *why;
        bool of_slices;
    } bad[] = {{"dur>5ms", "terms of the timeline", false},
               {"kind:comm", "terms of the timeline", false},
               {"state:E", "terms of the graph", true},
               {"x shape:8", "terms of the graph", true}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct viz_terms *t;
        ms_err_clear(&err);
        ck_ok(viz_terms_new(&t, ms_str_of(bad[i].terms), &err), err);
        ck_assert_int_eq(viz_terms_fit(t, bad[i].of_slices, &err), MS_E_ARG);
        ck_says(err, bad[i].why);
        viz_terms_free(t);
    }
}
END_TEST

START_TEST(a_slice_has_the_kind_of_its_name_and_domain)
{
    ck_assert_int_eq(viz_slice_kind_of(MS_STR("communication"), MS_STR("x"), false),
                     VIZ_SLICE_COMM);
    ck_assert_int_eq(viz_slice_kind_of(MS_STR(""), MS_STR("ncclAllReduceKernel"), true),
                     VIZ_SLICE_COMM);
    ck_assert_int_eq(viz_slice_kind_of(MS_STR(""), MS_STR("cudaStreamSynchronize"), false),
                     VIZ_SLICE_WAIT);
    ck_assert_int_eq(viz_slice_kind_of(MS_STR(""), MS_STR("Memcpy HtoD"), true), VIZ_SLICE_COPY);
    ck_assert_int_eq(viz_slice_kind_of(MS_STR(""), MS_STR("gemm"), true), VIZ_SLICE_COMPUTE);
    ck_assert_int_eq(viz_slice_kind_of(MS_STR(""), MS_STR("gemm"), false), VIZ_SLICE_MARK);
}
END_TEST

START_TEST(no_terms_are_met_by_everything)
{
    struct viz_terms *t;
    ck_ok(viz_terms_new(&t, MS_STR("   "), &err), err);
    ck_assert(viz_terms_empty(t));
    ck_assert(viz_terms_meet_text(t, MS_STR("anything")));
    viz_terms_free(t);
}
END_TEST

/* Its module lies before it in the tree, and what comes behind it has the NaN from it. */
START_TEST(a_dump_alone_names_the_operator_that_overflows_first)
{
    struct viz_findings found = {.arena = NULL};
    struct graph_conf conf = {.target = target, .out_dir = out, .overflow = true};
    put_rank(target, ".",
             "{\"Module.m.M.forward.0\":null,\"Torch.a.0.forward\":\"Module.m.M.forward.0\","
             "\"Torch.b.0.forward\":\"Module.m.M.forward.0\"}",
             DUMP(RECORD("Torch.a.0.forward", FLAT("1.0"), FLAT("NaN")) "," RECORD(
                 "Torch.b.0.forward", FLAT("NaN"),
                 FLAT("NaN")) "," RECORD("Module.m.M.forward.0", FLAT("1.0"), FLAT("NaN"))),
             NULL);
    graph_view_close(view);
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    ck_ok(graph_view_open(&view, made.path, &err), err);
    ck_ok(viz_findings_read(&found, &(struct viz_reader){.graph = view}, VIZ_ENGLISH, &err), err);
    ck_assert_uint_eq(found.list.n, 1);
    const struct viz_finding *f = &found.list.p[0];
    ck_assert_int_eq(f->severity, VIZ_ERROR);
    ck_assert(ms_str_is(f->place.node, "Torch.a.0.forward"));
    ck_assert_msg(
        ms_str_starts(
            f->text,
            MS_STR("is where NaN, infinity or an exploding norm begins: 3 nodes have one")),
        "%.*s", MS_STR_ARG(f->text));
    viz_findings_free(&found);
}
END_TEST

/* Nothing is an error here, as where a fault is small; what fails behind it has got it from there. */
START_TEST(without_an_error_the_first_warning_is_where_two_runs_part)
{
    struct viz_findings found = {.arena = NULL};
    struct graph_conf conf = {.target = target, .golden = golden, .out_dir = out};
    const char *tree_of_both = "{" BLOCKS "\"Torch.z.0.forward\":null}";
    put_rank(target, ".", tree_of_both,
             DUMP(OP(0, "1.0") "," OP(1, "1.2") "," RECORD("Torch.f.2.forward", FLAT("1.2"),
                                                           FLAT("1.2")) "," OP(3, "1.3")),
             NULL);
    put_rank(golden, ".", tree_of_both,
             DUMP(OP(0, "1.0") "," OP(1, "1.0") "," OP(2, "1.0") "," OP(3, "1.0")), NULL);
    graph_view_close(view);
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    ck_ok(graph_view_open(&view, made.path, &err), err);
    ck_ok(viz_findings_read(&found, &(struct viz_reader){.graph = view}, VIZ_ENGLISH, &err), err);
    ck_assert_uint_ge(found.list.n, 1);
    const struct viz_finding *f = &found.list.p[found.list.n - 1];
    ck_assert_int_eq(f->severity, VIZ_WARNING);
    ck_assert_msg(ms_str_is(f->place.node, "Torch.f.1.forward"), "%.*s", MS_STR_ARG(f->text));
    viz_findings_free(&found);
}
END_TEST

/* The first suspect is where the difference begins, though its figures pass; one that is hardly likely is
 * no error. */
START_TEST(a_suspect_is_where_the_difference_begins)
{
    struct viz_findings found = {.arena = NULL};
    struct ms_store *s;
    graph_view_close(view);
    ck_ok(ms_store_edit(&s, made.path, &err), err);
    ck_ok(ms_store_exec(s,
                        "DELETE FROM x_findings; INSERT INTO x_findings (place, step, rank,"
                        " node_name, ranks, certainty, text) VALUES"
                        " (1, 0, 0, 'Torch.f.0.forward', '0,3', 0.75, 'is it'),"
                        " (2, 0, 0, 'Torch.f.1.forward', '0', 0.02, 'may be it')",
                        &err),
          err);
    ms_store_close(s);
    ck_ok(graph_view_open(&view, made.path, &err), err);
    ck_ok(viz_findings_read(&found, &(struct viz_reader){.graph = view}, VIZ_ENGLISH, &err), err);
    ck_assert_uint_eq(found.list.n, 3);
    ck_assert_int_eq(found.list.p[0].severity, VIZ_ERROR);
    ck_assert(ms_str_is(found.list.p[0].text, "is it (75 % sure)"));
    ck_assert(viz_finding_has_rank(&found.list.p[0], 3) &&
              viz_finding_has_rank(&found.list.p[0], 0));
    ck_assert(!viz_finding_has_rank(&found.list.p[0], 33));
    ck_assert_int_eq(found.list.p[1].severity, VIZ_WARNING);
    ck_assert(ms_str_is(found.list.p[1].text, "may be it (2 % sure)"));
    ck_assert_int_eq(found.list.p[2].severity, VIZ_WARNING);
    ck_assert(ms_str_is(found.list.p[2].place.node, "Torch.f.0.forward"));
    viz_findings_free(&found);
}
END_TEST

static void is_short(const char *name, const char *parent, const char *want)
{
    struct ms_str got = viz_node_short(ms_str_of(name), ms_str_of(parent));
    ck_assert_msg(ms_str_eq(got, ms_str_of(want)), "%s below %s: %.*s", name, parent, (int)got.n,
                  got.p);
}

START_TEST(a_row_says_what_the_row_above_does_not)
{
    is_short("Module.layers.0.attn.A.forward.0", "Module.layers.0.L.forward.0", "attn.A");
    is_short("Cell.layers.0.attn.A.forward.0", "Cell.layers.0.L.forward.0", "attn.A");
    is_short("Module.layers.0.L.backward.0", "DefaultModel", "layers.0.L.backward");
    is_short("Module.layers.0.L.forward.1", "DefaultModel", "layers.0.L.forward.1");
    is_short("Module.layers.01.L.forward.0", "Module.layers.0.L.forward.0", "layers.01.L");
    is_short("Functional.softmax.3.forward", "Module.layers.0.L.forward.0", "Functional.softmax.3");
    is_short("Functional.softmax.3.backward", "", "Functional.softmax.3.backward");
}
END_TEST

TEST_MAIN_AROUND(
    set_up, tear_down, "viz_graph", both_sides_stand_in_one_list_and_what_is_missing_has_its_place,
    a_closed_module_tells_what_is_wrong_below_it, unfolding_and_folding_again_changes_nothing,
    a_run_of_equal_layers_comes_apart_when_it_is_opened, a_node_within_a_run_can_be_revealed,
    a_golden_node_without_partner_can_be_revealed, a_name_that_is_not_there_is_not_found,
    siblings_and_parents_are_rows_of_the_same_list,
    pages_that_follow_each_other_make_the_whole_list,
    names_that_differ_in_one_number_are_the_same_layer,
    terms_find_nodes_by_word_class_state_and_expression, terms_that_make_no_sense_say_what_would,
    slices_have_terms_of_their_own, terms_of_slices_and_of_nodes_are_told_apart,
    a_slice_has_the_kind_of_its_name_and_domain, no_terms_are_met_by_everything,
    a_row_says_what_the_row_above_does_not, a_dump_alone_names_the_operator_that_overflows_first,
    a_suspect_is_where_the_difference_begins,
    without_an_error_the_first_warning_is_where_two_runs_part)
