/* SPDX-License-Identifier: MIT
 *
 * graph_write: writes a compiled graph's kernels as dump.json, construct.json and stack.json.
 */
#include "probe/dump/graph_write.h"

#include "probe/base/jwrite.h"
#include "probe/base/mem.h"
#include "probe/dump/dump.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 1 << 16 };

/* State of the writer, and marks of values for one record. */
struct writer {
    const struct probe__graph_shape *s;
    struct ms_jwrite json;
    struct ms_out *out;
    struct ms_buf name;
    struct ms_buf record; /* name of the current record */
    const char *dir, *net;
    const char *part; /* "input" or "output", and the index of its next item */
    unsigned item;
    uint8_t *mark; /* of each value: bits of enum mark */
};

enum mark { MADE = 1, LISTED = 2, TAKEN = 4 };

/* ---- leaves ----------------------------------------------------------- */

/* Returns MindSpore's name of a type: Float32 for float32. */
static const char *dtype_word(enum ms_dtype t)
{
    static const struct {
        enum ms_dtype dtype;
        const char *word;
    } words[] = {{MS_DT_F16, "Float16"},   {MS_DT_F32, "Float32"}, {MS_DT_F64, "Float64"},
                 {MS_DT_BF16, "BFloat16"}, {MS_DT_I8, "Int8"},     {MS_DT_I16, "Int16"},
                 {MS_DT_I32, "Int32"},     {MS_DT_I64, "Int64"},   {MS_DT_U8, "UInt8"},
                 {MS_DT_U16, "UInt16"},    {MS_DT_U32, "UInt32"},  {MS_DT_U64, "UInt64"},
                 {MS_DT_BOOL, "Bool"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (words[i].dtype == t)
            return words[i].word;
    }
    return "Complex";
}

/* Writes statistics as in a dump of functions: a bool has no mean and no norm, and numbers are
 * rounded to float32. */
static void put_figures(struct ms_jwrite *j, const struct probe__kernel_tensor *t)
{
    const struct ms_stats *s = &t->stats;
    const bool is_truth = t->dtype == MS_DT_BOOL, is_bad = s->nan != 0;
    const double v[] = {is_bad ? (double)NAN : s->max, is_bad ? (double)NAN : s->min,
                        ms_stats_mean(s), ms_stats_norm(s)};
    static const char *const keys[] = {"Max", "Min", "Mean", "Norm"};
    for (unsigned i = 0; i < 4; i++) {
        ms_jwrite_key(j, ms_str_of(keys[i]));
        if (s->count == 0 || (is_truth && i >= 2))
            ms_jwrite_null(j);
        else if (is_truth)
            ms_jwrite_bool(j, v[i] != 0);
        else
            ms_jwrite_f64(j, ms_dtype_round(MS_DT_F32, v[i]));
    }
}

/* Writes a copy of the tensor with the shape that it has in the graph. */
static enum ms_rc copy_reshaped(const char *from, const char *to,
                                const struct probe__kernel_tensor *t)
{
    struct probe_tensor file;
    struct ms_err ignored = {0};
    if (probe_tensor_open(&file, from, SIZE_MAX, &ignored) != MS_OK)
        return MS_E_IO;
    enum ms_rc rc = file.contiguous
                        ? probe_npy_write(to, file.dtype, t->shape, t->ndim, file.data, &ignored)
                        : MS_E_IO;
    probe_tensor_close(&file);
    return rc;
}

/* Links the file under the name that it has in other dumps, "NODE.input.0.npy"; returns the name
 * for the leaf. */
static struct ms_str link_file(struct writer *w, const struct probe__kernel_tensor *t,
                               const char *part, struct ms_str item)
{
    char from[PATH_MAX], to[PATH_MAX];
    ms_buf_clear(&w->name);
    ms_buf_printf(&w->name, "%.*s%s%s.%.*s.npy", MS_STR_ARG(ms_buf_slice(&w->record)),
                  *part != '\0' ? "." : "", part, MS_STR_ARG(item));
    int n = snprintf(from, sizeof from, "%s/%.*s", w->net, MS_STR_ARG(t->name));
    int m = snprintf(to, sizeof to, "%s/dump_tensor_data/%s", w->dir, ms_buf_z(&w->name));
    if (n < 0 || m < 0 || (size_t)n >= sizeof from || (size_t)m >= sizeof to)
        return t->name;
    unlink(to);
    bool is_there = t->is_reshaped ? copy_reshaped(from, to, t) == MS_OK : symlink(from, to) == 0;
    return is_there ? ms_buf_slice(&w->name) : t->name;
}

static void put_leaf_as(struct writer *w, const struct probe__kernel_tensor *t, const char *part,
                        struct ms_str item)
{
    struct ms_jwrite *j = &w->json;
    if (t->held == PROBE__HELD_NOT) {
        ms_jwrite_null(j);
        return;
    }
    ms_jwrite_obj(j);
    ms_jwrite_kstr(j, "type", "mindspore.Tensor");
    ms_jwrite_kstr(j, "dtype", dtype_word(t->dtype));
    ms_jwrite_key(j, MS_STR("shape"));
    ms_jwrite_arr(j);
    for (uint32_t i = 0; i < t->ndim; i++)
        ms_jwrite_u64(j, t->shape[i]);
    ms_jwrite_arr_end(j);
    put_figures(j, t);
    if (t->held == PROBE__HELD)
        ms_jwrite_ktext(j, "data_name", link_file(w, t, part, item));
    ms_jwrite_obj_end(j);
}

/* Writes the next item of a list. */
static void put_leaf(struct writer *w, const struct probe__kernel_tensor *t)
{
    char item[16];
    int n = snprintf(item, sizeof item, "%u", w->item++);
    put_leaf_as(w, t, w->part, (struct ms_str){item, (uint32_t)n});
}

static void begin_list(struct writer *w, const char *key)
{
    w->part = strcmp(key, "output") == 0 ? key : "input";
    w->item = 0;
    ms_jwrite_key(&w->json, ms_str_of(key));
    ms_jwrite_arr(&w->json);
}

static void begin_record(struct writer *w, struct ms_str name)
{
    ms_buf_clear(&w->record);
    ms_buf_str(&w->record, name);
    ms_jwrite_key(&w->json, name);
    ms_jwrite_obj(&w->json);
}

/* Tells whether an input is a constant of the graph, such as an axis. */
static bool is_attribute(const struct probe__kernel *k, const struct probe__kernel_tensor *t)
{
    const struct probe__ir_argument *a = probe__kernel_argument(k, t);
    enum ms_dtype_kind kind = ms_dtype_kind(t->dtype);
    if (a != NULL)
        return a->kind == PROBE__IR_CONSTANT && t->ndim == 0;
    return t->ndim == 0 && kind != MS_DTK_FLOAT && kind != MS_DTK_COMPLEX;
}

/* Returns the name of the cell parameter that an input is; empty when it is none. */
static struct ms_str parameter_of(const struct writer *w, const struct probe__kernel *k,
                                  const struct probe__kernel_tensor *t, uint32_t *cell)
{
    const struct probe__ir_argument *a = probe__kernel_argument(k, t);
    struct ms_str name = MS_STR_NONE;
    *cell = MS_MAP_NONE;
    if (a == NULL || a->kind != PROBE__IR_PARAMETER)
        return MS_STR_NONE;
    *cell = probe__parameter_cell(w->s, a->parameter, &name);
    return *cell != MS_MAP_NONE ? name : MS_STR_NONE;
}

/* ---- names ------------------------------------------------------------ */

static const char *const directions[] = {"forward", "backward"};

static struct ms_str op_name(struct writer *w, const struct probe__graph_op *op)
{
    ms_buf_clear(&w->name);
    ms_buf_printf(&w->name, "Primitive.%.*s.%u.%s", MS_STR_ARG(op->name), op->number,
                  directions[op->is_backward]);
    return ms_buf_slice(&w->name);
}

static struct ms_str cell_name(struct writer *w, const struct probe__graph_cell *cell,
                               const char *what)
{
    ms_buf_clear(&w->name);
    ms_buf_printf(&w->name, "Cell.%.*s.%.*s.%s.0", MS_STR_ARG(cell->path),
                  MS_STR_ARG(cell->class_name), what);
    return ms_buf_slice(&w->name);
}

/* ---- operators -------------------------------------------------------- */

/* Tells whether a kernel writes to this parameter; its file then has the value after the kernel
 * ran. */
static bool is_written(const struct probe__kernel *k, const struct probe__kernel_tensor *t)
{
    return ms_str_is(k->scope.op, "BatchNorm") && (t->slot == 3 || t->slot == 4);
}

static void put_forward_op(struct writer *w, const struct probe__kernel *k)
{
    begin_list(w, "input_args");
    for (size_t i = 0; i < k->in.n; i++) {
        if (is_written(k, &k->in.p[i])) {
            ms_jwrite_null(&w->json);
            w->item++;
        } else if (!is_attribute(k, &k->in.p[i])) {
            put_leaf(w, &k->in.p[i]);
        }
    }
    ms_jwrite_arr_end(&w->json);
    ms_jwrite_key(&w->json, MS_STR("input_kwargs"));
    ms_jwrite_obj(&w->json);
    ms_jwrite_obj_end(&w->json);
    begin_list(w, "output");
    for (size_t i = 0; i < k->out.n; i++)
        put_leaf(w, &k->out.p[i]);
    ms_jwrite_arr_end(&w->json);
}

/* Clears the marks, then marks the values that the kernels of an operator make and take. */
static void mark_made_by_op(struct writer *w, uint32_t op)
{
    const struct probe__graph *g = w->s->g;
    memset(w->mark, 0, g->value_count);
    for (size_t i = 0; i <= w->s->ops.p[op].last; i++) {
        for (size_t o = 0; w->s->op_of[i] == op && o < g->kernels.p[i].out.n; o++)
            w->mark[g->kernels.p[i].out.p[o].value] |= MADE;
    }
    for (size_t i = 0; i <= w->s->ops.p[op].last; i++) {
        for (size_t o = 0; w->s->op_of[i] == op && o < g->kernels.p[i].in.n; o++)
            w->mark[g->kernels.p[i].in.p[o].value] |= TAKEN;
    }
}

/* Writes a gradient that comes from outside the operator, each value once. */
static void put_if_gradient(struct writer *w, const struct probe__kernel_tensor *t)
{
    uint8_t *mark = &w->mark[t->value];
    if ((*mark & (MADE | LISTED)) != 0 || !probe__is_gradient(w->s, t->value))
        return;
    *mark |= LISTED;
    put_leaf(w, t);
}

/* Writes a backward operator: gradients of results as inputs, gradients of arguments as outputs.
 * Values that the forward pass has saved are neither. */
static void put_backward_op(struct writer *w, uint32_t op)
{
    const struct probe__graph *g = w->s->g;
    mark_made_by_op(w, op);
    begin_list(w, "input");
    for (size_t i = 0; i <= w->s->ops.p[op].last; i++) {
        for (size_t n = 0; w->s->op_of[i] == op && n < g->kernels.p[i].in.n; n++)
            put_if_gradient(w, &g->kernels.p[i].in.p[n]);
    }
    ms_jwrite_arr_end(&w->json);
    begin_list(w, "output");
    for (size_t i = 0; i <= w->s->ops.p[op].last; i++) {
        for (size_t n = 0; w->s->op_of[i] == op && n < g->kernels.p[i].out.n; n++) {
            const struct probe__kernel_tensor *t = &g->kernels.p[i].out.p[n];
            if ((w->mark[t->value] & TAKEN) == 0)
                put_leaf(w, t);
        }
    }
    ms_jwrite_arr_end(&w->json);
}

static void put_op(struct writer *w, uint32_t op)
{
    const struct probe__graph_op *o = &w->s->ops.p[op];
    begin_record(w, op_name(w, o));
    if (o->is_backward)
        put_backward_op(w, op);
    else
        put_forward_op(w, &w->s->g->kernels.p[o->last]);
    ms_jwrite_obj_end(&w->json);
}

/* ---- cells ------------------------------------------------------------ */

static bool is_member(const struct writer *w, size_t kernel, const struct probe__graph_cell *cell,
                      bool is_backward)
{
    const struct probe__kernel *k = &w->s->g->kernels.p[kernel];
    return w->s->is_backward[kernel] == is_backward && k->scope.phase != PROBE__PHASE_OPTIMIZER &&
           probe__kernel_is_in(k, cell);
}

/* Tells whether a value is an input of the cell. Parameters, constants and values that the forward
 * pass has saved for a gradient are not. */
static bool comes_in(const struct writer *w, const struct probe__kernel *k,
                     const struct probe__kernel_tensor *t, bool is_backward)
{
    const struct probe__ir_argument *a = probe__kernel_argument(k, t);
    uint32_t cell;
    if ((w->mark[t->value] & (MADE | LISTED)) != 0 || is_attribute(k, t))
        return false;
    if (is_backward)
        return probe__is_gradient(w->s, t->value);
    return parameter_of(w, k, t, &cell).n == 0 && (a == NULL || a->kind != PROBE__IR_CONSTANT);
}

static void put_cell_inputs(struct writer *w, const struct probe__graph_cell *cell,
                            bool is_backward)
{
    const struct probe__graph *g = w->s->g;
    memset(w->mark, 0, g->value_count);
    for (size_t i = 0; i <= cell->last[is_backward]; i++) {
        const struct probe__kernel *k = &g->kernels.p[i];
        if (!is_member(w, i, cell, is_backward))
            continue;
        for (size_t n = 0; n < k->in.n; n++) {
            if (!comes_in(w, k, &k->in.p[n], is_backward))
                continue;
            w->mark[k->in.p[n].value] |= LISTED;
            put_leaf(w, &k->in.p[n]);
        }
        for (size_t n = 0; n < k->out.n; n++)
            w->mark[k->out.p[n].value] |= MADE;
    }
}

/* Clears the marks, then marks as TAKEN the values that kernels outside of the cell take. */
static void mark_taken_outside(struct writer *w, const struct probe__graph_cell *cell,
                               bool is_backward)
{
    const struct probe__graph *g = w->s->g;
    memset(w->mark, 0, g->value_count);
    for (size_t i = 0; i < g->kernels.n; i++) {
        const struct probe__kernel *k = &g->kernels.p[i];
        if (is_member(w, i, cell, is_backward) || w->s->is_backward[i] != is_backward ||
            k->scope.phase == PROBE__PHASE_OPTIMIZER)
            continue;
        for (size_t n = 0; n < k->in.n; n++)
            w->mark[k->in.p[n].value] |= TAKEN;
    }
}

/* Tells whether a later kernel of the cell outputs the same value, as a kernel that only reshapes
 * does. */
static bool is_made_again(const struct writer *w, const struct probe__graph_cell *cell,
                          bool is_backward, size_t kernel, uint32_t value)
{
    for (size_t i = kernel + 1; i <= cell->last[is_backward]; i++) {
        const struct probe__kernel *k = &w->s->g->kernels.p[i];
        for (size_t n = 0; is_member(w, i, cell, is_backward) && n < k->out.n; n++) {
            if (k->out.p[n].value == value)
                return true;
        }
    }
    return false;
}

static void put_cell_outputs(struct writer *w, const struct probe__graph_cell *cell,
                             bool is_backward)
{
    const struct probe__graph *g = w->s->g;
    bool has_any = false;
    mark_taken_outside(w, cell, is_backward);
    for (size_t i = 0; i <= cell->last[is_backward]; i++) {
        for (size_t n = 0; is_member(w, i, cell, is_backward) && n < g->kernels.p[i].out.n; n++) {
            const struct probe__kernel_tensor *t = &g->kernels.p[i].out.p[n];
            if ((w->mark[t->value] & TAKEN) == 0 ||
                is_made_again(w, cell, is_backward, i, t->value))
                continue;
            put_leaf(w, t);
            has_any = true;
        }
    }
    const struct probe__kernel *last = &g->kernels.p[cell->last[is_backward]];
    if (!has_any && !is_backward && last->out.n != 0)
        put_leaf(w, &last->out.p[0]);
    else if (!has_any)
        ms_jwrite_null(&w->json);
}

/* Writes the parameters of a cell as its kernels take them. */
static void put_parameters(struct writer *w, uint32_t cell)
{
    const struct probe__graph *g = w->s->g;
    bool has_begun = false;
    memset(w->mark, 0, g->value_count);
    for (size_t i = 0; i <= w->s->cells.p[cell].last[0]; i++) {
        const struct probe__kernel *k = &g->kernels.p[i];
        for (size_t n = 0; !w->s->is_backward[i] && n < k->in.n; n++) {
            uint32_t owner;
            struct ms_str name = parameter_of(w, k, &k->in.p[n], &owner);
            if (name.n == 0 || owner != cell || is_written(k, &k->in.p[n]) ||
                (w->mark[k->in.p[n].value] & LISTED) != 0)
                continue;
            w->mark[k->in.p[n].value] |= LISTED;
            if (!has_begun) {
                ms_jwrite_key(&w->json, MS_STR("parameters"));
                ms_jwrite_obj(&w->json);
            }
            has_begun = true;
            ms_jwrite_key(&w->json, name);
            put_leaf_as(w, &k->in.p[n], "parameters", name);
        }
    }
    if (has_begun)
        ms_jwrite_obj_end(&w->json);
}

static void put_cell(struct writer *w, uint32_t index, bool is_backward)
{
    const struct probe__graph_cell *cell = &w->s->cells.p[index];
    begin_record(w, cell_name(w, cell, directions[is_backward]));
    begin_list(w, is_backward ? "input" : "input_args");
    put_cell_inputs(w, cell, is_backward);
    ms_jwrite_arr_end(&w->json);
    if (!is_backward) {
        ms_jwrite_key(&w->json, MS_STR("input_kwargs"));
        ms_jwrite_obj(&w->json);
        ms_jwrite_obj_end(&w->json);
    }
    begin_list(w, "output");
    put_cell_outputs(w, cell, is_backward);
    ms_jwrite_arr_end(&w->json);
    if (!is_backward)
        put_parameters(w, index);
    ms_jwrite_obj_end(&w->json);
}

/* ---- gradients of parameters --------------------------------------------- */

static bool is_same_shape(const struct probe__kernel_tensor *a,
                          const struct probe__kernel_tensor *b)
{
    return a->ndim == b->ndim && memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) == 0;
}

