/* SPDX-License-Identifier: MIT
 *
 * tensor_parts: merges the parts of tensors on several ranks into the whole tensor.
 *
 *     Max = max, Min = min, Mean = average, Norm = root of the sum of squares
 *
 * An item with equal figures on all ranks is not a part. A row-parallel matmul is
 * followed by a reduction, so its output is that of the reduction, not a sum of norms.
 * Between a column-parallel and a row-parallel layer every item is a part, even if the
 * figures are equal.
 */
#include "compare/graph/merge/tensor_parts.h"

#include "probe/base/num.h"

#include <math.h>

struct tensor {
    struct graph__forest *f;
    struct graph__rank *main;
    const uint32_t *ranks;
    uint32_t n;
    const struct graph__groups *map;
    uint32_t *like, *data; /* the current node on the other ranks, and its data */
    uint32_t likes;        /* number of entries: all other ranks or 0 */
    struct graph__item *items;
    struct ms_buf text;
};

/* ---- numbers as Python prints them --------------------------------------------- */

static void put_number(struct ms_buf *out, const struct probe_num *n)
{
    char text[MS_NUM_MAX];
    if (n->kind == PROBE_NUM_BOOL)
        ms_buf_puts(out, n->v != 0 ? "True" : "False");
    else if (n->kind != PROBE_NUM_FLOAT)
        ms_buf_str(out, n->text);
    else if (isnan(n->v))
        ms_buf_puts(out, "nan");
    else if (isinf(n->v))
        ms_buf_puts(out, n->v > 0 ? "inf" : "-inf");
    else
        ms_buf_put(out, text, ms_num_f64(text, n->v));
}

static struct probe_num make_real(struct graph__forest *f, double v)
{
    char text[MS_NUM_MAX];
    struct ms_str s = {text, ms_num_f64(text, v)};
    return (struct probe_num){.kind = PROBE_NUM_FLOAT, .v = v, .text = graph__copy(f, s)};
}

/* ---- merging one item ------------------------------------------------------------ */

/* Returns the maximum or minimum of the ranks. A NaN on any rank wins; in the official tool only a
 * NaN on the first rank does. */
static const struct probe_num *find_extreme(const struct tensor *t, uint32_t count, unsigned stat)
{
    const struct probe_num *best = &t->items[0].stat[stat];
    for (uint32_t i = 1; i < count; i++) {
        const struct probe_num *x = &t->items[i].stat[stat];
        bool better = stat == PROBE_STAT_MAX ? x->v > best->v : x->v < best->v;
        if (better || (t->f->rules->nan_is_extreme && isnan(x->v)))
            best = x;
    }
    return best;
}

static double sum_parts(const struct tensor *t, uint32_t count, unsigned stat)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        double v = t->items[i].stat[stat].v;
        sum += stat == PROBE_STAT_NORM ? pow(v, 2) : v;
    }
    return sum;
}

static struct probe_num merge_figure(struct tensor *t, uint32_t count, unsigned stat)
{
    enum ms_dtype type = t->items[0].dtype;
    double sum;
    if (stat == PROBE_STAT_MAX || stat == PROBE_STAT_MIN) {
        const struct probe_num *best = find_extreme(t, count, stat);
        if (best->kind != PROBE_NUM_FLOAT || !isfinite(best->v))
            return *best;
        return make_real(t->f, ms_dtype_round(type, best->v));
    }
    sum = sum_parts(t, count, stat);
    sum = stat == PROBE_STAT_MEAN ? sum / count : pow(sum, 0.5);
    return make_real(t->f, isfinite(sum) ? ms_dtype_round(type, sum) : sum);
}

/* Writes the formula of a merged figure: max(1.0, 2.0), (1.0 + 2.0) / 2, (1.0 ** 2 + 2.0 ** 2) **
 * 0.5. */
static void put_formula(struct tensor *t, uint32_t count, unsigned stat)
{
    static const char *const begin[] = {"max(", "min(", "(", "("};
    static const char *const between[] = {", ", ", ", " + ", " ** 2 + "};
    for (uint32_t i = 0; i < count; i++) {
        ms_buf_puts(&t->text, i == 0 ? begin[stat] : between[stat]);
        put_number(&t->text, &t->items[i].stat[stat]);
    }
    ms_buf_puts(&t->text, stat == PROBE_STAT_NORM ? " ** 2)" : ")");
    if (stat == PROBE_STAT_MEAN)
        ms_buf_printf(&t->text, " / %u", count);
    else if (stat == PROBE_STAT_NORM)
        ms_buf_puts(&t->text, " ** 0.5");
}

