/* SPDX-License-Identifier: MIT
 *
 * workbook: a .xlsx that appears complete or not at all.
 */
#ifndef COMPARE_WRITE_WORKBOOK_H
#define COMPARE_WRITE_WORKBOOK_H

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

#endif
