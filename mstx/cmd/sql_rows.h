/* SPDX-License-Identifier: MIT
 *
 * sql_rows: prints the rows of a statement to standard output.
 */
#ifndef MSTX_CMD_SQL_ROWS_H
#define MSTX_CMD_SQL_ROWS_H

#include "probe/base/store.h"

/* A line of names, then a line for each row, with tabs between columns. */
enum ms_rc mstx__sql_print_text(struct ms_stmt *st, struct ms_err *err) MS_MUST_USE;
/* An array of objects. */
enum ms_rc mstx__sql_print_json(struct ms_stmt *st, struct ms_err *err) MS_MUST_USE;
/* What the SQL box of a viewer reads: columns, at most `most` rows with long texts cut, and whether
 * there are more. */
enum ms_rc mstx__sql_print_box(struct ms_stmt *st, int64_t most, struct ms_err *err) MS_MUST_USE;

#endif
