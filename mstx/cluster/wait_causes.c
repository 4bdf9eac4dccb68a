/* SPDX-License-Identifier: MIT
 *
 * wait_causes: judges ranks with and without run delay, and says why a rank works longer.  See waiters.h.
 */
#include "mstx/cluster/waiters.h"

#include "mstx/cluster/rows.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

/* A rank waits for a CPU that other programs use when its run delay stands out from that of the other ranks,
 * which on a busy host is large as well: it is the longest in DELAY_LEAD of the steps, in the median step
 * DELAY_RATIO times that of the others, and makes up half of the excess; its least delayed steps cost the
 * job something too, or it is the longest in DELAY_SURE_LEAD of the steps; and no other rank costs a tenth as
 * much.  Of 26 clean runs at a load of 8 to 15 one rank passed all of these but the cost of its least delayed
 * steps, which was 0.016; those of ranks that shared a CPU were 0.07 to 0.23.  Of 42 clean runs at a load of
 * up to 20 the greatest lead was 0.75, and the lead of ranks that shared a CPU and made the others wait
 * 0.83 to 0.92, with a ratio of 1.8 and more. */
static const double DELAY_LEAST = 0.5, DELAY_LEAD = 0.7, DELAY_SURE_LEAD = 0.85, DELAY_RATIO = 1.5,
                    DELAY_COST = 0.15, DELAY_STEADY = 0.05, DELAY_DOMINANCE = 0.9;
/* A rank is throttled when half of its excess is waiting, and of that three tenths are time for which the kernel kept its
 * control group from running.  That is no chance, so it needs no more than what a slow rank costs. */
static const double WAITING_LEAST = 0.5, THROTTLED_LEAST = 0.3, THROTTLED_COST = 0.05;
/* Time off the CPU is writing from this many blocks (of 512 bytes) a step more than others on. */
static const double WRITTEN_LEAST = 8;
/* Time on the CPU is writing from this many bytes a nanosecond on (200 MB a second): chosen by hand, below the
 * speed at which a kernel copies. */
static const double WRITTEN_A_NS = 0.2;

struct causes {
    struct mstx_waiters *wall, *calm; /* judged with and without run delay */
    const struct mstx_call_graph *g;
    const struct mstx_thread_use *use;
    double *weight;          /* by point: without run delay */
    double *sum;             /* ranks x PARTS: use of the local work of all steps */
    double *others;          /* scratch: one value for each rank */
    double *of_step;         /* scratch: one value for each step */
    bool *is_named;          /* by rank */
    const double *throttled; /* by rank, ns; NULL: unknown */
};
enum part { ON_CPU, DELAYED, OFF_CPU, WRITTEN, PARTS };

static double without_delay(double weight, const double used[MSTX_USES])
{
    const double left = weight - used[MSTX_DELAYED];
    return left > 0 ? left : 0;
}

static void sum_up(struct causes *c)
{
    double delayed = 0, work = 0;
    for (size_t i = 0; i < c->g->point.n; i++) {
        double used[MSTX_USES];
        double *sum = c->sum + (size_t)c->g->point.p[i].rank * PARTS;
        mstx__use_of_point(c->use, c->g, i, used);
        c->weight[i] = without_delay(c->g->weight[i], used);
        if (c->g->point.p[i].kind == MSTX_POINT_OUT || c->wall->step[i] == UINT32_MAX)
            continue;
        sum[OFF_CPU] += c->weight[i] - used[MSTX_ON_CPU];
        sum[ON_CPU] += used[MSTX_ON_CPU];
        sum[DELAYED] += c->g->weight[i] - c->weight[i];
        sum[WRITTEN] += used[MSTX_WRITTEN];
        work += c->g->weight[i];
        delayed += c->g->weight[i] - c->weight[i];
    }
    c->wall->delayed = work > 0 ? delayed / work : 0;
}

