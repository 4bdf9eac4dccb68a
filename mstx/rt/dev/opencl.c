/* SPDX-License-Identifier: MIT
 *
 * opencl: command queues of OpenCL.  A mark is a marker command; its time is that of
 * its end, when all that was queued before it has finished.  The queue must have profiling on:
 * under `msprobe run` every queue has.
 *
 * The standard does not define the clock of the profiling counters.  If measurements show that it
 * is a clock of the host (PoCL uses CLOCK_MONOTONIC_RAW), that clock is read directly, accurate to
 * some tens of nanoseconds; else the time at which a marker was queued is compared with the host's
 * clock before and after, accurate to some microseconds.  Both are done on a queue of our own.
 *
 * The library is found at run time, so its few types and numbers are declared here.
 */
#include "mstx/rt/dev/device.h"

#include <dlfcn.h>
#include <stdio.h>

typedef void *cl_object;

enum {
    CL_QUEUE_CONTEXT = 0x1090,
    CL_QUEUE_DEVICE = 0x1091,
    CL_QUEUE_PROPERTIES = 0x1093,
    CL_DEVICE_NAME = 0x102B,
    CL_EVENT_STATUS = 0x11D3,
    CL_PROFILING_QUEUED = 0x1280,
    CL_PROFILING_START = 0x1282,
    CL_PROFILING_END = 0x1283,
    PROFILING = 2, /* bit of the properties */
    CLOCKS = 3,    /* clocks of the host that a device may use */
    TRIES = 8,     /* markers for one comparison */
    DEVICES = 64
};
static const clockid_t host_clock[CLOCKS] = {CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME};

#define OPENCL_CALLS(X)                                                                            \
    X(GetCommandQueueInfo, (cl_object queue, uint32_t what, size_t n, void *to, size_t *size))     \
    X(GetDeviceInfo, (cl_object device, uint32_t what, size_t n, void *to, size_t *size))          \
    X(GetEventInfo, (cl_object event, uint32_t what, size_t n, void *to, size_t *size))            \
    X(GetEventProfilingInfo, (cl_object event, uint32_t what, size_t n, void *to, size_t *size))   \
    X(EnqueueMarkerWithWaitList,                                                                   \
      (cl_object queue, uint32_t n, const cl_object *wait, cl_object *event))                      \
    X(ReleaseEvent, (cl_object event))                                                             \
    X(ReleaseCommandQueue, (cl_object queue))                                                      \
    X(Flush, (cl_object queue))

static struct {
    void *lib;
#define X(name, args) int32_t(*name) args;
    OPENCL_CALLS(X)
#undef X
    cl_object (*CreateCommandQueue)(cl_object, cl_object, uint64_t, int32_t *);
} cl;

/* A device within a context, shared by its queues. */
struct cl_device {
    cl_object device, context, queue; /* queue: ours */
    uint32_t users;
    uint32_t alive;    /* clocks of the host that it may use, one bit each */
    uint32_t compared; /* markers compared so far */
    struct rt_dev_clock clock;
};
static struct cl_device devices[DEVICES];

static bool load(void)
{
    static const char *const names[] = {"libOpenCL.so.1", "libOpenCL.so", NULL};
    if (cl.lib != NULL)
        return true;
    /* A program that has a queue has loaded the library. */
    void *lib = rt_dev_library(names, false);
    if (lib == NULL)
        return false;
#define X(name, args) *(void **)(void *)&cl.name = dlsym(lib, "cl" #name);
    OPENCL_CALLS(X)
#undef X
    *(void **)(void *)&cl.CreateCommandQueue = dlsym(lib, "clCreateCommandQueue");
    bool all = cl.CreateCommandQueue != NULL;
#define X(name, args) all = all && cl.name != NULL;
    OPENCL_CALLS(X)
#undef X
    cl.lib = all ? lib : NULL;
    return all;
}

static uint64_t counter_of(cl_object event, uint32_t which)
{
    uint64_t ns = 0;
    return cl.GetEventProfilingInfo(event, which, sizeof ns, &ns, NULL) == 0 ? ns : 0;
}

/* ---- streams ------------------------------------------------------------------------------ */

