/* SPDX-License-Identifier: MIT
 *
 * records: records of one process become events, lane by lane.
 *
 * An END holds the ticks of its BEGIN, so (id, ticks) identifies a range, and a
 * range whose BEGIN was lost is still complete.  Open begins are kept in a small
 * hash table.  Begins and ends that find no partner in the table (ended by another
 * thread, evicted) go to two lists, sorted and merged after all rings were read.
 *
 *     CALL that ended in place ──► lane ─────────────► complete
 *     BEGIN ──► lane + table ──(END of the same ring)──► complete
 *                     │ pushed out
 *                     ▼
 *                   open list ═══ merge by (id, ticks) ═══ end list ◄── END of another ring
 *                     │ no partner                            │ no partner
 *                     ▼                                       ▼
 *                 unfinished                             start lost
 */
#ifndef MSTX_READ_RECORDS_H
#define MSTX_READ_RECORDS_H

#include "mstx/read/lanes.h"
#include "mstx/read/processes.h"

/* Reads all segments of an open process into lanes, which are emptied first. */
void mstx__lanes_read(struct mstx_lanes *l, const struct mstx_proc *p, struct mstx_texts *t);

#endif