/* Tells whether the graph's text says that an input is a parameter, such as what an optimizer keeps from step to step:
 * its zeros may equal some gradient. */
static bool is_state(const struct probe__kernel *k, const struct probe__kernel_tensor *in)
{
    const struct probe__ir_argument *a = probe__kernel_argument(k, in);
    return a != NULL && a->kind == PROBE__IR_PARAMETER;
}

/* Returns the parameter's gradient among the inputs of an optimizer kernel: made by a gradient
 * kernel and of the parameter's shape. */
static const struct probe__kernel_tensor *gradient_in(const struct writer *w,
                                                      const struct probe__kernel *k)
{
    for (size_t i = 1; i < k->in.n; i++) {
        if (probe__is_gradient(w->s, k->in.p[i].value) && !is_state(k, &k->in.p[i]) &&
            is_same_shape(&k->in.p[i], &k->in.p[0]))
            return &k->in.p[i];
    }
    return NULL;
}

static void put_parameter_gradients(struct writer *w, uint32_t cell)
{
    const struct probe__graph *g = w->s->g;
    bool has_begun = false;
    for (size_t i = 0; i < g->kernels.n; i++) {
        const struct probe__kernel *k = &g->kernels.p[i];
        uint32_t owner;
        if (k->scope.phase != PROBE__PHASE_OPTIMIZER || k->in.n == 0)
            continue;
        struct ms_str name = parameter_of(w, k, &k->in.p[0], &owner);
        const struct probe__kernel_tensor *t = gradient_in(w, k);
        if (t == NULL || name.n == 0 || owner != cell)
            continue;
        if (!has_begun)
            begin_record(w, cell_name(w, &w->s->cells.p[cell], "parameters_grad"));
        has_begun = true;
        ms_jwrite_key(&w->json, name);
        ms_jwrite_arr(&w->json);
        put_leaf_as(w, t, "", name);
        ms_jwrite_arr_end(&w->json);
    }
    if (has_begun)
        ms_jwrite_obj_end(&w->json);
}

