/* SPDX-License-Identifier: MIT
 *
 * op_rows: reads the operations of a run from its run.db for the what-if analysis.
 */
#ifndef MSTX_CONCLUDE_OP_ROWS_H
#define MSTX_CONCLUDE_OP_ROWS_H

#include "mstx/cluster/ops.h"
#include "mstx/rundb/run_query.h"

/* Reads the operations of a production trace whose tracks are named like "PP rank 3, TP rank 0,
 * compute" and whose events have their step as an attribute.  The process is the data-parallel
 * rank.  A run without such tracks has no operations. */
enum ms_rc mstx_op_rows_read(struct mstx_tl *tl, struct mstx_ops *o,
                             struct ms_err *err) MS_MUST_USE;

#endif
