/* SPDX-License-Identifier: MIT
 *
 * mapping: the yaml files of users, good and bad.
 */
#include "tests/support/check.h"

#include "compare/pair/mapping.h"
#include "compare/read/pytext.h"

static struct ms_str text(const char *z)
{
    return ms_str_of(z);
}

START_TEST(pairs_keep_their_order_and_the_last_of_equal_keys)
{
    struct cmp__pairs p;
    struct ms_err err = {0};
    ck_ok(cmp__pairs_parse(&p, "f", text("b: 1\na: two\nb: three\n'q: x': \"y\"\n"), &err), err);
    ck_assert_uint_eq(p.keys.keys.n, 3);
    ck_assert(ms_str_is(ms_map_key(&p.keys, 0), "b") && ms_str_is(p.values.p[0], "three"));
    ck_assert(ms_str_is(ms_map_key(&p.keys, 1), "a") && ms_str_is(p.values.p[1], "two"));
    ck_assert(ms_str_is(ms_map_key(&p.keys, 2), "q: x") && ms_str_is(p.values.p[2], "y"));
    cmp__pairs_free(&p);
}
END_TEST

static const struct {
    const char *yaml, *words;
} bad_pairs[] = {
    {"", "the file is empty"},
    {"- a\n- b\n", "line 1"},
    {"a: [1, 2]\n", "expected a name"},
    {"a: {b: c}\n", "expected a name"},
    {"a: b\n  c: d\n", "line 2"},
    {"a: \"open\n", "found unexpected end of stream"},
    {"\t: x\n", "line 1"},
    {"just text\n", "expected lines 'name: name'"},
};

START_TEST(a_bad_file_is_refused_with_its_name_and_line)
{
    for (size_t i = 0; i < sizeof bad_pairs / sizeof *bad_pairs; i++) {
        struct cmp__pairs p;
        struct ms_err err = {0};
        ck_assert_int_eq(cmp__pairs_parse(&p, "map.yaml", text(bad_pairs[i].yaml), &err),
                         MS_E_FORMAT);
        ck_says(err, "map.yaml");
        ck_says(err, bad_pairs[i].words);
        ck_assert_ptr_null(p.arena);
    }
}
END_TEST

/* `count` texts one after the other; the caller frees the buffer. */
static struct ms_buf repeated(const char *piece, unsigned count, const char *end)
{
    struct ms_buf b = {.max = 1 << 22};
    for (unsigned i = 0; i < count; i++)
        ms_buf_puts(&b, piece);
    ms_buf_puts(&b, end);
    return b;
}

static void refuses_extent(struct ms_buf yaml, const char *words)
{
    struct cmp__pairs p;
    struct ms_err err = {0};
    ck_assert_int_eq(cmp__pairs_parse(&p, "map.yaml", ms_buf_slice(&yaml), &err), MS_E_LIMIT);
    ck_says(err, "map.yaml");
    ck_says(err, words);
    ms_buf_free(&yaml);
}

/* libyaml would work for minutes on such a file. */
START_TEST(what_makes_the_reader_slow_is_refused_before_it_is_loaded)
{
    refuses_extent(repeated("[", 200000, ""), "nested deeper than 512 levels");
    refuses_extent(repeated("{a: ", 200000, ""), "nested deeper than 512 levels");
    refuses_extent(repeated("- ", 513, "[]"), "nested deeper than 512 levels");
    refuses_extent(repeated("&a a: b\n", 100000, ""), "more than 4096 anchors");
    refuses_extent(repeated("? &a [x]\n: b\n", 100000, ""), "more than 4096 anchors");
    refuses_extent(repeated("? &a {x: y}\n: b\n", 100000, ""), "more than 4096 anchors");
}
END_TEST

START_TEST(what_is_closed_again_does_not_count_as_depth)
{
    struct cmp__pairs p;
    struct ms_err err = {0};
    struct ms_buf yaml = repeated("? [a, {b: c}]\n: d\n", 600, "");
    ck_assert_int_eq(cmp__pairs_parse(&p, "f", ms_buf_slice(&yaml), &err), MS_E_FORMAT);
    ck_says(err, "expected a name");
    ms_buf_free(&yaml);
    err = (struct ms_err){0};
    yaml = repeated("a: '[{&b'\n", 5000, "");
    ck_ok(cmp__pairs_parse(&p, "f", ms_buf_slice(&yaml), &err), err);
    ck_assert_uint_eq(p.keys.keys.n, 1);
    cmp__pairs_free(&p);
    ms_buf_free(&yaml);
}
END_TEST

START_TEST(a_missing_file_is_named)
{
    struct cmp__pairs p;
    struct ms_err err = {0};
    ck_assert_int_ne(cmp__pairs_read(&p, "/nonexistent/map.yaml", &err), MS_OK);
    ck_says(err, "/nonexistent/map.yaml");
}
END_TEST

