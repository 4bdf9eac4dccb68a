/* SPDX-License-Identifier: MIT
 *
 * Drawn jobs against a slow second answer: each operation waits for the kernel before it on its rank, and
 * what meets starts together.  Durations of peers, shares, groups, workers and the critical path are taken
 * from whole replays of that model.
 */
#include "tests/support/job_model.h"

/* ---- a drawn job ---- */

static void draw_work(uint32_t rank)
{
    static const char *const types[] = {"forward-compute", "backward-compute", "gc", "work"};
    add(types[below(4)], rank, now[rank], now[rank] + 2000 + below(60000), MSTX_NO_MEET);
}

static void draw_collective(uint32_t event)
{
    const uint32_t members = 1 + below((1u << ops.rank.n) - 1);
    int64_t latest = 0;
    for (uint32_t r = 0; r < ops.rank.n; r++)
        latest = (members >> r & 1) != 0 && now[r] > latest ? now[r] : latest;
    latest += 3000 + below(20000);
    for (uint32_t r = 0; r < ops.rank.n; r++) {
        if ((members >> r & 1) != 0)
            add("grads-reduce-scatter", r, now[r], latest + below(900), event);
    }
}

/* One way, or both ways at nearly the same time: often one kernel, recorded twice. */
static void draw_transfer(uint32_t event, bool both)
{
    const uint32_t n = (uint32_t)ops.rank.n, a = below(n), b = (a + 1 + below(n - 1)) % n;
    const int64_t from = now[a], to = now[b];
    const int64_t end = (from > to ? from : to) + 2500 + below(20000);
    add("forward-send", a, from, end + below(700), event);
    add("forward-recv", b, to, end + below(700), event);
    if (both) {
        add("backward-recv", a, from + below(1300), end + below(1300), event + 1);
        add("backward-send", b, to + below(1300), end + below(1300), event + 1);
    }
}

static void draw_step(int64_t start)
{
    for (uint32_t r = 0; r < ops.rank.n; r++)
        now[r] = start + below(3000);
    for (uint32_t event = 0; event < EVENTS; event++) {
        const uint32_t kind = below(8);
        if (kind < 4)
            draw_work(below((uint32_t)ops.rank.n));
        else if (kind < 6)
            draw_collective(event);
        else if (event + 1 < EVENTS)
            draw_transfer(event++, kind == 7);
    }
}

/* Numbers of meetings are those of their first operations. */
static void settle_meets(void)
{
    uint32_t event[OPS];
    for (size_t i = 0; i < ops.op.n; i++)
        event[i] = ops.op.p[i].meet;
    for (size_t s = 0; s < mstx__ops_steps(&ops); s++) {
        const size_t first = ops.step.p[s].first;
        for (size_t i = first; i < ops.step.p[s + 1].first; i++) {
            size_t k = first;
            while (event[k] != event[i])
                k++;
            ops.op.p[i].meet = event[i] != MSTX_NO_MEET ? (uint32_t)(k - first) : MSTX_NO_MEET;
        }
    }
}

static void draw_job(uint64_t seed, uint32_t steps)
{
    state = seed;
    ops = (struct mstx_ops){0};
    w = (struct mstx_whatif){0};
    const uint32_t ranks = 2 + below(RANKS - 1), stages = 1 + below(3);
    for (uint32_t r = 0; r < ranks; r++)
        mstx__ops_rank(&ops, (int32_t)(10 + r), (int32_t)(r / stages),
                       below(9) != 0 ? (int32_t)(r % stages) : -1, (int32_t)(r % 2) - 1);
    int64_t start = 5000;
    for (uint32_t s = 0; s < steps; s++) {
        mstx__ops_begin_step(&ops, s, start);
        draw_step(start);
        for (uint32_t r = 0; r < ranks; r++)
            start = now[r] > start ? now[r] : start;
    }
    mstx__ops_ready(&ops);
    ck_assert(!ops.no_memory && ops.op.n <= OPS);
    settle_meets();
}

static void draw_and_replay(uint64_t seed)
{
    draw_job(seed, 1 + (uint32_t)(seed % STEPS));
    ck_assert(mstx__whatif_new(&w, &ops, MSTX_GRAPH_GENERIC, seed % 3 != 0));
}

