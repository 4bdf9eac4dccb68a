/* SPDX-License-Identifier: MIT
 *
 * capture: the on-disk format that the in-process recorder writes and every
 * reader reads.  This file is the contract between the two: no code but a few
 * one-line helpers, and a static_assert for every offset.
 *
 * 1. Files
 *
 *   RUN/                                the directory given to `msprobe run -o`
 *   ├── rank_0/                         "rank_none" when the process has no rank
 *   │   ├── node7.4242.9f03ab61/        one directory per process: HOST.PID.TAG
 *   │   │   ├── r0000.0001.seg          ring 0: the process itself (calibration, state)
 *   │   │   ├── r0001.0001.seg          ring 1, its first segment file
 *   │   │   ├── r0001.0002.seg          ... and the next one
 *   │   │   ├── r0002.0001.seg          ring 2: another thread
 *   │   │   ├── strings.seg             every text, once, in the order of its id
 *   │   │   ├── control                 shared page of `msprobe ctl` and the recorder
 *   │   │   └── staged                  only while segments are on node-local storage: a text
 *   │   │                               file, one line, the directory where they are
 *   │   └── node7.4243.17c0aa02/        a forked worker of the same rank
 *   ├── rank_1/ ...
 *   └── snapshots/001/rank_0/...        `msprobe ctl snapshot`: a run directory of its own
 *
 *   TAG is 8 hex digits that make the name unique: two containers may give two
 *   processes the same host name and pid.  Readers take identity from the header, not
 *   from names.  A segment file whose name ends in ".tmp" is being copied: ignore it.
 *
 * 2. A segment file: one header page, then equal records
 *
 *        0 ┌──────────────────────────────────────────────┐
 *          │ identity: written once, before the name      │  struct mstx_seg, 0..1023
 *          │ appears in the directory                     │
 *     1024 ├──────────────────────────────────────────────┤
 *          │ head, dropped, state: the writer's line      │  one cache line
 *     1088 ├──────────────────────────────────────────────┤
 *          │ newest calibration: the helper thread's line │  one cache line
 *     1152 ├──────────────────────────────────────────────┤
 *          │ zero                                         │
 *     4096 ├────────┬────────┬────────┬────────┬─────┬────┤
 *          │ rec 0  │ rec 1  │ rec 2  │  ...   │ cap-1    │  capacity * 32 bytes
 *          └────────┴────────┴────────┴────────┴─────┴────┘
 *
 *   Records [0, head) are complete; bytes behind head are unspecified (prefaulted zero
 *   bytes, or the record that a kill interrupted).  The writer stores the records, then
 *   head with release order; a reader loads head with acquire order and takes
 *   min(head, capacity, (file size - 4096) / 32).
 *
 *   Records of one ring are in program order; their ticks rise, except that a record
 *   written by a signal handler may follow the one it interrupted with smaller
 *   ticks, and that DEVICE has the ticks of another record.  Different rings are merged by ticks.
 *
 *   part 0: a file that was prepared and is not in use yet; skip it.  tid and first_ticks are
 *   written when a segment is taken into use, before part.
 *
 *   part numbers the segments of a ring from 1 without gaps in the order of time.  Without a
 *   flight recorder part equals the number in the name.  A flight recorder reuses its files:
 *   the name keeps its number, part keeps rising.  Reuse is: part = 0; head = 0; the rest;
 *   part = new value (release).  So a reader of a live flight recorder loads part, copies
 *   head and records, loads part again and keeps the copy when part was the same and not 0.
 *   A reader of a flight capture shows records younger than (newest ticks of the process -
 *   flight_ns); older records exist because files are reused whole.
 *   On a full disk any ring reuses its last two files in the same way: both then have FLIGHT,
 *   flight_ns stays 0, and overwritten records count as dropped.
 *
 * 3. A record
 *
 *        0        8        16     20    22   23  24       32
 *        ┌────────┬────────┬──────┬─────┬────┬───┬────────┐
 *        │ ticks  │ id     │ name │ dom │type│flg│ arg    │   little or big endian: header
 *        └────────┴────────┴──────┴─────┴────┴───┴────────┘
 *
 *   type      id              name             arg                  continuations
 *   MARK      0 or mark id    text             stream key           ATTR, PAYLOAD+DATA
 *   BEGIN     range id        text             stream key           ATTR, PAYLOAD+DATA, COMM
 *   END       range id        text of BEGIN    ticks of BEGIN       PAYLOAD+DATA, COMM_PART
 *   CALL      range id        text             0, then ticks of end COMM
 *   PUSH      depth from 0    text             0                    ATTR, PAYLOAD+DATA
 *   POP       depth of PUSH   text of PUSH     ticks of PUSH        PAYLOAD+DATA
 *   DEVICE    of MARK, BEGIN  0 start, 1 end   ns, CLOCK_MONOTONIC  -
 *   STREAM    stream key      text             number<<32 | device  -
 *   COUNTER   0               text             value: i64 or f64    -
 *   HEAP      heap handle     device number    0                    MEMORY
 *   HEAP_END  heap handle     0                1: only emptied      -
 *   REGION    region handle   device number    heap handle or 0     MEMORY
 *   REGION    0               device number    0                    MEMORY by pointer: new size
 *   REGION_END region handle  0                0                    MEMORY when by pointer
 *   PERMIT    region handle   0                0                    MEMORY
 *   BLOCK_NAME heap or region text             0                    MEMORY when by pointer
 *   USE       CPU time, ns    blocks written   run delay, ns        -
 *   USE       MSTX_USE_UNKNOWN 0               throttled, ns        -     (ring 0)
 *   SOCKET    0               text             0                    -     (ring 0)
 *   CALIB     CLOCK_MONOTONIC width in ticks   CLOCK_REALTIME       -     (ring 0)
 *   STATE     enum mstx_why   text or 0        1 recording, 0 not   -     (ring 0)
 *   THREAD    tid             0                0                    -
 *   DROP      enum mstx_why   0                records lost here    -
 *
 *   END and POP repeat ticks, text and domain of the start, so a window that lost the start
 *   still has the whole range.  (id, ticks of BEGIN) identifies a range in a process; range
 *   ids alone are reused.  END may be in another ring than BEGIN: MSTX_F_OTHER_THREAD; the
 *   starting thread is the one of the ring that holds BEGIN.  A BEGIN or PUSH without its end
 *   is an unfinished range.  A stream key is opaque and valid only with MSTX_F_STREAM.
 *   DEVICE is when the device reached a MARK, or the BEGIN (name 0) or END (name 1) of a range
 *   with a stream; its ticks are those of the MARK or BEGIN, so they are smaller than those of its
 *   neighbours.  With MSTX_F_NO_DEVICE the time was lost, also when the MARK, BEGIN or END itself
 *   has the flag.  STREAM describes a stream before its first DEVICE; the newest one counts. HEAP
 *   with a handle or base that is already registered replaces it (size changes). HEAP_END ends all
 *   regions of the heap; handle 0 with arg 1: all regions in no heap. THREAD: from here on the ring
 *   belongs to that thread (rings of ended threads are reused by new ones); before the first THREAD
 *   record of a segment the thread is the header's tid.
 *
 *   USE: what the thread has used until then; a time is MSTX_USE_UNKNOWN where the system does not tell
 *   it.  Blocks of 512 bytes are counted modulo 2^32.  In ring 0: for how long control groups of the process
 *   were throttled since the capture began; none where they were not.
 *
 *   SOCKET: a TCP connection of the process to another address, until then.  The text is "ADDRESS/PORT
 *   ADDRESS/PORT KEY=NUMBER ...": its own end, the other one, and what the kernel counted.
 *
 *   CALL is a BEGIN that need not have an END: when the thread that wrote it ends the range while
 *   the segment is still its current one, without continuations, arg becomes the ticks of the end.
 *   As long as arg is 0 an END may follow in any ring, as for BEGIN.
 *
 *   Continuations (type >= MSTX_REC_CONT) follow their record immediately, in the same
 *   segment.  A record has MSTX_F_MORE when a continuation follows.  type and flags are at
 *   their usual place, the other bytes are:
 *
 *        0        8        16     20    22   23  24       32
 *   ATTR    │ payload│cat|argb│payload_type │ 0 │ .. │ fields │  struct mstx_rec_attr
 *   MEMORY  │ address│ size   │flags │dom  │ .. │ device │     struct mstx_rec_mem
 *   PAYLOAD │ schema │ bytes  │index │dom  │ .. │ total  │     struct mstx_rec_payload
 *   DATA    │ 16 bytes        │ n    │dom  │ .. │ 8 more │     struct mstx_rec_data
 *
 *   COMM and COMM_PART follow the BEGIN of a communication call, COMM_PART also an END: comm.h.
 *
 *   PAYLOAD announces `bytes` bytes of payload, laid out by SCHEMA `schema`; they follow in
 *   DATA records of up to 24 bytes each.  total > bytes: cut.  An unknown type is skipped.
 *
 * 4. strings.seg: the same header page, then entries
 *
 *        ┌──────┬────┬──────┬────────┬─────┬─────┬─────────────┬─────────┐
 *        │ size │ id │ kind │ domain │ len │ key │ len bytes   │ NUL pad │  next entry at + size
 *        └──────┴────┴──────┴────────┴─────┴─────┴─────────────┴─────────┘
 *        0      4    8      10       12    16    24
 *
 *   head counts bytes behind the header page; capacity is the largest head there can be.  Ids
 *   rise by one from 1; id 0 is "no text".  An entry is published before its id is used in
 *   a record.  A NUL byte follows the text and size is a multiple of 8.  Texts are bytes as
 *   the program gave them: usually UTF-8, but not guaranteed.
 *
 * 5. What a reader may rely on
 *
 *   live       everything above; files may appear while it reads; head only grows (but see
 *              flight recorder); an id may be newer than the strings read so far: read them again
 *   finished   state has MSTX_SEG_CLOSED in every segment of the process
 *   killed     no CLOSED and no process with this pid and start time; nothing else differs
 *   damaged    any field may hold anything: mstx_seg_check() before use, head clamped as above,
 *              entries checked against head, name and domain against the tables
 *
 * 6. Versions
 *
 *   major: a reader refuses a newer major version.  minor: fields or record types were added
 *   where older versions have zeros or nothing; older readers skip them.
 *     1.1  COMM, COMM_PART
 *     1.2  CALL, tag_code of COMM: an older reader counts communication calls as records that it
 *          does not know, and shows none of them
 *     1.3  USE
 *     1.4  SOCKET
 */
