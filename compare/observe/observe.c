/* SPDX-License-Identifier: MIT
 *
 * observe: reads a pair of dumps as node pairs in execution order, each with its pairs of
 * leaves. The dumps are not needed afterwards.
 */
#include "compare/observe/observe.h"
#include "compare/observe/backward_parting.h"
#include "compare/observe/cross_values.h"
#include "compare/observe/frontier.h"
#include "compare/observe/leaf_distance.h"
#include "compare/observe/lost_values.h"
#include "compare/observe/micro_batches.h"
#include "compare/observe/node_facts.h"
#include "compare/observe/node_pairs.h"
#include "compare/observe/update_results.h"
#include "compare/observe/void_values.h"
#include "compare/table/comparison.h"
#include "probe/base/assert.h"

#include "probe/base/trace.h"

#include <math.h>

#define PART_MAX ((size_t)1 << 34)

enum {
    OPPOSITE_COUNT = 64, /* with fewer elements the sign may flip by chance */
    CHUNK_NODES = 1 << 10,
};

struct observer {
    struct observe__part *p;
    struct observe__pairing q;
    struct observe__side side[2];
    const struct cmp *c;
    struct ms_pool *pool;
    /* by target row: its pair of rows in c, which has figures; NULL: nothing was measured */
    uint32_t *figure;
    float *noise;          /* by golden row: noise of a second run; NULL: there is none */
    uint32_t *by_golden;   /* by node of the golden dump: node of the part */
    MS_VEC(uint32_t) look; /* leaves whose tensor files must be read */
};

/* ---- operators ----------------------------------------------------------- */

static enum ms_rc add_op(struct observe__part *p, struct ms_str name, uint32_t *id,
                         struct ms_err *err)
{
    bool added;
    *id = ms_map_put_copy(&p->ops_by_name, name, p->arena, &added);
    struct observe__op *op = *id != MS_MAP_NONE && added ? ms_vec_push(&p->ops) : NULL;
    if (*id == MS_MAP_NONE || (added && op == NULL))
        return ms_no_memory(err);
    if (added)
        *op = observe__op_of(ms_map_key(&p->ops_by_name, *id));
    return MS_OK;
}

/* Numbers the operator of a node. The operator of a module is its class: Module.layers.0.fc.Linear
 * is a Linear. */
static enum ms_rc number_op(struct observer *o, unsigned side, uint32_t node, uint32_t *id,
                            struct ms_err *err)
{
    struct ms_str name = probe_node_name(o->side[side].dump, node);
    struct probe_name n = probe_name_parse(name);
    struct ms_str op = ms_str_sub(name, 0, n.prefix.n + 1 + n.path.n);
    if (n.kind == PROBE_NODE_MODULE || n.kind == PROBE_NODE_PGRAD)
        op = probe_name_last(n.path);
    return add_op(o->p, op, id, err);
}

/* ---- names --------------------------------------------------------------- */

static enum ms_rc keep_names(struct observer *o, unsigned side, struct ms_err *err)
{
    const struct probe_dump *d = o->side[side].dump;
    if (!ms_vec_reserve(&o->p->names[side], d->nodes.n + 1))
        return ms_no_memory(err);
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        struct ms_str name = probe_node_name(d, i);
        uint32_t mate = side == 1 ? o->q.mate[1][i] : OBSERVE__NONE;
        bool twin = mate != OBSERVE__NONE && ms_str_eq(name, o->p->names[0].p[mate]);
        struct ms_str kept = twin ? o->p->names[0].p[mate] : ms_arena_str(o->p->arena, name);
        if (kept.p == NULL)
            return ms_arena_fail(o->p->arena, err);
        o->p->names[side].p[o->p->names[side].n++] = kept;
    }
    return MS_OK;
}

/* ---- the order of nodes -------------------------------------------------- */

static enum ms_rc add_node(struct observer *o, uint32_t golden, uint32_t target, struct ms_err *err)
{
    unsigned side = target != OBSERVE__NONE;
    uint32_t id = side ? target : golden;
    ms_assert(id < o->side[side].dump->nodes.n);
    const struct probe_node *from = &o->side[side].dump->nodes.p[id];
    struct observe__node *n = ms_vec_push(&o->p->nodes);
    if (n == NULL)
        return ms_no_memory(err);
    *n = (struct observe__node){
        .id = {golden, target}, .forward = OBSERVE__NONE, .kind = from->kind, .dir = from->dir};
    uint32_t number = (uint32_t)(o->p->nodes.n - 1);
    if (golden != OBSERVE__NONE)
        o->by_golden[golden] = number;
    if (target != OBSERVE__NONE)
        o->p->by_target.p[target] = number;
    n->moved = target != OBSERVE__NONE && o->q.moved[target];
    bool alone = golden == OBSERVE__NONE || target == OBSERVE__NONE;
    if (alone && o->q.origin[side][id] != OBSERVE__NONE)
        n->structure = OBSERVE__REPEATED;
    n->recomputed = (golden != OBSERVE__NONE && o->q.again[0][golden] != OBSERVE__NONE) ||
                    (target != OBSERVE__NONE && o->q.again[1][target] != OBSERVE__NONE);
    return number_op(o, side, id, &n->op, err);
}

