/* SPDX-License-Identifier: MIT
 *
 * functions: functions of one variable and their derivatives.
 *
 * The last four columns of the table say how exactly programs compute a function and its
 * derivative, in units of rounding: libraries of mathematics promise 1 or 2 units in the last
 * place. A derivative that is computed from the rounded result, such as 1 - tanh(x)^2, has an
 * absolute error.
 */
#include "compare/recompute/functions.h"

#include <math.h>

#define UNUSED_CONSTANTS (void)a, (void)b
#define FUNCTION(name, expression)                                                                 \
    static double name(double x, double a, double b)                                               \
    {                                                                                              \
        UNUSED_CONSTANTS;                                                                          \
        return (expression);                                                                       \
    }

FUNCTION(f_zero, 0 * x)
FUNCTION(f_one, 1 + 0 * x)
FUNCTION(f_minus_one, -1 + 0 * x)
FUNCTION(f_identity, x)
FUNCTION(f_neg, -x)
FUNCTION(f_abs, fabs(x))
FUNCTION(f_sign, x > 0 ? 1 : x < 0 ? -1 : x)
FUNCTION(f_exp, exp(x))
FUNCTION(f_exp2, exp2(x))
FUNCTION(d_exp2, exp2(x) * M_LN2)
FUNCTION(f_expm1, expm1(x))
FUNCTION(f_log, log(x))
FUNCTION(f_log2, log2(x))
FUNCTION(d_log2, 1 / (x * M_LN2))
FUNCTION(f_log10, log10(x))
FUNCTION(d_log10, 1 / (x * M_LN10))
FUNCTION(f_log1p, log1p(x))
FUNCTION(d_log1p, 1 / (1 + x))
FUNCTION(f_sqrt, sqrt(x))
FUNCTION(d_sqrt, 0.5 / sqrt(x))
FUNCTION(f_rsqrt, 1 / sqrt(x))
FUNCTION(d_rsqrt, -0.5 / (x * sqrt(x)))
FUNCTION(f_reciprocal, 1 / x)
FUNCTION(d_reciprocal, -1 / (x * x))
FUNCTION(f_square, x *x)
FUNCTION(d_square, 2 * x)
FUNCTION(f_sin, sin(x))
FUNCTION(d_cos, -sin(x))
FUNCTION(f_cos, cos(x))
FUNCTION(f_tan, tan(x))
FUNCTION(d_tan, 1 + tan(x) * tan(x))
FUNCTION(f_asin, asin(x))
FUNCTION(d_asin, 1 / sqrt((1 - x) * (1 + x)))
FUNCTION(f_acos, acos(x))
FUNCTION(d_acos, -1 / sqrt((1 - x) * (1 + x)))
FUNCTION(f_atan, atan(x))
FUNCTION(d_atan, 1 / (1 + x * x))
FUNCTION(f_sinh, sinh(x))
FUNCTION(f_cosh, cosh(x))
FUNCTION(f_tanh, tanh(x))
FUNCTION(d_tanh, 1 / (cosh(x) * cosh(x)))
FUNCTION(f_asinh, asinh(x))
FUNCTION(d_asinh, 1 / sqrt(x * x + 1))
FUNCTION(f_acosh, acosh(x))
FUNCTION(d_acosh, 1 / sqrt((x - 1) * (x + 1)))
FUNCTION(f_atanh, atanh(x))
FUNCTION(d_atanh, 1 / ((1 - x) * (1 + x)))
FUNCTION(f_erf, erf(x))
FUNCTION(d_erf, M_2_SQRTPI *exp(-x *x))
FUNCTION(f_erfc, erfc(x))
FUNCTION(d_erfc, -M_2_SQRTPI *exp(-x *x))
FUNCTION(f_lgamma, lgamma(x))
FUNCTION(f_sigmoid, 1 / (1 + exp(-x)))
FUNCTION(d_sigmoid, 1 / ((1 + exp(-x)) * (1 + exp(x))))
FUNCTION(f_logsigmoid, x < 0 ? x - log1p(exp(x)) : -log1p(exp(-x)))
FUNCTION(d_logsigmoid, 1 / (1 + exp(x)))
FUNCTION(f_relu, x > 0 ? x : x <= 0 ? 0 : x)
FUNCTION(d_relu, x > 0)
FUNCTION(f_relu6, x > 6 ? 6 : x > 0 ? x : x <= 0 ? 0 : x)
FUNCTION(d_relu6, x > 0 && x < 6)
FUNCTION(f_hardsigmoid, fmin(fmax(x + 3, 0), 6) / 6)
FUNCTION(d_hardsigmoid, x > -3 && x < 3 ? 1.0 / 6 : 0)
FUNCTION(f_hardswish, x *fmin(fmax(x + 3, 0), 6) / 6)
FUNCTION(d_hardswish, x <= -3 ? 0 : x < 3 ? x / 3 + 0.5 : 1)
FUNCTION(f_selu,
         x > 0 ? 1.0507009873554805 * x : 1.0507009873554805 * 1.6732632423543772 * expm1(x))
