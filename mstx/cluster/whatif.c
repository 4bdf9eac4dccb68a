/* SPDX-License-Identifier: MIT
 *
 * whatif: see the header.
 */
#include "mstx/cluster/whatif.h"

#include "mstx/cluster/class_replay.h"
#include "mstx/cluster/keyed.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- ideal durations ------------------------------------------------------------- */

/* Pools of operations whose durations are compared: of one type, or of one type and stage. */
struct pools {
    const struct mstx_whatif *w;
    uint32_t stages; /* 1: pools of all stages are joined */
    size_t n;
    size_t *at;     /* index of the first duration of each pool; one more than pools */
    double *weight; /* durations, pool by pool */
    double *value;  /* by pool: its mean or median */
};

static size_t pool_of(const struct pools *p, const struct mstx_op *op)
{
    const int32_t stage = p->w->o->rank.p[op->rank].stage;
    return (size_t)op->type * p->stages + (p->stages > 1 ? (uint32_t)(stage + 1) : 0);
}

static uint32_t count_stages(const struct mstx_ops *o)
{
    int32_t most = 0;
    for (size_t i = 0; i < o->rank.n; i++)
        most = o->rank.p[i].stage > most ? o->rank.p[i].stage : most;
    return (uint32_t)most + 2;
}

/* Collects the durations of the operations that are not marked. */
static void fill_pools(struct pools *p, const bool *marked)
{
    const struct mstx_ops *o = p->w->o;
    for (size_t i = 0; i < o->op.n; i++)
        p->at[pool_of(p, &o->op.p[i]) + 1] += marked == NULL || !marked[i];
    for (size_t k = 0; k < p->n; k++)
        p->at[k + 1] += p->at[k];
    const size_t all = p->at[p->n];
    for (size_t i = o->op.n; i-- > 0;) {
        if (marked == NULL || !marked[i])
            p->weight[--p->at[pool_of(p, &o->op.p[i]) + 1]] = p->w->recorded[i];
    }
    for (size_t k = 0; k < p->n; k++)
        p->at[k] = p->at[k + 1];
    p->at[p->n] = all;
}

static bool pools_new(struct pools *p, const struct mstx_whatif *w, enum mstx_ideal kind,
                      const bool *marked)
{
    *p = (struct pools){.w = w, .stages = kind == MSTX_IDEAL_PEERS ? count_stages(w->o) : 1};
    p->n = w->o->type.n * p->stages;
    p->at = ms_calloc(p->n + 2, sizeof *p->at);
    p->weight = ms_alloc((w->o->op.n + 1) * sizeof *p->weight);
    p->value = ms_calloc(p->n + 1, sizeof *p->value);
    if (p->at == NULL || p->weight == NULL || p->value == NULL)
        return false;
    fill_pools(p, marked);
    return true;
}

static void pools_free(struct pools *p)
{
    ms_free(p->at);
    ms_free(p->weight);
    ms_free(p->value);
}

static double mean_of(const double *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    return sum / (double)n;
}

static double median_of(double *v, size_t n)
{
    return (mstx__select(v, n, (n - 1) / 2) + mstx__select(v, n, n / 2)) / 2;
}

/* Sets the value of each pool, NAN for an empty pool. */
static void find_values(struct pools *p, bool always_median)
{
    for (size_t k = 0; k < p->n; k++) {
        double *v = p->weight + p->at[k];
        const size_t n = p->at[k + 1] - p->at[k];
        const bool by_median = always_median || p->w->o->type.p[k / p->stages].is_comm;
        p->value[k] = n == 0 ? NAN : by_median ? median_of(v, n) : mean_of(v, n);
    }
}

static bool find_ideal(const struct mstx_whatif *w, enum mstx_ideal kind, double *ideal)
{
    struct pools p;
    const bool ok = pools_new(&p, w, kind, NULL);
    if (ok) {
        find_values(&p, false);
        for (size_t i = 0; i < w->o->op.n; i++)
            ideal[i] = p.value[pool_of(&p, &w->o->op.p[i])];
    }
    pools_free(&p);
    return ok;
}

/* ---- replays of all steps ---------------------------------------------------------- */

