/* SPDX-License-Identifier: MIT
 *
 * rt_inject: the entry point that marking headers call, once per image that includes one, and
 * the way to the next tool.
 *
 * Headers of several generations are about.  What is known of their tables:
 *
 *     current      CORE 4 slots; DOMAIN 5; MEM 4 or 5
 *     old          CORE 7 slots: 4..7 are memory calls, no GetToolId, and no module MEM
 *     CANN router  sizes one larger than the last valid slot, DOMAIN reports CORE's
 *
 * so: slots up to the size reported and not NULL are written, the old form is known by its
 * size of 8 without a module MEM, and of DOMAIN all five are tried when the size allows.
 */
#include "mstx/rt_abi.h"
#include "mstx/rt_memory.h"

#include <dlfcn.h>
#include <pthread.h>

#define API __attribute__((visibility("default")))

enum { OLD_CORE_SIZE = 8, OLD_MEM_FIRST = 4 };

/* Slots [1, n) of our functions into the image's table. */
static void fill(mstxFuncTable table, unsigned size, const mstxFuncPointer *ours, unsigned n,
                 unsigned from)
{
    for (unsigned i = 1; i < n; i++) {
        unsigned at = from + i - 1;
        if (at <= size && table[at] != NULL)
            __atomic_store_n(table[at], ours[i], __ATOMIC_RELEASE);
    }
}

/* ---- the next tool -------------------------------------------------------------------- */

/* Where the next tool writes its functions: a table like that of a header. */
static struct {
    mstxFuncPointer core[MSTX_FUNC_CORE_SIZE], domain[MSTX_FUNC_DOMAIN_SIZE];
    mstxFuncPointer mem[MSTX_FUNC_MEM_SIZE];
    mstxFuncPointer *core_slots[MSTX_FUNC_CORE_SIZE + 1];
    mstxFuncPointer *domain_slots[MSTX_FUNC_DOMAIN_SIZE + 1];
    mstxFuncPointer *mem_slots[MSTX_FUNC_MEM_SIZE + 1];
} next;

static int next_table(mstxFuncModule module, mstxFuncTable *table, unsigned *size)
{
    if (table == NULL || size == NULL)
        return MSTX_FAIL;
    if (module == MSTX_API_MODULE_CORE) {
        *table = next.core_slots;
        *size = MSTX_FUNC_CORE_SIZE;
    } else if (module == MSTX_API_MODULE_CORE_DOMAIN) {
        *table = next.domain_slots;
        *size = MSTX_FUNC_DOMAIN_SIZE;
    } else if (module == MSTX_API_MODULE_CORE_MEM) {
        *table = next.mem_slots;
        *size = MSTX_FUNC_MEM_SIZE;
    } else
        return MSTX_FAIL;
    return MSTX_SUCCESS;
}

#define CALL(type, slot, ...) ((type)(slot))(__VA_ARGS__)
typedef void mark_fn(const char *, aclrtStream);
typedef mstxRangeId start_fn(const char *, aclrtStream);
typedef void end_fn(mstxRangeId);
typedef mstxDomainHandle_t create_fn(const char *);
typedef void domain_mark_fn(mstxDomainHandle_t, const char *, aclrtStream);
typedef mstxRangeId domain_start_fn(mstxDomainHandle_t, const char *, aclrtStream);
typedef void domain_end_fn(mstxDomainHandle_t, mstxRangeId);

/* Our domain in the next tool, made when it is first heard of; its default one is NULL. */
static mstxDomainHandle_t next_domain(struct rt_domain *d)
{
    if (d->number == 0)
        return NULL;
    void *h = __atomic_load_n(&d->next, __ATOMIC_ACQUIRE);
    if (h == NULL && next.domain[MSTX_FUNC_DOMAIN_CREATEA] != NULL) {
        h = CALL(create_fn *, next.domain[MSTX_FUNC_DOMAIN_CREATEA], d->name);
        __atomic_store_n(&d->next, h, __ATOMIC_RELEASE);
    }
    return h;
}

static void forward_default(enum rt_tap_kind kind, const char *message, void *stream,
                            uint64_t *other)
{
    if (kind == RT_TAP_MARK && next.core[MSTX_FUNC_MARKA] != NULL)
        CALL(mark_fn *, next.core[MSTX_FUNC_MARKA], message, stream);
    else if (kind == RT_TAP_START && next.core[MSTX_FUNC_RANGE_STARTA] != NULL)
        *other = CALL(start_fn *, next.core[MSTX_FUNC_RANGE_STARTA], message, stream);
    else if (kind == RT_TAP_END && next.core[MSTX_FUNC_RANGE_END] != NULL)
        CALL(end_fn *, next.core[MSTX_FUNC_RANGE_END], *other);
}

