/* SPDX-License-Identifier: MIT
 *
 * device: the table of streams, and what a mark with a stream does.
 *
 * A queue of tokens needs no lock: the turn of an entry is twice the lap while the entry is free
 * and one more while it is full.  Any thread may append, the poller alone removes.
 *
 * The poller is the thread that queries the devices.  For every stream it takes tokens in the order
 * in which they were queued and stops at the first that was not reached yet; it never waits for a
 * device.  It polls once a millisecond while tokens are in flight, else less often, so that marks
 * need not wake it.
 *
 * At exit atexit ends the poller before the device runtimes, which the program had loaded earlier,
 * shut down; the remaining tokens are polled for a moment and then counted as lost.
 */
#include "mstx/rt/dev/device.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "mstx/rt/hang_watch.h"
#include "mstx/rt/hook_api.h"
#include "mstx/rt/mark.h"
#include "mstx/rt/process_ring.h"
#include "mstx/rt/slot.h"

#define API __attribute__((visibility("default")))

enum { PROBES = 64 /* slots of the table that a search examines */ };

static _Atomic bool any_stream; /* tells marks whether any stream is known */

static struct {
    struct rt_stream *_Atomic slot[RT_STREAM_SLOTS]; /* by handle */
    struct rt_stream *_Atomic all[RT_STREAMS];       /* by index */
    _Atomic uint32_t n;                              /* of all */
    struct rt_stream *memory;                        /* RT_STREAMS of them */
    const struct rt_dev_ops *_Atomic trusted;
} streams;

static const struct rt_dev_ops *const back_ends[MSTX_DEVICE_KINDS] = {
    [MSTX_DEVICE_OPENCL] = &rt_dev_opencl,
    [MSTX_DEVICE_CUDA] = &rt_dev_cuda,
    [MSTX_DEVICE_ACL] = &rt_dev_acl,
};

/* Set while this thread is within a call of a device runtime, which a signal handler must not enter
 * again. */
static __thread bool is_inside __attribute__((tls_model("initial-exec")));

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

/* Puts a stream into a slot. Slots of streams that are gone are reused but never emptied, so a
 * concurrent search does not stop early. */
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

static struct rt_stream *stream_at(uint32_t index)
{
    return atomic_load_explicit(&streams.all[index], memory_order_acquire);
}
static uint32_t stream_count(void)
{
    return atomic_load_explicit(&streams.n, memory_order_acquire);
}

/* Takes a free entry of the list of streams. Caller holds rt.stream_lock. Index 0 means no
 * stream. */
