/* SPDX-License-Identifier: MIT
 *
 * written_tensors: a comparison of tensors with every reason why there is no figure.  The cells of the
 * csv, of the workbook and the verdicts are those of the rows, spelled again here.
 */
#include "tests/support/cmp_fixture.h"
#include "tests/support/csv_table.h"

#include "compare/measure/pattern.h"
#include "compare/table/comparison.h"
#include "compare/write/out.h"
#include "compare/write/table.h"
#include "probe/base/mem.h"
#include "probe/base/num.h"
#include "probe/tensor/tensor.h"

#include <dirent.h>
#include <math.h>

enum { SIDES = 2, TENSORS = 10 };

/* What each output of the one operator is on both sides: shape, values, and whether there is a file. */
static const struct one {
    const char *shape[SIDES];
    float value[SIDES][3];
    bool missing, no_name;
    enum cmp_state state;
    const char *metric[CMP_METRICS]; /* NULL: the figure */
} ones[TENSORS] = {
    {{"[3]", "[3]"}, {{1, 2, 3}, {1, 2, 3.5F}}, .state = CMP_STATE_OK},
    {{"[3]", "[3]"}, {{0, 0, 0}, {0, 0, 1}}, .state = CMP_STATE_OK, .metric = {"Nan"}},
    {{"[2]", "[2]"}, {{NAN, 1}, {NAN, 1.5F}}, .state = CMP_STATE_OK},
    {{"[]", "[]"},
     {{3}, {2}},
     .state = CMP_STATE_SCALAR,
     .metric = {"unsupported", "unsupported", NULL, NULL, "unsupported", "unsupported"}},
    {{"[3]", "[2]"},
     {{1, 2, 3}, {1, 2}},
     .state = CMP_STATE_SHAPE,
     .metric = {"shape unmatched", "shape unmatched", "shape unmatched", "shape unmatched",
                "shape unmatched", "shape unmatched"}},
    {{"[2]", "[2]"},
     {{1, NAN}, {1, 2}},
     .state = CMP_STATE_MASKS,
     .metric = {"N/A", "N/A", "N/A", "N/A", "N/A", "N/A"}},
    {{"[2]", "[2]"},
     {{1, 2}, {1, 2}},
     .missing = true,
     .state = CMP_STATE_UNREADABLE,
     .metric = {"unsupported", "unsupported", "unsupported", "unsupported", "unsupported",
                "unsupported"}},
    {{"[2]", "[2]"},
     {{1, 2}, {1, 2}},
     .no_name = true,
     .state = CMP_STATE_NO_DATA,
     .metric = {"unsupported", "unsupported", "unsupported", "unsupported", "unsupported",
                "unsupported"}},
    /* the golden one is nothing, so that RelL2 is infinite */
    {{"[3]", "[3]"}, {{0, 0, 1}, {0, 0, 0}}, .state = CMP_STATE_OK, .metric = {"Nan"}},
    {{"[0]", "[0]"},
     {{0}, {0}},
     .state = CMP_STATE_EMPTY,
     .metric = {"unsupported", "unsupported", "unsupported", "unsupported", "unsupported",
                "unsupported"}},
};

static void write_side(const struct fixture *f, int side)
{
    struct ms_buf text = {.max = 1 << 16};
    struct ms_err err = {0};
    ms_buf_puts(&text, "\"Torch.a.0.forward\": {\"output\": [");
    for (int i = 0; i < TENSORS; i++) {
        const struct one *one = &ones[i];
        char path[160];
        const uint64_t n = strtoul(one->shape[side] + 1, NULL, 10);
        const bool scalar = strcmp(one->shape[side], "[]") == 0;
        ms_buf_printf(&text,
                      "%s{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\",\"shape\":%s,"
                      "\"Max\":%d.5,\"Min\":-Infinity,\"Mean\":NaN,\"Norm\":null,"
                      "\"requires_grad\":%s",
                      i != 0 ? "," : "", one->shape[side], i, i % 2 == side ? "true" : "false");
        if (!one->no_name)
            ms_buf_printf(&text, ",\"data_name\":\"x%d.pt\"", i);
        ms_buf_puts(&text, "}");
        snprintf(path, sizeof path, "%s/%c/dump_tensor_data/x%d.pt", f->dir, "tb"[side], i);
        if (!one->missing || side == 0)
            ck_ok(probe_pt_write(path, MS_DT_F32, &n, !scalar, one->value[side], &err), err);
    }
    ms_buf_puts(&text, "]}");
    fixture_dump(f, "tb"[side], "tensor", "pytorch", ms_buf_z(&text));
    fixture_write(f, "t/stack.json", "{\"Torch.a.0.forward\":[\"File a.py, line 1, in f\"]}");
    ms_buf_free(&text);
}

