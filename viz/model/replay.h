/* SPDX-License-Identifier: MIT
 *
 * replay: the critical path of a run and its ideal timeline, as import stored them (replay_spans).
 *
 * A view draws the critical path as a line from lane to lane, and the ideal timeline of a lane below it:
 *
 *     thread 1000 · communication   ▆▆▆▆▆▆▆━━━━━┓    work and calls as recorded
 *       ideal                       ▆▆▆▆▆██          as if no rank worked longer than its peers
 *     thread 1001 · communication   ▆▆▆▆▆░░░░░██┗━   ...
 */
#ifndef VIZ_MODEL_REPLAY_H
#define VIZ_MODEL_REPLAY_H

#include "mstx/rundb/run_query.h"

/* A part of a lane; of several that are shorter than a pixel, the longest with the time of all. */
struct viz_span {
    uint32_t process; /* index */
    uint32_t tid;
    /* The track (an index) that the span belongs to: the communication of its thread if that recorded any, else
     * its first track; -1: it has none. */
    int64_t track;
    int64_t step; /* -1: none */
    int64_t from, to;
    enum mstx_span_kind kind;
};
typedef MS_VEC(struct viz_span) viz_spans;

/* Replaces `to` by the spans that touch [from, end], those of the critical path in order of time, those of the
 * ideal timeline of one process (an index) lane by lane.  Spans shorter than res_ns are merged. */
enum ms_rc viz_replay_path(viz_spans *to, struct mstx_tl *tl, int64_t from, int64_t end,
                           int64_t res_ns, struct ms_err *err) MS_MUST_USE;
enum ms_rc viz_replay_ideal(viz_spans *to, struct mstx_tl *tl, uint32_t process, int64_t from,
                            int64_t end, int64_t res_ns, struct ms_err *err) MS_MUST_USE;
/* Tells whether the run has a critical path and an ideal timeline. */
bool viz_replay_exists(struct mstx_tl *tl);
/* Sets has[i] to 1 for each track that has an ideal timeline. */
enum ms_rc viz_replay_tracks(struct mstx_tl *tl, uint8_t *has, struct ms_err *err) MS_MUST_USE;

#endif
