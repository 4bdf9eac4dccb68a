/* SPDX-License-Identifier: MIT
 *
 * op_activations: activation functions.
 */
#include "compare/recompute/operator_call_int.h"

/* Scale 1 / sqrt(2) of the error function in gelu, and the constants of its approximation. */
#define GELU_TANH  0.79788456080286535588
#define GELU_CUBIC 0.044715

static tape_id named(struct tape *t, const char *name, tape_id x)
{
    return tape_unary(t, tape_function_find(ms_str_of(name)), x, 0, 0);
}

static void op_gelu(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input");
    const struct ms_str form = rec_text(c, 1, "approximate", "none");
    tape_id inner;
    if (ms_str_is(form, "tanh")) {
        const tape_id cube =
            tape_mul(t, tape_mul(t, tape_square(t, x), x), tape_constant(t, GELU_CUBIC));
        inner = tape_tanh(t, tape_linear(t, tape_add(t, x, cube), GELU_TANH, 0));
    } else {
        inner = named(t, "erf", tape_linear(t, x, M_SQRT1_2, 0));
    }
    rec_give(c, tape_mul(t, tape_linear(t, x, 0.5, 0), tape_linear(t, inner, 1, 1)));
}

static tape_id silu(struct tape *t, tape_id x)
{
    return tape_mul(t, x, tape_sigmoid(t, x));
}

static void op_silu(struct rec_call *c)
{
    rec_give(c, silu(c->tape, rec_want(c, 0, "input")));
}

/* Splits an axis in two halves. */
static bool halves(struct rec_call *c, tape_id x, int at, tape_id half[2])
{
    const struct tape_shape s = rec_shape(c, x);
    const unsigned axis = rec_axis(c, at, "dim", -1, s.ndim);
    if (x == TAPE_NONE || tape_failed(c->tape))
        return false;
    if (s.ndim == 0 || s.dim[axis] % 2 != 0) {
        rec_unsupported(c, "an axis of odd length has no halves");
        return false;
    }
    for (unsigned i = 0; i < 2; i++)
        half[i] = tape_slice(c->tape, x, axis, i * s.dim[axis] / 2, s.dim[axis] / 2, 1);
    return true;
}

static void op_glu(struct rec_call *c)
{
    tape_id half[2];
    if (halves(c, rec_want(c, 0, "input"), 1, half))
        rec_give(c, tape_mul(c->tape, half[0], tape_sigmoid(c->tape, half[1])));
}

/* silu(first half) * second half, as of NPU operators. */
static void op_swiglu(struct rec_call *c)
{
    tape_id half[2];
    if (halves(c, rec_want(c, 0, "input"), 1, half))
        rec_give(c, tape_mul(c->tape, silu(c->tape, half[0]), half[1]));
}

static void op_mish(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input");
    rec_give(c, tape_mul(t, x, tape_tanh(t, tape_unary(t, &tape_softplus_function, x, 1, 20))));
}

static void op_softplus(struct rec_call *c)
{
    rec_give(c, tape_unary(c->tape, &tape_softplus_function, rec_want(c, 0, "input"),
                           rec_number(c, 1, "beta", 1), rec_number(c, 2, "threshold", 20)));
}

static void op_leaky_relu(struct rec_call *c)
{
    rec_give(c, tape_unary(c->tape, &tape_leaky_function, rec_want(c, 0, "input"),
                           rec_number(c, 1, "negative_slope", 0.01), 0));
}

static void op_prelu(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input");
    tape_id w = rec_want(c, 1, "weight");
    struct tape_shape s = rec_shape(c, w);
    const struct tape_shape xs = rec_shape(c, x);
    if (w == TAPE_NONE)
        return;
    if (s.ndim == 1 && s.dim[0] > 1 && xs.ndim > 2) { /* one weight for each channel */
        struct tape_shape wide = {.ndim = xs.ndim - 1, .dim = {s.dim[0], 1, 1, 1, 1, 1, 1, 1}};
        w = tape_reshape(t, w, &wide);
    }
    const tape_id positive = tape_unary(t, &tape_threshold_function, x, 0, 0);
    rec_give(c, tape_add(t, positive, tape_mul(t, w, tape_sub(t, x, positive))));
}

static void op_elu(struct rec_call *c)
{
    rec_give(c, tape_unary(c->tape, &tape_elu_function, rec_want(c, 0, "input"),
                           rec_number(c, 1, "alpha", 1), 1));
}

