/* SPDX-License-Identifier: MIT
 *
 * memory_tracks: heaps and regions that allocators reported, as tracks.
 *
 * Each domain and device has one pool with three tracks: the address ranges with
 * their lifetimes, the bytes of all regions in use and the bytes of all heaps.  A
 * region ends by its handle or its address, whichever the program used, or with
 * its heap.
 */
#include "mstx/read/memory_tracks.h"

#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- a map from numbers to indices ------------------------------------------ */

struct place_map {
    struct {
        uint64_t key;
        uint32_t place; /* + 1 */
    } * slot;
    size_t used, size;
};

static size_t probe(const struct place_map *m, uint64_t key)
{
    size_t at = (size_t)(key * 0x9E3779B97F4A7C15u >> 20) & (m->size - 1);
    while (m->slot[at].place != 0 && m->slot[at].key != key)
        at = (at + 1) & (m->size - 1);
    return at;
}

static bool grow_map(struct place_map *m)
{
    struct place_map bigger = {.size = m->size != 0 ? 2 * m->size : 256, .used = m->used};
    bigger.slot = ms_calloc(bigger.size, sizeof *bigger.slot);
    if (bigger.slot == NULL)
        return false;
    for (size_t i = 0; i < m->size; i++) {
        if (m->slot[i].place != 0)
            bigger.slot[probe(&bigger, m->slot[i].key)] = m->slot[i];
    }
    ms_free(m->slot);
    *m = bigger;
    return true;
}

/* Sets the place of a key, replacing an earlier one; returns false when out of memory. */
static bool map_put(struct place_map *m, uint64_t key, size_t place)
{
    if (2 * (m->used + 1) > m->size && !grow_map(m))
        return false;
    size_t at = probe(m, key);
    m->used += m->slot[at].place == 0;
    m->slot[at].key = key;
    m->slot[at].place = (uint32_t)place + 1;
    return true;
}

static bool map_get(const struct place_map *m, uint64_t key, size_t *place)
{
    if (m->size == 0)
        return false;
    size_t at = probe(m, key);
    *place = m->slot[at].place - 1;
    return m->slot[at].place != 0;
}

/* ---- pools ------------------------------------------------------------------ */

struct pool {
    uint32_t domain, device;
    uint32_t ranges, in_use, reserved; /* lanes */
    uint64_t used_bytes, heap_bytes;
};

/* A heap or a region. */
struct block {
    uint64_t begin, end, address, size, heap, id;
    uint32_t pool, name; /* 0: none */
    bool is_heap;
};

struct memory {
    struct mstx_lanes *l;
    MS_VEC(struct pool) pool;
    MS_VEC(struct block) block;
    struct place_map heap, region, by_address;
};

static bool add_lane(struct memory *m, struct pool *p, enum mstx_track_kind kind, const char *what,
                     uint32_t *lane)
{
    char text[64];
    int n = snprintf(text, sizeof text, "%s, device %u", what, p->device);
    const struct mstx_texts *t = m->l->texts;
    uint32_t name = t->to->intern(t->to->ctx, (struct ms_str){text, (uint32_t)n});
    struct mstx_lane *made = mstx__lane_add(m->l, kind, 0, p->domain, name, lane);
    if (made != NULL && kind == MSTX_TRACK_COUNTER)
        made->unit = t->to->intern(t->to->ctx, MS_STR("bytes"));
    return made != NULL;
}

static struct pool *pool_of(struct memory *m, const struct mstx_mem_event *e, uint32_t *index)
{
    for (size_t i = 0; i < m->pool.n; i++) {
        if (m->pool.p[i].domain == e->domain && m->pool.p[i].device == e->device) {
            *index = (uint32_t)i;
            return &m->pool.p[i];
        }
    }
    struct pool p = {.domain = e->domain, .device = e->device};
    struct pool *slot = NULL;
    if (add_lane(m, &p, MSTX_TRACK_MEMORY, "address ranges", &p.ranges) &&
        add_lane(m, &p, MSTX_TRACK_COUNTER, "bytes in use", &p.in_use) &&
        add_lane(m, &p, MSTX_TRACK_COUNTER, "bytes reserved", &p.reserved))
        slot = ms_vec_push(&m->pool);
    if (slot == NULL) {
        m->l->no_memory = true;
        return NULL;
    }
    *slot = p;
    *index = (uint32_t)m->pool.n - 1;
    return slot;
}

static void add_sample(struct memory *m, uint32_t lane, uint64_t ticks, uint64_t value)
{
    uint32_t extra;
    struct mstx_raw *raw = mstx__lane_event(m->l, lane, ticks);
    struct mstx_extra *x = mstx__extra(m->l, &extra);
    if (raw == NULL || x == NULL)
        return;
    x->arg = value;
    raw->extra = extra;
    raw->end = ticks;
    raw->name = m->l->lane.p[lane].name;
    raw->kind = MSTX_EV_COUNTER;
}

static void account_block(struct memory *m, const struct block *b, uint64_t ticks, bool add)
{
    struct pool *p = &m->pool.p[b->pool];
    uint64_t *total = b->is_heap ? &p->heap_bytes : &p->used_bytes;
    *total = add ? *total + b->size : *total - b->size;
    add_sample(m, b->is_heap ? p->reserved : p->in_use, ticks, *total);
}

/* ---- heaps and regions ------------------------------------------------------ */

