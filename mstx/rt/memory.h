/* SPDX-License-Identifier: MIT
 *
 * memory: writes records of the heaps and regions that allocators announce through mstx or NVTX,
 * and passes those of mstx on to the next tool.  The reader reconstructs the state of heaps and
 * regions, so the recorder keeps no table of them.
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
/* A reference to a heap or region, by its handle or by its address. */
struct rt_block_ref {
    bool by_address;
    uint64_t what;
};

/* Opens a heap and returns its handle, also when the domain is not recorded: `theirs`, the handle
 * of the next tool, or one of ours where that is 0. */
uint64_t rt_heap_open(struct rt_domain *d, const struct rt_block *b, uint64_t theirs);
/* Closes a heap and with it its regions; `stays`: the heap is only emptied. */
void rt_heap_close(struct rt_domain *d, uint64_t heap, bool stays);
bool rt_heap_is_ours(const struct rt_domain *d, uint64_t heap);
/* Tells whether a handle was made here and not by the next tool, which does not know it then. */
bool rt_handle_is_made_here(const struct rt_domain *d, uint64_t handle);
/* Opens a region; heap 0: in no heap. */
uint64_t rt_region_open(struct rt_domain *d, uint64_t heap, const struct rt_block *b,
                        uint64_t theirs);
/* Changes the size of the region at the address of b. */
void rt_region_resize(struct rt_domain *d, const struct rt_block *b);
void rt_region_close(struct rt_domain *d, struct rt_block_ref region);
void rt_region_permit(struct rt_domain *d, struct rt_block_ref region, uint32_t permissions);
/* Names a heap or region; name: a text id. */
void rt_block_name(struct rt_domain *d, struct rt_block_ref block, uint32_t name);

/* The memory functions of mstx. */
mstxMemHeapHandle_t rt_mstx_heap(mstxDomainHandle_t domain, mstxMemHeapDesc_t const *desc);
void rt_mstx_unheap(mstxDomainHandle_t domain, mstxMemHeapHandle_t heap);
void rt_mstx_regions(mstxDomainHandle_t domain, mstxMemRegionsRegisterBatch_t const *b);
void rt_mstx_unregions(mstxDomainHandle_t domain, mstxMemRegionsUnregisterBatch_t const *b);
void rt_mstx_permit(mstxDomainHandle_t domain, mstxMemPermissionsAssignBatch_t const *b);

/* Sets the memory functions of the next tool, by slot; NULL: none. domain_of returns that tool's
 * handle of a domain. Must be called before the first memory call. */
void rt_memory_chain(const mstxFuncPointer *next,
                     mstxDomainHandle_t (*domain_of)(struct rt_domain *));

#endif
