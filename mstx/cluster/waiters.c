/* SPDX-License-Identifier: MIT
 *
 * waiters: see the header.
 */
#include "mstx/cluster/waiters.h"

#include "mstx/cluster/rows.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Tuned on captures of own programs on a loaded host (two cores, load 20): see the figures at each
 * rule.  A false accusation costs more than a miss.
 *
 * Steady: the excess in undisturbed steps costs at least STEADY_LEAST, and the rank works longer in
 * most steps.  The least lead of a slow rank was 0.65; the greatest lead in a clean run was
 * 0.57. */
static const double STEADY_LEAST = 0.08, STEADY_LEAD = 0.6, STEADY_LAST = 0.6,
                    STEADY_SURE_LEAD = 0.8;
/* Regular: a smaller excess is as certain when the same rank works longest in nearly all steps. */
static const double REGULAR_STEADY = 0.02, REGULAR_LAST = 0.9, REGULAR_DOMINANCE = 0.6;
static const double OFTEN_STEADY = 0.04, OFTEN_LAST = 0.75, OFTEN_LEAD = 0.8;
/* Costly: bursts with at least COST_LEAST and most of the cost of all ranks.  Of two ranks one
 * always has most of the cost, so dominance says little: the cost in clean runs of two ranks
 * reached 0.125. */
static const double COST_LEAST = 0.15, COST_OF_TWO = 0.25, DOMINANCE_LEAST = 0.75;
/* Bursts come again: an excess that two steps hold is an accident. */
static const double PEAK_MOST = 0.6;
static const double CLEAR_EXCESS = 0.15, CLEAR_COST = 0.03, CLEAR_LEAD = 0.9;
/* An excess that comes again is clear: in 218 clean runs at a load of up to 20 the two longest steps of a rank with
 * such an excess held 0.51 of it and more; in bursts that come five times they hold 0.4. */
static const double CLEAR_PEAK = 0.45;
/* Several ranks share the cost when each has a clear excess and together they have nearly all of it. */
static const double SHARED_EXCESS = 0.3, SHARED_NET = 0.6, SHARED_DOMINANCE = 0.85;
/* What a rank works longer in some steps it does not work shorter in others, as it does where the cuts between
 * steps are at other places of the program on each rank.  Of 118 slow runs the least share was 0.65, and the one
 * of 42 clean runs that passed all other rules had -0.01. */
static const double NET_LEAST = 0.4;
/* A rank is slow in all steps, not in bursts, when its excess is usual in this share of the steps that hold it.
 * Of 108 runs with a constant excess, from the start or from the middle on, the least share was 0.62; of 24 with
 * bursts in every eighth step the greatest was 0.36. */
static const double USUAL_LEAST = 0.5;
/* A named rank saves at least this share of the judged steps. */
static const double SAVED_LEAST = 0.002;
/* Shorter jobs are not judged. */
static const double JOB_LEAST_NS = 0.3e9;
enum { CANDIDATES = 32 };
enum { AROUND = 2, NEAR = 2 * AROUND + 1 };

struct candidate {
    uint32_t rank;
    double excess;
};

struct step_work {
    double work;
    uint32_t rank;
};

struct judge {
    struct mstx_waiters *w;
    const struct mstx_call_graph *g;
    const double *weight; /* by point: its weight, with or without run delay */
    double *reference;    /* ranks x steps: work of the other ranks, at most the rank's own */
    double *healed;       /* by point */
    bool is_shared;       /* only the candidates are healed */
    struct candidate *candidate; /* greatest excess first */
    uint32_t candidates;
    uint8_t *class; /* by point: index of its rank among the candidates, or MSTX_NO_FEW */
    bool *serves;   /* by rank: it receives from any source (MPI_ANY_SOURCE) in most steps */
    struct step_work *around;     /* work of a step and of those around it, sorted */
    uint32_t *own_at, *own_count; /* by rank: places in it of its own work */
    uint32_t around_count;
    double *longest; /* by step: the longest work of all ranks */
    double *total;   /* by rank: its work in all steps but the first */
    double *t;       /* times of a replay */
    uint32_t *slot;  /* by node: the place of its times, where several scenarios are replayed */
    double *scratch;
    double span; /* costs are shares of this time: of the judged steps, or of the whole job */
};