/* Returns by how much a rank exceeds the median of the ranks that are not named, or of all others when
 * all are named. */
static double excess_of(const struct causes *c, uint32_t rank, enum part part)
{
    size_t n = 0;
    for (int pass = 0; pass < 2 && n == 0; pass++) {
        for (uint32_t r = 0; r < c->wall->ranks; r++) {
            if (r != rank && (pass != 0 || !c->is_named[r]))
                c->others[n++] = c->sum[(size_t)r * PARTS + part];
        }
    }
    const double more = c->sum[(size_t)rank * PARTS + part] - mstx__median(c->others, n);
    return more > 0 ? more : 0;
}

/* Tells whether a rank computes at least half as long as another one; a master that only hands out work
 * tells nothing about the host. */
static bool works_as(const struct causes *c, uint32_t rank, uint32_t as)
{
    return 2 * c->sum[(size_t)rank * PARTS + ON_CPU] >= c->sum[(size_t)as * PARTS + ON_CPU];
}

static double delay_in(const struct causes *c, uint32_t rank, uint32_t step)
{
    const size_t at = (size_t)rank * c->wall->steps + step;
    return c->wall->work[at] - c->calm->work[at];
}

/* Returns the run delay of a rank in its median step.  Bursts of other programs in a few steps do not
 * count. */
static double usual_delay(const struct causes *c, uint32_t rank)
{
    const uint32_t steps = c->wall->steps;
    for (uint32_t s = 1; s < steps; s++)
        c->of_step[s - 1] = delay_in(c, rank, s);
    return mstx__median(c->of_step, steps - 1);
}

/* Returns the share of the steps in which no other rank that works is delayed as long. */
static double delay_lead(const struct causes *c, uint32_t rank)
{
    uint32_t leads = 0;
    for (uint32_t s = 1; s < c->wall->steps; s++) {
        bool is_longest = true;
        for (uint32_t r = 0; r < c->wall->ranks; r++)
            is_longest &=
                r == rank || !works_as(c, r, rank) || delay_in(c, r, s) < delay_in(c, rank, s);
        leads += is_longest;
    }
    return (double)leads / (c->wall->steps - 1);
}

/* Tells whether the usual run delay of a rank is a multiple of that of the other ranks that work. */
static bool is_delayed_more(const struct causes *c, uint32_t rank)
{
    size_t n = 0;
    for (uint32_t r = 0; r < c->wall->ranks; r++) {
        if (r != rank && works_as(c, r, rank))
            c->others[n++] = usual_delay(c, r);
    }
    return n != 0 && usual_delay(c, rank) >= DELAY_RATIO * mstx__median(c->others, n);
}

/* Returns the share of the cost of a rank in its cost and that of all ranks that are not named. */
static double dominance(const struct causes *c, const struct mstx_waiter *of)
{
    double sum = of->cost;
    for (size_t i = 0; i < c->wall->list.n; i++) {
        const struct mstx_waiter *r = &c->wall->list.p[i];
        sum += r->rank != of->rank && !c->is_named[r->rank] ? r->cost : 0;
    }
    return sum > 0 ? of->cost / sum : 0;
}

static bool waits_for_cpu(const struct causes *c, const struct mstx_waiter *of)
{
    const double lead = of->steady >= DELAY_STEADY ? DELAY_LEAD : DELAY_SURE_LEAD;
    return c->wall->is_known && of->cost >= DELAY_COST && of->part.delayed >= DELAY_LEAST &&
           dominance(c, of) >= DELAY_DOMINANCE && delay_lead(c, of->rank) >= lead &&
           is_delayed_more(c, of->rank);
}

/* Returns by how much longer than the median of the others a rank was throttled.  Ranks of one control group
 * are throttled together, and none of them makes the others wait by that. */
