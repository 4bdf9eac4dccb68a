/* SPDX-License-Identifier: MIT
 *
 * strict: what the official tool makes of dumps that are not as they should be.
 */
#include "compare/official/rules_official.h"
#include "compare/read/yaml_doc.h"
#include "tests/support/cmp_fixture.h"

#define OP(name, input, output)                                                                    \
    "\"" name "\": {\"input_args\": [" input "], \"input_kwargs\": {}, \"output\": [" output "]}"
#define PLAIN TENSOR("1.0", "-1.0", "0.5", "2.0")

static void open_strict(struct fixture *f, const char *t, const char *b)
{
    fixture_init(f);
    f->conf.rules = cmp_rules_of(CMP_STRICT);
    fixture_pair(f, t, b);
    fixture_open(f);
}

static const struct {
    const char *t, *b, *shown, *diff, *rel;
} texts[] = {
    {"\"cpu\"", "1.0", "cpu", "Diff", "Diff"},
    {"\"cpu\"", "\"npu:0\"", "cpu", "N/A", "N/A"},
    {"\"NaN\"", "1.0", "Nan", "Nan", "Nan"},
    {"\"Inf\"", "1.0", "Inf", "inf", "inf"},
    {"\"Inf\"", "\"inf\"", "Inf", "N/A", "N/A"},
    {"\"INFINITY\"", "1.0", "INFINITY", "inf", "inf%"},
    {"\"Infinity\"", "\"INFINITY\"", "Infinity", "nan", "nan%"},
    {"\"2.5\"", "2.0", "2.5", "0.5", "25.0%"},
    {"\" 2.5 \"", "2.0", " 2.5 ", "0.5", "25.0%"},
    {"\"2.5\"", "2.5", "2.5", "0", "0"},
    {"\"2.50\"", "2.5", "2.50", "0.0", "0.0%"},
    {"\"N/A\"", "1.0", "N/A", "N/A", "N/A"},
    {"\"\\u00fc\"", "\"\\u00fc\"", "\xc3\xbc", "0", "0"},
    {"{\"a\": 1}", "1.0", "{'a': 1}", "Diff", "Diff"},
};

START_TEST(a_statistic_may_be_text)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct fixture f;
        char t[512], b[512];
        snprintf(t, sizeof t, OP("Torch.add.0.forward", TENSOR("%s", "0.0", "0.0", "1.0"), ""),
                 texts[i].t);
        snprintf(b, sizeof b, OP("Torch.add.0.forward", TENSOR("%s", "0.0", "0.0", "1.0"), ""),
                 texts[i].b);
        open_strict(&f, t, b);
        const struct cmp_row *row = fixture_row(&f, "Torch.add.0.forward.input.0");
        ck_str_is(row->t.stat[PROBE_STAT_MAX].text, texts[i].shown);
        ck_str_is(row->delta[PROBE_STAT_MAX].diff, texts[i].diff);
        ck_str_is(row->delta[PROBE_STAT_MAX].rel, texts[i].rel);
        fixture_free(&f);
    }
}
END_TEST

/* Maximum of the first row where a second row has this one. */
static void check_first(const char *second, const char *want)
{
    struct fixture f;
    char text[512];
    snprintf(text, sizeof text,
             OP("Torch.add.0.forward",
                TENSOR("7", "0.0", "0.0", "1.0") "," TENSOR("%s", "0.0", "0.0", "1.0"), ""),
             second);
    open_strict(&f, text, text);
    ck_str_is(fixture_row(&f, "Torch.add.0.forward.input.0")->t.stat[PROBE_STAT_MAX].text, want);
    fixture_free(&f);
}

START_TEST(a_column_with_whole_numbers_beyond_64_bits_stays_as_it_is)
{
    check_first("1.5", "7.0");
    check_first("18446744073709551615", "7.0");
    check_first("18446744073709551616", "7");
    check_first("-9223372036854775808", "7.0");
    check_first("-9223372036854775809", "7");
    check_first("\"cpu\"", "7");
    check_first("NaN", "7");
    check_first("Infinity", "7.0");
}
END_TEST

START_TEST(a_row_without_a_partner_keeps_golden_columns_as_they_are)
{
    struct fixture f;
    const char *golden = OP("Torch.add.0.forward", TENSOR("7", "0.0", "0.0", "1.0"), PLAIN);
    open_strict(&f, golden, golden);
    ck_str_is(fixture_row(&f, "Torch.add.0.forward.input.0")->b.stat[PROBE_STAT_MAX].text, "7.0");
    fixture_free(&f);
    open_strict(&f, OP("Torch.add.0.forward", PLAIN, PLAIN "," PLAIN), golden);
    ck_str_is(fixture_row(&f, "Torch.add.0.forward.input.0")->b.stat[PROBE_STAT_MAX].text, "7");
    fixture_free(&f);
}
END_TEST

/* An operator without a partner, or one whose type is far apart: the official tool makes its rows'
 * numbers of one type for themselves, whatever text the column has elsewhere. */
