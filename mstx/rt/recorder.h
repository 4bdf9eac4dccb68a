/* SPDX-License-Identifier: MIT
 *
 * recorder: begins a capture, and ends it.
 */
#ifndef MSTX_RT_RECORDER_H
#define MSTX_RT_RECORDER_H

#include "mstx/rt/state.h"

/* Begins the capture if it has not begun; false when there is none. by_default: without
 * configuration the process records into ./mstx-capture, because a tool entry point was called. */
bool rt_recorder_start(bool by_default);

void rt_read_env(struct rt_config *c);
/* Makes a path absolute, so that it stays valid when the program changes its directory. */
void rt_make_absolute(char path[RT_PATH]);

#endif
