/* SPDX-License-Identifier: MIT
 *
 * call_waits: the waits of drawn calls, found again by comparing every call with every other one.
 */
#include "mstx/cluster/call_graph.h"
#include "mstx/format/comm.h"
#include "tests/support/check.h"

enum { RANKS = 4, CALLS = 60, CASES = 1500, KINDS_MOST = 4000, WAITS_MOST = 4000 };
enum { PROGRESS = 1, MARGIN_NS = 20000 };

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

/* Times around the margin that is left to clocks; `wide`: so many sizes that there are many kinds. */
static struct mstx_gcall drawn(bool wide)
{
    static const uint8_t ops[] = {MSTX_COMM_ALLREDUCE, MSTX_COMM_BROADCAST, MSTX_COMM_PUT,
                                  MSTX_COMM_SEND,      MSTX_COMM_SEND,      MSTX_COMM_RECV,
                                  MSTX_COMM_RECV,      MSTX_COMM_SENDRECV,  MSTX_COMM_SENDRECV,
                                  MSTX_COMM_WAIT};
    struct mstx_gcall c = {.rank = below(RANKS), .group = below(2), .tag = (int32_t)below(2)};
    c.op = ops[below(10)];
    c.seq = below(5) != 0 ? below(6) : MSTX_NO_SEQ;
    c.peer = below(6) != 0 ? (int32_t)below(RANKS) : -1;
    c.start_ns = 1000 * (int64_t)below(wide ? 4000 : 200);
    c.end_ns = c.start_ns + 1000 * (int64_t)below(40);
    c.lib = below(5) == 0 ? MSTX_LIB_NCCL : MSTX_LIB_MPI;
    c.flags = below(4) == 0 ? MSTX_CF_ASYNC : 0;
    c.log_bytes = (uint8_t)(wide ? below(60) : below(2));
    return c;
}

/* ---- kinds of candidates and how often they are contradicted ----------------------------------------- */

struct kind {
    int lib, op, other, bytes, root, other_root, async, progress;
    int from, to; /* -1: of all pairs of ranks */
    unsigned instances, contradicted;
};

static struct kind kind[KINDS_MOST];
static int kinds;

static struct kind *kind_of(const struct mstx_gcall *v, const struct mstx_gcall *q, int progress,
                            int from, int to)
{
    const struct kind k = {v->lib,
                           v->op,
                           q->op,
                           v->log_bytes,
                           v->peer == (int)v->rank,
                           q->peer == (int)q->rank,
                           (v->flags & MSTX_CF_ASYNC) != 0,
                           progress,
                           from,
                           to,
                           0,
                           0};
    for (int i = 0; i < kinds; i++) {
        struct kind *o = &kind[i];
        if (o->lib == k.lib && o->op == k.op && o->other == k.other && o->bytes == k.bytes &&
            o->root == k.root && o->other_root == k.other_root && o->async == k.async &&
            o->progress == k.progress && o->from == from && o->to == to)
            return o;
    }
    ck_assert_int_lt(kinds, KINDS_MOST);
    kind[kinds] = k;
    return &kind[kinds++];
}

/* ---- waits ---------------------------------------------------------------------------------------------- */

/* One wait: for all `sources`. */
struct wait {
    uint32_t out, source[RANKS * 8];
    size_t n;
};

static struct wait expected[WAITS_MOST];
static size_t expects;

static const struct mstx_call_graph *g;
static const mstx_gcalls *all;
static int64_t unsure;
static bool counting;

static int64_t time_of(uint32_t point)
{
    return g->point.p[point].at_ns;
}

static uint32_t source_of(const struct mstx_gcall *q, int progress)
{
    if (progress == 0)
        return q->begin;
    return q->lib == MSTX_LIB_MPI && (q->flags & MSTX_CF_ASYNC) != 0 && q->done != MSTX_NO_POINT
               ? q->done - 1
               : MSTX_NO_POINT;
}

static struct wait *expect(uint32_t out)
{
    ck_assert_uint_lt(expects, WAITS_MOST);
    expected[expects] = (struct wait){.out = out};
    return &expected[expects++];
}

