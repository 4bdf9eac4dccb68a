/* SPDX-License-Identifier: MIT
 *
 * op_losses: losses of training.
 */
#include "compare/recompute/operator_call_int.h"

/* Reduces the loss of single elements; "mean" divides by their number, or by `weight`. */
static void give_reduced(struct rec_call *c, tape_id loss, tape_id weight)
{
    struct tape *t = c->tape;
    const struct ms_str how = rec_text(c, -1, "reduction", "mean");
    const unsigned all = (1U << rec_shape(c, loss).ndim) - 1;
    if (ms_str_is(how, "none"))
        rec_give(c, loss);
    else if (ms_str_is(how, "sum"))
        rec_give(c, tape_reduce(t, TAPE_SUM, loss, all, false));
    else if (weight != TAPE_NONE)
        rec_give(c, tape_div(t, tape_reduce(t, TAPE_SUM, loss, all, false), weight));
    else
        rec_give(c, tape_mean(t, loss, all, false));
}

static void op_mse_loss(struct rec_call *c)
{
    const tape_id d = tape_sub(c->tape, rec_want(c, 0, "input"), rec_want(c, 1, "target"));
    give_reduced(c, tape_square(c->tape, d), TAPE_NONE);
}

static void op_l1_loss(struct rec_call *c)
{
    const tape_id d = tape_sub(c->tape, rec_want(c, 0, "input"), rec_want(c, 1, "target"));
    give_reduced(c, tape_abs(c->tape, d), TAPE_NONE);
}

/* Quadratic within `bound` of 0, linear beyond; both parts times `scale`. */
static void give_huber(struct rec_call *c, double bound, double scale)
{
    struct tape *t = c->tape;
    const tape_id d = tape_abs(t, tape_sub(t, rec_want(c, 0, "input"), rec_want(c, 1, "target")));
    const tape_id near = tape_linear(t, tape_square(t, d), 0.5 * scale, 0);
    const tape_id far = tape_linear(t, d, bound * scale, -0.5 * bound * bound * scale);
    const struct tape_shape s = rec_shape(c, d);
    const tape_id mask = tape_leaf(t, &s);
    for (size_t i = 0; mask != TAPE_NONE && d != TAPE_NONE && i < tape_at(t, mask)->n; i++)
        tape_at(t, mask)->v[i] = tape_at(t, d)->v[i] < bound;
    give_reduced(c, tape_where(t, mask, near, far), TAPE_NONE);
}

static void op_smooth_l1_loss(struct rec_call *c)
{
    const double beta = rec_number(c, 5, "beta", 1);
    if (beta == 0)
        op_l1_loss(c);
    else
        give_huber(c, beta, 1 / beta);
}

static void op_huber_loss(struct rec_call *c)
{
    give_huber(c, rec_number(c, 3, "delta", 1), 1);
}

/* Logarithms below -100 count as -100, as in PyTorch. */
static tape_id log_from(struct tape *t, tape_id x)
{
    return tape_clamp(t, tape_log(t, x), -100, INFINITY);
}

static void op_binary_cross_entropy(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input"), y = rec_want(c, 1, "target"),
                  w = rec_tensor(c, 2, "weight");
    const tape_id yes = tape_mul(t, y, log_from(t, x));
    const tape_id no = tape_mul(t, tape_linear(t, y, -1, 1), log_from(t, tape_linear(t, x, -1, 1)));
    const tape_id loss = tape_neg(t, tape_add(t, yes, no));
    give_reduced(c, w != TAPE_NONE ? tape_mul(t, loss, w) : loss, TAPE_NONE);
}

static void op_binary_cross_entropy_with_logits(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input"), y = rec_want(c, 1, "target"),
                  w = rec_tensor(c, 2, "weight"), p = rec_tensor(c, 5, "pos_weight");
    const struct tape_function *f = tape_function_find(MS_STR("logsigmoid"));
    const tape_id soft = tape_unary(t, f, x, 0, 0); /* log(sigmoid(x)) */
    tape_id loss;
    if (p != TAPE_NONE) {
        const tape_id weight = tape_linear(t, tape_mul(t, tape_linear(t, p, 1, -1), y), 1, 1);
        loss = tape_sub(t, tape_mul(t, tape_linear(t, y, -1, 1), x), tape_mul(t, weight, soft));
    } else {
        loss = tape_sub(t, tape_sub(t, x, tape_mul(t, x, y)), soft);
    }
    give_reduced(c, w != TAPE_NONE ? tape_mul(t, loss, w) : loss, TAPE_NONE);
}

