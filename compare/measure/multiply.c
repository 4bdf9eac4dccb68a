/* SPDX-License-Identifier: MIT
 *
 * multiply: reads the file of --config and computes the products that it asks for.
 *
 *     right_matmul:
 *       target_tensor_map: {matrix.npy: [data_name.pt, ...]}
 *       golden_tensor_map: ...
 *     left_matmul: ...
 *     left_right_matmul:
 *       left_target_tensor_map: ...         and right_..., and both for the golden side
 *
 * These steps are applied to a tensor in order, each with at most one matrix. Axes of length
 * 1 are removed first; the last two axes are those of the product, the others are batches.
 */
#include "compare/measure/multiply.h"
#include "compare/measure/tensor_file.h"

#include "compare/measure/metric.h"
#include "compare/pair/names.h"
#include "compare/read/yaml_doc.h"

#define MATRIX_MAX   ((size_t)10 << 30)
#define ELEMENTS_MAX ((uint64_t)1 << 28)
enum { STEPS = 4 };

static const struct {
    const char *section, *map[2]; /* golden, target */
    bool left;
} steps[STEPS] = {
    {"right_matmul", {"golden_tensor_map", "target_tensor_map"}, false},
    {"left_matmul", {"golden_tensor_map", "target_tensor_map"}, true},
    {"left_right_matmul", {"left_golden_tensor_map", "left_target_tensor_map"}, true},
    {"left_right_matmul", {"right_golden_tensor_map", "right_target_tensor_map"}, false},
};

struct cmp__factors {
    struct {
        struct ms_map names; /* data files */
        MS_VEC(struct ms_str) matrix;
    } of[2][STEPS];
    struct ms_arena *arena;
};

/* ---- the file ------------------------------------------------------------------ */

struct reader {
    struct cmp__factors *f;
    struct cmp_rows *c;
    const char *file;
    struct ms_map tried; /* matrices that were opened to check that they are readable */
};

/* Sets the matrix of a data file; for a name given twice the last matrix wins. */
static enum ms_rc put_matrix(struct reader *r, bool target, size_t step, struct ms_str name,
                             struct ms_str matrix, struct ms_err *err)
{
    bool added;
    uint32_t id = ms_map_put_copy(&r->f->of[target][step].names, name, r->f->arena, &added);
    struct ms_str *slot = id == MS_MAP_NONE ? NULL
                          : added           ? ms_vec_push(&r->f->of[target][step].matrix)
                                            : &r->f->of[target][step].matrix.p[id];
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = ms_arena_str(r->f->arena, matrix);
    return slot->p != NULL ? MS_OK : ms_arena_fail(r->f->arena, err);
}

static enum ms_rc take_names(struct reader *r, bool target, size_t step, yaml_document_t *doc,
                             const yaml_node_pair_t *pair, struct ms_err *err)
{
    struct ms_str matrix, name;
    yaml_node_t *list = yaml_document_get_node(doc, pair->value);
    MS_TRY(cmp__yaml_scalar(yaml_document_get_node(doc, pair->key), &matrix, err));
    if (list == NULL || list->type != YAML_SEQUENCE_NODE)
        return cmp__problem(&r->c->problems, err,
                            "%s: %.*s: expected a list of data files; left out", r->file,
                            MS_STR_ARG(matrix));
    for (yaml_node_item_t *i = list->data.sequence.items.start; i < list->data.sequence.items.top;
         i++) {
        MS_TRY(cmp__yaml_scalar(yaml_document_get_node(doc, *i), &name, err));
        MS_TRY(put_matrix(r, target, step, name, matrix, err));
    }
    return MS_OK;
}

/* Returns the step of a section and map, or STEPS when there is none. */
static size_t step_of(struct ms_str section, struct ms_str map, bool *target)
{
    for (size_t i = 0; i < STEPS; i++) {
        for (int side = 0; side < 2; side++) {
            *target = side != 0;
            if (ms_str_is(section, steps[i].section) && ms_str_is(map, steps[i].map[side]))
                return i;
        }
    }
    return STEPS;
}