START_TEST(layers_take_the_old_word_for_the_top_and_cut_brackets)
{
    struct cmp__layers l;
    struct ms_err err = {0};
    const char *yaml = "Cell:\n  net: module\nAttn:\n  fa: core.npu_fusion(arg)\n  a.b: c\n";
    ck_ok(cmp__layers_parse(&l, "f", text(yaml), &err), err);
    uint32_t top = ms_map_get(&l.classes, MS_STR("TopLayer"));
    uint32_t attn = ms_map_get(&l.classes, MS_STR("Attn"));
    ck_assert_uint_ne(top, MS_MAP_NONE);
    ck_assert(ms_str_is(l.maps.p[top].values.p[0], "module"));
    ck_assert(ms_str_is(l.maps.p[attn].values.p[0], "core.npu_fusion"));
    ck_assert_uint_eq(l.maps.p[attn].keys.keys.n, 2);
    cmp__layers_free(&l);
}
END_TEST

START_TEST(api_rules_come_as_a_list_or_alone_in_either_spelling)
{
    static const char *const forms[] = {
        "- {ms_api: a.b, pt_api: c.d, ms_output: [0], pt_output: [1]}\n",
        "ms_api: a.b\npt_api: c.d\nms_outputs: [0]\npt_outputs: [1]\n"};
    for (size_t i = 0; i < 2; i++) {
        struct cmp__api_rules r;
        struct ms_err err = {0};
        ck_ok(cmp__api_rules_parse(&r, "f", text(forms[i]), &err), err);
        ck_assert_uint_eq(r.list.n, 1);
        ck_assert(r.list.p[0].valid);
        ck_assert(ms_str_is(r.list.p[0].ms, "a.b") && ms_str_is(r.list.p[0].pt, "c.d"));
        ck_assert(ms_str_is(r.list.p[0].part[1].pt.p[0], "1"));
        cmp__api_rules_free(&r);
    }
}
END_TEST

START_TEST(an_api_rule_of_unequal_lists_is_kept_but_not_valid)
{
    struct cmp__api_rules r;
    struct ms_err err = {0};
    ck_ok(cmp__api_rules_parse(
              &r, "f", text("- {ms_api: a.b, pt_api: c.d, ms_args: [0, 1], pt_args: [1]}\n"), &err),
          err);
    ck_assert(!r.list.p[0].valid);
    cmp__api_rules_free(&r);
}
END_TEST

START_TEST(unknown_keys_of_an_api_rule_are_refused)
{
    static const struct {
        const char *yaml, *words;
    } cases[] = {{"- {ms_api: a, pt_api: b, ms_argz: [0]}\n", "unknown key 'ms_argz'"},
                 {"- {api: a}\n", "keys begin with ms_ or pt_"},
                 {"- {ms_api: a}\n", "ms_api and pt_api in every entry"},
                 {"- x\n", "expected entries"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cmp__api_rules r;
        struct ms_err err = {0};
        ck_assert_int_eq(cmp__api_rules_parse(&r, "f", text(cases[i].yaml), &err), MS_E_FORMAT);
        ck_says(err, cases[i].words);
    }
}
END_TEST

START_TEST(the_built_in_table_is_sorted_and_without_doubles)
{
    for (size_t i = 1; i < cmp__api_twin_count; i++)
        ck_assert_int_lt(strcmp(cmp__api_twins[i - 1].ms, cmp__api_twins[i].ms), 0);
    ck_assert_uint_eq(cmp__api_twin_count, 399);
}
END_TEST

/* ---- Python's words -------------------------------------------------------- */

static const struct {
    const char *json, *python;
} values[] = {
    {"3", "3"},
    {"3.0", "3.0"},
    {"1e5", "100000.0"},
    {"NaN", "nan"},
    {"-Infinity", "-inf"},
    {"null", "None"},
    {"true", "True"},
    {"\"text\"", "text"},
    {"[]", "[]"},
    {"[2, 3]", "[2, 3]"},
    {"[\n 2,\n [null, \"a\"]\n]", "[2, [None, 'a']]"},
    {"{\"a\": 1, \"b\": [false]}", "{'a': 1, 'b': [False]}"},
    {"[\"it's\"]", "[\"it's\"]"},
    {"[\"it's \\\"x\\\"\"]", "['it\\'s \"x\"']"},
    {"[\"a\\nb\\t\\\\\"]", "['a\\nb\\t\\\\']"},
    {"[\"\\u00e9\\u0001\\u00a0\"]", "['\xc3\xa9\\x01\\xa0']"},
    {"123456789012345678901234567890", "123456789012345678901234567890"},
};

START_TEST(json_is_shown_in_pythons_words)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct ms_buf out = {.max = 1 << 16}, scratch = {.max = 1 << 16};
        cmp__py_str(&out, ms_str_of(values[i].json), &scratch);
        ck_assert_str_eq(ms_buf_z(&out), values[i].python);
        ms_buf_free(&out);
        ms_buf_free(&scratch);
    }
}
END_TEST

TEST_MAIN("mapping", pairs_keep_their_order_and_the_last_of_equal_keys,
          a_bad_file_is_refused_with_its_name_and_line,
          what_makes_the_reader_slow_is_refused_before_it_is_loaded,
          what_is_closed_again_does_not_count_as_depth, a_missing_file_is_named,
          layers_take_the_old_word_for_the_top_and_cut_brackets,
          api_rules_come_as_a_list_or_alone_in_either_spelling,
          an_api_rule_of_unequal_lists_is_kept_but_not_valid,
          unknown_keys_of_an_api_rule_are_refused, the_built_in_table_is_sorted_and_without_doubles,
          json_is_shown_in_pythons_words)
