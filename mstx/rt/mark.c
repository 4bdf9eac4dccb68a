/* SPDX-License-Identifier: MIT
 *
 * mark: marks, ranges, push and pop, counters, memory: the hot path.
 */
#include "mstx/rt/mark.h"

#include "mstx/rt/comm_group.h"
#include "mstx/rt/comm_range.h"
#include "mstx/rt/slot.h"

enum { RECORDS_MAX = 192 }; /* of one event: a payload of MSTX_PAYLOAD_MAX and its heads */
static_assert(RECORDS_MAX > MSTX_PAYLOAD_MAX / MSTX_DATA_BYTES + 8, "one payload always fits");

/* ---- continuations ---------------------------------------------------------------- */

static uint32_t payload_records(const struct rt_payload *p)
{
    size_t n = p->n > MSTX_PAYLOAD_MAX ? MSTX_PAYLOAD_MAX : p->n;
    return 1 + (uint32_t)((n + MSTX_DATA_BYTES - 1) / MSTX_DATA_BYTES);
}

/* Counts the records after the first one; *fit: number of payloads that have room. */
static uint32_t extra_records(const struct rt_event *e, size_t *fit)
{
    uint32_t n = e->attr != NULL && e->attr->fields != 0;
    for (*fit = 0; *fit < e->npayloads; (*fit)++) {
        uint32_t more = payload_records(&e->payloads[*fit]);
        if (n + more > RECORDS_MAX)
            break;
        n += more;
    }
    return n;
}

static struct mstx_rec *put_record(struct mstx_rec *to, const void *rec)
{
    memcpy(to, rec, sizeof *to);
    return to + 1;
}

static struct mstx_rec *put_payload(struct mstx_rec *to, const struct rt_payload *p, uint32_t index,
                                    uint16_t domain)
{
    ms_assert(p->bytes != NULL);
    size_t n = p->n > MSTX_PAYLOAD_MAX ? MSTX_PAYLOAD_MAX : p->n;
    struct mstx_rec_payload head = {.schema = p->schema,
                                    .bytes = n,
                                    .index = index,
                                    .domain = domain,
                                    .type = MSTX_REC_PAYLOAD,
                                    .flags = (uint8_t)(p->n > n ? MSTX_F_CUT : 0),
                                    .total = p->n};
    to = put_record(to, &head);
    const uint8_t *from = p->bytes;
    for (size_t at = 0; at < n; at += MSTX_DATA_BYTES) {
        size_t part = n - at < MSTX_DATA_BYTES ? n - at : MSTX_DATA_BYTES;
        struct mstx_rec_data d = {.n = (uint32_t)part, .domain = domain, .type = MSTX_REC_DATA};
        memcpy(d.bytes, from + at, part < 16 ? part : 16);
        if (part > 16)
            memcpy(d.more, from + at + 16, part - 16);
        to = put_record(to, &d);
    }
    return to;
}

/* Writes the records after rec; each but the last is flagged as having a successor. */
static void put_extra(struct mstx_rec *rec, const struct rt_event *e, uint32_t extra, size_t fit)
{
    struct mstx_rec *to = rec + 1;
    if (e->attr != NULL && e->attr->fields != 0) {
        struct mstx_rec_attr a = {.payload = e->attr->payload,
                                  .category = e->attr->category,
                                  .argb = e->attr->argb,
                                  .payload_type = e->attr->payload_type,
                                  .type = MSTX_REC_ATTR,
                                  .fields = e->attr->fields};
        to = put_record(to, &a);
    }
    for (size_t i = 0; i < fit; i++)
        to = put_payload(to, &e->payloads[i], (uint32_t)i, rec->domain);
    for (uint32_t i = 0; i < extra; i++)
        rec[i].flags |= MSTX_F_MORE;
}

/* ---- writing ------------------------------------------------------------------------ */

static __attribute__((noinline)) void write_far(struct rt_ring *r, uint32_t at, struct mstx_rec rec)
{
    struct mstx_rec *to = rt_ring_more(r, at, 1);
    if (to == NULL)
        return;
    *to = rec;
    rt_publish(r);
}

