/* SPDX-License-Identifier: MIT
 *
 * sheet_rows: the rows of a table, sorted and filtered: one that a comparison wrote (.csv or .xlsx), or one that is made
 * of what was opened (sheet_made).
 *
 * A row is kept as its place in the text and read when it is shown, so that a million rows take some megabytes beside
 * the text.
 */
#ifndef VIZ_MODEL_SHEET_ROWS_H
#define VIZ_MODEL_SHEET_ROWS_H

#include "probe/base/csv.h"

struct viz_sheet;

/* What rows are asked for, in which order. */
struct viz_sheet_asked {
    struct ms_str text; /* part of a row, ignoring case; "": every row */
    int column;         /* sorts by this column; -1: the order of the file */
    bool descending;
    bool failing; /* rows whose result is a warning or an error */
};

enum ms_rc viz_sheet_open(struct viz_sheet **s, const char *path, struct ms_err *err) MS_MUST_USE;
/* Takes the text of a csv and its memory, in any case. */
enum ms_rc viz_sheet_take(struct viz_sheet **s, struct ms_buf *csv, struct ms_err *err) MS_MUST_USE;
void viz_sheet_free(struct viz_sheet *s);
size_t viz_sheet_rows(const struct viz_sheet *s);
size_t viz_sheet_columns(const struct viz_sheet *s);
struct ms_str viz_sheet_title(const struct viz_sheet *s, size_t column);

/* Calls fn for rows `first` to `first + limit` of what is asked for, under a lock; *total: how many there are. state:
 * "error", "warning", "pass" or "none". The fields are valid during the call. */
typedef enum ms_rc (*viz_sheet_fn)(void *ctx, size_t i, const char *state,
                                   const struct ms_str *fields, size_t n, struct ms_err *err);
enum ms_rc viz_sheet_read(struct viz_sheet *s, const struct viz_sheet_asked *a, size_t first,
                          size_t limit, size_t *total, viz_sheet_fn fn, void *ctx,
                          struct ms_err *err) MS_MUST_USE;

#endif
