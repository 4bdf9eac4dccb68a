/* SPDX-License-Identifier: MIT
 *
 * map_names: what is said of names in mapping files that no dump has, and what
 * becomes of such lines.
 */
#include "compare/official/rules_official.h"
#include "tests/support/cmp_fixture.h"

#define NAMED(name) "\"" name "\": "
#define OUT(max)    "{\"output\": [" TENSOR(max, "0.0", "0.0", "1.0") "]}"
#define IN(args)    "{\"input_args\": [" args "]}"
#define ONE         TENSOR("1.0", "0.0", "0.0", "1.0")

static void meets(struct fixture *f, const char *target, const char *golden)
{
    const struct cmp_row *row = fixture_row(f, target);
    if (golden == NULL)
        ck_assert(!row->b.present);
    else
        ck_str_is(row->b.name, golden);
}

static size_t said(const struct fixture *f, const char *what)
{
    const struct ms_str *list;
    size_t n = cmp_problems(f->c, &list), hits = 0;
    for (size_t i = 0; i < n; i++)
        hits += ms_str_find_str(list[i], ms_str_of(what)) >= 0;
    return hits;
}

static size_t problems(const struct fixture *f)
{
    const struct ms_str *list;
    return cmp_problems(f->c, &list);
}

/* The file for one of the mappings; path lives as long as it is used. */
static void map_by(struct fixture *f, struct cmp_mapping *map, char path[160], const char *text)
{
    fixture_write(f, "map.yaml", text);
    snprintf(path, 160, "%s/map.yaml", f->dir);
    *map = (struct cmp_mapping){true, path};
}

static void cross(const struct fixture *f, const char *t, const char *b)
{
    fixture_dump(f, 't', "statistics", "mindspore", t);
    fixture_dump(f, 'b', "statistics", "pytorch", b);
}

START_TEST(operators_that_no_dump_has_are_told_with_the_nearest)
{
    struct fixture f;
    char path[160];
    fixture_init(&f);
    map_by(&f, &f.conf.api, path,
           "- {ms_api: Functional.atention, pt_api: NPU.fusion, ms_args: [0], pt_args: [0]}\n"
           "- {ms_api: Functional.attention, pt_api: NPU.fussion, ms_args: [0], pt_args: [0]}\n"
           "- {ms_api: Functional.attention, pt_api: NPU.fusion, ms_args: [0, qury], pt_args: "
           "[0, 7]}\n");
    cross(&f,
          NAMED("Functional.attention.0.forward") "{\"input_args\": [" ONE
                                                  "], \"input_kwargs\": {\"query\": " ONE "}}",
          NAMED("NPU.fusion.0.forward") IN(ONE "," ONE));
    fixture_open(&f);
    ck_assert_uint_eq(said(&f, "the target has no operator 'Functional.atention'; did you mean "
                               "'Functional.attention'?"),
                      1);
    ck_assert_uint_eq(
        said(&f, "the golden side has no operator 'NPU.fussion'; did you mean 'NPU.fusion'?"), 1);
    ck_assert_uint_eq(said(&f, "'Functional.attention.input.qury'; did you mean "
                               "'Functional.attention.input.query'?"),
                      1);
    ck_assert_uint_eq(said(&f, "the golden side has no operator 'NPU.fusion.input.7'"), 1);
    ck_assert_uint_eq(problems(&f), 4);
    meets(&f, "Functional.attention.0.forward.input.0", "NPU.fusion.0.forward.input.0");
    fixture_free(&f);
}
END_TEST

START_TEST(entries_that_cannot_hold_leave_the_built_in_name)
{
    struct fixture f;
    char path[160];
    fixture_init(&f);
    map_by(&f, &f.conf.api, path,
           "- {ms_api: Functional.abs, pt_api: NPU.abs, ms_args: [0], pt_args: [0]}\n"
           "- {ms_api: Functional.add, pt_api: Torch.sub, ms_args: [0, 1], pt_args: [0]}\n");
    cross(&f,
          NAMED("Functional.abs.0.forward") IN(ONE) "," NAMED("Functional.add.0.forward") IN(ONE),
          NAMED("Torch.abs.0.forward") IN(ONE) "," NAMED("Torch.add.0.forward")
              IN(ONE) "," NAMED("Torch.sub.0.forward") IN(ONE));
    fixture_open(&f);
    ck_assert_uint_eq(said(&f, "the golden side has no operator 'NPU.abs'"), 1);
    ck_assert_uint_eq(said(&f, "the entry of 'Functional.add' is left out"), 1);
    meets(&f, "Functional.abs.0.forward.input.0", "Torch.abs.0.forward.input.0");
    meets(&f, "Functional.add.0.forward.input.0", "Torch.add.0.forward.input.0");
    fixture_free(&f);
}
END_TEST

START_TEST(of_two_entries_for_an_operator_the_last_counts)
{
    struct fixture f;
    char path[160];
    fixture_init(&f);
    map_by(&f, &f.conf.api, path,
           "- {ms_api: Functional.fa, pt_api: NPU.fa, ms_args: [0], pt_args: [0]}\n"
           "- {ms_api: Functional.fa, pt_api: NPU.fa, ms_args: [0], pt_args: [1]}\n");
    cross(&f, NAMED("Functional.fa.0.forward") IN(ONE), NAMED("NPU.fa.0.forward") IN(ONE "," ONE));
    fixture_open(&f);
    meets(&f, "Functional.fa.0.forward.input.0", "NPU.fa.0.forward.input.1");
    ck_assert_uint_eq(problems(&f), 0);
    fixture_free(&f);
}
END_TEST

