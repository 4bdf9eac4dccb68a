/* SPDX-License-Identifier: MIT
 *
 * pipeline: joins the ranks of a pipeline in the order of its stages.
 *
 * Layers have the same names on all ranks, so a layer whose inputs and outputs differ on
 * all ranks is a different layer of the model. Such layers of later ranks are marked
 * with position and rank, attached beside those of the first rank, sorted and numbered
 * consecutively. A node that contains such layers takes its output from the last rank;
 * its backward takes the input from there.
 */
#include "compare/graph/merge/pipeline.h"

#include "probe/base/scan.h"

#include <stdio.h>
#include <stdlib.h>

struct pipeline {
    struct graph__forest *f;
    struct graph__rank *main;
    const uint32_t *ranks; /* the main rank first */
    uint32_t n;
    uint32_t *like, *data; /* the current node on the other ranks, and its data */
    MS_VEC(struct frame {
        uint32_t node;
        uint32_t next; /* index of the next child */
    })
    stack;
    MS_VEC(uint32_t) list; /* children of the root to be merged */
};

/* ---- names ------------------------------------------------------------------- */

/* Finds the digits of N in "layers.N." or "layer.N.". */
static bool find_layer(struct ms_str name, uint32_t from, uint32_t *digits, uint32_t *end)
{
    const struct ms_str word = MS_STR("layer");
    for (;;) {
        int64_t at = ms_str_find_str(ms_str_sub(name, from, name.n), word);
        if (at < 0)
            return false;
        uint32_t i = from + (uint32_t)at + word.n;
        from = i;
        i += i < name.n && name.p[i] == 's';
        if (i >= name.n || name.p[i] != '.')
            continue;
        *digits = ++i;
        while (i < name.n && ms_is_digit(name.p[i]))
            i++;
        *end = i;
        if (i > *digits && i < name.n && name.p[i] == '.')
            return true;
    }
}

static bool has_layer(struct ms_str name)
{
    uint32_t digits, end;
    return find_layer(name, 0, &digits, &end);
}

/* Writes the name with `layer` in place of every layer number, or of the first one only. */
static void put_layer(struct ms_buf *out, struct ms_str name, uint32_t layer, bool all)
{
    uint32_t from = 0, digits, end;
    while (find_layer(name, from, &digits, &end)) {
        ms_buf_str(out, ms_str_sub(name, from, digits));
        ms_buf_printf(out, "%u", layer);
        from = end;
        if (!all)
            break;
    }
    ms_buf_str(out, ms_str_sub(name, from, name.n));
}

static bool is_forward(struct ms_str name)
{
    return ms_str_find_str(name, MS_STR(".forward.")) >= 0 || ms_str_ends(name, MS_STR(".forward"));
}

static struct ms_str plain_name(const struct graph__fnode *n)
{
    return n->marked ? ms_str_sub(n->name, 0, n->plain) : n->name;
}

/* ---- walking ------------------------------------------------------------------- */

static void push(struct pipeline *p, uint32_t node)
{
    struct frame *fr = ms_vec_push(&p->stack);
    if (fr == NULL)
        p->f->bad = MS_E_NOMEM;
    else
        *fr = (struct frame){node, 0};
}

/* Returns the next child of the node on top of the stack, or GRAPH_NO at the end. Children are read
 * when their turn comes, so nodes may change during the walk. */
static uint32_t next_child(struct pipeline *p)
{
    while (p->stack.n > 0 && p->f->bad == MS_OK) {
        struct frame *top = &p->stack.p[p->stack.n - 1];
        const struct graph__fnode *n = graph__fnode(p->f, top->node);
        if (top->next < n->children.n)
            return n->children.p[top->next++];
        p->stack.n--;
    }
    return GRAPH_NO;
}

/* ---- marks ---------------------------------------------------------------------- */

static void mark_one(struct pipeline *p, uint32_t node, uint32_t position)
{
    struct graph__fnode *n = graph__fnode(p->f, node);
    struct ms_buf *text = &p->f->text;
    ms_buf_clear(text);
    ms_buf_str(text, n->name);
    ms_buf_printf(text, "%%%u%%%lld", position, (long long)p->f->ranks[n->rank].rank);
    n->plain = n->name.n;
    n->position = position;
    n->marked = true;
    n->name = graph__copy(p->f, ms_buf_slice(text));
    if (graph__rank_get(p->main, n->name) == GRAPH_NO)
        graph__rank_put(p->f, p->main, node);
}

