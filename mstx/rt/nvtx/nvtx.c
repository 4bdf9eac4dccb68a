/* SPDX-License-Identifier: MIT
 *
 * nvtx: marks, ranges and locks of NVTX.
 */
#include "mstx/rt/nvtx/nvtx.h"
#include "mstx/rt/recorder.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

/* ---- locks ------------------------------------------------------------------ */

/* Locks that a program implements itself and announces to NVTX.  Waiting for a lock is a
 * range on the waiting thread, holding a lock is a range that any thread may end:
 *
 *     AcquireStart ──► "wait NAME" ──► AcquireSuccess ──► "hold NAME" ──► Releasing
 *                                 └──► AcquireFailed */

enum { LOCKS = 4096, TEXT_BYTES = 128 };

struct attr { /* 16 bytes */
    uint16_t version, size;
    int32_t message_type;
    const void *message;
};
static_assert(sizeof(struct attr) == 16, "attr");

static struct lock {
    _Atomic bool used;
    struct rt_domain *domain;
    char wait[TEXT_BYTES], hold[TEXT_BYTES];
    _Atomic uint32_t held; /* the open range, 0: none */
} user_locks[LOCKS];

/* The lock that this thread waits for; one at a time. */
static __thread struct {
    const struct lock *lock;
    uint32_t range;
} waiting __attribute__((tls_model("initial-exec")));

static struct lock *lock_of(const void *handle)
{
    uintptr_t off = (uintptr_t)handle - (uintptr_t)user_locks;
    if (off >= sizeof user_locks || off % sizeof user_locks[0] != 0)
        return NULL;
    return &user_locks[off / sizeof user_locks[0]];
}

static uint32_t start(const struct lock *l, const char *text)
{
    if (!nvtx_live(l->domain))
        return 0;
    const struct rt_event e = {.name = nvtx_text(text), .flags = MSTX_F_NVTX};
    return rt_range_start_event(l->domain, &e);
}

static void end(const struct lock *l, uint32_t range)
{
    const struct rt_event e = {.flags = MSTX_F_NVTX};
    if (range != 0)
        rt_range_end_event(l->domain, range, &e);
}

static void *lock_create(void *domain, const struct attr *given)
{
    struct rt_domain *d = rt_domain_of(domain);
    struct attr a = {0};
    char buf[TEXT_BYTES];
    if (d == NULL)
        return NULL;
    if (given != NULL)
        memcpy(&a, given, given->size < sizeof a ? given->size : sizeof a);
    if (given == NULL || given->size < sizeof a)
        a.message_type = 0; /* a partial pointer is not usable */
    const char *name = nvtx_message_text(a.message_type, a.message, buf, sizeof buf);
    name = name != NULL ? name : "lock";
    for (size_t i = 0; i < LOCKS; i++) {
        bool used = false;
        struct lock *l = &user_locks[i];
        if (!atomic_compare_exchange_strong(&l->used, &used, true))
            continue;
        l->domain = d;
        snprintf(l->wait, sizeof l->wait, "wait %s", name);
        snprintf(l->hold, sizeof l->hold, "hold %s", name);
        return l;
    }
    rt_say(RT_SAY_NVTX, 0, "more than %d NVTX locks; the rest is not recorded", LOCKS);
    return NULL;
}

static void stop_waiting(void)
{
    if (waiting.lock != NULL)
        end(waiting.lock, waiting.range);
    waiting.lock = NULL;
}

static void lock_destroy(const void *handle)
{
    struct lock *l = lock_of(handle);
    if (l == NULL)
        return;
    end(l, atomic_exchange(&l->held, 0));
    atomic_store(&l->used, false);
}

static void acquire_start(const void *handle)
{
    const struct lock *l = lock_of(handle);
    stop_waiting();
    if (l == NULL)
        return;
    waiting.range = start(l, l->wait);
    waiting.lock = l;
}

static void acquire_failed(const void *handle)
{
    if (lock_of(handle) == waiting.lock)
        stop_waiting();
}

/* Ends the wait and begins the range of the holder. A lock with several holders has a range for the
 * first of them. */
static void acquire_success(const void *handle)
{
    struct lock *l = lock_of(handle);
    if (l == NULL)
        return;
    if (l == waiting.lock)
        stop_waiting();
    uint32_t none = 0, range = atomic_load(&l->held) == 0 ? start(l, l->hold) : 0;
    if (range != 0 && !atomic_compare_exchange_strong(&l->held, &none, range))
        end(l, range);
}

