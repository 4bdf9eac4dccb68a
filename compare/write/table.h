/* SPDX-License-Identifier: MIT
 *
 * table: the columns of a comparison and the cells of a row, for every writer.
 */
#ifndef COMPARE_WRITE_TABLE_H
#define COMPARE_WRITE_TABLE_H

#include "compare/compare.h"
#include "compare/table/comparison.h"

enum { CMP_COLUMNS = 48 };

struct cmp_cell {
    struct ms_str text;
    bool number; /* text is a number, which a spreadsheet should store as v */
    /* text is True or False, which a spreadsheet should store as a truth value; v is 1 or 0 */
    bool truth;
    bool infinite; /* an infinity in a column of numbers, which csv shows with a leading space */
    bool foreign;  /* text from a dump, written with MS_CSV_FOREIGN */
    double v;
};

/* Lists the names of the columns in order and returns their number. */
unsigned cmp_table_columns(const struct cmp_setup *set, bool has_stack,
                           const char *names[CMP_COLUMNS]);
/* Makes the cells of a row of the view; their text lives as long as the view's arena. */
/* c is NULL for rows without a comparison, which have no stacks and no extended columns. */
enum ms_rc cmp_table_cells(const struct cmp_setup *set, const struct cmp *c, struct cmp_view *v,
                           size_t row, struct cmp_cell cells[CMP_COLUMNS],
                           struct ms_err *err) MS_MUST_USE;
/* Writes the notes of a row as the JSON list of Err_message. */
enum ms_rc cmp_table_notes(struct cmp_view *v, const struct cmp_row *row, struct ms_str *out,
                           struct ms_err *err) MS_MUST_USE;

#endif
