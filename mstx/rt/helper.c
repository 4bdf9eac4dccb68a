/* SPDX-License-Identifier: MIT
 *
 * helper: the one thread the recorder adds to a process.  It sleeps on the bell of the
 * control page, which a ring that needs a segment and `msprobe ctl` both ring, and wakes once
 * a second by itself to read the clocks.  All signals are blocked in it.
 */
#include "mstx/rt/helper.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mstx/rt/domain.h"
#include "mstx/rt/hang_watch.h"
#include "mstx/rt/process_ring.h"
#include "mstx/rt/ring.h"
#include "mstx/rt/segment_file.h"
#include "mstx/rt/socket_use.h"
#include "mstx/rt/string_file.h"
#include "mstx/rt/throttling.h"
#include "probe/base/compat.h"

static struct {
    pthread_t thread;
    bool running;
    _Atomic bool stop;
} helper;

static void sleep_until_rung(uint32_t *bell, uint32_t seen)
{
    const struct timespec second = {.tv_sec = 1};
    syscall(SYS_futex, bell, FUTEX_WAIT, seen, &second, NULL, 0);
}

/* ---- requests of `msprobe ctl` ---------------------------------------------------------- */

void rt_set_recording(bool on, enum mstx_why why)
{
    if (atomic_exchange(&rt.recording, on) == on)
        return;
    if (rt.control != NULL) /* a forked child may read it at any time */
        __atomic_store_n(&rt.control->recording, on, __ATOMIC_RELEASE);
    rt_domain_refresh();
    rt_state_write(why, on);
}

/* Fills in the status, except `recording`, which rt_set_recording writes. */
static void fill_status(struct mstx_control *c)
{
    ms_assert(c == rt.control);
    struct rt_totals t;
    struct rusage u;
    rt_ring_totals(&t);
    c->rings = t.rings;
    c->segments = t.segments;
    c->domains = rt_domain_count();
    c->records = t.records;
    c->dropped = t.dropped;
    c->bytes = t.bytes;
    c->strings = rt_text_count();
    c->open_ranges = t.open_ranges;
    c->faults = getrusage(RUSAGE_SELF, &u) == 0 ? (uint64_t)u.ru_minflt : 0;
}

static int obey_command(uint32_t command, const char *text)
{
    switch (command) {
    case MSTX_CMD_START:
        rt_set_recording(true, MSTX_WHY_START);
        return 0;
    case MSTX_CMD_STOP:
        rt_set_recording(false, MSTX_WHY_STOP);
        return 0;
    case MSTX_CMD_SNAPSHOT:
        rt_clock_tick(); /* gives the snapshot a clock reading of now */
        return rt_file_snapshot(text);
    case MSTX_CMD_STATUS:
        return 0;
    case MSTX_CMD_INCLUDE:
        rt_domain_filter(text, NULL);
        return 0;
    case MSTX_CMD_EXCLUDE:
        rt_domain_filter(NULL, text);
        return 0;
    case MSTX_CMD_FLUSH:
        rt_file_unstage(false);
        return 0;
    default:
        return ENOSYS;
    }
}

/* Carries out one request.  The page is shared with another process, so the request is copied before it
 * is examined. */
static void answer_command(struct mstx_control *c)
{
    uint32_t request = __atomic_load_n(&c->request, __ATOMIC_ACQUIRE);
    if (request == c->done)
        return;
    char text[sizeof c->text];
    memcpy(text, c->text, sizeof text);
    text[sizeof text - 1] = '\0';
    int rc = obey_command(c->command, text);
    snprintf(c->answer, sizeof c->answer, "%.1000s", rc == 0 ? rt.target : strerror(rc));
    c->result = (uint32_t)rc;
    fill_status(c);
    __atomic_store_n(&c->done, request, __ATOMIC_RELEASE);
    syscall(SYS_futex, &c->done, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* ---- the thread --------------------------------------------------------------------------- */

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void each_second(void)
{
    rt_clock_tick();
    rt_ring_retry();
    rt_file_unstage(false);
    rt_hang_look();
    rt_sockets_look(false);
    rt_throttling_look();
    fill_status(rt.control);
}

static void *run_helper(void *arg)
{
    (void)arg;
    rt_lock(&rt.proto_lock);
    rt.proto.helper_tid = (uint32_t)ms_gettid();
    rt_unlock(&rt.proto_lock);
    pthread_setname_np(pthread_self(), "mstx");
    int64_t next = now_ns() + 200000000; /* soon, because the rate of the counter is needed */
    while (!atomic_load(&helper.stop)) {
        uint32_t seen = __atomic_load_n(&rt.control->bell, __ATOMIC_ACQUIRE);
        rt_ring_serve();
        answer_command(rt.control);
        if (now_ns() >= next) {
            each_second();
            next = now_ns() + 1000000000;
        }
        if (atomic_load(&helper.stop))
            break;
        sleep_until_rung(&rt.control->bell, seen);
    }
    return NULL;
}

bool rt_helper_start(void)
{
    ms_assert(!helper.running && rt.control != NULL);
    sigset_t all, old;
    sigfillset(&all);
    atomic_store(&helper.stop, false);
    rt_sockets_start();
    rt_throttling_start();
    pthread_sigmask(SIG_SETMASK, &all, &old);
    helper.running = pthread_create(&helper.thread, NULL, run_helper, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return helper.running; /* without a helper threads make their segments themselves */
}

void rt_helper_stop(void)
{
    if (!helper.running)
        return;
    atomic_store(&helper.stop, true);
    rt_bell_ring();
    pthread_join(helper.thread, NULL);
    helper.running = false;
}

void rt_helper_forget(void)
{
    rt_throttling_end();
    helper.running = false;
}