START_TEST(an_argument_covers_what_is_nested_below_it_but_for_strict)
{
    struct fixture f;
    char path[160];
    fixture_init(&f);
    map_by(&f, &f.conf.api, path,
           "- {ms_api: Functional.fa, pt_api: NPU.fa, ms_args: [0], pt_args: [1]}\n");
    cross(&f, NAMED("Functional.fa.0.forward") IN("[" ONE "," ONE "]"),
          NAMED("NPU.fa.0.forward") IN(ONE ", [" ONE "," ONE "]"));
    fixture_open(&f);
    meets(&f, "Functional.fa.0.forward.input.0.1", "NPU.fa.0.forward.input.1.1");
    ck_assert_uint_eq(problems(&f), 0);
    f.conf.rules = cmp_rules_of(CMP_STRICT);
    fixture_open(&f);
    meets(&f, "Functional.fa.0.forward.input.0.1", NULL);
    fixture_free(&f);
}
END_TEST

START_TEST(modules_that_no_dump_has_are_told_with_the_nearest)
{
    struct fixture f;
    char path[160];
    fixture_init(&f);
    map_by(&f, &f.conf.cell, path, "net.fc.Dens: net.fc.Linaer\nRow: TERow\n");
    cross(&f,
          NAMED("Cell.net.fc.Dense.forward.0") OUT("1.0") "," NAMED("Cell.o.Row.forward.0")
              OUT("1.0"),
          NAMED("Module.net.fc.Linear.forward.0") OUT("1.0") "," NAMED("Module.o.TERow.forward.0")
              OUT("1.0"));
    fixture_open(&f);
    ck_assert_uint_eq(
        said(&f, "the golden side has no module 'net.fc.Linaer'; did you mean 'net.fc.Linear'?"),
        1);
    ck_assert_uint_eq(problems(&f), 1); /* "net.fc.Dens" is a part of net.fc.Dense */
    map_by(&f, &f.conf.cell, path, "Roww: TERow\n");
    fixture_open(&f);
    ck_assert_uint_eq(said(&f, "the target has no module 'Roww'; did you mean 'Row'?"), 1);
    fixture_free(&f);
}
END_TEST

static void with_trees(const struct fixture *f)
{
    fixture_write(f, "t/stack.json", "{}");
    fixture_write(f, "b/stack.json", "{}");
    fixture_write(f, "t/construct.json", "{\"Cell.net.fc.Dense.forward.0\": null}");
    fixture_write(f, "b/construct.json", "{\"Module.model.linear.Linear.forward.0\": null}");
    cross(f,
          NAMED("Cell.net.Net.forward.0") OUT("1.0") "," NAMED("Cell.net.fc.Dense.forward.0")
              OUT("1.0"),
          NAMED("Module.model.linear.Linear.forward.0") OUT("1.0"));
}

START_TEST(classes_and_layers_that_no_dump_has_are_told_with_the_nearest)
{
    struct fixture f;
    char path[160];
    fixture_init(&f);
    with_trees(&f);
    map_by(&f, &f.conf.layer, path,
           "TopLayer:\n  net: modle\nNett:\n  fcc: linear\nNet:\n  fc: linear\n");
    fixture_open(&f);
    ck_assert_uint_eq(said(&f, "the target has no class 'Nett'; did you mean 'Net'?"), 1);
    ck_assert_uint_eq(said(&f, "the target has no layer 'fcc'; did you mean 'fc'?"), 1);
    ck_assert_uint_eq(said(&f, "the golden side has no layer 'modle'; did you mean 'model'?"), 1);
    ck_assert_uint_eq(problems(&f), 3);
    map_by(&f, &f.conf.layer, path, "TopLayer:\n  net: model\nNet:\n  fc: linear\n");
    fixture_open(&f);
    ck_assert_uint_eq(problems(&f), 0);
    meets(&f, "Cell.net.fc.Dense.forward.0.output.0",
          "Module.model.linear.Linear.forward.0.output.0");
    fixture_free(&f);
}
END_TEST

START_TEST(of_many_wrong_names_ten_are_told_and_the_others_counted)
{
    struct fixture f;
    char path[160], text[2048] = "";
    size_t n = 0;
    fixture_init(&f);
    for (int i = 0; i < 25; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "nothing%d: net\n", i);
    map_by(&f, &f.conf.cell, path, text);
    cross(&f, NAMED("Cell.net.Net.forward.0") OUT("1.0"),
          NAMED("Module.net.Net.forward.0") OUT("1.0"));
    fixture_open(&f);
    ck_assert_uint_eq(problems(&f), 11);
    ck_assert_uint_eq(said(&f, "15 more names that the target does not have"), 1);
    fixture_free(&f);
}
END_TEST

TEST_MAIN("map_names", operators_that_no_dump_has_are_told_with_the_nearest,
          entries_that_cannot_hold_leave_the_built_in_name,
          of_two_entries_for_an_operator_the_last_counts,
          an_argument_covers_what_is_nested_below_it_but_for_strict,
          modules_that_no_dump_has_are_told_with_the_nearest,
          classes_and_layers_that_no_dump_has_are_told_with_the_nearest,
          of_many_wrong_names_ten_are_told_and_the_others_counted)