/* Writes one record. The record is passed by value and inlined, so that its fields go from
 * registers to the segment: a struct that is written field by field and then read as a whole waits
 * until the stores have reached the cache (store forwarding fails). */
RT_INLINE void write1(struct rt_ring *r, struct mstx_rec rec)
{
    uint32_t at;
    if (RT_UNLIKELY(!rt_reserve_near(r, 1, &at))) {
        write_far(r, at, rec);
        return;
    }
    r->rec[at] = rec;
    rt_publish(r);
}

static void write_ready(struct rt_ring *r, struct mstx_rec rec, const struct rt_event *e)
{
    ms_assert(e->nready > 0 && e->nready < RECORDS_MAX);
    struct mstx_rec *to = rt_reserve(r, 1 + e->nready);
    if (RT_UNLIKELY(to == NULL))
        return;
    rec.flags |= MSTX_F_MORE;
    to[0] = rec;
    for (uint32_t i = 0; i < e->nready; i++)
        to[1 + i] = e->ready[i];
    rt_publish(r);
}

static void write_more(struct rt_ring *r, struct mstx_rec rec, const struct rt_event *e)
{
    ms_assert(rec.type != 0);
    size_t fit;
    const uint32_t extra = extra_records(e, &fit);
    struct mstx_rec *to = rt_reserve(r, 1 + extra);
    if (to == NULL)
        return;
    *to = rec;
    put_extra(to, e, extra, fit);
    rt_publish(r);
}

RT_INLINE void write_event(struct rt_ring *r, struct mstx_rec rec, const struct rt_event *e)
{
    if (e == NULL)
        write1(r, rec);
    else if (e->nready != 0)
        write_ready(r, rec, e);
    else if (RT_LIKELY(e->npayloads == 0 && (e->attr == NULL || e->attr->fields == 0)))
        write1(r, rec);
    else
        write_more(r, rec, e);
}

RT_COLD void rt_use_write(struct rt_ring *r)
{
    ms_assert(r == rt_tls);
    if (rt_is_running()) /* not behind the end of the capture, when a last call ends */
        write1(r, rt_use_read());
}

void rt_use_sample_often(struct rt_ring *r)
{
    if (rt_ring_ticks(r) + rt_use_ticks_between() * 7 / 8 >= rt_use_due)
        rt_use_write(r);
}

const struct rt_device_calls *_Atomic rt_device;

/* ---- marks ---------------------------------------------------------------------------- */

/* Makes an id for a mark, so that a device time can be joined to it. */
static uint64_t mark_id(struct rt_ring *r)
{
    return UINT64_C(1) << 63 | (uint64_t)r->number << 40 | rt_bump(&r->mark_ids, 1);
}

static inline void put_stream(struct mstx_rec *rec, void *stream)
{
    rec->flags |= MSTX_F_STREAM;
    rec->arg = (uint64_t)(uintptr_t)stream;
}

/* Queues an event for a MARK or BEGIN with a stream, so that the device's time will be recorded.
 * Returns the stream for the end of the range, 0: none. */
static uint16_t on_device(struct mstx_rec *rec)
{
    uint16_t stream = 0;
    const struct rt_device_calls *device = atomic_load_explicit(&rt_device, memory_order_acquire);
    if (device != NULL)
        rec->flags |= device->start(rec, &stream);
    return stream;
}

static __attribute__((noinline)) void mark_stream(struct rt_ring *r, struct mstx_rec rec,
                                                  void *stream)
{
    rec.id = mark_id(r);
    put_stream(&rec, stream);
    on_device(&rec);
    write1(r, rec);
}

static void record_mark(struct rt_domain *d, const char *message, void *stream)
{
    struct rt_ring *r = rt_ring_of_thread();
    if (RT_UNLIKELY(r == NULL))
        return;
    uint32_t name = RT_LIKELY(message != NULL) ? rt_text_id(r, message) : RT_REFUSED_ID;
    if (RT_UNLIKELY(name == RT_REFUSED_ID)) {
        rt_message_refuse(message);
        return;
    }
    const struct mstx_rec rec = {
        .ticks = rt_ticks(), .name = name, .domain = d->number, .type = MSTX_REC_MARK};
    if (RT_LIKELY(stream == NULL))
        write1(r, rec);
    else
        mark_stream(r, rec, stream);
}

