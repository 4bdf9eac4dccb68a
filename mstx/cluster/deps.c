/* SPDX-License-Identifier: MIT
 *
 * deps: see the header.
 */
#include "mstx/cluster/deps.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <string.h>

void mstx__deps_free(struct mstx_deps *d)
{
    ms_vec_free(&d->first);
    ms_vec_free(&d->pred);
    ms_vec_free(&d->op);
    ms_vec_free(&d->step);
}

/* ---- building ----------------------------------------------------------------- */

static void push(struct mstx_deps *d, uint32_t **p, size_t *n, size_t *cap, uint32_t v)
{
    if (*n == *cap && !ms_vec_grow(p, cap, *n + 1, sizeof **p)) {
        d->no_memory = true;
        return;
    }
    (*p)[(*n)++] = v;
}

#define PUSH(d, v, x) push(d, &(d)->v.p, &(d)->v.n, &(d)->v.cap, x)

uint32_t mstx__deps_node(struct mstx_deps *d, uint32_t op)
{
    if (d->first.n == 0)
        PUSH(d, first, 0);
    PUSH(d, op, op);
    PUSH(d, first, (uint32_t)d->pred.n);
    return (uint32_t)d->op.n - 1;
}

void mstx__deps_after(struct mstx_deps *d, uint32_t pred)
{
    if (d->no_memory)
        return;
    ms_assert(d->op.n != 0 && pred < d->op.n - 1);
    PUSH(d, pred, pred);
    d->first.p[d->first.n - 1] = (uint32_t)d->pred.n;
}

void mstx__deps_begin_step(struct mstx_deps *d)
{
    PUSH(d, step, (uint32_t)d->op.n);
}

void mstx__deps_trim(struct mstx_deps *d)
{
    ms_vec_trim(&d->first);
    ms_vec_trim(&d->pred);
    ms_vec_trim(&d->op);
}

/* ---- replay ------------------------------------------------------------------- */

/* Sets last[v] to the last successor of node v; 0: it has none. */
static void find_last_successors(const struct mstx_deps *d, uint32_t *last)
{
    memset(last, 0, d->op.n * sizeof *last);
    for (uint32_t v = 0; v < d->op.n; v++) {
        for (uint32_t i = d->first.p[v]; i < d->first.p[v + 1]; i++)
            last[d->pred.p[i]] = v;
    }
}

size_t mstx__deps_slots(const struct mstx_deps *d, uint32_t *slot)
{
    const size_t n = d->op.n;
    size_t slots = 0;
    uint32_t *last = ms_alloc((n + 1) * sizeof *last);
    MS_VEC(uint32_t) spare = {0};
    bool ok = last != NULL;
    if (ok)
        find_last_successors(d, last);
    for (uint32_t v = 0; v < n && ok; v++) {
        const uint32_t own = spare.n != 0 ? spare.p[--spare.n] : (uint32_t)slots++;
        ok = ms_vec_reserve(&spare, spare.n + 1 + d->first.p[v + 1] - d->first.p[v]);
        slot[v] = own;
        if (ok && last[v] == 0)
            spare.p[spare.n++] = own;
        for (uint32_t i = d->first.p[v]; i < d->first.p[v + 1] && ok; i++) {
            const uint32_t of = d->pred.p[i];
            if (last[of] == v)
                spare.p[spare.n++] = slot[of];
            last[of] = last[of] == v ? UINT32_MAX : last[of]; /* it may be listed twice */
        }
    }
    ms_free(last);
    ms_vec_free(&spare);
    return ok ? slots : SIZE_MAX;
}

/* A replay of several scenarios: where the times of its nodes are. */
struct lanes {
    const uint32_t *slot;
    size_t from;
    double *t;
};

static double *times_of(const struct lanes *l, size_t v)
{
    return l->t + (l->slot != NULL ? l->slot[v] : v - l->from) * MSTX_LANES;
}

static void start_of(const struct mstx_deps *d, const struct lanes *l, size_t v,
                     double start[MSTX_LANES])
{
    const uint32_t end = d->first.p[v + 1];
    memset(start, 0, MSTX_LANES * sizeof *start);
    for (uint32_t i = d->first.p[v]; i < end; i++) {
        const double *of = times_of(l, d->pred.p[i]);
        for (int k = 0; k < MSTX_LANES; k++)
            start[k] = of[k] > start[k] ? of[k] : start[k];
    }
}

