/* SPDX-License-Identifier: MIT
 *
 * attr_rules: judges what is known of a node besides values: plain arguments, shapes, types and
 * requires_grad.
 */
#ifndef COMPARE_SOURCE_ATTR_RULES_H
#define COMPARE_SOURCE_ATTR_RULES_H

#include "compare/source/raw_suspects.h"

/* Rule: a plain argument differs. The same argument may differ in every call; only the first is
 * reported. */
enum ms_rc source__check_scalar(struct source__judge *j, uint32_t i, uint32_t leaf,
                                struct ms_err *err);
/* Rule: a shape, a type or requires_grad differs. */
enum ms_rc source__check_attrs(struct source__judge *j, uint32_t i, struct ms_err *err);

#endif
