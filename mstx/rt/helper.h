/* SPDX-License-Identifier: MIT
 *
 * helper: the thread that serves rings and `msprobe ctl`, and the switch of recording.
 */
#ifndef MSTX_RT_HELPER_H
#define MSTX_RT_HELPER_H

#include "mstx/rt/state.h"

/* Turns recording on or off; domains, the control page and the capture follow. */
void rt_set_recording(bool on, enum mstx_why why);
/* Starts the helper. When that fails (false), threads make their segments themselves. */
bool rt_helper_start(void);
void rt_helper_stop(void);
/* In a forked child: drops the thread, which exists in the parent only. */
void rt_helper_forget(void);

#endif
