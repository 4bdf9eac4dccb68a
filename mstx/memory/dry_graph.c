/* SPDX-License-Identifier: MIT
 *
 * dry_graph: see the header.
 */
#include "mstx/memory/dry_graph.h"

#include "mstx/conclude/time_use.h"

#include "probe/base/assert.h"
#include "probe/base/io.h"
#include "probe/dump/dump.h"
#include "probe/dump/tree.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DIMS_MAX = 16 };
static const uint64_t ELEMENTS_MAX = (uint64_t)1 << 48;

/* ---- what operators keep --------------------------------------------------------------------- */

/* As PyTorch's derivatives.yaml says. Operators that are not here keep their inputs. */
static const struct {
    const char *names; /* separated by spaces */
    uint32_t keeps;
} rules[] = {
    {"conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d",
     DRY_KEEPS_INPUTS | DRY_IS_CONVOLUTION},
    {"linear Linear matmul __matmul__ mm bmm addmm baddbmm einsum scaled_dot_product_attention mul "
     "__mul__ __rmul__ "
     "div "
     "__truediv__ bilinear",
     DRY_KEEPS_INPUTS},
    {"gelu silu mish hardswish softplus pow __pow__ abs log log_softmax_in leaky_relu elu_in norm "
     "layer_norm group_norm batch_norm instance_norm rms_norm square sin cos interpolate",
     DRY_KEEPS_INPUT},
    {"relu relu_ softmax log_softmax sigmoid tanh exp sqrt rsqrt elu hardtanh reciprocal",
     DRY_KEEPS_OUTPUT},
    {"max_pool1d max_pool2d max_pool3d", DRY_KEEPS_INPUT | DRY_KEEPS_INDEX},
    {"dropout dropout1d dropout2d dropout3d", DRY_KEEPS_MASK | DRY_IS_DROPOUT},
    {"masked_fill where", DRY_KEEPS_MASK},
    {"cross_entropy", DRY_KEEPS_HIDDEN},
    {"mse_loss l1_loss smooth_l1_loss binary_cross_entropy binary_cross_entropy_with_logits",
     DRY_KEEPS_INPUTS},
    {"add __add__ __radd__ sub __sub__ __rsub__ add_ __iadd__ sub_ __isub__", DRY_IS_SUM},
    {"view reshape transpose permute t chunk split unsqueeze squeeze expand flatten detach unbind "
     "narrow select __getitem__ swapaxes expand_as view_as unflatten movedim",
     DRY_IS_VIEW},
    {"cat stack mean sum contiguous to float half bfloat16 type clone pad neg __neg__ "
     "avg_pool2d adaptive_avg_pool2d adaptive_avg_pool1d avg_pool1d repeat repeat_interleave "
     "embedding nll_loss roll flip tril triu masked_fill_ zeros_like ones_like arange eq __eq__ ne "
     "gt "
     "lt ge le",
     0},
};

static bool has_word(const char *words, struct ms_str word)
{
    struct ms_str rest = ms_str_of(words), one;
    while (ms_str_split(&rest, ' ', &one)) {
        if (ms_str_eq(one, word))
            return true;
    }
    return false;
}

static uint32_t keeps_of(struct ms_str name, bool *known)
{
    uint32_t keeps = DRY_KEEPS_INPUTS;
    *known = false;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (has_word(rules[i].names, name)) {
            keeps = rules[i].keeps;
            *known = true;
            break;
        }
    }
    const bool in_place = (name.n > 1 && name.p[name.n - 1] == '_' && name.p[name.n - 2] != '_') ||
                          (ms_str_starts(name, MS_STR("__i")) && !ms_str_is(name, "__invert__"));
    *known |= in_place;
    return keeps | (in_place ? (uint32_t)DRY_IN_PLACE : 0);
}

/* ---- tensors ----------------------------------------------------------------------------------- */

struct tensor {
    uint64_t elements, bytes, first_dim, last_dim;
    bool is_float, needs_grad, is_constant;
    char key[160]; /* equal for tensors with equal contents */
    int key_n;
};

struct reader {
    struct dry_graph *g;
    struct probe_dump *dump;
    struct ms_map known; /* keys of tensors -> storage_of */
    MS_VEC(int32_t) storage_of;
    struct probe_tree tree;
    bool has_tree;
};

