/* SPDX-License-Identifier: MIT
 *
 * op_norms: normalisations and softmax.
 */
#include "compare/recompute/operator_call_int.h"

tape_id rec_softmax(struct tape *t, tape_id x, unsigned axis)
{
    const tape_id most = rec_detach(t, tape_reduce(t, TAPE_MAX, x, 1U << axis, true));
    const tape_id e = tape_exp(t, tape_sub(t, x, most));
    return tape_div(t, e, tape_reduce(t, TAPE_SUM, e, 1U << axis, true));
}

tape_id rec_log_softmax(struct tape *t, tape_id x, unsigned axis)
{
    const tape_id most = rec_detach(t, tape_reduce(t, TAPE_MAX, x, 1U << axis, true));
    const tape_id shifted = tape_sub(t, x, most);
    return tape_sub(t, shifted,
                    tape_log(t, tape_reduce(t, TAPE_SUM, tape_exp(t, shifted), 1U << axis, true)));
}

/* Axis of functional.softmax without dim, and of the module, which does not record it. */
static unsigned softmax_axis(struct rec_call *c, tape_id x)
{
    const unsigned n = rec_shape(c, x).ndim;
    const char *name = rec_find(c, -1, "axis") != NULL ? "axis" : "dim";
    return rec_axis(c, 1, name, n == 0 || n == 1 || n == 3 ? 0 : 1, n);
}

static void op_softmax(struct rec_call *c)
{
    const tape_id x = rec_want(c, 0, "input");
    rec_give(c, rec_softmax(c->tape, x, softmax_axis(c, x)));
}

static void op_softmin(struct rec_call *c)
{
    const tape_id x = rec_want(c, 0, "input");
    rec_give(c, rec_softmax(c->tape, tape_neg(c->tape, x), softmax_axis(c, x)));
}

static void op_log_softmax(struct rec_call *c)
{
    const tape_id x = rec_want(c, 0, "input");
    rec_give(c, rec_log_softmax(c->tape, x, softmax_axis(c, x)));
}

/* A softmax module does not record its axis: the last is what networks use. */
static void op_softmax_module(struct rec_call *c)
{
    const tape_id x = rec_want(c, 0, "input");
    const unsigned n = rec_shape(c, x).ndim;
    rec_assume(c, "the last axis");
    rec_give(c, rec_softmax(c->tape, x, n != 0 ? n - 1 : 0));
}

static void op_logsumexp(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input");
    const unsigned axes = rec_axes(c, 1, "dim", rec_shape(c, x).ndim);
    const tape_id most = rec_detach(t, tape_reduce(t, TAPE_MAX, x, axes, true));
    const tape_id sum = tape_reduce(t, TAPE_SUM, tape_exp(t, tape_sub(t, x, most)), axes, true);
    const tape_id y = tape_add(t, tape_log(t, sum), most);
    if (rec_flag(c, 2, "keepdim", false))
        rec_give(c, y);
    else
        rec_give(c, tape_reduce(t, TAPE_SUM, y, axes, false));
}

/* (x - mean) / sqrt(variance + eps) over some axes. */
static tape_id standardise(struct tape *t, tape_id x, unsigned axes, double eps)
{
    const tape_id centred = tape_sub(t, x, tape_mean(t, x, axes, true));
    const tape_id variance = tape_mean(t, tape_square(t, centred), axes, true);
    return tape_mul(t, centred, tape_rsqrt(t, tape_linear(t, variance, 1, eps)));
}

static tape_id scale_and_shift(struct tape *t, tape_id y, tape_id weight, tape_id bias)
{
    if (weight != TAPE_NONE)
        y = tape_mul(t, y, weight);
    return bias != TAPE_NONE ? tape_add(t, y, bias) : y;
}

/* Bits of the last axes, as many as the normalised shape has; that of a module's weight. */
static unsigned normalised_axes(const struct rec_call *c, tape_id x, tape_id weight)
{
    int64_t list[TAPE_DIMS];
    const unsigned ndim = rec_shape(c, x).ndim;
    unsigned n = rec_list(c, -1, "normalized_shape", list, TAPE_DIMS);
    const struct rec_value *second = c->nargs > 1 ? &c->args[1] : NULL;
    if (n == 0 && second != NULL && second->kind == REC_LIST)
        n = (unsigned)second->n;
    if (n == 0)
        n = weight != TAPE_NONE ? rec_shape(c, weight).ndim : 1;
    return n <= ndim ? ((1U << ndim) - 1) & ~((1U << (ndim - n)) - 1) : 0;
}

