/* SPDX-License-Identifier: MIT
 *
 * Any bytes as packed rows: they are refused, or have rows whose cells lie within what the heads tell
 * of their column or are NULL, and which packed again read the same.
 */
#include "mstx/rundb/packed_rows.h"

#include <assert.h>
#include <string.h>

enum { COLUMNS = 3 };

static void read_again(struct mstx_rows *rows, const struct mstx_rows *first)
{
    struct mstx_rows_out out;
    struct ms_err err = {0};
    enum ms_rc rc = mstx__rows_out_new(&out, COLUMNS, &err);
    assert(rc == MS_OK);
    for (; out.n < first->n; out.n++) {
        for (unsigned c = 0; c < COLUMNS; c++)
            mstx__rows_put(&out, c, first->cell[c * MSTX_ROWS_APART + out.n]);
    }
    rc = mstx__rows_pack(&out, &err);
    assert(rc == MS_OK);
    rc = mstx__rows_look(rows, ms_buf_slice(&out.packed), COLUMNS, &err);
    assert(rc == MS_OK && rows->n == first->n);
    for (unsigned c = 0; c < COLUMNS; c++) {
        const int64_t *cell = mstx__rows_column(rows, c, &err);
        assert(cell != NULL);
        assert(memcmp(cell, &first->cell[c * MSTX_ROWS_APART], rows->n * sizeof *cell) == 0);
        for (uint32_t i = 0; i < rows->n; i++)
            assert(cell[i] == MSTX_ROWS_NULL ||
                   (cell[i] >= rows->column[c].low && cell[i] <= rows->column[c].high));
    }
    mstx__rows_out_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mstx_rows rows, again;
    struct ms_err err = {0};
    bool ok = true;
    enum ms_rc rc = mstx__rows_new(&rows, &err);
    assert(rc == MS_OK);
    rc = mstx__rows_new(&again, &err);
    assert(rc == MS_OK);
    const struct ms_str blob = {(const char *)data, (uint32_t)size};
    if (mstx__rows_look(&rows, blob, COLUMNS, &err) == MS_OK) {
        for (unsigned c = 0; c < COLUMNS; c++)
            ok &= mstx__rows_column(&rows, c, &err) != NULL;
        if (ok)
            read_again(&again, &rows);
    }
    assert((err.rc == MS_OK) == (ok && rows.n != 0));
    mstx__rows_free(&rows);
    mstx__rows_free(&again);
    return 0;
}
