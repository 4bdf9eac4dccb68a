/* SPDX-License-Identifier: MIT
 *
 * nvtx_mem: the memory module of NVTX's extension: heaps and regions of allocators, recorded
 * like those of mstx.  The structures are the protocol's; an array comes with the size of its
 * elements, which may be larger than the part known here.  A next tool gets arrays one element at a
 * time, except for new regions, and is not called with handles that it did not make.
 */
#include "mstx/rt/memory.h"
#include "mstx/rt/nvtx/nvtx.h"

#include <string.h>

struct range {
    size_t size;
    const void *at;
};
struct heap_desc { /* 48 bytes */
    uint16_t compat, struct_size;
    uint32_t reserved, usage, type;
    size_t range_size;
    const struct range *range;
    uint32_t category;
    int32_t message_type;
    const void *message;
};
struct register_batch { /* 48 bytes */
    uint16_t compat, struct_size;
    uint32_t type;
    const void *heap;
    size_t count, element;
    const char *ranges;
    void **handles;
};
struct resize_batch { /* 32 bytes */
    uint16_t compat, struct_size;
    uint32_t type;
    size_t count, element;
    const char *ranges;
};
struct ref_batch { /* 32 bytes */
    uint16_t compat, struct_size;
    uint32_t ref_type;
    size_t count, element;
    const char *refs;
};
struct name_desc { /* 32 bytes */
    uint32_t ref_type;
    int32_t message_type;
    uint64_t region;
    const void *message;
    uint32_t category, reserved;
};
struct name_batch { /* 40 bytes */
    uint16_t compat, struct_size;
    uint32_t reserved;
    size_t count, element;
    const char *names;
    size_t reserved2;
};
struct permit_desc { /* 16 bytes */
    uint32_t flags, ref_type;
    uint64_t region;
};
struct permit_batch { /* 48 bytes */
    uint16_t compat, struct_size;
    uint32_t reserved;
    const void *permissions;
    size_t count, element;
    const char *regions;
    size_t reserved2;
};
static_assert(sizeof(struct heap_desc) == 48 && sizeof(struct register_batch) == 48, "memory");
static_assert(sizeof(struct resize_batch) == 32 && sizeof(struct ref_batch) == 32, "memory");
static_assert(sizeof(struct name_desc) == 32 && sizeof(struct name_batch) == 40, "memory");
static_assert(sizeof(struct permit_desc) == 16 && sizeof(struct permit_batch) == 48, "memory");

enum { TYPE_VIRTUAL = 1, REF_POINTER = 1, ATOMIC = 4, READ_WRITE = 3, PART = 64 };
enum {
    HEAP_SLOT = 1,
    UNHEAP_SLOT,
    RESET_SLOT,
    REGIONS_SLOT,
    RESIZE_SLOT,
    UNREGIONS_SLOT,
    NAME_SLOT,
    PERMIT_SLOT
};

/* ---- the next tool ---------------------------------------------------------------------- */

typedef void *next_heap_fn(void *, const struct heap_desc *);
typedef void next_fn(void *, const void *);

static void pass_on(struct rt_domain *d, unsigned slot, const void *what)
{
    intptr_t fn = nvtx_next_slot(d, NVTX_MODULE_MEMORY, slot);
    if (fn != 0)
        NVTX_CALL(next_fn, fn, nvtx_next_domain(d), what);
}

/* Replaces a string registered with us by its text, for the next tool. */
static void translate(int32_t *type, const void **message)
{
    if (*type != NVTX_MESSAGE_REGISTERED)
        return;
    *message = nvtx_message_text(*type, *message, NULL, 0);
    *type = *message != NULL ? NVTX_MESSAGE_ASCII : 0;
}

static uint64_t next_heap(struct rt_domain *d, const struct heap_desc *h)
{
    intptr_t fn = nvtx_next_slot(d, NVTX_MODULE_MEMORY, HEAP_SLOT);
    struct heap_desc copy = *h;
    if (fn == 0)
        return 0;
    copy.struct_size = sizeof copy;
    translate(&copy.message_type, &copy.message);
    void *given = NVTX_CALL(next_heap_fn, fn, nvtx_next_domain(d), &copy);
    return (intptr_t)given == -1 ? 0 : (uint64_t)(uintptr_t)given;
}

