/* SPDX-License-Identifier: MIT
 *
 * operands: reads the recorded arguments of an operator from a tensor dump, so that it can be
 * computed again.
 */
#ifndef COMPARE_BLAME_OPERANDS_H
#define COMPARE_BLAME_OPERANDS_H

#include "compare/recompute/operator_call.h"
#include "probe/dump/dump.h"
#include "probe/tensor/tensor.h"

/* A record of a dump. */
struct blame_record {
    const struct probe_dump *dump;
    const char *tensors; /* directory of its data files */
    uint32_t node;
};

/* A recorded tensor that was computed. */
struct blame_result {
    uint32_t row;        /* of the dump */
    struct ms_str path;  /* "output.0" */
    unsigned place;      /* among the results of the operator */
    enum ms_dtype dtype; /* recorded */
    struct tape_shape shape;
    double *v;
    size_t n;
};

struct blame_operands {
    struct rec_value *args, *named;
    size_t nargs, nnamed;
    tape_id *leaves;      /* all tensors among the arguments, parameters included */
    struct ms_str *paths; /* of these */
    size_t nleaves;
};
struct blame_results {
    struct blame_result *list;
    size_t n;
    unsigned places; /* number of results, of which some may be no tensors */
};

/* Name of the operator of a record: "linear" of Functional.linear.0.forward, "Linear" of
 * Module.fc.Linear.forward.0. */
struct ms_str blame_operator_of(struct ms_str record);

/* Reads all arguments and parameters into leaves of the tape. */
enum ms_rc blame_read_operands(const struct blame_record *r, struct tape *t,
                               struct blame_operands *to, struct ms_err *err) MS_MUST_USE;
/* Reads the recorded tensors of a section into the arena of the tape. */
enum ms_rc blame_read_results(const struct blame_record *r, enum probe_section section,
                              struct tape *t, struct blame_results *to,
                              struct ms_err *err) MS_MUST_USE;

#endif
