/* SPDX-License-Identifier: MIT
 *
 * Steps and collectives of drawn ranks against slow second answers: every nanosecond of a step is looked
 * at on its own, and the calls of a collective are found by looking at all of them.
 */
#include "mstx/cluster/join.h"
#include "mstx/cluster/keyed.h"
#include "mstx/cluster/rank_part.h"
#include "mstx/format/comm_rates.h"
#include "tests/support/check.h"

#include <math.h>

enum { END = 400, STEPS = 4, CASES = 3000, RANKS = 5, GROUPS = 3, CALLS = 14 };

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

/* ---- sorting and selecting -------------------------------------------------------------------- */

START_TEST(keys_are_sorted_and_equal_ones_keep_their_order)
{
    static const unsigned bits[] = {1, 4, 11, 12, 22, 23, 40, 63, 64};
    struct mstx_keyed v[300];
    for (uint64_t seed = 1; seed < 200; seed++) {
        state = seed;
        const size_t n = below(300);
        const unsigned b = bits[seed % 9];
        for (size_t i = 0; i < n; i++) {
            const uint64_t r = (uint64_t)below(UINT32_MAX) << 32 | below(UINT32_MAX);
            v[i] = (struct mstx_keyed){r >> (64 - b), (uint32_t)i};
        }
        ck_assert(mstx__keyed_sort(v, n));
        uint64_t seen = 0;
        for (size_t i = 0; i < n; i++) {
            seen += v[i].value;
            ck_assert(i == 0 || v[i - 1].key < v[i].key ||
                      (v[i - 1].key == v[i].key && v[i - 1].value < v[i].value));
        }
        ck_assert_uint_eq(seen, n * (n - (n != 0)) / 2);
    }
}
END_TEST

START_TEST(the_kth_value_has_so_many_below_it)
{
    double v[60], w[60];
    for (state = 1; state < 400; state++) {
        const uint64_t seed = state;
        const size_t n = 1 + below(60), k = below((uint32_t)n);
        size_t less = 0, equal = 0;
        for (size_t i = 0; i < n; i++)
            w[i] = v[i] = below(seed % 2 == 0 ? 5 : 1000);
        const double x = mstx__select(v, n, k);
        for (size_t i = 0; i < n; i++) {
            less += w[i] < x;
            equal += w[i] == x;
        }
        ck_assert(less <= k && k < less + equal);
        state = seed;
    }
}
END_TEST

/* ---- a rank --------------------------------------------------------------------------------- */

static struct {
    bool comm[END], work[END], bubble[END];
} at;

static void draw_spans(mstx_cl_spans *to, bool *covered)
{
    memset(covered, 0, END);
    for (uint32_t n = below(8); n > 0; n--) {
        struct mstx_cl_span *s = ms_vec_push(to);
        s->start = below(END - 1);
        s->end = s->start + 1 + below((uint32_t)(END - s->start) - 1);
        s->end = s->end - s->start > 60 ? s->start + 60 : s->end;
        for (int64_t t = s->start; t < s->end; t++)
            covered[t] = true;
    }
}

static const uint8_t ops[] = {MSTX_COMM_ALLREDUCE, MSTX_COMM_ALLREDUCE, MSTX_COMM_ALLREDUCE,
                              MSTX_COMM_BROADCAST, MSTX_COMM_REDUCE,    MSTX_COMM_ALLTOALL_V,
                              MSTX_COMM_GATHER,    MSTX_COMM_SEND,      MSTX_COMM_WAIT};

static void draw_call(struct mstx_cl_part *p, uint32_t i, bool mixed)
{
    struct mstx_cl_call *k = ms_vec_push(&p->calls);
    *k = (struct mstx_cl_call){.start_ns = below(END),
                               .dur_ns = below(50),
                               .bytes = below(10) == 0 ? 8 : 4,
                               .group = 1 + i % GROUPS,
                               .seq = 100 + i / GROUPS,
                               .op = ops[mixed && below(6) == 0 ? below(9) : i % GROUPS],
                               .dtype = below(12) == 0,
                               .flags = below(15) == 0 ? MSTX_CF_ASYNC : 0,
                               .unfinished = below(12) == 0};
    if (below(40) == 0)
        k->group = below(2) == 0 ? 0 : GROUPS + 1;
}

