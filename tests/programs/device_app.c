/* SPDX-License-Identifier: MIT
 *
 * device_app: a program that marks on streams.  The first argument says what it does; what it
 * prints, the test compares with the capture.
 */
#include "mstx/ms_tools_ext.h"
#include "mstx/mstx_device.h"
#include "tests/support/settle.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t now(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- streams of the processor --------------------------------------------------------- */

static int64_t began, ended;
static void spin(void *arg)
{
    began = now(CLOCK_MONOTONIC);
    while (now(CLOCK_MONOTONIC) - began < (intptr_t)arg)
        continue;
    ended = now(CLOCK_MONOTONIC);
}

/* Each range has a piece of work of 200 us between its ends; print when that really ran. */
static int do_cpu(long n)
{
    void *s = mstx_cpu_stream_new("worker");
    for (long i = 0; i < n; i++) {
        mstxRangeId id = mstxRangeStartA("work", s);
        mstx_cpu_stream_run(s, spin, (void *)(intptr_t)200000);
        mstxRangeEnd(id);
        mstx_cpu_stream_sync(s);
        printf("%lld %lld\n", (long long)began, (long long)ended);
    }
    mstx_cpu_stream_free(s);
    return 0;
}

static void make_marks(void *s, long n)
{
    for (long i = 0; i < n; i++)
        mstxMarkA("tick", s);
}

static int do_marks(long n)
{
    void *s = mstx_cpu_stream_new("worker");
    make_marks(s, n);
    mstx_cpu_stream_sync(s);
    return 0;
}

static void wait_for(void *flag)
{
    while (!atomic_load((atomic_bool *)flag))
        usleep(1000);
}

/* More marks than can wait, behind work that does not end before them. */
static int do_flood(long n)
{
    static atomic_bool all_made;
    void *s = mstx_cpu_stream_new("flooded");
    mstx_cpu_stream_run(s, wait_for, &all_made);
    make_marks(s, n);
    atomic_store(&all_made, true);
    mstx_cpu_stream_sync(s);
    return 0;
}

static void *mark_many(void *s)
{
    for (int i = 0; i < 5000; i++) {
        mstxRangeId id = mstxRangeStartA("shared", s);
        mstxRangeEnd(id);
    }
    return NULL;
}

static int do_threads(void)
{
    pthread_t t[4];
    void *s = mstx_cpu_stream_new("shared");
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, mark_many, s);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    return 0;
}

static int do_capture(void)
{
    void *s = mstx_cpu_stream_new(NULL);
    mstxMarkA("before", s);
    mstx_cpu_stream_capture(s, 1);
    mstxMarkA("captured", s);
    mstx_cpu_stream_capture(s, 0);
    mstxMarkA("after", s);
    return 0;
}

/* A stream that is destroyed with marks pending, and another that may get the same handle. */
static int do_destroy(long n)
{
    for (long i = 0; i < n; i++) {
        void *s = mstx_cpu_stream_new("short");
        mstx_cpu_stream_run(s, spin, (void *)(intptr_t)1000000);
        mstxMarkA("pending", s);
        mstx_cpu_stream_free(s);
        mstxMarkA("too late", s);
    }
    return 0;
}

static int do_reset(void)
{
    void *s = mstx_cpu_stream_new("reset");
    mstx_cpu_stream_run(s, spin, (void *)(intptr_t)50000000);
    for (int i = 0; i < 10; i++)
        mstxMarkA("lost", s);
    mstx_device_reset(MSTX_DEVICE_CPU, -1);
    mstxMarkA("on no stream", s);
    mstx_cpu_stream_sync(s);
    mstx_stream_made(MSTX_DEVICE_CPU, s, "again");
    return 0;
}

/* Handles that nobody told of must not be looked into: these would crash. */
static int do_foreign(void)
{
    mstxMarkA("nobody's", (void *)(uintptr_t)0x1234);
    mstxRangeEnd(mstxRangeStartA("nobody's", (void *)(uintptr_t)-8));
    return mstx_stream_made(MSTX_DEVICE_CUDA, NULL, "x") == 0;
}

