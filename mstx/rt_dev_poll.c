/* SPDX-License-Identifier: MIT
 *
 * rt_dev_poll: the thread that asks the devices.  For every stream it takes tokens in the order
 * in which they were queued and stops at the first that was not reached yet; it never waits
 * for a device, it comes back.  While tokens wait it looks once a millisecond, else less often:
 * marks need not wake it.
 *
 * At exit it is ended by atexit, that is before the device runtimes, which the program had
 * loaded earlier, are taken down; the rest is asked for a moment longer and then counted lost.
 */
#include "mstx/rt_device.h"
#include "mstx/rt_hook.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

enum {
    AT_ONCE = 4096,        /* tokens of one stream in a row */
    BUSY_NS = 1000000,     /* between two rounds while tokens wait */
    IDLE_NS = 20000000,    /* ... and while none does */
    LINGER_NS = 300000000, /* at exit: longest without any progress */
};

static struct {
    pthread_t thread;
    _Atomic int state; /* 0 none, 1 runs, 2 ended for good */
    _Atomic bool stop;
    bool has_exit;
    const struct rt_stream *_Atomic at; /* touched just now */
} poller;

int64_t rt_dev_now(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- one stream ------------------------------------------------------------------------ */

/* The oldest token, NULL when none is complete. */
static struct rt_token *oldest(struct rt_stream *s)
{
    struct rt_token *t = &s->token[s->taken % RT_TOKENS];
    uint64_t full = 2 * (s->taken / RT_TOKENS) + 1;
    return atomic_load_explicit(&t->turn, memory_order_acquire) == full ? t : NULL;
}

static void let_go(struct rt_stream *s, struct rt_token *t)
{
    atomic_store_explicit(&t->turn, 2 * (s->taken / RT_TOKENS) + 2, memory_order_release);
    s->taken++;
}

static void done(struct rt_stream *s, struct rt_token *t, int64_t ns, bool is_lost)
{
    if (!is_lost && ns < s->last_ns)
        ns = s->last_ns; /* the comparison of clocks moved by less than its uncertainty */
    if (!is_lost)
        s->last_ns = ns;
    mstx_device_time(t->id & ~RT_DEV_END, t->ticks, (t->id & RT_DEV_END) != 0, is_lost ? 0 : ns);
    let_go(s, t);
}

static bool ask_command(struct rt_stream *s, struct rt_token *t)
{
    const int64_t noise = 1000; /* of comparing clocks: what follows does not start before */
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

/* false: the device has not come so far. */
static bool ask(struct rt_stream *s, struct rt_token *t)
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
    done(s, t, ns, answer == RT_DEV_LOST);
    return true;
}

static void lose_all(struct rt_stream *s)
{
    for (struct rt_token *t = oldest(s); t != NULL; t = oldest(s)) {
        if (t->id == 0)
            let_go(s, t);
        else
            done(s, t, 0, true);
    }
}

static size_t waiting(const struct rt_stream *s)
{
    return (size_t)(atomic_load_explicit(&s->put, memory_order_relaxed) - s->taken);
}

/* The same token is the oldest for too long. */
static void look_for_hang(struct rt_stream *s)
{
    const struct rt_token *t = oldest(s);
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

/* How many tokens it took; adds to *left how many still wait. */
static size_t poll_stream(struct rt_stream *s, int64_t now_ns, size_t *left)
{
    size_t taken = 0;
    int state = atomic_load(&s->state);
    if (state == RT_STREAM_CLOSED)
        return 0;
    if (state == RT_STREAM_LOST)
        lose_all(s);
    else if ((waiting(s) != 0 || state == RT_STREAM_LIVE) && s->ops->enter(s, now_ns)) {
        struct rt_token *t = oldest(s);
        while (t != NULL && taken < AT_ONCE && ask(s, t)) {
            taken++;
            t = oldest(s);
        }
        s->ops->leave(s);
        look_for_hang(s);
    }
    *left += waiting(s);
    if (waiting(s) == 0 && state != RT_STREAM_LIVE && rt_dev_claim(s, state))
        rt_dev_unmake(s);
    return taken;
}

/* Ask once for every stream. *left: tokens that still wait. */
static size_t poll_all(size_t *left)
{
    size_t taken = 0;
    uint32_t n = rt_dev_streams();
    *left = 0;
    for (uint32_t i = 1; i < n; i++) {
        struct rt_stream *s = rt_dev_stream(i);
        if (s == NULL)
            continue;
        atomic_store(&poller.at, s);
        taken += poll_stream(s, rt_dev_now(CLOCK_MONOTONIC), left);
        atomic_store(&poller.at, NULL);
    }
    return taken;
}

void rt_dev_wait_unused(const struct rt_stream *s)
{
    if (atomic_load(&poller.state) == 1 && pthread_equal(pthread_self(), poller.thread))
        return;
    while (atomic_load(&poller.at) == s)
        sched_yield();
}

/* ---- the thread -------------------------------------------------------------------------- */

static void *work(void *arg)
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
    uint32_t n = rt_dev_streams();
    for (uint32_t i = 1; i < n; i++) {
        struct rt_stream *s = rt_dev_stream(i);
        if (s != NULL)
            lose_all(s);
    }
}

static void at_exit(void)
{
    int runs = 1;
    atomic_store(&rt_dev_any, false);
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

void rt_dev_poller_start(void)
{
    sigset_t all, old;
    int none = 0;
    if (!atomic_compare_exchange_strong(&poller.state, &none, 1))
        return;
    atomic_store(&poller.stop, false);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool ok = pthread_create(&poller.thread, NULL, work, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!ok)
        atomic_store(&poller.state, 0);
    else if (!poller.has_exit)
        poller.has_exit = atexit(at_exit) == 0;
}

void rt_dev_poller_forget(void)
{
    int runs = 1;
    atomic_compare_exchange_strong(&poller.state, &runs, 0);
    atomic_store(&poller.at, NULL);
}
