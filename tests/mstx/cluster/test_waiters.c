/* SPDX-License-Identifier: MIT
 *
 * Graphs of communication calls whose answers are worked out by hand.
 */
#include "mstx/cluster/replay_spans.h"
#include "mstx/cluster/waiters.h"
#include "mstx/format/comm.h"

#include "probe/base/mem.h"
#include "tests/support/check.h"

enum { STEPS = 40, MS = 1000000 };

static mstx_gcalls calls;
static struct mstx_call_graph g;
static struct mstx_waiters w;
static const struct mstx_step_times no_steps;

/* Milliseconds become nanoseconds. */
static struct mstx_gcall *add(uint8_t op, uint32_t rank, double start, double end, uint32_t seq)
{
    struct mstx_gcall *c = ms_vec_push(&calls);
    if (c != NULL)
        *c = (struct mstx_gcall){.start_ns = (int64_t)(start * MS),
                                 .end_ns = (int64_t)(end * MS),
                                 .rank = rank,
                                 .seq = seq,
                                 .peer = -1,
                                 .tag = -1,
                                 .op = op,
                                 .lib = MSTX_LIB_MPI};
    return c;
}

static void judge(uint32_t ranks)
{
    mstx__call_graph(&g, &calls, ranks, 0);
    ck_assert(!g.no_memory);
    mstx__waiters(&w, &g, &calls, &no_steps, NULL);
    ck_assert(!w.no_memory);
}

static void end(void)
{
    mstx__waiters_free(&w);
    mstx__call_graph_free(&g);
    ms_vec_free(&calls);
    w = (struct mstx_waiters){0}; /* where memory runs out before it is judged it stays as it was */
}

static double replayed(void)
{
    double *t = ms_calloc(mstx__deps_count(&g.deps) + 1, sizeof *t);
    ck_assert_ptr_nonnull(t);
    const double ns = mstx__deps_replay_one(&g.deps, 0, mstx__deps_count(&g.deps), g.weight, t);
    ms_free(t);
    return ns;
}

/* Rank 1 works 15 ms in one step and `less` in the next one, the others 10 ms in each. */
static void uneven(double less)
{
    double step = 0;
    for (uint32_t s = 0; s < STEPS; s++) {
        const double own = s % 2 == 0 ? 15 : less, longest = own > 10 ? own : 10;
        for (uint32_t r = 0; r < 3; r++)
            add(MSTX_COMM_ALLREDUCE, r, step + (r == 1 ? own : 10), step + longest + 1, s);
        step += longest + 1;
    }
    judge(3);
}

/* So it is where the steps of ranks are cut at other places of their program. */
START_TEST(work_that_moves_between_steps_accuses_nobody)
{
    uneven(10);
    ck_assert(w.list.p[0].is_named && w.list.p[0].rank == 1);
    ck_assert_double_eq_tol(w.list.p[0].net, 1, 1e-9);
    end();
    uneven(5);
    ck_assert(w.is_known && !w.list.p[0].is_named);
    ck_assert_double_eq_tol(w.list.p[0].net, 0, 0.1);
    end();
    uneven(7.5); /* half of what it works longer */
    ck_assert(w.list.p[0].is_named);
    end();
}
END_TEST

/* Three ranks work 10 ms a step and rank 1 15 ms; an all-reduce of 1 ms.  A step takes 16 ms, without the
 * excess of rank 1 it takes 11. */
static void all_reduces(uint32_t slow, double extra)
{
    for (uint32_t s = 0; s < STEPS; s++) {
        const double step = (11 + extra) * s;
        for (uint32_t r = 0; r < 3; r++)
            add(MSTX_COMM_ALLREDUCE, r, step + 10 + (r == slow ? extra : 0), step + 11 + extra, s);
    }
}