#ifndef MSTX_FORMAT_CAPTURE_H
#define MSTX_FORMAT_CAPTURE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MSTX_SEG_MAGIC   "MSTXSEG1" /* 8 bytes, no NUL */
#define MSTX_SEG_ENDIAN  0x01020304u
#define MSTX_SEG_MAJOR   1
#define MSTX_SEG_MINOR   4
#define MSTX_STRINGS     "strings.seg"
#define MSTX_CONTROL     "control"
#define MSTX_STAGED      "staged"
#define MSTX_SNAPSHOTS   "snapshots"
#define MSTX_RANK_PREFIX "rank_"
#define MSTX_RANK_NONE   "rank_none"
/* Segment file name: ring, number of the file in the ring. */
#define MSTX_SEG_NAME "r%04u.%04u.seg"

enum {
    MSTX_SEG_HEADER = 4096,
    MSTX_REC_SIZE = 32,
    MSTX_DATA_BYTES = 24,      /* payload bytes in one DATA record */
    MSTX_PAYLOAD_MAX = 4096,   /* longer payloads are cut */
    MSTX_TEXT_MAX = 1 << 20,   /* longer texts are cut */
    MSTX_RECORDS_MAX = 1 << 24 /* in one segment */
};

enum mstx_seg_kind { MSTX_KIND_RING = 1, MSTX_KIND_STRINGS = 2, MSTX_KIND_CONTROL = 3 };

