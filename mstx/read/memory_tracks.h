/* SPDX-License-Identifier: MIT
 *
 * memory_tracks: heaps and regions of a process as lanes: address ranges, and bytes in use and
 * reserved.
 */
#ifndef MSTX_READ_MEMORY_TRACKS_H
#define MSTX_READ_MEMORY_TRACKS_H

#include "mstx/read/lanes.h"

/* Adds the lanes of heaps and regions; called after the last segment was read. */
void mstx__memory_lanes(struct mstx_lanes *l);

#endif
