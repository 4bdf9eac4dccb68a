/* SPDX-License-Identifier: MIT
 *
 * call_steps: what the judgement of ranks needs of the calls: the times of steps, and which ranks receive from
 * any source.  It is small beside the calls, which may be freed then.
 */
#ifndef MSTX_CLUSTER_CALL_STEPS_H
#define MSTX_CLUSTER_CALL_STEPS_H

#include "mstx/cluster/call_graph.h"

/* Ranks of fewer steps are not judged. */
enum { MSTX_STEPS_LEAST = 15 };

/* Start times of the steps of each rank: rank by rank, `steps` + 1 times each.  When they are
 * unknown, steps are found by the period of the calls, else the run is cut into windows. */
struct mstx_step_times {
    const int64_t *at_ns;
    uint32_t steps; /* 0: unknown */
};

struct mstx_call_steps {
    int64_t *at_ns; /* as in mstx_step_times; NULL: fewer than two ranks, or no points */
    uint32_t steps;
    uint32_t *from_any; /* by rank: number of its receives from any source (MPI_ANY_SOURCE) */
    bool no_memory;
};

/* Takes the known steps when they are enough to judge, else finds some.  The graph has its points. */
void mstx__call_steps(struct mstx_call_steps *s, const struct mstx_call_graph *g,
                      const mstx_gcalls *calls, const struct mstx_step_times *known);
void mstx__call_steps_free(struct mstx_call_steps *s);

#endif
