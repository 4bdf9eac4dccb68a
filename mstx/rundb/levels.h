/* SPDX-License-Identifier: MIT
 *
 * levels: the pyramid above the events of one track.
 *
 * On level `shift` events shorter than 2^shift ns that begin in the same slot of
 * that width and lie in the same row are one; longer ones stay what they are.
 * The builder keeps only the lowest level it will store: it joins whenever it
 * holds more than a quarter of the events seen, so the whole pyramid stays below
 * half the size of the track.  Widths at which too few events can be joined are
 * passed over without joining.
 */
#ifndef MSTX_RUNDB_LEVELS_H
#define MSTX_RUNDB_LEVELS_H

#include "mstx/format/event.h"

enum { MSTX_SHIFT_MIN = 6, MSTX_SHIFT_MAX = 61 };

struct mstx_level_before {
    uint64_t start;
    unsigned bits; /* of its duration; more than any: none came */
};

struct mstx_levels {
    mstx_events ev;        /* the level at hand, by start */
    MS_VEC(uint32_t) open; /* per row and kind: 1 + place of the event that may grow */
    MS_VEC(struct mstx_level_before) before; /* the same: the event that came last */
    uint64_t seen;
    unsigned shift; /* 0: nothing has been joined */
};

/* Zero it to start. Events come in order of their start, some at a time; false when out of memory. */
bool mstx__levels_add(struct mstx_levels *l, const struct mstx_event *ev, size_t n);
/* After the last event: bring the level at hand to its final shift. */
bool mstx__levels_finish(struct mstx_levels *l);
/* Go up until at most half as many events are left; false when it cannot be (or memory ran out). */
bool mstx__levels_up(struct mstx_levels *l);
/* Joins the events that the caller put into ev as level `shift` has them. */
bool mstx__levels_join(struct mstx_levels *l, unsigned shift);
void mstx__levels_clear(struct mstx_levels *l);
void mstx__levels_free(struct mstx_levels *l);

#endif
