/* SPDX-License-Identifier: MIT
 *
 * A stand-in for libcuda.so.1: one device whose streams are worker threads. Real names and
 * prototypes; what the tests do not need is not there.
 */
#include "tests/standin/worker.h"

enum { INVALID_HANDLE = 400, INVALID_CONTEXT = 201, NOT_READY = 600 };

static int the_context;
static _Atomic(void *) primary = &the_context;
static __thread void *current;

#define CU(name, ...)                                                                              \
    STANDIN_API int name(__VA_ARGS__);                                                             \
    STANDIN_API int name(__VA_ARGS__)

CU(cuInit, unsigned flags)
{
    current = atomic_load(&primary);
    return flags == 0 ? 0 : 1;
}
CU(cuCtxGetCurrent, void **context)
{
    *context = current;
    return 0;
}
CU(cuCtxSetCurrent, void *context)
{
    current = context;
    return 0;
}
CU(cuCtxGetDevice, int *device)
{
    *device = 0;
    return current != NULL ? 0 : INVALID_CONTEXT;
}
CU(cuDevicePrimaryCtxReset_v2, int device)
{
    return device;
}
CU(cuStreamCreate, void **stream, unsigned flags)
{
    (void)flags;
    if (current == NULL)
        return INVALID_CONTEXT;
    *stream = standin_stream_new();
    return 0;
}
CU(cuStreamCreateWithPriority, void **stream, unsigned flags, int priority)
{
    (void)priority;
    return cuStreamCreate(stream, flags);
}
CU(cuStreamDestroy_v2, void *stream)
{
    standin_stream_free(stream);
    return 0;
}
CU(cuStreamSynchronize, void *stream)
{
    return mstx_cpu_stream_sync(((struct standin_stream *)stream)->cpu);
}
CU(cuStreamGetId, void *stream, unsigned long long *id)
{
    *id = ((struct standin_stream *)stream)->number;
    return 0;
}
CU(cuStreamIsCapturing, void *stream, int *status)
{
    *status = atomic_load(&((struct standin_stream *)stream)->is_capturing);
    return 0;
}
CU(cuStreamBeginCapture_v2, void *stream, int mode)
{
    (void)mode;
    atomic_store(&((struct standin_stream *)stream)->is_capturing, 1);
    return 0;
}
CU(cuStreamEndCapture, void *stream, void **graph)
{
    *graph = NULL;
    atomic_store(&((struct standin_stream *)stream)->is_capturing, 0);
    return 0;
}
CU(cuLaunchHostFunc, void *stream, void (*fn)(void *), void *arg)
{
    return standin_work(stream, fn, arg);
}
CU(cuEventCreate, void **event, unsigned flags)
{
    (void)flags;
    if (current == NULL)
        return INVALID_CONTEXT;
    *event = calloc(1, sizeof(struct standin_event));
    return 0;
}
CU(cuEventRecord, void *event, void *stream)
{
    return standin_record(event, stream);
}
CU(cuEventQuery, void *event)
{
    if (current == NULL)
        return INVALID_CONTEXT;
    return atomic_load(&((struct standin_event *)event)->waiting) == 0 ? 0 : NOT_READY;
}
CU(cuEventElapsedTime, float *ms, void *from, void *to)
{
    return standin_elapsed(ms, from, to) == 0 ? 0 : INVALID_HANDLE;
}
CU(cuEventDestroy_v2, void *event)
{
    free(event);
    return 0;
}
CU(cuMemAllocHost_v2, void **p, size_t n)
{
    *p = current != NULL ? malloc(n) : NULL;
    return *p != NULL ? 0 : INVALID_CONTEXT;
}
CU(cuMemFreeHost, void *p)
{
    free(p);
    return current != NULL ? 0 : INVALID_CONTEXT;
}
CU(cuMemcpyDtoHAsync_v2, void *to, uint64_t from, size_t n, void *stream)
{
    return standin_copy(stream, to, (const void *)(uintptr_t)from, n);
}
