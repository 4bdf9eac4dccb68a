/* SPDX-License-Identifier: MIT
 *
 * micro_batches: tells whether one side runs the model several times with a part of the batch each.
 */
#ifndef COMPARE_OBSERVE_MICRO_BATCHES_H
#define COMPARE_OBSERVE_MICRO_BATCHES_H

#include "compare/observe/part.h"

/* Sets part->batches: how many times more one side calls the operators of the forward pass. */
enum ms_rc observe__count_batches(struct observe__part *p, struct ms_err *err);

#endif
