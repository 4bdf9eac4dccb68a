/* SPDX-License-Identifier: MIT
 *
 * op_steps: steps of optimizers that are one operator.
 *
 * Optimizers that are made of operators (those of torch.optim without fusing) are in the dump as
 * these operators and need nothing here.
 */
#include "compare/recompute/operator_call_int.h"

struct adam {
    tape_id parameter, m, v, gradient;
    double lr, beta1, beta2, eps, decay, correct1, correct2; /* 1 - beta^t */
    bool decoupled;                                          /* decay of AdamW */
};

/* Gives parameter, first and second moment after the step. */
static void give_adam(struct rec_call *c, const struct adam *a)
{
    struct tape *t = c->tape;
    tape_id p = a->parameter, g = a->gradient;
    if (a->decay != 0 && a->decoupled)
        p = tape_linear(t, p, 1 - a->lr * a->decay, 0);
    else if (a->decay != 0)
        g = tape_add(t, g, tape_linear(t, p, a->decay, 0));
    const tape_id m =
        tape_add(t, tape_linear(t, a->m, a->beta1, 0), tape_linear(t, g, 1 - a->beta1, 0));
    const tape_id v = tape_add(t, tape_linear(t, a->v, a->beta2, 0),
                               tape_linear(t, tape_square(t, g), 1 - a->beta2, 0));
    const tape_id below = tape_linear(t, tape_sqrt(t, v), 1 / sqrt(a->correct2), a->eps);
    const tape_id step = tape_linear(t, tape_div(t, m, below), -a->lr / a->correct1, 0);
    rec_give(c, tape_add(t, p, step));
    rec_give(c, m);
    rec_give(c, v);
}

/* npu_apply_adam_w(beta1_power, beta2_power, lr, weight_decay, beta1, beta2, epsilon, grad,
 * max_grad_norm, amsgrad, maximize, out=(var, m, v)) */
static void op_npu_apply_adam_w(struct rec_call *c)
{
    tape_id state[3];
    if (rec_tensors(c, -1, "out", state, 3) != 3 || rec_flag(c, 9, "amsgrad", false)) {
        rec_unsupported(c, "a step without its parameter and moments");
        return;
    }
    struct adam a = {.parameter = state[0],
                     .m = state[1],
                     .v = state[2],
                     .lr = rec_number(c, 2, "lr", 0),
                     .beta1 = rec_number(c, 4, "beta1", 0.9),
                     .beta2 = rec_number(c, 5, "beta2", 0.999),
                     .eps = rec_number(c, 6, "epsilon", 1e-8),
                     .decay = rec_number(c, 3, "weight_decay", 0),
                     .decoupled = true};
    a.gradient = rec_want(c, 7, "grad");
    if (rec_flag(c, 10, "maximize", false))
        a.gradient = tape_neg(c->tape, a.gradient);
    a.correct1 = 1 - rec_number(c, 0, "beta1_power", 0) * a.beta1;
    a.correct2 = 1 - rec_number(c, 1, "beta2_power", 0) * a.beta2;
    give_adam(c, &a);
}

/* MindSpore's Adam(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient). */
static void op_primitive_adam(struct rec_call *c)
{
    struct adam a = {.parameter = rec_want(c, 0, "var"),
                     .m = rec_want(c, 1, "m"),
                     .v = rec_want(c, 2, "v"),
                     .lr = rec_number(c, 5, "lr", 0),
                     .beta1 = rec_number(c, 6, "beta1", 0.9),
                     .beta2 = rec_number(c, 7, "beta2", 0.999),
                     .eps = rec_number(c, 8, "epsilon", 1e-8),
                     .gradient = rec_want(c, 9, "gradient")};
    a.correct1 = 1 - rec_number(c, 3, "beta1_power", 0);
    a.correct2 = 1 - rec_number(c, 4, "beta2_power", 0);
    /* This operator adds eps to the root before the correction. */
    a.eps /= sqrt(a.correct2);
    give_adam(c, &a);
}

/* MindSpore's ApplyMomentum(variable, accumulation, learning_rate, gradient, momentum). */
static void op_apply_momentum(struct rec_call *c)
{
    struct tape *t = c->tape;
    const double lr = rec_number(c, 2, "learning_rate", 0),
                 momentum = rec_number(c, 4, "momentum", 0);
    const tape_id sum = tape_add(t, tape_linear(t, rec_want(c, 1, "accumulation"), momentum, 0),
                                 rec_want(c, 3, "gradient"));
    rec_give(c, tape_add(t, rec_want(c, 0, "variable"), tape_linear(t, sum, -lr, 0)));
}

/* SGD as a step of its own: (parameter, gradient, lr). */
static void op_sgd(struct rec_call *c)
{
    struct tape *t = c->tape;
    rec_give(c, tape_add(t, rec_want(c, 0, "parameters"),
                         tape_linear(t, rec_want(c, 1, "gradient"),
                                     -rec_number(c, 2, "learning_rate", 0), 0)));
}

const struct rec_operator rec_steps[] = {
    {"npu_apply_adam_w", op_npu_apply_adam_w}, {"Adam", op_primitive_adam},
    {"ApplyMomentum", op_apply_momentum},      {"Momentum", op_apply_momentum},
    {"ApplyGradientDescent", op_sgd},          {NULL, NULL}};
