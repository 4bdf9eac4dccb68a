/* SPDX-License-Identifier: MIT
 *
 * dropin_forward: the mstx names for the libraries that carry the vendor's file names.  The
 * recorder itself is libmstx.so, loaded once per process whatever names it is opened by.
 */
#include "mstx/rt/entry.h"

#define API __attribute__((visibility("default")))

API void mstxMarkA(const char *message, aclrtStream stream)
{
    mstx_rt_entry.mark(NULL, message, stream);
}
API mstxRangeId mstxRangeStartA(const char *message, aclrtStream stream)
{
    return mstx_rt_entry.range_start(NULL, message, stream);
}
API void mstxRangeEnd(mstxRangeId id)
{
    mstx_rt_entry.range_end(NULL, id);
}
API void mstxGetToolId(uint64_t *id)
{
    mstx_rt_entry.tool_id(id);
}
API mstxDomainHandle_t mstxDomainCreateA(const char *name)
{
    return mstx_rt_entry.domain_create(name);
}
API void mstxDomainDestroy(mstxDomainHandle_t domain)
{
    mstx_rt_entry.domain_destroy(domain);
}
API void mstxDomainMarkA(mstxDomainHandle_t domain, const char *message, aclrtStream stream)
{
    mstx_rt_entry.mark(domain, message, stream);
}
API mstxRangeId mstxDomainRangeStartA(mstxDomainHandle_t domain, const char *message,
                                      aclrtStream stream)
{
    return mstx_rt_entry.range_start(domain, message, stream);
}
API void mstxDomainRangeEnd(mstxDomainHandle_t domain, mstxRangeId id)
{
    mstx_rt_entry.range_end(domain, id);
}
API mstxMemHeapHandle_t mstxMemHeapRegister(mstxDomainHandle_t domain,
                                            mstxMemHeapDesc_t const *desc)
{
    return mstx_rt_entry.heap_register(domain, desc);
}
API void mstxMemHeapUnregister(mstxDomainHandle_t domain, mstxMemHeapHandle_t heap)
{
    mstx_rt_entry.heap_unregister(domain, heap);
}
API void mstxMemRegionsRegister(mstxDomainHandle_t domain, mstxMemRegionsRegisterBatch_t const *b)
{
    mstx_rt_entry.regions_register(domain, b);
}
API void mstxMemRegionsUnregister(mstxDomainHandle_t domain,
                                  mstxMemRegionsUnregisterBatch_t const *b)
{
    mstx_rt_entry.regions_unregister(domain, b);
}
API void mstxMemPermissionsAssign(mstxDomainHandle_t domain,
                                  mstxMemPermissionsAssignBatch_t const *b)
{
    mstx_rt_entry.permissions_assign(domain, b);
}
