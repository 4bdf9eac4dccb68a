/* SPDX-License-Identifier: MIT
 *
 * call_graph: see the header.
 */
#include "mstx/cluster/call_graph.h"

#include "mstx/cluster/keyed.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <string.h>

/* Order of nodes with the same time: nodes that others may wait for come first.  Before it has a
 * number, a node is named by its point, or by MSTX_GATE and the number of its gate. */
enum { ORDER_SOURCE, ORDER_GATE, ORDER_OUT, ORDERS };

/* Nodes are added window by window of time, so that only those of one window are sorted at a time. */
enum { ITEMS_TOGETHER = 1 << 18 };

struct sorted {
    struct mstx_call_graph *g;
    struct mstx_waits *w;
    MS_VEC(struct mstx_keyed) item; /* of a window */
    struct mstx_keyed *gate;        /* in order of time; the value is the number of the gate */
    size_t gates, gates_added;
    uint32_t *next;      /* by rank: its first point that is not added */
    uint32_t *node;      /* by point */
    uint32_t *gate_node; /* by gate */
    uint32_t *wait_at;   /* by point: the first of its waits in `source`; one more than points */
    uint32_t *source;    /* of each wait, by the point that waits */
};

static int64_t gate_time(const struct sorted *s, size_t gate)
{
    int64_t t = INT64_MIN;
    for (uint32_t i = s->w->gate_first.p[gate]; i < s->w->gate_first.p[gate + 1]; i++) {
        const int64_t of = s->g->point.p[s->w->gate_source.p[i]].at_ns;
        t = of > t ? of : t;
    }
    return t;
}

static uint64_t key_at(const struct sorted *s, int64_t at_ns, unsigned order)
{
    return (uint64_t)(at_ns - s->g->start_ns) * ORDERS + order;
}

/* Sorts the gates by time. */
static bool sort_gates(struct sorted *s)
{
    for (size_t k = 0; k < s->gates; k++)
        s->gate[k] =
            (struct mstx_keyed){key_at(s, gate_time(s, k), ORDER_GATE), MSTX_GATE | (uint32_t)k};
    return mstx__keyed_sort(s->gate, s->gates);
}

/* Collects the points and gates with keys below `until` that are not added, in the order of their keys; points
 * of a rank are in order of time. */
static bool collect_window(struct sorted *s, uint64_t until)
{
    s->item.n = 0;
    for (size_t r = 0; r + 1 < s->g->first.n; r++) {
        for (uint32_t i = s->next[r]; i < s->g->first.p[r + 1]; i = ++s->next[r]) {
            const struct mstx_point *p = &s->g->point.p[i];
            const uint64_t key =
                key_at(s, p->at_ns, p->kind == MSTX_POINT_OUT ? ORDER_OUT : ORDER_SOURCE);
            struct mstx_keyed *slot = key < until ? ms_vec_push(&s->item) : NULL;
            if (key >= until)
                break;
            if (slot == NULL)
                return false;
            *slot = (struct mstx_keyed){key, i};
        }
    }
    for (; s->gates_added < s->gates && s->gate[s->gates_added].key < until; s->gates_added++) {
        struct mstx_keyed *slot = ms_vec_push(&s->item);
        if (slot == NULL)
            return false;
        *slot = s->gate[s->gates_added];
    }
    return mstx__keyed_sort(s->item.p, s->item.n);
}

/* Sorts the sources of waits by the point that waits, and frees the waits. */
static void sort_waits(struct sorted *s)
{
    const size_t points = s->g->point.n;
    for (size_t i = 0; i < s->w->wait.n; i++)
        s->wait_at[s->w->wait.p[i].out + 1]++;
    for (size_t i = 0; i < points; i++)
        s->wait_at[i + 1] += s->wait_at[i];
    for (size_t i = s->w->wait.n; i-- > 0;)
        s->source[--s->wait_at[s->w->wait.p[i].out + 1]] = s->w->wait.p[i].source;
    for (size_t i = 0; i < points; i++)
        s->wait_at[i] = s->wait_at[i + 1];
    s->wait_at[points] = (uint32_t)s->w->wait.n;
    ms_vec_free(&s->w->wait);
}

static void add_gate(struct sorted *s, uint32_t gate)
{
    s->gate_node[gate] = mstx__deps_node(&s->g->deps, MSTX_NO_OP);
    for (uint32_t i = s->w->gate_first.p[gate]; i < s->w->gate_first.p[gate + 1]; i++)
        mstx__deps_after(&s->g->deps, s->node[s->w->gate_source.p[i]]);
}

/* Adds the predecessors that a point waits for; returns the latest of their times and `latest`. */
static int64_t add_waits(struct sorted *s, uint32_t point, int64_t latest)
{
    for (uint32_t i = s->wait_at[point]; i < s->wait_at[point + 1]; i++) {
        const uint32_t source = s->source[i];
        const bool is_gate = (source & MSTX_GATE) != 0;
        const int64_t t = is_gate ? gate_time(s, source & ~MSTX_GATE) : s->g->point.p[source].at_ns;
        mstx__deps_after(&s->g->deps,
                         is_gate ? s->gate_node[source & ~MSTX_GATE] : s->node[source]);
        latest = t > latest ? t : latest;
    }
    return latest;
}

