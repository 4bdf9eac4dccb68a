/* SPDX-License-Identifier: MIT
 *
 * align: which rows meet, by names, mappings and in fuzzy order, and that no row of
 * either side is lost.
 */
#include "compare/official/rules_official.h"
#include "tests/support/cmp_fixture.h"

#include "probe/base/trace.h"

#define OUT(max)  "{\"output\": [" TENSOR(max, "0.0", "0.0", "1.0") "]}"
#define IN_B(max) "{\"input\": [" TENSOR(max, "0.0", "0.0", "1.0") "]}"
#define NAMED(n)  "\"" n "\": "

/* The partner of a target row. */
static void meets(struct fixture *f, const char *row, const char *partner)
{
    const struct cmp_row *r = fixture_row(f, row);
    ck_str_is(r->b.name, partner);
}

START_TEST(rows_meet_by_name_and_keep_the_target_order)
{
    struct fixture f;
    fixture_init(&f);
    fixture_pair(&f,
                 NAMED("Torch.a.0.forward") OUT("1.0") "," NAMED("Torch.b.0.forward") OUT("2.0"),
                 NAMED("Torch.b.0.forward") OUT("2.0") "," NAMED("Torch.a.0.forward") OUT("1.0"));
    fixture_open(&f);
    ck_assert_uint_eq(cmp_groups(f.c), 2);
    meets(&f, "Torch.a.0.forward.output.0", "Torch.a.0.forward.output.0");
    ck_ok(cmp_view_group(f.c, 0, &f.v, &f.err), f.err);
    ck_str_is(f.v.op, "Torch.a.0.forward");
    fixture_free(&f);
}
END_TEST

START_TEST(rows_of_both_sides_without_a_partner_are_shown)
{
    struct fixture f;
    fixture_init(&f);
    f.conf.matching = CMP_MATCH_EXACT;
    fixture_pair(&f,
                 NAMED("Torch.a.0.forward") OUT("1.0") "," NAMED("Torch.t.0.forward") OUT("1.0"),
                 NAMED("Torch.x.0.forward") OUT("1.0") "," NAMED("Torch.a.0.forward")
                     OUT("1.0") "," NAMED("Torch.y.0.forward") OUT("1.0"));
    fixture_open(&f);
    ck_assert_uint_eq(cmp_rows(f.c), 4);
    static const char *const order[] = {"Torch.x.0.forward.output.0", "Torch.a.0.forward.output.0",
                                        "Torch.y.0.forward.output.0", "Torch.t.0.forward.output.0"};
    for (size_t g = 0; g < 4; g++) {
        ck_ok(cmp_view_group(f.c, g, &f.v, &f.err), f.err);
        const struct cmp_row *row = &f.v.rows.p[0];
        ck_str_is(row->t.present ? row->t.name : row->b.name, order[g]);
        ck_assert_int_eq(row->level, g == 1 ? CMP_PASS : CMP_UNMATCHED);
    }
    f.conf.rules =
        cmp_rules_of(CMP_STRICT); /* the golden rows vanish and the lonely target row passes */
    fixture_open(&f);
    ck_assert_uint_eq(cmp_rows(f.c), 2);
    ck_assert_int_eq(fixture_row(&f, "Torch.t.0.forward.output.0")->level, CMP_PASS);
    fixture_free(&f);
}
END_TEST

START_TEST(backward_calls_are_paired_in_the_order_they_ran)
{
    struct fixture f;
    fixture_init(&f);
    fixture_pair(
        &f, NAMED("Torch.a.1.backward") IN_B("1.0") "," NAMED("Torch.a.0.backward") IN_B("2.0"),
        NAMED("Torch.a.0.backward") IN_B("1.0") "," NAMED("Torch.a.1.backward") IN_B("2.0"));
    fixture_open(&f);
    meets(&f, "Torch.a.1.backward.input.0", "Torch.a.0.backward.input.0");
    meets(&f, "Torch.a.0.backward.input.0", "Torch.a.1.backward.input.0");
    f.conf.rules = cmp_rules_of(CMP_OLD);
    fixture_open(&f);
    meets(&f, "Torch.a.1.backward.input.0", "Torch.a.1.backward.input.0");
    fixture_free(&f);
}
END_TEST

