/* SPDX-License-Identifier: MIT
 *
 * xlsx_read: the rows of a workbook, one after the other.
 *
 * Only values are read: no formats, no dates, no formulas (of a formula, the value that
 * was stored with it).  Memory holds the shared strings and one row.
 */
#ifndef COMPARE_WRITE_XLSX_READ_H
#define COMPARE_WRITE_XLSX_READ_H

#include "probe/base/str.h"

struct cmp_xlsx_cell {
    struct ms_str text; /* empty where there is no cell */
    bool number;        /* text is one */
};
struct cmp_xlsx_row {
    const struct cmp_xlsx_cell *cells;
    size_t n;
    uint32_t sheet; /* from 0 */
    uint32_t row;   /* in the sheet, from 1 */
};

/* Text is valid during the call.  A failure ends the reading and is returned. */
typedef enum ms_rc (*cmp_xlsx_fn)(void *ctx, const struct cmp_xlsx_row *row, struct ms_err *err);

/* All sheets in the order of their numbers. */
enum ms_rc cmp_xlsx_read(const char *path, cmp_xlsx_fn fn, void *ctx,
                         struct ms_err *err) MS_MUST_USE;
/* The same of bytes in memory; name stands for the path. */
enum ms_rc cmp_xlsx_parse(const char *name, const char *p, size_t n, cmp_xlsx_fn fn, void *ctx,
                          struct ms_err *err) MS_MUST_USE;

#endif
