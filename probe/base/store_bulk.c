/* SPDX-License-Identifier: MIT
 *
 * store_bulk: inserts many rows of whole numbers with one statement.
 */
#include "probe/base/store_bulk.h"

#include "probe/base/mem.h"

enum { TOGETHER = 32 }; /* rows per statement; more gain little */

struct ms_bulk {
    struct ms_stmt *many, *one; /* statements for TOGETHER rows and for one */
    unsigned columns, n;        /* n: rows buffered */
    int64_t cell[];             /* row by row */
};

static enum ms_rc prepare(struct ms_store *s, struct ms_stmt **st, const char *insert,
                          const char *row, unsigned rows, struct ms_err *err)
{
    struct ms_buf sql = {.max = 1 << 16};
    ms_buf_puts(&sql, insert);
    for (unsigned i = 0; i < rows; i++) {
        ms_buf_puts(&sql, i != 0 ? "," : " ");
        ms_buf_puts(&sql, row);
    }
    enum ms_rc rc = ms_buf_check(&sql, err);
    if (rc == MS_OK)
        rc = ms_store_prepare(s, st, ms_buf_z(&sql), err);
    ms_buf_free(&sql);
    return rc;
}

enum ms_rc ms_bulk_new(struct ms_bulk **out, struct ms_store *s, const char *insert,
                       const char *row, unsigned columns, struct ms_err *err)
{
    struct ms_bulk *b = ms_calloc(1, sizeof *b + TOGETHER * columns * sizeof *b->cell);
    *out = NULL;
    if (b == NULL)
        return ms_no_memory(err);
    b->columns = columns;
    enum ms_rc rc = prepare(s, &b->many, insert, row, TOGETHER, err);
    if (rc == MS_OK)
        rc = prepare(s, &b->one, insert, row, 1, err);
    if (rc == MS_OK)
        *out = b;
    else
        ms_bulk_free(b);
    return rc;
}

void ms_bulk_free(struct ms_bulk *b)
{
    if (b == NULL)
        return;
    ms_stmt_free(b->many);
    ms_stmt_free(b->one);
    ms_free(b);
}

static enum ms_rc run_with_cells(struct ms_stmt *st, const int64_t *cell, unsigned n,
                                 struct ms_err *err)
{
    for (unsigned i = 0; i < n; i++) {
        if (cell[i] != MS_BULK_NULL)
            ms_stmt_i64(st, (int)i + 1, cell[i]);
        else
            ms_stmt_null(st, (int)i + 1);
    }
    return ms_stmt_run(st, err);
}

enum ms_rc ms_bulk_row(struct ms_bulk *b, const int64_t *column, struct ms_err *err)
{
    memcpy(b->cell + (size_t)b->n * b->columns, column, b->columns * sizeof *column);
    if (++b->n < TOGETHER)
        return MS_OK;
    b->n = 0;
    return run_with_cells(b->many, b->cell, TOGETHER * b->columns, err);
}

enum ms_rc ms_bulk_flush(struct ms_bulk *b, struct ms_err *err)
{
    const unsigned rows = b->n;
    b->n = 0;
    for (unsigned i = 0; i < rows; i++)
        MS_TRY(run_with_cells(b->one, b->cell + (size_t)i * b->columns, b->columns, err));
    return MS_OK;
}
