/* SPDX-License-Identifier: MIT
 *
 * operator_call: one call of an operator, with its arguments as values of a tape, to be computed again.
 *
 *     struct rec_call c = {.tape = &tape, .op = MS_STR("softmax"), .args = ..., .named = ...};
 *     if (rec_compute(&c, err) == MS_OK)
 *         ... c.out[0 .. c.nout) are the nodes of its results
 *
 * An argument is found by its position or its name, as in the signature of PyTorch's function.
 */
#ifndef COMPARE_RECOMPUTE_OPERATOR_CALL_H
#define COMPARE_RECOMPUTE_OPERATOR_CALL_H

#include "compare/recompute/tape.h"

enum rec_kind { REC_NONE, REC_TENSOR, REC_NUMBER, REC_BOOL, REC_TEXT, REC_LIST };

struct rec_value {
    enum rec_kind kind;
    struct ms_str name; /* of a named argument */
    tape_id node;       /* TENSOR */
    struct ms_str path; /* TENSOR: in its record, "input.0" */
    enum ms_dtype dtype;
    bool is_parameter; /* TENSOR: a parameter of a module, whose gradient is in another record */
    double number;     /* NUMBER, BOOL */
    bool is_int;       /* NUMBER: written without a fraction */
    bool is_dtype;     /* TEXT: names an element type */
    struct ms_str text;
    struct rec_value *items; /* LIST */
    size_t n;
};

enum { REC_OUTPUTS = 64 };

struct rec_call {
    struct tape *tape;
    struct ms_str op; /* "linear", "Linear" of a module */
    bool is_mindspore;
    bool is_primitive; /* of MindSpore, whose attributes a dump does not hold */
    const struct rec_value *args, *named;
    size_t nargs, nnamed;
    enum ms_dtype result;           /* type of the first recorded result */
    struct tape_shape result_shape; /* its shape */
    tape_id out[REC_OUTPUTS];       /* TAPE_NONE: a result that is not recomputed */
    size_t nout;
    const char *assumed; /* what a module does not record and was assumed; or NULL */
};

/* Computes the results of a call. MS_E_UNSUPPORTED: the table has no such operator, or not with such
 * arguments. */
enum ms_rc rec_compute(struct rec_call *c, struct ms_err *err) MS_MUST_USE;
/* Name of the i-th operator of the table; NULL behind the last. */
const char *rec_operator_name(size_t i);

#endif
