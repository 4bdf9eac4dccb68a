/* SPDX-License-Identifier: MIT
 *
 * rt: the recorder inside a training process; what its files share.
 *
 *    caller ──► rt_abi, rt_nvtx ──► rt_mark ──► ring of the thread ──► r0001.0001.seg
 *                (entry points)     (hot path)       ▲      strings ──► strings.seg
 *                                                    │
 *              rt_helper: one thread per process prepares the next segment of every
 *              ring, reads the clocks once a second and answers `msprobe ctl`
 *
 * Rules of every rt_ file: libc and pthread alone; no exit, no stdout, no signal handler;
 * no lock, allocation or system call on the hot path; whatever fails is counted, said once
 * on stderr and in the capture, and the program goes on.  Memory comes from mmap, because a
 * mark may come from a signal handler that interrupted malloc.
 */
#ifndef MSTX_RT_H
#define MSTX_RT_H

#include "mstx/capture.h"
#include "mstx/rt_same.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define RT_LIKELY(x)   __builtin_expect(!!(x), 1)
#define RT_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define RT_COLD        __attribute__((noinline, cold))
#define RT_INLINE      static inline __attribute__((always_inline))
/* Side by side in memory: a program that computes between its calls throws code out of the cache too. */
#define RT_HOT __attribute__((hot))
/* Reads what its owner may be changing: a torn copy does no harm. */
#define RT_RACY __attribute__((no_sanitize("thread")))

enum {
    RT_DOMAINS = 16384,
    RT_RINGS = 8192,
    RT_NAMES = 1024,    /* entries of a thread's cache of texts */
    RT_CALL_NAMES = 16, /* the same of names that stay where they are, four to a line */
    RT_PUSHES = 512,    /* open push ranges of a thread, all domains together */
    RT_FILES = 64,      /* segment files a flight recorder's ring may own */
    RT_RETIRED = 4,     /* full segments waiting to be unmapped */
    RT_SLOT_BITS = 20,  /* 2^20 ranges may be open at once */
    RT_GEN_BITS = 12,   /* a stale id is known for 2^12 uses of its slot */
    RT_CHUNK = 64,      /* slots a ring takes at a time */
    RT_PATH = 4096,
};

/* ---- locks ------------------------------------------------------------------ */

/* Held for some hundred instructions, never on the hot path.  Not a pthread mutex: a forked
 * child must be able to start anew from any state. */
struct rt_lock {
    atomic_int held;
};
/* No signal comes to a thread that holds one: a handler may mark, and would wait for itself. */
void rt_lock(struct rt_lock *l);
void rt_unlock(struct rt_lock *l);

/* ---- domains ---------------------------------------------------------------- */

/* Bits of rt_domain.live. */
enum { RT_RECORD = 1, RT_TAP = 2, RT_DEAD = 4 /* destroyed: said once */ };

struct rt_domain {
    _Atomic uint8_t live; /* 0: a call in this domain costs one load and a branch */
    bool destroyed;
    bool foreign_memory; /* an allocator known to pass uninitialised handles */
    uint16_t number;
    _Atomic uint32_t epoch; /* of the capture whose strings define this domain */
    const char *name;
    void *next; /* the same domain in the chained tool */
    void *next_nvtx;
    uint8_t pad[24];
};
extern struct rt_domain rt_domains[RT_DOMAINS];

/* The domain of a handle; NULL for what is no handle of ours.  Number 0 is the default. */
static inline struct rt_domain *rt_domain_of(const void *handle)
{
    if (handle == NULL)
        return &rt_domains[0];
    uintptr_t off = (uintptr_t)handle - (uintptr_t)rt_domains;
    if (RT_UNLIKELY(off >= sizeof rt_domains || off % sizeof rt_domains[0] != 0))
        return NULL;
    return &rt_domains[off / sizeof rt_domains[0]];
}
/* Find or make; NULL when the name is refused or the table is full. */
struct rt_domain *rt_domain_create(const char *name);
void rt_domain_destroy(struct rt_domain *d);
/* Recompute `live` of all domains from the filter and the state of recording. */
void rt_domain_refresh(void);
/* New lists, comma separated; NULL or "" for none. */
void rt_domain_filter(const char *include, const char *exclude);
/* Write the definitions of all domains into a new strings.seg. */
void rt_domain_define_all(void);
uint32_t rt_domain_count(void);

