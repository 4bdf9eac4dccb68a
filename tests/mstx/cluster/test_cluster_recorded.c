/* SPDX-License-Identifier: MIT
 *
 * cluster_recorded: what is concluded of drawn jobs, as it is on record: joins, paths, stragglers, points
 * and waits of calls, who makes the others wait, what-if answers, slow connections.
 *
 *     build/tests/test_cluster_recorded --update        records a change that is meant
 */
#include "mstx/cluster/cluster.h"
#include "mstx/cluster/connections.h"
#include "mstx/cluster/keyed.h"
#include "mstx/cluster/replay_spans.h"
#include "mstx/cluster/waiters.h"
#include "mstx/cluster/whatif.h"
#include "mstx/format/comm.h"
#include "tests/support/recorded.h"

#include "probe/base/mem.h"

enum { JOBS = 80, GRAPHS = 120, PLANS = 80, NETS = 120, RANKS = 9 };
#define RECORD "tests/data/cluster/recorded.txt"

static uint64_t state;
static struct ms_buf told;

#define below(n) recorded_below(&state, (n))

#define one_in(n) (below(n) == 0)

static void tell(const char *what, const double *v, size_t n)
{
    ms_buf_puts(&told, what);
    for (size_t i = 0; i < n; i++)
        ms_buf_printf(&told, " %.6g", v[i]);
    ms_buf_puts(&told, "\n");
}
#define TELL(what, ...)                                                                            \
    tell(what, (const double[]){__VA_ARGS__}, sizeof(const double[]){__VA_ARGS__} / sizeof(double))

/* Ends the line of a case in the record. */
static void record_told(const char *kind, unsigned seed, struct ms_buf *record)
{
    ck_assert_int_eq(told.bad, MS_OK);
    ms_buf_printf(record, "%s %u %06x\n", kind, seed,
                  (unsigned)(ms_str_hash(ms_buf_slice(&told)) & 0xffffff));
    const char *show = getenv("CLUSTER_SHOW");
    if (show != NULL && strncmp(show, kind, strlen(kind)) == 0 &&
        strtoul(show + strlen(kind), NULL, 10) == seed)
        printf("%s", ms_buf_z(&told));
    ms_buf_clear(&told);
}

/* ---- joins, paths and stragglers ---------------------------------------------------------------------- */

struct job {
    uint32_t ranks, steps, groups;
    uint32_t slow, late_group;
    int64_t extra, step_ns;
    bool knows_work, is_ragged;
};

static const uint8_t collectives[] = {
    MSTX_COMM_ALLREDUCE,      MSTX_COMM_BARRIER,  MSTX_COMM_BROADCAST, MSTX_COMM_ALLGATHER,
    MSTX_COMM_REDUCE_SCATTER, MSTX_COMM_ALLTOALL, MSTX_COMM_REDUCE};

static struct mstx_cl_call *add_part_call(struct mstx_cl_part *p, uint32_t group, uint32_t seq,
                                          uint8_t op, int64_t start, int64_t dur)
{
    struct mstx_cl_call *k = ms_vec_push(&p->calls);
    struct mstx_cl_span *s = dur > 0 ? ms_vec_push(&p->comm) : NULL;
    ck_assert(k != NULL && (s != NULL || dur <= 0));
    *k = (struct mstx_cl_call){.start_ns = start,
                               .dur_ns = dur,
                               .bytes = UINT64_C(1) << (10 + seq % 14),
                               .group = group,
                               .seq = seq,
                               .peer = -1,
                               .op = op,
                               .dtype = 4};
    if (s != NULL)
        *s = (struct mstx_cl_span){start, start + dur};
    return k;
}

static void add_transfers(struct mstx_cl_part *p, const struct job *j, uint32_t rank, uint32_t step,
                          int64_t at)
{
    for (uint32_t i = 0; i < 3; i++) {
        const bool sends = (rank + i) % 2 == 0;
        const uint32_t peer = (rank + (sends ? 1 : j->ranks - 1)) % j->ranks;
        struct mstx_cl_call *k = add_part_call(
            p, 1, step * 3 + i, sends ? MSTX_COMM_SEND : MSTX_COMM_RECV, at + i * 4000,
            (rank == j->slow && one_in(2) ? 60000 : 2000) + (int64_t)below(500));
        k->peer = one_in(30) ? -1 : (int32_t)peer;
        k->bytes = i == 0 ? 4 << 20 : 1 << 16;
    }
}