static void forward(enum rt_tap_kind kind, struct rt_domain *d, const char *message, void *stream,
                    uint32_t id, uint64_t *other)
{
    (void)id;
    if (d->number == 0) {
        forward_default(kind, message, stream, other);
        return;
    }
    mstxDomainHandle_t h = next_domain(d);
    if (h == NULL)
        return;
    if (kind == RT_TAP_MARK && next.domain[MSTX_FUNC_DOMAIN_MARKA] != NULL)
        CALL(domain_mark_fn *, next.domain[MSTX_FUNC_DOMAIN_MARKA], h, message, stream);
    else if (kind == RT_TAP_START && next.domain[MSTX_FUNC_DOMAIN_RANGE_STARTA] != NULL)
        *other =
            CALL(domain_start_fn *, next.domain[MSTX_FUNC_DOMAIN_RANGE_STARTA], h, message, stream);
    else if (kind == RT_TAP_END && next.domain[MSTX_FUNC_DOMAIN_RANGE_END] != NULL)
        CALL(domain_end_fn *, next.domain[MSTX_FUNC_DOMAIN_RANGE_END], h, *other);
}

/* A library that was named, else one behind us in the search order, else the vendor's if the
 * program has loaded it. */
static void *find_next(void)
{
    void *lib = NULL;
    if (rt.conf.next_mstx[0] != '\0') {
        lib = dlopen(rt.conf.next_mstx, RTLD_LAZY | RTLD_LOCAL);
        if (lib == NULL)
            rt_say(RT_SAY_NEXT, 0, "cannot load the next tool: %s", dlerror());
        return lib != NULL ? dlsym(lib, "InitInjectionMstx") : NULL;
    }
    void *f = dlsym(RTLD_NEXT, "InitInjectionMstx");
    if (f == NULL)
        lib = dlopen("libprofapi.so", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    return lib != NULL ? dlsym(lib, "InitInjectionMstx") : f;
}

API int InitInjectionMstx(mstxGetModuleFuncTableFunc get_table);

static void chain(void)
{
    void *found = find_next();
    mstxInitInjectionFunc init;
    memcpy(&init, &found, sizeof init);
    if (init == NULL || init == InitInjectionMstx)
        return;
    for (unsigned i = 1; i < MSTX_FUNC_CORE_SIZE; i++)
        next.core_slots[i] = &next.core[i];
    for (unsigned i = 1; i < MSTX_FUNC_DOMAIN_SIZE; i++)
        next.domain_slots[i] = &next.domain[i];
    for (unsigned i = 1; i < MSTX_FUNC_MEM_SIZE; i++)
        next.mem_slots[i] = &next.mem[i];
    if (init(next_table) != MSTX_SUCCESS)
        return;
    rt_memory_chain(next.mem, next_domain);
    rt_set_tap(RT_TAP_NEXT, forward);
}

/* ---- the entry point ------------------------------------------------------------------- */

static bool fill_core(mstxGetModuleFuncTableFunc get_table)
{
    mstxFuncTable core = NULL, mem = NULL;
    unsigned core_size = 0, mem_size = 0;
    if (get_table(MSTX_API_MODULE_CORE, &core, &core_size) != MSTX_SUCCESS || core == NULL)
        return false;
    bool has_mem =
        get_table(MSTX_API_MODULE_CORE_MEM, &mem, &mem_size) == MSTX_SUCCESS && mem != NULL;
    if (has_mem)
        fill(mem, mem_size, rt_abi_mem, MSTX_FUNC_MEM_SIZE, 1);
    bool old = core_size >= OLD_CORE_SIZE && !has_mem;
    if (old)
        fill(core, core_size, rt_abi_mem, MSTX_FUNC_MEM_PERMISSIONS_ASSIGN, OLD_MEM_FIRST);
    fill(core, core_size, rt_abi_core, old ? MSTX_FUNC_GET_TOOL_ID : MSTX_FUNC_CORE_SIZE, 1);
    return true;
}

/* Called once per image, from any thread, several at a time.  All is set up before the first
 * slot is written: other threads of the image call us from that moment on. */
int InitInjectionMstx(mstxGetModuleFuncTableFunc get_table)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    mstxFuncTable domain = NULL;
    unsigned size = 0;
    if (get_table == NULL)
        return MSTX_FAIL;
    rt_start(true);
    pthread_once(&once, chain);
    if (!fill_core(get_table))
        return MSTX_FAIL;
    if (get_table(MSTX_API_MODULE_CORE_DOMAIN, &domain, &size) == MSTX_SUCCESS && domain != NULL &&
        size + 1 >= MSTX_FUNC_DOMAIN_SIZE)
        fill(domain, MSTX_FUNC_DOMAIN_RANGE_END, rt_abi_domain, MSTX_FUNC_DOMAIN_SIZE, 1);
    return MSTX_SUCCESS;
}
