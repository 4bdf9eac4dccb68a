/* SPDX-License-Identifier: MIT
 *
 * multiply: matrices by which tensors are multiplied before they are compared, as listed in
 * the file of --config. They bring a rotated or scaled side back to the basis of the other
 * side.
 */
#ifndef COMPARE_MEASURE_MULTIPLY_H
#define COMPARE_MEASURE_MULTIPLY_H

#include "compare/measure/measured.h"

/* Reads the file of the configuration. Unknown names and matrices that cannot be read become
 * problems of the comparison. */
enum ms_rc cmp__factors_read(struct cmp__factors **f, struct cmp_rows *c, struct ms_err *err);
void cmp__factors_free(struct cmp__factors *f);
enum ms_rc cmp__factors_parse(struct cmp__factors **f, struct cmp_rows *c, const char *name,
                              struct ms_str text, struct ms_err *err);
/* Tells whether a tensor of the pair is multiplied. */
bool cmp__has_factors(const struct cmp__factors *f, const struct cmp_rows *c,
                      const struct cmp__pair *p);

/* A tensor that may have been multiplied; in that case its data is `own`. */
struct cmp__product {
    struct probe_tensor t;
    void *own;
};
/* Multiplies a tensor. Elements from `used` on count as zeros. out->own stays NULL when no matrix
 * applies. A matrix that cannot be read or does not fit is an error. */
enum ms_rc cmp__multiply(const struct cmp__factors *f, const struct cmp_rules *rules, bool target,
                         struct ms_str data_name, const struct probe_tensor *t, uint64_t used,
                         struct cmp__product *out, struct ms_err *err);

#endif
