/* SPDX-License-Identifier: MIT
 *
 * device_lanes: when marks and ranges with a stream were reached on the device.
 *
 * A DEVICE record holds the id of a mark or range, the ticks of its start on the host, which
 * distinguish the uses of an id, and a time of the steady clock.  A mark has one DEVICE record and
 * a range two; each of them may be lost.
 */
#ifndef MSTX_READ_DEVICE_LANES_H
#define MSTX_READ_DEVICE_LANES_H

#include "mstx/read/lanes.h"

/* Adds the lanes of streams; called after the last segment was read. */
void mstx__device_lanes_add(struct mstx_lanes *l);

#endif
