/* SPDX-License-Identifier: MIT
 *
 * void_values: values that mean nothing, and differ between two equal runs.
 */
#ifndef COMPARE_SOURCE_VOID_VALUES_H
#define COMPARE_SOURCE_VOID_VALUES_H

#include "compare/source/part.h"

/* Takes differences of such values for equal: gradients that are zero by mathematics, and memory
 * that was never written. */
enum ms_rc source__settle_voids(struct source__part *p, struct ms_err *err);

#endif
