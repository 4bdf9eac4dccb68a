/* SPDX-License-Identifier: MIT */
#ifndef COMPARE_MEASURE_MEASURE_ONE_H
#define COMPARE_MEASURE_MEASURE_ONE_H

#include "probe/base/dtype.h"

/* How far two single elements are apart, as numpy 1 says it. */
double cmp__numpy_apart(enum ms_dtype tn, double n, enum ms_dtype tb, double b);
/* The same over the golden one as msprobe 1 has it: NaN and infinity for a float16 zero. */
double cmp__numpy_relative(enum ms_dtype tn, double n, enum ms_dtype tb, double b);

#endif
