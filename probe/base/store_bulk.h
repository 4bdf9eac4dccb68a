/* SPDX-License-Identifier: MIT
 *
 * store_bulk: inserts many rows of numbers into one table. Running a statement costs more than
 * adding a row to it, so one statement inserts many buffered rows.
 *
 *     ms_bulk_new(&b, store, "INSERT INTO t VALUES", "(?,?)", 2, err)
 *     ms_bulk_row(b, column, err) ..          MS_BULK_NULL: NULL
 *     ms_bulk_flush(b, err)                   what is left
 *     ms_bulk_free(b)
 */
#ifndef PROBE_BASE_STORE_BULK_H
#define PROBE_BASE_STORE_BULK_H

#include "probe/base/store.h"

#define MS_BULK_NULL INT64_MIN

struct ms_bulk;

/* Creates a bulk insert. row: the expressions of one row with a question mark for each column. */
enum ms_rc ms_bulk_new(struct ms_bulk **b, struct ms_store *s, const char *insert, const char *row,
                       unsigned columns, struct ms_err *err) MS_MUST_USE;
enum ms_rc ms_bulk_row(struct ms_bulk *b, const int64_t *column, struct ms_err *err) MS_MUST_USE;
enum ms_rc ms_bulk_flush(struct ms_bulk *b, struct ms_err *err) MS_MUST_USE;
/* Frees b and drops rows that were not flushed; NULL is fine. */
void ms_bulk_free(struct ms_bulk *b);

#endif
