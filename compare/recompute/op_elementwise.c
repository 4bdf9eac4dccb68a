/* SPDX-License-Identifier: MIT
 *
 * op_elementwise: arithmetic, comparisons and casts of single elements.
 */
#include "compare/recompute/operator_call_int.h"

static void binary(struct rec_call *c, enum tape_kind kind)
{
    rec_give(c, tape_binary(c->tape, kind, rec_want(c, 0, "input"), rec_want(c, 1, "other")));
}

/* x + alpha * y; whole numbers and exact factors round once. */
static void add_scaled(struct rec_call *c, double sign)
{
    const double alpha = rec_number(c, -1, "alpha", 1) * sign;
    tape_id y = rec_want(c, 1, "other");
    if (alpha != 1)
        y = alpha == -1 ? tape_neg(c->tape, y) : tape_linear(c->tape, y, alpha, 0);
    rec_give(c, tape_add(c->tape, rec_want(c, 0, "input"), y));
}

static void op_add(struct rec_call *c)
{
    add_scaled(c, 1);
}

static void op_sub(struct rec_call *c)
{
    add_scaled(c, -1);
}

static void op_rsub(struct rec_call *c)
{
    rec_give(c, tape_sub(c->tape, rec_want(c, 1, "other"), rec_want(c, 0, "input")));
}

static void op_mul(struct rec_call *c)
{
    binary(c, TAPE_MUL);
}

static tape_id rounded_quotient(struct rec_call *c, tape_id x, tape_id y, const char *mode)
{
    return tape_unary(c->tape, tape_function_find(ms_str_of(mode)), tape_div(c->tape, x, y), 0, 0);
}

static void op_div(struct rec_call *c)
{
    const struct ms_str mode = rec_text(c, -1, "rounding_mode", "");
    const tape_id x = rec_want(c, 0, "input"), y = rec_want(c, 1, "other");
    if (mode.n != 0)
        rec_give(c, rounded_quotient(c, x, y, ms_str_is(mode, "floor") ? "floor" : "trunc"));
    else
        rec_give(c, tape_div(c->tape, x, y));
}

static void op_rdiv(struct rec_call *c)
{
    rec_give(c, tape_div(c->tape, rec_want(c, 1, "other"), rec_want(c, 0, "input")));
}

static void op_floor_divide(struct rec_call *c)
{
    rec_give(c, rounded_quotient(c, rec_want(c, 0, "input"), rec_want(c, 1, "other"), "floor"));
}

/* x - y * floor(x / y); only with a constant y, as a rounded quotient may jump. */
static void op_remainder(struct rec_call *c)
{
    const struct rec_value *y = rec_find(c, 1, "other");
    if (y == NULL || y->kind != REC_NUMBER)
        rec_unsupported(c, "a remainder by a tensor is not recomputed");
    else
        rec_give(c, tape_unary(c->tape, &tape_remainder_function, rec_want(c, 0, "input"),
                               y->number, 0));
}

static void op_fmod(struct rec_call *c)
{
    const struct rec_value *y = rec_find(c, 1, "other");
    if (y == NULL || y->kind != REC_NUMBER)
        rec_unsupported(c, "a remainder by a tensor is not recomputed");
    else
        rec_give(c,
                 tape_unary(c->tape, &tape_fmod_function, rec_want(c, 0, "input"), y->number, 0));
}

static void op_pow(struct rec_call *c)
{
    const struct rec_value *x = rec_find(c, 0, "input"), *y = rec_find(c, 1, "exponent");
    if (x != NULL && x->kind == REC_TENSOR && y != NULL && y->kind == REC_NUMBER)
        rec_give(c, tape_power(c->tape, x->node, y->number));
    else
        rec_give(
            c, tape_binary(c->tape, TAPE_POW, rec_want(c, 0, "input"), rec_want(c, 1, "exponent")));
}

static void op_rpow(struct rec_call *c)
{
    rec_give(c, tape_binary(c->tape, TAPE_POW, rec_want(c, 1, "other"), rec_want(c, 0, "input")));
}

static void op_maximum(struct rec_call *c)
{
    binary(c, TAPE_MAX2);
}

