/* SPDX-License-Identifier: MIT
 *
 * call_rows: the communication calls of a run as the dependency graph reads them, out of its run.db.
 */
#ifndef MSTX_CONCLUDE_CALL_ROWS_H
#define MSTX_CONCLUDE_CALL_ROWS_H

#include "mstx/cluster/waiters.h"
#include "mstx/conclude/steps.h"

/* A graph takes about 330 bytes a call while it is judged; of larger runs the first part is taken. */
enum { MSTX_CALLS_JUDGED = 2000000 };

struct mstx_call_rows {
    mstx_gcalls calls;
    MS_VEC(uint32_t) process; /* index of the process of each place */
    MS_VEC(int32_t) rank;     /* its rank */
    MS_VEC(int64_t) step_at;  /* where the steps of each place begin, and where the last one ends */
    struct mstx_step_times steps;
    int64_t unsure_ns;  /* of times of two hosts */
    bool is_part;       /* only the first MSTX_CALLS_JUDGED calls or so were taken */
    bool has_one_clock; /* of one host, or of hosts whose clocks were brought together */
    bool has_device;    /* some calls only enqueue what a device does: their times say little */
};

/* Reads the calls of all processes that have a rank.  Steps are taken from `steps` where a mark or range
 * names them in all processes alike. */
enum ms_rc mstx__call_rows_read(struct mstx_tl *tl, const struct mstx_steps *steps,
                                struct mstx_call_rows *to, struct ms_err *err) MS_MUST_USE;
void mstx__call_rows_free(struct mstx_call_rows *r);

#endif
