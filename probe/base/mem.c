/* SPDX-License-Identifier: MIT
 *
 * mem: counts the bytes that the allocator really reserved (malloc_usable_size), so no header is
 * needed in front of a block and free needs no size. Counters are relaxed atomics: they only
 * measure and order no other memory access.
 */
#include "probe/base/mem.h"

#include "probe/base/vec.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static struct {
    atomic_size_t live, peak;
    atomic_uint_fast64_t calls;
    atomic_uint_fast64_t fail_countdown; /* 0: off */
    atomic_bool failed;
} mem;

static bool must_fail(void)
{
    atomic_fetch_add_explicit(&mem.calls, 1, memory_order_relaxed);
    if (atomic_load_explicit(&mem.fail_countdown, memory_order_relaxed) == 0)
        return false;
    if (atomic_fetch_sub(&mem.fail_countdown, 1) != 1)
        return false;
    atomic_store(&mem.failed, true);
    return true;
}

static void *count_in(void *p)
{
    if (p == NULL)
        return NULL;
    size_t n = malloc_usable_size(p);
    size_t live = atomic_fetch_add_explicit(&mem.live, n, memory_order_relaxed) + n;
    size_t peak = atomic_load_explicit(&mem.peak, memory_order_relaxed);
    while (live > peak && !atomic_compare_exchange_weak(&mem.peak, &peak, live)) {
    }
    return p;
}

static void count_out(void *p)
{
    atomic_fetch_sub_explicit(&mem.live, malloc_usable_size(p), memory_order_relaxed);
}

void *ms_alloc(size_t n)
{
    return must_fail() ? NULL : count_in(malloc(n != 0 ? n : 1));
}

void *ms_calloc(size_t count, size_t size)
{
    return must_fail() ? NULL : count_in(calloc(count != 0 ? count : 1, size != 0 ? size : 1));
}

void *ms_calloc_written(size_t count, size_t size)
{
    size_t n;
    void *p = __builtin_mul_overflow(count, size, &n) ? NULL : ms_alloc(n);
    return p != NULL ? memset(p, 0, n) : NULL;
}

void *ms_realloc(void *p, size_t n)
{
    if (p == NULL)
        return ms_alloc(n);
    if (must_fail())
        return NULL;
    size_t before = malloc_usable_size(p);
    void *q = realloc(p, n != 0 ? n : 1);
    if (q == NULL)
        return NULL;
    atomic_fetch_sub_explicit(&mem.live, before, memory_order_relaxed);
    return count_in(q);
}

void ms_free(void *p)
{
    if (p == NULL)
        return;
    count_out(p);
    free(p);
}

void ms_mem_give_back(void)
{
    enum { THRESHOLD = 1 << 20 };
    mallopt(M_TRIM_THRESHOLD, THRESHOLD);
    mallopt(M_MMAP_THRESHOLD, THRESHOLD);
}

size_t ms_mem_live(void)
{
    return atomic_load(&mem.live);
}

size_t ms_mem_peak(void)
{
    return atomic_load(&mem.peak);
}

uint64_t ms_mem_calls(void)
{
    return atomic_load(&mem.calls);
}

void ms_mem_peak_reset(void)
{
    atomic_store(&mem.peak, atomic_load(&mem.live));
}

void ms_mem_fail_at(uint64_t n)
{
    atomic_store(&mem.failed, false);
    atomic_store(&mem.fail_countdown, n);
}

bool ms_mem_failed(void)
{
    return atomic_load(&mem.failed);
}

/* ---- growing arrays ---------------------------------------------------- */

/* Reads the caller's pointer, a T *, by its bytes: an access as void * would break the aliasing
 * rules. */
static void *get_items(const void *p)
{
    void *items;
    memcpy(&items, p, sizeof items);
    return items;
}

static void set_items(void *p, const void *items)
{
    memcpy(p, &items, sizeof items);
}

/* Grows by half, which wastes less than doubling at the sizes of a dump and still copies each item a
 * bounded number of times. */
bool ms_vec_grow(void *p, size_t *cap, size_t want, size_t item)
{
    size_t grown = *cap + *cap / 2 + 8;
    size_t bytes;
    if (grown < want)
        grown = want;
    if (!ms_mul_size(grown, item, &bytes))
        return false;
    void *q = ms_realloc(get_items(p), bytes);
    if (q == NULL)
        return false;
    set_items(p, q);
    *cap = grown;
    return true;
}

void ms_vec_shrink(void *p, size_t *cap, size_t n, size_t item)
{
    if (n == *cap)
        return;
    if (n == 0) {
        ms_free(get_items(p));
        set_items(p, NULL);
        *cap = 0;
        return;
    }
    void *q = ms_realloc(get_items(p), n * item);
    if (q != NULL) {
        set_items(p, q);
        *cap = n;
    }
}
