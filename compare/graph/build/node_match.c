/* SPDX-License-Identifier: MIT
 *
 * node_match: finds the golden partner of each target node.
 *
 * Parents are matched before their children, by walking the order of the tree from its
 * end.
 */
#include "compare/graph/build/node_match.h"

#include "compare/pair/layer.h"
#include "probe/base/assert.h"
#include "probe/base/scan.h"

enum { NAME_MAX_BYTES = 1 << 20 };

void graph__pair_init(struct graph__pair *p, bool dual)
{
    *p = (struct graph__pair){.dual = dual};
    graph__init(&p->t, NULL);
    graph__init(&p->b, NULL);
}

void graph__pair_close(struct graph__pair *p)
{
    ms_vec_free(&p->rows.pairs);
    ms_vec_free(&p->measured.figures);
    cmp__problems_free(&p->rows.problems);
    cmp_align_free(p->rows.al);
    ms_free(p->part_of[0]);
    ms_free(p->part_of[1]);
    ms_vec_free(&p->first_pair);
    graph__close(&p->t);
    graph__close(&p->b);
}

static void pair_up(struct graph__tree *t, uint32_t n, struct graph__tree *b, uint32_t m)
{
    ms_assert(n < t->nodes.n && m < b->nodes.n);
    t->nodes.p[n].match = m;
    b->nodes.p[m].match = n;
}

/* Pairs nodes of the same name whose parents are paired. */
void graph__match_same(struct graph__tree *t, struct graph__tree *b)
{
    ms_assert(t->order.n > 0); /* at least the root, which is last */
    pair_up(t, t->root, b, b->root);
    for (size_t i = t->order.n - 1; i-- > 0;) {
        uint32_t n = t->order.p[i];
        uint32_t m = graph__find(b, graph__name(t, n));
        uint32_t above = t->nodes.p[t->nodes.p[n].parent].match;
        if (m != GRAPH_NO && above != GRAPH_NO && b->nodes.p[m].parent == above)
            pair_up(t, n, b, m);
    }
}

/* Pairs nodes of one name at different places: below an inserted module all nodes have other
 * ancestors than on the other side. */
void graph__match_moved(struct graph__tree *t, struct graph__tree *b)
{
    for (size_t i = t->order.n; i-- > 0;) {
        uint32_t n = t->order.p[i];
        if (t->nodes.p[n].match != GRAPH_NO)
            continue;
        uint32_t m = graph__find(b, graph__name(t, n));
        if (m != GRAPH_NO && b->nodes.p[m].match == GRAPH_NO &&
            b->nodes.p[m].kind == t->nodes.p[n].kind)
            pair_up(t, n, b, m);
    }
}

/* ---- fuzzy ------------------------------------------------------------------ */

/* Appends the name without numbers between dots and without "_rank<digits>". */
static void put_reduced(struct ms_buf *out, struct ms_str name)
{
    const struct ms_str rank = MS_STR("_rank");
    for (uint32_t i = 0; i < name.n;) {
        struct ms_str rest = ms_str_sub(name, i, name.n);
        uint32_t skip = name.p[i] == '.' ? 1 : ms_str_starts(rest, rank) ? rank.n : 0;
        uint32_t digits = skip;
        while (skip != 0 && digits < rest.n && ms_is_digit(rest.p[digits]))
            digits++;
        bool number = digits > skip;
        if (number && skip == 1 && digits < rest.n && rest.p[digits] == '.') {
            ms_buf_putc(out, '.');
            i += digits + 1;
        } else if (number && skip > 1) {
            i += digits;
        } else {
            ms_buf_putc(out, name.p[i++]);
        }
    }
}

/* Index of the golden operators below a pair of modules, by reduced name and occurrence. */
struct meeting {
    struct ms_map names;    /* keys: reduced name and occurrence */
    MS_VEC(uint32_t) nodes; /* golden nodes by key */
    struct ms_map counted;  /* reduced names seen so far */
    MS_VEC(uint32_t) counts;
    struct ms_arena *arena;
    struct ms_buf name;
};