double mstx__whatif_mean(struct mstx_whatif *w, const double *weight)
{
    const size_t steps = mstx__ops_steps(w->o);
    double sum = 0;
    for (size_t s = 0; s < steps; s++)
        sum +=
            mstx__deps_replay_one(&w->deps, w->deps.step.p[s], w->deps.step.p[s + 1], weight, w->t);
    return steps != 0 ? sum / (double)steps : 0;
}

/* Replays all steps as recorded and in ideal durations. */
static void replay_both(struct mstx_whatif *w)
{
    const size_t steps = mstx__ops_steps(w->o);
    const double *const weight[2] = {w->recorded, w->ideal};
    double sum[2] = {0}, end[2];
    for (size_t s = 0; s < steps; s++) {
        mstx__deps_replay_two(&w->deps, w->deps.step.p[s], w->deps.step.p[s + 1], weight, w->t,
                              end);
        w->step_ns[s] = end[0];
        w->ideal_ns[s] = end[1];
        sum[0] += end[0];
        sum[1] += end[1];
    }
    w->replay_ns = steps != 0 ? sum[0] / (double)steps : 0;
    w->mean_ideal_ns = steps != 0 ? sum[1] / (double)steps : 0;
}

enum { BOOTSTRAPS = 1000 };

/* Finds the interval of S by bootstrap over the steps, with a fixed seed so that reports are
 * reproducible. */
static void find_interval(struct mstx_whatif *w)
{
    static double ratio[BOOTSTRAPS];
    const size_t steps = w->steps;
    uint64_t random = 0x9E3779B97F4A7C15u;
    for (int i = 0; i < BOOTSTRAPS; i++) {
        double real = 0, ideal = 0;
        for (size_t k = 0; k < steps; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            const size_t s = (size_t)((random >> 32) * steps >> 32); /* a division takes longer */
            real += w->step_ns[s];
            ideal += w->ideal_ns[s];
        }
        ratio[i] = ideal > 0 ? real / ideal : 1;
    }
    qsort(ratio, BOOTSTRAPS, sizeof *ratio, ms_order_f64);
    w->low = ratio[BOOTSTRAPS / 40];
    w->high = ratio[BOOTSTRAPS - 1 - BOOTSTRAPS / 40];
}

/* Rounds durations to a power of two that sums of a step are exact with, up to four times its
 * recorded time: so all ways to add them up give the same time. */
static void make_exact(struct mstx_whatif *w)
{
    double longest = 1;
    for (size_t s = 0; s < mstx__ops_steps(w->o); s++)
        longest = fmax(longest, mstx__ops_step_ns(w->o, s));
    /* A sum with so large a number keeps no finer digits. */
    const double large = ldexp(1.5, 52 - (50 - ilogb(longest)));
    for (size_t i = 0; i < w->o->op.n; i++) {
        w->recorded[i] = w->recorded[i] + large - large;
        w->ideal[i] = w->ideal[i] + large - large;
    }
}

static void judge_means(struct mstx_whatif *w)
{
    w->slowdown = w->mean_ideal_ns > 0 ? w->replay_ns / w->mean_ideal_ns : 1;
    w->model_error = w->record_ns > 0 ? fabs(w->record_ns - w->replay_ns) / w->record_ns : 0;
    if (w->steps != 0)
        find_interval(w);
}

static void measure_means(struct mstx_whatif *w)
{
    const size_t steps = mstx__ops_steps(w->o);
    for (size_t s = 0; s < steps; s++)
        w->record_ns += mstx__ops_step_ns(w->o, s) / (double)steps;
    replay_both(w);
    judge_means(w);
}

static size_t largest_step(const struct mstx_deps *d)
{
    size_t most = 0;
    for (size_t s = 0; s + 1 < d->step.n; s++)
        most = d->step.p[s + 1] - d->step.p[s] > most ? d->step.p[s + 1] - d->step.p[s] : most;
    return most;
}

static bool allocate(struct mstx_whatif *w)
{
    const size_t n = w->o->op.n + 1, steps = w->steps + 1;
    w->recorded = ms_calloc(n, sizeof *w->recorded);
    w->ideal = ms_calloc(n, sizeof *w->ideal);
    w->step_ns = ms_calloc(steps, sizeof *w->step_ns);
    w->ideal_ns = ms_calloc(steps, sizeof *w->ideal_ns);
    w->t = ms_calloc((largest_step(&w->deps) + 1) * MSTX_LANES, sizeof *w->t);
    return w->recorded != NULL && w->ideal != NULL && w->step_ns != NULL && w->ideal_ns != NULL &&
           w->t != NULL;
}

