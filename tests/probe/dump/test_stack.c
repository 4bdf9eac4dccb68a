/* SPDX-License-Identifier: MIT */
#include "probe/dump/stack.h"

#include "probe/base/mem.h"

#include "tests/support/check.h"

static struct ms_err err;
static struct probe_stacks stacks;

static void parse(const char *text)
{
    probe_stacks_close(&stacks);
    ms_err_clear(&err);
    ck_ok(probe_stacks_parse(&stacks, "s.json", ms_str_of(text), 0, &err), err);
}

/* The node's frames joined by '|'; "-" when it has no stack. */
static const char *frames_of(const char *node)
{
    static char text[256];
    struct ms_buf scratch = {.max = 1 << 16};
    struct ms_str list = probe_stack_frames(&stacks, ms_str_of(node));
    struct ms_str frame;
    struct ms_jread r;
    size_t n = 0;
    if (list.p == NULL)
        return "-";
    text[0] = '\0';
    ms_jread_init(&r, list.p, list.n, 0);
    while (probe_stack_next(&r, &scratch, &frame))
        n += (size_t)snprintf(text + n, sizeof text - n, "%.*s|", MS_STR_ARG(frame));
    ck_assert(!probe_stack_next(&r, &scratch, &frame));
    ms_buf_free(&scratch);
    return text;
}

#define FRAME "File /w/net.py, line 10, in forward, \\n return s.act(s.fc(x))"

START_TEST(nodes_of_a_group_share_its_frames)
{
    parse("{\"0\": [[\"a\", \"b\"], [\"" FRAME "\", \"g\"]], \"1\": [[\"c\"], [\"h\"]]}");
    const char *want = "File /w/net.py, line 10, in forward, \n return s.act(s.fc(x))|g|";
    ck_assert_str_eq(frames_of("a"), want);
    ck_assert_str_eq(frames_of("b"), want);
    ck_assert_str_eq(frames_of("c"), "h|");
    ck_assert_str_eq(frames_of("d"), "-");
    ck_assert_uint_eq(stacks.frames.n, 2);
    /* The group's number is no node. */
    ck_assert_str_eq(frames_of("0"), "-");
    probe_stacks_close(&stacks);
}
END_TEST

START_TEST(older_files_have_an_entry_for_each_node)
{
    parse("{\"a\": [\"f\", \"g\"], \"b\": [], \"\\u0063\": [\"\\u00e9\"]}");
    ck_assert_str_eq(frames_of("a"), "f|g|");
    ck_assert_str_eq(frames_of("b"), "");
    ck_assert_str_eq(frames_of("c"), "\xc3\xa9|");
    ck_assert(ms_str_is(probe_stack_frames(&stacks, MS_STR("a")), "[\"f\", \"g\"]"));
    probe_stacks_close(&stacks);
}
END_TEST

START_TEST(empty_files_and_groups_are_fine)
{
    parse("{}");
    ck_assert_str_eq(frames_of("a"), "-");
    parse("{\"0\": [[], [\"f\"]], \"1\": [[\"a\"], []], \"2\": [[\"b\"]]}");
    ck_assert_str_eq(frames_of("a"), "");
    ck_assert_str_eq(frames_of("b"), "");
    probe_stacks_close(&stacks);
}
END_TEST

START_TEST(the_later_stack_of_a_node_counts)
{
    parse("{\"0\": [[\"a\", \"b\"], [\"f\"]], \"1\": [[\"b\"], [\"g\"]]}");
    ck_assert_str_eq(frames_of("a"), "f|");
    ck_assert_str_eq(frames_of("b"), "g|");
    parse("{\"a\": [\"f\"], \"a\": [\"g\"]}");
    ck_assert_str_eq(frames_of("a"), "g|");
    probe_stacks_close(&stacks);
}
END_TEST

