/* SPDX-License-Identifier: MIT
 *
 * memory: see the header.
 *
 * Handles are numbers that carry their domain, so that garbage is recognised:
 *
 *     63     48 47    32 31       0
 *     ┌────────┬────────┬──────────┐   kind: heap or region
 *     │ kind   │ domain │ count    │   never dereferenced
 *     └────────┴────────┴──────────┘
 *
 * When there is a next tool, its handles are given out wherever it makes some, because later calls
 * pass them on to it; a set remembers them, for the same reason.
 */
#include "mstx/rt/memory.h"

#include "mstx/format/memory_names.h"
#include "mstx/rt/hook_api.h"
#include "mstx/rt/mark.h"

enum { HEAP = 0x4D48, REGION = 0x4D52, NEXT_HEAPS = 1 << 14, BATCH = 64 };
static _Atomic uint32_t handles_given;

static struct {
    const mstxFuncPointer *fn;
    mstxDomainHandle_t (*domain_of)(struct rt_domain *);
    _Atomic uint64_t heaps[NEXT_HEAPS]; /* open addressing, 0: free */
    _Atomic uint32_t used;
} next;

static uint64_t new_handle(unsigned kind, const struct rt_domain *d)
{
    ms_assert(kind == HEAP || kind == REGION);
    return (uint64_t)kind << 48 | (uint64_t)d->number << 32 |
           (atomic_fetch_add(&handles_given, 1) + 1);
}

static bool is_handle(uint64_t h, unsigned kind, const struct rt_domain *d)
{
    return h >> 48 == kind && (h >> 32 & 0xffff) == d->number && (uint32_t)h != 0 &&
           (uint32_t)h <= atomic_load(&handles_given);
}

static bool is_recorded(const struct rt_domain *d)
{
    return (atomic_load_explicit(&d->live, memory_order_relaxed) & RT_RECORD) != 0;
}

/* ---- records ---------------------------------------------------------------------------- */

static struct mstx_rec_mem memory_of(const struct rt_domain *d, const struct rt_block *b)
{
    return (struct mstx_rec_mem){.address = b->address,
                                 .size = b->size,
                                 .domain = d->number,
                                 .type = MSTX_REC_MEMORY,
                                 .device = b->device};
}

static void record_block(struct rt_domain *d, uint8_t type, uint64_t handle, uint64_t heap,
                         const struct rt_block *b, bool by_address)
{
    ms_assert(b != NULL);
    struct mstx_rec_mem m = memory_of(d, b);
    m.by_pointer = by_address;
    if (is_recorded(d))
        rt_memory(d, type, handle, b->device, heap, &m);
}

static void remember_heap(uint64_t h)
{
    if (h == 0 || atomic_load(&next.used) >= NEXT_HEAPS / 2)
        return; /* full: regions in this heap get no handles, which is safe */
    for (size_t i = (size_t)(h * 0x9E3779B97F4A7C15u >> 50);; i++) {
        uint64_t at = 0;
        if (atomic_compare_exchange_strong(&next.heaps[i % NEXT_HEAPS], &at, h)) {
            atomic_fetch_add(&next.used, 1);
            return;
        }
        if (at == h)
            return;
    }
}

bool rt_heap_is_ours(const struct rt_domain *d, uint64_t heap)
{
    if (is_handle(heap, HEAP, d))
        return true;
    for (size_t i = (size_t)(heap * 0x9E3779B97F4A7C15u >> 50); atomic_load(&next.used) != 0; i++) {
        uint64_t at = atomic_load(&next.heaps[i % NEXT_HEAPS]);
        if (at == heap || at == 0)
            return at != 0;
    }
    return false;
}

bool rt_handle_is_made_here(const struct rt_domain *d, uint64_t handle)
{
    return is_handle(handle, HEAP, d) || is_handle(handle, REGION, d);
}

uint64_t rt_heap_open(struct rt_domain *d, const struct rt_block *b, uint64_t theirs)
{
    uint64_t handle = theirs != 0 ? theirs : new_handle(HEAP, d);
    remember_heap(theirs);
    record_block(d, MSTX_REC_HEAP, handle, 0, b, false);
    return handle;
}

void rt_heap_close(struct rt_domain *d, uint64_t heap, bool stays)
{
    if (is_recorded(d))
        rt_memory(d, MSTX_REC_HEAP_END, heap, 0, stays, NULL);
}

uint64_t rt_region_open(struct rt_domain *d, uint64_t heap, const struct rt_block *b,
                        uint64_t theirs)
{
    uint64_t handle = theirs != 0 ? theirs : new_handle(REGION, d);
    record_block(d, MSTX_REC_REGION, handle, heap, b, false);
    return handle;
}

void rt_region_resize(struct rt_domain *d, const struct rt_block *b)
{
    record_block(d, MSTX_REC_REGION, 0, 0, b, true);
}