static bool has_one_stage(const struct mstx_ops *o)
{
    for (size_t i = 1; i < o->rank.n; i++) {
        if (o->rank.p[i].stage != o->rank.p[0].stage)
            return false;
    }
    return true;
}

/* Measures the slowdown, and the one against the ideal of peers of the same stage; shares use the
 * pooled ideal, which is that of the peers where there is one stage. */
static bool measure(struct mstx_whatif *w)
{
    const bool has_stages = !has_one_stage(w->o);
    double peers = 0;
    if (has_stages) {
        if (!find_ideal(w, MSTX_IDEAL_PEERS, w->ideal))
            return false;
        peers = mstx__whatif_mean(w, w->ideal);
    }
    if (!find_ideal(w, MSTX_IDEAL_POOLED, w->ideal))
        return false;
    make_exact(w);
    measure_means(w);
    w->peers_slowdown = !has_stages ? w->slowdown : peers > 0 ? w->replay_ns / peers : 1;
    return true;
}

bool mstx__whatif_new(struct mstx_whatif *w, const struct mstx_ops *o, enum mstx_graph_kind kind,
                      bool clocks_joined)
{
    *w = (struct mstx_whatif){.o = o, .steps = mstx__ops_steps(o)};
    w->left_out = mstx__op_graph(o, kind, &w->deps);
    const bool ok = !w->deps.no_memory && allocate(w) &&
                    mstx__ops_weights(o, clocks_joined, w->recorded) && measure(w);
    if (!ok)
        mstx__whatif_free(w);
    return ok;
}

/* Sets the duration of each step: from the latest end of the operations of the step before to the
 * latest end of its own. */
static void cut_job(const struct mstx_whatif *w, const uint32_t *step_of, double *by_step)
{
    double before = 0;
    memset(by_step, 0, w->steps * sizeof *by_step);
    for (size_t v = 0; v < mstx__deps_count(&w->deps); v++) {
        const uint32_t op = w->deps.op.p[v];
        const uint32_t step = op != MSTX_NO_OP ? step_of[op] : UINT32_MAX;
        if (step < w->steps && w->t[v] > by_step[step])
            by_step[step] = w->t[v];
    }
    for (size_t s = 0; s < w->steps; s++) {
        const double end = by_step[s] > before ? by_step[s] : before;
        by_step[s] = end - before;
        before = end;
    }
}

bool mstx__whatif_of_graph(struct mstx_whatif *w, const struct mstx_ops *o, struct mstx_deps *deps,
                           const double *recorded, const double *ideal, const uint32_t *step_of,
                           size_t steps)
{
    ms_assert(mstx__ops_steps(o) == 1);
    *w = (struct mstx_whatif){.o = o, .deps = *deps, .steps = steps};
    *deps = (struct mstx_deps){0};
    if (!allocate(w)) {
        mstx__whatif_free(w);
        return false;
    }
    memcpy(w->recorded, recorded, o->op.n * sizeof *recorded);
    memcpy(w->ideal, ideal, o->op.n * sizeof *ideal);
    make_exact(w);
    w->record_ns = mstx__ops_step_ns(o, 0);
    w->replay_ns = mstx__whatif_mean(w, w->recorded);
    cut_job(w, step_of, w->step_ns);
    w->mean_ideal_ns = mstx__whatif_mean(w, w->ideal);
    cut_job(w, step_of, w->ideal_ns);
    judge_means(w);
    return true;
}

void mstx__whatif_free(struct mstx_whatif *w)
{
    mstx__deps_free(&w->deps);
    ms_free(w->recorded);
    ms_free(w->ideal);
    ms_free(w->class_of);
    ms_free(w->step_ns);
    ms_free(w->ideal_ns);
    ms_free(w->t);
    for (size_t i = 0; i < w->op_name.n; i++)
        ms_free(w->op_name.p[i]);
    ms_vec_free(&w->op_name);
}

/* ---- classes ---------------------------------------------------------------------- */

static const char *name_of_op(const struct mstx_op_type *t)
{
    if (t->kind == MSTX_OP_FORWARD_SEND || t->kind == MSTX_OP_FORWARD_RECV)
        return "forward-pp-comm";
    if (t->kind == MSTX_OP_BACKWARD_SEND || t->kind == MSTX_OP_BACKWARD_RECV)
        return "backward-pp-comm";
    return t->name;
}

