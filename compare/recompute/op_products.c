/* SPDX-License-Identifier: MIT
 *
 * op_products: products of matrices and vectors.
 */
#include "compare/recompute/operator_call_int.h"

/* Adds an axis of length 1 at a place. */
static tape_id with_axis(struct tape *t, tape_id x, unsigned at)
{
    struct tape_shape s = tape_at(t, x)->shape;
    if (s.ndim == TAPE_DIMS)
        return tape_fail(t, MS_E_UNSUPPORTED, "a tensor of more than %d axes", TAPE_DIMS);
    memmove(&s.dim[at + 1], &s.dim[at], (s.ndim - at) * sizeof s.dim[0]);
    s.dim[at] = 1;
    s.ndim++;
    return tape_reshape(t, x, &s);
}

static tape_id without_axis(struct tape *t, tape_id x, unsigned at)
{
    if (x == TAPE_NONE)
        return x;
    struct tape_shape s = tape_at(t, x)->shape;
    memmove(&s.dim[at], &s.dim[at + 1], (s.ndim - at - 1) * sizeof s.dim[0]);
    s.ndim--;
    return tape_reshape(t, x, &s);
}

/* torch.matmul: vectors become matrices of one row or column. */
static tape_id matmul(struct tape *t, tape_id x, tape_id y)
{
    if (x == TAPE_NONE || y == TAPE_NONE)
        return TAPE_NONE;
    const unsigned xn = tape_at(t, x)->shape.ndim, yn = tape_at(t, y)->shape.ndim;
    if (xn == 0 || yn == 0)
        return tape_fail(t, MS_E_FORMAT, "a product of matrices with a number");
    const tape_id a = xn == 1 ? with_axis(t, x, 0) : x, b = yn == 1 ? with_axis(t, y, 1) : y;
    tape_id out = tape_matmul(t, a, false, b, false);
    if (out != TAPE_NONE && yn == 1)
        out = without_axis(t, out, tape_at(t, out)->shape.ndim - 1);
    if (out != TAPE_NONE && xn == 1)
        out = without_axis(t, out, tape_at(t, out)->shape.ndim - (yn == 1 ? 1 : 2));
    return out;
}

static void op_matmul(struct rec_call *c)
{
    rec_give(c, matmul(c->tape, rec_want(c, 0, "input"), rec_want(c, 1, "other")));
}

static void op_rmatmul(struct rec_call *c)
{
    rec_give(c, matmul(c->tape, rec_want(c, 1, "other"), rec_want(c, 0, "input")));
}

static void op_mm(struct rec_call *c)
{
    rec_give(c, matmul(c->tape, rec_want(c, 0, "input"), rec_want(c, 1, "mat2")));
}

static void op_mv(struct rec_call *c)
{
    rec_give(c, matmul(c->tape, rec_want(c, 0, "input"), rec_want(c, 1, "vec")));
}

static void op_outer(struct rec_call *c)
{
    const tape_id x = rec_want(c, 0, "input"), y = rec_want(c, 1, "vec2");
    if (x != TAPE_NONE && y != TAPE_NONE)
        rec_give(c, tape_mul(c->tape, with_axis(c->tape, x, rec_shape(c, x).ndim), y));
}

/* MatMul and BatchMatMul of MindSpore: the attributes transpose_a and transpose_b are not in a dump,
 * so the shapes say which operand is transposed. */
static void op_primitive_matmul(struct rec_call *c)
{
    const tape_id x = rec_want(c, 0, "input"), y = rec_want(c, 1, "mat2");
    const struct tape_shape xs = rec_shape(c, x), ys = rec_shape(c, y), out = c->result_shape;
    if (xs.ndim < 2 || ys.ndim < 2 || out.ndim < 2) {
        rec_unsupported(c, "operands that are no matrices");
        return;
    }
    const uint64_t rows = out.dim[out.ndim - 2], columns = out.dim[out.ndim - 1];
    for (unsigned way = 0; way < 4; way++) {
        const unsigned sx = way >> 1, sy = way & 1;
        if (xs.dim[xs.ndim - 2 + sx] == rows && ys.dim[ys.ndim - 1 - sy] == columns &&
            xs.dim[xs.ndim - 1 - sx] == ys.dim[ys.ndim - 2 + sy]) {
            if (xs.dim[xs.ndim - 1] == xs.dim[xs.ndim - 2] ||
                ys.dim[ys.ndim - 1] == ys.dim[ys.ndim - 2])
                rec_assume(c, "operands that are not transposed, as the shapes leave it open");
            rec_give(c, tape_matmul(c->tape, x, sx != 0, y, sy != 0));
            return;
        }
    }
    rec_unsupported(c, "the shapes of two matrices do not go together");
}

