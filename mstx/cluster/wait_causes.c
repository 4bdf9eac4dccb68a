/* SPDX-License-Identifier: MIT
 *
 * wait_causes: judges ranks with and without run delay, and says why a rank works longer.  See waiters.h.
 */
#include "mstx/cluster/waiters.h"

#include "mstx/cluster/rows.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

/* A rank that is named with its run delay alone waits for a CPU when run delay is at least this share of
 * its excess. */
static const double DELAY_LEAST = 0.5;
/* It is not accused when the other ranks lose this share of their work to run delay: the host is busy, and
 * which rank it delays most is chance. */
static const double BUSY_LEAST = 0.3;
/* Time off the CPU is writing from this many blocks (of 512 bytes) a step more than others on. */
static const double WRITTEN_LEAST = 8;

struct causes {
    struct mstx_waiters *wall, *calm; /* judged with and without run delay */
    const struct mstx_call_graph *g;
    double *used;   /* by point: MSTX_USES values */
    double *weight; /* by point: without run delay */
    double *sum;    /* ranks x PARTS: use of the local work of all steps */
    double *others; /* scratch: one value for each rank */
    bool *is_named; /* by rank */
};
enum part { ON_CPU, DELAYED, OFF_CPU, WRITTEN, PARTS };

static double without_delay(const struct causes *c, size_t point)
{
    const double left = c->g->weight[point] - c->used[point * MSTX_USES + MSTX_DELAYED];
    return left > 0 ? left : 0;
}

static void sum_up(struct causes *c)
{
    double delayed = 0, work = 0;
    for (size_t i = 0; i < c->g->point.n; i++) {
        const double *used = c->used + i * MSTX_USES;
        double *sum = c->sum + (size_t)c->g->point.p[i].rank * PARTS;
        c->weight[i] = without_delay(c, i);
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

/* Returns the median over the other ranks of the share of their work that is run delay. */
static double delay_of_others(const struct causes *c, uint32_t rank)
{
    size_t n = 0;
    for (uint32_t r = 0; r < c->wall->ranks; r++) {
        const double *sum = c->sum + (size_t)r * PARTS;
        const double work = sum[ON_CPU] + sum[DELAYED] + sum[OFF_CPU];
        if (r != rank && work > 0)
            c->others[n++] = sum[DELAYED] / work;
    }
    return mstx__median(c->others, n);
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

static enum mstx_wait_cause cause_of(const struct causes *c, const struct mstx_wait_parts *p)
{
    if (p->on_cpu + p->off_cpu <= 0)
        return MSTX_CAUSE_UNKNOWN;
    if (p->on_cpu >= p->off_cpu)
        return MSTX_CAUSE_COMPUTES;
    return p->written >= WRITTEN_LEAST * c->wall->steps ? MSTX_CAUSE_WRITES : MSTX_CAUSE_OFF_CPU;
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
    const bool is_named_by_wall = to->is_named;
    ms_assert(calm != NULL);
    to->part = parts_of(c, to->rank);
    if (calm->is_named) {
        const struct mstx_wait_parts part = to->part;
        *to = *calm;
        to->part = part;
        to->cause = cause_of(c, &part);
    } else if (is_named_by_wall) {
        to->is_named = to->part.delayed >= DELAY_LEAST && delay_of_others(c, to->rank) < BUSY_LEAST;
        to->cause = MSTX_CAUSE_WAITS_FOR_CPU;
    }
}

static bool begin(struct causes *c)
{
    const size_t points = c->g->point.n + 1, ranks = c->wall->ranks + 1;
    c->used = ms_calloc(points * MSTX_USES, sizeof *c->used);
    c->weight = ms_calloc(points, sizeof *c->weight);
    c->sum = ms_calloc(ranks * PARTS, sizeof *c->sum);
    c->others = ms_calloc(ranks, sizeof *c->others);
    c->is_named = ms_calloc(ranks, sizeof *c->is_named);
    return c->used != NULL && c->weight != NULL && c->sum != NULL && c->others != NULL &&
           c->is_named != NULL;
}

static bool find_causes(struct causes *c, const mstx_gcalls *calls,
                        const struct mstx_step_times *steps, const struct mstx_thread_use *use)
{
    if (!begin(c))
        return false;
    mstx__use_of_points(use, c->g, c->used);
    sum_up(c);
    mstx__waiters_judge(c->calm, c->g, c->weight, calls, steps);
    if (c->calm->no_memory)
        return false;
    for (size_t i = 0; i < c->calm->list.n; i++)
        c->is_named[c->calm->list.p[i].rank] = c->calm->list.p[i].is_named;
    for (size_t i = 0; i < c->wall->list.n; i++)
        merge(c, &c->wall->list.p[i]);
    mstx__waiters_sort(c->wall);
    c->wall->has_causes = true;
    return true;
}

void mstx__waiters(struct mstx_waiters *w, const struct mstx_call_graph *g,
                   const mstx_gcalls *calls, const struct mstx_step_times *steps,
                   const struct mstx_thread_use *use)
{
    struct mstx_waiters calm = {0};
    struct causes c = {.wall = w, .calm = &calm, .g = g};
    mstx__waiters_judge(w, g, g->weight, calls, steps);
    if (use == NULL || w->no_memory || w->list.n == 0 || !mstx__use_is_known(use, w->ranks))
        return;
    w->no_memory = !find_causes(&c, calls, steps, use);
    mstx__waiters_free(&calm);
    ms_free(c.used);
    ms_free(c.weight);
    ms_free(c.sum);
    ms_free(c.others);
    ms_free(c.is_named);
}
