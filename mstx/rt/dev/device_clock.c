/* SPDX-License-Identifier: MIT
 *
 * device_clock: relation of a device's clock to the host's.  One reading gives the offset,
 * uncertain by half its width; the rate is computed from a reading up to a minute older, so that
 * the noise of both is divided by a long time.
 */
#include "mstx/rt/dev/device.h"

#include <dlfcn.h>
#include <sys/mman.h>

enum { SECOND = 1000000000 };
static const double RATE_MOST = 200e-6; /* a larger difference of the rates is a wrong reading */

bool rt_dev_clock_is_due(const struct rt_dev_clock *c, int64_t now_ns)
{
    static const int64_t pause[] = {0, SECOND / 50, SECOND / 20, SECOND / 5, SECOND / 2};
    size_t n = sizeof pause / sizeof *pause;
    size_t at = (size_t)c->readings < n ? (size_t)c->readings : n;
    return now_ns - c->host_ns >= (at < n ? pause[at] : SECOND);
}

int64_t rt_dev_clock_host(const struct rt_dev_clock *c, int64_t device_ns)
{
    ms_assert(c->readings > 0);
    double since = (double)(device_ns - c->device_ns);
    return c->host_ns + (device_ns - c->device_ns) + (int64_t)(since * (c->rate - 1));
}

static void set_rate(struct rt_dev_clock *c)
{
    double device = (double)(c->device_ns - c->base_device_ns);
    double host = (double)(c->host_ns - c->base_host_ns);
    double rate = device > SECOND / 100.0 ? host / device : 1;
    c->rate = rate > 1 + RATE_MOST || rate < 1 - RATE_MOST ? 1 : rate;
}

/* Replaces the base when the middle reading is half a minute old: the middle becomes the base, the
 * newest becomes the middle. */
static void move_base(struct rt_dev_clock *c)
{
    if (c->host_ns - c->mid_host_ns < (int64_t)30 * SECOND)
        return;
    c->base_device_ns = c->mid_device_ns;
    c->base_host_ns = c->mid_host_ns;
    c->mid_device_ns = c->device_ns;
    c->mid_host_ns = c->host_ns;
}

/* Tells whether a reading is too wide, because it was interrupted, to replace the line, unless the
 * line is old. */
static bool is_poor(const struct rt_dev_clock *c, const struct rt_dev_reading *r)
{
    int64_t width = r->after_ns - r->before_ns;
    return c->readings > 0 && width > 4 * c->width_ns + 1000 &&
           r->after_ns - c->host_ns < (int64_t)10 * SECOND;
}

void rt_dev_clock_add(struct rt_dev_clock *c, const struct rt_dev_reading *r)
{
    ms_assert(r->after_ns >= r->before_ns);
    if (is_poor(c, r))
        return;
    c->host_ns = r->before_ns + (r->after_ns - r->before_ns) / 2;
    c->device_ns = r->device_ns;
    c->width_ns = r->after_ns - r->before_ns;
    if (c->readings++ == 0) {
        c->rate = 1;
        c->base_device_ns = c->mid_device_ns = c->device_ns;
        c->base_host_ns = c->mid_host_ns = c->host_ns;
        return;
    }
    move_base(c);
    set_rate(c);
}

/* Returns a device library; one that is loaded already is preferred, whichever of its names it
 * has. */
void *rt_dev_library(const char *const names[], bool may_load)
{
    for (size_t i = 0; names[i] != NULL; i++) {
        void *lib = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
        if (lib != NULL)
            return lib;
    }
    for (size_t i = 0; may_load && names[i] != NULL; i++) {
        void *lib = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
        if (lib != NULL)
            return lib;
    }
    return NULL;
}

void *rt_dev_map(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

int64_t rt_dev_now(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
