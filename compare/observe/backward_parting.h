/* SPDX-License-Identifier: MIT
 *
 * backward_parting: names the backward operator at which the gradients of two programs part, although
 * their forward passes agree.
 *
 * A value that is detached on one side alone, or a backward written by hand, shows in gradients alone. A
 * backward operator that reads gradients which both sides have, and makes one that the other side has
 * nowhere, is where they part, if what is computed from it is lost as well.
 */
#ifndef COMPARE_OBSERVE_BACKWARD_PARTING_H
#define COMPARE_OBSERVE_BACKWARD_PARTING_H

#include "compare/observe/value_flow.h"

/* Fills p->backward_parting. */
enum ms_rc observe__find_backward_parting(struct observe__part *p,
                                          const struct observe__side side[2],
                                          const uint32_t *const mate[2], struct ms_err *err);

#endif
