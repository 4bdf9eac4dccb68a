/* SPDX-License-Identifier: MIT
 *
 * call_points: the points of drawn calls, found again in a slow way; times are so few that calls begin
 * and end together all the time.
 */
#include "mstx/cluster/call_graph.h"
#include "mstx/format/comm.h"
#include "tests/support/check.h"

enum { RANKS = 3, CALLS = 14, CASES = 4000 };

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

enum { POLLS = 3 };

static struct mstx_gcall drawn(void)
{
    static const uint8_t ops[] = {MSTX_COMM_ALLREDUCE, MSTX_COMM_SEND,  MSTX_COMM_RECV,
                                  MSTX_COMM_TEST,      MSTX_COMM_PROBE, MSTX_COMM_WAIT,
                                  MSTX_COMM_REQUEST,   MSTX_COMM_LIFE};
    struct mstx_gcall c = {
        .rank = below(RANKS), .seq = below(4), .peer = -1, .polls = below(POLLS)};
    c.start_ns = below(50);
    c.end_ns = c.start_ns + below(20);
    c.thread = below(3) == 0 ? below(4) : 0;
    c.tag = (int32_t)(c.thread * POLLS + c.polls); /* both give way to the points */
    c.op = ops[below(8)];
    c.lib = below(3) == 0 ? MSTX_LIB_TORCH : MSTX_LIB_MPI;
    c.flags = below(4) == 0 ? MSTX_CF_ASYNC : 0;
    return c;
}

/* ---- the same, slowly ----------------------------------------------------------------------------- */

struct span {
    int64_t start, end;
    int call; /* -1: the wait for a call that began before */
    bool post;
};

struct slow {
    struct mstx_gcall call[CALLS];
    struct span span[2 * CALLS];
    struct mstx_point point[4 * CALLS];
    uint32_t begin[CALLS], done[CALLS], thread;
    int calls, spans, points;
};

/* The thread that is first to have made as many calls as any. */
static uint32_t thread_of(const struct slow *s)
{
    int most = 0;
    for (int i = 0; i < s->calls; i++) {
        int n = 0;
        for (int k = 0; k < s->calls; k++)
            n += s->call[k].thread == s->call[i].thread;
        most = n > most ? n : most;
    }
    for (int i = 0; i < s->calls; i++) {
        int n = 0;
        for (int k = 0; k <= i; k++)
            n += s->call[k].thread == s->call[i].thread;
        if (n == most)
            return s->call[i].thread;
    }
    return 0;
}

static bool counts(const struct slow *s, int i)
{
    return s->call[i].thread == s->thread && s->call[i].op != MSTX_COMM_REQUEST &&
           s->call[i].op != MSTX_COMM_LIFE;
}

static bool goes_on(const struct slow *s, int i)
{
    bool another = false;
    for (int k = i + 1; k < s->calls; k++)
        another |= counts(s, k) && s->call[k].start_ns < s->call[i].end_ns;
    return (s->call[i].flags & MSTX_CF_ASYNC) != 0 || (s->call[i].lib == MSTX_LIB_TORCH && another);
}

static bool waits(const struct slow *s, int i)
{
    const struct mstx_gcall *c = &s->call[i];
    bool completes = c->polls > 1;
    for (int k = 0; k < s->calls; k++)
        completes |= counts(s, k) && goes_on(s, k) && s->call[k].end_ns >= c->start_ns &&
                     s->call[k].end_ns <= c->end_ns;
    return completes || (c->op != MSTX_COMM_TEST && c->op != MSTX_COMM_PROBE);
}

/* The last time before t at which the thread entered or left a call, but no earlier than `from`. */
static int64_t last_sign(const struct slow *s, int64_t t, int64_t from)
{
    int64_t last = from;
    for (int k = 0; k < s->calls; k++) {
        const struct mstx_gcall *c = &s->call[k];
        if (!counts(s, k))
            continue;
        if (c->start_ns < t && c->start_ns > last)
            last = c->start_ns;
        if (!goes_on(s, k) && c->end_ns < t && c->end_ns > last)
            last = c->end_ns;
    }
    return last;
}

static bool is_before(const struct span *a, const struct span *b)
{
    if (a->start != b->start)
        return a->start < b->start;
    if (a->end != b->end)
        return a->end > b->end;
    return (uint32_t)a->call < (uint32_t)b->call;
}

static void find_spans(struct slow *s)
{
    s->spans = 0;
    for (int i = 0; i < s->calls; i++) {
        const struct mstx_gcall *c = &s->call[i];
        if (!counts(s, i))
            continue;
        if (goes_on(s, i))
            s->span[s->spans++] = (struct span){c->start_ns, c->start_ns, i, true};
        else if (waits(s, i))
            s->span[s->spans++] = (struct span){c->start_ns, c->end_ns, i, false};
        if (goes_on(s, i) && c->lib == MSTX_LIB_TORCH)
            s->span[s->spans++] =
                (struct span){last_sign(s, c->end_ns, c->start_ns), c->end_ns, -1, false};
    }
    for (int i = 1; i < s->spans; i++) {
        for (int k = i; k > 0 && is_before(&s->span[k], &s->span[k - 1]); k--) {
            const struct span x = s->span[k];
            s->span[k] = s->span[k - 1];
            s->span[k - 1] = x;
        }
    }
}

