/* SPDX-License-Identifier: MIT
 *
 * run_as_ascend: the ranks of a run of msprobe as databases of Ascend's profilers, made in memory
 * for the queries of a recipe.
 */
#ifndef MSTX_OFFICIAL_RUN_AS_ASCEND_H
#define MSTX_OFFICIAL_RUN_AS_ASCEND_H

#include "mstx/official/recipe.h"

struct mstx_run_ranks;

/* Opens a run.db, once for each of the workers, which may then make databases at the same time. */
enum ms_rc mstx__run_ranks_open(struct mstx_run_ranks **out, const char *db, unsigned workers,
                                struct ms_err *err) MS_MUST_USE;
void mstx__run_ranks_close(struct mstx_run_ranks *run);
/* Adds the ranks of only, "0,3,4", or all when only is NULL, in order; their paths are
 * names for messages. */
enum ms_rc mstx__run_ranks_list(struct mstx_run_ranks *run, const char *only,
                                struct mstx_ascend_files *found, struct ms_err *err) MS_MUST_USE;
/* Makes a database of a rank, with ctx the run: the one that export writes, without calls that only
 * start an operation, since these return at once on every rank, so their durations show no
 * straggler; or analysis.db, with the steps that import measured. */
enum ms_rc mstx__run_rank_open(void *ctx, unsigned worker, int64_t rank,
                               struct mstx_rank_parts parts, struct ms_store **out,
                               struct ms_err *err) MS_MUST_USE;
/* Tells whether these databases have a table. */
bool mstx__run_has_table(const void *ctx, struct ms_str name);
/* Reads rows of a rank as that database has them, but without it; *done stays false for a rank with a
 * device, whose times its calls and ranges have, and for operations of a run without any. */
enum ms_rc mstx__run_rank_read(void *ctx, unsigned worker, int64_t rank,
                               const struct mstx_rank_query *q, struct mstx__rank_rows *rows,
                               bool *done, struct ms_err *err) MS_MUST_USE;

#endif
