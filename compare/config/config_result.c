/* SPDX-License-Identifier: MIT
 *
 * config_result: result.xlsx: a sheet with the verdicts, and one for each member.
 */
#include "compare/config/config_checks.h"

#include "compare/write/sheet.h"

#include <math.h>

struct book {
    struct cmp__workbook file;
    struct ms_buf scratch, text;
};

static lxw_error put_cell(struct book *b, lxw_worksheet *sheet, lxw_row_t row, lxw_col_t column,
                          const struct ms_plain *v)
{
    if (v == NULL || v->kind == MS_PLAIN_NONE || (v->kind == MS_PLAIN_REAL && isnan(v->f)))
        return LXW_NO_ERROR;
    if (v->kind == MS_PLAIN_BOOL)
        return worksheet_write_boolean(sheet, row, column, v->i != 0, NULL);
    if (v->kind == MS_PLAIN_INT)
        return worksheet_write_number(sheet, row, column, (double)v->i, NULL);
    if (v->kind == MS_PLAIN_REAL && isfinite(v->f))
        return worksheet_write_number(sheet, row, column, v->f, NULL);
    ms_buf_clear(&b->text);
    cfg_value_str(&b->text, v);
    const struct ms_str text = ms_buf_slice(&b->text);
    if (text.n == 0)
        return LXW_NO_ERROR;
    return cmp__workbook_text(sheet, row, column, text, NULL, &b->scratch);
}

static lxw_error put_header(lxw_worksheet *sheet, const char *const *names)
{
    lxw_error e = LXW_NO_ERROR;
    for (lxw_col_t i = 0; names[i] != NULL && e == LXW_NO_ERROR; i++)
        e = worksheet_write_string(sheet, 0, i, names[i], NULL);
    return e;
}

static enum ms_rc put_summary(struct book *b, const struct cfg_result *r, struct ms_err *err)
{
    static const char *const names[] = {"filename", "pass_check", NULL};
    lxw_worksheet *sheet = workbook_add_worksheet(b->file.book, "summary");
    if (sheet == NULL)
        return ms_no_memory(err);
    lxw_error e = put_header(sheet, names);
    for (size_t i = 0; i < r->tables.n && e == LXW_NO_ERROR; i++) {
        e = worksheet_write_string(sheet, (lxw_row_t)i + 1, 0, r->tables.p[i].name, NULL);
        if (e == LXW_NO_ERROR)
            e = worksheet_write_string(sheet, (lxw_row_t)i + 1, 1, r->tables.p[i].verdict, NULL);
    }
    return e == LXW_NO_ERROR ? MS_OK : ms_fail(err, MS_E_IO, "xlsx: %s", lxw_strerror(e));
}

static enum ms_rc put_table(struct book *b, const struct cfg_table *t, struct ms_err *err)
{
    enum { SHEET_ROWS = 1048575 };
    lxw_worksheet *sheet = workbook_add_worksheet(b->file.book, t->name);
    const size_t rows = cfg_table_rows(t);
    if (sheet == NULL)
        return ms_no_memory(err);
    if (rows > SHEET_ROWS)
        return ms_fail(err, MS_E_LIMIT, "%zu rows of %s; a sheet holds %d", rows, t->name,
                       SHEET_ROWS);
    lxw_error e = put_header(sheet, t->header);
    for (size_t i = 0; i < rows && e == LXW_NO_ERROR; i++) {
        for (unsigned c = 0; c < t->columns && e == LXW_NO_ERROR; c++)
            e = put_cell(b, sheet, (lxw_row_t)i + 1, (lxw_col_t)c, t->cells.p[i * t->columns + c]);
    }
    return e == LXW_NO_ERROR ? MS_OK : ms_fail(err, MS_E_IO, "xlsx: %s", lxw_strerror(e));
}

static enum ms_rc write_book(const struct cfg_result *r, const char *path, struct ms_err *err)
{
    struct book b = {.scratch = {.max = 1 << 20}, .text = {.max = 1 << 20}};
    MS_TRY(cmp__workbook_open(&b.file, path, err));
    enum ms_rc rc = put_summary(&b, r, err);
    for (size_t i = 0; rc == MS_OK && i < r->tables.n; i++)
        rc = put_table(&b, &r->tables.p[i], err);
    ms_buf_free(&b.scratch);
    ms_buf_free(&b.text);
    return cmp__workbook_close(&b.file, rc, err);
}

enum ms_rc cfg_result_write(const struct cfg_result *r, const char *dir, struct ms_err *err)
{
    static const char *const names[] = {"bench", "cmp"};
    for (int side = 0; side < 2; side++) {
        char *inner = ms_path_join(dir, names[side]);
        if (inner == NULL)
            return ms_no_memory(err);
        const enum ms_rc rc = cfg_zip_extract(&r->sides.zip[side], inner, err);
        ms_free(inner);
        MS_TRY(rc);
    }
    char *path = ms_path_join(dir, "result.xlsx");
    if (path == NULL)
        return ms_no_memory(err);
    const enum ms_rc rc = write_book(r, path, err);
    ms_free(path);
    return rc;
}
