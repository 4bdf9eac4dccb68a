/* SPDX-License-Identifier: MIT
 *
 * op_graph: see the header.
 */
#include "mstx/cluster/op_graph.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <string.h>

/* State while one step of the graph is built. */
struct builder {
    const struct mstx_ops *o;
    struct mstx_deps *d;
    const struct mstx_op *op; /* of the step */
    uint32_t n;
    uint32_t *number, *meet; /* for mstx_dep_list */
    struct mstx_dep_list list;
};

static enum mstx_op_kind kind_of(const struct builder *b, uint32_t i)
{
    return b->o->type.p[b->op[i].type].kind;
}

static void add_edge(struct builder *b, uint32_t from, uint32_t to)
{
    if (from == MSTX_NO_OP || to == MSTX_NO_OP)
        return;
    struct mstx_dep_edge *slot = ms_vec_push(&b->list.edge);
    if (slot == NULL)
        b->d->no_memory = true;
    else
        *slot = (struct mstx_dep_edge){from, to};
}

static uint32_t root_of(uint32_t *meet, uint32_t i)
{
    while (meet[i] != i)
        i = meet[i] = meet[meet[i]];
    return i;
}

/* Groups operations with the same meeting (union-find; chain_lanes merges further ones). */
static void join_meets(struct builder *b)
{
    for (uint32_t i = 0; i < b->n; i++)
        b->meet[i] = i;
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->op[i].meet != MSTX_NO_MEET)
            b->meet[root_of(b->meet, i)] = root_of(b->meet, b->op[i].meet);
    }
}

static void settle_meets(struct builder *b)
{
    for (uint32_t i = 0; i < b->n; i++)
        b->meet[i] = root_of(b->meet, i);
}

/* ---- generic ------------------------------------------------------------------- */

enum { SAME_KERNEL_NS = 1000 };

static bool is_near(int64_t a, int64_t b)
{
    return (a > b ? a - b : b - a) < SAME_KERNEL_NS;
}

/* Tells whether a send and a receive of one rank have the same times: they are then one kernel that
 * was recorded twice. */
static bool is_same_kernel(const struct builder *b, uint32_t first, uint32_t i)
{
    const struct mstx_op *x = &b->op[first], *y = &b->op[i];
    return x->rank == y->rank && mstx__op_is_transfer(kind_of(b, first)) &&
           mstx__op_is_transfer(kind_of(b, i)) && is_near(x->start_ns, y->start_ns) &&
           is_near(x->end_ns, y->end_ns);
}

static void chain_lanes(struct builder *b)
{
    uint32_t first = 0,
             before = MSTX_NO_OP; /* first op of the current and of the previous kernel */
    for (uint32_t i = 0; i < b->n; i++) {
        if (i != 0 && is_same_kernel(b, first, i)) {
            b->meet[root_of(b->meet, i)] = root_of(b->meet, first);
        } else {
            before = i != 0 && b->op[i].rank == b->op[i - 1].rank ? first : MSTX_NO_OP;
            first = i;
        }
        for (uint32_t k = before; k != MSTX_NO_OP && k < first; k++)
            add_edge(b, k, i);
    }
}

/* ---- pipeline stages ------------------------------------------------------------ */

/* Operations of one rank by kind and number. */
struct lane {
    const struct builder *b;
    uint32_t first, end; /* operations of the rank */
    uint32_t *slot;      /* by kind, then number: MSTX_NO_OP where there is none */
    uint32_t most;       /* slots of a kind */
};

static uint32_t find(const struct lane *l, enum mstx_op_kind kind, int64_t seq)
{
    return seq >= 0 && seq < l->most ? l->slot[(size_t)kind * l->most + (size_t)seq] : MSTX_NO_OP;
}

static void fill_lane(struct lane *l)
{
    memset(l->slot, 0xFF, (size_t)MSTX_OP_KINDS * l->most * sizeof *l->slot);
    for (uint32_t i = l->first; i < l->end; i++)
        l->slot[(size_t)kind_of(l->b, i) * l->most + l->b->op[i].seq] = i;
}

/* Chains the forward and backward computations of a rank in order.  The first transfers of
 * gradients wait for the end of the warm-up: the computation two before the first backward one. */
static uint32_t chain_compute(struct builder *b, const struct lane *l)
{
    uint32_t last = MSTX_NO_OP, before = MSTX_NO_OP;
    for (uint32_t i = l->first; i < l->end; i++) {
        if (!mstx__op_is_compute(kind_of(b, i)))
            continue;
        add_edge(b, last, i);
        if (kind_of(b, i) == MSTX_OP_BACKWARD && b->op[i].seq == 0) {
            add_edge(b, before, find(l, MSTX_OP_BACKWARD_RECV, 0));
            add_edge(b, before, find(l, MSTX_OP_BACKWARD_SEND, 0));
        }
        before = last;
        last = i;
    }
    return last;
}