static const struct {
    const char *text, *says;
} refused[] = {
    {"", "s.json: line 1, byte 0: empty file"},
    {"[]", "byte 0: expected an object of stacks"},
    {"{\"a\": null}", "byte 6: expected a list of stack frames"},
    {"{\"a\": [1]}", "byte 7: expected a stack frame as text"},
    {"{\"a\": [\"f\", null]}", "byte 12: expected a stack frame as text"},
    {"{\"0\": [[1], []]}", "byte 8: expected the name of a node"},
    {"{\"0\": [[\"a\"], 5]}", "byte 14: expected [names, frames]"},
    {"{\"0\": [[\"a\"], [], []]}", "byte 18: expected [names, frames]"},
    {"{\"0\": [[\"a\"],\n [[]]]}", "line 2, byte 16: expected a stack frame as text"},
    {"{\"a\": [\"\xff\"]}", "invalid UTF-8"},
};

START_TEST(what_is_no_stack_is_refused_with_its_place)
{
    size_t live = ms_mem_live();
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        ms_err_clear(&err);
        ck_assert_int_eq(probe_stacks_parse(&stacks, "s.json", ms_str_of(refused[i].text), 0, &err),
                         MS_E_FORMAT);
        ck_says(err, refused[i].says);
        ck_assert_uint_eq(ms_mem_live(), live);
    }
}
END_TEST

static const struct {
    const char *text, *tolerant, *official; /* frames of a */
} odd[] = {
    {"{\"x\": null, \"y\": 5, \"a\": [\"f\"]}", "f|", "f|"},
    {"{\"0\": [[\"a\"], [\"f\"]], \"1\": {}, \"2\": [[\"b\"], null]}", "f|", "f|"},
    {"{\"1\": [[\"a\"], [\"f\"]]}", "f|", "-"},
    {"{\"0\": [], \"1\": [[\"a\"], [\"f\"]]}", "f|", "-"},
    {"{\"0\": \"\", \"1\": [[\"a\"], [\"f\"]]}", "f|", "-"},
    {"{\"0\": {}, \"1\": [[\"a\"], [\"f\"]]}", "f|", "-"},
    {"{\"0\": {\"x\": 1}, \"1\": [[\"a\"], [\"f\"]]}", "f|", "f|"},
    {"{\"0\": 0.0, \"1\": [[\"a\"], [\"f\"]]}", "f|", "-"},
    {"{\"0\": 0.5, \"1\": [[\"a\"], [\"f\"]]}", "f|", "f|"},
    {"{\"0\": false, \"1\": [[\"a\"], [\"f\"]]}", "f|", "-"},
    {"{\"0\": true, \"1\": [[\"a\"], [\"f\"]]}", "f|", "f|"},
    {"{\"0\": [[\"a\"], [\"f\"]], \"a\": [\"g\", \"h\"]}", "g|h|", "f|"},
    {"{\"0\": [[\"a\"]]}", "", "-"},
    {"{\"0\": [[\"a\"], [\"f\"], 1]}", "-", "-"},
};

START_TEST(what_is_no_stack_is_passed_over_where_that_is_asked_for)
{
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        for (int official = 0; official < 2; official++) {
            unsigned flags = PROBE_STACK_TOLERANT | (official ? PROBE_STACK_OFFICIAL : 0);
            ms_err_clear(&err);
            ck_ok(probe_stacks_parse(&stacks, "s", ms_str_of(odd[i].text), flags, &err), err);
            ck_assert_str_eq(frames_of("a"), official ? odd[i].official : odd[i].tolerant);
            probe_stacks_close(&stacks);
        }
    }
}
END_TEST

static const char groups[] = "{\n \"0\": [\n  [\n   \"a\",\n   \"\\u0062\"\n  ],\n  [\n   \"f\",\n"
                             "   \"g\"\n  ]\n ],\n \"1\": [\n  [\n   \"a\"\n  ],\n  [\n   \"h\"\n"
                             "  ]\n ]\n}";
static const char entries[] = "{\n \"a\": [\n  \"f\",\n  \"g\"\n ],\n \"\\u0062\": [],\n"
                              " \"c\": [\n  \"h\"\n ]\n}";

