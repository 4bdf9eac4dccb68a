/* SPDX-License-Identifier: MIT
 *
 * rt_device: the table of streams, and what a mark with a stream does.
 *
 * A queue of tokens needs no lock: a place counts whose turn it is, twice the lap while it is
 * free and one more while it is full.  Any thread may put, the poller alone takes.
 */
#include "mstx/rt_device.h"
#include "mstx/rt_hook.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#define API __attribute__((visibility("default")))

enum { PROBES = 64 /* slots of the table that are looked at */ };

_Atomic bool rt_dev_any;

static struct {
    struct rt_stream *_Atomic slot[RT_STREAM_SLOTS]; /* by handle */
    struct rt_stream *_Atomic all[RT_STREAMS];       /* by index */
    _Atomic uint32_t n;                              /* of all */
    struct rt_stream *memory;                        /* RT_STREAMS of them */
    const struct rt_dev_ops *_Atomic trusted;
} streams;

static const struct rt_dev_ops *const back_ends[MSTX_DEVICE_KINDS] = {
    [MSTX_DEVICE_CPU] = &rt_dev_cpu,
    [MSTX_DEVICE_OPENCL] = &rt_dev_opencl,
    [MSTX_DEVICE_CUDA] = &rt_dev_cuda,
    [MSTX_DEVICE_ACL] = &rt_dev_acl,
};

/* This thread is within a call of a device runtime: a signal handler must not go there too. */
static __thread bool is_inside __attribute__((tls_model("initial-exec")));

