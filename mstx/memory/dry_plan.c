/* SPDX-License-Identifier: MIT
 *
 * dry_plan: see the header.
 */
#include "mstx/memory/dry_plan.h"

#include "probe/base/assert.h"
#include "probe/base/order.h"

#include <string.h>

/* A buffer of gradients, which several storages may share behind a sum. */
struct gradient {
    uint64_t bytes;
    uint32_t refs;
};

/* A gradient of a storage whose maker has no record, and its bytes that went on nowhere yet. */
struct open_gradient {
    int32_t gradient;
    uint64_t left;
};

struct replay {
    const struct dry_graph *g;
    const struct dry_layout *l;
    struct dry_plan *plan;
    uint64_t *bytes;   /* of each storage in this layout */
    uint32_t *keeps;   /* operators that keep a storage for their backward */
    bool *is_live;     /* the storage holds memory */
    int32_t *gradient; /* of each storage; index + 1; 0: none */
    uint64_t *hidden;  /* of each operator in this layout */
    MS_VEC(struct gradient) gradients;
    MS_VEC(struct open_gradient) open;
    bool *has_grad; /* of parameters */
    bool *hidden_is_live;
    uint64_t moments, peak_moment; /* times at which use was looked at; the one of the peak */
    bool is_second;                /* the replay that collects what lives at the peak */
    bool failed;
    uint64_t activations, temporary, gradient_bytes;
    uint64_t parameters, states; /* of this rank */
    uint64_t gradients_most;
    int32_t now; /* operator */
    const char *phase;
};

/* ---- the layout ------------------------------------------------------------------------------ */

static uint64_t scaled(uint64_t bytes, double factor)
{
    return (uint64_t)((double)bytes * factor + 0.5);
}

/* Tensor parallelism divides what lies between a column and a row of a layer: every activation whose
 * last dimension is not the hidden size. */
static double activation_factor(const struct dry_graph *g, const struct dry_layout *l,
                                uint64_t last_dim, bool is_float)
{
    double f = 1;
    if (is_float && l->float_bytes != 0)
        f *= (double)l->float_bytes / 4;
    if (l->micro_batch > 0 && g->batch > 0)
        f *= (double)l->micro_batch / (double)g->batch;
    if (l->tp > 1 && last_dim != g->hidden_size)
        f /= (double)l->tp;
    return f; /* a first stage of a pipeline holds as many micro batches as there are stages */
}

static double parameter_factor(const struct dry_layout *l)
{
    const double type = l->float_bytes != 0 ? (double)l->float_bytes / 4 : 1;
    return type / (double)(l->tp * l->pp);
}

static void set_sizes(struct replay *r)
{
    const struct dry_graph *g = r->g;
    const struct dry_layout *l = r->l;
    for (size_t i = 0; i < g->storages.n; i++) {
        const struct dry_storage *s = &g->storages.p[i];
        r->bytes[i] =
            scaled(s->bytes, s->is_parameter ? parameter_factor(l)
                                             : activation_factor(g, l, s->last_dim, s->is_float));
    }
    for (size_t i = 0; i < g->ops.n; i++) {
        const struct dry_op *op = &g->ops.p[i];
        const bool is_float = (op->keeps & DRY_KEEPS_HIDDEN) != 0;
        const uint64_t last = op->ins != 0 ? g->storages.p[op->in[0]].last_dim : 0;
        const bool is_wide = l->on_cpu && (op->keeps & DRY_IS_DROPOUT) != 0;
        r->hidden[i] = scaled(is_wide ? op->out_bytes : op->hidden,
                              activation_factor(g, l, last, is_float || is_wide));
    }
    const double all = (double)g->parameter_elements / (double)(l->tp * l->pp);
    const double dp = (double)(l->dp > 0 ? l->dp : 1);
    const double master = l->float_bytes == 2 ? 4 : 0; /* a copy in float32 */
    const double state = l->optimizer == DRY_OPTIMIZER_ADAM       ? 8
                         : l->optimizer == DRY_OPTIMIZER_MOMENTUM ? 4
                                                                  : 0;
    r->parameters = scaled(g->parameter_bytes, parameter_factor(l) / (l->zero >= 3 ? dp : 1));
    r->states = scaled((uint64_t)all, (state + master) / (l->zero >= 1 ? dp : 1));
}

