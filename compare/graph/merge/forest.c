/* SPDX-License-Identifier: MIT
 *
 * forest: nodes of several ranks, with their names and items.
 */
#include "compare/graph/merge/forest.h"

#include <math.h>
#include <stdlib.h>

enum { TEXT_MAX = 1 << 28 };

/* Relative tolerance: ranks that compute the same value can differ in the order of summation. */
static const double uncertain = 1e-6;

static struct graph__data *data_at(struct graph__forest *f, uint32_t data)
{
    ms_assert(data < f->data.n);
    return &f->data.p[data];
}

static void set_failed(struct graph__forest *f)
{
    f->bad = MS_E_NOMEM;
}

struct ms_str graph__copy(struct graph__forest *f, struct ms_str s)
{
    struct ms_str copy = ms_arena_str(f->arena, s);
    if (copy.p == NULL) {
        set_failed(f);
        return MS_STR("");
    }
    return copy;
}

/* ---- names ------------------------------------------------------------------ */

uint32_t graph__rank_get(const struct graph__rank *r, struct ms_str name)
{
    uint32_t key = ms_map_get(&r->keys, name);
    uint32_t place = key != GRAPH_NO ? r->place.p[key] : GRAPH_NO;
    return place != GRAPH_NO ? r->list.p[place] : GRAPH_NO;
}

void graph__rank_put(struct graph__forest *f, struct graph__rank *r, uint32_t node)
{
    bool added;
    uint32_t key = ms_map_put(&r->keys, f->nodes.p[node].name, &added);
    if (key == GRAPH_NO || !ms_vec_reserve(&r->place, r->keys.keys.n) ||
        !ms_vec_reserve(&r->list, r->list.n + 1)) {
        set_failed(f);
        return;
    }
    if (added) {
        r->place.p[r->place.n++] = GRAPH_NO;
        r->place.n = r->keys.keys.n;
    }
    if (r->place.p[key] == GRAPH_NO) {
        r->place.p[key] = (uint32_t)r->list.n;
        r->list.n++;
    }
    r->list.p[r->place.p[key]] = node;
}

void graph__rank_drop(struct graph__rank *r, struct ms_str name)
{
    uint32_t key = ms_map_get(&r->keys, name);
    if (key == GRAPH_NO || r->place.p[key] == GRAPH_NO)
        return;
    r->list.p[r->place.p[key]] = GRAPH_NO;
    r->place.p[key] = GRAPH_NO;
}

void graph__rename(struct graph__forest *f, struct graph__rank *r, uint32_t node,
                   struct ms_str name)
{
    graph__rank_drop(r, f->nodes.p[node].name);
    f->nodes.p[node].name = graph__copy(f, name);
    graph__rank_put(f, r, node);
}

void graph__put_ranked(struct ms_buf *out, struct ms_str name, int64_t rank)
{
    struct ms_str first = probe_name_part(name, 0), api = probe_name_part(name, 1);
    uint32_t at = first.n + 1 + api.n;
    if (at > name.n)
        at = name.n;
    ms_buf_str(out, ms_str_sub(name, 0, at));
    ms_buf_printf(out, "_rank%lld", (long long)rank);
    ms_buf_str(out, ms_str_sub(name, at, name.n));
}

void graph__put_chunk(struct ms_buf *out, struct ms_str name, uint32_t number)
{
    struct ms_str first = probe_name_part(name, 0), chunk = probe_name_part(name, 1);
    if (!ms_str_all_digits(chunk)) {
        ms_buf_str(out, name);
        return;
    }
    ms_buf_str(out, first);
    ms_buf_printf(out, ".%u", number);
    ms_buf_str(out, ms_str_sub(name, first.n + 1 + chunk.n, name.n));
}

/* ---- nodes ------------------------------------------------------------------- */

static uint32_t add_data(struct graph__forest *f, uint32_t rank, uint32_t record, bool output)
{
    struct graph__data *d = ms_vec_push(&f->data);
    if (d == NULL) {
        set_failed(f);
        return 0;
    }
    *d = (struct graph__data){.rank = rank, .record = record, .output = output};
    return (uint32_t)f->data.n - 1;
}