START_TEST(rows_without_a_partner_are_written_as_if_alone)
{
    static const struct {
        const char *value, *beside, *want;
    } cases[] = {{"7", "1.5", "7.0"}, {"7", "3", "7"}, {"7", "\"cpu\"", "7"}, {"7", "NaN", "7"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture f;
        char t[1024];
        snprintf(t, sizeof t,
                 OP("Torch.add.0.forward", TENSOR("\"cpu\"", "2.0", "3.0", "4.0"),
                    "") "," OP("Torch.add.1.forward", TENSOR("%s", "0.0", "0.0", "1.0"),
                               TENSOR("%s", "0.0", "0.0", "1.0")),
                 cases[i].value, cases[i].beside);
        open_strict(&f, t, OP("Torch.add.0.forward", PLAIN, ""));
        const struct cmp_row *row = fixture_row(&f, "Torch.add.1.forward.input.0");
        ck_str_is(row->t.stat[PROBE_STAT_MAX].text, cases[i].want);
        fixture_free(&f);
    }
}
END_TEST

START_TEST(columns_of_whole_numbers_have_whole_differences)
{
    static const struct {
        const char *t, *b, *second, *diff, *rel;
    } cases[] = {
        {"3", "4", "5", "-1", "25.0%"},
        {"9007199254740993", "1", "5", "9007199254740992", "9.007199254740992e+17%"},
        {"3", "0", "5", "3", "inf"},
        {"3", "4", "5.0", "-1.0", "25.0%"},
        {"3", "4", "\"cpu\"", "-1.0", "25.0%"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture f;
        char text[2][512];
        const char *const max[] = {cases[i].t, cases[i].b};
        for (int k = 0; k < 2; k++)
            snprintf(text[k], sizeof text[k],
                     OP("Torch.add.0.forward",
                        TENSOR("%s", "1", "1", "1") "," TENSOR("%s", "1", "1", "1"), ""),
                     max[k], cases[i].second);
        open_strict(&f, text[0], text[1]);
        const struct cmp_row *row = fixture_row(&f, "Torch.add.0.forward.input.0");
        ck_str_is(row->delta[PROBE_STAT_MAX].diff, cases[i].diff);
        ck_str_is(row->delta[PROBE_STAT_MAX].rel, cases[i].rel);
        fixture_free(&f);
    }
}
END_TEST

START_TEST(dtypes_meet_by_their_spelling)
{
    static const struct {
        const char *t, *b;
        bool meet;
    } cases[] = {
        {"torch.float16", "torch.float32", true}, {"torch.bfloat16", "torch.float16", true},
        {"torch.half", "torch.float16", false},   {"Float32", "BFloat16", true},
        {"Float32", "torch.float32", false},      {"torch.float64", "torch.float32", false},
        {"torch.float64", "torch.float64", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture f;
        char text[2][512];
        const char *const dtypes[] = {cases[i].t, cases[i].b};
        for (int k = 0; k < 2; k++)
            snprintf(text[k], sizeof text[k],
                     OP("Torch.add.0.forward",
                        "{\"type\": \"torch.Tensor\", \"dtype\": \"%s\", \"shape\": [2]}", ""),
                     dtypes[k]);
        open_strict(&f, text[0], text[1]);
        const struct cmp_row *row = fixture_row(&f, "Torch.add.0.forward.input.0");
        ck_assert_msg(row->b.present == cases[i].meet, "%s %s", cases[i].t, cases[i].b);
        fixture_free(&f);
    }
}
END_TEST

START_TEST(a_name_has_a_direction_where_it_has_no_number)
{
    struct fixture f;
    const char *text =
        OP("Torch.add.x.forward", PLAIN, "") "," OP("a.forward.forward", PLAIN, "") "," OP(
            "Torch.add.0.forward", PLAIN, "") "," OP("add.forward", PLAIN, "");
    open_strict(&f, text, text);
    ck_assert_uint_eq(cmp_rows(f.c), 3);
    fixture_row(&f, "Torch.add.x.forward.input.0");
    fixture_row(&f, "a.forward.forward.input.0");
    fixture_free(&f);
}
END_TEST

/* In "input_args" and in "input" there are leaves of one name: both golden ones meet the first. */
START_TEST(the_stack_stands_at_each_row_of_the_first_leaf)
{
    struct fixture f;
    const char *text =
        "\"Torch.add.0.forward\": {\"input_args\": [" PLAIN "," PLAIN "], \"input\": [" PLAIN "]}";
    fixture_init(&f);
    f.conf.rules = cmp_rules_of(CMP_STRICT);
    fixture_pair(&f, text, text);
    fixture_write(&f, "t/stack.json", "{\"0\": [[\"Torch.add.0.forward\"], [\"line\"]]}");
    fixture_open(&f);
    ck_assert_uint_eq(cmp_rows(f.c), 5);
    ck_ok(cmp_view_group(f.c, 0, &f.v, &f.err), f.err);
    bool shows[5];
    for (int i = 0; i < 5; i++)
        shows[i] = cmp__shows_stack(f.c, &f.v, &f.v.rows.p[i]);
    ck_assert(shows[0] && shows[1] && !shows[2] && !shows[3] && !shows[4]);
    fixture_free(&f);
}
END_TEST

#define TRAIN "Module.a._fsdp_wrapped_module.m.layers.0._fsdp_wrapped_module."
#define INFER "Module.model.layers.0."

/* The argument of inference alone belongs to the second projection, which the last row comes from;
 * that one's verdict stands where the first projection's row does. */
START_TEST(verdicts_of_a_consistency_check_are_written_back_by_place)
{
    struct fixture f;
    const char *t =
        "\"" TRAIN "self_attn.q_proj.Linear.forward.0\": {\"input_kwargs\": {\"x\": " PLAIN
        "}}, \"" TRAIN "self_attn.k_proj.Linear.forward.0\": {\"output\": [" TENSOR(
            "NaN", "-1.0", "0.5", "2.0") "]}";
    const char *b = "\"" INFER "self_attn.qkv_proj.Row.forward.0\": {\"input_args\": [" PLAIN
                    "], \"input_kwargs\": {\"x\": " PLAIN "}, \"output\": [" PLAIN "]}";
    static const char *const row[] = {"N/A", TRAIN "self_attn.q_proj.Linear.forward.0.input.x",
                                      TRAIN "self_attn.k_proj.Linear.forward.0.output.0"};
    static const bool nan[2][3] = {{false, false, true}, {false, true, false}};
    for (int strict = 0; strict < 2; strict++) {
        fixture_init(&f);
        f.conf.rules = cmp_rules_of(strict ? CMP_STRICT : CMP_CUR);
        f.conf.consistent = CMP_CONSISTENT_FSDP;
        fixture_pair(&f, t, b);
        fixture_open(&f);
        ck_assert_uint_eq(cmp_rows(f.c), 3);
        size_t i = 0;
        for (size_t g = 0; g < cmp_groups(f.c); g++) {
            ck_ok(cmp_view_group(f.c, g, &f.v, &f.err), f.err);
            for (size_t k = 0; k < f.v.rows.n; k++, i++) {
                ck_str_is(f.v.rows.p[k].t.name, row[i]);
                ck_assert_int_eq((f.v.rows.p[k].notes >> CMP_NOTE_INF_NAN) & 1, nan[strict][i]);
            }
        }
        fixture_free(&f);
    }
}
END_TEST

/* BERT calls its modules so; the official tool looks for .output. in the name of a row. */
START_TEST(what_a_module_named_output_reads_is_no_output)
{
    const char *text = OP("Module.layer.0.output.dense.Linear.forward.0", PLAIN, PLAIN);
    for (int strict = 0; strict < 2; strict++) {
        struct fixture f;
        fixture_init(&f);
        f.conf.rules = cmp_rules_of(strict ? CMP_STRICT : CMP_CUR);
        fixture_pair(&f, text, text);
        fixture_open(&f);
        const char *const names[] = {"Module.layer.0.output.dense.Linear.forward.0.input.0",
                                     "Module.layer.0.output.dense.Linear.forward.0.output.0"};
        ck_assert_int_eq(fixture_row(&f, names[0])->is_output, strict);
        ck_assert(fixture_row(&f, names[1])->is_output);
        fixture_free(&f);
    }
}
END_TEST

START_TEST(a_layer_mapping_of_dumps_without_layers_leaves_their_names)
{
    struct fixture f;
    const char *text = OP("Torch.add.0.forward", PLAIN, PLAIN);
    fixture_init(&f);
    f.conf.layer.on = true;
    fixture_pair(&f, text, text);
    fixture_open(&f);
    ck_assert_uint_eq(f.c->rows.problems.list.n, 2);
    ck_assert(fixture_row(&f, "Torch.add.0.forward.output.0")->b.present);
    fixture_free(&f);
}
END_TEST

START_TEST(what_is_not_ascii_is_escaped_in_yaml)
{
    struct ms_buf out = {.max = 256};
    cmp__yaml_quote(&out, MS_STR("a \"\xc3\xbc\xe4\xb8\xad\xf0\x9f\x98\x80\t\xff"));
    ck_str_is(ms_buf_slice(&out), "\"a \\\"\\xFC\\u4E2D\\U0001F600\\x09\\xFF\"");
    ms_buf_free(&out);
}
END_TEST

TEST_MAIN("strict", a_statistic_may_be_text,
          a_column_with_whole_numbers_beyond_64_bits_stays_as_it_is,
          a_row_without_a_partner_keeps_golden_columns_as_they_are,
          rows_without_a_partner_are_written_as_if_alone,
          columns_of_whole_numbers_have_whole_differences, dtypes_meet_by_their_spelling,
          a_name_has_a_direction_where_it_has_no_number,
          the_stack_stands_at_each_row_of_the_first_leaf,
          verdicts_of_a_consistency_check_are_written_back_by_place,
          what_a_module_named_output_reads_is_no_output,
          a_layer_mapping_of_dumps_without_layers_leaves_their_names,
          what_is_not_ascii_is_escaped_in_yaml)
