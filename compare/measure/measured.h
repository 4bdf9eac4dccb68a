/* SPDX-License-Identifier: MIT
 *
 * measured: the figures of pairs of tensor files and the noise floor of golden rows.
 */
#ifndef COMPARE_MEASURE_MEASURED_H
#define COMPARE_MEASURE_MEASURED_H

#include "compare/pair/cmp_rows.h"
#include "probe/tensor/tensor.h"

struct cmp__factors; /* compare/measure/multiply.h */

struct cmp_measured {
    struct cmp__factors *factors;       /* with --config */
    MS_VEC(struct cmp_figures) figures; /* by pair; tensor mode */
    MS_VEC(double) noise; /* by golden row: distance of a second run from it; NaN: not known */
    uint64_t bytes_read;
};
void cmp__measured_free(struct cmp_measured *m);

/* Fills m->figures. */
enum ms_rc cmp__measure_tensors(const struct cmp_rows *c, struct cmp_measured *m,
                                struct ms_pool *pool, struct ms_err *err);
/* The same by several processes; see cmp_measure_part and cmp_measure_join. */
enum ms_rc cmp__measure_part(const struct cmp_rows *c, struct cmp_measured *m, struct ms_pool *pool,
                             unsigned part, unsigned parts, struct ms_buf *packed,
                             struct ms_err *err);
enum ms_rc cmp__measure_join(const struct cmp_rows *c, struct cmp_measured *m,
                             const struct ms_str *packed, unsigned parts, struct ms_err *err);
/* Measures two tensors that belong to no comparison. */
enum ms_rc cmp__measure_two(const struct cmp_rules *rules, bool ext, const struct probe_tensor *n,
                            const struct probe_tensor *b, struct cmp_figures *fig,
                            struct ms_err *err);
/* Rounds x as Python's "%.12f" does. */
double cmp__round12(double x);

#endif