/* Writes the key of the next operator of this name to m->name, valid until the next call. */
static enum ms_rc next_key(struct meeting *m, struct ms_str name, struct ms_err *err)
{
    bool added;
    ms_buf_clear(&m->name);
    put_reduced(&m->name, name);
    MS_TRY(ms_buf_check(&m->name, err));
    uint32_t id = ms_map_put_copy(&m->counted, ms_buf_slice(&m->name), m->arena, &added);
    uint32_t *slot = id == GRAPH_NO ? NULL : added ? ms_vec_push(&m->counts) : &m->counts.p[id];
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = added ? 0 : *slot + 1;
    ms_buf_printf(&m->name, "/%u", *slot);
    return ms_buf_check(&m->name, err);
}

static enum ms_rc list_golden(struct meeting *m, const struct graph__tree *b, uint32_t module,
                              struct ms_err *err)
{
    for (uint32_t n = b->nodes.p[module].first_child; n != GRAPH_NO; n = b->nodes.p[n].next) {
        if (b->nodes.p[n].kind != GRAPH_API)
            continue;
        MS_TRY(next_key(m, graph__name(b, n), err));
        uint32_t *slot = ms_vec_push(&m->nodes);
        if (slot == NULL ||
            ms_map_put_copy(&m->names, ms_buf_slice(&m->name), m->arena, NULL) == GRAPH_NO)
            return ms_no_memory(err);
        *slot = n;
    }
    return MS_OK;
}

static void forget(struct meeting *m)
{
    ms_map_free(&m->names);
    ms_map_free(&m->counted);
    m->nodes.n = m->counts.n = 0;
}

static enum ms_rc pair_children(struct meeting *m, struct graph__tree *t, uint32_t module,
                                struct graph__tree *b, struct ms_err *err)
{
    forget(m);
    MS_TRY(list_golden(m, b, t->nodes.p[module].match, err));
    ms_map_free(&m->counted);
    m->counts.n = 0;
    for (uint32_t n = t->nodes.p[module].first_child; n != GRAPH_NO; n = t->nodes.p[n].next) {
        if (t->nodes.p[n].kind != GRAPH_API)
            continue;
        MS_TRY(next_key(m, graph__name(t, n), err));
        uint32_t id = ms_map_get(&m->names, ms_buf_slice(&m->name));
        if (id != GRAPH_NO)
            pair_up(t, n, b, m->nodes.p[id]);
    }
    return MS_OK;
}

static enum ms_rc pair_all(struct meeting *m, struct graph__tree *t, struct graph__tree *b,
                           struct ms_err *err)
{
    for (size_t i = t->order.n; i-- > 0;) {
        uint32_t n = t->order.p[i];
        uint32_t found = graph__find(b, graph__name(t, n));
        if (t->nodes.p[n].kind == GRAPH_API || found == GRAPH_NO)
            continue;
        pair_up(t, n, b, found);
        MS_TRY(pair_children(m, t, n, b, err));
    }
    return MS_OK;
}

enum ms_rc graph__match_fuzzy(struct graph__tree *t, struct graph__tree *b, struct ms_err *err)
{
    struct meeting m = {.name.max = NAME_MAX_BYTES, .arena = ms_arena_new(SIZE_MAX)};
    enum ms_rc rc = m.arena != NULL ? pair_all(&m, t, b, err) : ms_no_memory(err);
    forget(&m);
    ms_vec_free(&m.nodes);
    ms_vec_free(&m.counts);
    ms_buf_free(&m.name);
    ms_arena_free(m.arena);
    return rc;
}

/* ---- mapped ------------------------------------------------------------------- */

