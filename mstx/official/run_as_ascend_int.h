/* SPDX-License-Identifier: MIT
 *
 * run_as_ascend_int: state that run_as_ascend.c (opening, databases) and run_rows.c (rows without a
 * database) share.
 */
#ifndef MSTX_OFFICIAL_RUN_AS_ASCEND_INT_H
#define MSTX_OFFICIAL_RUN_AS_ASCEND_INT_H

#include "mstx/official/run_as_ascend.h"

#include "mstx/foreign/ascend_calls.h"

/* A rank of the run. The rows first_step to last_step of the table rank_steps, which has no index, are
 * of this rank; there are none when last_step is the smaller one. */
struct mstx_run_rank {
    int32_t rank;
    uint32_t process; /* its first one */
    uint32_t device;  /* of its first stream, or 0 */
    bool has_streams;
    bool is_profiled;   /* all its processes come from another tool's trace or table */
    struct ms_str host; /* of its first process; borrowed from the first handle of the run */
    int64_t first_step, last_step;
};
/* A communicator whose ranks are known, for the first of the chosen ranks that it has. */
struct mstx_run_group {
    int64_t rank;
    const char *hash, *name, *ranks, *list; /* "(0,4)" in order, "[4,0]" as recorded */
};
struct mstx_run_ranks {
    char *path;
    struct mstx_tl **open; /* for each worker: SQLite serves one thread at a time */
    unsigned workers;
    bool has_steps, has_calls;
    bool is_profiled;                    /* so is a rank */
    MS_VEC(struct mstx_run_rank) ranks;  /* by rank, each once */
    MS_VEC(struct mstx_run_group) known; /* by rank */
    struct ms_arena *arena;              /* of texts of `known` */
    struct mstx_ascend_groups *groups;
};

/* Returns a rank of the run, or NULL. */
const struct mstx_run_rank *mstx__run_rank(const struct mstx_run_ranks *run, int64_t rank);
/* Prepares a query for the number and the parts of the steps of a rank, in nanoseconds. */
enum { MSTX_STEP_COLUMNS = 10 };
enum ms_rc mstx__run_rank_steps(const struct mstx_run_ranks *run, unsigned worker, int64_t rank,
                                struct ms_stmt **st, struct ms_err *err) MS_MUST_USE;

/* What a run lends to a recipe, with ctx the run.
 *
 * Makes a database of a rank: the one that export writes, without calls that only
 * start an operation, since these return at once on every rank, so their durations show no
 * straggler; or analysis.db, with the steps that import measured. */
enum ms_rc mstx__run_rank_open(void *ctx, unsigned worker, int64_t rank,
                               struct mstx_rank_parts parts, struct ms_store **out,
                               struct ms_err *err) MS_MUST_USE;
/* Tells whether these databases have a table. */
bool mstx__run_has_table(const void *ctx, struct ms_str name);
/* Reads rows of a rank as that database has them, but without it; *done stays false for a rank with a
 * device, whose times its calls and ranges have, for one that another tool recorded, and for operations
 * of a run without any. */
enum ms_rc mstx__run_rank_read(void *ctx, unsigned worker, int64_t rank,
                               const struct mstx_rank_query *q, struct mstx__rank_rows *rows,
                               bool *done, struct ms_err *err) MS_MUST_USE;

#endif
