/* SPDX-License-Identifier: MIT
 *
 * graph_kin: whom a node goes with besides its partner.
 *
 *     target   flash_attention      x_align: partner matmul.1
 *     golden   matmul.0 ─ div ─ softmax ─ matmul.1
 *                                    x_kin:   members matmul.0, div, softmax
 *     target   qkv                   x_kin:   pairs q, k, v but the one that is its partner
 *
 * Both sides get rows: a small projection whose partner is the split learns of the large
 * projection as well.
 */
#include "compare/graph_int.h"

#include <stdlib.h>

struct kin {
    uint32_t at, other; /* places in the order of both sides */
    bool member;        /* runs in the node's place with others; else a pair */
    uint8_t how;
    float confidence;
};

struct kins {
    const struct graph__tree *g, *other;
    uint32_t *node[2]; /* by record of the side and of the other: the node of the tree */
    uint32_t *at[2];   /* by node: its place in the order */
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

static enum ms_rc put(struct kins *k, uint32_t record, uint32_t other,
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
    MS_TRY(put(k, record, golden ? pair->target : pair->golden, pair, false, err));
    for (size_t i = 0; i < n; i++)
        MS_TRY(put(k, record, parts[i], pair, true, err));
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
    return x->member - y->member; /* who is a pair is no mere member */
}

static enum ms_rc list_all(struct kins *k, const struct graph__pair *p, bool golden,
                           struct ms_err *err)
{
    size_t n;
    const struct cmp_align_pair *pairs = cmp_align_pairs(p->cmp.al, &n);
    const struct graph__tree *tree[2] = {k->g, k->other};
    for (unsigned i = 0; i < 2; i++) {
        k->node[i] = graph__nodes_of_records(tree[i]);
        k->at[i] = places_of_nodes(tree[i]);
        if (k->node[i] == NULL || k->at[i] == NULL)
            return ms_no_memory(err);
    }
    for (size_t i = 0; i < n; i++)
        MS_TRY(list_pair(k, p->cmp.al, &pairs[i], golden, err));
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

enum ms_rc graph__store_kin(struct ms_store *store, const struct graph__pair *p, bool golden,
                            struct ms_str graph_id, struct ms_err *err)
{
    struct kins k = {.g = golden ? &p->b : &p->t, .other = golden ? &p->t : &p->b};
    struct ms_stmt *st = NULL;
    if (p->cmp.al == NULL)
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
