/* SPDX-License-Identifier: MIT
 *
 * hook_opencl: command queues of OpenCL and what a program puts into them.
 *
 * Queues are made with profiling, without which they tell no times; should that be refused, as the
 * program wanted them.  A command is a range of the domain "opencl": on the host as long as the call
 * takes, on the device from start to end of the command, which the event says that the program asks
 * for, or else one of ours.
 */
#include "mstx/hook_ccl.h"
#include "mstx/rt_hook.h"

/* ---- queues ---------------------------------------------------------------------------------- */

enum {
    CL_FAILED = -5, /* out of resources */
    CL_PROPERTIES = 0x1093,
    CL_REFERENCES = 0x1092,
    CL_PROFILING = 2,
    CL_KERNEL_NAME = 0x1190,
    CL_LIST = 16, /* properties of one queue that are understood */
    NAME = 128,
};

static const char *const opencl[] = {"libOpenCL.so", NULL};

static void *keep_error(int32_t *error)
{
    if (error != NULL)
        *error = CL_FAILED;
    return NULL;
}

static void *told(void *queue)
{
    if (queue != NULL)
        mstx_stream_made(MSTX_DEVICE_OPENCL, queue, NULL);
    return queue;
}

HOOK_API void *clCreateCommandQueue(void *context, void *device, uint64_t properties,
                                    int32_t *error);
HOOK_API void *clCreateCommandQueue(void *context, void *device, uint64_t properties,
                                    int32_t *error)
{
    static hook_slot slot;
    void *(*real)(void *, void *, uint64_t, int32_t *);
    *(void **)(void *)&real = hook_real(&slot, "clCreateCommandQueue", opencl);
    if (real == NULL)
        return keep_error(error);
    void *queue = real(context, device, properties | CL_PROFILING, error);
    if (queue == NULL && (properties & CL_PROFILING) == 0)
        return real(context, device, properties, error);
    return told(queue);
}

/* A copy of the list of pairs with profiling in it; false: longer than is understood. */
static bool with_profiling(const uint64_t *list, uint64_t out[CL_LIST + 3])
{
    size_t n = 0;
    bool has = false;
    for (; list != NULL && list[n] != 0; n += 2) {
        if (n >= CL_LIST)
            return false;
        has |= list[n] == CL_PROPERTIES;
        out[n] = list[n];
        out[n + 1] = list[n] == CL_PROPERTIES ? list[n + 1] | CL_PROFILING : list[n + 1];
    }
    if (!has) {
        out[n++] = CL_PROPERTIES;
        out[n++] = CL_PROFILING;
    }
    out[n] = 0;
    return true;
}

HOOK_API void *clCreateCommandQueueWithProperties(void *context, void *device, const uint64_t *list,
                                                  int32_t *error);
HOOK_API void *clCreateCommandQueueWithProperties(void *context, void *device, const uint64_t *list,
                                                  int32_t *error)
{
    static hook_slot slot;
    uint64_t more[CL_LIST + 3];
    void *(*real)(void *, void *, const uint64_t *, int32_t *);
    *(void **)(void *)&real = hook_real(&slot, "clCreateCommandQueueWithProperties", opencl);
    if (real == NULL)
        return keep_error(error);
    void *queue = with_profiling(list, more) ? real(context, device, more, error) : NULL;
    return queue != NULL ? told(queue) : real(context, device, list, error);
}

/* The last reference goes: its marks are still waited for, their events live on their own. */
HOOK_API int32_t clReleaseCommandQueue(void *queue);
HOOK_API int32_t clReleaseCommandQueue(void *queue)
{
    static hook_slot slot, info_slot;
    int32_t (*real)(void *), (*info)(void *, uint32_t, size_t, void *, size_t *);
    uint32_t references = 0;
    *(void **)(void *)&real = hook_real(&slot, "clReleaseCommandQueue", opencl);
    *(void **)(void *)&info = hook_real(&info_slot, "clGetCommandQueueInfo", opencl);
    if (real == NULL)
        return CL_FAILED;
    if (info != NULL && queue != NULL &&
        info(queue, CL_REFERENCES, sizeof references, &references, NULL) == 0 && references == 1)
        mstx_stream_gone(queue);
    return real(queue);
}

/* ---- commands -------------------------------------------------------------------------------- */

static int32_t event_call(const char *name, hook_slot *slot, void *event)
{
    int32_t (*f)(void *);
    *(void **)(void *)&f = hook_real(slot, name, opencl);
    return f != NULL ? f(event) : CL_FAILED;
}
static void retain(void *event)
{
    static hook_slot slot;
    event_call("clRetainEvent", &slot, event);
}
static void release(void *event)
{
    static hook_slot slot;
    event_call("clReleaseEvent", &slot, event);
}