/* ---- files ------------------------------------------------------------ */

/* Writes the cells that end with a kernel, the innermost first. */
static void put_cells_that_end(struct writer *w, uint32_t kernel)
{
    const bool is_backward = w->s->is_backward[kernel];
    uint32_t cell = ms_map_get(&w->s->cell_names, w->s->g->kernels.p[kernel].cells);
    for (; cell != MS_MAP_NONE; cell = w->s->cells.p[cell].parent) {
        if (w->s->cells.p[cell].last[is_backward] != kernel)
            continue;
        put_cell(w, cell, is_backward);
        if (is_backward)
            put_parameter_gradients(w, cell);
    }
}

static void put_data(struct writer *w)
{
    const struct probe__graph_shape *s = w->s;
    for (uint32_t i = 0; i < s->g->kernels.n; i++) {
        if (s->ops.p[s->op_of[i]].last == i && !s->ops.p[s->op_of[i]].is_saved)
            put_op(w, s->op_of[i]);
        put_cells_that_end(w, i);
    }
}

static void put_dump(struct writer *w)
{
    struct ms_jwrite *j = &w->json;
    ms_jwrite_obj(j);
    ms_jwrite_kstr(j, "task", "tensor");
    ms_jwrite_kstr(j, "level", "mix");
    ms_jwrite_kstr(j, "framework", "mindspore");
    ms_jwrite_kstr(j, "source", PROBE_SOURCE_GRAPH);
    ms_jwrite_kstr(j, "dump_data_dir", w->net);
    ms_jwrite_key(j, MS_STR("data"));
    ms_jwrite_obj(j);
    put_data(w);
    ms_jwrite_obj_end(j);
    ms_jwrite_obj_end(j);
}

