/* SPDX-License-Identifier: MIT
 *
 * recipe: the official analyses of a cluster, with their tables, columns and values.
 *
 * Communication operations of all ranks are brought into one table first, from databases of Ascend's
 * profilers or from a run of ours; a recipe reads it and writes tables of cluster_analysis.db.
 */
#ifndef MSTX_RECIPE_H
#define MSTX_RECIPE_H

#include "probe/base/store.h"

#include <stdint.h>

#define MSTX_ANALYSIS_DB "cluster_analysis.db"

/* What was read. */
struct mstx_recipe_input {
    uint64_t files, ops;
    uint64_t bad; /* files that cannot be read; they stand in the table ImportProblem */
};

/* Fill the table CommunicationOps(rank, grp, name, start, end) from every profiler database below
 * path, or from the run there. */
enum ms_rc mstx__recipe_read(struct ms_store *s, const char *path, struct mstx_recipe_input *in,
                             struct ms_err *err) MS_MUST_USE;
/* It is for the recipes alone. */
enum ms_rc mstx__recipe_read_end(struct ms_store *s, struct ms_err *err) MS_MUST_USE;

/* Tables SlowRank and SlowOpStats. */
enum ms_rc mstx__recipe_slow_rank(struct ms_store *s, struct ms_err *err) MS_MUST_USE;
/* Of n ascending durations, the ranks in `slow` (as many places) that made the others wait, by the
 * official rule; returns how many. */
size_t mstx_slow_ranks(const double *duration, const int64_t *rank, size_t n, int64_t *slow);

/* A table as CSV, with its column names in the first line. */
enum ms_rc mstx__recipe_csv(struct ms_store *s, const char *table, const char *path,
                            struct ms_err *err) MS_MUST_USE;

#endif