/* Adds the forward operators that the golden side alone has, from golden node *at up to `end`, or up to the next
 * paired one. Two programs run partners in another order, so paired nodes may lie between. */
static enum ms_rc add_missing(struct observer *o, uint32_t *at, uint32_t end, bool past_pairs,
                              struct ms_err *err)
{
    const struct probe_dump *g = o->side[0].dump;
    for (; *at < end && (past_pairs || o->q.mate[0][*at] == OBSERVE__NONE); ++*at) {
        const struct probe_node *n = &g->nodes.p[*at];
        bool counts = o->p->has_apis ? n->kind == PROBE_NODE_API : n->kind == PROBE_NODE_MODULE;
        if (counts && n->dir == PROBE_FORWARD && o->q.mate[0][*at] == OBSERVE__NONE)
            MS_TRY(add_node(o, *at, OBSERVE__NONE, err));
    }
    return MS_OK;
}

static enum ms_rc list_nodes(struct observer *o, struct ms_err *err)
{
    const size_t n = o->side[1].dump->nodes.n;
    const uint32_t end = (uint32_t)o->side[0].dump->nodes.n;
    o->by_golden = ms_alloc((end + 1) * sizeof *o->by_golden);
    if (o->by_golden == NULL || !ms_vec_reserve(&o->p->by_target, n + 1) ||
        !ms_vec_reserve(&o->p->nodes, n + 1))
        return ms_no_memory(err);
    memset(o->by_golden, 0xff, (end + 1) * sizeof *o->by_golden);
    o->p->by_target.n = n;
    uint32_t at = 0;
    MS_TRY(add_missing(o, &at, end, false, err));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t mate = o->q.mate[1][i];
        bool is_next = mate != OBSERVE__NONE && mate >= at;
        if (is_next && o->p->cross)
            MS_TRY(add_missing(o, &at, mate, true, err));
        MS_TRY(add_node(o, mate, i, err));
        at = is_next ? mate + 1 : at;
        if (is_next)
            MS_TRY(add_missing(o, &at, end, false, err));
    }
    return MS_OK;
}

/* Finds the forward node of each backward node by name. */
static enum ms_rc find_forward(struct observer *o, struct ms_err *err)
{
    const struct probe_dump *t = o->side[1].dump;
    struct ms_buf text = {.max = 1 << 20};
    for (size_t i = 0; i < o->p->nodes.n; i++) {
        struct observe__node *n = &o->p->nodes.p[i];
        if (n->dir != PROBE_BACKWARD || n->kind == PROBE_NODE_PGRAD || n->id[1] == OBSERVE__NONE)
            continue;
        ms_buf_clear(&text);
        uint32_t at =
            probe_name_put_forward(&text, probe_node_name(t, n->id[1])) && text.bad == MS_OK
                ? probe_node_find(t, ms_buf_slice(&text))
                : MS_MAP_NONE;
        if (at != MS_MAP_NONE && o->q.origin[1][at] != OBSERVE__NONE)
            at = o->q.origin[1][at];
        n->forward = at != MS_MAP_NONE ? o->p->by_target.p[at] : OBSERVE__NONE;
    }
    enum ms_rc rc = ms_buf_check(&text, err);
    ms_buf_free(&text);
    return rc;
}

/* Marks the nodes that have a backward: a result that no node reads may still act through it. */
static enum ms_rc mark_backward(struct observer *o, struct ms_err *err)
{
    const struct probe_dump *g = o->side[0].dump;
    struct ms_buf text = {.max = 1 << 20};
    for (size_t i = 0; i < o->p->nodes.n; i++) {
        const struct observe__node *n = &o->p->nodes.p[i];
        if (n->forward == OBSERVE__NONE)
            continue;
        bool both = n->id[0] != OBSERVE__NONE && o->p->nodes.p[n->forward].id[0] != OBSERVE__NONE;
        o->p->nodes.p[n->forward].backward |= both ? 3 : 2;
    }
    for (uint32_t i = 0; i < g->nodes.n; i++) {
        if (g->nodes.p[i].dir != PROBE_BACKWARD || o->q.mate[0][i] != OBSERVE__NONE)
            continue;
        ms_buf_clear(&text);
        uint32_t at = probe_name_put_forward(&text, probe_node_name(g, i)) && text.bad == MS_OK
                          ? probe_node_find(g, ms_buf_slice(&text))
                          : MS_MAP_NONE;
        if (at != MS_MAP_NONE && o->by_golden[at] != OBSERVE__NONE)
            o->p->nodes.p[o->by_golden[at]].backward |= 1;
    }
    enum ms_rc rc = ms_buf_check(&text, err);
    ms_buf_free(&text);
    return rc;
}

