/* SPDX-License-Identifier: MIT
 *
 * rt_comm: communication calls as ranges; see rt_comm.h.
 *
 * Groups live in blocks that are never given back, so a stale pointer is harmless; the definition
 * of a group is written when it is first used in a capture.  What a call looks like is kept beside
 * the slot of its range as long as it is open, one cache line, for hang detection.
 */
#include "mstx/rt_comm.h"

#include "mstx/rt.h"

#include <stdio.h>

#define API __attribute__((visibility("default")))

enum { GROUP_NAME = 128, NOTES = 32 };

struct mstx_group {
    _Atomic uint32_t seq[MSTX_SEQUENCES];
    _Atomic uint32_t epoch; /* of the capture that knows it */
    uint32_t number;        /* in captures; 0: ended */
    uint64_t uid;
    int32_t size, rank;
    uint32_t listed, room;
    int32_t *world;
    struct mstx_group *next; /* free one */
    char name[GROUP_NAME];
};

static struct { /* under rt.comm_lock */
    struct mstx_group *free;
    uint32_t groups;
    uint64_t notes[NOTES]; /* hashes of what was said */
    uint32_t noted;
} comm;

struct rt_domain *rt_comm_domain;

/* What is open, by the slot of its range: pages that are never used cost nothing.  A range that a
 * framework opened has no name here: its text tells, should anybody ask. */
static _Alignas(64) struct open_call {
    struct mstx_rec_comm rec;
    const char *name;
    union {
        const struct mstx_group *group; /* of a call with a name */
        const uint64_t *requests;       /* of a WAIT with a name */
        uint64_t since; /* ticks from which on somebody waits for it; 0: the start */
    };
    uint32_t id, tid;
    uint32_t told; /* the id once it was told to hang */
} open_calls[1 << RT_SLOT_BITS];
static_assert(sizeof(struct open_call) <= 64, "a cache line");

/* ---- groups --------------------------------------------------------------------------- */

API uint64_t mstx_group_hash(uint64_t seed, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    uint64_t h = seed ^ 0xCBF29CE484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001B3u;
    h ^= h >> 32;
    return h * 0x9E3779B97F4A7C15u;
}

/* Caller holds comm_lock. */
static bool keep_world(struct mstx_group *g, const struct mstx_group_info *info)
{
    uint32_t n = info->world != NULL && info->size > 0 ? (uint32_t)info->size : 0;
    const uint32_t most =
        (MSTX_TEXT_MAX - sizeof(struct mstx_comm_group) - GROUP_NAME) / sizeof(int32_t);
    n = n < most ? n : most;
    if (n > g->room) {
        char *p = rt_keep(info->world, n * sizeof(int32_t));
        if (p == NULL)
            return false;
        g->world = (int32_t *)(void *)p;
        g->room = n;
    } else if (n > 0) {
        memcpy(g->world, info->world, n * sizeof(int32_t));
    }
    g->listed = n;
    return true;
}

static void fill(struct mstx_group *g, const struct mstx_group_info *info)
{
    g->uid = info->uid;
    g->size = info->size;
    g->rank = info->rank;
    snprintf(g->name, sizeof g->name, "%s", info->name != NULL ? info->name : "");
    if (!keep_world(g, info))
        g->listed = 0;
}

/* Caller holds comm_lock. */
static struct mstx_group *take(void)
{
    struct mstx_group *g = comm.free;
    if (g != NULL) {
        comm.free = g->next;
        return g;
    }
    static const struct mstx_group nothing;
    return (struct mstx_group *)(void *)rt_keep(&nothing, sizeof nothing);
}

RT_COLD static void prepare(void)
{
    if (rt_comm_domain == NULL)
        rt_domain_create(MSTX_COMM_DOMAIN); /* which sets it */
}

API struct mstx_group *mstx_group_new(const struct mstx_group_info *info)
{
    prepare();
    rt_start(false);
    rt_lock(&rt.comm_lock);
    struct mstx_group *g = take();
    if (g != NULL) {
        fill(g, info);
        g->number = ++comm.groups;
        atomic_store(&g->epoch, 0);
        for (int i = 0; i < MSTX_SEQUENCES; i++)
            atomic_store(&g->seq[i], 0);
    }
    rt_unlock(&rt.comm_lock);
    return g;
}

API void mstx_group_end(struct mstx_group *g)
{
    if (g == NULL)
        return;
    rt_lock(&rt.comm_lock);
    if (g->number != 0) { /* a second end would put it on the list twice */
        g->number = 0;
        g->next = comm.free;
        comm.free = g;
    }
    rt_unlock(&rt.comm_lock);
}

