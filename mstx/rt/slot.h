/* SPDX-License-Identifier: MIT
 *
 * slot: the slots of open ranges.
 *
 * A range id is the index of a slot and a count of its uses:
 *
 *     31            12 11      0
 *     ┌───────────────┬─────────┐   slot: index of 2^20; a ring takes 64 at a time
 *     │ slot          │ use     │   use:  1..4095, so an id is never 0 and an old one
 *     └───────────────┴─────────┘         is recognised
 *
 * 32 bits because the Python module of the original parses ids as such.  Any thread ends a range by
 * one compare-and-swap on its slot, without a map or a lock.  The slot keeps the fields that END
 * repeats, so the end needs no search for the start.
 */
#ifndef MSTX_RT_SLOT_H
#define MSTX_RT_SLOT_H

#include "mstx/rt/ring.h"

enum {
    RT_SLOT_BITS = 20, /* 2^20 ranges may be open at once */
    RT_GEN_BITS = 12,  /* a stale id is recognised for 2^12 uses of its slot */
    RT_CHUNK = 64,     /* slots that a ring takes at a time */
    RT_SLOT_USES = (1 << RT_GEN_BITS) - 1,
    RT_SLOT_PLACE_BITS = 32 - RT_GEN_BITS,
    RT_SLOT_NO_PLACE = (1 << RT_SLOT_PLACE_BITS) - 1,
    RT_SLOT_GHOST = UINT16_MAX,
    RT_SLOT_ON_DEVICE = 0x4000, /* with the ring's number: rt_slot_stream holds the stream */
    RT_SLOT_FEW = 2,            /* slots that a ring alternates between for RT_SLOT_STAY uses */
    RT_SLOT_STAY = 4096,
};
static_assert((int)RT_RINGS <= (int)RT_SLOT_ON_DEVICE, "the flag is no part of a ring's number");

struct rt_slot {
    _Atomic uint32_t live; /* id of the open range, 0: free */
    uint32_t use : RT_GEN_BITS;
    uint32_t at : RT_SLOT_PLACE_BITS; /* index of its CALL in the segment of the ring */
    uint64_t ticks;
    uint32_t name;
    uint16_t domain;
    uint16_t ring;  /* ring of the start; RT_SLOT_GHOST: only a tap received the range */
    uint64_t other; /* word that a tap has set */
};
static_assert(sizeof(struct rt_slot) == 32, "two to a cache line");

extern struct rt_slot rt_slots[1 << RT_SLOT_BITS];
extern uint16_t rt_slot_stream[1 << RT_SLOT_BITS]; /* used only by ranges with a stream */
extern _Atomic uint32_t rt_slot_chunks;            /* chunks in use, of RT_CHUNK slots each */

/* Returns the slot for the next range, or NULL while that slot holds an open one. RT_SLOT_STAY uses
 * in a row share two slots, that is one cache line, which a program that computes between its calls
 * does not evict; then the next two slots follow, so that all 64 are used and a stale id stays
 * recognisable for long. */
static inline struct rt_slot *rt_slot_next(struct rt_ring *r, uint32_t chunk)
{
    const uint32_t at = rt_bump(&r->slot_at, 1);
    struct rt_slot *s = &rt_slots[chunk * RT_CHUNK +
                                  (at / RT_SLOT_STAY * RT_SLOT_FEW + at % RT_SLOT_FEW) % RT_CHUNK];
    return RT_LIKELY(atomic_load_explicit(&s->live, memory_order_acquire) == 0) ? s : NULL;
}

/* Slow path when the next slot is taken: tries the other slots of the chunk, then the next chunk of
 * the ring's circle, then adds a chunk to the circle. */
struct rt_slot *rt_slot_far(struct rt_ring *r);
static inline struct rt_slot *rt_slot_get(struct rt_ring *r)
{
    struct rt_slot *s = rt_slot_next(r, r->slot_chunk);
    return RT_LIKELY(s != NULL) ? s : rt_slot_far(r);
}

/* Closes a slot; false when id is no longer open. The thread that opened the range (is_own) needs
 * no locked instruction, which would wait until all pending stores have reached the cache. At
 * worst, two threads that end one range at the same time write two ENDs. */
static inline bool rt_slot_close(struct rt_slot *s, uint32_t id, bool is_own)
{
    if (RT_UNLIKELY(!is_own))
        return atomic_compare_exchange_strong(&s->live, &id, 0);
    if (RT_UNLIKELY(atomic_load_explicit(&s->live, memory_order_relaxed) != id))
        return false;
    atomic_store_explicit(&s->live, 0, memory_order_release);
    return true;
}

static inline uint32_t rt_slot_open(struct rt_slot *s, const struct rt_ring *r, uint64_t ticks,
                                    uint32_t name, uint16_t domain)
{
    s->use = s->use < RT_SLOT_USES ? s->use + 1 : 1;
    s->at = RT_SLOT_NO_PLACE;
    s->ticks = ticks;
    s->name = name;
    s->domain = domain;
    s->ring = (uint16_t)r->number;
    s->other = 0;
    uint32_t id = (uint32_t)(s - rt_slots) << RT_GEN_BITS | s->use;
    atomic_store_explicit(&s->live, id, memory_order_release);
    return id;
}

/* ---- open ranges -------------------------------------------------------------- */

bool rt_range_is_open(uint32_t id);
/* The fields of an open range. */
uint64_t rt_range_ticks(uint32_t id);
uint32_t rt_range_text(uint32_t id);
uint16_t rt_range_domain(uint32_t id);
/* Calls fn for all open ranges of a domain; a range that ends meanwhile may be included. */
typedef void rt_range_fn(void *arg, uint32_t id, uint64_t ticks);
void rt_ranges_each(uint16_t domain, rt_range_fn *fn, void *arg);
void rt_range_set_other(uint32_t id, uint64_t other);
/* rt_slots_take gives a ring its first chunk of slots; rt_slots_open counts the open ranges. */
bool rt_slots_take(struct rt_ring *r);
uint32_t rt_slots_open(void);
void rt_slots_forget(void);

#endif
