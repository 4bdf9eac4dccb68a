/* SPDX-License-Identifier: MIT
 *
 * mark: marks, ranges, push and pop, counters and memory events: called by entry points and hooks.
 */
#ifndef MSTX_RT_MARK_H
#define MSTX_RT_MARK_H

#include "mstx/rt/domain.h"
#include "mstx/rt/string_file.h"
#include "mstx/rt/thread_use.h"

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
    /* In place of attr and payloads: ready continuation records, each but the last with
     * MSTX_F_MORE. */
    const struct mstx_rec *ready;
    uint32_t nready;
    uint32_t name;
    uint8_t flags;
};

/* Records a mark and passes it to the taps; live: rt_domain.live, not 0. */
void rt_mark_live(struct rt_domain *d, const char *message, void *stream, uint8_t live);
/* Records a mark, or returns at once when the domain is filtered or recording is stopped. Inline,
 * so that these two cases do not pay for a function call: bench_mstx showed 2.5 to 3.0 ns for them,
 * depending only on the address that the linker gave that function. */
static inline void rt_mark(struct rt_domain *d, const char *message, void *stream)
{
    const uint8_t live = atomic_load_explicit(&d->live, memory_order_relaxed);
    if (live != 0)
        rt_mark_live(d, message, stream, live);
}
uint32_t rt_range_start(struct rt_domain *d, const char *message, void *stream);
void rt_range_end(struct rt_domain *d, uint64_t id);
/* Records a mark with all that an NVTX event may carry. */
void rt_mark_event(struct rt_domain *d, const struct rt_event *e);
uint32_t rt_range_start_event(struct rt_domain *d, const struct rt_event *e);
/* Ends a range; returns the word that the tap has set for it, or 0. */
uint64_t rt_range_end_event(struct rt_domain *d, uint64_t id, const struct rt_event *e);
/* Opens a range that is not recorded but has an id and the word of a tap; 0: no room. */
uint32_t rt_range_ghost(void);
/* Open and close a push range; return its depth, from 0; negative: none. */
int rt_push(struct rt_domain *d, const struct rt_event *e);
int rt_pop(struct rt_domain *d, const struct rt_event *e);
void rt_counter(struct rt_domain *d, uint32_t name, uint64_t bits, bool real);
/* Writes a memory record, with mem if not NULL. */
void rt_memory(struct rt_domain *d, uint8_t type, uint64_t id, uint32_t device, uint64_t arg,
               const struct mstx_rec_mem *mem);
/* A communication call whose CALL record is written: the caller writes n continuation records to
 * `more` and calls rt_publish. */
struct rt_call {
    struct mstx_rec *more; /* NULL: no room, nothing to publish */
    uint64_t id;           /* 0: none */
};
struct rt_call rt_call_start(struct rt_ring *r, const struct rt_domain *d, uint32_t name,
                             uint32_t n);
/* Starts a call on a stream: a BEGIN with n ready continuation records; 0: none. */
uint32_t rt_range_start_ready(struct rt_ring *r, const struct rt_domain *d, uint32_t name,
                              void *stream, const struct mstx_rec *more, uint32_t n);
/* Ends a call with n ready continuation records. */
void rt_range_end_ready(struct rt_domain *d, uint64_t id, const struct mstx_rec *more, uint32_t n);
/* Passes a start to the taps; id 0: not recorded, then an id is made. Returns the id for the
 * end. */
uint32_t rt_range_pass_start(struct rt_domain *d, const char *message, void *stream, uint32_t id);

/* Records what this thread has used of its host; rt_use_sample does when the newest record is old
 * enough. */
void rt_use_write(struct rt_ring *r);
static inline void rt_use_sample(struct rt_ring *r)
{
    if (RT_UNLIKELY(rt_ring_ticks(r) >= rt_use_due))
        rt_use_write(r);
}

/* Likewise, but eight times as often: for the few borders that a framework knows. */
void rt_use_sample_often(struct rt_ring *r);

/* ---- devices ------------------------------------------------------------------ */

/* Functions that mstx/rt/dev, a layer above, offers to marks with a stream. */
struct rt_device_calls {
    /* Queues an event for a MARK or BEGIN, or for an END; returns flags for the host record.
     * *stream: the stream of the end of a range, 0 when there is no device time. */
    uint8_t (*start)(const struct mstx_rec *rec, uint16_t *stream);
    uint8_t (*end)(uint16_t stream, const struct mstx_rec *rec);
    /* In a forked child: drops the devices, which belong to the parent. */
    void (*forget)(void);
};
/* NULL as long as no stream was announced. */
extern const struct rt_device_calls *_Atomic rt_device;

#endif
