/* SPDX-License-Identifier: MIT
 *
 * comm_range: communication calls as ranges; see the header.
 *
 * Groups are allocated from blocks that are never freed, so a stale pointer is harmless; the
 * definition of a group is written when it is first used in a capture.  The description of an open
 * call, one cache line, is kept beside the slot of its range, for the detection of hangs.
 */
#include "mstx/rt/comm_range.h"

#include "mstx/rt/comm_group.h"
#include "mstx/rt/mark.h"

#define API __attribute__((visibility("default")))

/* ---- calls ------------------------------------------------------------------------------ */

static uint8_t live_now(void)
{
    if (RT_UNLIKELY(rt_comm_domain == NULL))
        rt_comm_prepare();
    const struct rt_domain *d = rt_comm_domain;
    return RT_LIKELY(d != NULL) ? atomic_load_explicit(&d->live, memory_order_relaxed) : 0;
}

API bool mstx_comm_on(void)
{
    return live_now() != 0;
}

/* Calls of one class on one communicator are never concurrent, so no locked instruction is
 * needed. */
static inline uint32_t next_in(struct mstx_group *g, unsigned op)
{
    const unsigned which = MSTX_COMM_SEQUENCE(op);
    if (RT_UNLIKELY(g == NULL || which == MSTX_SEQUENCES))
        return 0;
    uint32_t seq = atomic_load_explicit(&g->seq[which], memory_order_relaxed);
    atomic_store_explicit(&g->seq[which], seq + 1, memory_order_relaxed);
    return seq;
}

API const _Atomic uint8_t *mstx_comm_live(void)
{
    if (rt_comm_domain == NULL)
        rt_comm_prepare();
    return rt_comm_domain != NULL ? &rt_comm_domain->live : NULL;
}

API void mstx_comm_pass(struct mstx_group *g, enum mstx_comm_op op)
{
    next_in(g, op);
}

/* Tells whether the COMM record implies all that a PART record would hold; few calls need a
 * PART. */
static inline bool is_implied(const struct mstx_rec_comm *rec, const struct mstx_comm_call *c)
{
    const struct mstx_rec_comm_part p = mstx_comm_implied(rec);
    return c->tag >= -1 && c->tag <= UINT16_MAX - MSTX_TAG_CODE && c->peer2 == p.peer &&
           c->sent == p.sent && c->received == p.received;
}

static inline struct mstx_rec_comm describe(const struct mstx_comm_call *c)
{
    ms_assert(c->op < MSTX_COMM_OP_COUNT && c->name != NULL);
    struct mstx_rec_comm rec = {
        .count = c->count,
        .group = c->group != NULL ? c->group->number : 0,
        .seq = next_in(c->group, c->op),
        .peer = c->peer,
        .dtype = c->dtype,
        .reduce = c->reduce,
        .type = MSTX_REC_COMM,
        .flags = c->flags,
        .op = c->op,
        .lib = c->lib,
        .elem = c->elem,
    };
    if (rec.elem == 0 && rec.dtype != MSTX_TYPE_NA)
        rec.elem = mstx_comm_type_bytes(rec.dtype);
    if (c->has_part && is_implied(&rec, c))
        rec.tag_code = (uint16_t)(c->tag + MSTX_TAG_CODE);
    else if (c->has_part)
        rec.flags |= MSTX_F_MORE;
    return rec;
}

static __attribute__((noinline)) uint32_t name_anew(struct rt_ring *r,
                                                    const struct mstx_comm_call *c)
{
    const uint32_t id = rt_text_id_of_call(r, c->name);
    if (c->known != NULL)
        atomic_store_explicit(c->known, (uint64_t)r->epoch << 32 | id, memory_order_relaxed);
    return id;
}

/* Returns the text id of the name of a call, cached where the hook has room for it, in a cache line
 * that the call needs anyway. */
static inline uint32_t name_of(struct rt_ring *r, const struct mstx_comm_call *c)
{
    const uint64_t v =
        RT_LIKELY(c->known != NULL) ? atomic_load_explicit(c->known, memory_order_relaxed) : 0;
    return RT_LIKELY(v >> 32 == r->epoch) ? (uint32_t)v : name_anew(r, c);
}