static void releasing(const void *handle)
{
    struct lock *l = lock_of(handle);
    if (l != NULL)
        end(l, atomic_exchange(&l->held, 0));
}

#define F(f) (nvtx_fn) f
static const nvtx_fn nvtx_sync_slots[NVTX_SYNC_SLOTS] = {NULL,
                                                         F(lock_create),
                                                         F(lock_destroy),
                                                         F(acquire_start),
                                                         F(acquire_failed),
                                                         F(acquire_success),
                                                         F(releasing)};

/* ---- marks and ranges ------------------------------------------------------- */

#define API __attribute__((visibility("default")))

enum { WIDE_BYTES = 4096 };

/* ---- attributes ----------------------------------------------------------------------------- */

/* An event for rt_mark, with the storage that it points to. */
struct event {
    struct rt_event e;
    struct rt_attr attr;
    struct rt_payload payloads[NVTX_PAYLOADS];
};

static void take_value(struct event *to, const struct nvtx_attr *a)
{
    if (a->payload_type == NVTX_PAYLOAD_EXTENDED) {
        to->e.npayloads = nvtx_payloads(
            a->payload.extended, a->payload_count > 0 ? (size_t)a->payload_count : 0, to->payloads);
        to->e.payloads = to->payloads;
        return;
    }
    if (a->payload_type <= MSTX_PAYLOAD_NONE || a->payload_type > MSTX_PAYLOAD_F32)
        return;
    to->attr.fields |= MSTX_ATTR_PAYLOAD;
    to->attr.payload_type = (uint32_t)a->payload_type;
    to->attr.payload = a->payload.u64;
    if (a->payload_type >= MSTX_PAYLOAD_U32) /* only the lower half of the union is set */
        to->attr.payload &= UINT32_MAX;
}

/* Converts an event, of which only `size` bytes of the caller's structure exist. */
static void take_event(struct event *to, const struct nvtx_attr *from)
{
    struct nvtx_attr a = {0};
    to->e = (struct rt_event){.flags = MSTX_F_NVTX};
    to->attr = (struct rt_attr){0};
    if (from == NULL)
        return;
    nvtx_copy_attr(&a, from);
    if (a.category != 0)
        to->attr.fields |= MSTX_ATTR_CATEGORY;
    to->attr.category = a.category;
    if (a.color_type == NVTX_COLOR_ARGB) {
        to->attr.fields |= MSTX_ATTR_COLOR;
        to->attr.argb = a.color;
    }
    take_value(to, &a);
    to->e.attr = &to->attr;
    to->e.name = nvtx_message(a.message_type, a.message);
    if (to->e.name == 0 && to->e.npayloads > 0)
        to->e.name = nvtx_schema_name(to->payloads[0].schema);
}

static struct rt_event plain_event(uint32_t name)
{
    return (struct rt_event){.name = name, .flags = MSTX_F_NVTX};
}

/* ---- events ------------------------------------------------------------------------------------ */

static void domain_mark(void *domain, const struct nvtx_attr *a)
{
    struct rt_domain *d = rt_domain_of(domain);
    struct event e;
    if (nvtx_live(d)) {
        take_event(&e, a);
        rt_mark_event(d, &e.e);
    }
    if (nvtx_passes_on(d))
        nvtx_next_mark(d, a);
}

static uint64_t domain_start(void *domain, const struct nvtx_attr *a)
{
    struct rt_domain *d = rt_domain_of(domain);
    struct event e;
    uint32_t id = 0;
    if (nvtx_live(d)) {
        take_event(&e, a);
        id = rt_range_start_event(d, &e.e);
    }
    return nvtx_passes_on(d) ? nvtx_next_start(d, a, id) : id;
}

static void domain_end(void *domain, uint64_t id)
{
    struct rt_domain *d = rt_domain_of(domain);
    const struct rt_event e = plain_event(0);
    uint64_t theirs = d != NULL ? rt_range_end_event(d, id, &e) : 0;
    if (nvtx_passes_on(d))
        nvtx_next_end(d, theirs);
}

