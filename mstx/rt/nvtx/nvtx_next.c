/* SPDX-License-Identifier: MIT
 *
 * nvtx_next: another NVTX tool behind us, named by MSTX_NEXT_NVTX_PATH.  It gets a table like
 * that of a program and receives each call of the program after it was recorded.  Handles are
 * translated: domains by their name, registered strings to their text, ranges by a word that is
 * kept with ours.  Payloads are passed on when the tool accepts schemas.
 */
#include "mstx/rt/nvtx/nvtx.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "mstx/rt/slot.h"

enum { CORE = 1, CORE2 = 5, SLOTS = 16, EXPORT_CALLBACKS = 1 };
enum { NAMERS = NVTX_CUDART - NVTX_CUDA + 1 };
/* Slot counts as NVTX counts them: the index of the last slot. */
static const unsigned namer_slots[NAMERS] = {9, 15, 7};
enum { C_MARK = 1, C_START = 4, C_END = 7, C_PUSH = 8, C_POP = 11, C_CATEGORY = 12, C_THREAD = 14 };
enum {
    D_MARK = 1,
    D_START,
    D_END,
    D_PUSH,
    D_POP,
    D_RESOURCE,
    D_RESOURCE_END,
    D_CATEGORY,
    D_CREATE = 12,
    D_DESTROY = 14
};

_Atomic bool nvtx_has_next;
static struct {
    nvtx_fn core[SLOTS], core2[SLOTS];
    nvtx_fn *core_slots[SLOTS + 1], *core2_slots[SLOTS + 1];
    nvtx_fn namer[NAMERS][SLOTS];
    nvtx_fn *namer_slots[NAMERS][SLOTS + 1];
} next;

static int get_table(int module, nvtx_table *table, unsigned *size)
{
    if (table == NULL || size == NULL)
        return 0;
    if (module >= NVTX_CUDA && module <= NVTX_CUDART) {
        *table = next.namer_slots[module - NVTX_CUDA];
        *size = namer_slots[module - NVTX_CUDA];
        return 1;
    }
    if (module != CORE && module != CORE2)
        return 0;
    *table = module == CORE ? next.core_slots : next.core2_slots;
    *size = SLOTS;
    return 1;
}

static const void *get_export(uint32_t id)
{
    static const struct {
        size_t struct_size;
        int (*get_table)(int, nvtx_table *, unsigned *);
    } callbacks = {sizeof callbacks, get_table};
    return id == EXPORT_CALLBACKS ? &callbacks : NULL;
}

/* ---- extension modules ----------------------------------------------------------------------
 *
 * Each is offered to the next tool when the first image of the program offers it to us, under the same
 * version; one table of slots serves all images. */

enum { MODULES = 5, MODULE_SLOTS = 63 };
enum { IDLE, OFFERING, OFFERED };

typedef int extension_fn(struct nvtx_module *);
static extension_fn *extension;
static struct {
    _Atomic int state;
    uint16_t compat;
    intptr_t slots[MODULE_SLOTS + 1];
} modules[MODULES];

static void find_extension(void *lib)
{
    void *found = lib != NULL ? dlsym(lib, "InitializeInjectionNvtxExtension") : NULL;
    memcpy(&extension, &found, sizeof extension);
}

/* Offers a module to the tool. Slots that the tool leaves empty, or all slots when it refuses, are
 * not called. */
static void offer_slots(const struct nvtx_module *m, intptr_t *slots)
{
    struct nvtx_segment segment = {m->segment->id, MODULE_SLOTS, slots};
    struct nvtx_module copy = *m;
    copy.segments = 1;
    copy.segment = &segment;
    bool ok = extension(&copy) != 0;
    for (int i = 0; i < MODULE_SLOTS; i++)
        slots[i] = ok && slots[i] != -1 ? slots[i] : 0;
}

void nvtx_next_offer(const struct nvtx_module *m)
{
    int idle = IDLE;
    if (!atomic_load(&nvtx_has_next) || extension == NULL || m->id >= MODULES)
        return;
    if (!atomic_compare_exchange_strong(&modules[m->id].state, &idle, OFFERING)) {
        while (atomic_load(&modules[m->id].state) != OFFERED) /* another thread is offering it */
            sched_yield();
        return;
    }
    modules[m->id].compat = m->compat;
    offer_slots(m, modules[m->id].slots);
    atomic_store(&modules[m->id].state, OFFERED);
}

intptr_t nvtx_next_slot_of(unsigned module, unsigned slot)
{
    ms_assert(module < MODULES && slot <= MODULE_SLOTS);
    bool there = atomic_load_explicit(&modules[module].state, memory_order_acquire) == OFFERED;
    return there ? modules[module].slots[slot] : 0;
}