static bool all_numbers(const struct tensor *t, uint32_t count, unsigned stat)
{
    for (uint32_t i = 0; i < count; i++) {
        enum probe_num_kind kind = t->items[i].stat[stat].kind;
        if (kind != PROBE_NUM_BOOL && kind != PROBE_NUM_INT && kind != PROBE_NUM_FLOAT)
            return false;
    }
    return true;
}

static void merge_item(struct tensor *t, uint32_t node, uint32_t data, uint32_t count)
{
    struct graph__item merged = t->items[0];
    const struct graph_words *w = t->f->rules->words;
    if (count < 2)
        return;
    for (unsigned stat = 0; stat < PROBE_STATS; stat++) {
        if (!all_numbers(t, count, stat))
            continue;
        merged.stat[stat] = merge_figure(t, count, stat);
        ms_buf_clear(&t->text);
        ms_buf_printf(&t->text, "%s%s%s%.*s%s", w->before_stat, probe_stat_names[stat],
                      w->before_item, MS_STR_ARG(merged.path), w->after_item);
        put_formula(t, count, stat);
        ms_buf_puts(&t->text, " = ");
        put_number(&t->text, &merged.stat[stat]);
        graph__add_info(t->f, node, ms_buf_slice(&t->text));
    }
    graph__patch_item(t->f, data, &merged);
}

/* ---- the node on other ranks --------------------------------------------------------- */

/* Returns the group whose first member is this rank, or NULL. */
static const uint32_t *group_of(const struct tensor *t, int64_t rank, uint32_t *n)
{
    for (uint32_t i = 1; i < graph__group_count(t->map); i++) {
        const uint32_t *group = graph__group(t->map, i, n);
        if (*n > 0 && t->f->ranks[group[0]].rank == rank)
            return group;
    }
    return NULL;
}

/* Returns the rank in a name such as Torch.mm_rank4.0.forward, or -1; *from and *to delimit its
 * digits. */
static int64_t rank_in(struct ms_str name, uint32_t *from, uint32_t *to)
{
    const struct ms_str word = MS_STR("_rank");
    int64_t rank;
    for (uint32_t at = 0;;) {
        int64_t hit = ms_str_find_str(ms_str_sub(name, at, name.n), word);
        if (hit < 0)
            return -1;
        *from = *to = at = at + (uint32_t)hit + word.n;
        while (*to < name.n && name.p[*to] >= '0' && name.p[*to] <= '9')
            ++*to;
        if (*to > *from && *to < name.n && name.p[*to] == '.' &&
            ms_str_i64(ms_str_sub(name, *from, *to), &rank))
            return rank;
    }
}

/* Writes the name that the node has on the other rank i: a rank that pipeline merging put into the
 * name is replaced by the corresponding one. */
static bool name_there(struct tensor *t, struct ms_str name, uint32_t i)
{
    uint32_t from, to, n = 0;
    int64_t rank = t->map != NULL ? rank_in(name, &from, &to) : -1;
    ms_buf_clear(&t->f->text);
    if (rank < 0) {
        ms_buf_str(&t->f->text, name);
        return true;
    }
    const uint32_t *group = group_of(t, rank, &n);
    if (group == NULL || n != t->n)
        return false;
    ms_buf_str(&t->f->text, ms_str_sub(name, 0, from));
    ms_buf_printf(&t->f->text, "%lld", (long long)t->f->ranks[group[i + 1]].rank);
    ms_buf_str(&t->f->text, ms_str_sub(name, to, name.n));
    return true;
}

static void find_others(struct tensor *t, uint32_t node)
{
    t->likes = 0;
    for (uint32_t i = 0; i + 1 < t->n; i++) {
        if (!name_there(t, graph__fnode(t->f, node)->name, i))
            return;
        uint32_t other = graph__rank_get(&t->f->ranks[t->ranks[i + 1]], ms_buf_slice(&t->f->text));
        if (other == GRAPH_NO || !graph__same_ancestors(t->f, node, other))
            return;
        t->like[i] = other;
    }
    t->likes = t->n - 1;
}

