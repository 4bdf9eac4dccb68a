/* SPDX-License-Identifier: MIT
 *
 * throttling: for how long the kernel kept the process from running because the control groups that it is in
 * had used up their CPU time.
 */
#ifndef MSTX_RT_THROTTLING_H
#define MSTX_RT_THROTTLING_H

/* Begins a capture: opens the figures of the control groups. */
void rt_throttling_start(void);
/* Records the time since the capture began, if it has grown. */
void rt_throttling_look(void);
/* Closes the figures. */
void rt_throttling_end(void);

#endif