static struct mstx_rec_comm_part part_of(const struct mstx_comm_call *c)
{
    return (struct mstx_rec_comm_part){.sent = c->sent,
                                       .received = c->received,
                                       .peer = c->peer2,
                                       .type = MSTX_REC_COMM_PART,
                                       .tag = c->tag};
}

RT_COLD static uint32_t start_on_stream(struct rt_ring *r, const struct mstx_comm_call *c,
                                        struct mstx_rec_comm rec)
{
    ms_assert(rt_comm_domain != NULL && c->stream != NULL);
    struct mstx_rec more[2];
    const struct mstx_rec_comm_part part = part_of(c);
    memcpy(&more[0], &rec, sizeof rec);
    memcpy(&more[1], &part, sizeof part);
    return rt_range_start_ready(r, rt_comm_domain, name_of(r, c), c->stream, more,
                                (rec.flags & MSTX_F_MORE) != 0 ? 2 : 1);
}

static inline uint32_t start(struct rt_ring *r, const struct mstx_comm_call *c,
                             struct mstx_rec_comm rec)
{
    ms_assert(rt_comm_domain != NULL && c->stream == NULL);
    const bool has_part = (rec.flags & MSTX_F_MORE) != 0;
    const struct rt_call call = rt_call_start(r, rt_comm_domain, name_of(r, c), has_part ? 2 : 1);
    if (RT_UNLIKELY(call.more == NULL))
        return (uint32_t)call.id;
    *(struct mstx_rec_comm *)(void *)call.more = rec;
    if (RT_UNLIKELY(has_part))
        *(struct mstx_rec_comm_part *)(void *)(call.more + 1) = part_of(c);
    rt_publish(r);
    return (uint32_t)call.id;
}

static inline uint32_t record(const struct mstx_comm_call *c, struct mstx_rec_comm rec)
{
    struct rt_ring *r = rt_ring_of_thread();
    if (RT_UNLIKELY(r == NULL))
        return 0;
    if (RT_UNLIKELY(r->comm_range != 0 && rt_range_is_open(r->comm_range)))
        return 0; /* the framework has opened a range for this call itself */
    if (RT_UNLIKELY(c->group != NULL &&
                    atomic_load_explicit(&c->group->epoch, memory_order_relaxed) != r->epoch))
        rt_group_define(c->group);
    const uint32_t id =
        RT_LIKELY(c->stream == NULL) ? start(r, c, rec) : start_on_stream(r, c, rec);
    struct rt_open_call *o = &rt_open_calls[id >> RT_GEN_BITS];
    if (RT_LIKELY(id != 0))
        *o = (struct rt_open_call){rec, c->name, {c->group}, id, r->tid, 0};
    if (RT_UNLIKELY(c->requests != NULL) && id != 0)
        o->requests = c->requests;
    rt_use_sample(r);
    return id;
}

/* Passes the call to the taps, with the text that a framework would use. */
RT_COLD static uint64_t notify_tap(const struct mstx_comm_call *c, struct mstx_rec_comm rec,
                                   uint32_t id)
{
    char text[512];
    mstx_comm_message(text, sizeof text, &rec, c->group != NULL ? c->group->name : "",
                      (uint64_t)(uintptr_t)c->stream);
    return rt_range_pass_start(rt_comm_domain, text, c->stream, id);
}

RT_HOT API uint64_t mstx_comm_begin(const struct mstx_comm_call *c)
{
    const struct mstx_rec_comm rec = describe(c);
    const uint8_t live = live_now();
    const uint32_t id = RT_LIKELY((live & RT_RECORD) != 0) ? record(c, rec) : 0;
    return RT_LIKELY((live & RT_TAP) == 0) ? id : notify_tap(c, rec, id);
}

/* Tells whether the end of a receive repeats what was posted: readers then show the same without
 * it. */
static bool is_as_posted(uint64_t id, const struct mstx_rec_comm_part *end)
{
    ms_assert(id != 0);
    const struct rt_open_call *o = &rt_open_calls[(uint32_t)id >> RT_GEN_BITS];
    const struct mstx_rec_comm_part posted = mstx_comm_implied(&o->rec);
    return o->id == id && o->rec.op == MSTX_COMM_RECV && o->rec.tag_code != 0 &&
           o->rec.peer == end->peer && posted.received == end->received && posted.tag == end->tag;
}