static uint32_t position_of(struct pipeline *p, uint32_t node)
{
    const struct graph__fnode *up = graph__fnode(p->f, graph__fnode(p->f, node)->parent);
    for (uint32_t i = 0; i < up->children.n; i++) {
        if (up->children.p[i] == node)
            return i;
    }
    return 0;
}

/* Adds a node of another rank and its subtree to the main rank, under names that contain
 * the rank. */
static void mark(struct pipeline *p, uint32_t node)
{
    size_t bottom = p->stack.n;
    mark_one(p, node, position_of(p, node));
    push(p, node);
    while (p->stack.n > bottom && p->f->bad == MS_OK) {
        struct frame *top = &p->stack.p[p->stack.n - 1];
        const struct graph__fnode *n = graph__fnode(p->f, top->node);
        if (top->next == n->children.n) {
            p->stack.n--;
            continue;
        }
        uint32_t child = n->children.p[top->next++];
        mark_one(p, child, top->next - 1);
        push(p, child);
    }
}

static void move_to(struct pipeline *p, uint32_t node, uint32_t parent)
{
    mark(p, node);
    graph__adopt(p->f, parent, node);
}

/* ---- merging --------------------------------------------------------------------- */

/* Finds the node of the same name on all other ranks; returns false when one has none. */
static bool find_others(struct pipeline *p, uint32_t node)
{
    for (uint32_t i = 1; i < p->n; i++) {
        const struct graph__rank *r = &p->f->ranks[p->ranks[i]];
        p->like[i - 1] = graph__rank_get(r, graph__fnode(p->f, node)->name);
        if (p->like[i - 1] == GRAPH_NO)
            return false;
    }
    return true;
}

static bool has_other_shape(struct pipeline *p, uint32_t node, bool output)
{
    for (uint32_t i = 0; i + 1 < p->n; i++) {
        const struct graph__fnode *other = graph__fnode(p->f, p->like[i]);
        p->data[i] = output ? other->out : other->in;
    }
    const struct graph__fnode *n = graph__fnode(p->f, node);
    return graph__data_differs(p->f, output ? n->out : n->in, p->data, p->n - 1);
}

/* Returns true when the forward call of this backward call was merged. Outputs of a backward may be
 * missing, so the forward decides for both. */
static bool forward_is_merged(struct pipeline *p, struct ms_str name)
{
    if (ms_str_find_str(name, MS_STR(".backward.")) < 0)
        return false;
    ms_buf_clear(&p->f->text);
    graph__replace(&p->f->text, name, MS_STR(".backward."), MS_STR(".forward."));
    uint32_t twin = graph__rank_get(p->main, ms_buf_slice(&p->f->text));
    return twin != GRAPH_NO && graph__fnode(p->f, twin)->merged;
}

static void stand_beside(struct pipeline *p, uint32_t node)
{
    graph__fnode(p->f, node)->merged = true;
    for (uint32_t i = 0; i + 1 < p->n; i++)
        move_to(p, p->like[i], graph__fnode(p->f, node)->parent);
}

static bool has_child_named(struct pipeline *p, uint32_t node, struct ms_str name)
{
    const struct graph__fnode *n = graph__fnode(p->f, node);
    for (size_t i = 0; i < n->children.n; i++) {
        if (ms_str_eq(graph__fnode(p->f, n->children.p[i])->name, name))
            return true;
    }
    return false;
}

/* Counts names of children, to find those that only one rank has. */
static bool count_children(struct pipeline *p, uint32_t node, struct ms_map *names,
                           uint32_t *counts, size_t cap)
{
    const struct graph__fnode *n = graph__fnode(p->f, node);
    for (size_t i = 0; i < n->children.n; i++) {
        uint32_t id = ms_map_put(names, graph__fnode(p->f, n->children.p[i])->name, NULL);
        if (id == GRAPH_NO || id >= cap)
            return false;
        counts[id]++;
    }
    return true;
}

