/* SPDX-License-Identifier: MIT
 *
 * sheet: rows of the tables that follow the official recipes, as csv and as a workbook, byte by byte.
 */
#include "compare/write/sheet.h"
#include "tests/support/csv_table.h"

#include <math.h>

static char dir[64];
static struct ms_err err;

static const char *const names[] = {"a", "b, c", "d", NULL};

/* A row of names, two rows of every kind of cell, and a row with more cells than there are columns. */
static void fill(struct cmp__sheet *s)
{
    cmp__sheet_names(s, names);
    cmp__sheet_end_row(s);
    for (int i = 0; i < 2; i++) {
        char text[32];
        snprintf(text, sizeof text, "kept %d", i);
        const struct ms_str kept = cmp__sheet_keep(s, ms_str_of(text));
        memset(text, '#', sizeof text);
        cmp__sheet_text(s, kept);
        cmp__sheet_text(s, MS_STR("=1+1"));
        cmp__sheet_text(s, MS_STR_NONE);
        cmp__sheet_word(s, "=own");
        cmp__sheet_number(s, 0.1 + i);
        cmp__sheet_number(s, NAN);
        cmp__sheet_number(s, INFINITY);
        cmp__sheet_number(s, -INFINITY);
        cmp__sheet_blanks(s, 2, "-");
        cmp__sheet_blanks(s, 0, "none");
        cmp__sheet_end_row(s);
    }
    for (unsigned i = 0; i < CMP_COLUMNS + 3; i++)
        cmp__sheet_number(s, i);
    cmp__sheet_end_row(s);
}

static void write_sheet(const char *path, bool xlsx)
{
    struct cmp__sheet s;
    ck_ok(cmp__sheet_open(&s, path, xlsx, &err), err);
    fill(&s);
    ck_ok(cmp__sheet_close(&s, MS_OK), err);
}

static const char *path_of(const char *name)
{
    static char path[96];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

START_TEST(a_csv_has_these_bytes)
{
    static char text[4096];
    static const char want[] = "a,\"b, c\",d\n"
                               "kept 0,\"'=1+1\",,=own,0.1,nan, inf, -inf,-,-\n"
                               "kept 1,\"'=1+1\",,=own,1.1,nan, inf, -inf,-,-\n"
                               "0.0,1.0,2.0,3.0,4.0";
    scratch_dir(dir);
    write_sheet(path_of("x.csv"), false);
    FILE *f = fopen(path_of("x.csv"), "rb");
    ck_assert_ptr_nonnull(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    ck_assert_msg(strncmp(text, want, sizeof want - 1) == 0, "%s", text);
    ck_assert_ptr_nonnull(strstr(text, ",46.0,47.0\n"));
    scratch_remove(dir);
}
END_TEST

START_TEST(a_workbook_has_these_cells)
{
    static const char *const want[] = {"=1+1", "", "=own", "0.1", "nan", "inf", "-inf", "-", "-"};
    scratch_dir(dir);
    write_sheet(path_of("x.xlsx"), true);
    struct table_text t = table_of_xlsx(path_of("x.xlsx"));
    ck_assert_uint_eq(t.n, 4);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_str_eq(t.line[0].cell[i], names[i]);
    ck_assert_uint_eq(t.line[0].n, 3);
    ck_assert_str_eq(t.line[1].cell[0], "kept 0");
    ck_assert_str_eq(t.line[2].cell[0], "kept 1");
    ck_assert_uint_eq(t.line[1].n, 10);
    for (unsigned i = 0; i < 9; i++)
        ck_assert_str_eq(t.line[1].cell[i + 1], want[i]);
    ck_assert_uint_eq(t.line[3].n, CMP_COLUMNS);
    table_free(&t);
    scratch_remove(dir);
}
END_TEST

START_TEST(a_failure_of_the_caller_leaves_no_file)
{
    scratch_dir(dir);
    for (int xlsx = 0; xlsx < 2; xlsx++) {
        struct cmp__sheet s;
        ck_ok(cmp__sheet_open(&s, path_of("y"), xlsx != 0, &err), err);
        fill(&s);
        ck_assert_int_eq(cmp__sheet_close(&s, ms_fail(&err, MS_E_ARG, "no")), MS_E_ARG);
        ck_assert_int_ne(access(path_of("y"), F_OK), 0);
        s = (struct cmp__sheet){0};
    }
    scratch_remove(dir);
}
END_TEST

START_TEST(verdicts_are_counted_by_their_words)
{
    struct cmp_sheet_sum sum = {0};
    struct ms_buf text = {.max = 100};
    static const char *const verdicts[] = {"Yes", "No", "No", "yes", "", "Nope"};
    for (size_t i = 0; i < 6; i++)
        cmp__sheet_count(&sum, verdicts[i]);
    ck_assert(sum.rows == 6 && sum.yes == 1 && sum.no == 2 && sum.rest == 3);
    for (int i = 0; i < 3; i++) {
        ms_buf_printf(&text, "note %d", i);
        ck_ok(cmp__sheet_note(&sum, &text, &err), err);
        ck_assert_uint_eq(text.n, 0);
    }
    ck_assert_uint_eq(sum.notes.n, 3);
    ck_assert_str_eq(sum.notes.p[2], "note 2");
    cmp_sheet_sum_free(&sum);
    ms_buf_free(&text);
}
END_TEST

TEST_MAIN("sheet", a_csv_has_these_bytes, a_workbook_has_these_cells,
          a_failure_of_the_caller_leaves_no_file, verdicts_are_counted_by_their_words)
