/* SPDX-License-Identifier: MIT
 *
 * pattern: what a difference looks like, and whether rounding alone can explain it.
 */
#ifndef COMPARE_MEASURE_PATTERN_H
#define COMPARE_MEASURE_PATTERN_H

#include "compare/measure/measured.h"

struct cmp_pattern {
    struct cmp_ext ext;
    double
        expected; /* relL2 of a second run, or that one rounding on each side gives; NaN: unknown */
    double z;     /* relL2, or its lower bound, in units of the expected one */
    const char
        *name; /* "identical", "rounding", "scaled", "sign flip", "shifted", "outliers", ... */
};

struct cmp_pattern cmp__pattern(const struct cmp_rows *c, const struct cmp_measured *m,
                                const struct cmp_row *row);

#endif