static void op_minimum(struct rec_call *c)
{
    binary(c, TAPE_MIN2);
}

static void op_atan2(struct rec_call *c)
{
    binary(c, TAPE_ATAN2);
}

static void op_addcmul(struct rec_call *c)
{
    const double value = rec_number(c, -1, "value", 1);
    tape_id y = tape_mul(c->tape, rec_want(c, 1, "tensor1"), rec_want(c, 2, "tensor2"));
    rec_give(c, tape_add(c->tape, rec_want(c, 0, "input"),
                         value == 1 ? y : tape_linear(c->tape, y, value, 0)));
}

static void op_addcdiv(struct rec_call *c)
{
    const double value = rec_number(c, -1, "value", 1);
    tape_id y = tape_div(c->tape, rec_want(c, 1, "tensor1"), rec_want(c, 2, "tensor2"));
    rec_give(c, tape_add(c->tape, rec_want(c, 0, "input"),
                         value == 1 ? y : tape_linear(c->tape, y, value, 0)));
}

static void op_lerp(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input"), y = rec_want(c, 1, "end");
    rec_give(c, tape_add(t, x, tape_mul(t, rec_want(c, 2, "weight"), tape_sub(t, y, x))));
}

static void op_where(struct rec_call *c)
{
    rec_give(c, tape_where(c->tape, rec_want(c, 0, "condition"), rec_want(c, 1, "input"),
                           rec_want(c, 2, "other")));
}

/* Tensor.where(condition, other): the tensor itself comes first. */
static void op_masked_fill(struct rec_call *c)
{
    rec_give(c, tape_where(c->tape, rec_want(c, 1, "mask"), rec_want(c, 2, "value"),
                           rec_want(c, 0, "input")));
}

static void op_clamp(struct rec_call *c)
{
    const struct rec_value *least = rec_find(c, 1, "min"), *most = rec_find(c, 2, "max");
    tape_id x = rec_want(c, 0, "input");
    if ((least == NULL || least->kind == REC_NUMBER) &&
        (most == NULL || most->kind == REC_NUMBER)) {
        rec_give(c, tape_clamp(c->tape, x, least != NULL ? least->number : -INFINITY,
                               most != NULL ? most->number : INFINITY));
        return;
    }
    if (least != NULL)
        x = tape_binary(c->tape, TAPE_MAX2, x, rec_tensor(c, 1, "min"));
    if (most != NULL)
        x = tape_binary(c->tape, TAPE_MIN2, x, rec_tensor(c, 2, "max"));
    rec_give(c, x);
}

static void op_clamp_min(struct rec_call *c)
{
    rec_give(c, tape_clamp(c->tape, rec_want(c, 0, "input"), rec_number(c, 1, "min", -INFINITY),
                           INFINITY));
}

static void op_clamp_max(struct rec_call *c)
{
    rec_give(c, tape_clamp(c->tape, rec_want(c, 0, "input"), -INFINITY,
                           rec_number(c, 1, "max", INFINITY)));
}

static void op_hypot(struct rec_call *c)
{
    struct tape *t = c->tape;
    rec_give(c, tape_sqrt(t, tape_add(t, tape_square(t, rec_want(c, 0, "input")),
                                      tape_square(t, rec_want(c, 1, "other")))));
}

static void op_xlogy(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input"), y = rec_want(c, 1, "other");
    rec_give(c, tape_where(t, x, tape_mul(t, x, tape_log(t, y)), tape_constant(t, 0)));
}

static void op_logaddexp(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input"), y = rec_want(c, 1, "other");
    const tape_id most = rec_detach(t, tape_binary(t, TAPE_MAX2, x, y));
    rec_give(c, tape_add(t, most,
                         tape_log(t, tape_add(t, tape_exp(t, tape_sub(t, x, most)),
                                              tape_exp(t, tape_sub(t, y, most))))));
}

/* ---- comparisons and bits ------------------------------------------------------ */

enum relation { EQUAL, UNEQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, AND, OR, XOR };

