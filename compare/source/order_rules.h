/* SPDX-License-Identifier: MIT
 *
 * order_rules: finds what put values in another order before an operator whose inputs seem to agree.
 */
#ifndef COMPARE_SOURCE_ORDER_RULES_H
#define COMPARE_SOURCE_ORDER_RULES_H

#include "compare/source/raw_suspects.h"

/* Rule for node i, whose output differs although its inputs agree exactly: adds a suspect for an
 * earlier operator, or for data from outside the dump, that explains this by another order. */
enum ms_rc source__check_reordered(struct source__judge *j, uint32_t i, struct ms_err *err);
/* Tells whether the last suspects that were added explain node i by another order of what it reads. */
bool source__may_read_other_order(const struct source__judge *j, uint32_t i);
/* Rule: an operator such as cat reads the same values in another order. Statistics of its output do
 * not show the order. */
enum ms_rc source__check_permutation(struct source__judge *j, uint32_t i, struct ms_err *err);

#endif
