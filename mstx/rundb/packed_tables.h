/* SPDX-License-Identifier: MIT
 *
 * packed_tables: the tables of run.db that have a row for each call, collective or span of a replay, packed
 * (packed_rows.h).
 *
 *     packed_calls(id, rows, data)   up to MSTX_ROWS_MAX calls of one process; id of the first call
 *     packed_joins(id, rows, data)   collectives of MSTX_JOINS_TOGETHER places; id counts blobs
 *     packed_spans(id, rows, data)   up to MSTX_ROWS_MAX spans of replayed timelines; id counts blobs
 *
 * and, in a folded database, instead of the tables names, steps and rank_steps:
 *
 *     packed_names(id, rows, data), packed_steps(id, rows, data), packed_rank_steps(id, rows, data)
 *
 * A million packed rows are written and read some twenty times as fast as rows of SQLite and take a
 * tenth of the space.  Queries see them as the virtual tables comm_ops, joins and replay_spans, which unpack
 * on demand.
 */
#ifndef MSTX_RUNDB_PACKED_TABLES_H
#define MSTX_RUNDB_PACKED_TABLES_H

#include "mstx/rundb/packed_index.h"

#include "probe/base/store.h"

#include <assert.h>

/* Number of consecutive places (cluster.h) whose joins share a blob. */
enum { MSTX_JOINS_TOGETHER = 512 };

enum mstx_call_column {
    MSTX_CALL_ID,
    MSTX_CALL_PROCESS,
    MSTX_CALL_RANK, /* NULL: none */
    MSTX_CALL_TID,
    MSTX_CALL_GROUP, /* NULL: a communicator without description */
    MSTX_CALL_SEQ,   /* NULL: no sequence */
    MSTX_CALL_NAME,  /* text */
    MSTX_CALL_OP,
    MSTX_CALL_LIB,
    MSTX_CALL_TYPE,
    MSTX_CALL_REDUCE,
    MSTX_CALL_COUNT,
    MSTX_CALL_ELEM,
    MSTX_CALL_SENT, /* of a test or probe: number of polls; NULL here and below: not recorded */
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

/* Spans of replayed timelines (cluster/replay_spans.h). */
enum mstx_span_column {
    MSTX_SPAN_OF, /* enum mstx_span_of */
    MSTX_SPAN_PROCESS,
    MSTX_SPAN_RANK,
    MSTX_SPAN_TID,
    MSTX_SPAN_STEP, /* NULL: none */
    MSTX_SPAN_KIND, /* enum mstx_span_kind */
    MSTX_SPAN_START,
    MSTX_SPAN_END,
    MSTX_SPAN_COLUMNS
};
/* Of the tables names, steps and rank_steps: as they are there, but the name of a step is the number of a
 * text. */
enum mstx_name_column {
    MSTX_NAME_TRACK,
    MSTX_NAME_NAME,
    MSTX_NAME_EVENTS,
    MSTX_NAME_TOTAL,
    MSTX_NAME_MIN,
    MSTX_NAME_MAX,
    MSTX_NAME_FIRST,
    MSTX_NAME_LAST,
    MSTX_NAME_UNFINISHED,
    MSTX_NAME_COLUMNS
};
enum mstx_step_column {
    MSTX_STEP_PROCESS,
    MSTX_STEP_NUMBER,
    MSTX_STEP_NAME,
    MSTX_STEP_START,
    MSTX_STEP_END,
    MSTX_STEP_COLUMNS
};
enum mstx_rank_step_column {
    MSTX_RANK_STEP_PROCESS,
    MSTX_RANK_STEP_RANK,
    MSTX_RANK_STEP_STEP,
    MSTX_RANK_STEP_START,
    MSTX_RANK_STEP_END,
    MSTX_RANK_STEP_COMPUTING,
    MSTX_RANK_STEP_COMM,
    MSTX_RANK_STEP_EXPOSED,
    MSTX_RANK_STEP_OVERLAPPED,
    MSTX_RANK_STEP_FREE,
    MSTX_RANK_STEP_BUBBLE,
    MSTX_RANK_STEP_PREPARING,
    MSTX_RANK_STEP_WAITING,
    MSTX_RANK_STEP_BLAME,
    MSTX_RANK_STEP_COLUMNS
};
static_assert((int)MSTX_CALL_COLUMNS <= MSTX_ROWS_COLUMNS, "calls fit into rows");
static_assert((int)MSTX_JOIN_COLUMNS <= MSTX_ROWS_COLUMNS, "joins fit into rows");
static_assert((int)MSTX_SPAN_COLUMNS <= MSTX_ROWS_COLUMNS, "spans fit into rows");

/* Rows collected for the next blob of a packed table, while a database is written. */
struct mstx_packed_out {
    struct mstx_rows_out rows;
    struct ms_stmt *add;
};
enum ms_rc mstx__packed_calls_new(struct mstx_packed_out *p, struct ms_store *s,
                                  struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__packed_joins_new(struct mstx_packed_out *p, struct ms_store *s,
                                  struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__packed_spans_new(struct mstx_packed_out *p, struct ms_store *s,
                                  struct ms_err *err) MS_MUST_USE;
/* Writes the collected rows as the blob of that id; does nothing when there are no rows. */
enum ms_rc mstx__packed_flush(struct mstx_packed_out *p, int64_t id,
                              struct ms_err *err) MS_MUST_USE;
/* Writes a blob of packed rows unchanged. */
enum ms_rc mstx__packed_copy(struct mstx_packed_out *p, int64_t id, uint32_t rows,
                             struct ms_str blob, struct ms_err *err) MS_MUST_USE;
void mstx__packed_free(struct mstx_packed_out *p);

/* Context of the virtual tables; must stay valid as long as the store is open. */
struct mstx_packed_source {
    struct ms_store *store;
    const struct mstx_folded_columns *folded;      /* reads folded blobs */
    struct ms_str (*text)(void *ctx, uint32_t id); /* of a name */
    void *ctx;
    struct mstx_packed_index calls, joins, spans, names, steps, rank_steps;
};
void mstx__packed_source_free(struct mstx_packed_source *from);
/* Registers comm_ops, joins, replay_spans, names, steps and rank_steps for queries on the store; a stored table of the same name takes
 * precedence. */
enum ms_rc mstx__packed_tables(struct mstx_packed_source *from, struct ms_err *err) MS_MUST_USE;

/* Call fn for all calls, or all joins, blob by blob. */
typedef enum ms_rc (*mstx_calls_fn)(void *ctx, struct mstx_rows *rows, struct ms_err *err);
enum ms_rc mstx__packed_each_call(struct mstx_packed_source *from, mstx_calls_fn fn, void *ctx,
                                  struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__packed_each_join(struct mstx_packed_source *from, mstx_calls_fn fn, void *ctx,
                                  struct ms_err *err) MS_MUST_USE;
/* Calls fn for the blobs that may hold calls of the processes first to last, numbered from 1. */
enum ms_rc mstx__packed_calls_of(struct mstx_packed_source *from, int64_t first, int64_t last,
                                 mstx_calls_fn fn, void *ctx, struct ms_err *err) MS_MUST_USE;

#endif