/* Moves the children that only one other rank has below the node of the main rank. */
static void take_unique(struct pipeline *p, uint32_t node)
{
    struct graph__forest *f = p->f;
    struct ms_map names = {.mask = 0};
    size_t total = graph__fnode(f, node)->children.n + 1;
    for (uint32_t i = 0; i + 1 < p->n; i++)
        total += graph__fnode(f, p->like[i])->children.n;
    uint32_t *counts = ms_calloc(total, sizeof *counts);
    bool counted = counts != NULL && count_children(p, node, &names, counts, total);
    for (uint32_t i = 0; counted && i + 1 < p->n; i++)
        counted = count_children(p, p->like[i], &names, counts, total);
    if (!counted)
        f->bad = MS_E_NOMEM;
    for (uint32_t i = 0; counted && i + 1 < p->n; i++) {
        for (size_t k = 0; k < graph__fnode(f, p->like[i])->children.n; k++) {
            uint32_t child = graph__fnode(f, p->like[i])->children.p[k];
            uint32_t id = ms_map_get(&names, plain_name(graph__fnode(f, child)));
            if (id != GRAPH_NO && counts[id] == 1)
                move_to(p, child, node);
        }
    }
    ms_free(counts);
    ms_map_free(&names);
}

/* Merges a node with the same node of the other ranks. Returns true when its children are to be
 * merged as well. */
static bool merge_node(struct pipeline *p, uint32_t node)
{
    struct graph__forest *f = p->f;
    if (!find_others(p, node))
        return false;
    struct ms_str name = graph__fnode(f, node)->name;
    bool in = has_other_shape(p, node, false), out = has_other_shape(p, node, true);
    if ((in && out && has_layer(name)) || forward_is_merged(p, name)) {
        stand_beside(p, node);
        return false;
    }
    uint32_t last = p->like[p->n - 2];
    if (!in && out && ms_str_find_str(name, MS_STR(".forward.")) >= 0)
        graph__fnode(f, node)->out = graph__fnode(f, last)->out;
    else if (in && !out && ms_str_find_str(name, MS_STR(".backward.")) >= 0)
        graph__fnode(f, node)->in = graph__fnode(f, last)->in;
    take_unique(p, node);
    return true;
}

static void merge_below(struct pipeline *p, uint32_t top)
{
    p->stack.n = 0;
    if (!merge_node(p, top))
        return;
    push(p, top);
    for (uint32_t n; (n = next_child(p)) != GRAPH_NO;) {
        if (graph__fnode(p->f, n)->kind == GRAPH_MODULE && merge_node(p, n))
            push(p, n);
    }
}

/* ---- sorting and numbering ---------------------------------------------------------- */

struct spot {
    int64_t rank;
    uint32_t position, node, was;
};

static int by_rank(const void *a, const void *b)
{
    const struct spot *x = a;
    const struct spot *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->position != y->position)
        return x->position < y->position ? -1 : 1;
    return (x->was > y->was) - (x->was < y->was);
}

/* Gives the marked node and all nodes below it their final names. */
static void name_again(struct pipeline *p, uint32_t top)
{
    struct graph__forest *f = p->f;
    struct frame start = {top, 0}; /* next: number of the layer plus one */
    p->stack.n = 0;
    push(p, start.node);
    while (p->stack.n > 0 && f->bad == MS_OK) {
        struct frame fr = p->stack.p[--p->stack.n];
        struct graph__fnode *n = graph__fnode(f, fr.node);
        uint32_t layer = n->numbered ? n->layer + 1 : fr.next;
        if (graph__rank_get(p->main, n->name) == fr.node) {
            struct ms_str plain = plain_name(n);
            ms_buf_clear(&f->text);
            if (n->kind != GRAPH_MODULE)
                graph__put_ranked(&f->text, plain, f->ranks[n->rank].rank);
            else if (layer != 0)
                put_layer(&f->text, plain, layer - 1, true);
            else
                ms_buf_str(&f->text, plain);
            graph__rename(f, p->main, fr.node, ms_buf_slice(&f->text));
            n->marked = false;
        }
        for (size_t i = 0; i < n->children.n && f->bad == MS_OK; i++) {
            push(p, n->children.p[i]);
            if (f->bad == MS_OK)
                p->stack.p[p->stack.n - 1].next = layer;
        }
    }
}