/* ---- who waits for whom ---- */

static bool is_one_kernel(size_t a, size_t b)
{
    const struct mstx_op *x = &ops.op.p[a], *y = &ops.op.p[b];
    return x->rank == y->rank && mstx__op_is_transfer(kind_of(a)) &&
           mstx__op_is_transfer(kind_of(b)) && llabs(x->start_ns - y->start_ns) < 1000 &&
           llabs(x->end_ns - y->end_ns) < 1000;
}

/* Each operation waits for all of the kernel before. */
static void wait_for_kernels(size_t from, size_t to)
{
    size_t first = from, before = from;
    for (size_t i = from; i < to; i++) {
        const bool begins = i == from || ops.op.p[i].rank != ops.op.p[i - 1].rank;
        if (i != from && is_one_kernel(first, i)) {
            join_units(from, to, first, i);
        } else {
            before = begins ? i : first;
            first = i;
        }
        for (size_t k = before; k < first; k++)
            wait_for(i, k);
    }
}

static void build_model(void)
{
    build_model_of(wait_for_kernels);
}

/* ---- tests ---- */

static void check_steps(void)
{
    double recorded = 0, low = INFINITY, high = 0;
    const size_t steps = mstx__ops_steps(&ops);
    for (size_t s = 0; s < steps; s++) {
        int64_t end = ops.step.p[s].start_ns;
        for (size_t i = ops.step.p[s].first; i < ops.step.p[s + 1].first; i++)
            end = ops.op.p[i].end_ns > end ? ops.op.p[i].end_ns : end;
        recorded += (double)(end - ops.step.p[s].start_ns) / (double)steps;
        ck_near(w.step_ns[s], model_step(s, w.recorded));
        ck_near(w.ideal_ns[s], model_step(s, w.ideal));
        const double ratio = w.step_ns[s] / w.ideal_ns[s];
        low = ratio < low ? ratio : low;
        high = ratio > high ? ratio : high;
    }
    ck_near(w.record_ns, recorded);
    ck_assert(w.ideal_ns[0] == 0 || (w.low >= low - 1e-9 && w.low <= w.slowdown + 1e-9));
    ck_assert(w.ideal_ns[0] == 0 || (w.high <= high + 1e-9 && w.high >= w.slowdown - 1e-9));
}

START_TEST(replays_are_those_of_the_model)
{
    for (uint64_t seed = 1; seed < CASES; seed++) {
        double peers[OPS];
        draw_and_replay(seed);
        build_model();
        check_weights(seed % 3 != 0);
        check_steps();
        for (size_t i = 0; i < ops.op.n; i++)
            peers[i] = of_peers(i, true, NULL, ops.type.p[ops.op.p[i].type].is_comm);
        const double real = model_mean(w.recorded), ideal = model_mean(w.ideal);
        ck_assert_uint_eq(w.left_out, ops.op.n - model.ordered);
        ck_near(w.replay_ns, real);
        ck_near(w.mean_ideal_ns, ideal);
        ck_near(w.slowdown, ideal > 0 ? real / ideal : 1);
        ck_near(w.peers_slowdown, ideal > 0 ? real / model_mean(peers) : 1);
        ck_near(w.model_error, fabs(w.record_ns - real) / w.record_ns);
        free_job();
    }
}
END_TEST

START_TEST(a_share_is_the_replay_of_its_class_alone)
{
    for (uint64_t seed = 1; seed < CASES; seed++) {
        draw_and_replay(seed);
        build_model();
        for (int kind = 0; kind < MSTX_SHARE_KINDS; kind++)
            check_shares((enum mstx_share_kind)kind);
        free_job();
    }
}
END_TEST

/* ---- groups and workers ---- */

static void check_heal(const bool *marked)
{
    double weight[OPS];
    memcpy(weight, w.recorded, ops.op.n * sizeof *weight);
    ck_assert(mstx__whatif_heal(&w, marked, weight));
    for (size_t i = 0; i < ops.op.n; i++) {
        const double near = of_peers(i, true, marked, true), far = of_peers(i, false, marked, true);
        const double want = !marked[i] || isnan(far) ? w.recorded[i] : isnan(near) ? far : near;
        ck_near(weight[i], want);
    }
    ck_near(mstx__whatif_mean(&w, weight), model_mean(weight));
}