static int domain_push(void *domain, const struct nvtx_attr *a)
{
    struct rt_domain *d = rt_domain_of(domain);
    struct event e;
    int depth = NVTX_NOT_TRACKED;
    if (nvtx_live(d)) {
        take_event(&e, a);
        depth = rt_push(d, &e.e);
    }
    if (nvtx_passes_on(d))
        nvtx_next_push(d, a);
    return depth;
}

/* Pops a range, also when recording has stopped since the push. */
static int domain_pop(void *domain)
{
    struct rt_domain *d = rt_domain_of(domain);
    const struct rt_event e = plain_event(0);
    int depth = d == NULL ? -1 : rt_pop(d, &e);
    if (nvtx_passes_on(d))
        nvtx_next_pop(d);
    return depth < 0 && !nvtx_live(d) ? NVTX_NOT_TRACKED : depth;
}

/* Makes the long form of a call that has only a text; the next tool gets that form. */
static struct nvtx_attr attr_of(const char *text)
{
    return (struct nvtx_attr){.version = 3,
                              .size = sizeof(struct nvtx_attr),
                              .message_type = text != NULL ? NVTX_MESSAGE_ASCII : 0,
                              .message = text};
}

static void mark_text(const char *text)
{
    struct rt_domain *d = &rt_domains[0];
    if (nvtx_live(d)) {
        const struct rt_event e = plain_event(nvtx_text(text));
        rt_mark_event(d, &e);
    }
    if (nvtx_passes_on(d)) {
        const struct nvtx_attr a = attr_of(text);
        nvtx_next_mark(d, &a);
    }
}

static uint64_t start_text(const char *text)
{
    struct rt_domain *d = &rt_domains[0];
    uint32_t id = 0;
    if (nvtx_live(d)) {
        const struct rt_event e = plain_event(nvtx_text(text));
        id = rt_range_start_event(d, &e);
    }
    if (!nvtx_passes_on(d))
        return id;
    const struct nvtx_attr a = attr_of(text);
    return nvtx_next_start(d, &a, id);
}

static int push_text(const char *text)
{
    struct rt_domain *d = &rt_domains[0];
    int depth = NVTX_NOT_TRACKED;
    if (nvtx_live(d)) {
        const struct rt_event e = plain_event(nvtx_text(text));
        depth = rt_push(d, &e);
    }
    if (nvtx_passes_on(d)) {
        const struct nvtx_attr a = attr_of(text);
        nvtx_next_push(d, &a);
    }
    return depth;
}

static void mark_attr(const struct nvtx_attr *a)
{
    domain_mark(NULL, a);
}
static uint64_t start_attr(const struct nvtx_attr *a)
{
    return domain_start(NULL, a);
}
static void end_default(uint64_t id)
{
    domain_end(NULL, id);
}
static int push_attr(const struct nvtx_attr *a)
{
    return domain_push(NULL, a);
}
static int pop_default(void)
{
    return domain_pop(NULL);
}
static void mark_wide(const wchar_t *w)
{
    char buf[WIDE_BYTES];
    mark_text(nvtx_narrow(w, buf, sizeof buf));
}
static uint64_t start_wide(const wchar_t *w)
{
    char buf[WIDE_BYTES];
    return start_text(nvtx_narrow(w, buf, sizeof buf));
}
static int push_wide(const wchar_t *w)
{
    char buf[WIDE_BYTES];
    return push_text(nvtx_narrow(w, buf, sizeof buf));
}

/* ---- domains, strings, names ---------------------------------------------------------------------- */

/* Makes a domain. When the name is refused or filtered, the handle of the default domain is
 * returned, never NULL. */
static void *domain_create(const char *name)
{
    struct rt_domain *d = rt_domain_create(name);
    return d != NULL ? d : &rt_domains[0];
}
static void *domain_create_wide(const wchar_t *w)
{
    char buf[WIDE_BYTES];
    return domain_create(nvtx_narrow(w, buf, sizeof buf));
}
static void domain_destroy(void *domain)
{
    struct rt_domain *d = rt_domain_of(domain);
    if (d == NULL)
        return;
    rt_domain_destroy(d);
    nvtx_next_domain_end(d);
}
static void *register_string(void *domain, const char *text)
{
    (void)domain;
    return nvtx_text_register(text);
}
static void *register_string_wide(void *domain, const wchar_t *w)
{
    char buf[WIDE_BYTES];
    return register_string(domain, nvtx_narrow(w, buf, sizeof buf));
}

