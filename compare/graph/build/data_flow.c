/* SPDX-License-Identifier: MIT
 *
 * data_flow: data flow between operators, inferred from values because no dump records
 * it.
 *
 * The source of an input is the nearest earlier output with the same type, shape and
 * figures. Values that cannot be identified, such as all zeros, are left out: they would
 * match unrelated outputs.
 *
 * Values are hashed by many threads while the JSON of their nodes is made and their text
 * is in memory anyway; the search then reads only hashes.
 */
#include "compare/graph/build/data_flow.h"
#include "probe/base/assert.h"

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
                              graph__edge_fn put, void *ctx, struct ms_err *err)
{
    for (uint32_t i = op->first; i < op->first + op->n; i++) {
        const struct probe_row *row = cmp__side_row(&f->g->side, i);
        if (f->hash[i] == 0 || row->section == PROBE_SEC_OUTPUT)
            continue;
        const struct made *m = slot_of(f, f->hash[i]);
        if (m->used != 0)
            MS_TRY(put(ctx, m->order, order, probe_row_path(f->g->side.dump, row), err));
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

enum ms_rc graph__flow_find(struct graph__flow *f, graph__edge_fn put, void *ctx,
                            struct ms_err *err)
{
    ms_assert(f->table == NULL);
    MS_TRY(make_table(f, err));
    for (uint32_t i = 0; i < f->g->order.n; i++) {
        const struct cmp__op *op = op_of(f, f->g->order.p[i]);
        if (op == NULL)
            continue;
        MS_TRY(read_inputs(f, i, op, put, ctx, err));
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
