/* SPDX-License-Identifier: MIT
 *
 * packed_rows: rows of whole numbers, packed column by column: many rows of run.db in one blob.
 *
 *     u8 version (1)     u8 columns     varint rows
 *     head of each column
 *         0  zigzag first, zigzag step                 each is `step` more than the one before
 *         1  zigzag least, varint span, varint bytes   zigzag differences from the one before
 *         2  as 1                                      the same of numbers among which some are NULL
 *     the columns of kind 1 and 2, one behind the other
 *
 * A column that is the same all along, or that counts, takes three bytes.  The heads tell which numbers
 * lie where, so a search passes over what cannot hold its rows, and a column that nobody asks for is
 * not unpacked.
 */
#ifndef MSTX_RUNDB_PACKED_ROWS_H
#define MSTX_RUNDB_PACKED_ROWS_H

#include "probe/base/assert.h"
#include "probe/base/str.h"

/* Columns lie a little more than a power of two apart, so that the cells of a row do not share a set of
 * the cache: bench_cluster, 1,024 ranks, 3.4 -> 2.7 s together with levels that pass over widths. */
enum { MSTX_ROWS_MAX = 4096, MSTX_ROWS_COLUMNS = 24, MSTX_ROWS_APART = MSTX_ROWS_MAX + 8 };
#define MSTX_ROWS_NULL INT64_MIN

/* What is written: fill cells of row n, then n++; pack at MSTX_ROWS_MAX at the latest. */
struct mstx_rows_out {
    unsigned columns;
    uint32_t n;
    int64_t *cell;
    struct ms_buf packed; /* until the next call */
};
enum ms_rc mstx__rows_out_new(struct mstx_rows_out *r, unsigned columns,
                              struct ms_err *err) MS_MUST_USE;
void mstx__rows_out_free(struct mstx_rows_out *r);
static inline void mstx__rows_put(struct mstx_rows_out *r, unsigned column, int64_t v)
{
    ms_assert(column < r->columns && r->n < MSTX_ROWS_MAX);
    r->cell[column * MSTX_ROWS_APART + r->n] = v;
}
/* At least one row; none afterwards. */
enum ms_rc mstx__rows_pack(struct mstx_rows_out *r, struct ms_err *err) MS_MUST_USE;

/* What is read.  Any bytes are safe to give. */
struct mstx_rows {
    unsigned columns;
    uint32_t n;
    struct {
        int64_t low, high; /* of what is not NULL; low > high: there is nothing else */
        const uint8_t *at, *end;
        uint8_t kind;
        bool is_known; /* its cells are there */
    } column[MSTX_ROWS_COLUMNS];
    int64_t *cell;
};
enum ms_rc mstx__rows_new(struct mstx_rows *r, struct ms_err *err) MS_MUST_USE;
void mstx__rows_free(struct mstx_rows *r);
/* Reads the heads of the columns of a blob.  The blob must live as long as columns of it are read. */
enum ms_rc mstx__rows_look(struct mstx_rows *r, struct ms_str blob, unsigned columns,
                           struct ms_err *err) MS_MUST_USE;
/* The n cells of a column; NULL: it is damaged. */
const int64_t *mstx__rows_column(struct mstx_rows *r, unsigned column, struct ms_err *err);

#endif