/* Clock of the ticks. */
enum mstx_clock {
    MSTX_CLOCK_TSC = 1,       /* x86 time stamp counter, invariant */
    MSTX_CLOCK_CNTVCT = 2,    /* aarch64 virtual counter */
    MSTX_CLOCK_MONOTONIC = 3, /* nanoseconds of CLOCK_MONOTONIC */
};

/* Bits of mstx_seg.state. */
enum {
    MSTX_SEG_CLOSED = 1,  /* no record will be added */
    MSTX_SEG_LAST = 2,    /* ... and no later segment of this ring will come */
    MSTX_SEG_FLIGHT = 4,  /* files of this ring are reused */
    MSTX_SEG_SNAPSHOT = 8 /* a copy made by `msprobe ctl snapshot` */
};

/* One reading of the three clocks at the same moment. */
struct mstx_calib {
    uint64_t ticks;
    int64_t monotonic_ns;
    int64_t realtime_ns;
    uint64_t width; /* ticks between the reads around it: twice the uncertainty */
};

struct mstx_seg {
    char magic[8];
    uint32_t endian;
    uint16_t major, minor;
    uint32_t header_size; /* offset of the records */
    uint32_t record_size; /* 32; 1 in strings.seg */
    uint32_t kind;        /* enum mstx_seg_kind */
    uint32_t ring;
    uint32_t pid, tid, ppid;              /* as the process sees them in its own pid namespace */
    int32_t rank, world_size, local_rank; /* -1: unknown */
    uint32_t clock;                       /* enum mstx_clock */
    uint32_t helper_tid;
    uint64_t tick_hz;       /* the recorder's first estimate; 0: not known yet, use calibration */
    int64_t start_ns;       /* CLOCK_REALTIME when recording began in this process */
    uint64_t start_jiffies; /* start time of the process, field 22 of /proc/PID/stat */
    uint8_t boot_id[16];    /* hosts with the same boot id share one counter */
    uint64_t pid_ns;        /* inode of the pid namespace */
    uint64_t part;
    uint64_t capacity;             /* records behind the header; in strings.seg: bytes */
    uint64_t flight_ns;            /* 0, or the time window that a flight recorder keeps */
    uint64_t first_ticks;          /* begin of use of this segment */
    struct mstx_calib first_calib; /* when recording began */
    char host[64];                 /* NUL-terminated */
    char tool[32];                 /* version of the recorder */
    uint8_t zero_a[752];

