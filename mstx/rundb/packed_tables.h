/* SPDX-License-Identifier: MIT
 *
 * tl_packed: the tables of run.db that have a row for each call or collective, packed (tl_rows.h).
 *
 *     packed_calls(id, rows, data)   calls of one process, MSTX_ROWS_MAX at most; id that of the first
 *     packed_joins(id, rows, data)   collectives of MSTX_JOINS_TOGETHER places; id counts the stretches
 *
 * A million such rows are written and read some twenty times as fast as rows of SQLite are, and take a
 * tenth of the space.  Queries find them as comm_ops and joins, tables of SQL that unpack as they go.
 */
#ifndef MSTX_TL_PACKED_H
#define MSTX_TL_PACKED_H

#include "mstx/timeline.h"
#include "mstx/tl_rows.h"

#include "probe/base/store.h"

#include <assert.h>

/* Places (tl_cluster.h) whose joins lie in one blob. */
enum { MSTX_JOINS_TOGETHER = 512 };

enum mstx_call_column {
    MSTX_CALL_ID,
    MSTX_CALL_PROCESS,
    MSTX_CALL_RANK, /* NULL: none */
    MSTX_CALL_TID,
    MSTX_CALL_GROUP, /* NULL: one that nobody introduced */
    MSTX_CALL_SEQ,   /* NULL: no sequence */
    MSTX_CALL_NAME,  /* text */
    MSTX_CALL_OP,
    MSTX_CALL_LIB,
    MSTX_CALL_TYPE,
    MSTX_CALL_REDUCE,
    MSTX_CALL_COUNT,
    MSTX_CALL_ELEM,
    MSTX_CALL_SENT, /* of what only asks: how often; NULL, as the next ones: not told */
    MSTX_CALL_RECEIVED,
    MSTX_CALL_PEER,
    MSTX_CALL_TAG,
    MSTX_CALL_FLAGS,
    MSTX_CALL_STREAM, /* NULL: none */
    MSTX_CALL_START,
    MSTX_CALL_DUR,
    MSTX_CALL_DEVICE,
    MSTX_CALL_COLUMNS
};

enum mstx_join_column {
    MSTX_JOIN_GROUP,
    MSTX_JOIN_SEQ,
    MSTX_JOIN_OP,
    MSTX_JOIN_STEP, /* NULL: none */
    MSTX_JOIN_RANKS,
    MSTX_JOIN_MISSING,
    MSTX_JOIN_AGREES,
    MSTX_JOIN_BYTES,
    MSTX_JOIN_START,
    MSTX_JOIN_TRANSFER, /* NULL, as the next ones: not known */
    MSTX_JOIN_SKEW,
    MSTX_JOIN_WAITED,
    MSTX_JOIN_LAST, /* rank */
    MSTX_JOIN_COLUMNS
};
static_assert((int)MSTX_CALL_COLUMNS <= MSTX_ROWS_COLUMNS, "calls fit into rows");
static_assert((int)MSTX_JOIN_COLUMNS <= MSTX_ROWS_COLUMNS, "joins fit into rows");

/* Rows that await the next blob of such a table, while a database is made. */
struct mstx_packed_out {
    struct mstx_rows_out rows;
    struct ms_stmt *add;
};
enum ms_rc mstx__packed_calls_new(struct mstx_packed_out *p, struct ms_store *s,
                                  struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__packed_joins_new(struct mstx_packed_out *p, struct ms_store *s,
                                  struct ms_err *err) MS_MUST_USE;
/* What awaits becomes the blob of that id; nothing does nothing. */
enum ms_rc mstx__packed_flush(struct mstx_packed_out *p, int64_t id,
                              struct ms_err *err) MS_MUST_USE;
/* A blob of so many rows as it is. */
enum ms_rc mstx__packed_copy(struct mstx_packed_out *p, int64_t id, uint32_t rows,
                             struct ms_str blob, struct ms_err *err) MS_MUST_USE;
void mstx__packed_free(struct mstx_packed_out *p);

/* comm_ops and joins for queries on this database, which keeps t; a table of such a name in the
 * database goes before.  Texts come from tl. */
enum ms_rc mstx__packed_tables(struct mstx_tl *tl, struct ms_err *err) MS_MUST_USE;

/* All calls, blob by blob. */
typedef enum ms_rc (*mstx_calls_fn)(void *ctx, struct mstx_rows *rows, struct ms_err *err);
enum ms_rc mstx__packed_each_call(struct mstx_tl *tl, mstx_calls_fn fn, void *ctx,
                                  struct ms_err *err) MS_MUST_USE;

#endif