/* Sorts the children. Forward: those of the main rank, then marked ones by rank. Backward: the
 * reverse. */
static void order_children(struct pipeline *p, struct graph__fnode *up, struct spot *spots,
                           uint32_t *list, bool forward)
{
    size_t plain = 0, marked = 0, n = up->children.n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t child = up->children.p[i];
        const struct graph__fnode *c = graph__fnode(p->f, child);
        int64_t rank = p->f->ranks[c->rank].rank;
        if (c->marked)
            spots[marked++] = (struct spot){forward ? rank : -rank, c->position, child, i};
        else
            list[plain++] = child;
    }
    qsort(spots, marked, sizeof *spots, by_rank);
    size_t at = forward ? plain : 0;
    if (!forward)
        memmove(list + marked, list, plain * sizeof *list);
    for (size_t i = 0; i < marked; i++)
        list[at + i] = spots[i].node;
    memcpy(up->children.p, list, n * sizeof *list);
}

/* Numbers layers in the order in which the forward runs them. */
static void number_layers(struct pipeline *p, const struct graph__fnode *up, bool forward)
{
    uint32_t layer = 0, count = (uint32_t)up->children.n;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t child = up->children.p[forward ? i : count - 1 - i];
        struct graph__fnode *c = graph__fnode(p->f, child);
        layer += has_layer(plain_name(c));
        if (c->marked && layer > 0) {
            c->layer = layer - 1;
            c->numbered = true;
        }
    }
}

/* Sorts and numbers the children of a node. Children after the first `had` get their final
 * names. */
static void sort_children(struct pipeline *p, uint32_t parent, bool forward, size_t had)
{
    struct graph__forest *f = p->f;
    struct graph__fnode *up = graph__fnode(f, parent);
    size_t n = up->children.n;
    struct spot *spots = ms_calloc(n, sizeof *spots);
    uint32_t *list = ms_calloc(n, sizeof *list);
    if (spots == NULL || list == NULL) {
        f->bad = MS_E_NOMEM;
    } else {
        order_children(p, up, spots, list, forward);
        number_layers(p, up, forward);
        for (size_t i = had; i < n; i++) {
            if (graph__fnode(f, list[i])->marked)
                name_again(p, list[i]);
        }
    }
    ms_free(spots);
    ms_free(list);
}

/* Sorts the children of every node that has a marked child. */
static void sort_below(struct pipeline *p, uint32_t top)
{
    MS_VEC(uint32_t) todo = {0};
    uint32_t *slot = ms_vec_push(&todo);
    if (slot != NULL)
        *slot = top;
    else
        p->f->bad = MS_E_NOMEM;
    while (todo.n > 0 && p->f->bad == MS_OK) {
        uint32_t node = todo.p[--todo.n];
        if (graph__fnode(p->f, node)->marked)
            sort_children(p, graph__fnode(p->f, node)->parent,
                          is_forward(plain_name(graph__fnode(p->f, node))), 0);
        const struct graph__fnode *n = graph__fnode(p->f, node);
        if (!ms_vec_reserve(&todo, todo.n + n->children.n)) {
            p->f->bad = MS_E_NOMEM;
            break;
        }
        for (size_t i = 0; i < n->children.n; i++)
            todo.p[todo.n++] = n->children.p[i];
    }
    ms_vec_free(&todo);
}

/* ---- the root ------------------------------------------------------------------------ */

static bool has_layers_at_root(struct pipeline *p)
{
    const struct graph__fnode *root = graph__fnode(p->f, p->main->root);
    for (size_t i = 0; i < root->children.n; i++) {
        if (has_layer(graph__fnode(p->f, root->children.p[i])->name))
            return true;
    }
    return false;
}

static bool is_collection_name(struct ms_str name)
{
    return ms_str_starts(name, MS_STR("Apis_Between_Modules"));
}

/* Moves children of the root that only other ranks have to the main rank. The official tool does so
 * only if layers are children of the root. */
