/* SPDX-License-Identifier: MIT
 *
 * rules: the rules of msprobe 26 with its defects repaired.
 */
#include "compare/read/rules.h"

const struct cmp_rules cmp_rules_ours = {
    .name = "cur",
    .thousandth_limit = 0.6, /* the limit that the official message names */
    .tensor_title = "Result",
    .counts_calls = true,
    .counts_gradients = true,
    .aligns = true,
    .lists_lonely_golden = true,
    .complex_by_parts = true,
    .has_unmatched = true,
};