static bool read_tensor(struct tensor *t, const struct probe_leaf *leaf)
{
    uint64_t dim[DIMS_MAX];
    unsigned n;
    if (leaf->kind != PROBE_LEAF_TENSOR || !probe_leaf_shape(leaf, dim, DIMS_MAX, &n))
        return false;
    *t = (struct tensor){
        .elements = 1, .first_dim = n > 1 ? dim[0] : 1, .last_dim = n ? dim[n - 1] : 1};
    for (unsigned i = 0; i < n; i++) {
        if (dim[i] > ELEMENTS_MAX || (dim[i] != 0 && t->elements > ELEMENTS_MAX / dim[i]))
            return false;
        t->elements *= dim[i];
    }
    const size_t size = ms_dtype_size(leaf->dtype);
    t->bytes = t->elements * (size != 0 ? size : 4);
    t->is_float = ms_str_has(leaf->dtype_text, "loat") || ms_str_has(leaf->dtype_text, "omplex");
    t->needs_grad = leaf->requires_grad != 0;
    const struct probe_num *s = leaf->stat;
    t->is_constant = s[PROBE_STAT_MAX].v == s[PROBE_STAT_MIN].v;
    /* the order of elements changes the last digits of a norm */
    t->key_n = snprintf(t->key, sizeof t->key, "%d %llu %.9g %.9g %.4g", (int)leaf->dtype,
                        (unsigned long long)t->elements, s[PROBE_STAT_MAX].v, s[PROBE_STAT_MIN].v,
                        s[PROBE_STAT_NORM].v);
    return t->key_n > 0 && (size_t)t->key_n < sizeof t->key;
}

static enum ms_rc new_storage(struct reader *r, const struct tensor *t, int32_t maker,
                              int32_t *number, struct ms_err *err)
{
    struct dry_storage *s = ms_vec_push(&r->g->storages);
    if (s == NULL)
        return ms_no_memory(err);
    *s = (struct dry_storage){.bytes = t->bytes,
                              .first_dim = t->first_dim,
                              .last_dim = t->last_dim,
                              .maker = maker,
                              .last_use = maker,
                              .is_float = t->is_float,
                              .needs_grad = t->needs_grad && t->is_float};
    *number = (int32_t)(r->g->storages.n - 1);
    return MS_OK;
}

/* Remembers that tensors with these contents lie in a storage. */
static enum ms_rc know(struct reader *r, const struct tensor *t, int32_t storage,
                       struct ms_err *err)
{
    bool added;
    const uint32_t at = ms_map_put_copy(&r->known, (struct ms_str){t->key, (uint32_t)t->key_n},
                                        r->g->arena, &added);
    int32_t *slot = at != MS_MAP_NONE && added ? ms_vec_push(&r->storage_of) : NULL;
    if (at == MS_MAP_NONE || (added && slot == NULL))
        return ms_no_memory(err);
    r->storage_of.p[at] = storage;
    return MS_OK;
}

static int32_t find_storage(const struct reader *r, const struct tensor *t)
{
    const uint32_t at = ms_map_get(&r->known, (struct ms_str){t->key, (uint32_t)t->key_n});
    return at != MS_MAP_NONE ? r->storage_of.p[at] : DRY_NONE;
}

/* ---- parameters ---------------------------------------------------------------------------------- */

static enum ms_rc add_parameter(struct reader *r, struct ms_str module, const struct tensor *t,
                                struct ms_err *err)
{
    struct dry_graph *g = r->g;
    int32_t number;
    if (!t->is_constant && find_storage(r, t) >= 0)
        return MS_OK; /* tied, or of a module that is called again */
    struct dry_parameter *p = ms_vec_push(&g->parameters);
    if (p == NULL)
        return ms_no_memory(err);
    *p = (struct dry_parameter){ms_arena_str(g->arena, module), t->elements, t->bytes};
    g->parameter_elements += t->elements;
    g->parameter_bytes += t->bytes;
    g->largest_parameter = t->bytes > g->largest_parameter ? t->bytes : g->largest_parameter;
    MS_TRY(new_storage(r, t, DRY_NONE, &number, err));
    g->storages.p[number].is_parameter = true;
    return p->module.p != NULL ? know(r, t, number, err) : ms_no_memory(err);
}

/* "layers.0.fc.Linear" without the class. */
static struct ms_str module_of(struct ms_str path)
{
    const int64_t dot = ms_str_rfind(path, '.');
    return dot > 0 ? ms_str_sub(path, 0, (uint32_t)dot) : path;
}