static double throttled_more(const struct causes *c, uint32_t rank)
{
    size_t n = 0;
    for (uint32_t r = 0; r < c->wall->ranks && c->throttled != NULL; r++) {
        if (r != rank)
            c->others[n++] = c->throttled[r];
    }
    return n != 0 ? c->throttled[rank] - mstx__median(c->others, n) : 0;
}

/* Kernels count the time as run delay or as time off the CPU. */
static bool is_throttled(const struct causes *c, const struct mstx_waiter *of)
{
    const double waiting = excess_of(c, of->rank, DELAYED) + excess_of(c, of->rank, OFF_CPU);
    return c->wall->is_known && of->cost >= THROTTLED_COST &&
           of->part.delayed + of->part.off_cpu >= WAITING_LEAST && waiting > 0 &&
           throttled_more(c, of->rank) >= THROTTLED_LEAST * waiting;
}

static struct mstx_wait_parts parts_of(const struct causes *c, uint32_t rank)
{
    const double on_cpu = excess_of(c, rank, ON_CPU), delayed = excess_of(c, rank, DELAYED),
                 off_cpu = excess_of(c, rank, OFF_CPU), all = on_cpu + delayed + off_cpu;
    if (!(all > 0))
        return (struct mstx_wait_parts){0};
    return (struct mstx_wait_parts){on_cpu / all, delayed / all, off_cpu / all,
                                    excess_of(c, rank, WRITTEN)};
}

/* Tells whether a rank writes enough for its excess to be writing.  A disk that keeps up leaves the rank on the
 * CPU, where the kernel copies: then its bytes must be many for that time. */
static bool writes(const struct causes *c, uint32_t rank, const struct mstx_wait_parts *p)
{
    const double bytes = 512 * p->written, on_cpu = excess_of(c, rank, ON_CPU);
    return p->written >= WRITTEN_LEAST * c->wall->steps &&
           (p->on_cpu < p->off_cpu || bytes >= WRITTEN_A_NS * on_cpu);
}

static enum mstx_wait_cause cause_of(const struct causes *c, uint32_t rank,
                                     const struct mstx_wait_parts *p)
{
    if (p->on_cpu + p->off_cpu <= 0)
        return MSTX_CAUSE_UNKNOWN;
    if (writes(c, rank, p))
        return MSTX_CAUSE_WRITES;
    return p->on_cpu >= p->off_cpu ? MSTX_CAUSE_COMPUTES : MSTX_CAUSE_OFF_CPU;
}

static struct mstx_waiter *entry_of(struct mstx_waiters *w, uint32_t rank)
{
    size_t i = 0;
    while (i < w->list.n && w->list.p[i].rank != rank)
        i++;
    return i < w->list.n ? &w->list.p[i] : NULL;
}

/* Replaces the judgement of a rank: named without run delay, or named by run delay alone. */
static void merge(const struct causes *c, struct mstx_waiter *to)
{
    const struct mstx_waiter *calm = entry_of(c->calm, to->rank);
    ms_assert(calm != NULL);
    to->part = parts_of(c, to->rank);
    if (is_throttled(c, to)) {
        to->is_named = true;
        to->cause = MSTX_CAUSE_THROTTLED;
    } else if (calm->is_named) {
        const struct mstx_wait_parts part = to->part;
        *to = *calm;
        to->part = part;
        to->cause = cause_of(c, to->rank, &part);
    } else {
        to->is_named = waits_for_cpu(c, to);
        to->cause = MSTX_CAUSE_WAITS_FOR_CPU;
    }
}

/* Returns the share of time on the CPU in the excess of a rank, run delay aside. */
static double cpu_part(const struct mstx_wait_parts *p)
{
    return p->on_cpu + p->off_cpu > 0 ? p->on_cpu / (p->on_cpu + p->off_cpu) : 0;
}

/* Replaces the healed weights of the points of a rank.  Its excess is that of the judgement without run
 * delay, and the run delay of the CPU time that goes away goes with it. */
