/* SPDX-License-Identifier: MIT
 *
 * call_waits: finds the points that each interval waits for.  See call_graph.h.
 *
 * Calls are matched first: the members of a collective, a send with its receive.  Each match gives
 * candidates: points of one rank that an interval of another rank may have waited for.  A kind of
 * candidates is a law when the recorded times contradict few of its instances.
 */
#include "mstx/cluster/call_graph.h"

#include "mstx/cluster/keyed.h"

#include "mstx/format/comm.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"
#include "probe/base/str.h"

#include <stdlib.h>

/* A kind is a law when the contradicted share of its instances is below KIND_MOST, or for one pair
 * of ranks below PAIR_MOST with at least PAIR_LEAST instances. */
static const double KIND_MOST = 0.08, PAIR_MOST = 0.03;
enum { PAIR_LEAST = 10, TOLERANCE_NS = 20000 };
/* In larger collectives the pairs, whose number is the square of their members, are not looked at. */
enum { PAIRED_MOST = 16 };

enum candidate { OF_BEGIN, OF_PROGRESS };

struct law {
    uint64_t key; /* 0: an empty slot */
    uint32_t instances, contradicted;
};

struct matcher {
    struct mstx_waits *w;
    const struct mstx_call_graph *g;
    const struct mstx_gcall *call;
    size_t calls;
    int64_t unsure_ns;
    MS_VEC(struct law) law; /* hash table; size a power of two */
    size_t laws;
    bool is_counting; /* first pass: counts instances; second pass: makes edges */
};

/* ---- laws -------------------------------------------------------------------------- */

static struct law *law_at(struct matcher *m, uint64_t key)
{
    const size_t mask = m->law.n - 1;
    size_t at = (size_t)((key * 0x9E3779B97F4A7C15u) >> 32) & mask;
    while (m->law.p[at].key != 0 && m->law.p[at].key != key)
        at = (at + 1) & mask;
    return &m->law.p[at];
}

static bool grow_laws(struct matcher *m)
{
    struct law *old = m->law.p;
    const size_t n = m->law.n;
    m->law.n = n == 0 ? 256 : 2 * n;
    m->law.p = ms_calloc(m->law.n, sizeof *m->law.p);
    if (m->law.p == NULL) {
        m->law.p = old;
        m->law.n = n;
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (old[i].key != 0)
            *law_at(m, old[i].key) = old[i];
    }
    ms_free(old);
    return true;
}

static void count_instances(struct matcher *m, uint64_t key, uint32_t n, uint32_t contradicted)
{
    if (2 * m->laws >= m->law.n && !grow_laws(m)) {
        m->w->no_memory = true;
        return;
    }
    struct law *l = law_at(m, key);
    m->laws += l->key == 0;
    l->key = key;
    l->instances += n;
    l->contradicted += contradicted;
}

static bool is_law(struct matcher *m, uint64_t key, double most, uint32_t least)
{
    const struct law *l = m->law.n != 0 ? law_at(m, key) : NULL;
    return l != NULL && l->instances >= least && l->contradicted < most * l->instances;
}

/* Returns the key of a kind of candidates: library, operations, size and roles of both calls. */
static uint64_t kind_key(const struct mstx_gcall *v, const struct mstx_gcall *q,
                         enum candidate kind)
{
    const uint64_t v_root = v->peer == (int32_t)v->rank, q_root = q->peer == (int32_t)q->rank;
    const uint64_t v_async = (v->flags & MSTX_CF_ASYNC) != 0;
    return (uint64_t)1 << 40 | (uint64_t)v->lib << 32 | (uint64_t)v->op << 24 |
           (uint64_t)q->op << 16 | (uint64_t)(v->log_bytes & 63) << 8 | v_root << 4 | q_root << 3 |
           v_async << 2 | (uint64_t)kind;
}

static uint64_t pair_key(uint64_t kind, uint32_t from, uint32_t to)
{
    return (kind * 0xD6E8FEB86659FD93u ^ ((uint64_t)from << 32 | to)) | (uint64_t)1 << 63;
}

/* ---- candidates --------------------------------------------------------------------- */

/* Returns the point of q that an interval may wait for, MSTX_NO_POINT when q has none of this
 * kind. */
static uint32_t source_of(const struct mstx_gcall *q, enum candidate kind)
{
    if (kind == OF_BEGIN)
        return q->begin;
    /* a blocking call makes progress from its begin on, so only asynchronous ones have this kind */
    const bool apart = q->lib == MSTX_LIB_MPI && (q->flags & MSTX_CF_ASYNC) != 0;
    return apart && q->done != MSTX_NO_POINT ? q->done - 1 : MSTX_NO_POINT;
}

