/* SPDX-License-Identifier: MIT
 *
 * packed_index: ranges of the columns of each packed blob, kept in memory.
 *
 * The heads of a blob give the range of each column, but SQLite reads a whole blob to return its
 * head.  The first full scan of a table fills the index; later queries fetch only the blobs that
 * may hold matching rows.
 */
#ifndef MSTX_RUNDB_PACKED_INDEX_H
#define MSTX_RUNDB_PACKED_INDEX_H

#include "mstx/rundb/packed_rows.h"

#include "probe/base/vec.h"

struct mstx_packed_ranges { /* the ranges of one blob */
    int64_t id;
    int64_t low[MSTX_ROWS_COLUMNS], high[MSTX_ROWS_COLUMNS];
};
struct mstx_packed_index {
    MS_VEC(struct mstx_packed_ranges) blobs; /* ascending by id */
    bool is_complete;
};

/* Adds the blob that a scan read as number `place`, unless another scan has added it. */
enum ms_rc mstx__packed_index_add(struct mstx_packed_index *x, size_t place, int64_t id,
                                  const struct mstx_rows *rows, struct ms_err *err) MS_MUST_USE;
void mstx__packed_index_free(struct mstx_packed_index *x);

#endif