/* Gets the next tool's handles for n regions from `from` on; 0 where it returned none. */
static void next_regions(struct rt_domain *d, const struct register_batch *b, size_t from, size_t n,
                         void *given[PART])
{
    struct register_batch part = *b;
    memset(given, 0, PART * sizeof given[0]);
    part.struct_size = sizeof part;
    part.count = n;
    part.ranges = b->ranges + from * b->element;
    part.handles = given;
    if (rt_handle_is_made_here(d, (uint64_t)(uintptr_t)b->heap))
        part.heap = NULL;
    pass_on(d, REGIONS_SLOT, &part);
}

static bool is_theirs(const struct rt_domain *d, uint32_t ref_type, uint64_t what)
{
    return ref_type == REF_POINTER || !rt_handle_is_made_here(d, what);
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* Returns the domain if the caller's structure is as long as ours. */
static struct rt_domain *usable_domain(void *domain, const void *desc, size_t size)
{
    uint16_t given[2] = {0, 0};
    if (desc != NULL)
        memcpy(given, desc, sizeof given);
    return given[1] >= size ? rt_domain_of(domain) : NULL;
}

/* Copies element i of a caller's array; false: the elements are too small. */
static bool copy_element(void *to, size_t size, const char *array, size_t stride, size_t i)
{
    if (array == NULL || stride < size)
        return false;
    memcpy(to, array + i * stride, size);
    return true;
}

static struct rt_block block_of(const struct range *r)
{
    return (struct rt_block){(uint64_t)(uintptr_t)r->at, r->size, 0};
}

static struct rt_block_ref ref_of(uint32_t type, uint64_t what)
{
    return (struct rt_block_ref){type == REF_POINTER, what};
}

static void *heap_register(void *domain, const struct heap_desc *h)
{
    struct rt_domain *d = usable_domain(domain, h, sizeof *h);
    if (d == NULL || h->type != TYPE_VIRTUAL || h->range == NULL ||
        h->range_size < sizeof *h->range)
        return NULL;
    struct rt_block b = block_of(h->range);
    uint64_t heap = rt_heap_open(d, &b, next_heap(d, h));
    uint32_t name = nvtx_live(d) ? nvtx_message(h->message_type, h->message) : 0;
    if (name != 0)
        rt_block_name(d, (struct rt_block_ref){false, heap}, name);
    return (void *)(uintptr_t)heap;
}

static void heap_unregister(void *domain, const void *heap)
{
    struct rt_domain *d = rt_domain_of(domain);
    if (d == NULL || heap == NULL)
        return;
    if (!rt_handle_is_made_here(d, (uint64_t)(uintptr_t)heap))
        pass_on(d, UNHEAP_SLOT, heap);
    rt_heap_close(d, (uint64_t)(uintptr_t)heap, false);
}

/* Resets a heap. NULL is the whole process: the regions that are in no heap. */
static void heap_reset(void *domain, const void *heap)
{
    struct rt_domain *d = rt_domain_of(domain);
    if (d == NULL)
        return;
    if (!rt_handle_is_made_here(d, (uint64_t)(uintptr_t)heap))
        pass_on(d, RESET_SLOT, heap);
    rt_heap_close(d, (uint64_t)(uintptr_t)heap, true);
}

static void regions_part(struct rt_domain *d, const struct register_batch *b, size_t from, size_t n)
{
    uint64_t heap = (uint64_t)(uintptr_t)b->heap;
    bool known = rt_heap_is_ours(d, heap);
    void *given[PART];
    struct range r;
    next_regions(d, b, from, n, given);
    for (size_t i = 0; i < n && copy_element(&r, sizeof r, b->ranges, b->element, from + i); i++) {
        struct rt_block block = block_of(&r);
        uint64_t theirs = (uint64_t)(uintptr_t)given[i];
        uint64_t handle = rt_region_open(d, known ? heap : 0, &block, theirs);
        if (b->handles != NULL && (known || heap == 0))
            b->handles[from + i] = (void *)(uintptr_t)handle;
    }
}

static void regions_register(void *domain, const struct register_batch *b)
{
    struct rt_domain *d = usable_domain(domain, b, sizeof *b);
    if (d == NULL || b->type != TYPE_VIRTUAL || b->ranges == NULL ||
        b->element < sizeof(struct range))
        return;
    for (size_t i = 0; i < b->count; i += PART)
        regions_part(d, b, i, b->count - i < PART ? b->count - i : PART);
}

static void regions_resize(void *domain, const struct resize_batch *b)
{
    struct rt_domain *d = usable_domain(domain, b, sizeof *b);
    struct range r;
    for (size_t i = 0; d != NULL && b->type == TYPE_VIRTUAL && i < b->count; i++) {
        if (!copy_element(&r, sizeof r, b->ranges, b->element, i))
            return;
        struct rt_block block = block_of(&r);
        const struct resize_batch one = {b->compat, sizeof one, b->type,
                                         1,         sizeof r,   (const char *)&r};
        pass_on(d, RESIZE_SLOT, &one);
        rt_region_resize(d, &block);
    }
}

static void regions_unregister(void *domain, const struct ref_batch *b)
{
    struct rt_domain *d = usable_domain(domain, b, sizeof *b);
    uint64_t what;
    for (size_t i = 0; d != NULL && i < b->count; i++) {
        if (!copy_element(&what, sizeof what, b->refs, b->element, i))
            return;
        const struct ref_batch one = {b->compat, sizeof one,  b->ref_type,
                                      1,         sizeof what, (const char *)&what};
        if (is_theirs(d, b->ref_type, what))
            pass_on(d, UNREGIONS_SLOT, &one);
        rt_region_close(d, ref_of(b->ref_type, what));
    }
}

static void next_name(struct rt_domain *d, const struct name_batch *b, struct name_desc n)
{
    const struct name_batch one = {.compat = b->compat,
                                   .struct_size = sizeof one,
                                   .count = 1,
                                   .element = sizeof n,
                                   .names = (const char *)&n};
    translate(&n.message_type, &n.message);
    if (is_theirs(d, n.ref_type, n.region))
        pass_on(d, NAME_SLOT, &one);
}

static void regions_name(void *domain, const struct name_batch *b)
{
    struct rt_domain *d = usable_domain(domain, b, sizeof *b);
    struct name_desc n;
    for (size_t i = 0; d != NULL && i < b->count; i++) {
        if (!copy_element(&n, sizeof n, b->names, b->element, i))
            return;
        uint32_t name = nvtx_live(d) ? nvtx_message(n.message_type, n.message) : 0;
        if (name != 0)
            rt_block_name(d, ref_of(n.ref_type, n.region), name);
        next_name(d, b, n);
    }
}

static void permissions_assign(void *domain, const struct permit_batch *b)
{
    struct rt_domain *d = usable_domain(domain, b, sizeof *b);
    struct permit_desc p;
    for (size_t i = 0; d != NULL && i < b->count; i++) {
        if (!copy_element(&p, sizeof p, b->regions, b->element, i))
            return;
        const struct permit_batch one = {.compat = b->compat,
                                         .struct_size = sizeof one,
                                         .permissions = b->permissions,
                                         .count = 1,
                                         .element = sizeof p,
                                         .regions = (const char *)&p};
        if (is_theirs(d, p.ref_type, p.region))
            pass_on(d, PERMIT_SLOT, &one);
        uint32_t allowed = (p.flags & ATOMIC) != 0 ? READ_WRITE : p.flags & READ_WRITE;
        rt_region_permit(d, ref_of(p.ref_type, p.region), allowed);
    }
}

const intptr_t nvtx_memory_slots[NVTX_MEMORY_SLOTS] = {
    0,
    (intptr_t)heap_register,
    (intptr_t)heap_unregister,
    (intptr_t)heap_reset,
    (intptr_t)regions_register,
    (intptr_t)regions_resize,
    (intptr_t)regions_unregister,
    (intptr_t)regions_name,
    (intptr_t)permissions_assign,
};
