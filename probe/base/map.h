/* SPDX-License-Identifier: MIT
 *
 * map: text to a dense index, in order of first appearance.  It is the
 * interning table and the hash map in one: values live in the caller's vector
 * at the same index.
 *
 *     slots  u32 ─► keys { pointer, length, hash }      keys[i] is the text of index i
 */
#ifndef PROBE_BASE_MAP_H
#define PROBE_BASE_MAP_H

#include "probe/base/arena.h"
#include "probe/base/str.h"
#include "probe/base/vec.h"

struct ms_map_key {
    const char *p;
    uint32_t n, hash;
};

/* Zero it to start: struct ms_map m = {0}; */
struct ms_map {
    MS_VEC(struct ms_map_key) keys;
    uint32_t *slots; /* index + 1, 0 is free */
    uint32_t mask;   /* number of slots - 1 */
};

#define MS_MAP_NONE UINT32_MAX

/* Returns the index of a key, which is added when new; MS_MAP_NONE when out of memory. The text is
 * not copied: it must live as long as the map. *added may be NULL. */
uint32_t ms_map_put(struct ms_map *m, struct ms_str key, bool *added);
/* Like ms_map_put, but copies the text of a new key into the arena. */
uint32_t ms_map_put_copy(struct ms_map *m, struct ms_str key, struct ms_arena *a, bool *added);
/* Returns the index of a key, or MS_MAP_NONE. */
uint32_t ms_map_get(const struct ms_map *m, struct ms_str key);
static inline struct ms_str ms_map_key(const struct ms_map *m, uint32_t i)
{
    return (struct ms_str){m->keys.p[i].p, m->keys.p[i].n};
}
/* Makes room for n keys at once; false when out of memory. */
bool ms_map_reserve(struct ms_map *m, size_t n);
/* Frees what only looking up keys needs, 10 bytes a key; afterwards keys are known by their index alone. */
void ms_map_seal(struct ms_map *m);
void ms_map_free(struct ms_map *m);

#endif
