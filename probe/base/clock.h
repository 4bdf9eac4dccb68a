/* SPDX-License-Identifier: MIT
 *
 * clock: time in nanoseconds, as int64_t everywhere.
 */
#ifndef PROBE_BASE_CLOCK_H
#define PROBE_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t ms_clock_read(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
/* Monotonic time: never goes back, and its zero is arbitrary. */
static inline int64_t ms_clock_ns(void)
{
    return ms_clock_read(CLOCK_MONOTONIC);
}
/* CPU time of the calling thread. Benchmarks on a shared machine use CPU time, since other load
 * does not change it. */
static inline int64_t ms_clock_cpu_ns(void)
{
    return ms_clock_read(CLOCK_THREAD_CPUTIME_ID);
}

#endif
