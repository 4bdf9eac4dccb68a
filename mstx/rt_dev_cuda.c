/* SPDX-License-Identifier: MIT
 *
 * rt_dev_cuda: streams of CUDA, by the driver's interface (libcuda.so.1), found at run time.
 * Streams of the runtime library (cudaStream_t) are the same handles.
 */
#include "mstx/rt_dev_event.h"

enum {
    NOT_READY = 600,
    NON_BLOCKING = 1, /* a stream that does not wait for the default one */
};

static struct {
    void *lib;
    int (*event_create)(void **event, unsigned flags);
    int (*event_query)(void *event);
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_is_capturing)(void *stream, int *status);
    int (*stream_id)(void *stream, unsigned long long *id);
} cu;
static struct rt_event_api api;

static bool load(void)
{
    static const char *const files[] = {"libcuda.so.1", "libcuda.so", NULL};
    static const struct rt_event_symbol symbols[] = {
        {"cuEventCreate", &cu.event_create, false},
        {"cuEventQuery", &cu.event_query, false},
        {"cuEventRecord", &api.event_record, false},
        {"cuEventElapsedTime", &api.event_elapsed, false},
        {"cuStreamCreate", &cu.stream_create, false},
        {"cuCtxGetCurrent", &api.context_get, false},
        {"cuCtxSetCurrent", &api.context_set, false},
        {"cuCtxGetDevice", &api.device_get, false},
        {"cuStreamIsCapturing", &cu.stream_is_capturing, true},
        {"cuStreamGetId", &cu.stream_id, true},
        {"cuThreadExchangeStreamCaptureMode", &api.capture_mode, true},
    };
    return rt_event_load(&cu.lib, files, symbols, sizeof symbols / sizeof *symbols);
}

static int event_create(void **event)
{
    return cu.event_create(event, 0); /* with timing */
}
static enum rt_dev_answer event_query(void *event)
{
    int rc = cu.event_query(event);
    return rc == 0 ? RT_DEV_DONE : rc == NOT_READY ? RT_DEV_NOT_YET : RT_DEV_LOST;
}
static int stream_create(void **stream)
{
    return cu.stream_create(stream, NON_BLOCKING);
}
static int stream_number(void *stream, uint32_t *number)
{
    unsigned long long id;
    if (cu.stream_id == NULL || cu.stream_id(stream, &id) != 0)
        return -1;
    *number = (uint32_t)id;
    return 0;
}
static bool stream_is_capturing(void *stream)
{
    int status = 0;
    return cu.stream_is_capturing != NULL && cu.stream_is_capturing(stream, &status) == 0 &&
           status != 0;
}

static struct rt_event_api api = {
    .name = "cuda",
    .kind = MSTX_DEVICE_CUDA,
    .events_max = 1 << 16,
    .load = load,
    .event_create = event_create,
    .event_query = event_query,
    .stream_create = stream_create,
    .stream_number = stream_number,
    .stream_is_capturing = stream_is_capturing,
};

static bool cuda_open(struct rt_stream *s)
{
    return rt_event_open(s, &api);
}

const struct rt_dev_ops rt_dev_cuda = {
    .kind = MSTX_DEVICE_CUDA, .name = "cuda", .open = cuda_open, RT_EVENT_OPS};