static void name_it(enum mstx_text_kind kind, const void *domain, uint64_t key, const char *name)
{
    struct rt_domain *d = rt_domain_of(domain);
    if (d == NULL || name == NULL)
        return;
    if (rt_is_running())
        rt_text_define(kind, d->number, key, name, strlen(name));
    if (nvtx_passes_on(d))
        nvtx_next_name(d, kind, key, name);
}
static void domain_name_category(void *domain, uint32_t category, const char *name)
{
    name_it(MSTX_CATEGORY, domain, category, name);
}
static void domain_name_category_wide(void *domain, uint32_t category, const wchar_t *w)
{
    char buf[WIDE_BYTES];
    domain_name_category(domain, category, nvtx_narrow(w, buf, sizeof buf));
}
static void name_category(uint32_t category, const char *name)
{
    domain_name_category(NULL, category, name);
}
static void name_category_wide(uint32_t category, const wchar_t *w)
{
    domain_name_category_wide(NULL, category, w);
}
static void name_thread(uint32_t tid, const char *name)
{
    name_it(MSTX_THREAD, NULL, tid, name);
}
static void name_thread_wide(uint32_t tid, const wchar_t *w)
{
    char buf[WIDE_BYTES];
    name_thread(tid, nvtx_narrow(w, buf, sizeof buf));
}

static void name_resource(const void *domain, const char *kind, uint64_t key, const char *name)
{
    char text[512];
    snprintf(text, sizeof text, "%s %s", kind, name != NULL ? name : "");
    name_it(MSTX_RESOURCE, domain, key, text);
}

/* Names a handle, and passes the short form on to the next tool, in the slot of the same module. */
#define NAMER(fn, type, kind, module, slot)                                                        \
    static void fn(type handle, const char *name)                                                  \
    {                                                                                              \
        nvtx_fn next = nvtx_next_namer(module, slot);                                              \
        name_resource(NULL, kind, (uint64_t)(uintptr_t)handle, name);                              \
        if (next != NULL)                                                                          \
            ((void (*)(type, const char *))next)(handle, name);                                    \
    }                                                                                              \
    static void fn##_wide(type handle, const wchar_t *w)                                           \
    {                                                                                              \
        char buf[256];                                                                             \
        fn(handle, nvtx_narrow(w, buf, sizeof buf));                                               \
    }
NAMER(cuda_device, int, "device", NVTX_CUDA, 1)
NAMER(cuda_context, void *, "context", NVTX_CUDA, 3)
NAMER(cuda_stream, void *, "stream", NVTX_CUDA, 5)
NAMER(cuda_event, void *, "event", NVTX_CUDA, 7)
NAMER(cudart_device, int, "device", NVTX_CUDART, 1)
NAMER(cudart_stream, void *, "stream", NVTX_CUDART, 3)
NAMER(cudart_event, void *, "event", NVTX_CUDART, 5)
NAMER(cl_device, void *, "device", NVTX_OPENCL, 1)
NAMER(cl_context, void *, "context", NVTX_OPENCL, 3)
NAMER(cl_queue, void *, "queue", NVTX_OPENCL, 5)
NAMER(cl_buffer, void *, "buffer", NVTX_OPENCL, 7)
NAMER(cl_sampler, void *, "sampler", NVTX_OPENCL, 9)
NAMER(cl_program, void *, "program", NVTX_OPENCL, 11)
NAMER(cl_event, void *, "event", NVTX_OPENCL, 13)

struct nvtx_resource { /* 32 bytes */
    uint16_t version, size;
    int32_t identifier_type;
    uint64_t identifier;
    int32_t message_type;
    const void *message;
};
static_assert(sizeof(struct nvtx_resource) == 32, "resource");

