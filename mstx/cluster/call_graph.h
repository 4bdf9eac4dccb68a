/* SPDX-License-Identifier: MIT
 *
 * call_graph: the dependency graph of communication calls that real programs made.
 *
 * A rank alternates between local work and intervals in which its thread is inside communication:
 * a blocking call, or the wait for operations that were begun before, at a post.
 *
 *     ── work ──► post ── work ──► in ▓▓▓▓▓▓ out ── work ──► in ▓▓ out
 *
 * An interval ends when its partners are there: which of their moments it waits for is not known from
 * the name of a call, so every kind of pair is a candidate, and those kinds that the recorded times do
 * not contradict are laws.  Eager sends, leaves of a broadcast and progress inside calls alone need
 * no rules of their own.
 */
#ifndef MSTX_CLUSTER_CALL_GRAPH_H
#define MSTX_CLUSTER_CALL_GRAPH_H

#include "mstx/cluster/deps.h"

#define MSTX_NO_SEQ   UINT32_MAX
#define MSTX_NO_POINT UINT32_MAX

/* One communication call, all times on one clock. */
struct mstx_gcall {
    int64_t start_ns, end_ns; /* of an operation that was begun only: until it was complete */
    uint32_t rank;            /* place among the ranks */
    uint32_t thread;
    uint32_t group, seq; /* communicator and number in its sequence; MSTX_NO_SEQ: none */
    int32_t peer, tag;   /* place of the rank at the other end, or of the root; -1: none */
    uint32_t polls;      /* of a test: how often */
    uint8_t op, lib, flags, log_bytes;
    uint32_t begin, done; /* points: begun, and the end of the interval in which it was complete */
};
typedef MS_VEC(struct mstx_gcall) mstx_gcalls;

enum mstx_point_kind { MSTX_POINT_POST, MSTX_POINT_IN, MSTX_POINT_OUT };
struct mstx_point {
    int64_t at_ns;
    uint32_t rank;
    uint8_t kind;
};

struct mstx_call_graph {
    MS_VEC(struct mstx_point) point; /* rank by rank, in order of time */
    MS_VEC(uint32_t) first;          /* point of each rank; one more than ranks */
    struct mstx_deps deps;           /* its operations are points */
    double *weight;           /* by point, ns: local work before it, or what an interval took */
    int64_t start_ns, end_ns; /* of the job, from its first point to its last one */
    bool no_memory;
};

/* Builds the graph of the calls of `ranks` ranks; the calls get another order, their points are set.
 * Times of two ranks are comparable to `unsure_ns`. */
void mstx__call_graph(struct mstx_call_graph *g, mstx_gcalls *calls, uint32_t ranks,
                      int64_t unsure_ns);
void mstx__call_graph_free(struct mstx_call_graph *g);

/* Parts, in their order: lanes of points; whom an interval waits for. */
void mstx__call_points(struct mstx_call_graph *g, mstx_gcalls *calls, uint32_t ranks);
struct mstx_wait {
    uint32_t source, out; /* points; source may be a gate: MSTX_GATE and its number */
};
#define MSTX_GATE 0x80000000u
struct mstx_waits {
    MS_VEC(struct mstx_wait) wait;
    MS_VEC(uint32_t) gate_first, gate_source; /* sources of each gate, one more first than gates */
    bool no_memory;
};
void mstx__call_waits(struct mstx_waits *w, const struct mstx_call_graph *g,
                      const mstx_gcalls *calls, int64_t unsure_ns);

#endif