/* ---- the peak -------------------------------------------------------------------------------- */

static uint64_t gradients_of_rank(const struct replay *r)
{
    return r->l->zero >= 2 && r->l->dp > 1 ? r->gradient_bytes / (uint64_t)r->l->dp
                                           : r->gradient_bytes;
}

/* ZeRO 3 gathers the parameters of one operator when it runs. */
static uint64_t gathered(const struct replay *r)
{
    return r->l->zero >= 3 ? scaled(r->g->largest_parameter, parameter_factor(r->l)) : 0;
}

static int by_bytes(const void *pa, const void *pb)
{
    const struct dry_share *a = pa, *b = pb;
    return MS_ORDER(b->bytes, a->bytes, MS_ORDER(a->module, b->module, 0));
}

static void add_share(struct replay *r, uint64_t *sums, int32_t op, uint64_t bytes)
{
    sums[op >= 0 ? r->g->ops.p[op].module : 0] += bytes;
}

/* Sums the activations that live now by the module that made them. */
static void collect_modules(struct replay *r)
{
    const struct dry_graph *g = r->g;
    uint64_t *sums = ms_calloc(g->modules.keys.n, sizeof *sums);
    r->failed |= sums == NULL;
    for (size_t i = 0; i < g->storages.n && sums != NULL; i++) {
        if (r->is_live[i])
            add_share(r, sums, g->storages.p[i].maker, r->bytes[i]);
    }
    for (size_t i = 0; i < g->ops.n && sums != NULL; i++) {
        if (r->hidden_is_live[i])
            add_share(r, sums, (int32_t)i, r->hidden[i]);
    }
    for (uint32_t i = 0; i < g->modules.keys.n && sums != NULL; i++) {
        struct dry_share *slot = sums[i] != 0 ? ms_vec_push(&r->plan->modules) : NULL;
        r->failed |= sums[i] != 0 && slot == NULL;
        if (slot != NULL)
            *slot = (struct dry_share){i, sums[i]};
    }
    ms_vec_sort(&r->plan->modules, by_bytes);
    ms_free(sums);
}

static void note_peak(struct replay *r, uint64_t extra)
{
    struct dry_plan *p = r->plan;
    r->moments++;
    if (r->is_second) {
        if (r->moments == r->peak_moment)
            collect_modules(r);
        return;
    }
    const uint64_t grads = gradients_of_rank(r);
    const uint64_t temporary = r->temporary + extra + gathered(r);
    const uint64_t all = r->parameters + r->states + grads + r->activations + temporary;
    if (all <= p->peak)
        return;
    p->peak = all;
    p->by_kind[MSTX_MEM_PARAMETER] = r->parameters;
    p->by_kind[MSTX_MEM_OPTIMIZER] = r->states;
    p->by_kind[MSTX_MEM_GRADIENT] = grads;
    p->by_kind[MSTX_MEM_ACTIVATION] = r->activations;
    p->by_kind[MSTX_MEM_TEMPORARY] = temporary;
    p->phase = ms_str_of(r->phase);
    p->op = r->now >= 0 ? r->g->ops.p[r->now].name : MS_STR("");
    r->peak_moment = r->moments;
}

/* ---- what is kept ------------------------------------------------------------------------------ */

static bool needs_backward(const struct replay *r, const struct dry_op *op)
{
    return op->out >= 0 && r->g->storages.p[op->out].needs_grad;
}

/* Tells whether an operator runs again in the backward instead of keeping what it needs. */
static bool is_recomputed(const struct replay *r, const struct dry_op *op)
{
    if (r->l->recompute == DRY_RECOMPUTE_FULL)
        return op->layer >= 0;
    return r->l->recompute == DRY_RECOMPUTE_SELECTIVE ? op->is_attention : op->is_recomputed;
}

/* Tells whether an operator keeps input i. A sum of a recomputed layer keeps what enters it. */
static bool keeps_input(const struct dry_op *op, uint32_t i)
{
    return (op->keeps & DRY_KEEPS_INPUTS) != 0 || ((op->keeps & DRY_KEEPS_INPUT) != 0 && i == 0);
}

