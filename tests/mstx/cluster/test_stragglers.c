/* SPDX-License-Identifier: MIT
 *
 * Drawn jobs in which ranks are slow for a while, against a slow second answer: which rank of which
 * communicator works longer than the others, in which steps, and by how much.
 */
#include "mstx/cluster/stragglers.h"

#include "probe/base/mem.h"
#include "tests/support/check.h"

#include <math.h>

enum { CASES = 1500, RANKS = 8, STEPS = 40, GROUPS = 4 };

static uint64_t state;
static struct mstx_cluster c;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

/* ---- a drawn job ------------------------------------------------------------------------------- */

static double own[RANKS][STEPS]; /* time without communication */
static uint32_t steps[RANKS];

static void draw_rank(uint32_t rank, uint32_t n, uint32_t step_ns, uint32_t noise)
{
    const uint32_t from = below(n), to = from + 1 + below(n - from);
    const bool is_slow = below(3) == 0;
    const uint32_t longer = is_slow ? below(step_ns / 4) : 0,
                   always = below(4) == 0 ? below(step_ns / 8) : 0;
    struct mstx_cl_process *p = ms_vec_push(&c.process);
    *p = (struct mstx_cl_process){
        .rank = (int32_t)rank + 100, .first_step = (uint32_t)c.step.n, .steps = n};
    steps[rank] = n;
    int64_t t = 1000 + below(1000);
    for (uint32_t s = 0; s < n; s++) {
        const uint32_t work =
            step_ns / 2 + below(noise) + always + (s >= from && s < to ? longer : 0);
        struct mstx_cl_step *step = ms_vec_push(&c.step);
        *step = (struct mstx_cl_step){.process = rank,
                                      .number = s + 5,
                                      .start_ns = t,
                                      .end_ns = t + step_ns + below(noise),
                                      .comm_ns = 0};
        step->comm_ns = step->end_ns - step->start_ns - work;
        own[rank][s] = work;
        t = step->end_ns + 10;
    }
}

static void draw_group(uint32_t id, uint32_t members)
{
    mstx__cluster_group(&c, id, MS_STR("group"), -1, NULL, 0);
    for (uint32_t r = 0; r < c.process.n; r++) {
        if ((members >> r & 1) != 0)
            *(uint32_t *)ms_vec_push(&c.group.p[id - 1].members) = r;
    }
}

static void draw_job(uint64_t seed)
{
    state = seed;
    c = (struct mstx_cluster){0};
    const uint32_t ranks = 2 + below(RANKS - 1), n = 1 + below(STEPS - 1);
    const uint32_t step_ns = 100000 + below(100000), noise = 50 + below(4000);
    for (uint32_t r = 0; r < ranks; r++)
        draw_rank(r, n + (below(5) == 0 && n + 1 < STEPS), step_ns, noise);
    const uint32_t groups = 1 + below(GROUPS), world = 1 + below(groups);
    for (uint32_t g = 1; g <= groups; g++)
        draw_group(g, g == world ? (1u << ranks) - 1 : 1 + below((1u << ranks) - 1));
}

/* ---- the second answer ---------------------------------------------------------------------------- */

static int by_size(const void *pa, const void *pb)
{
    const double *a = pa, *b = pb;
    return *a > *b ? 1 : *a < *b ? -1 : 0;
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_size);
    return n == 0 ? 0 : (v[(n - 1) / 2] + v[n / 2]) / 2;
}

static struct {
    double cost[RANKS][STEPS]; /* by member */
    double noise, spread;
    uint32_t steps;
} model[GROUPS + 1];

static double step_ns;

/* Deviation of a normal distribution with this median of distances. */
static double deviation(double median_distance)
{
    return 1.4826 * median_distance;
}

