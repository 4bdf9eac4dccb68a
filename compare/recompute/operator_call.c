/* SPDX-License-Identifier: MIT
 *
 * operator_call: finds the operator of a call and computes it.
 */
#include "compare/recompute/operator_call_int.h"

static const struct rec_operator *const parts[] = {
    rec_elementwise, rec_activations, rec_products, rec_convolutions, rec_norms,     rec_reductions,
    rec_shapes,      rec_pools,       rec_losses,   rec_steps,        rec_attentions};
enum { PARTS = sizeof parts / sizeof parts[0] };

static const struct rec_operator *look_up(struct ms_str name)
{
    for (unsigned p = 0; p < PARTS; p++)
        for (const struct rec_operator *o = parts[p]; o->name != NULL; o++)
            if (ms_str_is(name, o->name))
                return o;
    return NULL;
}

/* Finds "__iadd__" as "add", "add_" as "add". */
static const struct rec_operator *find_operator(struct ms_str op)
{
    const struct rec_operator *found = look_up(op);
    if (found == NULL && ms_str_starts(op, MS_STR("__i")) && op.n > 5)
        found = look_up(ms_str_sub(op, 3, op.n - 2));
    if (found == NULL && ms_str_starts(op, MS_STR("__")) && op.n > 4)
        found = look_up(ms_str_sub(op, 2, op.n - 2));
    if (found == NULL && op.n > 1 && ms_str_ends(op, MS_STR("_")))
        found = look_up(ms_str_sub(op, 0, op.n - 1));
    return found;
}

static const struct tape_function *find_function(struct ms_str op)
{
    const struct tape_function *found = tape_function_find(op);
    if (found == NULL && ms_str_starts(op, MS_STR("__")) && op.n > 4)
        found = tape_function_find(ms_str_sub(op, 2, op.n - 2));
    if (found == NULL && op.n > 1 && ms_str_ends(op, MS_STR("_")))
        found = tape_function_find(ms_str_sub(op, 0, op.n - 1));
    return found;
}

const char *rec_operator_name(size_t i)
{
    for (unsigned p = 0; p < PARTS; p++)
        for (const struct rec_operator *o = parts[p]; o->name != NULL; o++)
            if (i-- == 0)
                return o->name;
    return NULL;
}

enum ms_rc rec_compute(struct rec_call *c, struct ms_err *err)
{
    const struct rec_operator *o = find_operator(c->op);
    const struct tape_function *f = o == NULL ? find_function(c->op) : NULL;
    if (o != NULL)
        o->compute(c);
    else if (f != NULL)
        rec_give(c, tape_unary(c->tape, f, rec_want(c, 0, "input"), 0, 0));
    else
        rec_unsupported(c,
                        "the table of operators has no %.*s; the program that `msprobe reproduce` "
                        "writes computes it in float64 with PyTorch",
                        MS_STR_ARG(c->op));
    if (!tape_failed(c->tape))
        return MS_OK;
    return ms_fail(err, c->tape->err.rc, "%s", c->tape->err.msg);
}
