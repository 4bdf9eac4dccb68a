/* SPDX-License-Identifier: MIT
 *
 * viewer_tables: the tables that only this viewer reads.
 */
#include "compare/graph/build/viewer_tables.h"
#include "compare/graph/build/graph_schema.h"
#include "probe/base/assert.h"

#include <stdlib.h>

/* ---- data flow -------------------------------------------------------------- */

/* Data flow between operators, inferred from values because no dump records
 * it.
 *
 * The source of an input is the nearest earlier output with the same type, shape and
 * figures. Values that cannot be identified, such as all zeros, are left out: they would
 * match unrelated outputs.
 *
 * Values are hashed by many threads while the JSON of their nodes is made and their text
 * is in memory anyway; the search then reads only hashes. */

/* Called for each input whose writer is known; src and dst are indices into the order of
 * the tree. */
typedef enum ms_rc (*graph__edge_fn)(void *ctx, uint32_t src, uint32_t dst, struct ms_str slot,
                                     struct ms_err *err);

struct made { /* an output value, identified by its hash */
    uint64_t hash;
    uint32_t order, used;
};

struct graph__flow {
    const struct graph__tree *g;
    uint64_t *hash; /* by row of the side; 0: not identifiable */
    struct made *table;
    uint64_t mask;
};

static struct made *slot_of(const struct graph__flow *f, uint64_t hash)
{
    uint64_t at = hash & f->mask;
    while (f->table[at].used != 0 && f->table[at].hash != hash)
        at = (at + 1) & f->mask;
    return &f->table[at];
}

/* Returns true for a tensor that its values cannot identify: all elements are equal, or there are
 * neither statistics nor a digest. */
static bool has_no_face(const struct probe_leaf *leaf)
{
    const struct probe_num *max = &leaf->stat[PROBE_STAT_MAX], *min = &leaf->stat[PROBE_STAT_MIN];
    bool numbers = (max->kind == PROBE_NUM_INT || max->kind == PROBE_NUM_FLOAT) &&
                   (min->kind == PROBE_NUM_INT || min->kind == PROBE_NUM_FLOAT);
    return leaf->md5.n == 0 && (!numbers || !(max->v > min->v));
}

static uint64_t hash_leaf(const struct probe_leaf *leaf, struct ms_buf *key)
{
    ms_buf_clear(key);
    ms_buf_str(key, leaf->dtype_text);
    ms_buf_str(key, leaf->shape_json);
    if (leaf->md5.n != 0)
        ms_buf_str(key, leaf->md5);
    for (unsigned i = 0; i < PROBE_STATS && leaf->md5.n == 0; i++) {
        ms_buf_putc(key, '|');
        if (leaf->stat[i].kind > PROBE_NUM_NULL)
            ms_buf_str(key, leaf->stat[i].text);
    }
    return ms_str_hash(ms_buf_slice(key));
}

static const struct cmp__op *op_of(const struct graph__flow *f, uint32_t node)
{
    const struct graph__node *n = &f->g->nodes.p[node];
    return n->kind == GRAPH_API && n->op != GRAPH_NO ? &f->g->side.ops.p[n->op] : NULL;
}

enum ms_rc graph__flow_note(struct graph__flow *f, uint32_t node, struct ms_buf *key,
                            struct ms_err *err)
{
    ms_assert(node < f->g->nodes.n);
    const struct cmp__op *op = op_of(f, node);
    for (uint32_t i = 0; op != NULL && i < op->n; i++) {
        const struct probe_row *row = cmp__side_row(&f->g->side, op->first + i);
        struct probe_leaf leaf;
        if (row->kind != PROBE_LEAF_TENSOR || row->section == PROBE_SEC_PGRAD ||
            row->section == PROBE_SEC_PARAMETERS)
            continue;
        probe_row_leaf(f->g->side.dump, row, &leaf);
        if (!has_no_face(&leaf))
            f->hash[op->first + i] = hash_leaf(&leaf, key);
    }
    return ms_buf_check(key, err);
}

static enum ms_rc read_inputs(struct graph__flow *f, uint32_t order, const struct cmp__op *op,
                              graph__edge_fn visit, void *ctx, struct ms_err *err)
{
    for (uint32_t i = op->first; i < op->first + op->n; i++) {
        const struct probe_row *row = cmp__side_row(&f->g->side, i);
        if (f->hash[i] == 0 || row->section == PROBE_SEC_OUTPUT)
            continue;
        const struct made *m = slot_of(f, f->hash[i]);
        if (m->used != 0)
            MS_TRY(visit(ctx, m->order, order, probe_row_path(f->g->side.dump, row), err));
    }
    return MS_OK;
}