static int64_t time_of(const struct matcher *m, uint32_t point)
{
    return m->g->point.p[point].at_ns;
}

static void add_wait(struct matcher *m, uint32_t source, uint32_t out)
{
    struct mstx_wait *slot = ms_vec_push(&m->w->wait);
    if (slot == NULL)
        m->w->no_memory = true;
    else
        *slot = (struct mstx_wait){source, out};
}

/* Handles one instance of a candidate between two calls: counts the instance in the first pass,
 * makes an edge in the second one when the kind is a law. */
static void consider_call(struct matcher *m, const struct mstx_gcall *v, const struct mstx_gcall *q,
                          enum candidate kind)
{
    const uint32_t source = source_of(q, kind);
    if (source == MSTX_NO_POINT || v->done == MSTX_NO_POINT || v->rank == q->rank)
        return;
    const int64_t late = time_of(m, source) - time_of(m, v->done);
    const uint64_t key = kind_key(v, q, kind), pair = pair_key(key, q->rank, v->rank);
    if (m->is_counting) {
        const bool contradicted = late > TOLERANCE_NS + m->unsure_ns;
        count_instances(m, key, 1, contradicted);
        count_instances(m, pair, 1, contradicted);
    } else if (late <= 0 &&
               (is_law(m, key, KIND_MOST, 1) || is_law(m, pair, PAIR_MOST, PAIR_LEAST))) {
        add_wait(m, source, v->done);
    }
}

/* ---- sends and receives --------------------------------------------------------------- */

/* Calls with keys: matching calls have the same key and keep the order of ranks and time; value is
 * the call. */
typedef MS_VEC(struct mstx_keyed) keyed_calls;

static void add_keyed(struct matcher *m, keyed_calls *to, uint32_t call, uint64_t key)
{
    struct mstx_keyed *slot = ms_vec_push(to);
    if (slot == NULL)
        m->w->no_memory = true;
    else
        *slot = (struct mstx_keyed){key, call};
}

static void sort_calls(struct matcher *m, keyed_calls *v)
{
    m->w->no_memory = m->w->no_memory || !mstx__keyed_sort(v->p, v->n);
}

/* Returns the key of a channel's sends; its receives have this key plus one. */
static uint64_t channel_key(uint32_t group, uint32_t src, uint32_t dst, int32_t tag, bool is_recv)
{
    const uint64_t h =
        ms_hash_mix(ms_hash_mix(ms_hash_mix(ms_hash_mix(1, group), src), dst), (uint32_t)tag);
    return (h & ~(uint64_t)1) | is_recv;
}

static void consider_pair(struct matcher *m, const struct mstx_gcall *send,
                          const struct mstx_gcall *recv)
{
    for (int k = OF_BEGIN; k <= OF_PROGRESS; k++) {
        consider_call(m, recv, send, (enum candidate)k);
        consider_call(m, send, recv, (enum candidate)k);
    }
}

/* Matches the k-th send of each channel with its k-th receive. */
static void match_channels(struct matcher *m, const keyed_calls *v)
{
    for (size_t i = 0, end, half; i < v->n; i = end) {
        const uint64_t channel = v->p[i].key & ~(uint64_t)1;
        for (half = i; half < v->n && v->p[half].key == channel;)
            half++;
        for (end = half; end < v->n && v->p[end].key == (channel | 1);)
            end++;
        for (size_t k = 0; i + k < half && half + k < end; k++)
            consider_pair(m, &m->call[v->p[i + k].value], &m->call[v->p[half + k].value]);
    }
}

/* MPI_Sendrecv records its destination but not its source: exchanges that arrive at a rank are
 * matched with the rank's own exchanges in the order in which they began. */
enum { ANY_SOURCE = UINT32_MAX };

static int by_begin(const void *pa, const void *pb)
{
    const struct mstx_gcall *const *a = pa, *const *b = pb;
    return MS_ORDER((*a)->start_ns, (*b)->start_ns, MS_ORDER((*a)->rank, (*b)->rank, 0));
}

