/* SPDX-License-Identifier: MIT
 *
 * process_ring: ring 0, with facts that belong to no thread: readings of the clocks, streams,
 * recording switched on and off.  Any thread may write it, under a lock; a flight recorder keeps
 * all of it.
 */
#ifndef MSTX_RT_PROCESS_RING_H
#define MSTX_RT_PROCESS_RING_H

#include "mstx/rt/state.h"

bool rt_process_start(void);
void rt_process_write(const struct mstx_rec *rec);
/* Reads the clocks, writes a CALIB record and the newest calibration of every header. */
void rt_clock_tick(void);
/* Writes a STATE record. */
void rt_state_write(enum mstx_why why, bool on);
void rt_process_close(void);
/* In a forked child: drops the parent's ring without writing to it. */
void rt_process_forget(void);

#endif