/* What enters a recomputed layer from outside is kept, as its first operator needs it again. */
static bool enters_layer(const struct replay *r, const struct dry_op *op, int32_t storage)
{
    const struct dry_storage *s = &r->g->storages.p[storage];
    return s->maker == DRY_NONE || r->g->ops.p[s->maker].layer != op->layer;
}

static void hold(struct replay *r, int32_t storage, int by)
{
    if (storage >= 0 && !r->g->storages.p[storage].is_parameter)
        r->keeps[storage] += (uint32_t)by;
}

/* Adds (by 1) or removes (by -1) what an operator keeps. */
static void hold_all(struct replay *r, const struct dry_op *op, int by)
{
    const bool again = is_recomputed(r, op);
    for (uint32_t i = 0; i < op->ins; i++) {
        if (again ? enters_layer(r, op, op->in[i]) : keeps_input(op, i))
            hold(r, op->in[i], by);
    }
    if (!again && (op->keeps & DRY_KEEPS_OUTPUT) != 0)
        hold(r, op->out, by);
}

static void release(struct replay *r, int32_t storage)
{
    if (storage < 0 || !r->is_live[storage] || r->keeps[storage] != 0)
        return;
    r->is_live[storage] = false;
    r->activations -= r->bytes[storage];
}

static void make_live(struct replay *r, int32_t storage)
{
    if (storage < 0 || r->is_live[storage] || r->g->storages.p[storage].is_parameter)
        return;
    r->is_live[storage] = true;
    r->activations += r->bytes[storage];
}

static void set_hidden(struct replay *r, size_t op, bool live)
{
    if (r->hidden_is_live[op] != live)
        r->activations += live ? r->hidden[op] : (uint64_t)0 - r->hidden[op];
    r->hidden_is_live[op] = live;
}

/* ---- forward --------------------------------------------------------------------------------- */

/* Frees a storage that no operator of the forward reads behind `now`. */
static void release_read(struct replay *r, int32_t storage, int32_t now)
{
    if (storage >= 0 && r->g->storages.p[storage].last_use <= now &&
        r->g->storages.p[storage].maker != DRY_NONE)
        release(r, storage);
}

static void run_forward(struct replay *r)
{
    const struct dry_graph *g = r->g;
    r->phase = "forward";
    for (size_t i = 0; i < g->storages.n; i++) {
        if (g->storages.p[i].maker == DRY_NONE)
            make_live(r, (int32_t)i);
    }
    for (size_t i = 0; i < g->ops.n; i++) {
        const struct dry_op *op = &g->ops.p[i];
        r->now = (int32_t)i;
        for (uint32_t k = 0; k < op->ins; k++) {
            if (g->storages.p[op->in[k]].maker == (int32_t)i)
                make_live(r, op->in[k]); /* its maker has no record */
        }
        make_live(r, op->out);
        const bool keeps = needs_backward(r, op) && !is_recomputed(r, op);
        set_hidden(r, i, true);
        if (needs_backward(r, op))
            hold_all(r, op, 1);
        note_peak(r, 0);
        set_hidden(r, i, keeps);
        for (uint32_t k = 0; k < op->ins; k++)
            release_read(r, op->in[k], (int32_t)i);
        if (i + 1 < g->ops.n)
            release_read(r, op->out, (int32_t)i);
    }
}

/* ---- backward -------------------------------------------------------------------------------- */

static enum ms_rc new_gradient(struct replay *r, uint64_t bytes, int32_t *number,
                               struct ms_err *err)
{
    struct gradient *g = ms_vec_push(&r->gradients);
    if (g == NULL)
        return ms_no_memory(err);
    *g = (struct gradient){bytes, 1};
    r->temporary += bytes;
    *number = (int32_t)r->gradients.n;
    return MS_OK;
}

static void drop_gradient(struct replay *r, int32_t number)
{
    if (number == 0)
        return;
    struct gradient *g = &r->gradients.p[number - 1];
    ms_assert(g->refs > 0);
    if (--g->refs == 0)
        r->temporary -= g->bytes;
}

