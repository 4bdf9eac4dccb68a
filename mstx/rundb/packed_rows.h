/* SPDX-License-Identifier: MIT
 *
 * packed_rows: rows of whole numbers, packed column by column: many rows of run.db in one blob.
 *
 *     u8 version (1)     u8 columns     varint rows
 *     head of each column
 *         0  zigzag first, zigzag step                 each number is the previous one + step
 *         1  zigzag least, varint span, varint bytes   zigzag differences from the one before
 *         2  as 1                                      as 1, for columns that contain NULL
 *     the bodies of the columns of kind 1 and 2, concatenated
 *
 * A column that is constant or counts up takes three bytes.  The heads give the range of each
 * column, so a search skips blobs that cannot hold matching rows, and columns that are not
 * requested are not unpacked.
 */
#ifndef MSTX_RUNDB_PACKED_ROWS_H
#define MSTX_RUNDB_PACKED_ROWS_H

#include "probe/base/assert.h"
#include "probe/base/str.h"

/* The stride of columns is a little more than a power of two, so that the cells of a row do not
 * fall into the same cache set: bench_cluster, 1,024 ranks, 3.4 -> 2.7 s together with levels that
 * skip shifts. */
enum { MSTX_ROWS_MAX = 4096, MSTX_ROWS_COLUMNS = 24, MSTX_ROWS_APART = MSTX_ROWS_MAX + 8 };
#define MSTX_ROWS_NULL INT64_MIN
static inline int64_t mstx_rows_known(bool known, int64_t v)
{
    return known ? v : MSTX_ROWS_NULL;
}

/* Rows to be packed: fill the cells of row n, then increment n; pack at MSTX_ROWS_MAX rows at the
 * latest. */
struct mstx_rows_out {
    unsigned columns;
    uint32_t n;
    int64_t *cell;
    struct ms_buf packed; /* valid until the next mstx__rows_pack */
};
enum ms_rc mstx__rows_out_new(struct mstx_rows_out *r, unsigned columns,
                              struct ms_err *err) MS_MUST_USE;
void mstx__rows_out_free(struct mstx_rows_out *r);
static inline void mstx__rows_put(struct mstx_rows_out *r, unsigned column, int64_t v)
{
    ms_assert(column < r->columns && r->n < MSTX_ROWS_MAX);
    r->cell[column * MSTX_ROWS_APART + r->n] = v;
}
/* Packs the rows, at least one, into r->packed and sets n to 0. */
enum ms_rc mstx__rows_pack(struct mstx_rows_out *r, struct ms_err *err) MS_MUST_USE;

struct mstx_rows;
/* Unpacks columns of folded blobs (fold_read.h): all rows of a column, which takes all of the bytes. */
struct mstx_folded_columns {
    enum ms_rc (*read)(const struct mstx_folded_columns *from, struct mstx_rows *rows,
                       struct ms_str bytes, int64_t *cell, struct ms_err *err);
};

/* Rows of a packed blob, which may be untrusted. */
struct mstx_rows {
    const struct mstx_folded_columns *folded; /* NULL after mstx__rows_new: there are none */
    unsigned columns;
    uint32_t n;
    struct {
        int64_t low, high; /* of the cells that are not NULL; low > high: all are NULL */
        const uint8_t *at, *end;
        uint8_t kind;
        bool is_known; /* its cells are unpacked */
    } column[MSTX_ROWS_COLUMNS];
    int64_t *cell;
};
enum ms_rc mstx__rows_new(struct mstx_rows *r, struct ms_err *err) MS_MUST_USE;
void mstx__rows_free(struct mstx_rows *r);
/* Reads the heads of the columns of a blob.  The blob must stay valid while its columns are
 * read. */
enum ms_rc mstx__rows_look(struct mstx_rows *r, struct ms_str blob, unsigned columns,
                           struct ms_err *err) MS_MUST_USE;
/* Returns the n cells of a column, unpacking them when needed; NULL when the column is damaged. */
const int64_t *mstx__rows_column(struct mstx_rows *r, unsigned column, struct ms_err *err);

#endif
