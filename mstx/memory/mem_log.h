/* SPDX-License-Identifier: MIT
 *
 * mem_log: the one model of memory use, filled by every reader.
 *
 *     log ─► spaces   one for each device of each rank
 *              ├─ blocks    an allocation: bytes, address, site, from event A to event B
 *              ├─ changes   by event: bytes taken (> 0) or given back (< 0)
 *              ├─ pools     bytes that the allocator took from the device, at an event
 *              ├─ steps     of the training, by time
 *              └─ failures  requests that the allocator could not serve
 *         ─► sites    who allocates: module, operator, source line, folded stack, phase, kind
 *
 * Events are numbered from 1 in the order in which a reader tells them. Event 0 stands for
 * everything before the record began; a block that is never given back ends at MSTX_MEM_NEVER.
 */
#ifndef MSTX_MEMORY_MEM_LOG_H
#define MSTX_MEMORY_MEM_LOG_H

#include "probe/base/arena.h"
#include "probe/base/map.h"
#include "probe/base/vec.h"

#include <stdbool.h>
#include <stdint.h>

#define MSTX_MEM_NEVER   UINT32_MAX
#define MSTX_MEM_NO_TIME INT64_MIN
/* Most events of one space. */
#define MSTX_MEM_EVENTS_MAX (UINT32_MAX - 1)
/* Greatest number of bytes of one block or pool that is believed. */
#define MSTX_MEM_BYTES_MAX ((uint64_t)1 << 50)

/* What a block is for. */
#define MSTX_MEM_KINDS(X)                                                                          \
    X(UNKNOWN, "unknown")                                                                          \
    X(PARAMETER, "parameter")                                                                      \
    X(GRADIENT, "gradient")                                                                        \
    X(OPTIMIZER, "optimizer state")                                                                \
    X(ACTIVATION, "activation")                                                                    \
    X(TEMPORARY, "temporary")                                                                      \
    X(COMMUNICATION, "communication buffer")                                                       \
    X(INPUT, "input")                                                                              \
    X(EARLIER, "allocated before the record")
enum mstx_mem_kind {
#define MSTX_MEM_KIND(name, text) MSTX_MEM_##name,
    MSTX_MEM_KINDS(MSTX_MEM_KIND)
#undef MSTX_MEM_KIND
        MSTX_MEM_KIND_COUNT
};
/* Returns the name of a kind as people and JSON read it. */
const char *mstx__mem_kind_text(enum mstx_mem_kind kind);

/* The part of a training step in which something happens. */
enum mstx_mem_phase {
    MSTX_PHASE_NONE, /* outside of all, or not known */
    MSTX_PHASE_BUILD,
    MSTX_PHASE_FORWARD,
    MSTX_PHASE_BACKWARD,
    MSTX_PHASE_OPTIMIZER,
    MSTX_PHASE_COMMUNICATION
};

/* Who allocates. Texts are numbers of log->texts; 0 is the empty text. */
struct mstx_mem_site {
    uint32_t module, op, frame, stack;
    uint8_t phase; /* enum mstx_mem_phase */
    uint8_t kind;  /* enum mstx_mem_kind where the reader knows it */
};

struct mstx_mem_block {
    int64_t begin_ns, end_ns; /* MSTX_MEM_NO_TIME: not known */
    uint64_t address, bytes;
    uint32_t begin, end; /* events */
    uint32_t site;
    uint8_t kind, end_phase;
};

struct mstx_mem_pool {
    uint32_t event;
    int64_t bytes; /* taken from the device, or given back to it */
};

struct mstx_mem_step {
    int64_t number, begin_ns, end_ns;
};

/* A request that failed. */
struct mstx_mem_failure {
    uint32_t event, site;
    int64_t at_ns;
    uint64_t wanted;
    int64_t device_free; /* -1: not known */
};

/* Totals that a tool told at a time, where it tells no single allocations; -1: not told. */
struct mstx_mem_total {
    int64_t at_ns, allocated, reserved;
};

struct mstx_mem_space {
    int32_t rank;         /* -1: not known */
    struct ms_str device; /* "cpu", "cuda:0" */
    MS_VEC(struct mstx_mem_block) blocks;
    MS_VEC(int64_t) changes; /* changes.p[0] is that of event 1 */
    MS_VEC(struct mstx_mem_pool) pools;
    MS_VEC(struct mstx_mem_step) steps; /* in order of time */
    MS_VEC(struct mstx_mem_failure) failures;
    MS_VEC(struct mstx_mem_total) totals;
    uint64_t earlier; /* bytes that were in use before event 1 and that no block names */
    uint64_t pools_earlier;
    /* The allocator's free memory at the end of the record, where the reader knows it. */
    bool has_holes;
    uint64_t free_bytes, largest_hole, holes;
    uint64_t unmatched;         /* frees of addresses that were not allocated in the record */
    struct mstx_mem_live *live; /* address -> open block; internal */
};