FUNCTION(d_selu, x > 0 ? 1.0507009873554805 : 1.0507009873554805 * 1.6732632423543772 * exp(x))
FUNCTION(f_floor, floor(x))
FUNCTION(f_ceil, ceil(x))
FUNCTION(f_round, rint(x))
FUNCTION(f_trunc, trunc(x))
FUNCTION(f_frac, x - trunc(x))
FUNCTION(f_deg2rad, x *(M_PI / 180))
FUNCTION(d_deg2rad, M_PI / 180 + 0 * x)
FUNCTION(f_isnan, isnan(x))
FUNCTION(f_isinf, isinf(x) != 0)
FUNCTION(f_isfinite, isfinite(x) != 0)
FUNCTION(f_not, x == 0)
FUNCTION(f_step, x > 0 ? 1 : x == 0 ? 0.5 : 0)
FUNCTION(f_step_down, x < 0 ? 1 : x == 0 ? 0.5 : 0)
FUNCTION(f_linear, a *x + b)
FUNCTION(d_linear, a + 0 * x)
FUNCTION(f_clamp, x<a ? a : x> b ? b : x)
FUNCTION(d_clamp, x >= a && x <= b)
FUNCTION(f_power, pow(x, a))
FUNCTION(d_power, a == 0 ? 0 : a * pow(x, a - 1))
FUNCTION(f_leaky, x > 0 ? x : a * x)
FUNCTION(d_leaky, x > 0 ? 1 : a)
FUNCTION(f_elu, x > 0 ? x : a * expm1(x / b))
FUNCTION(d_elu, x > 0 ? 1 : a / b * exp(x / b))
FUNCTION(f_threshold, x > a ? x : b)
FUNCTION(d_threshold, x > a)
FUNCTION(f_softplus, a *x > b ? x : log1p(exp(a * x)) / a)
FUNCTION(d_softplus, a *x > b ? 1 : 1 / (1 + exp(-a * x)))
FUNCTION(f_softshrink, x > a ? x - a : x < -a ? x + a : 0 * x)
FUNCTION(d_softshrink, x > a || x < -a)
FUNCTION(f_hardshrink, x > a || x < -a ? x : 0 * x)
FUNCTION(f_remainder, x - a * floor(x / a))
FUNCTION(f_fmod, fmod(x, a))

const struct tape_function tape_step = {"step", f_step, NULL, 0, 0, 0, 0};
const struct tape_function tape_step_down = {"step_down", f_step_down, NULL, 0, 0, 0, 0};
const struct tape_function tape_linear_function = {"linear", f_linear, d_linear, 2, 0, 0, 0};
const struct tape_function tape_clamp_function = {"clamp", f_clamp, d_clamp, 0, 0, 0, 0};
const struct tape_function tape_power_function = {"power", f_power, d_power, 3, 0, 5, 0};
const struct tape_function tape_leaky_function = {"leaky_relu", f_leaky, d_leaky, 1, 0, 0, 0};
const struct tape_function tape_elu_function = {"elu", f_elu, d_elu, 4, 1, 4, 2};
const struct tape_function tape_threshold_function = {
    "threshold", f_threshold, d_threshold, 0, 0, 0, 0};
const struct tape_function tape_softplus_function = {"softplus", f_softplus, d_softplus, 4,
                                                     1,          4,          0};
const struct tape_function tape_softshrink_function = {
    "softshrink", f_softshrink, d_softshrink, 1, 0, 0, 0};
const struct tape_function tape_hardshrink_function = {
    "hardshrink", f_hardshrink, d_softshrink, 0, 0, 0, 0};
const struct tape_function tape_remainder_function = {"remainder", f_remainder, f_one, 2, 0, 0, 0};
const struct tape_function tape_fmod_function = {"fmod", f_fmod, f_one, 2, 0, 0, 0};

