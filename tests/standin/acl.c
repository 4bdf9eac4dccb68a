/* SPDX-License-Identifier: MIT
 *
 * A stand-in for libascendcl.so: devices whose streams are worker threads. Real names and
 * prototypes; what the tests do not need is not there.
 */
#include "tests/standin/worker.h"

enum { INVALID_PARAM = 100000, CONTEXT_NULL = 107002, TIME_LINE = 8, COMPLETE = 1 };

static int the_context[8];
static __thread void *current;
static __thread int32_t device;

#define ACL(name, ...)                                                                             \
    STANDIN_API int name(__VA_ARGS__);                                                             \
    STANDIN_API int name(__VA_ARGS__)

ACL(aclInit, const char *config)
{
    return config != NULL ? 0 : 0;
}
ACL(aclrtSetDevice, int32_t id)
{
    if (id < 0 || id >= 8)
        return INVALID_PARAM;
    device = id;
    current = &the_context[id];
    return 0;
}
ACL(aclrtGetDevice, int32_t *id)
{
    *id = device;
    return current != NULL ? 0 : CONTEXT_NULL;
}
ACL(aclrtResetDevice, int32_t id)
{
    current = NULL;
    return id >= 0 && id < 8 ? 0 : INVALID_PARAM;
}
ACL(aclrtGetCurrentContext, void **context)
{
    *context = current;
    return current != NULL ? 0 : CONTEXT_NULL;
}
ACL(aclrtSetCurrentContext, void *context)
{
    current = context;
    device = (int32_t)((int *)context - the_context);
    return 0;
}
ACL(aclrtCreateStreamWithConfig, void **stream, uint32_t priority, uint32_t flag)
{
    (void)priority;
    (void)flag;
    if (current == NULL)
        return CONTEXT_NULL;
    *stream = standin_stream_new();
    return 0;
}
ACL(aclrtCreateStream, void **stream)
{
    return aclrtCreateStreamWithConfig(stream, 0, 0);
}
ACL(aclrtDestroyStream, void *stream)
{
    standin_stream_free(stream);
    return 0;
}
ACL(aclrtSynchronizeStream, void *stream)
{
    return mstx_cpu_stream_sync(((struct standin_stream *)stream)->cpu);
}
ACL(aclrtStreamGetId, void *stream, int32_t *id)
{
    *id = (int32_t)((struct standin_stream *)stream)->number;
    return 0;
}
ACL(aclmdlRICaptureGetInfo, void *stream, int *status, void **model)
{
    *model = NULL;
    *status = atomic_load(&((struct standin_stream *)stream)->is_capturing);
    return 0;
}
ACL(aclmdlRICaptureBegin, void *stream, int mode)
{
    (void)mode;
    atomic_store(&((struct standin_stream *)stream)->is_capturing, 1);
    return 0;
}
ACL(aclmdlRICaptureEnd, void *stream, void **model)
{
    *model = NULL;
    atomic_store(&((struct standin_stream *)stream)->is_capturing, 0);
    return 0;
}
ACL(aclrtLaunchHostFunc, void *stream, void (*fn)(void *), void *arg)
{
    return standin_work(stream, fn, arg);
}
/* Without the flag an event has no time, as on the real device. */
ACL(aclrtCreateEventExWithFlag, void **event, uint32_t flag)
{
    if ((flag & TIME_LINE) == 0)
        return INVALID_PARAM;
    *event = calloc(1, sizeof(struct standin_event));
    return 0;
}
ACL(aclrtCreateEventWithFlag, void **event, uint32_t flag)
{
    return aclrtCreateEventExWithFlag(event, flag);
}
ACL(aclrtRecordEvent, void *event, void *stream)
{
    return standin_record(event, stream);
}
ACL(aclrtQueryEventStatus, void *event, int *status)
{
    *status = atomic_load(&((struct standin_event *)event)->waiting) == 0 ? COMPLETE : 0;
    return 0;
}
ACL(aclrtEventElapsedTime, float *ms, void *from, void *to)
{
    return standin_elapsed(ms, from, to) == 0 ? 0 : INVALID_PARAM;
}
ACL(aclrtDestroyEvent, void *event)
{
    free(event);
    return 0;
}
ACL(aclrtCreateEvent, void **event)
{
    return aclrtCreateEventExWithFlag(event, TIME_LINE);
}
ACL(aclrtMallocHost, void **p, size_t n)
{
    *p = current != NULL ? malloc(n) : NULL;
    return *p != NULL ? 0 : CONTEXT_NULL;
}
ACL(aclrtFreeHost, void *p)
{
    free(p);
    return current != NULL ? 0 : CONTEXT_NULL;
}
ACL(aclrtMemcpyAsync, void *to, size_t room, const void *from, size_t n, int kind, void *stream)
{
    enum { TO_HOST = 2 };
    return kind == TO_HOST && n <= room ? standin_copy(stream, to, from, n) : INVALID_PARAM;
}