static void take_root_children(struct pipeline *p)
{
    struct graph__forest *f = p->f;
    uint32_t root = p->main->root;
    size_t had = graph__fnode(f, root)->children.n;
    if (!f->rules->join_root_children && !has_layers_at_root(p))
        return;
    for (uint32_t i = 1; i < p->n; i++) {
        uint32_t other = f->ranks[p->ranks[i]].root;
        for (size_t k = 0; k < graph__fnode(f, other)->children.n; k++) {
            uint32_t child = graph__fnode(f, other)->children.p[k];
            struct ms_str name = graph__fnode(f, child)->name;
            if (!graph__fnode(f, child)->marked && !is_collection_name(name) &&
                !has_child_named(p, root, name))
                move_to(p, child, root);
        }
    }
    /* Sorted as forward whatever their direction: the first marked child belongs to a forward. */
    if (graph__fnode(f, root)->children.n != had && f->bad == MS_OK)
        sort_children(p, root, true, had);
}

static bool is_left_alone(struct ms_str name)
{
    return ms_str_is(name, "clip_grad") || ms_str_is(name, "optimizer");
}

/* Adds the children of the root that are not in the list yet, since merging adds some. */
static void list_children(struct pipeline *p)
{
    const struct graph__fnode *root = graph__fnode(p->f, p->main->root);
    for (size_t i = 0; i < root->children.n; i++) {
        struct graph__fnode *n = graph__fnode(p->f, root->children.p[i]);
        uint32_t *slot = n->seen ? NULL : ms_vec_push(&p->list);
        if (slot != NULL)
            *slot = root->children.p[i];
        else if (!n->seen)
            p->f->bad = MS_E_NOMEM;
        n->seen = true;
    }
}

static void merge_ranks(struct pipeline *p)
{
    struct graph__forest *f = p->f;
    list_children(p);
    for (size_t i = 0; i < p->list.n && f->bad == MS_OK; i++) {
        uint32_t n = p->list.p[i];
        size_t had = graph__fnode(f, p->main->root)->children.n;
        const struct graph__fnode *node = graph__fnode(f, n);
        if (node->kind != GRAPH_MODULE || is_left_alone(node->name))
            continue;
        merge_below(p, n);
        sort_below(p, n);
        if (graph__fnode(f, p->main->root)->children.n != had)
            list_children(p);
    }
    if (f->bad == MS_OK)
        take_root_children(p);
}

void graph__merge_pipeline(struct graph__forest *f, const uint32_t *ranks, uint32_t n)
{
    struct pipeline p = {.f = f, .main = &f->ranks[ranks[0]], .ranks = ranks, .n = n};
    ms_assert(n > 0);
    if (n == 1)
        return;
    p.like = ms_calloc(n, sizeof *p.like);
    p.data = ms_calloc(n, sizeof *p.data);
    if (p.like != NULL && p.data != NULL)
        merge_ranks(&p);
    else
        f->bad = MS_E_NOMEM;
    ms_free(p.like);
    ms_free(p.data);
    ms_vec_free(&p.stack);
    ms_vec_free(&p.list);
}

/* ---- chunks ---------------------------------------------------------------------------- */

struct chunks {
    struct graph__forest *f;
    struct graph__rank *r;
    uint32_t last; /* number of the last chunk */
    MS_VEC(uint32_t) todo;
    MS_VEC(uint32_t) holders; /* nodes that hold layers */
    MS_VEC(uint32_t) list;
};

static void queue_node(struct chunks *c, uint32_t node)
{
    uint32_t *slot = ms_vec_push(&c->todo);
    if (slot == NULL)
        c->f->bad = MS_E_NOMEM;
    else
        *slot = node;
}

static void later_children(struct chunks *c, uint32_t node)
{
    const struct graph__fnode *n = graph__fnode(c->f, node);
    for (size_t i = n->children.n; i > 0; i--)
        queue_node(c, n->children.p[i - 1]);
}

static bool is_chunk(struct ms_str name, uint32_t number)
{
    char text[16];
    snprintf(text, sizeof text, "%u", number);
    return ms_str_is(probe_name_part(name, 1), text);
}

static void start_at(struct chunks *c, uint32_t a, uint32_t b)
{
    const struct graph__fnode *root = graph__fnode(c->f, c->r->root);
    c->todo.n = 0;
    for (size_t i = root->children.n; i > 0; i--) {
        struct ms_str name = graph__fnode(c->f, root->children.p[i - 1])->name;
        if (is_chunk(name, a) || is_chunk(name, b))
            queue_node(c, root->children.p[i - 1]);
    }
}