/* Writes the nearest enclosing cell that has a record of this direction. */
static void put_parent(struct writer *w, uint32_t cell, bool is_backward)
{
    while (cell != MS_MAP_NONE && w->s->cells.p[cell].last[is_backward] == MS_MAP_NONE)
        cell = w->s->cells.p[cell].parent;
    if (cell == MS_MAP_NONE)
        ms_jwrite_null(&w->json);
    else
        ms_jwrite_str(&w->json, cell_name(w, &w->s->cells.p[cell], directions[is_backward]));
}

static bool has_optimizer(const struct probe__graph_shape *s)
{
    for (size_t i = 0; i < s->ops.n; i++) {
        if (s->ops.p[i].is_optimizer && !s->ops.p[i].is_saved)
            return true;
    }
    return false;
}

static void put_construct(struct writer *w)
{
    ms_jwrite_obj(&w->json);
    if (has_optimizer(w->s)) {
        ms_jwrite_key(&w->json, MS_STR("optimizer"));
        ms_jwrite_null(&w->json);
    }
    for (size_t i = 0; i < w->s->cells.n; i++) {
        const struct probe__graph_cell *cell = &w->s->cells.p[i];
        for (unsigned d = 0; d < 2; d++) {
            if (cell->last[d] == MS_MAP_NONE)
                continue;
            ms_jwrite_key(&w->json, cell_name(w, cell, directions[d]));
            put_parent(w, cell->parent, d);
        }
    }
    for (size_t i = 0; i < w->s->ops.n; i++) {
        if (w->s->ops.p[i].is_saved)
            continue;
        ms_jwrite_key(&w->json, op_name(w, &w->s->ops.p[i]));
        if (w->s->ops.p[i].is_optimizer)
            ms_jwrite_str(&w->json, MS_STR("optimizer"));
        else
            put_parent(w, w->s->ops.p[i].cell, w->s->ops.p[i].is_backward);
    }
    ms_jwrite_obj_end(&w->json);
}

