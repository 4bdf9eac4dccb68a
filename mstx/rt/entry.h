/* SPDX-License-Identifier: MIT
 *
 * entry: the table of functions through which the other libraries of this folder (drop-ins, the
 * Python module) call the one recorder of the process, which is in libmstx.so.
 */
#ifndef MSTX_RT_ENTRY_H
#define MSTX_RT_ENTRY_H

#define MSTX_NO_IMPL
#include "mstx/ms_tools_ext.h"

#include <stdint.h>

/* Event passed to a listener.  Times are nanoseconds since the Unix epoch; strings live until the call
 * returns. */
enum mstx_heard_kind { MSTX_HEARD_MARK, MSTX_HEARD_START, MSTX_HEARD_END };
struct mstx_heard {
    enum mstx_heard_kind kind;
    const char *message, *domain; /* message is NULL for an end */
    void *stream;
    uint64_t id;
    int64_t ns;
};
typedef void mstx_listener(const struct mstx_heard *h);

struct mstx_entry {
    uint32_t size; /* of this struct; members are only ever added */
    void (*mark)(mstxDomainHandle_t, const char *, aclrtStream);
    mstxRangeId (*range_start)(mstxDomainHandle_t, const char *, aclrtStream);
    void (*range_end)(mstxDomainHandle_t, mstxRangeId);
    void (*tool_id)(uint64_t *);
    mstxDomainHandle_t (*domain_create)(const char *);
    void (*domain_destroy)(mstxDomainHandle_t);
    mstxMemHeapHandle_t (*heap_register)(mstxDomainHandle_t, mstxMemHeapDesc_t const *);
    void (*heap_unregister)(mstxDomainHandle_t, mstxMemHeapHandle_t);
    void (*regions_register)(mstxDomainHandle_t, mstxMemRegionsRegisterBatch_t const *);
    void (*regions_unregister)(mstxDomainHandle_t, mstxMemRegionsUnregisterBatch_t const *);
    void (*permissions_assign)(mstxDomainHandle_t, mstxMemPermissionsAssignBatch_t const *);
    void (*listen)(mstx_listener *fn); /* one listener; NULL: none */
};
extern const struct mstx_entry mstx_rt_entry;

#endif