static void heal_rank(struct causes *c, uint32_t rank, double on_cpu)
{
    for (uint32_t i = c->g->first.p[rank]; i < c->g->first.p[rank + 1]; i++) {
        double used[MSTX_USES];
        mstx__use_of_point(c->use, c->g, i, used);
        const double excess = c->weight[i] - c->calm->healed[i];
        const double gone = used[MSTX_ON_CPU] > 0 ? excess * on_cpu / used[MSTX_ON_CPU] : 0;
        c->wall->healed[i] =
            c->calm->healed[i] + (c->g->weight[i] - c->weight[i]) * (gone < 1 ? 1 - gone : 0);
    }
}

static bool is_delayed_by_others(const struct mstx_waiter *of)
{
    return of->cause == MSTX_CAUSE_WAITS_FOR_CPU || of->cause == MSTX_CAUSE_THROTTLED;
}

/* A rank that waits for a CPU keeps the weights that were healed with run delay. */
static void heal(struct causes *c)
{
    for (size_t k = 0; k < c->wall->list.n; k++) {
        const struct mstx_waiter *of = &c->wall->list.p[k];
        if (!of->is_named || !is_delayed_by_others(of))
            heal_rank(c, of->rank, cpu_part(&of->part));
    }
}

static bool begin(struct causes *c)
{
    const size_t points = c->g->point.n + 1, ranks = c->wall->ranks + 1;
    c->weight = ms_calloc(points, sizeof *c->weight);
    c->sum = ms_calloc(ranks * PARTS, sizeof *c->sum);
    c->others = ms_calloc(ranks, sizeof *c->others);
    c->of_step = ms_calloc(c->wall->steps + 1, sizeof *c->of_step);
    c->is_named = ms_calloc(ranks, sizeof *c->is_named);
    return c->weight != NULL && c->sum != NULL && c->others != NULL && c->of_step != NULL &&
           c->is_named != NULL;
}

static bool find_causes(struct causes *c, const struct mstx_call_steps *steps,
                        const struct mstx_thread_use *use)
{
    if (!begin(c))
        return false;
    c->throttled = use->throttled.n == c->wall->ranks ? use->throttled.p : NULL;
    sum_up(c);
    mstx__waiters_judge(c->calm, c->g, c->weight, steps);
    if (c->calm->no_memory)
        return false;
    for (size_t i = 0; i < c->calm->list.n; i++)
        c->is_named[c->calm->list.p[i].rank] = c->calm->list.p[i].is_named;
    for (size_t i = 0; i < c->wall->list.n; i++)
        merge(c, &c->wall->list.p[i]);
    heal(c);
    c->wall->has_causes = true;
    return true;
}

void mstx__waiters(struct mstx_waiters *w, const struct mstx_call_graph *g,
                   const mstx_gcalls *calls, const struct mstx_step_times *known,
                   const struct mstx_thread_use *use)
{
    struct mstx_call_steps steps;
    mstx__call_steps(&steps, g, calls, known);
    mstx__waiters_of_steps(w, g, &steps, use);
    mstx__call_steps_free(&steps);
}

void mstx__waiters_of_steps(struct mstx_waiters *w, const struct mstx_call_graph *g,
                            const struct mstx_call_steps *steps, const struct mstx_thread_use *use)
{
    struct mstx_waiters calm = {0};
    struct causes c = {.wall = w, .calm = &calm, .g = g, .use = use};
    mstx__waiters_judge(w, g, g->weight, steps);
    if (w->no_memory || w->list.n == 0)
        return;
    if (use != NULL && mstx__use_is_known(use, w->ranks))
        w->no_memory = !find_causes(&c, steps, use);
    if (!w->no_memory)
        mstx__waiters_share(w, g);
    mstx__waiters_free(&calm);
    ms_free(c.weight);
    ms_free(c.sum);
    ms_free(c.others);
    ms_free(c.of_step);
    ms_free(c.is_named);
}
