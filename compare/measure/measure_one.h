/* SPDX-License-Identifier: MIT */
#ifndef COMPARE_MEASURE_MEASURE_ONE_H
#define COMPARE_MEASURE_MEASURE_ONE_H

#include "probe/base/dtype.h"

/* Returns the distance of two single elements in the arithmetic of numpy 1. */
double cmp__numpy_apart(enum ms_dtype tn, double n, enum ms_dtype tb, double b);
/* Returns the same distance relative to the golden element, as msprobe 1 computes it: NaN or
 * infinity where a float16 golden element is zero. */
double cmp__numpy_relative(enum ms_dtype tn, double n, enum ms_dtype tb, double b);

#endif
