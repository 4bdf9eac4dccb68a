/* SPDX-License-Identifier: MIT
 *
 * The reasons why a rank works longer, at their limits, and what they ask of drawn work counted again: these
 * functions are static, so their file is part of this test.
 */
#include "mstx/cluster/wait_causes.c"

#include "tests/support/check.h"

#include <math.h>

enum { CASES = 2000, RANKS = 5, STEPS = 7, POINTS = 40 };

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

#define LESS(x) nextafter((x), 0)

/* ---- one drawn run ------------------------------------------------------------------------------- */

static double wall_work[RANKS * STEPS], calm_work[RANKS * STEPS], others[RANKS + 1],
    of_step[STEPS + 1], sum[RANKS * PARTS], used[POINTS * MSTX_USES], weight[POINTS],
    recorded[POINTS], calm_healed[POINTS], healed[POINTS];
static bool is_named[RANKS];
static uint32_t step_of[POINTS], first[RANKS + 1];
static struct mstx_point point[POINTS];
static struct mstx_thread_use use;
static struct mstx_waiters wall, calm;
static struct mstx_call_graph graph;
static struct causes c;

static void draw(uint64_t seed)
{
    state = seed;
    ms_vec_free(&wall.list);
    ms_vec_free(&calm.list);
    wall = (struct mstx_waiters){.ranks = 2 + below(RANKS - 1),
                                 .steps = 2 + below(STEPS - 1),
                                 .work = wall_work,
                                 .step = step_of,
                                 .healed = healed};
    calm = (struct mstx_waiters){.work = calm_work, .healed = calm_healed};
    for (size_t i = 0; i < RANKS * STEPS; i++) {
        calm_work[i] = below(4);
        wall_work[i] = calm_work[i] + below(5);
    }
    for (size_t i = 0; i < RANKS * PARTS; i++)
        sum[i] = below(6);
    for (size_t i = 0; i < RANKS; i++)
        is_named[i] = below(3) == 0;
    c = (struct causes){.wall = &wall,
                        .calm = &calm,
                        .g = &graph,
                        .use = &use,
                        .weight = weight,
                        .sum = sum,
                        .others = others,
                        .of_step = of_step,
                        .is_named = is_named};
}

static int by_number(const void *pa, const void *pb)
{
    const double *a = pa, *b = pb;
    return *a < *b ? -1 : *a > *b;
}

/* Of an even number the mean of both in the middle. */
static double middle(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_number);
    return n == 0 ? 0 : n % 2 == 1 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static double excess_again(uint32_t rank, enum part part)
{
    double v[RANKS];
    size_t n = 0;
    for (uint32_t r = 0; r < wall.ranks; r++) {
        if (r != rank && !is_named[r])
            v[n++] = sum[r * PARTS + part];
    }
    for (uint32_t r = 0; r < wall.ranks && n == 0; r++) {
        bool all = true;
        for (uint32_t k = 0; k < wall.ranks; k++)
            all &= k == rank || is_named[k];
        for (uint32_t k = 0; k < wall.ranks && all; k++) {
            if (k != rank)
                v[n++] = sum[k * PARTS + part];
        }
    }
    return fmax(0, sum[rank * PARTS + part] - middle(v, n));
}

START_TEST(an_excess_is_beside_those_that_are_not_named)
{
    for (uint64_t seed = 0; seed < CASES; seed++) {
        draw(seed);
        for (uint32_t r = 0; r < wall.ranks; r++) {
            double all = 0;
            for (enum part p = ON_CPU; p < PARTS; p++) {
                ck_assert_double_eq(excess_of(&c, r, p), excess_again(r, p));
                all += p != WRITTEN ? excess_again(r, p) : 0;
            }
            const struct mstx_wait_parts parts = parts_of(&c, r);
            ck_assert_double_eq(parts.on_cpu, all > 0 ? excess_again(r, ON_CPU) / all : 0);
            ck_assert_double_eq(parts.delayed, all > 0 ? excess_again(r, DELAYED) / all : 0);
            ck_assert_double_eq(parts.off_cpu, all > 0 ? excess_again(r, OFF_CPU) / all : 0);
            ck_assert_double_eq(parts.written, all > 0 ? excess_again(r, WRITTEN) : 0);
        }
    }
}
END_TEST