static enum ms_rc read_parameters(struct reader *r, struct ms_map *done, struct ms_err *err)
{
    const struct probe_dump *d = r->dump;
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        const struct probe_node *node = &d->nodes.p[i];
        const struct probe_name name = probe_name_parse(probe_node_name(d, i));
        bool added = false;
        if (name.kind != PROBE_NODE_MODULE || name.dir != PROBE_FORWARD)
            continue;
        if (ms_map_put_copy(done, name.path, r->g->arena, &added) == MS_MAP_NONE)
            return ms_no_memory(err);
        for (uint32_t k = 0; k < node->nrows && added; k++) {
            const struct probe_row *row = &d->rows.p[node->first_row + k];
            struct probe_leaf leaf;
            struct tensor t;
            probe_row_leaf(d, row, &leaf);
            if (row->section == PROBE_SEC_PARAMETERS && read_tensor(&t, &leaf))
                MS_TRY(add_parameter(r, module_of(name.path), &t, err));
        }
    }
    return MS_OK;
}

/* ---- operators -------------------------------------------------------------------------------------- */

static enum ms_rc add_input(struct reader *r, struct dry_op *op, int32_t number,
                            const struct tensor *t, struct ms_err *err)
{
    int32_t storage = find_storage(r, t);
    if (storage < 0) {
        const bool is_found = t->needs_grad && t->is_float;
        MS_TRY(new_storage(r, t, is_found ? number : DRY_NONE, &storage, err));
        r->g->storages.p[storage].is_found = is_found;
        MS_TRY(know(r, t, storage, err));
    }
    if (r->g->batch == 0 && op->ins == 0 && !r->g->storages.p[storage].is_parameter)
        r->g->batch = t->first_dim;
    r->g->storages.p[storage].last_use = number;
    if (op->ins < DRY_INPUTS)
        op->in[op->ins++] = storage;
    return MS_OK;
}

static enum ms_rc add_output(struct reader *r, struct dry_op *op, int32_t number,
                             const struct tensor *t, struct ms_err *err)
{
    int32_t storage;
    if ((op->keeps & (DRY_IS_VIEW | DRY_IN_PLACE)) != 0 && op->ins != 0) {
        op->out = op->in[0];
        return know(r, t, op->in[0], err);
    }
    MS_TRY(new_storage(r, t, number, &storage, err));
    op->out = op->out == DRY_NONE ? storage : op->out;
    op->out_bytes += t->bytes;
    op->out_elements += t->elements;
    return know(r, t, storage, err);
}

static enum ms_rc read_op(struct reader *r, uint32_t index, struct dry_op *op, int32_t number,
                          struct ms_err *err)
{
    const struct probe_dump *d = r->dump;
    const struct probe_node *node = &d->nodes.p[index];
    uint64_t first = 0;
    for (uint32_t k = 0; k < node->nrows; k++) {
        const struct probe_row *row = &d->rows.p[node->first_row + k];
        struct probe_leaf leaf;
        struct tensor t;
        probe_row_leaf(d, row, &leaf);
        if (!read_tensor(&t, &leaf))
            continue;
        if (row->section == PROBE_SEC_OUTPUT) {
            MS_TRY(add_output(r, op, number, &t, err));
        } else if (row->section == PROBE_SEC_INPUT_ARGS || row->section == PROBE_SEC_INPUT_KWARGS) {
            first = first == 0 ? t.bytes : first;
            MS_TRY(add_input(r, op, number, &t, err));
        }
    }
    if (op->ins < 2 && has_word("mul __mul__ __rmul__ div __truediv__", op->name))
        op->keeps &= ~(uint32_t)DRY_KEEPS_INPUTS; /* the other factor is a number */
    op->hidden = (op->keeps & DRY_KEEPS_HIDDEN) != 0  ? first
                 : (op->keeps & DRY_KEEPS_MASK) != 0  ? op->out_elements
                 : (op->keeps & DRY_KEEPS_INDEX) != 0 ? 8 * op->out_elements
                                                      : 0;
    return MS_OK;
}

/* Number of the layer in a path of modules, "b.11.attn" is 11; -1: none. */
static int64_t layer_of(struct ms_str path)
{
    struct ms_str part;
    uint64_t v;
    while (ms_str_split(&path, '.', &part)) {
        if (ms_str_all_digits(part) && ms_str_u64(part, &v) && v < 100000)
            return (int64_t)v;
    }
    return -1;
}