static const uint32_t *data_of_others(struct tensor *t, bool output)
{
    for (uint32_t i = 0; i < t->likes; i++) {
        const struct graph__fnode *n = graph__fnode(t->f, t->like[i]);
        t->data[i] = output ? n->out : n->in;
    }
    return t->data;
}

static uint32_t data_of(struct tensor *t, uint32_t node, bool output)
{
    const struct graph__fnode *n = graph__fnode(t->f, node);
    return output ? n->out : n->in;
}

static bool differs(struct tensor *t, uint32_t node, bool output)
{
    return t->likes > 0 &&
           graph__data_differs(t->f, data_of(t, node, output), data_of_others(t, output), t->likes);
}

/* Merges the items that differ, or with `all` every item except `but`. */
static void merge_data(struct tensor *t, uint32_t node, bool output, bool all, const char *but)
{
    struct graph__item it;
    uint32_t data = data_of(t, node, output), at = 0, count;
    const uint32_t *others = data_of_others(t, output);
    while (t->f->bad == MS_OK && graph__next_item(t->f, data, &at, &it)) {
        if ((but == NULL || !ms_str_is(it.path, but)) &&
            graph__item_differs(t->f, &it, others, t->likes, all, t->items, &count))
            merge_item(t, node, data, count);
    }
}

static void tell_ranks(struct tensor *t, uint32_t node)
{
    ms_buf_clear(&t->text);
    ms_buf_puts(&t->text, t->f->rules->words->ranks);
    ms_buf_printf(&t->text, "[%lld", (long long)t->f->ranks[graph__fnode(t->f, node)->rank].rank);
    for (uint32_t i = 0; i < t->likes; i++)
        ms_buf_printf(&t->text, ", %lld",
                      (long long)t->f->ranks[graph__fnode(t->f, t->like[i])->rank].rank);
    ms_buf_puts(&t->text, "].");
    graph__add_info(t->f, node, ms_buf_slice(&t->text));
}

/* Sets the overflow level to the highest of all ranks. */
static void join_overflow(struct tensor *t, uint32_t node)
{
    struct graph__fnode *n = graph__fnode(t->f, node);
    for (uint32_t i = 0; t->f->rules->join_overflows && i < t->likes; i++) {
        uint8_t over = graph__fnode(t->f, t->like[i])->over;
        n->over = over > n->over ? over : n->over;
    }
}

static void merge_node(struct tensor *t, uint32_t node)
{
    find_others(t, node);
    join_overflow(t, node);
    bool in = differs(t, node, false), out = differs(t, node, true);
    if (!in && !out)
        return;
    tell_ranks(t, node);
    merge_data(t, node, false, false, NULL);
    merge_data(t, node, true, false, NULL);
}

/* ---- matrix products that are reduced ------------------------------------------------- */

static bool is_layer(struct ms_str name, const char *word, const char *direction)
{
    unsigned n = probe_name_parts(name);
    return n >= 4 && ms_str_is(probe_name_part(name, n - 2), direction) &&
           ms_str_find_str(probe_name_part(name, n - 3), ms_str_of(word)) >= 0;
}

static bool is_named(struct graph__forest *f, uint32_t node, const char *word)
{
    return ms_str_find_str(graph__fnode(f, node)->name, ms_str_of(word)) >= 0;
}

static bool is_reduction(struct graph__forest *f, uint32_t node)
{
    return is_named(f, node, "_reduce_scatter_base") ||
           is_named(f, node, "reduce_scatter_tensor") || is_named(f, node, "all_reduce");
}

/* Reads the i-th item of a node's data; false when there is none. */
static bool nth_item(struct tensor *t, uint32_t data, unsigned i, struct graph__item *it)
{
    uint32_t at = 0;
    bool there = graph__next_item(t->f, data, &at, it);
    for (; there && i > 0; i--)
        there = graph__next_item(t->f, data, &at, it);
    return there;
}