static struct rt_stream *take_place(void)
{
    ms_assert(atomic_load(&rt.stream_lock.held) == 1);
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

static bool stream_claim(struct rt_stream *s, int state)
{
    return atomic_compare_exchange_strong(&s->state, &state, RT_STREAM_CLOSED);
}

static void stream_close(struct rt_stream *s)
{
    ms_assert(atomic_load(&s->state) == RT_STREAM_CLOSED);
    s->ops->close(s);
    atomic_store(&streams.all[s->index], NULL);
}

/* ---- device times, also of hooks that get them on their own ------------------------------ */

API void mstx_device_stream(const void *key, const char *name, uint32_t device, uint32_t number)
{
    if (!rt_start())
        return;
    const struct mstx_text *text = rt_text_intern(name, strlen(name));
    struct mstx_rec rec = {.ticks = rt_ticks(),
                           .id = (uint64_t)(uintptr_t)key,
                           .name = text != NULL ? text->id : 0,
                           .type = MSTX_REC_STREAM,
                           .arg = (uint64_t)number << 32 | device};
    rt_process_write(&rec);
}

API uint64_t mstx_device_range(const char *domain, const char *name, void *key, uint64_t *ticks)
{
    struct rt_domain *d = rt_domain_create(domain);
    uint32_t id = d != NULL ? rt_range_start(d, name, key) : 0;
    *ticks = id != 0 ? rt_range_ticks(id) : 0;
    return id;
}

API void mstx_device_range_end(uint64_t id)
{
    if (id != 0)
        rt_range_end(&rt_domains[rt_range_domain((uint32_t)id)], id);
}

API void mstx_device_time(uint64_t id, uint64_t ticks, bool is_end, int64_t ns)
{
    struct rt_ring *r = id != 0 && rt_is_running() ? rt_ring_of_thread() : NULL;
    struct mstx_rec *to = r == NULL ? NULL : rt_reserve(r, 1);
    if (to == NULL)
        return;
    *to = (struct mstx_rec){.ticks = ticks,
                            .id = id,
                            .name = is_end,
                            .type = MSTX_REC_DEVICE,
                            .flags = ns == 0 ? MSTX_F_NO_DEVICE : 0,
                            .arg = (uint64_t)ns};
    rt_publish(r);
}

/* ---- the poller --------------------------------------------------------------------------- */

enum {
    AT_ONCE = 4096,        /* tokens of one stream taken in a row */
    BUSY_NS = 1000000,     /* between two rounds while tokens wait */
    IDLE_NS = 20000000,    /* ... and while none does */
    LINGER_NS = 300000000, /* at exit: longest wait without progress */
};

static struct {
    pthread_t thread;
    _Atomic int state; /* 0 none, 1 runs, 2 ended for good */
    _Atomic bool stop;
    bool has_exit;
    const struct rt_stream *_Atomic at; /* stream that the poller uses now */
} poller;

/* ---- one stream ------------------------------------------------------------------------ */

/* Returns the oldest token, NULL when none is complete. */
static struct rt_token *oldest_token(struct rt_stream *s)
{
    struct rt_token *t = &s->token[s->taken % RT_TOKENS];
    uint64_t full = 2 * (s->taken / RT_TOKENS) + 1;
    return atomic_load_explicit(&t->turn, memory_order_acquire) == full ? t : NULL;
}

static void let_go(struct rt_stream *s, struct rt_token *t)
{
    ms_assert(t == &s->token[s->taken % RT_TOKENS]);
    atomic_store_explicit(&t->turn, 2 * (s->taken / RT_TOKENS) + 2, memory_order_release);
    s->taken++;
}

static void token_done(struct rt_stream *s, struct rt_token *t, int64_t ns, bool is_lost)
{
    if (!is_lost && ns < s->last_ns)
        ns = s->last_ns; /* the clock comparison changed by less than its uncertainty */
    if (!is_lost)
        s->last_ns = ns;
    mstx_device_time(t->id & ~RT_DEV_END, t->ticks, (t->id & RT_DEV_END) != 0, is_lost ? 0 : ns);
    let_go(s, t);
}

static bool ask_command(struct rt_stream *s, struct rt_token *t)
{
    ms_assert(s->ops->command != NULL);
    /* Noise of clock comparisons: a command does not start before the previous one ended. */
    const int64_t noise = 1000;
    int64_t start = 0, end = 0;
    const enum rt_dev_answer answer = s->ops->command(s, t, &start, &end);
    if (answer == RT_DEV_NOT_YET)
        return false;
    s->ops->release(s, t);
    if (start < s->last_command_ns && s->last_command_ns - start < noise)
        start = s->last_command_ns;
    end = end < start ? start : end;
    if (answer == RT_DEV_DONE)
        s->last_command_ns = end;
    mstx_device_time(t->id, t->ticks, false, answer == RT_DEV_DONE ? start : 0);
    mstx_device_time(t->id, t->ticks, true, answer == RT_DEV_DONE ? end : 0);
    let_go(s, t);
    return true;
}

/* Polls one token; false: the device has not reached it. */
static bool ask_device(struct rt_stream *s, struct rt_token *t)
{
    int64_t ns = 0;
    if (t->id == 0) {
        let_go(s, t);
        return true;
    }
    if (t->is_command)
        return ask_command(s, t);
    enum rt_dev_answer answer = s->ops->poll(s, t, &ns);
    if (answer == RT_DEV_NOT_YET)
        return false;
    s->ops->release(s, t);
    token_done(s, t, ns, answer == RT_DEV_LOST);
    return true;
}

static void lose_all(struct rt_stream *s)
{
    for (struct rt_token *t = oldest_token(s); t != NULL; t = oldest_token(s)) {
        if (t->id == 0)
            let_go(s, t);
        else
            token_done(s, t, 0, true);
    }
}

static size_t waiting_count(const struct rt_stream *s)
{
    return (size_t)(atomic_load_explicit(&s->put, memory_order_relaxed) - s->taken);
}

/* Reports a hang when the same token has been the oldest for too long. */
static void look_for_hang(struct rt_stream *s)
{
    const struct rt_token *t = oldest_token(s);
    if (t == NULL || s->waiting_at != s->taken || s->waiting_since == 0) {
        s->waiting_at = s->taken;
        s->waiting_since = t != NULL ? rt_ticks() : 0;
        s->said_hang = false;
        return;
    }
    if (s->said_hang || !rt_hang_is_long(rt_ticks() - s->waiting_since))
        return;
    s->said_hang = true;
    rt_hang_on_device(&(struct rt_hang_mark){
        .id = t->id & ~RT_DEV_END, .ticks = s->waiting_since, .name = t->name, .stream = s->name});
}

/* Polls one stream. Returns how many tokens were taken; adds to *left how many are in flight. */
static size_t poll_stream(struct rt_stream *s, int64_t now_ns, size_t *left)
{
    size_t taken = 0;
    int state = atomic_load(&s->state);
    if (state == RT_STREAM_CLOSED)
        return 0;
    if (state == RT_STREAM_LOST)
        lose_all(s);
    else if ((waiting_count(s) != 0 || state == RT_STREAM_LIVE) && s->ops->enter(s, now_ns)) {
        struct rt_token *t = oldest_token(s);
        while (t != NULL && taken < AT_ONCE && ask_device(s, t)) {
            taken++;
            t = oldest_token(s);
        }
        s->ops->leave(s);
        look_for_hang(s);
    }
    *left += waiting_count(s);
    if (waiting_count(s) == 0 && state != RT_STREAM_LIVE && stream_claim(s, state))
        stream_close(s);
    return taken;
}

/* Polls every stream once. *left: tokens in flight. */
static size_t poll_all(size_t *left)
{
    size_t taken = 0;
    uint32_t n = stream_count();
    *left = 0;
    for (uint32_t i = 1; i < n; i++) {
        struct rt_stream *s = stream_at(i);
        if (s == NULL)
            continue;
        atomic_store(&poller.at, s);
        taken += poll_stream(s, rt_dev_now(CLOCK_MONOTONIC), left);
        atomic_store(&poller.at, NULL);
    }
    return taken;
}

static void wait_unused(const struct rt_stream *s)
{
    if (atomic_load(&poller.state) == 1 && pthread_equal(pthread_self(), poller.thread))
        return;
    while (atomic_load(&poller.at) == s)
        sched_yield();
}

/* ---- the thread -------------------------------------------------------------------------- */

static void *poller_work(void *arg)
{
    (void)arg;
    pthread_setname_np(pthread_self(), "mstx-device");
    while (!atomic_load(&poller.stop)) {
        size_t left;
        bool had = poll_all(&left) != 0;
        const struct timespec pause = {.tv_nsec = had || left != 0 ? BUSY_NS : IDLE_NS};
        if (!atomic_load(&poller.stop))
            nanosleep(&pause, NULL);
    }
    return NULL;
}

static void lose_rest(void)
{
    uint32_t n = stream_count();
    for (uint32_t i = 1; i < n; i++) {
        struct rt_stream *s = stream_at(i);
        if (s != NULL)
            lose_all(s);
    }
}

static void at_exit(void)
{
    int runs = 1;
    atomic_store(&any_stream, false);
    if (!atomic_compare_exchange_strong(&poller.state, &runs, 2))
        return;
    atomic_store(&poller.stop, true);
    pthread_join(poller.thread, NULL);
    int64_t last = rt_dev_now(CLOCK_MONOTONIC);
    size_t left = 0;
    do {
        const struct timespec pause = {.tv_nsec = BUSY_NS / 4};
        if (poll_all(&left) != 0)
            last = rt_dev_now(CLOCK_MONOTONIC);
        if (left != 0)
            nanosleep(&pause, NULL);
    } while (left != 0 && rt_dev_now(CLOCK_MONOTONIC) - last < LINGER_NS);
    lose_rest();
}

static void poller_start(void)
{
    sigset_t all, old;
    int none = 0;
    if (!atomic_compare_exchange_strong(&poller.state, &none, 1))
        return;
    atomic_store(&poller.stop, false);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool ok = pthread_create(&poller.thread, NULL, poller_work, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!ok)
        atomic_store(&poller.state, 0);
    else if (!poller.has_exit)
        poller.has_exit = atexit(at_exit) == 0;
}

static void poller_forget(void)
{
    int runs = 1;
    atomic_compare_exchange_strong(&poller.state, &runs, 0);
    atomic_store(&poller.at, NULL);
}

/* ---- announcing and ending streams ---------------------------------------------------------- */

static void set_name(struct rt_stream *s, const char *name)
{
    if (name != NULL && name[0] != '\0') {
        snprintf(s->name, sizeof s->name, "%s", name);
        atomic_store(&s->epoch, 0); /* forces a new STREAM record */
    }
}

static void open_for_marks(void);
static int make_stream(const struct rt_dev_ops *ops, void *handle, const char *name)
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
    open_for_marks();
    return 0;
}

