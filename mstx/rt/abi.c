/* SPDX-License-Identifier: MIT
 *
 * abi: the exported mstx functions.  They check handles, which may be garbage, and call rt_mark and
 * rt_memory.
 */
#include "mstx/rt/entry.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "mstx/mstx.h"
#include "mstx/rt/helper.h"
#include "mstx/rt/mark.h"
#include "mstx/rt/memory.h"
#include "mstx/rt/process_ring.h"
#include "mstx/rt/recorder.h"
#include "mstx/rt/segment_file.h"

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

/* Internal functions, not the exported names: with a preload those may resolve to another
 * library. */
#define F(f) (mstxFuncPointer) f
static const mstxFuncPointer abi_core[] = {NULL, F(mark_default), F(start_default), F(end_default),
                                           F(get_tool_id)};
static const mstxFuncPointer abi_domain[] = {NULL,           F(domain_create), F(domain_destroy),
                                             F(domain_mark), F(domain_start),  F(domain_end)};
static const mstxFuncPointer abi_mem[] = {NULL,
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

static void set_listener(mstx_listener *fn)
{
    atomic_store(&listener, fn);
    rt_recorder_start(fn != NULL); /* ranges get their ids from a running capture */
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
    .listen = set_listener,
};

/* ---- the entry point of marking headers ------------------------------------------------- */

/* Headers of several generations are in use.  Known forms of their tables:
 *
 *     current      CORE 4 slots; DOMAIN 5; MEM 4 or 5
 *     old          CORE 7 slots: 4..7 are memory calls, no GetToolId, and no module MEM
 *     CANN router  sizes one larger than the last valid slot, DOMAIN reports CORE's
 *
 * Therefore slots up to the reported size that are not NULL are written, the old form is recognised
 * by its size of 8 without a module MEM, and all five slots of DOMAIN are tried when the size
 * allows.
 */
enum { OLD_CORE_SIZE = 8, OLD_MEM_FIRST = 4 };

/* Writes slots [1, n) of our functions into the table of the image. */
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

/* The table into which the next tool writes its functions, like that of a header. */
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

/* Returns the next tool's handle of our domain, made at its first use; the default domain is
 * NULL. */
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

static void forward_event(enum rt_tap_kind kind, struct rt_domain *d, const char *message,
                          void *stream, uint32_t id, uint64_t *other)
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

/* Finds the next tool: the library that is configured, else one behind us in the search order, else
 * the vendor's if the program has loaded it. */
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

static void load_next(void)
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
    rt_set_tap(RT_TAP_NEXT, forward_event);
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
        fill(mem, mem_size, abi_mem, MSTX_FUNC_MEM_SIZE, 1);
    bool old = core_size >= OLD_CORE_SIZE && !has_mem;
    if (old)
        fill(core, core_size, abi_mem, MSTX_FUNC_MEM_PERMISSIONS_ASSIGN, OLD_MEM_FIRST);
    fill(core, core_size, abi_core, old ? MSTX_FUNC_GET_TOOL_ID : MSTX_FUNC_CORE_SIZE, 1);
    return true;
}

/* Tells whether the program is static: it has no loader, and a library that it opens brings a
 * second libc, in which a thread cannot be started. */
static bool is_static_program(void)
{
    const ElfW(Phdr) * header;
    unsigned long address = getauxval(AT_PHDR), count = getauxval(AT_PHNUM);
    memcpy(&header, &address, sizeof header);
    for (unsigned long i = 0; header != NULL && i < count; i++) {
        if (header[i].p_type == PT_INTERP)
            return false;
    }
    return true;
}

/* Entry point, called once per image, from any thread, also concurrently. All is set up before the
 * first slot is written, because other threads of the image call the functions from that moment
 * on. */
int InitInjectionMstx(mstxGetModuleFuncTableFunc get_table)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    mstxFuncTable domain = NULL;
    unsigned size = 0;
    if (get_table == NULL)
        return MSTX_FAIL;
    if (is_static_program()) {
        rt_say(RT_SAY_STATIC, 0,
               "a static program cannot be recorded; link it with shared libraries");
        return MSTX_FAIL;
    }
    rt_recorder_start(true);
    pthread_once(&once, load_next);
    if (!fill_core(get_table))
        return MSTX_FAIL;
    if (get_table(MSTX_API_MODULE_CORE_DOMAIN, &domain, &size) == MSTX_SUCCESS && domain != NULL &&
        size + 1 >= MSTX_FUNC_DOMAIN_SIZE)
        fill(domain, MSTX_FUNC_DOMAIN_RANGE_END, abi_domain, MSTX_FUNC_DOMAIN_SIZE, 1);
    return MSTX_SUCCESS;
}

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
    return rt_recorder_start(true) ? 0 : -1;
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

static void record_counter(mstxDomainHandle_t domain, const char *name, uint64_t bits, bool real)
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
    record_counter(domain, name, (uint64_t)value, false);
}

API void mstx_counter_real(mstxDomainHandle_t domain, const char *name, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    record_counter(domain, name, bits, true);
}