static void op_kl_div(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input"), y = rec_want(c, 1, "target");
    tape_id loss;
    if (rec_flag(c, 5, "log_target", false)) {
        loss = tape_mul(t, tape_exp(t, y), tape_sub(t, y, x));
    } else {
        const tape_id self = tape_where(t, y, tape_mul(t, y, tape_log(t, y)), tape_constant(t, 0));
        loss = tape_sub(t, self, tape_mul(t, y, x));
    }
    const bool by_batch = ms_str_is(rec_text(c, 4, "reduction", "mean"), "batchmean");
    const struct tape_shape s = rec_shape(c, loss);
    if (by_batch && s.ndim != 0)
        rec_give(c, tape_div(t, tape_reduce(t, TAPE_SUM, loss, (1U << s.ndim) - 1, false),
                             tape_constant(t, (double)s.dim[0])));
    else
        give_reduced(c, loss, TAPE_NONE);
}

static void op_soft_margin_loss(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id z = tape_mul(t, rec_want(c, 0, "input"), rec_want(c, 1, "target"));
    const struct tape_function *f = tape_function_find(MS_STR("logsigmoid"));
    give_reduced(c, tape_neg(t, tape_unary(t, f, z, 0, 0)), TAPE_NONE);
}

static void op_poisson_nll_loss(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input"), y = rec_want(c, 1, "target");
    if (rec_flag(c, 3, "full", false)) {
        rec_unsupported(c, "the term of Stirling");
        return;
    }
    if (rec_flag(c, 2, "log_input", true))
        give_reduced(c, tape_sub(t, tape_exp(t, x), tape_mul(t, y, x)), TAPE_NONE);
    else
        give_reduced(
            c,
            tape_sub(
                t, x,
                tape_mul(t, y, tape_log(t, tape_linear(t, x, 1, rec_number(c, 5, "eps", 1e-8))))),
            TAPE_NONE);
}

static void op_margin_ranking_loss(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id d = tape_sub(t, rec_want(c, 1, "input2"), rec_want(c, 0, "input1"));
    const tape_id z =
        tape_linear(t, tape_mul(t, rec_want(c, 2, "target"), d), 1, rec_number(c, 3, "margin", 0));
    give_reduced(c, tape_clamp(t, z, 0, INFINITY), TAPE_NONE);
}

/* ---- classes ------------------------------------------------------------------------- */

/* The classes of x as its last axis: {elements, classes}. */
static tape_id classes_last(struct tape *t, tape_id x)
{
    if (x == TAPE_NONE)
        return x;
    const struct tape_shape s = tape_at(t, x)->shape;
    const unsigned axis = s.ndim > 1 ? 1 : 0;
    unsigned order[TAPE_DIMS], n = 0;
    for (unsigned i = 0; i < s.ndim; i++)
        if (i != axis)
            order[n++] = i;
    order[n] = axis;
    struct tape_shape two = {.ndim = 2, .dim = {1, s.ndim != 0 ? s.dim[axis] : 1}};
    two.dim[0] = two.dim[1] != 0 ? tape_at(t, x)->n / two.dim[1] : 0;
    return tape_reshape(t, axis + 1 < s.ndim ? tape_permute(t, x, order) : x, &two);
}

/* Weight of each element: of its class, and 0 for the ignored class. */
static tape_id class_weights(struct rec_call *c, tape_id target, uint64_t classes, int64_t *pick)
{
    struct tape *t = c->tape;
    const double ignored = rec_number(c, 4, "ignore_index", -100);
    const tape_id w = rec_tensor(c, 2, "weight");
    const struct tape_shape s = {.ndim = 1, .dim = {tape_at(t, target)->n}};
    const tape_id id = tape_leaf(t, &s);
    for (size_t i = 0; id != TAPE_NONE && i < s.dim[0]; i++) {
        const double y = tape_at(t, target)->v[i];
        if (y != ignored && !(y >= 0 && y < (double)classes))
            return tape_fail(t, MS_E_FORMAT, "a target names a class that is not there");
        pick[i] = y == ignored ? -1 : (int64_t)(i * classes + (size_t)y);
        tape_at(t, id)->v[i] = y == ignored ? 0 : w != TAPE_NONE ? tape_at(t, w)->v[(size_t)y] : 1;
    }
    return id;
}