START_TEST(gradients_of_parameters_meet_across_steps)
{
    struct fixture f;
    fixture_init(&f);
    const char *grad = "{\"weight\": [" TENSOR("1.0", "0.0", "0.0", "1.0") "]}";
    char t[400], b[400];
    snprintf(t, sizeof t, NAMED("Module.fc.Linear.parameters_grad.1") "%s", grad);
    snprintf(b, sizeof b, NAMED("Module.fc.Linear.parameters_grad.0") "%s", grad);
    fixture_pair(&f, t, b);
    fixture_open(&f);
    meets(&f, "Module.fc.Linear.parameters_grad.1.weight",
          "Module.fc.Linear.parameters_grad.0.weight");
    f.conf.rules = cmp_rules_of(CMP_STRICT);
    fixture_open(&f);
    meets(&f, "Module.fc.Linear.parameters_grad.1.weight", "N/A");
    fixture_free(&f);
}
END_TEST

START_TEST(a_data_mapping_renumbers_neither_side)
{
    struct fixture f;
    char path[160];
    fixture_init(&f);
    fixture_write(&f, "map.yaml", "Torch.q.0.forward.output.0: Torch.r.5.forward.output.0\n");
    snprintf(path, sizeof path, "%s/map.yaml", f.dir);
    f.conf.data_mapping = path;
    fixture_pair(&f,
                 NAMED("Torch.q.0.forward") OUT("1.0") "," NAMED("Torch.a.1.backward")
                     IN_B("1.0") "," NAMED("Torch.a.0.backward") IN_B("2.0"),
                 NAMED("Torch.r.5.forward") OUT("1.0") "," NAMED("Torch.a.1.backward")
                     IN_B("1.0") "," NAMED("Torch.a.0.backward") IN_B("2.0"));
    fixture_open(&f);
    meets(&f, "Torch.q.0.forward.output.0", "Torch.r.5.forward.output.0");
    meets(&f, "Torch.a.1.backward.input.0", "Torch.a.1.backward.input.0");
    f.conf.rules = cmp_rules_of(CMP_STRICT); /* the golden side alone is numbered anew */
    fixture_open(&f);
    meets(&f, "Torch.a.1.backward.input.0", "Torch.a.0.backward.input.0");
    fixture_free(&f);
}
END_TEST

START_TEST(unknown_names_of_a_mapping_are_listed_with_the_nearest)
{
    struct fixture f;
    char path[160];
    const struct ms_str *list;
    fixture_init(&f);
    fixture_write(&f, "map.yaml", "Torch.a.0.forward.output.0: Torch.a.0.forwerd.output.0\n");
    snprintf(path, sizeof path, "%s/map.yaml", f.dir);
    f.conf.data_mapping = path;
    fixture_pair(&f, NAMED("Torch.a.0.forward") OUT("1.0"), NAMED("Torch.a.0.forward") OUT("1.0"));
    fixture_open(&f);
    ck_assert_uint_eq(cmp_problems(f.c, &list), 1);
    ck_assert(ms_str_find_str(list[0], MS_STR("did you mean 'Torch.a.0.forward.output.0'")) >= 0);
    fixture_free(&f);
}
END_TEST