/* ---- leaves -------------------------------------------------------------- */

static unsigned role_of(const struct observer *o, const struct observe__node *n, unsigned side,
                        uint32_t row)
{
    const struct probe_row *r = &o->side[side].dump->rows.p[row];
    unsigned flags = observe__is_output(r) ? OBSERVE__IS_OUT : 0;
    if (r->section == PROBE_SEC_PARAMETERS)
        return OBSERVE__IS_PARAM;
    unsigned op = o->p->ops.p[n->op].flags;
    if (flags != 0 || n->dir != PROBE_FORWARD || (op & (OBSERVE__WEIGHED | OBSERVE__LOOKUP)) == 0)
        return flags;
    struct ms_str path = probe_row_path(o->side[side].dump, r);
    bool word = ms_str_ends(path, MS_STR("weight")) || ms_str_ends(path, MS_STR("bias"));
    bool place =
        op & OBSERVE__LOOKUP ? ms_str_ends(path, MS_STR(".1")) : !ms_str_ends(path, MS_STR(".0"));
    return word || (place && r->section == PROBE_SEC_INPUT_ARGS) ? OBSERVE__IS_PARAM : 0;
}

static uint32_t maker_of(const struct observer *o, unsigned side, uint32_t row)
{
    uint32_t node = row != OBSERVE__NONE ? o->side[side].maker[row] : OBSERVE__NONE;
    if (node == OBSERVE__NONE)
        return OBSERVE__NONE;
    return side == 0 ? o->by_golden[node] : o->p->by_target.p[node];
}

static void mark_read(struct observer *o)
{
    for (unsigned s = 0; s < 2; s++) {
        for (uint32_t i = 0; i < o->side[s].dump->rows.n; i++) {
            bool out = observe__is_output(&o->side[s].dump->rows.p[i]);
            uint32_t maker = maker_of(o, s, i);
            if (maker != OBSERVE__NONE && !out)
                o->p->nodes.p[maker].is_read = true;
        }
    }
}

/* Tells whether both sides may order the elements of a leaf differently. Two frameworks or programs may
 * order dimensions; the functions that a graph is compiled from have its layout. */
static bool may_be_laid_out(const struct observer *o, const struct observe__leaf *l)
{
    bool is_one_shape = o->side[0].value[l->row[0]].shape == o->side[1].value[l->row[1]].shape;
    return o->p->cross && !(o->p->is_graph && is_one_shape);
}

/* Takes the measured share of different integers, in the form of observe__measure_files. */
static bool take_share(const struct observer *o, struct observe__leaf *l,
                       const struct cmp_figures *f)
{
    double share = f->ext.bit_equal;
    if (f->state != CMP_STATE_OK || isnan(share))
        return false;
    ms_assert(share >= 0 && share <= 1);
    float e = (float)sqrt(1 - share);
    if (!may_be_laid_out(o, l) || l->e > e)
        l->e = e;
    l->flags |= OBSERVE__MEASURED;
    return true;
}

/* Takes measured figures of a tensor file; returns true when the file must be read here. */
static bool take_figures(const struct observer *o, struct observe__leaf *l)
{
    if (o->figure == NULL || l->row[0] == OBSERVE__NONE || l->row[1] == OBSERVE__NONE)
        return false;
    uint32_t pair = o->figure[l->row[1]];
    bool real = (l->flags & OBSERVE__REAL) != 0;
    bool known =
        pair != OBSERVE__NONE && o->c->rows.b.order.p[o->c->rows.pairs.p[pair].b] == l->row[0];
    const struct cmp_figures *f = known ? &o->c->measured.figures.p[pair] : NULL;
    if (f != NULL && !real)
        return !take_share(o, l, f);
    if (f != NULL && f->state == CMP_STATE_OK) {
        double e = fmin(f->ext.rel_l2, 1e30);
        bool laid_out = may_be_laid_out(o, l) && (l->flags & OBSERVE__MEASURED) && l->e < e;
        l->e = laid_out ? l->e : (float)e;
        l->flags |= OBSERVE__MEASURED;
        if (l->e > 0 && l->scale != l->scale && fabs(f->ext.scale - 1) > 1e-6) {
            double rest = f->ext.rel_l2 * f->ext.rel_l2 - (f->ext.scale - 1) * (f->ext.scale - 1);
            if (rest < 1e-4 * (f->ext.scale - 1) * (f->ext.scale - 1))
                l->scale = (float)f->ext.scale;
        }
        if (l->e > 1e-4F && l->en < 1e-6F * l->e && isnan(l->scale))
            l->flags |= OBSERVE__SAME_SET;
        if (l->count >= OPPOSITE_COUNT && f->ext.scale < -0.5)
            l->flags |= OBSERVE__OPPOSITE;
        return false;
    }
    return f == NULL || f->state == CMP_STATE_MASKS || f->state == CMP_STATE_SCALAR;
}

