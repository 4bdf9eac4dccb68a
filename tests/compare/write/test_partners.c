/* SPDX-License-Identifier: MIT
 *
 * partners: how nodes found their partners: counts, lists and files are those of the alignment, and
 * what was paired by name is told in sentences.
 */
#include "tests/support/cmp_fixture.h"

#include "compare/write/partners.h"
#include "compare/write/sheet.h"

#include <dirent.h>
#include <math.h>

static void put_tensor(struct ms_buf *b, const char *dtype, int v, const char *shape)
{
    ms_buf_printf(b,
                  "{\"type\":\"torch.Tensor\",\"dtype\":\"%s\",\"shape\":[%s],\"Max\":%d.5,"
                  "\"Min\":-%d.5,\"Mean\":0.%d,\"Norm\":%d.25}",
                  dtype, shape, v, v, v, v * v);
}

/* An operator whose inputs have the values of `in` and whose output has `out`. */
static void put_op(struct ms_buf *b, const char *dtype, const char *name, int call, const int *in,
                   int out)
{
    ms_buf_printf(b, "%s\n\"%s.%d.forward\":{\"input_args\":[", b->n != 0 ? "," : "", name, call);
    for (int i = 0; in[i] != 0; i++) {
        ms_buf_puts(b, i != 0 ? "," : "");
        put_tensor(b, dtype, in[i], "4, 8");
    }
    ms_buf_puts(b, "],\"output\":[");
    put_tensor(b, dtype, out, "4, 8");
    ms_buf_puts(b, "]}");
}

enum { LAYERS = 3 };

/* One model by two frameworks: the target's operators are fused, of the last one the other has none. */
static void write_models(const struct fixture *f)
{
    struct ms_buf t = {.max = 1 << 16}, b = {.max = 1 << 16};
    const char *const ms = "Float32", *const pt = "torch.float32";
    for (int i = 0, v = 10; i < LAYERS; i++, v += 10) {
        put_op(&t, ms, "Mint.add", i, (int[]){v, v + 1, 0}, v + 2);
        put_op(&b, pt, "Tensor.__add__", i, (int[]){v, v + 1, 0}, v + 2);
        put_op(&t, ms, "Functional.swiglu", i, (int[]){v + 2, 0}, v + 5);
        put_op(&b, pt, "Functional.silu", i, (int[]){v + 2, 0}, v + 3);
        put_op(&b, pt, "Tensor.__mul__", i, (int[]){v + 3, v + 4, 0}, v + 5);
        put_op(&t, ms, "Functional.dense", i, (int[]){v + 5, v + 6, 0}, v + 7);
        put_op(&b, pt, "Functional.linear", i, (int[]){v + 5, v + 6, 0}, v + 7);
    }
    put_op(&t, ms, "Mint.argsort", 0, (int[]){91, 0}, 92);
    fixture_dump(f, 't', "statistics", "mindspore", ms_buf_z(&t));
    fixture_dump(f, 'b', "statistics", "pytorch", ms_buf_z(&b));
    ms_buf_free(&t);
    ms_buf_free(&b);
}

/* The pairs of an alignment are what everything else here is made of. */
static const struct cmp_align_pair *pairs_of(const struct fixture *f, size_t *n)
{
    ck_assert_ptr_nonnull(f->c->rows.al);
    return cmp_align_pairs(f->c->rows.al, n);
}

START_TEST(nodes_with_a_partner_are_counted)
{
    struct fixture f;
    struct ms_buf text = {.max = 1024};
    char want[128];
    size_t n, paired = 0, unsure = 0;
    fixture_init(&f);
    write_models(&f);
    fixture_open(&f);
    const struct cmp_align_pair *p = pairs_of(&f, &n);
    for (size_t i = 0; i < n; i++) {
        paired += !p[i].more;
        unsure += !p[i].more && p[i].confidence < 0.8F;
    }
    const struct cmp_partners have = cmp_partners_count(f.c);
    ck_assert(have.aligned && have.by_value);
    ck_assert_uint_eq(have.nodes, 3 * LAYERS + 1);
    ck_assert_uint_eq(have.paired, paired);
    ck_assert_uint_eq(have.unsure, unsure);
    ck_assert_uint_eq(paired, 3 * LAYERS);
    cmp_partners_text(&have, &text);
    snprintf(want, sizeof want,
             "aligned by values and structure: %zu of %zu target nodes have a partner", paired,
             have.nodes);
    ck_assert_msg(strncmp(ms_buf_z(&text), want, strlen(want)) == 0, "%s", ms_buf_z(&text));
    ck_assert((strstr(ms_buf_z(&text), "unsure") != NULL) == (unsure != 0));
    ms_buf_free(&text);
    fixture_free(&f);
}
END_TEST