API void mstx_comm_end_received(uint64_t id, uint64_t bytes, int32_t source, int32_t tag)
{
    struct mstx_rec_comm_part part = {
        .received = bytes, .peer = source, .type = MSTX_REC_COMM_PART, .tag = tag};
    struct mstx_rec more;
    if (id == 0 || is_as_posted(id, &part)) {
        mstx_comm_end(id);
        return;
    }
    memcpy(&more, &part, sizeof more);
    if (RT_LIKELY(rt_tls != NULL))
        rt_use_sample(rt_tls);
    rt_range_end_ready(rt_comm_domain, id, &more, 1);
}

/* ---- ranges opened by frameworks -------------------------------------------------------- */

static struct rt_open_call *opened_by_framework(uint64_t id)
{
    struct rt_open_call *o =
        id != 0 && id <= UINT32_MAX ? &rt_open_calls[(uint32_t)id >> RT_GEN_BITS] : NULL;
    return o != NULL && o->id == id && o->name == NULL ? o : NULL;
}

API void mstx_comm_framework_call(uint64_t id, uint32_t seq)
{
    struct rt_open_call *o = opened_by_framework(id);
    if (o != NULL)
        o->rec.seq = seq;
}

API void mstx_comm_framework_async(uint64_t id)
{
    struct rt_open_call *o = opened_by_framework(id);
    if (o != NULL)
        o->rec.flags |= MSTX_CF_ASYNC;
}

API void mstx_comm_framework_wait(uint64_t id)
{
    struct rt_open_call *o = opened_by_framework(id);
    struct rt_ring *r = rt_ring_of_thread();
    if (o == NULL)
        return;
    o->tid = r != NULL ? r->tid : o->tid;
    o->since = rt_ticks();
    o->rec.flags &= (uint8_t)~MSTX_CF_ASYNC;
}

/* Written beside the operation, which is still open, so it is no open call of its own: the detection of
 * hangs reports the operation. */
API uint64_t mstx_comm_framework_wait_begin(void)
{
    static const struct mstx_comm_call wait = {.name = "wait",
                                               .count = 1,
                                               .peer = -1,
                                               .op = MSTX_COMM_WAIT,
                                               .dtype = MSTX_TYPE_NA,
                                               .reduce = MSTX_REDUCE_NONE,
                                               .lib = MSTX_LIB_TORCH};
    struct rt_ring *r = (live_now() & RT_RECORD) != 0 ? rt_ring_of_thread() : NULL;
    if (r == NULL)
        return 0;
    const uint32_t id = start(r, &wait, describe(&wait));
    rt_use_sample(r);
    return id;
}

API void mstx_use_sample(void)
{
    struct rt_ring *r = (live_now() & RT_RECORD) != 0 ? rt_ring_of_thread() : NULL;
    if (r != NULL)
        rt_use_sample_often(r);
}

/* ---- polling calls ---------------------------------------------------------------------------
 *
 * A program that polls (MPI_Test, MPI_Iprobe) millions of times a second is waiting.  So a poll
 * that follows at once extends the range of the previous one and counts, in place, instead of
 * writing a new range:
 *
 *      CALL COMM │ END PART        the first poll, which found nothing
 *                    │   └─ polls  2, 3, 4 ..
 *                    └───── ticks  of the newest poll
 *
 * Progress engines make several polls in turn, so the newest QUESTIONS are kept, as long as they
 * are the newest records of the thread: after any other record of the thread, and after a pause,
 * the next poll begins a range of its own.  A killed process loses nothing.
 */

/* After a pause of more than 10 us the thread did something else, and a poll is a new range. */
enum { PAUSES_A_SECOND = 100000, QUESTIONS = 4 };
/* Highest tick rate assumed until the rate is known. */
static const uint64_t FASTEST_HZ = 4000000000;

struct question {
    const char *name;
    const struct mstx_group *group;
    struct mstx_rec *end; /* the END, with its PART behind it; NULL: none */
};
static __thread struct {
    struct rt_ring *ring;
    uint64_t part; /* part of the ring's file that holds them */
    uint32_t pos;  /* position in the ring after them */
    uint32_t next; /* index of the entry to replace next */
    struct question *asked;
    struct question q[QUESTIONS];
} last __attribute__((tls_model("initial-exec")));

