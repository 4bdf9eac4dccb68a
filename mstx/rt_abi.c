/* SPDX-License-Identifier: MIT
 *
 * rt_abi: the mstx functions as callers see them.  They check handles, which may be garbage,
 * and hand over to rt_mark.  Memory calls are recorded as they come; what a region or heap is
 * at a time is for the reader to work out, so nothing is looked up here.
 */
#include "mstx/rt_abi.h"
#include "mstx/mstx.h"
#include "mstx/rt.h"
#include "mstx/rt_entry.h"

#include <errno.h>
#include <stdio.h>

#define API __attribute__((visibility("default")))

RT_COLD static void no_domain(void)
{
    rt_say(RT_SAY_DOMAIN, 0, "a domain handle that was never given out was used; ignored");
}

/* ---- marks and ranges --------------------------------------------------------------- */

static void mark_default(const char *message, aclrtStream stream)
{
    rt_mark(&rt_domains[0], message, stream);
}

static mstxRangeId start_default(const char *message, aclrtStream stream)
{
    return rt_range_start(&rt_domains[0], message, stream);
}

static void end_default(mstxRangeId id)
{
    rt_range_end(&rt_domains[0], id);
}

static void get_tool_id(uint64_t *id)
{
    if (id != NULL)
        *id = rt.conf.tool_id;
}

static mstxDomainHandle_t domain_create(const char *name)
{
    return (mstxDomainHandle_t)(void *)rt_domain_create(name);
}

static void domain_destroy(mstxDomainHandle_t domain)
{
    struct rt_domain *d = rt_domain_of(domain);
    if (d != NULL)
        rt_domain_destroy(d);
    else
        no_domain();
}

static void domain_mark(mstxDomainHandle_t domain, const char *message, aclrtStream stream)
{
    struct rt_domain *d = rt_domain_of(domain);
    if (RT_LIKELY(d != NULL))
        rt_mark(d, message, stream);
    else
        no_domain();
}

static mstxRangeId domain_start(mstxDomainHandle_t domain, const char *message, aclrtStream stream)
{
    struct rt_domain *d = rt_domain_of(domain);
    if (RT_LIKELY(d != NULL))
        return rt_range_start(d, message, stream);
    no_domain();
    return 0;
}

static void domain_end(mstxDomainHandle_t domain, mstxRangeId id)
{
    struct rt_domain *d = rt_domain_of(domain);
    if (RT_LIKELY(d != NULL))
        rt_range_end(d, id);
    else
        no_domain();
}

/* ---- memory ---------------------------------------------------------------------------- */

/*
 * Handles are numbers that carry their domain, so that garbage is recognised:
 *
 *     63     48 47    32 31       0
 *     ┌────────┬────────┬──────────┐   kind: heap or region
 *     │ kind   │ domain │ count    │   never dereferenced
 *     └────────┴────────┴──────────┘
 */
enum { HEAP = 0x4D48, REGION = 0x4D52 };
static _Atomic uint32_t handles_given;

static uint64_t new_handle(unsigned kind, const struct rt_domain *d)
{
    return (uint64_t)kind << 48 | (uint64_t)d->number << 32 |
           (atomic_fetch_add(&handles_given, 1) + 1);
}

static bool is_handle(uint64_t h, unsigned kind, const struct rt_domain *d)
{
    return h >> 48 == kind && (h >> 32 & 0xffff) == d->number && (uint32_t)h != 0 &&
           (uint32_t)h <= atomic_load(&handles_given);
}

/* The domain when memory calls in it are recorded, else NULL. */
static struct rt_domain *recorded(mstxDomainHandle_t domain)
{
    struct rt_domain *d = rt_domain_of(domain);
    if (d == NULL) {
        no_domain();
        return NULL;
    }
    return (atomic_load_explicit(&d->live, memory_order_relaxed) & RT_RECORD) != 0 ? d : NULL;
}

static struct mstx_rec_mem memory_of(const struct rt_domain *d, const mstxMemVirtualRangeDesc_t *v)
{
    return (struct mstx_rec_mem){.address = (uint64_t)(uintptr_t)v->ptr,
                                 .size = v->size,
                                 .domain = d->number,
                                 .type = MSTX_REC_MEMORY,
                                 .device = v->deviceId};
}