bool nvtx_next_counts_by_structure(void)
{
    return modules[NVTX_MODULE_COUNTERS].compat >= NVTX_COUNTERS_0102;
}

/* ---- the tool -------------------------------------------------------------------------------- */

void nvtx_next_find(nvtx_init_fn *ours)
{
    const char *path = secure_getenv("MSTX_NEXT_NVTX_PATH");
    if (path == NULL || *path == '\0')
        return;
    void *lib = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    void *found = lib != NULL ? dlsym(lib, "InitializeInjectionNvtx2") : NULL;
    nvtx_init_fn *init;
    memcpy(&init, &found, sizeof init);
    if (init == ours)
        return; /* our own entry point */
    find_extension(lib);
    for (int i = 1; i < SLOTS; i++) {
        next.core_slots[i] = &next.core[i];
        next.core2_slots[i] = &next.core2[i];
    }
    for (int m = 0; m < NAMERS; m++) {
        for (unsigned i = 1; i < namer_slots[m]; i++)
            next.namer_slots[m][i] = &next.namer[m][i];
    }
    if (init != NULL && init(get_export) != 0)
        atomic_store(&nvtx_has_next, true);
    else
        rt_say(RT_SAY_NEXT, 0, "the next NVTX tool %s: %s", path,
               lib == NULL ? dlerror() : "refuses or is none");
}

#define CALL(type, slot, ...) ((type)(slot))(__VA_ARGS__)
typedef void mark_fn(const struct nvtx_attr *);
typedef uint64_t start_fn(const struct nvtx_attr *);
typedef void end_fn(uint64_t);
typedef int push_fn(const struct nvtx_attr *);
typedef int pop_fn(void);
typedef void name_fn(uint32_t, const char *);
typedef void domain_mark_fn(void *, const struct nvtx_attr *);
typedef uint64_t domain_start_fn(void *, const struct nvtx_attr *);
typedef void domain_end_fn(void *, uint64_t);
typedef int domain_push_fn(void *, const struct nvtx_attr *);
typedef int domain_pop_fn(void *);
typedef void *create_fn(const char *);
typedef void destroy_fn(void *);
typedef void domain_name_fn(void *, uint32_t, const char *);
typedef void *resource_fn(void *, const void *);

void *nvtx_next_domain(struct rt_domain *d)
{
    if (d->number == 0)
        return NULL;
    void *h = __atomic_load_n(&d->next_nvtx, __ATOMIC_ACQUIRE);
    if (h == NULL && next.core2[D_CREATE] != NULL) {
        h = CALL(create_fn *, next.core2[D_CREATE], d->name);
        __atomic_store_n(&d->next_nvtx, h, __ATOMIC_RELEASE);
    }
    return h;
}

/* Replaces a string registered with us by its text in an event. */
static const struct nvtx_attr *translate_attributes(const struct nvtx_attr *from,
                                                    struct nvtx_attr *to)
{
    *to = (struct nvtx_attr){.version = 3};
    if (from != NULL)
        nvtx_copy_attr(to, from);
    to->size = sizeof *to;
    if (to->message_type == NVTX_MESSAGE_REGISTERED) {
        to->message = nvtx_message_text(to->message_type, to->message, NULL, 0);
        to->message_type = to->message != NULL ? NVTX_MESSAGE_ASCII : 0;
    }
    if (to->message == NULL)
        to->message_type = 0;
    if (to->payload_type == NVTX_PAYLOAD_EXTENDED &&
        (nvtx_next_slot_of(NVTX_MODULE_PAYLOAD, 0) == 0 ||
         !nvtx_payloads_may_leave(to->payload.extended, (size_t)to->payload_count)))
        to->payload_type = MSTX_PAYLOAD_NONE; /* the tool does not know its schemas */
    return to;
}

/* Tells whether the tool has the short function for the default domain, which may be the only one
 * that it has. */
static bool is_plain(const struct rt_domain *d, int slot)
{
    return d->number == 0 && next.core[slot] != NULL;
}

void nvtx_next_mark(struct rt_domain *d, const struct nvtx_attr *a)
{
    struct nvtx_attr t;
    if (is_plain(d, C_MARK))
        CALL(mark_fn *, next.core[C_MARK], translate_attributes(a, &t));
    else if (next.core2[D_MARK] != NULL)
        CALL(domain_mark_fn *, next.core2[D_MARK], nvtx_next_domain(d),
             translate_attributes(a, &t));
}