static void check_group(const bool *marked)
{
    double added[OPS], removed[OPS];
    struct mstx_group_share g;
    for (size_t i = 0; i < ops.op.n; i++) {
        added[i] = marked[i] ? w.recorded[i] : w.ideal[i];
        removed[i] = marked[i] ? w.ideal[i] : w.recorded[i];
    }
    const double real = model_mean(w.recorded), ideal = model_mean(w.ideal);
    ck_assert(mstx__whatif_group(&w, marked, &g));
    ck_near(g.added_ns, model_mean(added));
    ck_near(g.removed_ns, model_mean(removed));
    ck_near(g.adds, real > ideal ? (g.added_ns - ideal) / (real - ideal) : 0);
    ck_near(g.removes, real > ideal ? (real - g.removed_ns) / (real - ideal) : 0);
}

START_TEST(marked_operations_take_the_time_of_their_peers)
{
    for (uint64_t seed = 1; seed < CASES; seed++) {
        bool marked[OPS];
        draw_and_replay(seed);
        build_model();
        for (size_t i = 0; i < ops.op.n; i++)
            marked[i] = seed % 2 != 0 ? below(3) == 0 : ops.op.p[i].rank == seed % ops.rank.n;
        check_heal(marked);
        check_group(marked);
        free_job();
    }
}
END_TEST

static double slowdown_of(enum mstx_share_kind kind, int32_t class)
{
    double weight[OPS];
    if (class < 0 || weigh_class(kind, (uint32_t) class, weight) == 0)
        return 0;
    return w.mean_ideal_ns > 0 ? model_mean(weight) / w.mean_ideal_ns : 1;
}

/* Up to 33 ranks one worker is marked: no other explains more. */
START_TEST(the_worst_worker_is_slow_by_rank_and_by_stage)
{
    for (uint64_t seed = 1; seed < CASES; seed++) {
        bool worst[RANKS];
        double score[RANKS], most = -1;
        uint32_t marked = 0;
        draw_and_replay(seed);
        build_model();
        ck_assert(mstx__whatif_worst(&w, worst));
        for (size_t r = 0; r < ops.rank.n; r++) {
            score[r] = fmin(slowdown_of(MSTX_BY_DP_RANK, ops.rank.p[r].dp),
                            slowdown_of(MSTX_BY_STAGE, ops.rank.p[r].stage));
            most = fmax(most, score[r]);
            marked += worst[r];
        }
        ck_assert_uint_eq(marked, 1);
        for (size_t r = 0; r < ops.rank.n; r++)
            ck_assert(!worst[r] || score[r] >= most - 1e-9);
        free_job();
    }
}
END_TEST

/* ---- the critical path ---- */

static void follow_back(size_t step, double *by_rank)
{
    size_t at = model.order[model.step_at[step]];
    for (size_t k = model.step_at[step]; k < model.step_at[step + 1]; k++)
        at = model.end[model.order[k]] > model.end[at] ? model.order[k] : at;
    while (at != MSTX_NO_OP) {
        by_rank[ops.op.p[at].rank] += w.recorded[at];
        start_of(step, model.unit[at], &at);
    }
}

START_TEST(the_critical_path_is_found_from_its_end)
{
    for (uint64_t seed = 1; seed < CASES; seed++) {
        double by_rank[RANKS], want[RANKS] = {0};
        draw_job(seed, 1 + (uint32_t)(seed % STEPS));
        ck_assert(mstx__whatif_new(&w, &ops, MSTX_GRAPH_GENERIC, true));
        build_model();
        for (size_t s = 0; s < mstx__ops_steps(&ops); s++) {
            model_step(s, w.recorded);
            if (model.step_at[s] < model.step_at[s + 1])
                follow_back(s, want);
        }
        ck_assert(mstx__whatif_critical(&w, by_rank));
        for (size_t r = 0; r < ops.rank.n; r++)
            ck_near(by_rank[r], want[r]);
        free_job();
    }
}
END_TEST