struct mstx_mem_log {
    struct ms_arena *arena;
    struct ms_map texts; /* number 0 is "" */
    struct ms_map site_keys;
    MS_VEC(struct mstx_mem_site) sites; /* number 0: nobody known */
    MS_VEC(struct mstx_mem_space *) spaces;
    struct ms_str settings; /* of the allocator, as the program was started; empty: not known */
    struct ms_str source;   /* what was read, for people: "torch memory snapshot" */
    MS_VEC(struct ms_str) notes; /* what was left out or could not be read */
};

enum ms_rc mstx__mem_log_new(struct mstx_mem_log **log, struct ms_err *err) MS_MUST_USE;
void mstx__mem_log_free(struct mstx_mem_log *log);

/* Finds or adds the space of a device of a rank. */
enum ms_rc mstx__mem_space(struct mstx_mem_log *log, int32_t rank, struct ms_str device,
                           struct mstx_mem_space **space, struct ms_err *err) MS_MUST_USE;
/* Returns the number of a text, 0 for the empty one; MS_MAP_NONE when out of memory. */
uint32_t mstx__mem_text(struct mstx_mem_log *log, struct ms_str text);
struct ms_str mstx__mem_text_of(const struct mstx_mem_log *log, uint32_t text);
/* Finds or adds a site. */
enum ms_rc mstx__mem_site(struct mstx_mem_log *log, const struct mstx_mem_site *site,
                          uint32_t *number, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__mem_note(struct mstx_mem_log *log, struct ms_err *err, const char *fmt, ...)
    MS_PRINTF(3, 4);

/* ---- telling events, in order ---- */

/* A block that lived before event 1. It must be told before all events. */
enum ms_rc mstx__mem_earlier(struct mstx_mem_space *s, uint64_t address, uint64_t bytes,
                             uint32_t site, uint8_t kind, struct ms_err *err) MS_MUST_USE;
/* An allocation. An open block at the same address ends with it. */
enum ms_rc mstx__mem_alloc(struct mstx_mem_space *s, int64_t at_ns, uint64_t address,
                           uint64_t bytes, uint32_t site, uint8_t kind,
                           struct ms_err *err) MS_MUST_USE;
/* Ends the open block at an address. Returns through *found whether there is one. */
enum ms_rc mstx__mem_free(struct mstx_mem_space *s, int64_t at_ns, uint64_t address, uint8_t phase,
                          bool *found, struct ms_err *err) MS_MUST_USE;
/* Memory that the allocator takes from the device (> 0) or gives back (< 0). */
enum ms_rc mstx__mem_pool_change(struct mstx_mem_space *s, int64_t bytes,
                                 struct ms_err *err) MS_MUST_USE;
/* Number of events so far. */
static inline uint32_t mstx__mem_events(const struct mstx_mem_space *s)
{
    return (uint32_t)s->changes.n;
}

/* ---- events that are not told in order ---- */

/* bytes > 0: an allocation; < 0: a free of as many bytes; 0: a free of unknown size. */
struct mstx_mem_event {
    int64_t at_ns;
    uint64_t address;
    int64_t bytes;
    uint32_t site;
    uint8_t kind, phase;
};
typedef MS_VEC(struct mstx_mem_event) mstx_mem_events;
/* Sorts events by time; events of one time keep their order. */
enum ms_rc mstx__mem_sort(mstx_mem_events *events, struct ms_err *err) MS_MUST_USE;
/* Sorts events by time, keeping the order of equal times, and tells them. Frees of addresses that
 * no event allocated become blocks that lived before. */
enum ms_rc mstx__mem_replay(struct mstx_mem_space *s, mstx_mem_events *events,
                            struct ms_err *err) MS_MUST_USE;

/* Lists of events, one for each space of a log. */
typedef MS_VEC(mstx_mem_events) mstx_mem_lists;
/* Adds lists, so that every space has one. */
enum ms_rc mstx__mem_lists_grow(mstx_mem_lists *lists, const struct mstx_mem_log *log,
                                struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__mem_lists_add(mstx_mem_lists *lists, size_t space, const struct mstx_mem_event *e,
                               struct ms_err *err) MS_MUST_USE;
/* Replays each list in its space. */
enum ms_rc mstx__mem_lists_replay(mstx_mem_lists *lists, struct mstx_mem_log *log,
                                  struct ms_err *err) MS_MUST_USE;
void mstx__mem_lists_free(mstx_mem_lists *lists);

#endif
