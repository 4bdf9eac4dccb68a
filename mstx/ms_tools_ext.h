/* SPDX-License-Identifier: MIT
 *
 * ms_tools_ext: the mstx marking interface, header-only.  Names and layouts are those of the
 * vendor's header, so programs compile with either; the text is our own.
 *
 *     mstxRangeId id = mstxRangeStartA("load batch", NULL);
 *     ...
 *     mstxRangeEnd(id);
 *
 * Without a tool a call costs a load and a branch.  A tool is found at the first call: the
 * library named by MSTX_INJECTION_PATH, else any loaded one, that exports InitInjectionMstx.
 * Include this header in any number of C and C++ files: they share one weak hidden object per
 * executable or library.
 *
 *   MSTX_NO_IMPL   declarations only: link libms_tools_ext.so or libmstx.so
 *   MSTX_DISABLE   every call compiles to nothing
 */
#ifndef MS_TOOLS_EXT_H
#define MS_TOOLS_EXT_H

#include "mstx/ms_tools_ext_mem.h"

#if !defined(MSTX_NO_IMPL) && !defined(MSTX_DISABLE)
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>
#endif

#define MSTX_SUCCESS 0
#define MSTX_FAIL    1

#define MSTX_TOOL_INVALID_ID     0x0
#define MSTX_TOOL_MSPROF_ID      0x1000
#define MSTX_TOOL_MSOPPROF_ID    0x1001
#define MSTX_TOOL_MSSANITIZER_ID 0x1002
#define MSTX_TOOL_MSLEAKS_ID     0x1003

typedef uint64_t mstxRangeId;
typedef void *aclrtStream; /* opaque: never dereferenced */

/* ---- interface of tools ------------------------------------------------------------ */

typedef enum mstxFuncModule {
    MSTX_API_MODULE_INVALID = 0,
    MSTX_API_MODULE_CORE = 1,
    MSTX_API_MODULE_CORE_DOMAIN = 2,
    MSTX_API_MODULE_CORE_MEM = 3,
} mstxFuncModule;

enum {
    MSTX_FUNC_MARKA = 1,
    MSTX_FUNC_RANGE_STARTA,
    MSTX_FUNC_RANGE_END,
    MSTX_FUNC_GET_TOOL_ID,
    MSTX_FUNC_CORE_SIZE,

    MSTX_FUNC_DOMAIN_CREATEA = 1,
    MSTX_FUNC_DOMAIN_DESTROY,
    MSTX_FUNC_DOMAIN_MARKA,
    MSTX_FUNC_DOMAIN_RANGE_STARTA,
    MSTX_FUNC_DOMAIN_RANGE_END,
    MSTX_FUNC_DOMAIN_SIZE,

    MSTX_FUNC_MEM_HEAP_REGISTER = 1,
    MSTX_FUNC_MEM_HEAP_UNREGISTER,
    MSTX_FUNC_MEM_REGIONS_REGISTER,
    MSTX_FUNC_MEM_REGIONS_UNREGISTER,
    MSTX_FUNC_MEM_PERMISSIONS_ASSIGN,
    MSTX_FUNC_MEM_SIZE,
};

typedef void (*mstxFuncPointer)(void);
typedef mstxFuncPointer **mstxFuncTable;
typedef int (*mstxGetModuleFuncTableFunc)(mstxFuncModule module, mstxFuncTable *outTable,
                                          unsigned int *outSize);
typedef int (*mstxInitInjectionFunc)(mstxGetModuleFuncTableFunc getFuncTable);

/* ---- interface of programs ---------------------------------------------------------------- */

#if defined(MSTX_NO_IMPL)
#define MSTX_DECLSPEC
#else
#define MSTX_DECLSPEC inline static
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Marks a moment. stream: also marks the moment when the device reaches this point; NULL: host
 * only. */
MSTX_DECLSPEC void mstxMarkA(const char *message, aclrtStream stream);
/* Starts a range, which any thread may end. 0: not recorded. */
MSTX_DECLSPEC mstxRangeId mstxRangeStartA(const char *message, aclrtStream stream);
MSTX_DECLSPEC void mstxRangeEnd(mstxRangeId id);
/* Sets *id to the attached tool: one of MSTX_TOOL_*, or 0. */
MSTX_DECLSPEC void mstxGetToolId(uint64_t *id);

/* Domains separate the marks of one library from those of another.  Equal names give equal
 * handles; NULL is the default domain. */