static void op_celu(struct rec_call *c)
{
    const double alpha = rec_number(c, 1, "alpha", 1);
    rec_give(c, tape_unary(c->tape, &tape_elu_function, rec_want(c, 0, "input"), alpha, alpha));
}

static void op_hardtanh(struct rec_call *c)
{
    rec_give(c, tape_clamp(c->tape, rec_want(c, 0, "input"), rec_number(c, 1, "min_val", -1),
                           rec_number(c, 2, "max_val", 1)));
}

static void op_threshold(struct rec_call *c)
{
    rec_give(c, tape_unary(c->tape, &tape_threshold_function, rec_want(c, 0, "input"),
                           rec_number(c, 1, "threshold", 0), rec_number(c, 2, "value", 0)));
}

static void op_softshrink(struct rec_call *c)
{
    rec_give(c, tape_unary(c->tape, &tape_softshrink_function, rec_want(c, 0, "input"),
                           rec_number(c, 1, "lambd", 0.5), 0));
}

static void op_hardshrink(struct rec_call *c)
{
    rec_give(c, tape_unary(c->tape, &tape_hardshrink_function, rec_want(c, 0, "input"),
                           rec_number(c, 1, "lambd", 0.5), 0));
}

/* A dropout that drops something is random: its mask is not in the dump. */
static void op_dropout(struct rec_call *c)
{
    const double p = rec_number(c, 1, "p", 0.5);
    if (p != 0 && rec_flag(c, 2, "training", true))
        rec_unsupported(c, "a dropout is random: its mask is not in the dump");
    else
        rec_give(c, rec_want(c, 0, "input"));
}

static void op_softsign(struct rec_call *c)
{
    const tape_id x = rec_want(c, 0, "input");
    rec_give(c, tape_div(c->tape, x, tape_linear(c->tape, tape_abs(c->tape, x), 1, 1)));
}

static void op_tanhshrink(struct rec_call *c)
{
    const tape_id x = rec_want(c, 0, "input");
    rec_give(c, tape_sub(c->tape, x, tape_tanh(c->tape, x)));
}

#define NAMED(function, name)                                                                      \
    static void function(struct rec_call *c)                                                       \
    {                                                                                              \
        rec_give(c, named(c->tape, name, rec_want(c, 0, "input")));                                \
    }
NAMED(op_relu, "relu")
NAMED(op_sigmoid, "sigmoid")
NAMED(op_tanh, "tanh")
NAMED(op_relu6, "relu6")
NAMED(op_logsigmoid, "logsigmoid")
NAMED(op_hardswish, "hardswish")
NAMED(op_hardsigmoid, "hardsigmoid")
NAMED(op_selu, "selu")

const struct rec_operator rec_activations[] = {{"gelu", op_gelu},
                                               {"GELU", op_gelu},
                                               {"GeLU", op_gelu},
                                               {"silu", op_silu},
                                               {"SiLU", op_silu},
                                               {"swish", op_silu},
                                               {"glu", op_glu},
                                               {"GLU", op_glu},
                                               {"npu_swiglu", op_swiglu},
                                               {"swiglu", op_swiglu},
                                               {"mish", op_mish},
                                               {"Mish", op_mish},
                                               {"softplus", op_softplus},
                                               {"Softplus", op_softplus},
                                               {"leaky_relu", op_leaky_relu},
                                               {"LeakyReLU", op_leaky_relu},
                                               {"prelu", op_prelu},
                                               {"PReLU", op_prelu},
                                               {"elu", op_elu},
                                               {"ELU", op_elu},
                                               {"celu", op_celu},
                                               {"CELU", op_celu},
                                               {"hardtanh", op_hardtanh},
                                               {"Hardtanh", op_hardtanh},
                                               {"threshold", op_threshold},
                                               {"softshrink", op_softshrink},
                                               {"Softshrink", op_softshrink},
                                               {"hardshrink", op_hardshrink},
                                               {"Hardshrink", op_hardshrink},
                                               {"dropout", op_dropout},
                                               {"ReLU", op_relu},
                                               {"Sigmoid", op_sigmoid},
                                               {"Tanh", op_tanh},
                                               {"ReLU6", op_relu6},
                                               {"LogSigmoid", op_logsigmoid},
                                               {"softsign", op_softsign},
                                               {"Softsign", op_softsign},
                                               {"Hardswish", op_hardswish},
                                               {"Hardsigmoid", op_hardsigmoid},
                                               {"SELU", op_selu},
                                               {"tanhshrink", op_tanhshrink},
                                               {"Tanhshrink", op_tanhshrink},
                                               {NULL, NULL}};