START_TEST(a_rank_that_works_longer_is_named_with_its_cost)
{
    all_reduces(1, 5);
    judge(3);
    ck_assert_double_eq_tol(replayed(), 16.0 * MS * STEPS - 10 * MS, 1);
    ck_assert(w.is_known);
    ck_assert_uint_eq(w.list.p[0].rank, 1);
    ck_assert(w.list.p[0].is_named);
    ck_assert(w.list.p[0].is_steady);
    ck_assert(!w.list.p[1].is_named && !w.list.p[2].is_named);
    ck_assert_double_eq_tol(w.list.p[0].cost, 5.0 / 16, 0.02);
    ck_assert_double_eq_tol(w.list.p[0].excess_ns, 5 * MS, 1);
    ck_assert_double_eq_tol(w.list.p[0].persistence, 1, 1e-9);
    end();
}
END_TEST

/* A minute between the first call and the first step does not hide a rank that is slow in all steps. */
START_TEST(a_long_start_hides_nobody)
{
    int64_t at[3 * (STEPS + 1)];
    const struct mstx_step_times steps = {at, STEPS};
    for (uint32_t r = 0; r < 3; r++) {
        add(MSTX_COMM_ALLREDUCE, r, 0, 1, 0);
        for (uint32_t s = 0; s <= STEPS; s++)
            at[r * (STEPS + 1) + s] = (int64_t)(60000 + 16 * s) * MS;
        for (uint32_t s = 0; s < STEPS; s++)
            add(MSTX_COMM_ALLREDUCE, r, 60010 + 16.0 * s + 5 * (r == 1), 60016 + 16.0 * s, s + 1);
    }
    mstx__call_graph(&g, &calls, 3, 0);
    mstx__waiters(&w, &g, &calls, &steps, NULL);
    ck_assert(!g.no_memory && !w.no_memory);
    ck_assert(w.list.p[0].is_named && w.list.p[0].rank == 1);
    ck_assert(!w.list.p[1].is_named && !w.list.p[2].is_named);
    ck_assert_double_eq_tol(w.list.p[0].cost, 5.0 * STEPS / (60000 + 16 * STEPS), 5e-4);
    end();
}
END_TEST

/* Adds a sample of a rank to its totals, which grow by what it used since the one before, ms. */
static void use(struct mstx_thread_use *u, double at, double on_cpu, double delayed, double written)
{
    struct mstx_use_sample *s = ms_vec_push(&u->sample);
    ck_assert_ptr_nonnull(s);
    *s = (struct mstx_use_sample){.at_ns = (int64_t)(at * MS)};
    const bool is_first = u->sample.n - 1 == u->first.p[u->first.n - 1];
    const double more[MSTX_USES] = {on_cpu * MS, delayed * MS, written};
    for (int k = 0; k < MSTX_USES; k++)
        s->total[k] = (is_first ? 0 : s[-1].total[k]) + more[k];
}

static void begin_rank(struct mstx_thread_use *u)
{
    uint32_t *slot = ms_vec_push(&u->first);
    ck_assert_ptr_nonnull(slot);
    *slot = (uint32_t)u->sample.n;
}

static void judge_with(struct mstx_thread_use *u)
{
    mstx__call_graph(&g, &calls, (uint32_t)u->first.n - 1, 0);
    mstx__waiters(&w, &g, &calls, &no_steps, u);
    ck_assert(!g.no_memory && !w.no_memory);
    mstx__use_free(u);
}

/* As all_reduces with an excess of 5 ms, of which rank 1 spends the given times on the CPU and waiting for
 * one, and the rest off the CPU. */
static void use_of_slow_rank(struct mstx_thread_use *u, double on_cpu, double delayed,
                             double written)
{
    all_reduces(1, 5);
    begin_rank(u);
    for (uint32_t r = 0; r < 3; r++) {
        const bool is_slow = r == 1;
        for (uint32_t s = 0; s < STEPS; s++) {
            use(u, 16.0 * s, 0, 0, 0);
            use(u, 16.0 * s + 10 + 5 * is_slow, 10 + on_cpu * is_slow, delayed * is_slow,
                written * is_slow);
        }
        begin_rank(u);
    }
}