static void add_step(struct mstx_cl_part *p, const struct job *j, uint32_t rank, uint32_t step)
{
    const int64_t start = (int64_t)step * j->step_ns,
                  own = rank == j->slow && step >= j->late_group ? j->extra : 0,
                  ready = start + 300000 + own + (int64_t)below(20000);
    struct mstx_cl_step *s = ms_vec_push(&p->steps);
    *s = (struct mstx_cl_step){
        .number = step, .start_ns = start, .end_ns = start + j->step_ns - (int64_t)below(1000)};
    struct mstx_cl_span *work = j->knows_work ? ms_vec_push(&p->work) : NULL;
    if (work != NULL)
        *work = (struct mstx_cl_span){start + 1000, ready - (int64_t)below(9000)};
    if (one_in(5)) {
        struct mstx_cl_span *b = ms_vec_push(&p->bubble);
        *b = (struct mstx_cl_span){start + 500, start + 20000};
    }
    for (uint32_t g = 1; g <= j->groups; g++) {
        if (g > 1 && rank % 2 != g % 2)
            continue;
        for (uint32_t k = 0; k < 2; k++) {
            const uint32_t seq = step * 2 + k;
            const int64_t at = ready + (int64_t)(g * 50000 + k * 20000);
            uint8_t op = collectives[(g + seq) % sizeof collectives];
            const int64_t end = start + 300000 + j->extra + (int64_t)(g * 50000 + k * 20000) + 9000;
            if (j->is_ragged && one_in(60))
                continue; /* this rank did not come */
            if (j->is_ragged && one_in(60))
                op = MSTX_COMM_GATHER;
            struct mstx_cl_call *c = add_part_call(p, g, one_in(400) ? UINT32_MAX : seq, op, at,
                                                   end > at ? end - at : (int64_t)below(9000));
            c->peer = op == MSTX_COMM_BROADCAST ? 0 : -1;
            c->bytes += j->is_ragged && one_in(60);
            c->dtype = j->is_ragged && one_in(80) ? 3 : 4;
            c->unfinished = j->is_ragged && step + 1 == j->steps && one_in(3);
        }
    }
    add_transfers(p, j, rank, step, ready + 250000);
}

static void add_groups(struct mstx_cluster *c, const struct job *j)
{
    for (uint32_t g = 1; g <= j->groups; g++) {
        int32_t world[RANKS];
        uint32_t n = 0;
        for (uint32_t r = 0; r < j->ranks; r++) {
            if (g == 1 || r % 2 == g % 2)
                world[n++] = (int32_t)r;
        }
        const bool listed = !one_in(4);
        mstx__cluster_group(c, g, g == 1 ? MS_STR("world") : MS_STR(""),
                            one_in(5) ? -1 : (int64_t)n, world, listed ? n : 0);
    }
}

