/* SPDX-License-Identifier: MIT
 *
 * device_streams: announces the streams of CUDA and Ascend and the command queues of OpenCL.
 */
#include "mstx/hook/real_function.h"
#include "mstx/mstx_device.h"
#include "mstx/rt/hook_api.h"

/* ---- CUDA and Ascend -------------------------------------------------------- */

enum { CUDA_FAILED = 999 /* unknown */, ACL_FAILED = 500000 /* internal error */ };

static const char *const driver[] = {"libcuda.so", NULL};
static const char *const runtime[] = {"libcudart.so", "libtorch_cuda.so", NULL};
static const char *const ascend[] = {"libascendcl.so", NULL};

static void announce_stream(int rc, enum mstx_device_kind kind, void *const *stream)
{
    if (rc == 0 && stream != NULL && *stream != NULL)
        mstx_stream_made(kind, *stream, NULL);
}

#include <stream_wrappers.inc>

/* Command queues of OpenCL and their commands.
 *
 * Queues are created with profiling, without which events have no times; if that fails, as the
 * program requested.  A command is a range of the domain "opencl": on the host for the duration of
 * the call, on the device from start to end of the command.  The device times come from the event
 * that the program requests, or else from one of ours. */

/* ---- queues ---------------------------------------------------------------------------------- */

enum {
    CL_FAILED = -5, /* out of resources */
    CL_PROPERTIES = 0x1093,
    CL_REFERENCES = 0x1092,
    CL_PROFILING = 2,
    CL_KERNEL_NAME = 0x1190,
    CL_LIST = 16, /* properties of one queue that are supported */
    NAME = 128,
};

static const char *const opencl[] = {"libOpenCL.so", NULL};

static void *keep_error(int32_t *error)
{
    if (error != NULL)
        *error = CL_FAILED;
    return NULL;
}

static void *announce_queue(void *queue)
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
    return announce_queue(queue);
}

/* Copies the list of pairs and adds profiling; false: the list is too long. */
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
    return queue != NULL ? announce_queue(queue) : real(context, device, list, error);
}

/* Ends the stream at the last reference. Its marks are still polled, since events outlive their
 * queue. */
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
static void retain_event(void *event)
{
    static hook_slot slot;
    event_call("clRetainEvent", &slot, event);
}
static void release_event(void *event)
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
    void *own;    /* our own event, when the program requests none */
    void **event; /* where the call stores the event */
};

static void begin_command(struct command *c, void *queue, const char *name, void **wanted)
{
    *c = (struct command){.event = wanted};
    if (hook_depth == 0)
        c->id = mstx_stream_command(queue, name, &c->ticks);
    if (c->id != 0 && wanted == NULL)
        c->event = &c->own;
}

static void end_command(struct command *c, void *queue, int32_t rc)
{
    if (c->id == 0)
        return;
    mstx_device_range_end(c->id);
    void *event = rc == 0 ? *c->event : NULL;
    if (event != NULL && c->own == NULL)
        retain_event(event);
    if (event != NULL && !mstx_stream_command_queued(queue, c->id, c->ticks, event))
        release_event(event);
}

typedef void native_kernel(void *);
typedef void free_svm(void *, uint32_t, void *[], void *);

#include <opencl_wrappers.inc>