void graph__adopt(struct graph__forest *f, uint32_t parent, uint32_t child)
{
    ms_assert(parent < f->nodes.n && child < f->nodes.n && parent != child);
    uint32_t *slot = ms_vec_push(&f->nodes.p[parent].children);
    if (slot == NULL) {
        set_failed(f);
        return;
    }
    *slot = child;
    f->nodes.p[child].parent = parent;
}

void graph__add_info(struct graph__forest *f, uint32_t node, struct ms_str line)
{
    struct ms_str *slot = ms_vec_push(&f->nodes.p[node].info);
    if (slot == NULL)
        set_failed(f);
    else
        *slot = graph__copy(f, line);
}

static uint32_t add_node(struct graph__forest *f, const struct graph__fnode *like, uint32_t record)
{
    struct graph__fnode *n = ms_vec_push(&f->nodes);
    if (n == NULL) {
        set_failed(f);
        return 0;
    }
    *n = *like;
    n->in = add_data(f, like->rank, record, false);
    n->out = add_data(f, like->rank, record, true);
    return (uint32_t)f->nodes.n - 1;
}

uint32_t graph__new_collection(struct graph__forest *f, struct graph__rank *r, struct ms_str name)
{
    struct graph__fnode like = {.rank = (uint32_t)(r - f->ranks),
                                .parent = r->root,
                                .stack = GRAPH_STACK_EMPTY,
                                .kind = GRAPH_COLLECTION};
    ms_buf_clear(&f->text);
    ms_buf_str(&f->text, name);
    ms_buf_printf(&f->text, ".%u", r->collections++);
    like.name = graph__copy(f, ms_buf_slice(&f->text));
    uint32_t node = add_node(f, &like, GRAPH_NO);
    if (f->bad == MS_OK)
        graph__rank_put(f, r, node);
    return node;
}

bool graph__same_ancestors(struct graph__forest *f, uint32_t a, uint32_t b)
{
    for (;;) {
        a = f->nodes.p[a].parent;
        b = f->nodes.p[b].parent;
        if (a == GRAPH_NO || b == GRAPH_NO)
            return a == b;
        if (a == b)
            return true;
        if (!ms_str_eq(f->nodes.p[a].name, f->nodes.p[b].name))
            return false;
    }
}

/* ---- from a tree ---------------------------------------------------------------- */

struct made {
    uint32_t seq, node;
};