static const char *cell_of(const struct table_text *t, size_t line, const char *column)
{
    for (unsigned k = 0; k < t->line[0].n; k++) {
        if (strcmp(t->line[0].cell[k], column) == 0)
            return t->line[line].cell[k];
    }
    ck_abort_msg("no column %s", column);
    return NULL;
}

/* An infinity has a space before it in a csv. */
static void check_number(const struct table_text *t, size_t line, const char *column, double v,
                         const char *nan)
{
    char want[MS_NUM_MAX + 8];
    if (isnan(v))
        strcpy(want, nan);
    else if (isinf(v))
        strcpy(want, v > 0 ? " inf" : " -inf");
    else
        want[ms_num_f64(want, v)] = '\0';
    const char *cell = cell_of(t, line, column);
    ck_assert_msg(strcmp(cell, want) == 0, "line %zu, %s: '%s', not '%s'", line, column, cell,
                  want);
}

static void check_metrics(const struct table_text *t, size_t line, const struct one *one,
                          const struct cmp_row *row)
{
    static const char *const names[] = {"Cosine",
                                        "EucDist",
                                        "MaxAbsErr",
                                        "MaxRelativeErr",
                                        "One Thousandth Err Ratio",
                                        "Five Thousandths Err Ratio"};
    ck_assert_msg(row->fig.state == one->state, "line %zu: %d", line, (int)row->fig.state);
    for (int k = 0; k < CMP_METRICS; k++) {
        if (one->metric[k] != NULL)
            ck_assert_str_eq(cell_of(t, line, names[k]), one->metric[k]);
        else
            check_number(t, line, names[k], row->fig.metric[k], "Nan");
    }
}

static void check_ext(struct fixture *f, const struct table_text *t, size_t line,
                      const struct cmp_row *row)
{
    static const char *const names[] = {
        "RelL2", "RelL2 lower bound", "SQNR dB", "Mean ULP", "Max ULP", "Bit-equal ratio", "Bias",
        "Scale", "Expected RelL2",    "Z"};
    const struct cmp_pattern p = cmp__pattern(&f->c->rows, &f->c->measured, row);
    const struct cmp_ext *e = &p.ext;
    const double want[] = {e->rel_l2,    e->rel_l2_bound, e->sqnr_db, e->mean_ulp, e->max_ulp,
                           e->bit_equal, e->bias,         e->scale,   p.expected,  p.z};
    for (int k = 0; k < 10; k++)
        check_number(t, line, names[k], want[k], "N/A");
    ck_assert_str_eq(cell_of(t, line, "Pattern"), p.name);
    ck_assert_str_eq(cell_of(t, line, "Match"), row->match.how);
    check_number(t, line, "Match confidence", 1, "");
}

static void check_line(struct fixture *f, const struct table_text *t, size_t line,
                       const struct cmp_row *row)
{
    const struct one *one = &ones[line - 1];
    char want[64];
    check_metrics(t, line, one, row);
    ck_assert_str_eq(cell_of(t, line, "NPU Tensor Shape"), one->shape[0]);
    ck_assert_str_eq(cell_of(t, line, "Bench Tensor Shape"), one->shape[1]);
    ck_assert_str_eq(cell_of(t, line, "NPU Requires_grad"), line % 2 == 1 ? "True" : "False");
    ck_assert_str_eq(cell_of(t, line, "Bench Requires_grad"), line % 2 == 1 ? "False" : "True");
    snprintf(want, sizeof want, "%zu.5", line - 1);
    ck_assert_str_eq(cell_of(t, line, "NPU max"), want);
    ck_assert_str_eq(cell_of(t, line, "Bench max"), want);
    ck_assert_str_eq(cell_of(t, line, "NPU min"), " -inf");
    snprintf(want, sizeof want, one->no_name ? "['-1', '-1']" : "['x%zu.pt', 'x%zu.pt']", line - 1,
             line - 1);
    ck_assert_str_eq(cell_of(t, line, "Data_name"), want);
    ck_assert_str_eq(cell_of(t, line, "NPU_Stack_Info"),
                     line == 1 ? "['File a.py, line 1, in f']" : "N/A");
    ck_assert_str_eq(cell_of(t, line, "Result"), cmp_level_names[row->level]);
    if (f->conf.ext)
        check_ext(f, t, line, row);
}