static uint32_t in_chunk(struct chunks *c, uint32_t node, uint32_t chunk)
{
    ms_buf_clear(&c->f->text);
    graph__put_chunk(&c->f->text, graph__fnode(c->f, node)->name, chunk);
    return graph__rank_get(c->r, ms_buf_slice(&c->f->text));
}

/* Replaces the outputs of chunk 0 by those of the last chunk, and the inputs of its backward. */
static void take_ends(struct chunks *c)
{
    struct graph__forest *f = c->f;
    start_at(c, 0, c->last);
    while (c->todo.n > 0 && f->bad == MS_OK) {
        uint32_t node = c->todo.p[--c->todo.n];
        struct graph__fnode *n = graph__fnode(f, node);
        if (n->merged || n->numbered || n->kind != GRAPH_MODULE)
            continue;
        later_children(c, node);
        uint32_t end = in_chunk(c, node, c->last);
        if (end == GRAPH_NO)
            continue;
        if (probe_name_is_call_of(n->name, MS_STR("forward")))
            n->out = graph__fnode(f, end)->out;
        else
            n->in = graph__fnode(f, end)->in;
    }
}

static bool is_holder(const struct chunks *c, uint32_t node)
{
    for (size_t i = 0; i < c->holders.n; i++) {
        if (c->holders.p[i] == node)
            return true;
    }
    return false;
}

static void find_holders(struct chunks *c)
{
    start_at(c, 0, 0);
    while (c->todo.n > 0 && c->f->bad == MS_OK) {
        uint32_t node = c->todo.p[--c->todo.n];
        const struct graph__fnode *n = graph__fnode(c->f, node);
        if (n->merged || (n->numbered && !is_holder(c, n->parent))) {
            uint32_t *slot = is_holder(c, n->parent) ? NULL : ms_vec_push(&c->holders);
            if (slot != NULL)
                *slot = n->parent;
            continue;
        }
        later_children(c, node);
    }
}

static void drop_child(struct graph__forest *f, uint32_t parent, uint32_t child)
{
    struct graph__fnode *p = graph__fnode(f, parent);
    size_t kept = 0;
    for (size_t i = 0; i < p->children.n; i++) {
        if (p->children.p[i] != child)
            p->children.p[kept++] = p->children.p[i];
    }
    p->children.n = kept;
}

/* Moves nodes of a chunk that are not layers, such as a final norm, to the counterpart of their
 * parent in chunk 0. The official tool loses them. */
static void save_rest(struct chunks *c, uint32_t node, uint32_t skip)
{
    struct graph__forest *f = c->f;
    uint32_t home = in_chunk(c, node, 0);
    if (home == GRAPH_NO || home == node || !f->rules->keep_chunk_rest)
        return;
    for (size_t i = 0; i < graph__fnode(f, node)->children.n; i++) {
        uint32_t child = graph__fnode(f, node)->children.p[i];
        uint32_t like = in_chunk(c, child, 0);
        if (child == skip || (like != GRAPH_NO && like != child))
            continue;
        graph__adopt(f, home, child);
        if (like == GRAPH_NO) { /* f->text still holds the name in chunk 0 */
            graph__rename(f, c->r, child, ms_buf_slice(&f->text));
        }
    }
}

/* Removes the modules above the chunk's layers, up to the child of the root. */
static void drop_ancestors(struct chunks *c, uint32_t node)
{
    struct graph__forest *f = c->f;
    uint32_t up = graph__fnode(f, node)->parent, below = node;
    while (up != c->r->root && up != GRAPH_NO) {
        save_rest(c, up, below);
        graph__rank_drop(c->r, graph__fnode(f, up)->name);
        below = up;
        up = graph__fnode(f, up)->parent;
    }
    if (below != node || f->rules->keep_chunk_rest)
        drop_child(f, c->r->root, below);
}

/* Moves the layers of `from` to the holder: after its layers in forward, before them in
 * backward. */