static void collect_exchanges(struct matcher *m, keyed_calls *to)
{
    MS_VEC(const struct mstx_gcall *) found = {0};
    for (size_t i = 0; i < m->calls; i++) {
        const struct mstx_gcall *c = &m->call[i];
        const bool is = c->op == MSTX_COMM_SENDRECV && c->begin != MSTX_NO_POINT && c->peer >= 0;
        const struct mstx_gcall **slot = is ? ms_vec_push(&found) : NULL;
        m->w->no_memory |= is && slot == NULL;
        if (slot != NULL)
            *slot = c;
    }
    if (found.n != 0)
        qsort(found.p, found.n, sizeof *found.p, by_begin);
    for (size_t i = 0; i < found.n; i++) {
        const struct mstx_gcall *c = found.p[i];
        const uint32_t call = (uint32_t)(c - m->call), dst = (uint32_t)c->peer;
        add_keyed(m, to, call, channel_key(c->group, ANY_SOURCE, dst, 0, false));
        add_keyed(m, to, call, channel_key(c->group, ANY_SOURCE, c->rank, 0, true));
    }
    sort_calls(m, to);
    ms_vec_free(&found);
}

static void collect_transfers(struct matcher *m, keyed_calls *to)
{
    for (uint32_t i = 0; i < m->calls; i++) {
        const struct mstx_gcall *c = &m->call[i];
        if (c->begin == MSTX_NO_POINT || c->peer < 0)
            continue;
        if (c->op == MSTX_COMM_SEND)
            add_keyed(m, to, i, channel_key(c->group, c->rank, (uint32_t)c->peer, c->tag, false));
        else if (c->op == MSTX_COMM_RECV)
            add_keyed(m, to, i, channel_key(c->group, (uint32_t)c->peer, c->rank, c->tag, true));
    }
    sort_calls(m, to);
}

/* ---- collectives ---------------------------------------------------------------------- */

static void collect_collectives(struct matcher *m, keyed_calls *to)
{
    for (uint32_t i = 0; i < m->calls; i++) {
        const struct mstx_gcall *c = &m->call[i];
        const enum mstx_comm_class class = mstx_comm_op_class(c->op);
        if (c->begin != MSTX_NO_POINT && c->seq != MSTX_NO_SEQ &&
            (class == MSTX_CLASS_COLL || class == MSTX_CLASS_ONESIDE))
            add_keyed(m, to, i, (uint64_t)c->group << 32 | c->seq);
    }
    sort_calls(m, to);
}

/* The times at which the members of one side of a collective begin; a side is the root or all
 * others. */
struct moment {
    int64_t at_ns;
    uint32_t point;
};
struct side {
    MS_VEC(struct moment) moment; /* in order of time */
    const struct mstx_gcall *any; /* any member of the side */
    uint32_t gate;                /* MSTX_NO_POINT: not added yet */
};

static int by_moment(const void *pa, const void *pb)
{
    const struct moment *a = pa, *b = pb;
    return MS_ORDER(a->at_ns, b->at_ns, MS_ORDER(a->point, b->point, 0));
}

static bool is_root(const struct mstx_gcall *c)
{
    return c->peer == (int32_t)c->rank;
}

static void gather_side(struct matcher *m, const struct mstx_keyed *p, size_t n, bool root,
                        enum candidate kind, struct side *s)
{
    s->moment.n = 0;
    s->any = NULL;
    s->gate = MSTX_NO_POINT;
    for (size_t i = 0; i < n; i++) {
        const struct mstx_gcall *q = &m->call[p[i].value];
        const uint32_t source = is_root(q) == root ? source_of(q, kind) : MSTX_NO_POINT;
        struct moment *slot = source != MSTX_NO_POINT ? ms_vec_push(&s->moment) : NULL;
        m->w->no_memory |= source != MSTX_NO_POINT && slot == NULL;
        if (slot == NULL)
            continue;
        *slot = (struct moment){time_of(m, source), source};
        s->any = q;
    }
    if (s->moment.n != 0)
        qsort(s->moment.p, s->moment.n, sizeof *s->moment.p, by_moment);
}

