/* SPDX-License-Identifier: MIT
 *
 * graph_align: nodes matched by the automatic alignment.
 *
 * Nodes with a record go where the alignment puts them.  The others, collections and
 * modules that were not dumped, go to what holds the partners of their children.  A
 * target node may stand for several of the golden side and the other way round: each
 * is linked to its best partner.
 */
#include "compare/graph_int.h"

/* ---- nodes ------------------------------------------------------------------ */

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

static void match_records(struct graph__pair *p, const uint32_t *target, const uint32_t *golden)
{
    const struct cmp_align_pair *pairs;
    for (uint32_t i = 0; i < p->t.side.dump->nodes.n; i++) {
        size_t n = cmp_align_of(p->cmp.al, i, &pairs);
        if (n > 0 && target[i] != GRAPH_NO)
            p->t.nodes.p[target[i]].match = golden[pairs[0].golden];
    }
    for (uint32_t i = 0; i < p->b.side.dump->nodes.n; i++) {
        uint32_t best = cmp_align_of_golden(p->cmp.al, i);
        if (best != CMP_ALIGN_NONE && golden[i] != GRAPH_NO)
            p->b.nodes.p[golden[i]].match = target[best];
    }
}

/* Nodes that run in place of a pair's node and are not linked themselves. */
static void note_parts(struct graph__pair *p, const uint32_t *target, const uint32_t *golden)
{
    size_t n;
    const struct cmp_align_pair *pairs = cmp_align_pairs(p->cmp.al, &n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t *parts;
        size_t count = cmp_align_members(p->cmp.al, &pairs[i], false, &parts);
        for (size_t k = 0; k < count; k++) {
            if (target[parts[k]] != GRAPH_NO)
                p->part_of[0][target[parts[k]]] = golden[pairs[i].golden];
        }
        count = cmp_align_members(p->cmp.al, &pairs[i], true, &parts);
        for (size_t k = 0; k < count; k++) {
            if (golden[parts[k]] != GRAPH_NO)
                p->part_of[1][golden[parts[k]]] = target[pairs[i].target];
        }
    }
}

static bool make_parts(struct graph__pair *p)
{
    for (unsigned side = 0; side < 2; side++) {
        size_t bytes = (side == 0 ? p->t.nodes.n : p->b.nodes.n) * sizeof(uint32_t);
        p->part_of[side] = ms_alloc(bytes + 1);
        if (p->part_of[side] == NULL)
            return false;
        memset(p->part_of[side], 0xff, bytes);
    }
    return true;
}

/* What holds the partner of the first child that has one, if nobody has taken it. */
static uint32_t home_of_children(const struct graph__tree *g, const struct graph__tree *other,
                                 uint32_t node)
{
    for (uint32_t c = g->nodes.p[node].first_child; c != GRAPH_NO; c = g->nodes.p[c].next) {
        uint32_t partner = g->nodes.p[c].match;
        uint32_t home = partner != GRAPH_NO ? other->nodes.p[partner].parent : GRAPH_NO;
        if (home != GRAPH_NO && home != other->root && other->nodes.p[home].match == GRAPH_NO &&
            other->nodes.p[home].kind == g->nodes.p[node].kind)
            return home;
    }
    return GRAPH_NO;
}

/* Children come before their parents. */
static void match_the_rest(struct graph__pair *p)
{
    struct graph__tree *t = &p->t, *b = &p->b;
    for (size_t i = 0; i < t->order.n; i++) {
        uint32_t node = t->order.p[i];
        if (node == t->root || t->nodes.p[node].match != GRAPH_NO ||
            probe_node_find(t->side.dump, graph__name(t, node)) != GRAPH_NO)
            continue;
        uint32_t home = home_of_children(t, b, node);
        if (home == GRAPH_NO)
            continue;
        t->nodes.p[node].match = home;
        b->nodes.p[home].match = node;
    }
    t->nodes.p[t->root].match = b->root;
    b->nodes.p[b->root].match = t->root;
}

static enum ms_rc match_all(struct graph__pair *p, struct ms_err *err)
{
    uint32_t *target = graph__nodes_of_records(&p->t), *golden = graph__nodes_of_records(&p->b);
    bool done = target != NULL && golden != NULL && make_parts(p);
    if (done) {
        match_records(p, target, golden);
        note_parts(p, target, golden);
        match_the_rest(p);
    }
    ms_free(target);
    ms_free(golden);
    return done ? MS_OK : ms_no_memory(err);
}

enum ms_rc graph__match_aligned(struct graph__pair *p, struct ms_pool *pool, struct ms_err *err)
{
    struct cmp_align_input target = {p->t.side.dump, &p->t.built};
    struct cmp_align_input golden = {p->b.side.dump, &p->b.built};
    MS_TRY(cmp_align_new(&p->cmp.al, &target, &golden, NULL, 0, pool, err));
    return match_all(p, err);
}

