/* SPDX-License-Identifier: MIT
 *
 * op_reductions: sums, means, extremes, norms, and what sorts.
 */
#include "compare/recompute/operator_call_int.h"

#include <stdlib.h>

static void reduce(struct rec_call *c, enum tape_kind kind)
{
    const tape_id x = rec_want(c, 0, "input");
    const char *name = rec_find(c, -1, "axis") != NULL ? "axis" : "dim";
    rec_give(c, tape_reduce(c->tape, kind, x, rec_axes(c, 1, name, rec_shape(c, x).ndim),
                            rec_flag(c, 2, "keepdim", rec_flag(c, -1, "keep_dims", false))));
}

static void op_sum(struct rec_call *c)
{
    reduce(c, TAPE_SUM);
}

static void op_amax(struct rec_call *c)
{
    reduce(c, TAPE_MAX);
}

static void op_amin(struct rec_call *c)
{
    reduce(c, TAPE_MIN);
}

static void op_prod(struct rec_call *c)
{
    reduce(c, TAPE_PROD);
}

static void op_mean(struct rec_call *c)
{
    const tape_id x = rec_want(c, 0, "input");
    const char *name = rec_find(c, -1, "axis") != NULL ? "axis" : "dim";
    rec_give(c, tape_mean(c->tape, x, rec_axes(c, 1, name, rec_shape(c, x).ndim),
                          rec_flag(c, 2, "keepdim", rec_flag(c, -1, "keep_dims", false))));
}

/* max(x), max(x, dim) with positions, max(x, y) */
static void extreme(struct rec_call *c, enum tape_kind one, enum tape_kind two)
{
    const struct rec_value *second = rec_find(c, 1, "other");
    if (second != NULL && second->kind == REC_TENSOR && rec_find(c, -1, "dim") == NULL) {
        rec_give(c, tape_binary(c->tape, two, rec_want(c, 0, "input"), second->node));
        return;
    }
    reduce(c, one);
    if (second != NULL || rec_find(c, -1, "dim") != NULL)
        rec_give(c, TAPE_NONE); /* positions: equal elements may stand at several */
}

static void op_max(struct rec_call *c)
{
    extreme(c, TAPE_MAX, TAPE_MAX2);
}

static void op_min(struct rec_call *c)
{
    extreme(c, TAPE_MIN, TAPE_MIN2);
}

/* Position of the extreme; any position is right where several elements are equal. */
static void position(struct rec_call *c, bool most)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input");
    const struct tape_shape s = rec_shape(c, x);
    const struct rec_value *dim = rec_find(c, 1, "dim");
    if (x == TAPE_NONE)
        return;
    const unsigned axis = dim != NULL ? rec_axis(c, 1, "dim", 0, s.ndim) : 0;
    struct tape_shape rows = {.ndim = 2, .dim = {1, tape_at(t, x)->n}};
    tape_id moved = dim != NULL && s.ndim != 0 ? tape_swap(t, x, axis, s.ndim - 1) : x;
    if (dim != NULL && s.ndim != 0 && s.dim[axis] != 0) {
        rows.dim[0] = tape_at(t, x)->n / s.dim[axis];
        rows.dim[1] = s.dim[axis];
    }
    moved = tape_reshape(t, moved, &rows);
    if (dim != NULL && axis + 1 != s.ndim && s.ndim > 2) {
        rec_unsupported(c, "positions along an axis that is not the last");
        return;
    }
    struct tape_shape flat = {.ndim = 1, .dim = {rows.dim[0]}};
    const tape_id id = tape_leaf(t, &flat);
    if (id == TAPE_NONE || moved == TAPE_NONE || rows.dim[1] == 0)
        return;
    tape_set_error(t, id, 1); /* makes room */
    struct tape_node *n = tape_at(t, id);
    n->e = ms_arena_calloc(t->arena, n->n + 1, sizeof *n->e);
    for (size_t row = 0; n->e != NULL && row < n->n; row++) {
        const double *v = tape_at(t, moved)->v + row * rows.dim[1];
        size_t best = 0, equal = 0;
        for (size_t i = 1; i < rows.dim[1]; i++)
            best = isnan(v[best]) || (!isnan(v[i]) && (most ? v[i] <= v[best] : v[i] >= v[best]))
                       ? best
                       : i;
        for (size_t i = 0; i < rows.dim[1]; i++)
            equal += v[i] == v[best];
        n->v[row] = (double)best;
        n->e[row] = equal > 1 ? (double)rows.dim[1] : 0;
    }
    rec_give(c, tape_reshape(t, id, &c->result_shape));
}