static const char *kernel_name(void *kernel, const char *otherwise, char out[NAME])
{
    static hook_slot slot;
    int32_t (*info)(void *, uint32_t, size_t, void *, size_t *);
    *(void **)(void *)&info = hook_real(&slot, "clGetKernelInfo", opencl);
    const bool ok = info != NULL && info(kernel, CL_KERNEL_NAME, NAME, out, NULL) == 0;
    return ok ? out : otherwise;
}

struct command {
    uint64_t id, ticks;
    void *own;    /* event, when the program wants none */
    void **event; /* where the call puts one */
};

static struct command begin(void *queue, const char *name, void **wanted)
{
    struct command c = {.event = wanted};
    if (hook_depth == 0)
        c.id = mstx_stream_command(queue, name, &c.ticks);
    return c;
}

static void end(struct command *c, void *queue, int32_t rc)
{
    if (c->id == 0)
        return;
    mstx_device_range_end(c->id);
    void *event = rc == 0 ? *c->event : NULL;
    if (event != NULL && c->own == NULL)
        retain(event);
    if (event != NULL && !mstx_stream_command_queued(queue, c->id, c->ticks, event))
        release(event);
}

#define WAIT uint32_t n, void *const *w, void **e
#define RECT                                                                                       \
    const size_t *o1, const size_t *o2, const size_t *r, size_t p1, size_t p2, size_t p3, size_t p4
#define RECT_ARGS o1, o2, r, p1, p2, p3, p4
#define AREA      const size_t *o, const size_t *r

/* function, parameters, arguments without the event, name of the command */
/* clang-format off */
#define COMMANDS(X) \
    X(clEnqueueNDRangeKernel, (void *q, void *k, uint32_t d, const size_t *o, const size_t *g, const size_t *l, WAIT), (q, k, d, o, g, l, n, w), kernel_name(k, "clEnqueueNDRangeKernel", text)) \
    X(clEnqueueTask, (void *q, void *k, WAIT), (q, k, n, w), kernel_name(k, "clEnqueueTask", text)) \
    X(clEnqueueNativeKernel, (void *q, void (*f)(void *), void *a, size_t z, uint32_t m, const void *const *list, const void **at, WAIT), (q, f, a, z, m, list, at, n, w), "clEnqueueNativeKernel") \
    X(clEnqueueReadBuffer, (void *q, void *b, uint32_t block, size_t o, size_t z, void *p, WAIT), (q, b, block, o, z, p, n, w), "clEnqueueReadBuffer") \
    X(clEnqueueWriteBuffer, (void *q, void *b, uint32_t block, size_t o, size_t z, const void *p, WAIT), (q, b, block, o, z, p, n, w), "clEnqueueWriteBuffer") \
    X(clEnqueueReadBufferRect, (void *q, void *b, uint32_t block, RECT, void *p, WAIT), (q, b, block, RECT_ARGS, p, n, w), "clEnqueueReadBufferRect") \
    X(clEnqueueWriteBufferRect, (void *q, void *b, uint32_t block, RECT, const void *p, WAIT), (q, b, block, RECT_ARGS, p, n, w), "clEnqueueWriteBufferRect") \
    X(clEnqueueCopyBuffer, (void *q, void *s, void *d, size_t so, size_t to, size_t z, WAIT), (q, s, d, so, to, z, n, w), "clEnqueueCopyBuffer") \
    X(clEnqueueCopyBufferRect, (void *q, void *s, void *d, RECT, WAIT), (q, s, d, RECT_ARGS, n, w), "clEnqueueCopyBufferRect") \
    X(clEnqueueFillBuffer, (void *q, void *b, const void *p, size_t pz, size_t o, size_t z, WAIT), (q, b, p, pz, o, z, n, w), "clEnqueueFillBuffer") \
    X(clEnqueueReadImage, (void *q, void *i, uint32_t block, AREA, size_t row, size_t slice, void *p, WAIT), (q, i, block, o, r, row, slice, p, n, w), "clEnqueueReadImage") \
    X(clEnqueueWriteImage, (void *q, void *i, uint32_t block, AREA, size_t row, size_t slice, const void *p, WAIT), (q, i, block, o, r, row, slice, p, n, w), "clEnqueueWriteImage") \
    X(clEnqueueCopyImage, (void *q, void *s, void *d, const size_t *so, AREA, WAIT), (q, s, d, so, o, r, n, w), "clEnqueueCopyImage") \
    X(clEnqueueCopyImageToBuffer, (void *q, void *i, void *b, AREA, size_t to, WAIT), (q, i, b, o, r, to, n, w), "clEnqueueCopyImageToBuffer") \
    X(clEnqueueCopyBufferToImage, (void *q, void *b, void *i, size_t from, AREA, WAIT), (q, b, i, from, o, r, n, w), "clEnqueueCopyBufferToImage") \
    X(clEnqueueFillImage, (void *q, void *i, const void *color, AREA, WAIT), (q, i, color, o, r, n, w), "clEnqueueFillImage") \
    X(clEnqueueUnmapMemObject, (void *q, void *m, void *p, WAIT), (q, m, p, n, w), "clEnqueueUnmapMemObject") \
    X(clEnqueueMigrateMemObjects, (void *q, uint32_t m, void *const *list, uint64_t flags, WAIT), (q, m, list, flags, n, w), "clEnqueueMigrateMemObjects") \
    X(clEnqueueSVMMemcpy, (void *q, uint32_t block, void *d, const void *s, size_t z, WAIT), (q, block, d, s, z, n, w), "clEnqueueSVMMemcpy") \
    X(clEnqueueSVMMemFill, (void *q, void *p, const void *f, size_t fz, size_t z, WAIT), (q, p, f, fz, z, n, w), "clEnqueueSVMMemFill") \
    X(clEnqueueSVMMap, (void *q, uint32_t block, uint64_t flags, void *p, size_t z, WAIT), (q, block, flags, p, z, n, w), "clEnqueueSVMMap") \
    X(clEnqueueSVMUnmap, (void *q, void *p, WAIT), (q, p, n, w), "clEnqueueSVMUnmap") \
    X(clEnqueueSVMMigrateMem, (void *q, uint32_t m, const void **list, const size_t *z, uint64_t flags, WAIT), (q, m, list, z, flags, n, w), "clEnqueueSVMMigrateMem") \
    X(clEnqueueSVMFree, (void *q, uint32_t m, void *list[], void (*f)(void *, uint32_t, void *[], void *), void *a, WAIT), (q, m, list, f, a, n, w), "clEnqueueSVMFree") \
    X(clEnqueueMarkerWithWaitList, (void *q, WAIT), (q, n, w), "clEnqueueMarkerWithWaitList") \
    X(clEnqueueBarrierWithWaitList, (void *q, WAIT), (q, n, w), "clEnqueueBarrierWithWaitList")

