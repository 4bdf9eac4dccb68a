/* SPDX-License-Identifier: MIT
 *
 * overflow: the three phases of the search over the results of the scans.
 *
 * Some operators get an infinity on purpose: masked_fill with -inf is in every attention. Such a
 * record is an answer only when there is no other.
 */
#include "probe/overflow/overflow.h"

#include "probe/base/mem.h"
#include "probe/base/trace.h"
#include "probe/overflow/overflow_int.h"

#include <stdlib.h>

/* ---- communication of all ranks ----------------------------------------------------- */

/* Finds communication operators that are one event, and the order of the events.
 *
 * Operators with a common tag are joined to groups (union-find). The groups are ordered by the
 * chains of the ranks, a chain being the sequence of communication operators of one rank: a group
 * is ready when it is the next one on every chain that it is part of, and its layer is one more
 * than the largest before it. In a dump with inconsistent calls, groups can wait for each other;
 * then the group with the earliest position goes first. */

/* One communication operator among those of all ranks. */
struct event {
    uint32_t rank, comm; /* indices of the rank and of its communication */
    uint32_t group;      /* equal for operators that are one event */
    uint32_t layer;      /* larger than that of every earlier group on any of its ranks */
};

struct net {
    const struct probe__rank *ranks;
    size_t nranks, n;
    struct event *events;  /* by rank, in order of each chain */
    uint32_t *base;        /* first event of each rank; nranks + 1 of them */
    uint32_t *waits;       /* of a group's first event: chains on which it is not yet next */
    uint32_t *next_member; /* linked list of a group's events; n ends the list */
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
    const struct event *x = a, *y = b;
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
            g->events[n] = (struct event){.rank = r, .comm = c, .group = n};
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

/* Links communication operators to groups. events is sorted by layer, then group, then rank; the
 * caller frees it. */
static enum ms_rc link_communication(const struct probe__rank *ranks, size_t n,
                                     struct event **events, size_t *nevents, struct ms_err *err)
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

/* ---- the three phases --------------------------------------------------------------- */

/* The ranks of one step. */
struct step {
    struct probe__rank *ranks;
    size_t n;
    const struct probe__scan_conf *conf;
    struct ms_pool *pool;
    struct event *events; /* made when the first phase has no answer */
    size_t nevents;
    bool linked;
    struct probe_overflow *out;
};

/* ---- reading ---------------------------------------------------------- */

/* Scans one rank. A failure is stored with the rank, and the other ranks are still scanned. */
static bool scan(const struct step *s, struct probe__rank *r, struct ms_pool *pool)
{
    return probe__overflow_scan(r, s->conf, pool, &r->err) == MS_OK;
}

static enum ms_rc scan_item(void *ctx, size_t i, unsigned worker, struct ms_err *err)
{
    struct step *s = ctx;
    (void)worker;
    (void)err;
    s->ranks[i].read = scan(s, &s->ranks[i], NULL);
    return MS_OK;
}

static enum ms_rc keep_failure(struct step *s, const struct probe__rank *r, struct ms_err *err)
{
    struct probe_overflow_failure *slot = ms_vec_push(&s->out->failures);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct probe_overflow_failure){r->place, r->err};
    return MS_OK;
}

static enum ms_rc scan_all(struct step *s, struct ms_err *err)
{
    if (s->n == 1) /* a single dump is read in parts, in parallel */
        s->ranks[0].read = scan(s, &s->ranks[0], s->pool);
    else
        MS_TRY(ms_pool_run(s->pool, s->n, scan_item, s, err));
    for (size_t i = 0; i < s->n; i++) {
        if (!s->ranks[i].read)
            MS_TRY(keep_failure(s, &s->ranks[i], err));
        s->out->read += s->ranks[i].read;
    }
    return MS_OK;
}

/* ---- answers ---------------------------------------------------------- */

static enum ms_rc add_answer(struct step *s, size_t rank, const struct probe__origin *o,
                             enum probe_overflow_phase phase, struct ms_err *err)
{
    struct probe_overflow_answer *slot = ms_vec_push(&s->out->answers);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct probe_overflow_answer){
        .place = s->ranks[rank].place,
        .node = ms_arena_str(s->out->arena, o->name),
        .off = o->off,
        .phase = phase,
        .asked_for = o->asked_for,
        .communication = o->communication,
    };
    return slot->node.p != NULL ? MS_OK : ms_no_memory(err);
}

/* Returns the first operator of a rank that overflows within a segment, or NULL. */
static const struct probe__origin *first_in(const struct probe__rank *r, uint32_t segment,
                                            bool asked_for)
{
    for (size_t i = 0; i < r->origins.n; i++) {
        const struct probe__origin *o = &r->origins.p[i];
        if (o->segment == segment && (asked_for || !o->asked_for))
            return o;
    }
    return NULL;
}

