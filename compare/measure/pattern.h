/* SPDX-License-Identifier: MIT
 *
 * pattern: names the shape of a difference and tells whether rounding alone explains it.
 */
#ifndef COMPARE_MEASURE_PATTERN_H
#define COMPARE_MEASURE_PATTERN_H

#include "compare/measure/measured.h"

struct cmp_pattern {
    struct cmp_ext ext;
    /* expected relL2: measured with a second run, else one rounding on each side; NaN: unknown */
    double expected;
    double z; /* relL2, or its lower bound, divided by the expected one */
    /* "identical", "rounding", "scaled", "sign flip", "shifted", "outliers", ... */
    const char *name;
};

struct cmp_pattern cmp__pattern(const struct cmp_rows *c, const struct cmp_measured *m,
                                const struct cmp_row *row);

#endif