START_TEST(built_in_names_carry_mindspore_to_pytorch)
{
    static const struct {
        const char *ms, *pt;
    } names[] = {{"Mint.add.0.forward", "Torch.add.0.forward"},
                 {"MintFunctional.linear.0.forward", "Functional.linear.0.forward"},
                 {"Functional.abs.2.forward", "Torch.abs.2.forward"},
                 {"Functional.dense.0.forward", "Functional.linear.0.forward"},
                 {"Functional.softmax.0.forward", "Functional.softmax.0.forward"},
                 {"Tensor.asnumpy.0.forward", "Tensor.numpy.0.forward"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct fixture f;
        char t[400], b[400], row[128], partner[128];
        fixture_init(&f);
        f.conf.api.on = true;
        snprintf(t, sizeof t, "\"%s\": %s", names[i].ms, OUT("1.0"));
        snprintf(b, sizeof b, "\"%s\": %s", names[i].pt, OUT("1.0"));
        snprintf(row, sizeof row, "%s.output.0", names[i].ms);
        snprintf(partner, sizeof partner, "%s.output.0", names[i].pt);
        fixture_dump(&f, 't', "statistics", "mindspore", t);
        fixture_dump(&f, 'b', "statistics", "pytorch", b);
        fixture_open(&f);
        meets(&f, row, partner);
        fixture_free(&f);
    }
}
END_TEST

START_TEST(an_api_mapping_translates_positions)
{
    struct fixture f;
    char path[160];
    const char *two = "{\"input_args\": [" TENSOR("1.0", "0.0", "0.0", "1.0") "," TENSOR(
        "2.0", "0.0", "0.0", "1.0") "]}";
    char t[900], b[900];
    fixture_init(&f);
    fixture_write(&f, "api.yaml",
                  "- {ms_api: Functional.fa, pt_api: NPU.fusion, ms_args: [0], pt_args: [1]}\n");
    snprintf(path, sizeof path, "%s/api.yaml", f.dir);
    f.conf.api = (struct cmp_mapping){true, path};
    snprintf(t, sizeof t, NAMED("Functional.fa.0.forward") "%s", two);
    snprintf(b, sizeof b, NAMED("NPU.fusion.0.forward") "%s", two);
    fixture_dump(&f, 't', "statistics", "mindspore", t);
    fixture_dump(&f, 'b', "statistics", "pytorch", b);
    fixture_open(&f);
    meets(&f, "Functional.fa.0.forward.input.0", "NPU.fusion.0.forward.input.1");
    meets(&f, "Functional.fa.0.forward.input.1", "N/A"); /* not listed */
    fixture_free(&f);
}
END_TEST

START_TEST(a_cell_mapping_renames_cells_and_their_classes)
{
    struct fixture f;
    char path[160];
    fixture_init(&f);
    fixture_write(&f, "cell.yaml", "fc.Dense: fc.Linear\nRow: TERow\n");
    snprintf(path, sizeof path, "%s/cell.yaml", f.dir);
    f.conf.cell = (struct cmp_mapping){true, path};
    fixture_dump(&f, 't', "statistics", "mindspore",
                 NAMED("Cell.fc.Dense.forward.0") OUT("1.0") "," NAMED("Cell.o.Row.forward.0")
                     OUT("1.0"));
    fixture_dump(&f, 'b', "statistics", "pytorch",
                 NAMED("Module.fc.Linear.forward.0")
                     OUT("1.0") "," NAMED("Module.o.TERow.forward.0") OUT("1.0"));
    fixture_open(&f);
    meets(&f, "Cell.fc.Dense.forward.0.output.0", "Module.fc.Linear.forward.0.output.0");
    meets(&f, "Cell.o.Row.forward.0.output.0", "Module.o.TERow.forward.0.output.0");
    fixture_free(&f);
}
END_TEST

START_TEST(a_layer_mapping_pairs_by_the_place_in_the_model)
{
    struct fixture f;
    char path[160];
    fixture_init(&f);
    fixture_write(&f, "layer.yaml", "TopLayer:\n  net: model\nNet:\n  fc: linear\n");
    snprintf(path, sizeof path, "%s/layer.yaml", f.dir);
    f.conf.layer = (struct cmp_mapping){true, path};
    fixture_write(&f, "t/stack.json", "{}");
    fixture_write(&f, "b/stack.json", "{}");
    fixture_write(&f, "t/construct.json",
                  "{\"Functional.add.0.forward\": \"Cell.net.fc.Dense.forward.0\","
                  "\"Cell.net.fc.Dense.forward.0\": \"Cell.net.Net.forward.0\","
                  "\"Cell.net.Net.forward.0\": null}");
    fixture_write(&f, "b/construct.json",
                  "{\"Functional.add.7.forward\": \"Module.model.linear.Linear.forward.0\","
                  "\"Module.model.linear.Linear.forward.0\": null}");
    fixture_dump(&f, 't', "statistics", "mindspore",
                 NAMED("Functional.add.0.forward")
                     OUT("1.0") "," NAMED("Cell.net.fc.Dense.forward.0")
                         OUT("1.0") "," NAMED("Cell.net.Net.forward.0") OUT("1.0"));
    fixture_dump(&f, 'b', "statistics", "pytorch",
                 NAMED("Functional.add.7.forward")
                     OUT("1.0") "," NAMED("Module.model.linear.Linear.forward.0") OUT("1.0"));
    fixture_open(&f);
    meets(&f, "Functional.add.0.forward.output.0", "Functional.add.7.forward.output.0");
    meets(&f, "Cell.net.fc.Dense.forward.0.output.0",
          "Module.model.linear.Linear.forward.0.output.0");
    meets(&f, "Cell.net.Net.forward.0.output.0", "N/A");
    fixture_free(&f);
}
END_TEST

START_TEST(a_layer_mapping_may_say_that_there_is_no_partner)
{
    struct fixture f;
    char path[160];
    fixture_init(&f);
    fixture_write(&f, "layer.yaml", "TopLayer:\n  add: N/A\n");
    snprintf(path, sizeof path, "%s/layer.yaml", f.dir);
    f.conf.layer = (struct cmp_mapping){true, path};
    fixture_write(&f, "t/stack.json", "{}");
    fixture_write(&f, "b/stack.json", "{}");
    fixture_write(&f, "t/construct.json",
                  "{\"Functional.add.0.forward\": null, \"Functional.mul.0.forward\": null}");
    fixture_write(&f, "b/construct.json",
                  "{\"Functional.add.5.forward\": null, \"Functional.mul.5.forward\": null}");
    fixture_dump(&f, 't', "statistics", "mindspore",
                 NAMED("Functional.add.0.forward") OUT("1.0") "," NAMED("Functional.mul.0.forward")
                     OUT("1.0"));
    fixture_dump(&f, 'b', "statistics", "pytorch",
                 NAMED("Functional.add.5.forward") OUT("1.0") "," NAMED("Functional.mul.5.forward")
                     OUT("1.0"));
    fixture_open(&f);
    meets(&f, "Functional.add.0.forward.output.0", "N/A");
    meets(&f, "Functional.mul.0.forward.output.0", "Functional.mul.5.forward.output.0");
    ck_assert_uint_eq(f.c->rows.problems.list.n, 0);
    fixture_free(&f);
}
END_TEST

/* ---- fuzzy --------------------------------------------------------------- */

/* Ops given by letters, as both sides of a fuzzy comparison; the result names each target's partner
 * by its position on the golden side, '-' for none. */
static void fuzzy(const char *t, const char *b, enum cmp_compat compat, char *found)
{
    struct fixture f;
    char side[2][4096] = {"", ""};
    const char *ops[2] = {t, b};
    fixture_init(&f);
    f.conf.fuzzy = true;
    f.conf.rules = cmp_rules_of(compat);
    for (int s = 0; s < 2; s++) {
        size_t n = 0;
        for (size_t i = 0; ops[s][i] != 0; i++) /* numbers tell the positions and must not matter */
            n += (size_t)snprintf(side[s] + n, sizeof side[s] - n, "%s\"Torch.%c.%zu.forward\": %s",
                                  i != 0 ? "," : "", ops[s][i], i, OUT("1.0"));
    }
    fixture_pair(&f, side[0], side[1]);
    fixture_open(&f);
    for (size_t g = 0; g < cmp_groups(f.c); g++) {
        ck_ok(cmp_view_group(f.c, g, &f.v, &f.err), f.err);
        const struct cmp_row *row = &f.v.rows.p[0];
        if (row->t.present)
            *found++ = row->b.present ? row->b.name.p[8] : '-';
    }
    *found = 0;
    fixture_free(&f);
}

START_TEST(fuzzy_pairs_in_order_and_never_goes_back)
{
    static const struct {
        const char *t, *b, *found;
    } cases[] = {
        {"abc", "abc", "012"}, {"abc", "axbc", "023"}, {"axbc", "abc", "0-12"},
        {"ab", "ba", "-0"},    {"aab", "ab", "0-1"},   {"abc", "xyz", "---"},
        {"ac", "abc", "02"},   {"", "abc", ""},        {"abc", "", "---"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char found[32];
        fuzzy(cases[i].t, cases[i].b, CMP_CUR, found);
        ck_assert_msg(strcmp(found, cases[i].found) == 0, "%s against %s: expected %s, got %s",
                      cases[i].t, cases[i].b, cases[i].found, found);
    }
}
END_TEST

START_TEST(fuzzy_loses_trailing_rows_in_strict_alone)
{
    char found[32];
    fuzzy("abcd", "ab", CMP_STRICT, found);
    ck_assert_str_eq(found, "01-");
    fuzzy("abcd", "ab", CMP_CUR, found);
    ck_assert_str_eq(found, "01--");
}
END_TEST

/* ---- what cannot be compared ----------------------------------------------- */

static void refused(enum cmp_compat compat, const char *t_task, const char *t_fw,
                    const char *b_task, const char *b_fw, const char *words)
{
    struct fixture f;
    fixture_init(&f);
    f.conf.rules = cmp_rules_of(compat);
    fixture_dump(&f, 't', t_task, t_fw, NAMED("Torch.a.0.forward") OUT("1.0"));
    fixture_dump(&f, 'b', b_task, b_fw, NAMED("Torch.a.0.forward") OUT("1.0"));
    ck_assert_int_ne(cmp_open(&f.c, &f.conf, f.t, f.b, NULL, &f.err), MS_OK);
    ck_says(f.err, words);
    ck_assert_ptr_null(f.c);
    fixture_free(&f);
}

START_TEST(pairs_that_make_no_sense_are_refused_with_a_reason)
{
    refused(CMP_CUR, "statistics", "pytorch", "tensor", "pytorch", "must be dumped alike");
    refused(CMP_STRICT, "statistics", "pytorch", "statistics", "mindspore", "swap target and");
    refused(CMP_CUR, "structure", "pytorch", "structure", "pytorch", "no values");
}
END_TEST

START_TEST(empty_dumps_compare_to_nothing)
{
    struct fixture f;
    fixture_init(&f);
    fixture_pair(&f, "", "");
    fixture_open(&f);
    ck_assert_uint_eq(cmp_rows(f.c), 0);
    ck_assert_uint_eq(cmp_groups(f.c), 0);
    fixture_free(&f);
}
END_TEST

START_TEST(running_out_of_memory_anywhere_is_an_error_without_a_leak)
{
    struct fixture f;
    fixture_init(&f);
    fixture_pair(&f,
                 NAMED("Torch.a.0.forward") OUT("1.0") "," NAMED("Torch.b.1.backward") OUT("1.0"),
                 NAMED("Torch.a.0.forward") OUT("1.0") "," NAMED("Torch.c.1.backward") OUT("1.0"));
    ms_trace_reset(); /* of the tests before, where all run in one process */
    size_t live = ms_mem_live();
    for (uint64_t n = 1;; n++) {
        struct ms_err err = {0};
        struct cmp *c = NULL;
        ms_mem_fail_at(n);
        enum ms_rc rc = cmp_open(&c, &f.conf, f.t, f.b, NULL, &err);
        bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        cmp_close(c);
        ms_trace_reset();
        ck_assert_uint_eq(ms_mem_live(), live);
        if (!failed)
            break;
        ck_assert(rc == MS_E_NOMEM || rc == MS_OK); /* its own trace may do without */
    }
    fixture_free(&f);
}
END_TEST

TEST_MAIN("align", rows_meet_by_name_and_keep_the_target_order,
          rows_of_both_sides_without_a_partner_are_shown,
          backward_calls_are_paired_in_the_order_they_ran,
          gradients_of_parameters_meet_across_steps, a_data_mapping_renumbers_neither_side,
          unknown_names_of_a_mapping_are_listed_with_the_nearest,
          built_in_names_carry_mindspore_to_pytorch, an_api_mapping_translates_positions,
          a_cell_mapping_renames_cells_and_their_classes,
          a_layer_mapping_pairs_by_the_place_in_the_model,
          a_layer_mapping_may_say_that_there_is_no_partner,
          fuzzy_pairs_in_order_and_never_goes_back, fuzzy_loses_trailing_rows_in_strict_alone,
          pairs_that_make_no_sense_are_refused_with_a_reason, empty_dumps_compare_to_nothing,
          running_out_of_memory_anywhere_is_an_error_without_a_leak)
