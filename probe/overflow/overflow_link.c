/* SPDX-License-Identifier: MIT
 *
 * overflow_link: finds communication operators that are one event, and the order of the events.
 *
 * Operators with a common tag are joined to groups (union-find). The groups are ordered by the
 * chains of the ranks, a chain being the sequence of communication operators of one rank: a group
 * is ready when it is the next one on every chain that it is part of, and its layer is one more
 * than the largest before it. In a dump with inconsistent calls, groups can wait for each other;
 * then the group with the earliest position goes first.
 */
#include "probe/overflow/overflow_int.h"

#include "probe/base/mem.h"

#include <stdlib.h>

struct net {
    const struct probe__rank *ranks;
    size_t nranks, n;
    struct probe__event *events; /* by rank, in order of each chain */
    uint32_t *base;              /* first event of each rank; nranks + 1 of them */
    uint32_t *waits;             /* of a group's first event: chains on which it is not yet next */
    uint32_t *next_member;       /* linked list of a group's events; n ends the list */
    uint32_t *queue;
    struct ms_map tags;
    MS_VEC(uint32_t) tagged; /* first event with each tag */
};

/* ---- groups ----------------------------------------------------------- */

static uint32_t find(struct net *g, uint32_t i)
{
    while (g->events[i].group != i) {
        g->events[i].group = g->events[g->events[i].group].group;
        i = g->events[i].group;
    }
    return i;
}

/* Joins two groups; the lower event represents the group. */
static void join(struct net *g, uint32_t a, uint32_t b)
{
    a = find(g, a);
    b = find(g, b);
    if (a < b)
        g->events[b].group = a;
    else
        g->events[a].group = b;
}

static enum ms_rc join_by_tags(struct net *g, uint32_t i, struct ms_err *err)
{
    const struct probe__rank *r = &g->ranks[g->events[i].rank];
    const struct probe__comm *c = &r->comms.p[g->events[i].comm];
    for (uint32_t t = 0; t < c->tags; t++) {
        bool added;
        uint32_t id = ms_map_put(&g->tags, r->tags.p[c->first_tag + t], &added);
        uint32_t *slot = id == MS_MAP_NONE ? NULL
                         : added           ? ms_vec_push(&g->tagged)
                                           : &g->tagged.p[id];
        if (slot == NULL)
            return ms_no_memory(err);
        if (added)
            *slot = i;
        else
            join(g, *slot, i);
    }
    return MS_OK;
}

/* ---- order ------------------------------------------------------------ */

static void list_members(struct net *g)
{
    for (size_t i = g->n; i-- != 0;) {
        uint32_t head = find(g, (uint32_t)i);
        g->waits[head]++;
        if (head != i) {
            g->next_member[i] = g->next_member[head];
            g->next_member[head] = (uint32_t)i;
        }
    }
}

static bool is_last_on_chain(const struct net *g, uint32_t i)
{
    return i + 1 == g->base[g->events[i].rank + 1];
}

/* Handles an event that has become the next one on its chain. */
static void arrive(struct net *g, uint32_t i, uint32_t layer, size_t *queued)
{
    uint32_t head = find(g, i);
    if (g->waits[head] == 0)
        return; /* already queued by force_one */
    if (g->events[head].layer < layer)
        g->events[head].layer = layer;
    if (--g->waits[head] == 0)
        g->queue[(*queued)++] = head;
}

/* Queues the group with the earliest position among those that wait for each other; advances
 * *from. */
static void force_one(struct net *g, const uint32_t *by_place, size_t *from, size_t *queued)
{
    for (; *from < g->n; ++*from) {
        uint32_t head = find(g, by_place[*from]);
        if (g->waits[head] != 0) {
            g->waits[head] = 0;
            g->queue[(*queued)++] = head;
            return;
        }
    }
}