/* ---- what is told about a node ------------------------------------------------ */

/* Does its parent's partner hold its partner? */
static bool is_in_place(const struct graph__tree *g, const struct graph__tree *other, uint32_t node)
{
    uint32_t partner = g->nodes.p[node].match, up = g->nodes.p[node].parent;
    return up == GRAPH_NO || other->nodes.p[partner].parent == g->nodes.p[up].match;
}

struct graph__fate graph__fate_of(const struct graph__pair *p, bool golden, uint32_t node)
{
    const struct graph__tree *g = golden ? &p->b : &p->t, *other = golden ? &p->t : &p->b;
    uint32_t partner = g->nodes.p[node].match;
    struct graph__fate f = {.kind = golden ? GRAPH_FATE_MISSING : GRAPH_FATE_EXTRA,
                            .partner = partner,
                            .how = MS_STR("")};
    if (partner == GRAPH_NO && p->part_of[golden] != NULL) {
        f.partner = p->part_of[golden][node];
        f.kind = f.partner != GRAPH_NO ? GRAPH_FATE_PART : f.kind;
    }
    if (partner == GRAPH_NO)
        return f;
    bool same = ms_str_eq(graph__name(g, node), graph__name(other, partner));
    f.kind = is_in_place(g, other, node) ? GRAPH_FATE_MATCHED : GRAPH_FATE_MOVED;
    f.how = same ? MS_STR("name") : p->cmp.al != NULL ? MS_STR("children") : MS_STR("mapping");
    f.confidence = 1;
    f.plain = same && f.kind == GRAPH_FATE_MATCHED && p->cmp.al == NULL;
    if (p->cmp.al == NULL)
        return f;
    uint32_t target = probe_node_find(p->t.side.dump, graph__name(&p->t, golden ? partner : node));
    uint32_t record = probe_node_find(p->b.side.dump, graph__name(&p->b, golden ? node : partner));
    const struct cmp_align_pair *pairs;
    size_t n = target != GRAPH_NO ? cmp_align_of(p->cmp.al, target, &pairs) : 0;
    for (size_t i = 0; i < n; i++) {
        if (pairs[i].golden != record)
            continue;
        f.how = ms_str_of(cmp_align_how_names[pairs[i].how]);
        f.confidence = (double)pairs[i].confidence;
    }
    return f;
}

/* ---- rows ------------------------------------------------------------------------ */

/* By row of the golden dump: its place in the order of the side. */
static uint32_t *places_of_rows(const struct cmp__side *s)
{
    size_t n = s->dump->rows.n;
    uint32_t *list = ms_alloc((n + 1) * sizeof *list);
    if (list == NULL)
        return NULL;
    memset(list, 0xff, (n + 1) * sizeof *list);
    for (uint32_t i = 0; i < s->order.n; i++)
        list[s->order.p[i]] = i;
    return list;
}

enum ms_rc graph__row_pairs_init(struct graph__row_pairs *r, const struct graph__pair *p,
                                 struct ms_err *err)
{
    *r = (struct graph__row_pairs){.p = p};
    if (p->cmp.al == NULL)
        return MS_OK;
    r->place = places_of_rows(&p->b.side);
    r->partner = ms_alloc((p->t.side.dump->rows.n + 1) * sizeof *r->partner);
    return r->place != NULL && r->partner != NULL ? MS_OK : ms_no_memory(err);
}

void graph__row_pairs_free(struct graph__row_pairs *r)
{
    ms_free(r->place);
    ms_free(r->partner);
    ms_vec_free(&r->rows);
}

static const struct cmp_align_pair *pair_of(const struct cmp_align *al, uint32_t t, uint32_t b)
{
    const struct cmp_align_pair *pairs;
    size_t n = cmp_align_of(al, t, &pairs);
    for (size_t i = 0; i < n; i++) {
        if (pairs[i].golden == b)
            return &pairs[i];
    }
    return NULL;
}

enum ms_rc graph__row_pairs_of(struct graph__row_pairs *r, const struct cmp__op *t,
                               const struct cmp__op *b, bool *known, struct ms_err *err)
{
    const struct cmp_align *al = r->p->cmp.al;
    const struct cmp_align_pair *pair =
        al != NULL && b != NULL ? pair_of(al, t->node, b->node) : NULL;
    *known = pair != NULL;
    if (pair == NULL)
        return MS_OK;
    if (!ms_vec_reserve(&r->rows, (size_t)t->n + b->n + 1))
        return ms_no_memory(err);
    size_t n = cmp_align_rows(al, pair, r->rows.p);
    for (size_t i = 0; i < n; i++) {
        if (r->rows.p[i].target != CMP_ALIGN_NONE)
            r->partner[r->rows.p[i].target] =
                r->rows.p[i].golden != CMP_ALIGN_NONE ? r->place[r->rows.p[i].golden] : GRAPH_NO;
    }
    return MS_OK;
}