/* Returns the lane in which an operation has its other weight; MSTX_LANES and above: none. */
static uint32_t lane_of(const struct mstx_scenarios *x, uint32_t op)
{
    if (x->few != NULL)
        return x->few[op] != MSTX_NO_FEW ? x->few[op] - x->first : MSTX_LANES;
    return x->class_of != NULL ? x->class_of[op] - x->first : MSTX_LANES;
}

void mstx__deps_replay(const struct mstx_deps *d, size_t from, size_t to,
                       const struct mstx_scenarios *x, double *t, double end[MSTX_LANES])
{
    const struct lanes l = {x->slot, from, t};
    ms_assert(from <= to && to <= d->op.n);
    memset(end, 0, MSTX_LANES * sizeof *end);
    for (size_t v = from; v < to; v++) {
        double *at = times_of(&l, v);
        const uint32_t op = d->op.p[v];
        const bool is_swapped = op != MSTX_NO_OP && x->is_alone && x->few[op] != MSTX_NO_FEW;
        const double base = op != MSTX_NO_OP ? (is_swapped ? x->other : x->base)[op] : 0;
        double start[MSTX_LANES];
        start_of(d, &l, v, start);
        for (int k = 0; k < MSTX_LANES; k++)
            at[k] = start[k] + base;
        if (op != MSTX_NO_OP) {
            const uint32_t lane = lane_of(x, op);
            if (lane < MSTX_LANES)
                at[lane] = start[lane] + (is_swapped ? x->base : x->other)[op];
        }
        for (int k = 0; k < MSTX_LANES; k++)
            end[k] = at[k] > end[k] ? at[k] : end[k];
    }
}

double mstx__deps_replay_one(const struct mstx_deps *d, size_t from, size_t to,
                             const double *weight, double *t)
{
    ms_assert(from <= to && to <= d->op.n);
    double end = 0;
    for (size_t v = from; v < to; v++) {
        const uint32_t op = d->op.p[v], stop = d->first.p[v + 1];
        double start = 0;
        for (uint32_t i = d->first.p[v]; i < stop; i++) {
            const double of = t[d->pred.p[i] - from];
            start = of > start ? of : start;
        }
        t[v - from] = start + (op != MSTX_NO_OP ? weight[op] : 0);
        end = t[v - from] > end ? t[v - from] : end;
    }
    return end;
}

void mstx__deps_replay_two(const struct mstx_deps *d, size_t from, size_t to,
                           const double *const weight[2], double *t, double end[2])
{
    ms_assert(from <= to && to <= d->op.n);
    double a_end = 0, b_end = 0;
    for (size_t v = from; v < to; v++) {
        const uint32_t op = d->op.p[v], stop = d->first.p[v + 1];
        double a = 0, b = 0;
        for (uint32_t i = d->first.p[v]; i < stop; i++) {
            const double *of = t + 2 * (d->pred.p[i] - from);
            a = of[0] > a ? of[0] : a;
            b = of[1] > b ? of[1] : b;
        }
        if (op != MSTX_NO_OP) {
            a += weight[0][op];
            b += weight[1][op];
        }
        t[2 * (v - from)] = a;
        t[2 * (v - from) + 1] = b;
        a_end = a > a_end ? a : a_end;
        b_end = b > b_end ? b : b_end;
    }
    end[0] = a_end;
    end[1] = b_end;
}

/* The times of nodes: of a replay, or of the operations. */
struct node_times {
    const struct mstx_deps *d;
    const double *t; /* of the nodes from `from` on; NULL: `time` tells them */
    size_t from;
    mstx_op_time *time;
    const void *ctx;
};

/* Returns the time of a node.  A gate opens with the latest of its operations. */
static double time_of_node(const struct node_times *n, size_t v)
{
    if (n->t != NULL)
        return n->t[v - n->from];
    if (n->d->op.p[v] != MSTX_NO_OP)
        return n->time(n->ctx, n->d->op.p[v]);
    double latest = 0;
    for (uint32_t i = n->d->first.p[v]; i < n->d->first.p[v + 1]; i++) {
        const uint32_t op = n->d->op.p[n->d->pred.p[i]];
        ms_assert(op != MSTX_NO_OP);
        const double t = n->time(n->ctx, op);
        latest = t > latest ? t : latest;
    }
    return latest;
}

