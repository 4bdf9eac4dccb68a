/* SPDX-License-Identifier: MIT
 *
 * rt_dev_event: see the header.
 *
 * Time: an elapsed time is a float of milliseconds, so it is measured from an anchor, an event
 * on an idle stream of our own that was recorded between two readings of the host's clock and
 * is renewed every second.  The anchors, chained by the time between them, are the device's
 * clock; the float loses 60 ns at most over a second.
 *
 * Events are pooled: a mark takes one from a stack without a lock, the poller puts it back.
 * The head of the stack counts its changes, so that a thread that was interrupted in between
 * cannot take what is no longer on top.
 */
#include "mstx/rt_dev_event.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum {
    CONTEXTS = 64,
    POOL_MAX = 1 << 16,
    FIRST_EVENTS = 32, /* made at once: a first mark should not wait for them */
    TRIES = 8,         /* anchors that are tried for one comparison of clocks */
};

struct pool {
    void **event;
    uint32_t *below;       /* 1 + index of the one below on the stack, 0: the bottom */
    _Atomic uint64_t head; /* changes << 32 | 1 + index */
    _Atomic uint32_t made;
};

struct context {
    const struct rt_event_api *api;
    void *handle;
    uint32_t users, device;
    bool is_dead; /* the device was reset: the runtime is not called for it again */
    struct pool pool;
    /* the poller's */
    void *before; /* the context that its thread had */
    void *stream; /* ours, idle but for anchors */
    void *anchor; /* the newest */
    void *spare;
    int64_t anchor_ns; /* by the device's clock: the sum of the times between anchors */
    struct rt_dev_clock clock;
};
static struct context contexts[CONTEXTS];

/* ---- the library ------------------------------------------------------------------------- */

bool rt_event_load(void **lib, const char *const *files, const struct rt_event_symbol *symbols,
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

/* This thread's calls must not end a capture of another. */
static void relax(const struct rt_event_api *api)
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

/* One more event; the program's thread is in the right context. */
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
static struct context *context_for(const struct rt_event_api *api, void *handle)
{
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

bool rt_event_open(struct rt_stream *s, const struct rt_event_api *api)
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

/* Other streams of the context are lost as well; its slot serves a new one when they are closed. */
void rt_event_lose(struct rt_stream *s)
{
    struct context *c = s->own;
    rt_lock(&rt.stream_lock);
    c->is_dead = true;
    rt_unlock(&rt.stream_lock);
}

/* A context keeps its events for its next stream. */
void rt_event_close(struct rt_stream *s)
{
    struct context *c = s->own;
    rt_lock(&rt.stream_lock);
    c->users--;
    rt_unlock(&rt.stream_lock);
}

/* ---- the clock ------------------------------------------------------------------------------ */

/* Record an anchor on the idle stream and wait a moment for it; for the first, without which no time has
 * a meaning, longer.  Whoever is to carry it out may need the processor that this thread runs on. */
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

/* The anchor that the host's readings hold tightest becomes the newest. */
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

bool rt_event_enter(struct rt_stream *s, int64_t now_ns)
{
    struct context *c = s->own;
    c->before = NULL;
    c->api->context_get(&c->before);
    if (c->api->context_set(c->handle) != 0)
        return false;
    relax(c->api);
    if (c->spare == NULL && c->api->event_create(&c->spare) != 0)
        c->spare = NULL;
    if (c->stream == NULL && c->api->stream_create(&c->stream) != 0)
        c->stream = NULL;
    if (c->spare != NULL && c->stream != NULL && rt_dev_clock_is_due(&c->clock, now_ns))
        compare_clocks(c);
    if (c->clock.readings != 0)
        return true;
    rt_event_leave(s);
    return false;
}

void rt_event_leave(struct rt_stream *s)
{
    struct context *c = s->own;
    if (c->before != NULL)
        c->api->context_set(c->before);
}

/* ---- marks ------------------------------------------------------------------------------------ */

bool rt_event_is_capturing(struct rt_stream *s)
{
    const struct context *c = s->own;
    return c->api->stream_is_capturing(s->handle);
}

bool rt_event_mark(struct rt_stream *s, struct rt_token *t)
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

enum rt_dev_answer rt_event_poll(struct rt_stream *s, struct rt_token *t, int64_t *host_ns)
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

void rt_event_release(struct rt_stream *s, struct rt_token *t)
{
    struct context *c = s->own;
    pool_put(&c->pool, index_of(t));
}