/* Returns the ring for the fast paths, which call no function and keep nothing in memory: they need
 * a ring, and a counter that is read by one instruction. NULL: the slow path, which is always
 * correct, is taken. */
static inline struct rt_ring *ring_near(void)
{
    struct rt_ring *r = rt_tls;
    return RT_LIKELY(r != NULL && rt_clock_is_near(r->clock)) ? r : NULL;
}

RT_INLINE bool mark_near(const struct rt_domain *d, const char *message, const void *stream)
{
    struct rt_ring *r = ring_near();
    if (RT_UNLIKELY(r == NULL || message == NULL || stream != NULL))
        return false;
    const uint32_t name = rt_text_known(r, message);
    if (RT_UNLIKELY(name == 0))
        return false;
    write1(r,
           (struct mstx_rec){
               .ticks = rt_ticks_near(), .name = name, .domain = d->number, .type = MSTX_REC_MARK});
    return true;
}

RT_COLD static void say_dead(const struct rt_domain *d)
{
    rt_say(RT_SAY_DOMAIN, 0, "domain '%s' was destroyed; marks in it are dropped", d->name);
}

RT_COLD static void mark_rare(struct rt_domain *d, const char *message, void *stream, uint8_t live)
{
    if ((live & RT_RECORD) != 0)
        record_mark(d, message, stream);
    if ((live & RT_TAP) != 0 && message != NULL)
        rt_pass_to_taps(RT_TAP_MARK, d, message, stream, 0, NULL);
    if ((live & RT_DEAD) != 0)
        say_dead(d);
}

void rt_mark_live(struct rt_domain *d, const char *message, void *stream, uint8_t live)
{
    ms_assert(d != NULL && live != 0);
    if (RT_UNLIKELY(live != RT_RECORD))
        mark_rare(d, message, stream, live);
    else if (RT_UNLIKELY(!mark_near(d, message, stream)))
        record_mark(d, message, stream);
}

void rt_mark_event(struct rt_domain *d, const struct rt_event *e)
{
    struct rt_ring *r = rt_ring_of_thread();
    if (r == NULL)
        return;
    struct mstx_rec rec = {.name = e->name,
                           .domain = d->number,
                           .type = MSTX_REC_MARK,
                           .flags = e->flags,
                           .ticks = rt_ticks()};
    write_event(r, rec, e);
}

/* ---- ranges ----------------------------------------------------------------------------- */

RT_COLD static uint32_t too_many_ranges(void)
{
    rt_say(RT_SAY_RANGE, 0, "more than %d ranges are open; further ones are not recorded",
           1 << RT_SLOT_BITS);
    return 0;
}

/* Returns the flags of the record. */
static __attribute__((noinline)) uint8_t begin_on_device(struct rt_slot *s, struct mstx_rec rec)
{
    uint16_t stream = on_device(&rec);
    rt_slot_stream[s - rt_slots] = stream;
    s->ring |= (uint16_t)(stream != 0 ? RT_SLOT_ON_DEVICE : 0);
    return rec.flags;
}

RT_INLINE uint32_t begin(struct rt_ring *r, struct mstx_rec rec, const struct rt_event *e)
{
    struct rt_slot *s = rt_slot_get(r);
    if (RT_UNLIKELY(s == NULL))
        return too_many_ranges();
    rec.ticks = rt_ticks();
    uint32_t id = rt_slot_open(s, r, rec.ticks, rec.name, rec.domain);
    rec.id = id;
    if ((rec.flags & MSTX_F_STREAM) != 0)
        rec.flags = begin_on_device(s, rec);
    write_event(r, rec, e);
    return id;
}