static void check_cause(double on_cpu, double delayed, double written, enum mstx_wait_cause cause)
{
    struct mstx_thread_use u = {0};
    use_of_slow_rank(&u, on_cpu, delayed, written);
    judge_with(&u);
    ck_assert(w.is_known && w.has_causes);
    ck_assert_uint_eq(w.list.p[0].rank, 1);
    ck_assert(w.list.p[0].is_named);
    ck_assert_int_eq(w.list.p[0].cause, cause);
    ck_assert(!w.list.p[1].is_named && !w.list.p[2].is_named);
    ck_assert_double_eq_tol(w.list.p[0].part.on_cpu, on_cpu / 5, 0.03);
    ck_assert_double_eq_tol(w.list.p[0].part.delayed, delayed / 5, 0.03);
    end();
}

START_TEST(use_of_the_host_says_why)
{
    check_cause(5, 0, 0, MSTX_CAUSE_COMPUTES);
    check_cause(4, 1, 0, MSTX_CAUSE_COMPUTES);
    check_cause(0, 0, 0, MSTX_CAUSE_OFF_CPU);
    check_cause(0, 0, 100, MSTX_CAUSE_WRITES);
    check_cause(5, 0, 100, MSTX_CAUSE_COMPUTES);
    check_cause(5, 0, 5000,
                MSTX_CAUSE_WRITES); /* the disk keeps up with the copies of the kernel */
    check_cause(0, 5, 0, MSTX_CAUSE_WAITS_FOR_CPU);
}
END_TEST

/* All ranks work 10 ms and lose up to 16 ms to other programs, rank 0 most. */
START_TEST(run_delay_of_all_ranks_accuses_nobody)
{
    struct mstx_thread_use u = {0};
    begin_rank(&u);
    for (uint32_t r = 0; r < 3; r++) {
        for (uint32_t s = 0; s < STEPS; s++) {
            const double lost = s % 3 == r ? 12 + 4 * (r == 0) : s % 2;
            add(MSTX_COMM_ALLREDUCE, r, 31.0 * s + 10 + lost, 31.0 * s + 31, s);
            use(&u, 31.0 * s, 0, 0, 0);
            use(&u, 31.0 * s + 10 + lost, 10, lost, 0);
        }
        begin_rank(&u);
    }
    judge_with(&u);
    for (size_t i = 0; i < w.list.n; i++)
        ck_assert(!w.list.p[i].is_named);
    ck_assert_double_eq_tol(w.delayed, 0.32, 0.05);
    end();
}
END_TEST

/* All ranks work 10 ms and lose 3 to 5 ms to other programs; rank 1 loses `most` in its long steps, which are
 * all but each period-th. */
static void delay_one(double most, uint32_t period)
{
    struct mstx_thread_use u = {0};
    const double step = 11 + most;
    begin_rank(&u);
    for (uint32_t r = 0; r < 3; r++) {
        for (uint32_t s = 0; s < STEPS; s++) {
            const double lost = r == 1 && s % period != 0 ? most : 3 + (s + r) % 3;
            add(MSTX_COMM_ALLREDUCE, r, step * s + 10 + lost, step * s + 10 + most, s);
            use(&u, step * s, 0, 0, 0);
            use(&u, step * s + 10 + lost, 10, lost, 0);
        }
        begin_rank(&u);
    }
    judge_with(&u);
}

START_TEST(a_rank_that_waits_longer_for_a_cpu_than_others_is_named)
{
    delay_one(14, STEPS + 1);
    ck_assert_uint_eq(w.list.p[0].rank, 1);
    ck_assert(w.list.p[0].is_named && !w.list.p[1].is_named && !w.list.p[2].is_named);
    ck_assert_int_eq(w.list.p[0].cause, MSTX_CAUSE_WAITS_FOR_CPU);
    ck_assert_double_eq_tol(w.list.p[0].cost, 9.0 / 25, 0.02);
    end();
    delay_one(14, 2); /* in half of the steps: chance */
    ck_assert(!w.list.p[0].is_named);
    end();
    delay_one(7, STEPS + 1); /* not much longer than the others */
    ck_assert(!w.list.p[0].is_named);
    end();
}
END_TEST

