/* SPDX-License-Identifier: MIT
 *
 * An allocator of its own, preloaded as jemalloc is: blocks come from one area and are never given back.
 * It counts in thread-local storage and says so when the process ends.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define AREA ((size_t)1 << 32)
#define HEAD 16

static _Atomic(uintptr_t) next, end;
static __thread unsigned long calls;

static void open_area(void)
{
    uintptr_t none = 0;
    void *p = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED)
        return;
    atomic_store(&end, (uintptr_t)p + AREA);
    if (!atomic_compare_exchange_strong(&next, &none, (uintptr_t)p))
        munmap(p, AREA);
}

static void *take(size_t alignment, size_t n)
{
    calls++;
    if (atomic_load(&next) == 0)
        open_area();
    alignment = alignment < 16 ? 16 : alignment;
    size_t whole = (n + alignment + HEAD + 15) & ~(size_t)15;
    uintptr_t at = atomic_fetch_add(&next, whole);
    if (n > AREA || at + whole > atomic_load(&end)) {
        errno = ENOMEM;
        return NULL;
    }
    uintptr_t block = (at + HEAD + alignment - 1) & ~(uintptr_t)(alignment - 1);
    memcpy((void *)(block - sizeof n), &n, sizeof n);
    return (void *)block;
}

static size_t size_of(void *p)
{
    size_t n;
    memcpy(&n, (char *)p - sizeof n, sizeof n);
    return n;
}

#pragma GCC visibility push(default)

void *malloc(size_t n)
{
    return take(16, n);
}
void free(void *p)
{
    (void)p;
}
size_t malloc_usable_size(void *p)
{
    return p != NULL ? size_of(p) : 0;
}
void *aligned_alloc(size_t alignment, size_t n)
{
    return take(alignment, n);
}
void *memalign(size_t alignment, size_t n)
{
    return take(alignment, n);
}

void *calloc(size_t count, size_t size)
{
    size_t n;
    return __builtin_mul_overflow(count, size, &n) ? NULL : take(16, n); /* fresh pages are zero */
}

void *realloc(void *p, size_t n)
{
    void *q = take(16, n);
    if (p != NULL && q != NULL)
        memcpy(q, p, size_of(p) < n ? size_of(p) : n);
    return q;
}

int posix_memalign(void **p, size_t alignment, size_t n)
{
    *p = take(alignment, n);
    return *p != NULL ? 0 : ENOMEM;
}

__attribute__((destructor)) static void tell(void)
{
    static const char text[] = "the other allocator was there\n";
    if (calls != 0 && write(2, text, sizeof text - 1) < 0)
        return;
}