static uint32_t record_start(struct rt_domain *d, const char *message, void *stream)
{
    struct rt_ring *r = rt_ring_of_thread();
    if (RT_UNLIKELY(r == NULL))
        return 0;
    uint32_t name = RT_LIKELY(message != NULL) ? rt_text_id(r, message) : RT_REFUSED_ID;
    if (RT_UNLIKELY(name == RT_REFUSED_ID))
        return rt_message_refuse(message);
    struct mstx_rec rec = {.name = name, .domain = d->number, .type = MSTX_REC_BEGIN};
    if (stream != NULL)
        put_stream(&rec, stream);
    uint32_t id = begin(r, rec, NULL);
    if (RT_UNLIKELY(d == rt_comm_domain) && id != 0) {
        r->comm_range = id;
        rt_comm_framework_start(id, r->tid);
        rt_use_sample(r);
    }
    return id;
}

/* Reads nothing that was just written, in particular not several fields as one word: such a read
 * would wait until the stores have reached the cache. */
RT_HOT struct rt_call rt_call_start(struct rt_ring *r, const struct rt_domain *d, uint32_t name,
                                    uint32_t n)
{
    ms_assert(n > 0 && r == rt_tls);
    struct rt_slot *s = rt_slot_get(r);
    if (RT_UNLIKELY(s == NULL))
        return (struct rt_call){NULL, too_many_ranges()};
    const uint64_t now = rt_ring_ticks(r);
    name = name == RT_REFUSED_ID ? 0 : name;
    const uint32_t id = rt_slot_open(s, r, now, name, d->number);
    struct mstx_rec *to = rt_reserve(r, 1 + n);
    if (RT_UNLIKELY(to == NULL))
        return (struct rt_call){NULL, id};
    const size_t at = (size_t)(to - r->rec);
    s->at = RT_LIKELY(at < RT_SLOT_NO_PLACE) ? (uint32_t)at : RT_SLOT_NO_PLACE;
    *to = (struct mstx_rec){.ticks = now,
                            .id = id,
                            .name = name,
                            .domain = d->number,
                            .type = MSTX_REC_CALL,
                            .flags = MSTX_F_MORE};
    return (struct rt_call){to + 1, id};
}

uint32_t rt_range_start_ready(struct rt_ring *r, const struct rt_domain *d, uint32_t name,
                              void *stream, const struct mstx_rec *more, uint32_t n)
{
    ms_assert(n > 0 && stream != NULL);
    struct mstx_rec rec = {
        .name = name == RT_REFUSED_ID ? 0 : name, .domain = d->number, .type = MSTX_REC_BEGIN};
    const struct rt_event e = {.ready = more, .nready = n};
    put_stream(&rec, stream);
    return begin(r, rec, &e);
}

/* Opens a range that only a tap receives; the range still needs an id. */
uint32_t rt_range_ghost(void)
{
    struct rt_ring *r = rt_ring_of_thread();
    struct rt_slot *s = r == NULL ? NULL : rt_slot_get(r);
    if (s == NULL)
        return 0;
    uint32_t id = rt_slot_open(s, r, 0, 0, 0);
    s->ring = RT_SLOT_GHOST;
    return id;
}

RT_COLD uint32_t rt_range_pass_start(struct rt_domain *d, const char *message, void *stream,
                                     uint32_t id)
{
    id = id != 0 ? id : rt_range_ghost();
    if (id == 0)
        return 0;
    /* The end has to be passed to the tap as well. */
    rt_slots[id >> RT_GEN_BITS].at = RT_SLOT_NO_PLACE;
    rt_pass_to_taps(RT_TAP_START, d, message, stream, id, &rt_slots[id >> RT_GEN_BITS].other);
    return id;
}

/* Fast path of a start; 0: the slow path has to be taken. */
RT_INLINE uint32_t start_near(const struct rt_domain *d, const char *message, const void *stream)
{
    struct rt_ring *r = ring_near();
    if (RT_UNLIKELY(r == NULL || message == NULL || stream != NULL || d == rt_comm_domain))
        return 0;
    const uint16_t domain = d->number;
    const uint32_t name = rt_text_known(r, message);
    struct rt_slot *s = RT_LIKELY(name != 0) ? rt_slot_next(r, r->slot_chunk) : NULL;
    if (RT_UNLIKELY(s == NULL))
        return 0;
    const uint64_t now = rt_ticks_near();
    const uint32_t id = rt_slot_open(s, r, now, name, domain);
    write1(r, (struct mstx_rec){
                  .ticks = now, .id = id, .name = name, .domain = domain, .type = MSTX_REC_BEGIN});
    return id;
}