static int put_point(struct slow *s, int64_t t, uint32_t rank, enum mstx_point_kind kind)
{
    const int n = s->points++;
    if (n > 0 && s->point[n - 1].at_ns >= t)
        t = s->point[n - 1].at_ns + 1;
    s->point[n] = (struct mstx_point){t, rank, (uint8_t)kind};
    return n;
}

static void find_points(struct slow *s, uint32_t rank)
{
    int in = -1;
    s->points = 0;
    for (int i = 0; i < s->calls; i++)
        s->begin[i] = s->done[i] = MSTX_NO_POINT;
    for (int i = 0; i < s->spans; i++) {
        const struct span *p = &s->span[i];
        int begin = in;
        if (in >= 0 && p->start < s->point[in + 1].at_ns) {
            if (p->end > s->point[in + 1].at_ns)
                s->point[in + 1].at_ns = p->end;
        } else if (p->post) {
            begin = put_point(s, p->start, rank, MSTX_POINT_POST);
            in = -1;
        } else {
            begin = in = put_point(s, p->start, rank, MSTX_POINT_IN);
            put_point(s, p->end, rank, MSTX_POINT_OUT);
        }
        if (p->call >= 0) {
            s->begin[p->call] = (uint32_t)begin;
            s->done[p->call] = p->post ? MSTX_NO_POINT : (uint32_t)begin + 1;
        }
    }
}

/* An operation that went on beside the thread ends in the interval around its end. */
static void find_ends(struct slow *s)
{
    for (int i = 0; i < s->calls; i++) {
        const int64_t t = s->call[i].end_ns;
        if (s->begin[i] == MSTX_NO_POINT || s->done[i] != MSTX_NO_POINT)
            continue;
        for (int k = 0; k < s->points; k++) {
            const bool out = s->point[k].kind == MSTX_POINT_OUT;
            if (s->point[k].at_ns > t || (out && s->point[k].at_ns == t)) {
                s->done[i] = out ? (uint32_t)k : MSTX_NO_POINT;
                break;
            }
        }
    }
}

/* ---- beside each other ------------------------------------------------------------------------------- */

static void check_rank(const struct mstx_call_graph *g, const mstx_gcalls *calls, uint32_t rank,
                       unsigned seed)
{
    struct slow s = {0};
    int at[CALLS];
    for (size_t i = 0; i < calls->n; i++) {
        if (calls->p[i].rank == rank) {
            at[s.calls] = (int)i;
            s.call[s.calls] = calls->p[i];
            s.call[s.calls].thread = (uint32_t)calls->p[i].tag / POLLS;
            s.call[s.calls++].polls = (uint32_t)calls->p[i].tag % POLLS;
        }
    }
    s.thread = thread_of(&s);
    find_spans(&s);
    find_points(&s, rank);
    find_ends(&s);
    const uint32_t first = g->first.p[rank];
    ck_assert_msg(g->first.p[rank + 1] - first == (uint32_t)s.points, "seed %u, rank %u", seed,
                  rank);
    ck_assert(s.calls == 0 || g->thread.p[rank] == s.thread);
    for (int i = 0; i < s.points; i++) {
        const struct mstx_point *p = &g->point.p[first + (uint32_t)i];
        ck_assert_msg(p->at_ns == s.point[i].at_ns && p->kind == s.point[i].kind && p->rank == rank,
                      "seed %u, rank %u, point %d: %lld", seed, rank, i, (long long)p->at_ns);
    }
    for (int i = 0; i < s.calls; i++) {
        const struct mstx_gcall *c = &calls->p[at[i]];
        const uint32_t begin = s.begin[i] != MSTX_NO_POINT ? first + s.begin[i] : MSTX_NO_POINT,
                       done = s.done[i] != MSTX_NO_POINT ? first + s.done[i] : MSTX_NO_POINT;
        ck_assert_msg(c->begin == begin && c->done == done, "seed %u, rank %u, call %d: %u, %u",
                      seed, rank, i, c->begin, c->done);
    }
}

static void check_order(const mstx_gcalls *calls)
{
    for (size_t i = 1; i < calls->n; i++) {
        const struct mstx_gcall *a = &calls->p[i - 1], *b = &calls->p[i];
        ck_assert(a->rank < b->rank ||
                  (a->rank == b->rank &&
                   (a->start_ns < b->start_ns ||
                    (a->start_ns == b->start_ns &&
                     (a->end_ns < b->end_ns || (a->end_ns == b->end_ns && a->seq <= b->seq))))));
    }
}

START_TEST(points_are_those_of_a_slow_search)
{
    for (unsigned seed = 0; seed < CASES; seed++) {
        struct mstx_call_graph g = {0};
        mstx_gcalls calls = {0};
        state = seed;
        for (uint32_t i = below(CALLS + 1); i > 0; i--)
            *ms_vec_push(&calls) = drawn();
        mstx__call_points(&g, &calls, RANKS);
        ck_assert(!g.no_memory);
        check_order(&calls);
        ck_assert_uint_eq(g.first.n, RANKS + 1);
        for (uint32_t r = 0; r < RANKS; r++)
            check_rank(&g, &calls, r, seed);
        ms_vec_free(&calls);
        mstx__call_graph_free(&g);
    }
}
END_TEST

TEST_MAIN("call_points", points_are_those_of_a_slow_search)
