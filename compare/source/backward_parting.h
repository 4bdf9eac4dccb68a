/* SPDX-License-Identifier: MIT
 *
 * backward_parting: names the backward operator at which the gradients of two programs part, although
 * their forward passes agree.
 *
 * A value that is detached on one side alone, or a backward written by hand, shows in gradients alone. A
 * backward operator that reads gradients which both sides have, and makes one that the other side has
 * nowhere, is where they part, if what is computed from it is lost as well.
 */
#ifndef COMPARE_SOURCE_BACKWARD_PARTING_H
#define COMPARE_SOURCE_BACKWARD_PARTING_H

#include "compare/source/value_flow.h"

/* Fills p->backward_parting. */
enum ms_rc source__find_backward_parting(struct source__part *p, const struct source__side side[2],
                                         const uint32_t *const mate[2], struct ms_err *err);

#endif