/* Tells whether the input of the reduction equals the product. */
static bool is_reduced_by(struct tensor *t, uint32_t reduction, const struct graph__item *product)
{
    struct graph__item in, out;
    const struct graph__fnode *n = graph__fnode(t->f, reduction);
    return nth_item(t, n->out, 0, &out) &&
           nth_item(t, n->in, is_named(t->f, reduction, "all_reduce") ? 0 : 1, &in) &&
           graph__is_same(product, &in, true);
}

static void take_reduced(struct tensor *t, uint32_t product, struct graph__item *made,
                         uint32_t reduction)
{
    struct graph__item out;
    const struct graph__fnode *r = graph__fnode(t->f, reduction);
    nth_item(t, r->out, 0, &out);
    find_others(t, product);
    if (differs(t, product, false)) {
        tell_ranks(t, product);
        merge_data(t, product, false, false, NULL);
    }
    memcpy(made->stat, out.stat, sizeof made->stat);
    graph__patch_item(t->f, graph__fnode(t->f, product)->out, made);
    ms_buf_clear(&t->text);
    ms_buf_puts(&t->text, t->f->rules->words->reduction);
    ms_buf_str(&t->text, r->name);
    ms_buf_putc(&t->text, '.');
    ms_buf_str(&t->text, out.path);
    graph__add_info(t->f, product, ms_buf_slice(&t->text));
}

/* Finds the first unused reduction among the children whose input is the product, and takes its
 * output. */
static void find_reduction(struct tensor *t, uint32_t module, uint32_t product, bool *taken)
{
    struct graph__item made;
    if (!nth_item(t, graph__fnode(t->f, product)->out, 0, &made))
        return;
    for (size_t i = 0; i < graph__fnode(t->f, module)->children.n; i++) {
        uint32_t child = graph__fnode(t->f, module)->children.p[i];
        if (taken[i] || !is_reduction(t->f, child) || !is_reduced_by(t, child, &made))
            continue;
        take_reduced(t, product, &made, child);
        taken[i] = true;
        return;
    }
}

static void merge_products(struct tensor *t, uint32_t node)
{
    const struct graph__fnode *n = graph__fnode(t->f, node);
    if (n->kind != GRAPH_MODULE || (!is_layer(n->name, "RowParallelLinear", "forward") &&
                                    !is_layer(n->name, "ColumnParallelLinear", "backward")))
        return;
    bool *taken = ms_calloc(n->children.n + 1, sizeof *taken);
    if (taken == NULL) {
        t->f->bad = MS_E_NOMEM;
        return;
    }
    for (size_t i = 0; i < graph__fnode(t->f, node)->children.n; i++) {
        uint32_t child = graph__fnode(t->f, node)->children.p[i];
        if (is_named(t->f, child, "matmul"))
            find_reduction(t, node, child, taken);
    }
    ms_free(taken);
}

/* ---- from a column-parallel to a row-parallel layer -------------------------------------- */

struct section {
    uint32_t first, last; /* first and last node of the section */
    MS_VEC(uint32_t) todo;
};

static bool is_product_in(struct tensor *t, uint32_t node, uint32_t layer)
{
    return is_named(t->f, node, "matmul") && graph__fnode(t->f, node)->parent == layer;
}

static bool has_mergeable(struct tensor *t, uint32_t data)
{
    struct graph__item it;
    uint32_t at = 0;
    while (graph__next_item(t->f, data, &at, &it)) {
        if (it.merges)
            return true;
    }
    return false;
}

/* Merges a node of a section. The input of the first node and the output of the last are whole
 * tensors. */
static void merge_section_node(struct tensor *t, const struct section *s, uint32_t node)
{
    const struct graph__fnode *n = graph__fnode(t->f, node);
    if (n->info.n != 0 || ms_str_starts(n->name, MS_STR("Distributed")))
        return;
    find_others(t, node);
    if (t->likes == 0 || (!has_mergeable(t, n->in) && !has_mergeable(t, n->out)))
        return;
    tell_ranks(t, node);
    bool first = node == s->first || is_product_in(t, node, s->first);
    bool last = !first && (node == s->last || is_product_in(t, node, s->last));
    merge_data(t, node, false, true, first ? "input.0" : last ? "parameters.bias" : NULL);
    if (!last)
        merge_data(t, node, true, true, NULL);
}

