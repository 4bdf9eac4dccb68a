/* SPDX-License-Identifier: MIT
 *
 * How fast dependency graphs are built and replayed, and what memory an operation takes.
 *
 *     bench_whatif [MILLIONS OF OPERATIONS]
 */
#include "mstx/cluster/waiters.h"
#include "mstx/cluster/whatif.h"
#include "mstx/format/comm.h"

#include "probe/base/clock.h"
#include "probe/base/mem.h"

#include <stdio.h>
#include <stdlib.h>

static void tell(const char *what, double ops, int64_t since)
{
    const double s = (double)(ms_clock_cpu_ns() - since) / 1e9;
    printf("%-44s %8.2f s of cpu  %8.1f M operations/s\n", what, s, ops / s / 1e6);
}

/* Steps of 16 ranks: 20 times work and an all-reduce. */
enum { RANKS = 16, PAIRS = 20, MANY = 4096 };

static void fill(struct mstx_ops *o, size_t want)
{
    const size_t steps = want / (2 * RANKS * PAIRS) + 1;
    uint32_t random = 1;
    for (int32_t r = 0; r < RANKS; r++)
        mstx__ops_rank(o, r, r, 0, 0);
    const uint16_t work = mstx__ops_type(o, MS_STR("work")), all = mstx__ops_type(o, MS_STR("all"));
    for (size_t s = 0; s < steps; s++) {
        mstx__ops_begin_step(o, (int64_t)s, 0);
        for (uint32_t r = 0; r < RANKS; r++) {
            int64_t t = 0;
            for (uint32_t k = 0; k < PAIRS; k++) {
                random = random * 1664525 + 1013904223;
                const int64_t dur = 1000 + random % 1000;
                const struct mstx_op a = {t, t + dur, r, MSTX_NO_MEET, work, 0};
                const struct mstx_op b = {t + dur, t + 2500, r, 2 * k + 1, all, 0};
                mstx__ops_add(o, &a);
                mstx__ops_add(o, &b);
                t += 2500;
            }
        }
    }
    mstx__ops_ready(o);
}

static void bench_ops(size_t want)
{
    struct mstx_ops o = {0};
    struct mstx_deps d;
    struct mstx_whatif w;
    mstx_shares v = {0};
    const size_t before = ms_mem_live();
    fill(&o, want);
    const double n = (double)o.op.n;
    int64_t since = ms_clock_cpu_ns();
    mstx__op_graph(&o, MSTX_GRAPH_GENERIC, &d);
    tell("graph of recorded operations", n, since);
    mstx__deps_free(&d);
    since = ms_clock_cpu_ns();
    if (!mstx__whatif_new(&w, &o, MSTX_GRAPH_GENERIC, true))
        exit(1);
    tell("graph, ideal durations, first answer", n, since);
    printf("%-44s %8.1f bytes an operation\n", "held", (double)(ms_mem_live() - before) / n);
    since = ms_clock_cpu_ns();
    mstx__whatif_mean(&w, w.recorded);
    tell("replay, one scenario", n, since);
    since = ms_clock_cpu_ns();
    if (!mstx__whatif_shares(&w, MSTX_BY_RANK, &v))
        exit(1);
    tell("shares of 16 ranks, each a replay", n * RANKS, since);
    ms_vec_free(&v);
    mstx__whatif_free(&w);
    mstx__ops_free(&o);
}

static void bench_calls(uint32_t ranks, size_t want)
{
    mstx_gcalls calls = {0};
    struct mstx_call_graph g;
    struct mstx_waiters w;
    const struct mstx_step_times none = {0};
    const size_t rounds = want / ranks;
    uint32_t random = 1;
    if (!ms_vec_reserve(&calls, rounds * ranks))
        exit(1);
    for (uint32_t r = 0; r < ranks; r++) {
        for (size_t k = 0; k < rounds; k++) {
            random = random * 1664525 + 1013904223;
            const int64_t t = (int64_t)k * 100000;
            calls.p[calls.n++] = (struct mstx_gcall){.start_ns = t + 10000 + random % 50000,
                                                     .end_ns = t + 90000,
                                                     .rank = r,
                                                     .seq = (uint32_t)k,
                                                     .peer = -1,
                                                     .tag = -1,
                                                     .op = MSTX_COMM_ALLREDUCE,
                                                     .lib = MSTX_LIB_MPI};
        }
    }
    const size_t before = ms_mem_live();
    const double n = (double)calls.n;
    printf("%u ranks\n", ranks);
    int64_t since = ms_clock_cpu_ns();
    mstx__call_graph(&g, &calls, ranks, 0);
    tell("graph of calls", n, since);
    printf("%-44s %8.1f bytes a call\n", "held", (double)(ms_mem_live() - before) / n);
    since = ms_clock_cpu_ns();
    mstx__waiters(&w, &g, &calls, &none, NULL);
    tell("who makes the others wait", n, since);
    mstx__waiters_free(&w);
    mstx__call_graph_free(&g);
    ms_vec_free(&calls);
}

int main(int argc, char **argv)
{
    const double millions = argc > 1 ? strtod(argv[1], NULL) : 10;
    bench_ops((size_t)(millions * 1e6));
    bench_calls(RANKS, (size_t)(millions * 1e6));
    bench_calls(MANY, MANY * (size_t)(millions * 10));
    return 0;
}