static bool are_newest(const struct rt_ring *r)
{
    return r != NULL && r == last.ring && r->pos == last.pos && r->part == last.part;
}

static bool is_soon(uint64_t then, uint64_t now)
{
    const uint64_t known =
        rt_clock_kind == MSTX_CLOCK_MONOTONIC ? 1000000000 : atomic_load(&rt.tick_hz);
    return now - then <= (known != 0 ? known : FASTEST_HZ) / PAUSES_A_SECOND;
}

static struct question *find(const struct mstx_comm_call *c)
{
    for (int i = 0; i < QUESTIONS; i++) {
        struct question *q = &last.q[i];
        if (q->end != NULL && q->name == c->name && q->group == c->group)
            return q;
    }
    return NULL;
}

API bool mstx_comm_asks_again(const struct mstx_comm_call *c)
{
    const struct rt_ring *r = rt_tls;
    if (!are_newest(r) || r->busy != 0 ||
        atomic_load_explicit(&rt_comm_domain->live, memory_order_relaxed) != RT_RECORD)
        return false;
    last.asked = find(c);
    return last.asked != NULL && is_soon(last.asked->end->ticks, rt_ticks());
}

/* Counts a further poll, up to the limit of the field. The peer becomes -1 when polls name
 * different ones. */
static void count_one(struct rt_ring *r, const struct mstx_comm_call *c, bool found)
{
    ms_assert(last.asked != NULL && last.asked->end->type == MSTX_REC_END);
    struct mstx_rec *end = last.asked->end;
    struct mstx_rec_comm_part *p = (struct mstx_rec_comm_part *)(void *)(end + 1);
    rt_bump(&r->busy, 1);
    __atomic_store_n(&end->ticks, rt_ticks(), __ATOMIC_RELAXED);
    p->polls += p->polls != UINT32_MAX;
    p->peer = p->peer == c->peer ? p->peer : -1;
    rt_publish(r);
    if (found)
        last.asked->end = NULL;
}

static void forget(void)
{
    for (int i = 0; i < QUESTIONS; i++)
        last.q[i].end = NULL;
}

static void remember(uint64_t id, const struct mstx_comm_call *c)
{
    struct rt_ring *r = rt_tls;
    struct mstx_rec *end = r != NULL && r->pos >= 2 && r->busy == 0 ? r->rec + r->pos - 2 : NULL;
    struct question *q = find(c);
    if (end == NULL || r->pos > r->cap || end->type != MSTX_REC_END || end->id != id) {
        forget();
        return;
    }
    q = q != NULL ? q : &last.q[last.next++ % QUESTIONS];
    *q = (struct question){c->name, c->group, end};
    last.ring = r;
    last.part = r->part;
    last.pos = r->pos;
}

/* Tells whether nothing but the start of this call (CALL, COMM and perhaps PART) follows the kept
 * polls. */
static bool is_alone(const struct rt_ring *r, uint64_t id)
{
    const uint32_t n = r->pos - last.pos;
    return r == last.ring && r->part == last.part && n >= 2 && n <= 3 &&
           r->rec[last.pos].type == MSTX_REC_CALL && r->rec[last.pos].id == id;
}

static void ask_once(uint64_t id, const struct mstx_comm_call *c, bool found)
{
    const struct mstx_rec_comm_part part = {
        .peer = c->peer, .type = MSTX_REC_COMM_PART, .tag = -1, .polls = 1};
    struct mstx_rec more;
    if (found || id == 0 || rt_tls == NULL) {
        forget();
        mstx_comm_end(id);
        return;
    }
    if (!is_alone(rt_tls, id))
        forget();
    memcpy(&more, &part, sizeof more);
    rt_range_end_ready(rt_comm_domain, id, &more, 1);
    remember(id, c);
}

API void mstx_comm_asked(uint64_t id, const struct mstx_comm_call *c, bool found)
{
    if (id != MSTX_COMM_AGAIN)
        ask_once(id, c, found);
    else if (are_newest(rt_tls))
        count_one(rt_tls, c, found);
    else /* other records were written during the call */
        ask_once(mstx_comm_begin(c), c, found);
}
