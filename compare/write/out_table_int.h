/* SPDX-License-Identifier: MIT
 *
 * out_table_int: how many rows the parts of a table have.
 */
#ifndef COMPARE_WRITE_OUT_TABLE_INT_H
#define COMPARE_WRITE_OUT_TABLE_INT_H

#include <stddef.h>

/* Only tests change these bounds, since a table that reaches them takes minutes to write. */
extern struct cmp__table_bounds {
    size_t block_rows; /* rows that a thread makes at once */
    size_t part_rows;  /* rows of a csv file */
    size_t sheet_rows; /* rows of a sheet of a workbook */
} cmp__table_bounds;

#endif