RT_COLD static uint32_t start_rare(struct rt_domain *d, const char *message, void *stream,
                                   uint8_t live)
{
    uint32_t id = 0;
    if ((live & RT_DEAD) != 0)
        say_dead(d);
    if ((live & RT_RECORD) != 0)
        id = record_start(d, message, stream);
    if ((live & RT_TAP) == 0 || message == NULL)
        return id;
    return rt_range_pass_start(d, message, stream, id);
}

uint32_t rt_range_start(struct rt_domain *d, const char *message, void *stream)
{
    ms_assert(d != NULL);
    uint8_t live = atomic_load_explicit(&d->live, memory_order_relaxed);
    if (live == 0)
        return 0;
    if (RT_UNLIKELY(live != RT_RECORD))
        return start_rare(d, message, stream, live);
    const uint32_t id = start_near(d, message, stream);
    return RT_LIKELY(id != 0) ? id : record_start(d, message, stream);
}

uint32_t rt_range_start_event(struct rt_domain *d, const struct rt_event *e)
{
    ms_assert(d != NULL && e != NULL);
    struct rt_ring *r = rt_ring_of_thread();
    if (r == NULL)
        return 0;
    struct mstx_rec rec = {
        .name = e->name, .domain = d->number, .type = MSTX_REC_BEGIN, .flags = e->flags};
    return begin(r, rec, e);
}

RT_COLD static void unknown_range(uint64_t id)
{
    rt_say(RT_SAY_RANGE, 0, "the end of a range that is not open (id %llu) was ignored",
           (unsigned long long)id);
}

RT_COLD static void other_domain(const struct rt_domain *d, uint16_t started)
{
    rt_say(RT_SAY_OTHER_DOMAIN, 0,
           "a range of domain '%s' was ended in domain '%s'; it counts as ended",
           rt_domains[started].name, d->name != NULL ? d->name : "?");
}

/* Fast path of the end of a call: of a range of this thread whose CALL is in the current segment
 * and that no tap received. The segment is not read, as it may have left the cache. */
static inline bool end_in_place(uint64_t id)
{
    struct rt_slot *s = &rt_slots[(uint32_t)id >> RT_GEN_BITS];
    const struct rt_ring *r = rt_tls;
    if (RT_UNLIKELY(r == NULL))
        return false;
    const uint64_t now = rt_ring_ticks(r);
    if (RT_UNLIKELY(atomic_load_explicit(&s->live, memory_order_relaxed) != id))
        return false;
    struct mstx_rec *call = r->rec + s->at;
    /* A handler may change the segment; the test of began detects that. */
    atomic_signal_fence(memory_order_seq_cst);
    if (RT_UNLIKELY(s->ring != r->number || s->at == RT_SLOT_NO_PLACE || s->ticks < r->began))
        return false;
    rt_slot_close(s, (uint32_t)id, true);
    __atomic_store_n(&call->arg, now, __ATOMIC_RELEASE);
    return true;
}

/* Returns further flags for the record. */
static __attribute__((noinline)) uint8_t end_on_device(uint16_t stream, struct mstx_rec rec)
{
    const struct rt_device_calls *device = atomic_load_explicit(&rt_device, memory_order_acquire);
    ms_assert(device != NULL); /* set, as it queued the start of the range */
    return device->end(stream, &rec);
}

/* Ends a range by its id alone: an end in another domain ends the range as well, after a
 * message. */