/* ---- rings ------------------------------------------------------------------ */

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
    /* The writer's: touched by the owning thread (and its signal handlers) alone.  The first line of
     * the cache is all that a communication call needs of it. */
    uint32_t busy;  /* how many record calls are under way: above 1 in a signal handler */
    uint32_t pos;   /* next record */
    uint32_t limit; /* where the slow path is taken: half of the segment, then its end */
    uint32_t clock; /* rt_clock_kind */
    struct mstx_rec *rec;
    struct mstx_seg *seg;
    uint32_t number, tid;
    uint32_t slot_chunk, slot_at; /* where the next range slot is looked for */
    uint64_t began;               /* ticks when the segment was taken into use */
    uint32_t comm_range; /* the newest range that the program itself opened for communication */
    uint32_t epoch;      /* of the capture */
    uint32_t cap;
    uint32_t mark_ids;
    int32_t top;   /* of pushes, -1: none */
    uint64_t lost; /* records dropped since the last one written */
    uint32_t lost_why;
    uint64_t part;
    struct rt_file files[RT_FILES]; /* flight recorder: all; else the current one and the last */
    uint32_t nfiles, file_at;       /* file_at: the current one, the oldest is behind it */
    _Atomic bool disk_full;         /* why the next file failed */
    /* Handed over between writer and helper. */
    _Atomic int next_state;
    struct rt_file next;
    uint32_t next_bytes, made; /* size and number of the next file */
    struct rt_file retired[RT_RETIRED];
    _Atomic uint32_t retired_full; /* one bit per entry that waits for the helper */
    struct rt_ring *free_next;
    bool in_use;
    const struct mstx_text *names[RT_NAMES];
    _Alignas(64) struct {
        const char *_Atomic text; /* NULL: free; once taken a place keeps its text */
        uint32_t id;
    } call_names[RT_CALL_NAMES][4];
    struct rt_push pushes[RT_PUSHES];
};

/* initial-exec: one load; a preloaded or early opened library has room for it. */
extern __thread struct rt_ring *rt_tls __attribute__((tls_model("initial-exec")));

/* Start recording if need be and give the thread a ring; NULL when there can be none. */
struct rt_ring *rt_ring_open(void);
static inline struct rt_ring *rt_ring_of_thread(void)
{
    struct rt_ring *r = rt_tls;
    return RT_LIKELY(r != NULL) ? r : rt_ring_open();
}
/* The rest of rt_reserve when limit is met; NULL: dropped and counted. */
struct mstx_rec *rt_ring_more(struct rt_ring *r, uint32_t at, uint32_t n);
/* The process ring, number 0; caller holds rt.process_lock. */
void rt_ring_process(const struct mstx_rec *rec);
/* Helper: prepare wanted segments, unmap full ones. */
void rt_ring_serve(void);
/* Helper: let rings whose preparation failed try again. */
void rt_ring_retry(void);
bool rt_ring_start(void);
void rt_ring_close_all(void);
/* Write the newest calibration into the process ring's header. */
void rt_ring_date(const struct mstx_calib *c);
/* In a forked child: forget the parent's rings without touching them. */
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
/* Where in r->rec; false: rt_ring_more() says where. */
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
/* What the next call writes comes into the cache meanwhile: past the end of the file nothing does. */
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
    do { /* again if a handler wrote between the first line and the third */
        const uint32_t pos = *(volatile uint32_t *)&r->pos;
        __atomic_store_n(&r->seg->head, pos, __ATOMIC_RELEASE);
        *(volatile uint32_t *)&r->busy = 0;
        atomic_signal_fence(memory_order_seq_cst);
        if (RT_LIKELY(*(volatile uint32_t *)&r->pos == pos))
            return rt_expect(r, pos);
        *(volatile uint32_t *)&r->busy = 1;
    } while (true);
}

