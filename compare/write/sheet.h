/* SPDX-License-Identifier: MIT
 *
 * sheet: a table written row by row, as csv or as a workbook, and the counts of tables that
 * do not come from dump.json.
 *
 *     cmp__sheet_open(&s, path, xlsx, &err);
 *     cmp__sheet_names(&s, names);
 *     cmp__sheet_end_row(&s);  cmp__sheet_text(&s, text);  ...
 *     rc = cmp__sheet_close(&s, rc);
 *
 * A failure is kept until cmp__sheet_close, so the calls in between need no check.
 */
#ifndef COMPARE_WRITE_SHEET_H
#define COMPARE_WRITE_SHEET_H

#include "compare/write/table.h"
#include "probe/base/arena.h"
#include "probe/base/io.h"
#include "probe/base/str.h"

#include <xlsxwriter.h>

struct cmp__workbook {
    lxw_workbook *book; /* rows are written in order and none is kept in memory */
    int fd;
    char *tmp;        /* path of the temporary file; see ms_tmp_open */
    char *folder;     /* directory of its temporary files */
    const char *path; /* borrowed; must outlive the workbook */
};

enum ms_rc cmp__workbook_open(struct cmp__workbook *w, const char *path,
                              struct ms_err *err) MS_MUST_USE;
/* Closes the workbook; rc is the result of writing. Unless rc is MS_OK the file is deleted. Returns
 * rc, or the reason why the file could not be completed. */
enum ms_rc cmp__workbook_close(struct cmp__workbook *w, enum ms_rc rc, struct ms_err *err);

/* Writes text, cut to the length that a cell can hold; overwrites scratch. */
lxw_error cmp__workbook_text(lxw_worksheet *sheet, lxw_row_t row, lxw_col_t column, struct ms_str s,
                             lxw_format *format, struct ms_buf *scratch);

struct cmp_sheet_sum {
    uint64_t rows, yes, no, rest; /* rest: without a verdict */
    size_t tables;
    MS_VEC(char *) notes; /* remarks for the user, one line each */
};
void cmp_sheet_sum_free(struct cmp_sheet_sum *sum);
enum ms_rc cmp__sheet_note(struct cmp_sheet_sum *sum, struct ms_buf *text, struct ms_err *err);
/* Counts a row; a verdict other than "Yes" and "No" counts as rest. */
void cmp__sheet_count(struct cmp_sheet_sum *sum, const char *verdict);

struct cmp__sheet {
    struct cmp_cell cell[CMP_COLUMNS];
    unsigned n;
    struct ms_arena *arena; /* text of the row */
    struct ms_buf text;
    struct ms_out *csv;
    struct cmp__workbook book;
    lxw_worksheet *sheet;
    lxw_row_t row;
    enum ms_rc rc;
    struct ms_err *err;
};

/* Opens a sheet; path must outlive it. */
enum ms_rc cmp__sheet_open(struct cmp__sheet *s, const char *path, bool xlsx, struct ms_err *err);
void cmp__sheet_text(struct cmp__sheet *s, struct ms_str text); /* text from a dump */
void cmp__sheet_word(struct cmp__sheet *s, const char *text);   /* text of msprobe */
/* NaN is written as the text "nan" */
void cmp__sheet_number(struct cmp__sheet *s, double v);
void cmp__sheet_blanks(struct cmp__sheet *s, unsigned n, const char *word);
void cmp__sheet_names(struct cmp__sheet *s, const char *const *names); /* ends with NULL */
/* Copies text for a cell; the text of a cell must live until cmp__sheet_end_row. */
struct ms_str cmp__sheet_keep(struct cmp__sheet *s, struct ms_str text);
void cmp__sheet_end_row(struct cmp__sheet *s);
/* Closes the sheet. The file is published only if rc, the caller's result, and all writes are
 * MS_OK. */
enum ms_rc cmp__sheet_close(struct cmp__sheet *s, enum ms_rc rc);

/* Writes a cell for csv, quoted if necessary. */
void cmp_csv_cell(struct ms_buf *out, const struct cmp_cell *cell);

#endif