static const struct tape_function functions[] = {
    {"neg", f_neg, f_minus_one, 0, 0, 0, 0},
    {"negative", f_neg, f_minus_one, 0, 0, 0, 0},
    {"abs", f_abs, f_sign, 0, 0, 0, 0},
    {"absolute", f_abs, f_sign, 0, 0, 0, 0},
    {"sign", f_sign, f_zero, 0, 0, 0, 0},
    {"sgn", f_sign, f_zero, 0, 0, 0, 0},
    {"exp", f_exp, f_exp, 2, 0, 3, 0},
    {"exp2", f_exp2, d_exp2, 2, 0, 4, 0},
    {"expm1", f_expm1, f_exp, 3, 0, 4, 1},
    {"log", f_log, f_reciprocal, 2, 0, 2, 0},
    {"log2", f_log2, d_log2, 3, 0, 4, 0},
    {"log10", f_log10, d_log10, 3, 0, 4, 0},
    {"log1p", f_log1p, d_log1p, 3, 0, 3, 0},
    {"sqrt", f_sqrt, d_sqrt, 1, 0, 4, 0},
    {"rsqrt", f_rsqrt, d_rsqrt, 3, 0, 6, 0},
    {"reciprocal", f_reciprocal, d_reciprocal, 1, 0, 4, 0},
    {"square", f_square, d_square, 1, 0, 1, 0},
    {"sin", f_sin, f_cos, 2, 0, 2, 0.1F},
    {"cos", f_cos, d_cos, 2, 0.1F, 2, 0},
    {"tan", f_tan, d_tan, 4, 0, 6, 0},
    {"asin", f_asin, d_asin, 3, 0, 6, 0},
    {"acos", f_acos, d_acos, 3, 0, 6, 0},
    {"atan", f_atan, d_atan, 3, 0, 4, 0},
    {"arcsin", f_asin, d_asin, 3, 0, 6, 0},
    {"arccos", f_acos, d_acos, 3, 0, 6, 0},
    {"arctan", f_atan, d_atan, 3, 0, 4, 0},
    {"sinh", f_sinh, f_cosh, 3, 0, 3, 0},
    {"cosh", f_cosh, f_sinh, 3, 0, 3, 0},
    {"tanh", f_tanh, d_tanh, 3, 0, 3, 3},
    {"asinh", f_asinh, d_asinh, 4, 0, 4, 0},
    {"acosh", f_acosh, d_acosh, 4, 0, 6, 0},
    {"atanh", f_atanh, d_atanh, 4, 0, 6, 0},
    {"erf", f_erf, d_erf, 3, 0, 5, 0},
    {"erfc", f_erfc, d_erfc, 5, 0, 5, 0},
    {"lgamma", f_lgamma, NULL, 5, 2, 0, 0},
    {"sigmoid", f_sigmoid, d_sigmoid, 4, 0, 4, 2},
    {"logsigmoid", f_logsigmoid, d_logsigmoid, 4, 0.5F, 4, 1},
    {"relu", f_relu, d_relu, 0, 0, 0, 0},
    {"relu6", f_relu6, d_relu6, 0, 0, 0, 0},
    {"hardsigmoid", f_hardsigmoid, d_hardsigmoid, 2, 1, 1, 0},
    {"hardswish", f_hardswish, d_hardswish, 4, 1, 3, 1},
    {"selu", f_selu, d_selu, 4, 1, 4, 2},
    {"floor", f_floor, f_zero, 0, 0, 0, 0},
    {"ceil", f_ceil, f_zero, 0, 0, 0, 0},
    {"round", f_round, f_zero, 0, 0, 0, 0},
    {"trunc", f_trunc, f_zero, 0, 0, 0, 0},
    {"frac", f_frac, f_one, 0, 0, 0, 0},
    {"deg2rad", f_deg2rad, d_deg2rad, 2, 0, 1, 0},
    {"isnan", f_isnan, NULL, 0, 0, 0, 0},
    {"isinf", f_isinf, NULL, 0, 0, 0, 0},
    {"isfinite", f_isfinite, NULL, 0, 0, 0, 0},
    {"logical_not", f_not, NULL, 0, 0, 0, 0},
    {"identity", f_identity, f_one, 0, 0, 0, 0},
};

const struct tape_function *tape_function_find(struct ms_str name)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (ms_str_is(name, functions[i].name))
            return &functions[i];
    return NULL;
}

static tape_id by_name(struct tape *t, tape_id x, const char *name)
{
    return tape_unary(t, tape_function_find(ms_str_of(name)), x, 0, 0);
}

tape_id tape_neg(struct tape *t, tape_id x)
{
    return by_name(t, x, "neg");
}

tape_id tape_abs(struct tape *t, tape_id x)
{
    return by_name(t, x, "abs");
}

tape_id tape_exp(struct tape *t, tape_id x)
{
    return by_name(t, x, "exp");
}

tape_id tape_log(struct tape *t, tape_id x)
{
    return by_name(t, x, "log");
}

tape_id tape_sqrt(struct tape *t, tape_id x)
{
    return by_name(t, x, "sqrt");
}

tape_id tape_rsqrt(struct tape *t, tape_id x)
{
    return by_name(t, x, "rsqrt");
}

tape_id tape_tanh(struct tape *t, tape_id x)
{
    return by_name(t, x, "tanh");
}

tape_id tape_square(struct tape *t, tape_id x)
{
    return by_name(t, x, "square");
}

tape_id tape_sigmoid(struct tape *t, tape_id x)
{
    return by_name(t, x, "sigmoid");
}

/* A sum may be much smaller than its terms, so each step rounds on its own. */
tape_id tape_linear(struct tape *t, tape_id x, double a, double b)
{
    if (b != 0 && fabs(a) != 1)
        return tape_unary(t, &tape_linear_function, tape_unary(t, &tape_linear_function, x, a, 0),
                          1, b);
    return tape_unary(t, &tape_linear_function, x, a, b);
}

tape_id tape_clamp(struct tape *t, tape_id x, double least, double most)
{
    return tape_unary(t, &tape_clamp_function, x, least, most);
}

tape_id tape_power(struct tape *t, tape_id x, double exponent)
{
    return tape_unary(t, &tape_power_function, x, exponent, 0);
}