/* Finds the module around an operator, which construct.json says. */
static struct ms_str module_around(const struct reader *r, uint32_t index)
{
    const uint32_t at =
        r->has_tree ? probe_tree_find(&r->tree, probe_node_name(r->dump, index)) : MS_MAP_NONE;
    if (at == MS_MAP_NONE || r->tree.nodes.p[at].parent == MS_MAP_NONE)
        return MS_STR("");
    const struct probe_name up =
        probe_name_parse(probe_tree_name(&r->tree, r->tree.nodes.p[at].parent));
    return up.kind == PROBE_NODE_MODULE ? module_of(up.path) : MS_STR("");
}

static enum ms_rc add_op(struct reader *r, uint32_t index, struct ms_str path, struct ms_err *err)
{
    const struct ms_str module = module_around(r, index);
    bool known;
    struct dry_op op = {.name = path, .out = DRY_NONE, .keeps = keeps_of(path, &known)};
    const int32_t number = (int32_t)r->g->ops.n;
    op.layer = layer_of(module);
    op.module = ms_map_put_copy(&r->g->modules, module, r->g->arena, NULL);
    op.name = ms_arena_str(r->g->arena, path);
    if (op.module == MS_MAP_NONE || op.name.p == NULL)
        return ms_no_memory(err);
    MS_TRY(read_op(r, index, &op, number, err));
    const bool matters = op.out >= 0 && r->g->storages.p[op.out].needs_grad;
    if (!known && matters && ms_map_put(&r->g->unknown_ops, op.name, NULL) == MS_MAP_NONE)
        return ms_no_memory(err);
    op.is_attention = ms_str_is(path, "softmax") || ms_str_is(path, "scaled_dot_product_attention");
    struct dry_op *slot = ms_vec_push(&r->g->ops);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = op;
    return MS_OK;
}

/* Marks the operators of a layer as computed again in the backward. */
static void mark_layer(struct dry_graph *g, int64_t layer)
{
    for (size_t i = 0; i < g->ops.n; i++)
        g->ops.p[i].is_recomputed |= g->ops.p[i].layer == layer;
}

/* Reads the operators of the forward: those before the first backward record. A forward record of a
 * module behind that is of a layer whose backward computes it again. */
static enum ms_rc read_ops(struct reader *r, struct ms_err *err)
{
    const struct probe_dump *d = r->dump;
    bool in_backward = false;
    int64_t last = -1;
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        const struct probe_name name = probe_name_parse(probe_node_name(d, i));
        in_backward |= name.dir == PROBE_BACKWARD;
        if (name.kind != PROBE_NODE_API || name.dir != PROBE_FORWARD)
            continue;
        const int64_t layer = in_backward ? layer_of(module_around(r, i)) : -1;
        if (!in_backward)
            MS_TRY(add_op(r, i, name.path, err));
        else if (layer >= 0 && layer != last)
            mark_layer(r->g, layer);
        last = layer;
    }
    return MS_OK;
}

/* ---- what the dump does not show ------------------------------------------------------------------ */

/* Tells whether an operator of the forward lies in a module or in one inside of it. */
static bool has_op(const struct dry_graph *g, struct ms_str module)
{
    for (uint32_t i = 1; i < g->modules.keys.n; i++) {
        const struct ms_str of = ms_map_key(&g->modules, i);
        if (ms_str_starts(of, module) && (of.n == module.n || of.p[module.n] == '.'))
            return true;
    }
    return false;
}

/* Finds modules that ran without an operator of theirs, as those do whose function is not one of
 * those that are dumped. */