API void mstx_group_update(struct mstx_group *g, const struct mstx_group_info *info)
{
    if (g == NULL)
        return;
    rt_lock(&rt.comm_lock);
    if (g->number != 0) {
        fill(g, info);
        atomic_store(&g->epoch, 0);
    }
    rt_unlock(&rt.comm_lock);
}

API uint64_t mstx_group_uid(const struct mstx_group *g)
{
    return g != NULL ? g->uid : 0;
}

API const char *mstx_group_name(const struct mstx_group *g)
{
    return g != NULL ? g->name : "";
}

API _Atomic uint32_t *mstx_group_sequences(struct mstx_group *g)
{
    return g != NULL ? g->seq : NULL;
}

/* Write the definition into the capture at hand. */
RT_COLD static void define(struct mstx_group *g)
{
    static char text[MSTX_TEXT_MAX];
    rt_lock(&rt.comm_lock);
    if (g->number != 0 && atomic_exchange(&g->epoch, rt.epoch) != rt.epoch) {
        struct mstx_comm_group head = {
            .uid = g->uid, .size = g->size, .rank = g->rank, .listed = g->listed};
        size_t n = sizeof head, name = strlen(g->name);
        memcpy(text, &head, sizeof head);
        if (g->listed != 0)
            memcpy(text + n, g->world, g->listed * sizeof(int32_t));
        n += g->listed * sizeof(int32_t);
        memcpy(text + n, g->name, name);
        rt_text_define(MSTX_GROUP, 0, g->number, text, n + name);
    }
    rt_unlock(&rt.comm_lock);
}

/* ---- calls ------------------------------------------------------------------------------ */

static uint8_t live_now(void)
{
    if (RT_UNLIKELY(rt_comm_domain == NULL))
        prepare();
    const struct rt_domain *d = rt_comm_domain;
    return RT_LIKELY(d != NULL) ? atomic_load_explicit(&d->live, memory_order_relaxed) : 0;
}

API bool mstx_comm_on(void)
{
    return live_now() != 0;
}

/* Calls of one class on one communicator come one after the other: no locked instruction. */
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
        prepare();
    return rt_comm_domain != NULL ? &rt_comm_domain->live : NULL;
}

API void mstx_comm_pass(struct mstx_group *g, enum mstx_comm_op op)
{
    next_in(g, op);
}

/* COMM says what a PART would, or that one follows: few calls need it. */
static inline bool is_implied(const struct mstx_rec_comm *rec, const struct mstx_comm_call *c)
{
    const struct mstx_rec_comm_part p = mstx_comm_implied(rec);
    return c->tag >= -1 && c->tag <= UINT16_MAX - MSTX_TAG_CODE && c->peer2 == p.peer &&
           c->sent == p.sent && c->received == p.received;
}

static inline struct mstx_rec_comm describe(const struct mstx_comm_call *c)
{
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

/* The id of the name of a call: kept where the hook has room for it, in a line that it needs anyway. */
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
        return 0; /* the framework marks this call itself */
    if (RT_UNLIKELY(c->group != NULL &&
                    atomic_load_explicit(&c->group->epoch, memory_order_relaxed) != r->epoch))
        define(c->group);
    const uint32_t id =
        RT_LIKELY(c->stream == NULL) ? start(r, c, rec) : start_on_stream(r, c, rec);
    struct open_call *o = &open_calls[id >> RT_GEN_BITS];
    if (RT_LIKELY(id != 0))
        *o = (struct open_call){rec, c->name, {c->group}, id, r->tid, 0};
    if (RT_UNLIKELY(c->requests != NULL) && id != 0)
        o->requests = c->requests;
    return id;
}

/* Whoever listens hears what a framework would have said. */
RT_COLD static uint64_t tell(const struct mstx_comm_call *c, struct mstx_rec_comm rec, uint32_t id)
{
    char text[512];
    mstx_comm_message(text, sizeof text, &rec, c->group != NULL ? c->group->name : "",
                      (uint64_t)(uintptr_t)c->stream);
    return rt_range_tell_start(rt_comm_domain, text, c->stream, id);
}

RT_HOT API uint64_t mstx_comm_begin(const struct mstx_comm_call *c)
{
    const struct mstx_rec_comm rec = describe(c);
    const uint8_t live = live_now();
    const uint32_t id = RT_LIKELY((live & RT_RECORD) != 0) ? record(c, rec) : 0;
    return RT_LIKELY((live & RT_TAP) == 0) ? id : tell(c, rec, id);
}

