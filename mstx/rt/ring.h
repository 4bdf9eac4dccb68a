/* SPDX-License-Identifier: MIT
 *
 * ring: the ring of records of a thread; how a record is reserved and published.
 */
#ifndef MSTX_RT_RING_H
#define MSTX_RT_RING_H

#include "mstx/rt/ticks.h"

enum {
    RT_RINGS = 8192,
    RT_NAMES = 1024,    /* entries of a thread's cache of texts */
    RT_CALL_NAMES = 16, /* lines, of four, of its cache of the names of functions */
    RT_PUSHES = 512,    /* open push ranges of a thread, all domains together */
    RT_FILES = 64,      /* segment files a flight recorder's ring may own */
    RT_RETIRED = 4,     /* full segments waiting to be unmapped */
};

struct rt_file {
    struct mstx_seg *map; /* NULL: none */
    uint32_t number;      /* in the file's name */
};

struct rt_push {
    uint64_t ticks;
    uint32_t name;
    uint16_t domain;
    uint16_t depth; /* in its domain */
};

/* The next segment: wanted -> in work -> ready or failed. */
enum rt_next { RT_NEXT_NONE, RT_NEXT_WANTED, RT_NEXT_WORK, RT_NEXT_READY, RT_NEXT_FAILED };

struct rt_ring {
    /* Used by the owning thread (and its signal handlers) alone. A communication call needs only
     * the first cache line of these fields. */
    uint32_t busy;  /* depth of record calls under way: above 1 in a signal handler */
    uint32_t pos;   /* next record */
    uint32_t limit; /* position of the slow path: half of the segment, then its end */
    uint32_t clock; /* rt_clock_kind */
    struct mstx_rec *rec;
    struct mstx_seg *seg;
    uint32_t number, tid;
    uint32_t slot_chunk, slot_at; /* where the search for the next range slot begins */
    uint64_t began;               /* start of use of the segment, in ticks */
    uint32_t comm_range; /* the newest range that the program itself opened for communication */
    uint32_t epoch;      /* of the capture */
    uint32_t cap;
    uint32_t mark_ids;
    int32_t top;   /* of pushes, -1: none */
    uint64_t lost; /* records dropped since the last one written */
    uint32_t lost_why;
    uint64_t part;
    struct rt_file files[RT_FILES]; /* flight recorder: all; else the current one and the last */
    uint32_t nfiles, file_at;       /* file_at: index of the current one; the oldest follows it */
    _Atomic bool disk_full;         /* the next file failed because the disk is full */
    /* Shared between writer and helper. */
    _Atomic int next_state;
    struct rt_file next;
    uint32_t next_bytes, made; /* size and number of the next file */
    struct rt_file retired[RT_RETIRED];
    _Atomic uint32_t retired_full; /* one bit for each entry that the helper has to unmap */
    struct rt_ring *free_next;
    bool in_use;
    const struct mstx_text *names[RT_NAMES];
    _Alignas(64) struct {
        const char *_Atomic text; /* NULL: free; an entry, once set, keeps its text */
        uint32_t id;
    } call_names[RT_CALL_NAMES][4];
    struct rt_push pushes[RT_PUSHES];
};

/* initial-exec: access takes one load; the static TLS block has room for it in a library that is
 * preloaded or opened early. */
extern __thread struct rt_ring *rt_tls __attribute__((tls_model("initial-exec")));

/* Starts the recorder if necessary and gives the thread a ring; NULL when there can be none. */
struct rt_ring *rt_ring_open(void);
static inline struct rt_ring *rt_ring_of_thread(void)
{
    struct rt_ring *r = rt_tls;
    return RT_LIKELY(r != NULL) ? r : rt_ring_open();
}
/* Slow path of rt_reserve, when limit is reached. NULL: the records are dropped and counted. */
struct mstx_rec *rt_ring_more(struct rt_ring *r, uint32_t at, uint32_t n);
/* Helper: prepares requested segments, unmaps full ones. */
void rt_ring_serve(void);
/* Helper: lets rings whose preparation failed try again. */
void rt_ring_retry(void);
bool rt_ring_start(void);
void rt_ring_close_all(void);
/* In a forked child: drops the parent's rings without writing to them. */
void rt_ring_forget(void);
struct rt_totals {
    uint64_t records, dropped, bytes;
    uint32_t rings, segments, open_ranges;
};
void rt_ring_totals(struct rt_totals *t);

/*
 * Reserve and publish.  A signal handler may interrupt at any instruction and record too, so
 * pos is moved by one instruction, and head is published by the outermost call only.
 */
static inline uint32_t rt_bump(uint32_t *p, uint32_t n)
{
#if defined(__x86_64__)
    __asm__ volatile("xaddl %0, %1" : "+r"(n), "+m"(*p) : : "memory", "cc"); /* no lock prefix */
    return n;
#else
    return __atomic_fetch_add(p, n, __ATOMIC_RELAXED);
#endif
}
/* Reserves n records; sets *at to their index in r->rec. Returns false when the slow path,
 * rt_ring_more, has to decide. */
static inline bool rt_reserve_near(struct rt_ring *r, uint32_t n, uint32_t *at)
{
    rt_bump(&r->busy, 1);
    *at = rt_bump(&r->pos, n);
    return *at + n <= r->limit;
}
static inline struct mstx_rec *rt_reserve(struct rt_ring *r, uint32_t n)
{
    uint32_t at;
    return RT_LIKELY(rt_reserve_near(r, n, &at)) ? r->rec + at : rt_ring_more(r, at, n);
}
/* Prefetches the lines that the next call writes. Prefetching past the end of the file is
 * harmless. */
static inline void rt_expect(const struct rt_ring *r, uint32_t pos)
{
    const struct mstx_rec *next = r->rec + pos;
    __builtin_prefetch(next + 1, 1);
    __builtin_prefetch(next + 3, 1);
}
static inline void rt_publish(struct rt_ring *r)
{
    if (RT_UNLIKELY(r->busy != 1)) { /* in a signal handler: the interrupted call publishes */
        rt_bump(&r->busy, ~0u);
        return;
    }
    do { /* again if a handler wrote between the read of pos and the store to busy */
        const uint32_t pos = *(volatile uint32_t *)&r->pos;
        __atomic_store_n(&r->seg->head, pos, __ATOMIC_RELEASE);
        *(volatile uint32_t *)&r->busy = 0;
        atomic_signal_fence(memory_order_seq_cst);
        if (RT_LIKELY(*(volatile uint32_t *)&r->pos == pos))
            return rt_expect(r, pos);
        *(volatile uint32_t *)&r->busy = 1;
    } while (true);
}

static inline uint64_t rt_ring_ticks(const struct rt_ring *r)
{
    return rt_ticks_of(r->clock);
}

#endif
