/* SPDX-License-Identifier: MIT
 *
 * out_xlsx: writes a comparison as a workbook, row by row, without keeping rows in memory.
 *
 * Rows are coloured by their verdict. The header row is frozen.
 */
#include "compare/table/comparison.h"
#include "compare/write/out.h"
#include "compare/write/table.h"
#include "compare/write/workbook.h"
#include "probe/base/trace.h"

#include <stdio.h>

enum { SHEET_ROWS = 1048500, RENEW_ROWS = 1024 };

struct book {
    const struct cmp *c;
    const char *const *names;
    unsigned columns;
    lxw_workbook *workbook;
    lxw_worksheet *sheet;
    lxw_format *bold, *fill[CMP_LEVELS], *colour[CMP_RED + 1];
    size_t sheets, sheet_rows; /* number of sheets, and rows in each */
    lxw_row_t row;
    size_t sheet_no;
    struct ms_buf text;
};

static lxw_format *filled(lxw_workbook *w, lxw_color_t colour)
{
    lxw_format *f = workbook_add_format(w);
    if (f != NULL)
        format_set_bg_color(f, colour);
    return f;
}

/* Returns the fill colour of a row's verdict. msprobe 1.x has its own rules for colours and applies
 * them only with highlight. */
static lxw_format *fill_of(const struct book *b, const struct cmp_view *v,
                           const struct cmp_row *row)
{
    const struct cmp_rules *rules = b->c->set.conf.rules;
    if (rules->colour_row == NULL)
        return b->fill[row->level];
    return b->c->set.conf.highlight ? b->colour[rules->colour_row(&b->c->set, v, row, NULL)] : NULL;
}

/* msprobe 1.x gives the sheet this name in a workbook with colours. */
static const char *only_sheet(const struct book *b)
{
    return b->c->set.conf.highlight ? "Sheet" : "Sheet1";
}

static void new_sheet(struct book *b)
{
    char name[32];
    snprintf(name, sizeof name, "part_%zu", b->sheet_no++);
    b->sheet = workbook_add_worksheet(b->workbook, b->sheets > 1 ? name : only_sheet(b));
    b->row = 0;
    if (b->sheet == NULL)
        return;
    for (unsigned i = 0; i < b->columns; i++)
        worksheet_write_string(b->sheet, 0, (lxw_col_t)i, b->names[i], b->bold);
    worksheet_freeze_panes(b->sheet, 1, 0);
    b->row = 1;
}

/* Returns the text of a cell. In a workbook with colours msprobe 1.x adds a tab to inf and nan. */
static struct ms_str text_of(const struct book *b, const struct cmp_cell *cell)
{
    static const char *const words[][2] = {{"inf", "inf\t"}, {"-inf", "-inf\t"}, {"nan", "nan\t"}};
    for (unsigned i = 0; i < 3 && b->c->set.conf.highlight; i++) {
        if (ms_str_is(cell->text, words[i][0]))
            return ms_str_of(words[i][1]);
    }
    return cell->text;
}

static lxw_error put_cell(struct book *b, lxw_col_t column, const struct cmp_cell *cell,
                          lxw_format *f)
{
    if (cell->number)
        return worksheet_write_number(b->sheet, b->row, column, cell->v, f);
    if (cell->truth)
        return worksheet_write_boolean(b->sheet, b->row, column, cell->v != 0, f);
    return cmp__workbook_text(b->sheet, b->row, column, text_of(b, cell), f, &b->text);
}

static enum ms_rc put_row(struct book *b, const struct cmp_cell *cells, lxw_format *f,
                          struct ms_err *err)
{
    if (b->sheet == NULL || b->row > b->sheet_rows)
        new_sheet(b);
    if (b->sheet == NULL)
        return ms_no_memory(err);
    for (unsigned i = 0; i < b->columns; i++) {
        lxw_error e = put_cell(b, (lxw_col_t)i, &cells[i], f);
        if (e != LXW_NO_ERROR)
            return ms_fail(err, e == LXW_ERROR_MEMORY_MALLOC_FAILED ? MS_E_NOMEM : MS_E_IO,
                           "xlsx: %s", lxw_strerror(e));
    }
    b->row++;
    return ms_buf_check(&b->text, err);
}

