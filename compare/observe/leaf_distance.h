/* SPDX-License-Identifier: MIT
 *
 * leaf_distance: measures how far two leaves are apart, by statistics, digests or tensor
 * files.
 */
#ifndef COMPARE_OBSERVE_LEAF_DISTANCE_H
#define COMPARE_OBSERVE_LEAF_DISTANCE_H

#include "compare/observe/part.h"
#include "probe/tensor/tensor.h"

enum { OBSERVE__NORM_COUNT = 64 }; /* with fewer elements a norm does not average out noise */

/* Compares two values by their statistics or digests and fills in the leaf; NULL: that side has no
 * such value. */
void observe__compare_values(const struct read__value *golden, const struct read__value *target,
                             enum probe_mode mode, bool cross, struct observe__leaf *leaf);

/* Returns the largest relative difference of the statistics of two values, at most 2. */
double observe__value_gap(const struct read__value *g, const struct read__value *t);

/* Returns the same, or, if that is larger, how far the elements are apart by their sketches, at a tenth: values that
 * are alike have their elements in one order. */
double observe__identity_gap(const struct read__value *g, const struct read__value *t);

/* Opens the tensor file of a row of a dump, in dir or where the dump names it. */
enum ms_rc observe__open_tensor(const struct probe_dump *d, const char *dir, uint32_t row,
                                struct probe_tensor *t, struct ms_err *err);

/* Comparison of a pair of tensor files. */
struct observe__facts {
    /* relative L2 distance of the elements finite on both sides; of integers, the root of the share
     * that differs */
    double e;
    double e_nz;   /* e without elements that are zero on one side alone */
    bool flagged;  /* NaN or infinity on one side alone */
    bool measured; /* both files could be read and have equal shapes */
};
enum ms_rc observe__measure_files(const struct cmp *c, uint32_t golden_row, uint32_t target_row,
                                  struct observe__facts *facts, struct ms_err *err);

#endif
