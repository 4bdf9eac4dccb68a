/* SPDX-License-Identifier: MIT
 *
 * stragglers: finds ranks that make the others wait.
 *
 * For each step and communicator, cost is a rank's own time minus the median of the others' own
 * times.  A rank that is slow for some time has a stretch of steps whose mean cost stands out of
 * the noise, the change of cost from one step to the next.  The limit rises with the number of
 * stretches that are tested, so that chance alone makes no straggler.
 */
#include "mstx/cluster/stragglers.h"

#include "mstx/format/note_kinds.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The limits below were chosen by hand.  No benchmark derives them; bench_cluster counts how often
 * the analysis with these limits names the slow rank of simulated runs, and how often it names a
 * rank of clean ones. */

/* A cost below this share of a step is not noted, */
static const double LEAST_SHARE = 0.015;
/* unless it is at least this part of the own time of its partners: with more processes than
 * processors, most of a step is not computing (train_mpi oversubscribed: steps of 1.1 s with 44 ms
 * of computing). */
static const double GREAT_OF_OWN = 0.25, LEAST_THEN = 0.002;
/* Share of a step from which a note is an error. */
static const double GREAT_SHARE = 0.10;
/* Lower bound of the noise: no steps are more regular than this. */
static const double LEAST_NOISE = 0.001;
enum { BLOCKS_MAX = 256, STEPS_SURE = 3 };

/* ---- cost --------------------------------------------------------------------- */

static double own_time(const struct mstx_cl_step *s)
{
    return (double)(s->end_ns - s->start_ns - s->comm_ns);
}

/* Returns the number of steps that all members have. */
static uint32_t common_steps(const struct mstx_cluster *c, const struct mstx_cl_group *g)
{
    uint32_t n = UINT32_MAX;
    for (size_t m = 0; m < g->members.n; m++) {
        const uint32_t has = c->process.p[g->members.p[m]].steps;
        n = has < n ? has : n;
    }
    return g->members.n < 2 ? 0 : n;
}

struct ranked {
    double own;
    uint32_t member;
};

static int by_own(const void *pa, const void *pb)
{
    const struct ranked *a = pa, *b = pb;
    return MS_ORDER(a->own, b->own, MS_ORDER(a->member, b->member, 0));
}

/* Returns the median of n sorted values without the one at index `at`. */
static double median_of_others(const struct ranked *v, size_t n, size_t at)
{
    ms_assert(n >= 2 && at < n);
    const size_t low = (n - 2) / 2, high = (n - 1) / 2;
    return (v[low < at ? low : low + 1].own + v[high < at ? high : high + 1].own) / 2;
}

static bool cost_of_group(struct mstx_cluster *c, struct mstx_cl_group *g, struct ranked *v)
{
    const uint32_t steps = common_steps(c, g);
    const size_t n = g->members.n;
    if (steps == 0)
        return true;
    if (!ms_vec_reserve(&g->cost, n * steps))
        return false;
    g->cost.n = n * steps;
    for (uint32_t s = 0; s < steps; s++) {
        for (uint32_t m = 0; m < n; m++) {
            const struct mstx_cl_process *p = &c->process.p[g->members.p[m]];
            v[m] = (struct ranked){own_time(&c->step.p[p->first_step + s]), m};
        }
        qsort(v, n, sizeof *v, by_own);
        for (size_t i = 0; i < n; i++)
            g->cost.p[v[i].member * (size_t)steps + s] = v[i].own - median_of_others(v, n, i);
    }
    return true;
}

static bool find_costs(struct mstx_cluster *c)
{
    struct ranked *v = ms_calloc(c->process.n + 1, sizeof *v);
    bool ok = v != NULL;
    for (size_t i = 0; i < c->group.n && ok; i++)
        ok = cost_of_group(c, &c->group.p[i], v);
    ms_free(v);
    return ok;
}

static void find_step_time(struct mstx_cluster *c)
{
    double *v = ms_calloc(c->step.n + 1, sizeof *v);
    if (v == NULL) {
        c->no_memory = true;
        return;
    }
    for (size_t i = 0; i < c->step.n; i++)
        v[i] = (double)(c->step.p[i].end_ns - c->step.p[i].start_ns);
    c->step_ns = (int64_t)mstx__median(v, c->step.n);
    ms_free(v);
}