static void put_nothing(struct writer *w)
{
    ms_jwrite_obj(&w->json);
    ms_jwrite_obj_end(&w->json);
}

static enum ms_rc write_file(struct writer *w, const char *file,
                             void (*write_body)(struct writer *), struct ms_err *err)
{
    char *path = ms_path_join(w->dir, file);
    enum ms_rc rc = path != NULL ? ms_out_create(&w->out, path, err) : ms_no_memory(err);
    ms_free(path);
    MS_TRY(rc);
    ms_out_lazy(w->out);
    ms_jwrite_init(&w->json, 1, 1 << 18);
    w->json.drain = ms_out_sink;
    w->json.ctx = w->out;
    write_body(w);
    rc = ms_jwrite_finish(&w->json, err);
    if (rc == MS_OK)
        rc = ms_buf_check(&w->name, err);
    ms_jwrite_free(&w->json);
    if (rc == MS_OK)
        return ms_out_commit(w->out, err);
    ms_out_abort(w->out);
    return rc;
}

enum ms_rc probe__graph_write(const struct probe__graph_shape *s, const char *dir, const char *net,
                              struct ms_err *err)
{
    struct writer w = {.s = s,
                       .name = {.max = NAME_MAX_BYTES},
                       .record = {.max = NAME_MAX_BYTES},
                       .dir = dir,
                       .net = net};
    char *data = ms_path_join(dir, "dump_tensor_data");
    w.mark = ms_calloc(s->g->value_count + 1, 1);
    enum ms_rc rc = w.mark != NULL && data != NULL ? ms_mkdirs(data, err) : ms_no_memory(err);
    ms_free(data);
    if (rc == MS_OK)
        rc = write_file(&w, "construct.json", put_construct, err);
    if (rc == MS_OK)
        rc = write_file(&w, "stack.json", put_nothing, err);
    if (rc == MS_OK) /* written last: where dump.json exists, the other files do */
        rc = write_file(&w, "dump.json", put_dump, err);
    ms_free(w.mark);
    ms_buf_free(&w.name);
    ms_buf_free(&w.record);
    return rc;
}