static struct cl_device *device_for(cl_object device, cl_object context)
{
    struct cl_device *free_one = NULL;
    for (size_t i = 0; i < DEVICES; i++) {
        struct cl_device *d = &devices[i];
        if (d->users != 0 && d->device == device && d->context == context)
            return d;
        if (d->users == 0 && free_one == NULL)
            free_one = d;
    }
    if (free_one != NULL)
        *free_one = (struct cl_device){.device = device, .context = context, .alive = ~0u};
    return free_one;
}

static void name_it(struct rt_stream *s, cl_object device)
{
    char name[RT_STREAM_NAME - 16] = "";
    if (s->name[0] != '\0')
        return;
    if (cl.GetDeviceInfo(device, CL_DEVICE_NAME, sizeof name - 1, name, NULL) != 0)
        name[0] = '\0'; /* the name is longer than the buffer */
    snprintf(s->name, sizeof s->name, "%s%squeue %u", name, name[0] != '\0' ? " " : "", s->number);
}

static bool ask_queue(cl_object queue, uint32_t what, void *to, size_t n)
{
    return cl.GetCommandQueueInfo(queue, what, n, to, NULL) == 0;
}

static bool cl_open(struct rt_stream *s)
{
    static uint32_t made; /* under the lock of all streams */
    cl_object device = NULL, context = NULL;
    uint64_t properties = 0;
    if (!load() || !ask_queue(s->handle, CL_QUEUE_DEVICE, &device, sizeof device) ||
        !ask_queue(s->handle, CL_QUEUE_CONTEXT, &context, sizeof context) ||
        !ask_queue(s->handle, CL_QUEUE_PROPERTIES, &properties, sizeof properties))
        return false;
    if ((properties & PROFILING) == 0) {
        rt_say(RT_SAY_DEVICE, 0,
               "an OpenCL queue without profiling: its marks have no device time");
        return false;
    }
    struct cl_device *d = device_for(device, context);
    if (d == NULL)
        return false;
    d->users++;
    s->own = d;
    s->device = (uint32_t)(d - devices);
    s->number = made++;
    name_it(s, device);
    return true;
}

/* Drops the entry of a device after mstx_device_reset, which a program may call although OpenCL has
 * no reset; new queues get a new entry. */
static void cl_lose(struct rt_stream *s)
{
    struct cl_device *d = s->own;
    rt_lock(&rt.stream_lock);
    d->context = NULL; /* new queues do not find the entry, and its own queue is not released */
    rt_unlock(&rt.stream_lock);
}

static void cl_close(struct rt_stream *s)
{
    struct cl_device *d = s->own;
    rt_lock(&rt.stream_lock);
    d->users--;
    cl_object queue = d->users == 0 && d->context != NULL ? d->queue : NULL;
    if (d->users == 0)
        d->queue = NULL;
    rt_unlock(&rt.stream_lock);
    if (queue != NULL)
        cl.ReleaseCommandQueue(queue);
}

/* ---- the clock ------------------------------------------------------------------------------ */

struct bracket {
    int64_t before[CLOCKS], after[CLOCKS], device;
};

static void read_clocks(int64_t ns[CLOCKS])
{
    for (int i = 0; i < CLOCKS; i++)
        ns[i] = rt_dev_now(host_clock[i]);
}

/* Returns the time at which a marker was queued; 0 when that is not available within a moment. */
static int64_t queued_at(cl_object event)
{
    const struct timespec pause = {.tv_nsec = 20000};
    for (int i = 0; i < 200; i++) {
        int32_t status = 1;
        if (cl.GetEventInfo(event, CL_EVENT_STATUS, sizeof status, &status, NULL) != 0 ||
            status < 0)
            return 0;
        if (status == 0)
            return (int64_t)counter_of(event, CL_PROFILING_QUEUED);
        nanosleep(&pause, NULL);
    }
    return 0;
}

static bool take_bracket(struct cl_device *d, struct bracket *b)
{
    cl_object event = NULL;
    read_clocks(b->before);
    int32_t rc = cl.EnqueueMarkerWithWaitList(d->queue, 0, NULL, &event);
    read_clocks(b->after);
    if (rc != 0)
        return false;
    cl.Flush(d->queue);
    b->device = queued_at(event);
    cl.ReleaseEvent(event);
    return b->device != 0;
}

/* Excludes the clocks of the host whose readings before and after the marker do not enclose the
 * device's time. */
