/* SPDX-License-Identifier: MIT
 *
 * border: removes the suspects whose difference ends inside the step.
 */
#ifndef COMPARE_SOURCE_BORDER_H
#define COMPARE_SOURCE_BORDER_H

#include "compare/source/node_weigh.h"

/* Tells whether the gradients of all parameters agree; false where none is recorded. */
bool source__do_gradients_agree(const struct source__judge *j);
/* Tells whether all gradients differ by one factor, and those that enter the update agree: the loss
 * is scaled to keep gradients within their type, as a GradScaler does. */
bool source__is_rescaled(const struct source__judge *j);
/* Drops suspects of the backward pass between two frameworks when all gradients of parameters agree. */
void source__drop_inner_gradients(struct source__judge *j);
/* Removes the suspects whose difference ends inside the step, if the gradients of all parameters agree. */
void source__drop_ended(struct source__judge *j);

#endif
