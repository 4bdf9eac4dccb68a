/* SPDX-License-Identifier: MIT
 *
 * rank_merge: merges the graphs of ranks that hold parts of one model.
 */
#include "compare/graph/merge/rank_merge.h"
#include "compare/graph/build/overflow_marks.h"
#include "compare/graph/build/rank_comm.h"
#include "compare/graph/merge/merged_text.h"
#include "compare/graph/merge/pipeline.h"
#include "compare/graph/merge/tensor_parts.h"
#include "probe/base/assert.h"
#include "probe/base/scan.h"

#include <stdio.h>

/* ---- groups of ranks -------------------------------------------------------- */

/* Finds which ranks hold parts of the same tensors, and which hold layers
 * of one pipeline.
 *
 * Groups are inferred from communication: the group of the first reduction is a
 * tensor-parallel group, and sends follow a pipeline. If that gives no groups, or groups
 * of other sizes than the parameters state, ranks are laid out as Megatron does by the
 * order of its parallelisms, without context and expert parallelism. */

enum axis { AXIS_TP, AXIS_CP, AXIS_DP, AXIS_PP, AXES, AXIS_EP };

static void groups_free(struct graph__groups *g)
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
                            struct graph__groups *g, bool *is_complete, struct ms_err *err)
{
    struct ms_jread r;
    int64_t rank;
    uint32_t at;
    size_t from = g->members.n;
    ms_jread_init(&r, json.p, json.n, 0);
    ms_jread_next(&r);
    while (ms_jread_next(&r) == MS_J_NUM) {
        *is_complete &= ms_jread_i64(&r, &rank) && find_rank(f, rank, &at);
        if (*is_complete)
            MS_TRY(add_member(g, at, err));
    }
    if (*is_complete && g->members.n > from &&
        !is_known(g, &g->members.p[from], g->members.n - from))
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
                                struct graph__groups *g, bool *is_complete, struct ms_err *err)
{
    for (size_t i = 0; i < r->list.n; i++) {
        uint32_t node = r->list.p[i];
        if (node == GRAPH_NO || !is_reduction(f->nodes.p[node].name))
            continue;
        uint32_t n = tree_node(f, r, node);
        struct ms_str ranks = n != GRAPH_NO ? graph__comm_group(r->g, n) : MS_STR("");
        return ranks.n != 0 ? add_group(f, ranks, g, is_complete, err) : MS_OK;
    }
    return MS_OK;
}

/* Returns true when every rank is in one group and all groups have this size; otherwise the groups
 * are not usable. */
static bool is_covered(const struct graph__forest *f, const struct graph__groups *g, uint32_t size)
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

