/* SPDX-License-Identifier: MIT
 *
 * rt_dev_cuda: streams of CUDA, by the driver's interface (libcuda.so.1), found at run time.
 * Streams of the runtime library (cudaStream_t) are the same handles.
 */
#include "mstx/rt_dev_event.h"

#include <dlfcn.h>

enum {
    NOT_READY = 600,
    NON_BLOCKING = 1, /* a stream that does not wait for the default one */
    RELAXED = 2,      /* mode of captures */
};

/* name, symbol, arguments */
#define CUDA_CALLS(X)                                                                              \
    X(EventCreate, "cuEventCreate", (void **event, unsigned flags))                                \
    X(EventRecord, "cuEventRecord", (void *event, void *stream))                                   \
    X(EventQuery, "cuEventQuery", (void *event))                                                   \
    X(EventElapsedTime, "cuEventElapsedTime", (float *ms, void *from, void *to))                   \
    X(StreamCreate, "cuStreamCreate", (void **stream, unsigned flags))                             \
    X(CtxGetCurrent, "cuCtxGetCurrent", (void **context))                                          \
    X(CtxSetCurrent, "cuCtxSetCurrent", (void *context))                                           \
    X(CtxGetDevice, "cuCtxGetDevice", (int *device))
/* Absent from older drivers. */
#define CUDA_CALLS_NEW(X)                                                                          \
    X(StreamIsCapturing, "cuStreamIsCapturing", (void *stream, int *status))                       \
    X(StreamGetId, "cuStreamGetId", (void *stream, unsigned long long *id))                        \
    X(ThreadExchange, "cuThreadExchangeStreamCaptureMode", (int *mode))

static struct {
    void *lib;
#define X(name, symbol, args) int(*name) args;
    CUDA_CALLS(X) CUDA_CALLS_NEW(X)
#undef X
} cu;

static bool load(void)
{
    static const char *const names[] = {"libcuda.so.1", "libcuda.so", NULL};
    if (cu.lib != NULL)
        return true;
    void *lib = rt_dev_library(names, true);
    bool all = lib != NULL;
    if (!all)
        return false;
#define X(name, symbol, args) *(void **)(void *)&cu.name = dlsym(lib, symbol);
    CUDA_CALLS(X)
    CUDA_CALLS_NEW(X)
#undef X
#define X(name, symbol, args) all = all && cu.name != NULL;
    CUDA_CALLS(X)
#undef X
    cu.lib = all ? lib : NULL;
    return all;
}

static int event_create(void **event)
{
    return cu.EventCreate(event, 0); /* with timing */
}
static int event_record(void *event, void *stream)
{
    return cu.EventRecord(event, stream);
}
static enum rt_dev_answer event_query(void *event)
{
    int rc = cu.EventQuery(event);
    return rc == 0 ? RT_DEV_DONE : rc == NOT_READY ? RT_DEV_NOT_YET : RT_DEV_LOST;
}
static int event_elapsed(float *ms, void *from, void *to)
{
    return cu.EventElapsedTime(ms, from, to);
}
static int stream_create(void **stream)
{
    return cu.StreamCreate(stream, NON_BLOCKING);
}
static int stream_number(void *stream, uint32_t *number)
{
    unsigned long long id;
    if (cu.StreamGetId == NULL || cu.StreamGetId(stream, &id) != 0)
        return -1;
    *number = (uint32_t)id;
    return 0;
}
static bool stream_is_capturing(void *stream)
{
    int status = 0;
    return cu.StreamIsCapturing != NULL && cu.StreamIsCapturing(stream, &status) == 0 &&
           status != 0;
}
static int context_get(void **context)
{
    return cu.CtxGetCurrent(context);
}
static int context_set(void *context)
{
    return cu.CtxSetCurrent(context);
}
static int device_get(int *device)
{
    return cu.CtxGetDevice(device);
}
static void thread_relax(void)
{
    static __thread bool is_relaxed __attribute__((tls_model("initial-exec")));
    int mode = RELAXED;
    if (!is_relaxed && cu.ThreadExchange != NULL)
        cu.ThreadExchange(&mode);
    is_relaxed = true;
}

static const struct rt_event_api api = {
    .name = "cuda",
    .events_max = 1 << 16,
    .load = load,
    .event_create = event_create,
    .event_record = event_record,
    .event_query = event_query,
    .event_elapsed = event_elapsed,
    .stream_create = stream_create,
    .stream_number = stream_number,
    .stream_is_capturing = stream_is_capturing,
    .context_get = context_get,
    .context_set = context_set,
    .device_get = device_get,
    .thread_relax = thread_relax,
};

static bool cuda_open(struct rt_stream *s)
{
    return rt_event_open(s, &api);
}

const struct rt_dev_ops rt_dev_cuda = {
    .kind = MSTX_DEVICE_CUDA, .name = "cuda", .open = cuda_open, RT_EVENT_OPS};