static void draw_part(struct mstx_cl_part *p, int32_t rank)
{
    *p = (struct mstx_cl_part){.rank = rank,
                               .host = below(2) == 0 ? MS_STR("a") : MS_STR("b"),
                               .knows_work = below(2) == 0};
    draw_spans(&p->comm, at.comm);
    draw_spans(&p->work, at.work);
    draw_spans(&p->bubble, at.bubble);
    for (int64_t i = 0, t = below(40); i < STEPS; i++) {
        struct mstx_cl_step *s = ms_vec_push(&p->steps);
        *s = (struct mstx_cl_step){
            .number = (uint32_t)i + 7, .start_ns = t, .end_ns = t + below(80)};
        t = s->end_ns + below(30);
    }
    const bool mixed = below(2) == 0;
    for (uint32_t i = 0; i < CALLS; i++) {
        if (below(10) != 0)
            draw_call(p, i, mixed);
        if (below(60) == 0)
            draw_call(p, i, mixed); /* the same number twice */
    }
}

static void check_step(const struct mstx_cl_step *s, bool knows_work)
{
    int64_t comm = 0, work = 0, both = 0, none = 0, bubble = 0, first = s->end_ns;
    for (int64_t t = s->start_ns; t < s->end_ns && t < END; t++) {
        comm += at.comm[t];
        work += at.work[t];
        both += at.comm[t] && at.work[t];
        bubble += at.bubble[t];
        if ((at.comm[t] || at.work[t]) && t < first)
            first = t;
    }
    none = s->end_ns - s->start_ns - comm - work + both;
    ck_assert_int_eq(s->comm_ns, comm);
    ck_assert_int_eq(s->bubble_ns, bubble);
    ck_assert_int_eq(s->computing_ns, knows_work ? work : s->end_ns - s->start_ns - comm);
    ck_assert_int_eq(s->overlapped_ns, knows_work ? both : 0);
    ck_assert_int_eq(s->free_ns, knows_work ? none : 0);
    ck_assert_int_eq(s->preparing_ns, knows_work ? first - s->start_ns : 0);
}

static struct mstx_cluster c;
static struct mstx_cl_part part[RANKS];

static void draw_cluster(uint64_t seed, bool checks_steps)
{
    state = seed;
    c = (struct mstx_cluster){0};
    for (uint32_t g = 1; g <= GROUPS; g++)
        mstx__cluster_group(&c, g, MS_STR("group"), below(4) == 0 ? -1 : RANKS, NULL, 0);
    for (int32_t r = 0; r < RANKS; r++) {
        draw_part(&part[r], r);
        mstx__cluster_part(&c, &part[r]);
        for (size_t i = 0; checks_steps && i < STEPS; i++)
            check_step(&c.step.p[(size_t)r * STEPS + i], part[r].knows_work);
    }
    ck_assert(!c.no_memory);
    ck_assert_uint_eq(c.step.n, RANKS * STEPS);
}

static void free_cluster(void)
{
    for (int r = 0; r < RANKS; r++)
        mstx__cluster_part_free(&part[r]);
    mstx__cluster_free(&c);
}

START_TEST(each_nanosecond_of_a_step_is_counted)
{
    for (uint64_t seed = 1; seed < CASES; seed++) {
        draw_cluster(seed, true);
        free_cluster();
    }
}
END_TEST

/* ---- calls ------------------------------------------------------------------------------------ */

static bool is_collective(uint8_t op)
{
    return op != MSTX_COMM_SEND && op != MSTX_COMM_WAIT;
}

/* The step that holds the start of a call. */
static uint32_t step_of(uint32_t process, int64_t t)
{
    for (uint32_t i = 0; i < STEPS; i++) {
        const struct mstx_cl_step *s = &c.step.p[process * STEPS + i];
        if (s->start_ns <= t && t < s->end_ns)
            return process * STEPS + i;
    }
    return MSTX_NO_STEP;
}

