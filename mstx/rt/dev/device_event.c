/* SPDX-License-Identifier: MIT
 *
 * device_event: the common part of CUDA and Ascend: a mark is an event recorded on the stream, its
 * time is known relative to another event, and a thread has a current context.  Each runtime fills
 * one struct event_api; all its functions return 0 for success.
 *
 * Time: an elapsed time is a float of milliseconds, so it is measured from an anchor, an event
 * on an idle stream of our own that was recorded between two readings of the host's clock and
 * is renewed every second.  The anchors, chained by the time between them, are the device's
 * clock; the float loses 60 ns at most over a second.
 *
 * Events are pooled: a mark takes one from a stack without a lock, the poller puts it back.
 * The head of the stack counts its changes, so that a thread that was interrupted in between
 * cannot take an event that is no longer on top.
 */
#include "mstx/rt/dev/device.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

struct event_api {
    const char *name;
    enum mstx_device_kind kind;
    uint32_t events_max; /* of one context: a scarce resource on some devices */
    bool (*load)(void);  /* finds the library: load_library with its symbols */

    /* functions of the runtime, set by load_library */
    int (*event_record)(void *event, void *stream);
    int (*event_elapsed)(float *ms, void *from, void *to);
    int (*context_get)(void **context);
    int (*context_set)(void *context);
    int (*device_get)(int *device);
    int (*capture_mode)(int *mode); /* of this thread; NULL: an older release */

    /* functions that differ between runtimes */
    int (*event_create)(void **event);
    enum rt_dev_answer (*event_query)(void *event);
    int (*stream_create)(void **stream); /* a stream without implicit synchronization */
    int (*stream_number)(void *stream, uint32_t *number);
    bool (*stream_is_capturing)(void *stream);
};

/* A function of the runtime: its name, and the pointer to set. */
struct event_symbol {
    const char *name;
    void *to;
    bool may_lack; /* missing in older releases */
};
enum {
    CONTEXTS = 64,
    POOL_MAX = 1 << 16,
    FIRST_EVENTS = 32, /* created at once, so that the first marks do not wait for them */
    TRIES = 8,         /* anchors recorded for one comparison of clocks */
};

struct pool {
    void **event;
    uint32_t *below;       /* 1 + index of the next event down the stack, 0: the bottom */
    _Atomic uint64_t head; /* changes << 32 | 1 + index */
    _Atomic uint32_t made;
};

struct context {
    const struct event_api *api;
    void *handle;
    uint32_t users, device;
    bool is_dead; /* the device was reset: no more calls of the runtime for it */
    struct pool pool;
    /* used by the poller: */
    void *before; /* the context that was current on its thread */
    void *stream; /* our own stream, only for anchors */
    void *anchor; /* the newest */
    void *spare;
    /* Time of the anchor by the device's clock: the sum of the times between anchors. */
    int64_t anchor_ns;
    struct rt_dev_clock clock;
};
static struct context contexts[CONTEXTS];

/* ---- the library ------------------------------------------------------------------------- */

/* Loads a library and its symbols. files: names of the library, ended by NULL; *lib stays NULL
 * unless every required symbol was found. */
static bool load_library(void **lib, const char *const *files, const struct event_symbol *symbols,
                         size_t n)
{
    if (*lib != NULL)
        return true;
    void *found = rt_dev_library(files, true);
    bool all = found != NULL;
    for (size_t i = 0; all && i < n; i++) {
        void *p = dlsym(found, symbols[i].name);
        memcpy(symbols[i].to, &p, sizeof p);
        all = p != NULL || symbols[i].may_lack;
    }
    *lib = all ? found : NULL;
    return all;
}

/* Sets the relaxed capture mode of this thread, so that its calls do not end a graph capture of
 * another thread. */
static void relax_capture(const struct event_api *api)
{
    enum { RELAXED = 2 };
    static __thread unsigned relaxed __attribute__((tls_model("initial-exec"))); /* kinds */
    int mode = RELAXED;
    if ((relaxed & 1u << api->kind) == 0 && api->capture_mode != NULL)
        api->capture_mode(&mode);
    relaxed |= 1u << api->kind;
}