/* usage and type are not looked at: there is one of each, and PyTorch leaves them unset. */
static mstxMemHeapHandle_t heap_register(mstxDomainHandle_t domain, mstxMemHeapDesc_t const *desc)
{
    struct rt_domain *d = rt_domain_of(domain);
    if (d == NULL || desc == NULL || desc->typeSpecificDesc == NULL)
        return NULL;
    uint64_t handle = new_handle(HEAP, d);
    if (recorded(domain) != NULL) {
        const mstxMemVirtualRangeDesc_t *v = desc->typeSpecificDesc;
        struct mstx_rec_mem m = memory_of(d, v);
        rt_memory(d, MSTX_REC_HEAP, handle, v->deviceId, 0, &m);
    }
    return (mstxMemHeapHandle_t)(uintptr_t)handle;
}

static void heap_unregister(mstxDomainHandle_t domain, mstxMemHeapHandle_t heap)
{
    struct rt_domain *d = recorded(domain);
    if (d != NULL && heap != NULL)
        rt_memory(d, MSTX_REC_HEAP_END, (uint64_t)(uintptr_t)heap, 0, 0, NULL);
}

static void regions_register(mstxDomainHandle_t domain, mstxMemRegionsRegisterBatch_t const *b)
{
    struct rt_domain *d = recorded(domain);
    if (d == NULL || b == NULL || b->regionDescArray == NULL)
        return;
    uint64_t heap = (uint64_t)(uintptr_t)b->heap;
    bool known = !d->foreign_memory && is_handle(heap, HEAP, d);
    const mstxMemVirtualRangeDesc_t *v = b->regionDescArray;
    for (size_t i = 0; i < b->regionCount; i++) {
        uint64_t handle = new_handle(REGION, d);
        struct mstx_rec_mem m = memory_of(d, &v[i]);
        rt_memory(d, MSTX_REC_REGION, handle, v[i].deviceId, known ? heap : 0, &m);
        /* Written only for a heap of ours: callers that set neither leave garbage here. */
        if (known && b->regionHandleArrayOut != NULL)
            b->regionHandleArrayOut[i] = (mstxMemRegionHandle_t)(uintptr_t)handle;
    }
}

static void region_record(struct rt_domain *d, uint8_t type, const mstxMemRegionRef_t *ref,
                          uint32_t permissions)
{
    struct mstx_rec_mem m = {
        .permissions = permissions, .domain = d->number, .type = MSTX_REC_MEMORY};
    uint64_t handle = 0;
    if (ref->refType == MSTX_MEM_REGION_REF_TYPE_POINTER) {
        m.address = (uint64_t)(uintptr_t)ref->pointer;
        m.by_pointer = 1;
    } else
        handle = (uint64_t)(uintptr_t)ref->handle;
    rt_memory(d, type, handle, 0, 0, &m);
}

static void regions_unregister(mstxDomainHandle_t domain, mstxMemRegionsUnregisterBatch_t const *b)
{
    struct rt_domain *d = recorded(domain);
    if (d == NULL || b == NULL || b->refArray == NULL)
        return;
    for (size_t i = 0; i < b->refCount; i++)
        region_record(d, MSTX_REC_REGION_END, &b->refArray[i], 0);
}

static void permissions_assign(mstxDomainHandle_t domain, mstxMemPermissionsAssignBatch_t const *b)
{
    struct rt_domain *d = recorded(domain);
    if (d == NULL || b == NULL || b->regionDescArray == NULL)
        return;
    for (size_t i = 0; i < b->regionCount; i++)
        region_record(d, MSTX_REC_PERMIT, &b->regionDescArray[i].region,
                      b->regionDescArray[i].flags);
}

/* ---- exported names ---------------------------------------------------------------------- */

API void mstxMarkA(const char *message, aclrtStream stream)
{
    mark_default(message, stream);
}
API mstxRangeId mstxRangeStartA(const char *message, aclrtStream stream)
{
    return start_default(message, stream);
}
API void mstxRangeEnd(mstxRangeId id)
{
    end_default(id);
}
API void mstxGetToolId(uint64_t *id)
{
    get_tool_id(id);
}
API mstxDomainHandle_t mstxDomainCreateA(const char *name)
{
    return domain_create(name);
}
API void mstxDomainDestroy(mstxDomainHandle_t domain)
{
    domain_destroy(domain);
}
API void mstxDomainMarkA(mstxDomainHandle_t domain, const char *message, aclrtStream stream)
{
    domain_mark(domain, message, stream);
}
API mstxRangeId mstxDomainRangeStartA(mstxDomainHandle_t domain, const char *message,
                                      aclrtStream stream)
{
    return domain_start(domain, message, stream);
}
API void mstxDomainRangeEnd(mstxDomainHandle_t domain, mstxRangeId id)
{
    domain_end(domain, id);
}
API mstxMemHeapHandle_t mstxMemHeapRegister(mstxDomainHandle_t domain,
                                            mstxMemHeapDesc_t const *desc)
{
    return heap_register(domain, desc);
}
API void mstxMemHeapUnregister(mstxDomainHandle_t domain, mstxMemHeapHandle_t heap)
{
    heap_unregister(domain, heap);
}
API void mstxMemRegionsRegister(mstxDomainHandle_t domain, mstxMemRegionsRegisterBatch_t const *b)
{
    regions_register(domain, b);
}
API void mstxMemRegionsUnregister(mstxDomainHandle_t domain,
                                  mstxMemRegionsUnregisterBatch_t const *b)
{
    regions_unregister(domain, b);
}
API void mstxMemPermissionsAssign(mstxDomainHandle_t domain,
                                  mstxMemPermissionsAssignBatch_t const *b)
{
    permissions_assign(domain, b);
}

