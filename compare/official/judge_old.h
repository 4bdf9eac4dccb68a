/* SPDX-License-Identifier: MIT
 *
 * judge_old: verdicts in the words of msprobe 1.x.
 */
#ifndef COMPARE_OFFICIAL_JUDGE_OLD_H
#define COMPARE_OFFICIAL_JUDGE_OLD_H

#include "compare/read/rules.h"

enum ms_rc cmp__judge_old(const struct cmp_setup *set, struct cmp_view *v,
                          const struct cmp_row *row, struct cmp_row_verdict *out,
                          struct ms_err *err);

/* The colour that msprobe 1.x gives to a row of its workbook (-hl).  The reasons of that colour are put
 * into `reasons`, a line each; it may be NULL. */
enum cmp_colour cmp__highlight(const struct cmp_setup *set, const struct cmp_view *v,
                               const struct cmp_row *row, struct ms_buf *reasons);

#endif