/* -sum(weight * log p of the class), with the log probabilities {elements, classes}. */
static void give_nll(struct rec_call *c, tape_id logp, tape_id target, double smoothing)
{
    struct tape *t = c->tape;
    if (logp == TAPE_NONE || target == TAPE_NONE)
        return;
    const uint64_t classes = tape_at(t, logp)->shape.dim[1];
    const struct tape_shape flat = {.ndim = 1, .dim = {tape_at(t, target)->n}};
    int64_t *pick = tape_index(t, &flat);
    if (pick == NULL || tape_at(t, logp)->shape.dim[0] != flat.dim[0]) {
        rec_unsupported(c, "targets of another shape");
        return;
    }
    const tape_id weight = class_weights(c, target, classes, pick);
    tape_id loss = tape_neg(t, tape_mul(t, tape_gather(t, logp, &flat, pick, 0), weight));
    if (smoothing != 0) {
        if (rec_tensor(c, 2, "weight") != TAPE_NONE) {
            rec_unsupported(c, "smoothed labels with weights");
            return;
        }
        const tape_id even = tape_neg(t, tape_reduce(t, TAPE_SUM, logp, 2U, false));
        loss = tape_add(t, tape_linear(t, loss, 1 - smoothing, 0),
                        tape_linear(t, tape_mul(t, even, weight), smoothing / (double)classes, 0));
    }
    const struct tape_shape s = rec_shape(c, target);
    give_reduced(c, tape_reshape(t, loss, &s), tape_reduce(t, TAPE_SUM, weight, 1U, false));
}

static void op_nll_loss(struct rec_call *c)
{
    give_nll(c, classes_last(c->tape, rec_want(c, 0, "input")), rec_want(c, 1, "target"), 0);
}

static void op_cross_entropy(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = classes_last(t, rec_want(c, 0, "input")), y = rec_want(c, 1, "target");
    const struct rec_value *target = rec_find(c, 1, "target");
    const tape_id logp = rec_log_softmax(t, x, 1);
    if (target == NULL || logp == TAPE_NONE)
        return;
    if (ms_dtype_is_whole(target->dtype)) {
        give_nll(c, logp, y, rec_number(c, 7, "label_smoothing", 0));
        return;
    }
    if (rec_tensor(c, 2, "weight") != TAPE_NONE || rec_number(c, 7, "label_smoothing", 0) != 0) {
        rec_unsupported(c, "probabilities as targets with weights");
        return;
    }
    const tape_id rows =
        tape_neg(t, tape_reduce(t, TAPE_SUM, tape_mul(t, logp, classes_last(t, y)), 2U, false));
    give_reduced(c, rows, TAPE_NONE);
}

/* ---- distances ------------------------------------------------------------------------- */

/* x / max(norm(x), eps) along an axis. */
static tape_id unit_length(struct tape *t, tape_id x, unsigned axis, double eps)
{
    const tape_id norm = tape_sqrt(t, tape_reduce(t, TAPE_SUM, tape_square(t, x), axis, true));
    return tape_div(t, x, tape_clamp(t, norm, eps, INFINITY));
}

static void op_cosine_similarity(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "x1"), y = rec_want(c, 1, "x2");
    const unsigned axis = 1U << rec_axis(c, 2, "dim", 1, rec_shape(c, x).ndim);
    const double eps = rec_number(c, 3, "eps", 1e-8);
    const tape_id product = tape_mul(t, unit_length(t, x, axis, eps), unit_length(t, y, axis, eps));
    rec_give(c, tape_reduce(t, TAPE_SUM, product, axis, false));
}

static void op_pairwise_distance(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id d = tape_sub(t, rec_want(c, 0, "x1"), rec_want(c, 1, "x2"));
    const unsigned n = rec_shape(c, d).ndim;
    if (rec_number(c, 2, "p", 2) != 2 || n == 0) {
        rec_unsupported(c, "a norm other than 2");
        return;
    }
    const tape_id near = tape_linear(t, d, 1, rec_number(c, 3, "eps", 1e-6));
    rec_give(c, tape_sqrt(t, tape_reduce(t, TAPE_SUM, tape_square(t, near), 1U << (n - 1),
                                         rec_flag(c, 4, "keepdim", false))));
}

const struct rec_operator rec_losses[] = {
    {"mse_loss", op_mse_loss},
    {"MSELoss", op_mse_loss},
    {"l1_loss", op_l1_loss},
    {"L1Loss", op_l1_loss},
    {"smooth_l1_loss", op_smooth_l1_loss},
    {"huber_loss", op_huber_loss},
    {"binary_cross_entropy", op_binary_cross_entropy},
    {"binary_cross_entropy_with_logits", op_binary_cross_entropy_with_logits},
    {"kl_div", op_kl_div},
    {"soft_margin_loss", op_soft_margin_loss},
    {"poisson_nll_loss", op_poisson_nll_loss},
    {"margin_ranking_loss", op_margin_ranking_loss},
    {"nll_loss", op_nll_loss},
    {"cross_entropy", op_cross_entropy},
    {"CrossEntropyLoss", op_cross_entropy},
    {"cosine_similarity", op_cosine_similarity},
    {"pairwise_distance", op_pairwise_distance},
    {NULL, NULL}};
