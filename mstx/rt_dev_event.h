/* SPDX-License-Identifier: MIT
 *
 * rt_dev_event: what CUDA and Ascend have in common: a mark is an event recorded on the
 * stream, its time is known relative to another event, and a thread works within a context.
 * A runtime of that sort is this table; all functions give 0 for success.
 */
#ifndef MSTX_RT_DEV_EVENT_H
#define MSTX_RT_DEV_EVENT_H

#include "mstx/rt_device.h"

struct rt_event_api {
    const char *name;
    enum mstx_device_kind kind;
    uint32_t events_max; /* of one context: a scarce resource on some devices */
    bool (*load)(void);  /* find the library: rt_event_load with its symbols */

    /* the runtime's own, by rt_event_load */
    int (*event_record)(void *event, void *stream);
    int (*event_elapsed)(float *ms, void *from, void *to);
    int (*context_get)(void **context);
    int (*context_set)(void *context);
    int (*device_get)(int *device);
    int (*capture_mode)(int *mode); /* of this thread; NULL: an older release */

    /* where runtimes differ */
    int (*event_create)(void **event);
    enum rt_dev_answer (*event_query)(void *event);
    int (*stream_create)(void **stream); /* one that waits for no other */
    int (*stream_number)(void *stream, uint32_t *number);
    bool (*stream_is_capturing)(void *stream);
};

/* A function of the runtime by its name there, and the pointer to it that is to be set. */
struct rt_event_symbol {
    const char *name;
    void *to;
    bool may_lack; /* from older releases */
};
/* files: names of the library, NULL at their end; *lib stays NULL unless everything was found. */
bool rt_event_load(void **lib, const char *const *files, const struct rt_event_symbol *symbols,
                   size_t n);

bool rt_event_open(struct rt_stream *s, const struct rt_event_api *api);
bool rt_event_is_capturing(struct rt_stream *s);
bool rt_event_mark(struct rt_stream *s, struct rt_token *t);
enum rt_dev_answer rt_event_poll(struct rt_stream *s, struct rt_token *t, int64_t *host_ns);
void rt_event_release(struct rt_stream *s, struct rt_token *t);
bool rt_event_enter(struct rt_stream *s, int64_t now_ns);
void rt_event_leave(struct rt_stream *s);
void rt_event_lose(struct rt_stream *s);
void rt_event_close(struct rt_stream *s);

#define RT_EVENT_OPS                                                                               \
    .is_capturing = rt_event_is_capturing, .mark = rt_event_mark, .poll = rt_event_poll,           \
    .release = rt_event_release, .enter = rt_event_enter, .leave = rt_event_leave,                 \
    .lose = rt_event_lose, .close = rt_event_close

#endif