/* ---- the pool ---------------------------------------------------------------------------- */

static bool pool_start(struct pool *p)
{
    if (p->event == NULL)
        p->event = rt_dev_map(POOL_MAX * sizeof *p->event);
    if (p->below == NULL)
        p->below = rt_dev_map(POOL_MAX * sizeof *p->below);
    atomic_store(&p->head, 0);
    atomic_store(&p->made, 0);
    return p->event != NULL && p->below != NULL;
}

static void pool_put(struct pool *p, uint32_t i)
{
    ms_assert(i < POOL_MAX);
    uint64_t head = atomic_load(&p->head), next;
    do {
        p->below[i] = (uint32_t)head;
        next = ((head >> 32) + 1) << 32 | (i + 1);
    } while (!atomic_compare_exchange_weak(&p->head, &head, next));
}

static bool pool_take(struct pool *p, uint32_t *i)
{
    uint64_t head = atomic_load(&p->head), next;
    do {
        if ((uint32_t)head == 0)
            return false;
        *i = (uint32_t)head - 1;
        next = ((head >> 32) + 1) << 32 | __atomic_load_n(&p->below[*i], __ATOMIC_RELAXED);
    } while (!atomic_compare_exchange_weak(&p->head, &head, next));
    return true;
}

/* Creates one more event; the right context is current on the calling thread. */
static bool pool_grow(struct context *c, uint32_t *i)
{
    struct pool *p = &c->pool;
    uint32_t at = atomic_fetch_add(&p->made, 1);
    if (at < c->api->events_max && at < POOL_MAX && c->api->event_create(&p->event[at]) == 0) {
        *i = at;
        return true;
    }
    if (at >= c->api->events_max)
        atomic_fetch_sub(&p->made, 1);
    return false;
}

/* ---- contexts ----------------------------------------------------------------------------- */

/* Caller holds the lock of all streams. */
static struct context *context_for(const struct event_api *api, void *handle)
{
    ms_assert(atomic_load(&rt.stream_lock.held) == 1);
    struct context *free_one = NULL;
    for (size_t i = 0; i < CONTEXTS; i++) {
        struct context *c = &contexts[i];
        if (!c->is_dead && c->api == api && c->handle == handle)
            return c;
        bool is_free = c->api == NULL || (c->is_dead && c->users == 0);
        if (is_free && free_one == NULL)
            free_one = c;
    }
    if (free_one == NULL)
        return NULL;
    struct pool pool = free_one->pool;
    *free_one = (struct context){.api = api, .handle = handle, .pool = pool};
    int device = 0;
    if (!pool_start(&free_one->pool) || api->device_get(&device) != 0)
        return NULL;
    free_one->device = (uint32_t)device;
    for (uint32_t n = 0, i; n < FIRST_EVENTS && pool_grow(free_one, &i); n++)
        pool_put(&free_one->pool, i);
    return free_one;
}

static bool event_stream_open(struct rt_stream *s, const struct event_api *api)
{
    static uint32_t made; /* under the lock of all streams */
    void *handle = NULL;
    if (!api->load() || api->context_get(&handle) != 0 || handle == NULL)
        return false;
    struct context *c = context_for(api, handle);
    if (c == NULL)
        return false;
    c->users++;
    s->own = c;
    s->device = c->device;
    if (api->stream_number(s->handle, &s->number) != 0)
        s->number = made++;
    if (s->name[0] == '\0')
        snprintf(s->name, sizeof s->name, "%s stream %u", api->name, s->number);
    return true;
}

/* Marks the context as dead: its other streams are lost as well. Its slot is reused when they are
 * closed. */
static void event_stream_lose(struct rt_stream *s)
{
    struct context *c = s->own;
    rt_lock(&rt.stream_lock);
    c->is_dead = true;
    rt_unlock(&rt.stream_lock);
}

/* Closes a stream; the context keeps its events for its next stream. */
static void event_stream_close(struct rt_stream *s)
{
    struct context *c = s->own;
    rt_lock(&rt.stream_lock);
    c->users--;
    rt_unlock(&rt.stream_lock);
}

/* ---- the clock ------------------------------------------------------------------------------ */