static void record_ref(struct rt_domain *d, uint8_t type, struct rt_block_ref ref, uint32_t name,
                       uint32_t permissions)
{
    struct mstx_rec_mem m = {.permissions = permissions,
                             .domain = d->number,
                             .type = MSTX_REC_MEMORY,
                             .by_pointer = ref.by_address,
                             .address = ref.by_address ? ref.what : 0};
    if (is_recorded(d))
        rt_memory(d, type, ref.by_address ? 0 : ref.what, name, 0, &m);
}

void rt_region_close(struct rt_domain *d, struct rt_block_ref region)
{
    record_ref(d, MSTX_REC_REGION_END, region, 0, 0);
}

void rt_region_permit(struct rt_domain *d, struct rt_block_ref region, uint32_t permissions)
{
    record_ref(d, MSTX_REC_PERMIT, region, 0, permissions);
}

void rt_block_name(struct rt_domain *d, struct rt_block_ref block, uint32_t name)
{
    record_ref(d, MSTX_REC_BLOCK_NAME, block, name, 0);
}

/* ---- allocators of the host ---------------------------------------------------------------- */

#define API __attribute__((visibility("default")))

/* The domain of their regions; NULL: none are recorded. */
static struct rt_domain *_Atomic host_domain;

API void mstx_memory_begin(void)
{
    atomic_store(&host_domain, rt_domain_create(MSTX_MEMORY_DOMAIN));
}

API void mstx_memory_taken(const void *address, uint64_t bytes, const char *stack)
{
    struct rt_domain *d = atomic_load_explicit(&host_domain, memory_order_acquire);
    const struct rt_block b = {(uint64_t)(uintptr_t)address, bytes, 0};
    if (d == NULL || !is_recorded(d))
        return;
    struct rt_ring *r = rt_ring_of_thread();
    const uint32_t text = r != NULL && stack != NULL ? rt_text_id_of_call(r, stack) : 0;
    const uint64_t region = rt_region_open(d, 0, &b, 0);
    if (text != 0 && text != RT_REFUSED_ID)
        rt_block_name(d, (struct rt_block_ref){false, region}, text);
}

API void mstx_memory_given(const void *address)
{
    struct rt_domain *d = atomic_load_explicit(&host_domain, memory_order_acquire);
    if (d != NULL)
        rt_region_close(d, (struct rt_block_ref){true, (uint64_t)(uintptr_t)address});
}

/* ---- the next tool ------------------------------------------------------------------------ */

void rt_memory_chain(const mstxFuncPointer *fn, mstxDomainHandle_t (*domain_of)(struct rt_domain *))
{
    ms_assert(fn != NULL && domain_of != NULL);
    next.domain_of = domain_of;
    next.fn = fn;
}

#define NEXT(slot, type) (next.fn != NULL ? (type)next.fn[slot] : NULL)
typedef mstxMemHeapHandle_t heap_fn(mstxDomainHandle_t, mstxMemHeapDesc_t const *);
typedef void unheap_fn(mstxDomainHandle_t, mstxMemHeapHandle_t);
typedef void regions_fn(mstxDomainHandle_t, mstxMemRegionsRegisterBatch_t const *);
typedef void unregions_fn(mstxDomainHandle_t, mstxMemRegionsUnregisterBatch_t const *);
typedef void permit_fn(mstxDomainHandle_t, mstxMemPermissionsAssignBatch_t const *);

/* ---- mstx ----------------------------------------------------------------------------------- */

static struct rt_domain *domain_of(mstxDomainHandle_t domain)
{
    struct rt_domain *d = rt_domain_of(domain);
    if (d == NULL)
        rt_say(RT_SAY_DOMAIN, 0, "a domain handle that was never given out was used; ignored");
    return d;
}

static struct rt_block block_of(const mstxMemVirtualRangeDesc_t *v)
{
    return (struct rt_block){(uint64_t)(uintptr_t)v->ptr, v->size, v->deviceId};
}

/* Opens a heap. usage and type are ignored: there is one value of each, and PyTorch leaves them
 * unset. */
mstxMemHeapHandle_t rt_mstx_heap(mstxDomainHandle_t domain, mstxMemHeapDesc_t const *desc)
{
    struct rt_domain *d = rt_domain_of(domain);
    if (d == NULL || desc == NULL || desc->typeSpecificDesc == NULL)
        return NULL;
    heap_fn *fn = NEXT(MSTX_FUNC_MEM_HEAP_REGISTER, heap_fn *);
    uint64_t theirs = fn != NULL ? (uint64_t)(uintptr_t)fn(next.domain_of(d), desc) : 0;
    struct rt_block b = block_of(desc->typeSpecificDesc);
    return (mstxMemHeapHandle_t)(uintptr_t)rt_heap_open(d, &b, theirs);
}