static size_t latest_node(const struct node_times *n, size_t from, size_t to)
{
    ms_assert(from < to);
    size_t best = from;
    double latest = time_of_node(n, from);
    for (size_t v = from + 1; v < to; v++) {
        const double t = time_of_node(n, v);
        best = t > latest ? v : best;
        latest = t > latest ? t : latest;
    }
    return best;
}

/* Returns the latest of the predecessors of a node, which has some. */
static size_t latest_before(const struct node_times *n, size_t v)
{
    const uint32_t begin = n->d->first.p[v], end = n->d->first.p[v + 1];
    size_t next = n->d->pred.p[begin];
    double latest = begin + 1 < end ? time_of_node(n, next) : 0;
    for (uint32_t i = begin + 1; i < end; i++) {
        const double t = time_of_node(n, n->d->pred.p[i]);
        next = t > latest ? n->d->pred.p[i] : next;
        latest = t > latest ? t : latest;
    }
    return next;
}

static size_t critical_path(const struct node_times *times, size_t from, size_t to, uint32_t *path)
{
    const struct mstx_deps *d = times->d;
    size_t n = 0;
    if (from == to)
        return 0;
    for (size_t v = latest_node(times, from, to);; v = latest_before(times, v)) {
        if (d->op.p[v] != MSTX_NO_OP)
            path[n++] = d->op.p[v];
        if (d->first.p[v] == d->first.p[v + 1])
            return n;
    }
}

size_t mstx__deps_critical(const struct mstx_deps *d, size_t from, size_t to, const double *t,
                           uint32_t *path)
{
    const struct node_times times = {.d = d, .t = t, .from = from};
    return critical_path(&times, from, to, path);
}

size_t mstx__deps_critical_known(const struct mstx_deps *d, size_t from, size_t to,
                                 mstx_op_time *time, const void *ctx, uint32_t *path)
{
    const struct node_times times = {.d = d, .time = time, .ctx = ctx};
    return critical_path(&times, from, to, path);
}

/* ---- topological order --------------------------------------------------------- */

/* Kahn's algorithm over units; operations that meet are one unit. */
struct sorter {
    const struct mstx_dep_list *l;
    uint32_t *member_at, *member; /* operations of a unit */
    uint32_t *out_at, *out;       /* edges that leave an operation */
    uint32_t *in_at, *in;         /* edges that enter an operation */
    uint32_t *waits;              /* by unit: number of edges that it still waits for */
    uint32_t *ready;              /* queue of units that wait for nothing */
    uint32_t *node;               /* by operation: its node, once it was added */
};

/* Counting sort: fills at and list with the indices of the items of each key. */
static void sort_by_bucket(const uint32_t *key, size_t stride, size_t n, uint32_t keys,
                           uint32_t *at, uint32_t *list)
{
    memset(at, 0, (keys + 1) * sizeof *at);
    for (size_t i = 0; i < n; i++) {
        ms_assert(key[i * stride] < keys);
        at[key[i * stride] + 1]++;
    }
    for (uint32_t k = 0; k < keys; k++)
        at[k + 1] += at[k];
    for (size_t i = n; i-- > 0;)
        list[--at[key[i * stride] + 1]] = (uint32_t)i;
    memmove(at, at + 1, keys * sizeof *at);
    at[keys] = (uint32_t)n;
}

static bool sorter_begin(struct sorter *s, const struct mstx_dep_list *l)
{
    const size_t n = l->n + 1, edges = l->edge.n + 1;
    *s = (struct sorter){.l = l};
    uint32_t *memory = ms_alloc((8 * n + 2 * edges) * sizeof *memory);
    if (memory == NULL)
        return false;
    s->member_at = memory;
    s->member = s->member_at + n;
    s->out_at = s->member + n;
    s->in_at = s->out_at + n;
    s->waits = s->in_at + n;
    s->ready = s->waits + n;
    s->node = s->ready + n;
    s->out = s->node + 2 * n;
    s->in = s->out + edges;
    sort_by_bucket(l->meet, 1, l->n, l->n, s->member_at, s->member);
    if (l->edge.n != 0) {
        const size_t stride = sizeof *l->edge.p / sizeof l->edge.p->from;
        sort_by_bucket(&l->edge.p->from, stride, l->edge.n, l->n, s->out_at, s->out);
        sort_by_bucket(&l->edge.p->to, stride, l->edge.n, l->n, s->in_at, s->in);
    } else {
        memset(s->out_at, 0, 2 * n * sizeof *s->out_at); /* in_at follows */
    }
    memset(s->waits, 0, n * sizeof *s->waits);
    for (size_t i = 0; i < l->edge.n; i++)
        s->waits[l->meet[l->edge.p[i].to]]++;
    return true;
}