/* Keeps the paths of both sides, the target's first. */
static enum ms_rc keep_paths(struct observer *o, struct ms_err *err)
{
    for (unsigned i = 0; i < 2; i++) {
        const struct ms_map *m = &o->side[1 - i].dump->paths;
        if (i == 1)
            o->p->golden_paths = (uint32_t)o->p->paths.n;
        for (uint32_t k = 0; k < m->keys.n; k++) {
            struct ms_str *slot = ms_vec_push(&o->p->paths);
            if (slot == NULL)
                return ms_no_memory(err);
            *slot = ms_arena_str(o->p->arena, ms_map_key(m, k));
            if (slot->p == NULL)
                return ms_arena_fail(o->p->arena, err);
        }
    }
    return MS_OK;
}

static struct ms_str text_of(const struct observer *o, unsigned side, uint32_t row, unsigned attrs)
{
    struct probe_leaf leaf;
    if (row == OBSERVE__NONE)
        return MS_STR_NONE;
    probe_row_leaf(o->side[side].dump, &o->side[side].dump->rows.p[row], &leaf);
    if (attrs & OBSERVE__SCALAR)
        return leaf.value_json.p != NULL ? leaf.value_json : MS_STR("null");
    if (attrs & OBSERVE__SHAPE)
        return leaf.shape_json;
    if (attrs & OBSERVE__DTYPE)
        return leaf.dtype_text;
    return leaf.requires_grad == 1 ? MS_STR("true") : MS_STR("false");
}

/* Copies a text as one line of limited length. */
static struct ms_str keep_line(struct ms_arena *a, struct ms_str s)
{
    enum { LINE = 60 };
    char *out = s.p != NULL ? ms_arena_text(a, LINE + 1) : NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; out != NULL && i < s.n && n < LINE; i++) {
        bool space = s.p[i] == ' ' || s.p[i] == '\n' || s.p[i] == '\t' || s.p[i] == '\r';
        if (!space)
            out[n++] = s.p[i];
    }
    return out != NULL ? (struct ms_str){out, n} : MS_STR_NONE;
}

/* Keeps both texts of an argument or attribute that differs, up to a limit. */
static enum ms_rc keep_said(struct observer *o, struct observe__leaf *l, struct ms_err *err)
{
    enum { SAID_MAX = 10000 };
    l->texts = OBSERVE__NONE;
    if (l->attrs == 0 || o->p->texts.n == SAID_MAX)
        return MS_OK;
    struct observe__value_texts *slot = ms_vec_push(&o->p->texts);
    if (slot == NULL)
        return ms_no_memory(err);
    for (unsigned s = 0; s < 2; s++)
        slot->text[s] = keep_line(o->p->arena, text_of(o, s, l->row[s], l->attrs));
    l->texts = (uint32_t)(o->p->texts.n - 1);
    return MS_OK;
}

static void fill_leaf(const struct observer *o, const struct observe__node *n,
                      struct observe__leaf *l)
{
    uint32_t golden = l->row[0], target = l->row[1];
    ms_assert(golden != OBSERVE__NONE || target != OBSERVE__NONE);
    const struct read__value *g = golden != OBSERVE__NONE ? &o->side[0].value[golden] : NULL;
    const struct read__value *t = target != OBSERVE__NONE ? &o->side[1].value[target] : NULL;
    observe__compare_values(g, t, o->p->mode, o->p->cross, l);
    bool broken = t != NULL && !read__is_finite(t) && !read__is_masked(t);
    if (g == NULL && o->p->finite && broken)
        l->flags |= OBSERVE__FLAGGED | OBSERVE__MEASURED;
    l->flags |= (uint16_t)(t != NULL ? role_of(o, n, 1, target) : role_of(o, n, 0, golden));
    l->path = t != NULL ? o->side[1].dump->rows.p[target].path
                        : o->p->golden_paths + o->side[0].dump->rows.p[golden].path;
    l->maker[0] = maker_of(o, 0, golden);
    l->maker[1] = maker_of(o, 1, target);
    bool made = (golden != OBSERVE__NONE && o->side[0].maker[golden] != OBSERVE__NONE) ||
                (target != OBSERVE__NONE && o->side[1].maker[target] != OBSERVE__NONE);
    if (!made && (l->flags & OBSERVE__IS_OUT) == 0)
        l->flags |= OBSERVE__ROOT;
    if (o->noise != NULL && golden != OBSERVE__NONE && o->noise[golden] > 0)
        l->noise = o->noise[golden];
}

static enum ms_rc fill_chunk(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    const struct observer *o = ctx;
    size_t end = (item + 1) * CHUNK_NODES;
    (void)worker;
    (void)err;
    for (size_t i = item * CHUNK_NODES; i < end && i < o->p->nodes.n; i++) {
        const struct observe__node *n = &o->p->nodes.p[i];
        for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++)
            fill_leaf(o, n, &o->p->leaves.p[k]);
    }
    return MS_OK;
}

