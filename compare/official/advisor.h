/* SPDX-License-Identifier: MIT
 *
 * advisor: the advice that msprobe 1.x wrote beside its tables.
 */
#ifndef COMPARE_ADVISOR_H
#define COMPARE_ADVISOR_H

#include "compare/out.h"

/* Three lines about the first row that is not well; c is a comparison in CMP_OLD. */
enum ms_rc cmp_write_advisor(const struct cmp *c, const char *path, struct cmp_files *files,
                             struct ms_err *err) MS_MUST_USE;

#endif
