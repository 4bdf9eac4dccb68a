/* SPDX-License-Identifier: MIT
 *
 * cross_values: decides which differences between two frameworks count.
 */
#ifndef COMPARE_SOURCE_CROSS_VALUES_H
#define COMPARE_SOURCE_CROSS_VALUES_H

#include "compare/source/part.h"

/* Between two programs: removes differences of values that do not correspond. */
enum ms_rc source__settle_cross(struct source__part *p, struct ms_err *err);

#endif
