/* SPDX-License-Identifier: MIT
 *
 * call_rows: reads the communication calls of a run from its run.db for the dependency graph.
 */
#ifndef MSTX_CONCLUDE_CALL_ROWS_H
#define MSTX_CONCLUDE_CALL_ROWS_H

#include "mstx/cluster/waiters.h"
#include "mstx/conclude/steps.h"

/* A call takes about 108 bytes while it is judged, so that 4,096 ranks fit into 256 MB; of larger runs only
 * the first part is read. */
enum { MSTX_CALLS_JUDGED = 1650000 };

struct mstx_call_rows {
    mstx_gcalls calls;
    MS_VEC(uint32_t) process; /* by rank index: index of its process */
    MS_VEC(int32_t) rank;     /* by rank index: the rank */
    MS_VEC(int64_t)
    step_at; /* by rank index: start times of its steps and the end of the last one */
    struct mstx_step_times steps;
    struct mstx_thread_use use; /* samples of the ranks; none in captures of older recorders */
    int64_t unsure_ns;          /* uncertainty of the clock offset between two hosts */
    bool is_part;               /* only about the first MSTX_CALLS_JUDGED calls were read */
    bool has_one_clock;         /* a single host or boot, or hosts whose clocks were aligned */
    bool has_device; /* some calls only enqueue work of a device: their times show no waiting */
};

/* Reads the calls of all processes that have a rank.  Uses `steps` when marks or ranges name the
 * same steps in all processes. */
enum ms_rc mstx__call_rows_read(struct mstx_tl *tl, const struct mstx_steps *steps,
                                struct mstx_call_rows *to, struct ms_err *err) MS_MUST_USE;
void mstx__call_rows_free(struct mstx_call_rows *r);

#endif
