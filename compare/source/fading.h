/* SPDX-License-Identifier: MIT
 *
 * fading: which differences of the forward pass are gone behind the next operators.
 */
#ifndef COMPARE_SOURCE_FADING_H
#define COMPARE_SOURCE_FADING_H

#include "compare/source/node_weigh.h"

/* Marks the forward nodes whose difference no later value carries on. Call after weighing. */
void source__mark_fading(struct source__judge *j);

#endif
