/* SPDX-License-Identifier: MIT
 *
 * alloc_calls: the functions of libmstx_memory.so that stand before those of the C library's
 * allocator, from which PyTorch, NumPy and C programs take the memory of their tensors.
 *
 * A call asks the real function first and returns what that returns. Blocks of at least
 * MSTX_MEMORY_LEAST bytes are recorded; a smaller one costs a comparison of its size. A call from
 * within a hook, such as one that the recorder makes, is passed on alone.
 */
#include "mstx/hook/alloc/alloc_stack.h"
#include "mstx/hook/alloc/alloc_table.h"
#include "mstx/hook/real_function.h"
#include "mstx/rt/hook_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The C names of these functions would be those of the C library, so each is named by its label. The
 * Makefile compiles this file with ALLOC_PREFIX "", into a folder of its own: no other object file of the
 * tree defines a function of the C library. */
#ifndef ALLOC_PREFIX
#define ALLOC_PREFIX "mstx_alloc_"
#endif
#define CALL(name) __asm__(ALLOC_PREFIX name)

HOOK_API void *alloc_plain(size_t n) CALL("malloc");
HOOK_API void *alloc_zeroed(size_t count, size_t size) CALL("calloc");
HOOK_API void *alloc_resized(void *p, size_t n) CALL("realloc");
HOOK_API void alloc_given(void *p) CALL("free");
HOOK_API int alloc_posix(void **out, size_t align, size_t n) CALL("posix_memalign");
HOOK_API void *alloc_aligned(size_t align, size_t n) CALL("aligned_alloc");
HOOK_API void *alloc_memalign(size_t align, size_t n) CALL("memalign");

/* ---- the real functions ------------------------------------------------------------------- */

static struct {
    void *(*plain)(size_t);
    void *(*zeroed)(size_t, size_t);
    void *(*resized)(void *, size_t);
    void (*given)(void *);
    int (*posix)(void **, size_t, size_t);
    void *(*aligned)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    size_t (*usable)(void *);
} real;

/* Memory for what dlsym itself allocates while the real functions are looked up. */
enum { EARLY_ROOM = 1 << 14 };
static struct {
    _Alignas(64) char room[EARLY_ROOM];
    size_t used;
    bool looking;
} early;

static void *early_memory(size_t n)
{
    const size_t need = (n + 63) & ~(size_t)63;
    if (need < n || need > EARLY_ROOM - early.used)
        return NULL;
    early.used += need;
    return early.room + early.used - need;
}

static bool is_early(const void *p)
{
    return (uintptr_t)p - (uintptr_t)early.room < EARLY_ROOM;
}

static HOOK_COLD bool find_real(void)
{
    if (early.looking)
        return false;
    early.looking = true;
    *(void **)(void *)&real.zeroed = dlsym(RTLD_NEXT, "calloc");
    *(void **)(void *)&real.resized = dlsym(RTLD_NEXT, "realloc");
    *(void **)(void *)&real.given = dlsym(RTLD_NEXT, "free");
    *(void **)(void *)&real.posix = dlsym(RTLD_NEXT, "posix_memalign");
    *(void **)(void *)&real.aligned = dlsym(RTLD_NEXT, "aligned_alloc");
    *(void **)(void *)&real.memalign = dlsym(RTLD_NEXT, "memalign");
    *(void **)(void *)&real.usable = dlsym(RTLD_NEXT, "malloc_usable_size");
    *(void **)(void *)&real.plain = dlsym(RTLD_NEXT, "malloc");
    early.looking = false;
    return real.plain != NULL;
}

/* The loader calls this before the program has threads, if nothing allocated earlier. */
__attribute__((constructor)) static void prepare(void)
{
    if (real.plain == NULL)
        find_real();
    hook_depth++;
    alloc_table_prepare(getenv("MSTX_MEMORY_LEAST"));
    mstx_memory_begin();
    hook_depth--;
}

/* ---- records -------------------------------------------------------------------------------- */

static HOOK_COLD void record_taken(void *p, size_t n, bool with_stack)
{
    const int saved = errno;
    hook_depth++;
    if (alloc_table_put(p))
        mstx_memory_taken(p, n, with_stack ? alloc_stack_text() : NULL);
    hook_depth--;
    errno = saved;
}

static HOOK_COLD void record_given(const void *p)
{
    const int saved = errno;
    hook_depth++;
    if (alloc_table_take(p))
        mstx_memory_given(p);
    hook_depth--;
    errno = saved;
}

/* Tells whether a block may have been recorded. The size of a block lies where a free looks in any
 * case; the table would cost each free of a small block a line of the cache. */
static inline bool may_be_recorded(void *p)
{
    return hook_depth == 0 && (real.usable == NULL || real.usable(p) >= alloc_least) &&
           alloc_table_may_have(p);
}

static inline void *taken(void *p, size_t n, bool with_stack)
{
    if (n >= alloc_least && p != NULL && hook_depth == 0)
        record_taken(p, n, with_stack);
    return p;
}

/* ---- the functions --------------------------------------------------------------------------- */

void *alloc_plain(size_t n)
{
    if (!HOOK_LIKELY(real.plain != NULL) && !find_real())
        return early_memory(n);
    return taken(real.plain(n), n, true);
}

/* Python allocates the tables of its own allocator by calloc and realloc, while their state is in
 * between two others, so no stack is taken there. */
void *alloc_zeroed(size_t count, size_t size)
{
    size_t n;
    if (__builtin_mul_overflow(count, size, &n))
        n = SIZE_MAX;
    if (!HOOK_LIKELY(real.plain != NULL) && !find_real())
        return early_memory(n);
    return taken(real.zeroed(count, size), n, false);
}

void *alloc_resized(void *p, size_t n)
{
    if (is_early(p)) {
        void *to = alloc_plain(n);
        const size_t room = (size_t)(early.room + EARLY_ROOM - (char *)p);
        return to != NULL ? memcpy(to, p, n < room ? n : room) : NULL;
    }
    if (!HOOK_LIKELY(real.plain != NULL) && !find_real())
        return early_memory(n);
    if (p != NULL && may_be_recorded(p))
        record_given(p);
    return taken(real.resized(p, n), n, false);
}

void alloc_given(void *p)
{
    if (p == NULL || is_early(p))
        return;
    if (may_be_recorded(p))
        record_given(p);
    if (HOOK_LIKELY(real.given != NULL) || find_real())
        real.given(p);
}

int alloc_posix(void **out, size_t align, size_t n)
{
    if (!HOOK_LIKELY(real.plain != NULL) && !find_real())
        return ENOMEM;
    const int rc = real.posix(out, align, n);
    if (rc == 0)
        taken(*out, n, true);
    return rc;
}

void *alloc_aligned(size_t align, size_t n)
{
    if (!HOOK_LIKELY(real.plain != NULL) && !find_real())
        return NULL;
    return taken(real.aligned(align, n), n, true);
}

void *alloc_memalign(size_t align, size_t n)
{
    if (!HOOK_LIKELY(real.plain != NULL) && !find_real())
        return NULL;
    return taken(real.memalign(align, n), n, true);
}
