/* SPDX-License-Identifier: MIT
 *
 * The rules by which a rank is named, at their limits, and what they ask of drawn work: these functions are
 * static, so their file is part of this test.
 */
#include "mstx/cluster/waiters.c"

#include "tests/support/check.h"

enum { CASES = 300, RANKS = 5, STEPS = 30 };

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

/* ---- rules ------------------------------------------------------------------------------------- */

#define LESS(x) nextafter((x), 0)

/* Values at the limits of a rule, and what one that is just below any of them makes of it. */
START_TEST(a_steady_rank_costs_a_twelfth_and_works_longest_in_most_steps)
{
    const struct mstx_waiter longest = {.steady = 0.08, .lead = 0.6, .persistence = 0.6},
                             sure = {.steady = 0.08, .lead = 0.8, .persistence = 0};
    struct mstx_waiter x = longest;
    ck_assert(is_steady(&longest) && is_steady(&sure));
    x.steady = LESS(0.08);
    ck_assert(!is_steady(&x));
    x = longest;
    x.lead = LESS(0.6);
    ck_assert(!is_steady(&x));
    x = longest;
    x.persistence = LESS(0.6);
    ck_assert(!is_steady(&x));
    x = sure;
    x.lead = LESS(0.8);
    ck_assert(!is_steady(&x));
}
END_TEST

START_TEST(a_regular_rank_costs_little_and_is_nearly_always_the_one)
{
    const struct mstx_waiter always = {.steady = 0.02, .persistence = 0.9, .dominance = 0.6},
                             often = {.steady = 0.04,
                                      .persistence = 0.75,
                                      .lead = 0.8,
                                      .dominance = 0.6};
    const double limit[] = {0.02, 0.9, 0.6, 0.04, 0.75, 0.8, 0.6};
    ck_assert(is_regular(&always) && is_regular(&often));
    for (int i = 0; i < 7; i++) {
        struct mstx_waiter x = i < 3 ? always : often;
        double *const of[] = {&x.steady,      &x.persistence, &x.dominance, &x.steady,
                              &x.persistence, &x.lead,        &x.dominance};
        ck_assert(*of[i] == limit[i]);
        *of[i] = LESS(limit[i]);
        ck_assert_msg(!is_regular(&x), "limit %d", i);
    }
}
END_TEST

/* Of two ranks one always has most of the cost, so that it has to cost more. */
START_TEST(a_costly_rank_has_most_of_the_cost_in_more_than_two_steps)
{
    for (uint32_t ranks = 2; ranks < 4; ranks++) {
        struct mstx_waiters w = {.ranks = ranks};
        const struct judge j = {.w = &w};
        const double least = ranks == 2 ? 0.25 : 0.15;
        struct mstx_waiter x = {.peak = LESS(0.6), .cost = least, .dominance = 0.75};
        ck_assert(is_costly(&j, &x));
        x.peak = 0.6;
        ck_assert(!is_costly(&j, &x));
        x = (struct mstx_waiter){.cost = LESS(least), .dominance = 0.75};
        ck_assert(!is_costly(&j, &x));
        x = (struct mstx_waiter){.cost = least, .dominance = LESS(0.75)};
        ck_assert(!is_costly(&j, &x));
    }
}
END_TEST

/* Only work without run delay says so. */
START_TEST(a_clear_excess_is_large_beside_the_work_of_a_step)
{
    double with = 0, without = 0;
    struct mstx_waiters w = {.ranks = 3};
    const struct mstx_call_graph g = {.weight = &with};
    const struct judge calm = {.w = &w, .g = &g, .weight = &without},
                       wall = {.w = &w, .g = &g, .weight = &with};
    const struct mstx_waiter dominant = {.excess = 0.15, .cost = 0.03, .dominance = 0.75},
                             leading = {.excess = 0.15, .cost = 0.03, .lead = 0.9};
    ck_assert(is_clear(&calm, &dominant) && is_clear(&calm, &leading));
    ck_assert(!is_clear(&wall, &dominant) && !is_clear(&wall, &leading));
    struct mstx_waiter x = dominant;
    x.excess = LESS(0.15);
    ck_assert(!is_clear(&calm, &x));
    x = dominant;
    x.cost = LESS(0.03);
    ck_assert(!is_clear(&calm, &x));
    x = dominant;
    x.dominance = LESS(0.75);
    ck_assert(!is_clear(&calm, &x));
    x = leading;
    x.lead = LESS(0.9);
    ck_assert(!is_clear(&calm, &x));
    x = dominant;
    x.peak = LESS(0.45);
    ck_assert(is_clear(&calm, &x));
    x.peak = 0.45;
    ck_assert(!is_clear(&calm, &x));
}
END_TEST

