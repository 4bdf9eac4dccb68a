/* SPDX-License-Identifier: MIT
 *
 * waiters: which ranks make the others wait, and what that costs the job.
 *
 * The local work of each rank in each step is measured against what other ranks need.  What a rank
 * costs is what a replay without its excess gains, so a rank that is slow where nobody waits for it
 * costs nothing.
 */
#ifndef MSTX_CLUSTER_WAITERS_H
#define MSTX_CLUSTER_WAITERS_H

#include "mstx/cluster/call_graph.h"

/* Where the steps of each rank begin: rank by rank, `steps` + 1 moments each.  Without them steps are
 * found in the sequence of calls, else the run is cut into windows. */
struct mstx_step_times {
    const int64_t *at_ns;
    uint32_t steps; /* 0: not known */
};

/* What is known about one rank. */
struct mstx_waiter {
    uint32_t rank;      /* place */
    double cost;        /* share of the job that a replay without its excess gains */
    double steady;      /* the same for what it needs more in its undisturbed steps */
    double dominance;   /* share of its cost in the costs of all ranks */
    double persistence; /* share of the steps in which it works longest */
    double lead;     /* share of the steps in which it works longer than the median of the others */
    double shift_ns; /* what it needs more in its undisturbed steps */
    double excess_ns;  /* mean of a step, over the others */
    uint32_t from, to; /* steps that its excess lies in; to is behind the last one */
    bool is_named;
    bool is_steady; /* in all steps, else in bursts */
};

struct mstx_waiters {
    MS_VEC(struct mstx_waiter) list; /* the costliest first */
    uint32_t ranks, steps;
    int64_t *step_at; /* where steps begin: ranks x (steps + 1) */
    double *work;     /* local work, ns: ranks x steps */
    double *healed;   /* by point: its weight without the excess of its rank */
    uint32_t *step;   /* by point; UINT32_MAX: in none */
    double job_ns, step_ns;
    double all_healed;  /* share of the job that a replay without any excess gains */
    double in_comm;     /* share of the ranks' time that transfers take */
    double model_error; /* of the replay of what was recorded */
    bool is_known;      /* enough steps and time to judge */
    bool no_memory;
};

void mstx__waiters(struct mstx_waiters *w, const struct mstx_call_graph *g,
                   const mstx_gcalls *calls, const struct mstx_step_times *steps);
void mstx__waiters_free(struct mstx_waiters *w);

#endif
