/* SPDX-License-Identifier: MIT
 *
 * cpu_stream: streams that are CPU threads.  A program with worker threads of its own can mark on
 * them, and tests of device times need no hardware: a stream can be made slow and lossy, and its
 * clock can be given an offset and a drift.
 *
 *   MSTX_CPU_DELAY_NS   each work item takes that much longer
 *   MSTX_CPU_SLOW       ... and longer by that multiple of its own time
 *   MSTX_CPU_LOSS       every n-th mark never gets its time
 *   MSTX_CPU_OFFSET_NS  the clock of the device is ahead of the host's
 *   MSTX_CPU_DRIFT_PPM  ... and runs faster
 */
#include "mstx/rt/dev/device.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define API __attribute__((visibility("default")))

enum {
    WORK = 4096,          /* work items that may be queued */
    MARKS = RT_TOKENS,    /* and marks among them */
    QUEUE = WORK + MARKS, /* both are items of one queue */
    LOST = 1,             /* in a token's event: no time will come; above: the time */
};

struct item {
    void (*fn)(void *);
    void *arg;
    struct rt_token *mark; /* token of a mark; then fn is not used */
};

struct cpu_stream {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more, less;
    uint64_t put, taken, done, work; /* work: queued items other than marks */
    bool stop;
    atomic_bool is_capturing;
    atomic_bool is_reset; /* the stream was reset: tokens must not be used */
    uint32_t number;
    uint64_t marks;
    struct rt_dev_clock clock; /* used by the poller */
    struct item item[QUEUE];
};

static struct {
    int64_t delay_ns, offset_ns, loss;
    double slow, drift;
    int64_t origin_ns;
    _Atomic uint32_t made;
    pthread_once_t once;
} cpu = {.once = PTHREAD_ONCE_INIT};

static int64_t number_of(const char *name)
{
    const char *v = secure_getenv(name);
    return v != NULL ? (int64_t)strtoll(v, NULL, 10) : 0;
}

static void read_faults(void)
{
    cpu.delay_ns = number_of("MSTX_CPU_DELAY_NS");
    cpu.offset_ns = number_of("MSTX_CPU_OFFSET_NS");
    cpu.loss = number_of("MSTX_CPU_LOSS");
    cpu.slow = (double)number_of("MSTX_CPU_SLOW");
    cpu.drift = (double)number_of("MSTX_CPU_DRIFT_PPM") / 1e6;
    cpu.origin_ns = rt_dev_now(CLOCK_MONOTONIC);
}

/* Returns the simulated clock of this device. */
static int64_t device_now(void)
{
    int64_t now = rt_dev_now(CLOCK_MONOTONIC);
    return now + cpu.offset_ns + (int64_t)((double)(now - cpu.origin_ns) * cpu.drift);
}

/* Tells whether the simulated clock is the host's, so that no comparison is needed. */
static bool has_host_clock(void)
{
    return cpu.offset_ns == 0 && cpu.drift == 0;
}

/* Takes the narrowest of a few readings, since any may be interrupted. */
static struct rt_dev_reading read_clock(void)
{
    enum { TRIES = 8 };
    struct rt_dev_reading best = {.after_ns = INT64_MAX};
    for (int i = 0; i < TRIES; i++) {
        struct rt_dev_reading r = {.before_ns = rt_dev_now(CLOCK_MONOTONIC)};
        r.device_ns = device_now();
        r.after_ns = rt_dev_now(CLOCK_MONOTONIC);
        if (r.after_ns - r.before_ns < best.after_ns - best.before_ns)
            best = r;
    }
    return best;
}

/* ---- the worker ------------------------------------------------------------------------- */

static void sleep_ns(int64_t ns)
{
    struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    while (ns > 0 && nanosleep(&t, &t) != 0)
        ;
}

static void stamp_token(struct cpu_stream *c, struct rt_token *t)
{
    bool is_lost = cpu.loss > 0 && ++c->marks % (uint64_t)cpu.loss == 0;
    uintptr_t v = is_lost ? LOST : (uintptr_t)device_now();
    atomic_store_explicit(&t->event, (void *)v, memory_order_release);
}

static void carry_out(struct cpu_stream *c, const struct item *it)
{
    if (it->mark != NULL) {
        if (!atomic_load(&c->is_reset))
            stamp_token(c, it->mark);
        return;
    }
    int64_t before = rt_dev_now(CLOCK_MONOTONIC);
    it->fn(it->arg);
    int64_t took = rt_dev_now(CLOCK_MONOTONIC) - before;
    sleep_ns(cpu.delay_ns + (int64_t)((double)took * cpu.slow));
}