static void *resource_create(void *domain, const struct nvtx_resource *from)
{
    static const char *const kinds[] = {"resource", "resource", "lock",  "lock",
                                        "cuda",     "cuda",     "opencl"};
    static _Atomic uintptr_t count;
    char buf[WIDE_BYTES];
    struct nvtx_resource a = {0};
    if (from != NULL)
        memcpy(&a, from, from->size < sizeof a ? from->size : sizeof a);
    if (from == NULL || from->size < sizeof a)
        a.message_type = 0; /* a partial pointer is not usable */
    unsigned class = (unsigned)a.identifier_type >> 16;
    const char *kind = class < sizeof kinds / sizeof *kinds ? kinds[class] : "resource";
    if (a.message_type == NVTX_MESSAGE_ASCII)
        name_resource(domain, kind, a.identifier, a.message);
    else if (a.message_type == NVTX_MESSAGE_WIDE)
        name_resource(domain, kind, a.identifier, nvtx_narrow(a.message, buf, sizeof buf));
    struct rt_domain *d = rt_domain_of(domain);
    void *theirs = d != NULL && from != NULL ? nvtx_next_resource(d, from) : NULL;
    /* The recorder never looks this handle up, so a count is enough. */
    return theirs != NULL ? theirs : (void *)(atomic_fetch_add(&count, 1) + 1);
}
static void resource_destroy(void *resource)
{
    if (resource != NULL)
        nvtx_next_resource_end(resource);
}
static void initialize(const void *reserved)
{
    (void)reserved;
}

/* ---- the entry point ---------------------------------------------------------------------------------- */

struct callbacks {
    size_t struct_size;
    int (*get_table)(int module, nvtx_table *table, unsigned *size);
};
enum { TABLE_CALLBACKS = 1, CORE = 1, CORE2 = 5, SYNC };

static const nvtx_fn core[] = {NULL,
                               F(mark_attr),
                               F(mark_text),
                               F(mark_wide),
                               F(start_attr),
                               F(start_text),
                               F(start_wide),
                               F(end_default),
                               F(push_attr),
                               F(push_text),
                               F(push_wide),
                               F(pop_default),
                               F(name_category),
                               F(name_category_wide),
                               F(name_thread),
                               F(name_thread_wide)};
static const nvtx_fn core2[] = {NULL,
                                F(domain_mark),
                                F(domain_start),
                                F(domain_end),
                                F(domain_push),
                                F(domain_pop),
                                F(resource_create),
                                F(resource_destroy),
                                F(domain_name_category),
                                F(domain_name_category_wide),
                                F(register_string),
                                F(register_string_wide),
                                F(domain_create),
                                F(domain_create_wide),
                                F(domain_destroy),
                                F(initialize)};
#define BOTH(fn) F(fn), F(fn##_wide)
static const nvtx_fn cuda[] = {NULL, BOTH(cuda_device), BOTH(cuda_context), BOTH(cuda_stream),
                               BOTH(cuda_event)};
static const nvtx_fn cudart[] = {NULL, BOTH(cudart_device), BOTH(cudart_stream),
                                 BOTH(cudart_event)};
static const nvtx_fn opencl[] = {NULL,
                                 BOTH(cl_device),
                                 BOTH(cl_context),
                                 BOTH(cl_queue),
                                 BOTH(cl_buffer),
                                 BOTH(cl_sampler),
                                 BOTH(cl_program),
                                 BOTH(cl_event)};

static void fill(const struct callbacks *c, int module, const nvtx_fn *ours, unsigned n)
{
    nvtx_table table = NULL;
    unsigned size = 0;
    if (c->get_table(module, &table, &size) == 0 || table == NULL)
        return;
    for (unsigned i = 1; i < n && i < size; i++) {
        if (table[i] != NULL)
            __atomic_store_n(table[i], ours[i], __ATOMIC_RELEASE);
    }
}
#define FILL(c, module, list) fill(c, module, list, sizeof(list) / sizeof(list)[0])

API int InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t id));
static void find_next(void)
{
    nvtx_next_find(InitializeInjectionNvtx2);
}

int InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t id))
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct callbacks *c = get_export_table != NULL ? get_export_table(TABLE_CALLBACKS) : NULL;
    if (c == NULL || c->struct_size < sizeof *c || c->get_table == NULL || rt.conf.no_nvtx)
        return 0;
    if (!rt_recorder_start(true))
        return 0;
    pthread_once(&once, find_next);
    FILL(c, CORE, core);
    FILL(c, CORE2, core2);
    FILL(c, NVTX_CUDA, cuda);
    FILL(c, NVTX_CUDART, cudart);
    FILL(c, NVTX_OPENCL, opencl);
    FILL(c, SYNC, nvtx_sync_slots);
    return 1;
}