/* ---- texts ------------------------------------------------------------------ */

/* The entry of a text, written to strings.seg when it is new; NULL: no room. n: strlen. */
const struct mstx_text *rt_text_intern(const char *text, size_t n);
/* Append a definition; its id, or 0. */
uint32_t rt_text_define(enum mstx_text_kind kind, uint16_t domain, uint64_t key, const void *bytes,
                        size_t n);
/* Copy a text of this capture by its id; false, and "", when there is none. */
bool rt_text_copy(uint32_t id, char *out, size_t cap);
bool rt_text_start(void);
void rt_text_close(void);
void rt_text_forget(void);
uint64_t rt_text_count(void);
/* A copy that outlives captures and forks; NULL: no memory. */
char *rt_keep(const void *bytes, size_t n);

/* Id of a message: one compare when this thread gave the same text from the same place before.
 * UINT32_MAX: mstx refuses it; 0: no room for more texts. */
uint32_t rt_text_slow(struct rt_ring *r, const char *text, size_t place);
static inline size_t rt_text_place(const char *text)
{
    return (size_t)(((uintptr_t)text * 0x9E3779B97F4A7C15u) >> 54);
}
/* The id if it is one compare away, else 0. */
static inline uint32_t rt_text_known(const struct rt_ring *r, const char *text)
{
    const struct mstx_text *e = r->names[rt_text_place(text)];
    return RT_LIKELY(e != NULL && rt_same((const char *)(e + 1), e->len, text)) ? e->id : 0;
}
static inline uint32_t rt_text_id(struct rt_ring *r, const char *text)
{
    const uint32_t id = rt_text_known(r, text);
    return RT_LIKELY(id != 0) ? id : rt_text_slow(r, text, rt_text_place(text));
}

/* The same of a text that stays for ever: it need not be looked at.  A line of the cache holds four. */
uint32_t rt_text_keep_id(struct rt_ring *r, const char *text, size_t line);
static inline uint32_t rt_text_id_of_call(struct rt_ring *r, const char *text)
{
    const size_t line = (size_t)(((uintptr_t)text * 0x9E3779B97F4A7C15u) >> 60);
    for (int i = 0; i < 4; i++) {
        if (atomic_load_explicit(&r->call_names[line][i].text, memory_order_relaxed) == text)
            return r->call_names[line][i].id;
    }
    return rt_text_keep_id(r, text, line);
}
static_assert(RT_CALL_NAMES == 1 << 4, "lines are 4 bits");

/* ---- clock ------------------------------------------------------------------ */

void rt_clock_choose(const char *wanted);
uint64_t rt_clock_slow(void);
/* CLOCK_MONOTONIC in nanoseconds, as the rest of the recorder sees it. */
int64_t rt_clock_steady(void);
/* Compare clocks with other hosts by TCP until the process ends; in a forked child: forget it. */
void rt_clock_net_start(void);
void rt_clock_net_stop(void);
void rt_clock_net_forget(void);
extern unsigned rt_clock_fake_host; /* 0: none, see rt_clock_sync.h */
void rt_clock_calibrate(struct mstx_calib *c);
/* Read the clocks, write a CALIB record and the newest calibration of every header. */
void rt_clock_tick(void);
extern uint32_t rt_clock_kind; /* enum mstx_clock */