/* A workbook has 16 digits. */
static bool is_near(const char *a, const char *b)
{
    char *end, *stop;
    const double x = strtod(a, &end), y = strtod(b, &stop);
    return end != a && stop != b && *end == 0 && *stop == 0 && fabs(x - y) <= 1e-14 * fabs(x);
}

static void check_both(struct fixture *f)
{
    char stem[96], path[104];
    struct cmp_files files = {0};
    struct cmp_summary sum[2] = {0};
    snprintf(stem, sizeof stem, "%s/out", f->dir);
    ck_ok(cmp_write_csv(f->c, stem, NULL, &sum[0], &files, &f->err), f->err);
    ck_ok(cmp_write_xlsx(f->c, stem, &sum[1], &files, &f->err), f->err);
    snprintf(path, sizeof path, "%s.csv", stem);
    struct table_text csv = table_of_csv(path);
    snprintf(path, sizeof path, "%s.xlsx", stem);
    struct table_text book = table_of_xlsx(path);
    ck_assert_uint_eq(csv.n, TENSORS + 1);
    ck_assert_uint_eq(book.n, TENSORS + 1);
    ck_ok(cmp_view_group(f->c, 0, &f->v, &f->err), f->err);
    for (size_t i = 0; i < TENSORS; i++) {
        check_line(f, &csv, i + 1, &f->v.rows.p[i]);
        for (unsigned k = 0; k < csv.line[0].n; k++) { /* numbers may be spelled otherwise */
            const char *a = csv.line[i + 1].cell[k], *b = book.line[i + 1].cell[k];
            a += *a == ' ';
            ck_assert_msg(strcasecmp(a, b) == 0 || is_near(a, b), "%s: '%s', '%s'",
                          csv.line[0].cell[k], a, b);
        }
    }
    cmp_files_free(&files);
    table_free(&csv);
    table_free(&book);
}

START_TEST(a_tensor_has_its_figures_or_the_reason_why_not)
{
    for (int ext = 0; ext < 2; ext++) {
        struct fixture f;
        fixture_init(&f);
        f.conf.ext = ext != 0;
        write_side(&f, 0);
        write_side(&f, 1);
        fixture_open(&f);
        check_both(&f);
        fixture_free(&f);
    }
}
END_TEST

/* A workbook with colours has the same cells, but a tab behind what is no finite number. */
START_TEST(a_workbook_with_colours_has_the_same_cells)
{
    struct fixture f;
    struct table_text book[2];
    size_t tabs = 0;
    fixture_init(&f);
    f.conf.ext = true;
    write_side(&f, 0);
    write_side(&f, 1);
    for (int coloured = 0; coloured < 2; coloured++) {
        char stem[96], path[104];
        struct cmp_files files = {0};
        struct cmp_summary sum = {0};
        f.conf.highlight = coloured != 0;
        fixture_open(&f);
        snprintf(stem, sizeof stem, "%s/book%d", f.dir, coloured);
        ck_ok(cmp_write_xlsx(f.c, stem, &sum, &files, &f.err), f.err);
        snprintf(path, sizeof path, "%s.xlsx", stem);
        book[coloured] = table_of_xlsx(path);
        cmp_files_free(&files);
    }
    ck_assert_uint_eq(book[0].n, book[1].n);
    for (size_t i = 0; i < book[0].n; i++) {
        for (unsigned k = 0; k < book[0].line[0].n; k++) {
            const char *a = book[0].line[i].cell[k], *b = book[1].line[i].cell[k];
            const bool tab = strcmp(a, "inf") == 0 || strcmp(a, "-inf") == 0;
            tabs += tab;
            ck_assert_msg(strncasecmp(a, b, strlen(a)) == 0 &&
                              strcmp(b + strlen(a), tab ? "\t" : "") == 0,
                          "%s: '%s', '%s'", book[0].line[0].cell[k], a, b);
        }
    }
    ck_assert_uint_ge(tabs, 2 * TENSORS);
    table_free(&book[0]);
    table_free(&book[1]);
    fixture_free(&f);
}
END_TEST