static void tell_cluster(const struct mstx_cluster *c)
{
    for (size_t i = 0; i < c->step.n; i++) {
        const struct mstx_cl_step *s = &c->step.p[i];
        TELL("step", s->process, s->number, (double)s->computing_ns, (double)s->comm_ns,
             (double)s->overlapped_ns, (double)s->free_ns, (double)s->bubble_ns,
             (double)s->preparing_ns, (double)s->waiting_ns, (double)s->blame_ns);
    }
    for (size_t i = 0; i < c->join.n; i++) {
        const struct mstx_cl_join *k = &c->join.p[i];
        TELL("join", k->group, k->seq, k->ranks, k->last, k->step, (double)k->start_ns,
             (double)k->transfer_ns, (double)k->skew_ns, (double)k->waited_ns, (double)k->bytes,
             k->op, k->agrees);
    }
    for (size_t i = 0; i < c->link.n; i++) {
        const struct mstx_cl_link *l = &c->link.p[i];
        TELL("link", l->src, l->dst, l->group, l->ranks, l->hosts, (double)l->bytes,
             (double)l->calls, (double)l->transfer_ns, l->ratio, l->z, l->op, l->is_open);
    }
    for (size_t i = 0; i < c->group.n; i++) {
        const struct mstx_cl_group *g = &c->group.p[i];
        TELL("group", (double)g->size, (double)g->members.n, g->noise, g->spread, (double)g->calls,
             g->first_seq, g->last_seq, g->seqs, g->hosts, (double)g->place);
        ms_buf_puts(&told, g->name);
        for (size_t k = 0; k < g->cost.n; k++)
            ms_buf_printf(&told, " %.6g", g->cost.p[k]);
    }
    TELL("all", (double)c->from, (double)c->to, (double)c->step_ns, (double)c->strange,
         (double)c->coll.n, (double)c->p2p.n, (double)c->open.n);
}

static void tell_notes(const struct mstx_cl_note *n, size_t many)
{
    for (size_t i = 0; i < many; i++) {
        ms_buf_printf(&told, "%s %s %s %s", n[i].kind, n[i].severity, n[i].message.kind->name,
                      n[i].message.args);
        TELL("", n[i].rank, (double)n[i].first_step, (double)n[i].last_step, n[i].value,
             (double)n[i].at_ns, n[i].group, n[i].seq);
    }
}

static void record_job(unsigned seed, struct ms_buf *record)
{
    struct mstx_cluster c = {0};
    struct ms_err err = {0};
    static const char *const hosts[] = {"a", "b", "c"};
    state = seed;
    struct job j = {.ranks = 2 + below(RANKS - 1),
                    .steps = 3 + below(24),
                    .groups = 1 + below(3),
                    .slow = below(RANKS),
                    .late_group = one_in(3) ? below(10) : 0,
                    .extra = one_in(3) ? 0 : 20000 << below(5),
                    .step_ns = 1000000,
                    .knows_work = !one_in(3),
                    .is_ragged = one_in(3)};
    add_groups(&c, &j);
    for (uint32_t r = 0; r < j.ranks; r++) {
        struct mstx_cl_part p = {.rank = one_in(40) ? -1 : (int32_t)r,
                                 .clock = r / 3,
                                 .host = ms_str_of(hosts[r / 4]),
                                 .knows_work = j.knows_work};
        for (uint32_t s = 0; s < j.steps; s++)
            add_step(&p, &j, r, s);
        if (seed % 5 == 0) {
            p.steps.n = 0;
            ck_assert(mstx__cluster_slice(&p));
        }
        mstx__cluster_part(&c, &p);
        mstx__cluster_part_free(&p);
    }
    ck_ok(mstx__cluster_conclude(&c, &err), err);
    tell_cluster(&c);
    tell_notes(c.quarrel.p, c.quarrel.n);
    tell_notes(c.missing.p, c.missing.n);
    tell_notes(c.note.p, c.note.n);
    mstx__cluster_free(&c);
    record_told("job", seed, record);
}

/* ---- calls, who waits for whom ---------------------------------------------------------------------------- */

static mstx_gcalls calls;

static struct mstx_gcall *add_call(uint8_t op, uint32_t rank, int64_t start, int64_t end,
                                   uint32_t seq)
{
    struct mstx_gcall *c = ms_vec_push(&calls);
    ck_assert_ptr_nonnull(c);
    *c = (struct mstx_gcall){.start_ns = start,
                             .end_ns = end,
                             .rank = rank,
                             .group = 1,
                             .seq = seq,
                             .peer = -1,
                             .tag = -1,
                             .op = op,
                             .lib = MSTX_LIB_MPI,
                             .log_bytes = (uint8_t)(8 + seq % 3)};
    return c;
}