/* Is it a counter of the processor, read by one instruction? */
static inline bool rt_clock_is_near(uint32_t clock)
{
#if defined(__x86_64__)
    return clock == MSTX_CLOCK_TSC;
#elif defined(__aarch64__)
    return clock == MSTX_CLOCK_CNTVCT;
#else
    (void)clock;
    return false;
#endif
}
static inline uint64_t rt_ticks_near(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    uint64_t t;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
    return t;
#else
    return 0;
#endif
}
static inline uint64_t rt_ticks_of(uint32_t clock)
{
    return RT_LIKELY(rt_clock_is_near(clock)) ? rt_ticks_near() : rt_clock_slow();
}
static inline uint64_t rt_ticks(void)
{
    return rt_ticks_of(rt_clock_kind);
}
static inline uint64_t rt_ring_ticks(const struct rt_ring *r)
{
    return rt_ticks_of(r->clock);
}

/* ---- process ---------------------------------------------------------------- */

enum rt_policy { RT_BLOCK, RT_DROP };

/* What the environment asked for; read once. */
struct rt_config {
    char out[RT_PATH], stage[RT_PATH];
    char include[1024], exclude[1024];
    enum rt_policy policy;
    double flight_s;
    double hang_s;      /* a communication call that takes longer hangs; 0: do not look */
    uint64_t max_bytes; /* 0: no limit */
    uint32_t segment_bytes;
    int32_t rank, world_size, local_rank;
    char rank_from[32];
    bool wait; /* recording starts stopped, `msprobe ctl start` begins it */
    bool no_nvtx;
    int quiet; /* 1: no word about where the capture is; 2: none at all */
    uint64_t tool_id;
    char device[16]; /* what all stream handles are */
    char next_mstx[RT_PATH];
};

enum rt_state { RT_IDLE, RT_RUNNING, RT_REFUSED, RT_ENDED };

struct rt {
    struct rt_config conf;
    _Atomic int state;     /* enum rt_state */
    _Atomic int recording; /* 0 while stopped by ctl */
    uint32_t epoch;        /* rises with every capture of this process: a fork starts a new one */
    uint32_t pid;
    uint64_t start_jiffies;
    _Atomic int dir;    /* of the process directory (on the stage, if there is one): rt_file_dir */
    char path[RT_PATH]; /* its name */
    char target[RT_PATH];     /* where it belongs in the end; equal to path without a stage */
    struct mstx_seg proto;    /* header of every segment of this process; under proto_lock */
    _Atomic uint64_t tick_hz; /* 0: not known yet */
    struct mstx_control *control;
    struct mstx_control *parents; /* in a forked child until its capture begins, else NULL */
    _Atomic uint64_t bytes;       /* of all segment files made, and of the texts */
    _Atomic uint64_t lost_no_ring;
    _Atomic uint32_t said; /* one bit per enum rt_say */
    struct rt_lock start_lock, text_lock, ring_lock, domain_lock, process_lock;
    struct rt_lock keep_lock, proto_lock, schema_lock, comm_lock, stream_lock;
};
extern struct rt rt;

/* Begin the capture if it has not begun; false when there is none. By default a process that
 * nobody configured records into ./mstx-capture once a tool entry point was called. */
bool rt_start(bool by_default);
static inline bool rt_is_running(void)
{
    return atomic_load_explicit(&rt.state, memory_order_acquire) == RT_RUNNING;
}
void rt_set_recording(bool on, enum mstx_why why);
void rt_read_env(struct rt_config *c);
/* From here on it means the same wherever the program goes. */
void rt_make_absolute(char path[RT_PATH]);