static void queue_node(struct tensor *t, struct section *s, uint32_t node)
{
    uint32_t *slot = ms_vec_push(&s->todo);
    if (slot == NULL)
        t->f->bad = MS_E_NOMEM;
    else
        *slot = node;
}

/* Finds the last row-parallel sibling after the node; *from and *to are the indices of both. */
static bool find_end(struct tensor *t, uint32_t node, size_t *from, size_t *to)
{
    const struct graph__fnode *up = graph__fnode(t->f, graph__fnode(t->f, node)->parent);
    struct ms_str name = graph__fnode(t->f, node)->name;
    bool begins = false, ends = false;
    for (size_t i = 0; i < up->children.n; i++) {
        struct ms_str other = graph__fnode(t->f, up->children.p[i])->name;
        if (ms_str_find_str(other, name) >= 0) {
            *from = i;
            begins = true;
        } else if (ms_str_find_str(other, MS_STR("RowParallelLinear")) >= 0) {
            *to = i;
            ends = true;
        }
    }
    return begins && ends && *to > *from;
}

static void merge_section(struct tensor *t, uint32_t node)
{
    const struct graph__fnode *n = graph__fnode(t->f, node);
    struct section s = {.first = node};
    size_t from = 0, to = 0;
    if (n->kind != GRAPH_MODULE || n->info.n != 0 || n->parent == GRAPH_NO ||
        !is_layer(n->name, "ColumnParallelLinear", "forward") || !find_end(t, node, &from, &to))
        return;
    const struct graph__fnode *up = graph__fnode(t->f, n->parent);
    s.last = up->children.p[to];
    for (size_t i = from; i <= to; i++)
        queue_node(t, &s, up->children.p[i]);
    while (s.todo.n > 0 && t->f->bad == MS_OK) {
        uint32_t at = s.todo.p[--s.todo.n];
        for (size_t i = graph__fnode(t->f, at)->children.n; i > 0; i--)
            queue_node(t, &s, graph__fnode(t->f, at)->children.p[i - 1]);
        merge_section_node(t, &s, at);
    }
    ms_vec_free(&s.todo);
}

/* ---- the whole tree ------------------------------------------------------ */

static bool is_merged_here(struct graph__forest *f, uint32_t node)
{
    const struct graph__fnode *n = graph__fnode(f, node);
    if (n->parent == GRAPH_NO || n->info.n != 0 || ms_str_starts(n->name, MS_STR("Distributed")))
        return false;
    const struct graph__fnode *up = graph__fnode(f, n->parent);
    return up->kind == GRAPH_MODULE && !ms_str_is(up->name, "clip_grad") &&
           !ms_str_is(up->name, "optimizer");
}

static void merge_ranks(struct tensor *t)
{
    for (size_t i = 0; i < t->main->list.n && t->f->bad == MS_OK; i++) {
        uint32_t node = t->main->list.p[i];
        if (node == GRAPH_NO || !is_merged_here(t->f, node))
            continue;
        merge_products(t, node);
        merge_node(t, node);
    }
    for (size_t i = 0; i < t->main->list.n && t->f->bad == MS_OK; i++) {
        if (t->main->list.p[i] != GRAPH_NO)
            merge_section(t, t->main->list.p[i]);
    }
}

void graph__merge_tensor(struct graph__forest *f, const uint32_t *ranks, uint32_t n,
                         const struct graph__groups *map)
{
    struct tensor t = {.f = f,
                       .main = &f->ranks[ranks[0]],
                       .ranks = ranks,
                       .n = n,
                       .map = map,
                       .text.max = 1 << 28};
    if (n < 2)
        return;
    t.like = ms_calloc(n, sizeof *t.like);
    t.data = ms_calloc(n, sizeof *t.data);
    t.items = ms_calloc(n + 1, sizeof *t.items);
    if (t.like != NULL && t.data != NULL && t.items != NULL)
        merge_ranks(&t);
    if (t.text.bad != MS_OK || t.like == NULL || t.data == NULL || t.items == NULL)
        f->bad = MS_E_NOMEM;
    ms_free(t.like);
    ms_free(t.data);
    ms_free(t.items);
    ms_buf_free(&t.text);
}