/* Completes a leaf in order: the limit of keep_said depends on the order of leaves. */
static enum ms_rc settle_leaf(struct observer *o, uint32_t leaf, struct ms_err *err)
{
    struct observe__leaf *l = &o->p->leaves.p[leaf];
    MS_TRY(keep_said(o, l, err));
    if (!take_figures(o, l))
        return MS_OK;
    uint32_t *slot = ms_vec_push(&o->look);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = leaf;
    return MS_OK;
}

static enum ms_rc fill_leaves(struct observer *o, struct ms_err *err)
{
    size_t chunks = (o->p->nodes.n + CHUNK_NODES - 1) / CHUNK_NODES;
    MS_TRY(ms_pool_run(o->pool, chunks, fill_chunk, o, err));
    for (uint32_t i = 0; i < o->p->leaves.n; i++)
        MS_TRY(settle_leaf(o, i, err));
    return MS_OK;
}

/* ---- which rows make a leaf ---------------------------------------------- */

static enum ms_rc add_leaf(struct observer *o, uint32_t golden, uint32_t target, struct ms_err *err)
{
    struct observe__leaf *l = ms_vec_push(&o->p->leaves);
    if (l == NULL)
        return ms_no_memory(err);
    *l = (struct observe__leaf){.row = {golden, target}};
    return MS_OK;
}

/* Returns the row of the golden node with the path of the target row; mostly it is at the same
 * index. */
static uint32_t row_mate(const struct observer *o, const struct probe_node *g, uint32_t place,
                         uint32_t target)
{
    if (o->q.row_mate != NULL)
        return o->q.row_mate[target];
    uint32_t path = o->q.golden_path[o->side[1].dump->rows.p[target].path];
    if (path == MS_MAP_NONE || g->nrows == 0)
        return OBSERVE__NONE;
    const struct probe_row *rows = &o->side[0].dump->rows.p[g->first_row];
    if (place < g->nrows && rows[place].path == path)
        return g->first_row + place;
    for (uint32_t i = 0; i < g->nrows; i++) {
        if (rows[i].path == path)
            return g->first_row + i;
    }
    return OBSERVE__NONE;
}

/* Adds a leaf for each plain argument that the golden node alone has. */
static enum ms_rc add_unsaid(struct observer *o, const struct probe_node *g, uint32_t from,
                             struct ms_err *err)
{
    size_t end = o->p->leaves.n;
    for (uint32_t i = g->first_row; i < g->first_row + g->nrows; i++) {
        bool met = o->side[0].value[i].kind != READ__PLAIN ||
                   !observe__is_input(&o->side[0].dump->rows.p[i]);
        for (size_t k = from; k < end && !met; k++)
            met = o->p->leaves.p[k].row[0] == i;
        if (!met)
            MS_TRY(add_leaf(o, i, OBSERVE__NONE, err));
    }
    return MS_OK;
}

static const struct cmp_align_pair *find_mate(const struct cmp_align_pair *pairs, size_t n,
                                              uint32_t golden)
{
    for (size_t i = 0; i < n; i++) {
        if (pairs[i].golden == golden)
            return &pairs[i];
    }
    return NULL;
}

static size_t most_golden_rows(const struct observer *o, uint32_t target)
{
    const struct cmp_align_pair *pairs;
    size_t n = cmp_align_of(o->q.al, target, &pairs), most = 0;
    for (size_t i = 0; i < n; i++) {
        size_t rows = o->side[0].dump->nodes.p[pairs[i].golden].nrows;
        most = rows > most ? rows : most;
    }
    return most;
}

/* Collects the golden row of each row of a target node. A fused operator has several golden nodes;
 * a row without a partner in the first may have one in another. Rows that the golden side alone has
 * are left out. */
static void gather_rows(const struct observer *o, const struct observe__node *n,
                        struct cmp_align_row *rows, uint32_t *out)
{
    const struct cmp_align_pair *pairs;
    const struct probe_node *t = &o->side[1].dump->nodes.p[n->id[1]];
    size_t many = cmp_align_of(o->q.al, n->id[1], &pairs);
    memset(out, 0xff, t->nrows * sizeof *out);
    for (size_t k = 0; k <= many; k++) { /* the main partner comes first */
        const struct cmp_align_pair *p = k == 0 ? find_mate(pairs, many, n->id[0]) : &pairs[k - 1];
        size_t count = p != NULL ? cmp_align_rows(o->q.al, p, rows) : 0;
        for (size_t i = 0; i < count; i++) {
            uint32_t *slot =
                rows[i].target != CMP_ALIGN_NONE ? &out[rows[i].target - t->first_row] : NULL;
            if (slot != NULL && *slot == OBSERVE__NONE)
                *slot = rows[i].golden;
        }
    }
}