static double delay_again(uint32_t r, uint32_t s)
{
    return wall_work[r * wall.steps + s] - calm_work[r * wall.steps + s];
}

static double usual_again(uint32_t r)
{
    double v[STEPS];
    for (uint32_t s = 1; s < wall.steps; s++)
        v[s - 1] = delay_again(r, s);
    return middle(v, wall.steps - 1);
}

/* The first step is none that counts. */
START_TEST(run_delay_is_compared_with_those_that_work_as_long)
{
    for (uint64_t seed = 0; seed < CASES; seed++) {
        draw(seed);
        for (uint32_t r = 0; r < wall.ranks; r++) {
            double v[RANKS];
            size_t n = 0, leads = 0;
            for (uint32_t k = 0; k < wall.ranks; k++) {
                if (k != r && sum[k * PARTS + ON_CPU] >= sum[r * PARTS + ON_CPU] / 2)
                    v[n++] = usual_again(k);
            }
            ck_assert_double_eq(usual_delay(&c, r), usual_again(r));
            const bool more = n != 0 && usual_again(r) >= 1.5 * middle(v, n);
            ck_assert(is_delayed_more(&c, r) == more);
            for (uint32_t s = 1; s < wall.steps; s++) {
                size_t beaten = 0;
                for (uint32_t k = 0; k < wall.ranks; k++)
                    beaten += k != r && sum[k * PARTS + ON_CPU] >= sum[r * PARTS + ON_CPU] / 2 &&
                              delay_again(k, s) >= delay_again(r, s);
                leads += beaten == 0;
            }
            ck_assert_double_eq(delay_lead(&c, r), (double)leads / (wall.steps - 1));
        }
    }
}
END_TEST

/* The cost of a rank beside those of all that are not named, wherever in the list it stands. */
START_TEST(a_rank_dominates_the_costs_of_others)
{
    for (uint64_t seed = 0; seed < CASES; seed++) {
        draw(seed);
        double not_named = 0;
        for (uint32_t r = 0; r < wall.ranks; r++) {
            struct mstx_waiter *x = ms_vec_push(&wall.list);
            *x = (struct mstx_waiter){.rank = r, .cost = below(4)};
            not_named += is_named[r] ? 0 : x->cost;
        }
        for (uint32_t r = 0; r < wall.ranks; r++) {
            const struct mstx_waiter *of = &wall.list.p[r];
            const double all = not_named + (is_named[r] ? of->cost : 0);
            ck_assert_double_eq(dominance(&c, of), all > 0 ? of->cost / all : 0);
        }
        ms_vec_free(&wall.list);
    }
}
END_TEST

/* ---- sums -------------------------------------------------------------------------------------------- */

/* Draws what each rank had used at some times, and finds what it used of each point. */
static void draw_use(void)
{
    enum { SAMPLES = 30 };
    static struct mstx_use_sample sample[RANKS * SAMPLES];
    static uint32_t first_sample[RANKS + 1];
    use = (struct mstx_thread_use){.sample = {.p = sample, .n = wall.ranks * SAMPLES},
                                   .first = {.p = first_sample, .n = wall.ranks + 1}};
    for (uint32_t r = 0; r < wall.ranks; r++) {
        struct mstx_use_sample last = {.at_ns = -10};
        first_sample[r + 1] = (r + 1) * SAMPLES;
        for (uint32_t i = 0; i < SAMPLES; i++) {
            last.at_ns += 1 + below(2 * POINTS / SAMPLES);
            for (int k = 0; k < MSTX_USES; k++)
                last.total[k] += below(4) * below(POINTS / 8);
            sample[r * SAMPLES + i] = last;
        }
    }
    for (size_t i = 0; i < POINTS; i++)
        mstx__use_of_point(&use, &graph, i, used + i * MSTX_USES);
}

