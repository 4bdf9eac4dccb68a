/* SPDX-License-Identifier: MIT
 *
 * rules_official: the sets of rules that --compat selects.
 */
#ifndef COMPARE_OFFICIAL_RULES_OFFICIAL_H
#define COMPARE_OFFICIAL_RULES_OFFICIAL_H

#include "compare/read/rules.h"

enum cmp_compat {
    CMP_CUR,    /* columns and texts of the official 26.x, with its defects fixed */
    CMP_OLD,    /* msprobe 1.x */
    CMP_STRICT, /* 26.x, defects included */
};
extern const struct cmp_rules cmp_rules_strict;
const struct cmp_rules *cmp_rules_of(enum cmp_compat compat);

#endif
