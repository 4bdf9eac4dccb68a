/* SPDX-License-Identifier: MIT
 *
 * memory: what allocators tell of heaps and regions, through mstx or NVTX, as records, and
 * for mstx passed on to the next tool.  What a region or heap is at a time is for the reader to
 * work out, so nothing is looked up here.
 */
#ifndef MSTX_RT_MEMORY_H
#define MSTX_RT_MEMORY_H

#define MSTX_NO_IMPL
#include "mstx/ms_tools_ext.h"
#include "mstx/rt/domain.h"

struct rt_block {
    uint64_t address, size;
    uint32_t device;
};
/* A heap or region, by the handle that was given for it or by its address. */
struct rt_block_ref {
    bool by_address;
    uint64_t what;
};

/* Handles are given also when the domain is not recorded: theirs, the next tool's, or ours where
 * that is 0. */
uint64_t rt_heap_open(struct rt_domain *d, const struct rt_block *b, uint64_t theirs);
/* Its regions end with it; `stays`: it is only emptied. */
void rt_heap_close(struct rt_domain *d, uint64_t heap, bool stays);
bool rt_heap_is_ours(const struct rt_domain *d, uint64_t heap);
/* A heap or region whose handle is no next tool's: it is not to be asked about that. */
bool rt_handle_is_made_here(const struct rt_domain *d, uint64_t handle);
/* heap 0: in none. */
uint64_t rt_region_open(struct rt_domain *d, uint64_t heap, const struct rt_block *b,
                        uint64_t theirs);
/* The region at that address has another size from now on. */
void rt_region_resize(struct rt_domain *d, const struct rt_block *b);
void rt_region_close(struct rt_domain *d, struct rt_block_ref region);
void rt_region_permit(struct rt_domain *d, struct rt_block_ref region, uint32_t permissions);
/* name: a text id. */
void rt_block_name(struct rt_domain *d, struct rt_block_ref block, uint32_t name);

/* The memory functions of mstx. */
mstxMemHeapHandle_t rt_mstx_heap(mstxDomainHandle_t domain, mstxMemHeapDesc_t const *desc);
void rt_mstx_unheap(mstxDomainHandle_t domain, mstxMemHeapHandle_t heap);
void rt_mstx_regions(mstxDomainHandle_t domain, mstxMemRegionsRegisterBatch_t const *b);
void rt_mstx_unregions(mstxDomainHandle_t domain, mstxMemRegionsUnregisterBatch_t const *b);
void rt_mstx_permit(mstxDomainHandle_t domain, mstxMemPermissionsAssignBatch_t const *b);

/* The next tool's, by slot; NULL: there is none.  domain_of gives the handle it knows a domain
 * by.  To be set before the first call can come. */
void rt_memory_chain(const mstxFuncPointer *next,
                     mstxDomainHandle_t (*domain_of)(struct rt_domain *));

#endif