/* Returns the class of an operation by the name under which its share is shown. */
static uint32_t class_of_name(struct mstx_whatif *w, const char *name)
{
    for (size_t i = 0; i < w->op_name.n; i++) {
        if (strcmp(w->op_name.p[i], name) == 0)
            return (uint32_t)i;
    }
    char **slot = ms_vec_push(&w->op_name);
    char *copy = slot != NULL ? ms_str_dup(ms_str_of(name)) : NULL;
    if (copy == NULL) {
        w->op_name.n -= slot != NULL;
        return UINT32_MAX;
    }
    *slot = copy;
    return (uint32_t)w->op_name.n - 1;
}

static uint32_t classes_of_ops(struct mstx_whatif *w)
{
    for (size_t i = 0; i < w->o->op.n; i++)
        w->class_of[i] = UINT32_MAX;
    for (size_t k = 0; k < w->o->type.n; k++) {
        const uint32_t class = class_of_name(w, name_of_op(&w->o->type.p[k]));
        for (size_t i = 0; i < w->o->op.n; i++)
            w->class_of[i] = w->o->op.p[i].type == k ? class : w->class_of[i];
    }
    return (uint32_t)w->op_name.n;
}

static uint32_t coordinate_of(const struct mstx_op_rank *r, enum mstx_share_kind kind)
{
    const int32_t v = kind == MSTX_BY_DP_RANK ? r->dp : kind == MSTX_BY_STAGE ? r->stage : r->tp;
    return v >= 0 ? (uint32_t)v : UINT32_MAX;
}

static uint32_t classes_of_ranks(struct mstx_whatif *w, enum mstx_share_kind kind)
{
    uint32_t n = 0;
    for (size_t i = 0; i < w->o->op.n; i++) {
        const uint32_t rank = w->o->op.p[i].rank;
        const uint32_t class =
            kind == MSTX_BY_RANK ? rank : coordinate_of(&w->o->rank.p[rank], kind);
        w->class_of[i] = class;
        n = class != UINT32_MAX && class >= n ? class + 1 : n;
    }
    return n;
}

/* Sets the class of transfers to the number of their pair of ranks. */
static void classes_of_links(struct mstx_whatif *w, size_t first, size_t n)
{
    const struct mstx_op *op = w->o->op.p + first;
    for (size_t i = 0; i < n; i++)
        w->class_of[first + i] = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        const size_t k = op[i].meet;
        if (k == MSTX_NO_MEET || k == i || !mstx__op_is_transfer(w->o->type.p[op[i].type].kind))
            continue;
        const enum mstx_op_kind kind = w->o->type.p[op[i].type].kind;
        const bool sends = kind == MSTX_OP_FORWARD_SEND || kind == MSTX_OP_BACKWARD_SEND;
        const uint32_t src = sends ? op[i].rank : op[k].rank, dst = sends ? op[k].rank : op[i].rank;
        w->class_of[first + i] = w->class_of[first + k] = src * (uint32_t)w->o->rank.n + dst;
    }
}

static uint32_t find_classes(struct mstx_whatif *w, enum mstx_share_kind kind)
{
    if (kind == MSTX_BY_OP)
        return classes_of_ops(w);
    if (kind != MSTX_BY_LINK)
        return classes_of_ranks(w, kind);
    for (size_t s = 0; s < mstx__ops_steps(w->o); s++)
        classes_of_links(w, w->o->step.p[s].first,
                         w->o->step.p[s + 1].first - w->o->step.p[s].first);
    return (uint32_t)(w->o->rank.n * w->o->rank.n);
}

bool mstx__whatif_classes(struct mstx_whatif *w, enum mstx_share_kind kind, uint32_t *count)
{
    ms_assert(kind < MSTX_SHARE_KINDS);
    if (w->class_of == NULL)
        w->class_of = ms_calloc(w->o->op.n + 1, sizeof *w->class_of);
    *count = w->class_of != NULL ? find_classes(w, kind) : 0;
    return w->class_of != NULL;
}

