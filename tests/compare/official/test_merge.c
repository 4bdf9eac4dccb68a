/* SPDX-License-Identifier: MIT
 *
 * merge: results of ranks side by side.
 */
#include "tests/support/check.h"

#include <xlsxwriter.h>

#include "compare/official/merge.h"
#include "compare/write/xlsx_read.h"

static char dir[64];
static struct cmp_merge_conf conf;
static struct cmp_merge m;
static struct ms_err err;

static void put(const char *name, const char *text)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    write_file(path, text, strlen(text));
}

static void configure(const char *yaml)
{
    ck_ok(cmp_merge_conf_parse(&conf, "merge.yaml", ms_str_of(yaml), &err), err);
}

static void end(void)
{
    cmp_merge_free(&m);
    cmp_merge_conf_free(&conf);
    scratch_remove(dir);
}

#define STATS "NPU Name,Max diff,NormRelativeErr,NPU max,Bench max\n"
static const char two_rows[] = STATS "Distributed.all_reduce.0.forward.input.0,0.5,1.0%,1,2\n"
                                     "Distributed.all_reduce.0.forward.input.1,N/A,N/A,3,4\n"
                                     "Torch.add.0.forward.input.0,9,9%,1,1\n";

/* A figure of a row in the rank that is the nth. */
static const char *figure(size_t nth, const char *row, unsigned which)
{
    static char text[64];
    uint32_t name = ms_map_get(&m.names, ms_str_of(row));
    ck_assert_uint_ne(name, MS_MAP_NONE);
    size_t at = (size_t)name * m.nfigures + which;
    const struct cmp_merge_rank *r = &m.ranks.p[nth];
    struct ms_str cell = at < r->cells.n ? r->cells.p[at].text : MS_STR_NONE;
    snprintf(text, sizeof text, "%.*s", (int)cell.n, cell.p != NULL ? cell.p : "");
    return cell.p != NULL ? text : NULL;
}

START_TEST(figures_of_ranks_stand_side_by_side)
{
    scratch_dir(dir);
    put("compare_result_rank10_20260814102107.csv", two_rows);
    put("compare_result_rank2_20260814102107.csv",
        STATS "Distributed.all_reduce.1.forward.input.0,0.25,2%,1,2\n");
    configure("api: [Distributed.all_reduce]\ncompare_index: [Max diff, NormRelativeErr]\n");
    ck_ok(cmp_merge_read(&m, dir, &conf, &err), err);
    ck_assert_uint_eq(m.ranks.n, 2);
    ck_assert_uint_eq(m.ranks.p[0].rank, 2);
    ck_assert_uint_eq(m.ranks.p[1].rank, 10);
    ck_assert_uint_eq(m.names.keys.n, 3);
    ck_assert_str_eq(figure(0, "Distributed.all_reduce.1.forward.input.0", 1), "2%");
    ck_assert_str_eq(figure(1, "Distributed.all_reduce.0.forward.input.0", 0), "0.5");
    ck_assert_ptr_null(figure(0, "Distributed.all_reduce.0.forward.input.0", 0));
    end();
}
END_TEST

START_TEST(where_there_is_no_figure_both_sides_are_shown)
{
    scratch_dir(dir);
    put("compare_result_rank0_20260814102107.csv", two_rows);
    put("compare_result_rank1-rank1_20260814102107.csv", two_rows);
    configure("api: [Distributed.all_reduce]\ncompare_index: [Max diff]\n");
    ck_ok(cmp_merge_read(&m, dir, &conf, &err), err);
    ck_assert_str_eq(figure(1, "Distributed.all_reduce.0.forward.input.1", 0), "NPU:3  Bench:4");
    end();
}
END_TEST

/* A workbook whose maxima are numbers. */
static void put_book(const char *name, const double (*max)[2], size_t n)
{
    static const char *const header[] = {"NPU Name", "Max diff", "NPU max", "Bench max"};
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    lxw_workbook *book = workbook_new(path);
    lxw_worksheet *sheet = workbook_add_worksheet(book, NULL);
    for (lxw_col_t i = 0; i < 4; i++)
        worksheet_write_string(sheet, 0, i, header[i], NULL);
    for (lxw_row_t i = 0; i < n; i++) {
        char row[32];
        snprintf(row, sizeof row, "D.a.%u.forward.input.0", i);
        worksheet_write_string(sheet, i + 1, 0, row, NULL);
        worksheet_write_string(sheet, i + 1, 1, "N/A", NULL);
        worksheet_write_number(sheet, i + 1, 2, max[i][0], NULL);
        worksheet_write_number(sheet, i + 1, 3, max[i][1], NULL);
    }
    ck_assert_int_eq(workbook_close(book), LXW_NO_ERROR);
}