static void draw_points(void)
{
    graph = (struct mstx_call_graph){.weight = recorded};
    graph.point.p = point;
    graph.first.p = first;
    for (uint32_t i = 0, r = 0; i < POINTS; i++) {
        r = r + 1 < wall.ranks && below(8) == 0 ? r + 1 : r;
        point[i] = (struct mstx_point){i, r, (uint8_t)below(3)};
        step_of[i] = below(4) == 0 ? UINT32_MAX : below(wall.steps);
        recorded[i] = below(9);
    }
    graph.point.n = POINTS;
    for (uint32_t r = 0; r <= wall.ranks; r++) {
        uint32_t n = 0;
        while (n < POINTS && point[n].rank < r)
            n++;
        first[r] = n;
    }
    graph.first.n = wall.ranks + 1;
    draw_use();
}

START_TEST(use_of_the_work_in_steps_is_summed_by_rank)
{
    for (uint64_t seed = 0; seed < CASES; seed++) {
        double want[RANKS][PARTS] = {{0}}, work = 0, delayed = 0;
        draw(seed);
        draw_points();
        memset(sum, 0, sizeof sum);
        sum_up(&c);
        for (size_t i = 0; i < POINTS; i++) {
            const double late = used[i * MSTX_USES + MSTX_DELAYED],
                         left = recorded[i] > late ? recorded[i] - late : 0;
            ck_assert_double_eq(weight[i], left);
            if (point[i].kind == MSTX_POINT_OUT || step_of[i] == UINT32_MAX)
                continue;
            double *of = want[point[i].rank];
            of[ON_CPU] += used[i * MSTX_USES + MSTX_ON_CPU];
            of[OFF_CPU] += left - used[i * MSTX_USES + MSTX_ON_CPU];
            of[DELAYED] += recorded[i] - left;
            of[WRITTEN] += used[i * MSTX_USES + MSTX_WRITTEN];
            work += recorded[i];
            delayed += recorded[i] - left;
        }
        for (uint32_t r = 0; r < wall.ranks; r++) {
            for (int p = 0; p < PARTS; p++)
                ck_assert_double_eq(sum[r * PARTS + (uint32_t)p], want[r][p]);
        }
        ck_assert_double_eq(wall.delayed, work > 0 ? delayed / work : 0);
    }
}
END_TEST

/* The excess of the calm judgement goes away, and with it its part of the run delay. */
START_TEST(healed_weights_lose_the_excess_and_its_run_delay)
{
    for (uint64_t seed = 0; seed < CASES; seed++) {
        const double before = -1;
        draw(seed);
        draw_points();
        for (size_t i = 0; i < POINTS; i++) {
            weight[i] = fmax(0, recorded[i] - used[i * MSTX_USES + MSTX_DELAYED]);
            calm_healed[i] = weight[i] - below(3);
            healed[i] = before;
        }
        for (uint32_t r = 0; r < wall.ranks; r++) {
            struct mstx_waiter *x = ms_vec_push(&wall.list);
            *x = (struct mstx_waiter){.rank = wall.ranks - 1 - r, .is_named = below(2) == 0};
            static const enum mstx_wait_cause causes[] = {
                MSTX_CAUSE_WAITS_FOR_CPU, MSTX_CAUSE_THROTTLED, MSTX_CAUSE_COMPUTES};
            x->cause = causes[below(3)];
            x->part = (struct mstx_wait_parts){.on_cpu = below(3), .off_cpu = below(3)};
        }
        heal(&c);
        for (size_t i = 0; i < POINTS; i++) {
            const struct mstx_waiter *x = &wall.list.p[wall.ranks - 1 - point[i].rank];
            const double on = x->part.on_cpu, both = on + x->part.off_cpu,
                         cpu = used[i * MSTX_USES + MSTX_ON_CPU];
            double gone =
                cpu > 0 && both > 0 ? (weight[i] - calm_healed[i]) * (on / both) / cpu : 0;
            gone = gone < 1 ? gone : 1;
            if (x->is_named && x->cause != MSTX_CAUSE_COMPUTES)
                ck_assert(healed[i] == before);
            else
                ck_assert_double_eq_tol(
                    healed[i], calm_healed[i] + (recorded[i] - weight[i]) * (1 - gone), 1e-9);
        }
        ms_vec_free(&wall.list);
    }
}
END_TEST

/* ---- limits ----------------------------------------------------------------------------------------------- */

