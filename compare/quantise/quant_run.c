/* SPDX-License-Identifier: MIT
 *
 * quant_run: see the header.
 */
#include "compare/quantise/quant_run.h"

#include "compare/measure/tensor_file.h"
#include "probe/base/mem.h"
#include "probe/dump/name.h"

#include <stdio.h>

#define NAMES_MAX ((size_t)1 << 28)
enum { FLOATS_MAX_BITS = 30, NAME_BYTES = 4096, PIECE = 512 };

/* ---- names -------------------------------------------------------------------------- */

static const struct {
    const char *op;
    enum quant_kind kind;
} multiplying[] = {
    {"linear", QUANT_LINEAR},      {"conv1d", QUANT_CONV},       {"conv2d", QUANT_CONV},
    {"conv3d", QUANT_CONV},        {"matmul", QUANT_MATMUL},     {"mm", QUANT_MATMUL},
    {"bmm", QUANT_MATMUL},         {"__matmul__", QUANT_MATMUL}, {"MatMul", QUANT_MATMUL},
    {"BatchMatMul", QUANT_MATMUL}, {"dense", QUANT_LINEAR},
};

static bool find_kind(const struct probe_name *n, enum quant_kind *kind)
{
    for (size_t i = 0; i < sizeof multiplying / sizeof *multiplying; i++) {
        if (ms_str_is(n->path, multiplying[i].op)) {
            *kind = multiplying[i].kind;
            return n->kind == PROBE_NODE_API && n->dir == PROBE_FORWARD;
        }
    }
    return false;
}

/* Returns the path of a module without its class: layers.0.fc of Module.layers.0.fc.Linear.forward.0. */
static struct ms_str module_path(struct ms_str name)
{
    const struct probe_name n = probe_name_parse(name);
    const int64_t dot = ms_str_rfind(n.path, '.');
    return dot >= 0 ? ms_str_sub(n.path, 0, (uint32_t)dot) : n.path;
}
static struct ms_str module_class(struct ms_str name)
{
    return probe_name_last(probe_name_parse(name).path);
}

/* Returns the module around a record; empty when there is none. */
static struct ms_str parent_of(const struct quant_run *r, struct ms_str name)
{
    const uint32_t at = r->has_tree ? probe_tree_find(&r->tree, name) : MS_MAP_NONE;
    if (at == MS_MAP_NONE || r->tree.nodes.p[at].parent == MS_MAP_NONE)
        return MS_STR_NONE;
    return probe_tree_name(&r->tree, r->tree.nodes.p[at].parent);
}

/* ---- rows ---------------------------------------------------------------------------- */

/* Returns the row of a record with a path; MS_MAP_NONE when there is none. */
static uint32_t row_at(const struct quant_run *r, uint32_t node, const char *path)
{
    const struct probe_node *n = &r->dump->nodes.p[node];
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows; i++) {
        const struct probe_row *row = &r->dump->rows.p[i];
        if ((row->flags & PROBE_LEAF_HAS_DATA_NAME) != 0 &&
            ms_str_is(probe_row_path(r->dump, row), path))
            return i;
    }
    return MS_MAP_NONE;
}
static uint32_t row_of(const struct quant_run *r, uint32_t node, const char *path,
                       const char *or_path)
{
    const uint32_t row = row_at(r, node, path);
    return row != MS_MAP_NONE ? row : row_at(r, node, or_path);
}

/* ---- layers --------------------------------------------------------------------------- */

static enum ms_rc name_layer(struct quant_run *r, struct quant_layer *l, struct ms_str parent,
                             struct ms_str op, struct ms_err *err)
{
    static const char *const words[] = {"linear", "conv", "matmul"};
    char key[NAME_BYTES];
    const struct ms_str path = parent.n != 0 ? module_path(parent) : MS_STR("-");
    for (unsigned i = 0;; i++) {
        const int64_t call = parent.n != 0 ? probe_name_parse(parent).call : 0;
        const int n = snprintf(key, sizeof key, "%.*s %lld %s %u", MS_STR_ARG(path),
                               (long long)call, words[l->kind], i);
        bool added = false;
        if (n < 0 || (size_t)n >= sizeof key)
            return ms_fail(err, MS_E_LIMIT, "%.100s...: the name is too long", key);
        const uint32_t at =
            ms_map_put_copy(&r->keys, (struct ms_str){key, (uint32_t)n}, r->arena, &added);
        if (at == MS_MAP_NONE)
            return ms_no_memory(err);
        if (added) {
            l->key = ms_map_key(&r->keys, at);
            l->name = parent.n != 0 && i == 0 && l->kind != QUANT_MATMUL ? path : op;
            return MS_OK;
        }
    }
}

