/* SPDX-License-Identifier: MIT
 *
 * ticks: the tick counter and its calibration.  The hot path stores the raw counter; once a second
 * the helper stores CLOCK_MONOTONIC and CLOCK_REALTIME read at the same moment, and readers convert
 * between those points.
 */
#include "mstx/rt/ticks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

uint32_t rt_clock_kind = MSTX_CLOCK_MONOTONIC;

/* For tests: this process simulates a host whose clocks have an offset and a drift. */
unsigned rt_clock_fake_host;
static struct {
    int64_t offset_ns;
    double rate; /* ns per ns */
} fake;

/* "HOST:OFFSET_NS:PPM", HOST from 1. */
static void read_fake(const char *text)
{
    char *end;
    if (text == NULL)
        return;
    rt_clock_fake_host = (unsigned)strtoul(text, &end, 10);
    fake.offset_ns = *end == ':' ? strtoll(end + 1, &end, 10) : 0;
    fake.rate = *end == ':' ? (double)strtoll(end + 1, &end, 10) * 1e-6 : 0;
}

static int64_t read_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    const int64_t ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    if (RT_LIKELY(rt_clock_fake_host == 0))
        return ns;
    /* the drift counts from the boot, also for the wall clock */
    clock_gettime(CLOCK_MONOTONIC, &t);
    return ns + fake.offset_ns +
           (int64_t)(fake.rate * ((double)t.tv_sec * 1e9 + (double)t.tv_nsec));
}

int64_t rt_clock_steady(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

uint64_t rt_clock_slow(void)
{
    return (uint64_t)read_ns(CLOCK_MONOTONIC);
}

#if defined(__x86_64__)
/* The kernel stops using the counter when the processors disagree about it. */
static bool kernel_trusts_tsc(void)
{
    char name[64] = "";
    int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                  O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return true; /* the file is hidden in some containers: rely on the processor's flag */
    ssize_t n = read(fd, name, sizeof name - 1);
    close(fd);
    return n <= 0 || strncmp(name, "tsc", 3) == 0 || strncmp(name, "kvm-clock", 9) == 0 ||
           strncmp(name, "hyperv", 6) == 0;
}

static bool counter_is_steady(void)
{
    unsigned a, b, c, d = 0;
    enum { INVARIANT = 1u << 8 };
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & INVARIANT) && kernel_trusts_tsc();
}
enum { COUNTER = MSTX_CLOCK_TSC };
#elif defined(__aarch64__)
static bool counter_is_steady(void)
{
    return true; /* by definition of the architecture */
}
enum { COUNTER = MSTX_CLOCK_CNTVCT };
#else
static bool counter_is_steady(void)
{
    return false;
}
enum { COUNTER = MSTX_CLOCK_MONOTONIC };
#endif

void rt_clock_choose(const char *wanted)
{
    bool fallback = wanted != NULL && strcmp(wanted, "monotonic") == 0;
    read_fake(secure_getenv("MSTX_CLOCK_FAKE"));
    rt_clock_kind = !fallback && counter_is_steady() ? COUNTER : MSTX_CLOCK_MONOTONIC;
}

/* Takes the narrowest of eight readings, since an interrupt in between widens a reading. */
void rt_clock_calibrate(struct mstx_calib *best)
{
    best->width = UINT64_MAX;
    for (int i = 0; i < 8; i++) {
        uint64_t before = rt_ticks();
        int64_t mono = read_ns(CLOCK_MONOTONIC);
        int64_t real = read_ns(CLOCK_REALTIME);
        uint64_t width = rt_ticks() - before;
        if (width < best->width)
            *best = (struct mstx_calib){before + width / 2, mono, real, width};
    }
}