void *rt_dev_map(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* ---- the table ------------------------------------------------------------------------ */

static size_t first_slot(const void *handle)
{
    return (size_t)(((uintptr_t)handle * 0x9E3779B97F4A7C15u) >> 50);
}
static_assert(RT_STREAM_SLOTS == 1 << 14, "the hash gives 14 bits");

static bool is_live(const struct rt_stream *s)
{
    return atomic_load_explicit(&s->state, memory_order_acquire) == RT_STREAM_LIVE;
}

static struct rt_stream *find(const void *handle)
{
    size_t at = first_slot(handle);
    for (int i = 0; i < PROBES; i++, at = (at + 1) % RT_STREAM_SLOTS) {
        struct rt_stream *s = atomic_load_explicit(&streams.slot[at], memory_order_acquire);
        if (s == NULL)
            return NULL;
        if (s->handle == handle && is_live(s))
            return s;
    }
    return NULL;
}

/* Slots of streams that are gone are used again; they are never emptied, so a search that runs
 * at the same time does not stop early. */
static bool put_in_slot(struct rt_stream *s)
{
    size_t at = first_slot(s->handle);
    for (int i = 0; i < PROBES; i++, at = (at + 1) % RT_STREAM_SLOTS) {
        struct rt_stream *old = atomic_load(&streams.slot[at]);
        if (old != NULL && old != s && is_live(old))
            continue;
        atomic_store_explicit(&streams.slot[at], s, memory_order_release);
        return true;
    }
    return false;
}

struct rt_stream *rt_dev_stream(uint32_t index)
{
    return atomic_load_explicit(&streams.all[index], memory_order_acquire);
}
uint32_t rt_dev_streams(void)
{
    return atomic_load_explicit(&streams.n, memory_order_acquire);
}

/* Caller holds rt.stream_lock. Index 0 means no stream. */
static struct rt_stream *take_place(void)
{
    uint32_t i = 1, n = atomic_load(&streams.n);
    if (streams.memory == NULL)
        streams.memory = rt_dev_map(RT_STREAMS * sizeof *streams.memory);
    if (streams.memory == NULL)
        return NULL;
    while (i < n && atomic_load(&streams.all[i]) != NULL)
        i++;
    if (i >= RT_STREAMS)
        return NULL;
    struct rt_stream *s = &streams.memory[i];
    struct rt_token *queue = s->token != NULL ? s->token : rt_dev_map(RT_TOKENS * sizeof *queue);
    uint64_t put = atomic_load(&s->put), taken = s->taken;
    *s = (struct rt_stream){.token = queue, .put = put, .taken = taken, .index = (uint16_t)i};
    return queue != NULL ? s : NULL;
}

bool rt_dev_claim(struct rt_stream *s, int state)
{
    return atomic_compare_exchange_strong(&s->state, &state, RT_STREAM_CLOSED);
}

void rt_dev_unmake(struct rt_stream *s)
{
    s->ops->close(s);
    atomic_store(&streams.all[s->index], NULL);
}

static void set_name(struct rt_stream *s, const char *name)
{
    if (name != NULL && name[0] != '\0') {
        snprintf(s->name, sizeof s->name, "%s", name);
        atomic_store(&s->epoch, 0); /* to be told again */
    }
}

static int make(const struct rt_dev_ops *ops, void *handle, const char *name)
{
    struct rt_stream *s = take_place();
    if (s == NULL)
        return ENOMEM;
    s->handle = handle;
    s->ops = ops;
    set_name(s, name);
    if (!ops->open(s))
        return ENODEV;
    atomic_store(&s->state, RT_STREAM_LIVE);
    if (!put_in_slot(s))
        return ENOSPC;
    atomic_store_explicit(&streams.all[s->index], s, memory_order_release);
    if (s->index >= atomic_load(&streams.n))
        atomic_store_explicit(&streams.n, s->index + 1u, memory_order_release);
    atomic_store_explicit(&rt_dev_any, true, memory_order_release);
    return 0;
}

API int mstx_stream_made(enum mstx_device_kind kind, void *handle, const char *name)
{
    if (handle == NULL || (unsigned)kind >= MSTX_DEVICE_KINDS)
        return EINVAL;
    bool was = is_inside;
    is_inside = true;
    rt_lock(&rt.stream_lock);
    struct rt_stream *s = find(handle);
    int rc = 0;
    if (s != NULL && s->ops->kind == kind)
        set_name(s, name);
    else {
        int live = RT_STREAM_LIVE;
        if (s != NULL) /* another runtime gave out the same value: ours went unseen */
            atomic_compare_exchange_strong(&s->state, &live, RT_STREAM_LOST);
        rc = make(back_ends[kind], handle, name);
    }
    rt_unlock(&rt.stream_lock);
    is_inside = was;
    return rc;
}

API void mstx_stream_gone(void *handle)
{
    struct rt_stream *s = find(handle);
    if (s == NULL)
        return;
    int live = RT_STREAM_LIVE;
    bool mine = atomic_compare_exchange_strong(&s->state, &live, RT_STREAM_GONE);
    if (!mine || atomic_load(&s->epoch) != 0)
        return;
    if (rt_dev_claim(s, RT_STREAM_GONE)) { /* nobody marked on it: the poller may not run */
        rt_dev_wait_unused(s);
        rt_dev_unmake(s);
    }
}

API void mstx_device_reset(enum mstx_device_kind kind, int device)
{
    uint32_t n = rt_dev_streams();
    for (uint32_t i = 1; i < n; i++) {
        struct rt_stream *s = rt_dev_stream(i);
        if (s == NULL || s->ops->kind != kind || (device >= 0 && s->device != (uint32_t)device))
            continue;
        if (!rt_dev_claim(s, RT_STREAM_LIVE) && !rt_dev_claim(s, RT_STREAM_GONE))
            continue;
        rt_dev_wait_unused(s);
        s->ops->lose(s); /* first: the poller closes what is lost at once */
        atomic_store(&s->state, RT_STREAM_LOST);
    }
}

void rt_dev_trust(const char *kind)
{
    for (size_t i = 0; kind != NULL && i < MSTX_DEVICE_KINDS; i++) {
        if (strcmp(back_ends[i]->name, kind) == 0 && i != MSTX_DEVICE_CPU) {
            atomic_store(&streams.trusted, back_ends[i]);
            atomic_store(&rt_dev_any, true);
        }
    }
}

/* A handle that nobody told of, in a program whose handles are all of one kind. */
RT_COLD static struct rt_stream *find_trusted(void *handle)
{
    const struct rt_dev_ops *ops = atomic_load(&streams.trusted);
    if (ops == NULL || is_inside || mstx_stream_made(ops->kind, handle, NULL) != 0)
        return NULL;
    return find(handle);
}

void rt_dev_forget(void)
{
    uint32_t n = rt_dev_streams();
    for (uint32_t i = 1; i < n; i++) {
        struct rt_stream *s = &streams.memory[i];
        atomic_store(&s->state, RT_STREAM_CLOSED);
        atomic_store(&streams.all[i], NULL);
        if (s->token != NULL) /* what waits in it is the parent's */
            munmap(s->token, RT_TOKENS * sizeof *s->token);
        s->token = NULL;
        atomic_store(&s->put, 0);
        s->taken = 0;
    }
    rt_dev_poller_forget();
}

/* ---- marks ------------------------------------------------------------------------------ */

/* A STREAM record, once in a capture. */
RT_COLD static void announce(struct rt_stream *s)
{
    mstx_device_stream(s->handle, s->name, s->device, s->number);
    rt_dev_poller_start();
}

/* A place in the queue; NULL: it is full. */
static struct rt_token *claim(struct rt_stream *s, uint64_t *lap)
{
    uint64_t at = atomic_load_explicit(&s->put, memory_order_relaxed);
    for (;;) {
        struct rt_token *t = &s->token[at % RT_TOKENS];
        uint64_t turn = atomic_load_explicit(&t->turn, memory_order_acquire);
        *lap = at / RT_TOKENS;
        if (turn < 2 * *lap)
            return NULL;
        if (turn > 2 * *lap)
            at = atomic_load_explicit(&s->put, memory_order_relaxed);
        else if (atomic_compare_exchange_weak(&s->put, &at, at + 1))
            return t;
    }
}

/* false: no device time will come. */
static bool queue_point(struct rt_stream *s, uint64_t id, uint64_t ticks, uint32_t name)
{
    uint64_t lap;
    struct rt_token *t = claim(s, &lap);
    if (t == NULL)
        return false;
    t->id = id;
    t->ticks = ticks;
    t->name = name;
    t->is_command = false;
    atomic_store_explicit(&t->event, NULL, memory_order_relaxed);
    bool ok = s->ops->mark(s, t);
    if (!ok)
        t->id = 0; /* the poller passes over it */
    atomic_store_explicit(&t->turn, 2 * lap + 1, memory_order_release);
    return ok;
}

/* Flags for the host record. */
static uint8_t point(struct rt_stream *s, uint64_t id, uint64_t ticks, uint32_t name)
{
    uint8_t flags = 0;
    if (is_inside)
        return MSTX_F_NO_DEVICE;
    is_inside = true;
    if (RT_UNLIKELY(atomic_load_explicit(&s->epoch, memory_order_relaxed) != rt.epoch) &&
        atomic_exchange(&s->epoch, rt.epoch) != rt.epoch)
        announce(s);
    if (s->ops->is_capturing != NULL && s->ops->is_capturing(s))
        flags = MSTX_F_CAPTURED;
    else if (!queue_point(s, id, ticks, name))
        flags = MSTX_F_NO_DEVICE;
    is_inside = false;
    return flags;
}

uint8_t rt_dev_start(const struct mstx_rec *rec, uint16_t *stream)
{
    void *handle = (void *)(uintptr_t)rec->arg;
    struct rt_stream *s = find(handle);
    *stream = 0;
    if (RT_UNLIKELY(s == NULL))
        s = find_trusted(handle);
    if (s == NULL)
        return 0;
    uint8_t flags = point(s, rec->id, rec->ticks, rec->name);
    *stream = flags == 0 ? s->index : 0;
    return flags;
}

uint8_t rt_dev_end(uint16_t stream, const struct mstx_rec *rec)
{
    struct rt_stream *s = rt_dev_stream(stream);
    if (s == NULL || !is_live(s))
        return MSTX_F_NO_DEVICE;
    return point(s, rec->id | RT_DEV_END, rec->arg, rec->name);
}

/* ---- commands of the program --------------------------------------------------------------- */

RT_COLD static void announce_commands(struct rt_stream *s)
{
    char name[RT_STREAM_NAME + 16];
    snprintf(name, sizeof name, "%s commands", s->name);
    mstx_device_stream(&s->last_command_ns, name, s->device, s->number);
    rt_dev_poller_start();
}

API uint64_t mstx_stream_command(void *handle, const char *name, uint64_t *ticks)
{
    struct rt_stream *s = is_inside ? NULL : find(handle);
    if (s == NULL || s->ops->command == NULL)
        return 0;
    is_inside = true;
    const uint64_t id = mstx_device_range(s->ops->name, name, &s->last_command_ns, ticks);
    if (id != 0 && atomic_load(&s->command_epoch) != rt.epoch &&
        atomic_exchange(&s->command_epoch, rt.epoch) != rt.epoch)
        announce_commands(s);
    is_inside = false;
    return id;
}

API bool mstx_stream_command_queued(void *handle, uint64_t id, uint64_t ticks, void *event)
{
    uint64_t lap;
    struct rt_stream *s = is_inside ? NULL : find(handle);
    struct rt_token *t = s != NULL ? claim(s, &lap) : NULL;
    if (t == NULL) {
        mstx_device_time(id, ticks, true, 0);
        return false;
    }
    t->id = id;
    t->ticks = ticks;
    t->name = 0;
    t->is_command = true;
    atomic_store_explicit(&t->event, event, memory_order_relaxed);
    atomic_store_explicit(&t->turn, 2 * lap + 1, memory_order_release);
    return true;
}
