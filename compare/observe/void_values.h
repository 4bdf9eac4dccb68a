/* SPDX-License-Identifier: MIT
 *
 * void_values: finds values without meaning, which differ even between two equal runs.
 */
#ifndef COMPARE_OBSERVE_VOID_VALUES_H
#define COMPARE_OBSERVE_VOID_VALUES_H

#include "compare/observe/part.h"

/* Sets the difference of such values to zero: gradients that are mathematically zero, and memory
 * that was never written. */
enum ms_rc observe__settle_voids(struct observe__part *p, struct ms_err *err);

#endif