void mstx__whatif_link(const struct mstx_whatif *w, uint32_t class, int32_t *src, int32_t *dst)
{
    const uint32_t n = (uint32_t)w->o->rank.n;
    ms_assert(class < n * n);
    *src = w->o->rank.p[class / n].rank;
    *dst = w->o->rank.p[class % n].rank;
}

/* ---- shares ----------------------------------------------------------------------- */

int mstx_share_worst_first(const void *pa, const void *pb)
{
    const struct mstx_share *a = pa, *b = pb;
    return MS_ORDER(b->slowdown, a->slowdown, MS_ORDER(a->class, b->class, 0));
}

/* Renumbers the classes that have operations without gaps, because each class costs a lane of a
 * replay. */
static bool compact_classes(struct mstx_whatif *w, uint32_t classes, mstx_shares *out)
{
    uint32_t *number = ms_calloc((size_t)classes + 1, sizeof *number);
    if (number == NULL)
        return false;
    for (size_t i = 0; i < w->o->op.n; i++) {
        if (w->class_of[i] != UINT32_MAX)
            number[w->class_of[i]] = 1;
    }
    bool ok = true;
    for (uint32_t k = 0; k < classes && ok; k++) {
        struct mstx_share *slot = number[k] != 0 ? ms_vec_push(out) : NULL;
        ok = number[k] == 0 || slot != NULL;
        if (slot == NULL)
            continue;
        *slot = (struct mstx_share){k, 0};
        number[k] = (uint32_t)out->n - 1;
    }
    for (size_t i = 0; i < w->o->op.n && ok; i++) {
        if (w->class_of[i] != UINT32_MAX)
            w->class_of[i] = number[w->class_of[i]];
    }
    ms_free(number);
    return ok;
}

/* With fewer classes, whole replays of eight at once are as fast. */
enum { CLASSES_LEAST = 4 * MSTX_LANES };

/* Adds the times of a step in the scenario of each class to sum, by whole replays. */
static void replay_step(struct mstx_whatif *w, size_t step, uint32_t classes, double *sum)
{
    struct mstx_scenarios x = {w->ideal, w->recorded, w->class_of, 0, NULL, false, NULL};
    for (; x.first < classes; x.first += MSTX_LANES) {
        double end[MSTX_LANES];
        mstx__deps_replay(&w->deps, w->deps.step.p[step], w->deps.step.p[step + 1], &x, w->t, end);
        for (uint32_t k = 0; k < MSTX_LANES && x.first + k < classes; k++)
            sum[x.first + k] += end[k];
    }
}

/* Sets sum to the times of all steps in the scenario of each class. */
static bool replay_classes(struct mstx_whatif *w, uint32_t classes, double *sum)
{
    const struct mstx_scenarios x = {w->ideal, w->recorded, w->class_of, 0, NULL, false, NULL};
    bool is_cheap = classes >= CLASSES_LEAST;
    struct mstx_class_replay *r =
        is_cheap ? mstx__class_replay_new(&w->deps, largest_step(&w->deps)) : NULL;
    if (is_cheap && r == NULL)
        return false;
    for (size_t s = 0; s < mstx__ops_steps(w->o); s++) {
        is_cheap = is_cheap && mstx__class_replay(r, w->deps.step.p[s], w->deps.step.p[s + 1], &x,
                                                  classes, sum);
        if (!is_cheap)
            replay_step(w, s, classes, sum);
    }
    mstx__class_replay_free(r);
    return true;
}

bool mstx__whatif_shares(struct mstx_whatif *w, enum mstx_share_kind kind, mstx_shares *out)
{
    uint32_t classes;
    out->n = 0;
    if (!mstx__whatif_classes(w, kind, &classes) || !compact_classes(w, classes, out))
        return false;
    const double ideal = w->mean_ideal_ns * (double)mstx__ops_steps(w->o);
    double *sum = ms_calloc(out->n + 1, sizeof *sum);
    const bool ok = sum != NULL && replay_classes(w, (uint32_t)out->n, sum);
    for (size_t k = 0; k < out->n && ok; k++)
        out->p[k].slowdown = ideal > 0 ? sum[k] / ideal : 1;
    if (ok)
        ms_vec_sort(out, mstx_share_worst_first);
    ms_free(sum);
    return ok;
}

/* ---- without ---------------------------------------------------------------------- */

