/* SPDX-License-Identifier: MIT
 *
 * comm_measure: what a run's communication took, by communicator and operation, and how sure its
 * clocks are.
 */
#ifndef MSTX_CONCLUDE_COMM_MEASURE_H
#define MSTX_CONCLUDE_COMM_MEASURE_H

#include "mstx/rundb/run_query.h"

#include "probe/base/vec.h"

/* Calls of one operation on one communicator, all ranks together. */
struct mstx_comm_row {
    char *group, *op; /* on the heap */
    int64_t id;       /* of the communicator in comm_groups; 0: without description */
    int64_t size;     /* ranks of the communicator; -1: not known */
    int64_t calls, bytes, total_ns, mean_ns, max_ns;
    int64_t ranks; /* that made such calls */
};
typedef MS_VEC(struct mstx_comm_row) mstx_comm_rows;
/* By communicator, then by falling total; empty when the run has no such calls. */
enum ms_rc mstx_comm_measure(struct mstx_tl *tl, mstx_comm_rows *rows,
                             struct ms_err *err) MS_MUST_USE;
void mstx_comm_rows_free(mstx_comm_rows *rows);

/* How sure the times of different hosts are of each other: hosts whose clock was measured, and the
 * greatest uncertainty of a measure. hosts 0: nothing was measured. */
struct mstx_clock_summary {
    int64_t hosts, uncertainty_ns;
};
enum ms_rc mstx_clocks_measure(struct mstx_tl *tl, struct mstx_clock_summary *s,
                               struct ms_err *err) MS_MUST_USE;

#endif