static enum ms_rc add_aligned(struct observer *o, const struct observe__node *n, struct ms_err *err)
{
    const struct probe_node *t = &o->side[1].dump->nodes.p[n->id[1]];
    size_t most = t->nrows + most_golden_rows(o, n->id[1]);
    struct cmp_align_row *rows = ms_alloc((most + 1) * sizeof *rows);
    uint32_t *golden = ms_alloc((t->nrows + 1) * sizeof *golden);
    bool fine = rows != NULL && golden != NULL;
    enum ms_rc rc = MS_OK;
    if (fine)
        gather_rows(o, n, rows, golden);
    for (uint32_t i = 0; fine && i < t->nrows && rc == MS_OK; i++)
        rc = add_leaf(o, golden[i], t->first_row + i, err);
    ms_free(rows);
    ms_free(golden);
    return fine ? rc : ms_no_memory(err);
}

/* Adds the tensors of a node that only the golden side has; they are needed to follow its data
 * flow. */
static enum ms_rc add_alone(struct observer *o, struct observe__node *n, struct ms_err *err)
{
    const struct probe_node *g = &o->side[0].dump->nodes.p[n->id[0]];
    for (uint32_t i = g->first_row; i < g->first_row + g->nrows; i++) {
        if (read__is_tensor(&o->side[0].value[i]))
            MS_TRY(add_leaf(o, i, OBSERVE__NONE, err));
    }
    n->nleaf = (uint32_t)o->p->leaves.n - n->leaf;
    return MS_OK;
}

static enum ms_rc add_leaves(struct observer *o, struct observe__node *n, struct ms_err *err)
{
    uint32_t golden = n->id[0];
    n->leaf = (uint32_t)o->p->leaves.n;
    if (n->id[1] == OBSERVE__NONE)
        return add_alone(o, n, err);
    if (o->q.al != NULL && golden != OBSERVE__NONE) {
        MS_TRY(add_aligned(o, n, err));
    } else {
        const struct probe_node *t = &o->side[1].dump->nodes.p[n->id[1]];
        const struct probe_node *g =
            golden != OBSERVE__NONE ? &o->side[0].dump->nodes.p[golden] : NULL;
        for (uint32_t i = 0; i < t->nrows; i++) {
            uint32_t row = t->first_row + i;
            uint32_t mate = g != NULL ? row_mate(o, g, i, row) : OBSERVE__NONE;
            MS_TRY(add_leaf(o, mate, row, err));
        }
        if (g != NULL && !o->p->cross && o->q.row_mate == NULL)
            MS_TRY(add_unsaid(o, g, n->leaf, err));
    }
    n->nleaf = (uint32_t)o->p->leaves.n - n->leaf;
    ms_assert(n->nleaf >= o->side[1].dump->nodes.p[n->id[1]].nrows);
    return MS_OK;
}

/* ---- tensor files -------------------------------------------------------- */

static enum ms_rc measure_files(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    struct observer *o = ctx;
    struct observe__leaf *l = &o->p->leaves.p[o->look.p[item]];
    struct observe__facts f;
    (void)worker;
    MS_TRY(observe__measure_files(o->c, l->row[0], l->row[1], &f, err));
    if (!f.measured)
        return MS_OK;
    l->flags |= OBSERVE__MEASURED;
    if (f.flagged)
        l->flags |= OBSERVE__FLAGGED;
    if (!may_be_laid_out(o, l) || l->e > f.e)
        l->e = (float)fmin(f.e, 1e30);
    return MS_OK;
}

/* Ignores elements that a mask of other activations zeroed on one side alone. */
static enum ms_rc measure_past_masks(struct observer *o, struct ms_err *err)
{
    for (size_t i = 0; i < o->p->nodes.n; i++) {
        const struct observe__node *n = &o->p->nodes.p[i];
        bool switches = n->dir == PROBE_BACKWARD && n->kind == PROBE_NODE_API &&
                        (o->p->ops.p[n->op].flags & OBSERVE__SWITCH);
        for (uint32_t k = n->leaf; switches && k < n->leaf + n->nleaf; k++) {
            struct observe__leaf *l = &o->p->leaves.p[k];
            struct observe__facts f;
            if ((l->flags & OBSERVE__IS_OUT) == 0 || !(l->e > 1e-5F) || l->row[0] == OBSERVE__NONE)
                continue;
            MS_TRY(observe__measure_files(o->c, l->row[0], l->row[1], &f, err));
            if (f.measured)
                l->e = (float)fmin(f.e_nz, 1e30);
        }
    }
    return MS_OK;
}

/* ---- observing ----------------------------------------------------------- */