static void op_argmax(struct rec_call *c)
{
    position(c, true);
}

static void op_argmin(struct rec_call *c)
{
    position(c, false);
}

/* Variance with the correction of its divisor: 1 by default. */
static tape_id variance(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input");
    const struct rec_value *first = rec_find(c, 1, "dim");
    const bool flag_first = first != NULL && first->kind == REC_BOOL; /* var(x, unbiased) */
    const unsigned n = rec_shape(c, x).ndim;
    const unsigned axes = flag_first ? (1U << n) - 1 : rec_axes(c, 1, "dim", n);
    const bool unbiased = flag_first ? first->number != 0 : rec_flag(c, 2, "unbiased", true);
    const double correction = rec_number(c, -1, "correction", unbiased ? 1 : 0);
    const bool keep = rec_flag(c, 3, "keepdim", false);
    const tape_id centred = tape_sub(t, x, tape_mean(t, x, axes, true));
    return tape_div(t, tape_reduce(t, TAPE_SUM, tape_square(t, centred), axes, keep),
                    tape_constant(t, fmax(tape_reduced(t, x, axes) - correction, 0)));
}

static void op_var(struct rec_call *c)
{
    rec_give(c, variance(c));
}

static void op_std(struct rec_call *c)
{
    rec_give(c, tape_sqrt(c->tape, variance(c)));
}

static void op_norm(struct rec_call *c)
{
    struct tape *t = c->tape;
    const struct rec_value *p = rec_find(c, 1, rec_find(c, -1, "ord") != NULL ? "ord" : "p");
    const tape_id x = rec_want(c, 0, "input");
    const unsigned axes = rec_axes(c, 2, "dim", rec_shape(c, x).ndim);
    const bool keep = rec_flag(c, 3, "keepdim", false);
    const double order = p == NULL || p->kind == REC_TEXT ? 2 : p->number;
    const tape_id size = tape_abs(t, x);
    if (order == 2)
        rec_give(c, tape_sqrt(t, tape_reduce(t, TAPE_SUM, tape_square(t, x), axes, keep)));
    else if (order == 1)
        rec_give(c, tape_reduce(t, TAPE_SUM, size, axes, keep));
    else if (isinf(order))
        rec_give(c, tape_reduce(t, order > 0 ? TAPE_MAX : TAPE_MIN, size, axes, keep));
    else
        rec_give(c, tape_power(t, tape_reduce(t, TAPE_SUM, tape_power(t, size, order), axes, keep),
                               1 / order));
}

static void op_cumsum(struct rec_call *c)
{
    const tape_id x = rec_want(c, 0, "input");
    rec_give(c, tape_cumsum(c->tape, x, rec_axis(c, 1, "dim", 0, rec_shape(c, x).ndim)));
}

static void logic(struct rec_call *c, bool all)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input");
    const tape_id not = tape_unary(t, tape_function_find(MS_STR("logical_not")), x, 0, 0);
    const unsigned axes = rec_axes(c, 1, "dim", rec_shape(c, x).ndim);
    const tape_id any =
        tape_reduce(t, all ? TAPE_MAX : TAPE_MIN, not, axes, rec_flag(c, 2, "keepdim", false));
    rec_give(c, tape_unary(t, tape_function_find(MS_STR("logical_not")), any, 0, 0));
}

