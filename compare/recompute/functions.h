/* SPDX-License-Identifier: MIT
 *
 * functions: functions of one variable, and short names for those of which formulas are made.
 */
#ifndef COMPARE_RECOMPUTE_FUNCTIONS_H
#define COMPARE_RECOMPUTE_FUNCTIONS_H

#include "compare/recompute/tape.h"

/* Finds a function of one variable without constants by the name of the operator: "exp", "abs";
 * NULL when there is none. */
const struct tape_function *tape_function_find(struct ms_str name);

/* 1 above 0, 1/2 at 0, 0 below; and the other way round. */
extern const struct tape_function tape_step, tape_step_down;
extern const struct tape_function tape_linear_function;     /* a * x + b, rounded twice */
extern const struct tape_function tape_clamp_function;      /* between a and b */
extern const struct tape_function tape_power_function;      /* x to the a */
extern const struct tape_function tape_leaky_function;      /* a * x below 0 */
extern const struct tape_function tape_elu_function;        /* a * (exp(x / b) - 1) below 0 */
extern const struct tape_function tape_threshold_function;  /* x above a, else b */
extern const struct tape_function tape_softplus_function;   /* log(1 + exp(a * x)) / a, x above b */
extern const struct tape_function tape_softshrink_function; /* by a towards 0 */
extern const struct tape_function tape_hardshrink_function; /* 0 within a of 0 */
extern const struct tape_function tape_remainder_function;  /* x - a * floor(x / a) */
extern const struct tape_function tape_fmod_function;

tape_id tape_neg(struct tape *t, tape_id x);
tape_id tape_abs(struct tape *t, tape_id x);
tape_id tape_exp(struct tape *t, tape_id x);
tape_id tape_log(struct tape *t, tape_id x);
tape_id tape_sqrt(struct tape *t, tape_id x);
tape_id tape_rsqrt(struct tape *t, tape_id x);
tape_id tape_tanh(struct tape *t, tape_id x);
tape_id tape_square(struct tape *t, tape_id x);
tape_id tape_sigmoid(struct tape *t, tape_id x);
/* a * x + b */
tape_id tape_linear(struct tape *t, tape_id x, double a, double b);
tape_id tape_clamp(struct tape *t, tape_id x, double least, double most);
tape_id tape_power(struct tape *t, tape_id x, double exponent);

#endif
