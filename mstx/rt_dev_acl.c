/* SPDX-License-Identifier: MIT
 *
 * rt_dev_acl: streams of Ascend devices, by libascendcl.so, found at run time.  Only an event
 * with the flag TIME_LINE has a time.  Events are scarce on older parts, so the pool stops at
 * 4096.  aclrtQueryEvent is avoided: its codes are the other way round.
 */
#include "mstx/rt_dev_event.h"

#include <dlfcn.h>

enum {
    TIME_LINE = 8,
    COMPLETE = 1,
    RELAXED = 2,
    FAST_LAUNCH = 1, /* a stream with its own task queue */
};

#define ACL_CALLS(X)                                                                               \
    X(CreateEvent, "aclrtCreateEventWithFlag", (void **event, uint32_t flag))                      \
    X(RecordEvent, "aclrtRecordEvent", (void *event, void *stream))                                \
    X(QueryEvent, "aclrtQueryEventStatus", (void *event, int *status))                             \
    X(ElapsedTime, "aclrtEventElapsedTime", (float *ms, void *from, void *to))                     \
    X(CreateStream, "aclrtCreateStreamWithConfig", (void **stream, uint32_t prio, uint32_t flag))  \
    X(GetContext, "aclrtGetCurrentContext", (void **context))                                      \
    X(SetContext, "aclrtSetCurrentContext", (void *context))                                       \
    X(GetDevice, "aclrtGetDevice", (int32_t * device))
/* Absent from older releases. */
#define ACL_CALLS_NEW(X)                                                                           \
    X(StreamGetId, "aclrtStreamGetId", (void *stream, int32_t *id))                                \
    X(CaptureGetInfo, "aclmdlRICaptureGetInfo", (void *stream, int *status, void **model))         \
    X(ThreadExchange, "aclmdlRICaptureThreadExchangeMode", (int *mode))                            \
    X(CreateEventEx, "aclrtCreateEventExWithFlag", (void **event, uint32_t flag))

static struct {
    void *lib;
#define X(name, symbol, args) int(*name) args;
    ACL_CALLS(X) ACL_CALLS_NEW(X)
#undef X
} acl;

static bool load(void)
{
    static const char *const names[] = {"libascendcl.so", NULL};
    if (acl.lib != NULL)
        return true;
    void *lib = rt_dev_library(names, true);
    bool all = lib != NULL;
    if (!all)
        return false;
#define X(name, symbol, args) *(void **)(void *)&acl.name = dlsym(lib, symbol);
    ACL_CALLS(X)
    ACL_CALLS_NEW(X)
#undef X
#define X(name, symbol, args) all = all && acl.name != NULL;
    ACL_CALLS(X)
#undef X
    acl.lib = all ? lib : NULL;
    return all;
}

/* The newer sort may be recorded again without a reset, as a pool does. */
static int event_create(void **event)
{
    return acl.CreateEventEx != NULL ? acl.CreateEventEx(event, TIME_LINE)
                                     : acl.CreateEvent(event, TIME_LINE);
}
static int event_record(void *event, void *stream)
{
    return acl.RecordEvent(event, stream);
}
static enum rt_dev_answer event_query(void *event)
{
    int status = 0;
    if (acl.QueryEvent(event, &status) != 0)
        return RT_DEV_LOST;
    return status == COMPLETE ? RT_DEV_DONE : RT_DEV_NOT_YET;
}
static int event_elapsed(float *ms, void *from, void *to)
{
    return acl.ElapsedTime(ms, from, to);
}
static int stream_create(void **stream)
{
    return acl.CreateStream(stream, 0, FAST_LAUNCH);
}
static int stream_number(void *stream, uint32_t *number)
{
    int32_t id;
    if (acl.StreamGetId == NULL || acl.StreamGetId(stream, &id) != 0)
        return -1;
    *number = (uint32_t)id;
    return 0;
}
static bool stream_is_capturing(void *stream)
{
    int status = 0;
    void *model;
    return acl.CaptureGetInfo != NULL && acl.CaptureGetInfo(stream, &status, &model) == 0 &&
           status != 0;
}
static int context_get(void **context)
{
    return acl.GetContext(context);
}
static int context_set(void *context)
{
    return acl.SetContext(context);
}
static int device_get(int *device)
{
    int32_t d = 0;
    int rc = acl.GetDevice(&d);
    *device = (int)d;
    return rc;
}
static void thread_relax(void)
{
    static __thread bool is_relaxed __attribute__((tls_model("initial-exec")));
    int mode = RELAXED;
    if (!is_relaxed && acl.ThreadExchange != NULL)
        acl.ThreadExchange(&mode);
    is_relaxed = true;
}

static const struct rt_event_api api = {
    .name = "ascend",
    .events_max = 4096,
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

static bool acl_open(struct rt_stream *s)
{
    return rt_event_open(s, &api);
}

const struct rt_dev_ops rt_dev_acl = {
    .kind = MSTX_DEVICE_ACL, .name = "acl", .open = acl_open, RT_EVENT_OPS};
