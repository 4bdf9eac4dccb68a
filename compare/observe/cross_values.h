/* SPDX-License-Identifier: MIT
 *
 * cross_values: decides which differences between two frameworks count.
 */
#ifndef COMPARE_OBSERVE_CROSS_VALUES_H
#define COMPARE_OBSERVE_CROSS_VALUES_H

#include "compare/observe/part.h"

/* Between two programs: removes differences of values that do not correspond. */
enum ms_rc observe__settle_cross(struct observe__part *p, struct ms_err *err);

#endif