/* What readers show of a receive whose end says nothing. */
static bool is_as_posted(uint64_t id, const struct mstx_rec_comm_part *end)
{
    const struct open_call *o = &open_calls[(uint32_t)id >> RT_GEN_BITS];
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
    rt_range_end_ready(rt_comm_domain, id, &more, 1);
}

/* ---- what frameworks open themselves -------------------------------------------------------- */

void rt_comm_framework_start(uint32_t id, uint32_t tid)
{
    open_calls[id >> RT_GEN_BITS] =
        (struct open_call){.rec = {.type = MSTX_REC_COMM, .peer = -1}, .id = id, .tid = tid};
}

static struct open_call *opened_by_framework(uint64_t id)
{
    struct open_call *o =
        id != 0 && id <= UINT32_MAX ? &open_calls[(uint32_t)id >> RT_GEN_BITS] : NULL;
    return o != NULL && o->id == id && o->name == NULL ? o : NULL;
}

API void mstx_comm_framework_call(uint64_t id, uint32_t seq)
{
    struct open_call *o = opened_by_framework(id);
    if (o != NULL)
        o->rec.seq = seq;
}

API void mstx_comm_framework_async(uint64_t id)
{
    struct open_call *o = opened_by_framework(id);
    if (o != NULL)
        o->rec.flags |= MSTX_CF_ASYNC;
}

API void mstx_comm_framework_wait(uint64_t id)
{
    struct open_call *o = opened_by_framework(id);
    struct rt_ring *r = rt_ring_of_thread();
    if (o == NULL)
        return;
    o->tid = r != NULL ? r->tid : o->tid;
    o->since = rt_ticks();
    o->rec.flags &= (uint8_t)~MSTX_CF_ASYNC;
}

/* ---- what is open ------------------------------------------------------------------------- */

struct open_walk {
    mstx_comm_open_fn *fn;
    void *arg;
};

/* A send, a receive or a probe: who is at its other end. */
static int32_t peer_of(const struct open_call *o)
{
    const struct mstx_group *g = o->group;
    const int32_t peer = o->rec.peer;
    if (peer < 0 || !mstx_comm_op_has_peer(o->rec.op))
        return -1;
    return (uint32_t)peer < g->listed ? g->world[peer] : g->listed == 0 ? peer : -1;
}

RT_RACY static void tell_open(void *arg, uint32_t id, uint64_t ticks)
{
    const struct open_walk *w = arg;
    const struct open_call o = open_calls[id >> RT_GEN_BITS];
    if (o.id != id) /* being taken at this moment */
        return;
    struct mstx_comm_open open = {
        .id = id, .ticks = ticks, .rec = o.rec, .name = o.name, .tid = o.tid};
    open.is_told = o.told == id;
    open.size = open.peer = -1;
    if (o.name == NULL) {
        open.ticks = o.since != 0 ? o.since : ticks;
        open.text = rt_range_text(id);
    } else if (o.rec.op == MSTX_COMM_WAIT) {
        open.requests = o.requests;
    } else if (o.group != NULL) {
        open.uid = o.group->uid;
        open.size = o.group->size;
        open.peer = peer_of(&o);
        snprintf(open.group, sizeof open.group, "%.95s", o.group->name);
    }
    w->fn(w->arg, &open);
}

void rt_comm_told(uint64_t id)
{
    open_calls[(uint32_t)id >> RT_GEN_BITS].told = (uint32_t)id;
}

API void mstx_comm_each_open(mstx_comm_open_fn *fn, void *arg)
{
    struct open_walk w = {fn, arg};
    if (rt_comm_domain != NULL)
        rt_ranges_each(rt_comm_domain->number, tell_open, &w);
}

static _Atomic(mstx_comm_request_fn *) requests_by;

API void mstx_comm_requests_by(mstx_comm_request_fn *fn)
{
    atomic_store(&requests_by, fn);
}

mstx_comm_request_fn *rt_comm_requests_by(void)
{
    return atomic_load(&requests_by);
}

/* ---- notes ---------------------------------------------------------------------------------- */

API void mstx_comm_note(const char *text)
{
    uint64_t hash = mstx_group_hash(0, text, strlen(text));
    bool is_new = true;
    rt_lock(&rt.comm_lock);
    for (uint32_t i = 0; i < comm.noted; i++)
        is_new &= comm.notes[i] != hash;
    if (is_new && comm.noted < NOTES)
        comm.notes[comm.noted++] = hash;
    else
        is_new = false;
    rt_unlock(&rt.comm_lock);
    if (is_new)
        rt_note(text);
}
