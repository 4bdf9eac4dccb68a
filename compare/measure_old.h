/* SPDX-License-Identifier: MIT
 *
 * measure_old: what 1.x computes otherwise where the golden side is zero.
 */
#ifndef COMPARE_MEASURE_OLD_H
#define COMPARE_MEASURE_OLD_H

#include "compare/metric.h"

/* Of elements that are zero on the golden side. */
struct cmp__zeros {
    float max_rel;
    uint64_t thousandth, five; /* that are not so close as cmp_facts has counted them */
};

/* Look at m elements of both sides. */
void cmp__zeros_add(struct cmp__zeros *z, enum ms_dtype tn, const void *n, enum ms_dtype tb,
                    const void *b, size_t m);
void cmp__zeros_join(struct cmp__zeros *z, const struct cmp__zeros *next);
/* Correct the facts of the whole. */
void cmp__zeros_apply(const struct cmp__zeros *z, struct cmp_facts *f);

#endif
