/* SPDX-License-Identifier: MIT
 *
 * mark: marks, ranges, push and pop, counters and memory events: what entry points and hooks call.
 */
#ifndef MSTX_RT_MARK_H
#define MSTX_RT_MARK_H

#include "mstx/rt/domain.h"
#include "mstx/rt/string_file.h"

/* Attributes that NVTX events carry. */
struct rt_attr {
    uint32_t fields, category, argb, payload_type;
    uint64_t payload;
};
struct rt_payload {
    uint64_t schema;
    size_t n;
    const void *bytes;
};
struct rt_event {
    const struct rt_attr *attr;        /* or NULL */
    const struct rt_payload *payloads; /* or NULL */
    size_t npayloads;
    /* Instead of these: continuation records as they are, each but the last with MSTX_F_MORE. */
    const struct mstx_rec *ready;
    uint32_t nready;
    uint32_t name;
    uint8_t flags;
};

/* Records a mark and passes it to the taps; live: what the domain asks for, not 0. */
void rt_mark_live(struct rt_domain *d, const char *message, void *stream, uint8_t live);
/* Records a mark, or returns at once when the domain is filtered or recording is stopped.  Inline, so
 * that neither of these pays for a jump to another function and back: bench_mstx showed 2.5 to 3.0 ns
 * for them, by nothing but the address that the linker gave that function. */
static inline void rt_mark(struct rt_domain *d, const char *message, void *stream)
{
    const uint8_t live = atomic_load_explicit(&d->live, memory_order_relaxed);
    if (live != 0)
        rt_mark_live(d, message, stream, live);
}
uint32_t rt_range_start(struct rt_domain *d, const char *message, void *stream);
void rt_range_end(struct rt_domain *d, uint64_t id);
/* The same with everything an NVTX event may carry. */
void rt_mark_event(struct rt_domain *d, const struct rt_event *e);
uint32_t rt_range_start_event(struct rt_domain *d, const struct rt_event *e);
/* The tap's word of the range that ended; 0 when there was none. */
uint64_t rt_range_end_event(struct rt_domain *d, uint64_t id, const struct rt_event *e);
/* A range that is not recorded but has an id and a tap's word; 0: no room. */
uint32_t rt_range_ghost(void);
/* Depth of the range opened or closed, from 0; negative: none. */
int rt_push(struct rt_domain *d, const struct rt_event *e);
int rt_pop(struct rt_domain *d, const struct rt_event *e);
void rt_counter(struct rt_domain *d, uint32_t name, uint64_t bits, bool real);
/* A memory record; mem NULL: without one. */
void rt_memory(struct rt_domain *d, uint8_t type, uint64_t id, uint32_t device, uint64_t arg,
               const struct mstx_rec_mem *mem);
/* A communication call: its CALL is written, n continuation records go behind it, then rt_publish. */
struct rt_call {
    struct mstx_rec *more; /* NULL: there is no room, and nothing to publish */
    uint64_t id;           /* 0: none */
};
struct rt_call rt_call_start(struct rt_ring *r, const struct rt_domain *d, uint32_t name,
                             uint32_t n);
/* One on a stream: a BEGIN with n ready continuation records; 0: none. */
uint32_t rt_range_start_ready(struct rt_ring *r, const struct rt_domain *d, uint32_t name,
                              void *stream, const struct mstx_rec *more, uint32_t n);
/* The end of either with such records. */
void rt_range_end_ready(struct rt_domain *d, uint64_t id, const struct mstx_rec *more, uint32_t n);
/* Tell the taps of a start; id 0: not recorded, then one is made. The id to end it with. */
uint32_t rt_range_tell_start(struct rt_domain *d, const char *message, void *stream, uint32_t id);

/* ---- devices ------------------------------------------------------------------ */

/* What the room of devices, which lies above, offers to marks with a stream. */
struct rt_device_calls {
    /* Queues an event for a MARK or BEGIN, or for an END; return flags for the host record.
     * *stream: where the end of a range belongs to, 0 when there is no device time. */
    uint8_t (*start)(const struct mstx_rec *rec, uint16_t *stream);
    uint8_t (*end)(uint16_t stream, const struct mstx_rec *rec);
    /* In a forked child: devices stay with the parent. */
    void (*forget)(void);
};
/* NULL as long as no stream was announced. */
extern const struct rt_device_calls *_Atomic rt_device;

#endif