/* Where the n-th entry is complete. */
static size_t end_of_entry(const char *text, int n)
{
    const char *at = text;
    while (n-- > 0) {
        const char *list = strstr(at, "\": [") + 3;
        at = list[1] == ']' ? list + 2 : strstr(list, "\n ]") + 3;
    }
    return (size_t)(at - text);
}

static void read_cut(const char *text, size_t cut)
{
    char *copy = malloc(cut + 1);
    memcpy(copy, text, cut);
    struct ms_str s = {copy, (uint32_t)cut};
    ms_err_clear(&err);
    ck_assert_int_eq(probe_stacks_parse(&stacks, "s", s, 0, &err), MS_E_FORMAT);
    ms_err_clear(&err);
    probe_stacks_close(&stacks);
    /* The slices point into the copy, so it is the text itself that is cut. */
    s.p = text;
    free(copy);
    ck_ok(probe_stacks_parse(&stacks, "s", s, PROBE_STACK_TOLERANT, &err), err);
    ck_assert(stacks.truncated);
}

START_TEST(every_truncation_reads_as_its_complete_groups)
{
    for (size_t cut = 0; cut < sizeof groups - 1; cut++) {
        read_cut(groups, cut);
        bool first = cut >= end_of_entry(groups, 1);
        bool second = cut >= end_of_entry(groups, 2);
        ck_assert_str_eq(frames_of("a"), second ? "h|" : first ? "f|g|" : "-");
        ck_assert_str_eq(frames_of("b"), first ? "f|g|" : "-");
        probe_stacks_close(&stacks);
    }
}
END_TEST

START_TEST(every_truncation_of_an_older_file_reads_as_its_complete_entries)
{
    for (size_t cut = 0; cut < sizeof entries - 1; cut++) {
        read_cut(entries, cut);
        ck_assert_str_eq(frames_of("a"), cut >= end_of_entry(entries, 1) ? "f|g|" : "-");
        ck_assert_str_eq(frames_of("b"), cut >= end_of_entry(entries, 2) ? "" : "-");
        ck_assert_str_eq(frames_of("c"), cut >= end_of_entry(entries, 3) ? "h|" : "-");
        probe_stacks_close(&stacks);
    }
}
END_TEST

START_TEST(every_failed_allocation_is_a_clean_error)
{
    size_t live = ms_mem_live();
    for (uint64_t n = 1;; n++) {
        ms_err_clear(&err);
        ms_mem_fail_at(n);
        enum ms_rc rc = probe_stacks_parse(&stacks, "s", MS_STR(groups), 0, &err);
        ms_mem_fail_at(0);
        probe_stacks_close(&stacks);
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
    snprintf(path, sizeof path, "%s/stack.json", dir);
    ck_assert_int_eq(probe_stacks_open(&stacks, path, 0, &err), MS_E_NOTFOUND);
    write_file(path, groups, sizeof groups - 1);
    ms_err_clear(&err);
    ck_ok(probe_stacks_open(&stacks, path, 0, &err), err);
    ck_assert_str_eq(frames_of("a"), "h|");
    probe_stacks_close(&stacks);
    write_file(path, groups, 5);
    ck_assert_int_eq(probe_stacks_open(&stacks, path, 0, &err), MS_E_FORMAT);
    ck_says(err, path);
    scratch_remove(dir);
}
END_TEST

TEST_MAIN("stack", nodes_of_a_group_share_its_frames, older_files_have_an_entry_for_each_node,
          empty_files_and_groups_are_fine, the_later_stack_of_a_node_counts,
          what_is_no_stack_is_refused_with_its_place,
          what_is_no_stack_is_passed_over_where_that_is_asked_for,
          every_truncation_reads_as_its_complete_groups,
          every_truncation_of_an_older_file_reads_as_its_complete_entries,
          every_failed_allocation_is_a_clean_error, a_file_that_is_not_there_is_told_from_a_bad_one)
