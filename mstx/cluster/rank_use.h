/* SPDX-License-Identifier: MIT
 *
 * rank_use: what the threads of ranks used of their hosts, by samples of totals, and how much of it
 * belongs to each point of a graph of calls.
 */
#ifndef MSTX_CLUSTER_RANK_USE_H
#define MSTX_CLUSTER_RANK_USE_H

#include "mstx/cluster/call_graph.h"

/* Quantities of a sample: time on a CPU; time in which the thread was ready and had no CPU; blocks of
 * 512 bytes written. */
enum { MSTX_ON_CPU, MSTX_DELAYED, MSTX_WRITTEN, MSTX_USES };

struct mstx_use_sample {
    int64_t at_ns;
    double total[MSTX_USES];
};

struct mstx_thread_use {
    MS_VEC(struct mstx_use_sample) sample; /* by rank, then by time */
    MS_VEC(uint32_t) first;                /* first sample of each rank; one more than ranks */
    MS_VEC(double) throttled; /* by rank, ns: its control groups had used up their CPU time */
};

/* Tells whether every rank has samples, so that the ranks can be compared. */
bool mstx__use_is_known(const struct mstx_thread_use *u, uint32_t ranks);
/* Sets used to what was used during the weight of a point: local work, or the part of an interval after the
 * wait.  Between samples use is constant. */
void mstx__use_of_point(const struct mstx_thread_use *u, const struct mstx_call_graph *g,
                        size_t point, double used[MSTX_USES]);
/* Sets used to what a rank used between two times. */
void mstx__use_between(const struct mstx_thread_use *u, uint32_t rank, int64_t from, int64_t to,
                       double used[MSTX_USES]);
void mstx__use_free(struct mstx_thread_use *u);

#endif