/* Finds the groups from communication, else from the layout of Megatron. */
static enum ms_rc find_tensor_groups(struct graph__forest *f, struct graph__groups *g,
                                     struct ms_err *err)
{
    bool is_complete = true;
    MS_TRY(begin(g, err));
    for (uint32_t i = 0; i < f->n; i++)
        MS_TRY(group_of_rank(f, &f->ranks[i], g, &is_complete, err));
    return is_complete && is_covered(f, g, f->param->tp) ? MS_OK : lay_out(f, AXIS_TP, g, err);
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

static enum ms_rc find_pipeline_groups(struct graph__forest *f, struct graph__groups *g,
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
    return is_covered(f, g, f->param->pp) ? MS_OK : lay_out(f, AXIS_PP, g, err);
}

/* Chooses how ranks are merged and returns the result as text.
 *
 *     tp = pp = 1                      nothing but collections
 *     tp = all ranks, or pp = 1        tensor groups
 *     pp = all ranks, or tp = 1        pipelines
 *     both                             pipelines first, then their tensor groups; one
 *                                      graph for each of the data-parallel copies */

/* ---- sizes ------------------------------------------------------------------- */

static bool is_order(const char *order)
{
    for (const char *p = order; *p != '\0'; p++) {
        if (*p != '-' && (*p < 'a' || *p > 'z'))
            return false;
    }
    return *order != '\0';
}

static enum ms_rc check_param(const struct graph_param *p, uint32_t ranks, const char *what,
                              struct ms_err *err)
{
    if (p->rank_size == 0 || p->tp == 0 || p->pp == 0 || p->vpp == 0)
        return ms_fail(err, MS_E_ARG, "%s: rank_size, tp, pp and vpp are 1 at least", what);
    if (p->rank_size != ranks)
        return ms_fail(err, MS_E_ARG, "%s: rank_size is %u, but there are %u rank directories",
                       what, p->rank_size, ranks);
    if (p->tp > p->rank_size || p->pp > p->rank_size || p->rank_size / p->tp < p->pp ||
        p->rank_size % p->tp != 0 || p->rank_size % p->pp != 0 ||
        p->rank_size % (p->tp * p->pp) != 0)
        return ms_fail(err, MS_E_ARG, "%s: %u ranks cannot be tp %u times pp %u", what,
                       p->rank_size, p->tp, p->pp);
    if (p->vpp > 1 && p->pp < 2)
        return ms_fail(err, MS_E_ARG, "%s: vpp is %u, which needs a pp of 2 at least", what,
                       p->vpp);
    if (!is_order(p->order))
        return ms_fail(err, MS_E_ARG, "%s: order '%s': small letters and '-' only", what, p->order);
    return MS_OK;
}

/* ---- collections ------------------------------------------------------------------ */

#define ALL_RANKS "Apis_Between_Modules_All_Ranks"
#define COLLECTED "Apis_Between_Modules"

static struct ms_str name_of_rank(struct graph__forest *f, struct ms_str collection, int64_t rank)
{
    ms_buf_clear(&f->text);
    ms_buf_printf(&f->text, COLLECTED "_Rank%lld.%.*s", (long long)rank,
                  MS_STR_ARG(probe_name_last(collection)));
    return graph__copy(f, ms_buf_slice(&f->text));
}

/* Adds the operators of another rank's collection, with the rank in their names. */
static void take_operators(struct graph__forest *f, struct graph__rank *main, uint32_t collection)
{
    for (size_t i = 0; i < graph__fnode(f, collection)->children.n && f->bad == MS_OK; i++) {
        uint32_t n = graph__fnode(f, collection)->children.p[i];
        struct graph__fnode *node = graph__fnode(f, n);
        ms_buf_clear(&f->text);
        graph__put_ranked(&f->text, node->name, f->ranks[node->rank].rank);
        node->name = graph__copy(f, ms_buf_slice(&f->text));
        graph__rank_put(f, main, n);
    }
}

/* Replaces a collection of the main rank by one of all ranks that contains the collection of each
 * rank. */
static uint32_t wrap(struct graph__forest *f, struct graph__rank *main, uint32_t node,
                     const uint32_t *ranks, uint32_t n)
{
    struct ms_str origin = graph__fnode(f, node)->name;
    uint32_t all = graph__new_collection(f, main, MS_STR(ALL_RANKS));
    if (f->bad != MS_OK)
        return node;
    if (f->rules->collections_keep_micro)
        graph__fnode(f, all)->micro = graph__fnode(f, node)->micro;
    graph__rename(f, main, node, name_of_rank(f, origin, main->rank));
    graph__adopt(f, all, node);
    for (uint32_t i = 1; i < n && f->bad == MS_OK; i++) {
        struct graph__rank *r = &f->ranks[ranks[i]];
        uint32_t other = graph__rank_get(r, origin);
        if (other == GRAPH_NO)
            continue;
        graph__fnode(f, other)->name = name_of_rank(f, origin, r->rank);
        graph__rank_put(f, main, other);
        take_operators(f, main, other);
        graph__adopt(f, all, other);
    }
    return all;
}

/* Adds the operators of a joined collection. Those of the other graph's main rank have no rank in
 * their names; the rank is added where the rules say so, which the official tool omits. */
static void join_operators(struct graph__forest *f, struct graph__rank *main, uint32_t collection)
{
    for (size_t i = 0; i < graph__fnode(f, collection)->children.n && f->bad == MS_OK; i++) {
        uint32_t n = graph__fnode(f, collection)->children.p[i];
        struct graph__fnode *node = graph__fnode(f, n);
        if (f->rules->rank_joined_operators && graph__rank_get(main, node->name) != GRAPH_NO) {
            ms_buf_clear(&f->text);
            graph__put_ranked(&f->text, node->name, f->ranks[node->rank].rank);
            node->name = graph__copy(f, ms_buf_slice(&f->text));
        }
        graph__rank_put(f, main, n);
    }
}

/* Joins the all-rank collections of the same name of other graphs into this one. */
static void join(struct graph__forest *f, struct graph__rank *main, uint32_t node,
                 const uint32_t *ranks, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        uint32_t other = graph__rank_get(&f->ranks[ranks[i]], graph__fnode(f, node)->name);
        if (other == GRAPH_NO || other == node)
            continue;
        for (size_t k = 0; k < graph__fnode(f, other)->children.n && f->bad == MS_OK; k++) {
            uint32_t child = graph__fnode(f, other)->children.p[k];
            graph__adopt(f, node, child);
            graph__rank_put(f, main, child);
            join_operators(f, main, child);
        }
    }
}

static void merge_collections(struct graph__forest *f, const uint32_t *ranks, uint32_t n)
{
    struct graph__rank *main = &f->ranks[ranks[0]];
    for (size_t i = 0; i < graph__fnode(f, main->root)->children.n && f->bad == MS_OK; i++) {
        uint32_t node = graph__fnode(f, main->root)->children.p[i];
        struct ms_str name = graph__fnode(f, node)->name;
        if (ms_str_starts(name, MS_STR(ALL_RANKS)))
            join(f, main, node, ranks, n);
        else if (ms_str_starts(name, MS_STR(COLLECTED)))
            graph__fnode(f, main->root)->children.p[i] = wrap(f, main, node, ranks, n);
    }
}