/* They return the place in memory, and the error through a pointer. */
#define MAPS(X) \
    X(clEnqueueMapBuffer, (void *q, void *b, uint32_t block, uint64_t flags, size_t o, size_t z, WAIT, int32_t *error), (q, b, block, flags, o, z, n, w), "clEnqueueMapBuffer") \
    X(clEnqueueMapImage, (void *q, void *i, uint32_t block, uint64_t flags, AREA, size_t *row, size_t *slice, WAIT, int32_t *error), (q, i, block, flags, o, r, row, slice, n, w), "clEnqueueMapImage")
/* clang-format on */

#define BARE(...) __VA_ARGS__
#define OPEN(name, called)                                                                         \
    char text[NAME];                                                                               \
    (void)text;                                                                                    \
    struct command c = begin(q, called, e);                                                        \
    c.event = c.id != 0 && e == NULL ? &c.own : e;                                                 \
    hook_depth++

#define X(name, params, args, called)                                                              \
    HOOK_API int32_t name params;                                                                  \
    HOOK_API int32_t name params                                                                   \
    {                                                                                              \
        static hook_slot slot;                                                                     \
        int32_t(*real) params;                                                                     \
        *(void **)(void *)&real = hook_real(&slot, #name, opencl);                                 \
        if (real == NULL)                                                                          \
            return CL_FAILED;                                                                      \
        OPEN(name, called);                                                                        \
        const int32_t rc = real(BARE args, c.event);                                               \
        hook_depth--;                                                                              \
        end(&c, q, rc);                                                                            \
        return rc;                                                                                 \
    }
COMMANDS(X)
#undef X

#define X(name, params, args, called)                                                              \
    HOOK_API void *name params;                                                                    \
    HOOK_API void *name params                                                                     \
    {                                                                                              \
        static hook_slot slot;                                                                     \
        void *(*real)params;                                                                       \
        *(void **)(void *)&real = hook_real(&slot, #name, opencl);                                 \
        if (real == NULL)                                                                          \
            return keep_error(error);                                                              \
        int32_t rc = 0;                                                                            \
        OPEN(name, called);                                                                        \
        void *p = real(BARE args, c.event, &rc);                                                   \
        hook_depth--;                                                                              \
        end(&c, q, rc);                                                                            \
        if (error != NULL)                                                                         \
            *error = rc;                                                                           \
        return p;                                                                                  \
    }
MAPS(X)
#undef X