/* ---- steps ------------------------------------------------------------------------- */

static bool copy_steps(struct judge *j, const struct mstx_call_steps *steps)
{
    const size_t n = (size_t)j->w->ranks * (steps->steps + 1);
    j->w->steps = steps->steps;
    j->w->step_at = ms_alloc(n * sizeof *j->w->step_at);
    if (j->w->step_at != NULL)
        memcpy(j->w->step_at, steps->at_ns, n * sizeof *j->w->step_at);
    return j->w->step_at != NULL;
}

/* Assigns each point, with the local work or interval before it, to the step of its time; the first
 * step is left out. */
static void place_points(struct judge *j)
{
    const uint32_t steps = j->w->steps;
    for (uint32_t r = 0; r < j->w->ranks; r++) {
        const int64_t *begin = j->w->step_at + (size_t)r * (steps + 1);
        uint32_t s = 0;
        for (uint32_t i = j->g->first.p[r]; i < j->g->first.p[r + 1]; i++) {
            while (s < steps && j->g->point.p[i].at_ns >= begin[s + 1])
                s++;
            const bool inside = s != 0 && s < steps;
            j->w->step[i] = inside ? s : UINT32_MAX;
            if (inside && j->g->point.p[i].kind != MSTX_POINT_OUT)
                j->w->work[(size_t)r * steps + s] += j->weight[i];
        }
    }
}

/* ---- reference work ------------------------------------------------------------------- */

/* Tells whether the work of rank `of` can be compared with that of servers, or with that of other ranks. */
static bool may_measure(const struct judge *j, uint32_t of, bool server)
{
    return server || !j->serves[of];
}

/* Tells whether the work of rank `of` can be compared with that of `rank`.  A rank that receives
 * from any source is a server, whose work is comparable with that of other servers only. */
static bool is_measure(const struct judge *j, uint32_t of, uint32_t rank)
{
    return of != rank && may_measure(j, of, j->serves[rank]);
}

static bool find_servers(struct judge *j, const struct mstx_call_steps *steps)
{
    j->serves = ms_calloc(j->w->ranks + 1, sizeof *j->serves);
    for (uint32_t r = 0; j->serves != NULL && r < j->w->ranks; r++)
        j->serves[r] = 2 * steps->from_any[r] >= j->w->steps;
    return j->serves != NULL;
}

static int by_work(const void *pa, const void *pb)
{
    const struct step_work *a = pa, *b = pb;
    return MS_ORDER(a->work, b->work, MS_ORDER(a->rank, b->rank, 0));
}

/* Sorts the work of a step and of those around it, of all ranks that are comparable with servers, or with other
 * ranks; own_at of a rank are the places of its own work.  One order serves all ranks: with 4,096 of them a median
 * for each took 35 s and more for 40 steps. */
static void sort_around(struct judge *j, uint32_t step, bool server)
{
    const uint32_t steps = j->w->steps, from = step > AROUND ? step - AROUND : 1,
                   to = step + AROUND < steps ? step + AROUND : steps - 1;
    j->around_count = 0;
    for (uint32_t r = 0; r < j->w->ranks; r++) {
        for (uint32_t s = from; s <= to && may_measure(j, r, server); s++)
            j->around[j->around_count++] = (struct step_work){j->w->work[(size_t)r * steps + s], r};
        j->own_count[r] = 0;
    }
    qsort(j->around, j->around_count, sizeof *j->around, by_work);
    for (uint32_t i = 0; i < j->around_count; i++) {
        const uint32_t r = j->around[i].rank;
        j->own_at[(size_t)r * NEAR + j->own_count[r]++] = i;
    }
}