MSTX_DECLSPEC mstxDomainHandle_t mstxDomainCreateA(const char *name);
MSTX_DECLSPEC void mstxDomainDestroy(mstxDomainHandle_t domain);
MSTX_DECLSPEC void mstxDomainMarkA(mstxDomainHandle_t domain, const char *message,
                                   aclrtStream stream);
MSTX_DECLSPEC mstxRangeId mstxDomainRangeStartA(mstxDomainHandle_t domain, const char *message,
                                                aclrtStream stream);
MSTX_DECLSPEC void mstxDomainRangeEnd(mstxDomainHandle_t domain, mstxRangeId id);

MSTX_DECLSPEC mstxMemHeapHandle_t mstxMemHeapRegister(mstxDomainHandle_t domain,
                                                      mstxMemHeapDesc_t const *desc);
/* Unregisters a heap and the regions in it. */
MSTX_DECLSPEC void mstxMemHeapUnregister(mstxDomainHandle_t domain, mstxMemHeapHandle_t heap);
MSTX_DECLSPEC void mstxMemRegionsRegister(mstxDomainHandle_t domain,
                                          mstxMemRegionsRegisterBatch_t const *desc);
MSTX_DECLSPEC void mstxMemRegionsUnregister(mstxDomainHandle_t domain,
                                            mstxMemRegionsUnregisterBatch_t const *desc);
MSTX_DECLSPEC void mstxMemPermissionsAssign(mstxDomainHandle_t domain,
                                            mstxMemPermissionsAssignBatch_t const *desc);

#if !defined(MSTX_NO_IMPL)

/*
 * One table per image has a function pointer for each call.  The pointers are initially stubs,
 * which search for a tool and then call through the table again; without a tool they become NULL.
 * The table is weak and hidden: the linker keeps one of the copies in all files that include this
 * header.
 *
 * V: returns nothing; R: returns TYPE, or NO without a tool.
 */
/* clang-format off */
#define MSPROBE_MSTX_CALLS(V, R)                                                                   \
    V(core, 1, mstxMarkA, (const char *m, aclrtStream s), (m, s))                                  \
    R(core, 2, mstxRangeId, 0, mstxRangeStartA, (const char *m, aclrtStream s), (m, s))            \
    V(core, 3, mstxRangeEnd, (mstxRangeId id), (id))                                               \
    V(core, 4, mstxGetToolId, (uint64_t *id), (id))                                                \
    R(domain, 1, mstxDomainHandle_t, NULL, mstxDomainCreateA, (const char *n), (n))                \
    V(domain, 2, mstxDomainDestroy, (mstxDomainHandle_t d), (d))                                   \
    V(domain, 3, mstxDomainMarkA,                                                                  \
      (mstxDomainHandle_t d, const char *m, aclrtStream s), (d, m, s))                             \
    R(domain, 4, mstxRangeId, 0, mstxDomainRangeStartA,                                            \
      (mstxDomainHandle_t d, const char *m, aclrtStream s), (d, m, s))                             \
    V(domain, 5, mstxDomainRangeEnd, (mstxDomainHandle_t d, mstxRangeId id), (d, id))              \
    R(mem, 1, mstxMemHeapHandle_t, NULL, mstxMemHeapRegister,                                      \
      (mstxDomainHandle_t d, mstxMemHeapDesc_t const *h), (d, h))                                  \
    V(mem, 2, mstxMemHeapUnregister, (mstxDomainHandle_t d, mstxMemHeapHandle_t h), (d, h))        \
    V(mem, 3, mstxMemRegionsRegister,                                                              \
      (mstxDomainHandle_t d, mstxMemRegionsRegisterBatch_t const *b), (d, b))                      \
    V(mem, 4, mstxMemRegionsUnregister,                                                            \
      (mstxDomainHandle_t d, mstxMemRegionsUnregisterBatch_t const *b), (d, b))                    \
    V(mem, 5, mstxMemPermissionsAssign,                                                            \
      (mstxDomainHandle_t d, mstxMemPermissionsAssignBatch_t const *b), (d, b))
/* clang-format on */

#if defined(MSTX_DISABLE)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define MSPROBE_MSTX_V(mod, i, name, params, args)                                                 \
    inline static void name params                                                                 \
    {                                                                                              \
    }
#define MSPROBE_MSTX_R(mod, i, type, no, name, params, args)                                       \
    inline static type name params                                                                 \
    {                                                                                              \
        return no;                                                                                 \
    }
MSPROBE_MSTX_CALLS(MSPROBE_MSTX_V, MSPROBE_MSTX_R)
#pragma GCC diagnostic pop

#else