static void consider(const struct mstx_gcall *v, const struct mstx_gcall *q)
{
    for (int progress = 0; progress <= PROGRESS; progress++) {
        const uint32_t source = source_of(q, progress);
        if (source == MSTX_NO_POINT || v->done == MSTX_NO_POINT || v->rank == q->rank)
            continue;
        const int64_t late = time_of(source) - time_of(v->done);
        struct kind *every = kind_of(v, q, progress, -1, -1),
                    *pair = kind_of(v, q, progress, (int)q->rank, (int)v->rank);
        if (counting) {
            every->instances++, pair->instances++;
            every->contradicted += late > MARGIN_NS + unsure;
            pair->contradicted += late > MARGIN_NS + unsure;
        } else if (late <= 0 &&
                   (every->contradicted < 0.08 * every->instances ||
                    (pair->instances >= 10 && pair->contradicted < 0.03 * pair->instances))) {
            struct wait *w = expect(v->done);
            w->source[w->n++] = source;
        }
    }
}

static bool is_of_channel(const struct mstx_gcall *c, uint8_t op, uint32_t group, uint32_t src,
                          uint32_t dst, int32_t tag)
{
    if (c->op != op || c->begin == MSTX_NO_POINT || c->peer < 0 || c->group != group ||
        c->tag != tag)
        return false;
    return op == MSTX_COMM_SEND ? c->rank == src && (uint32_t)c->peer == dst
                                : c->rank == dst && (uint32_t)c->peer == src;
}

/* The k-th send of a channel meets its k-th receive; calls are sorted by rank and time. */
static void match_transfers(void)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct mstx_gcall *s = &all->p[i];
        if (!is_of_channel(s, MSTX_COMM_SEND, s->group, s->rank, (uint32_t)s->peer, s->tag))
            continue;
        int k = 0;
        for (size_t a = 0; a < i; a++)
            k += is_of_channel(&all->p[a], MSTX_COMM_SEND, s->group, s->rank, (uint32_t)s->peer,
                               s->tag);
        for (size_t b = 0; b < all->n; b++) {
            const struct mstx_gcall *r = &all->p[b];
            if (is_of_channel(r, MSTX_COMM_RECV, s->group, s->rank, (uint32_t)s->peer, s->tag) &&
                k-- == 0)
                consider(r, s), consider(s, r);
        }
    }
}

static bool is_exchange(const struct mstx_gcall *c, uint32_t group)
{
    return c->op == MSTX_COMM_SENDRECV && c->begin != MSTX_NO_POINT && c->peer >= 0 &&
           c->group == group;
}

/* In the order in which they began, of equal ones by rank, and of one rank as they are. */
static bool begins_before(const struct mstx_gcall *a, const struct mstx_gcall *b)
{
    return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a < b;
}

/* The k-th exchange that is sent to a rank meets the k-th one of that rank. */
static void match_exchanges(void)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct mstx_gcall *s = &all->p[i];
        if (!is_exchange(s, s->group))
            continue;
        size_t k = 0, own;
        for (size_t a = 0; a < all->n; a++)
            k += is_exchange(&all->p[a], s->group) && all->p[a].peer == s->peer &&
                 begins_before(&all->p[a], s);
        for (size_t b = 0; b < all->n; b++) {
            const struct mstx_gcall *r = &all->p[b];
            if (!is_exchange(r, s->group) || r->rank != (uint32_t)s->peer)
                continue;
            own = 0;
            for (size_t a = 0; a < all->n; a++)
                own += is_exchange(&all->p[a], s->group) && all->p[a].rank == r->rank &&
                       begins_before(&all->p[a], r);
            if (own == k)
                consider(r, s), consider(s, r);
        }
    }
}

static bool is_member(const struct mstx_gcall *c, const struct mstx_gcall *of)
{
    const enum mstx_comm_class class = mstx_comm_op_class(c->op);
    return (class == MSTX_CLASS_COLL || class == MSTX_CLASS_ONESIDE) && c->begin != MSTX_NO_POINT &&
           c->seq != MSTX_NO_SEQ && c->group == of->group && c->seq == of->seq;
}

static bool is_root(const struct mstx_gcall *c)
{
    return c->peer == (int)c->rank;
}

static unsigned members_of(const struct mstx_gcall *v)
{
    unsigned n = 0;
    for (size_t i = 0; i < all->n; i++)
        n += is_member(&all->p[i], v);
    return n;
}

static bool is_contradicted(const struct kind *k, double most)
{
    return !(k->contradicted < most * k->instances);
}

/* A member waits for single members of a side where the side as a whole is contradicted: in small collectives, for
 * progress alone. */