static void note_outputs(struct graph__flow *f, uint32_t order, const struct cmp__op *op)
{
    for (uint32_t i = op->first; i < op->first + op->n; i++) {
        if (f->hash[i] != 0 && cmp__side_row(&f->g->side, i)->section == PROBE_SEC_OUTPUT)
            *slot_of(f, f->hash[i]) = (struct made){f->hash[i], order, 1};
    }
}

/* Allocates a hash table that is at most half full even when all outputs have different values. */
static enum ms_rc make_table(struct graph__flow *f, struct ms_err *err)
{
    uint64_t outputs = 0;
    for (uint32_t i = 0; i < f->g->side.order.n; i++)
        outputs += f->hash[i] != 0 && cmp__side_row(&f->g->side, i)->section == PROBE_SEC_OUTPUT;
    for (f->mask = 1023; f->mask < outputs * 2;)
        f->mask = f->mask * 2 + 1;
    f->table = ms_calloc(f->mask + 1, sizeof *f->table);
    return f->table != NULL ? MS_OK : ms_no_memory(err);
}

/* Calls `visit` for every edge. All nodes must have been noted before. */
static enum ms_rc flow_find(struct graph__flow *f, graph__edge_fn visit, void *ctx,
                            struct ms_err *err)
{
    ms_assert(f->table == NULL);
    MS_TRY(make_table(f, err));
    for (uint32_t i = 0; i < f->g->order.n; i++) {
        const struct cmp__op *op = op_of(f, f->g->order.p[i]);
        if (op == NULL)
            continue;
        MS_TRY(read_inputs(f, i, op, visit, ctx, err));
        note_outputs(f, i, op);
    }
    return MS_OK;
}

enum ms_rc graph__flow_new(struct graph__flow **flow, const struct graph__tree *g,
                           struct ms_err *err)
{
    struct graph__flow *f = ms_calloc(1, sizeof *f);
    *flow = f;
    if (f == NULL)
        return ms_no_memory(err);
    f->g = g;
    f->hash = ms_calloc(g->side.order.n + 1, sizeof *f->hash);
    return f->hash != NULL ? MS_OK : ms_no_memory(err);
}

void graph__flow_free(struct graph__flow *f)
{
    if (f == NULL)
        return;
    ms_free(f->hash);
    ms_free(f->table);
    ms_free(f);
}

/* ---- tables ----------------------------------------------------------------- */

enum { TEXT_MAX = 1 << 30 };

struct tally {
    uint32_t error, warn, unmatched, over;
    uint8_t worst;
};

static void add_tally(struct tally *to, const struct tally *from)
{
    to->error += from->error;
    to->warn += from->warn;
    to->unmatched += from->unmatched;
    to->over += from->over;
    to->worst = from->worst > to->worst ? from->worst : to->worst;
}

/* Counts of a single node; a node is unmatched only in a comparison. */
static struct tally own_tally(const struct graph__extra *x, const struct graph__node *n)
{
    bool unmatched = x->pair->dual && n->match == GRAPH_NO;
    return (struct tally){.error = n->state == GRAPH_ERROR,
                          .warn = n->state == GRAPH_WARNING,
                          .unmatched = unmatched,
                          .over = x->conf->overflow && n->over != GRAPH_OVER_NONE,
                          .worst = n->state};
}

static enum ms_rc store_rollup(struct graph__extra *x, uint32_t node, const struct tally *t,
                               struct ms_err *err)
{
    ms_buf_clear(&x->id);
    ms_buf_str(&x->id, x->prefix);
    ms_buf_putc(&x->id, '_');
    ms_buf_str(&x->id, graph__name(x->g, node));
    MS_TRY(ms_buf_check(&x->id, err));
    ms_stmt_str(x->rollup, 1, ms_buf_slice(&x->id));
    ms_stmt_i64(x->rollup, 2, t->worst);
    ms_stmt_i64(x->rollup, 3, t->error);
    ms_stmt_i64(x->rollup, 4, t->warn);
    ms_stmt_i64(x->rollup, 5, t->unmatched);
    ms_stmt_i64(x->rollup, 6, t->over);
    return ms_stmt_run(x->rollup, err);
}