/* Adds the edges of one direction: receive k -> computation k -> send k, and computation k - 1 ->
 * receive k; sends and receives are each in order. */
static void chain_way(struct builder *b, const struct lane *l, enum mstx_op_kind compute,
                      enum mstx_op_kind send, enum mstx_op_kind recv)
{
    for (uint32_t k = 0; k < l->most; k++) {
        add_edge(b, find(l, send, (int64_t)k - 1), find(l, send, k));
        add_edge(b, find(l, recv, (int64_t)k - 1), find(l, recv, k));
        add_edge(b, find(l, compute, k), find(l, send, k));
        add_edge(b, find(l, recv, k), find(l, compute, k));
        add_edge(b, find(l, compute, (int64_t)k - 1), find(l, recv, k));
    }
}

static void chain_tail(struct builder *b, const struct lane *l, uint32_t last)
{
    static const enum mstx_op_kind tail[] = {MSTX_OP_COLLECT,   MSTX_OP_LAYERNORM,
                                             MSTX_OP_EMBEDDING, MSTX_OP_GRADS_SCATTER,
                                             MSTX_OP_CLIP,      MSTX_OP_OPTIMIZER};
    const uint32_t gather = find(l, MSTX_OP_PARAMS_GATHER, 0);
    add_edge(b, gather, find(l, MSTX_OP_FORWARD, 0));
    add_edge(b, gather, find(l, MSTX_OP_GRADS_SCATTER, 0));
    for (size_t i = 0; i < sizeof tail / sizeof *tail; i++) {
        const uint32_t next = find(l, tail[i], 0);
        add_edge(b, last, next);
        last = next != MSTX_NO_OP ? next : last;
    }
}

static void chain_stages(struct builder *b)
{
    struct lane l = {.b = b};
    for (uint32_t i = 0; i < b->n; i++)
        l.most = b->op[i].seq >= l.most ? b->op[i].seq + 1u : l.most;
    l.slot = ms_calloc((size_t)MSTX_OP_KINDS * l.most + 1, sizeof *l.slot);
    b->d->no_memory |= l.slot == NULL;
    for (; l.slot != NULL && l.first < b->n; l.first = l.end) {
        for (l.end = l.first; l.end < b->n && b->op[l.end].rank == b->op[l.first].rank;)
            l.end++;
        fill_lane(&l);
        const uint32_t last = chain_compute(b, &l);
        chain_way(b, &l, MSTX_OP_FORWARD, MSTX_OP_FORWARD_SEND, MSTX_OP_FORWARD_RECV);
        chain_way(b, &l, MSTX_OP_BACKWARD, MSTX_OP_BACKWARD_SEND, MSTX_OP_BACKWARD_RECV);
        chain_tail(b, &l, last);
    }
    ms_free(l.slot);
}

/* ---- all steps ------------------------------------------------------------------- */

static size_t add_step(struct builder *b, enum mstx_graph_kind kind, size_t step)
{
    const size_t first = b->o->step.p[step].first;
    b->op = b->o->op.p + first;
    b->n = (uint32_t)(b->o->step.p[step + 1].first - first);
    b->list.edge.n = 0;
    for (uint32_t i = 0; i < b->n; i++)
        b->number[i] = (uint32_t)first + i;
    join_meets(b);
    if (kind == MSTX_GRAPH_STAGED)
        chain_stages(b);
    else
        chain_lanes(b);
    settle_meets(b);
    b->list.op = b->number;
    b->list.meet = b->meet;
    b->list.n = b->n;
    mstx__deps_begin_step(b->d);
    return b->d->no_memory ? 0 : mstx__deps_add_sorted(b->d, &b->list);
}

size_t mstx__op_graph(const struct mstx_ops *o, enum mstx_graph_kind kind, struct mstx_deps *d)
{
    struct builder b = {.o = o, .d = d};
    size_t most = 0, left = 0;
    *d = (struct mstx_deps){0};
    for (size_t s = 0; s < mstx__ops_steps(o); s++) {
        const size_t n = o->step.p[s + 1].first - o->step.p[s].first;
        most = n > most ? n : most;
    }
    b.number = ms_calloc(most + 1, sizeof *b.number);
    b.meet = ms_calloc(most + 1, sizeof *b.meet);
    d->no_memory = b.number == NULL || b.meet == NULL;
    for (size_t s = 0; s < mstx__ops_steps(o) && !d->no_memory; s++)
        left += add_step(&b, kind, s);
    mstx__deps_begin_step(d);
    mstx__deps_trim(d);
    ms_vec_free(&b.list.edge);
    ms_free(b.number);
    ms_free(b.meet);
    return left;
}