/* Two ranks of which the second one is delayed in every step. */
static void delay_second(void)
{
    draw(1);
    wall.ranks = 2;
    wall.steps = 5;
    for (uint32_t s = 0; s < 5; s++) {
        calm_work[s] = calm_work[5 + s] = 10;
        wall_work[s] = 11;
        wall_work[5 + s] = 12;
    }
    memset(is_named, 0, sizeof is_named);
    sum[ON_CPU] = sum[PARTS + ON_CPU] = 50;
    wall.is_known = true;
    wall.list.n = 0;
    *ms_vec_push(&wall.list) = (struct mstx_waiter){.rank = 1, .cost = 0.18};
    *ms_vec_push(&wall.list) = (struct mstx_waiter){.rank = 0, .cost = 0.02};
}

START_TEST(a_rank_waits_for_a_cpu_when_everything_says_so)
{
    const struct mstx_waiter all = {
        .rank = 1, .cost = 0.18, .steady = 0.05, .part = {.delayed = 0.5}};
    struct mstx_waiter x = all;
    delay_second();
    ck_assert(waits_for_cpu(&c, &x)); /* twice the delay, nine tenths of the cost */
    x.steady = LESS(0.05);
    ck_assert(waits_for_cpu(&c, &x)); /* the longest in all steps */
    wall_work[5 + 4] = 11;            /* in three of four */
    ck_assert(waits_for_cpu(&c, &all) && !waits_for_cpu(&c, &x));
    delay_second();
    x = all;
    x.part.delayed = LESS(0.5);
    ck_assert(!waits_for_cpu(&c, &x));
    x = all;
    x.cost = 0.15;
    wall.list.p[1].cost = 0;
    ck_assert(waits_for_cpu(&c, &x));
    x.cost = LESS(0.15);
    ck_assert(!waits_for_cpu(&c, &x));
    wall.list.p[1].cost = 0.0201;
    ck_assert(!waits_for_cpu(&c, &all)); /* another one costs more than a tenth */
    wall.list.p[1].cost = 0.02;
    wall.is_known = false;
    ck_assert(!waits_for_cpu(&c, &all));
    wall.is_known = true;
    for (uint32_t s = 2; s < 5; s++)
        wall_work[5 + s] = 11.5; /* half as long again as the other's */
    ck_assert(waits_for_cpu(&c, &all));
    for (uint32_t s = 2; s < 5; s++)
        wall_work[5 + s] = 11.4;
    ck_assert(!waits_for_cpu(&c, &all));
    delay_second();
    wall_work[5 + 4] = 11; /* three of four steps */
    ck_assert(waits_for_cpu(&c, &all));
    wall_work[3] = 20; /* two of four */
    ck_assert(!waits_for_cpu(&c, &all));
    ms_vec_free(&wall.list);
}
END_TEST

/* Two ranks: the second one waits for 200 ns longer, and 100 ns of the 300 more that it takes are computing. */
static void throttle_second(double throttled[2])
{
    delay_second();
    memset(sum, 0, sizeof sum);
    sum[PARTS + ON_CPU] = 100;
    sum[PARTS + DELAYED] = 150;
    sum[PARTS + OFF_CPU] = 50;
    throttled[0] = 30;
    throttled[1] = 90;
    c.throttled = throttled;
}

START_TEST(a_rank_is_throttled_when_its_group_stood_still)
{
    double throttled[2];
    const struct mstx_waiter all = {
        .rank = 1, .cost = 0.05, .part = {.on_cpu = 0.5, .delayed = 0.3, .off_cpu = 0.2}};
    struct mstx_waiter x = all;
    throttle_second(throttled);
    ck_assert(is_throttled(&c, &x)); /* three tenths of 200 ns */
    throttled[1] = LESS(90);
    ck_assert(!is_throttled(&c, &x));
    throttled[1] = 90;
    x.cost = LESS(0.05);
    ck_assert(!is_throttled(&c, &x));
    x = all;
    x.part.delayed = LESS(0.3);
    ck_assert(!is_throttled(&c, &x)); /* it computes for most of the time */
    throttled[0] = 90;
    ck_assert(!is_throttled(&c, &all)); /* both are in one group */
    throttled[0] = 30;
    wall.is_known = false;
    ck_assert(!is_throttled(&c, &all));
    wall.is_known = true;
    c.throttled = NULL;
    ck_assert(!is_throttled(&c, &all));
    ms_vec_free(&wall.list);
}
END_TEST

