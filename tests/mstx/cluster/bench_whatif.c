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

/* A pipeline of 8 stages of data-parallel ranks: 4 micro batches, then gradients are reduced. */
enum { STAGES = 8, BATCHES = 4, PIPELINE_STEPS = 8 };

static void put(struct mstx_ops *o, const char *type, uint32_t rank, int64_t *t, int64_t least)
{
    static uint32_t random = 1;
    random = random * 1664525 + 1013904223;
    const int64_t dur = least + (random >> 8) % (uint32_t)least;
    const struct mstx_op op = {*t, *t + dur, rank, MSTX_NO_MEET, mstx__ops_type(o, ms_str_of(type)),
                               0};
    mstx__ops_add(o, &op);
    *t += dur;
}

static void put_rank(struct mstx_ops *o, uint32_t rank)
{
    const uint32_t stage = rank % STAGES;
    int64_t t = 0;
    put(o, "params-all-gather", rank, &t, 20000);
    for (int way = 0; way < 2; way++) {
        const bool takes = way == 0 ? stage != 0 : stage != STAGES - 1;
        const bool gives = way == 0 ? stage != STAGES - 1 : stage != 0;
        for (int k = 0; k < BATCHES; k++) {
            if (takes)
                put(o, way == 0 ? "forward-recv" : "backward-recv", rank, &t, 1000);
            put(o, way == 0 ? "forward-compute" : "backward-compute", rank, &t, 80000);
            if (gives)
                put(o, way == 0 ? "forward-send" : "backward-send", rank, &t, 1000);
        }
    }
    put(o, "grads-reduce-scatter", rank, &t, 50000);
    put(o, "optimizer-clip-main-grad", rank, &t, 5000);
    put(o, "optimizer", rank, &t, 40000);
}

static void fill_pipeline(struct mstx_ops *o, uint32_t ranks)
{
    for (uint32_t r = 0; r < ranks; r++)
        mstx__ops_rank(o, (int32_t)r, (int32_t)(r / STAGES), (int32_t)(r % STAGES), 0);
    for (int s = 0; s < PIPELINE_STEPS; s++) {
        mstx__ops_begin_step(o, s, s * (int64_t)10000000);
        for (uint32_t r = 0; r < ranks; r++)
            put_rank(o, r);
    }
    mstx__ops_ready(o);
    mstx__ops_find_meets(o);
}

/* What each rank, data-parallel rank and link costs: every one a replay of the whole job. */
static void bench_shares(uint32_t ranks, enum mstx_graph_kind kind)
{
    static const struct {
        enum mstx_share_kind kind;
        const char *name;
    } shares[] = {{MSTX_BY_RANK, "shares of ranks"},
                  {MSTX_BY_DP_RANK, "shares of data-parallel ranks"},
                  {MSTX_BY_LINK, "shares of links"}};
    struct mstx_ops o = {0};
    struct mstx_whatif w;
    mstx_shares v = {0};
    fill_pipeline(&o, ranks);
    if (!mstx__whatif_new(&w, &o, kind, true))
        exit(1);
    printf("%u ranks in pipelines of %d stages, %s graph, %zu operations\n", ranks, STAGES,
           kind == MSTX_GRAPH_STAGED ? "staged" : "generic", o.op.n);
    for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
        const int64_t since = ms_clock_cpu_ns();
        if (!mstx__whatif_shares(&w, shares[k].kind, &v))
            exit(1);
        tell(shares[k].name, (double)o.op.n * (double)v.n, since);
    }
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
    for (uint32_t ranks = MANY / 4; ranks <= MANY; ranks *= 2) {
        bench_shares(ranks, MSTX_GRAPH_GENERIC);
        bench_shares(ranks, MSTX_GRAPH_STAGED);
    }
    return 0;
}
