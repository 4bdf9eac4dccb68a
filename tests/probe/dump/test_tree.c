/* SPDX-License-Identifier: MIT */
#include "probe/dump/tree.h"

#include "probe/base/mem.h"

#include "tests/support/check.h"

static struct ms_err err;
static struct probe_tree tree;

static void parse(const char *text, unsigned flags)
{
    probe_tree_close(&tree);
    ms_err_clear(&err);
    ck_ok(probe_tree_parse(&tree, "c.json", ms_str_of(text), flags, &err), err);
}

/* "child>parent@micro" for each listed node and "(name)" for one that is only a parent. */
static void ck_tree(const char *want)
{
    struct ms_buf b = {.max = 1 << 16};
    for (uint32_t i = 0; i < tree.nodes.n; i++) {
        const struct probe_tree_node *n = &tree.nodes.p[i];
        struct ms_str name = probe_tree_name(&tree, i);
        ck_assert_uint_eq(probe_tree_find(&tree, name), i);
        ms_buf_printf(&b, n->listed ? "%.*s" : "(%.*s)", MS_STR_ARG(name));
        if (n->parent != MS_MAP_NONE)
            ms_buf_printf(&b, ">%.*s", MS_STR_ARG(probe_tree_name(&tree, n->parent)));
        if (n->micro_step != 0)
            ms_buf_printf(&b, "@%u", n->micro_step);
        ms_buf_putc(&b, ' ');
    }
    ck_assert_str_eq(ms_buf_z(&b), want);
    ms_buf_free(&b);
}

START_TEST(children_know_their_parents)
{
    parse("{\"F.linear.0.forward\": \"M.fc.Linear.forward.0\", \"M.b.B.forward.0\": null, "
          "\"M.fc.Linear.forward.0\": \"M.b.B.forward.0\", \"optimizer\": null}",
          0);
    ck_tree("F.linear.0.forward>M.fc.Linear.forward.0 "
            "M.fc.Linear.forward.0>M.b.B.forward.0 M.b.B.forward.0 optimizer ");
    ck_assert_int_eq(tree.micro_steps, -1);
    ck_assert(!tree.truncated);
    probe_tree_close(&tree);
}
END_TEST

START_TEST(null_and_an_empty_name_make_a_root)
{
    parse("{\"a\": null, \"b\": \"\", \"c\": [null, 1], \"d\": [\"\", 2]}", 0);
    ck_tree("a b c@1 d@2 ");
    parse("{}", 0);
    ck_tree("");
    probe_tree_close(&tree);
}
END_TEST

START_TEST(order_in_the_file_does_not_change_the_tree)
{
    parse("{\"a\": \"b\", \"b\": \"c\", \"c\": null}", 0);
    ck_tree("a>b b>c c ");
    parse("{\"c\": null, \"b\": \"c\", \"a\": \"b\"}", 0);
    ck_tree("c b>c a>b ");
    probe_tree_close(&tree);
}
END_TEST

START_TEST(a_missing_parent_is_a_root_that_is_not_listed)
{
    parse("{\"a\": \"gone\"}", 0);
    ck_tree("a>gone (gone) ");
    ck_assert_uint_eq(probe_tree_find(&tree, MS_STR("other")), MS_MAP_NONE);
    probe_tree_close(&tree);
}
END_TEST

START_TEST(pipeline_runs_have_pairs_and_a_count)
{
    parse("{\"a\": [\"p\", 3], \"megatron_micro_step_number\": 4, \"b\": \"p\", \"c\": [\"p\"], "
          "\"p\": [null, 0]}",
          0);
    ck_tree("a>p@3 p b>p c>p ");
    ck_assert_int_eq(tree.micro_steps, 4);
    probe_tree_close(&tree);
}
END_TEST

START_TEST(escaped_names_are_one_with_plain_ones)
{
    parse("{\"\\u0061\": \"\\u4e2d\", \"b\": \"a\"}", 0);
    ck_tree("a>\xe4\xb8\xad (\xe4\xb8\xad) b>a ");
    probe_tree_close(&tree);
}
END_TEST

