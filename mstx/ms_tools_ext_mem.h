/* SPDX-License-Identifier: MIT
 *
 * ms_tools_ext_mem: the memory part of the mstx interface: a caching allocator announces to a tool
 * its blocks (heaps) and the parts of them that it hands out (regions).  Types, names and
 * layouts are those of the vendor's header; the text is our own.  Included by ms_tools_ext.h.
 */
#ifndef MS_TOOLS_EXT_MEM_H
#define MS_TOOLS_EXT_MEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mstxDomainRegistration_st *mstxDomainHandle_t;
typedef struct mstxMemHeap_st *mstxMemHeapHandle_t;
typedef struct mstxMemRegion_st *mstxMemRegionHandle_t;

typedef enum mstxMemHeapUsageType {
    MSTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR = 0, /* regions will be allocated in this heap */
} mstxMemHeapUsageType;

typedef enum mstxMemType {
    MSTX_MEM_TYPE_VIRTUAL_ADDRESS = 0, /* described by mstxMemVirtualRangeDesc_t */
} mstxMemType;

typedef struct mstxMemVirtualRangeDesc_t {
    uint32_t deviceId;
    void const *ptr;
    uint64_t size;
} mstxMemVirtualRangeDesc_t;

typedef struct mstxMemHeapDesc_t {
    mstxMemHeapUsageType usage;
    mstxMemType type;
    void const *typeSpecificDesc;
} mstxMemHeapDesc_t;

typedef struct mstxMemRegionsRegisterBatch_t {
    mstxMemHeapHandle_t heap;
    mstxMemType regionType;
    size_t regionCount;
    void const *regionDescArray;
    mstxMemRegionHandle_t *regionHandleArrayOut;
} mstxMemRegionsRegisterBatch_t;

typedef enum mstxMemRegionRefType {
    MSTX_MEM_REGION_REF_TYPE_POINTER = 0,
    MSTX_MEM_REGION_REF_TYPE_HANDLE = 1,
} mstxMemRegionRefType;

typedef struct mstxMemRegionRef_t {
    mstxMemRegionRefType refType;
    __extension__ union {
        void const *pointer;
        mstxMemRegionHandle_t handle;
    };
} mstxMemRegionRef_t;

typedef struct mstxMemRegionsUnregisterBatch_t {
    size_t refCount;
    mstxMemRegionRef_t const *refArray;
} mstxMemRegionsUnregisterBatch_t;

enum mstxMemPermissionsFlags {
    MSTX_MEM_PERMISSIONS_REGION_FLAGS_NONE = 0x0,
    MSTX_MEM_PERMISSIONS_REGION_FLAGS_READ = 0x1,
    MSTX_MEM_PERMISSIONS_REGION_FLAGS_WRITE = 0x2,
    MSTX_MEM_PERMISSIONS_REGION_FLAGS_SHARED = 0x4,
};

typedef struct mstxMemPermissionsAssignRegionsDesc_t {
    uint32_t flags;
    mstxMemRegionRef_t region;
} mstxMemPermissionsAssignRegionsDesc_t;

typedef struct mstxMemPermissionsAssignBatch_t {
    size_t regionCount;
    mstxMemPermissionsAssignRegionsDesc_t const *regionDescArray;
} mstxMemPermissionsAssignBatch_t;

#ifdef __cplusplus
}
#endif
#endif