enum { MSPROBE_MSTX_FRESH, MSPROBE_MSTX_READY, MSPROBE_MSTX_FAILED };

struct msprobeMstxTable {
    int state;
    mstxFuncPointer core[MSTX_FUNC_CORE_SIZE], domain[MSTX_FUNC_DOMAIN_SIZE],
        mem[MSTX_FUNC_MEM_SIZE];
    /* Passed to a tool: pointers to the entries above, NULL at both ends. */
    mstxFuncPointer *coreSlots[MSTX_FUNC_CORE_SIZE + 1], *domainSlots[MSTX_FUNC_DOMAIN_SIZE + 1],
        *memSlots[MSTX_FUNC_MEM_SIZE + 1];
    const void *thread; /* address of errno in the thread that searches for the tool */
};
extern struct msprobeMstxTable msprobeMstx __attribute__((visibility("hidden")));
/* Process that searches for a tool; 0: no search has begun.  Not in the table, whose size is shared
 * with files compiled with an older header. */
__attribute__((weak, visibility("hidden"))) int msprobeMstxPid;
/* Searches for a tool, once.  Returns 0, so that the call has no effect, in a signal handler that
 * interrupts the search, and in a child that was forked during the search, where no thread is left
 * to finish it. */
__attribute__((noinline, unused)) static int msprobeMstxInit(void);

#define MSPROBE_MSTX_F(mod, i) __atomic_load_n(&msprobeMstx.mod[i], __ATOMIC_RELAXED)
#define MSPROBE_MSTX_V(mod, i, name, params, args)                                                 \
    inline static void name params                                                                 \
    {                                                                                              \
        mstxFuncPointer f = MSPROBE_MSTX_F(mod, i);                                                \
        if (f)                                                                                     \
            ((void(*) params)f) args;                                                              \
    }                                                                                              \
    __attribute__((unused)) static void name##Stub params                                          \
    {                                                                                              \
        if (msprobeMstxInit())                                                                     \
            name args;                                                                             \
    }
#define MSPROBE_MSTX_R(mod, i, type, no, name, params, args)                                       \
    inline static type name params                                                                 \
    {                                                                                              \
        mstxFuncPointer f = MSPROBE_MSTX_F(mod, i);                                                \
        return f ? ((type(*) params)f)args : no;                                                   \
    }                                                                                              \
    __attribute__((unused)) static type name##Stub params                                          \
    {                                                                                              \
        return msprobeMstxInit() ? name args : no;                                                 \
    }
MSPROBE_MSTX_CALLS(MSPROBE_MSTX_V, MSPROBE_MSTX_R)

#define MSPROBE_MSTX_STUB(name)   (mstxFuncPointer) name##Stub
#define MSPROBE_MSTX_SLOT(mod, i) &msprobeMstx.mod[i]
__attribute__((weak, visibility("hidden"))) struct msprobeMstxTable msprobeMstx = {
    MSPROBE_MSTX_FRESH,
    {NULL, MSPROBE_MSTX_STUB(mstxMarkA), MSPROBE_MSTX_STUB(mstxRangeStartA),
     MSPROBE_MSTX_STUB(mstxRangeEnd), MSPROBE_MSTX_STUB(mstxGetToolId)},
    {NULL, MSPROBE_MSTX_STUB(mstxDomainCreateA), MSPROBE_MSTX_STUB(mstxDomainDestroy),
     MSPROBE_MSTX_STUB(mstxDomainMarkA), MSPROBE_MSTX_STUB(mstxDomainRangeStartA),
     MSPROBE_MSTX_STUB(mstxDomainRangeEnd)},
    {NULL, MSPROBE_MSTX_STUB(mstxMemHeapRegister), MSPROBE_MSTX_STUB(mstxMemHeapUnregister),
     MSPROBE_MSTX_STUB(mstxMemRegionsRegister), MSPROBE_MSTX_STUB(mstxMemRegionsUnregister),
     MSPROBE_MSTX_STUB(mstxMemPermissionsAssign)},
    {NULL, MSPROBE_MSTX_SLOT(core, 1), MSPROBE_MSTX_SLOT(core, 2), MSPROBE_MSTX_SLOT(core, 3),
     MSPROBE_MSTX_SLOT(core, 4), NULL},
    {NULL, MSPROBE_MSTX_SLOT(domain, 1), MSPROBE_MSTX_SLOT(domain, 2), MSPROBE_MSTX_SLOT(domain, 3),
     MSPROBE_MSTX_SLOT(domain, 4), MSPROBE_MSTX_SLOT(domain, 5), NULL},
    {NULL, MSPROBE_MSTX_SLOT(mem, 1), MSPROBE_MSTX_SLOT(mem, 2), MSPROBE_MSTX_SLOT(mem, 3),
     MSPROBE_MSTX_SLOT(mem, 4), MSPROBE_MSTX_SLOT(mem, 5), NULL},
    NULL};