/* The run delay of the CPU time that a rank has in excess goes with it: 5 ms of 15, of which each loses as
 * much again to other programs. */
START_TEST(run_delay_goes_with_its_cpu_time)
{
    struct mstx_thread_use u = {0};
    begin_rank(&u);
    for (uint32_t r = 0; r < 3; r++) {
        const double work = r == 1 ? 15 : 10;
        for (uint32_t s = 0; s < STEPS; s++) {
            add(MSTX_COMM_ALLREDUCE, r, 32.0 * s + 2 * work, 32.0 * s + 31, s);
            use(&u, 32.0 * s, 0, 0, 0);
            use(&u, 32.0 * s + 2 * work, work, work, 0);
        }
        begin_rank(&u);
    }
    judge_with(&u);
    ck_assert(w.list.p[0].is_named && w.list.p[0].rank == 1);
    ck_assert_int_eq(w.list.p[0].cause, MSTX_CAUSE_COMPUTES);
    ck_assert_double_eq_tol(w.list.p[0].cost, 10.0 / 32, 0.02);
    end();
}
END_TEST

/* One step of rank 1 takes 300 ms longer, and the host loses no time. */
START_TEST(one_accident_accuses_nobody)
{
    struct mstx_thread_use u = {0};
    begin_rank(&u);
    for (uint32_t r = 0; r < 3; r++) {
        for (uint32_t s = 0; s < STEPS; s++) {
            const double t = 11.0 * s + (s > 20 ? 300 : 0);
            add(MSTX_COMM_ALLREDUCE, r, t + 10 + (s == 20 && r == 1 ? 300 : 0),
                t + 11 + (s == 20 ? 300 : 0), s);
            use(&u, t, 0, 0, 0);
            use(&u, t + 10 + (s == 20 && r == 1 ? 300 : 0), 10 + (s == 20 && r == 1 ? 300 : 0), 0,
                0);
        }
        begin_rank(&u);
    }
    judge_with(&u);
    for (size_t i = 0; i < w.list.n; i++)
        ck_assert(!w.list.p[i].is_named);
    end();
}
END_TEST

START_TEST(ranks_that_are_equal_are_not_accused)
{
    all_reduces(1, 0);
    judge(3);
    for (size_t i = 0; i < w.list.n; i++)
        ck_assert(!w.list.p[i].is_named);
    end();
}
END_TEST

/* Rank 0 begins the operation, works, and waits for it: the others wait in their own wait, whose end is
 * bound to the wait of rank 0, as data moves inside calls alone. */
START_TEST(work_between_begin_and_wait_makes_the_others_wait)
{
    for (uint32_t s = 0; s < STEPS; s++) {
        const double step = 21.0 * s;
        for (uint32_t r = 0; r < 3; r++) {
            add(MSTX_COMM_ALLREDUCE, r, step, step + 21, s)->flags = MSTX_CF_ASYNC;
            add(MSTX_COMM_WAIT, r, step + (r == 0 ? 20 : 10), step + 21, MSTX_NO_SEQ);
        }
    }
    judge(3);
    ck_assert_uint_eq(w.list.p[0].rank, 0);
    ck_assert(w.list.p[0].is_named);
    ck_assert_double_eq_tol(w.list.p[0].cost, 10.0 / 21, 0.03);
    end();
}
END_TEST

/* A chain of two ranks: rank 1 receives, works and sends back; rank 0 waits for it.  Eager sends return
 * at once, so the receive of the other side holds nobody up. */
static void send_and_receive(double work0, double work1)
{
    double t = 0;
    for (uint32_t s = 0; s < STEPS; s++) {
        struct mstx_gcall *c = add(MSTX_COMM_SEND, 0, t + work0, t + work0 + 0.01, MSTX_NO_SEQ);
        c->peer = 1;
        c = add(MSTX_COMM_RECV, 1, t, t + work0 + 0.1, MSTX_NO_SEQ);
        c->peer = 0;
        c = add(MSTX_COMM_SEND, 1, t + work0 + 0.1 + work1, t + work0 + 0.11 + work1, MSTX_NO_SEQ);
        c->peer = 0;
        c = add(MSTX_COMM_RECV, 0, t + work0 + 0.02, t + work0 + 0.2 + work1, MSTX_NO_SEQ);
        c->peer = 1;
        t += work0 + work1 + 0.2;
    }
}