/* A sends to the next rank while it receives from the one before. */
static void add_ring(uint32_t rank, uint32_t ranks, int64_t at, uint32_t seq, uint32_t kind)
{
    const int32_t next = (int32_t)((rank + 1) % ranks),
                  before = (int32_t)((rank + ranks - 1) % ranks);
    if (kind == 0) {
        struct mstx_gcall *c = add_call(MSTX_COMM_SENDRECV, rank, at, at + 30000, MSTX_NO_SEQ);
        c->peer = next;
        return;
    }
    struct mstx_gcall *send = add_call(MSTX_COMM_SEND, rank, at, at + 5000, seq);
    send->peer = next;
    send->tag = 3;
    send->flags = kind == 2 ? MSTX_CF_ASYNC : 0;
    send->end_ns += kind == 2 ? 40000 : 0;
    struct mstx_gcall *recv =
        add_call(MSTX_COMM_RECV, rank, at + 5000 + 1000 * (int64_t)below(2), at + 40000, seq);
    recv->peer = before;
    recv->tag = 3;
    if (kind != 2)
        return;
    recv->flags = MSTX_CF_ASYNC;
    struct mstx_gcall *wait = add_call(MSTX_COMM_WAIT, rank, at + 20000, at + 46000, MSTX_NO_SEQ);
    wait->polls = below(4);
    if (one_in(3))
        add_call(MSTX_COMM_TEST, rank, at + 50000, at + 52000, MSTX_NO_SEQ)->polls = 5;
}

static void draw_calls(uint32_t ranks, uint32_t steps, uint32_t slow, int64_t extra, int64_t at[])
{
    const uint32_t ring = below(4);
    const uint8_t op = collectives[below(sizeof collectives)];
    const bool torch = one_in(4), in_bursts = one_in(3);
    int64_t now = 0;
    for (uint32_t s = 0; s < steps; s++) {
        const int64_t late = in_bursts && s % 7 != 0 ? 0 : extra;
        for (uint32_t r = 0; r < ranks; r++) {
            const int64_t own = now + 400000 + (int64_t)below(30000) + (r == slow ? late : 0);
            at[r * (steps + 1) + s] = now + (int64_t)r;
            if (ring < 3)
                add_ring(r, ranks, now + 50000 + (int64_t)below(3000), s, ring);
            struct mstx_gcall *c =
                add_call(op, r, own, now + 460000 + late + (int64_t)below(900), s);
            c->peer = op == MSTX_COMM_BROADCAST || op == MSTX_COMM_REDUCE ? 0 : -1;
            c->lib = torch ? MSTX_LIB_TORCH : MSTX_LIB_MPI;
            c->flags = torch || one_in(20) ? MSTX_CF_ASYNC : 0;
            if (one_in(40))
                c->thread = 1;
            if (one_in(60))
                c->seq = MSTX_NO_SEQ;
        }
        now += 500000 + late;
    }
    for (uint32_t r = 0; r < ranks; r++)
        at[r * (steps + 1) + steps] = now;
}

static void draw_use(struct mstx_thread_use *u, uint32_t ranks, uint32_t slow, int64_t end)
{
    const uint32_t cause = below(4);
    for (uint32_t r = 0; r <= ranks; r++) {
        uint32_t *first = ms_vec_push(&u->first);
        ck_assert_ptr_nonnull(first);
        *first = (uint32_t)u->sample.n;
        double total[MSTX_USES] = {0};
        for (int64_t t = 0; r < ranks && t <= end + 300000; t += 300000) {
            struct mstx_use_sample *s = ms_vec_push(&u->sample);
            ck_assert_ptr_nonnull(s);
            s->at_ns = t;
            memcpy(s->total, total, sizeof total);
            total[MSTX_ON_CPU] += r == slow && cause != 0 ? 120000 : 250000;
            total[MSTX_DELAYED] += r == slow && cause == 1 ? 150000 : below(3000);
            total[MSTX_WRITTEN] += r == slow && cause == 2 ? 800 : below(3);
        }
    }
}

