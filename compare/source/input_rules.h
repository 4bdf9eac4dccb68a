/* SPDX-License-Identifier: MIT
 *
 * input_rules: judges what a node reads.
 */
#ifndef COMPARE_SOURCE_INPUT_RULES_H
#define COMPARE_SOURCE_INPUT_RULES_H

#include "compare/source/raw_suspects.h"

/* Rule: a value that no node made, such as a parameter or data, differs. */
enum ms_rc source__check_root(struct source__judge *j, uint32_t i, uint32_t leaf,
                              struct ms_err *err);
/* Judges all inputs of a node: plain arguments, values that no node made, and values that another node made
 * than on the golden side. */
enum ms_rc source__check_inputs(struct source__judge *j, uint32_t i, struct ms_err *err);

#endif