static enum ms_rc find_silent(struct reader *r, struct ms_err *err)
{
    static const char *const quiet[] = {"Identity", "Flatten", "Unflatten", "Dropout"};
    const struct probe_dump *d = r->dump;
    for (uint32_t i = 0; i < d->nodes.n && r->has_tree; i++) {
        const struct probe_name name = probe_name_parse(probe_node_name(d, i));
        if (name.dir == PROBE_BACKWARD)
            break;
        bool skip = name.kind != PROBE_NODE_MODULE || has_op(r->g, module_of(name.path));
        for (size_t k = 0; k < sizeof quiet / sizeof *quiet && !skip; k++)
            skip = ms_str_is(probe_name_last(name.path), quiet[k]);
        if (!skip &&
            ms_map_put_copy(&r->g->silent_modules, name.path, r->g->arena, NULL) == MS_MAP_NONE)
            return ms_no_memory(err);
    }
    return MS_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------- */

/* The hidden size is the last dimension that outputs have most often. */
static void find_hidden_size(struct dry_graph *g)
{
    uint64_t best = 0;
    for (size_t i = 0; i < g->storages.n; i++) {
        uint64_t n = 0;
        if (g->storages.p[i].maker == DRY_NONE || g->storages.p[i].last_dim <= 1)
            continue;
        for (size_t k = 0; k < g->storages.n && k < 4096; k++)
            n += g->storages.p[k].maker != DRY_NONE &&
                 g->storages.p[k].last_dim == g->storages.p[i].last_dim;
        if (n > best) {
            best = n;
            g->hidden_size = g->storages.p[i].last_dim;
        }
        if (i > 4096)
            break;
    }
}

static void find_layers(struct dry_graph *g)
{
    g->layers = 1;
    for (size_t i = 0; i < g->parameters.n; i++) {
        const int64_t layer = layer_of(g->parameters.p[i].module);
        if (layer + 1 > (int64_t)g->layers)
            g->layers = (uint64_t)layer + 1;
    }
}

static enum ms_rc read_graph(struct reader *r, const char *path, struct ms_err *err)
{
    struct ms_map done = {0};
    enum ms_rc rc = read_parameters(r, &done, err);
    ms_map_free(&done);
    MS_TRY(rc);
    MS_TRY(read_ops(r, err));
    if (r->g->ops.n == 0)
        return ms_fail(err, MS_E_FORMAT,
                       "%s: has no operators with shapes; dump one step with task statistics and "
                       "level mix",
                       path);
    if (r->g->parameters.n == 0)
        return ms_fail(err, MS_E_FORMAT,
                       "%s: has no parameters of modules; dump one step with level mix", path);
    MS_TRY(find_silent(r, err));
    find_hidden_size(r->g);
    find_layers(r->g);
    struct mstx_flops flops;
    if (mstx_flops_of_dump(&flops, path, NULL) == MS_OK) {
        r->g->flops_model = flops.model;
        r->g->flops_machine = flops.machine;
    }
    return MS_OK;
}

/* Opens construct.json beside the dump; without it no operator knows its module. */
static enum ms_rc open_tree(struct reader *r, const char *path, struct ms_err *err)
{
    const struct ms_str dir = ms_path_dir(path);
    struct ms_buf b = {.max = 1 << 16};
    struct ms_err none = {0};
    ms_buf_printf(&b, "%.*s/construct.json", MS_STR_ARG(dir));
    enum ms_rc rc = ms_buf_check(&b, err);
    if (rc == MS_OK) {
        rc = probe_tree_open(&r->tree, ms_buf_z(&b), PROBE_TREE_TOLERANT, &none);
        r->has_tree = rc == MS_OK;
        rc = rc == MS_E_NOMEM ? ms_no_memory(err) : MS_OK;
    }
    ms_buf_free(&b);
    return rc;
}

enum ms_rc mstx__dry_graph_read(struct dry_graph *g, const char *path, struct ms_err *err)
{
    struct reader r = {.g = g};
    *g = (struct dry_graph){.arena = ms_arena_new((size_t)4 << 30)};
    if (g->arena == NULL || ms_map_put(&g->modules, MS_STR(""), NULL) != 0)
        return ms_no_memory(err);
    MS_TRY(probe_dump_open(&r.dump, path, PROBE_OPEN_TOLERANT, NULL, err));
    enum ms_rc rc = open_tree(&r, path, err);
    if (rc == MS_OK)
        rc = read_graph(&r, path, err);
    if (r.has_tree)
        probe_tree_close(&r.tree);
    probe_dump_close(r.dump);
    ms_map_free(&r.known);
    ms_vec_free(&r.storage_of);
    return rc;
}

void mstx__dry_graph_free(struct dry_graph *g)
{
    ms_vec_free(&g->ops);
    ms_vec_free(&g->storages);
    ms_vec_free(&g->parameters);
    ms_map_free(&g->modules);
    ms_map_free(&g->unknown_ops);
    ms_map_free(&g->silent_modules);
    ms_arena_free(g->arena);
    g->arena = NULL;
}