static enum ms_rc add_layer(struct quant_run *r, struct quant_layer *l, struct ms_str parent,
                            struct ms_err *err)
{
    MS_TRY(name_layer(r, l, parent, l->node, err));
    struct quant_layer *slot = ms_vec_push(&r->layers);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = *l;
    return MS_OK;
}

static enum ms_rc add_operator(struct quant_run *r, uint32_t node, enum quant_kind kind,
                               struct ms_err *err)
{
    struct quant_layer l = {.kind = kind, .node = probe_node_name(r->dump, node), .record = node};
    const struct ms_str parent = parent_of(r, l.node);
    const uint32_t module = parent.n != 0 ? probe_node_find(r->dump, parent) : MS_MAP_NONE;
    l.x = row_of(r, node, "input.0", "input.input");
    l.w = row_of(r, node, "input.1", kind == QUANT_MATMUL ? "input.other" : "input.weight");
    l.bias = kind != QUANT_MATMUL ? row_of(r, node, "input.2", "input.bias") : MS_MAP_NONE;
    l.y = row_of(r, node, "output.0", "output");
    l.module_x = l.module_w = l.module_y = MS_MAP_NONE;
    if (module != MS_MAP_NONE && kind != QUANT_MATMUL) {
        l.module_x = row_of(r, module, "input.0", "input.input");
        l.module_w = row_at(r, module, "parameters.weight");
        l.module_y = row_of(r, module, "output.0", "output");
    }
    return add_layer(r, &l, parent, err);
}

static bool has_operators(const struct quant_run *r, struct ms_str module)
{
    for (size_t i = 0; i < r->layers.n; i++) {
        if (ms_str_eq(parent_of(r, r->layers.p[i].node), module))
            return true;
    }
    return false;
}

/* Adds a module with a weight whose operator was not recorded. */
static enum ms_rc add_module(struct quant_run *r, uint32_t node, struct ms_err *err)
{
    struct quant_layer l = {.node = probe_node_name(r->dump, node), .record = node};
    const struct ms_str class = module_class(l.node);
    const bool conv = ms_str_has(class, "Conv");
    l.w = row_at(r, node, "parameters.weight");
    if (l.w == MS_MAP_NONE ||
        !(conv || ms_str_has(class, "Linear") || ms_str_has(class, "Dense")) ||
        has_operators(r, l.node))
        return MS_OK;
    l.kind = conv ? QUANT_CONV : QUANT_LINEAR;
    l.x = row_of(r, node, "input.0", "input.input");
    l.y = row_of(r, node, "output.0", "output");
    l.bias = row_at(r, node, "parameters.bias");
    l.module_x = l.module_w = l.module_y = MS_MAP_NONE;
    return add_layer(r, &l, l.node, err);
}

/* ---- quantisers ------------------------------------------------------------------------ */

static bool is_quantiser(const struct probe_name *n)
{
    if (n->dir != PROBE_FORWARD)
        return false;
    if (n->kind == PROBE_NODE_API)
        return ms_str_has_folded(n->path, MS_STR("fake_quant"));
    const struct ms_str class = probe_name_last(n->path);
    return n->kind == PROBE_NODE_MODULE &&
           (ms_str_has_folded(class, MS_STR("fakequant")) ||
            ms_str_has_folded(class, MS_STR("fake_quant")) || ms_str_is(class, "TensorQuantizer"));
}

/* Of a quantising module and the operator in it, the operator is left out. */
static enum ms_rc add_quantiser(struct quant_run *r, uint32_t node, struct ms_err *err)
{
    const struct ms_str name = probe_node_name(r->dump, node);
    const struct probe_name n = probe_name_parse(name);
    const struct ms_str parent = parent_of(r, name);
    const struct probe_name around = probe_name_parse(parent);
    struct quantiser q = {.node = name};
    q.before = row_of(r, node, "input.0", "input.input");
    q.after = row_of(r, node, "output.0", "output");
    if (q.before == MS_MAP_NONE || q.after == MS_MAP_NONE ||
        (n.kind == PROBE_NODE_API && parent.n != 0 && is_quantiser(&around)))
        return MS_OK;
    const struct ms_str own = n.kind == PROBE_NODE_MODULE ? module_path(name) : name;
    q.is_weight = ms_str_has_folded(own, MS_STR("weight"));
    q.name = n.kind == PROBE_NODE_MODULE ? own : parent.n != 0 ? module_path(parent) : name;
    struct quantiser *slot = ms_vec_push(&r->quantisers);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = q;
    return MS_OK;
}

