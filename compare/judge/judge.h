/* SPDX-License-Identifier: MIT
 *
 * judge: the levels and notes of the rows of one operator.
 */
#ifndef COMPARE_JUDGE_JUDGE_H
#define COMPARE_JUDGE_JUDGE_H

#include "compare/read/setup.h"

/* Judges all rows of the view, which are those of one operator. */
void cmp__judge(const struct cmp_setup *set, struct cmp_view *v);

#endif
