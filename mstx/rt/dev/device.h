/* SPDX-License-Identifier: MIT
 *
 * device: device times of marks and ranges with a stream; what the back ends (cpu, opencl,
 * cuda, acl) and their common part share.
 *
 *      mark with a stream                     device                    poller thread
 *   ┌──────────────────────┐  event     ┌──────────────────┐        ┌──────────────────────┐
 *   │ ticks, host record   │──────────► │ .. work, event,  │        │ polls oldest event   │
 *   │ token into the       │            │ work ..          │◄───────│ of every stream      │
 *   │ stream's queue       │──────────────────────────────────────► │ DEVICE record        │
 *   └──────────────────────┘            └──────────────────┘        └──────────────────────┘
 *
 * A mark never waits for the device and never queries it: it queues an event behind the work in the
 * stream and leaves a token.  When that is impossible (no event left, a full queue, an error, a
 * capture into a graph), only the host record is written, with a flag.
 *
 * A stream handle is opaque until a hook or the program has announced its kind: then it is in the
 * table of streams, and only then its back end uses it.
 */
#ifndef MSTX_RT_DEV_DEVICE_H
#define MSTX_RT_DEV_DEVICE_H

#include "mstx/mstx_device.h"
#include "mstx/rt/state.h"

enum {
    RT_STREAMS = 4096,       /* streams known at the same time */
    RT_STREAM_SLOTS = 16384, /* slots of the hash table of handles */
    RT_TOKENS = 1 << 17,     /* marks of one stream in flight */
    RT_STREAM_NAME = 64,
};
#define RT_DEV_END (UINT64_C(1) << 62) /* flag in the id of a token: the end of a range */

/* ---- clocks ----------------------------------------------------------------- */

/* A reading of a device's clock between two readings of the host's steady clock. */
struct rt_dev_reading {
    int64_t before_ns, device_ns, after_ns;
};
/* Relation of a device's clock to the host's: a line through an old reading and the newest. */
struct rt_dev_clock {
    int64_t device_ns, host_ns; /* newest */
    int64_t base_device_ns, base_host_ns;
    int64_t mid_device_ns, mid_host_ns; /* the next base of the line */
    double rate;                        /* host ns per device ns */
    int64_t width_ns;                   /* width of the newest reading: twice the uncertainty */
    int readings;
};
void rt_dev_clock_add(struct rt_dev_clock *c, const struct rt_dev_reading *r);
/* Tells whether the next reading is due: soon in the beginning, then once a second. */
bool rt_dev_clock_is_due(const struct rt_dev_clock *c, int64_t now_ns);
int64_t rt_dev_clock_host(const struct rt_dev_clock *c, int64_t device_ns);
/* Nanoseconds of a clock of the host. */
int64_t rt_dev_now(clockid_t id);

/* ---- back ends -------------------------------------------------------------- */

/* A token that waits in the queue of a stream. */
struct rt_token {
    _Atomic uint64_t turn; /* 2 * lap: free for that lap; one more: full */
    uint64_t id;         /* id of the mark or range, maybe with RT_DEV_END; 0: no event, skipped */
    uint64_t ticks;      /* ticks of the MARK or BEGIN record: with id the key of the record */
    void *_Atomic event; /* the back end's */
    uint32_t name;       /* text of the record, for hangs */
    uint32_t is_command; /* the event belongs to a command, with its start and end */
    uint32_t pad[2];
};
static_assert(sizeof(struct rt_token) == 48, "token");

/* A thread that changes a stream from a state it has read to CLOSED (compare-and-swap) owns the
 * stream exclusively. */
enum rt_stream_state {
    RT_STREAM_CLOSED, /* free, or being opened or closed by its owner */
    RT_STREAM_LIVE,
    RT_STREAM_GONE, /* destroyed: its tokens are still polled */
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
    _Atomic uint32_t epoch; /* epoch of the capture that has its STREAM record */
    /* the queue: any thread appends, the poller removes */
    struct rt_token *token;
    _Atomic uint64_t put;
    uint64_t taken;
    int64_t last_ns; /* last device time: times of a stream do not decrease */
    /* Commands of the program have a track of their own; its key is the address of
     * last_command_ns. */
    int64_t last_command_ns;
    _Atomic uint32_t command_epoch;
    uint64_t waiting_at; /* position of the oldest token, and since when that is the oldest */
    uint64_t waiting_since;
    bool said_hang;
};

enum rt_dev_answer { RT_DEV_DONE, RT_DEV_NOT_YET, RT_DEV_LOST };

struct rt_dev_ops {
    enum mstx_device_kind kind;
    const char *name;
    /* Finds out about a new stream (device, number, name when it has none) and makes what its
     * tokens need. Called on the thread that announced the stream or marked first; false: not
     * usable. */
    bool (*open)(struct rt_stream *s);
    /* Tells whether the stream is being captured into a graph. NULL: never. */
    bool (*is_capturing)(struct rt_stream *s);
    /* Queues an event and keeps it in t->event; false: no event available. Never blocks. */
    bool (*mark)(struct rt_stream *s, struct rt_token *t);
    /* Tells whether the device has reached the event. *host_ns: when, by CLOCK_MONOTONIC. */
    enum rt_dev_answer (*poll)(struct rt_stream *s, struct rt_token *t, int64_t *host_ns);
    /* Tells whether a command has ended, with its start and end. NULL: commands of this kind have
     * no times. */
    enum rt_dev_answer (*command)(struct rt_stream *s, struct rt_token *t, int64_t *start_ns,
                                  int64_t *end_ns);
    /* Releases the event of a token. */
    void (*release)(struct rt_stream *s, struct rt_token *t);
    /* Called before and after a run of polls of one stream: enter compares clocks when that is due
     * and makes the stream's context current on this thread; leave restores the previous context.
     * false: not possible now. */
    bool (*enter)(struct rt_stream *s, int64_t now_ns);
    void (*leave)(struct rt_stream *s);
    /* The device is about to be reset: close must not use the stream any more. The poller may still
     * use it at this moment. */
    void (*lose)(struct rt_stream *s);
    /* Frees a stream that is destroyed or lost, after its last token was taken. */
    void (*close)(struct rt_stream *s);
};
extern const struct rt_dev_ops rt_dev_opencl, rt_dev_cuda, rt_dev_acl;

/* Returns the library if the process has loaded it, else (may_load) loads it by name; NULL:
 * none. */
void *rt_dev_library(const char *const names[], bool may_load);
/* Allocates memory that is never freed one by one. NULL: none left. */
void *rt_dev_map(size_t bytes);

/* Announces a stream that its back end made itself, as mstx_stream_made does. */
int rt_dev_stream_made(const struct rt_dev_ops *ops, void *handle, const char *name);

#endif