static enum ms_rc index_figures(struct observer *o, struct ms_err *err)
{
    const struct cmp *c = o->c;
    size_t rows = c->rows.t.dump->rows.n;
    if (c->measured.figures.n == 0)
        return MS_OK;
    o->figure = ms_alloc((rows + 1) * sizeof *o->figure);
    if (o->figure == NULL)
        return ms_no_memory(err);
    memset(o->figure, 0xff, (rows + 1) * sizeof *o->figure);
    for (uint32_t i = 0; i < c->rows.pairs.n; i++) {
        if (c->rows.pairs.p[i].t != MS_MAP_NONE && c->rows.pairs.p[i].b != MS_MAP_NONE)
            o->figure[c->rows.t.order.p[c->rows.pairs.p[i].t]] = i;
    }
    return MS_OK;
}

static enum ms_rc index_noise(struct observer *o, struct ms_err *err)
{
    const struct cmp *c = o->c;
    if (c->measured.noise.n == 0)
        return MS_OK;
    o->noise = ms_calloc(c->rows.b.dump->rows.n + 1, sizeof *o->noise);
    if (o->noise == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < c->rows.b.order.n && i < c->measured.noise.n; i++) {
        double e = c->measured.noise.p[i];
        o->noise[c->rows.b.order.p[i]] = (float)(e > 0 ? e : 0);
    }
    return MS_OK;
}

static enum ms_rc trace_side(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    struct observer *o = ctx;
    (void)worker;
    return observe__trace_values(&o->side[item], err);
}

static enum ms_rc read_sides(struct observer *o, struct ms_err *err)
{
    for (unsigned s = 0; s < 2; s++) {
        MS_TRY(observe__borrow_values(&o->side[s], o->c->values != NULL ? &o->c->values[s] : NULL,
                                      o->pool, err));
        if (!o->side[s].dump->borrowed) /* the values have been parsed into memory */
            ms_file_release(&o->side[s].dump->file);
    }
    const struct probe_dump *t = o->side[1].dump;
    for (uint32_t i = 0; i < t->nodes.n; i++)
        o->p->has_apis |= t->nodes.p[i].kind == PROBE_NODE_API;
    return ms_pool_run(o->pool, 2, trace_side, o, err);
}

static bool are_other_frameworks(const struct probe_dump *a, const struct probe_dump *b)
{
    return a->framework != b->framework && a->framework != PROBE_FW_UNKNOWN &&
           b->framework != PROBE_FW_UNKNOWN;
}

/* Tells whether one side is a graph and the other the functions of the same framework. */
static bool compares_graph(const struct probe_dump *a, const struct probe_dump *b)
{
    return a->is_graph != b->is_graph && a->framework == b->framework;
}

static bool is_finite_side(const struct observe__side *s)
{
    for (uint32_t i = 0; i < s->dump->rows.n; i++) {
        if (!read__is_finite(&s->value[i]))
            return false;
    }
    return true;
}

/* Keeps the members of fused operators: the target nodes that run in place of a golden one. */
static enum ms_rc keep_members(struct observer *o, struct ms_err *err)
{
    const struct cmp_align_pair *pairs;
    for (size_t i = 0; o->q.al != NULL && i < o->p->nodes.n; i++) {
        const struct observe__node *n = &o->p->nodes.p[i];
        const uint32_t *list;
        if (n->id[0] == OBSERVE__NONE || n->id[1] == OBSERVE__NONE ||
            cmp_align_of(o->q.al, n->id[1], &pairs) == 0)
            continue;
        size_t many = cmp_align_members(o->q.al, pairs, false, &list);
        if (many == 0)
            continue;
        if (!ms_vec_reserve(&o->p->members, o->p->members.n + many + 2))
            return ms_no_memory(err);
        uint32_t *out = o->p->members.p + o->p->members.n;
        out[0] = n->id[1];
        out[1] = (uint32_t)many;
        memcpy(out + 2, list, many * sizeof *list);
        o->p->members.n += many + 2;
    }
    return MS_OK;
}

static bool is_nan(const struct observer *o, unsigned side, uint32_t row)
{
    return row != OBSERVE__NONE && isnan(o->side[side].value[row].stat[PROBE_STAT_NORM]);
}

/* Tells whether the forward pass of a side ends with NaN: the last result before the first gradient is. NaN is not
 * followed from maker to reader, so last_forward may be an earlier operator. */
static bool ends_with_nan(const struct observer *o, unsigned side)
{
    const struct probe_dump *d = o->side[side].dump;
    bool is_bad = false;
    for (uint32_t i = 0; i < d->rows.n; i++) {
        const struct probe_node *n = &d->nodes.p[d->rows.p[i].node];
        if (n->dir == PROBE_BACKWARD)
            break;
        if (observe__is_api(n, PROBE_FORWARD) && observe__is_output(&d->rows.p[i]) &&
            o->side[side].value[i].kind == READ__FLOAT)
            is_bad = is_nan(o, side, i);
    }
    return is_bad;
}

