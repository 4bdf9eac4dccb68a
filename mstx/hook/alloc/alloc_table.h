/* SPDX-License-Identifier: MIT
 *
 * alloc_table: the addresses of the blocks that were recorded and not given back, so that a free of
 * any other block records nothing.
 *
 * A table of buckets of eight addresses, without locks: an entry is taken and left by one
 * compare-and-exchange. A block whose bucket is full is not recorded.
 */
#ifndef MSTX_HOOK_ALLOC_TABLE_H
#define MSTX_HOOK_ALLOC_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Blocks from this many bytes on are recorded; SIZE_MAX: none. */
extern size_t alloc_least;

enum { ALLOC_BUCKETS = 1 << 15, ALLOC_BUCKET = 8 };
extern _Atomic(uintptr_t) alloc_table[ALLOC_BUCKETS][ALLOC_BUCKET];

/* Sets alloc_least from the text of a number of bytes; NULL: the default. */
void alloc_table_prepare(const char *least);
/* Adds an address; false when its bucket is full or it is there already. */
bool alloc_table_put(const void *p);
/* Removes an address; false when it is not there. */
bool alloc_table_take(const void *p);

static inline size_t alloc_bucket(const void *p)
{
    return (size_t)((uintptr_t)p * UINT64_C(0x9E3779B97F4A7C15) >> 49) % ALLOC_BUCKETS;
}
/* Tells whether an address may be in the table; false is certain. A bucket fills from its first
 * place, so most frees look at one address. */
static inline bool alloc_table_may_have(const void *p)
{
    const _Atomic(uintptr_t) *bucket = alloc_table[alloc_bucket(p)];
    for (int i = 0; i < ALLOC_BUCKET; i++) {
        if (atomic_load_explicit(&bucket[i], memory_order_relaxed) == (uintptr_t)p)
            return true;
    }
    return false;
}

#endif
