/* SPDX-License-Identifier: MIT
 *
 * file_pair: two tensor files that a table names, and the cells of their row.
 */
#ifndef COMPARE_OFFICIAL_FILE_PAIR_H
#define COMPARE_OFFICIAL_FILE_PAIR_H

#include "compare/measure/measured.h"
#include "compare/write/sheet.h"

struct cmp__file_pair {
    struct probe_tensor n, b;
    bool has_n, has_b;
    /* reason why the files cannot be compared, in the official wording; empty: comparable */
    struct ms_buf why;
    struct cmp_figures fig;
};

/* Opens and measures two files; a path may be NULL. same_type: files of different types are not
 * compared. A file that cannot be read is not an error; `why` gives the reason. */
enum ms_rc cmp__file_pair_open(struct cmp__file_pair *p, const char *n, const char *b,
                               bool same_type, bool strict, struct ms_err *err);
void cmp__file_pair_close(struct cmp__file_pair *p);

/* Returns "Yes", "No", "None" for a single element, or "" when the files cannot be compared.
 * strict: a tensor of zeros is near any other. */
const char *cmp__file_pair_verdict(const struct cmp__file_pair *p, bool strict);
/* Returns a shape as Python prints it: (2, 3). */
struct ms_str cmp__file_shape(struct cmp__sheet *s, const struct probe_tensor *t, char open,
                              char close);
/* Writes maximum, minimum, mean and norm, or `none` when there are none. strict: values of float16
 * and boolean tensors are rounded to their type, and there are none if the tensor contains NaN. */
void cmp__file_stats(struct cmp__sheet *s, const struct probe_tensor *t, bool open,
                     const char *none, bool strict);
/* Writes the six metrics: `none` for undefined ones, `nan` for NaN. */
void cmp__file_figures(struct cmp__sheet *s, const struct cmp__file_pair *p, const char *none,
                       const char *nan);

#endif
