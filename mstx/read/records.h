/* SPDX-License-Identifier: MIT
 *
 * records: records of one process become events, lane by lane.
 *
 * An END tells the ticks of its BEGIN, so (id, ticks) names a range and a lost
 * BEGIN is no loss.  The begin is remembered in a small table; what does not
 * find its other half there (ended by another thread, pushed out of the table)
 * goes to two lists that are sorted and merged when all rings have been read.
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