/* ---- one graph of all steps ---- */

/* From the latest end of all steps before to the latest end of a step and those before. */
static double cut_step(uint32_t step, const uint32_t *step_of)
{
    double before = 0, end = 0;
    for (size_t k = 0; k < model.ordered; k++) {
        const size_t i = model.order[k];
        if (step_of[i] < step && model.end[i] > before)
            before = model.end[i];
        if (step_of[i] <= step && model.end[i] > end)
            end = model.end[i];
    }
    return end - before;
}

START_TEST(a_job_in_one_graph_is_cut_at_the_ends_of_steps)
{
    for (uint64_t seed = 1; seed < CASES; seed++) {
        double recorded[OPS], ideal[OPS];
        uint32_t step_of[OPS];
        const uint32_t steps = 1 + (uint32_t)(seed % 5);
        struct mstx_deps deps;
        struct mstx_whatif of = {0};
        draw_job(seed, 1);
        mstx__op_graph(&ops, MSTX_GRAPH_GENERIC, &deps);
        for (size_t i = 0; i < ops.op.n; i++) {
            recorded[i] = 1000 + below(50000);
            ideal[i] = 1000 + below(40000);
            step_of[i] = below(8) == 0 ? UINT32_MAX : below(steps);
        }
        ck_assert(mstx__whatif_of_graph(&of, &ops, &deps, recorded, ideal, step_of, steps));
        ck_assert_uint_eq(deps.op.n, 0);
        build_model();
        ck_near(of.mean_ideal_ns, model_mean(ideal));
        for (uint32_t s = 0; s < steps; s++)
            ck_near(of.ideal_ns[s], cut_step(s, step_of));
        ck_near(of.replay_ns, model_mean(recorded));
        for (uint32_t s = 0; s < steps; s++)
            ck_near(of.step_ns[s], cut_step(s, step_of));
        ck_near(of.record_ns, mstx__ops_step_ns(&ops, 0));
        mstx__whatif_free(&of);
        mstx__ops_free(&ops);
    }
}
END_TEST

/* ---- the interval ---- */

enum { LONG = 30, DRAWS = 20000 };

/* Steps of one rank whose work is drawn beside a constant part. */
static void draw_long_job(void)
{
    ops = (struct mstx_ops){0};
    mstx__ops_rank(&ops, 0, 0, 0, 0);
    for (int64_t s = 0; s < LONG; s++) {
        mstx__ops_begin_step(&ops, s, now[0] = s * 1000000);
        add("work", 0, now[0], now[0] + 100000 + below(100000), MSTX_NO_MEET);
        add("gc", 0, now[0], now[0] + 50000, MSTX_NO_MEET);
    }
    mstx__ops_ready(&ops);
}

/* The limits of nineteen in twenty draws of the steps, drawn twenty times as often as the product does. */
START_TEST(the_interval_holds_nineteen_of_twenty_draws)
{
    static double ratio[DRAWS];
    state = 7;
    draw_long_job();
    ck_assert(mstx__whatif_new(&w, &ops, MSTX_GRAPH_GENERIC, true));
    for (int i = 0; i < DRAWS; i++) {
        double real = 0, ideal = 0;
        for (int k = 0; k < LONG; k++) {
            const uint32_t s = below(LONG);
            real += w.step_ns[s];
            ideal += w.ideal_ns[s];
        }
        ratio[i] = real / ideal;
    }
    qsort(ratio, DRAWS, sizeof *ratio, by_size);
    const double low = ratio[DRAWS / 40], high = ratio[DRAWS - DRAWS / 40];
    ck_assert_double_eq_tol(w.low, low, 0.06 * (high - low));
    ck_assert_double_eq_tol(w.high, high, 0.06 * (high - low));
    free_job();
}
END_TEST

TEST_MAIN("whatif_drawn", replays_are_those_of_the_model, a_share_is_the_replay_of_its_class_alone,
          marked_operations_take_the_time_of_their_peers,
          the_worst_worker_is_slow_by_rank_and_by_stage, the_critical_path_is_found_from_its_end,
          a_job_in_one_graph_is_cut_at_the_ends_of_steps,
          the_interval_holds_nineteen_of_twenty_draws)
