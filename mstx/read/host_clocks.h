/* SPDX-License-Identifier: MIT
 *
 * tl_read: what a capture on disk holds, checked before use: which process
 * directories there are, their segments in order, their texts, and what their
 * ticks mean as time.  Only mstx/tl_*.c include this.
 */
#ifndef MSTX_TL_READ_H
#define MSTX_TL_READ_H

#include "mstx/capture.h"

#include "probe/base/arena.h"
#include "probe/base/io.h"
#include "probe/base/vec.h"

/* Where a reader puts what is wrong with a file; it goes on with the others.  err is cleared. */
typedef void (*mstx_problem_fn)(void *ctx, const char *file, struct ms_err *err);
struct mstx_problems {
    mstx_problem_fn fn;
    void *ctx;
};
void mstx__problem(const struct mstx_problems *to, const char *file, struct ms_err *err);
/* The same with a text made here. */
void mstx__problem_text(const struct mstx_problems *to, const char *file, const char *fmt, ...)
    MS_PRINTF(3, 4);

/* ---- one segment ------------------------------------------------------------ */

struct mstx_segment {
    char *path;
    struct ms_file file;
    struct mstx_seg head; /* a copy, checked */
    const struct mstx_rec *rec;
    uint64_t n;            /* complete records at rec; in strings.seg bytes */
    struct mstx_rec *copy; /* where the writer may reuse the file while we read */
};

/* kind is the one expected.  Fails with what is wrong with which header field; a file that is cut off
 * gives what is left and is told to `to`. */
enum ms_rc mstx__segment_open(struct mstx_segment *s, const char *path, uint32_t kind,
                              const struct mstx_problems *to, struct ms_err *err) MS_MUST_USE;
void mstx__segment_close(struct mstx_segment *s);

/* ---- one process ------------------------------------------------------------ */

struct mstx_proc {
    char *dir;
    MS_VEC(struct mstx_segment) seg; /* by ring, then part */
    struct mstx_segment strings;
    bool has_strings;
};

/* Every process directory below root, in natural order of their paths.  Snapshots lie in a run of
 * their own and are passed over. */
struct mstx_procs {
    MS_VEC(struct mstx_proc) list;
};
enum ms_rc mstx__procs_find(struct mstx_procs *p, const char *root, struct ms_err *err) MS_MUST_USE;
void mstx__procs_free(struct mstx_procs *p);
/* Open all segments of one; unreadable ones are told to `to` and left out. */
enum ms_rc mstx__proc_open(struct mstx_proc *p, const struct mstx_problems *to,
                           struct ms_err *err) MS_MUST_USE;
void mstx__proc_close(struct mstx_proc *p);

/* ---- texts ------------------------------------------------------------------ */

/* One entry of strings.seg: head is a copy, text lies in the file. */
struct mstx_entry {
    struct mstx_text head;
    struct ms_str text;
};
/* *at is where to read, 0 to begin; false at the end.  Damage ends the walk and is told to `to`. */
bool mstx__entry_next(const struct mstx_segment *s, uint64_t *at, struct mstx_entry *e,
                      const struct mstx_problems *to);

/* ---- clock ------------------------------------------------------------------ */

/* Ticks of one host to Unix nanoseconds: straight between calibration points. */
struct mstx_knot {
    uint64_t ticks;
    int64_t mono_ns, real_ns;
    uint64_t width;
    double slope; /* ns per tick up to the next knot */
};
/* What the steady clock of rank 0's host is ahead of this one, at a time of this one. */
enum mstx_apart_method {
    MSTX_APART_PINGS,     /* messages there and back */
    MSTX_APART_MEETINGS,  /* what ranks did together: see tl_meet.h */
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
/* Take the calibration of a segment: of its header, and of its records in ring 0. */
enum ms_rc mstx__clock_add(struct mstx_clocks *c, const struct mstx_segment *s,
                           struct ms_err *err) MS_MUST_USE;
/* After the last point. false: the host has no usable point, its times are guessed. */
bool mstx__clock_fit(struct mstx_host_clock *c);
/* What makes wall-clock time of a time of the steady clock. */
int64_t mstx__clock_shift(const struct mstx_host_clock *c, int64_t mono_ns);
int64_t mstx__clock_look_up(struct mstx_host_clock *c, uint64_t ticks);
/* After all are fitted: hosts that were measured follow the clock of this one. */
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

#endif