/* Returns the number of members that begin no later than t. */
static size_t calls_until(const struct side *s, int64_t t)
{
    size_t low = 0, high = s->moment.n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (s->moment.p[mid].at_ns <= t)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static uint32_t gate_of(struct matcher *m, struct side *s)
{
    if (s->gate != MSTX_NO_POINT)
        return s->gate;
    for (size_t i = 0; i < s->moment.n; i++) {
        uint32_t *slot = ms_vec_push(&m->w->gate_source);
        m->w->no_memory |= slot == NULL;
        if (slot != NULL)
            *slot = s->moment.p[i].point;
    }
    uint32_t *slot = ms_vec_push(&m->w->gate_first);
    m->w->no_memory |= slot == NULL;
    if (slot != NULL)
        *slot = (uint32_t)m->w->gate_source.n;
    s->gate = MSTX_GATE | (uint32_t)(m->w->gate_first.n - 2);
    return s->gate;
}

/* Makes an interval wait for all members of a side.  When inexact clocks put members after the end
 * of the interval, the interval waits only for the latest member before its end. */
static void wait_for_side(struct matcher *m, struct side *s, const struct mstx_gcall *v)
{
    const size_t n = calls_until(s, time_of(m, v->done));
    if (n == s->moment.n && n > 1)
        add_wait(m, gate_of(m, s), v->done);
    else if (n != 0 && m->g->point.p[s->moment.p[n - 1].point].rank != v->rank)
        add_wait(m, s->moment.p[n - 1].point, v->done);
}

/* Handles the members of a side one by one.  Data of a nonblocking collective that goes through several ranks needs
 * progress on some of them alone, so the kind may be contradicted where a pair of ranks is not. */
static void consider_each(struct matcher *m, const struct side *s, const struct mstx_gcall *v,
                          uint64_t key)
{
    for (size_t i = 0; i < s->moment.n; i++) {
        const struct moment *of = &s->moment.p[i];
        const uint32_t from = m->g->point.p[of->point].rank;
        const int64_t late = of->at_ns - time_of(m, v->done);
        const uint64_t pair = pair_key(key, from, v->rank);
        if (from == v->rank)
            continue;
        if (m->is_counting)
            count_instances(m, pair, 1, late > TOLERANCE_NS + m->unsure_ns);
        else if (late <= 0 && is_law(m, pair, PAIR_MOST, PAIR_LEAST))
            add_wait(m, of->point, v->done);
    }
}

static void consider_side(struct matcher *m, const struct mstx_keyed *p, size_t n, bool root,
                          enum candidate kind, struct side *s)
{
    const bool has_pairs = kind == OF_PROGRESS && n <= PAIRED_MOST;
    gather_side(m, p, n, root, kind, s);
    for (size_t i = 0; i < n && s->moment.n != 0; i++) {
        const struct mstx_gcall *v = &m->call[p[i].value];
        const size_t others =
            s->moment.n - (is_root(v) == root && source_of(v, kind) != MSTX_NO_POINT);
        if (v->done == MSTX_NO_POINT || others == 0)
            continue;
        const uint64_t key = kind_key(v, s->any, kind);
        const bool is_kind = !m->is_counting && is_law(m, key, KIND_MOST, 1);
        if (m->is_counting) {
            const int64_t most = time_of(m, v->done) + TOLERANCE_NS + m->unsure_ns;
            count_instances(m, key, (uint32_t)others,
                            (uint32_t)(s->moment.n - calls_until(s, most)));
        } else if (is_kind) {
            wait_for_side(m, s, v);
        }
        if (has_pairs && !is_kind)
            consider_each(m, s, v, key);
    }
}

static void match_collectives(struct matcher *m, const keyed_calls *v)
{
    struct side s = {0};
    for (size_t i = 0, end; i < v->n && !m->w->no_memory; i = end) {
        for (end = i; end < v->n && v->p[end].key == v->p[i].key;)
            end++;
        for (int k = OF_BEGIN; k <= OF_PROGRESS; k++) {
            consider_side(m, v->p + i, end - i, false, (enum candidate)k, &s);
            consider_side(m, v->p + i, end - i, true, (enum candidate)k, &s);
        }
    }
    ms_vec_free(&s.moment);
}

/* ---- all waits -------------------------------------------------------------------------- */

void mstx__call_waits(struct mstx_waits *w, const struct mstx_call_graph *g,
                      const mstx_gcalls *calls, int64_t unsure_ns)
{
    struct matcher m = {
        .w = w, .g = g, .call = calls->p, .calls = calls->n, .unsure_ns = unsure_ns};
    keyed_calls direct = {0}, exchange = {0}, collective = {0};
    *w = (struct mstx_waits){0};
    uint32_t *slot = ms_vec_push(&w->gate_first);
    w->no_memory = slot == NULL;
    if (slot != NULL)
        *slot = 0;
    collect_transfers(&m, &direct);
    collect_exchanges(&m, &exchange);
    collect_collectives(&m, &collective);
    for (int pass = 0; pass < 2 && !w->no_memory; pass++) {
        m.is_counting = pass == 0;
        match_channels(&m, &direct);
        match_channels(&m, &exchange);
        match_collectives(&m, &collective);
    }
    ms_vec_free(&direct);
    ms_vec_free(&exchange);
    ms_vec_free(&collective);
    ms_vec_free(&m.law);
}

void mstx__call_waits_free(struct mstx_waits *w)
{
    ms_vec_free(&w->wait);
    ms_vec_free(&w->gate_first);
    ms_vec_free(&w->gate_source);
}