static bool is_section(struct ms_str name)
{
    for (size_t i = 0; i < STEPS; i++) {
        if (ms_str_is(name, steps[i].section))
            return true;
    }
    return false;
}

static enum ms_rc take_map(struct reader *r, struct ms_str section, yaml_document_t *doc,
                           const yaml_node_pair_t *pair, struct ms_err *err)
{
    struct ms_str name;
    bool target;
    yaml_node_t *map = yaml_document_get_node(doc, pair->value);
    MS_TRY(cmp__yaml_scalar(yaml_document_get_node(doc, pair->key), &name, err));
    size_t step = step_of(section, name, &target);
    if (step == STEPS)
        return cmp__problem(&r->c->problems, err, "%s: %.*s has no '%.*s'; left out", r->file,
                            MS_STR_ARG(section), MS_STR_ARG(name));
    if (map == NULL || map->type != YAML_MAPPING_NODE) {
        struct ms_str text;
        if (map != NULL && cmp__yaml_scalar(map, &text, NULL) == MS_OK)
            return MS_OK; /* the map is empty */
        return cmp__yaml_refuse(map, "lines 'matrix: [data file, ...]'", err);
    }
    for (yaml_node_pair_t *i = map->data.mapping.pairs.start; i < map->data.mapping.pairs.top; i++)
        MS_TRY(take_names(r, target, step, doc, i, err));
    return MS_OK;
}

static enum ms_rc take_section(struct reader *r, yaml_document_t *doc, const yaml_node_pair_t *pair,
                               struct ms_err *err)
{
    struct ms_str name;
    yaml_node_t *maps = yaml_document_get_node(doc, pair->value);
    MS_TRY(cmp__yaml_scalar(yaml_document_get_node(doc, pair->key), &name, err));
    if (!is_section(name))
        return cmp__problem(&r->c->problems, err,
                            "%s: there is no '%.*s', but right_matmul, left_matmul and "
                            "left_right_matmul",
                            r->file, MS_STR_ARG(name));
    if (maps == NULL || maps->type != YAML_MAPPING_NODE)
        return cmp__yaml_refuse(maps, "maps such as target_tensor_map", err);
    for (yaml_node_pair_t *i = maps->data.mapping.pairs.start; i < maps->data.mapping.pairs.top;
         i++)
        MS_TRY(take_map(r, name, doc, i, err));
    return MS_OK;
}

static enum ms_rc take_factors(void *into, yaml_document_t *doc, yaml_node_t *root,
                               struct ms_err *err)
{
    if (root->type != YAML_MAPPING_NODE)
        return cmp__yaml_refuse(root, "right_matmul, left_matmul or left_right_matmul", err);
    for (yaml_node_pair_t *i = root->data.mapping.pairs.start; i < root->data.mapping.pairs.top;
         i++)
        MS_TRY(take_section(into, doc, i, err));
    return MS_OK;
}

