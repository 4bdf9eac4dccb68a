/* SPDX-License-Identifier: MIT
 *
 * graph_edge: data flow between operators, which no dump tells.
 *
 * An operator reads what the nearest earlier one wrote with the same type, shape and
 * figures.  Values without a face of their own, such as all zeros, are left out: they
 * would lead anywhere.
 */
#include "compare/graph_int.h"

struct made { /* a value, by its hash */
    uint64_t hash;
    uint32_t order, used;
};

struct flow {
    const struct graph__tree *g;
    struct made *table;
    uint64_t mask;
    struct ms_buf key;
};

static struct made *slot_of(const struct flow *f, uint64_t hash)
{
    uint64_t at = hash & f->mask;
    while (f->table[at].used != 0 && f->table[at].hash != hash)
        at = (at + 1) & f->mask;
    return &f->table[at];
}

/* All elements alike, or nothing known of them. */
static bool has_no_face(const struct probe_leaf *leaf)
{
    const struct probe_num *max = &leaf->stat[PROBE_STAT_MAX], *min = &leaf->stat[PROBE_STAT_MIN];
    bool numbers = (max->kind == PROBE_NUM_INT || max->kind == PROBE_NUM_FLOAT) &&
                   (min->kind == PROBE_NUM_INT || min->kind == PROBE_NUM_FLOAT);
    return leaf->md5.n == 0 && (!numbers || !(max->v > min->v));
}

static bool hash_row(struct flow *f, const struct probe_row *row, uint64_t *hash)
{
    struct probe_leaf leaf;
    if (row->kind != PROBE_LEAF_TENSOR)
        return false;
    probe_row_leaf(f->g->side.dump, row, &leaf);
    if (has_no_face(&leaf))
        return false;
    ms_buf_clear(&f->key);
    ms_buf_str(&f->key, leaf.dtype_text);
    ms_buf_str(&f->key, leaf.shape_json);
    if (leaf.md5.n != 0)
        ms_buf_str(&f->key, leaf.md5);
    for (unsigned i = 0; i < PROBE_STATS && leaf.md5.n == 0; i++) {
        ms_buf_putc(&f->key, '|');
        if (leaf.stat[i].kind > PROBE_NUM_NULL)
            ms_buf_str(&f->key, leaf.stat[i].text);
    }
    *hash = ms_str_hash(ms_buf_slice(&f->key));
    return true;
}

static enum ms_rc read_inputs(struct flow *f, uint32_t order, const struct cmp__op *op,
                              graph__edge_fn put, void *ctx, struct ms_err *err)
{
    for (uint32_t i = op->first; i < op->first + op->n; i++) {
        const struct probe_row *row = cmp__side_row(&f->g->side, i);
        uint64_t hash;
        if (row->section == PROBE_SEC_OUTPUT || row->section == PROBE_SEC_PGRAD ||
            row->section == PROBE_SEC_PARAMETERS || !hash_row(f, row, &hash))
            continue;
        const struct made *m = slot_of(f, hash);
        if (m->used != 0)
            MS_TRY(put(ctx, m->order, order, probe_row_path(f->g->side.dump, row), err));
    }
    return MS_OK;
}

static void note_outputs(struct flow *f, uint32_t order, const struct cmp__op *op)
{
    for (uint32_t i = op->first; i < op->first + op->n; i++) {
        const struct probe_row *row = cmp__side_row(&f->g->side, i);
        uint64_t hash;
        if (row->section != PROBE_SEC_OUTPUT || !hash_row(f, row, &hash))
            continue;
        *slot_of(f, hash) = (struct made){hash, order, 1};
    }
}

static enum ms_rc walk(struct flow *f, graph__edge_fn put, void *ctx, struct ms_err *err)
{
    const struct graph__tree *g = f->g;
    for (uint32_t i = 0; i < g->order.n; i++) {
        const struct graph__node *n = &g->nodes.p[g->order.p[i]];
        if (n->kind != GRAPH_API || n->op == GRAPH_NO)
            continue;
        MS_TRY(read_inputs(f, i, &g->side.ops.p[n->op], put, ctx, err));
        note_outputs(f, i, &g->side.ops.p[n->op]);
    }
    return ms_buf_check(&f->key, err);
}

enum ms_rc graph__find_edges(const struct graph__tree *g, graph__edge_fn put, void *ctx,
                             struct ms_err *err)
{
    struct flow f = {.g = g, .key.max = 1 << 24, .mask = 1023};
    while (f.mask < g->side.dump->rows.n * 2)
        f.mask = f.mask * 2 + 1;
    f.table = ms_calloc(f.mask + 1, sizeof *f.table);
    enum ms_rc rc = f.table != NULL ? walk(&f, put, ctx, err) : ms_no_memory(err);
    ms_free(f.table);
    ms_buf_free(&f.key);
    return rc;
}