/* Also where the judgement without run delay names the rank for what is left. */
START_TEST(being_throttled_is_the_reason_before_others)
{
    double throttled[2];
    throttle_second(throttled);
    *ms_vec_push(&calm.list) = (struct mstx_waiter){.rank = 1, .cost = 0.01, .is_named = true};
    merge(&c, &wall.list.p[0]);
    const struct mstx_waiter *x = &wall.list.p[0];
    ck_assert(x->is_named && x->cost == 0.18);
    ck_assert_int_eq(x->cause, MSTX_CAUSE_THROTTLED);
    ms_vec_free(&wall.list);
    ms_vec_free(&calm.list);
}
END_TEST

START_TEST(a_cause_is_where_most_of_the_excess_is)
{
    draw(1);
    wall.ranks = 2;
    wall.steps = 5;
    memset(sum, 0, sizeof sum);
    memset(is_named, 0, sizeof is_named);
    const double least = 8 * 5, on_cpu = 512 * least / 0.2; /* so much time as the bytes may take */
    sum[ON_CPU] = on_cpu;
    struct mstx_wait_parts p = {.on_cpu = 0.5, .off_cpu = 0.5, .written = least};
    ck_assert_int_eq(cause_of(&c, 0, &p), MSTX_CAUSE_WRITES); /* a disk that keeps up */
    sum[ON_CPU] = on_cpu * (1 + 1e-9);
    ck_assert_int_eq(cause_of(&c, 0, &p), MSTX_CAUSE_COMPUTES);
    p.on_cpu = LESS(0.5);
    ck_assert_int_eq(cause_of(&c, 0, &p), MSTX_CAUSE_WRITES); /* it is off the CPU */
    p.written = LESS(least);
    ck_assert_int_eq(cause_of(&c, 0, &p), MSTX_CAUSE_OFF_CPU);
    p.on_cpu = 0.5;
    ck_assert_int_eq(cause_of(&c, 0, &p), MSTX_CAUSE_COMPUTES);
    p.on_cpu = p.off_cpu = 0;
    ck_assert_int_eq(cause_of(&c, 0, &p), MSTX_CAUSE_UNKNOWN);
}
END_TEST

/* Named without run delay: that judgement stands; else by run delay alone. */
START_TEST(the_calm_judgement_stands_where_it_names)
{
    for (int named = 0; named < 2; named++) {
        delay_second();
        *ms_vec_push(&calm.list) = (struct mstx_waiter){.rank = 0, .cost = 0.3};
        *ms_vec_push(&calm.list) =
            (struct mstx_waiter){.rank = 1, .cost = 0.4, .is_named = named != 0};
        wall.list.p[0].steady = 0.05;
        memset(sum, 0, sizeof sum);
        sum[ON_CPU] = 50;
        sum[PARTS + ON_CPU] = 60;
        sum[PARTS + DELAYED] = 30;
        merge(&c, &wall.list.p[0]);
        const struct mstx_waiter *x = &wall.list.p[0];
        ck_assert(x->rank == 1 && x->is_named);
        ck_assert(x->cost == (named ? 0.4 : 0.18));
        ck_assert_int_eq(x->cause, named ? MSTX_CAUSE_COMPUTES : MSTX_CAUSE_WAITS_FOR_CPU);
        ck_assert_double_eq(x->part.on_cpu, 0.25);
        ck_assert_double_eq(x->part.delayed, 0.75);
        ms_vec_free(&wall.list);
        ms_vec_free(&calm.list);
    }
}
END_TEST

TEST_MAIN("wait_causes", an_excess_is_beside_those_that_are_not_named,
          run_delay_is_compared_with_those_that_work_as_long, a_rank_dominates_the_costs_of_others,
          use_of_the_work_in_steps_is_summed_by_rank,
          healed_weights_lose_the_excess_and_its_run_delay,
          a_rank_waits_for_a_cpu_when_everything_says_so, a_cause_is_where_most_of_the_excess_is,
          a_rank_is_throttled_when_its_group_stood_still,
          being_throttled_is_the_reason_before_others, the_calm_judgement_stands_where_it_names)
