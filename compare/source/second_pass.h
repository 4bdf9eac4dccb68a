/* SPDX-License-Identifier: MIT
 *
 * second_pass: finds the records of backward that a later backward pass has replaced.
 */
#ifndef MSPROBE_COMPARE_SOURCE_SECOND_PASS_H
#define MSPROBE_COMPARE_SOURCE_SECOND_PASS_H

#include "compare/source/node_weigh.h"

/* Marks them. Call when j->after_backward is known and before weighing. */
void source__mark_second_passes(struct source__judge *j);

#endif