static void sort_out(struct cl_device *d, const struct bracket *b)
{
    for (int i = 0; i < CLOCKS; i++) {
        if (b->device < b->before[i] || b->device > b->after[i])
            d->alive &= ~(1u << i);
    }
    d->compared++;
}

/* Returns the clock of the host that the device uses, -1: another clock, or not known yet. */
static int counted_clock(const struct cl_device *d)
{
    for (int i = 0; i < CLOCKS && d->compared >= TRIES; i++) {
        if ((d->alive & 1u << i) != 0)
            return i;
    }
    return -1;
}

/* Reads the device's clock by reading the host clock that it uses. */
static struct rt_dev_reading read_directly(clockid_t id)
{
    struct rt_dev_reading best = {.after_ns = INT64_MAX};
    for (int i = 0; i < TRIES; i++) {
        struct rt_dev_reading r = {.before_ns = rt_dev_now(CLOCK_MONOTONIC)};
        r.device_ns = rt_dev_now(id);
        r.after_ns = rt_dev_now(CLOCK_MONOTONIC);
        if (r.after_ns - r.before_ns < best.after_ns - best.before_ns)
            best = r;
    }
    return best;
}

static void compare_clocks(struct cl_device *d)
{
    struct rt_dev_reading best = {.after_ns = INT64_MAX};
    for (int i = 0; i < TRIES; i++) {
        struct bracket b;
        if (!take_bracket(d, &b))
            break;
        sort_out(d, &b);
        if (b.after[0] - b.before[0] < best.after_ns - best.before_ns)
            best = (struct rt_dev_reading){b.before[0], b.device, b.after[0]};
    }
    int same = counted_clock(d);
    if (same >= 0)
        best = read_directly(host_clock[same]);
    if (best.after_ns != INT64_MAX)
        rt_dev_clock_add(&d->clock, &best);
}

static bool cl_enter(struct rt_stream *s, int64_t now_ns)
{
    struct cl_device *d = s->own;
    int32_t rc = 0;
    if (d->queue == NULL)
        d->queue = cl.CreateCommandQueue(d->context, d->device, PROFILING, &rc);
    if (d->queue != NULL && rt_dev_clock_is_due(&d->clock, now_ns))
        compare_clocks(d);
    return d->clock.readings != 0;
}

static void cl_leave(struct rt_stream *s)
{
    (void)s;
}

/* ---- marks ------------------------------------------------------------------------------------ */

static bool cl_mark(struct rt_stream *s, struct rt_token *t)
{
    cl_object event = NULL;
    if (cl.EnqueueMarkerWithWaitList(s->handle, 0, NULL, &event) != 0)
        return false;
    atomic_store_explicit(&t->event, event, memory_order_relaxed);
    return true;
}

static enum rt_dev_answer cl_command(struct rt_stream *s, struct rt_token *t, int64_t *start_ns,
                                     int64_t *end_ns)
{
    struct cl_device *d = s->own;
    cl_object event = atomic_load_explicit(&t->event, memory_order_relaxed);
    int32_t status = -1;
    if (cl.GetEventInfo(event, CL_EVENT_STATUS, sizeof status, &status, NULL) != 0 || status < 0)
        return RT_DEV_LOST;
    if (status != 0)
        return RT_DEV_NOT_YET;
    const int64_t start = (int64_t)counter_of(event, CL_PROFILING_START);
    const int64_t end = (int64_t)counter_of(event, CL_PROFILING_END);
    *start_ns = rt_dev_clock_host(&d->clock, start);
    *end_ns = rt_dev_clock_host(&d->clock, end);
    return end != 0 ? RT_DEV_DONE : RT_DEV_LOST;
}

static enum rt_dev_answer cl_poll(struct rt_stream *s, struct rt_token *t, int64_t *host_ns)
{
    int64_t start;
    return cl_command(s, t, &start, host_ns);
}

static void cl_release(struct rt_stream *s, struct rt_token *t)
{
    (void)s;
    cl.ReleaseEvent(atomic_load_explicit(&t->event, memory_order_relaxed));
}

const struct rt_dev_ops rt_dev_opencl = {
    .kind = MSTX_DEVICE_OPENCL,
    .name = "opencl",
    .open = cl_open,
    .mark = cl_mark,
    .poll = cl_poll,
    .command = cl_command,
    .release = cl_release,
    .enter = cl_enter,
    .leave = cl_leave,
    .lose = cl_lose,
    .close = cl_close,
};
