/* SPDX-License-Identifier: MIT
 *
 * unexplained: a jump of the differences that no rule has explained.
 */
#ifndef COMPARE_SOURCE_UNEXPLAINED_H
#define COMPARE_SOURCE_UNEXPLAINED_H

#include "compare/source/node_weigh.h"

/* Adds the operators before the first value that jumps away, when the rules have added nothing to
 * `known` raw suspects. Call after all rules. */
enum ms_rc source__check_unexplained(struct source__judge *j, size_t known, struct ms_err *err);

#endif