static void consider_each(const struct mstx_gcall *v, const struct mstx_gcall *last, bool root,
                          bool is_kind)
{
    for (size_t i = 0; i < all->n && members_of(v) <= 16; i++) {
        const struct mstx_gcall *q = &all->p[i];
        const uint32_t source =
            is_member(q, v) && is_root(q) == root ? source_of(q, PROGRESS) : MSTX_NO_POINT;
        if (source == MSTX_NO_POINT || q->rank == v->rank)
            continue;
        const int64_t late = time_of(source) - time_of(v->done);
        struct kind *pair = kind_of(v, last, PROGRESS, (int)q->rank, (int)v->rank);
        if (counting) {
            pair->instances++;
            pair->contradicted += late > MARGIN_NS + unsure;
        } else if (!is_kind && late <= 0 && pair->instances >= 10 && !is_contradicted(pair, 0.03)) {
            struct wait *w = expect(v->done);
            w->source[w->n++] = source;
        }
    }
}

/* A member waits for those on a side (the roots, or all others) that began. */
static void consider_side(const struct mstx_gcall *v, bool root, int progress)
{
    const struct mstx_gcall *last = NULL;
    uint32_t latest = MSTX_NO_POINT;
    unsigned n = 0, until = 0, tolerated = 0, own = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct mstx_gcall *q = &all->p[i];
        const uint32_t source =
            is_member(q, v) && is_root(q) == root ? source_of(q, progress) : MSTX_NO_POINT;
        if (source == MSTX_NO_POINT)
            continue;
        last = q;
        n++;
        own += q == v;
        tolerated +=
            v->done != MSTX_NO_POINT && time_of(source) <= time_of(v->done) + MARGIN_NS + unsure;
        if (v->done == MSTX_NO_POINT || time_of(source) > time_of(v->done))
            continue;
        until++;
        if (latest == MSTX_NO_POINT || time_of(source) > time_of(latest) ||
            (time_of(source) == time_of(latest) && source > latest))
            latest = source;
    }
    if (v->done == MSTX_NO_POINT || n == own)
        return;
    struct kind *k = kind_of(v, last, progress, -1, -1);
    if (counting) {
        k->instances += n - own;
        k->contradicted += n - tolerated;
    }
    if (progress == PROGRESS)
        consider_each(v, last, root, !is_contradicted(k, 0.08));
    if (counting || is_contradicted(k, 0.08))
        return;
    if (until == n && n > 1) {
        struct wait *w = expect(v->done);
        for (size_t i = 0; i < all->n; i++) {
            const struct mstx_gcall *q = &all->p[i];
            if (is_member(q, v) && is_root(q) == root && source_of(q, progress) != MSTX_NO_POINT)
                w->source[w->n++] = source_of(q, progress);
        }
    } else if (until != 0 && g->point.p[latest].rank != v->rank) {
        struct wait *w = expect(v->done);
        w->source[w->n++] = latest;
    }
}

static void match_collectives(void)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct mstx_gcall *v = &all->p[i];
        for (int progress = 0; progress <= PROGRESS && is_member(v, v); progress++) {
            consider_side(v, false, progress);
            consider_side(v, true, progress);
        }
    }
}

/* ---- beside each other -------------------------------------------------------------------------------- */

static int by_value(const void *pa, const void *pb)
{
    const uint32_t *a = pa, *b = pb;
    return *a < *b ? -1 : *a > *b;
}

static struct wait wait_of(const struct mstx_waits *w, size_t i)
{
    struct wait x = {.out = w->wait.p[i].out};
    const uint32_t source = w->wait.p[i].source, gate = source & ~MSTX_GATE;
    if ((source & MSTX_GATE) == 0) {
        x.source[x.n++] = source;
        return x;
    }
    for (uint32_t k = w->gate_first.p[gate]; k < w->gate_first.p[gate + 1]; k++)
        x.source[x.n++] = w->gate_source.p[k];
    return x;
}

/* Each wait is expected, as often as it is there. */
static void check_waits(const struct mstx_waits *w, unsigned seed)
{
    ck_assert_msg(w->wait.n == expects, "seed %u: %zu waits, not %zu", seed, (size_t)w->wait.n,
                  expects);
    for (size_t i = 0; i < expects; i++)
        qsort(expected[i].source, expected[i].n, sizeof(uint32_t), by_value);
    for (size_t i = 0; i < w->wait.n; i++) {
        struct wait x = wait_of(w, i);
        bool found = false;
        qsort(x.source, x.n, sizeof(uint32_t), by_value);
        for (size_t k = 0; k < expects && !found; k++) {
            struct wait *e = &expected[k];
            found = e->out == x.out && e->n == x.n &&
                    memcmp(e->source, x.source, x.n * sizeof(uint32_t)) == 0;
            if (found)
                e->out = MSTX_NO_POINT; /* met */
        }
        ck_assert_msg(found, "seed %u: point %u waits for %u", seed, x.out, x.source[0]);
    }
}

