/* SPDX-License-Identifier: MIT
 *
 * op_rows: the operations of a run as the what-if analysis reads them, out of its run.db.
 */
#ifndef MSTX_CONCLUDE_OP_ROWS_H
#define MSTX_CONCLUDE_OP_ROWS_H

#include "mstx/cluster/ops.h"
#include "mstx/rundb/run_query.h"

/* Reads the operations of a production trace whose tracks are called "PP rank 3, TP rank 0, compute"
 * and whose events carry their step.  The process is the data-parallel rank.  A run without such
 * tracks has no operations. */
enum ms_rc mstx_op_rows_read(struct mstx_tl *tl, struct mstx_ops *o,
                             struct ms_err *err) MS_MUST_USE;

#endif
