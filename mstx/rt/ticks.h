/* SPDX-License-Identifier: MIT
 *
 * ticks: the clock of the recorder: a counter of the processor where that is steady.
 */
#ifndef MSTX_RT_TICKS_H
#define MSTX_RT_TICKS_H

#include "mstx/rt/state.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

void rt_clock_choose(const char *wanted);
uint64_t rt_clock_slow(void);
/* CLOCK_MONOTONIC in nanoseconds, with the changes of MSTX_CLOCK_FAKE. */
int64_t rt_clock_steady(void);
extern unsigned rt_clock_fake_host; /* 0: none, see clock_sync.h */
void rt_clock_calibrate(struct mstx_calib *c);
extern uint32_t rt_clock_kind; /* enum mstx_clock */

/* Tells whether the clock is a counter of the processor that is read by one instruction. */
static inline bool rt_clock_is_near(uint32_t clock)
{
#if defined(__x86_64__)
    return clock == MSTX_CLOCK_TSC;
#elif defined(__aarch64__)
    return clock == MSTX_CLOCK_CNTVCT;
#else
    (void)clock;
    return false;
#endif
}
static inline uint64_t rt_ticks_near(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    uint64_t t;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
    return t;
#else
    return 0;
#endif
}
static inline uint64_t rt_ticks_of(uint32_t clock)
{
    return RT_LIKELY(rt_clock_is_near(clock)) ? rt_ticks_near() : rt_clock_slow();
}
static inline uint64_t rt_ticks(void)
{
    return rt_ticks_of(rt_clock_kind);
}

#endif
