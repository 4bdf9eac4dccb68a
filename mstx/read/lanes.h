/* SPDX-License-Identifier: MIT
 *
 * lanes: the events of one process by lanes, in ticks.
 *
 * A lane is a thread in a domain, a counter, a heap or a stream of a device: what becomes a track
 * of run.db.  Records become events of lanes in records.c, device_lanes.c and
 * memory_tracks.c.
 */
#ifndef MSTX_READ_LANES_H
#define MSTX_READ_LANES_H

#include "mstx/format/comm.h"
#include "mstx/format/event.h"
#include "mstx/read/args.h"
#include "mstx/read/host_clocks.h"
#include "mstx/read/texts.h"

/* An event in ticks, in order of its begin. */
struct mstx_raw {
    uint64_t begin, end; /* end 0: the range has not ended yet */
    uint64_t id;
    uint32_t name;  /* id in the sink of texts */
    uint32_t extra; /* 1 + place in extras, 0: none */
    uint8_t kind, flags;
};
struct mstx_extra {
    uint64_t arg, size;
    uint32_t args, end_tid;
    uint32_t comm;  /* 1 + place in comms, 0: no communication call */
    uint32_t parts; /* 1 + place in parts, 0: none; also set for an end without its begin */
};
/* Additional fields that few communication calls have; type 0: not recorded. */
struct mstx_comm_parts {
    struct mstx_rec_comm_part begin, end;
};

/* The events of one future track. */
struct mstx_lane {
    enum mstx_track_kind kind;
    uint32_t tid;
    uint32_t domain, name, unit; /* ids in the sink of texts */
    MS_VEC(struct mstx_raw) ev;
    uint64_t last; /* begin of the last event */
    bool is_sorted;
    bool is_mono_ns; /* times are ns of CLOCK_MONOTONIC, not ticks */
    uint32_t device; /* of a stream */
};

enum { MSTX_OPEN_SLOTS = 4096 };
struct mstx_open {
    uint64_t begin, id;
    uint32_t lane, at;
};
struct mstx_loose_end {
    uint64_t begin, id, end;
    uint32_t name, tid, extra;
    uint16_t domain;
    uint8_t kind;
};

/* Memory records of all rings, for memory_tracks.c. */
struct mstx_mem_event {
    uint64_t ticks, id, heap, address, size;
    uint32_t device, domain, tid, name;
    uint8_t type;
    bool by_pointer, stays;
};

/* DEVICE and STREAM records of all rings, for device_lanes.c. */
struct mstx_device_time {
    uint64_t id, begin, ns; /* begin: ticks of the MARK or BEGIN */
    bool is_end;
};
struct mstx_stream {
    uint64_t key;
    uint32_t name, device, number;
};

/* Counters of what a thread uses of its host. */
enum { MSTX_USE_CPU, MSTX_USE_DELAY, MSTX_USE_WRITTEN, MSTX_USE_COUNTERS };

struct mstx_thread {
    uint32_t tid;
    mstx_text_ids lane_of;            /* by domain number: 1 + lane */
    uint32_t used[MSTX_USE_COUNTERS]; /* 1 + lane of each counter of its use of the host */
};

struct mstx_lanes {
    struct mstx_texts *texts;
    struct mstx_args_cache *cache;
    MS_VEC(struct mstx_lane) lane;
    MS_VEC(struct mstx_extra) extra;
    MS_VEC(struct mstx_rec_comm) comm;
    MS_VEC(struct mstx_comm_parts) parts;
    MS_VEC(struct mstx_thread) thread;
    mstx_text_ids counter_of;      /* by local text id: 1 + lane */
    MS_VEC(struct mstx_open) open; /* begins evicted from the table, at the end all that are left */
    MS_VEC(struct mstx_loose_end) ends;
    MS_VEC(struct mstx_mem_event) memory;
    MS_VEC(struct mstx_device_time) device;
    MS_VEC(struct mstx_stream) stream;
    struct mstx_open *table;
    uint32_t sockets;   /* 1 + lane of the connections; 0: none yet */
    uint32_t throttled; /* likewise of the time in which the process was throttled */
    uint64_t newest;    /* ticks */
    uint64_t records, dropped, unfinished;
    uint64_t no_device; /* marks and ends of ranges whose device time was lost */
    uint64_t bad;       /* records whose type is not known */
    bool no_memory;
    bool no_args;                    /* attributes and payloads are skipped */
    size_t lanes_made, threads_made; /* initialized entries, whose memory the next process reuses */
};

enum ms_rc mstx__lanes_new(struct mstx_lanes *l, struct ms_err *err) MS_MUST_USE;
/* Empties the lanes for the next process; keeps their memory. */
void mstx__lanes_reset(struct mstx_lanes *l, struct mstx_texts *t);
void mstx__lanes_free(struct mstx_lanes *l);
/* Adds a lane; returns NULL when out of memory. */
struct mstx_lane *mstx__lane_add(struct mstx_lanes *l, enum mstx_track_kind kind, uint32_t tid,
                                 uint32_t domain, uint32_t name, uint32_t *index);
/* Appends an event to a lane; returns NULL when out of memory. */
static inline struct mstx_raw *mstx__lane_event(struct mstx_lanes *l, uint32_t lane, uint64_t begin)
{
    struct mstx_lane *to = &l->lane.p[lane];
    struct mstx_raw *raw = ms_vec_push(&to->ev);
    if (raw == NULL) {
        l->no_memory = true;
        return NULL;
    }
    *raw = (struct mstx_raw){.begin = begin};
    to->is_sorted &= begin >= to->last;
    to->last = begin;
    return raw;
}

/* Appends an extra, whose 1 + index goes into *extra; returns NULL when out of memory. */
static inline struct mstx_extra *mstx__extra(struct mstx_lanes *l, uint32_t *extra)
{
    struct mstx_extra *x = ms_vec_push(&l->extra);
    if (x == NULL) {
        l->no_memory = true;
        return NULL;
    }
    *x = (struct mstx_extra){0};
    *extra = (uint32_t)l->extra.n;
    return x;
}
/* Returns the wall-clock time of an event's time, which the lane has in ticks or by the steady
 * clock. */
int64_t mstx__lane_ns(const struct mstx_lane *lane, struct mstx_host_clock *c, uint64_t t);
/* Returns an event's time by the steady clock of the host. */
static inline int64_t mstx__lane_steady(const struct mstx_lane *lane, struct mstx_host_clock *c,
                                        uint64_t t)
{
    const uint64_t most = (uint64_t)1 << 60; /* 36 years; below 2^62 even with the offset added */
    if (!lane->is_mono_ns)
        return mstx__clock_steady(c, t);
    return (int64_t)(t < most ? t : most);
}

#endif