/* Things that are said once. */
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
};
/* One line on stderr and a NOTE in the capture, the first time. */
void rt_say(enum rt_say what, enum mstx_why why, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a line that others made; the caller says it once. */
void rt_note(const char *text);

/* ---- files ------------------------------------------------------------------ */

/* What we write must not end the program: a file past its size limit (SIGXFSZ) and a pipe without
 * a reader (SIGPIPE) are errors here.  `all`: no other signal either meanwhile. */
struct rt_calm {
    sigset_t before, pending;
};
void rt_calm(struct rt_calm *c, bool all);
void rt_calm_end(const struct rt_calm *c);

/* The process directory.  Daemons close every descriptor they do not know and files of theirs get
 * the numbers, so it is looked at before it is used, and opened again by name; -1 with errno. */
int rt_file_dir(void);
/* A file in it, or -1. */
int rt_file_open(const char *name);
/* Make the process directory and its control file; false (and said why) when it cannot be. */
bool rt_file_start(void);
/* Takes away what a start that failed has made: others would wait for the process to answer. */
void rt_file_withdraw(void);
/* What hosts that share a counter have in common. */
void rt_file_boot_id(uint8_t id[16]);
/* A new file of that many bytes, blocks allocated and pages present, header written from
 * rt.proto; NULL with errno. It gets its name when it is complete: a kill leaves a valid file
 * or one that readers ignore. */
struct mstx_seg *rt_file_create(const char *name, uint32_t ring, uint32_t tid, size_t bytes);
/* The same in two steps: an open file under a temporary name, or -1; then its real name. */
int rt_file_begin(const char *name, size_t bytes);
bool rt_file_name(const char *name);
/* Blocks for the first `bytes` bytes of a file; 0 or an errno. */
int rt_file_allocate(int fd, size_t bytes);
size_t rt_file_bytes(const struct mstx_seg *seg);
/* Give back the blocks behind head of a file that has `all` bytes; the mapping stays good. How
 * many have blocks now. */
size_t rt_file_trim(const struct mstx_seg *seg, const char *name, size_t all);
/* Copy every segment of this process into `to` (made when missing); 0 or an errno. */
int rt_file_snapshot(const char *to);
/* Stage: move finished segments (all: whatever is there) to the target. */
void rt_file_unstage(bool all);
void rt_file_close(void);
/* In a forked child: the same, but the parent's control page stays in sight. */
void rt_file_forget(void);
/* Does the parent record now? Lets go of its page; `otherwise` without one. */
bool rt_file_ask_parent(bool otherwise);

/* ---- helper ----------------------------------------------------------------- */

bool rt_helper_start(void);
void rt_helper_stop(void);
void rt_helper_wake(void);
void rt_helper_forget(void);

/* ---- hangs ------------------------------------------------------------------ */

/* Helper, once a second: tell of communication calls that do not return. */
void rt_hang_look(void);
/* A mark on a stream that the device does not come to; from the poller. */
struct rt_hang_mark {
    uint64_t id, ticks; /* of the mark or range */
    uint32_t name;      /* its text */
    const char *stream;
};
void rt_hang_on_device(const struct rt_hang_mark *m);
/* Is that many ticks longer than a call may take? */
bool rt_hang_is_long(uint64_t ticks);
/* Stack pointer and place of a thread that runs; false: not to be had. */
bool rt_thread_sample(uint32_t tid, uint64_t *sp, uint64_t *pc);
/* Memory of this process that may not be there; how many bytes of it. */
size_t rt_read_self(uint64_t address, void *to, size_t n);
/* The stacks of all threads but the helper's as text; returns its length. */
size_t rt_stacks(char *out, size_t cap);

/* ---- marks ------------------------------------------------------------------ */

/* Attributes that NVTX events carry. */
struct rt_attr {
    uint32_t fields, category, argb, payload_type;
    uint64_t payload;
};
struct rt_payload {
    uint64_t schema;
    size_t n;
    const void *bytes;
};
struct rt_event {
    const struct rt_attr *attr;        /* or NULL */
    const struct rt_payload *payloads; /* or NULL */
    size_t npayloads;
    /* Instead of these: continuation records as they are, each but the last with MSTX_F_MORE. */
    const struct mstx_rec *ready;
    uint32_t nready;
    uint32_t name;
    uint8_t flags;
};

/* May this message be recorded by mstx? */
bool rt_message_ok(const char *message);
void rt_mark(struct rt_domain *d, const char *message, void *stream);
uint32_t rt_range_start(struct rt_domain *d, const char *message, void *stream);
void rt_range_end(struct rt_domain *d, uint64_t id);
/* The same with everything an NVTX event may carry. */
void rt_mark_event(struct rt_domain *d, const struct rt_event *e);
uint32_t rt_range_start_event(struct rt_domain *d, const struct rt_event *e);
/* The tap's word of the range that ended; 0 when there was none. */
uint64_t rt_range_end_event(struct rt_domain *d, uint64_t id, const struct rt_event *e);
/* A range that is not recorded but has an id and a tap's word; 0: no room. */
uint32_t rt_range_ghost(void);
void rt_range_set_other(uint32_t id, uint64_t other);
/* Depth of the range opened or closed, from 0; negative: none. */
int rt_push(struct rt_domain *d, const struct rt_event *e);
int rt_pop(struct rt_domain *d, const struct rt_event *e);
void rt_counter(struct rt_domain *d, uint32_t name, uint64_t bits, bool real);
/* A memory record; mem NULL: without one. */
void rt_memory(struct rt_domain *d, uint8_t type, uint64_t id, uint32_t device, uint64_t arg,
               const struct mstx_rec_mem *mem);
/* A communication call: its CALL is written, n continuation records go behind it, then rt_publish. */
struct rt_call {
    struct mstx_rec *more; /* NULL: there is no room, and nothing to publish */
    uint64_t id;           /* 0: none */
};
struct rt_call rt_call_start(struct rt_ring *r, const struct rt_domain *d, uint32_t name,
                             uint32_t n);
/* One on a stream: a BEGIN with n ready continuation records; 0: none. */
uint32_t rt_range_start_ready(struct rt_ring *r, const struct rt_domain *d, uint32_t name,
                              void *stream, const struct mstx_rec *more, uint32_t n);
/* The end of either with such records. */
void rt_range_end_ready(struct rt_domain *d, uint64_t id, const struct mstx_rec *more, uint32_t n);
/* Tell the taps of a start; id 0: not recorded, then one is made. The id to end it with. */
uint32_t rt_range_tell_start(struct rt_domain *d, const char *message, void *stream, uint32_t id);
bool rt_range_is_open(uint32_t id);
/* Of an open range. */
uint64_t rt_range_ticks(uint32_t id);
uint32_t rt_range_text(uint32_t id);
uint16_t rt_range_domain(uint32_t id);
/* All open ranges of a domain; one that ends meanwhile may still be told. */
typedef void rt_range_fn(void *arg, uint32_t id, uint64_t ticks);
void rt_ranges_each(uint16_t domain, rt_range_fn *fn, void *arg);
/* The domain "communication" once a hook is there, else NULL. */
extern struct rt_domain *rt_comm_domain;
/* A program's own range in it; that a range in it was told to hang. */
void rt_comm_framework_start(uint32_t id, uint32_t tid);
void rt_comm_told(uint64_t id);
/* First chunk of range slots for a ring; ranges still open. */
bool rt_slots_take(struct rt_ring *r);
uint32_t rt_slots_open(void);
void rt_slots_forget(void);

/* ---- taps ------------------------------------------------------------------- */

/* Somebody else who is told of marks and ranges: the next tool of the process, or mspti.
 * Called on the marking thread after the record was written.  other: a word that a tap may set
 * when a range starts and finds again when it ends. */
enum rt_tap_kind { RT_TAP_MARK, RT_TAP_START, RT_TAP_END };
typedef void rt_tap_fn(enum rt_tap_kind kind, struct rt_domain *d, const char *message,
                       void *stream, uint32_t id, uint64_t *other);
enum { RT_TAP_NEXT, RT_TAP_MSPTI, RT_TAPS };
/* NULL: nobody. */
void rt_set_tap(int which, rt_tap_fn *fn);
void rt_tell(enum rt_tap_kind kind, struct rt_domain *d, const char *message, void *stream,
             uint32_t id, uint64_t *other);

#endif