/* ---- noise -------------------------------------------------------------------- */

static const double MAD_TO_DEVIATION = 1.4826;

static double row_noise(const double *cost, uint32_t steps, double *scratch)
{
    ms_assert(steps >= STEPS_SURE);
    for (uint32_t s = 0; s + 1 < steps; s++)
        scratch[s] = fabs(cost[s + 1] - cost[s]);
    return mstx__median(scratch, steps - 1) * MAD_TO_DEVIATION / sqrt(2);
}

/* Returns the change of a rank's cost from step to step, as the median over the members; in a group
 * with too few steps, the difference between members. */
static double noise_of(const struct mstx_cl_group *g, uint32_t steps, double *scratch,
                       double *of_member)
{
    ms_assert(steps >= 1 && g->cost.n == g->members.n * steps);
    const size_t n = g->members.n;
    if (steps >= STEPS_SURE) {
        for (size_t m = 0; m < n; m++)
            of_member[m] = row_noise(g->cost.p + m * steps, steps, scratch);
        return mstx__median(of_member, n);
    }
    for (size_t m = 0; m < n; m++)
        of_member[m] = fabs(g->cost.p[m * steps]);
    return mstx__median(of_member, n) * MAD_TO_DEVIATION;
}

/* Returns the permanent difference between members over all steps, which makes no member a
 * straggler. */
static double spread_of(const struct mstx_cl_group *g, uint32_t steps, double *of_member)
{
    ms_assert(steps >= 1);
    const size_t n = g->members.n;
    if (n < 5)
        return 0;
    for (size_t m = 0; m < n; m++) {
        double sum = 0;
        for (uint32_t s = 0; s < steps; s++)
            sum += g->cost.p[m * steps + s];
        of_member[m] = fabs(sum / steps);
    }
    return mstx__median(of_member, n) * MAD_TO_DEVIATION;
}

/* ---- stretches ------------------------------------------------------------------ */

struct stretch {
    uint32_t from, to; /* steps [from, to) */
    double mean;
    double score; /* sum of the cost over the standard deviation of its noise */
};

/* The cost of a step is clipped at this many deviations, so that one long pause makes no
 * straggler. */
static const double CLIP = 3;

static double mean_of(const double *cost, uint32_t from, uint32_t to)
{
    ms_assert(from < to);
    double sum = 0;
    for (uint32_t s = from; s < to; s++)
        sum += cost[s];
    return sum / (to - from);
}

static double clipped_mean(const double *cost, uint32_t from, uint32_t to, double noise,
                           double clip)
{
    ms_assert(from < to && noise > 0);
    double sum = 0;
    for (uint32_t s = from; s < to; s++)
        sum += fmax(-clip, fmin(clip, cost[s] / noise));
    return sum / sqrt(to - from);
}

/* Returns the stretch of blocks of steps with the greatest score.  The clipping allows a single
 * step to reach the limit only when there are no more steps. */
static struct stretch best_stretch(const double *cost, uint32_t steps, double noise, double limit,
                                   double *prefix)
{
    ms_assert(steps >= 1 && noise > 0);
    const uint32_t block = (steps + BLOCKS_MAX - 1) / BLOCKS_MAX, blocks = steps / block;
    const uint32_t shortest = blocks < STEPS_SURE ? 1 : STEPS_SURE;
    const double clip = fmax(CLIP, 1.1 * limit / sqrt(steps));
    struct stretch best = {0, steps, 0, -INFINITY};
    prefix[0] = 0;
    for (uint32_t i = 0; i < blocks; i++)
        prefix[i + 1] = prefix[i] + clipped_mean(cost, i * block, (i + 1) * block, noise, clip);
    for (uint32_t n = shortest; n <= blocks; n++) {
        const double most = best.score * sqrt(n); /* one square root per length, not per pair */
        double sum = most;
        uint32_t at = UINT32_MAX;
        for (uint32_t a = 0; a + n <= blocks; a++) {
            if (prefix[a + n] - prefix[a] > sum) {
                sum = prefix[a + n] - prefix[a];
                at = a;
            }
        }
        if (at != UINT32_MAX)
            best = (struct stretch){at * block, at + n == blocks ? steps : (at + n) * block, 0,
                                    sum / sqrt(n)};
    }
    best.mean = mean_of(cost, best.from, best.to);
    return best;
}