static enum ms_rc put_group(struct book *b, struct cmp_view *v, struct ms_err *err)
{
    struct cmp_cell cells[CMP_COLUMNS];
    for (size_t i = 0; i < v->rows.n; i++) {
        MS_TRY(cmp_table_cells(&b->c->set, b->c, v, i, cells, err));
        MS_TRY(put_row(b, cells, fill_of(b, v, &v->rows.p[i]), err));
    }
    return MS_OK;
}

static enum ms_rc put_all(struct book *b, struct cmp_summary *sum, struct ms_err *err)
{
    struct cmp_view v;
    MS_TRY(cmp_view_init(&v, err));
    v.values = b->c->values;
    enum ms_rc rc = MS_OK;
    size_t since = 0;
    new_sheet(b);
    for (size_t g = 0; g < cmp_groups(b->c) && rc == MS_OK; g++) {
        if ((since += cmp_group_rows(b->c, g)) > RENEW_ROWS) {
            rc = cmp_view_renew(&v, err);
            since = 0;
            cmp__report_written(b->c, g);
        }
        if (rc == MS_OK)
            rc = cmp_view_group(b->c, g, &v, err);
        if (rc == MS_OK) {
            cmp_summary_add(sum, b->c, g, &v);
            rc = put_group(b, &v, err);
        }
    }
    cmp__report_written(b->c, cmp_groups(b->c));
    cmp_view_free(&v);
    return rc;
}

static void take_formats(struct book *b)
{
    lxw_workbook *w = b->workbook;
    b->bold = workbook_add_format(w);
    if (b->bold != NULL)
        format_set_bold(b->bold);
    b->fill[CMP_WARNING] = filled(w, 0xfff2b3);
    b->fill[CMP_ERROR] = filled(w, 0xf8c4c0);
    b->fill[CMP_UNMATCHED] = filled(w, 0xe0e0e0);
    b->colour[CMP_YELLOW] = filled(w, 0xffff00);
    b->colour[CMP_RED] = filled(w, 0xff0000);
}

static enum ms_rc write_book(struct book *b, const char *path, struct cmp_summary *sum,
                             struct ms_err *err)
{
    struct cmp__workbook file;
    MS_TRY(cmp__workbook_open(&file, path, err));
    b->workbook = file.book;
    take_formats(b);
    enum ms_rc rc = put_all(b, sum, err);
    return cmp__workbook_close(&file, rc, err);
}

enum ms_rc cmp_write_xlsx(const struct cmp *c, const char *stem, struct cmp_summary *sum,
                          struct cmp_files *files, struct ms_err *err)
{
    const char *names[CMP_COLUMNS];
    struct book b = {.c = c, .names = names, .text.max = 1 << 24};
    struct ms_buf path = {.max = 1 << 16};
    struct ms_span span = ms_span_begin("write xlsx");
    b.columns = cmp_table_columns(&c->set, cmp_has_stack(c), names);
    b.sheets = (cmp_rows(c) + SHEET_ROWS - 1) / SHEET_ROWS;
    b.sheet_rows = b.sheets > 1 ? (cmp_rows(c) + b.sheets - 1) / b.sheets : SHEET_ROWS;
    ms_buf_printf(&path, "%s.xlsx", stem);
    enum ms_rc rc = cmp_files_add(files, ms_buf_slice(&path), err);
    if (rc == MS_OK)
        rc = write_book(&b, ms_buf_z(&path), sum, err);
    ms_buf_free(&b.text);
    ms_buf_free(&path);
    ms_span_end(&span);
    return rc;
}