/* ---- the last output ---------------------------------------------------------------------- */

static bool has_elements(const struct quant_run *r, uint32_t row)
{
    struct probe_leaf leaf;
    uint64_t dim[PROBE_MAX_DIMS], count = 1;
    unsigned ndim;
    probe_row_leaf(r->dump, &r->dump->rows.p[row], &leaf);
    if (!probe_leaf_shape(&leaf, dim, PROBE_MAX_DIMS, &ndim))
        return false;
    for (unsigned d = 0; d < ndim && count <= 1; d++)
        count *= dim[d];
    return count > 1;
}

static void find_result(struct quant_run *r)
{
    r->result = MS_MAP_NONE;
    for (uint32_t i = (uint32_t)r->dump->nodes.n; i-- > 0 && r->result == MS_MAP_NONE;) {
        if (probe_name_parse(probe_node_name(r->dump, i)).dir != PROBE_FORWARD)
            continue;
        const uint32_t row = row_of(r, i, "output.0", "output");
        if (row != MS_MAP_NONE && has_elements(r, row))
            r->result = row;
    }
}

/* ---- opening -------------------------------------------------------------------------- */

static enum ms_rc find_layers(struct quant_run *r, struct ms_err *err)
{
    for (uint32_t i = 0; i < r->dump->nodes.n; i++) {
        const struct probe_name n = probe_name_parse(probe_node_name(r->dump, i));
        enum quant_kind kind;
        if (find_kind(&n, &kind))
            MS_TRY(add_operator(r, i, kind, err));
        else if (is_quantiser(&n))
            MS_TRY(add_quantiser(r, i, err));
    }
    for (uint32_t i = 0; i < r->dump->nodes.n; i++) {
        const struct probe_name n = probe_name_parse(probe_node_name(r->dump, i));
        if (n.kind == PROBE_NODE_MODULE && n.dir == PROBE_FORWARD)
            MS_TRY(add_module(r, i, err));
    }
    return MS_OK;
}

bool quant_is_dump(const char *path)
{
    struct probe_places places;
    if (ms_path_kind(path) != MS_KIND_DIR)
        return ms_str_ends(ms_str_of(path), MS_STR(".json"));
    if (probe_find(&places, path, NULL) != MS_OK)
        return false;
    probe_places_free(&places);
    return true;
}

static enum ms_rc open_files(struct quant_run *r, const struct probe_place *place,
                             struct ms_err *err)
{
    MS_TRY(probe_dump_open(&r->dump, place->json, 0, NULL, err));
    r->dir = ms_path_join(place->dir, "dump_tensor_data");
    char *tree = ms_path_join(place->dir, "construct.json");
    if (r->dir == NULL || tree == NULL) {
        ms_free(tree);
        return ms_no_memory(err);
    }
    struct ms_err why = {0};
    r->has_tree = probe_tree_open(&r->tree, tree, 0, &why) == MS_OK;
    ms_free(tree);
    return r->has_tree || why.rc == MS_E_NOTFOUND ? MS_OK : ms_fail(err, why.rc, "%s", why.msg);
}

enum ms_rc quant_run_open(struct quant_run *r, const struct probe_place *place, struct ms_err *err)
{
    *r = (struct quant_run){.arena = ms_arena_new(NAMES_MAX)};
    enum ms_rc rc = r->arena != NULL ? open_files(r, place, err) : ms_no_memory(err);
    if (rc == MS_OK) {
        find_result(r);
        rc = find_layers(r, err);
    }
    if (rc != MS_OK)
        quant_run_close(r);
    return rc;
}