static int by_seq(const void *a, const void *b)
{
    const struct made *x = a;
    const struct made *y = b;
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* Lists the nodes: the root, then nodes in the order of first mention in construct.json, then nodes
 * that tree building added. */
static struct made *order_of(const struct graph__tree *g)
{
    struct made *list = ms_calloc(g->nodes.n, sizeof *list);
    for (uint32_t i = 0; list != NULL && i < g->nodes.n; i++) {
        uint32_t seq = g->nodes.p[i].seq;
        list[i] = (struct made){i == g->root ? 0 : seq == 0 ? UINT32_MAX : seq, i};
    }
    if (list != NULL)
        qsort(list, g->nodes.n, sizeof *list, by_seq);
    return list;
}

static uint32_t record_of(const struct graph__tree *g, const struct graph__node *n)
{
    return n->op != GRAPH_NO ? g->side.ops.p[n->op].node : GRAPH_NO;
}

/* Adds the nodes of rank i. The nodes of the tree get consecutive numbers from `first` on. */
static void take_nodes(struct graph__forest *f, uint32_t i, uint32_t first)
{
    const struct graph__tree *g = f->ranks[i].g;
    for (uint32_t k = 0; k < g->nodes.n && f->bad == MS_OK; k++) {
        const struct graph__node *n = &g->nodes.p[k];
        struct graph__fnode like = {.name = graph__name(g, k),
                                    .rank = i,
                                    .parent = n->parent != GRAPH_NO ? first + n->parent : GRAPH_NO,
                                    .stack = n->stack,
                                    .micro = n->micro,
                                    .kind = n->kind,
                                    .over = n->over};
        add_node(f, &like, record_of(g, n));
    }
    for (uint32_t k = 0; k < g->nodes.n && f->bad == MS_OK; k++) {
        for (uint32_t c = g->nodes.p[k].first_child; c != GRAPH_NO; c = g->nodes.p[c].next)
            graph__adopt(f, first + k, first + c);
    }
    f->ranks[i].root = first + g->root;
}

static void take_tree(struct graph__forest *f, uint32_t i)
{
    const struct graph__tree *g = f->ranks[i].g;
    uint32_t first = (uint32_t)f->nodes.n;
    struct made *order = order_of(g);
    if (order == NULL)
        set_failed(f);
    else
        take_nodes(f, i, first);
    for (uint32_t k = 0; k < g->nodes.n && f->bad == MS_OK; k++)
        graph__rank_put(f, &f->ranks[i], first + order[k].node);
    ms_free(order);
}

enum ms_rc graph__forest_init(struct graph__forest *f, const struct graph__tree *trees,
                              const int64_t *ranks, uint32_t n, struct ms_err *err)
{
    f->text.max = TEXT_MAX;
    f->arena = ms_arena_new(SIZE_MAX);
    f->ranks = ms_calloc(n + 1, sizeof *f->ranks);
    if (f->arena == NULL || f->ranks == NULL)
        return ms_no_memory(err);
    f->n = n;
    for (uint32_t i = 0; i < n; i++) {
        f->ranks[i].g = &trees[i];
        f->ranks[i].rank = ranks[i];
        take_tree(f, i);
    }
    return f->bad == MS_OK ? MS_OK : ms_no_memory(err);
}

void graph__forest_free(struct graph__forest *f)
{
    for (size_t i = 0; i < f->nodes.n; i++) {
        ms_vec_free(&f->nodes.p[i].children);
        ms_vec_free(&f->nodes.p[i].info);
    }
    for (size_t i = 0; i < f->data.n; i++)
        ms_vec_free(&f->data.p[i].patches);
    for (uint32_t i = 0; i < f->n; i++) {
        ms_map_free(&f->ranks[i].keys);
        ms_vec_free(&f->ranks[i].place);
        ms_vec_free(&f->ranks[i].list);
    }
    ms_free(f->ranks);
    ms_vec_free(&f->nodes);
    ms_vec_free(&f->data);
    ms_buf_free(&f->text);
    ms_arena_free(f->arena);
}

/* ---- items ----------------------------------------------------------------------- */

/* Decides by the whole name of an item, as the official tool does, not by the item's section. */
static bool is_output(struct ms_str path)
{
    bool out =
        ms_str_starts(path, MS_STR("output.")) || ms_str_find_str(path, MS_STR(".output.")) >= 0;
    bool in =
        ms_str_starts(path, MS_STR("input.")) || ms_str_find_str(path, MS_STR(".input.")) >= 0;
    return out && !in;
}

static bool is_merged_type(struct ms_str dtype)
{
    static const char *const types[] = {
        "torch.int8",    "torch.int32",   "torch.int64", "torch.bfloat16", "torch.float16",
        "torch.float32", "torch.float64", "Float16",     "Float32",        "BFloat16"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (ms_str_is(dtype, types[i]))
            return true;
    }
    return false;
}

static void take_item(const struct graph__forest *f, const struct graph__data *d, uint32_t row,
                      struct graph__item *it)
{
    const struct probe_dump *dump = f->ranks[d->rank].g->side.dump;
    struct probe_leaf leaf;
    probe_row_leaf(dump, &dump->rows.p[row], &leaf);
    *it = (struct graph__item){.row = row,
                               .path = probe_row_path(dump, &dump->rows.p[row]),
                               .dtype = leaf.dtype,
                               .merges = leaf.kind == PROBE_LEAF_TENSOR &&
                                         is_merged_type(leaf.dtype_text)};
    memcpy(it->stat, leaf.stat, sizeof it->stat);
    for (size_t i = 0; i < d->patches.n; i++) {
        if (d->patches.p[i].row == row)
            memcpy(it->stat, d->patches.p[i].stat, sizeof it->stat);
    }
}

bool graph__next_item(struct graph__forest *f, uint32_t data, uint32_t *at, struct graph__item *it)
{
    const struct graph__data *d = data_at(f, data);
    if (d->record == GRAPH_NO)
        return false;
    const struct probe_dump *dump = f->ranks[d->rank].g->side.dump;
    const struct probe_node *n = &dump->nodes.p[d->record];
    for (; *at < n->nrows; ++*at) {
        uint32_t row = n->first_row + *at;
        if (is_output(probe_row_path(dump, &dump->rows.p[row])) != d->output)
            continue;
        take_item(f, d, row, it);
        ++*at;
        return true;
    }
    return false;
}

bool graph__find_item(struct graph__forest *f, uint32_t data, struct ms_str path,
                      struct graph__item *it)
{
    const struct graph__data *d = data_at(f, data);
    if (d->record == GRAPH_NO)
        return false;
    const struct probe_dump *dump = f->ranks[d->rank].g->side.dump;
    const struct probe_node *n = &dump->nodes.p[d->record];
    for (uint32_t row = n->first_row; row < n->first_row + n->nrows; row++) {
        if (!ms_str_eq(probe_row_path(dump, &dump->rows.p[row]), path))
            continue;
        take_item(f, d, row, it);
        return true;
    }
    return false;
}

void graph__patch_item(struct graph__forest *f, uint32_t data, const struct graph__item *it)
{
    struct graph__data *d = data_at(f, data);
    struct graph__patch *p = NULL;
    for (size_t i = 0; i < d->patches.n; i++) {
        if (d->patches.p[i].row == it->row)
            p = &d->patches.p[i];
    }
    if (p == NULL)
        p = ms_vec_push(&d->patches);
    if (p == NULL) {
        set_failed(f);
        return;
    }
    p->row = it->row;
    memcpy(p->stat, it->stat, sizeof p->stat);
}

/* ---- comparing -------------------------------------------------------------------- */

static bool is_number(const struct probe_num *n)
{
    return n->kind == PROBE_NUM_BOOL || n->kind == PROBE_NUM_INT || n->kind == PROBE_NUM_FLOAT;
}

static bool is_near(double a, double b)
{
    double diff = fabs(a - b);
    if (isnan(diff))
        return isnan(a) && isnan(b);
    if (isinf(diff))
        return isinf(a) && isinf(b);
    return a == 0 ? diff < uncertain : fabs(diff / a) < uncertain;
}

bool graph__is_same(const struct graph__item *a, const struct graph__item *b, bool exact)
{
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        const struct probe_num *x = &a->stat[i], *y = &b->stat[i];
        if (!is_number(x) || !is_number(y))
            continue;
        bool near = !exact && (i == PROBE_STAT_MEAN || i == PROBE_STAT_NORM);
        if (near ? !is_near(x->v, y->v) : x->v != y->v)
            return false;
    }
    return true;
}

bool graph__item_differs(struct graph__forest *f, const struct graph__item *it,
                         const uint32_t *others, uint32_t n, bool all, struct graph__item *like,
                         uint32_t *count)
{
    bool differs = all;
    *count = 0;
    if (!it->merges)
        return false;
    like[(*count)++] = *it;
    for (uint32_t i = 0; i < n; i++) {
        struct graph__item *other = &like[*count];
        if (!graph__find_item(f, others[i], it->path, other) || !other->merges)
            break;
        ++*count;
        differs |= !all && !graph__is_same(it, other, false);
    }
    return differs;
}

bool graph__data_differs(struct graph__forest *f, uint32_t data, const uint32_t *others, uint32_t n)
{
    struct graph__item it, *like = ms_calloc(n + 1, sizeof *like);
    uint32_t at = 0, count;
    bool differs = false;
    if (like == NULL) {
        set_failed(f);
        return false;
    }
    while (!differs && graph__next_item(f, data, &at, &it))
        differs = graph__item_differs(f, &it, others, n, false, like, &count);
    ms_free(like);
    return differs;
}
