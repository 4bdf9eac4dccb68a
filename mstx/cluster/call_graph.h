/* SPDX-License-Identifier: MIT
 *
 * call_graph: the dependency graph of communication calls that real programs made.
 *
 * A rank alternates between local work and intervals in which its thread is inside communication: a
 * blocking call, or the wait for asynchronous operations that were started before, at a post.
 *
 *     ── work ──► post ── work ──► in ▓▓▓▓▓▓ out ── work ──► in ▓▓ out
 *
 * An interval ends when its partners have arrived.  The name of a call does not tell which of their
 * points the interval waits for, so every kind of pair is a candidate, and the kinds that the
 * recorded times do not contradict are taken as laws.  Eager sends, leaves of a broadcast and
 * libraries that make progress only inside calls need no rules of their own.
 */
#ifndef MSTX_CLUSTER_CALL_GRAPH_H
#define MSTX_CLUSTER_CALL_GRAPH_H

#include "mstx/cluster/deps.h"

#define MSTX_NO_SEQ   UINT32_MAX
#define MSTX_NO_POINT UINT32_MAX

/* One communication call, all times on one clock. */
struct mstx_gcall {
    int64_t start_ns, end_ns; /* of an asynchronous operation: its start and its completion */
    uint32_t rank;            /* index among the ranks */
    uint32_t group, seq;      /* communicator and sequence number; MSTX_NO_SEQ: none */
    int32_t peer, tag; /* peer: index of the rank at the other end, or of the root; -1: none */
    /* Millions of calls are in memory at a time: what only makes points shares its place with the points. */
    union {
        uint32_t thread; /* until points are made */
        uint32_t begin;  /* the point at its start */
    };
    union {
        uint32_t polls; /* until points are made; of a test or probe: number of polls */
        uint32_t done;  /* the point at the end of the interval in which it completed */
    };
    uint8_t op, lib, flags, log_bytes;
};
typedef MS_VEC(struct mstx_gcall) mstx_gcalls;

enum mstx_point_kind { MSTX_POINT_POST, MSTX_POINT_IN, MSTX_POINT_OUT };
struct __attribute__((packed, aligned(4))) mstx_point {
    int64_t at_ns;
    uint32_t rank : 30;
    uint32_t kind : 2; /* enum mstx_point_kind */
};
#define MSTX_POINT_RANKS_MOST (UINT32_C(1) << 30)

struct mstx_call_graph {
    MS_VEC(struct mstx_point) point; /* by rank, then by time */
    MS_VEC(uint32_t) first;          /* first point of each rank; one more than ranks */
    MS_VEC(uint32_t) thread;         /* by rank: the thread whose calls make up its points */
    struct mstx_deps deps;           /* its operations are points */
    double *weight; /* by point, ns: local work before it, or its interval without waiting */
    int64_t start_ns, end_ns; /* of the job, from its first point to its last one */
    bool no_memory;
};

/* Builds the graph of the calls of `ranks` ranks; sorts the calls and sets their points.  unsure_ns
 * is the uncertainty of the offset between the clocks of two ranks. */
void mstx__call_graph(struct mstx_call_graph *g, mstx_gcalls *calls, uint32_t ranks,
                      int64_t unsure_ns);
void mstx__call_graph_free(struct mstx_call_graph *g);

/* The stages of mstx__call_graph, in order: points of each rank, waits of intervals, nodes.  The last one needs
 * no calls, whose memory may be used again. */
void mstx__call_points(struct mstx_call_graph *g, mstx_gcalls *calls, uint32_t ranks);
struct mstx_wait {
    uint32_t source, out; /* point `out` waits for `source`: a point, or MSTX_GATE and a gate */
};
#define MSTX_GATE 0x80000000u
struct mstx_waits {
    MS_VEC(struct mstx_wait) wait;
    MS_VEC(uint32_t) gate_first, gate_source; /* sources of each gate, one more first than gates */
    bool no_memory;
};
void mstx__call_waits(struct mstx_waits *w, const struct mstx_call_graph *g,
                      const mstx_gcalls *calls, int64_t unsure_ns);
void mstx__call_waits_free(struct mstx_waits *w);
/* Makes the points and the waits; mstx__call_graph_build makes the nodes of them, and frees the waits. */
void mstx__call_graph_cut(struct mstx_call_graph *g, struct mstx_waits *w, mstx_gcalls *calls,
                          uint32_t ranks, int64_t unsure_ns);
void mstx__call_graph_build(struct mstx_call_graph *g, struct mstx_waits *w);

#endif