static void tell_graph(const struct mstx_call_graph *g)
{
    for (size_t i = 0; i < g->point.n; i++)
        TELL("point", (double)g->point.p[i].at_ns, g->point.p[i].rank, g->point.p[i].kind,
             g->weight[i]);
    for (size_t i = 0; i < calls.n; i++)
        TELL("call", (double)calls.p[i].start_ns, calls.p[i].rank, calls.p[i].begin,
             calls.p[i].done);
    for (size_t i = 0; i < g->deps.op.n; i++)
        TELL("node", g->deps.op.p[i], g->deps.first.p[i]);
    for (size_t i = 0; i < g->deps.pred.n; i++)
        TELL("pred", g->deps.pred.p[i]);
}

static void tell_waiters(const struct mstx_waiters *w)
{
    TELL("waiters", w->job_ns, w->step_ns, w->in_comm, w->model_error, w->delayed, w->has_causes,
         w->is_known, w->steps);
    for (size_t i = 0; i < w->list.n; i++) {
        const struct mstx_waiter *k = &w->list.p[i];
        TELL("waiter", k->rank, k->cost, k->steady, k->dominance, k->persistence, k->lead,
             k->shift_ns, k->excess_ns, k->excess, k->peak, k->from, k->to, k->is_named,
             k->is_steady, k->cause, k->part.on_cpu, k->part.delayed, k->part.off_cpu,
             k->part.written);
    }
}

static struct mstx_span_op span_of(const void *ctx, uint32_t op)
{
    const struct mstx_call_graph *g = ctx;
    const struct mstx_point *p = &g->point.p[op];
    return (struct mstx_span_op){.end_ns = p->at_ns,
                                 .lane = p->rank,
                                 .step = op % 11 == 0 ? MSTX_NO_STEP : op % 3,
                                 .is_comm = p->kind == MSTX_POINT_OUT};
}

static void tell_spans(const struct mstx_call_graph *g, const double *ideal, uint32_t ranks)
{
    for (int chained = 0; chained < 2; chained++) {
        const struct mstx_replayed r = {&g->deps, g->weight,    ideal,   ranks,
                                        3,        chained != 0, span_of, g};
        mstx_spans spans = {0};
        struct mstx_ideal_replay replay;
        ck_assert(mstx__critical_spans(&r, &spans) && mstx__ideal_begin(&replay, &r));
        for (size_t lane = 0; lane < r.lanes; lane++) /* drawn one by one as all at once */
            ck_assert(mstx__ideal_spans(&replay, lane, lane + 1, &spans));
        mstx__ideal_end(&replay);
        for (size_t i = 0; i < spans.n; i++)
            TELL("span", (double)spans.p[i].start_ns, (double)spans.p[i].end_ns, spans.p[i].lane,
                 spans.p[i].step, spans.p[i].kind);
        ms_vec_free(&spans);
    }
}

static void record_graph(unsigned seed, struct ms_buf *record)
{
    static int64_t at[RANKS * 64];
    struct mstx_call_graph g = {0};
    struct mstx_waiters w = {0};
    struct mstx_thread_use use = {0};
    state = seed;
    const uint32_t ranks = 2 + below(RANKS - 2), steps = 4 + below(34), slow = below(RANKS);
    const int64_t extra = one_in(4) ? 0 : 30000 << below(4);
    calls.n = 0;
    draw_calls(ranks, steps, slow, extra, at);
    const struct mstx_step_times times = {at, one_in(3) ? 0 : steps};
    mstx__call_graph(&g, &calls, ranks, one_in(2) ? 0 : 15000);
    if (one_in(2))
        draw_use(&use, ranks, slow, g.end_ns);
    tell_graph(&g);
    mstx__waiters(&w, &g, &calls, &times, use.first.n != 0 ? &use : NULL);
    ck_assert(!g.no_memory && !w.no_memory);
    tell_waiters(&w);
    if (w.healed != NULL)
        tell_spans(&g, w.healed, ranks);
    mstx__waiters_free(&w);
    mstx__use_free(&use);
    mstx__call_graph_free(&g);
    record_told("graph", seed, record);
}

/* ---- what if ------------------------------------------------------------------------------------------------ */

