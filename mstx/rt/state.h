/* SPDX-License-Identifier: MIT
 *
 * state: the data that every file of the recorder uses: the configuration, the state of the
 * capture, locks, and messages.  It calls no other file of the recorder: functions that it needs
 * from files above are registered by them (struct rt: begin, define_note).
 *
 * Rules of every file in mstx/rt: libc and pthread alone; no exit, no stdout, no signal handler; no
 * lock, allocation or system call on the hot path; a failure is counted, reported once on stderr and
 * in the capture, and the program goes on.  Memory comes from mmap, because a mark may come from a
 * signal handler that interrupted malloc.
 */
#ifndef MSTX_RT_STATE_H
#define MSTX_RT_STATE_H

#include "mstx/format/capture.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "probe/base/assert.h"

#define RT_LIKELY(x)   __builtin_expect(!!(x), 1)
#define RT_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define RT_COLD        __attribute__((noinline, cold))
#define RT_INLINE      static inline __attribute__((always_inline))
/* Places the hot functions side by side in memory: a program that computes between its calls evicts
 * code from the cache too. */
#define RT_HOT __attribute__((hot))
/* For a function that reads data which its owner may be changing: a torn copy is harmless. */
#define RT_RACY __attribute__((no_sanitize("thread")))

enum { RT_PATH = 4096 };

/* ---- locks ------------------------------------------------------------------ */

/* A lock held for a few hundred instructions, never on the hot path. Not a pthread mutex, because a
 * forked child must be able to reset it from any state. */
struct rt_lock {
    atomic_int held;
};
/* rt_lock blocks signals: a handler that marks could otherwise wait for a lock of its own
 * thread. */
void rt_lock(struct rt_lock *l);
void rt_unlock(struct rt_lock *l);
/* In a forked child, after all its locks were reset: restores the signal mask. */
void rt_unlock_all(void);

/* ---- process ---------------------------------------------------------------- */

enum rt_policy { RT_BLOCK, RT_DROP };

/* Configuration from the environment; read once. */
struct rt_config {
    char out[RT_PATH], stage[RT_PATH];
    char include[1024], exclude[1024];
    enum rt_policy policy;
    double flight_s;
    double hang_s;      /* a communication call is reported as hung after this; 0: no detection */
    uint64_t max_bytes; /* 0: no limit */
    uint32_t segment_bytes;
    int32_t rank, world_size, local_rank;
    char rank_from[32];
    bool wait; /* recording starts stopped; `msprobe ctl start` begins it */
    bool no_nvtx;
    int quiet; /* 1: no message about where the capture is; 2: no messages */
    uint64_t tool_id;
    char next_mstx[RT_PATH];
};

enum rt_state { RT_IDLE, RT_RUNNING, RT_REFUSED, RT_ENDED };

struct rt {
    struct rt_config conf;
    _Atomic int state;     /* enum rt_state */
    _Atomic int recording; /* 0 while stopped by ctl */
    uint32_t epoch; /* incremented with every capture of this process: a fork starts a new one */
    uint32_t pid;
    uint64_t start_jiffies;
    _Atomic int dir;    /* of the process directory (on the stage, if there is one): rt_file_dir */
    char path[RT_PATH]; /* path of the process directory */
    char target[RT_PATH];     /* its final place; equal to path without a stage */
    struct mstx_seg proto;    /* header of every segment of this process; under proto_lock */
    _Atomic uint64_t tick_hz; /* 0: not known yet */
    struct mstx_control *control;
    struct mstx_control *parents; /* in a forked child until its capture begins, else NULL */
    /* Registered by files above: begin starts a capture; define_note writes a NOTE into it. */
    bool (*begin)(bool by_default);
    void (*define_note)(enum mstx_why why, const char *text, size_t n);
    /* Totals of the capture. */
    _Atomic uint64_t bytes;   /* of all segment files made, and of the texts */
    _Atomic uint64_t records; /* in segments before the current one */
    _Atomic uint64_t dropped;
    _Atomic uint32_t segments;
    _Atomic uint64_t lost_no_ring;
    _Atomic uint32_t printed; /* messages printed so far: one bit per enum rt_say */
    struct rt_lock start_lock, text_lock, ring_lock, domain_lock, process_lock;
    struct rt_lock keep_lock, proto_lock, schema_lock, comm_lock, stream_lock;
};
extern struct rt rt;

/* Begins the capture of this process when one is configured and none has begun. Returns whether a
 * capture runs. For callers below recorder.c; callers above it use rt_recorder_start. */
bool rt_start(void);
static inline bool rt_is_running(void)
{
    return atomic_load_explicit(&rt.state, memory_order_acquire) == RT_RUNNING;
}

/* ---- messages ---------------------------------------------------------------- */

/* Messages that are printed once. */
enum rt_say {
    RT_SAY_START,
    RT_SAY_DIR,
    RT_SAY_SPACE,
    RT_SAY_IO,
    RT_SAY_MESSAGE,
    RT_SAY_RANGE,
    RT_SAY_DOMAIN,
    RT_SAY_STRINGS,
    RT_SAY_THREADS,
    RT_SAY_NVTX,
    RT_SAY_NEXT,
    RT_SAY_OTHER_DOMAIN,
    RT_SAY_PUSH,
    RT_SAY_BATCH,
    RT_SAY_DEVICE,
    RT_SAY_STATIC,
};
/* Writes one line to stderr and a NOTE into the capture, the first time. */
void rt_say(enum rt_say what, enum mstx_why why, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Writes a complete line as rt_say does; the caller makes sure that it is written once. */
void rt_note(const char *text);

#endif