START_TEST(waits_are_those_of_a_slow_search)
{
    size_t waits = 0, most = 0;
    for (unsigned seed = 0; seed < CASES; seed++) {
        struct mstx_call_graph graph = {0};
        struct mstx_waits w;
        mstx_gcalls calls = {0};
        state = seed;
        for (uint32_t i = below(CALLS) + (seed % 8 == 0 ? 3 * CALLS : 0); i > 0; i--)
            *ms_vec_push(&calls) = drawn(seed % 8 == 0);
        unsure = seed % 3 == 0 ? 5000 : 0;
        mstx__call_points(&graph, &calls, RANKS);
        mstx__call_waits(&w, &graph, &calls, unsure);
        ck_assert(!graph.no_memory && !w.no_memory);
        g = &graph, all = &calls;
        kinds = 0, expects = 0;
        for (int pass = 0; pass < 2; pass++) {
            counting = pass == 0;
            match_transfers();
            match_exchanges();
            match_collectives();
        }
        waits += expects;
        most = kinds > (int)most ? (size_t)kinds : most;
        check_waits(&w, seed);
        ms_vec_free(&w.wait);
        ms_vec_free(&w.gate_first);
        ms_vec_free(&w.gate_source);
        ms_vec_free(&calls);
        mstx__call_graph_free(&graph);
    }
    ck_assert_msg(waits > 1000 && most > 128, "%zu waits, %zu kinds", waits,
                  most); /* the table grows */
}
END_TEST

/* A nonblocking all-reduce by recursive doubling, of which rank 3 posts last: ranks 0 and 2 get its data through
 * rank 2, which is waiting already, and rank 1 from rank 3 itself, when that waits too. */
START_TEST(progress_of_a_pair_is_waited_for)
{
    enum { ROUNDS = 12, STEP = 5000000 };
    static const int64_t post[] = {0, 100000, 0, 1000000},
                         in[] = {900000, 1000000, 900000, 1900000},
                         out[] = {1100000, 1950000, 1100000, 1910000};
    struct mstx_call_graph graph = {0};
    struct mstx_waits w;
    mstx_gcalls calls = {0};
    unsigned of_three[RANKS] = {0};
    for (uint32_t r = 0; r < RANKS; r++) {
        for (uint32_t k = 0; k < ROUNDS; k++) {
            const int64_t t = (int64_t)k * STEP;
            *ms_vec_push(&calls) = (struct mstx_gcall){.rank = r,
                                                       .seq = k,
                                                       .peer = -1,
                                                       .op = MSTX_COMM_ALLREDUCE,
                                                       .lib = MSTX_LIB_MPI,
                                                       .flags = MSTX_CF_ASYNC,
                                                       .start_ns = t + post[r],
                                                       .end_ns = t + out[r]};
            *ms_vec_push(&calls) = (struct mstx_gcall){.rank = r,
                                                       .seq = MSTX_NO_SEQ,
                                                       .peer = -1,
                                                       .op = MSTX_COMM_WAIT,
                                                       .lib = MSTX_LIB_MPI,
                                                       .start_ns = t + in[r],
                                                       .end_ns = t + out[r]};
        }
    }
    mstx__call_points(&graph, &calls, RANKS);
    mstx__call_waits(&w, &graph, &calls, 0);
    for (size_t i = 0; i < w.wait.n; i++) {
        const struct mstx_point *to = &graph.point.p[w.wait.p[i].out];
        if ((w.wait.p[i].source & MSTX_GATE) != 0)
            continue;
        const struct mstx_point *from = &graph.point.p[w.wait.p[i].source];
        of_three[to->rank] += from->rank == 3 && from->at_ns % STEP == in[3];
    }
    ck_assert_uint_eq(of_three[0], 0);
    ck_assert_uint_eq(of_three[1], ROUNDS);
    ck_assert_uint_eq(of_three[2], 0);
    ms_vec_free(&w.wait);
    ms_vec_free(&w.gate_first);
    ms_vec_free(&w.gate_source);
    ms_vec_free(&calls);
    mstx__call_graph_free(&graph);
}
END_TEST

TEST_MAIN("call_waits", waits_are_those_of_a_slow_search, progress_of_a_pair_is_waited_for)