/* Returns the k-th smallest of the sorted works, counted from 0, that are not of a rank. */
static double other_work(const struct judge *j, uint32_t rank, uint32_t k)
{
    for (uint32_t i = 0; i < j->own_count[rank]; i++)
        k += j->own_at[(size_t)rank * NEAR + i] <= k;
    return j->around[k].work;
}

/* Returns the median of the sorted works of the other ranks.  Without a comparable rank the neighbouring steps
 * of the rank itself still show bursts. */
static double others_need(const struct judge *j, uint32_t rank)
{
    const uint32_t n = j->around_count - j->own_count[rank];
    const uint32_t *own = j->own_at + (size_t)rank * NEAR;
    if (n != 0)
        return (other_work(j, rank, (n - 1) / 2) + other_work(j, rank, n / 2)) / 2;
    for (uint32_t i = 0; i < j->own_count[rank]; i++)
        j->scratch[i] = j->around[own[i]].work;
    return mstx__median(j->scratch, j->own_count[rank]);
}

static void find_references(struct judge *j)
{
    const uint32_t steps = j->w->steps;
    for (uint32_t pass = 0; pass < 2; pass++) {
        bool is_wanted = false;
        for (uint32_t r = 0; r < j->w->ranks; r++)
            is_wanted |= j->serves[r] == (pass != 0);
        for (uint32_t s = 1; s < steps && is_wanted; s++) {
            sort_around(j, s, pass != 0);
            for (uint32_t r = 0; r < j->w->ranks; r++) {
                if (j->serves[r] != (pass != 0))
                    continue;
                const double own = j->w->work[(size_t)r * steps + s], others = others_need(j, r);
                j->reference[(size_t)r * steps + s] = own < others ? own : others;
            }
        }
    }
}

/* Returns the work of a rank in undisturbed steps: the first decile of its steps. */
static double undisturbed_work(const struct judge *j, uint32_t rank)
{
    const uint32_t n = j->w->steps - 1;
    memcpy(j->scratch, j->w->work + (size_t)rank * j->w->steps + 1, n * sizeof *j->scratch);
    for (uint32_t i = 0; i + 1 < n; i++) { /* partial selection sort: there are few steps */
        uint32_t least = i;
        for (uint32_t k = i + 1; k < n; k++)
            least = j->scratch[k] < j->scratch[least] ? k : least;
        const double v = j->scratch[i];
        j->scratch[i] = j->scratch[least];
        j->scratch[least] = v;
        if (i >= n / 10)
            break;
    }
    return j->scratch[n / 10];
}

/* ---- replays ---------------------------------------------------------------------------- */

static void heal_by_reference(struct judge *j)
{
    const uint32_t steps = j->w->steps;
    for (size_t i = 0; i < j->g->point.n; i++) {
        const size_t at = (size_t)j->g->point.p[i].rank * steps + j->w->step[i];
        const bool is_work = j->w->step[i] != UINT32_MAX && j->g->point.p[i].kind != MSTX_POINT_OUT;
        const double work = is_work ? j->w->work[at] : 0;
        j->healed[i] = work > 0 ? j->weight[i] * j->reference[at] / work : j->weight[i];
    }
}

/* Sets healed to the weights without the constant excess (shift) of each rank in each step. */
static void heal_by_shift(struct judge *j, const double *shift)
{
    const uint32_t steps = j->w->steps;
    for (size_t i = 0; i < j->g->point.n; i++) {
        const bool is_work = j->w->step[i] != UINT32_MAX && j->g->point.p[i].kind != MSTX_POINT_OUT;
        const double work =
            is_work ? j->w->work[(size_t)j->g->point.p[i].rank * steps + j->w->step[i]] : 0;
        const double left =
            work > shift[j->g->point.p[i].rank] ? work - shift[j->g->point.p[i].rank] : 0;
        j->healed[i] = work > 0 ? j->weight[i] * left / work : j->weight[i];
    }
}

/* Returns the time of the job in a replay; sets span to that of the judged steps.  What a program does before,
 * such as loading its libraries, does not make a slow rank less slow. */
