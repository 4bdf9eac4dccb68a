/* SPDX-License-Identifier: MIT
 *
 * device: device times of marks and ranges with a stream; what the back ends (cpu, opencl,
 * cuda, acl) and their common part share.
 *
 *      mark with a stream                     device                    poller thread
 *   ┌──────────────────────┐  event     ┌──────────────────┐        ┌──────────────────────┐
 *   │ ticks, host record   │──────────► │ .. work, event,  │        │ asks the oldest event│
 *   │ token into the       │            │ work ..          │◄───────│ of every stream      │
 *   │ stream's queue       │──────────────────────────────────────► │ DEVICE record        │
 *   └──────────────────────┘            └──────────────────┘        └──────────────────────┘
 *
 * A mark never waits for the device and never asks it anything: it queues an event behind the
 * work that is there and leaves a token.  Whatever cannot be had (no event left, a full queue,
 * an error, a capture into a graph) leaves the host record alone, with a flag.
 *
 * A stream handle is opaque until somebody who knows said what it is: then it is in the table
 * of streams, and only then its back end touches it.
 */
#ifndef MSTX_RT_DEV_DEVICE_H
#define MSTX_RT_DEV_DEVICE_H

#include "mstx/mstx_device.h"
#include "mstx/rt/state.h"

enum {
    RT_STREAMS = 4096,       /* that may be known at once */
    RT_STREAM_SLOTS = 16384, /* of the table that finds them */
    RT_TOKENS = 1 << 17,     /* marks of one stream that wait for the device */
    RT_STREAM_NAME = 64,
};
#define RT_DEV_END (UINT64_C(1) << 62) /* in the id of a token: the end of a range */

/* ---- clocks ----------------------------------------------------------------- */

/* One reading of a device's clock between two of the host's steady clock. */
struct rt_dev_reading {
    int64_t before_ns, device_ns, after_ns;
};
/* How a device's clock runs against the host's: a line through an old reading and the newest. */
struct rt_dev_clock {
    int64_t device_ns, host_ns; /* newest */
    int64_t base_device_ns, base_host_ns;
    int64_t mid_device_ns, mid_host_ns; /* the next base */
    double rate;                        /* host ns per device ns */
    int64_t width_ns;                   /* of the newest reading: twice the uncertainty */
    int readings;
};
void rt_dev_clock_add(struct rt_dev_clock *c, const struct rt_dev_reading *r);
/* Is it time for the next reading?  Soon in the beginning, then once a second. */
bool rt_dev_clock_is_due(const struct rt_dev_clock *c, int64_t now_ns);
int64_t rt_dev_clock_host(const struct rt_dev_clock *c, int64_t device_ns);
/* Nanoseconds of a clock of the host. */
int64_t rt_dev_now(clockid_t id);

/* ---- back ends -------------------------------------------------------------- */

/* A token that waits in the queue of a stream. */
struct rt_token {
    _Atomic uint64_t turn; /* whose turn this place of the queue is */
    uint64_t id;           /* of the mark or range; RT_DEV_END; 0: the event could not be had */
    uint64_t ticks;        /* of the MARK or BEGIN record: with id it names the event */
    void *_Atomic event;   /* the back end's */
    uint32_t name;         /* text of the record, for hangs */
    uint32_t is_command;   /* the event is that of a command, and tells start and end */
    uint32_t pad[2];
};
static_assert(sizeof(struct rt_token) == 48, "token");

/* Whoever brings a stream into CLOSED, from the state it has seen, has it alone. */
enum rt_stream_state {
    RT_STREAM_CLOSED, /* none: its place is free, or somebody makes or unmakes it */
    RT_STREAM_LIVE,
    RT_STREAM_GONE, /* destroyed: its tokens are still waited for */
    RT_STREAM_LOST  /* the device was reset: its tokens must not be touched */
};

struct rt_stream {
    void *handle;
    const struct rt_dev_ops *ops;
    _Atomic int state; /* enum rt_stream_state */
    uint16_t index;    /* in the list of all streams */
    uint32_t device, number;
    char name[RT_STREAM_NAME];
    void *own;              /* the back end's */
    _Atomic uint32_t epoch; /* of the capture that has its STREAM record */
    /* the queue: any thread puts, the poller takes */
    struct rt_token *token;
    _Atomic uint64_t put;
    uint64_t taken;
    int64_t last_ns; /* device times of a stream do not step back */
    /* commands of the program have a track of their own, the key of which is the address of this */
    int64_t last_command_ns;
    _Atomic uint32_t command_epoch;
    uint64_t waiting_at; /* place of the oldest token, and since when it is that */
    uint64_t waiting_since;
    bool said_hang;
};

enum rt_dev_answer { RT_DEV_DONE, RT_DEV_NOT_YET, RT_DEV_LOST };

struct rt_dev_ops {
    enum mstx_device_kind kind;
    const char *name;
    /* Find out about a new stream (device, number, name when it has none) and make what its
     * tokens need.  On the thread that told of it or marked first; false: it cannot be used. */
    bool (*open)(struct rt_stream *s);
    /* Is the stream captured into a graph just now?  NULL: never. */
    bool (*is_capturing)(struct rt_stream *s);
    /* Queue an event and keep it in t->event; false: there is none to be had.  Never blocks. */
    bool (*mark)(struct rt_stream *s, struct rt_token *t);
    /* Was it reached?  *host_ns: when, by CLOCK_MONOTONIC. */
    enum rt_dev_answer (*poll)(struct rt_stream *s, struct rt_token *t, int64_t *host_ns);
    /* The same of a command. NULL: commands of this kind tell nothing. */
    enum rt_dev_answer (*command)(struct rt_stream *s, struct rt_token *t, int64_t *start_ns,
                                  int64_t *end_ns);
    /* Give the event of a token back. */
    void (*release)(struct rt_stream *s, struct rt_token *t);
    /* Before and after a run of polls of one stream: compare clocks when it is time, make the
     * stream's context that of this thread, and put back what was.  false: not now. */
    bool (*enter)(struct rt_stream *s, int64_t now_ns);
    void (*leave)(struct rt_stream *s);
    /* The device is about to be reset: nothing of the stream may be touched by close. The poller may
     * still be at it. */
    void (*lose)(struct rt_stream *s);
    /* The last token was taken and the stream is gone, or lost. */
    void (*close)(struct rt_stream *s);
};
extern const struct rt_dev_ops rt_dev_opencl, rt_dev_cuda, rt_dev_acl;

/* The library when the process has loaded it, else (may_load) loaded by name; NULL: none. */
void *rt_dev_library(const char *const names[], bool may_load);
/* Memory that is never given back one by one. NULL: none left. */
void *rt_dev_map(size_t bytes);

/* A stream that its back end made itself, as mstx_stream_made. */
int rt_dev_stream_made(const struct rt_dev_ops *ops, void *handle, const char *name);

#endif
