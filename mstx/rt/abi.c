/* SPDX-License-Identifier: MIT
 *
 * rt_abi: the mstx functions as callers see them.  They check handles, which may be garbage,
 * and hand over to rt_mark and rt_memory.
 */
#include "mstx/rt_abi.h"
#include "mstx/mstx.h"
#include "mstx/rt.h"
#include "mstx/rt_entry.h"
#include "mstx/rt_memory.h"

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
    return rt_mstx_heap(domain, desc);
}
API void mstxMemHeapUnregister(mstxDomainHandle_t domain, mstxMemHeapHandle_t heap)
{
    rt_mstx_unheap(domain, heap);
}
API void mstxMemRegionsRegister(mstxDomainHandle_t domain, mstxMemRegionsRegisterBatch_t const *b)
{
    rt_mstx_regions(domain, b);
}
API void mstxMemRegionsUnregister(mstxDomainHandle_t domain,
                                  mstxMemRegionsUnregisterBatch_t const *b)
{
    rt_mstx_unregions(domain, b);
}
API void mstxMemPermissionsAssign(mstxDomainHandle_t domain,
                                  mstxMemPermissionsAssignBatch_t const *b)
{
    rt_mstx_permit(domain, b);
}

/* ---- tables of the same functions, by slot -------------------------------------------------- */

/* Not the exported names: with a preload they may be somebody else's. */
#define F(f) (mstxFuncPointer) f
const mstxFuncPointer rt_abi_core[] = {NULL, F(mark_default), F(start_default), F(end_default),
                                       F(get_tool_id)};
const mstxFuncPointer rt_abi_domain[] = {NULL,           F(domain_create), F(domain_destroy),
                                         F(domain_mark), F(domain_start),  F(domain_end)};
const mstxFuncPointer rt_abi_mem[] = {NULL,
                                      F(rt_mstx_heap),
                                      F(rt_mstx_unheap),
                                      F(rt_mstx_regions),
                                      F(rt_mstx_unregions),
                                      F(rt_mstx_permit)};

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
    .heap_register = rt_mstx_heap,
    .heap_unregister = rt_mstx_unheap,
    .regions_register = rt_mstx_regions,
    .regions_unregister = rt_mstx_unregions,
    .permissions_assign = rt_mstx_permit,
    .listen = listen,
};

/* ---- own extensions -------------------------------------------------------------------------- */

API int mstx_record_start(const char *dir)
{
    if (dir != NULL && !rt_is_running()) {
        if (strlen(dir) >= sizeof rt.conf.out)
            return -1;
        memcpy(rt.conf.out, dir, strlen(dir) + 1);
        rt_make_absolute(rt.conf.out);
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
    struct rt_domain *d = rt_domain_of(domain);
    bool wanted = d != NULL && name != NULL &&
                  (atomic_load_explicit(&d->live, memory_order_relaxed) & RT_RECORD) != 0;
    struct rt_ring *r = wanted ? rt_ring_of_thread() : NULL;
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
