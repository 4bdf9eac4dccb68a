/* SPDX-License-Identifier: MIT
 *
 * rt_dev_acl: streams of Ascend devices, by libascendcl.so, found at run time.  Only an event
 * with the flag TIME_LINE has a time.  Events are scarce on older parts, so the pool stops at
 * 4096.  aclrtQueryEvent is avoided: its codes are the other way round.
 */
#include "mstx/rt_dev_event.h"

enum {
    TIME_LINE = 8,
    COMPLETE = 1,
    FAST_LAUNCH = 1, /* a stream with its own task queue */
};

static struct {
    void *lib;
    int (*event_create)(void **event, uint32_t flag);
    int (*event_create_again)(void **event, uint32_t flag);
    int (*event_query)(void *event, int *status);
    int (*stream_create)(void **stream, uint32_t priority, uint32_t flag);
    int (*stream_id)(void *stream, int32_t *id);
    int (*capture_info)(void *stream, int *status, void **model);
} acl;
static struct rt_event_api api;

static bool load(void)
{
    static const char *const files[] = {"libascendcl.so", NULL};
    static const struct rt_event_symbol symbols[] = {
        {"aclrtCreateEventWithFlag", &acl.event_create, false},
        {"aclrtQueryEventStatus", &acl.event_query, false},
        {"aclrtRecordEvent", &api.event_record, false},
        {"aclrtEventElapsedTime", &api.event_elapsed, false},
        {"aclrtCreateStreamWithConfig", &acl.stream_create, false},
        {"aclrtGetCurrentContext", &api.context_get, false},
        {"aclrtSetCurrentContext", &api.context_set, false},
        {"aclrtGetDevice", &api.device_get, false},
        {"aclrtStreamGetId", &acl.stream_id, true},
        {"aclmdlRICaptureGetInfo", &acl.capture_info, true},
        {"aclmdlRICaptureThreadExchangeMode", &api.capture_mode, true},
        {"aclrtCreateEventExWithFlag", &acl.event_create_again, true},
    };
    return rt_event_load(&acl.lib, files, symbols, sizeof symbols / sizeof *symbols);
}

/* The newer sort may be recorded again without a reset, as a pool does. */
static int event_create(void **event)
{
    return acl.event_create_again != NULL ? acl.event_create_again(event, TIME_LINE)
                                          : acl.event_create(event, TIME_LINE);
}
static enum rt_dev_answer event_query(void *event)
{
    int status = 0;
    if (acl.event_query(event, &status) != 0)
        return RT_DEV_LOST;
    return status == COMPLETE ? RT_DEV_DONE : RT_DEV_NOT_YET;
}
static int stream_create(void **stream)
{
    return acl.stream_create(stream, 0, FAST_LAUNCH);
}
static int stream_number(void *stream, uint32_t *number)
{
    int32_t id;
    if (acl.stream_id == NULL || acl.stream_id(stream, &id) != 0)
        return -1;
    *number = (uint32_t)id;
    return 0;
}
static bool stream_is_capturing(void *stream)
{
    int status = 0;
    void *model;
    return acl.capture_info != NULL && acl.capture_info(stream, &status, &model) == 0 &&
           status != 0;
}

static struct rt_event_api api = {
    .name = "ascend",
    .kind = MSTX_DEVICE_ACL,
    .events_max = 4096,
    .load = load,
    .event_create = event_create,
    .event_query = event_query,
    .stream_create = stream_create,
    .stream_number = stream_number,
    .stream_is_capturing = stream_is_capturing,
};

static bool acl_open(struct rt_stream *s)
{
    return rt_event_open(s, &api);
}

const struct rt_dev_ops rt_dev_acl = {
    .kind = MSTX_DEVICE_ACL, .name = "acl", .open = acl_open, RT_EVENT_OPS};