/* Returns how many of four ranks are named of which two have that excess, cost and dominance. */
static uint32_t named_of_two(const struct mstx_waiter *each, uint32_t ranks, bool calm)
{
    double with = 0, without = 0;
    uint32_t named = 0;
    struct mstx_waiters w = {.ranks = ranks, .is_known = true};
    const struct mstx_call_graph g = {.weight = &with};
    struct judge j = {.w = &w, .g = &g, .weight = calm ? &without : &with};
    for (uint32_t r = 0; r < ranks; r++) {
        struct mstx_waiter *x = ms_vec_push(&w.list);
        *x = r < 2 ? *each : (struct mstx_waiter){.rank = r};
    }
    name_sharers(&j);
    for (uint32_t r = 0; r < ranks; r++)
        named += w.list.p[r].is_named;
    ms_vec_free(&w.list);
    return named;
}

START_TEST(ranks_that_share_nearly_all_of_the_cost_are_named_together)
{
    const struct mstx_waiter each = {
        .excess = 0.3, .cost = 0.03, .net = 0.6, .peak = LESS(0.45), .dominance = 0.425};
    ck_assert_uint_eq(named_of_two(&each, 4, true), 2);
    ck_assert_uint_eq(named_of_two(&each, 3, true), 0); /* most of them */
    ck_assert_uint_eq(named_of_two(&each, 4, false), 0);
    const double below[] = {LESS(0.3), LESS(0.03), LESS(0.6), 0.42};
    for (int i = 0; i < 4; i++) {
        struct mstx_waiter x = each;
        double *const of[] = {&x.excess, &x.cost, &x.net, &x.dominance};
        *of[i] = below[i];
        ck_assert_msg(named_of_two(&x, 4, true) == 0, "limit %d", i);
    }
    struct mstx_waiter x = each;
    x.peak = 0.45;
    ck_assert_uint_eq(named_of_two(&x, 4, true), 0);
}
END_TEST

START_TEST(the_costliest_rank_comes_first)
{
    struct mstx_waiters w = {0};
    for (uint32_t r = 0; r < 40; r++) {
        struct mstx_waiter *x = ms_vec_push(&w.list);
        *x = (struct mstx_waiter){.rank = r, .cost = below(4), .steady = below(4)};
    }
    mstx__waiters_sort(&w);
    for (size_t i = 1; i < w.list.n; i++) {
        const struct mstx_waiter *a = &w.list.p[i - 1], *b = &w.list.p[i];
        ck_assert(a->cost + a->steady > b->cost + b->steady ||
                  (a->cost + a->steady == b->cost + b->steady && a->rank < b->rank));
    }
    ms_vec_free(&w.list);
}
END_TEST

/* ---- drawn work -------------------------------------------------------------------------------- */

static double work[RANKS * STEPS], reference[RANKS * STEPS];
static struct mstx_waiters w = {.work = work};
static struct judge j = {.w = &w, .reference = reference};

/* Sets the places of the judge to empty ones. */
static void prepare(void)
{
    static struct step_work around[RANKS * 5];
    static uint32_t own_at[RANKS * 5], own_count[RANKS];
    static double longest[STEPS], total[RANKS];
    memset(longest, 0, sizeof longest);
    memset(total, 0, sizeof total);
    j.around = around;
    j.own_at = own_at;
    j.own_count = own_count;
    j.longest = longest;
    j.total = total;
}

static void draw_work(uint64_t seed)
{
    state = seed;
    w.ranks = 2 + below(RANKS - 1);
    w.steps = 3 + below(STEPS - 3);
    for (uint32_t i = 0; i < w.ranks * w.steps; i++) {
        work[i] = 100 + below(20);
        reference[i] = work[i] - (below(2) == 0 ? below(40) : 0);
    }
}

static int by_size(const void *pa, const void *pb)
{
    const double *a = pa, *b = pb;
    return *a > *b ? 1 : *a < *b ? -1 : 0;
}

/* The work of a rank in all steps but the first, beyond the median of the others. */
static double net_again(uint32_t rank)
{
    double all[RANKS] = {0}, v[RANKS];
    size_t n = 0;
    for (uint32_t i = 0; i < w.ranks * w.steps; i++)
        all[i / w.steps] += i % w.steps != 0 ? work[i] : 0;
    for (uint32_t r = 0; r < w.ranks; r++) {
        if (r != rank)
            v[n++] = all[r];
    }
    qsort(v, n, sizeof *v, by_size);
    return all[rank] - (v[(n - 1) / 2] + v[n / 2]) / 2;
}

