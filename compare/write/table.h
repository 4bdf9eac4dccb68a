/* SPDX-License-Identifier: MIT
 *
 * table: the columns of a comparison and the cells of a row, for every writer.
 */
#ifndef COMPARE_TABLE_H
#define COMPARE_TABLE_H

#include "compare/compare.h"

enum { CMP_COLUMNS = 48 };

struct cmp_cell {
    struct ms_str text;
    bool number;   /* text is one that a spreadsheet should take as a number: v */
    bool truth;    /* text is True or False, which a spreadsheet should take as such: v is 1 or 0 */
    bool infinite; /* an infinity among numbers, which csv shows with a space before it */
    bool foreign;  /* text out of a dump: it may look like a formula */
    double v;
};

/* Names of the columns in order; returns how many. */
unsigned cmp_table_columns(const struct cmp *c, const char *names[CMP_COLUMNS]);
/* Cells of a row of the view; text lives as long as the view's arena. */
enum ms_rc cmp_table_cells(const struct cmp *c, struct cmp_view *v, size_t row,
                           struct cmp_cell cells[CMP_COLUMNS], struct ms_err *err) MS_MUST_USE;
/* The notes of a row as the JSON list of Err_message. */
enum ms_rc cmp_table_notes(const struct cmp *c, struct cmp_view *v, const struct cmp_row *row,
                           struct ms_str *out, struct ms_err *err) MS_MUST_USE;
/* A cell as csv has it, quoted where it must be. */
void cmp_csv_cell(struct ms_buf *out, const struct cmp_cell *cell);
/* Would a spreadsheet take the text, or what stands behind a semicolon in it, for a formula?  Where
 * semicolons are between columns it does. */
bool cmp_is_formula(struct ms_str text);
/* Does the text begin as formulas do?  Full-width signs count. */
bool cmp_begins_formula(struct ms_str text);

#endif
