/* SPDX-License-Identifier: MIT
 *
 * host_clocks: what the ticks of a capture mean as time.  All processes of one boot read the same
 * counter, so their calibration points make one clock: between two points time is a straight line,
 * and ranks of one host keep their true order.  The steady clock gives the slope; the wall clock is
 * read once, because it may jump.
 *
 * Clocks of several hosts are aligned by collectives.  No rank leaves a barrier, an allreduce or a
 * similar collective before the last rank has entered.  With S and E for start and end by the
 * host's own clock, and theta for the lead of the reference clock:
 *
 *     S_reference - E_here  <=  theta  <=  E_reference - S_here
 *
 *     theta │ ▼   ▼  ▼ ▼    ▼      upper bounds, one for each call
 *           │ ──────────────────   the line with the greatest distance from both
 *           │   ▲  ▲   ▲  ▲  ▲     lower bounds
 *           └──────────────────► time
 *
 * A host whose offset was not measured gets a line for each two minutes.  A measured offset is
 * checked against the bounds and corrected where it contradicts them.
 */
#ifndef MSTX_READ_HOST_CLOCKS_H
#define MSTX_READ_HOST_CLOCKS_H

#include "mstx/format/comm.h"
#include "mstx/read/processes.h"

#include "probe/base/vec.h"

/* A calibration point: ticks, steady clock and wall clock read together.  Time is linear between
 * knots. */
struct mstx_knot {
    uint64_t ticks;
    int64_t mono_ns, real_ns;
    uint64_t width;
    double slope; /* ns per tick up to the next knot */
};
/* How an offset between the steady clocks of a host and of rank 0's host was found. */
enum mstx_apart_method {
    MSTX_APART_PINGS,     /* messages there and back */
    MSTX_APART_MEETINGS,  /* collectives: see the picture above */
    MSTX_APART_CORRECTED, /* pings, moved because collectives contradict them */
};
struct mstx_apart {
    int64_t at_ns, offset_ns, uncertainty_ns;
    enum mstx_apart_method method;
};
struct mstx_host_clock {
    uint8_t boot_id[16];
    uint32_t clock;    /* enum mstx_clock */
    double slope;      /* from the recorder's estimate; 0: none */
    int64_t offset_ns; /* of wall clock over steady clock */
    MS_VEC(struct mstx_knot) knot;
    MS_VEC(struct mstx_apart) apart; /* from the clock of rank 0's host; none: not measured */
    int64_t reference_ns;            /* of wall clock over steady clock, on that host */
    size_t at;                       /* the knot used last */
    struct {
        uint64_t from, span; /* ticks; span 0: no stretch has been looked up */
        int64_t ns;
        double slope;
    } line; /* from the knot used last to the next one */
};
struct mstx_clocks {
    MS_VEC(struct mstx_host_clock) host;
};

/* Returns the clock of a segment's ticks, adding it when it is new; NULL when out of memory. */
struct mstx_host_clock *mstx__clock_of(struct mstx_clocks *c, const struct mstx_seg *h);
/* Adds the calibration points of a segment: those of its header, and for ring 0 those of its
 * records. */
enum ms_rc mstx__clock_add(struct mstx_clocks *c, const struct mstx_segment *s,
                           struct ms_err *err) MS_MUST_USE;
/* Fits the clock after its last knot was added; returns false when the host has no usable knot, so
 * that its times are guessed. */
bool mstx__clock_fit(struct mstx_host_clock *c);
/* Returns the difference between wall-clock time and steady clock at a time of the steady clock. */
int64_t mstx__clock_shift(const struct mstx_host_clock *c, int64_t mono_ns);
int64_t mstx__clock_look_up(struct mstx_host_clock *c, uint64_t ticks);
/* Makes hosts with measured offsets follow the clock of the reference, after all clocks were
 * fitted. */
void mstx__clocks_align(struct mstx_clocks *c, const struct mstx_host_clock *reference);
/* Converts ticks into time: of the host's steady clock here, of the reference's wall clock by
 * mstx__clock_ns. */
static inline int64_t mstx__clock_steady(struct mstx_host_clock *c, uint64_t ticks)
{
    const uint64_t apart = ticks - c->line.from;
    if (apart >= c->line.span)
        return mstx__clock_look_up(c, ticks);
    return c->line.ns + (int64_t)((double)(int64_t)apart * c->line.slope);
}
int64_t mstx__clock_ns(struct mstx_host_clock *c, uint64_t ticks);
void mstx__clocks_free(struct mstx_clocks *c);

/* ---- several hosts ------------------------------------------------------------ */

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
/* Returns true when no rank can return from the call before all ranks have entered it. */
bool mstx__meeting_counts(const struct mstx_rec_comm *c);
/* Adds a call, unless its times are implausible; returns false when out of memory. */
bool mstx__meeting_add(struct mstx_meetings *m, const struct mstx_meeting *one);
/* Aligns the clocks of hosts by their collectives; called after mstx__clocks_align.  Sorts the
 * list. */
enum ms_rc mstx__meetings_align(struct mstx_meetings *m, struct mstx_clocks *c, size_t reference,
                                struct ms_err *err) MS_MUST_USE;

#endif
