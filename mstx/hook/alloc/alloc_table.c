/* SPDX-License-Identifier: MIT
 *
 * alloc_table: see the header.
 */
#include "mstx/hook/alloc/alloc_table.h"

#include <stdlib.h>

/* Smaller blocks are many and hold little: tensors of a model have more than 4,096 float32. */
enum { LEAST_DEFAULT = 1 << 14 };

size_t alloc_least = SIZE_MAX;
_Atomic(uintptr_t) alloc_table[ALLOC_BUCKETS][ALLOC_BUCKET];

void alloc_table_prepare(const char *least)
{
    char *end = NULL;
    const unsigned long long n = least != NULL ? strtoull(least, &end, 10) : 0;
    alloc_least = end != NULL && *end == '\0' && n > 0 ? (size_t)n : LEAST_DEFAULT;
}

bool alloc_table_put(const void *p)
{
    _Atomic(uintptr_t) *bucket = alloc_table[alloc_bucket(p)];
    for (int i = 0; i < ALLOC_BUCKET; i++) {
        uintptr_t none = 0;
        if (atomic_compare_exchange_strong(&bucket[i], &none, (uintptr_t)p))
            return true;
        if (none == (uintptr_t)p)
            return false;
    }
    return false;
}

bool alloc_table_take(const void *p)
{
    _Atomic(uintptr_t) *bucket = alloc_table[alloc_bucket(p)];
    for (int i = 0; i < ALLOC_BUCKET; i++) {
        uintptr_t is = (uintptr_t)p;
        if (atomic_compare_exchange_strong(&bucket[i], &is, 0))
            return true;
    }
    return false;
}