static bool heal_from(const struct mstx_whatif *w, enum mstx_ideal kind, const bool *marked,
                      double *weight)
{
    struct pools p;
    const bool ok = pools_new(&p, w, kind, marked);
    if (ok)
        find_values(&p, true);
    for (size_t i = 0; i < w->o->op.n && ok; i++) {
        const double value = marked[i] ? p.value[pool_of(&p, &w->o->op.p[i])] : NAN;
        weight[i] = isnan(value) ? weight[i] : value;
    }
    pools_free(&p);
    return ok;
}

bool mstx__whatif_heal(struct mstx_whatif *w, const bool *marked, double *weight)
{
    return heal_from(w, MSTX_IDEAL_POOLED, marked, weight) &&
           heal_from(w, MSTX_IDEAL_PEERS, marked, weight);
}

/* ---- groups ------------------------------------------------------------------------ */

bool mstx__whatif_group(struct mstx_whatif *w, const bool *marked, struct mstx_group_share *g)
{
    const size_t n = w->o->op.n;
    double *weight = ms_calloc(n + 1, sizeof *weight);
    *g = (struct mstx_group_share){0};
    if (weight == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        weight[i] = marked[i] ? w->recorded[i] : w->ideal[i];
    g->added_ns = mstx__whatif_mean(w, weight);
    for (size_t i = 0; i < n; i++)
        weight[i] = marked[i] ? w->ideal[i] : w->recorded[i];
    g->removed_ns = mstx__whatif_mean(w, weight);
    const double all = w->replay_ns - w->mean_ideal_ns;
    g->adds = all > 0 ? (g->added_ns - w->mean_ideal_ns) / all : 0;
    g->removes = all > 0 ? (w->replay_ns - g->removed_ns) / all : 0;
    ms_free(weight);
    return true;
}

static double slowdown_of(const mstx_shares *v, int32_t class)
{
    for (size_t i = 0; i < v->n; i++) {
        if (v->p[i].class == (uint32_t) class)
            return v->p[i].slowdown;
    }
    return 0;
}

/* Fills score, worst ranks first, and marks the ranks among the worst 3 per cent. */
static void mark_worst(const struct mstx_whatif *w, const mstx_shares *dp, const mstx_shares *stage,
                       struct mstx_share *score, bool *by_rank)
{
    const size_t n = w->o->rank.n, worst = (3 * n + 99) / 100;
    for (size_t i = 0; i < n; i++) {
        const double of_dp = slowdown_of(dp, w->o->rank.p[i].dp);
        const double of_stage = slowdown_of(stage, w->o->rank.p[i].stage);
        score[i] = (struct mstx_share){(uint32_t)i, of_dp < of_stage ? of_dp : of_stage};
    }
    qsort(score, n, sizeof *score, mstx_share_worst_first);
    for (size_t k = 0; k < n; k++)
        by_rank[score[k].class] = k < worst;
}

bool mstx__whatif_worst(struct mstx_whatif *w, bool *by_rank)
{
    mstx_shares dp = {0}, stage = {0};
    struct mstx_share *score = ms_calloc(w->o->rank.n + 1, sizeof *score);
    const bool ok = score != NULL && mstx__whatif_shares(w, MSTX_BY_DP_RANK, &dp) &&
                    mstx__whatif_shares(w, MSTX_BY_STAGE, &stage);
    if (ok)
        mark_worst(w, &dp, &stage, score, by_rank);
    ms_vec_free(&dp);
    ms_vec_free(&stage);
    ms_free(score);
    return ok;
}

/* ---- critical path ------------------------------------------------------------------ */

bool mstx__whatif_critical(struct mstx_whatif *w, double *by_rank)
{
    uint32_t *path = ms_calloc(largest_step(&w->deps) + 1, sizeof *path);
    if (path == NULL)
        return false;
    memset(by_rank, 0, w->o->rank.n * sizeof *by_rank);
    for (size_t s = 0; s < mstx__ops_steps(w->o); s++) {
        const size_t from = w->deps.step.p[s], to = w->deps.step.p[s + 1];
        mstx__deps_replay_one(&w->deps, from, to, w->recorded, w->t);
        for (size_t n = mstx__deps_critical(&w->deps, from, to, w->t, path); n-- > 0;)
            by_rank[w->o->op.p[path[n]].rank] += w->recorded[path[n]];
    }
    ms_free(path);
    return true;
}