/* Sorts the members of all-rank collections by rank, since groups may have been joined in another
 * order. */
static void sort_collections(struct graph__forest *f, uint32_t rank)
{
    const struct graph__fnode *root = graph__fnode(f, f->ranks[rank].root);
    for (size_t i = 0; i < root->children.n; i++) {
        struct graph__fnode *all = graph__fnode(f, root->children.p[i]);
        if (!ms_str_starts(all->name, MS_STR(ALL_RANKS)))
            continue;
        for (size_t k = 1; k < all->children.n; k++) {
            for (size_t m = k; m > 0; m--) {
                uint32_t *p = &all->children.p[m];
                if (f->ranks[graph__fnode(f, p[-1])->rank].rank <=
                    f->ranks[graph__fnode(f, p[0])->rank].rank)
                    break;
                uint32_t other = p[0];
                p[0] = p[-1];
                p[-1] = other;
            }
        }
    }
}

/* ---- strategies ---------------------------------------------------------------------- */

struct results {
    MS_VEC(uint32_t) ranks; /* main ranks of the resulting graphs */
};

static enum ms_rc add_result(struct results *r, uint32_t rank, struct ms_err *err)
{
    uint32_t *slot = ms_vec_push(&r->ranks);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = rank;
    return MS_OK;
}

static void merge_pipeline(struct graph__forest *f, const uint32_t *ranks, uint32_t n)
{
    graph__merge_pipeline(f, ranks, n);
    if (f->param->vpp > 1 && n > 1 && f->bad == MS_OK)
        graph__merge_chunks(f, ranks[0]);
}

static enum ms_rc merge_one_way(struct graph__forest *f, bool tensors, struct results *out,
                                struct ms_err *err)
{
    struct graph__groups g = {.members = {0}};
    enum ms_rc rc = tensors ? find_tensor_groups(f, &g, err) : find_pipeline_groups(f, &g, err);
    for (uint32_t i = 0; rc == MS_OK && i < graph__group_count(&g); i++) {
        uint32_t n;
        const uint32_t *ranks = graph__group(&g, i, &n);
        merge_collections(f, ranks, n);
        if (tensors)
            graph__merge_tensor(f, ranks, n, NULL);
        else
            merge_pipeline(f, ranks, n);
        rc = add_result(out, ranks[0], err);
    }
    groups_free(&g);
    return rc;
}

/* Selects the ranks of a tensor group that begin a pipeline: their graphs are complete. */
static uint32_t pick_heads(const struct graph__groups *pp, const uint32_t *group, uint32_t n,
                           uint32_t *heads)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < graph__group_count(pp); k++) {
            uint32_t m;
            if (graph__group(pp, k, &m)[0] == group[i])
                heads[count++] = group[i];
        }
    }
    return count;
}

static enum ms_rc merge_heads(struct graph__forest *f, const struct graph__groups *pp,
                              const struct graph__groups *tp, struct results *out,
                              struct ms_err *err)
{
    bool whole = (uint64_t)f->param->tp * f->param->pp == f->param->rank_size;
    uint32_t *heads = ms_calloc(f->n + 1, sizeof *heads);
    enum ms_rc rc = heads != NULL ? MS_OK : ms_no_memory(err);
    for (uint32_t i = 0; rc == MS_OK && i < graph__group_count(tp); i++) {
        uint32_t n;
        const uint32_t *group = graph__group(tp, i, &n);
        uint32_t count = pick_heads(pp, group, n, heads);
        if (count == 0)
            continue;
        if (!whole)
            merge_collections(f, heads, count);
        graph__merge_tensor(f, heads, count, tp);
        sort_collections(f, heads[0]);
        rc = add_result(out, heads[0], err);
    }
    ms_free(heads);
    return rc;
}

static enum ms_rc merge_both(struct graph__forest *f, struct results *out, struct ms_err *err)
{
    struct graph__groups pp = {.members = {0}}, tp = {.members = {0}};
    bool whole = (uint64_t)f->param->tp * f->param->pp == f->param->rank_size;
    uint32_t *all = ms_calloc(f->n + 1, sizeof *all);
    enum ms_rc rc = all != NULL ? find_pipeline_groups(f, &pp, err) : ms_no_memory(err);
    if (rc == MS_OK)
        rc = find_tensor_groups(f, &tp, err);
    for (uint32_t i = 0; all != NULL && i < f->n; i++)
        all[i] = i;
    if (rc == MS_OK && whole)
        merge_collections(f, all, f->n);
    for (uint32_t i = 0; rc == MS_OK && i < graph__group_count(&pp); i++) {
        uint32_t n;
        const uint32_t *ranks = graph__group(&pp, i, &n);
        if (!whole)
            merge_collections(f, ranks, n);
        merge_pipeline(f, ranks, n);
    }
    if (rc == MS_OK)
        rc = merge_heads(f, &pp, &tp, out, err);
    groups_free(&pp);
    groups_free(&tp);
    ms_free(all);
    return rc;
}