/* Records an anchor on the idle stream and waits a moment for it; longer for the first anchor,
 * without which no device time can be converted. Yields while waiting, because the thread that
 * carries out the event may need this processor. */
static bool drop_anchor(struct context *c, void *event, struct rt_dev_reading *r)
{
    const int64_t patience_ns = c->clock.readings == 0 ? 100000000 : 2000000;
    enum rt_dev_answer answer = RT_DEV_NOT_YET;
    r->before_ns = rt_dev_now(CLOCK_MONOTONIC);
    if (c->api->event_record(event, c->stream) != 0)
        return false;
    do {
        answer = c->api->event_query(event);
        r->after_ns = rt_dev_now(CLOCK_MONOTONIC);
        if (answer == RT_DEV_NOT_YET)
            sched_yield();
    } while (answer == RT_DEV_NOT_YET && r->after_ns - r->before_ns < patience_ns);
    return answer == RT_DEV_DONE;
}

/* Records some anchors; the one with the narrowest pair of host readings becomes the newest. */
static void compare_clocks(struct context *c)
{
    struct rt_dev_reading best = {.after_ns = INT64_MAX};
    for (int i = 0; i < TRIES; i++) {
        struct rt_dev_reading r;
        float ms = 0;
        void *event = c->spare;
        if (!drop_anchor(c, event, &r) ||
            (c->anchor != NULL && c->api->event_elapsed(&ms, c->anchor, event) != 0))
            break;
        r.device_ns = c->anchor_ns + (int64_t)((double)ms * 1e6);
        if (r.after_ns - r.before_ns >= best.after_ns - best.before_ns)
            continue;
        best = r;
        c->spare = c->anchor;
        c->anchor = event;
        c->anchor_ns = r.device_ns;
        if (c->spare == NULL && c->api->event_create(&c->spare) != 0)
            break;
    }
    if (best.after_ns != INT64_MAX)
        rt_dev_clock_add(&c->clock, &best);
}

static void event_stream_leave(struct rt_stream *s);
static bool event_stream_enter(struct rt_stream *s, int64_t now_ns)
{
    struct context *c = s->own;
    c->before = NULL;
    c->api->context_get(&c->before);
    if (c->api->context_set(c->handle) != 0)
        return false;
    relax_capture(c->api);
    if (c->spare == NULL && c->api->event_create(&c->spare) != 0)
        c->spare = NULL;
    if (c->stream == NULL && c->api->stream_create(&c->stream) != 0)
        c->stream = NULL;
    if (c->spare != NULL && c->stream != NULL && rt_dev_clock_is_due(&c->clock, now_ns))
        compare_clocks(c);
    if (c->clock.readings != 0)
        return true;
    event_stream_leave(s);
    return false;
}

static void event_stream_leave(struct rt_stream *s)
{
    struct context *c = s->own;
    if (c->before != NULL)
        c->api->context_set(c->before);
}

/* ---- marks ------------------------------------------------------------------------------------ */

static bool event_stream_is_capturing(struct rt_stream *s)
{
    const struct context *c = s->own;
    return c->api->stream_is_capturing(s->handle);
}

static bool event_stream_mark(struct rt_stream *s, struct rt_token *t)
{
    struct context *c = s->own;
    uint32_t i;
    if (!pool_take(&c->pool, &i) && !pool_grow(c, &i))
        return false;
    if (c->api->event_record(c->pool.event[i], s->handle) != 0) {
        pool_put(&c->pool, i);
        return false;
    }
    atomic_store_explicit(&t->event, (void *)((uintptr_t)i + 1), memory_order_relaxed);
    return true;
}

static uint32_t index_of(struct rt_token *t)
{
    return (uint32_t)((uintptr_t)atomic_load_explicit(&t->event, memory_order_relaxed) - 1);
}

static enum rt_dev_answer event_stream_poll(struct rt_stream *s, struct rt_token *t,
                                            int64_t *host_ns)
{
    struct context *c = s->own;
    void *event = c->pool.event[index_of(t)];
    float ms = 0;
    enum rt_dev_answer answer = c->api->event_query(event);
    if (answer != RT_DEV_DONE)
        return answer;
    if (c->api->event_elapsed(&ms, c->anchor, event) != 0)
        return RT_DEV_LOST;
    *host_ns = rt_dev_clock_host(&c->clock, c->anchor_ns + (int64_t)((double)ms * 1e6));
    return RT_DEV_DONE;
}

