/* SPDX-License-Identifier: MIT
 *
 * trace_flops: floating point operations of the steps of a profiled training, computed from the shapes
 * that PyTorch's profiler records with operators (record_shapes).
 *
 * Operators call each other: an operator within one that was counted is part of it.  Operators of the
 * forward pass that a backward pass executes again, as activation checkpoints do, count for the machine
 * only.
 */
#include "mstx/conclude/time_use.h"

#include "mstx/rundb/run_schema.h"

#include "probe/base/jread.h"
#include "probe/base/mem.h"
#include "probe/base/num.h"

#include <math.h>
#include <string.h>

enum { DIMS_MAX = 8, INPUTS_MAX = 10, DEPTH_MAX = 512 };
static const double DIM_MOST = 1e12; /* no tensor is longer */

/* ---- what an operator does ------------------------------------------------------------------ */

struct shape {
    double dim[DIMS_MAX];
    uint32_t n;
};
struct inputs {
    struct shape in[INPUTS_MAX];
    uint32_t n;
    bool transposed;                        /* of a convolution */
    double stride[3], padding[3], apart[3]; /* of a convolution; apart: dilation */
    bool has_steps;                         /* they are known */
};

enum op_kind {
    OP_UNSEEN,
    OP_OTHER,
    OP_PRODUCT,       /* of the first two inputs */
    OP_ADDED_PRODUCT, /* of the second and third */
    OP_CONVOLUTION,
    OP_CONVOLUTION_BACK,
    OP_ATTENTION,
    OP_ATTENTION_BACK,
    OP_WHOLE,    /* of the forward pass, made of counted ones */
    OP_BACKWARD, /* a node of the backward pass */
    OP_CHECKPOINT,
};
static const struct {
    const char *name; /* its beginning where it ends with a star */
    enum op_kind kind;
} kinds[] = {
    {"aten::mm", OP_PRODUCT},
    {"aten::bmm", OP_PRODUCT},
    {"aten::addmm", OP_ADDED_PRODUCT},
    {"aten::baddbmm", OP_ADDED_PRODUCT},
    {"aten::convolution", OP_CONVOLUTION},
    {"aten::convolution_backward", OP_CONVOLUTION_BACK},
    {"aten::scaled_dot_product_attention", OP_ATTENTION},
    {"aten::_scaled_dot_product_flash_attention_backward", OP_ATTENTION_BACK},
    {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", OP_ATTENTION_BACK},
    {"aten::_scaled_dot_product_efficient_attention_backward", OP_ATTENTION_BACK},
    {"aten::_scaled_dot_product_cudnn_attention_backward", OP_ATTENTION_BACK},
    {"aten::linear", OP_WHOLE},
    {"aten::matmul", OP_WHOLE},
    {"aten::conv1d", OP_WHOLE},
    {"aten::conv2d", OP_WHOLE},
    {"aten::conv3d", OP_WHOLE},
    {"autograd::engine::evaluate_function: CheckpointFunctionBackward", OP_CHECKPOINT},
    {"autograd::engine::evaluate_function: *", OP_BACKWARD},
};

static enum op_kind kind_of(struct ms_str name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct ms_str is = ms_str_of(kinds[i].name);
        const bool is_start = is.p[is.n - 1] == '*';
        if (is_start ? ms_str_starts(name, ms_str_sub(is, 0, is.n - 1)) : ms_str_eq(name, is))
            return kinds[i].kind;
    }
    return OP_OTHER;
}

static double product_of(const struct shape *s, uint32_t from)
{
    double p = 1;
    for (uint32_t i = from; i < s->n; i++)
        p *= s->dim[i];
    return p;
}

static double last_of(const struct shape *s)
{
    return s->n != 0 ? s->dim[s->n - 1] : 0;
}

static double product_flops(const struct shape *a, const struct shape *b)
{
    return a->n >= 2 && b->n >= 2 ? 2 * product_of(a, 0) * last_of(b) : 0;
}

/* Input N,C,..., weight O,C/g,...; a transposed one has C,O/g,... */
static double convolution_flops(const struct inputs *x)
{
    const struct shape *in = &x->in[0], *weight = &x->in[1];
    double out = 1;
    if (in->n < 3 || in->n != weight->n || in->n > 5)
        return 0;
    if (x->transposed)
        return 2 * product_of(in, 0) * product_of(weight, 1);
    for (uint32_t i = 0; i + 2 < in->n; i++) {
        const double reach = x->apart[i] * (weight->dim[i + 2] - 1) + 1;
        out *= floor((in->dim[i + 2] + 2 * x->padding[i] - reach) / x->stride[i]) + 1;
    }
    return x->has_steps && out > 0 ? 2 * in->dim[0] * out * product_of(weight, 0) : 0;
}

/* The scores of queries and keys, and their product with the values; first: the place of the queries. */
static double attention_flops(const struct inputs *x, uint32_t first)
{
    if (x->n < first + 3 || x->in[first].n < 2 || x->in[first + 1].n < 2)
        return 0;
    const struct shape *q = &x->in[first], *k = &x->in[first + 1], *v = &x->in[first + 2];
    const double keys = k->dim[k->n - 2], width = last_of(q);
    return width > 0 ? 2 * product_of(q, 0) * keys * (1 + last_of(v) / width) : 0;
}