static void op_all(struct rec_call *c)
{
    logic(c, true);
}

static void op_any(struct rec_call *c)
{
    logic(c, false);
}

/* ---- sorting --------------------------------------------------------------------- */

struct keyed {
    double v;
    int64_t at;
};

static int ascending(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    if (isnan(x->v) || isnan(y->v))
        return isnan(x->v) - isnan(y->v);
    return x->v != y->v ? (x->v > y->v) - (x->v < y->v) : (x->at > y->at) - (x->at < y->at);
}

/* Gives the first k of each sorted row of the last axis. */
static void give_sorted(struct rec_call *c, uint64_t k, bool descending)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input");
    struct tape_shape s = rec_shape(c, x);
    if (x == TAPE_NONE || s.ndim == 0 || k > s.dim[s.ndim - 1]) {
        rec_unsupported(c, "more elements than an axis has");
        return;
    }
    const size_t len = s.dim[s.ndim - 1], rows = len != 0 ? tape_at(t, x)->n / len : 0;
    s.dim[s.ndim - 1] = k;
    int64_t *index = tape_index(t, &s);
    struct keyed *keys = ms_alloc((len + 1) * sizeof *keys);
    for (size_t row = 0; index != NULL && keys != NULL && row < rows; row++) {
        for (size_t i = 0; i < len; i++)
            keys[i] = (struct keyed){tape_at(t, x)->v[row * len + i], (int64_t)(row * len + i)};
        qsort(keys, len, sizeof *keys, ascending);
        for (size_t i = 0; i < k; i++)
            index[row * k + i] = keys[descending ? len - 1 - i : i].at;
    }
    ms_free(keys);
    rec_give(c, tape_gather(t, x, &s, index, 0));
    rec_give(c, TAPE_NONE);
}

static bool sorts_last(struct rec_call *c, int at)
{
    const unsigned n = rec_shape(c, rec_want(c, 0, "input")).ndim;
    if (rec_axis(c, at, "dim", -1, n) + 1 == n)
        return true;
    rec_unsupported(c, "sorting along an axis that is not the last");
    return false;
}

static void op_topk(struct rec_call *c)
{
    const double k = rec_number(c, 1, "k", 0);
    if (sorts_last(c, 2))
        give_sorted(c, k >= 0 && k < 1e12 ? (uint64_t)k : 0, rec_flag(c, 3, "largest", true));
}

static void op_sort(struct rec_call *c)
{
    const struct tape_shape s = rec_shape(c, rec_want(c, 0, "input"));
    if (s.ndim != 0 && sorts_last(c, 1))
        give_sorted(c, s.dim[s.ndim - 1], rec_flag(c, 2, "descending", false));
}

const struct rec_operator rec_reductions[] = {{"sum", op_sum},
                                              {"ReduceSum", op_sum},
                                              {"SumExt", op_sum},
                                              {"mean", op_mean},
                                              {"ReduceMean", op_mean},
                                              {"amax", op_amax},
                                              {"ReduceMax", op_amax},
                                              {"amin", op_amin},
                                              {"ReduceMin", op_amin},
                                              {"prod", op_prod},
                                              {"max", op_max},
                                              {"min", op_min},
                                              {"argmax", op_argmax},
                                              {"argmin", op_argmin},
                                              {"var", op_var},
                                              {"std", op_std},
                                              {"norm", op_norm},
                                              {"linalg.norm", op_norm},
                                              {"linalg.vector_norm", op_norm},
                                              {"frobenius_norm", op_norm},
                                              {"cumsum", op_cumsum},
                                              {"CumSum", op_cumsum},
                                              {"all", op_all},
                                              {"any", op_any},
                                              {"topk", op_topk},
                                              {"sort", op_sort},
                                              {NULL, NULL}};
