/* SPDX-License-Identifier: MIT
 *
 * thread_use: what a thread has used of its host, sampled at borders of communication calls.
 *
 * The difference between two samples tells why a thread took long between two calls: it computed (CPU
 * time), waited for a CPU that others used (run delay), or was off the CPU.
 */
#ifndef MSTX_RT_THREAD_USE_H
#define MSTX_RT_THREAD_USE_H

#include "mstx/rt/ticks.h"

/* The next sample of this thread is due at these ticks. */
extern __thread uint64_t rt_use_due __attribute__((tls_model("initial-exec")));

/* Returns the least number of ticks between two samples. */
uint64_t rt_use_ticks_between(void);
/* Returns a USE record of this thread and sets when the next one is due.  Makes four system calls of
 * 2 us together, none of which may block. */
struct mstx_rec rt_use_read(void);
/* Closes what the thread keeps open for its samples: when the thread ends, and in a forked child. */
void rt_use_end(void);

#endif