/* Adds a contribution to the gradient of a storage: the first one is taken over, a further one is
 * added into the buffer if nothing else shares it. */
static enum ms_rc contribute(struct replay *r, int32_t storage, int32_t from, struct ms_err *err)
{
    int32_t *to = &r->gradient[storage], sum = 0;
    if (*to == 0) {
        *to = from;
        return MS_OK;
    }
    note_peak(r, 0);
    if (r->gradients.p[*to - 1].refs == 1) {
        drop_gradient(r, from);
        return MS_OK;
    }
    MS_TRY(new_gradient(r, r->bytes[storage], &sum, err));
    note_peak(r, 0);
    drop_gradient(r, *to);
    drop_gradient(r, from);
    *to = sum;
    return MS_OK;
}

/* ---- operators without a record --------------------------------------------------------------- */

/* The gradient of a storage whose maker has no record goes on into that maker, which stands before
 * the next operator whose output has got no gradient. If that output is no larger, it is a part of
 * the gradient, as behind cat; else it is put together from several, as behind chunk. */

static enum ms_rc leave_open(struct replay *r, int32_t gradient, struct ms_err *err)
{
    struct open_gradient *o = gradient != 0 ? ms_vec_push(&r->open) : NULL;
    if (gradient == 0)
        return MS_OK;
    if (o == NULL)
        return ms_no_memory(err);
    *o = (struct open_gradient){gradient, r->gradients.p[gradient - 1].bytes};
    return MS_OK;
}

/* Drops open gradients of as many bytes. */
static void use_up(struct replay *r, uint64_t bytes)
{
    while (r->open.n != 0 && bytes != 0) {
        const struct open_gradient *o = &r->open.p[r->open.n - 1];
        bytes -= bytes < o->left ? bytes : o->left;
        drop_gradient(r, o->gradient);
        r->open.n--;
    }
}

/* Finds a gradient for an output that no recorded operator gave one. */
static enum ms_rc find_gradient(struct replay *r, uint64_t bytes, int32_t *gradient,
                                struct ms_err *err)
{
    struct open_gradient *o = r->open.n != 0 ? &r->open.p[r->open.n - 1] : NULL;
    *gradient = 0;
    if (o == NULL)
        return MS_OK;
    if (o->left >= bytes) {
        *gradient = o->gradient;
        r->gradients.p[o->gradient - 1].refs++;
        o->left -= bytes;
        if (o->left == 0)
            use_up(r, 1);
        return MS_OK;
    }
    MS_TRY(new_gradient(r, bytes, gradient, err));
    note_peak(r, 0);
    use_up(r, bytes);
    return MS_OK;
}

/* Gives one input of an operator its gradient. */
static enum ms_rc give_gradient(struct replay *r, const struct dry_op *op, int32_t storage,
                                int32_t of_out, struct ms_err *err)
{
    const struct dry_storage *s = &r->g->storages.p[storage];
    int32_t number = 0;
    if (!s->needs_grad)
        return MS_OK;
    if (s->is_parameter) {
        r->gradient_bytes += r->has_grad[storage] ? 0 : r->bytes[storage];
        note_peak(r, r->has_grad[storage] ? r->bytes[storage] : 0);
        r->has_grad[storage] = true;
        return MS_OK;
    }
    if ((op->keeps & DRY_IS_SUM) != 0 && of_out != 0 &&
        r->gradients.p[of_out - 1].bytes == r->bytes[storage]) {
        r->gradients.p[of_out - 1].refs++;
        return contribute(r, storage, of_out, err);
    }
    MS_TRY(new_gradient(r, r->bytes[storage], &number, err));
    return contribute(r, storage, number, err);
}

/* Allocates again what a recomputed operator needs; the operators of one layer do so together, when
 * the backward enters the layer. */
