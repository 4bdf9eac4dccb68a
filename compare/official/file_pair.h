/* SPDX-License-Identifier: MIT
 *
 * file_pair: two tensor files that a table names, and the cells about them.
 */
#ifndef COMPARE_OFFICIAL_FILE_PAIR_H
#define COMPARE_OFFICIAL_FILE_PAIR_H

#include "compare/measure/measured.h"
#include "compare/write/sheet.h"

struct cmp__file_pair {
    struct probe_tensor n, b;
    bool has_n, has_b;
    struct ms_buf why; /* why they cannot be compared, in the official words; empty: they can */
    struct cmp_figures fig;
};

/* Open and measure; a path may be NULL.  same_type: other types are not compared.  What cannot be
 * read is no failure but said in `why`. */
enum ms_rc cmp__file_pair_open(struct cmp__file_pair *p, const char *n, const char *b,
                               bool same_type, bool strict, struct ms_err *err);
void cmp__file_pair_close(struct cmp__file_pair *p);

/* "Yes", "No", "None" of a single element, or nothing where they cannot be compared; strictly a
 * tensor of zeros is near any other. */
const char *cmp__file_pair_verdict(const struct cmp__file_pair *p, bool strict);
/* Python's words for a shape: (2, 3). */
struct ms_str cmp__file_shape(struct cmp__sheet *s, const struct probe_tensor *t, char open,
                              char close);
/* Maximum, minimum, mean and norm; `none` where there are none.  Strictly they are of the tensor's
 * type where that is half or truth values, and none beside a NaN. */
void cmp__file_stats(struct cmp__sheet *s, const struct probe_tensor *t, bool open,
                     const char *none, bool strict);
/* The six metrics; `none` where there are none, `nan` for those that are no numbers. */
void cmp__file_figures(struct cmp__sheet *s, const struct cmp__file_pair *p, const char *none,
                       const char *nan);

#endif