/* Pairs nodes by name; `names` maps target names to golden names where they differ. */
static void match_mapped(struct graph__tree *t, struct graph__tree *b,
                         const struct cmp__pairs *names)
{
    for (size_t i = t->order.n; i-- > 0;) {
        uint32_t n = t->order.p[i];
        struct ms_str name = graph__name(t, n);
        uint32_t mapped = ms_map_get(&names->keys, name);
        uint32_t m = graph__find(b, mapped != GRAPH_NO ? names->values.p[mapped] : name);
        if (m != GRAPH_NO)
            pair_up(t, n, b, m);
    }
}

/* Indexes the rows of the golden side by name. */
static enum ms_rc index_rows(const struct cmp__side *s, struct ms_map *rows, struct ms_arena *arena,
                             struct ms_err *err)
{
    struct ms_buf name = {.max = 1 << 20};
    enum ms_rc rc = MS_OK;
    for (uint32_t i = 0; i < s->order.n && rc == MS_OK; i++) {
        bool added;
        ms_buf_clear(&name);
        cmp__side_name(s, i, false, &name);
        ms_buf_putc(&name, '#'); /* repeated until unique: the key's number is the row's index */
        uint32_t id = ms_map_put_copy(rows, ms_buf_slice(&name), arena, &added);
        for (; id != GRAPH_NO && !added;
             id = ms_map_put_copy(rows, ms_buf_slice(&name), arena, &added))
            ms_buf_putc(&name, '#');
        rc = id != GRAPH_NO ? ms_buf_check(&name, err) : ms_no_memory(err);
    }
    ms_buf_free(&name);
    return rc;
}

/* Maps the name of a node. The layer mapping pairs rows; the partner of a node is the operator of
 * the first paired row. */
static enum ms_rc name_node(struct graph__pair *p, const struct cmp__pairs *rows,
                            const struct ms_map *golden, const struct cmp__op *op,
                            struct ms_buf *name, struct cmp__pairs *names, struct ms_err *err)
{
    for (uint32_t i = op->first; i < op->first + op->n; i++) {
        ms_buf_clear(name);
        cmp__side_name(&p->t.side, i, false, name);
        uint32_t at = ms_map_get(&rows->keys, ms_buf_slice(name));
        if (at == GRAPH_NO)
            continue;
        ms_buf_clear(name);
        ms_buf_str(name, rows->values.p[at]);
        ms_buf_putc(name, '#');
        uint32_t row = ms_map_get(golden, ms_buf_slice(name));
        if (row == GRAPH_NO)
            continue;
        const struct cmp__side *b = &p->b.side;
        bool added;
        uint32_t id = ms_map_put(&names->keys, probe_node_name(p->t.side.dump, op->node), &added);
        struct ms_str *slot = id != GRAPH_NO && added ? ms_vec_push(&names->values) : NULL;
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = probe_node_name(b->dump, b->ops.p[b->op_of.p[row]].node);
        return ms_buf_check(name, err);
    }
    return MS_OK;
}

static enum ms_rc name_nodes(struct graph__pair *p, const struct cmp__pairs *rows,
                             struct ms_arena *arena, struct cmp__pairs *names, struct ms_err *err)
{
    struct ms_map golden = {.mask = 0};
    struct ms_buf name = {.max = 1 << 20};
    enum ms_rc rc = index_rows(&p->b.side, &golden, arena, err);
    for (size_t i = 0; i < p->t.side.ops.n && rc == MS_OK; i++)
        rc = name_node(p, rows, &golden, &p->t.side.ops.p[i], &name, names, err);
    ms_map_free(&golden);
    ms_buf_free(&name);
    return rc;
}

