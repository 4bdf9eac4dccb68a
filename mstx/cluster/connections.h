/* SPDX-License-Identifier: MIT
 *
 * connections: which TCP connections between ranks are slow, by what the kernels of both ends measured.
 *
 * A connection is slow when its shortest round trip, its rate while it was busy, or the part of its packets that it
 * loses is far from that of the other connections of the job, and when it was busy for a part of the job that matters.  Where most connections
 * of a rank are slow, it is the rank's own connection to the network.
 */
#ifndef MSTX_CLUSTER_CONNECTIONS_H
#define MSTX_CLUSTER_CONNECTIONS_H

#include "probe/base/vec.h"

#include <stdint.h>

/* One end of a connection, from the start of the job to its newest sample. */
struct mstx_conn_end {
    uint32_t rank; /* index */
    uint32_t peer; /* index of the rank at the other end */
    double min_rtt_us;
    double busy_us;       /* data was under way, and the receiver had room for it */
    double sent;          /* bytes */
    double retransmitted; /* packets */
    double span_us;       /* of the process until the sample */
};

/* By what a connection is slow. */
enum mstx_slow_by {
    MSTX_SLOW_TRIP, /* round trip, us */
    MSTX_SLOW_LOSS, /* part of the packets that are sent again */
    MSTX_SLOW_RATE  /* bytes per second */
};

/* A pair of ranks, or a rank whose connections are slow. */
struct mstx_slow_conn {
    uint32_t rank, peer; /* indices, rank < peer; peer UINT32_MAX: all connections of the rank */
    enum mstx_slow_by by;
    double value, usual; /* in the unit of `by` */
    double busy;         /* share of the job in which it was busy */
};
typedef MS_VEC(struct mstx_slow_conn) mstx_slow_conns;

/* Appends the slow connections, the busiest first; sorts the ends.  Returns false when out of memory. */
bool mstx__connections(struct mstx_conn_end *end, size_t n, uint32_t ranks, mstx_slow_conns *to);

#endif