/* ---- stragglers ----------------------------------------------------------------- */

/* Returns the index of a process in the members of a group, or SIZE_MAX. */
static size_t place_in(const struct mstx_cl_group *g, uint32_t process)
{
    size_t low = 0, high = g->members.n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (g->members.p[mid] < process)
            low = mid + 1;
        else
            high = mid;
    }
    return low < g->members.n && g->members.p[low] == process ? low : SIZE_MAX;
}

static bool has_all_of(const struct mstx_cl_group *g, const struct mstx_cl_group *part)
{
    for (size_t m = 0; m < part->members.n; m++) {
        if (place_in(g, part->members.p[m]) == SIZE_MAX)
            return false;
    }
    return true;
}

/* Checks a straggler in its other communicators, where its cost must be at least half as great.
 * Skips communicators whose ranks differ in all steps, as unlike stages of a pipeline do, and
 * communicators that hold all its partners and further ranks, which may do other work. */
static bool all_partners_agree(const struct mstx_cluster *c, const struct mstx_cl_group *own,
                               uint32_t process, const struct stretch *s)
{
    ms_assert(process < c->process.n);
    for (size_t i = 0; i < c->group.n; i++) {
        const struct mstx_cl_group *g = &c->group.p[i];
        if (g->cost.n == 0 || g->spread > s->mean / 4 || has_all_of(g, own))
            continue;
        const uint32_t steps = (uint32_t)(g->cost.n / g->members.n);
        const size_t m = place_in(g, process);
        if (m == SIZE_MAX || s->to > steps)
            continue;
        if (mean_of(g->cost.p + m * steps, s->from, s->to) < s->mean / 2)
            return false;
    }
    return true;
}

/* Returns ns as a share of a step: of the median step, or of the stretch's own steps when these are
 * much longer, as guessed steps may be. */
static double share_of_step(const struct mstx_cluster *c, const struct mstx_cl_step *step, size_t n,
                            double ns)
{
    ms_assert(n >= 1);
    double all = 0;
    for (size_t i = 0; i < n; i++)
        all += (double)(step[i].end_ns - step[i].start_ns);
    const double mean = all / (double)n;
    return ns / (ns > (double)c->step_ns ? fmax(mean, ns) : (double)c->step_ns);
}

static void note_straggler(struct mstx_cluster *c, const struct mstx_cl_group *g, size_t m,
                           uint32_t steps, const struct stretch *s)
{
    ms_assert(s->from < s->to && s->to <= steps);
    const struct mstx_cl_process *p = &c->process.p[g->members.p[m]];
    const struct mstx_cl_step *first = &c->step.p[p->first_step + s->from];
    const struct mstx_cl_step *last = &c->step.p[p->first_step + s->to - 1];
    const double share = share_of_step(c, first, s->to - s->from, s->mean);
    const bool late = s->from >= STEPS_SURE, ends = s->to + STEPS_SURE <= steps;
    struct mstx_cl_note *n =
        mstx__cluster_note(c, late || ends ? "fail_slow" : "straggler",
                           share >= GREAT_SHARE ? "error" : "warning", p->rank, share);
    if (n == NULL)
        return;
    n->first_step = first->number;
    n->last_step = last->number;
    n->at_ns = first->start_ns;
    ms_message_begin(&n->message, &mstx_note_straggler);
    ms_message_i64(&n->message, "rank", p->rank);
    if (late || ends) {
        ms_message_i64(&n->message, "first_step", first->number);
        ms_message_i64(&n->message, "last_step", last->number);
    }
    ms_message_i64(&n->message, "longer_ns", (int64_t)s->mean);
    ms_message_f64(&n->message, "share", share);
}

struct sized {
    size_t members, place;
};

struct scratch {
    struct sized *order; /* groups by size */
    double *of_step, *of_member;
    bool *told;   /* by process: it has a note */
    double limit; /* of the score of a stretch */
};

