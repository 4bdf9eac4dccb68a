/* SPDX-License-Identifier: MIT
 *
 * op_rows: reads the operations of a run from its run.db for the what-if analysis.
 */
#ifndef MSTX_CONCLUDE_OP_ROWS_H
#define MSTX_CONCLUDE_OP_ROWS_H

#include "mstx/cluster/ops.h"
#include "mstx/rundb/run_query.h"

/* Number of tracks of each rank; the track t of rank r has the thread number r * MSTX_OP_TRACKS + t. */
enum { MSTX_OP_TRACKS = 5 };
/* Returns the track of operations of a type: computing, transfers of a pipeline, other communication. */
static inline uint32_t mstx__op_track(const struct mstx_op_type *t)
{
    return mstx__op_is_transfer(t->kind) ? 1 : t->is_comm ? 3 : 0;
}

/* Reads the operations of a production trace whose tracks are named like "PP rank 3, TP rank 0,
 * compute" and whose events have their step as an attribute.  The process is the data-parallel
 * rank.  A run without such tracks has no operations. */
enum ms_rc mstx_op_rows_read(struct mstx_tl *tl, struct mstx_ops *o,
                             struct ms_err *err) MS_MUST_USE;

#endif