static void end_block(struct memory *m, size_t at, uint64_t ticks)
{
    struct block *b = &m->block.p[at];
    if (b->end != 0)
        return;
    b->end = ticks;
    account_block(m, b, ticks, false);
}

/* Finds the block that an event refers to by its address or its handle. */
static bool find_block(const struct memory *m, const struct mstx_mem_event *e, size_t *at)
{
    if (e->by_pointer)
        return map_get(&m->by_address, e->address, at);
    return map_get(&m->region, e->id, at) || map_get(&m->heap, e->id, at);
}

static void add_block(struct memory *m, const struct block *from)
{
    struct block *b = ms_vec_push(&m->block);
    if (b == NULL || !map_put(from->is_heap ? &m->heap : &m->region, from->id, m->block.n - 1) ||
        (!from->is_heap && !map_put(&m->by_address, from->address, m->block.n - 1))) {
        m->l->no_memory = true;
        return;
    }
    *b = *from;
    account_block(m, b, b->begin, true);
}

/* Changes the size of the region at the event's address. */
static void resize_block(struct memory *m, const struct mstx_mem_event *e)
{
    size_t at;
    if (!find_block(m, e, &at) || m->block.p[at].end != 0)
        return;
    struct block b = m->block.p[at];
    end_block(m, at, e->ticks);
    b.begin = e->ticks;
    b.size = e->size;
    add_block(m, &b);
}

static void begin_block(struct memory *m, const struct mstx_mem_event *e, bool is_heap)
{
    size_t before;
    uint32_t pool;
    if (map_get(is_heap ? &m->heap : &m->region, e->id, &before))
        end_block(m, before, e->ticks); /* registered again, with another size */
    if (pool_of(m, e, &pool) == NULL)
        return;
    add_block(m, &(struct block){.begin = e->ticks,
                                 .address = e->address,
                                 .size = e->size,
                                 .heap = e->heap,
                                 .id = e->id,
                                 .pool = pool,
                                 .is_heap = is_heap});
}

/* Ends a heap and its regions.  Searches all blocks for the regions, because heaps rarely end. */
static void end_heap(struct memory *m, const struct mstx_mem_event *e)
{
    size_t at;
    bool in_none = e->id == 0;
    if (!in_none && (!map_get(&m->heap, e->id, &at) || m->block.p[at].end != 0))
        return;
    if (!in_none && !e->stays)
        end_block(m, at, e->ticks);
    for (size_t i = 0; i < m->block.n; i++) {
        const struct block *b = &m->block.p[i];
        if (!b->is_heap && b->heap == e->id && m->pool.p[b->pool].domain == e->domain)
            end_block(m, i, e->ticks);
    }
}

static void end_region(struct memory *m, const struct mstx_mem_event *e)
{
    size_t at;
    if (find_block(m, e, &at) && !m->block.p[at].is_heap)
        end_block(m, at, e->ticks);
}

static void name_block(struct memory *m, const struct mstx_mem_event *e)
{
    size_t at;
    if (find_block(m, e, &at))
        m->block.p[at].name = e->name;
}

static void show_block(struct memory *m, const struct block *b, uint32_t heap, uint32_t region)
{
    uint32_t extra;
    struct mstx_raw *raw = mstx__lane_event(m->l, m->pool.p[b->pool].ranges, b->begin);
    struct mstx_extra *x = mstx__extra(m->l, &extra);
    if (raw == NULL || x == NULL)
        return;
    *x = (struct mstx_extra){.arg = b->address, .size = b->size};
    raw->extra = extra;
    raw->end = b->end != 0 ? b->end : m->l->newest;
    raw->name = b->name != 0 ? b->name : b->is_heap ? heap : region;
    raw->kind = MSTX_EV_REGION;
    raw->flags = b->end != 0 ? 0 : MSTX_EVF_UNFINISHED;
}

static int by_ticks(const void *pa, const void *pb)
{
    const struct mstx_mem_event *a = pa, *b = pb;
    return MS_ORDER(a->ticks, b->ticks, 0);
}

static void take_record(struct memory *m, const struct mstx_mem_event *e)
{
    if (e->type == MSTX_REC_REGION && e->by_pointer)
        resize_block(m, e);
    else if (e->type == MSTX_REC_HEAP || e->type == MSTX_REC_REGION)
        begin_block(m, e, e->type == MSTX_REC_HEAP);
    else if (e->type == MSTX_REC_HEAP_END)
        end_heap(m, e);
    else if (e->type == MSTX_REC_BLOCK_NAME)
        name_block(m, e);
    else
        end_region(m, e);
}

void mstx__memory_lanes(struct mstx_lanes *l)
{
    struct memory m = {.l = l};
    if (l->memory.n == 0)
        return;
    qsort(l->memory.p, l->memory.n, sizeof *l->memory.p, by_ticks);
    for (size_t i = 0; i < l->memory.n && !l->no_memory; i++)
        take_record(&m, &l->memory.p[i]);
    uint32_t heap = l->texts->to->intern(l->texts->to->ctx, MS_STR("heap"));
    uint32_t region = l->texts->to->intern(l->texts->to->ctx, MS_STR("region"));
    for (size_t i = 0; i < m.block.n && !l->no_memory; i++)
        show_block(&m, &m.block.p[i], heap, region);
    ms_vec_free(&m.pool);
    ms_vec_free(&m.block);
    ms_free(m.heap.slot);
    ms_free(m.region.slot);
    ms_free(m.by_address.slot);
}