static void check_described(uint32_t rank, double shift)
{
    struct mstx_waiter x = {.rank = rank, .shift_ns = shift};
    double excess[STEPS], sum = 0, part = 0, most = 0, next = 0;
    uint32_t longest = 0, leads = 0, before = 0, until = 0;
    const uint32_t n = w.steps - 1;
    for (uint32_t s = 1; s < w.steps; s++) {
        const double own = work[rank * w.steps + s];
        bool is_longest = true;
        for (uint32_t r = 0; r < w.ranks; r++)
            is_longest = is_longest && own >= work[r * w.steps + s];
        longest += is_longest;
        leads += own > reference[rank * w.steps + s] + shift / 2;
        sum += excess[s] = own - reference[rank * w.steps + s];
    }
    for (uint32_t s = 1; s < w.steps; s++) {
        next = excess[s] > most ? most : fmax(next, excess[s]);
        most = fmax(most, excess[s]);
        part += excess[s];
        before += part < 0.05 * sum;
        until = part <= 0.95 * sum ? s : until;
    }
    describe(&j, &x);
    ck_assert_double_eq_tol(x.net, sum > 0 ? net_again(rank) / sum : 0, 1e-9);
    ck_assert_double_eq_tol(x.excess_ns, sum / n, 1e-9);
    ck_assert_double_eq_tol(x.persistence, (double)longest / n, 1e-12);
    ck_assert_double_eq_tol(x.lead, (double)leads / n, 1e-12);
    ck_assert_double_eq_tol(x.peak, sum > 0 ? (most + next) / sum : 0, 1e-12);
    ck_assert_uint_eq(x.from, sum > 0 ? 1 + before : 1);
    uint32_t usual = 0;
    double held = 0;
    for (uint32_t s = x.from; s < x.to; s++)
        held += excess[s] / (x.to - x.from);
    for (uint32_t s = x.from; s < x.to; s++)
        usual += 2 * excess[s] >= held - 1e-9;
    ck_assert_double_eq_tol(usual_part(&j, &x), held > 0 ? (double)usual / (x.to - x.from) : 0,
                            1e-12);
    ck_assert_uint_eq(x.to, sum > 0 && until != 0 && until + 2 < w.steps ? until + 2 : w.steps);
}

START_TEST(what_is_told_of_a_rank_is_counted_again)
{
    double scratch[RANKS * 5 + STEPS];
    bool serves[RANKS] = {false};
    for (uint64_t seed = 1; seed < CASES; seed++) {
        draw_work(seed);
        j.scratch = scratch;
        j.serves = serves;
        prepare();
        find_totals(&j);
        for (uint32_t r = 0; r < w.ranks; r++)
            check_described(r, below(3) == 0 ? 0 : below(30));
    }
}
END_TEST

/* The median of comparable ranks in the steps around, at most the own work; without any the own steps. */
static double reference_of(uint32_t rank, uint32_t step, const bool *serves)
{
    double v[RANKS * 5];
    size_t n = 0;
    for (int pass = 0; pass < 2 && n == 0; pass++) {
        for (uint32_t i = 0; i < w.ranks * w.steps; i++) {
            const uint32_t r = i / w.steps, s = i % w.steps;
            const bool counts = pass == 1 ? r == rank : r != rank && (!serves[r] || serves[rank]);
            if (counts && s != 0 && s + 2 >= step && s <= step + 2)
                v[n++] = work[i];
        }
    }
    qsort(v, n, sizeof *v, by_size);
    return fmin((v[(n - 1) / 2] + v[n / 2]) / 2, work[rank * w.steps + step]);
}

START_TEST(a_rank_is_measured_by_those_that_do_the_same)
{
    double scratch[RANKS * 5 + STEPS];
    bool serves[RANKS];
    for (uint64_t seed = 1; seed < CASES; seed++) {
        draw_work(seed);
        for (uint32_t r = 0; r < w.ranks; r++)
            serves[r] = below(4) == 0;
        j.scratch = scratch;
        j.serves = serves;
        prepare();
        find_references(&j);
        for (uint32_t r = 0; r < w.ranks; r++) {
            for (uint32_t s = 1; s < w.steps; s++)
                ck_assert_double_eq_tol(reference[r * w.steps + s], reference_of(r, s, serves),
                                        1e-9);
        }
    }
}
END_TEST

/* The first decile of the steps but the first. */
START_TEST(undisturbed_work_is_the_first_decile)
{
    double scratch[STEPS], sorted[STEPS];
    for (uint64_t seed = 1; seed < CASES; seed++) {
        draw_work(seed);
        j.scratch = scratch;
        for (uint32_t r = 0; r < w.ranks; r++) {
            memcpy(sorted, work + r * w.steps + 1, (w.steps - 1) * sizeof *sorted);
            qsort(sorted, w.steps - 1, sizeof *sorted, by_size);
            ck_assert_double_eq(undisturbed_work(&j, r), sorted[(w.steps - 1) / 10]);
        }
    }
}
END_TEST

TEST_MAIN("wait_rules", a_steady_rank_costs_a_twelfth_and_works_longest_in_most_steps,
          a_regular_rank_costs_little_and_is_nearly_always_the_one,
          a_costly_rank_has_most_of_the_cost_in_more_than_two_steps,
          a_clear_excess_is_large_beside_the_work_of_a_step,
          ranks_that_share_nearly_all_of_the_cost_are_named_together,
          the_costliest_rank_comes_first, what_is_told_of_a_rank_is_counted_again,
          a_rank_is_measured_by_those_that_do_the_same, undisturbed_work_is_the_first_decile)
