/* SPDX-License-Identifier: MIT
 *
 * comm_measure: times of a run's communication by communicator and operation, and the uncertainty
 * of its clocks.
 */
#ifndef MSTX_CONCLUDE_COMM_MEASURE_H
#define MSTX_CONCLUDE_COMM_MEASURE_H

#include "mstx/rundb/run_query.h"

#include "probe/base/vec.h"

/* Calls of one operation on one communicator, summed over all ranks. */
struct mstx_comm_row {
    char *group, *op; /* on the heap */
    int64_t id;       /* of the communicator in comm_groups; 0: without description */
    int64_t size;     /* ranks of the communicator; -1: unknown */
    int64_t calls, bytes, total_ns, mean_ns, max_ns;
    int64_t ranks; /* number of ranks that made such calls */
};
typedef MS_VEC(struct mstx_comm_row) mstx_comm_rows;
/* Lists rows by communicator, then by descending total; no rows when the run has no such calls. */
enum ms_rc mstx_comm_measure(struct mstx_tl *tl, mstx_comm_rows *rows,
                             struct ms_err *err) MS_MUST_USE;
void mstx_comm_rows_free(mstx_comm_rows *rows);

/* Clock offsets between hosts: number of hosts with a measured offset, and the greatest uncertainty
 * of a measurement.  hosts 0: nothing was measured. */
struct mstx_clock_summary {
    int64_t hosts, uncertainty_ns;
};
enum ms_rc mstx_clocks_measure(struct mstx_tl *tl, struct mstx_clock_summary *s,
                               struct ms_err *err) MS_MUST_USE;

#endif
