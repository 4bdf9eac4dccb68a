/* SPDX-License-Identifier: MIT
 *
 * deps: the dependency graph of a run, and its replay with other durations.
 *
 * A node is the end of an operation, or a gate: the time at which a group of operations may begin.
 * A node comes `weight` nanoseconds after the latest of its predecessors.  Nodes are stored in
 * topological order, so a replay is one pass over flat arrays:
 *
 *     t[v] = max(t[p] of each predecessor p of v) + weight[v]
 *
 * Nodes are grouped into steps.  A step can be replayed alone when the predecessors of its nodes
 * are all in the same step.
 */
#ifndef MSTX_CLUSTER_DEPS_H
#define MSTX_CLUSTER_DEPS_H

#include "probe/base/vec.h"

#include <stdint.h>

#define MSTX_NO_OP UINT32_MAX

struct mstx_deps {
    MS_VEC(uint32_t)
    first; /* by node: index of its first predecessor in pred; one more than nodes */
    MS_VEC(uint32_t) pred;
    MS_VEC(uint32_t) op;   /* the operation whose end the node is; MSTX_NO_OP: a gate of weight 0 */
    MS_VEC(uint32_t) step; /* the first node of each step; one more than steps */
    bool no_memory;        /* stays set: the graph is incomplete */
};

void mstx__deps_free(struct mstx_deps *d);
static inline size_t mstx__deps_count(const struct mstx_deps *d)
{
    return d->op.n;
}
/* Adds a node for an operation and returns its number; its predecessors follow. */
uint32_t mstx__deps_node(struct mstx_deps *d, uint32_t op);
/* Adds a predecessor to the newest node. */
void mstx__deps_after(struct mstx_deps *d, uint32_t pred);
/* Begins the next step, to which later nodes belong; also called once after the last step. */
void mstx__deps_begin_step(struct mstx_deps *d);

/* Frees the spare capacity of the arrays. */
void mstx__deps_trim(struct mstx_deps *d);

/* A replay of several scenarios at once, each in its own SIMD lane.  Lane k uses the weights
 * `other` for operations of class first + k and the weights `base` for all others. */
enum { MSTX_LANES = 8, MSTX_NO_FEW = 255 };
struct mstx_scenarios {
    const double *base, *other; /* ns, by operation */
    const uint32_t *class_of;   /* by operation; NULL: no operation has a class */
    uint32_t first;
    const uint8_t *few; /* the same as class_of for fewer than MSTX_NO_FEW classes; or NULL */
    bool
        is_alone; /* operations with a class in `few` have the weight `base` in their own lane alone */
    const uint32_t *slot; /* by node: the place of its times in t; NULL: one node after the other */
};
/* Replays the nodes [from, to), which have no predecessors before `from`.  t has room for
 * MSTX_LANES times of each node, or of each slot; end receives the latest time of each lane. */
void mstx__deps_replay(const struct mstx_deps *d, size_t from, size_t to,
                       const struct mstx_scenarios *x, double *t, double end[MSTX_LANES]);
/* Gives each node a slot that it shares with nodes whose last successors come before it, as a compiler gives
 * registers to variables.  A graph of 4 million nodes of 1,024 ranks needs a few thousand slots, so the times
 * of a replay take 0.3 MB instead of 270.  Returns the number of slots; SIZE_MAX: out of memory. */
size_t mstx__deps_slots(const struct mstx_deps *d, uint32_t *slot);
/* Replays the next node in one scenario, whose times are in slots; returns its time. */
static inline double mstx__deps_replay_node(const struct mstx_deps *d, size_t node,
                                            const double *weight, const uint32_t *slot, double *t)
{
    const uint32_t op = d->op.p[node], stop = d->first.p[node + 1];
    double start = 0;
    for (uint32_t i = d->first.p[node]; i < stop; i++) {
        const double of = t[slot[d->pred.p[i]]];
        start = of > start ? of : start;
    }
    return t[slot[node]] = start + (op != MSTX_NO_OP ? weight[op] : 0);
}
/* Replays the nodes in one scenario; returns the latest time.  t has room for one time of each
 * node. */
double mstx__deps_replay_one(const struct mstx_deps *d, size_t from, size_t to,
                             const double *weight, double *t);
/* Replays the nodes in two scenarios at once, which takes less than one after the other; end receives
 * the latest time of each.  t has room for two times of each node. */
void mstx__deps_replay_two(const struct mstx_deps *d, size_t from, size_t to,
                           const double *const weight[2], double *t, double end[2]);
/* Lists the operations on the critical path, the chain that determines the latest time of a replay
 * by mstx__deps_replay_one, last operation first.  Returns their number; path has room for one of
 * each node. */
size_t mstx__deps_critical(const struct mstx_deps *d, size_t from, size_t to, const double *t,
                           uint32_t *path);
/* Does the same where a replay gives the operations known times, without room for the times of all nodes. */
typedef double mstx_op_time(const void *ctx, uint32_t op);
size_t mstx__deps_critical_known(const struct mstx_deps *d, size_t from, size_t to,
                                 mstx_op_time *time, const void *ctx, uint32_t *path);

/* Operations and edges in any order, from which nodes in topological order are made.  Operations
 * that meet start together, when the last of them may start. */
struct mstx_dep_edge {
    uint32_t from, to; /* places in the list of operations */
};
struct mstx_dep_list {
    const uint32_t *op;   /* by index: the number of the operation */
    const uint32_t *meet; /* operations with the same value, which is below `n`, meet */
    uint32_t n;
    MS_VEC(struct mstx_dep_edge) edge;
};
/* Appends the nodes of one step.  Returns the number of operations that were left out because they
 * are in or behind a cycle. */
uint32_t mstx__deps_add_sorted(struct mstx_deps *d, const struct mstx_dep_list *l);

#endif
