/* SPDX-License-Identifier: MIT
 *
 * Drawn pipelines against a slow second answer: who meets whom, and who waits for whom, by the rules of
 * stages that run one forward and one backward in turn.
 */
#include "tests/support/job_model.h"

/* ---- stages of a pipeline ---- */

static const char *const tail[] = {"gc",
                                   "layernorm-grads-all-reduce",
                                   "embedding-grads-all-reduce",
                                   "grads-reduce-scatter",
                                   "optimizer-clip-main-grad",
                                   "optimizer"};
enum { TAIL = sizeof tail / sizeof *tail };

static void draw_next(const char *type, uint32_t rank)
{
    add(type, rank, now[rank], now[rank] + 1000 + below(9000), MSTX_NO_MEET);
}

static void draw_way(bool forward, uint32_t rank, bool receives, bool sends)
{
    if (receives)
        draw_next(forward ? "forward-recv" : "backward-recv", rank);
    draw_next(forward ? "forward-compute" : "backward-compute", rank);
    if (sends)
        draw_next(forward ? "forward-send" : "backward-send", rank);
}

/* One forward, one backward: a stage begins with as many forwards as stages follow. */
static void draw_stage(uint32_t rank, uint32_t stage, uint32_t stages, uint32_t batches)
{
    uint32_t forward = 0, backward = 0;
    if (below(3) != 0)
        draw_next("params-all-gather", rank);
    while (backward < batches) {
        const bool ahead = forward < batches && forward < backward + stages - stage;
        draw_way(ahead, rank, ahead ? stage > 0 : stage + 1 < stages,
                 ahead ? stage + 1 < stages : stage > 0);
        forward += ahead;
        backward += !ahead;
    }
    for (int i = 0; i < TAIL; i++) {
        if (below(4) != 0)
            draw_next(tail[i], rank);
    }
}

static void draw_pipeline(uint64_t seed)
{
    state = seed;
    ops = (struct mstx_ops){0};
    w = (struct mstx_whatif){0};
    const uint32_t stages = 1 + below(3), replicas = stages < 3 ? 1 + below(2) : 1;
    const uint32_t batches = 1 + below(3);
    for (uint32_t s = 0; s < 1 + seed % 2; s++) {
        mstx__ops_begin_step(&ops, s, 0);
        memset(now, 0, sizeof now);
        for (uint32_t r = 0; r < stages * replicas; r++) {
            mstx__ops_rank(&ops, (int32_t)r, (int32_t)(r / stages), (int32_t)(r % stages), 0);
            draw_stage(r, r % stages, stages, batches);
        }
    }
    mstx__ops_ready(&ops);
    mstx__ops_find_meets(&ops);
}

static size_t find_op(size_t near, enum mstx_op_kind kind, int seq)
{
    for (size_t s = 0; s < mstx__ops_steps(&ops); s++) {
        const size_t from = ops.step.p[s].first, to = ops.step.p[s + 1].first;
        for (size_t i = from; i < to && from <= near && near < to; i++) {
            if (ops.op.p[i].rank == ops.op.p[near].rank && kind_of(i) == kind &&
                ops.op.p[i].seq == seq)
                return i;
        }
    }
    return MSTX_NO_OP;
}

static void wait_for_op(size_t i, size_t pred)
{
    if (i != MSTX_NO_OP && pred != MSTX_NO_OP)
        wait_for(i, pred);
}

/* The operation of a rank that computed before this one. */
static size_t computed_before(size_t i, size_t from)
{
    while (i != MSTX_NO_OP && i-- > from && ops.op.p[i].rank == ops.op.p[i + 1].rank) {
        if (mstx__op_is_compute(kind_of(i)))
            return i;
    }
    return MSTX_NO_OP;
}

/* A receive comes after the computation before, a computation after its receive, a send after both the
 * send before and its computation. */
static void wait_in_way(size_t i, enum mstx_op_kind compute, enum mstx_op_kind send,
                        enum mstx_op_kind recv)
{
    const enum mstx_op_kind kind = kind_of(i);
    const int seq = ops.op.p[i].seq;
    if (kind == compute)
        wait_for_op(i, find_op(i, recv, seq));
    if (kind == send || kind == recv)
        wait_for_op(i, find_op(i, kind, seq - 1));
    if (kind == send)
        wait_for_op(i, find_op(i, compute, seq));
    if (kind == recv)
        wait_for_op(i, find_op(i, compute, seq - 1));
}