/* Adds the node of a point.  The weight of local work is the time since the point before; the
 * weight of an interval is the time since the last event that it waits for. */
static void add_point(struct sorted *s, uint32_t point)
{
    const struct mstx_point *p = &s->g->point.p[point];
    const bool is_first = point == s->g->first.p[p->rank];
    int64_t since = is_first ? s->g->start_ns : p[-1].at_ns;
    s->node[point] = mstx__deps_node(&s->g->deps, point);
    if (!is_first)
        mstx__deps_after(&s->g->deps, s->node[point - 1]);
    if (p->kind == MSTX_POINT_OUT)
        since = add_waits(s, point, since);
    ms_assert(p->at_ns >= since);
    s->g->weight[point] = (double)(p->at_ns - since);
}

static void find_span(struct mstx_call_graph *g)
{
    g->start_ns = INT64_MAX;
    g->end_ns = INT64_MIN;
    for (size_t i = 0; i < g->point.n; i++) {
        const int64_t t = g->point.p[i].at_ns;
        g->start_ns = t < g->start_ns ? t : g->start_ns;
        g->end_ns = t > g->end_ns ? t : g->end_ns;
    }
}

static bool sorted_begin(struct sorted *s)
{
    const size_t points = s->g->point.n + 2;
    s->gates = s->w->gate_first.n != 0 ? s->w->gate_first.n - 1 : 0;
    s->gate = ms_calloc(s->gates + 1, sizeof *s->gate);
    s->next = ms_calloc(s->g->first.n, sizeof *s->next);
    s->node = ms_calloc(points, sizeof *s->node);
    s->gate_node = ms_calloc(s->gates + 1, sizeof *s->gate_node);
    s->wait_at = ms_calloc(points, sizeof *s->wait_at);
    s->source = ms_calloc(s->w->wait.n + 1, sizeof *s->source);
    s->g->weight = ms_calloc(points, sizeof *s->g->weight);
    if (s->gate == NULL || s->next == NULL || s->node == NULL || s->gate_node == NULL ||
        s->wait_at == NULL || s->source == NULL || s->g->weight == NULL)
        return false;
    memcpy(s->next, s->g->first.p, s->g->first.n * sizeof *s->next);
    return true;
}

static bool add_window(struct sorted *s, uint64_t until)
{
    if (!collect_window(s, until))
        return false;
    for (size_t i = 0; i < s->item.n && !s->g->deps.no_memory; i++) {
        const uint32_t what = s->item.p[i].value;
        if ((what & MSTX_GATE) != 0)
            add_gate(s, what & ~MSTX_GATE);
        else
            add_point(s, what);
    }
    return !s->g->deps.no_memory;
}

static bool add_nodes(struct sorted *s)
{
    const size_t windows = (s->g->point.n + s->gates) / ITEMS_TOGETHER + 1;
    const uint64_t all = s->g->point.n != 0 ? key_at(s, s->g->end_ns, ORDERS) : 0;
    bool ok = sort_gates(s);
    sort_waits(s);
    mstx__deps_begin_step(&s->g->deps);
    for (size_t k = 1; k <= windows && ok; k++)
        ok = add_window(s, k < windows ? all / windows * k : all);
    mstx__deps_begin_step(&s->g->deps);
    mstx__deps_trim(&s->g->deps);
    return ok && !s->g->deps.no_memory;
}

static void build(struct mstx_call_graph *g, struct mstx_waits *w)
{
    struct sorted s = {.g = g, .w = w};
    g->no_memory |= !sorted_begin(&s) || !add_nodes(&s);
    ms_vec_free(&s.item);
    ms_free(s.gate);
    ms_free(s.next);
    ms_free(s.node);
    ms_free(s.gate_node);
    ms_free(s.wait_at);
    ms_free(s.source);
}

void mstx__call_graph_cut(struct mstx_call_graph *g, struct mstx_waits *w, mstx_gcalls *calls,
                          uint32_t ranks, int64_t unsure_ns)
{
    *g = (struct mstx_call_graph){0};
    *w = (struct mstx_waits){0};
    mstx__call_points(g, calls, ranks);
    ms_vec_trim(&g->point);
    find_span(g);
    if (!g->no_memory)
        mstx__call_waits(w, g, calls, unsure_ns);
    g->no_memory |= w->no_memory;
}

void mstx__call_graph_build(struct mstx_call_graph *g, struct mstx_waits *w)
{
    if (!g->no_memory)
        build(g, w);
    mstx__call_waits_free(w);
}

void mstx__call_graph(struct mstx_call_graph *g, mstx_gcalls *calls, uint32_t ranks,
                      int64_t unsure_ns)
{
    struct mstx_waits w;
    mstx__call_graph_cut(g, &w, calls, ranks, unsure_ns);
    mstx__call_graph_build(g, &w);
}

void mstx__call_graph_free(struct mstx_call_graph *g)
{
    ms_vec_free(&g->point);
    ms_vec_free(&g->first);
    ms_vec_free(&g->thread);
    mstx__deps_free(&g->deps);
    ms_free(g->weight);
}