static bool finish(struct rt_domain *d, uint64_t id, const struct rt_event *e, uint64_t *other)
{
    struct mstx_rec rec = {.ticks = rt_ticks(), .id = id, .type = MSTX_REC_END};
    size_t at = (size_t)(id >> RT_GEN_BITS);
    if (RT_UNLIKELY(id > UINT32_MAX || at / RT_CHUNK >= atomic_load(&rt_slot_chunks)))
        return false;
    struct rt_slot *s = &rt_slots[at];
    rec.name = s->name;
    rec.domain = s->domain;
    rec.arg = s->ticks;
    *other = s->other;
    uint16_t from = s->ring,
             stream = from != RT_SLOT_GHOST && (from & RT_SLOT_ON_DEVICE) ? rt_slot_stream[at] : 0;
    /* The fields read above belong to the range only if the slot still holds its id, which
     * rt_slot_close verifies. */
    const bool is_own = rt_tls != NULL && (from & ~RT_SLOT_ON_DEVICE) == rt_tls->number;
    if (RT_UNLIKELY(!rt_slot_close(s, (uint32_t)id, is_own)))
        return false;
    struct rt_ring *r = from != RT_SLOT_GHOST && rt_is_running() ? rt_ring_of_thread() : NULL;
    if (RT_UNLIKELY(r == NULL))
        return true;
    rec.flags = (uint8_t)(e != NULL ? e->flags : 0);
    if (!is_own)
        rec.flags |= MSTX_F_OTHER_THREAD;
    if (RT_UNLIKELY((from & RT_SLOT_ON_DEVICE) != 0))
        rec.flags |= end_on_device(stream, rec);
    write_event(r, rec, e);
    if (RT_UNLIKELY(rec.domain != d->number))
        other_domain(d, rec.domain);
    return true;
}

uint64_t rt_range_end_event(struct rt_domain *d, uint64_t id, const struct rt_event *e)
{
    uint64_t other = 0;
    if (id != 0 && !finish(d, id, e, &other)) {
        unknown_range(id);
        return 0;
    }
    return other;
}

/* Slow path of an end. A range that was started while recording is ended also after recording
 * stopped. */
static void end(struct rt_domain *d, uint64_t id, const struct rt_event *e)
{
    uint64_t other;
    if (id == 0)
        return;
    if (RT_UNLIKELY(!finish(d, id, e, &other)))
        unknown_range(id);
    else if (RT_UNLIKELY((atomic_load_explicit(&d->live, memory_order_relaxed) & RT_TAP) != 0))
        rt_pass_to_taps(RT_TAP_END, d, NULL, NULL, (uint32_t)id, &other);
}

/* Fast path of the end of a range that this thread started in this domain, without a stream, and
 * that no tap received. */
RT_INLINE bool end_near(const struct rt_domain *d, uint64_t id)
{
    struct rt_ring *r = ring_near();
    struct rt_slot *s = &rt_slots[(uint32_t)id >> RT_GEN_BITS];
    if (RT_UNLIKELY(r == NULL || id - 1 >= UINT32_MAX || !rt_is_running() ||
                    (atomic_load_explicit(&d->live, memory_order_relaxed) & RT_TAP) != 0))
        return false;
    const struct mstx_rec rec = {.ticks = rt_ticks_near(),
                                 .id = id,
                                 .name = s->name,
                                 .domain = d->number,
                                 .type = MSTX_REC_END,
                                 .arg = s->ticks};
    if (RT_UNLIKELY(s->ring != r->number || s->domain != rec.domain ||
                    !rt_slot_close(s, (uint32_t)id, true)))
        return false;
    write1(r, rec);
    return true;
}

void rt_range_end(struct rt_domain *d, uint64_t id)
{
    if (RT_UNLIKELY(d == rt_comm_domain) && rt_tls != NULL && id != 0)
        rt_use_sample(rt_tls);
    if (RT_UNLIKELY(!end_near(d, id)))
        end(d, id, NULL);
}

/* Declared in comm_range.h; defined here beside the functions that it uses. */
RT_HOT __attribute__((visibility("default"))) void mstx_comm_end(uint64_t id)
{
    if (RT_UNLIKELY(id == 0))
        return;
    if (RT_LIKELY(rt_tls != NULL))
        rt_use_sample(rt_tls);
    if (RT_UNLIKELY(!end_in_place(id)))
        end(rt_comm_domain, id, NULL);
}