/* Stores the sums over each subtree. Children precede their parent in the order, so one pass
 * suffices. */
static enum ms_rc add_up(struct graph__extra *x, struct tally *t, struct ms_err *err)
{
    const struct graph__tree *g = x->g;
    for (size_t i = 0; i < g->order.n; i++) {
        uint32_t node = g->order.p[i];
        const struct graph__node *n = &g->nodes.p[node];
        if (n->first_child != GRAPH_NO)
            MS_TRY(store_rollup(x, node, &t[node], err));
        struct tally own = own_tally(x, n);
        add_tally(&t[node], &own);
        if (n->parent != GRAPH_NO)
            add_tally(&t[n->parent], &t[node]);
    }
    return MS_OK;
}

static enum ms_rc store_rollups(struct graph__extra *x, struct ms_err *err)
{
    struct tally *t = ms_calloc(x->g->nodes.n, sizeof *t);
    if (t == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = add_up(x, t, err);
    ms_free(t);
    return rc;
}

static enum ms_rc store_fate(struct graph__extra *x, uint32_t i, const struct graph__fate *f,
                             struct ms_err *err)
{
    static const char *const kinds[] = {"matched", "moved", "extra", "missing", "part"};
    ms_stmt_i64(x->align, 2, i);
    ms_stmt_str(x->align, 3, ms_str_of(kinds[f->kind]));
    ms_stmt_str(x->align, 4,
                f->partner != GRAPH_NO
                    ? graph__name(x->golden ? &x->pair->t : &x->pair->b, f->partner)
                    : MS_STR_NONE);
    ms_stmt_str(x->align, 5, f->how);
    ms_stmt_f64(x->align, 6, f->confidence);
    return ms_stmt_run(x->align, err);
}

static enum ms_rc store_fates(struct graph__extra *x, struct ms_err *err)
{
    ms_stmt_str(x->align, 1, x->prefix);
    for (uint32_t i = 0; x->pair->dual && i < x->g->order.n; i++) {
        struct graph__fate f = graph__fate_of(x->pair, x->golden, x->g->order.p[i]);
        if (!f.plain)
            MS_TRY(store_fate(x, i, &f, err));
    }
    return MS_OK;
}

static enum ms_rc store_edge(void *ctx, uint32_t src, uint32_t dst, struct ms_str slot,
                             struct ms_err *err)
{
    struct graph__extra *x = ctx;
    ms_stmt_i64(x->edge, 2, dst);
    ms_stmt_str(x->edge, 3, slot);
    ms_stmt_i64(x->edge, 4, src);
    return ms_stmt_run(x->edge, err);
}

static enum ms_rc store_edges(struct graph__extra *x, struct ms_err *err)
{
    if (x->flow == NULL)
        return MS_OK;
    ms_stmt_str(x->edge, 1, x->prefix);
    return flow_find(x->flow, store_edge, x, err);
}

static enum ms_rc store_state(struct graph__extra *x, int state, uint32_t order, struct ms_err *err)
{
    ms_stmt_i64(x->state, 2, state);
    ms_stmt_i64(x->state, 3, order);
    return ms_stmt_run(x->state, err);
}

static enum ms_rc store_states(struct graph__extra *x, struct ms_err *err)
{
    ms_stmt_str(x->state, 1, x->prefix);
    for (uint32_t i = 0; i < x->g->order.n; i++) {
        const struct graph__node *n = &x->g->nodes.p[x->g->order.p[i]];
        bool unmatched = x->pair->dual && n->match == GRAPH_NO;
        if (unmatched || n->state != GRAPH_NONE)
            MS_TRY(store_state(x, unmatched ? GRAPH_NONE : n->state, i, err));
        if (x->conf->overflow && n->over != GRAPH_OVER_NONE)
            MS_TRY(store_state(x, GRAPH_STATE_OVERFLOW, i, err));
    }
    return MS_OK;
}

static enum ms_rc store_name_page(struct graph__extra *x, uint32_t first, struct ms_err *err)
{
    MS_TRY(ms_buf_check(&x->text, err));
    ms_stmt_i64(x->names, 2, first);
    ms_stmt_blob(x->names, 3, x->text.p, x->text.n);
    MS_TRY(ms_stmt_run(x->names, err));
    ms_buf_clear(&x->text);
    return MS_OK;
}

/* Stores all names in lower case, each followed by a line feed, in pages. */
static enum ms_rc store_names(struct graph__extra *x, struct ms_err *err)
{
    enum { PAGE = 1 << 18 };
    uint32_t first = 0;
    ms_buf_clear(&x->text);
    ms_stmt_str(x->names, 1, x->prefix);
    for (uint32_t i = 0; i < x->g->order.n; i++) {
        struct ms_str name = graph__name(x->g, x->g->order.p[i]);
        char *room = ms_buf_room(&x->text, (size_t)name.n + 1);
        for (uint32_t k = 0; room != NULL && k < name.n; k++)
            room[k] = name.p[k] >= 'A' && name.p[k] <= 'Z' ? (char)(name.p[k] + 32) : name.p[k];
        if (room != NULL) {
            room[name.n] = '\n';
            x->text.n += (size_t)name.n + 1;
        }
        if (x->text.n < PAGE && i + 1 < x->g->order.n)
            continue;
        MS_TRY(store_name_page(x, first, err));
        first = i + 1;
    }
    return MS_OK;
}

/* ---- kin: further nodes of the other side that belong to a node ---------- */

struct kin {
    uint32_t at, other; /* indices in the order of the two sides */
    bool member; /* true: runs in the node's place together with others; false: a further pair */
    uint8_t how;
    float confidence;
};

struct kins {
    const struct graph__tree *g, *other;
    uint32_t *node[2]; /* by record of this side and of the other: the node of the tree */
    uint32_t *at[2];   /* by node: its index in the order */
    MS_VEC(struct kin) list;
};

/* ---- finding them ----------------------------------------------------------- */

static uint32_t *places_of_nodes(const struct graph__tree *g)
{
    uint32_t *at = ms_alloc((g->nodes.n + 1) * sizeof *at);
    if (at == NULL)
        return NULL;
    memset(at, 0xff, (g->nodes.n + 1) * sizeof *at);
    for (uint32_t i = 0; i < g->order.n; i++)
        at[g->order.p[i]] = i;
    return at;
}

static enum ms_rc add_kin(struct kins *k, uint32_t record, uint32_t other,
                          const struct cmp_align_pair *pair, bool member, struct ms_err *err)
{
    uint32_t node = k->node[0][record], mate = k->node[1][other];
    if (node == GRAPH_NO || mate == GRAPH_NO || k->g->nodes.p[node].match == mate)
        return MS_OK;
    struct kin *kin = ms_vec_push(&k->list);
    if (kin == NULL)
        return ms_no_memory(err);
    *kin = (struct kin){k->at[0][node], k->at[1][mate], member, pair->how, pair->confidence};
    return MS_OK;
}

static enum ms_rc list_pair(struct kins *k, const struct cmp_align *al,
                            const struct cmp_align_pair *pair, bool golden, struct ms_err *err)
{
    uint32_t record = golden ? pair->golden : pair->target;
    const uint32_t *parts;
    size_t n = cmp_align_members(al, pair, !golden, &parts);
    MS_TRY(add_kin(k, record, golden ? pair->target : pair->golden, pair, false, err));
    for (size_t i = 0; i < n; i++)
        MS_TRY(add_kin(k, record, parts[i], pair, true, err));
    return MS_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct kin *x = a;
    const struct kin *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    if (x->other != y->other)
        return x->other < y->other ? -1 : 1;
    return x->member - y->member; /* a pair sorts before a member */
}

static enum ms_rc list_all(struct kins *k, const struct graph__pair *p, bool golden,
                           struct ms_err *err)
{
    size_t n;
    const struct cmp_align_pair *pairs = cmp_align_pairs(p->rows.al, &n);
    const struct graph__tree *tree[2] = {k->g, k->other};
    for (unsigned i = 0; i < 2; i++) {
        k->node[i] = graph__nodes_of_records(tree[i]);
        k->at[i] = places_of_nodes(tree[i]);
        if (k->node[i] == NULL || k->at[i] == NULL)
            return ms_no_memory(err);
    }
    for (size_t i = 0; i < n; i++)
        MS_TRY(list_pair(k, p->rows.al, &pairs[i], golden, err));
    if (k->list.n != 0)
        qsort(k->list.p, k->list.n, sizeof *k->list.p, by_place);
    return MS_OK;
}

/* ---- storing them ------------------------------------------------------------ */

static enum ms_rc store_one(const struct kins *k, struct ms_stmt *st, const struct kin *kin,
                            int64_t place, struct ms_err *err)
{
    ms_stmt_i64(st, 2, kin->at);
    ms_stmt_i64(st, 3, place);
    ms_stmt_str(st, 4, kin->member ? MS_STR("member") : MS_STR("pair"));
    ms_stmt_str(st, 5, graph__name(k->other, k->other->order.p[kin->other]));
    ms_stmt_str(st, 6, ms_str_of(cmp_align_how_names[kin->how]));
    ms_stmt_f64(st, 7, (double)kin->confidence);
    return ms_stmt_run(st, err);
}

static enum ms_rc store_all(const struct kins *k, struct ms_stmt *st, struct ms_err *err)
{
    int64_t place = 0;
    for (size_t i = 0; i < k->list.n; i++) {
        const struct kin *kin = &k->list.p[i], *before = i != 0 ? kin - 1 : NULL;
        if (before != NULL && before->at == kin->at && before->other == kin->other)
            continue;
        place = before != NULL && before->at == kin->at ? place + 1 : 0;
        MS_TRY(store_one(k, st, kin, place, err));
    }
    return MS_OK;
}

static enum ms_rc store_kin(struct ms_store *store, const struct graph__pair *p, bool golden,
                            struct ms_str graph_id, struct ms_err *err)
{
    struct kins k = {.g = golden ? &p->b : &p->t, .other = golden ? &p->t : &p->b};
    struct ms_stmt *st = NULL;
    if (p->rows.al == NULL)
        return MS_OK;
    enum ms_rc rc = list_all(&k, p, golden, err);
    if (rc == MS_OK)
        rc = ms_store_prepare(store, &st, "INSERT INTO x_kin VALUES (?, ?, ?, ?, ?, ?, ?)", err);
    if (rc == MS_OK) {
        ms_stmt_str(st, 1, graph_id);
        rc = store_all(&k, st, err);
    }
    ms_stmt_free(st);
    for (unsigned i = 0; i < 2; i++) {
        ms_free(k.node[i]);
        ms_free(k.at[i]);
    }
    ms_vec_free(&k.list);
    return rc;
}

/* ---- all of them ----------------------------------------------------------------- */

enum ms_rc graph__extra_prepare(struct graph__extra *x, struct ms_store *store,
                                const struct graph_conf *conf, struct ms_err *err)
{
    *x = (struct graph__extra){
        .store = store, .conf = conf, .id.max = TEXT_MAX, .text.max = TEXT_MAX};
    MS_TRY(ms_store_exec(store, GRAPH_SQL_EXTRA, err));
    MS_TRY(
        ms_store_prepare(store, &x->rollup, "INSERT INTO x_rollup VALUES (?, ?, ?, ?, ?, ?)", err));
    MS_TRY(ms_store_prepare(store, &x->state, "INSERT INTO x_state VALUES (?, ?, ?)", err));
    MS_TRY(
        ms_store_prepare(store, &x->align, "INSERT INTO x_align VALUES (?, ?, ?, ?, ?, ?)", err));
    MS_TRY(
        ms_store_prepare(store, &x->edge, "INSERT OR IGNORE INTO x_edge VALUES (?, ?, ?, ?)", err));
    return ms_store_prepare(store, &x->names, "INSERT INTO x_names VALUES (?, ?, ?)", err);
}

enum ms_rc graph__extra_put(struct graph__extra *x, const struct graph__pair *p, bool golden,
                            struct ms_str prefix, struct graph__flow *flow, struct ms_err *err)
{
    ms_assert(x->store != NULL && prefix.n != 0);
    x->pair = p;
    x->g = golden ? &p->b : &p->t;
    x->golden = golden;
    x->prefix = prefix;
    x->flow = flow;
    MS_TRY(store_rollups(x, err));
    MS_TRY(store_states(x, err));
    MS_TRY(store_fates(x, err));
    MS_TRY(store_kin(x->store, p, golden, prefix, err));
    MS_TRY(store_edges(x, err));
    return store_names(x, err);
}

void graph__extra_free(struct graph__extra *x)
{
    ms_stmt_free(x->rollup);
    ms_stmt_free(x->state);
    ms_stmt_free(x->names);
    ms_stmt_free(x->align);
    ms_stmt_free(x->edge);
    ms_buf_free(&x->id);
    ms_buf_free(&x->text);
    *x = (struct graph__extra){0};
}
