/* SPDX-License-Identifier: MIT
 *
 * perfetto_tracks: what a Perfetto trace says beside its events: tracks with their processes and
 * threads, texts that packets name by number, and clocks.
 */
#ifndef MSTX_FOREIGN_PERFETTO_TRACKS_H
#define MSTX_FOREIGN_PERFETTO_TRACKS_H

#include "mstx/foreign/proto_read.h"

#include "probe/base/arena.h"
#include "probe/base/map.h"
#include "probe/base/vec.h"

#define MSTX_PERFETTO_NO_LANE UINT32_MAX

struct mstx_perfetto_track {
    uint64_t uuid, parent; /* parent 0: none */
    struct ms_str name, process_name;
    int64_t pid, tid; /* -1: it says none */
    bool is_counter, is_process;
    int64_t multiplier;
    uint32_t lane; /* MSTX_PERFETTO_NO_LANE: it has no events */
};
enum mstx_perfetto_texts {
    MSTX_PERFETTO_CATEGORIES,
    MSTX_PERFETTO_NAMES,
    MSTX_PERFETTO_KEYS,
    MSTX_PERFETTO_TEXTS
};
/* State of a sequence of packets. */
struct mstx_perfetto_sequence {
    uint64_t id, epoch;    /* epoch: how often its state was cleared */
    uint64_t track, clock; /* the defaults of its packets */
    int64_t last_ns;       /* of its incremental clock */
};
struct mstx_perfetto_clock {
    uint64_t sequence, id;
    int64_t offset_ns, multiplier; /* of realtime against it */
    bool is_incremental;
    int64_t now;
};

/* Zero it, then set the arena. Texts are slices of the trace. */
struct mstx_perfetto_tracks {
    struct ms_arena *arena;
    struct ms_map track_of, text_of;
    MS_VEC(struct mstx_perfetto_track) track;
    MS_VEC(struct ms_str) text;
    MS_VEC(struct mstx_perfetto_sequence) sequence;
    MS_VEC(struct mstx_perfetto_clock) clock;
    bool no_memory;
};
/* Finds or adds a track, or a sequence; NULL: out of memory. */
struct mstx_perfetto_track *mstx__perfetto_track(struct mstx_perfetto_tracks *t, uint64_t uuid);
struct mstx_perfetto_sequence *mstx__perfetto_sequence(struct mstx_perfetto_tracks *t, uint64_t id);
/* Take a TrackDescriptor, InternedData, a ClockSnapshot. */
void mstx__perfetto_descriptor(struct mstx_perfetto_tracks *t, struct ms_str message);
void mstx__perfetto_intern(struct mstx_perfetto_tracks *t, const struct mstx_perfetto_sequence *s,
                           struct ms_str message);
void mstx__perfetto_clocks(struct mstx_perfetto_tracks *t, const struct mstx_perfetto_sequence *s,
                           struct ms_str message);
/* Returns a text by its number in a sequence; empty: it is not known. */
struct ms_str mstx__perfetto_text(const struct mstx_perfetto_tracks *t,
                                  const struct mstx_perfetto_sequence *s,
                                  enum mstx_perfetto_texts kind, uint64_t iid);
/* Converts a timestamp of a packet to nanoseconds since the epoch where clocks tell that. */
int64_t mstx__perfetto_time(struct mstx_perfetto_tracks *t, const struct mstx_perfetto_sequence *s,
                            uint64_t clock, uint64_t stamp);
void mstx__perfetto_tracks_free(struct mstx_perfetto_tracks *t);

#endif
