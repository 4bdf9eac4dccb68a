/* SPDX-License-Identifier: MIT
 *
 * slot: see the header.
 */
#include "mstx/rt/slot.h"

enum { CHUNKS = 1 << (RT_SLOT_BITS - 6) };
static_assert(1 << 6 == RT_CHUNK, "chunk");

_Alignas(64) struct rt_slot rt_slots[1 << RT_SLOT_BITS];
uint16_t rt_slot_stream[1 << RT_SLOT_BITS];
_Atomic uint32_t rt_slot_chunks;
static uint16_t chunk_next[CHUNKS]; /* the chunks of a ring form a circle */

/* ---- chunks ----------------------------------------------------------------------- */

static bool chunk_new(uint32_t *out)
{
    uint32_t c = atomic_fetch_add(&rt_slot_chunks, 1);
    if (c < CHUNKS) {
        *out = c;
        return true;
    }
    atomic_fetch_sub(&rt_slot_chunks, 1);
    return false;
}

bool rt_slots_take(struct rt_ring *r)
{
    uint32_t c;
    if (!chunk_new(&c))
        return false;
    chunk_next[c] = (uint16_t)c;
    r->slot_chunk = c;
    return true;
}

uint32_t rt_slots_open(void)
{
    uint32_t n = 0, end = atomic_load(&rt_slot_chunks) * RT_CHUNK;
    for (uint32_t i = 0; i < end; i++)
        n += atomic_load_explicit(&rt_slots[i].live, memory_order_relaxed) != 0;
    return n;
}

/* In a forked child: drops the parent's open ranges. */
void rt_slots_forget(void)
{
    uint32_t end = atomic_load(&rt_slot_chunks) * RT_CHUNK;
    for (uint32_t i = 0; i < end; i++)
        atomic_store(&rt_slots[i].live, 0);
    atomic_store(&rt_slot_chunks, 0);
}

static struct rt_slot *slot_near(struct rt_ring *r, uint32_t chunk)
{
    struct rt_slot *s = NULL;
    for (int i = 0; s == NULL && i < RT_SLOT_FEW; i++)
        s = rt_slot_next(r, chunk);
    return s;
}

static struct rt_slot *slot_in(struct rt_ring *r, uint32_t chunk)
{
    struct rt_slot *s = slot_near(r, chunk);
    for (int i = 1; s == NULL && i < RT_CHUNK / RT_SLOT_FEW; i++) {
        rt_bump(&r->slot_at, RT_SLOT_STAY);
        s = slot_near(r, chunk);
    }
    return s;
}

struct rt_slot *rt_slot_far(struct rt_ring *r)
{
    ms_assert(r->slot_chunk < CHUNKS);
    struct rt_slot *s = slot_in(r, r->slot_chunk);
    if (RT_LIKELY(s != NULL))
        return s;
    uint32_t c = chunk_next[r->slot_chunk];
    s = slot_in(r, c);
    if (s == NULL) {
        if (!chunk_new(&c))
            return NULL;
        chunk_next[c] = chunk_next[r->slot_chunk];
        chunk_next[r->slot_chunk] = (uint16_t)c;
        s = slot_in(r, c);
    }
    r->slot_chunk = c;
    return s;
}

/* ---- open ranges -------------------------------------------------------------------- */

bool rt_range_is_open(uint32_t id)
{
    return atomic_load_explicit(&rt_slots[id >> RT_GEN_BITS].live, memory_order_relaxed) == id;
}

uint64_t rt_range_ticks(uint32_t id)
{
    ms_assert(id != 0);
    return rt_slots[id >> RT_GEN_BITS].ticks;
}

uint32_t rt_range_text(uint32_t id)
{
    ms_assert(id != 0);
    return rt_slots[id >> RT_GEN_BITS].name;
}

uint16_t rt_range_domain(uint32_t id)
{
    ms_assert(id != 0);
    return rt_slots[id >> RT_GEN_BITS].domain;
}

RT_RACY void rt_ranges_each(uint16_t domain, rt_range_fn *fn, void *arg)
{
    uint32_t end = atomic_load(&rt_slot_chunks) * RT_CHUNK;
    for (uint32_t i = 0; i < end; i++) {
        uint32_t id = atomic_load_explicit(&rt_slots[i].live, memory_order_acquire);
        if (id != 0 && rt_slots[i].domain == domain && rt_slots[i].ring != RT_SLOT_GHOST)
            fn(arg, id, rt_slots[i].ticks);
    }
}

void rt_range_set_other(uint32_t id, uint64_t other)
{
    ms_assert(id != 0);
    rt_slots[id >> RT_GEN_BITS].other = other;
}