    uint64_t head; /* the writer's cache line: release / acquire */
    uint64_t dropped;
    uint32_t state;
    uint32_t zero_b[11];

    struct mstx_calib last_calib; /* the helper's cache line */
    uint64_t heartbeat;           /* rises about once a second while the process lives */
    uint64_t zero_c[3];

    uint8_t zero_d[MSTX_SEG_HEADER - 1152];
};
static_assert(sizeof(struct mstx_calib) == 32, "calib");
static_assert(offsetof(struct mstx_seg, endian) == 8, "seg");
static_assert(offsetof(struct mstx_seg, major) == 12, "seg");
static_assert(offsetof(struct mstx_seg, minor) == 14, "seg");
static_assert(offsetof(struct mstx_seg, header_size) == 16, "seg");
static_assert(offsetof(struct mstx_seg, record_size) == 20, "seg");
static_assert(offsetof(struct mstx_seg, kind) == 24, "seg");
static_assert(offsetof(struct mstx_seg, ring) == 28, "seg");
static_assert(offsetof(struct mstx_seg, pid) == 32, "seg");
static_assert(offsetof(struct mstx_seg, tid) == 36, "seg");
static_assert(offsetof(struct mstx_seg, ppid) == 40, "seg");
static_assert(offsetof(struct mstx_seg, rank) == 44, "seg");
static_assert(offsetof(struct mstx_seg, world_size) == 48, "seg");
static_assert(offsetof(struct mstx_seg, local_rank) == 52, "seg");
static_assert(offsetof(struct mstx_seg, clock) == 56, "seg");
static_assert(offsetof(struct mstx_seg, helper_tid) == 60, "seg");
static_assert(offsetof(struct mstx_seg, tick_hz) == 64, "seg");
static_assert(offsetof(struct mstx_seg, start_ns) == 72, "seg");
static_assert(offsetof(struct mstx_seg, start_jiffies) == 80, "seg");
static_assert(offsetof(struct mstx_seg, boot_id) == 88, "seg");
static_assert(offsetof(struct mstx_seg, pid_ns) == 104, "seg");
static_assert(offsetof(struct mstx_seg, part) == 112, "seg");
static_assert(offsetof(struct mstx_seg, capacity) == 120, "seg");
static_assert(offsetof(struct mstx_seg, flight_ns) == 128, "seg");
static_assert(offsetof(struct mstx_seg, first_ticks) == 136, "seg");
static_assert(offsetof(struct mstx_seg, first_calib) == 144, "seg");
static_assert(offsetof(struct mstx_seg, host) == 176, "seg");
static_assert(offsetof(struct mstx_seg, tool) == 240, "seg");
static_assert(offsetof(struct mstx_seg, head) == 1024, "seg: a cache line of its own");
static_assert(offsetof(struct mstx_seg, dropped) == 1032, "seg");
static_assert(offsetof(struct mstx_seg, state) == 1040, "seg");
static_assert(offsetof(struct mstx_seg, last_calib) == 1088, "seg: a cache line of its own");
static_assert(offsetof(struct mstx_seg, heartbeat) == 1120, "seg");
static_assert(sizeof(struct mstx_seg) == MSTX_SEG_HEADER, "seg");