static void draw_ops(struct mstx_ops *o, bool staged)
{
    static const char *const types[] = {"forward-compute",
                                        "forward-send",
                                        "forward-recv",
                                        "backward-compute",
                                        "backward-send",
                                        "backward-recv",
                                        "grads-reduce-scatter",
                                        "params-all-gather",
                                        "gc",
                                        "layernorm-grads-all-reduce",
                                        "embedding-grads-all-reduce",
                                        "optimizer-clip-main-grad",
                                        "optimizer",
                                        "my own"};
    const uint32_t dp = 1 + below(3), stages = 1 + below(3), steps = 1 + below(6), slow = below(9);
    int64_t now = 0;
    for (uint32_t s = 0; s < steps; s++) {
        mstx__ops_begin_step(o, s + 1, now);
        for (uint32_t r = 0; r < dp * stages; r++) {
            const uint32_t rank = mstx__ops_rank(o, (int32_t)r, (int32_t)(r % dp),
                                                 (int32_t)(r / dp), one_in(9) ? -1 : 0);
            int64_t t = now;
            for (uint32_t i = 0; i < 4 + 3 * stages; i++) {
                const uint32_t type = below(staged ? 13 : 14);
                const int64_t length = 500 + below(200) + (r == slow ? 700 : 0);
                const struct mstx_op op = {.start_ns = t + (int64_t)below(60),
                                           .end_ns = t + 60 + length,
                                           .rank = rank,
                                           .meet = MSTX_NO_MEET,
                                           .type = mstx__ops_type(o, ms_str_of(types[type]))};
                mstx__ops_add(o, &op);
                t += 40 + length;
            }
        }
        now += 60000;
    }
    o->has_layout = staged;
    mstx__ops_ready(o);
    if (staged)
        mstx__ops_find_meets(o);
}

static void tell_shares(struct mstx_whatif *w)
{
    for (int kind = 0; kind < MSTX_SHARE_KINDS; kind++) {
        mstx_shares shares = {0};
        uint32_t count = 0;
        if (!mstx__whatif_shares(w, (enum mstx_share_kind)kind, &shares))
            continue;
        for (size_t i = 0; i < shares.n; i++) {
            int32_t src = 0, dst = 0;
            if (kind == MSTX_BY_LINK)
                mstx__whatif_link(w, shares.p[i].class, &src, &dst);
            TELL("share", kind, shares.p[i].class, shares.p[i].slowdown, src, dst);
        }
        ck_assert(mstx__whatif_classes(w, (enum mstx_share_kind)kind, &count));
        TELL("classes", kind, count);
        for (size_t i = 0; w->class_of != NULL && i < w->o->op.n; i++)
            ms_buf_printf(&told, " %u", w->class_of[i]);
        ms_vec_free(&shares);
    }
    for (size_t i = 0; i < w->op_name.n; i++)
        ms_buf_puts(&told, w->op_name.p[i]);
}

static void tell_marked(struct mstx_whatif *w)
{
    const struct mstx_ops *o = w->o;
    bool *marked = ms_calloc(o->op.n + 1, sizeof *marked),
         *worst = ms_calloc(o->rank.n + 1, sizeof *worst);
    double *weight = ms_calloc(o->op.n + 1, sizeof *weight),
           *by_rank = ms_calloc(o->rank.n + 1, sizeof *by_rank);
    struct mstx_group_share share = {0};
    for (size_t i = 0; i < o->op.n; i++)
        marked[i] = o->op.p[i].rank == 0 || one_in(20);
    ck_assert(mstx__whatif_heal(w, marked, weight));
    tell("healed", weight, o->op.n);
    ck_assert(mstx__whatif_group(w, marked, &share));
    TELL("group", share.added_ns, share.removed_ns, share.adds, share.removes,
         mstx__whatif_mean(w, weight));
    ck_assert(mstx__whatif_worst(w, worst));
    ck_assert(mstx__whatif_critical(w, by_rank));
    for (size_t i = 0; i < o->rank.n; i++)
        TELL("rank", worst[i], by_rank[i]);
    ms_free(marked);
    ms_free(worst);
    ms_free(weight);
    ms_free(by_rank);
}

