/* SPDX-License-Identifier: MIT
 *
 * event: one event on a track of a timeline, as made by readers of captures, packed in run.db and
 * drawn by viewers.
 *
 * Times are nanoseconds since the Unix epoch; within one host they follow its steady clock, so they
 * never jump.
 */
#ifndef MSTX_FORMAT_EVENT_H
#define MSTX_FORMAT_EVENT_H

#include "probe/base/vec.h"

#include <stdint.h>
#include <string.h>

enum mstx_event_kind {
    MSTX_EV_MARK,
    MSTX_EV_RANGE,   /* start/end */
    MSTX_EV_PUSHPOP, /* nested on its thread */
    MSTX_EV_COUNTER, /* arg is the value */
    MSTX_EV_REGION,  /* memory: from arg, size bytes */
    MSTX_EV_KINDS
};

enum {
    MSTX_EVF_UNFINISHED = 1,   /* never ended: shown up to the end of the capture */
    MSTX_EVF_OTHER_THREAD = 2, /* ended by end_tid */
    MSTX_EVF_STREAM = 4,       /* arg is a stream key */
    MSTX_EVF_FLOAT = 8,        /* counter: arg holds the bits of a double, else of an int64 */
    MSTX_EVF_START_LOST = 16,  /* start is known only from the record of the end */
    MSTX_EVF_CATEGORY = 32     /* arg is the text of the category that a foreign trace gives */
};

/* The tracks of what a thread used of its host, as totals since it began. */
#define MSTX_USE_DOMAIN         "use of the host"
#define MSTX_SOCKET_DOMAIN      "connections" /* marks of TCP connections */
#define MSTX_USE_CPU_TEXT       "CPU time"
#define MSTX_USE_DELAY_TEXT     "run delay"
#define MSTX_USE_THROTTLED_TEXT "throttled" /* of the process */
#define MSTX_USE_WRITTEN_TEXT   "blocks written"

/* The domains of the tracks of a stream that come from a profiler's trace: what the device executed,
 * and what only stands beside it, such as ranges of the user and waits of the host. */
#define MSTX_KERNELS_DOMAIN "kernels"
#define MSTX_BESIDE_DOMAIN  "annotations"
#define MSTX_TOOL_DOMAIN    "profiler" /* of threads: what the profiler says of itself */

/* One event. On a level above 0 with count > 1 it stands for several events drawn as one: name and
 * arg are then the name and duration of the longest, size is the sum of all durations (counters:
 * arg is the value farthest from zero, size the last value). */
struct mstx_event {
    int64_t start_ns, dur_ns;
    uint64_t id; /* id used by the program: range id, handle; 0 is none */
    uint64_t arg,
        size;       /* see the kinds; size of an event and of its device side are one number, not 0,
                           in one process */
    uint32_t name;  /* string */
    uint32_t args;  /* string: attributes and payload as a JSON object, 0 is none */
    uint32_t count; /* 1 or more */
    uint32_t end_tid;
    uint16_t depth; /* row within the track */
    uint8_t kind, flags;
};
typedef MS_VEC(struct mstx_event) mstx_events;

/* Returns the value of a counter event. */
static inline double mstx_event_value(const struct mstx_event *e)
{
    double real;
    if (!(e->flags & MSTX_EVF_FLOAT))
        return (double)(int64_t)e->arg;
    memcpy(&real, &e->arg, sizeof real);
    return real;
}

enum mstx_track_kind {
    MSTX_TRACK_THREAD,
    MSTX_TRACK_COUNTER,
    MSTX_TRACK_MEMORY,
    MSTX_TRACK_STREAM, /* of a device: times at which the device reached marks and ranges */
    MSTX_TRACK_KINDS
};

#endif
