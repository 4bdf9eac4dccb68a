/* SPDX-License-Identifier: MIT
 *
 * reproduce_int: the text of the program.
 */
#ifndef COMPARE_REPRODUCE_REPRODUCE_INT_H
#define COMPARE_REPRODUCE_REPRODUCE_INT_H

#include "compare/blame/blame_side.h"

/* Writes the text of the program; fails for an operator that is no function of the framework. */
enum ms_rc reproduce__script(const struct blame_work *s, struct ms_buf *out, struct ms_err *err);

/* Cuts the inputs of a computed record to one row, and computes it again; false, and nothing is
 * changed, where the results are not those of that row. */
bool reproduce__cut(struct blame_work *s, uint64_t row);

#endif
