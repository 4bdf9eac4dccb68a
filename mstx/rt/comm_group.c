/* SPDX-License-Identifier: MIT
 *
 * comm_group: see the header.
 *
 * Groups are in memory that is never freed, so a stale pointer is harmless; the definition of a
 * group is written when it is first used in a capture.
 */
#include "mstx/rt/comm_group.h"

#include <stdio.h>

#include "mstx/rt/domain.h"
#include "mstx/rt/string_file.h"

#define API __attribute__((visibility("default")))

enum { NOTES = 32 };

static struct { /* under rt.comm_lock */
    struct mstx_group *free;
    uint32_t groups;
    uint64_t notes[NOTES]; /* hashes of the notes written so far */
    uint32_t noted;
} comm;

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
        (MSTX_TEXT_MAX - sizeof(struct mstx_comm_group) - RT_GROUP_NAME) / sizeof(int32_t);
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

static void group_fill(struct mstx_group *g, const struct mstx_group_info *info)
{
    ms_assert(atomic_load(&rt.comm_lock.held) == 1 && info != NULL);
    g->uid = info->uid;
    g->size = info->size;
    g->rank = info->rank;
    snprintf(g->name, sizeof g->name, "%s", info->name != NULL ? info->name : "");
    if (!keep_world(g, info))
        g->listed = 0;
}

/* Caller holds comm_lock. */
static struct mstx_group *group_take(void)
{
    ms_assert(atomic_load(&rt.comm_lock.held) == 1);
    struct mstx_group *g = comm.free;
    if (g != NULL) {
        comm.free = g->next;
        return g;
    }
    static const struct mstx_group nothing;
    return (struct mstx_group *)(void *)rt_keep(&nothing, sizeof nothing);
}

RT_COLD void rt_comm_prepare(void)
{
    if (rt_comm_domain == NULL)
        rt_domain_create(MSTX_COMM_DOMAIN); /* sets rt_comm_domain */
}

API struct mstx_group *mstx_group_new(const struct mstx_group_info *info)
{
    rt_comm_prepare();
    rt_start();
    rt_lock(&rt.comm_lock);
    struct mstx_group *g = group_take();
    if (g != NULL) {
        group_fill(g, info);
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
        group_fill(g, info);
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

RT_COLD void rt_group_define(struct mstx_group *g)
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

/* ---- open calls ------------------------------------------------------------------------- */

_Alignas(64) struct rt_open_call rt_open_calls[1 << RT_SLOT_BITS];

void rt_comm_framework_start(uint32_t id, uint32_t tid)
{
    ms_assert(id != 0);
    rt_open_calls[id >> RT_GEN_BITS] =
        (struct rt_open_call){.rec = {.type = MSTX_REC_COMM, .peer = -1}, .id = id, .tid = tid};
}

struct open_walk {
    mstx_comm_open_fn *fn;
    void *arg;
};

/* Returns the peer of a send, a receive or a probe as a rank of the world; -1: not known. */
static int32_t peer_of(const struct rt_open_call *o)
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
    const struct rt_open_call o = rt_open_calls[id >> RT_GEN_BITS];
    if (o.id != id) /* the entry is being filled at this moment */
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

void rt_comm_set_reported(uint64_t id)
{
    ms_assert(id != 0 && id <= UINT32_MAX);
    rt_open_calls[(uint32_t)id >> RT_GEN_BITS].told = (uint32_t)id;
}

API void mstx_comm_each_open(mstx_comm_open_fn *fn, void *arg)
{
    ms_assert(fn != NULL);
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
    ms_assert(text != NULL);
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
