/* SPDX-License-Identifier: MIT
 *
 * outcome: how far a recorded tensor is from its exact value, and whether its type explains that.
 */
#ifndef COMPARE_BLAME_OUTCOME_H
#define COMPARE_BLAME_OUTCOME_H

#include "compare/recompute/tape.h"

/* A recorded element may be off by BLAME_SAFETY times the bound of the tape plus one unit in the
 * last place. The factor covers kernels that split, fuse and order operations in their own way. It
 * was fixed on one half of 200 pairs of such variants (tests/suites/judge_cases.py). */
#define BLAME_SAFETY 4.0

/* Distances of a recorded tensor from the exact values. */
struct blame_outcome {
    size_t n;
    size_t beyond; /* elements outside of their bound */
    double worst;  /* largest distance in bounds: above 1 is a fault */
    size_t worst_at;
    double recorded, exact, allowed; /* of that element */
    double max_ulp, mean_ulp;        /* distance in units in the last place of the recorded type */
    double max_rel;                  /* distance relative to the exact value */
    double rel_l2;  /* norm of the distances relative to that of the exact values */
    double typical; /* root mean square of the distances in bounds */
    size_t unclear; /* elements whose exact value is no number */
};

/* Distance between neighbouring numbers of a type at v; 1 for whole numbers. */
double blame_ulp(enum ms_dtype type, double v);
/* Largest finite number of a type; infinity for a type that is no floating point type. */
double blame_largest(enum ms_dtype type);

/* Compares n recorded elements with their exact values and the errors that the tape allows;
 * errors may be NULL: the result must be rounded correctly. */
void blame_measure(struct blame_outcome *o, enum ms_dtype type, const double *recorded,
                   const double *exact, const double *errors, size_t n);

#endif