static void recompute(struct replay *r, int32_t from)
{
    const struct dry_graph *g = r->g;
    const int64_t layer = g->ops.p[from].layer;
    const bool full = r->l->recompute != DRY_RECOMPUTE_SELECTIVE;
    for (int32_t i = from; i >= 0 && (i == from || (full && g->ops.p[i].layer == layer)); i--) {
        const struct dry_op *op = &g->ops.p[i];
        for (uint32_t k = 0; k < op->ins; k++) {
            if (keeps_input(op, k) && !g->storages.p[op->in[k]].is_parameter) {
                make_live(r, op->in[k]);
                r->keeps[op->in[k]]++;
            }
        }
        if ((op->keeps & DRY_KEEPS_OUTPUT) != 0) {
            make_live(r, op->out);
            hold(r, op->out, 1);
        }
        set_hidden(r, (size_t)i, true);
    }
}

static bool enters_recomputed(const struct replay *r, int32_t i)
{
    const struct dry_op *op = &r->g->ops.p[i];
    if (!is_recomputed(r, op))
        return false;
    if (r->l->recompute == DRY_RECOMPUTE_SELECTIVE)
        return true;
    const bool last = i + 1 == (int32_t)r->g->ops.n;
    return last || r->g->ops.p[i + 1].layer != op->layer || !is_recomputed(r, op + 1);
}

/* Frees what an operator kept, once its backward is done. */
static void free_kept(struct replay *r, int32_t i)
{
    const struct dry_op *op = &r->g->ops.p[i];
    hold_all(r, op, -1);
    if (is_recomputed(r, op)) {
        for (uint32_t k = 0; k < op->ins; k++) {
            if (keeps_input(op, k))
                hold(r, op->in[k], -1);
        }
        if ((op->keeps & DRY_KEEPS_OUTPUT) != 0)
            hold(r, op->out, -1);
    }
    set_hidden(r, (size_t)i, false);
    for (uint32_t k = 0; k < op->ins; k++)
        release_read(r, op->in[k], INT32_MAX);
    release(r, op->out);
}

/* The gradients of inputs that this operator was the first to read, and nobody made, go on. */
static enum ms_rc leave_found(struct replay *r, int32_t i, struct ms_err *err)
{
    const struct dry_op *op = &r->g->ops.p[i];
    for (uint32_t k = 0; k < op->ins; k++) {
        const struct dry_storage *s = &r->g->storages.p[op->in[k]];
        if (!s->is_found || s->maker != i)
            continue;
        MS_TRY(leave_open(r, r->gradient[op->in[k]], err));
        r->gradient[op->in[k]] = 0;
    }
    return MS_OK;
}

/* What the backward of an operator needs beside its results. */
static uint64_t backward_extra(const struct replay *r, int32_t i)
{
    const struct dry_op *op = &r->g->ops.p[i];
    if ((op->keeps & DRY_KEEPS_HIDDEN) != 0)
        return r->hidden[i]; /* the derivative of a loss first makes that of its hidden part */
    if (r->l->on_cpu && (op->keeps & DRY_IS_CONVOLUTION) != 0 && op->ins != 0)
        return r->bytes[op->in[0]] + r->bytes[op->out];
    return 0;
}

static enum ms_rc run_op_backward(struct replay *r, int32_t i, struct ms_err *err)
{
    const struct dry_op *op = &r->g->ops.p[i];
    const bool shares =
        (op->keeps & (DRY_IS_VIEW | DRY_IN_PLACE)) != 0 && op->ins != 0 && op->out == op->in[0];
    r->now = i;
    if (enters_recomputed(r, i))
        recompute(r, i);
    int32_t of_out = shares ? 0 : r->gradient[op->out];
    if (!shares)
        r->gradient[op->out] = 0;
    if (!shares && of_out == 0)
        MS_TRY(find_gradient(r, r->bytes[op->out], &of_out, err));
    const uint64_t extra = backward_extra(r, i);
    for (uint32_t k = 0; k < op->ins; k++) {
        if (!shares || op->in[k] != op->out)
            MS_TRY(give_gradient(r, op, op->in[k], of_out, err));
    }
    note_peak(r, extra);
    drop_gradient(r, of_out);
    free_kept(r, i);
    return leave_found(r, i, err);
}

static enum ms_rc run_backward(struct replay *r, struct ms_err *err)
{
    r->phase = "backward";
    for (int32_t i = (int32_t)r->g->ops.n - 1; i >= 0; i--) {
        if (needs_backward(r, &r->g->ops.p[i]))
            MS_TRY(run_op_backward(r, i, err));
    }
    return MS_OK;
}

