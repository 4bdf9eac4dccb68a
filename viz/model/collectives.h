/* SPDX-License-Identifier: MIT
 *
 * collectives: communication between the ranks of a run, from the communication calls in run.db.
 *
 *     a collective on three ranks      rank 0  ▒▒▒▒▒▒▒▒████    ▒ waits for the last
 *                                      rank 1      ▒▒▒▒████    █ transfers
 *                                      rank 2          ████    last to arrive: the straggler
 */
#ifndef VIZ_MODEL_COLLECTIVES_H
#define VIZ_MODEL_COLLECTIVES_H

#include "mstx/rundb/run_query.h"

struct viz_rank_share {
    int64_t rank, span_ns;     /* from its first event to its last */
    int64_t comm_ns;           /* in communication calls; overlapping ones count once,
                               starting up and making communicators not at all */
    int64_t wait_ns;           /* part of it in collectives before the last rank arrived */
    int64_t collectives, last; /* number of collectives, and of those it arrived last in */
    int64_t made_others_wait_ns;
};
struct viz_wait { /* `rank` in collectives that `late` entered last */
    int64_t rank, late, ns, calls;
};
struct viz_transfer { /* point to point */
    int64_t from, to, bytes, ns, calls;
};
struct viz_size { /* calls of one operation and size */
    char op[40];
    int64_t bytes, calls, ns; /* of one call; number of calls; total */
};

/* Communicators of one size, whose ranks are `stride` apart: a dimension in which the job is parallel. */
struct viz_dimension {
    char name[32]; /* of a communicator, without its number */
    int64_t size, stride, groups;
};
enum { VIZ_DIMENSIONS_MAX = 16 };

struct viz_cluster {
    size_t
        bin; /* waits and transfers are those of so many neighbouring ranks, named by the lowest */
    MS_VEC(struct viz_rank_share) ranks;
    MS_VEC(struct viz_wait) waits;
    MS_VEC(struct viz_transfer) transfers;
    MS_VEC(struct viz_size) sizes;
};
/* Reads the totals; the lists are empty when the run recorded no communication. */
enum ms_rc viz_cluster_read(struct viz_cluster *c, struct mstx_tl *tl,
                            struct ms_err *err) MS_MUST_USE;
void viz_cluster_free(struct viz_cluster *c);
/* Finds the dimensions of a run, those of most communicators first. *n: how many; those of one group are none. */
enum ms_rc viz_dimensions_read(struct viz_dimension list[VIZ_DIMENSIONS_MAX], size_t *n,
                               struct mstx_tl *tl, struct ms_err *err) MS_MUST_USE;

/* The part of one rank in a collective. */
struct viz_arrival {
    int64_t rank, process, tid; /* process is an index */
    int64_t start_ns, end_ns;
};
struct viz_collective {
    char op[40];
    int64_t bytes;
    MS_VEC(struct viz_arrival) list; /* by arrival, the straggler last */
};
/* Reads the collective that a process entered at start_ns; MS_E_NOTFOUND: none. */
enum ms_rc viz_collective_read(struct viz_collective *c, struct mstx_tl *tl, size_t process,
                               int64_t start_ns, struct ms_err *err) MS_MUST_USE;
/* Reads, of the collectives that begin in [from_ns, to_ns] and that a rank enters last, the one in which the others
 * wait longest; MS_E_NOTFOUND: none. */
enum ms_rc viz_collective_worst(struct viz_collective *c, struct mstx_tl *tl, int64_t rank,
                                int64_t from_ns, int64_t to_ns, struct ms_err *err) MS_MUST_USE;
void viz_collective_free(struct viz_collective *c);

/* A communication call as a slice of the timeline. */
struct viz_call {
    size_t track; /* index */
    struct mstx_event slice;
};
/* Finds the call that a process (an index) began at start_ns; MS_E_NOTFOUND: none. */
enum ms_rc viz_call_find(struct viz_call *call, struct mstx_tl *tl, size_t process,
                         int64_t start_ns, struct ms_err *err) MS_MUST_USE;

#endif
