/* SPDX-License-Identifier: MIT
 *
 * void_values: finds values without meaning, which differ even between two equal runs.
 */
#ifndef COMPARE_SOURCE_VOID_VALUES_H
#define COMPARE_SOURCE_VOID_VALUES_H

#include "compare/source/part.h"

/* Sets the difference of such values to zero: gradients that are mathematically zero, and memory
 * that was never written. */
enum ms_rc source__settle_voids(struct source__part *p, struct ms_err *err);

#endif