static struct mstx_flops flops_of(enum op_kind kind, const struct inputs *x)
{
    double f = 0, machine = 1;
    if (kind == OP_PRODUCT && x->n >= 2)
        f = product_flops(&x->in[0], &x->in[1]);
    else if (kind == OP_ADDED_PRODUCT && x->n >= 3)
        f = product_flops(&x->in[1], &x->in[2]);
    else if (kind == OP_CONVOLUTION && x->n >= 2)
        f = convolution_flops(x);
    else if (kind == OP_CONVOLUTION_BACK &&
             x->n >= 3) /* of the output's gradient, for both inputs */
        f = 4 * product_of(&x->in[x->transposed], 0) * product_of(&x->in[2], 1);
    else if (kind == OP_ATTENTION)
        f = attention_flops(x, 0);
    else if (kind == OP_ATTENTION_BACK) {
        f = 2 * attention_flops(x, 1);
        machine = 1.25; /* the scores are computed again */
    }
    return (struct mstx_flops){f, f * machine};
}

/* ---- shapes in args ------------------------------------------------------------------------------ */

/* Reads "[[64, 128], [], ...]"; the opening bracket has been read.  Other values are empty inputs. */
static void read_dims(struct ms_jread *j, struct inputs *x)
{
    enum ms_jtok t;
    while ((t = ms_jread_next(j)) != MS_J_ARR_END && t > MS_J_END) {
        struct shape s = {.n = 0};
        bool ok = t == MS_J_ARR;
        while (ok && (t = ms_jread_next(j)) == MS_J_NUM) {
            double v = 0;
            if (ms_jread_f64(j, &v) && s.n < DIMS_MAX)
                s.dim[s.n++] = v >= 0 && v < DIM_MOST ? v : 0;
        }
        if (ok && t != MS_J_ARR_END) /* a list of tensors */
            while (t != MS_J_ARR_END && t > MS_J_END && ms_jread_skip(j, t) > MS_J_END)
                t = ms_jread_next(j);
        else if (!ok && ms_jread_skip(j, t) == MS_J_ERR)
            return;
        if (x->n < INPUTS_MAX)
            x->in[x->n++] = s;
    }
}

/* Reads numbers as "[1, 1]"; returns how many. */
static uint32_t read_numbers(struct ms_str text, double to[3])
{
    struct ms_jread j;
    uint32_t n = 0;
    ms_jread_init(&j, text.p, text.n, 0);
    if (text.n == 0 || ms_jread_next(&j) != MS_J_ARR)
        return 0;
    while (ms_jread_next(&j) == MS_J_NUM && n < 3) {
        if (!ms_jread_f64(&j, &to[n++]))
            return 0;
    }
    return n;
}

/* Reads stride, padding, dilation and whether it is transposed from a convolution's values, which are
 * texts: the fourth to seventh; of its backward operator the eighth tells that it is transposed. */
static void read_values(struct ms_jread *j, struct inputs *x)
{
    enum ms_jtok t;
    uint32_t known = 0;
    for (unsigned i = 0; (t = ms_jread_next(j)) != MS_J_ARR_END && t > MS_J_END; i++) {
        double *const to[] = {x->stride, x->padding, x->apart};
        if (t != MS_J_STR && ms_jread_skip(j, t) == MS_J_ERR)
            return;
        if (t == MS_J_STR && i >= 3 && i < 6)
            known += read_numbers(j->text, to[i - 3]) != 0;
        x->transposed |= t == MS_J_STR && (i == 6 || i == 7) && ms_str_is(j->text, "True");
    }
    x->has_steps = known == 3 && x->stride[0] > 0;
    for (int i = 1; i < 3; i++)
        x->stride[i] = x->stride[i] > 0 ? x->stride[i] : 1;
}

static void read_inputs(struct ms_str args, struct inputs *x)
{
    struct ms_jread j;
    *x = (struct inputs){.n = 0};
    ms_jread_init(&j, args.p, args.n, 0);
    if (args.n == 0 || ms_jread_next(&j) != MS_J_OBJ)
        return;
    while (ms_jread_next(&j) == MS_J_KEY) {
        const bool is_dims = ms_str_is(j.text, "Input Dims") || ms_str_is(j.text, "Input dims");
        const bool is_values = ms_str_is(j.text, "Concrete Inputs");
        const enum ms_jtok t = ms_jread_next(&j);
        if (t == MS_J_ARR && is_dims)
            read_dims(&j, x);
        else if (t == MS_J_ARR && is_values)
            read_values(&j, x);
        else if (ms_jread_skip(&j, t) == MS_J_ERR)
            return;
    }
}

/* ---- the events of a process ------------------------------------------------------------------------ */