int rt_dev_stream_made(const struct rt_dev_ops *ops, void *handle, const char *name)
{
    const bool was = is_inside;
    is_inside = true;
    rt_lock(&rt.stream_lock);
    struct rt_stream *s = find(handle);
    int rc = 0;
    if (s != NULL && s->ops == ops)
        set_name(s, name);
    else {
        int live = RT_STREAM_LIVE;
        if (s != NULL) /* another runtime reused the value: the end of this stream was missed */
            atomic_compare_exchange_strong(&s->state, &live, RT_STREAM_LOST);
        rc = make_stream(ops, handle, name);
    }
    rt_unlock(&rt.stream_lock);
    is_inside = was;
    return rc;
}

/* Returns the back end of a stream. A CPU stream is in the table already, with its back end, when
 * it is announced again. */
static const struct rt_dev_ops *ops_of(enum mstx_device_kind kind, const void *handle)
{
    const struct rt_stream *s = kind == MSTX_DEVICE_CPU ? find(handle) : NULL;
    return s != NULL && s->ops->kind == kind ? s->ops : back_ends[kind];
}

API int mstx_stream_made(enum mstx_device_kind kind, void *handle, const char *name)
{
    if (handle == NULL || (unsigned)kind >= MSTX_DEVICE_KINDS)
        return EINVAL;
    const struct rt_dev_ops *ops = ops_of(kind, handle);
    return ops != NULL ? rt_dev_stream_made(ops, handle, name) : ENODEV;
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
    if (stream_claim(s, RT_STREAM_GONE)) { /* no marks on the stream: the poller may not run */
        wait_unused(s);
        stream_close(s);
    }
}