START_TEST(calls_are_counted_by_their_communicator_and_step)
{
    for (uint64_t seed = 1; seed < CASES; seed++) {
        size_t colls = 0, p2ps = 0, calls[GROUPS] = {0};
        draw_cluster(seed, false);
        for (int r = 0; r < RANKS; r++) {
            for (size_t i = 0; i < part[r].calls.n; i++) {
                const struct mstx_cl_call *k = &part[r].calls.p[i];
                const bool has_group = k->group >= 1 && k->group <= GROUPS;
                colls += has_group && is_collective(k->op);
                p2ps += has_group && k->op == MSTX_COMM_SEND;
                if (has_group && is_collective(k->op))
                    calls[k->group - 1]++;
            }
        }
        ck_assert_uint_eq(c.coll.n, colls);
        ck_assert_uint_eq(c.p2p.n, p2ps);
        for (size_t g = 0; g < GROUPS; g++)
            ck_assert_uint_eq(c.group.p[g].calls, calls[g]);
        for (size_t i = 0; i < c.coll.n; i++)
            ck_assert_uint_eq(c.coll.p[i].step, step_of(c.coll.p[i].process, c.coll.p[i].start_ns));
        free_cluster();
    }
}
END_TEST

/* ---- collectives ------------------------------------------------------------------------------- */

static bool is_same(const struct mstx_cl_call *a, const struct mstx_cl_call *b)
{
    const bool sizes =
        a->op == MSTX_COMM_ALLREDUCE || a->op == MSTX_COMM_BROADCAST || a->op == MSTX_COMM_REDUCE;
    return a->op == b->op && (!sizes || (a->bytes == b->bytes && a->dtype == b->dtype));
}

/* What is due to the steps by all collectives so far. */
static int64_t waiting[RANKS * STEPS], blame[RANKS * STEPS];

static void add_waiting(const struct mstx_cl_call *const *k, uint32_t n,
                        const struct mstx_cl_join *j)
{
    int64_t least = INT64_MAX, second = INT64_MAX, most = 0, waited = 0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < n; i++) {
        most = k[i]->dur_ns > most ? k[i]->dur_ns : most;
        if (k[i]->dur_ns < least) {
            least = k[i]->dur_ns;
            last = i;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        waited += k[i]->dur_ns - least;
        if (i != last && k[i]->dur_ns < second)
            second = k[i]->dur_ns;
        if (k[i]->step != MSTX_NO_STEP)
            waiting[k[i]->step] += k[i]->dur_ns - least;
    }
    if (k[last]->step != MSTX_NO_STEP)
        blame[k[last]->step] += second - least;
    ck_assert_int_eq(j->transfer_ns, least);
    ck_assert_int_eq(j->skew_ns, most - least);
    ck_assert_int_eq(j->waited_ns, waited);
    ck_assert_uint_eq(j->last, k[last]->process);
}

static void check_join(const struct mstx_cl_join *j, const struct mstx_cl_call *const *k,
                       uint32_t n)
{
    int64_t start = INT64_MAX;
    uint64_t bytes = 0;
    bool agrees = true, tells = true, once = true;
    for (uint32_t i = 0; i < n; i++) {
        start = k[i]->start_ns < start ? k[i]->start_ns : start;
        bytes = k[i]->bytes > bytes ? k[i]->bytes : bytes;
        agrees &= is_same(k[0], k[i]);
        tells &= (k[i]->flags & MSTX_CF_ASYNC) == 0 && k[i]->unfinished == 0;
        once &= i == 0 || k[i]->process != k[i - 1]->process;
    }
    ck_assert_uint_eq(j->ranks, n);
    ck_assert_int_eq(j->start_ns, start);
    ck_assert_uint_eq(j->bytes, bytes);
    ck_assert_int_eq(j->agrees, agrees);
    ck_assert_uint_eq(j->op, k[0]->op);
    ck_assert_uint_eq(j->step,
                      k[0]->step == MSTX_NO_STEP ? MSTX_NO_STEP : c.step.p[k[0]->step].number);
    const int64_t size = c.group.p[j->group].size;
    const bool all = n >= 2 && (size < 0 || size == n);
    const bool meets = j->op == MSTX_COMM_ALLREDUCE || j->op == MSTX_COMM_ALLTOALL_V;
    if (all && tells && once && agrees && meets) {
        add_waiting(k, n, j);
    } else {
        ck_assert_int_eq(j->transfer_ns, -1);
        ck_assert_uint_eq(j->last, UINT32_MAX);
        ck_assert_int_eq(j->waited_ns, 0);
    }
}