static double replay(struct judge *j, const double *weight, double *span)
{
    double from = INFINITY, to = 0, end = 0;
    for (size_t v = 0; v < mstx__deps_count(&j->g->deps); v++) {
        const uint32_t point = j->g->deps.op.p[v];
        const double t = mstx__deps_replay_node(&j->g->deps, v, weight, j->slot, j->t);
        end = t > end ? t : end;
        if (point == MSTX_NO_OP || j->w->step[point] == UINT32_MAX)
            continue;
        from = t < from ? t : from;
        to = t > to ? t : to;
    }
    *span = to > from ? to - from : 1;
    return end;
}

static void replay_lanes(struct judge *j, const struct mstx_scenarios *x, double end[MSTX_LANES])
{
    mstx__deps_replay(&j->g->deps, 0, mstx__deps_count(&j->g->deps), x, j->t, end);
}

/* Replays the job once for each of the candidates from `first` on, without its excess. */
static void replay_without(struct judge *j, uint32_t first, double end[MSTX_LANES])
{
    const struct mstx_scenarios x = {j->weight, j->healed, NULL, first, j->class, false, j->slot};
    replay_lanes(j, &x, end);
}

/* Replays the job once for each of the candidates from `first` on, with its excess and without that of all other
 * ranks, or of the other candidates. */
static void replay_alone(struct judge *j, uint32_t first, double end[MSTX_LANES])
{
    struct mstx_scenarios x = {j->healed, j->weight, NULL, first, j->class, false, j->slot};
    if (j->is_shared)
        x = (struct mstx_scenarios){j->weight, j->healed, NULL, first, j->class, true, j->slot};
    replay_lanes(j, &x, end);
}

/* Returns the time of the job without the excess of all ranks, or of all candidates. */
static double replay_healed(struct judge *j)
{
    double span, end[MSTX_LANES];
    if (!j->is_shared)
        return replay(j, j->healed, &span);
    replay_alone(j, j->candidates, end);
    return end[0];
}

/* Sets the cost of each candidate.  Two slow ranks hide each other's cost, so the cost is the mean
 * of two replays: the gain when only this rank is healed, and the loss when all other ranks are
 * healed. */
static void find_costs(struct judge *j, double job, bool is_steady)
{
    const double all = replay_healed(j);
    for (uint32_t first = 0; first < j->candidates; first += MSTX_LANES) {
        double without[MSTX_LANES], alone[MSTX_LANES];
        replay_without(j, first, without);
        replay_alone(j, first, alone);
        for (uint32_t k = 0; k < MSTX_LANES && first + k < j->candidates; k++) {
            const double cost = ((job - without[k]) + (alone[k] - all)) / 2 / j->span;
            struct mstx_waiter *of = &j->w->list.p[j->candidate[first + k].rank];
            *(is_steady ? &of->steady : &of->cost) = cost > 0 ? cost : 0;
        }
    }
}

static int greatest_first(const void *pa, const void *pb)
{
    const struct candidate *a = pa, *b = pb;
    return MS_ORDER(b->excess, a->excess, MS_ORDER(a->rank, b->rank, 0));
}

/* Chooses the ranks with the greatest excess for the replays; a rank without excess costs
 * nothing. */
static void find_candidates(struct judge *j)
{
    const uint32_t ranks = j->w->ranks, steps = j->w->steps;
    uint8_t *class_of = (uint8_t *)j->scratch; /* by rank */
    for (uint32_t r = 0; r < ranks; r++) {
        j->candidate[r] = (struct candidate){r, 0};
        for (uint32_t s = 1; s < steps; s++)
            j->candidate[r].excess +=
                j->w->work[(size_t)r * steps + s] - j->reference[(size_t)r * steps + s];
        class_of[r] = MSTX_NO_FEW;
    }
    qsort(j->candidate, ranks, sizeof *j->candidate, greatest_first);
    j->candidates = ranks < CANDIDATES ? ranks : CANDIDATES;
    for (uint32_t k = 0; k < j->candidates; k++)
        class_of[j->candidate[k].rank] = (uint8_t)k;
    for (size_t i = 0; i < j->g->point.n; i++)
        j->class[i] = class_of[j->g->point.p[i].rank];
}