/* The old rules keep an axis of length 1: such a tensor is no scalar, and has no cosine. */
START_TEST(one_element_has_no_cosine)
{
    struct fixture f;
    char stem[96], path[104];
    struct cmp_files files = {0};
    struct cmp_summary sum = {0};
    const uint64_t n = 1;
    const float x = 3, y = 2;
    fixture_init(&f);
    f.conf.rules = cmp_rules_of(CMP_OLD);
    for (int side = 0; side < 2; side++) {
        fixture_dump(&f, "tb"[side], "tensor", "pytorch",
                     "\"Torch.a.0.forward\":{\"output\":[{\"type\":\"torch.Tensor\",\"dtype\":"
                     "\"torch.float32\",\"shape\":[1],\"Max\":1.5,\"Min\":1.5,\"Mean\":1.5,"
                     "\"Norm\":1.5,\"requires_grad\":false,\"data_name\":\"x.pt\"}]}");
        snprintf(path, sizeof path, "%s/%c/dump_tensor_data/x.pt", f.dir, "tb"[side]);
        ck_ok(probe_pt_write(path, MS_DT_F32, &n, 1, side == 0 ? &x : &y, &f.err), f.err);
    }
    fixture_open(&f);
    snprintf(stem, sizeof stem, "%s/out", f.dir);
    ck_ok(cmp_write_csv(f.c, stem, NULL, &sum, &files, &f.err), f.err);
    snprintf(path, sizeof path, "%s.csv", stem);
    struct table_text t = table_of_csv(path);
    ck_assert_str_eq(cell_of(&t, 1, "Cosine"), "unsupported");
    ck_assert_str_eq(cell_of(&t, 1, "EucDist"), "1.0");
    ck_assert_str_eq(cell_of(&t, 1, "MaxAbsErr"), "1.0");
    ck_assert_str_eq(cell_of(&t, 1, "MaxRelativeErr"), "0.5");
    ck_assert_str_eq(cell_of(&t, 1, "One Thousandth Err Ratio"), "0.0");
    cmp_files_free(&files);
    table_free(&t);
    fixture_free(&f);
}
END_TEST

/* ---- without memory ------------------------------------------------------------------------------ */

static unsigned files_in(const char *dir)
{
    unsigned n = 0;
    DIR *d = opendir(dir);
    ck_assert_ptr_nonnull(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

/* A table is written whole or not at all, whichever allocation fails; true: none did. */
static bool is_written(struct fixture *f, const char *stem, uint64_t n, bool book)
{
    char path[104];
    struct cmp_files files = {0};
    struct cmp_summary sum = {0};
    const unsigned before = files_in(f->dir), rows = files_in(getenv("TMPDIR"));
    snprintf(path, sizeof path, "%s.%s", stem, book ? "xlsx" : "csv");
    ms_mem_fail_at(n);
    const enum ms_rc rc = book ? cmp_write_xlsx(f->c, stem, &sum, &files, &f->err)
                               : cmp_write_csv(f->c, stem, NULL, &sum, &files, &f->err);
    const bool failed = ms_mem_failed();
    ms_mem_fail_at(0);
    ck_assert_msg(rc == MS_OK || (failed && rc == MS_E_NOMEM), "allocation %llu: %s",
                  (unsigned long long)n, f->err.msg);
    ck_assert_int_eq(access(path, F_OK) == 0, rc == MS_OK);
    ck_assert_uint_eq(files_in(f->dir), before + (rc == MS_OK));
    unlink(path);
    ck_assert_uint_eq(files_in(getenv("TMPDIR")), rows);
    cmp_files_free(&files);
    ms_err_clear(&f->err);
    return !failed;
}

START_TEST(without_memory_nothing_is_left_behind)
{
    struct fixture f;
    char stem[96], own[64];
    scratch_dir(own);
    setenv("TMPDIR", own, 1);
    fixture_init(&f);
    write_side(&f, 0);
    write_side(&f, 1);
    for (int book = 0; book < 2; book++) {
        fixture_open(&f);
        snprintf(stem, sizeof stem, "%s/out", f.dir);
        uint64_t n = 1;
        while (!is_written(&f, stem, n, book != 0))
            n++;
        ck_assert_uint_gt(n, 5);
    }
    fixture_free(&f);
    scratch_remove(own);
}
END_TEST

TEST_MAIN("written_tensors", a_tensor_has_its_figures_or_the_reason_why_not,
          a_workbook_with_colours_has_the_same_cells, one_element_has_no_cosine,
          without_memory_nothing_is_left_behind)