static void record_plan(unsigned seed, struct ms_buf *record)
{
    struct mstx_ops o = {0};
    struct mstx_whatif w = {0};
    state = seed;
    const bool staged = !one_in(3);
    draw_ops(&o, staged);
    TELL("ops", mstx__ops_are_staged(&o), (double)mstx__ops_steps(&o));
    for (size_t i = 0; i < o.op.n; i++)
        TELL("op", (double)o.op.p[i].start_ns, o.op.p[i].rank, o.op.p[i].type, o.op.p[i].seq,
             o.op.p[i].meet);
    const enum mstx_graph_kind kind = staged && one_in(2) ? MSTX_GRAPH_STAGED : MSTX_GRAPH_GENERIC;
    if (mstx__whatif_new(&w, &o, kind, one_in(2))) {
        TELL("whatif", w.ideal_kind, (double)w.left_out, w.record_ns, w.replay_ns, w.mean_ideal_ns,
             w.slowdown, w.low, w.high, w.peers_slowdown, w.model_error);
        tell("recorded", w.recorded, o.op.n);
        tell("ideal", w.ideal, o.op.n);
        tell("steps", w.step_ns, w.steps);
        tell("ideal steps", w.ideal_ns, w.steps);
        tell_shares(&w);
        tell_marked(&w);
    }
    mstx__whatif_free(&w);
    mstx__ops_free(&o);
    record_told("plan", seed, record);
}

/* ---- connections ---------------------------------------------------------------------------------------------- */

static void record_net(unsigned seed, struct ms_buf *record)
{
    static struct mstx_conn_end end[RANKS * RANKS];
    mstx_slow_conns slow = {0};
    state = seed;
    const uint32_t ranks = 2 + below(RANKS - 2), bad = below(RANKS), n = below(RANKS * RANKS);
    const double rtts[] = {0, 100, 150, 1099, 1100, 1101, 3000, 20000},
                 sents[] = {0, 1 << 19, 1 << 20, (1 << 20) + 1, 1e8, 4e8};
    for (uint32_t i = 0; i < n; i++) {
        end[i] = (struct mstx_conn_end){.rank = below(ranks), .peer = below(ranks)};
        const bool is_bad = end[i].rank == bad || (one_in(2) && end[i].peer == bad) || one_in(20);
        end[i].min_rtt_us = is_bad && one_in(2) ? rtts[below(8)] : rtts[1] + below(40);
        end[i].busy_us = one_in(4) ? 49000 + 1000 * below(3) : 1000 * below(900);
        end[i].sent = is_bad && one_in(2) ? sents[below(6)] : 1e8 + below(1000000);
        end[i].span_us = one_in(15) ? 0 : 1e6;
    }
    ck_assert(mstx__connections(end, n, ranks, &slow));
    for (size_t i = 0; i < slow.n; i++)
        TELL("slow", slow.p[i].rank, slow.p[i].peer, slow.p[i].by == MSTX_SLOW_RATE,
             slow.p[i].value, slow.p[i].usual, slow.p[i].busy);
    ms_vec_free(&slow);
    record_told("net", seed, record);
}

START_TEST(drawn_jobs_are_concluded_as_on_record)
{
    struct ms_buf now = {.max = 1 << 20};
    told.max = 1 << 24;
    for (unsigned seed = 1; seed <= JOBS; seed++)
        record_job(seed, &now);
    for (unsigned seed = 1; seed <= GRAPHS; seed++)
        record_graph(seed, &now);
    for (unsigned seed = 1; seed <= PLANS; seed++)
        record_plan(seed, &now);
    for (unsigned seed = 1; seed <= NETS; seed++)
        record_net(seed, &now);
    recorded_check_file(RECORD, &now, "case and hash of its answers; CLUSTER_SHOW=job7 shows them");
    ms_buf_free(&now);
    ms_buf_free(&told);
    ms_vec_free(&calls);
}
END_TEST

RECORDED_MAIN("cluster_recorded", drawn_jobs_are_concluded_as_on_record)