static bool find_shifts(struct judge *j, double *shift)
{
    const uint32_t ranks = j->w->ranks;
    double *low = ms_calloc(2 * (size_t)ranks + 1, sizeof *low);
    if (low == NULL)
        return false;
    for (uint32_t r = 0; r < ranks; r++)
        low[r] = undisturbed_work(j, r);
    for (uint32_t r = 0; r < ranks; r++) {
        size_t n = 0;
        for (uint32_t k = 0; k < ranks; k++) {
            if (is_measure(j, k, r))
                low[ranks + n++] = low[k];
        }
        const double others = n != 0 ? mstx__median(low + ranks, n) : INFINITY;
        shift[r] = low[r] > others ? low[r] - others : 0;
    }
    ms_free(low);
    return true;
}

/* ---- the judgement ------------------------------------------------------------------------ */

/* Sums up the work of each rank, and finds the longest work in each step. */
static void find_totals(struct judge *j)
{
    const uint32_t steps = j->w->steps;
    for (uint32_t r = 0; r < j->w->ranks; r++) {
        for (uint32_t s = 1; s < steps; s++) {
            const double work = j->w->work[(size_t)r * steps + s];
            j->total[r] += work;
            j->longest[s] = work > j->longest[s] ? work : j->longest[s];
        }
    }
}

/* Returns by how much longer than the median of the comparable ranks a rank works in all steps together;
 * INFINITY when there is none. */
static double net_excess(const struct judge *j, uint32_t rank)
{
    size_t n = 0;
    for (uint32_t r = 0; r < j->w->ranks; r++) {
        if (is_measure(j, r, rank))
            j->scratch[n++] = j->total[r];
    }
    return n != 0 ? j->total[rank] - mstx__median(j->scratch, n) : INFINITY;
}

/* Returns the share of the steps that hold the excess of a rank in which it is at least half its mean there. */
static double usual_part(const struct judge *j, const struct mstx_waiter *of)
{
    const double *work = j->w->work + (size_t)of->rank * j->w->steps,
                 *reference = j->reference + (size_t)of->rank * j->w->steps;
    double sum = 0;
    uint32_t usual = 0;
    for (uint32_t s = of->from; s < of->to; s++)
        sum += work[s] - reference[s];
    for (uint32_t s = of->from; s < of->to; s++)
        usual += work[s] - reference[s] >= sum / (of->to - of->from) / 2;
    return sum > 0 ? (double)usual / (of->to - of->from) : 0;
}

static void describe(struct judge *j, struct mstx_waiter *of)
{
    const uint32_t steps = j->w->steps;
    const double *work = j->w->work, *reference = j->reference + (size_t)of->rank * steps;
    double sum = 0, part = 0, first = 0, second = 0;
    uint32_t longest = 0, leads = 0;
    for (uint32_t s = 1; s < steps; s++) {
        leads += work[(size_t)of->rank * steps + s] > reference[s] + of->shift_ns / 2;
        longest += work[(size_t)of->rank * steps + s] >= j->longest[s];
        const double excess = work[(size_t)of->rank * steps + s] - reference[s];
        sum += excess;
        second = excess > first ? first : excess > second ? excess : second;
        first = excess > first ? excess : first;
    }
    of->peak = sum > 0 ? (first + second) / sum : 0;
    of->net = sum > 0 ? net_excess(j, of->rank) / sum : 0;
    of->excess_ns = sum / (steps - 1);
    of->persistence = (double)longest / (steps - 1);
    of->lead = (double)leads / (steps - 1);
    /* nine tenths of its excess are within [from, to) */
    of->from = 1;
    of->to = steps;
    for (uint32_t s = 1; s < steps && sum > 0; s++) {
        part += work[(size_t)of->rank * steps + s] - reference[s];
        if (part < 0.05 * sum)
            of->from = s + 1;
        if (part <= 0.95 * sum)
            of->to = s + 2 < steps ? s + 2 : steps;
    }
}