static uint64_t start(struct rt_domain *d, const struct nvtx_attr *a)
{
    struct nvtx_attr t;
    if (is_plain(d, C_START))
        return CALL(start_fn *, next.core[C_START], translate_attributes(a, &t));
    if (next.core2[D_START] != NULL)
        return CALL(domain_start_fn *, next.core2[D_START], nvtx_next_domain(d),
                    translate_attributes(a, &t));
    return 0;
}

uint64_t nvtx_next_keep(uint64_t theirs, uint32_t id)
{
    if (theirs != 0 && id == 0)
        id = rt_range_ghost();
    if (theirs != 0 && id != 0)
        rt_range_set_other(id, theirs);
    return id;
}

uint64_t nvtx_next_start(struct rt_domain *d, const struct nvtx_attr *a, uint32_t id)
{
    return nvtx_next_keep(start(d, a), id);
}

void nvtx_next_end(struct rt_domain *d, uint64_t id)
{
    if (id == 0)
        return;
    if (is_plain(d, C_END))
        CALL(end_fn *, next.core[C_END], id);
    else if (next.core2[D_END] != NULL)
        CALL(domain_end_fn *, next.core2[D_END], nvtx_next_domain(d), id);
}

void nvtx_next_push(struct rt_domain *d, const struct nvtx_attr *a)
{
    struct nvtx_attr t;
    if (is_plain(d, C_PUSH))
        CALL(push_fn *, next.core[C_PUSH], translate_attributes(a, &t));
    else if (next.core2[D_PUSH] != NULL)
        CALL(domain_push_fn *, next.core2[D_PUSH], nvtx_next_domain(d),
             translate_attributes(a, &t));
}

void nvtx_next_pop(struct rt_domain *d)
{
    if (is_plain(d, C_POP))
        CALL(pop_fn *, next.core[C_POP]);
    else if (next.core2[D_POP] != NULL)
        CALL(domain_pop_fn *, next.core2[D_POP], nvtx_next_domain(d));
}

void nvtx_next_name(struct rt_domain *d, enum mstx_text_kind kind, uint64_t key, const char *name)
{
    if (kind == MSTX_CATEGORY && is_plain(d, C_CATEGORY))
        CALL(name_fn *, next.core[C_CATEGORY], (uint32_t)key, name);
    else if (kind == MSTX_CATEGORY && next.core2[D_CATEGORY] != NULL)
        CALL(domain_name_fn *, next.core2[D_CATEGORY], nvtx_next_domain(d), (uint32_t)key, name);
    else if (kind == MSTX_THREAD && next.core[C_THREAD] != NULL)
        CALL(name_fn *, next.core[C_THREAD], (uint32_t)key, name);
}

nvtx_fn nvtx_next_namer(int module, int slot)
{
    ms_assert(module >= NVTX_CUDA && module <= NVTX_CUDART && slot < SLOTS);
    return atomic_load(&nvtx_has_next) ? next.namer[module - NVTX_CUDA][slot] : NULL;
}

void *nvtx_next_resource(struct rt_domain *d, const void *attr)
{
    if (!atomic_load(&nvtx_has_next) || next.core2[D_RESOURCE] == NULL)
        return NULL;
    return CALL(resource_fn *, next.core2[D_RESOURCE], nvtx_next_domain(d), attr);
}

void nvtx_next_resource_end(void *resource)
{
    if (atomic_load(&nvtx_has_next) && next.core2[D_RESOURCE_END] != NULL)
        CALL(destroy_fn *, next.core2[D_RESOURCE_END], resource);
}

void nvtx_next_domain_end(struct rt_domain *d)
{
    void *h = __atomic_exchange_n(&d->next_nvtx, NULL, __ATOMIC_ACQ_REL);
    if (h != NULL && next.core2[D_DESTROY] != NULL)
        CALL(destroy_fn *, next.core2[D_DESTROY], h);
}

/* ---- ids --------------------------------------------------------------------------------------- */

static _Atomic uint64_t ids_given;

/* Makes an id far above those of the next tool, whose ids are used wherever it returns some. */
static uint64_t own_id(void)
{
    uint64_t first = atomic_load(&nvtx_has_next) ? UINT64_C(1) << 62 : UINT64_C(1) << 32;
    return first + atomic_fetch_add(&ids_given, 1);
}

typedef uint64_t register_fn(void *, const void *);

uint64_t nvtx_id_of(struct rt_domain *d, unsigned module, unsigned slot, const void *attr,
                    uint64_t chosen)
{
    intptr_t fn = nvtx_next_slot(d, module, slot);
    uint64_t theirs = fn != 0 ? NVTX_CALL(register_fn, fn, nvtx_next_domain(d), attr) : UINT64_C(0);
    if (chosen != 0)
        return chosen;
    return theirs != 0 && theirs != UINT64_MAX ? theirs : own_id();
}