/* A module does not record its eps. */
static double read_eps(struct rec_call *c, int at, double otherwise, const char *said)
{
    if (rec_find(c, at, "eps") == NULL && rec_find(c, -1, "epsilon") == NULL && c->nargs <= 1)
        rec_assume(c, said);
    return rec_number(c, at, rec_find(c, -1, "epsilon") != NULL ? "epsilon" : "eps", otherwise);
}

/* MindSpore's primitive LayerNorm(x, gamma, beta), and its cell, whose eps is 1e-7. */
static void op_layer_norm_of_mindspore(struct rec_call *c)
{
    const bool is_cell = c->nargs < 2;
    const tape_id x = rec_want(c, 0, "input"), w = rec_tensor(c, is_cell ? -1 : 1, "gamma"),
                  b = rec_tensor(c, is_cell ? -1 : 2, "beta");
    rec_assume(c, "eps 1e-7");
    rec_give(
        c, scale_and_shift(c->tape, standardise(c->tape, x, normalised_axes(c, x, w), 1e-7), w, b));
    for (unsigned i = 0; !is_cell && i < 2; i++)
        rec_give(c, TAPE_NONE); /* mean and variance */
}

static void op_layer_norm(struct rec_call *c)
{
    if (c->is_mindspore && (c->is_primitive || c->nargs <= 1)) {
        op_layer_norm_of_mindspore(c);
        return;
    }
    const tape_id x = rec_want(c, 0, "input"), w = rec_tensor(c, 2, "weight"),
                  b = rec_tensor(c, 3, "bias");
    const double eps = read_eps(c, 4, 1e-5, "eps 1e-5");
    rec_give(
        c, scale_and_shift(c->tape, standardise(c->tape, x, normalised_axes(c, x, w), eps), w, b));
}

static tape_id rms_norm(struct tape *t, tape_id x, unsigned axes, double eps)
{
    const tape_id mean = tape_mean(t, tape_square(t, x), axes, true);
    return tape_mul(t, x, tape_rsqrt(t, tape_linear(t, mean, 1, eps)));
}

/* Without eps PyTorch takes the distance of 1 to the next number of the type. */
static void op_rms_norm(struct rec_call *c)
{
    const tape_id x = rec_want(c, 0, "input"), w = rec_tensor(c, 2, "weight");
    const double eps = rec_number(c, 3, "eps", 2 * c->tape->unit);
    rec_give(c, scale_and_shift(c->tape, rms_norm(c->tape, x, normalised_axes(c, x, w), eps), w,
                                TAPE_NONE));
}

/* npu_rms_norm(x, gamma, epsilon) gives the result and 1 / rms; so do modules of this name. */
static void op_npu_rms_norm(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "self"), w = rec_tensor(c, 1, "weight") != TAPE_NONE
                                                      ? rec_tensor(c, 1, "weight")
                                                      : rec_tensor(c, 1, "gamma");
    const double eps = read_eps(c, 2, 1e-6, "eps 1e-6");
    const unsigned n = rec_shape(c, x).ndim;
    if (n != 0)
        rec_give(c, scale_and_shift(t, rms_norm(t, x, 1U << (n - 1), eps), w, TAPE_NONE));
}

/* Shape {1, channels, 1, ...} of a parameter that each channel has one of. */
static tape_id by_channel(struct tape *t, tape_id p, unsigned ndim)
{
    if (p == TAPE_NONE)
        return p;
    struct tape_shape s = {.ndim = ndim, .dim = {1, 1, 1, 1, 1, 1, 1, 1}};
    s.dim[ndim > 1 ? 1 : 0] = tape_at(t, p)->n;
    return tape_reshape(t, p, &s);
}