static void *run_stream(void *arg)
{
    struct cpu_stream *c = arg;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (c->put == c->taken && !c->stop)
            pthread_cond_wait(&c->more, &c->lock);
        if (c->put == c->taken)
            break;
        struct item it = c->item[c->taken++ % QUEUE];
        c->work -= it.mark == NULL;
        pthread_mutex_unlock(&c->lock);
        carry_out(c, &it);
        pthread_mutex_lock(&c->lock);
        c->done++;
        pthread_cond_broadcast(&c->less);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* Caller holds the lock. */
static void enqueue_item(struct cpu_stream *c, const struct item *it)
{
    c->item[c->put++ % QUEUE] = *it;
    c->work += it->mark == NULL;
    pthread_cond_signal(&c->more);
}

static const struct rt_dev_ops cpu_ops;

/* ---- what programs call ------------------------------------------------------------------ */

static bool start(struct cpu_stream *c)
{
    sigset_t all, old;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->more, NULL);
    pthread_cond_init(&c->less, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&c->thread, NULL, run_stream, c);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc == 0;
}

API void *mstx_cpu_stream_new(const char *name)
{
    pthread_once(&cpu.once, read_faults);
    struct cpu_stream *c = rt_dev_map(sizeof *c);
    if (c == NULL)
        return NULL;
    c->number = atomic_fetch_add(&cpu.made, 1);
    if (!start(c)) {
        munmap(c, sizeof *c);
        return NULL;
    }
    rt_dev_stream_made(&cpu_ops, c, name);
    return c;
}

API int mstx_cpu_stream_run(void *stream, void (*fn)(void *), void *arg)
{
    struct cpu_stream *c = stream;
    if (c == NULL || fn == NULL)
        return EINVAL;
    pthread_mutex_lock(&c->lock);
    while (c->work >= WORK)
        pthread_cond_wait(&c->less, &c->lock);
    enqueue_item(c, &(struct item){.fn = fn, .arg = arg});
    pthread_mutex_unlock(&c->lock);
    return 0;
}

API int mstx_cpu_stream_sync(void *stream)
{
    struct cpu_stream *c = stream;
    if (c == NULL)
        return EINVAL;
    pthread_mutex_lock(&c->lock);
    uint64_t until = c->put;
    while (c->done < until)
        pthread_cond_wait(&c->less, &c->lock);
    pthread_mutex_unlock(&c->lock);
    return 0;
}

API void mstx_cpu_stream_capture(void *stream, int on)
{
    struct cpu_stream *c = stream;
    if (c != NULL)
        atomic_store(&c->is_capturing, on != 0);
}

/* Frees a stream. The poller may still compare clocks, so the memory is freed when the poller has
 * closed the stream. */
API void mstx_cpu_stream_free(void *stream)
{
    struct cpu_stream *c = stream;
    if (c == NULL)
        return;
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_signal(&c->more);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    mstx_stream_gone(c);
}

/* ---- the back end -------------------------------------------------------------------------- */

static bool cpu_open(struct rt_stream *s)
{
    struct cpu_stream *c = s->handle;
    s->own = c;
    s->number = c->number;
    if (s->name[0] == '\0')
        snprintf(s->name, sizeof s->name, "cpu stream %u", c->number);
    return true;
}

static bool cpu_is_capturing(struct rt_stream *s)
{
    return atomic_load(&((struct cpu_stream *)s->own)->is_capturing);
}

static bool cpu_mark(struct rt_stream *s, struct rt_token *t)
{
    struct cpu_stream *c = s->own;
    pthread_mutex_lock(&c->lock);
    bool has_room = !c->stop && c->put - c->taken < QUEUE - WORK;
    if (has_room)
        enqueue_item(c, &(struct item){.mark = t});
    pthread_mutex_unlock(&c->lock);
    return has_room;
}

static enum rt_dev_answer cpu_poll(struct rt_stream *s, struct rt_token *t, int64_t *host_ns)
{
    struct cpu_stream *c = s->own;
    uintptr_t v = (uintptr_t)atomic_load_explicit(&t->event, memory_order_acquire);
    *host_ns = has_host_clock() ? (int64_t)v : rt_dev_clock_host(&c->clock, (int64_t)v);
    return v == 0 ? RT_DEV_NOT_YET : v == LOST ? RT_DEV_LOST : RT_DEV_DONE;
}

static void cpu_release(struct rt_stream *s, struct rt_token *t)
{
    (void)s;
    (void)t;
}

static void cpu_lose(struct rt_stream *s)
{
    struct cpu_stream *c = s->own;
    atomic_store(&c->is_reset, true);
}

static bool cpu_enter(struct rt_stream *s, int64_t now_ns)
{
    struct cpu_stream *c = s->own;
    if (!has_host_clock() && rt_dev_clock_is_due(&c->clock, now_ns)) {
        const struct rt_dev_reading r = read_clock();
        rt_dev_clock_add(&c->clock, &r);
    }
    return true;
}

static void cpu_leave(struct rt_stream *s)
{
    (void)s;
}

static void cpu_close(struct rt_stream *s)
{
    struct cpu_stream *c = s->own;
    if (!atomic_load(&c->is_reset)) /* else the program still has the stream */
        munmap(c, sizeof *c);
}

static const struct rt_dev_ops cpu_ops = {
    .kind = MSTX_DEVICE_CPU,
    .name = "cpu",
    .open = cpu_open,
    .is_capturing = cpu_is_capturing,
    .mark = cpu_mark,
    .poll = cpu_poll,
    .release = cpu_release,
    .enter = cpu_enter,
    .leave = cpu_leave,
    .lose = cpu_lose,
    .close = cpu_close,
};
