/* SPDX-License-Identifier: MIT
 *
 * rank_groups: finds which ranks hold parts of the same tensors, and which hold layers
 * of one pipeline.
 *
 * Groups are inferred from communication: the group of the first reduction is a
 * tensor-parallel group, and sends follow a pipeline. If that gives no groups, or groups
 * of other sizes than the parameters state, ranks are laid out as Megatron does by the
 * order of its parallelisms, without context and expert parallelism.
 */
#include "compare/graph/merge/rank_groups.h"

#include "compare/graph/build/rank_comm.h"

#include "probe/base/scan.h"

#include <stdio.h>

enum axis { AXIS_TP, AXIS_CP, AXIS_DP, AXIS_PP, AXES, AXIS_EP };

void graph__groups_free(struct graph__groups *g)
{
    ms_vec_free(&g->members);
    ms_vec_free(&g->starts);
}

static enum ms_rc begin(struct graph__groups *g, struct ms_err *err)
{
    g->members.n = g->starts.n = 0;
    if (!ms_vec_reserve(&g->starts, 1))
        return ms_no_memory(err);
    g->starts.p[g->starts.n++] = 0;
    return MS_OK;
}

static enum ms_rc add_member(struct graph__groups *g, uint32_t rank, struct ms_err *err)
{
    uint32_t *slot = ms_vec_push(&g->members);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = rank;
    return MS_OK;
}

static enum ms_rc end_group(struct graph__groups *g, struct ms_err *err)
{
    uint32_t *slot = ms_vec_push(&g->starts);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (uint32_t)g->members.n;
    return MS_OK;
}

/* ---- the layout of Megatron ---------------------------------------------- */

struct layout {
    enum axis order[AXES];
    unsigned n;
    uint32_t size[AXES]; /* by axis */
};

static bool take_axis(struct layout *l, struct ms_str word, bool *known)
{
    static const char *const words[] = {"tp", "cp", "dp", "pp", "", "ep"};
    *known = ms_str_is(word, words[AXIS_EP]);
    for (unsigned i = 0; i < AXES; i++) {
        if (!ms_str_is(word, words[i]))
            continue;
        *known = true;
        for (unsigned k = 0; k < l->n; k++) {
            if (l->order[k] == (enum axis)i)
                return false;
        }
        l->order[l->n++] = (enum axis)i;
        return true;
    }
    return *known;
}

static bool has_axis(const struct layout *l, enum axis a)
{
    for (unsigned k = 0; k < l->n; k++) {
        if (l->order[k] == a)
            return true;
    }
    return false;
}

/* Returns true when "ep" is next to "dp" or absent: expert parallelism divides data parallelism. */
static bool keeps_together(struct ms_str order)
{
    return ms_str_find_str(order, MS_STR("ep")) < 0 ||
           ms_str_find_str(order, MS_STR("ep-dp")) >= 0 ||
           ms_str_find_str(order, MS_STR("dp-ep")) >= 0;
}

static enum ms_rc read_order(struct layout *l, const struct graph_param *p, struct ms_err *err)
{
    static const char *const names[] = {"tp", "cp", "dp", "pp"};
    struct ms_str rest = ms_str_of(p->order), word;
    *l = (struct layout){.size = {p->tp, 1, p->rank_size / (p->tp * p->pp), p->pp}};
    if (!keeps_together(rest))
        return ms_fail(err, MS_E_ARG, "order %s: ep and dp must be neighbours", p->order);
    while (ms_str_split(&rest, '-', &word)) {
        bool known;
        if (!take_axis(l, word, &known))
            return ms_fail(err, MS_E_ARG, "order %s: '%.*s' %s", p->order, MS_STR_ARG(word),
                           known ? "stands there twice" : "is none of tp, cp, ep, dp, pp");
    }
    for (unsigned a = 0; a < AXES; a++) {
        if (has_axis(l, (enum axis)a))
            continue;
        if (l->size[a] != 1)
            return ms_fail(err, MS_E_ARG, "order %s: %s is %u and is not in it", p->order, names[a],
                           l->size[a]);
        l->order[l->n++] = (enum axis)a;
    }
    return MS_OK;
}

/* Returns the distance of neighbouring ranks on an axis. The first axis of the order varies
 * fastest. */
static uint32_t stride_of(const struct layout *l, enum axis a)
{
    uint32_t stride = 1;
    for (unsigned k = 0; k < l->n && l->order[k] != a; k++)
        stride *= l->size[l->order[k]];
    return stride;
}

/* Returns the i-th rank among those whose coordinate on the axis is 0. */
static uint32_t nth_without(const struct layout *l, enum axis a, uint32_t i)
{
    uint32_t rank = 0;
    for (unsigned k = 0; k < l->n; k++) {
        enum axis b = l->order[k];
        if (b == a)
            continue;
        rank += i % l->size[b] * stride_of(l, b);
        i /= l->size[b];
    }
    return rank;
}

static enum ms_rc lay_out(const struct graph__forest *f, enum axis a, struct graph__groups *g,
                          struct ms_err *err)
{
    struct layout l;
    MS_TRY(read_order(&l, f->param, err));
    MS_TRY(begin(g, err));
    for (uint32_t i = 0; i < f->param->rank_size / l.size[a]; i++) {
        uint32_t first = nth_without(&l, a, i);
        for (uint32_t k = 0; k < l.size[a]; k++)
            MS_TRY(add_member(g, first + k * stride_of(&l, a), err));
        MS_TRY(end_group(g, err));
    }
    return MS_OK;
}

/* ---- groups from communication ------------------------------------------- */

