/* SPDX-License-Identifier: MIT
 *
 * tracks: the rows of a timeline and their contents.
 *
 *     rank 0
 *       python3 (4242)
 *         thread 4242 · step
 *         thread 4242 · communication
 *         stream 7 of device 0
 *         allocated memory
 *
 * Groups are sorted by rank, then process; within a process come threads, then streams, counters
 * and memory. A closed group shows the sum of its tracks.
 */
#ifndef VIZ_MODEL_TRACKS_H
#define VIZ_MODEL_TRACKS_H

#include "mstx/rundb/run_query.h"
#include "probe/base/arena.h"

enum viz_lane_kind { VIZ_LANE_PROCESS, VIZ_LANE_TRACK };
struct viz_lane {
    enum viz_lane_kind kind;
    bool open;               /* of a process: its tracks are shown */
    bool pinned, hidden;     /* of a track */
    uint32_t process, track; /* indices; track only for VIZ_LANE_TRACK */
    struct ms_str label;
};

struct viz_tracks {
    MS_VEC(struct viz_lane) lanes; /* each group before its tracks */
    struct ms_arena *arena;
};

enum ms_rc viz_tracks_make(struct viz_tracks *t, struct mstx_tl *tl,
                           struct ms_err *err) MS_MUST_USE;
void viz_tracks_free(struct viz_tracks *t);
/* Indices of the visible lanes: pinned ones first, then those in open groups. */
typedef MS_VEC(size_t) viz_seen;
enum ms_rc viz_tracks_seen(const struct viz_tracks *t, viz_seen *seen,
                           struct ms_err *err) MS_MUST_USE;

/* Load of a track or a closed process: for each of n equal parts of [from, to] the share, 0 to
 * 1, in which something runs, and the name with the longest time there (0: none). */
struct viz_busy {
    float share;
    uint32_t name;
};
enum ms_rc viz_tracks_busy(const struct viz_tracks *t, struct mstx_tl *tl, size_t lane,
                           int64_t from, int64_t to, struct viz_busy *part, size_t n,
                           struct ms_err *err) MS_MUST_USE;

#endif
