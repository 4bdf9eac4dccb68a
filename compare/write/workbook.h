/* SPDX-License-Identifier: MIT
 *
 * workbook: a .xlsx that appears complete or not at all.
 */
#ifndef COMPARE_WRITE_WORKBOOK_H
#define COMPARE_WRITE_WORKBOOK_H

#include "probe/base/str.h"

#include <xlsxwriter.h>

struct cmp__workbook {
    lxw_workbook *book; /* rows are written in order: none of them is kept */
    int fd;
    char *tmp;        /* where it is written; see ms_tmp_open */
    char *folder;     /* of its temporary files */
    const char *path; /* kept: lives as long as this */
};

enum ms_rc cmp__workbook_open(struct cmp__workbook *w, const char *path,
                              struct ms_err *err) MS_MUST_USE;
/* rc: how writing went; unless it is MS_OK the file is thrown away.  Returns rc, or why the file
 * could not be finished. */
enum ms_rc cmp__workbook_close(struct cmp__workbook *w, enum ms_rc rc, struct ms_err *err);

/* Text as far as a cell can hold it; scratch is used. */
lxw_error cmp__workbook_text(lxw_worksheet *sheet, lxw_row_t row, lxw_col_t column, struct ms_str s,
                             lxw_format *format, struct ms_buf *scratch);

#endif
