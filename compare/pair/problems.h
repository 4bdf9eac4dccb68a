/* SPDX-License-Identifier: MIT
 *
 * problems: warnings about the input files of a comparison, one line of text each.
 */
#ifndef COMPARE_PAIR_PROBLEMS_H
#define COMPARE_PAIR_PROBLEMS_H

#include "probe/base/err.h"
#include "probe/base/str.h"
#include "probe/base/vec.h"

struct cmp_problems {
    MS_VEC(struct ms_str) list;
    struct ms_arena *arena; /* holds the lines; created with the first line */
};
/* Adds a line. */
enum ms_rc cmp__problem(struct cmp_problems *p, struct ms_err *err, const char *fmt, ...)
    MS_PRINTF(3, 4);
void cmp__problems_free(struct cmp_problems *p);

#endif
