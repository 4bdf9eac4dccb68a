/* SPDX-License-Identifier: MIT
 *
 * host_clocks: what the ticks of a capture mean as time.  All processes of one boot read the same
 * counter, so their calibration points make one clock: between two points time is a straight line, and
 * ranks of one host keep their true order.  The steady clock gives the slope; the wall clock is read
 * once, because it may jump.
 *
 * Clocks of several hosts are aligned by what their ranks did together.
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
#ifndef MSTX_READ_HOST_CLOCKS_H
#define MSTX_READ_HOST_CLOCKS_H

#include "mstx/format/comm.h"
#include "mstx/read/segment.h"

#include "probe/base/vec.h"

/* Ticks of one host to Unix nanoseconds: straight between calibration points. */
struct mstx_knot {
    uint64_t ticks;
    int64_t mono_ns, real_ns;
    uint64_t width;
    double slope; /* ns per tick up to the next knot */
};
/* Offset of the steady clock of rank 0's host from this one, at a time of this one. */
enum mstx_apart_method {
    MSTX_APART_PINGS,     /* messages there and back */
    MSTX_APART_MEETINGS,  /* what ranks did together: see the picture above */
    MSTX_APART_CORRECTED, /* pings, moved where that showed them to be wrong */
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

/* The clock a segment's ticks belong to, made when it is new; NULL when out of memory. */
struct mstx_host_clock *mstx__clock_of(struct mstx_clocks *c, const struct mstx_seg *h);
/* Adds the calibration of a segment: of its header, and of its records when it is of ring 0. */
enum ms_rc mstx__clock_add(struct mstx_clocks *c, const struct mstx_segment *s,
                           struct ms_err *err) MS_MUST_USE;
/* Fits the clock after its last knot was added; false: the host has no usable knot, its times are guessed. */
bool mstx__clock_fit(struct mstx_host_clock *c);
/* Returns what is added to a time of the steady clock to make wall-clock time of it. */
int64_t mstx__clock_shift(const struct mstx_host_clock *c, int64_t mono_ns);
int64_t mstx__clock_look_up(struct mstx_host_clock *c, uint64_t ticks);
/* Makes hosts with measured offsets follow the clock of the reference, after all clocks were fitted. */
void mstx__clocks_align(struct mstx_clocks *c, const struct mstx_host_clock *reference);
/* Ticks by the steady clock of the host, and by the wall clock of the reference. */
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
/* True when the return of the call proves that all ranks have entered it. */
bool mstx__meeting_counts(const struct mstx_rec_comm *c);
/* Adds a call, unless its times are out of the range of clocks; false: no memory. */
bool mstx__meeting_add(struct mstx_meetings *m, const struct mstx_meeting *one);
/* Aligns hosts by their collectives, after the clocks were fitted and aligned.  Sorts the list. */
enum ms_rc mstx__meetings_align(struct mstx_meetings *m, struct mstx_clocks *c, size_t reference,
                                struct ms_err *err) MS_MUST_USE;

#endif