API void mstx_device_reset(enum mstx_device_kind kind, int device)
{
    uint32_t n = stream_count();
    for (uint32_t i = 1; i < n; i++) {
        struct rt_stream *s = stream_at(i);
        if (s == NULL || s->ops->kind != kind || (device >= 0 && s->device != (uint32_t)device))
            continue;
        if (!stream_claim(s, RT_STREAM_LIVE) && !stream_claim(s, RT_STREAM_GONE))
            continue;
        wait_unused(s);
        s->ops->lose(s); /* before LOST is set, since the poller closes a lost stream at once */
        atomic_store(&s->state, RT_STREAM_LOST);
    }
}

/* Reads MSTX_DEVICE (cuda or another): the kind of all handles that were not announced. */
__attribute__((constructor)) static void trust_handles(void)
{
    const char *kind = secure_getenv("MSTX_DEVICE");
    for (size_t i = 0; kind != NULL && i < MSTX_DEVICE_KINDS; i++) {
        if (back_ends[i] != NULL && strcmp(back_ends[i]->name, kind) == 0) {
            atomic_store(&streams.trusted, back_ends[i]);
            open_for_marks();
        }
    }
}

/* Announces an unknown handle in a program whose handles are all of one kind (MSTX_DEVICE). */
RT_COLD static struct rt_stream *find_trusted(void *handle)
{
    const struct rt_dev_ops *ops = atomic_load(&streams.trusted);
    if (ops == NULL || is_inside || mstx_stream_made(ops->kind, handle, NULL) != 0)
        return NULL;
    return find(handle);
}

