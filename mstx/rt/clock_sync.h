/* SPDX-License-Identifier: MIT
 *
 * clock_sync: what the clocks of hosts are apart: the estimate from pings and the record of it.
 * Whoever can carry messages between hosts (MPI, TCP) measures; this turns round trips into an
 * offset and writes it into the capture, from where a reader brings all hosts to one clock.
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

/* Four stamps of one round trip: ours, theirs, theirs, ours. */
struct mstx_ping {
    int64_t sent, came, left, back;
};
struct mstx_clock_point {
    int64_t at_ns; /* of our clock */
    int64_t offset_ns;
    int64_t uncertainty_ns;
};

/* Median of the ten shortest round trips. n >= 1. */
void mstx_clock_estimate(const struct mstx_ping *ping, size_t n, struct mstx_clock_point *out);

/* The steady clock of this host. */
int64_t mstx_clock_now(void);
/* Equal for processes that share a clock. */
uint64_t mstx_clock_host(void);
/* MSTX_CLOCK_SYNC: 0 never, 1 always, else where a job has several hosts. */
enum mstx_clock_wish { MSTX_CLOCK_NEVER, MSTX_CLOCK_IF_NEEDED, MSTX_CLOCK_ALWAYS };
enum mstx_clock_wish mstx_clock_wish(void);
/* Do launchers say that all ranks of the job are on this host? */
bool mstx_clock_one_host(void);
/* MSTX_CLOCK_EVERY: how often clocks are compared by TCP; a minute. */
int64_t mstx_clock_every_ns(void);
/* What launchers call the job at hand, fit for a file's name. */
void mstx_clock_job(char *out, size_t cap);
/* Do all ranks of the job get here within that time? The same answer on all that ask. */
bool mstx_clock_agree(int rank, int size, int64_t patience_ns);
/* When all have heard the answer: by rank 0, or after a no by everybody. */
void mstx_clock_forget(void);
/* Write a point into the capture. */
void mstx_clock_tell(const struct mstx_clock_point *p);

#endif
