/* SPDX-License-Identifier: MIT
 *
 * clock_net: compares the clocks of hosts by TCP until the process ends.
 */
#ifndef MSTX_RT_CLOCK_NET_H
#define MSTX_RT_CLOCK_NET_H

void rt_clock_net_start(void);
void rt_clock_net_stop(void);
/* In a forked child: drops the thread and its sockets, which belong to the parent. */
void rt_clock_net_forget(void);

#endif