/* Sorts events by their position on the chain, then by rank. */
static void sort_by_place(const struct net *g, uint32_t *by_place)
{
    size_t n = 0;
    for (uint32_t place = 0; n < g->n; place++) {
        for (size_t r = 0; r < g->nranks; r++) {
            if (g->base[r] + place < g->base[r + 1])
                by_place[n++] = g->base[r] + place;
        }
    }
}

static void assign_layers(struct net *g, const uint32_t *by_place)
{
    size_t queued = 0, done = 0, from = 0;
    for (size_t r = 0; r < g->nranks; r++) {
        if (g->base[r] < g->base[r + 1])
            arrive(g, g->base[r], 0, &queued);
    }
    for (;; done++) {
        if (done == queued)
            force_one(g, by_place, &from, &queued);
        if (done == queued)
            return;
        uint32_t head = g->queue[done];
        for (uint32_t i = head; i != g->n; i = g->next_member[i]) {
            g->events[i].layer = g->events[head].layer;
            if (!is_last_on_chain(g, i))
                arrive(g, i + 1, g->events[head].layer + 1, &queued);
        }
    }
}

static int by_layer(const void *a, const void *b)
{
    const struct probe__event *x = a, *y = b;
    if (x->layer != y->layer)
        return x->layer < y->layer ? -1 : 1;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->comm > y->comm) - (x->comm < y->comm);
}

/* ---- all of it -------------------------------------------------------- */

static enum ms_rc make_events(struct net *g, struct ms_err *err)
{
    for (size_t r = 0; r < g->nranks; r++) {
        if (g->ranks[r].comms.n > UINT32_MAX - 1 - g->n)
            return ms_fail(err, MS_E_LIMIT, "more than 2^32 communication operators");
        g->n += g->ranks[r].comms.n;
    }
    g->events = ms_calloc(g->n + 1, sizeof *g->events);
    g->base = ms_calloc(g->nranks + 1, sizeof *g->base);
    g->waits = ms_calloc(g->n + 1, sizeof *g->waits);
    g->next_member = ms_calloc(g->n + 1, sizeof *g->next_member);
    g->queue = ms_calloc(g->n + 1, sizeof *g->queue);
    if (g->events == NULL || g->base == NULL || g->waits == NULL || g->next_member == NULL ||
        g->queue == NULL)
        return ms_no_memory(err);
    uint32_t n = 0;
    for (uint32_t r = 0; r < g->nranks; r++) {
        for (uint32_t c = 0; c < g->ranks[r].comms.n; c++, n++) {
            g->events[n] = (struct probe__event){.rank = r, .comm = c, .group = n};
            g->next_member[n] = (uint32_t)g->n;
        }
        g->base[r + 1] = n;
    }
    return MS_OK;
}

static enum ms_rc link_all(struct net *g, struct ms_err *err)
{
    MS_TRY(make_events(g, err));
    for (uint32_t i = 0; i < g->n; i++)
        MS_TRY(join_by_tags(g, i, err));
    uint32_t *by_place = ms_calloc(g->n + 1, sizeof *by_place);
    if (by_place == NULL)
        return ms_no_memory(err);
    list_members(g);
    sort_by_place(g, by_place);
    assign_layers(g, by_place);
    ms_free(by_place);
    for (uint32_t i = 0; i < g->n; i++)
        g->events[i].group = find(g, i);
    qsort(g->events, g->n, sizeof *g->events, by_layer);
    return MS_OK;
}

enum ms_rc probe__overflow_link(const struct probe__rank *ranks, size_t n,
                                struct probe__event **events, size_t *nevents, struct ms_err *err)
{
    struct net g = {.ranks = ranks, .nranks = n};
    enum ms_rc rc = link_all(&g, err);
    *nevents = rc == MS_OK ? g.n : 0;
    *events = rc == MS_OK ? g.events : NULL;
    if (rc != MS_OK)
        ms_free(g.events);
    ms_free(g.base);
    ms_free(g.waits);
    ms_free(g.next_member);
    ms_free(g.queue);
    ms_map_free(&g.tags);
    ms_vec_free(&g.tagged);
    return rc;
}