static void bring_layers(struct chunks *c, uint32_t holder, uint32_t from, bool forward)
{
    struct graph__forest *f = c->f;
    struct graph__fnode *h = graph__fnode(f, holder), *s = graph__fnode(f, from);
    size_t had = h->children.n, n = s->children.n;
    if (!ms_vec_reserve(&h->children, had + n)) {
        f->bad = MS_E_NOMEM;
        return;
    }
    if (!forward)
        memmove(h->children.p + n, h->children.p, had * sizeof *h->children.p);
    if (n > 0)
        memcpy(h->children.p + (forward ? had : 0), s->children.p, n * sizeof *s->children.p);
    h->children.n = had + n;
    for (size_t i = 0; i < n; i++)
        graph__fnode(f, s->children.p[i])->parent = holder;
    s->children.n = 0;
    drop_ancestors(c, from);
}

/* Renames the modules below a moved layer with the layer's new number. */
static void name_below(struct chunks *c, uint32_t top, struct ms_str prefix)
{
    struct graph__forest *f = c->f;
    c->todo.n = 0;
    later_children(c, top);
    while (c->todo.n > 0 && f->bad == MS_OK) {
        uint32_t node = c->todo.p[--c->todo.n], digits, end;
        struct graph__fnode *n = graph__fnode(f, node);
        if (n->kind != GRAPH_MODULE)
            continue;
        later_children(c, node);
        ms_buf_clear(&f->text);
        if (find_layer(n->name, 0, &digits, &end)) {
            ms_buf_str(&f->text, prefix);
            ms_buf_str(&f->text, ms_str_sub(n->name, end + 1, n->name.n));
        } else {
            graph__put_chunk(&f->text, n->name, 0);
        }
        graph__rename(f, c->r, node, ms_buf_slice(&f->text));
    }
}

/* Renames a node that came from another chunk as a node of chunk 0. */
static void name_moved(struct chunks *c, uint32_t node, bool has_number, uint32_t layer)
{
    struct graph__forest *f = c->f;
    struct ms_str name = graph__fnode(f, node)->name, prefix = MS_STR("");
    struct ms_buf number = {.max = 1 << 20};
    uint32_t digits, end;
    if (has_number)
        put_layer(&number, name, layer, false);
    else
        ms_buf_str(&number, name);
    ms_buf_clear(&f->text);
    graph__put_chunk(&f->text, ms_buf_slice(&number), 0);
    struct ms_str whole = graph__copy(f, ms_buf_slice(&f->text));
    if (find_layer(whole, 0, &digits, &end))
        prefix = ms_str_sub(whole, 0, end + 1);
    graph__rename(f, c->r, node, whole);
    name_below(c, node, prefix);
    ms_buf_free(&number);
}

static void number_again(struct chunks *c, uint32_t holder, bool forward)
{
    struct graph__forest *f = c->f;
    size_t n = graph__fnode(f, holder)->children.n;
    uint32_t layers = 0;
    c->list.n = 0;
    if (!ms_vec_reserve(&c->list, n)) {
        f->bad = MS_E_NOMEM;
        return;
    }
    for (size_t i = 0; i < n; i++)
        c->list.p[c->list.n++] = graph__fnode(f, holder)->children.p[forward ? i : n - 1 - i];
    for (size_t i = 0; i < n && f->bad == MS_OK; i++) {
        struct ms_str name = graph__fnode(f, c->list.p[i])->name;
        bool layer = has_layer(name);
        layers += layer;
        if (!is_chunk(name, 0) && probe_name_parts(name) > 1)
            name_moved(c, c->list.p[i], layer, layers - layer);
    }
}

void graph__merge_chunks(struct graph__forest *f, uint32_t rank)
{
    struct chunks c = {.f = f, .r = &f->ranks[rank], .last = f->param->vpp - 1};
    ms_assert(rank < f->n && f->param->vpp > 0);
    take_ends(&c);
    find_holders(&c);
    for (size_t i = 0; i < c.holders.n && f->bad == MS_OK; i++) {
        uint32_t holder = c.holders.p[i];
        bool forward = probe_name_is_call_of(graph__fnode(f, holder)->name, MS_STR("forward"));
        for (uint32_t k = 1; k <= c.last; k++) {
            uint32_t from = in_chunk(&c, holder, k);
            if (from != GRAPH_NO && from != holder)
                bring_layers(&c, holder, from, forward);
        }
        number_again(&c, holder, forward);
    }
    ms_vec_free(&c.todo);
    ms_vec_free(&c.holders);
    ms_vec_free(&c.list);
}