static const struct {
    const char *text, *says;
} refused[] = {
    {"", "c.json: line 1, byte 0: empty file"},
    {"[]", "line 1, byte 0: expected an object of child and parent names"},
    {"{\"a\": 1}", "byte 6: expected a parent's name, null, or [name, micro step]"},
    {"{\"a\":\n{}}", "line 2, byte 6: expected a parent's name"},
    {"{\"a\": []}", "byte 7: expected a parent's name"},
    {"{\"a\": [\"p\", 1, 2]}", "byte 15: expected a parent's name"},
    {"{\"a\": [\"p\", null]}", "byte 12: expected a parent's name"},
    {"{\"a\": [\"p\", -1]}", "byte 12: expected a micro step, 0 or more"},
    {"{\"a\": [\"p\", 1.5]}", "expected a micro step"},
    {"{\"a\": [\"p\", 2147483648]}", "expected a micro step"},
    {"{\"a\": [[\"p\"], 1]}", "expected a parent's name"},
    {"{\"megatron_micro_step_number\": \"4\"}", "byte 31: expected a number of micro steps"},
    {"{\"a\": null, \"a\": null}", "byte 12: node 'a' appears twice"},
    {"{\"a\": \"a\"}", "c.json: node 'a' lies inside itself"},
    {"{\"x\": \"a\", \"a\": \"b\", \"b\": \"c\", \"c\": \"a\"}", "lies inside itself"},
    {"{\"a\": \"b\xff\"}", "invalid UTF-8"},
    {"{\"a\": null} 1", "text after the end"},
};

START_TEST(what_is_no_tree_is_refused_with_its_place)
{
    size_t live = ms_mem_live();
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        ms_err_clear(&err);
        ck_assert_int_eq(probe_tree_parse(&tree, "c.json", ms_str_of(refused[i].text), 0, &err),
                         MS_E_FORMAT);
        ck_says(err, refused[i].says);
        ck_assert_uint_eq(ms_mem_live(), live);
    }
}
END_TEST

static void put_chain(struct ms_buf *b, int from, int to, const char *end)
{
    for (int i = from; i < to; i++)
        ms_buf_printf(b, "%s\"n%d\": \"n%d\"", b->n != 0 ? ", " : "{", i, i + 1);
    ms_buf_printf(b, ", \"n%d\": %s", to, end);
}

/* Chains of many nodes are walked once, not once for each node. */
START_TEST(long_chains_are_no_cycle_and_a_closed_one_is)
{
    enum { N = 200000, LEVELS = 500 };
    struct ms_buf b = {.max = 1 << 24};
    for (int i = 0; i < N; i += LEVELS)
        put_chain(&b, i, i + LEVELS - 1, "null");
    ms_buf_puts(&b, "}");
    ck_ok(probe_tree_parse(&tree, "c", ms_buf_slice(&b), 0, &err), err);
    ck_assert_uint_eq(tree.nodes.n, N);
    probe_tree_close(&tree);
    ms_buf_clear(&b);
    put_chain(&b, 0, N, "\"n0\"}");
    ms_err_clear(&err);
    ck_assert_int_eq(probe_tree_parse(&tree, "c", ms_buf_slice(&b), 0, &err), MS_E_FORMAT);
    ck_says(err, "lies inside itself");
    ms_buf_free(&b);
}
END_TEST

/* Readers list the nodes above each node. The order in which the levels come is no matter. */
START_TEST(a_node_may_lie_in_499_others)
{
    for (int levels = 499; levels <= 502; levels++) {
        for (int backwards = 0; backwards < 2; backwards++) {
            struct ms_buf b = {.max = 1 << 24};
            for (int i = 1; i < levels; i++) {
                const int k = backwards ? levels - i : i;
                ms_buf_printf(&b, "%s\"n%d\": \"n%d\"", b.n != 0 ? ", " : "{", k, k - 1);
            }
            ms_buf_puts(&b, ", \"n0\": null}");
            ms_err_clear(&err);
            const enum ms_rc rc = probe_tree_parse(&tree, "c", ms_buf_slice(&b), 0, &err);
            ck_assert_int_eq(rc, levels <= 500 ? MS_OK : MS_E_LIMIT);
            if (rc == MS_OK)
                probe_tree_close(&tree);
            else
                ck_says(err, "lies in more than 499 others");
            ms_buf_free(&b);
        }
    }
}
END_TEST