START_TEST(a_receive_waits_for_its_send_and_not_the_other_way_round)
{
    send_and_receive(10, 10);
    judge(2);
    ck_assert_double_eq_tol(w.model_error, 0, 1e-9);
    const double before = replayed();
    for (uint32_t i = g.first.p[1]; i < g.first.p[2]; i++)
        g.weight[i] *= g.point.p[i].kind == MSTX_POINT_OUT ? 1 : 0.5;
    /* half of the work of rank 1 is half of what the job takes for it */
    ck_assert_double_eq_tol(before - replayed(), 5.0 * MS * STEPS, 0.2 * MS * STEPS);
    end();
}
END_TEST

/* Every fifth step takes 40 ms longer. */
START_TEST(bursts_are_told_from_a_constant)
{
    double t = 0;
    for (uint32_t s = 0; s < STEPS; s++) {
        const double extra = s % 5 == 2 ? 40 : 0;
        for (uint32_t r = 0; r < 4; r++)
            add(MSTX_COMM_ALLREDUCE, r, t + 10 + (r == 3 ? extra : 0), t + 11 + extra, s);
        t += 11 + extra;
    }
    judge(4);
    ck_assert_uint_eq(w.list.p[0].rank, 3);
    ck_assert(w.list.p[0].is_named);
    ck_assert(!w.list.p[0].is_steady);
    ck_assert(!w.list.p[1].is_named);
    end();
}
END_TEST

/* From the middle on all steps take 5 ms longer. */
START_TEST(a_rank_that_becomes_slow_is_slow_in_all_steps_from_then_on)
{
    double t = 0;
    for (uint32_t s = 0; s < STEPS; s++) {
        const double extra = s >= STEPS / 2 ? 5 : 0;
        for (uint32_t r = 0; r < 3; r++)
            add(MSTX_COMM_ALLREDUCE, r, t + 10 + (r == 1 ? extra : 0), t + 11 + extra, s);
        t += 11 + extra;
    }
    judge(3);
    const struct mstx_waiter *of = &w.list.p[0];
    ck_assert(of->is_named && of->rank == 1 && of->is_steady);
    ck_assert(of->from >= STEPS / 2 && of->from <= STEPS / 2 + 2 && of->to + 2 >= w.steps);
    end();
}
END_TEST

/* Two culprits hide behind each other: healing one alone gains little. */
START_TEST(two_culprits_are_both_named)
{
    for (uint32_t s = 0; s < STEPS; s++) {
        for (uint32_t r = 0; r < 5; r++)
            add(MSTX_COMM_ALLREDUCE, r, 16.0 * s + (r < 2 ? 15 : 10), 16.0 * (s + 1), s);
    }
    judge(5);
    ck_assert(w.list.p[0].is_named && w.list.p[1].is_named && !w.list.p[2].is_named);
    ck_assert_uint_eq(w.list.p[0].rank + w.list.p[1].rank, 1);
    ck_assert_double_eq_tol(w.list.p[0].cost + w.list.p[1].cost, 5.0 / 16, 0.02);
    ck_assert_double_eq_tol(w.list.p[0].cost, w.list.p[1].cost, 0.01);
    end();
}
END_TEST