static void op_batch_norm(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input"), mean = rec_tensor(c, 1, "running_mean"),
                  var = rec_tensor(c, 2, "running_var"), w = rec_tensor(c, 3, "weight"),
                  b = rec_tensor(c, 4, "bias");
    const unsigned n = rec_shape(c, x).ndim;
    const double eps = rec_number(c, 7, "eps", 1e-5);
    if (x == TAPE_NONE || n < 2)
        return;
    tape_id y;
    if (rec_flag(c, 5, "training", c->nargs <= 1) || mean == TAPE_NONE || var == TAPE_NONE) {
        if (c->nargs <= 1)
            rec_assume(c, "training, and eps 1e-5");
        y = standardise(t, x, ((1U << n) - 1) & ~2U, eps);
    } else {
        const tape_id scale = tape_rsqrt(t, tape_linear(t, by_channel(t, var, n), 1, eps));
        y = tape_mul(t, tape_sub(t, x, by_channel(t, mean, n)), scale);
    }
    rec_give(c, scale_and_shift(t, y, by_channel(t, w, n), by_channel(t, b, n)));
}

static void group_norm(struct rec_call *c, tape_id x, uint64_t groups, double eps, tape_id w,
                       tape_id b)
{
    struct tape *t = c->tape;
    const struct tape_shape s = rec_shape(c, x);
    if (x == TAPE_NONE || s.ndim < 2 || groups == 0 || s.dim[1] % groups != 0) {
        rec_unsupported(c, "channels that do not divide into groups");
        return;
    }
    struct tape_shape grouped = {.ndim = 3, .dim = {s.dim[0], groups, 0}};
    grouped.dim[2] = tape_at(t, x)->n / (s.dim[0] * groups != 0 ? s.dim[0] * groups : 1);
    const tape_id y = standardise(t, tape_reshape(t, x, &grouped), 4U, eps);
    rec_give(c, scale_and_shift(t, tape_reshape(t, y, &s), by_channel(t, w, s.ndim),
                                by_channel(t, b, s.ndim)));
}

static void op_group_norm(struct rec_call *c)
{
    const double groups = rec_number(c, 1, "num_groups", 0);
    group_norm(c, rec_want(c, 0, "input"), groups > 0 && groups < 1e9 ? (uint64_t)groups : 0,
               rec_number(c, 4, "eps", 1e-5), rec_tensor(c, 2, "weight"), rec_tensor(c, 3, "bias"));
}

static void op_instance_norm(struct rec_call *c)
{
    const tape_id x = rec_want(c, 0, "input");
    if (rec_flag(c, 5, "use_input_stats", true))
        group_norm(c, x, rec_shape(c, x).ndim > 1 ? rec_shape(c, x).dim[1] : 0,
                   rec_number(c, 7, "eps", 1e-5), rec_tensor(c, 3, "weight"),
                   rec_tensor(c, 4, "bias"));
    else
        rec_unsupported(c, "instance_norm with running statistics");
}

/* x / max(norm(x), eps) */
static void op_normalize(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input");
    const double p = rec_number(c, 1, "p", 2), eps = rec_number(c, 3, "eps", 1e-12);
    const unsigned axis = rec_axis(c, 2, "dim", 1, rec_shape(c, x).ndim);
    if (p != 1 && p != 2) {
        rec_unsupported(c, "a norm other than 1 and 2");
        return;
    }
    tape_id norm =
        tape_reduce(t, TAPE_SUM, p == 2 ? tape_square(t, x) : tape_abs(t, x), 1U << axis, true);
    norm = tape_clamp(t, p == 2 ? tape_sqrt(t, norm) : norm, eps, INFINITY);
    const struct tape_shape s = rec_shape(c, x);
    rec_give(c, tape_div(t, x, tape_expand(t, norm, &s)));
}

const struct rec_operator rec_norms[] = {{"softmax", op_softmax},
                                         {"softmin", op_softmin},
                                         {"log_softmax", op_log_softmax},
                                         {"Softmax", op_softmax_module},
                                         {"logsumexp", op_logsumexp},
                                         {"layer_norm", op_layer_norm},
                                         {"LayerNorm", op_layer_norm},
                                         {"FusedLayerNorm", op_layer_norm},
                                         {"rms_norm", op_rms_norm},
                                         {"npu_rms_norm", op_npu_rms_norm},
                                         {"RmsNorm", op_npu_rms_norm},
                                         {"RMSNorm", op_npu_rms_norm},
                                         {"LlamaRMSNorm", op_npu_rms_norm},
                                         {"Qwen2RMSNorm", op_npu_rms_norm},
                                         {"batch_norm", op_batch_norm},
                                         {"BatchNorm1d", op_batch_norm},
                                         {"BatchNorm2d", op_batch_norm},
                                         {"group_norm", op_group_norm},
                                         {"instance_norm", op_instance_norm},
                                         {"normalize", op_normalize},
                                         {NULL, NULL}};