void quant_run_close(struct quant_run *r)
{
    if (r->dump != NULL)
        probe_dump_close(r->dump);
    if (r->has_tree)
        probe_tree_close(&r->tree);
    ms_free(r->dir);
    ms_vec_free(&r->layers);
    ms_vec_free(&r->quantisers);
    ms_map_free(&r->keys);
    ms_arena_free(r->arena);
    *r = (struct quant_run){0};
}

void quant_watch_layer(struct quant_watch *w, size_t done, size_t all)
{
    const double share = ((double)w->dump + (double)done / (double)all) / (double)w->dumps;
    if (w->bar != NULL)
        ms_progress_show(w->bar, &(struct ms_pace){share, w->layers, MS_PACE_LAYERS});
    w->layers++;
}

/* ---- values ------------------------------------------------------------------------- */

void quant_to_floats(enum ms_dtype t, const void *p, size_t n, float *out)
{
    const size_t size = ms_dtype_size(t);
    double wide[PIECE];
    if (t == MS_DT_F32) {
        memcpy(out, p, n * size);
        return;
    }
    for (size_t at = 0; at < n; at += PIECE) {
        const size_t m = n - at < PIECE ? n - at : PIECE;
        ms_dtype_to_f64(t, (const char *)p + at * size, m, wide);
        for (size_t i = 0; i < m; i++)
            out[at + i] = (float)wide[i];
    }
}

static enum ms_rc copy_values(const struct probe_tensor *t, struct quant_values *v,
                              struct ms_err *err)
{
    char scratch[PIECE * 16];
    if (ms_dtype_kind(t->dtype) == MS_DTK_NONE || ms_dtype_kind(t->dtype) == MS_DTK_COMPLEX)
        return MS_OK;
    if (t->count >> FLOATS_MAX_BITS != 0)
        return ms_fail(err, MS_E_LIMIT, "%llu elements are more than this command holds in memory",
                       (unsigned long long)t->count);
    v->v = ms_alloc(((size_t)t->count + 1) * sizeof *v->v);
    if (v->v == NULL)
        return ms_no_memory(err);
    v->count = t->count;
    v->ndim = t->ndim;
    v->dtype = t->dtype;
    memcpy(v->shape, t->shape, t->ndim * sizeof *v->shape);
    for (uint64_t at = 0; at < t->count; at += PIECE) {
        const uint64_t n = t->count - at < PIECE ? t->count - at : PIECE;
        quant_to_floats(t->dtype, probe_tensor_elements(t, at, n, scratch), (size_t)n, v->v + at);
    }
    return MS_OK;
}

enum ms_rc quant_load(const struct quant_run *r, uint32_t row, struct quant_values *v,
                      struct ms_err *err)
{
    struct probe_leaf leaf;
    struct probe_tensor t;
    *v = (struct quant_values){0};
    if (row == MS_MAP_NONE)
        return MS_OK;
    probe_row_leaf(r->dump, &r->dump->rows.p[row], &leaf);
    MS_TRY(cmp__open_tensor(r->dump, r->dir, leaf.data_name, &t, err));
    const enum ms_rc rc = copy_values(&t, v, err);
    probe_tensor_close(&t);
    return rc;
}

void quant_values_free(struct quant_values *v)
{
    ms_free(v->v);
    *v = (struct quant_values){0};
}

/* ---- arguments ------------------------------------------------------------------------ */

static bool whole_number(const struct quant_run *r, const struct probe_row *row, int64_t *out)
{
    struct probe_leaf leaf;
    probe_row_leaf(r->dump, row, &leaf);
    return leaf.kind == PROBE_LEAF_VALUE && ms_str_i64(leaf.value_json, out);
}

unsigned quant_argument(const struct quant_run *r, const struct quant_layer *l, unsigned at,
                        const char *name, int64_t *out, unsigned most)
{
    const struct probe_node *n = &r->dump->nodes.p[l->record];
    char place[32], by_name[64];
    snprintf(place, sizeof place, "input.%u", at);
    snprintf(by_name, sizeof by_name, "input.%s", name);
    unsigned found = 0;
    for (uint32_t i = n->first_row; i < n->first_row + n->nrows && found < most; i++) {
        struct ms_str path = probe_row_path(r->dump, &r->dump->rows.p[i]);
        if (!ms_str_skip(&path, place) && !ms_str_skip(&path, by_name))
            continue;
        if ((path.n == 0 || path.p[0] == '.') && whole_number(r, &r->dump->rows.p[i], &out[found]))
            found++;
    }
    return found;
}
