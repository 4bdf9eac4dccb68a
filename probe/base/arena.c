/* SPDX-License-Identifier: MIT
 *
 * arena: a list of chunks; blocks come from the head.
 *
 *     arena ─► chunk [ used | free ] ─► chunk [ full ] ─► ...
 *
 * Chunks start at 4 KiB and double up to 256 KiB: a small dump stays small, and a
 * large one needs few system calls.
 */
#include "probe/base/arena.h"

#include "probe/base/mem.h"

#include <assert.h>
#include <stdalign.h>

enum { FIRST_CHUNK = 4096, LARGEST_CHUNK = 256 * 1024 };

struct chunk {
    struct chunk *next;
    size_t size, used;
    alignas(max_align_t) char data[];
};

struct ms_arena {
    struct chunk *head;
    size_t limit, used, next_size;
    bool hit_limit;
};

struct ms_arena *ms_arena_new(size_t limit)
{
    struct ms_arena *a = ms_calloc(1, sizeof *a);
    if (a != NULL) {
        a->limit = limit;
        a->next_size = FIRST_CHUNK;
    }
    return a;
}

void ms_arena_free(struct ms_arena *a)
{
    if (a == NULL)
        return;
    for (struct chunk *c = a->head; c != NULL;) {
        struct chunk *next = c->next;
        ms_free(c);
        c = next;
    }
    ms_free(a);
}

/* A block larger than a quarter of a chunk gets a chunk of its own behind the head, so that the
 * rest of the head stays in use. The unused end of a full chunk is therefore smaller than the block
 * that did not fit. */
static struct chunk *add_chunk(struct ms_arena *a, size_t n)
{
    bool own = a->head != NULL && n > a->next_size / 4;
    size_t size = own || n > a->next_size ? n : a->next_size;
    size_t bytes;
    struct chunk *c = ms_add_size(sizeof *c, size, &bytes) ? ms_alloc(bytes) : NULL;
    if (c == NULL)
        return NULL;
    struct chunk **at = own ? &a->head->next : &a->head;
    *c = (struct chunk){.next = *at, .size = size};
    *at = c;
    if (!own && a->next_size < LARGEST_CHUNK)
        a->next_size *= 2;
    return c;
}

static void *take_bytes(struct ms_arena *a, size_t n, size_t align)
{
    struct chunk *c = a->head;
    size_t at = c != NULL ? (c->used + align - 1) & ~(align - 1) : 0;
    bool fits = c != NULL && at <= c->size && n <= c->size - at;
    size_t padding = fits ? at - c->used : 0;
    a->hit_limit = padding > a->limit - a->used || n > a->limit - a->used - padding;
    if (a->hit_limit)
        return NULL;
    if (!fits) {
        c = add_chunk(a, n);
        at = 0;
    }
    if (c == NULL)
        return NULL;
    c->used = at + n;
    a->used += padding + n;
    assert(c->used <= c->size);
    return c->data + at;
}

void *ms_arena_alloc(struct ms_arena *a, size_t n)
{
    return take_bytes(a, n, alignof(max_align_t));
}

void *ms_arena_calloc(struct ms_arena *a, size_t count, size_t size)
{
    size_t n;
    if (!ms_mul_size(count, size, &n)) {
        a->hit_limit = true;
        return NULL;
    }
    void *p = ms_arena_alloc(a, n);
    return p != NULL ? memset(p, 0, n) : NULL;
}

char *ms_arena_text(struct ms_arena *a, size_t n)
{
    return take_bytes(a, n, 1);
}

struct ms_str ms_arena_str(struct ms_arena *a, struct ms_str s)
{
    char *p = ms_arena_text(a, (size_t)s.n + 1);
    if (p == NULL)
        return MS_STR_NONE;
    if (s.n != 0)
        memcpy(p, s.p, s.n);
    p[s.n] = '\0';
    return (struct ms_str){p, s.n};
}

size_t ms_arena_used(const struct ms_arena *a)
{
    return a->used;
}

enum ms_rc ms_arena_fail(const struct ms_arena *a, struct ms_err *err)
{
    if (a->hit_limit)
        return ms_fail(err, MS_E_LIMIT, "needs more than the %zu bytes allowed for it", a->limit);
    return ms_no_memory(err);
}
