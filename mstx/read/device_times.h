/* SPDX-License-Identifier: MIT
 *
 * device_times: device times of marks and ranges with a stream, as lanes of their streams.
 */
#ifndef MSTX_READ_DEVICE_TIMES_H
#define MSTX_READ_DEVICE_TIMES_H

#include "mstx/read/lanes.h"

/* Adds the lanes of streams; called after the last segment was read. */
void mstx__device_lanes(struct mstx_lanes *l);

#endif
