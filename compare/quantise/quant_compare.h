/* SPDX-License-Identifier: MIT
 *
 * quant_compare: a quantised run, or checkpoint, beside one in floats.
 *
 * Layers of both are paired by their keys (quant_run.h), or, where modules were renamed, in order of
 * execution. Each layer's output gives its SQNR; the operands give the parts of the error that its
 * weight, its input and its sums add. Each quantised tensor is judged (quant_judge.h).
 */
#ifndef COMPARE_QUANTISE_QUANT_COMPARE_H
#define COMPARE_QUANTISE_QUANT_COMPARE_H

#include "compare/quantise/quant_judge.h"
#include "compare/quantise/quant_terms.h"

enum quant_role { QUANT_WEIGHT, QUANT_INPUT };

/* A tensor that was quantised, or not. */
struct quant_tensor_result {
    struct ms_str name; /* of the layer or module */
    struct ms_str node;
    enum quant_role role;
    enum quant_kind kind;
    int64_t step, rank;
    struct quant_verdict v;
};

struct quant_layer_result {
    struct ms_str name, node, golden;
    enum quant_kind kind;
    int64_t step, rank;
    double signal, noise; /* of the whole output */
    bool has_output;
    struct quant_terms terms;
    double introduced; /* noise by signal that the layer adds; with terms */
    double share;      /* of the noise of the run's result that comes from here */
};

struct quant_comparison {
    MS_VEC(struct quant_layer_result) layers; /* worst SQNR first */
    MS_VEC(struct quant_tensor_result)
    tensors;             /* in order of execution; those of a checkpoint by name */
    size_t unmatched[2]; /* layers of the target, of the golden side */
    size_t quantised;    /* tensors */
    size_t faults;
    size_t explain; /* layers, by share, that make 80 % of the noise of the run's result */
    double output;  /* SQNR of the layer that ran last; NaN: not recorded */
    struct ms_str output_name;
    struct ms_arena *arena;
};

/* Compares the dumps or checkpoints under two paths. bar shows how far it is; NULL: nothing does. */
enum ms_rc quant_compare(struct quant_comparison *c, const char *target, const char *golden,
                         struct ms_progress *bar, struct ms_err *err) MS_MUST_USE;
void quant_comparison_free(struct quant_comparison *c);

/* Adds a tensor that has been judged; its names are copied. For the files of this room. */
enum ms_rc quant__add_tensor(struct quant_comparison *c, const struct quant_tensor_result *t,
                             struct ms_err *err) MS_MUST_USE;
/* Folds a tensor's shape: rows are its first axis, or all but the last. */
struct quant_table quant__fold(const float *v, const uint64_t *shape, uint32_t ndim,
                               enum ms_dtype dtype, bool is_weight);
/* Compares two checkpoints. */
enum ms_rc quant__checkpoints(struct quant_comparison *c, const char *target, const char *golden,
                              struct ms_progress *bar, struct ms_err *err) MS_MUST_USE;

#endif