/* ---- tables of the same functions, by slot -------------------------------------------------- */

/* Not the exported names: with a preload they may be somebody else's. */
#define F(f) (mstxFuncPointer) f
const mstxFuncPointer rt_abi_core[] = {NULL, F(mark_default), F(start_default), F(end_default),
                                       F(get_tool_id)};
const mstxFuncPointer rt_abi_domain[] = {NULL,           F(domain_create), F(domain_destroy),
                                         F(domain_mark), F(domain_start),  F(domain_end)};
const mstxFuncPointer rt_abi_mem[] = {NULL,
                                      F(heap_register),
                                      F(heap_unregister),
                                      F(regions_register),
                                      F(regions_unregister),
                                      F(permissions_assign)};

/* ---- a listener (mspti) ------------------------------------------------------------------- */

static _Atomic(mstx_listener *) listener;

static void tell_listener(enum rt_tap_kind kind, struct rt_domain *d, const char *message,
                          void *stream, uint32_t id, uint64_t *other)
{
    mstx_listener *fn = atomic_load(&listener);
    struct timespec t;
    (void)other;
    if (fn == NULL)
        return;
    clock_gettime(CLOCK_REALTIME, &t);
    const struct mstx_heard h = {.kind = (enum mstx_heard_kind)kind,
                                 .message = message,
                                 .domain = d->name,
                                 .stream = stream,
                                 .id = id,
                                 .ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec};
    fn(&h);
}

static void listen(mstx_listener *fn)
{
    atomic_store(&listener, fn);
    rt_start(fn != NULL); /* ranges get their ids from a running capture */
    rt_set_tap(RT_TAP_MSPTI, fn != NULL ? tell_listener : NULL);
}

API const struct mstx_entry mstx_rt_entry = {
    .size = sizeof(struct mstx_entry),
    .mark = domain_mark,
    .range_start = domain_start,
    .range_end = domain_end,
    .tool_id = get_tool_id,
    .domain_create = domain_create,
    .domain_destroy = domain_destroy,
    .heap_register = heap_register,
    .heap_unregister = heap_unregister,
    .regions_register = regions_register,
    .regions_unregister = regions_unregister,
    .permissions_assign = permissions_assign,
    .listen = listen,
};

/* ---- own extensions -------------------------------------------------------------------------- */

API int mstx_record_start(const char *dir)
{
    if (dir != NULL && !rt_is_running()) {
        if (strlen(dir) >= sizeof rt.conf.out)
            return -1;
        memcpy(rt.conf.out, dir, strlen(dir) + 1);
        atomic_store(&rt.recording, 1);
    }
    return rt_start(true) ? 0 : -1;
}

API void mstx_record_pause(void)
{
    if (rt_is_running())
        rt_set_recording(false, MSTX_WHY_STOP);
}

API void mstx_record_resume(void)
{
    if (rt_is_running())
        rt_set_recording(true, MSTX_WHY_START);
}

API int mstx_record_snapshot(const char *dir)
{
    if (!rt_is_running() || dir == NULL)
        return EINVAL;
    rt_clock_tick();
    return rt_file_snapshot(dir);
}

API const char *mstx_record_path(void)
{
    return rt_is_running() ? rt.target : "";
}

static void counter(mstxDomainHandle_t domain, const char *name, uint64_t bits, bool real)
{
    struct rt_domain *d = recorded(domain);
    struct rt_ring *r = d == NULL || name == NULL ? NULL : rt_ring_of_thread();
    uint32_t id = r == NULL ? UINT32_MAX : rt_text_id(r, name);
    if (id != UINT32_MAX)
        rt_counter(d, id, bits, real);
}

API void mstx_counter_int(mstxDomainHandle_t domain, const char *name, int64_t value)
{
    counter(domain, name, (uint64_t)value, false);
}

API void mstx_counter_real(mstxDomainHandle_t domain, const char *name, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    counter(domain, name, bits, true);
}