/* Fills `names` with the golden names of target nodes. */
static enum ms_rc map_layers(struct graph__pair *p, struct cmp__pairs *names, struct ms_err *err)
{
    struct cmp__pairs rows = {.arena = NULL};
    struct cmp_rows *c = &p->rows;
    *names = (struct cmp__pairs){.arena = NULL};
    c->set = &p->set;
    c->t = p->t.side;
    c->b = p->b.side;
    c->stacks = p->t.stacks;
    c->has_stack = true;
    struct ms_arena *arena = ms_arena_new(SIZE_MAX); /* memory for names of rows */
    enum ms_rc rc = arena != NULL ? cmp__layer_pairs(c, &rows, err) : ms_no_memory(err);
    if (rc == MS_OK)
        rc = name_nodes(p, &rows, arena, names, err);
    c->has_stack = false;
    ms_arena_free(arena);
    cmp__pairs_free(&rows);
    return rc;
}

enum ms_rc graph__match_layers(struct graph__pair *p, struct ms_err *err)
{
    struct cmp__pairs names;
    enum ms_rc rc = map_layers(p, &names, err);
    if (rc == MS_OK)
        match_mapped(&p->t, &p->b, &names);
    ms_map_free(&names.keys);
    ms_vec_free(&names.values);
    return rc;
}

/* ---- by the alignment ---------------------------------------------------------- */

static void match_records(struct graph__pair *p, const uint32_t *target, const uint32_t *golden)
{
    const struct cmp_align_pair *pairs;
    for (uint32_t i = 0; i < p->t.side.dump->nodes.n; i++) {
        size_t n = cmp_align_of(p->rows.al, i, &pairs);
        if (n > 0 && target[i] != GRAPH_NO)
            p->t.nodes.p[target[i]].match = golden[pairs[0].golden];
    }
    for (uint32_t i = 0; i < p->b.side.dump->nodes.n; i++) {
        uint32_t best = cmp_align_of_golden(p->rows.al, i);
        if (best != CMP_ALIGN_NONE && golden[i] != GRAPH_NO)
            p->b.nodes.p[golden[i]].match = target[best];
    }
}

/* Records nodes that run in place of a paired node and have no partner of their own. */
static void note_parts(struct graph__pair *p, const uint32_t *target, const uint32_t *golden)
{
    size_t n;
    const struct cmp_align_pair *pairs = cmp_align_pairs(p->rows.al, &n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t *parts;
        size_t count = cmp_align_members(p->rows.al, &pairs[i], false, &parts);
        for (size_t k = 0; k < count; k++) {
            if (target[parts[k]] != GRAPH_NO)
                p->part_of[0][target[parts[k]]] = golden[pairs[i].golden];
        }
        count = cmp_align_members(p->rows.al, &pairs[i], true, &parts);
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

/* Returns the parent of the partner of the first child that has one, if that parent is unmatched
 * and of the same kind; else GRAPH_NO. */
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

/* Pairs nodes without a record, such as modules and collections, by their children. Children come
 * before their parents in the order. */
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

static enum ms_rc match_by_records(struct graph__pair *p, struct ms_err *err)
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
    MS_TRY(cmp_align_new(&p->rows.al, &target, &golden, NULL, 0, pool, err));
    p->set.aligned = true;
    return match_by_records(p, err);
}

/* ---- the result of matching a node --------------------------------------- */

/* Tells whether the partner is a child of the parent's partner. */
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
    f.how = same ? MS_STR("name") : p->rows.al != NULL ? MS_STR("children") : MS_STR("mapping");
    f.confidence = 1;
    f.plain = same && f.kind == GRAPH_FATE_MATCHED && p->rows.al == NULL;
    if (p->rows.al == NULL)
        return f;
    uint32_t target = probe_node_find(p->t.side.dump, graph__name(&p->t, golden ? partner : node));
    uint32_t record = probe_node_find(p->b.side.dump, graph__name(&p->b, golden ? node : partner));
    const struct cmp_align_pair *pairs;
    size_t n = target != GRAPH_NO ? cmp_align_of(p->rows.al, target, &pairs) : 0;
    for (size_t i = 0; i < n; i++) {
        if (pairs[i].golden != record)
            continue;
        f.how = ms_str_of(cmp_align_how_names[pairs[i].how]);
        f.confidence = (double)pairs[i].confidence;
    }
    return f;
}