/* BiasAdd of MindSpore: one number for each channel, the second axis. */
static void op_bias_add(struct rec_call *c)
{
    const tape_id x = rec_want(c, 0, "input"), b = rec_want(c, 1, "bias");
    struct tape_shape s = {.ndim = rec_shape(c, x).ndim, .dim = {1, 1, 1, 1, 1, 1, 1, 1}};
    if (x == TAPE_NONE || b == TAPE_NONE || s.ndim < 2)
        return;
    s.dim[1] = rec_shape(c, b).dim[0];
    rec_give(c, tape_add(c->tape, x, tape_reshape(c->tape, b, &s)));
}

static void op_linear(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input"), w = rec_want(c, 1, "weight"),
                  b = rec_tensor(c, 2, "bias");
    if (x == TAPE_NONE || w == TAPE_NONE)
        return;
    const struct tape_shape s = rec_shape(c, x);
    struct tape_shape rows = {.ndim = 2, .dim = {1, s.ndim != 0 ? s.dim[s.ndim - 1] : 1}}, out = s;
    for (unsigned i = 0; i + 1 < s.ndim; i++)
        rows.dim[0] *= s.dim[i];
    const tape_id y = tape_matmul(t, tape_reshape(t, x, &rows), false, w, true);
    if (y == TAPE_NONE || s.ndim == 0)
        return;
    out.dim[s.ndim - 1] = rec_shape(c, y).dim[1];
    const tape_id shaped = tape_reshape(t, y, &out);
    rec_give(c, b != TAPE_NONE ? tape_add(t, shaped, b) : shaped);
}

/* beta * input + alpha * product */
static void add_product(struct rec_call *c, tape_id product)
{
    struct tape *t = c->tape;
    const double alpha = rec_number(c, -1, "alpha", 1), beta = rec_number(c, -1, "beta", 1);
    const tape_id x = rec_want(c, 0, "input");
    if (alpha != 1)
        product = tape_linear(t, product, alpha, 0);
    if (beta != 0)
        product = tape_add(t, beta != 1 ? tape_linear(t, x, beta, 0) : x, product);
    rec_give(c, product);
}

static void op_addmm(struct rec_call *c)
{
    add_product(c, matmul(c->tape, rec_want(c, 1, "mat1"), rec_want(c, 2, "mat2")));
}

static void op_baddbmm(struct rec_call *c)
{
    add_product(c, matmul(c->tape, rec_want(c, 1, "batch1"), rec_want(c, 2, "batch2")));
}

static void op_addbmm(struct rec_call *c)
{
    const tape_id y = matmul(c->tape, rec_want(c, 1, "batch1"), rec_want(c, 2, "batch2"));
    add_product(c, tape_reduce(c->tape, TAPE_SUM, y, 1, false));
}

static void op_addmv(struct rec_call *c)
{
    add_product(c, matmul(c->tape, rec_want(c, 1, "mat"), rec_want(c, 2, "vec")));
}

static void op_addr(struct rec_call *c)
{
    const tape_id x = rec_want(c, 1, "vec1"), y = rec_want(c, 2, "vec2");
    if (x != TAPE_NONE && y != TAPE_NONE)
        add_product(c, tape_mul(c->tape, with_axis(c->tape, x, rec_shape(c, x).ndim), y));
}

/* ---- einsum -------------------------------------------------------------------------- */

enum { LETTERS = 128 };

