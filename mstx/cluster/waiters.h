/* SPDX-License-Identifier: MIT
 *
 * waiters: which ranks make the others wait, and what that costs the job.
 *
 * The local work of each rank in each step is compared with that of the other ranks.  The cost of a
 * rank is the time that a replay without its excess saves, so a slow rank that no other rank waits
 * for costs nothing.
 *
 * Where the use of the host is known, ranks are compared without their run delay, the time in which they
 * were ready and other threads had the CPU: on a busy host that time is chance.  A rank that stands out by
 * its run delay alone waits for a CPU.
 */
#ifndef MSTX_CLUSTER_WAITERS_H
#define MSTX_CLUSTER_WAITERS_H

#include "mstx/cluster/call_steps.h"
#include "mstx/cluster/rank_use.h"

/* Why a rank works longer.  The parts are the shares of the excess of its local work over the median of
 * the ranks that are not named. */
enum mstx_wait_cause {
    MSTX_CAUSE_UNKNOWN,
    MSTX_CAUSE_COMPUTES,
    MSTX_CAUSE_WAITS_FOR_CPU,
    MSTX_CAUSE_THROTTLED, /* waits because its control group has used up its CPU time */
    MSTX_CAUSE_OFF_CPU,   /* sleeps, or waits for a file, a lock or a device */
    MSTX_CAUSE_WRITES     /* off the CPU while blocks are written */
};
struct mstx_wait_parts {
    double on_cpu, delayed, off_cpu;
    double written; /* blocks more than others */
};

/* The result for one rank. */
struct mstx_waiter {
    uint32_t rank; /* index */
    /* share of the job that a replay without its excess saves; of a rank that is not named, share of the
     * judged steps */
    double cost;
    double steady;      /* likewise without the excess of its undisturbed steps (shift_ns) */
    double dominance;   /* share of its cost in the costs of all ranks */
    double persistence; /* share of the steps in which it works longest */
    double lead;     /* share of the steps in which it works longer than the median of the others */
    double shift_ns; /* excess in its undisturbed steps */
    double excess_ns; /* mean excess of a step */
    double excess;    /* the same as a share of the median work of a step */
    double peak;      /* share of its two longest steps in its excess */
    double
        net; /* share of its excess that it does not work shorter than the others in other steps */
    uint32_t from, to; /* the steps [from, to) hold its excess */
    bool is_named;
    bool is_steady; /* slow in all of these steps, else in bursts */
    enum mstx_wait_cause cause;
    struct mstx_wait_parts part;
};

struct mstx_waiters {
    MS_VEC(struct mstx_waiter) list; /* greatest cost first */
    uint32_t ranks, steps;
    int64_t *step_at; /* start times of steps: ranks x (steps + 1) */
    double *work;     /* local work, ns: ranks x steps */
    double *healed;   /* by point: its recorded weight without the excess of its rank */
    uint32_t *step;   /* by point; UINT32_MAX: in no step */
    double job_ns, step_ns;
    double in_comm;     /* share of the ranks' time that transfers take */
    double model_error; /* of a replay with the recorded durations */
    double delayed;     /* share of the local work of all ranks that is run delay */
    bool has_causes;    /* the use of the host is known: ranks were judged without run delay */
    bool is_known;      /* enough steps and time to judge */
    bool no_memory;
};

/* Judges the ranks of a graph; use: NULL where it is not known. */
void mstx__waiters(struct mstx_waiters *w, const struct mstx_call_graph *g,
                   const mstx_gcalls *calls, const struct mstx_step_times *steps,
                   const struct mstx_thread_use *use);
/* Does the same for steps that were found before, so that the calls may be freed. */
void mstx__waiters_of_steps(struct mstx_waiters *w, const struct mstx_call_graph *g,
                            const struct mstx_call_steps *steps, const struct mstx_thread_use *use);
/* The stages of mstx__waiters: judges the ranks with these weights of the points, greatest cost first. */
void mstx__waiters_judge(struct mstx_waiters *w, const struct mstx_call_graph *g,
                         const double *weight, const struct mstx_call_steps *steps);
void mstx__waiters_sort(struct mstx_waiters *w);
/* Sets the costs of the named ranks by replays of the recorded weights of which some are replaced by
 * `healed`: the cost of a single one is what the replay without its excess saves; the costs of two add up to
 * what the replay without both saves. */
void mstx__waiters_share(struct mstx_waiters *w, const struct mstx_call_graph *g);
void mstx__waiters_free(struct mstx_waiters *w);

#endif
