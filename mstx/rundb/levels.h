/* SPDX-License-Identifier: MIT
 *
 * levels: the pyramid above the events of one track.
 *
 * On level `shift`, events shorter than 2^shift ns that begin in the same slot of
 * 2^shift ns and are in the same row are joined into one; longer events are kept.
 * The builder keeps only the lowest level it will store: it joins whenever it
 * holds more than a quarter of the events seen, so the whole pyramid stays below
 * half the size of the track.  Shifts at which too few events can be joined are
 * skipped.
 */
#ifndef MSTX_RUNDB_LEVELS_H
#define MSTX_RUNDB_LEVELS_H

#include "mstx/format/event.h"

enum { MSTX_SHIFT_MIN = 6, MSTX_SHIFT_MAX = 61 };

struct mstx_level_before {
    uint64_t start;
    unsigned bits; /* bits of its duration; more than 64: there is no event yet */
};

struct mstx_levels {
    mstx_events ev;        /* the current level, by start */
    MS_VEC(uint32_t) open; /* per row and kind: 1 + index of the event that later ones may join */
    MS_VEC(struct mstx_level_before) before; /* per row and kind: the previous event */
    uint64_t seen;
    unsigned shift; /* 0: nothing has been joined */
};

/* Adds n events, in order of their start over all calls; *l is zeroed before the first call.
 * Returns false when out of memory. */
bool mstx__levels_add(struct mstx_levels *l, const struct mstx_event *ev, size_t n);
/* Brings the current level to its final shift, after the last event. */
bool mstx__levels_finish(struct mstx_levels *l);
/* Coarsens the level until at most half of its events are left; returns false when that is
 * impossible or memory ran out. */
bool mstx__levels_up(struct mstx_levels *l);
/* Joins the events in l->ev to those of level `shift`. */
bool mstx__levels_join(struct mstx_levels *l, unsigned shift);
void mstx__levels_clear(struct mstx_levels *l);
void mstx__levels_free(struct mstx_levels *l);

#endif