/* ---- records ---------------------------------------------------------------- */

enum mstx_rec_type {
    MSTX_REC_NONE = 0,
    MSTX_REC_MARK = 1,
    MSTX_REC_BEGIN = 2,
    MSTX_REC_END = 3,
    MSTX_REC_PUSH = 4,
    MSTX_REC_POP = 5,
    MSTX_REC_CALL = 6,
    MSTX_REC_DEVICE = 7,
    MSTX_REC_STREAM = 8,
    MSTX_REC_COUNTER = 9,
    MSTX_REC_CALIB = 10,
    MSTX_REC_DROP = 11,
    /* id: steady clock of rank 0's host minus ours, name: uncertainty, both ns; arg: time of the
     * comparison by our steady clock (ring 0). */
    MSTX_REC_SYNC = 12,
    MSTX_REC_HEAP = 16,
    MSTX_REC_HEAP_END = 17,
    MSTX_REC_REGION = 18,
    MSTX_REC_REGION_END = 19,
    MSTX_REC_PERMIT = 20,
    MSTX_REC_BLOCK_NAME = 21,
    MSTX_REC_STATE = 24,
    MSTX_REC_THREAD = 25,
    MSTX_REC_USE = 26,
    MSTX_REC_SOCKET = 27,

    MSTX_REC_CONT = 64, /* this and above: continuations */
    MSTX_REC_ATTR = 64,
    MSTX_REC_PAYLOAD = 65,
    MSTX_REC_DATA = 66,
    MSTX_REC_MEMORY = 67,
    MSTX_REC_COMM = 68, /* behind a BEGIN: a communication call, see comm.h */
    MSTX_REC_COMM_PART = 69,
};

#define MSTX_USE_UNKNOWN UINT64_MAX

/* Bits of mstx_rec.flags. */
enum {
    MSTX_F_MORE = 1,         /* a continuation follows */
    MSTX_F_STREAM = 2,       /* arg is a stream key */
    MSTX_F_OTHER_THREAD = 4, /* END written by another thread than BEGIN */
    MSTX_F_REAL = 8,         /* COUNTER: arg holds a double, else an int64_t */
    MSTX_F_NVTX = 16,        /* came through NVTX; else mstx */
    MSTX_F_CUT = 32,         /* text or payload was longer than the limit */
    MSTX_F_CAPTURED = 64,    /* the stream was being captured into a graph */
    MSTX_F_NO_DEVICE = 128   /* no device time available; DEVICE: the time was lost */
};