/* Rank 0 works 15 ms, rank 1 12 ms, the others 10: the job never waits for rank 1 alone. */
START_TEST(a_lesser_culprit_is_named_behind_a_greater_one)
{
    struct mstx_thread_use u = {0};
    begin_rank(&u);
    for (uint32_t r = 0; r < 4; r++) {
        for (uint32_t s = 0; s < STEPS; s++) {
            const double work = r == 0 ? 15 : r == 1 ? 12 : 10 + 0.01 * (s % 3);
            add(MSTX_COMM_ALLREDUCE, r, 16.0 * s + work, 16.0 * (s + 1), s);
            use(&u, 16.0 * s, 0, 0, 0);
            use(&u, 16.0 * s + work, work, 0, 0);
        }
        begin_rank(&u);
    }
    judge_with(&u);
    ck_assert(w.list.p[0].is_named && w.list.p[0].rank == 0);
    ck_assert(w.list.p[1].is_named && w.list.p[1].rank == 1);
    ck_assert(!w.list.p[2].is_named && !w.list.p[3].is_named);
    ck_assert_double_eq_tol(w.list.p[0].cost + w.list.p[1].cost, 5.0 / 16, 0.02);
    end();
}
END_TEST

/* A master takes 1 ms, its worker 10: they do different things, and nobody is slow. */
START_TEST(a_worker_is_not_measured_by_its_master)
{
    for (uint32_t s = 0; s < STEPS; s++) {
        const double t = 12.0 * s;
        struct mstx_gcall *c = add(MSTX_COMM_SEND, 1, t + 10, t + 10.01, MSTX_NO_SEQ);
        c->peer = 0;
        c = add(MSTX_COMM_RECV, 0, t, t + 10.1, MSTX_NO_SEQ);
        c->peer = 1;
        c->flags = MSTX_CF_ANY;
        c = add(MSTX_COMM_SEND, 0, t + 11.1, t + 11.11, MSTX_NO_SEQ);
        c->peer = 1;
        c = add(MSTX_COMM_RECV, 1, t + 10.02, t + 11.9, MSTX_NO_SEQ);
        c->peer = 0;
    }
    judge(2);
    ck_assert(!w.list.p[0].is_named && !w.list.p[1].is_named);
    end();
}
END_TEST

/* ---- spans of replays ---------------------------------------------------------------- */

static bool ideal_spans(const struct mstx_replayed *r, mstx_spans *to)
{
    struct mstx_ideal_replay replay;
    const bool ok = mstx__ideal_begin(&replay, r) && mstx__ideal_spans(&replay, 0, r->lanes, to);
    mstx__ideal_end(&replay);
    return ok;
}

static struct mstx_span_op span_op(const void *ctx, uint32_t point)
{
    const struct mstx_point *p = &g.point.p[point];
    (void)ctx;
    return (struct mstx_span_op){p->at_ns, p->rank, w.step[point], p->kind == MSTX_POINT_OUT};
}

static struct mstx_replayed replay_of(uint32_t ranks)
{
    return (struct mstx_replayed){.deps = &g.deps,
                                  .recorded = g.weight,
                                  .ideal = w.healed,
                                  .lanes = ranks,
                                  .steps = w.steps,
                                  .is_chained = true,
                                  .op = span_op};
}

/* Rank 1 works longest, so the critical path is its work; behind it comes the transfer of any rank. */
START_TEST(the_critical_path_is_the_work_of_the_slow_rank)
{
    mstx_spans path = {0};
    all_reduces(1, 5);
    judge(3);
    const struct mstx_replayed r = replay_of(3);
    ck_assert(mstx__critical_spans(&r, &path));
    ck_assert_int_eq(path.p[0].start_ns, g.start_ns);
    ck_assert_int_eq(path.p[path.n - 1].end_ns, g.end_ns);
    int64_t work = 0;
    for (size_t i = 0; i < path.n; i++) {
        ck_assert(i == 0 || path.p[i].start_ns == path.p[i - 1].end_ns);
        ck_assert(path.p[i].kind != MSTX_SPAN_WORK || path.p[i].lane == 1);
        work += path.p[i].kind == MSTX_SPAN_WORK ? path.p[i].end_ns - path.p[i].start_ns : 0;
    }
    /* the work before the first call is not recorded: of rank 1 it is the 5 ms that the others wait */
    ck_assert_int_eq(work, (INT64_C(15) * (STEPS - 1) + 5) * MS);
    ms_vec_free(&path);
    end();
}
END_TEST