static enum ms_rc merge_nothing(struct graph__forest *f, struct results *out, struct ms_err *err)
{
    uint32_t first = 0;
    merge_collections(f, &first, 1);
    return add_result(out, first, err);
}

static enum ms_rc choose(struct graph__forest *f, struct results *out, struct ms_err *err)
{
    const struct graph_param *p = f->param;
    if (p->tp == 1 && p->pp == 1 && p->rank_size == 1)
        return merge_nothing(f, out, err);
    if (p->tp == p->rank_size || (p->pp == 1 && p->pp != p->rank_size))
        return merge_one_way(f, true, out, err);
    if (p->pp == p->rank_size || p->tp == 1)
        return merge_one_way(f, false, out, err);
    return merge_both(f, out, err);
}

/* ---- the whole merge ----------------------------------------------------- */

static enum ms_rc put_results(struct graph__forest *f, const struct results *r,
                              struct graph__merges *out, struct ms_err *err)
{
    if (f->bad != MS_OK || f->text.bad != MS_OK)
        return ms_no_memory(err);
    for (size_t i = 0; i < r->ranks.n; i++) {
        struct graph__merged *m = ms_vec_push(&out->list);
        if (m == NULL)
            return ms_no_memory(err);
        MS_TRY(graph__put_merged(f, r->ranks.p[i], m, err));
    }
    return f->bad == MS_OK ? MS_OK : ms_no_memory(err);
}

static enum ms_rc merge_trees(struct graph__forest *f, const struct graph__tree *trees,
                              const struct graph__dumps *d, struct graph__merges *out,
                              struct ms_err *err)
{
    struct results r = {.ranks = {0}};
    enum ms_rc rc = graph__forest_init(f, trees, d->ranks, d->n, err);
    if (rc == MS_OK)
        rc = choose(f, &r, err);
    if (rc == MS_OK)
        rc = put_results(f, &r, out, err);
    ms_vec_free(&r.ranks);
    return rc;
}

struct opening {
    const struct graph__dumps *d;
    struct graph__tree *trees;
    const struct graph_rules *rules;
};

static enum ms_rc open_rank(void *ctx, size_t i, unsigned worker, struct ms_err *err)
{
    const struct opening *o = ctx;
    (void)worker;
    MS_TRY(graph__open(&o->trees[i], o->d->dirs[i], o->rules, NULL, err));
    graph__find_overflows(&o->trees[i]);
    if (o->trees[i].side.dump->mode != PROBE_MODE_TENSOR)
        return MS_OK;
    ms_fail(err, MS_E_ARG, "%s: holds tensors, which cannot be merged", o->d->dirs[i]);
    ms_err_hint(err, "merge ranks of a statistics dump");
    return MS_E_ARG;
}

enum ms_rc graph__merge(const struct graph__dumps *dumps, const struct graph_param *param,
                        const struct graph_rules *rules, struct ms_pool *pool,
                        struct graph__merges *out, struct ms_err *err)
{
    struct graph__forest f = {.param = param, .rules = rules};
    MS_TRY(check_param(param, dumps->n, dumps->what, err));
    struct graph__tree *trees = ms_calloc(dumps->n, sizeof *trees);
    if (trees == NULL)
        return ms_no_memory(err);
    for (uint32_t i = 0; i < dumps->n; i++) {
        ms_assert(i == 0 || dumps->ranks[i - 1] <= dumps->ranks[i]);
        graph__init(&trees[i], rules);
    }
    struct opening o = {dumps, trees, rules};
    enum ms_rc rc = ms_pool_run(pool, dumps->n, open_rank, &o, err);
    if (rc == MS_OK)
        rc = merge_trees(&f, trees, dumps, out, err);
    graph__forest_free(&f);
    for (uint32_t i = 0; i < dumps->n; i++)
        graph__close(&trees[i]);
    ms_free(trees);
    return rc;
}

void graph__merges_free(struct graph__merges *m)
{
    for (size_t i = 0; i < m->list.n; i++) {
        struct graph__merged *g = &m->list.p[i];
        ms_buf_free(&g->construct);
        ms_buf_free(&g->dump);
        ms_buf_free(&g->stack);
        ms_vec_free(&g->notes);
        ms_arena_free(g->arena);
    }
    ms_vec_free(&m->list);
}
