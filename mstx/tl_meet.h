/* SPDX-License-Identifier: MIT
 *
 * tl_meet: clocks of hosts from what ranks did together.
 *
 * Nobody leaves a barrier, an allreduce and their like before the last has entered.  With S and E
 * for start and end by the host's own clock, and theta for what the reference is ahead of it:
 *
 *     S_reference - E_here  <=  theta  <=  E_reference - S_here
 *
 *     theta │ ▼   ▼  ▼ ▼    ▼      upper bounds, one for each call
 *           │ ──────────────────   the line with the greatest distance from both
 *           │   ▲  ▲   ▲  ▲  ▲     lower bounds
 *           └──────────────────► time
 *
 * Hosts whose clocks nobody measured get a line for each two minutes; of those that were measured
 * it is checked, and put right where the bounds forbid what was measured.
 */
#ifndef MSTX_TL_MEET_H
#define MSTX_TL_MEET_H

#include "mstx/comm.h"
#include "mstx/tl_read.h"

/* One rank in one call. */
struct mstx_meeting {
    uint64_t uid; /* of the communicator */
    uint32_t seq, host;
    int64_t start, end; /* by the steady clock of the host */
    uint8_t op;
};
struct mstx_meetings {
    MS_VEC(struct mstx_meeting) list;
};
/* Does the return of such a call say that all have come? */
bool mstx__meeting_counts(const struct mstx_rec_comm *c);
/* Times that no clock shows are passed over. false: no memory. */
bool mstx__meeting_add(struct mstx_meetings *m, const struct mstx_meeting *one);
/* After the clocks were fitted and aligned; the list is put in another order. */
enum ms_rc mstx__meetings_align(struct mstx_meetings *m, struct mstx_clocks *c, size_t reference,
                                struct ms_err *err) MS_MUST_USE;

#endif