static int costliest_first(const void *pa, const void *pb)
{
    const struct mstx_waiter *a = pa, *b = pb;
    return MS_ORDER(b->cost + b->steady, a->cost + a->steady, MS_ORDER(a->rank, b->rank, 0));
}

void mstx__waiters_sort(struct mstx_waiters *w)
{
    qsort(w->list.p, w->list.n, sizeof *w->list.p, costliest_first);
}

static bool is_steady(const struct mstx_waiter *of)
{
    return of->steady >= STEADY_LEAST && of->lead >= STEADY_LEAD &&
           (of->persistence >= STEADY_LAST || of->lead >= STEADY_SURE_LEAD);
}

static bool is_regular(const struct mstx_waiter *of)
{
    const bool always = of->steady >= REGULAR_STEADY && of->persistence >= REGULAR_LAST;
    const bool often =
        of->steady >= OFTEN_STEADY && of->persistence >= OFTEN_LAST && of->lead >= OFTEN_LEAD;
    return (always || often) && of->dominance >= REGULAR_DOMINANCE;
}

static bool is_costly(const struct judge *j, const struct mstx_waiter *of)
{
    return of->peak < PEAK_MOST && of->cost >= (j->w->ranks == 2 ? COST_OF_TWO : COST_LEAST) &&
           of->dominance >= DOMINANCE_LEAST;
}

/* Without run delay the work of equal ranks is nearly equal, so an excess is clear by its size, also
 * where the host delays the job so much that it costs the job little, and in nearly all steps also behind a
 * rank that costs more: of two culprits the lesser one had an excess of 0.79 and more and a lead of 0.97,
 * but of the cost only 0.06.  Ranks of 34 clean runs had an excess of 0.13 and a lead of 0.69 at most. */
static bool is_clear(const struct judge *j, const struct mstx_waiter *of)
{
    return j->weight != j->g->weight && of->peak < CLEAR_PEAK && of->excess >= CLEAR_EXCESS &&
           of->cost >= CLEAR_COST && (of->dominance >= DOMINANCE_LEAST || of->lead >= CLEAR_LEAD);
}

static bool may_share(const struct mstx_waiter *of)
{
    return of->excess >= SHARED_EXCESS && of->cost >= CLEAR_COST && of->net >= SHARED_NET &&
           of->peak < CLEAR_PEAK;
}

/* Names the ranks that share nearly all of the cost, when they are no more than half of all ranks: the others are
 * what they are measured by. */
static void name_sharers(struct judge *j)
{
    double dominance = 0;
    uint32_t n = 0;
    for (size_t i = 0; i < j->w->list.n; i++) {
        const bool shares = may_share(&j->w->list.p[i]);
        dominance += shares ? j->w->list.p[i].dominance : 0;
        n += shares;
    }
    if (j->weight == j->g->weight || !j->w->is_known || dominance < SHARED_DOMINANCE ||
        2 * n > j->w->ranks)
        return;
    for (size_t i = 0; i < j->w->list.n; i++)
        j->w->list.p[i].is_named |= may_share(&j->w->list.p[i]);
}

/* Returns the median over ranks and steps of the work of a step. */
static double median_work(const struct judge *j)
{
    const size_t cells = (size_t)j->w->ranks * j->w->steps;
    double *work = ms_alloc(cells * sizeof *work);
    if (work == NULL)
        return INFINITY; /* no excess is clear then */
    memcpy(work, j->w->work, cells * sizeof *work);
    const double median = mstx__median(work, cells);
    ms_free(work);
    return median;
}