static void event_stream_release(struct rt_stream *s, struct rt_token *t)
{
    struct context *c = s->own;
    pool_put(&c->pool, index_of(t));
}

/* ---- cuda ---------------------------------------------------------------------------------
 *
 * cuda: streams of CUDA, by the driver's interface (libcuda.so.1), found at run time.
 * Streams of the runtime library (cudaStream_t) are the same handles.
 */

enum {
    CUDA_NOT_READY = 600,
    CUDA_NON_BLOCKING = 1, /* a stream that does not synchronize with the default one */
};

static struct {
    void *lib;
    int (*event_create)(void **event, unsigned flags);
    int (*event_query)(void *event);
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_is_capturing)(void *stream, int *status);
    int (*stream_id)(void *stream, unsigned long long *id);
} cu;
static struct event_api cuda_api;

static bool cuda_load(void)
{
    static const char *const files[] = {"libcuda.so.1", "libcuda.so", NULL};
    static const struct event_symbol symbols[] = {
        {"cuEventCreate", &cu.event_create, false},
        {"cuEventQuery", &cu.event_query, false},
        {"cuEventRecord", &cuda_api.event_record, false},
        {"cuEventElapsedTime", &cuda_api.event_elapsed, false},
        {"cuStreamCreate", &cu.stream_create, false},
        {"cuCtxGetCurrent", &cuda_api.context_get, false},
        {"cuCtxSetCurrent", &cuda_api.context_set, false},
        {"cuCtxGetDevice", &cuda_api.device_get, false},
        {"cuStreamIsCapturing", &cu.stream_is_capturing, true},
        {"cuStreamGetId", &cu.stream_id, true},
        {"cuThreadExchangeStreamCaptureMode", &cuda_api.capture_mode, true},
    };
    return load_library(&cu.lib, files, symbols, sizeof symbols / sizeof *symbols);
}

static int cuda_event_create(void **event)
{
    return cu.event_create(event, 0); /* with timing */
}
static enum rt_dev_answer cuda_event_query(void *event)
{
    int rc = cu.event_query(event);
    return rc == 0 ? RT_DEV_DONE : rc == CUDA_NOT_READY ? RT_DEV_NOT_YET : RT_DEV_LOST;
}
static int cuda_stream_create(void **stream)
{
    return cu.stream_create(stream, CUDA_NON_BLOCKING);
}
static int cuda_stream_number(void *stream, uint32_t *number)
{
    unsigned long long id;
    if (cu.stream_id == NULL || cu.stream_id(stream, &id) != 0)
        return -1;
    *number = (uint32_t)id;
    return 0;
}
static bool cuda_stream_is_capturing(void *stream)
{
    int status = 0;
    return cu.stream_is_capturing != NULL && cu.stream_is_capturing(stream, &status) == 0 &&
           status != 0;
}

static struct event_api cuda_api = {
    .name = "cuda",
    .kind = MSTX_DEVICE_CUDA,
    .events_max = 1 << 16,
    .load = cuda_load,
    .event_create = cuda_event_create,
    .event_query = cuda_event_query,
    .stream_create = cuda_stream_create,
    .stream_number = cuda_stream_number,
    .stream_is_capturing = cuda_stream_is_capturing,
};

static bool cuda_open(struct rt_stream *s)
{
    return event_stream_open(s, &cuda_api);
}

const struct rt_dev_ops rt_dev_cuda = {
    .kind = MSTX_DEVICE_CUDA,
    .name = "cuda",
    .open = cuda_open,
    .is_capturing = event_stream_is_capturing,
    .mark = event_stream_mark,
    .poll = event_stream_poll,
    .release = event_stream_release,
    .enter = event_stream_enter,
    .leave = event_stream_leave,
    .lose = event_stream_lose,
    .close = event_stream_close,
};

