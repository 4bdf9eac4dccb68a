/* SPDX-License-Identifier: MIT
 *
 * clock_sync: offsets between the clocks of hosts: the estimate from pings, and its record.
 * A transport between hosts (MPI, TCP) measures round trips; this file turns them into an offset
 * and writes it into the capture, from where a reader brings all hosts to one clock.
 *
 *     clock of rank 0's host = clock here + offset, both CLOCK_MONOTONIC
 *
 * For tests MSTX_CLOCK_FAKE="HOST:OFFSET_NS:PPM" makes a process pretend to be on another host whose
 * clock is off and drifts.
 */
#ifndef MSTX_RT_CLOCK_SYNC_H
#define MSTX_RT_CLOCK_SYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Four time stamps of one round trip: sent here, received there, answered there, received here. */
struct mstx_ping {
    int64_t sent, came, left, back;
};
struct mstx_clock_point {
    int64_t at_ns; /* of this host's clock */
    int64_t offset_ns;
    int64_t uncertainty_ns;
};

/* Estimates the offset as the median of the ten shortest round trips, limited to the interval that
 * the shortest allows. n >= 1. */
void mstx_clock_estimate(const struct mstx_ping *ping, size_t n, struct mstx_clock_point *out);

/* CLOCK_MONOTONIC of this host. */
int64_t mstx_clock_now(void);
/* Identifies the clock: equal for processes that share one. */
uint64_t mstx_clock_host(void);
/* Setting of MSTX_CLOCK_SYNC: 0 never, 1 always, otherwise only where a job has several hosts. */
enum mstx_clock_wish { MSTX_CLOCK_NEVER, MSTX_CLOCK_IF_NEEDED, MSTX_CLOCK_ALWAYS };
enum mstx_clock_wish mstx_clock_wish(void);
/* Tells whether the launcher's environment variables show that all ranks of the job are on this
 * host. */
bool mstx_clock_one_host(void);
/* Interval of the comparison of clocks by TCP: MSTX_CLOCK_EVERY in seconds, one minute by
 * default. */
int64_t mstx_clock_every_ns(void);
/* Writes the launcher's identifier of the current job, with '/' replaced so that it fits a file
 * name. */
void mstx_clock_job(char *out, size_t cap);
/* Writes a clock point into the capture. */
void mstx_clock_tell(const struct mstx_clock_point *p);

#endif