/* The first collective of a group of which ranks are missing while others wait. */
static uint32_t count_missing(uint32_t g, const struct mstx_cl_call *const *k, uint32_t n,
                              bool *noted)
{
    bool came[RANKS] = {0}, waits = false;
    uint32_t missing = 0;
    for (uint32_t i = 0; i < n; i++) {
        came[k[i]->process] = true;
        waits |= k[i]->unfinished != 0;
    }
    if (*noted || !waits || n >= c.group.p[g].members.n)
        return 0;
    for (size_t m = 0; m < c.group.p[g].members.n; m++)
        missing += !came[c.group.p[g].members.p[m]];
    *noted = true;
    return missing;
}

START_TEST(a_collective_is_made_of_all_its_calls)
{
    for (uint64_t seed = 1; seed < CASES; seed++) {
        size_t joins = 0, quarrels = 0, missing = 0;
        bool twice = false;
        memset(waiting, 0, sizeof waiting);
        memset(blame, 0, sizeof blame);
        draw_cluster(seed, false);
        mstx__cluster_find_places(&c);
        mstx__cluster_join(&c);
        ck_assert_uint_eq(c.strange, 0);
        for (uint32_t g = 0; g < GROUPS; g++) {
            bool quarrelled = false, misses = false;
            for (uint32_t seq = 100; seq < 100 + CALLS; seq++) {
                const struct mstx_cl_call *k[RANKS * CALLS];
                uint32_t n = 0;
                for (size_t i = 0; i < c.coll.n; i++) {
                    if (c.coll.p[i].group == g && c.coll.p[i].seq == seq)
                        k[n++] = &c.coll.p[i];
                }
                if (n == 0)
                    continue;
                ck_assert_uint_lt(joins, c.join.n);
                const struct mstx_cl_join *j = &c.join.p[joins++];
                ck_assert(j->group == g && j->seq == seq);
                check_join(j, k, n);
                quarrelled |= !j->agrees;
                for (uint32_t i = 1; i < n; i++)
                    twice |= k[i]->process == k[i - 1]->process;
                missing += count_missing(g, k, n, &misses);
            }
            quarrels += quarrelled;
        }
        ck_assert_uint_eq(c.join.n, joins);
        ck_assert_uint_eq(c.quarrel.n, quarrels);
        if (!twice)
            ck_assert_uint_eq(c.missing.n, missing);
        for (size_t i = 0; i < c.step.n; i++) {
            ck_assert_int_eq(c.step.p[i].waiting_ns, waiting[i]);
            ck_assert_int_eq(c.step.p[i].blame_ns, blame[i]);
        }
        free_cluster();
    }
}
END_TEST

/* Slices end where a call ends, each with as many collectives of the busiest communicator. */
START_TEST(slices_have_equally_many_collectives)
{
    for (uint32_t calls = 1; calls < 140; calls++) {
        struct mstx_cl_part p = {.rank = 0, .host = MS_STR("a")};
        for (uint32_t i = 0; i < calls; i++) {
            struct mstx_cl_call *k = ms_vec_push(&p.calls);
            *k = (struct mstx_cl_call){
                .start_ns = 100 * (int64_t)i, .dur_ns = 10, .group = 2, .op = MSTX_COMM_ALLREDUCE};
            k = ms_vec_push(&p.calls);
            *k = (struct mstx_cl_call){.start_ns = 100 * (int64_t)i + 50,
                                       .group = i % 2 == 0 ? 1 : 3,
                                       .op = MSTX_COMM_ALLREDUCE};
            k = ms_vec_push(&p.calls);
            *k = (struct mstx_cl_call){.group = i % 3 == 0 ? 0 : 2, .op = MSTX_COMM_SEND};
        }
        ck_assert(mstx__cluster_slice(&p));
        const uint32_t each = (calls + 31) / 32;
        ck_assert_uint_eq(p.steps.n, (calls - 1) / each);
        for (size_t i = 0; i < p.steps.n; i++) {
            ck_assert_uint_eq(p.steps.p[i].number, i);
            ck_assert_int_eq(p.steps.p[i].start_ns, 100 * (int64_t)(i * each) + 10);
            ck_assert_int_eq(p.steps.p[i].end_ns, 100 * (int64_t)((i + 1) * each) + 10);
        }
        mstx__cluster_part_free(&p);
    }
}
END_TEST

TEST_MAIN("rows", keys_are_sorted_and_equal_ones_keep_their_order,
          the_kth_value_has_so_many_below_it, each_nanosecond_of_a_step_is_counted,
          calls_are_counted_by_their_communicator_and_step, a_collective_is_made_of_all_its_calls,
          slices_have_equally_many_collectives)