static const char whole[] =
    "{\n \"a\\u00e9\": \"b\",\n \"b\": null,\n \"megatron_micro_step_number\": 12,\n"
    " \"c\": [\n  \"b\",\n  12\n ],\n \"d\": [\n  null,\n  3\n ],\n \"e\": \"\"\n}";

START_TEST(every_truncation_reads_as_its_complete_entries)
{
    static const struct {
        const char *last; /* the text that completes an entry */
        const char *tree;
    } steps[] = {{"\"b\",\n \"b\"", "a\xc3\xa9>b (b) "},
                 {"null", "a\xc3\xa9>b b "},
                 {"12\n ]", "a\xc3\xa9>b b c>b@12 "},
                 {"3\n ]", "a\xc3\xa9>b b c>b@12 d@3 "},
                 {"\"\"", "a\xc3\xa9>b b c>b@12 d@3 e "}};
    size_t n = sizeof whole - 1;
    for (size_t cut = 0; cut < n; cut++) {
        char *copy = malloc(cut + 1);
        memcpy(copy, whole, cut);
        const char *want = "";
        size_t end = 0;
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            const char *at = strstr(whole + end, steps[i].last);
            size_t len = i == 0 ? 3 : strlen(steps[i].last);
            end = (size_t)(at - whole) + len;
            if (cut >= end)
                want = steps[i].tree;
        }
        struct ms_str s = {copy, (uint32_t)cut};
        ms_err_clear(&err);
        ck_ok(probe_tree_parse(&tree, "c", s, PROBE_TREE_TOLERANT, &err), err);
        ck_assert(tree.truncated);
        ck_tree(want);
        probe_tree_close(&tree);
        ck_assert_int_eq(probe_tree_parse(&tree, "c", s, 0, &err), MS_E_FORMAT);
        free(copy);
    }
}
END_TEST

START_TEST(every_failed_allocation_is_a_clean_error)
{
    size_t live = ms_mem_live();
    for (uint64_t n = 1;; n++) {
        ms_err_clear(&err);
        ms_mem_fail_at(n);
        enum ms_rc rc = probe_tree_parse(&tree, "c", MS_STR(whole), 0, &err);
        ms_mem_fail_at(0);
        probe_tree_close(&tree);
        ck_assert_uint_eq(ms_mem_live(), live);
        if (rc == MS_OK)
            break;
        ck_assert_int_eq(rc, MS_E_NOMEM);
        ck_assert_uint_lt(n, 100);
    }
}
END_TEST

START_TEST(a_file_that_is_not_there_is_told_from_a_bad_one)
{
    char dir[64], path[128];
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/construct.json", dir);
    ck_assert_int_eq(probe_tree_open(&tree, path, 0, &err), MS_E_NOTFOUND);
    write_file(path, whole, sizeof whole - 1);
    ms_err_clear(&err);
    ck_ok(probe_tree_open(&tree, path, 0, &err), err);
    ck_assert_uint_eq(tree.nodes.n, 5);
    probe_tree_close(&tree);
    write_file(path, whole, 5);
    ck_assert_int_eq(probe_tree_open(&tree, path, 0, &err), MS_E_FORMAT);
    ck_says(err, path);
    scratch_remove(dir);
}
END_TEST

TEST_MAIN("tree", children_know_their_parents, null_and_an_empty_name_make_a_root,
          order_in_the_file_does_not_change_the_tree, a_missing_parent_is_a_root_that_is_not_listed,
          pipeline_runs_have_pairs_and_a_count, escaped_names_are_one_with_plain_ones,
          what_is_no_tree_is_refused_with_its_place, long_chains_are_no_cycle_and_a_closed_one_is,
          a_node_may_lie_in_499_others, every_truncation_reads_as_its_complete_entries,
          every_failed_allocation_is_a_clean_error, a_file_that_is_not_there_is_told_from_a_bad_one)
