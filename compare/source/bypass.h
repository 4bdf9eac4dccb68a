/* SPDX-License-Identifier: MIT
 *
 * bypass: finds operators of the golden side that the target leaves out.
 */
#ifndef COMPARE_SOURCE_BYPASS_H
#define COMPARE_SOURCE_BYPASS_H

#include "compare/observe/part.h"

/* Returns the golden operator without a partner that is bypassed before a node of the target: the
 * golden side computes A, B, C, the target A, C. The node is C, or a view between A and C.
 * *leaf: the input of C. OBSERVE__NONE when there is none. */
uint32_t source__bypassed_before(const struct observe__part *p, uint32_t node, uint32_t *leaf);

#endif