/* Why recording stopped, started or lost records. */
enum mstx_why {
    MSTX_WHY_START = 1,     /* the process began, or `msprobe ctl start` */
    MSTX_WHY_STOP = 2,      /* `msprobe ctl stop` */
    MSTX_WHY_EXIT = 3,      /* the process ended normally */
    MSTX_WHY_NOT_READY = 4, /* the next segment was not ready in time (policy drop) */
    MSTX_WHY_NO_SPACE = 5,  /* disk full or --max-size reached */
    MSTX_WHY_IO = 6,        /* the capture directory cannot be written any more */
    MSTX_WHY_SIGNAL = 7,    /* a signal handler reached the end of a segment */
    MSTX_WHY_NO_THREAD = 8, /* no ring for a thread: too many, or it was ending */
};

struct mstx_rec {
    uint64_t ticks;
    uint64_t id;
    uint32_t name;   /* id in strings.seg, 0: none */
    uint16_t domain; /* number of a DOMAIN entry in strings.seg, 0: the default domain */
    uint8_t type, flags;
    uint64_t arg;
};

enum { MSTX_ATTR_CATEGORY = 1, MSTX_ATTR_COLOR = 2, MSTX_ATTR_PAYLOAD = 4 }; /* .fields */
enum mstx_payload_type { /* the numbers of NVTX */
                         MSTX_PAYLOAD_NONE = 0,
                         MSTX_PAYLOAD_U64 = 1,
                         MSTX_PAYLOAD_I64 = 2,
                         MSTX_PAYLOAD_F64 = 3,
                         MSTX_PAYLOAD_U32 = 4,
                         MSTX_PAYLOAD_I32 = 5,
                         MSTX_PAYLOAD_F32 = 6,
};
struct mstx_rec_attr {
    uint64_t payload; /* bit pattern of the value, in the low bytes */
    uint32_t category;
    uint32_t argb;
    uint32_t payload_type;
    uint16_t zero;
    uint8_t type, flags;
    uint32_t fields; /* bits of the fields that are set */
    uint32_t zero2;
};

struct mstx_rec_mem {
    uint64_t address, size;
    uint32_t permissions; /* 1 read, 2 write, 4 shared */
    uint16_t domain;
    uint8_t type, flags;
    uint32_t device;
    uint32_t by_pointer; /* 1: address names the region, its handle is not known */
};

struct mstx_rec_payload {
    uint64_t schema; /* key of a SCHEMA entry of this domain, or a plain entry type of NVTX */
    uint64_t bytes;  /* that follow in DATA records */
    uint32_t index;  /* a record may carry several payloads: 0, 1, .. */
    uint16_t domain;
    uint8_t type, flags;
    uint64_t total; /* bytes that the program passed */
};

struct mstx_rec_data {
    uint8_t bytes[16];
    uint32_t n; /* 1..24 bytes used */
    uint16_t domain;
    uint8_t type, flags;
    uint8_t more[8]; /* bytes 16..23 */
};