/* As pandas reads a sheet: what is whole is an integer. */
START_TEST(numbers_of_a_workbook_are_shown_as_python_shows_them)
{
    static const double max[][2] = {{1e16, 1e20}, {-0.0, 3}, {0.1, 2.5e-310}, {1e-7, 1234567.25}};
    static const char *const says[] = {"NPU:10000000000000000  Bench:100000000000000000000",
                                       "NPU:0  Bench:3", "NPU:0.1  Bench:2.5e-310",
                                       "NPU:1e-07  Bench:1234567.25"};
    scratch_dir(dir);
    put_book("compare_result_rank0_20260814102107.xlsx", max, 4);
    put_book("compare_result_rank1_20260814102107.xlsx", max, 4);
    configure("api: [D.a]\ncompare_index: [Max diff]\n");
    ck_ok(cmp_merge_read(&m, dir, &conf, &err), err);
    for (unsigned i = 0; i < 4; i++) {
        char row[32];
        snprintf(row, sizeof row, "D.a.%u.forward.input.0", i);
        ck_assert_str_eq(figure(1, row, 0), says[i]);
    }
    end();
}
END_TEST

/* ---- the workbook -------------------------------------------------------------- */

static enum ms_rc as_text(void *ctx, const struct cmp_xlsx_row *row, struct ms_err *e)
{
    struct ms_buf *b = ctx;
    (void)e;
    for (size_t i = 0; i < row->n; i++)
        ms_buf_printf(b, "%s%.*s|", row->cells[i].number ? "=" : "",
                      MS_STR_ARG(row->cells[i].text));
    ms_buf_putc(b, '\n');
    return MS_OK;
}

START_TEST(each_figure_has_a_sheet_with_rows_by_name)
{
    char path[96];
    struct ms_buf got = {.max = 1 << 16};
    scratch_dir(dir);
    put("compare_result_rank0_20260814102107.csv",
        STATS "D.b.0.forward.input.0,1.5,-,1,1\nD.a.0.forward.input.0,-0.5,50.0%,1,1\n");
    put("compare_result_rank1_20260814102107.csv", STATS "D.a.0.forward.input.0,nan,0,1,1\n");
    configure("api: [D.a, D.b]\ncompare_index: [Max diff, NormRelativeErr]\n");
    ck_ok(cmp_merge_read(&m, dir, &conf, &err), err);
    snprintf(path, sizeof path, "%s/made/m.xlsx", dir);
    ck_ok(cmp_merge_write(&m, path, &err), err);
    ck_ok(cmp_xlsx_read(path, as_text, &got, &err), err);
    ck_assert_str_eq(ms_buf_z(&got), "NPU Name|rank0|rank1|\n"
                                     "D.a.0.forward.input.0|=-0.5|nan|\n"
                                     "D.b.0.forward.input.0|=1.5|\n"
                                     "NPU Name|rank0|rank1|\n"
                                     "D.a.0.forward.input.0|50.0%|=0|\n"
                                     "D.b.0.forward.input.0|-|\n");
    ms_buf_free(&got);
    end();
}
END_TEST

/* ---- what is left out ------------------------------------------------------------ */

static bool is_noted(const char *words)
{
    for (size_t i = 0; i < m.notes.n; i++) {
        if (strstr(m.notes.p[i], words) != NULL)
            return true;
    }
    return false;
}

START_TEST(the_latest_result_of_a_rank_counts_with_all_its_parts)
{
    scratch_dir(dir);
    put("compare_result_rank0_20260101000000.csv", two_rows);
    put("compare_result_rank0_20260814102107_part_1.csv", STATS "D.a.0,1,1%,1,1\n");
    put("compare_result_rank0_20260814102107_part_2.csv", STATS "D.a.1,2,2%,1,1\n");
    put("compare_result_rank1_20260814102107.csv", STATS "D.a.0,3,3%,1,1\n");
    configure("api: [D.a]\ncompare_index: [Max diff]\n");
    ck_ok(cmp_merge_read(&m, dir, &conf, &err), err);
    ck_assert_uint_eq(m.names.keys.n, 2);
    ck_assert_str_eq(figure(0, "D.a.1", 0), "2");
    ck_assert(is_noted("an older result of rank0"));
    end();
}
END_TEST

