/* SPDX-License-Identifier: MIT
 *
 * trace_clock: one clock for the traces of several ranks, where their timestamps contradict each other.
 *
 * Each trace has the clock of its host.  No rank leaves a collective that needs the data of all before
 * the last has entered it, so each shared collective bounds how far two clocks are apart
 * (read/host_clocks.h).  A trace whose times keep within the bounds of the traces before it keeps its
 * clock; one whose times do not is moved onto theirs.
 */
#ifndef MSTX_FOREIGN_TRACE_CLOCK_H
#define MSTX_FOREIGN_TRACE_CLOCK_H

#include "mstx/read/host_clocks.h"

#include "probe/base/map.h"

/* A collective of one trace, by the clock of the trace. */
struct mstx_trace_meeting {
    uint64_t group; /* the same in all traces */
    uint64_t bytes;
    int64_t start_ns, end_ns;
    uint32_t seq;
    uint8_t op;
};
typedef MS_VEC(struct mstx_trace_meeting) mstx_trace_meetings;

/* What the traces so far say of shared collectives; zero it to start. */
struct mstx_trace_clocks {
    struct ms_map calls, groups;
    MS_VEC(struct mstx_trace_meeting) call; /* latest start and earliest end, by the common clock */
    MS_VEC(uint32_t) count;                 /* collectives of each group */
};

/* From the time of a trace to the time of the run. */
struct mstx_trace_time {
    int64_t base_ns;
    struct mstx_host_clock moved; /* its apart is empty where the clock was left alone */
};
static inline int64_t mstx__trace_time(const struct mstx_trace_time *t, int64_t ns)
{
    ns += t->base_ns;
    return t->moved.apart.n == 0 ? ns : ns + mstx__clock_shift(&t->moved, ns);
}

/* Returns how much the clock of the trace gains on that of the run: ns per ns. */
double mstx__trace_drift(const struct mstx_trace_time *t);

/* How a clock was joined. */
struct mstx_trace_joined {
    size_t shared;     /* collectives that other traces have too */
    bool disagrees;    /* their times contradict those of the other traces */
    bool is_joined;    /* one line for every two minutes removes that */
    int64_t offset_ns; /* that was added, at the first of them */
    int64_t unsure_ns; /* how far it may be off */
};
/* Sets t->moved of a trace with these collectives and adds them to what is known.  Communicators whose
 * collectives differ in number or kind from those of other traces say nothing.  Keys live in an arena. */
enum ms_rc mstx__trace_clock_join(struct mstx_trace_clocks *c, const mstx_trace_meetings *m,
                                  struct ms_arena *keys, struct mstx_trace_time *t,
                                  struct mstx_trace_joined *joined, struct ms_err *err) MS_MUST_USE;
void mstx__trace_time_free(struct mstx_trace_time *t);
void mstx__trace_clocks_free(struct mstx_trace_clocks *c);

#endif