static void find_cost(size_t g)
{
    const uint32_t *member = c.group.p[g].members.p;
    const size_t n = c.group.p[g].members.n;
    model[g].steps = n < 2 ? 0 : STEPS;
    for (size_t m = 0; m < n && n > 1; m++)
        model[g].steps = steps[member[m]] < model[g].steps ? steps[member[m]] : model[g].steps;
    for (uint32_t s = 0; s < model[g].steps; s++) {
        for (size_t m = 0; m < n; m++) {
            double others[RANKS];
            size_t k = 0;
            for (size_t o = 0; o < n; o++) {
                if (o != m)
                    others[k++] = own[member[o]][s];
            }
            model[g].cost[m][s] = own[member[m]][s] - median(others, k);
        }
    }
}

/* Noise is the change from step to step, or between members where there are too few steps; spread is
 * what differs between at least five members all the time. */
static void find_noise(size_t g)
{
    const size_t n = c.group.p[g].members.n;
    const uint32_t count = model[g].steps;
    double of_member[RANKS], sums[RANKS];
    for (size_t m = 0; m < n && count != 0; m++) {
        double change[STEPS], sum = 0;
        for (uint32_t s = 0; s < count; s++)
            sum += model[g].cost[m][s];
        for (uint32_t s = 0; s + 1 < count; s++)
            change[s] = fabs(model[g].cost[m][s + 1] - model[g].cost[m][s]);
        sums[m] = fabs(sum / count);
        of_member[m] = count < 3 ? fabs(model[g].cost[m][0]) : median(change, count - 1) / sqrt(2);
    }
    model[g].noise = count != 0 ? fmax(deviation(median(of_member, n)), 0.001 * step_ns) : 0;
    model[g].spread = count != 0 && n >= 5 ? deviation(median(sums, n)) : 0;
}

struct found {
    uint32_t from, to;
    double mean, score;
};

static double mean_cost(size_t g, size_t m, uint32_t from, uint32_t to)
{
    double sum = 0;
    for (uint32_t s = from; s < to; s++)
        sum += model[g].cost[m][s];
    return sum / (to - from);
}

/* The steps whose clipped costs have the greatest sum for their number. */
static struct found find_stretch(size_t g, size_t m, double limit)
{
    const uint32_t n = model[g].steps, least = n < 3 ? 1 : 3;
    const double clip = fmax(3, 1.1 * limit / sqrt(n));
    struct found best = {0, 0, 0, -INFINITY};
    for (uint32_t length = least; length <= n; length++) {
        for (uint32_t from = 0; from + length <= n; from++) {
            double sum = 0;
            for (uint32_t s = from; s < from + length; s++)
                sum += fmax(-clip, fmin(clip, model[g].cost[m][s] / model[g].noise));
            if (sum / sqrt(length) > best.score * (1 + 1e-12) || best.to == 0)
                best = (struct found){from, from + length, 0, sum / sqrt(length)};
        }
    }
    best.mean = mean_cost(g, m, best.from, best.to);
    return best;
}

static bool is_member(size_t g, uint32_t process, size_t *m)
{
    for (*m = 0; *m < c.group.p[g].members.n; ++*m) {
        if (c.group.p[g].members.p[*m] == process)
            return true;
    }
    return false;
}

/* Whether other communicators, but for those that hold all partners, say at least half as much. */
static bool do_others_agree(size_t own_group, uint32_t process, const struct found *f)
{
    for (size_t g = 0; g < c.group.n; g++) {
        size_t m;
        bool has_all = true;
        for (size_t i = 0; i < c.group.p[own_group].members.n; i++)
            has_all &= is_member(g, c.group.p[own_group].members.p[i], &m);
        if (has_all || model[g].steps < f->to || model[g].spread > f->mean / 4 ||
            !is_member(g, process, &m))
            continue;
        if (mean_cost(g, m, f->from, f->to) < f->mean / 2)
            return false;
    }
    return true;
}