START_TEST(a_rank_that_cannot_be_used_is_named_and_the_others_are_merged)
{
    scratch_dir(dir);
    put("compare_result_rank0_20260814102107.csv", two_rows);
    put("compare_result_rank1_20260814102107.xlsx", "not a zip archive");
    put("compare_result_rank2_20260814102107.csv", "NPU Name,NPU MD5\nD.a.0,12\n");
    put("compare_result_rank3_20260814102107.csv", "");
    put("compare_result_rank4_20260814102107.csv", "NPU Name,Max diff,NPU max,Bench max\n");
    put("compare_result_20260814102107.csv", two_rows);
    put("notes.txt", "not looked at");
    configure("api: [Distributed.all_reduce]\ncompare_index: [Max diff]\n");
    ck_ok(cmp_merge_read(&m, dir, &conf, &err), err);
    ck_assert_uint_eq(m.ranks.n, 1);
    ck_assert(is_noted("rank1 is left out"));
    ck_assert(is_noted("no figures to merge"));
    ck_assert(is_noted("rank3_20260814102107.csv: the table has no rows"));
    ck_assert(is_noted("rank4_20260814102107.csv: the table has no rows"));
    ck_assert(is_noted("not the result of a rank"));
    ck_assert(!is_noted("notes.txt"));
    end();
}
END_TEST

START_TEST(one_rank_or_none_is_nothing_to_merge)
{
    scratch_dir(dir);
    put("compare_result_rank0_20260814102107.csv", two_rows);
    configure("api: [Distributed.all_reduce]\n");
    ck_assert_int_eq(cmp_merge_read(&m, dir, &conf, &err), MS_E_NOTFOUND);
    ck_says(err, "results of 1 ranks");
    end();
}
END_TEST

START_TEST(a_figure_that_no_table_has_is_named)
{
    scratch_dir(dir);
    put("compare_result_rank0_20260814102107.csv", two_rows);
    put("compare_result_rank1_20260814102107.csv", two_rows);
    configure("api: [Distributed.all_reduce]\ncompare_index: [Cosine]\n");
    ck_assert_int_eq(cmp_merge_read(&m, dir, &conf, &err), MS_E_NOTFOUND);
    ck_assert(is_noted("no column 'Cosine'"));
    end();
}
END_TEST

START_TEST(a_configuration_that_asks_for_nothing_is_refused)
{
    static const char *const bad[][2] = {{"", "empty"},
                                         {"api:\n", "names no operator"},
                                         {"api: Distributed\n", "expected a list"},
                                         {"apis: [a]\n", "expected api or compare_index"},
                                         {"- a\n", "expected"},
                                         {"api: [[a]]\n", "expected a name"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ms_err_clear(&err);
        ck_assert_int_ne(cmp_merge_conf_parse(&conf, "m.yaml", ms_str_of(bad[i][0]), &err), MS_OK);
        ck_says(err, bad[i][1]);
    }
}
END_TEST

START_TEST(figures_without_a_value_are_all_figures)
{
    static const char *const words[] = {"", " ~", " null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char text[64];
        snprintf(text, sizeof text, "api: [a]\ncompare_index:%s\n", words[i]);
        ck_ok(cmp_merge_conf_parse(&conf, "m.yaml", ms_str_of(text), &err), err);
        ck_assert_uint_eq(conf.index.n, 0);
        cmp_merge_conf_free(&conf);
    }
    ck_assert_int_ne(
        cmp_merge_conf_parse(&conf, "m.yaml", MS_STR("api: [a]\ncompare_index: 'null'\n"), &err),
        MS_OK);
}
END_TEST

START_TEST(only_results_of_ranks_have_their_names)
{
    static const struct {
        const char *name;
        bool fine;
    } list[] = {{"compare_result_rank0_20260814102107.xlsx", true},
                {"compare_result_rank12-rank12_20260814102107.csv", true},
                {"compare_result_rank1_20260814102107_part_2.csv", true},
                {"compare_result_rank1-rank2_20260814102107.csv", false},
                {"compare_result_rank_20260814102107.csv", false},
                {"compare_result_rank1_2026081410210.csv", false},
                {"compare_result_rank99999999999999999999_20260814102107.csv", false},
                {"compare_result_rank1_20260814102107.csv.bak", false}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        uint64_t rank, stamp;
        ck_assert_msg(cmp__merge_name(ms_str_of(list[i].name), &rank, &stamp) == list[i].fine, "%s",
                      list[i].name);
    }
}
END_TEST

TEST_MAIN("merge", numbers_of_a_workbook_are_shown_as_python_shows_them,
          figures_of_ranks_stand_side_by_side, where_there_is_no_figure_both_sides_are_shown,
          each_figure_has_a_sheet_with_rows_by_name,
          the_latest_result_of_a_rank_counts_with_all_its_parts,
          a_rank_that_cannot_be_used_is_named_and_the_others_are_merged,
          one_rank_or_none_is_nothing_to_merge, a_figure_that_no_table_has_is_named,
          a_configuration_that_asks_for_nothing_is_refused, figures_without_a_value_are_all_figures,
          only_results_of_ranks_have_their_names)