static double holds(enum relation r, double x, double y)
{
    switch (r) {
    case EQUAL:
        return x == y;
    case UNEQUAL:
        return x != y;
    case LESS:
        return x < y;
    case LESS_EQUAL:
        return x <= y;
    case GREATER:
        return x > y;
    case GREATER_EQUAL:
        return x >= y;
    case AND:
        return x != 0 && y != 0;
    case OR:
        return x != 0 || y != 0;
    default:
        return (x != 0) != (y != 0);
    }
}

/* A comparison is exact, so it has neither an error nor a gradient. A number is compared after it
 * was rounded to the type of the tensor. */
static void compare(struct rec_call *c, enum relation r)
{
    struct tape *t = c->tape;
    tape_id x = rec_want(c, 0, "input"), y = rec_want(c, 1, "other");
    struct tape_shape shape;
    if (x == TAPE_NONE || y == TAPE_NONE)
        return;
    const struct rec_value *number = rec_find(c, 1, "other"), *tensor = rec_find(c, 0, "input");
    if (number->kind == REC_NUMBER)
        tape_at(t, y)->v[0] = ms_dtype_round(tensor->dtype, number->number);
    if (!tape_broadcast(&tape_at(t, x)->shape, &tape_at(t, y)->shape, &shape)) {
        rec_unsupported(c, "the shapes of two operands do not go together");
        return;
    }
    x = tape_expand(t, x, &shape);
    y = tape_expand(t, y, &shape);
    const tape_id id = tape_leaf(t, &shape);
    for (size_t i = 0; id != TAPE_NONE && y != TAPE_NONE && i < tape_at(t, id)->n; i++)
        tape_at(t, id)->v[i] = holds(r, tape_at(t, x)->v[i], tape_at(t, y)->v[i]);
    rec_give(c, id);
}

#define RELATION(name, relation)                                                                   \
    static void name(struct rec_call *c)                                                           \
    {                                                                                              \
        compare(c, relation);                                                                      \
    }
RELATION(op_eq, EQUAL)
RELATION(op_ne, UNEQUAL)
RELATION(op_lt, LESS)
RELATION(op_le, LESS_EQUAL)
RELATION(op_gt, GREATER)
RELATION(op_ge, GREATER_EQUAL)
RELATION(op_logical_and, AND)
RELATION(op_logical_or, OR)
RELATION(op_logical_xor, XOR)

/* Bits of truth values only. */
static void op_and(struct rec_call *c)
{
    if (c->result == MS_DT_BOOL)
        compare(c, AND);
    else
        rec_unsupported(c, "bits of whole numbers are not recomputed");
}

static void op_or(struct rec_call *c)
{
    if (c->result == MS_DT_BOOL)
        compare(c, OR);
    else
        rec_unsupported(c, "bits of whole numbers are not recomputed");
}

static void op_invert(struct rec_call *c)
{
    if (c->result == MS_DT_BOOL)
        rec_give(c, tape_unary(c->tape, tape_function_find(MS_STR("logical_not")),
                               rec_want(c, 0, "input"), 0, 0));
    else
        rec_unsupported(c, "bits of whole numbers are not recomputed");
}

/* ---- casts and copies -------------------------------------------------------------- */

/* The value itself; what it becomes in the type of the result is for the caller to say. A cast to a
 * whole number drops the fraction. */
static void op_cast(struct rec_call *c)
{
    const tape_id x = rec_want(c, 0, "input");
    const enum ms_dtype_kind kind = ms_dtype_kind(c->result);
    if (kind == MS_DTK_INT || kind == MS_DTK_UINT)
        rec_give(c, tape_unary(c->tape, tape_function_find(MS_STR("trunc")), x, 0, 0));
    else
        rec_give(c, x);
}

static void op_fill(struct rec_call *c)
{
    rec_give(c, tape_expand(c->tape, rec_want(c, 1, "value"), &c->result_shape));
}

static void op_zeros_like(struct rec_call *c)
{
    rec_give(c, tape_expand(c->tape, tape_constant(c->tape, 0), &c->result_shape));
}

static void op_ones_like(struct rec_call *c)
{
    rec_give(c, tape_expand(c->tape, tape_constant(c->tape, 1), &c->result_shape));
}

static void op_copy(struct rec_call *c)
{
    rec_give(c, tape_expand(c->tape, rec_want(c, 1, "src"), &c->result_shape));
}

