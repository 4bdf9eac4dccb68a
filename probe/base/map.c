/* SPDX-License-Identifier: MIT
 *
 * map: open addressing with linear probing, at most two thirds full.  A slot
 * holds only an index; the 32 stored hash bits reject nearly every wrong key
 * without touching its text.
 */
#include "probe/base/map.h"

#include <assert.h>

enum { FIRST_SLOTS = 16 };

static uint32_t hash_of(struct ms_str key)
{
    return (uint32_t)(ms_str_hash(key) >> 32);
}

/* Returns the slot of the key, or the free slot where the key belongs. */
static uint32_t probe(const struct ms_map *m, struct ms_str key, uint32_t hash)
{
    for (uint32_t s = hash & m->mask;; s = (s + 1) & m->mask) {
        uint32_t i = m->slots[s];
        if (i == 0)
            return s;
        const struct ms_map_key *k = &m->keys.p[i - 1];
        if (k->hash == hash && ms_str_eq((struct ms_str){k->p, k->n}, key))
            return s;
    }
}

static bool rehash_slots(struct ms_map *m, size_t nslots)
{
    uint32_t *slots = ms_calloc_written(nslots, sizeof *slots);
    if (slots == NULL)
        return false;
    ms_free(m->slots);
    m->slots = slots;
    m->mask = (uint32_t)nslots - 1;
    for (size_t i = 0; i < m->keys.n; i++) {
        uint32_t s = m->keys.p[i].hash & m->mask;
        while (slots[s] != 0)
            s = (s + 1) & m->mask;
        slots[s] = (uint32_t)i + 1;
    }
    return true;
}

bool ms_map_reserve(struct ms_map *m, size_t n)
{
    size_t nslots = m->slots != NULL ? (size_t)m->mask + 1 : FIRST_SLOTS;
    if (n >= UINT32_MAX / 2 || !ms_vec_reserve(&m->keys, n))
        return false;
    while (nslots * 2 < n * 3)
        nslots *= 2;
    if (m->slots != NULL && nslots == (size_t)m->mask + 1)
        return true;
    return rehash_slots(m, nslots);
}

/* Like probe, after making room for a new key in both tables; MS_MAP_NONE when out of memory. */
static uint32_t slot_for(struct ms_map *m, struct ms_str key, uint32_t hash)
{
    const size_t n = m->keys.n + 1;
    const bool has_room =
        m->slots != NULL && n <= m->keys.cap && ((size_t)m->mask + 1) * 2 >= n * 3;
    return has_room || ms_map_reserve(m, n) ? probe(m, key, hash) : MS_MAP_NONE;
}

static uint32_t put_key(struct ms_map *m, struct ms_str key, struct ms_arena *copy_to, bool *added)
{
    uint32_t hash = hash_of(key);
    uint32_t slot = slot_for(m, key, hash);
    if (added != NULL)
        *added = false;
    if (slot == MS_MAP_NONE)
        return MS_MAP_NONE;
    if (m->slots[slot] != 0)
        return m->slots[slot] - 1;
    if (copy_to != NULL) {
        key = ms_arena_str(copy_to, key);
        if (key.p == NULL)
            return MS_MAP_NONE;
    }
    m->keys.p[m->keys.n] = (struct ms_map_key){key.p, key.n, hash};
    m->slots[slot] = (uint32_t)++m->keys.n;
    if (added != NULL)
        *added = true;
    return m->slots[slot] - 1;
}

uint32_t ms_map_put(struct ms_map *m, struct ms_str key, bool *added)
{
    return put_key(m, key, NULL, added);
}

uint32_t ms_map_put_copy(struct ms_map *m, struct ms_str key, struct ms_arena *a, bool *added)
{
    assert(a != NULL);
    return put_key(m, key, a, added);
}

uint32_t ms_map_get(const struct ms_map *m, struct ms_str key)
{
    if (m->slots == NULL)
        return MS_MAP_NONE;
    uint32_t i = m->slots[probe(m, key, hash_of(key))];
    return i != 0 ? i - 1 : MS_MAP_NONE;
}

void ms_map_seal(struct ms_map *m)
{
    ms_free(m->slots);
    m->slots = NULL;
    m->mask = 0;
}

void ms_map_free(struct ms_map *m)
{
    ms_vec_free(&m->keys);
    ms_free(m->slots);
    *m = (struct ms_map){0};
}