static int do_fork(void)
{
    void *s = mstx_cpu_stream_new("parent's");
    mstxMarkA("parent", s);
    mstx_cpu_stream_sync(s);
    settle();
    pid_t pid = fork();
    if (pid == 0) {
        mstxMarkA("child", s);
        void *own = mstx_cpu_stream_new("child's");
        mstxMarkA("child's own", own);
        mstx_cpu_stream_sync(own);
        exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    mstxMarkA("parent", s);
    return status;
}

/* ---- OpenCL ----------------------------------------------------------------------------- */

typedef void *obj;
enum { PROFILING = 2, OUT_OF_ORDER = 1, QUEUED = 0x1280, START = 0x1282, END = 0x1283 };
static int (*GetPlatformIDs)(unsigned, obj *, unsigned *);
static int (*GetDeviceIDs)(obj, uint64_t, unsigned, obj *, unsigned *);
static obj (*CreateContext)(const void *, unsigned, const obj *, void *, void *, int *);
static obj (*CreateCommandQueue)(obj, obj, uint64_t, int *);
static obj (*CreateBuffer)(obj, uint64_t, size_t, void *, int *);
static int (*EnqueueFillBuffer)(obj, obj, const void *, size_t, size_t, size_t, unsigned,
                                const obj *, obj *);
static int (*Finish)(obj);
static int (*GetEventProfilingInfo)(obj, unsigned, size_t, void *, size_t *);
static int (*ReleaseCommandQueue)(obj);

static int load(void)
{
    void *lib = dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_GLOBAL);
    const struct {
        void *to;
        const char *name;
    } all[] = {{&GetPlatformIDs, "clGetPlatformIDs"},
               {&GetDeviceIDs, "clGetDeviceIDs"},
               {&CreateContext, "clCreateContext"},
               {&CreateCommandQueue, "clCreateCommandQueue"},
               {&CreateBuffer, "clCreateBuffer"},
               {&EnqueueFillBuffer, "clEnqueueFillBuffer"},
               {&Finish, "clFinish"},
               {&GetEventProfilingInfo, "clGetEventProfilingInfo"},
               {&ReleaseCommandQueue, "clReleaseCommandQueue"}};
    for (size_t i = 0; lib != NULL && i < sizeof all / sizeof *all; i++)
        *(void **)all[i].to = dlsym(RTLD_DEFAULT, all[i].name);
    return lib != NULL;
}

/* A queue, or status 77 when there is no device. */
static obj make_queue(uint64_t properties, obj *context)
{
    obj platform, device, queue;
    int rc = 0;
    if (!load() || GetPlatformIDs(1, &platform, NULL) != 0 ||
        GetDeviceIDs(platform, 0xFFFFFFFF, 1, &device, NULL) != 0)
        exit(77);
    *context = CreateContext(NULL, 1, &device, NULL, NULL, &rc);
    queue = CreateCommandQueue(*context, device, properties, &rc);
    if (queue == NULL)
        exit(77);
    return queue;
}

/* Ranges around pieces of work; print the counters of each, by CLOCK_MONOTONIC as far as the
 * device counts CLOCK_MONOTONIC_RAW. */
static int do_opencl(long n, bool told)
{
    obj context, queue = make_queue(told ? PROFILING : 0, &context), *event;
    obj buffer = CreateBuffer(context, 1, 1 << 20, NULL, NULL);
    event = calloc((size_t)n, sizeof *event);
    if (told)
        mstx_stream_made(MSTX_DEVICE_OPENCL, queue, NULL);
    for (long i = 0; i < n; i++) {
        char zero = 0;
        mstxRangeId id = mstxRangeStartA("fill", queue);
        EnqueueFillBuffer(queue, buffer, &zero, 1, 0, 1 << 20, 0, NULL, &event[i]);
        mstxRangeEnd(id);
    }
    Finish(queue);
    int64_t best = INT64_MAX, shift = 0;
    for (int i = 0; i < 100; i++) {
        int64_t a = now(CLOCK_MONOTONIC), raw = now(CLOCK_MONOTONIC_RAW), b = now(CLOCK_MONOTONIC);
        if (b - a < best) {
            best = b - a;
            shift = a + (b - a) / 2 - raw;
        }
    }
    for (long i = 0; i < n; i++) {
        uint64_t t[2] = {0};
        GetEventProfilingInfo(event[i], START, 8, &t[0], NULL);
        GetEventProfilingInfo(event[i], END, 8, &t[1], NULL);
        printf("%lld %lld\n", (long long)t[0] + (long long)shift,
               (long long)t[1] + (long long)shift);
    }
    ReleaseCommandQueue(queue);
    return 0;
}

static int do_opencl_marks(long n)
{
    obj context, queue = make_queue(PROFILING, &context);
    mstx_stream_made(MSTX_DEVICE_OPENCL, queue, "the queue");
    for (long i = 0; i < n; i++)
        mstxMarkA("tick", queue);
    Finish(queue);
    return 0;
}

/* The queue goes while its marks are pending. */
static int do_opencl_release(void)
{
    obj context, queue = make_queue(PROFILING, &context);
    mstx_stream_made(MSTX_DEVICE_OPENCL, queue, NULL);
    for (int i = 0; i < 100; i++)
        mstxMarkA("tick", queue);
    mstx_stream_gone(queue);
    ReleaseCommandQueue(queue);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    long n = argc > 2 ? strtol(argv[2], NULL, 10) : 10;
    const struct {
        const char *name;
        int (*with)(long);
        int (*plain)(void);
    } all[] = {{"cpu", do_cpu, NULL},
               {"marks", do_marks, NULL},
               {"flood", do_flood, NULL},
               {"threads", NULL, do_threads},
               {"capture", NULL, do_capture},
               {"destroy", do_destroy, NULL},
               {"reset", NULL, do_reset},
               {"foreign", NULL, do_foreign},
               {"fork", NULL, do_fork},
               {"opencl-marks", do_opencl_marks, NULL},
               {"opencl-release", NULL, do_opencl_release}};
    if (strcmp(what, "opencl") == 0)
        return do_opencl(n, true);
    if (strcmp(what, "opencl-hooked") == 0)
        return do_opencl(n, false);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(all[i].name, what) == 0)
            return all[i].with != NULL ? all[i].with(n) : all[i].plain();
    }
    return 2;
}