static enum ms_rc factors_new(struct reader *r, struct ms_err *err)
{
    r->f = ms_calloc(1, sizeof *r->f);
    if (r->f == NULL)
        return ms_no_memory(err);
    r->f->arena = ms_arena_new(CMP__YAML_MAX);
    return r->f->arena != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc factors_done(struct reader *r, struct cmp__factors **out, enum ms_rc rc)
{
    ms_map_free(&r->tried);
    if (rc != MS_OK)
        cmp__factors_free(r->f);
    *out = rc == MS_OK ? r->f : NULL;
    return rc;
}

enum ms_rc cmp__factors_parse(struct cmp__factors **f, struct cmp_rows *c, const char *name,
                              struct ms_str text, struct ms_err *err)
{
    struct reader r = {.c = c, .file = name};
    enum ms_rc rc = factors_new(&r, err);
    if (rc == MS_OK)
        rc = cmp__yaml_load(name, text, take_factors, &r, err);
    return factors_done(&r, f, rc);
}

void cmp__factors_free(struct cmp__factors *f)
{
    if (f == NULL)
        return;
    for (size_t i = 0; i < 2 * STEPS; i++) {
        ms_map_free(&f->of[i / STEPS][i % STEPS].names);
        ms_vec_free(&f->of[i / STEPS][i % STEPS].matrix);
    }
    ms_arena_free(f->arena);
    ms_free(f);
}

/* ---- names and matrices that do not exist --------------------------------------- */

static enum ms_rc check_matrices(struct reader *r, bool target, size_t step, struct ms_err *err)
{
    for (size_t i = 0; i < r->f->of[target][step].matrix.n; i++) {
        struct probe_tensor t;
        struct ms_err why = {0};
        bool added = false;
        const struct ms_str path = r->f->of[target][step].matrix.p[i]; /* ends with a NUL */
        if (ms_map_put(&r->tried, path, &added) == MS_MAP_NONE)
            return ms_no_memory(err);
        if (!added)
            continue;
        if (probe_tensor_open(&t, path.p, MATRIX_MAX, &why) == MS_OK)
            probe_tensor_close(&t);
        else
            MS_TRY(cmp__problem(&r->c->problems, err, "%s: %s", r->file, why.msg));
    }
    return MS_OK;
}

static enum ms_rc list_data(const struct cmp__side *s, struct ms_map *names, struct ms_err *err)
{
    for (uint32_t i = 0; i < s->order.n; i++) {
        struct ms_str name = cmp__data_name(s, i);
        if (name.n != 0 && ms_map_put(names, name, NULL) == MS_MAP_NONE)
            return ms_no_memory(err);
    }
    return MS_OK;
}

/* Reports an unknown data file with a suggestion. Names of the dump do not end with a NUL, so they
 * are copied. */
static enum ms_rc tell_unknown(struct cmp__unknown *u, const struct ms_map *data,
                               struct ms_str name, struct ms_err *err)
{
    struct ms_arena *arena = ms_arena_new(MATRIX_MAX);
    /* a copy in the arena of the factors, which ends with a NUL */
    struct ms_near near = {.word = name.p};
    enum ms_rc rc = arena != NULL ? MS_OK : ms_no_memory(err);
    for (uint32_t i = 0; i < data->keys.n && rc == MS_OK && cmp__unknown_is_reported(u); i++) {
        struct ms_str copy = ms_arena_str(arena, ms_map_key(data, i));
        if (copy.p == NULL)
            rc = ms_arena_fail(arena, err);
        else
            ms_near_offer(&near, copy.p);
    }
    if (rc == MS_OK)
        rc = cmp__unknown_report(u, name, near.best, err);
    ms_arena_free(arena);
    return rc;
}

static enum ms_rc check_side(struct reader *r, bool target, struct ms_err *err)
{
    struct ms_map data = {0};
    struct cmp__unknown u = {&r->c->problems, r->file, target ? "target" : "golden side",
                             "data file", 0};
    enum ms_rc rc = list_data(target ? &r->c->t : &r->c->b, &data, err);
    for (size_t step = 0; step < STEPS && rc == MS_OK; step++) {
        const struct ms_map *names = &r->f->of[target][step].names;
        for (uint32_t i = 0; i < names->keys.n && rc == MS_OK; i++) {
            if (ms_map_get(&data, ms_map_key(names, i)) == MS_MAP_NONE)
                rc = tell_unknown(&u, &data, ms_map_key(names, i), err);
        }
        if (rc == MS_OK)
            rc = check_matrices(r, target, step, err);
    }
    ms_map_free(&data);
    return rc == MS_OK ? cmp__unknown_end(&u, err) : rc;
}

enum ms_rc cmp__factors_read(struct cmp__factors **f, struct cmp_rows *c, struct ms_err *err)
{
    struct reader r = {.c = c, .file = c->set->conf.config};
    enum ms_rc rc = factors_new(&r, err);
    if (rc == MS_OK)
        rc = cmp__yaml_load_file(r.file, take_factors, &r, err);
    if (rc == MS_OK)
        rc = check_side(&r, true, err);
    if (rc == MS_OK)
        rc = check_side(&r, false, err);
    return factors_done(&r, f, rc);
}

/* ---- products ---------------------------------------------------------------------- */

static const struct ms_str *matrix_of(const struct cmp__factors *f, bool target, size_t step,
                                      struct ms_str data_name)
{
    uint32_t id = ms_map_get(&f->of[target][step].names, data_name);
    return id != MS_MAP_NONE ? &f->of[target][step].matrix.p[id] : NULL;
}

static bool is_multiplied(const struct cmp__factors *f, bool target, struct ms_str data_name)
{
    for (size_t i = 0; i < STEPS; i++) {
        if (matrix_of(f, target, i, data_name) != NULL)
            return true;
    }
    return false;
}

bool cmp__has_factors(const struct cmp__factors *f, const struct cmp_rows *c,
                      const struct cmp__pair *p)
{
    return f != NULL && (is_multiplied(f, true, cmp__data_name(&c->t, p->t)) ||
                         is_multiplied(f, false, cmp__data_name(&c->b, p->b)));
}

/* Intermediate values in C order, without axes of length 1 except those of a matrix. */
struct array {
    uint32_t ndim;
    uint64_t shape[PROBE_MAX_DIMS], count;
    double *v;
    bool single, half; /* result type: float32, float16 */
};

static enum ms_rc take_values(struct array *a, const struct probe_tensor *t, bool squeeze,
                              struct ms_err *err)
{
    enum { STRETCH = 4096 };
    double gathered[2 * STRETCH]; /* room for the largest element type */
    *a = (struct array){.count = t->count,
                        .single = cmp_facts_single(t->dtype, t->dtype),
                        .half = t->dtype == MS_DT_F16};
    for (uint32_t i = 0; i < t->ndim; i++) {
        if (!squeeze || t->shape[i] != 1)
            a->shape[a->ndim++] = t->shape[i];
    }
    if (t->count > ELEMENTS_MAX)
        return ms_fail(err, MS_E_LIMIT, "too many elements to multiply");
    a->v = ms_alloc((size_t)t->count * sizeof *a->v + 1);
    if (a->v == NULL)
        return ms_no_memory(err);
    for (uint64_t at = 0; at < t->count; at += STRETCH) {
        size_t n = (size_t)(t->count - at < STRETCH ? t->count - at : STRETCH);
        ms_dtype_to_f64(t->dtype, probe_tensor_elements(t, at, n, gathered), n, a->v + at);
    }
    return MS_OK;
}

/* Dimensions of the product of the batches of x with a matrix. */
struct shape_of_product {
    uint64_t batches, rows, inner, columns;
};

static bool fit_shapes(const struct array *x, const struct array *m, bool left, struct array *out,
                       struct shape_of_product *s)
{
    bool vector = x->ndim == 1;
    if (x->ndim == 0 || m->ndim != 2 || x->count == 0)
        return false;
    uint64_t last = x->shape[x->ndim - 1], before = vector ? 1 : x->shape[x->ndim - 2];
    *out = (struct array){.ndim = x->ndim};
    memcpy(out->shape, x->shape, sizeof out->shape);
    if (left && vector) /* x is a column */
        *s = (struct shape_of_product){1, m->shape[0], last, 1};
    else if (left)
        *s = (struct shape_of_product){x->count / (last * before), m->shape[0], before, last};
    else
        *s = (struct shape_of_product){1, x->count / last, last, m->shape[1]};
    if (s->inner != (left ? m->shape[1] : m->shape[0]))
        return false;
    out->shape[left && !vector ? x->ndim - 2 : x->ndim - 1] = left ? s->rows : s->columns;
    uint64_t all;
    if (__builtin_mul_overflow(s->batches * s->rows, s->columns, &all) || all > ELEMENTS_MAX)
        return false;
    out->count = all;
    return true;
}

static void multiply_arrays(const double *a, const double *b, const struct shape_of_product *s,
                            double *out)
{
    for (uint64_t i = 0; i < s->rows; i++) {
        double *row = out + i * s->columns;
        memset(row, 0, (size_t)s->columns * sizeof *row);
        for (uint64_t k = 0; k < s->inner; k++) {
            const double x = a[i * s->inner + k];
            const double *y = b + k * s->columns;
            for (uint64_t j = 0; j < s->columns; j++)
                row[j] += x * y[j];
        }
    }
}

static enum ms_rc multiply(struct array *x, const struct array *m, bool left, struct ms_err *err)
{
    struct array out;
    struct shape_of_product s;
    if (!fit_shapes(x, m, left, &out, &s))
        return ms_fail(err, MS_E_ARG, "does not fit the tensor");
    out.single = x->single && m->single;
    out.half = x->half && m->half;
    out.v = ms_alloc((size_t)out.count * sizeof *out.v + 1);
    if (out.v == NULL)
        return ms_no_memory(err);
    for (uint64_t i = 0; i < s.batches; i++)
        multiply_arrays(left ? m->v : x->v, left ? x->v + i * s.inner * s.columns : m->v, &s,
                        out.v + i * s.rows * s.columns);
    for (uint64_t i = 0; i < out.count && out.single; i++)
        out.v[i] = ms_dtype_round(out.half ? MS_DT_F16 : MS_DT_F32, out.v[i]);
    ms_free(x->v);
    *x = out;
    return MS_OK;
}

static enum ms_rc multiply_by_file(struct array *x, struct ms_str path, bool left,
                                   struct ms_err *err)
{
    struct probe_tensor t;
    struct array m = {0};
    struct ms_err why = {0};
    MS_TRY(probe_tensor_open(&t, path.p, MATRIX_MAX, err));
    enum ms_rc rc = take_values(&m, &t, false, &why);
    probe_tensor_close(&t);
    if (rc == MS_OK)
        rc = multiply(x, &m, left, &why);
    ms_free(m.v);
    if (rc == MS_E_NOMEM)
        return ms_no_memory(err);
    return rc == MS_OK ? MS_OK : ms_fail(err, rc, "%s: %s", path.p, why.msg);
}

/* Applies the steps in order. The official tool skips a matrix that cannot be used. */
static enum ms_rc multiply_all(const struct cmp__factors *f, const struct cmp_rules *rules,
                               bool target, struct ms_str data_name, struct array *x,
                               struct ms_err *err)
{
    for (size_t i = 0; i < STEPS; i++) {
        const struct ms_str *path = matrix_of(f, target, i, data_name);
        struct ms_err why = {0};
        enum ms_rc rc = path != NULL ? multiply_by_file(x, *path, steps[i].left, &why) : MS_OK;
        if (rc != MS_OK && (rc == MS_E_NOMEM || !rules->skips_bad_matrices)) {
            *err = why;
            return rc;
        }
    }
    return MS_OK;
}

static void be_tensor(struct cmp__product *out, const struct array *a)
{
    /* in place: float i overwrites only doubles that have been read */
    float *single = (float *)(void *)a->v;
    for (uint64_t i = 0; i < a->count && a->single; i++) {
        const float v = (float)a->v[i];
        memcpy(&single[i], &v, sizeof v);
    }
    *out = (struct cmp__product){.t = {.dtype = a->single ? MS_DT_F32 : MS_DT_F64,
                                       .ndim = a->ndim,
                                       .count = a->count,
                                       .data = a->v,
                                       .contiguous = true},
                                 .own = a->v};
    memcpy(out->t.shape, a->shape, sizeof a->shape);
}

enum ms_rc cmp__multiply(const struct cmp__factors *f, const struct cmp_rules *rules, bool target,
                         struct ms_str data_name, const struct probe_tensor *t, uint64_t used,
                         struct cmp__product *out, struct ms_err *err)
{
    struct array x;
    *out = (struct cmp__product){.t = *t};
    if (!is_multiplied(f, target, data_name) || t->count == 0)
        return MS_OK;
    enum ms_rc rc = take_values(&x, t, true, err);
    for (uint64_t i = used; i < x.count && rc == MS_OK; i++)
        x.v[i] = 0;
    if (rc == MS_OK)
        rc = multiply_all(f, rules, target, data_name, &x, err);
    if (rc == MS_OK)
        be_tensor(out, &x);
    else
        ms_free(x.v);
    return rc;
}
