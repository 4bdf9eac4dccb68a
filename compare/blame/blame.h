/* SPDX-License-Identifier: MIT
 *
 * blame: says of two records of one operator which of them is wrong.
 *
 *     recorded inputs ─► tape: exact results and their bounds ─┐
 *     recorded results ────────────────────────────────────────┴─► outcome of this side
 *
 * Each side is held against what its own inputs must give, so a difference of the inputs is nobody's
 * fault here. A backward record is computed from the inputs of its forward record and the gradients
 * that came in.
 */
#ifndef COMPARE_BLAME_BLAME_H
#define COMPARE_BLAME_BLAME_H

#include "compare/blame/operands.h"
#include "compare/blame/outcome.h"

/* Result of one side. */
enum blame_state {
    BLAME_WITHIN,  /* all results are as exact as their type allows */
    BLAME_ERRS,    /* a result is beyond its bound */
    BLAME_UNKNOWN, /* the results could not be computed again; `why` says the reason */
};

struct blame_tensor {
    char path[64]; /* "output.0" */
    enum ms_dtype dtype;
    struct blame_outcome outcome;
};

enum { BLAME_TENSORS = 16 };
struct blame_side {
    enum blame_state state;
    struct ms_err why;
    struct blame_tensor tensors[BLAME_TENSORS]; /* the worst first */
    size_t n;
    size_t skipped;      /* recorded results that are not computed again */
    const char *assumed; /* or NULL */
};

enum blame_verdict {
    BLAME_TARGET,    /* the target errs */
    BLAME_GOLDEN,    /* the golden side errs */
    BLAME_BOTH,      /* both err, in different ways */
    BLAME_NEITHER,   /* both are within their bounds, from equal inputs */
    BLAME_INPUTS,    /* both are within their bounds, and their inputs differ */
    BLAME_UNDECIDED, /* at least one side is unknown, or both are off in the same way */
    BLAME_VERDICTS
};
extern const char *const blame_verdict_names[BLAME_VERDICTS];

struct blame {
    enum blame_verdict verdict;
    struct blame_side target, golden;
    bool inputs_differ;
    double input_rel_l2; /* largest relative distance of an input; NaN: not comparable */
    char input_path[64]; /* of that input */
    bool results_equal;  /* bit for bit */
};

/* Judges a pair of records. `limit`: bytes of memory for each side. Fails only when memory runs out;
 * what cannot be computed is in the sides. */
enum ms_rc blame_judge(struct blame *b, const struct blame_record *target,
                       const struct blame_record *golden, size_t limit,
                       struct ms_err *err) MS_MUST_USE;

#endif