static void decide_reason(struct judge *j)
{
    double sum = 0;
    const double work = median_work(j);
    for (uint32_t r = 0; r < j->w->ranks; r++)
        sum += j->w->list.p[r].cost;
    for (uint32_t r = 0; r < j->w->ranks; r++) {
        struct mstx_waiter *of = &j->w->list.p[r];
        of->dominance = sum > 0 ? of->cost / sum : 0;
        describe(j, of);
        of->is_steady = usual_part(j, of) >= USUAL_LEAST;
        of->excess = work > 0 ? of->excess_ns / work : 0;
        of->is_named = j->w->is_known && of->net >= NET_LEAST &&
                       (is_steady(of) || is_regular(of) || is_costly(j, of) || is_clear(j, of));
    }
    name_sharers(j);
    mstx__waiters_sort(j->w);
}

static void measure_job(struct judge *j, double job)
{
    double comm = 0, all = 0;
    for (size_t i = 0; i < j->g->point.n; i++) {
        all += j->weight[i];
        comm += j->g->point.p[i].kind == MSTX_POINT_OUT ? j->weight[i] : 0;
    }
    const double recorded = (double)(j->g->end_ns - j->g->start_ns);
    j->w->job_ns = recorded;
    j->w->in_comm = all > 0 ? comm / all : 0;
    j->w->model_error = recorded > 0 ? fabs(recorded - job) / recorded : 0;
    j->w->step_ns = recorded / j->w->steps;
    j->w->is_known = j->w->steps >= MSTX_STEPS_LEAST && recorded >= JOB_LEAST_NS;
}

/* Makes room for the times of several scenarios in their slots. */
static bool allocate_times(struct judge *j)
{
    const size_t nodes = mstx__deps_count(&j->g->deps) + 1;
    j->slot = ms_alloc(nodes * sizeof *j->slot);
    const size_t slots = j->slot != NULL ? mstx__deps_slots(&j->g->deps, j->slot) : SIZE_MAX;
    if (slots == SIZE_MAX)
        return false;
    j->t = ms_calloc(slots * MSTX_LANES + 1, sizeof *j->t);
    return j->t != NULL;
}

static bool allocate(struct judge *j)
{
    const size_t cells = (size_t)j->w->ranks * j->w->steps, points = j->g->point.n + 1;
    const size_t window = (size_t)j->w->ranks * NEAR;
    j->around = ms_calloc(window + 1, sizeof *j->around);
    j->own_at = ms_calloc(window + 1, sizeof *j->own_at);
    j->own_count = ms_calloc(j->w->ranks + 1, sizeof *j->own_count);
    j->longest = ms_calloc(j->w->steps + 1, sizeof *j->longest);
    j->total = ms_calloc(j->w->ranks + 1, sizeof *j->total);
    j->w->work = ms_calloc(cells + 1, sizeof *j->w->work);
    j->reference = ms_calloc(cells + 1, sizeof *j->reference);
    j->w->step = ms_calloc(points, sizeof *j->w->step);
    j->class = ms_calloc(points, sizeof *j->class);
    j->candidate = ms_calloc(j->w->ranks + 1, sizeof *j->candidate);
    j->healed = j->w->healed = ms_calloc(points, sizeof *j->healed);
    j->scratch = ms_calloc((window > j->w->steps ? window : j->w->steps) + 1, sizeof *j->scratch);
    bool ok = j->around != NULL && j->own_at != NULL && j->own_count != NULL &&
              j->longest != NULL && j->total != NULL && j->w->work != NULL &&
              j->reference != NULL && j->w->step != NULL && j->class != NULL &&
              j->candidate != NULL && j->healed != NULL && j->scratch != NULL &&
              allocate_times(j) && ms_vec_reserve(&j->w->list, j->w->ranks);
    for (uint32_t r = 0; r < j->w->ranks && ok; r++)
        j->w->list.p[j->w->list.n++] = (struct mstx_waiter){.rank = r};
    return ok;
}