/* Returns the mean own time of the other members in a step of the stretch. */
static double others_own(const struct mstx_cluster *c, const struct mstx_cl_group *g, size_t m,
                         const struct stretch *s)
{
    ms_assert(m < g->members.n && g->members.n >= 2);
    double sum = 0;
    for (size_t i = 0; i < g->members.n; i++) {
        const struct mstx_cl_process *p = &c->process.p[g->members.p[i]];
        for (uint32_t k = s->from; k < s->to && i != m; k++)
            sum += own_time(&c->step.p[p->first_step + k]);
    }
    return sum / ((double)(g->members.n - 1) * (s->to - s->from));
}

static bool is_large(const struct mstx_cluster *c, const struct mstx_cl_group *g, size_t m,
                     const struct stretch *s)
{
    const double step = (double)c->step_ns;
    if (s->mean <= 4 * g->spread || s->mean < LEAST_THEN * step)
        return false;
    return s->mean >= LEAST_SHARE * step || s->mean >= GREAT_OF_OWN * others_own(c, g, m, s);
}

static void judge_group(struct mstx_cluster *c, size_t group, const struct scratch *x)
{
    ms_assert(group < c->group.n && c->step_ns > 0);
    const struct mstx_cl_group *g = &c->group.p[group];
    const uint32_t steps = (uint32_t)(g->cost.n / g->members.n);
    for (size_t m = 0; m < g->members.n && !c->no_memory; m++) {
        const uint32_t process = g->members.p[m];
        const struct stretch s =
            best_stretch(g->cost.p + m * steps, steps, g->noise, x->limit, x->of_step);
        const bool is_sure = s.score > x->limit && is_large(c, g, m, &s);
        if (!x->told[process] && is_sure && all_partners_agree(c, g, process, &s)) {
            x->told[process] = true;
            note_straggler(c, g, m, steps, &s);
        }
    }
}

static void judge_groups(struct mstx_cluster *c, const struct scratch *x)
{
    for (size_t i = 0; i < c->group.n; i++) {
        struct mstx_cl_group *g = &c->group.p[i];
        const uint32_t steps = g->cost.n != 0 ? (uint32_t)(g->cost.n / g->members.n) : 0;
        if (steps != 0) {
            g->noise = fmax(noise_of(g, steps, x->of_step, x->of_member),
                            LEAST_NOISE * (double)c->step_ns);
            g->spread = spread_of(g, steps, x->of_member);
        }
    }
    for (size_t i = 0; i < c->group.n && c->step_ns > 0; i++) {
        if (c->group.p[x->order[i].place].cost.n != 0)
            judge_group(c, x->order[i].place, x);
    }
}

/* Orders small communicators first: their members do the same work.  Among all ranks a stage that
 * always computes longer hides the step from which one of its ranks became slow. */
static int by_size(const void *pa, const void *pb)
{
    const struct sized *a = pa, *b = pb;
    return MS_ORDER(a->members, b->members, MS_ORDER(a->place, b->place, 0));
}

static struct sized *order_groups(const struct mstx_cluster *c)
{
    struct sized *order = ms_calloc(c->group.n + 1, sizeof *order);
    for (size_t i = 0; order != NULL && i < c->group.n; i++)
        order[i] = (struct sized){c->group.p[i].members.n, i};
    if (order != NULL)
        qsort(order, c->group.n, sizeof *order, by_size);
    return order;
}

void mstx__cluster_stragglers(struct mstx_cluster *c)
{
    uint32_t most = 0;
    find_step_time(c);
    for (size_t i = 0; i < c->process.n; i++)
        most = c->process.p[i].steps > most ? c->process.p[i].steps : most;
    const size_t room = (most > c->process.n ? most : c->process.n) + BLOCKS_MAX + 2;
    const double blocks = most < BLOCKS_MAX ? most : BLOCKS_MAX;
    const double looks = (double)(c->process.n + 1) * (blocks * blocks / 2 + 1);
    struct scratch x = {order_groups(c), ms_calloc(room, sizeof *x.of_step),
                        ms_calloc(room, sizeof *x.of_member),
                        ms_calloc(c->process.n + 1, sizeof *x.told), sqrt(2 * log(looks / 0.001))};
    if (x.order != NULL && x.of_step != NULL && x.of_member != NULL && x.told != NULL &&
        find_costs(c))
        judge_groups(c, &x);
    else
        c->no_memory = true;
    ms_free(x.order);
    ms_free(x.of_step);
    ms_free(x.of_member);
    ms_free(x.told);
}