START_TEST(what_is_unsure_is_told_and_what_is_paired_by_name_is_not)
{
    static const struct {
        struct cmp_partners p;
        const char *text;
    } cases[] = {
        {{true, true, 9, 8, 0},
         "aligned by values and structure: 8 of 9 target nodes have a partner"},
        {{true, false, 9, 8, 2},
         "aligned by structure alone: 8 of 9 target nodes have a partner, 2 of them unsure"},
        {{true, false, 0, 0, 0}, ""},
        {{false, false, 9, 9, 1}, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ms_buf text = {.max = 1024};
        cmp_partners_text(&cases[i].p, &text);
        ck_assert_str_eq(ms_buf_z(&text), cases[i].text);
        ms_buf_free(&text);
    }
}
END_TEST

START_TEST(pairs_are_listed_by_name)
{
    struct fixture f;
    struct cmp_pair_list l = {.arena = NULL};
    struct ms_jwrite w;
    struct ms_buf want = {.max = 1 << 16};
    size_t n;
    fixture_init(&f);
    write_models(&f);
    fixture_open(&f);
    const struct cmp_align_pair *p = pairs_of(&f, &n);
    ck_ok(cmp_pair_list_take(&l, f.c, &f.err), f.err);
    ck_assert_uint_eq(l.list.n, n);
    ms_buf_putc(&want, '[');
    for (size_t i = 0; i < n; i++) {
        struct ms_str t = probe_node_name(f.c->rows.t.dump, p[i].target);
        struct ms_str b = probe_node_name(f.c->rows.b.dump, p[i].golden);
        ck_assert(ms_str_eq(l.list.p[i].target, t) && ms_str_eq(l.list.p[i].golden, b));
        ck_assert(l.list.p[i].confidence == p[i].confidence && l.list.p[i].how == p[i].how);
        ms_buf_printf(&want, "%s{\"target\": \"%.*s\", \"golden\": \"%.*s\", \"match\": \"%s\", ",
                      i != 0 ? ", " : "", MS_STR_ARG(t), MS_STR_ARG(b),
                      cmp_align_how_names[p[i].how]);
        ms_buf_printf(&want, "\"confidence\": %g%s}", round((double)p[i].confidence * 1000) / 1000,
                      p[i].confidence == 1 ? ".0" : "");
    }
    ms_buf_putc(&want, ']');
    fixture_close(&f); /* the list outlives the comparison */
    ms_jwrite_init(&w, 0, 1 << 16);
    ms_jwrite_arr(&w);
    cmp_pair_list_json(&l, &w);
    ms_jwrite_arr_end(&w);
    ck_assert_str_eq(ms_buf_z(&w.buf), ms_buf_z(&want));
    cmp_pair_list_free(&l);
    ms_buf_free(&w.buf);
    ms_buf_free(&want);
    fixture_free(&f);
}
END_TEST

START_TEST(rows_that_were_written_pair_the_same_again)
{
    struct fixture f;
    struct cmp_files files = {0};
    char path[96], layers[96];
    fixture_init(&f);
    write_models(&f);
    fixture_open(&f);
    size_t pairs = 0, again = 0;
    for (size_t i = 0; i < f.c->rows.pairs.n; i++)
        pairs += f.c->rows.pairs.p[i].t != MS_MAP_NONE && f.c->rows.pairs.p[i].b != MS_MAP_NONE;
    snprintf(path, sizeof path, "%s/rows.yaml", f.dir);
    snprintf(layers, sizeof layers, "%s/layers.yaml", f.dir);
    ck_ok(cmp_write_alignment(f.c, false, path, &files, &f.err), f.err);
    ck_ok(cmp_write_alignment(f.c, true, layers, &files, &f.err), f.err);
    ck_assert_uint_eq(files.list.n, 2);
    ck_assert_str_eq(files.list.p[0], path);
    ck_assert_int_ne(cmp_write_alignment(f.c, true, "/proc/none/rows.yaml", &files, &f.err), MS_OK);
    f.conf.data_mapping = path;
    fixture_open(&f);
    ck_assert_ptr_null(f.c->rows.al);
    for (size_t i = 0; i < f.c->rows.pairs.n; i++)
        again += f.c->rows.pairs.p[i].t != MS_MAP_NONE && f.c->rows.pairs.p[i].b != MS_MAP_NONE;
    ck_assert_uint_gt(pairs, 3 * LAYERS);
    ck_assert_uint_eq(again, pairs);
    cmp_files_free(&files);
    fixture_free(&f);
}
END_TEST

/* ---- by name --------------------------------------------------------------------------------------- */

static void check_explained(struct fixture *f, const char *node, const char *want)
{
    struct ms_buf text = {.max = 4096};
    ck_ok(cmp_explain(f->c, ms_str_of(node), &text, &f->err), f->err);
    ck_assert_str_eq(ms_buf_z(&text), want);
    ms_buf_free(&text);
}

START_TEST(what_was_paired_by_name_is_told_from_either_side)
{
    struct fixture f;
    struct ms_buf text = {.max = 4096};
    fixture_init(&f);
    fixture_pair(&f,
                 "\"Torch.a.0.forward\": {\"output\": [" TENSOR(
                     "1.0", "0.0", "0.0", "1.0") "]},"
                                                 "\"Torch.t.0.forward\": {\"output\": [" TENSOR(
                                                     "1.0", "0.0", "0.0", "1.0") "]}",
                 "\"Torch.b.0.forward\": {\"output\": [" TENSOR(
                     "1.0", "0.0", "0.0", "1.0") "]},"
                                                 "\"Torch.a.0.forward\": {\"output\": [" TENSOR(
                                                     "1.0", "0.0", "0.0", "1.0") "]}");
    f.conf.matching = CMP_MATCH_EXACT;
    fixture_open(&f);
    check_explained(
        &f, "Torch.a.0.forward",
        "Torch.a.0.forward of the target is paired with Torch.a.0.forward of the golden "
        "side by name.\n\nTorch.a.0.forward of the golden side is paired with "
        "Torch.a.0.forward of the target by name.\n");
    check_explained(&f, "Torch.t.0.forward",
                    "Torch.t.0.forward of the target has no namesake with equal rows on the golden "
                    "side.\n");
    check_explained(&f, "Torch.b.0.forward.output.0",
                    "Torch.b.0.forward of the golden side has no namesake with equal rows on the "
                    "target.\n");
    ck_assert_int_eq(cmp_explain(f.c, MS_STR("Torch.bb.0.forward"), &text, &f.err), MS_E_NOTFOUND);
    ck_says(f.err, "neither dump has a node 'Torch.bb.0.forward'");
    ck_says(f.err, "did you mean 'Torch.b.0.forward'?");
    ms_buf_free(&text);
    fixture_free(&f);
}
END_TEST

START_TEST(a_call_with_another_number_is_paired_as_calls_are_counted)
{
    struct fixture f;
    fixture_init(&f);
    fixture_pair(&f,
                 "\"Torch.a.3.forward\": {\"output\": [" TENSOR("1.0", "0.0", "0.0", "1.0") "]}",
                 "\"Torch.a.5.forward\": {\"output\": [" TENSOR("1.0", "0.0", "0.0", "1.0") "]}");
    f.conf.fuzzy = true;
    f.conf.matching = CMP_MATCH_EXACT;
    fixture_open(&f);
    check_explained(&f, "Torch.a.5.forward",
                    "Torch.a.5.forward of the golden side is paired with Torch.a.3.forward of the "
                    "target by name, as calls are counted or names are mapped.\n");
    fixture_free(&f);
}
END_TEST

/* ---- mappings and workbooks --------------------------------------------------------------------------- */

static char *slurp(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t room = 0;
    ck_assert_ptr_nonnull(file);
    ck_assert(getdelim(&text, &room, 0, file) >= 0);
    fclose(file);
    return text;
}

/* A key from 123 bytes on has the explicit form; names with characters of YAML stand in quotes. */
START_TEST(keys_of_a_mapping_have_the_form_of_their_length)
{
    struct fixture f;
    struct cmp_files files = {0};
    char map[96], out[96], text[1024];
    const char *const k =
        "12345678901234567890123456789012345678901234567890123456789012345678901234567890"
        "1234567890123456789012345678901234567890";
    fixture_init(&f);
    fixture_pair(&f, "", "");
    snprintf(text, sizeof text,
             "%sab: one\n%sabc: two\na: '#b'\nc: 'd e'\nf: 'g '\n\"\\x7f\": '%%'\n", k, k);
    fixture_write(&f, "map.yaml", text);
    snprintf(map, sizeof map, "%s/map.yaml", f.dir);
    snprintf(out, sizeof out, "%s/out.yaml", f.dir);
    f.conf.data_mapping = map;
    fixture_open(&f);
    ck_ok(cmp_write_mapping(f.c, out, &files, &f.err), f.err);
    char *have = slurp(out);
    snprintf(text, sizeof text,
             "%sab: one\n? %sabc\n: two\na: \"#b\"\nc: d e\nf: \"g \"\n\"\\x7F\": \"%%\"\n", k, k);
    ck_assert_str_eq(have, text);
    free(have);
    cmp_files_free(&files);
    fixture_free(&f);
}
END_TEST

START_TEST(an_empty_mapping_is_an_empty_object)
{
    struct fixture f;
    struct cmp_files files = {0};
    char out[96];
    fixture_init(&f);
    fixture_pair(&f, "", "");
    snprintf(out, sizeof out, "%s/out.yaml", f.dir);
    fixture_open(&f);
    ck_ok(cmp_write_mapping(f.c, out, &files, &f.err), f.err);
    char *have = slurp(out);
    ck_assert_str_eq(have, "{}\n");
    free(have);
    ck_assert_int_ne(cmp_write_mapping(f.c, "/proc/none/map.yaml", &files, &f.err), MS_OK);
    cmp_files_free(&files);
    fixture_free(&f);
}
END_TEST

static size_t entries_of(const char *path)
{
    size_t n = 0;
    DIR *d = opendir(path);
    ck_assert_ptr_nonnull(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* Neither a workbook that cannot be opened nor one that is given up leaves a file behind. */
START_TEST(a_workbook_that_is_given_up_leaves_nothing)
{
    struct cmp__workbook w;
    struct ms_err err = {0};
    char dir[64], path[96];
    scratch_dir(dir);
    ck_assert_int_eq(setenv("TMPDIR", dir, 1), 0);
    snprintf(path, sizeof path, "%s/book.xlsx", dir);
    ck_assert_int_ne(cmp__workbook_open(&w, "/proc/none/book.xlsx", &err), MS_OK);
    ck_assert_uint_eq(entries_of(dir), 0);
    ck_ok(cmp__workbook_open(&w, path, &err), err);
    ck_assert_ptr_nonnull(workbook_add_worksheet(w.book, "one"));
    ck_assert_int_eq(cmp__workbook_close(&w, MS_E_ARG, &err), MS_E_ARG);
    ck_assert_uint_eq(entries_of(dir), 0);
    ck_ok(cmp__workbook_open(&w, path, &err), err);
    ck_assert_ptr_nonnull(workbook_add_worksheet(w.book, "one"));
    ck_ok(cmp__workbook_close(&w, MS_OK, &err), err);
    ck_assert_uint_eq(entries_of(dir), 1);
    scratch_remove(dir);
}
END_TEST

TEST_MAIN("partners", nodes_with_a_partner_are_counted,
          what_is_unsure_is_told_and_what_is_paired_by_name_is_not, pairs_are_listed_by_name,
          rows_that_were_written_pair_the_same_again,
          what_was_paired_by_name_is_told_from_either_side,
          a_call_with_another_number_is_paired_as_calls_are_counted,
          keys_of_a_mapping_have_the_form_of_their_length, an_empty_mapping_is_an_empty_object,
          a_workbook_that_is_given_up_leaves_nothing)