void rt_range_end_ready(struct rt_domain *d, uint64_t id, const struct mstx_rec *more, uint32_t n)
{
    ms_assert(n > 0 && more != NULL);
    end(d, id, &(struct rt_event){.ready = more, .nready = n});
}

/* ---- push and pop ------------------------------------------------------------------------- */

/* Returns the index of the newest open push of the domain, -1: none. */
static int32_t top_of(const struct rt_ring *r, uint16_t domain)
{
    int32_t i = r->top;
    while (i >= 0 && r->pushes[i].domain != domain)
        i--;
    return i;
}

int rt_push(struct rt_domain *d, const struct rt_event *e)
{
    struct rt_ring *r = rt_ring_of_thread();
    if (r == NULL)
        return -1;
    int32_t below = top_of(r, d->number);
    uint16_t depth = below < 0 ? 0 : (uint16_t)(r->pushes[below].depth + 1);
    if (RT_UNLIKELY(r->top + 1 >= RT_PUSHES)) {
        rt_say(RT_SAY_PUSH, 0,
               "more than %d nested push ranges in a thread; deeper ones are not "
               "recorded",
               RT_PUSHES);
        return -1;
    }
    struct mstx_rec rec = {.id = depth,
                           .name = e->name,
                           .domain = d->number,
                           .type = MSTX_REC_PUSH,
                           .flags = e->flags,
                           .ticks = rt_ticks()};
    struct rt_push *top = &r->pushes[++r->top]; /* a handler that pushes now takes the next one */
    atomic_signal_fence(memory_order_seq_cst);
    *top =
        (struct rt_push){.ticks = rec.ticks, .name = e->name, .domain = d->number, .depth = depth};
    write_event(r, rec, e);
    return depth;
}

/* Removes entry i, which is mostly the top one. */
static struct rt_push pull_push(struct rt_ring *r, int32_t i)
{
    ms_assert(i >= 0 && i <= r->top && r->top < RT_PUSHES);
    struct rt_push p = r->pushes[i];
    memmove(&r->pushes[i], &r->pushes[i + 1], (size_t)(r->top - i) * sizeof r->pushes[0]);
    r->top--;
    return p;
}

int rt_pop(struct rt_domain *d, const struct rt_event *e)
{
    struct mstx_rec rec = {.ticks = rt_ticks(), .domain = d->number, .type = MSTX_REC_POP};
    struct rt_ring *r = rt_tls;
    int32_t i = r == NULL ? -1 : top_of(r, d->number);
    if (i < 0)
        return -1;
    struct rt_push p = pull_push(r, i);
    rec.id = p.depth;
    rec.name = p.name;
    rec.flags = e->flags;
    rec.arg = p.ticks;
    write_event(r, rec, e);
    return p.depth;
}

/* ---- counters and memory -------------------------------------------------------------------- */

void rt_counter(struct rt_domain *d, uint32_t name, uint64_t bits, bool real)
{
    struct rt_ring *r = rt_ring_of_thread();
    if (r == NULL)
        return;
    struct mstx_rec rec = {.name = name,
                           .domain = d->number,
                           .type = MSTX_REC_COUNTER,
                           .flags = (uint8_t)(real ? MSTX_F_REAL : 0),
                           .arg = bits,
                           .ticks = rt_ticks()};
    write1(r, rec);
}

void rt_memory(struct rt_domain *d, uint8_t type, uint64_t id, uint32_t device, uint64_t arg,
               const struct mstx_rec_mem *mem)
{
    ms_assert(mem == NULL || mem->domain == d->number);
    struct rt_ring *r = rt_ring_of_thread();
    struct mstx_rec *to = r == NULL ? NULL : rt_reserve(r, mem != NULL ? 2 : 1);
    if (to == NULL)
        return;
    to[0] = (struct mstx_rec){.ticks = rt_ticks(),
                              .id = id,
                              .name = device,
                              .domain = d->number,
                              .type = type,
                              .flags = (uint8_t)(mem != NULL ? MSTX_F_MORE : 0),
                              .arg = arg};
    if (mem != NULL)
        put_record(to + 1, mem);
    rt_publish(r);
}
