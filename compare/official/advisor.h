/* SPDX-License-Identifier: MIT
 *
 * advisor: the advice that msprobe 1.x wrote next to its tables.
 */
#ifndef COMPARE_OFFICIAL_ADVISOR_H
#define COMPARE_OFFICIAL_ADVISOR_H

#include "compare/write/out.h"

/* Writes three lines about the first failing row; c is a comparison by the rules of msprobe 1. */
enum ms_rc cmp_write_advisor(const struct cmp *c, const char *path, struct cmp_files *files,
                             struct ms_err *err) MS_MUST_USE;

#endif