static bool judge_all(struct judge *j, const struct mstx_call_steps *steps)
{
    double *shift = ms_calloc(j->w->ranks + 1, sizeof *shift);
    if (shift == NULL || !allocate(j) || !find_servers(j, steps)) {
        ms_free(shift);
        return false;
    }
    place_points(j);
    find_references(j);
    find_totals(j);
    const double job = replay(j, j->weight, &j->span);
    measure_job(j, job);
    find_candidates(j);
    heal_by_reference(j);
    find_costs(j, job, false);
    const bool ok = find_shifts(j, shift);
    if (ok) {
        for (uint32_t r = 0; r < j->w->ranks; r++)
            j->w->list.p[r].shift_ns = shift[r];
        heal_by_shift(j, shift);
        find_costs(j, job, true);
        heal_by_reference(j); /* again: these weights are part of the result */
        decide_reason(j);
    }
    ms_free(shift);
    return ok;
}

void mstx__waiters_judge(struct mstx_waiters *w, const struct mstx_call_graph *g,
                         const double *weight, const struct mstx_call_steps *steps)
{
    struct judge j = {.w = w, .g = g, .weight = weight};
    *w = (struct mstx_waiters){.ranks = (uint32_t)(g->first.n - 1)};
    ms_assert(!g->no_memory && g->first.n != 0);
    if (w->ranks < 2 || g->point.n == 0)
        return;
    w->no_memory = steps->no_memory || !copy_steps(&j, steps);
    if (!w->no_memory && w->steps >= 2)
        w->no_memory = !judge_all(&j, steps);
    ms_free(j.reference);
    ms_free(j.class);
    ms_free(j.candidate);
    ms_free(j.serves);
    ms_free(j.around);
    ms_free(j.own_at);
    ms_free(j.own_count);
    ms_free(j.longest);
    ms_free(j.total);
    ms_free(j.t);
    ms_free(j.slot);
    ms_free(j.scratch);
}

/* ---- shares of the named ranks ------------------------------------------------------------ */

/* Makes the named ranks the candidates; a candidate is then a place in the list.  Only they are healed.  A named
 * rank was a candidate with or without run delay. */
static void choose_named(struct judge *j, uint8_t *class_of)
{
    for (size_t i = 0; i < j->w->list.n; i++) {
        const bool is_named = j->w->list.p[i].is_named;
        ms_assert(j->candidates < MSTX_NO_FEW);
        class_of[j->w->list.p[i].rank] = is_named ? (uint8_t)j->candidates : MSTX_NO_FEW;
        if (is_named)
            j->candidate[j->candidates++].rank = (uint32_t)i;
    }
    for (size_t i = 0; i < j->g->point.n; i++) {
        j->class[i] = class_of[j->g->point.p[i].rank];
    }
}

/* Names no rank any more without whose excess the steps take as long. */
static void acquit(struct judge *j, double steps)
{
    const double least = SAVED_LEAST * steps;
    for (size_t i = 0; i < j->w->list.n; i++)
        j->w->list.p[i].is_named &= j->w->list.p[i].cost * j->span >= least;
}

void mstx__waiters_share(struct mstx_waiters *w, const struct mstx_call_graph *g)
{
    const size_t points = g->point.n + 1;
    struct judge j = {.w = w, .g = g, .weight = g->weight, .healed = w->healed, .is_shared = true};
    uint8_t *class_of = ms_calloc(w->ranks + 1, sizeof *class_of);
    j.candidate = ms_calloc(w->ranks + 1, sizeof *j.candidate);
    j.class = ms_calloc(points, sizeof *j.class);
    if (class_of != NULL && j.candidate != NULL && j.class != NULL && allocate_times(&j)) {
        choose_named(&j, class_of);
        double steps;
        const double job = replay(&j, g->weight, &steps);
        j.span = job > 0 ? job : 1;
        find_costs(&j, job, false);
        acquit(&j, steps);
        mstx__waiters_sort(w);
    } else {
        w->no_memory = true;
    }
    ms_free(class_of);
    ms_free(j.candidate);
    ms_free(j.class);
    ms_free(j.t);
    ms_free(j.slot);
}

void mstx__waiters_free(struct mstx_waiters *w)
{
    ms_vec_free(&w->list);
    ms_free(w->work);
    ms_free(w->step_at);
    ms_free(w->healed);
    ms_free(w->step);
}