/* Finds the first node that makes NaN on both sides, if their forward passes end with NaN. */
static void find_broken(struct observer *o)
{
    struct observe__part *p = o->p;
    p->broken = OBSERVE__NONE;
    bool is_broken = p->cross && ends_with_nan(o, 0) && ends_with_nan(o, 1);
    for (uint32_t i = 0; is_broken && i < p->nodes.n && p->broken == OBSERVE__NONE; i++) {
        const struct observe__node *n = &p->nodes.p[i];
        for (uint32_t k = n->leaf; k < n->leaf + n->nleaf; k++) {
            const struct observe__leaf *l = &p->leaves.p[k];
            if ((l->flags & OBSERVE__IS_OUT) && is_nan(o, 0, l->row[0]) && is_nan(o, 1, l->row[1]))
                p->broken = i;
        }
    }
}

static enum ms_rc observe_dumps(struct observer *o, struct ms_err *err)
{
    struct observe__part *p = o->p;
    MS_TRY(read_sides(o, err));
    MS_TRY(observe__is_cross(o->c, &p->cross, err));
    p->frameworks = are_other_frameworks(o->side[0].dump, o->side[1].dump);
    p->is_graph = compares_graph(o->side[0].dump, o->side[1].dump);
    MS_TRY(observe__pair_nodes(&o->q, o->c, o->side, p->cross, o->pool, err));
    p->finite = p->cross && is_finite_side(&o->side[0]);
    ms_assert(o->side[0].value != NULL && o->side[1].value != NULL);
    if (!p->cross && p->mode != PROBE_MODE_MD5)
        MS_TRY(observe__compare_updates(p, o->side, err));
    if (p->cross && p->mode != PROBE_MODE_MD5) {
        MS_TRY(observe__find_lost(p, o->c, o->side, o->pool, err));
        MS_TRY(observe__weigh_updates(p, o->side, err));
        MS_TRY(observe__find_parting(p, &o->q, err));
        MS_TRY(observe__find_backward_parting(
            p, o->side, (const uint32_t *const[]){o->q.mate[0], o->q.mate[1]}, err));
    }
    MS_TRY(keep_names(o, 0, err));
    MS_TRY(keep_names(o, 1, err));
    ms_assert(p->names[0].n == o->side[0].dump->nodes.n);
    MS_TRY(keep_paths(o, err));
    MS_TRY(list_nodes(o, err));
    MS_TRY(find_forward(o, err));
    MS_TRY(mark_backward(o, err));
    mark_read(o);
    MS_TRY(index_figures(o, err));
    MS_TRY(index_noise(o, err));
    if (!ms_vec_reserve(&p->leaves, o->side[1].dump->rows.n + 1))
        return ms_no_memory(err);
    for (size_t i = 0; i < p->nodes.n; i++)
        MS_TRY(add_leaves(o, &p->nodes.p[i], err));
    MS_TRY(fill_leaves(o, err));
    find_broken(o);
    MS_TRY(ms_pool_run(o->pool, o->look.n, measure_files, o, err));
    if (p->mode == PROBE_MODE_TENSOR)
        MS_TRY(measure_past_masks(o, err));
    MS_TRY(observe__settle_voids(p, err));
    if (p->cross)
        MS_TRY(observe__settle_cross(p, err));
    MS_TRY(observe__count_batches(p, err));
    return keep_members(o, err);
}

enum ms_rc observe__observe_pair(struct observe__part *p, const struct cmp *c, struct ms_pool *pool,
                                 struct ms_err *err)
{
    struct observer o = {
        .p = p, .c = c, .pool = pool, .side = {{.dump = c->rows.b.dump}, {.dump = c->rows.t.dump}}};
    struct ms_span span = ms_span_begin("explain: observe");
    p->mode = c->set.mode;
    p->arena = ms_arena_new(PART_MAX);
    p->path[0] = ms_str_dup(ms_str_of(c->rows.b.dump->path));
    p->path[1] = ms_str_dup(ms_str_of(c->rows.t.dump->path));
    enum ms_rc rc = p->arena != NULL && p->path[0] != NULL && p->path[1] != NULL
                        ? observe_dumps(&o, err)
                        : ms_no_memory(err);
    for (unsigned s = 0; s < 2; s++)
        observe__side_free(&o.side[s]);
    observe__pairing_free(&o.q);
    ms_free(o.figure);
    ms_free(o.noise);
    ms_free(o.by_golden);
    ms_vec_free(&o.look);
    ms_span_end(&span);
    return rc;
}

void observe__part_free(struct observe__part *p)
{
    ms_map_free(&p->ops_by_name);
    ms_vec_free(&p->ops);
    ms_vec_free(&p->nodes);
    ms_vec_free(&p->leaves);
    for (unsigned s = 0; s < 2; s++) {
        ms_vec_free(&p->names[s]);
        ms_free(p->path[s]);
    }
    ms_vec_free(&p->by_target);
    ms_vec_free(&p->members);
    ms_vec_free(&p->paths);
    ms_vec_free(&p->texts);
    ms_arena_free(p->arena);
    ms_free(p);
}
