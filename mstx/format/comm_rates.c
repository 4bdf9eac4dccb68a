/* SPDX-License-Identifier: MIT
 *
 * comm_rates: see the header.
 */
#include "mstx/format/comm_rates.h"

/* Tells whether the count of a call is the share exchanged with each rank, not the total. */
static bool counts_a_share(unsigned op)
{
    return op == MSTX_COMM_REDUCE_SCATTER || op == MSTX_COMM_ALLGATHER ||
           op == MSTX_COMM_ALLTOALL || op == MSTX_COMM_GATHER || op == MSTX_COMM_SCATTER;
}

double mstx_comm_algorithm_bytes(unsigned op, uint64_t bytes, int64_t n)
{
    if (op == MSTX_COMM_BARRIER)
        return 0;
    return counts_a_share(op) ? (double)bytes * (double)n : (double)bytes;
}

double mstx_comm_bus_factor(unsigned op, int64_t n)
{
    const double others = n > 0 ? (double)(n - 1) / (double)n : 0;
    if (op == MSTX_COMM_ALLREDUCE)
        return 2 * others;
    if (counts_a_share(op) || op == MSTX_COMM_ALLTOALL_V || op == MSTX_COMM_REDUCE_SCATTER_V ||
        op == MSTX_COMM_ALLGATHER_V || op == MSTX_COMM_ALLTOALL_W)
        return others;
    return 1;
}
