/* SPDX-License-Identifier: MIT
 *
 * thread_use: see the header.
 */
#include "mstx/rt/thread_use.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "probe/base/held.h"

/* At most 2500 samples of 1.6 us in a second: 0.4 % of a thread that calls all the time. */
enum { SAMPLES_A_SECOND = 2500 };
/* Highest tick rate assumed until the rate is known. */
static const uint64_t FASTEST_HZ = 4000000000;

__thread uint64_t rt_use_due __attribute__((tls_model("initial-exec")));

/* The scheduler's figures of this thread (/proc/thread-self/schedstat), kept open. */
static __thread struct {
    struct ms_held file;
    bool is_known; /* the file has been opened, or cannot be */
} sched __attribute__((tls_model("initial-exec")));

/* Threads of this process that hold the file; a program of very many threads needs its descriptors. */
enum { HOLDERS_MOST = 64 };
static atomic_int holders;

static void release(void)
{
    if (sched.file.fd >= 0)
        atomic_fetch_sub_explicit(&holders, 1, memory_order_relaxed);
    ms_hold_end(&sched.file);
}

static void open_sched(void)
{
    sched.is_known = true;
    sched.file = MS_HELD_NONE;
    if (atomic_fetch_add_explicit(&holders, 1, memory_order_relaxed) < HOLDERS_MOST)
        sched.file = ms_hold(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
    if (sched.file.fd < 0)
        atomic_fetch_sub_explicit(&holders, 1, memory_order_relaxed);
}

void rt_use_end(void)
{
    if (sched.is_known)
        release();
    sched.is_known = false;
    rt_use_due = 0;
}

/* Reads a whole number and the blank behind it; returns NULL when there is none. */
static const char *take_number(const char *p, uint64_t *v)
{
    const char *from = p;
    for (*v = 0; *p >= '0' && *p <= '9'; p++)
        *v = *v * 10 + (uint64_t)(*p - '0');
    return p != from && (*p == ' ' || *p == '\n') ? p + 1 : NULL;
}

/* Returns the time for which the thread was ready to run and had no CPU, ns: the second of the three
 * numbers of schedstat. */
static uint64_t run_delay(void)
{
    char text[96];
    uint64_t ran, waited, slices;
    if (!sched.is_known)
        open_sched();
    const ssize_t n = ms_is_held(&sched.file) ? pread(sched.file.fd, text, sizeof text - 1, 0) : -1;
    text[n > 0 ? n : 0] = '\0';
    const char *p = take_number(text, &ran);
    p = p != NULL ? take_number(p, &waited) : NULL;
    if (p != NULL && take_number(p, &slices) != NULL)
        return waited;
    release(); /* the program has closed the file */
    return MSTX_USE_UNKNOWN;
}

static uint64_t cpu_ns(void)
{
    struct timespec t;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0
               ? (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec
               : MSTX_USE_UNKNOWN;
}

static uint32_t blocks_written(void)
{
    struct rusage u;
    return getrusage(RUSAGE_THREAD, &u) == 0 ? (uint32_t)u.ru_oublock : 0;
}

uint64_t rt_use_ticks_between(void)
{
    const uint64_t known =
        rt_clock_kind == MSTX_CLOCK_MONOTONIC ? 1000000000 : atomic_load(&rt.tick_hz);
    return (known != 0 ? known : FASTEST_HZ) / SAMPLES_A_SECOND;
}

struct mstx_rec rt_use_read(void)
{
    const int error = errno; /* of the program, which may look at it after a call of MPI */
    const struct mstx_rec rec = {.ticks = rt_ticks(),
                                 .id = cpu_ns(),
                                 .name = blocks_written(),
                                 .type = MSTX_REC_USE,
                                 .arg = run_delay()};
    rt_use_due = rec.ticks + rt_use_ticks_between();
    errno = error;
    return rec;
}
