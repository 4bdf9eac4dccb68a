/* SPDX-License-Identifier: MIT
 *
 * xlsx_read: reads a workbook row by row.
 *
 * Only values are read: no formats or dates, and of a formula the value that was stored with
 * it. Memory holds the shared strings and one row.
 */
#ifndef COMPARE_WRITE_XLSX_READ_H
#define COMPARE_WRITE_XLSX_READ_H

#include "probe/base/str.h"

struct cmp_xlsx_cell {
    struct ms_str text; /* empty where there is no cell */
    bool number;        /* text is a number */
};
struct cmp_xlsx_row {
    const struct cmp_xlsx_cell *cells;
    size_t n;
    uint32_t sheet; /* from 0 */
    uint32_t row;   /* in the sheet, from 1 */
};

/* Receives a row; its text is valid during the call. A failure ends the reading and is returned. */
typedef enum ms_rc (*cmp_xlsx_fn)(void *ctx, const struct cmp_xlsx_row *row, struct ms_err *err);

/* Reads all sheets in the order of their numbers. */
enum ms_rc cmp_xlsx_read(const char *path, cmp_xlsx_fn fn, void *ctx,
                         struct ms_err *err) MS_MUST_USE;
/* Reads a workbook in memory; name is used in messages instead of a path. */
enum ms_rc cmp_xlsx_parse(const char *name, const char *p, size_t n, cmp_xlsx_fn fn, void *ctx,
                          struct ms_err *err) MS_MUST_USE;

#endif