static void forget_streams(void)
{
    uint32_t n = stream_count();
    for (uint32_t i = 1; i < n; i++) {
        struct rt_stream *s = &streams.memory[i];
        atomic_store(&s->state, RT_STREAM_CLOSED);
        atomic_store(&streams.all[i], NULL);
        if (s->token != NULL) /* its tokens are the parent's */
            munmap(s->token, RT_TOKENS * sizeof *s->token);
        s->token = NULL;
        atomic_store(&s->put, 0);
        s->taken = 0;
    }
    poller_forget();
}

/* ---- marks ------------------------------------------------------------------------------ */

/* Writes a STREAM record, once in a capture. */
RT_COLD static void announce(struct rt_stream *s)
{
    mstx_device_stream(s->handle, s->name, s->device, s->number);
    poller_start();
}

/* Claims an entry of the queue; NULL: the queue is full. */
static struct rt_token *claim_token(struct rt_stream *s, uint64_t *lap)
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

/* Queues an event and its token; false: no device time will come. */
static bool queue_point(struct rt_stream *s, uint64_t id, uint64_t ticks, uint32_t name)
{
    ms_assert(id != 0);
    uint64_t lap;
    struct rt_token *t = claim_token(s, &lap);
    if (t == NULL)
        return false;
    t->id = id;
    t->ticks = ticks;
    t->name = name;
    t->is_command = false;
    atomic_store_explicit(&t->event, NULL, memory_order_relaxed);
    bool ok = s->ops->mark(s, t);
    if (!ok)
        t->id = 0; /* the poller skips the token */
    atomic_store_explicit(&t->turn, 2 * lap + 1, memory_order_release);
    return ok;
}

/* Queues an event unless the stream is being captured. Returns flags for the host record. */
static uint8_t record_point(struct rt_stream *s, uint64_t id, uint64_t ticks, uint32_t name)
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

static uint8_t mark_start(const struct mstx_rec *rec, uint16_t *stream)
{
    void *handle = (void *)(uintptr_t)rec->arg;
    struct rt_stream *s = find(handle);
    *stream = 0;
    if (!atomic_load_explicit(&any_stream, memory_order_relaxed))
        return 0; /* the process is ending */
    if (RT_UNLIKELY(s == NULL))
        s = find_trusted(handle);
    if (s == NULL)
        return 0;
    uint8_t flags = record_point(s, rec->id, rec->ticks, rec->name);
    *stream = flags == 0 ? s->index : 0;
    return flags;
}

static uint8_t mark_end(uint16_t stream, const struct mstx_rec *rec)
{
    struct rt_stream *s = stream_at(stream);
    if (s == NULL || !is_live(s))
        return MSTX_F_NO_DEVICE;
    return record_point(s, rec->id | RT_DEV_END, rec->arg, rec->name);
}

static const struct rt_device_calls calls = {
    .start = mark_start, .end = mark_end, .forget = forget_streams};
static void open_for_marks(void)
{
    atomic_store(&any_stream, true);
    atomic_store_explicit(&rt_device, &calls, memory_order_release);
}

/* ---- commands of the program --------------------------------------------------------------- */

RT_COLD static void announce_commands(struct rt_stream *s)
{
    char name[RT_STREAM_NAME + 16];
    snprintf(name, sizeof name, "%s commands", s->name);
    mstx_device_stream(&s->last_command_ns, name, s->device, s->number);
    poller_start();
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
    struct rt_token *t = s != NULL ? claim_token(s, &lap) : NULL;
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