__attribute__((unused)) static int msprobeMstxGetTable(mstxFuncModule module, mstxFuncTable *table,
                                                       unsigned int *size)
{
    if (table == NULL || size == NULL)
        return MSTX_FAIL;
    switch (module) {
    case MSTX_API_MODULE_CORE:
        *table = msprobeMstx.coreSlots;
        *size = MSTX_FUNC_CORE_SIZE;
        return MSTX_SUCCESS;
    case MSTX_API_MODULE_CORE_DOMAIN:
        *table = msprobeMstx.domainSlots;
        *size = MSTX_FUNC_DOMAIN_SIZE;
        return MSTX_SUCCESS;
    case MSTX_API_MODULE_CORE_MEM:
        *table = msprobeMstx.memSlots;
        *size = MSTX_FUNC_MEM_SIZE;
        return MSTX_SUCCESS;
    default:
        return MSTX_FAIL;
    }
}

/* Passes the table to a tool. A set-uid program loads no library that its caller names. */
__attribute__((unused)) static int msprobeMstxAttach(void)
{
    const char *path = getauxval(AT_SECURE) ? NULL : getenv("MSTX_INJECTION_PATH");
    void *tool = path != NULL && path[0] != '\0' ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
    /* NULL (RTLD_DEFAULT): any library already loaded. */
    void *found = dlsym(tool, "InitInjectionMstx");
    mstxInitInjectionFunc init;
    __builtin_memcpy(&init, &found, sizeof init);
    return init != NULL && init(msprobeMstxGetTable) == MSTX_SUCCESS;
}

/* Sets an entry to NULL that the tool did not replace. Entries are compared with their earlier
 * values, not with the stubs, because the table may have the stubs of another file. */
static inline void msprobeMstxSettle(int attached, mstxFuncPointer before, mstxFuncPointer *slot)
{
    if (!attached || *slot == before)
        __atomic_store_n(slot, (mstxFuncPointer)NULL, __ATOMIC_RELAXED);
}
#define MSPROBE_MSTX_SETTLE_V(mod, i, name, params, args)                                          \
    msprobeMstxSettle(attached, before.mod[i], &msprobeMstx.mod[i]);
#define MSPROBE_MSTX_SETTLE_R(mod, i, type, no, name, params, args)                                \
    MSPROBE_MSTX_SETTLE_V(mod, i, name, params, args)

/* Tells whether this process was forked while a thread of its parent looked for the tool. */
static inline int msprobeMstxIsOrphan(void)
{
    const int pid = getpid(), known = __atomic_load_n(&msprobeMstxPid, __ATOMIC_ACQUIRE);
    if (known != 0 && known != pid &&
        __atomic_load_n(&msprobeMstx.thread, __ATOMIC_ACQUIRE) != NULL)
        return __atomic_load_n(&msprobeMstx.state, __ATOMIC_ACQUIRE) == MSPROBE_MSTX_FRESH;
    __atomic_store_n(&msprobeMstxPid, pid, __ATOMIC_RELEASE);
    return 0;
}

static int msprobeMstxInit(void)
{
    const void *none = NULL, *self = &errno;
    if (msprobeMstxIsOrphan())
        return 0;
    if (!__atomic_compare_exchange_n(&msprobeMstx.thread, &none, self, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        int state;
        while ((state = __atomic_load_n(&msprobeMstx.state, __ATOMIC_ACQUIRE)) ==
                   MSPROBE_MSTX_FRESH &&
               none != self)
            sched_yield();
        return state != MSPROBE_MSTX_FRESH;
    }
    const struct msprobeMstxTable before = msprobeMstx;
    const int saved = errno;
    const int attached = msprobeMstxAttach();
    errno = saved;
    MSPROBE_MSTX_CALLS(MSPROBE_MSTX_SETTLE_V, MSPROBE_MSTX_SETTLE_R)
    __atomic_store_n(&msprobeMstx.state, attached ? MSPROBE_MSTX_READY : MSPROBE_MSTX_FAILED,
                     __ATOMIC_RELEASE);
    return 1;
}

#endif /* MSTX_DISABLE */
#endif /* MSTX_NO_IMPL */

#ifdef __cplusplus
}
#endif
#endif