/* Makes room for all nodes and predecessors of the list, so that adding one need not look. */
static bool make_room(struct mstx_deps *d, const struct mstx_dep_list *l)
{
    if (d->first.n == 0)
        PUSH(d, first, 0);
    const size_t nodes = d->op.n + 2 * (size_t)l->n;
    d->no_memory = d->no_memory || !ms_vec_reserve(&d->op, nodes) ||
                   !ms_vec_reserve(&d->first, nodes + 1) ||
                   !ms_vec_reserve(&d->pred, d->pred.n + l->edge.n + l->n);
    return !d->no_memory;
}

/* Adds a node whose predecessors were added just before. */
static uint32_t put_node(struct mstx_deps *d, uint32_t op)
{
    ms_assert(d->op.n < d->op.cap && d->first.n < d->first.cap && d->pred.n <= d->pred.cap);
    d->op.p[d->op.n] = op;
    d->first.p[d->first.n++] = (uint32_t)d->pred.n;
    return (uint32_t)d->op.n++;
}

static void put_preds(struct mstx_deps *d, const struct sorter *s, uint32_t op)
{
    uint32_t *to = d->pred.p + d->pred.n;
    for (uint32_t i = s->in_at[op]; i < s->in_at[op + 1]; i++)
        *to++ = s->node[s->l->edge.p[s->in[i]].from];
    d->pred.n = (size_t)(to - d->pred.p);
}

/* Adds the nodes of a unit: a gate first when it has several members, then each member. */
static void add_unit(struct mstx_deps *d, const struct sorter *s, uint32_t unit)
{
    const uint32_t from = s->member_at[unit], to = s->member_at[unit + 1];
    for (uint32_t i = from; i < to; i++)
        put_preds(d, s, s->member[i]);
    if (to - from == 1) {
        s->node[s->member[from]] = put_node(d, s->l->op[s->member[from]]);
        return;
    }
    const uint32_t gate = put_node(d, MSTX_NO_OP);
    for (uint32_t i = from; i < to; i++) {
        d->pred.p[d->pred.n++] = gate;
        s->node[s->member[i]] = put_node(d, s->l->op[s->member[i]]);
    }
}

/* Removes the edges that leave the unit and appends units that now wait for nothing to the queue,
 * whose new length is returned. */
static uint32_t release(const struct sorter *s, uint32_t unit, uint32_t lined)
{
    for (uint32_t i = s->member_at[unit]; i < s->member_at[unit + 1]; i++) {
        const uint32_t op = s->member[i];
        for (uint32_t k = s->out_at[op]; k < s->out_at[op + 1]; k++) {
            const uint32_t to = s->l->meet[s->l->edge.p[s->out[k]].to];
            if (--s->waits[to] == 0)
                s->ready[lined++] = to;
        }
    }
    return lined;
}

uint32_t mstx__deps_add_sorted(struct mstx_deps *d, const struct mstx_dep_list *l)
{
    struct sorter s;
    uint32_t lined = 0, added = 0;
    if (!make_room(d, l) || !sorter_begin(&s, l)) {
        d->no_memory = true;
        return l->n;
    }
    for (uint32_t u = 0; u < l->n; u++) {
        if (s.member_at[u] != s.member_at[u + 1] && s.waits[u] == 0)
            s.ready[lined++] = u;
    }
    for (uint32_t at = 0; at < lined; at++) {
        const uint32_t unit = s.ready[at];
        add_unit(d, &s, unit);
        added += s.member_at[unit + 1] - s.member_at[unit];
        lined = release(&s, unit, lined);
    }
    ms_free(s.member_at);
    return l->n - added;
}