static void run_optimizer(struct replay *r)
{
    r->phase = "optimizer";
    r->now = -1;
    const uint64_t largest = r->g->largest_parameter / (uint64_t)r->l->tp;
    if (r->l->optimizer == DRY_OPTIMIZER_ADAM)
        note_peak(r, r->l->on_cpu ? 2 * largest : r->states / 2);
    note_peak(r, 0);
}

/* ---- the whole --------------------------------------------------------------------------------- */

static double flops_of(const struct dry_graph *g, const struct dry_layout *l)
{
    double flops = l->recompute == DRY_RECOMPUTE_NONE ? g->flops_machine : g->flops_model;
    if (l->recompute == DRY_RECOMPUTE_FULL)
        flops *= 4.0 / 3; /* one more forward beside a forward and a backward of twice its size */
    if (l->micro_batch > 0 && g->batch > 0)
        flops *= (double)l->micro_batch / (double)g->batch;
    return flops / (double)(l->tp * l->pp);
}

static enum ms_rc run_step(struct replay *r, struct ms_err *err)
{
    run_forward(r);
    MS_TRY(run_backward(r, err));
    run_optimizer(r);
    return r->failed ? ms_no_memory(err) : MS_OK;
}

/* Sets everything that a replay changes to what it is before the step. */
static void begin_again(struct replay *r)
{
    const size_t n = r->g->storages.n, ops = r->g->ops.n;
    memset(r->keeps, 0, n * sizeof *r->keeps);
    memset(r->is_live, 0, n * sizeof *r->is_live);
    memset(r->gradient, 0, n * sizeof *r->gradient);
    memset(r->has_grad, 0, n * sizeof *r->has_grad);
    memset(r->hidden_is_live, 0, ops * sizeof *r->hidden_is_live);
    r->gradients.n = r->open.n = 0;
    r->activations = r->temporary = r->gradient_bytes = r->moments = 0;
    r->is_second = true;
}

static bool make_room(struct replay *r)
{
    const size_t n = r->g->storages.n + 1, ops = r->g->ops.n + 1;
    r->bytes = ms_calloc(n, sizeof *r->bytes);
    r->keeps = ms_calloc(n, sizeof *r->keeps);
    r->is_live = ms_calloc(n, sizeof *r->is_live);
    r->gradient = ms_calloc(n, sizeof *r->gradient);
    r->has_grad = ms_calloc(n, sizeof *r->has_grad);
    r->hidden = ms_calloc(ops, sizeof *r->hidden);
    r->hidden_is_live = ms_calloc(ops, sizeof *r->hidden_is_live);
    return r->bytes != NULL && r->keeps != NULL && r->is_live != NULL && r->gradient != NULL &&
           r->has_grad != NULL && r->hidden != NULL && r->hidden_is_live != NULL;
}

static void replay_free(struct replay *r)
{
    ms_free(r->bytes);
    ms_free(r->keeps);
    ms_free(r->is_live);
    ms_free(r->gradient);
    ms_free(r->has_grad);
    ms_free(r->hidden);
    ms_free(r->hidden_is_live);
    ms_vec_free(&r->gradients);
    ms_vec_free(&r->open);
}

enum ms_rc mstx__dry_plan_make(const struct dry_graph *g, const struct dry_layout *layout,
                               struct dry_plan *plan, struct ms_err *err)
{
    ms_assert(layout->tp > 0 && layout->pp > 0 && layout->dp > 0);
    struct replay r = {.g = g, .l = layout, .plan = plan};
    *plan = (struct dry_plan){.phase = MS_STR(""), .op = MS_STR("")};
    enum ms_rc rc = make_room(&r) ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK) {
        set_sizes(&r);
        rc = run_step(&r, err);
    }
    if (rc == MS_OK) {
        begin_again(&r);
        rc = run_step(&r, err);
    }
    plan->flops = flops_of(g, layout);
    replay_free(&r);
    if (rc != MS_OK)
        mstx__dry_plan_free(plan);
    return rc;
}

void mstx__dry_plan_free(struct dry_plan *plan)
{
    ms_vec_free(&plan->modules);
}
