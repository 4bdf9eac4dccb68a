/* SPDX-License-Identifier: MIT
 *
 * packed_index: see the header.
 */
#include "mstx/rundb/packed_index.h"

enum ms_rc mstx__packed_index_add(struct mstx_packed_index *x, size_t place, int64_t id,
                                  const struct mstx_rows *rows, struct ms_err *err)
{
    ms_assert(place <= x->blobs.n && rows->columns <= MSTX_ROWS_COLUMNS);
    if (place < x->blobs.n)
        return MS_OK;
    struct mstx_packed_ranges *r = ms_vec_push(&x->blobs);
    if (r == NULL)
        return ms_no_memory(err);
    r->id = id;
    for (unsigned i = 0; i < rows->columns; i++) {
        r->low[i] = rows->column[i].low;
        r->high[i] = rows->column[i].high;
    }
    return MS_OK;
}

void mstx__packed_index_free(struct mstx_packed_index *x)
{
    ms_vec_free(&x->blobs);
}