/* Searches before the first communication, or after the last. */
static enum ms_rc search_outside(struct step *s, enum probe_overflow_phase phase, bool asked_for,
                                 struct ms_err *err)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct probe__rank *r = &s->ranks[i];
        uint32_t segment = phase == PROBE_OVERFLOW_BEFORE ? 0 : (uint32_t)r->comms.n;
        const struct probe__origin *o = r->read ? first_in(r, segment, asked_for) : NULL;
        if (o != NULL)
            MS_TRY(add_answer(s, i, o, phase, err));
    }
    return MS_OK;
}

/* ---- between communication -------------------------------------------- */

/* The earliest candidate so far for the operator at fault. */
struct blame {
    bool found;
    uint32_t rank, layer;
    struct probe__origin at;
};

static void accuse_rank(struct blame *b, uint32_t rank, uint32_t layer, struct probe__origin at)
{
    bool earlier = !b->found || layer < b->layer || (layer == b->layer && at.sub < b->at.sub);
    if (earlier)
        *b = (struct blame){true, rank, layer, at};
}

/* Finds the origin of a bad input of a communication: the first operator that overflows since the
 * previous communication or, if none does, the first in the nearest earlier segment that has
 * one. */
static const struct probe__origin *nearest_before(const struct probe__rank *r, uint32_t comm,
                                                  bool asked_for)
{
    const struct probe__origin *found = NULL;
    for (size_t i = r->origins.n; i-- != 0;) {
        const struct probe__origin *o = &r->origins.p[i];
        if (o->segment > comm || (o->asked_for && !asked_for))
            continue;
        if (found != NULL && o->segment != found->segment)
            break;
        found = o;
    }
    return found;
}

static const struct probe__comm *comm_of(const struct step *s, const struct event *e)
{
    return &s->ranks[e->rank].comms.p[e->comm];
}

static uint32_t layer_of(const struct step *s, uint32_t rank, uint32_t comm)
{
    for (size_t i = 0; i < s->nevents; i++) {
        if (s->events[i].rank == rank && s->events[i].comm == comm)
            return s->events[i].layer;
    }
    return 0;
}

/* Judges one group, events [from, to): by its bad inputs, else by its bad outputs. */
static void judge_group(const struct step *s, size_t from, size_t to, bool asked_for,
                        struct blame *b)
{
    bool explained = false;
    for (size_t i = from; i < to; i++) {
        const struct event *e = &s->events[i];
        const struct probe__comm *c = comm_of(s, e);
        if (!c->gives || !c->in_bad)
            continue;
        explained = true;
        const struct probe__origin *o = nearest_before(&s->ranks[e->rank], e->comm, asked_for);
        if (o != NULL)
            accuse_rank(b, e->rank, layer_of(s, e->rank, o->segment), *o);
    }
    for (size_t i = from; i < to && !explained; i++) {
        const struct probe__comm *c = comm_of(s, &s->events[i]);
        if (c->out_bad)
            accuse_rank(
                b, s->events[i].rank, s->events[i].layer,
                (struct probe__origin){c->name, c->off, s->events[i].comm, c->sub, false, true});
    }
}

static size_t group_end(const struct step *s, size_t from)
{
    size_t to = from;
    while (to < s->nevents && s->events[to].layer == s->events[from].layer &&
           s->events[to].group == s->events[from].group)
        to++;
    return to;
}

/* Considers operators that overflow before a communication without their values entering one. */
static void judge_unsent(const struct step *s, bool asked_for, struct blame *b)
{
    for (uint32_t r = 0; r < s->n; r++) {
        const struct probe__rank *rank = &s->ranks[r];
        for (size_t i = 0; i < rank->origins.n; i++) {
            const struct probe__origin *o = &rank->origins.p[i];
            if (o->segment == rank->comms.n || (o->asked_for && !asked_for))
                continue;
            accuse_rank(b, r, layer_of(s, r, o->segment), *o);
            break;
        }
    }
}

static enum ms_rc search_between(struct step *s, bool asked_for, struct ms_err *err)
{
    struct blame b = {0};
    if (!s->linked)
        MS_TRY(link_communication(s->ranks, s->n, &s->events, &s->nevents, err));
    s->linked = true;
    for (size_t i = 0; i < s->nevents; i = group_end(s, i)) {
        /* All groups of a layer are judged before one is chosen. */
        if (b.found && i != 0 && s->events[i].layer != s->events[i - 1].layer)
            break;
        judge_group(s, i, group_end(s, i), asked_for, &b);
    }
    if (!b.found)
        judge_unsent(s, asked_for, &b);
    return b.found ? add_answer(s, b.rank, &b.at, PROBE_OVERFLOW_BETWEEN, err) : MS_OK;
}

