/* SPDX-License-Identifier: MIT
 *
 * trail: what a step waited for, from its end back to its beginning, without gaps: so the parts of a
 * trail add up to the duration of the step.
 *
 *     thread   ░░░░ launch ░░░░░░░░░░ synchronize ◄─ end      the thread waits for the device, so the
 *     stream          └──► kernel ██ kernel █████──┘          trail goes on there, until it comes to a
 *                                                             kernel that waited for its launch
 *
 * What runs beside the trail does not make the step longer, and is not on it. Where the recorder
 * sampled for how long a thread waited for a CPU, that is left out: other programs had it.
 */
#ifndef MSTX_DIFFER_TRAIL_H
#define MSTX_DIFFER_TRAIL_H

#include "mstx/differ/lane.h"

struct mstx_trail_part {
    uint32_t place, step; /* step is an index */
    int64_t ns;
};

/* The parts of the steps of one process. */
struct mstx_trail {
    MS_VEC(struct mstx_trail_part) part;
};

/* What is walked now. */
struct mstx_walk {
    struct mstx_trail *to;
    struct mstx_places *places;
    const struct mstx_lane_set *lanes;
    uint32_t step;
    uint32_t gap; /* number of the name of gaps */
};

/* Walks from `to` back to `from`, beginning on the lane.  Returns false when out of memory. */
bool mstx__trail_walk(struct mstx_walk *w, size_t lane, int64_t from, int64_t to);
/* Sorts the parts by place and step, those of one step from its end back; `places` bounds their
 * numbers.  Returns false when out of memory. */
bool mstx__trail_sort(struct mstx_trail *t, size_t places);
void mstx__trail_free(struct mstx_trail *t);

#endif