/* Brings an operand to the axes of all letters, those that it lacks with length 1. */
static tape_id spread_letters(struct tape *t, tape_id x, struct ms_str letters, struct ms_str all)
{
    if (x == TAPE_NONE || tape_at(t, x)->shape.ndim != letters.n)
        return tape_fail(t, MS_E_UNSUPPORTED, "an equation that is not recomputed");
    const struct tape_shape from = tape_at(t, x)->shape;
    unsigned axes[TAPE_DIMS], n = 0;
    struct tape_shape to = {.ndim = all.n};
    for (unsigned i = 0; i < all.n; i++) {
        const int64_t at = ms_str_find(letters, all.p[i]);
        to.dim[i] = at >= 0 ? from.dim[at] : 1;
        if (at >= 0)
            axes[n++] = (unsigned)at;
    }
    if (n != letters.n)
        return tape_fail(t, MS_E_UNSUPPORTED, "an equation that is not recomputed");
    return tape_reshape(t, tape_permute(t, x, axes), &to);
}

/* Two operands without repeated letters, as a product that is summed up. */
static void op_einsum(struct rec_call *c)
{
    struct ms_buf plain = {.max = LETTERS}, all = {.max = LETTERS};
    const struct ms_str equation = rec_text(c, 0, "equation", "");
    for (uint32_t i = 0; i < equation.n; i++)
        if (equation.p[i] != ' ')
            ms_buf_putc(&plain, equation.p[i]);
    struct ms_str rest = ms_buf_slice(&plain), in, x = {0}, y = {0}, out;
    const int64_t arrow = ms_str_find_str(rest, MS_STR("->"));
    tape_id op[2] = {rec_tensor(c, 1, "operands"), rec_tensor(c, 2, "operands")};
    if (op[0] == TAPE_NONE)
        (void)rec_tensors(c, 1, "operands", op, 2);
    in = ms_str_sub(rest, 0, arrow > 0 ? (uint32_t)arrow : 0);
    out = ms_str_sub(rest, (uint32_t)(arrow + 2), rest.n);
    (void)ms_str_split(&in, ',', &x);
    (void)ms_str_split(&in, ',', &y);
    ms_buf_str(&all, out);
    for (uint32_t i = 0; i < x.n; i++)
        if (ms_str_find(ms_buf_slice(&all), x.p[i]) < 0)
            ms_buf_putc(&all, x.p[i]);
    for (uint32_t i = 0; i < y.n; i++)
        if (ms_str_find(ms_buf_slice(&all), y.p[i]) < 0)
            ms_buf_putc(&all, y.p[i]);
    if (arrow < 0 || in.p != NULL || y.n == 0 || all.n > TAPE_DIMS || ms_str_has(rest, ".")) {
        rec_unsupported(c, "an equation that is not recomputed");
    } else {
        struct tape *t = c->tape;
        const struct ms_str letters = ms_buf_slice(&all);
        const tape_id product =
            tape_mul(t, spread_letters(t, op[0], x, letters), spread_letters(t, op[1], y, letters));
        const unsigned summed = ((1U << letters.n) - 1) & ~((1U << out.n) - 1);
        rec_give(c, tape_reduce(t, TAPE_SUM, product, summed, false));
    }
    ms_buf_free(&plain);
    ms_buf_free(&all);
}

const struct rec_operator rec_products[] = {{"matmul", op_matmul},
                                            {"linalg.matmul", op_matmul},
                                            {"rmatmul", op_rmatmul},
                                            {"mm", op_mm},
                                            {"bmm", op_mm},
                                            {"inner", op_matmul},
                                            {"mv", op_mv},
                                            {"dot", op_matmul},
                                            {"vdot", op_matmul},
                                            {"outer", op_outer},
                                            {"ger", op_outer},
                                            {"MatMul", op_primitive_matmul},
                                            {"BatchMatMul", op_primitive_matmul},
                                            {"BiasAdd", op_bias_add},
                                            {"linear", op_linear},
                                            {"Linear", op_linear},
                                            {"Dense", op_linear},
                                            {"dense", op_linear},
                                            {"addmm", op_addmm},
                                            {"baddbmm", op_baddbmm},
                                            {"addbmm", op_addbmm},
                                            {"addmv", op_addmv},
                                            {"addr", op_addr},
                                            {"einsum", op_einsum},
                                            {NULL, NULL}};
