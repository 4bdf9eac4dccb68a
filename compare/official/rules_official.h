/* SPDX-License-Identifier: MIT
 *
 * rules_official: the sets of rules that --compat selects.
 */
#ifndef COMPARE_OFFICIAL_RULES_OFFICIAL_H
#define COMPARE_OFFICIAL_RULES_OFFICIAL_H

#include "compare/graph/graph_rules.h"
#include "compare/read/rules.h"

enum cmp_compat {
    CMP_CUR,    /* columns and texts of the official 26.x, with its defects fixed */
    CMP_OLD,    /* msprobe 1.x */
    CMP_STRICT, /* 26.x, defects included */
};
const struct cmp_rules *cmp_rules_of(enum cmp_compat compat);

enum ms_rc cmp__judge_old(const struct cmp_setup *set, struct cmp_view *v,
                          const struct cmp_row *row, struct cmp_row_verdict *out,
                          struct ms_err *err);

/* Returns the colour that msprobe 1.x gives to a row of its workbook (-hl). Appends the reasons for
 * the colour to `reasons`, one per line; it may be NULL. */
enum cmp_colour cmp__highlight(const struct cmp_setup *set, const struct cmp_view *v,
                               const struct cmp_row *row, struct ms_buf *reasons);

extern const struct graph_rules graph_rules_official;

#endif