static bool find_rank(const struct graph__forest *f, int64_t rank, uint32_t *at)
{
    for (*at = 0; *at < f->n; ++*at) {
        if (f->ranks[*at].rank == rank)
            return true;
    }
    return false;
}

static bool is_known(const struct graph__groups *g, const uint32_t *list, size_t count)
{
    for (uint32_t i = 0; i < graph__group_count(g); i++) {
        uint32_t n;
        const uint32_t *group = graph__group(g, i, &n);
        if (n == count && memcmp(group, list, count * sizeof *list) == 0)
            return true;
    }
    return false;
}

/* Adds a group from its JSON list. Sets *said to false when a rank of the group has no dump. */
static enum ms_rc add_group(const struct graph__forest *f, struct ms_str json,
                            struct graph__groups *g, bool *said, struct ms_err *err)
{
    struct ms_jread r;
    int64_t rank;
    uint32_t at;
    size_t from = g->members.n;
    ms_jread_init(&r, json.p, json.n, 0);
    ms_jread_next(&r);
    while (ms_jread_next(&r) == MS_J_NUM) {
        *said &= ms_jread_i64(&r, &rank) && find_rank(f, rank, &at);
        if (*said)
            MS_TRY(add_member(g, at, err));
    }
    if (*said && g->members.n > from && !is_known(g, &g->members.p[from], g->members.n - from))
        return end_group(g, err);
    g->members.n = from;
    return MS_OK;
}

static bool is_reduction(struct ms_str name)
{
    return ms_str_find_str(name, MS_STR("reduce_scatter")) >= 0 ||
           ms_str_find_str(name, MS_STR("all_reduce")) >= 0;
}

/* Returns the tree node of a node that has not been renamed, or GRAPH_NO. */
static uint32_t tree_node(const struct graph__forest *f, const struct graph__rank *r, uint32_t node)
{
    uint32_t n = ms_map_get(&r->g->built.names, f->nodes.p[node].name);
    return n != GRAPH_NO && n < r->g->nodes.n ? n : GRAPH_NO;
}

static enum ms_rc group_of_rank(const struct graph__forest *f, const struct graph__rank *r,
                                struct graph__groups *g, bool *said, struct ms_err *err)
{
    for (size_t i = 0; i < r->list.n; i++) {
        uint32_t node = r->list.p[i];
        if (node == GRAPH_NO || !is_reduction(f->nodes.p[node].name))
            continue;
        uint32_t n = tree_node(f, r, node);
        struct ms_str ranks = n != GRAPH_NO ? graph__comm_group(r->g, n) : MS_STR("");
        return ranks.n != 0 ? add_group(f, ranks, g, said, err) : MS_OK;
    }
    return MS_OK;
}

/* Returns true when every rank is in one group and all groups have this size; otherwise the groups
 * are not usable. */
static bool covers(const struct graph__forest *f, const struct graph__groups *g, uint32_t size)
{
    uint32_t n = graph__group_count(g);
    if (n == 0)
        return false;
    uint32_t first;
    graph__group(g, 0, &first);
    if (!f->rules->check_all_groups)
        return first == size;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t members;
        graph__group(g, i, &members);
        if (members != size)
            return false;
    }
    return g->members.n == f->n;
}

enum ms_rc graph__tensor_groups(struct graph__forest *f, struct graph__groups *g,
                                struct ms_err *err)
{
    bool said = true;
    MS_TRY(begin(g, err));
    for (uint32_t i = 0; i < f->n; i++)
        MS_TRY(group_of_rank(f, &f->ranks[i], g, &said, err));
    return said && covers(f, g, f->param->tp) ? MS_OK : lay_out(f, AXIS_TP, g, err);
}

static int64_t next_stage(const struct graph__forest *f, const struct graph__rank *r)
{
    for (size_t i = 0; i < r->list.n; i++) {
        uint32_t node = r->list.p[i];
        if (node == GRAPH_NO || !ms_str_starts(f->nodes.p[node].name, MS_STR("Distributed.")))
            continue;
        uint32_t n = tree_node(f, r, node);
        int64_t to = n != GRAPH_NO ? graph__comm_sends_to(r->g, n, r->rank) : -1;
        if (to >= 0)
            return to;
    }
    return -1;
}

/* Follows sends from every rank that is in no earlier chain. */
static enum ms_rc follow(const struct graph__forest *f, const int64_t *next, bool *seen,
                         struct graph__groups *g, struct ms_err *err)
{
    for (uint32_t i = 0; i < f->n; i++) {
        size_t from = g->members.n;
        uint32_t at = i;
        while (next[at] >= 0 && !seen[at]) {
            seen[at] = true;
            MS_TRY(add_member(g, at, err));
            if (!find_rank(f, next[at], &at))
                break;
        }
        if (g->members.n > from)
            MS_TRY(end_group(g, err));
    }
    return MS_OK;
}

enum ms_rc graph__pipeline_groups(struct graph__forest *f, struct graph__groups *g,
                                  struct ms_err *err)
{
    int64_t *next = ms_calloc(f->n, sizeof *next);
    bool *seen = ms_calloc(f->n, sizeof *seen);
    enum ms_rc rc = next != NULL && seen != NULL ? begin(g, err) : ms_no_memory(err);
    for (uint32_t i = 0; rc == MS_OK && i < f->n; i++)
        next[i] = next_stage(f, &f->ranks[i]);
    if (rc == MS_OK)
        rc = follow(f, next, seen, g, err);
    ms_free(next);
    ms_free(seen);
    MS_TRY(rc);
    return covers(f, g, f->param->pp) ? MS_OK : lay_out(f, AXIS_PP, g, err);
}