#define MSTX_CHECK_REC(s)                                                                          \
    static_assert(sizeof(struct s) == MSTX_REC_SIZE, #s);                                          \
    static_assert(offsetof(struct s, type) == 22, #s);                                             \
    static_assert(offsetof(struct s, flags) == 23, #s)
MSTX_CHECK_REC(mstx_rec);
MSTX_CHECK_REC(mstx_rec_attr);
MSTX_CHECK_REC(mstx_rec_mem);
MSTX_CHECK_REC(mstx_rec_payload);
MSTX_CHECK_REC(mstx_rec_data);
static_assert(offsetof(struct mstx_rec, id) == 8, "rec");
static_assert(offsetof(struct mstx_rec, name) == 16, "rec");
static_assert(offsetof(struct mstx_rec, domain) == 20, "rec");
static_assert(offsetof(struct mstx_rec, arg) == 24, "rec");
static_assert(offsetof(struct mstx_rec_attr, category) == 8, "attr");
static_assert(offsetof(struct mstx_rec_attr, argb) == 12, "attr");
static_assert(offsetof(struct mstx_rec_attr, payload_type) == 16, "attr");
static_assert(offsetof(struct mstx_rec_attr, fields) == 24, "attr");
static_assert(offsetof(struct mstx_rec_mem, permissions) == 16, "mem");
static_assert(offsetof(struct mstx_rec_mem, device) == 24, "mem");
static_assert(offsetof(struct mstx_rec_payload, index) == 16, "payload");
static_assert(offsetof(struct mstx_rec_payload, total) == 24, "payload");
static_assert(offsetof(struct mstx_rec_data, n) == 16, "data");
static_assert(offsetof(struct mstx_rec_data, more) == 24, "data");

static inline int mstx_rec_is_cont(const struct mstx_rec *r)
{
    return r->type >= MSTX_REC_CONT;
}

/* ---- strings.seg ------------------------------------------------------------ */

enum mstx_text_kind {
    MSTX_TEXT = 1,     /* a message */
    MSTX_DOMAIN = 2,   /* name of domain number `domain`; defined before its first record */
    MSTX_CATEGORY = 3, /* name of category `key` in `domain` */
    MSTX_THREAD = 4,   /* name of thread `key` (tid); the newest one counts */
    MSTX_RESOURCE = 5, /* "KIND NAME": name of a stream, event, device, ...; key is the handle */
    MSTX_SCHEMA = 6,   /* layout `key` in `domain`: struct mstx_schema, then its entries */
    MSTX_ENUM = 7,     /* enumeration `key` in `domain`: struct mstx_schema, then its values */
    MSTX_INFO = 8, /* "name=value" about the process: cmdline, exe, cwd, parent, rank_from, .. */
    MSTX_NOTE = 9, /* a message of the recorder: shown by reports; key: enum mstx_why */
    MSTX_COUNTER = 10, /* unit of the counter whose MSTX_TEXT has id `key` */
    MSTX_GROUP = 11,   /* communicator number `key`: struct mstx_comm_group of comm.h */
    MSTX_HANG = 12,    /* a call that does not return: struct mstx_hang of comm.h; key: range id */
};

struct mstx_text {
    uint32_t size; /* of the whole entry, a multiple of 8 */
    uint32_t id;
    uint16_t kind;
    uint16_t domain;
    uint32_t len; /* bytes of text, without the NUL behind it */
    uint64_t key;
};
static_assert(sizeof(struct mstx_text) == 24, "text");
static_assert(offsetof(struct mstx_text, kind) == 8, "text");
static_assert(offsetof(struct mstx_text, domain) == 10, "text");
static_assert(offsetof(struct mstx_text, len) == 12, "text");
static_assert(offsetof(struct mstx_text, key) == 16, "text");

/* A SCHEMA or ENUM text: this, then `count` items.  Offsets are resolved: a reader needs no
 * alignment rules. */
struct mstx_schema {
    uint32_t type;  /* 1 static, 2 dynamic, 3 union, 4 union with selector; ENUM: 0 */
    uint32_t count; /* items that follow */
    uint64_t size;  /* bytes of one payload, 0: not fixed; ENUM: bytes of the integer */
    uint32_t name;  /* text id, 0: none */
    uint32_t zero;
};
struct mstx_schema_item {
    uint64_t type; /* NVTX entry type or the key of another SCHEMA or ENUM; ENUM: the value */
    uint64_t offset;
    uint64_t array; /* array length, or the index of the entry that holds it: by flags */
    uint32_t flags; /* NVTX entry flags; ENUM: 1 when the value is a bit flag */
    uint32_t name;  /* text id */
};
static_assert(sizeof(struct mstx_schema) == 24, "schema");
static_assert(sizeof(struct mstx_schema_item) == 32, "schema item");

/* ---- control ---------------------------------------------------------------- */

enum mstx_command {
    MSTX_CMD_NONE = 0,
    MSTX_CMD_START = 1,
    MSTX_CMD_STOP = 2,
    MSTX_CMD_SNAPSHOT = 3, /* text: directory to fill */
    MSTX_CMD_STATUS = 4,   /* fill the counters below with fresh numbers */
    MSTX_CMD_INCLUDE = 5,  /* text: domains, comma separated; empty: all */
    MSTX_CMD_EXCLUDE = 6,
    MSTX_CMD_FLUSH = 7, /* msync and copy staged segments */
};

/*
 * A request: lock the file (flock), wait until done == request, write command and text, then
 * request + 1 (release), add 1 to bell and wake bell as a shared futex; wait until
 * done == request.  The helper thread of the process answers within milliseconds on the same
 * host, within a second elsewhere.
 */
struct mstx_control {
    char magic[8]; /* MSTX_SEG_MAGIC: bytes 0..63 mean what they mean in struct mstx_seg */
    uint32_t endian;
    uint16_t major, minor;
    uint32_t header_size, record_size;
    uint32_t kind; /* MSTX_KIND_CONTROL */
    uint32_t pid;
    uint32_t zero_a[8];
    uint32_t request; /* counts requests */
    uint32_t command; /* enum mstx_command */
    uint32_t bell;    /* futex the helper thread sleeps on */
    uint32_t zero_b[13];
    uint32_t done;   /* equals request when the answer is complete */
    uint32_t result; /* 0, or an errno */
    uint32_t recording;
    uint32_t rings, segments, domains;
    uint64_t records, dropped, bytes, strings, open_ranges, faults;
    uint64_t start_jiffies; /* with pid: tells whether the process still exists */
    uint64_t zero_c[5];
    char text[1024];   /* of the request */
    char answer[1024]; /* of the reply: directory of a snapshot, or an error message */
    uint8_t zero_d[4096 - 2296];
};
static_assert(offsetof(struct mstx_control, request) == 64, "control");
static_assert(offsetof(struct mstx_control, done) == 128, "control");
static_assert(offsetof(struct mstx_control, records) == 152, "control");
static_assert(offsetof(struct mstx_control, text) == 248, "control");
static_assert(sizeof(struct mstx_control) == 4096, "control");

/* ---- checks both sides need ------------------------------------------------- */

enum mstx_seg_fault {
    MSTX_SEG_GOOD = 0,
    MSTX_SEG_SHORT,   /* fewer bytes than a header */
    MSTX_SEG_FOREIGN, /* another magic: not a segment */
    MSTX_SEG_SWAPPED, /* written with the other byte order */
    MSTX_SEG_NEWER,   /* a later major version */
    MSTX_SEG_SHAPE,   /* header or record size, kind or capacity is invalid */
};

/* Checks the header of a segment of that kind. n: bytes available. */
static inline enum mstx_seg_fault mstx_seg_check(const void *p, size_t n, uint32_t kind)
{
    struct mstx_seg h;
    if (n < sizeof h)
        return MSTX_SEG_SHORT;
    memcpy(&h, p, sizeof h);
    if (memcmp(h.magic, MSTX_SEG_MAGIC, sizeof h.magic) != 0)
        return MSTX_SEG_FOREIGN;
    if (h.endian != MSTX_SEG_ENDIAN)
        return MSTX_SEG_SWAPPED;
    if (h.major != MSTX_SEG_MAJOR)
        return MSTX_SEG_NEWER;
    const uint32_t record = kind == MSTX_KIND_RING ? MSTX_REC_SIZE : 1;
    if (h.header_size != MSTX_SEG_HEADER || h.record_size != record || h.kind != kind)
        return MSTX_SEG_SHAPE;
    if (kind == MSTX_KIND_RING && h.capacity > MSTX_RECORDS_MAX)
        return MSTX_SEG_SHAPE;
    return MSTX_SEG_GOOD;
}

#endif
