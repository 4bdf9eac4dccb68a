/* SPDX-License-Identifier: MIT
 *
 * judge_old: verdicts and texts of msprobe 1.x.
 */
#ifndef COMPARE_OFFICIAL_JUDGE_OLD_H
#define COMPARE_OFFICIAL_JUDGE_OLD_H

#include "compare/read/rules.h"

enum ms_rc cmp__judge_old(const struct cmp_setup *set, struct cmp_view *v,
                          const struct cmp_row *row, struct cmp_row_verdict *out,
                          struct ms_err *err);

/* Returns the colour that msprobe 1.x gives to a row of its workbook (-hl). Appends the reasons for
 * the colour to `reasons`, one per line; it may be NULL. */
enum cmp_colour cmp__highlight(const struct cmp_setup *set, const struct cmp_view *v,
                               const struct cmp_row *row, struct ms_buf *reasons);

#endif