/* ---- one step --------------------------------------------------------- */

/* Compares the order of two records. A communication is the last record of the segment that it is
 * counted in. */
static bool is_earlier(const struct probe__origin *a, const struct probe__origin *b)
{
    return a->segment != b->segment ? a->segment < b->segment : b->communication > a->communication;
}

/* Finds the earliest record with NaN or infinity, measured in communications, when no operator
 * introduces one. */
static enum ms_rc search_present(struct step *s, struct ms_err *err)
{
    const struct probe__rank *first = NULL;
    for (size_t i = 0; i < s->n; i++) {
        const struct probe__rank *r = &s->ranks[i];
        if (r->read && r->has_present &&
            (first == NULL || is_earlier(&r->present, &first->present)))
            first = r;
    }
    if (first == NULL)
        return MS_OK;
    return add_answer(s, (size_t)(first - s->ranks), &first->present, PROBE_OVERFLOW_PRESENT, err);
}

static enum ms_rc search(struct step *s, struct ms_err *err)
{
    for (int asked_for = 0; asked_for < 2 && s->out->answers.n == 0; asked_for++) {
        MS_TRY(search_outside(s, PROBE_OVERFLOW_BEFORE, asked_for != 0, err));
        if (s->out->answers.n == 0)
            MS_TRY(search_between(s, asked_for != 0, err));
        if (s->out->answers.n == 0)
            MS_TRY(search_outside(s, PROBE_OVERFLOW_AFTER, asked_for != 0, err));
    }
    return s->out->answers.n == 0 ? search_present(s, err) : MS_OK;
}

static enum ms_rc search_step(struct probe_overflow *o, const struct probe_place *places, size_t n,
                              const struct probe__scan_conf *conf, struct ms_pool *pool,
                              struct ms_err *err)
{
    struct step s = {.n = n, .conf = conf, .pool = pool, .out = o};
    s.ranks = ms_calloc(n, sizeof *s.ranks);
    if (s.ranks == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < n; i++)
        s.ranks[i].place = &places[i];
    enum ms_rc rc = scan_all(&s, err);
    struct ms_span span = ms_span_begin("search");
    if (rc == MS_OK)
        rc = search(&s, err);
    ms_span_end(&span);
    for (size_t i = 0; i < n; i++)
        probe__rank_free(&s.ranks[i]);
    ms_free(s.ranks);
    ms_free(s.events);
    return rc;
}

/* ---- all steps -------------------------------------------------------- */

/* Returns the end of a step; places are in order of part, step and rank. */
static size_t step_end(const struct probe_places *ps, size_t from)
{
    size_t to = from;
    while (to < ps->list.n && ps->list.p[to].part == ps->list.p[from].part &&
           ps->list.p[to].step == ps->list.p[from].step)
        to++;
    return to;
}

static enum ms_rc search_steps(struct probe_overflow *o, const struct probe__scan_conf *conf,
                               struct ms_pool *pool, struct ms_err *err)
{
    const struct probe_places *ps = &o->places;
    for (size_t i = 0; i < ps->list.n && o->answers.n == 0; i = step_end(ps, i))
        MS_TRY(search_step(o, &ps->list.p[i], step_end(ps, i) - i, conf, pool, err));
    if (o->read == 0)
        return *err = o->failures.p[0].err, err->rc;
    return MS_OK;
}

enum ms_rc probe_overflow_find(struct probe_overflow *o, const struct probe_overflow_conf *conf,
                               struct ms_pool *pool, struct ms_err *err)
{
    const struct probe__scan_conf scan = {conf->ignore, conf->nignore,
                                          conf->tolerant ? PROBE_OPEN_TOLERANT : 0};
    struct ms_err own = {0};
    *o = (struct probe_overflow){.tolerant = conf->tolerant};
    MS_TRY(probe_find(&o->places, conf->path, err));
    o->arena = ms_arena_new(SIZE_MAX);
    enum ms_rc rc = o->arena != NULL ? search_steps(o, &scan, pool, &own) : ms_no_memory(&own);
    if (rc != MS_OK) {
        probe_overflow_free(o);
        return ms_fail(err, rc, "%s", own.msg);
    }
    return MS_OK;
}

void probe_overflow_free(struct probe_overflow *o)
{
    ms_vec_free(&o->answers);
    ms_vec_free(&o->failures);
    ms_arena_free(o->arena);
    o->arena = NULL;
    if (o->places.arena != NULL)
        probe_places_free(&o->places);
}