void rt_mstx_unheap(mstxDomainHandle_t domain, mstxMemHeapHandle_t heap)
{
    struct rt_domain *d = domain_of(domain);
    if (d == NULL || heap == NULL)
        return;
    unheap_fn *fn = NEXT(MSTX_FUNC_MEM_HEAP_UNREGISTER, unheap_fn *);
    if (fn != NULL && !is_handle((uint64_t)(uintptr_t)heap, HEAP, d))
        fn(next.domain_of(d), heap);
    rt_heap_close(d, (uint64_t)(uintptr_t)heap, false);
}

/* Registers n regions of a batch, as many as the array for the handles of the next tool holds. */
static void regions_part(struct rt_domain *d, const mstxMemRegionsRegisterBatch_t *b, bool known,
                         size_t from, size_t n)
{
    ms_assert(n <= BATCH && from + n <= b->regionCount);
    mstxMemRegionHandle_t theirs[BATCH] = {NULL};
    const mstxMemVirtualRangeDesc_t *v =
        (const mstxMemVirtualRangeDesc_t *)b->regionDescArray + from;
    regions_fn *fn = NEXT(MSTX_FUNC_MEM_REGIONS_REGISTER, regions_fn *);
    if (fn != NULL) {
        mstxMemRegionsRegisterBatch_t part = *b;
        part.regionCount = n;
        part.regionDescArray = v;
        part.regionHandleArrayOut = theirs;
        if (is_handle((uint64_t)(uintptr_t)b->heap, HEAP, d))
            part.heap = NULL; /* the next tool did not make this handle */
        fn(next.domain_of(d), &part);
    }
    for (size_t i = 0; i < n; i++) {
        struct rt_block block = block_of(&v[i]);
        uint64_t handle = rt_region_open(d, known ? (uint64_t)(uintptr_t)b->heap : 0, &block,
                                         (uint64_t)(uintptr_t)theirs[i]);
        /* Written only for a heap of ours: callers that set neither leave garbage here. */
        if (known && b->regionHandleArrayOut != NULL)
            b->regionHandleArrayOut[from + i] = (mstxMemRegionHandle_t)(uintptr_t)handle;
    }
}

void rt_mstx_regions(mstxDomainHandle_t domain, mstxMemRegionsRegisterBatch_t const *b)
{
    struct rt_domain *d = domain_of(domain);
    if (d == NULL || b == NULL || b->regionDescArray == NULL ||
        (!is_recorded(d) && next.fn == NULL))
        return;
    bool known = !d->foreign_memory && rt_heap_is_ours(d, (uint64_t)(uintptr_t)b->heap);
    for (size_t i = 0; i < b->regionCount; i += BATCH)
        regions_part(d, b, known, i, b->regionCount - i < BATCH ? b->regionCount - i : BATCH);
}

static struct rt_block_ref ref_of(const mstxMemRegionRef_t *r)
{
    bool by_address = r->refType == MSTX_MEM_REGION_REF_TYPE_POINTER;
    return (struct rt_block_ref){
        by_address, (uint64_t)(uintptr_t)(by_address ? r->pointer : (const void *)r->handle)};
}

/* Tells whether the next tool may know the region; it is not called with handles that it did not
 * make. */
static bool is_theirs(const struct rt_domain *d, struct rt_block_ref ref)
{
    return ref.by_address || !is_handle(ref.what, REGION, d);
}

void rt_mstx_unregions(mstxDomainHandle_t domain, mstxMemRegionsUnregisterBatch_t const *b)
{
    struct rt_domain *d = domain_of(domain);
    if (d == NULL || b == NULL || b->refArray == NULL)
        return;
    unregions_fn *fn = NEXT(MSTX_FUNC_MEM_REGIONS_UNREGISTER, unregions_fn *);
    for (size_t i = 0; i < b->refCount; i++) {
        struct rt_block_ref ref = ref_of(&b->refArray[i]);
        if (fn != NULL && is_theirs(d, ref))
            fn(next.domain_of(d), &(mstxMemRegionsUnregisterBatch_t){1, &b->refArray[i]});
        rt_region_close(d, ref);
    }
}

void rt_mstx_permit(mstxDomainHandle_t domain, mstxMemPermissionsAssignBatch_t const *b)
{
    struct rt_domain *d = domain_of(domain);
    if (d == NULL || b == NULL || b->regionDescArray == NULL)
        return;
    permit_fn *fn = NEXT(MSTX_FUNC_MEM_PERMISSIONS_ASSIGN, permit_fn *);
    for (size_t i = 0; i < b->regionCount; i++) {
        const mstxMemPermissionsAssignRegionsDesc_t *one = &b->regionDescArray[i];
        struct rt_block_ref ref = ref_of(&one->region);
        if (fn != NULL && is_theirs(d, ref))
            fn(next.domain_of(d), &(mstxMemPermissionsAssignBatch_t){1, one});
        rt_region_permit(d, ref, one->flags);
    }
}
