/* SPDX-License-Identifier: MIT
 *
 * graph_tree: nodes of a tree, their children, and the order in which they are written.
 */
#include "compare/graph/build/graph_tree.h"

#include "probe/base/assert.h"

void graph__init(struct graph__tree *g, const struct graph_rules *rules)
{
    *g = (struct graph__tree){
        .rules = rules, .micro_steps = 1, .built.file.p = "", .stacks.file.p = ""};
}

void graph__close(struct graph__tree *g)
{
    cmp__side_free(&g->side);
    probe_tree_close(&g->built);
    probe_stacks_close(&g->stacks);
    ms_vec_free(&g->nodes);
    ms_vec_free(&g->order);
    ms_vec_free(&g->about);
    ms_free(g->dir);
    ms_free(g->data_dir);
    graph__init(g, g->rules);
}

/* ---- nodes ---------------------------------------------------------------- */

uint32_t graph__find(const struct graph__tree *g, struct ms_str name)
{
    uint32_t id = ms_map_get(&g->built.names, name);
    return id != GRAPH_NO && id < g->nodes.n && g->nodes.p[id].in_tree ? id : GRAPH_NO;
}

struct graph__node graph__blank_node(enum graph__kind kind)
{
    return (struct graph__node){.parent = GRAPH_NO,
                                .first_child = GRAPH_NO,
                                .last_child = GRAPH_NO,
                                .next = GRAPH_NO,
                                .op = GRAPH_NO,
                                .stack = GRAPH_STACK_EMPTY,
                                .match = GRAPH_NO,
                                .kind = (uint8_t)kind};
}

uint32_t graph__add(struct graph__tree *g, struct ms_str name, enum graph__kind kind)
{
    uint32_t id = ms_map_put_copy(&g->built.names, name, g->built.arena, NULL);
    if (id == GRAPH_NO || !ms_vec_reserve(&g->nodes, (size_t)id + 1))
        return GRAPH_NO;
    if (id < g->nodes.n)
        return id;
    g->nodes.p[g->nodes.n++] = graph__blank_node(kind);
    return id;
}

void graph__append(struct graph__tree *g, uint32_t parent, uint32_t child)
{
    struct graph__node *p = &g->nodes.p[parent];
    struct graph__node *c = &g->nodes.p[child];
    ms_assert(parent < g->nodes.n && child < g->nodes.n && parent != child);
    c->parent = parent;
    c->next = GRAPH_NO;
    c->in_tree = true;
    if (p->last_child == GRAPH_NO)
        p->first_child = child;
    else
        g->nodes.p[p->last_child].next = child;
    p->last_child = child;
}

uint32_t *graph__nodes_of_records(const struct graph__tree *g)
{
    size_t n = g->side.dump->nodes.n;
    uint32_t *list = ms_alloc((n + 1) * sizeof *list);
    if (list == NULL)
        return NULL;
    memset(list, 0xff, (n + 1) * sizeof *list);
    for (size_t i = 0; i < g->order.n; i++) {
        uint32_t node = g->order.p[i];
        uint32_t record = probe_node_find(g->side.dump, graph__name(g, node));
        if (record != GRAPH_NO)
            list[record] = node;
    }
    return list;
}

/* ---- order ------------------------------------------------------------------ */

static uint32_t deepest_first(const struct graph__tree *g, uint32_t n)
{
    while (g->nodes.p[n].first_child != GRAPH_NO)
        n = g->nodes.p[n].first_child;
    return n;
}

enum ms_rc graph__set_order(struct graph__tree *g, struct ms_err *err)
{
    ms_assert(g->order.n == 0 && g->root < g->nodes.n);
    if (!ms_vec_reserve(&g->order, g->nodes.n))
        return ms_no_memory(err);
    uint32_t n = deepest_first(g, g->root);
    for (;;) {
        g->order.p[g->order.n++] = n;
        if (n == g->root)
            return MS_OK;
        uint32_t next = g->nodes.p[n].next;
        n = next != GRAPH_NO ? deepest_first(g, next) : g->nodes.p[n].parent;
    }
}
