/* SPDX-License-Identifier: MIT
 *
 * update_rules: judges what happens to gradients and parameters after the backward pass.
 */
#ifndef COMPARE_SOURCE_UPDATE_RULES_H
#define COMPARE_SOURCE_UPDATE_RULES_H

#include "compare/source/raw_suspects.h"

/* Tells whether a node is an operator behind the backward pass, as of the optimizer. */
bool source__is_update(const struct source__judge *j, uint32_t i);
/* Tells whether an input comes straight from the backward pass on both sides. */
bool source__is_gradient(const struct source__judge *j, const struct observe__leaf *l);
/* Computes j->gradient_off and j->gradient_norm from the gradients of the backward pass. */
void source__weigh_gradients(struct source__judge *j);
/* Rule: an operator after the backward pass reads a gradient that differs far more than all
 * gradients of the backward pass. Something that no dump records has changed it in between. */
enum ms_rc source__check_update(struct source__judge *j, uint32_t i, struct ms_err *err);
/* Rule: one side alone updates values in place after the backward pass: a step of the optimizer is
 * missing, is done twice, or is that of another kind of optimizer. Call after all other rules. */
enum ms_rc source__check_update_calls(struct source__judge *j, struct ms_err *err);

#endif