struct open_range {
    int64_t end;
    enum op_kind kind;
};
struct walk {
    struct mstx_tl *tl;
    const struct mstx_steps *steps;
    mstx_step_flops *to; /* by step */
    uint32_t process;
    MS_VEC(uint8_t) kind; /* of each text */
    struct open_range open[DEPTH_MAX];
    uint32_t depth;
    size_t step; /* the first that has not ended */
};

static bool recall_kind(struct walk *w, uint32_t name, enum op_kind *kind)
{
    if (name >= w->kind.n) {
        const size_t want = (size_t)name + name / 2 + 64;
        if (!ms_vec_reserve(&w->kind, want))
            return false;
        memset(w->kind.p + w->kind.n, 0, want - w->kind.n);
        w->kind.n = want;
    }
    if (w->kind.p[name] == OP_UNSEEN)
        w->kind.p[name] = (uint8_t)kind_of(mstx_tl_text(w->tl, name));
    *kind = (enum op_kind)w->kind.p[name];
    return true;
}

/* Tells whether an operator that was counted is open, and whether an operator here executes a part of
 * the forward pass within the backward pass. */
static bool is_within(const struct walk *w, bool *recomputed)
{
    bool is_back = false, is_whole = false;
    *recomputed = false;
    for (uint32_t i = 0; i < w->depth; i++) {
        const enum op_kind k = w->open[i].kind;
        if (k >= OP_PRODUCT && k <= OP_ATTENTION_BACK)
            return true;
        if (k == OP_BACKWARD || k == OP_CHECKPOINT) {
            is_back = true;
            is_whole = k == OP_CHECKPOINT;
        }
        is_whole |= k == OP_WHOLE;
    }
    *recomputed = is_back && is_whole;
    return false;
}

/* Returns the step that holds a time, NULL: none. */
static struct mstx_flops *step_at(struct walk *w, int64_t t)
{
    while (w->step < w->steps->list.n && w->steps->list.p[w->step].process == w->process &&
           w->steps->list.p[w->step].end_ns <= t)
        w->step++;
    const struct mstx_step *s = w->step < w->steps->list.n ? &w->steps->list.p[w->step] : NULL;
    return s != NULL && s->process == w->process && s->start_ns <= t ? &w->to->p[w->step] : NULL;
}

static enum ms_rc take_event(void *ctx, const struct mstx_event *e, struct ms_err *err)
{
    struct walk *w = ctx;
    enum op_kind kind;
    struct inputs x;
    bool recomputed;
    if (!recall_kind(w, e->name, &kind))
        return ms_no_memory(err);
    if (kind == OP_OTHER || e->dur_ns == 0)
        return MS_OK;
    while (w->depth != 0 && w->open[w->depth - 1].end <= e->start_ns)
        w->depth--;
    struct mstx_flops *step = step_at(w, e->start_ns);
    if (step != NULL && kind < OP_WHOLE && !is_within(w, &recomputed)) {
        read_inputs(mstx_tl_text(w->tl, e->args), &x);
        const struct mstx_flops f = flops_of(kind, &x);
        step->machine += f.machine;
        step->model += recomputed ? 0 : f.model;
    }
    if (w->depth < DEPTH_MAX)
        w->open[w->depth++] = (struct open_range){e->start_ns + e->dur_ns, kind};
    return MS_OK;
}

static size_t first_step(const struct mstx_steps *steps, uint32_t process)
{
    size_t i = 0;
    while (i < steps->list.n && steps->list.p[i].process != process)
        i++;
    return i;
}

enum ms_rc mstx_flops_of_trace(struct mstx_tl *tl, const struct mstx_steps *steps,
                               mstx_step_flops *to, struct ms_err *err)
{
    struct walk *w = ms_calloc(1, sizeof *w);
    double sum = 0;
    enum ms_rc rc = w != NULL && ms_vec_reserve(to, steps->list.n + 1) ? MS_OK : ms_no_memory(err);
    to->n = rc == MS_OK ? steps->list.n : 0;
    for (size_t i = 0; i < to->n; i++)
        to->p[i] = (struct mstx_flops){0};
    for (size_t i = 0; rc == MS_OK && i < mstx_tl_track_count(tl); i++) {
        const struct mstx_track *t = mstx_tl_track(tl, i);
        if (t->kind != MSTX_TRACK_THREAD ||
            !ms_str_is(mstx_tl_process(tl, t->process)->tool, MSTX_TOOL_KINETO))
            continue;
        w->tl = tl;
        w->steps = steps;
        w->to = to;
        w->process = t->process;
        w->depth = 0;
        w->step = first_step(steps, t->process);
        rc = mstx_tl_walk(tl, i, NULL, take_event, w, err);
    }
    for (size_t i = 0; i < to->n; i++)
        sum += to->p[i].machine;
    if (rc == MS_OK && sum <= 0)
        rc = ms_fail(err, MS_E_NOTFOUND,
                     "--peak needs --flops or --structure: no step of the run has matrix products "
                     "with shapes (record_shapes)");
    if (w != NULL)
        ms_vec_free(&w->kind);
    ms_free(w);
    return rc;
}