/* In the ideal timeline rank 1 works 10 ms a step as the others do; a step begins where it was recorded. */
START_TEST(the_ideal_timeline_has_no_excess)
{
    mstx_spans ideal = {0};
    uint32_t works[3] = {0};
    all_reduces(1, 5);
    judge(3);
    const struct mstx_replayed r = replay_of(3);
    ck_assert(ideal_spans(&r, &ideal));
    for (size_t i = 0; i < ideal.n; i++) {
        const struct mstx_span *s = &ideal.p[i];
        ck_assert(i == 0 || s->lane > s[-1].lane || s->start_ns >= s[-1].end_ns);
        if (s->kind != MSTX_SPAN_WORK || s->step == 0)
            continue;
        ck_assert_int_le(s->end_ns - s->start_ns, 10 * MS + 2);
        works[s->lane] += s->end_ns - s->start_ns > 9 * MS;
    }
    for (uint32_t k = 0; k < 3; k++)
        ck_assert_uint_ge(works[k], STEPS / 2);
    ms_vec_free(&ideal);
    end();
}
END_TEST

START_TEST(spans_need_memory)
{
    for (uint64_t n = 1; n != UINT64_MAX; n++) {
        mstx_spans spans = {0};
        ms_mem_fail_at(0);
        all_reduces(1, 5);
        judge(3);
        const struct mstx_replayed r = replay_of(3);
        ms_mem_fail_at(n);
        const bool ok = mstx__critical_spans(&r, &spans) && ideal_spans(&r, &spans);
        const bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        ck_assert(ok != failed);
        ms_vec_free(&spans);
        n = failed ? n : UINT64_MAX - 1;
        end();
    }
}
END_TEST

START_TEST(memory_that_runs_out_is_told)
{
    for (uint64_t n = 1; n != UINT64_MAX; n++) {
        ms_mem_fail_at(0);
        all_reduces(1, 5);
        ms_mem_fail_at(n);
        mstx__call_graph(&g, &calls, 3, 0);
        if (!g.no_memory)
            mstx__waiters(&w, &g, &calls, &no_steps, NULL);
        const bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        ck_assert(failed ||
                  !(g.no_memory || w.no_memory)); /* what is not trimmed does not matter */
        if (!failed)                              /* every allocation has failed once */
            n = UINT64_MAX - 1;
        end();
    }
}
END_TEST

START_TEST(causes_need_memory_too)
{
    for (uint64_t n = 1; n != UINT64_MAX; n++) {
        struct mstx_thread_use u = {0};
        use_of_slow_rank(&u, 4, 1, 0);
        mstx__call_graph(&g, &calls, 3, 0);
        ms_mem_fail_at(n);
        mstx__waiters(&w, &g, &calls, &no_steps, &u);
        const bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        ck_assert(failed || (!w.no_memory && w.has_causes));
        if (!failed)
            n = UINT64_MAX - 1;
        mstx__use_free(&u);
        end();
    }
}
END_TEST

TEST_MAIN("waiters", a_rank_that_works_longer_is_named_with_its_cost, a_long_start_hides_nobody,
          work_that_moves_between_steps_accuses_nobody, use_of_the_host_says_why,
          run_delay_of_all_ranks_accuses_nobody,
          a_rank_that_waits_longer_for_a_cpu_than_others_is_named, run_delay_goes_with_its_cpu_time,
          one_accident_accuses_nobody, ranks_that_are_equal_are_not_accused,
          work_between_begin_and_wait_makes_the_others_wait,
          a_receive_waits_for_its_send_and_not_the_other_way_round, bursts_are_told_from_a_constant,
          a_rank_that_becomes_slow_is_slow_in_all_steps_from_then_on, two_culprits_are_both_named,
          a_lesser_culprit_is_named_behind_a_greater_one, a_worker_is_not_measured_by_its_master,
          the_critical_path_is_the_work_of_the_slow_rank, the_ideal_timeline_has_no_excess,
          spans_need_memory, memory_that_runs_out_is_told, causes_need_memory_too)