/* 1.5 % of a step, or a quarter of the own time of the others. */
static bool is_large(size_t g, size_t m, const struct found *f)
{
    double others = 0;
    size_t n = 0;
    for (size_t i = 0; i < c.group.p[g].members.n; i++) {
        for (uint32_t s = f->from; s < f->to && i != m; s++, n++)
            others += own[c.group.p[g].members.p[i]][s];
    }
    return f->mean > 4 * model[g].spread && f->mean >= 0.002 * step_ns &&
           (f->mean >= 0.015 * step_ns || f->mean >= others / (double)n / 4);
}

/* As a share of the median step, or of the own steps where the cost is longer than that. */
static double share_of(uint32_t process, const struct found *f)
{
    const struct mstx_cl_step *s = &c.step.p[c.process.p[process].first_step];
    double sum = 0;
    for (uint32_t i = f->from; i < f->to; i++)
        sum += (double)(s[i].end_ns - s[i].start_ns);
    return f->mean > step_ns ? f->mean / fmax(f->mean, sum / (f->to - f->from)) : f->mean / step_ns;
}

static size_t noted;

static void check_note(size_t g, uint32_t process, const struct found *f)
{
    ck_assert_uint_lt(noted, c.note.n);
    const struct mstx_cl_note *n = &c.note.p[noted++];
    const struct mstx_cl_step *first = &c.step.p[c.process.p[process].first_step + f->from];
    const double share = share_of(process, f);
    const bool is_whole = f->from < 3 && f->to + 3 > model[g].steps;
    ck_assert_str_eq(n->kind, is_whole ? "straggler" : "fail_slow");
    ck_assert_str_eq(n->severity, share >= 0.1 ? "error" : "warning");
    ck_assert_int_eq(n->rank, c.process.p[process].rank);
    ck_assert_double_eq_tol(n->value, share, 1e-9);
    ck_assert_int_eq(n->first_step, first->number);
    ck_assert_int_eq(n->last_step, (int64_t)f->to - 1 + 5);
    ck_assert_int_eq(n->at_ns, first->start_ns);
}

static void check_group(size_t g, double limit, bool *told)
{
    for (size_t m = 0; m < c.group.p[g].members.n && model[g].steps != 0; m++) {
        const uint32_t process = c.group.p[g].members.p[m];
        const struct found f = find_stretch(g, m, limit);
        if (told[process] || f.score <= limit || !is_large(g, m, &f) ||
            !do_others_agree(g, process, &f))
            continue;
        told[process] = true;
        check_note(g, process, &f);
    }
}

/* Small communicators come first. */
static void check_notes(void)
{
    bool told[RANKS] = {0};
    double all[RANKS * STEPS];
    uint32_t most = 0;
    for (size_t i = 0; i < c.step.n; i++)
        all[i] = (double)(c.step.p[i].end_ns - c.step.p[i].start_ns);
    step_ns = floor(median(all, c.step.n));
    for (size_t r = 0; r < c.process.n; r++)
        most = steps[r] > most ? steps[r] : most;
    const double looks = (double)(c.process.n + 1) * ((double)most * most / 2 + 1);
    for (size_t g = 0; g < c.group.n; g++) {
        find_cost(g);
        find_noise(g);
    }
    noted = 0;
    for (size_t size = 0; size <= RANKS; size++) {
        for (size_t g = 0; g < c.group.n; g++) {
            if (c.group.p[g].members.n == size)
                check_group(g, sqrt(2 * log(looks / 0.001)), told);
        }
    }
    ck_assert_uint_eq(noted, c.note.n);
}

START_TEST(slow_ranks_are_those_of_the_second_answer)
{
    size_t notes = 0;
    for (uint64_t seed = 1; seed < CASES; seed++) {
        draw_job(seed);
        mstx__cluster_stragglers(&c);
        ck_assert(!c.no_memory);
        check_notes();
        notes += noted;
        mstx__cluster_free(&c);
    }
    ck_assert_uint_gt(notes, CASES / 5);
}
END_TEST

TEST_MAIN("stragglers", slow_ranks_are_those_of_the_second_answer)
