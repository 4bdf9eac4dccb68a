/* SPDX-License-Identifier: MIT
 *
 * lane: the threads and streams of one process, as spans with their places.
 *
 *     spans   ████████████████ forward          bits: which span is the innermost from a time on
 *               ██████  ████   linear, gelu     │ f │ l    │ f│ g  │ f │
 *
 * A thread is one lane, whatever number of domains it has.
 */
#ifndef MSTX_DIFFER_LANE_H
#define MSTX_DIFFER_LANE_H

#include "mstx/conclude/steps.h"
#include "mstx/differ/time_place.h"

#define MSTX_NO_SPAN UINT32_MAX

struct mstx_lane_span {
    int64_t start, end; /* not beyond that of the span around it */
    int64_t length;     /* as recorded */
    uint64_t link;      /* of a call that launches and of what it launched: the same, not 0 */
    uint32_t name; /* string of the run; once it has a place, its number among names of places */
    uint32_t place;
    bool holds; /* other spans lie in it */
    bool waits; /* a call that returns when the device is done */
};

struct mstx_bit {
    int64_t start; /* it ends where the next one begins */
    uint32_t span; /* MSTX_NO_SPAN: none */
};

/* How long a thread had waited for a CPU by then, since it began. */
struct mstx_delay {
    int64_t t, total;
};

struct mstx_lane {
    uint32_t tid;
    MS_VEC(struct mstx_delay) delay;    /* samples that the recorder took, by time; may be empty */
    MS_VEC(struct mstx_lane_span) span; /* by start */
    MS_VEC(struct mstx_bit) bit;        /* by start; the last one is empty */
};

/* What a stream executed; times of one stream do not overlap. */
struct mstx_device_span {
    int64_t start, end;
    uint64_t link;
    uint32_t stream;      /* number of its stream among those of the process */
    uint32_t before;      /* the span before it on its stream; MSTX_NO_SPAN: none */
    uint32_t name, place; /* as of other spans */
    int32_t lane;         /* that launched it; -1: unknown */
    uint32_t call;        /* the launching span on that lane */
};

typedef MS_VEC(struct mstx_device_span) mstx_device_spans;

struct mstx_lane_set {
    MS_VEC(struct mstx_lane) lane; /* threads, in order of their tid */
    size_t main;                   /* the lane on which the steps lie */
    mstx_device_spans device;      /* by end */
    bool has_launches;             /* of what streams executed some is known */
    bool is_profile;               /* a profiler recorded all operators of all threads */
};

/* Reads the lanes of a process (an index).  Steps are those of this process. */
enum ms_rc mstx__lane_set_read(struct mstx_lane_set *to, struct mstx_tl *tl, uint32_t process,
                               const struct mstx_step *step, size_t steps,
                               struct mstx_places *places, struct ms_err *err) MS_MUST_USE;
void mstx__lane_set_free(struct mstx_lane_set *l);

/* Returns the number of the bit at a time, or SIZE_MAX before the first one. */
size_t mstx__lane_bit_at(const struct mstx_lane *l, int64_t t);
/* Returns for how much of the time the thread waited for a CPU; between samples evenly. */
int64_t mstx__lane_delay(const struct mstx_lane *l, int64_t from, int64_t to);
/* Returns the device's span that ends last of those that end at t or before; MSTX_NO_SPAN: none. */
uint32_t mstx__device_ended(const struct mstx_lane_set *l, int64_t t);

#endif