/* ---- acl ---------------------------------------------------------------------------------
 *
 * acl: streams of Ascend devices, by libascendcl.so, found at run time.  Only an event
 * with the flag ACL_TIME_LINE has a time.  Events are scarce on older parts, so the pool stops at
 * 4096.  aclrtQueryEvent is not used: its result codes are swapped.
 */

enum {
    ACL_TIME_LINE = 8,
    ACL_COMPLETE = 1,
    ACL_FAST_LAUNCH = 1, /* a stream with its own task queue */
};

static struct {
    void *lib;
    int (*event_create)(void **event, uint32_t flag);
    int (*event_create_again)(void **event, uint32_t flag);
    int (*event_query)(void *event, int *status);
    int (*stream_create)(void **stream, uint32_t priority, uint32_t flag);
    int (*stream_id)(void *stream, int32_t *id);
    int (*capture_info)(void *stream, int *status, void **model);
} acl;
static struct event_api acl_api;

static bool acl_load(void)
{
    static const char *const files[] = {"libascendcl.so", NULL};
    static const struct event_symbol symbols[] = {
        {"aclrtCreateEventWithFlag", &acl.event_create, false},
        {"aclrtQueryEventStatus", &acl.event_query, false},
        {"aclrtRecordEvent", &acl_api.event_record, false},
        {"aclrtEventElapsedTime", &acl_api.event_elapsed, false},
        {"aclrtCreateStreamWithConfig", &acl.stream_create, false},
        {"aclrtGetCurrentContext", &acl_api.context_get, false},
        {"aclrtSetCurrentContext", &acl_api.context_set, false},
        {"aclrtGetDevice", &acl_api.device_get, false},
        {"aclrtStreamGetId", &acl.stream_id, true},
        {"aclmdlRICaptureGetInfo", &acl.capture_info, true},
        {"aclmdlRICaptureThreadExchangeMode", &acl_api.capture_mode, true},
        {"aclrtCreateEventExWithFlag", &acl.event_create_again, true},
    };
    return load_library(&acl.lib, files, symbols, sizeof symbols / sizeof *symbols);
}

/* Creates an event. Events of aclrtCreateEventExWithFlag may be recorded again without a reset, as
 * a pool does. */
static int acl_event_create(void **event)
{
    return acl.event_create_again != NULL ? acl.event_create_again(event, ACL_TIME_LINE)
                                          : acl.event_create(event, ACL_TIME_LINE);
}
static enum rt_dev_answer acl_event_query(void *event)
{
    int status = 0;
    if (acl.event_query(event, &status) != 0)
        return RT_DEV_LOST;
    return status == ACL_COMPLETE ? RT_DEV_DONE : RT_DEV_NOT_YET;
}
static int acl_stream_create(void **stream)
{
    return acl.stream_create(stream, 0, ACL_FAST_LAUNCH);
}
static int acl_stream_number(void *stream, uint32_t *number)
{
    int32_t id;
    if (acl.stream_id == NULL || acl.stream_id(stream, &id) != 0)
        return -1;
    *number = (uint32_t)id;
    return 0;
}
static bool acl_stream_is_capturing(void *stream)
{
    int status = 0;
    void *model;
    return acl.capture_info != NULL && acl.capture_info(stream, &status, &model) == 0 &&
           status != 0;
}

static struct event_api acl_api = {
    .name = "ascend",
    .kind = MSTX_DEVICE_ACL,
    .events_max = 4096,
    .load = acl_load,
    .event_create = acl_event_create,
    .event_query = acl_event_query,
    .stream_create = acl_stream_create,
    .stream_number = acl_stream_number,
    .stream_is_capturing = acl_stream_is_capturing,
};

static bool acl_open(struct rt_stream *s)
{
    return event_stream_open(s, &acl_api);
}

const struct rt_dev_ops rt_dev_acl = {
    .kind = MSTX_DEVICE_ACL,
    .name = "acl",
    .open = acl_open,
    .is_capturing = event_stream_is_capturing,
    .mark = event_stream_mark,
    .poll = event_stream_poll,
    .release = event_stream_release,
    .enter = event_stream_enter,
    .leave = event_stream_leave,
    .lose = event_stream_lose,
    .close = event_stream_close,
};