/* Gradients travel at the earliest when the warm-up is over but for its last computation. */
static void wait_for_warmup(size_t i, size_t from)
{
    const enum mstx_op_kind kind = kind_of(i);
    const size_t first = find_op(i, MSTX_OP_BACKWARD, 0);
    if ((kind == MSTX_OP_BACKWARD_RECV || kind == MSTX_OP_BACKWARD_SEND) && ops.op.p[i].seq == 0)
        wait_for_op(i, computed_before(computed_before(first, from), from));
}

static void wait_at_the_end(size_t i, size_t from)
{
    const enum mstx_op_kind kind = kind_of(i);
    const uint16_t seq = ops.op.p[i].seq;
    size_t last = i;
    if (seq == 0 && (kind == MSTX_OP_FORWARD || kind == MSTX_OP_GRADS_SCATTER))
        wait_for_op(i, find_op(i, MSTX_OP_PARAMS_GATHER, 0));
    if (mstx__op_is_compute(kind))
        wait_for_op(i, computed_before(i, from));
    for (int k = 0; k < TAIL; k++) {
        if (strcmp(ops.type.p[ops.op.p[i].type].name, tail[k]) != 0)
            continue;
        while (--last > from && kind_of(last) > MSTX_OP_BACKWARD &&
               kind_of(last) < MSTX_OP_COLLECT && kind_of(last) != MSTX_OP_GRADS_SCATTER)
            continue;
        wait_for(i, last);
    }
}

static void wait_in_stages(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        wait_in_way(i, MSTX_OP_FORWARD, MSTX_OP_FORWARD_SEND, MSTX_OP_FORWARD_RECV);
        wait_in_way(i, MSTX_OP_BACKWARD, MSTX_OP_BACKWARD_SEND, MSTX_OP_BACKWARD_RECV);
        wait_for_warmup(i, from);
        wait_at_the_end(i, from);
    }
}

/* Whether two operations of one step are ends of one transfer or parts of one collective. */
static bool do_meet(size_t i, size_t k)
{
    const struct mstx_op_rank *a = &ops.rank.p[ops.op.p[i].rank],
                              *b = &ops.rank.p[ops.op.p[k].rank];
    const enum mstx_op_kind x = kind_of(i), y = kind_of(k);
    if (ops.op.p[i].seq != ops.op.p[k].seq)
        return false;
    if (x == MSTX_OP_FORWARD_SEND && y == MSTX_OP_FORWARD_RECV)
        return a->dp == b->dp && a->stage + 1 == b->stage;
    if (x == MSTX_OP_BACKWARD_SEND && y == MSTX_OP_BACKWARD_RECV)
        return a->dp == b->dp && a->stage - 1 == b->stage;
    if (x != y)
        return false;
    return (x == MSTX_OP_EMBEDDING && a->dp == b->dp) || x == MSTX_OP_CLIP ||
           ((x == MSTX_OP_PARAMS_GATHER || x == MSTX_OP_GRADS_SCATTER) && a->stage == b->stage);
}

static void check_meets(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        for (size_t k = from; k < to; k++) {
            const uint32_t meet = ops.op.p[i].meet;
            const bool together = meet != MSTX_NO_MEET && meet == ops.op.p[k].meet;
            ck_assert_msg(i == k || together == (do_meet(i, k) || do_meet(k, i)), "%zu, %zu", i, k);
        }
    }
}

START_TEST(stages_wait_by_the_rules_of_a_pipeline)
{
    for (uint64_t seed = 1; seed < CASES; seed++) {
        draw_pipeline(seed);
        for (size_t s = 0; s < mstx__ops_steps(&ops); s++)
            check_meets(ops.step.p[s].first, ops.step.p[s + 1].first);
        ck_assert(mstx__ops_are_staged(&ops));
        ck_assert(mstx__whatif_new(&w, &ops, MSTX_GRAPH_STAGED, seed % 2 != 0));
        build_model_of(wait_in_stages);
        check_weights(seed % 2 != 0);
        ck_assert_uint_eq(w.left_out, ops.op.n - model.ordered);
        ck_near(w.replay_ns, model_mean(w.recorded));
        ck_near(w.mean_ideal_ns, model_mean(w.ideal));
        for (int kind = 0; kind < MSTX_SHARE_KINDS; kind++)
            check_shares((enum mstx_share_kind)kind);
        free_job();
    }
}
END_TEST

TEST_MAIN("whatif_stages", stages_wait_by_the_rules_of_a_pipeline)