const struct rec_operator rec_elementwise[] = {{"add", op_add},
                                               {"radd", op_add},
                                               {"Add", op_add},
                                               {"sub", op_sub},
                                               {"subtract", op_sub},
                                               {"Sub", op_sub},
                                               {"rsub", op_rsub},
                                               {"mul", op_mul},
                                               {"rmul", op_mul},
                                               {"multiply", op_mul},
                                               {"Mul", op_mul},
                                               {"div", op_div},
                                               {"truediv", op_div},
                                               {"true_divide", op_div},
                                               {"divide", op_div},
                                               {"RealDiv", op_div},
                                               {"Div", op_div},
                                               {"rdiv", op_rdiv},
                                               {"rtruediv", op_rdiv},
                                               {"floordiv", op_floor_divide},
                                               {"floor_divide", op_floor_divide},
                                               {"FloorDiv", op_floor_divide},
                                               {"remainder", op_remainder},
                                               {"mod", op_remainder},
                                               {"fmod", op_fmod},
                                               {"pow", op_pow},
                                               {"Pow", op_pow},
                                               {"float_power", op_pow},
                                               {"rpow", op_rpow},
                                               {"maximum", op_maximum},
                                               {"Maximum", op_maximum},
                                               {"minimum", op_minimum},
                                               {"Minimum", op_minimum},
                                               {"atan2", op_atan2},
                                               {"arctan2", op_atan2},
                                               {"addcmul", op_addcmul},
                                               {"addcdiv", op_addcdiv},
                                               {"lerp", op_lerp},
                                               {"where", op_where},
                                               {"Select", op_where},
                                               {"masked_fill", op_masked_fill},
                                               {"MaskedFill", op_masked_fill},
                                               {"clamp", op_clamp},
                                               {"clip", op_clamp},
                                               {"clamp_min", op_clamp_min},
                                               {"clamp_max", op_clamp_max},
                                               {"hypot", op_hypot},
                                               {"xlogy", op_xlogy},
                                               {"logaddexp", op_logaddexp},
                                               {"eq", op_eq},
                                               {"equal", op_eq},
                                               {"Equal", op_eq},
                                               {"ne", op_ne},
                                               {"not_equal", op_ne},
                                               {"NotEqual", op_ne},
                                               {"lt", op_lt},
                                               {"less", op_lt},
                                               {"Less", op_lt},
                                               {"le", op_le},
                                               {"less_equal", op_le},
                                               {"LessEqual", op_le},
                                               {"gt", op_gt},
                                               {"greater", op_gt},
                                               {"Greater", op_gt},
                                               {"ge", op_ge},
                                               {"greater_equal", op_ge},
                                               {"GreaterEqual", op_ge},
                                               {"logical_and", op_logical_and},
                                               {"LogicalAnd", op_logical_and},
                                               {"logical_or", op_logical_or},
                                               {"LogicalOr", op_logical_or},
                                               {"logical_xor", op_logical_xor},
                                               {"and", op_and},
                                               {"bitwise_and", op_and},
                                               {"or", op_or},
                                               {"bitwise_or", op_or},
                                               {"invert", op_invert},
                                               {"bitwise_not", op_invert},
                                               {"to", op_cast},
                                               {"type", op_cast},
                                               {"type_as", op_cast},
                                               {"float", op_cast},
                                               {"half", op_cast},
                                               {"bfloat16", op_cast},
                                               {"double", op_cast},
                                               {"int", op_cast},
                                               {"long", op_cast},
                                               {"bool", op_cast},
                                               {"cast", op_cast},
                                               {"Cast", op_cast},
                                               {"astype", op_cast},
                                               {"clone", op_cast},
                                               {"contiguous", op_cast},
                                               {"detach", op_cast},
                                               {"fill", op_fill},
                                               {"zeros_like", op_zeros_like},
                                               {"ZerosLike", op_zeros_like},
                                               {"zero", op_zeros_like},
                                               {"ones_like", op_ones_like},
                                               {"OnesLike", op_ones_like},
                                               {"copy", op_copy},
                                               {"Identity", op_cast},
                                               {NULL, NULL}};
